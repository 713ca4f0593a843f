// The end of a hub, and what its clients see of it, without sockets.
import { describe, expect, test } from 'vitest';
import { SLICE_BYTES } from '../../src/bridge/events/forms.ts';
import { coreOf, Hub } from '../../src/bridge/hub/hub.ts';
import type { Start } from '../../src/bridge/hub/hub-log.ts';
import type { HubNotice } from '../../src/bridge/hub/tally.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import type { Status, WatchEvent } from '../../src/watch/event.ts';
import { added, connect, FakeSink, turn, until } from './fake-sink.ts';
import { fate } from './support.ts';

describe('the end of a hub', () => {
  test('delivers queued events before it closes; later clients are refused', async () => {
    const hub = new Hub();
    const sink = connect(hub);
    for (let i = 0; i < 10; i++) hub.tryPublish(added(i));
    const down = hub.shutdown();
    expect(coreOf(hub).reserve('')).toMatchObject({ code: 503, reason: 'ServiceUnavailable' });
    expect(coreOf(hub).start({})).toMatchObject({ code: 503 });
    await down;
    expect(coreOf(hub).start({})).toMatchObject({ code: 204 });
    expect(sink.objects).toHaveLength(10);
    await expect(hub.publish(added('late'))).rejects.toMatchObject({ code: 'CLOSED' });
    expect(() => hub.tryPublish(added('late'))).toThrow('shut down');
    await hub.shutdown();
  });

  test('keeps serving: a client that reconnects gets the rest, or a 410', async () => {
    const hub = new Hub({ epoch: 'e', replayItems: 3, replay: 1 });
    for (let i = 1; i <= 5; i++) await hub.publish(added(i));
    await hub.shutdown();
    const ask = (resourceVersion?: string): { start: Start | Status } => ({ start: coreOf(hub).start({ resourceVersion }) });
    expect(ask('e.1').start).toMatchObject({ code: 410 });
    expect(ask('e.5').start).toMatchObject({ code: 204 });
    const odd = { options: { filter: ({ object }: WatchEvent) => (object as number) % 2 === 1 } };
    const sinks = [
      connect(hub, undefined, ask('e.2') as { start: Start }),
      connect(hub, undefined, { ...(ask('e.2') as { start: Start }), ...odd }),
      connect(hub, undefined, ask() as { start: Start }),
    ];
    expect(sinks.map(({ objects, ended }) => [objects, ended])).toEqual([
      [[3, 4, 5], 'complete'],
      [[3, 5], 'complete'],
      [[5], 'complete'],
    ]);
    expect(hub.stats()).toMatchObject({ clients: [], total: { resumes: 2, refusals: { ended: 1, expired: 1 } } });
  });

  test('is complete for a client whose filter hides the rest, but not if its filter throws', async () => {
    const hub = new Hub({ epoch: 'e' });
    for (let i = 1; i <= 4; i++) await hub.publish(added(i));
    await hub.shutdown();
    const odd = ({ object }: WatchEvent): boolean => (object as number) % 2 === 1;
    expect(coreOf(hub).start({ resourceVersion: 'e.3' }, { options: { filter: odd } })).toMatchObject({ code: 204 });
    expect(coreOf(hub).start({ resourceVersion: 'e.2' }, { options: { filter: odd } })).toMatchObject({ resumed: true });
    const broken = (): boolean => {
      throw new Error('no');
    };
    expect(coreOf(hub).start({ resourceVersion: 'e.3' }, { options: { filter: broken } })).toMatchObject({ resumed: true });
  });

  test('of a departing server is not the end of the stream: new clients are refused, and find another server', async () => {
    const hub = new Hub({ epoch: 'e' });
    await hub.publish(added(1));
    await hub.shutdown({ retryAfterMs: 5_000 });
    expect(coreOf(hub).start({ resourceVersion: 'e.0' })).toMatchObject({ code: 503 });
    expect(coreOf(hub).reserve('')).toMatchObject({ code: 503, details: { retryAfterSeconds: 5 } });
  });

  test('leaves no timer, even if a flush was delayed', async () => {
    const clock = new FakeClock();
    const hub = new Hub({ flushIntervalMs: 60_000, clock });
    const sink = connect(hub);
    await hub.publish(added(1));
    await turn();
    await hub.publish(added(2));
    expect([sink.objects, clock.pending]).toEqual([[1], 1]);
    await hub.shutdown();
    expect(sink.objects).toEqual([1, 2]);
    for (let i = 0; i < 5; i++) await turn();
    expect(clock.pending).toBe(0);
  });

  test('is complete when all clients have gone, not when the first has', async () => {
    const hub = new Hub();
    const sinks = [connect(hub), connect(hub)];
    for (const sink of sinks) sink.stall();
    await hub.publish(added(1));
    hub.tryPublish(added(2));
    const down = fate(hub.shutdown());
    await turn();
    for (const sink of sinks) {
      expect(down.state).toBe('pending');
      sink.session.gone();
      await turn();
    }
    expect(down.state).toBe('resolved');
  });

  test('does not wait forever: an aborted signal cuts the remaining clients', async () => {
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

  test('a client that leaves while its batch is in hand gets nothing more', async () => {
    const hub = new Hub();
    const sink = connect(hub);
    sink.stall();
    await hub.publish(added('x'.repeat(SLICE_BYTES)));
    await hub.publish(added('y'));
    sink.session.gone();
    sink.resume();
    await turn();
    expect(sink.events).toHaveLength(1);
    expect(sink.ended).toBeUndefined();
    expect(sink.session.stats()).toMatchObject({ delivered: 1, queued: 0, dropped: 1 });
    const { total } = hub.stats();
    expect(total.delivered + total.dropped).toBe(2);
  });

  test('a client whose sink throws is cut', async () => {
    const hub = new Hub();
    const sink = new FakeSink();
    sink.write = () => {
      throw new Error('EPIPE');
    };
    const other = connect(hub);
    connect(hub, sink);
    await hub.publish(added(1));
    await until(() => other.events.length === 1);
    expect(sink.destroyed).toBe(true);
    expect(hub.stats().total).toMatchObject({ cuts: { failed: 1 } });
  });

  test('a sink that throws even when it is closed affects nobody else: all others are flushed, now and later', async () => {
    const hub = new Hub();
    const sink = new FakeSink();
    sink.write = sink.destroy = () => {
      throw new Error('EPIPE');
    };
    connect(hub, sink);
    const other = connect(hub);
    for (let i = 1; i <= 3; i++) await hub.publish(added(i));
    await until(() => other.events.length === 3);
    expect(hub.stats()).toMatchObject({ clients: [{}], total: { cuts: { failed: 1 } } });
  });

  test('a sink that throws in `opened` is cut, and its slot is free again', () => {
    const notices: HubNotice[] = [];
    const hub = new Hub({ maxClients: 1, onNotice: (notice) => notices.push(notice) });
    const sink = new FakeSink();
    const error = new Error('EPIPE');
    sink.opened = () => {
      throw error;
    };
    connect(hub, sink);
    expect(sink.destroyed).toBe(true);
    expect(notices.at(-1)).toMatchObject({ type: 'close', reason: 'failed', error });
    expect(hub.stats()).toMatchObject({ clients: [], total: { clients: 1, cuts: { failed: 1 } } });
    expect(coreOf(hub).reserve('')).not.toHaveProperty('code');
  });

  test.each([
    [0, []],
    [1, [3]],
  ])('a client without a given start gets its replay of %i, and the end', async (replay, objects) => {
    const hub = new Hub({ replay });
    for (let i = 1; i <= 3; i++) await hub.publish(added(i));
    await hub.shutdown();
    const sink = connect(hub);
    expect([sink.objects, sink.ended]).toEqual([objects, 'complete']);
    expect(hub.stats().total.refused).toBe(0);
  });

  test('of a departing server: each client is told when to reconnect, spread over the given time', async () => {
    const numbers = [0, 0.5, 0.999];
    const hub = new Hub({ random: () => numbers.shift() ?? 0 });
    const sinks = [connect(hub), connect(hub), connect(hub)];
    await hub.shutdown({ retryAfterMs: 1_000 });
    expect(sinks.map(({ ended, retryMs }) => [ended, retryMs])).toEqual([
      ['goingAway', 0],
      ['goingAway', 500],
      ['goingAway', 999],
    ]);
  });

  test.each([
    ['complete', undefined, 1_000],
    ['goingAway', 1_000, undefined],
  ])('is of the kind that the first shutdown says, here %s, and each of them resolves', async (how, first, second) => {
    const hub = new Hub();
    const sink = connect(hub);
    sink.stall();
    for (const object of [1, 2]) await hub.publish(added(object));
    const down = [hub.shutdown({ retryAfterMs: first }), hub.shutdown({ retryAfterMs: second })];
    sink.resume();
    await Promise.all([...down, hub.shutdown()]);
    expect([sink.ended, sink.objects]).toEqual([how, [1, 2]]);
  });

  test('an invalid shutdown is rejected, and does not shut down', async () => {
    const hub = new Hub();
    const refusal = { code: 'INVALID_ARGUMENT', message: expect.stringContaining('retryAfterMs') };
    await expect(hub.shutdown({ retryAfterMs: -1 })).rejects.toMatchObject(refusal);
    expect(hub.tryPublish(added(1))).toBe(true);
  });
});
