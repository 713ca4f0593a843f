import type { Result, Row } from './compare.ts';
import type { Report } from './report.ts';
import type { Queue } from './workload.ts';

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

const QUEUES: readonly Queue[] = ['bounded', 'unbounded', 'lossy', 'none'];

/** Parses a report. Throws {@link InputError}, which names the first invalid part. */
export function readReport(text: string): ChartInput {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new InputError('not JSON');
  }
  const report = new Place(json, 'the report');
  return {
    node: report.at('node').text(),
    cpu: report.at('cpu').text(),
    cores: report.at('cores').number(),
    date: report.at('date').text(),
    workloads: report.at('workloads').list(toTable),
  };
}

function toTable(table: Place): ChartTable {
  return {
    workload: table.at('workload').text(),
    shape: table.at('shape').record(),
    unit: table.at('unit').text(),
    better: table.at('better').oneOf(['higher', 'lower'] as const),
    reference: table.at('reference').text(),
    rows: table.at('rows').list(toRow),
  };
}

function toRow(row: Place): ChartRow {
  return {
    contender: row.at('contender').text(),
    queue: row.at('queue').oneOf(QUEUES),
    rounds: row.at('rounds').list((round) => round.number()),
    median: row.at('median').number(),
    min: row.at('min').number(),
    max: row.at('max').number(),
    ratio: row.at('ratio').value === null ? null : row.at('ratio').number(),
  };
}

/** A value in the report, and its path. */
class Place {
  readonly value: unknown;
  private readonly path: string;

  constructor(value: unknown, path: string) {
    this.value = value;
    this.path = path;
  }

  at(key: string): Place {
    const object = this.object();
    return new Place(object[key], this.path === 'the report' ? key : `${this.path}.${key}`);
  }

  list<T>(read: (item: Place) => T): T[] {
    if (!Array.isArray(this.value)) throw this.wrong('a list');
    return this.value.map((item, at) => read(new Place(item, `${this.path}[${at}]`)));
  }

  record(): Record<string, number | string> {
    return Object.fromEntries(
      Object.keys(this.object()).map((key) => {
        const { value } = this.at(key);
        return [key, typeof value === 'string' ? value : this.at(key).number()];
      }),
    );
  }

  oneOf<T extends string>(words: readonly T[]): T {
    const found = words.find((word) => word === this.value);
    if (found === undefined) throw this.wrong(words.join(', '));
    return found;
  }

  text(): string {
    if (typeof this.value !== 'string') throw this.wrong('a text');
    return this.value;
  }

  number(): number {
    if (typeof this.value !== 'number' || !Number.isFinite(this.value)) throw this.wrong('a number');
    return this.value;
  }

  private object(): Record<string, unknown> {
    if (typeof this.value !== 'object' || this.value === null || Array.isArray(this.value)) throw this.wrong('an object');
    return this.value as Record<string, unknown>;
  }

  private wrong(expected: string): InputError {
    const found = this.value === undefined ? 'nothing' : JSON.stringify(this.value).slice(0, 40);
    return new InputError(`${this.path} should be ${expected}, and is ${found}`);
  }
}
