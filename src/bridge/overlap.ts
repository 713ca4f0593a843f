import type { WatchEvent } from '../watch/event.ts';
import { Envelope } from './envelope.ts';
import type { ReadableWatch, SessionWatch } from './session-host.ts';

/** What joins a snapshot and a folding watch. */
export interface OverlapOptions {
  /** The client's watch. */
  readonly watch: SessionWatch;
  /** Another watch from the same position, which only asks this filter about each event. */
  readonly follow: (filter: (event: Envelope) => boolean) => ReadableWatch<Envelope>;
  readonly filter: ((event: Envelope) => boolean) | undefined;
  readonly keyOf: (event: Envelope) => string;
  /** A client with more changed keys is cut, so no more are remembered. */
  readonly capacity: number;
}

/**
 * The `coalesce` watch of a client that gets a snapshot first.
 *
 *     position         snapshot reads a       first read
 *     ---|--- a added -------|------ a deleted ----|--->    folded: nothing; but this client has a
 *
 * A fold leaves out an object that was added and deleted unseen. The data of a snapshot is newer than its position, so the client
 * may have seen it all the same. Therefore the first read after the snapshot also delivers the deletion of each such object.
 */
export class Overlap implements SessionWatch {
  private readonly watch: SessionWatch;
  private readonly options: OverlapOptions;
  private readonly changes: Map<string, { readonly added: boolean; last: Envelope }> = new Map();
  private follower: ReadableWatch<Envelope> | undefined;
  /** Deletions that were delivered although the watch had folded them away. */
  private told: number = 0;

  constructor(options: OverlapOptions) {
    this.options = options;
    this.watch = options.watch;
    this.follower = options.follow((event) => this.note(event));
  }

  get stopped(): boolean {
    return this.watch.stopped;
  }

  get queued(): number {
    return this.watch.queued;
  }

  get dropped(): number {
    return this.watch.dropped - this.told;
  }

  tryBatch(): readonly WatchEvent[] | undefined {
    const batch = this.watch.tryBatch();
    if (this.follower === undefined) return batch;
    // A client that is cut resumes after its last version, so it must get none here.
    const cut = batch?.some((event) => event.type === 'ERROR' && !(event instanceof Envelope));
    const gone = cut ? [] : this.deletions();
    this.told = gone.length;
    this.forget();
    return gone.length === 0 ? batch : [...gone, ...(batch ?? [])];
  }

  stop(): void {
    this.watch.stop();
  }

  return(): Promise<unknown> {
    this.forget();
    return this.watch.return();
  }

  private note(event: Envelope): false {
    const { filter, keyOf, capacity } = this.options;
    const { type } = event;
    if (this.changes.size > capacity || type === 'BOOKMARK' || type === 'ERROR' || filter?.(event) === false) return false;
    const key = keyOf(event);
    const change = this.changes.get(key);
    if (change === undefined) this.changes.set(key, { added: type === 'ADDED', last: event });
    else change.last = event;
    return false;
  }

  /** Deletions that were folded away, of everything up to the head. */
  private deletions(): Envelope[] {
    try {
      this.follower?.tryBatch();
    } catch {
      // A filter or `keyOf` threw. The client's own watch reports that.
    }
    const gone = [...this.changes.values()].filter(({ added, last }) => added && last.type === 'DELETED');
    return gone.map(({ last }) => last);
  }

  private forget(): void {
    void this.follower?.return();
    this.follower = undefined;
    this.changes.clear();
  }
}
