import fc from 'fast-check';
import { Broadcaster, type Overflow } from '../../src/broadcast/broadcaster.ts';
import type { History } from '../../src/testing/checkers/history.ts';
import { HistoryRecorder } from '../../src/testing/recorder/history-recorder.ts';
import type { ErrorEvent } from '../../src/watch/event.ts';
import { OVERFLOWS } from '../../src/watch/overflow.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { type ModelEvent, topicsOf } from './model.ts';

// Asynchronous publishers and readers on one broadcaster. The scheduler orders every step. A plan is plain data, so a failure
// shrinks to a few actors and can be replayed.

export type Style = 'for-await' | 'batches' | 'try' | 'pending' | 'stalled' | 'mixed';
export type Leave = 'stay' | 'break' | 'throw' | 'stop' | 'abort';
export type Deed =
  | 'none'
  | 'publish'
  | 'watch'
  | 'read-self'
  | 'batch-self'
  | 'read-other'
  | 'stop-self'
  | 'stop-other'
  | 'return-self'
  | 'throw'
  | 'shutdown';

export interface ReaderPlan {
  readonly overflow: Overflow;
  readonly capacity: number;
  readonly filter: 'all' | 'even' | 'throwing';
  readonly topics: readonly string[] | undefined;
  readonly prefix: number | undefined;
  readonly style: Style;
  readonly late: boolean;
  readonly leave: Leave;
  readonly after: number;
  readonly inFilter: Deed;
  readonly inGap: Deed;
}

export interface Plan {
  readonly capacity: number;
  readonly incoming: number;
  readonly maxPending: number;
  readonly readers: readonly ReaderPlan[];
  readonly publishers: readonly { readonly how: 'await' | 'fire' | 'try'; readonly count: number; readonly key: number }[];
  readonly shutdown: 'end' | 'early' | 'give-up';
}

const TYPES = ['ADDED', 'MODIFIED', 'DELETED', 'MODIFIED', 'BOOKMARK', 'ADDED', 'ERROR'];
const LETS_GO: readonly Leave[] = ['stay', 'stay', 'break', 'throw', 'stop', 'abort'];
const STYLES: readonly Style[] = ['for-await', 'batches', 'try', 'pending', 'stalled', 'mixed'];

export function planArb(
  only: { overflows?: readonly Overflow[]; deeds?: readonly Deed[]; topics?: readonly ReaderPlan['topics'][] } = {},
): fc.Arbitrary<Plan> {
  const { overflows = OVERFLOWS, deeds = ['none'], topics = [undefined] } = only;
  const reader: fc.Arbitrary<ReaderPlan> = fc.record({
    overflow: fc.constantFrom(...overflows),
    capacity: fc.constantFrom(0, 1, 2, 3, 5, 1000),
    filter: fc.constantFrom('all', 'all', 'even', 'throwing'),
    topics: fc.constantFrom(...topics),
    prefix: fc.constantFrom(undefined, undefined, undefined, 0, 2),
    style: fc.constantFrom(...STYLES),
    late: fc.boolean(),
    leave: fc.constantFrom(...LETS_GO),
    after: fc.nat(12),
    inFilter: fc.constantFrom(...deeds),
    inGap: fc.constantFrom(...deeds),
  });
  return fc.record({
    capacity: fc.constantFrom(1, 2, 100),
    incoming: fc.constantFrom(0, 1, 3, 25),
    maxPending: fc.constantFrom(0, 2, 10_000),
    readers: fc.array(reader, { minLength: 1, maxLength: 5 }),
    publishers: fc.array(
      fc.record({ how: fc.constantFrom('await', 'fire', 'try'), count: fc.integer({ min: 1, max: 25 }), key: fc.nat(3) }),
      { minLength: 1, maxLength: 3 },
    ),
    shutdown: fc.constantFrom('end', 'end', 'early', 'give-up'),
  });
}

/** Runs a plan to its end. Returns what happened. */
export async function perform(plan: Plan, scheduler: fc.Scheduler): Promise<History<ModelEvent>> {
  return new Stage(plan, scheduler).run();
}

class Stage {
  private readonly recorder: HistoryRecorder<ModelEvent>;
  private readonly plan: Plan;
  private readonly scheduler: fc.Scheduler;
  /** By reader. A reader that came after the shutdown has none. */
  private readonly watches: (Watch<ModelEvent | ErrorEvent> | undefined)[] = [];
  private readonly extra: Watch<ModelEvent>[] = [];
  private ids = 0;
  /** How many actions re-entrant code may still perform. The limit ensures termination. */
  private deeds = 12;

  constructor(plan: Plan, scheduler: fc.Scheduler) {
    const { capacity, incoming, maxPending, readers } = plan;
    this.plan = plan;
    this.scheduler = scheduler;
    const options = { capacity, incoming, maxPending, ...(readers.some(({ topics }) => topics) && { topicsOf }) };
    this.recorder = new HistoryRecorder(new Broadcaster<ModelEvent>({ ...options, stalledMs: 0 }), options);
  }

  async run(): Promise<History<ModelEvent>> {
    const { readers, publishers, shutdown } = this.plan;
    const comesBack = readers.some(({ inFilter, inGap }) => inFilter !== 'none' || inGap !== 'none');
    // An actor that publishes inside a publish cannot see which was first. A watcher of all events can.
    if (comesBack) this.extra.push(this.recorder.watch({ name: 'witness', overflow: 'drop-newest', capacity: 1_000_000 }));
    for (const [index, plan] of readers.entries()) if (!plan.late) this.enter(plan, index);
    for (const publisher of publishers) void this.publisher(publisher);
    void this.step('late readers').then(() => {
      for (const [index, plan] of readers.entries()) if (plan.late) this.enter(plan, index);
    });
    if (shutdown === 'early') void this.step('shutdown').then(() => this.shutdown());
    await this.scheduler.waitIdle();
    await this.leave(shutdown === 'give-up');
    this.deeds = 0;
    return this.recorder.history();
  }

  /** The remaining actors leave, or the shutdown is aborted. */
  private async leave(giveUp: boolean): Promise<void> {
    if (giveUp) {
      await this.recorder.shutdown({ signal: AbortSignal.abort(new Error('enough')) }).catch(() => {});
    } else {
      for (const [index, { style }] of this.plan.readers.entries()) if (style === 'stalled') this.watches[index]?.stop();
      this.shutdown();
    }
    await this.scheduler.waitIdle();
    for (const watch of [...this.watches, ...this.extra]) {
      if (watch === undefined) continue;
      // Read what is left. Actors that read on their own have already reached the end.
      while (attempt(() => watch.tryNext()) !== undefined) {}
      if (watch.stopped) void watch.next().catch(() => {});
    }
    await this.scheduler.waitIdle();
  }

  private shutdown(): void {
    void this.recorder.shutdown().catch(() => {});
  }

  private step(label: string): Promise<unknown> {
    return this.scheduler.schedule(Promise.resolve(), label);
  }

  private event(key: number): ModelEvent {
    const id = this.ids++;
    return { type: TYPES[(id + key) % TYPES.length] as string, object: { id, metadata: { name: `k${key % 4}` } } };
  }

  private async publisher({ how, count, key }: Plan['publishers'][number]): Promise<void> {
    for (let i = 0; i < count; i++) {
      if (how === 'try') attempt(() => this.recorder.tryPublish(this.event(key + i)));
      else {
        const published = this.recorder.publish(this.event(key + i)).catch(() => {});
        if (how === 'await') await published;
      }
      if (how !== 'fire' || i % 5 === 4) await this.step('published');
    }
  }

  private enter(plan: ReaderPlan, index: number): void {
    const abort = new AbortController();
    const { capacity, overflow } = plan;
    const even = plan.filter === 'even';
    const filter = (event: ModelEvent): boolean => {
      this.do(plan.inFilter, index, event);
      if (plan.filter === 'throwing' && event.object.id % 11 === 10) throw new Error(`filter ${event.object.id}`);
      return !even || event.object.id % 2 === 0;
    };
    const watch = attempt(() =>
      this.recorder.watch({
        capacity,
        overflow,
        signal: abort.signal,
        name: `reader ${index}`,
        prefix: plan.prefix === undefined ? undefined : Array.from({ length: plan.prefix }, (_, key) => this.event(key)),
        ...((plan.filter !== 'all' || plan.inFilter !== 'none') && { filter }),
        ...(plan.topics && { topics: plan.topics }),
        onGap: () => this.do(plan.inGap, index),
      }),
    );
    if (watch === undefined) return; // shut down already
    this.watches[index] = watch;
    void this.reader(plan, watch, abort).catch(() => {});
  }

  private do(deed: Deed, index: number, event?: ModelEvent): void {
    if (deed === 'none' || this.deeds <= 0 || (event !== undefined && event.object.id % 3 !== 0)) return;
    this.deeds--;
    const own = this.watches[index];
    const other = this.watches[(index + 1) % this.watches.length];
    if (deed === 'publish') void this.recorder.publish(this.event(0)).catch(() => {});
    else if (deed === 'watch') void attempt(() => this.extra.push(this.recorder.watch({ overflow: 'drop-newest', capacity: 2 })));
    else if (deed === 'read-self') void own?.next().catch(() => {});
    else if (deed === 'batch-self')
      void own
        ?.batches()
        .next()
        .catch(() => {});
    else if (deed === 'read-other') void other?.next().catch(() => {});
    else if (deed === 'stop-self') own?.stop();
    else if (deed === 'return-self') void own?.return();
    else if (deed === 'stop-other') other?.stop();
    else if (deed === 'shutdown') this.shutdown();
    else if (event === undefined) throw new Error('onGap');
  }

  private async reader(plan: ReaderPlan, watch: Watch<ModelEvent | ErrorEvent>, abort: AbortController): Promise<void> {
    let left = plan.after;
    /** Returns whether to continue. May throw out of the loop. */
    const goOn = async (): Promise<boolean> => {
      await this.step('read');
      if (plan.leave === 'stay' || left-- > 0) return true;
      if (plan.leave === 'throw') throw new Error('reader');
      if (plan.leave === 'stop') watch.stop();
      if (plan.leave === 'abort') abort.abort();
      return plan.leave !== 'break';
    };
    if (plan.style === 'for-await') {
      for await (const _ of watch) if (!(await goOn())) break;
    } else if (plan.style === 'batches') {
      for await (const _ of watch.batches()) if (!(await goOn())) break;
    } else if (plan.style === 'stalled') {
      await goOn();
    } else {
      await this.readByHand(plan.style, watch, goOn);
    }
  }

  private async readByHand(style: Style, watch: Watch<ModelEvent | ErrorEvent>, goOn: () => Promise<boolean>): Promise<void> {
    const batches = watch.batches();
    for (let turn = 0; turn < 60; turn++) {
      if (style === 'pending') {
        const reads = [watch.next(), batches.next(), watch.next()];
        const results = await Promise.all(reads.map((read) => read.catch(() => ({ done: false }))));
        if (results.some(({ done }) => done)) return;
      } else if (style === 'mixed' && turn % 3 === 0) {
        if ((await batches.next()).done) return;
      } else {
        watch.tryNext();
        if (style === 'mixed' && (await watch.next()).done) return;
        if (watch.stopped && watch.queued === 0) return;
      }
      if (!(await goOn())) {
        await watch.return();
        return;
      }
    }
    await watch.return();
  }
}

function attempt<T>(code: () => T): T | undefined {
  try {
    return code();
  } catch {
    return undefined;
  }
}
