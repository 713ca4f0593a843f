/**
 * A watch of a collection. It keeps only its place in the log: events are read from its view when its consumer asks for them. So a
 * slow watch costs nothing and delays nobody; if the log drops changes that it has not read, it gets an ERROR 410.
 *
 *     the state as ADDED --> BOOKMARK that ends it --> events of the view, after `place` --> [ a BOOKMARK, when it is due ]
 *                                                       '-- no longer kept --> ERROR 410
 *
 * A BOOKMARK is not queued: when one is due, the watch notes the version of that moment, and delivers it once it has read
 * everything up to there. So BOOKMARKs are in order with events however fast the consumer reads, and none is lost for lack of
 * room. While one is due, all later requests count as a single further one: asking often does not delay the first.
 *
 * Invariants
 * - Every change before `place` was delivered, or is not selected.
 * - A BOOKMARK of a version is delivered after all events up to it, and before all later ones.
 */
import type { WaitingReader } from '../../broadcast/watcher-sets.ts';
import { type KubernetesObject, versionOf } from '../../cache/object.ts';
import type { VersionComparator } from '../../cache/versions.ts';
import { type BookmarkEvent, type ErrorEvent, type Status, toStatus } from '../../watch/event.ts';
import { NONE, Reader } from '../../watch/reader.ts';
import type { HeapNode } from '../../watch/timetable.ts';
import type { Listener, ListeningWatch } from '../../watch/watch.ts';
import type { ChangeEvent, StorageEvent } from '../storage.ts';
import type { SharedView } from './view.ts';

/** A version for a BOOKMARK, and the place in the log at which a watch has everything up to it. */
export interface Progress {
  readonly place: number;
  readonly event: BookmarkEvent;
}

export interface WatchHost<T extends KubernetesObject> {
  readonly compareVersions: VersionComparator;
  /** The place of the first change that is kept, and the place after the last. */
  readonly start: number;
  readonly place: number;
  /** What a BOOKMARK would say now. */
  readonly progress: Progress;
  /** The watch has ended, from either side. Called once. */
  left(watch: CollectionWatch<T>): void;
  /** The watch was ended because it was too slow. */
  fellBehind(watch: CollectionWatch<T>): void;
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

/** The BOOKMARKs to deliver. */
interface DueBookmarks {
  readonly first: Progress;
  /** The last one that was requested after that. */
  last: Progress | undefined;
  /** Whether they are delivered even if their version is not new. */
  any: boolean;
}

export class CollectionWatch<T extends KubernetesObject>
  extends Reader<StorageEvent<T>>
  implements ListeningWatch<StorageEvent<T>>, WaitingReader, HeapNode
{
  readonly view: SharedView<T>;
  isWaiting: boolean = false;
  heapRank: number = 0;
  heapTurn: number = 0;
  heapAt: number = -1;
  /** When it ends, by the clock; 0: never. In whole milliseconds, which take no extra memory. */
  deadlineMs: number = 0;
  /** Whether it may get BOOKMARKs. */
  bookmarks: boolean = false;
  onLeave: (() => void) | undefined = undefined;
  protected override failure: { readonly error: unknown } | undefined = undefined;
  private readonly host: WatchHost<T>;
  private place: number;
  /** What precedes the changes, until it has been read; a waiting watch has none. */
  private opening: Opening<T> | undefined;
  /** The version of the last event that was read. */
  private deliveredVersion: string;
  private dueBookmarks: DueBookmarks | undefined = undefined;
  /** No event at this place or a later one will be read. */
  private until: number | undefined = undefined;
  /** What waits in place of a read. */
  private listener: Listener | undefined = undefined;
  /** Whether nothing more can be read. */
  over: boolean = false;
  private lost: number = 0;

  constructor(host: WatchHost<T>, view: SharedView<T>, { place, initial, mark, version }: WatchStart<T>) {
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
    const opening = initial.length - passed + (mark ? 1 : 0);
    if (this.isLost) return opening;
    return opening + Math.max(0, this.reach - this.view.positionOf(this.place)) + (this.dueBookmarks?.any ? 1 : 0);
  }

  get dropped(): number {
    return this.lost;
  }

  /** Makes it deliver the current version once it has read everything up to it, if the version is new, or if `any`. */
  bookmark(any: boolean = false): void {
    if (this.stopped) return;
    const { progress } = this.host;
    const { dueBookmarks: due } = this;
    if (!due) this.dueBookmarks = { first: progress, last: undefined, any };
    else {
      if (due.first !== progress) due.last = progress;
      due.any ||= any;
    }
    this.serve();
  }

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

  /** The position in the view where it ends, for now or forever. */
  private get reach(): number {
    return this.until === undefined ? this.view.head : this.view.positionOf(this.until);
  }

  /**
   * Whether the log has dropped what would come next. If it is stopped, only if something is left between `place` and `until`.
   */
  private get isLost(): boolean {
    this.view.trim(this.host.start);
    return this.place < this.view.lostBefore && this.place !== this.until;
  }

  /** Moves it to a place, or to its end if nothing comes before that. */
  private moveTo(place: number): void {
    this.place = place;
    if (this.until !== undefined && this.view.positionOf(place) >= this.reach) this.place = this.until;
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
    const { opening, view } = this;
    if (opening && opening.passed < opening.initial.length) {
      const { initial, passed } = opening;
      opening.passed = initial.length;
      if (!opening.mark) this.opening = undefined;
      return passed === 0 ? initial : initial.slice(passed);
    }
    if (opening || this.stopped || this.dueBookmarks || this.isLost) return super.takeBatch(limit);
    const position = view.positionOf(this.place);
    if (position >= view.head) {
      this.place = this.host.place;
      return NONE;
    }
    const events = view.from(position);
    const last = view.head - 1;
    this.place = view.placeAt(last) + 1;
    this.deliveredVersion = versionOf(view.at(last).object);
    return events;
  }

  private takeChange(): StorageEvent<T> | typeof NONE {
    if (this.isLost) return this.expireTooSlow();
    const { view } = this;
    const at = view.positionOf(this.place);
    const next = at < this.reach ? view.placeAt(at) : undefined;
    const bookmark = this.dueBookmarks && this.takeBookmark(next);
    if (bookmark) return bookmark;
    if (next !== undefined) {
      const event = view.at(at);
      this.moveTo(next + 1);
      this.deliveredVersion = versionOf(event.object);
      return event;
    }
    if (view.end?.status && this.until === undefined) return this.fail(view.end.status);
    if (this.stopped) this.finish();
    else this.place = this.host.place;
    return NONE;
  }

  /** The BOOKMARK that is due before the event at the next place. */
  private takeBookmark(next: number | undefined): BookmarkEvent | undefined {
    for (let due = this.dueBookmarks; due; due = this.dueBookmarks) {
      const { first, last, any } = due;
      // An event also carries a version: if only that was wanted, the next event will do.
      if (next !== undefined && (!any || next < first.place)) return undefined;
      this.dueBookmarks = last && { first: last, last: undefined, any };
      this.place = Math.max(this.place, first.place);
      const { resourceVersion } = first.event.object.metadata;
      // An event that was read since then may have carried a newer version.
      const order = this.host.compareVersions(resourceVersion, this.deliveredVersion);
      if (order < 0 || (order === 0 && !any)) continue;
      this.deliveredVersion = resourceVersion;
      return first.event;
    }
    return undefined;
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
    const { isLost } = this;
    this.until = this.host.place;
    if (!isLost) this.moveTo(this.place);
    this.dueBookmarks = undefined;
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
}

/** 410, for a watch that cannot get every change. */
export function lostStatus(message: string): Status {
  return toStatus({ code: 410, reason: 'Expired', message });
}
