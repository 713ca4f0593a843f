import type { ChartInput, ChartRow, ChartTable } from './chart-input.ts';

/** A row whose rounds are around its median. */
export function row(contender: string, queue: ChartRow['queue'], median: number): ChartRow {
  return {
    contender,
    queue,
    rounds: [median, median * 0.9, median * 1.1],
    median,
    min: median * 0.9,
    max: median * 1.1,
    ratio: median / 10,
  };
}

export function table(workload: string, shape: ChartTable['shape'], rows: readonly ChartRow[]): ChartTable {
  return { workload, shape, unit: 'million deliveries/s', better: 'higher', reference: 'Node events.on', rows };
}

function fanout(watchers: number, factor: number): ChartTable {
  const rows = [
    row('Node events.on', 'unbounded', 10 * factor),
    row('watchmux batches()', 'bounded', 300 * factor),
    row('bare loop', 'none', 600 * factor),
    row('loses some', 'lossy', 20 * factor),
    row('Go Broadcaster', 'bounded', 9 * factor),
    row('EventEmitter', 'none', 200 * factor),
  ];
  return table('fanout', { watchers, burst: 64 }, watchers === 10_000 ? rows.slice(0, 4) : rows);
}

export function laggards(count: number, { ns, are = 'full' }: { ns: number; are?: string }): ChartTable {
  const rows = [row('watchmux drop-oldest', 'bounded', ns), row('queue per watcher', 'bounded', 100 * count)];
  return { ...table('laggards', { are, laggards: count }, rows), unit: 'ns/publish', better: 'lower' };
}

const DECODERS = [
  row('readline', 'unbounded', 120),
  row('JSON.parse of ready lines', 'none', 200),
  row('watchmux batches()', 'bounded', 190),
];

const pair = (one: string, other: string): ChartRow[] => [row(one, 'bounded', 20), row(other, 'none', 10)];

/** Requests of a storm at this time. */
const slice = (atMs: number, median: number): ChartTable =>
  table('storm', { what: 'cut', clients: 1_000, of: 'requests', atMs }, [{ ...row('watchmux', 'bounded', median), ratio: null }]);

const STACK: readonly ChartTable[] = [
  ...[1_000, 10_000].map((objectBytes) =>
    table('server', { what: 'watch', watchers: 500, burst: 1, objectBytes, of: 'processor time' }, pair('watchmux', 'plain')),
  ),
  table('server', { what: 'watch', watchers: 500, burst: 1, objectBytes: 1_000, of: 'clock' }, pair('not', 'this')),
  table('server', { what: 'list', objects: 10_000, as: 'pages', of: 'processor time' }, pair('watchmux', 'plain')),
  table('stack', { what: 'initial sync', objects: 10_000, of: 'processor time' }, pair('watchmux', 'client-go')),
  table('stack', { what: 'relist', objects: 10_000, of: 'list' }, pair('watchmux', 'watchmux, paged list')),
  table('workqueue', { what: 'adds', keys: 10_000 }, pair('watchmux', 'client-go queue')),
  ...[slice(500, 0), slice(0, 0), slice(250, 4_000)],
  table('storm', { what: 'cut', clients: 1_000, of: 'lists' }, [row('watchmux', 'bounded', 0)]),
  table('storm', { what: 'cut', clients: 1_000, of: '410' }, [row('watchmux', 'bounded', 0)]),
  table('storm', { what: 'cut', clients: 1_000, of: 'all live' }, [row('watchmux', 'bounded', 1_234)]),
  {
    ...table('replicas', { what: 'list', objectBytes: 1_000, of: 'a core each' }, [
      row('watchmux, 1 replica', 'bounded', 100),
      row('watchmux, 3 replicas', 'bounded', 290),
    ]),
    reference: 'watchmux, 1 replica',
  },
];

/** A report with data for every chart. The tables are not in order. */
export const INPUT: ChartInput = {
  node: 'v20.1.2',
  cpu: 'A <fast> "one" & more',
  cores: 2,
  date: '2026-01-02T03:04:05.678Z',
  workloads: [
    fanout(10_000, 0.5),
    fanout(1, 1),
    fanout(100, 2),
    table('fanout', { watchers: 100, burst: 1 }, [row('not this one', 'none', 1)]),
    laggards(10_000, { ns: 50 }),
    laggards(1, { ns: 40 }),
    laggards(1, { ns: 80, are: 'filling' }),
    laggards(100, { ns: 45 }),
    table('decode', { chunkBytes: 65_536 }, DECODERS),
    table('decode', { chunkBytes: 1000, of: 'lines' }, DECODERS),
    ...STACK,
  ],
};
