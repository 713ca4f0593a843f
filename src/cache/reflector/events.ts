import { isWatchError, shownOf, WatchError } from '../../watch/errors.ts';
import { CHANGES, isInitialEventsEnd, isStatus, type ObjectEvent, type Status } from '../../watch/event.ts';
import { metadataOf, versionOf } from '../object.ts';
import { compareVersions } from '../versions.ts';
import type { ReflectorFailureKind } from './reflector-options.ts';

/** The kind of an event, for a reader that trusts nothing from the wire. */
type EventShape = 'change' | 'bookmark' | 'initialEnd' | 'error' | 'broken';

/**
 * Classifies an event. `broken`: its type is unknown, or its object has no metadata, or is a Table; or a BOOKMARK has no version.
 */
export function shapeOf(event: ObjectEvent<unknown>): EventShape {
  const type: unknown = (event as Partial<typeof event> | null)?.type;
  if (type === 'ERROR') return 'error';
  if (type === 'BOOKMARK' && versionIn(event) !== '') return isInitialEventsEnd(event) ? 'initialEnd' : 'bookmark';
  return (CHANGES as readonly unknown[]).includes(type) && (versionBeside(event) !== undefined || isObject(event))
    ? 'change'
    : 'broken';
}

/** The version of an event, whatever is wrong with it; empty if it has no readable one. */
export function versionIn(event: ObjectEvent<unknown>): string {
  return versionBeside(event) ?? versionOf((event as Partial<typeof event> | null)?.object);
}

/** The version that an event has outside its object, as a hub's events do; see `fromHub`. The object may then be anything. */
export function versionBeside(event: ObjectEvent<unknown>): string | undefined {
  const { resourceVersion } = (event ?? {}) as { resourceVersion?: unknown };
  return typeof resourceVersion === 'string' ? resourceVersion : undefined;
}

/** Says what is wrong with an event. */
export function toBroken(event: ObjectEvent<unknown>): WatchError {
  const type: unknown = (event as Partial<typeof event> | null)?.type;
  const known = [...(CHANGES as readonly unknown[]), 'BOOKMARK'].includes(type);
  const text = known
    ? `${type} without an object that has metadata`
    : typeof type === 'string'
      ? `an event of the unknown type ${type.slice(0, 80)}`
      : `expected an event, got ${shownOf(event).slice(0, 80)}`;
  return new WatchError('INVALID_FRAME', text);
}

function isObject({ object }: ObjectEvent<unknown>): boolean {
  const { kind, apiVersion = '' } = (object ?? {}) as { kind?: unknown; apiVersion?: unknown };
  const metadata: unknown = metadataOf(object);
  const has = typeof object === 'object' && object !== null && 'metadata' in object;
  return has && typeof metadata === 'object' && !(kind === 'Table' && String(apiVersion).startsWith('meta.k8s.io/'));
}

/** Whether `a` is known to be before `b`. Versions that are not Kubernetes' numbers cannot be compared. */
export function isOlder(a: string, b: string): boolean {
  try {
    return compareVersions(a, b) < 0;
  } catch {
    return false;
  }
}

/** A failure of a request, or the ERROR that has ended a watch. */
export interface SourceFailure {
  readonly kind: ReflectorFailureKind;
  readonly error: unknown;
  /** The delay that the source asked for. */
  readonly hintMs?: number | undefined;
}

/** Classifies the error with which a list or a watch, or reading a watch, has rejected. */
export function toFailure(error: unknown): SourceFailure {
  if (isWatchError(error, 'REFUSED') && isStatus(error.status)) {
    return { kind: kindOf(error.status), error, hintMs: hintOf(error.status) };
  }
  // An error that is not ours comes from the network, or from code that throws others.
  return { kind: isWatchError(error) && error.code !== 'TIMEOUT' ? 'other' : 'unreachable', error };
}

/** The same for the object of an ERROR. */
export function fromErrorEvent(object: unknown): SourceFailure {
  if (!isStatus(object)) return { kind: 'other', error: new WatchError('INVALID_FRAME', 'an ERROR without a Status') };
  const { code, message } = object;
  return toFailure(new WatchError('REFUSED', `${code}: ${String(message).slice(0, 1_000)}`, { status: object }));
}

/** The failure of a watch that has been silent for too long. */
export function toSilence(limit: number): SourceFailure {
  return { kind: 'silent', error: new WatchError('TIMEOUT', `the watch was silent for ${limit} ms`, { limit }) };
}

/** The failure of a watch whose initial state does not end, or that has none. `limit`: how long it was waited for, in ms. */
export function toUnended(what: string, limit?: number): SourceFailure {
  const text = `${what}: a source that cannot begin a watch with the state must refuse sendInitialEvents`;
  return { kind: 'silent', error: new WatchError(limit === undefined ? 'INVALID_FRAME' : 'TIMEOUT', text, { limit }) };
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
