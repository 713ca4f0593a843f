import {
  BROADCASTER_OPTIONS,
  type Broadcaster,
  type BroadcasterOptions,
  type KeepingWatchOptions,
  type PlainWatchOptions,
  type WatchOptions,
} from '../../broadcast/broadcaster.ts';
import { concerns } from '../../broadcast/topics.ts';
import { checkOptions, getOrMake, isWatchError } from '../../watch/errors.ts';
import type { ErrorEvent, MissingError, WatchEvent } from '../../watch/event.ts';
import { Batches } from '../../watch/reader.ts';
import type { Watch, WatchBatches } from '../../watch/watch.ts';
import type { History, ReadCall, Step, WatcherOptions } from '../checkers/history.ts';
import { ListenerCount } from '../fakes/fake-clock.ts';
import { RecordingWatch } from './recorded-source.ts';

/** Options of a {@link HistoryRecorder}. Pass the broadcaster's own options again, because a broadcaster does not expose them. */
export interface HistoryRecorderOptions<E> extends BroadcasterOptions<E> {
  /** See {@link History.idOf}. */
  readonly idOf?: ((event: E) => unknown) | undefined;
  /** Returns the number of timers still running, at the end: `() => clock.pending` of a `FakeClock`. */
  readonly timers?: (() => number) | undefined;
}

/** {@link WatchOptions}, and a name for messages. */
export interface RecordedWatchOptions<E> extends WatchOptions<E>, WatchName {}

interface WatchName {
  readonly name?: string | undefined;
}

/**
 * Wraps a broadcaster and records what happens. Publish, watch and shut down through the recorder, read its watches, and pass its
 * {@link History} to the checkers.
 *
 *     const options = { capacity: 2, overflow: 'drop-oldest' } as const;
 *     const recorder = new HistoryRecorder(new Broadcaster(options), options);
 *     const watch = recorder.watch({ name: 'dashboard' });
 *     ...
 *     checkHistory(recorder.history()) // []
 *
 * It can replace a broadcaster in code that takes `Pick<Broadcaster<E>, 'publish' | 'watch'>`, or whichever methods it uses. Each
 * event needs a separate `object`, or an `idOf` that distinguishes events. Calls that bypass the recorder are not recorded.
 */
export class HistoryRecorder<E extends WatchEvent = WatchEvent, Lost extends ErrorEvent = never> {
  private readonly broadcaster: Broadcaster<E, Lost>;
  private readonly options: HistoryRecorderOptions<E>;
  private readonly steps: Step<E>[] = [];
  private readonly watches: RecordedWatch<E>[] = [];
  private readonly listeners: ListenerCount[] = [];
  private readonly pairs: WeakMap<AbortSignal, AbortPair> = new WeakMap();
  /** Pending publishes, and the last step before each began to wait. */
  private readonly pending: Map<E, Step<E> | undefined> = new Map();
  /** The acceptances of publishes that waited, in order. */
  private readonly acceptances: Step<E>[] = [];

  constructor(broadcaster: Broadcaster<E, Lost>, options: HistoryRecorderOptions<E> = {}) {
    this.broadcaster = broadcaster;
    this.options = checkOptions(options, [...BROADCASTER_OPTIONS, 'idOf', 'timers']);
  }

  /** Calls `broadcaster.publish` and records it. */
  async publish(event: E): Promise<void> {
    this.steps.push({ step: 'publish', event });
    try {
      // An event that is accepted at once is recorded at once.
      if (this.broadcaster.tryPublish(event)) {
        this.steps.push({ step: 'accepted', event });
        return;
      }
      const accepted = this.broadcaster.publish(event);
      // Only now does it start to wait: user code called by `tryPublish` may have published before.
      this.pending.set(event, this.steps.at(-1));
      await accepted;
      this.accepted(event);
    } catch (error) {
      this.refused(event, error);
      throw error;
    }
  }

  /** Calls `broadcaster.tryPublish` and records it. */
  tryPublish(event: E): boolean {
    this.steps.push({ step: 'publish', event });
    try {
      const accepted = this.broadcaster.tryPublish(event);
      if (accepted) this.steps.push({ step: 'accepted', event });
      else this.steps.push({ step: 'refused', event, code: 'FULL' });
      return accepted;
    } catch (error) {
      this.refused(event, error);
      throw error;
    }
  }

  /** Calls `broadcaster.watch` and returns a recorded watch, of the same type. */
  watch(options?: PlainWatchOptions<E> & WatchName): Watch<E | Lost>;
  watch(options: KeepingWatchOptions<E> & WatchName): Watch<E>;
  watch(options: RecordedWatchOptions<E> | undefined): Watch<E | MissingError<E>>;
  watch(options: RecordedWatchOptions<E> = {}): Watch<E> {
    const { name = `watcher ${this.watches.length + 1}`, filter, onGap, signal, ...rest } = options;
    const notebook = new Notebook<E>(name, this.steps);
    const pair = signal && this.pairOf(signal);
    pair?.before.add(notebook);
    const listeners = signal === undefined ? undefined : new ListenerCount(signal);
    let watch: Watch<E>;
    try {
      watch = this.broadcaster.watch({
        ...rest,
        name,
        ...(signal && { signal }),
        ...(filter && { filter: notebook.filter(filter) }),
        onGap: notebook.onGap(onGap),
      }) as Watch<E>; // an ERROR is recorded as any event is
    } catch (error) {
      pair?.before.delete(notebook);
      throw error;
    }
    // Recorded after what a filter did during the prefix, because the watch begins when `watch` returns.
    this.steps.push({ step: 'watch', watcher: name, options: this.watcherOptions(options) });
    const recorded = new RecordedWatch(watch, notebook);
    pair?.follow(notebook);
    if (listeners !== undefined) this.listeners.push(listeners);
    this.watches.push(recorded);
    return recorded;
  }

  private pairOf(signal: AbortSignal): AbortPair {
    return getOrMake(this.pairs, signal, () => new AbortPair(signal));
  }

  /** Calls `broadcaster.shutdown` and records it. */
  async shutdown(options: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    this.steps.push({ step: 'shutdown' });
    const gaveUp = (): void => void this.steps.push({ step: 'gave-up' });
    if (options.signal?.aborted) gaveUp();
    else options.signal?.addEventListener('abort', gaveUp, { once: true });
    if (options.signal !== undefined) this.listeners.push(new ListenerCount(options.signal));
    try {
      await this.broadcaster.shutdown(options);
    } finally {
      options.signal?.removeEventListener('abort', gaveUp);
    }
    this.steps.push({ step: 'closed' });
  }

  /**
   * Records every watcher's counts and what is left over, and returns the history so far. Call it when nothing is in progress:
   * the outcome of a promise that has not settled is unknown.
   */
  history(): History<E> {
    for (const watch of this.watches) watch.look();
    const ended = this.watches.every((watch) => watch.stopped);
    const listeners = ended ? this.listeners.reduce((sum, { count }) => sum + count, 0) : 0;
    const timers = this.options.timers?.() ?? 0;
    const { idOf, incoming } = this.options;
    const steps: Step<E>[] = [...this.steps, { step: 'leftovers', timers, listeners }];
    return { ...(idOf && { idOf }), ...(incoming !== undefined && { incoming }), steps };
  }

  private watcherOptions({ prefix, ...own }: WatchOptions<E>): WatcherOptions<E> {
    const { capacity = 100, overflow = 'wait', keyOf } = this.options;
    const filter = this.selection({ prefix, ...own });
    return {
      capacity: Math.max(own.capacity ?? capacity, prefix ? prefix.length + 1 : 0),
      overflow: own.overflow ?? overflow,
      prefix: prefix ?? [],
      ...(filter && { filter }),
      ...(keyOf && { keyOf }),
    };
  }

  /** Returns what a watcher selects, as a filter: topics, which do not concern its prefix, and its own filter. */
  private selection({ filter, prefix, topics }: WatchOptions<E>): WatchOptions<E>['filter'] {
    const { topicsOf } = this.options;
    if (!topics || !topicsOf) return filter;
    return (event) => (prefix?.includes(event) || concerns(topicsOf(event), topics)) && (filter?.(event) ?? true);
  }

  /**
   * A publish that waited learns late that it was accepted. It cannot be overtaken, so it was accepted before any later publish
   * that was accepted at once, and before any watcher received the event. Publishes that waited longer learn of it first, and
   * were accepted first.
   */
  private accepted(event: E): void {
    const before = this.pending.get(event);
    this.pending.delete(event);
    const since = before === undefined ? 0 : this.steps.lastIndexOf(before) + 1;
    const called = new Set<E>();
    let at = since;
    for (; at < this.steps.length; at++) {
      const step = this.steps[at] as Step<E>;
      if (step.step === 'publish') called.add(step.event);
      if (step.step === 'accepted' && called.has(step.event)) break;
      if (step.step === 'delivered' && step.events.some((got) => this.idOf(got) === this.idOf(event))) break;
    }
    const earlier: Step<E>[] = [];
    for (let i = this.acceptances.length - 1; i >= 0; i--) {
      const step = this.acceptances[i] as Step<E>;
      const place = this.steps.lastIndexOf(step);
      if (place < at) break;
      this.steps.splice(place, 1);
      earlier.unshift(step);
    }
    const step: Step<E> = { step: 'accepted', event };
    this.acceptances.push(step);
    this.steps.splice(at, 0, ...earlier, step);
  }

  private idOf(event: E): unknown {
    return this.options.idOf === undefined ? event.object : this.options.idOf(event);
  }

  private refused(event: E, error: unknown): void {
    this.pending.delete(event);
    this.steps.push({ step: 'refused', event, code: isWatchError(error) ? error.code : String(error) });
  }
}

type Ending = Pick<Notebook<unknown>, 'ends' | 'ended'>;

/** Two listeners of a signal for all recorded watches that it stops: one before the broadcaster's own, and one after it. */
class AbortPair {
  /** The watches that are about to end. */
  readonly before: Set<Ending> = new Set();
  /** Those that have ended. */
  private readonly after: Set<Ending> = new Set();
  private readonly signal: AbortSignal;

  constructor(signal: AbortSignal) {
    this.signal = signal;
    const ends = (): void => {
      for (const notebook of this.before) notebook.ends('stop');
    };
    signal.addEventListener('abort', ends, { once: true });
  }

  /** The broadcaster is listening by now. */
  follow(notebook: Ending): void {
    this.after.add(notebook);
    if (this.after.size > 1) return;
    const ended = (): void => {
      for (const each of this.after) each.ended();
    };
    // Bypasses the count of listeners, which must not include this one.
    EventTarget.prototype.addEventListener.call(this.signal, 'abort', ended, { once: true });
  }
}

/** Records the steps of one watch: its consumer's calls, their results, and what its user code does. */
class Notebook<E> {
  readonly watcher: string;
  /** The steps of all watches, in order. */
  readonly steps: Step<E>[];
  private filtering: number = 0;

  constructor(watcher: string, steps: Step<E>[]) {
    this.watcher = watcher;
    this.steps = steps;
  }

  write(step: Step<E>): void {
    this.steps.push(step);
  }

  /** Records a call of `stop` or `return`, perhaps from inside the watch's own filter. */
  ends(step: 'stop' | 'return'): void {
    const inFilter = this.filtering > 0;
    this.write({ step, watcher: this.watcher, ...(inFilter && { inFilter }) });
  }

  /** Records that the watch has stopped. */
  ended(): void {
    this.write({ step: 'stopped', watcher: this.watcher });
  }

  /** Wraps a filter, to know whether it is running. */
  filter(own: (event: E) => boolean): (event: E) => boolean {
    return (event) => {
      this.filtering++;
      try {
        return this.runs(() => own(event));
      } finally {
        this.filtering--;
      }
    };
  }

  /** Wraps an `onGap`, which may be undefined: records each gap before it runs. */
  onGap(own: ((missed: number) => void) | undefined): (missed: number) => void {
    return (missed) => {
      this.write({ step: 'gap', watcher: this.watcher, missed });
      if (own !== undefined) this.runs(() => own(missed));
    };
  }

  private runs<T>(code: () => T): T {
    try {
      return code();
    } catch (error) {
      this.write({ step: 'threw', watcher: this.watcher, error });
      throw error;
    }
  }
}

/** A watch that records its consumer's reads and their results. */
class RecordedWatch<E> extends RecordingWatch<E> implements Watch<E> {
  private readonly notebook: Notebook<E>;
  private reads: number = 0;

  constructor(watch: Watch<E>, notebook: Notebook<E>) {
    super(watch);
    this.notebook = notebook;
  }

  /** Records the counts. */
  look(): void {
    const { queued, dropped } = this.watch;
    this.notebook.write({ step: 'counts', watcher: this.notebook.watcher, queued, dropped });
  }

  next(): Promise<IteratorResult<E, undefined>> {
    return this.comes(
      'next',
      () => this.watch.next(),
      (event) => [event],
    );
  }

  tryNext(): E | undefined {
    const read = this.asks('tryNext');
    try {
      const event = this.watch.tryNext();
      this.came(read, event === undefined ? [] : [event]);
      return event;
    } catch (error) {
      this.notebook.write({ step: 'end', watcher: this.notebook.watcher, read, failure: { error } });
      throw error;
    }
  }

  batches(): WatchBatches<E> {
    return new Batches(this, () =>
      this.comes(
        'batch',
        () => this.inner.next(),
        (events) => events,
      ),
    );
  }

  stop(): void {
    this.ends('stop', () => this.watch.stop());
  }

  return(): Promise<IteratorResult<E, undefined>> {
    return this.ends('return', () => this.watch.return());
  }

  /** Records that the consumer ends the watch, and runs `code`, which does it. */
  ends<T>(step: 'stop' | 'return', code: () => T): T {
    const { notebook } = this;
    notebook.ends(step);
    const { length } = notebook.steps;
    const result = code();
    if (notebook.steps.length > length) notebook.ended();
    return result;
  }

  private asks(by: ReadCall): number {
    const read = this.reads++;
    this.notebook.write({ step: 'read', watcher: this.notebook.watcher, read, by });
    return read;
  }

  private async comes<T>(
    by: 'next' | 'batch',
    ask: () => Promise<IteratorResult<T, undefined>>,
    eventsOf: (value: T) => readonly E[],
  ): Promise<IteratorResult<T, undefined>> {
    const { watcher, steps } = this.notebook;
    const read = this.asks(by);
    const { length } = steps;
    try {
      const asked = ask();
      if (steps.length > length) this.notebook.write({ step: 'asked', watcher, read });
      const result = await asked;
      if (result.done === true) this.notebook.write({ step: 'end', watcher, read });
      else this.came(read, eventsOf(result.value));
      return result;
    } catch (error) {
      this.notebook.write({ step: 'end', watcher, read, failure: { error } });
      throw error;
    }
  }

  private came(read: number, events: readonly E[]): void {
    this.notebook.write({ step: 'delivered', watcher: this.notebook.watcher, read, events });
  }
}
