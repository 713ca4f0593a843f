import type { Finding, Violation } from '../history.ts';
import { type CacheHistory, type CacheStepOf, judged, type SourceHistory } from './cache-history.ts';

interface Open {
  readonly client: string | undefined;
  readonly cache: string | undefined;
  /** Why it cannot be served everything; undefined if it can. */
  readonly why: string | undefined;
  /** Whether the reason is that its version is from another life of the source. */
  readonly isForeign: boolean;
  /** The last version that it got. */
  version: string;
  stopped: boolean;
  ended: boolean;
}

/** A client that got a 410, and nothing else since. */
interface Gone {
  readonly watch: string;
  readonly version: string;
  readonly times: number;
}

/**
 * **Told**: a client that cannot be served everything gets a 410, even if its version is from another life of the source, such
 * as from before a restore; a watch never just ends with something missing.
 * - A watch from a version that is no longer kept gets nothing but a 410, or it fails; nothing comes after an end.
 * - A watch or a list from a version that the source cannot have given gets a 410: not a 504, which would make it wait for
 *   something that never comes, not a state, and not silence.
 * - A client that gets a 410 starts over: its next watch is not from a version, unless it has listed. A client that was about to
 *   disconnect may have missed the 410, and may ask for the same once more.
 * - If neither a watch of a cache nor the cache was stopped, the watch ends with an ERROR.
 */
export function checkTold(history: CacheHistory): Violation | undefined {
  const watches = new Map<string, Open>();
  const stopped = new Set<string>();
  const gone = new Map<string, Gone>();
  /** By list: the version that it was asked for, if the source cannot have given that. */
  const lists = new Map<string, string>();
  const hears = (name: string, code: number | undefined): void => {
    const { client, version = '' } = watches.get(name) ?? {};
    if (code !== 410 || client === undefined) return;
    gone.set(client, { watch: name, version, times: (gone.get(client)?.times ?? 0) + 1 });
  };
  const got = (step: CacheStepOf<'event' | 'bookmark'>): Finding | undefined => {
    const watch = watches.get(step.watch);
    if (watch?.client !== undefined) gone.delete(watch.client);
    if (watch) watch.version = step.version;
    return unserved(step, watch);
  };
  return judged('Told', history, {
    list: ({ client, list, resourceVersion = '' }, source) => {
      if (client !== undefined) gone.delete(client);
      if (resourceVersion !== '' && source.isForeign(resourceVersion)) lists.set(list, resourceVersion);
    },
    listed: ({ list: watcher }) => {
      const version = lists.get(watcher);
      return version === undefined ? undefined : { watcher, expected: `410, because ${of(version)}`, seen: 'a list' };
    },
    watch: (step, source) => {
      watches.set(step.watch, opened(step, source));
      return goesOn(step, gone);
    },
    event: got,
    bookmark: got,
    refused: ({ request: watcher, code }) => {
      hears(watcher, code);
      const watch = watches.get(watcher);
      if (watch) watch.ended = true;
      const version = lists.get(watcher) ?? (watch?.isForeign ? watch.version : undefined);
      if (version === undefined || code !== 504) return undefined;
      return { watcher, expected: `410, because ${of(version)}`, seen: '504' };
    },
    settled: () => silence(watches),
    stop: (step) => {
      const watch = watches.get(step.watch);
      if (watch) watch.stopped = true;
    },
    end: ({ watch: watcher, code }) => {
      const watch = watches.get(watcher);
      if (!watch) return undefined;
      watch.ended = true;
      // A client that has disconnected does not see the code.
      if (!watch.stopped) hears(watcher, code);
      const silent = watch.cache !== undefined && code === undefined && !watch.stopped && !stopped.has(watch.cache);
      return silent ? { watcher, expected: 'an ERROR, because its cache goes on', seen: 'an end' } : undefined;
    },
    stopped: ({ cache }) => void stopped.add(cache),
  });
}

function fromVersion({ resourceVersion = '', sendInitialEvents }: CacheStepOf<'watch'>): string | undefined {
  return sendInitialEvents || resourceVersion === '' || resourceVersion === '0' ? undefined : resourceVersion;
}

function opened(step: CacheStepOf<'watch'>, source: SourceHistory): Open {
  const { client, cache } = step;
  const from = cache === undefined ? fromVersion(step) : undefined;
  const isForeign = from !== undefined && source.isForeign(from);
  const isTooOld = from !== undefined && source.compare(from, source.oldest) < 0;
  const why = isForeign ? of(from) : isTooOld ? `version ${from} is forgotten` : undefined;
  return { client, cache, why, isForeign, version: from ?? '', stopped: false, ended: false };
}

const of = (version: string): string => `version ${version} is from another life`;

/** A watch that, once everything has settled, waits for something that never comes. */
function silence(watches: ReadonlyMap<string, Open>): Finding | undefined {
  for (const [watcher, { why, isForeign, stopped, ended }] of watches) {
    if (isForeign && !stopped && !ended) return { watcher, expected: `410, because ${why}`, seen: 'silence' };
  }
  return undefined;
}

function goesOn(step: CacheStepOf<'watch'>, gone: Map<string, Gone>): Finding | undefined {
  const { watch: watcher, client = '' } = step;
  const told = gone.get(client);
  const from = fromVersion(step);
  if (from === undefined) gone.delete(client);
  if (!told || from === undefined || (told.times === 1 && told.version === from)) return undefined;
  return {
    watcher,
    expected: `${client} to start over, because ${told.watch} was told 410`,
    seen: `a watch from version ${from}`,
  };
}

function unserved(step: CacheStepOf<'event' | 'bookmark'>, watch: Open | undefined): Finding | undefined {
  if (!watch) return undefined;
  const { watch: watcher, version } = step;
  const event = step.step === 'event' ? `${step.type} ${step.key}` : `BOOKMARK ${version}`;
  if (watch.ended) return { watcher, event, expected: 'nothing after its end', seen: 'more' };
  if (watch.why === undefined) return undefined;
  return { watcher, event, expected: `410, because ${watch.why}`, seen: 'it served' };
}
