// The publisher's side: the gate of `wait`, and that nothing else blocks.
import { describe, expect, test } from 'vitest';
import { Broadcaster, type BroadcasterOptions, type WatchOptions } from '../../src/broadcast/broadcaster.ts';
import { policiesWith } from '../policies.ts';
import {
  collect,
  event,
  events,
  fate,
  id,
  ids,
  range,
  readAll,
  type TestBroadcaster,
  type TestEvent,
  type TestWatch,
  turn,
} from './support.ts';

const make = (options?: BroadcasterOptions<TestEvent>): TestBroadcaster => new Broadcaster<TestEvent>(options);

describe("publish under 'wait'", () => {
  function stalled(options: WatchOptions<TestEvent> = {}): {
    broadcaster: TestBroadcaster;
    watch: TestWatch;
    publish: ReturnType<typeof fate<void>>;
  } {
    const broadcaster = make({ capacity: 1, incoming: 1 });
    const watch = broadcaster.watch(options);
    expect(broadcaster.tryPublish(event(0))).toBe(true);
    expect(broadcaster.tryPublish(event(1))).toBe(true);
    expect(broadcaster.tryPublish(event(2))).toBe(false);
    const publish = fate(broadcaster.publish(event(3)));
    return { broadcaster, watch, publish };
  }

  test('waits while the incoming queue is full, and tryPublish does not overtake it', async () => {
    const { broadcaster, watch, publish } = stalled();
    await turn();
    expect(publish.state).toBe('pending');
    expect(id(watch.tryNext())).toBe(0);
    await turn();
    expect(publish.state).toBe('resolved');
    expect(broadcaster.tryPublish(event(4))).toBe(false);
    expect(ids(readAll(watch))).toEqual([1, 3]);
    expect(broadcaster.tryPublish(event(5))).toBe(true);
  });

  const releases: [string, (watch: TestWatch, abort: AbortController) => unknown][] = [
    ['a read', (watch) => watch.next()],
    ['tryNext', (watch) => watch.tryNext()],
    ['a batch', (watch) => watch.batches().next()],
    ['stop', (watch) => watch.stop()],
    ['return', (watch) => watch.return()],
    ['leaving its batches', (watch) => watch.batches().return()],
    ['disposal', (watch) => watch[Symbol.dispose]()],
    ['an abort', (_watch, abort) => abort.abort()],
  ];
  test.each(releases)('is released at once by %s', async (_name, act) => {
    const abort = new AbortController();
    const { watch, publish } = stalled({ signal: abort.signal });
    await turn();
    expect(publish.state).toBe('pending');
    act(watch, abort);
    await turn();
    expect(publish.state).toBe('resolved');
  });

  test('is released by an onGap or filter that throws', async () => {
    let bad = false;
    const broadcaster = make({ capacity: 1, incoming: 0 });
    const watch = broadcaster.watch({
      filter: () => {
        if (bad) throw new Error('bad');
        return true;
      },
    });
    broadcaster.tryPublish(event(0));
    const publish = fate(broadcaster.publish(event(1)));
    await turn();
    expect(publish.state).toBe('pending');
    bad = true;
    watch.tryNext();
    await turn();
    expect(publish.state).toBe('resolved');
    expect(watch.stopped).toBe(true);
  });

  test('is released by an async onGap that rejects, which ends the watch after what is queued', async () => {
    const fault = new Error('gap');
    const onGap = async (): Promise<never> => {
      throw fault;
    };
    const broadcaster = make({ capacity: 1, overflow: 'drop-oldest' });
    const watch = broadcaster.watch({ onGap });
    for (const one of events(0, 3)) broadcaster.tryPublish(one);
    expect(id(watch.tryNext())).toBe(2);
    await turn();
    expect(watch.stopped).toBe(true);
    await expect(watch.next()).rejects.toBe(fault);
    expect(await watch.next()).toEqual({ done: true, value: undefined });
  });

  test('waiting publishes are accepted in the order of their calls', async () => {
    const broadcaster = make({ capacity: 1, incoming: 0 });
    const watch = broadcaster.watch();
    const order: number[] = [];
    const publishes = events(0, 6).map((one) => broadcaster.publish(one).then(() => order.push(one.object.id)));
    const got: number[] = [];
    while (got.length < 6) got.push(id((await watch.next()).value) as number);
    await Promise.all(publishes);
    expect(got).toEqual(range(0, 6));
    expect(order).toEqual(range(0, 6));
  });

  test.each([0, 1, 3])('maxPending %i: one more is refused with OVERLOADED and the limit', async (maxPending) => {
    const broadcaster = make({ capacity: 0, incoming: 0, maxPending });
    const watch = broadcaster.watch();
    const waiting = events(0, maxPending).map((one) => fate(broadcaster.publish(one)));
    const refused = fate(broadcaster.publish(event(99)));
    await turn();
    expect(waiting.map(({ state }) => state)).toEqual(new Array(maxPending).fill('pending'));
    expect(refused.error).toMatchObject({
      code: 'OVERLOADED',
      limit: maxPending,
      message: `publish: ${maxPending} publishes already wait for room (maxPending)`,
    });
    for (let i = 0; i < maxPending; i++) expect(id((await watch.next()).value)).toBe(i);
    const read = watch.next();
    await broadcaster.publish(event(7));
    expect(id((await read).value)).toBe(7);
  });

  test('without watchers everything is accepted, and nothing is kept', () => {
    const broadcaster = make({ capacity: 0, incoming: 0 });
    for (const one of events(0, 100)) expect(broadcaster.tryPublish(one)).toBe(true);
    expect(broadcaster.watch().queued).toBe(0);
  });

  test('one full watcher among many readers slows all down to its own pace, and loses nothing', async () => {
    const broadcaster = make({ capacity: 2, incoming: 1 });
    const got = Array.from({ length: 5 }, () => collect(broadcaster.watch()));
    const slow = broadcaster.watch();
    const publishing = (async () => {
      for (const one of events(0, 60)) await broadcaster.publish(one);
    })();
    const read: number[] = [];
    while (read.length < 60) {
      await turn();
      read.push(id(slow.tryNext()) as number);
    }
    await publishing;
    await broadcaster.shutdown();
    expect(read).toEqual(range(0, 60));
    for (const each of await Promise.all(got)) expect(each).toEqual(range(0, 60));
  });

  test.each(policiesWith({ waits: false }))("never waits for '%s'", (overflow) => {
    const broadcaster = make({ capacity: 0, incoming: 0, overflow });
    const watch = broadcaster.watch();
    for (const one of events(0, 500)) expect(broadcaster.tryPublish(one)).toBe(true);
    expect(watch.dropped).toBe(500);
  });
});

describe('publishing does not touch laggards', () => {
  test('a filter is not called while its watcher has room to lag', () => {
    const broadcaster = make({ capacity: 1000, overflow: 'drop-newest' });
    let asked = 0;
    const watch = broadcaster.watch({ filter: () => ++asked > 0 });
    for (const one of events(0, 1000)) broadcaster.tryPublish(one);
    expect(asked).toBe(0);
    expect(watch.queued).toBe(1000);
    expect(asked).toBe(1000);
  });

  test('the filter of a laggard is called once per event, a chunk at a time', () => {
    const broadcaster = make({ capacity: 16, overflow: 'drop-newest' });
    let asked = 0;
    const watch = broadcaster.watch({ filter: () => ++asked > 0 });
    for (const one of events(0, 1000)) broadcaster.tryPublish(one);
    expect(asked).toBeLessThanOrEqual(1000);
    expect(watch.dropped).toBe(984);
    expect(asked).toBe(1000);
  });
});
