import type { Request } from './storm/gate.ts';
import { type Fault, type Storm, StormStage } from './storm/stage.ts';
import { type Entry, type Figure, numberOf, type Prepared, type Shape, type Workload } from './workload.ts';

const WATCHMUX: Entry = { name: 'watchmux', queue: 'bounded' };
const CLIENT_NODE: Entry = { name: 'client-node', queue: 'none' };

/** Requests are counted in slices of this length, and so many of them. */
const SLICE_MS = 250;
const SLICES = 32;

const SUMS: readonly Figure[] = [
  { shape: { of: 'all live' }, unit: 'ms', better: 'lower' },
  { shape: { of: 'half live' }, unit: 'ms', better: 'lower' },
  { shape: { of: 'requests' }, unit: 'per client', better: 'lower' },
  { shape: { of: 'peak' }, unit: 'requests/s', better: 'lower' },
  { shape: { of: '410' }, unit: '% of requests', better: 'lower' },
  { shape: { of: 'lists' }, unit: 'LISTs', better: 'lower' },
  { shape: { of: 'processor time' }, unit: 'ms of the server per client', better: 'lower' },
];

const SERIES: readonly Figure[] = Array.from({ length: SLICES }, (_, slice) => ({
  shape: { of: 'requests', atMs: slice * SLICE_MS },
  unit: 'requests/s',
  better: 'lower',
  charted: true,
}));

/** Requests per second in each slice since the beginning, up to the last request. */
export function perSlice(requests: readonly Request[], beganMs: number): number[] {
  const slices = requests.map(({ atMs }) => Math.floor((atMs - beganMs) / SLICE_MS)).filter((slice) => slice >= 0);
  const counts = new Array<number>(Math.max(SLICES, ...slices.map((slice) => slice + 1))).fill(0);
  for (const slice of slices) counts[slice] = (counts[slice] as number) + 1;
  return counts.map((count) => (count * 1_000) / SLICE_MS);
}

/** The figures of a storm, in the order of `figures`. */
export function figuresOf({ beganMs, requests, gone, liveAfterMs, serverMs }: Storm): number[] {
  const clients = liveAfterMs.length;
  const slices = perSlice(requests, beganMs);
  const lists = requests.filter(({ asked }) => asked === 'list').length;
  return [
    liveAfterMs.at(-1) as number,
    liveAfterMs[clients >> 1] as number,
    requests.length / clients,
    Math.max(...slices),
    requests.length === 0 ? 0 : (100 * gone) / requests.length,
    lists,
    serverMs / clients,
    ...slices.slice(0, SLICES),
  ];
}

async function prepare(contender: string, shape: Shape): Promise<Prepared> {
  const stage = await StormStage.open(contender, numberOf(shape, 'clients'));
  return { round: async () => figuresOf(await stage.play(shape.what as Fault)), end: () => stage.end() };
}

/** Clients that lose their server at the same moment, and come back: what they ask for, and how soon they are live again. */
export const storm: Workload = {
  name: 'storm',
  about: '1,000 clients lose their server at once and reconnect: requests over time, 410s, LISTs, time until all are live',
  reference: CLIENT_NODE.name,
  mostRounds: 5,
  shapes: ({ watchers, quick }) =>
    (watchers ?? [quick ? 100 : 1_000]).flatMap((clients) =>
      (['cut', 'restart', 'expired'] as const).map((what) => ({ what, clients })),
    ),
  figures: () => [...SUMS, ...SERIES],
  entries: () => [WATCHMUX, CLIENT_NODE],
  prepare,
};
