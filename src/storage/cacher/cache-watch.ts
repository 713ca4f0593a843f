/**
 * A watch of a cacher. It keeps only its place in the log: events are read from its view when its consumer asks for them. So a
 * slow watch costs nothing and delays nobody; if the log drops changes that it has not read, it gets an ERROR 410.
 *
 *     the state as ADDED --> BOOKMARK that ends it --> events of the view, after `place` --> [ all read: a BOOKMARK that is owed ]
 *                                                       '-- no longer kept --> ERROR 410
 *
 * A BOOKMARK is owed, not queued: when one is due, the watch notes that, and delivers the cache's version once it has read
 * everything. So BOOKMARKs are in order with events however fast the consumer reads, and none is lost for lack of room.
 */
import type { WaitingReader } from '../../broadcast/waiting-readers.ts';
import { type KubernetesObject, versionOf } from '../../cache/object.ts';
import type { VersionComparator } from '../../cache/version.ts';
import { type BookmarkEvent, type ErrorEvent, type Status, toStatus } from '../../watch/event.ts';
import { NONE, Reader } from '../../watch/reader.ts';
import type { ChangeEvent, StorageEvent } from '../storage.ts';
import type { Due } from './schedule.ts';
import type { View } from './view.ts';

/** What a watch needs from its cacher. */
export interface CacheWatchHost<T extends KubernetesObject> {
  readonly compareVersions: VersionComparator;
  /** The place of the first change that is kept, and the place after the last. */
  readonly start: number;
  readonly place: number;
  /** The BOOKMARK with the cache's current version. */
  readonly bookmark: BookmarkEvent;
  /** The watch has ended, from either side. Called once. */
  left(watch: CacheWatch<T>): void;
  /** The watch was ended because it was too slow. */
  fellBehind(watch: CacheWatch<T>): void;
  /** The time for which the watch was scheduled has come. */
  due(watch: CacheWatch<T>, nowMs: number): void;
}

/** Called once when a watch may have something to read, or has ended. Must not throw. */
export interface Listener {
  readable(): void;
}

/** Where a watch begins. */
export interface WatchStart<T extends KubernetesObject> {
  readonly place: number;
  readonly initial?: readonly ChangeEvent<T>[] | undefined;
  /** The BOOKMARK that ends the state. */
  readonly mark?: BookmarkEvent | undefined;
  /** The version that its consumer has. */
  readonly version: string;
}

/** The state, how much of it was read, and the BOOKMARK that ends it. */
interface Opening<T extends KubernetesObject> {
  readonly initial: readonly ChangeEvent<T>[];
  passed: number;
  readonly mark: BookmarkEvent | undefined;
}

export class CacheWatch<T extends KubernetesObject> extends Reader<StorageEvent<T>> implements WaitingReader, Due {
  readonly view: View<T>;
  isWaiting: boolean = false;
  dueMs: number = 0;
  /** When it ends, by the cacher's clock; 0: never. In whole milliseconds, which take no extra memory. */
  deadlineMs: number = 0;
  /** Whether it may get BOOKMARKs. */
  bookmarks: boolean = false;
  onLeave: (() => void) | undefined = undefined;
  protected override failure: { readonly error: unknown } | undefined = undefined;
  private readonly host: CacheWatchHost<T>;
  private place: number;
  /** What comes before the changes, until it has been read; a waiting watch has none. */
  private opening: Opening<T> | undefined;
  /** The version of the last event that was read. */
  private deliveredVersion: string;
  /** Whether it owes a BOOKMARK: only if the version is new, or in any case. */
  private owed: 'news' | 'any' | undefined = undefined;
  /** No event at this place or a later one will be read. */
  private until: number | undefined = undefined;
  /** What waits instead of a read. */
  private listener: Listener | undefined = undefined;
  /** Whether nothing more can be read. */
  over: boolean = false;
  private lost: number = 0;

  constructor(host: CacheWatchHost<T>, view: View<T>, { place, initial, mark, version }: WatchStart<T>) {
    super();
    this.host = host;
    this.view = view;
    this.place = place;
    this.opening = initial || mark ? { initial: initial ?? [], passed: 0, mark } : undefined;
    this.deliveredVersion = version;
    view.watchers++;
  }

  get stopped(): boolean {
    return this.over || this.until !== undefined || this.view.end !== undefined;
  }

  get queued(): number {
    if (this.over) return 0;
    const { initial = [], passed = 0, mark } = this.opening ?? {};
    return initial.length - passed + (mark ? 1 : 0) + Math.max(0, this.reach - this.view.positionOf(this.place));
  }

  get dropped(): number {
    return this.lost;
  }

  /** Makes it deliver the cache's version once it has read everything: only if that is new, or, with `any`, in any case. */
  owe(any: boolean = false): void {
    this.owed = any ? 'any' : (this.owed ?? 'news');
    this.serve();
  }

  /**
   * Calls the listener once when there may be something to read, instead of a waiting read: for callers with many watches. Such a
   * caller also ends the watch itself: the signal that it was opened with no longer has an effect.
   */
  listen(listener: Listener): void {
    this.listener = listener;
    this.view.park.add(this);
    this.onLeave?.();
    this.onLeave = undefined;
  }

  protected override serve(): void {
    super.serve();
    const { listener } = this;
    if (listener === undefined) return;
    this.listener = undefined;
    listener.readable();
  }

  /** Serves pending reads: there is something new in its view. */
  wake(): void {
    this.serve();
    if (this.first) this.view.park.add(this);
  }

  protected override get drained(): boolean {
    return this.over;
  }

  /** The position in the view where it ends, for now or for ever. */
  private get reach(): number {
    return this.until === undefined ? this.view.head : this.view.positionOf(this.until);
  }

  protected override readWaits(): void {
    this.view.park.add(this);
  }

  protected override take(): StorageEvent<T> | typeof NONE {
    if (this.over) return NONE;
    const { opening } = this;
    if (opening) {
      const event = opening.initial[opening.passed++];
      if (event) return event;
      this.opening = undefined;
      if (opening.mark) return opening.mark;
    }
    return this.takeChange();
  }

  protected override takeBatch(limit: number): readonly StorageEvent<T>[] | typeof NONE {
    if (this.over || limit !== Infinity) return super.takeBatch(limit);
    const { opening } = this;
    if (opening && opening.passed < opening.initial.length) {
      const { initial, passed } = opening;
      opening.passed = initial.length;
      if (!opening.mark) this.opening = undefined;
      return passed === 0 ? initial : initial.slice(passed);
    }
    if (opening || this.until !== undefined) return super.takeBatch(limit);
    this.view.trim(this.host.start);
    const position = this.view.positionOf(this.place);
    if (position >= this.view.head || this.place < this.view.lostBefore) return super.takeBatch(limit);
    const events = this.view.from(position);
    const last = this.view.head - 1;
    this.place = this.view.placeAt(last) + 1;
    this.deliveredVersion = versionOf(this.view.at(last).object);
    return events;
  }

  private takeChange(): StorageEvent<T> | typeof NONE {
    const { view } = this;
    view.trim(this.host.start);
    if (this.place < view.lostBefore) return this.expireTooSlow();
    const at = view.positionOf(this.place);
    if (at < this.reach) {
      const event = view.at(at);
      this.place = view.placeAt(at) + 1;
      this.deliveredVersion = versionOf(event.object);
      return event;
    }
    if (view.end?.status && this.until === undefined) return this.fail(view.end.status);
    if (this.stopped) this.finish();
    return this.over ? NONE : this.takeBookmark();
  }

  /** Everything has been read: returns the BOOKMARK that is owed, if there is one. */
  private takeBookmark(): StorageEvent<T> | typeof NONE {
    this.place = this.host.place;
    const { owed } = this;
    if (!owed) return NONE;
    this.owed = undefined;
    const { bookmark, compareVersions } = this.host;
    const { resourceVersion } = bookmark.object.metadata;
    if (owed === 'news' && compareVersions(resourceVersion, this.deliveredVersion) <= 0) return NONE;
    this.deliveredVersion = resourceVersion;
    return bookmark;
  }

  private expireTooSlow(): ErrorEvent {
    this.host.fellBehind(this);
    return this.fail(
      lostStatus(`too old resource version: ${this.deliveredVersion}: the watch was too slow, and the next changes are gone`),
    );
  }

  private fail(object: Status): ErrorEvent {
    this.finish();
    return { type: 'ERROR', object };
  }

  protected override end(): void {
    if (this.over || this.until !== undefined) return;
    this.until = this.host.place;
    this.leave();
  }

  protected override discard(): void {
    this.lost += this.queued;
    this.finish();
  }

  protected override wasted(count: number): void {
    this.lost += count;
  }

  private finish(): void {
    const hasLeft = this.over || this.until !== undefined;
    this.over = true;
    this.opening = undefined;
    if (!hasLeft) this.leave();
  }

  private leave(): void {
    if (this.isWaiting) this.view.park.leave();
    this.onLeave?.();
    this.onLeave = undefined;
    this.view.watchers--;
    this.host.left(this);
  }

  due(nowMs: number): void {
    if (!this.stopped) this.host.due(this, nowMs);
  }
}

/** 410, for a watch that cannot get every change. */
export function lostStatus(message: string): Status {
  return toStatus({ code: 410, reason: 'Expired', message });
}
