import { checkDrained, checkIsolated, checkSettled } from './check-ends.ts';
import { checkExact } from './check-exact.ts';
import { checkComplete, checkEager, checkOrdered, checkUnique } from './check-order.ts';
import { checkBounded, checkCounted } from './check-queue.ts';
import type { CacheGuaranteeName, GuaranteeName, Violation } from './guarantees.ts';
import type { History } from './history.ts';

/** Returns how a history violates a guarantee, or undefined if it does not. */
export type Checker = <E>(history: History<E>) => Violation | undefined;

/** The checkers of all guarantees that are visible in the history of a broadcaster. */
export const CHECKERS: Readonly<
  Record<Exclude<GuaranteeName, 'Resumable' | 'Transitional' | 'Serial' | 'Linearizable' | 'Fair' | CacheGuaranteeName>, Checker>
> = {
  Ordered: checkOrdered,
  Unique: checkUnique,
  Complete: checkComplete,
  Exact: checkExact,
  Counted: checkCounted,
  Isolated: checkIsolated,
  Bounded: checkBounded,
  Eager: checkEager,
  Drained: checkDrained,
  Settled: checkSettled,
};

/**
 * Runs all checkers on a history. Returns at most one violation per guarantee, in the order of the guarantees.
 *
 * @throws {WatchError} INVALID_ARGUMENT if two accepted events have the same identity; see {@link History.idOf}.
 */
export function checkHistory<E>(history: History<E>): Violation[] {
  return Object.values(CHECKERS).flatMap((check) => check(history) ?? []);
}
