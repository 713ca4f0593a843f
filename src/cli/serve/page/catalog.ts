/** What a server has, as its discovery says. It comes over the wire: anything unexpected is left out. */

/** A kind of objects. */
export interface PageResource {
  /** `orders.example.com/v1`, or `configmaps/v1`. */
  readonly id: string;
  /** `orders.example.com`, or `configmaps`: all versions of it are one collection. */
  readonly name: string;
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

/** Asks for all groups, versions and resources at once. */
export const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
/** Where these documents are: the group without a name, and all others. */
export const DISCOVERY_PATHS: readonly string[] = ['/api', '/apis'];

type Wire = Readonly<Record<string, unknown>>;

/** Reads the documents. Custom kinds come first, because they are what the server is for. */
export function toResources(documents: readonly unknown[]): readonly PageResource[] {
  const all = documents.flatMap((document) =>
    list(document, 'items').flatMap((group) =>
      list(group, 'versions').flatMap((version) => list(version, 'resources').flatMap(toResource)),
    ),
  );
  return all.sort((a, b) => Number(a.group === '') - Number(b.group === '') || compare(a.id, b.id));
}

function toResource(wire: Wire): readonly PageResource[] {
  const { resource, scope, verbs, responseKind } = wire;
  const { group = '', version, kind } = (responseKind ?? {}) as Wire;
  if (![resource, group, version, kind].every((each) => typeof each === 'string')) return [];
  // Resources that cannot be followed are not shown.
  if (!Array.isArray(verbs) || !['list', 'watch'].every((verb) => verbs.includes(verb))) return [];
  const name = group === '' ? resource : `${resource}.${group}`;
  const named = { id: `${name}/${version}`, name, group, version, plural: resource, kind } as Omit<PageResource, 'namespaced'>;
  return [{ ...named, namespaced: scope === 'Namespaced' }];
}

/** The path of a collection; of one namespace, or of all if that is empty. */
export function collectionPath({ group, version, plural, namespaced }: PageResource, namespace: string = ''): string {
  const root = group === '' ? ['api', version] : ['apis', group, version];
  const within = namespaced && namespace !== '' ? ['namespaces', namespace] : [];
  return `/${[...root, ...within, plural].map(encodeURIComponent).join('/')}`;
}

function list(value: unknown, name: string): readonly Wire[] {
  const found = (value as Wire | null | undefined)?.[name];
  return Array.isArray(found) ? found.filter((each) => typeof each === 'object' && each !== null) : [];
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
