/** How a call to etcd ends: with an answer, or with a failure that says what may be done about it. */
import { WatchError } from '../../../watch/errors.ts';
import { internalError, refused, unavailable } from '../../statuses.ts';

/** The gRPC codes that are treated specially. */
export const CODE = {
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  outOfRange: 11,
  unimplemented: 12,
  unavailable: 14,
  unauthenticated: 16,
} as const;

/**
 * A request refused with one of these has not happened. Others, such as `unknown` and `cancelled`, may come when a write is under
 * way.
 */
const NOT_DONE: ReadonlySet<number> = new Set([
  CODE.invalidArgument,
  CODE.notFound,
  CODE.permissionDenied,
  CODE.resourceExhausted,
  CODE.failedPrecondition,
  CODE.outOfRange,
  CODE.unimplemented,
  CODE.unauthenticated,
]);

/** A call that was not answered with what it asked for. */
export interface Failure {
  /** A gRPC code. A connection that breaks is `unavailable`. */
  readonly code: number;
  readonly message: string;
  /** Whether etcd may have got the request, and may have done what it asks for. */
  readonly sent: boolean;
  /** The error to throw if the failure is not one of gRPC: an answer that cannot be read. */
  readonly error?: WatchError | undefined;
}

/** An answer, or a failure. A call rejects only with the reason of its signal. */
export type Outcome = { readonly answer: Uint8Array } | { readonly failure: Failure };

/** Whether another member, or the same one later, may succeed. */
export function isPassing({ code, error, message }: Failure): boolean {
  if (error) return false;
  return code === CODE.unavailable || code === CODE.deadlineExceeded || message.includes('too many requests');
}

/** Whether the request may have happened although it failed. An answer that cannot be read is not a refusal. */
export function mayBeDone({ code, sent, error }: Failure): boolean {
  return sent && (error !== undefined || !NOT_DONE.has(code));
}

/** Whether the token of the user has expired, or was forgotten because it had, so that a new one helps. */
export function isStaleToken({ code, message }: Failure): boolean {
  return code === CODE.unauthenticated || /revision of auth store is old|user name is empty/.test(message);
}

/** Whether the past that was asked for has been compacted. */
export function isCompacted({ code, message }: Failure): boolean {
  return code === CODE.outOfRange && message.includes('compacted');
}

/** Whether a revision was asked for that has not come yet. */
export function isFuture({ code, message }: Failure): boolean {
  return code === CODE.outOfRange && message.includes('future revision');
}

/** The error that the caller gets for a failure. `what` names the request, and the key. */
export function toError(failure: Failure, { what, isWrite = false }: { what: string; isWrite?: boolean }): WatchError {
  const { message, error } = failure;
  const isUnsure = isWrite && mayBeDone(failure);
  const maybe = isUnsure ? '; it may have happened anyway' : '';
  if (error?.status) return error;
  if (error) return new WatchError(error.code, `${what}: ${error.message}${maybe}`, { limit: error.limit, cause: error });
  const text = `${what}: ${message}`;
  // A refusal would say that it has not happened.
  if (isPassing(failure) || isUnsure) return new WatchError('TIMEOUT', `${text}${maybe}`);
  if (isOurs(failure)) return unavailable(text);
  // What is far too large for etcd is already refused by its transport.
  if (/request is too large|message larger than max/.test(message)) return refused(413, 'RequestEntityTooLarge', text);
  return internalError(text);
}

/** Whether etcd refuses this storage, and not what its caller wants: its user, or any write, because it is full. */
function isOurs({ code, message }: Failure): boolean {
  if (code === CODE.permissionDenied || code === CODE.unauthenticated) return true;
  return /authentication failed|user name is empty|space exceeded|corrupt cluster/.test(message);
}
