// When a hub writes, if its clients see the events of some topics only.
import { describe, expect, test } from 'vitest';
import { Hub } from '../../src/bridge/hub/hub.ts';
import { added, connect, FakeSink, turn } from './fake-sink.ts';

const topics = Array.from({ length: 30 }, (_, at) => `topic ${at}`);
const topicsOf = ({ object }: { object: unknown }): string => (object as { topic: string }).topic;

describe('a hub with topics', () => {
  test('writes once to each client for a burst into all topics, however many they are', async () => {
    const hub = new Hub({ topicsOf, capacity: 100 });
    const sinks = topics.map((topic) => connect(hub, new FakeSink(), { options: { topics: [topic] } }));
    for (let i = 0; i < 10; i++) for (const topic of topics) hub.tryPublish(added({ topic, i }));
    await turn();
    for (const [at, sink] of sinks.entries()) {
      expect(sink.objects).toEqual(Array.from({ length: 10 }, (_, i) => ({ topic: topics[at], i })));
      expect(sink.writes).toHaveLength(1);
    }
  });

  test('writes as soon as half of the queue of one client has come, so that a burst into its topic loses nothing', async () => {
    const hub = new Hub({ topicsOf, capacity: 10 });
    const [busy, all] = [['topic 0'], undefined].map((some) =>
      connect(hub, new FakeSink(), { options: some ? { topics: some } : {} }),
    );
    for (let i = 0; i < 100; i++) hub.tryPublish(added({ topic: 'topic 0', i }));
    expect(busy?.objects).toHaveLength(100);
    expect(all?.objects).toHaveLength(100);
  });
});

test('a hub without topics that keeps no events writes, too', async () => {
  const hub = new Hub({ replayItems: 0 });
  const sink = connect(hub);
  hub.tryPublish(added(1));
  await turn();
  expect(sink.objects).toEqual([1]);
});
