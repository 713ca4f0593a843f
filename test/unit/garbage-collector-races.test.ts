// The garbage collector, while what it decides about changes, comes late, or cannot be read: nothing that somebody owns is deleted, and
// nothing is left undone.
import { expect, test } from 'vitest';
import { type ApiServerOptions, EVENTS, type ResourceDefinition } from '../../src/apiserver/index.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { MemoryStorage, type Storage, type StorageEvent } from '../../src/storage/index.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { WatchError } from '../../src/watch/errors.ts';
import { fromAsyncIterable } from '../../src/watch/pull-watch.ts';
import { closers } from '../closing.ts';
import { CONFIG_MAPS, EVERYTHING, NODES, ORDERS } from '../garbage-world.ts';
import { CRDS, crdOf } from './crd-rig.ts';
import { BLOCKS, collecting, type Made, refTo, World } from './garbage-rig.ts';

const closing = closers();

/** What happens ahead of a request to the storage, such as `get example.com/orders/default/a`, and of an event of a kind. */
class Taps extends Map<string, () => unknown> {
  once(what: string, act: () => unknown): void {
    this.set(what, () => {
      this.delete(what);
      return act();
    });
  }
}

/** A storage that is not in memory, with taps. */
function tapped(storage: Storage, taps: Taps, prefix: string = ''): Storage {
  async function* events(watch: AsyncIterable<StorageEvent<KubernetesObject>>): AsyncGenerator<StorageEvent<KubernetesObject>> {
    for await (const event of watch) {
      if (event.type !== 'BOOKMARK') await taps.get(`event ${prefix}`)?.();
      yield event;
    }
  }
  return new Proxy(storage, {
    get: (target, name) => {
      if (name === 'served' || name === 'backing') return undefined;
      if (name === 'scope')
        return (below: string, options: object) => tapped(target.scope(below, options), taps, `${prefix}${below}`);
      const found: unknown = Reflect.get(target, name, target);
      if (typeof found !== 'function') return found;
      return async (...asked: unknown[]) => {
        await taps.get(`${String(name)} ${prefix}${typeof asked[0] === 'string' ? asked[0] : ''}`)?.();
        const answer: unknown = await found.apply(target, asked);
        return name === 'watch' ? fromAsyncIterable(events(answer as never)) : answer;
      };
    },
  });
}

const MAPS = 'core/configmaps/';
const AT = 'example.com/orders/';
/** When what failed is tried again for the first time. */
const RETRY_MS = 5;
const HELD = { finalizers: ['a.example/held'] };

function begin(options: Partial<ApiServerOptions> = {}): { at: World; taps: Taps; errors: unknown[]; clock: FakeClock } {
  const [taps, clock] = [new Taps(), new FakeClock()];
  const storage = tapped(new MemoryStorage(), taps);
  const { errors, ...made } = collecting(closing, { storage, cache: false, clock, ...options });
  return { at: new World(made), taps, errors, clock };
}

const there = async (at: World, ...all: readonly Made[]): Promise<boolean[]> =>
  Promise.all(all.map(async (each) => (await at.get(each)) !== undefined));
const patch = (at: World, { path }: Made, metadata: object): Promise<unknown> => at.rig.call('PATCH', path, { metadata });

interface Gate {
  readonly open: () => void;
  readonly wait: () => Promise<void>;
}
function gate(): Gate {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  closing.push(open);
  return { open, wait: () => opened };
}

test('an object that has no owners when it is read is left alone', async () => {
  const { at, taps, errors } = begin();
  const owner = await at.create('owner');
  const child = await at.create('child', [refTo(owner)]);
  taps.once(`get ${AT}default/child`, () => patch(at, child, { ownerReferences: null }));
  await at.delete(owner);
  await at.quiet();
  expect([taps.size, await there(at, owner, child), errors]).toEqual([0, [false, true], []]);
});

test('an object that is gone when it is read is no failure', async () => {
  const { at, taps, errors } = begin();
  const owner = await at.create('owner');
  const child = await at.create('child', [refTo(owner)]);
  taps.once(`get ${AT}default/child`, () => at.delete(child));
  await at.delete(owner);
  await at.quiet();
  expect([taps.size, await there(at, owner, child), errors]).toEqual([0, [false, false], []]);
});

test('an object that finds an owner before it is deleted stays', async () => {
  const { at, taps, errors } = begin();
  const [owner, other] = [await at.create('owner'), await at.create('other')];
  const child = await at.create('child', [refTo(owner)]);
  taps.once(`delete ${AT}default/child`, () => patch(at, child, { ownerReferences: [refTo(other)] }));
  await at.delete(owner);
  await at.quiet();
  expect([taps.size, (await at.get(child))?.ownerReferences, errors]).toEqual([0, [refTo(other)], []]);
});

test('an object that is to leave orphans, since it was read, leaves them', async () => {
  const { at, taps, errors, clock } = begin();
  const owner = await at.create('owner');
  const child = await at.create('child', [refTo(owner)]);
  const below = await at.create('below', [refTo(child)]);
  taps.once(`delete ${AT}default/child`, () => patch(at, child, { finalizers: ['orphan'] }));
  await at.delete(owner);
  await at.quiet();
  clock.advance(RETRY_MS);
  await at.quiet();
  expect([taps.size, await there(at, child, below), errors]).toEqual([0, [false, true], []]);
  expect((await at.get(below))?.ownerReferences).toBeUndefined();
});

test('an object that a client has deleted since it was read goes as the client said', async () => {
  const { at, taps, errors, clock } = begin();
  const owner = await at.create('owner');
  const child = await at.create('child', [refTo(owner)], HELD);
  const below = await at.create('below', [refTo(child, BLOCKS)], HELD);
  taps.once(`delete ${AT}default/child`, () => at.delete(child, 'Foreground'));
  await at.delete(owner);
  await at.quiet();
  clock.advance(RETRY_MS);
  await at.quiet();
  expect([taps.size, (await at.get(child))?.finalizers, errors]).toEqual([0, ['a.example/held', 'foregroundDeletion'], []]);
  expect((await at.get(below))?.deletionTimestamp).toBeDefined();
});

test('an object that has lost its last owner, since a reference was to be taken away, goes', async () => {
  const { at, taps, errors } = begin();
  const [owner, other] = [await at.create('owner'), await at.create('other')];
  const child = await at.create('child', [refTo(owner), refTo(other)]);
  taps.once(`update ${AT}default/child`, () => patch(at, child, { ownerReferences: [refTo(owner)] }));
  await at.delete(owner);
  await at.quiet();
  expect([taps.size, await there(at, child), errors]).toEqual([0, [false], []]);
});

test('another object with the name of an owner that waited keeps its finalizer', async () => {
  const { at, taps, errors } = begin();
  const owner = await at.create('owner');
  taps.once(`get ${AT}default/owner`, async () => {
    await patch(at, owner, { finalizers: null });
    await at.create('owner', [], { finalizers: ['foregroundDeletion'] });
  });
  await at.delete(owner, 'Foreground');
  await at.quiet();
  const { finalizers, deletionTimestamp } = (await at.get(owner)) ?? {};
  expect([taps.size, finalizers, deletionTimestamp, errors]).toEqual([0, ['foregroundDeletion'], undefined, []]);
});

test('an owner that leaves orphans stays until the last of them has lost its reference', async () => {
  const { at, taps, errors } = begin();
  const owner = await at.create('owner');
  const child = await at.create('child', [refTo(owner)]);
  const { wait, open } = gate();
  taps.once(`update ${AT}default/child`, wait);
  await at.delete(owner, 'Orphan');
  await at.quiet();
  expect(await there(at, owner, child)).toEqual([true, true]);
  open();
  await at.quiet();
  expect([await there(at, owner, child), errors]).toEqual([[false, true], []]);
  expect((await at.get(child))?.ownerReferences).toBeUndefined();
});

test('that an owner leaves orphans is read from it, if its deletion has not been seen', async () => {
  const { at, taps, errors } = begin();
  const owner = await at.create('owner');
  taps.set(`event ${AT}`, gate().wait);
  await at.delete(owner, 'Orphan');
  const child = await at.create('child', [refTo(owner)], { kind: CONFIG_MAPS });
  await at.quiet();
  expect([await there(at, owner, child), (await at.get(child))?.ownerReferences, errors]).toEqual([[true, true], undefined, []]);
});

test('an owner waits for dependents that were written before it was deleted, and have not been seen', async () => {
  const { at, taps, errors } = begin();
  const owner = await at.create('owner');
  const { wait, open } = gate();
  taps.set(`event ${MAPS}`, wait);
  const child = await at.create('child', [refTo(owner, BLOCKS)], { kind: CONFIG_MAPS, ...HELD });
  await at.delete(owner, 'Foreground');
  await at.quiet();
  expect(await there(at, owner, child)).toEqual([true, true]);
  open();
  await at.quiet();
  expect(await there(at, owner, child)).toEqual([true, true]);
  await patch(at, child, { finalizers: null });
  await at.quiet();
  expect([await there(at, owner, child), errors]).toEqual([[false, false], []]);
});

test('an owner waits until all kinds are followed', async () => {
  const failure = new Error('told to fail');
  const taps = new Taps();
  taps.once(`watch ${MAPS}`, () => Promise.reject(failure));
  const [storage, clock] = [tapped(new MemoryStorage(), taps), new FakeClock()];
  const { errors, ...made } = collecting(closing, { storage, cache: false, clock });
  const at = new World(made);
  const owner = await at.create('owner');
  await at.delete(owner, 'Foreground');
  await at.quiet();
  expect([await there(at, owner), errors]).toEqual([[true], [failure]]);
  clock.advance(200);
  await at.quiet();
  expect([await there(at, owner), errors]).toEqual([[false], [failure]]);
});

test('after a gap, what has gone meanwhile is known', async () => {
  const { at, taps, errors, clock } = begin();
  const [owner, waiting] = [await at.create('owner'), await at.create('waiting')];
  const ofOwner = await at.create('of-owner', [refTo(owner)], { kind: CONFIG_MAPS });
  const ofWaiting = await at.create('of-waiting', [refTo(waiting, BLOCKS)], HELD);
  const other = await at.create('other', [refTo(waiting)], { kind: CONFIG_MAPS });
  await at.delete(waiting, 'Foreground');
  await at.quiet();
  expect(await there(at, owner, ofOwner, waiting, ofWaiting, other)).toEqual([true, true, true, true, false]);
  // The watch ends in a failure, before it tells of these.
  taps.set(`event ${AT}`, () => Promise.reject(new WatchError('CLOSED', 'told to fail')));
  await at.delete(owner);
  await patch(at, ofWaiting, { finalizers: null });
  await at.quiet();
  expect(await there(at, owner, ofOwner, waiting, ofWaiting)).toEqual([false, true, true, false]);
  taps.clear();
  clock.advance(200);
  await at.quiet();
  expect([await there(at, ofOwner, waiting), errors]).toEqual([[false, false], []]);
});

test('a dependent that does not block holds nothing up, though another owner of it would be blocked', async () => {
  const { at, errors } = begin();
  const unknown = { apiVersion: 'other.example/v1', kind: 'Other', name: 'x', uid: 'x' };
  const [owner, blocked] = [await at.create('owner'), await at.create('blocked')];
  const child = await at.create('child', [refTo(owner), { ...unknown, ...BLOCKS }]);
  const blocking = await at.create('blocking', [unknown, refTo(blocked, BLOCKS)]);
  for (const each of [owner, blocked]) await at.delete(each, 'Foreground');
  await at.quiet();
  expect([await there(at, owner, child, blocked, blocking), errors]).toEqual([[false, true, true, true], []]);
});

test('an object that is going keeps its references to owners that are gone', async () => {
  const { at, errors } = begin();
  const [owner, other] = [await at.create('owner'), await at.create('other')];
  const child = await at.create('child', [refTo(owner), refTo(other)], HELD);
  await at.delete(child);
  await at.delete(owner);
  await at.quiet();
  expect([(await at.get(child))?.ownerReferences, errors]).toEqual([[refTo(owner), refTo(other)], []]);
});

test('in the background, nothing waits for what is below it', async () => {
  const { at } = begin();
  const owner = await at.create('owner');
  const child = await at.create('child', [refTo(owner)]);
  const below = await at.create('below', [refTo(child, BLOCKS)], HELD);
  await at.delete(owner);
  await at.quiet();
  expect([await there(at, child), (await at.get(below))?.finalizers]).toEqual([[false], HELD.finalizers]);
  expect((await at.get(below))?.deletionTimestamp).toBeDefined();
});

test('what goes with its owner treats its own dependents as its finalizers say', async () => {
  const { at } = begin();
  const owner = await at.create('owner');
  const orphaning = await at.create('orphaning', [refTo(owner)], { finalizers: ['orphan'] });
  const orphan = await at.create('orphan', [refTo(orphaning)]);
  const waiting = await at.create('waiting', [refTo(owner)], { finalizers: ['foregroundDeletion'] });
  const below = await at.create('below', [refTo(waiting, BLOCKS)], HELD);
  await at.delete(owner);
  await at.quiet();
  expect(await there(at, owner, orphaning, orphan, waiting, below)).toEqual([false, false, true, true, true]);
  expect((await at.get(orphan))?.ownerReferences).toBeUndefined();
  await patch(at, below, { finalizers: null });
  await at.quiet();
  expect(await there(at, waiting, below)).toEqual([false, false]);
});

test('a failure is reported, and what failed is tried again; the end of a storage is not', async () => {
  const { at, taps, errors, clock } = begin();
  const owner = await at.create('owner');
  const child = await at.create('child', [refTo(owner)]);
  const failures = [new Error('told to fail'), new WatchError('CLOSED', 'told to fail')];
  taps.set(`get ${AT}default/child`, () => {
    const failure = failures.shift();
    if (failure) throw failure;
  });
  await at.delete(owner);
  for (const ms of [0, RETRY_MS, 2 * RETRY_MS]) {
    clock.advance(ms);
    await at.quiet();
  }
  expect([failures, errors]).toEqual([[], [expect.objectContaining({ message: 'told to fail' })]]);
  taps.clear();
  expect(await there(at, child)).toEqual([false]);
});

test('an owner that cannot be read is no reason to delete anything, and is read again', async () => {
  const { at, taps, errors, clock } = begin();
  const none = { apiVersion: 'v1', kind: 'ConfigMap', name: 'none', uid: 'none' };
  const failure = new Error('told to fail');
  await at.quiet(); // or it may find the child twice: in its first list, and as a change
  taps.set(`get ${MAPS}default/none`, () => Promise.reject(failure));
  const child = await at.create('child', [none]);
  await expect.poll(() => errors).toEqual([failure]);
  await at.quiet();
  expect([await there(at, child), errors]).toEqual([[true], [failure]]);
  taps.clear();
  await at.quiet();
  expect(await there(at, child)).toEqual([true]);
  clock.advance(RETRY_MS);
  await at.quiet();
  expect([await there(at, child), errors]).toEqual([[false], [failure]]);
});

test('an object whose owners are there is not read again', async () => {
  const { at, taps, errors } = begin();
  const [owner, other] = [await at.create('owner'), await at.create('other')];
  let reads = 0;
  taps.set(`get ${AT}default/child`, () => void reads++);
  const child = await at.create('child', [refTo(owner), refTo(other)]);
  await at.quiet();
  expect([reads, errors]).toEqual([0, []]);
  await at.delete(other);
  await at.quiet();
  expect([reads, (await at.get(child))?.ownerReferences]).toEqual([expect.toSatisfy((count) => count > 0), [refTo(owner)]]);
});

const EITHER = EVENTS as unknown as readonly [ResourceDefinition, ResourceDefinition];

test('events are not collected; other things with the same plural are', async () => {
  const others: ResourceDefinition = { ...ORDERS, plural: 'events', kind: 'Other' };
  const [core, late] = EITHER;
  const { at, errors } = begin({ resources: [...EVERYTHING, core, late, others] });
  const none = { apiVersion: 'v1', kind: 'ConfigMap', name: 'none', uid: 'none' };
  const event = await at.create('event', [none], { kind: core });
  const other = await at.create('other', [none], { kind: others });
  await at.quiet();
  expect([await there(at, event, other), errors]).toEqual([[true, false], []]);
  // Nor are their dependents: a deletion of one does not wait.
  expect(await at.delete({ ...event, path: event.path.replace('/api/v1', `/apis/${late.group}/v1`) }, 'Foreground')).toBe(200);
  expect(await there(at, event)).toEqual([false]);
});

test('what refers to a kind by the wrong group or the wrong name is left alone, as is what has no name', async () => {
  const { at, errors } = begin();
  const owner = await at.create('owner');
  const wrong = [{ apiVersion: 'other.example/v1' }, { kind: 'Other' }].map((each) => ({ ...each, uid: 'never' }));
  const made: Made[] = [];
  for (const [index, each] of wrong.entries()) made.push(await at.create(`child-${index}`, [refTo(owner, each)]));
  await at.quiet();
  expect([await there(at, ...made), errors]).toEqual([[true, true], []]);
  const storage = at.rig.storage as Storage;
  for (const [index, name] of ['.', '', 5].entries()) {
    const metadata = { name: `n${index}`, namespace: 'default', uid: `n${index}`, ownerReferences: [refTo(owner, { name })] };
    await storage.create(`${AT}default/n${index}`, { apiVersion: 'example.com/v1', kind: 'Order', metadata } as KubernetesObject);
  }
  await at.quiet();
  expect([(await storage.scope(AT).list()).items.length, errors]).toEqual([6, []]);
});

test('a reference is taken away in the version in which an object is stored', async () => {
  const versions = ['v1', 'v2'].map((version): ResourceDefinition => ({ ...ORDERS, plural: 'ships', kind: 'Ship', version }));
  const { at, errors } = begin({ resources: [...versions, ...EVERYTHING], convert: { 'ships.example.com': (object) => object } });
  const [owner, other] = [await at.create('owner'), await at.create('other')];
  const old = { apiVersion: 'example.com/v2', kind: 'Ship', spec: { only: 'v2' } };
  const metadata = { name: 'a', namespace: 'default', uid: 'a', ownerReferences: [refTo(owner), refTo(other)] };
  const storage = (at.rig.storage as Storage).scope('example.com/ships/');
  await storage.create('default/a', { ...old, metadata } as KubernetesObject);
  await at.delete(owner);
  await at.quiet();
  const stored = await storage.get('default/a');
  expect([stored?.apiVersion, stored?.metadata?.ownerReferences, errors]).toEqual(['example.com/v2', [refTo(other)], []]);
});

test('a version that a kind has later counts as well, and what changes with it is followed', async () => {
  const { errors, ...made } = collecting(closing, { customResourceDefinitions: true });
  const at = new World(made);
  const widgets: ResourceDefinition = { ...ORDERS, plural: 'widgets', kind: 'Widget' };
  const [path, v2] = [`${CRDS}/widgets.example.com`, { apiVersion: 'example.com/v2', kind: 'Widget', name: 'none', uid: 'none' }];
  expect((await at.rig.call('POST', CRDS, crdOf())).code).toBe(201);
  await expect.poll(async () => (await at.rig.call('GET', '/apis/example.com/v1/widgets')).code).toBe(200);
  const early = await at.create('early', [v2]);
  await at.quiet();
  expect(await there(at, early)).toEqual([true]);
  const { versions } = (await at.rig.call('GET', path)).body.spec;
  await at.rig.call('PATCH', path, { spec: { versions: [...versions, { ...versions[0], name: 'v2', storage: false }] } });
  await expect.poll(() => at.get(early)).toBeUndefined();
  const owner = await at.create('owner', [], { kind: widgets });
  const child = await at.create('child', [refTo(owner)]);
  await at.quiet();
  await at.delete(owner);
  await expect.poll(() => at.get(child)).toBeUndefined();
  expect(errors).toEqual([]);
});

test('a kind that was removed and is served again is followed again', async () => {
  const { errors, ...made } = collecting(closing, { customResourceDefinitions: true });
  const at = new World(made);
  const widgets: ResourceDefinition = { ...ORDERS, plural: 'widgets', kind: 'Widget' };
  const serve = async (): Promise<void> => {
    expect((await at.rig.call('POST', CRDS, crdOf())).code).toBe(201);
    await expect.poll(async () => (await at.rig.call('GET', '/apis/example.com/v1/widgets')).code).toBe(200);
  };
  await serve();
  const first = await at.create('first', [], { kind: widgets });
  const ofFirst = await at.create('of-first', [refTo(first)]);
  await at.rig.call('DELETE', `${CRDS}/widgets.example.com`);
  await expect.poll(async () => (await at.rig.call('GET', `${CRDS}/widgets.example.com`)).code).toBe(404);
  await serve();
  await expect.poll(() => at.get(ofFirst)).toBeUndefined();
  const second = await at.create('second', [], { kind: widgets });
  const node = await at.create('node', [], { kind: NODES });
  const child = await at.create('child', [refTo(second)]);
  const below = await at.create('below', [refTo(node)], { kind: widgets });
  await at.quiet();
  for (const each of [second, node]) await at.delete(each);
  await at.quiet();
  expect([await there(at, child, below), errors]).toEqual([[false, false], []]);
});
