// The size of a queue, which the hub limits, equals that of the events that are then read, under every policy.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { BroadcastWatch } from '../../src/broadcast/broadcast-watch.ts';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { OVERFLOWS } from '../../src/watch/overflow.ts';
import { runs } from '../runs.ts';

interface Sized {
  readonly metadata: { readonly name: string };
  readonly bytes: number;
}
type Event = WatchEvent<'MODIFIED', Sized>;

const action = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant('publish' as const), name: fc.nat({ max: 3 }), bytes: fc.nat({ max: 99 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('read' as const, 'batch' as const, 'measure' as const) }) },
);

const settings = {
  capacity: fc.nat({ max: 40 }),
  filtered: fc.boolean(),
  topics: fc.constantFrom(undefined, ['0', '1']),
  replay: fc.constantFrom(0, 5),
  gaps: fc.boolean(),
};

test.each(OVERFLOWS)('under %s', (overflow) => {
  const run = (actions: readonly (typeof action extends fc.Arbitrary<infer A> ? A : never)[], own: Settings): void => {
    const { capacity, filtered, topics, replay, gaps } = own;
    const broadcaster = new Broadcaster<Event>({ incoming: 0, topicsOf: ({ object }) => object.metadata.name, replay });
    const filter = filtered ? ({ object }: Event): boolean => object.bytes % 2 === 0 : undefined;
    const onGap = gaps ? (): void => {} : undefined;
    const watch = broadcaster.watch({ capacity, overflow, filter, topics, onGap }) as BroadcastWatch<Event>;
    const measure = (): number => watch.sizeOfQueue(({ object }) => object.bytes);
    for (const one of actions) {
      if (one.kind === 'publish') {
        const { name, bytes } = one;
        broadcaster.tryPublish({ type: 'MODIFIED', object: { metadata: { name: `${name}` }, bytes } });
      } else if (one.kind === 'read') watch.tryNext();
      else if (one.kind === 'batch') watch.tryBatch();
      else measure();
    }
    const size = measure();
    expect(measure()).toBe(size);
    let rest = 0;
    for (let event = watch.tryNext(); event !== undefined; event = watch.tryNext()) rest += event.object.bytes ?? 0;
    expect(size).toBe(rest);
    expect(measure()).toBe(0);
  };
  fc.assert(fc.property(fc.array(action, { maxLength: 120 }), fc.record(settings), run), { numRuns: runs(300) });
});

type Settings = { readonly [K in keyof typeof settings]: (typeof settings)[K] extends fc.Arbitrary<infer T> ? T : never };
