// A large object that is decoded, or written again, for those who watch: others have their turns meanwhile. The control is the same in one go.
// Processor time: what the machine does beside does not count.
import { describe, expect, test } from 'vitest';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { BackedStorage, type Backend, MemoryStorage } from '../../src/storage/index.ts';
import { StoredEntry } from '../../src/storage/stored-entry.ts';
import { dropEncoded } from '../../src/storage/values.ts';
import { closers } from '../closing.ts';
import { ORDERS_PATH, rig } from '../unit/apiserver-rig.ts';
import { turn } from '../unit/support.ts';

const closing = closers();

/** 3 MB of objects that have nothing in common, which takes long to read and to write. */
const list = Array.from({ length: 150_000 }, (_, n) => ({ [`k${n}`]: [n] }));
const text = JSON.stringify({ metadata: { name: 'big' }, list: list.slice(0, 60_000) });
const value = new TextEncoder().encode(text);
const ROUNDS = 15;

/** A change, as a backend tells it that has bytes. */
class Told extends StoredEntry<KubernetesObject> {
  readonly key: string = 'big';
  readonly revision: string;
  readonly type: string = 'ADDED';
  protected readonly value: Uint8Array = value;

  constructor(revision: string) {
    super();
    this.revision = revision;
  }
}

/** What the process has worked so far, in ms. */
const workedMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};

/** The longest work between two turns of the event loop: of some rounds the least, as a collection of garbage is not there each time. */
async function stretchMs(round: (at: number) => Promise<unknown>): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let at = 0; at < ROUNDS; at++) {
    let [longest, isOver, last] = [0, false, workedMs()];
    const look = (): void => {
      const now = workedMs();
      longest = Math.max(longest, now - last);
      last = now;
      if (!isOver) setImmediate(look);
    };
    setImmediate(look);
    await round(at);
    isOver = true;
    look();
    least = Math.min(least, longest);
  }
  return least;
}

function leastMs(run: () => unknown): number {
  let least = Number.POSITIVE_INFINITY;
  for (let at = 0; at < ROUNDS; at++) {
    const begun = workedMs();
    run();
    least = Math.min(least, workedMs() - begun);
  }
  return least;
}

describe('a stretch is less than half of what it takes at once', () => {
  test('for a watch of a storage without a cache', async () => {
    let tell = (_: number): void => {};
    const changes = {
      ...{ open: async () => {}, poll: () => undefined, requestProgress: () => {}, close: () => tell(0) },
      next: () =>
        new Promise((resolve) => {
          tell = (revision) => resolve(revision === 0 ? undefined : { changes: [new Told(`${revision}`)] });
        }),
    };
    const storage = new BackedStorage({ changesAfter: () => changes, close: async () => {} } as unknown as Backend);
    closing.push(() => storage.close());
    const watch = await storage.watch({ resourceVersion: '1' });
    const controlMs = leastMs(() => JSON.parse(text));
    const ms = await stretchMs(async (at) => {
      const read = watch.next();
      await turn();
      tell(at + 2);
      expect((await read).value?.type).toBe('ADDED');
    });
    expect(ms, `${controlMs} ms at once`).toBeLessThan(controlMs / 2);
  });

  test('for three watches of an object whose JSON memory has let go', async () => {
    // Four times of what may be stored by default: the pause is the same, so it differs the more from all at once.
    const storage = new MemoryStorage({ maxObjectBytes: 16 * 2 ** 20 });
    const { server } = rig({ storage });
    closing.push(() => server.shutdown());
    const metadata = { name: 'big', namespace: 'default' };
    const big = { apiVersion: 'example.com/v1', kind: 'Order', metadata, list: [list, list, list, list] };
    const stored = await storage.create('example.com/orders/default/big', big);
    const controlMs = leastMs(() => JSON.stringify(stored));
    const ms = await stretchMs(async () => {
      dropEncoded(stored);
      const abort = new AbortController();
      const begun = Array.from({ length: 3 }, async () => {
        const { body } = await server.fetch(new Request(`http://127.0.0.1${ORDERS_PATH}?watch=1`, { signal: abort.signal }));
        const { value: bytes } = await (body as ReadableStream<Uint8Array>).getReader().read();
        expect(bytes?.length).toBeGreaterThan(0);
      });
      await Promise.all(begun);
      abort.abort();
    });
    expect(ms, `${controlMs} ms at once`).toBeLessThan(controlMs / 2);
  });
});
