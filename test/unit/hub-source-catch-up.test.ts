// Clients that are further behind than their hub remembers: it reads for them from the stream.
import { afterEach, describe, expect, test } from 'vitest';
import type { WatchEvent } from '../../src/watch/event.ts';
import { added, connect, FakeSink, turn, until } from './fake-sink.ts';
import { catchUp, endWorlds, publish, versionAt, world, worldOf } from './source-world.ts';

afterEach(endWorlds);

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
