// Electors on a real kube-apiserver, and on a server of ours over HTTP: one leads, the others follow when it ends, well or not. Their time
// stands still while a server is asked: how long it takes to answer ends no leadership.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ApiServer, LEASES, type ResourceDefinition } from '../../src/apiserver/index.ts';
import { Cluster, type KubeConfigLike } from '../../src/kubernetes/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { LeaderElector, type Lease, type LeaseResource } from '../../src/workqueue/index.ts';
import { component, isMissing } from '../components.ts';
import { eventually } from '../eventually.ts';
import { type Listening, listening } from '../listening.ts';
import { type ApiServer as KubeApiServer, startApiServer } from './apiserver.ts';

const TERMS = { leaseDurationMs: 2_000, renewDeadlineMs: 1_500, retryMs: 200 } as const;

/** A network that can be cut. `asking`: number of requests that are not answered yet. */
function cuttable(leases: LeaseResource): { leases: LeaseResource; cut: () => void; asking: () => number } {
  let isCut = false;
  let asking = 0;
  const through = <R>(ask: () => Promise<R>): Promise<R> => {
    if (isCut) return Promise.reject(new Error('cut off'));
    asking++;
    return ask().finally(() => asking--);
  };
  return {
    asking: () => asking,
    cut: () => {
      isCut = true;
    },
    leases: {
      get: (...args) => through(() => leases.get(...args)),
      create: (...args) => through(() => leases.create(...args)),
      update: (...args) => through(() => leases.update(...args)),
    },
  };
}

/** Three electors: the first gives its lease back, the second is cut off, the third leads last. */
async function contest(leases: LeaseResource): Promise<void> {
  const begun: string[] = [];
  const leading = new Set<string>();
  const faults: string[] = [];
  const stops = new Map<string, AbortController>();
  const links = new Map<string, ReturnType<typeof cuttable>>();
  const clock = new FakeClock();
  const runs = ['one', 'two', 'three'].map((identity) => {
    const link = cuttable(leases);
    const stop = new AbortController();
    stops.set(identity, stop);
    links.set(identity, link);
    const elector = new LeaderElector({ ...TERMS, clock, leases: link.leases, name: 'contest', identity, onError: () => {} });
    const lead = async ({ signal, term }: { signal: AbortSignal; term: number }): Promise<void> => {
      if (leading.size > 0) faults.push(`${identity} begins while ${[...leading]} leads`);
      leading.add(identity);
      begun.push(`${term} ${identity}`);
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
      leading.delete(identity);
    };
    return elector.run(lead, { signal: stop.signal });
  });
  const next = async (count: number): Promise<string> => {
    const pass = async (): Promise<void> => {
      if ([...links.values()].every(({ asking }) => asking() === 0)) await clock.advanceAsync(TERMS.retryMs);
      expect(begun.length).toBe(count);
    };
    await eventually(pass, { intervalMs: 1 });
    return (begun.at(-1) as string).split(' ')[1] as string;
  };
  const first = await next(1);
  stops.get(first)?.abort();
  const second = await next(2);
  links.get(second)?.cut();
  const third = await next(3);
  expect(new Set([first, second, third]).size).toBe(3);
  const terms = begun.map((each) => Number(each.split(' ')[0]));
  expect(terms.every((term, at) => at === 0 || term > (terms[at - 1] as number))).toBe(true);
  for (const stop of stops.values()) stop.abort();
  await Promise.all(runs);
  expect(faults).toEqual([]);
  const lease = (await leases.get('contest')) as Lease;
  expect(lease.spec?.holderIdentity ?? '').toBe('');
  // Each leadership is counted, and what people see are times.
  expect(lease.spec?.leaseTransitions).toBeGreaterThanOrEqual(2);
  expect(Date.parse(lease.spec?.renewTime ?? '')).toBeGreaterThan(Date.UTC(2026, 0, 1));
}

const configOf = (server: string, credentials: object = {}): KubeConfigLike => ({
  getCurrentCluster: () => ({ server }),
  getCurrentContext: () => 'test',
  getContextObject: () => ({ namespace: 'default' }),
  getCurrentUser: () => ({}),
  applyToHTTPSOptions: async (options) => void Object.assign(options, credentials),
});

describe('LeaderElector on a server of ours', () => {
  const api = new ApiServer({ storage: new MemoryStorage(), resources: [LEASES as ResourceDefinition] });
  let at: Listening;
  beforeAll(async () => {
    at = await listening(api);
  });
  afterAll(() => at.close());

  test('in process', () => contest(api.resource('leases.coordination.k8s.io/v1').in('inside')));

  test('over HTTP', async () => {
    const cluster = new Cluster(configOf(at.url));
    await contest(cluster.resource('leases.coordination.k8s.io/v1').in('outside'));
    cluster.close();
  });
});

describe.skipIf(isMissing(component('kube-apiserver')))('LeaderElector on a real kube-apiserver', () => {
  let server: KubeApiServer;
  beforeAll(async () => {
    server = await startApiServer();
  }, 60_000);
  afterAll(() => server?.stop());

  test('the same', async () => {
    const cluster = new Cluster(configOf(server.url, { ca: server.ca, headers: { Authorization: `Bearer ${server.token}` } }));
    await contest(cluster.resource('leases.coordination.k8s.io/v1').in('default'));
    cluster.close();
  });
});
