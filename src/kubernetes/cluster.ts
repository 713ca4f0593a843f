import type { RequestOptions } from 'node:https';
import { type ListWatcherOptions, toHttpSettings } from '../cache/http/exchange.ts';
import { createListWatcher } from '../cache/http/http-list-watcher.ts';
import type { ListWatcher } from '../cache/list-watcher.ts';
import type { KubernetesObject } from '../cache/object.ts';
import type { GroupVersionKind, KindOptions, ResourceSource, ResourceType, Typed } from '../cache/resource-client.ts';
import { callable, checkOptions, invalid, requireMethod, wholeNumber } from '../watch/errors.ts';
import { oneLine, quietly, reporter } from '../watch/failures.ts';
import { type Telemetry, toTelemetry } from '../watch/telemetry.ts';
import { Credentials, type KubeConfigLike, loadKubeConfig } from './credentials.ts';
import { ClusterDiscovery } from './discovery.ts';
import type { KubeConfigOptions } from './kube-config.ts';
import { type NodeFetch, type NodeRequest, send } from './node-fetch.ts';
import { checkedType, Resource, type ResourceDeps } from './resource.ts';

/** Options of a {@link Cluster}: limits of all its requests, like those of `createListWatcher`. */
export interface ClusterOptions extends Omit<ListWatcherOptions, 'fetch' | 'headers'> {
  /**
   * Called with each new warning of the server, for example that an unknown field was dropped. Default: prints it with
   * `console.warn`, as kubectl does. An error that it throws is printed: the request goes on, and may have been carried out.
   */
  readonly onWarning?: ((text: string) => void) | undefined;
  /**
   * Where the spans of requests go; the server continues their traces: an `OpenTelemetry` of `watchmux/opentelemetry`. Default:
   * nowhere.
   */
  readonly telemetry?: Telemetry | undefined;
}

/** Creates the source for one kind of objects. */
export type ClusterSource = (
  type: string | ResourceType,
  options?: { readonly namespace?: string | undefined },
) => ListWatcher<KubernetesObject>;

/** Options of `Cluster.find`. */
export type FindOptions = KindOptions;

/** Requests to a cluster that were answered in the same way. */
export interface RequestCount {
  /** The code of the answer; `<error>` if there was none. */
  readonly code: string;
  /** Such as `GET`. */
  readonly method: string;
  /** The server's host, and its port. */
  readonly host: string;
  readonly count: number;
}

/** Options of {@link loadCluster}. */
export interface LoadClusterOptions extends ClusterOptions, KubeConfigOptions {
  /**
   * How long an exec plugin of the kubeconfig may run, in milliseconds; then it is killed, and the request rejects. Default 30,000,
   * or half of `responseTimeoutMs` if that is shorter: a request also waits for the plugin, so this must be less.
   */
  readonly execTimeoutMs?: number | undefined;
}

const LIMITS = ['maxListBytes', 'maxFrameBytes', 'responseTimeoutMs', 'clock'] as const;
const OWN = ['onWarning', 'telemetry'] as const;
const PLACES = ['file', 'text', 'server', 'inCluster', 'context'] as const;
const RESPONSE_TIMEOUT_MS = 60_000;
const EXEC_TIMEOUT_MS = 30_000;

/**
 * Finds a cluster as kubectl does: from `$KUBECONFIG`, `~/.kube/config`, or the service account of the pod in which this runs.
 * A kubeconfig in YAML needs the optional peer dependency `yaml`; a proxy needs `https-proxy-agent` or `socks-proxy-agent`.
 *
 *     const cluster = await loadCluster();
 *     const pods = cluster.resource<Pod>('pods').in('default');
 *
 * @throws {WatchError} (rejects) INVALID_ARGUMENT if there is no cluster, no such context, or no such package.
 */
export async function loadCluster(options: LoadClusterOptions = {}): Promise<Cluster> {
  checkOptions(options, [...LIMITS, ...OWN, ...PLACES, 'execTimeoutMs']);
  const { file, text, server, inCluster, context, execTimeoutMs, ...own } = options;
  const { responseTimeoutMs = RESPONSE_TIMEOUT_MS, clock } = own;
  const longestMs = responseTimeoutMs || Infinity;
  const timeoutMs = wholeNumber('execTimeoutMs', execTimeoutMs ?? Math.ceil(Math.min(EXEC_TIMEOUT_MS, longestMs / 2)), 1);
  if (execTimeoutMs !== undefined && timeoutMs >= longestMs) {
    throw invalid('execTimeoutMs', execTimeoutMs, `less than responseTimeoutMs (${responseTimeoutMs})`);
  }
  return new Cluster(await loadKubeConfig({ file, text, server, inCluster, context }, { timeoutMs, clock }), own);
}

/**
 * A Kubernetes cluster, or any server with the same protocol. Over plain HTTP it sends no credentials, as kubectl does.
 *
 * Connections are kept for later requests, and have TCP keep-alive probes, so that a watch ends about 40 seconds after its server
 * has vanished. Idle connections do not keep a program running.
 */
export class Cluster implements ResourceSource {
  /** The address of the server. */
  readonly server: URL;
  /** The namespace of the context; `default` if it names none. */
  readonly namespace: string;
  /** A `fetch` with the credentials of this cluster, for `createListWatcher` and for requests that have no method here. */
  readonly fetch: NodeFetch;
  readonly #credentials: Credentials;
  readonly #warnings: Warnings;
  readonly #telemetry: Telemetry | undefined;
  readonly #means: ResourceDeps;
  readonly #discovery: ClusterDiscovery;
  /** By code and method. */
  readonly #requests: Map<string, number> = new Map();

  /** @throws {WatchError} INVALID_ARGUMENT for an invalid option, and if the current context has no cluster. */
  constructor(config: KubeConfigLike, options: ClusterOptions = {}) {
    requireMethod('config', config, 'applyToHTTPSOptions', 'a KubeConfig');
    const { onWarning, telemetry, ...limits } = checkOptions(options, [...LIMITS, ...OWN]);
    const report = reporter('cluster', {});
    this.#telemetry = toTelemetry(telemetry, report);
    this.#warnings = new Warnings(callable('onWarning', onWarning), report);
    const { server } = config.getCurrentCluster() ?? {};
    if (!server) throw invalid('config', config.getCurrentContext(), 'a current context that has a cluster');
    if (!URL.canParse(server) || !/^https?:\/\//.test(server)) throw invalid('config', server, 'an http(s) URL as its server');
    this.server = new URL(server);
    this.namespace = config.getContextObject(config.getCurrentContext())?.namespace || 'default';
    this.#credentials = new Credentials(config, this.server);
    this.fetch = (url, init = {}) => this.#fetch(url, init);
    this.#means = {
      server: this.server,
      means: toHttpSettings({ ...limits, fetch: this.fetch }),
      collection: (url) => createListWatcher(url, { ...limits, fetch: this.fetch }),
    };
    this.#discovery = new ClusterDiscovery(this.#means);
  }

  /**
   * Returns the objects of one kind, in all namespaces; see `in` of {@link Resource}. Name the kind as `deployments.apps/v1`, as
   * `pods`, or by a {@link ResourceType}, which can contain more.
   *
   *     cluster.resource<V1Deployment>('deployments.apps/v1').in('default')
   */
  resource<T extends object = KubernetesObject>(type: string | (ResourceType & Typed<T>)): Resource<T> {
    return new Resource<T>(this.#means, checkedType(type));
  }

  /**
   * Like `resource`, but by any name that kubectl takes: plural, singular, kind or short name, with or without a group and a
   * version. Asks the server, so the result knows its version, its kind, and whether it is namespaced.
   *
   *     await cluster.find('deploy')
   *
   * @throws {WatchError} (rejects) INVALID_ARGUMENT if the server says that it has no resource with this name.
   */
  find<T extends object = KubernetesObject>(name: string, options?: FindOptions): Promise<Resource<T>> {
    return this.kind<T>(name, options);
  }

  /**
   * Like `resource`, but by the kind of the objects, or by any name that `find` takes. Asks the server, so the result knows its
   * version, its kind, and whether it is namespaced. All kinds of a program cost two requests, or one for each version of a group if
   * the server is older than Kubernetes 1.26.
   *
   *     await cluster.kind({ apiVersion: 'apps/v1', kind: 'Deployment' })
   *
   * @throws {WatchError} (rejects) INVALID_ARGUMENT if the server says that it does not have it.
   */
  async kind<T extends object = KubernetesObject>(
    kind: string | (GroupVersionKind & Typed<T>),
    options?: KindOptions,
  ): Promise<Resource<T>> {
    return this.resource<T>(await this.#discovery.find(kind, options));
  }

  /**
   * `resource` as a function, in one namespace if one is given: pass it to an `InformerFactory` as its source.
   *
   *     const factory = new InformerFactory(cluster.source);
   *     const deployments = factory.informer<V1Deployment>('deployments.apps/v1');
   */
  readonly source: ClusterSource = (type, { namespace } = {}) => {
    const resource = this.resource(type);
    return namespace ? resource.in(namespace) : resource;
  };

  /**
   * How many requests were made; one that was repeated with new credentials counts twice. Upstream:
   * `rest_client_requests_total`.
   */
  get requestCounts(): readonly RequestCount[] {
    const { host } = this.server;
    return Array.from(this.#requests, ([key, count]) => {
      const [code = '', method = ''] = key.split(' ');
      return { code, method, host, count };
    });
  }

  #count(code: number | string, method: string = 'GET'): void {
    const key = `${code} ${method}`;
    this.#requests.set(key, (this.#requests.get(key) ?? 0) + 1);
  }

  async #fetch(url: URL, init: NodeRequest): Promise<Response> {
    // A token is for this server only.
    if (url.origin !== this.server.origin) throw invalid('url', url.href, `a URL of ${this.server.origin}`);
    const ask = async (identity: RequestOptions): Promise<Response> => {
      const connection = await this.#credentials.connection(identity, init.signal);
      const response = await this.#send(url, init, { ...identity, ...connection }).catch((error: unknown) => {
        this.#count('<error>', init.method);
        throw error;
      });
      this.#count(response.status, init.method);
      this.#warnings.read(response.headers);
      return response;
    };
    const identity = await this.#credentials.identity();
    const response = await ask(identity);
    if (response.status !== 401) return response;
    // A request refused with 401 was not carried out, whatever it is, so it can be sent again.
    try {
      const other = await this.#credentials.renewed(identity);
      if (!other) return response;
      response.body?.cancel().catch(() => {});
      return await ask(other);
    } catch (error) {
      response.body?.cancel().catch(() => {});
      throw error;
    }
  }

  #send(url: URL, init: NodeRequest, prepared: RequestOptions): Promise<Response> {
    const telemetry = this.#telemetry;
    if (telemetry === undefined) return send(url, init, prepared);
    return telemetry.send(init.method ?? 'GET', url, (own) =>
      send(url, { ...init, headers: { ...init.headers, ...own } }, prepared),
    );
  }

  /** Closes idle connections, which otherwise close by themselves within a minute. The cluster can still be used. */
  close(): void {
    this.#credentials.close();
  }
}

/**
 * Warnings that a server sends with its answer, in a `Warning` header: that an unknown field was dropped, or that a version
 * will be removed. Prints each text once, as kubectl and client-go print them.
 */

const MAX_TEXTS = 1_000;

class Warnings {
  readonly #onWarning: (text: string) => void;
  readonly #report: (error: unknown) => void;
  readonly #said: Set<string> = new Set();

  constructor(onWarning: ((text: string) => void) | undefined, report: (error: unknown) => void) {
    this.#report = report;
    this.#onWarning = onWarning ?? ((text) => console.warn(`watchmux: the cluster warns: ${text}`));
  }

  read(headers: Headers): void {
    const header = headers.get('warning');
    if (header === null) return;
    for (const [, quoted = ''] of header.matchAll(/\b299 \S+ "((?:[^"\\]|\\.)*)"/g)) {
      const text = oneLine(quoted.replace(/\\(.)/g, '$1'));
      if (this.#said.has(text)) continue;
      if (this.#said.size >= MAX_TEXTS) this.#said.clear();
      this.#said.add(text);
      quietly(() => this.#onWarning(text), this.#report);
    }
  }
}
