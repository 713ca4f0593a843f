/**
 * What a server publishes about itself over HTTP: discovery and OpenAPI. Each definition's parts are made once, so that changing
 * one of a thousand definitions costs only that one.
 */
import { apiVersionOf } from '../../cache/resource-client.ts';
import { isPromise } from '../../watch/abort.ts';
import { getOrMake, isRecord } from '../../watch/errors.ts';
import { atOnce, inPieces, type Soon, type Work } from '../../watch/fair-queue.ts';
import { notAcceptable } from '../api-status.ts';
import type { JsonSchema } from '../definition.ts';
import type { WholeAnswer, WireRequest } from '../http/wire.ts';
import { patchMediaTypes } from '../patch/patch.ts';
import { isJson, type MediaRange, readAccept } from '../request/path.ts';
import { fieldHead } from '../request/protobuf.ts';
import type { ResourceInfo } from '../resource-info.ts';
import { Discovery, type Document, digest, JSON_TYPE } from './discovery.ts';
import {
  componentName,
  type Documented,
  type DocumentedKind,
  KIND_EXTENSION,
  listSchemaOf,
  OBJECT_MEMBERS,
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

/** Such as `api/v1` or `apis/example.com/v1`. */
function pathOf({ group, version }: Documented): string {
  return `${group === '' ? 'api' : 'apis'}/${apiVersionOf({ group, version })}`;
}

const INFO = { title: 'watchmux', version: 'unversioned' };

/** The document of one version of a group, a definition at a time. */
function* openApiV3(definitions: readonly Documented[]): Work<string> {
  const [paths, schemas]: [string[], string[]] = [[], [membersOf(SHARED)]];
  for (const each of definitions) {
    paths.push(membersOf(toPaths(each)));
    const kinds = [each, ...each.subresources.flatMap(({ kind = [] }) => kind)];
    for (const kind of kinds) schemas.push(membersOf({ [componentName(kind)]: unfolded(schemaOf(kind)) }));
    schemas.push(membersOf({ [componentName(ofList(each))]: listSchemaOf(each) }));
    yield;
  }
  const info = JSON.stringify(INFO);
  return `{"openapi":"3.0.0","info":${info},"paths":{${paths.join()}},"components":{"schemas":{${unique(schemas).join()}}}}`;
}

/** The members of an object, as JSON without its braces. */
const membersOf = (object: object): string => JSON.stringify(object).slice(1, -1);

/** Several kinds may have the same subresource. */
const unique = (texts: readonly string[]): readonly string[] => [...new Set(texts)];

const query = (name: string, description: string): object => ({
  name,
  in: 'query',
  description,
  schema: { type: 'string', uniqueItems: true },
});

/** Includes `fieldValidation`, so that kubectl leaves the search for unknown fields to the server. */
const OF_WRITES: readonly object[] = [
  query('dryRun', 'All: do everything except the write itself.'),
  query('fieldManager', 'The name of the author of this change.'),
  query('fieldValidation', 'What to do about unknown or duplicate fields: Ignore, Warn (the default) or Strict.'),
];

const OF_PATCHES: readonly object[] = [
  ...OF_WRITES,
  { ...query('force', 'To take over what others manage, when applying.'), schema: { type: 'boolean', uniqueItems: true } },
];

function toPaths(definition: Documented): object {
  const { group, version, plural, kind, namespaced = true, subresources } = definition;
  const bodyOf = (shown: DocumentedKind): object => ({
    content: { 'application/json': { schema: { $ref: `#/components/schemas/${componentName(shown)}` } } },
  });
  const patches = Object.fromEntries(patchMediaTypes(definition).map((type) => [type, { schema: { type: 'object' } }]));
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
    patch: { ...operation('patch', OF_PATCHES, seen), requestBody: { content: patches } },
  });
  return {
    [root]: { get: operation('list'), post: operation('post', OF_WRITES), delete: operation('deletecollection') },
    [`${root}/{name}`]: { ...ofOne(), delete: operation('delete') },
    ...Object.fromEntries(
      subresources.map(({ name, kind: seen, verbs }) => {
        const ofPart = verbs.includes('create') ? { post: operation('post', OF_WRITES, seen) } : ofOne(seen);
        return [`${root}/{name}/${name}`, ofPart];
      }),
    ),
    ...(namespaced && { [`/${pathOf(definition)}/${plural}`]: { get: operation('list') } }),
  };
}

/** The part of protobuf's encoding that an OpenAPI v2 document needs. Upstream: gnostic's `OpenAPIv2.proto`. */
const utf8 = new TextEncoder();

/** Writes fields one after the other. */
export class Message {
  /** Its bytes, in parts. A nested message is a part, so its bytes are copied only once, however deep it is. */
  readonly #parts: (ArrayLike<number> | Message)[] = [];
  length: number = 0;

  /** A text. Undefined: nothing is written. */
  text(field: number, value: string | undefined): this {
    return value === undefined || value === '' ? this : this.bytes(field, utf8.encode(value));
  }

  /** A message within this one, which is complete. */
  message(field: number, value: Message): this {
    return this.bytes(field, value);
  }

  bytes(field: number, value: ArrayLike<number> | Message): this {
    return this.add(fieldHead(field, value.length)).add(value);
  }

  /** Adds what has been encoded elsewhere. */
  add(part: ArrayLike<number> | Message): this {
    this.#parts.push(part);
    this.length += part.length;
    return this;
  }

  toBytes(): Uint8Array {
    const all = new Uint8Array(this.length);
    this.#write(all, 0);
    return all;
  }

  #write(all: Uint8Array, from: number): void {
    let at = from;
    for (const part of this.#parts) {
      if (part instanceof Message) part.#write(all, at);
      else all.set(part, at);
      at += part.length;
    }
  }
}

/**
 * OpenAPI v2, for kubectl before 1.24, which reads only this, in protobuf, and creates no object without it. The document has the
 * schemas, with which that kubectl checks what it sends and explains kinds. Its only paths are the PATCH of each kind, where
 * kubectl looks for dry runs; kubectl up to 1.26 also looks for `fieldValidation` there.
 *
 * A kind without a schema is an object that may have any fields, so that none is unknown.
 */

/** The type of the protobuf document, as in answers. */
export const PROTOBUF_TYPE = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

/** Whether a client that sends this Accept reads protobuf. The `@` is not allowed there, but old clients send it. */
function takesProtobuf(accept: string | undefined): boolean {
  return accept !== undefined && /proto-openapi\.spec\.v2[.@]v1\.0\+protobuf/.test(accept);
}

/** There is no protobuf of version 3 here, but its clients also read JSON. */
const takesOpenApi = (clause: MediaRange): boolean => isJson(clause) || /proto-openapi\.spec\.v[23]/.test(clause.type);

/** What one definition adds to a document: the member of `paths`, and that of `definitions`. */
interface Part<T> {
  readonly path: T;
  readonly schema: T;
}

/** Definitions are immutable: a changed definition is a new object. */
const asText: WeakMap<Documented, Part<string>> = new WeakMap();
const asBytes: WeakMap<Documented, Part<Uint8Array>> = new WeakMap();

/** Makes the parts of definitions that are new, one at a time. */
function* partsOf<T>(
  definitions: readonly Documented[],
  known: WeakMap<Documented, Part<T>>,
  make: (of: Documented) => Part<T>,
): Work<readonly Part<T>[]> {
  const parts: Part<T>[] = [];
  for (const each of definitions) {
    parts.push(getOrMake(known, each, () => make(each)));
    yield;
  }
  return parts;
}

const textOf = (definition: Documented): Part<string> => ({
  path: membersOf({ [objectPath(definition)]: { patch: toPatch(definition) } }),
  schema: membersOf(schemasV2(definition)),
});

const bytesOf = (definition: Documented): Part<Uint8Array> => ({
  path: pathMessage(definition).toBytes(),
  schema: named(schemasV2(definition)).toBytes(),
});

/** Makes the document, a definition at a time. */
function* openApiV2(definitions: readonly Documented[], protobuf: boolean): Work<string | Uint8Array> {
  if (!protobuf) {
    const parts = yield* partsOf(definitions, asText, textOf);
    const schemas = [membersOf(SHARED_V2), ...parts.map(({ schema }) => schema)].join();
    return `{"swagger":"2.0","info":${JSON.stringify(INFO)},"paths":{${parts.map(({ path }) => path).join()}},"definitions":{${schemas}}}`;
  }
  const [paths, schemas] = [new Message(), named(SHARED_V2)];
  for (const { path, schema } of yield* partsOf(definitions, asBytes, bytesOf)) {
    paths.add(path);
    schemas.add(schema);
  }
  const message = new Message().text(1, '2.0').message(2, new Message().text(1, INFO.title).text(2, INFO.version));
  return message.message(8, paths).message(9, schemas).toBytes();
}

/** The parameters of a PATCH. */
const PARAMETERS = ['dryRun', 'fieldValidation'].map((name) => ({ name, in: 'query', type: 'string' }) as const);

/** The path of a kind's objects, each under its name. */
function objectPath(definition: Documented): string {
  const { plural, namespaced = true } = definition;
  return `/${pathOf(definition)}/${namespaced ? 'namespaces/{namespace}/' : ''}${plural}/{name}`;
}

function toPatch({ group, version, kind }: Documented): object {
  return { parameters: PARAMETERS, responses: { 200: { description: 'OK' } }, [KIND_EXTENSION]: { group, kind, version } };
}

/** The one member of `Paths`. */
function pathMessage(definition: Documented): Message {
  const { group, version, kind } = definition;
  const patch = new Message();
  for (const parameter of PARAMETERS) patch.message(8, parameterMessage(parameter));
  patch.message(13, extension(KIND_EXTENSION, { group, kind, version }));
  return new Message().message(2, new Message().text(1, objectPath(definition)).message(2, new Message().message(8, patch)));
}

function parameterMessage({ name, in: where, type }: (typeof PARAMETERS)[number]): Message {
  const query = new Message().text(2, where).text(4, name).text(6, type);
  return new Message().message(1, new Message().message(2, new Message().message(3, query)));
}

/** JSON is YAML. */
function extension(name: string, value: unknown): Message {
  return new Message().text(1, name).message(2, new Message().text(2, JSON.stringify(value)));
}

/** The keywords that mean the same in v2. Upstream leaves out defaults, too. */
const ALIKE = [
  ...['description', 'title', 'externalDocs', 'example', 'type', 'format', 'pattern', 'enum', 'multipleOf', 'uniqueItems'],
  ...['maximum', 'minimum', 'exclusiveMaximum', 'exclusiveMinimum', 'maxLength', 'minLength', 'maxItems', 'minItems'],
  ...['maxProperties', 'minProperties'],
];

/** The part of a schema that v2 supports, as upstream shows it. The rest is left out, so anything is valid there. */
function toV2(schema: JsonSchema): JsonSchema {
  const { $ref, allOf, nullable, properties, items, required, additionalProperties } = schema as Parts;
  // kubectl would find fault with what is not listed.
  if (schema[OPEN] === true && KIND_EXTENSION in schema) return { type: 'object', [KIND_EXTENSION]: schema[KIND_EXTENSION] };
  const result: Record<string, unknown> = {};
  for (const name in schema) if (name.startsWith('x-kubernetes-')) result[name] = schema[name];
  const reference = $ref ?? (allOf?.length === 1 ? allOf[0]?.$ref : undefined);
  if (typeof reference === 'string') {
    return { description: schema.description, ...result, $ref: reference.replace('#/components/schemas/', '#/definitions/') };
  }
  // In later drafts of JSON Schema, which a program's own schema may use, an exclusive limit is a number.
  for (const name of ALIKE) if (!name.startsWith('exclusive') || schema[name] === true) result[name] = schema[name];
  const isOpen = schema[OPEN] === true;
  const hasMembers = !isOpen && nullable !== true;
  // A definition that was stored before schemas were checked must not break the document for all others.
  const partOf = (each: unknown): JsonSchema => (isRecord(each) ? toV2(each) : {});
  if (hasMembers && items) result.items = partOf(items);
  if (hasMembers && properties) result.properties = eachOf(properties, partOf);
  if (isRecord(additionalProperties)) result.additionalProperties = toV2(additionalProperties);
  else if (additionalProperties === true) result.additionalProperties = true;
  // Old kubectl knows neither null, nor objects with any members, nor lists of them, nor two types.
  if (
    nullable ||
    schema['x-kubernetes-int-or-string'] ||
    (isOpen && schema.type === 'object') ||
    (!result.items && schema.type === 'array')
  )
    delete result.type;
  const needed = isNullable(additionalProperties)
    ? []
    : Array.isArray(required) && required.filter((name) => !isNullable(result.properties && properties?.[name]));
  if (needed && needed.length > 0) result.required = needed;
  return result;
}

const isNullable = (schema: unknown): boolean => typeof schema === 'object' && (schema as Parts | null)?.nullable === true;

type Schemas = Readonly<Record<string, JsonSchema>>;

function eachOf(schemas: Schemas, change: (of: JsonSchema) => JsonSchema): Schemas {
  return Object.fromEntries(Object.entries(schemas).map(([name, each]) => [name, change(each)]));
}

/** A schema with its implications spelled out: the members of embedded objects, and that a value is a number or a text. */
function unfolded(schema: JsonSchema, members: Schemas = OBJECT_MEMBERS): JsonSchema {
  const { properties, items, required = [], additionalProperties, anyOf, allOf } = schema as Parts;
  const [result, isV2]: [Record<string, unknown>, boolean] = [{ ...schema }, members !== OBJECT_MEMBERS];
  const inner = (of: JsonSchema): JsonSchema => unfolded(of, members);
  if (isRecord(items)) result.items = inner(items);
  if (isRecord(additionalProperties)) result.additionalProperties = inner(additionalProperties);
  if (isRecord(properties)) result.properties = eachOf(properties, inner);
  if (schema['x-kubernetes-int-or-string'] === true && !isV2 && !anyOf && !allOf) {
    result.anyOf = [{ type: 'integer' }, { type: 'string' }];
  }
  if (schema['x-kubernetes-embedded-resource'] !== true || (isV2 && schema[OPEN] === true)) return result;
  const needed = new Set([...required, 'kind', 'apiVersion']);
  return { ...result, properties: { ...(result.properties as object), ...members }, required: [...needed] };
}

const SHARED_V2 = eachOf(SHARED, toV2);
const MEMBERS_V2 = eachOf(OBJECT_MEMBERS, toV2);

/** The schemas of a kind and its lists. */
const schemasV2 = (definition: Documented): Schemas => ({
  [componentName(definition)]: unfolded(toV2(schemaOf(definition)), MEMBERS_V2),
  [componentName(ofList(definition))]: toV2(listSchemaOf(definition)),
});

interface Parts {
  readonly $ref?: string;
  readonly allOf?: readonly { readonly $ref?: string }[];
  readonly anyOf?: readonly JsonSchema[];
  readonly nullable?: boolean;
  readonly description?: string;
  readonly type?: string;
  readonly format?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
  readonly required?: readonly string[];
  readonly additionalProperties?: JsonSchema | boolean;
}

/** The field `boolean` of `AdditionalPropertiesItem`. */
const TRUE = [2 * 8, 1];

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
  else if (additionalProperties) message.message(21, new Message().add(TRUE));
  if (type !== undefined) message.message(22, new Message().text(1, type));
  if (items) message.message(23, new Message().message(1, toMessage(items)));
  if (properties) message.message(25, named(properties));
  for (const [name, value] of Object.entries(schema)) {
    if (name.startsWith('x-')) message.message(31, extension(name, value));
  }
  return message;
}

/** Everything under `/openapi`, made when it is asked for: most clients never ask. */

/** A document whose body may be bytes. */
interface OpenApiDocument extends Omit<Document, 'body'> {
  readonly body: string | Uint8Array;
}

/** A text that changes whenever the definition does, and only then. */
const stamps: WeakMap<Documented, string> = new WeakMap();

function stampOf(definition: Documented): string {
  const known = definition.stamp ?? stamps.get(definition);
  if (known !== undefined) return known;
  const stamp = digest(JSON.stringify([toPaths(definition), schemaOf(definition)]));
  stamps.set(definition, stamp);
  return stamp;
}

const hashOf = (definitions: readonly Documented[]): string => digest(JSON.stringify(definitions.map(stampOf)));

/** The OpenAPI documents of a server, for the definitions that it has at one time. */
export class OpenApi {
  readonly #definitions: readonly Documented[];
  /** The definitions of each version of a group, by its path. */
  readonly #own: Map<string, Documented[]> = new Map();
  readonly #made: Map<string, OpenApiDocument> = new Map();

  constructor(definitions: readonly Documented[], before?: OpenApi) {
    this.#definitions = definitions;
    for (const each of definitions) {
      getOrMake(this.#own, pathOf(each), () => []).push(each);
    }
    if (before) this.#keep(before);
  }

  /** Keeps what has not changed since the previous documents. */
  #keep(before: OpenApi): void {
    for (const [path, own] of this.#own) {
      const [old, made] = [before.#own.get(path), before.#made.get(`${INDEX}/${path}`)];
      const isSame = old?.length === own.length && own.every((each, at) => each === old[at]);
      if (made !== undefined && isSame) this.#made.set(`${INDEX}/${path}`, made);
    }
  }

  document(path: string, accept?: string): OpenApiDocument | undefined {
    return atOnce(this.making(path, accept));
  }

  /** The same in pieces. */
  *making(path: string, accept?: string): Work<OpenApiDocument | undefined> {
    const asProtobuf = path === '/openapi/v2' && takesProtobuf(accept);
    const key = asProtobuf ? `${path} protobuf` : path;
    const known = this.#made.get(key);
    if (known !== undefined) return known;
    const made = path === '/openapi/v2' ? yield* this.#v2(asProtobuf) : path === INDEX ? this.#index() : yield* this.#v3(path);
    if (made !== undefined) this.#made.set(key, made);
    return made;
  }

  #index(): OpenApiDocument {
    const paths = Object.fromEntries(
      Array.from(this.#own, ([name, own]) => [name, { serverRelativeURL: `${INDEX}/${name}?hash=${hashOf(own)}` }]),
    );
    const body = JSON.stringify({ paths });
    return { contentType: 'application/json', body, etag: `"${digest(body)}"` };
  }

  *#v3(path: string): Work<OpenApiDocument | undefined> {
    const own = this.#own.get(path.slice(INDEX.length + 1));
    if (own === undefined || !path.startsWith(`${INDEX}/`)) return undefined;
    const body = yield* openApiV3(own);
    return { contentType: 'application/json', body, etag: `"${hashOf(own)}"` };
  }

  *#v2(protobuf: boolean): Work<OpenApiDocument> {
    const hash = hashOf(this.#definitions);
    const body = yield* openApiV2(this.#definitions, protobuf);
    return { contentType: protobuf ? PROTOBUF_TYPE : 'application/json', body, etag: protobuf ? `"${hash}-pb"` : `"${hash}"` };
  }
}

/** The current documents of a server. They are made for the current definitions, and kept until these change. */
export class Documents {
  readonly #resources: () => readonly ResourceInfo[];
  #of: readonly ResourceInfo[] | undefined;
  #discovery: Discovery | undefined;
  #openApi: OpenApi | undefined;

  constructor(resources: () => readonly ResourceInfo[]) {
    this.#resources = resources;
  }

  /** Answers with the document at a path; undefined if there is none. A client whose ETag is current gets only a 304. */
  answer(segments: readonly string[], request: Pick<WireRequest, 'header'>): Soon<WholeAnswer | undefined> {
    const resources = this.#resources();
    if (resources !== this.#of) {
      this.#of = resources;
      this.#discovery = undefined;
      this.#openApi = new OpenApi(resources, this.#openApi);
    }
    const path = `/${segments.join('/')}`;
    const accept = request.header('accept');
    if (segments[0] === 'openapi' && this.#openApi) {
      const made = inPieces(this.#openApi.making(path, accept));
      const answer = (found: OpenApiDocument | undefined): WholeAnswer | undefined => {
        // Upstream negotiates these, but not the index.
        if (found !== undefined && path !== INDEX && !readAccept(accept).some(takesOpenApi)) throw notAcceptable(JSON_TYPE);
        return answerOf(found, request);
      };
      return isPromise(made) ? made.then(answer) : answer(made);
    }
    this.#discovery ??= new Discovery(resources);
    return answerOf(this.#discovery.document(path, accept), request);
  }
}

function answerOf(found: OpenApiDocument | undefined, request: Pick<WireRequest, 'header'>): WholeAnswer | undefined {
  if (found === undefined) return undefined;
  const { contentType, body, etag } = found;
  // An ETag without `no-cache` would let a client use the answer of an earlier server at this address.
  const headers = { 'cache-control': 'no-cache, private', vary: 'Accept', ...(etag !== undefined && { etag }) };
  if (etag !== undefined && has(request.header('if-none-match'), etag)) return { code: 304, headers, body: null };
  return { code: 200, headers: { ...headers, 'content-type': contentType, 'x-content-type-options': 'nosniff' }, body };
}

function has(header: string | undefined, etag: string): boolean {
  return header?.split(',').some((each) => ['*', etag, `W/${etag}`].includes(each.trim())) === true;
}
