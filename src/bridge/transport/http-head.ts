import { tried } from '../../watch/errors.ts';
import type { Status } from '../../watch/event.ts';
import { Envelope } from '../events/envelope.ts';
import type { Caller } from '../hub/admission/admission.ts';
import type { Admitted, HubCore } from '../hub/hub-core.ts';
import { FROM_NOW, type Start } from '../hub/hub-log.ts';
import { BEARER_SUBPROTOCOL, DEFAULTS, EVENT_STREAM, JSON_LINES, LAST_EVENT_ID } from '../protocol.ts';

/** The header that admits pages of another origin. An application that sets it has decided on the origin itself. */
export const ALLOW_ORIGIN = 'access-control-allow-origin';

/**
 * Present only in real WebSocket requests; a proxy may set `Upgrade` on any request. If there is no upgrade listener, such a
 * request arrives here. A stream as the response would leave its client waiting for the handshake forever.
 */
export const WEBSOCKET_KEY = 'sec-websocket-key';

/** The used part of a request of node:http. */
interface NodeRequest {
  readonly url?: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly socket: { readonly remoteAddress?: string | undefined };
}

/** Returns a request of node:http as admission sees it. `onGone` is that of {@link Caller}. */
export function toCaller<R extends NodeRequest>(request: R, onGone: Caller<R>['onGone']): Caller<R> {
  const { url = '', socket } = request;
  const at = url.indexOf('?');
  // HTTP/2 has `:authority` in place of `Host`.
  const { origin, 'sec-fetch-site': site, host, ':authority': authority, [LAST_EVENT_ID]: lastEventId } = request.headers;
  return {
    request,
    address: socket.remoteAddress ?? '',
    origin: origin as string | undefined,
    site: site as string | undefined,
    host: (host ?? authority) as string | undefined,
    search: at < 0 ? '' : url.slice(at + 1),
    lastEventId: Array.isArray(lastEventId) ? lastEventId.join() : lastEventId,
    onGone,
  };
}

/** The headers of a stream, except CORS headers and the application's own. */
export function streamHeaders(sse: boolean): Record<string, string> {
  return {
    'content-type': sse ? EVENT_STREAM : JSON_LINES,
    // Middleware and proxies that compress often do not flush, and would keep the events.
    'cache-control': 'no-store, no-transform',
    'x-content-type-options': 'nosniff',
    // A proxy that buffers responses would delay events.
    'x-accel-buffering': 'no',
  };
}

/** The start of a stream. */
export interface Beginning {
  readonly sse: boolean;
  /** The client has asked for BOOKMARKs. */
  readonly bookmarks: boolean;
}

/**
 * Returns what precedes the first event. An event stream tells its client when to reconnect, and from which version, so that it
 * can resume even if it is cut off before its first event.
 *
 * Firefox does not resolve `fetch` before the first byte of the body. The client of a quiet stream would think the server dead,
 * so a client that asks for BOOKMARKs gets one space, which JSON allows.
 */
export function toPreface({ sse, bookmarks }: Beginning, version: string | undefined): string {
  if (!sse) return bookmarks ? ' ' : '';
  return `retry: ${DEFAULTS.retryMs}\n${version === undefined ? '\n' : toMark(version)}`;
}

/**
 * Reports the position of an event stream without an event. By the HTML standard, an EventSource stores an id that comes alone,
 * as Chromium does. Firefox and WebKit store it only with a dispatched message. So this message has empty data, and a name that
 * no page listens to.
 */
export function toMark(version: string): string {
  return `id: ${version}\nevent: bookmark\ndata\n\n`;
}

/** The body of a response that is a Status; null where HTTP allows none. */
export function refusalBody(status: Status, method: string | undefined): string | null {
  return status.code === 204 || method === 'HEAD' ? null : `${JSON.stringify(status)}\n`;
}

/**
 * Returns where a client starts, or the Status that refuses it. An EventSource gives up after a refusal, and after an end it asks
 * for the same version again. So if its version is too old, it gets an ERROR event, and the stream continues.
 */
export function startOf(core: HubCore, admitted: Admitted, sse: boolean): Start | Status {
  const start = core.start(admitted.asked, admitted);
  if (!('code' in start) || !sse || start.code !== 410) return start;
  return { ...FROM_NOW, missed: [new Envelope({ type: 'ERROR', object: start }, { sequence: 0, id: core.version })] };
}

/** Whether an Accept header includes a media type. `q=0` excludes it. */
export function accepts(header: string | null | undefined, type: string): boolean {
  return (header ?? '').split(',').some((entry) => {
    const [name, ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase());
    return name === type && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}

/** At 3 KB/s, one piece takes 22 s. By default, a client has 30 s. */
export const PIECE_BYTES = 65_536;

/**
 * Splits bytes into pieces, for streams that report only whole writes as taken. A slow client may need minutes for one long event.
 * Its progress shows only if the event is written in pieces.
 */
export function* toPieces(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}

/** What a WebSocket client has asked for in `Sec-WebSocket-Protocol`. */
export interface Subprotocols {
  /** What the server may accept: all but the token, which must not get into a response. */
  readonly protocols: readonly string[];
  /** The bearer token. */
  readonly token: string | undefined;
  /** Why the client must be refused with 400. Never contains the token. */
  readonly fault: string | undefined;
}

/**
 * Reads the header `Sec-WebSocket-Protocol`, in which a web page sends its token, for servers that do the handshake themselves.
 * Upstream: `websocketauth`.
 */
export function readSubprotocols(header: string | null | undefined): Subprotocols {
  const all = (header ?? '').split(',').map((each) => each.trim());
  const protocols = all.filter((each) => each !== '' && !each.startsWith(BEARER_SUBPROTOCOL));
  const [bearer, ...more] = all.filter((each) => each.startsWith(BEARER_SUBPROTOCOL));
  const token = bearer === undefined ? undefined : decoded(bearer.slice(BEARER_SUBPROTOCOL.length));
  const fault =
    (more.length > 0 && 'multiple base64.bearer.authorization tokens specified') ||
    (bearer !== undefined && protocols.length === 0 && 'missing additional subprotocol') ||
    (bearer !== undefined && token === undefined && 'invalid base64.bearer.authorization token encoding') ||
    undefined;
  return { protocols, token: fault === undefined ? token : undefined, fault };
}

/** Returns undefined if it is not a token. */
function decoded(text: string): string | undefined {
  if (!/^[A-Za-z0-9_-]+$/.test(text)) return undefined;
  const token = tried(() => atob(text.replaceAll('-', '+').replaceAll('_', '/')));
  // It becomes a header.
  return token === undefined || /[^\x21-\x7e]/.test(token) ? undefined : token;
}

/** The used part of the headers of node:http. */
interface Headers {
  authorization?: string | undefined;
  'sec-websocket-protocol'?: string | undefined;
}

/**
 * Moves a token from the subprotocols to where `authenticate` looks for it, unless there is one already. Returns why the client
 * must be refused, if so; even then, the remaining subprotocols may be echoed.
 */
export function takeToken(headers: Headers): string | undefined {
  const { 'sec-websocket-protocol': header } = headers;
  if (header === undefined) return undefined;
  const { protocols, token, fault } = readSubprotocols(header);
  if (token !== undefined) headers.authorization ??= `Bearer ${token}`;
  headers['sec-websocket-protocol'] = protocols.join(', ') || undefined;
  return fault;
}
