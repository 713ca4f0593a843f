// Hubs without a socket: replay, the end, limits, and watches that are bridged.
import { describe, expect, test } from 'vitest';
import type { HubOptions } from '../../src/bridge/hub.ts';
import { Hub } from '../../src/bridge/hub.ts';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import { filter } from '../../src/broadcast/filter.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { added, connect, FakeSink, turn } from './fake-sink.ts';

describe('replay', () => {
  test('gives the last N, then what follows: nothing lost between, nothing twice', async () => {
    const hub = new Hub({ replay: 5, epoch: 'e' });
    const sinks: FakeSink[] = [];
    for (let i = 1; i <= 200; i++) {
      void hub.publish(added(i));
      sinks.push(connect(hub));
      if (i % 7 === 0) await turn();
    }
    await hub.shutdown();
    sinks.forEach((sink, index) => {
      const first = Math.max(1, index + 1 - 4);
      expect(sink.objects).toEqual(Array.from({ length: 200 - first + 1 }, (_, i) => first + i));
      expect((sink.events[0] as { version?: string }).version).toBe(`e.${first}`);
    });
  });

  test('is exact while a full wait client holds the stream up', async () => {
    const hub = new Hub({ replay: 100, capacity: 2, overflow: 'wait' });
    const slow = connect(hub);
    slow.stall();
    const publishing = Array.from({ length: 30 }, (_, i) => hub.publish(added(i)));
    await turn();
    const late = connect(hub);
    slow.resume();
    await Promise.all(publishing);
    await hub.shutdown();
    const all = Array.from({ length: 30 }, (_, i) => i);
    expect(slow.objects).toEqual(all);
    expect(late.objects).toEqual(all);
  });
});

describe('the end', () => {
  test('delivers what is queued before it says goodbye; later clients are refused', async () => {
    const hub = new Hub();
    const sink = connect(hub);
    for (let i = 0; i < 10; i++) hub.tryPublish(added(i));
    const down = hub.shutdown();
    expect(hub.refusal()).toMatchObject({ code: 503, reason: 'ServiceUnavailable' });
    await down;
    expect(sink.objects).toHaveLength(10);
    await expect(hub.publish(added('late'))).rejects.toMatchObject({ code: 'CLOSED' });
    expect(() => hub.tryPublish(added('late'))).toThrow('shut down');
    await hub.shutdown();
  });

  test('does not wait for ever: an aborted signal cuts who is left', async () => {
    const hub = new Hub({ overflow: 'wait', capacity: 1 });
    const sink = connect(hub);
    sink.stall();
    hub.tryPublish(added(1));
    await turn();
    const deadline = new AbortController();
    const down = hub.shutdown({ signal: deadline.signal });
    await turn();
    deadline.abort();
    await down;
    expect(sink.destroyed).toBe(true);
    expect(hub.stats().clients).toEqual([]);
  });

  test('a client that goes while its batch is in hand gets nothing more, and is told nothing', async () => {
    const hub = new Hub();
    const sink = connect(hub);
    sink.stall();
    await hub.publish(added('x'.repeat(70_000)));
    await hub.publish(added('y'));
    sink.session.gone();
    sink.resume();
    await sink.session.done;
    await turn();
    expect(sink.events).toHaveLength(1);
    expect(sink.ended).toBeUndefined();
  });

  test('a sink that rejects is a client that has gone', async () => {
    const hub = new Hub();
    const sink = new FakeSink();
    sink.write = () => Promise.reject(new Error('EPIPE'));
    const { session } = connect(hub, sink);
    await hub.publish(added(1));
    await session.done;
    expect(sink.destroyed).toBe(true);
  });
});

describe('limits', () => {
  test('clients past the limit are refused and counted', () => {
    const hub = new Hub({ maxClients: 1 });
    expect(hub.refusal()).toBeUndefined();
    connect(hub);
    expect(hub.refusal()).toMatchObject({ code: 503 });
    expect(hub.stats().total).toMatchObject({ clients: 1, refused: 1 });
  });

  test('publishes that pend are bounded; numbers have no holes', async () => {
    const hub = new Hub({ capacity: 1, overflow: 'wait', maxPending: 3, epoch: 'e' });
    const sink = connect(hub);
    sink.stall();
    const outcomes = Array.from({ length: 20 }, (_, i) =>
      hub.publish(added(i)).then(
        () => 'ok',
        (error: { code: string }) => error.code,
      ),
    );
    await turn();
    sink.resume();
    expect(new Set(await Promise.all(outcomes))).toEqual(new Set(['ok', 'OVERLOADED']));
    await hub.shutdown();
    const versions = sink.events.map((event) => (event as { version?: string }).version);
    expect(versions).toEqual(versions.map((_, i) => `e.${i + 1}`));
  });

  test.each<[string, HubOptions]>([
    ['capacity', { capacity: -1 }],
    ['replay', { replay: 1.5 }],
    ['maxClients', { maxClients: 0 }],
    ['epoch', { epoch: 'a.b' }],
    ['overflow', { overflow: 'explode' as 'wait' }],
  ])('a bad %s is refused', (_name, options) => {
    expect(() => new Hub(options)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });
});

describe('follow', () => {
  test('bridges any watch, a filtered broadcaster for one, and ends with it', async () => {
    const numbers = new Broadcaster<WatchEvent<'n', number>>();
    const hub = new Hub<WatchEvent<'n', number>>();
    const followed = hub.follow(filter(numbers.watch(), (event) => (event.object % 2 === 0 ? event : undefined)));
    const sink = connect(hub as Hub);
    for (let i = 0; i < 300; i++) await numbers.publish({ type: 'n', object: i });
    await numbers.shutdown();
    await followed;
    expect(sink.objects).toEqual(Array.from({ length: 150 }, (_, i) => 2 * i));
    expect(sink.ended).toBe('complete');
  });

  test('a watch that fails is told to the clients as an ERROR, and to the caller as what it was', async () => {
    const numbers = new Broadcaster<WatchEvent<'n', number>>();
    const hub = new Hub<WatchEvent<'n', number>>();
    const sink = connect(hub as Hub);
    const followed = hub.follow(
      numbers.watch({
        filter: () => {
          throw new Error('secret');
        },
      }),
    );
    const outcome = expect(followed).rejects.toThrow('secret');
    await numbers.publish({ type: 'n', object: 1 });
    await outcome;
    expect(sink.events).toMatchObject([{ type: 'ERROR', object: { code: 500, reason: 'InternalError' } }]);
    expect(JSON.stringify(sink.events)).not.toContain('secret');
  });

  test('a hub that is shut down lets go of what it follows', async () => {
    const numbers = new Broadcaster<WatchEvent<'n', number>>();
    const hub = new Hub<WatchEvent<'n', number>>();
    const followed = hub.follow(numbers.watch());
    await hub.shutdown();
    await numbers.publish({ type: 'n', object: 1 });
    await followed;
    expect(numbers.watchers).toBe(0);
  });
});

test('a namespace that is no string ends no client of coalesce', async () => {
  const hub = new Hub({ overflow: 'coalesce', capacity: 2 });
  const sink = connect(hub);
  sink.stall();
  const metadatas = [{ name: 'a' }, { name: 'a', namespace: { toString: 1, valueOf: 1 } }, { name: 'b' }, { name: 'a' }];
  for (const metadata of metadatas) await hub.publish(added({ metadata }));
  sink.resume();
  await hub.shutdown();
  expect(sink.ended).toBe('complete');
  expect(sink.objects.at(-1)).toBeDefined();
});
