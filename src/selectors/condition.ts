import { toInt64 } from './label-text.ts';
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

/**
 * One condition on one label, such as `app in (web,api)`, which is known to be well-formed. This is all that selecting needs, so
 * code that imports only this does without the rest of a {@link Requirement}: checking its parts, and printing.
 */
export class Condition {
  readonly key: string;
  readonly operator: LabelOperator;
  /** Sorted, each once. */
  readonly values: readonly string[];
  private readonly bound: bigint;

  constructor(key: string, operator: LabelOperator, values: readonly string[] = []) {
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

/** What is wrong with the value after `>` or `<`. */
export function faultOfInteger(value: string): Fault | undefined {
  return toInt64(value) === undefined ? { at: 0, expected: 'a 64-bit integer' } : undefined;
}
