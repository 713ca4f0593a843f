import { spawnSync } from 'node:child_process';
import { afterEach, expect, test, vi } from 'vitest';
import { prepareGo, prepareGoLatency } from './go.ts';
import { absentGo, buildGo, GO_QUEUE } from './go-programs.ts';
import { prepareGoQueue } from './go-queue.ts';

const here = spawnSync('go', ['version']).status === 0;

afterEach(() => void vi.unstubAllEnvs());

test('without `go` on the PATH there is a reason', async () => {
  vi.stubEnv('PATH', '/nonexistent');
  expect(await buildGo('fanout')).toBe('there is no `go` on the PATH');
  const absent = [...(await absentGo((entry) => entry === GO_QUEUE))];
  expect(absent).toEqual([[GO_QUEUE.name, 'there is no `go` on the PATH']]);
  expect(await absentGo(() => false)).toEqual(new Map());
});

test.skipIf(!here)(
  'the Go program is built, fans out, and measures latency',
  async () => {
    expect(await buildGo('fanout')).toBeUndefined();
    const fanout = await prepareGo({ watchers: 3, burst: 16 }, { warmMs: 10, roundMs: 10, tooSlowMs: 1_000 });
    const [speed] = await fanout.round();
    expect(speed).toBeGreaterThan(0);
    await fanout.end?.();
    const [p50, p99, p999] = (await (await prepareGoLatency({ watchers: 3, events: 100 })).round()) as [number, number, number];
    expect(p50).toBeGreaterThan(0);
    expect(p99).toBeGreaterThanOrEqual(p50);
    expect(p999).toBeGreaterThanOrEqual(p99);
  },
  300_000,
);

test.skipIf(!here)(
  'the work queue in Go is built, adds, and hands out',
  async () => {
    expect(await buildGo('workqueue')).toBeUndefined();
    for (const what of ['adds', 'pairs'] as const) {
      const queue = await prepareGoQueue({ what, keys: 100 }, { warmMs: 10, roundMs: 10, tooSlowMs: 1_000 });
      const [speed] = await queue.round();
      expect(speed).toBeGreaterThan(0);
      await queue.end?.();
    }
  },
  300_000,
);
