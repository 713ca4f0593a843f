import { make } from '../../elements.ts';
import { type Line, type TextFormat, toLines } from './lines.ts';

/** Characters that are shown, unless all are asked for; and then. */
const SHOWN_CHARS = 60_000;
const ALL_CHARS = 16 * 2 ** 20;
/** Lines and characters of one block: blocks that are out of view are not laid out. */
const BLOCK_LINES = 100;
const BLOCK_CHARS = 8_000;

/** What is shown. */
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

/** Lines in blocks. A line that is too long for one goes on in the next. */
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

/** Few nodes for many lines: one for each that is marked, and one for all between two of those. */
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
