import { BEARER_SUBPROTOCOL } from '../protocol.ts';

/** What a WebSocket client has asked for in `Sec-WebSocket-Protocol`. */
export interface Subprotocols {
  /** What the server may accept: all but the token, which must not get into a response. */
  readonly protocols: readonly string[];
  /** The bearer token. */
  readonly token: string | undefined;
  /** Why the client is to be refused with 400. Never contains the token. */
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

/** Returns undefined for what is no token. */
function decoded(text: string): string | undefined {
  if (!/^[A-Za-z0-9_-]+$/.test(text)) return undefined;
  try {
    const token = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
    // It becomes a header.
    return /[^\x21-\x7e]/.test(token) ? undefined : token;
  } catch {
    return undefined;
  }
}

/** The used part of the headers of node:http. */
interface Headers {
  authorization?: string | undefined;
  'sec-websocket-protocol'?: string | undefined;
}

/**
 * Moves a token from the subprotocols to where `authenticate` looks for it, unless there is one. Returns why the client is to be
 * refused, if it is; even then, what is left of the subprotocols may be echoed.
 */
export function takeToken(headers: Headers): string | undefined {
  const { 'sec-websocket-protocol': header } = headers;
  if (header === undefined) return undefined;
  const { protocols, token, fault } = readSubprotocols(header);
  if (token !== undefined) headers.authorization ??= `Bearer ${token}`;
  headers['sec-websocket-protocol'] = protocols.join(', ') || undefined;
  return fault;
}
