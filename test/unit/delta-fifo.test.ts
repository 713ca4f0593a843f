import { describe, expect, it } from 'vitest';
import { DeltaFifo, type DeltaFifoOptions, isDeletedFinalStateUnknown, keyOf, Store } from '../../src/cache/index.ts';
import { inferred, knows, popAll, type Thing, thing, things } from './delta-support.ts';

const open = (options: DeltaFifoOptions<Thing> = {}): DeltaFifo<Thing> => new DeltaFifo(options);

describe('a DeltaFifo', () => {
  it('TestDeltaFIFO_basic: delivers everything per key, in the order of its changes', async () => {
    const fifo = open();
    for (let value = 0; value < 5; value++) for (const name of 'abc') fifo.add(thing(name, value));
    expect(fifo.size).toBe(3);
    expect(await popAll(fifo)).toEqual(
      [...'abc'].map((name) => [0, 1, 2, 3, 4].map((value) => `Added ${name}${value}`).join(', ')),
    );
  });

  it('TestDeltaFIFO_addUpdate: later changes ride along, and are popped once', async () => {
    const fifo = open();
    fifo.add(thing('foo', 1));
    fifo.update(thing('foo', 2));
    fifo.delete(thing('foo', 3));
    expect(await popAll(fifo)).toEqual(['Added foo1, Updated foo2, Deleted foo3']);
  });

  it('TestDeltaFIFO_transformer: changes each object once on its way in, but nothing that was inferred or is known', async () => {
    const known = knows('k1');
    const fifo = open({ knownObjects: known, transform: ({ metadata, value }) => ({ metadata, value: value + 1 }) });
    fifo.add(thing('a', 1));
    fifo.update(thing('a', 2));
    fifo.delete(thing('a', 3));
    fifo.resync();
    fifo.delete(inferred('k', 7));
    expect(await popAll(fifo)).toEqual(['Added a2, Updated a3, Deleted a4', 'Sync k1, Deleted? k7']);
    fifo.replace(things('b1'), '1');
    expect(await popAll(fifo)).toEqual(['Sync b2', 'Deleted? k1']);
  });

  it('TestDeltaFIFO_enqueueingNoLister: without knownObjects, ignores the deletion of what is not queued', async () => {
    const fifo = open();
    fifo.add(thing('foo', 1));
    fifo.update(thing('bar', 2));
    fifo.add(thing('baz', 3));
    fifo.delete(thing('foo', 4));
    expect(await popAll(fifo)).toEqual(['Added foo1, Deleted foo4', 'Updated bar2', 'Added baz3']);
    fifo.delete(thing('baz', 5));
    expect(fifo.size).toBe(0);
  });

  it('TestDeltaFIFO_enqueueingWithLister: with knownObjects, takes the deletion of what is queued or known', async () => {
    const fifo = open({ knownObjects: knows('foo5 bar6 baz7') });
    fifo.add(thing('foo', 1));
    fifo.update(thing('bar', 2));
    fifo.delete(thing('baz', 3)); // known, not queued
    fifo.delete(thing('nobody', 4));
    expect(await popAll(fifo)).toEqual(['Added foo1', 'Updated bar2', 'Deleted baz3']);
  });

  it('TestDeltaFIFO_addReplace: a list comes behind what was queued', async () => {
    const fifo = open();
    fifo.add(thing('foo', 1));
    fifo.replace(things('foo2'), '0');
    expect(await popAll(fifo)).toEqual(['Added foo1, Sync foo2']);
  });

  it('TestDeltaFIFO_ResyncNonExisting: a resync does not bring back what is being deleted', async () => {
    const fifo = open({ knownObjects: knows('foo5') });
    fifo.delete(thing('foo', 9));
    fifo.resync();
    expect(await popAll(fifo)).toEqual(['Deleted foo9']);
  });

  it('TestDeltaFIFO_Resync: a known object with nothing queued gets a Sync', async () => {
    const fifo = open({ knownObjects: knows('foo5 bar6') });
    fifo.resync();
    expect(await popAll(fifo)).toEqual(['!Sync foo5', '!Sync bar6']);
    expect(fifo.hasSynced).toBe(false);
  });

  it('TestDeltaFIFO_UpdateResyncRace: what is queued wins over a resync', async () => {
    const fifo = open({ knownObjects: knows('foo5') });
    fifo.update(thing('foo', 6));
    fifo.resync();
    expect(await popAll(fifo)).toEqual(['Updated foo6']);
  });

  it('TestDeltaFIFO_DeleteExistingNonPropagated: a deletion of what is queued is delivered, known or not', async () => {
    const fifo = open({ knownObjects: knows('') });
    fifo.add(thing('foo', 5));
    fifo.delete(thing('foo', 6));
    expect(await popAll(fifo)).toEqual(['Added foo5, Deleted foo6']);
  });

  it('TestDeltaFIFO_ReplaceMakesDeletions: what a list lacks is deleted, with the last state that is known', async () => {
    const fifo = open({ knownObjects: knows('foo5 bar6 baz7') });
    fifo.delete(thing('baz', 9));
    fifo.replace(things('foo5'), '0');
    // The observed deletion of baz came first and stays.
    expect(await popAll(fifo)).toEqual(['Deleted baz9', 'Sync foo5', 'Deleted? bar6']);

    const queued = open({ knownObjects: knows('foo5 bar6 baz7') });
    queued.add(thing('baz', 8)); // newer than what is known
    queued.replace(things('foo5'), '0');
    expect(await popAll(queued)).toEqual(['Added baz8, Deleted? baz8', 'Sync foo5', 'Deleted? bar6']);

    const twice = open({ knownObjects: knows('') });
    twice.add(thing('a', 1));
    twice.delete(inferred('a', 2));
    twice.replace([], '0'); // the guess of a guess is not nested
    expect(await popAll(twice)).toEqual(['Added a1, Deleted? a2']);
  });

  it('TestDeltaFIFOW_ReplaceMakesDeletionsForObjectsOnlyInQueue: so is what was queued and is not known', async () => {
    for (const knownObjects of [undefined, knows('')]) {
      const fifo = open({ knownObjects, emitReplaced: true });
      fifo.add(thing('foo', 1));
      fifo.replace(things('bar2'), '1');
      expect(await popAll(fifo)).toEqual(['Added foo1, Deleted? foo1', 'Replaced bar2']);
    }
  });

  it('TestDeltaFIFO_replaceWithDeleteDeltaIn: an observed deletion in the queue is not followed by a guess', async () => {
    const fifo = open({ knownObjects: knows('foo1'), emitReplaced: true });
    fifo.delete(thing('foo', 2));
    fifo.replace(things('new3'), '');
    expect(await popAll(fifo)).toEqual(['Deleted foo2', 'Replaced new3']);
  });

  it('TestDeltaFIFO_ReplaceMakesDeletionsReplaced: deletions are the same with emitReplaced', async () => {
    const fifo = open({ knownObjects: knows('foo5 bar6 baz7'), emitReplaced: true });
    fifo.delete(thing('baz', 9));
    fifo.replace(things('foo5'), '0');
    expect(await popAll(fifo)).toEqual(['Deleted baz9', 'Replaced foo5', 'Deleted? bar6']);
  });

  it('TestDeltaFIFO_ReplaceDeltaType: a list makes Sync or, with emitReplaced, Replaced', async () => {
    for (const [emitReplaced, type] of [
      [undefined, 'Sync'],
      [false, 'Sync'],
      [true, 'Replaced'],
    ] as const) {
      const fifo = open({ knownObjects: knows('foo5'), emitReplaced });
      fifo.replace(things('foo5'), '0');
      expect(await popAll(fifo)).toEqual([`!${type} foo5`]);
    }
  });

  it('TestDeltaFIFO_detectLineJumpers: a key keeps its place when more happens to it', async () => {
    const fifo = open();
    for (const each of things('foo1 bar1 foo2 foo3')) fifo.add(each);
    expect(await fifo.pop(() => {})).toHaveLength(3);
    fifo.add(thing('foo', 4)); // a new place, behind bar
    expect(await popAll(fifo)).toEqual(['Added bar1', 'Added foo4']);
  });

  it('TestDeltaFIFO_KeyOf: inferred deletions have a key of their own; the key is that of the object before transform', async () => {
    const fifo = open({ keyOf: ({ value }) => `${value}`, transform: ({ metadata }) => ({ metadata, value: 0 }) });
    fifo.add(thing('a', 7));
    fifo.delete({ ...inferred('a', 3), key: '7' });
    const [first, second, ...more] = await fifo.pop(() => {});
    expect([first?.key, second?.key, more]).toEqual(['7', '7', []]);
    expect(() => open().add({} as Thing)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });

  it('TestDeltaFIFO_HasSynced: is synced after the last object of the first list, or at once after another change', async () => {
    const synced = async (act: (fifo: DeltaFifo<Thing>) => void, pops: number, knownObjects = knows('')): Promise<boolean> => {
      const fifo = open({ knownObjects });
      act(fifo);
      for (let i = 0; i < pops; i++) await fifo.pop(() => {});
      return fifo.hasSynced;
    };
    expect(await synced(() => {}, 0)).toBe(false);
    expect(await synced((fifo) => fifo.add(thing('a', 1)), 0)).toBe(true);
    expect(await synced((fifo) => fifo.replace([], '0'), 0)).toBe(true);
    expect(await synced((fifo) => fifo.delete(thing('nobody', 1)), 0)).toBe(true);
    expect(await synced((fifo) => fifo.resync(), 0)).toBe(false);
    for (const [pops, expected] of [
      [0, false],
      [1, false],
      [2, true],
    ] as const) {
      expect(await synced((fifo) => fifo.replace(things('a1 b2'), '0'), pops)).toBe(expected);
      expect(await synced((fifo) => fifo.replace(things('a1 b2 a3'), '0'), pops)).toBe(expected);
    }
    // A second list does not start over.
    const again = (fifo: DeltaFifo<Thing>): void => {
      fifo.replace(things('a1'), '0');
      fifo.replace(things('a1 b2'), '1');
    };
    expect([await synced(again, 0), await synced(again, 1)]).toEqual([false, true]);
  });

  it('TestDeltaFIFO_HasSyncedCorrectOnDeletion: the deletions of the first list count', async () => {
    const fifo = open({ knownObjects: knows('foo5 bar6 baz7') });
    fifo.replace(things('foo5'), '0');
    for (const expected of [false, false, true]) {
      expect(fifo.hasSynced).toBe(false);
      await fifo.pop(() => expect(fifo.hasSynced).toBe(false)); // not before it was processed
      expect(fifo.hasSynced).toBe(expected);
    }
  });

  it.each<[string, (fifo: DeltaFifo<Thing>) => void, string]>([
    ['two observed ones: the older one', (fifo) => [2, 3].map((value) => fifo.delete(thing('a', value))), 'Deleted a2'],
    [
      'an observed one, then a guess: the observed one',
      (fifo) => [thing('a', 2), inferred('a', 3)].map((each) => fifo.delete(each)),
      'Deleted a2',
    ],
    [
      'a guess, then an observed one: the observed one',
      (fifo) => [inferred('a', 2), thing('a', 3)].map((each) => fifo.delete(each)),
      'Deleted a3',
    ],
    ['two guesses: the newer one', (fifo) => [2, 3].map((value) => fifo.delete(inferred('a', value))), 'Deleted? a3'],
  ])('keeps one of two deletions in a row; of %s', async (_, act, kept) => {
    const fifo = open();
    fifo.update(thing('a', 1));
    act(fifo);
    expect(await popAll(fifo)).toEqual([`Updated a1, ${kept}`]);
  });

  it('counts a deletion that it has left out neither as queued nor as processed', async () => {
    const fifo = open({ capacity: 2 });
    fifo.update(thing('a', 1));
    for (const value of [2, 3, 4]) fifo.delete(thing('a', value));
    let room = false;
    void fifo.room().then(() => {
      room = true;
    });
    expect(await popAll(fifo)).toEqual(['Updated a1, Deleted a2']);
    expect(room).toBe(true);
    const next = fifo.pop(([delta]) => expect(delta?.key).toBe('b'));
    fifo.add(thing('b', 1));
    await next;
  });

  it('keeps nothing of a list that it cannot take as a whole', async () => {
    let fails = true;
    const fifo = open({
      knownObjects: knows('z1'),
      transform: (object) => {
        if (object.value === 9 && fails) throw new Error('broken');
        return object;
      },
    });
    expect(() => fifo.replace(things('a1 b9'), '1')).toThrow('broken');
    expect(() => fifo.replace([thing('a', 1), {} as Thing], '1')).toThrow('object.metadata.name');
    expect([fifo.size, fifo.hasSynced]).toEqual([0, false]);
    fails = false;
    fifo.replace(things('a1 b9'), '1');
    expect(await popAll(fifo)).toEqual(['!Sync a1', '!Sync b9', '!Deleted? z1']);
  });

  it('refuses what a transform makes nothing of', () => {
    const fifo = open({ transform: (object) => (object.value === 9 ? (undefined as never) : object) });
    expect(() => fifo.add(thing('a', 9))).toThrow('transform: expected an object, got undefined');
    expect(() => fifo.replace(things('a1 b9'), '1')).toThrow('transform: ');
    expect([fifo.size, fifo.hasSynced]).toEqual([0, false]);
  });

  it("upstream's example: a loop of pops keeps a store equal to what the reflector tells", async () => {
    const store = new Store<Thing>();
    const queue = new DeltaFifo<Thing>({ knownObjects: store, emitReplaced: true });
    const printed: string[] = [];
    const handle = async (): Promise<void> => {
      for (;;) {
        await queue.pop((deltas) => {
          for (const { type, object } of deltas) {
            const name = keyOf(object);
            if (type === 'Deleted') {
              store.delete(object);
              printed.push(`Deleted: ${name}`);
            } else {
              printed.push(`${store.get(name) ? 'Updated' : 'Added'}: ${name}`);
              store.update(object);
            }
          }
        });
      }
    };
    const over = expect(handle()).rejects.toMatchObject({ code: 'CLOSED' });
    queue.replace(things('demo1 old1'), '1');
    queue.update(thing('demo', 2));
    await queue.room();
    while (queue.size > 0) await Promise.resolve();
    queue.replace(things('new1'), '2');
    queue.close();
    await over;
    expect(printed).toEqual(['Added: demo', 'Updated: demo', 'Added: old', 'Added: new', 'Deleted: demo', 'Deleted: old']);
    expect(store.keys()).toEqual(['new']);
  });

  it('tells inferred deletions from observed ones and from objects', () => {
    expect(isDeletedFinalStateUnknown(inferred('a', 1))).toBe(true);
    for (const other of [{ ...inferred('a', 1), finalStateUnknown: false }, thing('a', 1), undefined, null, 'Deleted', {}]) {
      expect(isDeletedFinalStateUnknown(other)).toBe(false);
    }
  });
});
