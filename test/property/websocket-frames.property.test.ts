// What clients send over WebSockets, against the package ws as the oracle: the same bytes, in any pieces, mean the same to both.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import * as ws from 'ws';
import { WebSocketReader } from '../../src/bridge/transport/frames.ts';
import { runs } from '../runs.ts';

/** Of which its types say nothing. */
const { Receiver } = ws as unknown as { Receiver: new (options: object) => NodeJS.WritableStream };

const MAX_BYTES = 64;
const KINDS = ['continuation', 'text', 'binary', ...Array(5).fill('reserved'), 'close', 'ping', 'pong'] as const;

interface Spec {
  readonly kind: number;
  readonly isFinal: boolean;
  readonly reserved: number;
  readonly isMasked: boolean;
  readonly payload: Uint8Array;
}

/** A client's frame. */
function toFrame({ kind, isFinal, reserved, isMasked, payload }: Spec): Buffer {
  const { length } = payload;
  const mask = Buffer.from([1, 200, 3, 77]);
  const extended = length < 126 ? Buffer.alloc(0) : Buffer.from([length >> 8, length & 0xff]);
  const head = [(isFinal ? 0x80 : 0) | (reserved << 4) | kind, (isMasked ? 0x80 : 0) | (length < 126 ? length : 126)];
  const body = Buffer.from(payload.map((byte, at) => (isMasked ? byte ^ (mask[at & 3] as number) : byte)));
  return Buffer.concat([Buffer.from(head), extended, ...(isMasked ? [mask] : []), body]);
}

/** What one side makes of the bytes: the frames until a close frame or a violation, as `1002`. */
type Seen = readonly string[];

function ours(chunks: readonly Buffer[]): Seen {
  const reader = new WebSocketReader({ maxInboundBytes: MAX_BYTES, compression: false });
  const seen: string[] = [];
  try {
    for (const chunk of chunks) {
      for (const { kind, payload } of reader.frames(chunk)) {
        const isClose = kind === 8;
        if (kind < 8) seen.push('message');
        else seen.push(`${KINDS[kind]} ${payload.toString('hex')}`);
        if (isClose) return seen;
      }
    }
  } catch (error) {
    seen.push(String((error as { code: number }).code));
  }
  return seen;
}

async function theirs(bytes: Buffer): Promise<Seen> {
  const options = { isServer: true, maxPayload: MAX_BYTES, allowSynchronousEvents: true };
  const receiver = new Receiver(options);
  const seen: string[] = [];
  let over = false;
  const see = (what: string): void => {
    if (!over) seen.push(what);
  };
  receiver.on('message', () => see('message'));
  receiver.on('ping', (data: Buffer) => see(`ping ${data.toString('hex')}`));
  receiver.on('pong', (data: Buffer) => see(`pong ${data.toString('hex')}`));
  receiver.on('conclude', (code: number, reason: Buffer) => {
    const head = code === 1005 ? '' : code.toString(16).padStart(4, '0');
    see(`close ${head}${reason.toString('hex')}`);
    over = true;
  });
  receiver.on('error', (error: object) => {
    const values = Object.getOwnPropertySymbols(error).map((each) => (error as Record<symbol, unknown>)[each]);
    see(String(values.find((each) => typeof each === 'number')));
  });
  if (bytes.length > 0) receiver.write(bytes as unknown as string);
  await new Promise((resolve) => setImmediate(resolve));
  return seen;
}

const often = <T>(usual: T, rare: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ weight: 12, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: rare });
const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 20 }).map((each) => new Uint8Array(Buffer.from(each))),
  fc.uint8Array({ maxLength: 20 }),
  fc
    .constantFrom('ce', 'ba', 'f09f', '9880', 'eda080', 'f4908080', 'c080', '')
    .map((hex) => new Uint8Array(Buffer.from(hex, 'hex'))),
);
const closing = fc
  .tuple(fc.oneof(fc.integer({ min: 990, max: 1020 }), fc.constantFrom(2999, 3000, 4999, 5000)), text)
  .map(([code, reason]) => new Uint8Array([code >> 8, code & 0xff, ...reason]));
const frame: fc.Arbitrary<Spec> = fc.record({
  kind: fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(0, 1, 2, 9, 10) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 15 }) },
  ),
  isFinal: fc.oneof({ weight: 3, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.boolean() }),
  reserved: often(0, fc.integer({ min: 0, max: 7 })),
  isMasked: often(true, fc.boolean()),
  payload: fc.oneof({ weight: 8, arbitrary: text }, { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }) }),
});
const close = fc.oneof(closing, text).map((payload): Spec => ({ kind: 8, isFinal: true, reserved: 0, isMasked: true, payload }));
const frames = fc.array(fc.oneof({ weight: 8, arbitrary: frame }, { weight: 1, arbitrary: close }), { maxLength: 8 });

/** The bytes in pieces of these sizes, over and over. */
function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = sizes[turn % sizes.length] ?? bytes.length;
    chunks.push(bytes.subarray(at, at + size));
    at += size;
  }
  return chunks;
}

describe('frames of clients', () => {
  test('mean what they mean to ws', async () => {
    let closed = 0;
    await fc.assert(
      fc.asyncProperty(frames, fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 4 }), async (specs, sizes) => {
        const bytes = Buffer.concat(specs.map(toFrame));
        const [own, other] = [ours(cut(bytes, sizes)), await theirs(Buffer.from(bytes))];
        // Invalid text is noticed at once, by ws at the end of its message.
        if (own.at(-1) === '1007' && other.at(own.length - 1) !== '1007') {
          expect(other.slice(0, own.length - 1)).toEqual(own.slice(0, -1));
          return;
        }
        if (/^\d/.test(own.at(-1) ?? '')) closed++;
        expect(own).toEqual(other);
      }),
      { numRuns: runs(3_000) },
    );
    expect(closed).toBeGreaterThan(runs(300));
  });
});
