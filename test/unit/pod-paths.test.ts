// The paths of a Pod that need no kubelet: what a scheduler, `kubectl debug` and `kubectl drain` send. test/peers/kubernetes-columns.test.ts
// compares them with a kube-apiserver.
import { beforeAll, describe, expect, it } from 'vitest';
import { kubernetesKinds, type ResourceDefinition } from '../../src/apiserver/index.ts';
import { type Shape, shape } from '../../src/apiserver/kinds/shape.ts';
import { OBJECT_META, OBJECT_REFERENCE } from '../../src/apiserver/kinds/tables.ts';
import { envelopeOf, PROTOBUF, writingMessage } from '../../src/apiserver/request/protobuf.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';
import { rig } from './apiserver-rig.ts';

let pods: ResourceDefinition;
beforeAll(async () => {
  [pods] = await kubernetesKinds('pods/v1');
});

const PODS = '/api/v1/namespaces/default/pods';
/** A Pod of which no field that a selector may ask for has its default. */
const PLACED = {
  spec: {
    ...{ containers: [], nodeName: 'n', restartPolicy: 'Never', schedulerName: 's', serviceAccountName: 'a', hostNetwork: true },
  },
  status: { phase: 'Running', podIP: '10.0.0.1', nominatedNodeName: 'm' },
};
const OF_PLACED = [PLACED.spec, PLACED.status].flatMap((part, at) =>
  Object.entries(part).flatMap(([name, value]) =>
    name === 'containers' ? [] : `${at === 0 ? 'spec' : 'status'}.${name}=${value}`,
  ),
);
const UNPLACED =
  'spec.nodeName=,spec.restartPolicy=Always,spec.schedulerName=default-scheduler,spec.serviceAccountName=,spec.hostNetwork=false,status.phase=Pending,status.podIP=,status.nominatedNodeName=';
const WEB = `${PODS}/web`;
const POD = { metadata: { name: 'web', labels: { a: 'x' } }, spec: { containers: [{ name: 'a', image: 'a:1', resources: {} }] } };
/** What is filled in. */
const FILLED = {
  ...{ dnsPolicy: 'ClusterFirst', enableServiceLinks: true, restartPolicy: 'Always', schedulerName: 'default-scheduler' },
  ...{ securityContext: {}, terminationGracePeriodSeconds: 30 },
};
const inFull = <T extends object>(container: T, imagePullPolicy: string): T => ({
  ...{ imagePullPolicy, terminationMessagePath: '/dev/termination-log', terminationMessagePolicy: 'File', ...container },
});
const DEBUGGER = { name: 'debugger', image: 'busybox', resources: {} };
const binding = (more: object = {}, name: string = 'web'): object => ({
  ...{ apiVersion: 'v1', kind: 'Binding', metadata: { name, ...more }, target: { kind: 'Node', name: 'node-1' } },
});
const eviction = (deleteOptions?: object, name: string = 'web'): object => ({
  ...{ apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name }, ...(deleteOptions && { deleteOptions }) },
});
const SUCCESS = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 };
const [THEN, NOW] = ['2025-01-01T00:00:00Z', '2026-01-02T03:04:05Z'];
const SCHEDULED = { type: 'PodScheduled', status: 'True', lastProbeTime: null, lastTransitionTime: NOW };
const READY = { type: 'Ready', status: 'False', lastProbeTime: null, lastTransitionTime: THEN };
const strategic = { 'content-type': 'application/strategic-merge-patch+json' };

async function withPod(more: object = {}): Promise<ReturnType<typeof rig>> {
  const made = rig({ resources: [pods] });
  await made.call('POST', `${PODS}?fieldManager=me`, { ...POD, ...more });
  return made;
}

it.each<[string, object, object, string]>([
  ...OF_PLACED.map((field): [string, object, object, string] => ['pods/v1', PLACED, { spec: { containers: [] } }, field]),
  ...UNPLACED.split(',').map((field): [string, object, object, string] => [
    'pods/v1',
    { spec: { containers: [] } },
    PLACED,
    field,
  ]),
  ['services/v1', { spec: { type: 'NodePort', clusterIP: '10.0.0.1' } }, {}, 'spec.type=NodePort,spec.clusterIP=10.0.0.1'],
  ['nodes/v1', {}, { spec: { unschedulable: true } }, 'spec.unschedulable=false'],
  ['services/v1', {}, { spec: { type: 'NodePort', clusterIP: '10.0.0.1' } }, 'spec.type=ClusterIP,spec.clusterIP='],
  ['jobs.batch/v1', { status: { succeeded: 1 } }, {}, 'status.successful=1'],
  ['replicasets.apps/v1', {}, { status: { replicas: 2 } }, 'status.replicas=0'],
  ['replicationcontrollers/v1', { status: { replicas: 2 } }, {}, 'status.replicas=2'],
])('objects of %s are found by the fields that they have there: %j and not %j by %s', async (name, one, other, fieldSelector) => {
  const { server } = rig({ resources: await kubernetesKinds(name) });
  const objects = server.resource(name);
  const place = objects.type.namespaced === false ? {} : { namespace: 'default' };
  for (const [at, more] of [one, other].entries()) {
    const object = { metadata: { name: `o-${at}`, ...place }, ...more };
    await objects.create(object as never);
    if ('status' in more) await objects.update(object as never, { subresource: 'status' });
  }
  const { items } = await objects.list({ fieldSelector });
  expect(items.map(({ metadata }) => metadata?.name)).toEqual(['o-0']);
});

describe('a Pod', () => {
  it('has an empty securityContext, which kubectl debug expects', async () => {
    const { call } = await withPod();
    expect((await call('GET', WEB)).body.spec.securityContext).toEqual({});
    const replaced = { ...POD, spec: { ...POD.spec, securityContext: { runAsUser: 5 } } };
    expect((await call('PUT', WEB, replaced)).body.spec.securityContext).toEqual({ runAsUser: 5 });
    expect((await call('PUT', WEB, POD)).body.spec.securityContext).toEqual({});
  });

  it.each([
    ['spec.nodeName=,status.phase=Pending', 1],
    ['spec.restartPolicy=Always,spec.schedulerName=default-scheduler,spec.hostNetwork=false', 1],
    ['spec.serviceAccountName=,status.podIP=,status.nominatedNodeName=', 1],
    ['spec.nodeName=node-1', 0],
  ])('is found by %s', async (selector, expected) => {
    const { call } = await withPod();
    const { items } = (await call('GET', `${PODS}?fieldSelector=${encodeURIComponent(selector)}`)).body;
    expect(items).toHaveLength(expected);
  });

  it('has these paths in discovery', async () => {
    const { call } = await withPod();
    const { resources } = (await call('GET', '/api/v1')).body;
    const shown = resources.map(({ name, kind, group = '', verbs }: Record<string, string>) => [
      name,
      kind,
      group,
      String(verbs),
    ]);
    expect(shown.slice(1)).toEqual([
      ['pods/status', 'Pod', '', 'get,patch,update'],
      ['pods/binding', 'Binding', '', 'create'],
      ['pods/ephemeralcontainers', 'Pod', '', 'get,patch,update'],
      ['pods/eviction', 'Eviction', 'policy', 'create'],
      ['pods/resize', 'Pod', '', 'get,patch,update'],
    ]);
    const { paths } = (await call('GET', '/openapi/v3/api/v1')).body;
    const one = '/api/v1/namespaces/{namespace}/pods/{name}';
    expect(Object.keys(paths[`${one}/eviction`])).toEqual(['post']);
    expect(Object.keys(paths[`${one}/resize`])).toEqual(['get', 'put', 'patch']);
  });

  it('has no others', async () => {
    const { call } = await withPod();
    expect((await call('GET', `${WEB}/log`)).code).toBe(404);
    for (const [method, path] of [
      ['POST', WEB],
      ['POST', `${WEB}/status`],
      ['POST', `${WEB}/resize`],
      ['GET', `${WEB}/binding`],
      ['PUT', `${WEB}/eviction`],
      ['DELETE', `${WEB}/eviction`],
    ] as const)
      expect([method, path, (await call(method, path, method === 'GET' ? undefined : POD)).code]).toEqual([method, path, 405]);
  });
});

describe('/ephemeralcontainers', () => {
  it('writes only those', async () => {
    const { call } = await withPod();
    const patch = { spec: { ephemeralContainers: [DEBUGGER], nodeName: 'no' }, metadata: { labels: { a: 'no' } } };
    const { code, body } = await call('PATCH', `${WEB}/ephemeralcontainers?fieldManager=dbg`, patch, strategic);
    expect([code, body.spec, body.metadata.labels]).toEqual([
      200,
      {
        ...FILLED,
        containers: POD.spec.containers.map((each) => inFull(each, 'IfNotPresent')),
        ephemeralContainers: [inFull(DEBUGGER, 'Always')],
      },
      { a: 'x' },
    ]);
    const entry = body.metadata.managedFields.find(({ manager }: { manager: string }) => manager === 'dbg');
    expect(entry.subresource).toBe('ephemeralcontainers');
    expect(Object.keys(entry.fieldsV1)).toEqual(['f:spec']);
    expect(Object.keys(entry.fieldsV1['f:spec'])).toEqual(['f:ephemeralContainers']);
    expect((await call('GET', `${WEB}/ephemeralcontainers`)).body).toEqual(body);
    const second = {
      ...body,
      spec: { containers: [], ephemeralContainers: [DEBUGGER, { name: 'more', image: 'x', resources: {} }] },
    };
    const put = await call('PUT', `${WEB}/ephemeralcontainers`, second);
    expect(put.body.spec).toEqual({
      ...body.spec,
      ephemeralContainers: second.spec.ephemeralContainers.map((each: object) => inFull(each, 'Always')),
    });
  });

  it.each([
    ['another image', [{ ...DEBUGGER, image: 'other' }], 'existing ephemeral containers "debugger" may not be changed'],
    ['another command', [{ ...DEBUGGER, command: ['a'] }], 'existing ephemeral containers "debugger" may not be changed'],
    ['another name', [{ ...DEBUGGER, name: 'other' }], 'existing ephemeral containers "debugger" may not be removed'],
    ['none', [], 'existing ephemeral containers "debugger" may not be removed'],
    ['null', null, 'existing ephemeral containers "debugger" may not be removed'],
    ['another before it', [{ ...DEBUGGER, name: 'other' }, DEBUGGER], undefined],
    ['empty members, as clients in Go send them', [{ ...DEBUGGER, command: [], stdin: false, env: null }], undefined],
    ['without its empty members', [{ name: 'debugger', image: 'busybox' }], undefined],
  ])('refuses to change one that there is: %s', async (_, ephemeralContainers, message) => {
    const { call } = await withPod();
    await call('PATCH', `${WEB}/ephemeralcontainers`, { spec: { ephemeralContainers: [DEBUGGER] } }, strategic);
    const sent = { ...POD, spec: { ...POD.spec, ephemeralContainers } };
    const { code, body } = await call('PUT', `${WEB}/ephemeralcontainers`, sent);
    const wrong = { field: 'spec.ephemeralContainers', reason: 'FieldValueForbidden', message: `Forbidden: ${message}` };
    expect([code, body.details?.causes]).toEqual(message === undefined ? [200, undefined] : [422, [wrong]]);
  });
});

describe('/resize', () => {
  it('writes only the resources of containers', async () => {
    const { call } = await withPod();
    const resources = { limits: { cpu: '200m' } };
    const sent = { spec: { containers: [{ name: 'a', image: 'no', resources }] } };
    const { body } = await call('PATCH', `${WEB}/resize`, sent, strategic);
    const asked = { ...resources, requests: resources.limits };
    expect(body.spec).toEqual({
      ...FILLED,
      containers: [inFull({ name: 'a', image: 'a:1', resources: asked }, 'IfNotPresent')],
    });
  });

  it('writes how containers are resized, and the resources of init containers and of the Pod', async () => {
    const init = { name: 'i', image: 'i', restartPolicy: 'Always', resources: {} };
    const { call } = await withPod({ spec: { ...POD.spec, initContainers: [init] } });
    const resources = { limits: { cpu: '200m' } };
    const resizePolicy = [{ resourceName: 'cpu', restartPolicy: 'NotRequired' }];
    const [one] = POD.spec.containers;
    const spec = { resources, containers: [{ ...one, resizePolicy }], initContainers: [{ ...init, image: 'no', resources }] };
    const { body } = await call('PUT', `${WEB}/resize`, { ...POD, spec });
    const asked = { ...resources, requests: resources.limits };
    const written = {
      ...{ ...FILLED, ...spec, containers: [inFull({ ...one, resizePolicy }, 'IfNotPresent')] },
      initContainers: [inFull({ ...init, resources: asked }, 'Always')],
    };
    expect(body.spec).toEqual(written);
  });

  const [A, B, I] = [
    { name: 'a', image: 'a' },
    { name: 'b', image: 'b' },
    { name: 'i', image: 'i' },
  ];
  const COUNT = 'Forbidden: containers may not be added or removed on resize';
  const ORDER = 'Forbidden: containers may not be renamed or reordered on resize';
  it.each([
    ['no containers', {}, [['spec.containers', COUNT]]],
    ['null', { containers: null, initContainers: [I] }, [['spec.containers', COUNT]]],
    ['one more', { containers: [A, B, { name: 'c', image: 'c' }], initContainers: [I] }, [['spec.containers', COUNT]]],
    [
      'another order',
      { containers: [B, A], initContainers: [I] },
      [
        ['spec.containers[0].name', ORDER],
        ['spec.containers[1].name', ORDER],
      ],
    ],
    ['another name', { containers: [A, { ...B, name: 'c' }], initContainers: [I] }, [['spec.containers[1].name', ORDER]]],
    ['another init container', { containers: [A, B], initContainers: [A] }, [['spec.initContainers[0].name', ORDER]]],
    ['no init containers', { containers: [A, B] }, [['spec.initContainers', COUNT]]],
  ])('refuses other containers than there are: %s', async (_, spec, expected) => {
    const { call } = await withPod({ spec: { containers: [A, B], initContainers: [I] } });
    const { code, body } = await call('PUT', `${WEB}/resize`, { ...POD, spec });
    const found = body.details.causes.map(({ field, message }: Record<string, string>) => [field, message]);
    const wanted = expected.map(([field, text = '']) => [
      field,
      text.replace('containers', /\.(\w+)/.exec(field ?? '')?.[1] ?? ''),
    ]);
    const all =
      'containers' in spec ? wanted : [...wanted, ['spec.initContainers', COUNT.replace('containers', 'initContainers')]];
    expect([code, body.message.startsWith('Pod "web" is invalid: '), found]).toEqual([422, true, all]);
  });
});

describe('/binding', () => {
  it('gives a Pod a node, labels, annotations and a condition', async () => {
    const { call } = await withPod();
    const sent = binding({ annotations: { by: 'me' }, labels: { zone: 'z' } });
    expect(await call('POST', `${WEB}/binding`, sent)).toMatchObject({ code: 201, body: SUCCESS });
    const { metadata, spec, status } = (await call('GET', WEB)).body;
    expect([spec.nodeName, metadata.annotations, metadata.labels]).toEqual(['node-1', { by: 'me' }, { a: 'x', zone: 'z' }]);
    expect(status.conditions).toEqual([SCHEDULED]);
    // Nobody manages what it has written.
    expect(metadata.managedFields.map(({ manager }: { manager: string }) => manager)).toEqual(['me']);
    const again = await call('POST', `${WEB}/binding`, binding());
    expect(again).toMatchObject({ code: 409, body: { reason: 'Conflict', details: { name: 'web', kind: 'pods/binding' } } });
    expect(again.body.message).toBe(
      'Operation cannot be fulfilled on pods/binding "web": pod web is already assigned to node "node-1"',
    );
  });

  it.each([
    ['what a scheduler has said before', [{ ...SCHEDULED, status: 'False', reason: 'Unschedulable' }, READY], [SCHEDULED, READY]],
    [
      'a condition that is true already',
      [READY, { ...SCHEDULED, lastTransitionTime: THEN }],
      [READY, { ...SCHEDULED, lastTransitionTime: THEN }],
    ],
    ['no conditions', null, [SCHEDULED]],
  ])('replaces %s, where it is, and the nominated node', async (_, conditions, expected) => {
    const { call } = await withPod();
    await call('PATCH', `${WEB}/status`, { status: { conditions, nominatedNodeName: 'node-2', podIP: '10.0.0.1' } });
    await call('POST', `${WEB}/binding`, binding());
    const { metadata, status } = (await call('GET', WEB)).body;
    expect([status, metadata.annotations, metadata.labels]).toEqual([
      { phase: 'Pending', qosClass: 'BestEffort', conditions: expected, podIP: '10.0.0.1', podIPs: [{ ip: '10.0.0.1' }] },
      undefined,
      { a: 'x' },
    ]);
  });

  it.each([
    ['has non-empty .spec.schedulingGates', { spec: { ...POD.spec, schedulingGates: [{ name: 'x.io/gate' }] } }],
    ['is being deleted, cannot be assigned to a host', { metadata: { ...POD.metadata, finalizers: ['x.io/held'] } }],
  ])('is refused if the Pod %s', async (why, more) => {
    const { call } = await withPod(more);
    if ('metadata' in more) await call('DELETE', WEB);
    const { message } = (await call('POST', `${WEB}/binding`, binding())).body;
    expect(message).toBe(`Operation cannot be fulfilled on pods/binding "web": pod web ${why}`);
  });

  it('is sent in protobuf by a scheduler', async () => {
    const { call, server } = await withPod();
    const of: Shape = shape('', { metadata: [1, OBJECT_META], target: [2, OBJECT_REFERENCE] });
    const bytes = atOnce(writingMessage(binding(), of));
    const { head, tail } = envelopeOf({ apiVersion: 'v1', kind: 'Binding' }, bytes.length);
    const body = Buffer.concat([head, bytes, tail]);
    const init = { method: 'POST', headers: { 'content-type': PROTOBUF, accept: PROTOBUF }, body };
    expect((await server.fetch(new Request(`http://127.0.0.1${WEB}/binding`, init))).status).toBe(201);
    expect((await call('GET', WEB)).body.spec.nodeName).toBe('node-1');
  });

  it.each([
    ['of another Pod', binding({}, 'other'), {}, 400],
    ['without a node', { ...binding(), target: {} }, {}, 500],
    ['of another kind', eviction(), {}, 400],
    ['with another uid', binding({ uid: 'other' }), {}, 409],
    ['with an old version', binding({ resourceVersion: '1' }), {}, 409],
    ['of a Pod with gates', binding(), { spec: { ...POD.spec, schedulingGates: [{ name: 'x.io/gate' }] } }, 409],
  ])('%s is refused', async (_, sent, more, expected) => {
    const { call } = await withPod(more);
    await call('PATCH', WEB, { metadata: { labels: { b: 'y' } } });
    expect((await call('POST', `${WEB}/binding`, sent)).code).toBe(expected);
    expect((await call('GET', WEB)).body.spec.nodeName).toBeUndefined();
  });

  const KIND = 'target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"';
  it.each([
    [{ kind: 'Pod', name: 'node-1' }, KIND],
    [{ kind: 'Pod' }, `[${KIND}, target.name: Required value]`],
    [{ kind: 'Node', name: '' }, 'target.name: Required value'],
    [null, 'target.name: Required value'],
    [{ name: 'a b' }, expect.stringMatching(/^target\.name: Invalid value: "a b": a lowercase RFC 1123 subdomain must/)],
  ])('to %j is 500, as upstream, whether or not there is the Pod', async (target, message) => {
    const { call } = await withPod();
    for (const name of ['web', 'none']) {
      const { code, body } = await call('POST', `${PODS}/${name}/binding`, { ...binding({}, name), target });
      expect([code, body]).toEqual([500, { ...SUCCESS, status: 'Failure', code: 500, message }]);
    }
  });

  it('changes nothing in a dry run', async () => {
    const { call } = await withPod();
    expect((await call('POST', `${WEB}/binding?dryRun=All`, binding())).code).toBe(201);
    expect((await call('GET', WEB)).body.spec.nodeName).toBeUndefined();
  });
});

describe('/eviction', () => {
  it('deletes a Pod', async () => {
    const { call } = await withPod();
    for (const [path, options] of [
      [`${WEB}/eviction?dryRun=All`, {}],
      [`${WEB}/eviction`, { dryRun: ['All'] }],
    ] as const) {
      expect((await call('POST', path, eviction(options))).code).toBe(201);
      expect((await call('GET', WEB)).code).toBe(200);
    }
    expect(await call('POST', `${WEB}/eviction`, eviction({ gracePeriodSeconds: 30 }))).toMatchObject({
      code: 201,
      body: SUCCESS,
    });
    expect((await call('GET', WEB)).code).toBe(404);
    expect((await call('POST', `${WEB}/eviction`, eviction())).code).toBe(404);
  });

  it.each([
    ['of another Pod', eviction(undefined, 'other'), 400],
    ['of another kind', binding(), 400],
    ['with another uid', eviction({ preconditions: { uid: 'other' } }), 409],
    ['with an old version', eviction({ preconditions: { resourceVersion: '1' } }), 409],
    ['with an unknown policy', eviction({ propagationPolicy: 'Nobody' }), 422],
  ])('%s is refused', async (_, sent, expected) => {
    const { call } = await withPod();
    expect((await call('POST', `${WEB}/eviction`, sent)).code).toBe(expected);
    expect((await call('GET', WEB)).code).toBe(200);
  });

  it('tells a Pod that has finalizers why it goes', async () => {
    const { call } = await withPod({ metadata: { ...POD.metadata, finalizers: ['x.io/held'] } });
    await call('POST', `${WEB}/eviction`, eviction());
    const { metadata, status } = (await call('GET', WEB)).body;
    expect(metadata.deletionTimestamp).toBe(NOW);
    expect(status.conditions).toEqual([
      { ...SCHEDULED, type: 'DisruptionTarget', reason: 'EvictionByEvictionAPI', message: 'Eviction API: evicting' },
    ]);
  });

  it('is a create, of which authorize is asked', async () => {
    const asked: unknown[] = [];
    const made = rig({
      resources: [pods],
      authorize: (verb, resource) => asked.push([verb, resource]) > 0 && resource === 'pods',
    });
    await made.call('POST', PODS, POD);
    expect((await made.call('POST', `${WEB}/eviction`, eviction())).code).toBe(403);
    expect(asked.at(-1)).toEqual(['create', 'pods/eviction']);
  });
});
