import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';
import { createInbox, nanos } from '@nats-io/transport-node';

/** A consumer on the server, which hands out the messages of a stream in order, from one sequence on. */
export interface Handle {
  readonly nats: NatsConnection;
  /** The subject at which the consumer is asked. */
  readonly subject: string;
}

/** How much is asked for at once. */
export interface Portion {
  readonly items: number;
  readonly bytes: number;
}

/** How often the server says that it is still there; after three such intervals of silence it counts as gone. */
const HEARTBEAT_MS = 5_000;
const SILENCE_MS = 3 * HEARTBEAT_MS;
/** A request for messages ends after this, and is made again. */
const EXPIRES_MS = 30_000;

/** The statuses that end a request for messages that did not get all it asked for. */
const NO_MORE_NOW = new Set([404, 408]);

/**
 * The messages that a consumer hands out, one request at a time: a reader that is slow asks for less.
 *
 *     request (items, bytes) --> message message message --> all given, or 408, or 409 (enough bytes) --> request
 *                                      '-- nothing, not even a heartbeat --> failed
 *                                      '-- 409 consumer deleted, 503 nobody there --> failed
 *
 * Messages that were lost on the way are not sent again. The reader sees from their sequences that some are missing.
 */
export class Pull {
  private readonly handle: Handle;
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

  /** With `waits`, there is always a next batch, sooner or later. Otherwise it ends with what the stream has now. */
  constructor(handle: Handle, portion: Portion, waits: boolean) {
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
      // The request without a wait is used up. The next one is made when these messages have been read.
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

  /** Nothing is asked for until the reader wants more, so the server has nothing to say, however long the reader takes. */
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
