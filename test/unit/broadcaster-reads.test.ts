// What consumers of a broadcaster read, with every kind of read.
import { describe, expect, test } from 'vitest';
import { Broadcaster, type BroadcasterOptions } from '../../src/broadcast/broadcaster.ts';
import { OVERFLOWS } from '../../src/watch/overflow.ts';
import {
  done,
  event,
  events,
  fate,
  id,
  ids,
  range,
  readAll,
  readAllBut,
  type TestBroadcaster,
  type TestEvent,
  type TestWatch,
  turn,
} from './support.ts';

const make = (options?: BroadcasterOptions<TestEvent>): TestBroadcaster => new Broadcaster<TestEvent>(options);

describe('reads', () => {
  test('several may be pending: first come, first served', async () => {
    const broadcaster = make({ capacity: 0 });
    const watch = broadcaster.watch();
    const reads = Array.from({ length: 5 }, () => watch.next());
    for (const one of events(0, 5)) expect(broadcaster.tryPublish(one)).toBe(true);
    expect((await Promise.all(reads)).map(({ value }) => id(value))).toEqual(range(0, 5));
  });

  test.each(OVERFLOWS)("'%s': each pending read is room for one more event", async (overflow) => {
    const broadcaster = make({ capacity: 0, overflow, incoming: 0 });
    const watch = broadcaster.watch();
    const reads = [watch.next(), watch.next(), watch.next()];
    const accepted = events(0, 3).filter((one) => broadcaster.tryPublish(one));
    expect(accepted).toHaveLength(3);
    expect((await Promise.all(reads)).map(({ value }) => id(value))).toEqual([0, 1, 2]);
    expect(watch).toMatchObject({ queued: 0, dropped: 0, stopped: false });
  });

  test.each([
    ['stop', (watch: TestWatch) => watch.stop()],
    ['return', (watch: TestWatch) => watch.return()],
    ['dispose', (watch: TestWatch) => watch[Symbol.dispose]()],
    ['asyncDispose', (watch: TestWatch) => watch[Symbol.asyncDispose]()],
  ])('%s settles all pending reads, and later ones', async (_name, act) => {
    const broadcaster = make();
    const watch = broadcaster.watch();
    const reads = [watch.next(), watch.batches().next(), watch.next()];
    await act(watch);
    expect(await Promise.all(reads)).toEqual([done, done, done]);
    expect(await watch.next()).toEqual(done);
    expect(broadcaster.watchers).toBe(0);
  });

  test('stop keeps queued events readable, accepts no more, and counts no later ones', async () => {
    for (const overflow of OVERFLOWS) {
      const broadcaster = make({ capacity: 3, overflow, incoming: 0 });
      const watch = broadcaster.watch();
      for (const one of events(0, 3)) broadcaster.tryPublish(one);
      watch.stop();
      watch.stop();
      for (const one of events(3, 100)) expect(broadcaster.tryPublish(one)).toBe(true);
      expect(watch).toMatchObject({ stopped: true, queued: 3, dropped: 0 });
      expect(ids(readAll(watch))).toEqual([0, 1, 2]);
      expect(await watch.next()).toEqual(done);
    }
  });

  test('stop keeps events that were set aside, and later ones still in the log', () => {
    const prefixed = make();
    const first = prefixed.watch({ prefix: events(0, 2) });
    for (const one of events(2, 4)) prefixed.tryPublish(one);
    first.stop();
    expect(ids(readAll(first))).toEqual([0, 1, 2, 3]);

    const gapped = make({ capacity: 3, overflow: 'drop-newest' });
    const gaps: number[] = [];
    const second = gapped.watch({ onGap: (missed) => gaps.push(missed) });
    for (const one of events(0, 5)) gapped.tryPublish(one); // 3 and 4 are lost
    expect([id(second.tryNext()), id(second.tryNext())]).toEqual([0, 1]);
    gapped.tryPublish(event(5));
    expect(second.queued).toBe(2); // 5 is set aside with its gap
    gapped.tryPublish(event(6));
    second.stop();
    expect(second).toMatchObject({ queued: 3, dropped: 2 });
    expect([ids(readAll(second)), gaps]).toEqual([[2, 5, 6], [2]]);
  });

  test('stop after a cut keeps the queued events, and then the ERROR', () => {
    const broadcaster = make({ capacity: 2, overflow: 'disconnect' });
    const watch = broadcaster.watch();
    for (const one of events(0, 5)) broadcaster.tryPublish(one);
    watch.stop();
    for (const one of events(5, 9)) broadcaster.tryPublish(one);
    const read = readAll(watch);
    expect(ids(read.slice(0, 2))).toEqual([0, 1]);
    expect(read[2]).toMatchObject({ type: 'ERROR', object: { details: { missed: 3 } } });
    expect(read).toHaveLength(3);
    expect(broadcaster.watchers).toBe(0);
  });

  test('return discards queued events, and counts them', async () => {
    for (const overflow of OVERFLOWS) {
      const broadcaster = make({ capacity: 5, overflow });
      const watch = broadcaster.watch();
      for (const one of events(0, 4)) broadcaster.tryPublish(one);
      watch.tryNext();
      await watch.return();
      expect(watch).toMatchObject({ stopped: true, queued: 0, dropped: 3 });
      for (const one of events(4, 9)) broadcaster.tryPublish(one);
      expect(watch.dropped).toBe(3);
      expect(await watch.next()).toEqual(done);
    }
  });

  test('return after a cut ends the watch at once, without the ERROR', async () => {
    const broadcaster = make({ capacity: 0, overflow: 'disconnect' });
    const watch = broadcaster.watch();
    broadcaster.tryPublish(event(0));
    await watch.return();
    expect(watch.tryNext()).toBeUndefined();
    expect(watch).toMatchObject({ stopped: true, dropped: 1 });
  });

  test('break returns the watch, and so does leaving a loop over batches', async () => {
    const broadcaster = make();
    const [a, b] = [broadcaster.watch(), broadcaster.watch()];
    for (const one of events(0, 4)) broadcaster.tryPublish(one);
    for await (const one of a) if (id(one) === 1) break;
    for await (const batch of b.batches()) {
      expect(ids(batch)).toEqual(range(0, 4));
      break;
    }
    expect(broadcaster.watchers).toBe(0);
    expect([a.dropped, b.dropped]).toEqual([2, 0]);
  });

  test('watchers in step share batches; one out of step has its own', async () => {
    const broadcaster = make();
    const [a, b, c] = [broadcaster.watch(), broadcaster.watch(), broadcaster.watch()];
    const parked = [a, b, c].map((watch) => watch.batches().next());
    for (const one of events(0, 5)) broadcaster.tryPublish(one);
    const got = await Promise.all(parked);
    expect(ids(got[0]!.value ?? [])).toEqual(range(0, 5));
    expect(got[1]!.value).toBe(got[0]!.value);
    expect(got[2]!.value).toBe(got[0]!.value);
    for (const one of events(5, 8)) broadcaster.tryPublish(one);
    c.tryNext();
    const [own, other, late] = [await a.batches().next(), await b.batches().next(), await c.batches().next()];
    expect(other.value).toBe(own.value);
    expect(ids(late.value ?? [])).toEqual([6, 7]);
    expect(ids(own.value ?? [])).toEqual([5, 6, 7]);
  });

  test('a batch followed by another read takes one event', async () => {
    const broadcaster = make();
    const watch = broadcaster.watch();
    const [batch, read] = [watch.batches().next(), watch.next()];
    for (const one of events(0, 3)) broadcaster.tryPublish(one);
    expect(ids((await batch).value ?? [])).toEqual([0]);
    expect(id((await read).value)).toBe(1);
    expect(watch.queued).toBe(1);
  });

  test('a batch takes events that were set aside and later ones, in order', async () => {
    const broadcaster = make({ capacity: 4, overflow: 'drop-oldest' });
    const watch = broadcaster.watch();
    for (const one of events(0, 6)) broadcaster.tryPublish(one);
    expect(watch.queued).toBe(4);
    expect(ids((await watch.batches().next()).value ?? [])).toEqual([2, 3, 4, 5]);
  });

  test('a burst wakes a pending read once, with all of its events', async () => {
    const broadcaster = make();
    const watch = broadcaster.watch();
    const sizes: number[] = [];
    const reading = (async () => {
      for await (const batch of watch.batches()) sizes.push(batch.length);
    })();
    await turn();
    for (const one of events(0, 64)) broadcaster.tryPublish(one);
    await turn();
    for (const one of events(0, 3)) broadcaster.tryPublish(one);
    await turn();
    await broadcaster.shutdown();
    await reading;
    expect(sizes).toEqual([64, 3]);
  });

  test('a thousand watchers that wait and leave do not remain parked', async () => {
    const broadcaster = make();
    const stays = broadcaster.watch();
    const read = stays.next();
    for (let i = 0; i < 1000; i++) {
      const watch = broadcaster.watch();
      void watch.next();
      await watch.return();
    }
    expect(broadcaster.watchers).toBe(1);
    await broadcaster.publish(event(1));
    expect(id((await read).value)).toBe(1);
  });

  test('a watch that failed while its reads were pending is served, even if another leaves the park before', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 0, incoming: 0 });
    const other = broadcaster.watch({ capacity: 5, filter: () => false });
    const watch = broadcaster.watch({
      capacity: 5,
      overflow: 'drop-newest',
      filter: ({ object }) => {
        if (object.id === 16) throw new Error('sixteen');
        return object.id > 0;
      },
    });
    void other.next();
    const reads = [fate(watch.next()), fate(watch.next())];
    for (const one of events(0, 32)) broadcaster.tryPublish(one);
    other.stop();
    await turn();
    expect(reads.map(({ value }) => value?.value?.object.id)).toEqual([1, 2]);
    expect(ids(readAllBut(watch, 'sixteen'))).toEqual([3, 4, 5, 6, 7]);
  });
});
