// What users of other list/watch libraries complain about most, each as a short history of an informer or a controller in which
// it does not happen. test/complaints.md says what excludes it, and which tests show the parts.
import { describe, expect, test } from 'vitest';
import { Informer, InformerFactory, type ListOptions, type ListWatchOptions } from '../../src/cache/index.ts';
import { FakeClock, FakeListWatcher, type FakeRequest } from '../../src/testing/index.ts';
import type { Status } from '../../src/watch/event.ts';
import { Controller, exponential, WorkQueue } from '../../src/workqueue/index.ts';
import { Calls, type Pod, pod, type Rig, rig, settle, shown } from './informer-support.ts';
import { fate } from './support.ts';

const { refusal } = FakeListWatcher;

/** Lets time pass, a second after the other. */
async function pass(clock: FakeClock, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 1_000) {
    clock.advance(Math.min(left, 1_000));
    await settle();
  }
}

/** Whether the store has what the source has. */
function isEqual({ source, informer }: Rig): boolean {
  const wanted = source.objects.map(shown).sort();
  return JSON.stringify(informer.store.list().map(shown).sort()) === JSON.stringify(wanted);
}

const versionsOf = (requests: readonly FakeRequest[]): unknown[] =>
  requests.map(({ verb, options }) => {
    const { resourceVersion = '' } = options as ListOptions & ListWatchOptions;
    return `${verb} ${resourceVersion}`;
  });

/** Ends it, and tells what is left behind. */
async function left({ source, informer, clock }: Rig): Promise<number[]> {
  await informer.stop();
  await settle();
  return [source.openWatches, clock.pending];
}

describe('connected, silent, for ever', () => {
  test('a link that is half-open is replaced when the time of its watch has passed, and nothing is missed', async () => {
    const parts = rig([pod('a', 1), pod('b', 1)]);
    await parts.start();
    await pass(parts.clock, 5_000);
    parts.source.halfOpen();
    parts.source.modify(pod('a', 2));
    parts.source.delete(pod('b'));
    await pass(parts.clock, 60_000);
    expect([isEqual(parts), parts.informer.state.lastContactMs]).toEqual([false, 0]); // a health check can see how long it is
    await pass(parts.clock, 600_000 - 60_000);
    expect(isEqual(parts)).toBe(true);
    expect(parts.informer.state.lastContactMs).toBeGreaterThan(300_000);
    expect(await left(parts)).toEqual([0, 0]);
  });

  test('the same with a source that accepts watches and serves none of them, one after the other', async () => {
    const parts = rig([pod('a', 1)], { idleTimeoutMs: 20_000 });
    await parts.start();
    parts.source.silentWatch(3);
    parts.source.cut();
    parts.source.modify(pod('a', 2));
    await pass(parts.clock, 59_000);
    expect(isEqual(parts)).toBe(false);
    await pass(parts.clock, 10_000);
    expect(isEqual(parts)).toBe(true);
    expect(await left(parts)).toEqual([0, 0]);
  });
});

describe('one error, and the informer is dead', () => {
  const FAILURES: readonly [string, unknown][] = [
    ...[400, 401, 403, 404, 408, 409, 410, 422, 429, 500, 503, 504].map((code): [string, unknown] => [
      `status ${code}`,
      refusal(code, code === 500 ? 'InternalError' : 'Failed'),
    ]),
    ['a network error', new TypeError('fetch failed')],
    ['something that is no error', undefined],
  ];

  test.each(FAILURES)(
    '%s, of lists and watches, before and after the first sync: it tries again, and tells',
    async (_, error) => {
      const parts = rig([pod('a', 1)]);
      parts.source.failWatch(error, 2);
      parts.source.failList(error, 2);
      const run = fate(parts.informer.run());
      await pass(parts.clock, 30_000);
      expect([parts.informer.hasSynced, isEqual(parts)]).toEqual([true, true]);
      parts.source.failWatch(error, 2);
      parts.source.failList(error, 2);
      parts.source.cut();
      parts.source.modify(pod('a', 2));
      await pass(parts.clock, 60_000);
      // Unreachable, it is first asked for its version, which fails twice more: the delays of four failures.
      if (error instanceof TypeError) await pass(parts.clock, 30_000);
      expect([isEqual(parts), run.state, parts.errors.length > 0]).toEqual([true, 'pending', error !== undefined]);
      expect(await left(parts)).toEqual([0, 0]);
    },
  );
});

describe('changes of a gap are lost', () => {
  test('whoever was away resumes after its last version; if that is too old, a list tells what has gone', async () => {
    const parts = rig([pod('a', 1), pod('b', 1), pod('c', 1)]);
    const calls = new Calls();
    parts.informer.addHandler(calls);
    await parts.start();
    const before = parts.source.requests.length;
    calls.take();
    parts.source.cut();
    parts.source.delete(pod('a'));
    parts.source.modify(pod('b', 2));
    await pass(parts.clock, 10_000);
    expect(calls.take()).toEqual(['-a1', 'b1>b2']);
    expect(versionsOf(parts.source.requests.slice(before))).toEqual(['watch 1']);
    parts.source.cut();
    parts.source.delete(pod('b'));
    parts.source.expire();
    await pass(parts.clock, 10_000);
    expect([calls.take(), isEqual(parts)]).toEqual([['-b2?'], true]);
    expect(await left(parts)).toEqual([0, 0]);
  });
});

describe('an expired version, asked for for ever', () => {
  const status = (code: number, reason: string) => ({ ...(refusal(code, reason).status as Status), code, reason });

  test.each([
    ['a status 410', (source: FakeListWatcher<Pod>) => source.failWatch(refusal(410, 'Gone'), 1)],
    ['the reason alone', (source: FakeListWatcher<Pod>) => source.failWatch(refusal(400, 'Expired'), 1)],
    ['an ERROR in a watch', (source: FakeListWatcher<Pod>) => source.errorAfter(0, status(410, 'Expired'))],
    [
      'a version that this server does not know yet',
      (source: FakeListWatcher<Pod>) =>
        source.failWatch(refusal(504, 'Timeout', { causes: [{ reason: 'ResourceVersionTooLarge' }] } as never), 1),
    ],
  ])('%s leads to one list, and never to the same watch again', async (_, fail) => {
    const parts = rig([pod('a', 1)], { streamingList: false });
    await parts.start();
    await pass(parts.clock, 5_000);
    const before = parts.source.requests.length;
    fail(parts.source);
    parts.source.cut();
    parts.source.modify(pod('a', 2));
    while (parts.source.requests.length === before) await pass(parts.clock, 100);
    // Without the question whether the server has gone back, which is a list of one object.
    const isState = ({ options }: FakeRequest): boolean => (options as ListOptions).limit !== 1;
    const asked = (): unknown[] => versionsOf(parts.source.requests.slice(before).filter(isState));
    while (asked().length === 0) await pass(parts.clock, 100);
    expect(asked().slice(0, 2)).toEqual(['watch 1', 'list 1']); // without a delay
    parts.source.errorAfter(Number.POSITIVE_INFINITY);
    await pass(parts.clock, 30_000);
    expect(asked().filter((one) => one === 'watch 1').length).toBe(1);
    expect(isEqual(parts)).toBe(true);
    expect(await left(parts)).toEqual([0, 0]);
  });

  test('a source that calls every version too old is asked for the newest state, at growing intervals', async () => {
    const parts = rig([pod('a', 1)], { streamingList: false });
    await parts.start();
    parts.source.errorAfter(0);
    parts.source.cut();
    const before = parts.source.requests.length;
    await pass(parts.clock, 600_000);
    const asked = versionsOf(parts.source.requests.slice(before));
    expect(asked.filter((one) => one === 'list ').length).toBeGreaterThan(3);
    expect(asked.length).toBeLessThan(60);
    parts.source.errorAfter(Number.POSITIVE_INFINITY);
    parts.source.modify(pod('a', 2));
    await pass(parts.clock, 60_000);
    expect(isEqual(parts)).toBe(true);
    expect(await left(parts)).toEqual([0, 0]);
  });
});

describe('a slow handler takes all memory, or holds up everyone', () => {
  test('its queue ends at the number of objects; others, the store and the source go on', async () => {
    const parts = rig(Array.from({ length: 20 }, (_, at) => pod(`p${at}`, 0)));
    const slow = parts.informer.addHandler({ onAdd: () => new Promise(() => {}) });
    const cut = parts.informer.addHandler({ onAdd: () => new Promise(() => {}) }, { overflow: 'disconnect', capacity: 50 });
    const calls = new Calls();
    parts.informer.addHandler(calls);
    await parts.start();
    for (let at = 1; at <= 4_000; at++) {
      parts.source.modify(pod(`p${at % 20}`, at));
      if (at % 100 === 0) await settle();
      expect(slow.queued).toBeLessThanOrEqual(20);
      expect(cut.queued).toBeLessThanOrEqual(50);
    }
    await settle();
    expect([isEqual(parts), calls.all.filter((call) => call.endsWith('>p04000')).length]).toEqual([true, 1]);
    slow.remove();
    cut.remove();
  });
});

describe('memory doubles with each relist', () => {
  test('what has not changed stays the same object, and nothing is made of its copy', async () => {
    let transformed = 0;
    const parts = rig(
      Array.from({ length: 1_200 }, (_, at) => pod(`p${at}`, 0)),
      {
        streamingList: false,
        transform: (one) => {
          transformed++;
          return one;
        },
      },
    );
    const calls = new Calls();
    parts.informer.addHandler(calls);
    await parts.start();
    expect(parts.source.requests.filter(({ verb }) => verb === 'list').length).toBe(3); // pages of 500
    const before = new Map(parts.informer.store.list().map((one) => [one.metadata.name, one]));
    calls.take();
    for (let round = 0; round < 5; round++) {
      parts.source.failWatch(refusal(410, 'Expired'));
      parts.source.cut();
      parts.source.expire();
      await pass(parts.clock, 60_000);
    }
    parts.source.modify(pod('p7', 1));
    await settle();
    const changed = parts.informer.store.list().filter((one) => before.get(one.metadata.name) !== one);
    expect([changed.map(shown), transformed, calls.take()]).toEqual([['p71'], 1_201, ['p70>p71']]);
    expect(await left(parts)).toEqual([0, 0]);
  });
});

describe('stop and start leave a watch behind, or two', () => {
  test('there is one watch while it runs, and none after; a stopped one stays so, and the next begins anew', async () => {
    const source = new FakeListWatcher<Pod>({ objects: [pod('a', 1)] });
    for (let turns = 0; turns < 20; turns++) {
      const clock = new FakeClock();
      const informer = new Informer<Pod>(source, { clock });
      const calls = new Calls();
      informer.addHandler(calls);
      const run = fate(informer.run());
      for (let turn = 0; turn < turns; turn++) await Promise.resolve();
      expect(source.openWatches).toBeLessThanOrEqual(1);
      await informer.stop();
      const told = calls.take().length;
      source.modify(pod('a', turns));
      await settle();
      expect([run.state, source.openWatches, clock.pending, calls.take().length]).toEqual(['resolved', 0, 0, 0]);
      expect(told).toBeLessThanOrEqual(1);
      await expect(informer.run()).rejects.toThrow('runs once');
    }
  });
});

describe('a stale read acts twice', () => {
  test('a key whose reconcile has written is not run again before the store has what it wrote', async () => {
    const clock = new FakeClock();
    const source = new FakeListWatcher<Pod>({ objects: [pod('a', 0)] });
    const informer = new Informer<Pod>(source, { clock, random: () => 0.5 });
    const read: (number | undefined)[] = [];
    const stop = new AbortController();
    const controller = new Controller<Pod>({
      informers: [informer],
      queue: new WorkQueue({ clock, rateLimiter: exponential({ baseMs: 10 }) }),
      wroteTimeoutMs: 120_000,
      reconcile: async (key, { wrote }) => {
        const value = informer.store.get(key)?.value;
        read.push(value);
        if (value !== 0 || read.length > 5) return;
        source.halfOpen(); // the informer does not learn of it for long
        wrote(source.modify(pod(key, 1)));
        source.cut();
        source.failWatch(new TypeError('fetch failed'), 3);
        controller.queue.add(key);
      },
    });
    const run = fate(controller.run(stop.signal));
    await pass(clock, 2_000);
    expect(read).toEqual([0]);
    await pass(clock, 60_000);
    expect(read).toEqual([0, 1]);
    stop.abort();
    await settle();
    expect([run.state, source.openWatches, clock.pending]).toEqual(['resolved', 0, 0]);
  });
});

describe('a storm of reconnects', () => {
  test.each([
    [
      'refuses everything',
      (source: FakeListWatcher<Pod>) => [source.failList(refusal(500, 'No'), 1e4), source.failWatch(refusal(500, 'No'), 1e4)],
    ],
    [
      'says 429',
      (source: FakeListWatcher<Pod>) => [
        source.failList(refusal(429, 'TooManyRequests'), 1e4),
        source.failWatch(refusal(429, 'TooManyRequests'), 1e4),
      ],
    ],
    ['ends every watch at once', (source: FakeListWatcher<Pod>) => [source.shortWatch(1e4)]],
    ['ends every watch after an event', (source: FakeListWatcher<Pod>) => [source.cutAfter(1), source.bookmarkAtStart()]],
  ])('of a source that %s there is none, and it harms no other informer', async (_, fail) => {
    const clock = new FakeClock();
    const sources = new Map(['bad', 'good'].map((name) => [name, new FakeListWatcher<Pod>({ objects: [pod(name, 0)] })]));
    const [bad, good] = [...sources.values()] as [FakeListWatcher<Pod>, FakeListWatcher<Pod>];
    const factory = new InformerFactory<string, Pod>((name) => sources.get(name) as FakeListWatcher<Pod>, {
      clock,
      random: () => 0.5,
      onError: () => {},
    });
    const [, healthy] = [factory.informer('bad'), factory.informer('good')];
    factory.start();
    await pass(clock, 5_000);
    fail(bad);
    bad.cut();
    await pass(clock, 600_000);
    expect(bad.requests.length).toBeLessThan(620); // at most about one a second, and far fewer if it fails
    good.modify(pod('good', 1));
    await settle();
    expect([healthy.store.get('good')?.value, healthy.state.failures]).toEqual([1, 0]);
    await factory.shutdown();
    expect([bad.openWatches, good.openWatches, clock.pending]).toEqual([0, 0, 0]);
  });
});

describe('it says that it is synced, and is not; or waits for ever', () => {
  test('synced means that the whole state is in the store, not that something was answered', async () => {
    const parts = rig([pod('a', 1), pod('b', 1)]);
    const handler = parts.informer.addHandler({ onAdd: () => {} });
    parts.source.endInitialEventsWith(undefined); // a server that knows streams by name only
    parts.source.failList(refusal(503, 'No'), 2);
    const synced = fate(parts.informer.synced);
    void parts.informer.run();
    await pass(parts.clock, 29_000);
    expect([synced.state, handler.hasSynced, parts.informer.hasSynced, parts.informer.store.size]).toEqual([
      'pending',
      false,
      false,
      0,
    ]);
    await pass(parts.clock, 20_000);
    expect([synced.state, handler.hasSynced, parts.informer.store.size]).toEqual(['resolved', true, 2]);
    expect(await left(parts)).toEqual([0, 0]);
  });
});
