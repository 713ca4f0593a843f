/**
 * What each request to a cluster needs: who asks, whom to trust, and a connection. The configuration is consulted before every
 * request, because tokens and certificates change while a program runs: files are replaced, exec plugins hand out new ones.
 * Requests that start together ask once, so that a plugin does not run for each of them.
 *
 * A 401 has its own answer: the configuration drops what it keeps, and is asked again. Only what differs is worth a second try.
 *
 * Connections are kept for the next request, in a pool for each identity: after a certificate has changed, none with the old one
 * is used again. A request through a proxy has a connection of its own.
 */
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent, type RequestOptions } from 'node:https';
import { checkServerIdentity } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import { invalid } from '../watch/errors.ts';
import { type KubeConfigLike, LoadedConfig } from './loaded-config.ts';
import { createProxyAgent, proxyOf } from './proxy.ts';

/**
 * A kube-apiserver closes an idle connection after 90 s. Ours are closed earlier, so that no request is sent on a closing
 * connection.
 */
const IDLE_MS = 60_000;

/** The options of a request that say who asks, and whom to trust. */
const IDENTITY = ['ca', 'cert', 'key', 'pfx', 'passphrase', 'servername', 'rejectUnauthorized', 'auth'] as const;

export class Credentials {
  readonly #config: KubeConfigLike;
  readonly #server: URL;
  readonly #agent: HttpAgent;
  readonly #proxy: URL | undefined;
  readonly #plain: boolean;
  #pending: Promise<RequestOptions> | undefined;

  constructor(config: KubeConfigLike, server: URL) {
    const { proxyUrl } = config.getCurrentCluster() ?? {};
    this.#server = server;
    this.#plain = server.protocol === 'http:';
    if (this.#plain && proxyUrl) throw invalid('server', server.href, 'an https URL, together with a proxy');
    this.#proxy = proxyOf(server, proxyUrl);
    this.#config = config.getCurrentUser() ? config : anonymous(config);
    this.#agent = new (this.#plain ? HttpAgent : HttpsAgent)({ keepAlive: true, timeout: IDLE_MS });
  }

  /** Who asks next, and whom to trust. */
  async identity(): Promise<RequestOptions> {
    // As kubectl does: over plain HTTP everybody on the way could read the token. client-node refuses such servers altogether.
    if (this.#plain) return { headers: this.#config instanceof LoadedConfig ? toHeaders(this.#config.impersonation) : {} };
    this.#pending ??= this.#ask().finally(() => {
      this.#pending = undefined;
    });
    return this.#pending;
  }

  /** Whoever asks next, after the server has answered 401 to this one. Undefined if that is the same one. */
  async renewed(refused: RequestOptions): Promise<RequestOptions | undefined> {
    this.#config.invalidate?.(refused);
    await this.#pending?.catch(() => {}); // it may have begun before
    const fresh = await this.identity();
    return isDeepStrictEqual(fresh, refused) ? undefined : fresh;
  }

  /** The options of a request that say how to connect. */
  async connection({ servername }: RequestOptions, signal: AbortSignal | undefined): Promise<RequestOptions> {
    if (!this.#proxy) return { agent: this.#agent };
    // The agents of proxies do not say for whom a certificate must be if the server has no name, only an address.
    const name = servername ?? this.#server.hostname.replace(/^\[|\]$/g, '');
    return {
      agent: await createProxyAgent(this.#proxy, signal),
      checkServerIdentity: (_, certificate) => checkServerIdentity(name, certificate),
    };
  }

  /** Closes idle connections. The agent's own `destroy` would also break those in use. */
  close(): void {
    for (const idle of Object.values(this.#agent.freeSockets)) for (const socket of idle ?? []) socket.destroy();
  }

  async #ask(): Promise<RequestOptions> {
    const asked: RequestOptions = { headers: {} };
    try {
      await this.#config.applyToHTTPSOptions(asked);
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new Error(`kubeconfig: no credentials for this request: ${why}`);
    }
    const options: RequestOptions = { headers: toHeaders(asked.headers) };
    for (const name of IDENTITY) if (asked[name] != null) Object.assign(options, { [name]: asked[name] });
    return options;
  }
}

/** client-node does not even apply the CA if a context has no user. */
function anonymous(config: KubeConfigLike): KubeConfigLike {
  return Object.create(config, { getCurrentUser: { value: () => ({ name: 'anonymous' }) } }) as KubeConfigLike;
}

/** A file with a token often ends with a line end, which no header may have. */
function toHeaders(headers: object | undefined): Record<string, string | string[]> {
  const entries = Object.entries(headers ?? {}).filter(([, value]) => value !== undefined);
  const trimmed = (value: unknown): string => String(value).trim();
  return Object.fromEntries(entries.map(([name, value]) => [name, Array.isArray(value) ? value.map(trimmed) : trimmed(value)]));
}
