// A proxy with faults between a client and a kube-apiserver: it ends TLS, so that clients may use the plain `fetch` of their host,
// and does to each request what a script says.
//
//   client --- http ---> proxy --- https, token ---> kube-apiserver
//                          |
//             script(request) -> a fault, or nothing
//
// Without a fault it passes bytes on as they come, compressed as they are. If the server goes away, so does the client's connection.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Agent, request } from 'node:https';
import type { AddressInfo } from 'node:net';

/** What happens to one request. `after` counts bytes of the body as it is sent. */
export type Fault =
  /** The connection breaks. With `after` -1, before the head of the answer. */
  | { readonly kind: 'cut'; readonly after: number }
  /** The body ends as if it were complete, so that its JSON is not. */
  | { readonly kind: 'truncate'; readonly after: number }
  /** Nothing comes any more, and nobody says so. */
  | { readonly kind: 'halfOpen'; readonly after: number }
  /** The answer comes late. */
  | { readonly kind: 'delay'; readonly ms: number }
  /** The server refuses, with a Status. */
  | { readonly kind: 'refuse'; readonly code: 429 | 500 | 504; readonly retryAfterSeconds?: number };

/** A request, as a script sees it. */
export interface ProxiedRequest {
  /** Counted from 0. */
  readonly number: number;
  readonly method: string;
  readonly url: URL;
  readonly isWatch: boolean;
}

/** Decides what happens to a request. */
export type Script = (request: ProxiedRequest) => Fault | undefined;

/** What a proxy needs to know of a server. */
export interface Upstream {
  readonly url: string;
  readonly token: string;
  readonly ca: string;
}

const REASONS = { 429: 'TooManyRequests', 500: 'InternalError', 504: 'Timeout' } as const;
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'transfer-encoding', 'content-length', 'host']);

export class FaultProxy {
  /** How many requests came. */
  requests: number = 0;
  /** How often each fault has happened; refusals by their code. */
  readonly counts: Map<string, number> = new Map();
  /** Every request, in order. */
  readonly seen: ProxiedRequest[] = [];
  readonly #upstream: Upstream;
  readonly #server: Server;
  readonly #agent: Agent;
  readonly #timers: Set<NodeJS.Timeout> = new Set();
  /** Answers that are on their way: the client's side, and the server's. */
  readonly #passing: Map<ServerResponse, IncomingMessage> = new Map();
  #open: number = 0;
  #script: Script | undefined;

  constructor(upstream: Upstream, script: Script | undefined) {
    this.#upstream = upstream;
    this.#script = script;
    this.#agent = new Agent({ ca: upstream.ca, keepAlive: true });
    this.#server = createServer((incoming, response) => this.#handle(incoming, response));
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
  }

  /** Such as `http://127.0.0.1:40123`. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Number of faults that have happened. */
  get faults(): number {
    return Array.from(this.counts.values()).reduce((sum, count) => sum + count, 0);
  }

  /** Number of requests that are not answered yet, or not to their end: an open watch is one. */
  get open(): number {
    return this.#open;
  }

  /** From now on, no faults. What is half-open stays so: nobody repairs a link that is gone. */
  calm(): void {
    this.#script = undefined;
  }

  /** From now on, these faults. */
  play(script: Script): void {
    this.#script = script;
  }

  /** Breaks every connection now. */
  cutAll(): void {
    this.#server.closeAllConnections();
  }

  /** Ends every answer now as if it were complete: a server whose watches have had their time does so. */
  endAll(): void {
    for (const response of this.#passing.keys()) response.end();
  }

  /** From now on nothing comes on any open connection, and nobody says so. */
  stallAll(): void {
    for (const answer of this.#passing.values()) answer.pause();
  }

  async close(): Promise<void> {
    for (const each of this.#timers) clearTimeout(each);
    this.#agent.destroy();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #handle(incoming: IncomingMessage, response: ServerResponse): void {
    const url = new URL(incoming.url ?? '/', this.#upstream.url);
    const { method = 'GET' } = incoming;
    const isWatch = ['true', '1'].includes(url.searchParams.get('watch') ?? '');
    const seen = { number: this.requests++, method, url, isWatch };
    this.seen.push(seen);
    const fault = this.#script?.(seen);
    this.#open++;
    response.on('close', () => this.#open--);
    response.on('error', () => {});
    if (fault?.kind === 'refuse') this.#refuse(response, fault);
    else if (fault?.kind === 'delay') this.#later(fault.ms, () => this.#forward(incoming, response, { url, fault: undefined }));
    else this.#forward(incoming, response, { url, fault });
  }

  #later(ms: number, work: () => void): void {
    this.#count('delay');
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      work();
    }, ms);
    this.#timers.add(timer);
  }

  #count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  #refuse(response: ServerResponse, { code, retryAfterSeconds }: Fault & { kind: 'refuse' }): void {
    this.#count(`${code}`);
    const details = retryAfterSeconds === undefined ? {} : { details: { retryAfterSeconds } };
    const status = { status: 'Failure', message: 'a fault of the proxy', reason: REASONS[code], code, ...details };
    const retryAfter = retryAfterSeconds === undefined ? {} : { 'retry-after': `${retryAfterSeconds}` };
    response.writeHead(code, { 'content-type': 'application/json', ...retryAfter });
    response.end(JSON.stringify({ kind: 'Status', apiVersion: 'v1', metadata: {}, ...status }));
  }

  #forward(incoming: IncomingMessage, response: ServerResponse, { url, fault }: { url: URL; fault: Fault | undefined }): void {
    const headers = withoutHops(incoming.headers);
    // As long as it was: Node sends the body of a DELETE without a length, which the server takes for its next request.
    const length = incoming.headers['content-length'];
    if (length !== undefined) headers['content-length'] = length;
    headers.authorization = `Bearer ${this.#upstream.token}`;
    // Half of a gzip member is no truncated JSON.
    if (fault?.kind === 'truncate') headers['accept-encoding'] = 'identity';
    const outgoing = request(url, { method: incoming.method, headers, agent: this.#agent });
    outgoing.on('error', () => response.destroy());
    outgoing.on('response', (answer) => this.#answer(answer, response, fault));
    response.on('close', () => outgoing.destroy());
    incoming.pipe(outgoing);
  }

  #answer(answer: IncomingMessage, response: ServerResponse, fault: Fault | undefined): void {
    answer.on('error', () => response.destroy());
    const limit = fault !== undefined && 'after' in fault ? fault.after : Infinity;
    if (limit < 0) {
      this.#strike(answer, response, fault as Fault);
      return;
    }
    response.writeHead(answer.statusCode ?? 502, withoutHops(answer.headers));
    response.flushHeaders();
    this.#passing.set(response, answer);
    response.on('close', () => this.#passing.delete(response));
    let passed = 0;
    let struck = false;
    answer.on('data', (chunk: Buffer) => {
      if (struck) return;
      const part = chunk.subarray(0, limit - passed);
      passed += part.length;
      struck = passed >= limit;
      const strike = (): void => this.#strike(answer, response, fault as Fault);
      if (struck) response.write(part, strike);
      else if (!response.write(part)) {
        answer.pause();
        response.once('drain', () => answer.resume());
      }
    });
    answer.on('end', () => !struck && response.end());
  }

  #strike(answer: IncomingMessage, response: ServerResponse, { kind }: Fault): void {
    this.#count(kind);
    if (kind === 'cut') response.destroy();
    else if (kind === 'truncate') response.end();
    else answer.pause();
  }
}

/** Headers that speak of one connection say nothing on the next one. */
function withoutHops(headers: IncomingMessage['headers']): Record<string, string | string[]> {
  const kept = Object.entries(headers).filter(([name, value]) => value !== undefined && !HOP_BY_HOP.has(name));
  return Object.fromEntries(kept) as Record<string, string | string[]>;
}

/** Starts a proxy. Without a script it only passes on. */
export async function startProxy(upstream: Upstream, script?: Script): Promise<FaultProxy> {
  const proxy = new FaultProxy(upstream, script);
  await proxy.listen();
  return proxy;
}

/** How often each fault comes, relative to the others. */
export type Shares = Partial<Record<'none' | Fault['kind'], number>>;

/** A script that draws faults from a seed: the same requests in the same order meet the same faults. */
export function seededFaults(seed: number, shares: Shares): Script {
  const random = randomOf(seed);
  const entries = Object.entries(shares) as [keyof Shares, number][];
  const sum = entries.reduce((all, [, share]) => all + share, 0);
  const whole = (bound: number): number => Math.floor(random() * bound);
  return ({ isWatch }) => {
    let at = random() * sum;
    const kind = entries.find(([, share]) => {
      at -= share;
      return at < 0;
    })?.[0];
    const after = whole(isWatch ? 6_000 : 3_000) - 1;
    if (kind === undefined || kind === 'none') return undefined;
    if (kind === 'delay') return { kind, ms: whole(200) };
    if (kind !== 'refuse') return { kind, after: kind === 'truncate' ? Math.max(after, 0) : after };
    const code = ([429, 500, 504] as const)[whole(3)] as 429 | 500 | 504;
    return code === 429 && random() < 0.5 ? { kind, code, retryAfterSeconds: 1 } : { kind, code };
  };
}

/** Mulberry32: numbers from 0 to 1, the same for the same seed. */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
