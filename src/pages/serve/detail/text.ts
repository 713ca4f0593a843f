/**
 * An object as lines of YAML or JSON; each line knows where its label ends, and whether its value has just changed.
 *
 * - What is written is read back as the same value, in YAML 1.1 (as Kubernetes reads it) and 1.2. Texts are plain if they
 *   cannot mean anything else, a block if they have several lines, and otherwise quoted as in JSON, of which YAML is a
 *   superset.
 * - Invisible characters are escaped, so what is copied is what is shown.
 * - It stops once the text is too long, so the beginning of an object costs no more than its length.
 */
import { make } from '../../elements.ts';
import { visible } from '../../words.ts';
import { hasMembers, itemPath, keyMember, memberPath, scalarText } from './paths.ts';

export type TextFormat = 'yaml' | 'json';

interface Line {
  readonly text: string;
  /** Where its label, including the indentation, ends; 0: the whole line is value. */
  readonly label: number;
  readonly marked: boolean;
}

/** What is written, and how much of it. */
interface WriteOptions {
  readonly format: TextFormat;
  /** The paths of values that are marked, with everything in them. */
  readonly marked?: ReadonlySet<string> | undefined;
  /** Writing ends after the line that makes the text longer than this. Default: no limit. */
  readonly maxChars?: number | undefined;
}

/** An object as lines. */
interface Written {
  readonly lines: readonly Line[];
  /** Whether that is all of it. */
  readonly isWhole: boolean;
}

/** Writes a JSON value as lines. */
export function toLines(value: unknown, options: WriteOptions): Written {
  const writer = options.format === 'yaml' ? new YamlWriter(options) : new JsonWriter(options);
  try {
    writer.value(value, { before: '', label: 0, indent: '', path: '', marked: options.marked?.has('') === true });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    writer.add('# nested too deeply to be shown', { label: 0, marked: false });
  }
  return { lines: writer.lines, isWhole: !writer.isFull };
}

/**
 * The longest text that is written in lines. Longer objects become JSON on one line, which is YAML, too, and not much longer
 * than what was sent.
 */
const MAX_TEXT_CHARS = 32 * 2 ** 20;

/** Writes a JSON value as text. */
export function toText(value: unknown, format: TextFormat): string {
  const { lines, isWhole } = toLines(value, { format, maxChars: MAX_TEXT_CHARS });
  return isWhole ? lines.map(({ text }) => `${text}\n`).join('') : `${JSON.stringify(value)}\n`;
}

/** Where a value is written. */
interface Place {
  /** What precedes it on its first line. */
  readonly before: string;
  /** Where the label in that ends. */
  readonly label: number;
  /** What precedes its other lines. */
  readonly indent: string;
  readonly path: string;
  readonly marked: boolean;
  /** What follows it. */
  readonly after?: string;
}

abstract class Writer {
  readonly lines: Line[] = [];
  private readonly options: WriteOptions;
  private chars: number = 0;

  constructor(options: WriteOptions) {
    this.options = options;
  }

  get isFull(): boolean {
    return this.chars > (this.options.maxChars ?? Number.POSITIVE_INFINITY);
  }

  abstract value(value: unknown, place: Place): void;

  add(text: string, { label, marked }: Pick<Place, 'label' | 'marked'>): void {
    this.chars += text.length + 1;
    this.lines.push({ text, label, marked });
  }

  /** Whether the value at this path is marked, by itself or with its parent. */
  protected isMarked(path: string, { marked }: Place): boolean {
    return marked || this.options.marked?.has(path) === true;
  }
}

class YamlWriter extends Writer {
  value(value: unknown, place: Place): void {
    if (Array.isArray(value) && value.length > 0) this.list(value, place);
    else if (hasMembers(value) && Object.keys(value).length > 0) this.members(value, place);
    else if (typeof value === 'string' && isBlock(value)) this.block(value, place);
    else this.add(place.before + yamlScalar(value), place);
  }

  private list(list: readonly unknown[], place: Place): void {
    const key = keyMember(list);
    let { before } = place;
    for (const [at, item] of list.entries()) {
      if (this.isFull) return;
      const path = itemPath(place.path, at, key === undefined ? undefined : { key, item });
      const start = `${before}- `;
      this.value(item, {
        before: start,
        label: start.length,
        indent: `${place.indent}  `,
        path,
        marked: this.isMarked(path, place),
      });
      before = place.indent;
    }
  }

  private members(members: Readonly<Record<string, unknown>>, place: Place): void {
    const { indent } = place;
    let { before } = place;
    for (const [name, value] of Object.entries(members)) {
      if (this.isFull) return;
      if (value === undefined) continue;
      const path = memberPath(place.path, name);
      const marked = this.isMarked(path, place);
      const label = this.labelOf(name, { before, indent, marked });
      const isNested = typeof value === 'object' && value !== null && isFilled(value);
      if (isNested) this.add(label, { label: label.length, marked });
      const inner = Array.isArray(value) ? indent : `${indent}  `;
      const start = isNested ? inner : `${label} `;
      this.value(value, { before: start, label: isNested ? 0 : start.length, indent: inner, path, marked });
      before = indent;
    }
  }

  /** A long name needs a line of its own: a parser gives up looking for the colon. */
  private labelOf(name: string, { before, indent, marked }: Pick<Place, 'before' | 'indent' | 'marked'>): string {
    const text = yamlText(name);
    if (text.length < MAX_NAME_CHARS) return `${before}${text}:`;
    const first = `${before}? ${text}`;
    this.add(first, { label: first.length, marked });
    return `${indent}:`;
  }

  private block(text: string, { before, label, indent, marked, path }: Place): void {
    const isEnded = text.endsWith('\n');
    this.add(`${before}${text.endsWith('\n\n') ? '|+' : isEnded ? '|' : '|-'}`, { label, marked });
    // At the top level there is no indentation to put it after.
    const inner = path === '' ? '  ' : indent;
    const body = isEnded ? text.slice(0, -1) : text;
    for (const line of body.split('\n')) {
      if (this.isFull) return;
      this.add(line === '' ? '' : inner + line, { label: 0, marked });
    }
  }
}

/** Half of the 1,024 characters within which a parser looks for the colon after a name. */
const MAX_NAME_CHARS = 512;

class JsonWriter extends Writer {
  value(value: unknown, place: Place): void {
    const { before, label, indent, after = '', marked } = place;
    if (!Array.isArray(value) && !hasMembers(value)) {
      this.add(`${before}${visible(scalarText(value))}${after}`, place);
      return;
    }
    const [open, close] = Array.isArray(value) ? '[]' : '{}';
    if (!isFilled(value)) {
      this.add(`${before}${open}${close}${after}`, place);
      return;
    }
    this.add(`${before}${open}`, { label, marked });
    const inner = `${indent}  `;
    const key = Array.isArray(value) ? keyMember(value) : undefined;
    const entries = Object.entries(value).filter(([, each]) => each !== undefined);
    for (const [at, [name, each]] of entries.entries()) {
      if (this.isFull) return;
      const path = Array.isArray(value)
        ? itemPath(place.path, at, key === undefined ? undefined : { key, item: each })
        : memberPath(place.path, name);
      const start = Array.isArray(value) ? inner : `${inner}${visible(JSON.stringify(name))}: `;
      this.value(each, {
        ...{ before: start, label: start.length, indent: inner, path },
        ...{ marked: this.isMarked(path, place), after: at < entries.length - 1 ? ',' : '' },
      });
    }
    if (!this.isFull) this.add(`${indent}${close}${after}`, { label: 0, marked });
  }
}

/** Whether a value has lines of its own. */
function isFilled(value: object): boolean {
  if (Array.isArray(value)) return value.length > 0;
  return hasMembers(value) && Object.values(value).some((each) => each !== undefined);
}

/** Not for a text of one line, or with characters that a block cannot represent or that would be invisible in it. */
function isBlock(text: string): boolean {
  return text.includes('\n') && !/^[ \n\t]|\n\t|[ \t](\n|$)|[\ud800-\udfff]|\r/u.test(text) && visible(text) === text;
}

function yamlScalar(value: unknown): string {
  if (typeof value === 'string') return yamlText(value);
  if (Array.isArray(value)) return '[]';
  return hasMembers(value) ? '{}' : scalarText(value);
}

/** A text that begins with a letter, and contains nothing that could be a comment or the end of a name. */
const PLAIN_TEXT = /^[A-Za-z_/](?:[\w./@%+=,;()'-]|:(?=[\w/]))*(?: (?:[\w./@%+=,;()'-]|:(?=[\w/]))+)*$/;
/** Words for truth, falsehood and nothing, in one version of YAML or the other. */
const WORD = /^(y|yes|true|on|n|no|false|off|null)$/i;
/** Longer texts are quoted without being examined. */
const MAX_PLAIN_CHARS = 1_000;

function yamlText(text: string): string {
  const isPlain = text.length <= MAX_PLAIN_CHARS && PLAIN_TEXT.test(text) && !WORD.test(text);
  return isPlain ? text : visible(JSON.stringify(text));
}

/** The most characters that are shown: by default, and if all are asked for. */
const SHOWN_CHARS = 60_000;
const ALL_CHARS = 16 * 2 ** 20;
/** Lines and characters of one block: blocks that are out of view are not laid out. */
const BLOCK_LINES = 100;
const BLOCK_CHARS = 8_000;

interface Shown {
  readonly format: TextFormat;
  readonly marked?: ReadonlySet<string> | undefined;
  readonly all?: boolean | undefined;
}

/** An object as text, in blocks. A block that stays the same keeps its element, and so the selection in it. */
export class TextView {
  private readonly element: HTMLElement;
  private keys: readonly string[] = [];

  constructor(element: HTMLElement) {
    this.element = element;
  }

  /** Shows a value. Returns whether that is all of it. */
  show(value: unknown, { format, marked, all = false }: Shown): boolean {
    const { lines, isWhole } = toLines(value, { format, marked, maxChars: all ? ALL_CHARS : SHOWN_CHARS });
    const blocks = toBlocks(lines);
    const keys = blocks.map((block) => block.map(({ text, marked: isMarked }) => `${isMarked ? '+' : ' '}${text}`).join('\n'));
    const { children } = this.element;
    for (const [at, block] of blocks.entries()) {
      if (keys[at] === this.keys[at]) continue;
      const element = make('div');
      element.append(...(all ? plain(block) : block.flatMap(painted)));
      if (children[at]) children[at].replaceWith(element);
      else this.element.append(element);
    }
    while (children.length > blocks.length) this.element.lastElementChild?.remove();
    this.keys = keys;
    return isWhole;
  }

  clear(): void {
    this.keys = [];
    this.element.replaceChildren();
  }
}

/** Lines in blocks. A line that is too long for one block continues in the next. */
function toBlocks(lines: readonly Line[]): readonly (readonly Line[])[] {
  const blocks: Line[][] = [];
  let [block, chars]: [Line[], number] = [[], 0];
  const end = (): void => {
    if (block.length > 0) blocks.push(block);
    [block, chars] = [[], 0];
  };
  for (const line of lines) {
    if (block.length >= BLOCK_LINES || (chars > 0 && chars + line.text.length > BLOCK_CHARS)) end();
    let rest = line;
    while (rest.text.length > BLOCK_CHARS) {
      block.push({ ...rest, text: rest.text.slice(0, BLOCK_CHARS) });
      end();
      rest = { ...rest, text: rest.text.slice(BLOCK_CHARS), label: 0 };
    }
    block.push(rest);
    chars += rest.text.length;
  }
  end();
  return blocks;
}

/** Few nodes for many lines: one per marked line, and one for all lines between two of these. */
function plain(block: readonly Line[]): (Node | string)[] {
  const parts: (Node | string)[] = [];
  let text = '';
  for (const line of block) {
    if (line.marked) {
      parts.push(text, make('mark', { text: line.text }));
      text = '\n';
    } else text += `${line.text}\n`;
  }
  return [...parts, text];
}

/** A line in colours. */
function painted({ text, label, marked }: Line): (Node | string)[] {
  const value = text.slice(label);
  const name = /^[{}[\]|]/.test(value) ? undefined : /^(-?\d|true\b|false\b|null\b)/.test(value) ? 'number' : 'string';
  const parts = [
    ...(label > 0 ? [make('span', { text: text.slice(0, label), name: 'key' })] : []),
    ...(value === '' ? [] : [name === undefined ? value : make('span', { text: value, name })]),
  ];
  if (!marked) return [...parts, '\n'];
  const mark = make('mark');
  mark.append(...parts);
  return [mark, '\n'];
}
