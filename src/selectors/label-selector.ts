import { WatchError } from '../watch/errors.ts';
import { readConditions } from './label-parser.ts';
import {
  byCodeUnit,
  type Fault,
  faultOfInteger,
  faultOfKey,
  faultOfValue,
  LabelCondition,
  type LabelOperator,
  type Labels,
  labelOf,
  type ParseOptions,
  toInt64,
} from './syntax.ts';

/** A label selector as it appears in objects, such as in `spec.selector` of a Deployment. All its conditions must hold. */
interface LabelSelectorObject {
  readonly matchLabels?: Readonly<Record<string, string>> | null | undefined;
  readonly matchExpressions?: readonly LabelExpression[] | null | undefined;
}

interface LabelExpression {
  readonly key: string;
  /** `In`, `NotIn`, `Exists` or `DoesNotExist`. */
  readonly operator: string;
  readonly values?: readonly string[] | null | undefined;
}

const EXPRESSION_OPERATORS: ReadonlyMap<string, LabelOperator> = new Map([
  ['In', 'in'],
  ['NotIn', 'notin'],
  ['Exists', 'exists'],
  ['DoesNotExist', '!'],
]);

/**
 * Selects objects by their labels: every requirement must hold. Immutable. Upstream: `labels.Selector`.
 *
 *     parseLabelSelector('app in (web,api),!canary').matches({ app: 'web' })   // true
 */
export class LabelSelector {
  /** Sorted by key; requirements with the same key keep the order in which they were given. */
  readonly requirements: readonly Requirement[];
  private known: string | undefined;
  /** Made at the first use. */
  private test: LabelTest | undefined;

  constructor(requirements: readonly Requirement[] = []) {
    this.requirements = [...requirements].sort((one, other) => byCodeUnit(one.key, other.key));
  }

  /** Selects every object. */
  static everything(): LabelSelector {
    return new LabelSelector();
  }

  /** Selects no object. Printed as `nothing,!nothing`, which parses to a selector that also selects nothing. */
  static nothing(): LabelSelector {
    return parseLabelSelector(NOTHING);
  }

  /**
   * Selects the objects that have all these labels, with these values; every object for null, undefined or no labels.
   *
   * @throws {WatchError} INVALID_ARGUMENT for a key or a value that no label can have.
   */
  static fromLabels(labels: Labels | null | undefined): LabelSelector {
    return new LabelSelector(Object.entries(labels ?? {}).map(([key, value]) => new Requirement(key, '=', [value])));
  }

  /**
   * Converts the form with `matchLabels` and `matchExpressions`. As upstream: an object without conditions selects everything, null
   * and undefined select nothing.
   *
   * @throws {WatchError} INVALID_ARGUMENT for an invalid key or operator, or invalid values.
   */
  static fromObject(object: LabelSelectorObject | null | undefined): LabelSelector {
    if (object === null || object === undefined) return LabelSelector.nothing();
    const { requirements } = LabelSelector.fromLabels(object.matchLabels);
    const expressions = (object.matchExpressions ?? []).map(({ key, operator, values }) => {
      const own = EXPRESSION_OPERATORS.get(operator);
      if (own) return new Requirement(key, own, values ?? []);
      const names = [...EXPRESSION_OPERATORS.keys()].join(', ');
      throw new WatchError('INVALID_ARGUMENT', `operator ${JSON.stringify(operator)?.slice(0, 80)}: expected one of ${names}`);
    });
    return new LabelSelector([...requirements, ...expressions]);
  }

  /** Whether an object with these labels is selected. No labels, null and undefined are the same. */
  matches(labels: Labels | null | undefined): boolean {
    this.test ??= new LabelTest(possibleLabels(this.requirements));
    return this.test.matches(labels);
  }

  /** Whether it has no requirement, and so selects everything. */
  get isEmpty(): boolean {
    return this.requirements.length === 0;
  }

  /** Whether no labels can satisfy all requirements, as with `a=1,a=2`. */
  get matchesNothing(): boolean {
    return this.canonical === NOTHING;
  }

  /**
   * A text that is the same for exactly those selectors that select the same labels, so it can serve as a key in a map. It parses
   * to an equal selector.
   */
  get canonical(): string {
    this.known ??= canonicalLabels(possibleLabels(this.requirements));
    return this.known;
  }

  /** Whether both select the same labels, however they are written. */
  equals(other: LabelSelector): boolean {
    return this.canonical === other.canonical;
  }

  /**
   * The one value that a label must have to be selected, if the first requirement for its key says so (`=`, `==`, or `in` with
   * one value); otherwise undefined. Use it for an index or a topic: all selected objects are found under this value.
   */
  requiresExactMatch(key: string): string | undefined {
    const { operator, values } = this.requirements.find((each) => each.key === key) ?? {};
    const pins = operator === '=' || operator === '==' || operator === 'in';
    return pins && values?.length === 1 ? values[0] : undefined;
  }

  /** Returns a selector with additional requirements. This one is not changed. */
  add(...requirements: readonly Requirement[]): LabelSelector {
    return new LabelSelector([...this.requirements, ...requirements]);
  }

  /** Text that parses to the same requirements: sorted by key, with the values of each sorted. */
  toString(): string {
    return this.requirements.join(',');
  }

  /** The same as `toString`. */
  toJSON(): string {
    return this.toString();
  }
}

/**
 * Parses a label selector, in the syntax of Kubernetes' `labelSelector` parameter and of `kubectl -l`.
 *
 * | text | selects objects whose label `k` |
 * |---|---|
 * | `k=v`, `k==v`, `k in (v,w)` | has this value, or one of these |
 * | `k!=v`, `k notin (v,w)` | is absent, or has another value |
 * | `k`, `!k` | is present, is absent |
 * | `k>5`, `k<5` | is a 64-bit integer that is greater, less |
 *
 * A comma means AND; an empty selector selects everything. docs/selectors.md lists the deliberate differences from upstream.
 *
 * @throws {WatchError} INVALID_SELECTOR for an invalid text, with the `position` of the character, which the message marks with a
 *   caret; or with the `limit`, for a text longer than `maxChars`.
 */
export function parseLabelSelector(text: string, options: ParseOptions = {}): LabelSelector {
  return new LabelSelector(
    readConditions(text, options).map(({ key, operator, values }) => new Requirement(key, operator, values)),
  );
}

/** How many values an operator takes, as a test and in words. */
const ARITY: Readonly<Record<LabelOperator, readonly [(count: number) => boolean, string]>> = {
  '=': [(count) => count === 1, 'exactly one value'],
  '==': [(count) => count === 1, 'exactly one value'],
  '!=': [(count) => count === 1, 'exactly one value'],
  gt: [(count) => count === 1, 'exactly one value'],
  lt: [(count) => count === 1, 'exactly one value'],
  in: [(count) => count >= 1, 'at least one value'],
  notin: [(count) => count >= 1, 'at least one value'],
  exists: [(count) => count === 0, 'no value'],
  '!': [(count) => count === 0, 'no value'],
};

/** One condition on one label, such as `app in (web,api)`. Immutable. */
export class Requirement extends LabelCondition {
  /**
   * @throws {WatchError} INVALID_ARGUMENT, which names everything that is wrong: the syntax of the key and the values, how many
   *   values the operator takes, and whether they are integers where they must be.
   */
  constructor(key: string, operator: LabelOperator, values: readonly string[] = []) {
    const wrong = faultsOf(key, operator, values);
    if (wrong.length > 0) throw new WatchError('INVALID_ARGUMENT', `requirement: ${wrong.join('; ')}`);
    super(key, operator, values);
  }

  /** The text that is parsed to the same requirement. */
  override toString(): string {
    const { key, operator, values } = this;
    if (operator === 'exists') return key;
    if (operator === '!') return `!${key}`;
    if (operator === 'in' || operator === 'notin') return `${key} ${operator} (${values.join(',')})`;
    return `${key}${{ gt: '>', lt: '<' }[operator as string] ?? operator}${values[0]}`;
  }
}

function faultsOf(key: string, operator: LabelOperator, values: readonly string[]): string[] {
  const faults: string[] = [];
  const spell = (of: string, value: unknown, fault: Fault | undefined): void => {
    if (fault)
      faults.push(`${of} ${JSON.stringify(value)?.slice(0, 80)}: expected ${fault.expected} at character ${fault.at + 1}`);
  };
  if (typeof key !== 'string') return ['expected a string as the key'];
  spell('key', key, faultOfKey(key));
  if (!Object.hasOwn(ARITY, operator)) {
    return [...faults, `operator ${JSON.stringify(operator)}: expected one of ${Object.keys(ARITY).join(' ')}`];
  }
  const [fits, expected] = ARITY[operator];
  if (!Array.isArray(values) || !fits(values.length)) faults.push(`operator ${operator}: expected ${expected}`);
  for (const value of Array.isArray(values) ? values : []) {
    if (typeof value !== 'string') faults.push('expected strings as values');
    else
      spell('value', value, (operator === 'gt' || operator === 'lt' ? faultOfInteger(value) : undefined) ?? faultOfValue(value));
  }
  return faults;
}

/** The canonical text of a selector that matches nothing, which the syntax cannot express directly. */
const NOTHING = 'nothing,!nothing';

/**
 * The states of one label that all requirements on its key allow. A label is absent, or it has a value; so a set of labels is
 *
 *     absent?                   whether the label may be absent
 *     present?                  whether it may be there; if so, its value is
 *       one of `only`             if some requirement lists the values that it may have
 *       any value else, but
 *         integers > low, < high  if some requirement compares
 *         none of `not`
 *
 * Every requirement cuts such a set down to a smaller one of the same form.
 */
interface Possible {
  absent: boolean;
  present: boolean;
  only: Set<string> | undefined;
  low: bigint | undefined;
  high: bigint | undefined;
  readonly not: Set<string>;
}

/** What requirements allow together, by key. */
function possibleLabels(requirements: readonly LabelCondition[]): ReadonlyMap<string, Possible> {
  const byKey = new Map<string, Possible>();
  for (const requirement of requirements) {
    const possible = byKey.get(requirement.key) ?? anything();
    byKey.set(requirement.key, possible);
    narrow(possible, requirement);
  }
  return byKey;
}

/** Up to this many optional labels are looked up one by one; if there are more, the object's own labels are looked up instead. */
const FEW = 8;

/**
 * Tests labels against what a selector allows. A test takes about as many steps as the object has labels, or the selector keys,
 * whichever is less: a selector may have a thousand keys, and be tested with each object of a collection.
 */
class LabelTest {
  /** Labels that must be present, those that are compared as numbers last. An object fails at the first that it lacks. */
  readonly #needed: readonly (readonly [key: string, Possible])[];
  readonly #optional: ReadonlyMap<string, Possible>;

  constructor(byKey: ReadonlyMap<string, Possible>) {
    const all = [...byKey];
    const cost = ([, possible]: readonly [string, Possible]): number => (isCompared(possible) ? 1 : 0);
    this.#needed = all.filter(([, { absent }]) => !absent).sort((one, other) => cost(one) - cost(other));
    this.#optional = new Map(all.filter(([, { absent }]) => absent));
  }

  matches(labels: Labels | null | undefined): boolean {
    for (const [key, possible] of this.#needed) if (!allows(possible, labelOf(labels, key))) return false;
    if (!labels || this.#optional.size === 0) return true;
    const keys = this.#optional.size <= FEW ? this.#optional.keys() : Object.keys(labels);
    for (const key of keys) {
      const possible = this.#optional.get(key);
      if (possible && !allows(possible, labelOf(labels, key))) return false;
    }
    return true;
  }
}

function allows(possible: Possible, value: string | undefined): boolean {
  const { absent, present, only, low, high, not } = possible;
  if (value === undefined) return absent;
  if (!present || not.has(value) || only?.has(value) === false) return false;
  return !isCompared(possible) || isBetween(toInt64(value), low, high);
}

const isCompared = ({ low, high }: Possible): boolean => low !== undefined || high !== undefined;

/**
 * The canonical text of what requirements allow: the same for two selectors if, and only if, they select the same labels.
 *
 *     a in (1),b             a=1,b
 *     b,a==1                 a=1,b
 *     a in (1,2),a!=2,b,b    a=1,b
 *     a=1,a=2                nothing,!nothing
 *
 * Requirements come sorted by key, as a selector has them. This holds for labels of any text, even text that no server accepts.
 * This keeps it simple: there are always more values than a selector excludes, so a set that is described by exclusions is never
 * empty.
 */
function canonicalLabels(byKey: ReadonlyMap<string, Possible>): string {
  const texts: string[] = [];
  for (const [key, possible] of byKey) {
    const own = printed(key, possible);
    if (own === undefined) return NOTHING;
    texts.push(...own);
  }
  return texts.join(',');
}

function anything(): Possible {
  return { absent: true, present: true, only: undefined, low: undefined, high: undefined, not: new Set() };
}

function narrow(possible: Possible, { operator, values }: LabelCondition): void {
  switch (operator) {
    case '!':
      possible.present = false;
      return;
    case '!=':
    case 'notin':
      for (const value of values) possible.not.add(value);
      return;
    case 'exists':
      break;
    case 'gt':
    case 'lt': {
      const bound = toInt64(values[0] as string) as bigint;
      if (operator === 'gt') possible.low = possible.low === undefined || bound > possible.low ? bound : possible.low;
      else possible.high = possible.high === undefined || bound < possible.high ? bound : possible.high;
      break;
    }
    default:
      possible.only = new Set(values.filter((value) => possible.only?.has(value) ?? true));
  }
  possible.absent = false;
}

/** The requirements that describe a set of labels, or undefined if it is empty. */
function printed(key: string, possible: Possible): string[] | undefined {
  const { absent, present, only, low, high, not } = possible;
  const compared = isCompared(possible);
  const fits = (value: string): boolean => !compared || isBetween(toInt64(value), low, high);
  if (only) {
    const left = [...only].filter((value) => !not.has(value) && fits(value));
    return present && left.length > 0 ? [listed(key, left, '=', 'in')] : undefined;
  }
  const hasAnyValue = present && (low ?? BELOW_ALL) + 1n < (high ?? ABOVE_ALL);
  if (!hasAnyValue) return absent ? [`!${key}`] : undefined;
  const texts: string[] = [];
  if (low !== undefined) texts.push(`${key}>${low}`);
  if (high !== undefined) texts.push(`${key}<${high}`);
  if (!absent && !compared) texts.push(key);
  const excluded = [...not].filter(fits);
  if (excluded.length > 0) texts.push(listed(key, excluded, '!=', 'notin'));
  return texts;
}

/** The bounds between which every 64-bit integer lies. Literals, as bundlers would keep computed values even if unused. */
const BELOW_ALL = -9_223_372_036_854_775_809n;
const ABOVE_ALL = 9_223_372_036_854_775_808n;

function isBetween(number: bigint | undefined, low: bigint = BELOW_ALL, high: bigint = ABOVE_ALL): boolean {
  return number !== undefined && number > low && number < high;
}

function listed(key: string, values: readonly string[], one: '=' | '!=', many: 'in' | 'notin'): string {
  return values.length === 1 ? `${key}${one}${values[0]}` : `${key} ${many} (${[...values].sort(byCodeUnit).join(',')})`;
}

/** Prints labels as `key=value` with commas between, sorted by key: `app=web,tier=front`. Upstream: `Set.String`. */
export function printLabels(labels: Labels): string {
  return Object.keys(labels)
    .sort(byCodeUnit)
    .map((key) => `${key}=${labels[key]}`)
    .join(',');
}
