// What a watch of a MemoryStorage holds, and what is left of it at its end.
import { describe, expect, test } from 'vitest';
import type { KubernetesObject, ListWatchOptions } from '../../src/cache/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { predicateOf } from '../../src/storage/requests.ts';
import { fate, turn } from './support.ts';

interface Thing extends KubernetesObject {
  readonly n?: number;
}

const put = (storage: Pick<MemoryStorage<Thing>, 'update'>, key: string, n: number = 0): Promise<Thing> =>
  storage.update(key, () => ({ metadata: { name: key, labels: { even: `${n % 2 === 0}` } }, n }), { createIfMissing: true });

async function filled(count: number): Promise<MemoryStorage<Thing>> {
  const storage = new MemoryStorage<Thing>();
  for (let n = 0; n < count; n++) await put(storage, `k${n}`, n);
  return storage;
}

describe('queued', () => {
  test.each([
    ['the state', {}, 4],
    ['the state and its BOOKMARK', { sendInitialEvents: true }, 5],
    ['the changes behind a version', { resourceVersion: '3' }, 2],
    ['what a selector selects of the state', { labelSelector: 'even=true' }, 2],
    ['what a selector selects of the changes', { labelSelector: 'even=true', resourceVersion: '1' }, 2],
  ] as [string, ListWatchOptions, number][])('counts %s', async (_name, options, count) => {
    const storage = await filled(4);
    const watch = await storage.watch(options);
    expect(watch.queued).toBe(count);
    for (let left = count - 1; left >= 0; left--) {
      expect(watch.tryNext()).toBeDefined();
      expect(watch.queued).toBe(left);
    }
    expect([watch.tryNext(), watch.queued, watch.dropped]).toEqual([undefined, 0, 0]);
    await put(storage, 'k9', 8);
    expect(watch.queued).toBe(1);
  });

  test('counts a BOOKMARK that is owed, once', async () => {
    const storage = await filled(1);
    const watch = await storage.watch({ resourceVersion: '2', allowWatchBookmarks: true });
    const other = await storage.watch({ resourceVersion: '2' });
    await storage.requestProgress();
    await storage.requestProgress();
    expect([watch.queued, other.queued]).toEqual([1, 0]);
    expect(watch.tryNext()).toEqual({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '2' } } });
    expect([watch.queued, watch.tryNext()]).toEqual([0, undefined]);
  });

  test('counts events that enter and leave a selection', async () => {
    const storage = await filled(2);
    const watch = await storage.watch({ labelSelector: 'even=true', resourceVersion: '3' });
    await put(storage, 'k0', 1);
    await put(storage, 'k1', 3);
    await put(storage, 'k1', 4);
    await put(storage, 'k1', 6);
    expect(watch.queued).toBe(3);
    const seen = [watch.tryNext(), watch.tryNext(), watch.tryNext()];
    expect(seen.map((event) => event?.type)).toEqual(['DELETED', 'ADDED', 'MODIFIED']);
  });

  test('is nothing for a watch that the history has left behind, or that is over', async () => {
    const storage = await filled(3);
    const [late, over] = [await storage.watch({ resourceVersion: '1' }), await storage.watch({ resourceVersion: '1' })];
    await over.return();
    expect([over.queued, over.dropped]).toEqual([0, 3]);
    storage.compact();
    expect([late.queued, late.stopped]).toEqual([0, false]);
    expect(late.tryNext()?.type).toBe('ERROR');
    expect([late.queued, late.stopped, late.tryNext()]).toEqual([0, true, undefined]);
  });
});

describe('the state', () => {
  test('of any length comes in the order of keys, as of one version, whatever is written meanwhile', async () => {
    for (const count of [255, 256, 257, 600]) {
      const storage = await filled(count);
      const watch = await storage.watch({ sendInitialEvents: true });
      const names: string[] = [];
      for (let event = watch.tryNext(); event?.type === 'ADDED'; event = watch.tryNext()) {
        names.push((event.object as Thing).metadata?.name ?? '');
        if (names.length === 10) {
          await storage.delete('k1');
          await put(storage, 'zzz');
        }
        if (names.length === count) expect(watch.queued).toBe(3);
      }
      expect(names).toEqual([...Array(count).keys()].map((n) => `k${n}`).sort());
      expect([watch.tryNext()?.type, watch.tryNext()?.type, watch.tryNext()]).toEqual(['DELETED', 'ADDED', undefined]);
    }
  });

  test('its end has the version of the state, and the annotation', async () => {
    const storage = await filled(1);
    const watch = await storage.watch({ sendInitialEvents: true });
    await put(storage, 'k5');
    watch.tryNext();
    expect(watch.tryNext()).toEqual({
      type: 'BOOKMARK',
      object: { metadata: { resourceVersion: '2', annotations: { 'k8s.io/initial-events-end': 'true' } } },
    });
    expect(watch.tryNext()?.type).toBe('ADDED');
  });

  test('of a scope has nothing beside it', async () => {
    const storage = new MemoryStorage<Thing>();
    for (const key of ['a', 'x/a', 'x/b', 'x0', 'y/a']) await storage.create(key, { metadata: { name: key } });
    const watch = await storage.scope<Thing>('x/').watch();
    expect(watch.queued).toBe(2);
    const next = (): string | undefined => (watch.tryNext()?.object as Thing | undefined)?.metadata?.name;
    expect([next(), next()]).toEqual(['x/a', 'x/b']);
    await storage.create('x0/a', { metadata: { name: 'no' } });
    await storage.create('x/c', { metadata: { name: 'yes' } });
    expect(next()).toBe('yes');
  });
});

describe('a watch that is stopped', () => {
  test('delivers what was visible by then, and nothing later; no BOOKMARK is owed any more', async () => {
    const storage = await filled(2);
    const watch = await storage.watch({ resourceVersion: '1', allowWatchBookmarks: true });
    await storage.requestProgress();
    watch.stop();
    await put(storage, 'k3');
    await storage.requestProgress();
    expect([watch.stopped, watch.queued, storage.stats.watches]).toEqual([true, 2, 0]);
    expect([(await watch.next()).value?.type, (await watch.next()).value?.type, (await watch.next()).done]).toEqual([
      'ADDED',
      'ADDED',
      true,
    ]);
    watch.stop();
    expect(watch.dropped).toBe(0);
  });

  test('and returned drops what is left, and leaves once', async () => {
    const storage = await filled(2);
    const watch = await storage.watch();
    watch.stop();
    await watch.return();
    await watch.return();
    expect([watch.dropped, watch.queued, watch.tryNext(), storage.stats.watches]).toEqual([2, 0, undefined, 0]);
  });

  test('ends a read that waits, at once', async () => {
    const storage = await filled(0);
    const watch = await storage.watch();
    const read = fate(watch.next());
    await turn();
    expect(read.state).toBe('pending');
    watch.stop();
    await turn();
    expect(read.value).toEqual({ done: true, value: undefined });
  });
});

test('watches of different selections get one event for what enters all of them, with nothing before it', async () => {
  const storage = await filled(0);
  const options = { resourceVersion: '1' };
  const watches = [
    await storage.watch({ ...options, labelSelector: 'even=true' }),
    await storage.watch({ ...options, fieldSelector: 'metadata.name=k0' }),
    await storage.watch(options),
  ];
  const object = await put(storage, 'k0');
  const [one, other, all] = watches.map((watch) => watch.tryNext());
  expect(one).toStrictEqual({ type: 'ADDED', object });
  expect([other === one, all === one]).toEqual([true, true]);
});

test('a version that has not been given is told with the newest there is', async () => {
  const storage = await filled(2);
  const message = expect.stringContaining('410 Expired: resource version 9 was not issued by this storage (current: 3)');
  for (const late of [storage.get('k0', { resourceVersion: '9' }), storage.list({ resourceVersion: '9' })])
    await expect(late).rejects.toMatchObject({ message });
  await expect(storage.watch({ resourceVersion: '9' })).rejects.toMatchObject({ message });
});

test('a function of fields that throws selects nothing, and is told to onError, which may throw as well', async () => {
  const errors: unknown[] = [];
  const storage = new MemoryStorage<Thing>({
    fields: {
      n: ({ n }) => {
        if (n === 1) throw new Error('field');
        return `${n}`;
      },
    },
    onError: (error) => {
      errors.push(error);
      throw new Error('onError');
    },
  });
  for (let n = 0; n < 3; n++) await put(storage, `k${n}`, n);
  const watch = await storage.watch({ fieldSelector: 'n!=7' });
  const names = (await storage.list({ fieldSelector: 'n!=7' })).items.map(({ metadata }) => metadata?.name);
  expect([names, watch.queued]).toEqual([['k0', 'k2'], 2]);
  expect([watch.tryNext(), watch.tryNext(), watch.tryNext()].map((event) => event?.type)).toEqual(['ADDED', 'ADDED', undefined]);
  // Once for each object, however often it is looked at.
  expect(errors.map(String)).toEqual(['Error: field']);
  const silent = new MemoryStorage<Thing>({
    fields: {
      n: () => {
        throw new Error('field');
      },
    },
  });
  await put(silent, 'a');
  expect((await silent.list({ fieldSelector: 'n=1' })).items).toEqual([]);
});

test('a function of fields that returns a number selects nothing, and is told to onError', async () => {
  const errors: unknown[] = [];
  const options = { fields: { n: ({ n }: Thing) => n as never }, onError: (error: unknown) => errors.push(error) };
  const storage = new MemoryStorage<Thing>(options);
  await put(storage, 'a', 5);
  for (const fieldSelector of ['n=5', 'n=', 'n!=7']) expect((await storage.list({ fieldSelector })).items).toEqual([]);
  const told = { code: 'INVALID_ARGUMENT', message: 'fields["n"]: expected a string, got 5' };
  expect(errors).toEqual([expect.objectContaining(told)]);
  // Storages on a backend report what this throws.
  expect(() => predicateOf({ fieldSelector: 'n=5' }, options.fields).matches({ n: 5 })).toThrow(expect.objectContaining(told));
});

test('a watch whose field compacts the history while it is asked is told 410', async () => {
  const storage: MemoryStorage<Thing> = new MemoryStorage<Thing>({
    fields: {
      n: ({ n }) => {
        if (n === 1) storage.compact();
        return `${n}`;
      },
    },
  });
  for (let n = 0; n < 4; n++) await put(storage, `k${n}`, n);
  const watch = await storage.watch({ fieldSelector: 'n=9', resourceVersion: '1' });
  expect(watch.tryNext()).toMatchObject({ type: 'ERROR', object: { code: 410 } });
  expect([watch.stopped, storage.stats.watches]).toEqual([true, 0]);
});

test('scopes of clients, such as namespaces, keep nothing of their own: they find objects by the indexes of the scope with the fields', async () => {
  let reads = 0;
  const ofColor = ({ color }: KubernetesObject & { color?: string }): string | undefined => {
    reads++;
    return color;
  };
  const orders = new MemoryStorage().scope<KubernetesObject & { color?: string }>('orders/', { fields: { color: ofColor } });
  for (const key of ['a/1', 'a/2', 'b/1', 'b/2', 'b/3']) {
    await orders.create(key, { metadata: { name: key }, color: key.endsWith('1') ? 'red' : 'blue' });
  }
  const red = { fieldSelector: 'color=red' };
  for (const [namespace, names, expected] of [
    ['a/', ['a/1'], 5 + 1],
    ['b/', ['b/1'], 1],
    ['c/', [], 0],
  ] as const) {
    reads = 0;
    const { items } = await orders.scope(namespace).list(red);
    expect([items.map(({ metadata }) => metadata?.name), reads]).toEqual([names, expected]);
  }
});
