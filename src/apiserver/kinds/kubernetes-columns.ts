/**
 * What `kubectl get` prints of Kubernetes' own kinds: their columns, which are loaded when such a kind is first asked for.
 *
 *     pods/v1 Status:podStatus() Age Node*:spec.nodeName=<none>     a kind, and its columns after the name
 *
 *     column   NAME MARKS:READ=MISSING; `_` in a name is a space
 *        #, ?, +  integers; true or false; numbers in a column of texts       *  only with -o wide
 *        READ     a path, or a function, which gets what is in its brackets
 *        =        shown where there is nothing, which is what it means, such as one replica: upstream fills that in
 *
 * Upstream: `printers/internalversion`.
 */
import type { KubernetesObject } from '../../cache/object.ts';
import { LabelSelector, printLabels } from '../../selectors/label-selector.ts';
import { getOrMake, isRecord, tried } from '../../watch/errors.ts';
import type { CellContext, PrinterColumn } from '../definition.ts';
import { humanDuration } from '../http/duration.ts';

const TABLE = `
endpoints/v1 Endpoints:endpoints() Age
limitranges/v1 Created_At:metadata.creationTimestamp
nodes/v1 Status:nodeStatus() Roles:nodeRoles()=<none> Age Version:status.nodeInfo.kubeletVersion
  Internal-IP*:nodeAddress(InternalIP)=<none> External-IP*:nodeAddress(ExternalIP)=<none>
  OS-Image*:status.nodeInfo.osImage=<unknown> Kernel-Version*:nodeKernel()
  Container-Runtime*:status.nodeInfo.containerRuntimeVersion=<unknown>
persistentvolumes/v1 Capacity:spec.capacity.storage=0 Access_Modes:modes(spec.accessModes)
  Reclaim_Policy:spec.persistentVolumeReclaimPolicy=Retain Status:volumePhase()=Pending
  Claim:reference(spec.claimRef.namespace) StorageClass:volumeClass()
  VolumeAttributesClass:spec.volumeAttributesClassName=<unset> Reason:status.reason Age VolumeMode*:spec.volumeMode=Filesystem
persistentvolumeclaims/v1 Status:volumePhase()=Pending Volume:spec.volumeName Capacity:claimCapacity() Access_Modes:claimModes()
  StorageClass:volumeClass() VolumeAttributesClass:spec.volumeAttributesClassName=<unset> Age VolumeMode*:spec.volumeMode=Filesystem
pods/v1 Ready:podReady() Status:podStatus() Restarts:podRestarts() Age
  IP*:podIp()=<none> Node*:spec.nodeName=<none> Nominated_Node*:status.nominatedNodeName=<none> Readiness_Gates*:podGates()=<none>
podtemplates/v1 Containers:each(template.spec.containers.name) Images:each(template.spec.containers.image)
  Pod_Labels:labels(template.metadata.labels)=<none>
replicationcontrollers/v1 $replicas $containers Selector*:labels(spec.selector)=<none>
resourcequotas/v1 Request:quotas() Limit:quotas(limits.) Age
services/v1 Type:spec.type=ClusterIP Cluster-IP:serviceIp()=<none> External-IP:serviceExternal()=<none>
  Port(s):servicePorts()=<none> Age Selector*:labels(spec.selector)=<none>
controllerrevisions.apps/v1 Controller:controller()=<none> Revision+:revision Age
daemonsets.apps/v1 Desired#:status.desiredNumberScheduled Current#:status.currentNumberScheduled Ready#:status.numberReady
  Up-to-date#:status.updatedNumberScheduled Available#:status.numberAvailable
  Node_Selector:labels(spec.template.spec.nodeSelector)=<none> Age $containers $selector
deployments.apps/v1 Ready:replicasReady() Up-to-date+:status.updatedReplicas Available+:status.availableReplicas Age
  $containers Selector*:deploymentSelector()
replicasets.apps/v1 $replicas $containers $selector
statefulsets.apps/v1 Ready:replicasReady() Age $containers
horizontalpodautoscalers.autoscaling/v1 $scaler
horizontalpodautoscalers.autoscaling/v2 $scaler
cronjobs.batch/v1 Schedule:spec.schedule Timezone:spec.timeZone=<none> Suspend?:jobSuspend() Active#:count(status.active)
  Last_Schedule:since(status.lastScheduleTime)=<none> Age Containers*:each(spec.jobTemplate.spec.template.spec.containers.name)
  Images*:each(spec.jobTemplate.spec.template.spec.containers.image) Selector*:selector(spec.jobTemplate.spec.selector)=<none>
jobs.batch/v1 Status:jobStatus() Completions:jobCompletions() Duration:jobDuration() Age $containers $selector
endpointslices.discovery.k8s.io/v1 AddressType:addressType Ports:slicePorts()=<unset> Endpoints:sliceEndpoints()=<unset> Age
ipaddresses.networking.k8s.io/v1 ParentRef:parent()=<none>
ingresses.networking.k8s.io/v1 Class:spec.ingressClassName=<none> Hosts:ingressHosts()=* Address:loadBalancer() Ports:ingressPorts() Age
ingressclasses.networking.k8s.io/v1 Name:ingressClassName() Controller:spec.controller Parameters:parameters()=<none> Age
networkpolicies.networking.k8s.io/v1 Pod-Selector:selector(spec.podSelector)=<none> Age
servicecidrs.networking.k8s.io/v1 CIDRs:join(spec.cidrs) Age
runtimeclasses.node.k8s.io/v1 Handler:handler Age
poddisruptionbudgets.policy/v1 Min_Available:text(spec.minAvailable)=N/A Max_Unavailable:text(spec.maxUnavailable)=N/A
  Allowed_Disruptions#:status.disruptionsAllowed Age
clusterroles.rbac.authorization.k8s.io/v1 Created_At:metadata.creationTimestamp
clusterrolebindings.rbac.authorization.k8s.io/v1 $binding
roles.rbac.authorization.k8s.io/v1 Created_At:metadata.creationTimestamp
rolebindings.rbac.authorization.k8s.io/v1 $binding
priorityclasses.scheduling.k8s.io/v1 Value#:value Global-Default?:globalDefault Age
  PreemptionPolicy:preemptionPolicy=PreemptLowerPriority
csidrivers.storage.k8s.io/v1 AttachRequired?:spec.attachRequired=true PodInfoOnMount?:spec.podInfoOnMount
  StorageCapacity?:spec.storageCapacity TokenRequests:audiences() RequiresRepublish?:spec.requiresRepublish
  Modes:join(spec.volumeLifecycleModes)=Persistent Age
csinodes.storage.k8s.io/v1 Drivers#:count(spec.drivers) Age
csistoragecapacities.storage.k8s.io/v1 Created_At:metadata.creationTimestamp
storageclasses.storage.k8s.io/v1 Name:storageClassName() Provisioner:provisioner ReclaimPolicy:reclaimPolicy=Delete
  VolumeBindingMode:volumeBindingMode=Immediate AllowVolumeExpansion:isTrue(allowVolumeExpansion) Age
volumeattachments.storage.k8s.io/v1 Name:metadata.name Attacher:spec.attacher PV:spec.source.persistentVolumeName
  Node:spec.nodeName Attached?:status.attached Age
volumeattributesclasses.storage.k8s.io/v1 DriverName:driverName Age`;

/** What stands for columns that several kinds have. */
const SHARED: Readonly<Record<string, string>> = {
  Age: 'Age:since(metadata.creationTimestamp)=<unknown>',
  $selector: 'Selector*:selector(spec.selector)=<none>',
  $containers: 'Containers*:each(spec.template.spec.containers.name) Images*:each(spec.template.spec.containers.image)',
  $replicas: 'Desired#:spec.replicas=1 Current#:status.replicas Ready#:status.readyReplicas Age',
  $scaler:
    'Reference:reference(spec.scaleTargetRef.kind) Targets:metrics() MinPods:text(spec.minReplicas)=1 MaxPods+:spec.maxReplicas Replicas+:status.currentReplicas Age',
  $binding:
    'Role:reference(roleRef.kind) Age Users*:subjects(User) Groups*:subjects(Group) ServiceAccounts*:subjects(ServiceAccount)',
};

/** The value at a path; undefined if there is none. */
function at(object: unknown, path: string): unknown {
  let value = object;
  for (const step of path.split('.')) value = isRecord(value) && Object.hasOwn(value, step) ? value[step] : undefined;
  return value ?? undefined;
}

const numberAt = (object: unknown, path: string, missing: number = 0): number => Number(at(object, path) ?? missing);

function listAt<T>(object: unknown, path: string): readonly T[] {
  const value = at(object, path);
  return Array.isArray(value) ? value : [];
}

function mapAt(object: unknown, path: string): Readonly<Record<string, unknown>> {
  const value = at(object, path);
  return isRecord(value) ? value : {};
}

/** How long ago something was, at a time. */
function sinceUntil(time: unknown, until: number): string {
  const ms = typeof time === 'string' ? Date.parse(time) : Number.NaN;
  return Number.isNaN(ms) ? '<unknown>' : humanDuration(until - ms);
}

const isDeleted = (object: KubernetesObject): boolean => at(object, 'metadata.deletionTimestamp') !== undefined;

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
}

/** Whether the first condition of a type is true. */
const hasCondition = (object: KubernetesObject, type: string): boolean =>
  listAt<Condition>(object, 'status.conditions').find((each) => each.type === type)?.status === 'True';

const MOST = 3;

/** The first of a list, and how many more there are. */
function firstOf(list: readonly unknown[], { most = MOST, all = list.length, between = ',' } = {}): string {
  const shown = list.slice(0, most).join(between);
  return all > most ? `${shown} + ${all - most} more...` : shown;
}

/** Upstream: `LabelSelectorAsSelector`. */
function selectorOf(object: KubernetesObject, path: string, wrong: string): string {
  const selector = at(object, path);
  return selector === undefined ? '' : (tried(() => String(LabelSelector.fromObject(selector))) ?? wrong);
}

/** Pods. Upstream: `printPod`. */

interface Terminated {
  readonly exitCode?: number;
  readonly signal?: number;
  readonly reason?: string;
  readonly finishedAt?: string | null;
}
interface ContainerState {
  readonly waiting?: { readonly reason?: string };
  readonly running?: object;
  readonly terminated?: Terminated;
}
interface ContainerStatus {
  readonly name?: string;
  readonly ready?: boolean;
  readonly started?: boolean;
  readonly restartCount?: number;
  readonly state?: ContainerState;
  readonly lastState?: ContainerState;
}
interface PodState {
  readonly reason: string;
  readonly ready: number;
  readonly wanted: number;
  /** The containers whose restarts count. */
  readonly counted: readonly ContainerStatus[];
}

const hasSucceeded = ({ state }: ContainerStatus): boolean => state?.terminated !== undefined && !state.terminated.exitCode;
const endOf = ({ reason, signal, exitCode = 0 }: Terminated): string =>
  reason || (signal ? `Signal:${signal}` : `ExitCode:${exitCode}`);

/** The containers that run before the others. `seen`: up to the one that the others wait for, for the reason `stopped`. */
function initsOf(pod: KubernetesObject): {
  isSidecar: (of: ContainerStatus) => boolean;
  seen: readonly ContainerStatus[];
  stopped?: string;
} {
  const specs = listAt<{ name?: string; restartPolicy?: string }>(pod, 'spec.initContainers');
  const sidecars = new Set(specs.filter(({ restartPolicy }) => restartPolicy === 'Always').map(({ name }) => name));
  const isSidecar = ({ name }: ContainerStatus): boolean => sidecars.has(name);
  const all = listAt<ContainerStatus>(pod, 'status.initContainerStatuses');
  const index = all.findIndex((each) => !hasSucceeded(each) && !(isSidecar(each) && each.started));
  if (index < 0) return { isSidecar, seen: all };
  const { terminated, waiting } = all[index]?.state ?? {};
  const reason = waiting?.reason && waiting.reason !== 'PodInitializing' ? waiting.reason : `${index}/${specs.length}`;
  return { isSidecar, seen: all.slice(0, index + 1), stopped: `Init:${terminated ? endOf(terminated) : reason}` };
}

function stateOf(pod: KubernetesObject): PodState {
  const { isSidecar, seen, stopped } = initsOf(pod);
  const conditions = listAt<Condition>(pod, 'status.conditions');
  const isGated = conditions.some(({ type, reason }) => type === 'PodScheduled' && reason === 'SchedulingGated');
  const own = isGated ? 'SchedulingGated' : String(at(pod, 'status.reason') || at(pod, 'status.phase') || 'Pending');
  const sidecars = seen.filter(isSidecar);
  const wanted = listAt(pod, 'spec.containers').length;
  const inits = listAt<ContainerStatus & { restartPolicy?: string }>(pod, 'spec.initContainers');
  const before = {
    reason: stopped ?? own,
    ready: sidecars.filter((each) => each.started && each.ready && !hasSucceeded(each)).length,
    wanted: wanted + inits.filter(isSidecar).length,
    counted: seen,
  };
  if (stopped !== undefined && !hasCondition(pod, 'Initialized')) return before;
  const containers = listAt<ContainerStatus>(pod, 'status.containerStatuses');
  const running = containers.filter((each) => each.ready && each.state?.running && whyNot(each) === undefined).length;
  return {
    reason: reasonOf(pod, before.reason, running > 0),
    ready: before.ready + running,
    wanted: before.wanted,
    counted: [...sidecars, ...containers],
  };
}

/** Why a container does not run. */
const whyNot = ({ state: { waiting, terminated } = {} }: ContainerStatus): string | undefined =>
  waiting?.reason || (terminated && endOf(terminated));

/** The first container that does not run says why, unless it has merely done its work. */
function reasonOf(pod: KubernetesObject, before: string, isRunning: boolean): string {
  const containers = listAt<ContainerStatus>(pod, 'status.containerStatuses');
  const reason = containers.map(whyNot).find(Boolean) ?? before;
  if (reason !== 'Completed') return reason;
  if (isRunning && hasCondition(pod, 'Ready')) return 'Running';
  const failed = containers.find(({ state }) => !state?.waiting?.reason && state?.terminated?.exitCode);
  return (failed && whyNot(failed)) || (isRunning ? 'NotReady' : reason);
}

function podStatus(pod: KubernetesObject): string {
  if (isDeleted(pod)) {
    if (at(pod, 'status.reason') === 'NodeLost') return 'Unknown';
    if (!['Failed', 'Succeeded'].includes(String(at(pod, 'status.phase')))) return 'Terminating';
  }
  return stateOf(pod).reason;
}

function podRestarts(pod: KubernetesObject, _: string, { now }: CellContext): string {
  const { counted } = stateOf(pod);
  const restarts = counted.reduce((sum, { restartCount = 0 }) => sum + restartCount, 0);
  const last = counted.reduce((latest, { lastState }) => {
    return Math.max(latest, Date.parse(lastState?.terminated?.finishedAt ?? '') || 0);
  }, 0);
  return restarts === 0 || last === 0 ? String(restarts) : `${restarts} (${humanDuration(now - last)} ago)`;
}

function podGates(pod: KubernetesObject): string {
  const gates = listAt<{ conditionType: string }>(pod, 'spec.readinessGates');
  const open = gates.filter(({ conditionType }) => hasCondition(pod, conditionType));
  return gates.length === 0 ? '' : `${open.length}/${gates.length}`;
}

/** Services, and what is behind them. */

/** The addresses of a load balancer. */
function loadBalancer(object: KubernetesObject): string {
  const all = listAt<{ ip?: string; hostname?: string }>(object, 'status.loadBalancer.ingress');
  return [...new Set(all.map(({ ip, hostname }) => ip || hostname || '').filter(Boolean))].sort().join();
}

function serviceExternal(service: KubernetesObject): string {
  const external = listAt(service, 'spec.externalIPs').join();
  const type = at(service, 'spec.type');
  if (type === 'ExternalName') return String(at(service, 'spec.externalName'));
  return type === 'LoadBalancer' ? [loadBalancer(service), external].filter(Boolean).join() || '<pending>' : external;
}

function servicePorts(service: KubernetesObject): string {
  const ports = listAt<{ port: number; nodePort?: number; protocol?: string }>(service, 'spec.ports');
  return ports.map(({ port, nodePort, protocol }) => `${port}${nodePort ? `:${nodePort}` : ''}/${protocol || 'TCP'}`).join();
}

interface Subset {
  readonly addresses?: readonly { readonly ip: string }[];
  readonly ports?: readonly { readonly port: number }[];
}

function endpoints(object: KubernetesObject): string {
  const subsets = listAt<Subset>(object, 'subsets');
  if (subsets.length === 0) return '<none>';
  let all = 0;
  // There may be as many as addresses times ports.
  const shown = subsets.flatMap(({ addresses = [], ports = [] }) => {
    all += addresses.length * Math.max(ports.length, 1);
    const hosts = addresses.slice(0, MOST).map(({ ip }) => ip);
    if (ports.length === 0) return hosts;
    return ports.slice(0, MOST).flatMap(({ port }) => hosts.map((ip) => `${ip.includes(':') ? `[${ip}]` : ip}:${port}`));
  });
  return firstOf(shown, { all });
}

function ingressHosts(ingress: KubernetesObject): string {
  const rules = listAt<{ host?: string }>(ingress, 'spec.rules');
  const hosts = rules.flatMap(({ host }, index) => (host ? [{ host, index }] : []));
  // Upstream counts all rules after the third host, with and without one.
  const isMore = (hosts[MOST - 1]?.index ?? rules.length) < rules.length - 1;
  const shown = hosts.slice(0, MOST).map(({ host }) => host);
  return firstOf(shown, { all: isMore ? rules.length : shown.length });
}

/** Volumes and their classes. */

const MODES = { ReadWriteOnce: 'RWO', ReadOnlyMany: 'ROX', ReadWriteMany: 'RWX', ReadWriteOncePod: 'RWOP' } as const;

function modes(object: KubernetesObject, path: string): string {
  const all = listAt(object, path);
  const known = Object.entries(MODES).filter(([mode]) => all.includes(mode));
  return known.map(([, short]) => short).join();
}

/** A claim shows what it has got only if it is bound. */
const isBound = (claim: KubernetesObject): boolean => Boolean(at(claim, 'spec.volumeName'));

function audiences(driver: KubernetesObject): string {
  const requests = at(driver, 'spec.tokenRequests');
  return Array.isArray(requests) ? requests.map(({ audience }) => audience).join() : '<unset>';
}

const isMarked = ({ metadata }: KubernetesObject, keys: readonly string[]): boolean =>
  keys.some((key) => metadata?.annotations?.[key] === 'true');

const DEFAULT_CLASS = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
] as const;

/** The default class of each list: of several, the newest. */
const defaults: WeakMap<object, KubernetesObject | undefined> = new WeakMap();

function defaultOf(list: readonly KubernetesObject[]): KubernetesObject | undefined {
  const born = (object: KubernetesObject): number => Date.parse(String(at(object, 'metadata.creationTimestamp')));
  return list.filter((each) => isMarked(each, DEFAULT_CLASS)).sort((one, other) => born(other) - born(one))[0];
}

const named = ({ metadata }: KubernetesObject, isDefault: boolean): string => `${metadata?.name}${isDefault ? ' (default)' : ''}`;

/** References: `deployment.apps/web` and the like. */

const inGroup = (name: unknown, group: unknown): string => `${name}${group ? `.${group}` : ''}`;

interface Owner {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly controller?: boolean;
}

function controller(object: KubernetesObject): string {
  const owner = listAt<Owner>(object, 'metadata.ownerReferences').find((each) => each.controller);
  const [group] = owner?.apiVersion.split(/[^/]*$/) ?? [];
  return owner ? `${inGroup(owner.kind, group?.slice(0, -1)).toLowerCase()}/${owner.name}` : '';
}

function parameters(ingressClass: KubernetesObject): string {
  const { kind, apiGroup, name } = mapAt(ingressClass, 'spec.parameters');
  return kind === undefined ? '' : `${inGroup(kind, apiGroup)}/${name}`;
}

function parent(address: KubernetesObject): string {
  const { group, resource, namespace, name } = mapAt(address, 'spec.parentRef');
  return resource === undefined
    ? ''
    : [inGroup(resource, group).toLowerCase(), ...(namespace ? [namespace] : []), name].join('/');
}

/** The name of what is referred to, behind the member at a path. */
function reference(object: KubernetesObject, path: string): string {
  const [, whole = '', member = ''] = /^(.*)\.(\w+)$/.exec(path) ?? [];
  const found = at(object, whole);
  return isRecord(found) ? `${found[member] ?? ''}/${found.name ?? ''}` : '';
}

function subjects(binding: KubernetesObject, kind: string): string {
  const all = listAt<{ kind: string; name: string; namespace?: string }>(binding, 'subjects');
  const names = all.filter((each) => each.kind === kind);
  return names.map(({ name, namespace = '' }) => (kind === 'ServiceAccount' ? `${namespace}/${name}` : name)).join(', ');
}

/** Nodes. */

function nodeStatus(node: KubernetesObject): string {
  const ready = listAt<Condition>(node, 'status.conditions').findLast(({ type }) => type === 'Ready');
  const status = ready === undefined ? 'Unknown' : ready.status === 'True' ? 'Ready' : 'NotReady';
  return at(node, 'spec.unschedulable') ? `${status},SchedulingDisabled` : status;
}

const ROLE = 'node-role.kubernetes.io/';

function nodeRoles({ metadata }: KubernetesObject): string {
  const roles = Object.entries(metadata?.labels ?? {}).map(([key, value]) => {
    return key.startsWith(ROLE) ? key.slice(ROLE.length) : key === 'kubernetes.io/role' ? value : '';
  });
  return [...new Set(roles.filter(Boolean))].sort().join();
}

function nodeKernel(node: KubernetesObject): string {
  const { kernelVersion, architecture } = mapAt(node, 'status.nodeInfo');
  return `${kernelVersion || '<unknown>'}${architecture ? ` (${architecture})` : ''}`;
}

/** Jobs, quotas and metrics. */

function jobStatus(job: KubernetesObject): string {
  const is = (type: string): boolean => hasCondition(job, type);
  if (!is('Complete') && !is('Failed') && isDeleted(job)) return 'Terminating';
  return ['Complete', 'Failed', 'Suspended', 'FailureTarget', 'SuccessCriteriaMet'].find(is) ?? 'Running';
}

function jobCompletions(job: KubernetesObject): string {
  const [done, parallel] = [numberAt(job, 'status.succeeded'), numberAt(job, 'spec.parallelism', 1)];
  const wanted = at(job, 'spec.completions');
  return wanted === undefined && parallel > 1 ? `${done}/1 of ${parallel}` : `${done}/${wanted ?? 1}`;
}

function jobDuration(job: KubernetesObject, _: string, { now }: CellContext): string {
  const { startTime, completionTime } = mapAt(job, 'status');
  return startTime ? sinceUntil(startTime, completionTime ? Date.parse(String(completionTime)) : now) : '';
}

/** Those that begin with `limits.`, or the others. */
function quotas(quota: KubernetesObject, prefix: string): string {
  const [hard, used] = [mapAt(quota, 'status.hard'), new Map(Object.entries(mapAt(quota, 'status.used')))];
  const own = Object.keys(hard).filter((name) => name.startsWith('limits.') === (prefix !== ''));
  return own
    .sort()
    .map((name) => `${name}: ${used.get(name) ?? 0}/${hard[name]}`)
    .join(', ');
}

type MetricSource = 'resource' | 'containerResource' | 'pods' | 'external' | 'object';
type Amounts = Readonly<Partial<Record<'value' | 'averageValue' | 'averageUtilization', unknown>>>;
interface Metric {
  readonly name?: string;
  readonly target?: Amounts;
  readonly current?: Amounts;
}
type MetricOf = Readonly<Partial<Record<MetricSource, Metric>>> & { readonly type?: string };

const SOURCES: ReadonlyMap<unknown, MetricSource> = new Map(
  Object.entries({
    ...({ Resource: 'resource', ContainerResource: 'containerResource', Pods: 'pods' } as const),
    ...({ External: 'external', Object: 'object' } as const),
  }),
);

function metricOf(spec: MetricOf, status: MetricOf | undefined): string {
  const source = SOURCES.get(spec.type);
  if (source === undefined) return '<unknown type>';
  const { name, target = {} } = spec[source] ?? {};
  const { averageValue: average, averageUtilization: percent, value } = target;
  const current = status?.[source] && (status[source].current ?? {});
  const averages = `${current ? (current.averageValue ?? '<nil>') : '<unknown>'}/${average ?? '<nil>'}`;
  if (source === 'pods') return averages;
  if (source === 'resource' || source === 'containerResource') {
    if (average !== undefined) return `${name}: ${averages}`;
    const used = current?.averageUtilization;
    return `${name}: ${used === undefined ? '<unknown>' : `${used}%`}/${percent === undefined ? '<auto>' : `${percent}%`}`;
  }
  if (average !== undefined) return `${current?.averageValue ?? '<unknown>'}/${average} (avg)`;
  return `${current ? (current.value ?? '<nil>') : '<unknown>'}/${value ?? '<nil>'}`;
}

const DEFAULT_PERCENT = 80;

/** An autoscaler of the older version has only this metric; without any, it has this one, too. */
function metrics(scaler: KubernetesObject): string {
  const specs = listAt<MetricOf>(scaler, 'spec.metrics');
  const statuses = listAt<MetricOf>(scaler, 'status.currentMetrics');
  const target = { averageUtilization: at(scaler, 'spec.targetCPUUtilizationPercentage') ?? DEFAULT_PERCENT };
  const current = { averageUtilization: at(scaler, 'status.currentCPUUtilizationPercentage') };
  const cpu = metricOf({ type: 'Resource', resource: { name: 'cpu', target } }, statuses[0] ?? { resource: { current } });
  const all = specs.length === 0 ? [cpu] : specs.map((spec, index) => metricOf(spec, statuses[index]));
  return firstOf(all, { most: 2, between: ', ' });
}

type Cell = ReturnType<PrinterColumn['value']>;
/** Reads a cell. `word` is what stands in the brackets. */
type Read = (object: KubernetesObject, word: string, about: CellContext) => unknown;

const READS: Readonly<Record<string, Read>> = {
  ...{ audiences, controller, endpoints, ingressHosts, jobCompletions, jobDuration, jobStatus, loadBalancer, metrics, modes },
  ...{ nodeKernel, nodeRoles, nodeStatus, parameters, parent, podGates, podRestarts, podStatus, quotas, reference },
  ...{ serviceExternal, servicePorts, subjects },
  claimCapacity: (claim) => (isBound(claim) ? String(at(claim, 'status.capacity.storage') ?? 0) : ''),
  claimModes: (claim) => (isBound(claim) ? modes(claim, 'status.accessModes') : ''),
  count: (object, path) => listAt(object, path).length,
  deploymentSelector: (object) => selectorOf(object, 'spec.selector', '<invalid>'),
  each: (object, path) => {
    const [, list = '', member = ''] = /^(.*)\.(\w+)$/.exec(path) ?? [];
    return listAt(object, list)
      .map((item) => at(item, member))
      .join();
  },
  ingressClassName: (object) => named(object, isMarked(object, ['ingressclass.kubernetes.io/is-default-class'])),
  ingressPorts: (ingress) => (listAt(ingress, 'spec.tls').length > 0 ? '80, 443' : '80'),
  isTrue: (object, path) => at(object, path) === true,
  jobSuspend: (job) => (at(job, 'spec.suspend') ? 'True' : 'False'),
  join: (object, path) => listAt(object, path).join(),
  labels: (object, path) => printLabels(mapAt(object, path) as Readonly<Record<string, string>>),
  nodeAddress: (node, type) =>
    listAt<{ type: string; address: string }>(node, 'status.addresses').find((each) => each.type === type)?.address,
  podIp: (pod) => String(listAt<{ ip?: string }>(pod, 'status.podIPs')[0]?.ip ?? at(pod, 'status.podIP') ?? ''),
  podReady: (pod) => {
    const { ready, wanted } = stateOf(pod);
    return `${ready}/${wanted}`;
  },
  replicasReady: (object) => `${numberAt(object, 'status.readyReplicas')}/${numberAt(object, 'spec.replicas', 1)}`,
  selector: (object, path) => selectorOf(object, path, '<error>'),
  serviceIp: (service) => String(listAt(service, 'spec.clusterIPs')[0] ?? at(service, 'spec.clusterIP') ?? ''),
  since: (object, path, { now }) => at(object, path) && sinceUntil(at(object, path), now),
  sliceEndpoints: (slice) => firstOf(listAt(slice, 'endpoints').flatMap((each) => listAt(each, 'addresses'))),
  slicePorts: (slice) => firstOf(listAt(slice, 'ports').map((each) => at(each, 'port') ?? at(each, 'name') ?? '*')),
  storageClassName: (object, _, { list }) => named(object, getOrMake(defaults, list, () => defaultOf(list)) === object),
  text: (object, path) => String(at(object, path) ?? ''),
  volumeClass: (volume) =>
    volume.metadata?.annotations?.['volume.beta.kubernetes.io/storage-class'] ??
    String(at(volume, 'spec.storageClassName') ?? ''),
  volumePhase: (volume) => (isDeleted(volume) ? 'Terminating' : String(at(volume, 'status.phase') ?? '')),
};

const COLUMN = /^(.+?)([#?+]?)(\*?):([\w.]+)(?:(\()([\w.]*)\))?(?:=(.*))?$/;
/** Upstream gives this hint for the names of objects. */
const NAMES: readonly string[] = ['Name', 'Attacher'];

/** Makes a column of a word of the table. */
function toColumn(word: string): PrinterColumn {
  const [, words = '', mark = '', wide, first = '', isCall, inner = '', missing = ''] = COLUMN.exec(word) ?? [];
  const name = words.replace('_', ' ');
  const nothing = mark === '?' && !isCall ? missing === 'true' : mark === '' || mark === '?' ? missing : Number(missing);
  const read: Read = isCall ? (READS[first] as Read) : (object) => at(object, first);
  return {
    name,
    type: mark === '#' ? 'integer' : mark === '?' ? 'boolean' : 'string',
    format: NAMES.includes(name) ? 'name' : '',
    priority: wide ? 1 : 0,
    value: (object, about = { now: Date.now(), list: [] }) => {
      const value = read(object, inner, about);
      return value === undefined || value === '' ? nothing : (value as Cell);
    },
  };
}

const wordsOf = (text: string): string[] =>
  text.split(/\s+/).flatMap((word) => (SHARED[word] === undefined ? [word] : wordsOf(SHARED[word])));

/** The columns of each kind, by names such as `deployments.apps/v1`. */
export const COLUMNS: ReadonlyMap<string, readonly PrinterColumn[]> = new Map(
  TABLE.trim()
    .split(/\n(?! )/)
    .map((line) => {
      const [name = '', ...words] = wordsOf(line);
      return [name, words.map(toColumn)];
    }),
);
