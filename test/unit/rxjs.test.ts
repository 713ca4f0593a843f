import { concat, config, from, map, NEVER, Observable, of, repeat, retry, Subject, share, take, throwError, toArray } from 'rxjs';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { fromObservable, observe, toObservable } from '../../src/adapters/rxjs.ts';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import { filter } from '../../src/broadcast/filter.ts';
import { FakeWatcher } from '../../src/testing/fakes/fakes.ts';
import { isWatchError } from '../../src/watch/errors.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { OVERFLOWS } from '../../src/watch/overflow.ts';
import { fromAsyncIterable } from '../../src/watch/pull-watch.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { eventually } from '../eventually.ts';
import { macrotask } from './support.ts';

type Count = WatchEvent<string, number>;
const count = (object: number): Count => ({ type: 'count', object });
const counts = (...objects: number[]): Count[] => objects.map(count);
const upTo = (length: number): Count[] => Array.from({ length }, (_, at) => count(at));
const done = { done: true, value: undefined };
const value = <T>(of: T): { done: false; value: T } => ({ done: false, value: of });

/** What an observer heard, in words. */
function hear(source: Observable<Count>): { heard: string[]; stop: () => void } {
  const heard: string[] = [];
  const subscription = source.subscribe({
    next: (event) => heard.push(String(event.object)),
    error: (error: Error) => heard.push(`error: ${error.message}`),
    complete: () => heard.push('complete'),
  });
  return { heard, stop: () => subscription.unsubscribe() };
}

function filled(...objects: number[]): FakeWatcher<Count> {
  const fake = new FakeWatcher<Count>({ capacity: 100 });
  for (const object of objects) void fake.action('count', object);
  return fake;
}

afterEach(() => {
  config.onUnhandledError = null;
});

describe('observe', () => {
  test('makes a watcher per subscription, at subscribe, and returns it at unsubscribe', async () => {
    const source = new Broadcaster<Count>();
    const events = observe(source);
    expect(source.watchers).toBe(0);
    const early = hear(events);
    await source.publish(count(1));
    const late = hear(events);
    expect(source.watchers).toBe(2);
    await source.publish(count(2));
    await macrotask();
    early.stop();
    expect(source.watchers).toBe(1);
    await source.publish(count(3));
    await macrotask();
    expect(early.heard).toEqual(['1', '2']);
    expect(late.heard).toEqual(['2', '3']);
    late.stop();
    expect(source.watchers).toBe(0);
  });

  test('completes with the broadcaster, after all events', async () => {
    const source = new Broadcaster<Count>();
    const { heard } = hear(observe(source));
    for (const event of counts(1, 2, 3)) source.tryPublish(event);
    void source.shutdown();
    await macrotask();
    expect(heard).toEqual(['1', '2', '3', 'complete']);
  });

  test('passes the options on: a prefix arrives before subscribe returns', async () => {
    const source = new Broadcaster<Count>();
    const missed: number[] = [];
    const { heard, stop } = hear(
      observe(source, {
        prefix: counts(1, 2, 3),
        filter: (event) => event.object !== 2,
        capacity: 2,
        overflow: 'drop-newest',
        onGap: (lost) => missed.push(lost),
      }),
    );
    expect(heard).toEqual(['1', '3']);
    await macrotask();
    for (const event of upTo(20)) source.tryPublish(event);
    await macrotask();
    source.tryPublish(count(99));
    await macrotask();
    expect(heard[2]).toBe('0');
    expect(heard.at(-1)).toBe('99');
    expect(missed).toEqual([20 - 1 - (heard.length - 3)]);
    stop();
  });

  test('a synchronous take(1) returns the watch inside subscribe', () => {
    const source = new Broadcaster<Count>();
    const { heard } = hear(observe(source, { prefix: counts(1, 2) }).pipe(take(1)));
    expect(heard).toEqual(['1', 'complete']);
    expect(source.watchers).toBe(0);
  });

  test('an unsubscribe inside next: no more events arrive, not even of the same batch', async () => {
    const source = new Broadcaster<Count>();
    const heard: number[] = [];
    const subscription = observe(source).subscribe((event) => {
      heard.push(event.object);
      if (event.object === 2) subscription.unsubscribe();
    });
    await macrotask();
    for (const event of counts(1, 2, 3)) source.tryPublish(event);
    await macrotask();
    expect(heard).toEqual([1, 2]);
    expect(source.watchers).toBe(0);
  });

  test('an observer may publish, and subscribe still returns', async () => {
    const source = new Broadcaster<Count>();
    const heard: number[] = [];
    const subscription = observe(source, { prefix: counts(0) }).subscribe((event) => {
      heard.push(event.object);
      if (event.object < 5) source.tryPublish(count(event.object + 1));
    });
    expect(heard).toEqual([0]);
    await macrotask();
    expect(heard).toEqual([0, 1, 2, 3, 4, 5]);
    subscription.unsubscribe();
  });

  test('an observer that throws affects nobody else: RxJS reports the error, and everyone continues', async () => {
    const reported: unknown[] = [];
    config.onUnhandledError = (error) => reported.push((error as Error).message);
    const source = new Broadcaster<Count>();
    const neighbour = hear(observe(source));
    const heard: number[] = [];
    const subscription = observe(source).subscribe((event) => {
      heard.push(event.object);
      throw new Error('observer');
    });
    source.tryPublish(count(1));
    source.tryPublish(count(2));
    await eventually(() => expect(reported).toEqual(['observer', 'observer']));
    expect(heard).toEqual([1, 2]);
    expect(neighbour.heard).toEqual(['1', '2']);
    subscription.unsubscribe();
    neighbour.stop();
    expect(source.watchers).toBe(0);
  });

  test('an operator that throws errors its own observer and returns only its watch', async () => {
    const source = new Broadcaster<Count>();
    const neighbour = hear(observe(source));
    const failing = observe(source).pipe(
      map((event) => {
        if (event.object === 2) throw new Error('operator');
        return event;
      }),
    );
    const { heard } = hear(failing);
    for (const event of counts(1, 2, 3)) source.tryPublish(event);
    await macrotask();
    expect(heard).toEqual(['1', 'error: operator']);
    expect(source.watchers).toBe(1);
    expect(neighbour.heard).toEqual(['1', '2', '3']);
    neighbour.stop();
  });

  test('an error of the watch is an error notification', async () => {
    const source = new Broadcaster<Count>();
    const failing = observe(source, {
      filter: (event) => {
        if (event.object === 2) throw new Error('filter');
        return true;
      },
    });
    const { heard } = hear(failing);
    for (const event of counts(1, 2, 3)) source.tryPublish(event);
    await macrotask();
    expect(heard).toEqual(['1', 'error: filter']);
    expect(source.watchers).toBe(0);
  });

  test('errors of watch() are error notifications: CLOSED, an invalid option, an aborted signal', async () => {
    const source = new Broadcaster<Count>();
    expect(hear(observe(source, { capacity: -1 })).heard[0]).toMatch(/^error: capacity/);
    expect(hear(observe(source, { signal: AbortSignal.abort(new Error('aborted')) })).heard).toEqual(['error: aborted']);
    await source.shutdown();
    let closed: unknown;
    observe(source).subscribe({
      error: (error: unknown) => {
        closed = error;
      },
    });
    expect(isWatchError(closed, 'CLOSED')).toBe(true);
  });

  test('an abort completes it, and leaves no listener', async () => {
    const source = new Broadcaster<Count>();
    const controller = new AbortController();
    const removed = vi.spyOn(controller.signal, 'removeEventListener');
    const { heard } = hear(observe(source, { signal: controller.signal }));
    controller.abort();
    await macrotask();
    expect(heard).toEqual(['complete']);
    const { stop } = hear(observe(source, { signal: new AbortController().signal }));
    stop();
    expect(removed).toHaveBeenCalled();
    expect(source.watchers).toBe(0);
  });
});

describe('toObservable', () => {
  test('starts with the queued events, before subscribe returns, and completes with the watch', async () => {
    const fake = filled(1, 2);
    const { heard } = hear(toObservable(fake));
    expect(heard).toEqual(['1', '2']);
    void fake.action('count', 3);
    fake.stop();
    await macrotask();
    expect(heard).toEqual(['1', '2', '3', 'complete']);
  });

  test('reads nothing before a subscription; unsubscribing returns the watch while a read is pending', async () => {
    const fake = filled(1);
    const observable = toObservable(fake);
    await macrotask();
    expect(fake.queued).toBe(1);
    const { heard, stop } = hear(observable);
    await macrotask();
    stop();
    expect(fake.isStopped()).toBe(true);
    await macrotask();
    expect(heard).toEqual(['1']);
  });

  test('a synchronous take(1) leaves the rest unread and the watch returned', async () => {
    const fake = filled(1, 2, 3);
    const { heard } = hear(toObservable(fake).pipe(take(1)));
    expect(heard).toEqual(['1', 'complete']);
    await null; // until then, another subscription may continue
    expect([fake.isStopped(), fake.dropped]).toEqual([true, 2]);
  });

  test('a second subscription is an error that suggests what to do; share() serves several', async () => {
    const fake = filled(1);
    const observable = toObservable(fake);
    const first = hear(observable);
    let failure: unknown;
    observable.subscribe({
      error: (error: unknown) => {
        failure = error;
      },
    });
    expect(isWatchError(failure, 'INVALID_ARGUMENT')).toBe(true);
    expect((failure as Error).message).toContain('share()');
    void fake.action('count', 2);
    await macrotask();
    expect(first.heard).toEqual(['1', '2']);
    first.stop();
    expect(hear(observable).heard[0]).toMatch(/^error: toObservable/);
    const shared = toObservable(filled(1)).pipe(share());
    const two = [hear(shared), hear(shared)];
    expect(two.map(({ heard }) => heard)).toEqual([['1'], []]);
  });

  test('errors during subscribe and later are error notifications after the events', async () => {
    const fn = (event: Count): Count => {
      if (event.object === 2) throw new Error('fn');
      return event;
    };
    const early = filled(1, 2);
    expect(hear(toObservable(filter(early, fn))).heard).toEqual(['1', 'error: fn']);
    expect(early.isStopped()).toBe(true);
    const late = filled();
    const { heard } = hear(toObservable(filter(late, fn)));
    void late.action('count', 1);
    void late.action('count', 2);
    await macrotask();
    expect(heard).toEqual(['1', 'error: fn']);
    expect(late.isStopped()).toBe(true);
  });

  test('does not wait when `queued` is only an upper bound', async () => {
    const fake = filled(1, 2, 3);
    const { heard, stop } = hear(toObservable(filter(fake, (event) => (event.object === 3 ? event : undefined))));
    expect(heard).toEqual(['3']);
    stop();
  });

  test('takes a whole batch per turn of the watch, not a turn per event', async () => {
    let pulls = 0;
    const ready = upTo(1_000);
    const fake = filled();
    const counted: Watch<Count> = Object.assign(fake, {
      batches: () => ({
        next: async () => {
          pulls++;
          return ready.length > 0 ? { done: false as const, value: ready.splice(0) } : done;
        },
        return: async () => done,
        [Symbol.asyncIterator]() {
          return this;
        },
      }),
    }) as unknown as Watch<Count>;
    const { heard } = hear(toObservable(counted));
    await macrotask();
    expect([heard.length, pulls]).toEqual([1_001, 2]);
  });
});

async function all<E>(watch: Watch<E>): Promise<E[]> {
  const events: E[] = [];
  for await (const event of watch) events.push(event);
  return events;
}

async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  );
}

describe('fromObservable', () => {
  test('subscribes at once; a synchronous source loses nothing, even beyond the capacity', async () => {
    expect(await all(fromObservable(from(upTo(5_000)), { capacity: 3 }))).toEqual(upTo(5_000));
    expect(await all(fromObservable(of()))).toEqual([]);
  });

  test('completion ends the watch after the queued events', async () => {
    const subject = new Subject<Count>();
    const watch = fromObservable(subject);
    subject.next(count(1));
    const reads = [watch.next(), watch.next(), watch.next()];
    subject.next(count(2));
    subject.complete();
    expect(await Promise.all(reads)).toEqual([value(count(1)), value(count(2)), done]);
    expect(watch.stopped).toBe(true);
  });

  test('an error rejects one read, after the queued events, for every way to read', async () => {
    const failing = (): Observable<Count> =>
      concat(
        from(counts(1, 2)),
        throwError(() => new Error('source')),
      );
    const watch = fromObservable(failing());
    expect(watch.stopped).toBe(true);
    expect(await watch.next()).toEqual(value(count(1)));
    expect(await watch.next()).toEqual(value(count(2)));
    await expect(watch.next()).rejects.toThrow('source');
    expect(await watch.next()).toEqual(done);
    const polled = fromObservable(failing());
    expect([polled.tryNext(), polled.tryNext()]).toEqual(counts(1, 2));
    expect(() => polled.tryNext()).toThrow('source');
    expect(polled.tryNext()).toBeUndefined();
    const batches = fromObservable(failing()).batches();
    expect(await batches.next()).toEqual(value(counts(1, 2)));
    await expect(batches.next()).rejects.toThrow('source');
    const subject = new Subject<Count>();
    const waiting = fromObservable(subject);
    const rejected = expect(waiting.next()).rejects.toThrow('late');
    subject.error(new Error('late'));
    await rejected;
  });

  test.each(['stop', 'return'] as const)('%s unsubscribes at once and settles reads', async (end) => {
    const subject = new Subject<Count>();
    const watch = fromObservable(subject);
    const reads = [watch.next(), watch.next()];
    expect(subject.observed).toBe(true);
    void watch[end]();
    expect(subject.observed).toBe(false);
    expect(await Promise.all(reads)).toEqual([done, done]);
    expect(watch.stopped).toBe(true);
  });

  test('after stop, queued events are read; after return, they are gone and counted', async () => {
    const stopped = fromObservable(concat(from(counts(1, 2)), NEVER));
    stopped.stop();
    expect(await all(stopped)).toEqual(counts(1, 2));
    const full = fromObservable(concat(from(upTo(5)), NEVER), { capacity: 1 });
    full.stop();
    expect(await all(full)).toEqual(upTo(5));
    const returned = fromObservable(concat(from(counts(1, 2)), NEVER));
    expect(returned.queued).toBe(2);
    await returned.return();
    expect([returned.queued, returned.dropped]).toEqual([0, 2]);
    expect(await returned.next()).toEqual(done);
  });

  test('wait: holds capacity + incoming events, then fails with OVERLOADED after all of them, and unsubscribes', async () => {
    const subject = new Subject<Count>();
    const watch = fromObservable(subject, { capacity: 2, incoming: 3 });
    for (const event of upTo(5)) subject.next(event);
    expect(subject.observed).toBe(true);
    subject.next(count(5));
    expect(subject.observed).toBe(false);
    for (const event of upTo(5)) expect(await watch.next()).toEqual(value(event));
    const failure = await failureOf(watch.next());
    expect(isWatchError(failure, 'OVERLOADED') && failure.limit).toBe(5);
    expect(await watch.next()).toEqual(done);
  });

  test('wait: an endless synchronous source is unsubscribed as well, by default at 10,100 events', async () => {
    let made = 0;
    const endless = new Observable<Count>((subscriber) => {
      while (!subscriber.closed) subscriber.next(count(made++));
    });
    const watch = fromObservable(endless);
    expect(made).toBe(10_101);
    let events = 0;
    const failure = await failureOf(
      (async () => {
        for await (const batch of watch.batches()) events += batch.length;
      })(),
    );
    expect(isWatchError(failure, 'OVERLOADED') && failure.limit).toBe(10_100);
    expect(events).toBe(10_100);
  });

  test('wait: uses the room that a reader makes', async () => {
    const subject = new Subject<Count>();
    const watch = fromObservable(subject, { capacity: 1, incoming: 0 });
    for (const event of upTo(10)) {
      subject.next(event);
      expect(watch.tryNext()).toEqual(event);
      expect(watch.tryNext()).toBeUndefined();
    }
    expect(subject.observed).toBe(true);
    void watch.return();
  });

  test.each(OVERFLOWS)(
    '%s: every pending read gets an event of the same turn, also with no room beside them',
    async (overflow) => {
      const subject = new Subject<Count>();
      const watch = fromObservable(subject, { capacity: 0, incoming: 0, overflow });
      const reads = [watch.next(), watch.next(), watch.next()];
      for (const event of upTo(3)) subject.next(event);
      expect(await Promise.all(reads)).toEqual(upTo(3).map(value));
      expect([watch.dropped, subject.observed]).toEqual([0, true]);
      await watch.return();
    },
  );

  test('wait: all held events are queued, and dropped by return', async () => {
    const subject = new Subject<Count>();
    const watch = fromObservable(subject, { capacity: 1, incoming: 10 });
    for (const event of upTo(5)) subject.next(event);
    expect(watch.queued).toBe(5);
    await watch.return();
    expect([watch.queued, watch.dropped]).toEqual([0, 5]);
  });

  test('an error goes to the first pending read, not to a poll', async () => {
    const subject = new Subject<Count>();
    const watch = fromObservable(subject);
    const reads = [watch.next(), watch.next()] as const;
    subject.error(new Error('source'));
    expect(watch.tryNext()).toBeUndefined();
    await expect(reads[0]).rejects.toThrow('source');
    expect(await reads[1]).toEqual(done);
  });

  test('an onGap that throws after the source has failed: one read rejects, not two', async () => {
    const subject = new Subject<Count>();
    const onGap = (): void => {
      throw new Error('onGap');
    };
    const watch = fromObservable(subject, { capacity: 1, overflow: 'drop-oldest', onGap });
    for (const event of upTo(3)) subject.next(event);
    subject.error(new Error('source'));
    await expect(watch.next()).rejects.toThrow('onGap');
    expect(await watch.next()).toEqual(done);
  });

  test('drop-newest and drop-oldest: bounded, with losses counted and reported', async () => {
    const missed: number[] = [];
    const onGap = (lost: number): number => missed.push(lost);
    const newest = fromObservable(from(upTo(10)), { capacity: 3, overflow: 'drop-newest', onGap });
    expect([newest.queued, newest.dropped]).toEqual([3, 7]);
    expect(await all(newest)).toEqual(counts(0, 1, 2));
    const oldest = fromObservable(from(upTo(10)), { capacity: 3, overflow: 'drop-oldest', onGap });
    expect(await all(oldest)).toEqual(counts(7, 8, 9));
    expect(oldest.dropped).toBe(7);
    expect(missed).toEqual([7]);
  });

  test('disconnect: delivers what fits, one ERROR event, then the end; unsubscribes the source', async () => {
    const subject = new Subject<Count>();
    const watch = fromObservable(subject, { capacity: 2, overflow: 'disconnect' });
    for (const event of upTo(4)) subject.next(event);
    expect(subject.observed).toBe(false);
    const [first, second, last, ...rest] = await all(watch);
    expect([first, second]).toEqual(upTo(2));
    expect(last).toMatchObject({ type: 'ERROR', object: { code: 410, reason: 'Expired' } });
    expect(rest).toEqual([]);
  });

  test('coalesce folds by keyOf', async () => {
    const events: Count[] = [
      { type: 'ADDED', object: 1 },
      { type: 'ADDED', object: 2 },
      { type: 'MODIFIED', object: 1 },
    ];
    const watch = fromObservable(from(events), { overflow: 'coalesce', keyOf: (event) => String(event.object) });
    expect(await all(watch)).toEqual([
      { type: 'ADDED', object: 1 },
      { type: 'ADDED', object: 2 },
    ]);
    expect(watch.dropped).toBe(1);
  });

  test('a failing watch unsubscribes: keyOf or onGap throws', async () => {
    const subject = new Subject<Count>();
    const watch = fromObservable(subject, {
      capacity: 1,
      overflow: 'drop-oldest',
      onGap: () => {
        throw new Error('onGap');
      },
    });
    for (const event of upTo(3)) subject.next(event);
    expect(await failureOf(watch.next())).toMatchObject({ message: 'onGap' });
    expect(subject.observed).toBe(false);
    expect(await watch.next()).toEqual(done);
  });

  test('an invalid event fails the watch', async () => {
    const watch = fromObservable(of(null as unknown as Count));
    expect(isWatchError(await failureOf(watch.next()), 'INVALID_ARGUMENT')).toBe(true);
  });

  test.each([{ capacity: -1 }, { incoming: 0.5 }, { overflow: 'sometimes' as 'wait' }])(
    'refuses %o, subscribing to nothing',
    (options) => {
      const subject = new Subject<Count>();
      expect(() => fromObservable(subject, options)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
      expect(subject.observed).toBe(false);
    },
  );

  test('a source that reads its own watch gets its events in order', async () => {
    const subject = new Subject<Count>();
    const watch = fromObservable(subject);
    const seen: unknown[] = [];
    subject.subscribe(() => seen.push(watch.tryNext()));
    for (const event of upTo(3)) subject.next(event);
    expect(seen).toEqual(upTo(3));
    await watch.return();
  });

  test('a round trip through an observable', async () => {
    const back = toObservable(fromObservable(from(upTo(300))));
    const events = await new Promise((resolve) => back.pipe(toArray()).subscribe(resolve));
    expect(events).toEqual(upTo(300));
  });

  test('a watch of an async iterable can be observed and converted back', async () => {
    const watch = fromObservable(
      toObservable(
        fromAsyncIterable(
          (async function* () {
            yield* upTo(3);
          })(),
        ),
      ),
    );
    expect(await all(watch)).toEqual(upTo(3));
  });
});

describe('a subscription that follows another at once', () => {
  const failsAt = (...objects: number[]) => {
    const left = new Set(objects);
    return map((event: Count) => {
      if (left.delete(event.object)) throw new Error('mine');
      return event;
    });
  };

  test.each(OVERFLOWS)('with retry, continues with the queue, as with a Subject (%s)', async (overflow) => {
    const source = new Broadcaster<Count>({ capacity: 100, overflow, keyOf: ({ object }) => String(object) });
    const subject = new Subject<Count>();
    const own = hear((observe(source) as Observable<Count>).pipe(failsAt(3, 4, 9), retry()));
    const reference = hear(subject.pipe(failsAt(3, 4, 9), retry()));
    for (const event of upTo(12)) {
      subject.next(event);
      await source.publish(event);
    }
    await macrotask();
    expect(own.heard).toEqual(reference.heard);
    expect(source.watchers).toBe(1);
    own.stop();
    expect(source.watchers).toBe(0);
  });

  test('with repeat, or another subscription in the observer, continues as well', async () => {
    const source = new Broadcaster<Count>();
    const { heard } = hear(observe(source).pipe(take(2), repeat(3)));
    for (const event of upTo(10)) await source.publish(event);
    await macrotask();
    expect(heard).toEqual(['0', '1', '2', '3', '4', '5', 'complete']);
    expect(source.watchers).toBe(0);
  });

  test('with retry under wait, never lets the publisher past a full queue', async () => {
    const source = new Broadcaster<Count>({ capacity: 1, incoming: 0 });
    const { heard } = hear(observe(source).pipe(failsAt(0, 1, 2), retry()));
    for (const event of upTo(6)) await source.publish(event);
    await source.shutdown();
    await macrotask();
    expect(heard).toEqual(['3', '4', '5', 'complete']);
  });

  test('with a retry later, or without one, the watch is returned at once', async () => {
    vi.useFakeTimers();
    try {
      const source = new Broadcaster<Count>();
      const { heard } = hear(observe(source).pipe(failsAt(0), retry({ delay: 1_000 })));
      const other = hear(observe(source).pipe(failsAt(0)));
      for (const event of upTo(3)) await source.publish(event);
      await vi.advanceTimersByTimeAsync(999);
      expect([source.watchers, other.heard]).toEqual([0, ['error: mine']]);
      await vi.advanceTimersByTimeAsync(1);
      await source.publish(count(9));
      await vi.advanceTimersByTimeAsync(1);
      expect(heard).toEqual(['9']);
    } finally {
      vi.useRealTimers();
    }
  });

  test('begins where prefix, replay or after say', async () => {
    for (const options of [{ prefix: counts(7) }, { replay: 1 }]) {
      const source = new Broadcaster<Count>({ replay: 5 });
      await source.publish(count(7));
      const { heard, stop } = hear(observe(source, options).pipe(failsAt(8), retry()));
      expect(heard).toEqual(['7']); // before `subscribe` returned
      for (const object of [8, 1, 2]) void source.publish(count(object));
      await macrotask();
      expect(heard.slice(0, 2)).toEqual(['7', 'prefix' in options ? '7' : '2']);
      stop();
    }
  });

  test('of one watch continues with what was queued before the first one, whichever of these events ends it', async () => {
    const watch = filled(1, 2, 3, 4);
    const { heard } = hear(toObservable(watch).pipe(failsAt(1, 2, 4, 6), retry()));
    expect(heard).toEqual([]);
    await macrotask();
    for (const object of [5, 6, 7]) void watch.action('count', object);
    watch.stop();
    await macrotask();
    expect(heard).toEqual(['3', '5', '7', 'complete']);
    const { heard: repeated } = hear(toObservable(filled(1, 2, 3, 4, 5)).pipe(take(2), repeat(2)));
    await macrotask();
    expect(repeated).toEqual(['1', '2', '3', '4', 'complete']);
  });

  test('of one watch after an event that was queued, but later, is refused, and the watch is returned', async () => {
    const watch = filled(1, 2);
    const events = toObservable(watch);
    hear(events.pipe(failsAt(1)));
    await null;
    expect([watch.isStopped(), watch.dropped]).toEqual([true, 1]);
    expect(hear(events).heard).toEqual([expect.stringContaining('a second subscription')]);
  });

  test('of one watch continues with it, and every other one is refused', async () => {
    const watch = filled(1, 2, 3, 4);
    const events = toObservable<Count>(fromAsyncIterable(watch));
    const { heard } = hear(events.pipe(failsAt(2), retry()));
    await macrotask();
    expect(heard).toEqual(['1', '3', '4']);
    expect(hear(events).heard).toEqual([expect.stringContaining('a second subscription')]);
  });
});
