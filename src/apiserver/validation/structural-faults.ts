/**
 * What is wrong with a schema before any object is checked against it: 422 for a CustomResourceDefinition, in upstream's words
 * and order. Upstream: `ValidateStructural` and `ValidateCustomResourceDefinitionOpenAPISchema`.
 *
 *     schema --> structure: a type everywhere, and only limits below allOf, anyOf, oneOf, not --> sorted
 *            '-> defaults fit (only if the structure is right)
 *            '-> keywords: unknown to Kubernetes' OpenAPI v3, lists, maps, rules
 */
import { comparing } from '../../storage/json.ts';
import { isRecord } from '../../watch/errors.ts';
import { inPieces, STRIDE, type Work } from '../../watch/fair-queue.ts';
import type { FieldCause, JsonSchema } from '../definition.ts';
import { OPEN } from '../documents/schemas.ts';
import { forbiddenCause, invalidCause, requiredCause, unsupportedCause } from './causes.ts';
import { embeddedCauses } from './embedded.ts';
import { faultOfPattern, withPatterns } from './patterns.ts';
import { ruleCauses } from './rule-faults.ts';
import { text } from './rules.ts';
import { inside, META_MEMBERS, named, pruned, toStructural } from './structural.ts';
import { valueCauses } from './values.ts';

/** The version of a kind whose schema is checked. */
interface FaultTerms {
  /** The path of the schema, such as `spec.versions[0].schema.openAPIV3Schema`. */
  readonly path: string;
  /** Whether `status` is a subresource. */
  readonly status?: boolean | undefined;
}

/** What is wrong with a schema; an empty list if it can be served. */
export async function structuralFaults(schema: JsonSchema, { path, status }: FaultTerms): Promise<FieldCause[]> {
  const { patterns, hasDefault, hasRule } = await inPieces(surveying(schema));
  const faults = await withPatterns(() => inPieces(patternFaults(patterns))).catch((error: unknown) => (error as Error).message);
  if (typeof faults === 'string') return [invalidCause(path, '', faults)];
  const work = function* (): Work<FieldCause[]> {
    const found = status ? statusCauses(schema, path) : [];
    if (schema.nullable === true) found.push(forbiddenCause(`${path}.nullable`, 'nullable cannot be true at the root'));
    const structure = new Structure(faults);
    const keywords = new Keywords(structure);
    yield* keywords.look(schema, path, { level: 'root' });
    if (keywords.isReadable) {
      yield* structure.complete(schema, schema, { at: path, path });
      found.push(...structure.found.sort((one, other) => (textOf(one) < textOf(other) ? -1 : 1)));
      if (structure.found.length === 0 && hasDefault) {
        found.push(...(yield* defaultCauses({ ...schema, 'x-kubernetes-embedded-resource': true }, path, false)));
      }
    }
    found.push(...keywords.found);
    if (found.length === 0 && !keywords.isReadable)
      found.push(invalidCause(path, '', "OpenAPIV3Schema 'schema' is not supported"));
    return found;
  };
  const found = await inPieces(work());
  // Other faults would only confuse the compiler of rules.
  return found.length > 0 || !hasRule ? found : await ruleCauses(schema, path);
}

/** The content of a schema, at any depth. */
interface Survey {
  readonly patterns: Set<string>;
  hasDefault: boolean;
  hasRule: boolean;
}

function* surveying(schema: JsonSchema): Work<Survey> {
  const seen: Survey = { patterns: new Set(), hasDefault: false, hasRule: false };
  const open = [schema];
  for (let steps = 1; ; steps++) {
    const each = open.pop();
    if (each === undefined) return seen;
    if (steps % STRIDE === 0) yield;
    if (text(each.pattern) !== '') seen.patterns.add(text(each.pattern));
    seen.hasDefault ||= each.default !== undefined;
    seen.hasRule ||= each['x-kubernetes-validations'] !== undefined;
    if (isLeaf(each)) continue;
    for (const [, below] of nested(each)) open.push(below);
    for (const [, below] of inside(each)) open.push(below);
  }
}

/** What is wrong with patterns, by their text. Each may take long to check. */
function* patternFaults(patterns: Iterable<string>): Work<ReadonlyMap<string, string | undefined>> {
  const faults = new Map<string, string | undefined>();
  for (const pattern of patterns) {
    faults.set(pattern, faultOfPattern(pattern));
    yield;
  }
  return faults;
}

const textOf = ({ field, message }: FieldCause): string => `${field}: ${message}`;

const JUNCTORS = ['anyOf', 'allOf', 'oneOf'] as const;

/** Whether there is no schema below one. */
const isLeaf = ({ properties, items, additionalProperties: others, allOf, anyOf, oneOf, not }: JsonSchema): boolean =>
  properties === undefined && items === undefined && others === undefined && (allOf ?? anyOf ?? oneOf ?? not) === undefined;

function* nested(schema: JsonSchema): Iterable<readonly [suffix: string, schema: JsonSchema, keyword?: string, at?: number]> {
  for (const keyword of JUNCTORS) {
    const listed = schema[keyword];
    if (!Array.isArray(listed)) continue;
    for (const [at, each] of listed.entries()) if (isRecord(each)) yield [`.${keyword}[${at}]`, each, keyword, at];
  }
  if (isRecord(schema.not)) yield ['.not', schema.not];
}

const size = (value: unknown): number => (isRecord(value) ? Object.keys(value).length : Array.isArray(value) ? value.length : 0);

/** Keywords that a schema may have at its root if `status` is a subresource. */
const AT_ROOT = [
  ...['Description', 'Type', 'Format', 'Title', 'Maximum', 'ExclusiveMaximum', 'Minimum', 'ExclusiveMinimum', 'MaxLength'],
  ...['MinLength', 'Pattern', 'MaxItems', 'MinItems', 'UniqueItems', 'MultipleOf', 'Required', 'Items', 'Properties'],
  ...['ExternalDocs', 'Example', 'XPreserveUnknownFields', 'XValidations'],
] as const;

function statusCauses(schema: JsonSchema, path: string): FieldCause[] {
  const type = text(schema.type);
  if (type !== '' && type !== 'object') {
    const why = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled';
    return [invalidCause(`${path}.type`, type, why)];
  }
  const names = AT_ROOT.map((name) => name.replace('X', 'xKubernetes').toLowerCase());
  const isEmpty = (value: unknown): boolean => !value || (typeof value === 'object' && size(value) === 0);
  const isOther = (name: string): boolean => !isEmpty(schema[name]) && !names.includes(name.replaceAll('-', '').toLowerCase());
  if (!Object.keys(schema).some(isOther)) return [];
  const why = `only [${AT_ROOT.join(' ')}] fields are allowed at the root of the schema if the status subresource is enabled`;
  return [invalidCause(path, schema, why)];
}

type Level = 'root' | 'item' | 'field';

const IS_EITHER = '[{"type":"integer"},{"type":"string"}]';
const isEither = (anyOf: unknown): boolean => JSON.stringify(anyOf) === IS_EITHER;

/** The invariants of a structural schema. */
class Structure {
  readonly found: FieldCause[] = [];
  readonly #patternFaults: ReadonlyMap<string, string | undefined>;

  constructor(patternFaults: ReadonlyMap<string, string | undefined>) {
    this.#patternFaults = patternFaults;
  }

  /** What is wrong with a place, regardless of what is below it. */
  place(schema: JsonSchema, path: string, level: Level): void {
    const add = (cause: FieldCause): number => this.found.push(cause);
    const type = text(schema.type);
    const embedded = schema['x-kubernetes-embedded-resource'] === true;
    const either = schema['x-kubernetes-int-or-string'] === true;
    const open = schema[OPEN] === true;
    if (type === 'array' && !isRecord(schema.items)) add(requiredCause(`${path}.items`, 'must be specified'));
    if (schema.additionalProperties !== undefined && level === 'root') {
      add(forbiddenCause(`${path}.additionalProperties`, 'must not be used at the root'));
    }
    if (either && open) add(invalidCause(`${path}.${OPEN}`, true, 'must be false if x-kubernetes-int-or-string is true'));
    if (either && embedded) {
      add(invalidCause(`${path}.x-kubernetes-embedded-resource`, true, 'must be false if x-kubernetes-int-or-string is true'));
    }
    const { allOf } = schema;
    const first = Array.isArray(allOf) && isRecord(allOf[0]) ? allOf[0].anyOf : undefined;
    this.#values(schema, path, { anyOf: isEither(schema.anyOf), first: isEither(first) });
    this.#types({ path, type, level, embedded, isAny: either || open });
    this.#meta(schema, { path, level, embedded });
    if (embedded && schema.additionalProperties !== undefined) {
      add(forbiddenCause(`${path}.additionalProperties`, 'must not be used if x-kubernetes-embedded-resource is set'));
    }
    if (embedded && !open && size(schema.properties) === 0) {
      const why = 'must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields';
      add(requiredCause(`${path}.properties`, why));
    }
  }

  #types(place: { path: string; type: string; level: Level; embedded: boolean; isAny: boolean }): void {
    const { path, type, level, embedded, isAny } = place;
    const at = `${path}.type`;
    if (embedded && type !== 'object') {
      const why = 'must be object if x-kubernetes-embedded-resource is true';
      this.found.push(type === '' ? requiredCause(at, why) : invalidCause(at, type, why));
    } else if (type === '' && !isAny) {
      const where = { root: 'at the root', item: 'for specified array items', field: 'for specified object fields' }[level];
      this.found.push(requiredCause(at, `must not be empty ${where}`));
    }
    if (level === 'root' && type !== '' && type !== 'object')
      this.found.push(invalidCause(at, type, 'must be object at the root'));
  }

  #meta(schema: JsonSchema, { path, level, embedded }: { path: string; level: Level; embedded: boolean }): void {
    const isChecked = level === 'root' || embedded;
    const { properties } = schema;
    if (!isRecord(properties)) return;
    for (const name of META_MEMBERS) {
      const each = Object.hasOwn(properties, name) ? properties[name] : undefined;
      if (!isRecord(each)) continue;
      const suffix = `.properties[${name}]`;
      const type = text(each.type);
      if (isChecked && (name === 'kind' || name === 'apiVersion') && type !== 'string') {
        this.found.push(invalidCause(`${path}${suffix}.type`, type, 'must be string'));
      }
      if (name !== 'metadata') continue;
      if (isChecked && type !== 'object') this.found.push(invalidCause(`${path}${suffix}.type`, type, 'must be object'));
      const { type: _, default: __, properties: inner = {}, ...more } = each;
      const hasOthers = Object.keys(inner as object).some((one) => one !== 'name' && one !== 'generateName');
      if (level !== 'root' || (!hasOthers && Object.values(more).every((one) => !one))) continue;
      const why = 'must not specify anything other than name and generateName, but metadata is implicitly specified';
      this.found.push(forbiddenCause(path + suffix, why));
    }
  }

  /** `skip`: the keywords that declare int-or-string. */
  #values(schema: JsonSchema, path: string, skip: { readonly anyOf?: boolean; readonly first?: boolean } = {}): void {
    for (const [suffix, each, keyword, at] of nested(schema)) {
      if (keyword === 'anyOf' && skip.anyOf) continue;
      this.#nested(each, path + suffix, keyword === 'allOf' && at === 0 && skip.first === true);
    }
    const why = this.#patternFaults.get(text(schema.pattern));
    if (why === undefined) return;
    this.found.push(invalidCause(`${path}.pattern`, schema.pattern, `must be a valid regular expression, but isn't: ${why}`));
  }

  #nested(schema: JsonSchema, path: string, skipAnyOf: boolean): void {
    const forbid = (keyword: string, why: string): number => this.found.push(forbiddenCause(`${path}.${keyword}`, why));
    this.#values(schema, path, { anyOf: skipAnyOf });
    if (isRecord(schema.items)) this.#nested(schema.items, `${path}.items`, false);
    for (const [suffix, each] of named(schema)) this.#nested(each, path + suffix, false);
    for (const [keyword, why] of FORBIDDEN) {
      const value = schema[keyword];
      const isSet = keyword === 'default' ? (value ?? undefined) !== undefined : Array.isArray(value) ? value.length > 0 : value;
      if (isSet) forbid(keyword, `must be ${why} to be structural`);
    }
    if (isRecord(schema.properties) && Object.hasOwn(schema.properties, 'metadata')) {
      forbid('properties[metadata]', 'must not be specified in a nested context');
    }
  }

  /** Everything that is limited below allOf and the like must also be declared outside of them. */
  *complete(values: JsonSchema, tree: JsonSchema, { at, path }: { at: string; path: string }): Work<void> {
    yield;
    for (const [suffix, each] of nested(values)) yield* this.#completeNested(each, tree, { at, path: path + suffix });
  }

  *#completeNested(values: JsonSchema, tree: JsonSchema, { at, path }: { at: string; path: string }): Work<void> {
    yield* this.complete(values, tree, { at, path });
    const pairs: [string, JsonSchema, unknown][] = isRecord(values.items) ? [['.items', values.items, tree.items]] : [];
    const known = isRecord(tree.properties) ? tree.properties : {};
    for (const [suffix, each, name] of named(values))
      pairs.push([suffix, each, Object.hasOwn(known, name) ? known[name] : undefined]);
    for (const [suffix, each, other] of pairs) {
      const [to, from] = [at + suffix, path + suffix];
      if (isRecord(other)) yield* this.#completeNested(each, other, { at: to, path: from });
      else this.found.push(requiredCause(to, `because it is defined in ${from}`));
    }
  }
}

/** Keywords that are forbidden below allOf and the like, and what they must be instead. */
const FORBIDDEN: readonly (readonly [keyword: string, why: string])[] = [
  ...of('empty', 'type'),
  ...of('undefined', 'additionalProperties', 'default'),
  ...of('empty', 'title', 'description'),
  ...of('false', 'nullable', OPEN, 'x-kubernetes-embedded-resource', 'x-kubernetes-int-or-string'),
  ...of('empty', 'x-kubernetes-list-map-keys'),
  ...of('undefined', 'x-kubernetes-list-type', 'x-kubernetes-map-type'),
  ...of('empty', 'x-kubernetes-validations'),
];

function of(why: string, ...keywords: readonly string[]): readonly (readonly [keyword: string, why: string])[] {
  return keywords.map((keyword) => [keyword, why]);
}

/** A default must be valid, and have no unknown fields. */
function* defaultCauses(schema: JsonSchema, path: string, inMeta: boolean): Work<FieldCause[]> {
  yield;
  const found: FieldCause[] = [];
  const embedded = schema['x-kubernetes-embedded-resource'] === true;
  const { default: value } = schema;
  const at = `${path}.default`;
  const below = (cause: FieldCause): FieldCause => ({ ...cause, field: cause.field === '<nil>' ? at : `${at}.${cause.field}` });
  if (value !== undefined && value !== null) {
    const tree = toStructural(schema, true);
    const known = inMeta || typeof value !== 'object' ? value : yield* pruned(tree, value);
    if (!(yield* comparing(known, value))) found.push(invalidCause(at, value, 'must not have unknown fields'));
    const inner = yield* embeddedCauses(tree, value, at);
    const malformed = inner.filter(({ message }) => message.endsWith('must be a string')).slice(0, 1);
    const causes = malformed.length > 0 ? malformed : inner;
    found.push(...(causes.length > 0 ? causes : (yield* valueCauses(tree, value, { path: '' })).map(below)));
  }
  if (isRecord(schema.items)) found.push(...(yield* defaultCauses(schema.items, `${path}.items`, inMeta)));
  for (const [suffix, each, name] of named(schema)) {
    found.push(...(yield* defaultCauses(each, path + suffix, inMeta || (embedded && META_MEMBERS.has(name)))));
  }
  return found;
}

interface Place {
  /** Absent below allOf and the like. */
  readonly level?: Level;
  readonly inMeta?: boolean;
  /** Why there may be no default. */
  readonly noDefault?: string;
}

const TYPES = ['array', 'boolean', 'integer', 'number', 'object', 'string'];
const REASONS = ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired'];
const UNSUPPORTED = ['additionalItems', 'patternProperties', 'definitions', 'dependencies', '$ref'] as const;

/** Checks single keywords. Also passes all places, except those below allOf and the like, to `structure`. */
class Keywords {
  readonly found: FieldCause[] = [];
  /** Whether the schema can be made structural. */
  isReadable: boolean = true;
  readonly #structure: Structure;

  constructor(structure: Structure) {
    this.#structure = structure;
  }

  *look(schema: JsonSchema, path: string, place: Place): Work<void> {
    yield;
    this.#before(schema, path, place);
    const { additionalProperties: others } = schema;
    const { level, ...rest } = place;
    const isRoot = level === 'root';
    const field: Place = level === undefined ? rest : { ...rest, level: 'field' };
    if (isRecord(others)) {
      const noDefault = 'inside additionalProperties applying to object metadata';
      yield* this.look(others, `${path}.additionalProperties`, field.inMeta ? { ...field, noDefault } : field);
    }
    const isObject = isRoot || schema['x-kubernetes-embedded-resource'] === true;
    let steps = 0;
    for (const [suffix, each, name] of named(schema)) {
      if (++steps % STRIDE === 0) yield;
      const isMeta = isObject && META_MEMBERS.has(name);
      const noDefault = isMeta && isRoot ? { noDefault: `in top-level ${name}` } : {};
      const inner = isMeta ? { ...field, inMeta: true, ...noDefault } : field;
      if (isLeaf(each)) this.#alone(each, path + suffix, inner);
      else yield* this.look(each, path + suffix, inner);
    }
    for (const [suffix, each] of nested(schema)) {
      if (isLeaf(each)) this.#alone(each, path + suffix, rest);
      else yield* this.look(each, path + suffix, rest);
    }
    if (isRecord(schema.items)) {
      yield* this.look(schema.items, `${path}.items`, level === undefined ? rest : { ...rest, level: 'item' });
    }
    this.#after(schema, path);
  }

  /** The same for a schema with nothing below. */
  #alone(schema: JsonSchema, path: string, place: Place): void {
    this.#before(schema, path, place);
    this.#after(schema, path);
  }

  #before(schema: JsonSchema, path: string, place: Place): void {
    if (place.level !== undefined) this.#structure.place(schema, path, place.level);
    this.#standard(schema, path, place);
    const { additionalProperties: others } = schema;
    if (others === undefined || others === true || size(schema.properties) === 0) return;
    this.#forbid(`${path}.additionalProperties`, 'additionalProperties and properties are mutual exclusive');
  }

  #after(schema: JsonSchema, path: string): void {
    this.#lists(schema, path);
    this.#listOfMaps(schema, path);
    this.#rules(schema, path);
  }

  #forbid(field: string, why: string): void {
    this.found.push(forbiddenCause(field, why));
  }

  #refuse(field: string, why: string): void {
    this.isReadable = false;
    this.#forbid(field, why);
  }

  #standard(schema: JsonSchema, path: string, { noDefault, inMeta }: Place): void {
    const type = text(schema.type);
    if (type !== '' && !TYPES.includes(type)) this.found.push(unsupportedCause(`${path}.type`, type, TYPES));
    if (schema.default !== undefined && noDefault !== undefined) this.#forbid(`${path}.default`, `must not be set ${noDefault}`);
    // It is told only if nothing else is wrong.
    if (text(schema.$schema) !== '') this.isReadable = false;
    if (text(schema.id) !== '') this.#refuse(`${path}.id`, 'id is not supported');
    for (const keyword of UNSUPPORTED) {
      const value = schema[keyword];
      const isSet = keyword.endsWith('rties') || keyword === 'definitions' ? size(value) > 0 : value !== undefined;
      if (isSet) this.#refuse(`${path}.${keyword}`, `${keyword} is not supported`);
    }
    if (type === 'null') this.#forbid(`${path}.type`, 'type cannot be set to null, use nullable as an alternative');
    if (size(schema.items) > 0 && Array.isArray(schema.items)) {
      this.#refuse(`${path}.items`, 'items must be a schema object and not an array');
    }
    if (inMeta && schema['x-kubernetes-embedded-resource'] === true) {
      this.#forbid(`${path}.x-kubernetes-embedded-resource`, 'must not be used inside of resource meta');
    }
    if (schema.uniqueItems !== true) return;
    this.#forbid(`${path}.uniqueItems`, 'uniqueItems cannot be set to true since the runtime complexity becomes quadratic');
  }

  #typed(schema: JsonSchema, path: string, { keyword, type }: { keyword: string; type: string }): boolean {
    if (schema[keyword] === undefined || schema.type === type) return false;
    const why = `must be ${type} if ${keyword} is specified`;
    this.found.push(
      text(schema.type) === '' ? requiredCause(`${path}.type`, why) : invalidCause(`${path}.type`, schema.type, why),
    );
    return true;
  }

  #lists(schema: JsonSchema, path: string): void {
    const [mapType, listType] = [schema['x-kubernetes-map-type'], schema['x-kubernetes-list-type']];
    if (schema[OPEN] === false) {
      this.isReadable = false;
      this.found.push(invalidCause(`${path}.${OPEN}`, false, 'must be true or undefined'));
    }
    this.#typed(schema, path, { keyword: 'x-kubernetes-map-type', type: 'object' });
    if (mapType !== undefined && mapType !== 'atomic' && mapType !== 'granular') {
      this.found.push(unsupportedCause(`${path}.x-kubernetes-map-type`, mapType, ['atomic', 'granular']));
    }
    const isNoList = this.#typed(schema, path, { keyword: 'x-kubernetes-list-type', type: 'array' });
    const items = isRecord(schema.items) ? schema.items : undefined;
    if (!isNoList && listType === 'set' && items !== undefined) {
      const why = 'must be atomic as item of a list with x-kubernetes-list-type=set';
      const [inner, map] = [items['x-kubernetes-list-type'], items['x-kubernetes-map-type']];
      if (items.type === 'array' && inner !== undefined && inner !== 'atomic') {
        this.found.push(invalidCause(`${path}.items.x-kubernetes-list-type`, inner, why));
      } else if (items.type === 'object' && map !== 'atomic') {
        this.found.push(invalidCause(`${path}.items.x-kubernetes-map-type`, inner ?? null, why));
      }
    }
    if (listType !== undefined && listType !== 'atomic' && listType !== 'set' && listType !== 'map') {
      this.found.push(unsupportedCause(`${path}.x-kubernetes-list-type`, listType, ['atomic', 'set', 'map']));
    }
  }

  #listOfMaps(schema: JsonSchema, path: string): void {
    const listType = schema['x-kubernetes-list-type'];
    const given = schema['x-kubernetes-list-map-keys'];
    const keys = Array.isArray(given) ? (given as unknown[]).map(text) : [];
    const items = isRecord(schema.items) ? schema.items : undefined;
    const at = `${path}.x-kubernetes-list-map-keys`;
    if (keys.length > 0 && listType !== 'map') {
      const why = 'must be map if x-kubernetes-list-map-keys is non-empty';
      const where = `${path}.x-kubernetes-list-type`;
      this.found.push(listType === undefined ? requiredCause(where, why) : invalidCause(where, listType, why));
    }
    if (listType === 'map') {
      if (keys.length === 0) this.found.push(requiredCause(at, 'must not be empty if x-kubernetes-list-type is map'));
      if (schema.items === undefined)
        this.found.push(requiredCause(`${path}.items`, 'must have a schema if x-kubernetes-list-type is map'));
      if (items !== undefined && items.type !== 'object') {
        this.found.push(
          invalidCause(`${path}.items.type`, text(items.type), "must be object if parent array's x-kubernetes-list-type is map"),
        );
      }
      if (items?.type === 'object') this.#keys(items, { path, keys, at });
    }
    if (items === undefined || (listType !== 'set' && listType !== 'map')) return;
    if (items.nullable === true)
      this.#forbid(`${path}.items.nullable`, `cannot be nullable when x-kubernetes-list-type is ${listType}`);
    if (listType === 'map') this.#keysOf(items, path, keys);
  }

  #keys(items: JsonSchema, { path, keys, at }: { path: string; keys: readonly string[]; at: string }): void {
    const properties = isRecord(items.properties) ? items.properties : {};
    const seen = new Set<string>();
    for (const key of keys) {
      const known = Object.hasOwn(properties, key) ? properties[key] : undefined;
      if (!isRecord(known)) this.found.push(invalidCause(at, keys, 'entries must all be names of item properties'));
      else if (known.type === 'array' || known.type === 'object') {
        const why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
        this.found.push(invalidCause(`${path}.items.properties[${key}].type`, items.type, why));
      }
      if (seen.has(key)) this.found.push(invalidCause(at, keys, 'must not contain duplicate entries'));
      seen.add(key);
    }
  }

  #keysOf(items: JsonSchema, path: string, keys: readonly string[]): void {
    const properties = isRecord(items.properties) ? items.properties : {};
    const required = new Set(Array.isArray(items.required) ? (items.required as unknown[]) : []);
    for (const key of keys) {
      const known = Object.hasOwn(properties, key) ? properties[key] : undefined;
      if (!isRecord(known)) continue;
      const at = `${path}.items.properties[${key}]`;
      if (!required.has(key) && (known.default ?? undefined) === undefined) {
        const why = 'this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property';
        this.found.push(requiredCause(`${at}.default`, why));
      }
      if (known.nullable !== true) continue;
      this.#forbid(`${at}.nullable`, 'this property is in x-kubernetes-list-map-keys, so it cannot be nullable');
    }
  }

  #rules(schema: JsonSchema, path: string): void {
    const rules = schema['x-kubernetes-validations'];
    if (!Array.isArray(rules)) return;
    for (const [at, rule] of rules.entries()) {
      const where = `${path}.x-kubernetes-validations[${at}]`;
      const { message, messageExpression, reason, fieldPath } = isRecord(rule) ? rule : {};
      const given = isRecord(rule) ? text(rule.rule).trim() : '';
      const said = text(message);
      if (given === '') this.found.push(requiredCause(`${where}.rule`, 'rule is not specified'));
      else if (said !== '' && said.trim() === '')
        this.found.push(invalidCause(`${where}.message`, said, 'must be non-empty if specified'));
      else if (hasBreak(said.trim())) this.found.push(invalidCause(`${where}.message`, said, 'must not contain line breaks'));
      else if (hasBreak(given) && said === '') {
        this.found.push(requiredCause(`${where}.message`, 'message must be specified if rule contains line breaks'));
      }
      if (text(messageExpression) !== '' && text(messageExpression).trim() === '') {
        this.found.push(requiredCause(`${where}.messageExpression`, 'messageExpression must be non-empty if specified'));
      }
      if (reason !== undefined && !REASONS.includes(text(reason)))
        this.found.push(unsupportedCause(`${where}.reason`, reason, REASONS));
      const field = text(fieldPath);
      if (field === '') continue;
      if (field.trim() === '') this.found.push(invalidCause(`${where}.fieldPath`, field, 'must be non-empty if specified'));
      if (hasBreak(field)) this.found.push(invalidCause(`${where}.fieldPath`, field, 'must not contain line breaks'));
      if (!isFieldPath(schema, field)) this.found.push(invalidCause(`${where}.fieldPath`, field, 'must be a valid path'));
    }
  }
}

const hasBreak = (text: string): boolean => /[\n\r]/.test(text);

const STEP = /\.([^.[\]]+)|\['((?:[^'\\]|\\.)*)'\]/y;

/** Whether a path leads to something that the schema names. */
function isFieldPath(schema: JsonSchema, path: string): boolean {
  let at = schema;
  STEP.lastIndex = 0;
  while (STEP.lastIndex < path.length) {
    const [, plain, bracketed] = STEP.exec(path) ?? [];
    const name = plain ?? bracketed?.replace(/\\(.)/g, '$1');
    if (name === undefined) return false;
    const { properties, additionalProperties: others } = at;
    const below = isRecord(properties) ? Object.hasOwn(properties, name) && properties[name] : others;
    if (!isRecord(below)) return false;
    at = below;
  }
  return true;
}
