/**
 * What a Pod has besides its fields: paths that need no kubelet. And what field selectors may ask of it and of other kinds.
 *
 *     path                   what is sent      what happens
 *     /ephemeralcontainers   the Pod           only those containers are written, as `kubectl debug` does
 *     /resize                the Pod           only the resources of its containers are written
 *     /binding               a Binding         the Pod gets a node, as a scheduler wants
 *     /eviction              an Eviction       the Pod is deleted, if its budget allows it: verbs/evict.ts
 *
 * A Pod on a node is deleted with grace: verbs/grace.ts.
 * Upstream: `registry/core/pod/storage`.
 */
import { nameOf } from '../../cache/resource-client.ts';
import { comparing, put } from '../../storage/json.ts';
import type { Work } from '../../watch/fair-queue.ts';
import { conflict } from '../api-status.ts';
import type { FieldCause, ResourceDefinition } from '../definition.ts';
import type { Json } from '../request/json.ts';
import { timestamp } from '../resource-info.ts';
import { PART_VERBS, type SeenKind, type Subresource, withMembers } from '../subresources.ts';
import { forbiddenCause, invalidCause, unsupportedCause } from '../validation/causes.ts';
import { subdomainFaults } from '../validation/formats.ts';
import { required } from './common.ts';
import { completedOf } from './kubernetes-defaults.ts';
import { shape } from './shape.ts';
import { DELETE_OPTIONS, OBJECT_META, OBJECT_REFERENCE } from './tables.ts';

const metadata = [1, OBJECT_META, '', 'The metadata: whose name is that of the Pod.'] as const;

const EVICTION: SeenKind = {
  ...{ group: 'policy', version: 'v1', apiVersion: 'policy/v1', kind: 'Eviction' },
  shape: shape('Eviction asks for the end of a Pod.', {
    metadata,
    deleteOptions: [2, DELETE_OPTIONS, '?', 'How it is deleted.'],
  }),
};

const BINDING: SeenKind = {
  ...{ group: '', version: 'v1', apiVersion: 'v1', kind: 'Binding' },
  shape: shape('Binding says on which node a Pod runs.', { metadata, target: [2, OBJECT_REFERENCE, '', 'The node.'] }),
};

interface Pod extends Json {
  readonly metadata: Json & { readonly name: string; readonly deletionTimestamp?: string };
  readonly spec?: Json & { readonly nodeName?: string; readonly schedulingGates?: readonly unknown[] };
  readonly status?: Json & { readonly conditions?: readonly Json[] };
}

/** Why a Pod cannot get a node; undefined: it can. */
function whyUnbound({ metadata: { name, deletionTimestamp }, spec = {} }: Pod): string | undefined {
  if (deletionTimestamp !== undefined) return `pod ${name} is being deleted, cannot be assigned to a host`;
  if (spec.nodeName) return `pod ${name} is already assigned to node "${spec.nodeName}"`;
  return spec.schedulingGates?.length ? `pod ${name} has non-empty .spec.schedulingGates` : undefined;
}

const BINDINGS = { ...BINDING, plural: 'pods/binding', resourceName: 'pods/binding', kindName: BINDING.kind };

/** A Pod with a node, and with the labels and annotations of the Binding. */
function bound(binding: Json, pod: Pod, now: () => number): Pod {
  const why = whyUnbound(pod);
  if (why !== undefined) throw conflict(BINDINGS, pod.metadata.name, why);
  const [own, given] = [pod.metadata, (binding.metadata ?? {}) as Json];
  const both = (member: string): object => ({ ...(own[member] as object | undefined), ...(given[member] as object | undefined) });
  const { nominatedNodeName: _, conditions = [], ...status } = pod.status ?? {};
  return {
    ...pod,
    metadata: { ...own, ...(given.labels ? { labels: both('labels') } : {}), annotations: both('annotations') },
    spec: { ...pod.spec, nodeName: (binding.target as { readonly name?: string }).name as string },
    status: { ...status, conditions: withCondition(conditions, { type: 'PodScheduled' }, now) },
  };
}

/** Conditions with one that is true now. Upstream: `UpdatePodCondition`. */
function withCondition(conditions: readonly Json[], met: Json & { readonly type: string }, now: () => number): readonly Json[] {
  const old = conditions.find(({ type }) => type === met.type);
  const lastTransitionTime = old?.status === 'True' ? old.lastTransitionTime : timestamp(now());
  const condition = { ...met, status: 'True', lastProbeTime: null, lastTransitionTime };
  return old ? conditions.map((each) => (each === old ? condition : each)) : [...conditions, condition];
}

const EVICTED = { type: 'DisruptionTarget', reason: 'EvictionByEvictionAPI', message: 'Eviction API: evicting' };

const evicted = ({ status }: Json, now: () => number): readonly Json[] =>
  withCondition(((status as Pod['status'])?.conditions ?? []) as readonly Json[], EVICTED, now);

/** What is wrong with a Binding. Upstream: `ValidatePodBinding`. */
function faultOfBinding({ target }: Json): string | undefined {
  const { kind = '', name = '' } = (target ?? {}) as Readonly<Record<string, string | undefined>>;
  const isNode = kind === '' || kind === 'Node';
  const causes = isNode ? [] : [unsupportedCause('target.kind', kind, ['Node', '<empty>'])];
  if (name === '') causes.push(required('target.name'));
  else if (isNode) causes.push(...subdomainFaults(name).map((fault) => invalidCause('target.name', name, fault)));
  const texts = causes.map(({ field, message }) => `${field}: ${message}`);
  return texts.length > 1 ? `[${texts.join(', ')}]` : texts[0];
}

type Containers = readonly Json[];

const listOf = (containers: unknown): Containers => (containers ?? []) as Containers;

/** A resize changes no container but its resources. Upstream: `validatePodResizeContainerOrdering`. */
function* resizeCauses(sent: Json, own: Json): Work<FieldCause[]> {
  return ['containers', 'initContainers'].flatMap((list) => {
    const [given, old] = [listOf(sent[list]), listOf(own[list])];
    if (given.length !== old.length) return [forbiddenCause(`spec.${list}`, `${list} may not be added or removed on resize`)];
    return given.flatMap(({ name }, at) =>
      name === old[at]?.name
        ? []
        : [forbiddenCause(`spec.${list}[${at}].name`, `${list} may not be renamed or reordered on resize`)],
    );
  });
}

/** Ephemeral containers stay as they are. Upstream: `ValidatePodEphemeralContainersUpdate`. */
function* ephemeralCauses(sent: Json, own: Json): Work<FieldCause[]> {
  const given = new Map(listOf(sent.ephemeralContainers).map((each) => [each.name, each]));
  const causes: FieldCause[] = [];
  for (const old of listOf(own.ephemeralContainers)) {
    const next = given.get(old.name);
    if (next !== undefined && (yield* comparing(yield* filled(next), yield* filled(old)))) continue;
    const what = next === undefined ? 'removed' : 'changed';
    causes.push(forbiddenCause('spec.ephemeralContainers', `existing ephemeral containers "${old.name}" may not be ${what}`));
  }
  return causes;
}

/** A value without what is empty, which Go's clients add or leave out. */
function* filled(value: unknown): Work<unknown> {
  if (typeof value !== 'object' || value === null) return value || undefined;
  const result: Record<string, unknown> | unknown[] = Array.isArray(value) ? [] : {};
  for (const [name, each] of Object.entries(value)) {
    yield;
    const kept = yield* filled(each);
    if (Array.isArray(result)) result.push(kept);
    else if (kept !== undefined) put(result, name, kept);
  }
  return Object.keys(result).length === 0 ? undefined : result;
}

/** The containers with the resources that were sent for them. */
function resized(containers: unknown, sent: unknown): unknown {
  return (containers as Containers).map((each, at) => withMembers(each, listOf(sent)[at] ?? each, ['resources', 'resizePolicy']));
}

interface Part {
  readonly merge: (sent: Json, own: Json) => Json;
  readonly causes: (sent: Json, own: Json) => Work<FieldCause[]>;
}

const specOf = ({ spec }: Json): Json => (spec ?? {}) as Json;

const partOf = (name: string, { merge, causes }: Part): Subresource => ({
  ...{ name, verbs: PART_VERBS, isPart: true, view: (object) => object },
  refused: (sent, old) => causes(specOf(sent), specOf(old)),
  merge: (sent, old) => ({ ...old, spec: merge(specOf(sent), specOf(old)) }),
});

const SUBRESOURCES: readonly Subresource[] = [
  {
    ...{ name: 'binding', verbs: ['create'], kind: BINDING, view: (object) => object },
    fault: faultOfBinding,
    merge: (sent, old, now) => bound(sent, old as unknown as Pod, now) as unknown as typeof sent,
  },
  partOf('ephemeralcontainers', {
    merge: (sent, own) => withMembers(own, sent, ['ephemeralContainers']),
    causes: ephemeralCauses,
  }),
  {
    ...{ name: 'eviction', verbs: ['create'], kind: EVICTION, view: (object) => object },
    merge: (_, old, now) => ({ ...old, status: { ...(old.status as object), conditions: evicted(old, now) } }),
    deletion: ({ deleteOptions }) => deleteOptions ?? {},
  },
  partOf('resize', {
    merge: (sent, own) => ({
      ...withMembers(own, sent, ['resources']),
      ...(own.containers !== undefined && { containers: resized(own.containers, sent.containers) }),
      ...(own.initContainers !== undefined && { initContainers: resized(own.initContainers, sent.initContainers) }),
    }),
    causes: resizeCauses,
  }),
];

/** A Pod that has a node, and has not ended, is told to end: its kubelet removes it. Upstream: `CheckGracefulDelete`. */
function graceOf({ spec, status }: Json, asked: number | undefined): number {
  const { nodeName, terminationGracePeriodSeconds: own } = (spec ?? {}) as Json & {
    terminationGracePeriodSeconds?: number | null;
  };
  const { phase } = (status ?? {}) as Json;
  if (!nodeName || phase === 'Succeeded' || phase === 'Failed') return 0;
  const seconds = asked ?? own ?? 0;
  return seconds < 0 ? 1 : seconds;
}

type Fields = NonNullable<ResourceDefinition['fields']>;

const field =
  (part: 'spec' | 'status', name: string, missing: string = ''): Fields[string] =>
  (pod) =>
    String((pod as Json)[part]?.[name as never] ?? missing);

const REPLICAS: Fields = { 'status.replicas': field('status', 'replicas', '0') };

/** What field selectors may ask of a kind, as `kubectl drain` does, with the values that are meant by nothing. */
const FIELDS: Readonly<Record<string, Fields>> = {
  'pods/v1': {
    'spec.nodeName': field('spec', 'nodeName'),
    'spec.restartPolicy': field('spec', 'restartPolicy', 'Always'),
    'spec.schedulerName': field('spec', 'schedulerName', 'default-scheduler'),
    'spec.serviceAccountName': field('spec', 'serviceAccountName'),
    'spec.hostNetwork': field('spec', 'hostNetwork', 'false'),
    'status.phase': field('status', 'phase', 'Pending'),
    'status.podIP': field('status', 'podIP'),
    'status.nominatedNodeName': field('status', 'nominatedNodeName'),
  },
  'nodes/v1': { 'spec.unschedulable': field('spec', 'unschedulable', 'false') },
  'services/v1': { 'spec.clusterIP': field('spec', 'clusterIP'), 'spec.type': field('spec', 'type', 'ClusterIP') },
  'replicationcontrollers/v1': REPLICAS,
  'replicasets.apps/v1': REPLICAS,
  'jobs.batch/v1': { 'status.successful': field('status', 'succeeded', '0') },
};

/** A definition with all this. */
export function withParts(kind: ResourceDefinition): ResourceDefinition {
  const fields = FIELDS[nameOf(kind)];
  const more = { completed: completedOf(kind.kind), ...(kind.kind === 'Pod' && { subresources: SUBRESOURCES, graceOf }) };
  return { ...kind, ...(fields && { fields }), shape: { ...kind.shape, ...more } };
}
