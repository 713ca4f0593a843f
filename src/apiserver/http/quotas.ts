/**
 * Limits what one address, and one tenant, may use of a server.
 *
 *     request --> a place: in all? of its address? --> who is it? --> of its tenant? --> a write? of its tenant's per second?
 *                              429                                        429                        429
 *
 * A place is held until the answer has been sent. IPv6 addresses count by network: see `networkOf`. An empty name counts only
 * towards the total. CPU time is shared out by the same names: see `FairQueue`.
 */
import { ConnectionSlots, networkOf } from '../../bridge/hub/admission/connection-slots.ts';
import type { CutReason } from '../../bridge/hub/connection.ts';
import { tooManyRequests } from '../../storage/statuses.ts';
import { whenAborted } from '../../watch/abort.ts';
import { FairQueue, type OnBehalf, type Pace } from '../../watch/fair-queue.ts';
import type { Settings } from '../options.ts';
import { splitTarget, type Verb } from '../request/path.ts';
import type { Slot } from './wire.ts';

/** How many large bodies are processed at a time for one tenant at one address. */
const MAX_AT_ONCE = 2;

/** Those of one tenant at one address. */
class Line {
  busy: number = 0;
  readonly waiting: Set<() => void> = new Set();
}

/**
 * Lets only a few large bodies of one client be processed at a time. The others wait as bytes: if twenty bodies of megabytes were
 * parsed, copied and checked in turns, all would be in memory together, and collecting such garbage would block everybody.
 */
export class Heavy {
  private readonly lines: Map<string, Line> = new Map();

  /**
   * Resolves when one more may begin; undefined: now. Rejects with the signal's reason. Call `leave` once for each that began.
   */
  enter(whose: OnBehalf, signal: AbortSignal): Promise<void> | undefined {
    const key = keyOf(whose);
    const line = this.lines.get(key) ?? new Line();
    this.lines.set(key, line);
    if (line.busy < MAX_AT_ONCE) {
      line.busy++;
      return undefined;
    }
    return new Promise((resolve, reject) => {
      const begin = (): void => {
        stop();
        resolve();
      };
      const stop = whenAborted(signal, (reason) => {
        line.waiting.delete(begin);
        reject(reason);
      });
      if (!signal.aborted) line.waiting.add(begin);
    });
  }

  /** One is done: the next one takes its place. */
  leave(whose: OnBehalf): void {
    const key = keyOf(whose);
    const line = this.lines.get(key) as Line;
    const [next] = line.waiting;
    if (next) {
      line.waiting.delete(next);
      next();
    } else if (--line.busy === 0) this.lines.delete(key);
  }
}

const keyOf = ({ tenant, address }: OnBehalf): string => `${tenant}\0${address}`;

/** Limits how often each of many keys may do something per second. */

const PARTS = 10;
const PART_MS = 1_000 / PARTS;

/**
 * Counts by key in tenths of a second. This tenth and the ten before it cover any second that ends now, so no second has more
 * than allowed; a caller that asks continuously gets at least nine tenths of that. It needs no timer, and forgets keys that have
 * been quiet for that long.
 *
 *     | 0 | 3 | 0 | 0 | 1 | 0 | 2 | 0 | 0 | 0 | 1 |
 *          `------ the last second -------------'
 */
export class Rates {
  private readonly perSecond: number;
  private beganMs: number = Number.NEGATIVE_INFINITY;
  private parts: Map<string, number>[] = [new Map()];

  /** 0: no limit. */
  constructor(perSecond: number) {
    this.perSecond = perSecond;
  }

  /** Counts one more, unless that would be too many. Returns whether it was counted. */
  take(key: string, nowMs: number): boolean {
    if (this.perSecond === 0) return true;
    this.turn(nowMs);
    let counted = 0;
    for (const part of this.parts) counted += part.get(key) ?? 0;
    if (counted >= this.perSecond) return false;
    const last = this.parts[this.parts.length - 1] as Map<string, number>;
    last.set(key, (last.get(key) ?? 0) + 1);
    return true;
  }

  private turn(nowMs: number): void {
    // Some clocks go backwards.
    this.beganMs = Math.min(this.beganMs, nowMs);
    const passed = Math.floor((nowMs - this.beganMs) / PART_MS);
    if (passed < 1) return;
    if (passed > PARTS) {
      this.parts = [];
      this.beganMs = nowMs;
    } else this.beganMs += passed * PART_MS;
    for (let part = 0; part < Math.min(passed, PARTS); part++) this.parts.push(new Map());
    this.parts.splice(0, this.parts.length - PARTS - 1);
  }
}

/** The limit that was reached. */
export type QuotaReason = 'full' | 'address' | 'tenant' | 'writes';

/** The kinds of places: watches have separate ones. */
type PlaceKind = 'request' | 'watch';

/** What a place stands for, in messages. */
const MEANT: Readonly<Record<PlaceKind, string>> = { request: 'requests are being answered', watch: 'watches are open' };

/** What all places of one kind share. */
interface Places {
  readonly kind: PlaceKind;
  readonly addresses: ConnectionSlots;
  readonly tenants: ConnectionSlots;
  readonly limits: { readonly max: number; readonly perAddress: number; readonly perTenant: number };
  readonly settings: Pick<Settings, 'clock' | 'onCut'>;
  /** Divides CPU time among clients. */
  readonly queue: FairQueue;
  readonly heavy: Heavy;
  /** Throws 429 because a limit was reached. */
  readonly refuse: (reason: QuotaReason, message: string) => never;
}

/** The request that a stream answers. */
interface Asked {
  readonly target: string;
  readonly verb: Verb;
}

/**
 * The place of one request, and of its stream: it tells the application if the stream's client was cut. It has no closure and no
 * list, because a server may have ten thousand. The request's work is queued under the names that the place counts against.
 */
export class Place implements Slot, Pace, OnBehalf {
  private readonly places: Places;
  /** What its client's address counts as. */
  readonly address: string;
  private readonly from: string;
  /** Empty: there is none, or it is not known yet. */
  tenant: string = '';
  private isOver: boolean = false;
  /** Whether it has a large body, which is being processed. */
  private isHeavy: boolean = false;
  /** For a stream: its URL, verb, and when its answer began. */
  private target: string | undefined = undefined;
  private verb: Verb | undefined = undefined;
  private begunMs: number = 0;

  /** Takes a place. Throws 429 if there is none. */
  constructor(places: Places, address: string) {
    const { addresses, kind, limits, refuse } = places;
    this.address = networkOf(address);
    const missing = addresses.take(this.address);
    if (missing?.reason === 'full') refuse('full', `${limits.max} ${MEANT[kind]}`);
    if (missing) refuse('address', `${limits.perAddress} ${MEANT[kind]} for this address`);
    this.places = places;
    this.from = address;
  }

  /** Also counts against a tenant. Throws 429 if the tenant has reached its limit. */
  join(tenant: string): void {
    // A client that took too long to be identified no longer holds a place.
    if (this.isOver || tenant === '') return;
    const { kind, tenants, limits, refuse } = this.places;
    if (tenants.take(tenant)) refuse('tenant', `${limits.perTenant} ${MEANT[kind]} for this tenant`);
    this.tenant = tenant;
  }

  turn(): Promise<void> | undefined {
    return this.places.queue.turn(this);
  }

  pause(): Promise<void> | undefined {
    return this.places.queue.pause(this);
  }

  heavy(signal: AbortSignal): Promise<void> | undefined {
    if (this.isHeavy) return undefined;
    const begun = (): void => {
      this.isHeavy = true;
      // The request may have ended in the same turn.
      if (this.isOver || signal.aborted) this.lighten();
    };
    const wait = this.places.heavy.enter(this, signal);
    if (wait) return wait.then(begun);
    begun();
    return undefined;
  }

  /** Its large body, if it has one, has been processed. */
  lighten(): void {
    if (this.isHeavy) this.places.heavy.leave(this);
    this.isHeavy = false;
  }

  /** Becomes the place of a stream. */
  hold({ target, verb }: Asked): this {
    this.target = target;
    this.verb = verb;
    // In whole milliseconds, which take no extra memory.
    this.begunMs = Math.floor(this.places.settings.clock.now());
    return this;
  }

  /** Gives everything back. Only the first call has an effect. */
  release(reason?: CutReason): void {
    if (this.isOver) return;
    this.isOver = true;
    this.lighten();
    const { places, from: address, tenant, target, verb, begunMs } = this;
    places.addresses.release(this.address);
    if (tenant !== '') places.tenants.release(tenant);
    if (reason === undefined || target === undefined || verb === undefined) return;
    const { clock, onCut } = places.settings;
    onCut({ path: splitTarget(target).path, verb, reason, address, durationMs: clock.now() - begunMs });
  }
}

const RETRY_SECONDS = 1;

export class Quotas {
  private readonly kinds: Readonly<Record<PlaceKind, Places>>;
  private readonly writes: Rates;
  /** Shared by all requests, which run on one thread. */
  private readonly queue: FairQueue;
  private readonly heavy: Heavy = new Heavy();
  private readonly settings: Settings;
  private readonly onRefusal: (reason: QuotaReason) => void;

  constructor(settings: Settings, onRefusal: (reason: QuotaReason) => void) {
    const { maxWatchers, maxWatchersPerAddress, maxWatchersPerTenant } = settings;
    const { maxConcurrentRequests, maxConcurrentRequestsPerAddress, maxConcurrentRequestsPerTenant } = settings;
    this.settings = settings;
    this.onRefusal = onRefusal;
    this.queue = new FairQueue({ now: settings.clock.now.bind(settings.clock) });
    this.writes = new Rates(settings.maxWritesPerSecondPerTenant);
    this.kinds = {
      watch: this.places('watch', { max: maxWatchers, perAddress: maxWatchersPerAddress, perTenant: maxWatchersPerTenant }),
      request: this.places('request', {
        max: maxConcurrentRequests,
        perAddress: maxConcurrentRequestsPerAddress,
        perTenant: maxConcurrentRequestsPerTenant,
      }),
    };
  }

  /** Takes a place. Throws 429 if there is none. */
  enter(kind: PlaceKind, address: string): Place {
    return new Place(this.kinds[kind], address);
  }

  /** Counts a write of a tenant. Throws 429 if there were too many within a second. */
  write(tenant: string): void {
    const { clock, maxWritesPerSecondPerTenant } = this.settings;
    if (tenant === '' || this.writes.take(tenant, clock.now())) return;
    this.refuse('writes', `this tenant may write ${maxWritesPerSecondPerTenant} times per second`);
  }

  private places(kind: PlaceKind, limits: Places['limits']): Places {
    return {
      ...{
        kind,
        limits,
        settings: this.settings,
        queue: this.queue,
        heavy: this.heavy,
        refuse: (reason, message) => this.refuse(reason, message),
      },
      addresses: new ConnectionSlots({ maxClients: limits.max, maxClientsPerAddress: limits.perAddress }, String),
      tenants: new ConnectionSlots({ maxClients: Number.POSITIVE_INFINITY, maxClientsPerAddress: limits.perTenant }, String),
    };
  }

  private refuse(reason: QuotaReason, message: string): never {
    this.onRefusal(reason);
    throw tooManyRequests(`${message}, which is the limit`, RETRY_SECONDS);
  }
}
