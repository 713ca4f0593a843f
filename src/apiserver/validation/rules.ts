/**
 * Rules in CEL, `x-kubernetes-validations`, with `@marcbachmann/cel-js`, which is loaded when the first schema has one. Upstream:
 * `apiextensions-apiserver/pkg/apiserver/schema/cel`.
 *
 *     schema ---> programs, by place, compiled once
 *     object, old ---> self, oldSelf at each place that has rules ---> true: nothing; false: the rule's message
 *
 * - A rule with `oldSelf` is only asked on an update, of a place that can be told from others: members of objects, and items of lists
 *   whose type is `map`. A rule without it is not asked again of what is as it was.
 * - No expression can hold the server: each of its steps costs one, and a value costs its size wherever it is read. What costs more
 *   than a rule may, or all rules of an object together, is refused. Between rules, the work yields.
 * - Whole numbers are `int`, whatever their schema says, unless that is `number`.
 */
import type { KubernetesObject } from '../../cache/object.ts';
import { put } from '../../storage/json.ts';
import { isRecord, WatchError } from '../../watch/errors.ts';
import type { Work } from '../../watch/fair-queue.ts';
import type { FieldCause } from '../definition.ts';
import type { Json } from '../request/json.ts';
import { duplicateCause, forbiddenCause, invalidCause, requiredCause } from './causes.ts';
import { meter, OVER, spend } from './meter.ts';
import { toPattern, withPatterns } from './patterns.ts';
import { FUNCTIONS, TYPES } from './rule-functions.ts';
import { isAnywhere, type Structural, toStructural } from './structural.ts';
import { isAsBefore, itemsByKey } from './values.ts';

/** Finds the rules of a schema that an object breaks. */
export type RuleCheck = (object: KubernetesObject, old: KubernetesObject | undefined) => Work<readonly FieldCause[]>;

/** What a rule may cost, and all rules of an object: upstream's limits, in steps of our own. A step takes about 100 ns. */
const MAX_RULE_COST = 100_000;
const MAX_OBJECT_COST = 1_000_000;
/** The most nodes of one expression. */
const MAX_NODES = 4_096;
/** The longest message that an expression may make, in characters. */
const MAX_MESSAGE_CHARS = 5_120;

interface Program {
  (context: object): unknown;
  check(): { readonly valid: boolean; readonly type?: string; readonly error?: Error };
  readonly ast: Node;
}

/** The part of cel-js that is used. */
export interface CelEnvironment {
  parse(expression: string): Program;
  registerVariable(name: string, type: string): CelEnvironment;
  registerFunction(signature: string, handler: (...args: never[]) => unknown): CelEnvironment;
  registerType(name: string, type: object): CelEnvironment;
}

interface Node {
  op: string;
  args: unknown;
  evaluate: (...args: unknown[]) => unknown;
}

/** A rule, ready to be asked. */
interface Rule {
  readonly source: Json;
  readonly program: Program;
  readonly message: Program | undefined;
  readonly usesOld: boolean;
  readonly path: string;
}

let environment: CelEnvironment | undefined;

async function load(): Promise<CelEnvironment> {
  if (environment !== undefined) return environment;
  const { Environment } = await import('@marcbachmann/cel-js').catch((cause: unknown) => {
    const how = 'npm install @marcbachmann/cel-js, or leave out x-kubernetes-validations';
    const message = `a schema with rules needs the package @marcbachmann/cel-js: ${how}`;
    throw new WatchError('INVALID_ARGUMENT', message, { cause });
  });
  const options = { homogeneousAggregateLiterals: false, enableOptionalTypes: true, limits: { maxAstNodes: MAX_NODES } };
  const made = new Environment(options) as unknown as CelEnvironment;
  made.registerVariable('self', 'dyn').registerVariable('oldSelf', 'dyn');
  for (const [name, ctor] of Object.entries(TYPES)) made.registerType(name, ctor);
  for (const [signature, handler] of Object.entries(FUNCTIONS)) made.registerFunction(signature, handler);
  environment = made;
  return made;
}

const sizes: WeakMap<object, number> = new WeakMap();

/** What it costs to look at all of a value. */
function costOf(value: unknown): number {
  if (typeof value === 'string') return value.length >> 5;
  if (typeof value !== 'object' || value === null) return 0;
  return (sizes.get(value) ?? (Array.isArray(value) ? value.length : 0)) >> 3;
}

const DEEP: ReadonlySet<string> = new Set(['==', '!=', 'in']);

/** Functions of CEL in whose place others are called, which count what they cost. */
const INSTEAD: ReadonlyMap<unknown, string> = new Map([
  ['matches', 'matchesRe2'],
  ['join', 'joinMetered'],
]);

/** Makes every step of an expression cost something, and its patterns linear. Returns the names that it uses. */
function metered(node: unknown, isCompared: boolean, names: Set<string>): void {
  if (Array.isArray(node)) {
    for (const each of node) metered(each, isCompared, names);
    return;
  }
  if (typeof node !== 'object' || node === null || typeof (node as Partial<Node>).evaluate !== 'function') return;
  const each = node as Node;
  if (each.op === 'id') names.add(String(each.args));
  if (each.op === 'rcall' && Array.isArray(each.args)) each.args[0] = INSTEAD.get(each.args[0]) ?? each.args[0];
  let inner = each.evaluate;
  const step = function (this: unknown, ...args: unknown[]): unknown {
    spend(1);
    const value = inner.apply(each, args);
    if (typeof value === 'string' || Array.isArray(value) || isCompared) spend(costOf(value));
    return value;
  };
  Object.defineProperty(each, 'evaluate', {
    get: () => step,
    set: (made: Node['evaluate']) => {
      inner = made;
    },
  });
  metered(each.args, DEEP.has(each.op), names);
}

/** Compiles an expression. Throws an Error that says what is wrong with it. */
function compiled(env: CelEnvironment, text: string, type: string): { program: Program; names: ReadonlySet<string> } {
  const program = env.parse(text);
  const names = new Set<string>();
  metered(program.ast, false, names);
  const { valid, type: given, error } = program.check();
  if (!valid) throw error ?? new Error('invalid expression');
  if (given !== type && given !== 'dyn') throw new Error(`cel expression must evaluate to a ${type}`);
  return { program, names };
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

function toRule(env: CelEnvironment, source: Json): Rule {
  const { program, names } = compiled(env, text(source.rule), 'bool');
  const given = text(source.messageExpression).trim();
  const message = given === '' ? undefined : compiled(env, given, 'string').program;
  const path = text(source.fieldPath).replace(/\['((?:[^'\\]|\\.)*)'\]/g, '.$1');
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

/** Compiles the rules of a place, and those below it; undefined: there are none. `isRoot`: it has metadata. */
function toPlace(env: CelEnvironment, tree: Structural): Place | undefined {
  const given = tree.source['x-kubernetes-validations'];
  const rules = Array.isArray(given) ? given.filter(isRecord).map((rule) => toRule(env, rule)) : [];
  const allOf = tree.allOf.flatMap((each) => toPlace(env, each) ?? []);
  const properties = new Map<string, Place>();
  for (const [name, each] of tree.properties ?? []) {
    const place = toPlace(env, each);
    if (place !== undefined) properties.set(name, place);
  }
  const others = typeof tree.additional === 'object' ? toPlace(env, tree.additional) : undefined;
  const items = tree.items === undefined ? undefined : toPlace(env, tree.items);
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
 * @throws {WatchError} INVALID_ARGUMENT for a rule that is none, or if the package is not installed.
 */
export async function compileRules(tree: Structural): Promise<RuleCheck | undefined> {
  if (!hasRules(tree)) return undefined;
  const env = await load();
  // The expressions may have patterns.
  await withPatterns(() => toPattern(''));
  let place: Place | undefined;
  try {
    place = toPlace(env, tree);
  } catch (cause) {
    throw new WatchError('INVALID_ARGUMENT', `schema: x-kubernetes-validations: ${(cause as Error).message}`, { cause });
  }
  if (place === undefined) return undefined;
  const root = place;
  return function* (object, old) {
    const run = new Run(env);
    yield* run.at(root, object, { path: '', old, isRoot: true });
    return run.found;
  };
}

/** What is wrong with one rule of a definition; undefined: nothing. */
export async function faultOfRule(source: Json): Promise<string | undefined> {
  try {
    const env = await load();
    await withPatterns(() => toPattern(''));
    const { usesOld } = toRule(env, source);
    return usesOld || source.optionalOldSelf === undefined
      ? undefined
      : 'optionalOldSelf may not be set if oldSelf is not used in rule';
  } catch (error) {
    return (error as Error).message.split('\n')[0];
  }
}

interface Terms {
  readonly path: string;
  readonly old: unknown;
  readonly isRoot?: boolean;
  /** The nearest part above that can be compared with what it was: whether it is as it was. */
  readonly above?: { readonly tree: Structural; readonly value: unknown; readonly old: unknown } | undefined;
}

/** The rules of one object. */
class Run {
  readonly found: FieldCause[] = [];
  #left: number = MAX_OBJECT_COST;
  readonly #env: CelEnvironment;
  readonly #converted: WeakMap<object, unknown> = new WeakMap();

  constructor(env: CelEnvironment) {
    this.#env = env;
  }

  *at(place: Place, value: unknown, terms: Terms): Work<void> {
    if (value === null || value === undefined || this.#left < 0) return;
    const { tree } = place;
    if (place.rules.length > 0) yield* this.#rules(place, value, terms);
    for (const each of place.allOf) yield* this.at({ ...each, tree }, value, { ...terms, above: undefined });
    const { path, old } = terms;
    const above = old === undefined ? terms.above : { tree, value, old };
    if (Array.isArray(value) && place.items !== undefined) {
      const before = Array.isArray(old) ? itemsByKey(tree.source, old) : undefined;
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
    const self = yield* this.#toCel(tree, value, isRoot);
    const oldSelf = old === undefined || old === null ? undefined : yield* this.#toCel(tree, old, isRoot);
    for (const rule of rules) {
      yield;
      const isOptional = rule.source.optionalOldSelf === true;
      if (rule.usesOld && oldSelf === undefined && !isOptional) continue;
      const context = { self, oldSelf: isOptional ? this.#optional(oldSelf) : oldSelf };
      const result = this.#ask(rule.program, context);
      const said = text(rule.source.message).trim() || text(rule.source.rule).trim();
      if (result.over) {
        const why = `'${OVER.message}': no further validation rules will be run due to call cost exceeds limit for rule: ${said}`;
        this.found.push(invalidCause(field, type, why));
        this.#left = -1;
        return;
      }
      if (this.#left < 0) {
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

  /** Whether what breaks a rule is as it was. */
  *#isRatcheted(tree: Structural, value: unknown, { old, above }: Terms): Work<boolean> {
    if (old !== undefined) return yield* isAsBefore(tree, value, old);
    return above !== undefined && (yield* isAsBefore(above.tree, above.value, above.old));
  }

  #refuse(rule: Rule, { path, value, context }: { path: string; value: unknown; context: object }): void {
    const { message, rule: source, reason } = rule.source;
    const made = rule.message === undefined ? undefined : this.#ask(rule.message, context).value;
    const trimmed = typeof made === 'string' ? made.trim() : '';
    const fits = trimmed !== '' && trimmed.length <= MAX_MESSAGE_CHARS && !trimmed.includes('\n');
    const detail = fits ? trimmed : text(message).trim() || `failed rule: ${text(source).trim()}`;
    const field = (rule.path === '' ? path : `${path}${rule.path}`).replace(/^\./, '') || '<nil>';
    const isWhole = typeof value === 'object';
    if (reason === 'FieldValueForbidden') this.found.push(forbiddenCause(field, detail));
    else if (reason === 'FieldValueRequired') this.found.push(requiredCause(field, detail));
    else if (reason === 'FieldValueDuplicate' && !isWhole) this.found.push(duplicateCause(field, value));
    else if (reason === 'FieldValueDuplicate') this.found.push({ field, reason, message: 'Duplicate value' });
    else if (isWhole) this.found.push({ field, reason: 'FieldValueInvalid', message: `Invalid value: ${detail}` });
    else this.found.push(invalidCause(field, value, detail));
  }

  #ask(program: Program, context: object): { value?: unknown; error?: string; over?: boolean } {
    meter.left = Math.min(MAX_RULE_COST, this.#left);
    const before = meter.left;
    const isLast = this.#left < MAX_RULE_COST;
    try {
      return { value: program(context) };
    } catch (error) {
      if (error === OVER || meter.left < 0) return isLast ? {} : { over: true };
      const [line = ''] = (error as Error).message.split('\n');
      return { error: line.charAt(0).toLowerCase() + line.slice(1) };
    } finally {
      this.#left -= before - meter.left;
    }
  }

  #optional(value: unknown): unknown {
    meter.left = MAX_RULE_COST;
    return value === undefined ? this.#env.parse('optional.none()')({}) : this.#env.parse('optional.of(self)')({ self: value });
  }

  /** A value as expressions see it. */
  *#toCel(tree: Structural | undefined, value: unknown, isRoot: boolean): Work<unknown> {
    if (typeof value !== 'object' || value === null) return scalar(tree, value, this.#env);
    const known = this.#converted.get(value);
    if (known !== undefined) return known;
    yield;
    let size = 1;
    const add = (each: unknown): unknown => {
      size +=
        1 +
        (typeof each === 'string' ? each.length >> 2 : typeof each === 'object' && each !== null ? (sizes.get(each) ?? 1) : 0);
      return each;
    };
    let made: unknown[] | Record<string, unknown>;
    if (Array.isArray(value)) {
      made = [];
      for (const each of value) made.push(add(yield* this.#toCel(tree?.items, each, false)));
    } else {
      made = {};
      const hasMeta = isRoot || tree?.embedded === true;
      for (const name of Object.keys(value)) {
        const each = (value as Json)[name];
        const property = tree?.properties?.get(name);
        const below = property ?? (typeof tree?.additional === 'object' ? tree.additional : undefined);
        const shown = hasMeta && name === 'metadata' && isRecord(each) ? namesOf(each) : each;
        const key = property === undefined ? name : escaped(name);
        if (key !== undefined) put(made, key, add(yield* this.#toCel(below, shown, false)));
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

/** The name of a member in expressions; undefined: it has none. */
function escaped(name: string): string | undefined {
  if (RESERVED.has(name)) return `__${name}__`;
  if (!/^[A-Za-z_][A-Za-z0-9_.\-/]*$/.test(name)) return undefined;
  const signs: Readonly<Record<string, string>> = { __: '__underscores__', '.': '__dot__', '-': '__dash__', '/': '__slash__' };
  return name.replace(/__|[.\-/]/g, (sign) => signs[sign] as string);
}

function scalar(tree: Structural | undefined, value: unknown, env: CelEnvironment): unknown {
  if (typeof value === 'number') return tree?.types[0] === 'number' || !Number.isSafeInteger(value) ? value : BigInt(value);
  if (typeof value !== 'string' || tree === undefined) return value;
  const as = CONVERSIONS[tree.format.replaceAll('-', '')];
  if (as === undefined) return value;
  meter.left = MAX_RULE_COST;
  try {
    return env.parse(as)({ self: value });
  } catch {
    return value;
  }
}

/** Formats that are types of their own. */
const CONVERSIONS: Readonly<Record<string, string>> = {
  datetime: 'timestamp(self)',
  date: 'timestamp(self + "T00:00:00Z")',
  duration: 'duration(self)',
};
