import type { Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { DEFAULTS } from '../../bridge/protocol.ts';
import { countsOpen, guardAnswer, unguard, type WholeHttpAnswer } from '../../bridge/transport/http-connection.ts';
import { type SharedTimer, toSharedTimer } from '../../bridge/transport/stall.ts';
import { answerStatus } from '../../bridge/transport/upgrades.ts';
import { type Clock, systemClock, upkeepClock } from '../../watch/clock.ts';
import { type Status, toStatus } from '../../watch/event.ts';

/** How many requests of one connection may wait for the answers to earlier ones. */
const MAX_PIPELINED = 8;

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
    guardAnswer(response as WholeHttpAnswer, this.stalls);
    // A response gets its socket when its turn comes.
    if (response.socket !== null) return true;
    // After a stream, its turn never comes.
    const may = !this.streaming.has(socket) && countsOpen(this.waiting, { of: socket, response, most: MAX_PIPELINED });
    if (!may) socket.destroy();
    return may;
  }

  /** This response is a stream, with a guard of its own: its connection may ask for nothing until it has ended. */
  stream(response: ServerResponse): void {
    const { socket } = response.req;
    unguard(response as WholeHttpAnswer);
    this.streaming.add(socket);
    response.once('close', () => this.streaming.delete(socket));
  }
}

const BAD_REQUEST: Status = toStatus({ code: 400, reason: 'BadRequest', message: 'this is not an HTTP/1.1 request' });
const REQUESTS: Readonly<Record<string, Status>> = {
  HPE_HEADER_OVERFLOW: toStatus({
    code: 431,
    reason: 'RequestHeaderFieldsTooLarge',
    message: 'the URL and the headers of the request are too long',
  }),
  HPE_CHUNK_EXTENSIONS_OVERFLOW: toStatus({
    code: 413,
    reason: 'RequestEntityTooLarge',
    message: 'the extensions of the chunks are too long',
  }),
  ERR_HTTP_REQUEST_TIMEOUT: toStatus({ code: 408, reason: 'RequestTimeout', message: 'the request did not arrive in time' }),
};

/**
 * Answers with a Status what Node cannot read as a request, or what never arrives completely, and closes the connection. No
 * other code sees such requests. If the answer to another request may be on its way, there is no answer: it would be mistaken
 * for that one, or for a part of it.
 */
export function refuseBadRequests(server: Server): void {
  const open: WeakMap<Duplex, Set<ServerResponse>> = new WeakMap();
  server.on('request', ({ socket }, response) => {
    const responses = open.get(socket) ?? new Set();
    open.set(socket, responses.add(response));
    response.once('close', () => responses.delete(response));
  });
  server.on('clientError', ({ code = '' }: NodeJS.ErrnoException, socket) => {
    // The request that is being read has no answer yet.
    const isFree = [...(open.get(socket) ?? [])].every(({ headersSent, req }) => !headersSent && !req.complete);
    const status = code.startsWith('HPE_') || Object.hasOwn(REQUESTS, code) ? (REQUESTS[code] ?? BAD_REQUEST) : undefined;
    if (status && isFree && socket.writable) answerStatus(socket, status);
    else socket.destroy();
  });
}
