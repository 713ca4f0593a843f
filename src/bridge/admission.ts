import { toOverflow } from '../broadcast/broadcaster.ts';
import { invalid, wholeNumber } from '../watch/errors.ts';
import type { Status, WatchEvent } from '../watch/event.ts';
import { isStatus } from '../watch/event.ts';
import type { ClientOptions } from './hub-options.ts';
import type { Limits } from './limits.ts';
import type { Asked } from './query.ts';
import { readQuery } from './query.ts';
import type { Reception } from './reception.ts';
import { forbidden, LEAVING, unauthorized, unavailable } from './refusals.ts';
import type { Ticket } from './seats.ts';
import type { RefusalReason } from './tally.ts';

/**
 * Who may come in, and what they get to see. `R` is the host's kind of request, `I` what the application knows of a client, `E` the
 * hub's events.
 */
export interface AdmissionOptions<R, I = unknown, E extends WatchEvent = WatchEvent> {
  /**
   * Web pages of which origins may connect. Default: those that come from this same host, as the header `Host` says it, which a
   * proxy must pass on. What is given here stands instead: a list names this host's own pages, too. Clients that are no browsers
   * send no origin, and are let in. A function decides for itself, `'*'` lets all in. Over HTTP, whom this lets in is told so in the
   * headers that browsers look for (CORS). For cookies from a page of another origin they also look for
   * `access-control-allow-credentials: true`, which is yours to say, in `headers`.
   */
  allowedOrigins?: '*' | readonly string[] | ((origin: string, request: R) => boolean) | undefined;
  /**
   * Who is this? An identity of any kind lets the client in; `undefined`, `null` or `false` is 401; `{ status: 401 | 403 }`,
   * answered or thrown, is that. Anything else that is thrown is 503: nobody gets in because something is broken.
   */
  authenticate?: ((request: R) => Identified<I> | PromiseLike<Identified<I>>) | undefined;
  /**
   * What this client's watch is like. Its filter holds for all that the client ever gets: live, replayed, and of a snapshot. `{}`
   * is no options. An answer that is no object is 503, now or in a promise: a forgotten `return` lets nobody in.
   */
  watchOptions?: ((request: R, identity: I) => ClientOptions<E> | PromiseLike<ClientOptions<E>>) | undefined;
  /** Whose connection this is, for `maxClientsPerAddress` and the numbers. Default: the address at the other end of it. Empty: nobody's. */
  clientAddress?: ((request: R) => string) | undefined;
}

/** What `authenticate` may say. */
export type Identified<I> = I | undefined | null | false | { readonly status: 401 | 403; readonly message?: string | undefined };

/** A request, whatever the host calls it. */
export interface Caller<R> {
  readonly request: R;
  readonly address: string;
  readonly origin: string | undefined;
  readonly host: string | undefined;
  readonly search: string;
  readonly lastEventId: string | undefined;
  /** Calls back when the client leaves before it was answered. The function that comes back ends that. */
  onGone(callback: () => void): () => void;
}

/** A client that may come in. */
export interface Admitted {
  readonly ticket: Ticket;
  readonly address: string;
  readonly asked: Asked;
  readonly identity: unknown;
  readonly options: ClientOptions;
}

/** Let in, or the Status that says why not. */
export type Verdict = Admitted | Status;

/**
 * The door: origin, query, a seat, then the application's own word.
 *
 *     origin? --> query? --> seat? --> authenticate --> watchOptions --> in
 *       403        400        503      401 403 503        503
 *                                     `-- late, or the hub shuts down: 503; the client leaves: nobody --'
 *
 * Without promises in the hooks all of this is one synchronous step.
 */
export class Admission<R, I> {
  private readonly reception: Reception;
  private readonly options: AdmissionOptions<R, I>;
  private readonly limits: Limits;

  constructor(reception: Reception, options: AdmissionOptions<R, I>, limits: Limits) {
    const { allowedOrigins = '*' } = options;
    // Every origin that is a part of a text would be let in by it; what is no list at all throws when the first page comes.
    if (allowedOrigins !== '*' && typeof allowedOrigins !== 'function' && !Array.isArray(allowedOrigins)) {
      throw invalid('allowedOrigins', allowedOrigins, "'*', an array of origins, or a function");
    }
    for (const hook of ['authenticate', 'watchOptions', 'clientAddress'] as const) {
      if (options[hook] !== undefined && typeof options[hook] !== 'function') throw invalid(hook, options[hook], 'a function');
    }
    this.reception = reception;
    this.options = options;
    this.limits = limits;
  }

  /** Whether pages of this caller's origin may connect; those of no origin are no pages. */
  allows({ origin, host, request }: Caller<R>): boolean {
    const { allowedOrigins } = this.options;
    if (origin === undefined || allowedOrigins === '*') return true;
    if (typeof allowedOrigins === 'function') {
      try {
        // A promise is no yes.
        return allowedOrigins(origin, request) === true;
      } catch {
        return false; // nobody gets in because something is broken
      }
    }
    if (allowedOrigins !== undefined) return allowedOrigins.includes(origin);
    return URL.canParse(origin) && new URL(origin).host === host;
  }

  /** What the host is called here is nobody's business: behind a proxy, that is a name of the inside. */
  private get forbiddenOrigin(): Status {
    const why =
      this.options.allowedOrigins === undefined ? 'it is not that of the header Host' : 'allowedOrigins does not let it in';
    return forbidden(`this origin may not connect: ${why}`);
  }

  /** The headers by which a browser knows that a page of that origin may read this. */
  corsHeaders({ origin }: Caller<R>): Record<string, string> {
    if (origin === undefined || this.options.allowedOrigins === undefined) return {};
    if (this.options.allowedOrigins === '*') return { 'access-control-allow-origin': '*' };
    return { 'access-control-allow-origin': origin, vary: 'Origin' };
  }

  /** Decides. Undefined: the client left before it was decided, and nothing of it stays. */
  admit(caller: Caller<R>): Verdict | Promise<Verdict | undefined> {
    const { reception } = this;
    const asked = readQuery(caller, this.limits.maxQueryBytes);
    let { address } = caller;
    try {
      address = this.options.clientAddress?.(caller.request) ?? address;
      if (!this.allows(caller)) return reception.refuse({ reason: 'origin', status: this.forbiddenOrigin, address });
      if (isStatus(asked)) return reception.refuse({ reason: 'badRequest', status: asked, address });
      const ticket = reception.reserve(address);
      if (isStatus(ticket)) return ticket;
      return this.ask(caller, { ticket, address, asked });
    } catch (error) {
      return this.deny(error, address);
    }
  }

  private ask(caller: Caller<R>, place: Pick<Admitted, 'ticket' | 'address' | 'asked'>): Verdict | Promise<Verdict | undefined> {
    const { ticket, address } = place;
    const refused = (error: unknown): Status => {
      ticket.release();
      return this.deny(error, address);
    };
    try {
      const known = this.know(caller.request);
      if (!isPromise(known)) return { ...place, ...known };
      return this.inTime(caller, known).then((settled) => {
        if (settled === undefined) ticket.release();
        return settled && { ...place, ...settled };
      }, refused);
    } catch (error) {
      return refused(error);
    }
  }

  /** The application's word: synchronous if its hooks are. */
  private know(request: R): Known | Promise<Known> {
    const { authenticate, watchOptions } = this.options;
    const see = (identity: I): Known | Promise<Known> =>
      then(watchOptions === undefined ? {} : watchOptions(request, identity), (options) => ({
        identity,
        options: checked(options),
      }));
    if (authenticate === undefined) return see(undefined as I);
    return then(authenticate(request), (said) => see(identityOf(said)));
  }

  /** Waits for the hooks, but no longer than they may take, and not for a client that has left. */
  private inTime(caller: Caller<R>, known: Promise<Known>): Promise<Known | undefined> {
    const { clock, handshakeTimeoutMs } = this.limits;
    return new Promise((resolve, reject) => {
      const late = unavailable('it took too long to decide whether this client may come in');
      const cancel = clock.schedule(handshakeTimeoutMs, () => settle(() => reject(new Denied('timeout', late))));
      const ignore = caller.onGone(() => settle(() => resolve(undefined)));
      const stay = this.reception.lifetime.whenClosing(() => settle(() => reject(new Denied('ended', LEAVING))));
      const settle = (how: () => void): void => {
        cancel();
        ignore();
        stay();
        how();
      };
      known.then(
        (value) => settle(() => resolve(value)),
        (error: unknown) => settle(() => reject(error)),
      );
    });
  }

  private deny(error: unknown, address: string): Status {
    const { reason, status } = toDenied(error);
    return this.reception.refuse({ reason, status, address, ...(reason === 'failed' ? { error } : {}) });
  }
}

type Known = Pick<Admitted, 'identity' | 'options'>;

/** A no on its way. */
class Denied extends Error {
  readonly reason: RefusalReason;
  readonly status: Status;

  constructor(reason: RefusalReason, status: Status) {
    super(status.message);
    this.reason = reason;
    this.status = status;
  }
}

function toDenied(error: unknown): Denied {
  if (error instanceof Denied) return error;
  const { status, message } = (error ?? {}) as { status?: unknown; message?: unknown };
  // A message in an error was written for the application's log; only what was said on purpose is passed on.
  const told = error instanceof Error || typeof message !== 'string' ? undefined : message;
  if (status === 401) return new Denied('unauthorized', unauthorized(told));
  if (status === 403) return new Denied('forbidden', forbidden(told ?? 'this client may not watch'));
  return new Denied('failed', unavailable('whether this client may come in could not be decided'));
}

function identityOf<I>(said: Identified<I>): I {
  if (said === undefined || said === null || said === false) throw { status: 401 };
  const { status } = said as { status?: unknown };
  if (status === 401 || status === 403) throw said;
  return said as I;
}

/** Only what is meant to be said here: a watch has more options, which are the hub's. A filter that was forgotten lets nobody in. */
function checked(options: ClientOptions): ClientOptions {
  if (typeof options !== 'object' || options === null) throw invalid('watchOptions', options, 'an object, {} for no options');
  const { filter, overflow, capacity } = options;
  if (filter !== undefined && typeof filter !== 'function') throw invalid('filter', filter, 'a function');
  if (capacity !== undefined) wholeNumber('capacity', capacity, 1);
  if (overflow !== undefined) toOverflow(overflow);
  return { filter, overflow, capacity };
}

function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> & Promise<T> {
  return typeof (value as Partial<PromiseLike<T>> | undefined)?.then === 'function';
}

/** Goes on with a value, at once if it is there. */
function then<T, U>(value: T | PromiseLike<T>, next: (value: T) => U | Promise<U>): U | Promise<U> {
  return isPromise(value) ? Promise.resolve(value).then(next) : next(value as T);
}
