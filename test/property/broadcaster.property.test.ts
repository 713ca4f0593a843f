import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { BroadcastWatch } from '../../src/broadcast/broadcast-watch.ts';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import { isWatchError } from '../../src/watch/errors.ts';
import { CHANGES, isErrorEvent } from '../../src/watch/event.ts';
import { OVERFLOWS, type Overflow } from '../../src/watch/overflow.ts';
import type { Watch, WatchBatches } from '../../src/watch/watch.ts';
import { runs } from '../runs.ts';
import {
  ModelBroadcaster,
  type ModelEvent,
  type ModelPublish,
  type ModelRead,
  type ModelWatch,
  type Outcome,
  topicsOf,
} from './model.ts';

const FILTERS: Record<string, ((event: ModelEvent) => boolean) | undefined> = {
  all: undefined,
  even: (event) => event.object.id % 2 === 0,
  third: (event) => event.object.id % 3 === 0,
  none: () => false,
  throwing: (event) => {
    if (event.object.id % 17 === 16) throw new Error(`filter: ${event.object.id}`);
    return event.object.id % 5 !== 0;
  },
};

/** Where a watch starts: now, some events ago, or at another watch's position (negative: at any number). */
type Start = 'now' | { replay: number } | { after: number };

type Op =
  | {
      op: 'watch';
      capacity: number;
      overflow: Overflow;
      filter: string;
      prefix: number | undefined;
      told: boolean;
      topics: readonly string[] | undefined;
      start: Start;
    }
  | { op: 'publish' | 'tryPublish'; key: number; type: string; times: number }
  | { op: 'next' | 'batch' | 'tryNext' | 'tryBatch' | 'stop' | 'return' | 'abort' | 'look'; at: number; times: number }
  | { op: 'shutdown' | 'giveUp' }
  | { op: 'turn' };

const capacity = fc.oneof(fc.constantFrom(0, 1, 2, 3), fc.constantFrom(5, 17, 40, 1_000_000));
const at = fc.nat(9);
const startArb: fc.Arbitrary<Start> = fc.oneof(
  { weight: 3, arbitrary: fc.constant<Start>('now') },
  { weight: 1, arbitrary: fc.constantFrom(0, 1, 2, 7, 1000).map((replay): Start => ({ replay })) },
  { weight: 1, arbitrary: fc.integer({ min: -30, max: 9 }).map((after): Start => ({ after })) },
);
const opArb: fc.Arbitrary<Op> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant('watch' as const),
      capacity,
      overflow: fc.constantFrom(...OVERFLOWS),
      filter: fc.constantFrom(...Object.keys(FILTERS), 'all', 'all', 'all'),
      prefix: fc.constantFrom(undefined, undefined, undefined, 0, 1, 4),
      told: fc.boolean(),
      topics: fc.constantFrom(undefined, undefined, ['a'], ['a'], ['b'], ['b', 'a'], ['a', 'c', 'b'], ['c'], [], ['x']),
      start: startArb,
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      op: fc.constantFrom('publish' as const, 'tryPublish' as const),
      key: fc.nat(3),
      type: fc.constantFrom(...CHANGES, ...CHANGES, ...CHANGES, 'ERROR'),
      times: fc.oneof(fc.constant(1), fc.nat(6), fc.nat(80)),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      op: fc.constantFrom(
        'next' as const,
        'next' as const,
        'batch' as const,
        'tryNext' as const,
        'tryBatch' as const,
        'look' as const,
      ),
      at,
      times: fc.integer({ min: 1, max: 4 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constantFrom('stop' as const, 'return' as const, 'abort' as const),
      at,
      times: fc.constant(1),
    }),
  },
  { weight: 5, arbitrary: fc.record({ op: fc.constant('turn' as const) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constantFrom('shutdown' as const, 'giveUp' as const) }) },
);

interface Pair {
  real: Watch<ModelEvent>;
  batches: WatchBatches<ModelEvent>;
  model: ModelWatch;
  abort: AbortController;
  /** What `onGap` said, if there was one. */
  gaps: number[] | undefined;
}
interface Reading {
  model: ModelRead;
  outcome: Outcome | undefined;
}

/** ERROR events are compared by what they count. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  return value !== undefined && isErrorEvent(value as ModelEvent)
    ? { expired: (value as unknown as { object: { details?: { missed: number } } }).object.details?.missed }
    : value;
}

class Harness {
  readonly real: Broadcaster<ModelEvent>;
  readonly model: ModelBroadcaster;
  readonly pairs: Pair[] = [];
  readonly readings: Reading[] = [];
  readonly publishes: { model: ModelPublish; outcome: string | undefined }[] = [];
  private readonly limits: { replay: number; hasTopics: boolean };
  /** How often `topicsOf` was called, and how often it should have been. */
  private asked = 0;
  private attempts = 0;
  private id = 0;
  private closed = false;

  constructor(limits: { incoming: number; maxPending: number; replay: number; hasTopics: boolean }, capacity: number) {
    // A single topic may be a string, and none undefined.
    const toTopics = (event: ModelEvent): string | readonly string[] | undefined => {
      this.asked++;
      const [first, ...rest] = topicsOf(event);
      return rest.length === 0 ? first : topicsOf(event);
    };
    const { hasTopics, ...options } = limits;
    this.limits = limits;
    this.real = new Broadcaster<ModelEvent>({ ...options, stalledMs: 0, capacity, ...(hasTopics && { topicsOf: toTopics }) });
    this.model = new ModelBroadcaster(limits);
  }

  async run(ops: readonly Op[]): Promise<void> {
    for (const op of ops) {
      // Only a turn lets microtasks run: what stands between two turns happens in one go.
      if (op.op === 'turn') {
        await this.turn();
        this.compare();
      } else {
        this.perform(op);
      }
    }
    await this.turn();
    this.compare();
  }

  private event(key: number, type: string): ModelEvent {
    return { type, object: { id: this.id++, metadata: { name: `k${key}` } } };
  }

  private perform(op: Exclude<Op, { op: 'turn' }>): void {
    if (op.op === 'watch') this.watch(op);
    else if (op.op === 'publish' || op.op === 'tryPublish')
      for (let i = 0; i < op.times; i++) this.publish(op.op, this.event((op.key + i) % 4, op.type));
    else if (op.op === 'shutdown' || op.op === 'giveUp') this.shutdown(op.op === 'giveUp');
    else if ('at' in op) {
      const pair = this.pairs[op.at % Math.max(1, this.pairs.length)];
      if (pair !== undefined) for (let i = 0; i < op.times; i++) this.touch(pair, op.op);
    }
  }

  private watch(op: Extract<Op, { op: 'watch' }>): void {
    const filter = FILTERS[op.filter];
    const length = op.prefix;
    const prefix = length === undefined ? undefined : Array.from({ length }, (_, i) => this.event(i % 4, 'MODIFIED'));
    if (op.filter === 'throwing' && length) return; // see the unit test: such a watch fails at once
    const abort = new AbortController();
    const gaps: number[] = [];
    const options = {
      capacity: op.capacity,
      overflow: op.overflow,
      prefix,
      signal: abort.signal,
      onGap: op.told ? (missed: number) => gaps.push(missed) : undefined,
    };
    if (this.closed) {
      expect(() => this.real.watch(options)).toThrow(/shut down/);
      return;
    }
    const past = this.past(op.start);
    const topics = this.limits.hasTopics ? op.topics : undefined;
    // Without a window, positions and topics share the code path of plain watches.
    const more = { ...(topics && { topics }), ...past };
    const real = this.real.watch(
      filter === undefined ? { ...options, ...more } : { ...options, ...more, filter },
    ) as Watch<ModelEvent>;
    const model = this.model.watch({ capacity: op.capacity, overflow: op.overflow, filter, prefix, told: op.told, ...more });
    this.pairs.push({ real, batches: real.batches(), model, abort, gaps: op.told ? gaps : undefined });
  }

  private past(start: Start): { replay?: number; after?: number } {
    if (start === 'now' || this.limits.replay === 0) return {};
    if ('replay' in start) return start;
    if (start.after < 0) return { after: -1 - start.after };
    const pair = this.pairs[start.after % Math.max(1, this.pairs.length)];
    if (pair?.real.position === undefined) return {};
    expect(pair.real.position).toBe(pair.model.position);
    return { after: pair.real.position };
  }

  private publish(op: 'publish' | 'tryPublish', event: ModelEvent): void {
    if (this.limits.hasTopics && !this.closed) this.attempts++;
    if (op === 'tryPublish') {
      if (this.closed) expect(() => this.real.tryPublish(event)).toThrow(/shut down/);
      else expect(this.real.tryPublish(event)).toBe(this.model.tryPublish(event));
      return;
    }
    const entry: { model: ModelPublish; outcome: string | undefined } = { model: this.model.publish(event), outcome: undefined };
    this.publishes.push(entry);
    this.real.publish(event).then(
      () => {
        entry.outcome = 'accepted';
      },
      (error: unknown) => {
        entry.outcome = isWatchError(error) ? error.code : String(error);
      },
    );
  }

  private touch({ real, batches, model, abort }: Pair, op: string): void {
    if (op === 'next' || op === 'batch') {
      const reading: Reading = { model: model.read(op === 'batch'), outcome: undefined };
      this.readings.push(reading);
      (op === 'batch' ? batches.next() : real.next()).then(
        (result) => {
          reading.outcome = result.done ? { done: true } : { value: plain(result.value) };
        },
        (error: Error) => {
          reading.outcome = { error: error.message };
        },
      );
    } else if (op === 'tryNext') {
      expect(attempt(() => plain(real.tryNext()))).toEqual(attempt(() => model.tryNext()));
    } else if (op === 'tryBatch') {
      const now = (real as BroadcastWatch<ModelEvent>).tryBatch.bind(real);
      expect(attempt(() => plain(now()))).toEqual(attempt(() => model.tryBatch()));
    } else if (op === 'look') {
      this.compareCounts(real, model);
    } else if (op === 'stop') {
      real.stop();
      model.stop();
    } else if (op === 'return') {
      void real.return();
      model.return();
    } else {
      abort.abort();
      model.stop();
    }
  }

  private shutdown(giveUp: boolean): void {
    this.closed = true;
    if (giveUp) {
      this.real
        .shutdown({ signal: AbortSignal.abort(new Error('enough')) })
        .catch((error: Error) => expect(error.message).toBe('enough'));
      this.model.shutdown();
      if (!this.model.closed) this.model.force();
    } else {
      void this.real.shutdown();
      this.model.shutdown();
    }
  }

  private async turn(): Promise<void> {
    for (let i = 0; i < 20; i++) await Promise.resolve();
    this.model.turn();
  }

  private compare(): void {
    for (const { model, outcome } of this.readings) expect(outcome).toEqual(model.outcome);
    for (const { model, outcome } of this.publishes) expect(outcome).toBe(model.outcome);
    expect(this.asked).toBe(this.attempts);
    for (const { real, model, gaps } of this.pairs) {
      if (gaps) expect(gaps).toEqual(model.gaps);
      this.compareCounts(real, model);
    }
  }

  private compareCounts(real: Watch<ModelEvent>, model: ModelWatch): void {
    const position = this.limits.replay > 0 ? model.position : undefined;
    expect({ queued: real.queued, dropped: real.dropped, stopped: real.stopped, position: real.position }).toEqual({
      queued: model.queued,
      dropped: model.lost,
      stopped: model.stopped,
      position,
    });
  }
}

function attempt(code: () => unknown): unknown {
  try {
    return { value: code() };
  } catch (error) {
    return { error: (error as Error).message };
  }
}

const RUNS = runs(1_500);

describe('the broadcaster compared with an array per watcher (Exact, Ordered, Unique, Complete, Counted)', () => {
  it(
    'behaves like the arrays, with all policies, capacities, filters, topics and starts in the past mixed',
    async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.record({
            incoming: fc.constantFrom(0, 1, 3, 25),
            maxPending: fc.constantFrom(0, 2, 1000),
            replay: fc.constantFrom(0, 0, 1, 5, 30, 1000),
            hasTopics: fc.boolean(),
          }),
          fc.constantFrom(0, 1, 2, 40, 100),
          fc.array(opArb, { maxLength: 60, size: 'max' }),
          async (limits, own, ops) => {
            await new Harness(limits, own).run(ops);
          },
        ),
        { numRuns: RUNS },
      );
    },
    Math.max(120_000, 60 * RUNS),
  );
});
