// Waiting for a state of a collection, whatever happens to its source.
import { describe, expect, test } from 'vitest';
import { untilWithSync } from '../../src/cache/index.ts';
import { FakeClock, FakeListWatcher } from '../../src/testing/index.ts';
import { type Pod, pod, settle } from './informer-support.ts';
import { fate } from './support.ts';

function parts(objects: Pod[] = []): { source: FakeListWatcher<Pod>; clock: FakeClock } {
  return { source: new FakeListWatcher<Pod>({ objects }), clock: new FakeClock() };
}

describe('untilWithSync', () => {
  test('TestUntilWithSync: sees the state as ADDED, then changes, and stops the informer', async () => {
    const { source, clock } = parts([pod('a', 1)]);
    const seen: string[] = [];
    const wait = fate(
      untilWithSync(source, [({ type }) => type === 'ADDED', ({ type }) => seen.push(type) > 0 && type === 'DELETED'], { clock }),
    );
    await settle();
    source.modify(pod('a', 2));
    await settle();
    expect(wait.state).toBe('pending');
    source.delete(pod('a'));
    await settle();
    expect(wait).toMatchObject({ state: 'resolved', value: { type: 'DELETED', object: { value: 2 } } });
    expect(seen).toEqual(['ADDED', 'MODIFIED', 'DELETED']);
    expect([clock.pending, source.openWatches]).toEqual([0, 0]);
  });

  test('TestUntilWithSync: a precondition that holds ends it; one that does not goes on to the conditions', async () => {
    const { source, clock } = parts([pod('a', 1)]);
    expect(await untilWithSync(source, [() => false], { clock, precondition: (store) => store.size === 1 })).toBeUndefined();
    const wait = untilWithSync(source, [({ type }) => type === 'ADDED'], { clock, precondition: () => false });
    expect(await wait).toMatchObject({ type: 'ADDED', object: { value: 1 } });
    const boom = (): never => {
      throw new Error('boom');
    };
    await expect(untilWithSync(source, [], { clock, precondition: boom })).rejects.toThrow('boom');
    expect([clock.pending, source.openWatches]).toEqual([0, 0]);
  });

  test('TestUntilWithSync: with a precondition it waits for the state, until the signal aborts or the time is over', async () => {
    const { source, clock } = parts();
    source.hold();
    const stop = new AbortController();
    const asked: number[] = [];
    const precondition = (): boolean => asked.push(1) > 0;
    const waits = [
      fate(untilWithSync(source, [], { clock, precondition, signal: stop.signal })),
      fate(untilWithSync(source, [], { clock, precondition, timeoutMs: 700 })),
    ];
    await settle();
    clock.advance(700);
    stop.abort(new Error('enough'));
    await settle();
    expect(waits).toMatchObject([
      { state: 'rejected', error: new Error('enough') },
      { state: 'rejected', error: { code: 'TIMEOUT', limit: 700 } },
    ]);
    expect([asked, clock.pending]).toEqual([[], 0]);
  });

  test('survives the loss of history', async () => {
    const { source, clock } = parts([pod('a', 1)]);
    const wait = fate(untilWithSync(source, [({ type }) => type === 'DELETED'], { clock }));
    await settle();
    source.cut();
    source.delete(pod('a'));
    source.expire();
    for (let i = 0; i < 5; i++) {
      await settle();
      clock.advance(2_000);
    }
    expect(wait.state).toBe('resolved');
  });
});
