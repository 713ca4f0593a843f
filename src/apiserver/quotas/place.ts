import { type ConnectionSlots, networkOf } from '../../bridge/hub/admission/connection-slots.ts';
import type { CutReason } from '../../bridge/hub/connection.ts';
import type { FairQueue, OnBehalf, Pace } from '../../watch/fair-queue.ts';
import type { Slot } from '../http/wire.ts';
import type { Settings } from '../options.ts';
import { splitTarget, type Verb } from '../request/path.ts';
import type { Heavy } from './heavy.ts';

/** The limit that was reached. */
export type QuotaReason = 'full' | 'address' | 'tenant' | 'writes';

/** The kinds of places: watches have separate ones. */
export type PlaceKind = 'request' | 'watch';

/** What a place stands for, in messages. */
const MEANT: Readonly<Record<PlaceKind, string>> = { request: 'requests are being answered', watch: 'watches are open' };

/** What all places of one kind share. */
export interface Places {
  readonly kind: PlaceKind;
  readonly addresses: ConnectionSlots;
  readonly tenants: ConnectionSlots;
  readonly limits: { readonly max: number; readonly perAddress: number; readonly perTenant: number };
  readonly settings: Pick<Settings, 'clock' | 'onCut'>;
  /** Whose work goes on. */
  readonly queue: FairQueue;
  readonly heavy: Heavy;
  /** Throws 429 for a limit. */
  readonly refuse: (reason: QuotaReason, message: string) => never;
}

/** The request that a stream answers. */
interface Asked {
  readonly target: string;
  readonly verb: Verb;
}

/**
 * The place of one request, and of its stream: it reports to the application when the stream's client was cut. It has no closure
 * and no list: a server may have ten thousand. The work for the request takes its turn by the names that the place counts for.
 */
export class Place implements Slot, Pace, OnBehalf {
  private readonly places: Places;
  /** What its client's address counts as. */
  readonly address: string;
  private readonly from: string;
  /** Empty: there is none, or it is not known yet. */
  tenant: string = '';
  private isOver: boolean = false;
  /** It has a large body, which is worked on. */
  private isHeavy: boolean = false;
  /** For a stream: what was asked for, and when its answer began. */
  private target: string | undefined = undefined;
  private verb: Verb | undefined = undefined;
  private begunMs: number = 0;

  /** Takes a place. Throws 429 if there is none. */
  constructor(places: Places, address: string) {
    const { addresses, kind, limits, refuse } = places;
    const missing = addresses.take(address);
    if (missing?.reason === 'full') refuse('full', `${limits.max} ${MEANT[kind]}`);
    if (missing) refuse('address', `${limits.perAddress} ${MEANT[kind]} for this address`);
    this.places = places;
    this.address = networkOf(address);
    this.from = address;
  }

  /** Also counts against a tenant. Throws 429 if it has no more room. */
  join(tenant: string): void {
    // A client that was identified too late no longer holds a place.
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

  /** Its large body, if there is one, has been worked on. */
  lighten(): void {
    if (this.isHeavy) this.places.heavy.leave(this);
    this.isHeavy = false;
  }

  /** From now on it is the place of a stream. */
  hold({ target, verb }: Asked): this {
    this.target = target;
    this.verb = verb;
    // In whole milliseconds, which take no extra memory.
    this.begunMs = Math.floor(this.places.settings.clock.now());
    return this;
  }

  /** Gives everything back. Only the first call counts. */
  release(reason?: CutReason): void {
    if (this.isOver) return;
    this.isOver = true;
    this.lighten();
    const { places, from: address, tenant, target, verb, begunMs } = this;
    places.addresses.release(address);
    if (tenant !== '') places.tenants.release(tenant);
    if (reason === undefined || target === undefined || verb === undefined) return;
    const { clock, onCut } = places.settings;
    onCut({ path: splitTarget(target).path, verb, reason, address, durationMs: clock.now() - begunMs });
  }
}
