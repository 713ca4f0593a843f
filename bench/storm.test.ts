// The workload `storm`: what is counted at the gate, and which wrong answers are detected.
import { expect, test } from 'vitest';
import type { Thing } from './server/objects.ts';
import { Copy } from './storm/copy.ts';
import { askedIn } from './storm/gate.ts';
import { COPIED, numberAt, thingAt, turnsAfter } from './storm/things.ts';
import { figuresOf, perSlice, storm } from './storm.bench.ts';

const request = (query: string): Buffer => Buffer.from(`GET /apis/x/v1/things?${query} HTTP/1.1\r\nHost: a\r\n\r\n`);

test.each([
  ['watch=true&resourceVersion=7&allowWatchBookmarks=true', 'watch'],
  ['watch=1&resourceVersion=7', 'watch'],
  ['limit=500&resourceVersion=0', 'list'],
  ['', 'list'],
  ['limit=1&resourceVersion=7&resourceVersionMatch=NotOlderThan', 'check'],
  ['watch=true&sendInitialEvents=true&resourceVersion=7&resourceVersionMatch=NotOlderThan', 'list'],
  ['watch=true&resourceVersion=0', 'list'],
  ['watch=true', 'list'],
] as const)('%s asks for a %s', (query, asked) => {
  expect(askedIn(request(query))).toBe(asked);
});

test('what is no head of a request asks for nothing', () => {
  expect(askedIn(Buffer.from('PUT / HTTP/1.1\r\n\r\n'))).toBeUndefined();
  expect(askedIn(Buffer.from('GE'))).toBeUndefined();
});

test('requests are counted in slices of a quarter of a second', () => {
  const at = (atMs: number) => ({ asked: 'watch' as const, atMs });
  const slices = perSlice([at(1_000), at(1_249), at(1_250), at(999), at(100_000)], 1_000);
  expect(slices.slice(0, 3)).toEqual([8, 4, 0]);
  expect([slices.length, slices.at(-1)]).toEqual([(100_000 - 1_000) / 250 + 1, 4]);
});

test('the figures of a storm', () => {
  const requests = [
    { asked: 'watch' as const, atMs: 1_800 },
    { asked: 'list' as const, atMs: 1_900 },
    { asked: 'watch' as const, atMs: 1_900 },
  ];
  const figures = figuresOf({ beganMs: 1_000, requests, gone: 1, liveAfterMs: [10, 20], serverMs: 3 });
  expect(figures).toHaveLength(storm.figures({}).length);
  expect(figures.slice(0, 7)).toEqual([20, 20, 1.5, 12, 100 / 3, 1, 1.5]);
  const late = { asked: 'watch' as const, atMs: 61_000 };
  const lasting = figuresOf({ beganMs: 1_000, requests: [late], gone: 0, liveAfterMs: [60_000], serverMs: 1 });
  expect([lasting.length, lasting[3]]).toEqual([figures.length, 4]);
});

test('changes go round the Things, and the copies of a server that has made some are known', () => {
  const turns = turnsAfter(2 * COPIED + 3);
  expect(Object.keys(turns)).toHaveLength(COPIED);
  expect(turns['thing-3']).toBe(numberAt(2 * COPIED + 3));
  expect(turns['thing-4']).toBe(numberAt(COPIED + 4));
});

test('a copy that lacks something, has too much, or goes back is detected', async () => {
  const copy = new Copy();
  const all: Thing[] = Array.from({ length: COPIED }, (_, place) => thingAt(place));
  copy.replace(all.slice(1));
  expect(() => copy.check(turnsAfter(COPIED - 1))).toThrow('thing-0 is at undefined instead of 0');
  copy.set(all[0] as Thing);
  copy.check(turnsAfter(COPIED - 1));
  const heard = copy.heard(numberAt(COPIED));
  copy.set(thingAt(COPIED));
  expect(await heard).toBeGreaterThan(0);
  expect(await copy.heard(numberAt(COPIED))).toBe(await heard);
  copy.set({ ...thingAt(0), metadata: { ...thingAt(0).metadata, name: 'more' } });
  expect(() => copy.check(turnsAfter(COPIED))).toThrow(`${COPIED + 1} Things instead of ${COPIED}`);
  copy.replace(all);
  expect(() => copy.check(turnsAfter(COPIED))).toThrow('thing-0 goes back from 500 to 0');
});
