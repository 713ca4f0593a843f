import type { Codec } from '../decode/codec.ts';
import type { Clock } from '../watch/clock.ts';
import type { ErrorEvent, Status, WatchEvent } from '../watch/event.ts';
import { isErrorEvent } from '../watch/event.ts';
import { NONE, Reader } from '../watch/reader.ts';
import type { Watch } from '../watch/watch.ts';
import { checkLength } from './client-lines.ts';
import type { Action, ClientState, MachineOptions } from './client-machine.ts';
import { ClientMachine, COMPLETE, ENDED, LOST, toFailure } from './client-machine.ts';
import { ClientQueue } from './client-queue.ts';
import type { Connection, End, Receiver } from './client-transport.ts';
import { messageOf } from './client-transport.ts';
import { isInitialEventsEnd } from './protocol.ts';

/** What a client does with an event that does not fit its queue. */
export type ClientOverflow = 'wait' | 'drop-newest' | 'drop-oldest' | 'disconnect';

/** More about a change of state. */
export interface StateDetail {
  /** Why the connection was lost, or the watch failed. */
  readonly error?: Status | undefined;
  /** How long until the next attempt. Without it, `waiting` is for room in the queue. */
  readonly delayMs?: number | undefined;
}

/** A watch over a connection that is made again when it is lost. */
export interface ClientWatch<E> extends Watch<E> {
  /** Where its connection stands. `closed` is final; what is queued stays readable. */
  readonly state: ClientState;
  /** Where to go on behind what was read so far: to be kept, and given to `connect` another time. */
  readonly resourceVersion: string | undefined;
}

/** What a client goes by. */
export interface ClientSettings<E> extends MachineOptions {
  readonly capacity: number;
  readonly maxBufferedBytes: number;
  readonly maxFrameChars: number;
  readonly overflow: ClientOverflow;
  /** Whether the reader wants the BOOKMARKs that only keep the version fresh. */
  readonly showBookmarks: boolean;
  readonly connectTimeoutMs: number;
  /** 0: never. Undefined: the default, once the server has shown that it gives signs of life. */
  readonly idleTimeoutMs?: number | undefined;
  readonly clock: Clock;
  readonly codec?: Pick<Codec<E>, 'decode'> | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onStateChange?: ((state: ClientState, detail: StateDetail) => void) | undefined;
  readonly onGap?: ((missed: number) => void) | undefined;
}

/** Makes a connection that goes on after a version. */
export type Open = (from: string | undefined, receiver: Receiver) => Connection;

/** Two and a half of the intervals at which a hub sends BOOKMARKs. */
const IDLE_TIMEOUT_MS = 150_000;

const encoder = new TextEncoder();

/**
 * The thin shell around {@link ClientMachine}: it makes the connections, keeps the queue and the one timer, and does what the
 * machine says.
 *
 *     connection --frame--> decode -> machine.accept -> queue -> next(), batches() ...
 *          '-----over, timer--> machine -> Action         '--- room again: resume, or connect
 */
export class Client<E extends WatchEvent> extends Reader<E> implements ClientWatch<E>, Receiver {
  dropped: number = 0;
  protected failure: { readonly error: unknown } | undefined;
  readonly #settings: ClientSettings<E>;
  readonly #machine: ClientMachine;
  readonly #queue: ClientQueue<E>;
  readonly #open: Open;
  #connection: Connection | undefined;
  #cancelTimer: (() => void) | undefined;
  #told: ClientState = 'connecting';
  /** The queue is full: the connection stands still, or was closed, until there is room. */
  #blocked: boolean = false;
  #discarded: boolean = false;
  /** The last event was an ERROR: an end behind it is no surprise. */
  #errored: boolean = false;
  /** The server shows life also when nothing happens. */
  #beats: boolean = false;
  #openedMs: number = 0;
  readonly #onAbort = (): void => this.stop();

  constructor(settings: ClientSettings<E>, open: Open, position: string | undefined) {
    super();
    this.#settings = settings;
    this.#machine = new ClientMachine(settings, position);
    this.#queue = new ClientQueue(settings);
    this.#open = open;
    settings.signal?.addEventListener('abort', this.#onAbort);
    this.#perform(this.#machine.connect());
  }

  get state(): ClientState {
    return this.#machine.state;
  }

  get resourceVersion(): string | undefined {
    return this.#queue.complete ? this.#machine.position : this.#queue.readVersion;
  }

  get stopped(): boolean {
    return this.state === 'closed';
  }

  get queued(): number {
    return this.#queue.size;
  }

  protected override get drained(): boolean {
    return this.stopped && this.queued === 0;
  }

  protected override get breaks(): boolean {
    return this.#queue.missed > 0;
  }

  protected override take(): E | typeof NONE {
    if (this.queued === 0) return NONE;
    const { missed } = this.#queue;
    const event = this.#queue.shift() as E;
    if (missed > 0) this.#call(() => this.#settings.onGap?.(missed));
    if (!this.#discarded) return event;
    this.dropped++;
    return NONE;
  }

  protected override taken(): void {
    if (!this.#blocked) return;
    if (this.#connection === undefined) {
      // Not at the first free place: a connection for every event would be dear.
      if (this.#queue.roomy) this.#perform(this.#machine.connect());
    } else if (!this.#queue.full) {
      this.#blocked = false;
      this.alive();
      this.#connection.pause?.(false);
    }
  }

  protected override end(): void {
    this.#perform(this.#machine.close());
  }

  protected override discard(): void {
    this.dropped += this.queued;
    this.#queue.clear();
    this.#discarded = true;
    this.end();
  }

  opened(): void {
    this.#machine.opened();
    this.#openedMs = this.#settings.clock.now();
    this.alive();
    this.#tell();
  }

  alive(beat: boolean = false): void {
    this.#beats ||= beat;
    // Until then it is the answer that is waited for; and while the queue is full, the reader. What was on its way may still come.
    if (this.state === 'open' && !this.#blocked)
      this.#expect(this.#settings.idleTimeoutMs ?? (this.#beats ? IDLE_TIMEOUT_MS : 0));
  }

  frame(text: string, id?: string): void {
    const { codec, maxFrameChars } = this.#settings;
    checkLength(text.length, maxFrameChars);
    const event = codec === undefined ? (toEvent(text) as E) : codec.decode(encoder.encode(text));
    if (event === undefined) return;
    const { resourceVersion } = event as { resourceVersion?: string };
    // An ERROR without a place in the stream is the server's word to this client, and the last.
    if (resourceVersion === undefined && isErrorEvent(event)) this.#refused(event);
    else this.#accept(event, { bytes: text.length, version: resourceVersion || id || undefined });
  }

  over({ code, why, hintMs }: End): void {
    const { clock, maxMs } = this.#settings;
    // A connection that held for so long is none of a row of failures.
    if (this.state === 'open' && clock.now() - this.#openedMs >= maxMs) this.#machine.failures = 0;
    const error = typeof why === 'object' ? why : toFailure(code, why);
    const end = code === ENDED && this.#errored ? COMPLETE : code;
    this.#perform(this.#machine.over({ code: end, error, hintMs }));
  }

  #refused(event: ErrorEvent & E): void {
    const error = event.object;
    const { missed, retryAfterSeconds } = error.details ?? {};
    // Cut because it was too slow, a client comes back, and gets what it missed if the server still has it.
    const back = missed !== undefined || retryAfterSeconds !== undefined;
    const code = back ? LOST : Math.min(error.code, 410);
    this.#perform(this.#machine.over({ code, error, hintMs: (retryAfterSeconds ?? 0) * 1000 }), event);
  }

  #accept(event: E, more: { bytes: number; version: string | undefined }): void {
    const { version } = more;
    const { metadata } = (event.object ?? {}) as { metadata?: { resourceVersion?: string } };
    const mark = event.type === 'BOOKMARK' && version !== undefined && metadata?.resourceVersion === version;
    if (this.#settings.overflow === 'disconnect' && this.#queue.full && !mark) {
      this.dropped++;
      this.#perform(this.#machine.close(toFailure(410, 'the reader was too slow')));
      return;
    }
    const order = this.#machine.accept(version);
    if (mark) this.alive(true);
    if (order === 'foreign') this.over({ code: 410, why: `${version} does not follow ${this.#machine.position}` });
    else if (mark ? this.#settings.showBookmarks || isInitialEventsEnd(event) : order === 'next') {
      this.#errored = isErrorEvent(event);
      this.#push(event, more);
    }
  }

  #push(event: E, more: { bytes: number; version: string | undefined }): void {
    const { overflow } = this.#settings;
    const queue = this.#queue;
    while (queue.full && overflow === 'drop-oldest') {
      queue.drop();
      this.dropped++;
    }
    if (queue.full && overflow !== 'wait') {
      queue.miss();
      this.dropped++;
      return;
    }
    queue.push(event, more);
    this.serve();
    if (queue.full && overflow === 'wait') this.#block();
  }

  #block(): void {
    if (this.#connection?.pause !== undefined) {
      this.#blocked = true;
      this.#expect(0);
      this.#connection.pause(true);
    } else if (this.#machine.full()) {
      this.#hangUp();
      this.#blocked = true;
      this.#tell();
    } else if (this.#queue.overweight) this.over({ code: 410, why: 'more has come than there is room for' });
  }

  #perform(action: Action | undefined, event?: E): void {
    if (action === undefined) return;
    const { error, delayMs, notice } = action;
    this.#hangUp();
    if (notice) this.#queue.pushError(event ?? ({ type: 'ERROR', object: error } as WatchEvent as E));
    if (this.stopped) this.#settings.signal?.removeEventListener('abort', this.#onAbort);
    else if (delayMs === undefined) this.#connect();
    else this.#timer(delayMs, () => this.#perform(this.#machine.connect()));
    this.#tell({ error, delayMs });
    this.serve();
  }

  #connect(): void {
    this.#beats = this.#errored = false;
    this.#expect(this.#settings.connectTimeoutMs);
    try {
      this.#connection = this.#open(this.#machine.position, this);
    } catch (error) {
      // Such as a page that may not open what is not encrypted: to try again would change nothing.
      this.over({ code: 400, why: messageOf(error) });
    }
  }

  #hangUp(): void {
    this.#expect(0);
    this.#blocked = false;
    this.#connection?.close();
    this.#connection = undefined;
  }

  /** Without a sign of life within so long the connection is lost; 0: however long. */
  #expect(timeoutMs: number): void {
    this.#timer(timeoutMs, timeoutMs > 0 && (() => this.over({ code: LOST, why: `nothing came for ${timeoutMs} ms` })));
  }

  /** The one timer: for an answer, for a sign of life, or for the next attempt. */
  #timer(delayMs: number, callback: (() => void) | false): void {
    this.#cancelTimer?.();
    this.#cancelTimer = callback ? this.#settings.clock.schedule(delayMs, callback) : undefined;
  }

  /** Tells of a change of state, once it is made. */
  #tell(detail: StateDetail = {}): void {
    const { state } = this;
    if (state === this.#told) return;
    this.#told = state;
    this.#call(() => this.#settings.onStateChange?.(state, detail));
  }

  /** Calls user code. What it throws ends the watch, and reaches its reader. */
  #call(code: () => void): void {
    try {
      code();
    } catch (error) {
      this.failure = { error };
      this.#told = 'closed';
      this.discard();
    }
  }
}

function toEvent(text: string): WatchEvent {
  const value = JSON.parse(text) as Partial<WatchEvent> | null;
  if (typeof value?.type === 'string' && value.type !== '' && Object.hasOwn(value, 'object')) return value as WatchEvent;
  throw new SyntaxError(`not an event: ${text.slice(0, 80)}`);
}
