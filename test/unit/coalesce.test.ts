import { describe, expect, test, vi } from 'vitest';
import type { BroadcastWatch } from '../../src/broadcast/broadcast-watch.ts';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import { Fold, FoldChain, foldKey, type Link } from '../../src/broadcast/fold.ts';
import { EventLog } from '../../src/broadcast/log.ts';
import { event, type TestEvent } from './support.ts';

const byName = (of: TestEvent): string => of.object.metadata.name;

function foldOf(...of: TestEvent[]): Fold<TestEvent> {
  const fold = new Fold<TestEvent>();
  for (const one of of) fold.add(one, foldKey(one, byName));
  return fold;
}

/** The changes of one key, in this order. */
const changes = (types: string): TestEvent[] => types.split(' ').map((type, i) => event(i, type, 'k'));

function takeAll(fold: Fold<TestEvent>): string[] {
  const taken: string[] = [];
  for (let one = fold.take(); one !== undefined; one = fold.take()) taken.push(`${one.type} ${one.object.id}`);
  return taken;
}

const TABLE: [string, string[]][] = [
  ['ADDED', ['ADDED 0']],
  ['MODIFIED', ['MODIFIED 0']],
  ['DELETED', ['DELETED 0']],
  ['ADDED MODIFIED', ['ADDED 1']],
  ['ADDED ADDED', ['ADDED 1']],
  ['ADDED DELETED', []],
  ['MODIFIED MODIFIED', ['MODIFIED 1']],
  ['MODIFIED DELETED', ['DELETED 1']],
  ['MODIFIED ADDED', ['MODIFIED 1']],
  ['DELETED ADDED', ['MODIFIED 1']],
  ['DELETED MODIFIED', ['MODIFIED 1']],
  ['DELETED DELETED', ['DELETED 1']],
  ['ADDED MODIFIED DELETED', []],
  ['ADDED DELETED ADDED', ['ADDED 2']],
  ['DELETED ADDED DELETED', ['DELETED 2']],
  ['MODIFIED DELETED ADDED MODIFIED', ['MODIFIED 3']],
  ['placed', ['placed 0']],
  ['placed cancelled', ['cancelled 1']],
  ['ADDED renamed', ['renamed 1']],
  ['renamed DELETED', ['DELETED 1']],
];

// Found by topics.property.test.ts: the count of what the first had folded before was copied to the second.
test('what one laggard has folded before does not count for those who share its next fold', () => {
  const broadcaster = new Broadcaster<TestEvent>();
  const open = (): BroadcastWatch<TestEvent> =>
    broadcaster.watch({ overflow: 'coalesce', capacity: 5 }) as BroadcastWatch<TestEvent>;
  const watches = [open(), open()];
  const delivered = [0, 0];
  let id = 0;
  const read = (at: number): number => (delivered[at] = (delivered[at] as number) + (watches[at]?.tryBatch()?.length ?? 0));
  for (let round = 0; round < 6; round++) {
    for (let i = 0; i < 40; i++) broadcaster.tryPublish(event(id++, 'MODIFIED', 'k'));
    read(0);
    if (round % 2 === 0) read(1);
  }
  read(1);
  expect(watches.map(({ queued, dropped }, at) => queued + dropped + (delivered[at] as number))).toEqual([id, id]);
});

describe('Fold', () => {
  test.each(TABLE)('%s folds to %j', (types, expected) => {
    const all = changes(types);
    const fold = foldOf(...all);
    expect(fold).toMatchObject({ size: 1, live: expected.length, count: all.length, dropped: all.length - expected.length });
    expect(takeAll(fold)).toEqual(expected);
    expect(fold).toMatchObject({ size: 0, live: 0, count: 0, dropped: all.length - expected.length });
  });

  test.each(TABLE)('%s folds to %j, but never to nothing if the events report deletions', (types, expected) => {
    const all = changes(types);
    const told = expected.length > 0 ? expected : [`DELETED ${all.length - 1}`];
    const fold = foldOf(...all.map((one) => ({ ...one, reportsDeletion: true })));
    expect(fold).toMatchObject({ size: 1, live: 1, count: all.length, dropped: all.length - 1 });
    expect(takeAll(fold)).toEqual(told);
    expect(fold).toMatchObject({ size: 0, live: 0, count: 0, dropped: all.length - 1 });
  });

  test.each(TABLE)('%s folds to the same when it is merged from two folds, wherever it is split', (types, expected) => {
    const all = changes(types);
    for (let cut = 0; cut <= all.length; cut++) {
      const fold = foldOf(...all.slice(0, cut));
      fold.merge(foldOf(...all.slice(cut)));
      expect(fold).toMatchObject({ size: 1, live: expected.length, count: all.length });
      expect(takeAll(fold)).toEqual(expected);
    }
  });

  test('an event that did not change is delivered as it is; one with a new type is a copy', () => {
    const [added, modified] = [event(1, 'ADDED', 'k'), event(2, 'MODIFIED', 'k')];
    expect(foldOf(added).take()).toBe(added);
    expect(foldOf(event(0, 'MODIFIED', 'k'), modified).take()).toBe(modified);
    const told = foldOf(added, modified).take();
    expect(told).toEqual({ ...modified, type: 'ADDED' });
    expect(told?.object).toBe(modified.object);
    expect(modified.type).toBe('MODIFIED');
  });

  test.each([0, 1, 2])('has the previous object of the first event, if %i events are merged from another fold', (later) => {
    const all = ['MODIFIED', 'DELETED', 'ADDED'].map((type, at) => ({ ...event(at, type, 'k'), previous: `before ${at}` }));
    const fold = foldOf(...all.slice(0, all.length - later));
    fold.merge(foldOf(...all.slice(all.length - later)));
    expect(fold.take()).toEqual({ ...all[2], type: 'MODIFIED', previous: 'before 0' });
    expect(all[2]).toMatchObject({ type: 'ADDED', previous: 'before 2' });
  });

  test('has no previous object if the first event has none; an only event is delivered as it is', () => {
    const [added, modified] = [event(0, 'ADDED', 'k'), { ...event(1, 'MODIFIED', 'k'), previous: 'added' }];
    expect(foldOf(added, modified).take()).toEqual({ ...event(1, 'ADDED', 'k'), previous: undefined });
    expect(foldOf(modified).take()).toBe(modified);
    expect(foldOf(modified, event(2, 'MODIFIED', 'k')).take()).toEqual({ ...event(2, 'MODIFIED', 'k'), previous: 'added' });
    expect(foldOf(added, event(1, 'MODIFIED', 'k')).take()).not.toHaveProperty('previous');
  });

  test('keys are in the order of their first unseen change', () => {
    const fold = foldOf(
      event(1, 'MODIFIED', 'a'),
      event(2, 'MODIFIED', 'b'),
      event(3, 'MODIFIED', 'a'),
      event(4, 'MODIFIED', 'c'),
    );
    expect(takeAll(fold)).toEqual(['MODIFIED 3', 'MODIFIED 2', 'MODIFIED 4']);
  });

  test('a key that was read starts over, and is last', () => {
    const fold = foldOf(event(1, 'ADDED', 'a'), event(2, 'MODIFIED', 'b'));
    expect(fold.take()).toMatchObject({ type: 'ADDED' });
    fold.add(event(3, 'MODIFIED', 'a'), 'a');
    expect(takeAll(fold)).toEqual(['MODIFIED 2', 'MODIFIED 3']);
    expect(fold.dropped).toBe(0);
  });

  test('goes on behind what it has delivered, whatever is added or cleared meanwhile', () => {
    const fold = foldOf(event(0, 'ADDED', 'a'), event(1, 'ADDED', 'b'), event(2, 'ADDED', 'c'));
    const add = (one: TestEvent): void => fold.add(one, foldKey(one, byName));
    expect(fold.take()?.object.id).toBe(0);
    add(event(3, 'MODIFIED', 'a'));
    add(event(4, 'MODIFIED', 'c'));
    expect(fold.take()?.object.id).toBe(1);
    fold.clear();
    expect(fold.take()).toBeUndefined();
    add(event(5, 'ADDED', 'd'));
    expect(takeAll(fold)).toEqual(['ADDED 5']);
  });

  // It passes the places of all that was removed, so with one for each take, 100,000 keys would take 2 s.
  test('what is taken in a row needs one iterator', () => {
    const fold = foldOf(...Array.from({ length: 100 }, (_, i) => event(i, 'ADDED', `${i}`)));
    const made = [vi.spyOn(Map.prototype, 'entries'), vi.spyOn(Map.prototype, Symbol.iterator)];
    while (fold.take());
    const calls = made.reduce((sum, { mock }) => sum + mock.calls.length, 0);
    for (const each of made) each.mockRestore();
    expect(calls).toBe(1);
  });

  test('changes that cancel out deliver no event, but count as a key until a later event is read', () => {
    const fold = foldOf(event(1, 'ADDED', 'a'), event(2, 'DELETED', 'a'), event(3, 'MODIFIED', 'b'), event(4, 'MODIFIED', 'c'));
    expect(fold).toMatchObject({ size: 3, live: 2, count: 4, dropped: 2 });
    expect(fold.take()?.object.id).toBe(3);
    expect(fold).toMatchObject({ size: 1, live: 1, count: 1, dropped: 2 });
    expect(fold.take()?.object.id).toBe(4);
    expect(fold.take()).toBeUndefined();
  });

  test('a BOOKMARK replaces the previous one and moves to the end: it overtakes no event that it vouches for', () => {
    const fold = foldOf(
      event(1, 'MODIFIED', 'a'),
      event(2, 'BOOKMARK', 'x'),
      event(3, 'MODIFIED', 'b'),
      event(4, 'BOOKMARK', 'y'),
    );
    expect(fold).toMatchObject({ size: 3, live: 3, dropped: 1 });
    expect(takeAll(fold)).toEqual(['MODIFIED 1', 'MODIFIED 3', 'BOOKMARK 4']);
  });

  test('a BOOKMARK that is merged in also moves to the end', () => {
    const fold = foldOf(event(1, 'BOOKMARK', 'x'), event(2, 'MODIFIED', 'a'));
    fold.merge(foldOf(event(3, 'BOOKMARK', 'x'), event(4, 'MODIFIED', 'b')));
    expect(takeAll(fold)).toEqual(['MODIFIED 2', 'BOOKMARK 3', 'MODIFIED 4']);
  });

  test('the BOOKMARK that ends the initial events is not folded: a client that waits for it would wait forever', () => {
    const marked = (id: number, value: string): TestEvent => {
      const { type, object } = event(id, 'BOOKMARK', 'x');
      const annotations = { 'k8s.io/initial-events-end': value };
      return { type, object: { ...object, metadata: { ...object.metadata, annotations } as TestEvent['object']['metadata'] } };
    };
    const fold = foldOf(
      event(1, 'ADDED', 'a'),
      marked(2, 'true'),
      event(3, 'ADDED', 'b'),
      marked(4, 'false'),
      event(5, 'MODIFIED', 'a'),
      event(6, 'BOOKMARK', 'x'),
    );
    expect(fold).toMatchObject({ live: 4, dropped: 2 });
    expect(takeAll(fold)).toEqual(['ADDED 5', 'BOOKMARK 2', 'ADDED 3', 'BOOKMARK 6']);
  });

  test('BOOKMARK and ERROR have no key: keyOf is not called', () => {
    const never = (): string => {
      throw new Error('asked');
    };
    expect(foldKey(event(1, 'BOOKMARK'), never)).toBe(foldKey(event(2, 'BOOKMARK'), never));
    const error = event(3, 'ERROR');
    expect(foldKey(error, never)).toBe(error);
    expect(() => foldKey(event(4, 'ADDED'), never)).toThrow('asked');
    expect(foldKey(event(4, 'ADDED'), byName)).toBe('k4');
  });

  test('an ERROR is never folded, and nothing is folded across it: it may tell readers to forget what they know', () => {
    const all = [
      event(1, 'ERROR', 'a'),
      event(2, 'MODIFIED', 'a'),
      event(3, 'MODIFIED', 'a'),
      event(4, 'ERROR', 'a'),
      event(5, 'BOOKMARK', 'x'),
      event(6, 'ADDED', 'a'),
      event(7, 'MODIFIED', 'a'),
      event(8, 'ADDED', 'b'),
      event(9, 'DELETED', 'b'),
      event(10, 'BOOKMARK', 'x'),
    ];
    for (let cut = 0; cut <= all.length; cut++) {
      const fold = foldOf(...all.slice(0, cut));
      fold.merge(foldOf(...all.slice(cut)));
      expect(fold).toMatchObject({ size: 6, live: 5, count: 10, dropped: 5 });
      expect(fold.total(({ object }) => object.id)).toBe(1 + 3 + 4 + 7 + 9 + 10);
      expect(takeAll(fold)).toEqual(['ERROR 1', 'MODIFIED 3', 'ERROR 4', 'ADDED 7', 'BOOKMARK 10']);
      expect(fold).toMatchObject({ size: 0, live: 0, count: 0, dropped: 5 });
      fold.add(event(11, 'MODIFIED', 'a'), 'a');
      expect(fold.clear()).toBe(1);
      expect(fold.take()).toBeUndefined();
    }
  });

  test('a fold of two that is cleared between an ERROR and what follows has nothing left', () => {
    const fold = foldOf(event(1, 'MODIFIED', 'a'), event(2, 'ERROR', 'a'), event(3, 'MODIFIED', 'a'));
    expect(fold.take()?.object.id).toBe(1);
    expect(fold.clear()).toBe(2);
    expect([fold.take(), fold.size, fold.place]).toEqual([undefined, 0, undefined]);
  });

  test('clear forgets unseen changes and returns their number; earlier folded ones stay counted', () => {
    const fold = foldOf(
      event(1, 'MODIFIED', 'a'),
      event(2, 'MODIFIED', 'a'),
      event(3, 'MODIFIED', 'b'),
      event(4, 'MODIFIED', 'c'),
    );
    fold.take();
    expect(fold.clear()).toBe(2);
    expect(fold).toMatchObject({ size: 0, live: 0, count: 0, dropped: 1 });
    expect(fold.clear()).toBe(0);
    expect(fold.take()).toBeUndefined();
  });
});

/** A log with chunks of 16, a chain over it, and a count of the calls of keyOf. */
class Chained {
  readonly log = new EventLog<TestEvent>(1);
  asked = 0;
  readonly chain = new FoldChain<TestEvent>(this.log, (of) => {
    this.asked++;
    if (of.type === 'BAD') throw new Error(`bad ${of.object.id}`);
    return byName(of);
  });

  constructor() {
    this.log.stand(0);
  }

  /** A chunk full of events: of one key unless told otherwise. */
  chunk(nameOf: (i: number) => string = () => 'k', typeOf: (i: number) => string = () => 'MODIFIED'): void {
    for (let i = 0; i < 16; i++) {
      this.log.append(event(this.log.end, typeOf(i), nameOf(i)));
      const chunk = this.log.chunkOf(this.log.head++);
      if (this.log.chunkOf(this.log.head) > chunk) this.chain.fold();
    }
  }

  join(capacity: number): Link<TestEvent> {
    expect(this.chain.takes(this.log.head)).toBe(true);
    return this.chain.join(this.log.head, capacity);
  }

  get links(): Link<TestEvent>[] {
    return (this.chain as unknown as { links: Link<TestEvent>[] }).links;
  }

  get needs(): number {
    return (this.log as unknown as { needs: number }).needs;
  }
}

const distinct = (i: number): string => `k${i}`;

describe('FoldChain', () => {
  test('folds nothing, and needs nothing, without laggards', () => {
    const chained = new Chained();
    chained.chunk();
    expect(chained).toMatchObject({ asked: 0, needs: 1, links: [] });
  });

  test('folds each chunk once, whatever the number of laggards', () => {
    const chained = new Chained();
    chained.chunk();
    const links = Array.from({ length: 100 }, () => chained.join(20));
    expect(new Set(links).size).toBe(1);
    expect(chained.needs).toBe(2);
    expect(chained.chain.position).toBe(16);
    chained.chunk();
    expect(chained.asked).toBe(16);
    expect(chained.chain.position).toBe(32);
    expect(links[0]).toMatchObject({ count: 16, members: 100, spoiled: undefined });
    expect(links[0]?.fold).toMatchObject({ count: 16, live: 1 });
  });

  test('a later laggard starts with a link of its own; further events are folded into the last link', () => {
    const chained = new Chained();
    const first = chained.join(20);
    chained.chunk();
    const second = chained.join(20);
    expect(second).not.toBe(first);
    expect(chained.join(20)).toBe(second);
    chained.chunk();
    expect([first.count, second.count]).toEqual([16, 16]);
    expect(chained.chain.from(first)).toEqual([first, second]);
    expect(chained.chain.from(second)).toEqual([second]);
    expect(chained.needs).toBe(2);
  });

  test('a link that no laggard starts with is merged into the one before', () => {
    const chained = new Chained();
    const first = chained.join(20);
    chained.chunk(() => 'a');
    const second = chained.join(20);
    chained.join(20);
    chained.chunk(() => 'b');
    chained.chain.leave(second, 20);
    expect(chained.links).toHaveLength(2);
    chained.chain.leave(second, 20);
    expect(chained.links).toEqual([first]);
    expect(first).toMatchObject({ count: 32, spoiled: undefined });
    expect(first.fold).toMatchObject({ count: 32, size: 2 });
    chained.chunk(() => 'c');
    expect(first.fold.size).toBe(3);
  });

  test('the first link is removed together with its last member', () => {
    const chained = new Chained();
    const first = chained.join(20);
    chained.chunk();
    const second = chained.join(20);
    chained.chunk();
    chained.chain.leave(first, 20);
    expect(chained.links).toEqual([second]);
    expect(second.count).toBe(16);
    expect(chained.needs).toBe(2);
    chained.chain.leave(second, 20);
    expect(chained).toMatchObject({ links: [], needs: 1 });
  });

  test('when all have left, a new laggard starts at head', () => {
    const chained = new Chained();
    chained.chain.leave(chained.join(20), 20);
    chained.chunk();
    const link = chained.join(20);
    expect(chained.chain.position).toBe(16);
    expect(link.count).toBe(0);
    chained.chunk();
    expect(link.count).toBe(16);
  });

  test('more keys than any laggard may hold spoil a link: it holds nothing, and keyOf is not called any more', () => {
    const chained = new Chained();
    const link = chained.join(15);
    chained.join(3);
    chained.chunk(distinct);
    expect(link).toMatchObject({ count: 16, spoiled: {} });
    expect(link.spoiled).not.toHaveProperty('error');
    expect(link.fold).toMatchObject({ size: 0, count: 0 });
    chained.chunk(distinct);
    expect(chained.asked).toBe(16);
    expect(link.count).toBe(32);
  });

  test('as many keys as the largest laggard may hold spoil nothing', () => {
    const chained = new Chained();
    chained.join(3);
    const link = chained.join(16);
    chained.chunk(distinct);
    expect(link.spoiled).toBeUndefined();
    expect(link.fold.size).toBe(16);
  });

  test('the largest laggard of an earlier group no longer counts', () => {
    const chained = new Chained();
    chained.chain.leave(chained.join(100), 100);
    const link = chained.join(2);
    chained.chunk(distinct);
    expect(link.spoiled).toEqual({});
  });

  test('when the largest laggard leaves, what only it could hold is discarded', () => {
    const chained = new Chained();
    const link = chained.join(2);
    chained.join(100);
    chained.chunk(distinct);
    expect(link.fold.size).toBe(16);
    chained.chain.leave(link, 100);
    expect(link.spoiled).toEqual({});
    expect(link.fold.size).toBe(0);
  });

  test('a link that gets too many keys by a merge is spoiled', () => {
    const chained = new Chained();
    const first = chained.join(20);
    chained.chunk((i) => `a${i}`);
    const second = chained.join(20);
    chained.chunk((i) => `b${i}`);
    expect([first.spoiled, second.spoiled]).toEqual([undefined, undefined]);
    chained.chain.leave(second, 20);
    expect(first).toMatchObject({ count: 32, spoiled: {} });
    expect(first.fold.size).toBe(0);
  });

  test('a link whose keyOf threw spoils the one that it is merged into, and keeps its earlier events', () => {
    const chained = new Chained();
    const first = chained.join(20);
    chained.chunk();
    const second = chained.join(20);
    chained.chunk(distinct, (i) => (i === 3 ? 'BAD' : 'MODIFIED'));
    chained.chain.leave(second, 20);
    expect(first).toMatchObject({ count: 32, spoiled: { error: new Error('bad 19') } });
    expect(first.fold).toMatchObject({ size: 4, count: 19 });
  });

  test('a spoiled link accepts nothing more', () => {
    const chained = new Chained();
    const first = chained.join(20);
    chained.chunk(distinct, (i) => (i === 3 ? 'BAD' : 'MODIFIED'));
    const second = chained.join(20);
    chained.chunk(distinct, () => 'BAD');
    expect(second).toMatchObject({ count: 16, spoiled: { error: new Error('bad 16') } });
    chained.chain.leave(second, 20);
    expect(first).toMatchObject({ count: 32, spoiled: { error: new Error('bad 3') } });
    expect(first.fold).toMatchObject({ size: 3, count: 3 });
  });

  test('a keyOf that throws ends the folding there, and is not called any more', () => {
    const chained = new Chained();
    const link = chained.join(20);
    chained.chunk(distinct, (i) => (i >= 5 ? 'BAD' : 'MODIFIED'));
    expect(chained.asked).toBe(6);
    expect(link).toMatchObject({ count: 16, spoiled: { error: new Error('bad 5') } });
    expect(link.fold.count).toBe(5);
    chained.chunk();
    expect(chained.asked).toBe(6);
    expect(link).toMatchObject({ count: 32 });
    expect(link.fold.count).toBe(5);
    const next = chained.join(20);
    chained.chunk();
    expect(next.spoiled).toBeUndefined();
    expect(next.fold.count).toBe(16);
  });

  test('too many keys before keyOf throws: the former counts', () => {
    const chained = new Chained();
    const link = chained.join(4);
    chained.chunk(distinct, (i) => (i === 9 ? 'BAD' : 'MODIFIED'));
    expect(link.spoiled).toEqual({});
    expect(link.fold.count).toBe(0);
  });
});
