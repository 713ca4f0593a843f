// Kubernetes' own kinds beside the Go types that they have upstream: the table of their fields, random objects in JSON and in protobuf,
// both ways, and how quantities are written. Beside a kube-apiserver: their names, and who owns what after an apply. And client-go's typed
// clients, in protobuf alone, with `watchmux serve`.
import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ResourceDefinition } from '../../src/apiserver/definition.ts';
import { kubernetesKinds, readTable } from '../../src/apiserver/kinds/kubernetes.ts';
import { TABLE } from '../../src/apiserver/kinds/kubernetes-table.ts';
import { quantityOf } from '../../src/apiserver/kinds/quantity.ts';
import { REVIEWS } from '../../src/apiserver/kinds/reviews.ts';
import { type Shape, zeroOf } from '../../src/apiserver/kinds/shape.ts';
import { shapeOf, typed } from '../../src/apiserver/kinds/tables.ts';
import { envelopeOf, readProtobuf, writingMessage } from '../../src/apiserver/request/protobuf.ts';
import { WEBHOOK_CONFIGURATIONS } from '../../src/apiserver/webhooks/configurations.ts';
import { apiVersionOf, nameOf } from '../../src/cache/resource-client.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';
import { component, isMissing } from '../components.ts';
import { killAll, serve } from '../e2e/cli.ts';
import { until } from '../eventually.ts';
import { runs } from '../runs.ts';
import { type ApiServer, startApiServer } from './apiserver.ts';
import { ClientProgram, type ProgramLine } from './client-program.ts';

const clientGo = component('client-go');
const kubeApiServer = component('kube-apiserver');
const START_MS = 90_000;
const NAMES = (TABLE.split('\n\n', 1)[0] as string).split('\n').map((line) => {
  const [apiVersion = '', , plural] = line.split(' ');
  const [version, group] = apiVersion.split('/').reverse();
  return `${plural}${group ? `.${group}` : ''}/${version}`;
});

type Answer = Readonly<Partial<Record<'object' | 'zero' | 'protobuf' | 'same' | 'quantity' | 'error', unknown>>>;

let child: ChildProcessWithoutNullStreams | undefined;
const waiting: ((line: string) => void)[] = [];

function upstream(asked: object): Promise<Answer> {
  return new Promise((resolve) => {
    waiting.push((line) => resolve(JSON.parse(line)));
    child?.stdin.write(`${JSON.stringify(asked)}\n`);
  });
}

/** Built-in kinds, without the defaults that upstream adds later. */
const OTHERS: readonly ResourceDefinition[] = [
  ...REVIEWS,
  ...WEBHOOK_CONFIGURATIONS.map((kind) => ({ ...kind, shape: { ...kind.shape, finish: undefined } })),
];

const nullIfEmpty = (_: string, value: unknown): unknown => (Array.isArray(value) && value.length === 0 ? null : value);

describe.skipIf(isMissing(clientGo))("Kubernetes' own kinds, beside Go", () => {
  beforeAll(() => {
    child = spawn(clientGo.path, ['kinds']);
    createInterface({ input: child.stdout }).on('line', (line) => waiting.shift()?.(line));
  });
  afterAll(() => {
    child?.stdin.end();
  });

  it('the table is what the program makes of the Go types', () => {
    const file = fileURLToPath(new URL('../../src/apiserver/kinds/kubernetes-table.ts', import.meta.url));
    const made = execFileSync(clientGo.path, ['table'], { encoding: 'utf8' });
    expect(readFileSync(file, 'utf8') === made, `${clientGo.path} table > ${file}`).toBe(true);
  });

  it.each([...NAMES, ...OTHERS.map(nameOf)])('random objects of %s are the same in JSON and protobuf', async (name) => {
    const other = OTHERS.find((each) => nameOf(each) === name);
    // As clients read it: they fill in no defaults.
    const kind = other ?? (readTable(TABLE)[NAMES.indexOf(name)] as ResourceDefinition);
    const of = { ...kind, apiVersion: apiVersionOf(kind) };
    const [start, shape] = [{ apiVersion: of.apiVersion, kind: kind.kind }, shapeOf(kind) as Shape];
    const property = fc.asyncProperty(fc.nat(), async (seed) => {
      const { object, protobuf, zero } = await upstream({ ...start, seed });
      expect({ metadata: {}, ...zeroOf(shape) }).toEqual(zero);
      const read = atOnce(typed(of, atOnce(readProtobuf(Buffer.from(protobuf as string, 'base64'), kind)))) as object;
      expect(read).toEqual(object);
      expect(atOnce(typed(of, object))).toEqual(object);
      const bytes = atOnce(writingMessage(object as object, shape));
      const { head, tail } = envelopeOf(start, bytes.length);
      const written = Buffer.concat([head, bytes, tail]).toString('base64');
      const back = await upstream({ ...start, seed, protobuf: written });
      // In protobuf, Go cannot tell an empty list within a map from none.
      expect(other ? JSON.parse(JSON.stringify(back, nullIfEmpty)) : back).toEqual({ object, same: true });
    });
    await fc.assert(property, { numRuns: runs(60) });
  });

  it('quantities are written as in Go', async () => {
    const digits = fc.string({ unit: fc.constantFrom('0', '0', '1', '5', '8', '9'), maxLength: 22 });
    const suffix = fc.constantFrom(
      '',
      'n',
      'u',
      'm',
      'k',
      'M',
      'G',
      'T',
      'P',
      'E',
      'Ki',
      'Mi',
      'Gi',
      'Ti',
      'Pi',
      'Ei',
      'e3',
      'E-4',
      'e20',
    );
    const number = fc.tuple(fc.constantFrom('', '', '+', '-'), digits, fc.constantFrom('', '', '.'), digits);
    const wrong = fc.constantFrom('ki', 'mm', 'e', 'i', ' ', '1 2', 'x', '1e', 'Ee1');
    const text = fc.oneof(
      { weight: 8, arbitrary: fc.tuple(number, suffix).map(([parts, end]) => `${parts.join('')}${end}`) },
      { weight: 1, arbitrary: fc.tuple(number, wrong).map(([parts, end]) => `${parts.join('')}${end}`) },
      { weight: 2, arbitrary: fc.tuple(fc.nat(5000), suffix).map((parts) => parts.join('')) },
    );
    const property = fc.asyncProperty(text, async (quantity) => {
      expect([quantity, quantityOf(quantity)]).toEqual([quantity, (await upstream({ quantity })).quantity]);
    });
    await fc.assert(property, { numRuns: runs(6_000) });
  });
});

/** As `--resource` names them. */
const asOption = ({ group, version, plural, kind }: ResourceDefinition): string[] => [
  ...['--resource', `${plural}${group && `.${group}`}/${version}=${kind}`],
];

afterAll(killAll);

describe.skipIf(isMissing(clientGo))("client-go's typed clients, in protobuf alone", () => {
  it('create, get, list, watch, update, patch, apply and delete', async () => {
    const kinds = await kubernetesKinds(
      ...['pods/v1', 'services/v1', 'deployments.apps/v1', 'statefulsets.apps/v1', 'jobs.batch/v1'],
    );
    const server = await serve(...kinds.flatMap(asOption));
    const program = new ClientProgram(clientGo.path, ['typed', '--server', server.url]);
    await until(() => program.of('ended').length > 0);
    const used = program.of('wrote') as unknown as readonly (ProgramLine & {
      answers: readonly Json[];
      events: readonly string[];
    })[];
    expect(used.map(({ verb }) => verb)).toEqual(['Pod', 'Service', 'Deployment', 'StatefulSet', 'Job']);
    for (const { verb, answers, events } of used) {
      // A Job is marked before it goes, as its Pods stay, and a Pod, as it has grace.
      const changes = Array(verb === 'Job' || verb === 'Pod' ? 5 : 4).fill('MODIFIED');
      expect(events).toEqual(['ADDED', ...changes, 'DELETED'].map((type) => `${type} *v1.${verb}`));
      const [created, updated, observed, , applied, read, list] = answers;
      const at = (answer: Json | undefined): Json => ({
        ...answer?.metadata,
        managedFields: undefined,
        resourceVersion: undefined,
      });
      // A Job without labels has those of its template.
      expect(created?.metadata.labels).toEqual(verb === 'Job' ? created?.spec.template.metadata.labels : undefined);
      expect(at(updated)).toEqual({ ...at(created), labels: { updated: 'yes' } });
      expect(created?.spec).toEqual(updated?.spec);
      expect(created?.status).not.toEqual(observed?.status);
      expect(read).toEqual(applied);
      expect(list?.items).toEqual([read]);
      const spec = read?.spec.template?.spec ?? read?.spec;
      const items: Json[] = spec.containers ?? spec.ports;
      const expected = verb === 'Service' ? [80, 81, 82] : ['a:1', 'b:2', 'c:1'];
      expect(items.map(({ image, port }) => image ?? port).sort()).toEqual(expected);
      const fields = JSON.stringify(read?.metadata.managedFields);
      const key = verb === 'Service' ? { port: 82, protocol: 'TCP' } : { containerPort: 80, protocol: 'TCP' };
      expect(JSON.parse(fields).map(({ manager, operation }: Json) => `${operation} ${manager}`)).toContain('Apply typed');
      expect(fields).toContain(JSON.stringify(`k:${JSON.stringify(key)}`));
    }
    expect(await program.end()).toBe(0);
  });
});

// biome-ignore lint/suspicious/noExplicitAny: answers of a server, which tests read without ceremony
type Json = any;

const CONTAINERS = [
  {
    ...{ name: 'a', image: 'a:1', env: [{ name: 'X', value: '1' }], args: ['x'], envFrom: [{ configMapRef: { name: 'm' } }] },
    ...{ ports: [{ containerPort: 80 }, { containerPort: 80, protocol: 'UDP' }], volumeMounts: [{ name: 'v', mountPath: '/v' }] },
    resources: { limits: { cpu: '0.5', memory: '1Gi' }, requests: { cpu: '250m' } },
    ...{ readinessProbe: { httpGet: { path: '/', port: 'http' } }, securityContext: { capabilities: { add: ['NET_RAW'] } } },
  },
];
const LABELS = { app: 'web' };
const SELECTOR = { matchLabels: LABELS };
const TEMPLATE = {
  metadata: { labels: LABELS },
  spec: {
    ...{ containers: CONTAINERS, nodeSelector: { a: 'b' }, imagePullSecrets: [{ name: 's' }] },
    volumes: [{ name: 'v', projected: { sources: [{ secret: { name: 's' } }] } }],
    tolerations: [{ key: 'a', operator: 'Exists' }],
    topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule', labelSelector: SELECTOR }],
    hostAliases: [{ ip: '10.0.0.1', hostnames: ['x'] }],
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: 'a', operator: 'Exists' }] }],
        },
      },
    },
  },
};
const CLAIM = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1024Mi' } } };
const JOB = { template: { ...TEMPLATE, spec: { ...TEMPLATE.spec, restartPolicy: 'Never' } } };
/** What is applied, by kind. */
const APPLIED: Readonly<Record<string, object>> = {
  'pods/v1': { spec: TEMPLATE.spec },
  'services/v1': {
    spec: {
      selector: LABELS,
      ports: [
        { name: 'a', port: 80, targetPort: 'x' },
        { name: 'b', port: 81 },
      ],
    },
  },
  'persistentvolumeclaims/v1': { spec: CLAIM },
  'nodes/v1': { spec: { taints: [{ key: 'a', effect: 'NoExecute' }], podCIDRs: ['10.0.0.0/24'] } },
  'deployments.apps/v1': { spec: { selector: SELECTOR, template: TEMPLATE, strategy: { rollingUpdate: { maxSurge: '25%' } } } },
  'statefulsets.apps/v1': {
    spec: {
      serviceName: 'x',
      selector: SELECTOR,
      template: TEMPLATE,
      volumeClaimTemplates: [{ metadata: { name: 'v' }, spec: CLAIM }],
    },
  },
  'jobs.batch/v1': { spec: JOB },
  'cronjobs.batch/v1': { spec: { schedule: '* * * * *', jobTemplate: { spec: JOB } } },
  'horizontalpodautoscalers.autoscaling/v2': {
    spec: {
      ...{ maxReplicas: 3, scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'x' } },
      metrics: [{ type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } } }],
    },
  },
  'ingresses.networking.k8s.io/v1': {
    spec: {
      tls: [{ hosts: ['x.io'] }],
      rules: [
        {
          host: 'x.io',
          http: { paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 's', port: { number: 80 } } } }] },
        },
      ],
    },
  },
  'networkpolicies.networking.k8s.io/v1': {
    spec: {
      podSelector: SELECTOR,
      policyTypes: ['Ingress'],
      ingress: [{ from: [{ podSelector: SELECTOR }], ports: [{ port: 80 }] }],
    },
  },
  'poddisruptionbudgets.policy/v1': { spec: { selector: SELECTOR, minAvailable: '50%' } },
  'roles.rbac.authorization.k8s.io/v1': { rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }] },
  'rolebindings.rbac.authorization.k8s.io/v1': {
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'x' },
    subjects: [{ kind: 'ServiceAccount', name: 'x', namespace: 'default' }],
  },
  'storageclasses.storage.k8s.io/v1': { provisioner: 'x.io/y', parameters: { a: 'b' }, mountOptions: ['ro'] },
  'endpointslices.discovery.k8s.io/v1': {
    ...{ addressType: 'IPv4', endpoints: [{ addresses: ['10.1.2.3'], conditions: { ready: true } }], ports: [{ port: 80 }] },
  },
  'endpoints/v1': { subsets: [{ addresses: [{ ip: '10.1.2.3' }], ports: [{ port: 80 }] }] },
  'limitranges/v1': { spec: { limits: [{ type: 'Container', max: { cpu: '1000m' } }] } },
  'resourcequotas/v1': { spec: { hard: { pods: 3 }, scopes: ['BestEffort'] } },
  'persistentvolumes/v1': {
    spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/x' }, mountOptions: ['ro'] },
  },
  'podtemplates/v1': { template: TEMPLATE },
  'replicationcontrollers/v1': { spec: { selector: LABELS, template: TEMPLATE } },
  'controllerrevisions.apps/v1': { data: { a: [1] }, revision: 1 },
  'daemonsets.apps/v1': { spec: { selector: SELECTOR, template: TEMPLATE, updateStrategy: { type: 'OnDelete' } } },
  'replicasets.apps/v1': { spec: { selector: SELECTOR, template: TEMPLATE, replicas: 0 } },
  'horizontalpodautoscalers.autoscaling/v1': {
    spec: { maxReplicas: 3, scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'x' } },
  },
  'ipaddresses.networking.k8s.io/v1': { spec: { parentRef: { resource: 'services', name: 'x', namespace: 'default' } } },
  'servicecidrs.networking.k8s.io/v1': { spec: { cidrs: ['10.9.0.0/24'] } },
  'ingressclasses.networking.k8s.io/v1': { spec: { controller: 'x.io/y', parameters: { kind: 'A', name: 'a' } } },
  'runtimeclasses.node.k8s.io/v1': { handler: 'x', scheduling: { tolerations: [{ operator: 'Exists' }] } },
  'clusterroles.rbac.authorization.k8s.io/v1': { aggregationRule: { clusterRoleSelectors: [SELECTOR] } },
  'clusterrolebindings.rbac.authorization.k8s.io/v1': {
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'x' },
  },
  'priorityclasses.scheduling.k8s.io/v1': { value: 5 },
  'csidrivers.storage.k8s.io/v1': { spec: { tokenRequests: [{ audience: 'x' }], volumeLifecycleModes: ['Persistent'] } },
  'csinodes.storage.k8s.io/v1': { spec: { drivers: [{ name: 'x.io', nodeID: 'x', topologyKeys: ['zone'] }] } },
  'csistoragecapacities.storage.k8s.io/v1': { storageClassName: 'x', capacity: '1Gi' },
  'volumeattachments.storage.k8s.io/v1': { spec: { attacher: 'x.io', nodeName: 'x', source: { persistentVolumeName: 'x' } } },
  'volumeattributesclasses.storage.k8s.io/v1': { driverName: 'x.io', parameters: { a: 'b' } },
};
/** The names of objects that have another one. */
const NAMED: Readonly<Record<string, string>> = {
  'ipaddresses.networking.k8s.io/v1': '10.0.0.9',
  // Nothing converts between its versions here.
  'horizontalpodautoscalers.autoscaling/v2': 'other',
};

describe.skipIf(isMissing(kubeApiServer))("Kubernetes' own kinds, beside a kube-apiserver", () => {
  let theirs: ApiServer;
  let url: string;
  let kinds: readonly ResourceDefinition[];
  beforeAll(async () => {
    kinds = await kubernetesKinds(...NAMES);
    // Without what admission fills in.
    const off = ['ServiceAccount', 'TaintNodesByCondition', 'Priority', 'DefaultTolerationSeconds'];
    theirs = await startApiServer({ flags: [`--disable-admission-plugins=${off}`] });
    ({ url } = await serve(...kinds.flatMap(asOption)));
  }, START_MS);
  afterAll(async () => await theirs.stop());

  const rootOf = ({ group, version }: ResourceDefinition): string => (group ? `/apis/${group}/${version}` : `/api/${version}`);
  const both = async (path: string, init: object = {}): Promise<readonly Json[]> => {
    const read = async (response: { status: number; text(): Promise<string> }): Promise<Json> => {
      const text = await response.text();
      if (response.status >= 300) throw new Error(`${path}: ${response.status} ${text}`);
      return JSON.parse(text);
    };
    return [
      await read(await theirs.fetch(`${theirs.url}${path}`, init as never)),
      await read(await fetch(`${url}${path}`, init)),
    ];
  };

  it('have the same names and subresources', async () => {
    for (const kind of kinds) {
      const [expected, own] = (await both(rootOf(kind))).map(({ resources }) => {
        const all = resources as Json[];
        const { storageVersionHash: _, verbs: __, ...main } = all.find(({ name }) => name === kind.plural);
        const parts = ['status', 'scale'].filter((part) => all.some(({ name }) => name === `${kind.plural}/${part}`));
        return { ...main, parts, categories: main.categories ?? [], shortNames: main.shortNames ?? [] };
      });
      expect(own).toEqual(expected);
    }
  });

  it.each(NAMES)('the fields of applied %s have the same owner', async (name) => {
    const kind = kinds[NAMES.indexOf(name)] as ResourceDefinition;
    const objectName = NAMED[name] ?? 'web';
    const path = `${rootOf(kind)}${kind.namespaced ? '/namespaces/default' : ''}/${kind.plural}/${objectName}`;
    const object = {
      apiVersion: apiVersionOf(kind),
      kind: kind.kind,
      metadata: { name: objectName, labels: LABELS },
      ...APPLIED[name],
    };
    const headers = { 'content-type': 'application/apply-patch+yaml' };
    const applied = await both(`${path}?fieldManager=me`, { method: 'PATCH', headers, body: JSON.stringify(object) });
    const [expected, own] = applied.map(({ metadata }) => metadata.managedFields.find((each: Json) => each.manager === 'me'));
    expect(own).toEqual({ ...expected, time: own.time });
    const [first, second] = applied.map(({ metadata }) => metadata.generation);
    expect(second).toBe(first);
    // What was applied is written as in Go, `0.5` as `500m`, and what was not has the same defaults.
    const [there, here] = applied.map(defaulted);
    expect(here).toEqual(there);
    // A write of the status changes the metadata of most kinds, too.
    if (!kind.status) return;
    const changes = { metadata: { labels: { late: 'x' }, annotations: { late: 'x' } }, spec: null };
    const type = { 'content-type': 'application/merge-patch+json' };
    const written = await both(`${path}/status`, { method: 'PATCH', headers: type, body: JSON.stringify(changes) });
    const [labelled, ours] = written.map(({ metadata: { labels, annotations }, spec }) => ({
      labels,
      annotations,
      spec: !!spec,
    }));
    // Which Kubernetes writes of a field that it once had.
    delete labelled?.annotations?.['deprecated.daemonset.template.generation'];
    expect(ours).toEqual(labelled);
  });

  /** An object without its metadata, and without addresses, which only a cluster has. Its uid is always the same, and so are times. */
  const defaulted = ({ metadata, ...object }: Json): Json => {
    const { clusterIP: _, clusterIPs: __, ...spec } = object.spec ?? {};
    const text = JSON.stringify({ ...object, ...(object.spec && { spec }) });
    return JSON.parse(text.replaceAll(metadata.uid, 'uid').replaceAll(/\d{4}-\d\d-\d\dT[\d:]+Z/g, 'time'));
  };

  const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments';
  const deployment = (name: string, more: object = {}): object => ({
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name } },
    spec: { replicas: 1, selector: SELECTOR, template: { ...TEMPLATE, spec: { ...TEMPLATE.spec, ...more } } },
  });

  it('unknown and repeated members are refused for the same reasons', async () => {
    const volumes = [{ name: 'v', emptyDri: {}, emptyDir: { a: 1 }, projected: { sources: [{ secert: {} }] } }];
    const containers = [{ name: 'a', image: 'x', lifecycle: { preStop: { exce: {} } }, resources: { limit: {} } }];
    const text = JSON.stringify({ ...deployment('strict', { volumes, containers }), other: 1 });
    const body = text.replace('"replicas":1', '"replicas":1,"replicas":1');
    const path = `${DEPLOYMENTS}?fieldValidation=Strict`;
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body };
    const answers = [await theirs.fetch(`${theirs.url}${path}`, init), await fetch(`${url}${path}`, init)];
    const [expected, own] = await Promise.all(answers.map(async (each) => JSON.parse(await each.text()) as Json));
    // Upstream tells them in the order of the body.
    const parts = ({ message }: Json): string[] => message.split(/(?:error:|,) /).sort();
    expect([own.code, parts(own)]).toEqual([400, parts(expected)]);
    expect(parts(own)).toHaveLength(8);
  });

  it('roles have names of their own', async () => {
    const path = '/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles';
    for (const named of ['x:reader', 'A b', '.', '..', 'a/b', 'a%b', 'a/%', 'é'].flatMap((name) => [
      { name },
      { generateName: name },
    ])) {
      const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ metadata: named }) };
      const answers = [await theirs.fetch(`${theirs.url}${path}`, init), await fetch(`${url}${path}`, init)];
      const [expected, own] = await Promise.all(
        answers.map(async (each) => {
          const { code = each.status, message, details } = JSON.parse(await each.text()) as Json;
          // The suffix of a generated name is random.
          const causes = details?.causes?.map((cause: Json) => ('name' in named ? cause : { ...cause, message: '' }));
          return { code, message: 'name' in named ? message : undefined, causes };
        }),
      );
      expect({ named, ...own }).toEqual({ named, ...expected });
    }
    await both(`${path}/x:reader`);
  });

  it('strategic merge patches change lists in the same way', async () => {
    const more = { containers: [...CONTAINERS, { name: 'b', image: 'b:1' }] };
    const headers = { 'content-type': 'application/json' };
    await both(DEPLOYMENTS, { method: 'POST', headers, body: JSON.stringify(deployment('merged', more)) });
    const ofPod = (spec: object): object => ({ spec: { template: { spec } } });
    const inA = (container: object): object => ofPod({ containers: [{ name: 'a', ...container }] });
    for (const patch of [
      inA({ image: 'a:2', env: [{ name: 'Y', value: '2' }], args: ['y'] }),
      inA({ ports: [{ containerPort: 81 }], volumeMounts: [{ mountPath: '/w', name: 'v' }] }),
      inA({ env: [{ name: 'X', $patch: 'delete' }], envFrom: [{ secretRef: { name: 's' } }], resources: { limits: { cpu: 1 } } }),
      ofPod({ '$setElementOrder/containers': [{ name: 'c' }, { name: 'b' }], containers: [{ name: 'c', image: 'c:1' }] }),
      ofPod({ containers: [{ name: 'b', $patch: 'delete' }] }),
      ofPod({ volumes: [{ name: 'v', $retainKeys: ['name', 'emptyDir'], emptyDir: {} }], imagePullSecrets: [{ name: 't' }] }),
      ofPod({ hostAliases: [{ ip: '10.0.0.2', hostnames: ['y'] }], tolerations: [{ key: 'b', operator: 'Exists' }] }),
      ofPod({ nodeSelector: { c: 'd' }, topologySpreadConstraints: [] }),
      { spec: { strategy: { $retainKeys: ['type'], type: 'Recreate' } } },
      { spec: { replicas: 2, selector: null } },
    ]) {
      const init = {
        method: 'PATCH',
        headers: { 'content-type': 'application/strategic-merge-patch+json' },
        body: JSON.stringify(patch),
      };
      const answers = await Promise.all(
        [`${theirs.url}`, url].map(async (base, at) => {
          const send = at === 0 ? theirs.fetch : fetch;
          const answer = await send(`${base}${DEPLOYMENTS}/merged`, init);
          return JSON.parse(await answer.text()) as Json;
        }),
      );
      const [expected, own] = answers;
      // Upstream fills in more, and refuses what nothing checks here.
      if (expected.kind !== 'Status') expect({ patch, ...expected.spec }).toMatchObject({ patch, ...own.spec });
    }
  });
});
