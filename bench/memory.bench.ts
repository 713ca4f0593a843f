import { setImmediate } from 'node:timers/promises';
import { expectHeld, publish, settle } from './answers.ts';
import { CONTENDERS, contenderOf } from './contenders.ts';
import { heapBytes } from './heap.ts';
import { type Entry, numberOf, type Prepared, type Queue, type Shape, type Workload } from './workload.ts';

/** Events held by a stalled watcher of a bounded queue. */
const CAPACITY = 100;

/** Contenders that call their consumers have only this state. */
const CALLED: ReadonlySet<string> = new Set(['EventEmitter', 'EventTarget', 'mitt', 'RxJS Subject', 'watchmux observe']);
/** Contenders that differ from another row only in their consumer, or whose publisher cannot continue with a stalled watcher. */
const WAITING_ONLY: ReadonlySet<string> = new Set([
  ...CALLED,
  'watchmux batches()',
  'Effect PubSub',
  'Effect PubSub takeAll',
  'graphql-yoga pub/sub',
]);
/** It needs 35 KB per watcher in any state, so once is enough. */
const LARGE = 'Node events.on';
/** Enough watchers for a figure per watcher. */
const SOME = 2_000;
/** From here on, contenders that need kilobytes per watcher are left out. */
const MANY = 100_000;
const SMALL: ReadonlySet<string> = new Set([
  'watchmux for await',
  'watchmux batches()',
  'queue per watcher',
  'EventEmitter',
  'RxJS Subject',
]);

function entriesOf({ state, watchers }: Shape): readonly Entry[] {
  return CONTENDERS.filter(({ name }) => {
    if (name === 'bare loop' || (Number(watchers) >= MANY && !SMALL.has(name))) return false;
    return state === 'waiting' || !(WAITING_ONLY.has(name) || (state === 'unread' && name === LARGE));
  });
}

/** The events that the last watcher holds after the measurement and one more event. */
function dueOf(state: unknown, queue: Queue): number[] {
  if (state === 'unread') return [2 * CAPACITY];
  return Array.from({ length: queue === 'bounded' ? CAPACITY : 2 * CAPACITY + 1 }, (_, number) => number);
}

async function prepare(contender: string, shape: Shape): Promise<Prepared> {
  const watchers = numberOf(shape, 'watchers');
  const { state } = shape;
  const { queue } = contenderOf(contender);
  const measure = async (): Promise<number> => {
    let came = 0;
    const hub = await contenderOf(contender).start({ capacity: CAPACITY });
    const held: unknown[] = new Array(watchers).fill(undefined);
    const before = await heapBytes();
    for (let i = 0; i < watchers; i++) held[i] = state === 'waiting' ? hub.watch(() => void came++) : hub.open?.();
    if (state === 'stalled') {
      for (let object = 0; object < 2 * CAPACITY; object++) {
        hub.publish({ type: 'TICK', object });
        await setImmediate();
      }
    }
    const bytes = (await heapBytes()) - before;
    publish(hub, 2 * CAPACITY);
    if (state === 'waiting') {
      await settle(watchers, () => came);
      if (came !== watchers) throw new Error(`wrong answer: ${came} events for ${watchers} watchers that wait`);
    } else await expectHeld(hub, held.at(-1), dueOf(state, queue));
    held.length = 0;
    await hub.close();
    return bytes;
  };
  if (watchers < MANY) await measure();
  return {
    async round() {
      const bytes = await measure();
      return [bytes / watchers, bytes / 1e6];
    },
  };
}

/** The memory of a watcher: open and not read yet, with a waiting consumer, and stalled and full. */
export const memory: Workload = {
  name: 'memory',
  about: 'memory of 2,000 and 100,000 watchers: not read yet, waiting in a read, stalled and full',
  reference: 'queue per watcher',
  shapes: ({ watchers, quick }) =>
    (watchers ?? (quick ? [SOME] : [SOME, MANY])).flatMap((some) =>
      ['unread', 'waiting', 'stalled'].map((state) => ({ watchers: some, state })),
    ),
  figures: () => [
    { shape: { of: 'each' }, unit: 'bytes', better: 'lower' },
    { shape: { of: 'sum' }, unit: 'MB', better: 'lower' },
  ],
  entries: entriesOf,
  prepare,
};
