/**
 * OpenAPI v2, for kubectl before 1.24, which reads nothing else, only in protobuf, and creates no object before it has read it.
 * The document has the schemas, by which that kubectl checks what it sends and explains kinds. Of the paths it has only the PATCH
 * of each kind, where kubectl looks for dry runs; kubectl up to 1.26 also looks for `fieldValidation` there.
 *
 * A kind without a schema is an object of anything, so that no field of it is unknown.
 */
import type { JsonSchema } from '../definition.ts';
import { digest } from '../discovery/digest.ts';
import { groupVersion } from '../discovery/resources.ts';
import { Message } from './protobuf.ts';
import { componentName, type Documented, KIND_EXTENSION, OPEN, SHARED, schemaOf } from './schemas.ts';

/** The type of the protobuf document, as in answers. */
export const PROTOBUF_TYPE = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

/** Whether a client that sends this Accept reads protobuf. The `@` is not allowed there, but old clients send it. */
export function takesProtobuf(accept: string | undefined): boolean {
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
  const paths = Object.fromEntries(definitions.map((each) => [pathOf(each), { patch: toPatch(each) }]));
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
function pathOf({ group, version, plural, namespaced = true }: Documented): string {
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
    paths.message(2, new Message().text(1, pathOf(each)).message(2, new Message().message(8, patch)));
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
