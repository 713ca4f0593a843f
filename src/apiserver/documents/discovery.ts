/**
 * The documents from which clients learn what a server serves, made once from its definitions:
 *
 *     /api, /apis                    the versions, the groups; or everything, if a client accepts an aggregated document
 *     /apis/<group>                  the versions of a group
 *     /api/v1, /apis/<group>/<v>     the resources of a version: names, verbs, whether they are in namespaces
 *     /version                       of the server
 *     /                              all paths
 *
 * All but the last two are also there in YAML, for a client that prefers it.
 *
 * Since 1.26, kubectl asks for the aggregated document; before, it asks for all the others. Upstream: `endpoints/discovery`.
 */
import { apiVersionOf } from '../../cache/resource-client.ts';
import { getOrMake } from '../../watch/errors.ts';
import { atOnce } from '../../watch/fair-queue.ts';
import { notAcceptable } from '../api-status.ts';
import type { ResourceDefinition } from '../definition.ts';
import { yamlOf } from '../http/yaml-writer.ts';
import { conversionOf, isJson, readAccept, VERBS, type Verb } from '../request/path.ts';
import type { Rows } from '../subresources.ts';

const FORM = /^v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?$/;
const STABILITY: readonly (string | undefined)[] = ['alpha', 'beta', undefined];

/**
 * Compares versions of an API, so that the preferred one comes first: `v2`, `v1`, `v2beta1`, `v1alpha1`, and then other words in
 * alphabetical order. Upstream: `version.CompareKubeAwareVersionStrings`, in reverse.
 */
export function compareApiVersions(one: string, other: string): number {
  const [a, b] = [FORM.exec(one), FORM.exec(other)];
  if (a === null || b === null) return Number(a === null) - Number(b === null) || (one < other ? -1 : Number(one > other));
  const stability = STABILITY.indexOf(b[2]) - STABILITY.indexOf(a[2]);
  return stability || Number(b[1]) - Number(a[1]) || Number(b[3] ?? 0) - Number(a[3] ?? 0);
}

/** The part of a definition that clients see. */
type Described = Pick<
  ResourceDefinition,
  'group' | 'version' | 'plural' | 'kind' | 'singular' | 'shortNames' | 'categories' | 'namespaced'
> &
  Pick<Rows, 'main' | 'subresources'> & { readonly definition?: { readonly terminating: boolean } | undefined };

/** The versions of one group, the best first, each with its resources in the order of their names. */
interface Group {
  readonly name: string;
  readonly versions: readonly { readonly version: string; readonly resources: readonly Described[] }[];
}

/** Sorts definitions into groups; groups are in the order of their names. */
function toGroups(definitions: readonly Described[]): Group[] {
  const groups = new Map<string, Described[]>();
  for (const each of definitions) {
    getOrMake(groups, each.group, () => []).push(each);
  }
  return [...groups.keys()].sort().map((name) => {
    const own = groups.get(name) as Described[];
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

/** The singular name: the kind in lower case, unless a definition says otherwise. */
function singularOf({ singular, kind }: Described): string {
  return singular ?? kind.toLowerCase();
}

/**
 * Sixty-four bits of a text as hexadecimal digits, which show whether a document has changed. It needs no builtin of Node. It is
 * not a cryptographic hash: two texts with the same digest can be found.
 */
export function digest(text: string): string {
  let [one, other] = [0x811c9dc5, 0x1000193];
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    one = Math.imul(one ^ unit, 0x01000193);
    other = Math.imul(other ^ (unit + at), 0x85ebca6b);
    other ^= other >>> 13;
  }
  return [one ^ (other >>> 16), other ^ (one >>> 15)]
    .map((half) => (half >>> 0).toString(16).padStart(8, '0'))
    .join('')
    .toUpperCase();
}

/** A document: its type, its bytes as text, and a tag that changes with it. */
export interface Document {
  readonly contentType: string;
  readonly body: string;
  /** In quotes, as in the header ETag. Absent: conditional requests are not supported. */
  readonly etag?: string | undefined;
}

/** Of the server: the release of Kubernetes whose protocol is served, and with which the tests compare. */
const VERSION = {
  ...{ major: '1', minor: '37', gitVersion: 'v1.37.2+watchmux', gitCommit: '', gitTreeState: '' },
  ...{ buildDate: '1970-01-01T00:00:00Z', goVersion: '', compiler: '', platform: '' },
};
/** Other paths of a server, for the list at `/`. */
const OTHER_PATHS = ['/healthz', '/livez', '/metrics', '/openapi/v2', '/openapi/v3', '/readyz', '/stats'] as const;
export const JSON_TYPE = 'application/json';
const YAML_TYPE = 'application/yaml';
const AGGREGATED = 'APIGroupDiscoveryList';
const AGGREGATED_VERSIONS: readonly string[] = ['v2', 'v2beta1'];

/** The documents of a server. See the top of this file. */
export class Discovery {
  readonly #plain: Map<string, Document> = new Map();
  /** By path and version. */
  readonly #aggregated: Map<string, Document> = new Map();
  readonly #yaml: Map<Document, Document> = new Map();

  constructor(definitions: readonly Described[]) {
    const groups = toGroups(definitions);
    const core = groups.filter(({ name }) => name === '');
    const named = groups.filter(({ name }) => name !== '');
    this.#add('/version', VERSION);
    this.#add('/api', {
      kind: 'APIVersions',
      versions: core.flatMap(({ versions }) => versions.map(({ version }) => version)),
      serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: '' }],
    });
    this.#add('/apis', { kind: 'APIGroupList', apiVersion: 'v1', groups: named.map(toGroup) });
    for (const group of named) this.#add(`/apis/${group.name}`, { kind: 'APIGroup', apiVersion: 'v1', ...toGroup(group) });
    for (const group of groups) {
      for (const { version, resources } of group.versions) {
        const name = apiVersionOf({ group: group.name, version });
        const list = { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: name, resources: resources.flatMap(toResources) };
        this.#add(group.name === '' ? `/api/${version}` : `/apis/${name}`, list);
      }
    }
    this.#add('/', { paths: [...this.#plain.keys(), ...OTHER_PATHS].sort() });
    for (const version of AGGREGATED_VERSIONS) {
      this.#aggregate('/api', version, core);
      this.#aggregate('/apis', version, named);
    }
  }

  /**
   * The document at a path, in the form that a client prefers; undefined if there is none at this path. A trailing slash is
   * ignored.
   *
   * @throws {WatchError} REFUSED with 406.
   */
  document(path: string, accept?: string): Document | undefined {
    const at = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
    const plain = this.#plain.get(at);
    if (plain === undefined || at === '/') return plain;
    // Upstream does not negotiate the form of the version.
    const hasForms = at !== '/version';
    for (const clause of readAccept(accept)) {
      const asYaml = hasForms && clause.type === YAML_TYPE;
      if (!asYaml && !isJson(clause)) continue;
      const conversion = hasForms ? conversionOf(clause) : undefined;
      const { kind, group, version } = conversion ?? {};
      const known = kind === AGGREGATED && group === 'apidiscovery.k8s.io';
      const found = conversion === undefined ? plain : known ? this.#aggregated.get(`${at} ${version}`) : undefined;
      if (found !== undefined) return asYaml ? getOrMake(this.#yaml, found, () => inYaml(found)) : found;
    }
    throw notAcceptable(hasForms ? `${JSON_TYPE}, ${YAML_TYPE}` : JSON_TYPE);
  }

  #add(path: string, body: object): void {
    this.#plain.set(path, { contentType: JSON_TYPE, body: `${JSON.stringify(body)}\n` });
  }

  #aggregate(path: string, version: string, groups: readonly Group[]): void {
    const items = groups.map(toAggregated);
    const list = { kind: AGGREGATED, apiVersion: `apidiscovery.k8s.io/${version}`, metadata: {}, items };
    const body = `${JSON.stringify(list)}\n`;
    const contentType = `${JSON_TYPE};g=apidiscovery.k8s.io;v=${version};as=${AGGREGATED}`;
    this.#aggregated.set(`${path} ${version}`, { contentType, body, etag: `"${digest(body)}"` });
  }
}

function inYaml({ contentType, body, etag }: Document): Document {
  const text = atOnce(yamlOf(JSON.parse(body)));
  return { contentType: contentType.replace(JSON_TYPE, YAML_TYPE), body: text, etag: etag && `"${digest(text)}"` };
}

function toGroup({ name, versions }: Group): object {
  const all = versions.map(({ version }) => ({ groupVersion: apiVersionOf({ group: name, version }), version }));
  return { name, versions: all, preferredVersion: all[0] };
}

function toResources(resource: Described): object[] {
  const { plural, kind, namespaced = true, subresources } = resource;
  const verbs = verbsOf(resource);
  const own = { name: plural, singularName: singularOf(resource), namespaced, kind, verbs, ...namesOf(resource) };
  const parts = subresources.map((part) => ({
    ...{ name: `${plural}/${part.name}`, singularName: '', namespaced },
    ...(part.kind?.group && { group: part.kind.group, version: part.kind.version }),
    ...{ kind: part.kind?.kind ?? kind, verbs: part.verbs },
  }));
  return [own, ...parts];
}

/**
 * While a definition is being deleted, only the verbs that read and delete are listed, although updates are still accepted.
 * Upstream: `DiscoveryController`.
 */
function verbsOf({ main, definition }: Described): readonly Verb[] {
  if (definition === undefined) return main.verbs;
  return definition.terminating ? OF_DEFINITIONS.filter((verb) => !OF_LIVING.test(verb)) : OF_DEFINITIONS;
}

/** In upstream's order, in which kubectl shows them. */
const [CREATE, ...OTHERS] = VERBS;
const OF_DEFINITIONS: readonly Verb[] = OTHERS.flatMap((verb) => (verb === 'update' ? [CREATE, verb] : [verb]));
const OF_LIVING = /^(create|patch|update)$/;

function namesOf({ shortNames = [], categories = [] }: Described): object {
  return { ...(shortNames.length > 0 && { shortNames }), ...(categories.length > 0 && { categories }) };
}

function toAggregated({ name, versions }: Group): object {
  return {
    metadata: name === '' ? {} : { name },
    versions: versions.map(({ version, resources }) => ({
      version,
      resources: resources.map((each) => toAggregatedResource(each)),
      freshness: 'Current',
    })),
  };
}

function toAggregatedResource(resource: Described): object {
  const { plural, namespaced = true, subresources } = resource;
  const toKind = ({ group, version, kind }: Pick<Described, 'group' | 'version' | 'kind'>): object => ({ group, version, kind });
  return {
    resource: plural,
    responseKind: toKind(resource),
    scope: namespaced ? 'Namespaced' : 'Cluster',
    singularResource: singularOf(resource),
    verbs: verbsOf(resource),
    ...namesOf(resource),
    ...(subresources.length > 0 && {
      subresources: subresources.map(({ name: subresource, kind = resource, verbs }) => {
        return { subresource, responseKind: toKind(kind), verbs };
      }),
    }),
  };
}
