import { PassThrough, Readable } from 'node:stream';
import type { ReadableStream as NodeWebStream } from 'node:stream/web';
import { runInNewContext } from 'node:vm';
import { describe, expect, expectTypeOf, it, vi } from 'vitest';
import { type Codec, jsonCodec } from '../../src/decode/codec.ts';
import { type ByteDecoder, type ByteSource, toDecoder } from '../../src/decode/decoder.ts';
import { type Decoder, StreamWatcher } from '../../src/decode/stream-watcher.ts';
import { isStatus, type ObjectEvent, type WatchEvent } from '../../src/watch/event.ts';
import { WATCH_STREAM } from '../watch-stream.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const line = (object: unknown): string => `${JSON.stringify({ type: 'ADDED', object })}\n`;
const event = (object: unknown): WatchEvent => ({ type: 'ADDED', object });
const turns = async (): Promise<void> => {
  for (let i = 0; i < 20; i++) await Promise.resolve();
};

async function* iterate<T>(...chunks: T[]): AsyncGenerator<T, void> {
  yield* chunks;
}

async function all<E>(decoder: Decoder<E>): Promise<E[]> {
  const got: E[] = [];
  for (let one = await decoder.decode(); one !== undefined; one = await decoder.decode()) got.push(one);
  expect(await decoder.decode()).toBeUndefined();
  return got;
}

/** Everything that a decoder brings, errors by their code. */
async function outcomes(decoder: Decoder<unknown>, limit: number = 20): Promise<unknown[]> {
  const got: unknown[] = [];
  while (got.length < limit) {
    try {
      const one = await decoder.decode();
      if (one === undefined) break;
      got.push(one);
    } catch (error) {
      got.push((error as { code?: string }).code ?? (error as Error).message);
    }
  }
  return got;
}

/** An iterator that never ends by itself, with everything that was done to it. */
function handIterator(): {
  source: AsyncIterable<Uint8Array>;
  log: string[];
  give(result: unknown): void;
  fail(error: unknown): void;
} {
  const log: string[] = [];
  let settle: { resolve(value: never): void; reject(error: unknown): void } | undefined;
  const iterator = {
    next: () => {
      log.push('next');
      return new Promise<IteratorResult<Uint8Array>>((resolve, reject) => {
        settle = { resolve, reject };
      });
    },
    return: () => {
      log.push('return');
      return Promise.resolve({ done: true as const, value: undefined });
    },
  };
  return {
    source: { [Symbol.asyncIterator]: () => iterator },
    log,
    give: (result) => settle?.resolve(result as never),
    fail: (error) => settle?.reject(error),
  };
}

describe('toDecoder over an async iterable', () => {
  it('reads bytes of any realm, and subclasses of Uint8Array', async () => {
    const foreign = runInNewContext('Uint8Array.from(codes)', { codes: [...bytes(line(1))] });
    expect(foreign).not.toBeInstanceOf(Uint8Array);
    class Own extends Uint8Array {}
    const chunks = [foreign, Buffer.from(line(2)), Own.from(bytes(line(3)))];
    expect(await all(toDecoder(iterate<Uint8Array>(...chunks)))).toEqual([event(1), event(2), event(3)]);
  });

  it('decodes lines across chunks, bytes and text alike', async () => {
    const text = line('é😀') + line(2) + line(3);
    const data = bytes(text);
    expect(await all(toDecoder(iterate(data)))).toEqual([event('é😀'), event(2), event(3)]);
    expect(await all(toDecoder(iterate(...[...data].map((byte) => new Uint8Array([byte])))))).toEqual([
      event('é😀'),
      event(2),
      event(3),
    ]);
    expect(await all(toDecoder(iterate<Uint8Array | string>(text.slice(0, 40), bytes(text.slice(40)))))).toEqual([
      event('é😀'),
      event(2),
      event(3),
    ]);
  });

  it('decodes text wherever it is cut into chunks, also between the halves of a surrogate pair', async () => {
    const text = line('é😀😀') + line({ '👩‍💻': 2 });
    const events = [event('é😀😀'), event({ '👩‍💻': 2 })];
    for (let cut = 0; cut <= text.length; cut++)
      expect(await all(toDecoder(iterate(text.slice(0, cut), '', text.slice(cut))))).toEqual(events);
    expect(await all(toDecoder(iterate(...text.split(''))))).toEqual(events);
  });

  it('replaces a half in the middle of text, drops one at the end, and refuses bytes in its place', async () => {
    const texts: Codec<string> = { decode: (frame) => new TextDecoder().decode(frame) };
    const read = (...chunks: (string | Uint8Array)[]) => outcomes(toDecoder<string>(iterate(...chunks), { codec: texts }));
    expect(await read('a\ud83d', 'b\n')).toEqual(['a\ufffdb']);
    expect(await read('a', '\ude00b\ud83d', '\ud83d', '\ude00\n')).toEqual(['a\ufffdb\ufffd😀']);
    expect(await read('a\n', 'b\ud83d')).toEqual(['a', 'b']);
    expect(await read('a\n\ud83d', bytes('\n'))).toEqual(['a', 'INVALID_ARGUMENT']);
    // Cut off in a string, so no event.
    expect(await all(toDecoder(iterate(line(1), line('😀').slice(0, -4))))).toEqual([event(1)]);
  });

  it('decodes a last line without a line end if it can, and drops it otherwise', async () => {
    expect(await all(toDecoder(iterate(line(1) + line(2).trimEnd())))).toEqual([event(1), event(2)]);
    expect(await all(toDecoder(iterate(line(1) + line(2).slice(0, -3))))).toEqual([event(1)]);
    expect(await all(toDecoder(iterate(line(1), ' \r')))).toEqual([event(1)]);
  });

  it('drops a last line wherever the end of the stream cut it off', async () => {
    const last = bytes(line({ text: '}} \\" {', é: ['😀', { a: '\\' }], n: -1.5e3, yes: true, no: null }).trimEnd());
    for (let cut = 1; cut < last.length; cut++) {
      expect(await all(toDecoder(iterate<Uint8Array | string>(line(1), last.slice(0, cut))))).toEqual([event(1)]);
    }
    expect(await all(toDecoder(iterate<Uint8Array | string>(line(1), last)))).toHaveLength(2);
  });

  it.each([
    ['is no event', '{"type":"ADDED"}'],
    ['is another answer', '{"kind":"PodList","items":[{"metadata":{"name":"}{"}}]}'],
    ['is another value', '[7]'],
    ['is no JSON', '<html>502 Bad Gateway</html>'],
    ['is a word', 'garbage'],
    ['has two events', line(2).trimEnd() + line(3).trimEnd()],
    ['has more behind an event', `${line(2).trimEnd()}}`],
  ])('reports a last line without a line end that is whole, and %s', async (_, last) => {
    expect(await outcomes(toDecoder(iterate(line(1), last)))).toEqual([event(1), 'INVALID_FRAME']);
    const decoder = toDecoder(iterate(last));
    await expect(decoder.decode()).rejects.toMatchObject({ code: 'INVALID_FRAME' });
    expect(await decoder.decode()).toBeUndefined();
  });

  it('drops a last line that another codec refuses, unless that codec calls it whole', async () => {
    const refuse: Codec<string> = {
      decode: (frame) => {
        if (frame[0] === 120) throw new Error('x');
        return new TextDecoder().decode(frame);
      },
    };
    expect(await outcomes(toDecoder(iterate('a\nx'), { codec: refuse }))).toEqual(['a']);
    const isWhole = vi.fn((frame: Uint8Array) => frame.length > 1);
    expect(await outcomes(toDecoder(iterate('a\nx'), { codec: { ...refuse, isWhole } }))).toEqual(['a']);
    expect(await outcomes(toDecoder(iterate('x\na\nxy'), { codec: { ...refuse, isWhole } }))).toEqual(['x', 'a', 'x']);
    expect(isWhole).toHaveBeenCalledTimes(2);
  });

  it('reads length-prefixed frames, and drops a truncated one', async () => {
    const frame = (text: string): number[] => [0, 0, 0, text.length, ...bytes(text)];
    const data = new Uint8Array([...frame(line(1)), ...frame(line(2).trim()), ...frame(line(3)).slice(0, -1)]);
    const whole = toDecoder(iterate(data), { framing: 'length-prefixed' });
    expect(await all(whole)).toEqual([event(1), event(2)]);
    const cut = toDecoder(iterate(...[...data].map((byte) => new Uint8Array([byte]))), { framing: 'length-prefixed' });
    expect(await all(cut)).toEqual([event(1), event(2)]);
  });

  it('reads only on demand, and asks the framer before the source', async () => {
    const { source, log, give } = handIterator();
    const decoder = toDecoder(source);
    expect(decoder.poll?.()).toBeUndefined();
    await turns();
    expect(log).toEqual([]);
    const first = decoder.decode();
    give({ done: false, value: bytes(line(1) + line(2) + line(3)) });
    expect(await first).toEqual(event(1));
    expect(await decoder.decode()).toEqual(event(2));
    expect(decoder.poll?.()).toEqual(event(3));
    expect(decoder.poll?.()).toBeUndefined();
    expect(log).toEqual(['next']);
  });

  it('continues after a frame with an error', async () => {
    const text = `${line(1)}garbage\n${line(2)}${line('much too long')}${line(3)}`;
    const decoder = toDecoder(iterate(text), { maxFrameBytes: line(1).length });
    expect(await outcomes(decoder)).toEqual([event(1), 'INVALID_FRAME', event(2), 'FRAME_TOO_LARGE', event(3)]);
    expect(decoder.skipped).toBe(0);
  });

  it('skips oversize frames by option, and counts them', async () => {
    const onSkip = vi.fn();
    const text = line(1) + line('much too long') + line(2) + line('too long as well') + line(3);
    const decoder = toDecoder(iterate(text), { maxFrameBytes: line(1).length, oversize: 'skip', onSkip });
    expect(await all(decoder)).toEqual([event(1), event(2), event(3)]);
    expect(decoder.skipped).toBe(2);
    expect(onSkip).toHaveBeenCalledTimes(2);
    expect(onSkip.mock.calls[0]?.[0]).toMatchObject({ code: 'FRAME_TOO_LARGE', limit: line(1).length });
  });

  it('takes no async onSkip: nobody would hear of its failure', async () => {
    const onSkip = async (): Promise<never> => {
      throw new Error('late');
    };
    const decoder = toDecoder(iterate(line('much too long')), { maxFrameBytes: 5, oversize: 'skip', onSkip });
    await expect(decoder.decode()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  it('works with another codec, which may skip frames', async () => {
    const raw: Codec<unknown> = {
      decode: (frame) => {
        const value: unknown = JSON.parse(new TextDecoder().decode(frame));
        return value === 'nothing' ? undefined : value;
      },
    };
    expect(await all(toDecoder(iterate('1\n"nothing"\n{"a":2}\n"nothing"\n"nothing"\n"x"'), { codec: raw }))).toEqual([
      1,
      { a: 2 },
      'x',
    ]);
    const types = ['ADDED'] as const;
    const strict = toDecoder(iterate('{"type":"odd","object":1}\n', line(1)), {
      codec: jsonCodec<WatchEvent<'ADDED'>>({ types }),
    });
    expect(await outcomes(strict)).toEqual(['INVALID_FRAME', event(1)]);
  });

  it.each([
    ['an object', {}],
    ['a number', 7],
    ['undefined', undefined],
    ['null', null],
    ['an ArrayBuffer', new ArrayBuffer(2)],
    ['other elements', new Uint16Array(2)],
  ])('throws for %s as a chunk, and can still be closed', async (_, chunk) => {
    const { source, log, give } = handIterator();
    const decoder = toDecoder(source);
    const first = decoder.decode();
    give({ done: false, value: chunk });
    await expect(first).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/^chunk: expected bytes \(a Uint8Array\) or a string, got /),
    });
    decoder.close();
    expect(log).toEqual(['next', 'return']);
  });

  it('closes at once during a read, and ignores its result', async () => {
    for (const late of ['give', 'fail', 'nothing'] as const) {
      const { source, log, give, fail } = handIterator();
      const decoder = toDecoder(source);
      const pending = decoder.decode();
      await turns();
      decoder.close();
      expect(await pending).toBeUndefined();
      expect(log).toEqual(['next', 'return']);
      if (late === 'give') give({ done: false, value: bytes(line(1)) });
      if (late === 'fail') fail(new Error('late'));
      await turns();
      expect(decoder.poll?.()).toBeUndefined();
      expect(await decoder.decode()).toBeUndefined();
      decoder.close();
      expect(log).toEqual(['next', 'return']);
    }
  });

  it.each<[string, (hand: ReturnType<typeof handIterator>) => void]>([
    ['ends', ({ give }) => give({ done: true, value: undefined })],
    ['goes on', ({ give }) => give({ done: false, value: bytes('\n') })],
    ['fails', ({ fail }) => fail(new Error('late'))],
  ])('decodes nothing after close, when a source whose read was pending %s', async (_, late) => {
    const hand = handIterator();
    const codec = { decode: vi.fn(() => event(1)) };
    const decoder = toDecoder(hand.source, { codec });
    const pending = decoder.decode();
    hand.give({ done: false, value: bytes('a line without its end') });
    await turns();
    decoder.close();
    late(hand);
    await turns();
    expect(await pending).toBeUndefined();
    expect(codec.decode).not.toHaveBeenCalled();
  });

  it('delivers no framed events after close', async () => {
    const { source, log, give } = handIterator();
    const decoder = toDecoder(source);
    const first = decoder.decode();
    give({ done: false, value: bytes(line(1) + line(2)) });
    await first;
    decoder.close();
    expect(decoder.poll?.()).toBeUndefined();
    expect(await decoder.decode()).toBeUndefined();
    expect(log).toEqual(['next', 'return']);
  });

  it('does not cancel a source that has ended or failed on its own', async () => {
    for (const failed of [true, false]) {
      const { source, log, give, fail } = handIterator();
      const decoder = toDecoder(source);
      const only = decoder.decode();
      if (failed) fail(new Error('odd'));
      else give({ done: true, value: undefined });
      if (failed) await expect(only).rejects.toThrow('odd');
      else expect(await only).toBeUndefined();
      expect(await decoder.decode()).toBeUndefined(); // a source's error is told once
      decoder.close();
      expect(log).toEqual(['next']);
    }
  });

  it('ignores a cancellation that fails in any way, or does not exist', async () => {
    const throwing = (): never => {
      throw new Error('no');
    };
    for (const cancel of [throwing, () => Promise.reject(new Error('no')), undefined]) {
      const iterator = { next: () => new Promise<never>(() => {}), ...(cancel && { return: cancel }) };
      const decoder = toDecoder({ [Symbol.asyncIterator]: () => iterator } as AsyncIterable<Uint8Array>);
      const pending = decoder.decode();
      decoder.close();
      expect(await pending).toBeUndefined();
    }
    await turns(); // an unhandled rejection would fail the run
  });

  it('rejects when next throws', async () => {
    const source = {
      [Symbol.asyncIterator]: () => ({
        next: () => {
          throw new Error('at once');
        },
      }),
    };
    const decoder = toDecoder(source);
    expect(await outcomes(decoder)).toEqual(['at once']);
  });

  it.each([undefined, null, 7, 'text', {}, [new Uint8Array(1)]])('throws for %s as a source', (source) => {
    expect(() => toDecoder(source as unknown as ByteSource)).toThrow(
      /^source: expected an async iterable of bytes or a ReadableStream, got /,
    );
  });

  it('throws for invalid options', () => {
    const framing = 'lines' as 'newline';
    expect(() => toDecoder(iterate('x'), { framing })).toThrow('framing: expected one of newline, length-prefixed, got "lines"');
    expect(() => toDecoder(iterate('x'), { maxFrameBytes: 0 })).toThrow('maxFrameBytes');
    const oversize = 'ignore' as 'skip';
    expect(() => toDecoder(iterate('x'), { oversize })).toThrow('oversize: expected one of error, skip, got "ignore"');
    expect(() => toDecoder(iterate('x'), { maxFrameBytes: 0, framing: 'length-prefixed' })).toThrow('maxFrameBytes');
    for (const codec of [3, null, 'json', { decode: 3 }]) {
      expect(() => toDecoder(iterate('x'), { codec: codec as unknown as Codec<never> })).toThrow(
        'codec: expected a function, got',
      );
    }
  });

  it('has the event type that its caller states', () => {
    expectTypeOf(toDecoder(iterate('x'))).toEqualTypeOf<ByteDecoder<WatchEvent>>();
    expectTypeOf(toDecoder<ObjectEvent<{ a: 1 }>>(iterate('x'))).toEqualTypeOf<ByteDecoder<ObjectEvent<{ a: 1 }>>>();
    const codec: Codec<number> = { decode: (frame) => frame.length };
    expectTypeOf(toDecoder(iterate('x'), { codec })).toEqualTypeOf<ByteDecoder<number>>();
    expectTypeOf(new StreamWatcher(toDecoder(iterate('x')))).toEqualTypeOf<StreamWatcher<WatchEvent>>();
    expectTypeOf(new StreamWatcher(toDecoder(iterate('x'), { codec }))).toEqualTypeOf<StreamWatcher<number>>();
    expectTypeOf<NodeWebStream<Uint8Array>>().toExtend<ByteSource>();
    expectTypeOf<NonNullable<Response['body']>>().toExtend<ByteSource>();
    expectTypeOf<Readable>().toExtend<ByteSource>();
    expectTypeOf<NodeJS.ReadStream>().toExtend<ByteSource>();
  });
});

describe('toDecoder over a web stream', () => {
  const stream = (...chunks: (Uint8Array | string)[]): ReadableStream<Uint8Array | string> =>
    new ReadableStream({
      start(controller) {
        for (const chunk of chunks) controller.enqueue(chunk);
        controller.close();
      },
    });

  it('decodes the stream', async () => {
    expect(await all(toDecoder(stream(bytes(line(1)), line(2))))).toEqual([event(1), event(2)]);
  });

  it('decodes the body of a response', async () => {
    expect(await all(toDecoder(new Response(line(1) + line(2)).body!))).toEqual([event(1), event(2)]);
  });

  it('works where streams are not async iterable', async () => {
    const source = stream(line(1));
    const bare = { getReader: () => source.getReader() };
    expect(await all(toDecoder(bare))).toEqual([event(1)]);
  });

  it('uses the reader, not the iterator, where there are both', async () => {
    const source = stream(line(1));
    const iterator = vi.spyOn(source, Symbol.asyncIterator);
    expect(await all(toDecoder(source))).toEqual([event(1)]);
    expect(iterator).not.toHaveBeenCalled();
  });

  it('cancels the stream on close, even during a read', async () => {
    for (const reading of [true, false]) {
      const cancel = vi.fn();
      const decoder = toDecoder(new ReadableStream<Uint8Array>({ cancel }));
      const pending = reading ? decoder.decode() : undefined;
      decoder.close();
      decoder.close();
      expect(cancel).toHaveBeenCalledTimes(1);
      expect(await pending).toBeUndefined();
    }
  });

  it('throws for a locked stream', () => {
    const source = stream(line(1));
    source.getReader();
    expect(() => toDecoder(source)).toThrow(TypeError);
  });

  it('reports an error of the stream once', async () => {
    const source = new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.error(new TypeError('terminated'));
      },
    });
    expect(await outcomes(toDecoder(source))).toEqual(['terminated']);
  });
});

describe('toDecoder over a Node stream', () => {
  it('decodes the stream, from buffers or text', async () => {
    expect(await all(toDecoder(Readable.from([Buffer.from(line(1)), Buffer.from(line(2))])))).toEqual([event(1), event(2)]);
    const text = new PassThrough({ encoding: 'utf8' });
    text.end(line('é'));
    expect(await all(toDecoder(text))).toEqual([event('é')]);
  });

  it('destroys the stream on close, during a read', async () => {
    const source = new PassThrough();
    const decoder = toDecoder(source);
    const pending = decoder.decode();
    await turns();
    decoder.close();
    expect(source.destroyed).toBe(true);
    expect(await pending).toBeUndefined();
  });

  it('destroys the stream on close before any read', () => {
    const source = new PassThrough();
    toDecoder(source).close();
    expect(source.destroyed).toBe(true);
  });

  it('survives an error before the first read, and reports it then', async () => {
    const source = new PassThrough();
    const decoder = toDecoder(source);
    source.destroy(new Error('early'));
    await new Promise((resolve) => source.once('close', resolve));
    expect(await outcomes(decoder)).toEqual(['early']);
  });
});

describe('StreamWatcher over toDecoder', () => {
  it('reports invalid data as one ERROR event, and cancels its source (TestStreamWatcherError)', async () => {
    const { source, log, give } = handIterator();
    const watcher = new StreamWatcher(toDecoder(source));
    const first = watcher.next();
    give({ done: false, value: bytes(`${line(1)}garbage\n${line(2)}`) });
    expect(await first).toEqual({ done: false, value: event(1) });
    const { value } = await watcher.next();
    expect(value?.type).toBe('ERROR');
    expect(isStatus(value?.object) && [value.object.code, value.object.message]).toEqual([
      500,
      'cannot decode the watch stream: bad frame, not JSON: garbage',
    ]);
    expect(await watcher.next()).toEqual({ done: true, value: undefined });
    expect(log).toEqual(['next', 'return']);
  });

  it('reports an oversize frame as 413', async () => {
    const got: WatchEvent[] = [];
    for await (const one of new StreamWatcher(toDecoder(iterate(line(1), line(123)), { maxFrameBytes: line(1).length })))
      got.push(one);
    expect(got.map(({ type, object }) => (type === 'ERROR' ? (object as { code: number }).code : object))).toEqual([1, 413]);
  });

  it('delivers the events of a chunk as one batch', async () => {
    const sizes: number[] = [];
    const watcher = new StreamWatcher(toDecoder(iterate(line(1) + line(2) + line(3), line(4) + line(5))));
    for await (const batch of watcher.batches()) sizes.push(batch.length);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(5);
    expect(sizes.length).toBeLessThanOrEqual(4);
  });

  it('settles and cancels on stop during a read (TestStreamWatcherRace)', async () => {
    const source = new PassThrough();
    const watcher = new StreamWatcher(toDecoder(source));
    const pending = watcher.next();
    await turns();
    watcher.stop();
    expect(await pending).toEqual({ done: true, value: undefined });
    expect(source.destroyed).toBe(true);
  });

  it('ends without an ERROR when a Node stream is cut off', async () => {
    const source = new PassThrough();
    const watcher = new StreamWatcher(toDecoder(source));
    source.write(`${line(1)}{"type":"ADD`);
    expect(await watcher.next()).toEqual({ done: false, value: event(1) });
    const pending = watcher.next();
    source.destroy(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }));
    expect(await pending).toEqual({ done: true, value: undefined });
  });
});

it('decodes a recorded watch stream like JSON.parse, in any chunking', async () => {
  const content = WATCH_STREAM;
  const expected = content
    .toString()
    .trimEnd()
    .split('\n')
    .map((text) => JSON.parse(text) as WatchEvent);
  for (const size of [997, 65_536]) {
    const chunks: Uint8Array[] = [];
    for (let at = 0; at < content.length; at += size) chunks.push(content.subarray(at, at + size));
    expect(await all(toDecoder(iterate(...chunks)))).toEqual(expected);
  }
});
