// What `watchmux get` asks: the collection at a URL, or that of a resource in the cluster of a kubeconfig.
import type { FetchLike } from '../../bridge/client.ts';
import { loadCluster } from '../../kubernetes/cluster.ts';
import { createNodeFetch, type NodeFetch } from '../../kubernetes/node-fetch.ts';
import type { Target } from '../../pages/table.ts';
import { isWatchError } from '../../watch/errors.ts';
import { UsageError } from '../args.ts';
import type { GetCommand } from './get-args.ts';

/** Finds the collection. Throws a {@link UsageError} if there is none. */
export async function findTarget(command: GetCommand, signal: AbortSignal): Promise<Target> {
  const { target, headers } = command;
  if (target instanceof URL) {
    const fetch = withHeaders(
      createNodeFetch(() => ({})),
      headers,
    ); // with the connections that Node keeps
    return { url: target, fetch, manyNamespaces: !target.pathname.includes('/namespaces/') };
  }
  const { file, context, namespace, allNamespaces, responseTimeoutMs } = command;
  try {
    const cluster = await loadCluster({ file, context, responseTimeoutMs });
    const resource = await cluster.find(target, { signal });
    const inside = resource.type.namespaced && !allNamespaces;
    const { url } = inside ? resource.in(namespace ?? cluster.namespace) : resource;
    return { url, fetch: withHeaders(cluster.fetch, headers), manyNamespaces: !inside && resource.type.namespaced === true };
  } catch (error) {
    if (isWatchError(error, 'INVALID_ARGUMENT')) throw new UsageError(said(error.message), 'get');
    throw error;
  }
}

/** The command line calls some things differently. */
function said(message: string): string {
  if (message.startsWith('kubeconfig: expected')) return `${message}: name one with --kubeconfig, or give a URL`;
  return message
    .replace(/: npm install (\S+)$/, ': npm install $1, beside watchmux; or run npx -p watchmux -p $1 watchmux get')
    .replace(/^resource: expected one that the server has, got/, 'the server has no resource')
    .replace(/^context:/, '--context:');
}

function withHeaders(fetch: NodeFetch, headers: Readonly<Record<string, string>>): FetchLike {
  return (url, init) => fetch(url, { ...init, headers: { ...init.headers, ...headers } });
}
