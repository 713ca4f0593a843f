import { type Finding, show, type Violation } from '../history.ts';
import {
  type CacheHistory,
  type CacheState,
  type CacheStepOf,
  difference,
  type HandlerCall,
  judged,
  type SourceHistory,
} from './cache-history.ts';

/** What a handler or a watch has been told, folded. */
interface Fold {
  /** The cache whose contents it must give; undefined for a watch of the source. */
  readonly cache: string | undefined;
  readonly selects: (key: string, object: string) => boolean;
  readonly state: Map<string, string>;
  /** For a watch of the source: the version of its last event, as soon as its state must be the source's at each version. */
  version: string | undefined;
}

const KINDS = { ADDED: 'add', MODIFIED: 'update', DELETED: 'delete' } as const;

/**
 * **Folded**: folding a handler's calls, or a watch's events, into an empty map gives the store's contents. An object is added only
 * if it is not there, and changed or deleted only if it is. A watch of the source that starts at a version is folded into the state
 * there, and gives what the source held at every version that it reaches: nothing is missing.
 */
export function checkFolded(history: CacheHistory): Violation | undefined {
  const folds = new Map<string, Fold>();
  const caches = new Map<string, CacheState>();
  return judged('Folded', history, {
    cache: (step) => void caches.set(step.cache, step.state),
    handler: ({ handler, cache, selects = all }) =>
      void folds.set(handler, { cache, selects, state: new Map(), version: undefined }),
    watch: (step, source) => void folds.set(step.watch, beginning(step, source)),
    call: (step) => called(folds.get(step.handler), step),
    event: (step, source) => happened(folds.get(step.watch), step, source),
    bookmark: (step, source) => marked(folds.get(step.watch), step, source),
    end: ({ watch }, source) => {
      const fold = folds.get(watch);
      folds.delete(watch);
      return fold && unlike(watch, fold, source);
    },
    removed: ({ handler }) => void folds.delete(handler),
    stop: ({ watch }) => void folds.delete(watch),
    stopped: (step) => {
      for (const [name, { cache }] of folds) if (cache === step.cache) folds.delete(name);
    },
    settled: () => unfolded(folds, caches),
  });
}

function all(): boolean {
  return true;
}

function beginning({ cache, resourceVersion = '', sendInitialEvents }: CacheStepOf<'watch'>, source: SourceHistory): Fold {
  const fresh = cache !== undefined || sendInitialEvents || resourceVersion === '' || resourceVersion === '0';
  if (fresh) return { cache, selects: all, state: new Map(), version: undefined };
  return { cache, selects: all, state: new Map(source.at(resourceVersion)), version: resourceVersion };
}

function apply(fold: Fold, watcher: string, change: { kind: HandlerCall; key: string; object: string }): Finding | undefined {
  const { kind, key, object } = change;
  const exists = fold.state.has(key);
  if (exists !== (kind !== 'add')) {
    const expected = exists ? 'an update or a deletion, because it is there' : 'an addition, because it is not there';
    return { watcher, event: key, expected, seen: `${kind} of ${show(object)}` };
  }
  if (kind === 'delete') fold.state.delete(key);
  else fold.state.set(key, object);
  return undefined;
}

function called(fold: Fold | undefined, step: CacheStepOf<'call'>): Finding | undefined {
  if (!fold) return undefined;
  const { handler: watcher, call: kind, key, object, old } = step;
  const known = fold.state.get(key);
  const wrong = apply(fold, watcher, { kind, key, object });
  if (wrong || old === undefined || old === known) return wrong;
  return { watcher, event: key, expected: `what it was told last, ${show(known)}, as old`, seen: show(old) };
}

function happened(fold: Fold | undefined, step: CacheStepOf<'event'>, source: SourceHistory): Finding | undefined {
  if (!fold) return undefined;
  const { watch: watcher, type, key, object, version } = step;
  // A version is complete when the next one begins.
  const wrong = fold.version !== version ? unlike(watcher, fold, source) : undefined;
  if (fold.version !== undefined) fold.version = version;
  return wrong ?? apply(fold, watcher, { kind: KINDS[type], key, object });
}

function marked(fold: Fold | undefined, { watch, version }: CacheStepOf<'bookmark'>, source: SourceHistory): Finding | undefined {
  if (!fold || fold.cache !== undefined) return undefined;
  fold.version = version;
  return unlike(watch, fold, source);
}

/** Where a watch of the source differs from the source at the version that the watch has reached. */
function unlike(watcher: string, { cache, state, version }: Fold, source: SourceHistory): Finding | undefined {
  if (cache !== undefined || version === undefined) return undefined;
  const wrong = difference(source.at(version), state);
  return wrong && { watcher, ...wrong, expected: `${wrong.expected} at version ${version}` };
}

function unfolded(folds: ReadonlyMap<string, Fold>, caches: ReadonlyMap<string, CacheState>): Finding | undefined {
  for (const [watcher, { cache, selects, state }] of folds) {
    const objects = cache === undefined ? undefined : caches.get(cache);
    if (!objects) continue;
    const selected = Object.entries(objects).filter(([key, object]) => selects(key, object));
    const wrong = difference(new Map(selected), state);
    if (wrong) return { watcher, ...wrong };
  }
  return undefined;
}
