import type { TRANSPORTS } from '../client/options.ts';

/** A transport of this package, or one of your own by the name you gave it. */
export type TransportName = (typeof TRANSPORTS)[number] | (string & Record<never, never>);

/** What a transport knows about a client. */
export interface ClientInfo {
  readonly transport: TransportName;
  /** The client's address, as statistics show it and `maxClientsPerAddress` counts it. Empty: unknown, and not counted. */
  readonly address: string;
}

/** Why the server cut a client off. */
export type CutReason = 'expired' | 'failed' | 'stalled' | 'silent' | 'deadline' | 'disconnected' | 'flooding';

/** Statistics of one client. */
export interface ClientStats extends ClientInfo {
  readonly id: number;
  /** The identity that `authenticate` returned, if there is such a hook. */
  readonly identity?: unknown;
  /** The topics that the client is limited to, if it is. */
  readonly topics?: readonly string[] | undefined;
  /** Events handed to the connection. */
  readonly delivered: number;
  /** Events waiting for the connection. */
  readonly queued: number;
  /** Positions between this client and the head of the stream, including events that its filter rejects. */
  readonly lag: number;
  /** Events that this client did not get; with `coalesce`, those folded into a later one. */
  readonly dropped: number;
  /** Bytes of events handed to the connection in total, as its transport frames them. */
  readonly sentBytes: number;
  /** Bytes in the connection that the network has not taken yet. */
  readonly bufferedBytes: number;
  /** Whether the client has reconnected and resumed after a version. */
  readonly resumed: boolean;
}
