import type { Overflow } from '../../src/broadcast/broadcaster.ts';
import { ModelFold } from './model-fold.ts';

/**
 * An obviously correct broadcaster: one array per watcher, filled at once. The property tests compare the real one with it, event
 * by event. Everything is synchronous. A waiting read takes its event directly from the publisher.
 */
export interface ModelEvent {
  readonly type: string;
  readonly object: { readonly id: number; readonly metadata: { readonly name: string } };
}

/** The topics of an event: none, one, or two. */
export function topicsOf({ object: { id } }: ModelEvent): readonly string[] {
  return [[], ['a'], ['b', 'a'], ['c', 'c']][id % 4] as string[];
}

export type Outcome = { value: unknown } | { done: true } | { error: string };
/** The result of a read, set when it settles. */
export interface ModelRead {
  readonly batch: boolean;
  outcome: Outcome | undefined;
  hand: unknown[];
}

/** What a full queue does with one event more. The model does not ask the engine or the checkers: it is what both must agree with. */
const WHEN_FULL: Readonly<Record<Overflow, 'waits' | 'refuses it' | 'pushes out the oldest' | 'is cut' | 'folds'>> = {
  wait: 'waits',
  'drop-newest': 'refuses it',
  'drop-oldest': 'pushes out the oldest',
  disconnect: 'is cut',
  coalesce: 'folds',
};

interface Queued {
  event: ModelEvent;
  gap: number;
  place: number;
}

export interface ModelWatchOptions {
  capacity: number;
  overflow: Overflow;
  filter?: ((event: ModelEvent) => boolean) | undefined;
  topics?: readonly string[] | undefined;
  /** How many past events it begins with, or the position after which. */
  replay?: number | undefined;
  after?: number | undefined;
  /** Whether the watch has an `onGap`, before which a batch must end. */
  told: boolean;
  prefix?: readonly ModelEvent[] | undefined;
}

export class ModelWatch {
  readonly gaps: number[] = [];
  readonly capacity: number;
  reads: ModelRead[] = [];
  queue: Queued[] = [];
  fold: ModelFold<ModelEvent> = new ModelFold();
  missed = 0;
  dropped = 0;
  delivered = 0;
  accepted = 0;
  cut = false;
  ended = false;
  failed: string | undefined;
  /** Where to continue once everything queued was read. */
  resumeAt: number | undefined;
  private hand: ModelRead | undefined;
  private readonly options: ModelWatchOptions;
  private readonly owner: ModelBroadcaster;

  constructor(owner: ModelBroadcaster, options: ModelWatchOptions) {
    this.owner = owner;
    this.options = options;
    const prefix = (options.prefix ?? []).filter((event) => options.filter?.(event) ?? true);
    const past = this.start(options);
    const first = (options.prefix?.length ?? 0) + (past?.filter((event) => this.concerns(event)).length ?? 0);
    const begins = options.prefix !== undefined || past !== undefined;
    this.capacity = Math.max(options.capacity, begins ? first + 1 : 0);
    this.begin = this.from < 0 ? owner.end : this.from;
    for (const event of prefix) this.offer(event, this.begin);
    if (past === undefined && this.from >= 0) {
      this.refused = true;
      this.resumeAt = this.from;
      this.finish();
    }
  }

  /** It cannot begin where it should, which an ERROR says in the end. */
  private refused = false;
  /** Where it begins. */
  private readonly begin: number;
  /** Where in the past it begins; -1: not there. */
  private from = -1;

  /** Returns all events since its start in the past, also those that are not distributed yet; undefined if they are not known. */
  private start({ replay = 0, after }: ModelWatchOptions): readonly ModelEvent[] | undefined {
    const { past, head, window } = this.owner;
    const oldest = Math.max(0, head - window);
    this.from = after ?? (replay > 0 ? Math.max(oldest, head - replay) : -1);
    if (this.from < oldest || this.from > head) return undefined;
    return past.slice(this.from);
  }

  /** Gets the past: what is distributed at once, the rest with all others. */
  catchUp(): void {
    if (this.ended || this.from < 0) return;
    const { past, head, incoming } = this.owner;
    for (const [at, event] of past.slice(this.from, head).entries()) this.distribute(event, this.from + at);
    for (const { to } of incoming) to.push(this);
  }

  concerns(event: ModelEvent): boolean {
    const { topics } = this.options;
    return topics === undefined || topicsOf(event).some((topic) => topics.includes(topic));
  }

  /** Where a watch would continue after what was delivered. */
  get position(): number {
    this.serve();
    return this.queue[0]?.place ?? this.fold.place ?? this.resumeAt ?? Math.max(this.owner.head, this.begin);
  }

  private get whenFull(): (typeof WHEN_FULL)[Overflow] {
    return WHEN_FULL[this.options.overflow];
  }

  get over(): boolean {
    return this.ended || this.owner.closed;
  }

  get stopped(): boolean {
    return this.over || this.cut;
  }

  get inHand(): boolean {
    return this.hand !== undefined;
  }

  get queued(): number {
    this.serve();
    return this.queue.length + this.fold.live;
  }

  get lost(): number {
    return this.dropped + this.fold.changes - this.fold.live;
  }

  wants(event: ModelEvent): boolean {
    if (!this.concerns(event)) return false;
    if (this.options.filter === undefined) return true;
    try {
      return this.options.filter(event);
    } catch {
      return false; // the watch will end with the error, which needs no room
    }
  }

  /** Whether the event could be distributed to this watcher now without loss. */
  hasRoom(event?: ModelEvent): boolean {
    if (this.whenFull !== 'waits' || this.ended) return true;
    return this.reads.length > 0 || this.queue.length < this.capacity || (event !== undefined && !this.wants(event));
  }

  distribute(event: ModelEvent, place: number): void {
    if (this.ended || !this.concerns(event)) return;
    try {
      if (this.options.filter !== undefined && !this.options.filter(event)) return;
    } catch (error) {
      this.failed = (error as Error).message;
      this.resumeAt ??= place;
      this.finish();
      return;
    }
    this.offer(event, place);
  }

  private offer(event: ModelEvent, place: number): void {
    this.accepted++;
    if (this.cut) {
      this.dropped++;
      this.missed++;
      return;
    }
    const read = this.reads[0];
    if (read !== undefined) {
      this.reads.shift();
      this.delivered++;
      if (this.missed > 0) this.gaps.push(this.missed);
      this.missed = 0;
      if (read.batch && this.reads.length === 0) {
        read.hand.push(event);
        this.hand = read;
      } else {
        read.outcome = { value: read.batch ? [event] : event };
      }
      return;
    }
    if (this.whenFull === 'folds') {
      this.coalesce(event, place);
      return;
    }
    if (this.queue.length < this.capacity) {
      this.queue.push({ event, gap: this.missed, place });
      this.missed = 0;
    } else if (this.whenFull === 'pushes out the oldest' && this.capacity > 0) {
      const oldest = this.queue.shift() as Queued;
      this.dropped++;
      const lost = oldest.gap + 1;
      if (this.queue[0] !== undefined) this.queue[0].gap += lost;
      else this.missed += lost;
      this.queue.push({ event, gap: this.missed, place });
      this.missed = 0;
    } else {
      this.dropped++;
      this.missed++;
      if (this.whenFull !== 'is cut') return;
      this.cut = true;
      this.resumeAt ??= place;
    }
  }

  private coalesce(event: ModelEvent, place: number): void {
    this.fold.add(event, place);
    if (this.fold.size <= this.capacity) return;
    this.cut = true;
    this.resumeAt ??= this.fold.first ?? place;
    this.dropped += this.fold.changes;
    this.missed += this.fold.changes;
    this.fold.clear();
  }

  private get breaks(): boolean {
    return this.options.told && this.queue[0] !== undefined && this.queue[0].gap > 0;
  }

  /** The wake-up at the end of the turn: a batch in hand also takes what is queued, up to a reported gap. */
  serve(): void {
    if (this.hand === undefined) return;
    this.fill();
    this.owner.pump();
  }

  /** The same, without distributing what it makes room for. */
  fill(): void {
    const { hand } = this;
    if (hand === undefined) return;
    this.hand = undefined;
    for (;;) {
      if (this.breaks) break;
      const event = this.takeOne();
      if (event === undefined) break;
      hand.hand.push(event);
    }
    hand.outcome = { value: hand.hand };
  }

  read(batch: boolean): ModelRead {
    this.serve();
    const read: ModelRead = { batch, outcome: undefined, hand: [] };
    const first = this.takeOne();
    if (first !== undefined) {
      if (batch) {
        read.hand.push(first);
        this.hand = read;
        this.serve();
      } else {
        read.outcome = { value: first };
      }
    } else if (this.failed !== undefined) {
      read.outcome = { error: this.failed };
      this.failed = undefined;
    } else if (this.over) {
      read.outcome = { done: true };
    } else {
      this.reads.push(read);
    }
    this.owner.pump();
    return read;
  }

  tryBatch(): unknown[] | undefined {
    const first = this.tryNext(false);
    if (first === undefined) return undefined;
    const batch = [first];
    while (!this.breaks) {
      const event = this.takeOne();
      if (event === undefined) break;
      batch.push(event);
    }
    this.owner.pump();
    return batch;
  }

  tryNext(alone: boolean = true): unknown {
    this.serve();
    if (this.reads.length > 0) return undefined;
    const event = this.takeOne();
    if (event === undefined && this.failed !== undefined) {
      const message = this.failed;
      this.failed = undefined;
      throw new Error(message);
    }
    if (alone || event === undefined) this.owner.pump();
    return event;
  }

  stop(): void {
    this.serve();
    this.finish();
  }

  return(): void {
    this.serve();
    this.resumeAt = this.position;
    this.dropped += this.queue.length + this.fold.changes;
    this.queue = [];
    this.fold.clear();
    this.cut = this.refused = false;
    this.failed = undefined;
    this.finish();
  }

  /** The end, from either side: settles waiting reads. */
  settleReads(): void {
    this.serve();
    for (const read of this.reads.splice(0)) {
      if (this.failed === undefined) read.outcome = { done: true };
      else read.outcome = { error: this.failed };
      this.failed = undefined;
    }
  }

  private finish(): void {
    if (this.ended) return;
    this.ended = true;
    this.resumeAt ??= Math.max(this.owner.head, this.begin);
    this.settleReads();
    this.owner.pump();
  }

  private takeOne(): unknown {
    const first = this.queue[0];
    if (first !== undefined) {
      if (first.gap > 0) {
        this.gaps.push(first.gap);
        first.gap = 0;
      }
      this.queue.shift();
      this.delivered++;
      return first.event;
    }
    for (let taken = this.fold.take(); taken !== undefined; taken = this.fold.take()) {
      this.dropped += taken.count;
      if (taken.event === undefined) continue;
      this.dropped--;
      this.delivered++;
      return taken.event;
    }
    if (this.refused) {
      this.refused = false;
      return { expired: undefined };
    }
    if (!this.cut) return undefined;
    this.cut = false;
    this.ended = true;
    return { expired: this.missed };
  }
}

export interface ModelPublish {
  event: ModelEvent;
  outcome: 'accepted' | 'CLOSED' | 'OVERLOADED' | undefined;
}

export class ModelBroadcaster {
  watches: ModelWatch[] = [];
  incoming: { event: ModelEvent; to: ModelWatch[] }[] = [];
  pending: ModelPublish[] = [];
  closing = false;
  closed = false;
  /** All accepted events; the first `head` of them are distributed. */
  readonly past: ModelEvent[] = [];
  head = 0;
  private pumping = false;
  /** How many past events are kept. */
  readonly window: number;
  private readonly limits: { incoming: number; maxPending: number };

  constructor(limits: { incoming: number; maxPending: number; replay?: number | undefined }) {
    this.limits = limits;
    this.window = limits.replay ?? 0;
  }

  get end(): number {
    return this.past.length;
  }

  watch(options: ModelWatchOptions): ModelWatch {
    const watch = new ModelWatch(this, options);
    watch.catchUp();
    this.watches.push(watch);
    return watch;
  }

  /** The end of a turn: every read gets what is available, then distribution continues. */
  turn(): void {
    while (this.watches.some((watch) => watch.inHand)) {
      for (const watch of this.watches) watch.fill();
      this.pump();
    }
  }

  tryPublish(event: ModelEvent): boolean {
    if (this.pending.length > 0) return false;
    const accepted = this.accept(event);
    this.pump();
    return accepted;
  }

  publish(event: ModelEvent): ModelPublish {
    const publish: ModelPublish = { event, outcome: undefined };
    if (this.closing) publish.outcome = 'CLOSED';
    else if (this.tryPublish(event)) publish.outcome = 'accepted';
    else if (this.pending.length >= this.limits.maxPending) publish.outcome = 'OVERLOADED';
    else this.pending.push(publish);
    return publish;
  }

  shutdown(): void {
    this.closing = true;
    this.pump();
  }

  /** Stops waiting: full watchers lose what they have no room for. */
  force(): void {
    for (const publish of this.pending.splice(0)) publish.outcome = 'CLOSED';
    this.pumping = true;
    for (const { event, to } of this.incoming.splice(0)) this.distribute(event, to);
    this.pumping = false;
    this.pump();
  }

  pump(): void {
    if (this.pumping) return; // a watch that failed during a distribution
    this.pumping = true;
    this.distributeAll();
    this.pumping = false;
    if (this.closing && !this.closed && this.incoming.length === 0 && this.pending.length === 0) {
      this.closed = true;
      for (const watch of this.watches) if (!watch.ended) watch.settleReads();
    }
  }

  private distributeAll(): void {
    for (;;) {
      const next = this.incoming[0];
      if (next?.to.every((watch) => watch.hasRoom(next.event))) {
        this.incoming.shift();
        this.distribute(next.event, next.to);
        continue;
      }
      const publish = this.pending[0];
      if (publish === undefined || !this.accept(publish.event)) break;
      this.pending.shift();
      publish.outcome = 'accepted';
    }
  }

  private distribute(event: ModelEvent, to: readonly ModelWatch[]): void {
    const place = this.head++;
    for (const watch of to) watch.distribute(event, place);
  }

  private accept(event: ModelEvent): boolean {
    const to = this.watches.filter((watch) => !watch.ended);
    if (this.incoming.length >= this.limits.incoming) {
      if (this.incoming.length > 0 || !to.every((watch) => !watch.concerns(event) || watch.hasRoom())) return false;
    }
    this.incoming.push({ event, to });
    this.past.push(event);
    return true;
  }
}
