import { getOrMake } from '../../../watch/errors.ts';
import { type CacheGuaranteeName, type Finding, show, type Violation } from '../history.ts';
import { type CacheHistory, type CacheState, type CacheStepOf, difference, judged, type SourceHistory } from './cache-history.ts';
import { checkFolded } from './check-folded.ts';
import { checkTold } from './check-told.ts';

/** Returns how the history of a cache violates a guarantee, or undefined if it does not. */
export type CacheChecker = (history: CacheHistory) => Violation | undefined;

/** The checkers of all guarantees of caches. */
export const CACHE_CHECKERS: Readonly<Record<CacheGuaranteeName, CacheChecker>> = {
  Consistent: checkConsistent,
  Monotonic: checkMonotonic,
  Fresh: checkFresh,
  Convergent: checkConvergent,
  Folded: checkFolded,
  Synced: checkSynced,
  Told: checkTold,
};

/**
 * Runs all checkers on the history of caches. Returns at most one violation per guarantee, in the order of the guarantees.
 *
 * @throws {WatchError} INVALID_ARGUMENT for a version that `compareVersions` does not know; see {@link CacheHistory.compare}.
 */
export function checkCacheHistory(history: CacheHistory): Violation[] {
  return Object.values(CACHE_CHECKERS).flatMap((check) => check(history) ?? []);
}

/** **Consistent**: a cache at version v holds exactly what the source held at v. A list also counts as a cache. */
export function checkConsistent(history: CacheHistory): Violation | undefined {
  return judged('Consistent', history, {
    cache: (step, source) => inconsistent(step.cache, step, source),
    listed: (step, source) => inconsistent(step.list, step, source),
  });
}

function inconsistent(
  watcher: string,
  { version, state }: { readonly version: string; readonly state: CacheState },
  source: SourceHistory,
): Finding | undefined {
  if (version === '') {
    const wrong = difference(new Map(), state);
    return wrong && { watcher, ...wrong, expected: 'nothing before the first list' };
  }
  if (!source.has(version)) return { watcher, event: version, expected: 'a version of the source', seen: 'another one' };
  const wrong = difference(source.at(version), state);
  return wrong && { watcher, ...wrong, expected: `${wrong.expected} at version ${version}` };
}

/** **Fresh**: a list for "not older than v" never answers from before v; one without a version sees every earlier write. */
export function checkFresh(history: CacheHistory): Violation | undefined {
  /** By request: the oldest version with which it may be answered. */
  const floors = new Map<string, string>();
  const exact = new Map<string, string>();
  const caches = new Map<string, string>();
  const older = (watcher: string, version: string, source: SourceHistory): Finding | undefined => {
    const floor = floors.get(watcher) ?? '';
    const wanted = exact.get(watcher);
    if (wanted !== undefined && wanted !== version) return { watcher, expected: `version ${wanted}`, seen: version };
    if (source.compare(version, floor) >= 0) return undefined;
    return { watcher, event: version, expected: `one from version ${floor} on`, seen: 'an older one' };
  };
  const asks = (name: string, asked: string, source: SourceHistory): undefined =>
    void floors.set(name, asked === '' ? source.version : asked === '0' ? '' : asked);
  return judged('Fresh', history, {
    list: ({ list, resourceVersion = '', resourceVersionMatch }, source) => {
      if (resourceVersionMatch === 'Exact') exact.set(list, resourceVersion);
      else asks(list, resourceVersion, source);
    },
    // A watch of a cache may begin at any version.
    watch: ({ watch, cache, resourceVersion = '' }, source) =>
      cache === undefined ? asks(watch, resourceVersion, source) : undefined,
    listed: (step, source) => older(step.list, step.version, source),
    bookmark: (step, source) => (step.end ? older(step.watch, step.version, source) : undefined),
    cache: ({ cache, version }) => void caches.set(cache, version),
    reached: ({ cache: watcher, version: event }, source) => {
      const seen = caches.get(watcher) ?? '';
      if (source.compare(seen, event) >= 0) return undefined;
      return { watcher, event, expected: 'it reached', seen: `version ${show(seen)}` };
    },
  });
}

/** **Convergent**: when faults have stopped, every cache equals the source within one backoff and one relist. */
export function checkConvergent(history: CacheHistory): Violation | undefined {
  const caches = new Map<string, CacheStepOf<'cache'>>();
  return judged('Convergent', history, {
    cache: (step) => void caches.set(step.cache, step),
    stopped: ({ cache }) => void caches.delete(cache),
    settled: (_, source) => {
      for (const [watcher, { version, state }] of caches) {
        if (version === '') return { watcher, expected: 'a list', seen: 'none' };
        const wrong = difference(source.at(source.version), state);
        if (wrong) return { watcher, ...wrong, seen: `${wrong.seen}, and version ${version}` };
      }
      return undefined;
    },
  });
}

type Told = CacheStepOf<'event' | 'bookmark'>;

/** How far a watch has got. */
interface Progress {
  /** Whether it is a watch of a cache, whose events may be folded by key. */
  readonly folded: boolean;
  /** Whether its next events are the state, in any order. */
  initial: boolean;
  version: string;
  readonly keys: Map<string, string>;
}

/**
 * **Monotonic**: a cache, a list and a watch never go back in version. Lists are compared with those of the same client that were
 * answered before they were asked for; those of an exact version may be older.
 */
export function checkMonotonic(history: CacheHistory): Violation | undefined {
  const caches = new Map<string, string>();
  const watches = new Map<string, Progress>();
  const lists = new Map<string, { readonly client: string; readonly floor: string }>();
  const answered = new Map<string, string>();
  const got = (step: Told, source: SourceHistory): Finding | undefined => {
    const progress = watches.get(step.watch);
    return progress && advance(progress, step, source);
  };
  return judged('Monotonic', history, {
    cache: ({ cache, version }, source) => {
      const last = caches.get(cache) ?? '';
      caches.set(cache, version);
      return back(cache, { last, version, source });
    },
    list: ({ client = '', list, resourceVersionMatch }) => {
      if (resourceVersionMatch !== 'Exact') lists.set(list, { client, floor: answered.get(client) ?? '' });
    },
    listed: ({ list, version }, source) => {
      const asked = lists.get(list);
      if (!asked) return undefined;
      const newest = answered.get(asked.client) ?? '';
      if (source.compare(version, newest) > 0) answered.set(asked.client, version);
      return back(list, { last: asked.floor, version, source });
    },
    watch: ({ watch, resourceVersion = '', sendInitialEvents = false, cache }) => {
      const unordered = sendInitialEvents || resourceVersion === '' || resourceVersion === '0';
      const version = unordered ? '' : resourceVersion;
      watches.set(watch, { folded: cache !== undefined, initial: unordered, version, keys: new Map() });
    },
    event: got,
    bookmark: got,
  });
}

function back(
  watcher: string,
  { last, version, source }: { readonly last: string; readonly version: string; readonly source: SourceHistory },
): Finding | undefined {
  if (source.compare(version, last) >= 0) return undefined;
  return { watcher, event: version, expected: `version ${last} or a later one`, seen: 'an older one' };
}

function advance(progress: Progress, step: Told, source: SourceHistory): Finding | undefined {
  const { watch: watcher, version } = step;
  const { folded, initial, version: last, keys } = progress;
  // A folded event keeps its key's place in the queue, so it may be newer than a BOOKMARK behind it: only the versions of one key
  // are in order, and those of BOOKMARKs.
  const wrong = (folded || initial) && step.step === 'event' ? undefined : back(watcher, { last, version, source });
  if (wrong) return wrong;
  if (source.compare(version, last) > 0 && !(folded && step.step === 'event')) progress.version = version;
  if (step.step === 'bookmark') {
    if (step.end) progress.initial = false;
    return undefined;
  }
  const before = keys.get(step.key);
  keys.set(step.key, version);
  const order = before === undefined ? 1 : source.compare(version, before);
  // If a new list lacks an object, a cache does not know at which version it was deleted.
  if (order > 0 || (order === 0 && folded)) return undefined;
  const event = `${step.type} ${step.key}`;
  return { watcher, event, expected: `a version after ${before}`, seen: version };
}

type Seen = Pick<CacheStepOf<'cache'>, 'version' | 'state'>;

interface Cache {
  seen: Seen;
  synced: boolean;
}

interface Handler {
  readonly cache: Cache;
  readonly selects: (key: string, object: string) => boolean;
  /** What the cache held once both had begun: all of it is initial. */
  initial: Seen | undefined;
  /** The call that has not returned. */
  running: string | undefined;
  /** The keys for which it has been called. */
  readonly told: Set<string>;
}

/**
 * **Synced**: `synced` implies that every initial object is in the store; a registration's `synced`, that every initial `onAdd`
 * has returned, and that the cache has synced before. An object that was deleted before its turn need not be reported.
 */
export function checkSynced(history: CacheHistory): Violation | undefined {
  const caches = new Map<string, Cache>();
  const handlers = new Map<string, Handler>();
  const cacheOf = (name: string): Cache => getOrMake(caches, name, () => ({ seen: { version: '', state: {} }, synced: false }));
  return judged('Synced', history, {
    cache: (step) => {
      cacheOf(step.cache).seen = step;
    },
    synced: (step, source) => {
      const cache = cacheOf(step.cache);
      cache.synced = true;
      for (const handler of handlers.values()) if (handler.cache === cache) handler.initial ??= cache.seen;
      return incomplete(step.cache, cache, source);
    },
    handler: ({ handler, cache: name, selects = () => true }) => {
      const cache = cacheOf(name);
      const initial = cache.synced ? cache.seen : undefined;
      handlers.set(handler, { cache, selects, initial, running: undefined, told: new Set() });
    },
    call: ({ handler: name, key }) => {
      const handler = handlers.get(name);
      if (handler) handler.running = key;
    },
    returned: ({ handler: name }) => {
      const handler = handlers.get(name);
      if (handler?.running !== undefined) handler.told.add(handler.running);
      if (handler) handler.running = undefined;
    },
    'handler-synced': ({ handler }, source) => untold(handler, handlers.get(handler), source),
  });
}

function incomplete(watcher: string, { seen: { version, state } }: Cache, source: SourceHistory): Finding | undefined {
  if (version === '') return { watcher, expected: 'a list before it has synced', seen: 'none' };
  const wrong = difference(source.at(version), state);
  return wrong && { watcher, ...wrong, expected: `${wrong.expected} when it has synced` };
}

function untold(watcher: string, handler: Handler | undefined, source: SourceHistory): Finding | undefined {
  if (!handler) return undefined;
  const { cache, initial, selects, told, running } = handler;
  if (!cache.synced || !initial) return { watcher, expected: 'its cache synced before', seen: 'it not synced' };
  for (const [key, object] of Object.entries(initial.state)) {
    const now = cache.seen.state[key];
    const gone = now === undefined || !selects(key, now) || source.deletedAfter(initial.version, key);
    if (told.has(key) || gone || !selects(key, object)) continue;
    return { watcher, event: key, expected: `${show(object)} told`, seen: running === key ? 'the call not returned' : 'no call' };
  }
  return undefined;
}
