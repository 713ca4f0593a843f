// Envelopes and their wire formats.
import { describe, expect, test } from 'vitest';
import { Envelope, envelopeOf } from '../../src/bridge/events/envelope.ts';
import {
  chunked,
  type Form,
  LINE,
  MESSAGE,
  RECORD,
  SLICE_BYTES,
  Slices,
  toBytes,
  toSlice,
} from '../../src/bridge/events/forms.ts';
import { added } from './fake-sink.ts';

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const made = (object: unknown, sequence: number = 1): Envelope =>
  new Envelope(added(object), { sequence, version: `e.${sequence}` });
const slice = (envelopes: readonly Envelope[], form: Form): string => text(toSlice(envelopes, 0, form).bytes);

describe('an envelope', () => {
  test('is the event as JSON, with its version last', () => {
    expect(text(made({ naïve: '✓' }).bytes)).toBe('{"type":"ADDED","object":{"naïve":"✓"},"resourceVersion":"e.1"}');
    expect(text(new Envelope(added(1), { sequence: 0 }).bytes)).toBe('{"type":"ADDED","object":1}');
  });

  test.each([
    ['{"type":"A", "object": 1.0}', '{"type":"A", "object": 1.0,"resourceVersion":"e.1"}'],
    ['{"type":"A","object":12345678901234567890} ', '{"type":"A","object":12345678901234567890,"resourceVersion":"e.1"}'],
    ['{"type":"A",\r\n"object":"}"\n}', '{"type":"A", "object":"}" ,"resourceVersion":"e.1"}'],
    ['{"type":"A","object":1,"resourceVersion":"x"}', '{"type":"A","object":1,"resourceVersion":"x","resourceVersion":"e.1"}'],
  ])('of a given text, %j, has it unchanged', (json, expected) => {
    const envelope = new Envelope(added(1), { sequence: 1, version: 'e.1', json });
    expect(text(envelope.bytes)).toBe(expected);
    expect(JSON.parse(expected).resourceVersion).toBe('e.1');
    expect(text(envelope.relabelled(undefined).bytes)).toBe(expected.replace(',"resourceVersion":"e.1"}', '}'));
    expect(text(envelope.relabelled('e.77').bytes)).toBe(expected.replace('"e.1"}', '"e.77"}'));
  });

  test.each([undefined, () => {}, Symbol('s')])(
    'of an object that JSON cannot represent, %o, has null, and is still an event',
    (object) => {
      expect(text(new Envelope(added(object), { sequence: 0 }).bytes)).toBe('{"type":"ADDED","object":null}');
    },
  );

  test('rejects an invalid event', () => {
    const cycle: Record<string, unknown> = {};
    cycle.self = cycle;
    expect(() => made(cycle)).toThrow(TypeError);
    for (const type of ['', 5, undefined, null, ['ADDED']]) {
      const event = { type: type as string, object: 1 };
      expect(() => new Envelope(event, { sequence: 1 })).toThrow('event.type: expected a non-empty string, got');
    }
    const texts: unknown[] = ['no object', '', '[]', 'null', 5, {}, '{"type":"a"}', '{"object":1}', '{"type":"","object":1}'];
    texts.push('{"type":"a","object":1', '{"type":"a","object":1}}', '{"type":"a","object":1}\n{"type":"b","object":2}');
    for (const json of texts) {
      expect(() => new Envelope(added(1), { sequence: 1, json: json as string })).toThrow(
        'json: expected the JSON text of an event',
      );
    }
  });

  test('copied with another type keeps the position and has new bytes', () => {
    const copy = envelopeOf({ ...made({ a: 1 }, 7), type: 'MODIFIED' });
    expect(copy).toMatchObject({ sequence: 7, version: 'e.7', id: 'e.7' });
    expect(text(copy.bytes)).toBe('{"type":"MODIFIED","object":{"a":1},"resourceVersion":"e.7"}');
  });
});

describe('forms', () => {
  const two = [made('✓', 1), made('b', 2)];
  const [first, second] = two.map(({ bytes }) => text(bytes)) as [string, string];

  test('write one line per event, or one record', () => {
    expect(slice(two, LINE)).toBe(`${first}\n${second}\n`);
    expect(slice(two, RECORD)).toBe(`id: e.1\ndata: ${first}\n\nid: e.2\ndata: ${second}\n\n`);
    expect(slice([new Envelope(added(1), { sequence: 0 })], RECORD)).toBe('data: {"type":"ADDED","object":1}\n\n');
    expect(slice([new Envelope(added(1), { sequence: 0, id: 'e.9' })], RECORD)).toBe(
      'id: e.9\ndata: {"type":"ADDED","object":1}\n\n',
    );
  });

  test('a slice is one chunk of HTTP/1.1', () => {
    const body = `${first}\n${second}\n`;
    expect(slice(two, chunked(LINE))).toBe(`${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n`);
    expect(text(toBytes('retry: 7\n\n', chunked(RECORD)))).toBe('a\r\nretry: 7\n\n\r\n');
    expect(text(toBytes('retry: 7\n\n', RECORD))).toBe('retry: 7\n\n');
  });

  test.each([1, 125, 126, 127, 65_535, 65_536, 200_000])(
    'a WebSocket frame of %i bytes has the header that the length asks for',
    (length) => {
      const empty = new Envelope(added(''), { sequence: 0 }).bytes.length;
      const filler = 'x'.repeat(Math.max(0, length - empty));
      const envelope = new Envelope(added(filler), { sequence: 0 });
      const payload = envelope.bytes.length;
      const { bytes } = toSlice([envelope], 0, MESSAGE);
      const view = new DataView(bytes.buffer, bytes.byteOffset);
      expect(bytes[0]).toBe(0x81);
      const head = payload < 126 ? 2 : payload < 65_536 ? 4 : 10;
      expect(bytes[1]).toBe(payload < 126 ? payload : payload < 65_536 ? 126 : 127);
      if (head === 4) expect(view.getUint16(2)).toBe(payload);
      if (head === 10) expect(view.getBigUint64(2)).toBe(BigInt(payload));
      expect(bytes.subarray(head)).toEqual(Buffer.from(envelope.bytes));
    },
  );
});

describe('slices', () => {
  test('are as long as allowed, contain at least one event, and know what they contain', () => {
    const batch = [
      made('x'.repeat(160_000), 1),
      made('x'.repeat(80_000), 2),
      made('x'.repeat(80_000), 3),
      made('x'.repeat(396_000), 4),
    ];
    const found: [number, number, number][] = [];
    for (let from = 0; from < batch.length; ) {
      const { bytes, to, events, sequence } = toSlice(batch, from, LINE);
      if (events > 1) expect(bytes.length).toBeLessThanOrEqual(SLICE_BYTES);
      found.push([to, events, sequence]);
      from = to;
    }
    expect(found).toEqual([
      [2, 2, 2],
      [3, 1, 3],
      [4, 1, 4],
    ]);
  });

  test('are made once per batch, form and position, until they are cleared', () => {
    const slices = new Slices();
    const batch = [made(1)];
    const one = slices.of(batch, 0, LINE);
    expect(slices.of(batch, 0, LINE)).toBe(one);
    expect(slices.of(batch, 0, RECORD)).not.toBe(one);
    expect(slices.of([made(1)], 0, LINE)).not.toBe(one);
    slices.clear();
    expect(slices.of(batch, 0, LINE)).not.toBe(one);
  });
});
