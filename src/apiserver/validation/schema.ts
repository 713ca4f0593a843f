/**
 * Checks objects with ajv against JSON schemas that use more than Kubernetes' OpenAPI v3. ajv is loaded when the first schema
 * needs it.
 *
 *     schema -- expanded(): as OpenAPI v3 means it --> ajv --> errors --> causes, in Kubernetes' words
 *
 * OpenAPI v3 adds to JSON Schema: `nullable`, which ajv knows; formats of numbers, which their types imply; and the extensions,
 * of which only `x-kubernetes-int-or-string` affects validity. Formats of strings are not checked, as they would take another
 * package. Two keywords are not left to ajv, so that the time stays linear in an object's size: patterns, and `uniqueItems`, for
 * which ajv compares each pair of items.
 */

import type { KubernetesObject } from '../../cache/object.ts';
import { isWatchError, WatchError } from '../../watch/errors.ts';
import type { Work } from '../../watch/fair-queue.ts';
import type { FieldCause, JsonSchema } from '../definition.ts';
import { jsonStart } from './causes.ts';
import { toPattern, withPatterns } from './patterns.ts';
import { areDifferent } from './values.ts';

/** Finds what is wrong with an object; an empty list if nothing is. */
type JsonSchemaCheck = (object: KubernetesObject) => Work<readonly FieldCause[]>;

/** The most causes that are reported. A hostile object could have millions. */
const MAX_CAUSES = 50;

/**
 * Compiles a schema with ajv.
 *
 * @throws {WatchError} INVALID_ARGUMENT if the schema is invalid, ajv is not installed, or re2js is not and there are patterns.
 */
export async function compileJsonSchema(schema: JsonSchema): Promise<JsonSchemaCheck> {
  const Ajv = await loadAjv();
  const lists = new Lists();
  const compile = (): ValidateFunction => {
    const ajv = new Ajv(AJV_OPTIONS);
    ajv.removeKeyword('uniqueItems');
    ajv.addKeyword({ ...UNIQUE, validate: (wanted: boolean, items: readonly unknown[]) => !wanted || lists.differ(items) });
    return ajv.compile(toJsonSchema(schema)) as ValidateFunction;
  };
  let validate: ValidateFunction;
  try {
    validate = await withPatterns(compile);
  } catch (cause) {
    if (isWatchError(cause)) throw cause;
    throw new WatchError('INVALID_ARGUMENT', `schema: ${(cause as Error).message}`, { cause });
  }
  return (object) => checking(object, validate, lists);
}

/** Runs ajv again until it meets no new list that takes long, as it cannot be interrupted. */
function* checking(object: KubernetesObject, validate: ValidateFunction, lists: Lists): Work<readonly FieldCause[]> {
  const judged = new Map<readonly unknown[], boolean>();
  for (;;) {
    const met: (readonly unknown[])[] = [];
    lists.begin(judged, met);
    const isValid = validate(object);
    if (met.length === 0) return isValid ? [] : toCauses(validate.errors ?? [], object);
    for (const items of met) judged.set(items, yield* areDifferent(items));
  }
}

/** The part of ajv that is used, so that no public type needs it. */
interface AjvClass {
  new (
    options: object,
  ): { compile(schema: object): unknown; removeKeyword(keyword: string): unknown; addKeyword(definition: object): unknown };
}

/** ajv uses `code` only when it writes schemas into files. */
const regExp = Object.assign((source: string) => toPattern(source), { code: 'toPattern' });
const AJV_OPTIONS = {
  ...{ strict: false, allErrors: false, validateFormats: false, logger: false, ownProperties: true },
  code: { regExp },
};

const UNIQUE = {
  keyword: 'uniqueItems',
  ...{ type: 'array', schemaType: 'boolean' },
  error: { message: 'must NOT have duplicate items' },
};

/** What ajv asks about lists. */
class Lists {
  #judged: ReadonlyMap<readonly unknown[], boolean> = new Map();
  #met: (readonly unknown[])[] = [];

  /** Called before a run with the lists that have been judged, and a place for others. */
  begin(judged: ReadonlyMap<readonly unknown[], boolean>, met: (readonly unknown[])[]): void {
    this.#judged = judged;
    this.#met = met;
  }

  /** Whether the items of a list differ. For a list that takes long, it first answers yes. */
  differ(items: readonly unknown[]): boolean {
    const judged = this.#judged.get(items);
    if (judged !== undefined) return judged;
    if (items.length <= FEW && items.every((item) => typeof item !== 'object')) return new Set(items).size === items.length;
    this.#met.push(items);
    return true;
  }
}

const FEW = 256;

/** A compiled schema of ajv. */
interface ValidateFunction {
  (data: unknown): boolean;
  errors?: readonly AjvError[] | null;
}

/** One failure, as ajv describes it. */
interface AjvError {
  readonly instancePath: string;
  readonly keyword: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly message?: string;
}

async function loadAjv(): Promise<AjvClass> {
  try {
    const { Ajv } = await import('ajv');
    return Ajv as unknown as AjvClass;
  } catch (cause) {
    const message = 'a schema with a keyword such as $ref or if needs the package ajv: npm install ajv, or leave out the keyword';
    throw new WatchError('INVALID_ARGUMENT', message, { cause });
  }
}

/** The members that every object has, which the server checks itself. */
const COMMON: JsonSchema = { apiVersion: { type: 'string' }, kind: { type: 'string' }, metadata: { type: 'object' } };

/** The schema of an object in the form that ajv accepts. */
function toJsonSchema(schema: JsonSchema): JsonSchema {
  const properties = schema.properties as JsonSchema | undefined;
  const { metadata: _, ...own } = properties ?? {};
  return expanded({
    ...schema,
    type: 'object',
    ...((properties ?? schema.additionalProperties === false) && { properties: { ...COMMON, ...own } }),
  });
}

/** Replaces `x-kubernetes-int-or-string`, and bounds marked as exclusive, with JSON Schema's equivalents, at any depth. */
function expanded(schema: JsonSchema): JsonSchema {
  const entries = Object.entries(schema).filter(([name]) => !name.startsWith('x-'));
  const inner = entries.map(([name, value]): [string, unknown] => [name, expandedPart(name, value)]);
  const result = withExclusive(
    withExclusive(Object.fromEntries(inner), 'minimum', 'exclusiveMinimum'),
    'maximum',
    'exclusiveMaximum',
  );
  if (schema['x-kubernetes-int-or-string'] !== true) return result;
  const { anyOf: _, type: __, ...rest } = result;
  return { ...rest, type: ['integer', 'string'] };
}

/** OpenAPI 3.0 marks a bound as exclusive; JSON schema has a separate keyword for that. */
function withExclusive(schema: JsonSchema, bound: string, exclusive: string): JsonSchema {
  const mark = schema[exclusive];
  if (typeof mark !== 'boolean') return schema;
  const { [exclusive]: _, [bound]: limit, ...rest } = schema;
  if (limit === undefined) return rest;
  return { ...rest, [mark ? exclusive : bound]: limit };
}

/** Where a schema contains schemas: under names, in a list, or directly. */
const UNDER_NAMES: readonly string[] = ['properties', 'patternProperties', 'definitions'];
const IN_A_LIST: readonly string[] = ['allOf', 'anyOf', 'oneOf'];
const AS_SUCH: readonly string[] = ['items', 'additionalProperties', 'not'];

function expandedPart(name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (UNDER_NAMES.includes(name)) {
    return Object.fromEntries(Object.entries(value).map(([each, schema]) => [each, expanded(schema as JsonSchema)]));
  }
  if (IN_A_LIST.includes(name) && Array.isArray(value)) return value.map((each) => expanded(each as JsonSchema));
  return AS_SUCH.includes(name) && !Array.isArray(value) ? expanded(value as JsonSchema) : value;
}

/** ajv's errors in Kubernetes' words. */
export function toCauses(errors: readonly AjvError[], object: unknown): FieldCause[] {
  const causes = errors.slice(0, MAX_CAUSES).map((error) => toCause(error, object));
  return causes.length > 0 ? causes : [{ field: '', message: 'Invalid value: does not fit the schema' }];
}

function toCause({ instancePath, keyword, params, message = 'does not fit' }: AjvError, object: unknown): FieldCause {
  const tokens = instancePath
    .split('/')
    .slice(1)
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
  const at = (more: readonly string[] = []): string => fieldOf([...tokens, ...more], object);
  const value = valueAt(tokens, object);
  const shown = jsonStart(value, 200);
  const field = at();
  if (keyword === 'required') {
    return { field: at([String(params.missingProperty)]), message: 'Required value', reason: 'FieldValueRequired' };
  }
  if (keyword === 'additionalProperties') {
    const unknown = at([String(params.additionalProperty)]);
    return { field: unknown, message: 'Invalid value: unknown field', reason: 'FieldValueInvalid' };
  }
  if (keyword === 'enum') {
    const values = (params.allowedValues as readonly unknown[]).map((each) => JSON.stringify(each)).join(', ');
    return { field, message: `Unsupported value: ${shown}: supported values: ${values}`, reason: 'FieldValueNotSupported' };
  }
  if (keyword === 'type') {
    const [is, type] = [JSON.stringify(typeName(value)), String(params.type).replace(',', ' or ')];
    const text = `Invalid value: ${is}: ${field || '<root>'} in body must be of type ${type}: ${is}`;
    return { field, message: text, reason: 'FieldValueTypeInvalid' };
  }
  return { field, message: `Invalid value: ${shown}: ${field || 'it'} in body ${message}`, reason: 'FieldValueInvalid' };
}

/** Such as `spec.items[0].count`. */
function fieldOf(tokens: readonly string[], object: unknown): string {
  let value = object;
  let field = '';
  for (const token of tokens) {
    field += Array.isArray(value) ? `[${token}]` : `${field === '' ? '' : '.'}${token}`;
    value = valueAt([token], value);
  }
  return field;
}

function valueAt(tokens: readonly string[], object: unknown): unknown {
  let value = object;
  for (const token of tokens) {
    value = typeof value === 'object' && value !== null && Object.hasOwn(value, token) ? (value as JsonSchema)[token] : undefined;
  }
  return value;
}

function typeName(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return Number.isInteger(value) ? 'integer' : typeof value;
}
