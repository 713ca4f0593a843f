// Bookmarks, marks, and ends by timeout.
import { describe, expect, test } from 'vitest';
import { coreOf, Hub, type HubOptions } from '../../src/bridge/hub/hub.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { added, connect, FakeSink, join, turn, until } from './fake-sink.ts';
import { handFed, hubOf } from './snapshot-source.ts';

describe('bookmarks', () => {
  const bookmark = (version: string, annotations?: Readonly<Record<string, string>>): object => ({
    type: 'BOOKMARK',
    object: { metadata: { resourceVersion: version, ...(annotations && { annotations }) } },
    resourceVersion: version,
  });
  const everySecond = { 'watchmux/bookmark-interval-ms': '1000' };

  test('are sent once per interval to clients that are up to date, even if the filter hides all events', async () => {
    const clock = new FakeClock();
    const hub = new Hub({ epoch: 'e', clock, bookmarkIntervalMs: 1_000, replayItems: 1 });
    const sink = join(hub, { allowWatchBookmarks: true }, { options: { filter: () => false } });
    const other = join(hub);
    // One at once: a client that is cut off before the first event knows where to go on.
    expect(sink.events).toEqual([bookmark('e.0', everySecond)]);
    clock.advance(999);
    expect(sink.events).toHaveLength(1);
    clock.advance(1);
    expect(sink.events).toEqual([bookmark('e.0', everySecond), bookmark('e.0', everySecond)]);
    for (let i = 0; i < 9; i++) await hub.publish(added(i));
    clock.advance(1_000);
    expect(sink.events.at(-1)).toEqual(bookmark('e.9', everySecond));
    expect(coreOf(hub).start({ resourceVersion: 'e.9' })).toMatchObject({ resumed: true });
    expect(other.events.every(({ type }) => type === 'ADDED')).toBe(true);
    sink.stall();
    clock.advance(1_000);
    const { length } = sink.events;
    clock.advance(5_000);
    expect(sink.events).toHaveLength(length);
    sink.session.gone();
    other.session.gone();
    expect(clock.pending).toBe(0);
  });

  test('are marks where the wire has them and events were not requested: once per interval, while up to date', async () => {
    const clock = new FakeClock();
    const hub = new Hub({ epoch: 'e', clock, bookmarkIntervalMs: 1_000, replayItems: 1 });
    const marks: string[] = [];
    const mark = (version: string): void => void marks.push(version);
    const filter = (): boolean => false;
    const sink = connect(hub, Object.assign(new FakeSink(), { mark }), { transport: 'sse', options: { filter } });
    const asks = connect(hub, Object.assign(new FakeSink(), { mark: () => expect.unreachable() }), {
      asked: { allowWatchBookmarks: true },
    });
    clock.advance(999);
    expect(marks).toEqual([]);
    for (let i = 0; i < 9; i++) await hub.publish(added(i));
    clock.advance(1);
    // A version that is far older than what is kept, had it stayed where the client began.
    expect(marks).toEqual(['e.9']);
    clock.advance(1_000);
    expect(marks).toEqual(['e.9', 'e.9']);
    asks.session.gone();
    sink.session.gone();
    expect(clock.pending).toBe(0);
  });

  test('no mark is sent to a client that is not up to date; a connection that throws affects only itself', async () => {
    const clock = new FakeClock();
    const hub = new Hub({ epoch: 'e', clock, bookmarkIntervalMs: 1_000 });
    let marks = 0;
    const mark = (): void => {
      marks++;
      throw new Error('gone');
    };
    const sink = connect(hub, Object.assign(new FakeSink(), { mark }), { transport: 'sse' });
    sink.stall();
    for (let i = 0; i < 3; i++) await hub.publish(added(i));
    clock.advance(5_000);
    expect(marks).toBe(0);
    sink.resume();
    await turn();
    clock.advance(1_000);
    expect(marks).toBe(1);
    expect(sink.destroyed).toBe(true);
    expect(clock.pending).toBe(0);
    expect(hub.stats().total.cuts).toEqual({ failed: 1 });
  });

  test('no mark is sent to a connection that is full, has been ended, or has just been lost', async () => {
    const clock = new FakeClock();
    const hub = new Hub({ epoch: 'e', clock, bookmarkIntervalMs: 1_000 });
    const marks: string[] = [];
    const marking = (name: string): ReturnType<typeof connect> =>
      connect(hub, Object.assign(new FakeSink(), { mark: () => void marks.push(name) }), {
        options: { filter: ({ object }) => name !== 'full' || object === 1 },
      });
    const [full, leaving, lost] = [marking('full'), marking('leaving'), marking('lost')];
    leaving.end = () => {};
    full.stall();
    await hub.publish(added(1));
    await turn();
    leaving.session.stop('timeout');
    lost.write = () => {
      throw new Error('EPIPE');
    };
    // The tick itself is the first to write the second event.
    hub.tryPublish(added(2));
    clock.advance(1_000);
    expect([full, leaving, lost].map(({ events, session }) => [events.length, session.over])).toEqual([
      [1, false],
      [1, false],
      [1, true],
    ]);
    expect(marks).toEqual([]);
  });

  test('never overtake an event that is published while they are due', async () => {
    const clock = new FakeClock();
    const hub = new Hub({ epoch: 'e', clock, bookmarkIntervalMs: 1_000 });
    const sink = join(hub, { allowWatchBookmarks: true });
    const write = sink.write.bind(sink);
    sink.write = (bytes) => {
      if (hub.version === 'e.1') hub.tryPublish(added(2));
      return write(bytes);
    };
    hub.tryPublish(added(1));
    clock.advance(1_000);
    await turn();
    // The version of the BOOKMARK is that of an event before it.
    expect(sink.objects.slice(1)).toMatchObject([1, 2, { metadata: { resourceVersion: 'e.2' } }]);
  });

  test('do not move a client of `coalesce` back: events that nothing was folded into keep their versions', async () => {
    const hub = new Hub({ epoch: 'e', overflow: 'coalesce' });
    const sink = join(hub, { allowWatchBookmarks: true });
    for (const names of [['a'], ['b', 'c']]) {
      for (const name of names) hub.tryPublish(added({ metadata: { name } }));
      await turn();
      sink.session.bookmark();
    }
    expect(sink.versions).toEqual(['e.0', 'e.1', 'e.1', 'e.2', 'e.3', 'e.3']);
  });

  test('by default are sent often enough that proxies do not close a quiet stream after a minute', () => {
    const clock = new FakeClock();
    const hub = new Hub({ epoch: 'e', clock });
    const sink = join(hub, { allowWatchBookmarks: true });
    for (const bookmarks of [2, 3]) {
      clock.advance(50_000);
      expect(sink.events.length).toBeGreaterThanOrEqual(bookmarks);
    }
  });

  test('never overtake events that wait for a client without room, because they vouch for them', async () => {
    const clock = new FakeClock();
    const hub = new Hub({ epoch: 'e', clock, bookmarkIntervalMs: 1_000 });
    const sink = join(hub, { allowWatchBookmarks: true });
    sink.stall();
    await hub.publish(added(1));
    await until(() => sink.events.length === 2);
    await hub.publish(added(2));
    clock.advance(1_000);
    sink.resume();
    await until(() => sink.events.length === 3);
    clock.advance(1_000);
    expect(sink.versions).toEqual(['e.0', 'e.1', 'e.2', 'e.2']);
    expect(sink.events.map(({ type }) => type)).toEqual(['BOOKMARK', 'ADDED', 'ADDED', 'BOOKMARK']);
    sink.session.gone();
  });

  test('one is sent at once, after what is sent to begin with, to every client that asks for BOOKMARKs', async () => {
    const hub = new Hub({ epoch: 'e', replay: 1 });
    const early = join(hub, { allowWatchBookmarks: true });
    await hub.publish(added(1));
    await hub.publish(added(2));
    const replayed = join(hub, { allowWatchBookmarks: true });
    const filtered = join(hub, { allowWatchBookmarks: true }, { options: { filter: () => false } });
    const resumed = join(hub, { allowWatchBookmarks: true, resourceVersion: 'e.2' });
    const late = join(hub, { allowWatchBookmarks: true, resourceVersion: 'e.1' });
    const unasked = join(new Hub({ epoch: 'e' }));
    const stateful = new Hub({ epoch: 'e', snapshot: () => ['a'] });
    const snapshot = join(stateful, { allowWatchBookmarks: true });
    await until(() => snapshot.events.length === 2);
    await turn();
    expect(early.versions).toEqual(['e.0', 'e.1', 'e.2']);
    expect(early.events[0]).toEqual(bookmark('e.0'));
    expect(replayed.events).toEqual([expect.objectContaining({ type: 'ADDED', object: 2 }), bookmark('e.2')]);
    expect(filtered.events).toEqual([bookmark('e.2')]);
    expect(resumed.events).toEqual([bookmark('e.2')]);
    expect(late.versions).toEqual(['e.2', 'e.2']);
    expect(unasked.events).toEqual([]);
    expect(snapshot.events.map(({ type }) => type)).toEqual(['ADDED', 'BOOKMARK']);
  });

  test('tell their interval if it is not the default, also at the end of a snapshot, to a client that asked for more', async () => {
    for (const [bookmarkIntervalMs, told] of [
      [30_000, undefined],
      [300_000, { 'watchmux/bookmark-interval-ms': '300000' }],
    ] as const) {
      const hub = new Hub({ epoch: 'e', bookmarkIntervalMs, clock: new FakeClock(), snapshot: () => [] });
      const fresh = join(hub, { allowWatchBookmarks: true });
      const unasked = join(hub);
      const resumed = join(hub, { resourceVersion: 'e.0', allowWatchBookmarks: true, timeoutSeconds: 1 });
      await until(() => fresh.events.length === 1 && unasked.events.length === 1);
      const end = { 'k8s.io/initial-events-end': 'true' };
      expect(fresh.events).toEqual([bookmark('e.0', { ...end, ...told })]);
      expect(unasked.events).toEqual([bookmark('e.0', end)]);
      resumed.session.stop('timeout');
      expect(resumed.events).toEqual([bookmark('e.0', told), bookmark('e.0', told)]);
    }
  });

  test('when the server goes away, a last one says when to reconnect, as the transport does: after all queued events', async () => {
    const randoms = [0.25, 0.75, 0.5];
    const hub = new Hub({ epoch: 'e', clock: new FakeClock(), random: () => randoms.shift() ?? expect.unreachable() });
    const [sink, slow, plain] = [join(hub, { allowWatchBookmarks: true }), join(hub, { allowWatchBookmarks: true }), join(hub)];
    hub.tryPublish(added(1));
    await turn();
    slow.stall();
    hub.tryPublish(added(2));
    await turn();
    hub.tryPublish(added(3));
    void hub.shutdown({ retryAfterMs: 8_000 });
    await until(() => sink.ended !== undefined && plain.ended !== undefined);
    expect(slow.ended).toBeUndefined();
    slow.resume();
    await until(() => slow.ended !== undefined);
    const told = [sink, slow].map(({ ended, retryMs, objects, events }) => {
      expect([ended, objects.slice(1, -1)]).toEqual(['goingAway', [1, 2, 3]]);
      expect(events.at(-1)).toEqual(bookmark('e.3', { 'watchmux/retry-after-ms': String(retryMs) }));
      return retryMs;
    });
    // Who has not asked for BOOKMARKs gets none: to it, one would be an event that it does not know.
    expect([plain.ended, plain.objects]).toEqual(['goingAway', [1, 2, 3]]);
    expect([...told, plain.retryMs].sort()).toEqual([2_000, 4_000, 6_000]);
  });

  test('there is no last one when the stream ends for good, or the client was too slow', async () => {
    const hub = new Hub({ epoch: 'e', clock: new FakeClock(), capacity: 1 });
    const [sink, slow] = [join(hub, { allowWatchBookmarks: true }), join(hub, { allowWatchBookmarks: true })];
    slow.stall();
    for (const object of [1, 2, 3]) {
      hub.tryPublish(added(object));
      await turn();
    }
    void hub.shutdown();
    slow.resume();
    await until(() => slow.ended !== undefined && sink.ended !== undefined);
    expect([sink.ended, sink.objects.slice(1)]).toEqual(['complete', [1, 2, 3]]);
    expect([slow.ended, slow.events.map(({ type }) => type)]).toEqual(['expired', ['BOOKMARK', 'ADDED', 'ADDED', 'ERROR']]);
  });

  test('precede an end by timeout, after all queued events', async () => {
    const clock = new FakeClock();
    const hub = new Hub({ epoch: 'e', clock });
    const sink = join(hub, { allowWatchBookmarks: true, timeoutSeconds: 5 });
    const plain = join(hub, { timeoutSeconds: 5 });
    await hub.publish(added(1));
    hub.tryPublish(added(2));
    clock.advance(5_000);
    expect(sink.events).toEqual([
      bookmark('e.0'),
      { ...added(1), resourceVersion: 'e.1' },
      { ...added(2), resourceVersion: 'e.2' },
      bookmark('e.2'),
    ]);
    expect(plain.objects).toEqual([1, 2]);
    expect([sink.ended, plain.ended]).toEqual(['timeout', 'timeout']);
    expect(clock.pending).toBe(0);
    expect(hub.stats().total).toMatchObject({ cut: 0 });
  });

  /** A client without room that has got 1, has 2 in its queue, and whose time was up before the third event. */
  const overdue = async (options: HubOptions<WatchEvent> = {}): Promise<{ sink: FakeSink; clock: FakeClock }> => {
    const clock = new FakeClock();
    const hub = new Hub({ epoch: 'e', clock, ...options });
    const sink = join(hub, { allowWatchBookmarks: true, timeoutSeconds: 1 });
    sink.stall();
    hub.tryPublish(added(1));
    await until(() => sink.events.length === 2);
    hub.tryPublish(added(2));
    clock.advance(1_000);
    hub.tryPublish(added('too late'));
    return { sink, clock };
  };

  test('an end by timeout waits for a client without room, and vouches for nothing unsent', async () => {
    const { sink } = await overdue();
    expect(sink.ended).toBeUndefined();
    sink.resume();
    await until(() => sink.ended !== undefined);
    expect(sink.objects.slice(1, 3)).toEqual([1, 2]);
    expect(sink.ended).toBe('timeout');
    // It ended at 2: a client that resumes from the bookmark must get the third.
    expect(sink.events.at(-1)).toEqual(bookmark('e.2'));
  });

  test('a second end, while a client without room has not got the first, vouches for nothing that came in between', async () => {
    const { sink, clock } = await overdue({ maxConnectionAgeMs: 2_000, random: () => 0.9 });
    clock.advance(1_000);
    sink.resume();
    await until(() => sink.ended !== undefined);
    expect(sink.objects.slice(1, 3)).toEqual([1, 2]);
    expect([sink.ended, sink.events.at(-1)]).toEqual(['timeout', bookmark('e.2')]);
  });

  test('an end by timeout during a snapshot vouches for nothing', async () => {
    const clock = new FakeClock();
    const { snapshot, give, closed } = handFed();
    const hub = hubOf(snapshot, { clock });
    const sink = join(hub, { allowWatchBookmarks: true, timeoutSeconds: 1 });
    give('a');
    await turn();
    clock.advance(1_000);
    expect(sink.ended).toBe('timeout');
    expect(sink.events.filter(({ type }) => type === 'BOOKMARK')).toEqual([]);
    give('b');
    await until(closed);
  });

  test('a timeout longer than timers support never fires', () => {
    const clock = new FakeClock();
    const sink = join(new Hub({ clock }), { timeoutSeconds: 999_999_999 });
    clock.advance(2_147_483_646);
    expect(sink.ended).toBeUndefined();
  });
});
