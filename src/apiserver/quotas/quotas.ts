/**
 * Limits what one address, and one tenant, may use of a server.
 *
 *     request --> a place: in all? of its address? --> who is it? --> of its tenant? --> a write? of its tenant's per second?
 *                              429                                        429                        429
 *
 * A place is held until the answer has been sent. Addresses of IPv6 count by their networks: see `networkOf`. The empty name is nobody: it counts only towards the total. The processor is
 * divided by the same names: see `FairQueue`.
 */
import { ConnectionSlots } from '../../bridge/hub/admission/connection-slots.ts';
import { tooManyRequests } from '../../storage/statuses.ts';
import { FairQueue } from '../../watch/fair-queue.ts';
import type { Settings } from '../options.ts';
import { Heavy } from './heavy.ts';
import { Place, type PlaceKind, type Places, type QuotaReason } from './place.ts';
import { Rates } from './rates.ts';

const RETRY_SECONDS = 1;

export class Quotas {
  private readonly kinds: Readonly<Record<PlaceKind, Places>>;
  private readonly writes: Rates;
  /** Shared by all requests: they work on one processor. */
  private readonly queue: FairQueue;
  private readonly heavy: Heavy = new Heavy();
  private readonly settings: Settings;
  private readonly onRefusal: (reason: QuotaReason) => void;

  constructor(settings: Settings, onRefusal: (reason: QuotaReason) => void) {
    const { maxWatchers, maxWatchersPerAddress, maxWatchersPerTenant } = settings;
    const { maxConcurrentRequests, maxConcurrentRequestsPerAddress, maxConcurrentRequestsPerTenant } = settings;
    this.settings = settings;
    this.onRefusal = onRefusal;
    this.queue = new FairQueue({ now: () => settings.clock.now() });
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
      addresses: new ConnectionSlots({ maxClients: limits.max, maxClientsPerAddress: limits.perAddress }),
      tenants: new ConnectionSlots({ maxClients: Number.POSITIVE_INFINITY, maxClientsPerAddress: limits.perTenant }, String),
    };
  }

  private refuse(reason: QuotaReason, message: string): never {
    this.onRefusal(reason);
    throw tooManyRequests(`${message}, which is the limit`, RETRY_SECONDS);
  }
}
