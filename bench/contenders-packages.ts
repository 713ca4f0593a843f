import type { Subscription } from 'rxjs';
import { anyHub, type Contender, consume, iterated, type Take, type Tick } from './contender.ts';
import { EFFECT } from './contenders-effect.ts';

const mitt: Contender = {
  name: 'mitt',
  queue: 'none',
  async start() {
    const { default: create } = await import('mitt');
    const emitter = create();
    return anyHub<Take>({
      publish: (event) => emitter.emit('tick', event),
      watch(take) {
        emitter.on('tick', take);
        return take;
      },
      leave: (take) => emitter.off('tick', take),
      close: () => emitter.all.clear(),
    });
  },
};

const subject: Contender = {
  name: 'RxJS Subject',
  queue: 'none',
  async start() {
    const { Subject } = await import('rxjs');
    const source = new Subject<Tick>();
    return anyHub<Subscription>({
      publish: (event) => source.next(event),
      watch: (take) => source.subscribe(take),
      leave: (subscription) => subscription.unsubscribe(),
      // Not `complete`: each subscriber would remove itself from a list, which takes minutes for 100,000 of them.
      close: () => source.unsubscribe(),
    });
  },
};

/** emittery 2 is for Node 22. This is the only thing that Node 20 lacks. */
function supplyWithResolvers(): void {
  const promise = Promise as { withResolvers?: unknown };
  promise.withResolvers ??= () => {
    let resolve: unknown;
    let reject: unknown;
    const pending = new Promise((yes, no) => {
      resolve = yes;
      reject = no;
    });
    return { promise: pending, resolve, reject };
  };
}

async function consumeData(events: AsyncIterable<{ data: Tick }>, take: Take): Promise<void> {
  for await (const { data } of events) take(data);
}

const emittery: Contender = {
  name: 'emittery',
  queue: 'unbounded',
  async start() {
    supplyWithResolvers();
    const { default: Emittery } = await import('emittery');
    const emitter = new Emittery();
    return anyHub(
      iterated({
        publish: (event) => void emitter.emit('tick', event),
        open: () => emitter.events<{ data: Tick }>('tick'),
        read: (events, take) => void consumeData(events, take),
        leave: (events) => events.return?.(),
        close: () => emitter.clearListeners(),
      }),
    );
  },
};

const itPushable: Contender = {
  name: 'it-pushable',
  queue: 'unbounded',
  async start() {
    const { pushable } = await import('it-pushable');
    type Source = ReturnType<typeof pushable<Tick>>;
    const sources = new Set<Source>();
    return anyHub(
      iterated<Source>({
        publish(event) {
          for (const source of sources) source.push(event);
        },
        open() {
          const source = pushable<Tick>({ objectMode: true });
          sources.add(source);
          return source;
        },
        read: (source, take) => void consume(source, take),
        leave(source) {
          sources.delete(source);
          return source.return?.();
        },
        close() {
          for (const source of sources) source.end();
          sources.clear();
        },
      }),
    );
  },
};

const yoga: Contender = {
  name: 'graphql-yoga pub/sub',
  // 1,024 events wait for a consumer; the next one is thrown where nobody can catch it.
  queue: 'bounded',
  async start() {
    const { createPubSub } = await import('@graphql-yoga/subscription');
    const pubSub = createPubSub<Tick>();
    const sources = new Set<AsyncIterableIterator<Tick>>();
    const hub = iterated<AsyncIterableIterator<Tick>>({
      publish: (event) => pubSub.publish('tick', event),
      open() {
        const source = pubSub.subscribe('tick');
        sources.add(source);
        return source;
      },
      read: (source, take) => void consume(source, take),
      leave(source) {
        sources.delete(source);
        return source.return?.();
      },
      async close() {
        for (const source of sources) await source.return?.();
      },
    });
    // It subscribes at the first read, so an open watcher gets nothing.
    return anyHub({ publish: hub.publish, watch: hub.watch, leave: hub.leave, close: hub.close, stall: () => hub.stall?.() });
  },
};

const consumable: Contender = {
  name: 'writable-consumable-stream',
  queue: 'unbounded',
  async start() {
    const { default: Stream } = await import('writable-consumable-stream');
    const stream = new Stream<Tick>();
    return anyHub(
      iterated({
        publish: (event) => stream.write(event),
        open: () => stream.createConsumer(),
        read: (consumer, take) => void consume(consumer, take),
        leave: (consumer) => consumer.kill(),
        close: () => stream.close(),
      }),
    );
  },
};

export const OF_PACKAGES: readonly Contender[] = [mitt, subject, emittery, itPushable, yoga, ...EFFECT, consumable];
