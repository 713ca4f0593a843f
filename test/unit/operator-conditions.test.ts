// Conditions and owners: upstream's tables, and what objects add to them.
import { describe, expect, it } from 'vitest';
import type { KubernetesObject } from '../../src/cache/object.ts';
import {
  type Condition,
  controllerOf,
  findCondition,
  isConditionTrue,
  ownersOf,
  removeCondition,
  removeOwner,
  setCondition,
  setOwner,
} from '../../src/operator/index.ts';

interface Thing extends KubernetesObject {
  status?: { conditions?: (Condition & { probed?: string })[]; phase?: string };
}
type Known = { status: { conditions: Condition[] } };

const BEFORE = '2026-01-01T00:00:00Z';
const AFTER = '2026-01-01T02:00:00Z';
const NOW = '2026-01-01T01:00:00Z';
const now = (): number => Date.parse(NOW) + 678;

const thing = (...conditions: Partial<Condition>[]): Known => ({ status: { conditions } }) as Known;
const condition = (type: string, more: Partial<Condition> = {}): Condition =>
  ({ type, reason: '', message: '', ...more }) as Condition;
const said = { reason: 'reason', message: 'message' };

describe('setCondition', () => {
  it('TestSetStatusCondition: the time changes with the status, and everything else is what is said', () => {
    const first = condition('first');
    const third = condition('third');
    const second = { status: 'True', lastTransitionTime: BEFORE, ...said } as const;
    const added = thing(first, third);
    expect(setCondition(added, condition('second', second))).toBe(true);
    expect(added).toEqual(thing(first, third, condition('second', second)));

    const supplied = thing(first, condition('second', { status: 'False' }), third);
    expect(setCondition(supplied, condition('second', second))).toBe(true);
    expect(supplied).toEqual(thing(first, condition('second', second), third));

    const updated = thing(first, condition('second', { status: 'True', lastTransitionTime: BEFORE }), third);
    const next = condition('second', { ...second, lastTransitionTime: AFTER, observedGeneration: 3 });
    expect(setCondition(updated, next)).toBe(true);
    expect(updated).toEqual(thing(first, condition('second', { ...second, observedGeneration: 3 }), third));

    const same = condition('type', { status: 'True', lastTransitionTime: BEFORE });
    const unchanged = thing(same);
    expect(setCondition(unchanged, { ...same })).toBe(false);
    expect(unchanged).toEqual(thing(same));
  });

  it('creates a status, and knows the time', () => {
    const object: Thing = { metadata: { name: 'a', generation: 2 } };
    const ready = { type: 'Ready', status: 'True', reason: 'Paid', observedGeneration: 2 } as const;
    expect(setCondition(object, ready, { now })).toBe(true);
    expect(object.status).toEqual({ conditions: [{ ...ready, lastTransitionTime: NOW, message: '' }] });
    expect(setCondition(object, { ...ready, lastTransitionTime: AFTER }, { now: () => 0 })).toBe(false);
    expect(setCondition(object, { ...ready, status: 'False' }, { now: () => 0 })).toBe(true);
    expect(findCondition(object, 'Ready')?.lastTransitionTime).toBe('1970-01-01T00:00:00Z');
    const since = thing();
    setCondition(since, ready);
    expect(Date.now() - Date.parse(findCondition(since, 'Ready')?.lastTransitionTime ?? '')).toBeLessThan(3_600_000);
  });

  it.each<[object, string]>([
    [{ type: '' }, 'type: expected a name such as Ready, got ""'],
    [{ type: undefined }, 'type: expected a string, got undefined'],
    [{ status: true }, 'status: expected one of True, False, Unknown, got true'],
    [{ status: 'true' }, 'status: expected one of True, False, Unknown, got "true"'],
    [{ reason: undefined }, 'reason: expected a string, got undefined'],
    [{ message: new Error('no') }, 'message: expected a string, got Error: no'],
    [{ lastTransitionTime: new Date(0) }, `lastTransitionTime: expected a string, got ${new Date(0)}`],
  ])('refuses %o, and changes nothing', (wrong, message) => {
    const object: Thing = {};
    const ready = { type: 'Ready', status: 'True', reason: 'Paid', ...wrong } as Condition;
    expect(() => setCondition(object, ready, { now })).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', message }));
    expect(object).toEqual({});
  });

  it('empties what is not said, and keeps what it does not know', () => {
    const known = {
      ...condition('Ready', { status: 'True', lastTransitionTime: BEFORE, observedGeneration: 3, ...said }),
      probed: 'x',
    };
    const object: Thing = { status: { phase: 'A', conditions: [known] } };
    expect(setCondition(object, { type: 'Ready', status: 'True', reason: 'reason' }, { now })).toBe(true);
    const left = { type: 'Ready', status: 'True', lastTransitionTime: BEFORE, reason: 'reason', message: '', probed: 'x' };
    expect(object).toEqual({ status: { phase: 'A', conditions: [left] } });
  });
});

describe('conditions', () => {
  it('TestRemoveStatusCondition: says whether there was one', () => {
    const object = thing(condition('first'), condition('second'), condition('third'));
    expect(removeCondition(object, 'second')).toBe(true);
    expect(object).toEqual(thing(condition('first'), condition('third')));
    expect(removeCondition(object, 'fourth')).toBe(false);
    expect(object).toEqual(thing(condition('first'), condition('third')));
    for (const empty of [thing(), {}, { status: {} }]) expect(removeCondition(empty, 'Foo')).toBe(false);
  });

  it('TestFindStatusCondition: by type', () => {
    const second = condition('second');
    expect(findCondition(thing(condition('first')), 'second')).toBeUndefined();
    expect(findCondition(thing(condition('first'), second), 'second')).toBe(second);
    expect(findCondition({}, 'second')).toBeUndefined();
  });

  it('TestIsStatusConditionPresentAndEqual: only True is true', () => {
    expect(isConditionTrue(thing(condition('first', { status: 'Unknown' })), 'first')).toBe(false);
    expect(isConditionTrue(thing(condition('first', { status: 'True' })), 'first')).toBe(true);
    expect(isConditionTrue(thing(condition('first', { status: 'False' })), 'first')).toBe(false);
    expect(isConditionTrue(thing(), 'first')).toBe(false);
  });
});

const owner = (more: object = {}): KubernetesObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace: 'shop', uid: 'u1', ...more },
});
const owned = (...ownerReferences: object[]): KubernetesObject => ({
  metadata: { name: 'web-1', namespace: 'shop', ...(ownerReferences.length && { ownerReferences }) },
});
const REFERENCE = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'u1' };
const CONTROLLER = { ...REFERENCE, controller: true, blockOwnerDeletion: true };
const OTHER = { ...CONTROLLER, kind: 'ReplicaSet', uid: 'u2' };

describe('owners', () => {
  it('setOwner sets one reference, and says whether anything changed', () => {
    const object = owned();
    expect(setOwner(object, owner())).toBe(true);
    expect(object).toEqual(owned(CONTROLLER));
    expect(setOwner(object, owner())).toBe(false);
    expect(setOwner(object, { ...owner({ uid: 'u9' }), apiVersion: 'apps/v2' }, { blockOwnerDeletion: false })).toBe(true);
    expect(object).toEqual(owned({ ...CONTROLLER, apiVersion: 'apps/v2', uid: 'u9', blockOwnerDeletion: false }));
    expect(setOwner(object, owner(), { controller: false })).toBe(true);
    expect(object).toEqual(owned(REFERENCE));
    const bare: KubernetesObject = {};
    expect(setOwner(bare, { ...owner({ namespace: undefined }) }, { controller: false, blockOwnerDeletion: true })).toBe(true);
    expect(bare.metadata?.ownerReferences).toEqual([{ ...REFERENCE, blockOwnerDeletion: true }]);
  });

  it('setOwner keeps other owners, but for a second controller', () => {
    const object = owned(OTHER);
    expect(() => setOwner(object, owner())).toThrow('owner: expected ReplicaSet web, which controls the object already');
    expect(setOwner(object, owner(), { controller: false })).toBe(true);
    expect(object).toEqual(owned(OTHER, REFERENCE));
    expect(removeOwner(object, { ...owner(), kind: 'ReplicaSet' })).toBe(true);
    expect(removeOwner(object, { ...owner(), kind: 'ReplicaSet' })).toBe(false);
    expect(object).toEqual(owned(REFERENCE));
    expect(setOwner(object, owner())).toBe(true);
    expect(object).toEqual(owned(CONTROLLER));
  });

  it('setOwner refuses owners that cannot be', () => {
    const elsewhere: KubernetesObject = { metadata: { name: 'a', namespace: 'other' } };
    const nowhere: KubernetesObject = { metadata: { name: 'a' } };
    expect(() => setOwner(elsewhere, owner())).toThrow('object.metadata.namespace: expected shop, that of its owner');
    expect(() => setOwner(nowhere, owner())).toThrow('object.metadata.namespace: expected shop');
    expect(setOwner(elsewhere, owner({ namespace: undefined }))).toBe(true);
    expect(() => setOwner(owned(), owner({ uid: undefined }))).toThrow('owner.metadata.uid');
    expect(() => setOwner(owned(), owner({ name: '' }))).toThrow('owner.metadata.name');
    expect(() => setOwner(owned(), { ...owner(), kind: undefined })).toThrow('owner.kind');
    expect(() => setOwner(owned(), { ...owner(), apiVersion: undefined })).toThrow('owner.apiVersion');
    expect(() => setOwner(owned(), owner(), { controler: true } as object)).toThrow('did you mean controller?');
  });

  it('controllerOf and ownersOf look at the controller alone', () => {
    expect(controllerOf(owned(REFERENCE, OTHER))).toEqual(OTHER);
    expect(controllerOf(owned(REFERENCE))).toBeUndefined();
    expect(controllerOf({ metadata: { ownerReferences: [null, 'x'] as never } })).toBeUndefined();
    const deployments = ownersOf({ apiVersion: 'apps/v1beta9', kind: 'Deployment' });
    expect(deployments(owned(CONTROLLER))).toEqual(['shop/web']);
    expect(deployments(owned(REFERENCE))).toEqual([]);
    expect(deployments(owned(OTHER))).toEqual([]);
    expect(deployments(owned({ ...CONTROLLER, apiVersion: 'example.com/v1' }))).toEqual([]);
    expect(deployments(owned())).toEqual([]);
    const all = ownersOf({ apiVersion: 'apps/v1', kind: 'Deployment' }, { controller: false });
    expect(all(owned(REFERENCE, OTHER, { ...REFERENCE, name: 'db' }))).toEqual(['shop/web', 'shop/db']);
  });

  it('ownersOf knows kinds in no namespace, and of the core group', () => {
    const node = { ...CONTROLLER, apiVersion: 'v1', kind: 'Node', name: 'n1' };
    expect(ownersOf({ version: 'v1', plural: 'nodes', kind: 'Node', namespaced: false })(owned(node))).toEqual(['n1']);
    expect(ownersOf({ apiVersion: 'v1', kind: 'Node' })(owned(node))).toEqual(['shop/n1']);
    const nowhere = { metadata: { name: 'x', ownerReferences: [node] } };
    expect(ownersOf({ apiVersion: 'v1', kind: 'Node' })(nowhere)).toEqual(['n1']);
    // A garbage collector takes no object of a namespace for the owner of one in none.
    expect(ownersOf({ version: 'v1', plural: 'nodes', kind: 'Node', namespaced: true })(nowhere)).toEqual([]);
    expect(() => ownersOf({ version: 'v1', plural: 'nodes' })).toThrow('kind.kind');
  });
});
