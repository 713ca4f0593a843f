import type { Watch } from '../../watch/watch.ts';
import { show } from '../checkers/guarantees.ts';

/** A new watch under test, and control over its source. */
export interface WatchSubject<E = unknown> {
  readonly watch: Watch<E>;
  /**
   * Makes the source emit one more event. Returns the event, or one with the same JSON, as the watch must deliver it. `number`
   * counts from 0.
   */
  send(number: number): E;
  /** Ends the source, after the events sent so far. */
  end(): void;
}

/**
 * What some watches do not provide. An implementation without a trait declares that.
 *
 * - `events`: it is open at the start and delivers what its source emits.
 * - `accepts`: it has accepted the `queued` events, so `return` counts them as dropped.
 * - `counts`: its `queued` counts all events that can be read without waiting.
 * - `end`: its `stopped` also reports the end of its source.
 * - `queue`: it holds events that were sent and not read, and `stop` leaves them readable. Other watches read only on demand.
 */
export type ContractTrait = 'accepts' | 'counts' | 'events' | 'end' | 'queue';

/** One requirement that every watch must meet. */
export interface ContractCase {
  readonly name: string;
  /** The trait this case needs. For a watch without it, `run` must reject, so that a declared lack is proved. */
  readonly needs?: ContractTrait;
  /** Opens watches and tests them. Rejects with an error that says what was expected. */
  run<E>(open: () => WatchSubject<E>): Promise<void>;
}

/** Throws an error that says what was expected, unless `truth` holds. */
export function expectThat(truth: boolean, expected: string, seen?: unknown): void {
  if (!truth) throw new Error(`watch contract: expected ${expected}${seen === undefined ? '' : `, got ${show(seen)}`}`);
}

/** Expects these events to be the ones that were sent, or equal to them. */
export function expectSame(got: readonly unknown[], sent: readonly unknown[], what: string): void {
  for (let at = 0; at < Math.max(got.length, sent.length); at++) {
    if (at < got.length && at < sent.length && equal(got[at], sent[at])) continue;
    const [is, was] = [got, sent].map((events) => (at < events.length ? show(events[at]) : 'nothing'));
    expectThat(false, `${what}: number ${at} of ${sent.length} to be ${was}, got ${is}`);
  }
}

/** Whether they are the same value, or have the same JSON: all of it, because long events may begin alike. */
function equal(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  const digits = (_key: string, value: unknown): unknown => (typeof value === 'bigint' ? `${value}n` : value);
  try {
    const text = JSON.stringify(one, digits);
    return text !== undefined && text === JSON.stringify(other, digits);
  } catch {
    return false; // a cycle
  }
}

/** Whether a promise settles on its own, within a few microtasks. */
export async function settlesAtOnce(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const note = (): void => {
    settled = true;
  };
  promise.then(note, note);
  for (let i = 0; i < 20 && !settled; i++) await Promise.resolve();
  return settled;
}

/** Reads a watch to its end. */
export async function readAll<E>(watch: Watch<E>): Promise<E[]> {
  const events: E[] = [];
  for (let result = await watch.next(); result.done !== true; result = await watch.next()) events.push(result.value);
  return events;
}

/** Makes the source emit `count` events. */
export function sendSome<E>(subject: WatchSubject<E>, count: number): E[] {
  return Array.from({ length: count }, (_, number) => subject.send(number));
}

/** Expects a watch to be over, by every way of reading it. */
export async function expectDone<E>(watch: Watch<E>): Promise<void> {
  for (let i = 0; i < 2; i++) {
    expectThat((await watch.next()).done === true, 'next() to be done, for ever');
    expectThat((await watch.batches().next()).done === true, 'batches() to be done, for ever');
    expectThat(watch.tryNext() === undefined, 'tryNext() to find nothing, for ever');
  }
}

/** Expects pending reads to end on their own. */
export async function expectAllDone(reads: readonly Promise<IteratorResult<unknown, undefined>>[], by: string): Promise<void> {
  for (const [index, read] of reads.entries()) {
    expectThat(await settlesAtOnce(read), `read ${index} to be settled by ${by} at once`);
    expectThat((await read).done === true, `read ${index} to be done by ${by}`);
  }
}
