/** The server on hosts that pass a `Request` and expect a `Response`: Deno, Bun, Hono. */

import { endWith, FetchSink } from '../../bridge/transport/fetch-sink.ts';
import {
  type Claimable,
  claimConnection,
  guardAnswer,
  isPipelined,
  type WholeHttpAnswer,
} from '../../bridge/transport/http-connection.ts';
import { hold, joined } from '../../decode/framing.ts';
import { checkRequest } from '../../watch/errors.ts';
import { badRequest } from '../api-status.ts';
import { abandon, type HostDeps, mayWatch, tooLarge } from './node-host.ts';
import { isWebSocket, Presence, type StreamAnswer, type WireRequest } from './wire.ts';

/**
 * The used part of a handler's second argument: the server in Bun, information about the connection in Deno, node:http's objects
 * in Hono.
 */
interface Host {
  readonly requestIP?: (request: Request) => { readonly address: string } | null;
  readonly timeout?: (request: Request, seconds: number) => void;
  readonly remoteAddr?: { readonly hostname?: string };
  readonly incoming?: { readonly socket?: { readonly remoteAddress?: string; destroy?(): unknown } };
  readonly outgoing?: Claimable & WholeHttpAnswer;
}

/** The status of an answer that nobody reads, because the client has left. */
const GONE = 499;

export async function serveFetch(deps: HostDeps, request: Request, via: unknown): Promise<Response> {
  checkRequest(request);
  const host = (via ?? {}) as Host;
  if (!claims(deps, request, host)) return new Response(null, { status: GONE });
  const client = new Presence();
  const onAbort = (): void => client.leave();
  if (request.signal.aborted) onAbort();
  request.signal.addEventListener('abort', onAbort, { once: true });
  const answer = await deps.answer(toWire(request, host, client));
  request.signal.removeEventListener('abort', onAbort);
  if (request.signal.aborted) {
    abandon(answer);
    return new Response(null, { status: GONE });
  }
  const { code } = answer;
  // Hono's server for Node writes into the object that it is given, and answers share theirs.
  const headers = { ...answer.headers };
  if (answer.source === undefined) {
    // The host sends it.
    answer.slot?.release();
    const body = request.method === 'HEAD' || code === 204 ? null : answer.body;
    return new Response(body as BodyInit | null, { status: code, headers });
  }
  if (request.method === 'HEAD') {
    abandon(answer);
    return new Response(null, { status: code, headers });
  }
  host.timeout?.(request, 0);
  return new Response(stream(deps, request, answer), { status: code, headers });
}

/** On Node, a connection with a watch carries nothing else. Returns false if the connection was closed because it did. */
function claims({ sessions, cutEarly }: HostDeps, { url }: Request, { incoming, outgoing }: Host): boolean {
  if (typeof incoming?.socket?.destroy !== 'function' || typeof outgoing?.on !== 'function') return true;
  guardAnswer(outgoing, sessions.stalls);
  if (!mayWatch(url)) return true;
  if (isPipelined(outgoing)) {
    cutEarly();
    incoming.socket.destroy();
    return false;
  }
  claimConnection(outgoing, cutEarly);
  return true;
}

function stream({ sessions, maxBufferedBytes }: HostDeps, request: Request, answer: StreamAnswer): ReadableStream<Uint8Array> {
  const sink = new FetchSink({ sse: answer.sse, bookmarks: false, maxBufferedBytes, isWhole: !answer.isWatch });
  const session = sessions.begin(answer, sink, sink);
  endWith(request, session, sink);
  return sink.stream;
}

function toWire(request: Request, host: Host, client: Presence): WireRequest {
  const { host: own, pathname, search } = new URL(request.url);
  const address = host.requestIP?.(request)?.address ?? host.remoteAddr?.hostname ?? host.incoming?.socket?.remoteAddress;
  return {
    request,
    method: request.method,
    target: pathname + search,
    address: typeof address === 'string' ? address : '',
    origin: request.headers.get('origin') ?? undefined,
    site: request.headers.get('sec-fetch-site') ?? undefined,
    host: own,
    client,
    isUnheard: isWebSocket(request.headers.get('upgrade'), request.headers.get('connection')),
    headerNames: [...request.headers.keys()],
    header: (name) => request.headers.get(name) ?? undefined,
    values: (name) => request.headers.get(name)?.split(', ') ?? [],
    body: (maxBytes, signal) => readBody(request, maxBytes, signal),
  };
}

async function readBody(request: Request, maxBytes: number, signal: AbortSignal): Promise<Uint8Array> {
  if (Number(request.headers.get('content-length') ?? 0) > maxBytes) throw tooLarge(maxBytes);
  if (request.body === null) return new Uint8Array();
  const reader = request.body.getReader();
  const onAbort = (): void => void reader.cancel(signal.reason).catch(() => {});
  signal.addEventListener('abort', onAbort, { once: true });
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read().catch(() => {
        throw badRequest('the body of the request ended early');
      });
      signal.throwIfAborted();
      if (done) return joined(chunks);
      bytes += value.byteLength;
      if (bytes > maxBytes) throw tooLarge(maxBytes);
      hold(chunks, value);
    }
  } finally {
    signal.removeEventListener('abort', onAbort);
    reader.cancel().catch(() => {});
  }
}
