// When handlers are told again of every object (R12.23 to R12.25, FIX12.5).
import { describe, expect, test } from 'vitest';
import { FakeClock } from '../../src/testing/index.ts';
import { type Clock, sleep } from '../../src/watch/clock.ts';
import { Calls, type Pod, pod, rig, settle } from './informer-support.ts';

describe('an informer', () => {
  test('TestResyncCheckPeriod: each has the period that it asks for, from when it was added', async () => {
    const fake = new FakeClock();
    const delays: number[] = [];
    const schedule: Clock['schedule'] = (delayMs, callback) => {
      delays.push(delayMs);
      return fake.schedule(delayMs, callback);
    };
    const { informer, start } = rig([pod('a', 1)], { clock: { now: () => fake.now(), schedule } });
    await start();
    const told: string[] = [];
    const add = async (name: string, resyncMs: number): Promise<void> => {
      await informer.addHandler({ onUpdate: () => void told.push(`${name} ${fake.now()}`) }, { resyncMs }).synced;
    };
    const newTimers = async (step: () => Promise<void> | void): Promise<number[]> => {
      delays.length = 0;
      await step();
      await settle();
      return [...delays];
    };
    expect(await newTimers(() => add('never', 0))).toEqual([]);
    expect(await newTimers(() => add('slow', 10_000))).toEqual([10_000]);
    fake.advance(9_000);
    expect(await newTimers(() => add('fast', 50))).toEqual([50]); // the timer is for the first that is due, and is set again
    expect(await newTimers(() => fake.advance(49))).toEqual([]);
    expect(await newTimers(() => fake.advance(1))).toEqual([50]);
    for (let times = 0; times < 20; times++) {
      fake.advance(50);
      await settle();
    }
    const slow = ['slow 10000'];
    expect(told.filter((each) => each.startsWith('slow'))).toEqual(slow);
    expect(told.filter((each) => !slow.includes(each))).toEqual(Array.from({ length: 21 }, (_, at) => `fast ${9_050 + 50 * at}`));
    await informer.stop();
    expect(fake.pending).toBe(0);
  });

  test('puts nobody off for a period because a timer of the host was a fraction of a millisecond early', async () => {
    const fake = new FakeClock();
    let fraction = 0.6;
    const clock: Clock = { now: () => fake.now() + fraction, schedule: (delayMs, callback) => fake.schedule(delayMs, callback) };
    const { informer, start } = rig([pod('a', 1)], { clock, resyncMs: 1_000 });
    const calls = new Calls();
    informer.addHandler(calls);
    await start();
    fake.advance(1_001);
    await settle();
    fraction = 0.2;
    fake.advance(1_001);
    await settle();
    expect(calls.take()).toEqual(['!a1', 'a1>a1', 'a1>a1']);
    await informer.stop();
  });

  test('tells a handler of the last object, too, if it needs longer for all of them than its period', async () => {
    const { informer, clock, start } = rig([pod('a', 1), pod('b', 1), pod('c', 1)], { resyncMs: 1_000 });
    const calls: string[] = [];
    informer.addHandler({
      onUpdate: async (_, { metadata }) => {
        calls.push(metadata.name);
        if (calls.length < 9) clock.advance(600);
      },
    });
    await start();
    clock.advance(1_000);
    await settle();
    expect(calls.slice(0, 7).join('')).toBe('abcabca'); // two of them fit into a period
    await informer.stop();
  });

  test('TestListenerResyncPeriods: tells each handler again in its own period, and nobody before (FIX12.5)', async () => {
    const { informer, clock, start } = rig([pod('a', 1), pod('b', 1)], { resyncMs: 1_000 });
    const calls = [new Calls(), new Calls(), new Calls()];
    informer.addHandler(calls[0] as Calls);
    informer.addHandler(calls[1] as Calls, { resyncMs: 2_000 });
    informer.addHandler(calls[2] as Calls, { resyncMs: 0 });
    await start();
    for (const each of calls) each.take();
    const later = async (ms: number): Promise<string[][]> => {
      clock.advance(ms);
      await settle();
      return calls.map((each) => each.take());
    };
    const again = ['a1>a1', 'b1>b1'];
    expect(await later(999)).toEqual([[], [], []]);
    expect(await later(1)).toEqual([again, [], []]);
    expect(await later(1_000)).toEqual([again, again, []]);
    await informer.stop();
    expect(await later(5_000)).toEqual([[], [], []]);
    expect(clock.pending).toBe(0);
  });

  test('counts from its start, not from when a handler was added', async () => {
    const { informer, clock, start } = rig([pod('a', 1)], { resyncMs: 1_000 });
    const calls = new Calls();
    informer.addHandler(calls);
    clock.advance(5_000);
    await start();
    clock.advance(999);
    await settle();
    expect(calls.take()).toEqual(['!a1']);
    clock.advance(1);
    await settle();
    expect(calls.take()).toEqual(['a1>a1']);
    await informer.stop();
  });

  test('TestListenerResyncPeriodsDelayed: a handler that comes later is told again a period after that', async () => {
    const { informer, clock, start } = rig([pod('a', 1)]);
    await start();
    clock.advance(5_500);
    const calls = new Calls();
    const handler = informer.addHandler(calls, { resyncMs: 2_000 });
    await handler.synced;
    calls.take();
    clock.advance(1_999);
    await settle();
    expect(calls.take()).toEqual([]);
    clock.advance(1);
    await settle();
    expect(calls.take()).toEqual(['a1>a1']);
    handler.remove();
    await settle();
    clock.advance(10_000);
    await settle();
    expect(calls.take()).toEqual([]);
    await informer.stop();
    expect(clock.pending).toBe(0);
  });

  test('tells of an object again in order with its changes, only what there is, and what the filter lets pass', async () => {
    const { informer, source, clock, start } = rig([pod('a', 1), pod('b', 1), pod('c', 1), pod('d', 0)], { resyncMs: 1_000 });
    const calls = new Calls();
    let open: (() => void)[] = [];
    const handler = informer.addHandler(
      {
        ...calls,
        onUpdate: (old: Pod, one: Pod) => {
          calls.onUpdate(old, one);
          return new Promise<void>((resolve) => void open.push(resolve));
        },
        onAdd: calls.onAdd,
        onDelete: calls.onDelete,
      },
      { filter: ({ value }) => value > 0 },
    );
    await start();
    calls.take();
    clock.advance(1_000);
    await settle();
    expect([calls.take(), handler.queued]).toEqual([['a1>a1'], 3]); // it stalls
    source.modify(pod('b', 2));
    source.delete(pod('c'));
    clock.advance(1_000); // due again: the next one begins when this one is over
    await settle();
    const next = async (): Promise<string[]> => {
      for (const each of open.splice(0)) each();
      await settle();
      return calls.take();
    };
    expect(await next()).toEqual(['b1>b2']);
    expect(await next()).toEqual(['-c1', 'b2>b2']);
    expect(await next()).toEqual(['a1>a1']);
    expect(await next()).toEqual(['b2>b2']);
    expect(await next()).toEqual([]);
    expect(handler.queued).toBe(0);
    open = [];
    await informer.stop();
  });

  test('a handler that needs longer than its period is told of every object, again and again', async () => {
    const { informer, clock, start } = rig([pod('a', 1), pod('b', 1), pod('c', 1)], { resyncMs: 1_000 });
    const calls = new Calls();
    informer.addHandler({
      onUpdate: (old, one) => {
        calls.onUpdate(old, one);
        return sleep(1_500, { clock });
      },
    });
    await start();
    for (let ms = 0; ms < 10_000; ms += 500) {
      clock.advance(500);
      await settle();
    }
    expect(calls.take()).toEqual(['a1>a1', 'b1>b1', 'c1>c1', 'a1>a1', 'b1>b1', 'c1>c1', 'a1>a1']);
    clock.advance(1_500);
    await informer.stop();
  });

  test('removing a handler drops what is left of its resync', async () => {
    const { informer, clock, start } = rig([pod('a', 1), pod('b', 1), pod('c', 1)], { resyncMs: 1_000 });
    const handler = informer.addHandler({ onUpdate: () => new Promise(() => {}) });
    await start();
    clock.advance(1_000);
    await settle();
    expect(handler.queued).toBe(2);
    handler.remove();
    expect(handler.queued).toBe(0);
    void informer.stop();
  });

  test.each([
    [undefined, 1_000],
    [0, 1_000],
    [10_000, 1_000],
    [10_000, 30],
    [300, 700],
  ])('with a resyncMs of %s obeys the %s of a handler, added before or after the start (R12.24)', async (resyncMs, own) => {
    const { informer, clock, start } = rig([pod('a', 1)], { resyncMs });
    const [before, after, none] = [new Calls(), new Calls(), new Calls()];
    informer.addHandler(before, { resyncMs: own });
    await start();
    informer.addHandler(after, { resyncMs: own });
    informer.addHandler(none, { resyncMs: 0 });
    await settle();
    for (const calls of [before, after, none]) calls.take();
    for (let n = 0; n < 8; n++) {
      clock.advance(own);
      await settle();
    }
    expect([before, after, none].map((calls) => calls.take().length)).toEqual([8, 8, 0]);
    await informer.stop();
    expect(clock.pending).toBe(0);
  });
});
