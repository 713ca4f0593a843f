// The workload `stack`: its bytes, its answers, and each of its contenders.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { Report } from './report.ts';
import { PodCollection, sumOf } from './stack/collection.ts';
import { checked } from './stack/contender-process.ts';
import { prepareStalledHandler } from './stack/stalled-handler.ts';

interface Pod {
  readonly metadata: { readonly name: string; readonly namespace: string; readonly resourceVersion: string };
}

const entry = ({ metadata }: Pod): [string, string] => [`${metadata.namespace}/${metadata.name}`, metadata.resourceVersion];

test('Pods have about 4 KB, names of their own, and are always the same', () => {
  const pods = new PodCollection(500);
  const items = Array.from({ length: 500 }, (_, pod) => pods.item(pod));
  expect(new Set(items.map((item) => entry(JSON.parse(item))[0])).size).toBe(500);
  for (const item of items) {
    expect(item.length).toBeGreaterThan(3_700);
    expect(item.length).toBeLessThan(4_700);
    expect(Buffer.byteLength(item)).toBe(item.length);
  }
  expect(new PodCollection(500).sum).toBe(pods.sum);
  expect(new PodCollection(3).item(2)).toBe(items[2]);
});

test('the state after updates is what folding the events gives', () => {
  const pods = new PodCollection(7);
  const state = new Map(Array.from({ length: 7 }, (_, pod) => entry(JSON.parse(pods.added(pod)).object)));
  expect(sumOf(state)).toBe(pods.sum);
  for (const count of [1, 6, 7, 3, 20]) {
    const before = pods.updates;
    pods.update(count);
    for (let update = before + 1; update <= pods.updates; update++) {
      const { type, object } = JSON.parse(pods.modified(update));
      expect(type).toBe('MODIFIED');
      expect(pods.updatesAt(object.metadata.resourceVersion)).toBe(update);
      state.set(...entry(object));
    }
    expect(sumOf(state)).toBe(pods.sum);
    expect(new Map(Array.from({ length: 7 }, (_, pod) => entry(JSON.parse(pods.item(pod)))))).toEqual(state);
    expect(pods.updatesAt(pods.version)).toBe(pods.updates);
  }
  expect(JSON.parse(pods.initialEnd).object.metadata.resourceVersion).toBe(pods.version);
  expect(['x', '', String(Number(pods.version) + 1), '1'].map((version) => pods.updatesAt(version))).toEqual(
    new Array(4).fill(undefined),
  );
});

test('a wrong answer is detected', () => {
  const step = { wallMs: 1, cpuMs: 1, peakMB: 1, size: 3, added: 3, updated: 5, sum: 'a' };
  const truth = { objects: 3, updates: 5, sum: 'a' };
  expect(checked(step, truth)).toBe(step);
  for (const wrong of [{ size: 2 }, { added: 4 }, { updated: 4 }, { sum: 'b' }]) {
    expect(() => checked({ ...step, ...wrong }, truth)).toThrow('wrong answer');
  }
});

test('a handler that stalls has one change per object', async () => {
  expect(await prepareStalledHandler({ objects: 20, updates: 1_000 }).round()).toEqual([20]);
});

const hasGo = spawnSync('go', ['version']).status === 0;

test('every contender copies the server, and says what it took', { timeout: 700_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'watchmux-bench-'));
  try {
    const json = join(folder, 'figures.json');
    const start = fileURLToPath(new URL('start.mjs', import.meta.url));
    const args = ['run', 'stack', '--only', 'client', '--quick', '--rounds', '1', '--json', json];
    const { status, stderr } = spawnSync(process.execPath, [start, ...args], { encoding: 'utf8' });
    expect(status, stderr).toBe(0);
    const { workloads }: Report = JSON.parse(readFileSync(json, 'utf8'));
    const rowsOf = (what: string): string[][] =>
      workloads.filter(({ shape }) => shape.what === what).map(({ rows }) => rows.map(({ contender }) => contender));
    const peers = ['client-node', 'client-node, plain list', ...(hasGo ? ['client-go'] : [])];
    expect(rowsOf('initial sync')).toEqual([peers, peers, peers]);
    expect(rowsOf('updates')).toEqual([peers, peers]);
    for (const { rows } of workloads) for (const { median } of rows) expect(median).toBeGreaterThan(0);
    expect(stderr.includes('client-go is left out')).toBe(!hasGo);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
