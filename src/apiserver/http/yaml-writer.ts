/**
 * Objects as YAML, for clients that ask for it. Members are sorted by name, as upstream's are; texts that could mean something
 * else are quoted as in JSON, which is valid YAML. An object that would become too long, as each line repeats its indentation, is
 * written as JSON altogether.
 */
import { stringifying } from '../../storage/json.ts';
import { isRecord } from '../../watch/errors.ts';
import { STRIDE, type Work } from '../../watch/fair-queue.ts';

/** A value as YAML, in pieces. */
export function* yamlOf(value: object): Work<string> {
  const text: Lines = { lines: [], chars: 0 };
  yield* write(value, { text, indent: '', first: '' });
  if (text.chars <= MAX_BLOCK_CHARS) return text.lines.join('');
  if (!Array.isArray(value)) return `${yield* stringifying(value)}\n`;
  // An item per line, as these may be a part of a longer list.
  const items: string[] = [];
  for (const each of value) items.push(`- ${yield* stringifying(each ?? null)}\n`);
  return items.join('');
}

/** The most characters of an object in block style. As JSON, no object is much longer. */
const MAX_BLOCK_CHARS = 4 * 2 ** 20;

interface Lines {
  readonly lines: string[];
  chars: number;
}

function add({ text }: Place, line: string): void {
  text.chars += line.length;
  text.lines.push(line);
}

/** Where a value is written: `first` precedes its first line, `indent` all others. */
interface Place {
  readonly text: Lines;
  readonly indent: string;
  readonly first: string;
}

/** Stops where the text has become too long. */
function* write(value: object, place: Place): Work<void> {
  const { text, indent, first } = place;
  const isList = Array.isArray(value);
  const names = isList ? undefined : Object.keys(value).sort();
  const count = (names ?? (value as readonly unknown[])).length;
  let start = first;
  for (let at = 0; at < count && text.chars <= MAX_BLOCK_CHARS; at++) {
    const name = names?.[at] ?? '';
    const each = isList ? value[at] : (value as Readonly<Record<string, unknown>>)[name];
    if (each === undefined) continue;
    if (text.lines.length % STRIDE === STRIDE - 1) yield;
    const label = isList ? '-' : `${textOf(name)}:`;
    if (!isFilled(each)) add(place, `${start}${label} ${scalarOf(each)}\n`);
    else if (isList) yield* write(each, { text, indent: `${indent}  `, first: `${start}- ` });
    else {
      add(place, `${start}${label}\n`);
      const inner = Array.isArray(each) ? indent : `${indent}  `;
      yield* write(each, { text, indent: inner, first: inner });
    }
    start = indent;
  }
}

/** Whether a value needs lines of its own. */
function isFilled(value: unknown): value is object {
  return Array.isArray(value) ? value.length > 0 : isRecord(value) && Object.values(value).some((each) => each !== undefined);
}

function scalarOf(value: unknown): string {
  if (typeof value === 'string') return textOf(value);
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? '[]' : '{}';
  return value === undefined ? 'null' : String(value);
}

/** Texts that begin with a letter. Words for true, false and null are excluded separately. */
const PLAIN_TEXT = /^[A-Za-z][A-Za-z0-9_./-]*$/;
const WORD = /^(y|yes|true|on|n|no|false|off|null)$/i;

function textOf(text: string): string {
  return PLAIN_TEXT.test(text) && !WORD.test(text) ? text : JSON.stringify(text);
}
