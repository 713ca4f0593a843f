// Hosts and clocks of users exist whose time goes back. What limits rates must not stop for as long as it went.
import { expect, test } from 'vitest';
import { Rates } from '../../src/apiserver/http/quotas.ts';
import { EventCorrelator, type Occurrence } from '../../src/operator/event-series.ts';
import { Backoff } from '../../src/watch/backoff.ts';
import { bucket } from '../../src/workqueue/index.ts';

const HOUR_MS = 3_600_000;

test('a bucket delays no key for longer than before, and goes on from there', () => {
  let nowMs = 2 * HOUR_MS;
  const limiter = bucket({ perSecond: 10, burst: 2, clock: { now: () => nowMs, schedule: () => () => undefined } });
  expect([limiter.when('a'), limiter.when('b')]).toEqual([0, 0]);
  nowMs -= HOUR_MS;
  expect([limiter.when('c'), limiter.when('d')]).toEqual([100, 200]);
  nowMs += 200;
  expect(limiter.when('e')).toBe(100);
});

test('a server counts what it has admitted for a second from then on', () => {
  const rates = new Rates(1);
  expect(rates.take('a', 2 * HOUR_MS)).toBe(true);
  expect([rates.take('a', HOUR_MS), rates.take('b', HOUR_MS)]).toEqual([false, true]);
  expect([rates.take('a', HOUR_MS + 999), rates.take('a', HOUR_MS + 1_100)]).toEqual([false, true]);
});

test('events about an object are written again after as long as ever', () => {
  const limits = { burst: 1, refillMs: 1_000, maxSimilar: 10, similarMs: 1, maxQueuedEvents: 10, maxSeries: 10 };
  const correlator = new EventCorrelator('events.k8s.io/v1', limits, (object) => object);
  let reasons = 0;
  const due = (at: number): boolean => {
    const regarding = { apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: 'a', uid: 'u' };
    const more = { related: undefined, type: 'Normal', action: '', message: '', annotations: undefined } as const;
    const occurrence: Occurrence = { regarding, reason: `${++reasons}`, ...more };
    return correlator.observe(occurrence, { at, date: 0 }, () => false).due;
  };
  expect([due(2 * HOUR_MS), due(2 * HOUR_MS)]).toEqual([true, false]);
  expect([due(HOUR_MS), due(HOUR_MS + 999), due(HOUR_MS + 1_000)]).toEqual([false, false, true]);
});

test('an attempt that ended before it began has taken no time', () => {
  const backoff = new Backoff({ minMs: 100, maxMs: 1_000, factor: 2, random: () => 0, apart: true });
  expect([backoff.failed({ ranMs: -HOUR_MS }), backoff.renewed(-HOUR_MS)]).toEqual([100, 100]);
});
