// Sessions without a socket: what one client gets, in which bytes, and who waits for whom.
import { describe, expect, test } from 'vitest';
import { frameOf } from '../../src/bridge/envelope.ts';
import { Hub } from '../../src/bridge/hub.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { added, connect, turn, until } from './fake-sink.ts';

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

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
