import type { Status } from '../watch/event.ts';
import { isStatus } from '../watch/event.ts';

/** What a connection tells its client. After `over`, or once the client has closed it, it tells nothing any more. */
export interface Receiver {
  /** The server has begun to answer with a stream. */
  opened(): void;
  /** Something has come. `beat`: it bears no event, and so was sent to show life. */
  alive(beat?: boolean): void;
  /** One frame, and the version that the transport itself gives it. Throws for what cannot be read. */
  frame(text: string, id?: string): void;
  /** The connection is over. The client closes it at once, so a transport need not. */
  over(end: End): void;
}

/** Why a connection is over. */
export interface End {
  /** An HTTP status, or one of the machine's own. */
  readonly code: number;
  /** The failure in the server's words or in ours. */
  readonly why?: Status | string | undefined;
  /** When the server wants to see us again. */
  readonly hintMs?: number | undefined;
}

/** The client's hold on a connection. */
export interface Connection {
  /** Lets nothing more come, or lets it come again. A browser's WebSocket cannot. */
  readonly pause?: ((paused: boolean) => void) | undefined;
  /** Ends it at once, at whatever stage. Nothing is told any more. */
  close(): void;
}

/** What a transport needs to know. */
export interface Opening {
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly maxFrameChars: number;
}

/** The longest body of a refusal that is read, in characters. */
export const MAX_REFUSAL_CHARS = 16_384;

/** What an answer other than a stream says: the Status in its body, or else its text. */
export function toRefusal(code: number, body: string, retryAfter?: string | null): End {
  let why: Status | string = body.trim().slice(0, 200) || `status ${code}`;
  try {
    const status: unknown = JSON.parse(body);
    if (isStatus(status)) why = status;
  } catch {
    // No Status, then.
  }
  return { code, why, hintMs: Number(retryAfter) * 1000 };
}

/** What went wrong, in the words of whoever knows most: fetch hides them in the cause. */
export function messageOf(error: unknown): string {
  const { message, cause } = (error ?? {}) as Partial<Error & { cause: Error }>;
  return cause?.message || message || String(error);
}
