/**
 * What is wrong with the rules of a definition, before objects are checked: a rule that can only fail is refused at once.
 *
 *     schema of a place ---> RuleTypes: what `self` and `oldSelf` are ---> checks of expressions ---> causes, in upstream's words
 *
 * The checker is that of cel-js; faults that it misses, but upstream reports, are then looked for in the typed tree. Types have
 * only the members that the rules of a place name. Upstream: `SchemaDeclType` of `apiserver/pkg/cel/common`, the checker of
 * cel-go.
 */
import { getOrMake, isRecord } from '../../watch/errors.ts';
import { inPieces, type Work } from '../../watch/fair-queue.ts';
import type { FieldCause, JsonSchema } from '../definition.ts';
import { bounded, goEscaped, invalidCause } from './causes.ts';
import { faultOfPattern, MAX_SIZE, sizeOf } from './patterns.ts';
import { NAMESPACES } from './rule-libraries.ts';
import { UPSTREAM_WORDS } from './rule-macros.ts';
import { lookInto, type Node } from './rule-steps.ts';
import { clausesOf, misformatted, REFUSALS } from './rule-text.ts';
import {
  type Cel,
  type CelEnvironment,
  CONDITION_VARIABLES,
  compiled,
  FORMATS,
  isFunction,
  loadCel,
  namesIn,
  withVariables,
} from './rules.ts';
import { inside } from './structural.ts';

/** The most causes that are reported. */
const MAX_CAUSES = 100;
/** The most object types for the rules of one place, and for all of a schema; beyond that, nothing deeper is checked. */
const MAX_TYPES_OF_PLACE = 100;
const MAX_TYPES = 10_000;

/** The longest expression. Upstream: cel-go's `expressionSizeCodePointLimit`. */
const MAX_CODE_POINTS = 100_000;

/** A place that has rules. */
interface Place {
  readonly path: string;
  /** Whether it has a kind and metadata. */
  readonly isObject: boolean;
  /** The list around it whose items cannot be told apart, if there is one. */
  readonly within: string | undefined;
}

/** What is wrong with the rules of a structural schema that has some. */
export async function ruleCauses(schema: JsonSchema, path: string): Promise<FieldCause[]> {
  let cel: Cel;
  try {
    cel = await loadCel();
  } catch (error) {
    return [invalidCause(path, '', (error as Error).message)];
  }
  const all: Checking = { cel, found: [], left: MAX_TYPES };
  await inPieces(looking(schema, { path, isObject: true, within: undefined }, all));
  return all.found;
}

/** What the places of a schema share. */
interface Checking {
  readonly cel: Cel;
  readonly found: FieldCause[];
  /** How many more types may be made. */
  left: number;
}

function* looking(schema: JsonSchema, place: Place, all: Checking): Work<void> {
  yield;
  const rules = schema['x-kubernetes-validations'];
  if (Array.isArray(rules) && rules.length > 0) yield* causesOf(schema, { place, rules: rules as JsonSchema[], all });
  for (const [suffix, each] of inside(schema)) {
    const isAnyItem = suffix === '.items' && schema['x-kubernetes-list-type'] !== 'map';
    const isObject = each['x-kubernetes-embedded-resource'] === true;
    const below = { path: place.path + suffix, isObject, within: place.within ?? (isAnyItem ? place.path : undefined) };
    if (all.found.length < MAX_CAUSES) yield* looking(each, below, all);
  }
}

function* causesOf(
  schema: JsonSchema,
  { place: { path, isObject, within }, rules, all }: { place: Place; rules: readonly JsonSchema[]; all: Checking },
): Work<void> {
  const { found } = all;
  const types = new ExpressionTypes(
    all,
    rules.flatMap(({ rule, messageExpression }) => [`${rule}`, `${messageExpression ?? ''}`]),
  );
  const self = types.typeOf(schema, 'selfType', isObject);
  if (self === undefined) {
    const why =
      'failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations';
    found.push({
      field: `${path}.x-kubernetes-validations`,
      reason: 'InternalError',
      message: `Internal error: internal error: ${why}`,
    });
    return;
  }
  const { optional, plain } = all.cel;
  /** By whether `oldSelf` is optional. */
  const environments = new Map<boolean, Environments>();
  const check = (text: string, wanted: 'bool' | 'string', isOptional: boolean): Checked =>
    types.check(
      text,
      wanted,
      getOrMake(environments, isOptional, () => environmentsOf(isOptional)),
    );
  const environmentsOf = (isOptional: boolean): Environments => ({
    typed: withVariables(types.typed, { self, oldSelf: isOptional ? `optional<${self}>` : self }),
    running: isOptional ? optional : plain,
  });
  for (const [at, rule] of rules.entries()) {
    yield;
    if (found.length >= MAX_CAUSES) return;
    const where = `${path}.x-kubernetes-validations[${at}]`;
    const { rule: text, messageExpression, optionalOldSelf } = rule;
    const refuse = (member: string, why: string): number =>
      found.push(
        bounded({
          field: `${where}.${member}`,
          reason: 'FieldValueInvalid',
          message: `Invalid value: ${shownRule(rule)}: ${why}`,
        }),
      );
    const asked = check(String(text), 'bool', optionalOldSelf === true);
    const usesOld = asked.names.has('oldSelf');
    if (asked.fault !== undefined) refuse('rule', asked.fault);
    else if (typeof messageExpression === 'string' && messageExpression.trim() !== '') {
      const { fault } = check(messageExpression.trim(), 'string', optionalOldSelf === true);
      if (fault !== undefined) refuse('messageExpression', fault.replace(/^compilation|^cel expression/, messagePrefix));
    }
    if (!usesOld && optionalOldSelf !== undefined) {
      found.push(invalidCause(`${where}.optionalOldSelf`, optionalOldSelf, 'may not be set if oldSelf is not used in rule'));
    } else if (usesOld && within !== undefined) {
      const why = `oldSelf cannot be used on the uncorrelatable portion of the schema within ${within}`;
      found.push(bounded(invalidCause(`${where}.rule`, text, why)));
    }
  }
}

const messagePrefix = (prefix: string): string =>
  prefix === 'compilation' ? 'messageExpression compilation' : 'messageExpression';

/** As Go writes one. */
function shownRule({ rule, message, messageExpression, reason, fieldPath, optionalOldSelf }: JsonSchema): string {
  const text = JSON.stringify({
    ...{ Rule: rule, Message: message ?? '', MessageExpression: messageExpression ?? '', Reason: reason ?? null },
    ...{ FieldPath: fieldPath ?? '', OptionalOldSelf: optionalOldSelf ?? null },
  });
  return goEscaped(text.slice(0, 300));
}

/** What is wrong with each of some expressions over a write, which say whether a webhook is asked about it. */
export async function conditionFaults(cel: Cel, expressions: readonly string[]): Promise<readonly (string | undefined)[]> {
  const types = new ExpressionTypes({ cel, left: MAX_TYPES }, expressions, REQUEST_TYPES);
  const request = types.typeOf(ADMISSION_REQUEST, 'kubernetes.AdmissionRequest', false) as string;
  const environments = { typed: withVariables(types.typed, { ...CONDITION_VARIABLES, request }), running: cel.condition };
  return inPieces(
    (function* () {
      const faults: (string | undefined)[] = [];
      for (const each of expressions) {
        yield;
        const { fault, type = 'bool' } = types.check(each, 'bool', environments);
        const lacks = fault?.includes("undeclared reference to 'authorizer'") ? `\nauthorizer${LACKING}` : '';
        faults.push(type === 'bool' ? fault && fault + lacks : `must evaluate to bool but got ${type}`);
      }
      return faults;
    })(),
  );
}

/** How an expression is compiled to be checked, and to be run. */
interface Environments {
  readonly typed: CelEnvironment;
  readonly running: CelEnvironment;
}

interface Checked {
  /** What is wrong with an expression, if anything. */
  readonly fault?: string;
  /** The type of its value; undefined: it cannot be compiled. */
  readonly type?: string;
  /** The names of variables that it uses. */
  readonly names: ReadonlySet<string>;
}

/** The types that some expressions use. */
class ExpressionTypes {
  readonly typed: CelEnvironment;
  readonly #all: Pick<Checking, 'left'>;
  readonly #named: ReadonlySet<string>;
  /** The fields of objects. */
  readonly #fields: Map<string, ReadonlySet<string>> = new Map();
  /** The names of the types of some schemas, wherever they are. */
  readonly #known: ReadonlyMap<JsonSchema, string>;
  /** The size of the patterns in an expression, which are compiled in one go. */
  #patternSize: number = 0;

  constructor(
    all: Pick<Checking, 'cel' | 'left'>,
    expressions: readonly string[],
    known: Readonly<Record<string, JsonSchema>> = {},
  ) {
    this.#all = all;
    this.#known = new Map(Object.entries(known).map(([name, schema]) => [schema, name]));
    this.typed = all.cel.bare.clone();
    this.#named = new Set(expressions.flatMap((each) => (excessOf(each) ? [] : (each.match(/\w+/g) ?? []))));
  }

  /** The type of what a schema describes; undefined if it does not say. */
  typeOf(
    schema: JsonSchema,
    name: string,
    isObject: boolean = schema['x-kubernetes-embedded-resource'] === true,
  ): string | undefined {
    if (schema['x-kubernetes-int-or-string'] === true) return 'dyn';
    const { type, format, items, additionalProperties: others } = schema;
    if (type === 'string') return FORMATS[String(format)]?.type ?? 'string';
    if (type === 'array') {
      const item = isRecord(items) ? this.typeOf(items, `${name}.__idx__`) : undefined;
      return item && `list<${item}>`;
    }
    if (type !== 'object') return SCALARS[String(type)];
    if (!isRecord(others)) return this.#object(schema, name, isObject);
    const value = this.typeOf(others, `${name}.__elem__`);
    return value && `map<string, ${value}>`;
  }

  #object(schema: JsonSchema, given: string, isObject: boolean): string {
    const name = this.#known.get(schema) ?? given;
    if (this.#known.has(schema) && this.#fields.has(name)) return name;
    const { properties } = schema;
    if (this.#fields.size >= MAX_TYPES_OF_PLACE || --this.#all.left < 0) return 'dyn';
    const fields: Record<string, string> = Object.create(null);
    this.#fields.set(name, new Set());
    const members = { ...(isRecord(properties) ? properties : {}), ...(isObject ? HEAD : {}) };
    for (const member of Object.keys(members)) {
      const [below, names] = [members[member], namesIn(member).filter((each) => this.#named.has(each))];
      const type = names.length > 0 && isRecord(below) ? this.typeOf(below, `${name}.${names[0]}`) : undefined;
      if (type !== undefined) for (const each of names) fields[each] = type;
    }
    this.#fields.set(name, new Set(Object.keys(fields)));
    this.typed.registerType(name, { fields });
    this.typed.registerOperator(`${name} == ${name}`, NEVER).registerOperator(`${name} == null`, NEVER);
    return name;
  }

  check(text: string, wanted: 'bool' | 'string', { typed, running }: Environments): Checked {
    const excess = excessOf(text);
    if (excess !== undefined) return { fault: `compilation failed: ${excess}`, names: NO_NAMES };
    const names = new Set<string>();
    try {
      const { ast, check } = typed.parse(text);
      for (const each of nodesOf(ast)) {
        const looked = each.op === 'call' && each.args[0] === 'has' ? lookInto(each) : undefined;
        if (looked !== undefined) standsAt.set(looked, each);
        if (each.op === 'id') names.add(String(each.args));
      }
      const { valid, type, error } = check();
      if (!valid) throw error ?? new Error('invalid expression');
      const given = typesIn(type ?? 'dyn');
      if (given !== wanted && given !== 'dyn')
        return { fault: `cel expression must evaluate to a ${wanted}`, type: given, names: NO_NAMES };
      this.#patternSize = 0;
      for (const each of nodesOf(ast)) this.#refuseMore(each);
      // Expressions that are run are compiled in another way.
      compiled(running, text, wanted);
      return { type: given, names };
    } catch (error) {
      return { fault: `compilation failed: ${faultText(error as CelError, text)}`, names: NO_NAMES };
    }
  }

  #refuseMore(node: Node): void {
    const [left, right] = partsOf(node);
    const of = left?.checkedType;
    const index = right?.checkedType?.name;
    if (node.op === '.?' && of && this.#fields.get(of.name)?.has(String(node.args[1])) === false) {
      throw new CelFault(`undefined field '${node.args[1]}'`, placeOf(node));
    }
    const isKey = of?.kind !== 'map' || [index, 'dyn'].includes(of.keyType?.name) || index === 'dyn';
    if (node.op === '[]' && of && (!isKey || this.#fields.has(of.name))) throw noOverload(node, '_[_]', partsOf(node));
    refuseFormat(node);
    const [pattern] = node.op === 'rcall' && PATTERNED.has(String(node.args[0])) ? (node.args[2] as readonly Node[]) : [];
    if (pattern?.op !== 'value' || typeof pattern.args !== 'string') return;
    this.#patternSize += sizeOf(pattern.args);
    if (this.#patternSize > MAX_SIZE) throw new CelFault('the patterns of an expression are too large together', pattern.start);
    if (faultOfPattern(pattern.args) === undefined) return;
    throw new CelFault(`invalid ${node.args[0]} argument`, pattern.start);
  }
}

/** What is wrong with an expression that is too long to be looked at. */
function excessOf(text: string): string | undefined {
  if (text.length <= MAX_CODE_POINTS) return undefined;
  let size = 0;
  for (const _ of text) size++;
  if (size <= MAX_CODE_POINTS) return undefined;
  return `ERROR: <input>:-1:0: expression code point size exceeds limit: size: ${size}, limit ${MAX_CODE_POINTS}`;
}

/** What is wrong with `'...'.format([...])`, if both are literals. */
function refuseFormat(node: Node): void {
  const [name, text, [list] = []] = node.op === 'rcall' ? (node.args as unknown as [string, Node, readonly Node[]]) : [];
  if (name !== 'format' || text?.op !== 'value' || typeof text.args !== 'string' || list?.op !== 'list') return;
  const values = partsOf(list);
  let used = 0;
  try {
    for (const { sign } of clausesOf(text.args, values.length)) if (sign !== '') refuseValue(sign, values[used++] as Node);
  } catch (error) {
    throw error instanceof CelFault ? error : new CelFault((error as Error).message, placeOf(node));
  }
  if (used === values.length) return;
  const why = `too many arguments supplied to string.format (expected ${used}, got ${values.length})`;
  throw new CelFault(why, placeOf(node));
}

function refuseValue(sign: string, value: Node): void {
  const name = typeName(value)
    .replace(/\(.*/, '')
    .replace(/^null$/, 'null_type');
  if (name !== 'dyn' && !TAKEN[sign]?.includes(name)) {
    const why = misformatted(`${REFUSALS[sign]}, was given ${LONG_NAMES[name] ?? name}`).message;
    throw new CelFault(why, placeOf(value));
  }
  if (sign === 's' && value.op === 'list') for (const each of partsOf(value)) refuseValue(sign, each);
  if (sign === 's' && value.op === 'map') for (const each of (value.args as unknown as Node[][]).flat()) refuseValue(sign, each);
}

const LONG_NAMES: Readonly<Record<string, string>> = {
  timestamp: 'google.protobuf.Timestamp',
  duration: 'google.protobuf.Duration',
};
/** The types of values that a clause accepts. */
const TAKEN: Readonly<Record<string, readonly string[]>> = {
  s: ['list', 'map', 'int', 'uint', 'double', 'bool', 'string', 'timestamp', 'bytes', 'duration', 'type', 'null_type'],
  ...{ d: ['int', 'uint'], o: ['int', 'uint'], b: ['bool', 'int', 'uint'], f: ['double', 'string'], e: ['double', 'string'] },
  ...{ x: ['int', 'uint', 'string', 'bytes'], X: ['int', 'uint', 'string', 'bytes'] },
};

const SCALARS: Readonly<Record<string, string>> = { boolean: 'bool', number: 'double', integer: 'int' };
const NEVER = (): boolean => false;
const PATTERNED: ReadonlySet<string> = new Set(['matches', 'find', 'findAll']);

const NO_NAMES: ReadonlySet<string> = new Set();

const TEXT: JsonSchema = { type: 'string' };
const recordOf = (...names: readonly string[]): JsonSchema => ({
  type: 'object',
  properties: Object.fromEntries(names.map((name) => [name, TEXT])),
});
const ANYTHING: JsonSchema = { 'x-kubernetes-int-or-string': true };
const TEXTS: JsonSchema = { type: 'array', items: TEXT };

/** The types of the parts of a request. Upstream: `BuildRequestType`. */
const REQUEST_TYPES = {
  'kubernetes.GroupVersionKind': recordOf('group', 'version', 'kind'),
  'kubernetes.GroupVersionResource': recordOf('group', 'version', 'resource'),
  'kubernetes.UserInfo': {
    type: 'object',
    properties: { username: TEXT, uid: TEXT, groups: TEXTS, extra: { type: 'object', additionalProperties: TEXTS } },
  },
} as const satisfies Readonly<Record<string, JsonSchema>>;
const { 'kubernetes.GroupVersionKind': KIND, 'kubernetes.GroupVersionResource': RESOURCE } = REQUEST_TYPES;

/** What conditions know of a request. */
const ADMISSION_REQUEST: JsonSchema = {
  type: 'object',
  properties: {
    ...{ kind: KIND, requestKind: KIND, resource: RESOURCE, requestResource: RESOURCE },
    ...{ subResource: TEXT, requestSubResource: TEXT, name: TEXT, namespace: TEXT, operation: TEXT },
    ...{ dryRun: { type: 'boolean' }, options: ANYTHING, userInfo: REQUEST_TYPES['kubernetes.UserInfo'] },
  },
};
/** What rules know of every object. */
const HEAD: JsonSchema = {
  ...{ apiVersion: TEXT, kind: TEXT },
  metadata: { type: 'object', properties: { name: TEXT, generateName: TEXT } },
};

/** The parts of an expression that has several. */
const partsOf = ({ args }: Node): readonly Node[] => (Array.isArray(args) ? (args as Node[]) : []);

function* nodesOf(tree: unknown): Iterable<Node> {
  const open = [tree];
  while (open.length > 0) {
    const each = open.pop();
    if (Array.isArray(each)) for (let at = each.length - 1; at >= 0; at--) open.push(each[at]);
    else if (isRecord(each) && typeof each.op === 'string') {
      yield each as unknown as Node;
      open.push(each.args);
    }
  }
}

/** What cel-js throws. */
interface CelError extends Error {
  readonly code?: string;
  readonly summary?: string;
  readonly node?: Node;
  readonly range?: { readonly start: number };
}

/** A fault that is already in upstream's words. */
class CelFault extends Error {
  readonly at: number;

  constructor(message: string, at: number) {
    super(message);
    this.at = at;
  }
}

/** An error as cel-go reports it: with its place, and that line. */
function faultText(error: CelError, text: string): string {
  const { message, at } = error instanceof CelFault ? error : translated(error);
  const [before, line] = [text.slice(0, at).split('\n'), text.split('\n')];
  const column = before.at(-1)?.length ?? 0;
  const fault = `ERROR: <input>:${before.length}:${column + 1}: ${message}\n | ${line[before.length - 1]}\n | ${'.'.repeat(column)}^`;
  const lacking = lackingIn(message, { before: text.slice(0, at).trimEnd(), rest: text.slice(at) });
  return lacking === undefined ? fault : `${fault}\n${lacking}${LACKING}`;
}

const LACKING = ': a kube-apiserver has it, but CEL of this server does not';

/** The part of a rule that a kube-apiserver may accept: `[?a]` and `{?'b': c}`, `.5`, and some types. */
function lackingIn(message: string, { before, rest }: { before: string; rest: string }): string | undefined {
  const isEntry = rest.startsWith('?') && '[{,'.includes(before.at(-1) ?? ' ');
  if (message.startsWith('Syntax error: ') && isEntry) return 'an optional item or entry';
  if (message.startsWith('Syntax error: ') && /^\.\d/.test(rest)) return 'a number without a digit before its point';
  if (/overload for 'type' applied to '\(optional_type/.test(message)) return 'the type of an optional value';
  return message.startsWith('undeclared reference') ? /^(?:net|kubernetes)\.[A-Z]\w*/.exec(rest)?.[0] : undefined;
}

function translated(error: CelError): CelFault {
  const { code, node, range, summary = error.message.split('\n')[0] as string } = error;
  const start = range?.start ?? 0;
  if (error.name === 'ParseError') return new CelFault(`Syntax error: ${summary}`, start);
  if (node === undefined) return new CelFault(summary, start);
  const fault = FAULTS[code ?? '']?.(node, summary) ?? summary;
  return typeof fault === 'string' ? new CelFault(fault, placeOf(node)) : fault;
}

/** By the code of cel-js: the fault in upstream's words, or only its message, if it is at the place of the part. */
const FAULTS: Readonly<Record<string, (node: Node, summary: string) => CelFault | string>> = {
  unknown_variable: ({ args }) => undeclared(args),
  no_such_key: (node) => unindexed(node) ?? `undefined field '${node.args[1]}'`,
  no_such_overload: (node) =>
    /^[!-]_$/.test(node.op)
      ? noOverload(node, node.op, [node.args as unknown as Node])
      : noOverload(node, node.op === 'in' ? '@in' : `_${node.op}_`, partsOf(node)),
  incompatible_ternary_branches: (node) => noOverload(node, '_?_:_', partsOf(node)),
  invalid_logical_operand: (node) => {
    const [left, right] = partsOf(node);
    const wrong = (typeName(left) === 'bool' || typeName(left) === 'dyn' ? right : left) as Node;
    return new CelFault(`expected type 'bool' but found '${typeName(wrong)}'`, placeOf(wrong));
  },
  no_matching_overload: (node) => {
    const [name, target, given] = node.op === 'call' ? [node.args[0], undefined, node.args[1]] : node.args;
    const space = target === undefined ? undefined : namespaceOf(target as Node);
    if (node.candidates?.declarations.length !== 0 || isFunction(space === undefined ? String(name) : `${space}.${name}`))
      return noOverload(node, String(name), given as Node[], target as Node | undefined);
    return space === undefined ? undeclared(name) : new CelFault(undeclared(space), (target as Node).start);
  },
  invalid_index_type: (node) => unindexed(node) ?? unselected(node),
  cannot_index_type: (node) => unindexed(node) ?? unselected(node),
  invalid_macro_argument: () => 'invalid argument to has() macro',
  invalid_comprehension_range: (node) =>
    `expression of type '${typeName(node)}' cannot be range of a comprehension (must be list, map, or dynamic)`,
  [UPSTREAM_WORDS]: (_, summary) => typesIn(summary),
};

const unindexed = (node: Node): CelFault | undefined => (node.op === '[]' ? noOverload(node, '_[_]', partsOf(node)) : undefined);
const unselected = (node: Node): string => `type '${typeName(partsOf(node)[0])}' does not support field selection`;

/** The namespace before the dot of a function, if it is not a value. */
function namespaceOf({ args, checkedType }: Node): string | undefined {
  const { type } = NAMESPACES[String(args)] ?? { type: args === 'optional' ? 'OptionalNamespace' : undefined };
  return type !== undefined && checkedType?.name === type ? String(args) : undefined;
}

const undeclared = (name: unknown): string => `undeclared reference to '${name}' (in container '')`;

function noOverload(node: Node, name: string, given: readonly Node[], target?: Node): CelFault {
  const within = target?.op === 'id' ? namespaceOf(target) : undefined;
  if (within !== undefined) return noOverload(node, `${within}.${name}`, given);
  const to = `${target ? `${typeName(target)}.` : ''}(${given.map(typeName).join(', ')})`;
  return new CelFault(`found no matching overload for '${name}' applied to '${to}'`, placeOf(node));
}

/** The type of a part, in cel-go's words. */
const typeName = (node: Node | undefined): string => typesIn(node?.checkedType?.name ?? 'dyn');

/** A text with types, in cel-go's words. */
function typesIn(text: string): string {
  return text
    .replace(/__(idx|elem)__/g, '@$1')
    .replaceAll('google.protobuf.Timestamp', 'timestamp')
    .replaceAll('google.protobuf.Duration', 'duration')
    .replaceAll('optional<', 'optional_type<')
    .replace('<K, V>', '<dyn, dyn>')
    .replaceAll('<', '(')
    .replaceAll('>', ')');
}

/** Parts whose places are reported as those of other parts. */
const standsAt: WeakMap<Node, Node> = new WeakMap();

/** Where cel-go locates an expression: at its dot, bracket, parenthesis or operator. */
function placeOf(part: Node): number {
  const node = standsAt.get(part) ?? part;
  const { op, start, input } = node;
  const [left, other] = partsOf(node);
  const find = (sign: string, from: number): number => Math.max(start, input.indexOf(sign, from));
  if (op === 'call') return find('(', start);
  if (op === 'rcall') return find('(', find('.', other?.end ?? start));
  const sign = /^(?:\.\??|\[\??\]|\?:)$/.test(op) ? op.charAt(0) : undefined;
  if (sign !== undefined) return find(sign, left?.end ?? start);
  return left?.end === undefined ? start : find(op, left.end);
}
