import type { LabelSelector } from '../../selectors/label-selector.ts';
import type { ReflectorFailure, ReflectorOptions, ReflectorState } from '../reflector/options.ts';
import type { Indexer, Indexers } from '../store/indexer.ts';
import type { VersionComparator } from '../version.ts';
import type { Handler, HandlerOptions } from './handler.ts';

/**
 * The objects of an informer, by key: a read-only `Indexer`. Only the informer writes to it.
 */
export interface InformerStore<T, Name extends string = string>
  extends Pick<
    Indexer<T, Name>,
    | 'byIndex'
    | 'get'
    | 'index'
    | 'indexKeys'
    | 'indexNames'
    | 'indexValues'
    | 'keyOf'
    | 'keys'
    | 'list'
    | 'resourceVersion'
    | 'size'
  > {
  /** Adds indexes, even while the informer runs. Returns this store, whose type then also has the new names. */
  addIndexers<More extends string>(indexers: Indexers<T, More>): InformerStore<T, Name | More>;
}

/** The state of an informer at one moment. For health checks. */
export type InformerState = ReflectorState;

/** A failure, as an informer's `onError` gets it. */
export type InformerFailure<T> = ReflectorFailure | HandlerFailure<T> | ObjectFailure<T>;

/** A handler has thrown or rejected, or was ended because it lost changes. */
export interface HandlerFailure<T> {
  readonly kind: 'handler';
  readonly handler: Handler<T>;
}

/** `keyOf`, `transform` or an index function has thrown for an object. Its previous state, if there was one, stays. */
export interface ObjectFailure<T> {
  readonly kind: 'object';
  readonly object: T;
}

/** Options of an informer. Those of its reflector are among them. */
export interface InformerOptions<T, Name extends string = string>
  extends Omit<ReflectorOptions<T>, 'resyncMs' | 'shouldResync' | 'onError' | 'keyOf'> {
  /**
   * How often handlers without their own `resyncMs` are called with every object again, in milliseconds; default 0: not at all.
   */
  readonly resyncMs?: number | undefined;
  /** The indexes of its store. More can be added later. */
  readonly indexers?: Indexers<T, Name> | undefined;
  /**
   * Called once for each object as soon as it has come; the result is stored instead, for example without the fields that nobody
   * needs. So the first list needs no more memory than what is kept of it. It should keep the name and the namespace, which handlers make keys from (the store's key is that of the original
   * object), `uid` and `resourceVersion`, which identify an object's state, and the labels that selectors use. It must not change
   * its argument, which may be shared: a storage in the same process would keep the change.
   */
  readonly transform?: ((object: T) => T) | undefined;
  /** The key of an object; default: namespace and name. */
  readonly keyOf?: ((object: T) => string) | undefined;
  /** How `atLeast` compares versions. Default `compareVersions`: Kubernetes' decimal numbers. */
  readonly compareVersions?: VersionComparator | undefined;
  /**
   * Called with every failure of the source, a handler or an object. If it throws, `run` ends, and rejects with that error.
   * Default: `console.error`, once per kind, and when the source works again.
   */
  readonly onError?: ((error: unknown, failure: InformerFailure<T>) => void) | undefined;
}

/** How an informer stops. */
export interface StopOptions {
  /**
   * How long to wait for calls of handlers that have not returned, in milliseconds; default 0: until they have. Nothing ends such a
   * call: it is only no longer waited for.
   */
  readonly timeoutMs?: number | undefined;
}

/** Options of a watch of an informer. */
export interface InformerWatchOptions<T> extends Omit<HandlerOptions<T>, 'resyncMs'> {
  /** Only objects whose labels this selects. */
  readonly labelSelector?: string | LabelSelector | undefined;
  /** Ends the watch when it aborts. */
  readonly signal?: AbortSignal | undefined;
}
