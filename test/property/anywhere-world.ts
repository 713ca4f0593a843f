// One broadcaster with all its options, whose user code does anything, anywhere: filters, onGap, keyOf, topicsOf, sizeOf, onError and
// readers publish, watch, read, stop, abort and shut down. What each watch got is compared with the accepted events, whose order a
// witness tells.
import { getEventListeners } from 'node:events';
import { expect } from 'vitest';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { isErrorEvent } from '../../src/watch/event.ts';
import type { Overflow } from '../../src/watch/overflow.ts';
import type { Watch, WatchBatches } from '../../src/watch/watch.ts';
import { macrotask } from '../unit/support.ts';
import { type ModelEvent, topicsOf } from './model.ts';

export type Where = 'filter' | 'gap' | 'key' | 'topics' | 'size' | 'error' | 'read' | 'abort';

export interface WatchPlan {
  readonly capacity: number | undefined;
  readonly overflow: Overflow;
  readonly filter: number;
  readonly prefix: number | undefined;
  readonly topics: readonly string[] | undefined;
  readonly start: { readonly replay?: number; readonly after?: number };
  /** Which of the signals, if any. */
  readonly signal: number | undefined;
  readonly told: boolean;
}

export type Deed =
  | { readonly do: 'watch'; readonly plan: WatchPlan }
  | { readonly do: 'publish' | 'tryPublish'; readonly key: number; readonly type: string; readonly times: number }
  | { readonly do: 'next' | 'batch' | 'tryNext' | 'tryBatch' | 'stop' | 'return' | 'look' | 'abort'; readonly at: number }
  | { readonly do: 'stats' | 'shutdown' | 'limited' | 'giveUp' | 'throw' }
  | { readonly do: 'advance'; readonly ms: number };

export type Step = Deed | { readonly do: 'turn' };

export interface Plan {
  readonly capacity: number;
  readonly incoming: number;
  readonly maxPending: number;
  readonly replay: number;
  readonly replayBytes: number | undefined;
  readonly stalledMs: number;
  readonly hasTopics: boolean;
  readonly steps: readonly Step[];
  /** What user code does when it is called, in this order. The places in which it does nothing are left out. */
  readonly inside: readonly { readonly where: Where; readonly deed: Deed }[];
}

const MOST_WATCHES = 14;
const sizeOf = ({ object: { id } }: ModelEvent): number => id % 4;

interface Watched {
  readonly name: string;
  readonly plan: WatchPlan;
  readonly watch: Watch<ModelEvent>;
  readonly batches: WatchBatches<ModelEvent>;
  readonly prefix: readonly ModelEvent[];
  /** What each read has got, in the order of the calls. */
  readonly reads: ModelEvent[][];
  readonly gaps: number[];
  /** The events whose publish had been called, and those known to be accepted, when it began. */
  readonly called: ReadonlySet<ModelEvent>;
  readonly accepted: ReadonlySet<ModelEvent>;
  /** How many events were distributed, just before and just after. */
  readonly heads: readonly [number, number];
  /** Where a watch that was continued stood. */
  readonly after: number | undefined;
  /** Ended by its consumer: what it was asked to do first. */
  left: 'stop' | 'return' | undefined;
  failure: unknown;
  cut: { readonly missed: number | undefined } | undefined;
  ended: boolean;
  /** How many of its calls are running, and whether one ever ran inside another. */
  reading: number;
  isNested: boolean;
  position: number;
}

/** See the top of this file. */
export class AnywhereWorld {
  readonly clock: FakeClock = new FakeClock();
  private readonly plan: Plan;
  private readonly broadcaster: Broadcaster<ModelEvent>;
  private readonly witness: Watch<ModelEvent>;
  private readonly watches: Watched[] = [];
  private readonly signals: AbortController[] = [0, 1, 2].map(() => new AbortController());
  private readonly called: Set<ModelEvent> = new Set();
  private readonly accepted: Set<ModelEvent> = new Set();
  private readonly refused: Set<ModelEvent> = new Set();
  private readonly pending: Map<Promise<unknown>, string> = new Map();
  private readonly inside: { readonly where: Where; readonly deed: Deed }[];
  private readonly limits: AbortController[] = [];
  private ids = 0;
  private names = 0;
  private foreign = 1_000_000;
  private depth = 0;
  private gaveUp = false;

  constructor(plan: Plan) {
    this.plan = plan;
    this.inside = [...plan.inside];
    const { capacity, incoming, maxPending, replay, replayBytes, stalledMs, hasTopics } = plan;
    this.broadcaster = new Broadcaster<ModelEvent>({
      ...{ capacity, incoming, maxPending, replay, replayBytes, stalledMs, clock: this.clock },
      keyOf: (event) => {
        this.act('key');
        return event.object.metadata.name;
      },
      sizeOf: (event) => {
        this.act('size');
        return sizeOf(event);
      },
      onError: () => {
        this.act('error');
      },
      ...(hasTopics && {
        topicsOf: (event: ModelEvent) => {
          this.act('topics');
          return topicsOf(event);
        },
      }),
    });
    this.witness = this.broadcaster.watch({ overflow: 'drop-newest', capacity: 1_000_000 });
    for (const { signal } of this.signals) {
      signal.addEventListener('abort', () => attempt(() => this.act('abort')), { once: true });
    }
  }

  async run(): Promise<void> {
    for (const step of this.plan.steps) {
      if (step.do === 'turn') await macrotask();
      else attempt(() => this.perform(step));
    }
    await this.end();
    this.check();
  }

  /** Called by user code. */
  private act(where: Where): void {
    const at = this.inside.findIndex((each) => each.where === where);
    if (at < 0 || this.depth > 3) return;
    const { deed } = this.inside.splice(at, 1)[0] as { readonly deed: Deed };
    this.depth++;
    try {
      if (deed.do === 'throw') throw new Error(`thrown in ${where}`);
      attempt(() => this.perform(deed));
    } finally {
      this.depth--;
    }
  }

  private perform(deed: Deed): void {
    if (deed.do === 'watch') this.begin(deed.plan);
    else if (deed.do === 'publish' || deed.do === 'tryPublish')
      for (let i = 0; i < deed.times; i++) this.publish(deed.do, deed.key + i, deed.type);
    else if (deed.do === 'advance') this.clock.advance(deed.ms);
    else if (deed.do === 'stats') this.stats();
    else if (deed.do === 'shutdown' || deed.do === 'limited' || deed.do === 'giveUp') this.shutdown(deed.do);
    else if ('at' in deed) {
      if (deed.do === 'abort') {
        this.signals[deed.at % 3]?.abort();
        return;
      }
      const watched = this.watches[deed.at % Math.max(1, this.watches.length)];
      if (watched) this.touch(watched, deed.do);
    }
  }

  private event(key: number, type: string): ModelEvent {
    return { type, object: { id: this.ids++, metadata: { name: `k${key % 4}` } } };
  }

  private publish(how: 'publish' | 'tryPublish', key: number, type: string): void {
    const event = this.event(key, type);
    this.called.add(event);
    try {
      if (how === 'tryPublish') {
        (this.broadcaster.tryPublish(event) ? this.accepted : this.refused).add(event);
        return;
      }
    } catch {
      this.refused.add(event);
      return;
    }
    this.later(
      'publish',
      this.broadcaster.publish(event).then(
        () => void this.accepted.add(event),
        () => void this.refused.add(event),
      ),
    );
  }

  /** A promise that must settle. */
  private later(what: string, promise: Promise<unknown>): void {
    this.pending.set(promise, what);
    const settled = (): void => void this.pending.delete(promise);
    promise.then(settled, settled);
  }

  private begin(plan: WatchPlan): void {
    if (this.watches.length >= MOST_WATCHES) return;
    const { capacity, overflow, filter, told, start } = plan;
    const name = `watch ${this.names++}`;
    const prefix = Array.from({ length: plan.prefix ?? 0 }, (_, i): ModelEvent => {
      return { type: 'MODIFIED', object: { id: this.foreign++, metadata: { name: `p${i}` } } };
    });
    const other = this.watches[(start.after ?? 0) % Math.max(1, this.watches.length)];
    const after = this.plan.replay > 0 && start.after !== undefined && other ? other.watch.position : undefined;
    const gaps: number[] = [];
    const called = new Set(this.called);
    const accepted = new Set(this.accepted);
    const before = this.witness.queued;
    const watch = this.broadcaster.watch({
      ...{ capacity, overflow, name },
      ...(filter > 0 && { filter: this.filterOf(plan) }),
      ...(plan.prefix !== undefined && { prefix }),
      ...(plan.topics && this.plan.hasTopics && { topics: plan.topics }),
      ...(after !== undefined && { after }),
      ...(start.replay !== undefined && this.plan.replay > 0 && { replay: start.replay }),
      ...(plan.signal !== undefined && { signal: (this.signals[plan.signal] as AbortController).signal }),
      ...(told && {
        onGap: (missed: number) => {
          gaps.push(missed);
          this.act('gap');
        },
      }),
    }) as Watch<ModelEvent>;
    const position = watch.position ?? 0;
    this.watches.push({
      ...{ name, plan, watch, prefix, gaps, called, accepted, after, position },
      batches: watch.batches(),
      reads: [],
      heads: [before, this.witness.queued],
      ...{ left: undefined, failure: undefined, cut: undefined, ended: false, reading: 0, isNested: false },
    });
    // Was published while it began, by its own filter or by looking at it.
    for (const event of this.called) called.add(event);
  }

  private filterOf({ filter }: WatchPlan): (event: ModelEvent) => boolean {
    return (event) => {
      this.act('filter');
      return passes(filter, event);
    };
  }

  private touch(watched: Watched, what: 'next' | 'batch' | 'tryNext' | 'tryBatch' | 'stop' | 'return' | 'look'): void {
    const { watch, batches } = watched;
    const read: ModelEvent[] = [];
    watched.reads.push(read);
    // Which of two reads joins the line first, one inside the other, depends on what waits.
    if (watched.reading++ > 0) watched.isNested = true;
    const got = ({ done, value }: IteratorResult<ModelEvent | readonly ModelEvent[], undefined>): void => {
      if (done) watched.ended = true;
      else this.got(watched, read, value);
    };
    const failed = (error: unknown): void => {
      watched.failure = error;
    };
    if (what === 'next') this.later(`next of ${watched.name}`, watch.next().then(got, failed));
    else if (what === 'batch') this.later(`batch of ${watched.name}`, batches.next().then(got, failed));
    else if (what === 'stop') {
      watched.left ??= 'stop';
      watch.stop();
    } else if (what === 'return') {
      watched.left = 'return';
      this.later(`return of ${watched.name}`, watch.return());
    } else if (what === 'look') this.look(watched);
    else {
      try {
        const value = what === 'tryNext' ? watch.tryNext() : (watch as unknown as { tryBatch(): ModelEvent[] }).tryBatch();
        if (value !== undefined) this.got(watched, read, value);
      } catch (error) {
        failed(error);
      }
    }
    watched.reading--;
    this.act('read');
  }

  private got(watched: Watched, read: ModelEvent[], value: ModelEvent | readonly ModelEvent[]): void {
    for (const event of Array.isArray(value) ? (value as ModelEvent[]) : [value as ModelEvent]) {
      if (event.type === 'ERROR' && !this.called.has(event) && isErrorEvent(event)) {
        watched.cut = { missed: event.object.details?.missed };
      } else read.push(event);
    }
  }

  private look(watched: Watched): void {
    const { watch } = watched;
    const { queued, dropped, position } = watch;
    expect(queued >= 0 && dropped >= 0, `counts of ${watched.name}`).toBe(true);
    expect(position === undefined).toBe(this.plan.replay === 0);
    expect(position ?? 0, `the position of ${watched.name}`).toBeGreaterThanOrEqual(watched.position);
    watched.position = position ?? 0;
  }

  private stats(): void {
    const { pending, watchers } = this.broadcaster.stats();
    expect(pending).toBeLessThanOrEqual(this.plan.maxPending);
    for (const { queued, dropped } of watchers) expect(queued >= 0 && dropped >= 0).toBe(true);
  }

  private shutdown(how: 'shutdown' | 'limited' | 'giveUp'): void {
    const limit = new AbortController();
    if (how === 'giveUp') limit.abort();
    if (how !== 'shutdown') this.limits.push(limit);
    if (how === 'giveUp') this.gaveUp = true;
    this.later(
      'shutdown',
      this.broadcaster.shutdown(how === 'shutdown' ? {} : { signal: limit.signal }).catch(() => {}),
    );
  }

  /** Everybody reads what is left, so that the shutdown ends, and then once more. */
  private async end(): Promise<void> {
    await macrotask();
    this.inside.length = 0;
    this.shutdown('shutdown');
    for (let quiet = 0; quiet < 2; ) {
      let more = false;
      for (const watched of this.watches) {
        const { length } = watched.reads.flat();
        // With a capacity of 0 there is an event only for a read that waits.
        this.touch(watched, 'tryNext');
        if (![...this.pending.values()].includes(`next of ${watched.name}`)) this.touch(watched, 'next');
        await macrotask();
        more ||= watched.reads.flat().length > length;
      }
      await macrotask();
      quiet = more ? 0 : quiet + 1;
    }
  }

  private check(): void {
    expect([...this.pending.values()], 'what pends after the end').toEqual([]);
    expect(this.clock.pending, 'timers after the end').toBe(0);
    for (const { signal } of [...this.limits, ...this.signals]) {
      const own = this.limits.some((limit) => limit.signal === signal) || signal.aborted ? 0 : 1;
      expect(getEventListeners(signal, 'abort').length, 'listeners after the end').toBe(own);
    }
    expect(this.broadcaster.watchers).toBe(0);
    const all: ModelEvent[] = [];
    for (let event = this.witness.tryNext(); event !== undefined; event = this.witness.tryNext()) all.push(event);
    expect(new Set(all), 'what was accepted').toEqual(this.accepted);
    const places = new Map(all.map((event, place) => [event, place]));
    for (const watched of this.watches) this.checkWatch(watched, all, places);
  }

  private checkWatch(watched: Watched, all: readonly ModelEvent[], places: ReadonlyMap<ModelEvent, number>): void {
    const { plan, name } = watched;
    const starts = this.startsOf(watched, all);
    const text = `${name} ${JSON.stringify(plan)}`;
    if (starts === undefined) {
      if (watched.left !== 'return' && watched.failure === undefined && !this.isAborted(watched)) {
        expect(watched.cut, `${text} is refused`).toEqual({ missed: undefined });
      }
      return;
    }
    const faults = starts.map((start) => this.faultOf(watched, all.slice(start), { start, places }));
    expect(faults.includes(undefined) ? undefined : `${text}: ${faults.join('; ') || 'begins nowhere'}`).toBeUndefined();
  }

  private isAborted({ plan: { signal } }: Watched): boolean {
    return signal !== undefined && (this.signals[signal] as AbortController).signal.aborted;
  }

  /** The places at which it may have begun; undefined: it was refused. */
  private startsOf(watched: Watched, all: readonly ModelEvent[]): number[] | undefined {
    const { plan, called, accepted, heads, after } = watched;
    const first = all.findIndex((event) => !called.has(event));
    const most = first < 0 ? all.length : first;
    const least = Math.max(0, ...all.map((event, place) => (accepted.has(event) ? place + 1 : 0)));
    const { replay } = plan.start;
    if (this.plan.replay === 0 || (after === undefined && !replay)) {
      return Array.from({ length: most - least + 1 }, (_, at) => least + at);
    }
    const starts = new Set<number>();
    let isRefused = false;
    for (let head = heads[0]; head <= heads[1]; head++) {
      const oldest = this.oldest(all, head);
      if (after === undefined) starts.add(Math.max(oldest, head - (replay as number)));
      else if (after >= oldest && after <= head) starts.add(after);
      else isRefused = true;
    }
    const wasRefused = isRefused && (starts.size === 0 || (watched.cut !== undefined && watched.cut.missed === undefined));
    return wasRefused ? undefined : [...starts];
  }

  /** The first event that the window holds. */
  private oldest(all: readonly ModelEvent[], head: number): number {
    const { replay, replayBytes = Infinity } = this.plan;
    let start = Math.max(0, head - replay);
    // An event of the past may have been dropped when a larger one came, and does not come back.
    let oldest = 0;
    for (let end = 1; end <= head; end++) {
      start = Math.max(oldest, end - replay);
      const bytes = (): number => all.slice(start, end).reduce((sum, event) => sum + sizeOf(event), 0);
      while (bytes() > replayBytes) start++;
      oldest = start;
    }
    return oldest;
  }

  /** How what it got differs from what it should have, if it began here. */
  private faultOf(
    watched: Watched,
    since: readonly ModelEvent[],
    { start, places }: { start: number; places: ReadonlyMap<ModelEvent, number> },
  ): string | undefined {
    const { plan, prefix } = watched;
    const delivered = watched.reads.flat();
    const topics = this.plan.hasTopics ? plan.topics : undefined;
    const due = since.filter(
      (event) => (!topics || topicsOf(event).some((topic) => topics.includes(topic))) && passes(plan.filter, event),
    );
    const first = prefix.filter((event) => passes(plan.filter, event));
    const wanted = [...first, ...due];
    const at = new Map(wanted.map((event, index) => [event, index]));
    if (plan.overflow === 'coalesce') return this.foldFault(watched, wanted);
    const got = delivered.map((event) => at.get(event) ?? -1);
    if (got.includes(-1))
      return `from ${start}: an event that is not due (${delivered.map(({ object: { id } }) => id)}, ${[...places.values()].length})`;
    if (watched.isNested) got.sort((a, b) => a - b);
    if (got.some((index, at) => index <= (got[at - 1] ?? -1))) return `from ${start}: not in order`;
    const skips: number[] = [];
    let next = 0;
    for (const index of got) {
      if (index > next) skips.push(index - next);
      next = index + 1;
    }
    const rest = wanted.length - next;
    const lost = skips.reduce((sum, skip) => sum + skip, 0);
    const { dropped } = watched.watch;
    const isWhole = watched.left === undefined && watched.failure === undefined && !this.isAborted(watched);
    if (plan.overflow === 'wait' && !this.gaveUp && (lost > 0 || (isWhole && rest > 0)))
      return `from ${start}: ${lost} + ${rest} lost with wait`;
    if (plan.overflow === 'disconnect' && lost > 0) return `from ${start}: ${lost} lost before others`;
    if (plan.told && watched.left !== 'return' && watched.failure === undefined) {
      const told = watched.gaps.reduce((sum, missed) => sum + missed, 0);
      if (told !== lost) return `from ${start}: ${lost} lost, and ${told} told`;
    }
    if (plan.overflow === 'disconnect' && isWhole) {
      if (rest > 0 !== (watched.cut !== undefined)) return `from ${start}: ${rest} lost, cut: ${watched.cut !== undefined}`;
      if (watched.cut && !((watched.cut.missed ?? 0) >= 1 && (watched.cut.missed ?? 0) <= rest))
        return `from ${start}: missed ${watched.cut.missed} of ${rest}`;
      return watched.cut && dropped < (watched.cut.missed as number) ? `from ${start}: ${dropped} dropped` : undefined;
    }
    if (isWhole ? dropped !== lost + rest : dropped < lost || dropped > lost + rest)
      return `from ${start}: ${lost} + ${rest} lost, ${dropped} dropped`;
    return undefined;
  }

  /** Folding what it got gives the same objects as folding everything. */
  private foldFault(watched: Watched, wanted: readonly ModelEvent[]): string | undefined {
    const placeOf = ({ object }: ModelEvent): number => wanted.findIndex((event) => event.object === object);
    const delivered = watched.reads.flat();
    if (watched.isNested) delivered.sort((a, b) => placeOf(a) - placeOf(b));
    if (delivered.some((event) => placeOf(event) < 0)) return 'an object that is not due';
    if (watched.left !== undefined || watched.failure !== undefined || this.isAborted(watched) || watched.cut) return undefined;
    for (const name of new Set(wanted.map(({ object }) => object.metadata.name))) {
      const isOfKey = (event: ModelEvent): boolean => event.object.metadata.name === name && event.type !== 'ERROR';
      const last = wanted.findLastIndex(isOfKey);
      const places = delivered.filter(isOfKey).map(placeOf);
      if (places.some((place, at) => place <= (places[at - 1] ?? -1))) return `${name} goes back`;
      const seen = delivered.findLast(isOfKey);
      const from = seen === undefined ? -1 : placeOf(seen);
      if (from === last) continue;
      // What was added again and deleted again is nothing.
      const rest = wanted.slice(from + 1).filter(isOfKey);
      if (rest.at(-1)?.type !== 'DELETED' || !rest.some(({ type }) => type === 'ADDED'))
        return `${name} is at ${from}, not at ${last}`;
    }
    const count = delivered.length + watched.watch.dropped;
    return count === wanted.length ? undefined : `${delivered.length} + ${watched.watch.dropped} of ${wanted.length}`;
  }
}

function passes(filter: number, { object: { id } }: ModelEvent): boolean {
  return filter < 2 || id % filter === 0;
}

function attempt<T>(code: () => T): T | undefined {
  try {
    return code();
  } catch (error) {
    if ((error as Error).name === 'AssertionError') throw error;
    return undefined;
  }
}
