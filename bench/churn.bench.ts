import { setImmediate } from 'node:timers/promises';
import { expectJoinAndLeave, publish, settle } from './answers.ts';
import type { Hub } from './contender.ts';
import { CONTENDERS, contenderOf } from './contenders.ts';
import { warmingUp } from './warm.ts';
import { LeftOut, numberOf, type Prepared, type Settings, type Shape, type Workload } from './workload.ts';

/** Number of watchers that join and leave before the event loop gets a turn. */
const GROUP = 100;

/** Contenders with queues; yoga subscribes only at the first read. */
const CALLED_OR_ALIKE: ReadonlySet<string> = new Set([
  'watchmux observe',
  'watchmux batches()',
  'Effect PubSub takeAll',
  'graphql-yoga pub/sub',
]);

/** One group joins and leaves, first come, first served. If waiting, each watcher has a consumer with a pending read. */
function pass(hub: Hub, waiting: boolean): void {
  const joined: unknown[] = [];
  for (let i = 0; i < GROUP; i++) joined.push(waiting ? hub.watch(() => {}) : hub.open?.());
  for (const each of joined) hub.leave(each);
}

async function prepare(contender: string, shape: Shape, { warmMs, roundMs, tooSlowMs }: Settings): Promise<Prepared> {
  const hub = await contenderOf(contender).start();
  const waiting = shape.how === 'waiting';
  let came = 0;
  const present = numberOf(shape, 'present');
  for (let i = 0; i < present; i++) hub.watch(() => void came++);
  await expectJoinAndLeave(hub, { group: GROUP, waiting });
  const run = async (groups: number): Promise<number> => {
    await setImmediate();
    const began = performance.now();
    for (let i = 0; i < groups; i++) {
      pass(hub, waiting);
      await setImmediate(); // consumers that were told to end do so here
    }
    return (performance.now() - began) / 1000;
  };
  const cold = warmingUp(warmMs);
  let groups = 1;
  let seconds: number;
  do {
    seconds = await run(groups);
    if (seconds * 1000 > tooSlowMs) throw new LeftOut(`${GROUP} took ${seconds.toFixed(1)} s`);
    if (seconds < 0.01) groups *= 2;
  } while (cold());
  const perRound = Math.max(1, Math.round((groups / seconds) * (roundMs / 1000)));
  return {
    async round() {
      const took = await run(perRound);
      came = 0;
      publish(hub, 2);
      await settle(present, () => came);
      if (came !== present) throw new Error(`wrong answer: ${came} events for ${present} watchers that have stayed`);
      return [(perRound * GROUP) / took / 1e6];
    },
    end: () => hub.close(),
  };
}

/** Watchers join and leave, among none or many others. */
export const churn: Workload = {
  name: 'churn',
  about: 'watchers that join and leave per second, unread or with a read that waits, among 0 and 10,000 others',
  reference: 'Node events.on',
  shapes: () => [0, 10_000].flatMap((present) => ['unread', 'waiting'].map((how) => ({ present, how }))),
  figures: () => [{ shape: {}, unit: 'million joins and leaves/s', better: 'higher' }],
  entries: ({ how }) =>
    CONTENDERS.filter(({ name, queue }) => {
      if (how === 'waiting') return name !== 'bare loop';
      // Called consumers have no such state. The others left out differ from an included row only in their consumer.
      return queue !== 'none' && !CALLED_OR_ALIKE.has(name);
    }),
  prepare,
};
