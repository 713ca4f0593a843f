import fc from 'fast-check';
import { expect, test } from 'vitest';
import { coreOf, Hub } from '../../src/bridge/hub/hub.ts';
import type { Start } from '../../src/bridge/hub/hub-log.ts';
import type { ParsedQuery } from '../../src/bridge/hub/query.ts';
import { Recoveries } from '../../src/cli/server/recoveries.ts';
import { runs } from '../runs.ts';
import { added, FakeSink, turn } from './fake-sink.ts';

interface Rig {
  readonly hub: Hub;
  readonly recoveries: Recoveries;
  readonly publish: (count: number) => Promise<void>;
  /** Connects from an address; with a number, after this position. */
  readonly connect: (address: string, after?: number) => FakeSink;
}

function rig(): Rig {
  const hub = new Hub({ epoch: 'e', capacity: 2 });
  const recoveries = new Recoveries(() => hub.stats().accepted);
  hub.observe(recoveries);
  const core = coreOf(hub);
  return {
    hub,
    recoveries,
    publish: async (count) => {
      for (let i = 0; i < count; i++) await hub.publish(added(i));
      await turn();
    },
    connect: (address, after) => {
      const sink = new FakeSink();
      const asked: ParsedQuery = after === undefined ? {} : { resourceVersion: `e.${after}` };
      core.open(sink, { transport: 'http', address, start: core.start(asked) as Start, asked });
      return sink;
    },
  };
}

/** Stalls a client until its queue has overflowed, and lets it take the rest and the ERROR. Returns its last position. */
async function cut({ publish }: Rig, sink: FakeSink): Promise<number> {
  sink.stall();
  await publish(10);
  sink.resume();
  await turn();
  return sink.events.filter(({ type }) => type === 'ADDED').length;
}

test('a client that is cut and resumes has recovered what did not fit', async () => {
  const own = rig();
  const sink = own.connect('a');
  const at = await cut(own, sink);
  sink.session?.gone();
  const { dropped } = own.hub.stats().total;
  expect(dropped).toBeGreaterThan(0);
  expect(own.recoveries.total).toBe(0);
  const next = own.connect('a', at);
  expect(own.recoveries.total).toBe(dropped);
  expect(own.recoveries.of(next.session?.stats().id ?? 0)).toBe(dropped);
  // Once only.
  own.connect('a', at);
  expect(own.recoveries.total).toBe(dropped);
});

test('so has one whose next connection is seen before the end of the earlier one', async () => {
  const own = rig();
  const sink = own.connect('a');
  sink.stall();
  await own.publish(10);
  own.connect('a', 0);
  expect(own.recoveries.total).toBe(0);
  sink.session?.gone();
  expect(own.recoveries.total).toBe(own.hub.stats().total.dropped);
  expect(own.recoveries.total).toBeGreaterThan(0);
});

test('not so: a client of another address, one without a version, and one that resumes after what was dropped', async () => {
  const own = rig();
  const sink = own.connect('a');
  const at = await cut(own, sink);
  sink.session?.gone();
  own.connect('b', at);
  own.connect('a');
  own.connect('a', 10);
  expect(own.recoveries.total).toBe(0);
});

test('never more is recovered than was dropped, whatever clients do', async () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant('publish' as const), count: fc.integer({ min: 1, max: 6 }) }),
    fc.record({ do: fc.constant('connect' as const), address: fc.constantFrom('a', 'b'), after: fc.option(fc.nat(20)) }),
    fc.record({ do: fc.constantFrom('stall' as const, 'relieve' as const, 'leave' as const), at: fc.nat(5) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const own = rig();
      let sinks: FakeSink[] = [];
      for (const each of steps) {
        if (each.do === 'publish') await own.publish(each.count);
        else if (each.do === 'connect') {
          const after = each.after === null ? undefined : Math.min(each.after, own.hub.stats().accepted);
          sinks.push(own.connect(each.address, after));
        } else {
          const sink = sinks[each.at];
          if (each.do === 'stall') sink?.stall();
          else if (each.do === 'relieve') sink?.resume();
          else {
            sink?.session?.gone();
            sinks = sinks.filter((one) => one !== sink);
          }
        }
        expect(own.recoveries.total).toBeLessThanOrEqual(own.hub.stats().total.dropped);
      }
    }),
    { numRuns: runs(200) },
  );
});
