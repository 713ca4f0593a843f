import type { Watch } from '../watch/watch.ts';
import { show } from './guarantees.ts';

/** A fresh watch under test, and a hand on its source. */
export interface WatchSubject<E = unknown> {
  readonly watch: Watch<E>;
  /** Makes the source yield one more event, and answers it, or an equal one, as the watch must deliver it. `number` counts from 0. */
  send(number: number): E;
  /** The source ends by itself, behind what was sent. */
  end(): void;
}

/**
 * What not every watch has; who lacks one of these says so.
 *
 * - `events`: it is open when it begins, and delivers what its source yields.
 * - `accepts`: what is `queued` it has accepted, so that `return` counts it as dropped.
 * - `counts`: its `queued` counts all that can be read without waiting.
 * - `end`: its `stopped` tells of the end of its source, too.
 * - `queue`: it holds what was sent and not read, and `stop` leaves that readable. Others read only when they are read.
 */
export type ContractTrait = 'accepts' | 'counts' | 'events' | 'end' | 'queue';

/** One thing that every watch must do. */
export interface ContractCase {
  readonly name: string;
  /** What the watch must have for this. Without it, `run` must reject: a lack is declared, and true. */
  readonly needs?: ContractTrait;
  /** Opens watches and tries them. Rejects with an error that says what was expected. */
  run<E>(open: () => WatchSubject<E>): Promise<void>;
}

/** Throws what was expected, unless it is so. */
export function expectThat(truth: boolean, expected: string, seen?: unknown): void {
  if (!truth) throw new Error(`watch contract: expected ${expected}${seen === undefined ? '' : `, got ${show(seen)}`}`);
}

/** Whether these are the events that were sent; equal ones will do. */
export function expectSame(got: readonly unknown[], sent: readonly unknown[], what: string): void {
  const same =
    got.length === sent.length && got.every((event, index) => event === sent[index] || show(event) === show(sent[index]));
  expectThat(same, `${what}: ${show(sent)}`, got);
}

/** Whether a promise settles without anything else having to happen: within some microtasks. */
export async function settlesAtOnce(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const note = (): void => {
    settled = true;
  };
  promise.then(note, note);
  for (let i = 0; i < 20 && !settled; i++) await Promise.resolve();
  return settled;
}

/** Reads to the end. */
export async function readAll<E>(watch: Watch<E>): Promise<E[]> {
  const events: E[] = [];
  for (let result = await watch.next(); result.done !== true; result = await watch.next()) events.push(result.value);
  return events;
}

/** Has the source yield some events. */
export function sendSome<E>(subject: WatchSubject<E>, count: number): E[] {
  return Array.from({ length: count }, (_, number) => subject.send(number));
}

/** That a watch is over, by every way to read it. */
export async function expectDone<E>(watch: Watch<E>): Promise<void> {
  for (let i = 0; i < 2; i++) {
    expectThat((await watch.next()).done === true, 'next() to be done, for ever');
    expectThat((await watch.batches().next()).done === true, 'batches() to be done, for ever');
    expectThat(watch.tryNext() === undefined, 'tryNext() to find nothing, for ever');
  }
}

/** That reads which waited have come to the end, without anything else having to happen. */
export async function expectAllDone(reads: readonly Promise<IteratorResult<unknown, undefined>>[], by: string): Promise<void> {
  for (const [index, read] of reads.entries()) {
    expectThat(await settlesAtOnce(read), `read ${index} to be settled by ${by} at once`);
    expectThat((await read).done === true, `read ${index} to be done by ${by}`);
  }
}
