/**
 * Kubernetes' own kinds that are not built in: Pods, Services, Deployments and others, with the fields that they have upstream.
 *
 *     kubernetes-table.ts, a text that is loaded when a kind is first asked for
 *        apps/v1 Deployment deployments srg deploy all Deployment     a kind: status, scale, generations, cluster-scoped; -: none
 *        Deployment metadata:1ObjectMeta spec:2DeploymentSpec ...     a type
 *
 *     field    name:NUMBER FORM TYPE, then what a merge does with it:
 *        @KEYS   a list by keys, or a set       ~KEY   a strategic merge patch merges it by a key, or as a set
 *        %, +    has one manager, or several    =TEXT  the default, with which apply knows the items of a list apart
 */
import { nameOf } from '../../cache/resource-client.ts';
import { getOrMake, invalid } from '../../watch/errors.ts';
import type { JsonSchema, ResourceDefinition } from '../definition.ts';
import { isKubernetesGroup } from './common.ts';
import { byKey, type Field, type Row, SET, type Shape, shape } from './shape.ts';
import { OBJECT_META } from './tables.ts';

/** The types that have a letter or a table of their own. */
const KNOWN: Readonly<Record<string, Field['type']>> = {
  ...{ s: 'string', b: 'bytes', i: 'int32', l: 'int64', o: 'bool', t: 'time', j: 'json' },
  ...{ IntOrString: 'intOrString', Quantity: 'quantity', ObjectMeta: OBJECT_META },
};

const FIELD = /^(\w*):(\d+)((?:\?|\[\]|\{\})?!?|\^)([\w.]+)(?:@([\w,]*))?(?:~(\w*))?([%+]?)(?:=(.*))?$/;

let loaded: Promise<readonly ResourceDefinition[]> | undefined;

/** All of them. The table is read once. */
export function load(): Promise<readonly ResourceDefinition[]> {
  loaded ??= Promise.all([
    import('./kubernetes-table.ts'),
    import('./kubernetes-columns.ts'),
    import('./kubernetes-defaults.ts'),
    import('./pods.ts'),
  ]).then(([{ TABLE }, { COLUMNS }, { defaultsOf }, { withParts }]) =>
    readTable(TABLE, defaultsOf).map((kind) => withParts({ ...kind, columns: COLUMNS.get(nameOf(kind)) })),
  );
  return loaded;
}

/**
 * Definitions of Kubernetes' own kinds, by names such as `pods/v1` and `deployments.apps/v1`, in this order: serve them as they
 * are, or with members of your own, such as `{ ...pods, columns }`. They have the fields, short names, categories and
 * subresources that Kubernetes has, and their bodies and answers may be protobuf. Its defaults are filled in, and nothing is checked
 * but types. There are the stable kinds of the groups core, apps, autoscaling, batch, discovery, networking, node, policy, rbac,
 * scheduling and storage, except those of {@link BUILT_IN_KINDS}.
 *
 * @throws {WatchError} INVALID_ARGUMENT for any other name; the message lists all names.
 */
export async function kubernetesKinds<const Names extends readonly string[]>(
  ...names: Names
): Promise<{ -readonly [At in keyof Names]: ResourceDefinition }> {
  const kinds = await load();
  const found = names.map((name) => {
    const kind = kinds.find((each) => nameOf(each) === name);
    if (kind === undefined) throw invalid('kind', name, `one of ${kinds.map(nameOf).join(', ')}`);
    return kind;
  });
  return found as { -readonly [At in keyof Names]: ResourceDefinition };
}

/**
 * All of {@link kubernetesKinds}, with HorizontalPodAutoscalers in version 2, as one version cannot be converted to the other.
 */
export async function allKubernetesKinds(): Promise<readonly ResourceDefinition[]> {
  return (await load()).filter((each) => nameOf(each) !== OLDER);
}

const OLDER = 'horizontalpodautoscalers.autoscaling/v1';

/**
 * The definition of a kind with these names, if it is one of them.
 *
 * @throws {WatchError} INVALID_ARGUMENT for a kind of which only the plural or only the kind is wrong, or only the group is missing.
 */
export async function kubernetesKind(named: ResourceDefinition): Promise<ResourceDefinition | undefined> {
  if (!isKubernetesGroup(named.group)) return undefined;
  const { group, version, plural, kind } = named;
  const kinds = await load();
  const like =
    kinds.find((each) => each.group === group && each.version === version && (each.plural === plural || each.kind === kind)) ??
    kinds.find((each) => !group && each.group && each.plural === plural && each.kind === kind);
  if (like === undefined || (nameOf(like) === nameOf(named) && like.kind === kind)) return like;
  throw invalid('resource', `${nameOf(named)}=${kind}`, `${nameOf(like)}=${like.kind}, which Kubernetes has`);
}

/** What completes objects of a type, given the defaults that the table has. */
type Completing = (type: string, presets: Readonly<Record<string, unknown>>) => Shape['finish'];

/** All kinds of a table. Without `finish`, nothing is filled in, as clients read objects. */
export function readTable(text: string, finish?: Completing): readonly ResourceDefinition[] {
  const [kinds = '', types = ''] = text.split('\n\n');
  const lines = new Map(types.split('\n').map((line) => [line.split(' ', 1)[0] as string, line]));
  const known = new Map(Object.entries(KNOWN));
  const whole = new Set(kinds.split('\n').map((line) => line.slice(line.lastIndexOf(' ') + 1)));
  const typeOf = (name: string): Field['type'] =>
    getOrMake(known, name, () => toShape(lines.get(name) as string, { typeOf: partOf, finish }));
  // An object within another one says in JSON what it is, as a claim in the templates of a StatefulSet does.
  const partOf: Making['typeOf'] = (name) => (whole.has(name) ? named(typeOf(name) as Shape) : typeOf(name));
  return kinds.split('\n').map((line) => toDefinition(line, typeOf));
}

function toDefinition(line: string, typeOf: (name: string) => Field['type']): ResourceDefinition {
  const [apiVersion = '', kind = '', plural = '', traits = '', ...more] = line.split(' ');
  const [version = '', group = ''] = apiVersion.split('/').reverse();
  const type = more.pop() as string;
  const [shortNames, categories] = more.map((word) => word.split(',').filter((each) => each !== '-'));
  const scale = {
    specReplicasPath: '.spec.replicas',
    statusReplicasPath: '.status.replicas',
    labelSelectorPath: '.spec.selector',
  };
  return {
    ...{ group, version, plural, kind, shortNames, categories },
    ...{ namespaced: !traits.includes('c'), status: traits.includes('s') },
    ...(traits.includes('r') && { scale }),
    shape: { ...(typeOf(type) as Shape), countsGenerations: traits.includes('g') },
  };
}

const NAMED = shape('', { apiVersion: [0, 'string'], kind: [0, 'string'] }).fields;

const named = (of: Shape): Shape => ({ ...of, fields: [...NAMED, ...of.fields] });

interface Making {
  readonly typeOf: (name: string) => Field['type'];
  readonly finish: Completing | undefined;
}

function toShape(line: string, { typeOf, finish }: Making): Shape {
  const [name = '', ...words] = line.split(' ');
  const isAtomic = words[0] === '%';
  const rows = words.slice(isAtomic ? 1 : 0).map((word): [string, Row] => {
    const [, field = '', number, form = '', type = '', keys, patch, merge, preset] = FIELD.exec(word) ?? [];
    const more: JsonSchema = {
      ...(keys !== undefined && { 'x-kubernetes-list-type': keys ? 'map' : 'set' }),
      ...(keys && { 'x-kubernetes-list-map-keys': keys.split(',') }),
      ...(patch !== undefined && (patch ? byKey(patch) : SET)),
      ...(merge && { 'x-kubernetes-map-type': merge === '%' ? 'atomic' : 'granular' }),
      ...(preset !== undefined && { default: preset }),
    };
    // What has no name has its members in the object itself.
    return [field || `^${number}`, [Number(number), typeOf(type), form as '', '', more]];
  });
  const made = shape('', Object.fromEntries(rows));
  const presets = Object.fromEntries(
    made.fields.flatMap(({ name: member, more }) => (more?.default === undefined ? [] : [[member, more.default]])),
  );
  return { ...made, isAtomic, finish: finish?.(name, presets) };
}
