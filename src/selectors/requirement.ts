import { WatchError } from '../watch/errors.ts';
import { Condition, faultOfInteger, type LabelOperator } from './condition.ts';
import { faultOfKey, faultOfValue } from './label-text.ts';
import type { Fault } from './syntax.ts';

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
export class Requirement extends Condition {
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
