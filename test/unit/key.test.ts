import { describe, expect, test } from 'vitest';
import { objectKey } from '../../src/broadcast/key.ts';
import { isWatchError } from '../../src/watch/errors.ts';
import { thrown } from './support.ts';

describe('objectKey', () => {
  test('is namespace/name, with an empty namespace for objects of the cluster', () => {
    expect(objectKey({ type: 'ADDED', object: { metadata: { namespace: 'ns', name: 'a' } } })).toBe('ns/a');
    expect(objectKey({ type: 'ADDED', object: { metadata: { name: 'a' } } })).toBe('/a');
  });

  test.each([{ toString: 1 }, { toString: () => 'x' }, 7, null, undefined])(
    'takes a namespace that is no string, %j, for none',
    (namespace) => {
      expect(objectKey({ type: 'ADDED', object: { metadata: { namespace, name: 'a' } } })).toBe('/a');
    },
  );

  test.each([undefined, null, 1, {}, { metadata: {} }, { metadata: { name: 7 } }, { metadata: null }])(
    'refuses an object without a name: %j',
    (object) => {
      const error = thrown(() => objectKey({ type: 'ADDED', object }));
      expect(isWatchError(error, 'INVALID_ARGUMENT')).toBe(true);
      expect((error as Error).message).toMatch(
        /^object\.metadata\.name: expected a string; pass keyOf for objects without one, got /,
      );
    },
  );
});
