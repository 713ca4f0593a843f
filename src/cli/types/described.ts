/**
 * Kinds and the shapes of their objects, read from definitions and from OpenAPI v3 documents, including a server's. Both become
 * the same, so a definition in a file and a server that serves it lead to the same types.
 */
import type { JsonSchema } from '../../apiserver/definition.ts';
import { compareApiVersions } from '../../apiserver/documents/discovery.ts';
import { KIND_EXTENSION } from '../../apiserver/documents/schemas.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import { apiVersionOf } from '../../cache/resource-client.ts';
import { equals } from '../../operator/equals.ts';
import { byCodeUnit } from '../../selectors/syntax.ts';
import { isRecord } from '../../watch/errors.ts';
import { quote } from '../usage.ts';
import type { WantedKind } from './types-args.ts';

/** What names a version of a kind. */
export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

export interface DescribedKind extends GroupVersionKind {
  /** Undefined if only the objects are known, and not where a server has them. */
  readonly plural: string | undefined;
  readonly namespaced: boolean;
  /** Whether a server stores such objects. Others, such as reviews, it only answers. */
  readonly kept: boolean;
  /** Further names by which people call it. */
  readonly aliases: readonly string[];
  readonly schema: JsonSchema;
  /** Its name among the components; undefined for a definition. */
  readonly component: string | undefined;
  /** Why not to use this version; undefined: it is not deprecated. */
  readonly deprecated: string | undefined;
  readonly source: string;
}

/** The schemas to which others refer by name. */
export type Components = Map<string, JsonSchema>;

export interface Described {
  readonly kinds: readonly DescribedKind[];
  readonly components: Components;
}

export const recordOf = (value: unknown): JsonSchema => (isRecord(value) ? value : {});

/** The kinds of a definition that are served. Throws an error that says what is expected. */
export function kindsOfCrd(crd: KubernetesObject, source: string): DescribedKind[] {
  const { group, names, scope, versions } = recordOf((crd as { spec?: unknown }).spec);
  const { kind, plural, singular, shortNames } = recordOf(names);
  const own = { group: named('spec.group', group), kind: named('spec.names.kind', kind) };
  const aliases = [singular, shortNames].flat().filter((each) => typeof each === 'string');
  if (!Array.isArray(versions)) throw expected('spec.versions', 'a list', versions);
  return versions.flatMap((each: unknown, at): DescribedKind[] => {
    const { name, served, schema, deprecated, deprecationWarning } = recordOf(each);
    const version = named(`spec.versions[${at}].name`, name);
    if (served === false) return [];
    const warning = typeof deprecationWarning === 'string' ? deprecationWarning : `${group}/${version} ${kind} is deprecated`;
    return [
      {
        ...{ ...own, version, aliases, source, component: undefined, kept: true },
        plural: named('spec.names.plural', plural),
        namespaced: scope !== 'Cluster',
        schema: recordOf(recordOf(schema).openAPIV3Schema),
        deprecated: deprecated === true ? warning : undefined,
      },
    ];
  });
}

function named(path: string, value: unknown): string {
  if (typeof value === 'string' && value !== '') return value;
  throw expected(path, 'a text', value);
}

const expected = (path: string, what: string, value: unknown): Error =>
  new Error(`${path}: expected ${what}, not ${value === undefined ? 'nothing' : quote(JSON.stringify(value))}`);

/** Whether a value is an OpenAPI v3 document. Throws for another version of it. */
export function isOpenApi(value: unknown): value is JsonSchema {
  if (!isRecord(value)) return false;
  if (value.swagger !== undefined)
    throw new Error(`swagger: expected an OpenAPI v3 document, not ${quote(String(value.swagger))}`);
  if (typeof value.openapi !== 'string') return false;
  if (value.openapi.startsWith('3.')) return true;
  throw new Error(`openapi: expected 3.0 or 3.1, not ${quote(value.openapi)}`);
}

const idOf = ({ group, version, kind }: GroupVersionKind): string => `${group}/${version}/${kind}`;

/** The path of a collection: its group, version, whether it is that of one namespace, and the plural. */
const COLLECTION = /^\/(?:api|apis\/[^/]+)\/[^/]+\/(namespaces\/\{namespace\}\/)?([^/{}]+)$/;

/** The kinds of a document, and its components. */
export function kindsOfOpenApi(document: JsonSchema, source: string): Described {
  const components: Components = new Map();
  const kinds = new Map<string, DescribedKind>();
  for (const [name, value] of Object.entries(recordOf(recordOf(document.components).schemas))) {
    const schema = recordOf(value);
    components.set(name, schema);
    const [only, ...others] = kindsIn(schema[KIND_EXTENSION]);
    // Options and lists have several kinds, or items.
    if (only === undefined || others.length > 0 || isRecord(recordOf(schema.properties).items)) continue;
    const rest = { plural: undefined, namespaced: true, kept: true, aliases: [], deprecated: undefined, source };
    kinds.set(idOf(only), { ...only, ...rest, schema, component: name });
  }
  const paths = recordOf(document.paths);
  const places = placesOf(paths);
  const found = [...kinds].map(([id, kind]) => ({ ...kind, ...places.get(id) }));
  // In a document with paths, a kind without a path is part of another, such as the eviction of a pod.
  return { kinds: Object.keys(paths).length > 0 ? found.filter(({ plural }) => plural !== undefined) : found, components };
}

type Place = Pick<DescribedKind, 'namespaced' | 'kept'> & { readonly plural: string };

/** Where the kinds of a document are, by their ids. */
function placesOf(paths: JsonSchema): Map<string, Place> {
  const places = new Map<string, Place>();
  for (const [path, item] of Object.entries(paths).sort(([one], [other]) => byCodeUnit(one, other))) {
    const [, namespace, plural] = COLLECTION.exec(path) ?? [];
    if (plural === undefined) continue;
    const { get, post } = recordOf(item);
    for (const operation of [recordOf(get), recordOf(post)]) {
      const [kind] = kindsIn(operation[KIND_EXTENSION]);
      if (kind === undefined) continue;
      const before = places.get(idOf(kind));
      const kept = before?.kept === true || operation['x-kubernetes-action'] === 'list';
      places.set(idOf(kind), { plural, kept, namespaced: before?.namespaced === true || namespace !== undefined });
    }
  }
  return places;
}

function kindsIn(extension: unknown): GroupVersionKind[] {
  return [extension ?? []].flat().flatMap((each): GroupVersionKind[] => {
    const { group = '', version, kind } = recordOf(each);
    if (typeof group !== 'string' || typeof version !== 'string' || typeof kind !== 'string') return [];
    return [{ group, version, kind }];
  });
}

/** Merges what was read in several places. Duplicates must be the same. */
export function together(parts: readonly Described[]): Described {
  const components: Components = new Map();
  const kinds = new Map<string, DescribedKind>();
  for (const part of parts) {
    for (const [name, schema] of part.components) if (!components.has(name)) components.set(name, schema);
    for (const kind of part.kinds) {
      const before = kinds.get(idOf(kind));
      if (before !== undefined && !equals(before.schema, kind.schema)) {
        throw new Error(
          `${kind.kind} of ${apiVersionOf(kind)} is in ${before.source} and, with other content, in ${kind.source}`,
        );
      }
      if (before === undefined) kinds.set(idOf(kind), kind);
    }
  }
  return { kinds: [...kinds.values()].sort(byGroupAndKind), components };
}

/** The core group first; the best version of a kind first. */
function byGroupAndKind(one: DescribedKind, other: DescribedKind): number {
  return byCodeUnit(one.group, other.group) || byCodeUnit(one.kind, other.kind) || compareApiVersions(one.version, other.version);
}

/** Returns the kinds that are asked for, in order. Calls `missed` with those that do not exist. */
export function select(
  kinds: readonly DescribedKind[],
  { wanted, missed }: { readonly wanted: readonly WantedKind[]; missed(wanted: WantedKind): never },
): readonly DescribedKind[] {
  if (wanted.length === 0) return kinds;
  const chosen = new Set<DescribedKind>();
  for (const each of wanted) {
    const named = kinds.filter(({ kind, plural, aliases }) =>
      [kind, plural ?? '', ...aliases].some((name) => name.toLowerCase() === each.name),
    );
    const group = each.group ?? named[0]?.group;
    const fitting = named.filter((kind) => kind.group === group && (each.version ?? kind.version) === kind.version);
    if (fitting.length === 0) missed(each);
    for (const kind of fitting) chosen.add(kind);
  }
  return kinds.filter((kind) => chosen.has(kind));
}
