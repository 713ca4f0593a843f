import type { ClientEvent, ClientState, ClientTransport, ClientWatch } from '../../../src/bridge/client.ts';
import { connect } from '../../../src/bridge/client.ts';
import type { WireEvent } from '../../../src/bridge/protocol.ts';
import { isErrorEvent } from '../../../src/watch/event.ts';
import { DeliveryChecker } from './delivery-checker.ts';
import { Line } from './line.ts';
import type { Tick } from './tick.ts';
import { now } from './tick.ts';

/** The schedule of a client. */
export interface Life {
  readonly url: string;
  readonly transport: ClientTransport;
  /** Average time between a reconnect and the next cut; the actual time is 0.5 to 1.5 times as long. */
  readonly cutEveryMs: number;
  /** How long it is refused after a cut. */
  readonly offlineMs: number;
  /** Maximum delay after the first failed attempt, and in general. */
  readonly minMs?: number | undefined;
  readonly maxMs?: number | undefined;
  readonly seed: number;
}

type Heard = Tick | WireEvent<'ERROR', { code: number; message: string }>;

/** A client on a line that is cut from time to time. It uses `connect`, like everyone. */
export class CutClient {
  readonly checker: DeliveryChecker = new DeliveryChecker();
  /** Milliseconds from publishing to receiving, for each event. */
  readonly latencies: number[] = [];
  /** Number of connections made. */
  opens: number = 0;
  state: ClientState = 'connecting';
  private readonly line: Line = new Line();
  private readonly life: Life;
  private readonly random: () => number;
  private readonly watch: ClientWatch<ClientEvent<Heard>>;
  private timer: NodeJS.Timeout | undefined = undefined;

  constructor(life: Life) {
    this.life = life;
    this.random = numbersFrom(life.seed);
    const { fetch, WebSocket } = this.line;
    this.watch = connect<Heard>(life.url, {
      transport: life.transport,
      fetch,
      WebSocket,
      onExpired: 'restart',
      backoff: { minMs: life.minMs, maxMs: life.maxMs },
      random: this.random,
      onStateChange: (state) => {
        this.state = state;
        if (state === 'open') this.opens++;
      },
    });
  }

  get cuts(): number {
    return this.line.cuts;
  }

  /** Reads until it is stopped. */
  async read(): Promise<void> {
    for await (const batch of this.watch.batches()) {
      const at = now();
      for (const event of batch) {
        if (isErrorEvent(event)) this.checker.refused(event.object);
        else {
          this.latencies.push(at - (event as Tick).object.at);
          this.checker.take((event as Tick).object.n);
        }
      }
    }
  }

  /** Starts the cuts. */
  suffer(): void {
    const { cutEveryMs, offlineMs } = this.life;
    this.timer = setTimeout(
      () => {
        this.line.cut();
        this.timer = setTimeout(() => {
          this.line.mend();
          this.suffer();
        }, offlineMs);
      },
      cutEveryMs * (0.5 + this.random()),
    );
  }

  /** Stops the cuts. */
  calm(): void {
    clearTimeout(this.timer);
    this.line.mend();
  }

  stop(): void {
    this.calm();
    this.watch.stop();
  }
}

/** Returns random numbers from 0 to 1, the same ones for the same seed (mulberry32). */
export function numbersFrom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
