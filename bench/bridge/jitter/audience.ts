// Clients of several replicas, in a process of their own. They use `connect`, like everyone, and only their balancer knows faults.
import { setMaxListeners } from 'node:events';
import { WebSocket } from 'ws';
import type { ClientTransport, WebSocketConstructor } from '../../../src/bridge/client.ts';
import { connect } from '../../../src/bridge/client.ts';
import type { WatchEvent } from '../../../src/watch/event.ts';
import { numbersFrom } from './client.ts';
import { answer } from './peer.ts';
import { now } from './tick.ts';

/** What a writer has published. */
export type Written = WatchEvent<'MODIFIED', { readonly writer: number; readonly n: number; readonly at: number }>;

export interface Attend {
  readonly url: string;
  readonly clients: number;
  readonly transports: readonly ClientTransport[];
  readonly seed: number;
}

/** What clients have got: the order of events of each, as a number per event, and what else they heard. */
export interface Attendance {
  readonly received: readonly Uint32Array[];
  readonly errors: readonly string[];
  readonly reconnects: number;
  readonly latencies: Float64Array;
}

/** One number for an event, so that the order of a client is an array of numbers. */
export const keyOf = (writer: number, n: number): number => writer * 10_000_000 + n;

/** Every so many latencies are kept. */
const SAMPLE = 7;

setMaxListeners(0);

class Guest {
  readonly received: number[] = [];
  readonly errors: string[] = [];
  opens: number = 0;
  readonly stop: () => void;

  constructor(url: string, transport: ClientTransport, seed: number) {
    const watch = connect<Written>(url, {
      transport,
      WebSocket: WebSocket as unknown as WebSocketConstructor,
      random: numbersFrom(seed),
      backoff: { minMs: 50, maxMs: 1_000 },
      onStateChange: (state) => {
        if (state === 'open') this.opens++;
      },
    });
    this.stop = () => watch.stop();
    void this.read(watch);
  }

  private async read(watch: AsyncIterable<unknown>): Promise<void> {
    for await (const event of watch) {
      const { type, object } = event as Written | WatchEvent<'ERROR', { code: number; message: string }>;
      if (type === 'MODIFIED') {
        this.received.push(keyOf(object.writer, object.n));
        if (this.received.length % SAMPLE === 0) latencies.push(now() - object.at);
      } else this.errors.push(`after ${this.received.length}: ${object.code} ${object.message}`);
    }
  }
}

const guests: Guest[] = [];
const latencies: number[] = [];

function attend({ url, clients, transports, seed }: Attend): void {
  for (let i = 0; i < clients; i++) guests.push(new Guest(url, transports[i % transports.length] as ClientTransport, seed + i));
}

answer({
  attend,
  /** The fewest events that a client has. */
  least: () => guests.reduce((least, { received }) => Math.min(least, received.length), Number.POSITIVE_INFINITY),
  errors: () => guests.flatMap(({ errors }) => errors),
  report: (): Attendance => ({
    received: guests.map(({ received }) => Uint32Array.from(received)),
    errors: guests.flatMap(({ errors }) => errors),
    reconnects: guests.reduce((sum, { opens }) => sum + opens - 1, 0),
    latencies: Float64Array.from(latencies),
  }),
  stop: () => {
    for (const guest of guests) guest.stop();
  },
});
