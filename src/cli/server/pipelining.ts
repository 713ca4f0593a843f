import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { DEFAULTS } from '../../bridge/protocol.ts';
import { guardAnswer, unguard, type WholeAnswer } from '../../bridge/transport/http-connection.ts';
import { type SharedTimer, toSharedTimer } from '../../bridge/transport/stall.ts';
import { type Clock, systemClock, upkeepClock } from '../../watch/clock.ts';

/** Requests of one connection that may wait for the answers to earlier ones. */
export const MAX_PIPELINED = 8;

/**
 * Bounds what a connection may ask before it has the answers to its earlier requests. Each keeps an answer in memory, and a few
 * kilobytes hold thousands of requests. No browser and hardly any program pipelines. A connection that asks for too much is closed,
 * and so is one whose client does not take its answers.
 */
export class Pipelining {
  private readonly waiting: WeakMap<Duplex, number> = new WeakMap();
  private readonly streaming: WeakSet<Duplex> = new WeakSet();
  private readonly stalls: SharedTimer | undefined;

  constructor(clock: Clock = systemClock) {
    this.stalls = toSharedTimer(DEFAULTS.stallTimeoutMs, upkeepClock(clock));
  }

  /** Takes a request. Returns whether to answer it. */
  takes(response: ServerResponse): boolean {
    const { socket } = response.req;
    if (socket.destroyed) return false;
    guardAnswer(response as WholeAnswer, this.stalls);
    // A response gets its socket when it is its turn.
    if (response.socket !== null) return true;
    const count = (this.waiting.get(socket) ?? 0) + 1;
    // After a stream there is no turn.
    if (count > MAX_PIPELINED || this.streaming.has(socket)) {
      socket.destroy();
      return false;
    }
    this.waiting.set(socket, count);
    response.once('close', () => this.waiting.set(socket, (this.waiting.get(socket) ?? 1) - 1));
    return true;
  }

  /** This response is a stream, with a guard of its own: its connection may ask for nothing until it has ended. */
  stream(response: ServerResponse): void {
    const { socket } = response.req;
    unguard(response as WholeAnswer);
    this.streaming.add(socket);
    response.once('close', () => this.streaming.delete(socket));
  }
}
