/** The kinds that a test's server has: those that it is given, and those that the operator names. */
import type { ResourceDefinition, SchemaDefinition } from '../../apiserver/definition.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import { nameOf, type ResourceType } from '../../cache/resource-client.ts';
import { fullType, type GroupVersionKind, type KindName, pluralOf } from '../../operator/kinds.ts';
import type { OperatorControllerOptions } from '../../operator/operator-options.ts';
import type { TestResource } from './test-options.ts';

type Definition = ResourceDefinition | SchemaDefinition;

/** Kinds of Kubernetes that `BUILT_IN_KINDS` does not have: without a schema, and with a status if there is one. */
const KUBERNETES: readonly (readonly [apiVersion: string, kinds: string, cluster?: string])[] = [
  ['v1', 'Pod Service PersistentVolumeClaim ReplicationController ResourceQuota LimitRange Endpoints', 'Node PersistentVolume'],
  ['apps/v1', 'Deployment StatefulSet DaemonSet ReplicaSet'],
  ['batch/v1', 'Job CronJob'],
  ['autoscaling/v2', 'HorizontalPodAutoscaler'],
  ['policy/v1', 'PodDisruptionBudget'],
  ['networking.k8s.io/v1', 'Ingress NetworkPolicy', 'IngressClass'],
  ['discovery.k8s.io/v1', 'EndpointSlice'],
  ['rbac.authorization.k8s.io/v1', 'Role RoleBinding', 'ClusterRole ClusterRoleBinding'],
  ['storage.k8s.io/v1', '', 'StorageClass'],
  ['scheduling.k8s.io/v1', '', 'PriorityClass'],
];

const SCALED: ReadonlySet<string> = new Set(['Deployment', 'StatefulSet', 'ReplicaSet', 'ReplicationController']);
const WITHOUT_STATUS = /^(LimitRange|Endpoint.*|.*Role.*|StorageClass|PriorityClass|IngressClass)$/;

function toDefinitions([apiVersion, kinds, cluster = '']: (typeof KUBERNETES)[number]): readonly Definition[] {
  const [version = '', group = ''] = apiVersion.split('/').reverse();
  const made = (text: string, namespaced: boolean): readonly Definition[] =>
    text
      .split(' ')
      .filter(Boolean)
      .map((kind) => ({
        ...{ group, version, kind, namespaced, plural: pluralOf(kind), status: !WITHOUT_STATUS.test(kind) },
        ...(SCALED.has(kind) && { scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' } }),
      }));
  return [...made(kinds, true), ...made(cluster, false)];
}

function isNamed({ group, version, plural, kind }: Definition, name: KindName): boolean {
  if (typeof name !== 'string' && !('plural' in name))
    return name.apiVersion === (group ? `${group}/${version}` : version) && name.kind === kind;
  const text = typeof name === 'string' ? name : nameOf(name);
  return text === nameOf({ group, version, plural }) || text === (group ? `${plural}.${group}` : plural);
}

/** The kinds that controllers name. */
export function kindsOf(controllers: readonly OperatorControllerOptions[]): readonly KindName[] {
  return controllers.flatMap(({ for: own, owns = [], watches = [], reads = [] }) =>
    [own, ...owns, ...watches, ...reads].map(
      (each) => (typeof each === 'object' && !isKind(each) ? each.kind : each) as KindName,
    ),
  );
}

const isKind = (value: object): value is ResourceType | GroupVersionKind => 'plural' in value || 'apiVersion' in value;

const isCrd = (value: object): value is KubernetesObject =>
  (value as KubernetesObject).kind === 'CustomResourceDefinition' && 'spec' in value;

/**
 * What the server needs so that it has all of them. A kind of which only the type is known, as `kind({ group, version, ... })` has it,
 * is served without a schema. Others that nobody knows are not among them: the server says so when it is asked for one.
 */
export function servedKinds(
  resources: readonly TestResource[],
  { names, builtIn }: { readonly names: readonly KindName[]; readonly builtIn: readonly Definition[] },
): { readonly definitions: readonly Definition[]; readonly crds: readonly KubernetesObject[] } {
  const crds = resources.filter((each) => typeof each === 'object' && isCrd(each)) as readonly KubernetesObject[];
  const isDefinition = (each: TestResource): boolean =>
    typeof each === 'object' && !isCrd(each) && 'plural' in each && 'kind' in each;
  const definitions = resources.filter(isDefinition) as Definition[];
  const others = resources.filter(
    (each) => !crds.includes(each as KubernetesObject) && !isDefinition(each),
  ) as readonly KindName[];
  const known = [...builtIn, ...KUBERNETES.flatMap(toDefinitions)];
  for (const name of [...others, ...names]) {
    if (definitions.some((each) => isNamed(each, name)) || crds.some((crd) => defines(crd, name))) continue;
    const found = known.filter((each) => isNamed(each, name));
    const type = fullType(name);
    definitions.push(...(found.length > 0 ? found : type ? [{ ...type, status: true } as Definition] : []));
  }
  return { definitions, crds };
}

function defines(crd: KubernetesObject, name: KindName): boolean {
  const { spec } = crd as {
    readonly spec?: { group?: string; names?: { plural?: string; kind?: string }; versions?: { name?: string }[] };
  };
  return (spec?.versions ?? []).some(({ name: version = '' }) =>
    isNamed({ group: spec?.group ?? '', version, plural: spec?.names?.plural ?? '', kind: spec?.names?.kind ?? '' }, name),
  );
}
