/**
 * A small `fetch` over Node's own HTTP client. The global `fetch` of Node accepts neither a CA nor a client certificate, and ends
 * a response that is silent for five minutes, as that of a watch often is.
 *
 *     request ---> prepare(url): headers, TLS, agent ---> node:http(s) ---> [gunzip] ---> Response with a streaming body
 *
 * - The body is read from the network only as fast as its reader reads, so that a slow reader holds the server back.
 * - An abort rejects what is pending, or breaks the body. A cancelled body closes its connection.
 * - Compressed answers may consist of many gzip members: a kube-apiserver ends one at every flush, and each event arrives at once.
 * - Every connection has TCP keep-alive probes: one whose other end has vanished silently ends, even if nobody writes.
 * - A server may close an idle connection just when a request is sent on it. A GET is then sent once more, on a new connection.
 * - Redirects are not followed.
 */
import type { ClientRequest, IncomingMessage } from 'node:http';
import { request as overHttp } from 'node:http';
import type { RequestOptions } from 'node:https';
import { request as overHttps } from 'node:https';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';

/** What a request consists of, in addition to its URL. */
export interface NodeRequest {
  readonly method?: string | undefined;
  readonly body?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The part of `fetch` that this package needs wherever it takes a `fetch`. */
export type NodeFetch = (url: URL, init?: NodeRequest) => Promise<Response>;

/** Adds what a request needs: its agent, TLS options, and headers. */
export type Prepare = (url: URL) => RequestOptions | Promise<RequestOptions>;

/** A connection that is silent for this long is probed, and counts as dead about ten seconds later. */
const PROBE_AFTER_MS = 30_000;

/**
 * Creates a `fetch` for Node programs that list and watch a lot, or need a CA or a client certificate: `createListWatcher(url, {
 * fetch: createNodeFetch() })`. Without `prepare`, each request has its own connection.
 */
export function createNodeFetch(prepare: Prepare = () => ({ agent: false })): NodeFetch {
  return async (url, init = {}) => send(url, init, await prepare(url));
}

/** Sends one request, and resolves with the head of the response. */
export async function send(url: URL, init: NodeRequest, prepared: RequestOptions): Promise<Response> {
  init.signal?.throwIfAborted();
  const incoming = await answer(url, init, prepared);
  try {
    return toResponse(incoming);
  } catch (error) {
    incoming.destroy();
    throw error;
  }
}

async function answer(url: URL, init: NodeRequest, prepared: RequestOptions): Promise<IncomingMessage> {
  const { method = 'GET' } = init;
  const first = begin(url, init, prepared);
  try {
    return await first.incoming;
  } catch (error) {
    const stale = first.request.reusedSocket && (error as NodeJS.ErrnoException).code === 'ECONNRESET';
    if (!stale || method !== 'GET' || init.signal?.aborted) throw error;
    return begin(url, init, { ...prepared, agent: false }).incoming;
  }
}

interface Begun {
  readonly request: ClientRequest;
  readonly incoming: Promise<IncomingMessage>;
}

function begin(url: URL, { method = 'GET', body, headers, signal }: NodeRequest, prepared: RequestOptions): Begun {
  const all = { 'accept-encoding': 'gzip', ...headers, ...prepared.headers };
  // As bytes: Node would write the headers beside a string as UTF-8, too, and they are bytes already.
  const bytes = body === undefined ? undefined : Buffer.from(body);
  // Node sends no length with the body of a DELETE, unless it is set.
  const length = bytes && { 'content-length': bytes.length };
  const open = url.protocol === 'https:' ? overHttps : overHttp;
  const request = open(url, { ...prepared, method, headers: { ...all, ...length }, ...(signal && { signal }) });
  request.on('socket', (socket) => socket.setKeepAlive(true, PROBE_AFTER_MS));
  // The agent of a proxy reports what that has answered. Otherwise its refusal would count as the server's.
  request.on('proxyConnect', ({ statusCode }: { readonly statusCode: number }) => {
    if (statusCode !== 200) request.destroy(new Error(`the proxy answered ${statusCode} to CONNECT ${url.host}`));
  });
  const incoming = new Promise<IncomingMessage>((resolve, reject) => {
    request.on('response', resolve);
    request.on('error', reject);
  });
  request.end(bytes);
  return { request, incoming };
}

/** Statuses with which a Response accepts no body. */
const BARE: readonly number[] = [204, 205, 304];

function toResponse(incoming: IncomingMessage): Response {
  const { statusCode: status = 0 } = incoming;
  // The reader of the body gets the error. This only keeps it from being uncaught.
  incoming.on('error', () => {});
  if (status < 200 || status > 599) throw new Error(`status ${status} is not an HTTP status`);
  const headers = Object.entries(incoming.headers).map(([name, value]): [string, string] => [name, String(value)]);
  if (BARE.includes(status)) {
    incoming.resume(); // so that the connection can be used again
    return new Response(null, { status, headers });
  }
  const coding = incoming.headers['content-encoding']?.toLowerCase();
  const packed = coding === 'gzip' || coding === 'x-gzip';
  const plain = headers.filter(([name]) => !(packed && (name === 'content-encoding' || name === 'content-length')));
  return new Response(toStream(packed ? unpacked(incoming) : incoming), { status, headers: plain });
}

function unpacked(incoming: IncomingMessage): Readable {
  const gunzip = createGunzip();
  // An error on one side ends the other; the reader of the body gets it.
  pipeline(incoming, gunzip, () => {});
  return gunzip;
}

/** Reads one piece at a time, when asked. `Readable.toWeb` of Node 20 would read thousands ahead. */
function toStream(source: Readable): ReadableStream<Uint8Array<ArrayBuffer>> {
  const pieces = source[Symbol.asyncIterator]() as AsyncIterableIterator<Uint8Array<ArrayBuffer>>;
  return new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        const { done, value } = await pieces.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: () => void source.destroy(),
    },
    { highWaterMark: 0 },
  );
}
