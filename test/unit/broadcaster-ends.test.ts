// How watches and broadcasters end: abort signals, shutdown.
import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { Broadcaster, type BroadcasterOptions } from '../../src/broadcast/broadcaster.ts';
import { OVERFLOWS } from '../../src/watch/overflow.ts';
import {
  collect,
  done,
  event,
  events,
  fate,
  ids,
  range,
  readAll,
  type TestBroadcaster,
  type TestEvent,
  type TestWatch,
  thrown,
  turn,
} from './support.ts';

const listeners = (signal: AbortSignal): number => getEventListeners(signal, 'abort').length;
const make = (options?: BroadcasterOptions<TestEvent>): TestBroadcaster => new Broadcaster<TestEvent>(options);

describe('abort signals', () => {
  test('an aborted signal throws its reason', () => {
    const reason = new Error('never mind');
    expect(thrown(() => make().watch({ signal: AbortSignal.abort(reason) }))).toBe(reason);
  });

  test('an abort stops the watch: queued events stay readable', async () => {
    const abort = new AbortController();
    const broadcaster = make();
    const watch = broadcaster.watch({ signal: abort.signal });
    broadcaster.tryPublish(event(0));
    abort.abort();
    broadcaster.tryPublish(event(1));
    expect(watch.stopped).toBe(true);
    expect(listeners(abort.signal)).toBe(0);
    expect(await collect(watch)).toEqual([0]);
  });

  const ends: [string, (watch: TestWatch, broadcaster: TestBroadcaster) => unknown][] = [
    ['stop', (watch) => watch.stop()],
    ['return', (watch) => watch.return()],
    ['shutdown', (_watch, broadcaster) => broadcaster.shutdown()],
    [
      'being cut and read out',
      (watch, broadcaster) => {
        for (const one of events(0, 5)) broadcaster.tryPublish(one);
        readAll(watch);
      },
    ],
    [
      'a throwing filter',
      (watch, broadcaster) => {
        broadcaster.tryPublish(event(13));
        expect(watch.stopped).toBe(true);
      },
    ],
  ];
  test.each(ends)('the listener is removed after %s', async (_name, act) => {
    const { signal } = new AbortController();
    const broadcaster = make({ capacity: 1, overflow: 'disconnect' });
    const filter = (one: TestEvent): boolean => {
      if (one.object.id === 13) throw new Error('13');
      return true;
    };
    const watch = broadcaster.watch({ signal, filter });
    expect(listeners(signal)).toBe(1);
    await act(watch, broadcaster);
    expect(listeners(signal)).toBe(0);
  });

  test('a thousand watches that have ended leave no listener behind', async () => {
    const { signal } = new AbortController();
    const broadcaster = make();
    for (let i = 0; i < 1000; i++) {
      const watch = broadcaster.watch({ signal });
      if (i % 2 === 0) watch.stop();
      else await watch.return();
    }
    expect(listeners(signal)).toBe(0);
  });

  test('a signal of many watches has one listener, until the last watch has left, and stops them in order', async () => {
    const abort = new AbortController();
    const { signal } = abort;
    const broadcaster = make();
    const watches = range(0, 20).map(() => broadcaster.watch({ signal }));
    expect(listeners(signal)).toBe(1);
    for (const watch of watches.splice(5)) watch.stop();
    expect(listeners(signal)).toBe(1);
    const order: number[] = [];
    const ended = watches.map((watch, i) => watch.next().then(() => order.push(i)));
    abort.abort();
    expect(watches.every((watch) => watch.stopped)).toBe(true);
    expect(listeners(signal)).toBe(0);
    await Promise.all(ended);
    expect(order).toEqual([0, 1, 2, 3, 4]);
    expect(broadcaster.watchers).toBe(0);
  });

  test('two signals stop their own watches only; one signal stops watches of two broadcasters', () => {
    const [one, other] = [new AbortController(), new AbortController()];
    const [left, right] = [make(), make()];
    const watches = [
      left.watch({ signal: one.signal }),
      left.watch({ signal: other.signal }),
      right.watch({ signal: one.signal }),
    ];
    one.abort();
    expect(watches.map((watch) => watch.stopped)).toEqual([true, false, true]);
    expect([listeners(one.signal), listeners(other.signal)]).toEqual([0, 1]);
  });

  test('an abort also releases a watch that was cut and is not read to its end yet', async () => {
    for (const overflow of ['disconnect', 'coalesce'] as const) {
      const abort = new AbortController();
      const broadcaster = make({ capacity: 1, overflow });
      const watch = broadcaster.watch({ signal: abort.signal });
      for (const one of events(0, 500)) broadcaster.tryPublish(one);
      abort.abort();
      expect(listeners(abort.signal)).toBe(0);
      expect((await collect(watch)).length).toBeLessThan(3);
    }
  });

  test('user code that runs while one watch stops may stop the others, or watch with another signal', () => {
    const abort = new AbortController();
    const { signal } = abort;
    const broadcaster = make({ capacity: 1, overflow: 'drop-newest' });
    const watches: TestWatch[] = [];
    let asked = 0;
    const filter = (): boolean => {
      // What a full watcher was not asked about yet, it is asked about when it is stopped.
      if (++asked > 1) for (const watch of watches) watch.stop();
      return true;
    };
    watches.push(broadcaster.watch({ signal, filter }), broadcaster.watch({ signal }), broadcaster.watch({ signal }));
    for (const one of events(0, 3)) broadcaster.tryPublish(one);
    abort.abort();
    expect(watches.map((watch) => watch.stopped)).toEqual([true, true, true]);
    expect(listeners(signal)).toBe(0);
    expect(broadcaster.watchers).toBe(0);
  });
});

describe('shutdown', () => {
  test('ends every watch; queued events stay readable; the counts no longer change', async () => {
    for (const overflow of OVERFLOWS) {
      const broadcaster = make({ capacity: 3, overflow });
      const watch = broadcaster.watch();
      for (const one of events(0, 3)) broadcaster.tryPublish(one);
      await broadcaster.shutdown();
      expect(watch).toMatchObject({ stopped: true, queued: 3, dropped: 0 });
      expect(await collect(watch)).toEqual([0, 1, 2]);
      expect(broadcaster.watchers).toBe(0);
    }
  });

  test('settles pending reads', async () => {
    const broadcaster = make();
    const watch = broadcaster.watch();
    const reads = [watch.next(), watch.batches().next(), watch.next()];
    await broadcaster.shutdown();
    expect(await Promise.all(reads)).toEqual([done, done, done]);
    expect(broadcaster.watchers).toBe(0);
  });

  test('is idempotent', async () => {
    const broadcaster = make();
    const first = broadcaster.shutdown();
    expect(broadcaster.shutdown()).toBe(first);
    await first;
    await broadcaster.shutdown();
    await broadcaster.shutdown({ signal: AbortSignal.abort() });
  });

  test('with a stalled watcher: refuses new events, delivers accepted and waiting ones, then is done', async () => {
    const broadcaster = make({ capacity: 1, incoming: 1 });
    const watch = broadcaster.watch();
    const publishes = events(0, 5).map((one) => fate(broadcaster.publish(one)));
    const closed = fate(broadcaster.shutdown());
    await turn();
    expect(closed.state).toBe('pending');
    expect(publishes.map(({ state }) => state)).toEqual(['resolved', 'resolved', 'pending', 'pending', 'pending']);
    expect(thrown(() => broadcaster.tryPublish(event(9)))).toMatchObject({ code: 'CLOSED' });
    expect(thrown(() => broadcaster.watch())).toMatchObject({ code: 'CLOSED' });
    expect(watch.stopped).toBe(false);
    expect(await collect(watch)).toEqual(range(0, 5));
    await turn();
    expect(closed.state).toBe('resolved');
    expect(publishes.every(({ state }) => state === 'resolved')).toBe(true);
  });

  test('with a stalled watcher: accepts nothing more, even if there is room', async () => {
    const broadcaster = make({ capacity: 1, incoming: 5 });
    const watch = broadcaster.watch();
    for (const one of events(0, 2)) expect(broadcaster.tryPublish(one)).toBe(true);
    const closed = broadcaster.shutdown();
    const refusal = { code: 'CLOSED', message: expect.stringContaining('publish') };
    expect(thrown(() => broadcaster.tryPublish(event(2)))).toMatchObject(refusal);
    await expect(broadcaster.publish(event(2))).rejects.toMatchObject(refusal);
    expect(await collect(watch)).toEqual([0, 1]);
    await closed;
  });

  test('with a stalled watcher: finishes when that one stops', async () => {
    const broadcaster = make({ capacity: 1, incoming: 1 });
    const watch = broadcaster.watch();
    for (const one of events(0, 2)) broadcaster.tryPublish(one);
    const closed = broadcaster.shutdown();
    watch.stop();
    await closed;
    expect(ids(readAll(watch))).toEqual([0]);
  });

  function stalled(): {
    broadcaster: TestBroadcaster;
    watch: TestWatch;
    quick: TestWatch;
    publish: ReturnType<typeof fate<void>>;
  } {
    const broadcaster = make({ capacity: 1, incoming: 2 });
    const watch = broadcaster.watch();
    const quick = broadcaster.watch({ capacity: 50 });
    for (const one of events(0, 3)) broadcaster.tryPublish(one);
    return { broadcaster, watch, quick, publish: fate(broadcaster.publish(event(3))) };
  }

  test('an aborted signal ends it at once: stalled watchers lose, and count, what does not fit', async () => {
    const { broadcaster, watch, quick, publish } = stalled();
    const reason = new Error('enough');
    const signal = AbortSignal.abort(reason);
    await expect(broadcaster.shutdown({ signal })).rejects.toBe(reason);
    expect(publish.error).toMatchObject({ code: 'CLOSED', message: 'publish: shut down before there was room' });
    expect(watch).toMatchObject({ stopped: true, queued: 1, dropped: 2 });
    expect(await collect(watch)).toEqual([0]);
    expect(await collect(quick)).toEqual([0, 1, 2]);
    expect(listeners(signal)).toBe(0);
    await broadcaster.shutdown();
  });

  test('ends when the signal aborts; a shutdown called without a signal resolves', async () => {
    const { broadcaster, watch, publish } = stalled();
    const abort = new AbortController();
    const plain = fate(broadcaster.shutdown());
    const limited = fate(broadcaster.shutdown({ signal: abort.signal }));
    await turn();
    expect([plain.state, limited.state, publish.state]).toEqual(['pending', 'pending', 'pending']);
    expect(listeners(abort.signal)).toBe(1);
    const reason = new Error('enough');
    abort.abort(reason);
    await turn();
    expect([plain.state, limited.error, publish.state]).toEqual(['resolved', reason, 'rejected']);
    expect(listeners(abort.signal)).toBe(0);
    expect(watch.dropped).toBe(2);
  });

  test('the listener on a signal that never aborts is removed when it is done', async () => {
    const { broadcaster, watch } = stalled();
    const { signal } = new AbortController();
    const closed = broadcaster.shutdown({ signal });
    expect(listeners(signal)).toBe(1);
    watch.stop();
    await closed;
    expect(listeners(signal)).toBe(0);
  });

  test('without stalled watchers, an aborted signal changes nothing', async () => {
    const broadcaster = make();
    const watch = broadcaster.watch();
    broadcaster.tryPublish(event(0));
    await broadcaster.shutdown({ signal: AbortSignal.abort() });
    expect(await collect(watch)).toEqual([0]);
  });

  test('losses of a watcher full of gaps are still counted after the end', async () => {
    const broadcaster = make({ capacity: 2, overflow: 'drop-oldest' });
    const watch = broadcaster.watch();
    for (const one of events(0, 100)) broadcaster.tryPublish(one);
    await broadcaster.shutdown();
    expect(watch).toMatchObject({ queued: 2, dropped: 98, stopped: true });
    expect(await watch.return()).toEqual(done);
    expect(watch).toMatchObject({ queued: 0, dropped: 100 });
  });

  test('after the broadcaster has shut down, every watch has ended, read or not', async () => {
    const broadcaster = new Broadcaster<TestEvent>();
    broadcaster.watch();
    broadcaster.tryPublish(event(0));
    expect(broadcaster.watchers).toBe(1);
    await broadcaster.shutdown();
    expect(broadcaster.watchers).toBe(0);
  });
});
