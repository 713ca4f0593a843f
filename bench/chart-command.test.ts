// The command that draws charts: its input, its output, and its errors.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { drawCharts } from './chart-command.ts';
import { INPUT, row, table } from './chart-fixture.ts';
import { InputError, readReport } from './chart-input.ts';

describe('a report', () => {
  const text = JSON.stringify(INPUT);

  test('is read as it is written, with or without a ratio', () => {
    expect(readReport(text)).toEqual(INPUT);
    const without = JSON.stringify({ ...INPUT, workloads: [table('x', {}, [{ ...row('a', 'none', 1), ratio: null }])] });
    expect(readReport(without).workloads[0]?.rows[0]?.ratio).toBeNull();
  });

  test.each<[string, string]>([
    ['{', 'not JSON'],
    ['[]', 'the report should be an object, and is []'],
    ['{}', 'node should be a text, and is nothing'],
    [text.replace('"cores":2', '"cores":"2"'), 'cores should be a number, and is "2"'],
    [text.replace(/"workloads":.*/s, '"workloads":7}'), 'workloads should be a list, and is 7'],
    [text.replace('"better":"higher"', '"better":"hi"'), 'workloads[0].better should be higher, lower, and is "hi"'],
    [
      text.replace('"queue":"lossy"', '"queue":"leaky"'),
      'workloads[0].rows[3].queue should be bounded, unbounded, lossy, none, and is "leaky"',
    ],
    [text.replace('"median":300', '"median":null'), 'workloads[0].rows[2].median should be a number, and is null'],
    [text.replace('"burst":64', '"burst":[64]'), 'workloads[0].shape.burst should be a number, and is [64]'],
  ])('that is invalid is rejected with the path to the error: %#', (wrong, message) => {
    expect(() => readReport(wrong)).toThrow(new InputError(message));
  });
});

describe('the command', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'charts-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  function run(...args: string[]) {
    const out: string[] = [];
    const err: string[] = [];
    const code = drawCharts(args, { out: (line) => out.push(line), err: (line) => err.push(line) });
    return { code, out, err };
  }

  function file(name: string, text: string): string {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  }

  test('draws what it can, and says what it leaves out', () => {
    const some = { ...INPUT, workloads: INPUT.workloads.filter(({ workload }) => workload !== 'laggards') };
    const to = join(folder, 'a/b');
    const stack = ['fanout', 'list', 'sync', 'relist', 'queue', 'storm', 'replicas'].map((id) => `stack-${id}`);
    const paths = ['fanout-watchers', 'fanout-100', 'decode', ...stack].map((id) => join(to, `${id}.svg`));
    expect(run(file('in.json', JSON.stringify(some)), to)).toEqual({
      code: 0,
      out: paths,
      err: ['full', 'filling'].map((are) => `left out: ${join(to, `laggards-${are}.svg`)}: the report has no laggards, ${are}`),
    });
    for (const path of paths) expect(readFileSync(path, 'utf8')).toMatch(/^<svg .*<\/svg>\n$/s);
    expect(existsSync(join(to, 'laggards-full.svg'))).toBe(false);
  });

  test('draws each chart from the first file that has its figures', () => {
    const some = (workloads: string[], cpu: string): string =>
      file(
        `${cpu}.json`,
        JSON.stringify({ ...INPUT, cpu, workloads: INPUT.workloads.filter(({ workload }) => workloads.includes(workload)) }),
      );
    const to = join(folder, 'c');
    const { code, out } = run(some(['decode'], 'one'), some(['decode', 'storm'], 'two'), to);
    expect([code, out]).toEqual([0, ['decode', 'stack-storm'].map((id) => join(to, `${id}.svg`))]);
    const cpus = out.map((path) => /cores, (\w+),/.exec(readFileSync(path, 'utf8'))?.[1]);
    expect(cpus).toEqual(['one', 'two']);
  });

  test('an invalid or missing file is one line and exit code 2', () => {
    const bad = file('bad.json', '{"node":\n1}');
    const to = join(folder, 'none');
    expect(run(bad, to)).toEqual({ code: 2, out: [], err: [`charts: ${bad}: node should be a text, and is 1`] });
    const { code, err } = run(join(folder, 'missing.json'), to);
    expect([code, err.length]).toEqual([2, 1]);
    expect(err[0]).toMatch(/^charts: ENOENT: .*missing\.json/);
    expect(existsSync(to)).toBe(false);
  });

  test('invalid arguments are exit code 2; --help is not', () => {
    for (const args of [[], ['a'], ['a', 'b', 'c']]) expect(run(...args)).toMatchObject({ code: 2, out: [] });
    expect(run('--help')).toMatchObject({ code: 0, err: [] });
  });
});
