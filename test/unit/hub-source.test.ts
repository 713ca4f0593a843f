// A hub whose events come from a stream: versions, windows, catching up, resets.
import { afterEach, describe, expect, test } from 'vitest';
import { Hub, type HubOptions } from '../../src/bridge/hub/hub.ts';
import { FakeSource } from '../../src/testing/fakes/fake-source.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import type { Watch } from '../../src/watch/watch.ts';

/** Waits as long as the test may take. */
const poll = (value: () => unknown): ReturnType<typeof expect.poll> => expect.poll(value, { timeout: 25_000, interval: 5 });

type Numbered = WatchEvent<'MODIFIED', number>;

const hubs: Hub<Numbered>[] = [];
const hubOf = (source: FakeSource, options: HubOptions<Numbered> = {}): Hub<Numbered> => {
  const hub = new Hub<Numbered>({ source, random: () => 0, ...options });
  hubs.push(hub);
  return hub;
};
afterEach(async () => {
  for (const hub of hubs.splice(0)) await hub.shutdown();
});

const numbered = (n: number): Numbered => ({ type: 'MODIFIED', object: n });
const publish = async (hub: Hub<Numbered>, from: number, to: number): Promise<void> => {
  for (let n = from; n <= to; n++) await hub.publish(numbered(n));
};
/** Reads so many events. An ERROR is its code. */
async function take(watch: Watch<WatchEvent>, count: number): Promise<unknown[]> {
  const got: unknown[] = [];
  while (got.length < count) {
    const { done, value } = await watch.next();
    if (done === true) break;
    got.push(value.type === 'ERROR' ? (value.object as { code: number }).code : value.object);
  }
  return got;
}
const versionsOf = async (watch: Watch<WatchEvent>, count: number): Promise<string[]> => {
  const versions: string[] = [];
  for (let i = 0; i < count; i++)
    versions.push(((await watch.next()).value as unknown as { resourceVersion: string }).resourceVersion);
  return versions;
};
const following = (hub: Hub<Numbered>): Promise<void> => poll(() => hub.stats().source?.phase).toBe('following') as never;

describe('hubs on one stream', () => {
  test('each has every event, in one order, with the same versions', async () => {
    const source = new FakeSource();
    const [a, b] = [hubOf(source), hubOf(source)] as [Hub<Numbered>, Hub<Numbered>];
    await following(a);
    await following(b);
    const [one, two] = [a.watch(), b.watch()];
    await Promise.all([publish(a, 1, 3), publish(b, 11, 13)]);
    const [first, second] = [await versionsOf(one, 6), await versionsOf(two, 6)];
    expect(first).toEqual(second);
    expect(first.map((version) => version.split('.')[1])).toEqual(['1', '2', '3', '4', '5', '6']);
    expect(a.version).toBe(first.at(-1));
    expect(a.stats()).toMatchObject({ accepted: 6, source: { phase: 'following', resets: 0, skipped: 0 } });
  });

  test('the last event, removed from the stream, is not waited for by a hub that comes later', async () => {
    const source = new FakeSource();
    const a = hubOf(source);
    await following(a);
    const [, , third] = await Promise.all([publish(a, 1, 3), versionsOf(a.watch(), 3)]).then(([, versions]) => versions);
    source.remove(3);
    const b = hubOf(source, { replayItems: 1 });
    await following(b);
    expect(await take(b.watch({ after: third as string }), 2)).toEqual([410]);
  });

  test('a watch continues at another hub, also before what that one keeps', async () => {
    const source = new FakeSource();
    const a = hubOf(source);
    await following(a);
    const watch = a.watch();
    await publish(a, 1, 20);
    const versions = await versionsOf(watch, 20);
    const b = hubOf(source, { replayItems: 3 });
    for (const from of [1, 5, 16, 17, 18, 20]) {
      const rest = b.watch({ after: versions[from - 1] });
      await b.publish(numbered(100));
      expect(await take(rest, 20 - from + 1)).toEqual([...Array.from({ length: 20 - from }, (_, i) => from + 1 + i), 100]);
      await rest.return();
      // The next round begins with a stream that ends in 20 again.
      source.lose(1);
      await poll(() => b.stats().source?.resets).toBeGreaterThan(0);
      await following(b);
    }
  });

  test('what the stream no longer holds is a 410', async () => {
    const source = new FakeSource();
    const a = hubOf(source, { replayItems: 0 });
    await following(a);
    const watch = a.watch();
    await publish(a, 1, 10);
    const versions = await versionsOf(watch, 10);
    source.trim(5);
    expect(await take(a.watch({ after: versions[4] }), 2)).toEqual([410]);
    expect(await take(a.watch({ after: versions[5] }), 4)).toEqual([7, 8, 9, 10]);
    expect(await take(a.watch({ after: 'fake9~1.5' }), 2)).toEqual([410]);
    expect(await take(a.watch({ after: 'plain.5' }), 2)).toEqual([410]);
  });

  test('after a loss, an event that got the sequence of another is not taken for it', async () => {
    const source = new FakeSource();
    const a = hubOf(source);
    await following(a);
    const watch = a.watch();
    await publish(a, 1, 5);
    const versions = await versionsOf(watch, 5);
    await a.shutdown();
    source.lose(2);
    source.append(JSON.stringify(numbered(44)));
    source.append(JSON.stringify(numbered(55)));
    source.append(JSON.stringify(numbered(66)));
    // Nobody who has seen the loss is left.
    const b = hubOf(source);
    expect(await take(b.watch({ after: versions[4] }), 2)).toEqual([410]);
    expect(await take(b.watch({ after: versions[2] }), 3)).toEqual([44, 55, 66]);
  });
});
