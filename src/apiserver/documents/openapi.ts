/** What a server publishes about itself over HTTP: discovery and OpenAPI. */
import type { JsonSchema } from '../definition.ts';
import type { WholeAnswer, WireRequest } from '../http/wire.ts';
import type { ResourceInfo } from '../resource-info.ts';
import { Discovery, type DiscoveryOptions, type Document, digest, groupVersion } from './discovery.ts';
import {
  componentName,
  type Documented,
  type DocumentedKind,
  KIND_EXTENSION,
  listSchemaOf,
  OPEN,
  ofList,
  SHARED,
  schemaOf,
} from './schemas.ts';

/**
 * OpenAPI v3 as kubectl reads it: an index at `/openapi/v3`, whose entries lead to one document for each version of a group. A
 * document has only what clients look for: the paths with their kinds, the query parameters of writes, and the schemas.
 */

const INDEX = '/openapi/v3';

/** The documents by path. */
function openApiV3(definitions: readonly Documented[], version: string): Map<string, Document> {
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

/** The part of protobuf's encoding that an OpenAPI v2 document needs. Upstream: gnostic's `OpenAPIv2.proto`. */
const utf8 = new TextEncoder();
const LENGTH_DELIMITED = 2;

/** Writes fields one after the other. */
export class Message {
  readonly #bytes: number[] = [];

  /** A text. Undefined: nothing is written. */
  text(field: number, value: string | undefined): this {
    return value === undefined || value === '' ? this : this.bytes(field, utf8.encode(value));
  }

  /** A message within this one. */
  message(field: number, value: Message): this {
    return this.bytes(field, value.#bytes);
  }

  bytes(field: number, value: ArrayLike<number>): this {
    this.#number(field * 8 + LENGTH_DELIMITED);
    this.#number(value.length);
    // Not by spreading: a long array has more elements than a call may have arguments.
    for (let at = 0; at < value.length; at++) this.#bytes.push(value[at] as number);
    return this;
  }

  toBytes(): Uint8Array {
    return Uint8Array.from(this.#bytes);
  }

  /** A number in groups of seven bits, the lowest first. */
  #number(value: number): void {
    let rest = value;
    for (; rest > 127; rest = Math.floor(rest / 128)) this.#bytes.push((rest % 128) + 128);
    this.#bytes.push(rest);
  }
}

/**
 * OpenAPI v2, for kubectl before 1.24, which reads nothing else, only in protobuf, and creates no object before it has read it.
 * The document has the schemas, by which that kubectl checks what it sends and explains kinds. Of the paths it has only the PATCH
 * of each kind, where kubectl looks for dry runs; kubectl up to 1.26 also looks for `fieldValidation` there.
 *
 * A kind without a schema is an object of anything, so that no field of it is unknown.
 */

/** The type of the protobuf document, as in answers. */
export const PROTOBUF_TYPE = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

/** Whether a client that sends this Accept reads protobuf. The `@` is not allowed there, but old clients send it. */
function takesProtobuf(accept: string | undefined): boolean {
  return accept !== undefined && /proto-openapi\.spec\.v2[.@]v1\.0\+protobuf/.test(accept);
}

/** The document as JSON, and as protobuf. */
interface OpenApiV2 {
  readonly json: string;
  readonly protobuf: Uint8Array;
  readonly etag: string;
}

/** Makes the document. */
export function openApiV2(definitions: readonly Documented[], version: string): OpenApiV2 {
  const own = definitions.map((each) => [componentName(each), schemaOf(each)] as const);
  const all = { ...SHARED, ...Object.fromEntries(own) };
  const schemas = Object.fromEntries(Object.entries(all).map(([name, schema]) => [name, toV2(schema)]));
  const info = { title: 'watchmux', version };
  const paths = Object.fromEntries(definitions.map((each) => [objectPath(each), { patch: toPatch(each) }]));
  const json = JSON.stringify({ swagger: '2.0', info, paths, definitions: schemas });
  const message = new Message()
    .text(1, '2.0')
    .message(2, new Message().text(1, info.title).text(2, info.version))
    .message(8, pathsMessage(definitions))
    .message(9, named(schemas));
  return { json, protobuf: message.toBytes(), etag: `"${digest(json)}"` };
}

/** The parameters of a PATCH. */
const PARAMETERS = ['dryRun', 'fieldValidation'].map((name) => ({ name, in: 'query', type: 'string' }) as const);

/** The path of a kind's objects, each under its name. */
function objectPath({ group, version, plural, namespaced = true }: Documented): string {
  const root = group === '' ? 'api' : 'apis';
  return `/${root}/${groupVersion(group, version)}/${namespaced ? 'namespaces/{namespace}/' : ''}${plural}/{name}`;
}

function toPatch({ group, version, kind }: Documented): object {
  return { parameters: PARAMETERS, responses: { 200: { description: 'OK' } }, [KIND_EXTENSION]: { group, kind, version } };
}

function pathsMessage(definitions: readonly Documented[]): Message {
  const paths = new Message();
  for (const each of definitions) {
    const { group, version, kind } = each;
    const patch = new Message();
    for (const parameter of PARAMETERS) patch.message(8, parameterMessage(parameter));
    patch.message(13, extension(KIND_EXTENSION, { group, kind, version }));
    paths.message(2, new Message().text(1, objectPath(each)).message(2, new Message().message(8, patch)));
  }
  return paths;
}

function parameterMessage({ name, in: where, type }: (typeof PARAMETERS)[number]): Message {
  const query = new Message().text(2, where).text(4, name).text(6, type);
  return new Message().message(1, new Message().message(2, new Message().message(3, query)));
}

/** JSON is YAML. */
function extension(name: string, value: unknown): Message {
  return new Message().text(1, name).message(2, new Message().text(2, JSON.stringify(value)));
}

/** The part of a schema that v2 supports. The rest is left out, and anything is valid there. */
function toV2(schema: JsonSchema): JsonSchema {
  const { description, $ref, allOf, type, format, properties, items, required, additionalProperties } = schema as Parts;
  const extensions = Object.fromEntries(Object.entries(schema).filter(([name]) => name.startsWith('x-kubernetes-')));
  const result: Record<string, unknown> = { description, ...extensions };
  const reference = $ref ?? (allOf?.length === 1 ? allOf[0]?.$ref : undefined);
  if (reference !== undefined) return { ...result, $ref: reference.replace('#/components/schemas/', '#/definitions/') };
  if (schema[OPEN] === true) return KIND_EXTENSION in schema ? { ...result, type: 'object' } : result;
  if (schema['x-kubernetes-int-or-string'] === true) return result;
  if (type === 'array' && items === undefined) return result;
  Object.assign(result, { type, format, required });
  if (items) result.items = toV2(items);
  if (properties) result.properties = Object.fromEntries(Object.entries(properties).map(([name, each]) => [name, toV2(each)]));
  if (typeof additionalProperties === 'object') result.additionalProperties = toV2(additionalProperties);
  return result;
}

interface Parts {
  readonly description?: string;
  readonly $ref?: string;
  readonly allOf?: readonly { readonly $ref?: string }[];
  readonly type?: string;
  readonly format?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
  readonly required?: readonly string[];
  readonly additionalProperties?: JsonSchema | boolean;
}

/** `Definitions` and `Properties` of the proto: schemas under names. */
function named(schemas: Readonly<Record<string, JsonSchema>>): Message {
  const message = new Message();
  for (const [name, schema] of Object.entries(schemas))
    message.message(1, new Message().text(1, name).message(2, toMessage(schema)));
  return message;
}

function toMessage(schema: JsonSchema): Message {
  const { description, $ref, type, format, properties, items, required = [], additionalProperties } = schema as Parts;
  const message = new Message().text(1, $ref).text(2, format).text(4, description);
  for (const name of required) message.text(19, name);
  if (typeof additionalProperties === 'object') message.message(21, new Message().message(1, toMessage(additionalProperties)));
  if (type !== undefined) message.message(22, new Message().text(1, type));
  if (items) message.message(23, new Message().message(1, toMessage(items)));
  if (properties) message.message(25, named(properties));
  for (const [name, value] of Object.entries(schema)) {
    if (name.startsWith('x-')) message.message(31, extension(name, value));
  }
  return message;
}

/** Everything under `/openapi`, made at the first request: most clients never ask. */

/** A document whose body may be bytes. */
interface OpenApiDocument extends Omit<Document, 'body'> {
  readonly body: string | Uint8Array;
}

/** The OpenAPI documents of a server. */
export class OpenApi {
  readonly #definitions: readonly Documented[];
  readonly #version: string;
  #v3: Map<string, OpenApiDocument> | undefined;
  #v2: { readonly json: OpenApiDocument; readonly protobuf: OpenApiDocument } | undefined;

  constructor(definitions: readonly Documented[], version: string = 'unversioned') {
    this.#definitions = definitions;
    this.#version = version;
  }

  /** The document at a path; undefined if there is none. */
  document(path: string, accept?: string): OpenApiDocument | undefined {
    if (path !== '/openapi/v2') {
      this.#v3 ??= openApiV3(this.#definitions, this.#version);
      return this.#v3.get(path);
    }
    this.#v2 ??= this.#makeV2();
    return takesProtobuf(accept) ? this.#v2.protobuf : this.#v2.json;
  }

  #makeV2(): { readonly json: OpenApiDocument; readonly protobuf: OpenApiDocument } {
    const { json, protobuf, etag } = openApiV2(this.#definitions, this.#version);
    return {
      json: { contentType: 'application/json', body: json, etag },
      protobuf: { contentType: PROTOBUF_TYPE, body: protobuf, etag: etag.replace(/"$/, '-pb"') },
    };
  }
}

export class Documents {
  readonly #discovery: Discovery;
  readonly #openApi: OpenApi;

  constructor(resources: readonly ResourceInfo[], options: DiscoveryOptions = {}) {
    this.#discovery = new Discovery(resources, options);
    this.#openApi = new OpenApi(resources, options.gitVersion);
  }

  /** The document at a path; undefined if there is none. A client whose ETag is current gets only a 304. */
  answer(segments: readonly string[], request: Pick<WireRequest, 'header'>): WholeAnswer | undefined {
    const path = `/${segments.join('/')}`;
    const accept = request.header('accept');
    const found = segments[0] === 'openapi' ? this.#openApi.document(path, accept) : this.#discovery.document(path, accept);
    if (found === undefined) return undefined;
    const { contentType, body, etag } = found;
    // An ETag without `no-cache` would let a client use the answer of an earlier server at this address.
    const headers = { 'cache-control': 'no-cache, private', vary: 'Accept', ...(etag !== undefined && { etag }) };
    if (etag !== undefined && has(request.header('if-none-match'), etag)) return { code: 304, headers, body: null };
    return { code: 200, headers: { ...headers, 'content-type': contentType, 'x-content-type-options': 'nosniff' }, body };
  }
}

function has(header: string | undefined, etag: string): boolean {
  return header?.split(',').some((each) => each.trim() === etag || each.trim() === `W/${etag}`) === true;
}
