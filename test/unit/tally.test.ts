// What a hub counts, and whom it tells.
import { afterEach, expect, test, vi } from 'vitest';
import { Hub } from '../../src/bridge/hub.ts';
import type { HubNotice } from '../../src/bridge/tally.ts';
import { added, connect } from './fake-sink.ts';

afterEach(() => void vi.restoreAllMocks());

test('who only looks on and throws harms neither clients nor others who look on: its fault is reported as uncaught', () => {
  const reported: (() => void)[] = [];
  vi.spyOn(globalThis, 'queueMicrotask').mockImplementation((callback) => void reported.push(callback));
  const hub = new Hub();
  const fault = new Error('looks on');
  hub.observe({
    tell: () => {
      throw fault;
    },
  });
  const told: HubNotice['type'][] = [];
  hub.observe({ tell: ({ type }) => told.push(type) });
  const sink = connect(hub);
  reported.length = 0;
  hub.tryPublish(added(1));
  sink.session.gone();
  expect(told).toEqual(['open', 'close']);
  expect(reported.at(-1)).toThrow(fault);
});

test('who wants some notices only is told of no others, and of none once it has stopped', () => {
  const hub = new Hub();
  const [told, none]: HubNotice['type'][][] = [[], []];
  const stop = hub.observe({ wants: (type) => type === 'close', tell: ({ type }) => told?.push(type) });
  hub.observe({ wants: () => false, tell: ({ type }) => none?.push(type) });
  connect(hub).session.gone();
  stop();
  connect(hub).session.gone();
  expect([told, none]).toEqual([['close'], []]);
});
