import { createListWatcher } from '../cache/http/http-list-watcher.ts';
import { type ListWatcherOptions, toHttpSettings } from '../cache/http/means.ts';
import type { ListWatcher } from '../cache/list-watcher.ts';
import type { KubernetesObject } from '../cache/object.ts';
import { invalid, requireMethod } from '../watch/errors.ts';
import { checkOptions } from '../watch/options.ts';
import { Credentials } from './credentials.ts';
import { findResource } from './discovery.ts';
import { type KubeConfigLike, type KubeConfigOptions, loadKubeConfig } from './kube-config.ts';
import { createNodeFetch, type NodeFetch } from './node-fetch.ts';
import { Resource, type ResourceDeps } from './resource.ts';
import { checkedType, type ResourceType } from './resource-type.ts';

/** Options of a {@link Cluster}: limits of all its requests, like those of `createListWatcher`. */
export type ClusterOptions = Omit<ListWatcherOptions, 'fetch' | 'headers'>;

/** Creates the source for one kind of objects. */
export type ClusterSource = (
  type: string | ResourceType,
  options?: { readonly namespace?: string | undefined },
) => ListWatcher<KubernetesObject>;

/** Options of `Cluster.find`. */
export interface FindOptions {
  readonly signal?: AbortSignal | undefined;
}

/** Options of {@link loadCluster}. */
export interface LoadClusterOptions extends ClusterOptions, KubeConfigOptions {}

const LIMITS = ['maxListBytes', 'maxFrameBytes', 'responseTimeoutMs', 'clock'] as const;

/**
 * Finds a cluster as kubectl does: from `$KUBECONFIG`, `~/.kube/config`, or the service account of the pod in which this runs.
 * Needs the optional peer dependency `@kubernetes/client-node`, which reads all of these, including client certificates, exec
 * plugins and OIDC.
 *
 *     const cluster = await loadCluster();
 *     const pods = cluster.resource<V1Pod>('pods').in('default');
 *
 * @throws {WatchError} (rejects) INVALID_ARGUMENT if there is no cluster, no such context, or no such package.
 */
export async function loadCluster(options: LoadClusterOptions = {}): Promise<Cluster> {
  const { file, context, inCluster, ...limits } = checkOptions(options, [...LIMITS, 'file', 'context', 'inCluster']);
  return new Cluster(await loadKubeConfig({ file, context, inCluster }), limits);
}

/**
 * A Kubernetes cluster, or any server with the same protocol. Over plain HTTP it sends no credentials, as kubectl does.
 *
 * Connections are kept for later requests, and have TCP keep-alive probes, so that a watch ends about 40 seconds after its server
 * has vanished. Idle connections do not keep a program running.
 */
export class Cluster {
  /** The address of the server. */
  readonly server: URL;
  /** The namespace of the context; `default` if it names none. */
  readonly namespace: string;
  /** A `fetch` with the credentials of this cluster, for `createListWatcher` and for requests that have no method here. */
  readonly fetch: NodeFetch;
  readonly #credentials: Credentials;
  readonly #means: ResourceDeps;

  /** @throws {WatchError} INVALID_ARGUMENT for an invalid option, and if the current context has no cluster. */
  constructor(config: KubeConfigLike, options: ClusterOptions = {}) {
    requireMethod('config', config, 'applyToHTTPSOptions', 'a KubeConfig');
    const limits = { ...checkOptions(options, LIMITS) };
    const { server } = config.getCurrentCluster() ?? {};
    if (!server) throw invalid('config', config.getCurrentContext(), 'a current context that has a cluster');
    if (!URL.canParse(server) || !/^https?:\/\//.test(server)) throw invalid('config', server, 'an http(s) URL as its server');
    this.server = new URL(server);
    this.namespace = config.getContextObject(config.getCurrentContext())?.namespace || 'default';
    this.#credentials = new Credentials(config, this.server);
    this.fetch = createNodeFetch((url) => {
      // A token is for this server only.
      if (url.origin !== this.server.origin) throw invalid('url', url.href, `a URL of ${this.server.origin}`);
      return this.#credentials.options();
    });
    this.#means = {
      server: this.server,
      means: toHttpSettings({ ...limits, fetch: this.fetch }),
      collection: (url) => createListWatcher(url, { ...limits, fetch: this.fetch }),
    };
  }

  /**
   * Returns the objects of one kind, in all namespaces; see `in` of {@link Resource}. Name the kind as `deployments.apps/v1`, as
   * `pods`, or by a {@link ResourceType}, which can contain more.
   *
   *     cluster.resource<V1Deployment>('deployments.apps/v1').in('default')
   */
  resource<T extends object = KubernetesObject>(type: string | ResourceType): Resource<T> {
    return new Resource<T>(this.#means, checkedType(type));
  }

  /**
   * Like `resource`, but by any name that kubectl takes: plural, singular, kind or short name, with or without a group and a
   * version. Asks the server, so the result knows its version, its kind, and whether it is namespaced.
   *
   *     await cluster.find('deploy')
   *
   * @throws {WatchError} (rejects) INVALID_ARGUMENT if the server has no resource with this name.
   */
  async find<T extends object = KubernetesObject>(name: string, { signal }: FindOptions = {}): Promise<Resource<T>> {
    return this.resource<T>(await findResource({ ...this.#means, signal }, name));
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

  /** Closes idle connections, which would otherwise close by themselves within a minute. The cluster can still be used. */
  close(): void {
    this.#credentials.close();
  }
}
