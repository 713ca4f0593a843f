import { isWatchError, WatchError } from '../../watch/errors.ts';
import { isStatus, type Status } from '../../watch/event.ts';
import type { ReflectorFailureKind } from './options.ts';

/** A failure of a request, or the ERROR that has ended a watch. */
export interface Failure {
  readonly kind: ReflectorFailureKind;
  readonly error: unknown;
  /** The delay that the source asked for. */
  readonly hintMs?: number | undefined;
}

/** Classifies the error with which a list or a watch, or reading a watch, has rejected. */
export function toFailure(error: unknown): Failure {
  if (isWatchError(error, 'REFUSED') && isStatus(error.status)) {
    return { kind: kindOf(error.status), error, hintMs: hintOf(error.status) };
  }
  // An error that is not ours comes from the network, or from code that throws others.
  return { kind: isWatchError(error) && error.code !== 'TIMEOUT' ? 'other' : 'unreachable', error };
}

/** The same for the object of an ERROR. */
export function fromErrorEvent(object: unknown): Failure {
  if (!isStatus(object)) return { kind: 'other', error: new WatchError('INVALID_FRAME', 'an ERROR without a Status') };
  const { code, message } = object;
  return toFailure(new WatchError('REFUSED', `${code}: ${String(message).slice(0, 1_000)}`, { status: object }));
}

function kindOf(status: Status): ReflectorFailureKind {
  const { code, reason, details } = status;
  if (code === 410 || reason === 'Expired' || reason === 'Gone' || isTooLarge(status)) return 'expired';
  // A server, perhaps about to shut down, sends its clients away for a while: the version is still good.
  const isBusy = code === 503 && details?.retryAfterSeconds;
  if (code === 429 || reason === 'TooManyRequests' || isBusy) return 'throttled';
  if (code === 401 || code === 403) return 'denied';
  return code === 500 && reason === 'InternalError' ? 'internal' : 'other';
}

const TOO_LARGE = 'Too large resource version';

/**
 * Whether this server has not reached the version yet: it lags behind the server that reported it, or has lost its data.
 * Kubernetes has said so in three ways over the years. Upstream: `isTooLargeResourceVersionError`.
 */
function isTooLarge({ code, reason, message, details }: Status): boolean {
  if (code !== 504 && reason !== 'Timeout') return false;
  const causes: unknown = details?.causes;
  const told = (Array.isArray(causes) ? causes : []).some(
    (cause: { reason?: unknown; message?: unknown } | null) =>
      cause?.reason === 'ResourceVersionTooLarge' || cause?.message === TOO_LARGE,
  );
  return told || String(message).includes(TOO_LARGE);
}

function hintOf({ details }: Status): number | undefined {
  const seconds: unknown = details?.retryAfterSeconds;
  return typeof seconds === 'number' ? seconds * 1_000 : undefined;
}
