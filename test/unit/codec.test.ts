import { describe, expect, it } from 'vitest';
import { jsonCodec } from '../../src/decode/codec.ts';
import type { WatchError } from '../../src/watch/errors.ts';
import type { ObjectEvent, WatchEvent } from '../../src/watch/event.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

function refused(frame: string | Uint8Array, types?: readonly string[]): WatchError {
  try {
    jsonCodec(types && { types }).decode(typeof frame === 'string' ? bytes(frame) : frame);
  } catch (error) {
    return error as WatchError;
  }
  throw new Error('not refused');
}

describe('jsonCodec.decode', () => {
  it('reads an event (TestDecoder)', () => {
    const types = ['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR'] as const;
    const codec = jsonCodec<ObjectEvent<{ name: string }>>({ types });
    for (const type of types) {
      const event = codec.decode(bytes(` {"type":"${type}","object":{"name":"é😀"}}\r`));
      expect(event).toEqual({ type, object: { name: 'é😀' } });
    }
  });

  it.each(['null', '0', 'false', '""', '[]', '{}'])('accepts %s as an object, and any type unless types are given', (object) => {
    expect(jsonCodec().decode(bytes(`{"type":"x","object":${object}}`))).toEqual({ type: 'x', object: JSON.parse(object) });
  });

  it('keeps other members', () => {
    const event = { type: 'x', object: 1, id: 'a.7' };
    expect(jsonCodec().decode(bytes(JSON.stringify(event)))).toEqual(event);
  });

  it('tolerates a byte order mark', () => {
    expect(jsonCodec().decode(bytes('\uFEFF{"type":"x","object":1}'))).toEqual({ type: 'x', object: 1 });
  });

  it.each([
    ['', 'bad frame, not JSON: '],
    ['{"type":"ADDED","object":{}', 'bad frame, not JSON: {"type":"ADDED","object":{}'],
    ['{"type":"A","object":1}{}', 'bad frame, not JSON: {"type":"A","object":1}{}'],
    ['null', 'bad frame, not an object: null'],
    ['7', 'bad frame, not an object: 7'],
    ['"ADDED"', 'bad frame, not an object: "ADDED"'],
    ['[]', 'bad frame, no "type": []'],
    ['{"object":{}}', 'bad frame, no "type": {"object":{}}'],
    ['{"type":"","object":{}}', 'bad frame, no "type": {"type":"","object":{}}'],
    ['{"type":1,"object":{}}', 'bad frame, no "type": {"type":1,"object":{}}'],
    ['{"type":"x"}', 'bad frame, no "object": {"type":"x"}'],
    ['{"type":"x","__proto__":{"object":1}}', 'bad frame, no "object": {"type":"x","__proto__":{"object":1}}'],
  ])('refuses %s', (frame, message) => {
    const error = refused(frame);
    expect(error.code).toBe('INVALID_FRAME');
    expect(error.message).toBe(message);
    expect(error.limit).toBeUndefined();
    if (message.includes('not JSON')) expect(error.cause).toBeInstanceOf(SyntaxError);
    else expect(error.cause).toBeUndefined();
  });

  it('ignores an inherited object', () => {
    let message: string;
    Object.defineProperty(Object.prototype, 'object', { value: 1, configurable: true, writable: true });
    try {
      message = refused('{"type":"x"}').message;
    } finally {
      Reflect.deleteProperty(Object.prototype, 'object');
    }
    expect(message).toBe('bad frame, no "object": {"type":"x"}');
  });

  it('rejects a type that is not in the list; case matters', () => {
    const frame = '{"type":"Added","object":{}}';
    expect(refused(frame, ['ADDED']).message).toBe(`bad frame, unknown type "Added": ${frame}`);
    expect(refused(frame, []).message).toContain('unknown type "Added"');
    expect(jsonCodec({ types: ['x', 'Added'] }).decode(bytes(frame)).type).toBe('Added');
  });

  it('quotes at most 80 characters of an unknown type', () => {
    const { message } = refused(`{"type":"${'t'.repeat(500)}","object":{}}`, ['ADDED']);
    expect(message.startsWith(`bad frame, unknown type "${'t'.repeat(80)}": {"type":"ttt`)).toBe(true);
  });

  it('rejects invalid UTF-8, and keeps the cause', () => {
    const error = refused(new Uint8Array([0x22, 0xc3, 0x28, 0x22]));
    expect(error.code).toBe('INVALID_FRAME');
    expect(error.message).toBe('bad frame, not UTF-8: "\uFFFD("');
    expect(error.cause).toBeInstanceOf(TypeError);
  });

  it('continues after a frame that was not UTF-8', () => {
    const codec = jsonCodec();
    expect(() => codec.decode(new Uint8Array([0xe2, 0x82]))).toThrow('not UTF-8');
    expect(codec.decode(bytes('{"type":"x","object":1}'))).toEqual({ type: 'x', object: 1 });
  });

  it('quotes the first 80 bytes', () => {
    expect(refused('x'.repeat(80)).message).toBe(`bad frame, not JSON: ${'x'.repeat(80)}`);
    expect(refused('x'.repeat(81)).message).toBe(`bad frame, not JSON: ${'x'.repeat(80)}`);
    expect(refused(`${'x'.repeat(78)}€`).message).toBe(`bad frame, not JSON: ${'x'.repeat(78)}\uFFFD`);
  });

  it('quotes no control characters', () => {
    expect(refused('a\u001b[31m\n\tb').message).toBe('bad frame, not JSON: a.[31m..b');
  });

  it('treats __proto__ keys as data', () => {
    const event = jsonCodec().decode(bytes('{"type":"x","object":{"__proto__":{"admin":true}},"__proto__":{"evil":1}}'));
    const object = event.object as Record<string, unknown>;
    expect(Object.getPrototypeOf(event)).toBe(Object.prototype);
    expect(Object.getPrototypeOf(object)).toBe(Object.prototype);
    expect(object.admin).toBeUndefined();
    expect(Object.hasOwn(object, '__proto__')).toBe(true);
    expect(({} as Record<string, unknown>).admin).toBeUndefined();
  });
});

describe('jsonCodec.isWhole', () => {
  it.each([
    '{}',
    '',
    '}',
    'x{"a":{}}',
    '{"a":{"b":{}}}',
    '{"a":"{"}',
    '{"a":"{","b":"{{"}',
    '{"a":"\\"{"}',
    '{"a":"\\\\","b":"{"}',
    '{"a":"\\\n{"}',
    '{"":""}',
  ])('is true for %j, which closes every brace that it opens', (frame) => {
    expect(jsonCodec().isWhole(bytes(frame))).toBe(true);
  });

  it.each([
    '{',
    '{}{',
    '{"a":{}',
    '{"a":"}',
    '{"a":"}}',
    '{"a":"\\"}',
    '{"a":"b\\\\","c":"}',
    '{"a":"b","c}":{"d":1}',
    '{"":{"":"}}',
  ])('is false for %j, which the end of the stream may have cut off', (frame) => {
    expect(jsonCodec().isWhole(bytes(frame))).toBe(false);
  });
});

describe('jsonCodec.encode', () => {
  it('returns one line', () => {
    const event: WatchEvent = { type: 'a"b', object: { text: 'line\nnext\r\u2028', list: [1, null] } };
    const line = jsonCodec().encode(event);
    expect(line).toBe(JSON.stringify(event));
    expect(line).not.toMatch(/[\r\n]/);
    expect(jsonCodec().decode(bytes(line))).toEqual(event);
  });

  it('writes null for what JSON cannot represent', () => {
    expect(jsonCodec().encode({ type: 'x', object: undefined })).toBe('{"type":"x","object":null}');
    expect(jsonCodec().encode({ type: 'x', object: () => {} })).toBe('{"type":"x","object":null}');
  });

  it('throws what JSON.stringify throws', () => {
    expect(() => jsonCodec().encode({ type: 'x', object: 1n })).toThrow(TypeError);
  });
});
