import type { ResourceVersionMatch } from '../../../cache/list-watcher.ts';
import type { VersionComparator } from '../../../cache/versions.ts';
import type { ChangeType } from '../../../watch/event.ts';

/**
 * The objects of a collection, by key. An object is represented by anything that differs when the object does, for example its
 * version or a digest.
 */
export type CacheState = Readonly<Record<string, string>>;

/**
 * What happened to caches of one source, their handlers and their requests, in the order in which it was seen. A
 * `CacheRecorder` records a real run; a test may also write a history by hand, one line per step:
 *
 *     { step: 'source', version: '1', state: { a: '1' } }
 *     { step: 'list', list: 'first' }
 *     { step: 'listed', list: 'first', version: '1', state: { a: '1' } }
 *     { step: 'cache', cache: 'mine', version: '1', state: { a: '1' } }
 *     { step: 'changed', version: '2', key: 'a' }                              // a was deleted
 *
 * No observation of a cache or a request may be from the future: record a change once it has been made, but before anyone can
 * know of it.
 */
export interface CacheHistory {
  readonly steps: readonly CacheStep[];
  /** Default `compareVersions`. The empty version is older than all. */
  readonly compare?: VersionComparator | undefined;
}

/** One thing that happened. */
export type CacheStep = SourceStep | StoreStep | HandlerStep | RequestStep;

/** What happened to the source. Versions never go back. */
export type SourceStep =
  /** What it holds at the beginning; without this step, nothing. */
  | { readonly step: 'source'; readonly version: string; readonly state: CacheState }
  /** An object was created or replaced. Without `object`: it was deleted. Without `key`: something else changed. */
  | { readonly step: 'changed'; readonly version: string; readonly key?: string; readonly object?: string | undefined }
  /** What came before this version is forgotten: a watch from an earlier one cannot be served everything. */
  | { readonly step: 'expired'; readonly version: string }
  /**
   * Another life of it begins, as when it is restored from a copy: it has this, at a version that is greater than all before. It has
   * never given what lies between `since` and that; what others were given of it is from the other life.
   */
  | { readonly step: 'restored'; readonly since: string; readonly version: string; readonly state: CacheState }
  /** All faults have stopped, nothing has changed since, and the time of one backoff and one relist has passed. */
  | { readonly step: 'settled' };

/** What was observed of a cache. */
export type StoreStep =
  /** It says that it is at this version, and has this. The version is empty before the first list. */
  | { readonly step: 'cache'; readonly cache: string; readonly version: string; readonly state: CacheState }
  /** It says that it has synced. */
  | { readonly step: 'synced'; readonly cache: string }
  /** It says that it has reached a version. */
  | { readonly step: 'reached'; readonly cache: string; readonly version: string }
  /** It was stopped: nothing more is expected of it. */
  | { readonly step: 'stopped'; readonly cache: string };

/** The calls of a handler. */
export type HandlerCall = 'add' | 'update' | 'delete';

/** What was observed of a cache's handler. */
export type HandlerStep =
  /** It was registered. */
  | {
      readonly step: 'handler';
      readonly handler: string;
      readonly cache: string;
      /** Which objects it is called for; default all. */
      readonly selects?: ((key: string, object: string) => boolean) | undefined;
    }
  /** It is called. `old` is the old object that `onUpdate` got. */
  | {
      readonly step: 'call';
      readonly handler: string;
      readonly call: HandlerCall;
      readonly key: string;
      readonly object: string;
      readonly old?: string | undefined;
    }
  /** That call has returned, or thrown; if it returned a promise, that has settled. */
  | { readonly step: 'returned'; readonly handler: string }
  /** Its registration says that it has synced. */
  | { readonly step: 'handler-synced'; readonly handler: string }
  | { readonly step: 'removed'; readonly handler: string };

/** A request to the source, or a watch of a cache. The names of requests are unique. */
export type RequestStep =
  | {
      readonly step: 'list';
      readonly list: string;
      /** Who asks. A client that gets a 410 must start over. */
      readonly client?: string | undefined;
      readonly resourceVersion?: string | undefined;
      readonly resourceVersionMatch?: ResourceVersionMatch | undefined;
    }
  /** It was answered; if it has pages, all of them. */
  | { readonly step: 'listed'; readonly list: string; readonly version: string; readonly state: CacheState }
  | {
      readonly step: 'watch';
      readonly watch: string;
      readonly client?: string | undefined;
      /** It is a watch of this cache, and may fold events by key. */
      readonly cache?: string | undefined;
      readonly resourceVersion?: string | undefined;
      readonly sendInitialEvents?: boolean | undefined;
    }
  /** An ADDED, MODIFIED or DELETED. */
  | {
      readonly step: 'event';
      readonly watch: string;
      readonly type: ChangeType;
      readonly version: string;
      readonly key: string;
      readonly object: string;
    }
  /** A BOOKMARK; `end` if it ends the initial events. */
  | { readonly step: 'bookmark'; readonly watch: string; readonly version: string; readonly end?: boolean | undefined }
  /** The consumer stops a watch. */
  | { readonly step: 'stop'; readonly watch: string }
  /** It has ended; `code` is the code of its ERROR. */
  | { readonly step: 'end'; readonly watch: string; readonly code?: number | undefined }
  /** A list or a watch was refused, or has failed without a code. */
  | { readonly step: 'refused'; readonly request: string; readonly code?: number | undefined };
