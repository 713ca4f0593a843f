/**
 * What a line says: its level, and its fields. Lines come from any program, so nothing about them is certain, and the work for one
 * is bounded: a level is looked for in a few members or in the first characters, fields down to a few levels.
 */
import { jsonOf } from '../words.ts';

/** The levels, from the least to the most important. Their numbers are pino's, continued. */
const RANKS = { trace: 10, debug: 20, info: 30, notice: 35, warn: 40, error: 50, fatal: 60, alert: 70, emerg: 80 } as const;

export type Level = keyof typeof RANKS;

export const LEVELS: readonly Level[] = Object.keys(RANKS) as Level[];

/** What programs and syslog call the levels. */
const WORDS: ReadonlyMap<string, Level> = new Map(
  Object.entries({
    trace: 'trace verbose silly finest trc',
    debug: 'debug fine dbg',
    info: 'info information informational inf',
    notice: 'notice',
    warn: 'warn warning wrn',
    error: 'error err severe',
    fatal: 'fatal critical crit panic ftl',
    alert: 'alert',
    emerg: 'emerg emergency',
  } satisfies Record<Level, string>).flatMap(([level, words]) => words.split(' ').map((word) => [word, level as Level])),
);

/** The severities of syslog, from 0. */
const SEVERITIES: readonly Level[] = ['emerg', 'alert', 'fatal', 'error', 'warn', 'notice', 'info', 'debug'];

/** Where objects have their level; the last ones are journald's. */
const MEMBERS = ['level', 'severity', 'lvl', 'levelname', 'log.level', 'loglevel', 'priority', 'PRIORITY'] as const;

/** How important a level is. */
export function rankOf(level: Level): number {
  return RANKS[level];
}

export function toLevel(value: unknown): Level | undefined {
  if (typeof value === 'string' && !/^\d{1,3}$/.test(value)) return WORDS.get(value.slice(0, 20).toLowerCase());
  const number = typeof value === 'number' || typeof value === 'string' ? Number(value) : Number.NaN;
  if (Number.isInteger(number) && number >= 0 && number < SEVERITIES.length) return SEVERITIES[number];
  return [...LEVELS].reverse().find((level) => RANKS[level] <= number);
}

export function levelOf(object: unknown): Level | undefined {
  if (typeof object === 'string') return levelInText(object);
  for (const member of MEMBERS) {
    const level = toLevel(fieldOf(object, member));
    if (level !== undefined) return level;
  }
  return undefined;
}

/** Characters of a line in which a level is looked for. */
const SEARCHED_CHARS = 300;
const NAMES = [...WORDS.keys()].join('|');
/** `<34>`: facility and severity of syslog. */
const PRIORITY = /^<(\d{1,3})>/;
/** `E0131 10:00:00`: klog. */
const KLOG = /^([IWEF])\d{4} \d/;
/** `level=warn`. */
const MEMBER = new RegExp(`\\b(?:level|lvl|severity)=["']?(${NAMES})\\b`, 'i');
/** `ERROR`, in capitals. */
const CAPITALS = new RegExp(`\\b(${NAMES.toUpperCase()})\\b`);
/** `[error]`, `warning:`. */
const MARKED = new RegExp(`(?:^|[\\s[(<|])(${NAMES})[\\])>|:]`, 'i');

function levelInText(line: string): Level | undefined {
  const text = withoutStyles(line.slice(0, SEARCHED_CHARS));
  const priority = PRIORITY.exec(text)?.[1];
  if (priority !== undefined) return SEVERITIES[Number(priority) % SEVERITIES.length];
  const letter = KLOG.exec(text)?.[1];
  if (letter !== undefined) return { I: 'info', W: 'warn', E: 'error', F: 'fatal' }[letter] as Level;
  const word = (MEMBER.exec(text) ?? CAPITALS.exec(text) ?? MARKED.exec(text))?.[1];
  return word === undefined ? undefined : WORDS.get(word.toLowerCase());
}

/** A text without the escape sequences that only style it. */
export function withoutStyles(text: string): string {
  return text.includes('\u001b') ? text.replace(STYLES, '') : text;
}

/** A sequence that sets colours and other styles (SGR), up to a length. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is what the sequence begins with
export const STYLES: RegExp = /\u001b\[([\d;:]{0,64})m/g;

/** Returns a field by its path: `req.method`. A name that contains dots takes precedence over a path. */
function fieldOf(object: unknown, path: string): unknown {
  let at = object;
  let rest = path;
  while (typeof at === 'object' && at !== null) {
    const members = at as Readonly<Record<string, unknown>>;
    if (Object.hasOwn(at, rest)) return members[rest];
    const dot = rest.indexOf('.');
    const name = rest.slice(0, Math.max(0, dot));
    if (dot < 0 || !Object.hasOwn(at, name)) return undefined;
    at = members[name];
    rest = rest.slice(dot + 1);
  }
  return undefined;
}

/** The text of a field; undefined if there is none. */
export function fieldText(object: unknown, path: string): string | undefined {
  const value = fieldOf(object, path);
  if (typeof value === 'string' || value === undefined) return value;
  return JOURNAL_FIELD.test(path) && isBytes(value) ? lenient.decode(Uint8Array.from(value)) : jsonOf(value);
}

/** journald's fields. `journalctl -o json` writes one that is not UTF-8, or has control characters, as an array of its bytes. */
const JOURNAL_FIELD = /^[A-Z_][A-Z0-9_]{0,63}$/;
const MAX_BYTES = 100_000;
const lenient = new TextDecoder();

function isBytes(value: unknown): value is readonly number[] {
  const isByte = (each: unknown): boolean => Number.isInteger(each) && (each as number) >= 0 && (each as number) < 256;
  return Array.isArray(value) && value.length > 0 && value.length <= MAX_BYTES && value.every(isByte);
}

/** The most names that are known, and the most characters of one. */
const MAX_NAMES = 200;
const MAX_NAME_CHARS = 100;
/** The most members of an object that are examined, and how deeply. */
const MAX_MEMBERS = 50;
const MAX_DEPTH = 3;

/** Adds the names of an object's fields to those that are known. Objects in it are entered; arrays are fields. */
export function learnFields(object: unknown, known: Set<string>, prefix: string = '', depth: number = 1): void {
  if (typeof object !== 'object' || object === null || Array.isArray(object)) return;
  let left = MAX_MEMBERS;
  for (const name in object) {
    if (left-- === 0 || known.size >= MAX_NAMES) return;
    const path = prefix + name;
    if (!isName(path)) continue;
    const value = (object as Readonly<Record<string, unknown>>)[name];
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0;
    if (isObject && depth < MAX_DEPTH) learnFields(value, known, `${path}.`, depth + 1);
    else known.add(path);
  }
}

/** Whether a field can be named in a filter and in a URL. */
export function isName(path: string): boolean {
  return path.length <= MAX_NAME_CHARS && /^[\w$@][\w.$@/-]*$/.test(path);
}
