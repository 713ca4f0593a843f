import { setTimeout } from 'node:timers/promises';
import { type Cost, ReplicasStage, sum } from './replicas/stage.ts';
import { median } from './stats.ts';
import { type Entry, type Figure, numberOf, type Prepared, type Shape, type Workload } from './workload.ts';

const ENTRIES: readonly Entry[] = [
  { name: 'watchmux, 1 replica', queue: 'bounded' },
  { name: 'watchmux, 2 replicas', queue: 'bounded' },
  { name: 'watchmux, 3 replicas', queue: 'bounded' },
];

type Kind = 'watch' | 'list' | 'write' | 'join' | 'mixed';

/** Changes, and everybody who is told of them. */
async function watchRound(stage: ReplicasStage, shape: Shape): Promise<readonly number[]> {
  const [watchers, count, bytes] = [numberOf(shape, 'watchers'), numberOf(shape, 'changes'), numberOf(shape, 'objectBytes')];
  const { cost } = await stage.cost(() => stage.load.ask('change', { from: stage.take(count), count, bytes }));
  const deliveries = count * watchers;
  const all = sum(cost.replicas);
  return [(all * 1_000) / count, (all * 1_000) / deliveries, deliveries / busiest(cost)];
}

async function listRound(stage: ReplicasStage, shape: Shape): Promise<readonly number[]> {
  const times = numberOf(shape, 'lists');
  const { cost } = await stage.cost(() => stage.load.ask('list', { times }));
  return [sum(cost.replicas) / times, (times * 1_000) / busiest(cost), (cost.etcd * 1_000) / times];
}

async function writeRound(stage: ReplicasStage, shape: Shape): Promise<readonly number[]> {
  const [count, bytes] = [numberOf(shape, 'writes'), numberOf(shape, 'objectBytes')];
  const order = { from: stage.take(count), count, bytes };
  const { cost, result: times } = await stage.cost(() => stage.load.ask('write', order));
  return [(sum(cost.replicas) * 1_000) / count, (cost.etcd * 1_000) / count, median(times)];
}

/** Watches that come and go: what one costs from its beginning to its end, and what it holds while it waits. */
async function joinRound(stage: ReplicasStage, shape: Shape): Promise<readonly number[]> {
  const watchers = numberOf(shape, 'watchers');
  const before = await stage.memory();
  const { cost: coming } = await stage.cost(() => stage.load.ask('join', { watchers }));
  await setTimeout(50);
  const after = await stage.memory();
  const { cost: leaving } = await stage.cost(async () => {
    await stage.load.ask('leave', {});
    await setTimeout(100);
  });
  const mean = (values: readonly number[]): number => sum(values) / values.length / 1e6;
  return [
    ((sum(coming.replicas) + sum(leaving.replicas)) * 1_000) / watchers,
    (sum(after.heap) - sum(before.heap)) / watchers / 1e3,
    mean(before.heap),
    mean(before.resident),
    before.etcd / 1e6,
  ];
}

/** Steps of a write that everybody is told of; a list, and a watch that comes again, now and then. */
async function mixedRound(stage: ReplicasStage, shape: Shape): Promise<readonly number[]> {
  const [count, bytes] = [numberOf(shape, 'steps'), numberOf(shape, 'objectBytes')];
  const every = { listEvery: numberOf(shape, 'listEvery'), joinEvery: numberOf(shape, 'joinEvery') };
  const order = { from: stage.take(count), count, bytes, ...every };
  const { cost } = await stage.cost(() => stage.load.ask('mix', order));
  return [(sum(cost.replicas) * 1_000) / count, (busiest(cost) * 1_000) / count, (cost.etcd * 1_000) / count];
}

const busiest = ({ replicas }: Cost): number => Math.max(...replicas);

const ROUNDS: Readonly<Record<Kind, (stage: ReplicasStage, shape: Shape) => Promise<readonly number[]>>> = {
  watch: watchRound,
  list: listRound,
  write: writeRound,
  join: joinRound,
  mixed: mixedRound,
};

const lower = (of: string, unit: string): Figure => ({ shape: { of }, unit, better: 'lower' });
const higher = (of: string, unit: string): Figure => ({ shape: { of }, unit, better: 'higher' });

/** `a core each`: processor time of the busiest replica, as if nobody else used its core. */
const FIGURES: Readonly<Record<Kind, readonly Figure[]>> = {
  watch: [
    lower('event', 'µs of all replicas per change'),
    lower('delivery', 'µs of all replicas per delivery'),
    higher('a core each', 'thousand deliveries/s'),
  ],
  list: [lower('list', 'ms of a replica per list'), higher('a core each', 'lists/s'), lower('etcd', 'µs of etcd per list')],
  write: [
    lower('replicas', 'µs of all replicas per write'),
    lower('etcd', 'µs of etcd per write'),
    lower('clock', 'ms per write, one at a time'),
  ],
  join: [
    lower('watch', 'µs of a replica per watch, from its beginning to its end'),
    lower('watcher', 'KB of the heap per watcher'),
    lower('heap', 'MB of a replica without watchers'),
    lower('resident', 'MB of a replica without watchers'),
    lower('etcd', 'MB, resident'),
  ],
  mixed: [
    lower('replicas', 'µs of all replicas per step'),
    lower('busiest', 'µs of the busiest replica per step'),
    lower('etcd', 'µs of etcd per step'),
  ],
};

async function prepare(contender: string, shape: Shape): Promise<Prepared> {
  const count = ENTRIES.findIndex(({ name }) => name === contender) + 1;
  const stage = await ReplicasStage.open(count, numberOf(shape, 'objectBytes'));
  const round = (): Promise<readonly number[]> => ROUNDS[shape.what as Kind](stage, shape);
  try {
    if (shape.what === 'watch' || shape.what === 'mixed') {
      await stage.load.ask('join', { watchers: numberOf(shape, 'watchers') });
    }
    for (let i = 0; i < numberOf(shape, 'warm'); i++) await round();
  } catch (error) {
    await stage.end();
    throw error;
  }
  return { round, end: () => stage.end() };
}

const WARM = 3;

/** API servers on one etcd: what each of them adds, and what they share. In processor time, as all of them share two cores here. */
export const replicas: Workload = {
  name: 'replicas',
  about: 'one, two and three API servers on one etcd: processor time per delivery, list, write and reconnect, and memory',
  reference: 'watchmux, 1 replica',
  mostRounds: 7,
  shapes: ({ watchers, quick }) => {
    const [all] = watchers ?? [600];
    const many = Math.ceil((all as number) / 6) * 6;
    const mixed = { what: 'mixed', watchers: many, objectBytes: 1_000, listEvery: 5, joinEvery: 1 };
    if (quick) return [{ ...mixed, steps: 6, warm: 0 }];
    return [
      { what: 'watch', watchers: 6, objectBytes: 1_000, changes: 200, warm: WARM },
      { what: 'watch', watchers: many, objectBytes: 1_000, changes: 60, warm: WARM },
      { what: 'watch', watchers: many, objectBytes: 10_000, changes: 60, warm: WARM },
      { what: 'list', objectBytes: 1_000, lists: 60, warm: WARM },
      { what: 'write', objectBytes: 1_000, writes: 200, warm: WARM },
      { what: 'join', watchers: many, objectBytes: 1_000, warm: WARM },
      { ...mixed, steps: 60, warm: WARM },
    ];
  },
  figures: ({ what }) => FIGURES[what as Kind],
  entries: () => ENTRIES,
  prepare,
};
