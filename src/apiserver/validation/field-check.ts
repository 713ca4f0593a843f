/**
 * Reports fields of a write that are unknown, or were sent twice, in upstream's words. Upstream: `fieldValidation` of
 * `endpoints/handlers`.
 *
 *     body ----> sent twice --.
 *                             +--> Strict: 400, or 422 for a patch's result    Warn: reported, and stored
 *     object --> unknown -----'
 */

import { FIELD_VALIDATIONS, type FieldValidation } from '../../cache/resource-client.ts';
import { getOrMake, isRecord } from '../../watch/errors.ts';
import { type Soon, STRIDE, type Work } from '../../watch/fair-queue.ts';
import { badRequest, invalidObject, invalidOptions } from '../api-status.ts';
import type { JsonSchema } from '../definition.ts';
import { OBJECT_META, OPEN, SHARED, schemaOf } from '../documents/schemas.ts';
import type { Shape } from '../kinds/shape.ts';
import { messageOf, shapeOf } from '../kinds/tables.ts';
import { FieldPaths, type Json, type Step } from '../request/json.ts';
import type { SeenKind } from '../subresources.ts';
import { isOfKind, shown } from '../verbs/metadata.ts';
import { jsonStart } from './causes.ts';
import { type Pattern, toPattern, withPatterns } from './patterns.ts';
import { shaping, structuralOf } from './structural.ts';

/**
 * Finds the fields of an object that its schema does not know: they are probably misspelt.
 *
 *     schema of a kind ---> KnownFields, a tree, made once ---> unknownFields(tree, object) ---> their paths
 *
 * A JSON schema allows members that it does not name, unless it says `additionalProperties: false`. So unknown fields are not
 * errors: the object is stored as it is. In Kubernetes, it is the other way round: if a schema names members, others are unknown,
 * unless `additionalProperties`, `patternProperties` or `x-kubernetes-preserve-unknown-fields` admits them. A schema that names
 * no members admits any. Each part of `allOf`, `anyOf` and the like may name some. A `$ref` within the schema is not followed:
 * any member may be there.
 */

/** The names that a schema knows in one place, and below it. */
interface KnownFields {
  /** The members that it names. */
  readonly members: ReadonlyMap<string, KnownFields>;
  readonly patterns: readonly (readonly [Pattern, KnownFields])[];
  /** What is known below other members; undefined if there may be none. */
  readonly others: KnownFields | undefined;
  /** What is known of the elements of a list. */
  readonly items: KnownFields | undefined;
}

/** Nothing is unknown here, at any depth: the check goes no further. */
const ANY: KnownFields = { members: new Map(), patterns: [], others: undefined, items: undefined };

/** The tables of built-in kinds, which may contain themselves. */
const ofShapes: Map<Shape, KnownFields> = new Map();

/** The same for a table. */
function knownOfShape(shape: Shape): KnownFields {
  const known = ofShapes.get(shape);
  if (known !== undefined) return known;
  const members = new Map<string, KnownFields>();
  const made: { -readonly [K in keyof KnownFields]: KnownFields[K] } = {
    members,
    patterns: [],
    others: undefined,
    items: undefined,
  };
  ofShapes.set(shape, made);
  for (const { name, type, form } of shape.fields) {
    const below = typeof type === 'string' ? ANY : knownOfShape(type);
    if (form === '^') for (const [member, known] of below.members) members.set(member, known);
    else if (shape.memberOf !== undefined) {
      // The value is such an object, whose members may not all be known yet, or a list of them.
      if (form === '[]') made.items = below;
      else if (below !== ANY) made.members = below.members;
    } else if (form === '[]') members.set(name, below === ANY ? ANY : { ...ANY, items: below });
    else members.set(name, form === '{}' && below !== ANY ? { ...ANY, others: below } : below);
  }
  return made;
}

/** The keywords that name members. */
const NAMING = ['properties', 'patternProperties', 'additionalProperties'] as const;
const IN_LISTS = ['allOf', 'anyOf', 'oneOf'] as const;
const AS_SUCH = ['if', 'then', 'else'] as const;
/** Keywords that lead to schemas which are not followed. */
const BEYOND = ['$ref', '$dynamicRef', '$recursiveRef', 'dependencies', 'dependentSchemas'] as const;
const REFERENCE = '#/components/schemas/';

/** Reads a schema. One with patterns needs the engine for them: see `withPatterns`. */
export function toKnownFields(schema: JsonSchema): KnownFields {
  return combined([schema], false);
}

/** What several schemas know together about one place. If a list preserves unknown fields, so do its elements. */
function combined(schemas: readonly unknown[], preserved: boolean): KnownFields {
  const parts = schemas.flatMap(partsOf);
  if (parts.length === 0) return ANY;
  const of = (keyword: string): unknown[] => parts.map((part) => part[keyword]).filter((each) => each !== undefined);
  const has = (keyword: string): boolean => of(keyword).length > 0;
  const keeps = preserved || of(OPEN).includes(true);
  const others = of('additionalProperties').filter((each) => each !== false);
  const isOpen = keeps || others.length > 0 || !NAMING.some(has) || BEYOND.some(has);
  const known: KnownFields = {
    members: new Map(Array.from(grouped(parts, 'properties'), ([name, each]) => [name, combined(each, false)])),
    patterns: Array.from(grouped(parts, 'patternProperties'), ([source, each]) => {
      return [toPattern(source), combined(each, false)] as const;
    }),
    others: isOpen ? combined(others, false) : undefined,
    items: combined(of('items'), keeps),
  };
  return isAny(known) ? ANY : known;
}

function isAny({ members, patterns, others, items }: KnownFields): boolean {
  const named = [...members.values(), ...patterns.map(([, each]) => each)];
  return [others, items, ...named].every((each) => each === ANY);
}

/** A schema, and the schemas of which it is composed. A value that is not a schema admits anything. */
function partsOf(schema: unknown): Json[] {
  if (!isRecord(schema)) return [];
  const { $ref, ...own } = schema;
  if (typeof $ref === 'string' && $ref.startsWith(REFERENCE)) {
    return partsOf({ ...own, ...SHARED[$ref.slice(REFERENCE.length)] });
  }
  const listed = IN_LISTS.flatMap((name) => (Array.isArray(schema[name]) ? (schema[name] as unknown[]) : []));
  return [withEmbedded(schema), ...[...listed, ...AS_SUCH.map((name) => schema[name])].flatMap(partsOf)];
}

/** An embedded object also has metadata. */
function withEmbedded(schema: Json): Json {
  if (schema['x-kubernetes-embedded-resource'] !== true) return schema;
  const properties = isRecord(schema.properties) ? schema.properties : {};
  return { ...schema, properties: { ...properties, apiVersion: {}, kind: {}, metadata: { $ref: REFERENCE + OBJECT_META } } };
}

/** The schemas under each name, of all parts. */
function grouped(parts: readonly Json[], keyword: 'properties' | 'patternProperties'): Map<string, unknown[]> {
  const groups = new Map<string, unknown[]>();
  for (const part of parts) {
    const named = part[keyword];
    if (!isRecord(named)) continue;
    for (const [name, schema] of Object.entries(named)) groups.set(name, [...(groups.get(name) ?? []), schema]);
  }
  return groups;
}

/**
 * Finds the unknown fields of an object. Those that `before` has in the same place are left out: a change of one part of an
 * object does not report the rest.
 */
export function* unknownFields(known: KnownFields, object: unknown, before?: unknown): Work<FieldPaths> {
  const found = new FieldPaths();
  if (known !== ANY) yield* look(known, object, { before, steps: [], found });
  return found;
}

interface Search {
  readonly before: unknown;
  readonly steps: Step[];
  readonly found: FieldPaths;
}

function* look(known: KnownFields, value: unknown, search: Search): Work<void> {
  const { before, steps, found } = search;
  const names = isRecord(value) ? Object.keys(value) : undefined;
  if (names === undefined && !Array.isArray(value)) return;
  const members = value as Readonly<Record<Step, unknown>>;
  const count = names?.length ?? (value as readonly unknown[]).length;
  if (count > STRIDE) yield;
  for (let at = 0; at < count; at++) {
    if (at % STRIDE === STRIDE - 1) yield;
    const step = names?.[at] ?? at;
    const below = typeof step === 'number' ? known.items : (known.members.get(step) ?? otherOf(known, step));
    const member = members[step];
    if (below === undefined) {
      if (names && !hasOwn(before, step)) found.add(() => [...steps, step]);
    } else if (below !== ANY && typeof member === 'object') {
      steps.push(step);
      yield* look(below, member, { before: hasOwn(before, step) ? before[step] : undefined, steps, found });
      steps.pop();
    }
  }
}

/** What a schema knows below a member that it does not name; undefined if the member is unknown. */
function otherOf({ patterns, others }: KnownFields, name: string): KnownFields | undefined {
  return patterns.find(([form]) => form.test(name))?.[1] ?? others;
}

const hasOwn = (value: unknown, step: Step): value is Readonly<Record<Step, unknown>> =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, step);

/** Reads the parameter of a write. Throws 422, which names the `options` of the verb. */
export function readFieldValidation(text: string, options: string): FieldValidation {
  if (text === '') return 'Warn';
  const found = FIELD_VALIDATIONS.find((each) => each === text);
  if (found !== undefined) return found;
  const supported = ['', ...FIELD_VALIDATIONS].map((each) => JSON.stringify(each)).join(', ');
  const message = `Unsupported value: ${shown(text)}: supported values: ${supported}`;
  throw invalidOptions(options, [{ field: 'fieldValidation', message }]);
}

/** What is wrong with the fields of a write. */
export interface FieldFaults {
  readonly texts: readonly string[];
  /** How many more faults there are. */
  readonly more: number;
}

/** Checks the fields of one write. */
export class FieldCheck {
  readonly #kind: SeenKind;
  readonly #known: KnownFields;
  readonly #warn: ((faults: FieldFaults) => void) | undefined;
  #twice: FieldPaths | undefined;

  private constructor(kind: SeenKind, known: KnownFields, warn: ((faults: FieldFaults) => void) | undefined) {
    this.#kind = kind;
    this.#known = known;
    this.#warn = warn;
  }

  /** After each check, `warn` is called with what is wrong. Without `warn`, anything wrong is refused. */
  static of(seen: SeenKind, warn?: (faults: FieldFaults) => void): Soon<FieldCheck> {
    const known = knownFields.get(seen);
    return known === undefined ? FieldCheck.#made(seen, warn) : new FieldCheck(seen, known, warn);
  }

  static async #made(seen: SeenKind, warn?: (faults: FieldFaults) => void): Promise<FieldCheck> {
    const known = await withPatterns(() => knownFieldsOf(seen)).catch((cause: unknown) => {
      // A schema that cannot be read is the server's error, not that of a client that writes an object.
      throw new Error((cause as Error).message, { cause });
    });
    return new FieldCheck(seen, known, warn);
  }

  /** Called by the reader of the body with the members that occur twice. */
  readonly again = (duplicates: FieldPaths): void => {
    this.#twice = duplicates;
  };

  /** Checks an object that was sent. Throws 400. An object of another kind is refused by its reader. */
  *object(sent: unknown): Work<void> {
    if (!isOfKind(this.#kind, sent)) return;
    const unknown = yield* unknownOf(this.#kind, this.#known, sent as object);
    if (!this.#twice && unknown.isEmpty) {
      this.#warn?.(NO_FAULTS);
      return;
    }
    const found: Found[] = [
      ['duplicate', this.#twice?.told, this.#twice?.more],
      // Upstream decodes a built-in kind as it reads it, and looks through the maps that others have become.
      ['unknown', ...(shapeOf(this.#kind) ? ([unknown.told, unknown.more] as const) : sorted(unknown))],
    ];
    this.#tell(found, (why) => unreadable(this.#kind, why));
  }

  /**
   * Checks the result of a patch. Fields that were unknown before are not reported: they are kept here, and a patch of something
   * else must not fail because of them. Throws 422, as upstream.
   */
  *patched(patch: unknown, made: object, current: object): Work<void> {
    const of = Array.isArray(patch) ? 'json patch ' : '';
    const found: Found[] = [
      [`${of}duplicate`, this.#twice?.told, this.#twice?.more],
      ...(of ? [[`${of}unknown`, ...sorted(yield* unknownFields(OPERATIONS, patch))] as const] : []),
      ['unknown', ...sorted(yield* unknownOf(this.#kind, this.#known, made, current))],
    ];
    this.#tell(found, (why) => invalidPatch(made, why));
  }

  /** Checks what was applied, whose fields the apply has found in the schema. Throws 400, as upstream, which reads it as YAML. */
  applied(): void {
    const { lines = [], told = [], more = 0 } = this.#twice ?? {};
    if (lines.length === 0) return;
    const left = Math.max(0, told.length + more - lines.length);
    if (this.#warn !== undefined) this.#warn({ texts: lines, more: left });
    else {
      const all = [...lines, ...(left > 0 ? [`and ${left} more`] : [])].map((each) => `\n  ${each}`).join('');
      throw badRequest(`error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:${all}`);
    }
  }

  #tell(found: readonly Found[], refusal: (why: string) => Error): void {
    const texts = found.flatMap(([what, paths = []]) => paths.map((path) => `${what} field ${shown(path)}`));
    const more = found.reduce((sum, [, , each = 0]) => sum + each, 0);
    if (this.#warn !== undefined) this.#warn({ texts, more });
    else if (texts.length > 0) {
      throw refusal(`strict decoding error: ${[...texts, ...(more > 0 ? [`and ${more} more`] : [])].join(', ')}`);
    }
  }
}

const NO_FAULTS: FieldFaults = { texts: [], more: 0 };

/** What is wrong with fields, with which, and with how many more. */
type Found = readonly [what: string, paths?: readonly string[] | undefined, more?: number | undefined];

/** The unknown fields of an object. If its kind does not preserve unknown fields, these are the removed ones. */
function* unknownOf(kind: SeenKind, known: KnownFields, object: object, before?: object): Work<FieldPaths> {
  const found = yield* unknownFields(known, object, before);
  if (kind.schema !== undefined && kind.preserveUnknownFields === false) {
    yield* shaping(structuralOf(kind.schema), object, { prunes: true, only: true, found });
  }
  return found;
}

/** Sorted, with those of the metadata first. */
function sorted({ told, more }: FieldPaths): readonly [readonly string[], number] {
  const rank = (path: string): number => (path.startsWith('metadata.') ? 0 : 1);
  return [told.sort((one, other) => rank(one) - rank(other) || (one < other ? -1 : 1)), more];
}

/** 400: what is wrong with an object that was sent. */
export const unreadable = ({ kind, version }: SeenKind, why: string): Error =>
  badRequest(`${kind} in version "${version}" cannot be handled as a ${kind}: ${why}`);

/** 422: what is wrong with the result of a patch, which has no name yet. */
export function invalidPatch(made: object, why: string): Error {
  return invalidObject(NOTHING, '', [{ field: 'patch', message: `Invalid value: ${shown(jsonStart(made, 301))}: ${why}` }]);
}

const NOTHING = { group: '', plural: '', kind: '', resourceName: '', kindName: '' } as const;

/** The fields of the operations of a JSON patch. */
const OPERATIONS = toKnownFields({ items: { properties: { op: {}, path: {}, from: {}, value: {} } } });

/** What is checked of objects that are pruned; the pruning itself finds the rest. */
const META_ONLY: JsonSchema = { properties: { metadata: { $ref: REFERENCE + OBJECT_META } }, additionalProperties: true };

const knownFields: WeakMap<SeenKind, KnownFields> = new WeakMap();

/** The fields that a kind has by its schema, as `kubectl explain` shows them. */
function knownFieldsOf(kind: SeenKind): KnownFields {
  return getOrMake(knownFields, kind, () => readKnownFields(kind));
}

function readKnownFields(kind: SeenKind): KnownFields {
  const shape = kind.schema === undefined ? messageOf(kind) : undefined;
  if (shape === undefined) return toKnownFields(kind.preserveUnknownFields === false ? META_ONLY : schemaOf(kind));
  const known = knownOfShape(shape);
  return { ...known, members: new Map([['apiVersion', ANY], ['kind', ANY], ...known.members]) };
}
