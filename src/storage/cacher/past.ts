/**
 * Where a cacher begins: not now, but some revisions before, so that its window has what clients of another cacher may not know yet.
 *
 *     storage   ... 9,000 ...................... 19,000
 *                   ^ the list, exactly then     ^ `goal`: the newest when it was asked
 *                     '------- as changes -------'      from then on the cacher may be asked
 *
 * A storage may have forgotten that, and does not say what it still has. So it is asked for a quarter of the way back, and so on:
 * whatever it keeps, a window of at least a quarter of that is had for a few requests that cost nothing.
 */
import type { KubernetesObject } from '../../cache/object.ts';
import { listAll } from '../../cache/pager.ts';
import { isWatchError } from '../../watch/errors.ts';
import type { Storage } from '../storage.ts';

/** A state of the past, and the version that must be reached before it is of any use. */
export interface Past<T> {
  readonly items: readonly T[];
  readonly resourceVersion: string;
  readonly goal: string;
}

/** How to look for it. */
export interface PastOptions {
  /** So many before the newest, at most. */
  readonly revisions: number;
  readonly pageSize: number;
  readonly signal: AbortSignal;
}

const STEP = 4;

/** Lists the state of some revisions ago. Undefined if there is none, or the storage cannot tell. */
export async function listPast<T extends KubernetesObject>(
  storage: Storage<T>,
  { revisions, pageSize, signal }: PastOptions,
): Promise<Past<T> | undefined> {
  if (revisions === 0) return undefined;
  const goal = await storage.currentVersion({ signal });
  const newest = Number(goal);
  // Versions of another kind cannot be counted.
  if (!/^\d+$/.test(goal) || !Number.isSafeInteger(newest)) return undefined;
  for (let back = Math.min(revisions, newest - 1); back > 0; back = Math.floor(back / STEP)) {
    const exactly = { resourceVersion: `${newest - back}`, resourceVersionMatch: 'Exact' } as const;
    try {
      const { items, resourceVersion } = await listAll(storage, { ...exactly, pageSize, signal });
      return { items, resourceVersion, goal };
    } catch (error) {
      if (!isWatchError(error, 'REFUSED')) throw error;
      // Another refusal may be one of the past. If it is not, the list that follows meets with it, too.
      if (error.status?.code !== 410) return undefined;
    }
  }
  return undefined;
}
