// Servers that share a storage, of which one is late: it has not seen what another one has answered already.
import { describe, expect, test } from 'vitest';
import { ApiServer, type ApiServerOptions } from '../../src/apiserver/index.ts';
import type { KubernetesObject, ObjectMeta } from '../../src/cache/object.ts';
import { MemoryStorage, type Storage } from '../../src/storage/index.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { closers } from '../closing.ts';
import { EVERYTHING, quiet } from '../garbage-world.ts';
import { crdOf } from './crd-rig.ts';
import { sightOf } from './shared-storage.ts';

const closing = closers();
const ORDERS = 'orders.example.com/v1';
const ORDERS_PREFIX = 'example.com/orders/';
const CRDS = 'customresourcedefinitions.apiextensions.k8s.io/v1';

function server(options: Partial<ApiServerOptions> & { readonly storage: Storage }): ApiServer {
  const made = new ApiServer({ resources: EVERYTHING, onError: () => {}, ...options });
  closing.push(() => made.shutdown());
  return made;
}

interface Owner extends KubernetesObject {
  readonly metadata: ObjectMeta & { readonly name: string; readonly uid: string };
}

const refTo = ({ apiVersion, kind, metadata: { name, uid } }: Owner, more: object = {}): object => ({
  ...{ apiVersion, kind, name, uid, ...more },
});

/** An object that is deleted waits for the collector to make its dependents orphans. */
const orphaning = { name: 'owner', finalizers: ['orphan'] };

const settled = async (turns = 60): Promise<void> => {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => void setImmediate(resolve));
};

describe('a collector that is late', () => {
  test('makes orphans of all dependents, also of those that its cache does not show yet', async () => {
    const memory = new MemoryStorage();
    const clock = new FakeClock();
    const { storage, hold } = sightOf(memory);
    const late = server({ storage, clock, garbageCollection: true });
    await late.ready;
    const other = server({ storage: memory });
    const owners = other.resource('zones.example.com/v1');
    const owner = (await owners.create({ metadata: orphaning })) as Owner;
    await settled();
    const release = hold(ORDERS_PREFIX);
    const orders = other.resource(ORDERS).in('default');
    await orders.create({ metadata: { name: 'child', ownerReferences: [refTo(owner)] } as ObjectMeta });
    await owners.delete('owner');
    for (let seconds = 0; seconds < 20; seconds++) await clock.advanceAsync(1_000);
    await settled();
    expect((await owners.get('owner')).metadata?.finalizers).toEqual(['orphan']);
    release();
    for (let seconds = 0; seconds < 100; seconds++) await clock.advanceAsync(1_000);
    await quiet(memory);
    await expect(owners.get('owner')).rejects.toMatchObject({ status: { code: 404 } });
    expect((await orders.get('child')).metadata?.ownerReferences ?? []).toEqual([]);
  });

  test('makes orphans of dependents whose kind it does not know yet', async () => {
    const memory = new MemoryStorage();
    const clock = new FakeClock();
    const { storage, hold } = sightOf(memory);
    const late = server({ storage, clock, garbageCollection: true, customResourceDefinitions: true });
    await late.ready;
    await settled();
    const release = hold('apiextensions.k8s.io/customresourcedefinitions/');
    const other = server({ storage: memory, customResourceDefinitions: true });
    const owners = other.resource('zones.example.com/v1');
    const owner = (await owners.create({ metadata: orphaning })) as Owner;
    await other.resource(CRDS).create(crdOf());
    await expect.poll(() => other.kind('widgets.example.com/v1').then(() => true, () => false)).toBe(true);
    const widgets = other.resource('widgets.example.com/v1').in('default');
    await widgets.create({ metadata: { name: 'child', ownerReferences: [refTo(owner)] } as ObjectMeta });
    await owners.delete('owner');
    for (let seconds = 0; seconds < 20; seconds++) await clock.advanceAsync(1_000);
    await settled();
    expect((await owners.get('owner')).metadata?.finalizers).toEqual(['orphan']);
    release();
    for (let seconds = 0; seconds < 100; seconds++) await clock.advanceAsync(1_000);
    await quiet(memory);
    await expect(owners.get('owner')).rejects.toMatchObject({ status: { code: 404 } });
    expect((await widgets.get('child')).metadata?.ownerReferences ?? []).toEqual([]);
  });
});
