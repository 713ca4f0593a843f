import type { KubeConfigLike } from '../../src/kubernetes/credentials.ts';
import type { Copy, Pod, StartCopy } from './copy.ts';

type ListPods = () => Promise<{ readonly items: Pod[] }>;

/** The parts of `@kubernetes/client-node` that are used. It is installed in bench/ only, and the project type-checks without it. */
interface ClientNode {
  readonly KubeConfig: new () => Config;
  readonly CoreV1Api: unknown;
  makeInformer(config: Config, path: string, list: ListPods): PodInformer;
}

interface Config extends KubeConfigLike {
  loadFromOptions(options: object): void;
  makeApiClient(api: unknown): { listPodForAllNamespaces: ListPods };
}

interface PodInformer {
  on(name: 'add' | 'update', callback: (pod: Pod) => void): void;
  on(name: 'error', callback: (error: unknown) => void): void;
  start(): Promise<void>;
  list(): readonly Pod[];
}

const PACKAGE: string = '@kubernetes/client-node';
const PATH = '/api/v1/pods';

/** It is loaded only for those who need it. */
export const importClientNode = async (): Promise<ClientNode> => (await import(PACKAGE)) as ClientNode;

export function configOf(make: ClientNode['KubeConfig'], url: string): Config {
  const config = new make();
  config.loadFromOptions({
    clusters: [{ name: 'bench', server: url, skipTLSVerify: true }],
    users: [{ name: 'bench' }],
    contexts: [{ name: 'bench', cluster: 'bench', user: 'bench' }],
    currentContext: 'bench',
  });
  return config;
}

function load(listOf: (peer: ClientNode, config: Config, url: string) => ListPods): () => Promise<StartCopy> {
  return async () => {
    const peer = await importClientNode();
    return ({ url, handler, fail }): Copy => {
      const config = configOf(peer.KubeConfig, url);
      const informer = peer.makeInformer(config, PATH, listOf(peer, config, url));
      informer.on('add', () => handler.onAdd());
      informer.on('update', (pod) => handler.onUpdate(pod));
      informer.on('error', fail);
      return { synced: informer.start(), pods: () => informer.list() };
    };
  };
}

/** As its documentation and its examples have it: the list function is that of the typed API. */
export const clientNode: () => Promise<StartCopy> = load(({ CoreV1Api }, config) => {
  const api = config.makeApiClient(CoreV1Api);
  return () => api.listPodForAllNamespaces();
});

/** With a list function of one's own, which gives the JSON as it came: the quickest that its users can make it. */
export const clientNodePlain: () => Promise<StartCopy> = load(
  (_peer, _config, url) => async () => (await (await fetch(url + PATH)).json()) as Awaited<ReturnType<ListPods>>,
);
