import { EventEmitter, on, setMaxListeners } from 'node:events';
import { Subject } from 'rxjs';
import { observe } from '../src/adapters/rxjs.ts';
import { Broadcaster } from '../src/broadcast/broadcaster.ts';

/** What is published: small, and checkable for order by its number. */
export interface Tick {
  readonly type: 'TICK';
  readonly object: number;
}

/** Called by a consumer for each event; the sum of what it saw is how answers are checked. */
export type Sink = (watcher: number, event: Tick) => void;

/** One way to fan out. `publish` hands over a burst; `settled` resolves when every watcher has consumed it. */
export interface Contender {
  readonly name: string;
  /** What its queues do when a consumer stalls. */
  readonly queue: 'bounded' | 'unbounded' | 'none';
  start(watchers: number, sink: Sink): Running;
}

export interface Running {
  publish(burst: readonly Tick[]): void;
  /** Frees everything. */
  stop(): Promise<void> | void;
}

const CAPACITY = 1024;

/** The floor: what calling every consumer in a loop costs, with no queue, no order to keep and nobody to wait for. */
const control: Contender = {
  name: 'control: a bare loop',
  queue: 'none',
  start: (watchers, sink) => ({
    publish(burst) {
      for (let watcher = 0; watcher < watchers; watcher++) for (const event of burst) sink(watcher, event);
    },
    stop() {},
  }),
};

/** Ours, in one of its forms: a broadcaster, and a way to attach a consumer to it. */
function ours(
  name: string,
  attach: (broadcaster: Broadcaster<Tick>, consume: (event: Tick) => void) => Promise<void>,
): Contender {
  return {
    name,
    queue: 'bounded',
    start(watchers, sink) {
      const broadcaster = new Broadcaster<Tick>({ capacity: CAPACITY, overflow: 'drop-oldest' });
      const done = Array.from({ length: watchers }, (_, watcher) => attach(broadcaster, (event) => sink(watcher, event)));
      return {
        publish(burst) {
          for (const event of burst) broadcaster.tryPublish(event);
        },
        async stop() {
          await broadcaster.shutdown();
          await Promise.all(done);
        },
      };
    },
  };
}

const batches: Contender = ours('watchmux, batches()', async (broadcaster, consume) => {
  for await (const batch of broadcaster.watch().batches()) for (const event of batch) consume(event);
});

const perEvent: Contender = ours('watchmux, for await', async (broadcaster, consume) => {
  for await (const event of broadcaster.watch()) consume(event);
});

const observed: Contender = ours(
  'watchmux/rxjs, observe()',
  (broadcaster, consume) => new Promise((complete) => observe(broadcaster).subscribe({ next: consume, complete })),
);

const subject: Contender = {
  name: 'RxJS Subject',
  queue: 'none',
  start(watchers, sink) {
    const source = new Subject<Tick>();
    for (let watcher = 0; watcher < watchers; watcher++) source.subscribe((event) => sink(watcher, event));
    return {
      publish(burst) {
        for (const event of burst) source.next(event);
      },
      stop: () => source.complete(),
    };
  },
};

const eventsOn: Contender = {
  name: 'Node events.on',
  queue: 'unbounded',
  start(watchers, sink) {
    const emitter = new EventEmitter();
    emitter.setMaxListeners(0);
    const ends = new AbortController();
    setMaxListeners(0, ends.signal);
    const consume = async (watcher: number): Promise<void> => {
      try {
        for await (const [event] of on(emitter, 'tick', { signal: ends.signal })) sink(watcher, event as Tick);
      } catch (error) {
        if (!ends.signal.aborted) throw error;
      }
    };
    const done = Array.from({ length: watchers }, (_, watcher) => consume(watcher));
    return {
      publish(burst) {
        for (const event of burst) emitter.emit('tick', event);
      },
      async stop() {
        ends.abort();
        await Promise.all(done);
      },
    };
  },
};

/** The design that watchmux does not have: every event is copied into a queue of each watcher. */
const queuePerWatcher: Contender = {
  name: 'a queue per watcher, batches',
  queue: 'bounded',
  start(watchers, sink) {
    const queues = Array.from({ length: watchers }, () => ({
      events: [] as Tick[],
      wake: undefined as (() => void) | undefined,
    }));
    let open = true;
    const consume = async (watcher: number): Promise<void> => {
      const queue = queues[watcher];
      while (queue !== undefined && (open || queue.events.length > 0)) {
        if (queue.events.length === 0) await new Promise<void>((wake) => (queue.wake = wake));
        for (const event of queue.events.splice(0)) sink(watcher, event);
      }
    };
    const done = queues.map((_, watcher) => consume(watcher));
    const wake = (queue: { wake: (() => void) | undefined }): void => {
      queue.wake?.();
      queue.wake = undefined;
    };
    return {
      publish(burst) {
        for (const event of burst) {
          for (const queue of queues) {
            if (queue.events.length === CAPACITY) queue.events.shift();
            queue.events.push(event);
            wake(queue);
          }
        }
      },
      async stop() {
        open = false;
        for (const queue of queues) wake(queue);
        await Promise.all(done);
      },
    };
  },
};

export const CONTENDERS: readonly Contender[] = [control, batches, perEvent, observed, queuePerWatcher, eventsOn, subject];
