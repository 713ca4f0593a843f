// Every contender delivers every event to every watcher, once and in order, and the fleet detects one that does not.
import { setMaxListeners } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { Hub, Take, Tick } from './contender.ts';
import { CONTENDERS, contenderOf } from './contenders.ts';
import { Fleet } from './fleet.ts';

setMaxListeners(0);
afterEach(() => void vi.useRealTimers());

function tick(object: number): Tick {
  return { type: 'TICK', object };
}

async function publish(hub: Hub, numbers: readonly number[]): Promise<void> {
  for (const number of numbers) hub.publish(tick(number));
  hub.flush?.();
  // Some need several turns of the event loop for a burst.
  for (let turn = 0; turn < 20; turn++) await setImmediate();
}

const upTo = (end: number): number[] => Array.from({ length: end }, (_, number) => number);

describe.each(CONTENDERS)('$name', ({ name, queue, filters, start }) => {
  test.each([
    [1, 1],
    [1, 64],
    [7, 1],
    [7, 16],
    [7, 512],
  ])('%i watchers get bursts of %i', async (watchers, burst) => {
    const hub = await start();
    const fleet = new Fleet(hub, { watchers, burst });
    expect(await fleet.run(3)).toBeGreaterThan(0);
    expect(await fleet.run(5)).toBeGreaterThan(0);
    await hub.close();
  });

  test('each watcher gets the events that it wants', async () => {
    const hub = await start();
    const fleet = new Fleet(hub, { watchers: 20, burst: 10, oneIn: 10, filters });
    expect(await fleet.run(4)).toBeGreaterThan(0);
    await hub.close();
  });

  test('a watcher that leaves gets nothing more, and the others get everything', async () => {
    const hub = await start();
    const seen: number[][] = [[], []];
    const [leaver] = seen.map((numbers) => hub.watch((event) => void numbers.push(event.object)));
    await publish(hub, [0, 1, 2]);
    await hub.leave(leaver);
    await publish(hub, [3, 4]);
    expect(seen).toEqual([
      [0, 1, 2],
      [0, 1, 2, 3, 4],
    ]);
    await hub.close();
  });

  test('a watcher that is open gets what was published before it is read', async () => {
    const hub = await start();
    if (hub.open === undefined || hub.read === undefined) {
      expect(queue === 'none' || ['watchmux observe', 'graphql-yoga pub/sub'].includes(name)).toBe(true);
      return;
    }
    const watcher = hub.open();
    await publish(hub, upTo(100));
    const seen: number[] = [];
    hub.read(watcher, (event) => void seen.push(event.object));
    for (let turn = 0; turn < 2_000 && seen.length < 100; turn++) await setImmediate();
    expect(seen).toEqual(upTo(100));
    await hub.close();
  });

  test('a stalled watcher affects nobody while there is room', async () => {
    const hub = await start();
    if (hub.stall === undefined) {
      expect(queue === 'none' || name === 'watchmux observe').toBe(true);
      return;
    }
    hub.stall();
    const fleet = new Fleet(hub, { watchers: 3, burst: 64 });
    expect(await fleet.run(8)).toBeGreaterThan(0);
    await hub.close();
  });
});

describe('a full queue', () => {
  test.each(['watchmux for await', 'watchmux batches()', 'queue per watcher'])('%s continues', async (name) => {
    const hub = await contenderOf(name).start();
    hub.stall?.();
    const fleet = new Fleet(hub, { watchers: 3, burst: 64 });
    expect(await fleet.run(40)).toBeGreaterThan(0);
    await hub.close();
  });

  test.each(['Effect PubSub', 'Effect PubSub takeAll'])('%s makes the publisher wait for the slowest', async (name) => {
    const hub = await contenderOf(name).start();
    hub.stall?.();
    const fleet = new Fleet(hub, { watchers: 3, burst: 64 });
    await expect(fleet.run(40)).rejects.toThrow('the publisher must wait');
    await hub.close();
  });
});

describe('a fleet refuses', () => {
  /** A hub whose consumers get what `spoil` makes of each event. */
  function spoilt(spoil: (event: Tick) => readonly Tick[]): Hub {
    const takes: Take[] = [];
    return {
      publish(event) {
        for (const each of spoil(event)) for (const take of takes) take(each);
      },
      watch: (take) => takes.push(take),
      leave: () => {},
      close: () => {},
    };
  }

  test.each([
    ['an event that is repeated', (event: Tick) => (event.object === 3 ? [event, event] : [event])],
    ['events in a wrong order', (event: Tick) => (event.object === 3 ? [tick(4), event] : event.object === 4 ? [] : [event])],
    ['an event that is lost', (event: Tick) => (event.object === 2 ? [] : [event])],
  ])('%s', async (_, spoil) => {
    await expect(new Fleet(spoilt(spoil), { watchers: 2, burst: 4 }).run(2)).rejects.toThrow('wrong answer');
  });

  test('to wait forever', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const running = new Fleet(
      spoilt(() => []),
      { watchers: 2, burst: 4, lateMs: 1_000 },
    ).run(2);
    const refused = expect(running).rejects.toThrow('2 watchers do not have event 3 yet');
    await vi.advanceTimersByTimeAsync(1_000);
    await refused;
  });
});
