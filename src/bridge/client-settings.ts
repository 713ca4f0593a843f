import type { Codec } from '../decode/codec.ts';
import type { Clock } from '../watch/clock.ts';
import type { Status } from '../watch/event.ts';
import type { Watch } from '../watch/watch.ts';
import type { ClientState, MachineOptions } from './client-machine.ts';
import type { Connection, Receiver } from './client-transport.ts';

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
  /** Whether the reader is shown the BOOKMARKs that only keep the version fresh. */
  readonly bookmarks: boolean;
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
