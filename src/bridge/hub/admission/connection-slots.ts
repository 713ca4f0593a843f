/** Why there is no free slot. */
interface NoSlot {
  readonly reason: 'full' | 'address';
  readonly message: string;
}

/** Limits the number of clients, in total and per address. The empty address counts only toward the total. */
export class ConnectionSlots {
  private taken: number = 0;
  private readonly byAddress: Map<string, number> = new Map();
  private readonly maxClients: number;
  private readonly maxClientsPerAddress: number;

  constructor(limits: { maxClients: number; maxClientsPerAddress: number }) {
    this.maxClients = limits.maxClients;
    this.maxClientsPerAddress = limits.maxClientsPerAddress;
  }

  reserve(address: string): Reservation | NoSlot {
    return this.take(address) ?? new Reservation(this, address);
  }

  /** Takes a slot, which the caller releases, or returns why there is none. */
  take(address: string): NoSlot | undefined {
    const { maxClients, maxClientsPerAddress, byAddress } = this;
    if (this.taken >= maxClients) {
      return { reason: 'full', message: `${maxClients} clients are connected, which is the limit` };
    }
    const same = byAddress.get(address) ?? 0;
    if (address !== '' && same >= maxClientsPerAddress) {
      return {
        reason: 'address',
        message: `${maxClientsPerAddress} clients are connected from this address, which is the limit`,
      };
    }
    this.add(address);
    return undefined;
  }

  /** Counts a client, even beyond the limits. */
  add(address: string): void {
    this.taken++;
    this.byAddress.set(address, (this.byAddress.get(address) ?? 0) + 1);
  }

  /** Frees a slot. */
  release(address: string): void {
    this.taken--;
    const left = (this.byAddress.get(address) ?? 0) - 1;
    if (left > 0) this.byAddress.set(address, left);
    else this.byAddress.delete(address);
  }
}

/** A client's slot. It is taken before the client is identified, so that clients waiting for admission are also bounded. */
export class Reservation {
  private held: boolean = true;
  private readonly slots: ConnectionSlots;
  private readonly address: string;

  constructor(slots: ConnectionSlots, address: string) {
    this.slots = slots;
    this.address = address;
  }

  /** Frees the slot, unless the session has taken it over. */
  release(): void {
    if (this.held) this.slots.release(this.address);
    this.held = false;
  }

  /** The session takes over the slot, and frees it when it ends. */
  keep(): void {
    this.held = false;
  }
}
