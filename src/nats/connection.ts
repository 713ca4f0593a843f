import type { JetStreamClient, JetStreamManager } from '@nats-io/jetstream';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection, NodeConnectionOptions } from '@nats-io/transport-node';
import { connect } from '@nats-io/transport-node';
import { sleep } from '../watch/clock.ts';
import { WatchError } from '../watch/errors.ts';

/** A connection, and what JetStream does over it. */
export interface Connected {
  readonly nats: NatsConnection;
  readonly client: JetStreamClient;
  readonly manager: JetStreamManager;
}

/** How long the server may take to answer. */
export const ANSWER_MS = 10_000;
const LOST = 'the connection to NATS is lost';

/**
 * The one connection of a stream. It is made when it is first needed, and again whenever necessary. nats.js reconnects by itself,
 * but drops what is sent meanwhile and never answers earlier requests, so pending calls are told about a loss.
 */
export class NatsLink {
  private readonly options: NodeConnectionOptions;
  private readonly ended: AbortController = new AbortController();
  private connected: Promise<Connected> | undefined = undefined;
  private nats: NatsConnection | undefined = undefined;
  /** Called when the connection is lost. */
  private readonly losses: Set<(error: Error) => void> = new Set();
  /** Pending while the connection is lost. */
  private back: Promise<void> | undefined = undefined;

  constructor(options: NodeConnectionOptions) {
    this.options = options;
  }

  /** Aborts when the link is closed. */
  get closed(): AbortSignal {
    return this.ended.signal;
  }

  /** Returns the connection, the same for all. Rejects if there is none within this time; the attempt then continues. */
  async connection(limitMs: number): Promise<Connected> {
    if (this.closed.aborted) throw new WatchError('CLOSED', 'the stream is closed');
    this.connected ??= this.connect();
    const late = new AbortController();
    try {
      return await Promise.race([
        this.connected.then((connected) => this.back?.then(() => connected) ?? connected),
        sleep(limitMs, { signal: late.signal }).then((): never => {
          throw new WatchError('TIMEOUT', `NATS: no connection within ${limitMs} ms`, { limit: limitMs });
        }),
      ]);
    } finally {
      late.abort();
    }
  }

  /** Resolves with the answer, or rejects as soon as the connection is lost, because no answer comes then. */
  async answered<T>(answer: Promise<T>): Promise<T> {
    let forget: () => void = () => {};
    const loss = new Promise<never>((_, reject) => {
      forget = this.onLoss(reject);
    });
    return Promise.race([answer, loss]).finally(forget);
  }

  /**
   * Calls back at every loss of the connection. Returns a function that stops this, and returns false if it was called before.
   */
  onLoss(lost: (error: Error) => void): () => boolean {
    this.losses.add(lost);
    return () => this.losses.delete(lost);
  }

  async close(): Promise<void> {
    this.ended.abort();
    // A connection that is still being made is closed as soon as it is open.
    await this.nats?.close();
  }

  private connect(): Promise<Connected> {
    const connecting = connect(this.options).then(async (nats) => {
      this.nats = nats;
      if (this.closed.aborted) await nats.close();
      void this.observe(nats);
      const manager = await jetstreamManager(nats, { timeout: ANSWER_MS, checkAPI: false });
      return { nats, manager, client: jetstream(nats, { timeout: ANSWER_MS }) };
    });
    connecting.catch(() => {
      this.connected = undefined;
    });
    return connecting;
  }

  /** Tells pending calls when the connection is lost. One that has closed for good is replaced when it is next needed. */
  private async observe(nats: NatsConnection): Promise<void> {
    let isBack = (): void => {};
    for await (const { type } of nats.status()) {
      if (type === 'reconnect') isBack();
      if (type !== 'disconnect') continue;
      this.back = new Promise((resolve) => {
        isBack = resolve;
      });
      this.tellLoss();
    }
    this.connected = undefined;
    this.back = undefined;
    isBack();
    this.tellLoss();
  }

  private tellLoss(): void {
    for (const lost of [...this.losses]) lost(new Error(LOST));
  }
}
