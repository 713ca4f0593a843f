import { describe, expect, test } from 'vitest';
import { ListenerCount } from '../../src/testing/fakes/fake-clock.ts';
import { FakeSource } from '../../src/testing/fakes/fake-source.ts';
import { FakeWatcher, MockWatcher, RaceFreeFakeWatcher } from '../../src/testing/fakes/fakes.ts';
import { isWatchError } from '../../src/watch/errors.ts';
import { type ObjectEvent, toStatus, type WatchEvent } from '../../src/watch/event.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { macrotask, thrown } from './support.ts';

interface Thing {
  readonly name: string;
}
const thing = (name: string): Thing => ({ name });
const status = toStatus({ code: 500, reason: 'InternalError', message: 'no' });
const done = { done: true, value: undefined };

const FIVE: ObjectEvent<Thing>[] = [
  { type: 'ADDED', object: thing('foo') },
  { type: 'MODIFIED', object: thing('qux') },
  { type: 'MODIFIED', object: thing('bar') },
  { type: 'DELETED', object: thing('bar') },
  { type: 'ERROR', object: status },
];

async function all<E>(watch: Watch<E>): Promise<E[]> {
  const events: E[] = [];
  for await (const event of watch) events.push(event);
  return events;
}

async function settled(promise: Promise<unknown>): Promise<boolean> {
  let is = false;
  void promise.then(() => {
    is = true;
  });
  await macrotask();
  return is;
}

describe('FakeWatcher', () => {
  test('TestFake: a producer sends five kinds of events and stops; the reader sees them in order, then the end', async () => {
    const fake = new FakeWatcher<ObjectEvent<Thing>>();
    const sending = (async () => {
      const answers = [
        await fake.add(thing('foo')),
        await fake.action('MODIFIED', thing('qux')),
        await fake.modify(thing('bar')),
        await fake.delete(thing('bar')),
        await fake.error(status),
      ];
      fake.stop();
      return answers;
    })();
    expect(await all(fake)).toEqual(FIVE);
    expect(await sending).toEqual([true, true, true, true, true]);
    expect(fake.isStopped()).toBe(true);
  });

  test('a sender waits until its event has been read', async () => {
    const fake = new FakeWatcher();
    const sent = fake.add('a');
    expect(await settled(sent)).toBe(false);
    expect(fake.queued).toBe(1);
    expect(fake.tryNext()).toEqual({ type: 'ADDED', object: 'a' });
    expect(await sent).toBe(true);
    expect(fake.queued).toBe(0);
  });

  test('a pending read takes the event at once', async () => {
    const fake = new FakeWatcher();
    const read = fake.next();
    expect(await fake.modify('a')).toBe(true);
    expect(await read).toEqual({ done: false, value: { type: 'MODIFIED', object: 'a' } });
  });

  test('with a capacity, senders wait only for room', async () => {
    const fake = new FakeWatcher({ capacity: 2 });
    expect([await fake.add(1), await fake.add(2)]).toEqual([true, true]);
    const third = fake.add(3);
    const fourth = fake.add(4);
    expect(await settled(third)).toBe(false);
    fake.tryNext();
    expect([await settled(third), await settled(fourth)]).toEqual([true, false]);
    fake.tryNext();
    expect(await fourth).toBe(true);
    expect(fake.queued).toBe(2);
  });

  test('stop: waiting senders get false, and accepted events are still read', async () => {
    const fake = new FakeWatcher({ capacity: 1 });
    const sent = [fake.add(1), fake.add(2)];
    fake.stop();
    fake.stop();
    expect(await Promise.all(sent)).toEqual([true, false]);
    expect(await fake.add(3)).toBe(false);
    expect([fake.isStopped(), fake.stopped, fake.queued, fake.dropped]).toEqual([true, true, 1, 0]);
    expect(await all(fake)).toEqual([{ type: 'ADDED', object: 1 }]);
  });

  test('stop during a rendezvous: false, and nothing is left to read', async () => {
    const fake = new FakeWatcher();
    const sent = fake.add(1);
    fake.stop();
    expect(await sent).toBe(false);
    expect(await fake.next()).toEqual(done);
  });

  test('return discards and counts what was accepted, and settles reads', async () => {
    const fake = new FakeWatcher({ capacity: 1 });
    const sent = [fake.add(1), fake.add(2)];
    await fake.return();
    expect(await Promise.all(sent)).toEqual([true, false]);
    expect([fake.queued, fake.dropped, fake.isStopped()]).toEqual([0, 1, true]);
    const waiting = new FakeWatcher();
    const read = waiting.next();
    await waiting.return();
    expect(await read).toEqual(done);
  });

  test('reset starts over, with the same capacity', async () => {
    const fake = new FakeWatcher({ capacity: 1 });
    const sent = [fake.add(1), fake.add(2)];
    fake.reset();
    expect(await Promise.all(sent)).toEqual([true, false]);
    expect([fake.isStopped(), fake.queued, fake.dropped]).toEqual([false, 0, 0]);
    expect(await fake.add(3)).toBe(true);
    expect(await settled(fake.add(4))).toBe(false);
    fake.stop();
    expect(await all(fake)).toEqual([{ type: 'ADDED', object: 3 }]);
    fake.reset();
    const read = fake.next();
    fake.reset();
    expect(await read).toEqual(done);
    expect(await fake.add(5)).toBe(true);
  });

  test('a batch takes the events of all waiting senders', async () => {
    const fake = new FakeWatcher();
    const sent = [fake.add(1), fake.add(2)];
    const { value } = await fake.batches().next();
    expect(value?.map((event) => event.object)).toEqual([1, 2]);
    expect(await Promise.all(sent)).toEqual([true, true]);
  });

  test('accepts custom event types', async () => {
    const fake = new FakeWatcher<WatchEvent<'placed', Thing> | WatchEvent<'cancelled', { id: number }>>({ capacity: 2 });
    await fake.action('placed', thing('x'));
    await fake.action('cancelled', { id: 1 });
    fake.stop();
    expect(await all(fake)).toEqual([
      { type: 'placed', object: thing('x') },
      { type: 'cancelled', object: { id: 1 } },
    ]);
  });

  test.each([-1, 1.5])('refuses a capacity of %s', (capacity) => {
    expect(() => new FakeWatcher({ capacity })).toThrow('capacity');
  });
});

describe('RaceFreeFakeWatcher', () => {
  test('TestRaceFreeFake: a producer sends five kinds of events and stops; the reader sees them in order, then the end', async () => {
    const fake = new RaceFreeFakeWatcher<ObjectEvent<Thing>>();
    const answers = [
      fake.add(thing('foo')),
      fake.action('MODIFIED', thing('qux')),
      fake.modify(thing('bar')),
      fake.delete(thing('bar')),
      fake.error(status),
    ];
    fake.stop();
    expect(answers).toEqual([true, true, true, true, true]);
    expect(await all(fake)).toEqual(FIVE);
  });

  test('holds 100 events; one more throws a clear error', () => {
    const fake = new RaceFreeFakeWatcher();
    for (let at = 0; at < 100; at++) expect(fake.add(at)).toBe(true);
    const failure = thrown(() => fake.add(100));
    expect(isWatchError(failure, 'QUEUE_FULL') && failure.limit).toBe(100);
    expect(fake.queued).toBe(100);
    fake.tryNext();
    expect(fake.add(100)).toBe(true);
  });

  test('a pending read takes none of the 100 places', async () => {
    const fake = new RaceFreeFakeWatcher();
    const read = fake.next();
    for (let at = 0; at <= 100; at++) fake.add(at);
    expect((await read).value?.object).toBe(0);
    expect(fake.queued).toBe(100);
  });

  test('ignores events after a stop, even when full; reset makes room', async () => {
    const fake = new RaceFreeFakeWatcher();
    for (let at = 0; at < 100; at++) fake.add(at);
    fake.stop();
    expect(fake.add(100)).toBe(false);
    expect([fake.queued, fake.isStopped()]).toEqual([100, true]);
    fake.reset();
    expect([fake.queued, fake.isStopped()]).toEqual([0, false]);
    for (let at = 0; at < 100; at++) expect(fake.add(at)).toBe(true);
    await fake.return();
    expect(fake.dropped).toBe(100);
  });
});

describe('MockWatcher', () => {
  test('passes on each call, and records nothing itself except the stop', async () => {
    const calls: string[] = [];
    const mock = new MockWatcher<number>({
      next: async () => {
        calls.push('next');
        return { done: false, value: calls.length };
      },
      stop: () => void calls.push('stop'),
      tryNext: () => {
        calls.push('tryNext');
        return 7;
      },
    });
    expect(await mock.next()).toEqual({ done: false, value: 1 });
    expect(mock.tryNext()).toBe(7);
    expect(await mock.batches().next()).toEqual({ done: false, value: [3] });
    expect(mock.stopped).toBe(false);
    mock.stop();
    mock.stop();
    expect(calls).toEqual(['next', 'tryNext', 'next', 'stop', 'stop']);
    expect([mock.stopped, mock.queued, mock.dropped]).toEqual([true, 0, 0]);
    expect(mock[Symbol.asyncIterator]()).toBe(mock);
  });

  test('by default, return stops, and there are no events', async () => {
    let stops = 0;
    const mock = new MockWatcher<number>({ next: async () => ({ done: true, value: undefined }), stop: () => stops++ });
    expect(mock.tryNext()).toBeUndefined();
    expect(await mock.batches().next()).toEqual(done);
    expect(await mock.return()).toEqual(done);
    expect([stops, mock.stopped]).toEqual([1, true]);
    mock[Symbol.dispose]();
    await mock[Symbol.asyncDispose]();
    expect(stops).toBe(3);
  });

  test('passes on return if there is one', async () => {
    const calls: string[] = [];
    const mock = new MockWatcher<number>({
      next: async () => ({ done: false, value: 1 }),
      stop: () => void calls.push('stop'),
      return: async () => {
        calls.push('return');
        return { done: true, value: undefined };
      },
    });
    for await (const _ of mock) break;
    expect(calls).toEqual(['return']);
    expect(mock.stopped).toBe(true);
  });
});

test('a count of abort listeners counts no listeners of other types, and none as removed that was not', () => {
  const { signal } = new AbortController();
  const listeners = new ListenerCount(signal);
  const listener = (): void => {};
  signal.addEventListener('other', listener);
  expect(listeners.count).toBe(0);
  signal.addEventListener('abort', listener);
  signal.removeEventListener('other', listener);
  expect(listeners.count).toBe(1);
  signal.removeEventListener('abort', listener);
  expect(listeners.count).toBe(0);
});

test('FakeSource leaves nothing of a reader that it has cut, or that has ended', async () => {
  const source = new FakeSource();
  const { signal } = new AbortController();
  const listeners = new ListenerCount(signal);
  const [cut, left] = await Promise.all([source.follow({ last: 0 }, signal), source.follow({ last: 0 }, signal)]);
  source.append('{}');
  for (const each of [cut, left]) await each?.batches[Symbol.asyncIterator]().next();
  await left?.batches[Symbol.asyncIterator]().return?.();
  expect([source.following, listeners.count]).toEqual([1, 1]);
  source.cut();
  await expect(cut?.batches[Symbol.asyncIterator]().next()).rejects.toThrow('cut');
  expect([source.following, listeners.count]).toEqual([0, 0]);
});
