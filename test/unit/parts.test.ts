import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hold, joined } from '../../src/decode/framing.ts';

/** Bytes that are all different. */
const bytes = (from: number, length: number): Uint8Array => Uint8Array.from({ length }, (_, at) => from + at);

describe('joined', () => {
  test('is all parts in one, in their order', () => {
    expect(joined([bytes(0, 3), bytes(3, 0), bytes(3, 2), bytes(5, 4)])).toEqual(bytes(0, 9));
    expect(joined([])).toEqual(bytes(0, 0));
  });

  test('copies no only part', () => {
    const only = bytes(7, 5);
    expect(joined([only])).toBe(only);
  });
});

describe('hold', () => {
  test('keeps each part shorter than the one before it, and every byte', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(9), { maxLength: 25 }), (lengths) => {
        const parts: Uint8Array[] = [];
        let held = 0;
        for (const length of lengths) {
          hold(parts, bytes(held, length));
          held += length;
          expect(joined(parts)).toEqual(bytes(0, held));
          const after = parts.slice(1).map((part, at) => part.length - (parts[at] as Uint8Array).length);
          expect(after.every((difference) => difference < 0)).toBe(true);
        }
      }),
    );
  });

  test('joins no long parts', () => {
    const parts: Uint8Array[] = [];
    for (let at = 0; at < 8; at++) hold(parts, bytes(at, 65_536));
    expect(parts).toHaveLength(8);
    hold(parts, bytes(8, 1));
    hold(parts, bytes(9, 2));
    expect(parts.slice(8)).toEqual([Uint8Array.of(8, 9, 10)]);
    expect(parts[7]).toHaveLength(65_536);
  });

  test('joins no parts before it has to', () => {
    const all = [bytes(0, 4), bytes(4, 3), bytes(7, 1)];
    const parts: Uint8Array[] = [];
    for (const part of all) hold(parts, part);
    expect(parts).toEqual(all);
    hold(parts, bytes(8, 1));
    expect(parts.map(({ length }) => length)).toEqual([4, 3, 2]);
  });
});
