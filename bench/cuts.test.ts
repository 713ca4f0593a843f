// The command that lets informers live through faults.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { component, isMissing } from '../test/components.ts';
import { CONTENDERS } from './cuts/copies.ts';
import { inTurn, SCENARIOS } from './cuts/scenarios.ts';
import { cellOf, tableOf } from './cuts/table.ts';

const START = fileURLToPath(new URL('start.mjs', import.meta.url));
const WELL = { againMs: 450, changes: 20, untold: 0, wrong: 0, lists: 0 };

function start(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [START, 'cuts', ...args], { encoding: 'utf8', timeout: 110_000 });
}

test('a cell says what became of an informer', () => {
  expect(cellOf(WELL)).toBe('0.5 s, all told');
  expect(cellOf({ ...WELL, untold: 3, lists: 1 })).toBe('0.5 s, 3 of 20 not told, 1 list');
  expect(cellOf({ ...WELL, againMs: undefined, untold: 20, wrong: 1, lists: 2 })).toBe(
    '**not back**, **1 object wrong**, 20 of 20 not told, 2 lists',
  );
  expect(tableOf(['a', 'b'], [['x', [WELL, WELL]]])).toBe(
    '| fault | a | b |\n|---|---|---|\n| x | 0.5 s, all told | 0.5 s, all told |',
  );
});

test('the first requests meet the faults of a script, and the others none', () => {
  const faults = [
    { kind: 'cut', after: -1 },
    { kind: 'refuse', code: 500 },
  ] as const;
  const script = inTurn(faults);
  const request = { number: 0, method: 'GET', url: new URL('http://h/'), isWatch: true };
  expect([script(request), script(request), script(request)]).toEqual([...faults, undefined]);
  expect(new Set(SCENARIOS.map(({ name }) => name)).size).toBe(SCENARIOS.length);
});

test('invalid arguments are rejected', () => {
  expect(start('--only', 'nosuch')).toMatchObject({ status: 1, stdout: '', stderr: expect.stringContaining('--only') });
  expect(start('--help').status).toBe(0);
});

test.skipIf(isMissing(component('kube-apiserver')))('informers live through a cut', { timeout: 120_000 }, () => {
  const { status, stdout, stderr } = start('--only', 'the connection breaks', '--limit-s', '20');
  expect(status, stderr).toBe(0);
  const [head = '', , row = ''] = stdout.trim().split('\n').slice(-3);
  expect(head).toBe(`| fault | ${CONTENDERS.map(({ name }) => name).join(' | ')} |`);
  const [, ours, restarted] = row.split(' | ');
  for (const cell of [ours, restarted]) expect(cell).toMatch(/^\d+\.\d s, all told$/);
});
