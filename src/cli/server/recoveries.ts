import type { ClientStats } from '../../bridge/hub/connection.ts';
import type { HubNotice, Observer } from '../../bridge/hub/tally.ts';

/** How many connections that ended with losses are remembered for clients that come back. */
const MAX_ENDED = 1_000;

/** What matters here about one connection of a client. */
interface ClientConnection {
  readonly id: number;
  readonly address: string;
  readonly transport: ClientStats['transport'];
  /** It began after this position of the stream. */
  readonly from: number;
  /** Events that its earlier connections dropped, and that it was sent. */
  recovered: number;
  /** It continues an earlier connection, but it is not known yet which one. */
  open: boolean;
}

/** A connection that has ended without some of its events: it got all up to position `to`, and none after it. */
interface Ended extends ClientConnection {
  readonly to: number;
  readonly dropped: number;
}

/**
 * Which dropped events a client received after all: it was cut, came back, and resumed after the last event that it had.
 *
 *     connection 1: from ======== to, and then `dropped` events that did not fit
 *     connection 2:          from ======================================== ...      all of those are recovered
 *
 * Only for the policy `disconnect`, without filters: a connection then gets all events up to a position, and none after it. One
 * that resumes at or before that position is taken for the next connection of that client, if it has the same address and the
 * same transport. It may open before the server learns that the earlier one has ended.
 */
export class Recoveries implements Observer {
  /** Events that were dropped for a connection, and sent to a later one of the same client. */
  total: number = 0;
  private readonly head: () => number;
  private readonly present: Map<number, ClientConnection> = new Map();
  private ended: Ended[] = [];

  /** `head` returns the position of the last accepted event. */
  constructor(head: () => number) {
    this.head = head;
  }

  /** Events that this client was sent after an earlier connection of it had dropped them. */
  of(id: number): number {
    return this.present.get(id)?.recovered ?? 0;
  }

  wants(type: HubNotice['type']): boolean {
    return type === 'open' || type === 'resume' || type === 'close';
  }

  tell(notice: HubNotice): void {
    if (notice.type === 'open') this.begin(notice.client);
    else if (notice.type === 'resume') this.resume(notice.client);
    else if (notice.type === 'close') this.end(notice.client);
  }

  private begin({ id, address, transport, queued }: ClientStats): void {
    // When a connection opens, its queue is what it missed.
    this.present.set(id, { id, address, transport, from: this.head() - queued, recovered: 0, open: false });
  }

  private resume({ id }: ClientStats): void {
    const next = this.present.get(id);
    if (next === undefined) return;
    next.open = true;
    // Of several, the last one to begin.
    const [found] = this.ended.filter((one) => follows(next, one)).sort((one, other) => other.id - one.id);
    if (found === undefined) return;
    this.ended = this.ended.filter((one) => one !== found);
    this.recover(next, found);
  }

  private end({ id, delivered, dropped }: ClientStats): void {
    const here = this.present.get(id);
    this.present.delete(id);
    if (here === undefined || (dropped === 0 && here.recovered === 0)) return;
    const ended: Ended = { ...here, to: here.from + delivered, dropped };
    for (const next of this.present.values()) {
      if (!next.open || !follows(next, ended)) continue;
      this.recover(next, ended);
      return;
    }
    this.ended.push(ended);
    if (this.ended.length > MAX_ENDED) this.ended.shift();
  }

  private recover(next: ClientConnection, { recovered, dropped }: Ended): void {
    next.open = false;
    next.recovered = recovered + dropped;
    this.total += dropped;
  }
}

function follows(next: ClientConnection, { id, address, transport, from, to }: Ended): boolean {
  return next.id > id && next.address === address && next.transport === transport && from <= next.from && next.from <= to;
}
