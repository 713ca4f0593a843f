// Deadlines that come, move and leave, compared with a plain list that is sorted at each step.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import type { Clock } from '../../src/watch/clock.ts';
import { type HeapNode, Timetable } from '../../src/watch/timetable.ts';
import { runs } from '../runs.ts';

interface Deadline extends HeapNode {
  readonly name: number;
}

const deadline = (name: number): Deadline => ({ name, heapRank: 0, heapTurn: 0, heapAt: -1 });

/** The array in which it all stands, from the earliest to the latest. */
class Model {
  readonly rows: { readonly name: number; dueMs: number; turn: number }[] = [];
  #turns: number = 0;

  set(name: number, dueMs: number): void {
    const found = this.rows.find((row) => row.name === name);
    if (found) found.dueMs = dueMs;
    else this.rows.push({ name, dueMs, turn: this.#turns++ });
    this.rows.sort((a, b) => a.dueMs - b.dueMs || a.turn - b.turn);
  }

  remove(name: number): void {
    const at = this.rows.findIndex((row) => row.name === name);
    if (at >= 0) this.rows.splice(at, 1);
  }
}

/** What is done to a deadline, from outside or when one is due. */
const kind = <K extends string>(name: K): fc.Arbitrary<K> => fc.constant(name);
const name = fc.nat(11);
const action = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: kind('after'), name, ms: fc.nat(60) }) },
  { weight: 3, arbitrary: fc.record({ kind: kind('within'), name, ms: fc.nat(60) }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('at'), name, ms: fc.constantFrom(-5, 0.5, 70, Infinity) }) },
  { weight: 3, arbitrary: fc.record({ kind: kind('remove'), name }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('clear') }) },
);
type Action = typeof action extends fc.Arbitrary<infer A> ? A : never;

const step = fc.oneof(
  { weight: 4, arbitrary: action },
  { weight: 2, arbitrary: fc.record({ kind: kind('wait'), ms: fc.integer({ min: 1, max: 40 }) }) },
);

/** A timetable and its model, to both of which the same is done. */
class Pair {
  readonly clock: FakeClock = new FakeClock();
  readonly model: Model = new Model();
  readonly called: string[] = [];
  readonly expected: string[] = [];
  readonly #nodes: Deadline[] = Array.from({ length: 12 }, (_, name) => deadline(name));
  readonly #table: Timetable<Deadline>;
  readonly #grainMs: number;
  /** Done when the deadlines are due, one each. */
  readonly #reactions: Action[];

  constructor(grainMs: number, reactions: readonly Action[]) {
    this.#grainMs = grainMs;
    this.#reactions = [...reactions];
    this.#table = new Timetable(
      this.clock,
      (one, nowMs) => {
        expect([one.heapAt, nowMs]).toEqual([-1, this.clock.now()]);
        this.called.push(`${one.name} at ${nowMs}`);
        this.#isNext(one.name);
        const reaction = this.#reactions.pop();
        if (reaction) this.do(reaction);
      },
      { grainMs },
    );
  }

  do(action: Action): void {
    if (action.kind === 'clear') {
      this.#table.clear();
      this.model.rows.length = 0;
    } else {
      const node = this.#nodes[action.name] as Deadline;
      if (action.kind === 'remove') this.#table.remove(node);
      else this.#table[action.kind](node, action.ms);
      const atMs = this.#timeOf(action);
      if (atMs === Infinity) this.model.remove(action.name);
      else this.model.set(action.name, Math.ceil(atMs / this.#grainMs) * this.#grainMs);
    }
    this.check();
  }

  #timeOf(action: Exclude<Action, { kind: 'clear' }>): number {
    if (action.kind === 'remove') return Infinity;
    if (action.kind === 'at') return action.ms;
    const timeMs = this.clock.now() + action.ms;
    const found = this.model.rows.find((row) => row.name === action.name);
    return action.kind === 'within' && found ? Math.min(timeMs, found.dueMs) : timeMs;
  }

  check(): void {
    const times = new Array<number>(this.#nodes.length).fill(Infinity);
    for (const { name, dueMs } of this.model.rows) times[name] = dueMs;
    expect(this.#nodes.map((one) => this.#table.timeOf(one))).toEqual(times);
    expect(this.#table.size).toBe(this.model.rows.length);
  }

  /** All that is due by now has been called, and one timer runs if anything waits. */
  checkRested(): void {
    this.check();
    expect(this.called).toEqual(this.expected);
    expect(this.model.rows[0]?.dueMs ?? Infinity).toBeGreaterThan(this.clock.now());
    expect(this.clock.pending).toBe(this.model.rows.length > 0 ? 1 : 0);
  }

  /** The model knows, too, that it is this one's turn. */
  #isNext(name: number): void {
    const first = this.model.rows.shift();
    expect(first?.name).toBe(name);
    expect(first?.dueMs).toBeLessThanOrEqual(this.clock.now());
    this.expected.push(`${name} at ${Math.max(first?.dueMs ?? NaN, this.clock.now())}`);
  }
}

test('each is called at its time and in its turn, whoever is added, moved and removed meanwhile, with one timer', () => {
  const steps = fc.array(step, { minLength: 1, maxLength: 60 });
  fc.assert(
    fc.property(fc.constantFrom(1, 1, 7), steps, fc.array(action, { maxLength: 12 }), (grainMs, all, reactions) => {
      const pair = new Pair(grainMs, reactions);
      for (const each of all) {
        if (each.kind !== 'wait') pair.do(each);
        else {
          pair.clock.advance(each.ms);
          pair.checkRested();
        }
      }
      pair.do({ kind: 'clear' });
      expect(pair.clock.pending).toBe(0);
      pair.clock.advance(1_000);
      pair.checkRested();
    }),
    { numRuns: runs(3_000) },
  );
});

describe('a hundred thousand deadlines', () => {
  /** Counts the comparisons that a heap makes: it reads a rank for each. */
  let looks = 0;
  class Counted implements HeapNode {
    #rank: number = 0;
    heapTurn: number = 0;
    heapAt: number = -1;

    get heapRank(): number {
      looks++;
      return this.#rank;
    }
    set heapRank(rank: number) {
      this.#rank = rank;
    }
  }

  test('are added, moved and removed in a few steps each', () => {
    const COUNT = 100_000;
    const table = new Timetable<Counted>(new FakeClock(), () => {});
    const all = Array.from({ length: COUNT }, () => new Counted());
    const most = (act: (one: Counted, index: number) => void): number => {
      let most = 0;
      all.forEach((one, index) => {
        looks = 0;
        act(one, index);
        most = Math.max(most, looks);
      });
      return most;
    };
    // At most two comparisons on each of the 17 levels, each of two to four reads.
    const LIMIT = 2 * 17 * 4 + 10;
    expect(most((one, index) => table.after(one, COUNT - index))).toBeLessThan(LIMIT);
    expect(most((one, index) => table.after(one, (index * 7_919) % COUNT))).toBeLessThan(LIMIT);
    expect(most((one) => table.remove(one))).toBeLessThan(LIMIT);
  });

  test('that are due at once are called in pieces, between which others have their turn', () => {
    let nowMs = 0;
    let timers: (() => void)[] = [];
    const clock: Clock = {
      now: () => nowMs,
      schedule: (_delayMs, callback) => {
        timers.push(callback);
        return () => {
          timers = timers.filter((timer) => timer !== callback);
        };
      },
    };
    const called: number[] = [];
    const table = new Timetable<Deadline>(clock, ({ name }) => {
      called.push(name);
      nowMs += 0.01;
    });
    for (let name = 0; name < 100_000; name++) table.at(deadline(name), 1);
    nowMs = 1;
    let pieces = 0;
    for (; timers.length > 0; pieces++) {
      const beganMs = nowMs;
      expect(timers.length).toBe(1);
      (timers.shift() as () => void)();
      expect(nowMs - beganMs).toBeLessThan(6);
    }
    expect(pieces).toBeGreaterThan(100);
    expect([called.length, called.findIndex((name, index) => name !== index)]).toEqual([100_000, -1]);
  });
});

test('what a call throws reaches the clock, and the rest are called', () => {
  const clock = new FakeClock();
  const called: number[] = [];
  const table = new Timetable<Deadline>(clock, ({ name }) => {
    called.push(name);
    if (name === 1) throw new Error('from one');
  });
  for (const name of [1, 2, 3]) table.after(deadline(name), 10);
  expect(() => clock.advance(10)).toThrow('from one');
  clock.advance(0);
  expect([called, clock.pending]).toEqual([[1, 2, 3], 0]);
});

test('a timer of the host that fires early calls nobody early', () => {
  const clock = new FakeClock();
  const short: Clock = { now: () => clock.now(), schedule: (ms, callback) => clock.schedule(Math.min(ms, 10), callback) };
  const called: number[] = [];
  const table = new Timetable<Deadline>(short, (_, nowMs) => called.push(nowMs));
  table.at(deadline(0), 25);
  clock.advance(100);
  expect([called, clock.pending]).toEqual([[25], 0]);
});
