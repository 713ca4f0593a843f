// Clients that read beside others that do not, and that may hold the publisher back: whatever those do, whoever reads gets everything,
// and no queue passes its limit in bytes.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Hub } from '../../src/bridge/hub/hub.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { OVERFLOWS } from '../../src/watch/overflow.ts';
import { runs } from '../runs.ts';
import { connect, turn } from '../unit/fake-sink.ts';

interface Thing {
  readonly metadata: { readonly name: string };
  readonly n: number;
  readonly filler: string;
}

const LIMIT = 3_000;
/** More than an event has besides its filler. */
const FRAME = 120;

const clients = fc.record({
  reads: fc.boolean(),
  overflow: fc.constantFrom(undefined, ...OVERFLOWS),
  capacity: fc.constantFrom(undefined, 1, 3, 50),
  maxQueuedBytes: fc.constantFrom(LIMIT, 1_500),
  topics: fc.constantFrom<readonly string[] | undefined>(undefined, ['even'], ['odd', 'even']),
  hasFilter: fc.boolean(),
});
type Plan = typeof clients extends fc.Arbitrary<infer T> ? T : never;

const who = fc.nat(2);
const steps = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({ op: fc.constant('publish' as const), count: fc.integer({ min: 1, max: 25 }), bytes: fc.nat(60) }),
    },
    { weight: 4, arbitrary: fc.record({ op: fc.constantFrom('stall' as const, 'stall' as const, 'resume' as const), who }) },
    { weight: 1, arbitrary: fc.record({ op: fc.constant('gone' as const), who }) },
    { weight: 4, arbitrary: fc.record({ op: fc.constant('turn' as const) }) },
    { weight: 1, arbitrary: fc.record({ op: fc.constant('pass' as const) }) },
  ),
  { maxLength: 30, size: 'max' },
);
const hubs = fc.record({
  overflow: fc.constantFrom(...OVERFLOWS, 'wait' as const, 'wait' as const),
  capacity: fc.constantFrom(1, 200, 200),
  flushIntervalMs: fc.constantFrom(0, 250),
  hasTopics: fc.boolean(),
});

const topicOf = ({ object }: WatchEvent): string => ((object as Thing).n % 2 === 0 ? 'even' : 'odd');
const isSeen = ({ object }: WatchEvent): boolean => (object as Thing).n % 3 > 0;

test('a client that reads gets everything, whatever others do, and a queue has no more bytes than it may', async () => {
  await fc.assert(
    fc.asyncProperty(
      hubs,
      fc.array(clients, { minLength: 1, maxLength: 3 }),
      steps,
      async ({ hasTopics, ...options }, plans, all) => {
        const clock = new FakeClock();
        const topicsOf = hasTopics ? topicOf : undefined;
        const hub = new Hub({ ...options, topicsOf, clock, maxQueuedBytes: LIMIT });
        const join = ({ overflow, capacity, maxQueuedBytes, topics, hasFilter }: Plan) => {
          const own = { overflow, capacity, maxQueuedBytes, filter: hasFilter ? isSeen : undefined };
          return connect(hub, undefined, { options: { ...own, topics: hasTopics ? topics : undefined } });
        };
        const sinks = plans.map(join);
        const published: WatchEvent<'MODIFIED', Thing>[] = [];
        const pending: Promise<void>[] = [];
        let largest = 0;
        const faults: string[] = [];
        const publish = (bytes: number): void => {
          const n = published.length;
          const object = { metadata: { name: `${n}` }, n, filler: 'x'.repeat(bytes) };
          largest = Math.max(largest, bytes + FRAME);
          published.push({ type: 'MODIFIED', object });
          pending.push(hub.publish({ type: 'MODIFIED', object }));
          sinks.forEach(({ session }, at) => {
            const { maxQueuedBytes: limit } = plans[at] as Plan;
            const { queuedBytes } = session;
            if (!plans[at]?.reads && !session.over && queuedBytes > (limit * 17) / 16 + largest)
              faults.push(`${queuedBytes} of ${limit}`);
          });
        };
        for (const step of all) {
          const at = 'who' in step ? step.who % sinks.length : 0;
          if (step.op === 'publish') for (let count = 0; count < step.count; count++) publish(step.bytes);
          else if (step.op === 'turn') await turn();
          else if (step.op === 'pass') clock.advance(300);
          else if (plans[at]?.reads) continue;
          else if (step.op === 'gone') sinks[at]?.session.gone();
          else sinks[at]?.[step.op]();
        }
        for (const sink of sinks) sink.resume();
        const over = Promise.all(pending)
          .then(() => hub.shutdown())
          .then(() => true);
        while (!(await Promise.race([over, turn()]))) clock.advance(300);
        const isFor = ({ topics, hasFilter }: Plan, event: WatchEvent): boolean =>
          (!hasTopics || !topics || topics.includes(topicOf(event))) && (!hasFilter || isSeen(event));
        plans.forEach((plan, at) => {
          const due = published.filter((event) => isFor(plan, event)).map(({ object }) => object.n);
          if (plan.reads) expect(sinks[at]?.objects.map((object) => (object as Thing).n)).toEqual(due);
        });
        expect({ faults, timers: clock.pending }).toEqual({ faults: [], timers: 0 });
      },
    ),
    { numRuns: runs(300) },
  );
});
