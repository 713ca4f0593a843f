// Whether a Pod may be evicted, and what happens to its budget. pod-paths.test.ts has the rest of the path.
import { beforeAll, describe, expect, it } from 'vitest';
import { kubernetesKinds, type ResourceDefinition } from '../../src/apiserver/index.ts';
import { MemoryStorage, type Storage } from '../../src/storage/index.ts';
import { rig } from './apiserver-rig.ts';

let pods: ResourceDefinition;
let budgets: ResourceDefinition;
beforeAll(async () => {
  [pods, budgets] = await kubernetesKinds('pods/v1', 'poddisruptionbudgets.policy/v1');
});

const PODS = '/api/v1/namespaces/default/pods';
const BUDGETS = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
const WEB = `${PODS}/web`;
const NOW = '2026-01-02T03:04:05Z';
const POD = { metadata: { name: 'web', labels: { a: 'x' } }, spec: { containers: [{ name: 'a', image: 'a:1', resources: {} }] } };
const CANNOT = "Cannot evict pod as it would violate the pod's disruption budget.";
const PROCESSING = 'is still being processed by the server.';
const ALLOWING = { observedGeneration: 1, disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1, expectedPods: 2 };
const TIGHT = { ...ALLOWING, disruptionsAllowed: 0, currentHealthy: 1 };
const READY_NOW = { type: 'Ready', status: 'True' };
const RUNNING = { phase: 'Running', conditions: [READY_NOW] };
const UNREADY = { phase: 'Running' };

type Rig = ReturnType<typeof rig>;
type Call = Rig['call'];

const evict = (call: Call, deleteOptions: object = {}, query: string = ''): ReturnType<Call> =>
  call('POST', `${WEB}/eviction${query}`, {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name: 'web' },
    deleteOptions,
  });

/** Has a Pod of this status, and with this metadata. */
async function withPod(made: Rig, status: object, metadata: object = {}): Promise<Rig> {
  await made.call('POST', PODS, { ...POD, metadata: { ...POD.metadata, ...metadata } });
  await made.call('PATCH', `${WEB}/status`, { status });
  return made;
}

interface Guard {
  readonly spec?: object;
  readonly storage?: Storage;
  readonly metadata?: object;
}

/** A server with a Pod of this status and a budget for it. */
async function guarded(podStatus: object, budgetStatus: object | undefined, { spec, storage, metadata }: Guard = {}) {
  const made = await withPod(rig({ resources: [pods, budgets], ...(storage && { storage }) }), podStatus, metadata);
  const whole = { selector: { matchLabels: { a: 'x' } }, minAvailable: 1, ...spec };
  await made.call('POST', BUDGETS, { metadata: { name: 'few' }, spec: whole });
  if (budgetStatus) await made.call('PATCH', `${BUDGETS}/few/status`, { status: budgetStatus });
  const budget = async () => (await made.call('GET', `${BUDGETS}/few`)).body;
  return { ...made, budget };
}

describe('a budget', () => {
  it('has a disruption less after an eviction', async () => {
    const { call, budget } = await guarded(RUNNING, ALLOWING);
    expect((await evict(call, {}, '?dryRun=All')).code).toBe(201);
    expect((await budget()).status).toEqual(ALLOWING);
    expect((await evict(call)).code).toBe(201);
    expect((await call('GET', WEB)).code).toBe(404);
    expect((await budget()).status).toEqual({ ...ALLOWING, disruptionsAllowed: 0, disruptedPods: { web: NOW } });
  });

  it.each([
    ['allows none', TIGHT, 'The disruption budget few needs 1 healthy pods and has 1 currently', null],
    ['has changed', ALLOWING, `The disruption budget few ${PROCESSING}`, '10'],
  ])('that %s refuses, and nothing changes', async (_, status, message, retryAfter) => {
    const { call, budget } = await guarded(RUNNING, status);
    if (retryAfter) await call('PATCH', `${BUDGETS}/few`, { spec: { minAvailable: 2 } });
    const { code, headers, body } = await evict(call);
    expect([code, headers.get('retry-after'), body.reason, body.message]).toEqual([429, retryAfter, 'TooManyRequests', CANNOT]);
    expect(body.details.causes).toEqual([{ reason: 'DisruptionBudget', message }]);
    expect((await call('GET', WEB)).body.status.conditions).toEqual([READY_NOW].map((each) => expect.objectContaining(each)));
    expect((await budget()).status).toMatchObject(status);
  });

  it('waits for its controller once it has let 2,001 Pods go', async () => {
    const gone = (count: number): object => Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, NOW]));
    const { call, budget } = await guarded(RUNNING, { ...ALLOWING, disruptedPods: gone(2_001) });
    const { code, headers, body } = await evict(call);
    expect([code, headers.get('retry-after'), body.details.causes[0].message]).toEqual([
      ...[429, null, 'The disruption budget few has too many pending evictions'],
    ]);
    await call('PATCH', `${BUDGETS}/few/status`, { status: { disruptedPods: { p2000: null } } });
    expect((await evict(call)).code).toBe(201);
    expect(Object.keys((await budget()).status.disruptedPods)).toHaveLength(2_001);
  });

  const others = [
    { type: 'Initialized', status: 'True' },
    { type: 'Ready', status: 'False' },
  ];
  it.each<[string, object, object | undefined, Guard]>([
    ['no controller has seen it', RUNNING, undefined, {}],
    ['it is for others', RUNNING, TIGHT, { spec: { selector: { matchLabels: { a: 'y' } } } }],
    ['the Pod is Pending', {}, TIGHT, {}],
    ['the Pod has failed', { phase: 'Failed' }, TIGHT, {}],
    ['the Pod is not ready, and the budget is met', UNREADY, TIGHT, {}],
    ['the Pod is anything but ready, and the budget is met', { ...UNREADY, conditions: others }, TIGHT, {}],
    [
      'the Pod is not ready, for which the budget does not care',
      UNREADY,
      { ...TIGHT, currentHealthy: 0 },
      { spec: { unhealthyPodEvictionPolicy: 'AlwaysAllow' } },
    ],
  ])('is not asked if %s', async (_, podStatus, budgetStatus, guard) => {
    const { call } = await guarded(podStatus, budgetStatus, guard);
    expect((await evict(call)).code).toBe(201);
    expect((await call('GET', WEB)).code).toBe(404);
  });

  it('is not asked of a Pod that is going already', async () => {
    const { call } = await guarded(RUNNING, TIGHT, { metadata: { finalizers: ['x.io/held'] } });
    await call('DELETE', WEB);
    expect((await evict(call)).code).toBe(201);
  });

  it('is not asked if there are none, or none with a selector and a status', async () => {
    const { call } = await withPod(rig({ resources: [pods] }), RUNNING);
    expect((await evict(call)).code).toBe(201);
    // Of a definition that fills in nothing.
    const { group, version, plural, kind } = budgets;
    const bare = await withPod(rig({ resources: [pods, { group, version, plural, kind }] }), RUNNING);
    await bare.call('POST', BUDGETS, { metadata: { name: 'empty' } });
    await bare.call('POST', BUDGETS, { metadata: { name: 'for-none' }, status: TIGHT });
    expect(await evict(bare.call)).toMatchObject({ code: 201 });
  });

  it.each([
    ['it is not met', UNREADY, { ...TIGHT, currentHealthy: 0 }],
    ['it wants no Pods to be healthy', UNREADY, { ...TIGHT, desiredHealthy: 0 }],
    ['the Pod is ready, whatever else it is not', { ...RUNNING, conditions: [READY_NOW, { type: 'X', status: 'False' }] }, TIGHT],
  ])('is asked if %s', async (_, podStatus, budgetStatus) => {
    const { call } = await guarded(podStatus, budgetStatus);
    expect((await evict(call)).code).toBe(429);
  });

  it('is not asked about another Pod than was meant', async () => {
    const { call } = await guarded(RUNNING, TIGHT);
    expect((await evict(call, { preconditions: { uid: 'other' } })).code).toBe(409);
  });

  it('must be the only one', async () => {
    const { call } = await guarded(RUNNING, ALLOWING);
    await call('POST', BUDGETS, { metadata: { name: 'more' }, spec: { selector: {} } });
    await call('PATCH', `${BUDGETS}/more/status`, { status: ALLOWING });
    const { code, body } = await evict(call);
    expect([code, body.reason, body.message]).toEqual([
      ...[500, 'InternalError', expect.stringContaining('more than one PodDisruptionBudget')],
    ]);
  });
});

/** A storage in which something else happens right after some calls. */
function followed(storage: Storage, by: (method: string) => Promise<unknown>): Storage {
  return new Proxy(storage, {
    get: (target, name: keyof Storage & string) => {
      const found: unknown = target[name];
      if (typeof found !== 'function') return found;
      if (name === 'scope' || name === 'served') return (...of: unknown[]) => followed(found.apply(target, of), by);
      if (name !== 'list' && name !== 'update') return found.bind(target);
      return async (...of: unknown[]) => {
        const result: unknown = await found.apply(target, of);
        await by(name);
        return result;
      };
    },
  });
}

describe('a Pod that changes', () => {
  /** Evicts it; after the first call of this method of its storage, something else happens to it. */
  async function evictedWhile(method: 'list' | 'update', happens: (call: Call) => Promise<unknown>, how: How) {
    let next: (() => Promise<unknown>) | undefined;
    const storage = followed(new MemoryStorage(), async (called) => {
      const now = next;
      if (called !== method || now === undefined) return;
      next = undefined;
      await now();
    });
    const { call } = await guarded(how.podStatus, TIGHT, { storage, metadata: { finalizers: ['x.io/held'] } });
    const { resourceVersion } = (await call('GET', WEB)).body.metadata;
    next = () => happens(call);
    const answer = await evict(call, how.isExact ? { preconditions: { resourceVersion } } : {});
    expect(next).toBeUndefined();
    const left = await call('GET', WEB);
    return { answer, code: answer.code, isLeft: left.body.metadata.deletionTimestamp === undefined };
  }
  interface How {
    readonly podStatus: object;
    readonly isExact?: boolean;
  }
  const label = (call: Call): Promise<unknown> => call('PATCH', WEB, { metadata: { labels: { b: 'y' } } });

  it.each([
    ['after its budget was asked', 'list'],
    ['after it was told', 'update'],
  ] as const)('%s stays if it may only go as it was', async (_, method) => {
    const { answer, isLeft } = await evictedWhile(method, label, { podStatus: UNREADY });
    expect([answer.code, answer.headers.get('retry-after'), isLeft]).toEqual([429, '10', true]);
    expect(answer.body.details.causes).toEqual([{ reason: 'DisruptionBudget', message: `The disruption budget ${PROCESSING}` }]);
  });

  it('stays, with a conflict, if its version was given', async () => {
    const isExact = true;
    expect(await evictedWhile('list', label, { podStatus: UNREADY, isExact })).toMatchObject({ code: 409, isLeft: true });
    expect(await evictedWhile('update', label, { podStatus: {}, isExact })).toMatchObject({ code: 409, isLeft: true });
  });

  it('goes if neither its budget nor its version says how it must be', async () => {
    expect(await evictedWhile('update', label, { podStatus: {} })).toMatchObject({ code: 201, isLeft: false });
  });

  it('stays if it is another one by then', async () => {
    const replace = async (call: Call): Promise<void> => {
      await call('PATCH', WEB, { metadata: { finalizers: null } });
      await call('DELETE', WEB);
      await call('POST', PODS, POD);
    };
    expect(await evictedWhile('update', replace, { podStatus: {} })).toMatchObject({ code: 409, isLeft: true });
  });
});
