import { EventEmitter, on } from 'node:events';
import { LINE } from '../../src/bridge/events/forms.ts';
import type { Sink } from '../../src/bridge/hub/connection.ts';
import { type ClientOptions, coreOf, Hub } from '../../src/bridge/hub/hub.ts';
import { Broadcaster, type WatchOptions } from '../../src/broadcast/broadcaster.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { CAPACITY } from '../contender.ts';
import type { Entry, Shape } from '../workload.ts';
import { type Consumer, PER_TOPIC, type Told, type TopicHub } from './audience.ts';

/** A contender. */
export interface TopicContender extends Entry {
  /** Default 1. */
  readonly topicsEach?: 1 | 2;
  /** It has the watchers of one topic only, whatever the shape says. */
  readonly alone?: true;
  start(): TopicHub;
}

/** How a watcher of watchmux is read. */
export type Reading = 'for await' | 'batches()' | 'sessions of a hub';

export const READINGS: readonly Reading[] = ['for await', 'batches()', 'sessions of a hub'];

/** What selects the events of a watcher. */
type Selection = 'topics' | 'filters' | 'nothing';

const topicOf = ({ object }: Told): string => object.topic;

function optionsOf(selection: Selection, topics: readonly string[]): Pick<WatchOptions<Told>, 'topics' | 'filter'> {
  if (selection === 'topics') return { topics };
  return selection === 'filters' ? { filter: (event) => topics.includes(topicOf(event)) } : {};
}

async function readEach(watch: Watch<Told>, consumer: Consumer): Promise<void> {
  for await (const event of watch) consumer.take(event);
}

async function readBatches(watch: Watch<Told>, consumer: Consumer): Promise<void> {
  for await (const batch of watch.batches()) for (const event of batch) consumer.take(event);
}

function broadcaster(selection: Selection, read: typeof readEach): TopicHub {
  const hub = new Broadcaster<Told>({
    capacity: CAPACITY,
    overflow: 'drop-newest',
    ...(selection === 'topics' && { topicsOf: topicOf }),
  });
  return {
    publish: (event) => void hub.tryPublish(event),
    watch: (topics, consumer) => void read(hub.watch(optionsOf(selection, topics)) as Watch<Told>, consumer),
    close: () => hub.shutdown(),
  };
}

/** A connection that takes all bytes at once. */
class TakingSink implements Sink {
  readonly form: Sink['form'] = LINE;
  readonly bufferedBytes: number = 0;
  private readonly consumer: Consumer;

  constructor(consumer: Consumer) {
    this.consumer = consumer;
  }

  opened(): void {}

  write(bytes: Uint8Array): boolean {
    this.consumer.takeBytes(bytes);
    return true;
  }

  end(): void {}

  destroy(): void {}
}

const MANY = 1_000_000;

function sessions(selection: Selection): TopicHub {
  const hub = new Hub<Told>({
    maxClients: MANY,
    maxClientsPerAddress: MANY,
    ...(selection === 'topics' && { topicsOf: topicOf }),
  });
  const core = coreOf(hub);
  return {
    publish: (event) => void hub.tryPublish(event),
    watch(topics, consumer) {
      const options = optionsOf(selection, topics) as ClientOptions;
      core.open(new TakingSink(consumer), { transport: 'http', address: '', options });
    },
    // The connections do not end.
    close: () => void hub.disconnect(() => true),
  };
}

/** A hub of its ownState for each topic. */
function perTopic(start: () => TopicHub): TopicHub {
  const hubs = new Map<string, TopicHub>();
  return {
    publish: (event) => hubs.get(topicOf(event))?.publish(event),
    watch(topics, consumer) {
      for (const topic of topics) {
        const hub = hubs.get(topic) ?? start();
        hubs.set(topic, hub);
        hub.watch([topic], consumer);
      }
    },
    async close() {
      for (const hub of hubs.values()) await hub.close();
    },
  };
}

/** A name of an event per topic: consumers are called directly. */
function emitter(): TopicHub {
  const hub = new EventEmitter();
  return {
    publish: (event) => void hub.emit(topicOf(event), event),
    watch(topics, consumer) {
      for (const topic of topics) hub.on(topic, (event: Told) => consumer.take(event));
    },
    close: () => void hub.removeAllListeners(),
  };
}

/** Node's async iterator over a name of an event per topic. */
function eventsOn(): TopicHub {
  const hub = new EventEmitter();
  hub.setMaxListeners(0);
  const ended = new AbortController();
  const read = async (topic: string, consumer: Consumer): Promise<void> => {
    try {
      for await (const [event] of on(hub, topic, { signal: ended.signal })) consumer.take(event);
    } catch (error) {
      if (!ended.signal.aborted) throw error;
    }
  };
  return {
    publish: (event) => void hub.emit(topicOf(event), event),
    watch(topics, consumer) {
      for (const topic of topics) void read(topic, consumer);
    },
    close: () => ended.abort(),
  };
}

/** The row that others are divided by. */
export const ALONE = `watchmux, ${PER_TOPIC} alone`;

function ours(reading: Reading): TopicContender[] {
  const start = (selection: Selection): TopicHub =>
    reading === 'sessions of a hub'
      ? sessions(selection)
      : broadcaster(selection, reading === 'for await' ? readEach : readBatches);
  const queue = 'bounded';
  return [
    { name: ALONE, queue, alone: true, start: () => start('nothing') },
    { name: 'watchmux topics', queue, start: () => start('topics') },
    { name: 'watchmux topics, 2 each', queue, topicsEach: 2, start: () => start('topics') },
    { name: 'watchmux filters', queue, start: () => start('filters') },
    { name: 'watchmux, one per topic', queue, start: () => perTopic(() => start('nothing')) },
  ];
}

const OTHERS: readonly TopicContender[] = [
  { name: 'EventEmitter', queue: 'none', start: emitter },
  { name: 'Node events.on', queue: 'unbounded', start: eventsOn },
];

/** All contenders of a shape. A filter is asked about every event anyway, so it need not be measured for all topics, too. */
export function topicContenders({ read, into }: Shape): readonly TopicContender[] {
  const own = ours(read as Reading).filter(({ name }) => into === 'one topic' || name !== 'watchmux filters');
  return read === 'for await' ? [...own, ...OTHERS] : own;
}
