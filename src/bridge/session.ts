/**
 * One client: one watch, pumped into one connection. No sockets here: a transport hands in a {@link Sink}.
 *
 * **Order.** What the watch hands out goes to the sink in that order, in slices of about 64 KiB, and nothing else does.
 * **Slow clients.** When the sink says that it is under pressure, the session stops reading. Its watch then fills up, and the
 * watch's own capacity and overflow policy decide what becomes of further events. So a client costs at most its queue, the
 * one batch that is in hand, what the sink holds (its limit and one slice), and no other client notices.
 * **Ending.** When the watch ends, the session tells the sink how, and the sink says goodbye. When the client goes away, in
 * whatever state, the transport calls `gone` and everything settles at once.
 *
 *              watch ends             transport: gone()
 *     open ---------------> ending ---------------------> over
 *       `---------------------------- gone(), cut() ------^
 *
 * Invariants
 * - `delivered + dropped + queued` is what was accepted for this client since it came, replay included.
 * - After `over` no promise of the session pends, its watch is returned, and the sink is not called any more.
 */
import type { WatchEvent } from '../watch/event.ts';
import { isErrorEvent } from '../watch/event.ts';
import type { Watch } from '../watch/watch.ts';
import { Envelope, frameOf } from './envelope.ts';
import type { Ending } from './protocol.ts';

/** A client's connection, as its session sees it. */
export interface Sink {
  /** Takes events, in order. A promise means pressure: the session reads on when it settles, and takes a rejection for an end. */
  write(events: readonly WatchEvent[]): Promise<void> | undefined;
  /** Nothing follows: say goodbye after what was written, then close, then call the session's `gone`. */
  end(how: Ending): void;
  /** Closes now, whatever is not yet written. */
  destroy(): void;
  /** Bytes that were written here and that the network has not taken yet. */
  readonly bufferedBytes: number;
}

/** What a transport knows of a client. */
export interface ClientInfo {
  readonly transport: 'websocket' | 'http' | 'sse';
  /** The peer's address, for people to read. */
  readonly address: string;
}

/** A client in numbers. */
export interface ClientStats extends ClientInfo {
  readonly id: number;
  /** Events handed to the connection. */
  readonly delivered: number;
  /** Events that wait for the connection. */
  readonly queued: number;
  /** Events that this client did not get; with `coalesce`, those folded into a later one. */
  readonly dropped: number;
  readonly bufferedBytes: number;
}

/** Slices of so many bytes are written at once: few system calls, and pressure is noticed soon. */
const SLICE_BYTES = 65_536;

/** One client of a hub. Hubs make these. */
export class Session {
  readonly id: number;
  /** Resolves when the client is gone and nothing of it is left. */
  readonly done: Promise<void>;
  /** Events handed to the connection. The ERROR event that ends a cut watch says what was lost: it is not one of them. */
  delivered: number = 0;
  private readonly watch: Watch<WatchEvent>;
  private readonly sink: Sink;
  private readonly info: ClientInfo;
  private inHand: number = 0;
  private over: boolean = false;
  private ending: Ending = 'complete';
  private relieve: (() => void) | undefined = undefined;
  private resolveDone: () => void = () => {};

  constructor(watch: Watch<WatchEvent>, sink: Sink, client: ClientInfo & { id: number }) {
    this.watch = watch;
    this.sink = sink;
    this.id = client.id;
    this.info = { transport: client.transport, address: client.address };
    this.done = new Promise((resolve) => {
      this.resolveDone = resolve;
    });
    void this.pump();
  }

  /** The connection is closed. Called by the transport, whoever closed it; settles everything. Idempotent. */
  gone(): void {
    if (this.over) return;
    this.over = true;
    void this.watch.return();
    this.relieve?.();
    this.resolveDone();
  }

  /** Ends this client at once, whatever it has not got yet. */
  cut(): void {
    if (!this.over) this.sink.destroy();
    this.gone();
  }

  stats(): ClientStats {
    const { queued, dropped } = this.watch;
    const { id, delivered, info, inHand, sink } = this;
    return { id, ...info, delivered, queued: queued + inHand, dropped: dropped, bufferedBytes: sink.bufferedBytes };
  }

  private async pump(): Promise<void> {
    try {
      for await (const batch of this.watch.batches()) {
        await this.hand(batch);
        if (this.over) return;
      }
    } catch {
      this.ending = 'failed';
    }
    if (!this.over) this.sink.end(this.ending);
  }

  /** Hands a batch to the sink, slice by slice. Awaits nothing while there is no pressure. */
  private async hand(batch: readonly WatchEvent[]): Promise<void> {
    this.inHand = batch.length;
    for (let from = 0; from < batch.length && !this.over; ) {
      const to = sliceEnd(batch, from);
      const pressure = this.sink.write(from === 0 && to === batch.length ? batch : batch.slice(from, to));
      for (let at = from; at < to; at++) this.count(batch[at] as WatchEvent);
      this.inHand = batch.length - to;
      from = to;
      if (pressure !== undefined) await this.relief(pressure);
    }
    this.inHand = 0;
  }

  private count(event: WatchEvent): void {
    const expired = !(event instanceof Envelope) && isErrorEvent(event) && event.object.code === 410;
    if (expired) this.ending = 'expired';
    else this.delivered++;
  }

  /** Waits for the sink or for the client's end, whichever is first. */
  private relief(pressure: Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      this.relieve = resolve;
      if (this.over) resolve();
      pressure.then(resolve, () => this.cut());
    });
  }
}

/** Where a slice that begins at `from` ends: at least one event, and no more bytes than {@link SLICE_BYTES} if it can be helped. */
function sliceEnd(batch: readonly WatchEvent[], from: number): number {
  let bytes = 0;
  let to = from;
  while (to < batch.length && bytes < SLICE_BYTES) {
    bytes += frameOf(batch[to] as WatchEvent).record.length;
    to++;
  }
  return to;
}
