import { toOverflow } from '../../../broadcast/broadcaster.ts';
import { toTopicSet } from '../../../broadcast/topics.ts';
import { isPromise, textFrom } from '../../../watch/abort.ts';
import { type Clock, systemClock } from '../../../watch/clock.ts';
import { callable, checkOptions, invalid, namesOf, wholeNumber, wholeNumbers } from '../../../watch/errors.ts';
import { isStatus, type Status, toUnavailable, type WatchEvent } from '../../../watch/event.ts';
import { DEFAULTS } from '../../protocol.ts';
import type { Admitted, HubCore } from '../hub-core.ts';
import type { ClientOptions } from '../hub-options.ts';
import { readQuery } from '../query.ts';
import {
  type AllowedOrigins,
  checkExpiry,
  expiryOf,
  type FromWhere,
  type Identified,
  identityOf,
  LEAVING,
  Origins,
  RefusalError,
  toDenied,
} from './refusals.ts';

export type { Identified } from './refusals.ts';

/** Who may connect, and what they may see. `R` is the host's request, `I` the application's identity of a client. */
export interface AdmissionOptions<R, I = unknown, E extends WatchEvent = WatchEvent> {
  /**
   * Origins whose web pages may connect. Default: this host's own, according to the header `Host`, which a proxy must pass on. A
   * list replaces the default, so it must include this host. A function decides per request. `'*'` admits all. Clients other than
   * browsers send no origin and are admitted. Browsers send none either for a `<script>`, a frame, a link or `fetch` with
   * `no-cors`: unless `'*'` is set, such requests are refused if the header `Sec-Fetch-Site` says that they come from another
   * origin. Over HTTP, admitted origins get CORS headers. If pages of another origin send cookies, you must also set
   * `access-control-allow-credentials: true`, with `headers`.
   */
  allowedOrigins?: AllowedOrigins<R>;
  /**
   * Identifies the client. A returned identity admits the client; anything falsy, such as `undefined` or an empty string, means
   * 401. To refuse with 401 or 403, return or throw `{ status: 401 | 403 }`. Any other thrown value means 503, so an error here
   * admits nobody. If the identity is an object with `expiresAtMs`, in ms since 1970, the client is told to reconnect at that
   * time: see {@link ClientOptions}.
   */
  authenticate?: ((request: R) => Identified<I> | PromiseLike<Identified<I>>) | undefined;
  /**
   * Returns the options of this client's watch; `{}` for none. Its filter applies to live events, replayed events and snapshots.
   * A result that is not an object means 503, so a forgotten `return` admits nobody.
   */
  watchOptions?: ((request: R, identity: I) => ClientOptions<E> | PromiseLike<ClientOptions<E>>) | undefined;
  /**
   * The client's address, for `maxClientsPerAddress` and statistics. Default, also for null and undefined: the remote address.
   * Empty: unknown, not counted. Any other text counts as it is: IPv6 addresses in brackets are not counted by their /64.
   */
  clientAddress?: ((request: R) => string | null | undefined) | undefined;
}

const HOOKS = ['authenticate', 'watchOptions', 'clientAddress'] as const;
export const ADMISSION_OPTIONS: readonly (keyof AdmissionOptions<never>)[] = [...HOOKS, 'allowedOrigins'];

/** A request, independent of the host. */
export interface Caller<R> extends FromWhere<R> {
  readonly address: string;
  readonly search: string;
  readonly lastEventId: string | undefined;
  /** Calls back if the client leaves before it is answered. Returns a function that cancels this. */
  onGone(callback: () => void): () => void;
}

/** Admitted, or the Status of the refusal. */
export type Verdict = Admitted | Status;

/**
 * Decides who may connect: origin, query, a slot, then the application's hooks.
 *
 *     origin? --> query? --> slot? --> authenticate --> watchOptions --> (where in the hub's source?) --> in
 *       403        400        503      401 403 503        503                     503
 *                                     `-- timeout, or the hub shuts down: 503; the client leaves: no answer --'
 *
 * If the hooks return no promises, all of this is one synchronous step.
 */
export class HubAdmission<R, I> {
  private readonly core: HubCore;
  private readonly options: AdmissionOptions<R, I>;
  private readonly limits: Limits;
  private readonly origins: Origins<R>;

  constructor(core: HubCore, options: AdmissionOptions<R, I>, limits: Limits) {
    for (const hook of HOOKS) callable(hook, options[hook]);
    this.origins = new Origins(options.allowedOrigins, (error) => core.tally.failed(error, 'admission'));
    this.core = core;
    this.options = options;
    this.limits = limits;
  }

  /** Whether the caller's origin may connect. */
  allows(caller: Caller<R>): boolean {
    return this.origins.allows(caller);
  }

  /** The CORS headers that let a page of this origin read the response. */
  corsHeaders(caller: Caller<R>): Record<string, string> {
    return this.origins.corsHeaders(caller);
  }

  /** Decides. Resolves to undefined if the client has left before the decision; its slot is then free again. */
  admit(caller: Caller<R>): Verdict | Promise<Verdict | undefined> {
    const { core } = this;
    const asked = readQuery(caller, this.limits.maxQueryBytes);
    let { address } = caller;
    try {
      address = textFrom('clientAddress', this.options.clientAddress?.(caller.request) ?? address);
      if (!this.allows(caller)) return core.refuse({ reason: 'origin', status: this.origins.refusal(caller), address });
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
    let gone: AbortController | undefined;
    const find = (own: Known): Known | Promise<Known> => {
      if (!this.core.mustLocate(place.asked)) return own;
      gone = new AbortController();
      return this.core.locate(place.asked, gone.signal).then((catchUp) => ({ ...own, catchUp }));
    };
    const decide = (): Known | Promise<Known> => {
      const { disconnects } = this.core;
      const known = then(this.know(caller.request), find);
      // A client that the application meant to disconnect may have been identified before that.
      return isPromise(known) ? known.then((own) => (this.core.disconnects === disconnects ? own : decide())) : known;
    };
    try {
      const known = decide();
      if (!isPromise(known)) return { ...place, ...known };
      return this.inTime(caller, known, () => gone?.abort()).then((settled) => {
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
      then(watchOptions === undefined ? {} : watchOptions(request, identity), (given) => {
        const options = checked(given, this.core.hasTopics);
        const expiresAtMs = Math.min(expiryOf(identity), expiryOf(options));
        checkExpiry(expiresAtMs, this.core.now);
        return { identity, options, expiresAtMs };
      });
    if (authenticate === undefined) return see(undefined as I);
    return then(authenticate(request), (said) => see(identityOf(said)));
  }

  /** Waits for the hooks, but only until the timeout, and not for a client that has left. */
  private inTime(caller: Caller<R>, known: Promise<Known>, abort: () => void): Promise<Known | undefined> {
    const { clock, handshakeTimeoutMs } = this.limits;
    return new Promise((resolve, reject) => {
      const late = toUnavailable('the decision whether to admit this client took too long');
      const cancel = clock.schedule(handshakeTimeoutMs, () => settle(() => reject(new RefusalError('timeout', late))));
      const cancelGone = caller.onGone(() => settle(() => resolve(undefined)));
      const cancelClosing = this.core.lifetime.whenClosing(() => settle(() => reject(new RefusalError('ended', LEAVING))));
      const settle = (how: () => void): void => {
        cancel();
        cancelGone();
        cancelClosing();
        abort();
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

type Known = Pick<Admitted, 'identity' | 'options' | 'expiresAtMs' | 'catchUp'>;

const CLIENT_OPTIONS = ['filter', 'topics', 'overflow', 'capacity', 'maxQueuedBytes', 'expiresAtMs'] as const;

/** Copies the options. Throws for an unknown one, which may be a filter, and for an invalid one: either admits nobody. */
function checked(options: ClientOptions, hasTopics: boolean): ClientOptions {
  if (typeof options !== 'object' || options === null) throw invalid('watchOptions', options, 'an object, {} for no options');
  const { filter, topics, overflow, capacity, maxQueuedBytes, expiresAtMs } = checkOptions(options, CLIENT_OPTIONS);
  callable('filter', filter);
  if (capacity !== undefined) wholeNumber('capacity', capacity, 1);
  if (maxQueuedBytes !== undefined) wholeNumber('maxQueuedBytes', maxQueuedBytes, 1);
  if (overflow !== undefined) toOverflow(overflow);
  if (topics !== undefined && !hasTopics) throw invalid('topics', topics, 'none, because the hub has no topicsOf');
  return {
    filter,
    topics: topics === undefined ? undefined : toTopicSet(topics),
    overflow,
    capacity,
    maxQueuedBytes,
    expiresAtMs,
  };
}

/** Continues with a value, synchronously if it is not a promise. */
function then<T, U>(value: T | PromiseLike<T>, next: (value: T) => U | Promise<U>): U | Promise<U> {
  return isPromise(value) ? Promise.resolve(value).then(next) : next(value as T);
}

/** Limits per connection, common to all transports. */
export interface ConnectionOptions {
  /**
   * Bytes that may wait in a connection before its client's queue fills instead; default 1 MiB. One more slice of 256 KiB, or one
   * larger event, may be on its way.
   */
  maxBufferedBytes?: number | undefined;
  /**
   * How long a client may take nothing while bytes wait for it, in milliseconds; then it is cut, at most a quarter of that time
   * later. Default 30,000; 0 means never. Progress is visible only when the operating system's buffer takes more bytes. If that
   * buffer has grown to megabytes, a client that reads less than about a third of it in this time appears to take nothing.
   */
  stallTimeoutMs?: number | undefined;
  /** How long `authenticate` and `watchOptions` may take before a client is refused, in milliseconds; default 10,000. */
  handshakeTimeoutMs?: number | undefined;
  /** Longest query, in bytes; default 2,048. The HTTP server limits headers as a whole: `maxHeaderSize` in node:http. */
  maxQueryBytes?: number | undefined;
  /** The clock for timeouts and heartbeats. */
  clock?: Clock | undefined;
}

const COUNTS = {
  maxBufferedBytes: [DEFAULTS.maxBufferedBytes, 1],
  stallTimeoutMs: [DEFAULTS.stallTimeoutMs],
  handshakeTimeoutMs: [DEFAULTS.handshakeTimeoutMs, 1],
  maxQueryBytes: [DEFAULTS.maxQueryBytes],
} as const;
export const CONNECTION_OPTIONS: readonly (keyof ConnectionOptions)[] = [...namesOf(COUNTS), 'clock'];

/** The limits of a connection with all defaults filled in. */
export type Limits = { readonly [K in keyof ConnectionOptions]-?: Exclude<ConnectionOptions[K], undefined> };

/** Fills in defaults. Throws INVALID_ARGUMENT for an invalid limit. */
export function toLimits(options: ConnectionOptions): Limits {
  return { ...wholeNumbers(options, COUNTS), clock: options.clock ?? systemClock };
}
