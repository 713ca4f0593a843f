import type { Subscription } from 'rxjs';
import { observe } from '../src/adapters/rxjs.ts';
import { Broadcaster } from '../src/broadcast/broadcaster.ts';
import type { Watch } from '../src/watch/watch.ts';
import { anyHub, CAPACITY, type Contender, consume, getStuck, type Take, type Tick } from './contender.ts';

/** Queues are bounded, and drop the newest event when full. Nothing may be lost in a timed round: a missing number fails it. */
function broadcasterOf(capacity: number): Broadcaster<Tick> {
  return new Broadcaster({ capacity, overflow: 'drop-newest' });
}

/** watchmux, read in one of two ways. */
function read(name: string, reader: (watch: Watch<Tick>, take: Take) => Promise<void>): Contender {
  return {
    name,
    queue: 'bounded',
    filters: true,
    start({ capacity = CAPACITY } = {}) {
      const broadcaster = broadcasterOf(capacity);
      return anyHub<Watch<Tick>>({
        publish: (event) => void broadcaster.tryPublish(event),
        watch(take, wants) {
          const watch = broadcaster.watch({ filter: wants });
          void reader(watch, take);
          return watch;
        },
        open: () => broadcaster.watch(),
        read: (watch, take) => void reader(watch, take),
        leave: (watch) => watch.return(),
        stall() {
          const watch = broadcaster.watch();
          void getStuck(watch);
          return watch;
        },
        close: () => broadcaster.shutdown(),
      });
    },
  };
}

const perEvent: Contender = read('watchmux for await', consume);

const batches: Contender = read('watchmux batches()', async (watch, take) => {
  for await (const batch of watch.batches()) for (const event of batch) take(event);
});

const observed: Contender = {
  name: 'watchmux observe',
  queue: 'bounded',
  filters: true,
  start({ capacity = CAPACITY } = {}) {
    const broadcaster = broadcasterOf(capacity);
    return anyHub<Subscription>({
      publish: (event) => void broadcaster.tryPublish(event),
      watch: (take, wants) => observe(broadcaster, { filter: wants }).subscribe(take),
      leave: (subscription) => subscription.unsubscribe(),
      close: () => broadcaster.shutdown(),
    });
  },
};

interface Queue {
  events: Tick[];
  wake: (() => void) | undefined;
  open: boolean;
  lost: number;
}

async function consumeQueue(queue: Queue, take: Take): Promise<void> {
  while (queue.open) {
    if (queue.events.length === 0) await new Promise<void>((wake) => (queue.wake = wake));
    const batch = queue.events;
    queue.events = [];
    for (const event of batch) take(event);
  }
}

function wake(queue: Queue): void {
  const waiting = queue.wake;
  queue.wake = undefined;
  waiting?.();
}

/** A design that watchmux does not use: every event is copied into each watcher's bounded queue, which is read in batches. */
const queuePerWatcher: Contender = {
  name: 'queue per watcher',
  queue: 'bounded',
  start({ capacity = CAPACITY } = {}) {
    const queues = new Set<Queue>();
    const open = (): Queue => {
      const queue: Queue = { events: [], wake: undefined, open: true, lost: 0 };
      queues.add(queue);
      return queue;
    };
    const leave = (queue: Queue): void => {
      queue.open = false;
      queues.delete(queue);
      wake(queue);
    };
    return anyHub<Queue>({
      publish(event) {
        for (const queue of queues) {
          if (queue.events.length === capacity) queue.lost++;
          else queue.events.push(event);
          if (queue.wake !== undefined) wake(queue);
        }
      },
      watch(take) {
        const queue = open();
        void consumeQueue(queue, take);
        return queue;
      },
      open,
      read: (queue, take) => void consumeQueue(queue, take),
      leave,
      stall: open,
      close() {
        for (const queue of queues) leave(queue);
      },
    });
  },
};

export const OURS: readonly Contender[] = [perEvent, batches, observed, queuePerWatcher];
