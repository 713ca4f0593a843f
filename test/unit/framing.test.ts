import { describe, expect, it, vi } from 'vitest';
import { type Framer, type FramerOptions, LengthPrefixedFramer, NewlineFramer } from '../../src/decode/framing.ts';
import { isWatchError, type WatchError } from '../../src/watch/errors.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (frame: Uint8Array): string => new TextDecoder('utf-8', { ignoreBOM: true }).decode(frame);
const BOM = '\uFEFF';

/** A frame as it stands in a length-prefixed stream. */
function prefixed(body: string | Uint8Array, length?: number): Uint8Array {
  const data = typeof body === 'string' ? bytes(body) : body;
  const frame = new Uint8Array(4 + data.length);
  new DataView(frame.buffer).setUint32(0, length ?? data.length);
  frame.set(data, 4);
  return frame;
}

function concat(...parts: Uint8Array[]): Uint8Array {
  return new Uint8Array(parts.flatMap((part) => [...part]));
}

function chunked(data: Uint8Array, size: number): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < data.length; at += size) chunks.push(data.slice(at, at + size));
  return chunks;
}

/** All that the framer hands out for these chunks: frames as text, errors by their code. Chunks are wiped once they are read. */
function read(framer: Framer, chunks: readonly Uint8Array[], options: { end?: boolean } = {}): string[] {
  const got: string[] = [];
  for (const chunk of chunks) {
    framer.push(chunk);
    for (;;) {
      try {
        const frame = framer.next();
        if (frame === undefined) break;
        got.push(text(frame));
      } catch (error) {
        got.push(`!${(error as WatchError).code}`);
      }
    }
    chunk.fill(0x2a);
  }
  if (options.end !== false) {
    const last = framer.end();
    if (last !== undefined) got.push(`${text(last)}$`);
  }
  return got;
}

const lines = (input: string | Uint8Array, size: number, options?: FramerOptions): string[] =>
  read(new NewlineFramer(options), chunked(typeof input === 'string' ? bytes(input) : input, size));

const SIZES = [1, 2, 3, 5, 1000];

describe('NewlineFramer', () => {
  it('finds lines in any chunking (TestJSONFrameReader)', () => {
    for (const size of SIZES) expect(lines('{"a":1}\n[2]\n"3"\n', size)).toEqual(['{"a":1}', '[2]', '"3"']);
  });

  it('accepts LF and CRLF as line ends, and no other CR', () => {
    for (const size of SIZES) expect(lines('a\r\nb\nc\rd\r\ne\r\r\n\rf\n', size)).toEqual(['a', 'b', 'c\rd', 'e\r', '\rf']);
  });

  it('skips lines of white space, and keeps white space in others', () => {
    for (const size of SIZES) expect(lines('\n \t\n\r\n \r \r\n a\t\n\n\n\tb \n', size)).toEqual([' a\t', '\tb ']);
  });

  it('does not treat other control characters as white space', () => {
    expect(lines('\v\n\f\n\0\n\u001f\n!\n', 100)).toEqual(['\v', '\f', '\0', '\u001f', '!']);
  });

  it('strips a byte order mark before the first line only', () => {
    for (const size of SIZES) {
      expect(lines(`${BOM}a\n${BOM}b\n`, size)).toEqual(['a', `${BOM}b`]);
      expect(lines(`${BOM}\r\na\n`, size)).toEqual(['a']);
      expect(lines(`\n${BOM}a\n`, size)).toEqual([`${BOM}a`]);
      expect(lines(`${BOM}a`, size)).toEqual(['a$']);
      expect(lines(`${BOM}`, size)).toEqual([]);
      expect(lines(`${BOM}${BOM}a\n`, size)).toEqual([`${BOM}a`]);
    }
  });

  it('accepts only a complete byte order mark', () => {
    for (const start of [
      [0xef, 0xbb, 0x61],
      [0xef, 0x61, 0xbf],
      [0x61, 0xbb, 0xbf],
      [0xef, 0xbb],
    ]) {
      const framer = new NewlineFramer();
      framer.push(new Uint8Array([...start, 10]));
      expect([...framer.next()!]).toEqual(start);
    }
  });

  it('works inside a UTF-8 sequence', () => {
    for (const size of SIZES) expect(lines('é€😀\n😀\n', size)).toEqual(['é€😀', '😀']);
  });

  it('returns a last line without a line end, unless it is empty', () => {
    for (const size of SIZES) {
      expect(lines('a\nbc', size)).toEqual(['a', 'bc$']);
      expect(lines('a\nbc\r', size)).toEqual(['a', 'bc$']);
      expect(lines('a\n \t\r', size)).toEqual(['a']);
      expect(lines('a\n', size)).toEqual(['a']);
      expect(lines('', size)).toEqual([]);
    }
  });

  it('has nothing left after the end', () => {
    const framer = new NewlineFramer();
    expect(read(framer, [bytes('ab')])).toEqual(['ab$']);
    expect(framer.buffered).toBe(0);
    expect(framer.end()).toBeUndefined();
    expect(read(framer, [bytes('c\n')])).toEqual(['c']);
  });

  it('returns its last line as a copy, whatever was lent before', () => {
    const framer = new NewlineFramer();
    framer.push(bytes('ab'));
    expect(framer.next(true)).toBeUndefined();
    const last = framer.end();
    framer.push(bytes('xy'));
    framer.next(true);
    expect(text(last!)).toBe('ab');
  });

  it.each(['there', 'not there, as in browsers'])('finds lines whether Buffer is %s, in chunks of either type', async (where) => {
    if (where !== 'there') vi.stubGlobal('Buffer', undefined);
    vi.resetModules();
    const { NewlineFramer: Fresh } = await import('../../src/decode/framing.ts').finally(() => vi.unstubAllGlobals());
    for (const chunk of [bytes('a\nb\n'), Buffer.from('a\nb\n')]) {
      const framer = new Fresh();
      expect(read(framer, [chunk])).toEqual(['a', 'b']);
    }
  });

  it('measures a line without its end: a line at the limit fits, one more byte does not', () => {
    for (const size of SIZES) {
      for (const end of ['\n', '\r\n']) {
        expect(lines(`1234${end}a\n`, size, { maxFrameBytes: 5 })).toEqual(['1234', 'a']);
        expect(lines(`12345${end}a\n`, size, { maxFrameBytes: 5 })).toEqual(['12345', 'a']);
        expect(lines(`123456${end}a\n`, size, { maxFrameBytes: 5 })).toEqual(['!FRAME_TOO_LARGE', 'a']);
      }
      expect(lines('12345\r\r\na\n', size, { maxFrameBytes: 5 })).toEqual(['!FRAME_TOO_LARGE', 'a']);
      expect(lines('1234\r\r\na\n', size, { maxFrameBytes: 5 })).toEqual(['1234\r', 'a']);
      expect(lines('12345\r', size, { maxFrameBytes: 5 })).toEqual(['12345$']);
      expect(lines('12345', size, { maxFrameBytes: 5 })).toEqual(['12345$']);
      expect(lines('12345\rx', size, { maxFrameBytes: 5 })).toEqual(['!FRAME_TOO_LARGE']);
      expect(lines('123456', size, { maxFrameBytes: 5 })).toEqual(['!FRAME_TOO_LARGE']);
      expect(lines('é€\n😀€\n', size, { maxFrameBytes: 5 })).toEqual(['é€', '!FRAME_TOO_LARGE']);
      expect(lines(`${BOM}ab\n`, size, { maxFrameBytes: 5 })).toEqual(['ab']);
      expect(lines(`${BOM}abc\n`, size, { maxFrameBytes: 5 })).toEqual(['!FRAME_TOO_LARGE']);
    }
  });

  it('accepts 16 MiB by default, and not a byte more', () => {
    const line = new Uint8Array(16 * 1024 * 1024 + 2).fill(0x61);
    line[line.length - 1] = 10;
    const framer = new NewlineFramer();
    framer.push(line.subarray(1));
    expect(framer.next()?.length).toBe(16_777_216);
    framer.push(line);
    expect(() => framer.next()).toThrow('16777216');
  });

  it('never buffers more of an endless line than the limit', () => {
    const framer = new NewlineFramer({ maxFrameBytes: 5000 });
    let errors = 0;
    for (let i = 0; i < 100; i++) {
      framer.push(new Uint8Array(333).fill(0x61));
      try {
        expect(framer.next()).toBeUndefined();
      } catch (error) {
        expect(isWatchError(error, 'FRAME_TOO_LARGE')).toBe(true);
        errors++;
        expect(i).toBe(15); // 15 chunks are 4,995 bytes
        expect(framer.buffered).toBe(0);
        expect(framer.next()).toBeUndefined();
      }
      expect(framer.buffered).toBe(errors > 0 ? 0 : 333 * (i + 1));
    }
    expect(errors).toBe(1);
    expect(framer.end()).toBeUndefined();
  });

  it('never allocates more than the limit for one frame', () => {
    const framer = new NewlineFramer({ maxFrameBytes: 1500 });
    for (const size of [1000, 100, 400]) {
      framer.push(new Uint8Array(size).fill(0x61));
      expect(framer.next()).toBeUndefined();
    }
    expect((framer as unknown as { buffer: Uint8Array }).buffer.length).toBe(1500);
  });
});

describe('LengthPrefixedFramer', () => {
  it('reads frames in any chunking (TestRead)', () => {
    const data = concat(prefixed('abc'), prefixed('d'), prefixed(''), prefixed('efgh\n'), prefixed(''), prefixed(''));
    for (const size of SIZES) {
      expect(read(new LengthPrefixedFramer(), chunked(data, size))).toEqual(['abc', 'd', '', 'efgh\n', '', '']);
    }
  });

  it('reads a large frame: the length is big-endian over all four bytes (TestReadLarge)', () => {
    const body = new Uint8Array(0x01_02_03).map((_, i) => i * 7);
    const data = prefixed(body);
    expect([...data.subarray(0, 4)]).toEqual([0, 1, 2, 3]);
    for (const size of [1000, 65_537, 1_000_000]) {
      const framer = new LengthPrefixedFramer();
      const frames: Uint8Array[] = [];
      for (const chunk of chunked(data, size)) {
        framer.push(chunk);
        for (let frame = framer.next(); frame !== undefined; frame = framer.next()) frames.push(frame);
      }
      expect(frames.length).toBe(1);
      expect(Buffer.compare(frames[0]!, body)).toBe(0);
    }
  });

  it('drops a truncated header or body (TestReadInvalidFrame)', () => {
    for (const cut of [1, 3, 4, 5, 6]) {
      for (const size of SIZES) {
        const framer = new LengthPrefixedFramer();
        expect(read(framer, chunked(concat(prefixed('ok'), prefixed('abc').subarray(0, cut)), size))).toEqual(['ok']);
        expect(framer.buffered).toBe(0);
      }
    }
  });

  it('compares all bytes of the length with the limit', () => {
    const data = (body: string): Uint8Array => concat(prefixed('x'), prefixed(body), prefixed('y'));
    for (const size of SIZES) {
      const limits = (body: string): string[] => read(new LengthPrefixedFramer({ maxFrameBytes: 4 }), chunked(data(body), size));
      expect(limits('123')).toEqual(['x', '123', 'y']);
      expect(limits('1234')).toEqual(['x', '1234', 'y']);
      expect(limits('12345')).toEqual(['x', '!FRAME_TOO_LARGE', 'y']);
    }
  });

  it('counts what came of a frame whose length is announced, and forgets it at the end', () => {
    const framer = new LengthPrefixedFramer({ maxFrameBytes: 2 ** 32 });
    framer.push(prefixed('abc', 0xff_ff_ff_ff));
    expect(framer.next()).toBeUndefined();
    expect(framer.buffered).toBe(3);
    expect(framer.end()).toBeUndefined();
    expect(framer.buffered).toBe(0);
  });

  it('throws for a length over the limit as soon as the header is complete', () => {
    const framer = new LengthPrefixedFramer();
    framer.push(prefixed('', 16 * 1024 * 1024 + 1));
    expect(() => framer.next()).toThrow('frame longer than maxFrameBytes (16777216)');
    expect(framer.next()).toBeUndefined();
    framer.push(prefixed('', 16 * 1024 * 1024));
    expect(framer.next()).toBeUndefined(); // still inside the frame that was refused
    expect(framer.buffered).toBe(0);
  });
});

describe.each([
  {
    name: 'NewlineFramer',
    make: (options?: FramerOptions) => new NewlineFramer(options),
    frame: (body: string) => bytes(`${body}\n`),
  },
  { name: 'LengthPrefixedFramer', make: (options?: FramerOptions) => new LengthPrefixedFramer(options), frame: prefixed },
])('$name and its limits', ({ make, frame }) => {
  const stream = (...bodies: string[]): Uint8Array => concat(...bodies.map((body) => frame(body)));

  it('throws in place of an oversize frame, then continues after it (TestDecoder)', () => {
    for (const size of SIZES) {
      const got = read(make({ maxFrameBytes: 3 }), chunked(stream('a', 'long', 'b', 'longer', 'too long', 'c'), size));
      expect(got).toEqual(['a', '!FRAME_TOO_LARGE', 'b', '!FRAME_TOO_LARGE', '!FRAME_TOO_LARGE', 'c']);
    }
  });

  it('names the limit, in the message and as a number', () => {
    const framer = make({ maxFrameBytes: 3 });
    framer.push(stream('four'));
    let error: unknown;
    try {
      framer.next();
    } catch (caught) {
      error = caught;
    }
    expect(error).toMatchObject({ code: 'FRAME_TOO_LARGE', limit: 3, message: 'frame longer than maxFrameBytes (3)' });
    expect(framer.skipped).toBe(0);
  });

  it('skips and counts by option, and reports each once', () => {
    for (const size of SIZES) {
      const told: WatchError[] = [];
      const framer = make({ maxFrameBytes: 3, oversize: 'skip', onSkip: (error) => told.push(error) });
      expect(read(framer, chunked(stream('a', 'long', 'b', 'longer', 'too long', 'c'), size))).toEqual(['a', 'b', 'c']);
      expect(framer.skipped).toBe(3);
      expect(told.map((error) => [error.code, error.limit])).toEqual(new Array(3).fill(['FRAME_TOO_LARGE', 3]));
    }
    const quiet = make({ maxFrameBytes: 3, oversize: 'skip' });
    expect(read(quiet, [stream('long', 'c')])).toEqual(['c']);
    expect(quiet.skipped).toBe(1);
  });

  it('does not call onSkip for an error', () => {
    const onSkip = vi.fn();
    expect(read(make({ maxFrameBytes: 3, onSkip }), [stream('long', 'c')])).toEqual(['!FRAME_TOO_LARGE', 'c']);
    expect(onSkip).not.toHaveBeenCalled();
  });

  it('continues after the frame if onSkip throws', () => {
    const framer = make({
      maxFrameBytes: 3,
      oversize: 'skip',
      onSkip: () => {
        throw new Error('mine');
      },
    });
    framer.push(stream('long', 'c'));
    expect(() => framer.next()).toThrow('mine');
    expect(text(framer.next()!)).toBe('c');
    expect(framer.skipped).toBe(1);
  });

  it('counts an oversize frame that the end cuts off, once', () => {
    for (const size of SIZES) {
      const framer = make({ maxFrameBytes: 3, oversize: 'skip' });
      expect(read(framer, chunked(stream('a', 'much too long').subarray(0, -2), size))).toEqual(['a']);
      expect(framer.skipped).toBe(1);
    }
  });

  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])('refuses a limit of %s', (maxFrameBytes) => {
    expect(() => make({ maxFrameBytes })).toThrow(/^maxFrameBytes: expected a whole number >= 1/);
  });

  it('accepts a limit of 1', () => {
    expect(read(make({ maxFrameBytes: 1 }), [stream('a', 'ab', 'b')])).toEqual(['a', '!FRAME_TOO_LARGE', 'b']);
  });

  it('assembles a frame from many small chunks (TestJSONFrameReaderShortBuffer)', () => {
    const bodies = ['x'.repeat(1023), 'y'.repeat(1024), 'z'.repeat(1025), 'w'.repeat(5000), '1'];
    for (const size of [1, 7, 100, 1024]) expect(read(make(), chunked(stream(...bodies), size))).toEqual(bodies);
  });

  it('does not alias the memory of a chunk or of an earlier frame (TestJSONFrameReaderShortBufferNoUnderlyingArrayReuse)', () => {
    const framer = make();
    const reused = new Uint8Array(4);
    const frames: Uint8Array[] = [];
    for (const piece of chunked(stream('first one', 'second', 'third', 'and the last'), 4)) {
      reused.set(piece);
      framer.push(reused.subarray(0, piece.length));
      for (let frame = framer.next(); frame !== undefined; frame = framer.next()) {
        // A frame may be a view on the chunk; all others must stay as they are.
        frames.push(frame.buffer === reused.buffer ? frame.slice() : frame);
      }
      reused.fill(0);
    }
    expect(frames.map(text)).toEqual(['first one', 'second', 'third', 'and the last']);
  });

  it('does not copy a frame within one chunk', () => {
    const framer = make();
    const chunk = stream('abc', 'def');
    framer.push(chunk);
    expect(framer.next()?.buffer).toBe(chunk.buffer);
    expect(framer.next()?.buffer).toBe(chunk.buffer);
    expect(framer.next()).toBeUndefined();
    expect(framer.buffered).toBe(0);
  });

  it('releases a chunk that it has read', () => {
    const framer = make();
    framer.push(stream('abc'));
    framer.next();
    framer.next();
    expect((framer as unknown as { chunk: Uint8Array }).chunk.length).toBe(0);
  });

  it('works when pushed before it was read to the end', () => {
    const framer = make();
    const data = stream('abc', 'de', 'f', 'ghi');
    for (const chunk of chunked(data, 5)) framer.push(chunk);
    expect(text(framer.next()!)).toBe('abc');
    framer.push(stream('jk'));
    framer.push(new Uint8Array(0));
    expect(read(framer, [new Uint8Array(0)])).toEqual(['de', 'f', 'ghi', 'jk']);
  });

  it('copies a long frame a bounded number of times, in any chunking', () => {
    const length = 64 * 1024;
    const data = stream('x'.repeat(length));
    const typedArray = Object.getPrototypeOf(Uint8Array.prototype) as Uint8Array;
    const set = vi.spyOn(typedArray, 'set');
    try {
      const framer = make();
      let frame: Uint8Array | undefined;
      for (let at = 0; at < data.length; at += 16) {
        framer.push(data.subarray(at, at + 16));
        frame = framer.next();
      }
      expect(frame?.length).toBe(length);
      const copied = set.mock.calls.reduce((sum, [from]) => sum + from.length, 0);
      expect(copied).toBeGreaterThanOrEqual(length);
      expect(copied).toBeLessThan(3.1 * length);
    } finally {
      set.mockRestore();
    }
  });

  it('keeps a small buffer, and releases a large one', () => {
    const held = (length: number): number => {
      const framer = make();
      read(framer, chunked(stream('x'.repeat(length)), 1000), { end: false });
      expect(framer.buffered).toBe(0);
      return (framer as unknown as { buffer: Uint8Array }).buffer.length;
    };
    expect(held(1010)).toBe(1024);
    expect(held(3000)).toBe(4096);
    expect(held(65_000)).toBe(65_536);
    expect(held(70_000)).toBe(0);
  });
});
