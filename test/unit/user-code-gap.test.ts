// Reentrant user code: in onGap.
import { describe, expect, test } from 'vitest';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import type { KeepingOverflow } from '../../src/watch/overflow.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { policiesWith } from '../policies.ts';
import { done, event, events, id, ids, readAll, type TestEvent } from './support.ts';

describe('from inside an onGap', () => {
  const act: [string, (watch: Watch<TestEvent>, broadcaster: Broadcaster<TestEvent>) => unknown, number[]][] = [
    ['publish', (_watch, broadcaster) => broadcaster.tryPublish(event(50)), [3, 4]],
    ['tryNext', (watch) => expect(watch.tryNext()).toBeUndefined(), [3, 4]],
    ['stop', (watch) => watch.stop(), [3, 4]],
    ['shutdown', (_watch, broadcaster) => broadcaster.shutdown(), [3, 4]],
    ['watch', (_watch, broadcaster) => broadcaster.watch(), [3, 4]],
  ];
  test.each(act)('%s: order is kept, and the gap is reported once', (_name, code, expected) => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 2, overflow: 'drop-newest' });
    let gaps = 0;
    const watch: Watch<TestEvent> = broadcaster.watch({
      onGap: () => {
        gaps++;
        code(watch, broadcaster);
      },
    });
    for (const one of events(0, 3)) broadcaster.tryPublish(one);
    expect(readAll(watch)).toHaveLength(2);
    for (const one of events(3, 5)) broadcaster.tryPublish(one);
    expect(ids(readAll(watch)).slice(0, 2)).toEqual(expected);
    expect(gaps).toBe(1);
  });

  test.each(policiesWith<KeepingOverflow>({ waits: false, cuts: false }))(
    'publishing (%s): a pending read has its event, and is not room for another',
    async (overflow) => {
      const broadcaster = new Broadcaster<TestEvent>({ capacity: 0, overflow });
      const looks: number[] = [];
      const watch: Watch<TestEvent> = broadcaster.watch({
        onGap: () => {
          broadcaster.tryPublish(event(2));
          looks.push(watch.queued);
        },
      });
      broadcaster.tryPublish(event(0));
      const read = watch.next();
      broadcaster.tryPublish(event(1));
      expect(id((await read).value)).toBe(1);
      expect(looks).toEqual([0]);
      expect(watch).toMatchObject({ queued: 0, dropped: 2 });
    },
  );

  test('publishing, and looking: an event that no read waited for has left its room to the next', () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 1, overflow: 'drop-newest' });
    const looks: number[] = [];
    const watch: Watch<TestEvent> = broadcaster.watch({
      onGap: () => {
        broadcaster.tryPublish(event(3));
        looks.push(watch.queued);
      },
    });
    for (const one of events(0, 2)) broadcaster.tryPublish(one);
    expect(watch.tryNext()).toEqual(event(0));
    broadcaster.tryPublish(event(2));
    expect(watch.tryNext()).toEqual(event(2));
    expect(looks).toEqual([1]);
    expect(watch).toMatchObject({ queued: 1, dropped: 1 });
  });

  test('return: the event after the gap is discarded, and the read ends', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 1, overflow: 'drop-oldest' });
    const watch: Watch<TestEvent> = broadcaster.watch({ onGap: () => void watch.return() });
    for (const one of events(0, 3)) broadcaster.tryPublish(one);
    expect(await watch.next()).toEqual(done);
    expect(watch).toMatchObject({ stopped: true, queued: 0, dropped: 3 });
  });

  test('publishing an event whose filter returns the watch: what a batch had collected is discarded, and counted', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 1, overflow: 'drop-newest' });
    const watch: Watch<TestEvent> = broadcaster.watch({
      filter: (one) => {
        if (id(one) === 4) void watch.return();
        return true;
      },
      onGap: () => {
        for (const one of events(3, 5)) broadcaster.tryPublish(one);
      },
    });
    for (const one of events(0, 2)) broadcaster.tryPublish(one);
    expect(watch.tryNext()).toEqual(event(0));
    const batch = watch.batches().next();
    broadcaster.tryPublish(event(2));
    expect(await batch).toEqual(done);
    expect(watch.dropped).toBe(4);
  });

  test('with drop-oldest, publishing until the queue is replaced: the event after the gap is still delivered', () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 1, overflow: 'drop-oldest' });
    const gaps: number[] = [];
    const watch = broadcaster.watch({
      onGap: (missed) => {
        gaps.push(missed);
        if (gaps.length === 1) for (const one of events(10, 40)) broadcaster.tryPublish(one);
      },
    });
    for (const one of events(0, 3)) broadcaster.tryPublish(one);
    expect(ids(readAll(watch))).toEqual([2, 39]);
    expect(gaps).toEqual([2, 29]);
    expect(watch.dropped).toBe(31);
  });

  test('an onGap that publishes with drop-oldest terminates: the event after the gap has already left the queue', () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 1, overflow: 'drop-oldest' });
    let told = 0;
    const watch = broadcaster.watch({
      onGap: () => {
        if (++told > 50) throw new Error('no end');
        broadcaster.tryPublish(event(100 + told));
      },
    });
    for (const one of events(0, 3)) broadcaster.tryPublish(one);
    expect(watch.tryNext()?.object.id).toBe(2);
    expect(told).toBe(1);
    expect(ids(readAll(watch))).toEqual([101]);
  });

  test('an onGap that returns its watch, and one that throws: the event in hand is lost, and counted', async () => {
    for (const how of ['return', 'throw'] as const) {
      const broadcaster = new Broadcaster<TestEvent>({ capacity: 2, overflow: 'drop-oldest' });
      const watch = broadcaster.watch({
        onGap: () => {
          if (how === 'throw') throw new Error('told');
          void watch.return();
        },
      });
      for (const one of events(0, 5)) broadcaster.tryPublish(one);
      if (how === 'throw') await expect(watch.next()).rejects.toThrow('told');
      else expect(await watch.next()).toEqual({ done: true, value: undefined });
      expect({ dropped: watch.dropped, queued: watch.queued }).toEqual({ dropped: 5, queued: 0 });
    }
  });

  test('an onGap that stops its watch: queued events stay readable, including the event in hand', () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 2, overflow: 'drop-oldest' });
    const watch = broadcaster.watch({ onGap: () => watch.stop() });
    for (const one of events(0, 5)) broadcaster.tryPublish(one);
    expect(ids(readAll(watch))).toEqual([3, 4]);
    expect(watch.dropped).toBe(3);
  });

  test('a read from inside onGap does not overtake the batch that is being taken, whoever shuts down', async () => {
    const broadcaster = new Broadcaster<TestEvent>();
    let inner: Promise<IteratorResult<TestEvent, undefined>> | undefined;
    const onGap = (): void => {
      inner = watch.next();
      void broadcaster.shutdown();
    };
    const watch = broadcaster.watch({ capacity: 5, overflow: 'drop-newest', onGap });
    for (const one of events(0, 7)) broadcaster.tryPublish(one); // 5 and 6 are lost
    for (let i = 0; i < 5; i++) watch.tryNext();
    broadcaster.tryPublish(event(7));
    expect(watch.queued).toBe(1); // 7 is set aside with its gap, what follows stays in the log
    for (const one of events(8, 11)) broadcaster.tryPublish(one);
    expect(ids((await watch.batches().next()).value ?? [])).toEqual([7, 8, 9, 10]);
    expect(await inner).toMatchObject({ done: true });
  });
});
