import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { type Budget, fails, isSettled, judge, judgeTimes, rowsOf, runShape } from './budgets.ts';
import type { Result } from './compare.ts';
import { digits, nameOf, tableOf } from './report.ts';
import { median, middleHalf, pairedRatios, quantile } from './stats.ts';
import { workloadOf } from './workloads.ts';

const BUDGETS: readonly Budget[] = JSON.parse(readFileSync(new URL('budgets.json', import.meta.url), 'utf8')).floors;

function result(rows: Record<string, readonly number[]>, more: Partial<Result> = {}): Result {
  return {
    workload: 'fanout',
    shape: { watchers: 10, burst: 64 },
    unit: 'million deliveries/s',
    better: 'higher',
    reference: 'Node events.on',
    rows: Object.entries(rows).map(([contender, rounds]) => ({
      contender,
      queue: 'bounded',
      rounds,
      median: median(rounds),
      min: Math.min(...rounds),
      max: Math.max(...rounds),
      ratio: null,
      ratioMin: null,
      ratioMax: null,
    })),
    leftOut: [],
    ...more,
  };
}

const budget: Budget = {
  name: 'ours against theirs',
  workload: 'fanout',
  shape: { burst: 64, watchers: 10 },
  row: 'ours',
  against: 'theirs',
  atLeast: 2,
  slack: 0.1,
};

describe('figures', () => {
  test('median, quantiles and the middle half', () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 2, 3])).toBe(2.5);
    expect(median([])).toBeNaN();
    expect(quantile(Float64Array.from([1, 2, 3, 4]), 0.5)).toBe(2);
    expect(quantile(Float64Array.from([1, 2, 3, 4]), 0.99)).toBe(4);
    expect(middleHalf([8, 1, 2, 3, 4, 5, 6, 7])).toEqual([2, 6]);
  });

  test('ratios are taken round by round', () => {
    expect(pairedRatios([2, 30, 8], [1, 10, 0])).toEqual([2, 3]);
  });
});

describe('a floor', () => {
  test('holds, holds within its slack, or does not hold', () => {
    const verdicts = [[20], [19], [17]].map((ours) => judge(budget, [result({ ours, theirs: [10] })]).verdict);
    expect(verdicts).toEqual(['holds', 'holds, with slack', 'BELOW']);
  });

  test('may be a ceiling, and may be for an absolute figure', () => {
    const ceiling: Budget = { name: 'bytes', workload: 'fanout', shape: budget.shape, row: 'ours', atMost: 250, slack: 0.1 };
    const verdicts = [250, 270, 280].map((bytes) => judge(ceiling, [result({ ours: [bytes] })]).verdict);
    expect(verdicts).toEqual(['holds', 'holds, with slack', 'BELOW']);
  });

  test('compares with the best of several rows, whichever direction is better', () => {
    const rows = { ours: [10, 10], a: [4, 4], b: [5, 5] };
    const best: Budget = { ...budget, against: ['a', 'b', 'absent'] };
    expect(judge(best, [result(rows)]).measured).toBe(2);
    expect(judge(best, [result(rows, { better: 'lower' })]).measured).toBe(2.5);
  });

  test('may compare a row with itself in another table', () => {
    const other: Budget = { ...budget, against: 'ours', againstShape: { watchers: 1, burst: 64 } };
    const tables = [result({ ours: [30] }), result({ ours: [10] }, { shape: { watchers: 1, burst: 64 } })];
    expect(judge(other, tables).measured).toBe(3);
  });

  test('is judged by the first time at which it holds, and by the last if it never does', () => {
    const time = (...ours: number[]): Result[] => [result({ ours, theirs: ours.map(() => 10) })];
    expect(judgeTimes(budget, [time(10), time(30, 40), time(90)])).toMatchObject({ measured: 3.5, times: 2, verdict: 'holds' });
    expect(judgeTimes(budget, [time(10), time(17), time(11)])).toMatchObject({ measured: 1.1, times: 3, verdict: 'BELOW' });
    expect(judgeTimes(budget, [time(25)])).toMatchObject({ measured: 2.5, times: 1 });
    expect(judgeTimes(budget, [time(10), []])).toMatchObject({ times: 1, verdict: 'BELOW' });
    expect(judgeTimes(budget, [[]]).verdict).toBe('not measured');
  });

  test('is not measured when a row is missing, and says why', () => {
    const judged = judge(budget, [result({ ours: [10] }, { leftOut: [{ contender: 'theirs', why: 'not here' }] })]);
    expect(judged).toMatchObject({ verdict: 'not measured', note: 'theirs: not here' });
    expect(judge(budget, []).verdict).toBe('not measured');
  });
});

describe('the check fails', () => {
  const none: ReadonlyMap<string, string> = new Map();

  test('below a floor, and not above', () => {
    expect([20, 19, 17].map((ours) => fails(judge(budget, [result({ ours: [ours], theirs: [10] })]), none))).toEqual([
      false,
      false,
      true,
    ]);
  });

  test('if the row of a floor is missing, unless it cannot be measured here', () => {
    const withoutOurs = judge(budget, [result({ theirs: [10] }, { leftOut: [{ contender: 'ours', why: 'too slow' }] })]);
    expect(fails(withoutOurs, none)).toBe(true);
    expect(fails(judge(budget, []), none)).toBe(true);
    expect(fails(withoutOurs, new Map([['ours', 'not here']]))).toBe(false);
  });

  test('not if only the other row is missing, or if there is no floor', () => {
    expect(fails(judge(budget, [result({ ours: [10] })]), none)).toBe(false);
    const { atLeast: _, ...told } = budget;
    expect(fails(judge(told, []), none)).toBe(false);
  });
});

test('a floor needs no more rounds if most of them hold it with a fifth of room, in either direction', () => {
  const settled = (floor: Budget, ours: readonly number[]): boolean =>
    isSettled(judge(floor, [result({ ours, theirs: ours.map(() => 10) })]));
  expect(settled(budget, [25, 25, 25, 25, 12])).toBe(true);
  expect(settled(budget, [25, 25, 23, 23, 23])).toBe(false);
  expect(settled(budget, [12, 12, 12])).toBe(false);
  const { atLeast: _, ...told } = budget;
  expect(settled(told, [12])).toBe(true);
  expect(settled({ ...told, atMost: 2 }, [16, 16, 16, 30])).toBe(true);
  expect(settled({ ...told, atMost: 2 }, [16, 16, 18, 18])).toBe(false);
  expect(isSettled(judge(budget, []))).toBe(true);
});

describe('budgets.json', () => {
  test.each(BUDGETS.map((each) => [each.name, each] as const))('%s names an existing table and rows', (_, each) => {
    const workload = workloadOf(each.workload);
    for (const shape of [each.shape, each.againstShape ?? each.shape]) {
      const run = runShape(workload, shape);
      expect(run).toEqual(runShape(workload, each.shape));
      const names = workload.entries(run).map(({ name }) => name);
      for (const row of rowsOf(each)) expect(names).toContain(row);
      const added = workload.figures(run).map((figure) => nameOf({ ...run, ...figure.shape }));
      expect(added).toContain(nameOf({ ...run, ...shape }));
    }
  });

  test('each floor has its slack, and a reason', () => {
    for (const { atLeast, atMost, slack, why } of BUDGETS) {
      if (atLeast === undefined && atMost === undefined) continue;
      expect(slack).toBeGreaterThan(0);
      expect(why).toMatch(/\w/);
    }
  });
});

test('a table has a row for each contender, best first, and names the missing ones', () => {
  const table = tableOf(result({ slow: [1, 2, 3], fast: [1234, 1234, 1234] }, { leftOut: [{ contender: 'x', why: 'y' }] }));
  expect(table.split('\n').map((line) => line.trim().split(/ {2,}/)[0])).toEqual([
    'fanout: watchers 10, burst 64 - million deliveries/s, higher is better',
    'queue',
    'fast',
    'slow',
    'left out: x: y',
  ]);
  expect(table).toContain('1,234');
  expect([digits(0.1234), digits(1.234), digits(12.34), digits(null)]).toEqual(['0.123', '1.23', '12.3', '-']);
});
