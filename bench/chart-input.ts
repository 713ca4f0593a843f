import type { Result, Row } from './compare.ts';
import type { Report } from './report.ts';

/** The part of a report's rows that charts show. */
export type ChartRow = Pick<Row, 'contender' | 'queue' | 'rounds' | 'median' | 'min' | 'max' | 'ratio'>;

/** A table of the report. */
export interface ChartTable extends Pick<Result, 'workload' | 'shape' | 'unit' | 'better' | 'reference'> {
  readonly rows: readonly ChartRow[];
}

/** The part of a report that charts need. */
export interface ChartInput extends Pick<Report, 'node' | 'cpu' | 'cores' | 'date'> {
  readonly workloads: readonly ChartTable[];
}

/** The file is not a report. The message is one line. */
export class InputError extends Error {}

/** Takes what it expects of a value that is at a path, or throws {@link InputError}. */
type Form = (value: unknown, path: string) => unknown;

const must = (expected: string, value: unknown, path: string): InputError => {
  const found = value === undefined ? 'nothing' : JSON.stringify(value).slice(0, 40);
  return new InputError(`${path} should be ${expected}, and is ${found}`);
};
const form =
  (expected: string, is: (value: unknown) => boolean): Form =>
  (value, path) => {
    if (!is(value)) throw must(expected, value, path);
    return value;
  };
const text = form('a text', (value) => typeof value === 'string');
const number = form('a number', Number.isFinite);
const oneOf = (...words: readonly unknown[]): Form => form(words.join(', '), (value) => words.includes(value));
const listOf =
  (item: Form): Form =>
  (value, path) => {
    if (!Array.isArray(value)) throw must('a list', value, path);
    return value.map((each, at) => item(each, `${path}[${at}]`));
  };
/** An object of these members, or of any if there is one form for all. */
const object =
  (members: Readonly<Record<string, Form>> | Form): Form =>
  (value, path) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw must('an object', value, path || 'the report');
    const forms =
      typeof members === 'function' ? Object.keys(value).map((key) => [key, members] as const) : Object.entries(members);
    return Object.fromEntries(
      forms.map(([key, take]) => [key, take((value as Record<string, unknown>)[key], (path && `${path}.${key}`) || key)]),
    );
  };

const ROW = object({
  ...{ contender: text, queue: oneOf('bounded', 'unbounded', 'lossy', 'none'), rounds: listOf(number) },
  ...{ median: number, min: number, max: number, ratio: (value, path) => (value === null ? value : number(value, path)) },
});
const SHAPE = object((value, path) => (typeof value === 'string' ? value : number(value, path)));
const TABLE = object({
  ...{ workload: text, shape: SHAPE, unit: text, better: oneOf('higher', 'lower'), reference: text, rows: listOf(ROW) },
});
const REPORT = object({ node: text, cpu: text, cores: number, date: text, workloads: listOf(TABLE) });

/** Parses a report. Throws {@link InputError}, which names the first invalid part. */
export function readReport(text: string): ChartInput {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new InputError('not JSON');
  }
  return REPORT(json, '') as ChartInput;
}
