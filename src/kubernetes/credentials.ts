/**
 * What each request to a cluster needs: who asks, whom to trust, and a connection. The kubeconfig is consulted before every
 * request, because tokens and certificates change while a program runs: files are replaced, exec plugins and OIDC hand out new
 * ones. Requests that start together ask once, so that a plugin does not run for each of them.
 *
 * Connections are kept for the next request, in a pool for each identity: after a certificate has changed, none with the old one
 * is used again.
 */
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent, type RequestOptions } from 'node:https';
import { invalid } from '../watch/errors.ts';
import type { KubeConfigLike } from './kube-config.ts';

/**
 * A kube-apiserver closes an idle connection after 90 s. Ours are closed earlier, so that no request is sent on a closing
 * connection.
 */
const IDLE_MS = 60_000;

/** The options of a request that say who asks, and whom to trust. */
const IDENTITY = ['ca', 'cert', 'key', 'pfx', 'passphrase', 'servername', 'rejectUnauthorized', 'auth'] as const;

export class Credentials {
  readonly #config: KubeConfigLike;
  readonly #agent: HttpAgent;
  /** The proxy of the kubeconfig, for which client-node has agents of its own. */
  readonly #proxied: boolean;
  readonly #plain: boolean;
  #pending: Promise<RequestOptions> | undefined;

  constructor(config: KubeConfigLike, server: URL) {
    this.#plain = server.protocol === 'http:';
    this.#proxied = Boolean(config.getCurrentCluster()?.proxyUrl);
    if (this.#plain && this.#proxied) throw invalid('server', server.href, 'an https URL, together with a proxy');
    this.#config = config.getCurrentUser() ? config : anonymous(config);
    this.#agent = new (this.#plain ? HttpAgent : HttpsAgent)({ keepAlive: true, timeout: IDLE_MS });
  }

  /** The options of the next request. */
  async options(): Promise<RequestOptions> {
    // As kubectl does: over plain HTTP everybody on the way could read the token. client-node refuses such servers altogether.
    if (this.#plain) return { agent: this.#agent };
    this.#pending ??= this.#ask().finally(() => {
      this.#pending = undefined;
    });
    return this.#pending;
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
      throw new Error(`kubeconfig: no credentials for this request: ${why}`, { cause });
    }
    const options: RequestOptions = { agent: this.#proxied ? asked.agent : this.#agent, headers: trimmed(asked.headers) };
    for (const name of IDENTITY) if (asked[name] != null) Object.assign(options, { [name]: asked[name] });
    return options;
  }
}

/** client-node does not even apply the CA if a context has no user. */
function anonymous(config: KubeConfigLike): KubeConfigLike {
  return Object.create(config, { getCurrentUser: { value: () => ({ name: 'anonymous' }) } }) as KubeConfigLike;
}

/** A file with a token often ends with a line end, which no header may have. */
function trimmed(headers: RequestOptions['headers']): Record<string, string> {
  const entries = Object.entries(headers ?? {}).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value).trim()]));
}
