// The same as copy.property.test.ts inside one process: a reader of a broadcaster that keeps a copy ends with the state.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Broadcaster, type WatchOptions } from '../../src/broadcast/broadcaster.ts';
import { filterTransitions } from '../../src/broadcast/filter.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { OVERFLOWS } from '../../src/watch/overflow.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { LOSSY } from '../policies.ts';
import { runs } from '../runs.ts';
import { turn } from '../unit/support.ts';
import { apply, type Change, type Copy, copyOf, isCaught, NAMES, State, same, type Thing, visible } from './copies.ts';

const RUNS = runs(750);
/** The suite's own, or more for more runs: a run took 8 ms on a loaded machine. */
const timeout = Math.max(30_000, 40 * RUNS);

const isOn = ({ n }: Thing): boolean => n % 3 > 0;
type Follow = (source: Broadcaster<WatchEvent>, options: WatchOptions<WatchEvent>) => Watch<WatchEvent>;

/** Ways to follow some objects, with those that a copy should have. */
const WAYS: Readonly<Record<string, { readonly follow: Follow; readonly which: (thing: Thing) => boolean }>> = {
  'all objects': { follow: (source, how) => source.watch(how), which: () => true },
  'objects that never change their side': {
    follow: (source, how) => source.watch({ ...how, filter: visible }),
    which: (object) => visible({ type: '', object }),
  },
  'objects that come and go': {
    follow: (source, how) => filterTransitions(source.watch(how), (object) => isOn(object as Thing)),
    which: isOn,
  },
};

const who = fc.nat(1);
const removals = fc.array(fc.tuple(fc.constantFrom(...NAMES), fc.boolean()), { minLength: 1, maxLength: 4 });
const steps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ op: fc.constant('change' as const), removals, rounds: fc.constantFrom(1, 1, 1, 50) }) },
    { weight: 4, arbitrary: fc.record({ op: fc.constant('read' as const), who, times: fc.integer({ min: 1, max: 5 }) }) },
    { weight: 1, arbitrary: fc.record({ op: fc.constantFrom('turn' as const, 'again' as const), who }) },
  ),
  { maxLength: 40 },
);
const plans = fc.tuple(steps, fc.record({ overflow: fc.constantFrom(...OVERFLOWS, 'coalesce' as const), capacity: fc.nat(5) }));
type Plan = typeof plans extends fc.Arbitrary<infer T> ? T : never;

/** Starts with the state, and again when it is told that it missed changes. */
class LocalReader {
  copy: Copy = new Map();
  watch: Watch<WatchEvent>;
  private readonly begin: () => Watch<WatchEvent>;

  constructor(begin: () => Watch<WatchEvent>) {
    this.begin = begin;
    this.watch = begin();
  }

  again(): void {
    void this.watch.return();
    this.copy = new Map();
    this.watch = this.begin();
  }

  read(times: number): void {
    for (let i = 0; i < times; i++) {
      const event = this.watch.tryNext();
      if (event === undefined) return;
      if (event.type === 'ERROR') this.again();
      else apply(this.copy, event);
    }
  }
}

/** Performs a plan with two readers. Returns whether one of them has a wrong copy, and was not told. */
async function isOff([plan, how]: Plan, { follow, which }: (typeof WAYS)[string]): Promise<boolean> {
  const state = new State();
  const source = new Broadcaster<WatchEvent>({ incoming: 0, keyOf: ({ object }) => (object as Thing).metadata.name });
  const begin = (): Watch<WatchEvent> => follow(source, { ...how, prefix: state.initial });
  const readers = [new LocalReader(begin), new LocalReader(begin)] as const;
  for (const step of plan) {
    if (step.op === 'change') {
      for (let i = 0; i < step.rounds; i++) {
        for (const [name, remove] of step.removals) void source.publish(state.change(name, remove));
      }
    } else if (step.op === 'turn') await turn();
    else if (step.op === 'read') readers[step.who as 0 | 1].read(step.times);
    else readers[step.who as 0 | 1].again();
  }
  let left = 0;
  do {
    for (const reader of readers) reader.read(100);
    await turn();
    left = readers[0].watch.queued + readers[1].watch.queued;
  } while (left > 0);
  const truth = copyOf(state.initial.filter(({ object }) => which(object)));
  return readers.some(({ copy, watch }) => !same(copy, truth) && !(LOSSY.includes(how.overflow) && watch.dropped > 0));
}

describe('a copy of what a broadcaster tells', { timeout }, () => {
  /** No plan leaves a reader with a wrong copy. */
  const holds = (way: (typeof WAYS)[string]): Promise<void> =>
    fc.assert(
      fc.asyncProperty(plans, async (plan) => !(await isOff(plan, way))),
      { numRuns: RUNS },
    );

  test.each(Object.entries(WAYS))('has %s', (_what, way) => holds(way));

  test.each<[string, Follow]>([
    ['a filter without transitions', (source, how) => source.watch({ ...how, filter: ({ object }) => isOn(object as Thing) })],
  ])('shows %s', async (_what, follow) => {
    expect(await isCaught(plans, (plan) => isOff(plan, { follow, which: isOn }))).toBe(true);
  });

  test('follows transitions by the previous objects of a fold, which are those that the reader knows', async () => {
    const follow: Follow = (source, how) =>
      filterTransitions(source.watch(how), (object) => isOn(object as Thing), {
        previousOf: (event) => (event as Change).previous,
      });
    await holds({ follow, which: isOn });
  });
});
