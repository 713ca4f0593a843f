import { WorkQueue } from '../src/workqueue/index.ts';
import { GO_QUEUE } from './go-programs.ts';
import { prepareGoQueue } from './go-queue.ts';
import { warmingUp } from './warm.ts';
import { type Entry, numberOf, type Prepared, type Settings, type Shape, type Workload } from './workload.ts';

/** What a contender does `count` times. Throws for a wrong answer. */
interface Task {
  run(count: number): Promise<void> | void;
}

const WATCHMUX: Entry = { name: 'watchmux', queue: 'bounded' };
/** The control: the two sets and the array of every description of such a queue, without delays or ends; `get` is a promise. */
const SETS: Entry = { name: 'two sets and an array', queue: 'bounded' };

const ADDS = 'adds of queued keys';

const keysOf = (count: number): string[] => Array.from({ length: count }, (_, at) => `namespace-${at % 10}/name-${at}`);

function expectCount(seen: number, due: number): void {
  if (seen !== due) throw new Error(`wrong answer: ${seen} keys, and ${due} are due`);
}

function ours(what: unknown, keys: readonly string[]): Task {
  const queue = new WorkQueue<string>();
  for (const key of keys) queue.add(key);
  if (what === ADDS) {
    return {
      run(count) {
        for (let at = 0; at < count; at++) queue.add(keys[at % keys.length] as string);
        expectCount(queue.size, keys.length);
      },
    };
  }
  return {
    async run(count) {
      for (let at = 0; at < count; at++) {
        const key = (await queue.get()) as string;
        if (key !== keys[at % keys.length]) throw new Error(`wrong answer: ${key}`);
        queue.done(key);
        queue.add(key);
      }
      // The next run begins with the first key again.
      for (let at = count % keys.length; at > 0 && at < keys.length; at++) {
        const key = (await queue.get()) as string;
        queue.done(key);
        queue.add(key);
      }
      expectCount(queue.size, keys.length);
    },
  };
}

function sets(what: unknown, keys: readonly string[]): Task {
  const dirty = new Set<string>();
  const working = new Set<string>();
  let line: string[] = [];
  const add = (key: string): void => {
    if (dirty.has(key)) return;
    dirty.add(key);
    if (!working.has(key)) line.push(key);
  };
  for (const key of keys) add(key);
  if (what === ADDS) {
    return {
      run(count) {
        for (let at = 0; at < count; at++) add(keys[at % keys.length] as string);
        expectCount(line.length, keys.length);
      },
    };
  }
  let first = 0;
  const get = (): Promise<string> => {
    const key = line[first++] as string;
    dirty.delete(key);
    working.add(key);
    if (first === keys.length) {
      line = line.slice(first);
      first = 0;
    }
    return Promise.resolve(key);
  };
  return {
    async run(count) {
      for (let at = 0; at < count; at++) {
        const key = await get();
        working.delete(key);
        add(key);
      }
      expectCount(line.length - first, keys.length);
    },
  };
}

async function prepare(contender: string, shape: Shape, settings: Settings): Promise<Prepared> {
  const { warmMs, roundMs } = settings;
  if (contender === GO_QUEUE.name) {
    return prepareGoQueue({ what: shape.what === ADDS ? 'adds' : 'pairs', keys: numberOf(shape, 'keys') }, settings);
  }
  const task = (contender === WATCHMUX.name ? ours : sets)(shape.what, keysOf(numberOf(shape, 'keys')));
  const run = async (count: number): Promise<number> => {
    const before = process.cpuUsage();
    await task.run(count);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1e6;
  };
  const cold = warmingUp(warmMs);
  let seconds: number;
  let count = 10_000;
  do {
    seconds = await run(count);
    if (seconds < 0.01) count *= 2;
  } while (seconds === 0 || cold());
  const perRound = Math.max(count, Math.round((count / seconds) * (roundMs / 1000)));
  return { round: async () => [perRound / (await run(perRound)) / 1e6] };
}

/**
 * The work queue: adds that are folded into others, and the way of a key from `get` to `done` and back. Per second of processor time,
 * as machines are busy.
 */
export const queue: Workload = {
  name: 'workqueue',
  about: 'adds of keys that are queued already, and pairs of get and done, per second of processor time',
  reference: SETS.name,
  shapes: () => [
    { what: ADDS, keys: 10_000 },
    { what: 'get, done and add', keys: 10_000 },
  ],
  figures: () => [{ shape: {}, unit: 'million/s of processor time', better: 'higher' }],
  entries: () => [WATCHMUX, SETS, GO_QUEUE],
  prepare,
};
