// Functions that decide about an event or object decide at once. A promise is truthy: it would let everything through, in silence.
import { describe, expect, test } from 'vitest';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import { filter, filterTransitions } from '../../src/broadcast/filter.ts';
import { until, untilWithSync } from '../../src/cache/index.ts';
import { OVERFLOWS } from '../../src/watch/overflow.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { Calls, pod, rig, settle } from './informer-support.ts';
import { event, type TestEvent } from './support.ts';

/** One that says no, later, and one that fails later, which must not end the process. */
const ASYNC = [async () => false, () => Promise.reject(new Error('late'))] as unknown as readonly (() => boolean)[];
const refusal = (name: string, expected = 'a boolean'): object => ({
  code: 'INVALID_ARGUMENT',
  message: expect.stringContaining(`${name}: expected ${expected}, not a promise`),
});

describe.each(ASYNC.map((decide, at) => [['says no', 'fails'][at], decide] as const))(
  'an async function that %s later',
  (_, decide) => {
    test.each(OVERFLOWS)('as the filter of a %s watch ends it', async (overflow) => {
      const broadcaster = new Broadcaster<TestEvent>();
      const watch = broadcaster.watch({ overflow, filter: decide });
      const waiting = expect(watch.next()).rejects.toMatchObject(refusal('filter'));
      broadcaster.tryPublish(event(1));
      await waiting;
      expect([watch.stopped, watch.tryNext()]).toEqual([true, undefined]);
      const late = broadcaster.watch({ overflow, filter: decide, prefix: [event(2)] });
      await expect(late.next()).rejects.toMatchObject(refusal('filter'));
    });

    test('in a filter of a watch ends it', async () => {
      const made: ((watch: Watch<TestEvent>) => [Watch<TestEvent>, object])[] = [
        (watch) => [filter<TestEvent>(watch, decide as never), refusal('fn', 'an event or undefined')],
        (watch) => [filterTransitions(watch, decide), refusal('predicate')],
        (watch) => [filterTransitions(watch, decide, { previousOf: () => undefined }), refusal('predicate')],
      ];
      for (const make of made) {
        const broadcaster = new Broadcaster<TestEvent>();
        const [watch, expected] = make(broadcaster.watch());
        const reading = expect(watch.next()).rejects.toMatchObject(expected);
        broadcaster.tryPublish(event(1, 'ADDED'));
        await reading;
      }
    });

    test('as the filter of a watch, a handler, or a list of an informer is refused', async () => {
      const { informer, errors } = rig([pod('a', 1)]);
      const run = informer.run();
      await informer.synced;
      await expect(informer.watch({ filter: decide }).next()).rejects.toMatchObject(refusal('filter'));
      await expect(informer.watch({ filter: decide, labelSelector: '!x' }).next()).rejects.toMatchObject(refusal('filter'));
      expect(() => informer.store.list({ filter: decide })).toThrow(expect.objectContaining(refusal('filter')));
      const calls = new Calls();
      informer.addHandler(calls, { filter: decide });
      await settle();
      expect([calls.all, errors]).toEqual([[], [expect.objectContaining(refusal('filter'))]]);
      await informer.stop();
      await run;
    });

    test('as a condition ends the wait for it', async () => {
      const broadcaster = new Broadcaster<TestEvent>({ replay: 1 });
      broadcaster.tryPublish(event(1));
      await expect(until(broadcaster.watch({ replay: 1 }), [decide])).rejects.toMatchObject(refusal('condition'));
      await expect(until(broadcaster.watch({ replay: 1 }), [() => true, decide])).rejects.toMatchObject(refusal('condition'));
      const { source } = rig([pod('a', 1)]);
      await expect(untilWithSync(source, [], { precondition: decide })).rejects.toMatchObject(refusal('precondition'));
    });
  },
);
