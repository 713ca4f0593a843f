/**
 * The state of a connection as people want to see it. A client changes its state several times a second while it reconnects;
 * what is shown changes only when that lasts:
 *
 *     connecting ---- open ----> live ---- lost for graceMs ----> reconnecting ---- lost for offlineMs ----> offline
 *         |                        ^                                  |   ^             or the host has no network
 *         '---- offlineMs ---.     '------------- open ---------------'---'------------------------------------'
 *                            v
 *                         offline          a final error, or the end ----> signed out (401, 403), gone
 *
 * Invariants
 * - A loss that ends within `graceMs` is never shown. After an end that the server has planned, `graceMs` starts when it should
 *   be back.
 * - There is one timer at most, and none once it is open, over or closed.
 */
import type { Clock } from '../../watch/clock.ts';
import { isWatchError, whyOf } from '../../watch/errors.ts';
import { isStatus, type Status } from '../../watch/event.ts';

/**
 * What a person wants to know about a connection.
 *
 * - `connecting`: there has been no connection yet.
 * - `live`: connected, or away for less than `graceMs`.
 * - `reconnecting`: the connection was lost, and the client tries to get it back.
 * - `offline`: the host has no network, or there has been no connection for `offlineMs`. The client goes on trying.
 * - `signed out`: the server has answered 401 or 403. Final, unless the source is an informer, which goes on trying.
 * - `gone`: the source has ended, or has refused for good, such as with 404: then there is an `error`. Final.
 */
export type ConnectionStatus = 'connecting' | 'live' | 'reconnecting' | 'offline' | 'signed out' | 'gone';

/** The state of a connection, for people. A new object whenever it changes. */
export interface ConnectionState {
  readonly status: ConnectionStatus;
  /** Why it is not `live`, if that is known. Its `message` is in the server's words. */
  readonly error?: Status | Error | undefined;
  /** Connects at once, even after `signed out` and `gone`. What is shown stays until the new connection has the whole state. */
  readonly reconnect: () => void;
}

/** When a loss is shown. */
interface ShownConnectionOptions {
  readonly clock: Clock;
  readonly graceMs: number;
  readonly offlineMs: number;
}

/** What is shown of one connection. See the top of this file. */
export class ShownConnection {
  state: ConnectionState;
  readonly #options: ShownConnectionOptions;
  readonly #changed: () => void;
  #isOpen: boolean = false;
  #wasOpen: boolean = false;
  #isOver: boolean = false;
  /** Somebody reports the state. */
  #isTold: boolean = false;
  /** Since when there should have been a connection. */
  #sinceMs: number = 0;
  #error: ConnectionState['error'];
  #cancel: () => void = () => {};

  constructor(options: ShownConnectionOptions, { changed, reconnect }: { changed: () => void; reconnect: () => void }) {
    this.#options = options;
    this.#changed = changed;
    this.state = { status: 'connecting', reconnect };
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  open(): void {
    if (this.#isOver) return;
    this.#isOpen = this.#wasOpen = this.#isTold = true;
    this.#error = undefined;
    this.#look();
  }

  /** An event has arrived. If nobody reports the state, that is all that is known. */
  heard(): void {
    if (!this.#isTold) this.open();
  }

  /** There is no connection. Without an error, that is planned, and lasts for `delayMs`. */
  lost(error?: unknown, delayMs: number = 0): void {
    if (this.#isOver) return;
    this.#isTold = true;
    if (this.#isOpen) this.#sinceMs = this.#options.clock.now() + (error === undefined ? delayMs : 0);
    this.#isOpen = false;
    this.#error = toShown(error) ?? this.#error;
    if (!isRefusal(error)) this.#look();
    else {
      this.#cancel(); // time alone does not change this state
      this.#show('signed out');
    }
  }

  /** Nothing follows. Only the first reason counts. */
  over(error?: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#isOpen = false;
    this.#cancel();
    this.#error = toShown(error);
    this.#show(isRefusal(error) ? 'signed out' : 'gone');
  }

  /** It starts, or starts over. */
  begin(): void {
    this.#isOver = this.#wasOpen = this.#isTold = false;
    this.#error = undefined;
    this.#sinceMs = this.#options.clock.now();
    this.#show('connecting');
    this.#look();
  }

  /** Leaves no timer. */
  close(): void {
    this.#isOver = true;
    this.#cancel();
  }

  /** Shows what is due, and looks again when time alone changes that. */
  #look(): void {
    this.#cancel();
    if (this.#isOver) return;
    const { clock, graceMs, offlineMs } = this.#options;
    const lostMs = clock.now() - this.#sinceMs;
    const later = (limitMs: number): void => {
      this.#cancel = clock.schedule(limitMs - lostMs, () => this.#look());
    };
    if (this.#isOpen) this.#show('live');
    else if (lostMs < graceMs) later(graceMs);
    else if (lostMs >= offlineMs || !hasNetwork()) this.#show('offline');
    else {
      this.#show(this.#wasOpen ? 'reconnecting' : 'connecting');
      later(offlineMs);
    }
  }

  #show(status: ConnectionStatus): void {
    const { state } = this;
    const error = this.#error;
    if (state.status === status && state.error?.message === error?.message) return;
    this.state = { status, error, reconnect: state.reconnect };
    this.#changed();
  }
}

/** Whether the host may have a network. Only a browser knows that it has none. */
function hasNetwork(): boolean {
  return (globalThis as { navigator?: { onLine?: boolean } }).navigator?.onLine !== false;
}

/** Whether somebody has to sign in. */
function isRefusal(error: unknown): boolean {
  const { code } = ((isWatchError(error) && error.status) || error || {}) as Partial<Status>;
  return code === 401 || code === 403;
}

/** An error that has a message. */
export function toShown(error: unknown): ConnectionState['error'] {
  if (error === undefined || error instanceof Error || isStatus(error)) return error;
  return new Error(whyOf(error));
}
