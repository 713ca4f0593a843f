import { describe, expect, test } from 'vitest';
import { fromReadableStream, toReadableStream } from '../../src/adapters/web-stream.ts';
import { FakeWatcher } from '../../src/testing/fakes/fakes.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { fromAsyncIterable } from '../../src/watch/pull-watch.ts';
import { macrotask } from './support.ts';

type Count = WatchEvent<'count', number>;
const done = { done: true, value: undefined };
const value = <T>(of: T): { done: false; value: T } => ({ done: false, value: of });

function filled(...objects: number[]): FakeWatcher<Count> {
  const fake = new FakeWatcher<Count>({ capacity: 100 });
  for (const object of objects) void fake.action('count', object);
  return fake;
}

const objects = (events: readonly Count[]): number[] => events.map((event) => event.object);

describe('toReadableStream', () => {
  test('delivers every event in order and closes at the end of the watch', async () => {
    const fake = filled(1, 2, 3);
    fake.stop();
    const events: Count[] = [];
    for await (const event of toReadableStream<Count>(fake)) events.push(event);
    expect(objects(events)).toEqual([1, 2, 3]);
  });

  test('pulls only on demand: nothing ahead by default, up to highWaterMark events on request', async () => {
    const fake = filled(1, 2, 3, 4, 5);
    const reader = toReadableStream<Count>(fake).getReader();
    await macrotask();
    expect(fake.queued).toBe(5);
    expect((await reader.read()).value?.object).toBe(1);
    await macrotask();
    expect(fake.queued).toBe(4);
    await reader.cancel();
    const ahead = filled(1, 2, 3, 4, 5);
    const stream = toReadableStream<Count>(ahead, { highWaterMark: 2 });
    await macrotask();
    expect(ahead.queued).toBe(3);
    await stream.cancel();
  });

  test('cancel returns the watch, even while a read is pending', async () => {
    const fake = filled();
    const reader = toReadableStream<Count>(fake).getReader();
    const read = reader.read();
    await macrotask();
    await reader.cancel('enough');
    expect(await read).toEqual(done);
    expect(fake.stopped).toBe(true);
    await reader.closed;
  });

  test('an error of the watch becomes the stream’s error', async () => {
    const reader = toReadableStream(
      fromAsyncIterable(
        (async function* () {
          yield 1;
          throw new Error('broken');
        })(),
      ),
    ).getReader();
    expect(await reader.read()).toEqual(value(1));
    await expect(reader.read()).rejects.toThrow('broken');
    await expect(reader.closed).rejects.toThrow('broken');
  });
});

/** A stream that notes what was asked of it. */
function noted(from: number[], options: { end?: boolean } = {}): { stream: ReadableStream<number>; log: string[] } {
  const log: string[] = [];
  const stream = new ReadableStream<number>(
    {
      pull(controller) {
        log.push('pull');
        const next = from.shift();
        if (next !== undefined) controller.enqueue(next);
        else if (options.end === true) controller.close();
      },
      cancel() {
        log.push('cancel');
      },
    },
    { highWaterMark: 0 },
  );
  return { stream, log };
}

describe('fromReadableStream', () => {
  test('reads chunk by chunk, on demand, to the end, and releases the lock', async () => {
    const { stream, log } = noted([1, 2], { end: true });
    const watch = fromReadableStream(stream);
    expect(stream.locked).toBe(true);
    await macrotask();
    expect(log).toEqual([]);
    expect(await watch.next()).toEqual(value(1));
    await macrotask();
    expect(log).toEqual(['pull']);
    expect(await watch.next()).toEqual(value(2));
    expect(await watch.next()).toEqual(done);
    expect(watch.stopped).toBe(true);
    expect(stream.locked).toBe(false);
    expect(log).toEqual(['pull', 'pull', 'pull']);
  });

  test('pending reads are served in order', async () => {
    const { stream } = noted([1, 2, 3]);
    const watch = fromReadableStream(stream);
    expect(await Promise.all([watch.next(), watch.batches().next(), watch.next()])).toEqual([value(1), value([2]), value(3)]);
  });

  test.each(['stop', 'return'] as const)('%s cancels the stream and settles pending reads', async (end) => {
    const { stream, log } = noted([]);
    const watch = fromReadableStream(stream);
    const reads = [watch.next(), watch.next()];
    await macrotask();
    void watch[end]();
    expect(await Promise.all(reads)).toEqual([done, done]);
    expect(log).toEqual(['pull', 'cancel']);
    expect(stream.locked).toBe(false);
    expect(await watch.next()).toEqual(done);
  });

  test('an error of the stream rejects one read; an error of its cancel is ignored', async () => {
    const failing = new ReadableStream<number>({
      start(controller) {
        controller.error(new Error('broken'));
      },
    });
    const watch = fromReadableStream(failing);
    await expect(watch.next()).rejects.toThrow('broken');
    expect(await watch.next()).toEqual(done);
    expect(failing.locked).toBe(false);
    const stubborn = new ReadableStream<number>({
      cancel() {
        throw new Error('will not');
      },
    });
    await fromReadableStream(stubborn).return();
    await macrotask();
  });

  test('a round trip through a stream', async () => {
    const fake = filled(1, 2, 3);
    fake.stop();
    const watch = fromReadableStream(toReadableStream<Count>(fake));
    const events: Count[] = [];
    for await (const event of watch) events.push(event);
    expect(objects(events)).toEqual([1, 2, 3]);
  });

  test('a locked stream throws', () => {
    const { stream } = noted([]);
    stream.getReader();
    expect(() => fromReadableStream(stream)).toThrow(TypeError);
  });
});
