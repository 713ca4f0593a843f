/** The refusals of a storage, as `Status`es with Kubernetes' codes and reasons. Upstream: `apierrors` and `storage/errors.go`. */
import { refusedBy, WatchError } from '../watch/errors.ts';
import { type Status, type StatusDetails, toStatus } from '../watch/event.ts';

/** A refusal with the given status. */
export function refused(code: number, reason: string, message: string, details?: StatusDetails): WatchError {
  return refusedBy(toStatus({ code, reason, message, ...(details && { details }) }));
}

/** 404: there is no object under a key. */
export function notFound(key: string): WatchError {
  return refused(404, 'NotFound', `${JSON.stringify(key)} not found`);
}

/** 409: there is already an object under a key. */
export function alreadyExists(key: string): WatchError {
  return refused(409, 'AlreadyExists', `${JSON.stringify(key)} already exists`);
}

/** 409: the current object is not the expected one. */
export function conflict(key: string, why: string): WatchError {
  return refused(409, 'Conflict', `${JSON.stringify(key)}: ${why}; read it again and apply your changes to that`);
}

/** 410: a version is no longer kept. */
export function expired(version: string, oldest: string): WatchError {
  return refused(410, 'Expired', `too old resource version: ${version} (${oldest})`);
}

/**
 * 410: a storage cannot have issued this version. It is from another life of its data, such as before it was restored from a
 * copy, and so is the client's state.
 */
export function foreign(version: string, current: string): WatchError {
  return refused(410, 'Expired', `resource version ${version} was not issued by this storage (current: ${current}): list again`);
}

/** 504: a version has not been reached yet. The caller may retry after a second. */
export function tooLarge(version: string, current: string): WatchError {
  const message = `Too large resource version: ${version}, current: ${current}`;
  const causes = [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }];
  return refused(504, 'Timeout', message, { retryAfterSeconds: 1, causes });
}

/** 400: an argument that came over the wire is invalid. */
export function badRequest(message: string): WatchError {
  return refused(400, 'BadRequest', message);
}

/** 429: not ready yet, or full. */
export function tooManyRequests(message: string, retryAfterSeconds: number): WatchError {
  return refused(429, 'TooManyRequests', message, { retryAfterSeconds });
}

/** 410: the version of a list's first page is no longer kept. `token` continues at the newest version. */
export function expiredContinue(token: string): WatchError {
  const error = refused(
    410,
    'Expired',
    'The provided continue parameter is too old to display a consistent list result. Start a new list without it, or continue with ' +
      'the one in this response: then changes between the pages may be missing from the list, or incomplete.',
  );
  return new WatchError('REFUSED', error.message, { status: { ...(error.status as Status), metadata: { continue: token } } });
}

/**
 * 503: a storage refuses requests because it does not accept this server, or is full. Clients cannot do anything about that, and
 * get no details: `why` is for the server's operator.
 */
export function unavailable(why: string): WatchError {
  return ofOwner(why, {
    code: 503,
    reason: 'ServiceUnavailable',
    details: { retryAfterSeconds: 5 },
    message: 'the storage is unavailable',
  });
}

/** 500: a storage has failed. Again, `why` is for the server's operator. */
export function internalError(why: string): WatchError {
  return ofOwner(why, { code: 500, reason: 'InternalError', message: 'the storage has failed' });
}

function ofOwner(why: string, about: { code: number; reason: string; message: string; details?: StatusDetails }): WatchError {
  const status = toStatus(about);
  return new WatchError('REFUSED', `${status.code} ${status.reason}: ${why}`, { status, cause: new Error(why) });
}

/** 413: an object, or what was sent, is too large. */
export function tooLargeObject(bytes: number, limit: number): WatchError {
  return refused(413, 'RequestEntityTooLarge', `the object has ${bytes} bytes of JSON; the limit is ${limit}`);
}
