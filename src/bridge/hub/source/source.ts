import type { Envelope } from '../../events/envelope.ts';
import { toVersion } from '../../protocol.ts';
import { readVersion } from '../query.ts';

/**
 * A stream outside this process that several hubs publish into and follow, so that they serve the same events under the same
 * versions. `watchmux/nats` has one; a hub knows no more about it than this.
 *
 *     hub.publish --> publish --> stream --+--> follow --> hub --> its clients
 *     (any process)                        |--> follow --> hub --> its clients
 *                                          '--> read   what a client has missed that a hub no longer keeps
 *
 * What it promises:
 *
 * - The events have one order, and consecutive sequences. Followers get them without gaps.
 * - From a `SourcePosition`, a follower gets exactly the events after it, or learns that the position is no longer known.
 *   This must hold even if the stream was replaced, or has lost events and given their sequences to others, which is why `epoch`
 *   and `mark` are compared.
 */
export interface HubSource {
  /** Appends an event. Resolves when it is stored; an event with an id that was published before is not stored again. */
  publish(message: SourceMessage): Promise<void>;
  /**
   * Starts to follow the stream, right after a position or with the latest events. Resolves to undefined if the stream cannot
   * continue after that position. Rejects if the stream cannot be reached now. `signal` ends everything, including what was
   * returned.
   */
  follow(from: SourcePosition | LastEvents, signal: AbortSignal): Promise<Following | undefined>;
  /**
   * Returns the events from a sequence on, as many as the limits allow, but at least one if there is any. Events that the stream
   * no longer holds are left out. Resolves to undefined if it is another stream.
   */
  read(from: ReadFrom, limits: ReadLimits): Promise<readonly SourceEvent[] | undefined>;
}

/** A place in a stream: right after an event. */
export interface SourcePosition {
  /** Identifies the stream. One that was deleted and created again has another. 1 to 64 letters, digits, `-` and `_`. */
  readonly epoch: string;
  /** The sequence of that event; 0 is before the first. */
  readonly sequence: number;
  /**
   * Something else that is known about that event, such as its time, so that another event that got its sequence after a loss is
   * not mistaken for it. 1 to 16 lower-case letters and digits; `0` before the first event.
   */
  readonly mark: string;
}

/** The last events of a stream. */
export interface LastEvents {
  /** How many. 0: only those that follow. */
  readonly last: number;
}

/** An event of a stream. */
export interface SourceEvent {
  readonly sequence: number;
  readonly mark: string;
  /** The event's JSON text. */
  readonly json: string;
  readonly topics: readonly string[];
}

/** An event to publish. */
export interface SourceMessage {
  readonly json: string;
  readonly topics: readonly string[];
  /**
   * Identifies it: the stream stores one event with it, however often it is published within the time that the source defines.
   */
  readonly id: string;
}

/** A stream that is being followed. */
export interface Following {
  /** Where it starts: the asked position, or that before the first of the last events. */
  readonly position: SourcePosition;
  /**
   * The sequence of the last event that the stream holds right now. Not of a removed one, because the hub waits until it has
   * this event.
   */
  readonly last: number;
  /** The events after `position`. Fails when the connection is lost; ends when the signal aborts. */
  readonly batches: AsyncIterable<readonly SourceEvent[]>;
}

/** What to read. */
export interface ReadFrom {
  readonly epoch: string;
  /** The sequence of the first event. */
  readonly first: number;
}

/** Limits of one read. */
export interface ReadLimits {
  readonly items: number;
  readonly bytes: number;
  readonly signal: AbortSignal;
}

/** The state of a hub's connection to its source. */
export interface SourceStats {
  /** `waiting`: not connected, or not yet up to date for the first time. New clients have to wait. */
  readonly phase: 'waiting' | 'following' | 'reconnecting' | 'stopped';
  /** How often the stream could not be continued, and every client got a 410. */
  readonly resets: number;
  /** Number of entries in the stream that are not events, or longer ones than the hub's `maxEventBytes`. */
  readonly skipped: number;
  /** Why the last attempt to follow ended, or an event was too long, until another attempt succeeds. */
  readonly error?: unknown;
}

/** How many letters an epoch, and a mark, may have on the wire. */
const PARTS: RegExp = /^([\w-]{1,64})~([0-9a-z]{1,16})$/;

/** Returns the version of a position: `<epoch>~<mark>.<sequence>`. */
export function toSourceVersion({ epoch, mark, sequence }: SourcePosition): string {
  return toVersion(`${epoch}~${mark}`, sequence);
}

/** Returns the position of a version, or undefined if it is not the version of a source. */
export function toPosition(version: string): SourcePosition | undefined {
  const { epoch = '', sequence = 0 } = readVersion(version) ?? {};
  const [, name, mark] = PARTS.exec(epoch) ?? [];
  if (name === undefined || mark === undefined || !Number.isSafeInteger(sequence)) return undefined;
  return { epoch: name, mark, sequence };
}

export interface SourceEntry {
  readonly position: SourcePosition;
  /** Undefined if it is not an event, or longer than clients accept. */
  readonly envelope: Envelope | undefined;
  readonly topics: readonly string[];
}

/** Where a client that catches up from the source starts: its position, and the events right after it. */
export interface CatchUpStart {
  /** What it asked for. */
  readonly version: string;
  readonly position: SourcePosition;
  readonly page: readonly SourceEntry[];
}
