/**
 * Members that a JSON text contains twice, of which a parser keeps the last. No search is needed to know whether there are any:
 * each member has one colon outside of strings, so there are as many colons as members, unless a name is repeated.
 *
 *     text ---> colons --.
 *                        +--> as many? none came twice
 *     value --> members -'    otherwise: the search, once through the text
 */
import { walking } from '../../storage/json.ts';
import type { Work } from '../../watch/fair-queue.ts';
import { FieldPaths, type Step } from './field-paths.ts';

/** How many members a value has, at any depth. */
export function* membersIn(value: unknown): Work<number> {
  let members = 0;
  yield* walking(value, (names) => {
    members += names?.length ?? 0;
  });
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
export function* duplicateFields(text: string): Work<FieldPaths> {
  const found = new FieldPaths();
  const levels: Level[] = [];
  let level: Level | undefined;
  let [start, next] = [-1, PIECE_CHARS];
  for (let at = 0; at < text.length; at++) {
    if (at >= next) {
      next = at + PIECE_CHARS;
      yield;
    }
    const char = text.charCodeAt(at);
    if (start >= 0) {
      if (char === BACKSLASH) at++;
      else if (char === QUOTE) {
        if (level?.isNext && !isNew(level, nameOf(text.slice(start, at)))) found.add(() => levels.map(stepOf));
        start = -1;
      }
    } else if (char === QUOTE) start = at + 1;
    else if (char === COMMA) proceed(level as Level);
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

/** How much is read in one step, in characters. */
const PIECE_CHARS = 65_536;
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
