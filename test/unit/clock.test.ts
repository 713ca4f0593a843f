import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { sleep, systemClock, upkeepClock } from '../../src/watch/clock.ts';
import { isWatchError } from '../../src/watch/errors.ts';
import { thrown } from './support.ts';

describe('FakeClock', () => {
  test('advanceAsync lets code that awaits run at its own time, and what that schedules, too', async () => {
    const clock = new FakeClock();
    const times: number[] = [];
    const loop = async (): Promise<void> => {
      for (let n = 0; n < 4; n++) {
        await sleep(10, { clock });
        for (let turns = 0; turns < 50; turns++) await null; // however many promises are in between
        times.push(clock.now());
      }
    };
    const ended = loop();
    await clock.advanceAsync(35);
    expect([times, clock.now(), clock.pending]).toEqual([[10, 20, 30], 35, 1]);
    await clock.advanceAsync(5);
    await ended;
    expect([times, clock.now(), clock.pending]).toEqual([[10, 20, 30, 40], 40, 0]);
  });

  test('advanceAsync refuses what advance refuses, and rejects with what a callback throws', async () => {
    const clock = new FakeClock();
    await expect(clock.advanceAsync(-1)).rejects.toHaveProperty('code', 'INVALID_ARGUMENT');
    clock.schedule(1, () => {
      throw new Error('mine');
    });
    await expect(clock.advanceAsync(2)).rejects.toThrow('mine');
    expect(clock.pending).toBe(0);
  });

  test('advanceAsync works beside fake timers of a test runner', async () => {
    vi.useFakeTimers();
    try {
      const clock = new FakeClock();
      const slept = sleep(5, { clock });
      await clock.advanceAsync(5);
      await slept;
    } finally {
      vi.useRealTimers();
    }
  });

  test('stands still until it is advanced', () => {
    const clock = new FakeClock();
    expect(clock.now()).toBe(0);
    clock.advance(5);
    expect(clock.now()).toBe(5);
    expect(new FakeClock(100).now()).toBe(100);
  });

  test('calls what is due, in order of time and then of scheduling, each at its time', () => {
    const clock = new FakeClock(10);
    const calls: string[] = [];
    const note = (name: string) => () => calls.push(`${name}@${clock.now()}`);
    clock.schedule(30, note('c'));
    clock.schedule(10, note('a'));
    clock.schedule(10, note('b'));
    clock.schedule(31, note('late'));
    expect(clock.pending).toBe(4);
    clock.advance(30);
    expect(calls).toEqual(['a@20', 'b@20', 'c@40']);
    expect([clock.now(), clock.pending]).toEqual([40, 1]);
    clock.advance(1);
    expect(calls.at(-1)).toBe('late@41');
  });

  test('calls each callback once, and a cancelled one never', () => {
    const clock = new FakeClock();
    let calls = 0;
    clock.schedule(1, () => calls++);
    const cancel = clock.schedule(1, () => calls++);
    cancel();
    cancel();
    clock.advance(1);
    clock.advance(1);
    expect([calls, clock.pending]).toEqual([1, 0]);
  });

  test('also calls what callbacks schedule within the span', () => {
    const clock = new FakeClock();
    const times: number[] = [];
    const tick = (): void => {
      times.push(clock.now());
      clock.schedule(10, tick);
    };
    clock.schedule(10, tick);
    clock.advance(35);
    expect(times).toEqual([10, 20, 30]);
    expect([clock.now(), clock.pending]).toEqual([35, 1]);
  });

  test('a callback that is due at once waits until the clock advances; a callback may advance it', () => {
    const clock = new FakeClock();
    const calls: number[] = [];
    clock.schedule(-5, () => {
      calls.push(clock.now());
      clock.advance(100);
    });
    expect(calls).toEqual([]);
    clock.advance(0);
    expect(calls).toEqual([0]);
    expect(clock.now()).toBe(100);
  });

  test.each([-1, Number.NaN, Number.POSITIVE_INFINITY])('refuses to advance by %s', (ms) => {
    const failure = thrown(() => new FakeClock().advance(ms));
    expect(isWatchError(failure, 'INVALID_ARGUMENT')).toBe(true);
  });
});

describe('sleep', () => {
  test('resolves after its time, and leaves no timer or listener', async () => {
    const clock = new FakeClock();
    const controller = new AbortController();
    const removed = vi.spyOn(controller.signal, 'removeEventListener');
    let woke = false;
    const sleeping = sleep(10, { clock, signal: controller.signal }).then(() => {
      woke = true;
    });
    clock.advance(9);
    await Promise.resolve();
    expect([woke, clock.pending]).toEqual([false, 1]);
    clock.advance(1);
    await sleeping;
    expect(clock.pending).toBe(0);
    expect(removed).toHaveBeenCalledTimes(1);
    controller.abort();
  });

  test('rejects with the signal’s reason, and removes its timer', async () => {
    const clock = new FakeClock();
    const controller = new AbortController();
    const reason = new Error('enough');
    const sleeping = sleep(10, { clock, signal: controller.signal });
    controller.abort(reason);
    await expect(sleeping).rejects.toBe(reason);
    expect(clock.pending).toBe(0);
    await expect(sleep(10, { clock, signal: controller.signal })).rejects.toBe(reason);
    expect(clock.pending).toBe(0);
  });
});

describe('systemClock', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test('asks Node for no negative delay, of which it warns', () => {
    const asked = vi.spyOn(globalThis, 'setTimeout');
    systemClock.schedule(-0.5, () => undefined)();
    expect(asked.mock.calls[0]?.[1]).toBe(0);
    asked.mockRestore();
  });

  test('uses the host’s clock and timers', () => {
    const before = systemClock.now();
    const calls: string[] = [];
    systemClock.schedule(10, () => calls.push('called'));
    const cancel = systemClock.schedule(10, () => calls.push('cancelled'));
    cancel();
    vi.advanceTimersByTime(9);
    expect(calls).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(calls).toEqual(['called']);
    expect(systemClock.now() - before).toBe(10);
    expect(vi.getTimerCount()).toBe(0);
  });

  test.each([
    ['systemClock', systemClock],
    ['upkeepClock', upkeepClock(systemClock)],
  ])('%s calls neither early nor late what is farther away than a timer can be', (_name, clock) => {
    const calls: string[] = [];
    const delayMs = 3 * 2 ** 31;
    clock.schedule(delayMs, () => calls.push('called'));
    const cancel = clock.schedule(delayMs, () => calls.push('cancelled'));
    vi.advanceTimersByTime(delayMs - 1);
    expect(calls).toEqual([]);
    cancel();
    vi.advanceTimersByTime(1);
    expect(calls).toEqual(['called']);
    expect(vi.getTimerCount()).toBe(0);
    const never = clock.schedule(Number.POSITIVE_INFINITY, () => calls.push('never'));
    vi.advanceTimersByTime(2 ** 33);
    expect(calls).toEqual(['called']);
    never();
    expect(vi.getTimerCount()).toBe(0);
  });

  test('no part of a long wait for upkeep keeps the process alive', () => {
    vi.useRealTimers();
    const timers: ReturnType<typeof setTimeout>[] = [];
    const parts: (() => void)[] = [];
    const { setTimeout: real } = globalThis;
    vi.spyOn(globalThis, 'setTimeout').mockImplementation(((callback: () => void, delayMs: number) => {
      parts.push(callback);
      timers.push(real(callback, delayMs));
      return timers.at(-1);
    }) as typeof setTimeout);
    const cancel = upkeepClock(systemClock).schedule(2 ** 32, () => undefined);
    parts[0]?.();
    parts[1]?.();
    expect(timers.map((timer) => timer.hasRef())).toEqual([false, false, false]);
    cancel();
    for (const timer of timers) clearTimeout(timer);
    vi.restoreAllMocks();
  });

  test.each([2 ** 31, Number.POSITIVE_INFINITY])('waits long for a delay of %d ms, instead of not at all', (delayMs) => {
    const calls: string[] = [];
    systemClock.schedule(delayMs, () => calls.push('called'));
    vi.advanceTimersByTime(86_400_000);
    expect(calls).toEqual([]);
  });
});
