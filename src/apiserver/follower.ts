/**
 * Follows what is stored of one kind: all of it, then every change, and all of it again after a gap.
 *
 *     list ---> whole ---> watch ---> change, change, ... ---> a gap, or a failure ---> later: list
 */
import type { KubernetesObject } from '../cache/object.ts';
import { compareVersions } from '../cache/versions.ts';
import { tooLarge } from '../storage/statuses.ts';
import type { ChangeEvent, Storage, StorageEvent } from '../storage/storage.ts';
import { Backoff } from '../watch/backoff.ts';
import { type Clock, sleep } from '../watch/clock.ts';
import { isWatchError, refusalCode } from '../watch/errors.ts';
import { paceOf, STRIDE } from '../watch/fair-queue.ts';
import { nextTurn } from '../watch/turn.ts';
import type { Watch } from '../watch/watch.ts';

interface FollowerDeps {
  readonly storage: Storage<KubernetesObject>;
  /** Ends it. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly random: () => number;
  readonly onError: (error: unknown) => void;
  /** Called with all objects that exist. */
  readonly whole: (items: readonly KubernetesObject[]) => void | Promise<void>;
  readonly changed: (event: ChangeEvent<KubernetesObject>) => void | Promise<void>;
  /** Called when the watch has begun. */
  readonly opened?: () => void;
}

type Events = Watch<StorageEvent<KubernetesObject>>;

export class Follower {
  private readonly deps: FollowerDeps;
  /** Open once everything before it has been taken. */
  private watch: Events | undefined;
  /** The version of the last event that has been taken. */
  private version: string = '';
  private taking: boolean = false;
  /** Called when something has been taken, or the watch has ended. */
  private readonly waiting: Set<() => void> = new Set();

  constructor(deps: FollowerDeps) {
    this.deps = deps;
  }

  /** Takes all objects that exist. Resolves with the version after which `follow` goes on. */
  async list(): Promise<string> {
    const { storage, signal, whole } = this.deps;
    const { items, resourceVersion } = await storage.list({ signal });
    // A storage may ignore signals.
    signal.throwIfAborted();
    await whole(items);
    return resourceVersion;
  }

  /** Follows until the signal aborts: after a version, or from the beginning. Never rejects. */
  async follow(from?: string): Promise<void> {
    const { storage, clock, random, onError, signal } = this.deps;
    const backoff = new Backoff({ minMs: 100, maxMs: 30_000, factor: 2, random });
    let after = from;
    while (!signal.aborted) {
      try {
        after ??= await this.list();
        await this.take(after, backoff);
      } catch (error) {
        // A cache has already reported what its storage refuses. After a 410, it only lists again.
        const isUsual = isWatchError(error, 'CLOSED') || refusalCode(error) === 410;
        const isKnown = isUsual || (isWatchError(error) && storage.cacheStats !== undefined);
        if (!signal.aborted && !isKnown) onError(error);
      }
      after = undefined;
      if (!signal.aborted) await sleep(backoff.failed({}), { clock, signal }).catch(() => {});
    }
  }

  /**
   * Resolves to whether all that was written before this call has been taken. If not, it has to list again first. Rejects if its
   * cache is too late.
   */
  async caughtUp(): Promise<boolean> {
    const { storage, signal } = this.deps;
    const { watch } = this;
    if (watch === undefined) return false;
    if (storage.cacheStats !== undefined) {
      // A storage that answers from memory has already sent its watches everything that a list shows. A request for progress
      // would reach clients' watches, too.
      const { resourceVersion } = await storage.list({ limit: 1, signal });
      const { resourceVersion: cached } = storage.cacheStats;
      // A cache that is late has passed the request on.
      if (compareVersions(cached, resourceVersion) < 0) throw tooLarge(resourceVersion, cached);
    } else {
      const version = await storage.currentVersion({ signal });
      await storage.requestProgress();
      while (this.watch === watch && compareVersions(this.version, version) < 0) {
        await new Promise<void>((resolve) => void this.waiting.add(resolve));
      }
    }
    do await new Promise<void>(nextTurn);
    while (this.watch === watch && (watch.queued > 0 || this.taking));
    return this.watch === watch;
  }

  /** Takes events until the watch ends or has to be replaced. */
  private async take(after: string, backoff: Backoff): Promise<void> {
    const { storage, signal } = this.deps;
    this.version = after;
    try {
      this.watch = await storage.watch({ resourceVersion: after, allowWatchBookmarks: true, signal });
      this.deps.opened?.();
      for await (const batch of this.watch.batches()) {
        backoff.healthy();
        this.taking = true;
        if (await this.isOver(batch)) return;
        this.taking = false;
        this.wake();
      }
    } finally {
      this.watch = undefined;
      this.taking = false;
      this.wake();
    }
  }

  private async isOver(batch: readonly StorageEvent<KubernetesObject>[]): Promise<boolean> {
    for (const [at, event] of batch.entries()) {
      if (event.type === 'ERROR' || this.deps.signal.aborted) return true;
      if (event.type !== 'BOOKMARK') {
        const taken = this.deps.changed(event);
        if (taken) await taken;
      }
      this.version = event.object.metadata?.resourceVersion ?? this.version;
      if (at % STRIDE === STRIDE - 1) await paceOf(undefined).pause();
    }
    return false;
  }

  private wake(): void {
    const waiting = [...this.waiting];
    this.waiting.clear();
    for (const resolve of waiting) resolve();
  }
}
