// The informers that are compared, each behind a proxy of its own.

import { createListWatcher } from '../../src/cache/http/http-list-watcher.ts';
import { Informer } from '../../src/cache/informer/informer.ts';
import type { Handler } from '../../src/cache/informer/informer-options.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';

/** Something was told to the handler. */
export type Tell = (what: 'there' | 'gone', object: KubernetesObject) => void;

/** A live copy of a collection. */
export interface Copy {
  objects(): Iterable<KubernetesObject>;
  stop(): Promise<void>;
}

interface CopyOptions {
  /** Of the proxy. */
  readonly url: string;
  readonly namespace: string;
  readonly plural: 'secrets' | 'configmaps';
  readonly idleTimeoutMs: number | undefined;
  readonly tell: Tell;
}

export interface Contender {
  readonly name: string;
  start(options: CopyOptions): Promise<Copy>;
}

const RESTART_MS = 5_000;

/** With the defaults of everything, but for its handler, which wants every change: by default, those of an object that wait become one. */
const watchmux: Contender = {
  name: 'watchmux',
  async start({ url, namespace, plural, idleTimeoutMs, tell }) {
    const source = createListWatcher(`${url}/api/v1/namespaces/${namespace}/${plural}`);
    const informer = new Informer(source, { idleTimeoutMs });
    const handler: Handler<KubernetesObject> = {
      onAdd: (object) => tell('there', object),
      onUpdate: (_, object) => tell('there', object),
      onDelete: (object) => tell('gone', object),
    };
    informer.addHandler(handler, { overflow: 'disconnect', capacity: 10_000 });
    const stopped = informer.run();
    return {
      objects: () => informer.store.list(),
      stop: async () => {
        await informer.stop();
        await stopped;
      },
    };
  },
};

type List = (selection: { readonly namespace: string }) => Promise<unknown>;

/** The parts of `@kubernetes/client-node` that are used. It is installed in bench/ only, and the project type-checks without it. */
interface ClientNode {
  readonly KubeConfig: new () => Config;
  readonly CoreV1Api: unknown;
  makeInformer(config: Config, path: string, list: () => Promise<unknown>): PeerInformer;
}

interface Config {
  loadFromOptions(options: object): void;
  makeApiClient(api: unknown): { readonly listNamespacedSecret: List; readonly listNamespacedConfigMap: List };
}

interface PeerInformer {
  on(name: 'add' | 'update' | 'delete', callback: (object: KubernetesObject) => void): void;
  on(name: 'error', callback: (error: unknown) => void): void;
  start(): Promise<void>;
  stop(): Promise<void>;
  list(): readonly KubernetesObject[];
}

const PACKAGE: string = '@kubernetes/client-node';

/** With the list function of the typed API, as its documentation has it. */
async function startPeer({ url, namespace, plural, tell }: CopyOptions, restartMs: number | undefined): Promise<Copy> {
  const peer = (await import(PACKAGE)) as ClientNode;
  const config = new peer.KubeConfig();
  config.loadFromOptions({
    clusters: [{ name: 'bench', server: url, skipTLSVerify: true }],
    users: [{ name: 'bench' }],
    contexts: [{ name: 'bench', cluster: 'bench', user: 'bench' }],
    currentContext: 'bench',
  });
  const api = config.makeApiClient(peer.CoreV1Api);
  const list = (): Promise<unknown> =>
    plural === 'secrets' ? api.listNamespacedSecret({ namespace }) : api.listNamespacedConfigMap({ namespace });
  const informer = peer.makeInformer(config, `/api/v1/namespaces/${namespace}/${plural}`, list);
  informer.on('add', (object) => tell('there', object));
  informer.on('update', (object) => tell('there', object));
  informer.on('delete', (object) => tell('gone', object));
  const timers = new Set<NodeJS.Timeout>();
  informer.on('error', () => {
    if (restartMs !== undefined) timers.add(setTimeout(() => void informer.start(), restartMs));
  });
  void informer.start();
  return {
    objects: () => informer.list(),
    stop: async () => {
      for (const timer of timers) clearTimeout(timer);
      await informer.stop();
    },
  };
}

export const CONTENDERS: readonly Contender[] = [
  watchmux,
  { name: 'client-node, started again after errors', start: (options) => startPeer(options, RESTART_MS) },
  { name: 'client-node', start: (options) => startPeer(options, undefined) },
];
