import { expect, test } from 'vitest';
import { Semaphore } from '../../src/bridge/hub/snapshot.ts';
import { ListenerCount } from '../../src/testing/fakes/fake-clock.ts';
import { fate, turn } from './support.ts';

const here = new AbortController().signal;

test('a limited number have slots, the others wait in order, those who have begun before the rest', async () => {
  const slots = new Semaphore(1);
  expect(await slots.enter(here)).toBe(true);
  const [second, third, begun] = [fate(slots.enter(here)), fate(slots.enter(here)), fate(slots.enter(here, true))];
  for (const next of [begun, second, third]) {
    await turn();
    expect(next.state).toBe('pending');
    slots.leave();
    await turn();
    expect(next.state).toBe('resolved');
  }
  slots.leave();
  expect(await slots.enter(here)).toBe(true);
});

test('a client that has gone takes no slot, and leaves none occupied', async () => {
  const slots = new Semaphore(1);
  const gone = AbortSignal.abort();
  expect(await slots.enter(gone)).toBe(false);
  expect(await slots.enter(here)).toBe(true);
  expect(await slots.enter(gone)).toBe(false);
  const leaves = new AbortController();
  const waits = slots.enter(leaves.signal);
  leaves.abort();
  expect(await waits).toBe(false);
  slots.leave();
  expect(await slots.enter(here)).toBe(true);
});

test('a client with a slot no longer listens to its signal', async () => {
  const slots = new Semaphore(1);
  const { signal } = new AbortController();
  const listeners = new ListenerCount(signal);
  expect(await slots.enter(signal)).toBe(true);
  expect(listeners.count).toBe(0);
  const waits = slots.enter(signal);
  expect(listeners.count).toBe(1);
  slots.leave();
  expect(await waits).toBe(true);
  expect(listeners.count).toBe(0);
});
