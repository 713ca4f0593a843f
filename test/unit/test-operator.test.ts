// An operator under test: what `settled` and `advance` wait for, what they reject with, and that nothing is left of it.
import { expect, onTestFinished, test, vi } from 'vitest';
import { Resource } from '../../src/apiserver/resource.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { controller, findCondition, type KindName, kind, not, setCondition } from '../../src/operator/index.ts';
import { testOperator } from '../../src/testing/test-operator.ts';
import type { ObjectEvent } from '../../src/watch/event.ts';
import { fromAsyncIterable } from '../../src/watch/pull-watch.ts';
import { turn } from './event-recorder-rig.ts';
import { macrotask } from './support.ts';

interface Website extends KubernetesObject {
  readonly spec?: { readonly replicas?: number; readonly greeting?: string } | undefined;
  readonly status?: { readonly url?: string; readonly seen?: number } | undefined;
}
interface Deployment extends KubernetesObject {
  readonly spec?: { readonly replicas?: number } | undefined;
}

const WEBSITES = kind<Website>({ group: 'example.com', version: 'v1', plural: 'websites', kind: 'Website', namespaced: true });
const DEPLOYMENTS = kind<Deployment>('deployments.apps/v1');
const web: Website = {
  ...{ apiVersion: 'example.com/v1', kind: 'Website' },
  ...{ metadata: { name: 'web', namespace: 'default' }, spec: { replicas: 2 } },
};

const websites = controller({
  for: WEBSITES,
  owns: [DEPLOYMENTS],
  reconcile: async ({ object, apply, updateStatus, events, owned }) => {
    if (!object) return;
    if (owned(DEPLOYMENTS).length === 0) events.normal('Created', 'a deployment');
    await apply(DEPLOYMENTS, { spec: { replicas: object.spec?.replicas } });
    await updateStatus((draft) => Object.assign(draft, { status: { url: 'https://example.com' } }));
  },
});

test.each([
  ['Foreground', []],
  ['Orphan', ['web']],
] as const)(
  'what it owns is not created again while the garbage collector deletes it, or gives it up: %s',
  async (propagation, left) => {
    await using operator = await testOperator({ controllers: [websites], objects: [web] });
    await operator.settled();
    await operator.resource(WEBSITES).delete('default/web', { propagation });
    await operator.settled();
    expect((await operator.resource(WEBSITES).list()).items).toEqual([]);
    const { items } = await operator.resource(DEPLOYMENTS).list();
    expect(items.map(({ metadata }) => metadata?.name)).toEqual(left);
    expect(items.flatMap(({ metadata }) => metadata?.ownerReferences ?? [])).toEqual([]);
    expect(operator.errors).toEqual([]);
  },
);

test('something outside the cluster can ask for a reconcile, while it works', async () => {
  const runs: string[] = [];
  const counting = controller({ for: WEBSITES, reconcile: ({ key }) => void runs.push(key) });
  const test = await testOperator({ controllers: [counting], objects: [web] });
  await test.settled();
  expect(test.operator.enqueue('websites', 'default/web')).toBe(true);
  expect(test.operator.enqueue('websites', 'default/gone')).toBe(true);
  await test.settled();
  expect(runs).toEqual(['default/web', 'default/web', 'default/gone']);
  expect(() => test.operator.enqueue('sites', 'default/web')).toThrow('controller: expected one of websites, got "sites"');
  const wrong = (key: unknown) => () => test.operator.enqueue('websites', key as string);
  expect(wrong('web')).toThrow('key: expected keys "namespace/name", because websites.example.com/v1 has namespaces, got "web"');
  expect(wrong(undefined)).toThrow('key: expected a string, got undefined');
  await test.close();
  expect(test.operator.enqueue('websites', 'default/web')).toBe(false);
  expect(runs).toHaveLength(3);
});

test('what it owns is there, and what it says, when it has settled', async () => {
  await using operator = await testOperator({ controllers: [websites], objects: [web] });
  await operator.settled();
  const deployments = operator.resource(DEPLOYMENTS);
  expect(await deployments.get('default/web')).toMatchObject({
    spec: { replicas: 2 },
    metadata: { ownerReferences: [{ kind: 'Website', name: 'web', controller: true }] },
  });
  const found = await operator.resource(WEBSITES).get('default/web');
  expect(found.status).toEqual({ url: 'https://example.com' });
  const said = await operator.events(found);
  expect(said.map(({ type, reason, message, metadata }) => [type, reason, message, metadata?.creationTimestamp])).toEqual([
    ['Normal', 'Created', 'a deployment', '2026-01-01T00:00:00Z'],
  ]);
  expect(said[0]?.eventTime).toBe('2026-01-01T00:00:00.000000Z');
  await deployments.patch('default/web', { spec: { replicas: 7 } });
  await operator.settled();
  expect((await deployments.get('default/web')).spec?.replicas).toBe(2);
  await operator.resource(WEBSITES).delete('default/web');
  await operator.settled();
  expect((await deployments.list()).items).toEqual([]);
  expect(operator.errors).toEqual([]);
});

test('what the server does by itself is waited for, too: a chain of owners, a namespace with what is in it', async () => {
  const maps = kind<KubernetesObject>('configmaps/v1');
  await using operator = await testOperator({ controllers: [websites], objects: [web], resources: [maps, 'namespaces/v1'] });
  await operator.settled();
  const client = operator.resource(maps).in('default');
  let owner: KubernetesObject = await operator.resource(DEPLOYMENTS).get('default/web');
  for (let at = 0; at < 10; at++) {
    const { apiVersion = '', kind = '', metadata: { name = '', uid = '' } = {} } = owner;
    const ownerReferences = [{ apiVersion, kind, name, uid }];
    owner = await client.create({ metadata: { name: `map-${at}`, ownerReferences } });
  }
  await operator.resource(WEBSITES).delete('default/web');
  await operator.settled();
  expect((await client.list()).items).toEqual([]);
  const namespaces = operator.resource('namespaces/v1');
  await namespaces.create({ metadata: { name: 'shop' } });
  await operator.resource(WEBSITES).create({ ...web, metadata: { name: 'web', namespace: 'shop' } });
  await operator.settled();
  await namespaces.delete('shop');
  await operator.settled();
  expect((await namespaces.list()).items.map(({ metadata }) => metadata?.name)).toEqual(['default']);
  expect((await operator.resource(DEPLOYMENTS).list()).items).toEqual([]);
});

test('caches that lag behind are waited for', async () => {
  const { watch } = Resource.prototype;
  async function* late(events: AsyncIterable<ObjectEvent<KubernetesObject>>): AsyncGenerator<ObjectEvent<KubernetesObject>> {
    for await (const event of events) {
      for (let turns = 0; turns < 40; turns++) await turn();
      yield event;
    }
  }
  Resource.prototype.watch = async function (options) {
    return fromAsyncIterable(late(await watch.call(this, options))) as never;
  };
  try {
    await using operator = await testOperator({ controllers: [websites] });
    await operator.settled();
    await operator.resource(WEBSITES).create(web);
    await operator.settled();
    expect(await operator.resource(DEPLOYMENTS).get('default/web')).toMatchObject({ spec: { replicas: 2 } });
  } finally {
    Resource.prototype.watch = watch;
  }
});

/** A controller of websites that does what it is told. */
const doing = (
  reconcile: Parameters<typeof controller<Website>>[0]['reconcile'],
  more: Partial<Parameters<typeof controller<Website>>[0]> = {},
) => controller<Website>({ for: WEBSITES, ...more, reconcile });

test('requeueAfterMs: not before its time, and at its time', async () => {
  const times: number[] = [];
  const again = doing(() => {
    times.push(operator.clock.now());
    return { requeueAfterMs: 60_000 };
  });
  await using operator = await testOperator({ controllers: [again], objects: [web], startMs: 0 });
  await operator.settled();
  await operator.settled();
  expect(times).toEqual([0]);
  await operator.advance(59_999);
  expect(times).toEqual([0]);
  await operator.advance(120_001);
  expect(times).toEqual([0, 60_000, 120_000, 180_000]);
});

test('a failure fails the test, once; what is tried again later is not waited for', async () => {
  const broken = doing(({ attempt }) => {
    if (attempt < 3) throw new Error(`no luck ${attempt}`);
  });
  const operator = await testOperator({ controllers: [broken], objects: [web] });
  const failed = (await operator.settled().catch((error: unknown) => error)) as AggregateError;
  expect(failed).toBeInstanceOf(AggregateError);
  expect(failed.message).toMatch(/^a failure in the operator: websites default\/web \(attempt 1\): Error: no luck 1/);
  expect((failed.errors[0] as Error).message).toBe('no luck 1');
  await operator.settled();
  await expect(operator.advance(1_000)).rejects.toThrow(/no luck 2/);
  expect(operator.errors.map(({ controller, key, attempt }) => [controller, key, attempt])).toEqual([
    ['websites', 'default/web', 1],
    ['websites', 'default/web', 2],
  ]);
  await operator.close();
});

test('a failure that nobody has heard of fails the end of the test', async () => {
  const broken = doing(() => Promise.reject(new Error('no luck')));
  const operator = await testOperator({ controllers: [broken], objects: [web] });
  await expect(operator.close().then(() => operator.errors)).resolves.toEqual([]); // it has not begun
  const other = await testOperator({ controllers: [broken], objects: [web] });
  await other.clock.advanceAsync(0);
  await expect.poll(() => other.errors.length).toBe(1);
  await expect(other.close()).rejects.toThrow(/no luck/);
  expect(other.clock.pending).toBe(0);
});

test("retries, with growing delays; their failures are the test's with onError", async () => {
  const times: number[] = [];
  const told: string[] = [];
  const broken = doing(() => {
    times.push(operator.clock.now());
    if (times.length < 6) throw new Error('not yet');
  });
  await using operator = await testOperator({
    ...{ controllers: [broken], objects: [web], startMs: 0 },
    onError: (error, { during, attempt }) => void told.push(`${during} ${attempt}: ${(error as Error).message}`),
  });
  await operator.settled();
  expect(times).toEqual([0]);
  await operator.advance(10_000);
  expect(times).toEqual([0, 5, 15, 35, 75, 155]);
  expect(told).toEqual([1, 2, 3, 4, 5].map((attempt) => `reconcile ${attempt}: not yet`));
  expect(operator.errors.length).toBe(5);
});

test('resyncs', async () => {
  const times: number[] = [];
  const counted = doing(() => void times.push(operator.clock.now()), { resyncMs: 3_600_000 });
  await using operator = await testOperator({ controllers: [counted], objects: [web], startMs: 0 });
  await operator.advance(3 * 3_600_000);
  expect(times).toEqual([0, 1, 2, 3].map((hours) => hours * 3_600_000));
});

test('a controller that never settles is named', async () => {
  const restless = doing(async ({ object, resource }) => {
    if (object) await resource(WEBSITES).patch('default/web', { spec: { replicas: (object.spec?.replicas ?? 0) + 1 } });
  });
  const operator = await testOperator({ controllers: [restless], objects: [web], maxReconciles: 100 });
  await expect(operator.settled()).rejects.toThrow('websites default/web was reconciled 100 times without settling');
  await operator.close();
  expect(operator.clock.pending).toBe(0);
});

test('one that asks to run again at once settles, as its delays grow', async () => {
  let count = 0;
  const hasty = doing(() => {
    count++;
    return { requeueAfterMs: 0 };
  });
  await using operator = await testOperator({ controllers: [hasty], objects: [web], maxReconciles: 2 });
  await operator.settled();
  expect(count).toBe(1);
  await operator.advance(1_000); // after 5, 15, 35, 75, 155, 315 and 635 ms
  expect(count).toBe(8);
});

test('often is not too often, if time passes in between', async () => {
  let count = 0;
  const often = doing(() => ({ requeueAfterMs: 1 + (count++ % 1) }));
  await using operator = await testOperator({ controllers: [often], objects: [web], maxReconciles: 10 });
  await operator.advance(300);
  expect(count).toBe(301);
});

test('a reconcile that waits for something outside is waited for', async () => {
  let isOver = false;
  const slow = doing(async () => {
    for (let turns = 0; turns < 200; turns++) await macrotask(); // longer than it takes to find that nothing else goes on
    isOver = true;
  });
  await using operator = await testOperator({ controllers: [slow], objects: [web] });
  await operator.settled();
  expect(isOver).toBe(true);
});

test('one of a kind that is named by apiVersion and kind is named after the kind', async () => {
  const { apiVersion, kind: name } = web as { apiVersion: string; kind: string };
  const hanging = controller({ for: { apiVersion, kind: name }, reconcile: () => new Promise<void>(() => {}) });
  const operator = await testOperator({ resources: [WEBSITES as never], controllers: [hanging], objects: [web], timeoutMs: 50 });
  await expect(operator.settled()).rejects.toThrow('gave up after 50 ms on website default/web, which is being reconciled');
  await operator.close().catch(() => {});
});

test('one that waits without end is named, and its timeout can be tested', async () => {
  const hanging = doing(
    ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    {
      reconcileTimeoutMs: 10_000,
    },
  );
  const operator = await testOperator({ controllers: [hanging], objects: [web], timeoutMs: 50 });
  await expect(operator.settled()).rejects.toThrow('gave up after 50 ms on websites default/web, which is being reconciled');
  await expect(operator.advance(10_000)).rejects.toThrow(/websites default\/web \(attempt 1\): .*took longer than 10,?000 ms/);
  await operator.close();
  expect(operator.clock.pending).toBe(0);
});

test('one that does not end holds up the end of the test, until the deadline; what was told is not told again', async () => {
  const stuck = doing(() => new Promise(() => {}));
  const operator = await testOperator({ controllers: [stuck], objects: [web], timeoutMs: 1 });
  await operator.clock.advanceAsync(0);
  await expect.poll(() => operator.operator.state.controllers[0]?.inWork).toBe(1);
  await expect(operator.close()).rejects.toThrow(/gave up after 30000 ms on websites default\/web/);
  const other = await testOperator({ controllers: [stuck], objects: [web], timeoutMs: 1 });
  await expect(other.settled()).rejects.toThrow('which is being reconciled: something that it awaits never settles');
  await other.close();
});

test('failures come at once, though something hangs because of them; a hang says what was before', async () => {
  const broken = controller<Website>({
    for: {
      kind: WEBSITES,
      indexers: {
        names: () => {
          throw new Error('no name');
        },
      },
    },
    reconcile: ({ object }) => (object ? new Promise<void>(() => {}) : undefined),
  });
  const operator = await testOperator({ controllers: [broken], objects: [web], timeoutMs: 60_000 });
  await expect(operator.settled()).rejects.toThrow(/index names of default\/web: Error: no name/);
  const hanging = doing(({ attempt }) => (attempt === 1 ? Promise.reject(new Error('no luck')) : new Promise(() => {})));
  const other = await testOperator({ controllers: [hanging], objects: [web], timeoutMs: 50 });
  await expect(other.settled()).rejects.toThrow(/no luck/);
  const hung = (await other.advance(1_000).catch((error: unknown) => error)) as Error;
  expect(hung.message).toMatch(/gave up after 50 ms on websites default\/web, .* \(the last failure before: Error: no luck/);
  expect((hung.cause as Error).message).toBe('no luck');
  await other.close();
});

test('what a cache has cannot be changed: not by a reconcile, and not on the server', async () => {
  const spec = { list: ['x'] };
  const changes: readonly ((object: never, seen: readonly KubernetesObject[]) => unknown)[] = [
    (object: { status?: object }) => (object.status = { seen: 1 }),
    (object: { spec: { list: string[] } }) => object.spec.list.push('y'),
    (object: { metadata: { labels?: object } }) => delete object.metadata.labels,
    (_, seen) => Object.assign(seen[0]?.metadata as object, { name: 'other' }),
  ];
  const texts = [
    /add property status, object is not ext/,
    /add property 1, /,
    /delete property 'labels'/,
    /read only property 'name'/,
  ];
  for (const [at, change] of changes.entries()) {
    const mutating = controller<Website>({
      for: WEBSITES,
      reads: [DEPLOYMENTS],
      finalizer: { name: 'example.com/web', finalize: () => {} },
      reconcile: ({ object, store }) => void change(object as never, store(DEPLOYMENTS).list()),
    });
    const metadata = { name: 'web', namespace: 'default', labels: { a: 'b' } };
    const website = { ...web, metadata, spec } as Website;
    const objects = [website, { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec: {} }];
    const operator = await testOperator({ controllers: [mutating], objects });
    const failed = (await operator.settled().catch((error: unknown) => error)) as Error;
    expect(failed.message).toMatch(/websites default\/web: objects of caches are read-only: change a copy/);
    expect(failed.message).toMatch(texts[at] as RegExp);
    expect(failed.message).toMatch(/test-operator\.test\.ts/);
    expect(await operator.resource(WEBSITES).get('default/web')).toMatchObject({ spec, metadata });
    expect(await operator.resource(WEBSITES).get('default/web')).not.toHaveProperty('status');
    await operator.close();
  }
});

test('at the end of a block, a failure that nobody has heard of is printed, and hides no other', async () => {
  const { exitCode } = process;
  const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
  const broken = doing(() => Promise.reject(new Error('no luck')));
  const block = async (): Promise<void> => {
    await using operator = await testOperator({ controllers: [broken], objects: [web] });
    await operator.clock.advanceAsync(0);
    await expect.poll(() => operator.errors.length).toBe(1);
    throw new Error('an assertion');
  };
  try {
    await expect(block()).rejects.toThrow('an assertion');
    expect(String(printed.mock.calls[0]?.[0])).toMatch(/websites default\/web \(attempt 1\): Error: no luck/);
    expect(process.exitCode).toBe(1);
  } finally {
    process.exitCode = exitCode;
    printed.mockRestore();
  }
});

const crd = (plural: string, kind: string, schema: object = {}): KubernetesObject & { readonly spec: object } => ({
  ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata: { name: `${plural}.example.com` } },
  spec: {
    ...{ group: 'example.com', scope: 'Namespaced', names: { plural, kind } },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: { openAPIV3Schema: { type: 'object', ...schema } },
      },
    ],
  },
});

test('definitions of a cluster, with their schemas; a kind that goes and comes back', async () => {
  const seen: string[] = [];
  const failed = new Set<string>();
  const spec = { type: 'object', properties: { replicas: { type: 'integer', default: 3 } } };
  const definition = crd('websites', 'Website', { properties: { spec, status: { type: 'object' } } });
  const counted = controller<Website>({
    for: 'websites.example.com/v1',
    reconcile: ({ key, object }) => void seen.push(`${key} ${object?.spec?.replicas}`),
  });
  await using operator = await testOperator({
    resources: [definition],
    controllers: [counted],
    objects: [{ ...web, spec: {} } as Website],
    onError: (_, { during }) => void failed.add(during),
  });
  await operator.settled();
  expect(seen.splice(0)).toEqual(['default/web 3']);
  await expect(
    operator.resource(WEBSITES).create({ metadata: { name: 'b', namespace: 'default' }, spec: { replicas: 'x' as never } }),
  ).rejects.toThrow(/must be of type integer/);
  const definitions = operator.resource('customresourcedefinitions.apiextensions.k8s.io/v1');
  await definitions.delete('websites.example.com');
  await operator.advance(10_000);
  expect(seen.splice(0)).toEqual(['default/web undefined']);
  await definitions.create(definition);
  await operator.advance(10_000);
  await operator.resource(WEBSITES).create(web);
  await operator.settled();
  expect(seen).toEqual(['default/web 2']);
  expect([...failed]).toEqual(['source']); // its watch ends with a 404
});

test('kinds of Kubernetes: built in ones as they are, others without a schema; objects with their status and namespace', async () => {
  const pods: string[] = [];
  const watched = controller({
    for: 'pods',
    reads: ['namespaces/v1', { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress' }, 'nodes'],
    reconcile: ({ key, object }) => void pods.push(`${key} ${(object as { status?: { phase?: string } }).status?.phase}`),
  });
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a', namespace: 'shop' }, status: { phase: 'Running' } };
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } };
  await using operator = await testOperator({ controllers: [watched], objects: [pod, node], resources: ['secrets/v1'] });
  await operator.settled();
  expect(pods).toEqual(['shop/a Running']);
  expect(await operator.resource('namespaces/v1').get('shop')).toMatchObject({ metadata: { name: 'shop' } });
  await expect(
    operator
      .resource('secrets/v1')
      .in('elsewhere')
      .create({ metadata: { name: 's' } }),
  ).rejects.toThrow(/not found/);
  expect((await operator.resource({ apiVersion: 'v1', kind: 'Node' }).list()).items.length).toBe(1);
});

test('all kinds of Kubernetes, by their short names, too, with the subresources that they have there', async () => {
  const daemons = controller({ for: 'ds', reads: ['netpol'], reconcile: () => {} });
  await using operator = await testOperator({ controllers: [daemons], resources: ['runtimeclasses.node.k8s.io/v1'] });
  const types = ['ds', 'netpol', 'runtimeclass'].map((name) => operator.resource(name).type);
  expect(types.map(({ plural, namespaced }) => [plural, namespaced])).toEqual([
    ['daemonsets', true],
    ['networkpolicies', true],
    ['runtimeclasses', false],
  ]);
  const statusOf = (name: string): Promise<unknown> => operator.resource(name).subresource('status').get('default/a');
  await expect(statusOf('ds')).rejects.toThrow('not found');
  await expect(statusOf('netpol')).rejects.toThrow('subresource: expected one that networkpolicies.networking.k8s.io has');
});

test('kinds by all names that a cluster takes: singular, kind, short name, with or without group and version', async () => {
  const shops = { group: 'example.com', version: 'v1', plural: 'shops', kind: 'Shop', shortNames: ['sh'], singular: 'store' };
  const kinds = ['configmap/v1', 'deployment.apps', 'Secret/v1', 'sh.example.com/v1', 'store', 'statefulset'];
  let seen: readonly number[] = [];
  await using operator = await testOperator({
    resources: [shops, { ...WEBSITES, status: true }],
    objects: [{ apiVersion: 'example.com/v1', kind: 'Website', metadata: { name: 'web', namespace: 'default' }, spec: {} }],
    controllers: [
      doing(
        async ({ object, apply, owned, resource }) => {
          for (const [at, each] of kinds.entries()) {
            if (object) await apply(each, { metadata: { name: `map-${at}` } });
          }
          seen = kinds.map((each) => owned(each).length);
          expect((await resource('configmap/v1').list()).items.length).toBe(object ? 1 : 0);
        },
        { owns: kinds as never },
      ),
    ],
  });
  await operator.settled();
  expect(seen).toEqual([1, 1, 1, 2, 2, 1]);
  for (const [at, each] of kinds.entries()) {
    const { type } = operator.resource(each);
    expect(await operator.resource(each).get(`default/map-${at}`)).toMatchObject({
      metadata: { ownerReferences: [{ name: 'web' }] },
    });
    expect(type.plural).toBe(['configmaps', 'deployments', 'secrets', 'shops', 'shops', 'statefulsets'][at]);
  }
  expect(operator.operator.state.kinds).toHaveLength(kinds.length); // two are one, and there are websites
});

test('a finalizer is set, and does its work before the object goes', async () => {
  const done: string[] = [];
  const careful = controller<Website>({
    for: WEBSITES,
    reconcile: ({ key }) => void done.push(`reconcile ${key}`),
    finalizer: { name: 'example.com/files', finalize: ({ object }) => void done.push(`finalize ${object.metadata?.name}`) },
  });
  await using operator = await testOperator({ controllers: [careful], objects: [web] });
  await operator.settled();
  const resource = operator.resource(WEBSITES);
  expect((await resource.get('default/web')).metadata?.finalizers).toEqual(['example.com/files']);
  await resource.delete('default/web');
  await operator.settled();
  expect((await resource.list()).items).toEqual([]);
  expect(done).toContain('finalize web');
});

test('all counts of events are there, also those that a recorder holds back', async () => {
  const telling = doing(({ object, events }) => object && events.warning('Broken', 'again'));
  await using operator = await testOperator({ controllers: [telling], objects: [web] });
  for (let at = 0; at < 4; at++) {
    await operator.resource(WEBSITES).patch('default/web', { spec: { replicas: at + 10 } });
    await operator.settled();
  }
  expect(await operator.events(web)).toMatchObject([{ type: 'Warning', reason: 'Broken', series: { count: 4 } }]);
  expect(await operator.events({ ...web, metadata: { name: 'other', namespace: 'default' } })).toEqual([]);
});

test('events of one second are in the order in which they were emitted, whatever their objects are called', async () => {
  const random = vi.spyOn(Math, 'random').mockReturnValue(1 - Number.EPSILON);
  onTestFinished(() => random.mockRestore());
  const telling = doing(({ object, events }) => object && events.normal('Seen', object.metadata?.name ?? ''));
  await using operator = await testOperator({ controllers: [telling] });
  for (const name of ['z', 'm.1', 'a']) {
    await operator.resource(WEBSITES).create({ ...web, metadata: { name, namespace: 'default' } });
    await operator.settled();
  }
  expect((await operator.events()).map(({ message }) => message)).toEqual(['z', 'm.1', 'a']);
});

test('what cannot be tested is refused', async () => {
  await expect(testOperator({ controllers: [controller({ for: 'sites.example.com/v1', reconcile: () => {} })] })).rejects.toThrow(
    /^controller sites, for: expected a kind of Kubernetes, or one that `resources` define .*, got "sites.example.com\/v1"/,
  );
  await expect(testOperator({ controllers: [websites], timeoutMs: 0 })).rejects.toThrow(/^timeoutMs/);
  await expect(testOperator({ controller: [] } as never)).rejects.toThrow(/did you mean controllers/);
  await expect(testOperator({ controllers: [websites], resources: [crd('bad', 'Bad', { type: 'string' })] })).rejects.toThrow();
  await expect(testOperator({ controllers: [websites], objects: [{ metadata: { name: 'a' } }] })).rejects.toThrow();
});

test.each([
  [{ reconcile: 5 }, /^reconcile: expected a function, got 5/],
  [{ finalizer: { name: 'example.com/x' } }, /^finalizer.finalize: expected a function/],
  [{ owns: 'configmaps/v1' }, /^owns: expected a list, got "configmaps\/v1"/],
  [{ watches: [undefined] }, /^watches\[0\]: expected { kind, keysOf }, got undefined/],
  [{ for: undefined }, /^kind: expected/],
])('a controller with %j is refused', async (options, message) => {
  const refusal = { code: 'INVALID_ARGUMENT', message: expect.stringMatching(message) };
  await expect(testOperator({ controllers: [{ ...websites, ...options } as never] })).rejects.toMatchObject(refusal);
});

test('lists that are none are refused', async () => {
  await expect(testOperator({ controllers: [undefined] } as never)).rejects.toHaveProperty('code', 'INVALID_ARGUMENT');
  for (const name of ['resources', 'objects']) {
    await expect(testOperator({ controllers: [websites], [name]: 'x' } as never)).rejects.toThrow(`${name}: expected an array`);
  }
});

test('a status with a change of the spec fails, as in a cluster', async () => {
  const seen = controller({
    for: WEBSITES,
    reconcile: ({ updateStatus }) => updateStatus((draft) => Object.assign(draft, { spec: { replicas: 3 } })).then(() => {}),
  });
  await using operator = await testOperator({ controllers: [seen], objects: [web] });
  await expect(operator.settled()).rejects.toThrow('updateStatus writes nothing but the status, and `mutate` has changed spec');
});

test('fields that a schema does not have are refused, which a cluster would drop', async () => {
  const properties = { status: { type: 'object', properties: { phase: { type: 'string' } } }, spec: { type: 'object' } };
  const misspelt = doing(({ updateStatus }) =>
    updateStatus((draft) => Object.assign(draft, { status: { fase: 'Ready' } })).then(() => {}),
  );
  const resources = [crd('websites', 'Website', { properties })];
  const operator = await testOperator({ controllers: [misspelt], resources, objects: [{ ...web, spec: {} } as Website] });
  await expect(operator.settled()).rejects.toThrow(/unknown field "status\.fase"/);
  const websites = operator.resource(WEBSITES).in('default');
  const other: Website = { metadata: { name: 'b' }, spec: { replicas: 1 } };
  await expect(websites.create(other)).rejects.toThrow(/unknown field "spec\.replicas"/);
  expect((await websites.create(other, { fieldValidation: 'Ignore' })).spec).toEqual({});
  await operator.close();
});

test('a time that is a text, and functions that are async but may not be, are refused', async () => {
  const sources = [
    { for: { kind: WEBSITES, when: async () => false } },
    { for: { kind: WEBSITES, when: not((async () => Promise.reject(new Error('ignored'))) as never) } },
    { for: WEBSITES, watches: [{ kind: WEBSITES, keysOf: async () => ['default/web'] }] },
  ];
  for (const [at, source] of sources.entries()) {
    const operator = await testOperator({ controllers: [{ ...source, reconcile: () => {} } as never], objects: [web] });
    const text = at === 2 ? /keysOf: expected it to return an array of strings/ : /when: expected a boolean, not a promise/;
    await expect(operator.settled()).rejects.toThrow(text);
    await operator.close();
  }
  await using operator = await testOperator({ controllers: [doing(() => {})] });
  await expect(operator.advance('5' as never)).rejects.toThrow(/^ms: expected a number of milliseconds >= 0, got "5"/);
  expect(() => operator.clock.advance('5' as never)).toThrow(/^ms: expected a number/);
});

test('there is one time: of the clock, of what the server and events say, and of conditions', async () => {
  const told = doing(({ object, updateStatus, events }) => {
    if (object?.status) return;
    events.normal('Ready', 'now');
    return updateStatus((draft) => setCondition(draft as never, { type: 'Ready', status: 'True', reason: 'Ready' })).then(
      () => {},
    );
  });
  await using operator = await testOperator({ controllers: [told] });
  expect(new Date(operator.clock.now()).toISOString()).toBe('2026-01-01T00:00:00.000Z');
  await operator.advance(3_600_000);
  const at = '2026-01-01T01:00:00Z';
  expect((await operator.resource(WEBSITES).create(web)).metadata?.creationTimestamp).toBe(at);
  await operator.settled();
  const found = await operator.resource(WEBSITES).get('default/web');
  expect(findCondition(found as object, 'Ready')).toMatchObject({ lastTransitionTime: at });
  expect((await operator.events(found))[0]?.metadata?.creationTimestamp).toBe(at);
});

test('a watch that ends by its time is followed by the next at that time, whatever jitter there may be', async () => {
  const random = vi.spyOn(Math, 'random').mockReturnValue(0.99);
  onTestFinished(() => random.mockRestore());
  await using operator = await testOperator({ controllers: [doing(() => {})] });
  for (const ms of [597_100, 2_900]) {
    await operator.advance(ms);
    await operator.resource(WEBSITES).create({ ...web, metadata: { name: `web-${ms}`, namespace: 'default' } });
    await operator.settled();
  }
});

test('kinds that there are not are refused, with where they are named and what may be meant', async () => {
  const refusal = async (options: object): Promise<string> => {
    const given = { controllers: [doing(() => {})], ...options } as Parameters<typeof testOperator>[0];
    return (
      (await testOperator(given).then(
        (operator) => operator.close(),
        (error: Error) => error.message,
      )) ?? 'accepted'
    );
  };
  const owning = (kind: KindName) => ({ controllers: [doing(() => {}, { owns: [kind] as never })] });
  const configMap = await refusal(owning('configmapp/v1'));
  expect(configMap).toMatch(/^controller websites, owns: expected .*: did you mean configmaps\/v1\?, got "configmapp\/v1"/);
  expect(await refusal(owning({ apiVersion: 'v1', kind: 'Configmap' }))).toMatch(/did you mean v1 ConfigMap\?/);
  const any = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const sites = crd('websites', 'Website', { properties: { spec: any, status: any } });
  const { spec, ...withoutSpec } = sites;
  expect(await refusal({ resources: [sites, 'foo'] })).toMatch(/^resources\[1\]: expected a kind of Kubernetes.*, got "foo"/);
  expect(await refusal({ resources: [undefined] })).toMatch(
    /^resources\[0\]: expected a CustomResourceDefinition, .*, got undefined/,
  );
  expect(await refusal({ resources: [withoutSpec] })).toMatch(/^resources\[0\]\.spec: expected that of a Custom/);
  expect(await refusal({ resources: [{ ...sites, spec: { ...spec, scope: 'Cluster' } }] })).toMatch(
    /^controller websites, for: namespaced: expected false, as websites.example.com\/v1 is defined, got true/,
  );
  const beta = JSON.parse(JSON.stringify(sites).replace('"v1","served"', '"v1beta1","served"'));
  expect(await refusal({ resources: [beta] })).toMatch(/did you mean websites.example.com\/v1beta1\?/);
  expect(await refusal({ resources: [sites] })).toBe('accepted');
  const { subresources: _, ...version } = (spec as { versions: { subresources?: object }[] }).versions[0] ?? {};
  const operator = await testOperator({
    controllers: [doing(({ updateStatus }) => updateStatus((draft) => (draft.status = { seen: 1 })).then(() => {}))],
    resources: [{ ...sites, spec: { ...spec, versions: [version] } } as never],
    objects: [web],
  });
  await expect(operator.settled()).rejects.toThrow(
    'expected one that websites.example.com has, as its definition says with subresources: { status: {} }, got "status"',
  );
  await operator.close();
});

test('nothing is left', async () => {
  const before = process.getActiveResourcesInfo().length;
  const operator = await testOperator({ controllers: [websites], objects: [web] });
  await operator.settled();
  await operator.resource(WEBSITES).create({ ...web, metadata: { name: 'other', namespace: 'default' } });
  await operator.close();
  await operator.close();
  expect(operator.clock.pending).toBe(0);
  expect(process.getActiveResourcesInfo().length).toBeLessThanOrEqual(before);
  await expect(operator.settled()).rejects.toMatchObject({ code: 'CLOSED' });
  await expect(operator.resource(WEBSITES).list()).rejects.toMatchObject({ code: 'CLOSED' });
});
