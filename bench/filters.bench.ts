import { CONTENDERS, contenderOf } from './contenders.ts';
import { Fleet } from './fleet.ts';
import { numberOf, type Workload } from './workload.ts';

/**
 * Each watcher wants one event in N. watchmux calls a filter before an event takes room in a queue. For the others, the consumer
 * checks every event and ignores those that it does not want.
 */
export const filters: Workload = {
  name: 'filters',
  about: 'events looked at per second, by 1,000 watchers of which each wants 1 in 100',
  reference: 'Node events.on',
  shapes: ({ watchers = [1000] }) => watchers.map((some) => ({ watchers: some, oneIn: 100 })),
  figures: () => [{ shape: {}, unit: 'million judgements/s', better: 'higher' }],
  entries: () => CONTENDERS,
  async prepare(contender, shape, settings) {
    const { start, filters: own } = contenderOf(contender);
    const watchers = numberOf(shape, 'watchers');
    const oneIn = numberOf(shape, 'oneIn');
    const hub = await start();
    // So each watcher gets one event of each burst.
    const fleet = new Fleet(hub, { watchers, oneIn, burst: oneIn, filters: own });
    const bursts = await fleet.warmUp(settings);
    return {
      round: async () => [(bursts * oneIn * watchers) / (await fleet.run(bursts)) / 1e6],
      end: () => hub.close(),
    };
  },
};
