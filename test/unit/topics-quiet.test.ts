// What topics hold: nothing for a topic that nobody watches, and no events that everybody has read.

import { describe, expect, test } from 'vitest';
import { coreOf, Hub } from '../../src/bridge/hub/hub.ts';
import { Broadcaster, muxOf } from '../../src/broadcast/broadcaster.ts';
import type { TopicViews } from '../../src/broadcast/topics.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { connect, FakeSink, turn } from './fake-sink.ts';
import { macrotask } from './support.ts';

type Told = WatchEvent<string, { readonly topic: string; readonly text: string }>;

const told = (topic: string, text: string = 'x'): Told => ({ type: 'TOLD', object: { topic, text } });
const topicsOf = ({ object }: { object: unknown }): string => (object as Told['object']).topic;
const names = (count: number): string[] => Array.from({ length: count }, (_, at) => `topic ${at}`);

const viewsOf = (broadcaster: Broadcaster<Told>): TopicViews<Told> => muxOf(broadcaster).topics as TopicViews<Told>;

/** A sink that has read everything at once, as a fast connection does. */
class FastSink extends FakeSink {
  override write(bytes: Uint8Array): boolean {
    super.write(bytes);
    return true;
  }
}

describe('events that everybody has read', () => {
  test.each(['for await', 'batches()'] as const)('are not kept for watchers in %s', async (reading) => {
    const broadcaster = new Broadcaster<Told>({ topicsOf, overflow: 'drop-newest', capacity: 1_000 });
    const topics = names(20);
    let got = 0;
    for (const topic of [...topics, ...topics]) {
      const watch = broadcaster.watch({ topics: [topic] });
      void (async () => {
        if (reading === 'for await') for await (const _ of watch) got++;
        else for await (const batch of watch.batches()) got += batch.length;
      })();
    }
    await macrotask();
    for (let burst = 0; burst < 3; burst++) {
      for (let i = 0; i < 30; i++) for (const topic of topics) broadcaster.tryPublish(told(topic));
      const full = viewsOf(broadcaster).all();
      expect(full).toHaveLength(20);
      expect(full.some((view) => view.log.isEmpty)).toBe(false);
      await macrotask();
      expect(got).toBe((burst + 1) * 30 * 40);
      expect(full.every((view) => view.log.isEmpty)).toBe(true);
    }
  });

  test('are not kept for the sessions of a hub', async () => {
    const hub = new Hub({ topicsOf, replayItems: 0 });
    const topics = names(20);
    const sinks = [...topics, ...topics].map((topic) => connect(hub, new FastSink(), { options: { topics: [topic] } }));
    // biome-ignore lint/complexity/useLiteralKeys: the way to a private member
    const { broadcaster } = coreOf(hub)['log'];
    const views = muxOf(broadcaster).topics?.all() ?? [];
    expect(views).toHaveLength(20);
    for (const topic of topics) for (let i = 0; i < 10; i++) hub.tryPublish(told(topic));
    expect(views.every((view) => view.log.isEmpty)).toBe(false);
    await turn();
    expect(sinks.map(({ events }) => events.length)).toEqual(sinks.map(() => 10));
    expect(views.every((view) => view.log.isEmpty)).toBe(true);
  });

  test('are kept for the one who has not, and for nobody else', async () => {
    const broadcaster = new Broadcaster<Told>({ topicsOf });
    const slow = broadcaster.watch({ topics: ['a'] });
    void (async () => {
      for await (const _ of broadcaster.watch({ topics: ['b'] }));
    })();
    await macrotask();
    for (const topic of ['a', 'b']) broadcaster.tryPublish(told(topic));
    await macrotask();
    expect(viewsOf(broadcaster).find(['a'])?.log.isEmpty).toBe(false);
    expect(viewsOf(broadcaster).find(['b'])?.log.isEmpty).toBe(true);
    expect(slow.tryNext()).toEqual(told('a'));
  });
});

describe('a topic that nobody watches any more', () => {
  test('is not in any table', async () => {
    const broadcaster = new Broadcaster<Told>({ topicsOf, overflow: 'drop-oldest' });
    for (const topic of names(100)) {
      const watch = broadcaster.watch({ topics: [topic, 'all of them'] });
      broadcaster.tryPublish(told(topic));
      expect(watch.tryNext()).toEqual(told(topic));
      await watch.return();
    }
    expect(viewsOf(broadcaster).all()).toEqual([]);
    expect(viewsOf(broadcaster).of([...names(100), 'all of them'])).toEqual([]);
  });
});
