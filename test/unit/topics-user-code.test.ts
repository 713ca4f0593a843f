// Reentrant user code in a broadcaster with topics: in `topicsOf`, in filters, at the gates of several views.
import { describe, expect, test } from 'vitest';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { event, type Fate, fate, ids, range, readAll, type TestEvent, turn } from './support.ts';

/** The topic of an event is its key. */
const topicsOf = ({ object }: TestEvent): string => object.metadata.name;

describe('topicsOf', () => {
  test('may publish: the inner event comes first', () => {
    let inner: TestEvent | undefined = event(1, 'MODIFIED', 'b');
    const broadcaster = new Broadcaster<TestEvent>({
      topicsOf(one) {
        const before = inner;
        inner = undefined;
        if (before) broadcaster.tryPublish(before);
        return topicsOf(one);
      },
    });
    const all = broadcaster.watch();
    const both = broadcaster.watch({ topics: ['a', 'b'] });
    broadcaster.tryPublish(event(0, 'MODIFIED', 'a'));
    expect([ids(readAll(all)), ids(readAll(both))]).toEqual([
      [1, 0],
      [1, 0],
    ]);
  });

  test('may start a watch, which gets the event', () => {
    let watch: Watch<TestEvent> | undefined;
    const broadcaster = new Broadcaster<TestEvent>({
      topicsOf(one) {
        watch ??= broadcaster.watch({ topics: ['a'] });
        return topicsOf(one);
      },
    });
    broadcaster.tryPublish(event(0, 'MODIFIED', 'a'));
    expect(ids(readAll(watch!))).toEqual([0]);
  });

  test('may shut down: the event is refused', async () => {
    const broadcaster = new Broadcaster<TestEvent>({
      topicsOf(one) {
        void broadcaster.shutdown();
        return topicsOf(one);
      },
    });
    const watch = broadcaster.watch({ topics: ['a'] });
    expect(() => broadcaster.tryPublish(event(0, 'MODIFIED', 'a'))).toThrow(expect.objectContaining({ code: 'CLOSED' }));
    expect(readAll(watch)).toEqual([]);
    expect(watch.stopped).toBe(true);
  });

  test('may return the same array each time, changed: an event keeps the topics that it had', async () => {
    const shared: string[] = [];
    const broadcaster = new Broadcaster<TestEvent>({
      replay: 2,
      capacity: 1,
      incoming: 1,
      topicsOf(one) {
        shared.splice(0, 1, one.object.metadata.name);
        return shared;
      },
    });
    const blocker = broadcaster.watch();
    const a = broadcaster.watch({ topics: ['a'], overflow: 'drop-newest', capacity: 100 });
    const b = broadcaster.watch({ topics: ['b'], overflow: 'drop-newest', capacity: 100 });
    const names = ['a', 'b', 'a', 'a', 'b', 'b', 'a', 'b'];
    names.forEach((name, at) => void broadcaster.publish(event(at, 'MODIFIED', name)));
    const all: TestEvent[] = [];
    for (let round = 0; round < 10; round++) {
      all.push(...readAll(blocker));
      await turn();
    }
    expect(ids(all)).toEqual(range(0, 8));
    expect([ids(readAll(a)), ids(readAll(b))]).toEqual([
      [0, 2, 3, 6],
      [1, 4, 5, 7],
    ]);
    const late = broadcaster.watch({ topics: ['a'], replay: 2, overflow: 'drop-newest' });
    expect(ids(readAll(late))).toEqual([6]);
  });
});

describe('user code at the gate of one view', () => {
  test('may start a full watch in a view that was asked before: the event waits for it', async () => {
    let full: Watch<TestEvent> | undefined;
    const broadcaster = new Broadcaster<TestEvent>({ topicsOf, incoming: 0 });
    broadcaster.watch({ capacity: 5 });
    broadcaster.watch({
      topics: ['a'],
      capacity: 2,
      filter(one) {
        if (one.object.id === 1) full = broadcaster.watch({ capacity: 0 });
        return one.object.id === 0;
      },
    });
    expect([0, 1, 2].map((at) => broadcaster.tryPublish(event(at, 'MODIFIED', 'a')))).toEqual([true, true, false]);
    const read = fate(full!.next());
    expect(broadcaster.tryPublish(event(3, 'MODIFIED', 'a'))).toBe(true);
    await turn();
    expect(read.value).toEqual({ done: false, value: event(3, 'MODIFIED', 'a') });
    expect(full!.dropped).toBe(0);
  });

  test('may start a watch of a new topic: it gets what follows, at once', () => {
    let late: Watch<TestEvent> | undefined;
    const broadcaster = new Broadcaster<TestEvent>({
      replay: 10,
      incoming: 5,
      topicsOf: ({ object }) => [object.metadata.name, 'any'],
    });
    const asks = broadcaster.watch({
      capacity: 1,
      filter(one) {
        if (one.object.id === 1) late = broadcaster.watch({ topics: ['any'], overflow: 'drop-newest' });
        return one.object.id !== 1;
      },
    });
    for (let at = 0; at < 3; at++) broadcaster.tryPublish(event(at, 'MODIFIED', 'a'));
    expect(ids(readAll(asks))).toEqual([0, 2]);
    broadcaster.tryPublish(event(3, 'MODIFIED', 'a'));
    expect(late).toBeDefined();
    expect(ids(readAll(late!))).toEqual([2, 3]);
  });
});

describe('the end', () => {
  test('a read of the only watch of a topic settles, although its filter throws and the broadcaster closes in the same turn', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ topicsOf, capacity: 1, overflow: 'drop-newest' });
    const watch = broadcaster.watch({
      topics: ['a'],
      filter(one) {
        if (one.object.id > 0) throw new Error('filter');
        return false;
      },
    });
    const read = fate(watch.next());
    for (let at = 0; at < 200; at++) broadcaster.tryPublish(event(at, 'MODIFIED', 'a'));
    void broadcaster.shutdown();
    await turn();
    expect(read.state).toBe('rejected');
  });

  test('a read of a watch that has ended, in the onGap of another read, does not make the topic forget what others have not read', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ topicsOf });
    const reads: Fate<IteratorResult<TestEvent>>[] = [];
    const ended: Watch<TestEvent> = broadcaster.watch({
      ...{ topics: ['a'], overflow: 'drop-oldest', capacity: 2 },
      onGap: () => void reads.push(fate(ended.next()), fate(ended.next())),
    });
    const slow = broadcaster.watch({ topics: ['a'], overflow: 'drop-newest' });
    for (const id of range(0, 5)) broadcaster.tryPublish(event(id, 'MODIFIED', 'a'));
    ended.stop();
    reads.unshift(fate(ended.next()));
    await turn();
    expect(reads.map(({ value }) => value?.value?.object.id)).toEqual([3, 4, undefined]);
    expect(ids(readAll(slow))).toEqual(range(0, 5));
    broadcaster.tryPublish(event(5, 'MODIFIED', 'a'));
    expect(ids(readAll(slow))).toEqual([5]);
  });

  test('nor does it do so if the watch has not ended', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ topicsOf });
    const reads: Fate<IteratorResult<TestEvent>>[] = [];
    const watch: Watch<TestEvent> = broadcaster.watch({
      ...{ topics: ['a'], overflow: 'drop-newest', capacity: 4 },
      onGap: () => void reads.push(fate(watch.next())),
    });
    for (const id of range(0, 6)) broadcaster.tryPublish(event(id, 'MODIFIED', 'a'));
    expect(ids(readAll(watch))).toEqual(range(0, 4));
    broadcaster.tryPublish(event(6, 'MODIFIED', 'a'));
    expect(watch.queued).toBe(1); // set aside with its gap, so that the others stay in the log
    for (const id of range(7, 10)) broadcaster.tryPublish(event(id, 'MODIFIED', 'a'));
    reads.unshift(fate(watch.next()));
    await turn();
    expect(reads.map(({ value }) => value?.value?.object.id)).toEqual([6, 7]);
    expect(ids(readAll(watch))).toEqual([8, 9]);
    expect(watch.dropped).toBe(2);
  });

  test('giving up moves every view on, and no publish and no read stays behind', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ topicsOf, capacity: 1, incoming: 2 });
    const [a, b] = [broadcaster.watch({ topics: ['a'] }), broadcaster.watch({ topics: ['b', 'a'] })];
    const publishes = ['a', 'b', 'a', 'b', 'a', 'c'].map((name, at) => fate(broadcaster.publish(event(at, 'MODIFIED', name))));
    const stop = new AbortController();
    const closed = fate(broadcaster.shutdown({ signal: stop.signal }));
    await turn();
    expect(closed.state).toBe('pending');
    stop.abort(new Error('enough'));
    await turn();
    expect(closed).toMatchObject({ state: 'rejected', error: new Error('enough') });
    expect(publishes.map(({ state }) => state)).toEqual([...Array(3).fill('resolved'), ...Array(3).fill('rejected')]);
    expect([ids(readAll(a)), a.dropped, ids(readAll(b)), b.dropped]).toEqual([[0], 1, [0], 2]);
    expect([await a.next(), await b.next()]).toEqual(Array(2).fill({ done: true, value: undefined }));
  });
});
