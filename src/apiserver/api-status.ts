/** The refusals of an API server, in Kubernetes' words. Upstream: `apimachinery/pkg/api/errors`. */
import { badRequest, refused } from '../storage/statuses.ts';
import { isWatchError, refusedBy, type WatchError } from '../watch/errors.ts';
import { type Status, type StatusCause, toStatus, toUnavailable } from '../watch/event.ts';
import type { FieldCause } from './definition.ts';
import { bounded, middleCut } from './validation/causes.ts';

export { badRequest };

type About = Readonly<Record<'group' | 'plural' | 'kind' | 'resourceName' | 'kindName', string>>;

const ofResource = ({ group, plural }: About, name: string): object => ({
  ...{ ...(name && { name }), ...(group && { group }), kind: plural },
});

export function notFound(about: About, name: string): WatchError {
  return refused(404, 'NotFound', `${about.resourceName} "${name}" not found`, ofResource(about, name));
}

/** 404 for a path at which nothing is served. */
export function noSuchPath(): WatchError {
  return refused(404, 'NotFound', 'the server could not find the requested resource');
}

/** The refusal of a client that accepts none of the types that there are. */
export function notAcceptable(types: string): WatchError {
  return refused(406, 'NotAcceptable', `only the following media types are accepted: ${types}`);
}

export function alreadyExists(about: About, name: string, why: string = ''): WatchError {
  return refused(409, 'AlreadyExists', `${why}${about.resourceName} "${name}" already exists`, ofResource(about, name));
}

export function conflict(about: About, name: string, why: string): WatchError {
  const message = `Operation cannot be fulfilled on ${about.resourceName} "${name}": ${why}`;
  return refused(409, 'Conflict', message, ofResource(about, name));
}

export const MODIFIED = 'the object has been modified; please apply your changes to the latest version and try again';

export function forbidden(about: About, name: string, why: string, causes?: readonly StatusCause[]): WatchError {
  const details = { ...ofResource(about, name), ...(causes && { causes }) };
  const what = name ? `${about.resourceName} "${name}"` : about.resourceName;
  return refused(403, 'Forbidden', `${what} is forbidden: ${why}`, details);
}

/** 405. `about`: the kind whose objects, or their subresource, do not support this verb. */
export function methodNotAllowed(about?: Pick<About, 'group' | 'plural'>): WatchError {
  const details = about && { ...(about.group && { group: about.group }), kind: about.plural };
  return refused(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', details);
}

/** 405, for `kubectl create token`: a token that this server made would be known to nobody. */
export function noTokens(): WatchError {
  const why = 'this server makes no tokens of service accounts: whom a token stands for, its `authenticate` says';
  return refused(405, 'MethodNotAllowed', why, { kind: 'serviceaccounts' });
}

/** The most causes in an answer: every byte of an object could be wrong, and reported in a hundred bytes. */
const MAX_CAUSES = 100;

/** The most characters of the fields and messages of all causes: they are in an answer twice. */
const MAX_CAUSES_CHARS = 32_768;
/** The most characters of the name of an object that is not valid. */
const MAX_NAME_CHARS = 1_000;

/** The causes that are reported: the first ones, each of bounded length. */
function toldOf(all: readonly FieldCause[]): FieldCause[] {
  const told: FieldCause[] = [];
  let left = MAX_CAUSES_CHARS;
  for (const whole of all.slice(0, MAX_CAUSES)) {
    const cause = bounded(whole);
    left -= cause.field.length + cause.message.length;
    if (left < 0) break;
    told.push(cause);
  }
  return told;
}

/** 422: what is wrong with each field of an object. */
export function invalidObject(about: About, wholeName: string, all: readonly FieldCause[]): WatchError {
  const name = middleCut(wholeName, MAX_NAME_CHARS);
  const causes = toldOf(all);
  const each = causes.map((cause) => `${cause.field}: ${cause.message}`);
  if (all.length > causes.length) each.push(`and ${all.length - causes.length} more`);
  const list = each.length === 1 ? each[0] : `[${each.join(', ')}]`;
  return refused(422, 'Invalid', `${about.kindName} "${name}" is invalid: ${list}`, {
    ...{ ...(name && { name }), ...(about.group && { group: about.group }), ...(about.kind && { kind: about.kind }) },
    causes: causes.map(({ field, message, reason }): StatusCause => ({ reason: reason ?? reasonOf(message), message, field })),
  });
}

/** 422 for the options of a request. */
export function invalidOptions(kind: string, causes: readonly FieldCause[]): WatchError {
  const about = { group: 'meta.k8s.io', plural: '', kind, resourceName: '', kindName: `${kind}.meta.k8s.io` };
  return invalidObject(about, '', causes);
}

/** Kubernetes' messages begin with the kind of error. */
function reasonOf(message: string): string {
  if (message.startsWith('Required value')) return 'FieldValueRequired';
  if (message.startsWith('Forbidden')) return 'FieldValueForbidden';
  if (message.startsWith('Unsupported value')) return 'FieldValueNotSupported';
  if (message.startsWith('Too long')) return 'FieldValueTooLong';
  if (message.startsWith('Too many')) return 'FieldValueTooMany';
  return 'FieldValueInvalid';
}

/** Refusals by a program's hooks. */
const denials: WeakSet<WatchError> = new WeakSet();

/** Marks an error as a refusal by a program's hook: whatever its code, it says nothing about what is stored. */
export function asDenial(error: WatchError): WatchError {
  denials.add(error);
  return error;
}

/** Whether an error is a refusal with this HTTP code, and does not come from a program's hook. */
export function hasCode(error: unknown, code: number, reason?: string): boolean {
  if (!isWatchError(error, 'REFUSED') || denials.has(error)) return false;
  return error.status?.code === code && (reason === undefined || error.status.reason === reason);
}

/** A storage's refusal, which names keys, in terms of a resource. Other errors are returned as they are. */
export function translated(error: unknown, about: About, name: string): unknown {
  if (hasCode(error, 404, 'NotFound')) return notFound(about, name);
  if (hasCode(error, 409, 'AlreadyExists')) return alreadyExists(about, name);
  const { kind, causes } = (error as Partial<WatchError>)?.status?.details ?? {};
  if (hasCode(error, 409, 'Conflict') && !kind && !causes) return conflict(about, name, MODIFIED);
  return error;
}

/** The Status that answers an error, and whether the error is the server's own, to be reported to `onError`. */
export function statusOf(error: unknown): { readonly status: Status; readonly unexpected: boolean } {
  if (isWatchError(error)) {
    const { status, code, message } = error;
    // With a cause, the Status does not say why.
    if (status !== undefined) return { status, unexpected: status.code >= 500 && error.cause !== undefined };
    if (code === 'INVALID_SELECTOR' || code === 'INVALID_ARGUMENT') {
      return { status: toStatus({ code: 400, reason: 'BadRequest', message }), unexpected: false };
    }
    if (code === 'CLOSED') return { status: LEAVING, unexpected: false };
    if (code === 'TIMEOUT') return { status: TIMED_OUT, unexpected: false };
  }
  return { status: INTERNAL, unexpected: true };
}

/** 503: the server could not start, so what it would answer may be wrong. */
export const NOT_STARTED: Status = toUnavailable('this server has not started', 5);

/** 503: the server is shutting down. */
export const LEAVING: Status = toUnavailable('this server is shutting down', 1);

/** 503: the application disconnected the client before its watch began. */
export const REVOKED: Status = toUnavailable('this client was disconnected', 1);

/** 504: it took too long. */
export const TIMED_OUT: Status = toStatus({
  code: 504,
  reason: 'Timeout',
  message: 'Timeout: request did not complete within the allowed duration',
});

/** 504 without a Retry-After: the write may have happened, and a client that repeated it would do it twice. */
const UNFINISHED: Status = toStatus({
  code: 504,
  reason: 'Timeout',
  message: 'Timeout: this server shut down before it knew the outcome of the request: it may have been done anyway',
});

/** The error of a write that has begun. Only a write that has not begun may ask the client to retry. */
export function unfinished(error: unknown): unknown {
  return statusOf(error).status === LEAVING ? refusedBy(UNFINISHED) : error;
}

/** 500. The cause is for the server's operator, not for its clients. */
const INTERNAL: Status = toStatus({ code: 500, reason: 'InternalError', message: 'Internal error occurred' });

/** 500: a stored object is invalid, and its owner must be told. Upstream: `NewInternalError`. */
export function internalFault(message: string): WatchError {
  return refused(500, 'InternalError', `Internal error occurred: ${message}`, { causes: [{ message } as StatusCause] });
}
