// What the plan computes, and that it explains what was measured.
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { INPUT, row, table } from './chart-fixture.ts';
import { type ChartInput, type ChartTable, InputError, readReport } from './chart-input.ts';
import { EVENT_BYTES, Impossible, planOf, type Wanted } from './plan/capacity.ts';
import { checksOf, MOST_ERROR } from './plan/checks.ts';
import { FIGURES, MILLION, output } from './plan/command.ts';
import { costOf, type Load, totalOf } from './plan/formula.ts';
import { simulateStorm } from './plan/storm.ts';
import { Figures, type Units, unitsOf } from './plan/units.ts';

const UNITS: Units = {
  ...{ event: 100, delivery: 10, byte: 0.001, write: 200, listed: 5, join: 400 },
  ...{ etcdWrite: 300, etcdWatch: 20, etcdList: 50, watcherBytes: 10_000, replicaBytes: 100e6 },
};

const LOAD: Load = { changes: 2, writes: 1, bytes: 3_000, deliveries: 100, lists: 3, listed: 7, joins: 4 };

test('costs are a sum of what was measured', () => {
  const cost = costOf(LOAD, UNITS, 3);
  expect(cost.each).toBe(2 * 100);
  expect(cost.shared).toBeCloseTo(100 * (10 + 2) + 200 + 3 * 7 * 15 + 4 * 400, 6);
  expect(cost.etcd).toBe(2 * (300 + 3 * 20) + 3 * 50);
  expect(totalOf(cost, 3)).toBe(3 * cost.each + cost.shared);
});

/** The figures that a machine with exactly these costs would have. */
function figuresOf(
  units: Units,
  spoil: (value: number, shape: ChartTable['shape'], replicas: number) => number = (x) => x,
): ChartInput {
  const load = (more: Partial<Load>): Load => ({
    ...LOAD,
    changes: 0,
    writes: 0,
    bytes: 1_000,
    deliveries: 0,
    lists: 0,
    joins: 0,
    ...more,
  });
  const tableOf = (shape: ChartTable['shape'], value: (replicas: number) => number): ChartTable => ({
    ...table(
      'replicas',
      shape,
      [1, 2, 3].map((count) =>
        row(`watchmux, ${count} replica${count > 1 ? 's' : ''}`, 'bounded', spoil(value(count), shape, count)),
      ),
    ),
  });
  const all = (more: Partial<Load>) => (count: number) => totalOf(costOf(load(more), units, count), count);
  const etcd = (more: Partial<Load>) => (count: number) => costOf(load(more), units, count).etcd;
  const step = { changes: 1, writes: 1, deliveries: 600, lists: 1 / 5, listed: 500, joins: 1 };
  const mixed = { what: 'mixed', watchers: 600, objectBytes: 1_000, listEvery: 5, joinEvery: 1 };
  return {
    ...INPUT,
    workloads: [
      tableOf({ what: 'watch', watchers: 6, objectBytes: 1_000, of: 'event' }, all({ changes: 1, deliveries: 6 })),
      tableOf({ what: 'watch', watchers: 600, objectBytes: 1_000, of: 'event' }, all({ changes: 1, deliveries: 600 })),
      tableOf(
        { what: 'watch', watchers: 600, objectBytes: 10_000, of: 'event' },
        all({ changes: 1, deliveries: 600, bytes: 10_000 }),
      ),
      tableOf({ what: 'write', of: 'replicas' }, all({ changes: 1, writes: 1 })),
      tableOf({ what: 'write', of: 'etcd' }, etcd({ changes: 1 })),
      tableOf({ what: 'list', of: 'list' }, () => (units.listed * 500) / 1_000),
      tableOf({ what: 'list', of: 'etcd' }, () => units.etcdList),
      tableOf({ what: 'join', of: 'watch' }, all({ joins: 1 })),
      tableOf({ what: 'join', of: 'watcher' }, () => units.watcherBytes / 1e3),
      tableOf({ what: 'join', of: 'resident' }, () => units.replicaBytes / 1e6),
      tableOf({ ...mixed, of: 'replicas' }, all(step)),
      tableOf({ ...mixed, of: 'etcd' }, etcd(step)),
    ],
  };
}

describe('the costs', () => {
  test('are found again in what they lead to, and explain it', () => {
    const figures = new Figures(figuresOf(UNITS));
    const units = unitsOf(figures);
    for (const [name, value] of Object.entries(UNITS)) expect(units[name as keyof Units], name).toBeCloseTo(value, 6);
    const checks = checksOf(figures, units);
    expect(checks).toHaveLength(8 * 3);
    for (const { what, error } of checks) expect(Math.abs(error), what).toBeLessThan(1e-6);
  });

  test('do not explain what is otherwise with three replicas', () => {
    const thrice = figuresOf(UNITS, (value, shape, count) => (shape.what === 'mixed' && count === 3 ? 3 * value : value));
    const figures = new Figures(thrice);
    const wrong = checksOf(figures, unitsOf(figures)).filter(({ error, of }) => Math.abs(error) > MOST_ERROR[of]);
    expect(wrong.map(({ what, replicas, error }) => [what, replicas, error.toFixed(2)])).toEqual([
      ['a mixed step', 3, '-0.67'],
      ['a mixed step, of etcd', 3, '-0.67'],
    ]);
  });

  test('are not guessed: a figure that is missing is told', () => {
    const report = figuresOf(UNITS);
    const without = { ...report, workloads: report.workloads.filter(({ shape }) => shape.what !== 'join') };
    expect(() => unitsOf(new Figures(without))).toThrow(
      new InputError('0 tables of replicas with {"what":"join","of":"watch"} instead of one'),
    );
  });
});

const WANTED: Wanted = {
  ...{ clients: 100_000, changes: 100, bytes: 1_000, concerns: 1_000, watchSeconds: 400, starts: 0, listed: 0 },
  ...{ objects: 10_000, share: 0.5, memoryBytes: 2e9, members: 3 },
};

describe('a plan', () => {
  test('has as many replicas as the load needs, and one more', () => {
    // 0.01 of a core for each replica; 100,000 deliveries of 10 µs, 100 writes of 200 µs and 250 watches of 400 µs for all: 1.12.
    const plan = planOf(WANTED, UNITS);
    expect(plan).toMatchObject({ replicas: 4, because: 'processor time' });
    expect(plan.cores).toBeCloseTo(1.12 + 4 * 0.01, 6);
    expect(plan.share).toBeCloseTo(0.01 + 1.12 / 4, 6);
    expect(plan.shareWithout).toBeCloseTo(0.01 + 1.12 / 3, 6);
    expect(plan.shareWithout).toBeLessThan(WANTED.share);
    expect(plan.etcdCores).toBeCloseTo((100 * (300 + 4 * 20)) / 1e6, 6);
    expect(plan.toClients).toBe(100_000 * (1_000 + EVENT_BYTES));
    expect([plan.toReplicas, plan.toMembers]).toEqual([100 * 1_000 * 4, 100 * 1_000 * 2]);
  });

  test('has more where watchers need the memory', () => {
    const plan = planOf({ ...WANTED, clients: 1_000_000, concerns: 1, watchSeconds: 40_000 }, UNITS);
    // 1 GB per 100,000 watchers, and 1.87 GB for them in each replica.
    expect(plan).toMatchObject({ replicas: 7, because: 'memory' });
    expect(plan.replicaBytes).toBeLessThan(WANTED.memoryBytes);
  });

  test('does not exist where more replicas do not help', () => {
    expect(() => planOf({ ...WANTED, changes: 5_000 }, UNITS)).toThrow(Impossible);
    expect(() => planOf({ ...WANTED, objects: 10_000_000 }, UNITS)).toThrow('a replica has no room for the objects');
    expect(planOf({ ...WANTED, changes: 4_900, concerns: 1 }, UNITS).replicas).toBeGreaterThan(100);
  });
});

describe('a storm', () => {
  test('lasts as long as its spread if the replica is quicker, and as long as the replica takes if it is not', () => {
    expect(simulateStorm({ clients: 100, spreadMs: 1_000, joinMs: 1, share: 0.5 })).toEqual({
      allLiveMs: 1_002,
      halfLiveMs: 512,
      longestWaitMs: 2,
    });
    const { allLiveMs, longestWaitMs } = simulateStorm({ clients: 1_000, spreadMs: 1_000, joinMs: 2, share: 0.5 });
    expect([allLiveMs, longestWaitMs]).toEqual([4_001, 3_001]);
  });

  test('that is spread over what the plan says keeps nobody waiting', () => {
    const plan = planOf(WANTED, UNITS);
    const clients = Math.ceil(WANTED.clients / 4 / 3);
    const share = 1 - plan.shareWithout;
    expect(simulateStorm({ clients, spreadMs: plan.spreadMs, joinMs: 0.4, share }).longestWaitMs).toBeLessThan(1);
  });
});

describe('what was measured', () => {
  const text = readFileSync(FIGURES, 'utf8');
  const figures = new Figures(readReport(text));
  const units = unitsOf(figures);

  test('is explained, but for the errors that are allowed', () => {
    const wrong = checksOf(figures, units).filter(({ error, of }) => !(Math.abs(error) <= MOST_ERROR[of]));
    expect(wrong).toEqual([]);
  });

  test('all costs are more than nothing', () => {
    for (const [name, value] of Object.entries(units)) expect(value, name).toBeGreaterThan(0);
  });

  test('docs/scaling.md shows what the command prints', () => {
    const page = readFileSync(new URL('../docs/scaling.md', import.meta.url), 'utf8');
    for (const part of output(text, MILLION).split('\n\n')) expect(page).toContain(part);
  });
});
