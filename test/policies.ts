// The overflow policies by what they promise, for tests that are about some of them: a new policy belongs to those whose promise
// it makes, so none of these lists is written by hand.
import { type PolicyRules, RULES } from '../src/testing/checkers/history.ts';
import { OVERFLOWS, type Overflow } from '../src/watch/overflow.ts';

/** The policies with these rules. `Of` is what the compiler is to take them for. */
export function policiesWith<Of extends Overflow = Overflow>(rules: Partial<PolicyRules>): readonly Of[] {
  const wanted = Object.entries(rules) as [keyof PolicyRules, boolean][];
  return OVERFLOWS.filter((policy): policy is Of => wanted.every(([rule, value]) => RULES[policy][rule] === value));
}

/** The policies whose watchers lose events without being told in the stream. */
export const LOSSY: readonly Overflow[] = policiesWith({ waits: false, cuts: false });
