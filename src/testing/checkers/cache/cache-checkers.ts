import type { CacheGuaranteeName, Violation } from '../guarantees.ts';
import type { CacheHistory } from './cache-history.ts';
import { checkConsistent, checkConvergent, checkFresh } from './check-cache.ts';
import { checkFolded } from './check-folded.ts';
import { checkMonotonic } from './check-monotonic.ts';
import { checkSynced } from './check-synced.ts';
import { checkTold } from './check-told.ts';

/** Returns how the history of a cache violates a guarantee, or undefined if it does not. */
export type CacheChecker = (history: CacheHistory) => Violation | undefined;

/** The checkers of all guarantees of caches. */
export const CACHE_CHECKERS: Readonly<Record<CacheGuaranteeName, CacheChecker>> = {
  Consistent: checkConsistent,
  Monotonic: checkMonotonic,
  Fresh: checkFresh,
  Convergent: checkConvergent,
  Folded: checkFolded,
  Synced: checkSynced,
  Told: checkTold,
};

/**
 * Runs all checkers on the history of caches. Returns at most one violation per guarantee, in the order of the guarantees.
 *
 * @throws {WatchError} INVALID_ARGUMENT for a version that `compareVersions` does not know; see {@link CacheHistory.compare}.
 */
export function checkCacheHistory(history: CacheHistory): Violation[] {
  return Object.values(CACHE_CHECKERS).flatMap((check) => check(history) ?? []);
}
