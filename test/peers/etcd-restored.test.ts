// An etcd that was restored from a snapshot, with etcd's own tool: with revisions that were given before, for other changes, or with such
// that leave out a thousand million. What was there when a client last looked and is not there now must be no ghost: an informer on the storage,
// one on a cache of it, and client-go's on a server of it.
import { afterEach, describe, expect, it } from 'vitest';
import { ApiServer, CONFIG_MAPS } from '../../src/apiserver/index.ts';
import { Informer, type KubernetesObject } from '../../src/cache/index.ts';
import { EtcdStorage } from '../../src/storage/etcd/index.ts';
import { Cacher } from '../../src/storage/index.ts';
import { component, isMissing } from '../components.ts';
import { eventually } from '../eventually.ts';
import { listening } from '../listening.ts';
import { startTcpProxy, type TcpProxy } from '../tcp-proxy.ts';
import { ClientProgram } from './client-program.ts';
import { type EtcdServer, startEtcd } from './etcd-server.ts';
import { versionsOf } from './fold.ts';

const clientGo = component('client-go');
const missing = isMissing(component('kube-apiserver')) || isMissing(component('etcdutl'));
const PREFIX = 'core/configmaps/default/';
const RUN_MS = 90_000;
const LOST = 10;
const BUMPED = ['--bump-revision', '1000000000', '--mark-compacted'];

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
}, RUN_MS);

const map = (name: string): KubernetesObject => ({
  ...{ apiVersion: 'v1', kind: 'ConfigMap' },
  metadata: { name, namespace: 'default', uid: name },
});

interface Rig {
  readonly etcd: EtcdServer;
  readonly snapshot: string;
  readonly proxy: TcpProxy;
  readonly direct: () => EtcdStorage;
  /** What each client has: versions by key. */
  readonly seen: () => Promise<Record<string, unknown>>;
}

/** With so many objects that are not in the snapshot, and that clients see in their first list. */
async function start(lost: number): Promise<Rig> {
  const etcd = await startEtcd();
  closing.push(() => etcd.stop());
  const proxy = await startTcpProxy(etcd.port);
  closing.push(() => proxy.close());
  const open = (url: string): EtcdStorage => {
    const storage = new EtcdStorage({ endpoints: [url], onError: () => {} });
    closing.push(() => storage.close());
    return storage;
  };
  const before = open(etcd.url).scope(PREFIX);
  await before.create('kept', map('kept'));
  const snapshot = await etcd.snapshot();
  for (let n = 0; n < lost; n++) await before.create(`lost${n}`, map(`lost${n}`));
  const storage = open(proxy.url);
  const cacher = new Cacher(open(proxy.url).scope(PREFIX), { onError: () => {} });
  closing.push(() => cacher.close());
  const informers = [storage.scope(PREFIX), cacher].map((source) => {
    const informer = new Informer(source, { minMs: 50, maxMs: 500, onError: () => {} });
    closing.push(() => informer.stop());
    void informer.run();
    return informer;
  });
  const api = new ApiServer({ storage: open(proxy.url), resources: [CONFIG_MAPS], onError: () => {} });
  const { url, close } = await listening(api);
  closing.push(close);
  const program = isMissing(clientGo)
    ? undefined
    : new ClientProgram(clientGo.path, ['informer', '--server', url, '--namespace', 'default']);
  if (program) closing.push(() => program.end());
  const seen = async (): Promise<Record<string, unknown>> => ({
    'on etcd': versionsOf(informers[0]?.store.list() ?? []),
    'on a cache': versionsOf(informers[1]?.store.list() ?? []),
    ...(program && { 'client-go': await program.dump() }),
  });
  return { etcd, snapshot, proxy, direct: () => open(etcd.url), seen };
}

const allHave = (there: readonly KubernetesObject[]): unknown => {
  const versions = versionsOf(there);
  return { 'on etcd': versions, 'on a cache': versions, ...(!isMissing(clientGo) && { 'client-go': versions }) };
};

describe.skipIf(missing)('an etcd that was restored from a snapshot', () => {
  it.each([
    ['with revisions of before, and is behind', [], false, 1],
    ['with revisions of before, and is beyond', [], false, 40],
    ['with revisions of before, and is beyond, for clients that had seen no event', [], true, 40],
    ['with new revisions', BUMPED, false, 1],
    ['with new revisions, for clients that had seen no event', BUMPED, true, 1],
  ])(
    '%s: no client keeps what is gone',
    async (_, flags, isQuiet, later) => {
      const { etcd, snapshot, proxy, direct, seen } = await start(isQuiet ? LOST : 0);
      const before = direct().scope(PREFIX);
      await eventually(async () => expect(await seen()).toEqual(allHave((await before.list()).items)));
      if (!isQuiet) for (let n = 0; n < LOST; n++) await before.create(`lost${n}`, map(`lost${n}`));
      await eventually(async () => expect(await seen()).toEqual(allHave((await before.list()).items)));
      proxy.refuse(true);
      proxy.cutAll();
      await etcd.restart(snapshot, flags);
      const after = direct().scope(PREFIX);
      for (let n = 0; n < later; n++) await after.create(`new${n}`, map(`new${n}`));
      proxy.refuse(false);
      await eventually(async () => expect(await seen()).toEqual(allHave((await after.list()).items)));
      await after.create('newer', map('newer'));
      await eventually(async () => expect(await seen()).toEqual(allHave((await after.list()).items)));
    },
    RUN_MS,
  );
});
