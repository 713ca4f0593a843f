// The load of the bridge benchmark detects wrong bytes, and decodes what each server writes.
import { constants, deflateRawSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { decode } from './bridge/protocols.ts';
import { SharedStream } from './bridge/shared-stream.ts';

const bytes = (text: string): Buffer => Buffer.from(text);

describe('a shared stream', () => {
  test('clients that read the same bytes in other chunks, each at its own pace', () => {
    const stream = new SharedStream(3);
    stream.read(1, bytes('abc'));
    stream.read(0, bytes('a'));
    stream.read(0, bytes('bcde'));
    stream.read(1, bytes('de'));
    expect(stream.all(5)).toBe(false);
    stream.read(2, bytes('abcde'));
    expect(stream.all(5)).toBe(true);
    expect(String(stream.take())).toBe('abcde');
    stream.read(0, bytes('x'));
    expect(stream.all(1)).toBe(false);
    expect(String(stream.take())).toBe('x');
  });

  test('more bytes than it has room for at first', () => {
    const stream = new SharedStream(1);
    const much = Buffer.alloc(3 << 20, 'abcdefg');
    stream.read(0, much.subarray(0, 1_000));
    stream.read(0, much.subarray(1_000));
    expect(stream.take().equals(much)).toBe(true);
  });

  test('a client that reads other bytes', () => {
    const stream = new SharedStream(2);
    stream.read(0, bytes('abcd'));
    stream.read(1, bytes('ab'));
    stream.read(1, bytes('xd'));
    expect(() => stream.all(4)).toThrow('client 1 reads something else than the others from byte 2 on');
  });

  test('more bytes than were sent, and fewer', () => {
    const stream = new SharedStream(2);
    stream.read(0, bytes('abcd'));
    expect(stream.all(4)).toBe(false);
    expect(() => stream.all(3)).toThrow('4 bytes');
  });
});

describe('decoding', () => {
  const frame = (text: string): Buffer =>
    Buffer.concat([
      text.length < 126 ? Buffer.from([0x81, text.length]) : Buffer.from([0x81, 126, text.length >> 8, text.length & 255]),
      Buffer.from(text),
    ]);
  const deflated = (text: string): Buffer => {
    const payload = deflateRawSync(text, { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4);
    return Buffer.concat([Buffer.from([0xc1, payload.length]), payload]);
  };
  const chunk = (text: string): Buffer => bytes(`${text.length.toString(16)}\r\n${text}\r\n`);
  const [one, two] = [
    { type: 'ADDED', object: 1 },
    { type: 'ADDED', object: 'x'.repeat(300) },
  ].map((event) => JSON.stringify(event)) as [string, string];

  test.each([
    ['websocket', Buffer.concat([frame(one), frame(two)])],
    ['permessage-deflate', Buffer.concat([deflated(one), deflated(two)])],
    ['socket.io', Buffer.concat([frame(`42["event",${one}]`), frame(`42["event",${two}]`)])],
    ['sse', Buffer.concat([chunk(`id: 1\ndata: ${one}\n\nevent:message\nid:2\n`), chunk(`data:${two}\n\n`)])],
    ['http', Buffer.concat([chunk(`${one}\n${two}`), chunk('\n')])],
  ] as const)('%s', (protocol, all) => {
    expect(decode(all, protocol).map((event) => JSON.stringify(event))).toEqual([one, two]);
    expect(() => decode(all.subarray(0, -3), protocol)).toThrow();
    expect(() => decode(all.subarray(1), protocol)).toThrow();
  });
});
