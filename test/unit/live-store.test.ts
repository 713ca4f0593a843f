// The heart of an informer: state and log, without a reflector and without handlers.
import { describe, expect, test } from 'vitest';
import { isDeletedFinalStateUnknown } from '../../src/cache/index.ts';
import { LiveStore, type LogEvent, toObjectEvent } from '../../src/cache/informer/live-store.ts';
import type { IndexerOptions } from '../../src/cache/store/indexer.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { type Pod, pod, shown } from './informer-support.ts';
import { collectedUntil, NO_GC } from './support.ts';

interface Told {
  errors: string[];
  versions: string[];
}

function liveStore(options: IndexerOptions<Pod> = {}): { live: LiveStore<Pod>; told: Told } {
  const told: Told = { errors: [], versions: [] };
  const live: LiveStore<Pod> = new LiveStore<Pod>(options, {
    onRefused: (error, object) => void told.errors.push(`${(error as Error).message.slice(0, 20)}: ${object?.metadata?.name}`),
    onVersion: () => void told.versions.push(live.resourceVersion),
  });
  return { live, told };
}

/** What is in the log, as text: the change, the object, and the object before. */
function read(watch: Watch<LogEvent<Pod>>): string[] {
  const all: string[] = [];
  for (let event = watch.tryNext(); event; event = watch.tryNext()) {
    if (!('key' in event)) all.push(event.type === 'BOOKMARK' && event.object.metadata.annotations ? 'SYNCED' : event.type);
    else {
      const { type, object, previous, finalStateUnknown } = event;
      all.push(`${type} ${previous ? `${shown(previous)}>` : ''}${shown(object)}${finalStateUnknown ? '?' : ''}`);
    }
  }
  return all;
}

describe('a write', () => {
  test('changes the state and publishes one change, in one step', () => {
    const { live } = liveStore();
    const watch = live.join({ overflow: 'disconnect', capacity: 100 });
    live.add(pod('a', 1, '1'));
    expect(watch.queued).toBe(1);
    live.update(pod('a', 2, '2'));
    live.delete(pod('a', 3, '3'));
    live.delete(pod('a', 3, '3')); // FIX11.3: it is not there any more
    expect(live.size).toBe(0);
    expect(live.resourceVersion).toBe('3');
    expect(read(watch)).toEqual(['ADDED a1', 'MODIFIED a1>a2', 'DELETED a2>a3']);
  });

  test('of the same uid and version is no change, and keeps the object', () => {
    const { live } = liveStore({ transform: (one) => ({ ...one }) });
    live.add(pod('a', 1, '1'));
    const stored = live.get('a');
    const watch = live.join({});
    read(watch);
    live.update(pod('a', 1, '1'));
    live.replace([pod('a', 1, '1')], '2');
    expect(live.get('a')).toBe(stored);
    expect(read(watch)).toEqual(['SYNCED']);
    live.update({ ...pod('a', 1, '1'), metadata: { ...pod('a', 1, '1').metadata, uid: 'other' } });
    expect(read(watch)).toEqual(['MODIFIED a1>a1']);
  });

  test('that goes back is of another life of the source: the same uid and version may be another state there', () => {
    const { live } = liveStore();
    live.replace([pod('a', 1, '5'), pod('b', 1, '9')], '10');
    const watch = live.join({});
    read(watch);
    live.replace([pod('a', 2, '5')], '7');
    expect(read(watch)).toEqual(['DELETED b1>b1?', 'MODIFIED a1>a2']);
    expect([live.resourceVersion, live.get('a')?.value]).toEqual(['7', 2]);
    live.replace([pod('a', 3, '5')], '8'); // in this life it is the same
    expect(read(watch)).toEqual([]);
  });

  test.each([
    ['its transform', { transform: (one: Pod) => (one.value === 3 ? (undefined as never) : one) }],
    ['an index', { indexers: { own: ({ value }: Pod) => (value === 3 ? (undefined as never) : ['x']) } }],
  ])(
    'that goes back leaves nothing of the other life, not even where %s refuses an object: it would pass for a newer one',
    (_by, options) => {
      const { live, told } = liveStore(options);
      live.replace([pod('a', 4, '5'), pod('b', 1, '1')], '5');
      const watch = live.join({});
      read(watch);
      live.replace([pod('a', 3, '4'), pod('b', 1, '1')], '4');
      expect(read(watch)).toEqual(['DELETED a4>a4?', 'MODIFIED b1>b1']);
      expect(told.errors).toHaveLength(1);
      live.update(pod('a', 5, '5')); // of this life, with a version that the other one has given, too
      expect(read(watch)).toEqual(['ADDED a5']);
      live.replace([pod('a', 3, '6')], '6'); // in one life, the state before stays
      expect([live.keys(), live.get('a')?.value]).toEqual([['a'], 5]);
    },
  );

  test('without a version is always a change', () => {
    const { live } = liveStore();
    live.add(pod('a', 1));
    const watch = live.join({});
    read(watch);
    live.add(pod('a', 1));
    expect(read(watch)).toEqual(['MODIFIED a1>a1']);
    expect(live.resourceVersion).toBe('');
  });

  test('TestReplaceEvents: a list is one step: deletions first, then what is new or changed, in its order', () => {
    const { live } = liveStore();
    for (const [at, name] of ['a', 'b', 'c', 'd'].entries()) live.add(pod(name, 1, `${at}`));
    const watch = live.join({ overflow: 'disconnect', capacity: 100 });
    read(watch);
    live.replace([pod('e', 1, '9'), pod('c', 2, '8'), pod('b', 1, '1'), pod('e', 2, '7')], '10');
    expect(read(watch)).toEqual(['DELETED a1>a1?', 'DELETED d1>d1?', 'MODIFIED c1>c2', 'ADDED e2', 'SYNCED']);
    expect(live.keys().sort()).toEqual(['b', 'c', 'e']);
    expect(live.resourceVersion).toBe('10');
  });

  test('takes an inferred deletion: the last state is the one that was known', () => {
    const { live } = liveStore();
    live.add(pod('a', 1, '5'));
    const watch = live.join({});
    read(watch);
    const inferred = { type: 'Deleted', key: 'a', object: pod('a', 0, '2'), finalStateUnknown: true } as const;
    expect(isDeletedFinalStateUnknown(inferred)).toBe(true);
    live.delete(inferred);
    expect(read(watch)).toEqual(['DELETED a1>a1?']);
    expect(live.resourceVersion).toBe('5');
  });

  test('a transaction is several writes', () => {
    const { live } = liveStore();
    const watch = live.join({ overflow: 'disconnect', capacity: 9 });
    expect(
      live.transaction([
        { type: 'add', object: pod('a', 1, '1') },
        { type: 'delete', object: pod('a', 1, '2') },
      ]),
    ).toEqual([]);
    expect(read(watch)).toEqual(['ADDED a1', 'DELETED a1>a1']);
  });
});

describe('user code', () => {
  const refuses = (value: number) => (one: Pod) => {
    if (one.value === value) throw new Error('refused');
    return { ...one, value: one.value * 10 };
  };

  test('TestTransformingInformer: transform is called once for each object on its way in, also for the last state', () => {
    const seen: number[] = [];
    const { live } = liveStore({
      transform: (one) => {
        seen.push(one.value);
        return { ...one, value: one.value * 10 };
      },
    });
    const watch = live.join({ overflow: 'disconnect', capacity: 100 });
    live.replace([pod('a', 1, '1'), pod('b', 2, '1')], '1');
    live.update(pod('a', 3, '2'));
    live.delete(pod('b', 4, '3'));
    live.delete(pod('none', 5, '3'));
    expect(seen).toEqual([1, 2, 3, 4]);
    expect(read(watch)).toEqual(['ADDED a10', 'ADDED b20', 'SYNCED', 'MODIFIED a10>a30', 'DELETED b20>b40']);
  });

  test('TestStoreResourceVersion, TestStoreResourceVersionWithNonMetaTransform: the version is that of the source', () => {
    const { live, told } = liveStore({ keyOf: ({ value }) => `${value}`, transform: ({ value }) => ({ value }) as Pod });
    live.replace([pod('a', 1, '1')], '5');
    live.add(pod('b', 2, '6'));
    live.update(pod('b', 2, '7'));
    live.bookmark('8');
    live.delete(pod('b', 2, '9'));
    live.delete({ type: 'Deleted', finalStateUnknown: true, key: '1', object: pod('a', 1, '1') });
    expect(told.versions).toEqual(['5', '6', '7', '8', '9']);
    expect([live.resourceVersion, live.keys()]).toEqual(['9', []]);
  });

  test('that refuses an object leaves everything else as it should be, and is reported', () => {
    const { live, told } = liveStore({ transform: refuses(2), indexers: { value: ({ value }) => [`${value}`] } });
    live.replace([pod('a', 1, '1'), pod('b', 2, '1'), { value: 7 } as Pod, pod('c', 3, '1')], '1');
    expect(live.list().map(shown)).toEqual(['a10', 'c30']);
    live.update(pod('a', 2, '2'));
    expect(live.get('a')?.value).toBe(10); // the last that is known
    expect(live.byIndex('value', '10').map(shown)).toEqual(['a10']);
    live.replace([pod('a', 2, '3')], '3');
    expect(live.list().map(shown)).toEqual(['a10']);
    live.delete(pod('a', 2, '4')); // it is gone, whatever it was
    expect(live.size).toBe(0);
    expect(told.errors).toEqual(['refused: b', 'object.metadata.name: undefined', 'refused: a', 'refused: a', 'refused: a']);
    expect(live.resourceVersion).toBe('4');
  });

  test('an index function that throws fails that object only', () => {
    const { live, told } = liveStore({
      indexers: {
        value: ({ value }) => {
          if (value === 2) throw new Error('no index');
          return [`${value}`];
        },
      },
    });
    live.replace([pod('a', 1, '1'), pod('b', 2, '1')], '1');
    live.add(pod('a', 2, '2'));
    expect(live.list().map(shown)).toEqual(['a1']);
    expect(live.indexValues('value')).toEqual(['1']);
    expect(told.errors).toEqual(['no index: b', 'no index: a']);
    live.delete({} as Pod);
    expect(told.errors).toHaveLength(3);
  });

  test('that joins while a list is published gets state and changes once', () => {
    const { live } = liveStore();
    let inner: Watch<LogEvent<Pod>> | undefined;
    const matches = (): boolean => {
      inner ??= live.join({ overflow: 'disconnect', capacity: 100 });
      return true;
    };
    const outer = live.join({ overflow: 'disconnect', capacity: 2, matches });
    const list = Array.from({ length: 600 }, (_, at) => pod(`p${at}`, 1, '1'));
    live.replace(list, '1');
    read(outer);
    expect(inner).toBeDefined();
    expect(read(inner as Watch<LogEvent<Pod>>)).toEqual([...list.map((one) => `ADDED ${shown(one)}`), 'SYNCED']);
  });
});

describe('a reader', () => {
  test('that joins later gets the state, the end of it, then changes', () => {
    const { live } = liveStore();
    live.replace([pod('a', 1, '1'), pod('b', 1, '1')], '1');
    live.delete(pod('a', 1, '2'));
    const watch = live.join({});
    live.add(pod('c', 1, '3'));
    expect(read(watch)).toEqual(['ADDED b1', 'SYNCED', 'ADDED c1']);
  });

  test.each(['coalesce', 'disconnect'] as const)('with %s folds to the state', (overflow) => {
    const { live } = liveStore();
    const watch = live.join({ overflow, capacity: overflow === 'coalesce' ? undefined : 10_000 });
    const copy = new Map<string, number>();
    for (let at = 1; at <= 3_000; at++) {
      const key = `k${(at * 7919) % 13}`;
      if (at % 5 === 0) live.delete(pod(key, at, `${at}`));
      else live.add(pod(key, at, `${at}`));
      if (at % 611 !== 0) continue;
      for (let event = watch.tryNext(); event; event = watch.tryNext()) {
        if (!('key' in event)) continue;
        const { type, key: of, object, previous } = event;
        expect(copy.get(of)).toBe(type === 'ADDED' ? undefined : (previous as Pod).value);
        if (type === 'DELETED') copy.delete(of);
        else copy.set(of, object.value);
      }
      expect(copy).toEqual(new Map(live.list().map((one) => [one.metadata.name, one.value])));
    }
  });

  test('that stalls holds no more changes than there are objects, whatever comes and goes', () => {
    const { live } = liveStore();
    const watch = live.join({});
    live.replace(
      Array.from({ length: 100 }, (_, at) => pod(`p${at}`, 0, '1')),
      '1',
    );
    for (let at = 0; at < 20_000; at++) live.update(pod(`p${at % 100}`, at, `${at + 2}`));
    expect(watch.queued).toBe(101); // and the end of the initial state
    for (let at = 0; at < 20_000; at++) {
      live.add(pod(`job${at}`, at, `${30_000 + 2 * at}`));
      live.delete(pod(`job${at}`, at, `${30_001 + 2 * at}`));
    }
    expect(watch.queued).toBe(101);
    expect(sizeOf(watch)).toBeLessThan(600); // what is counted, and at most the changes of two chunks that are not folded yet
  });

  test(`that stalls does not keep the states in between alive${NO_GC}`, async () => {
    if (!globalThis.gc) return;
    const { live } = liveStore();
    const watch = live.join({});
    const refs: WeakRef<Pod>[] = [];
    for (let at = 1; at <= 5_000; at++) {
      const one = pod('a', at, `${at}`);
      refs.push(new WeakRef(one));
      live.add(one);
    }
    // What is left are the last chunks, and the first and the last state of each fold.
    expect(await collectedUntil(() => refs.filter((ref) => ref.deref() !== undefined).length < 600)).toBe(true);
    expect(watch.queued).toBe(1);
  });

  test('closing ends readers, after what is queued; then nothing is written', () => {
    const { live } = liveStore();
    const watch = live.join({});
    live.add(pod('a', 1, '1'));
    live.close();
    live.add(pod('b', 1, '2'));
    live.replace([], '3');
    live.wake(new Set());
    expect(live.keys()).toEqual(['a']);
    expect(read(watch)).toEqual(['ADDED a1']);
    expect(watch.stopped).toBe(true);
    expect(() => live.join({})).toThrow('the informer has stopped');
  });
});

describe('a list', () => {
  test('without changes keeps every object, and tells nobody', () => {
    const { live, told } = liveStore();
    const list = (): Pod[] => Array.from({ length: 1_000 }, (_, at) => pod(`p${at}`, at, `${at + 1}`));
    live.replace(list(), '1000');
    const before = live.list();
    const watch = live.join({});
    read(watch);
    live.replace(list(), '1001');
    expect(live.list().every((one, at) => one === before[at])).toBe(true);
    expect(read(watch)).toEqual([]);
    expect(told.versions).toEqual(['1000', '1001']);
  });

  test(`is not kept alive by an object of it that is kept${NO_GC}`, async () => {
    if (!globalThis.gc) return;
    const { live } = liveStore();
    const refs: WeakRef<object>[] = [];
    (() => {
      const items = JSON.parse(
        JSON.stringify(Array.from({ length: 1_000 }, (_, at) => pod(`pod-with-a-long-name-${at}`, at, '1'))),
      ) as Pod[];
      for (const one of items) refs.push(new WeakRef(one));
      refs.push(new WeakRef(items));
      live.replace(items, '1');
    })();
    live.replace([pod('pod-with-a-long-name-7', 7, '1')], '2');
    expect(await collectedUntil(() => refs.filter((ref) => ref.deref() !== undefined).length === 1)).toBe(true);
    expect(live.get('pod-with-a-long-name-7')).toBe(refs[7]?.deref());
  });
});

test('an event for who sees only some objects says what has changed for them', () => {
  const matches = ({ value }: Pod): boolean => value > 10;
  const change = (type: 'ADDED' | 'MODIFIED' | 'DELETED', previous: number | undefined, value: number) =>
    toObjectEvent(
      {
        type,
        key: 'a',
        object: pod('a', value, '2'),
        previous: previous === undefined ? undefined : pod('a', previous, '1'),
        finalStateUnknown: false,
      },
      matches,
    );
  expect(change('ADDED', undefined, 1)).toBeUndefined();
  expect(change('ADDED', undefined, 11)).toEqual({ type: 'ADDED', object: pod('a', 11, '2') });
  expect(change('MODIFIED', 1, 11)).toEqual({ type: 'ADDED', object: pod('a', 11, '2') });
  expect(change('MODIFIED', 12, 11)).toEqual({ type: 'MODIFIED', object: pod('a', 11, '2') });
  expect(change('MODIFIED', 12, 1)).toEqual({ type: 'DELETED', object: pod('a', 12, '2') });
  expect(change('DELETED', 12, 1)).toEqual({ type: 'DELETED', object: pod('a', 12, '2') });
  expect(change('DELETED', 1, 12)).toBeUndefined();
  expect(change('MODIFIED', 1, 2)).toBeUndefined();
});

/** How many entries the reader's fold has. */
function sizeOf(watch: Watch<LogEvent<Pod>>): number {
  return (watch as unknown as { sizeOfQueue(of: () => number): number }).sizeOfQueue(() => 1);
}

describe('what a source may ask back', () => {
  test('is the object as it was delivered, by its name, unless it is stored as another or under another key', () => {
    const { live } = liveStore();
    const [plain, spaced] = [pod('a', 1), pod('x/a', 2)];
    live.replace([plain, spaced], '5');
    expect([live.stored('a', ''), live.stored('a', 'x'), live.stored('b', '')]).toEqual([plain, spaced, undefined]);
    for (const options of [{ transform: (one: Pod) => one }, { keyOf: (one: Pod) => one.metadata.name }]) {
      const other = liveStore(options).live;
      other.replace([plain], '5');
      expect([other.size, other.stored('a', '')]).toEqual([1, undefined]);
    }
  });
});

test('what wakes a reader has the version of the state, ends no list, and takes no room where others read', () => {
  const { live } = liveStore();
  live.replace([pod('a', 1)], '5');
  const reader = {};
  const watch = live.join({ capacity: 1, reader });
  const other = live.join({ capacity: 1, reader: {} });
  read(watch);
  read(other);
  live.wake(reader);
  expect(watch.tryNext()).toEqual({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '5' } }, reader });
  expect(other.tryNext()).toBeUndefined();
});
