/**
 * The regular expressions of schemas, in the syntax of RE2, as in Kubernetes. They are matched in linear time: with JavaScript's
 * own, which backtrack, a client could block the server with 40 characters. The engine, `re2js`, is loaded when the first pattern
 * needs it.
 */
import { refused } from '../../storage/statuses.ts';
import { WatchError } from '../../watch/errors.ts';
import type { Soon } from '../../watch/fair-queue.ts';

/** A compiled pattern. */
export interface Pattern {
  /** Whether it matches anywhere in a text. Throws 422 for a text that is too long. */
  test(text: string): boolean;
  /** Its source, by which ajv tells patterns apart. */
  toString(): string;
}

/** The most instructions of a pattern, which is compiled in one go: about 2 us each. Go allows three million. */
export const MAX_SIZE = 16_384;

/** The most patterns that are kept compiled: definitions come and go. */
const MAX_COMPILED = 16_384;

/** A pattern as re2js has compiled it. */
export interface Program {
  test(text: string): boolean;
  matcher(text: string): { find(): boolean; group(): string | null; end(): number };
}

/** The part of re2js that is used. */
interface Engine {
  translateRegExp(source: string): string;
  compile(source: string): Program;
}

/** Thrown when a pattern is needed before the engine has been loaded. */
class NotLoaded extends Error {}

/** The longest text that is matched, in characters: a match cannot be interrupted. */
export const MAX_MATCHED_CHARS = 262_144;

let engine: Engine | undefined;
const compiled: Map<string, Pattern> = new Map();

function loaded(): Engine {
  if (engine === undefined) throw new NotLoaded();
  return engine;
}

/**
 * Compiles a pattern. Call it only within {@link withPatterns}.
 *
 * @throws {WatchError} INVALID_ARGUMENT if it is not a pattern of RE2.
 */
export function toPattern(source: string): Pattern {
  const known = compiled.get(source);
  if (known !== undefined) return known;
  const made = loaded();
  try {
    const program = compile(made, source);
    const pattern: Pattern = { test: (text) => program.test(checked(text)), toString: () => source };
    if (compiled.size >= MAX_COMPILED) compiled.clear();
    compiled.set(source, pattern);
    return pattern;
  } catch (cause) {
    const why = `pattern ${JSON.stringify(source).slice(0, 200)}: expected the syntax of RE2: ${(cause as Error).message}`;
    throw new WatchError('INVALID_ARGUMENT', why, { cause });
  }
}

/** About how many instructions a pattern has, with repetitions written out. Takes time linear in its length. */
export function sizeOf(source: string): number {
  if (source.length > MAX_SIZE) return source.length;
  const outer: number[] = [];
  let [total, last] = [0, 0];
  for (const [token] of source.matchAll(/\\[\s\S]|\{\d{1,4}(?:,\d{0,4})?\}|[\s\S]/g)) {
    if (token === '(') {
      outer.push(total);
      total = 0;
    } else if (token === ')') {
      last = total + 2;
      total = last + (outer.pop() ?? 0);
    } else if (token.length > 1 && token.startsWith('{')) {
      const times = Math.max(...token.slice(1, -1).split(',').map(Number), 1) - 1;
      total += last * times;
      last += last * times;
    } else {
      // Unicode classes are long tables, which are read once.
      const isClass = /\\[pP]/.test(token);
      last = isClass ? 8 : 1;
      total += isClass ? 64 : 1;
    }
  }
  return total + outer.reduce((sum, each) => sum + each, 1);
}

function checkSize(source: string): void {
  if (sizeOf(source) <= MAX_SIZE) return;
  throw new Error(`error parsing regexp: expression too large: more than ${MAX_SIZE} instructions`);
}

/** In Go's syntax; failing that, with JavaScript's escapes, such as `\\u0041`, rewritten. */
function compile(engine: Engine, source: string): Program {
  checkSize(source);
  try {
    return engine.compile(source);
  } catch {
    return engine.compile(engine.translateRegExp(source));
  }
}

/** What Go would say is wrong with a pattern; undefined if nothing is. Call it only within {@link withPatterns}. */
export function faultOfPattern(source: string): string | undefined {
  const made = loaded();
  try {
    checkSize(source);
    made.compile(source);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Compiles a pattern of a rule, which is not kept. Throws what is wrong with it. */
export const programOf = (source: string): Program => compile(loaded(), source);

function checked(text: string): string {
  if (text.length <= MAX_MATCHED_CHARS) return text;
  const message = `Too long: a string of ${text.length} characters has to match a pattern: may not be more than ${MAX_MATCHED_CHARS}`;
  throw refused(422, 'Invalid', message);
}

/**
 * Runs code that compiles patterns. If there are any, runs it again once the engine has been loaded.
 *
 * @throws {WatchError} INVALID_ARGUMENT if there are, and the package is not installed.
 */
export async function withPatterns<R>(work: () => Soon<R>): Promise<R> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof NotLoaded)) throw error;
  }
  engine ??= await load();
  return work();
}

async function load(): Promise<Engine> {
  try {
    const { RE2JS } = await import('re2js');
    return RE2JS;
  } catch (cause) {
    const message = 'a schema with patterns needs the package re2js: npm install re2js, or leave out its patterns';
    throw new WatchError('INVALID_ARGUMENT', message, { cause });
  }
}
