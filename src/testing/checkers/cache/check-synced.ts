import { show, type Violation } from '../guarantees.ts';
import type { CacheHistory, CacheStep } from './cache-history.ts';
import { difference, judged, type SourceLog } from './source-log.ts';

type Wrong = Omit<Violation, 'guarantee' | 'message'>;
type Seen = Pick<Extract<CacheStep, { step: 'cache' }>, 'version' | 'state'>;

interface Cache {
  seen: Seen;
  synced: boolean;
}

interface Handler {
  readonly cache: Cache;
  readonly selects: (key: string, object: string) => boolean;
  /** What the cache had when both had begun: all of it is initial. */
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
  const cacheOf = (name: string): Cache => {
    const cache = caches.get(name) ?? { seen: { version: '', state: {} }, synced: false };
    caches.set(name, cache);
    return cache;
  };
  return judged('Synced', history, (step, source) => {
    switch (step.step) {
      case 'cache':
        cacheOf(step.cache).seen = step;
        return undefined;
      case 'synced': {
        const cache = cacheOf(step.cache);
        cache.synced = true;
        for (const handler of handlers.values()) if (handler.cache === cache) handler.initial ??= cache.seen;
        return incomplete(step.cache, cache, source);
      }
      case 'handler': {
        const cache = cacheOf(step.cache);
        const { selects = () => true } = step;
        const initial = cache.synced ? cache.seen : undefined;
        handlers.set(step.handler, { cache, selects, initial, running: undefined, told: new Set() });
        return undefined;
      }
      case 'call': {
        const handler = handlers.get(step.handler);
        if (handler) handler.running = step.key;
        return undefined;
      }
      case 'returned': {
        const handler = handlers.get(step.handler);
        if (handler?.running !== undefined) handler.told.add(handler.running);
        if (handler) handler.running = undefined;
        return undefined;
      }
      case 'handler-synced':
        return untold(step.handler, handlers.get(step.handler), source);
      default:
        return undefined;
    }
  });
}

function incomplete(watcher: string, { seen: { version, state } }: Cache, source: SourceLog): Wrong | undefined {
  if (version === '') return { watcher, expected: 'a list before it has synced', seen: 'none' };
  const wrong = difference(source.at(version), state);
  return wrong && { watcher, ...wrong, expected: `${wrong.expected} when it has synced` };
}

function untold(watcher: string, handler: Handler | undefined, source: SourceLog): Wrong | undefined {
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
