// The name of a resource, and its paths.
import { type ResourceType, segment } from '../cache/resource-client.ts';
import { invalid } from '../watch/errors.ts';

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
