/** Answers given through node:http, and whether their clients take them. */

import { getOrMake, WatchError } from '../../watch/errors.ts';
import { nextTurn } from '../../watch/turn.ts';
import { IN_BUN, type Outbound, type SharedTimer, StallGuard, type TimerMember } from './stall.ts';

/** The used part of a response. */
export interface HttpAnswer {
  readonly writableEnded: boolean;
  once(event: 'close', listener: () => void): unknown;
}

/**
 * A connection, with Node's own note of the response whose turn it is. Bun and Deno have none, and accept no further request
 * before that one's end.
 */
export interface Answering {
  readonly _httpMessage?: HttpAnswer | null;
}

/** A response of node:http, or one that is compatible with it; that of HTTP/2 has a stream. */
export interface WholeHttpAnswer extends Outbound, HttpAnswer {
  readonly headersSent: boolean;
  readonly writableFinished: boolean;
  readonly socket: unknown;
  readonly req: { readonly socket: unknown };
  readonly stream?: { readonly destroyed: boolean; destroy(): unknown } | undefined;
}

/** The part of a socket that is used. */
interface GuardedSocket extends Outbound, Answering {
  readonly destroyed: boolean;
  destroy(): unknown;
  once(event: 'close', listener: () => void): unknown;
}

/** For a response that somebody else, such as middleware, has begun: the error. Ends it if nobody has, or its client would wait forever. */
export function alreadyBegun(response: { readonly writableEnded: boolean; destroy(): unknown }): WatchError {
  if (!response.writableEnded) response.destroy();
  return new WatchError('INVALID_ARGUMENT', 'response: expected one whose head has not been sent');
}

const guards: WeakMap<object, AnswerGuard> = new WeakMap();

/**
 * Cuts a client that takes none of an answer for one interval of the timer. Our own streams have a guard of their own, which
 * reports it. Does nothing in Bun, which does not show how much is waiting.
 */
export function guardAnswer(answer: WholeHttpAnswer, timer: SharedTimer | undefined): void {
  const { stream } = answer;
  if (timer === undefined || IN_BUN) return;
  if (stream !== undefined) {
    if (stream.destroyed) return;
    const guard = new StallGuard({ sentBytes: 0, cut: () => stream.destroy() }, answer, timer);
    answer.once('close', () => guard.leave());
    return;
  }
  const socket = answer.req.socket as GuardedSocket;
  if (socket.destroyed) return;
  getOrMake(guards, socket, () => new AnswerGuard(socket, timer)).answers.add(answer);
}

/**
 * The same for an answer that has been given: most have gone into the system's buffer by then, and need no guard. Calls `sent`
 * once, when that is so or the connection has closed; but not for an answer still waiting for its turn at that time.
 */
export function guardEnded(answer: WholeHttpAnswer, timer: SharedTimer | undefined, sent: () => void = () => {}): void {
  if (isSent(answer)) {
    sent();
    return;
  }
  let isOver = false;
  const over = (): void => {
    if (!isOver) sent();
    isOver = true;
  };
  answer.once('close', over);
  // Node holds some back until all callbacks of this turn have run.
  nextTurn(() => {
    if (isSent(answer)) over();
    else if (!isOver) guardAnswer(answer, timer);
  });
}

function isSent(answer: WholeHttpAnswer): boolean {
  const { writableLength } = (answer.stream === undefined ? answer.req.socket : answer) as Outbound;
  if (IN_BUN || answer.writableFinished) return true;
  // An answer that waits for the end of a body that nobody reads has not begun.
  return answer.headersSent && answer.socket !== null && writableLength === 0;
}

/** A stream that reports by itself when its client does not take it. */
export function unguard(answer: WholeHttpAnswer): void {
  guards.get(answer.req.socket as object)?.answers.delete(answer);
}

/** Guards the answers of one connection that have not been sent. It ignores other answers, which may take their time. */
class AnswerGuard implements TimerMember {
  readonly answers: WeakSet<object> = new WeakSet();
  private readonly socket: GuardedSocket;
  private readonly stall: StallGuard;

  constructor(socket: GuardedSocket, timer: SharedTimer) {
    this.socket = socket;
    this.stall = new StallGuard({ sentBytes: 0, cut: () => socket.destroy() }, socket);
    timer.add(this);
    socket.once('close', () => timer.remove(this));
  }

  tick(): void {
    const { _httpMessage: answer } = this.socket;
    if (answer && this.answers.has(answer)) this.stall.tick();
  }
}

/**
 * A connection of node:http that carries a watch carries nothing else until that response is over.
 *
 * Node handles all requests of a pipeline at once, and holds each response until those before it are sent. Behind a watch they
 * never are: 64 KB of small requests hold 6 MB. Node then also stops reading that connection, and does not notice when it
 * closes. HTTP allows a server to close a connection with unanswered requests; their client repeats them on another one.
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
  follower: CloseListener | undefined;
}

/** Is notified that a response has closed, without a separate listener. */
interface CloseListener {
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
  // The parser may already serve another connection.
  if (parser[CLAIM] === claim) {
    parser[CLAIM] = undefined;
    if (parser.onIncoming === refuse) parser.onIncoming = original;
  }
  follower?.gone();
}

/** Notifies a follower when the response of a claimed connection has closed. Returns whether it is claimed. */
export function whenClaimEnds(response: object, follower: CloseListener): boolean {
  const claim = (response as Claimed)[CLAIM];
  if (claim !== undefined) claim.follower = follower;
  return claim !== undefined;
}

/** Whether a response waits for earlier ones of its connection. Node gives it the socket only when its turn has come. */
export function isPipelined(response: Pick<Claimable, 'socket'>): boolean {
  return response.socket === null;
}

/**
 * Counts a response of a connection until it closes: each keeps an answer in memory, and a few kilobytes can contain thousands of
 * requests. Returns false, and does not count it, if there are already so many.
 */
export function countsOpen<K extends object>(
  open: WeakMap<K, number>,
  { of, response, most }: { readonly of: K; readonly response: Pick<Refusable, 'once'>; readonly most: number },
): boolean {
  const before = open.get(of) ?? 0;
  if (before >= most) return false;
  open.set(of, before + 1);
  response.once('close', () => open.set(of, (open.get(of) ?? 1) - 1));
  return true;
}

/** Refusals of one HTTP/2 session that its client has not taken yet. */
const MAX_PENDING_REFUSALS = 100;

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
  const may = countsOpen(pending, { of: session, response, most: MAX_PENDING_REFUSALS });
  if (!may) stream.close(REFUSED_STREAM);
  return may;
}
