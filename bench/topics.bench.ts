import { setImmediate } from 'node:timers/promises';
import { Broadcaster } from '../src/broadcast/broadcaster.ts';
import type { Watch } from '../src/watch/watch.ts';
import { heapBytes } from './heap.ts';
import { Audience, PER_TOPIC, type Told, topicsOf } from './topics/audience.ts';
import { ALONE, READINGS, type TopicContender, topicContenders } from './topics/contenders.ts';
import {
  type Entry,
  LeftOut,
  numberOf,
  type Prepared,
  type Settings,
  type Shape,
  type Wanted,
  type Workload,
} from './workload.ts';

const MANY = 10_000;

function shapesOf({ watchers, burst = [1], quick }: Wanted): Shape[] {
  const sizes = watchers ?? (quick ? [1_000] : [1_000, MANY]);
  const traffic = (quick ? ['one topic'] : ['one topic', 'all topics']).flatMap((into) =>
    sizes.flatMap((some) => burst.flatMap((each) => READINGS.map((read) => ({ watchers: some, into, burst: each, read })))),
  );
  return [...traffic, { watchers: MANY, are: 'idle' }];
}

async function prepareTraffic(
  { alone, topicsEach = 1, start }: TopicContender,
  shape: Shape,
  settings: Settings,
): Promise<Prepared> {
  const burst = numberOf(shape, 'burst');
  const watchers = alone ? PER_TOPIC : numberOf(shape, 'watchers');
  const into = shape.into === 'one topic' ? 'one topic' : 'all topics';
  const hub = start();
  const audience = new Audience(hub, { watchers, topicsEach, burst, into });
  const oneMs = (await audience.run(1)) / 1_000;
  if (oneMs > settings.tooSlowMs) throw new LeftOut(`one burst takes ${Math.round(oneMs)} ms`);
  const bursts = await audience.warmUp(settings);
  return {
    round: async () => [(await audience.run(bursts)) / (bursts * burst)],
    end: () => hub.close(),
  };
}

const IDLE = [
  { name: 'watchmux topics', queue: 'bounded', oneTopic: true },
  { name: 'watchmux, no topics', queue: 'bounded', oneTopic: false },
] as const satisfies readonly (Entry & { oneTopic: boolean })[];

/** Returns the bytes per watcher: after it was opened, and after it has read an event. */
async function idleBytes(watchers: number, oneTopic: boolean): Promise<number[]> {
  const broadcaster = new Broadcaster<Told>(oneTopic ? { topicsOf: ({ object }) => object.topic } : {});
  const wanted = topicsOf({ watchers, topicsEach: 1 });
  const held: Watch<Told>[] = new Array(watchers).fill(undefined);
  const before = await heapBytes();
  for (let at = 0; at < watchers; at++) held[at] = broadcaster.watch({ topics: oneTopic ? wanted[at] : undefined });
  const opened = (await heapBytes()) - before;
  const topics = oneTopic ? new Set(wanted.flat()) : ['topic 0'];
  for (const topic of topics) broadcaster.tryPublish({ type: 'TOLD', object: { topic, number: 0 } });
  for (const [at, watch] of held.entries()) {
    const [first, second] = [watch.tryNext(), watch.tryNext()];
    if (first === undefined || second !== undefined || (oneTopic && first.object.topic !== wanted[at]?.[0]))
      throw new Error(`wrong answer: watcher ${at} has not got the one event of its topic`);
  }
  await setImmediate();
  const read = (await heapBytes()) - before;
  await broadcaster.shutdown();
  return [opened / watchers, read / watchers];
}

async function prepareIdle(contender: string, shape: Shape): Promise<Prepared> {
  const watchers = numberOf(shape, 'watchers');
  const entry = IDLE.find(({ name }) => name === contender);
  if (entry === undefined) throw new Error(`there is no contender "${contender}"`);
  // The first watchers load code and create object shapes, which stay.
  await idleBytes(watchers, entry.oneTopic);
  return { round: () => idleBytes(watchers, entry.oneTopic) };
}

/**
 * Many watchers, ten per topic. An event of a topic should cost what it costs in a broadcaster of the ten who want it, however many
 * there are for other topics.
 */
export const topics: Workload = {
  name: 'topics',
  about: 'cost of an event for 10 of 1,000 and 10,000 watchers, by topic and by filter; memory of idle ones',
  reference: ALONE,
  shapes: shapesOf,
  figures: ({ are }) =>
    are === 'idle'
      ? [
          { shape: { of: 'opened' }, unit: 'bytes each', better: 'lower' },
          { shape: { of: 'read once' }, unit: 'bytes each', better: 'lower' },
        ]
      : [{ shape: {}, unit: 'microseconds of processor time per event', better: 'lower' }],
  entries: (shape) => (shape.are === 'idle' ? IDLE : topicContenders(shape)),
  async prepare(contender, shape, settings) {
    if (shape.are === 'idle') return prepareIdle(contender, shape);
    const found = topicContenders(shape).find(({ name }) => name === contender);
    if (found === undefined) throw new Error(`there is no contender "${contender}"`);
    return prepareTraffic(found, shape, settings);
  },
};
