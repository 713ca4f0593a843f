/** The charts of the stack: servers, informers, queues, storms and replicas. */
import { barChart, type Group, type Section } from './chart-bars.ts';
import type { ChartInput, ChartRow, ChartTable } from './chart-input.ts';
import { type Line, lineChart } from './chart-lines.ts';
import { figure, footerOf, whole } from './chart-parts.ts';
import { aim, type Chart, ranked, tablesOf, WHISKERS } from './chart-tables.ts';
import { median, pairedRatios } from './stats.ts';

type Shape = ChartTable['shape'];

/** Words for what a shape has. What the title says already is left out. */
const WORDS: Readonly<Record<string, (value: number | string) => string>> = {
  watchers: (value) => `${whole(Number(value))} watchers`,
  burst: (value) => (value === 1 ? 'one change at a time' : `bursts of ${value}`),
  objectBytes: (value) => `objects of ${whole(Number(value))} bytes`,
  objects: (value) => `${whole(Number(value))} objects`,
  keys: (value) => `${whole(Number(value))} keys`,
  as: (value) =>
    ({ whole: 'as a whole', pages: 'in pages of 500', half: 'by a label selector, every second object' })[value] ?? `${value}`,
};

function headingOf(shape: Shape): string {
  return Object.entries(shape)
    .flatMap(([key, value]) => WORDS[key]?.(value) ?? (key === 'what' || key === 'of' ? [] : [`${key} ${value}`]))
    .join(', ');
}

interface Bars {
  readonly id: string;
  readonly workload: string;
  /** Which tables of the workload. */
  readonly shape: Shape;
  readonly title: string;
  /** Before the unit. */
  readonly about: string;
  /** What sets the sections apart; by default everything in their shapes. */
  readonly heading?: (shape: Shape) => string;
}

const has = ({ shape }: ChartTable, wanted: Shape): boolean =>
  Object.entries(wanted).every(([key, value]) => shape[key] === value);

/** A section for each table, all of which have one unit: the contenders, best first. */
function bars({ id, workload, shape, title, about, heading = headingOf }: Bars): Chart {
  return {
    id,
    needs: `${workload}: ${Object.values(shape).join(', ') || 'anything'}`,
    draw(input) {
      const tables = tablesOf(input, workload).filter((table) => has(table, shape));
      const [first] = tables;
      if (first === undefined) return undefined;
      return barChart({
        id,
        title,
        subtitle: `${about}; ${aim(first)}`,
        footer: footerOf(input, { tables, spread: WHISKERS }),
        sections: tables.map((table) => ({
          heading: heading(table.shape),
          noteName: `ratio to ${table.reference}`.slice(0, 30),
          groups: ranked(table),
        })),
      });
    },
  };
}

const PROCESSOR = 'processor time';

const fanout: Chart = bars({
  id: 'stack-fanout',
  workload: 'server',
  shape: { what: 'watch', of: PROCESSOR },
  title: 'An API server tells its watches of changes',
  about: 'Per second of processor time',
});

const list: Chart = bars({
  id: 'stack-list',
  workload: 'server',
  shape: { what: 'list', of: PROCESSOR },
  title: 'An API server lists Pods of 14 KB',
  about: 'By processor time',
});

const sync: Chart = bars({
  id: 'stack-sync',
  workload: 'stack',
  shape: { what: 'initial sync', of: PROCESSOR },
  title: 'An informer gets its first list: Pods of 4 KB',
  about: 'By processor time',
});

const relist: Chart = bars({
  id: 'stack-relist',
  workload: 'stack',
  shape: { what: 'relist', of: 'list' },
  title: 'An informer lists again, and nothing has changed',
  about: 'Memory allocated',
});

const queue: Chart = bars({
  id: 'stack-queue',
  workload: 'workqueue',
  shape: {},
  title: 'A work queue of 10,000 keys',
  about: 'Keys',
  heading: ({ what }) => String(what),
});

const FAULTS: Readonly<Record<string, string>> = {
  cut: 'cut',
  restart: 'restart',
  expired: 'window exceeded',
};

/** Requests per second over time, a line for each client and fault. */
const storm: Chart = {
  id: 'stack-storm',
  needs: 'storm',
  draw(input, id) {
    const tables = tablesOf(input, 'storm');
    const series = tables.filter(({ shape }) => shape.atMs !== undefined);
    const [first] = series;
    if (first === undefined) return undefined;
    const names = [...new Set(series.flatMap((table) => table.rows.map((row) => nameOf(table, row))))];
    const courses = names.map((name) => courseOf(name, series, quickestOf(name, tables)));
    // One that took longer than the chart, on a busy machine, is told of below.
    const lines = courses.filter(({ points }) => points.some(({ y }) => y > 0));
    if (lines.length === 0) return undefined;
    return lineChart({
      id,
      title: `${whole(Number(first.shape.clients))} clients lose their server at once, and reconnect`,
      subtitle: 'Requests per second, in quarters of a second; the storm that was over first, of all rounds',
      footer: [...stormNotes(tables), ...footerOf(input, { tables: series, spread: '' })],
      lines,
      xName: 'seconds since then',
      linear: true,
    });
  },
};

/** The round in which all clients were live first. A median of each moment would be a storm that never was. */
function quickestOf(name: string, tables: readonly ChartTable[]): number {
  const live = tables.filter(({ shape }) => shape.of === 'all live');
  const rounds = live.flatMap((table) => table.rows.filter((row) => nameOf(table, row) === name))[0]?.rounds ?? [];
  return Math.max(0, rounds.indexOf(Math.min(...rounds)));
}

function courseOf(name: string, series: readonly ChartTable[], round: number): Line {
  const found = series.flatMap((table) => table.rows.flatMap((row) => (nameOf(table, row) === name ? [{ table, row }] : [])));
  const points = found.map(({ table, row }) => ({ x: Number(table.shape.atMs) / 1_000, y: row.rounds[round] ?? 0 }));
  return { contender: name, queue: found[0]?.row.queue ?? 'none', points: points.sort((a, b) => a.x - b.x) };
}

const nameOf = ({ shape }: ChartTable, { contender }: ChartRow): string =>
  `${contender}, ${FAULTS[String(shape.what)] ?? shape.what}`;

/** How many LISTs and 410s there were, and how long it took: a line for each fault and client. */
function stormNotes(tables: readonly ChartTable[]): string[] {
  const lists = tables.filter(({ shape }) => shape.of === 'lists');
  return lists.flatMap((table) =>
    table.rows.map((row) => {
      const rowOf = (of: string): ChartRow | undefined =>
        tables
          .find(({ shape }) => shape.of === of && shape.what === table.shape.what && shape.atMs === undefined)
          ?.rows.find(({ contender }) => contender === row.contender);
      const [gone, live] = [rowOf('410')?.median ?? 0, rowOf('all live')];
      const after = live === undefined ? '-' : `${figure(live.median)} ms (${figure(live.min)} to ${figure(live.max)})`;
      const name = nameOf(table, row).slice(0, 40);
      return `${name}: ${whole(row.median)} LISTs; ${whole(gone)} % of the answers are 410; all live after ${after}.`;
    }),
  );
}

/** A figure of the workload `replicas`, as multiples of that of one replica. */
interface Multiple {
  readonly heading: string;
  readonly shape: Shape;
}

const MULTIPLES: readonly Multiple[] = [
  {
    heading: 'deliveries to 600 watchers, a core for each replica',
    shape: { what: 'watch', watchers: 600, objectBytes: 1_000, of: 'a core each' },
  },
  { heading: 'lists, a core for each replica', shape: { what: 'list', of: 'a core each' } },
  { heading: 'processor time of etcd per write: lower is better', shape: { what: 'write', of: 'etcd' } },
];

function multipleOf(table: ChartTable, row: ChartRow): Group {
  const one = table.rows.find(({ contender }) => contender === table.reference);
  const ratios = pairedRatios(row.rounds, one?.rounds ?? row.rounds);
  const bar = { median: median(ratios), min: Math.min(...ratios), max: Math.max(...ratios) };
  return { ...row, bars: [Number.isNaN(bar.median) ? { median: 0, min: 0, max: 0 } : bar], note: figure(row.median) };
}

const replicas: Chart = {
  id: 'stack-replicas',
  needs: 'replicas',
  draw(input: ChartInput, id) {
    const all = tablesOf(input, 'replicas');
    const found = MULTIPLES.flatMap(({ heading, shape }) =>
      all.filter((table) => has(table, shape)).map((table) => ({ heading, table })),
    );
    if (found.length === 0) return undefined;
    const sections = found.map(
      ({ heading, table }): Section => ({
        heading,
        noteName: table.unit.replace(/^thousand /, '1,000 ').slice(0, 22),
        groups: table.rows.map((row) => multipleOf(table, row)),
      }),
    );
    return barChart({
      id,
      title: 'One, two and three replicas on one etcd',
      subtitle: 'Multiples of one replica, by processor time: all processes share two cores here',
      footer: footerOf(input, { tables: found.map(({ table }) => table), spread: WHISKERS }),
      sections,
    });
  },
};

export const STACK_CHARTS: readonly Chart[] = [fanout, list, sync, relist, queue, storm, replicas];
