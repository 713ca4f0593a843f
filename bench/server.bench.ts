import { setTimeout } from 'node:timers/promises';
import { collectGarbage, heapBytes } from './heap.ts';
import {
  BYTES,
  bytesAlone,
  OURS,
  ours,
  PLAIN,
  PODS_PATH,
  plainServer,
  type Running,
  type Size,
  THINGS_PATH,
} from './server/contenders.ts';
import { HALF, nodeOf, THINGS } from './server/objects.ts';
import { Stage, type Took, timed } from './server/stage.ts';
import type { Audience } from './server/watchers.ts';
import { quantile } from './stats.ts';
import { warmingUp } from './warm.ts';
import { type Entry, type Figure, numberOf, type Prepared, type Settings, type Shape, type Workload } from './workload.ts';

const SELECTED: Entry = { name: 'watchmux, label selector', queue: 'bounded' };
const ALONE: Entry = { name: 'watchmux, one watcher', queue: 'bounded' };
const BESIDE: Entry = { name: 'watchmux, 10,000 idle beside', queue: 'bounded' };
const STALLED: Entry = { name: 'watchmux, one stalled beside', queue: 'bounded' };
const NODE: Entry = { name: 'node:http', queue: 'none' };

/** Watches of other Things, in the same process. */
const IDLE_BESIDE = 10_000;
/** Enough for several turns of all writers. */
const ROUND_WRITES = 1_000;
/** Sockets and two processes are noisier than calls, so a turn takes this many times as long as elsewhere. */
const LONGER = 2;
/** Most of the time is spent in the kernel, so code is called less often, and warming up takes longer. */
const WARM_LONGER = 3;
/** A write goes through much more code, which takes some ten thousand of them to be compiled. */
const WRITES_WARM_LONGER = 12;

/** Each is told to all watchers, so that there are 50,000 latencies in a round of 100 watchers. */
const ROUND_LATENCIES = 500;

type Kind = 'watch' | 'stalled' | 'fields' | 'list' | 'slow reader' | 'writes' | 'idle';

function start(contender: string, size: Size): Promise<Running> | Running {
  if (contender === PLAIN.name) return plainServer(size);
  return contender === BYTES.name || contender === NODE.name ? bytesAlone() : ours(size);
}

const all = (watchers: number, selector: string = ''): Audience => ({ path: `${THINGS_PATH}?watch=true${selector}`, watchers });

/** Repeats a piece of work, ever more of it at once, until it is warm. Returns how often it fits into a round. */
async function warm(run: (times: number) => Promise<Took>, { warmMs, roundMs }: Settings): Promise<number> {
  let times = 1;
  let took = await run(times);
  for (let spent = took.cpuMs; spent < warmMs * WARM_LONGER; spent += took.cpuMs) {
    times = Math.max(1, Math.min(times * 2, Math.round((times * roundMs * LONGER) / took.cpuMs)));
    took = await run(times);
  }
  return times;
}

/** Changes, and everybody who is told of all of them. */
async function prepareWatch(contender: string, shape: Shape, settings: Settings): Promise<Prepared> {
  const [watchers, burst, thingBytes] = [numberOf(shape, 'watchers'), numberOf(shape, 'burst'), numberOf(shape, 'objectBytes')];
  const stage = await Stage.open(await start(contender, { thingBytes, pods: 0 }));
  await stage.join([all(watchers, contender === SELECTED.name ? '&labelSelector=app%3Dweb' : '')]);
  const run = (bursts: number): Promise<Took> => stage.change({ bursts, burst, thingBytes });
  const bursts = await warm(run, settings);
  return {
    async round() {
      const { wallMs, cpuMs } = await run(bursts);
      const events = watchers * bursts * burst;
      return [events / cpuMs, events / wallMs];
    },
    end: () => stage.end(),
  };
}

/** Changes, each of which concerns one watcher of many. */
async function prepareFields(contender: string, shape: Shape, settings: Settings): Promise<Prepared> {
  const [watchers, thingBytes] = [numberOf(shape, 'watchers'), numberOf(shape, 'objectBytes')];
  const stage = await Stage.open(await start(contender, { thingBytes, pods: 0 }));
  const count = contender === ALONE.name ? 1 : watchers;
  await stage.join(
    Array.from({ length: count }, (_, thing) => ({
      path: `${THINGS_PATH}?watch=true&fieldSelector=spec.node%3D${nodeOf(thing)}`,
      watchers: 1,
      thing,
    })),
  );
  if (contender === BESIDE.name) await stage.running.idle?.(IDLE_BESIDE, true);
  const run = (times: number): Promise<Took> =>
    stage.change({ bursts: times * THINGS, burst: 1, thingBytes, sparse: true, onlyFirst: contender === ALONE.name });
  const times = await warm(run, settings);
  return {
    async round() {
      const { cpuMs } = await run(times);
      return [(cpuMs * 1_000) / (times * THINGS)];
    },
    end: () => stage.end(),
  };
}

async function prepareList(contender: string, shape: Shape): Promise<Prepared> {
  const pods = numberOf(shape, 'objects');
  const stage = await Stage.open(await start(contender, { thingBytes: 0, pods }));
  const order = {
    path: PODS_PATH,
    limit: shape.as === 'pages' ? 500 : 0,
    labelSelector: shape.as === 'half' ? HALF : '',
    pods,
    step: shape.as === 'half' ? 2 : 1,
  };
  let firstByteMs = 0;
  let objects = 0;
  const run = (): Promise<Took> =>
    timed(async () => {
      const { listed } = await stage.ask({ do: 'list', ...order });
      firstByteMs = listed?.firstByteMs ?? Number.NaN;
      objects = listed?.objects ?? Number.NaN;
    });
  for (let i = 0; i < 3; i++) await run();
  return {
    async round() {
      const { cpuMs, wallMs } = await run();
      return [objects / cpuMs, objects / wallMs, firstByteMs];
    },
    end: () => stage.end(),
  };
}

/** What the server holds for somebody who has asked for a list and does not take it. */
async function prepareSlowReader(contender: string, shape: Shape): Promise<Prepared> {
  const pods = numberOf(shape, 'objects');
  const stage = await Stage.open(await start(contender, { thingBytes: 0, pods }));
  const order = { path: PODS_PATH, limit: 0, labelSelector: '', pods, step: 1 };
  await stage.ask({ do: 'list', ...order }); // makes the bytes of the objects
  await stage.leave();
  return {
    async round() {
      const before = await memory();
      await stage.ask({ do: 'begin', ...order });
      const held = (await memory()) - before;
      await stage.leave();
      return [held / 1e6];
    },
    end: () => stage.end(),
  };
}

/** The heap, and what is outside of it; two collections, as what is outside is freed after the first. */
async function memory(): Promise<number> {
  await collectGarbage();
  return heapBytes();
}

async function prepareWrites(contender: string, shape: Shape, settings: Settings): Promise<Prepared> {
  const [watchers, connections, thingBytes] = [
    numberOf(shape, 'watchers'),
    numberOf(shape, 'writers'),
    numberOf(shape, 'objectBytes'),
  ];
  const stage = await Stage.open(await start(contender, { thingBytes, pods: 0 }));
  await stage.join([all(watchers)]);
  const run = (): Promise<Took> => stage.write({ path: THINGS_PATH, connections, count: ROUND_WRITES, thingBytes });
  const isCold = warmingUp(settings.warmMs * WRITES_WARM_LONGER);
  while (isCold()) await run();
  return {
    async round() {
      const { wallMs, cpuMs } = await run();
      return [ROUND_WRITES / cpuMs, ROUND_WRITES / wallMs];
    },
    end: () => stage.end(),
  };
}

/** How late healthy watchers are told, beside one that takes nothing, and without. */
async function prepareStalled(contender: string, shape: Shape, settings: Settings): Promise<Prepared> {
  const [watchers, thingBytes] = [numberOf(shape, 'watchers'), numberOf(shape, 'objectBytes')];
  const stage = await Stage.open(await start(contender, { thingBytes, pods: 0 }));
  await stage.join([{ ...all(watchers), timed: true }]);
  if (contender === STALLED.name) {
    const version = await stage.running.version();
    await stage.ask({ do: 'stall', path: `${THINGS_PATH}?watch=true&resourceVersion=${version}` });
  }
  const isCold = warmingUp(settings.warmMs * WARM_LONGER);
  while (isCold()) await stage.latencies(100, thingBytes);
  return {
    async round() {
      const sorted = await stage.latencies(ROUND_LATENCIES, thingBytes);
      return [quantile(sorted, 0.5), quantile(sorted, 0.99)];
    },
    end: () => stage.end(),
  };
}

/** Bytes per watcher that waits. */
async function prepareIdle(contender: string, shape: Shape): Promise<Prepared> {
  const watchers = numberOf(shape, 'watchers');
  const open = async (): Promise<number> => {
    const stage = await Stage.open(await start(contender, { thingBytes: 100, pods: 0 }));
    if (shape.are === 'connections') await stage.join([all(1)]);
    await setTimeout(50);
    const before = await memory();
    if (shape.are === 'connections') await stage.join([all(watchers)]);
    else await stage.running.idle?.(watchers, shape.are === 'selecting');
    await setTimeout(50);
    const bytes = (await memory()) - before;
    await stage.leave();
    stage.end();
    return bytes / watchers;
  };
  await open();
  return { round: async () => [await open()] };
}

const FIGURES: Readonly<Record<Kind, readonly Figure[]>> = {
  watch: [
    { shape: { of: 'processor time' }, unit: 'thousand events/s of the server', better: 'higher' },
    { shape: { of: 'clock' }, unit: 'thousand events/s', better: 'higher' },
  ],
  stalled: [
    { shape: { of: 'p50' }, unit: 'ms', better: 'lower' },
    { shape: { of: 'p99' }, unit: 'ms', better: 'lower' },
  ],
  fields: [{ shape: { of: 'processor time' }, unit: 'µs per change', better: 'lower' }],
  list: [
    { shape: { of: 'processor time' }, unit: 'objects/ms of the server', better: 'higher' },
    { shape: { of: 'clock' }, unit: 'objects/ms', better: 'higher' },
    { shape: { of: 'first byte' }, unit: 'ms', better: 'lower' },
  ],
  'slow reader': [{ shape: { of: 'memory' }, unit: 'MB', better: 'lower' }],
  writes: [
    { shape: { of: 'processor time' }, unit: 'thousand writes/s of the server', better: 'higher' },
    { shape: { of: 'clock' }, unit: 'thousand writes/s', better: 'higher' },
  ],
  idle: [{ shape: { of: 'each' }, unit: 'bytes', better: 'lower' }],
};

const ENTRIES: Readonly<Record<Kind, readonly Entry[]>> = {
  watch: [BYTES, OURS, SELECTED, PLAIN],
  stalled: [OURS, STALLED],
  fields: [ALONE, OURS, BESIDE],
  list: [OURS, PLAIN],
  'slow reader': [OURS, PLAIN],
  writes: [OURS, PLAIN],
  idle: [NODE, OURS],
};

const PREPARE: Readonly<Record<Kind, Workload['prepare']>> = {
  watch: prepareWatch,
  stalled: prepareStalled,
  fields: prepareFields,
  list: prepareList,
  'slow reader': prepareSlowReader,
  writes: prepareWrites,
  idle: prepareIdle,
};

/** An API server over a cache over memory, and its clients in another process: watches, lists, writes. */
export const server: Workload = {
  name: 'server',
  about: 'an API server: watches of 500 clients, lists of 10,000 Pods, writes, idle watchers',
  reference: PLAIN.name,
  shapes: ({ watchers, burst, quick }) => {
    const objects = quick ? 200 : 10_000;
    return [
      ...(watchers ?? [quick ? 100 : 500]).flatMap((each) =>
        (burst ?? [16, 1]).flatMap((size) =>
          (quick ? [1_000] : [1_000, 10_000]).map((objectBytes) => ({ what: 'watch', watchers: each, burst: size, objectBytes })),
        ),
      ),
      { what: 'stalled', watchers: quick ? 20 : 100, objectBytes: 10_000 },
      { what: 'fields', watchers: quick ? 50 : 500, objectBytes: 1_000 },
      ...['whole', 'pages', 'half'].map((as) => ({ what: 'list', objects, as })),
      { what: 'slow reader', objects },
      { what: 'writes', watchers: quick ? 10 : 100, writers: 64, objectBytes: 1_000 },
      { what: 'idle', watchers: quick ? 200 : 10_000, are: 'in process' },
      { what: 'idle', watchers: quick ? 200 : 10_000, are: 'selecting' },
      { what: 'idle', watchers: quick ? 50 : 2_000, are: 'connections' },
    ];
  },
  figures: ({ what }) => FIGURES[what as Kind],
  entries: ({ what, are }) => (what === 'idle' && are !== 'connections' ? [OURS] : ENTRIES[what as Kind]),
  prepare: (contender, shape, settings) => PREPARE[shape.what as Kind](contender, shape, settings),
};
