// etcd's messages, each with the numbers that its fields have in etcd's rpc.proto and kv.proto, and with fields that we do not know.
import { describe, expect, it } from 'vitest';
import {
  ProtoReader,
  ProtoWriter,
  readLease,
  readRange,
  readText,
  readWatch,
  readWrite,
  sizeOfBytes,
  sizeOfInt64,
  writeAuthenticate,
  writeGuarded,
  writeLeaseGrant,
  writeRange,
  writeWatchCreate,
  writeWatchProgress,
} from '../../src/storage/etcd/wire/messages.ts';

const bytes = (text: string): Uint8Array => Buffer.from(text, 'latin1');
const hex = (message: Uint8Array): string => Buffer.from(message).toString('hex');
/** A message of fields: numbers, texts, messages. */
function message(fields: readonly (readonly [field: number, value: number | string | Uint8Array])[]): Uint8Array {
  const writer = new ProtoWriter();
  for (const [field, value] of fields) {
    if (typeof value === 'number') writer.int64(field, value);
    else writer.message(field, typeof value === 'string' ? bytes(value) : value);
  }
  return writer.finish();
}
/** A field that nobody knows, of each kind. */
const UNKNOWN = Buffer.from('980601' + '9a060178' + '99060000000000000000' + '9d0600000000', 'hex');
const withUnknown = (inner: Uint8Array): Uint8Array => Buffer.concat([UNKNOWN, inner, UNKNOWN]);

const header = withUnknown(
  message([
    [1, 5],
    [2, 99],
    [3, 7],
    [4, 3],
  ]),
);
const HEADER = { clusterId: 5n, revision: 7n, term: 3n };
const kv = (key: string, value: string): Uint8Array =>
  withUnknown(
    message([
      [1, key],
      [2, 4],
      [3, 6],
      [4, 98],
      [5, value],
      [6, 9],
    ]),
  );
const kvOf = (key: string, value: string): object => ({
  key: bytes(key),
  createRevision: 4n,
  modRevision: 6n,
  value: bytes(value),
});
const plain = (value: unknown): unknown => {
  const copy = (each: unknown): unknown => {
    if (each instanceof Uint8Array) return Buffer.from(each);
    if (Array.isArray(each)) return each.map(copy);
    if (each === null || typeof each !== 'object') return each;
    return Object.fromEntries(Object.entries(each).map(([name, inner]) => [name, copy(inner)]));
  };
  return copy(value);
};

describe('what is asked', () => {
  it('a range', () => {
    expect(hex(writeRange({ key: bytes('a') }))).toBe(hex(message([[1, 'a']])));
    const whole = { key: bytes('a'), end: bytes('b'), limit: 2, revision: 3n, serializable: true, countOnly: true };
    expect(hex(writeRange(whole))).toBe(
      hex(
        message([
          [1, 'a'],
          [2, 'b'],
          [3, 2],
          [4, 3],
          [7, 1],
          [9, 1],
        ]),
      ),
    );
  });

  it('a write if the revision is the expected one, and what is there if not', () => {
    const guard = message([
      [2, 2],
      [3, 'a'],
      [6, 300],
    ]);
    const otherwise = message([[1, message([[1, 'a']])]]);
    const put = message([
      [
        2,
        message([
          [1, 'a'],
          [2, 'v'],
          [3, 200],
        ]),
      ],
    ]);
    expect(hex(writeGuarded({ key: bytes('a'), expected: 300n, put: { value: bytes('v'), lease: 200n } }))).toBe(
      hex(
        message([
          [1, guard],
          [2, put],
          [3, otherwise],
        ]),
      ),
    );
    const remove = message([[3, message([[1, 'a']])]]);
    expect(hex(writeGuarded({ key: bytes('a'), expected: 300n }))).toBe(
      hex(
        message([
          [1, guard],
          [2, remove],
          [3, otherwise],
        ]),
      ),
    );
  });

  it('a watch, its progress, a lease, a token', () => {
    const create = message([
      [1, 'a'],
      [2, 'b'],
      [3, 5],
      [4, 1],
      [6, 1],
      [8, 1],
    ]);
    expect(hex(writeWatchCreate({ key: bytes('a'), end: bytes('b'), startRevision: 5n, previous: true }))).toBe(
      hex(message([[1, create]])),
    );
    const bare = message([
      [1, 'a'],
      [3, 5],
      [4, 1],
      [8, 1],
    ]);
    expect(hex(writeWatchCreate({ key: bytes('a'), startRevision: 5n, previous: false }))).toBe(hex(message([[1, bare]])));
    expect(hex(writeWatchProgress())).toBe('1a00');
    expect(hex(writeLeaseGrant(630))).toBe(hex(message([[1, 630]])));
    expect(hex(writeAuthenticate('me', 'p'))).toBe(
      hex(
        message([
          [1, 'me'],
          [2, 'p'],
        ]),
      ),
    );
  });
});

describe('what is answered', () => {
  it('a range', () => {
    const answer = withUnknown(
      message([
        [1, header],
        [2, kv('a', 'x')],
        [2, kv('b', 'y')],
        [3, 1],
        [4, 12],
      ]),
    );
    expect(plain(readRange(answer))).toEqual({ header: HEADER, kvs: [kvOf('a', 'x'), kvOf('b', 'y')], more: true, count: 12 });
    const nothing = { clusterId: 0n, revision: 0n, term: 0n };
    expect(readRange(new Uint8Array(0))).toEqual({ header: nothing, kvs: [], more: false, count: 0 });
  });

  it('a write', () => {
    expect(
      readWrite(
        withUnknown(
          message([
            [1, header],
            [2, 1],
          ]),
        ),
      ),
    ).toEqual({ header: HEADER, succeeded: true, current: undefined });
    const range = withUnknown(
      message([
        [
          1,
          withUnknown(
            message([
              [1, header],
              [2, kv('a', 'x')],
              [4, 1],
            ]),
          ),
        ],
      ]),
    );
    expect(
      plain(
        readWrite(
          message([
            [1, header],
            [3, range],
          ]),
        ),
      ),
    ).toEqual({
      header: HEADER,
      succeeded: false,
      current: kvOf('a', 'x'),
    });
    // Other answers than that of the read say nothing of what is there, before and behind it.
    const put = message([[2, message([[1, header]])]]);
    const nothing = message([[1, message([[1, header]])]]);
    expect(
      plain(
        readWrite(
          message([
            [3, put],
            [3, range],
            [3, nothing],
            [3, put],
          ]),
        ),
      ),
    ).toMatchObject({ current: kvOf('a', 'x') });
    expect(readWrite(message([[3, put]])).current).toBeUndefined();
  });

  it('changes', () => {
    const put = withUnknown(
      message([
        [2, kv('a', 'x')],
        [3, kv('a', 'w')],
      ]),
    );
    const removal = message([
      [1, 1],
      [2, kv('b', '')],
    ]);
    const other = message([[1, 2]]);
    const answer = withUnknown(
      message([
        [1, header],
        [2, 77],
        [3, 1],
        [4, 1],
        [5, 20],
        [6, 'why'],
        [7, 1],
        [11, put],
        [11, removal],
        [11, other],
      ]),
    );
    expect(plain(readWatch(answer))).toEqual({
      header: HEADER,
      created: true,
      canceled: true,
      compactRevision: 20n,
      cancelReason: 'why',
      fragment: true,
      events: [
        { deleted: false, kv: kvOf('a', 'x'), previous: kvOf('a', 'w') },
        { deleted: true, kv: kvOf('b', ''), previous: undefined },
        {
          deleted: false,
          kv: { key: bytes(''), createRevision: 0n, modRevision: 0n, value: bytes('') },
          previous: undefined,
        },
      ],
    });
    expect(readWatch(new Uint8Array(0))).toEqual({
      header: { clusterId: 0n, revision: 0n, term: 0n },
      created: false,
      canceled: false,
      compactRevision: 0n,
      cancelReason: '',
      fragment: false,
      events: [],
    });
  });

  it('a lease, and a text', () => {
    const lease = readLease(
      withUnknown(
        message([
          [1, header],
          [2, 8],
          [3, 630],
        ]),
      ),
    );
    expect(lease).toBe(8n);
    expect(
      readText(
        withUnknown(
          message([
            [1, header],
            [2, '3.6.0'],
            [3, 5],
          ]),
        ),
      ),
    ).toBe('3.6.0');
    expect(readText(message([[1, header]]))).toBe('');
  });
});

describe('protobuf', () => {
  it('sizes are those of what is written, at every border', () => {
    for (let bits = 0n; bits <= 63n; bits++) {
      for (const value of [2n ** bits - 1n, 2n ** bits, -(2n ** bits)]) {
        if (value > 2n ** 63n - 1n) continue;
        expect([value, sizeOfInt64(value)]).toEqual([value, new ProtoWriter().int64(15, value).finish().length]);
      }
    }
    for (const length of [0, 1, 127, 128, 16_383, 16_384]) {
      expect(sizeOfBytes(length)).toBe(new ProtoWriter().message(15, new Uint8Array(length)).finish().length);
    }
  });

  it('a writer that knows the size copies nothing, one that does not grows', () => {
    const [known, unknown] = [new ProtoWriter(3), new ProtoWriter(1)];
    expect(hex(known.bytes(1, bytes('a')).finish())).toBe('0a0161');
    expect(
      hex(
        unknown
          .bytes(1, bytes('ab'))
          .int64(2, -1n)
          .int64(3, 2 ** 40)
          .finish(),
      ),
    ).toBe('0a02616210ffffffffffffffffff0118808080808020');
  });

  it('a value of another kind than is asked for is refused, and so is a field that ends beyond its message', () => {
    const at = (text: string): ProtoReader => {
      const reader = new ProtoReader(Buffer.from(text, 'hex'));
      reader.next();
      return reader;
    };
    const refused = (why: string) => expect.objectContaining({ code: 'INVALID_FRAME', message: expect.stringContaining(why) });
    expect(() => at('0a0161').int64()).toThrow(refused('field 1 of kind 2'));
    expect(() => at('0801').bytes()).toThrow(refused('field 1 of kind 0'));
    expect(() => at('0a0261').bytes()).toThrow(refused('a field that is longer than its message'));
    expect(() => at('0900000000000000').skip()).toThrow(refused('a field that is longer than its message'));
    expect(() => at('0d000000').skip()).toThrow(refused('a field that is longer than its message'));
    expect(() => at('0b').skip()).toThrow(refused('a field of kind 3'));
    expect(() => at('0c').skip()).toThrow(refused('a field of kind 4'));
    expect(() => at('00')).toThrow(refused('field 0'));
    expect(() => at('08').int64()).toThrow(refused('a message that ends within a number'));
    expect(() => at(`08${'ff'.repeat(10)}01`).int64()).toThrow(refused('a number that is too long'));
    expect(() => at(`0a${'ff'.repeat(7)}01`).bytes()).toThrow(refused('a number that is too long'));
    // What fits exactly is read.
    expect(at('0a0161').text()).toBe('a');
    expect(at('0a00').bytes()).toHaveLength(0);
    for (const whole of ['090000000000000000', '0d00000000', '0801', '0a0161']) {
      const reader = at(whole);
      reader.skip();
      expect(reader.next()).toBe(false);
    }
  });

  it('true is anything but 0', () => {
    const read = (text: string): boolean => {
      const reader = new ProtoReader(Buffer.from(text, 'hex'));
      reader.next();
      return reader.bool();
    };
    expect([read('0801'), read('0802'), read('0800')]).toEqual([true, true, false]);
  });
});
