/**
 * Objects as YAML, for clients that ask for it. Members are sorted by name, as upstream's are; texts that could mean something else
 * are quoted as in JSON, of which YAML understands every text.
 */
import { isRecord } from '../../watch/errors.ts';
import { STRIDE, type Work } from '../../watch/fair-queue.ts';

/** A value as YAML, in pieces. */
export function* yamlOf(value: object): Work<string> {
  const lines: string[] = [];
  yield* write(value, { lines, indent: '', first: '' });
  return lines.join('');
}

/** Where a value is written: `first` precedes its first line, `indent` all others. */
interface Place {
  readonly lines: string[];
  readonly indent: string;
  readonly first: string;
}

function* write(value: object, { lines, indent, first }: Place): Work<void> {
  const isList = Array.isArray(value);
  const members: readonly (readonly [string, unknown])[] = isList
    ? value.map((each) => ['', each] as const)
    : Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  let start = first;
  for (const [name, each] of members) {
    if (each === undefined) continue;
    if (lines.length % STRIDE === 0) yield;
    const label = isList ? '-' : `${textOf(name)}:`;
    if (!isFilled(each)) lines.push(`${start}${label} ${scalarOf(each)}\n`);
    else if (isList) yield* write(each, { lines, indent: `${indent}  `, first: `${start}- ` });
    else {
      lines.push(`${start}${label}\n`);
      const inner = Array.isArray(each) ? indent : `${indent}  `;
      yield* write(each, { lines, indent: inner, first: inner });
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

/** What begins with a letter, and is not one of the words for truth, falsehood and nothing. */
const PLAIN_TEXT = /^[A-Za-z][A-Za-z0-9_./-]*$/;
const WORD = /^(y|yes|true|on|n|no|false|off|null)$/i;

function textOf(text: string): string {
  return PLAIN_TEXT.test(text) && !WORD.test(text) ? text : JSON.stringify(text);
}
