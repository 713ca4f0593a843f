/**
 * A connection of node:http that carries a watch carries nothing else until that response is over.
 *
 * Node handles all requests of a pipeline at once, and holds each response until those before it are sent. Behind a watch that is
 * never: 64 KB of small requests hold 6 MB. Node then also stops to read that connection, and does not notice when it closes.
 * HTTP allows a server to close a connection with unanswered requests; their client repeats them on another one.
 */
/** The used part of a response. HTTP/2, Bun and Deno have no parser, and Bun does not accept pipelined requests. */
export interface Claimable {
  readonly socket: unknown;
  on(event: 'close', listener: () => void): unknown;
  readonly req: { readonly socket: { readonly parser?: Parser | null; destroy(): unknown } };
}

/** Node's parser of a connection. It calls `onIncoming` for each request head, as its method. */
interface Parser {
  onIncoming: ((this: Parser, request: { upgrade: boolean }, keepAlive: boolean) => number) | null;
  [CLAIM]?: Claim | undefined;
}

/** Tells Node's parser that what follows this head is not HTTP, so it stops in the middle of what has been received. */
const STOP_PARSING = 2;

/** A claim is found at its parser and at its response: all claims share their two functions, as closures for each would cost more. */
const CLAIM: unique symbol = Symbol('claim');

interface Claim {
  readonly parser: Parser;
  readonly original: Parser['onIncoming'];
  readonly socket: { destroy(): unknown };
  readonly refused: () => void;
  follower: Follower | undefined;
}

/** Is notified that a response has closed, without a separate listener. */
export interface Follower {
  gone(): void;
}

/**
 * Closes the connection of this response if another request comes while the response is open: a request for any route, for a
 * WebSocket, or one that Node would answer by itself, such as one without `Host`. No event of the server reports all of these, so
 * this takes the place of the parser's own listener. Calls `refused` first.
 */
export function claimConnection(response: Claimable, refused: () => void): void {
  const { socket } = response.req;
  const { parser } = socket;
  const original = parser?.onIncoming;
  if (!parser || typeof original !== 'function') return;
  const claim: Claim = { parser, original, socket, refused, follower: undefined };
  parser[CLAIM] = (response as Claimed)[CLAIM] = claim;
  parser.onIncoming = refuse;
  response.on('close', release);
}

type Claimed = Claimable & { [CLAIM]?: Claim };

function refuse(this: Parser, request: { upgrade: boolean }): number {
  this[CLAIM]?.refused();
  request.upgrade = false;
  this[CLAIM]?.socket.destroy();
  return STOP_PARSING;
}

function release(this: Claimed): void {
  const claim = this[CLAIM];
  if (claim === undefined) return;
  const { parser, original, follower } = claim;
  // By then the parser may serve another connection.
  if (parser[CLAIM] === claim) {
    parser[CLAIM] = undefined;
    if (parser.onIncoming === refuse) parser.onIncoming = original;
  }
  follower?.gone();
}

/** Notifies a follower when the response of a claimed connection has closed. Returns whether it is claimed. */
export function followClaim(response: object, follower: Follower): boolean {
  const claim = (response as Claimed)[CLAIM];
  if (claim !== undefined) claim.follower = follower;
  return claim !== undefined;
}

/** Whether a response waits for earlier ones of its connection. Node gives it the socket only when its turn has come. */
export function isPipelined(response: Pick<Claimable, 'socket'>): boolean {
  return response.socket === null;
}
