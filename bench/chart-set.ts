// The charts: which figures of a report each one shows, and how it tells them.
import { barChart, figure, type Group, type Line, lineChart, type Section, whole } from './chart-draw.ts';
import type { ChartInput, ChartRow, ChartTable } from './chart-input.ts';
import { median, pairedRatios } from './stats.ts';

/** One of the charts. */
export interface Chart {
  /** File name, without extension. */
  readonly id: string;
  /** What the report must contain. */
  readonly needs: string;
  /** Returns undefined if the report does not contain it. */
  draw(input: ChartInput): string | undefined;
}

type Shape = ChartTable['shape'];

const tablesOf = ({ workloads }: ChartInput, workload: string): ChartTable[] =>
  workloads.filter((table) => table.workload === workload && table.rows.length > 0);
const has = ({ shape }: ChartTable, wanted: Shape): boolean =>
  Object.entries(wanted).every(([key, value]) => shape[key] === value);
const aim = ({ unit, better }: ChartTable): string => `${unit}, ${better} is better`;
const times = (ratio: number | null): string => (ratio === null ? '' : `${figure(ratio)}×`);

/** What the figures are, and where and when they were measured. */
function footerOf({ node, cpu, cores, date }: ChartInput, tables: readonly ChartTable[], spread: string): readonly string[] {
  const counts = tables.flatMap(({ rows }) => rows.map(({ rounds }) => rounds.length));
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  return [
    `Median of ${least === most ? least : `${least} to ${most}`} rounds${spread}.`,
    `Node ${node.replace(/^v/, '')}, ${cores} cores, ${cpu.slice(0, 60)}, ${date.slice(0, 10)}.`,
  ];
}

/** Words for what a shape has. */
const WORDS: Readonly<Record<string, (value: number | string) => string>> = {
  chunkBytes: (value) =>
    `chunks of ${Number(value) % 1024 === 0 ? `${whole(Number(value) / 1024)} KiB` : `${whole(Number(value))} bytes`}`,
  watchers: (value) => `${whole(Number(value))} watchers`,
  burst: (value) => (value === 1 ? 'one change at a time' : `bursts of ${value}`),
  objectBytes: (value) => `objects of ${whole(Number(value))} bytes`,
  objects: (value) => `${whole(Number(value))} objects`,
  what: String,
  keys: () => '',
  as: (value) =>
    ({ whole: 'as a whole', pages: 'in pages of 500', half: 'by a label selector, every second object' })[value] ?? `${value}`,
};

interface Bars {
  readonly id: string;
  readonly workload: string;
  /** Which tables of the workload. */
  readonly shape: Shape;
  readonly title: string;
  /** Before the unit. */
  readonly about: string;
  /** By default a section for each table, whose heading is what the title does not say: the contenders, best first. */
  readonly sections?: (tables: readonly ChartTable[]) => Section[];
  /** What is made of the tables first. */
  readonly as?: (tables: ChartTable[]) => ChartTable[];
}

function bars({ id, workload, shape, title, about, sections, as = (tables) => tables }: Bars): Chart {
  const heading = (table: ChartTable): string =>
    Object.entries(table.shape)
      .flatMap(([key, value]) => (key in shape ? [] : (WORDS[key]?.(value) ?? `${key} ${value}`) || []))
      .join(', ');
  const ranked = (table: ChartTable): Section => ({
    heading: heading(table) || undefined,
    noteName: table.rows.every(({ ratio }) => ratio === null) ? '' : `ratio to ${table.reference}`.slice(0, 36),
    groups: [...table.rows]
      .sort((a, b) => (table.better === 'higher' ? b.median - a.median : a.median - b.median))
      .map((row) => ({ ...row, bars: [row], note: times(row.ratio) })),
  });
  return {
    id,
    needs: [workload, ...Object.values(shape)].join(', '),
    draw(input) {
      const tables = as(tablesOf(input, workload).filter((table) => has(table, shape)));
      const [first] = tables;
      if (first === undefined) return undefined;
      return barChart({
        ...{ id, title, subtitle: about.endsWith('here') ? about : `${about}; ${aim(first)}` },
        footer: footerOf(input, tables, ', whiskers from the least to the most'),
        sections: sections?.(tables) ?? tables.map(ranked),
      });
    },
  };
}

const BURST = 64;

const fanoutLines: Chart = {
  id: 'fanout-watchers',
  needs: `fanout at two numbers of watchers or more, bursts of ${BURST}`,
  draw(input) {
    const tables = tablesOf(input, 'fanout').filter(({ shape }) => shape.burst === BURST && Number(shape.watchers) > 0);
    const counts = [...new Set(tables.map(({ shape }) => Number(shape.watchers)))].sort((a, b) => a - b);
    const [first] = tables;
    if (first === undefined || counts.length < 2) return undefined;
    const all = tables.flatMap(({ rows }) => rows);
    const lines = [...new Set(all.map(({ contender }) => contender))].map((contender) => ({
      contender,
      queue: all.find((row) => row.contender === contender)?.queue ?? ('none' as const),
      points: counts.flatMap((x) => {
        const row = tables.find(({ shape }) => shape.watchers === x)?.rows.find((each) => each.contender === contender);
        return row !== undefined && row.median > 0 ? [{ x, y: row.median }] : [];
      }),
    }));
    return lineChart({
      id: this.id,
      title: 'Fan-out, by the number of watchers',
      subtitle: `Bursts of ${BURST} events; ${aim(first)}. Both axes are logarithmic`,
      footer: footerOf(input, tables, ''),
      lines: lines.filter(({ points }) => points.length > 0),
      xName: 'watchers',
    });
  },
};

/**
 * Converts times to rates, so that longer bars are better. As a time, one very slow contender would make all other bars too
 * short.
 */
function perSecond(table: ChartTable): ChartTable {
  if (table.unit !== 'ns/publish') return table;
  const rate = (ns: number): number => (ns > 0 ? 1000 / ns : 0);
  const rows = table.rows.map((row) => ({
    ...row,
    rounds: row.rounds.map(rate),
    ...{ median: rate(row.median), min: rate(row.max), max: rate(row.min) },
  }));
  return { ...table, unit: 'million publishes/s', better: 'higher', rows };
}

/** How much longer it takes with many, as a median of ratios per round, so that a disturbance affects both sides. */
function longer(better: ChartTable['better'], few: ChartRow, many: ChartRow): number | null {
  const ratios = few.rounds.map((one, round) => {
    const other = many.rounds[round] ?? Number.NaN;
    return better === 'higher' ? one / other : other / one;
  });
  const middle = median(ratios.filter((ratio) => ratio > 0 && ratio < Number.POSITIVE_INFINITY));
  return Number.isNaN(middle) ? null : middle;
}

/** A contender's bar per number of laggards, and how much longer a publish takes with the most laggards than with the fewest. */
function byLaggards(tables: readonly ChartTable[]): Section[] {
  const [first, last] = [tables[0], tables.at(-1)].map((table) => whole(Number(table?.shape.laggards)));
  const names = [...new Set(tables.flatMap(({ rows }) => rows.map(({ contender }) => contender)))];
  const groups = names.map((contender): Group => {
    const bars = tables.flatMap(({ shape, rows }) => {
      const row = rows.find((each) => each.contender === contender);
      return row === undefined ? [] : [{ ...row, label: whole(Number(shape.laggards)) }];
    });
    const [few, many] = [bars[0], bars.at(-1)];
    const comparable = bars.length === tables.length && bars.length > 1;
    const ratio = comparable && few && many ? longer(tables[0]?.better ?? 'higher', few, many) : null;
    return { contender, queue: few?.queue ?? 'none', bars, note: times(ratio) };
  });
  return [{ noteName: first === last ? '' : `time: ${last} against ${first}`, groups }];
}

const laggards = (are: string, title: string): Chart =>
  bars({
    ...{
      id: `laggards-${are}`,
      workload: 'laggards',
      shape: { are },
      title: `Publishing while watchers lag: their queues ${title}`,
    },
    about: 'By the number of watchers that nobody reads',
    as: (tables) => tables.sort((a, b) => Number(a.shape.laggards) - Number(b.shape.laggards)).map(perSecond),
    sections: byLaggards,
  });

const PROCESSOR = 'processor time';
const FAULTS: Readonly<Record<string, string>> = { cut: 'cut', restart: 'restart', expired: 'window exceeded' };
const stormName = ({ shape }: ChartTable, { contender }: ChartRow): string =>
  `${contender}, ${FAULTS[String(shape.what)] ?? shape.what}`;

/** Requests per second over time, a line for each client and fault. */
const storm: Chart = {
  id: 'stack-storm',
  needs: 'storm',
  draw(input) {
    const tables = tablesOf(input, 'storm');
    const series = tables.filter(({ shape }) => shape.atMs !== undefined);
    const [first] = series;
    if (first === undefined) return undefined;
    const names = [...new Set(series.flatMap((table) => table.rows.map((row) => stormName(table, row))))];
    // One that took longer than the chart, on a busy machine, is told of below.
    const lines = names.map((name) => courseOf(name, tables)).filter(({ points }) => points.some(({ y }) => y > 0));
    if (lines.length === 0) return undefined;
    return lineChart({
      id: this.id,
      title: `${whole(Number(first.shape.clients))} clients lose their server at once, and reconnect`,
      subtitle: 'Requests per second, in quarters of a second; the storm that was over first, of all rounds',
      footer: [...stormNotes(tables), ...footerOf(input, series, '')],
      lines,
      xName: 'seconds since then',
      linear: true,
    });
  },
};

/** A storm in the round in which all clients were live first. A median of each moment would be a storm that never was. */
function courseOf(name: string, tables: readonly ChartTable[]): Line {
  const found = tables.flatMap(({ shape, ...table }) =>
    table.rows.flatMap((row) => (stormName({ ...table, shape }, row) === name ? [{ shape, row }] : [])),
  );
  const live = found.find(({ shape }) => shape.of === 'all live')?.row.rounds ?? [];
  const round = Math.max(0, live.indexOf(Math.min(...live)));
  const points = found.flatMap(({ shape: { atMs }, row }) =>
    atMs === undefined ? [] : [{ x: Number(atMs) / 1_000, y: row.rounds[round] ?? 0 }],
  );
  return { contender: name, queue: found[0]?.row.queue ?? 'none', points: points.sort((a, b) => a.x - b.x) };
}

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
      const name = stormName(table, row).slice(0, 40);
      return `${name}: ${whole(row.median)} LISTs; ${whole(gone)} % of the answers are 410; all live after ${after}.`;
    }),
  );
}

/** What is told of replicas, as multiples of one replica. */
const MULTIPLES: Readonly<Record<string, Shape>> = {
  'deliveries to 600 watchers, a core for each replica': { what: 'watch', watchers: 600, objectBytes: 1_000, of: 'a core each' },
  'lists, a core for each replica': { what: 'list', of: 'a core each' },
  'processor time of etcd per write: lower is better': { what: 'write', of: 'etcd' },
};

function multipleOf(table: ChartTable, row: ChartRow): Group {
  const one = table.rows.find(({ contender }) => contender === table.reference);
  const ratios = pairedRatios(row.rounds, one?.rounds ?? row.rounds);
  const bar = { median: median(ratios), min: Math.min(...ratios), max: Math.max(...ratios) };
  return { ...row, bars: [Number.isNaN(bar.median) ? { median: 0, min: 0, max: 0 } : bar], note: figure(row.median) };
}

const replicas: Chart = bars({
  id: 'stack-replicas',
  workload: 'replicas',
  shape: {},
  title: 'One, two and three replicas on one etcd',
  about: 'Multiples of one replica, by processor time: all processes share two cores here',
  as: (tables) => Object.values(MULTIPLES).flatMap((shape) => tables.filter((table) => has(table, shape))),
  sections: (tables) =>
    tables.map((table) => ({
      heading: Object.entries(MULTIPLES).find(([, shape]) => has(table, shape))?.[0],
      noteName: table.unit.replace(/^thousand /, '1,000 ').slice(0, 22),
      groups: table.rows.map((row) => multipleOf(table, row)),
    })),
});

export const CHARTS: readonly Chart[] = [
  fanoutLines,
  bars({
    ...{ id: 'fanout-100', workload: 'fanout', shape: { watchers: 100, burst: BURST }, title: 'Fan-out to 100 watchers' },
    about: `Bursts of ${BURST} events`,
  }),
  laggards('full', 'are full'),
  laggards('filling', 'fill'),
  bars({
    ...{ id: 'decode', workload: 'decode', shape: {}, title: 'Decoding a watch stream of Kubernetes objects' },
    about: 'Newline-delimited JSON',
  }),
  bars({
    ...{ id: 'stack-fanout', workload: 'server', shape: { what: 'watch', of: PROCESSOR } },
    ...{ title: 'An API server tells its watches of changes', about: 'Per second of processor time' },
  }),
  bars({
    ...{ id: 'stack-list', workload: 'server', shape: { what: 'list', of: PROCESSOR } },
    ...{ title: 'An API server lists Pods of 14 KB', about: 'By processor time' },
  }),
  bars({
    ...{ id: 'stack-sync', workload: 'stack', shape: { what: 'initial sync', of: PROCESSOR } },
    ...{ title: 'An informer gets its first list: Pods of 4 KB', about: 'By processor time' },
  }),
  bars({
    ...{ id: 'stack-relist', workload: 'stack', shape: { what: 'relist', of: 'list' } },
    ...{ title: 'An informer lists again, and nothing has changed', about: 'Memory allocated' },
  }),
  bars({ id: 'stack-queue', workload: 'workqueue', shape: {}, title: 'A work queue of 10,000 keys', about: 'Keys' }),
  storm,
  replicas,
];
