// How a cluster is reached, and as whom: all that this package takes from @kubernetes/client-node.
import type { RequestOptions } from 'node:https';
import { invalid, WatchError } from '../watch/errors.ts';

/** The part of client-node's `KubeConfig` that is used here, so that any version of it fits, and so does your own implementation. */
export interface KubeConfigLike {
  getCurrentContext(): string;
  getContextObject(name: string): { readonly namespace?: string | undefined } | null;
  getCurrentCluster(): { readonly server: string; readonly proxyUrl?: string | undefined } | null;
  getCurrentUser(): object | null;
  /** Adds headers, TLS options and an agent. Called before every request. */
  applyToHTTPSOptions(options: RequestOptions): Promise<void>;
}

/** Where to find a cluster. */
export interface KubeConfigOptions {
  /** The path of a kubeconfig file. Default: `$KUBECONFIG`, then `~/.kube/config`, then the service account of a pod. */
  readonly file?: string | undefined;
  /** The name of a context in it. Default: its current context. */
  readonly context?: string | undefined;
  /**
   * Use the service account of the pod in which this runs, even if there are kubeconfig files. A string is a prefix for the paths
   * of the service account's files, for tools that mount them elsewhere.
   */
  readonly inCluster?: boolean | string | undefined;
}

type ClientNode = typeof import('@kubernetes/client-node');
type KubeConfig = InstanceType<ClientNode['KubeConfig']>;

/** Reads the configuration of a cluster. Rejects with INVALID_ARGUMENT if there is none, or if it has no such context. */
export async function loadKubeConfig({ file, context, inCluster = false }: KubeConfigOptions): Promise<KubeConfigLike> {
  const inside = inCluster !== false;
  if (inside && file !== undefined) throw invalid('file', file, 'no file together with inCluster');
  const { KubeConfig } = await importClientNode();
  const config = new KubeConfig();
  try {
    if (inside) config.loadFromCluster(typeof inCluster === 'string' ? inCluster : undefined);
    else if (file !== undefined) config.loadFromFile(file);
    else config.loadFromDefault();
  } catch (cause) {
    const which = file ?? (inside ? 'the service account' : '$KUBECONFIG or ~/.kube/config');
    // client-node does not check the file's content, and stumbles over an empty one.
    const reason = cause instanceof TypeError ? 'it is not a kubeconfig' : (cause as Error).message;
    throw new WatchError('INVALID_ARGUMENT', `kubeconfig: cannot read ${which}: ${reason}`, { cause });
  }
  checkFound(config, inside);
  choose(config, context);
  return config;
}

/** client-node invents a server if it finds none. */
function checkFound(config: KubeConfig, inCluster: boolean): void {
  const { server = '' } = config.getClusters()?.[0] ?? {};
  const invented = config.getCurrentContext() === 'loaded-context' && server === 'http://localhost:8080';
  if (!invented && !server.includes('://undefined:')) return;
  const expected = inCluster
    ? 'KUBERNETES_SERVICE_HOST and _PORT'
    : '$KUBECONFIG, ~/.kube/config, or the service account of a pod';
  throw new WatchError('INVALID_ARGUMENT', `kubeconfig: expected ${expected}, found none`);
}

function choose(config: KubeConfig, context: string | undefined): void {
  if (context === undefined) return;
  const names = (config.getContexts() ?? []).map(({ name }) => name);
  if (!names.includes(context)) throw invalid('context', context, `one of ${names.join(', ') || 'none'}`);
  config.setCurrentContext(context);
}

/** It is optional, and large, so it is loaded late. */
async function importClientNode(): Promise<ClientNode> {
  try {
    return await import('@kubernetes/client-node');
  } catch (cause) {
    const message = 'reading a kubeconfig needs the package @kubernetes/client-node: npm install @kubernetes/client-node';
    // The second code is that of CommonJS, for which this is also built.
    if (!['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND'].includes((cause as NodeJS.ErrnoException).code ?? '')) throw cause;
    throw new WatchError('INVALID_ARGUMENT', message, { cause });
  }
}
