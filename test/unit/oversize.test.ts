// What a hub accepts, its clients can take: events and objects that are longer are refused or skipped where they come in.
import { afterEach, describe, expect, test } from 'vitest';
import { Hub } from '../../src/bridge/hub/hub.ts';
import { DEFAULTS } from '../../src/bridge/protocol.ts';
import { added, connect, turn, until } from './fake-sink.ts';
import { hubOf } from './snapshot-source.ts';
import { CountingSource, catchUp, endWorlds, world, worldOf } from './source-world.ts';
import { thrown } from './support.ts';

afterEach(endWorlds);

/** The size of an event of a hub with the epoch `e`. */
const sizeOf = (object: unknown, version: string = 'e.1'): number =>
  new TextEncoder().encode(JSON.stringify({ ...added(object), resourceVersion: version })).length;

const LONG = '\0'.repeat(40);
const LIMIT = sizeOf(LONG) - 1;
const refusal = (size: number, limit: number = LIMIT): object => ({
  code: 'FRAME_TOO_LARGE',
  limit,
  message: `the event has ${size} bytes as JSON, more than maxEventBytes (${limit})`,
});

describe('an event that is longer than maxEventBytes', () => {
  test('is refused for its publisher alone, by its text in bytes, and counted; it uses no number', async () => {
    const hub = new Hub({ epoch: 'e', maxEventBytes: LIMIT });
    const client = connect(hub);
    // 40 characters, of which JSON makes 240.
    await expect(hub.publish(added(LONG))).rejects.toMatchObject(refusal(LIMIT + 1));
    expect(thrown(() => hub.tryPublish(added(LONG)))).toMatchObject(refusal(LIMIT + 1));
    // 80 characters of two bytes each.
    const umlauts = 'ü'.repeat((LIMIT - sizeOf('')) / 2 + 1);
    await expect(hub.publish(added(umlauts))).rejects.toMatchObject({ code: 'FRAME_TOO_LARGE' });
    await expect(hub.publish(added(''), JSON.stringify(added(LONG)))).rejects.toMatchObject(refusal(LIMIT + 1));
    await hub.publish(added('fits'));
    await turn();
    expect(client.events).toEqual([{ ...added('fits'), resourceVersion: 'e.1' }]);
    expect(hub.stats()).toMatchObject({ accepted: 1, oversize: 4 });
    expect(hub.metrics()).toContain('watchmux_events_oversize_total 4\n');
    await hub.shutdown();
  });

  test('is one byte too long: one that is as long as the limit passes', async () => {
    const hub = new Hub({ epoch: 'e', maxEventBytes: LIMIT + 1 });
    const client = connect(hub);
    await hub.publish(added(LONG));
    await turn();
    expect(client.objects).toEqual([LONG]);
    expect(hub.stats().oversize).toBe(0);
    await hub.shutdown();
  });

  test('by default leaves room for what is added on the way to clients, which take 16 MiB', () => {
    // A longer version, the type of a folded change, the framing.
    expect(DEFAULTS.maxEventBytes).toBeLessThan(16 * 1_048_576 - 1_024);
  });

  test('in a followed watch ends it, and is told', async () => {
    const hub = new Hub({ epoch: 'e', maxEventBytes: LIMIT });
    const client = connect(hub);
    const source = new Hub({ epoch: 's' });
    const followed = hub.follow(source.watch());
    await source.publish(added(LONG));
    await expect(followed).rejects.toMatchObject({ code: 'FRAME_TOO_LARGE' });
    expect(client.events.at(-1)).toMatchObject({ type: 'ERROR', object: { code: 500 } });
    await source.shutdown();
  });
});

describe('an object of a snapshot that is longer than maxEventBytes', () => {
  test('fails the snapshot, which would not be the whole state without it; the observer is told why', async () => {
    const reasons: unknown[] = [];
    const hub = hubOf(() => ['a', LONG, 'b'], { maxEventBytes: LIMIT - 30 });
    hub.observe({ tell: (notice) => void (notice.type === 'cut' && reasons.push(notice.reason, notice.error)) });
    const client = connect(hub);
    await until(() => client.ended !== undefined || client.destroyed);
    expect(client.events.filter(({ type }) => type !== 'ADDED')).toMatchObject([{ type: 'ERROR', object: { code: 500 } }]);
    expect(client.objects).not.toContain(LONG);
    expect(reasons).toMatchObject([
      'failed',
      {
        code: 'FRAME_TOO_LARGE',
        message: expect.stringMatching(/^an object of the snapshot has \d+ bytes as JSON, more than maxEventBytes/),
      },
    ]);
    expect(hub.stats().total.cuts).toEqual({ failed: 1 });
    await hub.shutdown();
  });

  test('does not matter to a client that may not see it', async () => {
    const hub = hubOf(() => ['a', LONG], { maxEventBytes: LIMIT - 30 });
    const client = connect(hub, undefined, { options: { filter: ({ object }) => object !== LONG } });
    await until(() => client.events.length === 2);
    expect(client.events).toMatchObject([added('a'), { type: 'BOOKMARK' }]);
    await hub.shutdown();
  });
});

describe('a hub with a source', () => {
  const limit = 1_000;
  const long = 'x'.repeat(limit);

  test('writes no longer event to the stream', async () => {
    const all = await world(0, { maxEventBytes: limit });
    await expect(all.hub.publish(added(long))).rejects.toMatchObject({ code: 'FRAME_TOO_LARGE', limit });
    expect(all.source.events).toEqual([]);
    // What the stream takes, the hub takes back: its version needs room as well.
    for (let length = limit - 200; length < limit; length++) await all.hub.publish(added('x'.repeat(length))).catch(() => {});
    await until(() => all.hub.stats().accepted === all.source.events.length);
    expect(all.source.events.length).toBeGreaterThan(20);
    expect(all.hub.stats().source).toMatchObject({ phase: 'following', skipped: 0 });
  });

  test('skips one that others have written, counts it, and says so; the rest comes without a gap', async () => {
    const source = new CountingSource();
    for (const object of ['a', long, 'b']) source.append(JSON.stringify(added(object)));
    const all = worldOf(source, { maxEventBytes: limit, replay: 10 });
    await until(() => all.hub.stats().source?.phase === 'following');
    source.append(JSON.stringify(added(long)));
    source.append(JSON.stringify(added('c')));
    await until(() => all.hub.stats().accepted === 3);
    expect(all.hub.stats()).toMatchObject({
      oversize: 2,
      source: { phase: 'following', resets: 0, skipped: 2, error: { code: 'FRAME_TOO_LARGE', limit } },
    });
    const client = connect(all.hub);
    await until(() => client.objects.length === 3);
    expect(client.objects).toEqual(['a', 'b', 'c']);
  });

  test.each([
    ['a mark that is too long', 'm'.repeat(17)],
    ['a mark of other characters', 'A-1'],
    ['no mark', ''],
  ])('gives no version that it would refuse itself: the source with %s is told', async (_name, mark) => {
    const source = new CountingSource();
    source.append(JSON.stringify(added('a')));
    source.events[0] = { ...(source.events[0] as (typeof source.events)[0]), mark };
    const all = worldOf(source);
    await until(() => all.hub.stats().source?.error !== undefined);
    expect(all.hub.stats()).toMatchObject({
      accepted: 0,
      source: { error: { code: 'INVALID_ARGUMENT', message: expect.stringContaining(`${source.epoch}~${mark}.1`) } },
    });
  });

  test('also skips it for a client that is brought up from the stream', async () => {
    const source = new CountingSource();
    for (const object of ['a', long, 'b', 'c']) source.append(JSON.stringify(added(object)));
    const all = worldOf(source, { maxEventBytes: limit, replayItems: 1 });
    await until(() => all.hub.stats().source?.phase === 'following');
    const client = await catchUp(all, 1);
    await until(() => client.objects.length === 2);
    expect(client.objects).toEqual(['b', 'c']);
  });
});
