// Clients that are further behind than their hub remembers: it reads for them from the stream.
import { afterEach, describe, expect, test } from 'vitest';
import type { WatchEvent } from '../../src/watch/event.ts';
import { OVERFLOWS } from '../../src/watch/overflow.ts';
import { added, connect, FakeSink, turn, until } from './fake-sink.ts';
import { catchUp, endWorlds, publish, versionAt, world, worldOf } from './source-world.ts';

afterEach(endWorlds);

const TOO_MUCH = 'too far behind: more than 1000 bytes would have to be read; watch again from a fresh state';
const NO_MORE = 'too far behind: the stream no longer holds the events after it; watch again from a fresh state';
const big = (i: number): WatchEvent => added({ i, filler: 'x'.repeat(200_000) });

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
    expect(opened).toEqual([expect.objectContaining({ resumed: true, delivered: 0, queued: 6, lag: 6 }), true, false]);
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

  test('shares what is read with others, and has nothing read once it is among the live events', async () => {
    const all = await world(600, { replayItems: 2 });
    const sink = await catchUp(all, 1);
    // Its pages are 2 to 256, 257 to 512, and the rest, which grows.
    await publish(all, 601, 602);
    await until(() => sink.events.length === 601);
    expect(all.source.reads).toBe(3);
    const other = await catchUp(all, 200);
    await until(() => other.events.length === 402);
    await publish(all, 603, 603);
    expect([sink.objects.at(-1), other.objects.at(-1)]).toEqual([603, 603]);
    expect(all.source.reads).toBe(4);
  });

  test('gets large events, too, of which a read brings few', async () => {
    const all = await world();
    // Fewer characters than bytes.
    for (let i = 1; i <= 30; i++) await all.hub.publish(added(`${i} ${'\u20ac'.repeat(30_000)}`));
    const late = worldOf(all.source, { replayItems: 2 });
    await late.hub.ready();
    const sink = await catchUp(late, 1);
    await until(() => sink.session?.upToDate === true || sink.ended !== undefined);
    expect(sink.objects.map((text) => Number.parseInt(text as string, 10))).toEqual(Array.from({ length: 29 }, (_, i) => i + 2));
    expect((await catchUp(late, 20)).objects).toHaveLength(10);
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

  test('is among the live events once it has everything, though nothing is published meanwhile', async () => {
    const all = await world(0, { replayItems: 2, topicsOf: () => 'all' });
    await publish(all, 1, 9);
    const sink = await catchUp(all, 3);
    expect(sink.session).toMatchObject({ isCatchingUp: false, upToDate: true });
    const ofTopics = await catchUp(all, 3, { options: { topics: ['all'] } });
    await publish(all, 10, 11);
    expect([sink.objects, ofTopics.objects]).toEqual([
      [4, 5, 6, 7, 8, 9, 10, 11],
      [4, 5, 6, 7, 8, 9, 10, 11],
    ]);
    sink.session?.stop('timeout');
    expect(sink.ended).toBe('timeout');
  });

  test('gets what its filter accepts', async () => {
    const all = await world(9, { replayItems: 2 });
    const sink = await catchUp(all, 3, { options: { filter: ({ object }) => (object as number) % 3 === 0 } });
    await publish(all, 10, 12);
    expect(sink.objects).toEqual([6, 9, 12]);
  });

  test('gets what comes before an event for which its filter throws, and no later one', async () => {
    const failure = new Error('no verdict');
    const all = await world(9, { replayItems: 2, onError: () => {} });
    const filter = ({ object }: WatchEvent): boolean => {
      if (object === 4) throw failure;
      return true;
    };
    const sink = await catchUp(all, 1, { options: { filter } });
    await publish(all, 10, 11);
    expect(sink).toMatchObject({ objects: [2, 3, { code: 500 }], ended: 'failed' });
    expect(all.notices.at(-1)).toMatchObject({ type: 'close', reason: 'failed', error: failure });
  });

  test('gets each event with its own version, with every policy: none vouches for what is still to be read', async () => {
    for (const overflow of OVERFLOWS) {
      const all = await world(600, { replayItems: 2 });
      const filter = ({ object }: WatchEvent): boolean => (object as number) % 7 === 0;
      const sink = await catchUp(all, 3, { options: { overflow, filter } });
      await until(() => sink.session?.upToDate === true);
      expect(sink.versions).toEqual(Array.from({ length: 85 }, (_, i) => versionAt(all, 7 * (i + 1))));
    }
  });

  test('is cut when too many bytes wait for it; those of the past do not count', async () => {
    const all = await world(0, { replayItems: 2, maxQueuedBytes: 250_000 });
    for (let i = 0; i < 4; i++) await all.hub.publish(big(i));
    await until(() => all.hub.stats().accepted === 4);
    const sink = await catchUp(all, 1);
    expect([sink.events.length, sink.session?.queuedBytes]).toEqual([3, 0]);
    sink.stall();
    for (let i = 0; i < 2; i++) await all.hub.publish(big(i));
    await until(() => all.hub.stats().accepted === 6);
    expect(sink.session?.queuedBytes).toBeGreaterThan(200_000);
    await all.hub.publish(big(0));
    await until(() => all.hub.stats().accepted === 7);
    sink.resume();
    await turn();
    expect(sink.objects.at(-1)).toMatchObject({ message: expect.stringMatching(/^too slow: 2 events were lost/) });
  });

  test('has a limit for what is read for it', async () => {
    const all = await world(600, { replayItems: 2, maxCatchUpBytes: 1_000 });
    const sink = await catchUp(all, 1);
    expect(sink.ended).toBe('expired');
    expect(sink.events).toHaveLength(256);
    expect(sink.events.at(-1)).toMatchObject({ type: 'ERROR', object: { code: 410, reason: 'Expired', message: TOO_MUCH } });
  });

  test('does not get ahead of a hub that the stream keeps waiting', async () => {
    const all = await world(9, { replayItems: 2 });
    all.source.hold();
    for (let i = 10; i <= 12; i++) all.source.append(JSON.stringify(added(i)));
    const sink = await catchUp(all, 3);
    await until(() => sink.session?.upToDate === true || sink.ended !== undefined);
    expect(sink.objects).toEqual([4, 5, 6, 7, 8, 9]);
    all.source.release();
    await until(() => sink.events.length === 9);
    expect(sink.objects).toEqual([4, 5, 6, 7, 8, 9, 10, 11, 12]);
  });

  test.each([
    ['all', 600],
    ['the next', 300],
  ])('gets a 410 when the stream loses %s of what it has not got yet', async (_, count) => {
    const all = await world(600, { replayItems: 2 });
    const sink = new FakeSink();
    sink.stall();
    await catchUp(all, 1, {}, sink);
    all.source.trim(count);
    sink.resume();
    await until(() => sink.ended !== undefined);
    expect(sink.ended).toBe('expired');
    expect(sink.objects.slice(0, -1)).toEqual(Array.from({ length: 255 }, (_, i) => i + 2));
    expect(sink.objects.at(-1)).toMatchObject({ code: 410, message: NO_MORE });
  });

  test('is sent away when the stream cannot be reached, and has to come back', async () => {
    const all = await world(600, { replayItems: 2 });
    const sink = new FakeSink();
    sink.stall();
    await catchUp(all, 1, {}, sink);
    expect(sink.session?.stats()).toMatchObject({ delivered: 255, queued: 1 });
    all.source.stop();
    sink.resume();
    await until(() => sink.ended !== undefined);
    expect([sink.ended, sink.events.length]).toEqual(['goingAway', 255]);
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
    expect(stopped.session?.stats().queued).toBe(0);
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
