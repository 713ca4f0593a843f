import type { Envelope } from '../../events/envelope.ts';
import type { SourcePosition } from './source.ts';

/** An entry of a hub's source that was read from there. */
export interface PastEvent {
  readonly position: SourcePosition;
  /** Undefined if it is not an event, or a longer one than clients take. */
  readonly envelope: Envelope | undefined;
  readonly topics: readonly string[];
}

/** Where a client that is brought up from the source is: its position, and the events right after it. */
export interface CatchUp {
  /** What it asked for. */
  readonly version: string;
  readonly position: SourcePosition;
  readonly page: readonly PastEvent[];
}
