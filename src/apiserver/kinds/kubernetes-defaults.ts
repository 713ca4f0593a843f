/**
 * The defaults of Kubernetes' own kinds: what is filled in wherever an object of a type is read, from the inside out. Controllers
 * rely on them: without a number of replicas, kube-controller-manager crashes.
 *
 *     a body, or what a patch makes ---> fields of their types ---> `Defaults` of each type ---> stored
 *
 * Upstream: `pkg/apis/.../defaults.go`, without what depends on feature gates that are off.
 */
import type { Shape } from './shape.ts';

type Members = Readonly<Record<string, unknown>>;

/** Members that are filled in if they are missing, in this order. A function gets the object with those before. */
type Missing = Readonly<Record<string, unknown>>;

/** Or a function that returns the members to set. */
type Defaults = Missing | ((object: Members) => Members);

const RBAC = 'rbac.authorization.k8s.io';
const FILESYSTEM = { volumeMode: 'Filesystem' };
const FILE_MODE = { defaultMode: 0o644 };
const RETAINED = { whenDeleted: 'Retain', whenScaled: 'Retain' };
const CONTAINER: Missing = {
  imagePullPolicy: ({ image }: Members) => pullPolicy(image),
  terminationMessagePath: '/dev/termination-log',
  terminationMessagePolicy: 'File',
};
const REPLICAS: Missing = { replicas: 1 };
const PORT: Missing = { protocol: 'TCP' };
const OF_ROLLING = { maxUnavailable: '25%', maxSurge: '25%' };
const OF_DAEMONS = { maxUnavailable: 1, maxSurge: 0 };
const OF_STATEFUL = { partition: 0, maxUnavailable: 1 };
const ONE_PERCENT = { type: 'Percent', value: 100, periodSeconds: 15 };
const SCALE_UP = {
  stabilizationWindowSeconds: 0,
  selectPolicy: 'Max',
  policies: [{ type: 'Pods', value: 4, periodSeconds: 15 }, ONE_PERCENT],
};
const SCALE_DOWN = { selectPolicy: 'Max', policies: [ONE_PERCENT] };
const CPU = {
  type: 'Resource',
  resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } },
};

const OF_PODS: Missing = {
  serviceAccountName: ({ serviceAccount }: Members) => serviceAccount,
  ...{ restartPolicy: 'Always', dnsPolicy: 'ClusterFirst', securityContext: {}, schedulerName: 'default-scheduler' },
  terminationGracePeriodSeconds: 30,
};

const OF_JOB: Missing = {
  completions: ({ parallelism }: Members) => (parallelism === undefined ? 1 : undefined),
  parallelism: 1,
  backoffLimit: ({ backoffLimitPerIndex }: Members) => (backoffLimitPerIndex === undefined ? 6 : 2 ** 31 - 1),
  ...{ completionMode: 'NonIndexed', suspend: false, manualSelector: false },
  podReplacementPolicy: ({ podFailurePolicy }: Members) => (podFailurePolicy ? 'Failed' : 'TerminatingOrFailed'),
};

const OF_STATEFUL_SETS: Missing = {
  ...{ podManagementPolicy: 'OrderedReady', persistentVolumeClaimRetentionPolicy: RETAINED, revisionHistoryLimit: 10 },
  ...REPLICAS,
};

const asClaim = (template: object): object => ({ ...template, apiVersion: 'v1', kind: 'PersistentVolumeClaim' });

const firstOf = (list: unknown): unknown => (list as readonly unknown[] | undefined)?.[0];

const whenRolling =
  (value: object) =>
  ({ type }: Members): unknown =>
    type === 'RollingUpdate' ? value : undefined;

/** By the name of a type in the table. */
const DEFAULTS: Readonly<Record<string, Defaults>> = {
  Pod: ({ spec }) => ({ spec: podSpec(spec as Members) }),
  PodSpec: (spec) => {
    const whole = filled({ ...spec }, OF_PODS);
    // The older name is a copy.
    return whole.serviceAccountName ? { ...whole, serviceAccount: whole.serviceAccountName } : whole;
  },
  ...{ Container: CONTAINER, EphemeralContainerCommon: CONTAINER },
  Probe: { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 },
  HTTPGetAction: { path: '/', scheme: 'HTTP' },
  GRPCAction: { service: '' },
  ObjectFieldSelector: { apiVersion: 'v1' },
  Volume: { emptyDir: (volume: Members) => (Object.keys(volume).length > 1 ? undefined : {}) },
  HostPathVolumeSource: { type: '' },
  ImageVolumeSource: { pullPolicy: ({ reference }: Members) => pullPolicy(reference) },
  ...{ SecretVolumeSource: FILE_MODE, ConfigMapVolumeSource: FILE_MODE },
  ...{ DownwardAPIVolumeSource: FILE_MODE, ProjectedVolumeSource: FILE_MODE },
  ServiceAccountTokenProjection: { expirationSeconds: 3600 },
  ...{ PersistentVolume: pending, PersistentVolumeClaim: pending },
  PersistentVolumeSpec: { persistentVolumeReclaimPolicy: 'Retain', ...FILESYSTEM },
  PersistentVolumeClaimSpec: FILESYSTEM,
  LimitRangeItem: limits,
  NodeSpec: { podCIDRs: ({ podCIDR }: Members) => podCIDR && [podCIDR], podCIDR: ({ podCIDRs }: Members) => firstOf(podCIDRs) },
  PodStatus: {
    podIPs: ({ podIP }: Members) => podIP && [{ ip: podIP }],
    podIP: ({ podIPs }: Members) => (firstOf(podIPs) as { readonly ip?: string } | undefined)?.ip,
  },
  NodeStatus: { allocatable: ({ capacity }: Members) => capacity },
  ServicePort: ({ port, targetPort }) => ({ targetPort: targetPort || port }),
  LoadBalancerIngress: { ipMode: ({ ip }: Members) => ip && 'VIP' },
  ServiceSpec: {
    ...{ sessionAffinity: 'None', type: 'ClusterIP' },
    sessionAffinityConfig: ({ sessionAffinity }: Members) =>
      sessionAffinity === 'ClientIP' ? { clientIP: { timeoutSeconds: 10_800 } } : undefined,
    externalTrafficPolicy: (spec: Members) => (isExternal(spec) ? 'Cluster' : undefined),
    internalTrafficPolicy: ({ type }: Members) => (type === 'ExternalName' ? undefined : 'Cluster'),
    clusterIPs: ({ clusterIP }: Members) => clusterIP && [clusterIP],
    ipFamilies: ({ type, clusterIP }: Members) =>
      type === 'ExternalName' ? undefined : [String(clusterIP).includes(':') ? 'IPv6' : 'IPv4'],
    ipFamilyPolicy: ({ ipFamilies }: Members) =>
      ipFamilies && ((ipFamilies as object[]).length > 1 ? 'RequireDualStack' : 'SingleStack'),
    allocateLoadBalancerNodePorts: ({ type }: Members) => (type === 'LoadBalancer' ? true : undefined),
  },
  EndpointPort: PORT,
  'discovery.v1.EndpointPort': { name: '', ...PORT },
  DeploymentSpec: { ...REPLICAS, revisionHistoryLimit: 10, progressDeadlineSeconds: 600 },
  DeploymentStrategy: { type: 'RollingUpdate', rollingUpdate: whenRolling(OF_ROLLING) },
  RollingUpdateDeployment: OF_ROLLING,
  DaemonSetSpec: { revisionHistoryLimit: 10 },
  DaemonSetUpdateStrategy: { type: 'RollingUpdate', rollingUpdate: whenRolling(OF_DAEMONS) },
  RollingUpdateDaemonSet: OF_DAEMONS,
  StatefulSetSpec: (spec) => ({
    ...filled({ ...spec }, OF_STATEFUL_SETS),
    ...(spec.volumeClaimTemplates ? { volumeClaimTemplates: (spec.volumeClaimTemplates as object[]).map(asClaim) } : {}),
  }),
  StatefulSetPersistentVolumeClaimRetentionPolicy: RETAINED,
  StatefulSetUpdateStrategy: {
    rollingUpdate: ({ type }: Members) => (type === undefined ? OF_STATEFUL : undefined),
    type: 'RollingUpdate',
  },
  RollingUpdateStatefulSetStrategy: OF_STATEFUL,
  ReplicaSetSpec: REPLICAS,
  ReplicationControllerSpec: { ...REPLICAS, selector: ({ template }: Members) => labelsOf(template) },
  ReplicationController: labelled,
  // A CronJob's template has none of a Job.
  Job: (job) => ({ ...labelled(job), spec: filled({ ...(job.spec as Members) }, OF_JOB) }),
  PodFailurePolicyOnPodConditionsPattern: { status: 'True' },
  CronJobSpec: { concurrencyPolicy: 'Allow', suspend: false, successfulJobsHistoryLimit: 3, failedJobsHistoryLimit: 1 },
  HorizontalPodAutoscalerSpec: { minReplicas: 1, targetCPUUtilizationPercentage: 80 },
  'autoscaling.v2.HorizontalPodAutoscalerSpec': { minReplicas: 1, metrics: [CPU] },
  HorizontalPodAutoscalerBehavior: ({ scaleUp, scaleDown }) => ({
    scaleUp: { ...SCALE_UP, ...(scaleUp as object | undefined) },
    scaleDown: { ...SCALE_DOWN, ...(scaleDown as object | undefined) },
  }),
  StorageClass: { reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' },
  CSIDriverSpec: {
    ...{ attachRequired: true, podInfoOnMount: false, storageCapacity: false, requiresRepublish: false, seLinuxMount: false },
    preventPodSchedulingIfMissing: false,
    ...{ fsGroupPolicy: 'ReadWriteOnceWithFSType', volumeLifecycleModes: ['Persistent'] },
  },
  NetworkPolicyPort: PORT,
  NetworkPolicySpec: { policyTypes: ({ egress }: Members) => ['Ingress', ...(egress ? ['Egress'] : [])] },
  IngressClassParametersReference: { scope: 'Cluster' },
  RoleRef: { apiGroup: RBAC },
  Subject: { apiGroup: ({ kind }: Members) => (kind === 'User' || kind === 'Group' ? RBAC : undefined) },
  PriorityClass: { preemptionPolicy: 'PreemptLowerPriority' },
};

/** Whether a Service has an address outside of the cluster. */
const isExternal = ({ type, externalIPs }: Members): boolean =>
  type === 'LoadBalancer' || type === 'NodePort' || (type === 'ClusterIP' && externalIPs !== undefined);

/** Without a tag, an image is the latest, unless it has a digest. Upstream: `ParseImageName`. */
function pullPolicy(image: unknown): string {
  const found = /^[^@]*?[^/@:](?::([^/:@]+))?(@.+)?$/.exec(String(image ?? ''));
  if (found === null) return 'IfNotPresent';
  const [, tag, digest] = found;
  return tag === 'latest' || (tag ?? digest) === undefined ? 'Always' : 'IfNotPresent';
}

function pending<T extends Members>({ status }: T): Members {
  return { status: { phase: 'Pending', ...(status as object | undefined) } };
}

const labelsOf = (template: unknown): object | undefined =>
  (template as { readonly metadata: { readonly labels?: object } } | undefined)?.metadata.labels;

/** What has no labels has those of its Pods. */
function labelled({ metadata, spec }: Members): Members {
  const labels = labelsOf((spec as Members).template);
  return labels ? { metadata: { labels, ...(metadata as object) } } : {};
}

/** The defaults of Pods that templates do not have. */
function podSpec(spec: Members): Members {
  const whole = (containers: unknown): Members[] =>
    (containers as readonly Members[]).map((each) => withRequests(each, spec.hostNetwork === true));
  const { containers, initContainers } = spec;
  return {
    enableServiceLinks: true,
    ...spec,
    ...(containers ? { containers: whole(containers) } : {}),
    ...(initContainers ? { initContainers: whole(initContainers) } : {}),
  };
}

/** What is limited is requested; on the network of the host, ports are those of the host. */
function withRequests(container: Members, isOnHost: boolean): Members {
  const { resources, ports } = container as { resources: Members; ports?: readonly Members[] };
  const { limits, requests } = resources as { limits?: object; requests?: object };
  const onHost = (port: Members): Members => ({ ...port, hostPort: port.hostPort ?? port.containerPort });
  return {
    ...container,
    ...(isOnHost && ports ? { ports: ports.map(onHost) } : {}),
    ...(limits ? { resources: { ...resources, requests: { ...limits, ...requests } } } : {}),
  };
}

/** What a LimitRange says of containers: limits by the maximum, and requests by the limits or the minimum. */
function limits({ type, max, min, default: own, defaultRequest }: Members): Members {
  if (type !== 'Container') return {};
  const all = { ...(max as object | undefined), ...(own as object | undefined) };
  const requests = { ...(min as object | undefined), ...all, ...(defaultRequest as object | undefined) };
  const some = (name: string, quantities: object): Members => (Object.keys(quantities).length > 0 ? { [name]: quantities } : {});
  return { ...some('default', all), ...some('defaultRequest', requests) };
}

/**
 * What fills in the defaults of a type, in an object that has just been read.
 *
 * @param presets - The defaults that the table has.
 */
export function defaultsOf(type: string, presets: Members): Shape['finish'] {
  const own = Object.hasOwn(DEFAULTS, type) ? DEFAULTS[type] : undefined;
  const missing: Missing = { ...presets, ...own }; // a function has no members
  if (own === undefined && Object.keys(presets).length === 0) return undefined;
  return (object) => {
    filled(object, missing);
    return typeof own === 'function' ? Object.assign(object, own(object)) : object;
  };
}

/** Fills in what an object lacks. Where there is a default, an empty text is as good as none. */
function filled(object: Record<string, unknown>, missing: Missing): Record<string, unknown> {
  for (const [name, preset] of Object.entries(missing)) {
    if ((object[name] ?? '') !== '') continue;
    const value: unknown = typeof preset === 'function' ? preset(object) : preset;
    if ((value ?? '') !== '' || preset === '') object[name] = typeof value === 'object' ? structuredClone(value) : value;
  }
  return object;
}

/** What is filled in only when an object is stored, by kind: no template has it. Upstream: `PrepareForCreate` of their strategies. */
const STORED: Readonly<Record<string, (object: Members) => Members>> = {
  Job: ({ metadata, spec }) => selected(metadata as Members, spec as Members),
  PersistentVolume: ({ metadata, status }) => {
    const { creationTimestamp: lastPhaseTransitionTime } = metadata as Members;
    return pending({ status: { lastPhaseTransitionTime, ...(status as object | undefined) } });
  },
  PersistentVolumeClaim: pending,
  Pod: ({ spec, status }) => ({ status: { phase: 'Pending', qosClass: qualityOf(spec as Members), ...(status as object) } }),
};

/** What completes the objects of a kind that are stored. */
export function completedOf(kind: string): Shape['completed'] {
  const more = STORED[kind];
  return more && ((object) => ({ ...object, ...more(object) }));
}

/** A Job selects Pods with its uid, unless its author selects them. Upstream: `generateSelector`. */
function selected(metadata: Members, spec: Members): Members {
  const { name, uid } = metadata;
  if (spec.manualSelector === true || spec.selector !== undefined || uid === undefined) return {};
  const [own, job] = [{ 'batch.kubernetes.io/controller-uid': uid }, { 'batch.kubernetes.io/job-name': name }];
  const template = spec.template as { readonly metadata?: Members };
  const labels = { ...own, ...job, 'controller-uid': uid, 'job-name': name, ...labelsOf(template) };
  return {
    // Labels that it has from its template, or none as its template, go on being the same.
    ...(metadata.labels === labelsOf(template) ? { metadata: { ...metadata, labels } } : {}),
    spec: { ...spec, selector: { matchLabels: own }, template: { ...template, metadata: { ...template.metadata, labels } } },
  };
}

/** How well a Pod is served when a node is short of something. Upstream: `ComputePodQOS`. */
function qualityOf({ containers, initContainers, resources }: Members): string {
  type Resources = Readonly<Record<'limits' | 'requests', Readonly<Record<string, string>> | undefined>>;
  const all = [containers, initContainers].flatMap((list) => (list ?? []) as readonly Members[]);
  const each = (resources ? [resources] : all.map((container) => container.resources)) as readonly Resources[];
  const isAsked = (of: Resources['limits']): boolean => COMPUTED.some((name) => (of?.[name] ?? '0') !== '0');
  if (!each.some(({ limits: most, requests }) => isAsked(most) || isAsked(requests))) return 'BestEffort';
  const isGuaranteed = ({ limits: most = {}, requests = {} }: Resources): boolean =>
    COMPUTED.every((name) => (most[name] ?? '0') !== '0' && most[name] === requests[name]);
  return each.every(isGuaranteed) ? 'Guaranteed' : 'Burstable';
}

const COMPUTED = ['cpu', 'memory'] as const;
