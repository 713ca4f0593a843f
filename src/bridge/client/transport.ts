import { whyOf } from '../../watch/errors.ts';
import type { Status } from '../../watch/event.ts';
import { isStatus } from '../../watch/event.ts';
import type { Loss } from './machine.ts';
import { toFailure } from './machine.ts';

/** What a connection reports to its client. It reports nothing after `over`, or after the client has closed it. */
export interface Receiver {
  /** The server has started to send the stream. */
  opened(): void;
  /** Something has arrived. `isHeartbeat`: it carries no event, so the server sent it as a sign of life. */
  alive(isHeartbeat?: boolean): void;
  /** One frame, and the version that the transport has for it. Throws if the frame cannot be decoded. */
  frame(text: string, id?: string): void;
  /** The connection has ended. The client closes it at once, so the transport need not. */
  over(end: End): void;
}

/** Why a connection is over. */
export interface End {
  /** An HTTP status, or one of the machine's codes. */
  readonly code: number;
  /** The failure, in the server's words or ours. */
  readonly why?: Status | string | undefined;
  /** The delay that the server asked for. Anything but a positive number means none. */
  readonly hintMs?: number | undefined;
  /** Who has planned this end. */
  readonly planned?: Loss['planned'];
}

/** The client's handle on a connection. */
export interface Connection {
  /** Pauses or resumes reading. Absent for a browser's WebSocket, which cannot. */
  readonly pause?: ((paused: boolean) => void) | undefined;
  /** Closes the connection at once, in any state. It reports nothing more. */
  close(): void;
}

/** What a transport needs to open a connection. */
export interface Opening {
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly maxFrameChars: number;
}

/** Longest body of a refusal that is read, in characters. */
export const MAX_REFUSAL_CHARS = 16_384;

/** The headers of a refusal that the client uses. */
export interface RefusalHeaders {
  /** `Retry-After`. */
  readonly retryAfter?: string | null | undefined;
  /** `Date`. */
  readonly date?: string | null | undefined;
}

/** Reads a response that is not a stream: the Status in its body, or its text. The text of a page is a cause, not a message. */
export function toRefusal(code: number, body: string, { retryAfter, date }: RefusalHeaders): End {
  const message = body.trim().slice(0, 200);
  const why = isPage(message)
    ? { ...toFailure(code, `status ${code}, with a page`), details: { causes: [{ reason: UNEXPECTED, message }] } }
    : (toStatusIn(body) ?? (message || `status ${code}`));
  return { code, why, hintMs: toHintMs(retryAfter ?? '', date) };
}

/** The reason of a cause that is what a server has sent in place of a Status. Upstream: `CauseTypeUnexpectedServerResponse`. */
export const UNEXPECTED = 'UnexpectedServerResponse';

/** Whether a text is a page, such as a proxy's. */
export function isPage(text: string): boolean {
  return text[0] === '<';
}

/** The Status in a text, if it is one. */
export function toStatusIn(body: string): Status | undefined {
  try {
    const status: unknown = JSON.parse(body);
    if (isStatus(status)) return status;
  } catch {
    // The body is not JSON.
  }
  return undefined;
}

/** Reads a `Retry-After`: seconds or a date. A date is compared with that of the response, because the clocks may differ. */
export function toHintMs(retryAfter: string, date: string | null | undefined): number {
  const seconds = Number(retryAfter);
  if (!Number.isNaN(seconds)) return seconds * 1_000;
  return toTime(retryAfter) - (toTime(date ?? '') || Date.now());
}

/** Reads one of the three forms of a date in HTTP, of which that of asctime() does not name its zone. */
function toTime(date: string): number {
  return Date.parse(date.endsWith('GMT') ? date : `${date} GMT`);
}

/** Returns the most specific message. `fetch` hides it in the cause. */
export function messageOf(error: unknown): string {
  const { cause } = (error ?? {}) as Partial<Error & { cause: Error }>;
  return cause?.message || whyOf(error);
}
