import { WorkQueue } from '../src/workqueue/index.ts';
import { warmingUp } from './warm.ts';
import { type Entry, numberOf, type Prepared, type Settings, type Shape, type Workload } from './workload.ts';

/** What a contender does `count` times. Throws for a wrong answer. */
interface Task {
  run(count: number): Promise<void> | void;
}

const WATCHMUX: Entry = { name: 'watchmux', queue: 'bounded' };
/** The control: the two sets and the array of every description of such a queue, without delays, ends, or anybody who waits. */
const SETS: Entry = { name: 'two sets and an array', queue: 'bounded' };

const keysOf = (count: number): string[] => Array.from({ length: count }, (_, at) => `namespace-${at % 10}/name-${at}`);

function expectCount(seen: number, due: number): void {
  if (seen !== due) throw new Error(`wrong answer: ${seen} keys, and ${due} are due`);
}

function ours(what: unknown, keys: readonly string[]): Task {
  const queue = new WorkQueue<string>();
  for (const key of keys) queue.add(key);
  if (what === 'adds of queued keys') {
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
  return {
    run(count) {
      if (what === 'adds of queued keys') {
        for (let at = 0; at < count; at++) add(keys[at % keys.length] as string);
        expectCount(line.length, keys.length);
        return;
      }
      let first = 0;
      for (let at = 0; at < count; at++) {
        const key = line[first++] as string;
        dirty.delete(key);
        working.add(key);
        working.delete(key);
        add(key);
        if (first === keys.length) {
          line = line.slice(first);
          first = 0;
        }
      }
      line = line.slice(first);
      expectCount(line.length, keys.length);
    },
  };
}

async function prepare(contender: string, shape: Shape, { warmMs, roundMs }: Settings): Promise<Prepared> {
  const task = (contender === WATCHMUX.name ? ours : sets)(shape.what, keysOf(numberOf(shape, 'keys')));
  const run = async (count: number): Promise<number> => {
    const began = performance.now();
    await task.run(count);
    return (performance.now() - began) / 1000;
  };
  const cold = warmingUp(warmMs);
  let seconds: number;
  let count = 10_000;
  do {
    seconds = await run(count);
    if (seconds < 0.01) count *= 2;
  } while (cold());
  const perRound = Math.max(count, Math.round((count / seconds) * (roundMs / 1000)));
  return { round: async () => [perRound / (await run(perRound)) / 1e6] };
}

/** The work queue: adds that are folded into others, and the way of a key from `get` to `done` and back. */
export const queue: Workload = {
  name: 'workqueue',
  about: 'adds of keys that are queued already, and pairs of get and done, per second',
  reference: SETS.name,
  shapes: () => [
    { what: 'adds of queued keys', keys: 10_000 },
    { what: 'get, done and add', keys: 10_000 },
  ],
  figures: () => [{ shape: {}, unit: 'million/s', better: 'higher' }],
  entries: () => [WATCHMUX, SETS],
  prepare,
};
