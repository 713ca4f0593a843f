/**
 * The schemas of a server's resources: how they change an object, and what they find wrong with it.
 *
 *     OpenAPI v3 as in Kubernetes ---> structural.ts, values.ts, rules.ts
 *     $ref, if, const and the like --------> schema.ts: ajv
 */
import type { KubernetesObject } from '../../cache/object.ts';
import { getOrMake, isRecord, WatchError } from '../../watch/errors.ts';
import { inPieces, type Soon, type Work } from '../../watch/fair-queue.ts';
import type { FieldCause, JsonSchema, SchemaCheck } from '../definition.ts';
import type { Json } from '../request/json.ts';
import { embeddedCauses } from './embedded.ts';
import { toPattern, withPatterns } from './patterns.ts';
import { fitsQuickly } from './quick.ts';
import { compileRules, type RuleCheck } from './rules.ts';
import { compileJsonSchema } from './schema.ts';
import { mayShape, type ShapeTerms, type Structural, shaping, structuralOf } from './structural.ts';
import { listCauses, valueCauses } from './values.ts';

/** A kind, and its schema if it has one. */
interface Shaped {
  readonly schema?: JsonSchema | undefined;
  readonly preserveUnknownFields?: boolean | undefined;
}

/**
 * Compiles a schema.
 *
 * @throws {WatchError} INVALID_ARGUMENT if the schema is invalid, or needs a package that is not installed.
 */
export async function compileSchema(schema: JsonSchema): Promise<SchemaCheck> {
  if (isBeyond(schema)) return await compileJsonSchema(schema);
  const tree = structuralOf(schema);
  await withPatterns(() => inPieces(checkSource(schema, '')));
  const rules = await compileRules(tree);
  return (object, old, part = '') => checking({ tree, rules, part }, object, old);
}

/** Keywords of JSON Schema that OpenAPI v3 in Kubernetes lacks. */
const BEYOND: readonly string[] = [
  ...'$ref $dynamicRef $recursiveRef if then else const contains prefixItems propertyNames patternProperties dependencies'.split(
    ' ',
  ),
  ...'dependentRequired dependentSchemas additionalItems unevaluatedItems unevaluatedProperties minContains maxContains'.split(
    ' ',
  ),
];

/** The schemas directly below one, valid or not. */
function below(schema: JsonSchema): unknown[] {
  const lists = [schema.allOf, schema.anyOf, schema.oneOf].flatMap((each) => (Array.isArray(each) ? (each as unknown[]) : []));
  const named = isRecord(schema.properties) ? Object.values(schema.properties) : [];
  return [...named, ...lists, schema.items, schema.not].filter((each) => each !== undefined);
}

/** Whether a schema needs ajv. */
function isBeyond(schema: JsonSchema): boolean {
  if (BEYOND.some((keyword) => schema[keyword] !== undefined)) return true;
  const { additionalProperties: others } = schema;
  return [...below(schema), ...(isRecord(others) ? [others] : [])].some((each) => !isRecord(each) || isBeyond(each));
}

const TYPES: readonly string[] = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'];

/** Finds faults that would otherwise show only when an object is checked. */
function* checkSource(source: JsonSchema, path: string): Work<void> {
  yield;
  const { type, pattern, properties, additionalProperties: others, items, not } = source;
  const wrong = (Array.isArray(type) ? type : [type ?? 'object']).find((each) => !TYPES.includes(each));
  if (wrong !== undefined) {
    const given = JSON.stringify(wrong).slice(0, 80);
    throw new WatchError('INVALID_ARGUMENT', `schema: ${path}type ${given}: expected one of ${TYPES.join(', ')}`);
  }
  if (typeof pattern === 'string' && pattern !== '') toPattern(pattern);
  if (isRecord(properties)) {
    for (const name of Object.keys(properties)) yield* checkSource(properties[name] as JsonSchema, `${path}properties.${name}.`);
  }
  if (isRecord(others)) yield* checkSource(others, `${path}additionalProperties.`);
  if (isRecord(items)) yield* checkSource(items, `${path}items.`);
  const nested = [source.allOf, source.anyOf, source.oneOf].flatMap((each) =>
    Array.isArray(each) ? (each as JsonSchema[]) : [],
  );
  for (const each of isRecord(not) ? [...nested, not] : nested) yield* checkSource(each, path);
}

/** The causes that keep rules from being run: an object of the wrong form would break them. */
const BLOCKING: ReadonlySet<string | undefined> = new Set([
  ...['FieldValueNotSupported', 'FieldValueRequired', 'FieldValueTooLong', 'FieldValueTooMany', 'FieldValueTypeInvalid'],
]);

function* checking(
  { tree, rules, part }: { readonly tree: Structural; readonly rules: RuleCheck | undefined; readonly part: string },
  object: KubernetesObject,
  old: KubernetesObject | undefined,
): Work<readonly FieldCause[]> {
  // Few objects are wrong.
  const found = fitsQuickly(tree, object) ? [] : yield* causesOf({ tree, part }, object, old);
  if (rules === undefined) return found;
  if (!found.some(({ reason }) => BLOCKING.has(reason))) return [...found, ...(yield* rules(object, old))];
  const why =
    'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation';
  return [...found, { field: '<nil>', reason: 'FieldValueInvalid', message: `Invalid value: null: ${why}` }];
}

function* causesOf(
  { tree, part }: { readonly tree: Structural; readonly part: string },
  object: KubernetesObject,
  old: KubernetesObject | undefined,
): Work<FieldCause[]> {
  const found = yield* part === 'status'
    ? statusCauses(tree.properties?.get(part), object as Json, old as Json | undefined)
    : valueCauses(tree, object, old === undefined ? { path: '' } : { path: '', old });
  found.push(...(yield* embeddedCauses(tree, object)));
  const lists = yield* listCauses(tree, object);
  // An object that was already wrong there may stay so.
  if (lists.length > 0 && (old === undefined || (yield* listCauses(tree, old)).length === 0)) found.push(...lists);
  return found;
}

/** Upstream: `ValidateStatusUpdate`, whose messages name the place within the status. */
function* statusCauses(tree: Structural | undefined, { status }: Json, old: Json | undefined): Work<FieldCause[]> {
  if (tree === undefined || status === undefined) return [];
  const found = yield* valueCauses(tree, status, { path: '', old: old?.status });
  return found.map((cause) => ({ ...cause, field: cause.field === '<nil>' ? 'status' : `status.${cause.field}` }));
}

/** Objects that have been made to fit their schemas: once each, for all readers. */
const shaped: WeakMap<JsonSchema, WeakMap<object, object>> = new WeakMap();

const termsOf = ({ preserveUnknownFields = true }: Shaped): { prunes: boolean } => ({ prunes: !preserveUnknownFields });

/** Whether the schema of a kind may change its objects. */
export function isShaping(kind: Shaped): boolean {
  return kind.schema !== undefined && mayShape(structuralOf(kind.schema), termsOf(kind));
}

/**
 * An object made to fit its schema: unknown fields are removed, unless its kind preserves them, and defaults are added. `stored`:
 * the object does not change any more. `applied`: it is the result of an apply, so its nulls are not removed.
 */
export function* fitting<T extends object>(
  kind: Shaped,
  object: T,
  terms: Pick<ShapeTerms, 'stored' | 'applied' | 'refusal'> = {},
): Work<T> {
  if (kind.schema === undefined) return object;
  return yield* shaping(structuralOf(kind.schema), object, { ...termsOf(kind), ...terms });
}

/** An object without unknown fields, unless its kind preserves them. No defaults are added. */
export function* trimming<T extends object>(kind: Shaped, object: T): Work<T> {
  if (kind.schema === undefined || kind.preserveUnknownFields !== false) return object;
  return yield* shaping(structuralOf(kind.schema), object, { prunes: true, only: true });
}

/** The same for a stored object, for which it is done only once. */
export function* fittingStored<T extends object>(kind: Shaped, object: T): Work<T> {
  if (kind.schema === undefined || !isShaping(kind)) return object;
  const known = getOrMake(shaped, kind.schema, () => new WeakMap<object, object>());
  let made = known.get(object) as T | undefined;
  if (made === undefined) made = yield* shaping(structuralOf(kind.schema), object, { ...termsOf(kind), stored: true });
  known.set(object, made);
  return made;
}

/** Each schema, compiled once. */
export class Schemas {
  readonly #compiled: WeakMap<JsonSchema, Soon<SchemaCheck>> = new WeakMap();

  /**
   * Compiles all of them, so that the program learns of an invalid schema, or a missing package, before any client does. Rejects
   * with that error.
   */
  async prepare(resources: readonly Shaped[]): Promise<void> {
    for (const { schema } of resources) if (schema !== undefined) await this.#compile(schema);
  }

  /** The check of a resource's objects, once it is compiled; undefined for a resource without a schema. */
  checkOf({ schema }: Shaped): (() => Soon<SchemaCheck>) | undefined {
    if (schema === undefined) return undefined;
    return () => {
      const compiled = this.#compile(schema);
      // A schema that cannot be compiled is the server's error, not that of a client that writes an object.
      const refuse = (cause: unknown): never => {
        throw new Error((cause as Error).message, { cause });
      };
      return compiled instanceof Promise ? compiled.catch(refuse) : compiled;
    };
  }

  #compile(schema: JsonSchema): Soon<SchemaCheck> {
    const known = this.#compiled.get(schema);
    if (known !== undefined) return known;
    const compiling = compileSchema(schema);
    this.#compiled.set(schema, compiling);
    compiling.then(
      (check) => this.#compiled.set(schema, check),
      () => {},
    );
    return compiling;
  }
}
