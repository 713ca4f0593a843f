import { once } from 'node:events';
import { Duplex, PassThrough, Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { describe, expect, test } from 'vitest';
import { fromReadable, toReadable } from '../../src/adapters/node-stream.ts';
import { filter } from '../../src/broadcast/filter.ts';
import { FakeWatcher } from '../../src/testing/fakes/fakes.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { fromAsyncIterable } from '../../src/watch/pull-watch.ts';
import { macrotask } from './support.ts';

type Count = WatchEvent<'count', number>;
const done = { done: true, value: undefined };
const value = <T>(of: T): { done: false; value: T } => ({ done: false, value: of });

function filled(...objects: number[]): FakeWatcher<Count> {
  const fake = new FakeWatcher<Count>({ capacity: 1_000 });
  for (const object of objects) void fake.action('count', object);
  return fake;
}

const upTo = (length: number): number[] => Array.from({ length }, (_, at) => at);

async function objects(events: AsyncIterable<Count>): Promise<number[]> {
  const all: number[] = [];
  for await (const event of events) all.push(event.object);
  return all;
}

describe('toReadable', () => {
  test('delivers every event in order and ends with the watch', async () => {
    const fake = filled(...upTo(100));
    fake.stop();
    const readable = toReadable(fake);
    expect(await objects(readable)).toEqual(upTo(100));
    await macrotask();
    expect([readable.destroyed, readable.closed]).toEqual([true, true]);
  });

  test('delivers later events, too', async () => {
    const fake = filled(1);
    const reading = objects(toReadable(fake));
    for (const object of [2, 3, 4]) {
      await macrotask();
      await fake.action('count', object);
    }
    fake.stop();
    expect(await reading).toEqual([1, 2, 3, 4]);
  });

  test('takes no more than highWaterMark events out of the watch, and at most one read is pending', async () => {
    const fake = filled(...upTo(50));
    const readable = toReadable(fake, { highWaterMark: 4 });
    await macrotask();
    expect(fake.queued).toBe(50);
    readable.read(0);
    await macrotask();
    expect(fake.queued).toBe(46);
    expect(readable.read()).toEqual({ type: 'count', object: 0 });
    await macrotask();
    expect(fake.queued).toBe(45);
    readable.destroy();
    const few = filled(1, 2);
    const waiting = toReadable(few);
    for (let reads = 0; reads < 3; reads++) {
      waiting.read();
      await macrotask();
    }
    void few.action('count', 3);
    void few.action('count', 4);
    few.stop();
    expect(await objects(waiting)).toEqual([3, 4]);
  });

  test('backpressure: a slow writer leaves events in the watch', async () => {
    const fake = filled(...upTo(100));
    fake.stop();
    const seen: number[] = [];
    let most = 0;
    const slow = new Writable({
      objectMode: true,
      highWaterMark: 1,
      write(event: Count, _encoding, callback) {
        seen.push(event.object);
        most = Math.max(most, 100 - fake.queued - seen.length);
        setImmediate(callback);
      },
    });
    await pipeline(toReadable(fake, { highWaterMark: 2 }), slow);
    expect(seen).toEqual(upTo(100));
    expect(most).toBeLessThanOrEqual(4);
  });

  test('destroy returns the watch, even while a read is pending', async () => {
    const fake = filled();
    const readable = toReadable(fake);
    readable.on('data', () => {});
    await macrotask();
    readable.destroy();
    await once(readable, 'close');
    expect(fake.stopped).toBe(true);
    await macrotask();
    expect(readable.errored).toBeNull();
  });

  test('destroy with an error reports that error', async () => {
    const fake = filled(1);
    const readable = toReadable(fake);
    readable.destroy(new Error('mine'));
    const [error] = await once(readable, 'error');
    expect((error as Error).message).toBe('mine');
    expect(fake.stopped).toBe(true);
  });

  test('an error of the watch destroys the stream with it', async () => {
    const readable = toReadable(
      fromAsyncIterable<Count>(
        (async function* () {
          yield { type: 'count' as const, object: 1 };
          throw new Error('broken');
        })(),
      ),
    );
    const seen: number[] = [];
    readable.on('data', (event: Count) => seen.push(event.object));
    const [error] = await once(readable, 'error');
    expect((error as Error).message).toBe('broken');
    expect(seen).toEqual([1]);
    expect(readable.destroyed).toBe(true);
  });

  test('a watch whose return rejects destroys the stream with that error, unless it already had one', async () => {
    const unreturnable = (): FakeWatcher<Count> =>
      Object.assign(filled(), { return: () => Promise.reject(new Error('will not')) });
    const readable = toReadable(unreturnable());
    readable.destroy();
    expect(((await once(readable, 'error')) as Error[])[0]?.message).toBe('will not');
    const other = toReadable(unreturnable());
    other.destroy(new Error('first'));
    expect(((await once(other, 'error')) as Error[])[0]?.message).toBe('first');
  });
});

/** An object-mode stream that is fed by hand and notes reads. */
function handFed(): PassThrough {
  return new PassThrough({ objectMode: true });
}

const listeners = (readable: Readable): number =>
  readable.eventNames().reduce((sum, name) => sum + readable.listenerCount(name), 0);

describe('fromReadable', () => {
  test('reads objects in order, to the end', async () => {
    const watch = fromReadable<number>(Readable.from([1, 2, 3]));
    const all: number[] = [];
    for await (const event of watch) all.push(event);
    expect(all).toEqual([1, 2, 3]);
    expect(watch.stopped).toBe(true);
    expect(await watch.next()).toEqual(done);
  });

  test('a batch takes what is buffered; pending reads are served in order', async () => {
    const source = handFed();
    const watch = fromReadable<number>(source);
    const reads = [watch.next(), watch.next()];
    for (const chunk of [1, 2, 3, 4]) source.write(chunk);
    expect(await Promise.all(reads)).toEqual([value(1), value(2)]);
    await macrotask();
    expect(await watch.batches().next()).toEqual(value([3, 4]));
    expect(watch.tryNext()).toBeUndefined();
    source.write(5);
    await macrotask();
    expect(watch.tryNext()).toBe(5);
    source.end();
    expect(await watch.next()).toEqual(done);
  });

  test.each(['objects', 'bytes'])('a batch ends, also of a source that is never out of %s', async (kind) => {
    const objectMode = kind === 'objects';
    let reads = 0;
    const endless = new Readable({
      objectMode,
      highWaterMark: 4,
      read() {
        if (++reads > 1_000) this.destroy(new Error('read without end'));
        else this.push(objectMode ? reads : 'b');
      },
    });
    const watch = fromReadable<number | Buffer>(endless);
    const batches = filter(watch, (event) => event).batches();
    for (let batch = 0; batch < 10; batch++) expect((await batches.next()).value?.length).toBeLessThanOrEqual(5);
    await macrotask();
    let polled = 0;
    while (watch.tryNext() !== undefined) polled++;
    expect(polled).toBeLessThanOrEqual(5);
    expect(reads).toBeLessThan(200);
    const seen: unknown[] = [];
    if (objectMode) for (let read = 0; read < 3; read++) seen.push((await watch.next()).value);
    expect(seen).toEqual(seen.map((_, at) => (seen[0] as number) + at));
    await batches.return?.();
    expect(endless.destroyed).toBe(true);
  });

  test('what is added between two reads of a turn is readable in that turn', async () => {
    const source = new PassThrough({ objectMode: true });
    const watch = fromReadable<number>(source);
    expect(watch.tryNext()).toBeUndefined();
    await macrotask();
    for (const chunk of [1, 2, 3]) source.write(chunk);
    await macrotask();
    expect([watch.tryNext(), watch.tryNext(), watch.tryNext(), watch.tryNext()]).toEqual([1, 2, 3, undefined]);
    await macrotask();
    for (const chunk of [4, 5]) source.write(chunk);
    await macrotask();
    expect(watch.tryNext()).toBe(4);
    source.write(6);
    expect([watch.tryNext(), watch.tryNext()]).toEqual([5, 6]);
    await watch.return();
  });

  test('bytes arrive as chunks', async () => {
    const source = new PassThrough();
    const watch = fromReadable<Buffer>(source);
    source.end('hello');
    expect((await watch.next()).value?.toString()).toBe('hello');
    expect(await watch.next()).toEqual(done);
  });

  test('backpressure reaches the source: only its buffer fills', async () => {
    let made = 0;
    const source = new Readable({
      objectMode: true,
      highWaterMark: 3,
      read() {
        this.push(made++);
      },
    });
    const watch = fromReadable<number>(source);
    await macrotask();
    expect(made).toBeLessThanOrEqual(4);
    for (let at = 0; at < 10; at++) expect(await watch.next()).toEqual(value(at));
    await macrotask();
    expect(made).toBeLessThanOrEqual(10 + 4);
    await watch.return();
  });

  test.each(['stop', 'return'] as const)('%s destroys the stream, settles reads, and leaves no listener', async (end) => {
    const source = handFed();
    const before = listeners(source);
    const watch = fromReadable<number>(source);
    const reads = [watch.next(), watch.next()];
    await macrotask();
    void watch[end]();
    expect(await Promise.all(reads)).toEqual([done, done]);
    expect(source.destroyed).toBe(true);
    await macrotask();
    expect(source.errored).toBeNull();
    expect(listeners(source)).toBe(before);
    expect(await watch.next()).toEqual(done);
  });

  test('the end of a duplex leaves it open for writing, without a listener', async () => {
    const written: string[] = [];
    const duplex = new Duplex({
      read() {},
      write(chunk, _encoding, callback) {
        written.push(String(chunk));
        setImmediate(callback);
      },
    });
    const before = listeners(duplex);
    const watch = fromReadable<Buffer>(duplex);
    duplex.write('early');
    duplex.push('question');
    duplex.push(null);
    expect(String((await watch.next()).value)).toBe('question');
    expect(await watch.next()).toEqual(done);
    expect(listeners(duplex)).toBe(before);
    duplex.end('late');
    await once(duplex, 'close');
    expect(written).toEqual(['early', 'late']);
    expect(duplex.errored).toBeNull();
  });

  test('leaves no listener at the end of the stream, nor after an error', async () => {
    const ended = handFed();
    const before = listeners(ended);
    const watch = fromReadable<number>(ended);
    ended.end(1);
    expect(await watch.next()).toEqual(value(1));
    expect(await watch.next()).toEqual(done);
    await macrotask();
    expect(listeners(ended)).toBe(before);
    const failed = handFed();
    const rejected = expect(fromReadable<number>(failed).next()).rejects.toThrow('broken');
    failed.destroy(new Error('broken'));
    await rejected;
    await macrotask();
    expect(listeners(failed)).toBe(before);
  });

  test('an error rejects one read, after the buffered events; unread, it is ignored', async () => {
    const source = handFed();
    const watch = fromReadable<number>(source);
    source.write(1);
    source.write(2);
    await macrotask();
    source.destroy(new Error('broken'));
    await macrotask();
    expect(await watch.next()).toEqual(value(1));
    expect(watch.tryNext()).toBe(2);
    await expect(watch.next()).rejects.toThrow('broken');
    expect(await watch.next()).toEqual(done);
    const unread = handFed();
    fromReadable<number>(unread);
    unread.destroy(new Error('unheard'));
    await macrotask();
  });

  test('a stream destroyed before its end is an error, not an end', async () => {
    const source = handFed();
    const watch = fromReadable<number>(source);
    const read = watch.next();
    source.destroy();
    await expect(read).rejects.toMatchObject({ code: 'ERR_STREAM_PREMATURE_CLOSE' });
    const before = handFed();
    before.destroy();
    await once(before, 'close');
    await expect(fromReadable<number>(before).next()).rejects.toMatchObject({ code: 'ERR_STREAM_PREMATURE_CLOSE' });
  });

  test('a round trip through a stream', async () => {
    const fake = filled(...upTo(40));
    fake.stop();
    expect(await objects(fromReadable<Count>(toReadable(fake)))).toEqual(upTo(40));
  });
});
