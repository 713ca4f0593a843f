import { describe, expect, test } from 'vitest';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import { filter, Recorder } from '../../src/broadcast/filter.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { fromAsyncIterable } from '../../src/watch/pull-watch.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { macrotask } from './support.ts';

type Count = WatchEvent<'count', number>;
const count = (object: number): Count => ({ type: 'count', object });
const numbers = (...from: number[]): Count[] => from.map(count);
const done = { done: true, value: undefined };
const value = <T>(of: T): { done: false; value: T } => ({ done: false, value: of });
const even = (event: Count): Count | undefined => (event.object % 2 === 0 ? event : undefined);

function setUp(...objects: number[]): {
  source: Broadcaster<Count>;
  upstream: Watch<Count>;
  publish: (...objects: number[]) => void;
} {
  const source = new Broadcaster<Count>({ overflow: 'drop-newest' });
  const upstream = source.watch();
  const publish = (...more: number[]): void => {
    for (const object of more) source.tryPublish(count(object));
  };
  publish(...objects);
  return { source, upstream, publish };
}

async function all<E>(watch: Watch<E>): Promise<E[]> {
  const events: E[] = [];
  for await (const event of watch) events.push(event);
  return events;
}

describe('filter', () => {
  test('TestFilter: passes on the events that fn keeps, in order, and ends with its source', async () => {
    const source = new Broadcaster<WatchEvent<string, string>>();
    const upstream = source.watch();
    for (const [type, object] of [
      ['ADDED', 'foo'],
      ['MODIFIED', 'bar'],
      ['DELETED', 'baz'],
      ['ERROR', 'hello'],
    ] as const) {
      await source.publish({ type, object });
    }
    await source.shutdown();
    const kept = await all(filter(upstream, (event) => (event.object.startsWith('b') ? undefined : event)));
    expect(kept).toEqual([
      { type: 'ADDED', object: 'foo' },
      { type: 'ERROR', object: 'hello' },
    ]);
  });

  test('TestFilterStop: stop goes upstream; events queued there are still delivered', async () => {
    const { upstream, publish } = setUp(1, 2, 3, 4);
    const filtered = filter(upstream, even);
    expect(await filtered.next()).toEqual(value(count(2)));
    filtered.stop();
    filtered.stop();
    expect([upstream.stopped, filtered.stopped]).toEqual([true, true]);
    publish(6);
    expect(await all(filtered)).toEqual([count(4)]);
    expect(await filtered.next()).toEqual(done);
  });

  test('is lazy: fn runs on demand, once per event, in order', async () => {
    const { upstream, publish } = setUp(1, 2, 3, 4);
    const calls: number[] = [];
    const filtered = filter(upstream, (event) => {
      calls.push(event.object);
      return even(event);
    });
    await macrotask();
    expect(calls).toEqual([]);
    expect(filtered.tryNext()).toEqual(count(2));
    expect(calls).toEqual([1, 2]);
    expect(await filtered.next()).toEqual(value(count(4)));
    const read = filtered.next();
    publish(5, 6);
    expect(await read).toEqual(value(count(6)));
    expect(calls).toEqual([1, 2, 3, 4, 5, 6]);
  });

  test('can also map events; only undefined removes an event', async () => {
    const { upstream } = setUp(0, 1, 2, 3, 4);
    const answers: (number | string | boolean | null | undefined)[] = [0, '', false, null, undefined];
    const filtered = filter(upstream, (event) => answers[event.object]);
    expect(await filtered.batches().next()).toEqual(value([0, '', false, null]));
  });

  test('a batch takes everything that is queued, even after a pending read', async () => {
    const { upstream, publish } = setUp(1, 2, 3, 4);
    const batches = filter(upstream, even).batches();
    expect(await batches.next()).toEqual(value([count(2), count(4)]));
    const waiting = batches.next();
    publish(5, 6, 7, 8);
    expect(await waiting).toEqual(value([count(6), count(8)]));
  });

  test('a batch that waited leaves no read pending upstream: fn sees the next event when that is read', async () => {
    const { upstream, publish } = setUp();
    const seen: number[] = [];
    const filtered = filter(upstream, (event) => {
      seen.push(event.object);
      return event;
    });
    const waiting = filtered.batches().next();
    publish(1);
    expect(await waiting).toEqual(value([count(1)]));
    publish(2);
    await macrotask();
    expect([seen, upstream.queued]).toEqual([[1], 1]);
    expect(filtered.tryNext()).toEqual(count(2));
  });

  test('a poll leaves no read pending upstream: the next published event is there at once', () => {
    const { upstream, publish } = setUp();
    const filtered = filter(upstream, even);
    expect(filtered.tryNext()).toBeUndefined();
    publish(1, 2);
    expect(upstream.queued).toBe(2);
    expect(filtered.tryNext()).toEqual(count(2));
  });

  test('queued is an upper bound, and counts the event at hand', async () => {
    const { upstream, publish } = setUp(1, 2, 3);
    const filtered = filter(upstream, even);
    expect(filtered.queued).toBe(3);
    filtered.tryNext();
    expect(filtered.queued).toBe(1);
    expect(filtered.tryNext()).toBeUndefined();
    expect(filtered.queued).toBe(0);
    publish(5, 7);
    await filtered.return();
    expect(filtered.queued).toBe(0);
  });

  test('a batch during which fn returns the watch is counted: its read gets nothing', async () => {
    const { upstream, publish } = setUp();
    const filtered = filter(upstream, (event) => {
      if (event.object === 3) void filtered.return();
      return event;
    });
    const batch = filtered.batches().next();
    await macrotask();
    publish(1, 2, 3, 4);
    expect(await batch).toEqual(done);
    expect(filtered.dropped).toBe(4);
  });

  test('dropped counts losses upstream, not events that fn removes', async () => {
    const source = new Broadcaster<Count>({ overflow: 'drop-newest', capacity: 2 });
    const filtered = filter(source.watch(), even);
    for (const event of numbers(1, 2, 4, 6)) source.tryPublish(event);
    expect(await filtered.batches().next()).toEqual(value([count(2)]));
    expect(filtered.dropped).toBe(2);
  });

  test('return settles pending reads, returns upstream, and counts the event in transit', async () => {
    const { source, upstream, publish } = setUp();
    const filtered = filter(upstream, even);
    const reads = [filtered.next(), filtered.batches().next()];
    expect(await filtered.return()).toEqual(done);
    expect(await Promise.all<unknown>(reads)).toEqual([done, done]);
    expect([upstream.stopped, source.watchers]).toEqual([true, 0]);
    const next = setUp();
    const other = filter(next.upstream, even);
    void other.next();
    next.publish(2);
    await other.return();
    await macrotask();
    expect(other.dropped).toBe(1);
    publish(2);
    expect(await other.next()).toEqual(done);
  });

  test('stop settles pending reads', async () => {
    const { upstream } = setUp();
    const filtered = filter(upstream, even);
    const reads = [filtered.next(), filtered.next()];
    filtered.stop();
    expect(await Promise.all(reads)).toEqual([done, done]);
  });

  test('stopped follows upstream', async () => {
    const { upstream } = setUp(2);
    const filtered = filter(upstream, even);
    expect(filtered.stopped).toBe(false);
    upstream.stop();
    expect(filtered.stopped).toBe(true);
    expect(await all(filtered)).toEqual([count(2)]);
  });

  const boom = (event: Count): Count => {
    if (event.object === 3) throw new Error('boom');
    return event;
  };

  test('a throwing fn ends only this watch: reported once, upstream returned, others continue', async () => {
    const { source, upstream, publish } = setUp(1, 2, 3, 4);
    const neighbour = source.watch();
    const filtered = filter(upstream, boom);
    expect(await filtered.next()).toEqual(value(count(1)));
    expect(await filtered.next()).toEqual(value(count(2)));
    await expect(filtered.next()).rejects.toThrow('boom');
    expect([filtered.stopped, upstream.stopped, source.watchers]).toEqual([true, true, 1]);
    expect(await filtered.next()).toEqual(done);
    expect(filtered.tryNext()).toBeUndefined();
    publish(5);
    expect(neighbour.tryNext()).toEqual(count(5));
  });

  test('a throwing fn does not cost a batch the events before it', async () => {
    const { upstream } = setUp(1, 2, 3, 4);
    const batches = filter(upstream, boom).batches();
    expect(await batches.next()).toEqual(value(numbers(1, 2)));
    await expect(batches.next()).rejects.toThrow('boom');
    expect(await batches.next()).toEqual(done);
  });

  test('a throwing fn rejects one pending read, the others are done', async () => {
    const { source, upstream, publish } = setUp();
    const filtered = filter(upstream, boom);
    const reads = [filtered.next(), filtered.next(), filtered.next()];
    publish(1, 3, 4);
    expect(await reads[0]).toEqual(value(count(1)));
    await expect(reads[1]).rejects.toThrow('boom');
    expect(await reads[2]).toEqual(done);
    expect(source.watchers).toBe(0);
  });

  test('an error of upstream is reported once', async () => {
    async function* failing(): AsyncGenerator<Count> {
      yield count(1);
      throw new Error('upstream');
    }
    const filtered = filter(fromAsyncIterable(failing()), (event) => event);
    expect(await filtered.next()).toEqual(value(count(1)));
    await expect(filtered.next()).rejects.toThrow('upstream');
    expect(await filtered.next()).toEqual(done);
  });

  test('fn may read the watch it filters: order is kept, nothing is repeated', async () => {
    const { upstream } = setUp(1, 2, 3, 4, 6);
    const inner: unknown[] = [];
    const reads: Promise<unknown>[] = [];
    const filtered: Watch<Count> = filter(upstream, (event) => {
      if (event.object === 1) {
        inner.push(filtered.tryNext());
        reads.push(filtered.next());
      }
      return even(event);
    });
    expect(filtered.tryNext()).toEqual(count(2));
    expect(inner).toEqual([undefined]);
    expect(await Promise.all(reads)).toEqual([value(count(4))]);
    expect(filtered.tryNext()).toEqual(count(6));
  });

  test('fn may read, stop and return the watch during a pending read', async () => {
    const { upstream, publish } = setUp();
    const reads: Promise<unknown>[] = [];
    const filtered: Watch<Count> = filter(upstream, (event) => {
      if (event.object === 1) reads.push(filtered.next());
      if (event.object === 4) filtered.stop();
      if (event.object === 6) void filtered.return();
      return even(event);
    });
    reads.push(filtered.next());
    publish(1, 2, 4, 6, 8);
    await macrotask();
    expect(await Promise.all(reads)).toEqual([value(count(2)), value(count(4))]);
    expect(await filtered.next()).toEqual(done);
    expect(filtered.dropped).toBe(upstream.dropped + 1);
  });

  test("an error that fn throws after it has returned the watch is nobody's", async () => {
    const { publish, upstream } = setUp(1, 2);
    const filtered: Watch<Count> = filter(upstream, () => {
      void filtered.return();
      throw new Error('too late');
    });
    expect(filtered.tryNext()).toBeUndefined();
    publish(3);
    expect(await filtered.next()).toEqual(done);
    expect(await filtered.next()).toEqual(done);
  });

  test('fn may publish: its events come after the current one', async () => {
    const { upstream, publish } = setUp(1, 2);
    const filtered = filter(upstream, (event) => {
      if (event.object < 3) publish(event.object + 10);
      return event;
    });
    expect(await filtered.batches().next()).toEqual(value(numbers(1, 2, 11, 12)));
  });

  test('filters can be stacked', async () => {
    const { source, upstream, publish } = setUp(1, 2, 3, 4, 5, 6);
    const halved = filter(filter(upstream, even), (event) => (event.object > 2 ? event.object / 2 : undefined));
    expect(await halved.batches().next()).toEqual(value([2, 3]));
    const read = halved.next();
    publish(7, 8);
    expect(await read).toEqual(value(4));
    await halved.return();
    expect(source.watchers).toBe(0);
  });
});

describe('Recorder', () => {
  test('TestRecorder: records what passes, in order, and passes it on', async () => {
    const events: WatchEvent<string, string>[] = [
      { type: 'ADDED', object: 'foo' },
      { type: 'ADDED', object: 'bar' },
      { type: 'ADDED', object: 'baz' },
      { type: 'MODIFIED', object: 'foo' },
      { type: 'DELETED', object: 'bar' },
    ];
    const source = new Broadcaster<WatchEvent<string, string>>();
    const recorder = new Recorder(source.watch());
    for (const event of events) await source.publish(event);
    await source.shutdown();
    expect(recorder.events()).toEqual([]);
    expect(await all(recorder)).toEqual(events);
    expect(recorder.events()).toEqual(events);
    expect(recorder.events()[0]).toBe(events[0]);
  });

  test('events returns a copy', () => {
    const { upstream, publish } = setUp(1);
    const recorder = new Recorder(upstream);
    recorder.tryNext();
    const snapshot = recorder.events();
    snapshot.push(count(99));
    publish(2);
    recorder.tryNext();
    expect(recorder.events()).toEqual(numbers(1, 2));
    expect(snapshot).toEqual(numbers(1, 99));
  });

  test('stop and return reach upstream', async () => {
    const { source, upstream } = setUp(1, 2);
    const recorder = new Recorder(upstream);
    recorder.stop();
    expect(await all(recorder)).toEqual(numbers(1, 2));
    const other = new Recorder(source.watch());
    await other.return();
    expect(source.watchers).toBe(0);
  });
});
