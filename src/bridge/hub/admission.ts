import { toOverflow } from '../../broadcast/broadcaster.ts';
import { toTopicSet } from '../../broadcast/topics.ts';
import { invalid, wholeNumber } from '../../watch/errors.ts';
import type { Status, WatchEvent } from '../../watch/event.ts';
import { isStatus } from '../../watch/event.ts';
import { known } from '../../watch/options.ts';
import type { Reservation } from './connection-slots.ts';
import type { HubCore } from './hub-core.ts';
import type { ClientOptions } from './hub-options.ts';
import type { Limits } from './limits.ts';
import type { Asked } from './query.ts';
import { readQuery } from './query.ts';
import { forbidden, LEAVING, unauthorized, unavailable } from './refusals.ts';
import type { RefusalReason } from './tally.ts';

/** Who may connect, and what they may see. `R` is the host's request, `I` the application's identity of a client. */
export interface AdmissionOptions<R, I = unknown, E extends WatchEvent = WatchEvent> {
  /**
   * Origins whose web pages may connect. Default: this host's own, according to the header `Host`, which a proxy must pass on. A
   * list replaces the default, so it must include this host. A function decides per request. `'*'` admits all. Clients other than
   * browsers send no origin and are admitted. So do browsers for a `<script>`, a frame, a link or `fetch` with `no-cors`: unless
   * `'*'` is set, these are refused if the header `Sec-Fetch-Site` says that they come from another origin. Over HTTP, admitted origins get CORS headers. If pages of another origin send
   * cookies, you must also set `access-control-allow-credentials: true`, with `headers`.
   */
  allowedOrigins?: '*' | readonly string[] | ((origin: string, request: R) => boolean) | undefined;
  /**
   * Identifies the client. The identity that it returns admits the client; `undefined`, `null` and `false` mean 401. To refuse
   * with 401 or 403, return or throw `{ status: 401 | 403 }`. Any other thrown value means 503, so an error here admits nobody.
   */
  authenticate?: ((request: R) => Identified<I> | PromiseLike<Identified<I>>) | undefined;
  /**
   * Returns the options of this client's watch; `{}` for none. Its filter applies to live events, replayed events and snapshots.
   * A result that is not an object means 503, so a forgotten `return` admits nobody.
   */
  watchOptions?: ((request: R, identity: I) => ClientOptions<E> | PromiseLike<ClientOptions<E>>) | undefined;
  /**
   * The client's address, for `maxClientsPerAddress` and statistics. Default: the remote address. Empty: unknown, not counted.
   */
  clientAddress?: ((request: R) => string) | undefined;
}

/** The names of all options in {@link AdmissionOptions}. */
export const ADMISSION_OPTIONS: readonly (keyof AdmissionOptions<never>)[] = [
  ...(['allowedOrigins', 'authenticate', 'watchOptions', 'clientAddress'] as const),
];

/** What `authenticate` may return. */
export type Identified<I> = I | undefined | null | false | { readonly status: 401 | 403; readonly message?: string | undefined };

/** A request, independent of the host. */
export interface Caller<R> {
  readonly request: R;
  readonly address: string;
  readonly origin: string | undefined;
  /** The header `Sec-Fetch-Site`, with which browsers say where a request comes from. Pages cannot change it. */
  readonly site: string | undefined;
  readonly host: string | undefined;
  readonly search: string;
  readonly lastEventId: string | undefined;
  /** Calls back if the client leaves before it is answered. Returns a function that cancels this. */
  onGone(callback: () => void): () => void;
}

/** A client that may connect. */
export interface Admitted {
  readonly reservation: Reservation;
  readonly address: string;
  readonly asked: Asked;
  readonly identity: unknown;
  readonly options: ClientOptions;
}

/** Admitted, or the Status of the refusal. */
export type Verdict = Admitted | Status;

/** What `Sec-Fetch-Site` says of another origin. With `none`, a person has typed the address. */
const FOREIGN_SITES: ReadonlySet<string | undefined> = new Set(['cross-site', 'same-site']);

/**
 * Decides who may connect: origin, query, a slot, then the application's hooks.
 *
 *     origin? --> query? --> slot? --> authenticate --> watchOptions --> in
 *       403        400        503      401 403 503        503
 *                                     `-- timeout, or the hub shuts down: 503; the client leaves: no answer --'
 *
 * If the hooks return no promises, all of this is one synchronous step.
 */
export class Admission<R, I> {
  private readonly core: HubCore;
  private readonly options: AdmissionOptions<R, I>;
  private readonly limits: Limits;

  constructor(core: HubCore, options: AdmissionOptions<R, I>, limits: Limits) {
    const { allowedOrigins = '*' } = options;
    // A string would admit every origin that is part of it. Other values would throw only at the first request.
    if (allowedOrigins !== '*' && typeof allowedOrigins !== 'function' && !Array.isArray(allowedOrigins)) {
      throw invalid('allowedOrigins', allowedOrigins, "'*', an array of origins, or a function");
    }
    for (const hook of ['authenticate', 'watchOptions', 'clientAddress'] as const) {
      if (options[hook] !== undefined && typeof options[hook] !== 'function') throw invalid(hook, options[hook], 'a function');
    }
    this.core = core;
    this.options = options;
    this.limits = limits;
  }

  /** Whether the caller's origin may connect. A caller without an origin is not a page that reads the answer, but it takes a slot. */
  allows({ origin, site, host, request }: Caller<R>): boolean {
    const { allowedOrigins } = this.options;
    if (allowedOrigins === '*') return true;
    if (origin === undefined) return !FOREIGN_SITES.has(site);
    if (typeof allowedOrigins === 'function') {
      try {
        // A promise does not count as true.
        return allowedOrigins(origin, request) === true;
      } catch {
        return false; // an error in the hook admits nobody
      }
    }
    if (allowedOrigins !== undefined) return allowedOrigins.includes(origin);
    return URL.canParse(origin) && new URL(origin).host === host;
  }

  /** Does not name the expected host: behind a proxy, that is an internal name. */
  private forbiddenOrigin({ origin, site }: Caller<R>): Status {
    if (origin === undefined) return forbidden(`pages of other origins may not connect: Sec-Fetch-Site is ${site}`);
    const why =
      this.options.allowedOrigins === undefined ? 'it does not match the header Host' : 'allowedOrigins does not admit it';
    return forbidden(`this origin may not connect: ${why}`);
  }

  /** The CORS headers that let a page of this origin read the response. */
  corsHeaders({ origin }: Caller<R>): Record<string, string> {
    if (origin === undefined || this.options.allowedOrigins === undefined) return {};
    if (this.options.allowedOrigins === '*') return { 'access-control-allow-origin': '*' };
    return { 'access-control-allow-origin': origin, vary: 'Origin' };
  }

  /** Decides. Resolves to undefined if the client has left before the decision; its slot is then free again. */
  admit(caller: Caller<R>): Verdict | Promise<Verdict | undefined> {
    const { core } = this;
    const asked = readQuery(caller, this.limits.maxQueryBytes);
    let { address } = caller;
    try {
      address = this.options.clientAddress?.(caller.request) ?? address;
      if (!this.allows(caller)) return core.refuse({ reason: 'origin', status: this.forbiddenOrigin(caller), address });
      if (isStatus(asked)) return core.refuse({ reason: 'badRequest', status: asked, address });
      const reservation = core.reserve(address);
      if (isStatus(reservation)) return reservation;
      return this.ask(caller, { reservation, address, asked });
    } catch (error) {
      return this.deny(error, address);
    }
  }

  private ask(
    caller: Caller<R>,
    place: Pick<Admitted, 'reservation' | 'address' | 'asked'>,
  ): Verdict | Promise<Verdict | undefined> {
    const { reservation, address } = place;
    const refused = (error: unknown): Status => {
      reservation.release();
      return this.deny(error, address);
    };
    try {
      const known = this.know(caller.request);
      if (!isPromise(known)) return { ...place, ...known };
      return this.inTime(caller, known).then((settled) => {
        if (settled === undefined) reservation.release();
        return settled && { ...place, ...settled };
      }, refused);
    } catch (error) {
      return refused(error);
    }
  }

  /** Asks the application's hooks. Synchronous if they are. */
  private know(request: R): Known | Promise<Known> {
    const { authenticate, watchOptions } = this.options;
    const see = (identity: I): Known | Promise<Known> =>
      then(watchOptions === undefined ? {} : watchOptions(request, identity), (options) => ({
        identity,
        options: checked(options, this.core.hasTopics),
      }));
    if (authenticate === undefined) return see(undefined as I);
    return then(authenticate(request), (said) => see(identityOf(said)));
  }

  /** Waits for the hooks, but only until the timeout, and not for a client that has left. */
  private inTime(caller: Caller<R>, known: Promise<Known>): Promise<Known | undefined> {
    const { clock, handshakeTimeoutMs } = this.limits;
    return new Promise((resolve, reject) => {
      const late = unavailable('the decision whether to admit this client took too long');
      const cancel = clock.schedule(handshakeTimeoutMs, () => settle(() => reject(new Denied('timeout', late))));
      const cancelGone = caller.onGone(() => settle(() => resolve(undefined)));
      const cancelClosing = this.core.lifetime.whenClosing(() => settle(() => reject(new Denied('ended', LEAVING))));
      const settle = (how: () => void): void => {
        cancel();
        cancelGone();
        cancelClosing();
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
    return this.core.refuse({ reason, status, address, ...(reason === 'failed' ? { error } : {}) });
  }
}

type Known = Pick<Admitted, 'identity' | 'options'>;

/** A refusal, as an error. */
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
  // An Error's message was written for the application's log. Only that of a plain object is meant for the client.
  const told = error instanceof Error || typeof message !== 'string' ? undefined : message;
  if (status === 401) return new Denied('unauthorized', unauthorized(told));
  if (status === 403) return new Denied('forbidden', forbidden(told ?? 'this client may not watch'));
  return new Denied('failed', unavailable('the server could not decide whether to admit this client'));
}

function identityOf<I>(said: Identified<I>): I {
  if (said === undefined || said === null || said === false) throw { status: 401 };
  const { status } = said as { status?: unknown };
  if (status === 401 || status === 403) throw said;
  return said as I;
}

const CLIENT_OPTIONS = ['filter', 'topics', 'overflow', 'capacity', 'maxQueuedBytes'] as const;

/** Copies the options. Throws for an unknown one, which may be a filter, and for an invalid one: either admits nobody. */
function checked(options: ClientOptions, hasTopics: boolean): ClientOptions {
  if (typeof options !== 'object' || options === null) throw invalid('watchOptions', options, 'an object, {} for no options');
  const { filter, topics, overflow, capacity, maxQueuedBytes } = known(options, CLIENT_OPTIONS);
  if (filter !== undefined && typeof filter !== 'function') throw invalid('filter', filter, 'a function');
  if (capacity !== undefined) wholeNumber('capacity', capacity, 1);
  if (maxQueuedBytes !== undefined) wholeNumber('maxQueuedBytes', maxQueuedBytes, 1);
  if (overflow !== undefined) toOverflow(overflow);
  if (topics !== undefined && !hasTopics) throw invalid('topics', topics, 'none, because the hub has no topicsOf');
  return { filter, topics: topics === undefined ? undefined : toTopicSet(topics), overflow, capacity, maxQueuedBytes };
}

function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> & Promise<T> {
  return typeof (value as Partial<PromiseLike<T>> | undefined)?.then === 'function';
}

/** Continues with a value, synchronously if it is not a promise. */
function then<T, U>(value: T | PromiseLike<T>, next: (value: T) => U | Promise<U>): U | Promise<U> {
  return isPromise(value) ? Promise.resolve(value).then(next) : next(value as T);
}
