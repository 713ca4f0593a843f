/**
 * Deletes objects whose owners are gone, and completes the deletion of owners that wait for their dependents.
 *
 *     kind, kind ... ---> Follower ---> OwnerIndex ---> queue ---> judge: read it and its owners again, as they are now
 *                                                          |          |
 *                       has no owner any more: delete <----+----------+--> has another one: take the reference away
 *                                                          '--> finish: an owner for which nothing waits: its finalizer goes
 *
 * Several servers may share a storage; each of them collects, and any of them may end in between. So no decision depends on what one
 * of them remembers:
 * - What the index says is only a reason to look. An object is deleted after it and each of its owners have been read from the
 *   storage, by its uid and only while what was decided by is the same: two servers that come to the same object delete it once.
 * - An owner waits because its stored object says so. Its finalizer goes once all earlier writes have been seen, and none of the
 *   objects that it waits for is left.
 * - Each server begins at a random place among many dependents, and skips what others have done: they share the work.
 *
 * A hundred thousand dependents are handled a few at a time, each in a turn of its own, after clients' requests.
 *
 * Upstream: `pkg/controller/garbagecollector`.
 */
import { setMaxListeners } from 'node:events';
import type { KubernetesObject } from '../cache/object.ts';
import type { DeleteOptions, NamespacedName } from '../cache/resource-client.ts';
import type { Clock } from '../watch/clock.ts';
import { invalid, isWatchError } from '../watch/errors.ts';
import { paceOf, STRIDE } from '../watch/fair-queue.ts';
import { WorkQueue } from '../workqueue/queue.ts';
import { exponential } from '../workqueue/rate-limiters.ts';
import { conflict, hasCode, MODIFIED } from './api-status.ts';
import { Follower } from './follower.ts';
import { blocks, isSameOwners, type Node, OwnerIndex, type OwnerReference, ownersOf, waitsOf } from './owner-index.ts';
import { type Catalog, type ResourceContext, type ResourceInfo, storageKey } from './resource-info.ts';
import { withMeta } from './verbs/metadata.ts';
import { presented } from './verbs/read.ts';
import { deleteObject, FOREGROUND, ORPHAN } from './verbs/remove.ts';
import { updateObject } from './verbs/write.ts';

/** What the collector needs from a server. */
interface CollectorDeps {
  readonly catalog: Pick<Catalog, 'all'>;
  readonly contextOf: (info: ResourceInfo) => ResourceContext;
  /** Resolves once the catalog has every kind that had been defined before. Rejects if that takes too long. */
  readonly kindsKnown: () => Promise<void>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly onError: (error: unknown) => void;
}

/** A kind that is followed. */
interface Followed {
  /** The prefix of its objects in the storage. */
  readonly prefix: string;
  readonly follower: Follower;
  readonly storage: ResourceContext['storage'];
  readonly ending: AbortController;
}

/** An object as it was read, and what it takes to write it. */
interface Found {
  readonly context: ResourceContext;
  readonly place: NamespacedName;
  readonly object: KubernetesObject;
}

/** What is known of an owner. `kept`: unknown, so the reference is left alone. */
type State = 'solid' | 'absent' | 'foreground' | 'orphan' | 'kept';

/** A node, or the uid of an owner, or a kind of owners, whose dependents are to be looked at. */
type Task = Node | Followed | string;

/** The most writes at once. */
const CONCURRENCY = 8;
/** Retries. Upstream: `DefaultTypedControllerRateLimiter`. */
const RETRY = { baseMs: 5, maxMs: 1_000_000 } as const;

/**
 * Whether objects of a kind are not collected, and their dependents are not either. Upstream: `DefaultIgnoredResources`, and
 * `GetDeletableResources`.
 */
export function isUncollected({ group, plural, main }: ResourceInfo): boolean {
  if (plural === 'events' && (group === '' || group === 'events.k8s.io')) return true;
  return !main.verbs.includes('list');
}

export class GarbageCollector {
  private readonly deps: CollectorDeps;
  private readonly index: OwnerIndex;
  private readonly queue: WorkQueue<Task>;
  private readonly followed: Map<string, Followed> = new Map();
  private readonly following: Set<Promise<void>> = new Set();
  private readonly stopping: AbortController = new AbortController();
  private running: Promise<void> | undefined;
  /** Kinds whose references to owners that they cannot have were reported. */
  private readonly reported: Set<string> = new Set();
  private round: Promise<unknown> = Promise.resolve();
  private nextRound: Promise<boolean> | undefined;

  constructor(deps: CollectorDeps) {
    this.deps = deps;
    // Every request to the storage listens to it: node 20 would warn of a leak.
    setMaxListeners(0, this.stopping.signal);
    const { clock } = deps;
    this.queue = new WorkQueue({ clock, rateLimiter: exponential(RETRY), maxKeys: Number.MAX_SAFE_INTEGER });
    this.index = new OwnerIndex({ look: (node) => this.queue.add(node), lookBelow: (uid) => this.queue.add(uid) });
  }

  /** Begins, in the background. */
  start(): void {
    if (this.stopping.signal.aborted) return;
    const { signal } = this.stopping;
    this.running = this.queue.run(CONCURRENCY, (task) => this.work(task), { signal, onError: (error) => this.failed(error) });
    this.kindsChanged();
  }

  /** The catalog's kinds have changed: new ones are followed from now on. Once they are, objects that refer to them are looked at. */
  kindsChanged(): void {
    if (!this.running || this.stopping.signal.aborted) return;
    const served = new Map(this.deps.catalog.all.filter((info) => !isUncollected(info)).map((info) => [info.prefix, info]));
    for (const [prefix, { ending, storage }] of this.followed) {
      const info = served.get(prefix);
      // A kind that was defined anew has another storage.
      if (info && this.deps.contextOf(info).storage === storage) continue;
      ending.abort();
      this.followed.delete(prefix);
      for (const node of [...this.index.of(prefix)]) this.index.gone(node, node.uid);
    }
    for (const [prefix, info] of served) if (!this.followed.has(prefix)) this.begin(info);
  }

  /** Resolves when nothing is running any more. */
  async stop(): Promise<void> {
    this.stopping.abort();
    this.queue.shutDown();
    for (const { ending } of this.followed.values()) ending.abort();
    await Promise.all([this.running, ...this.following]);
  }

  private begin(info: ResourceInfo): void {
    const { clock, random, onError } = this.deps;
    const { prefix } = info;
    const { storage } = this.deps.contextOf(info);
    const ending = new AbortController();
    const { signal } = ending;
    const follower = new Follower({
      ...{ storage, signal, clock, random, onError },
      whole: (items) => this.whole(prefix, items, signal),
      changed: ({ type, object }) => {
        const key = keyOf(object);
        if (type === 'DELETED') this.index.gone({ prefix, key }, object.metadata?.uid ?? '');
        else this.index.seen(prefix, key, object);
      },
      opened: () => {
        // The deletion of an owner may have been missed. Before, a late cache may still have had it.
        this.queue.add(followed);
        // An owner waits until all kinds are followed.
        for (const node of this.index.allWaiting()) this.queue.add(node);
      },
    });
    const followed: Followed = { prefix, follower, storage, ending };
    this.followed.set(prefix, followed);
    const following = follower.follow().finally(() => this.following.delete(following));
    this.following.add(following);
  }

  /** Takes all objects of a kind. */
  private async whole(prefix: string, items: readonly KubernetesObject[], signal: AbortSignal): Promise<void> {
    const keys = new Set<string>();
    for await (const object of paced(items)) {
      signal.throwIfAborted();
      const key = keyOf(object);
      this.index.seen(prefix, key, object);
      if (ownersOf(object).length > 0 || waitsOf(object)) keys.add(key);
    }
    for (const node of [...this.index.of(prefix)]) if (!keys.has(node.key)) this.index.gone(node, node.uid);
  }

  /** Queues the objects that refer to objects of a kind. */
  private async referring({ prefix }: Followed): Promise<void> {
    const own = this.deps.catalog.all.filter((info) => info.prefix === prefix);
    const names = new Set(own.map(({ apiVersion, kind }) => `${apiVersion} ${kind}`));
    for await (const node of paced(this.index.all())) {
      if (node.owners.some(({ apiVersion, kind }) => names.has(`${apiVersion} ${kind}`))) this.queue.add(node);
    }
  }

  private async work(task: Task): Promise<void> {
    // After what clients wait for.
    await paceOf(undefined).turn();
    if (typeof task === 'string') return this.below(task);
    if ('follower' in task) return this.referring(task);
    if (!this.index.has(task)) return;
    if (!(await this.hasOwners(task))) await this.judge(task);
    if (task.waits) await this.finish(task);
  }

  /** Queues the dependents of an owner, from a random one on, as other servers do so, too. */
  private async below(uid: string): Promise<void> {
    const all = [...this.index.dependentsOf(uid)];
    const from = Math.floor(this.deps.random() * all.length);
    for await (const node of paced([...all.slice(from), ...all.slice(0, from)])) this.queue.add(node);
  }

  private failed(error: unknown): void {
    const isRaced = hasCode(error, 409) || hasCode(error, 404) || isWatchError(error, 'CLOSED');
    if (!this.stopping.signal.aborted && !isRaced) this.deps.onError(error);
  }

  /** Whether all owners exist, as far as the caches know that follow them: if so, there is nothing to do. */
  private async hasOwners(node: Node): Promise<boolean> {
    const item = { namespace: this.placeOf(node).namespace, prefix: node.prefix };
    for (const owner of node.owners) if ((await this.stateOf(owner, item, '0')) !== 'solid') return false;
    return true;
  }

  /** Decides what happens to an object that has owners. Upstream: `attemptToDeleteItem`. */
  private async judge(node: Node): Promise<void> {
    const found = await this.find(node);
    if (found === undefined) return; // its event is on its way
    const owners = ownersOf(found.object);
    // One that was defined anew may be stored elsewhere.
    if (owners.some((owner) => this.infoOf(owner)?.definition)) await this.deps.kindsKnown();
    const item = { namespace: found.place.namespace, prefix: node.prefix };
    const states: State[] = [];
    for (const owner of owners) states.push(await this.stateOf(owner, item, undefined));
    const those = (...wanted: State[]): ReadonlySet<string> =>
      new Set(owners.filter((_, at) => wanted.includes(states[at] as State)).map(({ uid }) => uid));
    if (owners.length === 0) return;
    // Only the uid counts here: an owner that leaves orphans waits for everything that names its uid.
    for (const [at, { uid }] of owners.entries()) if (this.index.waitsOf(uid) === ORPHAN) states[at] = 'orphan';
    const isLeaving = found.object.metadata?.deletionTimestamp !== undefined;
    if (isLeaving || states.includes('kept')) return this.disown(found, those('orphan'));
    if (states.includes('solid') || states.includes('orphan')) return this.disown(found, those('absent', 'foreground', 'orphan'));
    return this.collect(node, found, states.includes('foreground'));
  }

  /** The state of an owner: from its cache with version 0, otherwise from the storage. Upstream: `isDangling`. */
  private async stateOf(
    owner: OwnerReference,
    { namespace, prefix }: { readonly namespace: string | undefined; readonly prefix: string },
    resourceVersion: string | undefined,
  ): Promise<State> {
    const info = this.infoOf(owner);
    if (info === undefined) return 'kept'; // another server may know this kind, or this one later
    // Such an object cannot be read, so nothing shows that it is gone.
    if (!info.main.verbs.includes('get') || !isSegment(owner.name)) return 'kept';
    if (info.namespaced && namespace === undefined) {
      this.reportScope(prefix, owner);
      return 'kept';
    }
    const key = storageKey({ namespace: info.namespaced ? namespace : undefined, name: owner.name });
    const { signal } = this.stopping;
    const { storage } = this.deps.contextOf(info);
    // Without a cache, any state may be older than the one that has been followed.
    const version = storage.cacheStats && resourceVersion;
    try {
      const found = await storage.get(key, { resourceVersion: version, signal });
      if (found === undefined || found.metadata?.uid !== owner.uid) return 'absent';
      const waits = waitsOf(found);
      return waits === undefined ? 'solid' : waits === ORPHAN ? 'orphan' : 'foreground';
    } catch (error) {
      if (hasCode(error, 400)) return 'kept'; // no object can have such a name
      throw error;
    }
  }

  private reportScope(prefix: string, { kind, name }: OwnerReference): void {
    if (this.reported.has(prefix)) return;
    this.reported.add(prefix);
    const expected = 'owners without a namespace, as the object has none: these references are ignored';
    this.deps.onError(invalid(`metadata.ownerReferences in ${prefix}`, `${kind} ${name}`, expected));
  }

  /** Deletes an object that has no owner any more. */
  private async collect(node: Node, found: Found, isForeground: boolean): Promise<void> {
    const below = this.index.dependentsOf(node.uid);
    if (isForeground && below.size > 0) {
      let waiting = false;
      for (const each of below) if (each.waits === FOREGROUND) waiting = true;
      // They may form a cycle, in which each would wait for the other.
      const unblocked = (object: KubernetesObject): KubernetesObject =>
        withMeta(object, {
          ownerReferences: ownersOf(object).map((each) => (blocks(each) ? { ...each, blockOwnerDeletion: false } : each)),
        });
      await this.remove(waiting ? { ...found, object: await this.write(found, unblocked) } : found, 'Foreground');
      return;
    }
    const { finalizers = [] } = found.object.metadata ?? {};
    await this.remove(
      found,
      finalizers.includes(ORPHAN) ? 'Orphan' : finalizers.includes(FOREGROUND) ? 'Foreground' : 'Background',
    );
  }

  /** Deletes an object, unless what was decided about it no longer holds. */
  private async remove({ context, place, object }: Found, propagation: DeleteOptions['propagation']): Promise<void> {
    const preconditions = { holds: (current: KubernetesObject) => isAsDecided(current, object) };
    await deleteObject(context, place, { dryRun: false, propagation, signal: this.stopping.signal, preconditions });
  }

  /** Removes references to these owners. */
  private async disown(found: Found, uids: ReadonlySet<string>): Promise<void> {
    if (uids.size === 0) return;
    await this.write(found, (object) =>
      withMeta(object, { ownerReferences: ownersOf(object).filter(({ uid }) => !uids.has(uid)) }),
    );
  }

  /** Lets an owner go if nothing is left that it waits for. Upstream: `processDeletingDependentsItem`. */
  private async finish(node: Node): Promise<void> {
    const isLeft = (): boolean => {
      for (const { owners } of this.index.dependentsOf(node.uid)) {
        if (node.waits === ORPHAN || owners.some((owner) => owner.uid === node.uid && blocks(owner))) return true;
      }
      return false;
    };
    // What is left brings it here again when it goes.
    if (isLeft() || !(await this.caughtUp()) || isLeft()) return;
    const found = await this.find(node);
    const { waits } = node;
    if (found === undefined || waits === undefined) return;
    await this.write(found, (object) =>
      withMeta(object, { finalizers: (object.metadata?.finalizers ?? []).filter((each) => each !== waits) }),
    );
  }

  /** Resolves to whether everything written before this call has been seen. Calls in the meantime share the next look. */
  private caughtUp(): Promise<boolean> {
    this.nextRound ??= this.round
      .catch(() => {})
      .then(async () => {
        this.nextRound = undefined;
        // Dependents may be of a kind that another server serves already.
        await this.deps.kindsKnown();
        const looks = Promise.all(Array.from(this.followed.values(), ({ follower }) => follower.caughtUp()));
        this.round = looks;
        return (await looks).every((each) => each);
      });
    return this.nextRound;
  }

  /** Reads an object as it is now; undefined if it is gone or has been replaced. */
  private async find(node: Node): Promise<Found | undefined> {
    const infos = this.deps.catalog.all.filter(({ prefix }) => prefix === node.prefix);
    const [first] = infos;
    if (first === undefined) return undefined;
    const object = await this.deps.contextOf(first).storage.get(node.key, { signal: this.stopping.signal });
    if (object === undefined || object.metadata?.uid !== node.uid) return undefined;
    // It is written in the version in which it is stored.
    const info = infos.find(({ apiVersion }) => apiVersion === object.apiVersion) ?? first;
    return { context: this.deps.contextOf(info), place: this.placeOf(node), object };
  }

  private write(
    { context, place, object }: Found,
    change: (current: KubernetesObject) => KubernetesObject,
  ): Promise<KubernetesObject> {
    const { info } = context;
    const make = (current: KubernetesObject): KubernetesObject => {
      if (!isAsDecided(current, object)) throw conflict(info, place.name, MODIFIED);
      return change(presented(info, current));
    };
    return updateObject(context, { place, row: info.main, dryRun: false, signal: this.stopping.signal, make });
  }

  private infoOf({ apiVersion, kind }: OwnerReference): ResourceInfo | undefined {
    return this.deps.catalog.all.find((info) => info.kind === kind && info.apiVersion === apiVersion);
  }

  private placeOf({ key }: Node): NamespacedName {
    const at = key.indexOf('/');
    return at < 0 ? { namespace: undefined, name: key } : { namespace: key.slice(0, at), name: key.slice(at + 1) };
  }
}

/** These, with pauses in which others are served. */
async function* paced<T>(all: Iterable<T>): AsyncGenerator<T> {
  let at = 0;
  for (const each of all) {
    if (++at % STRIDE === 0) await paceOf(undefined).pause();
    yield each;
  }
}

/** Whether a name can be in a URL. What no path has, such as `..`, a storage refuses. Upstream: `IsValidPathSegmentName`. */
const isSegment = (name: unknown): boolean => typeof name === 'string' && !/[/%]/.test(name);

/** Whether it is the same object, and still has all that decides about it. Otherwise, it is looked at again. */
function isAsDecided(current: KubernetesObject, object: KubernetesObject): boolean {
  const rest = ({ metadata: { uid, deletionTimestamp, finalizers = [] } = {} }: KubernetesObject): string =>
    `${uid} ${deletionTimestamp} ${[ORPHAN, FOREGROUND].map((each) => finalizers.includes(each))}`;
  return isSameOwners(ownersOf(current), ownersOf(object)) && rest(current) === rest(object);
}

const keyOf = ({ metadata }: KubernetesObject): string =>
  storageKey({ namespace: metadata?.namespace, name: metadata?.name ?? '' });
