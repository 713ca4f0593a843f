// Who holds up the publisher: names, `stats()`, and the report after `stalledMs`.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Broadcaster, type BroadcasterOptions, type WatchEvent } from '../../src/index.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { turn } from './support.ts';

type Count = WatchEvent<'count', number>;
const count = (object: number): Count => ({ type: 'count', object });

function rig(options: BroadcasterOptions<Count> = {}) {
  const clock = new FakeClock();
  const told: string[] = [];
  const onError = (error: unknown): void => void told.push(String(error));
  const source = new Broadcaster<Count>({ capacity: 2, incoming: 0, clock, onError, ...options });
  const publish = (object: number): void => void source.publish(count(object)).catch(() => {});
  return { clock, told, source, publish };
}

let print: ReturnType<typeof vi.spyOn>;
beforeEach(() => {
  print = vi.spyOn(console, 'error').mockImplementation(() => {});
});
afterEach(() => void vi.restoreAllMocks());

describe('stats', () => {
  test('has each watcher, by name, with what it has queued and lost, and since when the publisher waits for it', async () => {
    const { clock, source, publish } = rig();
    const slow = source.watch({ name: 'slow' });
    const fast = source.watch({ name: 'fast', capacity: 100 });
    const lossy = source.watch({ overflow: 'drop-oldest', capacity: 1, onGap: () => {} });
    const evens = source.watch({ name: 'evens', filter: ({ object }) => object % 2 === 0, overflow: 'drop-newest', capacity: 1 });
    clock.advance(1_000);
    for (let n = 0; n < 5; n++) publish(n);
    clock.advance(1_000);
    const named = (name: string | undefined) => source.stats().watchers.find((each) => each.name === name);
    expect(source.stats().pending).toBe(3);
    expect(named('slow')).toEqual({ name: 'slow', queued: 2, dropped: 0, waitsSinceMs: 1_000 });
    expect(named('fast')).toEqual({ name: 'fast', queued: 2, dropped: 0 });
    expect(named(undefined)).toEqual({ name: undefined, queued: 1, dropped: 1 });
    expect(named('evens')).toEqual({ name: 'evens', queued: 1, dropped: 0 });
    await slow.next();
    expect(named('slow')).toMatchObject({ queued: 2, waitsSinceMs: 2_000 });
    await slow.return();
    await turn();
    expect(source.stats().pending).toBe(0);
    expect(
      source
        .stats()
        .watchers.map(({ name }) => name)
        .sort(),
    ).toEqual(['evens', 'fast', undefined]);
    for (const watch of [fast, lossy, evens]) await watch.return();
    expect(source.stats()).toEqual({ pending: 0, watchers: [] });
  });

  test('has the watchers of topics, and laggards that stand nowhere', async () => {
    const { source } = rig({ topicsOf: ({ object }) => String(object % 2) });
    source.watch({ name: 'odd', topics: ['1'], overflow: 'drop-newest' });
    source.watch({ name: 'all', overflow: 'disconnect' });
    for (let n = 0; n < 1_000; n++) source.tryPublish(count(n));
    const seen = source.stats().watchers.map(({ name, queued, dropped }) => [name, queued, dropped]);
    expect(seen.sort()).toEqual([
      ['all', 2, 998],
      ['odd', 2, 498],
    ]);
  });

  test('waits for nobody who has read since, and refuses a name that is no text', async () => {
    const { source } = rig();
    const watch = source.watch({ name: 'a' });
    for (let n = 0; n < 3; n++) source.tryPublish(count(n));
    expect(source.stats().watchers[0]).toHaveProperty('waitsSinceMs');
    await watch.next();
    expect(source.stats().watchers[0]).not.toHaveProperty('waitsSinceMs');
    expect(() => source.watch({ name: 5 as never })).toThrow('name: expected a string, got 5');
  });

  test('is empty after a shutdown', async () => {
    const { source } = rig();
    source.watch({ name: 'a' });
    await source.shutdown();
    expect(source.stats()).toEqual({ pending: 0, watchers: [] });
  });
});

describe('a watcher that holds up the publisher', () => {
  test('is named after stalledMs, once', async () => {
    const { clock, told, source, publish } = rig({ stalledMs: 5_000 });
    const watch = source.watch({ name: 'the report' });
    for (let n = 0; n < 5; n++) publish(n);
    clock.advance(4_999);
    expect(told).toEqual([]);
    clock.advance(1);
    clock.advance(1e6);
    expect(told).toEqual(['WatchError: the watcher "the report", with 2 events queued, has held up the publisher for 5000 ms']);
    expect(clock.pending).toBe(0);
    await watch.return();
    expect(print).not.toHaveBeenCalled();
  });

  test('is named by itself, also if others are named before', async () => {
    const { clock, told, source } = rig({ stalledMs: 1_000, topicsOf: ({ object }) => String(object % 2) });
    const watches = ['even', 'odd'].map((name, at) => source.watch({ name, topics: [String(at)], capacity: 1 }));
    expect([0, 2].map((n) => source.tryPublish(count(n)))).toEqual([true, false]);
    clock.advance(600);
    expect([1, 3].map((n) => source.tryPublish(count(n)))).toEqual([true, false]);
    clock.advance(600);
    expect(told).toHaveLength(1);
    clock.advance(10_000);
    expect(told.map((text) => /"(\w+)"/.exec(text)?.[1])).toEqual(['even', 'odd']);
    expect(clock.pending).toBe(0);
    for (const watch of watches) await watch.return();
  });

  test('is printed by default after a minute, and when it goes on', async () => {
    const { clock, source, publish } = rig({ onError: undefined });
    const watch = source.watch();
    for (let n = 0; n < 3; n++) publish(n);
    clock.advance(60_000);
    await watch.next();
    await turn();
    expect(print.mock.calls.flat()).toEqual([
      expect.stringMatching(
        /^watchmux broadcaster: publishing failed to go on: WatchError: a watcher without a name, with 2 events/,
      ),
      'watchmux broadcaster: publishing works again, after one failure',
    ]);
  });

  test('is not named if it reads, however slowly, or if nobody is to hear', async () => {
    const { clock, told, source, publish } = rig({ stalledMs: 1_000 });
    const watch = source.watch({ name: 'slow' });
    for (let n = 0; n < 50; n++) publish(n);
    for (let n = 0; n < 40; n++) {
      clock.advance(999);
      await watch.next();
    }
    expect(told).toEqual([]);
    await watch.return();
    clock.advance(1_000);
    expect(clock.pending).toBe(0);
    const quiet = rig({ stalledMs: 0 });
    const stuck = quiet.source.watch();
    for (let n = 0; n < 5; n++) quiet.publish(n);
    expect(quiet.clock.pending).toBe(0);
    await stuck.return();
  });

  test('leaves no timer after a shutdown that gives up on it', async () => {
    const { clock, source, publish } = rig();
    source.watch();
    for (let n = 0; n < 5; n++) publish(n);
    expect(clock.pending).toBe(1);
    await source.shutdown({ signal: AbortSignal.abort('enough') }).catch(() => {});
    expect(clock.pending).toBe(0);
  });

  test('leaves no timer if its filter has shut down while the gate asked whether it is full', () => {
    const { clock, told, source } = rig();
    source.watch({ filter: () => Boolean(source.shutdown()) });
    expect([0, 1].map((n) => source.tryPublish(count(n)))).toEqual([true, true]);
    expect(() => source.tryPublish(count(2))).toThrow(/shut down/);
    expect(clock.pending).toBe(0);
    clock.advance(60_000);
    expect(told).toEqual([]);
  });

  test('sets one timer, however often it blocks', async () => {
    const { clock, source, publish } = rig();
    const watch = source.watch();
    for (let n = 0; n < 100; n++) publish(n);
    for (let n = 0; n < 90; n++) await watch.next();
    expect(clock.pending).toBe(1);
    await watch.return();
  });
});
