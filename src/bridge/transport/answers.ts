/** Answers of node:http that have been given, and whether their clients take them. */
import { nextTurn } from '../../watch/turn.ts';
import { IN_BUN } from './bun.ts';
import type { SharedTimer, TimerMember } from './shared-timer.ts';
import { type Outbound, StallGuard } from './stall.ts';

/** The used part of a response. */
export interface Answer {
  readonly writableEnded: boolean;
  once(event: 'close', listener: () => void): unknown;
}

/** A connection, with Node's own note of the response whose turn it is. Bun and Deno have none, and take no request before that. */
export interface Answering {
  readonly _httpMessage?: Answer | null;
}

/** A response of node:http, or one that is compatible with it; that of HTTP/2 has a stream. */
export interface WholeAnswer extends Outbound, Answer {
  readonly headersSent: boolean;
  readonly writableFinished: boolean;
  readonly socket: unknown;
  readonly req: { readonly socket: unknown };
  readonly stream?: { readonly destroyed: boolean; destroy(): unknown } | undefined;
}

/** The part of a socket that is used. */
interface Guarded extends Outbound, Answering {
  readonly destroyed: boolean;
  destroy(): unknown;
  once(event: 'close', listener: () => void): unknown;
}

const guards: WeakMap<object, AnswerGuard> = new WeakMap();

/**
 * Cuts a client that takes nothing of an answer for one interval of the timer. Streams of ours have a guard of their own, which
 * reports it. Does nothing in Bun, which does not show what waits.
 */
export function guardAnswer(answer: WholeAnswer, timer: SharedTimer | undefined): void {
  const { stream } = answer;
  if (timer === undefined || IN_BUN) return;
  if (stream !== undefined) {
    if (stream.destroyed) return;
    const guard = new StallGuard({ sentBytes: 0, cut: () => stream.destroy() }, answer, timer);
    answer.once('close', () => guard.leave());
    return;
  }
  const socket = answer.req.socket as Guarded;
  if (socket.destroyed) return;
  const guard = guards.get(socket) ?? new AnswerGuard(socket, timer);
  guards.set(socket, guard);
  guard.answers.add(answer);
}

/**
 * The same for an answer that has been given: most have gone into the system's buffer by then, and need no guard. Calls `sent`
 * once, when that is so or the connection has closed; but not for an answer that still waits for its turn when that happens.
 */
export function guardEnded(answer: WholeAnswer, timer: SharedTimer | undefined, sent: () => void = () => {}): void {
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
  // Node holds some back until it has called everybody of this turn.
  nextTurn(() => {
    if (isSent(answer)) over();
    else if (!isOver) guardAnswer(answer, timer);
  });
}

function isSent(answer: WholeAnswer): boolean {
  const { writableLength } = (answer.stream === undefined ? answer.req.socket : answer) as Outbound;
  if (IN_BUN || answer.writableFinished) return true;
  // One that waits for the end of a body that nobody reads has not begun.
  return answer.headersSent && answer.socket !== null && writableLength === 0;
}

/** A stream that reports by itself when its client does not take it. */
export function unguard(answer: WholeAnswer): void {
  guards.get(answer.req.socket as object)?.answers.delete(answer);
}

/** Guards the answers of one connection that have not been sent. It looks at none but ours: those of others may take their time. */
class AnswerGuard implements TimerMember {
  readonly answers: WeakSet<object> = new WeakSet();
  private readonly socket: Guarded;
  private readonly stall: StallGuard;

  constructor(socket: Guarded, timer: SharedTimer) {
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
