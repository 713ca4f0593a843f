// Clients of others against our server, as they are: client-go, kube-rs, and @kubernetes/client-node; and ours beside them. Over memory
// and over a real etcd, through proxies that cut at any byte, while four writers write. At the end every store equals a fresh list, and
// watchers were told every change once and in order.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { KubernetesObjectApi, PatchStrategy, type V1ConfigMap } from '@kubernetes/client-node';
import { describe, expect, it } from 'vitest';
import { ApiServer, CONFIG_MAPS, type ConfigMap, LEASES, type Lease, type ResourceDefinition } from 'watchmux/apiserver';
import { createListWatcher, type KubernetesObject, type List } from 'watchmux/cache';
import { EtcdStorage } from 'watchmux/etcd';
import { MemoryStorage, type MemoryStorageOptions, type Storage } from 'watchmux/storage';
import { type Component, component, isMissing } from '../components.ts';
import { eventually, until } from '../eventually.ts';
import { runs } from '../runs.ts';
import { startTcpProxy, type TcpProxy } from '../tcp-proxy.ts';
import { ClientProgram, type ProgramLine } from './client-program.ts';
import { startEtcd } from './etcd-server.ts';
import {
  clientNodeInformer,
  clientNodeWatch,
  configOf,
  type Followed,
  type Follower,
  ownInformer,
  programInformer,
  programWatcher,
  toldOf,
  versionsOf,
} from './followers.ts';
import { faultsOf } from './lease-history.ts';
import { clientNodeWriter, MapWriters, plainWriter } from './map-writers.ts';
import { randomOf } from './proxy.ts';

const clientGo = component('client-go');
const kubeRs = component('kube-rs');
const missing = isMissing(clientGo);
const missingKubeRs = isMissing(kubeRs);
const missingEtcd = isMissing(component('kube-apiserver'));
const RUN_MS = 90_000;
const NAMESPACE = 'default';
const PREFIX = 'core/configmaps/';
/** How often each follower is cut off at least. A RetryWatcher waits a second each time. */
const CUTS = 5;
/** The longest that a connection lives, in bytes: more than a list of everything. */
const LIFE_BYTES = 30_000;
const CHANGES = runs(500, { least: 150 });
const TEXT = 'x'.repeat(500);
/** How kube-rs lists. */
const PAGES = ['--page-size', '5'];
const STREAM = '--streaming-list';
/** After which part of a list it is cut off: in the first page, in the second, and in the third. */
const CUT_AFTER = [0.2, 0.6, 0.95];

/** One server, and all that is to be ended after a test, the last first. */
class Rig {
  readonly api: ApiServer;
  readonly storage: Storage;
  /** Requests by the host that was asked: each follower has a proxy of its own. */
  readonly requests: Map<string, string[]> = new Map();
  /** How late the server sees a PUT. */
  putAfterMs: number = 0;
  readonly #http: Server;
  readonly #ends: (() => unknown)[] = [];

  constructor(storage: Storage, more: readonly ResourceDefinition[]) {
    this.storage = storage;
    this.api = new ApiServer({ storage, resources: [CONFIG_MAPS, LEASES, ...more] as readonly ResourceDefinition[] });
    this.#http = createServer((request, response) => {
      const { host = '', ...headers } = request.headers;
      this.requests.set(host, [...(this.requests.get(host) ?? []), `${request.url} ${headers['content-type'] ?? ''}`]);
      if (request.method === 'PUT' && this.putAfterMs > 0) setTimeout(this.api.handler, this.putAfterMs, request, response);
      else this.api.handler(request, response);
    });
  }

  static async start(
    kind: 'memory' | 'etcd',
    memory: MemoryStorageOptions = {},
    more: readonly ResourceDefinition[] = [],
  ): Promise<Rig> {
    const etcd = kind === 'etcd' ? await startEtcd() : undefined;
    const storage = etcd ? new EtcdStorage({ endpoints: [etcd.url] }) : new MemoryStorage(memory);
    const rig = new Rig(storage, more);
    rig.after(() => etcd?.stop());
    rig.after(() => storage.close());
    await rig.api.ready;
    await new Promise<void>((resolve) => void rig.#http.listen(0, '127.0.0.1', resolve));
    rig.after(async () => {
      await rig.api.shutdown();
      rig.#http.closeAllConnections();
      rig.#http.close();
    });
    return rig;
  }

  get port(): number {
    return (this.#http.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  after(end: () => unknown): void {
    this.#ends.push(end);
  }

  async end(): Promise<void> {
    for (const end of this.#ends.splice(0).reverse()) await end();
  }

  /** Starts a program: of what to do, the mode comes first. */
  program({ path }: Component, [mode = '', ...args]: readonly string[], server: string = this.url): ClientProgram {
    const program = new ClientProgram(path, [mode, '--server', server, '--namespace', NAMESPACE, ...args]);
    this.after(() => program.end());
    return program;
  }

  async proxy(): Promise<TcpProxy> {
    const proxy = await startTcpProxy(this.port);
    this.after(() => proxy.close());
    return proxy;
  }

  /** A fresh list. */
  list(): Promise<List<KubernetesObject>> {
    return createListWatcher<KubernetesObject>(`${this.url}/api/v1/namespaces/${NAMESPACE}/configmaps`).list();
  }

  /** Every change after a version, as the storage tells it. */
  async changes(resourceVersion: string): Promise<string[]> {
    const changes: string[] = [];
    const watch = await this.storage.scope<KubernetesObject>(PREFIX).watch({ resourceVersion });
    const read = (async () => {
      for await (const { type, object } of watch) changes.push(toldOf(type, object as KubernetesObject));
    })();
    this.after(async () => {
      await watch.return();
      await read;
    });
    return changes;
  }
}

type Start = (rig: Rig, followed: Followed) => Follower;

const FOLLOWERS: Readonly<Record<string, Start>> = {
  "client-go's informer, with WatchList": (rig, { url }) => programInformer(rig.program(clientGo, ['informer'], url)),
  "client-go's informer, without": (rig, { url }) =>
    programInformer(rig.program(clientGo, ['informer', '--watch-list=false'], url)),
  "client-go's informer of the dynamic client": (rig, { url }) =>
    programInformer(rig.program(clientGo, ['informer', '--dynamic'], url)),
  "client-go's RetryWatcher": (rig, { url, from }) =>
    programWatcher(rig.program(clientGo, ['retry-watcher', '--from', from], url)),
  "client-node's informer": (_, followed) => clientNodeInformer(followed),
  "client-node's Watch": (_, followed) => clientNodeWatch(followed),
  'our informer': (_, followed) => ownInformer(followed),
};

const KUBE_RS_FOLLOWERS: Readonly<Record<string, Start>> = {
  "kube-rs' watcher, with a list in pages": (rig, { url }) => programInformer(rig.program(kubeRs, ['reflector', ...PAGES], url)),
  "kube-rs' watcher, with a list as a stream": (rig, { url }) => programInformer(rig.program(kubeRs, ['reflector', STREAM], url)),
};

interface Running {
  readonly name: string;
  readonly proxy: TcpProxy;
  readonly follower: Follower;
}

async function follow(rig: Rig, from: string, seed: number): Promise<Running[]> {
  const random = randomOf(seed);
  const running: Running[] = [];
  const followers = missingKubeRs ? FOLLOWERS : { ...FOLLOWERS, ...KUBE_RS_FOLLOWERS };
  for (const [name, start] of Object.entries(followers)) {
    const proxy = await rig.proxy();
    proxy.cutAfter(() => 1 + Math.floor(random() * LIFE_BYTES));
    const follower = start(rig, { url: proxy.url, namespace: NAMESPACE, from });
    rig.after(() => follower.end());
    running.push({ name, proxy, follower });
  }
  return running;
}

/** Whether each list of a follower was a stream, by its requests. */
function listsOf(rig: Rig, { proxy }: Running): ('list' | 'stream')[] {
  const requests = rig.requests.get(new URL(proxy.url).host) ?? [];
  return requests.flatMap((url) =>
    url.includes('sendInitialEvents=true') ? ['stream'] : url.includes('watch=') ? [] : ['list'],
  );
}

async function matrix(kind: 'memory' | 'etcd'): Promise<void> {
  const rig = await Rig.start(kind);
  try {
    const from = (await rig.list()).resourceVersion;
    const changes = await rig.changes(from);
    const running = await follow(rig, from, 7);
    const typed = rig.program(clientGo, ['writer', '--seed', '7']);
    const apis = [
      plainWriter(rig.url, NAMESPACE),
      plainWriter(rig.url, NAMESPACE),
      clientNodeWriter(configOf(rig.url), NAMESPACE),
    ];
    const writers = new MapWriters(apis, 7);
    rig.after(() => writers.stop());
    await until(() => changes.length >= CHANGES);
    for (const { proxy } of running) await until(() => proxy.cuts >= CUTS);
    await writers.stop();
    expect(await typed.end(), typed.log).toBe(0);
    for (const { proxy } of running) proxy.cutAfter(undefined);
    const { items } = await rig.list();
    expect(items.length).toBeGreaterThan(3);
    for (const { name, follower } of running) {
      await eventually(async () => expect(await follower.store(), name).toEqual(versionsOf(items)));
      if (follower.told) await eventually(() => expect(follower.told?.(), name).toEqual(changes));
    }
    expect(writers.faults).toEqual([]);
    expect(typed.of('failed')).toEqual([]);
    expect(new Set(typed.of('wrote').map(({ verb }) => verb))).toEqual(new Set(['create', 'update', 'delete']));
    const [streaming, listing, dynamic] = running as [Running, Running, Running];
    // A stream that is cut off before its end makes client-go list; without WatchList it never asks for one.
    expect([streaming, dynamic].map((each) => listsOf(rig, each)[0])).toEqual(['stream', 'stream']);
    expect(new Set(listsOf(rig, listing))).toEqual(new Set(['list']));
    // kube-rs keeps to what it was told to do.
    const rust = running.filter(({ name }) => name in KUBE_RS_FOLLOWERS).map((each) => new Set(listsOf(rig, each)));
    expect(rust).toEqual(missingKubeRs ? [] : [new Set(['list']), new Set(['stream'])]);
    // The typed clients send nothing but protobuf.
    const sent = (rig.requests.get(new URL(rig.url).host) ?? []).filter((request) => request.endsWith('protobuf'));
    expect(sent.length).toBeGreaterThan(typed.of('wrote').length / 2);
  } finally {
    await rig.end();
  }
}

/** Who has begun to lead, and has not stopped. */
function leading(candidates: ReadonlyMap<string, ClientProgram>): string[] {
  return [...candidates]
    .filter(([, each]) => each.of('leading').length > each.of('stopped').length)
    .map(([identity]) => identity);
}

async function election(kind: 'memory' | 'etcd'): Promise<void> {
  const rig = await Rig.start(kind);
  // Longer than candidates wait between two looks: both have found the Lease free before one of them takes it.
  rig.putAfterMs = 700;
  try {
    const leases = rig.api.resource<Lease>('leases.coordination.k8s.io/v1').in(NAMESPACE);
    const history: Lease[] = [];
    const watch = await leases.watch({ resourceVersion: (await leases.list()).resourceVersion });
    const read = (async () => {
      for await (const { object } of watch) history.push(object as Lease);
    })();
    rig.after(async () => {
      await watch.return();
      await read;
    });
    const names = ['one', 'two', 'three'];
    const candidates = new Map(names.map((identity) => [identity, rig.program(clientGo, ['elect', '--identity', identity])]));
    const order: string[] = [];
    const elected = async (): Promise<ClientProgram> => {
      await until(() => leading(candidates).length > 0);
      const [leader = '', ...more] = leading(candidates);
      expect(more).toEqual([]);
      order.push(leader);
      const program = candidates.get(leader) as ClientProgram;
      candidates.delete(leader);
      return program;
    };
    const first = await elected();
    await until(() => history.length > 3);
    await first.kill();
    // Who is asked to end releases it, and nobody waits for the end of its time.
    const second = await elected();
    expect(await second.end(), second.log).toBe(0);
    expect(second.of('stopped')).toHaveLength(1);
    await elected();
    const holders = history.map(({ spec }) => spec?.holderIdentity ?? '').filter((each, at, all) => each !== all[at - 1]);
    expect(holders).toEqual([order[0], order[1], '', order[2]]);
    expect(faultsOf(history)).toEqual([]);
  } finally {
    await rig.end();
  }
}

async function expired(): Promise<void> {
  const rig = await Rig.start('memory', { maxHistoryItems: 20 });
  try {
    const { resourceVersion: from } = await rig.list();
    const proxy = await rig.proxy();
    const watcher = rig.program(clientGo, ['retry-watcher', '--from', from], proxy.url);
    const informer = rig.program(clientGo, ['informer'], proxy.url);
    const maps = rig.api.resource<ConfigMap>('configmaps/v1').in(NAMESPACE);
    await maps.create({ metadata: { name: 'a' } });
    await until(() => watcher.of('added').length === 1 && informer.of('added').length === 1);
    proxy.refuse(true);
    proxy.cutAll();
    for (let n = 0; n < 50; n++) await maps.patch('a', { data: { n: `${n}` } });
    proxy.refuse(false);
    await until(() => watcher.of('ended').length === 1);
    const shape = ({ type, code }: ProgramLine): unknown => [type, code];
    expect(watcher.lines.map(shape)).toEqual([
      ['added', undefined],
      ['error', 410],
      ['ended', undefined],
    ]);
    const { items } = await rig.list();
    await eventually(async () => expect(await informer.dump()).toEqual(versionsOf(items)));
  } finally {
    await rig.end();
  }
}

/** kube-rs, which is away for longer than changes are kept, and then cut off in the middle of its list. */
async function listedAgain(...args: readonly string[]): Promise<string[]> {
  const rig = await Rig.start('memory', { maxHistoryItems: 20 });
  try {
    const maps = rig.api.resource<ConfigMap>('configmaps/v1').in(NAMESPACE);
    for (let n = 0; n < 12; n++) await maps.create({ metadata: { name: `m${n}` }, data: { text: TEXT } });
    const proxy = await rig.proxy();
    const program = rig.program(kubeRs, ['reflector', ...args], proxy.url);
    const equal = async (): Promise<number> => {
      const { items } = await rig.list();
      await eventually(async () => expect(await program.dump()).toEqual(versionsOf(items)));
      return JSON.stringify(items).length;
    };
    const listBytes = await equal();
    for (const [round, part] of CUT_AFTER.entries()) {
      proxy.refuse(true);
      proxy.cutAll();
      const { cuts } = proxy;
      await maps.delete(`m${round}`);
      await maps.create({ metadata: { name: `n${round}` }, data: { text: TEXT } });
      for (let n = 0; n < 30; n++) await maps.patch('m11', { data: { n: `${n}` } });
      const lives = [Math.floor(part * listBytes)];
      proxy.cutAfter(() => lives.pop() ?? Number.POSITIVE_INFINITY);
      proxy.refuse(false);
      await equal();
      expect(proxy.cuts).toBe(cuts + 1);
      expect(program.of('error').filter(({ code }) => code === 410)).toHaveLength(round + 1);
    }
    expect(program.of('deleted').map(({ key }) => key)).toEqual(CUT_AFTER.map((_, round) => `${NAMESPACE}/m${round}`));
    return rig.requests.get(new URL(proxy.url).host) ?? [];
  } finally {
    await rig.end();
  }
}

/** What two managers have applied, of whom the second was refused until it used force. */
async function expectShared(
  rig: Rig,
  told: readonly Pick<ProgramLine, 'type' | 'code' | 'message' | 'resourceVersion'>[],
): Promise<void> {
  const conflict = { type: 'failed', code: 409, message: expect.stringContaining('conflict with "a": .data.of') };
  expect(told).toMatchObject([{ type: 'wrote' }, { type: 'wrote' }, conflict, { type: 'wrote' }]);
  expect(told[1]?.resourceVersion).toBe(told[0]?.resourceVersion);
  const { data, metadata } = await rig.api.resource<ConfigMap>('configmaps/v1').in(NAMESPACE).get('shared');
  expect(data).toEqual({ of: '2', a: 'x', b: 'x' });
  expect(metadata).toMatchObject({
    resourceVersion: told[3]?.resourceVersion,
    managedFields: [
      { manager: 'a', operation: 'Apply', fieldsV1: { 'f:data': { 'f:a': {} } } },
      { manager: 'b', operation: 'Apply', fieldsV1: { 'f:data': { 'f:b': {}, 'f:of': {} } } },
    ],
  });
}

/** The same by client-node's own call. */
async function appliedByClientNode(url: string): Promise<ProgramLine[]> {
  const api = KubernetesObjectApi.makeApiClient(configOf(url));
  const told: ProgramLine[] = [];
  for (const [manager, of, force] of [
    ['a', '1', false],
    ['a', '1', false],
    ['b', '2', false],
    ['b', '2', true],
  ] as const) {
    const map: V1ConfigMap = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'shared', namespace: NAMESPACE },
      data: { of, [manager]: 'x' },
    };
    const writing = api.patch(map, undefined, undefined, manager, force, PatchStrategy.ServerSideApply);
    told.push(
      await writing.then(
        ({ metadata }) => ({ type: 'wrote', resourceVersion: metadata?.resourceVersion ?? '' }),
        ({ code, body }: { code: number; body: string }) => ({
          type: 'failed',
          code,
          message: (JSON.parse(body) as ProgramLine).message ?? '',
        }),
      ),
    );
  }
  return told;
}

describe.concurrent('client-go, kube-rs and client-node, our server', () => {
  for (const kind of ['memory', 'etcd'] as const) {
    const skips = missing || (kind === 'etcd' && missingEtcd);
    it.skipIf(skips)(`over ${kind}: what every client has is what a fresh list says`, () => matrix(kind), RUN_MS);
    it.skipIf(skips)(`over ${kind}: one candidate leads at a time, and the next when it is gone`, () => election(kind), RUN_MS);
  }

  it.skipIf(missing)('a RetryWatcher that was away for too long hears 410, and an informer lists again', expired, RUN_MS);

  it.skipIf(missingKubeRs)(
    'kube-rs lists in pages again after 410, whichever of them is cut off',
    async () => {
      const requests = await listedAgain(...PAGES);
      expect(requests.filter((url) => url.includes('continue=')).length).toBeGreaterThanOrEqual(2 * (1 + CUT_AFTER.length));
    },
    RUN_MS,
  );

  it.skipIf(missingKubeRs)(
    'kube-rs streams its list again after 410, wherever it is cut off',
    async () => {
      const requests = await listedAgain(STREAM);
      expect(requests.every((url) => url.includes('watch='))).toBe(true);
      expect(requests.filter((url) => url.includes('sendInitialEvents=true'))).toHaveLength(1 + 2 * CUT_AFTER.length);
    },
    RUN_MS,
  );

  it.skipIf(missingKubeRs)(
    'kube-rs applies as two managers: a conflict is refused until it is forced, and the same again changes nothing',
    async () => {
      const rig = await Rig.start('memory');
      try {
        const program = rig.program(kubeRs, ['apply']);
        expect(await program.ended).toBe(0);
        await expectShared(rig, program.lines);
      } finally {
        await rig.end();
      }
    },
    RUN_MS,
  );

  it('client-node does the same', async () => {
    const rig = await Rig.start('memory');
    try {
      await expectShared(rig, await appliedByClientNode(rig.url));
    } finally {
      await rig.end();
    }
  });

  it.skipIf(missing)(
    'the scale client of client-go finds a Scale, and reads and writes it',
    async () => {
      const scale = {
        specReplicasPath: '.spec.ships',
        statusReplicasPath: '.status.ships',
        labelSelectorPath: '.status.selector',
      };
      const fleets = { group: 'example.com', version: 'v1', plural: 'fleets', kind: 'Fleet', scale } as const;
      const rig = await Rig.start('memory', {}, [fleets]);
      try {
        const fleet = { metadata: { name: 'a' }, spec: { ships: 2 }, status: { ships: 1, selector: 'ship=a' } };
        await rig.api
          .resource('fleets.example.com/v1')
          .in(NAMESPACE)
          .create(fleet as KubernetesObject);
        const program = rig.program(clientGo, ['scale', '--name', 'a']);
        await until(() => program.lines.length === 6);
        const wrote = { type: 'wrote', key: `${NAMESPACE}/a`, selector: 'ship=a' };
        expect(program.lines).toMatchObject([
          { ...wrote, verb: 'get', replicas: 2 },
          { ...wrote, verb: 'update', replicas: 3 },
          { type: 'failed', verb: 'update', code: 409 },
          { ...wrote, verb: 'patch', replicas: 5 },
          { type: 'failed', verb: 'update', code: 422 },
          { type: 'failed', verb: 'get', code: 404 },
        ]);
      } finally {
        await rig.end();
      }
    },
    RUN_MS,
  );

  it('whoever takes a Lease before its time is over is found, and so is a count that is wrong', () => {
    const held = (holderIdentity: string, seconds: number, leaseTransitions: number): Lease => {
      const at = new Date(seconds * 1_000).toISOString();
      return { spec: { holderIdentity, leaseTransitions, leaseDurationSeconds: 2, acquireTime: at, renewTime: at } };
    };
    expect(faultsOf([held('a', 0, 0), held('a', 1, 0), held('b', 3, 1), held('', 4, 1), held('c', 4, 2)])).toEqual([]);
    expect(faultsOf([held('a', 0, 0), held('a', 1, 0), held('b', 2, 1)])).toEqual(['b took it before a had lost it']);
    expect(faultsOf([held('a', 0, 0), held('b', 2, 0)])).toEqual(['b says 0 transitions after 0']);
  });
});
