/**
 * How an operator names kinds, and finds their names on a server.
 *
 *     'deployments.apps/v1'                        as for `Cluster.resource`
 *     { group, version, plural, kind, namespaced } a `ResourceType`: no question is needed
 *     { apiVersion, kind }                         as in an object
 *     WEBSITES                                     any of these with the type of its objects: `kind<Website>(...)`
 */
import type { KubernetesObject } from '../cache/object.ts';
import {
  apiVersionOf,
  type GroupVersionKind,
  nameOf,
  type ResourceClient,
  type ResourceSource,
  type ResourceType,
  type Typed,
} from '../cache/resource-client.ts';
import { checkedType } from '../kubernetes/resource.ts';
import { invalid, isRecord } from '../watch/errors.ts';

export type { GroupVersionKind, ResourceSource };

/** A kind of objects `T`, from {@link kind} or `npx watchmux types`. */
export type Kind<T = KubernetesObject> = (ResourceType | GroupVersionKind) & Typed<T>;

/** Anything that names a kind. */
export type KindName<T = KubernetesObject> = string | Kind<T>;

/**
 * Gives a kind the type of its objects.
 *
 *     const WEBSITES = kind<Website>('websites.example.com/v1');
 *
 * A text is `PLURAL.GROUP/VERSION`, `PLURAL/v1`, or one word. For a word, an operator asks the server, so it may be any of the
 * server's names for a kind, such as `deploy`; a `Cluster` or an `ApiServer` takes it as a plural of the core group.
 */
export function kind<T extends object = KubernetesObject>(type: GroupVersionKind): GroupVersionKind & Kind<T>;
export function kind<T extends object = KubernetesObject>(type: FullType): FullType & Kind<T>;
export function kind<T extends object = KubernetesObject>(type: string | ResourceType): ResourceType & Kind<T>;
export function kind<T extends object = KubernetesObject>(type: string | ResourceType | GroupVersionKind): Kind<T> {
  if (typeof type !== 'string') return type as Kind<T>;
  const named = checkedType(type);
  if (!type.includes('/')) WORDS.add(named);
  return named as Kind<T>;
}

/** Types made from one word, which may be more to a server than a plural of the core group: `deploy`. */
const WORDS: WeakSet<object> = new WeakSet();

/** A complete {@link ResourceType}. */
export type FullType = { readonly [Name in keyof ResourceType]-?: NonNullable<ResourceType[Name]> };

/** The type of a kind, if it is known without asking the server; otherwise undefined. */
export function fullType(name: KindName<object>): FullType | undefined {
  if (!isType(name)) return undefined;
  const { group = '', version, plural, kind, namespaced } = checkedType(name);
  return kind === undefined || namespaced === undefined ? undefined : { group, version, plural, kind, namespaced };
}

function isType(name: unknown): name is ResourceType {
  return isRecord(name) && 'plural' in name;
}

/** Whether it names a kind itself, rather than being a source with a `kind`. */
export function isKindName(given: unknown): given is KindName {
  return typeof given !== 'object' || !given || 'plural' in given || 'apiVersion' in given;
}

/** What to ask a server for. Throws INVALID_ARGUMENT for anything that names no kind. */
export function queryOf(name: KindName<object>): string | GroupVersionKind {
  if (typeof name === 'string') return name;
  if (isType(name)) return WORDS.has(name) ? name.plural : nameOf(checkedType(name));
  const { apiVersion, kind }: Partial<GroupVersionKind> = isRecord(name) ? name : {};
  if (typeof apiVersion === 'string' && typeof kind === 'string') return { apiVersion, kind };
  throw invalid('kind', name, '"PLURAL.GROUP/VERSION", a ResourceType, or { apiVersion, kind }');
}

/** A kind's name in one form, whatever form it is given in: `deployments.apps/v1`, or `apps/v1 Deployment`. */
export function textOf(name: KindName<object>): string {
  const query = queryOf(name);
  if (typeof query === 'object') return `${query.apiVersion} ${query.kind}`;
  // Only the server understands a name without a version.
  return /\..*\/|^[^.]*$/.test(query) ? nameOf(checkedType(query)) : query;
}

/** The `apiVersion` and the `kind` of the objects of a type. */
export function toKind(type: Omit<FullType, 'plural' | 'namespaced'>): GroupVersionKind {
  return { apiVersion: apiVersionOf(type), kind: type.kind };
}

/** The default name of a controller of a kind: `websites`, or `website` if it is named by `{ apiVersion, kind }`. */
export function controllerNameOf(name: KindName): string {
  return textOf(name)
    .replace(/^.* |[./].*$/g, '')
    .toLowerCase();
}

/** The usual plural of a kind, as an English word in lower case. */
export function pluralOf(kind: string): string {
  const word = kind.toLowerCase();
  if (word === 'endpoints') return word;
  if (/[^aeiou]y$/.test(word)) return `${word.slice(0, -1)}ies`;
  return /(?:s|x|z|ch|sh)$/.test(word) ? `${word}es` : `${word}s`;
}

/** The type of a server's resource. That of an `ApiServer` throws once the kind is gone. */
export function typeOf({ type }: ResourceClient): FullType {
  const { group = '', version, plural, kind = '', namespaced = false } = type;
  return { group, version, plural, kind, namespaced };
}
