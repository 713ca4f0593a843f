/** A resource's definition with all defaults filled in. */
import type { ResourceDefinition } from '../definition.ts';
import type { Rows } from '../subresources.ts';
import { compareApiVersions } from './versions.ts';

/** The part of a definition that clients see. */
export type Described = Pick<
  ResourceDefinition,
  'group' | 'version' | 'plural' | 'kind' | 'singular' | 'shortNames' | 'categories' | 'namespaced'
> &
  Pick<Rows, 'main' | 'subresources'>;

/** The versions of one group, the best first, each with its resources in the order of their names. */
export interface Group {
  readonly name: string;
  readonly versions: readonly { readonly version: string; readonly resources: readonly Described[] }[];
}

/** Sorts definitions into groups; groups are in the order of their names. */
export function toGroups(definitions: readonly Described[]): Group[] {
  const names = [...new Set(definitions.map(({ group }) => group))].sort();
  return names.map((name) => {
    const own = definitions.filter(({ group }) => group === name);
    const versions = [...new Set(own.map(({ version }) => version))].sort(compareApiVersions);
    return {
      name,
      versions: versions.map((version) => ({
        version,
        resources: own.filter((each) => each.version === version).sort((a, b) => (a.plural < b.plural ? -1 : 1)),
      })),
    };
  });
}

/** Such as `v1` or `example.com/v1`. Upstream: `schema.GroupVersion`. */
export function groupVersion(group: string, version: string): string {
  return group === '' ? version : `${group}/${version}`;
}

/** The singular name: the kind in lower case, unless a definition says otherwise. */
export function singularOf({ singular, kind }: Described): string {
  return singular ?? kind.toLowerCase();
}
