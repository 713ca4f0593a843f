import { describe, expect, it } from 'vitest';
import { CACHE_CHECKERS, checkCacheHistory } from '../../src/testing/checkers/cache/cache-checkers.ts';
import type { CacheGuaranteeName } from '../../src/testing/checkers/history.ts';
import { WORDED } from './build.ts';
import { broken, steps, wrong } from './cache-build.ts';

const SOURCE = 'source 1 a1 b1; changed 2 a2; changed 3 -b; changed 4';
/** A watch from version 1, told everything. */
const WATCHED = `${SOURCE}; watch w 1; event w MODIFIED a2; event w DELETED b1 @3; bookmark w 4`;
/** A cache that lists at version 1, has a handler, and follows. */
const FOLLOWED = [
  "source 1 a1 b1; cache c ''; handler h c; list l; listed l 1 a1 b1; cache c 1 a1 b1; synced c",
  'add h a1; returned h; add h b1; returned h; handler-synced h; watch w 1 by c',
  'changed 2 a2; event w MODIFIED a2; cache c 2 a2 b1; reached c 2; update h a2 a1; returned h',
  'changed 3 -b; event w DELETED b1 @3; cache c 3 a2; delete h b1; returned h',
].join('; ');

const ACCEPTED: readonly string[] = [
  SOURCE,
  WATCHED,
  FOLLOWED,
  `${FOLLOWED}; settled`,
  `${FOLLOWED}; end w; changed 4 b4; watch x 3 by c; event x ADDED b4; cache c 4 a2 b4; add h b4; returned h; settled`,
  `${FOLLOWED}; changed 4 b4; expired 4; watch x 3 by c; end x 410; list m 3 by c; listed m 4 a2 b4; cache c 4 a2 b4; add h b4; settled`,
  `${FOLLOWED}; changed 4 b4; expired 4; watch x 3 by c; refused x 410; watch y initial by c; event y ADDED b4; event y ADDED a2; bookmark y 4 end; cache c 4 a2 b4; add h b4; settled`,
  `${FOLLOWED}; stopped c; changed 4 b4; settled`,
  `${FOLLOWED}; removed h; changed 4 b4; cache c 4 a2 b4; settled`,
  // A cache
  `${SOURCE}; cache c ''; cache c 1 a1 b1; cache c 2 a2 b1; cache c 2 a2 b1; cache c 4 a2; settled`,
  `${SOURCE}; cache c 4 a2; cache d 1 a1 b1; stopped d; settled`,
  `changed 1 a1; changed 2 b2; changed 9 -a; changed 10 a10; cache c 2 a1 b2; cache c 10 a10 b2; settled`,
  // Lists
  `${SOURCE}; list l; listed l 4 a2`,
  `${SOURCE}; list l 2; listed l 3 a2`,
  `${SOURCE}; list l 0; listed l 1 a1 b1`,
  `${SOURCE}; list l 2 Exact; listed l 2 a2 b1`,
  `${SOURCE}; list l; list m 0; listed l 4 a2; listed m 1 a1 b1; list n 2 Exact; listed n 2 a2 b1`,
  `${SOURCE}; list l by one; listed l 4 a2; list m 0 by two; listed m 1 a1 b1`,
  `source 1; list l; changed 2 a2; listed l 1`,
  `${SOURCE}; list l; refused l 500`,
  // Watches
  `${SOURCE}; watch w initial; event w ADDED a2; bookmark w 4 end; changed 5 b5; event w ADDED b5; end w`,
  `${SOURCE}; watch w; event w ADDED a2; changed 5 b5; event w ADDED b5; bookmark w 5; stop w; end w`,
  `${SOURCE}; watch w 4; bookmark w 4; end w; watch x 4; end x`,
  `${SOURCE}; expired 3; watch w 2; end w; watch x 2; end x 410; watch y 3; bookmark y 4`,
  `${SOURCE}; watch w 1 by c; stop w; end w 410; watch x 1 by c`,
  `${SOURCE}; watch w 1 by c; end w 410; watch x 1 by c; event x MODIFIED a2; end x 410; watch y 2 by c`,
  `${SOURCE}; watch w 1 by c; end w 410; watch x initial by c; end x 410; watch y 0 by c`,
  // It is restored from a copy of version 2: what came after that is of another life
  `${SOURCE}; cache c 4 a2; restored 9 a2 b1 since 2; watch w 4 by c; refused w 410; list l by c; listed l 9 a2 b1; cache c 9 a2 b1; watch x 9 by c; settled`,
  `${SOURCE}; restored 9 a2 b1 since 2; watch w 3; end w 410; list l 3; refused l 410; watch x 12; end x 410; watch y 4; end y; settled`,
  `${SOURCE}; restored 9 a2 b1 since 2; watch w 2; bookmark w 9; changed 10 -a; event w DELETED a2 @10; watch x 9; settled`,
  // Then from a copy of version 4, made before: version 4 is its own again, and what the other life has given is not
  `${SOURCE}; restored 9 a1 b1 since 1; restored 12 a2 since 4; watch w 4; bookmark w 12; watch x 9; refused x 410; settled`,
  `${SOURCE}; watch w 4; restored 9 a1 b1 since 1; end w; watch x 4; stop x; settled`,
  `${SOURCE}; restored 9 a1 b1 since 1; changed 10 c10; watch w 1; event w ADDED c10; end w 504; list l 4; refused l 500`,
  // A watch of a cache begins with what the cache has
  `${SOURCE}; cache c 1 a1 b1; watch w of c; event w ADDED a1; event w ADDED b1; bookmark w 1 end`,
  // It folds: a2 before b1, and no deletion of what it was never told
  `source 1; cache c 1; watch w of c; bookmark w 1 end; changed 2 b2; changed 3 a3; changed 4 b4; cache c 4 a3 b4; event w ADDED b4; event w ADDED a3; settled`,
  `source 1 a1; cache c 1 a1; watch w of c; event w ADDED a1; bookmark w 1 end; changed 2 -a; changed 3; cache c 3; event w DELETED a1 @1; settled`,
  `${SOURCE}; cache c 4 a2; watch w of c; stop w; end w; watch x of c; end x 410; stopped c; watch y of c; end y`,
  `source 1 a1; cache c 1 a1; watch w of c; changed 2 a2; cache c 2 a2; event w ADDED a2; bookmark w 1 end; settled`,
  // Handlers
  `source 1 a1 b1; cache c 1 a1 b1; synced c; handler h c b1; add h a1; returned h; handler-synced h; settled`,
  `source 1 a1; cache c 1 a1; synced c; handler h c; changed 2 -a; cache c 2; handler-synced h; settled`,
  `source 1 a1; cache c 1 a1; synced c; handler h c; changed 2 -a; changed 3 a3; cache c 3 a3; handler-synced h; add h a3; returned h; settled`,
  `source 1 a1; cache c 1 a1; synced c; handler h c 2; changed 2 a2; cache c 2 a2; handler-synced h; settled`,
  `source 1 a1; cache c 1 a1; synced c; handler h c; add h a1; update h a1 a1; returned h; handler-synced h; settled`,
];

/** What is broken, and how it is told. */
const REJECTED: readonly (readonly [CacheGuaranteeName, string, RegExp])[] = [
  ['Consistent', `${SOURCE}; cache c 2 a1 b1`, /for c at "a": expected "a2" at version 2, seen "a1"/],
  ['Consistent', `${SOURCE}; cache c 4 a2 b1`, /at "b": expected nothing at version 4, seen "b1"/],
  ['Consistent', `${SOURCE}; cache c 1 a1`, /at "b": expected "b1" at version 1, seen nothing/],
  ['Consistent', `${SOURCE}; cache c 1 a1 b1; cache c 2 a2 b1; cache c 3 a2 b1`, /at "b": expected nothing at version 3/],
  ['Consistent', `${SOURCE}; cache c 5 a2`, /at "5": expected a version of the source, seen another one/],
  ['Consistent', `source 4 a1; cache c 3 a1`, /at "3": expected a version of the source/],
  ['Consistent', `${SOURCE}; cache c '' a1`, /at "a": expected nothing before the first list, seen "a1"/],
  ['Consistent', `${SOURCE}; list l; listed l 4 a2 b1`, /for l at "b": expected nothing at version 4/],
  [
    'Monotonic',
    `${SOURCE}; cache c 2 a2 b1; cache c 1 a1 b1`,
    /for c at "1": expected version 2 or a later one, seen an older one/,
  ],
  ['Monotonic', `${SOURCE}; cache c 2 a2 b1; cache c ''`, /expected version 2 or a later one/],
  ['Monotonic', `${SOURCE}; list l; listed l 4 a2; list m 0; listed m 1 a1 b1`, /for m at "1": expected version 4/],
  ['Monotonic', `${SOURCE}; watch w 2; event w MODIFIED a1`, /for w at "1": expected version 2 or a later one/],
  [
    'Monotonic',
    `${SOURCE}; watch w 1; event w MODIFIED a2; event w MODIFIED a2`,
    /at "MODIFIED a": expected a version after 2, seen 2/,
  ],
  ['Monotonic', `${SOURCE}; watch w 1; event w DELETED b1 @3; event w MODIFIED a2`, /for w at "2": expected version 3/],
  ['Monotonic', `${SOURCE}; watch w initial; event w ADDED a2; bookmark w 1 end`, /for w at "1": expected version 2/],
  ['Monotonic', `${SOURCE}; watch w initial; event w ADDED a2; bookmark w 4 end; event w DELETED a2 @3`, /expected version 4/],
  ['Monotonic', `${SOURCE}; watch w 1; bookmark w 4; bookmark w 3`, /expected version 4/],
  ['Monotonic', `${SOURCE}; watch w of c; event w ADDED a2; event w MODIFIED a1`, /expected a version after 2, seen 1/],
  ['Monotonic', `${SOURCE}; watch w of c; bookmark w 4; bookmark w 3`, /expected version 4/],
  ['Fresh', `${SOURCE}; list l 3; listed l 2 a2 b1`, /for l at "2": expected one from version 3 on, seen an older one/],
  ['Fresh', `${SOURCE}; list l; listed l 3 a2`, /expected one from version 4 on/],
  ['Fresh', `${SOURCE}; list l 2 Exact; listed l 3 a2`, /for l: expected version 2, seen 3/],
  [
    'Fresh',
    `${SOURCE}; watch w initial; event w ADDED a1; event w ADDED b1; bookmark w 1 end`,
    /for w at "1": expected one from version 4 on/,
  ],
  ['Fresh', `${SOURCE}; watch w 3 initial; bookmark w 2 end`, /expected one from version 3 on/],
  ['Fresh', `${SOURCE}; cache c 2 a2 b1; reached c 3`, /for c at "3": expected it reached, seen version "2"/],
  ['Fresh', `${SOURCE}; reached c 3`, /expected it reached, seen version ""/],
  ['Convergent', `${SOURCE}; cache c 2 a2 b1; settled`, /for c at "b": expected nothing, seen "b1", and version 2/],
  ['Convergent', `${SOURCE}; cache c 4 a2; changed 5 c5; settled`, /for c at "c": expected "c5", seen nothing, and version 4/],
  ['Convergent', `source 1; cache c ''; settled`, /for c: expected a list, seen none/],
  ['Folded', `${FOLLOWED}; changed 4 b4; cache c 4 a2 b4; settled`, /for h at "b": expected "b4", seen nothing/],
  ['Folded', `${FOLLOWED}; changed 4 -a; cache c 4; settled`, /for h at "a": expected nothing, seen "a2"/],
  ['Folded', `${FOLLOWED}; add h a3`, /for h at "a": expected an update or a deletion, because it is there, seen add of "a3"/],
  ['Folded', `${FOLLOWED}; update h b1`, /at "b": expected an addition, because it is not there, seen update of "b1"/],
  ['Folded', `${FOLLOWED}; delete h b1`, /expected an addition, because it is not there, seen delete/],
  ['Folded', `${FOLLOWED}; update h a3 a1`, /at "a": expected what it was told last, "a2", as old, seen "a1"/],
  ['Folded', `${SOURCE}; watch w 1; event w DELETED b1 @3`, /^$/],
  ['Folded', `${SOURCE}; watch w 1; event w DELETED b1 @3; bookmark w 4`, /for w at "a": expected "a2" at version 4, seen "a1"/],
  ['Folded', `${SOURCE}; watch w 1; event w MODIFIED a2; bookmark w 4`, /for w at "b": expected nothing at version 4/],
  [
    'Folded',
    `${SOURCE}; changed 5 c5; watch w 1; event w MODIFIED a2; event w ADDED c5; end w`,
    /at "b": expected nothing at version 5/,
  ],
  ['Folded', `${SOURCE}; changed 5 c5; changed 6 c6; watch w 4; event w ADDED c6; stop w`, /^$/],
  ['Folded', `${SOURCE}; watch w 1; event w ADDED a2`, /for w at "a": expected an update or a deletion/],
  [
    'Folded',
    `${SOURCE}; watch w initial; event w ADDED a2; event w ADDED b1; bookmark w 4 end`,
    /at "b": expected nothing at version 4/,
  ],
  ['Folded', `${SOURCE}; watch w; event w MODIFIED a2`, /expected an addition/],
  ['Folded', `source 1 a1; cache c 1 a1; watch w of c; bookmark w 1 end; settled`, /for w at "a": expected "a1", seen nothing/],
  ['Folded', `source 1 a1; cache c 1 a1; watch w of c; event w MODIFIED a1`, /for w at "a": expected an addition/],
  ['Synced', `source 1 a1; cache c ''; synced c`, /for c: expected a list before it has synced, seen none/],
  ['Synced', `source 1 a1; synced c`, /expected a list/],
  ['Synced', `source 1 a1 b1; cache c 1 a1; synced c`, /for c at "b": expected "b1" when it has synced, seen nothing/],
  [
    'Synced',
    `source 1 a1; cache c 1 a1; handler h c; handler-synced h`,
    /for h: expected its cache synced before, seen it not synced/,
  ],
  [
    'Synced',
    `source 1 a1; cache c 1 a1; synced c; handler h c; handler-synced h`,
    /for h at "a": expected "a1" told, seen no call/,
  ],
  ['Synced', `source 1 a1; cache c 1 a1; handler h c; synced c; add h a1; handler-synced h`, /seen the call not returned/],
  [
    'Synced',
    `source 1 a1 b1; cache c 1 a1 b1; handler h c; synced c; add h a1; returned h; handler-synced h`,
    /at "b": expected "b1" told/,
  ],
  [
    'Told',
    `${SOURCE}; expired 3; watch w 2; event w DELETED b1 @3`,
    /for w at "DELETED b": expected 410, because version 2 is forgotten, seen it served/,
  ],
  ['Told', `${SOURCE}; expired 3; watch w 1; bookmark w 4`, /for w at "BOOKMARK 4": expected 410/],
  ['Told', `${SOURCE}; watch w 1; end w 410; event w MODIFIED a2`, /at "MODIFIED a": expected nothing after its end, seen more/],
  [
    'Told',
    `${SOURCE}; watch w 1 by c; end w 410; watch x 1 by c; end x 410; watch y 1 by c`,
    /for y: expected c to start over, because x was told 410, seen a watch from version 1/,
  ],
  ['Told', `${SOURCE}; watch w 1 by c; refused w 410; watch x 4 by c`, /seen a watch from version 4/],
  [
    'Told',
    `${SOURCE}; restored 9 a2 b1 since 2; watch w 4; bookmark w 9`,
    /for w at "BOOKMARK 9": expected 410, because version 4 is from another life, seen it served/,
  ],
  ['Told', `${SOURCE}; restored 9 a2 b1 since 2; changed 10 c10; watch w 4; event w ADDED c10`, /at "ADDED c": expected 410/],
  [
    'Told',
    `${SOURCE}; restored 9 a2 b1 since 2; watch w 4; refused w 504`,
    /for w: expected 410, because version 4 .*, seen 504/,
  ],
  ['Told', `${SOURCE}; watch w 7; refused w 504`, /for w: expected 410, because version 7 is from another life, seen 504/],
  ['Told', `${SOURCE}; watch w 7; settled`, /for w: expected 410, because version 7 is from another life, seen silence/],
  ['Told', `${SOURCE}; restored 9 a2 b1 since 2; list l 4; refused l 504`, /for l: expected 410, .*, seen 504/],
  ['Told', `${SOURCE}; restored 9 a2 b1 since 2; list l 3; listed l 9 a2 b1`, /for l: expected 410, .*, seen a list/],
  [
    'Told',
    `${SOURCE}; restored 9 a1 b1 since 1; restored 12 a2 since 4; watch w 9; bookmark w 12`,
    /for w at "BOOKMARK 12": expected 410, because version 9 is from another life/,
  ],
  ['Consistent', `${SOURCE}; cache c 4 a2; restored 9 a2 b1 since 2; cache c 9 a2`, /for c at "b": expected "b1" at version 9/],
  [
    'Convergent',
    `${SOURCE}; cache c 4 a2; restored 9 a2 b1 since 2; settled`,
    /for c at "b": expected "b1", seen nothing, and version 4/,
  ],
  ['Told', `${SOURCE}; cache c 4 a2; watch w of c; end w`, /for w: expected an ERROR, because its cache goes on, seen an end/],
];

describe('the guarantees of caches', () => {
  it.each(ACCEPTED)('accept %s', (text) => {
    expect(broken(text)).toEqual([]);
  });

  it.each(REJECTED.filter(([, , message]) => message.source !== '^$'))('%s rejects %s', (guarantee, text, message) => {
    const violation = wrong(guarantee, text);
    expect(violation?.message).toMatch(message);
    expect(violation?.message).toMatch(WORDED);
    expect(violation?.guarantee).toBe(guarantee);
    expect(checkCacheHistory({ steps: steps(text) }).map(({ guarantee: name }) => name)).toContain(guarantee);
  });

  it.each(REJECTED.filter(([, , message]) => message.source === '^$'))('%s cannot judge yet: %s', (guarantee, text) => {
    expect(wrong(guarantee, text)).toBeUndefined();
  });

  it('have a history that each rejects', () => {
    expect(new Set(REJECTED.map(([guarantee]) => guarantee))).toEqual(new Set(Object.keys(CACHE_CHECKERS)));
  });

  it('compare versions as the source does', () => {
    const text = 'source x; changed b1 a1; changed a2 a2; cache c b1 a1; cache c a2 a2';
    const order = ['x', 'b1', 'a2'];
    const compare = (a: string, b: string): number => order.indexOf(a) - order.indexOf(b);
    expect(checkCacheHistory({ steps: steps(text), compare })).toEqual([]);
    expect(() => checkCacheHistory({ steps: steps(text) })).toThrow('a version of Kubernetes');
  });
});
