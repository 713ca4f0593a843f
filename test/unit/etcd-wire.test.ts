// What a storage on etcd reads from a wire: protobuf and gRPC's frames, also such as no etcd sends.
import type { ClientHttp2Stream } from 'node:http2';
import { Duplex } from 'node:stream';
import * as fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { CallStream, FrameReader, toFrame } from '../../src/storage/etcd/wire/call-stream.ts';
import { isTooOld } from '../../src/storage/etcd/wire/channel.ts';
import {
  ProtoReader,
  ProtoWriter,
  readLease,
  readRange,
  readText,
  readWatch,
  readWrite,
  writeGuarded,
} from '../../src/storage/etcd/wire/messages.ts';
import { behind, toBytes, toText } from '../../src/storage/keys.ts';
import { isWatchError } from '../../src/watch/errors.ts';
import { runs } from '../runs.ts';
import { macrotask } from './support.ts';

const RUNS = { numRuns: runs(500) };
const bytes = fc.uint8Array({ maxLength: 200 });

describe('protobuf', () => {
  it('numbers of 64 bits and bytes come out as they went in, and unknown fields are skipped', () => {
    const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
    fc.assert(
      fc.property(int64, fc.maxSafeNat(), bytes, (large, small, body) => {
        const message = new ProtoWriter().int64(1, large).int64(2, small).message(2_000, body).int64(4, 1).finish();
        const seen: unknown[] = [];
        for (const reader = new ProtoReader(message); reader.next(); ) {
          if (reader.field === 2_000) seen.push(Uint8Array.from(reader.bytes()));
          else if (reader.field === 4) reader.skip();
          else seen.push([reader.field, reader.int64()]);
        }
        const expected: unknown[] = [
          [1, large],
          [2, BigInt(small)],
        ].filter(([, value]) => value !== 0n);
        expect(seen).toEqual([...expected, body]);
      }),
      RUNS,
    );
  });

  it('the bytes are those of other implementations', () => {
    const hex = (message: Uint8Array): string => Buffer.from(message).toString('hex');
    expect(hex(new ProtoWriter().int64(1, 150).finish())).toBe('089601');
    expect(hex(new ProtoWriter().bytes(2, toBytes('testing')).finish())).toBe('120774657374696e67');
    expect(hex(new ProtoWriter().int64(1, -1n).finish())).toBe('08ffffffffffffffffff01');
    expect(hex(new ProtoWriter().int64(1, 0).bool(2, false).bytes(3, undefined).message(4, new Uint8Array(0)).finish())).toBe(
      '2200',
    );
  });

  it('a write is written in one go, with the bytes that its parts have', () => {
    const number = fc.oneof(fc.constant(0n), fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }));
    const put = fc.option(fc.record({ value: bytes, lease: number }), { nil: undefined });
    const key = fc.uint8Array({ minLength: 1, maxLength: 300 });
    fc.assert(
      fc.property(key, number, put, (name, expected, written) => {
        const guard = new ProtoWriter().int64(2, 2).message(3, name).int64(6, expected).finish();
        const inner = new ProtoWriter().message(1, name);
        if (written) inner.bytes(2, written.value).int64(3, written.lease);
        const operation = new ProtoWriter().message(written ? 2 : 3, inner.finish()).finish();
        const otherwise = new ProtoWriter().message(1, new ProtoWriter().message(1, name).finish()).finish();
        const whole = new ProtoWriter().message(1, guard).message(2, operation).message(3, otherwise).finish();
        expect(Buffer.compare(writeGuarded({ key: name, expected, put: written }), whole)).toBe(0);
      }),
      RUNS,
    );
  });

  it('whatever comes is read, or refused with INVALID_FRAME: nothing is read beyond the end', () => {
    const cut = fc.tuple(bytes, fc.nat()).map(([body, at]) => {
      const message = new ProtoWriter()
        .message(1, body)
        .message(2, body)
        .int64(3, 2n ** 62n)
        .message(11, body)
        .finish();
      return message.subarray(0, at % (message.length + 1));
    });
    fc.assert(
      fc.property(fc.oneof(bytes, cut), (message) => {
        for (const read of [readRange, readWatch, readWrite, readLease, readText]) {
          try {
            read(message);
          } catch (error) {
            expect(isWatchError(error, 'INVALID_FRAME'), String(error)).toBe(true);
          }
        }
      }),
      RUNS,
    );
  });

  it.each([
    ['a length beyond the end', '0aff01'],
    ['a length of 2^40', '0a80808080802000'],
    ['a number without an end', '08ffffff'],
    ['a number of eleven bytes', '08ffffffffffffffffffff01'],
    ['a group', '0b'],
    ['field 0', '0000'],
    ['a number where bytes belong', '0801'],
    ['a cut fixed64', '3900'],
  ])('%s is refused', (_, hex) => {
    expect(() => readRange(Buffer.from(hex, 'hex'))).toThrow(expect.objectContaining({ code: 'INVALID_FRAME' }));
  });
});

describe('frames', () => {
  it('messages come out whole, wherever the chunks end', () => {
    fc.assert(
      fc.property(
        fc.array(bytes, { maxLength: 10 }),
        fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 }),
        (messages, sizes) => {
          const whole = Buffer.concat(messages.map(toFrame));
          const reader = new FrameReader(200);
          const seen: Uint8Array[] = [];
          for (let at = 0, turn = 0; at < whole.length; turn++) {
            const size = sizes[turn % sizes.length] as number;
            reader.push(new Uint8Array(whole.subarray(at, at + size)));
            at += size;
            for (let message = reader.read(); message; message = reader.read()) seen.push(new Uint8Array(message));
          }
          expect(seen).toEqual(messages.map((message) => new Uint8Array(message)));
          expect(reader.pendingBytes).toBe(0);
        },
      ),
      RUNS,
    );
  });

  it('a message that will be too long is refused by its head, a compressed one too', () => {
    const reader = new FrameReader(10);
    reader.push(toFrame(new Uint8Array(10)));
    expect(reader.read()).toHaveLength(10);
    reader.push(toFrame(new Uint8Array(11)).subarray(0, 5));
    expect(() => reader.read()).toThrow(expect.objectContaining({ code: 'FRAME_TOO_LARGE', limit: 10 }));
    const other = new FrameReader(10);
    other.push(Uint8Array.of(1, 0, 0, 0, 0));
    expect(() => other.read()).toThrow(expect.objectContaining({ code: 'INVALID_FRAME' }));
  });
});

describe('a message that comes a byte at a time', () => {
  it('is not held as that many views', () => {
    const set = vi.spyOn(Uint8Array.prototype, 'set');
    const frame = toFrame(Uint8Array.from({ length: 1_000 }, (_, at) => at % 251));
    const reader = new FrameReader(2_000);
    for (let at = 0; at < frame.length; at++) {
      reader.push(frame.subarray(at, at + 1));
      if (at < frame.length - 1) expect(reader.read()).toBeUndefined();
    }
    set.mockClear();
    const message = reader.read();
    const parts = set.mock.calls.length; // all of them are joined
    set.mockRestore();
    expect(Buffer.compare(message as Uint8Array, frame.subarray(5))).toBe(0);
    expect(parts).toBeLessThan(12);
  });
});

describe('a call that is read from time to time', () => {
  it('gets a message that is longer than what may wait, although most of it came while nobody read', async () => {
    const stream = Object.assign(new Duplex({ read() {} }), { close() {} });
    const call = new CallStream(stream as unknown as ClientHttp2Stream, {
      ...{ maxBytes: 2 ** 24, onEnd() {}, reasonOf: ({ message }) => message },
    });
    const frame = toFrame(new Uint8Array(3 * 2 ** 20));
    for (let at = 0; at < frame.length; at += 2 ** 16) stream.push(frame.subarray(at, at + 2 ** 16));
    await macrotask();
    expect(stream.isPaused()).toBe(true);
    const read = call.read();
    await macrotask();
    expect(await Promise.race([read, 'nothing'])).toMatchObject({ message: { length: 3 * 2 ** 20 } });
  });
});

describe('keys as bytes', () => {
  const text = fc.string({ unit: 'binary', maxLength: 20 });

  it('their order is that of code units, and they can be read again, halves of pairs among them', () => {
    const halves = fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 10 }).map((units) => String.fromCharCode(...units));
    fc.assert(
      fc.property(fc.oneof(text, halves), fc.oneof(text, halves), (one, other) => {
        expect(toText(toBytes(one))).toBe(one);
        const order = Buffer.compare(toBytes(one), toBytes(other));
        expect(order).toBe(one < other ? -1 : one > other ? 1 : 0);
      }),
      RUNS,
    );
  });

  it('TestPrepareKey: a range ends where its prefix does', () => {
    expect(toText(behind(toBytes('/a/ns/')))).toBe('/a/ns0');
    for (const [key, isIn] of [
      ['/a/ns/b', true],
      ['/a/ns/\uFFFF', true],
      ['/a/ns-2/b', false],
      ['/a/ns0', false],
    ] as const) {
      const at = toBytes(key);
      const inside = Buffer.compare(at, toBytes('/a/ns/')) >= 0 && Buffer.compare(at, behind(toBytes('/a/ns/'))) < 0;
      expect([key, inside]).toEqual([key, isIn]);
    }
  });
});

describe('versions of etcd', () => {
  it.each(['3.4.31', '3.4.40', '3.5.13', '3.6.0', '3.7.0', '3.10.0', '4.0.0', '12.1.0', '3.6.0-rc.1', 'v3.6.1'])(
    '%s will do',
    (version) => {
      expect(isTooOld(version)).toBe(false);
    },
  );
  it.each(['3.4.23', '3.4.30', '3.5.12', '3.5.0', '3.3.27', '2.3.8', '2.10.8', '', 'x', '3.6', 'etcd 3.6.0', '3.6.x'])(
    '%j is too old, or none',
    (version) => {
      expect(isTooOld(version)).toBe(true);
    },
  );
});
