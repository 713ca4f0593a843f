import { type Condition, type Labels, labelOf } from './condition.ts';
import { toInt64 } from './label-text.ts';
import { byCodeUnit } from './syntax.ts';

/** The text of a selector that nothing matches. The language has no direct way to say that, so this is the canonical one. */
export const NOTHING = 'nothing,!nothing';

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
export interface Possible {
  absent: boolean;
  present: boolean;
  only: Set<string> | undefined;
  low: bigint | undefined;
  high: bigint | undefined;
  readonly not: Set<string>;
}

/** What requirements allow together, by key. */
export function possibleLabels(requirements: readonly Condition[]): ReadonlyMap<string, Possible> {
  const byKey = new Map<string, Possible>();
  for (const requirement of requirements) {
    const possible = byKey.get(requirement.key) ?? anything();
    byKey.set(requirement.key, possible);
    narrow(possible, requirement);
  }
  return byKey;
}

/** Up to so many optional labels are looked up one by one; of more, those that an object has. */
const FEW = 8;

/**
 * Tests labels against what a selector allows. A test takes about as many steps as the object has labels, or the selector keys,
 * whichever is less: a selector may have a thousand keys, and be tested with each object of a collection.
 */
export class LabelTest {
  /** Labels that must be there, those that are compared as numbers last. An object fails at the first that it does not have. */
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
 * That makes it simple: there are always more values than a selector excludes, so a set that is described by what it excludes is
 * never empty.
 */
export function canonicalLabels(byKey: ReadonlyMap<string, Possible>): string {
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

function narrow(possible: Possible, { operator, values }: Condition): void {
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

/** The bounds between which every 64-bit integer lies. Literals: bundlers would keep a computed value even if it is unused. */
const BELOW_ALL = -9_223_372_036_854_775_809n;
const ABOVE_ALL = 9_223_372_036_854_775_808n;

function isBetween(number: bigint | undefined, low: bigint = BELOW_ALL, high: bigint = ABOVE_ALL): boolean {
  return number !== undefined && number > low && number < high;
}

function listed(key: string, values: readonly string[], one: '=' | '!=', many: 'in' | 'notin'): string {
  return values.length === 1 ? `${key}${one}${values[0]}` : `${key} ${many} (${[...values].sort(byCodeUnit).join(',')})`;
}
