// One timer for many connections.
import { expect, test } from 'vitest';
import { SharedTimer, TICKS, type TimerMember, toSharedTimer } from '../../src/bridge/transport/stall.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';

function members(count: number): (TimerMember & { ticks: number })[] {
  return Array.from({ length: count }, () => ({
    ticks: 0,
    tick() {
      this.ticks++;
    },
  }));
}

test('all members share one timer, which runs on for the others when one leaves, and stops with the last', () => {
  const clock = new FakeClock();
  const timer = new SharedTimer(1_000, clock);
  const [a, b] = members(2) as [TimerMember & { ticks: number }, TimerMember & { ticks: number }];
  for (const member of [a, b]) timer.add(member);
  expect(clock.pending).toBe(1);
  clock.advance(1_000);
  expect([a.ticks, b.ticks]).toEqual([TICKS, TICKS]);
  timer.remove(a);
  clock.advance(1_000);
  expect([a.ticks, b.ticks, clock.pending]).toEqual([TICKS, 2 * TICKS, 1]);
  timer.remove(a);
  expect(clock.pending).toBe(1);
  timer.remove(b);
  expect(clock.pending).toBe(0);
  clock.advance(1_000);
  expect(b.ticks).toBe(2 * TICKS);
  timer.add(a);
  clock.advance(1_000);
  expect([a.ticks, clock.pending]).toEqual([2 * TICKS, 1]);
});

test('members that leave and come during a tick leave one timer for those who stay, and none if all have gone', () => {
  const clock = new FakeClock();
  const timer = new SharedTimer(1_000, clock);
  const [next] = members(1) as [TimerMember & { ticks: number }];
  const leaving: TimerMember = {
    tick() {
      timer.remove(leaving);
      timer.add(next);
    },
  };
  timer.add(leaving);
  clock.advance(1_000 / TICKS);
  expect(clock.pending).toBe(1);
  clock.advance(1_000);
  const ticks = next.ticks;
  clock.advance(1_000);
  expect([next.ticks - ticks, clock.pending]).toEqual([TICKS, 1]);
  next.tick = () => timer.remove(next);
  clock.advance(1_000 / TICKS);
  expect(clock.pending).toBe(0);
});

test('an interval of 0 is no timer', () => {
  const clock = new FakeClock();
  expect(toSharedTimer(0, clock)).toBeUndefined();
  const [member] = members(1) as [TimerMember & { ticks: number }];
  toSharedTimer(1_000, clock)?.add(member);
  clock.advance(1_000);
  expect(member.ticks).toBe(TICKS);
});
