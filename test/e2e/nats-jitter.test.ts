// Three hubs on a real nats-server, clients over all transports behind a balancer; servers are killed and stopped while four writers
// publish. The same as `npm run bench:jitter -- --replicas 3`, shortened. No time is measured.
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bundle } from '../../bench/bridge/jitter/bundle.mjs';
import { endAll } from '../../bench/bridge/jitter/peer.ts';
import type { FleetProfile, FleetScripts } from '../../bench/bridge/jitter/replicas.ts';
import { runFleet, wrongClients, wrongStream } from '../../bench/bridge/jitter/replicas.ts';
import { component, isMissing } from '../components.ts';

const missing = isMissing(component('nats-server'));
let scripts: FleetScripts = { replica: '', writers: '', audience: '' };
let remove = (): void => {};

beforeAll(async () => {
  if (missing) return;
  const bundled = await bundle();
  const script = (name: string): string => join(bundled.outDir, `${name}.js`);
  scripts = { replica: script('replica'), writers: script('writers'), audience: script('audience') };
  remove = bundled.remove;
}, 60_000);

afterAll(() => {
  endAll();
  remove();
});

const SHORT: FleetProfile = {
  replicas: 3,
  clients: 30,
  transports: ['websocket', 'sse', 'http'],
  writers: 4,
  perSecond: 10,
  eventBytes: 200,
  durationMs: 6_000,
  faultEveryMs: 500,
  awayMs: 800,
  replayItems: 20,
  loads: 1,
  seed: 3,
};

describe.skipIf(missing)('three hubs on one stream, killed and stopped at random', () => {
  test('every client gets every acknowledged event, once and in order', { timeout: 180_000 }, async () => {
    const outcome = await runFleet(SHORT, scripts);
    expect(outcome.wrong).toEqual([]);
    expect(outcome.delivered).toBe(outcome.stored * SHORT.clients);
    expect(outcome.stored).toBeGreaterThanOrEqual(outcome.acknowledged);
    expect(outcome.acknowledged).toBeGreaterThan(20);
    expect(outcome.reconnects).toBeGreaterThan(0);
    expect(Object.keys(outcome.faults).length).toBeGreaterThan(3);
  });
});

describe('the judgement of such a run', () => {
  const [a1, a2, b1] = [1, 2, 10_000_001];

  test.each([
    ['each writer in order, once', [a1, b1, a2], [2, 1], []],
    ['one that is stored, and whose acknowledgement was lost', [a1, b1, a2], [1, 1], []],
    ['one twice', [a1, b1, a1], [1, 1], ['the stream has event 1 of writer 0 where 2 should be']],
    ['two swapped', [a2, a1, b1], [2, 1], ['the stream has event 2 of writer 0 where 1 should be']],
    ['an acknowledged one that is missing', [a1, b1], [2, 1], ['of writer 0, 2 were acknowledged and 1 are stored']],
  ])('a stream with %s', (_what, stream, acknowledged, wrong) => {
    expect(wrongStream(stream, acknowledged)).toEqual(wrong);
  });

  test.each([
    ['all of it', [a1, b1, a2], []],
    ['not the end', [a1, b1], ['client 0 has 2 of 3 events']],
    ['a gap', [a1, a2], [`client 0 has ${a2} at 1, where the stream has ${b1}`]],
    ['one twice', [a1, a1, b1, a2], [`client 0 has ${a1} at 1, where the stream has ${b1}`]],
    ['two swapped', [b1, a1, a2], [`client 0 has ${b1} at 0, where the stream has ${a1}`]],
  ])('a client that got %s', (_what, got, wrong) => {
    expect(wrongClients([a1, b1, a2], [got])).toEqual(wrong);
  });
});
