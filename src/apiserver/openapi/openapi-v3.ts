/**
 * OpenAPI v3 as kubectl reads it: an index at `/openapi/v3`, whose entries lead to one document for each version of a group. A
 * document has only what clients look for: the paths with their kinds, the query parameters of writes, and the schemas.
 */
import { digest } from '../discovery/digest.ts';
import type { Document } from '../discovery/discovery.ts';
import { groupVersion } from '../discovery/resources.ts';
import {
  componentName,
  type Documented,
  type DocumentedKind,
  KIND_EXTENSION,
  listSchemaOf,
  ofList,
  SHARED,
  schemaOf,
} from './schemas.ts';

const INDEX = '/openapi/v3';

/** The documents by path. */
export function openApiV3(definitions: readonly Documented[], version: string): Map<string, Document> {
  const documents = new Map<string, Document>();
  const paths: Record<string, { serverRelativeURL: string }> = {};
  for (const name of new Set(definitions.map((each) => pathOf(each)))) {
    const own = definitions.filter((each) => pathOf(each) === name);
    const body = JSON.stringify(toDocument(own, version));
    const hash = digest(body);
    paths[name] = { serverRelativeURL: `${INDEX}/${name}?hash=${hash}` };
    documents.set(`${INDEX}/${name}`, { contentType: 'application/json', body, etag: `"${hash}"` });
  }
  const body = JSON.stringify({ paths });
  documents.set(INDEX, { contentType: 'application/json', body, etag: `"${digest(body)}"` });
  return documents;
}

/** Such as `api/v1` or `apis/example.com/v1`. */
function pathOf({ group, version }: Documented): string {
  return `${group === '' ? 'api' : 'apis'}/${groupVersion(group, version)}`;
}

function toDocument(definitions: readonly Documented[], version: string): object {
  const paths = Object.assign({}, ...definitions.map(toPaths)) as object;
  const schemas = definitions.flatMap((each) => [
    ...[each, ...each.subresources.flatMap(({ kind = [] }) => kind)].map(
      (kind) => [componentName(kind), schemaOf(kind)] as const,
    ),
    [componentName(ofList(each)), listSchemaOf(each)] as const,
  ]);
  return {
    openapi: '3.0.0',
    info: { title: 'watchmux', version },
    paths,
    components: { schemas: { ...SHARED, ...Object.fromEntries(schemas) } },
  };
}

const query = (name: string, description: string): object => ({
  name,
  in: 'query',
  description,
  schema: { type: 'string', uniqueItems: true },
});

/** With `fieldValidation`, so that kubectl uses it, and does not look for unknown fields itself. */
const OF_WRITES: readonly object[] = [
  query('dryRun', 'All: do everything except the write itself.'),
  query('fieldManager', 'The name of the author of this change.'),
  query('fieldValidation', 'What to do about unknown or duplicate fields: Ignore, Warn (the default) or Strict.'),
];

function toPaths(definition: Documented): object {
  const { group, version, plural, kind, namespaced = true, subresources } = definition;
  const bodyOf = (shown: DocumentedKind): object => ({
    content: { 'application/json': { schema: { $ref: `#/components/schemas/${componentName(shown)}` } } },
  });
  const many = bodyOf(ofList(definition));
  const operation = (action: string, parameters?: readonly object[], seen: DocumentedKind = definition): object => ({
    'x-kubernetes-action': action,
    [KIND_EXTENSION]: { group, kind, version },
    ...(parameters && { parameters }),
    responses: { 200: { description: 'OK', ...(['list', 'deletecollection'].includes(action) ? many : bodyOf(seen)) } },
  });
  const root = `/${pathOf(definition)}/${namespaced ? 'namespaces/{namespace}/' : ''}${plural}`;
  const ofOne = (seen?: DocumentedKind): object => ({
    get: operation('get', undefined, seen),
    put: operation('put', OF_WRITES, seen),
    patch: operation('patch', OF_WRITES, seen),
  });
  return {
    [root]: { get: operation('list'), post: operation('post', OF_WRITES), delete: operation('deletecollection') },
    [`${root}/{name}`]: { ...ofOne(), delete: operation('delete') },
    ...Object.fromEntries(subresources.map(({ name, kind: seen }) => [`${root}/{name}/${name}`, ofOne(seen)])),
    ...(namespaced && { [`/${pathOf(definition)}/${plural}`]: { get: operation('list') } }),
  };
}
