/**
 * Members that a JSON text names twice, of which a parser keeps the last. Whether there are any is known without a search: each member
 * has one colon outside of the texts, so there are as many colons as members, unless a name came again.
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

/** An object or a list of the text, whose end has not come yet. */
interface Level {
  /** The names so far; undefined: a list. */
  readonly names: Set<string> | undefined;
  /** The element of the list that is read. */
  index: number;
  /** The member of the object that is read. */
  name: string;
  /** Whether the next text is a name. */
  isNext: boolean;
}

/** Finds them in a text that is JSON. */
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

/** Whether an object has had no member of this name. */
function isNew(level: Level, name: string): boolean {
  level.isNext = false;
  level.name = name;
  const { names } = level;
  if (names === undefined || names.has(name)) return false;
  names.add(name);
  return true;
}

/** What is written between quotes. */
function nameOf(written: string): string {
  return written.includes('\\') ? (JSON.parse(`"${written}"`) as string) : written;
}

/** Where the text ends that begins here: at its last quote. */
function endOfText(text: string, start: number): number {
  let at = start + 1;
  for (let char = text.charCodeAt(at); char !== QUOTE; char = text.charCodeAt(++at)) if (char === BACKSLASH) at++;
  return at;
}
