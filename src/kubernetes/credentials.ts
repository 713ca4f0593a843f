// Turns a configuration into what each request needs: headers, and whom to trust. Ours is one context of a kubeconfig.

import { readFile } from 'node:fs/promises';
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent, type RequestOptions } from 'node:https';
import { checkServerIdentity } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import { type Clock, systemClock } from '../watch/clock.ts';
import { invalid, tried, whyOf } from '../watch/errors.ts';
import { ExecPlugin, type PluginAnswer } from './exec-plugin.ts';
import {
  type Chosen,
  type ClusterEntry,
  findContext,
  type KubeConfigOptions,
  type ProviderEntry,
  type UserEntry,
} from './kube-config.ts';
import { createProxyAgent, proxyOf } from './node-fetch.ts';

/**
 * What a {@link Cluster} needs from a configuration. `loadCluster` has its own; the `KubeConfig` of `@kubernetes/client-node`
 * fits, and so does your own implementation.
 */
export interface KubeConfigLike {
  getCurrentContext(): string;
  getContextObject(name: string): { readonly namespace?: string | undefined } | null;
  getCurrentCluster(): { readonly server: string; readonly proxyUrl?: string | undefined } | null;
  getCurrentUser(): object | null;
  /** Adds headers and TLS options. Called before every request. */
  applyToHTTPSOptions(options: RequestOptions): Promise<void>;
  /** Called when the server has answered 401 to a request with these options: they must not be used again. */
  invalidate?(refused: RequestOptions): void;
}

type Headers = Readonly<Record<string, string | readonly string[]>>;

/** The name under which a cluster holds the configuration for its plugin. */
const PLUGIN_CONFIG = 'client.authentication.k8s.io/exec';

class LoadedConfig implements KubeConfigLike {
  readonly #chosen: Chosen;
  readonly #plugin: ExecPlugin | undefined;

  constructor(chosen: Chosen, options: { readonly timeoutMs: number; readonly clock: Clock }) {
    this.#chosen = chosen;
    const { exec } = chosen.user;
    this.#plugin = exec && new ExecPlugin(exec, { ...options, clusterInfo: () => this.#clusterInfo() });
  }

  getCurrentContext(): string {
    return this.#chosen.context;
  }

  getContextObject(): { readonly namespace: string | undefined } {
    return { namespace: this.#chosen.namespace };
  }

  getCurrentCluster(): { readonly server: string; readonly proxyUrl: string | undefined } {
    const { server = '', 'proxy-url': proxyUrl } = this.#chosen.cluster;
    return { server, proxyUrl };
  }

  getCurrentUser(): object {
    return this.#chosen.user;
  }

  /** The user to impersonate. Leaving it out would mean acting with other rights, so it is sent to servers without TLS, too. */
  get impersonation(): Headers {
    const { as, 'as-uid': uid, 'as-groups': groups, 'as-user-extra': extra = {} } = this.#chosen.user;
    if (as === undefined) return {};
    const more = Object.entries(extra).map(([name, values]) => [`Impersonate-Extra-${escaped(name)}`, values.map(asBytes)]);
    return {
      'Impersonate-User': asBytes(as),
      ...(uid && { 'Impersonate-Uid': asBytes(uid) }),
      ...(groups?.length && { 'Impersonate-Group': groups.map(asBytes) }),
      ...Object.fromEntries(more),
    };
  }

  async applyToHTTPSOptions(options: RequestOptions): Promise<void> {
    const { cluster, user } = this.#chosen;
    const { 'insecure-skip-tls-verify': insecure, 'tls-server-name': servername } = cluster;
    const authorization = await authorizationOf(user);
    // As in kubectl, the kubeconfig itself takes precedence over a plugin.
    const answer: PluginAnswer = (authorization ? undefined : await this.#plugin?.answer()) ?? {};
    const [ca, cert, key] = await Promise.all([
      content(cluster, 'certificate-authority'),
      content(user, 'client-certificate'),
      content(user, 'client-key'),
    ]);
    const bearer = authorization ?? (answer.token && `Bearer ${answer.token}`);
    Object.assign(options, {
      ...(ca !== undefined && { ca }),
      ...((answer.cert ?? cert) !== undefined && { cert: answer.cert ?? cert, key: answer.key ?? key }),
      ...(servername && { servername }),
      ...(insecure && { rejectUnauthorized: false }),
      headers: { ...options.headers, ...this.impersonation, ...(bearer && { Authorization: bearer }) },
    });
  }

  invalidate({ headers, cert }: RequestOptions): void {
    const { Authorization } = (headers ?? {}) as { readonly Authorization?: unknown };
    const token = typeof Authorization === 'string' ? Authorization.replace(/^Bearer /, '') : undefined;
    this.#plugin?.forget({ token, cert: typeof cert === 'string' ? cert : undefined });
  }

  async #clusterInfo(): Promise<object> {
    const { cluster } = this.#chosen;
    const { server = '', extensions = [] } = cluster;
    const authority = await content(cluster, 'certificate-authority');
    const proxy = URL.canParse(server) ? proxyOf(new URL(server), cluster['proxy-url']) : undefined;
    const own = (extensions as readonly ({ name?: unknown; extension?: unknown } | null)[]).find(
      (each) => each?.name === PLUGIN_CONFIG,
    );
    return {
      server,
      ...(cluster['tls-server-name'] && { 'tls-server-name': cluster['tls-server-name'] }),
      ...(cluster['insecure-skip-tls-verify'] && { 'insecure-skip-tls-verify': true }),
      ...(authority !== undefined && { 'certificate-authority-data': Buffer.from(authority).toString('base64') }),
      ...(proxy && { 'proxy-url': proxy.href.replace(/\/$/, '') }),
      ...(cluster['disable-compression'] && { 'disable-compression': true }),
      ...(own?.extension !== undefined && { config: own.extension }),
    };
  }
}

/** The content of an entry, from its data or a file. Files are read each time, because they may be replaced. */
async function content<T extends ClusterEntry | UserEntry>(entry: T, name: string): Promise<string | undefined> {
  const { [name]: path, [`${name}-data`]: data } = entry as Readonly<Record<string, string | undefined>>;
  if (data !== undefined) return Buffer.from(data, 'base64').toString();
  return path === undefined ? undefined : readFile(path, 'utf8');
}

/** The authorization of a user who needs no plugin. */
async function authorizationOf(user: UserEntry): Promise<string | undefined> {
  const { token, tokenFile, username, password } = user;
  if (tokenFile !== undefined) {
    const read = await readFile(tokenFile, 'utf8').catch((error: unknown) => {
      if (token === undefined) throw error;
      return ''; // as in kubectl, the token itself is used if its file cannot be read
    });
    if (read.trim()) return `Bearer ${read.trim()}`;
    if (token === undefined) throw new Error(`${tokenFile} is empty: expected a token`);
  }
  if (token !== undefined) return `Bearer ${token}`;
  if (username !== undefined || password !== undefined) {
    return `Basic ${Buffer.from(`${username ?? ''}:${password ?? ''}`).toString('base64')}`;
  }
  return user['auth-provider'] && `Bearer ${idTokenOf(user['auth-provider'])}`;
}

/**
 * The token of OpenID Connect, while it is valid. Refreshing it here would use up the refresh token, of which kubectl keeps the
 * only copy, in the kubeconfig.
 */
function idTokenOf({ name, config = {} }: ProviderEntry): string {
  const { 'id-token': token } = config;
  if (name !== 'oidc') throw new Error(`kubectl no longer supports the auth-provider "${name}": use an exec plugin`);
  if (typeof token !== 'string' || token === '') throw new Error('the auth-provider "oidc" has no id-token: use an exec plugin');
  if (Date.now() >= expiryMs(token)) {
    throw new Error('the id-token of OpenID Connect has expired: refresh it with kubectl, or use an exec plugin (kubelogin)');
  }
  return token;
}

function expiryMs(token: string): number {
  const claims: unknown = tried(() => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()));
  const { exp } = (claims ?? {}) as { readonly exp?: unknown };
  return typeof exp === 'number' ? exp * 1_000 : Infinity; // the server knows
}

/** Headers are bytes, and Node takes one per character. */
const asBytes = (text: string): string => Buffer.from(text).toString('latin1');

/** A name as a part of a header's name. Upstream: `headerKeyEscape`. */
function escaped(name: string): string {
  const legal = /[!#$&'*+.^_`|~0-9A-Za-z-]/;
  return Array.from(asBytes(name), (char) => {
    return legal.test(char) ? char : `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
  }).join('');
}

/**
 * What each request to a cluster needs: an identity, trusted certificates, and a connection. The configuration is consulted
 * before every request, because tokens and certificates change while a program runs: files are replaced, exec plugins issue new
 * ones. Requests that start together ask once, so that a plugin does not run for each of them.
 *
 * After a 401, the configuration drops what it keeps, and is asked again. Only different credentials are worth a second try.
 *
 * Connections are kept for the next request, in a pool for each identity: after a certificate has changed, none with the old one
 * is used again. A request through a proxy has a connection of its own.
 */

/**
 * A kube-apiserver closes an idle connection after 90 s. Ours are closed earlier, so that no request is sent on a closing
 * connection.
 */
const IDLE_MS = 60_000;

/** The options of a request that give its identity, and whom to trust. */
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

  /** The identity for the next request, and whom to trust. */
  async identity(): Promise<RequestOptions> {
    // As kubectl does: over plain HTTP anybody on the way could read the token. client-node refuses such servers altogether.
    if (this.#plain) return { headers: this.#config instanceof LoadedConfig ? toHeaders(this.#config.impersonation) : {} };
    this.#pending ??= this.#ask().finally(() => {
      this.#pending = undefined;
    });
    return this.#pending;
  }

  /** The identity after the server has answered 401 to this one. Undefined if it is the same. */
  async renewed(refused: RequestOptions): Promise<RequestOptions | undefined> {
    this.#config.invalidate?.(refused);
    await this.#pending?.catch(() => {}); // it may have begun before
    const fresh = await this.identity();
    return isDeepStrictEqual(fresh, refused) ? undefined : fresh;
  }

  /** The options of a request that say how to connect. */
  async connection({ servername }: RequestOptions, signal: AbortSignal | undefined): Promise<RequestOptions> {
    if (!this.#proxy) return { agent: this.#agent };
    // If the server has only an address and no name, the agents of proxies do not say whom a certificate must be for.
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
      const why = whyOf(cause);
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

/** A token file often ends with a line end, which headers must not contain. */
function toHeaders(headers: object | undefined): Record<string, string | string[]> {
  const entries = Object.entries(headers ?? {}).filter(([, value]) => value !== undefined);
  const trimmed = (value: unknown): string => String(value).trim();
  return Object.fromEntries(entries.map(([name, value]) => [name, Array.isArray(value) ? value.map(trimmed) : trimmed(value)]));
}

/** How exec plugins run. */
interface PluginSettings {
  readonly timeoutMs: number;
  readonly clock?: Clock | undefined;
}

/** Reads the configuration of a cluster. Rejects with INVALID_ARGUMENT if there is none, or if it has no such context. */
export async function loadKubeConfig(options: KubeConfigOptions, plugins: PluginSettings): Promise<KubeConfigLike> {
  const { clock = systemClock, timeoutMs } = plugins;
  const config = new LoadedConfig(await findContext(options), { clock, timeoutMs });
  const { server, proxyUrl } = config.getCurrentCluster();
  const proxy = URL.canParse(server) ? proxyOf(new URL(server), proxyUrl) : undefined;
  if (proxy) (await createProxyAgent(proxy, undefined)).destroy(); // reports a missing package now
  return config;
}
