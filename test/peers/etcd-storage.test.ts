// What only a storage on etcd does, against a real one: leases, users, TLS, values of others, large answers, progress.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { KubernetesObject } from '../../src/cache/index.ts';
import type { Watch } from '../../src/index.ts';
import { EtcdStorage, type EtcdStorageOptions } from '../../src/storage/etcd/index.ts';
import type { Storage, StorageEvent } from '../../src/storage/index.ts';
import { continueAfter } from '../../src/storage/requests.ts';
import { component, isMissing } from '../components.ts';
import { certify } from '../unit/certificates.ts';
import { type EtcdServer, type EtcdServerOptions, startEtcd } from './etcd-server.ts';

const missing = isMissing(component('kube-apiserver'));
const START_MS = 60_000;

interface Thing extends KubernetesObject {
  readonly data?: unknown;
}

let etcd: EtcdServer;
let scopes = 0;
const closing: (() => Promise<void> | void)[] = [];

beforeAll(async () => {
  if (!missing) etcd = await startEtcd({ progress: '300ms' });
}, START_MS);
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});
afterAll(() => etcd?.stop(), START_MS);

function open(options: Partial<EtcdStorageOptions> = {}): { storage: Storage<Thing>; prefix: string } {
  const prefix = `/own-${scopes++}/`;
  const storage = new EtcdStorage<Thing>({ endpoints: [etcd.url], prefix, ...options });
  closing.push(() => storage.close());
  return { storage: storage.scope<Thing>('things/'), prefix: `${prefix}things/` };
}

async function another(options: EtcdServerOptions): Promise<EtcdServer> {
  const server = await startEtcd(options);
  closing.push(() => server.stop());
  return server;
}

const thing = (name: string, data?: unknown): Thing => ({ metadata: { name }, ...(data !== undefined && { data }) });

async function next(watch: Watch<StorageEvent<Thing>>): Promise<StorageEvent<Thing>> {
  const { value, done } = await watch.next();
  if (done) throw new Error('the watch has ended');
  return value;
}

describe.skipIf(missing)('a storage on a real etcd', () => {
  it('RunTestCreateWithTTL: an object with a time to live is DELETED by itself, one that is updated without lives on', async () => {
    const { storage, prefix } = open();
    const kept = await storage.create('kept', thing('kept', 1), { ttlSeconds: 600 });
    const { kvs } = await etcd.json('/v3/kv/range', { key: btoa(`${prefix}kept`) });
    const updated = await storage.update('kept', () => thing('kept', 2));
    await etcd.json('/v3/lease/revoke', { ID: kvs[0].lease });
    await storage.create('short', thing('short'), { ttlSeconds: 1 });
    const watch = await storage.watch({ resourceVersion: updated.metadata?.resourceVersion });
    expect(await next(watch)).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'short' } } });
    expect(await next(watch)).toMatchObject({
      type: 'DELETED',
      object: { metadata: { name: 'short' } },
      previous: { metadata: { name: 'short' } },
    });
    await watch.return();
    expect(kept.metadata?.resourceVersion).not.toBe(updated.metadata?.resourceVersion);
    expect((await storage.list()).items.map(({ data }) => data)).toEqual([2]);
  });

  it('TestLeaseMaxObjectCount: objects of one time to live share a lease, up to so many', async () => {
    const { storage, prefix } = open({ maxLeaseObjects: 3 });
    for (const name of ['a', 'b', 'c', 'd']) await storage.create(name, thing(name), { ttlSeconds: 600 });
    await storage.create('e', thing('e'), { ttlSeconds: 5 });
    const { kvs } = await etcd.json('/v3/kv/range', { key: btoa(prefix), range_end: btoa(`${prefix}~`) });
    const leases = kvs.map(({ lease }: { lease: string }) => lease);
    expect(new Set(leases.slice(0, 3)).size).toBe(1);
    expect(new Set(leases).size).toBe(3);
    const ttl = await etcd.json('/v3/lease/timetolive', { ID: leases[0] });
    expect(Number(ttl.grantedTTL)).toBe(630);
  });

  it('a lease that has gone is replaced', async () => {
    const { storage, prefix } = open();
    await storage.create('a', thing('a'), { ttlSeconds: 600 });
    const { kvs } = await etcd.json('/v3/kv/range', { key: btoa(`${prefix}a`) });
    await etcd.json('/v3/lease/revoke', { ID: kvs[0].lease });
    await expect(storage.create('a', thing('a'), { ttlSeconds: 600 })).resolves.toMatchObject({ metadata: { name: 'a' } });
  });

  it('stored bytes are JSON without a version; what comes out has the revision', async () => {
    const { storage, prefix } = open();
    const made = await storage.create('a', { ...thing('a', { n: 1 }), kind: 'Thing' });
    const { kvs } = await etcd.json('/v3/kv/range', { key: btoa(`${prefix}a`) });
    expect(JSON.parse(atob(kvs[0].value))).toEqual({ kind: 'Thing', metadata: { name: 'a' }, data: { n: 1 } });
    expect(made).toEqual({ kind: 'Thing', metadata: { name: 'a', resourceVersion: kvs[0].mod_revision }, data: { n: 1 } });
    expect(await storage.get('a')).toEqual(made);
  });

  it('RunTestWatchError, RunWatchErrorIsBlockingFurtherEvents: values that others wrote: any JSON object will do; what is none is refused with the name of its key, and ends a watch', async () => {
    const { storage, prefix } = open();
    await etcd.put(`${prefix}a`, '{"data":1}');
    await etcd.put(`${prefix}b`, '{"data":2,"metadata":{"resourceVersion":"1","name":"b"}}');
    const { items } = await storage.list();
    expect(items.map(({ data }) => data)).toEqual([1, 2]);
    expect(items.every(({ metadata }) => Number(metadata?.resourceVersion) > 1)).toBe(true);
    const { resourceVersion } = await storage.list();
    for (const value of ['no JSON', '[]', '7', 'null', '{"metadata":7}', '\xff\xfe']) {
      await etcd.put(`${prefix}c`, value);
      const refusal = { status: { code: 500, reason: 'StorageReadError', message: expect.stringContaining(`${prefix}c`) } };
      await expect(storage.list()).rejects.toMatchObject(refusal);
      await expect(storage.get('c')).rejects.toMatchObject(refusal);
      await expect(storage.update('c', (current) => current)).rejects.toMatchObject(refusal);
    }
    const watch = await storage.watch({ resourceVersion });
    await etcd.put(`${prefix}d`, '{"data":4}');
    expect(await next(watch)).toMatchObject({ type: 'ERROR', object: { code: 500, reason: 'StorageReadError' } });
    expect(await watch.next()).toMatchObject({ done: true });
  });

  it('keys are in the order of code units, also those that UTF-8 orders in another way', async () => {
    const { storage } = open();
    const names = ['a', 'b', 'ä', '\u{1F600}', '\uFF5E', '中'];
    for (const name of names) await storage.create(name, thing(name));
    const sorted = [...names].sort();
    expect(sorted.indexOf('\u{1F600}')).toBeLessThan(sorted.indexOf('\uFF5E'));
    expect((await storage.list()).items.map(({ metadata }) => metadata?.name)).toEqual(sorted);
    const seen: unknown[] = [];
    for (let token: string | undefined = ''; token !== undefined; ) {
      const page: Awaited<ReturnType<typeof storage.list>> = await storage.list({ limit: 1, ...(token && { continue: token }) });
      seen.push(...page.items.map(({ metadata }) => metadata?.name));
      token = page.continue;
    }
    expect(seen).toEqual(sorted);
  });

  it('a list is read in parts of any size, and an object that is longer than an answer may be is refused', async () => {
    const { storage } = open({ maxResponseBytes: 200_000 });
    const text = 'x'.repeat(30_000);
    for (let n = 0; n < 20; n++) await storage.create(`n${n}`, thing(`n${n}`, text));
    expect((await storage.list()).items).toHaveLength(20);
    const watch = await storage.watch({ sendInitialEvents: true });
    for (let n = 0; n < 20; n++) expect((await next(watch)).type).toBe('ADDED');
    expect((await next(watch)).type).toBe('BOOKMARK');
    await watch.return();
    await storage.create('big', thing('big', 'x'.repeat(300_000)));
    await expect(storage.get('big')).rejects.toMatchObject({ code: 'FRAME_TOO_LARGE', limit: 200_000 });
    await expect(storage.list()).rejects.toMatchObject({ code: 'FRAME_TOO_LARGE' });
    await expect(storage.create('huge', thing('huge', 'x'.repeat(2_000_000)))).rejects.toMatchObject({ status: { code: 413 } });
  });

  it('the events of one revision arrive whole, also if etcd sends them in fragments', async () => {
    const { storage, prefix } = open();
    const text = 'y'.repeat(450_000);
    const { resourceVersion } = await storage.list();
    const put = (name: string, n: number): object => ({
      requestPut: { key: btoa(prefix + name), value: btoa(JSON.stringify(thing(name, `${n}${text}`))) },
    });
    // Not counted from the first: what another test has left may expire in between.
    const revisions: string[] = [];
    for (let n = 0; n < 4; n++) {
      const { header } = await etcd.json('/v3/kv/txn', { success: ['a', 'b', 'c'].map((name) => put(name, n)) });
      revisions.push(header.revision);
    }
    const watch = await storage.watch({ resourceVersion });
    const seen: string[] = [];
    for (let n = 0; n < 12; n++) {
      const { type, object } = await next(watch);
      seen.push(`${type} ${(object as Thing).metadata?.name} ${(object as Thing).metadata?.resourceVersion}`);
    }
    await watch.return();
    const expected = revisions.flatMap((revision, at) =>
      ['a', 'b', 'c'].map((name) => `${at === 0 ? 'ADDED' : 'MODIFIED'} ${name} ${revision}`),
    );
    expect(seen).toEqual(expected);
  });

  it('RunOptionalTestProgressNotify: BOOKMARKs come by themselves, and at once if they are asked for', async () => {
    const { storage } = open();
    const { resourceVersion } = await storage.list();
    const [quiet, told] = [
      await storage.watch({ resourceVersion }),
      await storage.watch({ resourceVersion, allowWatchBookmarks: true }),
    ];
    const other = open().storage;
    await other.create('a', thing('a'));
    const version = await storage.currentVersion();
    await storage.requestProgress();
    for (let seen = 0; seen < Number(version); ) {
      const { type, object } = await next(told);
      expect(type).toBe('BOOKMARK');
      seen = Number((object as Thing).metadata?.resourceVersion);
    }
    // etcd tells more every 300 ms.
    await other.create('b', thing('b'));
    const later = await storage.currentVersion();
    for (let seen = 0; seen < Number(later); ) seen = Number(((await next(told)).object as Thing).metadata?.resourceVersion);
    await storage.create('c', thing('c'));
    expect(await next(quiet)).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'c' } } });
    await quiet.return();
    await told.return();
  });

  it('RunWatchSemantics: sendInitialEvents false begins now, without the state', async () => {
    const { storage } = open();
    await storage.create('a', thing('a'));
    const watches = [
      await storage.watch({ sendInitialEvents: false }),
      await storage.watch({ sendInitialEvents: false, resourceVersion: '0' }),
    ];
    await storage.create('b', thing('b'));
    for (const watch of watches) {
      expect(await next(watch)).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'b' } } });
      await watch.return();
    }
  });

  it('Told: a version that etcd cannot have given: 410, for a list, a page, a get and a watch', async () => {
    const { storage } = open();
    const future = `${Number(await storage.currentVersion()) + 1_000}`;
    const foreign = { status: { code: 410, reason: 'Expired' } };
    await expect(storage.list({ resourceVersion: future })).rejects.toMatchObject(foreign);
    await expect(storage.list({ resourceVersion: future, resourceVersionMatch: 'Exact' })).rejects.toMatchObject(foreign);
    await expect(storage.list({ continue: continueAfter('a', { revision: future }) })).rejects.toMatchObject({
      status: { code: 410, metadata: { continue: expect.any(String) } },
    });
    await expect(storage.get('a', { resourceVersion: future })).rejects.toMatchObject(foreign);
    await expect(storage.watch({ resourceVersion: future })).rejects.toMatchObject(foreign);
    await expect(storage.watch({ resourceVersion: future, sendInitialEvents: true })).rejects.toMatchObject(foreign);
  });

  it('RunTestGuaranteedUpdateWithSuggestionAndConflict: what a hint decides wrongly is decided again by what is there', async () => {
    const { storage } = open();
    const old = await storage.create('a', thing('a', 1));
    await storage.update('a', () => thing('a', 2));
    const seen: unknown[] = [];
    const change = ({ data }: Thing): Thing => {
      seen.push(data);
      return thing('a', Number(data) + 10);
    };
    expect(await storage.update('a', change, { cached: old })).toMatchObject({ data: 12 });
    expect(seen).toEqual([1, 2]);
    // No write is decided by a hint alone.
    expect(await storage.update('a', () => thing('a', 1), { cached: old })).toMatchObject({ data: 1 });
    const conflict = { status: { code: 409 } };
    await expect(storage.delete('a', { cached: old, resourceVersion: '1' })).rejects.toMatchObject(conflict);
    const validate = ({ data }: Thing): void => {
      if (data === 1 && old.data === 1 && seen.length++ < 3) throw new Error('not yet');
    };
    await expect(storage.delete('a', { cached: old, validate })).resolves.toMatchObject({ metadata: { name: 'a' } });
    await expect(storage.delete('a', { cached: old })).rejects.toMatchObject({ status: { code: 404 } });
  });

  it('users: a wrong password is refused, a token that has become stale is replaced, and rights count', async () => {
    const server = await another({});
    const root = { endpoints: [server.url], user: 'root', password: 'secret' };
    await server.json('/v3/auth/user/add', { name: 'root', password: 'secret' });
    await server.json('/v3/auth/user/grant', { user: 'root', role: 'root' });
    await server.json('/v3/auth/user/add', { name: 'guest', password: 'guest' });
    await server.json('/v3/auth/enable', {});
    const { storage } = open(root);
    await storage.create('a', thing('a'));
    const watch = await storage.watch({ resourceVersion: (await storage.list()).resourceVersion });
    const { token } = await server.json('/v3/auth/authenticate', { name: 'root', password: 'secret' });
    await server.json('/v3/auth/role/add', { name: 'nothing' }, { authorization: token });
    await storage.create('b', thing('b'));
    expect(await next(watch)).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'b' } } });
    await expect(open({ ...root, password: 'wrong' }).storage.list()).rejects.toMatchObject({ status: { code: 503 } });
    await expect(open({ endpoints: [server.url], user: 'guest', password: 'guest' }).storage.list()).rejects.toMatchObject({
      status: { code: 503 },
    });
    await expect(open({ endpoints: [server.url] }).storage.list()).rejects.toMatchObject({ code: 'REFUSED' });
    await watch.return();
  });

  it('TLS: the members are checked, and we show a certificate if they want one', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'watchmux-etcd-tls-'));
    closing.push(() => rmSync(dir, { recursive: true, force: true }));
    const { ca, server: own, client: clientOf } = certify();
    const client = clientOf('me');
    const file = (name: string, text: string): string => {
      writeFileSync(join(dir, name), text);
      return join(dir, name);
    };
    const files = { cert: file('cert', own.cert), key: file('key', own.key), clientCa: file('ca', ca) };
    const server = await another({ tls: files });
    const endpoints = [server.url];
    const { storage } = open({ endpoints, tls: { ca, cert: client.cert, key: client.key } });
    await storage.create('a', thing('a'));
    expect((await storage.list()).items).toHaveLength(1);
    const impatient = { endpoints, requestTimeoutMs: 500 };
    await expect(open({ ...impatient, tls: { cert: client.cert, key: client.key } }).storage.list()).rejects.toMatchObject({
      code: 'TIMEOUT',
    });
    await expect(open({ ...impatient, tls: { ca } }).storage.list()).rejects.toMatchObject({ code: 'TIMEOUT' });
  });
});
