// What a hub counts, and whom it notifies.
import { afterEach, expect, test, vi } from 'vitest';
import type { ClientStats } from '../../src/bridge/hub/connection.ts';
import { Hub } from '../../src/bridge/hub/hub.ts';
import { type HubNotice, Tally } from '../../src/bridge/hub/tally.ts';
import { toStatus } from '../../src/watch/event.ts';
import { added, connect, turn } from './fake-sink.ts';

afterEach(() => void vi.restoreAllMocks());

test('an observer that throws affects neither clients nor other observers: its error is reported as uncaught', () => {
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

test('nor does one that throws when it is asked what it wants: its error, too, is reported as uncaught', async () => {
  const reported: (() => void)[] = [];
  vi.spyOn(globalThis, 'queueMicrotask').mockImplementation((callback) => void reported.push(callback));
  const hub = new Hub();
  const fault = new Error('cannot decide');
  const wants = (): never => {
    throw fault;
  };
  hub.observe({ wants, tell: () => {} });
  const told: HubNotice['type'][] = [];
  hub.observe({ tell: ({ type }) => told.push(type) });
  const sink = connect(hub);
  sink.end = () => {}; // it closes later
  const down = hub.shutdown();
  await turn();
  sink.session.gone();
  await down; // does not pend: the hub has noticed that its last client has gone
  expect(told).toEqual(['open', 'close']);
  expect(reported.at(-1)).toThrow(fault);
});

test('an observer gets only the notices that it wants, and none after it has stopped', () => {
  const hub = new Hub();
  const [told, none]: HubNotice['type'][][] = [[], []];
  const stop = hub.observe({ wants: (type) => type === 'close', tell: ({ type }) => told?.push(type) });
  hub.observe({ wants: () => false, tell: ({ type }) => none?.push(type) });
  connect(hub).session.gone();
  stop();
  connect(hub).session.gone();
  expect([told, none]).toEqual([['close'], []]);
});

const stats = (id: number): ClientStats => ({
  ...{ id, transport: 'http', address: '', delivered: id, queued: 0, lag: 0, dropped: 10 * id, sentBytes: 100 * id },
  ...{ bufferedBytes: 0, resumed: false },
});
const refusal = { reason: 'full', status: toStatus({ code: 503, reason: 'Full', message: '' }), address: 'a' } as const;

test('totals include clients that have gone and those that are connected', () => {
  const tally = new Tally();
  tally.clients = 4;
  tally.closed(stats(1), 'gone', undefined);
  tally.closed(stats(2), 'stalled', undefined);
  tally.closed(stats(3), 'stalled', undefined);
  tally.resumed(() => stats(4), 7);
  tally.refused(refusal);
  const sums = { clients: 4, resumes: 1, refused: 1, refusals: { full: 1 }, cut: 2, cuts: { stalled: 2 } };
  expect(tally.totals([])).toEqual({ ...sums, delivered: 6, dropped: 60, sentBytes: 600 });
  expect(tally.totals([stats(4), stats(5)])).toEqual({ ...sums, delivered: 15, dropped: 150, sentBytes: 1_500 });
});

test('each notice has its data, and is requested by its type', () => {
  const tally = new Tally();
  const [asked, notices]: [string[], HubNotice[]] = [[], []];
  const wants = (type: string): boolean => asked.push(type) > 0;
  tally.observe({ wants, tell: (notice) => notices.push(notice) });
  const [client, error] = [stats(1), new Error('broken')];
  tally.opened(() => client);
  tally.resumed(() => client, 7);
  tally.refused(refusal);
  tally.closed(client, 'failed', error);
  tally.closed(client, 'complete', undefined);
  expect(notices).toEqual([
    { type: 'open', client },
    { type: 'resume', client, missed: 7 },
    { type: 'refused', ...refusal },
    { type: 'cut', client, reason: 'failed', error },
    { type: 'close', client, reason: 'failed', error },
    { type: 'close', client, reason: 'complete' },
  ]);
  expect(asked).toEqual(notices.map(({ type }) => type));
});
