// `watch.position`, and watches that begin `after` it.
import { describe, expect, test } from 'vitest';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import { OVERFLOWS } from '../../src/watch/overflow.ts';
import { event, ids, range, readAll, readAllBut, type TestEvent, type TestWatch, thrown } from './support.ts';

const topicsOf = ({ object }: TestEvent): string => object.metadata.name;
const publish = (broadcaster: Broadcaster<TestEvent>, from: number, to: number, topic?: string): void => {
  for (let at = from; at < to; at++) broadcaster.tryPublish(event(at, 'MODIFIED', topic));
};

/** The ids of events and the code of an ERROR, in the order of reading. */
const tell = (watch: TestWatch): (number | string)[] =>
  readAll(watch).map(({ type, object }) =>
    type === 'ERROR' ? `ERROR ${(object as unknown as { code: number }).code}` : object.id,
  );

describe('a position', () => {
  test('is told only by a broadcaster that keeps events', () => {
    expect(new Broadcaster<TestEvent>().watch().position).toBeUndefined();
    expect(new Broadcaster<TestEvent>({ replay: 1 }).watch().position).toBe(0);
  });

  test.each(OVERFLOWS)('of a %s watch moves with what is delivered: what is queued comes again', (overflow) => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 100 });
    const watch = broadcaster.watch({ overflow });
    publish(broadcaster, 0, 5);
    const seen = range(0, 6).map(() => {
      const { position } = watch;
      const rest = broadcaster.watch({ after: position, overflow: 'drop-newest' });
      const got = ids(readAll(rest));
      watch.tryNext();
      return [position, got];
    });
    expect(seen).toEqual([0, 1, 2, 3, 4, 5].map((from) => [from, range(from, 5)]));
  });

  test('of a watch of topics is a place among all events', () => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 100, topicsOf });
    const watch = broadcaster.watch({ topics: ['a'] });
    for (const [at, topic] of ['b', 'a', 'b', 'b', 'a', 'b'].entries()) publish(broadcaster, at, at + 1, topic);
    const positions = [watch.position];
    while (watch.tryNext()) positions.push(watch.position);
    expect(positions).toEqual([1, 4, 6]);
    expect(ids(readAll(broadcaster.watch({ topics: ['a'], after: 2 })))).toEqual([4]);
  });

  test('counts as not delivered what return has discarded, and as delivered what stop has left to read', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 100 });
    const [returned, stopped] = [broadcaster.watch(), broadcaster.watch()];
    publish(broadcaster, 0, 4);
    returned.tryNext();
    await returned.return();
    stopped.stop();
    publish(broadcaster, 4, 6);
    expect(returned.position).toBe(1);
    expect([stopped.position, ids(readAll(stopped)), stopped.position]).toEqual([0, range(0, 4), 4]);
  });

  test('after a cut is where the loss began', () => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 100 });
    const watch = broadcaster.watch({ overflow: 'disconnect', capacity: 2 });
    publish(broadcaster, 0, 5);
    expect([tell(watch), watch.position]).toEqual([[0, 1, 'ERROR 410'], 2]);
  });

  test.each([undefined, ['a']])('does not go back before the watch began, while events wait (topics: %s)', (topics) => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 100, incoming: 10, topicsOf });
    const slow = broadcaster.watch({ capacity: 1 });
    publish(broadcaster, 0, 4, 'a');
    const prefix = [event(9, 'MODIFIED', 'a')];
    const watch = broadcaster.watch({ prefix, topics, overflow: 'drop-newest' });
    const stopped = broadcaster.watch({ topics });
    stopped.stop();
    expect([watch.position, stopped.position]).toEqual([4, 4]);
    expect(ids(readAll(watch))).toEqual([9]);
    expect(watch.position).toBe(4);
    readAll(slow);
    publish(broadcaster, 4, 5, 'a');
    readAll(slow);
    expect([watch.position, stopped.position, ids(readAll(watch)), watch.position]).toEqual([4, 4, [4], 5]);
  });

  test('does not go back when a change that coalesce had folded to nothing counts again', () => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 100 });
    const watch = broadcaster.watch({ overflow: 'coalesce' });
    broadcaster.tryPublish(event(0, 'ADDED', 'x'));
    broadcaster.tryPublish(event(1, 'DELETED', 'x'));
    broadcaster.tryPublish(event(2, 'ADDED', 'y'));
    const positions = [watch.position];
    broadcaster.tryPublish(event(3, 'ADDED', 'x'));
    positions.push(watch.position);
    while (watch.tryNext()) positions.push(watch.position);
    expect(positions).toEqual([2, 2, 2, 4]);
  });

  test('of a coalesce laggard is the same as if it had been looked at all the time', () => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 100, capacity: 0 });
    const [looked, left] = [0, 1].map(() => broadcaster.watch({ overflow: 'coalesce', capacity: 5 }));
    // An object that is added, deleted and added again, across the chunks that laggards fold together.
    for (let at = 0; at < 64; at++) {
      broadcaster.tryPublish(event(at, at >= 4 && at < 20 ? 'DELETED' : 'ADDED', `k${at % 4}`));
      expect(looked?.position).toBeDefined();
    }
    expect([looked?.position, left?.position]).toEqual([20, 20]);
  });

  test('of a coalesce watch that was cut is the first change that it did not deliver, also of what came to nothing later', () => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 100, capacity: 0, incoming: 0 });
    broadcaster.watch({ overflow: 'coalesce', capacity: 5 });
    const [looked, left] = [0, 1].map(() => broadcaster.watch({ overflow: 'coalesce', capacity: 0, after: 0 }));
    for (let at = 0; at < 16; at++) {
      broadcaster.tryPublish(event(at, at === 0 ? 'ADDED' : 'DELETED', `k${at % 4}`));
      expect(looked?.position).toBe(0);
    }
    expect([looked, left].map((watch) => [watch?.stopped, watch?.position])).toEqual([
      [true, 0],
      [true, 0],
    ]);
    expect(ids(readAll(broadcaster.watch({ overflow: 'coalesce', after: 0 })))).toEqual([13, 14, 15]);
  });

  test('of a coalesce watch whose keyOf throws for a laggard ends before that event', () => {
    const broadcaster = new Broadcaster<TestEvent>({
      replay: 1_000,
      capacity: 1,
      keyOf({ object }) {
        if (object.id === 150) throw new Error('keyOf');
        return `k${object.id % 3}`;
      },
    });
    const watch = broadcaster.watch({ overflow: 'coalesce', capacity: 10 });
    publish(broadcaster, 0, 300);
    const positions = [watch.position];
    const got = readAllBut(watch, 'keyOf');
    positions.push(watch.position);
    expect(ids(got)).toEqual([147, 148, 149]);
    expect(positions).toEqual([0, 150]);
  });

  test('of a watch whose filter fails about the prefix is where it began', () => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 100 });
    publish(broadcaster, 0, 5);
    const watch = broadcaster.watch({
      after: 2,
      prefix: [event(9)],
      filter() {
        throw new Error('filter');
      },
    });
    expect(readAllBut(watch, 'filter')).toEqual([]);
    expect(watch.position).toBe(2);
  });

  test.each(OVERFLOWS)('of a %s watch whose filter fails is the place of the event that it was asked about', (overflow) => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 9 });
    const filter = ({ object }: TestEvent): boolean => {
      if (object.id === 2) throw new Error('filter');
      return true;
    };
    const watch = broadcaster.watch({ filter, overflow });
    publish(broadcaster, 0, 5);
    expect(ids(readAllBut(watch, 'filter'))).toEqual([0, 1]);
    expect(watch.position).toBe(2);
  });
});

describe('after', () => {
  test('a place that is no longer kept, with a prefix whose filter fails: that is the only error', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 1 });
    publish(broadcaster, 0, 5);
    const filter = (): never => {
      throw new Error('filter');
    };
    const watch = broadcaster.watch({ after: 1, prefix: [event(7)], filter });
    expect(readAllBut(watch, 'filter')).toEqual([]);
    expect(await watch.next()).toEqual({ done: true, value: undefined });
    expect(watch.position).toBe(1);
  });

  test('a place that is no longer kept: one ERROR 410, and the end', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 3 });
    publish(broadcaster, 0, 5);
    for (const after of [0, 1, 6, Number.MAX_SAFE_INTEGER]) {
      const watch = broadcaster.watch({ after });
      expect([watch.stopped, watch.queued, watch.dropped]).toEqual([true, 0, 0]);
      expect(tell(watch)).toEqual(['ERROR 410']);
      expect(watch.position).toBe(after); // to try again must not skip what it has not delivered
      expect(await watch.next()).toEqual({ done: true, value: undefined });
    }
    expect(tell(broadcaster.watch({ after: 2, overflow: 'drop-newest' }))).toEqual([2, 3, 4]);
    expect(broadcaster.watchers).toBe(1);
  });

  test('a place that is no longer kept: the ERROR says which, and tells no number of lost events', () => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 3 });
    publish(broadcaster, 0, 5);
    const object = {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: 'the events since position 1 are not kept',
      reason: 'Expired',
      code: 410,
    };
    expect(broadcaster.watch({ after: 1 }).tryNext()).toEqual({ type: 'ERROR', object });
  });

  test.each(OVERFLOWS)('a place that is no longer kept, with a prefix: the ERROR is the last of a %s watch', (overflow) => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 1 });
    publish(broadcaster, 0, 5);
    const watch = broadcaster.watch({ after: 2, prefix: [event(7), event(8)], overflow });
    expect(watch.queued).toBe(2);
    expect(tell(watch)).toEqual([7, 8, 'ERROR 410']);
    expect(watch.dropped).toBe(0);
  });

  test('a place that is no longer kept: return drops the ERROR, which is no event', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 1 });
    publish(broadcaster, 0, 5);
    const watch = broadcaster.watch({ after: 2 });
    await watch.return();
    expect([tell(watch), watch.dropped]).toEqual([[], 0]);
  });

  test.each([-1, 0.5, Number.NaN, 2 ** 53, null, '3', {}])('%s is refused by name', (after) => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 3 });
    expect(thrown(() => broadcaster.watch({ after: after as number }))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/^after: expected a whole number >= 0, got /),
    });
  });

  test('wins over replay, which must be valid all the same', () => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 10 });
    publish(broadcaster, 0, 5);
    expect(tell(broadcaster.watch({ after: 4, replay: 3 }))).toEqual([4]);
    expect(thrown(() => broadcaster.watch({ after: 4, replay: -3 }))).toMatchObject({
      message: expect.stringMatching(/^replay: /),
    });
  });
});
