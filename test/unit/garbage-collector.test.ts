// The garbage collector through an API server: what becomes of objects when their owners go. Scenarios after those of upstream's
// integration and unit tests.
import { describe, expect, test } from 'vitest';
import { Follower } from '../../src/apiserver/follower.ts';
import { type ApiServerOptions, kubernetesKinds, REVIEWS, type ResourceDefinition } from '../../src/apiserver/index.ts';
import { OwnerIndex } from '../../src/apiserver/owner-index.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { MemoryStorage, type Storage } from '../../src/storage/index.ts';
import { refused } from '../../src/storage/statuses.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { closers } from '../closing.ts';
import { CONFIG_MAPS, EVERYTHING, NODES, quiet } from '../garbage-world.ts';
import { remote } from './apiserver-rig.ts';
import { BLOCKS, collecting, folderOf, type Made, refTo, World } from './garbage-rig.ts';

const closing = closers();
const server = (options?: Partial<ApiServerOptions>) => collecting(closing, options);
const world = (options?: Partial<ApiServerOptions>): World => new World(server(options));

describe('what belongs to an object that goes', () => {
  test('goes with it, and what belongs to that, in the background', async () => {
    const at = world();
    const owner = await at.create('owner');
    const child = await at.create('child', [refTo(owner)]);
    const map = await at.create('map', [refTo(child)], { kind: CONFIG_MAPS });
    const other = await at.create('other');
    await at.delete(owner);
    await at.quiet();
    expect([await at.get(owner), await at.get(child), await at.get(map)]).toEqual([undefined, undefined, undefined]);
    expect(await at.get(other)).toBeDefined();
  });

  test('stays if nobody can ask for its owner: a kind without get, or a name that no URL can have', async () => {
    const at = world({ resources: [...EVERYTHING, ...REVIEWS] });
    const kind = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', name: 'a', uid: 'u' };
    const names = ['a/b', 'a%b', '..'];
    const zones = names.map((name) => ({ apiVersion: 'example.com/v1', kind: 'Zone', name, uid: name }));
    const made: Made[] = [];
    for (const [index, each] of [kind, ...zones].entries()) made.push(await at.create(`child-${index}`, [each]));
    await at.quiet();
    for (const each of made) expect(await at.get(each)).toBeDefined();
  });

  test('stays with a Job that is deleted without a policy, but not with one that goes with its owner or its namespace', async () => {
    const [jobs] = await kubernetesKinds('jobs.batch/v1');
    const at = world({ resources: [...EVERYTHING, jobs] });
    const owner = await at.create('owner');
    const job = (name: string, owners: readonly object[], more: object = {}): Promise<Made> =>
      at.create(name, owners, { kind: jobs, ...more });
    const made = [await job('alone', []), await job('background', []), await job('owned', [refTo(owner)])];
    const children: Made[] = [];
    for (const each of made) children.push(await at.create(`of-${each.object.metadata.name}`, [refTo(each)]));
    await at.rig.call('POST', '/api/v1/namespaces', { metadata: { name: 'gone' } });
    await job('inside', [], { namespace: 'gone' });
    // It goes at once: what it owns is in the namespace, too.
    const watch = await at.rig.server.resource('jobs.batch/v1').in('gone').watch();
    const seen = [(await watch.next()).value?.type];
    await at.delete(made[0] as Made);
    await at.delete(made[1] as Made, 'Background');
    await at.delete(owner);
    expect((await at.rig.call('DELETE', '/api/v1/namespaces/gone')).code).toBe(200);
    await at.quiet();
    const left = await Promise.all([...made, ...children].map(async (each) => (await at.get(each)) !== undefined));
    expect(left).toEqual([false, false, false, true, false, false]);
    expect((await at.get(children[0] as Made))?.ownerReferences ?? []).toEqual([]);
    expect((await at.rig.call('GET', '/api/v1/namespaces/gone')).code).toBe(404);
    seen.push((await watch.next()).value?.type);
    await watch.return();
    expect(seen).toEqual(['ADDED', 'DELETED']);
  });

  test('stays with a Job, and who deletes it without a policy is told so', async () => {
    const [jobs] = await kubernetesKinds('jobs.batch/v1');
    const at = world({ resources: [...EVERYTHING, jobs] });
    const path = '/apis/batch/v1/namespaces/default/jobs';
    const warned = async (query: string, body?: object): Promise<boolean> => {
      const { headers } = await at.rig.call('DELETE', `${path}${query}`, body);
      return headers.get('warning')?.includes('child pods are preserved by default when jobs are deleted') === true;
    };
    const made = [await warned('/a'), await warned('/a?gracePeriodSeconds=0'), await warned('')];
    made.push(
      await warned('/a?propagationPolicy=Orphan'),
      await warned('/a', { orphanDependents: true }),
      await warned('/a', { propagationPolicy: 'Background' }),
    );
    expect(made).toEqual([true, true, true, false, false, false]);
  });

  test('in the foreground it goes first', async () => {
    const at = world();
    const owner = await at.create('owner');
    const child = await at.create('child', [refTo(owner, BLOCKS)], { finalizers: ['a.example/b'] });
    const grandchild = await at.create('grandchild', [refTo(child, BLOCKS)]);
    expect(await at.delete(owner, 'Foreground')).toBe(200);
    await at.quiet();
    expect(await at.get(owner)).toMatchObject({ finalizers: ['foregroundDeletion'], deletionGracePeriodSeconds: 0 });
    expect((await at.get(child))?.finalizers).toEqual(['a.example/b']);
    expect(await at.get(grandchild)).toBeUndefined();
    await at.rig.call('PATCH', child.path, { metadata: { finalizers: null } });
    await at.quiet();
    expect([await at.get(owner), await at.get(child)]).toEqual([undefined, undefined]);
  });

  test('in the foreground, what does not block holds nothing up', async () => {
    const at = world();
    const owner = await at.create('owner');
    const child = await at.create('child', [refTo(owner)], { finalizers: ['a.example/b'] });
    await at.delete(owner, 'Foreground');
    await at.quiet();
    expect(await at.get(owner)).toBeUndefined();
    expect((await at.get(child))?.deletionTimestamp).toBeDefined();
  });

  test('an object that stops blocking, or finds another owner, lets the owner go', async () => {
    const at = world();
    const owner = await at.create('owner');
    const other = await at.create('other');
    const held = await at.create('held', [refTo(owner, BLOCKS)], { finalizers: ['a.example/b'] });
    await at.delete(owner, 'Foreground');
    await at.quiet();
    expect(await at.get(owner)).toBeDefined();
    await at.rig.call('PATCH', held.path, { metadata: { ownerReferences: [refTo(other)] } });
    await at.quiet();
    expect(await at.get(owner)).toBeUndefined();
  });

  test('orphans stay, without the reference', async () => {
    const at = world();
    const owner = await at.create('owner');
    const children = [
      await at.create('a', [refTo(owner, BLOCKS)]),
      await at.create('b', [refTo(owner)], { finalizers: ['x.example/y'] }),
    ];
    await at.delete(children[1] as Made);
    expect(await at.delete(owner, 'Orphan')).toBe(200);
    await at.quiet();
    expect(await at.get(owner)).toBeUndefined();
    for (const child of children) expect(await at.get(child)).toMatchObject({ uid: child.object.metadata.uid });
    for (const child of children) expect((await at.get(child))?.ownerReferences).toBeUndefined();
  });

  test('an owner that leaves orphans waits for nothing that names it wrongly', async () => {
    const at = world();
    const owner = await at.create('owner');
    const child = await at.create('child', [refTo(owner, { name: 'wrong' })], { finalizers: ['a.example/b'] });
    await at.quiet();
    expect((await at.get(child))?.deletionTimestamp).toBeDefined();
    await at.delete(owner, 'Orphan');
    await at.quiet();
    expect([await at.get(owner), (await at.get(child))?.ownerReferences]).toEqual([undefined, undefined]);
  });

  test('an orphan of one whose other owner is gone stays as well', async () => {
    const at = world();
    const owner = await at.create('owner');
    const child = await at.create('child', [refTo(owner), { apiVersion: 'v1', kind: 'ConfigMap', name: 'none', uid: 'none' }]);
    await at.delete(owner, 'Orphan');
    await at.quiet();
    expect((await at.get(child))?.ownerReferences).toBeUndefined();
    expect(await at.get(child)).toBeDefined();
  });

  test('the finalizers `orphan` and `foregroundDeletion` of an object decide where a deletion says nothing', async () => {
    const at = world();
    const owner = await at.create('owner', [], { finalizers: ['orphan'] });
    const child = await at.create('child', [refTo(owner)]);
    await at.delete(owner);
    await at.quiet();
    expect([await at.get(owner), (await at.get(child))?.ownerReferences]).toEqual([undefined, undefined]);
    expect(await at.get(child)).toBeDefined();
    // A deletion that says something overrides them.
    const second = await at.create('second', [], { finalizers: ['orphan'] });
    const below = await at.create('below', [refTo(second)]);
    await at.delete(second, 'Background');
    await at.quiet();
    expect([await at.get(second), await at.get(below)]).toEqual([undefined, undefined]);
  });

  test('orphanDependents of older clients', async () => {
    const at = world();
    const owner = await at.create('owner');
    const child = await at.create('child', [refTo(owner)]);
    const both = await at.rig.call('DELETE', owner.path, { orphanDependents: true, propagationPolicy: 'Orphan' });
    expect([both.code, both.body.message]).toEqual([422, expect.stringContaining('cannot be both set')]);
    expect((await at.rig.call('DELETE', `${owner.path}?orphanDependents=true`)).code).toBe(200);
    await at.quiet();
    expect([await at.get(owner), (await at.get(child))?.ownerReferences]).toEqual([undefined, undefined]);
    expect(await at.get(child)).toBeDefined();
  });
});

describe('owners', () => {
  test('one that never existed, one of another uid, and one in another namespace are none', async () => {
    const at = world();
    const owner = await at.create('owner');
    await at.rig.call('POST', '/api/v1/namespaces', { metadata: { name: 'other' } });
    const gone = [
      await at.create('absent', [{ ...refTo(owner), name: 'absent-owner', uid: 'never' }]),
      await at.create('uid', [refTo(owner, { uid: 'another' })]),
      await at.create('name', [refTo(owner, { name: 'another' })]),
      await at.create('kind', [refTo(owner, { apiVersion: 'v1', kind: 'ConfigMap' })]),
      await at.create('space', [refTo(owner)], { namespace: 'other' }),
    ];
    await at.quiet();
    for (const each of gone) expect([each.path, await at.get(each)]).toEqual([each.path, undefined]);
  });

  test('one that comes back with another uid is another one', async () => {
    const at = world();
    const owner = await at.create('owner');
    const child = await at.create('child', [refTo(owner)]);
    await at.delete(owner);
    const back = await at.create('owner');
    await at.quiet();
    expect([await at.get(back), await at.get(child)]).toEqual([expect.anything(), undefined]);
  });

  test('of several, those that are gone are taken away while one is there', async () => {
    const at = world();
    const [one, two, three] = [await at.create('one'), await at.create('two'), await at.create('three')];
    const child = await at.create('child', [refTo(one), refTo(two), refTo(three, BLOCKS)]);
    await at.delete(one);
    await at.delete(three, 'Foreground');
    await at.quiet();
    expect((await at.get(child))?.ownerReferences).toEqual([refTo(two)]);
    expect(await at.get(three)).toBeUndefined();
    await at.delete(two);
    await at.quiet();
    expect(await at.get(child)).toBeUndefined();
  });

  test('one without a namespace may own what is in one, not the other way round', async () => {
    const { errors, ...made } = server();
    const at = new World(made);
    const node = await at.create('node', [], { kind: NODES });
    const inside = await at.create('inside', [refTo(node)]);
    const order = await at.create('order');
    const outside = await at.create('outside', [refTo(order)], { kind: NODES });
    const other = await at.create('outside-2', [refTo(order)], { kind: NODES });
    await at.delete(node);
    await at.delete(order);
    await at.quiet();
    expect([await at.get(inside), await at.get(outside), await at.get(other)]).toEqual([
      undefined,
      expect.anything(),
      expect.anything(),
    ]);
    const message =
      'metadata.ownerReferences in example.com/zones/: expected owners without a namespace, as the object has none: these references are ignored, got "Order order"';
    expect(errors).toEqual([expect.objectContaining({ message })]);
  });

  test('one of a kind that is not served decides nothing', async () => {
    const at = world();
    const unknown = { apiVersion: 'other.example/v1', kind: 'Other', name: 'x', uid: 'x' };
    const owner = await at.create('owner');
    const child = await at.create('child', [unknown]);
    const both = await at.create('both', [unknown, refTo(owner)]);
    await at.delete(owner);
    await at.quiet();
    expect([await at.get(child), (await at.get(both))?.ownerReferences]).toEqual([expect.anything(), [unknown, refTo(owner)]]);
  });

  test('a circle ends in the foreground', async () => {
    const at = world();
    const one = await at.create('one');
    const two = await at.create('two', [refTo(one, BLOCKS)]);
    await at.rig.call('PATCH', one.path, { metadata: { ownerReferences: [refTo(two, BLOCKS)] } });
    await at.delete(one, 'Foreground');
    await at.quiet();
    expect([await at.get(one), await at.get(two)]).toEqual([undefined, undefined]);
  });
});

describe('what a deletion does', () => {
  test('without a collector nothing of it', async () => {
    const at = world({ garbageCollection: false });
    const owner = await at.create('owner');
    const child = await at.create('child', [refTo(owner)]);
    await at.delete(owner, 'Foreground');
    await at.quiet();
    expect([await at.get(owner), await at.get(child)]).toEqual([undefined, expect.anything()]);
  });

  test('a dry run shows the finalizer, and changes nothing', async () => {
    const at = world();
    const owner = await at.create('owner');
    const tried = await at.rig.call('DELETE', `${owner.path}?dryRun=All`, { propagationPolicy: 'Foreground' });
    expect(tried.body.metadata).toMatchObject({ finalizers: ['foregroundDeletion'], deletionTimestamp: expect.any(String) });
    await at.quiet();
    expect((await at.get(owner))?.deletionTimestamp).toBeUndefined();
  });

  test('a collection is deleted with its policy', async () => {
    const at = world();
    const owner = await at.create('owner', [], { kind: CONFIG_MAPS });
    const child = await at.create('child', [refTo(owner)]);
    await at.rig.call('DELETE', folderOf({ kind: CONFIG_MAPS }), { propagationPolicy: 'Orphan' });
    await at.quiet();
    expect([await at.get(owner), (await at.get(child))?.ownerReferences]).toEqual([undefined, undefined]);
    expect(await at.get(child)).toBeDefined();
  });

  test('namespaces own nothing, and wait for their contents as before', async () => {
    const at = world();
    await at.rig.call('POST', '/api/v1/namespaces', { metadata: { name: 'x' } });
    await at.create('a', [], { namespace: 'x' });
    expect((await at.rig.call('DELETE', '/api/v1/namespaces/x', { propagationPolicy: 'Foreground' })).code).toBe(200);
    await at.quiet();
    expect((await at.rig.call('GET', '/api/v1/namespaces/x')).code).toBe(404);
  });

  test('both finalizers of the collector together are refused', async () => {
    const { call } = server();
    const { code, body } = await call('POST', folderOf({}), {
      metadata: { name: 'a', finalizers: ['orphan', 'foregroundDeletion'] },
    });
    expect([code, body.message]).toEqual([
      422,
      expect.stringContaining('finalizer orphan and foregroundDeletion cannot be both set'),
    ]);
  });
});

describe('kinds that come and go', () => {
  test('what belongs to an object of a kind that comes later is looked at again, and collected with it', async () => {
    const at = world({ customResourceDefinitions: true });
    const schema = { openAPIV3Schema: { type: 'object' } };
    const ships: ResourceDefinition = { group: 'sea.example', version: 'v1', plural: 'ships', kind: 'Ship' };
    const none = { apiVersion: 'sea.example/v1', kind: 'Ship', name: 'none', uid: 'none' };
    const early = await at.create('early', [none]);
    const keeper = await at.create('keeper');
    const kept = await at.create('kept', [none, refTo(keeper)]);
    await at.quiet();
    expect(await at.get(early)).toBeDefined();
    const { code } = await at.rig.call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      metadata: { name: 'ships.sea.example' },
      spec: {
        ...{ group: 'sea.example', scope: 'Namespaced', names: { plural: 'ships', kind: 'Ship' } },
        versions: [{ name: 'v1', served: true, storage: true, schema }],
      },
    });
    expect(code).toBe(201);
    await expect.poll(() => at.get(early)).toBeUndefined();
    await expect.poll(async () => (await at.get(kept))?.ownerReferences).toEqual([refTo(keeper)]);
    const ship = await at.create('ship', [], { kind: ships });
    const crew = await at.create('crew', [refTo(ship)]);
    const boat = await at.create('boat', [refTo(crew, BLOCKS)], { kind: ships });
    await at.delete(crew, 'Foreground');
    await expect.poll(() => at.get(boat)).toBeUndefined();
    await expect.poll(() => at.get(crew)).toBeUndefined();
    const late = await at.create('late', [refTo(ship)]);
    await at.delete(ship);
    await expect.poll(() => at.get(late)).toBeUndefined();
  });
});

describe('several servers, and restarts', () => {
  test('what one has left, the next one does', async () => {
    const storage = new MemoryStorage();
    const first = world({ storage, garbageCollection: false });
    const owner = await first.create('owner');
    const child = await first.create('child', [refTo(owner)]);
    const waiting = await first.create('waiting', [], { finalizers: ['foregroundDeletion'] });
    const below = await first.create('below', [refTo(waiting, BLOCKS)]);
    const orphaning = await first.create('orphaning', [], { finalizers: ['orphan'] });
    const orphan = await first.create('orphan', [refTo(orphaning, BLOCKS)]);
    for (const each of [owner, waiting, orphaning]) await first.delete(each);
    await first.rig.server.shutdown();
    const second = world({ storage: remote(storage) });
    await second.quiet();
    for (const each of [owner, child, waiting, below, orphaning])
      expect([each.path, await second.get(each)]).toEqual([each.path, undefined]);
    expect((await second.get(orphan))?.ownerReferences).toBeUndefined();
    expect(await second.get(orphan)).toBeDefined();
  });

  test('two of them do what one would do, without a cache as well', async () => {
    const storage = new MemoryStorage();
    const { errors, ...made } = server({ storage, cache: false });
    const at = new World(made);
    const other = server({ storage: remote(storage) });
    const owner = await at.create('owner');
    const keeper = await at.create('keeper');
    const children: Made[] = [];
    for (let each = 0; each < 60; each++) {
      children.push(await at.create(`c${each}`, [refTo(owner, BLOCKS), ...(each % 3 === 0 ? [refTo(keeper)] : [])]));
    }
    await at.delete(owner, 'Foreground');
    await at.quiet();
    expect(await at.get(owner)).toBeUndefined();
    for (const [each, child] of children.entries()) {
      const found = await at.get(child);
      expect(found?.ownerReferences).toEqual(each % 3 === 0 ? [refTo(keeper)] : undefined);
    }
    expect([errors, other.errors]).toEqual([[], []]);
  });

  test('a shutdown in the middle leaves nothing behind', async () => {
    const clock = new FakeClock();
    const at = world({ clock });
    const owner = await at.create('owner');
    for (let each = 0; each < 200; each++) await at.create(`c${each}`, [refTo(owner)]);
    await at.delete(owner);
    await at.rig.server.shutdown();
    const { storage } = at.rig;
    const left = async (): Promise<number> => (await storage.scope('example.com/orders/').list()).items.length;
    const before = await left();
    expect(before).toBeGreaterThan(0);
    await quiet(storage as Storage);
    expect([await left(), clock.pending]).toEqual([before, 0]);
  });
});

test.each([
  ['without a cache', undefined, 500, 1],
  ['with a cache, which reports it itself', {}, 500, 0],
  ['unless it is only too late to go on', undefined, 410, 0],
])('that a kind cannot be listed is reported %s', async (_, cacheStats, code, times) => {
  const errors: unknown[] = [];
  const ending = new AbortController();
  const list = async (): Promise<never> => Promise.reject(refused(code, 'Refused', 'told to fail'));
  const follower = new Follower({
    ...{ storage: { list, cacheStats } as unknown as Storage, signal: ending.signal, clock: new FakeClock(), random: () => 0 },
    ...{ whole: () => {}, changed: () => {}, onError: (error: unknown) => void errors.push(error) },
  });
  const following = follower.follow();
  await new Promise((resolve) => void setImmediate(resolve));
  ending.abort();
  await following;
  expect(errors).toHaveLength(times);
});

test('an object with many owners costs in proportion to them', () => {
  let reads = 0;
  const ownerReferences = Array.from({ length: 2_000 }, (_, at) => ({
    get uid(): string {
      reads++;
      return `u${at}`;
    },
  }));
  const index = new OwnerIndex({ look: () => {}, lookBelow: () => {} });
  const metadata = { name: 'a', uid: 'a' };
  index.seen('orders/', 'a', { metadata: { ...metadata, ownerReferences } } as KubernetesObject);
  index.seen('orders/', 'a', { metadata: { ...metadata, ownerReferences: ownerReferences.slice(1_000) } } as KubernetesObject);
  expect(index.dependentsOf('u1999').size).toBe(1);
  expect(index.dependentsOf('u0').size).toBe(0);
  expect(reads).toBeLessThan(20 * 2_000);
});
