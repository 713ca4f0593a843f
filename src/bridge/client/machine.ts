/**
 * The state machine of a client: it knows the position in the stream and decides what to do next. It has no sockets, timers or
 * promises. Inputs are method calls, and decisions are returned as an {@link Action}, so tests can drive it through any history.
 *
 *                       .---- due, or room again ----.
 *                       v                            |
 *     start ------> connecting ------- lost -----> waiting --- gave up ---.
 *                       |                            ^                    v
 *                       '-- opened --> open ---------+-- complete ----> closed
 *                                        lost, ended, full
 *
 * Invariants
 * - `position` is the version of the last event accepted in order that has one, and a connection asks for what follows it, so no
 *   event is skipped. An event that is not after `position` is not accepted, so no event is repeated, except those of a folded
 *   batch that has broken off: they have no versions, and the whole batch comes again. After half a snapshot that was requested
 *   despite a position, there is no position left to continue from.
 * - If that is impossible (no version is known, the version is too old, or the server is a different one), the consumer gets one
 *   ERROR with code 410 before anything else.
 * - `failures` counts the consecutive connections that delivered no event to resume from, and did not last for `maxMs`. It
 *   determines the delay. The failure after `maxAttempts` of them ends the watch, even if it is a regular end, because
 *   something may have been missed. With 0, no attempt can be used up, so a regular end stays regular.
 * - After a 410 it starts over at once, because the server does answer. From the second 410 in a row on, it waits as after any
 *   other failure.
 * - `closed` is final: every later input returns no action.
 */
import { Backoff, type BackoffOptions } from '../../watch/backoff.ts';
import type { Status } from '../../watch/event.ts';
import { toStatus } from '../../watch/event.ts';

/** The state of a client. `waiting` is between two connections: for a delay to pass, or for room in the queue. */
export type ClientState = 'connecting' | 'open' | 'waiting' | 'closed';

export interface MachineOptions extends BackoffOptions {
  readonly maxAttempts: number;
  readonly onExpired?: 'fail' | 'restart' | undefined;
  readonly reconnectOnEnd: boolean;
}

/** The end of a connection: an HTTP status, or one of the codes below. */
export interface Loss {
  readonly code: number;
  readonly error: Status;
  /** The delay that the server asked for. */
  readonly hintMs?: number | undefined;
  /** How long the connection has existed. */
  readonly ranMs?: number | undefined;
  /** Who has planned this end, so that it is not a failure: the server, which has said when to come back, or the client's user. */
  readonly planned?: 'server' | 'client' | undefined;
}

/** The stream ended regularly, without a reason. The source may have ended, or a proxy may have cut a long response. */
export const ENDED = 200;
/** The stream ended regularly, and the server has said that nothing follows. */
export const COMPLETE = 204;
/** The data cannot be decoded. The next connection would deliver the same. */
export const UNREADABLE = 422;
/** The connection broke, or could not be made. */
export const LOST = 503;

/** What the shell does next. The machine's state is by then `connecting`, `waiting` or `closed`. */
export interface Action {
  /** Wait this long, then call `connect`. */
  readonly delayMs?: number;
  readonly error?: Status | undefined;
  /** Whether to deliver the error to the consumer as an ERROR event, before anything else. */
  readonly notice?: boolean;
}

/**
 * How an event relates to the last accepted one: it follows, it is already known, or it is from another lifetime of the server.
 */
type Order = 'next' | 'known' | 'foreign';

export class ClientMachine {
  state: ClientState = 'waiting';
  /** The version to resume after; undefined if there is none. */
  position: string | undefined;
  /** This connection begins with a snapshot, although a position is known. */
  copying: boolean = false;
  readonly #options: MachineOptions;
  readonly #backoff: Backoff;
  /** The last event had no version, so more was to come: the rest of a snapshot, or of a folded batch. */
  #partial: boolean = false;
  /** An event has arrived on this connection. */
  #begun: boolean = false;

  constructor(options: MachineOptions, position?: string) {
    this.#options = options;
    this.#backoff = new Backoff(options);
    this.position = position;
  }

  /** Consecutive connections that delivered no event to resume from. */
  get failures(): number {
    return this.#backoff.failures;
  }

  /** The first connection, or the delay has passed, or there is room again. */
  connect(): void {
    if (this.state === 'waiting') this.state = 'connecting';
    this.#partial = this.#begun = false;
  }

  /** The server has started to send the stream. */
  opened(): void {
    if (this.state === 'connecting') this.state = 'open';
  }

  /** The server could not begin. If nothing has come on this connection, that is as good as a refusal in its head. */
  refused(): void {
    if (this.state === 'open' && !this.#begun) this.state = 'connecting';
  }

  /** An event has arrived. Only a `next` event is for the consumer. */
  accept(version: string | undefined): Order {
    this.#begun = true;
    // A snapshot replaces everything before it, even an empty one from a stream that has gone back.
    if (this.copying) this.position = undefined;
    const order = orderOf(version, this.position);
    if (order === 'next') {
      this.#partial = !version;
      if (version) {
        this.position = version;
        this.copying = false;
        // An event without a version may be the start of a snapshot that breaks off every time, so it does not count as success.
        this.#backoff.failures = 0;
      }
    }
    return order;
  }

  /** The connection has been open for `maxMs`, so it is not part of a series of failures. */
  lasted(): void {
    this.#backoff.healthy();
  }

  /** The connection has ended. */
  over({ code, error, hintMs, ranMs, planned }: Loss): Action | undefined {
    const { onExpired, maxAttempts, reconnectOnEnd } = this.#options;
    const restart = onExpired === 'restart';
    // The stream was open but had no version yet. What the server sends until the next connection cannot be known.
    const unversioned = this.state === 'open' && !this.position;
    const spent = planned !== 'client' && this.#backoff.failures >= maxAttempts;
    const enough = !reconnectOnEnd || maxAttempts === 0 || (unversioned && !restart && !this.#partial);
    if (code === COMPLETE || (code === ENDED && enough)) return this.close();
    if (spent && code === ENDED) return this.close(toFailure(LOST, 'ended after maxAttempts'));
    if (spent || (code > COMPLETE && code < 500 && ![408, 410, 429].includes(code))) return this.close(error);
    const notice = unversioned || code === 410;
    const reported = unversioned ? toFailure(410, `${error.message}; no version`) : error;
    if (this.state === 'closed' || (notice && !restart)) return this.close(reported);
    if (notice) this.position = undefined;
    this.state = 'waiting';
    if (planned === 'client' && !notice) return { delayMs: 0 };
    const expired = code === 410;
    // A failed snapshot also loses the position, and its error has another code.
    const delayMs = this.#backoff.failed({ hintMs, ranMs, expired, curable: expired && error.code === 410 });
    return { delayMs, error: planned && !notice ? undefined : reported, notice };
  }

  /**
   * The queue is full. Returns whether the connection may be closed until there is room, which requires a known position.
   * Within a folded batch, which would come again, only if there is no room at all.
   */
  full(atAll: boolean = false): boolean {
    const may = this.state === 'open' && !!this.position && (atAll || !this.#partial);
    if (may) this.state = 'waiting';
    return may;
  }

  /** Ends the watch for good, with an error if it failed. */
  close(error?: Status): Action | undefined {
    if (this.state === 'closed') return undefined;
    this.state = 'closed';
    return { error, notice: !!error };
  }
}

/**
 * Versions have the form `<epoch>.<sequence>`, with the mark of an event after the epoch if a hub has a source. Versions of any other
 * form can only be compared for equality.
 */
function orderOf(version: string | undefined, last: string | undefined): Order {
  if (version && version === last) return 'known';
  const [, lastEpoch, lastSequence, epoch, sequence] =
    /^([^~\n]+)(?:~\w+)?\.(\d+)\n([^~\n]+)(?:~\w+)?\.(\d+)$/.exec(`${last}\n${version}`) ?? [];
  if (epoch !== lastEpoch) return 'foreign';
  return Number(sequence) <= Number(lastSequence) ? 'known' : 'next';
}

const REASONS: Readonly<Record<number, string>> = { 410: 'Expired', 503: 'ServiceUnavailable' };

/** Creates a Status for a failure that has none. A code that is not a refusal means a network failure. */
export function toFailure(code: number, message: string = ''): Status {
  const failure = code < 400 ? LOST : code;
  return toStatus({ code: failure, reason: REASONS[failure] ?? 'Unknown', message });
}
