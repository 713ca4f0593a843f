import { setImmediate } from 'node:timers/promises';
import type { Take } from './contender.ts';
import { CONTENDERS, contenderOf } from './contenders.ts';
import { prepareGoLatency } from './go.ts';
import { GO } from './go-programs.ts';
import { quantile } from './stats.ts';
import { warmingUp } from './warm.ts';
import { numberOf, type Prepared, type Settings, type Shape, type Workload } from './workload.ts';

const QUANTILES: readonly [string, number][] = [
  ['p50', 0.5],
  ['p99', 0.99],
  ['p99.9', 0.999],
];

/** A figure needs enough samples beyond the highest quantile: 100 watchers get 200,000 from 2,000 events. */
const EVENTS = 2_000;

async function prepare(contender: string, shape: Shape, { warmMs }: Settings): Promise<Prepared> {
  const watchers = numberOf(shape, 'watchers');
  if (contender === GO.name) return prepareGoLatency({ watchers, events: EVENTS });
  const hub = await contenderOf(contender).start();
  const samples = new Float64Array(EVENTS * watchers);
  let count = 0;
  let number = 0;
  let left = 0;
  let published = 0;
  let wrong = 0;
  let taken = (): void => {};
  const consumer = (): Take => (event) => {
    samples[count++] = performance.now() - published;
    if (event.object !== number) wrong++;
    if (--left === 0) taken();
  };
  for (let i = 0; i < watchers; i++) hub.watch(consumer());

  const measure = async (events: number): Promise<void> => {
    count = 0;
    for (let i = 0; i < events; i++) {
      await setImmediate(); // one turn of the event loop per event
      left = watchers;
      number++;
      const event = { type: 'TICK', object: number } as const;
      published = performance.now();
      hub.publish(event);
      hub.flush?.();
      if (left > 0) await new Promise<void>((resolve) => (taken = resolve));
    }
    if (wrong > 0 || count !== events * watchers) {
      throw new Error(`wrong answer: ${wrong} of ${count} deliveries, with ${events * watchers} due`);
    }
  };

  const cold = warmingUp(warmMs);
  do await measure(200);
  while (cold());
  return {
    async round() {
      await measure(EVENTS);
      const sorted = samples.sort();
      return QUANTILES.map(([, share]) => quantile(sorted, share) * 1000);
    },
    end: () => hub.close(),
  };
}

/** The time from just before publishing an event until each consumer has it, with one event at a time. */
export const latency: Workload = {
  name: 'latency',
  about: 'time from publish to each of 100 consumers, one event per turn of the event loop',
  reference: 'Node events.on',
  shapes: ({ watchers = [100] }) => watchers.map((some) => ({ watchers: some })),
  figures: () => QUANTILES.map(([of]) => ({ shape: { of }, unit: 'µs', better: 'lower' })),
  entries: () => [...CONTENDERS, GO],
  prepare,
};
