import { WatchError } from '../watch/errors.ts';
import { faultOfKey, faultOfValue, toInt64 } from './label-text.ts';
import { byCodeUnit, type Fault } from './syntax.ts';

/** The labels of an object. Only own properties count. */
export type Labels = Readonly<Record<string, string>>;

/**
 * How a requirement judges the value of its key.
 *
 * | operator | in text | values | holds when |
 * |---|---|---|---|
 * | `=`, `==` | `k=v`, `k==v` | one | the label is there, and has this value |
 * | `in` | `k in (v,w)` | one or more | the label is there, and has one of these values |
 * | `!=` | `k!=v` | one | the label is absent, or has another value |
 * | `notin` | `k notin (v,w)` | one or more | the label is absent, or has none of these values |
 * | `exists` | `k` | none | the label is there |
 * | `!` | `!k` | none | the label is absent |
 * | `gt`, `lt` | `k>5`, `k<5` | one 64-bit integer | the label is there, is a 64-bit integer, and is greater, or less |
 */
export type LabelOperator = '=' | '==' | 'in' | '!=' | 'notin' | 'exists' | '!' | 'gt' | 'lt';

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
export class Requirement {
  readonly key: string;
  readonly operator: LabelOperator;
  /** Sorted, each once. */
  readonly values: readonly string[];
  private readonly bound: bigint;

  /**
   * @throws {WatchError} INVALID_ARGUMENT, which names everything that is wrong: the syntax of the key and the values, how many
   *   values the operator takes, and whether they are integers where they must be.
   */
  constructor(key: string, operator: LabelOperator, values: readonly string[] = []) {
    const wrong = faultsOf(key, operator, values);
    if (wrong.length > 0) throw new WatchError('INVALID_ARGUMENT', `requirement: ${wrong.join('; ')}`);
    this.key = key;
    this.operator = operator;
    this.values = [...new Set(values)].sort(byCodeUnit);
    this.bound = toInt64(this.values[0] ?? '') ?? 0n;
  }

  /** Whether an object with these labels fulfils it. */
  matches(labels: Labels | null | undefined): boolean {
    const value = labelOf(labels, this.key);
    switch (this.operator) {
      case 'exists':
        return value !== undefined;
      case '!':
        return value === undefined;
      case '!=':
      case 'notin':
        return value === undefined || !this.values.includes(value);
      case 'gt':
      case 'lt':
        return value !== undefined && this.compares(value);
      default:
        return value !== undefined && this.values.includes(value);
    }
  }

  /** The text that is parsed to the same requirement. */
  toString(): string {
    const { key, operator, values } = this;
    switch (operator) {
      case 'exists':
        return key;
      case '!':
        return `!${key}`;
      case 'in':
      case 'notin':
        return `${key} ${operator} (${values.join(',')})`;
      case 'gt':
        return `${key}>${values[0]}`;
      case 'lt':
        return `${key}<${values[0]}`;
      default:
        return `${key}${operator}${values[0]}`;
    }
  }

  private compares(value: string): boolean {
    const number = toInt64(value);
    if (number === undefined) return false;
    return this.operator === 'gt' ? number > this.bound : number < this.bound;
  }
}

/** The value of a label, or undefined if there is none. A label may be named `constructor` or `__proto__`. */
export function labelOf(labels: Labels | null | undefined, key: string): string | undefined {
  return labels && Object.hasOwn(labels, key) ? labels[key] : undefined;
}

function faultsOf(key: string, operator: LabelOperator, values: readonly string[]): string[] {
  const faults: string[] = [];
  const spell = (of: string, value: unknown, fault: Fault | undefined): void => {
    if (fault)
      faults.push(`${of} ${JSON.stringify(value)?.slice(0, 80)}: expected ${fault.expected} at character ${fault.at + 1}`);
  };
  if (typeof key !== 'string') return ['expected a string as the key'];
  spell('key', key, faultOfKey(key));
  if (!Object.hasOwn(ARITY, operator)) return [...faults, `operator ${JSON.stringify(operator)}: expected one of ${OPERATORS}`];
  const [fits, expected] = ARITY[operator];
  if (!Array.isArray(values) || !fits(values.length)) faults.push(`operator ${operator}: expected ${expected}`);
  for (const value of Array.isArray(values) ? values : []) {
    if (typeof value !== 'string') faults.push('expected strings as values');
    else
      spell('value', value, (operator === 'gt' || operator === 'lt' ? faultOfInteger(value) : undefined) ?? faultOfValue(value));
  }
  return faults;
}

const OPERATORS = Object.keys(ARITY).join(' ');

/** What is wrong with the value behind `>` or `<`. */
export function faultOfInteger(value: string): Fault | undefined {
  return toInt64(value) === undefined ? { at: 0, expected: 'a 64-bit integer' } : undefined;
}
