// The name of a resource, and its paths.
import { invalid } from '../watch/errors.ts';

/** A kind of object that a cluster serves. */
export interface ResourceType {
  /** Such as `apps`. Absent or empty: the core group, of pods and config maps. */
  readonly group?: string | undefined;
  /** Such as `v1`. */
  readonly version: string;
  /** As in a URL: lower case and plural. */
  readonly plural: string;
  /** Such as `Deployment`. Objects that are written without a kind get it. */
  readonly kind?: string | undefined;
  /** Whether objects are in namespaces. If it is set, requests that lack a namespace fail before they are sent. */
  readonly namespaced?: boolean | undefined;
}

/**
 * Reads `PLURAL.GROUP/VERSION`, such as `deployments.apps/v1`. In the core group it is `PLURAL/VERSION`, such as `pods/v1`, or
 * only `pods`. This is the form in which `watchmux/apiserver` names what it serves; a group and a version are always next to each
 * other, as in `apiVersion`.
 */
function toResourceType(text: string): ResourceType {
  const [, plural = '', group, version] = /^([^./]+)(?:\.([^/]+))?(?:\/([^/]+))?$/.exec(text) ?? [];
  if (!plural || (group && !version)) throw invalid('resource', text, '"PLURAL.GROUP/VERSION", "PLURAL/v1", or "PLURAL"');
  return { plural, version: version ?? 'v1', ...(group && { group }) };
}

/** Checks a resource's name, of either form. */
export function checkedType(type: string | ResourceType): ResourceType {
  if (typeof type === 'string') return checkedType(toResourceType(type));
  if (!type || typeof type !== 'object') throw invalid('resource', type, 'a string or an object');
  if (type.group) segment('resource.group', type.group);
  segment('resource.version', type.version);
  segment('resource.plural', type.plural);
  return type;
}

/** The `apiVersion` of the objects of a resource. */
export function apiVersionOf({ group, version }: ResourceType): string {
  return group ? `${group}/${version}` : version;
}

/** The path of a collection, relative to that of the server. */
export function toPath({ group, version, plural }: ResourceType, namespace: string | undefined): string {
  const within = namespace === undefined ? '' : `namespaces/${segment('namespace', namespace)}/`;
  return `${group ? `apis/${group}` : 'api'}/${version}/${within}${plural}`;
}

/** Returns a text as one segment of a path. A name like `..` would lead to another collection. */
export function segment(name: string, text: string): string {
  if (typeof text !== 'string' || !/^[^/%?#\s\\]+$/.test(text) || text === '.' || text === '..') {
    throw invalid(name, text, 'a non-empty name without "/", "%" or white space');
  }
  return encodeURIComponent(text);
}
