/** Responses that are sent bit by bit: the events of a watch, and the pieces of a list. */
import type { Form } from '../../bridge/events/forms.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import { joined } from '../../decode/framing.ts';
import type { StorageEvent } from '../../storage/storage.ts';
import { type Pace, PIECE_MS, paceOf, type Soon } from '../../watch/fair-queue.ts';
import { isListening, type Listener, type ListeningWatch, type Watch, type WatchBatches } from '../../watch/watch.ts';
import { statusOf } from '../api-status.ts';
import { type EventEncoder, isLargeChange } from './event-encoder.ts';

/** There is nothing yet. The reader is called when there may be something. */
export const LATER: unique symbol = Symbol('later');

/** The content of a response. Read by a session, which asks for more only if there is room. */
export interface Source {
  /**
   * The next bytes; undefined at the end. If there are none yet: a promise, or LATER, after which `reader` is called once. Do not
   * call it while either is pending.
   */
  next(form: Form, reader: Listener): Uint8Array | undefined | Promise<Uint8Array | undefined> | typeof LATER;
  /** Whether events that arrive until the next turn form one batch: a session that has just written then waits for that turn. */
  readonly joins: boolean;
  /** The position at which it starts, for clients that resume from there; undefined: they start over. */
  readonly version?: string | undefined;
  /** The least number of bytes still to come, of an answer that ends. */
  readonly atLeast?: number | undefined;
  /** Of a watch: the number of events sent, and of those that wait for room. */
  readonly sent?: number;
  readonly waiting?: number;
  /** Whether it ended with 410 after it had begun: its client was too slow, or the storage has lost the past. */
  readonly isExpired?: boolean;
  /** Releases everything. A pending promise settles, or is ignored. */
  close(): void;
}

type StorageEvents = readonly StorageEvent<KubernetesObject>[];

const NOTHING: StorageEvents = [];

/**
 * The events of a watch: all that are available at a time, in slices.
 *
 *     nothing there: wait --event--> sent within the turn --> the next turn: all that have come since, in one slice --> wait
 *
 * A watch of a collection calls a listener.
 */
export class WatchSource implements Source {
  readonly version: string | undefined;
  private readonly watch: Watch<StorageEvent<KubernetesObject>>;
  private readonly encoder: EventEncoder;
  private readonly onError: (error: unknown) => void;
  /** For the rest of a long batch: the state, or what its client has missed. */
  private readonly pace: Pace | undefined;
  /** Created at the first read of a watch that does not accept a listener. */
  private batches: WatchBatches<StorageEvent<KubernetesObject>> | undefined = undefined;
  private batch: StorageEvents = NOTHING;
  private from: number = 0;
  private failed: boolean = false;
  sent: number = 0;
  isExpired: boolean = false;

  constructor(
    watch: Watch<StorageEvent<KubernetesObject>>,
    encoder: EventEncoder,
    { onError, version, pace }: { onError: (error: unknown) => void; version?: string | undefined; pace?: Pace },
  ) {
    this.watch = watch;
    this.encoder = encoder;
    this.onError = onError;
    this.version = version;
    this.pace = pace;
  }

  get waiting(): number {
    return this.batch.length - this.from + this.watch.queued;
  }

  next(form: Form, reader: Listener): ReturnType<Source['next']> {
    if (this.failed) return undefined;
    if (this.from < this.batch.length) return this.inTurn(form);
    // Do not keep sent events in memory until new ones arrive.
    this.batch = NOTHING;
    this.from = 0;
    return isListening(this.watch) ? this.nextOf(this.watch, form, reader) : this.waited(form);
  }

  get joins(): boolean {
    return this.from >= this.batch.length;
  }

  close(): void {
    this.batch = NOTHING;
    this.from = 0;
    void this.watch.return();
  }

  private nextOf(
    watch: ListeningWatch<StorageEvent<KubernetesObject>>,
    form: Form,
    reader: Listener,
  ): ReturnType<Source['next']> {
    const batch = watch.tryBatch();
    if (batch !== undefined) return this.begin(batch, form);
    if (watch.over) return undefined;
    watch.listen(reader);
    return LATER;
  }

  private waited(form: Form): Promise<Uint8Array | undefined> {
    this.batches ??= this.watch.batches();
    return this.batches.next().then(
      ({ done, value }) => (done ? undefined : this.begin(value, form)),
      (error: unknown) => this.fail(error, form),
    );
  }

  private begin(batch: StorageEvents, form: Form): Soon<Uint8Array> {
    const last = batch[batch.length - 1];
    if (last?.type === 'ERROR' && last.object.code === 410) this.isExpired = this.sent + batch.length > 1;
    this.batch = batch;
    this.from = 0;
    return isLargeChange(batch[0]) ? this.inTurn(form) : this.slice(form);
  }

  private inTurn(form: Form): Soon<Uint8Array> {
    const turn = this.pace?.turn();
    return turn ? turn.then(() => this.slice(form)) : this.slice(form);
  }

  private slice(form: Form): Soon<Uint8Array> {
    const fail = (error: unknown): Uint8Array => this.fail(error, form);
    try {
      const preparing = this.encoder.prepare(this.batch, this.from, this.pace ?? paceOf(undefined));
      if (preparing) return preparing.then(() => this.inTurn(form), fail);
      const slice = this.encoder.slice(this.batch, this.from, form);
      this.sent += slice.to - this.from;
      this.from = slice.to;
      return slice.bytes;
    } catch (error) {
      return fail(error);
    }
  }

  /** Sends the error to the client: if the watch merely ended, it would look as if nothing had been missed. */
  private fail(error: unknown, form: Form): Uint8Array {
    this.failed = true;
    const { status, unexpected } = statusOf(error);
    if (unexpected) this.onError(error);
    return this.encoder.slice([{ type: 'ERROR', object: status }], 0, form).bytes;
  }
}

/** The most bytes of a list that are joined before they are sent. */
export const CHUNK_BYTES = 131_072;
/** The most pieces: making a row of a table takes longer than its bytes suggest. */
const CHUNK_PIECES = 1_024;

/** How the pieces of an answer are sent. */
interface PiecesTerms {
  /** Each chunk is made in its turn. Omitted if the pieces exist already. */
  readonly pace?: Pace | undefined;
  readonly now?: () => number;
  /** Chunks that exist already, and come first. */
  readonly ahead?: readonly Uint8Array[];
}

/** The pieces of an answer, joined into chunks. */
export class PiecesSource implements Source {
  readonly joins: boolean = false;
  private readonly pace: Pace | undefined;
  private readonly now: () => number;
  private readonly pieces: Iterator<Uint8Array>;
  /** Chunks that have been made. */
  private ahead: Uint8Array[];
  private rest: Uint8Array | undefined = undefined;

  constructor(pieces: Iterable<Uint8Array>, { pace, now = () => performance.now(), ahead = [] }: PiecesTerms = {}) {
    this.pieces = pieces[Symbol.iterator]();
    this.pace = pace;
    this.now = now;
    this.ahead = [...ahead];
  }

  get atLeast(): number {
    return this.ahead.reduce((sum, { length }) => sum + length, 0);
  }

  /** All bytes, if there are few; undefined for a long answer, which may exceed the longest string. */
  async whole(): Promise<Uint8Array | undefined> {
    const { ahead } = this;
    while (ahead.length < 2 || this.atLeast < CHUNK_BYTES) {
      const chunk = await this.made();
      if (chunk === undefined) return joined(ahead);
      ahead.push(chunk);
    }
    return undefined;
  }

  next(): Uint8Array | undefined | Promise<Uint8Array | undefined> {
    return this.ahead.shift() ?? this.made();
  }

  private made(): Uint8Array | undefined | Promise<Uint8Array | undefined> {
    const turn = this.pace?.turn();
    return turn ? turn.then(() => this.chunk()) : this.chunk();
  }

  /** The next chunk; empty if a piece takes long to make. A piece that is larger, or takes longer, than a chunk comes alone. */
  private chunk(): Uint8Array | undefined {
    const parts: Uint8Array[] = [];
    let [bytes, isPausing] = [0, false];
    const untilMs = this.pace ? this.now() + PIECE_MS : Number.POSITIVE_INFINITY;
    for (let piece = this.take(); piece !== undefined; piece = this.take()) {
      if (bytes > 0 && (bytes + piece.length > CHUNK_BYTES || parts.length === CHUNK_PIECES)) {
        this.rest = piece;
        break;
      }
      if (piece.length > 0) parts.push(piece);
      bytes += piece.length;
      isPausing = this.now() >= untilMs;
      if (isPausing) break;
    }
    return parts.length === 0 && !isPausing ? undefined : joined(parts);
  }

  close(): void {
    this.ahead = [];
    this.rest = undefined;
    this.pieces.return?.();
  }

  private take(): Uint8Array | undefined {
    const { rest } = this;
    this.rest = undefined;
    if (rest !== undefined) return rest;
    const { done, value } = this.pieces.next();
    return done ? undefined : value;
  }
}
