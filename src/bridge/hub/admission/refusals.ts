import { verdictOf } from '../../../watch/abort.ts';
import { invalid } from '../../../watch/errors.ts';
import { type Status, toStatus, toUnavailable } from '../../../watch/event.ts';
import type { RefusalReason } from '../tally.ts';

/** No new client is served, although the last events may still be on their way. */
export const LEAVING: Status = toUnavailable('this server is shutting down, or its stream is about to end');

/** A hub with a source that has not come to the end of the stream. */
export const NOT_READY: Status = toUnavailable('this server is not connected to its stream yet');

/** What observers are told about a pipelined request. Its client gets no answer, which would wait forever behind a watch. */
export const PIPELINED: Status = toUnavailable(
  'a connection can carry only one watch, and an earlier request of this one is still pending',
);

/** An upgrade request at a path without a WebSocket. */
export const NO_WEBSOCKET: Status = notFound('no WebSocket at this path');
const STRIPPED: Status = notFound('no WebSocket: the header Upgrade is missing, so a proxy may have removed it');

/** The refusal of a WebSocket request that arrived as a plain request. Proxies pass on `Upgrade` only if configured to. */
export function noWebSocket(upgrade: string | null | undefined): Status {
  return upgrade ? NO_WEBSOCKET : STRIPPED;
}

function notFound(message: string): Status {
  return toStatus({ code: 404, reason: 'NotFound', message });
}

/** The client is not identified. */
export function unauthorized(message: string = 'authentication required'): Status {
  return toStatus({ code: 401, reason: 'Unauthorized', message });
}

/** The client may not connect, identified or not. */
function forbidden(message: string): Status {
  return toStatus({ code: 403, reason: 'Forbidden', message });
}

/** What `authenticate` may return. No falsy value is an identity: an empty header becomes an empty string. */
export type Identified<I> = I | Nobody | { readonly status: 401 | 403; readonly message?: string | undefined };

type Nobody = undefined | null | false | '' | 0 | 0n;

export class RefusalError extends Error {
  readonly reason: RefusalReason;
  readonly status: Status;

  constructor(reason: RefusalReason, status: Status) {
    super(status.message);
    this.reason = reason;
    this.status = status;
  }
}

/** Turns what a hook threw into a refusal: 401 or 403 if it says so, otherwise 503, so that an error admits nobody. */
export function toDenied(error: unknown): RefusalError {
  if (error instanceof RefusalError) return error;
  const { status, message } = (error ?? {}) as { status?: unknown; message?: unknown };
  // An Error's message was written for the application's log. Only that of a plain object is meant for the client.
  const told = error instanceof Error || typeof message !== 'string' ? undefined : message;
  if (status === 401) return new RefusalError('unauthorized', unauthorized(told));
  if (status === 403) return new RefusalError('forbidden', forbidden(told ?? 'this client may not watch'));
  return new RefusalError('failed', toUnavailable('the server could not decide whether to admit this client'));
}

/** What `authenticate` has returned, unless it refuses. */
export function identityOf<I>(said: Identified<I>): I {
  if (!said) throw { status: 401 };
  const { status } = said as { status?: unknown };
  if (status === 401 || status === 403) throw said;
  // What was meant as a refusal is nobody's identity.
  if (Number(status) >= 400 && Number(status) < 600) throw invalid('status', status, '401 or 403, which refuse a client');
  return said as I;
}

/**
 * When something that a hook returned expires; Infinity: never. Throws for anything but a time, so that a mistake admits
 * nobody.
 */
export function expiryOf(said: unknown): number {
  const { expiresAtMs = Number.POSITIVE_INFINITY } = (said ?? {}) as { expiresAtMs?: unknown };
  if (typeof expiresAtMs === 'number' && !Number.isNaN(expiresAtMs)) return expiresAtMs;
  throw invalid('expiresAtMs', expiresAtMs, 'a number of milliseconds since 1970');
}

/** Throws 401 for what has expired. */
export function checkExpiry(expiresAtMs: number, now: () => number): void {
  if (expiresAtMs <= now()) throw new RefusalError('unauthorized', unauthorized('the authentication has expired'));
}

/** Which web pages may connect. `R` is the host's request. */
export type AllowedOrigins<R> = '*' | readonly string[] | ((origin: string, request: R) => boolean) | undefined;

/** What is known about where a request comes from. */
export interface FromWhere<R> {
  readonly request: R;
  readonly origin: string | undefined;
  /** The header `Sec-Fetch-Site`, with which browsers say where a request comes from. Pages cannot change it. */
  readonly site: string | undefined;
  readonly host: string | undefined;
}

/** What `Sec-Fetch-Site` says about another origin. With `none`, the user has typed the address. */
const FOREIGN_SITES: ReadonlySet<string | undefined> = new Set(['cross-site', 'same-site']);

/** Whether a browser may send this as an origin: any other text would admit nobody. Apps have schemes of their own. */
function isOrigin(text: unknown): boolean {
  if (typeof text !== 'string' || text.includes('*')) return false;
  if (/^https?:/i.test(text)) return URL.canParse(text) && new URL(text).origin === text;
  return text === 'null' || text.includes('://');
}

/** Decides which web pages may connect. Without a rule, only those of the requested host. */
export class Origins<R> {
  private readonly allowed: AllowedOrigins<R>;
  private readonly onError: (error: unknown) => void;

  /**
   * `onError` is called with what the rule throws; then nobody is admitted.
   *
   * @throws {WatchError} INVALID_ARGUMENT for an invalid rule.
   */
  constructor(allowed: AllowedOrigins<R>, onError: (error: unknown) => void) {
    // A string would admit every origin that is part of it. Other values would throw only at the first request.
    if (allowed !== undefined && allowed !== '*' && typeof allowed !== 'function' && !Array.isArray(allowed)) {
      throw invalid('allowedOrigins', allowed, "'*', an array of origins, or a function");
    }
    if (Array.isArray(allowed))
      for (const origin of allowed)
        if (!isOrigin(origin)) throw invalid('allowedOrigins', origin, 'origins such as https://example.org, without a path');
    this.allowed = allowed;
    this.onError = onError;
  }

  /** Whether the caller's origin may connect. A caller without an origin is not a page that reads the answer, but it takes a slot. */
  allows({ origin, site, host, request }: FromWhere<R>): boolean {
    const { allowed } = this;
    if (allowed === '*') return true;
    if (origin === undefined) return !FOREIGN_SITES.has(site);
    if (typeof allowed === 'function') {
      try {
        const said: unknown = allowed(origin, request);
        return verdictOf('allowedOrigins', said) && said === true;
      } catch (error) {
        this.onError(error);
        return false;
      }
    }
    if (allowed !== undefined) return allowed.includes(origin);
    return URL.canParse(origin) && new URL(origin).host === host;
  }

  /** Does not name the expected host: behind a proxy, that is an internal name. */
  refusal({ origin, site }: FromWhere<R>): Status {
    if (origin === undefined) return forbidden(`pages of other origins may not connect: Sec-Fetch-Site is ${site}`);
    const why = this.allowed === undefined ? 'it does not match the header Host' : 'allowedOrigins does not admit it';
    return forbidden(`this origin may not connect: ${why}`);
  }

  /** The CORS headers that let a page of this origin read the response. */
  corsHeaders({ origin }: Pick<FromWhere<R>, 'origin'>): Record<string, string> {
    if (origin === undefined || this.allowed === undefined) return {};
    if (this.allowed === '*') return { 'access-control-allow-origin': '*' };
    return { 'access-control-allow-origin': origin, vary: 'Origin' };
  }
}
