import { setImmediate } from 'node:timers/promises';
import { CAPACITY } from './contender.ts';
import { CONTENDERS, contenderOf } from './contenders.ts';
import { OURS } from './contenders-ours.ts';
import { Fleet, WrongAnswer } from './fleet.ts';
import { heapBytes } from './heap.ts';
import { LeftOut, numberOf, type Prepared, type Settings, type Shape, type Workload } from './workload.ts';

const BURST = 64;
/** A round alternates this often between the fleets with and without a stalled watcher, so that noise affects both. */
const SLICES = 16;

/** Contenders whose consumers can stall. */
const STUCK: ReadonlySet<string> = new Set([
  'watchmux for await',
  'watchmux batches()',
  'queue per watcher',
  'Node events.on',
  'emittery',
  'it-pushable',
  'graphql-yoga pub/sub',
  'Effect PubSub',
  'writable-consumable-stream',
]);

/**
 * Publishes twice the capacity of a bounded queue. Leaves out a contender whose publisher then fails. One of ours must not fail,
 * and no watcher may get a wrong event.
 */
export async function fill(fleet: Fleet, isOurs: boolean): Promise<void> {
  let crash: unknown;
  const caught = (error: unknown): void => {
    crash ??= error;
  };
  process.on('uncaughtException', caught);
  try {
    await fleet.run(Math.ceil((2 * CAPACITY) / BURST));
  } catch (error) {
    crash ??= error;
  }
  await setImmediate(); // an error thrown by a listener is rethrown at the end of the turn
  process.off('uncaughtException', caught);
  if (crash !== undefined && (isOurs || crash instanceof WrongAnswer)) throw crash;
  if (crash !== undefined) throw new LeftOut(`one stalled watcher stops all: ${(crash as Error).message}`);
}

async function prepare(contender: string, shape: Shape, settings: Settings): Promise<Prepared> {
  const size = { watchers: numberOf(shape, 'live'), burst: BURST, lateMs: 5_000 };
  const { start } = contenderOf(contender);
  const without = new Fleet(await start(), size);
  const hub = await start();
  const beside = new Fleet(hub, size);
  hub.stall?.();
  await fill(
    beside,
    OURS.some(({ name }) => name === contender),
  );
  await beside.warmUp({ ...settings, warmMs: settings.warmMs / 2 });
  const bursts = Math.max(1, Math.round((await without.warmUp({ ...settings, warmMs: settings.warmMs / 2 })) / SLICES));
  const slices = SLICES / 2;
  return {
    async round() {
      let alone = 0;
      let stalled = 0;
      const before = await heapBytes();
      for (let slice = 0; slice < slices; slice++) {
        // Each goes first equally often.
        if (slice % 2 === 0) alone += await without.run(bursts);
        stalled += await beside.run(bursts);
        if (slice % 2 === 1) alone += await without.run(bursts);
      }
      const grown = (await heapBytes()) - before;
      const events = slices * bursts * BURST;
      return [(events * size.watchers) / stalled / 1e6, alone / stalled, Math.max(0, grown) / events];
    },
    end: () => hub.close(),
  };
}

/** One consumer never finishes an event, and the others continue to read. How does that affect them, and what does it cost? */
export const stalled: Workload = {
  name: 'stalled',
  about: 'one stalled watcher beside 10 and 100 live ones: their throughput, with against without it, and memory',
  reference: 'Node events.on',
  shapes: ({ watchers = [10, 100] }) => watchers.map((live) => ({ live, burst: BURST })),
  figures: () => [
    { shape: { of: 'live watchers' }, unit: 'million deliveries/s', better: 'higher' },
    { shape: { of: 'live watchers against none stalled' }, unit: 'ratio', better: 'higher' },
    { shape: { of: 'memory' }, unit: 'bytes/event published', better: 'lower' },
  ],
  entries: () => CONTENDERS.filter(({ name }) => STUCK.has(name)),
  prepare,
};
