// For any schedule of backpressure, everything readable is sent, in order and once, and the counts are right.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Hub } from '../../src/bridge/hub/hub.ts';
import type { HubSession } from '../../src/bridge/hub/hub-session.ts';
import type { Overflow } from '../../src/broadcast/broadcaster.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { OVERFLOWS } from '../../src/watch/overflow.ts';
import { runs } from '../runs.ts';
import { connect, FakeSink } from '../unit/fake-sink.ts';

/** Turns that come when they are told to. */
class Turns {
  private due: (() => void)[] = [];
  readonly next = (callback: () => void): void => void this.due.push(callback);

  take(): void {
    const callbacks = this.due;
    this.due = [];
    for (const callback of callbacks) callback();
  }

  get empty(): boolean {
    return this.due.length === 0;
  }
}

/** All microtasks that are there, and those that they bring. */
const microtasks = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

type Step =
  | { readonly kind: 'publish'; readonly count: number; readonly size: number }
  | { readonly kind: 'stall' | 'resume'; readonly who: number }
  | { readonly kind: 'go'; readonly who: number }
  | { readonly kind: 'join'; readonly overflow: Overflow; readonly filtered: boolean; readonly capacity: number }
  | { readonly kind: 'turn' | 'microtasks' };

const overflow = fc.constantFrom(...OVERFLOWS);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('publish' as const),
      count: fc.integer({ min: 1, max: 9 }),
      size: fc.constantFrom(1, 10, 30_000),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('stall' as const, 'resume' as const), who: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('go' as const), who: fc.nat(5) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('join' as const),
      overflow,
      filtered: fc.boolean(),
      capacity: fc.integer({ min: 1, max: 6 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('turn' as const, 'microtasks' as const) }) },
);

/** Stalls after its next write, as a socket does, and not before. */
class PressedSink extends FakeSink {
  get isPressed(): boolean {
    return this.stalled && this.writes.length > 0;
  }
}

const even = (event: WatchEvent): boolean => ((event.object as { i: number }).i ?? 0) % 2 === 0;

describe('any schedule of backpressure', () => {
  test('leaves nothing readable for a client with room, skips nothing, repeats nothing, and counts correctly', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60 }), async (steps) => {
        const turns = new Turns();
        const hub = new Hub({ epoch: 'e', capacity: 4, overflow: 'disconnect', nextTurn: turns.next });
        const clients: {
          sink: PressedSink & { session: FakeSink['session'] };
          filtered: boolean;
          policy: Overflow;
          since: number;
        }[] = [];
        let count = 0;
        const join = (policy: Overflow, filtered: boolean, capacity: number): void => {
          const options = { overflow: policy, capacity, ...(filtered ? { filter: even } : {}) };
          clients.push({ sink: connect(hub, new PressedSink(), { options }), filtered, policy, since: count });
        };
        join('disconnect', false, 4);
        join('disconnect', true, 4);
        for (const each of steps) {
          if (each.kind === 'publish') {
            for (let i = 0; i < each.count; i++) {
              const object = { i: count, metadata: { name: `n${count % 3}` }, filler: 'x'.repeat(each.size) };
              if (hub.tryPublish({ type: 'MODIFIED', object })) count++;
            }
          } else if (each.kind === 'join') join(each.overflow, each.filtered, each.capacity);
          else if (each.kind === 'turn') turns.take();
          else if (each.kind === 'microtasks') await microtasks();
          else if (each.kind === 'stall' || each.kind === 'resume' || each.kind === 'go') {
            const sink = clients[each.who % clients.length]?.sink;
            if (each.kind === 'stall') sink?.stall();
            else if (each.kind === 'resume') sink?.resume();
            else sink?.session?.gone();
          }
        }
        // Everything that is due happens; nobody is asked again.
        do {
          await microtasks();
          turns.take();
        } while (!turns.empty);
        await microtasks();
        for (const { sink, filtered, policy, since } of clients) {
          const { session } = sink;
          const { delivered, dropped, queued } = (session as HubSession).stats();
          if (!sink.isPressed && !session?.over) expect(queued).toBe(0);
          const of = filtered ? Array.from({ length: count }, (_, i) => i).filter((i) => i >= since && i % 2 === 0) : [];
          const accepted = filtered ? of.length : count - since;
          // Who has gone is not asked about what came later; nor is one that was cut, once that was read.
          const mayBeCut = (policy === 'disconnect' || policy === 'coalesce') && dropped > 0;
          const sum = delivered + dropped + queued;
          if (session?.over || mayBeCut) expect(sum).toBeLessThanOrEqual(accepted);
          else expect(sum).toBe(accepted);
          const got = sink.events.filter(({ type }) => type !== 'ERROR').map(({ object }) => (object as { i: number }).i);
          if (policy !== 'coalesce') expect(got).toEqual([...new Set(got)].sort((a, b) => a - b));
          expect(new Set(got).size).toBe(got.length);
          if (policy === 'wait' && !session?.over && !sink.isPressed) expect(got).toHaveLength(accepted);
          if (policy === 'disconnect' || policy === 'wait') {
            const expected = filtered ? of : Array.from({ length: count - since }, (_, i) => since + i);
            expect(got).toEqual(expected.slice(0, got.length));
          }
        }
      }),
      { numRuns: runs(300) },
    );
  });
});
