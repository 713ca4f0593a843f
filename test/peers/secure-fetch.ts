// A `fetch` that trusts one certificate and sends one token. Node's own takes neither a CA nor an agent without the package undici,
// and to trust everything (NODE_TLS_REJECT_UNAUTHORIZED) would hold for the whole process.
import { type IncomingMessage, request as plainRequest } from 'node:http';
import { Agent, request as secureRequest } from 'node:https';
import { Readable } from 'node:stream';
import { constants, createGunzip } from 'node:zlib';

/** What the tests need of a `fetch`: the common subset of the global one. */
export type SecureFetch = (url: string | URL, init?: SecureInit) => Promise<Response>;

export interface SecureInit {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  readonly signal?: AbortSignal | null;
  /** The path and query as they are sent, which a URL would tidy up. Default: those of the URL. */
  readonly path?: string;
}

/** Creates one. `close` drops its connections. It asks servers without TLS, too. */
export function createSecureFetch(ca: string, token: string): SecureFetch & { close(): void } {
  const agent = new Agent({ ca, keepAlive: true, maxSockets: 64 });
  const fetch = (url: string | URL, { method = 'GET', headers = {}, body, signal, path }: SecureInit = {}): Promise<Response> =>
    new Promise((resolve, reject) => {
      // Node says the length of a body only with some methods: that of a DELETE would be taken for the next request.
      const length = body !== undefined && { 'content-length': String(Buffer.byteLength(body)) };
      const all = { authorization: `Bearer ${token}`, 'accept-encoding': 'gzip', ...length, ...headers };
      const options = { method, headers: all, signal: signal ?? undefined, ...(path !== undefined && { path }) };
      const isSecure = new URL(url).protocol === 'https:';
      const message = isSecure ? secureRequest(url, { ...options, agent }) : plainRequest(url, options);
      message.on('error', (error) => reject(signal?.aborted ? signal.reason : error));
      message.on('response', (response) => resolve(toResponse(response)));
      message.end(body);
    });
  return Object.assign(fetch, { close: () => agent.destroy() });
}

function toResponse(message: IncomingMessage): Response {
  const { statusCode: status = 500, headers } = message;
  const plain = Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]);
  if (status === 204 || status === 304) {
    message.resume();
    return new Response(null, { status, headers: plain });
  }
  return new Response(Readable.toWeb(unzipped(message)) as ReadableStream<Uint8Array>, { status, headers: plain });
}

/** A kube-apiserver sends each event of a WatchList as a gzip member of its own; a Gunzip reads on behind the first. */
function unzipped(message: IncomingMessage): Readable {
  if (message.headers['content-encoding'] !== 'gzip') return message;
  const gunzip = createGunzip({ flush: constants.Z_SYNC_FLUSH });
  message.on('error', (error) => gunzip.destroy(error));
  gunzip.on('close', () => message.destroy());
  return message.pipe(gunzip);
}
