// The clients of a hub whose events come from a stream: where they start, and hear that the stream was replaced.
import { afterEach, describe, expect, test } from 'vitest';
import { Envelope } from '../../src/bridge/events/envelope.ts';
import { LEAVING, NOT_READY } from '../../src/bridge/hub/admission/refusals.ts';
import { coreOf, Hub } from '../../src/bridge/hub/hub.ts';
import type { Start } from '../../src/bridge/hub/hub-log.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { connect, FakeSink, turn, until } from './fake-sink.ts';
import { handFed } from './snapshot-source.ts';
import { CountingSource, endWorlds, publish, reset, versionAt, world, worldOf } from './source-world.ts';
import { fate } from './support.ts';

afterEach(endWorlds);

/** A connection that has been ended and is not closed yet. */
class Lingering extends FakeSink {
  override end(): void {}
}

const REPLACED = 'the stream was replaced, or has lost events; watch again from a fresh state';
/** Two are more than a slice. */
const big = (i: number): { type: string; object: unknown } => ({ type: 'n', object: { i, filler: 'x'.repeat(200_000) } });

describe('when the stream is replaced', () => {
  test('each client hears it, at once or when it has room, and nothing that it had not got yet', async () => {
    const all = await world();
    const [fast, slow] = [connect(all.hub), connect(all.hub)];
    slow.stall();
    await publish(all, 1, 4);
    expect(slow.objects).toEqual([1]);
    all.source.recreate();
    await reset(all);
    expect(fast.objects.slice(0, -1)).toEqual([1, 2, 3, 4]);
    expect(fast.events.at(-1)).toMatchObject({ type: 'ERROR', object: { code: 410, reason: 'Expired', message: REPLACED } });
    expect(fast.objects.at(-1)).not.toHaveProperty('details');
    expect([fast.ended, slow.ended]).toEqual(['expired', undefined]);
    expect(slow.session.stats()).toMatchObject({ delivered: 1, queued: 0, lag: 0, dropped: 3 });
    slow.resume();
    await turn();
    expect(slow.events).toHaveLength(2);
    expect(slow.objects.at(-1)).toMatchObject({ message: REPLACED });
    expect(slow.ended).toBe('expired');
    expect(all.hub.stats().total.cuts).toEqual({ expired: 2 });
  });

  test('a watch in this process hears it as well, if it has read something', async () => {
    const all = await world();
    const [read, fresh] = [all.hub.watch(), all.hub.watch()];
    await publish(all, 1, 2);
    expect((await read.next()).value).toMatchObject({ object: 1 });
    all.source.recreate();
    await reset(all);
    expect((await read.next()).value).toMatchObject({ type: 'ERROR', object: { code: 410, message: REPLACED } });
    expect((await read.next()).done).toBe(true);
    await fresh.return();
  });

  test('what a client has been told before remains: too slow, or its end', async () => {
    const all = await world(0, { maxQueuedBytes: 10_000 });
    const [slow, ended, left] = [connect(all.hub), connect(all.hub, new Lingering()), connect(all.hub)];
    slow.stall();
    for (let i = 0; i < 3; i++) await all.hub.publish(big(i));
    await until(() => ended.events.length === 3);
    ended.session.stop('timeout');
    left.session.gone();
    left.session.expire('late');
    expect(left.session.queuedBytes).toBe(0);
    all.source.recreate();
    await reset(all);
    slow.resume();
    await turn();
    expect(slow.objects.at(-1)).toMatchObject({ message: expect.stringMatching(/^too slow: 1 events/), details: { missed: 1 } });
    expect(ended.events).toHaveLength(3);
    expect(ended.session.reason).toBe('timeout');
  });

  test('a snapshot is given up at once, also for a client without room', async () => {
    const { snapshot, give, closed } = handFed();
    const all = await world(0, { snapshot });
    const sink = new FakeSink();
    sink.stall();
    connect(all.hub, sink, { start: coreOf(all.hub).start({}) as Start });
    give('x'.repeat(300_000));
    await until(() => sink.writes.length === 1);
    await publish(all, 1, 1);
    all.source.recreate();
    await reset(all);
    await turn();
    expect([closed(), sink.ended]).toEqual([true, undefined]);
    sink.resume();
    await turn();
    expect(sink.events.map(({ type }) => type)).toEqual(['ADDED', 'ERROR']);
  });
});

describe('a hub with a source', () => {
  test('serves nobody before it has reached the end of the stream, and says why', async () => {
    const source = new CountingSource();
    source.stop();
    const { hub, clock, notices } = worldOf(source);
    const core = coreOf(hub);
    expect(core.start({}, { address: 'here' })).toBe(NOT_READY);
    expect(notices).toMatchObject([{ type: 'refused', reason: 'failed', address: 'here' }]);
    expect(core.mustLocate({})).toBe(true);
    const ready = fate(core.ready(new AbortController().signal));
    await turn();
    expect(ready.state).toBe('pending');
    source.start();
    clock.advance(2_000);
    await until(() => ready.state === 'resolved');
    expect(core.start({})).toMatchObject({ resumed: false });
    expect(await core.ready(new AbortController().signal)).toBe(true);
  });

  test('counts the events that it has distributed, and says how it follows', async () => {
    const all = await world(3);
    expect(all.hub.stats()).toMatchObject({ accepted: 3, source: { phase: 'following', resets: 0 } });
    await publish(all, 4, 5);
    expect(all.hub.stats()).toMatchObject({ accepted: 5, version: versionAt(all, 5) });
    expect(new Hub().stats()).not.toHaveProperty('source');
  });

  test('goes away alone: its clients find another one within a second, unless the caller names a time', async () => {
    for (const [options, retryMs] of [
      [{}, 500],
      [{ retryAfterMs: 4_000 }, 2_000],
    ] as const) {
      const all = await world();
      const sink = connect(all.hub);
      await all.hub.shutdown(options);
      expect([sink.ended, sink.retryMs]).toEqual(['goingAway', retryMs]);
      expect(coreOf(all.hub).start({})).toBe(LEAVING);
    }
  });
});

describe('a hub without a source', () => {
  test('need not ask anybody where a client is', async () => {
    const core = coreOf(new Hub({ epoch: 'e' }));
    expect(core.mustLocate({ resourceVersion: 'x.1' })).toBe(false);
    expect(await core.locate({ resourceVersion: 'x.1' }, new AbortController().signal)).toBeUndefined();
  });

  test('is ready until it closes, for a client that is there', async () => {
    const hub = new Hub();
    const here = new AbortController().signal;
    expect(await coreOf(hub).ready(here)).toBe(true);
    expect(await coreOf(hub).ready(AbortSignal.abort())).toBe(false);
    await hub.shutdown();
    expect(await coreOf(hub).ready(here)).toBe(false);
  });

  test('pauses for a second before something is tried again, or until its caller has gone', async () => {
    const clock = new FakeClock();
    const core = coreOf(new Hub({ clock }));
    const [waits, leaves] = [new AbortController(), new AbortController()];
    const [one, other] = [fate(core.pause(waits.signal)), fate(core.pause(leaves.signal))];
    leaves.abort();
    clock.advance(999);
    await turn();
    expect([one.state, other.state]).toEqual(['pending', 'resolved']);
    clock.advance(1);
    await turn();
    expect(one.state).toBe('resolved');
  });
});

describe('the bytes that wait for a client', () => {
  test('are those of its queue, and of a batch that was read and not written; not those of past events', async () => {
    const hub = new Hub({ epoch: 'e', capacity: 100 });
    const size = new Envelope(big(0), { sequence: 1 }).bytes.length;
    const slow = connect(hub);
    slow.stall();
    for (let i = 0; i < 3; i++) hub.tryPublish(big(i));
    await until(() => slow.writes.length === 1);
    const { delivered, queued } = slow.session.stats();
    expect([delivered + queued, Math.round(slow.session.queuedBytes / size)]).toEqual([3, queued]);
    for (let i = 0; i < 4; i++) await hub.publish(big(i));
    expect(Math.round(slow.session.queuedBytes / size)).toBe(queued + 4);
    const late = new FakeSink();
    late.stall();
    connect(hub, late, { start: coreOf(hub).start({ resourceVersion: 'e.0' }) as Start });
    expect(late.session?.stats().queued).toBeGreaterThan(4);
    expect(late.session?.queuedBytes).toBe(0);
    slow.session.gone();
    expect(slow.session.queuedBytes).toBe(0);
  });
});
