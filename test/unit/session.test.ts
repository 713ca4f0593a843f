// The bridge without a socket: hubs and sessions over sinks of our own.
import { describe, expect, test } from 'vitest';
import { frameOf } from '../../src/bridge/envelope.ts';
import type { HubOptions } from '../../src/bridge/hub.ts';
import { Hub } from '../../src/bridge/hub.ts';
import type { Ending } from '../../src/bridge/protocol.ts';
import type { Session, Sink } from '../../src/bridge/session.ts';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import { filter } from '../../src/broadcast/filter.ts';
import type { WatchEvent } from '../../src/watch/event.ts';

const added = (object: unknown): WatchEvent => ({ type: 'ADDED', object });
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

/** A connection that can be told to stand still. */
class FakeSink implements Sink {
  readonly events: WatchEvent[] = [];
  readonly slices: number[] = [];
  ended: Ending | undefined = undefined;
  destroyed: boolean = false;
  bufferedBytes: number = 0;
  session: Session | undefined = undefined;
  private stalled: boolean = false;
  private relieve: () => void = () => {};

  stall(): void {
    this.stalled = true;
  }

  resume(): void {
    this.stalled = false;
    this.relieve();
  }

  write(events: readonly WatchEvent[]): Promise<void> | undefined {
    this.events.push(...events);
    this.slices.push(events.length);
    if (!this.stalled) return undefined;
    return new Promise((resolve) => {
      this.relieve = resolve;
    });
  }

  end(how: Ending): void {
    this.ended = how;
    this.session?.gone();
  }

  destroy(): void {
    this.destroyed = true;
  }

  get objects(): unknown[] {
    return this.events.map((event) => event.object);
  }
}

function connect(hub: Hub, sink: FakeSink = new FakeSink()): FakeSink & { session: Session } {
  sink.session = hub.open(sink, { transport: 'http', address: 'test' });
  return sink as FakeSink & { session: Session };
}

async function until(condition: () => boolean): Promise<void> {
  for (let turns = 0; !condition(); turns++) {
    if (turns > 10_000) throw new Error('the condition never came true');
    await turn();
  }
}

describe('frames', () => {
  test('one buffer serves all transports, and is made once', async () => {
    const hub = new Hub({ epoch: 'e' });
    const [one, other] = [connect(hub), connect(hub)];
    await hub.publish(added({ naïve: '✓' }));
    await until(() => other.events.length === 1);
    const frame = frameOf(one.events[0] as WatchEvent);
    expect(text(frame.record)).toBe('id: e.1\ndata: {"type":"ADDED","object":{"naïve":"✓"}}\n\n');
    expect(text(frame.line)).toBe('{"type":"ADDED","object":{"naïve":"✓"}}\n');
    expect(text(frame.message)).toBe('{"type":"ADDED","object":{"naïve":"✓"}}');
    expect(frame.line.buffer).toBe(frame.record.buffer);
    expect(frameOf(other.events[0] as WatchEvent)).toBe(frame);
  });

  test('a text that is at hand is passed on as it is', async () => {
    const hub = new Hub();
    const sink = connect(hub);
    await hub.publish(added(1), '{"type":"ADDED", "object": 1.0}');
    await until(() => sink.events.length === 1);
    expect(text(frameOf(sink.events[0] as WatchEvent).message)).toBe('{"type":"ADDED", "object": 1.0}');
  });

  test('an object that JSON has no word for is null, so that the event stays one', () => {
    expect(text(frameOf(added(undefined)).message)).toBe('{"type":"ADDED","object":null}');
  });
});

describe('a client', () => {
  test('gets every event in order, each once, from the moment it came', async () => {
    const hub = new Hub();
    await hub.publish(added('before'));
    const sink = connect(hub);
    for (let i = 0; i < 1_000; i++) await hub.publish(added(i));
    await hub.shutdown();
    expect(sink.objects).toEqual(Array.from({ length: 1_000 }, (_, i) => i));
    expect(sink.ended).toBe('complete');
  });

  test('that is slow holds back neither the others nor its own end', async () => {
    const hub = new Hub({ capacity: 10 });
    const [slow, fast] = [connect(hub), connect(hub)];
    slow.stall();
    for (let i = 0; i < 100; i++) await hub.publish(added(i));
    await until(() => fast.events.length === 100);
    slow.resume();
    await until(() => slow.ended !== undefined);
    const got = slow.events.slice(0, -1);
    expect(slow.ended).toBe('expired');
    expect(got.map((event) => event.object)).toEqual(Array.from(got, (_, i) => i));
    expect(slow.events.at(-1)).toMatchObject({
      type: 'ERROR',
      object: { code: 410, reason: 'Expired', details: { missed: 100 - got.length } },
    });
    expect(slow.session.stats()).toMatchObject({ delivered: got.length, dropped: 100 - got.length, queued: 0 });
    expect(fast.ended).toBeUndefined();
  });

  test('under wait holds back the publisher, and loses nothing', async () => {
    const hub = new Hub({ capacity: 5, overflow: 'wait' });
    const sink = connect(hub);
    sink.stall();
    let published = 0;
    const publishing = (async () => {
      for (; published < 50; published++) await hub.publish(added(published));
    })();
    for (let i = 0; i < 200; i++) await turn();
    expect(published).toBeLessThan(15);
    expect(hub.tryPublish(added('no room'))).toBe(false);
    sink.resume();
    await publishing;
    await hub.shutdown();
    expect(sink.objects).toEqual(Array.from({ length: 50 }, (_, i) => i));
  });

  test('that goes away under wait lets the publisher go on at once', async () => {
    const hub = new Hub({ capacity: 2, overflow: 'wait' });
    const sink = connect(hub);
    sink.stall();
    const publishing = Promise.all(Array.from({ length: 20 }, (_, i) => hub.publish(added(i))));
    await turn();
    expect(hub.stats().accepted).toBeLessThan(20);
    sink.session.gone();
    await publishing;
    await sink.session.done;
    expect(hub.stats()).toMatchObject({ accepted: 20, clients: [] });
  });

  test.each(['drop-newest', 'drop-oldest', 'coalesce'] as const)(
    'under %s: delivered, dropped and queued add up',
    async (overflow) => {
      const hub = new Hub({ capacity: 4, overflow });
      const sink = connect(hub);
      sink.stall();
      for (let i = 0; i < 40; i++) await hub.publish({ type: 'MODIFIED', object: { metadata: { name: `n${i % 3}` }, i } });
      const { delivered, dropped, queued } = sink.session.stats();
      expect(delivered + dropped + queued).toBe(40);
      expect(dropped).toBeGreaterThan(0);
      sink.resume();
      await hub.shutdown();
      expect(sink.ended).toBe('complete');
    },
  );

  test('whose folded event changes its type gets bytes that say so', async () => {
    const hub = new Hub({ capacity: 4, overflow: 'coalesce', epoch: 'e' });
    const sink = connect(hub);
    sink.stall();
    for (const [type, i] of [
      ['ADDED', 0],
      ['ADDED', 1],
      ['MODIFIED', 2],
    ] as const) {
      await hub.publish({ type, object: { metadata: { name: `n${i && 1}` }, i } }, `{"type":"${type}","object":{"raw":${i}}}`);
      await turn();
    }
    sink.resume();
    await until(() => sink.events.length === 2);
    expect(text(frameOf(sink.events[1] as WatchEvent).record)).toBe(
      'id: e.3\ndata: {"type":"ADDED","object":{"metadata":{"name":"n1"},"i":2}}\n\n',
    );
    await hub.shutdown();
  });

  test('gets big batches in slices, so that pressure is noticed', async () => {
    const hub = new Hub({ capacity: 100 });
    const sink = connect(hub);
    sink.stall();
    const big = 'x'.repeat(20_000);
    for (let i = 0; i < 21; i++) await hub.publish(added(big));
    sink.resume();
    await until(() => sink.events.length === 21);
    expect(Math.max(...sink.slices)).toBeLessThanOrEqual(4);
  });
});

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
