/**
 * The cache of one kind that the server has, or had. When the kind is deleted, the cache is not complete any more, although it goes
 * on:
 *
 *     here ---- the server no longer has it ----> away ---- it has it again, and a list asked for after that is here ----> here
 *
 * Controllers that need the kind wait while it is away: see controller.ts.
 */
import { Informer } from '../cache/informer/informer.ts';
import type { KubernetesObject } from '../cache/object.ts';
import { nameOf, type ResourceClient } from '../cache/resource-client.ts';
import type { IndexFunction } from '../cache/store/indexer.ts';
import type { Clock } from '../watch/clock.ts';
import type { FollowedKind } from './followed-kind.ts';
import { type FullType, toKind } from './kinds.ts';

export type IndexFunctions = Map<string, IndexFunction<KubernetesObject>>;

/** What the caches need from the operator. */
export interface KindCacheDeps {
  readonly clock: Clock | undefined;
  /** Returns what the caches keep of each object. Default: the object. */
  readonly keep?: ((object: KubernetesObject) => KubernetesObject) | undefined;
  /** The informers' source of jitter. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
  /** Called with each failure of a kind's source, and when it works. */
  readonly onError: (error: unknown, kind: string) => void;
  readonly onWell: (kind: string) => void;
  /** Called when a kind goes away. Returns a function to call when it is back, or the operator ends. */
  readonly onAway: (kind: string) => () => void;
}

export class KindCache {
  /** Such as `deployments.apps/v1`. */
  readonly text: string;
  readonly informer: Informer<KubernetesObject>;
  /** The informer's source. */
  readonly followed: FollowedKind;
  readonly indexers: IndexFunctions = new Map();
  /** Called whenever `isAway` has changed. */
  readonly listeners: Set<() => void> = new Set();
  readonly #deps: KindCacheDeps;
  readonly #type: FullType;
  #client: ResourceClient;
  #complete: Promise<void>;
  #isComplete: boolean = true;
  #returned: (() => void) | undefined;

  constructor(followed: FollowedKind, type: FullType, deps: KindCacheDeps) {
    const { clock, random, keep = (object) => object, onError, onWell } = deps;
    const text = nameOf(type);
    const typed = toKind(type);
    this.text = text;
    this.followed = followed;
    this.#deps = deps;
    this.#type = type;
    this.#client = followed.client as ResourceClient;
    this.informer = new Informer<KubernetesObject>(followed, {
      ...{ clock, random },
      // A restarted operator must not act on a state older than the one its predecessor acted on.
      consistentList: true,
      // A list need not give the kind of each object, but owners and events need it.
      transform: (object) => keep(object.kind && object.apiVersion ? object : { ...typed, ...object }),
      onError: (error) => onError(error, text),
      // A kind that is away has an empty list, which does not mean that its source works.
      onStateChange: ({ connected }) => connected && !followed.waiting && onWell(text),
    });
    this.#complete = this.informer.synced;
  }

  /** Its type on the server: a kind that was deleted may come back with another scope or plural. */
  get type(): FullType {
    return this.followed.type ?? this.#type;
  }

  get client(): ResourceClient {
    this.#client = this.followed.client ?? this.#client;
    return this.#client;
  }

  /** Resolves when the cache is complete; for a leader, when it has all that was written before this instance led. */
  get complete(): Promise<void> {
    return this.#complete;
  }

  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** Whether the server has had the kind, and no longer has it, or the cache does not have its objects again. */
  get isAway(): boolean {
    return this.#returned !== undefined;
  }

  /** Follows the kind until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    await this.informer.run(signal);
    this.#returned?.();
  }

  /** From here on, only a state that is asked for after this call is complete. */
  refresh(): void {
    const refreshed = this.informer.refresh();
    this.#complete = refreshed;
    this.#isComplete = false;
    const done = (): void => {
      this.#isComplete ||= this.#complete === refreshed;
    };
    refreshed.then(done, () => {}); // nobody may be waiting
  }

  /** Call it when the server no longer has the kind, and when it has it again. */
  turned(): void {
    if (!this.informer.hasSynced) return;
    if (this.followed.waiting) {
      this.#returned ??= this.#deps.onAway(this.text);
      this.#tell();
      return;
    }
    this.refresh();
    const back = (): void => {
      if (this.followed.waiting || !this.#returned) return;
      this.#returned();
      this.#returned = undefined;
      this.#deps.onWell(this.text);
      this.#tell();
    };
    this.#complete.then(back, () => {});
  }

  #tell(): void {
    for (const listener of this.listeners) listener();
  }
}
