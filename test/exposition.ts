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
  checkHistograms(families);
  return families;
}

function begin(families: Map<string, Family>, [, name = '', type = '']: RegExpExecArray, help: RegExpExecArray | null): void {
  if (help?.[1] !== name) throw new Error(`no HELP just before the TYPE of ${name}`);
  if (families.has(name)) throw new Error(`${name} appears twice`);
  if ((type === 'counter') !== name.endsWith('_total')) throw new Error(`${name} is a ${type}`);
  families.set(name, { type, help: unescaped(help[2] ?? ''), samples: [] });
}

/** The samples of a histogram have a name of their own each. */
const PARTS = ['_bucket', '_sum', '_count'] as const;

function add(family: [string, Family] | undefined, [, name, labels = '', value = '']: RegExpExecArray): void {
  const part = family?.[1].type === 'histogram' ? PARTS.find((each) => name === family[0] + each) : '';
  if (family === undefined || part === undefined || family[0] + part !== name) throw new Error(`${name} is not in one group`);
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
  // Not to be mistaken for a label, whose names have no `#`.
  if (part !== '' && part !== '_bucket') found['#'] = part;
  if ((part === '_bucket') !== Object.hasOwn(found, 'le')) throw new Error(`${name} and the label le do not fit`);
  const key = JSON.stringify(found);
  if (family[1].samples.some((other) => JSON.stringify(other.labels) === key)) throw new Error(`${name}${key} appears twice`);
  family[1].samples.push({ labels: found, value: numberOf(value) });
}

/** Throws unless each histogram's buckets count up to its count, which the last of them has. */
function checkHistograms(families: ReadonlyMap<string, Family>): void {
  for (const [name, { type, samples }] of families) {
    if (type !== 'histogram') continue;
    const series = new Map<string, { bounds: number[]; counts: number[]; count?: number; sum?: number }>();
    for (const { labels, value } of samples) {
      const { le, '#': part, ...rest } = labels;
      const key = JSON.stringify(rest);
      const one = series.get(key) ?? { bounds: [], counts: [] };
      series.set(key, one);
      if (part === '_count') one.count = value;
      else if (part === '_sum') one.sum = value;
      else {
        one.bounds.push(numberOf(le ?? ''));
        one.counts.push(value);
      }
    }
    for (const [key, { bounds, counts, count, sum }] of series) {
      const rises = (values: readonly number[]): boolean =>
        values.every((value, at) => at === 0 || value >= (values[at - 1] ?? 0));
      const whole = bounds.at(-1) === Number.POSITIVE_INFINITY && counts.at(-1) === count && sum !== undefined;
      if (!whole || !rises(bounds) || !rises(counts)) throw new Error(`${name}${key} is no histogram`);
    }
  }
}

function numberOf(text: string): number {
  return /inf/i.test(text) ? Number(text.replace(/inf/i, 'Infinity')) : Number(text);
}

function unescaped(text: string): string {
  return text.replace(/\\([\\n"])/g, (_, character: string) => (character === 'n' ? '\n' : character));
}
