// How long a hub waits for the source of a snapshot.
import { describe, expect, test } from 'vitest';
import { Hub } from '../../src/bridge/hub/hub.ts';
import type { Snapshot } from '../../src/bridge/hub/hub-options.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { join, turn, until } from './fake-sink.ts';
import { handFed, hubOf } from './snapshot-source.ts';

const never = new Promise<never>(() => {});

describe('snapshotTimeoutMs', () => {
  test.each<[string, Snapshot]>([
    ['a function that never answers', () => never],
    ['an iterator that never yields', () => ({ [Symbol.asyncIterator]: () => ({ next: () => never }) })],
  ])('of %s: the client is told of the failure, and the next one gets the slot', async (_name, stuck) => {
    const clock = new FakeClock();
    const errors: unknown[] = [];
    const signals: AbortSignal[] = [];
    const hub = new Hub({
      clock,
      maxSnapshots: 1,
      snapshotTimeoutMs: 1_000,
      snapshot: (context) => (signals.push(context.signal) === 1 ? stuck(context) : ['a']),
      onNotice: (notice) => void (notice.type === 'close' && errors.push(notice.error)),
    });
    const first = join(hub);
    const second = join(hub);
    await turn();
    clock.advance(999);
    await turn();
    expect([first.ended, signals.length]).toEqual([undefined, 1]);
    clock.advance(1);
    await until(() => second.events.length === 2);
    expect(first.events).toMatchObject([{ type: 'ERROR', object: { code: 500, message: 'the snapshot of this watch failed' } }]);
    expect([first.ended, signals[0]?.aborted]).toEqual(['failed', true]);
    expect(errors).toEqual([expect.objectContaining({ message: 'no object for 1000 ms (snapshotTimeoutMs)' })]);
    expect(clock.pending).toBe(0);
  });

  test('counts from object to object, and not while the client has no room', async () => {
    const clock = new FakeClock();
    const { snapshot, give, finish } = handFed();
    const sink = join(hubOf(snapshot, { clock, snapshotTimeoutMs: 1_000 }));
    for (const name of ['a', 'b', 'c']) {
      await turn();
      clock.advance(999);
      give(name);
    }
    sink.stall();
    finish();
    await until(() => sink.events.length === 3);
    await turn();
    expect(clock.pending).toBe(0);
    clock.advance(9_000);
    sink.resume();
    await until(() => sink.events.length === 4);
    expect(sink.events.map(({ type }) => type)).toEqual(['ADDED', 'ADDED', 'ADDED', 'BOOKMARK']);
  });

  test('of 0 is no limit, and changes nothing for a source that answers, nor for a client that leaves', async () => {
    const clock = new FakeClock();
    const { snapshot, give, closed } = handFed();
    const hub = hubOf(({ identity }) => (identity === 'patient' ? ['a'] : snapshot(undefined as never)), {
      clock,
      maxSnapshots: 1,
      snapshotTimeoutMs: 0,
    });
    const leaving = join(hub);
    const patient = join(hub, {}, { identity: 'patient' });
    await turn();
    clock.advance(1_000_000_000);
    leaving.session.gone();
    await until(() => patient.events.length === 2);
    give('too late');
    await until(closed);
    expect([leaving.events, clock.pending]).toEqual([[], 0]);
  });

  test('is 60,000 by default; 0 is no limit', async () => {
    const clock = new FakeClock();
    const sink = join(hubOf(() => never, { clock }));
    const patient = join(hubOf(() => never, { clock, snapshotTimeoutMs: 0 }));
    await turn();
    clock.advance(59_999);
    await turn();
    expect(sink.ended).toBeUndefined();
    clock.advance(1);
    await until(() => sink.ended !== undefined);
    clock.advance(1_000_000_000);
    await turn();
    expect([sink.ended, patient.ended]).toEqual(['failed', undefined]);
    expect(() => new Hub({ snapshotTimeoutMs: -1 })).toThrow('snapshotTimeoutMs');
  });
});
