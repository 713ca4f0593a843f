import { expect, test } from 'vitest';
import { Line } from '../../src/bridge/line.ts';
import { ListenerCount } from '../../src/testing/listener-count.ts';
import { fate, turn } from './support.ts';

const here = new AbortController().signal;

test('a limited number have places, the others wait in order, those who have begun before the rest', async () => {
  const line = new Line(1);
  expect(await line.enter(here)).toBe(true);
  const [second, third, begun] = [fate(line.enter(here)), fate(line.enter(here)), fate(line.enter(here, true))];
  for (const next of [begun, second, third]) {
    await turn();
    expect(next.state).toBe('pending');
    line.leave();
    await turn();
    expect(next.state).toBe('resolved');
  }
  line.leave();
  expect(await line.enter(here)).toBe(true);
});

test('a client that has gone takes no place, and leaves none occupied', async () => {
  const line = new Line(1);
  const gone = AbortSignal.abort();
  expect(await line.enter(gone)).toBe(false);
  expect(await line.enter(here)).toBe(true);
  expect(await line.enter(gone)).toBe(false);
  const leaves = new AbortController();
  const waits = line.enter(leaves.signal);
  leaves.abort();
  expect(await waits).toBe(false);
  line.leave();
  expect(await line.enter(here)).toBe(true);
});

test('a client with a place no longer listens to its signal', async () => {
  const line = new Line(1);
  const { signal } = new AbortController();
  const listeners = new ListenerCount(signal);
  expect(await line.enter(signal)).toBe(true);
  expect(listeners.count).toBe(0);
  const waits = line.enter(signal);
  expect(listeners.count).toBe(1);
  line.leave();
  expect(await waits).toBe(true);
  expect(listeners.count).toBe(0);
});
