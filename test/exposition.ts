// A strict reader of Prometheus' text format, version 0.0.4, written from its grammar. It throws for whatever Prometheus would
// refuse, and for what its conventions forbid.

/** All samples of one metric. */
export interface Family {
  readonly type: string;
  readonly help: string;
  readonly samples: { readonly labels: Readonly<Record<string, string>>; readonly value: number }[];
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const HELP = new RegExp(`^# HELP (${NAME}) (.*)$`, 's');
const TYPE = new RegExp(`^# TYPE (${NAME}) (counter|gauge|histogram|summary|untyped)$`);
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(.*)\\})? ([^ ]+)$`, 's');
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/;
const NUMBER = /^(?:[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|[+-]Inf|NaN)$/i;

/** Returns the metrics of a page by name. */
export function exposition(text: string): Map<string, Family> {
  const families = new Map<string, Family>();
  if (!text.endsWith('\n')) throw new Error('the last line must end with a line feed');
  let help: RegExpExecArray | null = null;
  for (const line of text.slice(0, -1).split('\n')) {
    const type = TYPE.exec(line);
    const sample = SAMPLE.exec(line);
    if (line.startsWith('# HELP ')) help = HELP.exec(line);
    else if (type !== null) begin(families, type, help);
    else if (line.startsWith('#') || sample === null) throw new Error(`not in the grammar: ${line}`);
    else add([...families].at(-1), sample);
  }
  return families;
}

function begin(families: Map<string, Family>, [, name = '', type = '']: RegExpExecArray, help: RegExpExecArray | null): void {
  if (help?.[1] !== name) throw new Error(`no HELP just before the TYPE of ${name}`);
  if (families.has(name)) throw new Error(`${name} appears twice`);
  if ((type === 'counter') !== name.endsWith('_total')) throw new Error(`${name} is a ${type}`);
  families.set(name, { type, help: unescaped(help[2] ?? ''), samples: [] });
}

function add(family: [string, Family] | undefined, [, name, labels = '', value = '']: RegExpExecArray): void {
  if (family === undefined || family[0] !== name) throw new Error(`${name} is not in one group`);
  if (!NUMBER.test(value)) throw new Error(`${value} is no number`);
  const found: Record<string, string> = {};
  for (let rest = labels; rest !== ''; ) {
    const match = LABEL.exec(rest);
    if (match === null) throw new Error(`no label: ${rest}`);
    const [whole, label = '', text = ''] = match;
    if (Object.hasOwn(found, label)) throw new Error(`${label} appears twice`);
    // Not an assignment: a label may be called __proto__.
    Object.defineProperty(found, label, { value: unescaped(text), enumerable: true });
    rest = rest.slice(whole.length);
  }
  const key = JSON.stringify(found);
  if (family[1].samples.some((other) => JSON.stringify(other.labels) === key)) throw new Error(`${name}${key} appears twice`);
  family[1].samples.push({ labels: found, value: numberOf(value) });
}

function numberOf(text: string): number {
  return /inf/i.test(text) ? Number(text.replace(/inf/i, 'Infinity')) : Number(text);
}

function unescaped(text: string): string {
  return text.replace(/\\([\\n"])/g, (_, character: string) => (character === 'n' ? '\n' : character));
}
