/** The application's hooks for a request. If one throws, nobody is admitted. */
import { checkExpiry, expiryOf, type Identified, identityOf, toDenied } from '../../bridge/hub/admission/refusals.ts';
import type { CutReason } from '../../bridge/hub/connection.ts';
import { type SharedTimer, TICKS, type TimerMember, toSharedTimer } from '../../bridge/transport/stall.ts';
import { refused } from '../../storage/statuses.ts';
import { textFrom, verdictOf } from '../../watch/abort.ts';
import { isWatchError, refusedBy } from '../../watch/errors.ts';
import { hasCode, REVOKED, statusOf } from '../api-status.ts';
import type { Asker, UserInfo } from '../kinds/reviews.ts';
import type { Settings } from '../options.ts';
import type { ResourceInfo } from '../resource-info.ts';
import { Deadline } from './deadline.ts';
import { type Ask, impersonates, impersonationOf } from './impersonation.ts';
import type { Slot, Streaming, WireRequest } from './wire.ts';

/** The client of a request. */
export interface RequestClient {
  /** What `authenticate` has returned. */
  readonly sender: unknown;
  /** The same, or that of the user whom the sender impersonates. */
  readonly identity: unknown;
  /** What the sender needs for that. */
  readonly asks?: readonly Ask[] | undefined;
}

/** Stands for no identity, which may be any value. */
const NOBODY: object = {};

export class Hooks {
  private readonly settings: Settings;

  constructor(settings: Settings) {
    this.settings = settings;
  }

  /** The address whose limits a request counts against: that of the connection, unless there is a `clientAddress` hook. */
  addressOf({ request, address }: WireRequest): string {
    return this.asked(() => textFrom('clientAddress', this.settings.clientAddress?.(request) ?? address));
  }

  /** The tenant whose limits apply to a client. Empty: none. */
  tenantOf(identity: unknown): string {
    const { tenantOf, authenticate } = this.settings;
    if (authenticate === undefined) return '';
    if (tenantOf === undefined) return typeof identity === 'string' ? identity : '';
    // A number or a promise would be nobody's tenant, and have no limits.
    return this.asked(() => textFrom('tenantOf', tenantOf(identity) ?? ''));
  }

  /** Who sends a request. Throws 401 for an identity that has expired. */
  async identify(request: WireRequest): Promise<RequestClient> {
    const { authenticate } = this.settings;
    const sender = authenticate && (await this.identified(() => authenticate(request.request)));
    if (!this.isForAnother(request)) return { sender, identity: sender };
    const { user, asks } = impersonationOf(request);
    await this.allowAll(asks, sender);
    return { sender, identity: await this.named(user), asks };
  }

  /** Whether a request names a user for whom it is to be answered. */
  isForAnother(request: WireRequest): boolean {
    return this.settings.identityOf !== undefined && impersonates(request);
  }

  /** The identity of a user whom somebody names. Throws 403 if there is none. */
  private async named(user: UserInfo): Promise<unknown> {
    const ask = this.settings.identityOf;
    if (ask === undefined) throw refused(403, 'Forbidden', 'this server does not know who others are: `identityOf` is not set');
    const identity = await this.identified(async () => (await ask(user)) || NOBODY);
    if (identity === NOBODY) throw refused(403, 'Forbidden', `there is no user ${JSON.stringify(user.username ?? '')}`);
    return identity;
  }

  private async identified(ask: () => Identified<unknown> | PromiseLike<Identified<unknown>>): Promise<unknown> {
    try {
      const identity = identityOf(await ask());
      checkExpiry(expiryOf(identity), this.settings.now);
      return identity;
    } catch (error) {
      throw this.denied(error);
    }
  }

  /** Who asks by a review. */
  asker(identity: unknown, resources: () => readonly ResourceInfo[]): Asker {
    const { authorize, authenticateToken } = this.settings;
    return {
      identity,
      resources,
      denial: async (verb, resource, { namespace, name }) => {
        try {
          await this.allow([verb, resource, namespace, name, identity]);
          return undefined;
        } catch (error) {
          if (!hasCode(error, 403)) throw error;
          return statusOf(error).status.message;
        }
      },
      as: async (user) => this.asker(authorize && (await this.named(user)), resources),
      holder: authenticateToken && ((token) => this.identified(() => authenticateToken(token))),
    };
  }

  /** Throws 403 unless the sender of a request may impersonate all that it names. */
  async allowAll(asks: readonly Ask[], sender: unknown): Promise<void> {
    for (const [resource, namespace, name] of asks) await this.allow(['impersonate', resource, namespace, name, sender]);
  }

  /** Throws 403 unless `authorize` returns true. */
  async allow([verb, resource, namespace, name, identity]: Parameters<NonNullable<Settings['authorize']>>): Promise<void> {
    const { authorize } = this.settings;
    if (authorize === undefined) return;
    try {
      if ((await authorize(verb, resource, namespace, name, identity)) === true) return;
    } catch (error) {
      // A refusal is meant for the client. Any other WatchError comes from a request of the hook, and is not this server's
      // answer.
      if (!isWatchError(error) || hasCode(error, 401) || hasCode(error, 403)) throw error;
      throw new Error(`authorize failed: ${error.message}`, { cause: error });
    }
    const where = namespace === undefined ? '' : ` in the namespace "${namespace}"`;
    const what = name === undefined ? resource : `${resource} "${name}"`;
    throw refused(403, 'Forbidden', `${what} is forbidden: this identity cannot ${verb} it${where}`);
  }

  /** The result of another hook. */
  private asked<T>(hook: () => T): T {
    try {
      return hook();
    } catch (error) {
      throw this.denied(error);
    }
  }

  /** The refusal for an error that a hook has thrown. */
  private denied(error: unknown): unknown {
    const { reason, status } = toDenied(error);
    if (reason === 'failed') this.settings.onError(error);
    return refusedBy(status);
  }
}

/**
 * The clients of all watches over the network, from their admission until their watches end: those to disconnect, and those to
 * authorize again.
 *
 *     admitted --> opening --> open --> ended
 *                     '----------'--- disconnect, reauthorize: ends it, also one that has not begun
 */

/** The client of a watch. */
export interface WatchClient<I = unknown> {
  /** What `authenticate` has returned, or, for an impersonated user, `identityOf`. */
  readonly identity: I;
  /** Who impersonates that user; undefined: nobody does. */
  readonly impersonator: I | undefined;
  readonly address: string;
  /** Such as `orders.example.com`. */
  readonly resource: string;
  /** Undefined: all namespaces, or the resource is not namespaced. */
  readonly namespace: string | undefined;
  /** Undefined: all objects. */
  readonly name: string | undefined;
}

/** What is known when a watch has been admitted. */
interface WatchAdmission {
  readonly client: WatchClient;
  /** What its impersonator needs. */
  readonly asks: readonly Ask[] | undefined;
  readonly place: Slot;
  /** The deadline of the request, until its stream has begun. */
  readonly deadline: Deadline;
}

/**
 * A watch of a client. It holds the place of the watch, and gives it back with itself. A server may have ten thousand, so it keeps
 * nothing of the request.
 */
class ClientWatch implements Slot {
  readonly client: WatchClient;
  readonly asks: readonly Ask[] | undefined;
  /** Ticks since `authorize` was asked. */
  ticks: number = 0;
  asking: Deadline | undefined = undefined;
  private readonly clients: WatchClients;
  private readonly place: Slot;
  private opening: Deadline | undefined;
  private session: Streaming | undefined = undefined;
  private revoked: 'stop' | 'cut' | undefined = undefined;

  constructor(clients: WatchClients, { client, asks, place, deadline }: WatchAdmission) {
    this.clients = clients;
    this.client = client;
    this.asks = asks;
    this.place = place;
    this.opening = deadline;
  }

  begun(session: Streaming): void {
    this.opening = undefined;
    this.session = session;
    const leftMs = this.clients.leftMs(this.client.identity, this.client.impersonator);
    if (this.revoked !== undefined) this.end(this.revoked);
    else if (leftMs <= 0) session.stop();
    else if (leftMs < Number.POSITIVE_INFINITY) session.stopAfter(leftMs);
  }

  /** Ends it: gracefully, or at once. */
  end(how: 'stop' | 'cut'): void {
    this.revoked = how;
    this.opening?.end(refusedBy(REVOKED));
    if (how === 'stop') this.session?.stop();
    else this.session?.cut('disconnected');
  }

  release(reason?: CutReason): void {
    this.asking?.end(undefined);
    this.clients.delete(this);
    this.place.release(reason);
  }
}

/** How many calls of `authorize` may be pending at the same time. */
const MAX_ASKING = 100;
/** How often the ends of identities are compared with the time of day, which may be set, or run on while the machine sleeps. */
const EXPIRY_CHECK_MS = 60_000;

export class WatchClients implements TimerMember {
  readonly #settings: Settings;
  readonly #hooks: Hooks;
  readonly #timer: SharedTimer | undefined;
  readonly #expiryTimer: SharedTimer | undefined;
  readonly #expiry: TimerMember = { tick: () => this.#endExpired() };
  readonly #all: Set<ClientWatch> = new Set();
  /** How often clients have been disconnected. */
  disconnects: number = 0;
  /** Those to authorize again next. */
  #due: ClientWatch[] = [];
  #asking: number = 0;

  constructor(settings: Settings, hooks: Hooks) {
    this.#settings = settings;
    this.#hooks = hooks;
    const { authenticate, identityOf, authorize, reauthorizeMs, clock } = settings;
    this.#timer = authorize && toSharedTimer(reauthorizeMs, clock);
    this.#expiryTimer = (authenticate ?? identityOf) && toSharedTimer(EXPIRY_CHECK_MS, clock);
  }

  /** How long a client's identity, and its impersonator's, are still valid, in ms; Infinity if they do not expire. */
  leftMs(identity: unknown, impersonator: unknown): number {
    return Math.min(expiryOf(identity), expiryOf(impersonator)) - this.#settings.now();
  }

  add(admission: WatchAdmission): Slot {
    const watch = new ClientWatch(this, admission);
    this.#all.add(watch);
    if (this.#all.size > 1) return watch;
    this.#timer?.add(this);
    this.#expiryTimer?.add(this.#expiry);
    return watch;
  }

  delete(watch: ClientWatch): void {
    if (!this.#all.delete(watch) || this.#all.size > 0) return;
    this.#timer?.remove(this);
    this.#expiryTimer?.remove(this.#expiry);
  }

  /** Ends the watches of the chosen clients at once. Returns how many. */
  disconnect(which: (client: WatchClient) => boolean): number {
    this.disconnects++;
    const chosen = [...this.#all].filter(({ client }) => verdictOf('which', which(client)));
    for (const watch of chosen) watch.end('cut');
    return chosen.length;
  }

  #endExpired(): void {
    for (const watch of this.#all) {
      const { identity, impersonator } = watch.client;
      if (this.leftMs(identity, impersonator) <= 0) watch.end('stop');
    }
  }

  tick(): void {
    for (const watch of this.#all) if (++watch.ticks === TICKS) this.#due.push(watch);
    while (this.#asking < MAX_ASKING && this.#due.length > 0) void this.#ask();
  }

  async #ask(): Promise<void> {
    this.#asking++;
    for (let watch = this.#due.shift(); watch !== undefined; watch = this.#due.shift()) {
      if (this.#all.has(watch)) await this.#judge(watch);
      watch.ticks = 0;
    }
    this.#asking--;
  }

  /** Ends a watch unless `authorize` still returns true: its client comes again, and is refused. */
  async #judge(watch: ClientWatch): Promise<void> {
    const { handshakeTimeoutMs, clock, onError } = this.#settings;
    const { resource, namespace, name, identity, impersonator } = watch.client;
    const late = (): unknown => new Error(`authorize has not answered within ${handshakeTimeoutMs} ms`);
    const deadline = new Deadline(handshakeTimeoutMs, { clock, late });
    watch.asking = deadline;
    try {
      const still = this.#hooks.allowAll(watch.asks ?? [], impersonator);
      await deadline.during(still.then(() => this.#hooks.allow(['watch', resource, namespace, name, identity])));
    } catch (error) {
      if (!this.#all.has(watch)) return;
      if (!hasCode(error, 403)) onError(error);
      watch.end('stop');
    } finally {
      deadline.done();
      watch.asking = undefined;
    }
  }
}
