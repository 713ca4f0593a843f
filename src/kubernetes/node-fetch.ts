/**
 * A small `fetch` over Node's own HTTP client. The global `fetch` of Node accepts neither a CA nor a client certificate, and ends
 * a response that is silent for five minutes, as that of a watch often is.
 *
 *     request ---> prepare(url): headers, TLS, agent ---> node:http(s) ---> [gunzip] ---> Response with a streaming body
 *
 * - The body is read from the network only as fast as its reader reads, so that a slow reader holds the server back.
 * - An abort rejects what is pending, or breaks the body. A cancelled body closes its connection.
 * - Compressed answers may consist of many gzip members: a kube-apiserver ends one at every flush, and each event arrives at once.
 * - Every connection has TCP keep-alive probes: one whose other end has silently vanished ends, even if nothing is written.
 * - A server may close an idle connection just when a request is sent on it. A GET is then sent once more, on a new connection.
 * - Redirects are not followed.
 */

import { type Agent, type ClientRequest, type IncomingMessage, request as overHttp } from 'node:http';
import { request as overHttps, type RequestOptions } from 'node:https';
import { BlockList, isIP } from 'node:net';
import { pipeline, type Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { callable, invalid, WatchError } from '../watch/errors.ts';

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
export type PrepareRequest = (url: URL) => RequestOptions | Promise<RequestOptions>;

/** A connection that is silent for this long is probed, and counts as dead about ten seconds later. */
const PROBE_AFTER_MS = 30_000;

/**
 * Creates a `fetch` for Node programs that list and watch a lot, or need a CA or a client certificate: `createListWatcher(url, {
 * fetch: createNodeFetch() })`. Without `prepare`, each request has its own connection.
 *
 * @throws {WatchError} INVALID_ARGUMENT for anything but a function, such as the options themselves.
 */
export function createNodeFetch(prepare: PrepareRequest = () => ({ agent: false })): NodeFetch {
  callable('prepare', prepare);
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
  // As bytes: with a string, Node would also write the headers as UTF-8, but they are bytes already.
  const bytes = body === undefined ? undefined : Buffer.from(body);
  // Node sends no length with the body of a DELETE, unless it is set.
  const length = bytes && { 'content-length': bytes.length };
  const open = url.protocol === 'https:' ? overHttps : overHttp;
  const request = open(url, { ...prepared, method, headers: { ...all, ...length }, ...(signal && { signal }) });
  request.on('socket', (socket) => socket.setKeepAlive(true, PROBE_AFTER_MS));
  // A proxy's agent reports the proxy's answer. Otherwise its refusal would count as the server's.
  request.on('proxyConnect', ({ statusCode }: { readonly statusCode: number }) => {
    if (statusCode !== 200) request.destroy(new Error(`the proxy answered ${statusCode} to CONNECT ${url.host}`));
  });
  const incoming = new Promise<IncomingMessage>((resolve, reject) => {
    request.on('response', resolve);
    request.on('error', reject);
    // Without a listener, Node silently closes the connection.
    request.on('upgrade', ({ statusCode }, socket) => {
      socket.destroy();
      reject(new Error(`the server answered ${statusCode}, but no other protocol was requested`));
    });
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

/**
 * The proxy between us and a server. A kubeconfig names it, or the environment does: HTTPS_PROXY and NO_PROXY, with the same
 * meaning as for kubectl. Upstream: Go's `golang.org/x/net/http/httpproxy`.
 */

type Environment = Readonly<Record<string, string | undefined>>;

/** Returns the proxy to a server; undefined if there is none. Throws INVALID_ARGUMENT for one that is not a URL. */
export function proxyOf(server: URL, proxyUrl?: string, env: Environment = process.env): URL | undefined {
  if (proxyUrl) return toProxy('proxy-url', proxyUrl);
  if (server.protocol !== 'https:') return undefined;
  const name = ['HTTPS_PROXY', 'https_proxy'].find((each) => env[each]);
  if (name === undefined || isExempt(server, env.NO_PROXY || env.no_proxy || '')) return undefined;
  return toProxy(name, env[name] as string);
}

function toProxy(name: string, text: string): URL {
  const whole = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  const url = URL.canParse(whole) ? new URL(whole) : undefined;
  if (url && /^(https?|socks5h?):$/.test(url.protocol)) return url;
  throw invalid(name, text.replace(/\/\/.*@/, '//'), 'an http, https or socks5 URL');
}

/** Whether a server is connected to directly, as those on this machine always are. */
function isExempt(server: URL, noProxy: string): boolean {
  const host = server.hostname.replace(/^\[|\]$/g, '').toLowerCase();
  const port = server.port || '443';
  if (host === 'localhost' || isInside(host, '127.0.0.0/8') || isInside(host, '::1/128')) return true;
  return noProxy.split(',').some((each) => matches(each.trim().toLowerCase(), host, port));
}

function matches(entry: string, host: string, port: string): boolean {
  if (entry === '' || entry === '*') return entry === '*';
  if (entry.includes('/')) return isInside(host, entry);
  const [, bracketed, plain = '', wanted] = /^(?:\[(.*)\]|([^:]*))(?::(\d*))?$/.exec(entry) ?? [undefined, undefined, entry];
  const name = (bracketed ?? plain).replace(/^\*\./, '.');
  if (name === '' || (wanted && wanted !== port)) return false;
  if (isIP(name)) return isIP(host) !== 0 && isInside(host, `${name}/${isIP(name) === 4 ? 32 : 128}`);
  return name.startsWith('.') ? host.endsWith(name) : host === name || host.endsWith(`.${name}`);
}

/** Whether an address is in a network, such as `10.0.0.0/8`. */
function isInside(host: string, network: string): boolean {
  const [address = '', bits = ''] = network.split('/');
  const [family, of] = [isIP(address), isIP(host)];
  if (!family || !of || !/^\d+$/.test(bits) || Number(bits) > (family === 4 ? 32 : 128)) return false;
  const block = new BlockList();
  block.addSubnet(address, Number(bits), family === 4 ? 'ipv4' : 'ipv6');
  return block.check(host, of === 4 ? 'ipv4' : 'ipv6');
}

/** Creates an agent for one request through a proxy. An abort ends a connection that the proxy has not answered. */
export async function createProxyAgent(proxy: URL, signal: AbortSignal | undefined): Promise<Agent> {
  const what = `a server behind the proxy ${proxy.host}`;
  if (/^socks/.test(proxy.protocol)) {
    const load = (): Promise<typeof import('socks-proxy-agent')> => import('socks-proxy-agent');
    const { SocksProxyAgent } = await optional('socks-proxy-agent', { load, what });
    // As in Go, the proxy resolves names.
    return new SocksProxyAgent(proxy.href.replace(/^socks5:/, 'socks5h:'));
  }
  const load = (): Promise<typeof import('https-proxy-agent')> => import('https-proxy-agent');
  const { HttpsProxyAgent } = await optional('https-proxy-agent', { load, what });
  return new HttpsProxyAgent(proxy, { ...(signal && { signal }) } as object);
}

// Packages that only some programs need, so each is loaded when it is needed, and its absence says how to get it.

/** Loads an optional package. Rejects with INVALID_ARGUMENT if it is not installed. */
export async function optional<T>(name: string, { load, what }: { load: () => Promise<T>; what: string }): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    // The second code is that of CommonJS, for which this is also built.
    if (!['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND'].includes((cause as NodeJS.ErrnoException).code ?? '')) throw cause;
    throw new WatchError('INVALID_ARGUMENT', `${what} needs the package ${name}: npm install ${name}`, { cause });
  }
}
