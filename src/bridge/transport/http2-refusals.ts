/** Refusals of one HTTP/2 session that its client has not taken yet. */
export const MAX_PENDING_REFUSALS = 100;

/** The code that tells a client that its request was not handled, and may be repeated. */
const REFUSED_STREAM = 7;

/** The used part of a response; only that of HTTP/2 has a stream. */
export interface Refusable {
  readonly stream?: { readonly session?: object | undefined; close(code: number): unknown } | undefined;
  once(event: 'close', listener: () => void): unknown;
}

const pending: WeakMap<object, number> = new WeakMap();

/**
 * Whether a response may be a refusal. An HTTP/2 client decides itself when it takes a body, and may have any number of streams
 * open, so refusals that it does not take would pile up. Beyond the limit this closes the stream instead.
 */
export function mayRefuse(response: Refusable): boolean {
  const { stream } = response;
  const session = stream?.session;
  if (stream === undefined || session === undefined) return true;
  const count = pending.get(session) ?? 0;
  if (count >= MAX_PENDING_REFUSALS) {
    stream.close(REFUSED_STREAM);
    return false;
  }
  pending.set(session, count + 1);
  response.once('close', () => pending.set(session, (pending.get(session) ?? 1) - 1));
  return true;
}
