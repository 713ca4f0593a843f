/**
 * The operator's view of the world: one informer per kind, however many controllers want it, and under whatever name.
 *
 *     declare('deployments.apps/v1') ---.
 *     declare({ apps/v1, Deployment }) --+--> start: which kind is that? ---> one informer, with everybody's indexes
 *
 * Invariants
 * - A kind has one informer. Two names for one kind lead to it, as soon as the server has said that they do.
 * - Informers live as long as the operator: through leaderships, with an unbroken view.
 * - After `stop` no request pends, and no timer.
 */
import { Informer } from '../cache/informer/informer.ts';
import type { InformerStore } from '../cache/informer/informer-options.ts';
import type { KubernetesObject } from '../cache/object.ts';
import type { ResourceClient } from '../cache/resource-client.ts';
import type { Indexers } from '../cache/store/indexer.ts';
import { checkedType } from '../kubernetes/resource.ts';
import type { Clock } from '../watch/clock.ts';
import { invalid } from '../watch/errors.ts';
import { FollowedKind } from './followed-kind.ts';
import type { FullType, KindName, ResourceSource } from './kinds.ts';
import type { AnyKind, Caches } from './operator-options.ts';

/** A kind that the server has, and its objects. */
export interface KindCache {
  /** Such as `deployments.apps/v1`. */
  readonly text: string;
  readonly group: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly client: ResourceClient;
  readonly informer: Informer<KubernetesObject>;
}

/** A kind that somebody has asked for. */
interface Declared {
  readonly name: AnyKind;
  readonly indexers: Indexers<KubernetesObject>[];
  followed?: FollowedKind;
  cache?: KindCache;
  readonly found: Promise<KindCache>;
  readonly settle: (cache: KindCache) => void;
}

/** What the caches need of the operator. */
export interface CachesDeps {
  readonly cluster: ResourceSource;
  readonly namespace: string | undefined;
  readonly clock: Clock | undefined;
  /** Called when the server does not have a kind, and when it has it again. */
  readonly tell: (text: string) => void;
  /** Called with each failure of a source. */
  readonly onError: (error: unknown, kind: string) => void;
}

export class KindCaches implements Caches {
  readonly #deps: CachesDeps;
  readonly #declared: Map<string, Declared> = new Map();
  readonly #caches: Map<string, KindCache> = new Map();
  readonly #runs: Promise<unknown>[] = [];
  readonly #stopped: AbortController = new AbortController();

  constructor(deps: CachesDeps) {
    this.#deps = deps;
  }

  /** Asks for a kind. Returns its name, for {@link found}. */
  declare(name: AnyKind, indexers?: Indexers<never>): string {
    const text = textOf(name);
    let declared = this.#declared.get(text);
    if (!declared) {
      let settle: Declared['settle'] = () => {};
      const found = new Promise<KindCache>((resolve) => {
        settle = resolve;
      });
      declared = { name, indexers: [], found, settle };
      this.#declared.set(text, declared);
    }
    if (indexers) declared.indexers.push(indexers as Indexers<KubernetesObject>);
    return text;
  }

  /** The kinds that were found, in the order in which they were declared. */
  get kinds(): readonly { readonly text: string; readonly cache: KindCache | undefined }[] {
    return Array.from(this.#declared, ([text, { cache }]) => ({ text, cache }));
  }

  /** Resolves with a declared kind once the server has it. */
  found(text: string): Promise<KindCache> {
    return (this.#declared.get(text) as Declared).found;
  }

  get<O extends object = KubernetesObject>(kind: KindName<O>, key: string): O | undefined {
    return this.store(kind).get(key);
  }

  store<O extends object = KubernetesObject>(kind: KindName<O>): InformerStore<O> {
    const cache = this.find(kind);
    if (!cache) throw invalid('kind', textOf(kind), 'a kind that a controller of the operator is for, owns, watches or reads');
    return cache.informer.store as unknown as InformerStore<O>;
  }

  /** The cache of a kind, if there is one. */
  find(kind: AnyKind): KindCache | undefined {
    const text = textOf(kind);
    return this.#declared.get(text)?.cache ?? this.#caches.get(text);
  }

  /** A client of any kind. */
  client<O extends object>(kind: KindName<O>): ResourceClient<O> {
    const known = this.find(kind)?.client;
    if (known) return known as unknown as ResourceClient<O>;
    if (typeof kind !== 'string' && !('plural' in kind))
      throw invalid('kind', textOf(kind), 'a kind of the operator, or a resource');
    return this.#resource(kind as string);
  }

  start(): void {
    for (const declared of this.#declared.values()) this.#runs.push(this.#find(declared));
  }

  /** Stops all informers. Resolves when nothing is left. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await Promise.all(this.#runs);
    await Promise.all(Array.from(this.#caches.values(), ({ informer }) => informer.stop()));
  }

  async #find(declared: Declared): Promise<void> {
    const { cluster, clock, namespace, tell, onError } = this.#deps;
    const report = (error: unknown): void => onError(error, followed.name);
    const followed = new FollowedKind(cluster, declared.name as KindName, { clock, namespace, tell, onError: report });
    declared.followed = followed;
    const { signal } = this.#stopped;
    const found = await followed.resolve(signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    if (!found) return;
    const cache = this.#cacheOf(followed, found);
    for (const indexers of declared.indexers) cache.informer.store.addIndexers(indexers);
    declared.cache = cache;
    declared.settle(cache);
  }

  #resource<O extends object>(name: string): ResourceClient<O> {
    return this.#deps.cluster.resource<O>(typeof name === 'string' ? name : textOf(name));
  }

  #cacheOf(followed: FollowedKind, { group, version, plural, kind, namespaced }: FullType): KindCache {
    const text = textOf({ group, version, plural });
    const known = this.#caches.get(text);
    if (known) return known;
    const { clock, onError } = this.#deps;
    const apiVersion = group ? `${group}/${version}` : version;
    const typed = { apiVersion, kind };
    const informer = new Informer<KubernetesObject>(followed, {
      clock,
      // A list need not say of each object what it is.
      transform: (object) => (object.kind === undefined ? { ...typed, ...object } : object),
      onError: (error) => onError(error, text),
    });
    const client = followed.client as ResourceClient;
    const cache = { text, group, apiVersion, kind, namespaced, client, informer };
    this.#caches.set(text, cache);
    this.#caches.set(textOf(typed), cache);
    this.#runs.push(informer.run(this.#stopped.signal));
    return cache;
  }
}

/** A kind's name in one form, whatever form it is given in. */
export function textOf(kind: AnyKind): string {
  if (typeof kind === 'object' && kind && !('plural' in kind)) {
    const { apiVersion, kind: name } = kind;
    if (typeof apiVersion !== 'string' || typeof name !== 'string') throw invalid('kind', kind, 'apiVersion and kind in it');
    return `${apiVersion} ${name}`;
  }
  const { group, version, plural } = checkedType(kind);
  return group ? `${plural}.${group}/${version}` : `${plural}/${version}`;
}
