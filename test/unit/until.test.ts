// Waiting for events that meet conditions.
import { describe, expect, test } from 'vitest';
import { until } from '../../src/cache/index.ts';
import { ListenerCount } from '../../src/testing/fakes/fake-clock.ts';
import { FakeClock, FakeListWatcher, FakeWatcher } from '../../src/testing/index.ts';
import { settle, thing } from './faulty-source.ts';

type Event = { readonly type: string; readonly object: number };
const added = { type: 'ADDED', object: 1 };
const is = (type: string) => (event: Event) => event.type === type;
const fake = (...events: Event[]): FakeWatcher<Event> => {
  const watch = new FakeWatcher<Event>({ capacity: 10 });
  for (const { type, object } of events) watch.action(type as never, object as never);
  return watch;
};

describe('until', () => {
  test('TestUntil: conditions are met in sequence, and the watch is stopped', async () => {
    const watch = fake(added, { type: 'MODIFIED', object: 2 });
    expect(await until(watch, [is('ADDED'), is('MODIFIED')])).toEqual({ type: 'MODIFIED', object: 2 });
    expect(watch.stopped).toBe(true);
  });

  test('TestUntilMultipleConditions: one event may meet several', async () => {
    expect(await until(fake(added), [is('ADDED'), is('ADDED')])).toEqual(added);
  });

  test('TestUntilMultipleConditionsFail: the last event is told when time is up', async () => {
    const clock = new FakeClock();
    const watch = fake(added, { type: 'MODIFIED', object: 2 }, { type: 'ADDED', object: 3 });
    const waiting = until(watch, [is('ADDED'), is('ADDED'), is('DELETED')], { clock, timeoutMs: 10_000 });
    const told = expect(waiting).rejects.toMatchObject({ code: 'TIMEOUT', limit: 10_000, cause: { type: 'ADDED', object: 3 } });
    await settle();
    clock.advance(10_000);
    await told;
    expect([watch.stopped, clock.pending]).toEqual([true, 0]);
  });

  test('TestUntilTimeout: without a limit, it waits', async () => {
    const clock = new FakeClock();
    const watch = fake(added);
    const waiting = until(watch, [is('ADDED'), is('MODIFIED')], { clock, timeoutMs: 0 });
    await settle();
    expect(clock.pending).toBe(0);
    watch.action('MODIFIED' as never, 2 as never);
    expect(await waiting).toEqual({ type: 'MODIFIED', object: 2 });
  });

  test('TestUntilErrorCondition: what a condition throws is thrown', async () => {
    const watch = fake(added);
    const error = new Error('something bad');
    const throws = (): never => {
      throw error;
    };
    await expect(until(watch, [is('ADDED'), throws])).rejects.toBe(error);
    expect(watch.stopped).toBe(true);
  });

  test('a watch that ends: CLOSED, with the last event', async () => {
    const watch = fake(added);
    watch.stop();
    await expect(until(watch, [is('MODIFIED')])).rejects.toMatchObject({ code: 'CLOSED', cause: added });
    const empty = fake();
    empty.stop();
    await expect(until(empty, [is('MODIFIED')])).rejects.toMatchObject({ code: 'CLOSED', cause: undefined });
  });

  test('without conditions it needs no event, and still ends the watch', async () => {
    const watch = fake(added);
    expect(await until(watch, [])).toBeUndefined();
    expect(watch.stopped).toBe(true);
  });

  test('BOOKMARK and ERROR are shown to conditions', async () => {
    const events = [
      { type: 'BOOKMARK', object: 1 },
      { type: 'ERROR', object: 2 },
    ];
    expect(await until(fake(...events), [is('BOOKMARK'), is('ERROR')])).toEqual(events[1]);
  });

  test.each([false, true])('a signal ends it with its reason, aborted before: %s', async (before) => {
    const clock = new FakeClock();
    const abort = new AbortController();
    const listeners = new ListenerCount(abort.signal);
    const watch = fake();
    if (before) abort.abort('why');
    const waiting = until(watch, [is('ADDED')], { signal: abort.signal, clock, timeoutMs: 5 });
    if (before) await expect(until(fake(), [], { signal: abort.signal })).rejects.toBe('why');
    const told = expect(waiting).rejects.toBe('why');
    await settle();
    abort.abort('why');
    await told;
    expect([watch.stopped, clock.pending, listeners.count]).toEqual([true, 0, 0]);
  });

  test('of a source, it sees every event after the version, through ends of connections', async () => {
    const source = new FakeListWatcher();
    const clock = new FakeClock();
    const { resourceVersion } = await source.list();
    for (const value of [1, 2, 3]) source.add(thing('a', value) as never);
    source.cutAfter(1);
    const seen: string[] = [];
    const waiting = until(
      { source, resourceVersion, random: () => 0 },
      [({ type, object }) => seen.push(`${type} ${(object as { value: number }).value}`) === 3],
      { clock },
    );
    for (let i = 0; i < 3; i++) {
      await settle();
      clock.advance(1_000);
    }
    expect(await waiting).toMatchObject({ type: 'MODIFIED' });
    expect(seen).toEqual(['ADDED 1', 'MODIFIED 2', 'MODIFIED 3']);
    expect([source.openWatches, clock.pending]).toEqual([0, 0]);
  });

  test.each([[[1]], [undefined], [[], { timeoutMs: -1 }], [[], { timeout: 1 }], [[], null]])(
    'arguments are checked, and the watch is ended then, too: %j, %j',
    async (...wrong) => {
      const watch = fake(added);
      await expect(until(watch, ...(wrong as [never]))).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      expect(watch.stopped).toBe(true);
    },
  );

  test('what is no watch, and no source, is refused', async () => {
    const wrong = { code: 'INVALID_ARGUMENT' };
    await expect(until(undefined as never, [])).rejects.toMatchObject(wrong);
    await expect(until({} as never, [])).rejects.toMatchObject(wrong);
  });
});
