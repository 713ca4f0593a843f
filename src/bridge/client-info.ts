/** What a transport knows of a client. */
export interface ClientInfo {
  readonly transport: 'websocket' | 'http' | 'sse';
  /** Whose connection this is, as people read it, and as `maxClientsPerAddress` counts it. Empty: nobody's. */
  readonly address: string;
}

/** Why a client was ended before its time. */
export type CutReason = 'expired' | 'failed' | 'stalled' | 'silent' | 'deadline' | 'disconnected';

/** A client in numbers. */
export interface ClientStats extends ClientInfo {
  readonly id: number;
  /** What `authenticate` said of it, if anybody asked. */
  readonly identity?: unknown;
  /** Events handed to the connection. */
  readonly delivered: number;
  /** Events that wait for the connection. */
  readonly queued: number;
  /** Places in the stream between this client and the head, whatever its filter says of them. */
  readonly lag: number;
  /** Events that this client did not get; with `coalesce`, those folded into a later one. */
  readonly dropped: number;
  /** Bytes handed to the connection, and those of them that the network has not taken yet. */
  readonly sentBytes: number;
  readonly bufferedBytes: number;
  /** Whether it has come back, and goes on where it was. */
  readonly resumed: boolean;
}
