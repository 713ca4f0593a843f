import { describe, expect, it } from 'vitest';
import { filterTransitions } from '../../src/broadcast/filter.ts';
import { type Connection, checkResumable, checkTransitional } from '../../src/testing/checkers/check-streams.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { fromAsyncIterable } from '../../src/watch/pull-watch.ts';
import { WORDED } from './build.ts';

type Row = WatchEvent<string, { metadata: { name: string }; on: boolean }>;
const row = (type: string, name: string, on: boolean = true): Row => ({ type, object: { metadata: { name }, on } });
const predicate = ({ on }: Row['object']): boolean => on;
const before = [
  row('ADDED', 'a', false),
  row('MODIFIED', 'a'),
  row('ADDED', 'b'),
  row('MODIFIED', 'a'),
  row('MODIFIED', 'a', false),
  row('DELETED', 'b'),
  row('ADDED', 'c', false),
  row('DELETED', 'c'),
  row('BOOKMARK', 'd'),
];
const after = [row('ADDED', 'a'), row('ADDED', 'b'), row('MODIFIED', 'a'), row('DELETED', 'a'), row('DELETED', 'b')].concat(
  row('BOOKMARK', 'd'),
);

describe('Transitional', () => {
  it('accepts objects that enter, change and leave, also through filterTransitions itself', async () => {
    expect(checkTransitional({ before, after, predicate })?.message).toBeUndefined();
    const own: Row[] = [];
    for await (const event of filterTransitions(
      fromAsyncIterable(
        (async function* () {
          yield* before;
        })(),
      ),
      predicate,
    ))
      own.push(event);
    expect(checkTransitional({ before, after: own, predicate })?.message).toBeUndefined();
  });

  it.each([
    ['MODIFIED of what enters', [row('MODIFIED', 'a'), ...after.slice(1)]],
    ['ADDED of what is in', [...after.slice(0, 2), row('ADDED', 'a'), ...after.slice(3)]],
    ['nothing of what leaves', [...after.slice(0, 3), ...after.slice(4)]],
    ['the last missing', after.slice(0, 5)],
    ['one missing before the last', after.filter((_, at) => at !== 4)],
    ['one too many', [...after, row('DELETED', 'a')]],
    ['what never matched', [row('ADDED', 'a'), ...after]],
    ['two swapped', [after[1], after[0], ...after.slice(2)] as Row[]],
  ])('rejects %s', (_, wrong) => {
    const violation = checkTransitional({ before, after: wrong, predicate });
    expect(violation).toMatchObject({ guarantee: 'Transitional', message: expect.stringMatching(WORDED) });
  });
});

describe('Resumable', () => {
  const published = ['e.1', 'e.2', 'e.3', 'e.4', 'e.5'];
  const check = (...connections: Connection[]): string | undefined => checkResumable({ published, connections })?.message;

  it('accepts resuming from the last version, and one 410', () => {
    expect(
      check({ versions: ['e.2', 'e.3'] }, { from: 'e.3', versions: ['e.4'] }, { from: 'e.4', versions: [] }),
    ).toBeUndefined();
    expect(check({ versions: ['e.1'] }, { from: 'e.1', versions: [], gone: true }, { versions: ['e.5'] })).toBeUndefined();
    expect(check({ from: 'old.7', versions: [], gone: true })).toBeUndefined();
  });

  it.each([
    ['repeats the last', [{ from: 'e.2', versions: ['e.2', 'e.3'] }]],
    ['repeats an older one', [{ from: 'e.3', versions: ['e.1'] }]],
    ['skips one at the seam', [{ from: 'e.2', versions: ['e.4'] }]],
    ['skips one in the middle', [{ from: 'e.1', versions: ['e.2', 'e.4'] }]],
    ['swaps two', [{ versions: ['e.3', 'e.2'] }]],
    ['knows a version of nobody', [{ versions: ['x.1'] }]],
    ['takes an unknown version for a known one', [{ from: 'old.3', versions: ['e.4'] }]],
    ['sends events with a 410', [{ from: 'e.1', versions: ['e.5'], gone: true }]],
    [
      'is asked for the refused version again',
      [
        { from: 'e.1', versions: [], gone: true },
        { from: 'e.1', versions: [], gone: true },
      ],
    ],
  ])('rejects one that %s', (_, connections: Connection[]) => {
    expect(check(...connections)).toMatch(WORDED);
    expect(check(...connections)).toMatch(/^Resumable for connection [12][ :]/);
  });
});

describe('where a stream breaks', () => {
  it('Transitional: a change is missing at the very end', () => {
    const violation = checkTransitional({ before: before.slice(0, 6), after: after.slice(0, 4), predicate });
    expect(violation).toMatchObject({ event: before[5], expected: 'DELETED', seen: 'nothing' });
  });

  it.each<[string, Connection[], string | undefined]>([
    ['a fresh start may be refused, and tried again', [{ versions: [], gone: true }, { versions: ['e.1'] }], undefined],
    ['one is skipped', [{ from: 'e.1', versions: ['e.2', 'e.4'] }], 'expected number 2 next, seen number 3'],
    ['one is repeated', [{ from: 'e.2', versions: ['e.3', 'e.3'] }], 'expected nothing repeated, seen it after number 2'],
  ])('Resumable: %s', (_, connections, expected) => {
    const violation = checkResumable({ published: ['e.1', 'e.2', 'e.3', 'e.4'], connections });
    expect(violation?.message.replace(/^.*: /, '')).toBe(expected);
  });
});
