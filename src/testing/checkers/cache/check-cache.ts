import { show, type Violation } from '../guarantees.ts';
import type { CacheHistory, CacheState, CacheStep } from './cache-history.ts';
import { difference, judged, type SourceLog } from './source-log.ts';

type Wrong = Omit<Violation, 'guarantee' | 'message'>;

/** **Consistent**: a cache at version v holds exactly what the source held at v. A list also counts as a cache. */
export function checkConsistent(history: CacheHistory): Violation | undefined {
  return judged('Consistent', history, (step, source) => {
    if (step.step === 'cache') return inconsistent(step.cache, step, source);
    return step.step === 'listed' ? inconsistent(step.list, step, source) : undefined;
  });
}

function inconsistent(
  watcher: string,
  { version, state }: { readonly version: string; readonly state: CacheState },
  source: SourceLog,
): Wrong | undefined {
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
  const older = (watcher: string, version: string, source: SourceLog): Wrong | undefined => {
    const floor = floors.get(watcher) ?? '';
    const wanted = exact.get(watcher);
    if (wanted !== undefined && wanted !== version) return { watcher, expected: `version ${wanted}`, seen: version };
    if (source.compare(version, floor) >= 0) return undefined;
    return { watcher, event: version, expected: `one from version ${floor} on`, seen: 'an older one' };
  };
  return judged('Fresh', history, (step, source) => {
    if (step.step === 'list' || step.step === 'watch') {
      const { resourceVersion: asked = '' } = step;
      const name = step.step === 'list' ? step.list : step.watch;
      if (step.step === 'list' && step.resourceVersionMatch === 'Exact') exact.set(name, asked);
      // A watch of a cache may begin at any version.
      else if (step.step === 'list' || step.cache === undefined) {
        floors.set(name, asked === '' ? source.version : asked === '0' ? '' : asked);
      }
    } else if (step.step === 'listed') return older(step.list, step.version, source);
    else if (step.step === 'bookmark' && step.end) return older(step.watch, step.version, source);
    else if (step.step === 'cache') caches.set(step.cache, step.version);
    else if (step.step === 'reached') {
      const { cache: watcher, version: event } = step;
      const seen = caches.get(watcher) ?? '';
      if (source.compare(seen, event) < 0) return { watcher, event, expected: 'it reached', seen: `version ${show(seen)}` };
    }
    return undefined;
  });
}

/** **Convergent**: when faults have stopped, every cache equals the source within one backoff and one relist. */
export function checkConvergent(history: CacheHistory): Violation | undefined {
  const caches = new Map<string, Extract<CacheStep, { step: 'cache' }>>();
  return judged('Convergent', history, (step, source) => {
    if (step.step === 'cache') caches.set(step.cache, step);
    else if (step.step === 'stopped') caches.delete(step.cache);
    else if (step.step === 'settled') {
      for (const [watcher, { version, state }] of caches) {
        if (version === '') return { watcher, expected: 'a list', seen: 'none' };
        const wrong = difference(source.at(source.version), state);
        if (wrong) return { watcher, ...wrong, seen: `${wrong.seen}, and version ${version}` };
      }
    }
    return undefined;
  });
}
