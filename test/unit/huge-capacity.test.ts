// Capacities beyond 32 bits: such a queue is never full.
import { describe, expect, test } from 'vitest';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { OVERFLOWS } from '../../src/watch/overflow.ts';

const added = (number: number): WatchEvent => ({ type: 'ADDED', object: { metadata: { name: `n${number}` } } });
const CAPACITIES = [2 ** 31 - 1, 2 ** 31, 2 ** 32, 2 ** 32 + 64, 2 ** 40, Number.MAX_SAFE_INTEGER];

describe.each(OVERFLOWS)('with %s', (overflow) => {
  test.each(CAPACITIES)('and a capacity of %d, a watcher that lags gets everything', (capacity) => {
    const broadcaster = new Broadcaster({ capacity, overflow });
    const watches = [broadcaster.watch(), broadcaster.watch({ filter: () => true })];
    const sent = Array.from({ length: 2_000 }, (_, i) => added(i));
    for (const event of sent) expect(broadcaster.tryPublish(event)).toBe(true);
    for (const watch of watches) {
      const got: WatchEvent[] = [];
      for (let event = watch.tryNext(); event !== undefined; event = watch.tryNext()) got.push(event);
      expect(got).toEqual(sent);
    }
    expect(watches.map(({ dropped }) => dropped)).toEqual([0, 0]);
  });
});
