// A configuration, as what each request needs: headers, and whom to trust. Ours is one context of a kubeconfig.
import { readFile } from 'node:fs/promises';
import type { RequestOptions } from 'node:https';
import type { Clock } from '../watch/clock.ts';
import { ExecPlugin, type PluginAnswer } from './exec-plugin.ts';
import type { Chosen, ClusterEntry, ProviderEntry, UserEntry } from './kubeconfig-file.ts';
import { proxyOf } from './proxy.ts';

/**
 * What a {@link Cluster} needs to know of a configuration. `loadCluster` has its ownState; the `KubeConfig` of
 * `@kubernetes/client-node` fits, and so does your ownState implementation.
 */
export interface KubeConfigLike {
  getCurrentContext(): string;
  getContextObject(name: string): { readonly namespace?: string | undefined } | null;
  getCurrentCluster(): { readonly server: string; readonly proxyUrl?: string | undefined } | null;
  getCurrentUser(): object | null;
  /** Adds headers and TLS options. Called before every request. */
  applyToHTTPSOptions(options: RequestOptions): Promise<void>;
  /** Called when the server has answered 401 to a request with these options: they are not to be used again. */
  invalidate?(refused: RequestOptions): void;
}

type Headers = Readonly<Record<string, string | readonly string[]>>;

/** Under this name, a cluster has what is meant for its plugin. */
const PLUGIN_CONFIG = 'client.authentication.k8s.io/exec';

export class LoadedConfig implements KubeConfigLike {
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

  /** As whom the user acts. To leave it out would be to act with other rights, so it is sent to servers without TLS, too. */
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
    // As in kubectl, what the kubeconfig itself says counts before what a plugin would say.
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

/** What an entry has as data, or in a file. Files are read each time, because they are replaced. */
async function content<T extends ClusterEntry | UserEntry>(entry: T, name: string): Promise<string | undefined> {
  const { [name]: path, [`${name}-data`]: data } = entry as Readonly<Record<string, string | undefined>>;
  if (data !== undefined) return Buffer.from(data, 'base64').toString();
  return path === undefined ? undefined : readFile(path, 'utf8');
}

/** What a user has that needs no plugin. */
async function authorizationOf(user: UserEntry): Promise<string | undefined> {
  const { token, tokenFile, username, password } = user;
  if (tokenFile !== undefined) {
    const read = await readFile(tokenFile, 'utf8').catch((error: unknown) => {
      if (token === undefined) throw error;
      return ''; // as in kubectl, the token itself is for when its file cannot be read
    });
    if (read.trim()) return `Bearer ${read.trim()}`;
    if (token === undefined) throw new Error(`${tokenFile} is empty, where a token is expected`);
  }
  if (token !== undefined) return `Bearer ${token}`;
  if (username !== undefined || password !== undefined) {
    return `Basic ${Buffer.from(`${username ?? ''}:${password ?? ''}`).toString('base64')}`;
  }
  return user['auth-provider'] && `Bearer ${idTokenOf(user['auth-provider'])}`;
}

/**
 * The token of OpenID Connect, as long as it is good. To refresh it here would use up the token that refreshes it, of which
 * kubectl keeps the only copy, in the kubeconfig.
 */
function idTokenOf({ name, config = {} }: ProviderEntry): string {
  const { 'id-token': token } = config;
  if (name !== 'oidc') throw new Error(`the auth-provider "${name}" is not one that kubectl still has: use an exec plugin`);
  if (typeof token !== 'string' || token === '') throw new Error('the auth-provider "oidc" has no id-token: use an exec plugin');
  if (Date.now() >= expiryMs(token)) {
    throw new Error('the id-token of OpenID Connect has expired: refresh it with kubectl, or use an exec plugin (kubelogin)');
  }
  return token;
}

function expiryMs(token: string): number {
  try {
    const { exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
    return typeof exp === 'number' ? exp * 1_000 : Infinity;
  } catch {
    return Infinity; // the server knows
  }
}

/** Headers are bytes, which Node takes one for each character. */
const asBytes = (text: string): string => Buffer.from(text).toString('latin1');

/** A name as a part of a header's name. Upstream: `headerKeyEscape`. */
function escaped(name: string): string {
  const legal = /[!#$&'*+.^_`|~0-9A-Za-z-]/;
  return Array.from(asBytes(name), (char) => {
    return legal.test(char) ? char : `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
  }).join('');
}
