import { describe, expect, test } from 'vitest';
import { objectKey } from '../../src/broadcast/fold.ts';
import { isWatchError } from '../../src/watch/errors.ts';
import { thrown } from './support.ts';

describe('objectKey', () => {
  test('is namespace/name, with an empty namespace for cluster-scoped objects', () => {
    expect(objectKey({ type: 'ADDED', object: { metadata: { namespace: 'ns', name: 'a' } } })).toBe('ns/a');
    expect(objectKey({ type: 'ADDED', object: { metadata: { name: 'a' } } })).toBe('/a');
  });

  test.each([{ toString: 1 }, { toString: () => 'x' }, 7, null, undefined])(
    'treats a namespace that is not a string, %j, as missing',
    (namespace) => {
      expect(objectKey({ type: 'ADDED', object: { metadata: { namespace, name: 'a' } } })).toBe('/a');
    },
  );

  test.each([undefined, null, 1, {}, { metadata: {} }, { metadata: { name: 7 } }, { metadata: null }])(
    'throws for an object without a name: %j',
    (object) => {
      const error = thrown(() => objectKey({ type: 'ADDED', object }));
      expect(isWatchError(error, 'INVALID_ARGUMENT')).toBe(true);
      expect((error as Error).message).toMatch(
        /^object\.metadata\.name: expected a string; pass keyOf for objects without one, got /,
      );
    },
  );
});
