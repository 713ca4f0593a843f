import { EventEmitter, on } from 'node:events';
import { anyHub, type Contender, iterated, type Take, type Tick } from './contender.ts';

/** The cost of calling every consumer, without a queue, and in the order of calls that suits the machine best. */
const control: Contender = {
  name: 'bare loop',
  queue: 'none',
  start() {
    let takes: Take[] = [];
    let burst: Tick[] = [];
    return anyHub<Take>({
      publish: (event) => void burst.push(event),
      flush() {
        const events = burst;
        burst = [];
        for (const take of takes) for (const event of events) take(event);
      },
      watch(take) {
        takes.push(take);
        return take;
      },
      leave(take) {
        takes = takes.filter((each) => each !== take);
      },
      close() {
        takes = [];
      },
    });
  },
};

async function consumeArguments(events: AsyncIterable<unknown[]>, take: Take): Promise<void> {
  for await (const [event] of events) take(event as Tick);
}

const eventsOn: Contender = {
  name: 'Node events.on',
  queue: 'unbounded',
  start() {
    const emitter = new EventEmitter().setMaxListeners(0);
    return anyHub(
      iterated({
        publish: (event) => void emitter.emit('tick', event),
        open: () => on(emitter, 'tick', { close: ['end'] }),
        read: (events, take) => void consumeArguments(events, take),
        leave: (events) => events.return?.(),
        close: () => void emitter.emit('end'),
      }),
    );
  },
};

const emitter: Contender = {
  name: 'EventEmitter',
  queue: 'none',
  start() {
    const source = new EventEmitter().setMaxListeners(0);
    return anyHub<Take>({
      publish: (event) => void source.emit('tick', event),
      watch(take) {
        source.on('tick', take);
        return take;
      },
      leave: (take) => source.off('tick', take),
      close: () => void source.removeAllListeners(),
    });
  },
};

class TickEvent extends Event {
  readonly tick: Tick;

  constructor(tick: Tick) {
    super('tick');
    this.tick = tick;
  }
}

const target: Contender = {
  name: 'EventTarget',
  queue: 'none',
  start() {
    let source = new EventTarget();
    return anyHub<(event: Event) => void>({
      publish: (event) => void source.dispatchEvent(new TickEvent(event)),
      watch(take) {
        const listener = (event: Event): void => take((event as TickEvent).tick);
        source.addEventListener('tick', listener);
        return listener;
      },
      leave: (listener) => source.removeEventListener('tick', listener),
      close() {
        source = new EventTarget(); // EventTarget cannot remove all listeners
      },
    });
  },
};

export const OF_NODE: readonly Contender[] = [control, eventsOn, emitter, target];
