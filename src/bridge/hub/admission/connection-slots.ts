/** Why there is no free slot. */
interface NoSlot {
  readonly reason: 'full' | 'address';
  readonly message: string;
}

/**
 * What an address counts as. The owner of an IPv6 address usually has its whole /64, so a /64 counts as one address, except in
 * private networks (`fc00::/7`, `fe80::/10`), where each address is a host. An IPv4 address counts as itself, even if it is
 * written as an IPv6 address, and so does anything else.
 */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  const groups = groupsOf(address);
  if (groups === undefined) return address;
  const [first = 0, second = 0, third = 0, fourth = 0, fifth = 0, sixth = 0, seventh = 0, eighth = 0] = groups;
  if ((first | second | third | fourth | fifth) === 0 && sixth === 0xffff) {
    return [seventh >> 8, seventh & 0xff, eighth >> 8, eighth & 0xff].join('.');
  }
  if ((first & 0xfe00) === 0xfc00 || (first & 0xffc0) === 0xfe80) return address;
  return `${[first, second, third, fourth].map((group) => group.toString(16)).join(':')}::/64`;
}

/** The eight numbers of an IPv6 address; undefined for anything else. */
export function groupsOf(address: string): readonly number[] | undefined {
  const dotted = /^(.*:)(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(address);
  const byte = (at: number): number => Number(dotted?.[at]);
  const hex = dotted && `${dotted[1]}${((byte(2) << 8) | byte(3)).toString(16)}:${((byte(4) << 8) | byte(5)).toString(16)}`;
  const [head = '', tail, more] = (hex ?? address.split('%', 1)[0] ?? '').split('::');
  const [before, after] = [head, tail ?? ''].map((part) => (part === '' ? [] : part.split(':'))) as [string[], string[]];
  const left = 8 - before.length - after.length;
  if (more !== undefined || (tail === undefined ? left !== 0 : left < 1)) return undefined;
  const all = [...before, ...new Array<string>(left).fill('0'), ...after];
  return all.every((group) => /^[0-9a-f]{1,4}$/i.test(group)) ? all.map((group) => Number.parseInt(group, 16)) : undefined;
}

/** Limits the number of clients, in total and per address. The empty address counts only toward the total. */
export class ConnectionSlots {
  private taken: number = 0;
  private readonly byAddress: Map<string, number> = new Map();
  private readonly maxClients: number;
  private readonly maxClientsPerAddress: number;
  private readonly keyOf: (address: string) => string;

  /** `keyOf`: what counts as one address. Default: {@link networkOf}. */
  constructor(limits: { maxClients: number; maxClientsPerAddress: number }, keyOf: (address: string) => string = networkOf) {
    this.maxClients = limits.maxClients;
    this.maxClientsPerAddress = limits.maxClientsPerAddress;
    this.keyOf = keyOf;
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
    const key = this.keyOf(address);
    const same = byAddress.get(key) ?? 0;
    if (address !== '' && same >= maxClientsPerAddress) {
      return {
        reason: 'address',
        message: `${maxClientsPerAddress} clients are connected from this address, which is the limit`,
      };
    }
    this.taken++;
    byAddress.set(key, same + 1);
    return undefined;
  }

  /** Counts a client, even beyond the limits. */
  add(address: string): void {
    const key = this.keyOf(address);
    this.taken++;
    this.byAddress.set(key, (this.byAddress.get(key) ?? 0) + 1);
  }

  /** Frees a slot. */
  release(address: string): void {
    const key = this.keyOf(address);
    this.taken--;
    const left = (this.byAddress.get(key) ?? 0) - 1;
    if (left > 0) this.byAddress.set(key, left);
    else this.byAddress.delete(key);
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
