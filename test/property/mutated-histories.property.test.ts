// A history that was recorded keeps the guarantees. Changed in one place, it does not, and a checker says so.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkHistory } from '../../src/testing/checkers/checkers.ts';
import type { Step } from '../../src/testing/checkers/history.ts';
import { isErrorEvent } from '../../src/watch/event.ts';
import { OVERFLOWS } from '../../src/watch/overflow.ts';
import { runs } from '../runs.ts';
import { type Plan, perform, planArb } from './actors.ts';
import type { ModelEvent } from './model.ts';

const RUNS = runs(100, { least: 40 });
type One = Step<ModelEvent>;
type Delivered = Extract<One, { step: 'delivered' }>;

/** Readers that read to the end, and do nothing else. Of one that leaves, nobody knows what it would have got. */
function calm(plan: Plan): Plan {
  const readers = plan.readers.map((reader) => ({
    ...reader,
    leave: 'stay' as const,
    filter: reader.filter === 'throwing' ? ('even' as const) : reader.filter,
    style: reader.style === 'batches' ? reader.style : ('for-await' as const),
  }));
  // Of publishes that wait together, only the readers tell which was first.
  const publishers = plan.publishers.map((publisher) => ({ ...publisher, how: 'try' as const }));
  return { ...plan, readers, publishers, shutdown: 'end' };
}

/** Changes one step of a kind, picked by a number. Returns undefined if there is none that could be changed. */
type Mutation = (steps: readonly One[], pick: number) => One[] | undefined;

function change<K extends One['step']>(
  kind: K,
  how: (step: Extract<One, { step: K }>, pick: number) => readonly One[] | undefined,
): Mutation {
  return (steps, pick) => {
    const at = steps.flatMap((step, index) => (step.step === kind && how(step as never, pick) ? [index] : []));
    const index = at[pick % at.length];
    if (index === undefined) return undefined;
    return [...steps.slice(0, index), ...(how(steps[index] as never, pick) as One[]), ...steps.slice(index + 1)];
  };
}

/** Changes the events of a read, other than the ERROR of a cut. */
function changeOne(how: (event: ModelEvent) => readonly ModelEvent[]): Mutation {
  return change('delivered', (step: Delivered, pick) => {
    const at = (pick >> 8) % Math.max(1, step.events.length);
    const event = step.events[at];
    if (event === undefined || step.events.some((one) => isErrorEvent(one))) return undefined;
    return [{ ...step, events: [...step.events.slice(0, at), ...how(event), ...step.events.slice(at + 1)] }];
  });
}

const more = (pick: number): number => (pick & 256 ? 1 : -1);
const MUTATIONS: Record<string, { readonly mutate: Mutation; readonly folds?: boolean }> = {
  'an event is missing': { mutate: changeOne(() => []) },
  'an event comes twice': { mutate: changeOne((event) => [event, event]), folds: true },
  'an event has another type': {
    mutate: changeOne((event) => [{ ...event, type: event.type === 'MODIFIED' ? 'ADDED' : 'MODIFIED' }]),
  },
  'an event has another object': { mutate: changeOne((event) => [{ ...event, object: { ...event.object } }]), folds: true },
  'two events change places': {
    mutate: change('delivered', (step) => {
      const [first, second, ...rest] = step.events;
      if (!first || !second || isErrorEvent(second)) return undefined;
      return [{ ...step, events: [second, first, ...rest] }];
    }),
  },
  'a read never settles': { mutate: change('delivered', () => []), folds: true },
  'a read gets the end': {
    mutate: change('delivered', ({ watcher, read, events }) =>
      events.length === 0 ? undefined : [{ step: 'end', watcher, read }],
    ),
  },
  'an end is not seen': { mutate: change('end', () => []), folds: true },
  'a gap is not told': { mutate: change('gap', () => []), folds: true },
  'a gap is told wrong': { mutate: change('gap', (step, pick) => [{ ...step, missed: step.missed + more(pick) }]), folds: true },
  'a gap is told that is none': {
    mutate: change('delivered', (step) =>
      step.events.length === 0 ? undefined : [{ step: 'gap', watcher: step.watcher, missed: 1 }, step],
    ),
    folds: true,
  },
  'a loss is counted wrong': { mutate: change('counts', (step, pick) => [{ ...step, dropped: step.dropped + more(pick) }]) },
  'the queue is counted wrong': { mutate: change('counts', (step) => [{ ...step, queued: step.queued + 1 }]), folds: true },
  'a cut counts wrong': {
    mutate: change('delivered', (step, pick) => {
      const events = step.events.map((event): ModelEvent => {
        if (!isErrorEvent(event)) return event;
        const { object } = event;
        const details = { missed: (object.details?.missed ?? 0) + more(pick) };
        return { ...(event as ModelEvent), object: { ...object, details } as unknown as ModelEvent['object'] };
      });
      return step.events.some((event) => isErrorEvent(event)) ? [{ ...step, events }] : undefined;
    }),
  },
  'a timer is left': { mutate: change('leftovers', (step) => [{ ...step, timers: 1 }]), folds: true },
};

test.each(Object.entries(MUTATIONS))('%s', { timeout: Math.max(60_000, 200 * RUNS) }, async (_, { mutate, folds = false }) => {
  let changed = 0;
  const overflows = OVERFLOWS.filter((overflow) => folds || overflow !== 'coalesce');
  await fc.assert(
    fc.asyncProperty(planArb({ overflows }), fc.scheduler(), fc.nat(0xfffff), async (plan, scheduler, pick) => {
      const history = await perform(calm(plan), scheduler);
      expect(checkHistory(history)).toEqual([]);
      const steps = mutate(history.steps, pick);
      if (steps === undefined) return;
      changed++;
      expect(checkHistory({ ...history, steps })).not.toEqual([]);
    }),
    { numRuns: RUNS },
  );
  expect(changed).toBeGreaterThan(0);
});
