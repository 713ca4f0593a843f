/**
 * Members that a JSON text contains twice, of which a parser keeps the last. No search is needed to know whether there are any:
 * each member has one colon outside of strings, so there are as many colons as members, unless a name is repeated.
 *
 *     text ---> colons --.
 *                        +--> as many? none came twice
 *     value --> members -'    otherwise: the search, once through the text
 */
import { FieldPaths, type Step } from './field-paths.ts';

/** How many members a value has, at any depth. */
export function membersIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  let members = 0;
  if (Array.isArray(value)) {
    for (const each of value) if (typeof each === 'object') members += membersIn(each);
    return members;
  }
  const own = value as Readonly<Record<string, unknown>>;
  for (const name of Object.keys(own)) {
    members++;
    const each = own[name];
    if (typeof each === 'object') members += membersIn(each);
  }
  return members;
}

/** An open object or list of the text. */
interface Level {
  /** The names so far; undefined for a list. */
  readonly names: Set<string> | undefined;
  /** The current element of the list. */
  index: number;
  /** The current member of the object. */
  name: string;
  /** Whether the next string is a name. */
  isNext: boolean;
}

/** Finds them in a valid JSON text. */
export function duplicateFields(text: string): FieldPaths {
  const found = new FieldPaths();
  const levels: Level[] = [];
  let level: Level | undefined;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) {
      const end = endOfText(text, at);
      if (level?.isNext && !isNew(level, nameOf(text.slice(at + 1, end)))) found.add(() => levels.map(stepOf));
      at = end;
    } else if (char === COMMA) proceed(level as Level);
    else if (char === OBJECT || char === LIST) {
      const isObject = char === OBJECT;
      level = { names: isObject ? new Set() : undefined, index: 0, name: '', isNext: isObject };
      levels.push(level);
    } else if (char === END_OF_OBJECT || char === END_OF_LIST) {
      levels.pop();
      level = levels[levels.length - 1];
    }
  }
  return found;
}

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OBJECT, END_OF_OBJECT, LIST, END_OF_LIST] = [0x7b, 0x7d, 0x5b, 0x5d];

const stepOf = ({ names, index, name }: Level): Step => (names === undefined ? index : name);

function proceed(level: Level): void {
  if (level.names === undefined) level.index++;
  else level.isNext = true;
}

/** Whether the object has no member of this name yet. */
function isNew(level: Level, name: string): boolean {
  level.isNext = false;
  level.name = name;
  const { names } = level;
  if (names === undefined || names.has(name)) return false;
  names.add(name);
  return true;
}

/** The name that is written between quotes. */
function nameOf(written: string): string {
  return written.includes('\\') ? (JSON.parse(`"${written}"`) as string) : written;
}

/** The last quote of the string that begins here. */
function endOfText(text: string, start: number): number {
  let at = start + 1;
  for (let char = text.charCodeAt(at); char !== QUOTE; char = text.charCodeAt(++at)) if (char === BACKSLASH) at++;
  return at;
}
