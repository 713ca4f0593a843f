/**
 * The patterns of rules, which objects may bring: they cost what they are going to take, before they are compiled and before they are
 * matched. They are kept apart from those of schemas, by their size.
 */
import { spend } from './meter.ts';
import { type Program, programOf } from './patterns.ts';

/** The longest pattern, in characters. */
const MAX_PATTERN_CHARS = 4_096;
/** The most instructions of patterns that are kept. */
const MAX_KEPT_SIZE = 262_144;
/** What an instruction costs, in steps: it takes about 2 us to be compiled, and 3 ns or more at each character. */
const COMPILE_COST = 16;
const MATCH_SHIFT = 5;

interface Kept {
  readonly program: Program;
  readonly size: number;
}

/** Those used last are at the end. */
const kept: Map<string, Kept> = new Map();
let keptSize = 0;

/** About how many instructions a pattern has: repetitions are written out. Linear in its length. */
function sizeOf(source: string): number {
  const outer: number[] = [];
  let [total, last] = [0, 0];
  for (const [token] of source.matchAll(/\\[pP]\{?|\\[\s\S]|\{\d{1,4}(?:,\d{0,4})?\}|[\s\S]/g)) {
    if (token === '(') {
      outer.push(total);
      total = 0;
    } else if (token === ')') {
      last = total + 2;
      total = last + (outer.pop() ?? 0);
    } else if (token.length > 2 && token.startsWith('{')) {
      const times = Math.max(...token.slice(1, -1).split(',').map(Number), 1) - 1;
      total += last * times;
      last += last * times;
    } else {
      // Classes of Unicode are long tables.
      last = /^\\[pP]/.test(token) ? 64 : 1;
      total += last;
    }
  }
  return total + outer.reduce((sum, each) => sum + each, 1);
}

function patternOf(source: string): Kept {
  if (source.length > MAX_PATTERN_CHARS) {
    throw new Error(`a pattern of ${source.length} characters: expected at most ${MAX_PATTERN_CHARS}`);
  }
  let pattern = kept.get(source);
  if (pattern === undefined) {
    const size = sizeOf(source);
    spend(size * COMPILE_COST);
    pattern = { program: programOf(source), size };
    keptSize += size;
  }
  kept.delete(source);
  kept.set(source, pattern);
  for (const [oldest, { size }] of kept) {
    if (keptSize <= MAX_KEPT_SIZE) break;
    kept.delete(oldest);
    keptSize -= size;
  }
  return pattern;
}

const costOf = ({ size }: Kept, chars: number): number => 1 + Math.floor((chars * size) / 2 ** MATCH_SHIFT);

/** Whether a pattern matches anywhere in a text. */
export function matches(text: string, source: string): boolean {
  const pattern = patternOf(source);
  spend(costOf(pattern, text.length));
  return pattern.program.test(text);
}

/** The parts of a text that a pattern matches, at most so many. Each may have been looked for up to the end. */
export function found(source: string, text: string, limit: number): string[] {
  const pattern = patternOf(source);
  const matcher = pattern.program.matcher(text);
  const parts: string[] = [];
  for (let from = 0; parts.length < limit; from = matcher.end()) {
    spend(costOf(pattern, text.length - from));
    if (!matcher.find()) break;
    parts.push(matcher.group() ?? '');
  }
  return parts;
}
