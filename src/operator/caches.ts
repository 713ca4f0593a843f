/**
 * The operator's caches: one informer per kind, however many controllers want it, under whatever name.
 *
 *     declare('deployments.apps/v1') ------.
 *     declare({ apps/v1, Deployment }) ----+--> run: which kind is that? ---> one informer, with all their indexes
 *
 * Invariants
 * - A kind has one informer. Two names for one kind lead to the same informer as soon as the server has resolved them.
 * - Informers live as long as the operator, across leaderships, without a gap.
 * - A leadership begins with the newest state of each kind: its predecessor may have written more than the caches have heard of.
 * - After `run` there is no pending request or timer.
 */

import type { Informer } from '../cache/informer/informer.ts';
import type { InformerStore } from '../cache/informer/informer-options.ts';
import { type KubernetesObject, keyOf } from '../cache/object.ts';
import { nameOf, type ResourceClient } from '../cache/resource-client.ts';
import type { Indexers, IndexFunction } from '../cache/store/indexer.ts';
import { Latch } from '../watch/abort.ts';
import { getOrMake, invalid, WatchError } from '../watch/errors.ts';
import { oneLine } from '../watch/failures.ts';
import { FollowedKind } from './followed-kind.ts';
import { type IndexFunctions, KindCache, type KindCacheDeps } from './kind-cache.ts';
import { type KindName, type ResourceSource, textOf, toKind } from './kinds.ts';
import type { Caches, KindState } from './operator-options.ts';
import { controllerOf } from './owners.ts';

/** A kind that was asked for. */
interface Declared {
  readonly name: KindName<object>;
  readonly indexers: IndexFunctions;
  readonly found: Latch<KindCache>;
  followed?: FollowedKind;
  cache?: KindCache;
}

/** What the caches need from the operator. */
export interface CachesDeps extends KindCacheDeps {
  readonly cluster: ResourceSource;
  readonly namespace: string | undefined;
  /** Called when the server does not have a kind, and when it does again. */
  readonly tell: (text: string) => void;
  /** Called with an error that ends the operator. */
  readonly fail: (error: unknown) => void;
}

export class KindCaches {
  readonly #deps: CachesDeps;
  #declared: Map<string, Declared> = new Map();
  /** By each of its names. */
  readonly #caches: Map<string, KindCache> = new Map();

  constructor(deps: CachesDeps) {
    this.#deps = deps;
  }

  /**
   * Asks for a kind. Returns its name, for the other methods.
   *
   * @throws {WatchError} INVALID_ARGUMENT for anything that names no kind, and for an index whose name another function has.
   */
  declare(name: KindName<object>, indexers: Indexers<KubernetesObject> = {}): string {
    const text = textOf(name);
    const declared = getOrMake(this.#declared, text, () => ({ name, indexers: new Map(), found: new Latch<KindCache>() }));
    for (const each of Object.entries(indexers)) addIndex(declared.indexers, each, text);
    return text;
  }

  /** Does work that asks for kinds. If it throws, none of them counts as asked for. */
  allOrNothing<R>(work: () => R): R {
    const before = Array.from(this.#declared, ([text, each]) => [text, { ...each, indexers: new Map(each.indexers) }] as const);
    try {
      return work();
    } catch (error) {
      this.#declared = new Map(before);
      throw error;
    }
  }

  /** Resolves with a declared kind once the server has it. */
  found(text: string): Promise<KindCache> {
    return (this.#declared.get(text) as Declared).found.promise;
  }

  /** The cache of a kind that was declared, and that the server has. */
  find(kind: KindName<object>): KindCache | undefined {
    return this.#caches.get(textOf(kind));
  }

  /**
   * A client of any kind.
   *
   * @throws {WatchError} INVALID_ARGUMENT for a kind whose name on the server is not known.
   */
  client<O extends object>(kind: KindName<O>): ResourceClient<O> {
    const known = this.find(kind)?.client;
    if (known) return known as unknown as ResourceClient<O>;
    if (typeof kind === 'object' && !('plural' in kind)) {
      throw invalid('kind', textOf(kind), 'one that the controller is for, owns, watches or reads, or a name such as "pods/v1"');
    }
    return this.#deps.cluster.resource<O>(kind);
  }

  /** A view of some declared kinds, by name: those that a controller has waited for. */
  only(texts: readonly string[]): ControllerCaches {
    return new ControllerCaches(this, (cache) => texts.some((text) => this.#declared.get(text)?.cache === cache));
  }

  /** The state of each kind, once, whatever its names. */
  get states(): readonly KindState[] {
    const states = new Map<string, KindState>();
    for (const [text, { cache, followed }] of this.#declared) {
      const kind = cache?.text ?? text;
      const { waiting: absent = false, error: reason } = cache?.followed ?? followed ?? {};
      const { connected = false, error = reason } = cache?.informer.state ?? {};
      const { hasSynced = false, resourceVersion = '', store } = cache?.informer ?? {};
      const synced = hasSynced && !cache?.isAway;
      // One name of a kind may be known before another.
      if (cache || !states.has(kind)) {
        states.set(kind, { kind, synced, resourceVersion, objects: store?.size ?? 0, connected, absent, error });
      }
    }
    return [...states.values()];
  }

  /** Resolves when all kinds have synced. Rejects if they end before. */
  async synced(): Promise<void> {
    const sync = async ({ found }: Declared): Promise<void> => (await found.promise).informer.synced;
    await Promise.all(Array.from(this.#declared.values(), sync));
  }

  /** A leadership begins. */
  refresh(): void {
    for (const cache of new Set(this.#caches.values())) cache.refresh();
  }

  /** The kinds that have synced, but not since this leadership began. */
  get behind(): readonly KindState[] {
    return this.states.filter(({ kind, synced }) => synced && !this.#caches.get(kind)?.isComplete);
  }

  /** Follows all kinds until the signal aborts. Resolves when nothing is left. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(Array.from(this.#declared.values(), (each) => this.#follow(each, signal).catch(this.#deps.fail)));
  }

  async #follow(declared: Declared, signal: AbortSignal): Promise<void> {
    const { cluster, clock, namespace, tell, onError, onWell } = this.#deps;
    const followed: FollowedKind = new FollowedKind(cluster, declared.name as KindName, {
      clock,
      namespace,
      tell: (text) => {
        tell(text);
        if (declared.cache?.followed === followed) declared.cache.turned();
      },
      onError: (error) => onError(error, followed.name),
    });
    declared.followed = followed;
    const type = await followed.resolve(signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    if (!type) return;
    onWell(followed.name);
    const text = nameOf(type);
    const known = this.#caches.get(text);
    const cache = known ?? new KindCache(followed, type, this.#deps);
    declared.cache = cache;
    for (const name of [textOf(declared.name), text, textOf(toKind(type))]) this.#caches.set(name, cache);
    for (const [name, valuesOf] of declared.indexers) {
      if (!addIndex(cache.indexers, [name, valuesOf], text)) continue;
      cache.informer.store.addIndexers({ [name]: safely(valuesOf, { name, onError: (error) => onError(error, text) }) });
    }
    declared.found.open(cache);
    if (!known) await cache.run(signal);
  }
}

/** The caches that a controller may read: those of the kinds that it names, and waits for. */
export class ControllerCaches implements Caches {
  readonly #all: KindCaches;
  readonly #has: (cache: KindCache) => boolean;

  constructor(all: KindCaches, has: (cache: KindCache) => boolean) {
    this.#all = all;
    this.#has = has;
    this.get = (kind, key) => this.store(kind).get(key);
    this.store = <O extends object>(kind: KindName<O>) => this.of(kind).informer.store as unknown as InformerStore<O>;
  }

  /** Functions, because they may be taken out of a request. */
  readonly get: Caches['get'];
  readonly store: Caches['store'];

  find(kind: KindName<object>): KindCache | undefined {
    const cache = this.#all.find(kind);
    return cache && this.#has(cache) ? cache : undefined;
  }

  of(kind: KindName<object>): KindCache {
    const cache = this.find(kind);
    if (!cache) throw invalid('kind', textOf(kind), 'a kind that the controller is for, owns, watches or reads');
    return cache;
  }
}

/** Returns whether it is new. */
function addIndex(
  indexers: IndexFunctions,
  [name, valuesOf]: readonly [string, IndexFunction<KubernetesObject>],
  kind: string,
): boolean {
  const known = indexers.get(name);
  if (known && known !== valuesOf) throw invalid('indexers', name, `a name that no other index of ${kind} has`);
  indexers.set(name, valuesOf);
  return !known;
}

/**
 * An index function that, if the given one throws, reports that and returns no values: the operator needs the object all the
 * same.
 */
function safely(
  valuesOf: IndexFunction<KubernetesObject>,
  { name, onError }: { readonly name: string; readonly onError: (error: unknown) => void },
): IndexFunction<KubernetesObject> {
  return (object) => {
    try {
      const values: unknown = valuesOf(object);
      if (Array.isArray(values) && values.every((value) => typeof value === 'string')) return values;
      throw invalid('its result', values, 'an array of strings');
    } catch (error) {
      onError(new WatchError('INVALID_ARGUMENT', `index ${name} of ${keyOf(object)}: ${oneLine(error)}`, { cause: error }));
      return [];
    }
  };
}

/** The index of objects by the uid of the owner that controls them. */
const CONTROLLER_UID = 'watchmux: controller uid';

/**
 * The objects of a kind that an object with this uid controls. The first call takes time in proportion to all objects, later
 * ones in proportion to their result.
 */
export function controlledBy({ store }: Informer<KubernetesObject>, uid: string): readonly KubernetesObject[] {
  if (!store.indexNames.includes(CONTROLLER_UID)) {
    store.addIndexers({ [CONTROLLER_UID]: (object) => [controllerOf(object)?.uid ?? ''].filter(Boolean) });
  }
  return store.byIndex(CONTROLLER_UID, uid);
}
