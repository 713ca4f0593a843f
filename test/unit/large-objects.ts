import { expect, onTestFinished } from 'vitest';
import { type KubernetesObject, versionOf } from '../../src/cache/object.ts';
import { Cacher, type Storage, type StorageEvent } from '../../src/storage/index.ts';
import type { Watch } from '../../src/watch/watch.ts';

/** What is read and written at a stretch, in characters: a piece of 32 KiB, and what does not fit it any more. */
export const STRETCH = 100_000;

/** Counts what the host reads and writes as JSON: the longest text, and all of them. */
export function countingJson(): { longest: number; total: number } {
  const { parse, stringify } = JSON;
  const counts = { longest: 0, total: 0 };
  const counted = <R>(text: string | undefined, result: R): R => {
    const { length } = text ?? '';
    counts.longest = Math.max(counts.longest, length);
    counts.total += length;
    return result;
  };
  JSON.parse = (text: string, ...rest: []) => counted(text, parse(text, ...rest));
  JSON.stringify = (...given: [unknown]) => {
    const text = stringify(...given);
    return counted(text, text);
  };
  onTestFinished(() => {
    Object.assign(JSON, { parse, stringify });
  });
  return counts;
}

export interface Big extends KubernetesObject {
  readonly turn: number;
  readonly list: readonly object[];
}

/** An object of 2 MB. */
export const big = (turn: number, more: object = {}): Big => ({
  ...{ metadata: { name: 'big' }, turn, ...more },
  list: Array.from({ length: 60_000 }, (_, n) => ({ n, pad: 'x'.repeat(16) })),
});

async function taken(watch: Watch<StorageEvent<Big>>, count: number): Promise<string[]> {
  const seen: string[] = [];
  for await (const event of watch) {
    if (event.type === 'ERROR' || event.type === 'BOOKMARK') seen.push(event.type);
    else {
      const { object, previous } = event as { object: Big; previous?: Big };
      seen.push(`${event.type} ${previous?.turn ?? ''}->${object.turn}:${object.list.length}@${versionOf(object)}`);
    }
    if (seen.length === count) break;
  }
  return seen;
}

/** Writes, reads, watches and follows a large object. `other` is another storage over the same data, which has made none of it. */
export async function useLarge(storage: Storage<Big>, other: Storage<Big>): Promise<{ longest: number; total: number }> {
  const counts = countingJson();
  const { resourceVersion: begun } = await storage.list();
  const one = versionOf(await storage.create('big', big(1)));
  const cacher = new Cacher<Big>(other);
  onTestFinished(() => cacher.close());
  await cacher.ready();
  const watches = await Promise.all([
    other.watch({ resourceVersion: begun }),
    other.watch(),
    other.watch({ fieldSelector: 'metadata.name=big' }),
    storage.watch({ resourceVersion: one }),
    cacher.watch({ resourceVersion: one }),
  ]);
  const two = versionOf(await storage.update('big', (current) => ({ ...current, turn: 2 })));
  expect(versionOf(await storage.update('big', (current) => ({ ...current })))).toBe(two);
  expect(await storage.create('big', big(3)).catch((error) => error.status?.code)).toBe(409);
  const read = [await other.get('big'), (await other.list()).items[0], await cacher.get('big', { resourceVersion: two })];
  expect(read.map((object) => [object?.turn, object?.list.length, object && versionOf(object)])).toEqual(
    Array(3).fill([2, 60_000, two]),
  );
  // What the storage knows is too old: it is told what is there.
  const cached = { ...big(0), metadata: { name: 'big', resourceVersion: one } };
  const three = versionOf(await storage.update('big', (current) => ({ ...current, turn: 3 }), { cached }));
  const four = versionOf(await other.delete('big'));
  const before = [`MODIFIED 1->2:60000@${two}`, `MODIFIED 2->3:60000@${three}`, `DELETED 3->3:60000@${four}`];
  const all = [`ADDED ->1:60000@${one}`, ...before];
  expect(await Promise.all(watches.map((watch, at) => taken(watch, at < 3 ? 4 : 3)))).toEqual([all, all, all, before, before]);
  return { ...counts };
}
