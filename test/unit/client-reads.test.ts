import { describe, expect, test } from 'vitest';
import { ClientQueue, ClientReads } from '../../src/bridge/client/reads.ts';
import type { WatchEvent } from '../../src/watch/event.ts';

type Event = WatchEvent<'A', number>;
const event = (object: number): Event => ({ type: 'A', object });

/** A client without a connection: `push` and `miss` by hand, user code before an event that follows a gap. */
class Reads extends ClientReads<Event> {
  stopped = false;
  dropped = 0;
  servings = 0;
  readonly gaps: number[] = [];
  inside: () => void = () => {};
  protected readonly queue: ClientQueue<Event> = new ClientQueue({ capacity: 100, maxBufferedBytes: 100 });
  stop(): void {
    this.stopped = true;
    this.serve();
  }
  protected override discard(): void {
    this.dropped += this.queued;
    this.queue.clear();
    this.stop();
  }
  protected override onGap(missed: number): void {
    this.gaps.push(missed);
    this.inside();
  }
  protected override served(): void {
    this.servings++;
  }
  /** A gap before the first of these events. */
  miss(...objects: number[]): void {
    this.queue.miss();
    this.push(...objects);
  }
  push(...objects: number[]): void {
    for (const object of objects) this.queue.push(event(object), { chars: 1, version: undefined });
    this.serve();
  }
  fail(error: unknown): void {
    this.failure = { error };
    this.stopped = true;
    this.serve();
  }
}

const done = { done: true, value: undefined };
const one = (object: number): unknown => ({ done: false, value: event(object) });
const many = (...objects: number[]): unknown => ({ done: false, value: objects.map(event) });

describe('the reads of a client', () => {
  test('pending reads are served first come, first served, including batches', async () => {
    const reads = new Reads();
    const batches = reads.batches();
    const order: number[] = [];
    const waiting = [reads.next(), batches.next(), reads.next(), batches.next()];
    for (const [index, read] of waiting.entries()) read.then(() => order.push(index));
    expect(reads.tryNext()).toBeUndefined();
    reads.push(1, 2, 3, 4, 5);
    expect(await Promise.all(waiting)).toEqual([one(1), many(2), one(3), many(4, 5)]);
    expect(order).toEqual([0, 1, 2, 3]);
  });

  test('a batch whose onGap reads takes only one event: the next one belongs to that read', async () => {
    const reads = new Reads();
    let inner: unknown;
    reads.inside = () => {
      inner = reads.next();
    };
    reads.miss(1, 2, 3);
    expect(await reads.batches().next()).toEqual(many(1));
    expect(await inner).toEqual(one(2));
    expect(reads.queued).toBe(1);
  });

  test('queued events are read at once, by every kind of read', async () => {
    const reads = new Reads();
    reads.push(1, 2, 3, 4);
    expect(reads.tryNext()).toEqual(event(1));
    expect(await reads.next()).toEqual(one(2));
    expect(await reads.batches().next()).toEqual(many(3, 4));
    expect(reads.tryNext()).toBeUndefined();
    expect(reads.queued).toBe(0);
  });

  test('a batch ends before a gap, which is reported right before the event after it', async () => {
    const reads = new Reads();
    const batches = reads.batches();
    reads.push(1, 2);
    reads.miss(3, 4);
    expect(await batches.next()).toEqual(many(1, 2));
    expect(reads.gaps).toEqual([]);
    expect(await batches.next()).toEqual(many(3, 4));
    expect(reads.gaps).toEqual([1]);
  });

  test('a gap without a later event is not reported', async () => {
    const reads = new Reads();
    reads.miss();
    expect(reads.tryNext()).toBeUndefined();
    const read = reads.next();
    expect(reads.gaps).toEqual([]);
    reads.push(1);
    expect(await read).toEqual(one(1));
    expect(reads.gaps).toEqual([1]);
  });

  test('reads from inside onGap are queued after the read being served', async () => {
    for (const begin of [(reads: Reads) => reads.next(), async (reads: Reads) => one(reads.tryNext()?.object as number)]) {
      const reads = new Reads();
      const inner: Promise<unknown>[] = [];
      reads.inside = () => {
        expect(reads.tryNext()).toBeUndefined();
        inner.push(reads.next(), reads.batches().next());
        expect(reads.tryNext()).toBeUndefined();
      };
      reads.miss(1, 2, 3, 4);
      expect(await begin(reads)).toEqual(one(1));
      expect(await Promise.all(inner)).toEqual([one(2), many(3, 4)]);
      expect(reads.gaps).toEqual([1]);
    }
  });

  test('an event pushed from inside onGap comes after the event behind the gap', async () => {
    const reads = new Reads();
    reads.inside = () => reads.push(2);
    const read = reads.next();
    reads.miss(1);
    expect(await read).toEqual(one(1));
    expect(reads.tryNext()).toEqual(event(2));
  });

  test('return from inside onGap settles the read being served, and discards its event', async () => {
    for (const waits of [true, false]) {
      const reads = new Reads();
      const inner: Promise<unknown>[] = [];
      reads.inside = () => void inner.push(reads.return(), reads.next());
      const early = waits ? [reads.next(), reads.batches().next()] : [];
      reads.miss(1);
      expect(await Promise.all(waits ? early : [reads.next()])).toEqual(waits ? [done, done] : [done]);
      expect(await Promise.all(inner)).toEqual([done, done]);
      expect([reads.dropped, reads.queued]).toEqual([1, 0]);
    }
  });

  test('stop from inside onGap keeps queued events', async () => {
    const reads = new Reads();
    reads.inside = () => reads.stop();
    reads.miss(1, 2);
    expect(await reads.next()).toEqual(one(1));
    expect(await reads.next()).toEqual(one(2));
    expect(await reads.next()).toEqual(done);
  });

  test('return settles every pending read, and the watch stays done', async () => {
    const reads = new Reads();
    const waiting = [reads.next(), reads.batches().next(), reads.next()];
    expect(await reads.return()).toEqual(done);
    expect(await Promise.all(waiting)).toEqual([done, done, done]);
    expect(await reads.batches().next()).toEqual(done);
    expect(reads.tryNext()).toBeUndefined();
  });

  test('a failure is reported to one read only, after all readable events', async () => {
    const fault = new Error('once');
    const waiting = new Reads();
    const pending = [waiting.next(), waiting.batches().next()] as const;
    waiting.fail(fault);
    await expect(pending[0]).rejects.toBe(fault);
    expect(await pending[1]).toEqual(done);
    const queued = new Reads();
    queued.push(1, 2);
    queued.fail(fault);
    expect(await queued.batches().next()).toEqual(many(1, 2));
    await expect(queued.batches().next()).rejects.toBe(fault);
    expect(await queued.next()).toEqual(done);
    const polled = new Reads();
    polled.push(1);
    polled.fail(fault);
    expect(polled.tryNext()).toEqual(event(1));
    expect(() => polled.tryNext()).toThrow(fault);
    expect(polled.tryNext()).toBeUndefined();
  });

  test('return forgets a failure, even one caused by ending', async () => {
    const reads = new Reads();
    const waiting = reads.next();
    reads.stop = () => reads.fail(new Error('in the last callback'));
    expect(await reads.return()).toEqual(done);
    expect(await waiting).toEqual(done);
    expect(reads.tryNext()).toBeUndefined();
  });

  test('results are fresh objects, and every read is reported, so that a paused connection can continue', async () => {
    const reads = new Reads();
    reads.push(1);
    const { servings } = reads;
    reads.tryNext();
    expect(reads.servings).toBeGreaterThan(servings);
    reads.stop();
    expect(await reads.next()).not.toBe(await reads.next());
  });
});
