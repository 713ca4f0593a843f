/** The kinds that a test's server has: those that the test passes, and those that the operator names. */
import { EVENTS } from '../../apiserver/builtin.ts';
import type { ResourceDefinition, SchemaDefinition } from '../../apiserver/definition.ts';
import { load } from '../../apiserver/kinds/kubernetes.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import { nameOf } from '../../cache/resource-client.ts';
import { controllerNameOf, fullType, isKindName, type KindName, textOf, toKind } from '../../operator/kinds.ts';
import type { OperatorControllerOptions } from '../../operator/operator-options.ts';
import { distance, invalid, isRecord } from '../../watch/errors.ts';

/**
 * A kind that a test's server should have: a definition, of the server or of a cluster, or the name of one of Kubernetes'
 * kinds.
 */
export type TestResource = ResourceDefinition<never> | SchemaDefinition | KubernetesObject | KindName;

type Definition = ResourceDefinition | SchemaDefinition;

/** Kinds of Kubernetes that `BUILT_IN_KINDS` does not have: without a schema, and so without a selector that is an object. */
export async function kubernetesDefinitions(): Promise<readonly Definition[]> {
  return (await load()).map(({ shape: _, scale, ...names }) => ({
    ...names,
    ...(scale && { scale: { specReplicasPath: scale.specReplicasPath, statusReplicasPath: scale.statusReplicasPath } }),
  }));
}

function isNamed({ group, version, plural, kind }: Definition, name: KindName): boolean {
  if (typeof name !== 'string' && !('plural' in name))
    return name.apiVersion === toKind({ group, version, kind }).apiVersion && name.kind === kind;
  const text = typeof name === 'string' ? name : nameOf(name);
  return text === nameOf({ group, version, plural }) || text === (group ? `${plural}.${group}` : plural);
}

/** Whether a name means a kind, as kubectl and `Cluster.kind` understand it: its singular, kind and short names count, too. */
function isCalled(definition: Definition, name: KindName): boolean {
  if (typeof name !== 'string' && !('plural' in name)) return false;
  const text = typeof name === 'string' ? name : nameOf(name);
  const [, word = '', inGroup = '', inVersion = ''] = /^([^./]+)(?:\.([^/]+))?(?:\/([^/]+))?$/.exec(text) ?? [];
  const { group = '', version, plural, kind, singular = kind, shortNames = [] } = definition;
  const isWithin = inVersion ? inGroup === group && inVersion === version : !inGroup || inGroup === group;
  const names: readonly unknown[] = [plural, singular, kind, ...(Array.isArray(shortNames) ? shortNames : [])];
  return isWithin && names.some((each) => typeof each === 'string' && each.toLowerCase() === word.toLowerCase());
}

/** A kind, and where it is named. */
export interface Named {
  readonly name: KindName;
  readonly place: string;
}

/** The kinds that controllers name. */
export function kindsOf(controllers: readonly OperatorControllerOptions[]): readonly Named[] {
  return controllers.flatMap(({ name: own, for: reconciled, owns = [], watches = [], reads = [] }) => {
    const what = `controller ${own ?? controllerNameOf(kindOf(reconciled))}`;
    const named = (place: string, list: readonly unknown[]): readonly Named[] =>
      list.map((each) => ({ name: kindOf(each), place: `${what}, ${place}` }));
    return [...named('for', [reconciled]), ...named('owns', owns), ...named('watches', watches), ...named('reads', reads)];
  });
}

const kindOf = (each: unknown): KindName => (isKindName(each) ? each : (each as { readonly kind: KindName }).kind);

interface CustomNames {
  readonly plural?: string;
  readonly kind?: string;
  readonly singular?: string;
  readonly shortNames?: readonly string[];
}

interface CustomKinds extends KubernetesObject {
  readonly spec: {
    readonly group?: string;
    readonly names?: CustomNames;
    readonly versions?: readonly { readonly name?: string }[];
  };
}

const isCrd = (value: object): value is CustomKinds => (value as KubernetesObject).kind === 'CustomResourceDefinition';

const isDefinition = (value: object): value is Definition => 'plural' in value && 'kind' in value;

/**
 * What the server needs to serve all of them. A kind of which only the type is known, as from `kind({ group, version, ... })`,
 * is served without a schema.
 *
 * @throws {WatchError} INVALID_ARGUMENT for anything that defines no kind, and for an unknown kind, saying where it is named.
 */
export function servedKinds(
  resources: readonly TestResource[],
  { names, known }: { readonly names: readonly Named[]; readonly known: readonly Definition[] },
): {
  readonly definitions: readonly Definition[];
  readonly crds: readonly KubernetesObject[];
} {
  const others: Named[] = [];
  const [crds, definitions]: [CustomKinds[], Definition[]] = [[], [...EVENTS]];
  for (const [at, each] of resources.entries()) {
    const given: unknown = each;
    const place = `resources[${at}]`;
    if (typeof given === 'object' && given && isCrd(given)) {
      if (!isRecord(given.spec)) throw invalid(`${place}.spec`, given.spec, 'that of a CustomResourceDefinition');
      crds.push(given);
    } else if (typeof given === 'object' && given && isDefinition(given)) definitions.push(given);
    else if (typeof given === 'string' || (typeof given === 'object' && given && isKindName(given))) {
      others.push({ name: given, place });
    } else
      throw invalid(place, given, 'a CustomResourceDefinition, a definition of an ApiServer, or a name such as "secrets/v1"');
  }
  const custom = crds.flatMap(toTypes);
  for (const { name, place } of [...others, ...names]) {
    const own = [...definitions, ...custom];
    if (own.some((each) => isNamed(each, name) || isCalled(each, name))) continue;
    const named = known.filter((each) => isNamed(each, name));
    const found = named.length > 0 ? named : known.filter((each) => isCalled(each, name));
    const type = fullType(name);
    const versions = type ? own.filter(({ group = '', plural }) => group === type.group && plural === type.plural) : [];
    if (found.length > 0) definitions.push(...found);
    else if (type && versions.length === 0) definitions.push({ ...type, status: true } as Definition);
    else throw unknown({ name, place }, versions.length > 0 ? versions : [...own, ...known]);
  }
  return { definitions, crds };
}

const toTypes = ({ spec: { group = '', names = {}, versions = [] } }: CustomKinds): readonly Definition[] =>
  versions.map(({ name: version = '' }) => ({ plural: '', kind: '', ...names, group, version }) as Definition);

function unknown({ name, place }: Named, all: readonly Definition[]): Error {
  const text = typeof name === 'string' ? name : textOf(name);
  const texts = all.map((each) => (text.includes(' ') ? textOf(toKind({ ...each, group: each.group ?? '' })) : nameOf(each)));
  const nearest = texts.reduce((one, other) => (distance(text, other) < distance(text, one) ? other : one));
  const isNear = distance(text, nearest) <= text.length / 3;
  const advice = isNear ? `: did you mean ${nearest}?` : '';
  return invalid(
    place,
    text,
    `a kind of Kubernetes, or one that \`resources\` define${advice || ' (such as its CustomResourceDefinition)'}`,
  );
}
