/** A program's definition of each kind of object that its API server serves. Upstream: `CustomResourceDefinitionSpec`. */
import type { KubernetesObject } from '../cache/object.ts';
import { callable, checkOptions, distance, invalid, isRecord, oneOf, WatchError, wholeNumber } from '../watch/errors.ts';
import type { Work } from '../watch/fair-queue.ts';

/** One kind of object that an API server serves. */
export interface ResourceDefinition<T extends KubernetesObject = KubernetesObject> {
  /** The API group, such as `orders.example.com`. Empty for the core group, as in `v1`. */
  readonly group: string;
  /** Such as `v1` or `v1beta2`. */
  readonly version: string;
  /** The name in URLs, such as `orders`. */
  readonly plural: string;
  /** Such as `Order`. */
  readonly kind: string;
  /** Default: the kind in lower case. */
  readonly singular?: string | undefined;
  /** What people type instead of the plural, such as `ord`. */
  readonly shortNames?: readonly string[] | undefined;
  /** Groups of resources that people ask for together, such as `all`. */
  readonly categories?: readonly string[] | undefined;
  /** Default: the kind followed by `List`. */
  readonly listKind?: string | undefined;
  /** Whether objects are in namespaces. Default true. */
  readonly namespaced?: boolean | undefined;
  /**
   * Returns what is wrong with an object; a write with any causes is refused with 422. `old` is undefined for a new object. Both
   * are copies. If it throws, or returns anything else, the write fails with 500, and only `onError` gets the error.
   */
  readonly validate?: Of<T, [old: T | undefined], ValidationResult | Promise<ValidationResult>> | undefined;
  /**
   * An OpenAPI v3 schema of the object, checked on every write and served to `kubectl explain`. Its defaults are filled in on
   * writes and on reads. The `fieldValidation` of a write decides whether members that the schema does not name are reported.
   */
  readonly schema?: JsonSchema | undefined;
  /**
   * Whether members that the schema does not name are kept. Default true. If false, they are removed, and so is null where the
   * schema neither allows it nor has a default, as for a CustomResourceDefinition in Kubernetes.
   */
  readonly preserveUnknownFields?: boolean | undefined;
  /** Whether `status` is a subresource: written only at its own path, and ignored elsewhere. Default false. */
  readonly status?: boolean | undefined;
  /** Makes `scale` a subresource, by which `kubectl scale` and autoscalers set a number of instances. Default: none. */
  readonly scale?: ScaleDefinition | undefined;
  /**
   * The fields of one of Kubernetes' own kinds: only those of {@link kubernetesKinds} have it. Their bodies and answers may be
   * protobuf, unknown members are dropped, and values of another type are refused.
   */
  readonly shape?: object | undefined;
  /** The columns after the name that `kubectl get` prints. Default: the age. Your columns replace it. */
  readonly columns?: readonly PrinterColumn<T>[] | undefined;
  /** Fields that field selectors may use in addition to `metadata.name` and `metadata.namespace`; the cache indexes each of them. */
  readonly fields?: Readonly<Record<string, Of<T, [], string | undefined>>> | undefined;
}

/** The paths in an object from which its `scale` is made. Upstream: `CustomResourceSubresourceScale`. */
export interface ScaleDefinition {
  /** The path of the desired number, below `.spec`, such as `.spec.replicas`. */
  readonly specReplicasPath: string;
  /** The path of the actual number, below `.status`, such as `.status.replicas`. While it is absent, the number is 0. */
  readonly statusReplicasPath: string;
  /** The path of the instances' label selector, a string below `.spec` or `.status`. Autoscalers need it. Default: none. */
  readonly labelSelectorPath?: string | undefined;
}

/**
 * A function of an object of the kind. It is typed as a method, whose parameters are bivariant: a server keeps definitions of
 * several kinds in one array, and calls each only with objects of its own kind.
 */
type Of<T, More extends unknown[], Result> = { of(object: T, ...more: More): Result }['of'];

/** A definition with a JSON schema instead of the function `validate`: the same as `schema`. */
export interface SchemaDefinition extends Omit<ResourceDefinition, 'validate' | 'schema'> {
  /** Excludes functions, which are objects, too. */
  readonly validate: JsonSchema & { readonly call?: never };
  readonly schema?: undefined;
}

/**
 * Converts an object to another version of its kind: `toVersion` is its new `apiVersion`, such as `orders.example.com/v2`.
 * Returns a new object with the same name, namespace and uid. If it throws, the client gets 500.
 */
export type Convert = (object: KubernetesObject, toVersion: string) => KubernetesObject;

/** What is wrong with an object: a cause for each wrong field, or undefined if it is valid. */
export type ValidationResult = readonly FieldCause[] | undefined;

/** What is wrong with one field. Upstream: `metav1.StatusCause`. */
export interface FieldCause {
  /** The path, such as `spec.items[0].count`. */
  readonly field: string;
  readonly message: string;
  /** In one word. Default `FieldValueInvalid`. */
  readonly reason?: string | undefined;
}

/**
 * Finds what is wrong with an object by its schema; an empty list if nothing is. `old`: what it was, on an update. `part`: the
 * subresource at which it is written; at `status`, no other member has to match the schema, but all have to follow its rules.
 */
export type SchemaCheck = (object: KubernetesObject, old?: KubernetesObject, part?: string) => Work<readonly FieldCause[]>;

/** A JSON schema, as in OpenAPI v3. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** The types of columns: the one list of them. */
export const COLUMN_TYPES = ['string', 'integer', 'number', 'boolean', 'date'] as const;

/** What a cell may depend on besides its object. The server always passes it. */
export interface CellContext {
  /** The time of day, in milliseconds since 1970. */
  readonly now: number;
  /** The list of which the cell is a part; empty for one object, and for an event. */
  readonly list: readonly KubernetesObject[];
}

/** A column of a table. Upstream: `CustomResourceColumnDefinition`. */
export interface PrinterColumn<T extends KubernetesObject = KubernetesObject> {
  readonly name: string;
  readonly type: (typeof COLUMN_TYPES)[number];
  /**
   * What the cell shows. A column of type `date` shows the time since this date. If it throws an error, the cell is empty, and
   * `onError` is called with the error, once for each column.
   */
  readonly value: Of<T, [about?: CellContext], string | number | bigint | boolean | Date | null | undefined>;
  readonly description?: string | undefined;
  /** A hint for clients, such as `date-time`. Default empty. */
  readonly format?: string | undefined;
  /** Columns above 0 are shown only with `-o wide`. Default 0. */
  readonly priority?: number | undefined;
}

/**
 * Finds what is wrong with a schema before anything is checked against it: a misspelt keyword would silently check nothing.
 *
 * A schema may have keywords that only other tools know, so an unknown one is refused only if it resembles a known one.
 */

/** Keywords with schemas as members, keywords with schemas as list elements, and keywords that are schemas themselves. */
const NAMED = ['properties', 'patternProperties', 'definitions', '$defs', 'dependentSchemas'] as const;
const LISTED = ['allOf', 'anyOf', 'oneOf', 'prefixItems'] as const;
const SINGLE = [
  ...(['items', 'additionalItems', 'unevaluatedItems', 'contains', 'not', 'if', 'then', 'else'] as const),
  ...(['additionalProperties', 'unevaluatedProperties', 'propertyNames', 'contentSchema'] as const),
] as const;

/** The keywords of JSON Schema, from draft 4 to 2020-12, and of OpenAPI v3. */
const KEYWORDS: readonly string[] = [
  ...NAMED,
  ...LISTED,
  ...SINGLE,
  ...['$id', 'id', '$schema', '$vocabulary', '$comment', '$ref', '$anchor', '$dynamicRef', '$dynamicAnchor'],
  ...['$recursiveRef', '$recursiveAnchor', 'title', 'description', 'default', 'deprecated', 'readOnly', 'writeOnly'],
  ...['example', 'examples', 'externalDocs', 'discriminator', 'xml', 'nullable', 'type', 'format', 'enum', 'const'],
  ...['multipleOf', 'maximum', 'exclusiveMaximum', 'minimum', 'exclusiveMinimum', 'maxLength', 'minLength', 'pattern'],
  ...['maxItems', 'minItems', 'uniqueItems', 'maxContains', 'minContains', 'maxProperties', 'minProperties', 'required'],
  ...['dependentRequired', 'dependencies', 'contentEncoding', 'contentMediaType'],
];

/**
 * Checks a schema of objects.
 *
 * @throws {WatchError} INVALID_ARGUMENT that names the place.
 */
function checkSchema(name: string, schema: JsonSchema): void {
  const { type = 'object' } = schema;
  if (type !== 'object') throw invalid(`${name}.type`, type, '"object", as a server serves only objects');
  check(name, schema);
}

function check(name: string, schema: unknown): void {
  if (typeof schema === 'boolean') return;
  if (!isRecord(schema)) throw invalid(name, schema, 'a JSON schema, as an object');
  for (const keyword of Object.keys(schema)) checkKeyword(name, keyword);
  for (const keyword of NAMED) {
    const named = schema[keyword];
    if (named === undefined) continue;
    if (!isRecord(named)) throw invalid(`${name}.${keyword}`, named, 'an object of schemas');
    for (const [each, below] of Object.entries(named)) check(`${name}.${keyword}.${each}`, below);
  }
  for (const keyword of LISTED) {
    const listed = schema[keyword];
    if (listed === undefined) continue;
    if (!Array.isArray(listed)) throw invalid(`${name}.${keyword}`, listed, 'an array of schemas');
    for (const [at, below] of listed.entries()) check(`${name}.${keyword}[${at}]`, below);
  }
  for (const keyword of SINGLE) {
    const below = schema[keyword];
    // Before 2020, `items` could be a list.
    if (below !== undefined && !(keyword === 'items' && Array.isArray(below))) check(`${name}.${keyword}`, below);
  }
}

function checkKeyword(name: string, keyword: string): void {
  if (KEYWORDS.includes(keyword) || keyword.startsWith('x-')) return;
  // A word resembles another one if at most a third of its letters are wrong.
  const near = KEYWORDS.find((each) => distance(keyword, each) <= keyword.length / 3);
  if (near === undefined) return;
  throw new WatchError('INVALID_ARGUMENT', `${name}: unknown keyword ${keyword.slice(0, 80)}: did you mean ${near}?`);
}

/**
 * Checks a program's definition of a resource, so that what would break discovery, tables or writes later is reported when the
 * server is created.
 */

const LABEL = /^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/;
const SUBDOMAIN = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const KIND = /^[A-Za-z][A-Za-z0-9]{0,62}$/;
const COLUMN = ['name', 'type', 'value', 'description', 'format', 'priority'] as const;

/** Throws INVALID_ARGUMENT for a definition that could not be served. */
export function checkDefinition(definition: ResourceDefinition | SchemaDefinition): void {
  const { group, version, plural, kind, namespaced = true, status = false, ...more } = definition;
  if (group !== '') checkForm('group', group, { form: SUBDOMAIN, expected: 'a name such as example.com, or an empty string' });
  checkForm('version', version, { form: LABEL, expected: 'a version such as v1' });
  checkForm('plural', plural, { form: LABEL, expected: 'a name in lower case, such as orders' });
  checkForm('kind', kind, { form: KIND, expected: 'a name such as Order' });
  const { singular, listKind, shortNames = [], categories = [] } = more;
  if (singular !== undefined) checkForm('singular', singular, { form: LABEL, expected: 'a name in lower case' });
  if (listKind !== undefined) checkForm('listKind', listKind, { form: KIND, expected: 'a name such as OrderList' });
  for (const [name, list] of Object.entries({ shortNames, categories })) {
    checkList(name, list, 'an array of names in lower case');
    for (const [at, each] of list.entries()) checkForm(`${name}[${at}]`, each, { form: LABEL, expected: 'a name in lower case' });
  }
  checkFlag('namespaced', namespaced);
  checkFlag('status', status);
  checkFlag('preserveUnknownFields', more.preserveUnknownFields ?? true);
  checkScale(more.scale);
  const { shape } = more;
  const isShape = shape === undefined || (isRecord(shape) && shape.byNumber instanceof Map);
  if (!isShape) throw invalid('resource.shape', shape, 'that of a definition of kubernetesKinds');
  checkValidation(more);
  const { columns = [], fields = {} } = more;
  checkList('columns', columns, 'an array of columns');
  for (const [at, column] of columns.entries()) checkColumn(`resource.columns[${at}]`, column);
  if (!isRecord(fields)) throw invalid('resource.fields', fields, 'an object of functions');
  for (const [name, read] of Object.entries(fields)) callable(`resource.fields.${name}`, read ?? null);
}

/** Whether the value given as the function `validate` is a schema. */
export function isSchema(validate: unknown): validate is JsonSchema {
  return isRecord(validate);
}

function checkValidation({ validate, schema }: Pick<ResourceDefinition | SchemaDefinition, 'validate' | 'schema'>): void {
  if (schema !== undefined && !isRecord(schema)) throw invalid('resource.schema', schema, 'a JSON schema, as an object');
  if (schema !== undefined) checkSchema('resource.schema', schema);
  if (validate === undefined || typeof validate === 'function') return;
  if (!isSchema(validate)) throw invalid('resource.validate', validate, 'a function, or a JSON schema as an object');
  if (schema !== undefined) throw invalid('resource.validate', validate, 'a function, as there is a schema');
  checkSchema('resource.validate', validate);
}

const SCALE = ['specReplicasPath', 'statusReplicasPath', 'labelSelectorPath'] as const;
const PATH = /^\.(?:spec|status)(?:\.[\w-]+)+$/;

function checkScale(scale: ResourceDefinition['scale']): void {
  if (scale === undefined) return;
  if (!isRecord(scale)) throw invalid('resource.scale', scale, `an object: { ${SCALE.join(', ')} }`);
  checkOptions(scale, SCALE);
  const isBelow = (path: unknown, part: string): boolean =>
    typeof path === 'string' && PATH.test(path) && path.startsWith(`.${part}.`);
  const { specReplicasPath: spec, statusReplicasPath: status, labelSelectorPath: selector } = scale;
  if (!isBelow(spec, 'spec')) throw invalid('resource.scale.specReplicasPath', spec, 'a path such as .spec.replicas');
  if (!isBelow(status, 'status')) throw invalid('resource.scale.statusReplicasPath', status, 'a path such as .status.replicas');
  if (selector === undefined || isBelow(selector, 'spec') || isBelow(selector, 'status')) return;
  throw invalid('resource.scale.labelSelectorPath', selector, 'a path below .spec or .status, such as .status.selector');
}

function checkColumn(path: string, column: PrinterColumn): void {
  if (!isRecord(column)) throw invalid(path, column, 'a column: { name, type, value }');
  const { name, type, value, description = '', format = '', priority = 0 } = column;
  if (typeof name !== 'string' || name === '') throw invalid(`${path}.name`, name, 'a non-empty string');
  oneOf(`${path}.type`, type, COLUMN_TYPES);
  if (typeof value !== 'function') throw invalid(`${path}.value`, value, 'a function of an object');
  for (const [member, text] of Object.entries({ description, format }))
    if (typeof text !== 'string') throw invalid(`${path}.${member}`, text, 'a text');
  wholeNumber(`${path}.priority`, priority);
  checkOptions(column, COLUMN);
}

function checkForm(name: string, text: unknown, { form, expected }: { form: RegExp; expected: string }): void {
  // A pattern alone would accept a missing value as the text `undefined`.
  if (typeof text !== 'string' || !form.test(text)) throw invalid(`resource.${name}`, text, expected);
}

function checkList(name: string, list: unknown, expected: string): void {
  if (!Array.isArray(list)) throw invalid(`resource.${name}`, list, expected);
}

function checkFlag(name: string, flag: unknown): void {
  if (typeof flag !== 'boolean') throw invalid(`resource.${name}`, flag, 'true or false');
}
