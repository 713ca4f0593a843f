import { CACHE_CHECKERS } from '../../src/testing/checkers/cache/cache-checkers.ts';
import type { CacheState, CacheStep } from '../../src/testing/checkers/cache/cache-history.ts';
import type { CacheGuaranteeName, Violation } from '../../src/testing/checkers/history.ts';

/**
 * Histories of caches as text, one step after another, separated by `; `. Objects are letters with a version, `a1`:
 *
 *     source 1 a1 b1        changed 2 a2    changed 3 -b    changed 4    expired 4    restored 9 a1 b1 since 1    settled
 *     cache c 1 a1 b1       synced c        reached c 3     stopped c
 *     handler h c           add h a1        update h a2 a1  delete h a2   returned h    handler-synced h    removed h
 *     list l 3 Exact        listed l 3 a1   watch w 3       watch w initial   watch w of c   watch w 3 by me
 *     event w ADDED a2      event w DELETED a2 @3           bookmark w 4      bookmark w 4 end
 *     stop w                end w           end w 410       refused w 410
 */
export function steps(text: string): CacheStep[] {
  return text.split(/;\s+/).map((line) => {
    const [step = '', ...words] = line.trim().split(/\s+/);
    if (!CALLS.includes(step)) return { step, ...toMembers(step, words) } as CacheStep;
    const [handler = '', object = '', old] = words;
    return { step: 'call', handler, call: step, key: keyOf(object), object, ...(old && { old }) } as CacheStep;
  });
}

/** `add h a1` and the like are calls of a handler. */
const CALLS = ['add', 'update', 'delete'];

/** The violation that the checker of a guarantee finds. */
export function wrong(guarantee: CacheGuaranteeName, text: string): Violation | undefined {
  return CACHE_CHECKERS[guarantee]({ steps: steps(text) });
}

/** The guarantees that a history breaks. */
export function broken(text: string): string[] {
  return Object.values(CACHE_CHECKERS).flatMap((check) => check({ steps: steps(text) })?.guarantee ?? []);
}

const keyOf = (word: string): string => word.replace(/\d+$/, '');
const versionOf = (word: string): string => word.replace(/^\D+/, '');
const stateOf = (words: readonly string[]): CacheState => Object.fromEntries(words.map((word) => [keyOf(word), word]));
const after = (words: readonly string[], word: string): string | undefined => {
  const at = words.indexOf(word);
  return at < 0 ? undefined : words[at + 1];
};

function toMembers(step: string, words: string[]): object {
  const [one = '', two = '', three] = words;
  switch (step) {
    case 'source':
      return { version: one, state: stateOf(words.slice(1)) };
    case 'changed':
      if (!two) return { version: one };
      return two.startsWith('-') ? { version: one, key: two.slice(1) } : { version: one, key: keyOf(two), object: two };
    case 'cache':
      return { cache: one, version: two === "''" ? '' : two, state: stateOf(words.slice(2)) };
    case 'listed':
      return { list: one, version: two, state: stateOf(words.slice(2)) };
    case 'restored':
      return { version: one, state: stateOf(words.slice(1, words.indexOf('since'))), since: after(words, 'since') };
    case 'settled':
      return {};
    case 'expired':
      return { version: one };
    case 'synced':
    case 'stopped':
      return { cache: one };
    case 'reached':
      return { cache: one, version: two };
    case 'handler':
      return { handler: one, cache: two, ...(three && { selects: (_key: string, object: string) => !object.endsWith(three) }) };
    case 'returned':
    case 'handler-synced':
    case 'removed':
      return { handler: one };
    case 'list':
      return {
        list: one,
        resourceVersion: /^\d/.test(two) ? two : '',
        client: after(words, 'by'),
        ...(words.includes('Exact') && { resourceVersionMatch: 'Exact' }),
      };
    case 'watch': {
      const resourceVersion = /^\d/.test(two) ? two : '';
      return {
        watch: one,
        resourceVersion,
        client: after(words, 'by'),
        cache: after(words, 'of'),
        sendInitialEvents: words.includes('initial'),
      };
    }
    case 'event':
      return {
        watch: one,
        type: two,
        key: keyOf(three ?? ''),
        object: three,
        version: words[3]?.slice(1) ?? versionOf(three ?? ''),
      };
    case 'bookmark':
      return { watch: one, version: two, end: three === 'end' };
    case 'stop':
      return { watch: one };
    case 'end':
      return { watch: one, ...(two && { code: Number(two) }) };
    case 'refused':
      return { request: one, ...(two && { code: Number(two) }) };
    default:
      throw new Error(`no such step: ${step}`);
  }
}
