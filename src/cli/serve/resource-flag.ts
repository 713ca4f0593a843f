import { quote, UsageError } from '../usage.ts';

/** A kind of object, as `--resource` names it. */
export interface ServedResource {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

/** The form of the option, for messages. */
export const RESOURCE_FORM = 'PLURAL.GROUP/VERSION=Kind[:cluster]';

const EXAMPLE = 'orders.example.com/v1=Order';
const LABEL = /^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/;
const KIND = /^[A-Za-z][A-Za-z0-9]{0,62}$/;
const MAX_GROUP_CHARS = 253;

/** Reads `orders.example.com/v1=Order` or `zones.example.com/v1=Zone:cluster`. */
export function toServedResource(value: string): ServedResource {
  const [, plural = '', group = '', version = '', kind = '', scope] =
    /^([^.=]+)\.([^/=]+)\/([^/=]+)=([^:]+)(?::(.*))?$/.exec(value) ?? [];
  if (plural === '') throw wrongResource(value, `the form is ${RESOURCE_FORM}`);
  if (!LABEL.test(plural) || plural !== plural.toLowerCase())
    throw wrongResource(value, `the plural ${quote(plural)} is not in lower-case letters`);
  if (group.length > MAX_GROUP_CHARS || !group.split('.').every((part) => LABEL.test(part))) {
    throw wrongResource(value, `the group ${quote(group)} is not a domain name in lower case`);
  }
  if (!LABEL.test(version)) throw wrongResource(value, `the version ${quote(version)} is not like v1 or v1beta1`);
  if (!KIND.test(kind)) throw wrongResource(value, `the kind ${quote(kind)} is not a word`);
  if (scope !== undefined && scope !== 'cluster')
    throw wrongResource(value, `after the kind only :cluster may follow, not ${quote(`:${scope}`)}`);
  return { group, version, plural, kind, namespaced: scope === undefined };
}

/** Reads all of them. No two may have the same name, and all versions of a resource must have the same kind. */
export function toServedResources(values: readonly string[]): ServedResource[] {
  const resources = values.map(toServedResource);
  for (const [at, { group, version, plural, kind, namespaced }] of resources.entries()) {
    const value = values[at] as string;
    const before = resources.slice(0, at).filter((each) => each.group === group);
    if (before.some((each) => each.version === version && (each.plural === plural || each.kind === kind))) {
      throw wrongResource(value, 'another --resource has this name or this kind');
    }
    if (before.some((each) => each.plural === plural && (each.kind !== kind || each.namespaced !== namespaced))) {
      throw wrongResource(value, 'another version of it has another kind, or :cluster');
    }
  }
  return resources;
}

function wrongResource(value: string, why: string): UsageError {
  return new UsageError(`--resource ${quote(value)}: ${why}; for example --resource ${EXAMPLE}`, 'serve');
}
