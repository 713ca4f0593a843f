import { Broadcaster, type Overflow } from '../src/broadcast/broadcaster.ts';
import type { Watch } from '../src/watch/watch.ts';
import { expectHeld, expectNumbers } from './answers.ts';
import type { Hub, Tick } from './contender.ts';
import { contenderOf } from './contenders.ts';
import { collectGarbage } from './heap.ts';
import { median } from './stats.ts';
import type { Entry, Prepared, Settings, Shape, Workload } from './workload.ts';

const LAGGARDS: readonly number[] = [1, 100, 10_000];
const CAPACITY = 100;
/** `coalesce` folds by key. There are as many keys as a queue holds, so that no watcher is cut. */
const KEYS = 100;
const SLICES = 9;

const POLICIES: readonly Overflow[] = ['drop-newest', 'drop-oldest', 'disconnect', 'coalesce'];
const OURS = POLICIES.map((overflow): Entry & { overflow: Overflow } => ({
  name: `watchmux ${overflow}`,
  queue: 'bounded',
  overflow,
}));
const OTHERS: readonly Entry[] = [
  { name: 'queue per watcher', queue: 'bounded' },
  { name: 'Node events.on', queue: 'unbounded' },
  { name: 'writable-consumable-stream', queue: 'unbounded' },
];

/** A publisher with open watchers that nobody reads. */
interface Lagged {
  publish(event: Tick): void;
  readonly held: readonly unknown[];
  /** Throws if the first watcher does not hold the due events, or has not counted its losses. */
  expect(due: readonly number[], lost: number): Promise<void> | void;
  close(): unknown;
}

function ours(overflow: Overflow, laggards: number): Lagged {
  const broadcaster = new Broadcaster<Tick>({ capacity: CAPACITY, overflow, keyOf: ({ object }) => String(object % KEYS) });
  const held = Array.from({ length: laggards }, () => broadcaster.watch());
  return {
    publish: (event) => void broadcaster.tryPublish(event),
    held,
    expect(due, lost) {
      const watch = held[0] as Watch<Tick>;
      const { dropped } = watch;
      const numbers: number[] = [];
      for (let event = watch.tryNext(); event !== undefined; event = watch.tryNext())
        if (event.type === 'TICK') numbers.push(event.object);
      expectNumbers(numbers, due);
      if (dropped !== lost) throw new Error(`wrong answer: ${dropped} events counted as lost, and ${lost} are`);
    },
    close: () => broadcaster.shutdown(),
  };
}

function theirs(hub: Hub, laggards: number): Lagged {
  const held = Array.from({ length: laggards }, () => hub.open?.());
  return { publish: hub.publish, held, expect: (due) => expectHeld(hub, held[0], due), close: () => hub.close() };
}

async function start(contender: string, laggards: number): Promise<Lagged> {
  const own = OURS.find(({ name }) => name === contender);
  if (own !== undefined) return ours(own.overflow, laggards);
  return theirs(await contenderOf(contender).start({ capacity: CAPACITY }), laggards);
}

function secondsFor({ publish }: Lagged, events: number): number {
  const began = performance.now();
  for (let object = 0; object < events; object++) publish({ type: 'TICK', object });
  return (performance.now() - began) / 1000;
}

/** An unbounded queue grows with every event. It is replaced before it takes gigabytes. */
const MOST_QUEUED = 2_000_000;

async function prepareFull(contender: string, { roundMs }: Settings): Promise<Prepared> {
  const unbounded = OTHERS.some(({ name, queue }) => name === contender && queue === 'unbounded');
  const lagged = new Map<number, Lagged>();
  const events = new Map<number, number>();
  for (const laggards of LAGGARDS) {
    const each = await start(contender, laggards);
    secondsFor(each, unbounded ? 50 : 4 * CAPACITY);
    const sample = unbounded ? 20 : 1_000;
    let seconds = secondsFor(each, sample);
    for (let i = 0; i < (unbounded ? 1 : 20); i++) seconds = Math.min(seconds, secondsFor(each, sample));
    const most = unbounded ? MOST_QUEUED / laggards / SLICES : 200_000;
    events.set(laggards, Math.max(10, Math.min(most, Math.round(((sample / seconds) * roundMs) / 1000 / SLICES))));
    lagged.set(laggards, each);
  }
  const round = async (): Promise<number[]> => {
    if (unbounded) {
      for (const [laggards, each] of lagged) {
        await each.close();
        lagged.set(laggards, await start(contender, laggards));
      }
    }
    const times = new Map(LAGGARDS.map((laggards): [number, number[]] => [laggards, []]));
    await collectGarbage();
    // In small alternating slices, so that a disturbance affects all numbers of laggards.
    for (let slice = 0; slice < SLICES; slice++) {
      for (const [laggards, each] of lagged) {
        const count = Math.floor(events.get(laggards) as number);
        times.get(laggards)?.push((secondsFor(each, count) / count) * 1e9);
      }
    }
    return LAGGARDS.map((laggards) => median(times.get(laggards) as number[]));
  };
  await round();
  return { round };
}

const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

/** After more events than a queue holds, a laggard has what its policy leaves. */
async function expectPolicy(contender: string): Promise<void> {
  const events = 4 * CAPACITY + 7;
  const lagged = await start(contender, 3);
  secondsFor(lagged, events);
  const isUnbounded = OTHERS.some(({ name, queue }) => name === contender && queue === 'unbounded');
  if (isUnbounded) await lagged.expect(range(0, events), 0);
  else if (contender === 'watchmux drop-oldest') await lagged.expect(range(events - CAPACITY, events), events - CAPACITY);
  else if (contender === 'watchmux coalesce')
    // The last event of each key, in the order of the keys.
    await lagged.expect([...range(4 * KEYS, events), ...range(events - KEYS, 4 * KEYS)], events - KEYS);
  else await lagged.expect(range(0, CAPACITY), events - CAPACITY);
  await lagged.close();
}

const FALLING = 256;

async function prepareFalling(contender: string): Promise<Prepared> {
  const round = async (): Promise<number[]> => {
    const values: number[] = [];
    for (const laggards of LAGGARDS) {
      // The fewer there are, the more repetitions, because a single time is short.
      const times: number[] = [];
      for (let i = 0; i < Math.max(1, Math.min(50, 10_000 / laggards)); i++) {
        const each = await start(contender, laggards);
        if (laggards > 100) await collectGarbage();
        times.push((secondsFor(each, FALLING) / FALLING) * 1e9);
        await each.close();
      }
      values.push(median(times));
    }
    return values;
  };
  await round();
  return { round };
}

/** Nobody reads. Publishing must not cost more with many laggards, or their backlog would be everyone's problem. */
export const laggards: Workload = {
  name: 'laggards',
  about: 'cost of publishing while 1, 100 and 10,000 watchers lag, for each policy: full ones, and while they fill',
  reference: 'queue per watcher',
  shapes: () => [{ are: 'full' }, { are: 'filling' }],
  figures: () => LAGGARDS.map((some) => ({ shape: { laggards: some }, unit: 'ns/publish', better: 'lower' })),
  // `events.on` would take seconds per figure while it fills.
  entries: ({ are }) => [...OURS, ...OTHERS].filter(({ name }) => are === 'full' || name !== 'Node events.on'),
  async prepare(contender: string, shape: Shape, settings: Settings) {
    await expectPolicy(contender);
    return shape.are === 'full' ? prepareFull(contender, settings) : prepareFalling(contender);
  },
};
