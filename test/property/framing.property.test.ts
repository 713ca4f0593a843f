import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Framer, type FramerOptions, LengthPrefixedFramer, NewlineFramer } from '../../src/decode/framing.ts';
import { isWatchError } from '../../src/watch/errors.ts';
import { runs } from '../runs.ts';

/** A frame as a list of bytes; 'TOO LARGE' in the place of an oversize one. */
type Got = number[] | 'TOO LARGE';

/** Bytes that matter to lines are likely; any other is possible. */
const byte = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(10, 13, 32, 9, 0xef, 0xbb, 0xbf, 0x61) },
  { weight: 1, arbitrary: fc.nat(255) },
);
const anyBytes = fc.array(byte, { maxLength: 60 });
const limit = fc.integer({ min: 1, max: 12 });
const cuts = fc.array(fc.nat(9), { minLength: 1, maxLength: 20 });

/** Cut into chunks of these sizes, in turn; sizes of 0 are empty chunks. */
function cut(data: readonly number[], sizes: readonly number[]): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  for (let at = 0, i = 0; at < data.length; i++) {
    // A run of empty chunks must end some time.
    const size = i < sizes.length ? sizes[i]! : Math.max(1, sizes[i % sizes.length]!);
    chunks.push(Uint8Array.from(data.slice(at, at + size)));
    at += size;
  }
  return chunks;
}

/** What the framer gives for these chunks, each wiped when it is read; checks the bound on what is held. */
function run(framer: Framer, chunks: readonly Uint8Array[], maxFrameBytes: number, lent: boolean = false): Got[] {
  const frames: (Uint8Array | 'TOO LARGE')[] = [];
  for (const chunk of chunks) {
    framer.push(chunk);
    for (let more = true; more; ) {
      try {
        const frame = framer.next(lent);
        more = frame !== undefined;
        // Views on the chunk are copied, as the contract says; what comes out of the framer's own memory must last.
        if (frame !== undefined) frames.push(lent || frame.buffer === chunk.buffer ? frame.slice() : frame);
      } catch (error) {
        expect(isWatchError(error, 'FRAME_TOO_LARGE') && error.limit).toBe(maxFrameBytes);
        frames.push('TOO LARGE');
      }
      expect(framer.buffered).toBeLessThanOrEqual(maxFrameBytes + 1);
    }
    chunk.fill(0x2a);
  }
  const last = framer.end();
  if (last !== undefined) frames.push(last);
  expect(framer.buffered).toBe(0);
  return frames.map((frame) => (frame === 'TOO LARGE' ? frame : [...frame]));
}

/** Lines, found with everything in hand. */
function lineModel(data: readonly number[], maxFrameBytes: number): Got[] {
  const got: Got[] = [];
  let rest = [...data];
  for (let first = true; rest.length > 0; ) {
    const eol = rest.indexOf(10);
    let line = eol < 0 ? rest : rest.slice(0, eol);
    rest = eol < 0 ? [] : rest.slice(eol + 1);
    if (line.at(-1) === 13) line = line.slice(0, -1);
    if (line.length > maxFrameBytes) {
      got.push('TOO LARGE');
      continue;
    }
    if (first && line[0] === 0xef && line[1] === 0xbb && line[2] === 0xbf) line = line.slice(3);
    first = false;
    if (line.some((value) => ![32, 9, 13].includes(value))) got.push(line);
  }
  return got;
}

/** Length-prefixed frames of any bytes at all, found with everything in hand. */
function lengthModel(data: readonly number[], maxFrameBytes: number): Got[] {
  const got: Got[] = [];
  for (let rest = [...data]; rest.length >= 4; ) {
    const length = rest.slice(0, 4).reduce((value, next) => value * 256 + next, 0);
    if (length > maxFrameBytes) got.push('TOO LARGE');
    else if (rest.length >= 4 + length) got.push(rest.slice(4, 4 + length));
    rest = rest.slice(4 + length);
  }
  return got;
}

const prefixed = (body: readonly number[]): number[] => [0, 0, body.length >> 8, body.length & 255, ...body];

const framings = [
  {
    name: 'NewlineFramer',
    make: (options: FramerOptions): Framer => new NewlineFramer(options),
    model: lineModel,
    stream: fc.oneof(
      anyBytes,
      anyBytes.map((data) => [0xef, 0xbb, 0xbf, ...data]),
    ),
  },
  {
    name: 'LengthPrefixedFramer',
    make: (options: FramerOptions): Framer => new LengthPrefixedFramer(options),
    model: lengthModel,
    // Whole frames, the last one cut short by up to as much as it is long.
    stream: fc
      .tuple(fc.array(fc.array(fc.nat(255), { maxLength: 20 }), { maxLength: 8 }), fc.nat(24))
      .map(([bodies, missing]) => bodies.flatMap(prefixed).slice(0, missing === 0 ? undefined : -missing)),
  },
];

describe.each(framings)('$name', ({ make, model, stream }) => {
  it('returns what the model returns, in any chunking, and buffers no more than the limit', () => {
    fc.assert(
      fc.property(stream, cuts, limit, fc.boolean(), (data, sizes, maxFrameBytes, lent) => {
        const got = run(make({ maxFrameBytes }), cut(data, sizes), maxFrameBytes, lent);
        // A header that the end cuts short may have said enough already.
        const expected = model(data, maxFrameBytes);
        if (got.length > expected.length) expect(got.pop()).toBe('TOO LARGE');
        expect(got).toEqual(expected);
      }),
      { numRuns: runs(1000) },
    );
  });

  it('with skip, skips and counts exactly the frames that would be errors', () => {
    fc.assert(
      fc.property(stream, cuts, limit, (data, sizes, maxFrameBytes) => {
        const refused = run(make({ maxFrameBytes }), cut(data, sizes), maxFrameBytes);
        let told = 0;
        const framer = make({ maxFrameBytes, oversize: 'skip', onSkip: () => told++ });
        expect(run(framer, cut(data, sizes), maxFrameBytes)).toEqual(refused.filter((frame) => frame !== 'TOO LARGE'));
        expect(framer.skipped).toBe(refused.filter((frame) => frame === 'TOO LARGE').length);
        expect(told).toBe(framer.skipped);
      }),
      { numRuns: runs(1000) },
    );
  });

  it('returns the same if chunks are pushed before the previous one was read to its end', () => {
    fc.assert(
      fc.property(stream, cuts, (data, sizes) => {
        const framer = make({});
        for (const chunk of cut(data, sizes)) framer.push(chunk);
        expect(run(framer, [new Uint8Array(0)], 16 * 1024 * 1024)).toEqual(model(data, 16 * 1024 * 1024));
      }),
      { numRuns: runs(300) },
    );
  });
});
