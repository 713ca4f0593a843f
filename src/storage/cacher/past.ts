/**
 * Where a cacher begins: not at the current state, but some revisions earlier, so that its window has the changes that clients of
 * another cacher may not have seen yet.
 *
 *     storage   ... 9,000 ...................... 19,000
 *                   ^ the list, exactly then     ^ `goal`: the newest when it was asked
 *                     '------- as changes -------'      from here on the cacher answers requests
 *
 * A storage that leaves out revisions tells which one that was (`pastVersion`); others count. One that counts may no longer have that
 * revision, and does not say which ones it has. So the next attempt goes back a quarter as far, and so on: a few requests that cost
 * nothing give a window of at least a quarter of what the storage keeps.
 */
import type { KubernetesObject } from '../../cache/object.ts';
import { isWatchError } from '../../watch/errors.ts';
import type { Storage } from '../storage.ts';
import type { Upstream } from './upstream.ts';

/** A past state, and the version that must be reached before it is of use. */
export interface Past<T extends KubernetesObject> {
  readonly entries: Awaited<ReturnType<Upstream<T>['list']>>['entries'];
  readonly resourceVersion: string;
  readonly goal: string;
}

/** How to look for it. */
export interface PastOptions {
  /** At most this many before the newest. */
  readonly revisions: number;
  readonly signal: AbortSignal;
}

const STEP = 4;

/** Lists the state of some revisions ago. Undefined if there is none, or if the storage cannot list it. */
export async function listPast<T extends KubernetesObject>(
  { storage, upstream }: { readonly storage: Storage<T>; readonly upstream: Upstream<T> },
  { revisions, signal }: PastOptions,
): Promise<Past<T> | undefined> {
  if (revisions === 0) return undefined;
  const goal = await storage.currentVersion({ signal });
  const newest = Number(goal);
  // Versions of another kind cannot be counted.
  if (!/^\d+$/.test(goal) || !Number.isSafeInteger(newest)) return undefined;
  for (let back = Math.min(revisions, newest - 1); back > 0; back = Math.floor(back / STEP)) {
    const version = (await storage.pastVersion?.(back)) ?? `${newest - back}`;
    try {
      return { ...(await upstream.list(version, signal)), goal };
    } catch (error) {
      if (!isWatchError(error, 'REFUSED')) throw error;
      // Another refusal may concern only the past. If not, the list that follows fails as well.
      if (error.status?.code !== 410) return undefined;
    }
  }
  return undefined;
}
