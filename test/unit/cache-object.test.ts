import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareVersions, keyOf, splitKey } from '../../src/cache/index.ts';

describe('keyOf', () => {
  it('is namespace and name, or the name alone', () => {
    expect(keyOf({ metadata: { namespace: 'default', name: 'a' } })).toBe('default/a');
    expect(keyOf({ metadata: { namespace: '', name: 'a' } })).toBe('a');
    expect(keyOf({ metadata: { name: 'a' } })).toBe('a');
    expect(keyOf({ metadata: { namespace: 'default', name: 'a/b' } })).toBe('default/a/b');
  });

  it.each<[string, unknown, string]>([
    [
      'nothing',
      undefined,
      'object.metadata.name: expected a non-empty string; pass keyOf for objects without one, got undefined',
    ],
    ['no metadata', {}, 'object.metadata.name: expected a non-empty string; pass keyOf for objects without one, got undefined'],
    [
      'an empty name',
      { metadata: { name: '' } },
      'object.metadata.name: expected a non-empty string; pass keyOf for objects without one, got ""',
    ],
    [
      'a slash in a name without a namespace',
      { metadata: { name: 'a/b' } },
      'object.metadata.name: expected a string without "/", or a namespace, got "a/b"',
    ],
    [
      'a slash in a namespace',
      { metadata: { namespace: 'a/b', name: 'c' } },
      'object.metadata.namespace: expected a string without "/", got "a/b"',
    ],
  ])('refuses an object with %s', (_, object, message) => {
    expect(() => keyOf(object as never)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', message }));
  });

  it('gives different objects different keys, and splitKey reads them', () => {
    const part = fc.string({ unit: fc.constantFrom('a', 'b', '/', '__proto__'), minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(fc.option(part, { nil: '' }), part, (namespace, name) => {
        let key: string;
        try {
          key = keyOf({ metadata: { namespace, name } });
        } catch {
          fc.pre(false);
          return;
        }
        expect(splitKey(key)).toEqual({ namespace, name });
      }),
    );
  });
});

describe('compareVersions', () => {
  const version = fc.bigInt({ min: 0n, max: 2n ** 128n - 1n });

  it('orders as the numbers do, up to 2^128 - 1', () => {
    fc.assert(
      fc.property(version, version, (a, b) => {
        expect(compareVersions(`${a}`, `${b}`)).toBe(a < b ? -1 : a > b ? 1 : 0);
      }),
    );
    expect(compareVersions('9007199254740993', '9007199254740992')).toBe(1);
    expect(compareVersions('9', '10')).toBe(-1);
    expect(compareVersions(`${2n ** 128n - 1n}`, '0')).toBe(1);
  });

  it.each(['', '01', '-1', '1.5', ' 1', '1\n', '0x1', 'abc', `${2n ** 128n}`, '1'.repeat(40), undefined, 1])(
    'refuses %j',
    (wrong) => {
      const name = expect.stringContaining('a version of Kubernetes, a decimal number below 2^128, got');
      for (const call of [() => compareVersions(wrong as string, '1'), () => compareVersions('1', wrong as string)]) {
        expect(call).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', message: name }));
      }
    },
  );
});
