import { describe, expect, test } from 'vitest';
import { emptyWatch, fromAsyncIterable, type PullSource, PullWatch } from '../../src/watch/pull-watch.ts';
import { macrotask } from './support.ts';

const done = { done: true, value: undefined } as const;
const value = <T>(of: T): { done: false; value: T } => ({ done: false, value: of });

/** A source whose pulls settle by hand. */
class ManualSource implements PullSource<number> {
  pulls: { resolve: (result: IteratorResult<number, unknown>) => void; reject: (error: unknown) => void }[] = [];
  asked = 0;
  cancelled = 0;
  pull(): Promise<IteratorResult<number, unknown>> {
    this.asked++;
    return new Promise((resolve, reject) => this.pulls.push({ resolve, reject }));
  }
  cancel(): void {
    this.cancelled++;
  }
  async bring(event: number): Promise<void> {
    this.pulls.shift()?.resolve(value(event));
    await macrotask();
  }
  async finish(): Promise<void> {
    this.pulls.shift()?.resolve(done);
    await macrotask();
  }
  async fail(error: unknown): Promise<void> {
    this.pulls.shift()?.reject(error);
    await macrotask();
  }
}

describe('PullWatch', () => {
  test('requests nothing before a read, and one event at a time', async () => {
    const source = new ManualSource();
    const watch = new PullWatch(source);
    await macrotask();
    expect(source.asked).toBe(0);
    const reads = [watch.next(), watch.next()];
    expect(source.asked).toBe(1);
    await source.bring(1);
    expect(source.asked).toBe(2);
    await source.bring(2);
    expect(await Promise.all(reads)).toEqual([value(1), value(2)]);
    expect(source.asked).toBe(2);
  });

  test('tryNext starts one pull, and finds the event later', async () => {
    const source = new ManualSource();
    const watch = new PullWatch(source);
    expect([watch.tryNext(), watch.tryNext()]).toEqual([undefined, undefined]);
    expect([source.asked, watch.queued]).toEqual([1, 0]);
    await source.bring(1);
    expect(watch.queued).toBe(1);
    expect(source.asked).toBe(1);
    expect(watch.tryNext()).toBe(1);
    expect(watch.queued).toBe(0);
  });

  test('the end settles all reads and cancels the source once', async () => {
    const source = new ManualSource();
    const watch = new PullWatch(source);
    const reads: Promise<unknown>[] = [watch.next(), watch.batches().next()];
    await source.finish();
    expect(await Promise.all(reads)).toEqual([done, done]);
    expect(watch.stopped).toBe(true);
    await watch.return();
    watch.stop();
    expect(source.cancelled).toBe(1);
    expect(await watch.next()).toEqual(done);
    expect(source.asked).toBe(1);
  });

  test('a rejection reaches one read, then the watch is done', async () => {
    const source = new ManualSource();
    const watch = new PullWatch(source);
    const reads = [watch.next(), watch.next()];
    const rejected = expect(reads[0]).rejects.toThrow('broken');
    await source.fail(new Error('broken'));
    await rejected;
    expect(await reads[1]).toEqual(done);
    expect(source.cancelled).toBe(1);
  });

  test('a rejection without a pending read reaches the next read, whatever its kind', async () => {
    const source = new ManualSource();
    const watch = new PullWatch(source);
    watch.tryNext();
    await source.fail(new Error('polled'));
    expect(watch.stopped).toBe(true);
    expect(() => watch.tryNext()).toThrow('polled');
    expect(watch.tryNext()).toBeUndefined();
    const returned = new PullWatch(source);
    returned.tryNext();
    await source.fail(new Error('never told'));
    await returned.return();
    expect(await returned.next()).toEqual(done);
  });

  test('a pull that throws at once fails the watch the same way', async () => {
    const watch = new PullWatch<number>({
      pull() {
        throw new Error('at once');
      },
      cancel() {},
    });
    await expect(watch.next()).rejects.toThrow('at once');
    expect(await watch.next()).toEqual(done);
  });

  test('return during a pull settles reads at once; an event that still arrives counts as dropped', async () => {
    const source = new ManualSource();
    const watch = new PullWatch(source);
    const read = watch.next();
    await watch.return();
    expect(await read).toEqual(done);
    expect(source.cancelled).toBe(1);
    await source.bring(1);
    expect([watch.dropped, watch.queued, watch.tryNext()]).toEqual([1, 0, undefined]);
    const other = new PullWatch(source);
    other.tryNext();
    await other.return();
    await source.finish();
    expect(other.dropped).toBe(0);
    const failed = new PullWatch(source);
    failed.tryNext();
    await failed.return();
    await source.fail(new Error('too late'));
    expect(await failed.next()).toEqual(done);
    expect(failed.dropped).toBe(0);
  });

  test('stop keeps the event at hand readable; return drops and counts it', async () => {
    const source = new ManualSource();
    const stopped = new PullWatch(source);
    stopped.tryNext();
    await source.bring(1);
    stopped.stop();
    expect([stopped.stopped, stopped.queued, source.cancelled]).toEqual([true, 1, 1]);
    expect(await stopped.next()).toEqual(value(1));
    expect(await stopped.next()).toEqual(done);
    const returned = new PullWatch(source);
    returned.tryNext();
    await source.bring(2);
    await returned.return();
    expect([returned.queued, returned.dropped]).toEqual([0, 1]);
  });

  test('poll comes first, and makes batches without a pull', async () => {
    const ready = [1, 2, 3];
    const source = Object.assign(new ManualSource(), { poll: () => ready.shift() });
    const watch = new PullWatch(source);
    expect(watch.tryNext()).toBe(1);
    expect(await watch.batches().next()).toEqual(value([2, 3]));
    expect(source.asked).toBe(0);
    const read = watch.next();
    ready.push(5);
    expect(watch.tryNext()).toBeUndefined(); // a pull is under way: its event comes first
    await source.bring(4);
    expect(await read).toEqual(value(4));
    expect(await watch.next()).toEqual(value(5));
  });

  test('a batch that waited ends where poll finds nothing: no pull for an event that nobody has asked for', async () => {
    const ready: number[] = [];
    const source = Object.assign(new ManualSource(), { poll: () => ready.shift() });
    const waiting = new PullWatch(source).batches().next();
    ready.push(2);
    await source.bring(1);
    expect(await waiting).toEqual(value([1, 2]));
    expect(source.asked).toBe(1);
  });

  test('null is an event like any other', async () => {
    const ready: (null | undefined)[] = [null];
    const watch = new PullWatch<null>({ poll: () => ready.shift(), pull: () => new Promise(() => {}), cancel() {} });
    expect(watch.tryNext()).toBeNull();
  });

  test('a poll that throws ends the watch: the source is cancelled, and one read gets the error', async () => {
    const source = Object.assign(new ManualSource(), {
      poll() {
        throw new Error('poll');
      },
    });
    const watch = new PullWatch<number>(source);
    expect(() => watch.tryNext()).toThrow('poll');
    expect([watch.stopped, source.cancelled, source.asked]).toEqual([true, 1, 0]);
    expect(await watch.next()).toEqual(done);
  });

  test('reads from inside poll start no concurrent pull, but one after it', async () => {
    const source = new ManualSource();
    let inner: Promise<unknown> | undefined;
    const polled: (number | undefined)[] = [undefined, 1];
    const watch = new PullWatch<number>(
      Object.assign(source, {
        poll: () => {
          inner ??= watch.next();
          expect(source.asked).toBe(0);
          return polled.pop();
        },
      }),
    );
    expect(watch.tryNext()).toBe(1);
    expect(source.asked).toBe(1);
    await source.bring(2);
    expect(await inner).toEqual(value(2));
  });

  test('return from inside poll: no more events are delivered, and the event is counted', async () => {
    const source = new ManualSource();
    const watch: PullWatch<number> = new PullWatch<number>(
      Object.assign(source, {
        poll: () => {
          void watch.return();
          return 1;
        },
      }),
    );
    expect(await watch.next()).toEqual(done);
    expect([watch.dropped, source.cancelled, source.asked]).toEqual([1, 1, 0]);
  });
});

describe('fromAsyncIterable', () => {
  test('reads an iterable or an iterator to its end', async () => {
    async function* numbers(): AsyncGenerator<number> {
      yield* [1, 2];
    }
    const all: number[] = [];
    for await (const number of fromAsyncIterable(numbers())) all.push(number);
    expect(all).toEqual([1, 2]);
    const bare = numbers();
    const iterator = { next: () => bare.next() };
    const watch = fromAsyncIterable<number>(iterator);
    expect(await watch.next()).toEqual(value(1));
    await watch.return(); // no `return` on it: harmless
    expect(await watch.next()).toEqual(done);
  });

  test('an iterator that returns results without a promise is read like any other, as with `for await`', async () => {
    let last = 0;
    const watch = fromAsyncIterable<number>({ next: () => (last < 2 ? value(++last) : done) } as never);
    expect(await Promise.all([watch.next(), watch.next(), watch.next()])).toEqual([value(1), value(2), done]);
  });

  test('stopping calls the iterator’s return once; its rejection is ignored', async () => {
    let returned = 0;
    const watch = fromAsyncIterable<number>({
      next: () => new Promise(() => {}),
      return: () => {
        returned++;
        return Promise.reject(new Error('unheard'));
      },
    });
    const read = watch.next();
    watch.stop();
    await watch.return();
    expect(await read).toEqual(done);
    await macrotask();
    expect(returned).toBe(1);
  });
});

describe('emptyWatch', () => {
  test('TestEmpty: has ended before and after stop, for every kind of read', async () => {
    const watch = emptyWatch<number>();
    for (let round = 0; round < 2; round++) {
      expect(await watch.next()).toEqual(done);
      expect(await watch.batches().next()).toEqual(done);
      expect([watch.tryNext(), watch.stopped, watch.queued, watch.dropped]).toEqual([undefined, true, 0, 0]);
      watch.stop();
    }
    expect(await watch.return()).toEqual(done);
  });
});
