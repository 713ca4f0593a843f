import { invalid, tried, whyOf } from '../../watch/errors.ts';
import { isStatus, type Status } from '../../watch/event.ts';
import { BEARER_SUBPROTOCOL, fromRetryReason, SUBPROTOCOL } from '../protocol.ts';
import { COMPLETE, ENDED, LOST, type Loss, toFailure, UNREADABLE } from './machine.ts';

/** What a connection reports to its client. It reports nothing after `over`, or after the client has closed it. */
export interface Receiver {
  /** The server has started to send the stream. */
  opened(): void;
  /** Something has arrived. `isHeartbeat`: it carries no event, so the server sent it as a sign of life. */
  alive(isHeartbeat?: boolean): void;
  /** One frame, and the version that the transport has for it. Throws if the frame cannot be decoded. */
  frame(text: string, id?: string): void;
  /** Set once the server has refused: its reason, as far as it has arrived. It counts, however the connection then ends. */
  refusal?: (() => ConnectionEnd) | undefined;
  /** The connection has ended. The client closes it at once, so the transport need not. */
  over(end: ConnectionEnd): void;
}

/** Why a connection is over. */
export interface ConnectionEnd {
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
interface RefusalHeaders {
  readonly retryAfter?: string | null | undefined;
  readonly date?: string | null | undefined;
}

/** Reads a response that is not a stream: the Status in its body, or its text. The text of a page is a cause, not a message. */
export function toRefusal(code: number, body: string, { retryAfter, date }: RefusalHeaders): ConnectionEnd {
  const message = body.trim().slice(0, 200);
  const why = isPage(message)
    ? { ...toFailure(code, `status ${code}, with a page`), details: { causes: [{ reason: UNEXPECTED, message }] } }
    : (toStatusIn(body) ?? (message || `status ${code}`));
  return { code, why, hintMs: toHintMs(retryAfter ?? '', date) };
}

/** The reason of a cause that holds what a server sent instead of a Status. Upstream: `CauseTypeUnexpectedServerResponse`. */
export const UNEXPECTED = 'UnexpectedServerResponse';

/** Whether a text is a page, such as a proxy's. */
export function isPage(text: string): boolean {
  return text[0] === '<';
}

/** The Status in a text, if it is one. */
export function toStatusIn(body: string): Status | undefined {
  const status: unknown = tried(() => JSON.parse(body));
  return isStatus(status) ? status : undefined;
}

/** Reads a `Retry-After`: seconds or a date. A date is compared with that of the response, because the clocks may differ. */
export function toHintMs(retryAfter: string, date: string | null | undefined): number {
  const hintMs = +retryAfter * 1_000;
  return Number.isNaN(hintMs) ? toTime(retryAfter) - (toTime(date ?? '') || Date.now()) : hintMs;
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

/**
 * The part of a WebSocket that the client uses: of browsers, Node 22 and the package ws. The optional members are those of ws.
 */
export interface WebSocketLike {
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  close(): void;
  terminate?(): void;
  pause?(): void;
  resume?(): void;
  on?(event: string, listener: (...args: never[]) => void): unknown;
}

/** A WebSocket constructor. If its sockets have `terminate`, as those of ws and Bun do, it is passed options with the headers. */
export type WebSocketConstructor = new (url: string, protocols?: string[], options?: object) => WebSocketLike;

export interface WebSocketOpening extends Opening {
  readonly token: string | undefined;
  readonly WebSocket: WebSocketConstructor;
}

/** Headers, in whatever form `fetch` takes them, with a token, if there is one. */
export function headersOf(headers: Opening['headers'], token?: string): Opening['headers'] {
  const fields = headers === undefined ? headers : Object.fromEntries(new Headers(headers));
  return token ? { ...fields, authorization: `Bearer ${token}` } : fields;
}

/** The subprotocols that carry a token. The server accepts the first one. */
export function toProtocols(token: string | undefined): string[] {
  if (!token) return [];
  const encoded = btoa(token).replace(/\+/g, '-').replace(/\//g, '_').replace(/=/g, '');
  return [SUBPROTOCOL, BEARER_SUBPROTOCOL + encoded];
}

/** Why a WebSocket's connection has ended, if nothing else is known. */
export const BROKEN = 'the connection broke, or could not be made';

/** Attaches a receiver to a WebSocket of any kind. Each event is one text message. */
export function listen(socket: WebSocketLike, receiver: Receiver): Connection {
  socket.onopen = () => receiver.opened();
  socket.onmessage = ({ data }: { data: unknown }) => {
    receiver.alive();
    try {
      receiver.frame(data as string);
    } catch (error) {
      receiver.over({ code: UNREADABLE, why: messageOf(error) });
    }
  };
  socket.onclose = ({ code, reason }: { code: number; reason: string }) => {
    const hintMs = fromRetryReason(reason);
    receiver.over({
      // 1000 is the regular end; from 4400 on, a code is 4000 + an HTTP status.
      code: code === 1000 ? (reason === 'timeout' ? ENDED : COMPLETE) : code >= 4400 && code < 4600 ? code - 4000 : LOST,
      hintMs,
      planned: hintMs === undefined ? undefined : 'server',
      why: code === 1006 ? reason || BROKEN : `closed by the server: ${code} ${reason}`.trim(),
    });
  };
  return {
    close: () => {
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
    },
  };
}

/** The used part of a page's global object. Its base may differ from its location. */
interface Page {
  readonly document: { readonly baseURI: string };
  readonly location: { readonly href: string };
}

/** Resolves a URL, a relative one against the page. Throws INVALID_ARGUMENT for other schemes, and shows no credentials. */
export function toUrl(url: string | URL, accepted: string = 'http(s) or ws(s)'): URL {
  // A worker has no document.
  const { document, location } = globalThis as Partial<Page>;
  const target = tried(() => new URL(url, document?.baseURI ?? location?.href));
  if (target && /^(ws|http)s?:$/.test(target.protocol) && accepted.includes(target.protocol.charAt(0))) return target;
  throw invalid('url', url && `${url}`.replace(/\/\/.*@/, '//...@'), `an ${accepted} URL`);
}

/** Throws INVALID_ARGUMENT for credentials in a URL, of which the host's own fetch takes none. */
export function checkCredentials({ username, password, host }: URL, fetch: unknown, instead: string): void {
  if (fetch === globalThis.fetch && (username || password)) throw invalid('url', `...@${host}`, `no credentials: use ${instead}`);
}
