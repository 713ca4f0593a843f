import type { ClientEvent, ClientState, ClientTransport, ClientWatch } from '../../../src/bridge/client.ts';
import { connect } from '../../../src/bridge/client.ts';
import type { WireEvent } from '../../../src/bridge/protocol.ts';
import { isErrorEvent } from '../../../src/watch/event.ts';
import { Line } from './line.ts';
import { Reception } from './reception.ts';
import type { Tick } from './tick.ts';
import { now } from './tick.ts';

/** How a client lives. */
export interface Life {
  readonly url: string;
  readonly transport: ClientTransport;
  /** Between being back and the next cut, on average: anything from half of it to one and a half. */
  readonly cutEveryMs: number;
  /** How long it is refused after a cut. */
  readonly offlineMs: number;
  /** Longest wait after the first failed attempt, and ever. */
  readonly minMs?: number | undefined;
  readonly maxMs?: number | undefined;
  readonly seed: number;
}

type Heard = Tick | WireEvent<'ERROR', { code: number; message: string }>;

/** One client on a line that is cut now and then. The client is `connect`, as everybody uses it. */
export class CutClient {
  readonly reception: Reception = new Reception();
  /** How long each event took from its publishing to here, in milliseconds. */
  readonly latencies: number[] = [];
  /** Connections that were made. */
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
        if (isErrorEvent(event)) this.reception.refused(event.object);
        else {
          this.latencies.push(at - (event as Tick).object.at);
          this.reception.take((event as Tick).object.n);
        }
      }
    }
  }

  /** From now on it is cut, now and then. */
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

  /** No more cuts. */
  calm(): void {
    clearTimeout(this.timer);
    this.line.mend();
  }

  stop(): void {
    this.calm();
    this.watch.stop();
  }
}

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
export function numbersFrom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
