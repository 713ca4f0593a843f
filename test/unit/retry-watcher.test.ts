// A watch that survives its connections. The tests of upstream are named.
import { describe, expect, test } from 'vitest';
import { RetryWatcher, type RetryWatcherOptions } from '../../src/cache/index.ts';
import { ListenerCount } from '../../src/testing/fakes/fake-clock.ts';
import { FakeClock } from '../../src/testing/index.ts';
import type { ObjectEvent } from '../../src/watch/event.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { settle } from './faulty-source.ts';
import { bookmark, change, errorEvent, type Pod, refusal, ScriptedSource, ScriptedWatch } from './reflector-rig.ts';

class Rig {
  readonly source: ScriptedSource = new ScriptedSource();
  readonly clock: FakeClock = new FakeClock();
  readonly abort: AbortController = new AbortController();
  readonly listeners: ListenerCount = new ListenerCount(this.abort.signal);
  readonly watch: RetryWatcher<Pod>;
  readonly got: string[] = [];

  constructor(toWatch: (Watch<ObjectEvent<Pod>> | Error)[], options: Partial<RetryWatcherOptions> = {}) {
    this.source.toWatch = toWatch;
    const { clock, abort } = this;
    this.watch = new RetryWatcher(this.source, {
      ...{ resourceVersion: '1', clock, random: () => 0, signal: abort.signal },
      ...options,
    });
  }
  /** Reads all there is, for a while. */
  async read(attempts: number = 1): Promise<string[]> {
    void this.#drain();
    for (let i = 0; i < attempts; i++) {
      await settle();
      this.clock.advance(30_000);
    }
    await settle();
    return this.got;
  }
  async #drain(): Promise<void> {
    for await (const { type, object } of this.watch) {
      this.got.push(type === 'ERROR' ? `ERROR ${object.code}` : `${type} ${object.metadata.resourceVersion}`);
    }
    this.got.push('end');
  }
  async leave(): Promise<unknown[]> {
    await this.watch.return();
    await settle();
    const wrong = this.source.opened.map(({ ends }) => ends).filter((ends) => ends !== 1);
    return [this.clock.pending, this.listeners.count, ...wrong];
  }
}
const CLEAN = [0, 0];
const watch = (...events: ObjectEvent<Pod>[]): ScriptedWatch => new ScriptedWatch(events);
const ended = (...events: ObjectEvent<Pod>[]): ScriptedWatch => {
  const scripted = watch(...events);
  scripted.finish();
  return scripted;
};
const added = (version: number | string): ObjectEvent<Pod> => change('ADDED', 'a', `${version}`);

test('TestNewRetryWatcher: a version that is empty, 0 or no text is refused', () => {
  for (const resourceVersion of ['', '0', undefined, 7] as string[]) {
    const make = (): unknown => new RetryWatcher(new ScriptedSource(), { resourceVersion });
    expect(make).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  }
});

test('other arguments are checked', () => {
  const make =
    (options: object): (() => unknown) =>
    () =>
      new RetryWatcher(new ScriptedSource(), { resourceVersion: '1', ...options });
  for (const options of [{ minMs: -1 }, { factor: 0 }, { idleTimeoutMs: 'x' }, { labelSelector: 1 }, { timeoutMs: 1 }]) {
    expect(make(options)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  }
  expect(() => new RetryWatcher({} as never, { resourceVersion: '1' })).toThrow('ListWatcher');
});

describe('a retry watcher', () => {
  test.each<[string, (Watch<ObjectEvent<Pod>> | Error)[], string[], number]>([
    ['recovers from a refused connection', [new TypeError('fetch failed'), watch(added(2))], ['ADDED 2'], 2],
    ['recovers from other refusals', [refusal(500), refusal(404), refusal(429), watch(added(2))], ['ADDED 2'], 4],
    ['recovers from no watch', [(() => undefined) as never, watch(added(2))], ['ADDED 2'], 2],
    ['FIX5.1: ends with a 410 at the connection', [refusal(410, 'Expired'), watch(added(2))], ['ERROR 410', 'end'], 1],
    ['fails on 401 at the connection', [refusal(401), watch(added(2))], ['ERROR 401', 'end'], 1],
    ['fails on 403 at the connection', [refusal(403), watch(added(2))], ['ERROR 403', 'end'], 1],
    [
      'fails on a 410 event, and reads no further',
      [watch(added(2), errorEvent(410), added(3))],
      ['ADDED 2', 'ERROR 410', 'end'],
      1,
    ],
    ['FIX5.2: fails on a 403 event', [watch(errorEvent(403), added(3))], ['ERROR 403', 'end'], 1],
    ['FIX5.2: fails on a 401 event', [watch(errorEvent(401), added(3))], ['ERROR 401', 'end'], 1],
    ['recovers from 504', [watch(added(2), errorEvent(504)), watch(added(3))], ['ADDED 2', 'ADDED 3'], 2],
    ['recovers from 500', [watch(added(2), errorEvent(500)), watch(added(3))], ['ADDED 2', 'ADDED 3'], 2],
    ['recovers from the unknown code 666', [watch(added(2), errorEvent(666)), watch(added(3))], ['ADDED 2', 'ADDED 3'], 2],
    [
      'recovers from an ERROR that is no Status',
      [watch({ type: 'ERROR', object: { code: 410 } } as never), watch(added(3))],
      ['ADDED 3'],
      2,
    ],
    [
      'survives closed watches, each of which delivers one event',
      [...[2, 3, 4, 10, 500, '18446744073709551616'].map((version) => ended(added(version))), watch()],
      ['ADDED 2', 'ADDED 3', 'ADDED 4', 'ADDED 10', 'ADDED 500', 'ADDED 18446744073709551616'],
      7,
    ],
    [
      'fails on an event without a version',
      [watch({ type: 'ADDED', object: { metadata: {} } } as never)],
      ['ERROR 500', 'end'],
      1,
    ],
    [
      'fails with 410 on versions that go back: the source is another one than before',
      [ended(added(5)), watch(added(4), added(6))],
      ['ADDED 5', 'ERROR 410', 'end'],
      2,
    ],
    [
      'fails with 410 on a BOOKMARK that goes back',
      [watch(added(5), bookmark('4'), added(6))],
      ['ADDED 5', 'ERROR 410', 'end'],
      1,
    ],
    ['fails on an event without an object', [watch({ type: 'ADDED' } as never)], ['ERROR 500', 'end'], 1],
    ['fails on an unknown type', [watch({ type: 'X', object: added(2).object } as never)], ['ERROR 500', 'end'], 1],
    ['hides BOOKMARKs', [watch(bookmark('5'), added(6), bookmark('7', 'true'))], ['ADDED 6'], 1],
  ])('%s', async (_, toWatch, expected, watches) => {
    const rig = new Rig(toWatch);
    expect(await rig.read(toWatch.length)).toEqual(expected);
    expect(rig.source.watches).toHaveLength(watches);
    expect(await rig.leave()).toEqual(CLEAN);
  });

  test('TestRetryWatcher: each connection asks for what follows the last event or BOOKMARK, with BOOKMARKs, and for nothing else', async () => {
    const rig = new Rig([ended(added(3)), ended(bookmark('9')), refusal(500)], { labelSelector: 'a=b' });
    await rig.read(4);
    const more = { allowWatchBookmarks: true, labelSelector: 'a=b', fieldSelector: undefined, signal: expect.anything() };
    expect(rig.source.watches).toEqual(['1', '3', '9', '9'].map((resourceVersion) => ({ resourceVersion, ...more })));
    expect(await rig.leave()).toEqual(CLEAN);
  });

  test('a read that fails is the end of a connection', async () => {
    const broken = watch(added(2));
    broken.tryNext = () => {
      throw new Error('reset');
    };
    const rig = new Rig([broken, watch(added(3))]);
    expect(await rig.read(2)).toEqual(['ADDED 2', 'ADDED 3']);
    expect(await rig.leave()).toEqual(CLEAN);
  });
});

describe('FIX5.3: the pace', () => {
  /** When each connection was asked for, with as many attempts as there are. */
  const times = async (
    toWatch: (Watch<ObjectEvent<Pod>> | Error)[],
    options: Partial<RetryWatcherOptions> = {},
  ): Promise<number[]> => {
    const rig = new Rig(toWatch, options);
    const asked: number[] = [];
    const { watch: ask } = rig.source;
    rig.source.watch = (more) => {
      asked.push(rig.clock.now());
      return ask.call(rig.source, more);
    };
    void rig.watch.next();
    await settle();
    for (let ms = 0; ms < 200_000; ms += 100) {
      rig.clock.advance(100);
      await settle();
      void (rig.watch.tryNext() ?? rig.watch.next());
    }
    expect(await rig.leave()).toEqual(CLEAN);
    return asked;
  };
  const failures = (count: number): Error[] => Array.from({ length: count }, () => refusal(500));

  test('delays grow with failures, up to a limit, and have jitter', async () => {
    expect(await times(failures(7))).toEqual([0, 1_000, 3_000, 7_000, 15_000, 31_000, 61_000, 91_000]);
    expect(await times(failures(3), { random: () => 0.5 })).toEqual([0, 1_500, 4_500, 10_500]);
    expect(await times(failures(3), { minMs: 100, maxMs: 200, factor: 3 })).toEqual([0, 100, 300, 500]);
  });

  test('S20: connections that end at once are at least a second apart; one that lasted longer is followed at once', async () => {
    expect(await times([ended(added(2)), ended(added(3)), ended(added(4))])).toEqual([0, 1_000, 2_000, 3_000]);
  });

  test('Retry-After is obeyed', async () => {
    expect(await times([refusal(429, 'No', { retryAfterSeconds: 5 })])).toEqual([0, 5_000]);
    expect(await times([watch(errorEvent(500, 'No', { retryAfterSeconds: 7 }))])).toEqual([0, 7_000]);
  });

  test('idleTimeoutMs: a connection on which nothing comes is taken for dead', async () => {
    expect((await times([], { idleTimeoutMs: 50_000 })).slice(0, 3)).toEqual([0, 51_000, 103_000]);
  });
});

describe('its end', () => {
  test('TestRetryWatcherToFinishWithUnreadEvents: a stop, twice, ends it, whatever is unread', async () => {
    const rig = new Rig([watch(added(2), added(3))]);
    expect(rig.watch.tryNext()).toBeUndefined(); // begins to fetch
    await settle();
    expect([rig.watch.queued, rig.watch.resourceVersion]).toEqual([1, '1']);
    rig.watch.stop();
    rig.watch.stop();
    expect([rig.watch.stopped, rig.clock.pending, rig.listeners.count, rig.source.last.ends]).toEqual([true, 0, 0, 1]);
    expect(await rig.leave()).toEqual(CLEAN);
    expect([await rig.watch.next(), rig.watch.resourceVersion, rig.watch.dropped]).toEqual([{ done: true }, '1', 1]);
  });

  test('FIX5.4: the version is that of what was read; BOOKMARKs count when everything before them was read', async () => {
    const rig = new Rig([watch(added(2), bookmark('5'), added(7), bookmark('9'))]);
    const versions: string[] = [rig.watch.resourceVersion];
    for (let i = 0; i < 2; i++) {
      await rig.watch.next();
      versions.push(rig.watch.resourceVersion);
    }
    void rig.watch.next();
    await settle();
    expect([...versions, rig.watch.resourceVersion]).toEqual(['1', '2', '7', '9']);
    expect(await rig.leave()).toEqual(CLEAN);
  });

  test.each(['while it waits', 'while it connects', 'while it reads', 'before'])('an abort %s', async (when) => {
    const rig = new Rig(when === 'while it waits' ? [refusal(500)] : []);
    if (when === 'while it connects') rig.source.toWatch = [(() => new Promise(() => {})) as never];
    if (when === 'before') {
      rig.abort.abort();
      const late = new RetryWatcher(rig.source, { resourceVersion: '1', signal: rig.abort.signal });
      expect([late.stopped, await late.next()]).toEqual([true, { done: true, value: undefined }]);
      return;
    }
    const reading = rig.watch.next();
    await settle();
    rig.abort.abort();
    expect(await reading).toEqual({ done: true, value: undefined });
    expect(await rig.leave()).toEqual(CLEAN);
  });

  test('a connection that is granted after the end is ended', async () => {
    const late = watch();
    const rig = new Rig([(() => settle().then(() => late)) as never]);
    void rig.watch.next();
    await Promise.resolve();
    rig.watch.stop();
    await settle();
    await settle();
    expect(late.ends).toBe(1);
  });
});
