import { describe, expect, it } from 'vitest';
import { RealFifo, type RealFifoOptions } from '../../src/cache/index.ts';
import { inferred, knows, popAll, shown, type Thing, thing, things } from './delta-support.ts';

const open = (options: RealFifoOptions<Thing> = {}): RealFifo<Thing> => new RealFifo(options);
const batches = async (fifo: RealFifo<Thing>): Promise<string[]> => {
  const popped: string[] = [];
  while (fifo.size > 0) {
    await fifo.popBatch((deltas, initial) => popped.push(`${initial ? '!' : ''}${deltas.map(shown).join(', ')}`));
  }
  return popped;
};

describe('a RealFifo', () => {
  it('TestRealFIFO_basic: delivers one delta per pop, in one order over all keys', async () => {
    const fifo = open();
    for (const each of things('a1 b1 a2 c1 b2')) fifo.add(each);
    expect(fifo.size).toBe(5);
    expect(await popAll(fifo)).toEqual(['Added a1', 'Added b1', 'Added a2', 'Added c1', 'Added b2']);
  });

  it('TestRealFIFO_addUpdate: merges nothing', async () => {
    const fifo = open();
    fifo.add(thing('foo', 1));
    fifo.update(thing('foo', 2));
    fifo.delete(thing('foo', 3));
    fifo.delete(thing('foo', 4));
    expect(await popAll(fifo)).toEqual(['Added foo1', 'Updated foo2', 'Deleted foo3', 'Deleted foo4']);
  });

  it('TestRealFIFO_transformer: changes each object once on its way in, but nothing that was inferred or is known', async () => {
    const transform = ({ metadata, value }: Thing): Thing => ({ metadata, value: value + 1 });
    const fifo = open({ knownObjects: knows('k1'), transform });
    fifo.add(thing('a', 1));
    fifo.update(thing('a', 2));
    fifo.delete(thing('a', 3));
    fifo.resync();
    fifo.replace(things('b1'), '1');
    expect(await popAll(fifo)).toEqual(['Added a2', 'Updated a3', 'Deleted a4', 'Sync k1', 'Deleted? k1', 'Replaced b2']);
    const atomic = open({ transform });
    atomic.delete(inferred('a', 1));
    atomic.replace(things('b1 c5'), '1');
    expect(await popAll(atomic)).toEqual(['Deleted? a1', 'ReplacedAll@1 b2 c6']);
  });

  it('TestRealFIFO_enqueueingNoLister: delivers the deletion of what nobody knows', async () => {
    const fifo = open();
    fifo.delete(thing('foo', 1));
    fifo.delete(inferred('bar', 2));
    expect(await popAll(fifo)).toEqual(['Deleted foo1', 'Deleted? bar2']);
  });

  it('TestRealFIFO_enqueueingWithLister: the same with knownObjects', async () => {
    const fifo = open({ knownObjects: knows('foo5 bar6') });
    fifo.add(thing('foo', 1));
    fifo.delete(thing('nobody', 2));
    fifo.update(thing('bar', 3));
    expect(await popAll(fifo)).toEqual(['Added foo1', 'Deleted nobody2', 'Updated bar3']);
  });

  it('TestRealFIFO_addReplace: a list comes behind what was queued', async () => {
    const fifo = open({ knownObjects: knows('') });
    fifo.add(thing('foo', 1));
    fifo.replace(things('foo2'), '0');
    expect(await popAll(fifo)).toEqual(['Added foo1', 'Replaced foo2']);
  });

  it('TestRealFIFO_ResyncNonExisting: a resync does not bring back what is being deleted', async () => {
    const fifo = open({ knownObjects: knows('foo5') });
    fifo.delete(thing('foo', 9));
    fifo.resync();
    expect(await popAll(fifo)).toEqual(['Deleted foo9']);
  });

  it('TestRealFIFO_Resync: a known object with nothing queued gets a Sync', async () => {
    const fifo = open({ knownObjects: knows('foo5 bar6') });
    fifo.resync();
    fifo.resync();
    expect(await popAll(fifo)).toEqual(['!Sync foo5', '!Sync bar6']);
  });

  it('TestRealFIFO_UpdateResyncRace: what is queued wins over a resync', async () => {
    const fifo = open({ knownObjects: knows('foo5') });
    fifo.update(thing('foo', 6));
    fifo.resync();
    expect(await popAll(fifo)).toEqual(['Updated foo6']);
  });

  it('TestRealFIFO_DeleteExistingNonPropagated: a deletion is delivered, known or not', async () => {
    const fifo = open({ knownObjects: knows('') });
    fifo.add(thing('foo', 5));
    fifo.delete(thing('foo', 6));
    expect(await popAll(fifo)).toEqual(['Added foo5', 'Deleted foo6']);
  });

  it('TestRealFIFO_ReplaceMakesDeletions: deletions of what a list lacks come first, queued before known', async () => {
    const fifo = open({ knownObjects: knows('foo5 bar6 baz7') });
    fifo.delete(thing('baz', 9));
    fifo.add(thing('own', 1));
    fifo.update(thing('own', 2));
    fifo.replace(things('foo8'), '0');
    expect(await popAll(fifo)).toEqual([
      'Deleted baz9',
      'Added own1',
      'Updated own2',
      'Deleted? own2',
      'Deleted? bar6',
      'Replaced foo8',
    ]);
  });

  it('TestRealFIFOW_ReplaceMakesDeletionsForObjectsOnlyInQueue: so is what was queued and is not known', async () => {
    const fifo = open({ knownObjects: knows('') });
    fifo.add(thing('foo', 1));
    fifo.replace(things('bar2'), '1');
    expect(await popAll(fifo)).toEqual(['Added foo1', 'Deleted? foo1', 'Replaced bar2']);
  });

  it('TestRealFIFO_replaceWithDeleteDeltaIn: a deletion in the queue is not followed by a guess', async () => {
    const fifo = open({ knownObjects: knows('foo1') });
    fifo.delete(thing('foo', 2));
    fifo.replace(things('new3'), '');
    expect(await popAll(fifo)).toEqual(['Deleted foo2', 'Replaced new3']);
  });

  it('TestRealFIFO_ReplaceMakesDeletionsReplaced: a deletion that was followed by more counts as not deleted', async () => {
    const fifo = open({ knownObjects: knows('foo1') });
    fifo.delete(thing('foo', 2));
    fifo.add(thing('foo', 3));
    fifo.replace([], '');
    expect(await popAll(fifo)).toEqual(['Deleted foo2', 'Added foo3', 'Deleted? foo3']);
  });

  it('TestRealFIFO_ReplaceDeltaType: with knownObjects, a list makes Replaced', async () => {
    const fifo = open({ knownObjects: knows('foo5') });
    fifo.replace(things('foo5'), '0');
    expect(await popAll(fifo)).toEqual(['!Replaced foo5']);
  });

  it('TestRealFIFO_detectLineJumpers: nothing overtakes', async () => {
    const fifo = open();
    for (const each of things('foo1 bar1 foo2')) fifo.add(each);
    await fifo.pop(() => {});
    fifo.add(thing('foo', 3));
    expect(await popAll(fifo)).toEqual(['Added bar1', 'Added foo2', 'Added foo3']);
  });

  it('TestRealFIFO_KeyOf: inferred deletions have a key of their own; the key is that of the object before transform', async () => {
    const fifo = open({ keyOf: ({ value }) => `${value}`, transform: ({ metadata }) => ({ metadata, value: 0 }) });
    fifo.add(thing('a', 7));
    fifo.delete({ ...inferred('a', 3), key: '8' });
    const [first] = await fifo.pop(() => {});
    const [second] = await fifo.pop(() => {});
    expect([first, second]).toMatchObject([{ key: '7' }, { key: '8' }]);
  });

  it('TestRealFIFO_HasSynced: is synced after all that the first list has queued, or at once after another change', async () => {
    const synced = async (act: (fifo: RealFifo<Thing>) => void, pops: number, knownObjects = knows('')): Promise<boolean> => {
      const fifo = open({ knownObjects });
      act(fifo);
      for (let i = 0; i < pops; i++) await fifo.pop(() => {});
      return fifo.hasSynced;
    };
    expect(await synced(() => {}, 0)).toBe(false);
    expect(await synced((fifo) => fifo.add(thing('a', 1)), 0)).toBe(true);
    expect(await synced((fifo) => fifo.replace([], '0'), 0)).toBe(true);
    for (const [pops, expected] of [
      [0, false],
      [1, false],
      [2, true],
    ] as const) {
      expect(await synced((fifo) => fifo.replace(things('a1 b2'), '0'), pops)).toBe(expected);
    }
    const again = (fifo: RealFifo<Thing>): void => {
      fifo.replace(things('a1'), '0');
      fifo.replace(things('a1 b2'), '1');
    };
    expect([await synced(again, 0), await synced(again, 1)]).toEqual([false, true]);
  });

  it('TestRealFIFO_HasSyncedCorrectOnDeletion: the deletions of the first list count', async () => {
    const fifo = open({ knownObjects: knows('foo5 bar6 baz7') });
    fifo.replace(things('foo5'), '0');
    for (const expected of [false, false, true]) {
      await fifo.pop(() => expect(fifo.hasSynced).toBe(false));
      expect(fifo.hasSynced).toBe(expected);
    }
  });

  it('TestRealFIFO_PopMultipleDeltaInBatch: a batch has different keys, and ends where the first list or the size does', async () => {
    const fifo = open({ knownObjects: knows(''), batchSize: 3 });
    fifo.replace(things('a1 b1 c1 d1'), '0');
    fifo.add(thing('e', 1));
    fifo.update(thing('f', 1));
    fifo.update(thing('e', 2));
    fifo.delete(thing('g', 1));
    expect(await batches(fifo)).toEqual([
      '!Replaced a1, Replaced b1, Replaced c1',
      '!Replaced d1',
      'Added e1, Updated f1',
      'Updated e2, Deleted g1',
    ]);
    expect(fifo.hasSynced).toBe(true);
    const large = open();
    for (let i = 0; i < 1_500; i++) large.add(thing(`k${i}`, 1));
    expect((await batches(large)).map((batch) => batch.split(', ').length)).toEqual([1_000, 500]);
  });

  it('TestRealFIFO_PopBrokenItemsInBatch: an object without a key is refused on its way in, so no batch has one', async () => {
    const fifo = open();
    fifo.add(thing('a', 1));
    expect(() => fifo.add({} as Thing)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
    expect(() => fifo.delete({} as Thing)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
    fifo.add(thing('b', 1));
    expect(await batches(fifo)).toEqual(['Added a1, Added b1']);
  });

  it('TestRealFIFO_ReplaceAtomic: without knownObjects, a list is one delta, behind what was queued', async () => {
    const fifo = open();
    fifo.replace(things('a1 b2 a3'), '7');
    fifo.delete(thing('a', 4));
    fifo.replace([], '8');
    expect(fifo.size).toBe(3);
    expect(await popAll(fifo)).toEqual(['!ReplacedAll@7 a3 b2', 'Deleted a4', 'ReplacedAll@8']);
  });

  it('TestRealFIFO_ReplaceAtomicPop: it is popped alone, also in batches, and completes the first list', async () => {
    const fifo = open();
    fifo.replace(things('a1'), '7');
    fifo.add(thing('b', 1));
    fifo.add(thing('c', 1));
    fifo.replace(things('d1'), '8');
    fifo.add(thing('e', 1));
    expect(fifo.hasSynced).toBe(false);
    expect(await batches(fifo)).toEqual(['!ReplacedAll@7 a1', 'Added b1, Added c1', 'ReplacedAll@8 d1', 'Added e1']);
    expect(fifo.hasSynced).toBe(true);
  });

  it('TestRealFIFO_ResyncAtomic: without knownObjects, a resync is one delta, and so is a bookmark', async () => {
    const fifo = open();
    fifo.add(thing('a', 1));
    fifo.resync();
    fifo.bookmark('9');
    fifo.add(thing('b', 1));
    expect(await batches(fifo)).toEqual(['Added a1', 'SyncAll', 'Bookmark@9', 'Added b1']);
    const other = open({ knownObjects: knows('') });
    other.bookmark('9');
    expect([other.size, other.hasSynced]).toEqual([0, false]);
  });

  it('what comes before the first list counts to it only if it waits with it', async () => {
    const fifo = open();
    fifo.bookmark('1');
    fifo.resync();
    expect(fifo.hasSynced).toBe(false);
    fifo.replace(things('a1'), '2');
    expect(await popAll(fifo)).toEqual(['!Bookmark@1', '!SyncAll', '!ReplacedAll@2 a1']);
    expect(fifo.hasSynced).toBe(true);
  });

  it('keeps nothing of a list that it cannot take as a whole', () => {
    for (const knownObjects of [undefined, knows('z1')]) {
      const fifo = open({ knownObjects });
      expect(() => fifo.replace([thing('a', 1), {} as Thing], '1')).toThrow('object.metadata.name');
      expect([fifo.size, fifo.hasSynced]).toEqual([0, false]);
    }
  });
});
