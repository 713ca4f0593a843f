import type { Effect, Fiber, Subscription } from 'effect';
import { anyHub, CAPACITY, type Contender, type Take, type Tick } from './contender.ts';

type Package = typeof import('effect');

/** A consumer's fiber: an effect that runs until it is interrupted. */
type Loop = (effect: Package, subscription: Subscription<Tick>, take: Take) => Effect<unknown>;

/**
 * Effect's PubSub, read event by event or in batches. These are the fastest of its ways to do it: `publishUnsafe`, and these
 * loops. Streams and generators are slower, both with `take` and with `takeAll`.
 */
function pubSubReadBy(name: string, loop: Loop): Contender {
  return {
    name,
    queue: 'bounded',
    async start({ capacity = CAPACITY } = {}) {
      const effect = await import('effect');
      const { Effect, Exit, PubSub, Scope } = effect;
      const pubSub = Effect.runSync(PubSub.bounded<Tick>(capacity));
      const open = () => {
        const scope = Effect.runSync(Scope.make());
        return { scope, subscription: Effect.runSync(Scope.provide(PubSub.subscribe(pubSub), scope)) };
      };
      type Opened = ReturnType<typeof open> & { fiber?: Fiber };
      const read = (opened: Opened, take: Take): void => {
        opened.fiber = Effect.runFork(loop(effect, opened.subscription, take));
      };
      return anyHub<Opened>({
        publish(event) {
          // Its own `publish` would wait here, and block everyone.
          if (!PubSub.publishUnsafe(pubSub, event)) throw new Error('the publisher must wait: the slowest watcher is full');
        },
        watch(take) {
          const opened: Opened = open();
          read(opened, take);
          return opened;
        },
        open,
        read,
        leave({ fiber, scope }) {
          fiber?.interruptUnsafe();
          return Effect.runSync(Scope.close(scope, Exit.void));
        },
        stall() {
          const opened: Opened = open();
          opened.fiber = Effect.runFork(Effect.flatMap(PubSub.take(opened.subscription), () => Effect.never));
          return opened;
        },
        close: () => Effect.runSync(PubSub.shutdown(pubSub)),
      });
    },
  };
}

/** Not `forever`, which yields to the scheduler after each event and takes a single watcher three times as long. */
const perEvent = pubSubReadBy('Effect PubSub', ({ Effect, PubSub }, subscription, take) => {
  const next = PubSub.take(subscription);
  return Effect.whileLoop({ while: () => true, body: () => next, step: take });
});

/** `forever`, because it yields: otherwise a burst would be split, with its first event alone. */
const inBatches = pubSubReadBy('Effect PubSub takeAll', ({ Effect, PubSub }, subscription, take) =>
  Effect.forever(
    Effect.map(PubSub.takeAll(subscription), (events) => {
      for (const event of events) take(event);
    }),
  ),
);

export const EFFECT: readonly Contender[] = [perEvent, inBatches];
