/**
 * Rules in CEL, `x-kubernetes-validations`, with `@marcbachmann/cel-js`, which is loaded when the first schema has one. Upstream:
 * `apiextensions-apiserver/pkg/apiserver/schema/cel`.
 *
 *     schema ---> programs, by place, compiled once
 *     object, old ---> self, oldSelf at each place that has rules ---> true: nothing; false: the rule's message
 *
 * - A rule with `oldSelf` is only evaluated on updates, for values that can be matched with their old ones: members of objects,
 *   and items of lists of type `map`. A rule without it is not evaluated again for an unchanged value.
 * - No expression can block the server: each step costs one, and reading a value costs its size. If a rule, or all rules of an
 *   object together, exceed their limit, the object is refused. Between rules, the work yields.
 * - Whole numbers are `int`, unless their schema says `number`.
 */
import type { KubernetesObject } from '../../cache/object.ts';
import { put } from '../../storage/json.ts';
import { isRecord, WatchError } from '../../watch/errors.ts';
import { inPieces, type Work } from '../../watch/fair-queue.ts';
import type { FieldCause } from '../definition.ts';
import { fromBase64 } from '../kinds/base64.ts';
import type { Json } from '../request/json.ts';
import { duplicateCause, forbiddenCause, invalidCause, MAX_CAUSES, requiredCause } from './causes.ts';
import { toPattern, withPatterns } from './patterns.ts';
import { type Keyed, keyOf, meter, OVER, sizeIn, sizes } from './rule-cost.ts';
import { functionsWith, VALUE_TYPES } from './rule-functions.ts';
import { NAMESPACES, type Optionals } from './rule-libraries.ts';
import { macrosWith } from './rule-macros.ts';
import { metered, type Node, TELL_LESS, tellLess } from './rule-steps.ts';
import { isAnywhere, type Structural, toStructural } from './structural.ts';
import { isAsBefore, itemsByKey } from './values.ts';

/** Finds the rules of a schema that an object breaks. */
export type RuleCheck = (object: KubernetesObject, old: KubernetesObject | undefined) => Work<readonly FieldCause[]>;

/** What a rule may cost, and all rules of an object: upstream's limits, in our steps. A step takes 100 ns, and at worst eight times that. */
const MAX_RULE_COST = 100_000;
const MAX_OBJECT_COST = 1_000_000;
/** The most nodes of one expression. */
const MAX_NODES = 4_096;
/** The longest message that an expression may produce. */
const MAX_MESSAGE_BYTES = 5_120;
const utf8 = new TextEncoder();

/** A compiled expression. */
export interface Program {
  (context: object): unknown;
  check(): { readonly valid: boolean; readonly type?: string; readonly error?: Error };
  readonly ast: Node;
}

/** The part of cel-js that is used. */
export interface CelEnvironment {
  parse(expression: string): Program;
  clone(): CelEnvironment;
  registerVariable(name: string, type: string): CelEnvironment;
  registerConstant(name: string, type: string, value: unknown): CelEnvironment;
  registerFunction(signature: string, handler: (...args: never[]) => unknown): CelEnvironment;
  registerOperator(signature: string, handler: (...args: never[]) => unknown): CelEnvironment;
  registerType(name: string, type: object): CelEnvironment;
  getDefinitions(): { readonly functions: readonly { readonly name: string; readonly receiverType: string | null }[] };
}

/** The environments in which expressions are compiled. */
export interface Cel {
  /** With all functions, each with its types, and no variables. */
  readonly bare: CelEnvironment;
  /** With `self` and `oldSelf`, of any type. */
  readonly plain: CelEnvironment;
  /** The same for rules whose `oldSelf` is optional. */
  readonly optional: CelEnvironment;
  /** With the variables of conditions, of any type. */
  readonly condition: CelEnvironment;
  /** The names of all functions, with their namespaces. */
  readonly functions: ReadonlySet<string>;
  /** Convert a string to a value of another type, by format. */
  readonly converters: ReadonlyMap<string, Program>;
  readonly none: Program;
  readonly some: Program;
}

/** Formats of strings that are types of their own in CEL, and how strings are converted. */
export const FORMATS: Readonly<Record<string, { readonly type: string; readonly from?: string }>> = {
  byte: { type: 'bytes' },
  'date-time': { type: 'google.protobuf.Timestamp', from: 'timestamp(self)' },
  date: { type: 'google.protobuf.Timestamp', from: 'timestamp(self + "T00:00:00Z")' },
  duration: { type: 'google.protobuf.Duration', from: 'duration(self)' },
};

/** A compiled rule. */
interface Rule {
  readonly source: Json;
  readonly program: Program;
  readonly message: Program | undefined;
  readonly usesOld: boolean;
  readonly path: string;
}

let loaded: Cel | undefined;

/** @throws {WatchError} INVALID_ARGUMENT if a package is not installed. */
export async function loadCel(who: string = 'a schema with rules', what: string = 'x-kubernetes-validations'): Promise<Cel> {
  if (loaded !== undefined) return loaded;
  const { Environment, Optional } = await import('@marcbachmann/cel-js').catch((cause: unknown) => {
    const how = `npm install @marcbachmann/cel-js, or leave out ${what}`;
    const message = `${who} needs the package @marcbachmann/cel-js: ${how}`;
    throw new WatchError('INVALID_ARGUMENT', message, { cause });
  });
  const options = { homogeneousAggregateLiterals: false, enableOptionalTypes: true, limits: { maxAstNodes: MAX_NODES } };
  const [bare, running] = [true, false].map((isChecked) =>
    taught(new Environment(options) as unknown as CelEnvironment, { optional: Optional as unknown as Optionals, isChecked }),
  ) as [CelEnvironment, CelEnvironment];
  const having = (types: Readonly<Record<string, string>>): CelEnvironment => withVariables(running, types);
  const [plain, optional] = [having({ self: 'dyn', oldSelf: 'dyn' }), having({ self: 'dyn', oldSelf: 'optional<dyn>' })];
  const condition = having(CONDITION_VARIABLES);
  for (const each of [plain, optional, condition]) each.parse(`${TELL_LESS}()`)({});
  const converters = Object.entries(FORMATS).flatMap(([format, { from }]) =>
    from ? [[format, plain.parse(from)] as const] : [],
  );
  const [none, some] = [plain.parse('optional.none()'), plain.parse('optional.of(self)')];
  // The expressions may have patterns.
  await withPatterns(() => toPattern(''));
  loaded = { bare, plain, optional, condition, functions: functionsOf(bare), converters: new Map(converters), none, some };
  return loaded;
}

/** The same environment, and variables by their types. */
export function withVariables(env: CelEnvironment, types: Readonly<Record<string, string>>): CelEnvironment {
  const made = env.clone();
  for (const [name, type] of Object.entries(types)) made.registerVariable(name, type);
  return made;
}

/** Functions that cel-go does not have, or has as macros, which a call with another number of arguments does not find. */
const NO_FUNCTIONS: ReadonlySet<string> = new Set(
  'matchesRe2 joinMetered trimSpace toLowerAscii toUpperAscii json hex base64 at has all exists exists_one existsOne map filter bind optMap optFlatMap sortBy transformList transformMap transformMapEntry'.split(
    ' ',
  ),
);

function functionsOf(env: CelEnvironment): ReadonlySet<string> {
  const spaces = new Map(Object.entries(NAMESPACES).map(([name, { type }]) => [type, name]));
  spaces.set('OptionalNamespace', 'optional');
  const names = env.getDefinitions().functions.map(({ name, receiverType }) => {
    const space = spaces.get(receiverType ?? '');
    return space === undefined ? name : `${space}.${name}`;
  });
  return new Set(names.filter((name) => !NO_FUNCTIONS.has(name)));
}

/** Whether rules have a function of that name, with any arguments. */
export const isFunction = (name: string): boolean => loaded?.functions.has(name) === true;

/** Types of CEL that may be compared with null, as those of Kubernetes and objects may. */
const NULLABLE = ['google.protobuf.Timestamp', 'google.protobuf.Duration', 'optional<dyn>'] as const;

/** An environment, with what Kubernetes has beyond CEL. */
function taught(env: CelEnvironment, { optional, isChecked }: { optional: Optionals; isChecked: boolean }): CelEnvironment {
  for (const [name, ctor] of Object.entries(VALUE_TYPES)) {
    env.registerType(name, ctor);
    env.registerOperator(`${name} == ${name}`, (one: Keyed, other: Keyed) => one.key === other.key);
  }
  for (const name of [...Object.keys(VALUE_TYPES), ...NULLABLE]) env.registerOperator(`${name} == null`, () => false);
  env.registerOperator('optional<A> == optional<A>', (one: unknown, other: unknown) => keyOf(one) === keyOf(other));
  for (const [name, { type, value }] of Object.entries(NAMESPACES)) {
    env.registerType(type, value.constructor).registerConstant(name, type, value);
  }
  for (const [signature, handler] of functionsWith(optional, isChecked)) env.registerFunction(signature, handler);
  for (const [signature, macro] of Object.entries(macrosWith(optional))) env.registerFunction(signature, macro);
  if (!isChecked) env.registerFunction(`${TELL_LESS}(): bool`, tellLess);
  return env;
}

/** Compiles an expression. Throws an Error that says what is wrong with it. */
export function compiled(env: CelEnvironment, text: string, type: string): { program: Program; names: ReadonlySet<string> } {
  const program = env.parse(text);
  const names = new Set<string>();
  metered(program.ast, undefined, names);
  const { valid, type: given, error } = program.check();
  if (!valid) throw error;
  if (given !== type && given !== 'dyn') throw new Error(`cel expression must evaluate to a ${type}`);
  return { program, names };
}

export const text = (value: unknown): string => (typeof value === 'string' ? value : '');

function toRule(cel: Cel, source: Json): Rule {
  const env = source.optionalOldSelf === true ? cel.optional : cel.plain;
  const { program, names } = compiled(env, text(source.rule), 'bool');
  const given = text(source.messageExpression);
  const message = given === '' ? undefined : compiled(env, given, 'string').program;
  const path = text(source.fieldPath).replace(/\['((?:[^'\\]|\\.)*)'\]/g, (_, name) => `.${name.replace(/\\(.)/g, '$1')}`);
  return { source, program, message, usesOld: names.has('oldSelf'), path };
}

/** A place with rules here or below. */
interface Place {
  readonly tree: Structural;
  readonly rules: readonly Rule[];
  readonly allOf: readonly Place[];
  readonly properties: ReadonlyMap<string, Place>;
  readonly others: Place | undefined;
  readonly items: Place | undefined;
}

/** Compiles the rules of a place and below it; undefined if there are none. */
function* toPlace(cel: Cel, tree: Structural): Work<Place | undefined> {
  yield;
  const given = tree.source['x-kubernetes-validations'];
  const rules: Rule[] = [];
  for (const rule of Array.isArray(given) ? given : []) {
    rules.push(toRule(cel, rule as Json));
    yield;
  }
  const allOf: Place[] = [];
  for (const each of tree.allOf) {
    const place = yield* toPlace(cel, each);
    if (place !== undefined) allOf.push(place);
  }
  const properties = new Map<string, Place>();
  for (const [name, each] of tree.properties ?? []) {
    const place = yield* toPlace(cel, each);
    if (place !== undefined) properties.set(name, place);
  }
  const others = typeof tree.additional === 'object' ? yield* toPlace(cel, tree.additional) : undefined;
  const items = tree.items === undefined ? undefined : yield* toPlace(cel, tree.items);
  const isEmpty = rules.length + allOf.length + properties.size === 0 && others === undefined && items === undefined;
  return isEmpty ? undefined : { tree, rules, allOf, properties, others, items };
}

/** Whether a schema has rules anywhere. */
const hasRules = ({ source }: Structural): boolean =>
  isAnywhere(source, (each) => {
    const { allOf } = each;
    if (each['x-kubernetes-validations'] !== undefined) return true;
    return Array.isArray(allOf) && allOf.some((one) => isRecord(one) && hasRules(toStructural(one)));
  });

/**
 * Compiles the rules of a schema; undefined: it has none.
 *
 * @throws {WatchError} INVALID_ARGUMENT for an invalid rule, or if the package is not installed.
 */
export async function compileRules(tree: Structural): Promise<RuleCheck | undefined> {
  if (!hasRules(tree)) return undefined;
  const cel = await loadCel();
  let place: Place | undefined;
  try {
    place = await inPieces(toPlace(cel, tree));
  } catch (cause) {
    throw new WatchError('INVALID_ARGUMENT', `schema: x-kubernetes-validations: ${(cause as Error).message}`, { cause });
  }
  if (place === undefined) return undefined;
  const root = place;
  return function* (object, old) {
    const run = new Run(cel);
    yield* run.at(root, object, { path: '', old, isRoot: true });
    return run.found;
  };
}

/** What conditions of webhooks know of a write. */
export const CONDITION_VARIABLES: Readonly<Record<string, string>> = { object: 'dyn', oldObject: 'dyn', request: 'dyn' };

interface Terms {
  readonly path: string;
  readonly old: unknown;
  readonly isRoot?: boolean;
  /** The nearest part above that can be compared with its old value, to see whether it has changed. */
  readonly above?: { readonly tree: Structural; readonly value: unknown; readonly old: unknown } | undefined;
}

/** The rules of one object. */
class Run {
  readonly found: FieldCause[] = [];
  readonly #evaluation: Evaluation;

  constructor(cel: Cel) {
    this.#evaluation = new Evaluation(cel);
  }

  *at(place: Place, value: unknown, terms: Terms): Work<void> {
    if (value === null || value === undefined || this.#evaluation.isOver || this.found.length >= MAX_CAUSES) return;
    const { tree } = place;
    if (place.rules.length > 0) yield* this.#rules(place, value, terms);
    for (const each of place.allOf) yield* this.at({ ...each, tree }, value, { ...terms, above: undefined });
    const { path, old } = terms;
    const above = old === undefined ? terms.above : { tree, value, old };
    if (Array.isArray(value) && place.items !== undefined) {
      const before = Array.isArray(old) ? yield* itemsByKey(tree.source, old) : undefined;
      for (const [at, item] of value.entries()) {
        yield;
        yield* this.at(place.items, item, { path: `${path}[${at}]`, old: before?.(item), above });
      }
    } else if (isRecord(value)) {
      const isAtomic = tree.source['x-kubernetes-map-type'] === 'atomic';
      for (const name of Object.keys(value)) {
        const known = place.properties.get(name);
        const below = known ?? (tree.properties?.has(name) ? undefined : place.others);
        if (below === undefined) continue;
        yield;
        const was = !isAtomic && isRecord(old) && Object.hasOwn(old, name) ? old[name] : undefined;
        const where = known === undefined ? `${path}[${name}]` : path === '' ? name : `${path}.${name}`;
        yield* this.at(below, value[name], { path: where, old: was, above });
      }
    }
  }

  *#rules({ tree, rules }: Place, value: unknown, terms: Terms): Work<void> {
    const { path, old, isRoot = false } = terms;
    const field = path || '<nil>';
    const type = tree.types.length === 1 ? tree.types[0] : '';
    const evaluation = this.#evaluation;
    const self = yield* evaluation.toCel(tree, value, isRoot);
    const oldSelf = (yield* evaluation.toCel(tree, old, isRoot)) ?? undefined;
    for (const rule of rules) {
      yield;
      const isOptional = rule.source.optionalOldSelf === true;
      if (rule.usesOld && oldSelf === undefined && !isOptional) continue;
      const context = { self, oldSelf: isOptional ? evaluation.optional(oldSelf) : oldSelf };
      const result = evaluation.ask(rule.program, context);
      const said = text(rule.source.message).trim() || text(rule.source.rule).trim();
      if (result.over) {
        const why = `'${OVER.message}': no further validation rules will be run due to call cost exceeds limit for rule: ${said}`;
        this.found.push(invalidCause(field, type, why));
        evaluation.end();
        return;
      }
      if (evaluation.isOver) {
        const why = 'validation failed due to running out of cost budget, no further validation rules will be run';
        this.found.push(invalidCause(field, type, why));
        return;
      }
      if (result.error !== undefined) {
        this.found.push(invalidCause(field, type, `${result.error} evaluating rule: ${said}`));
        continue;
      }
      if (result.value === true) continue;
      if (!rule.usesOld && (yield* this.#isRatcheted(tree, value, terms))) continue;
      this.#refuse(rule, { path, value, context });
    }
  }

  /** Whether the value that breaks a rule is unchanged. */
  *#isRatcheted(tree: Structural, value: unknown, { old, above }: Terms): Work<boolean> {
    if (old !== undefined) return yield* isAsBefore(tree, value, old);
    return above !== undefined && (yield* isAsBefore(above.tree, above.value, above.old));
  }

  #refuse(rule: Rule, { path, value, context }: { path: string; value: unknown; context: object }): void {
    const { message, rule: source, reason } = rule.source;
    const made = rule.message === undefined ? undefined : this.#evaluation.ask(rule.message, context).value;
    const trimmed = typeof made === 'string' ? made.trim() : '';
    const fits = trimmed !== '' && utf8.encode(trimmed).length <= MAX_MESSAGE_BYTES && !trimmed.includes('\n');
    const detail = fits ? trimmed : text(message).trim() || `failed rule: ${text(source).trim()}`;
    const field = `${path}${rule.path}`.replace(/^\./, '') || '<nil>';
    const isWhole = typeof value === 'object';
    if (reason === 'FieldValueForbidden') this.found.push(forbiddenCause(field, detail));
    else if (reason === 'FieldValueRequired') this.found.push(requiredCause(field, detail));
    else if (reason === 'FieldValueDuplicate' && !isWhole) this.found.push(duplicateCause(field, value));
    else if (reason === 'FieldValueDuplicate') this.found.push({ field, reason, message: 'Duplicate value' });
    else if (isWhole) this.found.push({ field, reason: 'FieldValueInvalid', message: `Invalid value: ${detail}` });
    else this.found.push(invalidCause(field, value, detail));
  }
}

/** Expressions about one object, which have a limit together. */
export class Evaluation {
  #left: number = MAX_OBJECT_COST;
  readonly #cel: Cel;
  /** What has been converted; evaluations of the same unchanging objects may share it. */
  readonly #converted: WeakMap<object, unknown>;

  constructor(cel: Cel, converted: WeakMap<object, unknown> = new WeakMap()) {
    this.#cel = cel;
    this.#converted = converted;
  }

  /** Whether they have cost too much together. */
  get isOver(): boolean {
    return this.#left < 0;
  }

  end(): void {
    this.#left = -1;
  }

  /** The value of an expression, or why it has none; neither if all together cost too much. `over`: it alone does. */
  ask(program: Program, context: object): { value?: unknown; error?: string; over?: boolean } {
    meter.left = Math.min(MAX_RULE_COST, this.#left);
    const before = meter.left;
    const isLast = this.#left < MAX_RULE_COST;
    try {
      return { value: program(context) };
    } catch (error) {
      if (error === OVER || meter.left < 0) return isLast ? {} : { over: true };
      const { message, name } = error as Error;
      const [line = ''] = message.replace(/^No such key: (index out of bounds), index (\S+).*/, '$1: $2').split('\n');
      // Messages of cel-js begin with a capital.
      return { error: name === 'EvaluationError' ? line.charAt(0).toLowerCase() + line.slice(1) : line };
    } finally {
      this.#left -= before - meter.left;
    }
  }

  optional(value: unknown): unknown {
    meter.left = MAX_RULE_COST;
    return value === undefined ? this.#cel.none({}) : this.#cel.some({ self: value });
  }

  /** A value as expressions see it. */
  *toCel(tree: Structural | undefined, value: unknown, isRoot: boolean): Work<unknown> {
    if (typeof value === 'string' && tree?.format === 'byte') return yield* bytesOf(value);
    if (typeof value !== 'object' || value === null) return scalar(tree, value, this.#cel);
    const known = this.#converted.get(value);
    if (known !== undefined) return known;
    yield;
    let size = 1;
    const add = (each: unknown): unknown => {
      size += sizeIn(each);
      return each;
    };
    let made: unknown[] | Record<string, unknown> | Map<string, unknown>;
    if (Array.isArray(value)) {
      made = [];
      for (const each of value) made.push(add(yield* this.toCel(tree?.items, each, false)));
    } else {
      // cel-js asks an object for its constructor.
      made = Object.hasOwn(value, 'constructor') ? new Map() : {};
      const hasMeta = isRoot || tree?.embedded === true;
      for (const name of Object.keys(value)) {
        const each = (value as Json)[name];
        const property = tree?.properties?.get(name);
        const below = property ?? (typeof tree?.additional === 'object' ? tree.additional : undefined);
        const shown = hasMeta && name === 'metadata' && isRecord(each) ? namesOf(each) : each;
        const names = property === undefined ? [name] : namesIn(name);
        const seen = add(yield* this.toCel(below, shown, false));
        for (const each of names) {
          if (made instanceof Map) made.set(each, seen);
          else put(made, each, seen);
        }
      }
    }
    sizes.set(made, size);
    this.#converted.set(value, made);
    return made;
  }
}

const namesOf = ({ name, generateName }: Json): Json => ({
  ...(name !== undefined && { name }),
  ...(generateName !== undefined && { generateName }),
});

const RESERVED: ReadonlySet<string> = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
);

/** Reserved words that cannot follow a dot, either. */
const UNSPEAKABLE: ReadonlySet<string> = new Set(['true', 'false', 'null', 'in']);

/** The names of a member in expressions: one, or two for a reserved word. One that cannot be escaped is only seen in a text. */
export function namesIn(name: string): readonly string[] {
  if (RESERVED.has(name)) return UNSPEAKABLE.has(name) ? [`__${name}__`] : [`__${name}__`, name];
  if (!/^[A-Za-z_][A-Za-z0-9_.\-/]*$/.test(name)) return [name];
  const signs: Readonly<Record<string, string>> = { __: '__underscores__', '.': '__dot__', '-': '__dash__', '/': '__slash__' };
  return [name.replace(/__|[.\-/]/g, (sign) => signs[sign] as string)];
}

function* bytesOf(text: string): Work<unknown> {
  try {
    return yield* fromBase64(text);
  } catch {
    return text;
  }
}

function scalar(tree: Structural | undefined, value: unknown, { converters }: Cel): unknown {
  if (typeof value === 'number') return tree?.types[0] === 'number' || !Number.isSafeInteger(value) ? value : BigInt(value);
  if (typeof value !== 'string' || tree === undefined) return value;
  meter.left = MAX_RULE_COST;
  try {
    return converters.get(tree.format)?.({ self: value }) ?? value;
  } catch {
    return value;
  }
}
