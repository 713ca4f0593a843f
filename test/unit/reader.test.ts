import { describe, expect, test } from 'vitest';
import { NONE, Reader } from '../../src/watch/reader.ts';

/** A reader over an array: `push` and `serve` by hand, user code inside `take` at will. */
class ArrayReader extends Reader<number> {
  readonly items: (number | Error)[] = [];
  inside: (() => void) | undefined;
  over = false;
  parks = 0;
  protected failure: { readonly error: unknown } | undefined;
  get stopped(): boolean {
    return this.over;
  }
  get queued(): number {
    return this.items.length;
  }
  readonly dropped = 0;
  protected override get drained(): boolean {
    return this.over && this.items.length === 0;
  }
  protected override take(): number | typeof NONE {
    const { inside } = this;
    this.inside = undefined;
    inside?.();
    const item = this.items.shift();
    if (!(item instanceof Error)) return item ?? NONE;
    this.failure = { error: item };
    this.over = true;
    return NONE;
  }
  protected override readWaits(): void {
    this.parks++;
  }
  protected override end(): void {
    this.over = true;
  }
  protected override discard(): void {
    this.over = true;
    this.items.length = 0;
  }
  push(...items: (number | Error)[]): void {
    this.items.push(...items);
    this.serve();
  }
  finish(): void {
    this.over = true;
    this.serve();
  }
}

const done = { done: true, value: undefined };
const value = <T>(of: T): { done: false; value: T } => ({ done: false, value: of });

describe('Reader', () => {
  test('pending reads are served first come, first served, including batches', async () => {
    const reader = new ArrayReader();
    const batches = reader.batches();
    const reads = [reader.next(), batches.next(), reader.next(), batches.next()];
    expect(reader.parks).toBe(4);
    reader.push(1, 2, 3, 4, 5);
    expect(await Promise.all(reads)).toEqual([value(1), value([2]), value(3), value([4, 5])]);
  });

  test('reads settle in the order in which they were called', async () => {
    const reader = new ArrayReader();
    const order: string[] = [];
    const reads = ['a', 'b', 'c'].map((name) => reader.next().then(() => order.push(name)));
    reader.push(1);
    reader.finish();
    await Promise.all(reads);
    expect(order).toEqual(['a', 'b', 'c']);
  });

  test('tryNext does not overtake a pending read', async () => {
    const reader = new ArrayReader();
    const read = reader.next();
    reader.items.push(1, 2); // readable, and nobody has served yet
    expect(reader.tryNext()).toBe(2);
    expect(await read).toEqual(value(1));
    const waiting = reader.next();
    expect(reader.tryNext()).toBeUndefined();
    reader.push(3);
    expect(await waiting).toEqual(value(3));
  });

  test('next waits behind pending reads, even if something has become readable', async () => {
    const reader = new ArrayReader();
    const first = reader.next();
    reader.items.push(1, 2);
    const second = reader.next();
    expect(await Promise.all([first, second])).toEqual([value(1), value(2)]);
  });

  test('return settles every pending read, and the watch stays done', async () => {
    const reader = new ArrayReader();
    const reads = [reader.next(), reader.batches().next(), reader.next()];
    expect(await reader.return()).toEqual(done);
    expect(await Promise.all(reads)).toEqual([done, done, done]);
    expect(await reader.next()).toEqual(done);
    expect(await reader.batches().next()).toEqual(done);
    expect(reader.tryNext()).toBeUndefined();
  });

  test('stop keeps queued events readable, and then the watch is done', async () => {
    const reader = new ArrayReader();
    reader.push(1, 2);
    reader.stop();
    reader.stop();
    expect(reader.stopped).toBe(true);
    expect(await reader.next()).toEqual(value(1));
    expect(await reader.next()).toEqual(value(2));
    expect(await reader.next()).toEqual(done);
  });

  test('stop settles pending reads: with events that have arrived meanwhile, or with done', async () => {
    const reader = new ArrayReader();
    const reads = [reader.next(), reader.next()];
    reader.items.push(7);
    reader.stop();
    expect(await Promise.all(reads)).toEqual([value(7), done]);
  });

  test('an error is reported to one read only', async () => {
    const reader = new ArrayReader();
    const reads = [reader.next(), reader.next()];
    reader.push(new Error('once'));
    reader.finish();
    await expect(reads[0]).rejects.toThrow('once');
    expect(await reads[1]).toEqual(done);
    const polled = new ArrayReader();
    polled.push(new Error('polled'));
    expect(() => polled.tryNext()).toThrow('polled');
    expect(polled.tryNext()).toBeUndefined();
    const read = new ArrayReader();
    read.push(new Error('read'));
    await expect(read.next()).rejects.toThrow('read');
    expect(await read.next()).toEqual(done);
  });

  test('an error after the events of a batch costs none of them: the next read gets it', async () => {
    const reader = new ArrayReader();
    const batches = reader.batches();
    reader.push(1, 2, new Error('third'));
    expect(await batches.next()).toEqual(value([1, 2]));
    await expect(reader.next()).rejects.toThrow('third');
    expect(await batches.next()).toEqual(done);
    const polled = new ArrayReader();
    polled.push(5, new Error('sixth'));
    expect(await polled.batches().next()).toEqual(value([5]));
    expect(() => polled.tryNext()).toThrow('sixth');
    expect(polled.tryNext()).toBeUndefined();
    const alone = new ArrayReader();
    alone.push(new Error('alone'));
    await expect(alone.batches().next()).rejects.toThrow('alone');
  });

  test('an error after a batch is reported to the pending read after it, and return forgets the error', async () => {
    const reader = new ArrayReader();
    reader.push(1, new Error('behind'));
    await reader.batches().next();
    await reader.return();
    expect(await reader.next()).toEqual(done);
  });

  test('reads from inside take are queued after the read that takes', async () => {
    const reader = new ArrayReader();
    let inner: Promise<unknown> | undefined;
    reader.items.push(1, 2);
    reader.inside = () => {
      inner = reader.next();
      expect(reader.tryNext()).toBeUndefined();
    };
    expect(await reader.next()).toEqual(value(1));
    expect(await inner).toEqual(value(2));
  });

  test('reads from inside take are queued after the read that takes, even if that one has to wait', async () => {
    const reader = new ArrayReader();
    const inner: Promise<unknown>[] = [];
    reader.inside = () => void inner.push(reader.next(), reader.next());
    const outer = reader.next();
    const last = reader.next();
    reader.push(1);
    expect(await outer).toEqual(value(1));
    reader.push(2, 3, 4);
    expect(await Promise.all([...inner, last])).toEqual([value(2), value(3), value(4)]);
  });

  test('return from inside take settles the read that takes', async () => {
    const reader = new ArrayReader();
    const read = reader.next();
    reader.inside = () => void reader.return();
    reader.push(1);
    expect(await read).toEqual(done);
  });

  test('is its own iterator; break, using and asyncDispose return it', async () => {
    const reader = new ArrayReader();
    reader.push(1, 2);
    expect(reader[Symbol.asyncIterator]()).toBe(reader);
    for await (const event of reader) {
      expect(event).toBe(1);
      break;
    }
    expect([reader.stopped, reader.queued]).toEqual([true, 0]);
    const disposed = new ArrayReader();
    disposed[Symbol.dispose]();
    expect(disposed.stopped).toBe(true);
    const awaited = new ArrayReader();
    await awaited[Symbol.asyncDispose]();
    expect(awaited.stopped).toBe(true);
  });

  test('leaving a loop over batches returns the watch', async () => {
    const reader = new ArrayReader();
    reader.push(1, 2);
    const batches = reader.batches();
    expect(batches[Symbol.asyncIterator]()).toBe(batches);
    for await (const batch of batches) {
      expect(batch).toEqual([1, 2]);
      break;
    }
    expect(reader.stopped).toBe(true);
    const disposed = new ArrayReader();
    disposed.batches()[Symbol.dispose]();
    expect(disposed.stopped).toBe(true);
    const awaited = new ArrayReader();
    await awaited.batches()[Symbol.asyncDispose]();
    expect(awaited.stopped).toBe(true);
    expect(await awaited.batches().return()).toEqual(done);
  });

  test('results are not shared: a consumer may modify its own', async () => {
    const reader = new ArrayReader();
    reader.stop();
    const one = await reader.next();
    (one as { done: boolean }).done = false;
    expect(await reader.next()).toEqual(done);
  });
});
