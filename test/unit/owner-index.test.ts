// The index of owners: what it knows, and when it says that there may be something to do.
import { expect, test } from 'vitest';
import { isSameOwners, OwnerIndex, ownersOf, waitsOf } from '../../src/apiserver/owner-index.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';

const TIME = '2026-01-01T00:00:00Z';
const owner = (uid: string, more: object = {}): object => ({ apiVersion: 'v1', kind: 'A', name: uid, uid, ...more });
const object = (uid: string, ownerReferences?: readonly object[], waits?: string): KubernetesObject =>
  ({
    metadata: { name: 'n', uid, ownerReferences, ...(waits && { finalizers: ['x/y', waits], deletionTimestamp: TIME }) },
  }) as KubernetesObject;

/** An index, and what it has said since this was asked last: `a`: look at the object with this uid; `below a`: at its dependents. */
function indexed(): { index: OwnerIndex; said: () => string[]; known: () => string[] } {
  const calls: string[] = [];
  const index = new OwnerIndex({ look: ({ uid }) => calls.push(uid), lookBelow: (uid) => calls.push(`below ${uid}`) });
  return { index, said: () => calls.splice(0), known: () => [...index.all()].map(({ prefix, key, uid }) => prefix + key + uid) };
}

test('objects without owners that do not wait are not kept', () => {
  const { index, said, known } = indexed();
  index.seen('p/', 'a', object('a'));
  index.seen('p/', 'a', { metadata: { name: 'a', uid: 'a', finalizers: ['orphan'] } });
  index.seen('p/', 'a', { metadata: { name: 'a', uid: 'a', deletionTimestamp: TIME } });
  index.gone({ prefix: 'p/', key: 'a' }, 'a');
  expect([known(), said()]).toEqual([[], []]);
});

test('an object is looked at when its owners change, and when it begins to wait', () => {
  const { index, said, known } = indexed();
  index.seen('p/', 'a', object('a', [owner('o')]));
  expect(said()).toEqual(['a']);
  index.seen('p/', 'a', object('a', [owner('o')]));
  expect(said()).toEqual([]);
  index.seen('p/', 'a', object('a', [owner('o', { blockOwnerDeletion: true })]));
  expect(said()).toEqual(['a']);
  index.seen('p/', 'a', object('a', [owner('o', { blockOwnerDeletion: true })], 'foregroundDeletion'));
  expect([said(), index.waitsOf('a')]).toEqual([['below a', 'a'], 'foregroundDeletion']);
  index.seen('p/', 'a', object('a', [], 'foregroundDeletion'));
  expect([said(), known()]).toEqual([[], ['p/aa']]);
  index.seen('p/', 'a', object('a', [], 'orphan'));
  expect([said(), index.waitsOf('a'), [...index.allWaiting()].length]).toEqual([['below a', 'a'], 'orphan', 1]);
  index.seen('p/', 'a', object('a'));
  expect([said(), index.waitsOf('a'), known(), [...index.allWaiting()]]).toEqual([[], undefined, [], []]);
});

test('an owner that waits is looked at when a dependent goes, or changes its references', () => {
  const { index, said } = indexed();
  index.seen('p/', 'o', object('o', [], 'foregroundDeletion'));
  index.seen('q/', 'a', object('a', [owner('o'), owner('other')]));
  index.seen('q/', 'b', object('b', [owner('o')]));
  expect(said()).toEqual(['below o', 'o', 'a', 'b']);
  index.seen('q/', 'a', object('a', [owner('o', { blockOwnerDeletion: true }), owner('other')]));
  expect(said()).toEqual(['o', 'a']);
  index.seen('q/', 'a', object('a', [owner('other')]));
  expect([said(), [...index.dependentsOf('o')].map(({ uid }) => uid)]).toEqual([['o', 'a'], ['b']]);
  index.gone({ prefix: 'q/', key: 'b' }, 'b');
  expect([said(), index.dependentsOf('o').size, index.dependentsOf('other').size]).toEqual([['o'], 0, 1]);
});

test('dependents are looked at when an owner goes, whether or not it was known', () => {
  const { index, said, known } = indexed();
  index.seen('p/', 'a', object('a', [owner('o')]));
  index.seen('p/', 'b', object('b', [owner('a')]));
  said();
  index.gone({ prefix: 'p/', key: 'o' }, 'o');
  index.gone({ prefix: 'p/', key: 'c' }, 'c');
  expect(said()).toEqual(['below o']);
  index.gone({ prefix: 'p/', key: 'a' }, 'a');
  expect([said(), known()]).toEqual([['below a'], ['p/bb']]);
  index.gone({ prefix: 'p/', key: 'b' }, 'b');
  expect([said(), known(), [...index.of('p/')]]).toEqual([[], [], []]);
});

test('another object with the same name takes the place of one whose deletion was not reported', () => {
  const { index, said, known } = indexed();
  index.seen('p/', 'a', object('a', [owner('o')], 'orphan'));
  index.seen('p/', 'b', object('b', [owner('a')]));
  const [first] = index.of('p/');
  said();
  index.seen('p/', 'a', object('a2', [owner('o')]));
  expect([said(), known().sort(), index.waitsOf('a')]).toEqual([['below a', 'a2'], ['p/aa2', 'p/bb'], undefined]);
  expect([first && index.has(first), [...index.all()].every((node) => index.has(node))]).toEqual([false, true]);
  expect([...index.dependentsOf('o')].map(({ uid }) => uid)).toEqual(['a2']);
  // What is told of the old one does not concern the new one.
  index.gone({ prefix: 'p/', key: 'a' }, 'a');
  expect([said(), known().sort()]).toEqual([['below a'], ['p/aa2', 'p/bb']]);
  index.seen('p/', 'a', object('a3'));
  expect(known()).toEqual(['p/bb']);
});

test('kinds are apart', () => {
  const { index } = indexed();
  for (const prefix of ['p/', 'q/']) index.seen(prefix, 'a', object(`${prefix}a`, [owner('o')]));
  expect([...index.of('q/')].map(({ uid }) => uid)).toEqual(['q/a']);
  expect([[...index.of('r/')], index.dependentsOf('o').size]).toEqual([[], 2]);
});

test('owners are those that have a uid, whatever else is stored', () => {
  const owners = (ownerReferences: unknown): unknown => ownersOf({ metadata: { ownerReferences } } as KubernetesObject);
  expect([ownersOf({}), owners(undefined), owners('x'), owners([])]).toEqual([[], [], [], []]);
  expect(owners([null, 'x', {}, { uid: 1 }, { uid: 'u' }])).toEqual([{ uid: 'u' }]);
});

test('what waits is being deleted, and has a finalizer for it', () => {
  expect(waitsOf({})).toBeUndefined();
  expect(waitsOf({ metadata: { name: 'a', finalizers: ['orphan'] } })).toBeUndefined();
  expect(waitsOf({ metadata: { name: 'a', deletionTimestamp: TIME } })).toBeUndefined();
  expect(waitsOf(object('a', [], 'orphan'))).toBe('orphan');
  expect(waitsOf(object('a', [], 'foregroundDeletion'))).toBe('foregroundDeletion');
});

test('references are the same if all of their members are', () => {
  const one = { apiVersion: 'v1', kind: 'A', name: 'a', uid: 'u', blockOwnerDeletion: true };
  expect([isSameOwners([], []), isSameOwners([one], [{ ...one }]), isSameOwners([one], [])]).toEqual([true, true, false]);
  for (const name of Object.keys(one)) expect([name, isSameOwners([one], [{ ...one, [name]: 'x' }])]).toEqual([name, false]);
});
