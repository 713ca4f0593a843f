/**
 * Why a server or a storage refused: predicates for any error. They look at the first {@link WatchError} among an error and its
 * causes, so your own error with a `cause` counts as its cause. Upstream: `apierrors.IsNotFound` and the like.
 */
import { MAX_HINT_MS } from '../watch/backoff.ts';
import { isWatchError } from '../watch/errors.ts';
import type { Status } from '../watch/event.ts';

/** Causes that are examined. More are a cycle. */
const MAX_CAUSES = 32;

/** 404: there is no such object, or no such kind. */
export function isNotFound(error: unknown): boolean {
  return statusOf(error)?.code === 404;
}

/**
 * 409: the object has changed since it was read, a precondition does not hold, or another manager has an applied field. Not for
 * an object that already exists.
 */
export function isConflict(error: unknown): boolean {
  return statusOf(error)?.code === 409 && !isAlreadyExists(error);
}

/** Whether a conflict is about fields of an `apply` that another manager has: retrying does not help. */
export function isFieldConflict(error: unknown): boolean {
  return (
    isConflict(error) && (statusOf(error)?.details?.causes?.some(({ reason }) => reason === 'FieldManagerConflict') ?? false)
  );
}

/** Also 409: the object to be created exists. */
export function isAlreadyExists(error: unknown): boolean {
  return statusOf(error)?.reason === 'AlreadyExists';
}

/** 403: the caller may not do that. */
export function isForbidden(error: unknown): boolean {
  return statusOf(error)?.code === 403;
}

/** 410: a version, or a page of a list, is no longer kept. Upstream: `IsResourceExpired` and `IsGone`. */
export function isExpired(error: unknown): boolean {
  return statusOf(error)?.code === 410;
}

/** 422: the object, or the patch, breaks a rule. */
export function isInvalid(error: unknown): boolean {
  return statusOf(error)?.code === 422;
}

/** 429: the server has too much to do, or an eviction would break a disruption budget. `details.retryAfterSeconds` may say when. */
export function isTooManyRequests(error: unknown): boolean {
  return statusOf(error)?.code === 429;
}

/** How long a server asks to wait before the next attempt, in milliseconds; 0: it does not. Upstream: `SuggestsClientDelay`. */
export function askedDelayMs(error: unknown): number {
  const seconds: unknown = statusOf(error)?.details?.retryAfterSeconds;
  return typeof seconds === 'number' && seconds > 0 ? Math.min(seconds * 1_000, MAX_HINT_MS) : 0;
}

function statusOf(error: unknown): Status | undefined {
  try {
    for (let [at, left] = [error, MAX_CAUSES]; typeof at === 'object' && at !== null && left > 0; left--) {
      if (isWatchError(at)) return at.code === 'REFUSED' ? at.status : undefined;
      at = (at as { readonly cause?: unknown }).cause;
    }
  } catch {
    // An error that throws when it is examined is not ours.
  }
  return undefined;
}
