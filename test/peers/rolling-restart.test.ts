// A rolling restart: three API servers on one etcd, each ended with SIGTERM and replaced, one after the other, while writers write
// through a balancer. No watcher gets a 410, misses an event or gets one twice, no informer lists again, and those of a server
// that leaves go to both of the others.
import { afterEach, describe, expect, it } from 'vitest';
import { createListWatcher, Informer, type KubernetesObject, type ListWatcher, RetryWatcher } from '../../src/cache/index.ts';
import { checkLinearizable } from '../../src/testing/index.ts';
import { component, isMissing } from '../components.ts';
import { eventually, until } from '../eventually.ts';
import { startTcpProxy } from '../tcp-proxy.ts';
import { ClientProgram } from './client-program.ts';
import { startEtcd } from './etcd-server.ts';
import { programWatcher } from './followers.ts';
import { HttpWriters, keepHistory } from './http-writers.ts';
import { type Replica, startReplicas } from './replica.ts';
import { WatchLog } from './watch-log.ts';

const missing = isMissing(component('kube-apiserver'));
const CLIENT_GO = component('client-go');
const COLLECTION = '/api/v1/namespaces/default/configmaps';
const WATCHERS = 12;
const INFORMERS = 6;
/** Writes between two restarts. */
const WRITES = 20;

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
}, 60_000);

const versionsOf = (items: readonly KubernetesObject[]): string[] =>
  items.map(({ metadata }) => `${metadata?.name}@${metadata?.resourceVersion}`).sort();

/** A source that counts how often it was asked for the state: by a list, or by a watch that begins with it. */
function counted(url: string): { source: ListWatcher<KubernetesObject>; lists: () => number } {
  const source = createListWatcher<KubernetesObject>(url, { responseTimeoutMs: 5_000 });
  let lists = 0;
  return {
    source: {
      list: (options) => {
        if (options?.limit !== 1) lists++; // a list of one object asks only for the server's version
        return source.list(options);
      },
      watch: (options) => {
        if (options?.sendInitialEvents) lists++;
        return source.watch(options);
      },
    },
    lists: () => lists,
  };
}

/** How many watches of ConfigMaps a server has open. */
async function watchesAt({ url }: Replica): Promise<number> {
  const { resources } = (await (await fetch(`${url}/stats`)).json()) as { resources: { resource: string; watchers: number }[] };
  return resources.find(({ resource }) => resource === 'configmaps')?.watchers ?? 0;
}

describe.skipIf(missing)('a rolling restart of three servers', () => {
  it('no watcher loses or repeats an event, none hears 410, and clients spread out', async () => {
    const etcd = await startEtcd();
    closing.push(() => etcd.stop());
    const replicas = await startReplicas(3, [etcd.port]);
    closing.push(() => Promise.all(replicas.map((replica) => replica.stop())));
    const balancer = await startTcpProxy(...replicas.map(({ port }) => port));
    closing.push(() => balancer.close());
    const url = `${balancer.url}${COLLECTION}`;

    const { resourceVersion } = await counted(url).source.list();
    const logs = Array.from({ length: WATCHERS }, () => {
      const watch = new RetryWatcher(counted(url).source, { resourceVersion, minMs: 20, maxMs: 500, onError: () => {} });
      return new WatchLog(watch, resourceVersion);
    });
    closing.push(() => Promise.all(logs.map((log) => log.end())));
    const sources = Array.from({ length: INFORMERS }, () => counted(url));
    const informers = sources.map(({ source }) => new Informer(source, { minMs: 20, maxMs: 500, onError: () => {} }));
    for (const informer of informers) void informer.run();
    closing.push(() => Promise.all(informers.map((informer) => informer.stop())));
    const others = (isMissing(CLIENT_GO) ? [] : [1, 2]).map(() => {
      const args = ['retry-watcher', '--server', balancer.url, '--namespace', 'default', '--from', resourceVersion];
      return programWatcher(new ClientProgram(CLIENT_GO.path, args));
    });
    closing.push(() => Promise.all(others.map((other) => other.end())));
    await Promise.all(informers.map(({ synced }) => synced));

    const clients = WATCHERS + INFORMERS + others.length;
    const open = async (at: readonly Replica[]): Promise<number[]> => Promise.all(at.map(watchesAt));
    const writers = new HttpWriters(url, { writers: 4, keys: 12, seed: 5, pauseMs: 15 });
    closing.push(() => writers.stop());
    for (const replica of replicas) {
      const before = writers.written.length;
      await until(() => writers.written.length > before + WRITES);
      expect(await replica.end('SIGTERM')).toBe(0);
      const left = replicas.filter((each) => each !== replica);
      await until(async () => (await open(left)).reduce((a, b) => a + b) === clients);
      expect(Math.min(...(await open(left))), 'nobody gets all of them').toBeGreaterThan(1);
      await replica.start();
      await until(() => replica.isReady());
    }
    const before = writers.written.length;
    await until(() => writers.written.length > before + WRITES);
    await writers.stop();

    const fresh = await Promise.all(replicas.map((replica) => counted(`${replica.url}${COLLECTION}`).source.list()));
    const state = versionsOf(fresh[0]?.items ?? []);
    expect(fresh.map(({ items }) => versionsOf(items))).toEqual([state, state, state]);
    for (const log of logs) {
      await eventually(() => expect([log.error, log.versions]).toEqual([undefined, state]));
      expect(log.faults).toEqual([]);
      expect(writers.written.filter(({ name, version }) => log.seen.get(version) !== name)).toEqual([]);
      expect([...log.seen]).toEqual([...(logs[0]?.seen ?? [])]);
    }
    for (const informer of informers) {
      await eventually(() => expect(versionsOf(informer.store.list())).toEqual(state));
    }
    expect(sources.map(({ lists }) => lists())).toEqual(sources.map(() => 1));
    const events = [...(logs[0]?.seen ?? [])].map(([version, name]) => `default/${name} ${version}`);
    for (const other of others) {
      const told = (): string[] => (other.told?.() ?? []).map((each) => each.replace(/^(ADDED|MODIFIED|DELETED) /, ''));
      await eventually(() => expect(told()).toEqual(events));
    }
    const violation = checkLinearizable({ requests: writers.history });
    const file = violation && keepHistory('rolling-restart', violation, writers.history);
    expect(violation, `the requests are in ${file}`).toBeUndefined();
    expect(writers.written.length).toBeGreaterThan(4 * WRITES);
  }, 90_000);
});
