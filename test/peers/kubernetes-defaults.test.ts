// What is filled in of objects of Kubernetes' own kinds, beside a kube-apiserver without admission: where it depends on other members.
// kubernetes-kinds.test.ts compares an ordinary object of each kind.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ResourceDefinition } from '../../src/apiserver/definition.ts';
import { kubernetesKinds } from '../../src/apiserver/kinds/kubernetes.ts';
import { apiVersionOf } from '../../src/cache/resource-client.ts';
import { component, isMissing } from '../components.ts';
import { killAll, serve } from '../e2e/cli.ts';
import { type ApiServer, startApiServer } from './apiserver.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers of a server, which tests read without ceremony
type Json = any;

const START_MS = 90_000;
const LABELS = { app: 'web' };
const selector = { matchLabels: LABELS };
const CONTAINER = { name: 'a', image: 'a:1' };
const podOf = (spec: object): object => ({ spec: { containers: [CONTAINER], ...spec } });
const withContainer = (more: object): object => podOf({ containers: [{ ...CONTAINER, ...more }] });
const volumes = (...sources: object[]): object =>
  podOf({ serviceAccountName: 'x', volumes: sources.map((each, at) => ({ name: `v${at}`, ...each })) });
const template = { metadata: { labels: LABELS }, spec: { containers: [CONTAINER], restartPolicy: 'Always' } };
const jobTemplate = { metadata: { labels: LABELS }, spec: { containers: [CONTAINER], restartPolicy: 'Never' } };
const jobOf = (spec: object): object => ({ spec: { template: jobTemplate, ...spec } });
const serviceOf = (spec: object): object => ({ spec: { selector: LABELS, ports: [{ port: 80 }], ...spec } });
const hpa = (spec: object): object => ({
  spec: { maxReplicas: 3, scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'x' }, ...spec },
});
const policies = [{ type: 'Pods', value: 1, periodSeconds: 60 }];
const cpu = { cpu: '1', memory: '1Gi' };
const image = (name: string): object => withContainer({ image: name });
const grpc = { grpc: { port: 1 } };
const CLAIM = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
const setOf = (updateStrategy?: object, more: object = {}): object => ({
  spec: { selector, template, ...(updateStrategy && { updateStrategy }), ...more },
});
const subject = (kind: string, more: object = {}): object => ({ kind, name: 'x', ...more });
const ROLES = 'rolebindings.rbac.authorization.k8s.io/v1';

const VARIANTS: readonly (readonly [kind: string, object: object])[] = [
  ...[
    'a',
    'a:latest',
    'a:1',
    'r.io:5000/a',
    'r.io:5000/a:2',
    `a@sha256:${'0'.repeat(64)}`,
    `a:latest@sha256:${'0'.repeat(64)}`,
  ].map((name) => ['pods/v1', image(name)] as const),
  ['pods/v1', podOf({ serviceAccount: 'x' })],
  ['pods/v1', podOf({ serviceAccountName: 'x', restartPolicy: 'Never', terminationGracePeriodSeconds: 0, dnsPolicy: 'Default' })],
  ['pods/v1', podOf({ hostNetwork: true, containers: [{ ...CONTAINER, ports: [{ containerPort: 80 }] }] })],
  ['pods/v1', podOf({ initContainers: [{ name: 'i', image: 'i', resources: { limits: { cpu: '1' } } }] })],
  [
    'pods/v1',
    withContainer({
      livenessProbe: { httpGet: { port: 80 } },
      readinessProbe: grpc,
      startupProbe: { ...grpc, periodSeconds: 1 },
    }),
  ],
  ['pods/v1', withContainer({ lifecycle: { preStop: { httpGet: { port: 'x', scheme: 'HTTPS' } } } })],
  ['pods/v1', withContainer({ env: [{ name: 'X', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }] })],
  ['pods/v1', withContainer({ resources: { limits: cpu } })],
  ['pods/v1', withContainer({ resources: { limits: cpu, requests: { cpu: '500m' } } })],
  ['pods/v1', withContainer({ resources: { requests: { 'example.com/x': '1' }, limits: { 'example.com/x': '1' } } })],
  [
    'pods/v1',
    volumes({}, { emptyDir: {} }, { secret: { secretName: 'x' } }, { configMap: { name: 'x' } }, { hostPath: { path: '/x' } }),
  ],
  [
    'pods/v1',
    volumes({ downwardAPI: { items: [{ path: 'x', fieldRef: { fieldPath: 'metadata.name' } }] } }, { image: { reference: 'x' } }),
  ],
  [
    'pods/v1',
    volumes(
      { projected: { sources: [{ serviceAccountToken: { path: 'x' } }] } },
      { ephemeral: { volumeClaimTemplate: { spec: CLAIM } } },
    ),
  ],
  ['pods/v1', volumes({ iscsi: { targetPortal: '1.2.3.4', iqn: 'iqn.2001-04.com.example:x', lun: 0 } })],
  ['services/v1', serviceOf({ type: 'LoadBalancer' })],
  ['services/v1', serviceOf({ type: 'ExternalName', externalName: 'x.io' })],
  ['services/v1', serviceOf({ type: 'NodePort', ports: [{ port: 80, targetPort: 'x', protocol: 'UDP' }] })],
  ['services/v1', serviceOf({ clusterIP: 'None', sessionAffinity: 'ClientIP' })],
  ['services/v1', serviceOf({ externalIPs: ['1.2.3.4'] })],
  ['deployments.apps/v1', { spec: { selector, template, strategy: { type: 'Recreate' }, replicas: 0, revisionHistoryLimit: 0 } }],
  ['deployments.apps/v1', { spec: { selector, template, strategy: { rollingUpdate: { maxSurge: 1 } } } }],
  ['daemonsets.apps/v1', setOf({ rollingUpdate: { maxUnavailable: 2 } })],
  ['daemonsets.apps/v1', setOf({ type: 'OnDelete' })],
  ['statefulsets.apps/v1', setOf()],
  ['statefulsets.apps/v1', setOf({ type: 'OnDelete' })],
  ['statefulsets.apps/v1', setOf({ type: 'RollingUpdate' })],
  ['statefulsets.apps/v1', setOf({ rollingUpdate: { partition: 1 } })],
  [
    'statefulsets.apps/v1',
    setOf(undefined, {
      persistentVolumeClaimRetentionPolicy: { whenScaled: 'Delete' },
      volumeClaimTemplates: [{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'v' }, spec: CLAIM }],
    }),
  ],
  ['replicationcontrollers/v1', { spec: { template } }],
  ['jobs.batch/v1', jobOf({})],
  ['jobs.batch/v1', jobOf({ parallelism: 2 })],
  ['jobs.batch/v1', jobOf({ completions: 2, completionMode: 'Indexed', backoffLimitPerIndex: 1 })],
  ['jobs.batch/v1', jobOf({ manualSelector: true, selector })],
  ['jobs.batch/v1', { metadata: { labels: { own: 'x' } }, ...jobOf({ suspend: true, backoffLimit: 0 }) }],
  [
    'jobs.batch/v1',
    jobOf({ podFailurePolicy: { rules: [{ action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget' }] }] } }),
  ],
  ['cronjobs.batch/v1', { spec: { schedule: '* * * * *', concurrencyPolicy: 'Forbid', jobTemplate: jobOf({ parallelism: 2 }) } }],
  ['horizontalpodautoscalers.autoscaling/v2', hpa({})],
  ['horizontalpodautoscalers.autoscaling/v2', hpa({ behavior: { scaleUp: { policies } } })],
  ['horizontalpodautoscalers.autoscaling/v2', hpa({ behavior: { scaleDown: { selectPolicy: 'Disabled' } }, minReplicas: 2 })],
  ['persistentvolumeclaims/v1', { spec: { ...CLAIM, volumeMode: 'Block', storageClassName: '' } }],
  ['networkpolicies.networking.k8s.io/v1', { spec: { podSelector: {} } }],
  ['networkpolicies.networking.k8s.io/v1', { spec: { podSelector: {}, egress: [{ ports: [{ port: 53, protocol: 'UDP' }] }] } }],
  [
    'limitranges/v1',
    {
      spec: {
        limits: [
          { type: 'Container', min: { cpu: '1' } },
          { type: 'Pod', max: { cpu: '2' } },
        ],
      },
    },
  ],
  ['limitranges/v1', { spec: { limits: [{ type: 'Container', max: { cpu: '4', memory: '1Gi' }, default: { cpu: '2' } }] } }],
  ['nodes/v1', { spec: { podCIDR: '10.0.1.0/24' }, status: { capacity: { cpu: '4' } } }],
  ['csidrivers.storage.k8s.io/v1', { spec: {} }],
  [
    ROLES,
    {
      roleRef: { kind: 'Role', name: 'x' },
      subjects: [subject('User'), subject('Group'), subject('ServiceAccount', { namespace: 'x' })],
    },
  ],
  [
    'endpointslices.discovery.k8s.io/v1',
    { addressType: 'IPv4', endpoints: [], ports: [{ name: 'x', protocol: 'UDP', port: 1 }, { port: 2 }] },
  ],
];

describe.skipIf(isMissing(component('kube-apiserver')))("the defaults of Kubernetes' own kinds", () => {
  const names = [...new Set(VARIANTS.map(([name]) => name))];
  let theirs: ApiServer;
  let url: string;
  let kinds: readonly ResourceDefinition[];
  beforeAll(async () => {
    kinds = await kubernetesKinds(...names);
    const off = ['ServiceAccount', 'TaintNodesByCondition', 'Priority', 'DefaultTolerationSeconds', 'LimitRanger'];
    theirs = await startApiServer({ flags: [`--disable-admission-plugins=${off}`] });
    const options = kinds.flatMap(({ group, version, plural, kind }) => [
      ...['--resource', `${plural}${group && `.${group}`}/${version}=${kind}`],
    ]);
    ({ url } = await serve(...options));
  }, START_MS);
  afterAll(async () => {
    killAll();
    await theirs.stop();
  });

  /** Without what only a cluster has, such as addresses, and what differs from object to object. */
  const comparable = ({ metadata, ...object }: Json): Json => {
    const { clusterIP, clusterIPs: _, healthCheckNodePort: __, ...spec } = object.spec ?? {};
    if (object.kind === 'Service') for (const port of spec.ports) delete port.nodePort;
    const { labels } = metadata;
    const whole = { ...object, labels, isHeadless: clusterIP === 'None', ...(object.spec && { spec }) };
    const text = JSON.stringify(whole).replaceAll(metadata.uid, 'uid');
    return JSON.parse(text.replaceAll(/\d{4}-\d\d-\d\dT[\d:]+Z/g, 'time'));
  };

  it.each(VARIANTS)('%s %j', async (name, more) => {
    const kind = kinds[names.indexOf(name)] as ResourceDefinition;
    const { group, version, plural, namespaced } = kind;
    const root = group ? `/apis/${group}/${version}` : `/api/${version}`;
    const path = `${root}${namespaced ? '/namespaces/default' : ''}/${plural}?dryRun=All`;
    const own = { apiVersion: apiVersionOf(kind), kind: kind.kind, ...more };
    const body = JSON.stringify({ ...own, metadata: { name: 'x', ...(more as Json).metadata } });
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body };
    const answers = [await theirs.fetch(`${theirs.url}${path}`, init), await fetch(`${url}${path}`, init)];
    const [expected, found] = await Promise.all(answers.map(async (each) => JSON.parse(await each.text()) as Json));
    expect(expected, JSON.stringify(expected)).toHaveProperty('metadata.uid');
    expect(comparable(found)).toEqual(comparable(expected));
  });

  const owners = ['jobs.batch/v1', 'replicationcontrollers/v1', 'deployments.apps/v1'];
  const asked = owners.flatMap((name) =>
    [undefined, ['orphan'], ['foregroundDeletion'], ['a.b/c']].flatMap((finalizers) =>
      [undefined, 'Background', 'Orphan'].map((policy) => [name, finalizers, policy] as const),
    ),
  );
  it.each(asked)('a deletion of %s with the finalizers %j and the policy %s', async (name, finalizers, propagationPolicy) => {
    const kind = kinds[names.indexOf(name)] as ResourceDefinition;
    const [, more] = VARIANTS.find(([each]) => each === name) as (typeof VARIANTS)[number];
    const { group, version, plural } = kind;
    const path = `${group ? `/apis/${group}/${version}` : `/api/${version}`}/namespaces/default/${plural}`;
    const ask = async (base: string, method: string, at: string, sent: object): Promise<Json> => {
      const body = JSON.stringify(sent);
      const headers = { 'content-type': 'application/json', 'content-length': String(body.length) };
      return JSON.parse(await (await theirs.fetch(`${base}${at}`, { method, headers, body })).text()) as Json;
    };
    const said = await Promise.all(
      [theirs.url, url].map(async (base) => {
        const metadata = { ...(more as Json).metadata, generateName: 'x-', finalizers };
        const made = await ask(base, 'POST', path, { apiVersion: apiVersionOf(kind), kind: kind.kind, ...more, metadata });
        const {
          kind: is,
          status,
          metadata: left,
        } = await ask(base, 'DELETE', `${path}/${made.metadata.name}`, { propagationPolicy });
        return [is, is === 'Status' && status, left?.finalizers];
      }),
    );
    expect(said[1]).toEqual(said[0]);
  });
});
