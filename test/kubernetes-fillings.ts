// Objects of Kubernetes' own kinds, of which members are filled in that depend on others. What they become is in kubernetes-fillings.txt:
// test/peers/kubernetes-defaults.test.ts compares it with a kube-apiserver, test/unit/kubernetes-defaults.test.ts with a server in memory.
import { readFileSync } from 'node:fs';
import type { ResourceDefinition } from '../src/apiserver/definition.ts';
import { apiVersionOf } from '../src/cache/resource-client.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers of a server, which tests read without ceremony
type Json = any;

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
const VOLUME = { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/x' } };
const setOf = (updateStrategy?: object, more: object = {}): object => ({
  spec: { selector, template, ...(updateStrategy && { updateStrategy }), ...more },
});
const subject = (kind: string, more: object = {}): object => ({ kind, name: 'x', ...more });
const ROLES = 'rolebindings.rbac.authorization.k8s.io/v1';

/** What is created, and then patched into its status. */
export type Variant = readonly [kind: string, object: object, status?: object];

export const VARIANTS: readonly Variant[] = [
  ...[
    'a',
    'a:latest',
    'a:1',
    'r.io:5000/a',
    'r.io:5000/a:2',
    `a@sha256:${'0'.repeat(64)}`,
    `a:latest@sha256:${'0'.repeat(64)}`,
    '@a',
    'a:',
    'a:1:2',
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
  ['pods/v1', podOf({ restartPolicy: '', enableServiceLinks: false, serviceAccount: 'x', serviceAccountName: 'y' })],
  [
    'pods/v1',
    podOf({ hostNetwork: true, initContainers: [{ ...CONTAINER, name: 'i', ports: [{ containerPort: 81, hostPort: 81 }] }] }),
  ],
  ['pods/v1', withContainer({ ports: [{ containerPort: 80 }] })],
  ['pods/v1', withContainer({ imagePullPolicy: 'Never', terminationMessagePolicy: 'FallbackToLogsOnError' })],
  ['pods/v1', withContainer({ resources: { requests: cpu } })],
  ['pods/v1', withContainer({ resources: { limits: { cpu: '0', memory: '1Gi' } } })],
  ['pods/v1', withContainer({ resources: { limits: { cpu: '0', memory: '0' } } })],
  [
    'pods/v1',
    podOf({
      containers: [
        { ...CONTAINER, resources: { limits: cpu } },
        { ...CONTAINER, name: 'b' },
      ],
    }),
  ],
  ['pods/v1', podOf({ initContainers: [{ ...CONTAINER, name: 'i', resources: { requests: { memory: '1Gi' } } }] })],
  ['pods/v1', podOf({ resources: { limits: cpu, requests: cpu } })],
  ['services/v1', serviceOf({ type: 'NodePort', externalTrafficPolicy: 'Local', internalTrafficPolicy: 'Local' })],
  ['services/v1', serviceOf({ type: 'LoadBalancer', allocateLoadBalancerNodePorts: false, sessionAffinity: 'None' })],
  ['services/v1', serviceOf({ type: 'ExternalName', externalName: 'x.io', externalIPs: ['1.2.3.4'] })],
  ['endpoints/v1', { subsets: [{ addresses: [{ ip: '10.1.2.3' }], ports: [{ port: 80 }] }] }],
  ['deployments.apps/v1', { spec: { selector, template, strategy: { type: 'RollingUpdate' } } }],
  ['deployments.apps/v1', { metadata: { labels: { own: 'x' } }, spec: { selector, template, progressDeadlineSeconds: 5 } }],
  ['daemonsets.apps/v1', setOf()],
  ['replicasets.apps/v1', { spec: { selector, template } }],
  [
    'replicationcontrollers/v1',
    { metadata: { labels: { own: 'x' } }, spec: { template, selector: { app: 'web' }, replicas: 0 } },
  ],
  ['podtemplates/v1', { template: { metadata: {}, spec: { containers: [{ ...CONTAINER, resources: { limits: cpu } }] } } }],
  ['jobs.batch/v1', { spec: { template: { spec: jobTemplate.spec } } }],
  ['jobs.batch/v1', { metadata: { labels: LABELS }, ...jobOf({ manualSelector: false, completions: 3 }) }],
  ['cronjobs.batch/v1', { spec: { schedule: '* * * * *', jobTemplate: { spec: { template: jobTemplate } } } }],
  ['horizontalpodautoscalers.autoscaling/v1', hpa({})],
  ['horizontalpodautoscalers.autoscaling/v2', hpa({ behavior: {} })],
  ['persistentvolumes/v1', { spec: VOLUME }],
  ['persistentvolumes/v1', { spec: { ...VOLUME, persistentVolumeReclaimPolicy: 'Delete', volumeMode: 'Block' } }],
  ['persistentvolumeclaims/v1', { spec: CLAIM }],
  [
    'limitranges/v1',
    {
      spec: {
        limits: [
          { type: 'Container', defaultRequest: { cpu: '1' }, min: { cpu: '500m', memory: '1Mi' }, default: { memory: '1Gi' } },
        ],
      },
    },
  ],
  ['limitranges/v1', { spec: { limits: [{ type: 'Container', maxLimitRequestRatio: { cpu: '2' } }] } }],
  [
    'nodes/v1',
    { spec: { podCIDRs: ['10.0.1.0/24', 'fd00::/64'] }, status: { capacity: { cpu: '4' }, allocatable: { cpu: '3' } } },
  ],
  ['nodes/v1', {}],
  [
    'csidrivers.storage.k8s.io/v1',
    { spec: { attachRequired: false, volumeLifecycleModes: ['Ephemeral'], fsGroupPolicy: 'None' } },
  ],
  ['storageclasses.storage.k8s.io/v1', { provisioner: 'x.io/y' }],
  ['priorityclasses.scheduling.k8s.io/v1', { value: 5 }],
  ['ingressclasses.networking.k8s.io/v1', { spec: { controller: 'x.io/y', parameters: { kind: 'A', name: 'a' } } }],
  [
    'networkpolicies.networking.k8s.io/v1',
    { spec: { podSelector: {}, ingress: [{ ports: [{ port: 80 }] }], policyTypes: ['Egress'] } },
  ],
  ['clusterrolebindings.rbac.authorization.k8s.io/v1', { roleRef: { kind: 'ClusterRole', name: 'x' } }],
  ['pods/v1', podOf({}), { podIP: '10.0.0.1' }],
  ['pods/v1', podOf({}), { podIPs: [{ ip: '10.0.0.1' }] }],
  ['services/v1', serviceOf({ type: 'LoadBalancer' }), { loadBalancer: { ingress: [{ ip: '1.2.3.4' }, { hostname: 'x.io' }] } }],
  ['nodes/v1', {}, { capacity: { cpu: '4' } }],
];

/** Where objects of a kind are created. */
export function pathOf({ group, version, plural, namespaced }: ResourceDefinition): string {
  return `${group ? `/apis/${group}/${version}` : `/api/${version}`}${namespaced ? '/namespaces/default' : ''}/${plural}`;
}

/** The object of a variant, whose name is x. */
export function bodyOf(kind: ResourceDefinition, [, more]: Variant): Json {
  return { apiVersion: apiVersionOf(kind), kind: kind.kind, ...more, metadata: { name: 'x', ...(more as Json).metadata } };
}

/** An answer without what only a cluster has, such as addresses, and what differs from object to object. */
export function comparable({ metadata, ...object }: Json): Json {
  const { clusterIP, clusterIPs: _, healthCheckNodePort: __, ...spec } = object.spec ?? {};
  if (object.kind === 'Service') for (const port of spec.ports) delete port.nodePort;
  const { labels } = metadata;
  const whole = { ...object, labels, isHeadless: clusterIP === 'None', ...(object.spec && { spec }) };
  const text = JSON.stringify(whole).replaceAll(metadata.uid, 'uid');
  return JSON.parse(text.replaceAll(/\d{4}-\d\d-\d\dT[\d:]+Z/g, 'time'));
}

/** What has become of an object: the variant, and a line for each member that is not as it was sent, or is gone. */
export function toBlock([name, { metadata, ...sent }, status]: readonly [string, Json, object?], answer: Json): string {
  const { apiVersion: _, kind: __, isHeadless: ___, ...found } = comparable(answer);
  const [before, after] = [leavesOf({ ...sent, labels: metadata?.labels }), leavesOf(found)];
  const lines = [...after].flatMap(([path, value]) => (before.get(path) === value ? [] : `  ${path} ${value}`));
  const gone = [...before].flatMap(([path, value]) => (after.has(path) || /^[[{]/.test(value) ? [] : `  ${path} is gone`));
  const more = status ? ` ${JSON.stringify(status)}` : '';
  return [`${name} ${JSON.stringify({ ...(metadata && { metadata }), ...sent })}${more}`, ...[...lines, ...gone].sort()].join(
    '\n',
  );
}

/** The values that have no members, by their paths. */
function leavesOf(value: unknown, path: string = ''): ReadonlyMap<string, string> {
  const isInner = typeof value === 'object' && value !== null && Object.keys(value).length > 0;
  if (!isInner) return new Map(value === undefined ? [] : [[path, JSON.stringify(value)]]);
  return new Map(Object.entries(value).flatMap(([name, each]) => [...leavesOf(each, path === '' ? name : `${path}.${name}`)]));
}

/** What a kube-apiserver makes of each variant. */
export function readBlocks(): readonly string[] {
  return readFileSync(new URL('kubernetes-fillings.txt', import.meta.url), 'utf8')
    .trimEnd()
    .split('\n\n');
}
