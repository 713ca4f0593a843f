import { expect } from 'vitest';
import type { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import type { Gated } from '../../src/broadcast/gate.ts';
import type { ErrorEvent, WatchEvent } from '../../src/watch/event.ts';
import type { Watch } from '../../src/watch/watch.ts';

/** The events of the engine's tests: a number to tell them apart, and a key to fold by. */
export type TestEvent = WatchEvent<string, { readonly id: number; readonly metadata: { readonly name: string } }>;

/** A watch, and a broadcaster, that may also deliver the ERROR of a cut. */
export type TestWatch = Watch<TestEvent | ErrorEvent>;
export type TestBroadcaster = Broadcaster<TestEvent, ErrorEvent>;

export function event(id: number, type = 'MODIFIED', name = `k${id}`): TestEvent {
  return { type, object: { id, metadata: { name } } };
}

export function events(from: number, to: number): TestEvent[] {
  return Array.from({ length: Math.max(0, to - from) }, (_, i) => event(from + i));
}

/** Undefined for an ERROR. */
export const id = (of: TestEvent | ErrorEvent | undefined): number | undefined => (of as TestEvent | undefined)?.object.id;
export const ids = (of: readonly (TestEvent | ErrorEvent)[]): number[] => of.map((one) => id(one) as number);
export const range = (from: number, to: number): number[] => ids(events(from, to));

export const done = { done: true, value: undefined };

/** Runs all microtasks that are due, including those that they schedule. */
export async function turn(): Promise<void> {
  for (let i = 0; i < 30; i++) await Promise.resolve();
}

/** A member of a gate. */
export function gated(bound: () => number): Gated {
  return { bound, inSet: undefined, before: undefined, after: undefined };
}

/** Runs everything that is due, streams and sockets among it. */
export const macrotask = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Reads everything that is available. */
export function readAll(watch: TestWatch): TestEvent[] {
  const read: TestEvent[] = [];
  for (let one = watch.tryNext(); one !== undefined; one = watch.tryNext()) read.push(one as TestEvent);
  return read;
}

/** Reads to the end. */
export async function collect(watch: TestWatch): Promise<number[]> {
  const got: number[] = [];
  for await (const one of watch) got.push(id(one) as number);
  return got;
}

/** Reads everything that is available, up to a read that throws with this message. */
export function readAllBut(watch: TestWatch, message: string): TestEvent[] {
  const read: TestEvent[] = [];
  try {
    for (;;) {
      const one = watch.tryNext();
      if (one === undefined) return read;
      read.push(one as TestEvent);
    }
  } catch (error) {
    expect((error as Error).message).toBe(message);
    return read;
  }
}

/** The state of a promise. */
export interface Fate<T> {
  state: 'pending' | 'resolved' | 'rejected';
  value?: T;
  error?: unknown;
}

export function fate<T>(promise: Promise<T>): Fate<T> {
  const seen: Fate<T> = { state: 'pending' };
  promise.then(
    (value) => Object.assign(seen, { state: 'resolved', value }),
    (error: unknown) => Object.assign(seen, { state: 'rejected', error }),
  );
  return seen;
}

/** Returns what a call throws. */
export function thrown(code: () => unknown): unknown {
  try {
    code();
  } catch (error) {
    return error;
  }
  throw new Error('expected it to throw');
}

/** Collects garbage until the condition holds; gives up after a hundred rounds. */
export async function collectedUntil(condition: () => boolean): Promise<boolean> {
  for (let round = 0; round < 100; round++) {
    await macrotask(); // a dereferenced WeakRef keeps its target alive until here
    globalThis.gc?.();
    await macrotask(); // finalization registries run here
    if (condition()) return true;
  }
  return false;
}

/** Added to the titles of garbage collection tests where they are skipped. */
export const NO_GC = globalThis.gc === undefined ? ' (skipped: node runs without --expose-gc)' : '';
