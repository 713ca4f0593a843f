// Values under the keys of a backend: what we write, what others may write, and what is none.
import { describe, expect, it } from 'vitest';
import type { KubernetesObject } from '../../src/cache/index.ts';
import { atVersion, Draft, encoded, toObject } from '../../src/storage/values.ts';

const read = (value: string | Uint8Array): KubernetesObject => {
  const bytes = typeof value === 'string' ? Buffer.from(value) : value;
  return toObject(bytes, { key: '/a/ä', revision: '7' });
};
const sent = (object: object): string => new TextDecoder().decode(encoded(object));

describe('what is stored', () => {
  it.each([
    [{ kind: 'X', metadata: { name: 'a', resourceVersion: '5' }, spec: 1 }, '{"metadata":{"name":"a"},"kind":"X","spec":1}'],
    [{ spec: 1 }, '{"metadata":{},"spec":1}'],
    [{ toJSON: () => ({ metadata: { name: 'b', resourceVersion: '5' } }) }, '{"metadata":{"name":"b"}}'],
  ])('%j begins with its metadata, without a version', (object, expected) => {
    const { value, text } = new Draft(object as KubernetesObject);
    expect([Buffer.from(value).toString(), text]).toEqual([expected, expected]);
  });

  it.each([[null], [undefined], [7], ['x'], [[]], [{ toJSON: () => 7 }]])('%j is no object', (object) => {
    expect(() => new Draft(object as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(/^object: expected an object/) }),
    );
  });

  it.each([[null], [7], [[]], ['x']])('metadata of %j are none', (metadata) => {
    expect(() => new Draft({ metadata } as never)).toThrow(/^object\.metadata: expected an object/);
  });

  it('gets the version of its write, and the bytes that are sent of it', () => {
    for (const [object, expected] of [
      [{ metadata: { name: 'a' }, spec: 1 }, '{"metadata":{"resourceVersion":"7","name":"a"},"spec":1}'],
      [{ metadata: {}, spec: 1 }, '{"metadata":{"resourceVersion":"7"},"spec":1}'],
    ] as const) {
      const made = toObject<KubernetesObject>(new Draft(object as object).value, { key: 'a', revision: '7' });
      expect([made, sent(made)]).toEqual([JSON.parse(expected), expected]);
      const written = new Draft(object as object).at('7');
      expect([written, sent(written)]).toEqual([JSON.parse(expected), expected]);
      const draft = new Draft(object as object as KubernetesObject);
      expect(draft.object.metadata?.resourceVersion).toBe('');
      const decided = draft.at('7');
      expect([decided, sent(decided)]).toEqual([JSON.parse(expected), expected]);
      expect(decided).toBe(draft.object);
    }
  });
});

describe('what is read', () => {
  it.each([
    ['{"metadata":{"name":"a"},"x":1}', { metadata: { name: 'a', resourceVersion: '7' }, x: 1 }],
    ['{"x":1}', { metadata: { resourceVersion: '7' }, x: 1 }],
    ['{ "metadata" : { "name" : "a" } }', { metadata: { name: 'a', resourceVersion: '7' } }],
    ['{"metadata":{"name":"a","resourceVersion":"3"}}', { metadata: { name: 'a', resourceVersion: '7' } }],
    ['{"metadata":{"name":"a"},"metadata":{"name":"b"}}', { metadata: { name: 'b', resourceVersion: '7' } }],
    ['{"metadata":{},"x":1}', { metadata: { resourceVersion: '7' }, x: 1 }],
  ])('%s is an object at its revision', (value, expected) => {
    const object = read(value);
    expect(object).toEqual(expected);
    expect(JSON.parse(sent(object))).toEqual(expected);
  });

  it.each([
    ['no JSON', 'is not JSON: '],
    ['{"metadata":{"name":"a"', 'is not JSON: '],
    ['', 'is not JSON: '],
    [Uint8Array.of(0x22, 0xff, 0x22), 'is not JSON: '],
    ['[]', 'is not a JSON object'],
    ['7', 'is not a JSON object'],
    ['null', 'is not a JSON object'],
    ['"x"', 'is not a JSON object'],
    ['{"metadata":7}', 'has metadata that is not an object'],
    ['{"metadata":null}', 'has metadata that is not an object'],
    ['{"metadata":[]}', 'has metadata that is not an object'],
    ['{"metadata":{"name":"a"},"metadata":null}', 'has metadata that is not an object'],
  ])('%j is none: 500, with its key', (value, why) => {
    const status = { code: 500, reason: 'StorageReadError', message: expect.stringContaining(`the value under "/a/ä" ${why}`) };
    expect(() => read(value)).toThrow(expect.objectContaining({ code: 'REFUSED', status: expect.objectContaining(status) }));
  });

  it('the same at another version is another object', () => {
    const object = read('{"metadata":{"name":"a"},"x":1}');
    expect(atVersion(object, '9')).toEqual({ metadata: { name: 'a', resourceVersion: '9' }, x: 1 });
    expect(object.metadata?.resourceVersion).toBe('7');
    expect(atVersion({} as KubernetesObject, '9')).toEqual({ metadata: { resourceVersion: '9' } });
  });
});
