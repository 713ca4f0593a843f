// Clients that follow the ConfigMaps of a namespace, each behind a proxy of its own that cuts it off: programs of other languages,
// @kubernetes/client-node, and our own informer. Their stores, and what watchers among them were told, are compared at the end.
import { setTimeout as sleep } from 'node:timers/promises';
import { CoreV1Api, KubeConfig, type KubernetesObject, makeInformer, type V1ConfigMap, Watch } from '@kubernetes/client-node';
import { createListWatcher, Informer, type KubernetesObject as OurObject } from 'watchmux/cache';
import type { ClientProgram, Versions } from './client-program.ts';

/** A client that follows a collection. */
export interface Follower {
  /** What it has now. */
  store(): Promise<Versions>;
  /** What it was told of every change, such as `ADDED default/a 12`. Undefined for an informer: it may miss what a list makes good. */
  readonly told?: (() => readonly string[]) | undefined;
  end(): Promise<unknown>;
}

/** Where a follower finds its objects. */
export interface Followed {
  /** That of a proxy. */
  readonly url: string;
  readonly namespace: string;
  /** The version after which a watcher begins. */
  readonly from: string;
}

const RESTART_MS = 20;
const LIST_MS = 2_000;
const pathOf = ({ namespace }: Followed): string => `/api/v1/namespaces/${namespace}/configmaps`;

/** What has happened, in one line. */
export function toldOf(type: string, { metadata }: OurObject | KubernetesObject): string {
  return `${type} ${metadata?.namespace}/${metadata?.name} ${metadata?.resourceVersion}`;
}

/** Versions by `namespace/name`, in order. */
export function versionsOf(objects: Iterable<OurObject | KubernetesObject>): Versions {
  const entries = Array.from(objects, ({ metadata }): [string, string] => {
    return [`${metadata?.namespace}/${metadata?.name}`, `${metadata?.resourceVersion}`];
  });
  return Object.fromEntries(entries.sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** The informer of a program. */
export function programInformer(program: ClientProgram): Follower {
  return { store: () => program.dump(), end: () => program.end() };
}

/** The watcher of a program. */
export function programWatcher(program: ClientProgram): Follower {
  const told = (): string[] =>
    program
      .of('added', 'modified', 'deleted', 'error')
      .map(({ type, key, resourceVersion, code }) => `${type.toUpperCase()} ${key ?? code} ${resourceVersion ?? ''}`.trim());
  return { ...programInformer(program), told };
}

/** A configuration of client-node. It refuses plain HTTP unless it is told to check no certificate. */
export function configOf(server: string): KubeConfig {
  const config = new KubeConfig();
  config.loadFromOptions({
    clusters: [{ name: 'ours', server, skipTLSVerify: true }],
    users: [{ name: 'me' }],
    contexts: [{ name: 'ours', cluster: 'ours', user: 'me' }],
    currentContext: 'ours',
  });
  return config;
}

/**
 * client-node's informer. It ends with each error, and is to be started again. An answer that has a length and is cut off before never
 * settles there, as node-fetch 2 does not hear of it: so lists have a time.
 */
export function clientNodeInformer(followed: Followed): Follower {
  const config = configOf(followed.url);
  const core = config.makeApiClient(CoreV1Api);
  const list = (): Promise<{ items: V1ConfigMap[] }> => inTime(core.listNamespacedConfigMap({ namespace: followed.namespace }));
  const informer = makeInformer<V1ConfigMap>(config, pathOf(followed), list);
  let timer: NodeJS.Timeout | undefined;
  let ended = false;
  informer.on('error', () => {
    if (!ended) timer = setTimeout(() => void informer.start(), RESTART_MS);
  });
  void informer.start();
  return {
    store: async () => versionsOf(informer.list()),
    end: async () => {
      ended = true;
      clearTimeout(timer);
      await informer.stop();
    },
  };
}

async function inTime<T>(answer: Promise<T>): Promise<T> {
  const timer = new AbortController();
  const late = sleep(LIST_MS, undefined, { signal: timer.signal }).then(() => {
    throw new Error(`no list after ${LIST_MS} ms`);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    timer.abort();
    late.catch(() => {});
  }
}

/** client-node's Watch, which is one request: the next one begins where it has ended. */
export function clientNodeWatch(followed: Followed): Follower {
  const watch = new Watch(configOf(followed.url));
  const told: string[] = [];
  const objects = new Map<string, KubernetesObject>();
  let [last, ended, abort] = [followed.from, false, (): void => {}];
  const take = (type: string, object: KubernetesObject): void => {
    if (type === 'ERROR') told.push(`ERROR ${(object as { code?: number }).code}`);
    else last = object.metadata?.resourceVersion ?? last;
    if (type === 'ERROR' || type === 'BOOKMARK') return;
    told.push(toldOf(type, object));
    const name = object.metadata?.name ?? '';
    if (type === 'DELETED') objects.delete(name);
    else objects.set(name, object);
  };
  const once = (): Promise<void> =>
    new Promise((resolve) => {
      let over = false;
      const done = (): void => {
        over = true;
        resolve();
      };
      const query = { resourceVersion: last, allowWatchBookmarks: true };
      const hear = (type: string, object: KubernetesObject): void => {
        // The next request has begun: it tells this again.
        if (!over) take(type, object);
      };
      void watch.watch(pathOf(followed), query, hear, done).then((request) => {
        abort = () => request.abort();
        if (ended) abort();
      });
    });
  const run = async (): Promise<void> => {
    while (!ended) {
      await once();
      await sleep(RESTART_MS);
    }
  };
  const ran = run();
  return {
    store: async () => versionsOf(objects.values()),
    told: () => told,
    end: async () => {
      ended = true;
      abort();
      await ran;
    },
  };
}

/** Our own informer. */
export function ownInformer(followed: Followed): Follower {
  const source = createListWatcher<OurObject>(`${followed.url}${pathOf(followed)}`, { responseTimeoutMs: 5_000 });
  const informer = new Informer(source, { minMs: 20, maxMs: 200, onError: () => {} });
  void informer.run();
  return { store: async () => versionsOf(informer.store.list()), end: () => informer.stop() };
}
