import { type JetStreamClient, type JetStreamManager, jetstream, jetstreamManager } from '@nats-io/jetstream';
import {
  connect,
  createInbox,
  type Msg,
  type NatsConnection,
  type NodeConnectionOptions,
  nanos,
  type Subscription,
} from '@nats-io/transport-node';
import { sleep } from '../watch/clock.ts';
import { WatchError } from '../watch/errors.ts';

/** A connection, and what JetStream does over it. */
interface Connected {
  readonly nats: NatsConnection;
  readonly client: JetStreamClient;
  readonly manager: JetStreamManager;
}

/** How long the server may take to answer. */
export const ANSWER_MS = 10_000;
const LOST = 'the connection to NATS is lost';

/**
 * The one connection of a stream. It is made when first needed, and again whenever necessary. nats.js reconnects by itself, but
 * drops what is sent meanwhile and never answers earlier requests, so pending calls are notified of a loss.
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

  /**
   * Notifies pending calls when the connection is lost. A connection that has closed permanently is replaced when it is next
   * needed.
   */
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

/** A consumer on the server, which hands out the messages of a stream in order, from one sequence on. */
export interface NatsHandle {
  readonly nats: NatsConnection;
  /** The subject for requests to the consumer. */
  readonly subject: string;
}

/** How much is asked for at once. */
export interface Portion {
  readonly items: number;
  readonly bytes: number;
}

/** The interval of the server's heartbeats; after three of silence it counts as gone. */
const HEARTBEAT_MS = 5_000;
const SILENCE_MS = 3 * HEARTBEAT_MS;
/** A request for messages ends after this time, and is repeated. */
const EXPIRES_MS = 30_000;

/** The statuses that end a request before it has all the messages it asked for. */
const NO_MORE_NOW = new Set([404, 408]);

/**
 * The messages of a consumer, one request at a time: a slow reader asks for less.
 *
 *     request (items, bytes) --> message message message --> all given, or 408, or 409 (enough bytes) --> request
 *                                      '-- nothing, not even a heartbeat --> failed
 *                                      '-- 409 consumer deleted, 503 nobody there --> failed
 *
 * Messages that were lost on the way are not sent again. The reader sees from their sequences that some are missing.
 */
export class Pull {
  private readonly handle: NatsHandle;
  private readonly portion: Portion;
  private readonly waits: boolean;
  private readonly inbox: string;
  private readonly subscription: Subscription;
  private queue: Msg[] = [];
  private left: number = 0;
  private ended: boolean = false;
  private failure: Error | undefined = undefined;
  private wake: (() => void) | undefined = undefined;
  private watchdog: NodeJS.Timeout | undefined = undefined;

  /** With `waits`, there is always a next batch, sooner or later. Otherwise it ends at the current end of the stream. */
  constructor(handle: NatsHandle, portion: Portion, waits: boolean) {
    this.handle = handle;
    this.portion = portion;
    this.waits = waits;
    this.inbox = createInbox();
    this.subscription = handle.nats.subscribe(this.inbox, {
      callback: (error, message) => {
        if (error instanceof Error) this.fail(error);
        else this.got(message);
      },
    });
    this.request();
  }

  /** Resolves with messages, at least one; or with none at the end. Rejects once the consumer, or the connection, is gone. */
  async next(): Promise<readonly Msg[]> {
    while (this.queue.length === 0 && this.failure === undefined && !this.ended) {
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
    const { queue } = this;
    this.queue = [];
    if (queue.length > 0) return queue;
    if (this.failure !== undefined) throw this.failure;
    return [];
  }

  /** Asks for more, when a request has been answered and read. */
  more(): void {
    if (this.left === 0 && this.queue.length === 0 && this.failure === undefined && !this.ended) this.request();
  }

  fail(error: Error): void {
    this.failure ??= error;
    this.close();
  }

  /** Nothing is pending afterwards. */
  close(): void {
    this.ended = true;
    clearTimeout(this.watchdog);
    if (!this.handle.nats.isClosed()) this.subscription.unsubscribe();
    this.wake?.();
  }

  private request(): void {
    const { items: batch, bytes: max_bytes } = this.portion;
    const patience = this.waits ? { expires: nanos(EXPIRES_MS), idle_heartbeat: nanos(HEARTBEAT_MS) } : { no_wait: true };
    this.left = batch;
    this.listen();
    this.handle.nats.publish(this.handle.subject, JSON.stringify({ batch, max_bytes, ...patience }), { reply: this.inbox });
  }

  private got(message: Msg): void {
    this.listen();
    if (message.subject !== this.inbox) {
      this.queue.push(message);
      this.left--;
      // The request without a wait is used up. The next one follows when these messages have been read.
      if (this.left === 0) this.answered();
      this.wake?.();
      return;
    }
    const { code = 0, description = '' } = message.headers ?? {};
    if (code === 100) return;
    const enough = code === 409 && /maxbytes/i.test(description.replaceAll(' ', ''));
    if (!NO_MORE_NOW.has(code) && !enough) {
      this.fail(new Error(`the consumer says: ${code} ${description}`));
      return;
    }
    this.answered();
    if (this.waits && this.queue.length === 0) this.request();
    this.wake?.();
  }

  /** There is no request until the reader wants more, so the server may be silent, however long the reader takes. */
  private answered(): void {
    this.left = 0;
    clearTimeout(this.watchdog);
    if (!this.waits) this.ended = true;
  }

  private listen(): void {
    if (this.ended) return;
    clearTimeout(this.watchdog);
    this.watchdog = setTimeout(() => this.fail(new Error(`the server was silent for ${SILENCE_MS} ms`)), SILENCE_MS);
  }
}
