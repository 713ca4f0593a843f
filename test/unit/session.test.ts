// Sessions without sockets: what a client gets, in which bytes, and who waits for whom.

import { describe, expect, test } from 'vitest';
import { Envelope } from '../../src/bridge/events/envelope.ts';
import { SLICE_BYTES } from '../../src/bridge/events/forms.ts';
import { Hub } from '../../src/bridge/hub/hub.ts';
import type { HubNotice } from '../../src/bridge/hub/tally.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { toStatus } from '../../src/watch/event.ts';
import { policiesWith } from '../policies.ts';
import { added, connect, FakeSink, turn, until } from './fake-sink.ts';

/** A connection that has been ended and is not closed yet. */
class Lingering extends FakeSink {
  ends: number = 0;

  override end(): void {
    this.ends++;
  }
}

describe('a client', () => {
  test('gets every event in order, each once, from the moment it connected', async () => {
    const hub = new Hub();
    await hub.publish(added('before'));
    const sink = connect(hub);
    for (let i = 0; i < 1_000; i++) await hub.publish(added(i));
    await hub.shutdown();
    expect(sink.objects).toEqual(Array.from({ length: 1_000 }, (_, i) => i));
    expect(sink.ended).toBe('complete');
  });

  test('that is slow delays neither the others nor its own end', async () => {
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

  test('with wait delays the publisher, and loses nothing', async () => {
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

  test('that leaves lets the publisher of a wait hub continue at once', async () => {
    const hub = new Hub({ capacity: 2, overflow: 'wait' });
    const sink = connect(hub);
    sink.stall();
    const publishing = Promise.all(Array.from({ length: 20 }, (_, i) => hub.publish(added(i))));
    await turn();
    expect(hub.stats().accepted).toBeLessThan(20);
    sink.session.gone();
    await publishing;
    expect(hub.stats()).toMatchObject({ accepted: 20, clients: [] });
  });

  test.each(policiesWith({ waits: false, cutsAtLoss: false }))(
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

  test('gets large batches in slices, so that backpressure is noticed', async () => {
    const hub = new Hub({ capacity: 100 });
    const sink = connect(hub);
    sink.stall();
    const big = 'x'.repeat(20_000);
    for (let i = 0; i < 21; i++) await hub.publish(added(big));
    sink.resume();
    await until(() => sink.events.length === 21);
    expect(Math.max(...sink.writes.map(({ length }) => length))).toBeLessThanOrEqual(SLICE_BYTES);
    expect(sink.writes.length).toBeLessThan(10);
  });

  test('gets a single event within the turn, and further ones in one write per turn', async () => {
    const hub = new Hub();
    const sink = connect(hub);
    hub.tryPublish(added(0));
    for (let i = 0; i < 10; i++) await Promise.resolve();
    expect(sink.objects).toEqual([0]);
    for (let i = 1; i <= 16; i++) hub.tryPublish(added(i));
    for (let i = 0; i < 10; i++) await Promise.resolve();
    expect(sink.writes).toHaveLength(1);
    await turn();
    await turn();
    expect(sink.objects).toHaveLength(17);
    expect(sink.writes).toHaveLength(2);
  });

  test('gets one burst per turn in one write each, whatever half of its queue is', async () => {
    const hub = new Hub({ capacity: 100 });
    const sink = connect(hub);
    for (let burst = 0; burst < 40; burst++) {
      for (let i = 0; i < 16; i++) hub.tryPublish(added(i));
      await turn();
    }
    await turn();
    expect(sink.objects).toHaveLength(640);
    expect(sink.writes.length).toBeLessThanOrEqual(41);
  });

  test('is sent the same bytes as others in step', async () => {
    const hub = new Hub();
    const [one, other] = [connect(hub), connect(hub)];
    for (let i = 0; i < 3; i++) {
      for (let j = 0; j < 5; j++) hub.tryPublish(added(j));
      await turn();
      await turn();
    }
    expect(one.writes.length).toBeGreaterThan(1);
    one.writes.forEach((bytes, at) => {
      expect(bytes).toBe(other.writes[at]);
    });
  });

  test('with room loses nothing in any burst, however long, and however small its queue', () => {
    const hub = new Hub({ capacity: 1 });
    const sink = connect(hub);
    const small = connect(new Hub({ capacity: 100 }), undefined, {});
    for (let i = 0; i < 5_000; i++) hub.tryPublish(added(i));
    expect(sink.objects).toHaveLength(5_000);
    expect(small.ended).toBeUndefined();
  });

  test('with a smaller queue of its own loses nothing either', () => {
    const hub = new Hub({ capacity: 1_000 });
    const sink = connect(hub, undefined, { options: { capacity: 3 } });
    for (let i = 0; i < 100; i++) hub.tryPublish(added(i));
    expect(sink.objects).toEqual(Array.from({ length: 100 }, (_, i) => i));
  });
});

describe('events sent beside the stream', () => {
  test('are discarded when the session is over or has ended, and the sender is told', async () => {
    const hub = new Hub();
    const [gone, ended] = [connect(hub).session, connect(hub, new Lingering()).session];
    gone.gone();
    ended.stop('timeout');
    expect(await Promise.all([gone.send([]), ended.send([])])).toEqual([false, false]);
    expect(ended.over).toBe(false);
  });

  test('that wait for room are given up when the client goes, and the sender is told', async () => {
    const hub = new Hub();
    const sink = connect(hub);
    sink.stall();
    await hub.publish(added(1));
    await until(() => sink.events.length === 1);
    const sent = sink.session.send([new Envelope(added('beside'), { sequence: 0 })]);
    sink.session.gone();
    expect(await sent).toBe(false);
  });
});

describe('the statistics of a session', () => {
  test('its identity, if there is one', () => {
    const hub = new Hub();
    expect(connect(hub).session.stats()).not.toHaveProperty('identity');
    expect(connect(hub, undefined, { identity: 'ann' }).session.stats()).toMatchObject({ id: 2, identity: 'ann' });
  });

  test('its lag: 0 while nothing waits for it, whatever its filter hides', async () => {
    const hub = new Hub();
    const [slow, blind] = [connect(hub), connect(hub, undefined, { options: { filter: () => false } })];
    for (let i = 0; i < 3; i++) await hub.publish(added(i));
    await until(() => slow.events.length === 3);
    slow.stall();
    await hub.publish(added(3));
    await until(() => slow.events.length === 4);
    for (let i = 0; i < 4; i++) await hub.publish(added(i));
    const sentBytes = slow.writes.reduce((sum, { length }) => sum + length, 0);
    expect(slow.session.stats()).toMatchObject({ delivered: 4, queued: 4, lag: 4, sentBytes });
    expect(blind.session.stats()).toMatchObject({ delivered: 0, queued: 0, lag: 0 });
  });

  test('queued events do not include unsent parts of a snapshot', async () => {
    const big = 'x'.repeat(SLICE_BYTES * 0.6);
    const sink = new FakeSink();
    sink.stall();
    connect(new Hub({ snapshot: () => [big, big, big] }), sink);
    await until(() => sink.writes.length > 0);
    await turn();
    expect(sink.session?.stats()).toMatchObject({ delivered: 0, queued: 0, dropped: 0 });
    sink.session?.gone();
    expect(sink.session?.stats()).toMatchObject({ queued: 0, dropped: 0 });
  });
});

describe('the end of a session', () => {
  test('calls all callbacks, in order; later ones at once', () => {
    const { session } = connect(new Hub());
    const told: string[] = [];
    for (const name of ['a', 'b', 'c']) session.whenOver(() => told.push(name));
    session.whenOver({ leave: () => told.push('d') });
    session.gone();
    session.gone();
    expect(told).toEqual(['a', 'b', 'c', 'd']);
    session.whenOver(() => told.push('e'));
    session.whenOver({ leave: () => told.push('f') });
    expect(told.slice(4)).toEqual(['e', 'f']);
  });

  test('happens once: what follows changes neither its reason nor its connection', () => {
    const notices: HubNotice[] = [];
    const hub = new Hub({ onNotice: (notice) => notices.push(notice) });
    const [gone, ended] = [connect(hub), connect(hub, new Lingering())];
    gone.session.gone();
    gone.session.cut('stalled');
    expect(gone.destroyed).toBe(false);
    ended.session.stop('timeout');
    ended.session.stop('failed', new Error('late'));
    ended.session.flush();
    expect(ended.ends).toBe(1);
    ended.session.gone();
    const closed = notices.filter(({ type }) => type === 'close') as (HubNotice & { reason: string })[];
    expect(closed.map(({ reason }) => reason)).toEqual(['gone', 'timeout']);
    expect(closed[1]).not.toHaveProperty('error');
  });

  test('has one reason, even if it takes time and another comes up: that counts only if it cuts the client', async () => {
    const notices: HubNotice[] = [];
    const hub = new Hub({ onNotice: (notice) => notices.push(notice) });
    const [slow, slower] = [connect(hub), connect(hub)];
    for (const sink of [slow, slower]) sink.stall();
    await hub.publish(added(1));
    await turn();
    const [first, second] = [new Error('first'), new Error('second')];
    for (const { session } of [slow, slower]) {
      session.stop('failed', first);
      session.stop('timeout', second);
    }
    slow.resume();
    await turn();
    slower.session.cut('stalled', second);
    const closed = notices.filter(({ type }) => type === 'close');
    expect(closed).toMatchObject([
      { reason: 'failed', error: first },
      { reason: 'stalled', error: first },
    ]);
  });

  test('may come from its own filter: the connection is destroyed, and is not told of another end', async () => {
    const notices: HubNotice[] = [];
    const hub = new Hub({ onNotice: (notice) => notices.push(notice) });
    const filter = (): boolean => hub.disconnect(() => true) > 0;
    const sink = connect(hub, new Lingering(), { options: { filter } });
    await hub.publish(added(1));
    await turn();
    expect([sink.destroyed, sink.ends, sink.session.reason]).toEqual([true, 0, 'disconnected']);
    expect(notices.at(-1)).toMatchObject({ type: 'close', reason: 'disconnected' });
  });

  test('by a cut has the first error: the reason for the cut, or else that of closing the connection', () => {
    const notices: HubNotice[] = [];
    const hub = new Hub({ onNotice: (notice) => notices.push(notice) });
    const [why, fault] = [new Error('why'), new Error('destroy')];
    for (const error of [why, undefined]) {
      const sink = connect(hub);
      sink.destroy = () => {
        throw fault;
      };
      sink.session.cut('failed', error);
    }
    expect(notices.flatMap((notice) => (notice.type === 'close' ? [notice.error] : []))).toEqual([why, fault]);
  });

  test('is not `expired` because of a 410 event about something else', async () => {
    const hub = new Hub();
    const sinks = [connect(hub), connect(hub, undefined, { options: { overflow: 'coalesce' } })];
    const object = toStatus({ code: 410, reason: 'Expired', message: 'another watch' });
    for (const type of ['ADDED', 'ERROR']) hub.tryPublish({ type, object });
    await hub.shutdown();
    expect(sinks.map(({ ended }) => ended)).toEqual(['complete', 'complete']);
  });

  test('in order has a last BOOKMARK unless it is for good, and a time to reconnect only from a departing server', async () => {
    const hub = new Hub({ random: () => 0.5 });
    const asked = { allowWatchBookmarks: true };
    const [timed, away] = [connect(hub, undefined, { asked }), connect(hub, undefined, { asked })];
    timed.stall();
    hub.tryPublish(added(1));
    await until(() => away.events.length === 2 && timed.events.length === 2);
    timed.session.stop('timeout');
    const over = hub.shutdown({ retryAfterMs: 1_000 });
    timed.resume();
    await over;
    expect([timed.ended, timed.retryMs, timed.events.at(-1)?.type]).toEqual(['timeout', undefined, 'BOOKMARK']);
    expect([away.ended, away.retryMs, away.events.at(-1)?.type]).toEqual(['goingAway', 500, 'BOOKMARK']);
  });
});

test('coalesce: a folded event changes its type, and only the last of a folded batch has a version', async () => {
  const hub = new Hub({ capacity: 4, overflow: 'coalesce', epoch: 'e' });
  const sink = connect(hub);
  const publish = async (type: string, name: string, i: number): Promise<void> => {
    await hub.publish({ type, object: { metadata: { name }, i } });
  };
  await publish('ADDED', 'first', 0);
  await until(() => sink.events.length === 1);
  sink.stall();
  await publish('MODIFIED', 'first', 1);
  await until(() => sink.events.length === 2);
  await publish('ADDED', 'a', 2);
  await publish('ADDED', 'b', 3);
  await publish('MODIFIED', 'a', 4);
  sink.resume();
  await until(() => sink.events.length === 4);
  expect(sink.events.slice(0, 2).map(({ resourceVersion }) => resourceVersion)).toEqual(['e.1', 'e.2']);
  expect(sink.events.slice(2)).toEqual([
    { type: 'ADDED', object: { metadata: { name: 'a' }, i: 4 } },
    { type: 'ADDED', object: { metadata: { name: 'b' }, i: 3 }, resourceVersion: 'e.5' },
  ]);
  await hub.shutdown();
});

test('coalesce: the version includes changes that cancelled out, so a client gets no DELETED for an unknown object', async () => {
  const hub = new Hub({ capacity: 4, overflow: 'coalesce', epoch: 'e' });
  const sink = connect(hub);
  sink.stall();
  const publish = async (type: string, name: string): Promise<void> => {
    await hub.publish({ type, object: { metadata: { name } } });
  };
  await publish('ADDED', 'first');
  await until(() => sink.events.length === 1);
  await publish('ADDED', 'brief');
  await publish('ADDED', 'a');
  await publish('ADDED', 'b');
  await publish('DELETED', 'brief');
  sink.resume();
  await until(() => sink.events.length === 3);
  expect(sink.events.slice(1)).toEqual([
    { type: 'ADDED', object: { metadata: { name: 'a' } } },
    { type: 'ADDED', object: { metadata: { name: 'b' } }, resourceVersion: 'e.5' },
  ]);
  await hub.shutdown();
});

test('coalesce: a watch that fails vouches only for what it delivered', async () => {
  const failing = ({ object }: WatchEvent): string => {
    if (object === 'bad') throw new Error('no key');
    return String(object);
  };
  const hub = new Hub({ capacity: 4, overflow: 'coalesce', epoch: 'e', keyOf: failing });
  const sink = connect(hub);
  sink.stall();
  await hub.publish({ type: 'MODIFIED', object: 'first' });
  await until(() => sink.events.length === 1);
  for (const object of ['a', 'b', 'a', 'bad', 'c']) await hub.publish({ type: 'MODIFIED', object });
  sink.resume();
  await until(() => sink.ended !== undefined);
  expect([sink.ended, sink.versions.slice(-2)]).toEqual(['failed', ['e.4', undefined]]); // the ERROR has none
  await hub.shutdown();
});
