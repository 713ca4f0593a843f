import type { Hub } from './contender.ts';
import { CONTENDERS, contenderOf } from './contenders.ts';
import { collectGarbage } from './heap.ts';
import { warmingUp } from './warm.ts';
import { type Entry, LeftOut, numberOf, type Prepared, type Settings, type Shape, type Workload } from './workload.ts';

const ARRAY: Entry = { name: 'bare loop', queue: 'none' };

/** The contenders that queue events for a watcher that nobody reads yet. */
const QUEUED: ReadonlySet<string> = new Set([
  'watchmux for await',
  'watchmux batches()',
  'queue per watcher',
  'Node events.on',
  'emittery',
  'it-pushable',
  'Effect PubSub',
  'Effect PubSub takeAll',
  'writable-consumable-stream',
]);

/** Publishes for an unread watcher, then lets it be read. Returns the seconds that reading took. */
async function drain(hub: Hub, backlog: number): Promise<number> {
  const { open, read } = hub;
  if (open === undefined || read === undefined) throw new Error('it has no queue');
  const watcher = open();
  for (let object = 0; object < backlog; object++) hub.publish({ type: 'TICK', object });
  let next = 0;
  let wrong = 0;
  await collectGarbage();
  const began = performance.now();
  await new Promise<void>((resolve) => {
    read(watcher, (event) => {
      if (event.object !== next++) wrong++;
      if (next === backlog) resolve();
    });
  });
  const seconds = (performance.now() - began) / 1000;
  if (wrong > 0) throw new Error(`wrong answer: ${wrong} of ${next} events`);
  await hub.close();
  return seconds;
}

/** The control: an array, and a loop. */
function arrayHub(): Hub {
  const events: { type: 'TICK'; object: number }[] = [];
  return {
    publish: (event) => void events.push(event),
    watch: () => undefined,
    leave: () => undefined,
    open: () => undefined,
    read: (_, take) => {
      for (const event of events) take(event);
    },
    close: () => {},
  };
}

async function prepare(contender: string, shape: Shape, { warmMs, tooSlowMs }: Settings): Promise<Prepared> {
  const backlog = numberOf(shape, 'backlog');
  const start = async (): Promise<Hub> =>
    contender === ARRAY.name ? arrayHub() : await contenderOf(contender).start({ capacity: 2 ** Math.ceil(Math.log2(backlog)) });
  // From small to large, because some take longer than in proportion.
  for (const part of [backlog / 8, backlog / 4, backlog / 2]) {
    const seconds = await drain(await start(), part);
    if (seconds * 1000 > tooSlowMs) throw new LeftOut(`the first ${part.toLocaleString('en')} took ${seconds.toFixed(1)} s`);
  }
  const cold = warmingUp(warmMs);
  do await drain(await start(), backlog);
  while (cold());
  return { round: async () => [backlog / (await drain(await start(), backlog)) / 1e6] };
}

/** One watcher has fallen far behind, in a queue that is long enough, and catches up. */
export const backlog: Workload = {
  name: 'backlog',
  about: 'events per second for one reader that catches up on 200,000',
  reference: 'Node events.on',
  shapes: () => [{ backlog: 200_000 }],
  figures: () => [{ shape: {}, unit: 'million events/s', better: 'higher' }],
  entries: () => [ARRAY, ...CONTENDERS.filter(({ name }) => QUEUED.has(name))],
  prepare,
};
