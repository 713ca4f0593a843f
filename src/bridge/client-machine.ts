/**
 * What a client knows of its place in the stream, and what it does next. No socket, no timer, no promise: inputs go in as
 * calls, and what is to be done comes back as an {@link Action}, so that tests can drive it through any history.
 *
 *                       .---- due, or room again ----.
 *                       v                            |
 *     start ------> connecting ------- lost -----> waiting --- gave up ---.
 *                       |                            ^                    v
 *                       '-- opened --> open ---------+-- complete ----> closed
 *                                        lost, ended, full
 *
 * Invariants
 * - A connection asks for what follows `position`, and `position` is the version of the last event that was accepted in order:
 *   so nothing is skipped. What is not behind `position` is not accepted: so nothing is repeated.
 * - Where that cannot be had, because no version is known, the version is too old, or the server is not the one it was, the
 *   consumer is told by one ERROR of code 410, and only then goes anything on.
 * - `failures` counts the connections in a row that brought nothing from which to go on. It sets the pace, and ends the watch past `maxAttempts`.
 * - `closed` is final: from then on every input is answered with nothing.
 */
import type { Status } from '../watch/event.ts';
import { toStatus } from '../watch/event.ts';

/** Where a client stands: `waiting` is between two connections, for a delay to pass or for room in its queue. */
export type ClientState = 'connecting' | 'open' | 'waiting' | 'closed';

/** What the machine goes by. */
export interface MachineOptions {
  readonly minMs: number;
  readonly maxMs: number;
  readonly factor: number;
  readonly maxAttempts: number;
  readonly onExpired?: 'fail' | 'restart' | undefined;
  readonly reconnectOnEnd: boolean;
  readonly random: () => number;
}

/** The end of a connection, as an HTTP status or one of those below. */
export interface Loss {
  readonly code: number;
  readonly error: Status;
  /** When the server wants to see us again. */
  readonly hintMs?: number | undefined;
}

/** The ends that are no refusals. In order, without a word on why: the source may have ended, or a proxy's patience. */
export const ENDED = 200;
/** In order, and the server has said that there is nothing more. */
export const COMPLETE = 204;
/** What came cannot be read: the next connection would bring it again. */
export const UNREADABLE = 422;
/** The connection broke, or could not be made. */
export const LOST = 503;

/** What is to be done, with the state that goes with it: `connecting`, `waiting` or `closed`. */
export interface Action {
  /** How long to wait; then comes `connect`. */
  readonly delayMs?: number;
  /** Why. */
  readonly error?: Status | undefined;
  /** Whether the consumer gets the error, as an ERROR event, before anything else. */
  readonly notice?: boolean;
}

/** How an event stands to what was accepted before: it follows, it is known already, or it is of another life of the server. */
export type Order = 'next' | 'known' | 'foreign';

/** Longer than that no server can make a client wait. */
export const MAX_HINT_MS = 300_000;

export class ClientMachine {
  state: ClientState = 'waiting';
  /** The version to go on from; undefined if there is none. */
  position: string | undefined;
  /** Connections in a row that brought nothing from which to go on. */
  failures: number = 0;
  readonly #options: MachineOptions;

  constructor(options: MachineOptions, position?: string) {
    this.#options = options;
    this.position = position;
  }

  /** It is time for the first connection, or the delay has passed, or there is room again. */
  connect(): void {
    if (this.state === 'waiting') this.state = 'connecting';
  }

  /** The server has begun to answer with a stream. */
  opened(): void {
    if (this.state === 'connecting') this.state = 'open';
  }

  /** An event has come. What is not `next` is not for the consumer. */
  accept(version: string | undefined): Order {
    const order = orderOf(version, this.position);
    if (order === 'next') {
      // Without a version an event cannot be asked for again, and what stands before it is no place to go on from.
      this.position = version;
      // And it may be the beginning of a snapshot that always breaks off: that is no success.
      if (version) this.failures = 0;
    }
    return order;
  }

  /** The connection is over. */
  over({ code, error, hintMs = 0 }: Loss): Action | undefined {
    const { onExpired, maxAttempts, reconnectOnEnd, minMs, maxMs, factor, random } = this.#options;
    const restart = onExpired === 'restart';
    // A stream from now on had begun, but there is no place in it: what the server has sent meanwhile, nobody can tell.
    const blind = this.state === 'open' && this.position === undefined;
    const spent = this.failures >= maxAttempts;
    const enough = !reconnectOnEnd || spent || (blind && !restart);
    if (code === COMPLETE || (code === ENDED && enough)) return this.close();
    const final = code > COMPLETE && code < 500 && ![408, 410, 429].includes(code);
    if (final || spent) return this.close(error);
    const notice = blind || code === 410;
    const told = blind ? toFailure(410, `${error.message}; no version to resume from`) : error;
    if (this.state === 'closed' || (notice && !restart)) return this.close(told);
    if (notice) this.position = undefined;
    this.state = 'waiting';
    // Full jitter, on top of what the server asked for: thousands were told the same.
    const jitterMs = random() * Math.min(maxMs, minMs * factor ** this.failures++);
    // What is no number, or negative, asks for nothing.
    return { delayMs: Math.min(hintMs > 0 ? hintMs : 0, MAX_HINT_MS) + jitterMs, error: told, notice };
  }

  /** The queue is full. Whether the connection may be closed, to be made again when there is room: only from a known place. */
  full(): boolean {
    if (this.position === undefined || this.state !== 'open') return false;
    this.state = 'waiting';
    return true;
  }

  /** For good: the consumer or the server wants no more, or it makes no sense to go on. */
  close(error?: Status): Action | undefined {
    if (this.state === 'closed') return undefined;
    this.state = 'closed';
    return { error, notice: error !== undefined };
  }
}

/** A version reads as `<epoch>.<sequence>`; of one that does not, nothing is known but whether it is the same. */
function orderOf(version: string | undefined, last: string | undefined): Order {
  if (version && version === last) return 'known';
  const [, lastEpoch, lastSequence, epoch, sequence] = /^(.+)\.(\d+)\n(.+)\.(\d+)$/.exec(`${last}\n${version}`) ?? [];
  if (epoch !== lastEpoch) return 'foreign';
  return Number(sequence) <= Number(lastSequence) ? 'known' : 'next';
}

const REASONS: Readonly<Record<number, string>> = { 410: 'Expired', 503: 'ServiceUnavailable' };

/** A failure in our own words. What is no refusal came from the network. */
export function toFailure(code: number, message: string = ''): Status {
  const failure = code < 400 ? LOST : code;
  return toStatus({ code: failure, reason: REASONS[failure] ?? 'Unknown', message });
}
