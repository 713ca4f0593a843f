// Every contender of the workload `topics` delivers each event to the watchers of its topic, once and in order, and the audience
// detects one that does not.
import { describe, expect, test } from 'vitest';
import { Audience, type Consumer, PER_TOPIC, type Told, type TopicHub, topicsOf } from './topics/audience.ts';
import { READINGS, topicContenders } from './topics/contenders.ts';

describe.each(READINGS)('%s', (read) => {
  test.each(topicContenders({ read, into: 'one topic' }))('$name', async ({ alone, topicsEach = 1, start }) => {
    for (const into of alone ? (['one topic'] as const) : (['one topic', 'all topics'] as const)) {
      const hub = start();
      const audience = new Audience(hub, { watchers: alone ? PER_TOPIC : 100, topicsEach, burst: 3, into });
      expect(await audience.run(5)).toBeGreaterThan(0);
      expect(await audience.run(30)).toBeGreaterThan(0);
      await hub.close();
    }
  });
});

test.each([1, 2] as const)('each topic is wanted by ten watchers of %i topics each', (topicsEach) => {
  const wanted = topicsOf({ watchers: 1_000, topicsEach });
  const counts = new Map<string, number>();
  for (const topic of wanted.flat()) counts.set(topic, (counts.get(topic) ?? 0) + 1);
  expect([...new Set(counts.values())]).toEqual([PER_TOPIC]);
  expect(wanted.every((topics) => new Set(topics).size === topicsEach)).toBe(true);
});

describe('an audience refuses', () => {
  /** A hub that tells each watcher what `select` makes of an event. */
  function spoilt(select: (event: Told, topics: readonly string[]) => readonly Told[]): TopicHub {
    const watchers: [readonly string[], Consumer][] = [];
    return {
      publish(event) {
        for (const [topics, consumer] of watchers) for (const each of select(event, topics)) consumer.take(each);
      },
      watch: (...watcher) => void watchers.push(watcher),
      close: () => {},
    };
  }
  const wanted = (event: Told, topics: readonly string[]): Told[] => (topics.includes(event.object.topic) ? [event] : []);
  const run = (hub: TopicHub): Promise<number> =>
    new Audience(hub, { watchers: 20, topicsEach: 1, burst: 4, into: 'all topics', lateMs: 50 }).run(3);

  test('nothing if all is well', async () => {
    expect(await run(spoilt(wanted))).toBeGreaterThanOrEqual(0);
  });

  test.each([
    ['an event of another topic', (event: Told) => [event]],
    ['an event twice', (event: Told, topics: readonly string[]) => [...wanted(event, topics), ...wanted(event, topics)]],
    [
      'a lost event',
      (event: Told, topics: readonly string[]) => wanted(event, topics).filter(({ object }) => object.number !== 2),
    ],
    ['no events at all', () => []],
  ])('%s', async (_, select) => {
    await expect(run(spoilt(select))).rejects.toThrow('wrong answer');
  });
});
