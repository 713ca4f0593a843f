import type { Status } from '../watch/event.ts';
import { toStatus } from '../watch/event.ts';
import type { Admitted } from './admission.ts';
import { Envelope } from './envelope.ts';
import { DEFAULTS, EVENT_STREAM, JSON_LINES } from './protocol.ts';
import type { Reception } from './reception.ts';
import type { Start } from './start.ts';
import { FROM_NOW } from './start.ts';

/** The header by which a page of another origin is let in. Whoever sets it has decided for whom. */
export const ALLOW_ORIGIN = 'access-control-allow-origin';

/**
 * The header that asks for a WebSocket in earnest; a proxy may set `Upgrade` for all that it passes on. Where no upgrade listener
 * is, such a request comes to us, and a stream in answer would keep its client waiting for a handshake without end.
 */
export const WEBSOCKET_KEY = 'sec-websocket-key';

/** The headers of a stream, without those of CORS and the application's own. */
export function streamHeaders(sse: boolean): Record<string, string> {
  return {
    'content-type': sse ? EVENT_STREAM : JSON_LINES,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    // Proxies that gather output would hold events back.
    'x-accel-buffering': 'no',
  };
}

/** How a stream begins. */
export interface Beginning {
  readonly sse: boolean;
  /** Its client has asked for BOOKMARKs. */
  readonly bookmarks: boolean;
}

/**
 * What stands before the first event. Firefox holds an answer back from `fetch` until the first byte of its body has come, so that
 * a client of a quiet stream would take the server for dead: one that asks for signs of life gets a space at once, which is none of
 * the JSON's concern. An event stream says when to come back, and from where, so that one which is cut off before its first event goes on
 * where it was.
 */
export function toPreface({ sse, bookmarks }: Beginning, version: string | undefined): string {
  if (!sse) return bookmarks ? ' ' : '';
  return `retry: ${DEFAULTS.retryMs}\n${version === undefined ? '\n' : toMark(version)}`;
}

/**
 * How far an event stream is, without an event. By the HTML standard an EventSource keeps an id that comes alone, and Chromium does;
 * Firefox and WebKit keep it only of what they hand out. So it bears a name for which no page listens, and empty data.
 */
export function toMark(version: string): string {
  return `id: ${version}\nevent: bookmark\ndata\n\n`;
}

/** The headers of an answer that is a Status. */
export function refusalHeaders({ code, details }: Status): Record<string, string> {
  return {
    ...(code === 204 ? {} : { 'content-type': JSON_LINES }),
    'cache-control': 'no-store',
    ...(code === 405 ? { allow: 'GET, HEAD' } : {}),
    ...(details?.retryAfterSeconds === undefined ? {} : { 'retry-after': String(details.retryAfterSeconds) }),
  };
}

/** The body of an answer that is a Status. There is none where HTTP allows none. */
export function refusalBody(status: Status, method: string | undefined): string | null {
  return status.code === 204 || method === 'HEAD' ? null : `${JSON.stringify(status)}\n`;
}

/** The headers of the answer to a browser that asks before it sends headers of a page's own, such as `authorization`. */
export function preflightHeaders(asked: string | null | undefined): Record<string, string> {
  return {
    'access-control-allow-methods': 'GET, HEAD',
    ...(asked ? { 'access-control-allow-headers': asked } : {}),
    'access-control-max-age': '600',
  };
}

/** Refuses what is no reading. */
export function methodRefusal(method: string | undefined): Status | undefined {
  if (method === 'GET' || method === 'HEAD') return undefined;
  return toStatus({ code: 405, reason: 'MethodNotAllowed', message: 'a watch is read with GET' });
}

/**
 * Where a client begins, or the Status that refuses it. An EventSource cannot be told to stop asking: for it, a version that is
 * too old is an event, and the stream goes on.
 */
export function startOf(reception: Reception, { asked, address, options }: Admitted, sse: boolean): Start | Status {
  const start = reception.start(asked, { address, filter: options.filter });
  if (!('code' in start) || !sse || start.code !== 410) return start;
  return { ...FROM_NOW, missed: [new Envelope({ type: 'ERROR', object: start }, { sequence: 0, id: reception.version })] };
}

/** Whether an Accept header names a media type; one with `q=0` is not accepted. */
export function accepts(header: string | null | undefined, type: string): boolean {
  return (header ?? '').split(',').some((entry) => {
    const [name, ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase());
    return name === type && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}
