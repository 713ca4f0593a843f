/**
 * Keeps the state of a cacher equal to its storage: lists, then watches, forever.
 *
 *     list ----> watch after the list ---- events ----> collection
 *      ^           ^   '- ends, fails --.
 *      |           '---- after a delay -'      from the last version: nothing is lost, so no watch notices
 *      '--------------- 410 ------------'      changes are lost: if there were any, the cacher's watches get 410
 *
 * The first list reads a past state (upstream.ts), and no request is answered until the watch has reached the version that was
 * the newest then: before that, the state is old. If it does not get there, the next list reads the current state. So does every
 * list after a 410: the past is only for clients that come from another cacher, and after a gap, it may not be the same past any
 * more.
 *
 * It resumes from the last version as long as the storage can, whatever has failed. It lists again only if the past is gone, or
 * if the storage has returned only errors for so long that there may be a change that it can never deliver. Comparing the two
 * states cannot show what happened between the last version and that of the list: an object may have come and gone, or changed
 * twice. So if the versions differ, old watches end with 410. The storage is regularly asked for its progress, so that the
 * version of a quiet collection in a busy storage does not become too old.
 *
 * A `Reflector` would not do: it also lists after other failures, which is fine for a store that can be replaced, but leaves a
 * gap in a log; and it takes events one by one, each in a separate turn.
 */

import { type KubernetesObject, versionOf } from '../../cache/object.ts';
import { untilAborted } from '../../watch/abort.ts';
import { Backoff } from '../../watch/backoff.ts';
import { type Clock, sleep, upkeepClock } from '../../watch/clock.ts';
import { isWatchError, refusedBy } from '../../watch/errors.ts';
import type { Status } from '../../watch/event.ts';
import type { Failures } from '../../watch/failures.ts';
import type { Collection } from '../collection/collection.ts';
import { isLate } from '../collection/lists.ts';
import { lostStatus } from '../collection/watch.ts';
import type { Storage } from '../storage.ts';
import { atVersion } from '../values.ts';
import type { Freshness, Readiness } from './freshness.ts';
import { type KeyedChange, listPast, type Upstream, type UpstreamEvent, type UpstreamWatch } from './upstream.ts';

/** A watch that lasts this long is healthy: the next failure starts a new series. */
const SHORT_MS = 1_000;

/** How long a storage may deliver errors instead of the next event. Upstream: the retries of an internal error. */
const MAX_FAILING_MS = 30_000;

/** How many times `freshnessTimeoutMs` it waits for the changes since the past state before it gives up. */
const MAX_GOAL_WAITS = 4;

interface FeedTarget<T extends KubernetesObject> {
  readonly storage: Storage<T>;
  readonly upstream: Upstream<T>;
  readonly settings: {
    readonly minRetryMs: number;
    readonly maxRetryMs: number;
    readonly pastRevisions: number;
    readonly bookmarkMs: number;
    readonly random: () => number;
    readonly clock: Clock;
    readonly failures: Failures;
  };
  readonly collection: Collection<T>;
  readonly freshness: Freshness;
  readonly readiness: Readiness;
}

export class CacherFeed<T extends KubernetesObject> {
  /** How often watches were ended because changes were lost. */
  gaps: number = 0;
  readonly #target: FeedTarget<T>;
  readonly #backoff: Backoff;
  #hasState: boolean = false;
  /** Whether the state may be wrong although the version is right. */
  #mayBeWrong: boolean = false;
  /** Whether the watch is open. While it is being reopened, the cache stays usable. */
  #isOpen: boolean = false;
  /** When the current attempt to follow the storage began. */
  #startMs: number = 0;
  /** The version at which the last ERROR came, if nothing has followed it, and since when. */
  #failingAt: string | undefined;
  #failingSinceMs: number = 0;
  /** Whether the next list reads a past state. */
  #listsPast: boolean = true;
  /** The version that the state must reach before it may be read; undefined once it has. */
  #goal: string | undefined;
  /** The life of the data in the last list. */
  #life: unknown;

  constructor(target: FeedTarget<T>) {
    this.#target = target;
    const { minRetryMs, maxRetryMs, random } = target.settings;
    this.#backoff = new Backoff({ minMs: minRetryMs, maxMs: maxRetryMs, factor: 2, random });
  }

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, failures } = this.#target.settings;
    while (!signal.aborted) {
      this.#startMs = clock.now();
      let error: unknown;
      this.#isOpen = false;
      try {
        // A user's own storage may ignore signals.
        if (!this.#hasState) await untilAborted(this.#list(signal), signal);
        await this.#watch(signal);
      } catch (thrown) {
        error = thrown;
      }
      if (signal.aborted) return;
      const ranMs = clock.now() - this.#startMs;
      if (ranMs >= SHORT_MS) this.#backoff.healthy();
      if (ranMs >= MAX_FAILING_MS) this.#failingAt = undefined;
      if (error === undefined && ranMs >= SHORT_MS) continue;
      const isExpired = isWatchError(error, 'REFUSED') && hasLost(error.status);
      if (isExpired) this.#hasState = false;
      if (error !== undefined) {
        if (!this.#isOpen || !this.#hasState) this.#target.readiness.failed(error);
        failures.down('storage', error);
      }
      const delayMs = this.#backoff.failed({ expired: isExpired, curable: isExpired, ranMs });
      if (delayMs > 0) await sleep(delayMs, { clock, signal }).catch(() => {});
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { storage, upstream, collection, freshness, readiness, settings } = this.#target;
    const revisions = this.#listsPast ? settings.pastRevisions : 0;
    const past = await listPast({ storage, upstream }, { revisions, signal });
    const { entries, resourceVersion, life } = past ?? (await upstream.list(undefined, { signal }));
    signal.throwIfAborted();
    this.#listsPast = false;
    this.#goal = past?.goal;
    this.#life = life;
    // At the same version, nothing has happened, so nobody has missed anything, unless the storage was started with other data.
    if (resourceVersion !== collection.version || this.#mayBeWrong || !collection.isJust(entries)) {
      if (readiness.generation > 0) this.gaps++;
      const message = `too old resource version: ${collection.version} (${resourceVersion}): the storage lost the changes in between`;
      collection.replace(entries, resourceVersion, lostStatus(message));
    }
    this.#hasState = true;
    this.#mayBeWrong = false;
    this.#failingAt = undefined;
    freshness.moved();
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { upstream, collection, readiness } = this.#target;
    const stateOf = (key: string): T | undefined => collection.get(key);
    const opening = upstream.watch(collection.version, { stateOf, signal, life: this.#life });
    const watch = await untilAborted(opening, signal); // if it comes too late, the signal has ended it
    const over = new AbortController();
    let stopAsking: (() => void) | undefined;
    try {
      stopAsking = this.#askForProgress();
      this.#isOpen = true;
      this.#target.settings.failures.up('storage');
      if (this.#goal === undefined) readiness.ready();
      else void this.#reach(this.#goal, { watch, over: over.signal });
      await this.#read(watch);
    } finally {
      over.abort();
      stopAsking?.();
      watch.stop();
      // The cause may lie only in the past state.
      if (this.#goal !== undefined) this.#hasState = false;
    }
  }

  /** Makes the cache ready once the state has reached `goal`. Ends the watch if that takes too long. */
  async #reach(goal: string, { watch, over }: { watch: UpstreamWatch<T>; over: AbortSignal }): Promise<void> {
    const { freshness, readiness } = this.#target;
    try {
      for (let attempts = 1; attempts <= MAX_GOAL_WAITS; attempts++) {
        if (await freshness.wait(goal, over).then(() => false, mustBeLate)) continue;
        if (over.aborted) return;
        this.#goal = undefined;
        readiness.ready();
        return;
      }
      watch.stop();
    } catch {
      // The watch or the cacher has ended: the watch's reader gets the reason.
    }
  }

  async #read(watch: UpstreamWatch<T>): Promise<void> {
    for await (const events of watch.batches()) {
      for (const event of events) this.#take(event);
      this.#target.freshness.moved();
      this.#backoff.healthy();
    }
  }

  #take(event: UpstreamEvent<T>): void {
    const { collection, settings } = this.#target;
    if (!('key' in event) && event.type === 'BOOKMARK') {
      collection.moveTo(versionOf(event.object));
      return;
    }
    if (!('key' in event)) {
      const nowMs = settings.clock.now();
      // An error from a watch that has lasted starts a new series of failures.
      const isAnother = this.#failingAt !== collection.version || nowMs - this.#startMs >= MAX_FAILING_MS;
      if (isAnother) this.#failingSinceMs = nowMs;
      this.#failingAt = collection.version;
      // A change that cannot be delivered, such as a value that is not an object, would block it forever. A list may work.
      if (nowMs - this.#failingSinceMs >= MAX_FAILING_MS) this.#hasState = false;
      throw refusedBy(event.object);
    }
    try {
      this.#apply(event);
    } catch (error) {
      // It must not be skipped, or the state would be wrong forever. Upstream skips it.
      this.#hasState = false;
      this.#mayBeWrong = true;
      throw error;
    }
  }

  #apply({ key, version, object }: KeyedChange<T>): void {
    const { collection } = this.#target;
    const last = object ?? atVersion(collection.get(key) ?? ({} as T), version);
    collection.apply({ key, object: last, isDeletion: object === undefined });
  }

  /** Repeatedly asks for progress, so that watches of a quiet collection get BOOKMARKs with new versions. */
  #askForProgress(): () => void {
    const { upstream, settings } = this.#target;
    const clock = upkeepClock(settings.clock);
    let cancel: () => void;
    const again = (): void => {
      cancel = clock.schedule(Math.ceil(settings.bookmarkMs / 2), () => {
        again();
        new Promise((resolve) => resolve(upstream.requestProgress())).catch(() => {});
      });
    };
    again();
    return () => cancel();
  }
}

/** Whether a storage cannot resume from a version, because it has dropped what follows, or does not know the version. */
function hasLost(status: Status | undefined): boolean {
  return status?.code === 410 || status?.details?.causes?.[0]?.reason === 'ResourceVersionTooLarge';
}

/** Whether the error says that a version did not come in time. Any other error is thrown. */
function mustBeLate(error: unknown): boolean {
  if (isLate(error)) return true;
  throw error;
}
