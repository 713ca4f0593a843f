// One timer for many connections.
import { expect, test } from 'vitest';
import type { Pulsed } from '../../src/bridge/transport/pulse.ts';
import { BEATS, Pulse, toPulse } from '../../src/bridge/transport/pulse.ts';
import { FakeClock } from '../../src/testing/fake-clock.ts';

function members(count: number): (Pulsed & { beats: number })[] {
  return Array.from({ length: count }, () => ({
    beats: 0,
    beat() {
      this.beats++;
    },
  }));
}

test('all members share one timer, which runs on for the others when one leaves, and stops with the last', () => {
  const clock = new FakeClock();
  const pulse = new Pulse(1_000, clock);
  const [a, b] = members(2) as [Pulsed & { beats: number }, Pulsed & { beats: number }];
  for (const member of [a, b]) pulse.add(member);
  expect(clock.pending).toBe(1);
  clock.advance(1_000);
  expect([a.beats, b.beats]).toEqual([BEATS, BEATS]);
  pulse.remove(a);
  clock.advance(1_000);
  expect([a.beats, b.beats, clock.pending]).toEqual([BEATS, 2 * BEATS, 1]);
  pulse.remove(a);
  expect(clock.pending).toBe(1);
  pulse.remove(b);
  expect(clock.pending).toBe(0);
  clock.advance(1_000);
  expect(b.beats).toBe(2 * BEATS);
  pulse.add(a);
  clock.advance(1_000);
  expect([a.beats, clock.pending]).toEqual([2 * BEATS, 1]);
});

test('members that leave and come during a beat leave one timer for those who stay, and none if all have gone', () => {
  const clock = new FakeClock();
  const pulse = new Pulse(1_000, clock);
  const [next] = members(1) as [Pulsed & { beats: number }];
  const leaving: Pulsed = {
    beat() {
      pulse.remove(leaving);
      pulse.add(next);
    },
  };
  pulse.add(leaving);
  clock.advance(1_000 / BEATS);
  expect(clock.pending).toBe(1);
  clock.advance(1_000);
  const beats = next.beats;
  clock.advance(1_000);
  expect([next.beats - beats, clock.pending]).toEqual([BEATS, 1]);
  next.beat = () => pulse.remove(next);
  clock.advance(1_000 / BEATS);
  expect(clock.pending).toBe(0);
});

test('an interval of 0 is no pulse', () => {
  const clock = new FakeClock();
  expect(toPulse(0, clock)).toBeUndefined();
  const [member] = members(1) as [Pulsed & { beats: number }];
  toPulse(1_000, clock)?.add(member);
  clock.advance(1_000);
  expect(member.beats).toBe(BEATS);
});
