// Three API servers on an etcd of three members, informers and watches behind a balancer, and eight writers, while everything fails
// that can: processes are killed and paused, members and servers are cut off, connections break, history is compacted. In the end
// every informer equals a fresh list, every watch has seen every answered write once and in order or was told 410, and all writes and
// reads fit into one order. A history that does not is kept in reports/histories/.
//
// The long run, with informers of client-go and reflectors of kube-rs among the 200:
//   WATCHMUX_REPLICAS_MS=600000 WATCHMUX_REPLICAS_INFORMERS=130 WATCHMUX_REPLICAS_CLIENT_GO=40 WATCHMUX_REPLICAS_KUBE_RS=30 \
//     WATCHMUX_REPLICAS_SEED=7 npx vitest run test/peers/replicas.test.ts
import { setMaxListeners } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import { createListWatcher, Informer, type KubernetesObject } from '../../src/cache/index.ts';
import { checkLinearizable } from '../../src/testing/index.ts';
import { component, isMissing } from '../components.ts';
import { eventually, until } from '../eventually.ts';
import { startTcpProxy, type TcpProxy } from '../tcp-proxy.ts';
import { ClientProgram } from './client-program.ts';
import { type EtcdCluster, startEtcdCluster } from './etcd-cluster.ts';
import { HttpWriters, keepHistory } from './http-writers.ts';
import { randomOf } from './proxy.ts';
import { type Replica, startReplicas } from './replica.ts';
import { WatchLogs } from './watch-log.ts';

const missing = isMissing(component('kube-apiserver'));
const { env } = process;
const LONG_MS = Number(env.WATCHMUX_REPLICAS_MS ?? 0);
const INFORMERS = Number(env.WATCHMUX_REPLICAS_INFORMERS ?? 12);
/** Processes of client-go, which wait up to 30 s after failures: only in runs that last. */
const CLIENT_GO = Number(env.WATCHMUX_REPLICAS_CLIENT_GO ?? 0);
/** Processes of kube-rs: each other of them lists by a stream. */
const KUBE_RS = Number(env.WATCHMUX_REPLICAS_KUBE_RS ?? 0);
/** Between two requests of a writer. */
const PAUSE_MS = Number(env.WATCHMUX_REPLICAS_PAUSE_MS ?? (LONG_MS > 0 ? 120 : 25));
const SEED = Number(env.WATCHMUX_REPLICAS_SEED ?? 3);
/** Revisions that a compaction leaves, most of the time: others leave some minutes. */
const KEPT = 500;
const COLLECTION = '/api/v1/namespaces/default/configmaps';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
}, 60_000);

interface Stage {
  readonly cluster: EtcdCluster;
  readonly replicas: readonly Replica[];
  readonly balancer: TcpProxy;
}

async function open(): Promise<Stage> {
  const cluster = await startEtcdCluster(3);
  closing.push(() => cluster.stop());
  const replicas = await startReplicas(
    3,
    cluster.members.map(({ port }) => port),
  );
  closing.push(() => Promise.all(replicas.map((replica) => replica.stop())));
  const balancer = await startTcpProxy(...replicas.map(({ port }) => port));
  closing.push(() => balancer.close());
  return { cluster, replicas, balancer };
}

type Fault = (random: () => number) => Promise<void>;

/**
 * Everything that can go wrong. Each fault ends before the next one begins, so that two of three members are there at any time. A fault
 * lasts for a number of writes, which the others carry on with.
 */
function faultsOf({ cluster, replicas, balancer }: Stage, writers: HttpWriters): Readonly<Record<string, Fault>> {
  const writes = async (least: number, more: number, random: () => number): Promise<void> => {
    const enough = writers.written.length + least + Math.floor(more * random());
    await until(() => writers.written.length >= enough);
  };
  const one = <T>(all: readonly T[], random: () => number): T => all[Math.floor(random() * all.length)] as T;
  return {
    'a replica is killed': async (random) => {
      const replica = one(replicas, random);
      await replica.end('SIGKILL');
      await writes(0, 20, random);
      await replica.start();
    },
    'a replica is told to end, and replaced': async (random) => {
      const replica = one(replicas, random);
      expect(await replica.end('SIGTERM')).toBe(0);
      await replica.start();
    },
    'a replica is paused': async (random) => {
      const replica = one(replicas, random);
      replica.pause();
      await writes(10, 50, random);
      replica.resume();
    },
    'a replica is cut off from the etcd': async (random) => {
      const replica = one(replicas, random);
      replica.partition(true, random() < 0.5);
      await writes(10, 40, random);
      replica.partition(false);
    },
    'a member is killed': async (random) => {
      const member = one(cluster.members, random);
      await member.kill();
      await writes(0, 20, random);
      await member.start();
      await cluster.ready();
    },
    'a member is paused': async (random) => {
      const member = one(cluster.members, random);
      member.pause();
      await writes(10, 50, random);
      member.resume();
      await cluster.ready();
    },
    'a member is cut off from the others': async (random) => {
      cluster.isolate(Math.floor(3 * random()));
      await writes(15, 50, random);
      cluster.heal();
      await cluster.ready();
    },
    'every connection of clients is cut': async () => balancer.cutAll(),
    'history is compacted': async (random) => {
      await one(cluster.members, random)
        .compact(random() < 0.25 ? 0 : KEPT)
        .catch(() => {});
    },
  };
}

describe.skipIf(missing)('three replicas on an etcd of three members', () => {
  it(
    'whatever fails: informers equal a fresh list, watches saw every write or were told 410, requests fit into one order',
    async () => {
      const stage = await open();
      const { cluster, replicas, balancer } = stage;
      const random = randomOf(SEED);
      const collection = `${balancer.url}${COLLECTION}`;
      const source = (url = collection, responseTimeoutMs = 5_000): ReturnType<typeof createListWatcher<KubernetesObject>> =>
        createListWatcher<KubernetesObject>(url, { responseTimeoutMs });
      const { resourceVersion } = await source().list();
      const stop = new AbortController();
      setMaxListeners(0, stop.signal);
      const informers = Array.from(
        { length: INFORMERS },
        () => new Informer<KubernetesObject>(source(), { onError: () => {}, minMs: 100, maxMs: 2_000 }),
      );
      const runs = informers.map((informer) => informer.run(stop.signal));
      closing.push(async () => {
        stop.abort();
        await Promise.all(runs);
      });
      const logs = Array.from({ length: Math.max(4, INFORMERS / 10) }, () => new WatchLogs(source(), resourceVersion));
      closing.push(() => Promise.all(logs.map((log) => log.end())));
      const programs = startPrograms(balancer.url);
      closing.push(() => Promise.all(programs.map((program) => program.end())));
      await Promise.all(informers.map(({ synced }) => synced));
      for (const replica of replicas) await until(() => replica.isReady());
      const opened = await cluster.watchers(); // one for each kind that a replica caches
      expect([opened % replicas.length, opened > replicas.length]).toEqual([0, true]);
      for (const program of programs) await until(() => program.of('synced').length > 0);
      const writers = new HttpWriters(collection, { writers: 8, keys: 24, seed: SEED, pauseMs: PAUSE_MS });
      closing.push(() => writers.stop());

      const faults = Object.entries(faultsOf(stage, writers));
      const endMs = performance.now() + LONG_MS;
      const counts: Record<string, number> = {};
      for (let round = 0; round === 0 || performance.now() < endMs; round++) {
        for (const [name, fault] of [...faults].sort(() => random() - 0.5)) {
          if (round > 0 && performance.now() > endMs) break;
          counts[name] = (counts[name] ?? 0) + 1;
          await fault(random);
          const before = writers.written.length;
          await until(() => writers.written.length > before + 5).catch(async (error: unknown) => {
            const states = await Promise.all(replicas.map((replica) => replica.describe()));
            throw new Error(`${error}\n${JSON.stringify([...writers.answers])}\n${states.join('\n')}`);
          });
        }
      }
      await writers.stop();
      for (const replica of replicas) await until(() => replica.isReady());

      // The same list, at versions that mean the same, wherever one asks; and one storage watch per resource and replica.
      const lists = await Promise.all(replicas.map(({ url }) => source(`${url}${COLLECTION}`, 30_000).list()));
      const texts = lists.map(({ items }) => versionsOf(items));
      expect(texts[1]).toEqual(texts[0]);
      expect(texts[2]).toEqual(texts[0]);
      await until(async () => (await cluster.watchers()) === opened);
      for (const informer of informers) {
        await until(() => same(versionsOf(informer.store.list()), texts[0] ?? []));
      }
      const inProgram = Object.fromEntries(
        lists[0]?.items.map(({ metadata }) => [nameOf(metadata), metadata?.resourceVersion]) ?? [],
      );
      for (const program of programs) {
        await eventually(async () => expect(await program.dump()).toEqual(inProgram), { intervalMs: 200 });
      }
      for (const log of logs) {
        await until(() => same(log.last.versions, texts[0] ?? []));
        for (const { error, faults } of log.all) expect([error === undefined || error === 410, faults]).toEqual([true, []]);
        const unseen = log.all.flatMap((each) =>
          writers.written.filter(({ name, version }) => each.covers(version) && each.seen.get(version) !== name),
        );
        expect(unseen).toEqual([]);
      }
      const told410 = logs.map((log) => log.all.length - 1);
      const violation = checkLinearizable({ requests: writers.history });
      const file = violation && keepHistory(`replicas-${SEED}`, violation, writers.history);
      expect(violation, `the requests are in ${file}`).toBeUndefined();
      const { history, written, unknown } = writers;
      const figures = {
        faults: counts,
        requests: history.length,
        written: written.length,
        unknown,
        watches: logs.length,
        told410,
        informers: INFORMERS,
        clientGo: CLIENT_GO,
        kubeRs: KUBE_RS,
      };
      console.log(`replicas: ${JSON.stringify({ ...figures, connections: balancer.connections, seed: SEED })}`);
      expect(written.length).toBeGreaterThan(100);
    },
    LONG_MS + 120_000,
  );
});

function startPrograms(url: string): ClientProgram[] {
  const at = ['--server', url, '--namespace', 'default'];
  const clientGo = Array.from({ length: CLIENT_GO }, () => ['client-go', 'informer', ...at] as const);
  const kubeRs = Array.from(
    { length: KUBE_RS },
    (_, i) => ['kube-rs', 'reflector', ...at, ...(i % 2 === 0 ? [] : ['--streaming-list'])] as const,
  );
  return [...clientGo, ...kubeRs].map(([name, ...args]) => new ClientProgram(component(name).path, args));
}

function nameOf(metadata: KubernetesObject['metadata']): string {
  return `${metadata?.namespace}/${metadata?.name}`;
}

function versionsOf(items: readonly KubernetesObject[]): string[] {
  return items.map(({ metadata }) => `${metadata?.name}@${metadata?.resourceVersion}`).sort();
}

function same(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((each, at) => each === other[at]);
}
