/**
 * The colours of terminals, as names of classes. Only what sets colours and styles is interpreted; any other escape sequence
 * stays visible as text. There are few colours, each with enough contrast in light and dark: one of 256, or of 16 million,
 * becomes the nearest one. Nothing can hide a text, and the work is bounded by characters and by runs.
 */
import { STYLES } from './fields.ts';

/** A part of a text, and its classes; an empty name: none. */
interface Run {
  readonly text: string;
  readonly name: string;
}

/** Runs of one text; what follows has no style. */
const MAX_RUNS = 200;
const ESCAPE = '\u001b';

/** Splits a text at the sequences that style it. `maxChars` limits the characters that remain; `cut`: there were more. */
export function toRuns(text: string, maxChars: number): { readonly runs: readonly Run[]; readonly cut: boolean } {
  const runs: Run[] = [];
  const style = new Style();
  let left = maxChars;
  const add = (part: string): void => {
    const room = part.slice(0, left);
    left -= room.length;
    if (room === '') return;
    const name = runs.length < MAX_RUNS ? style.name : '';
    const last = runs.at(-1);
    if (last?.name === name) runs[runs.length - 1] = { text: last.text + room, name };
    else runs.push({ text: room, name });
  };
  // Sequences have no width, so more characters are read than are shown; but not without a limit.
  const read = text.slice(0, maxChars * SOURCE_FACTOR);
  const source = read.length < text.length ? read.replace(BEGUN, '') : read;
  let from = 0;
  if (source.includes(ESCAPE)) {
    for (const match of source.matchAll(STYLES)) {
      add(source.slice(from, match.index));
      from = match.index + match[0].length;
      if (left === 0) break;
      style.set(match[1] as string);
    }
  }
  const rest = source.slice(from);
  const cut = rest.length > left || source.length < text.length;
  add(rest);
  return { runs, cut };
}

/** A sequence that the limit has cut. */
const BEGUN = new RegExp(`${ESCAPE}(?:\\[[\\d;:]{0,64})?$`);
/** Characters that are read for each that is shown. */
const SOURCE_FACTOR = 8;

/** Turns `\u001b[31m`, as JSON writes it, back into the sequence. */
export function withStyles(json: string): string {
  if (!json.includes('\\u001b[')) return json;
  // Each backslash begins an escape, so one that is escaped is never taken for a beginning.
  return json.replace(/\\(?:u001b(\[[\d;:]{0,64}m)|.)/gs, (whole, sequence?: string) =>
    sequence === undefined ? whole : ESCAPE + sequence,
  );
}

/** What the sequences up to here have set. */
class Style {
  private readonly flags: Set<string> = new Set();
  private front: number = DEFAULT;
  private back: number = DEFAULT;

  get name(): string {
    const names = [...this.flags];
    if (this.front !== DEFAULT) names.push(`fg${this.front}`);
    if (this.back !== DEFAULT) names.push(`bg${this.back}`);
    return names.join(' ');
  }

  /** Applies the parameters of one sequence. */
  set(parameters: string): void {
    const groups = parameters.split(';').map((group) => group.split(':').map(Number));
    for (let at = 0; at < groups.length; at++) {
      // With colons, a colour is one group; otherwise, it takes the groups that follow.
      const group = groups[at] as number[];
      const [code = 0] = group;
      if (code === 38 || code === 48) {
        const rest = group.length > 1 ? group.slice(1) : groups.slice(at + 1, at + 5).map(([first = 0]) => first);
        const [colour, length] = extended(rest, group.length > 5);
        this.paint(code === 38 ? 30 : 40, colour);
        if (group.length === 1) at += length;
      } else this.apply(code === 4 && group[1] === 0 ? 24 : code);
    }
  }

  private apply(code: number): void {
    const flag = FLAGS[code];
    if (flag !== undefined) this.flags.add(flag);
    else if (code === 0) this.reset();
    else if (code === 22) for (const each of ['bold', 'faint']) this.flags.delete(each);
    else if (code in ENDS) this.flags.delete(ENDS[code] as string);
    else if (code >= 30 && code <= 39) this.paint(30, code === 39 ? DEFAULT : toColour(code - 30));
    else if (code >= 40 && code <= 49) this.paint(40, code === 49 ? DEFAULT : toColour(code - 40));
    else if (code >= 90 && code <= 97) this.paint(30, code === 90 ? GREY : toColour(code - 90));
    else if (code >= 100 && code <= 107) this.paint(40, code === 100 ? GREY : toColour(code - 100));
  }

  private paint(what: 30 | 40, colour: number): void {
    if (what === 30) this.front = colour;
    else this.back = colour;
  }

  private reset(): void {
    this.flags.clear();
    this.front = DEFAULT;
    this.back = DEFAULT;
  }
}

const FLAGS: Readonly<Record<number, string>> = { 1: 'bold', 2: 'faint', 3: 'italic', 4: 'underline', 7: 'inverse', 9: 'strike' };
const ENDS: Readonly<Record<number, string>> = { 23: 'italic', 24: 'underline', 27: 'inverse', 29: 'strike' };

/** The page's own colour; red, green, yellow, blue, magenta and cyan are 1 to 6. */
const DEFAULT = 0;
const GREY = 8;

/** Black and white are the page's own colours: which of them is legible depends on light and dark. */
const toColour = (code: number): number => (code >= 1 && code <= 6 ? code : DEFAULT);

/** `5;n` or `2;r;g;b`: the colour, and how many codes it has. `spaced`: the name of a colour space is before `r`. */
function extended(codes: readonly number[], spaced: boolean): [colour: number, length: number] {
  const [kind, index = 0] = codes;
  if (kind === 5) return [indexed(index), 2];
  if (kind !== 2) return [DEFAULT, codes.length];
  const [red = 0, green = 0, blue = 0] = codes.slice(spaced ? 2 : 1);
  return [nearest(red, green, blue), 4];
}

function indexed(index: number): number {
  if (index < 16) return index === 8 ? GREY : toColour(index % 8);
  if (index > 231) return index < 250 ? GREY : DEFAULT;
  const cube = index - 16;
  return nearest(Math.floor(cube / 36) * 51, (Math.floor(cube / 6) % 6) * 51, (cube % 6) * 51);
}

/** Red, yellow, green, cyan, blue and magenta, by their hue. */
const HUES = [1, 3, 2, 6, 4, 5] as const;

function nearest(red: number, green: number, blue: number): number {
  const most = Math.max(red, green, blue);
  const span = most - Math.min(red, green, blue);
  if (!(span > most / 5)) return most > 60 && most < 200 ? GREY : DEFAULT;
  const sixth = most === red ? (green - blue) / span : most === green ? 2 + (blue - red) / span : 4 + (red - green) / span;
  return HUES[(Math.round(sixth) + 6) % 6] as number;
}
