import type { Violation } from '../guarantees.ts';
import type { CacheHistory, CacheStep } from './cache-history.ts';
import { judged, type SourceLog } from './source-log.ts';

type Wrong = Omit<Violation, 'guarantee' | 'message'>;
type Told = Extract<CacheStep, { step: 'event' | 'bookmark' }>;

/** How far a watch has got. */
interface Progress {
  /** Of a cache, whose events may be folded by key. */
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
  return judged('Monotonic', history, (step, source) => {
    switch (step.step) {
      case 'cache': {
        const last = caches.get(step.cache) ?? '';
        caches.set(step.cache, step.version);
        return back(step.cache, { last, version: step.version, source });
      }
      case 'list': {
        const { client = '', list, resourceVersionMatch } = step;
        if (resourceVersionMatch !== 'Exact') lists.set(list, { client, floor: answered.get(client) ?? '' });
        return undefined;
      }
      case 'listed': {
        const asked = lists.get(step.list);
        if (!asked) return undefined;
        const newest = answered.get(asked.client) ?? '';
        if (source.compare(step.version, newest) > 0) answered.set(asked.client, step.version);
        return back(step.list, { last: asked.floor, version: step.version, source });
      }
      case 'watch': {
        const { watch, resourceVersion = '', sendInitialEvents = false, cache } = step;
        const unordered = sendInitialEvents || resourceVersion === '' || resourceVersion === '0';
        const version = unordered ? '' : resourceVersion;
        watches.set(watch, { folded: cache !== undefined, initial: unordered, version, keys: new Map() });
        return undefined;
      }
      case 'event':
      case 'bookmark': {
        const progress = watches.get(step.watch);
        return progress && advance(progress, step, source);
      }
      default:
        return undefined;
    }
  });
}

function back(
  watcher: string,
  { last, version, source }: { readonly last: string; readonly version: string; readonly source: SourceLog },
): Wrong | undefined {
  if (source.compare(version, last) >= 0) return undefined;
  return { watcher, event: version, expected: `version ${last} or a later one`, seen: 'an older one' };
}

function advance(progress: Progress, step: Told, source: SourceLog): Wrong | undefined {
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
