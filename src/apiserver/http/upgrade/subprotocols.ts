/**
 * The subprotocols that a WebSocket client requests. Pages cannot set a WebSocket's headers, so a token may come as one of them;
 * it is never echoed. Upstream: `websocketauth`, and the handshake of a watch, which allows one subprotocol and echoes it.
 */
import { badRequest } from '../../api-status.ts';

const BEARER = 'base64url.bearer.authorization.k8s.io.';

/** The client's request: the subprotocol to echo, and its token. */
interface Subprotocols {
  readonly echoed: string | undefined;
  readonly token: string | undefined;
}

/** Reads the header `Sec-WebSocket-Protocol`. Throws 400 for one that breaks the rules. */
export function readSubprotocols(header: string | undefined): Subprotocols {
  const all = (header ?? '').split(',').map((each) => each.trim());
  const asked = all.filter((each) => each !== '');
  const bearers = asked.filter((each) => each.startsWith(BEARER));
  const others = asked.filter((each) => !each.startsWith(BEARER));
  if (bearers.length > 1) throw badRequest('multiple base64.bearer.authorization tokens specified');
  if (bearers.length === 1 && others.length === 0) throw badRequest('missing additional subprotocol');
  if (others.length > 1) throw badRequest('a watch has at most one subprotocol');
  const [bearer] = bearers;
  return { echoed: others[0], token: bearer === undefined ? undefined : decoded(bearer.slice(BEARER.length)) };
}

function decoded(text: string): string {
  if (!/^[A-Za-z0-9_-]+$/.test(text)) throw badRequest('invalid base64.bearer.authorization token encoding');
  try {
    const bytes = Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (each) => each.charCodeAt(0));
    const token = new TextDecoder().decode(bytes);
    // It becomes a header. Invalid UTF-8 does not match either.
    if (/[^\x21-\x7e]/.test(token)) throw new Error('not a token');
    return token;
  } catch {
    throw badRequest('invalid base64.bearer.authorization token encoding');
  }
}
