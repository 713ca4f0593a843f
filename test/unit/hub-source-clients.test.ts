// The clients of a hub whose events come from a stream: where they start, catch up, and hear that the stream was replaced.
import { afterEach, describe, expect, test } from 'vitest';
import { Envelope } from '../../src/bridge/events/envelope.ts';
import { LEAVING, NOT_READY } from '../../src/bridge/hub/admission/refusals.ts';
import { coreOf, Hub, type HubOptions } from '../../src/bridge/hub/hub.ts';
import type { Client } from '../../src/bridge/hub/hub-core.ts';
import type { CatchUp } from '../../src/bridge/hub/source/past-event.ts';
import { toSourceVersion } from '../../src/bridge/hub/source/source.ts';
import type { Start } from '../../src/bridge/hub/start.ts';
import type { HubNotice } from '../../src/bridge/hub/tally.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { FakeSource } from '../../src/testing/fakes/fake-source.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { added, connect, FakeSink, turn, until } from './fake-sink.ts';
import { handFed } from './snapshot-source.ts';
import { fate } from './support.ts';

const hubs: Hub[] = [];
afterEach(async () => {
  for (const hub of hubs.splice(0)) await hub.shutdown({ signal: AbortSignal.abort() });
});

interface World {
  readonly source: FakeSource;
  readonly clock: FakeClock;
  readonly hub: Hub;
  readonly notices: HubNotice[];
}

/** A hub that follows a stream with so many events. */
async function world(count: number = 0, options: HubOptions = {}): Promise<World> {
  const [source, clock, notices]: [FakeSource, FakeClock, HubNotice[]] = [new FakeSource(), new FakeClock(), []];
  for (let i = 1; i <= count; i++) source.append(JSON.stringify(added(i)));
  const hub = new Hub({ source, clock, random: () => 0.5, onNotice: (notice) => notices.push(notice), ...options });
  hubs.push(hub);
  await until(() => hub.stats().source?.phase === 'following');
  return { source, clock, hub, notices };
}

/** Publishes numbers, and waits until the hub has distributed them. */
async function publish({ hub }: World, from: number, to: number): Promise<void> {
  const end = hub.stats().accepted + to - from + 1;
  for (let i = from; i <= to; i++) await hub.publish(added(i));
  await until(() => hub.stats().accepted === end);
  await turn();
}

/** Waits until the hub has noticed that its stream cannot be continued. */
async function reset({ hub, clock }: World): Promise<void> {
  await until(() => {
    clock.advance(2_000);
    return (hub.stats().source?.resets ?? 0) > 0;
  });
}

const versionAt = ({ source }: World, sequence: number): string => {
  const { mark } = source.events[sequence - 1] as { mark: string };
  return toSourceVersion({ epoch: source.epoch, sequence, mark });
};

/** Connects a client as transports do when its version is not kept. */
async function catchUp(
  all: World,
  sequence: number,
  client: Partial<Client> = {},
  sink: FakeSink = new FakeSink(),
): Promise<FakeSink> {
  const core = coreOf(all.hub);
  const asked = { resourceVersion: versionAt(all, sequence), ...client.asked };
  expect(core.mustLocate(asked)).toBe(true);
  const found = (await core.locate(asked, new AbortController().signal)) as CatchUp;
  return connect(all.hub, sink, { asked, start: core.start(asked, { catchUp: found }) as Start, ...client });
}

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

describe('a client that is further behind than the hub remembers', () => {
  test('gets what it missed from the stream, then live events, and its numbers say so', async () => {
    const all = await world(9, { replayItems: 2 });
    const opened: unknown[] = [];
    class Asking extends FakeSink {
      override opened(session: never): void {
        super.opened(session);
        opened.push(this.session?.stats(), this.session?.isCatchingUp, this.session?.upToDate);
      }
    }
    const sink = await catchUp(all, 3, {}, new Asking());
    expect(opened).toEqual([expect.objectContaining({ resumed: true, delivered: 0, lag: 6 }), true, false]);
    await until(() => sink.events.length === 6);
    await publish(all, 10, 11);
    expect(sink.objects).toEqual([4, 5, 6, 7, 8, 9, 10, 11]);
    expect(sink.session).toMatchObject({ isCatchingUp: false, upToDate: true });
    expect(sink.session?.stats()).toMatchObject({ delivered: 8, queued: 0, lag: 0, dropped: 0 });
    expect(all.notices).toMatchObject([{ type: 'open' }, { type: 'resume', missed: 6 }]);
  });

  test('is brought up page by page, though nothing is published meanwhile', async () => {
    const all = await world(3_000, { replayItems: 2, maxCatchUpItems: 5_000 });
    const sink = await catchUp(all, 1);
    await until(() => sink.events.length === 2_999);
    expect(sink.objects).toEqual(Array.from({ length: 2_999 }, (_, i) => i + 2));
  });

  test('gets the live events of its topics, and no others', async () => {
    const topicsOf = ({ object }: WatchEvent): string => ((object as number) % 2 === 0 ? 'even' : 'odd');
    const all = await world(0, { replayItems: 2, topicsOf });
    await publish(all, 1, 9);
    const sink = await catchUp(all, 3, { options: { topics: ['even'] } });
    await until(() => sink.session?.upToDate === true);
    await publish(all, 10, 13);
    expect(sink.objects).toEqual([4, 6, 8, 10, 12]);
  });

  test('over SSE, is told the version that it has come with', async () => {
    const all = await world(9, { replayItems: 2 });
    const sink = await catchUp(all, 3, { transport: 'sse' });
    expect(sink.session?.version).toBe(versionAt(all, 3));
    const now = connect(all.hub, undefined, { transport: 'sse' });
    expect(now.session.version).toBe(versionAt(all, 9));
  });

  test('has no BOOKMARK before it has come to the live events, also at an end', async () => {
    const all = await world(9, { replayItems: 2 });
    const asked = { allowWatchBookmarks: true };
    const [stopped, leaving] = [new FakeSink(), new FakeSink()];
    for (const sink of [stopped, leaving]) {
      sink.stall();
      await catchUp(all, 3, { asked: { ...asked, resourceVersion: versionAt(all, 3) } }, sink);
      expect(sink.session?.isCatchingUp).toBe(true);
    }
    stopped.session?.stop('timeout');
    stopped.resume();
    await turn();
    expect(stopped.ended).toBe('timeout');
    expect(stopped.events.map(({ type }) => type)).not.toContain('BOOKMARK');
    const over = all.hub.shutdown();
    leaving.resume();
    await over;
    expect([leaving.ended, leaving.retryMs]).toEqual(['goingAway', 500]);
    expect(leaving.events.map(({ type }) => type)).not.toContain('BOOKMARK');
  });
});

describe('a hub with a source', () => {
  test('serves nobody before it has reached the end of the stream, and says why', async () => {
    const source = new FakeSource();
    source.stop();
    const notices: HubNotice[] = [];
    const clock = new FakeClock();
    const hub = new Hub({ source, clock, onNotice: (notice) => notices.push(notice) });
    hubs.push(hub);
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
