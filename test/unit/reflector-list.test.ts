// How a reflector lists: with which versions, in which pages, and what it does when that fails.
import { describe, expect, test } from 'vitest';
import { Reflector, Store } from '../../src/cache/index.ts';
import { FakeClock, FakeListWatcher } from '../../src/testing/index.ts';
import { toStatus } from '../../src/watch/event.ts';
import { settle } from './faulty-source.ts';
import { CLEAN, change, errorEvent, list, type Pod, pod, Rig, refusal, ScriptedWatch } from './reflector-rig.ts';

const gone = (): ScriptedWatch => new ScriptedWatch([errorEvent(410, 'Expired')]);

describe('the version of a list', () => {
  test('TestReflectorResyncWithResourceVersion: first any state, then one not older than the last', async () => {
    const rig = new Rig();
    rig.source.toList = [list('10', 'a'), list('10', 'a')];
    rig.source.toWatch = [gone()];
    await rig.start();
    expect([rig.source.listed, rig.store.notes]).toEqual([
      ['0', '10'],
      ['replace 10 a', 'replace 10 a'],
    ]);
    expect(rig.source.lists.map(({ resourceVersionMatch }) => resourceVersionMatch)).toEqual([undefined, undefined]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('with `consistentList`, first the newest state, in pages, and then as without it', async () => {
    const rig = new Rig({ consistentList: true });
    rig.source.toList = [{ ...list('10', 'a'), continue: 'more' }, list('10', 'b'), list('10', 'a')];
    rig.source.toWatch = [gone()];
    await rig.start();
    expect(rig.source.lists.map(({ resourceVersion, limit, continue: token }) => [resourceVersion, limit, token])).toEqual([
      ['', 500, undefined],
      [undefined, 500, 'more'],
      ['10', 0, undefined],
    ]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('TestReflectorExpiredExactResourceVersion: if that is refused, the newest, at once and once', async () => {
    const rig = new Rig();
    rig.source.toList = [list('10', 'a'), refusal(410, 'Expired'), list('11', 'b')];
    rig.source.toWatch = [gone()];
    await rig.start();
    expect([rig.source.listed, rig.store.notes]).toEqual([
      ['0', '10', ''],
      ['replace 10 a', 'replace 11 b'],
    ]);
    expect(rig.source.watched).toEqual(['10', '11']);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('TestReflectorFullListIfExpired: a list whose pages expire is fetched whole; after that, pages are as before', async () => {
    const rig = new Rig();
    const page = { ...list('10', 'a'), continue: 'more' };
    rig.source.toList = [page, list('10', 'b'), { ...page, resourceVersion: '11' }, refusal(410), list('12', 'a', 'b')];
    rig.source.toWatch = [gone()];
    await rig.start();
    expect(rig.store.notes).toEqual(['replace 10 a,b', 'replace 12 a,b']);
    expect(rig.source.lists.map(({ resourceVersion, limit, continue: token }) => [resourceVersion, limit, token])).toEqual([
      ['0', 500, undefined],
      [undefined, 500, 'more'],
      ['10', 500, undefined],
      [undefined, 500, 'more'],
      ['10', undefined, undefined],
    ]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('TestReflectorFullListIfTooLarge: told by a cause, by its message, or by the message', async () => {
    const text = 'Too large resource version';
    for (const error of [
      refusal(504, 'Timeout', { causes: [{ reason: 'ResourceVersionTooLarge', message: 'x' }] }),
      refusal(504, 'Timeout', { causes: [{ reason: 'x', message: text }] }),
      refusal(504, `${text}: 20, current: 10`),
    ]) {
      const rig = new Rig();
      rig.source.toList = [list('20', 'a'), error, list('10', 'b')];
      rig.source.toWatch = [gone()];
      await rig.start();
      expect([rig.source.listed, rig.reflector.resourceVersion]).toEqual([['0', '20', ''], '10']);
      expect(rig.failures).toMatchObject([
        { kind: 'expired', delayMs: undefined },
        { kind: 'expired', delayMs: undefined },
      ]);
      expect(rig.failures[1]?.error).toBe(error);
      expect(await rig.stop()).toEqual(CLEAN);
    }
  });

  test('causes that are no array, and hints that are no number, are none', async () => {
    const rig = new Rig();
    rig.source.toList = [refusal(504, 'Timeout', { causes: 5, retryAfterSeconds: '9' } as never)];
    await rig.start();
    expect(rig.failures).toMatchObject([{ kind: 'other', delayMs: 800 }]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('another timeout is no reason to ask for the newest state', async () => {
    const rig = new Rig();
    rig.source.toList = [list('20'), refusal(504, 'Timeout', { causes: [{ reason: 'x', message: 'y' }] }), list('21')];
    rig.source.toWatch = [gone()];
    await rig.start();
    await rig.pass(30_000);
    expect(rig.source.listed).toEqual(['0', '20', '20']);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('P10.2: a list that is older than what was asked for is refused; the newest is asked for', async () => {
    const rig = new Rig();
    rig.source.toList = [list('20', 'a'), list('19', 'old'), list('21', 'b')];
    rig.source.toWatch = [gone()];
    await rig.start();
    expect([rig.source.listed, rig.store.notes]).toEqual([
      ['0', '20', ''],
      ['replace 20 a', 'replace 21 b'],
    ]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('a list without a version is refused', async () => {
    const rig = new Rig();
    rig.source.toList = [list('')];
    await rig.start();
    expect(rig.failures).toMatchObject([{ kind: 'other', error: { code: 'INVALID_FRAME' }, delayMs: 800 }]);
    expect([rig.store.notes, rig.source.watches]).toEqual([[], []]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('a 410 that no list cures: the first one lists at once, later ones wait, and ask for the newest state', async () => {
    const rig = new Rig();
    rig.source.toList = [list('10')];
    rig.source.toWatch = [gone(), refusal(410), gone(), refusal(410)];
    await rig.start();
    expect(rig.source.listed).toEqual(['0', '10']);
    await rig.pass(1_600);
    await rig.pass(3_200);
    await rig.pass(6_400);
    expect(rig.source.listed).toEqual(['0', '10', '', '', '']);
    expect(rig.failures.map(({ kind, delayMs }) => `${kind} ${delayMs}`)).toEqual([
      ...['expired undefined', 'expired 1600', 'expired 3200', 'expired 6400'],
    ]);
    expect(await rig.stop()).toEqual(CLEAN);
  });
});

describe('the pages of a list', () => {
  /** The limits of three lists: the first, one after a 410, and one after a 410 that the list before it has, too. */
  const limits = async (pageSize?: number, pages: boolean = false): Promise<unknown[]> => {
    const rig = new Rig({ pageSize });
    const first = pages ? [{ ...list('10', 'a'), continue: 'more' }, list('10', 'b')] : [list('10', 'a', 'b')];
    rig.source.toList = [...first, refusal(410), list('11', 'a', 'b')];
    rig.source.toWatch = [gone()];
    await rig.start();
    expect(await rig.stop()).toEqual(CLEAN);
    return rig.source.lists.filter(({ continue: token }) => token === undefined).map(({ limit }) => limit);
  };

  test('TestReflectorNotPaginatingNotConsistentReads: a version that a cache can serve is listed whole', async () => {
    expect(await limits()).toEqual([500, 0, 500]);
  });

  test('TestReflectorPaginatingNonConsistentReadsIfWatchCacheDisabled: after pages at version 0, all lists have pages', async () => {
    expect(await limits(undefined, true)).toEqual([500, 500, 500]);
  });

  test('TestReflectorWatchListPageSize: the option says it', async () => {
    expect(await limits(4)).toEqual([4, 4, 4]);
    expect(await limits(0)).toEqual([0, 0, 0]);
  });
});

test('pages may be newer than the version: one that makes a list fail is not asked for again and again', async () => {
  const clock = new FakeClock();
  const source = new FakeListWatcher<Pod>({ objects: [pod('a', ''), pod('b', '')] });
  const store = new Store<Pod>();
  const failures: unknown[] = [];
  const options = { clock, pageSize: 2, maxObjects: 3, streamingList: false, random: () => 0 };
  const reflector = new Reflector<Pod>(source, store, { ...options, onError: (error) => void failures.push(error) });
  const abort = new AbortController();
  const run = reflector.run(abort.signal);
  await settle();
  for (const name of ['c', 'd']) source.add(pod(name, '')); // more than a list may have, but a watch has no end
  await settle();
  source.sendError(toStatus({ code: 410, reason: 'Expired', message: '' }));
  for (const name of ['a', 'b']) source.delete(pod(name, ''));
  for (let i = 0; i < 5; i++) {
    await settle();
    clock.advance(60_000);
  }
  expect(store.keys()).toEqual(['c', 'd']);
  const lists = source.requests.filter(({ verb }) => verb === 'list');
  expect(lists.map(({ options: { resourceVersion, resourceVersionMatch } }) => [resourceVersion, resourceVersionMatch])).toEqual([
    ['0', undefined],
    ['3', 'NotOlderThan'],
  ]);
  expect(failures).toMatchObject([{ code: 'REFUSED' }]);
  abort.abort();
  await run;
});

describe('what a list does', () => {
  test('TestReflectorListExtract: all items reach the store, with the version of the list', async () => {
    const store = new Store<{ metadata: { name: string } }>();
    const rig = new Rig({}, store as never);
    rig.source.toList = [{ ...list('10', 'a'), continue: 'x' }, list('10', 'b')];
    await rig.start();
    expect([store.keys(), store.resourceVersion, rig.reflector.resourceVersion]).toEqual([['a', 'b'], '10', '10']);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('TestReflectorReplacesStoreOnUnsafeDelete: objects that vanished without an event go with the next list', async () => {
    const store = new Store<{ metadata: { name: string } }>();
    const rig = new Rig({}, store as never);
    rig.source.toList = [list('10', 'a', 'b'), list('11', 'b')];
    rig.source.toWatch = [new ScriptedWatch([errorEvent(500, 'InternalError')])];
    await rig.start();
    await rig.pass(800);
    expect(store.keys()).toEqual(['b']);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  const transformed = async (stream: boolean): Promise<void> => {
    const store = new Store<{ metadata: { name: string }; seen?: number }>({
      transform: (object) => ({ ...object, seen: (object.seen ?? 0) + 1 }),
    });
    const rig = new Rig({ streamingList: stream }, store as never);
    rig.source.toList = [list('10', 'a')];
    const initial = [change('ADDED', 'a', '9'), { type: 'BOOKMARK', object: { metadata: pod('', '10').metadata } }];
    Object.assign((initial[1] as { object: { metadata: object } }).object.metadata, {
      annotations: { 'k8s.io/initial-events-end': 'true' },
    });
    rig.source.toWatch = [new ScriptedWatch([...(stream ? initial : []), change('ADDED', 'b', '11')] as never)];
    await rig.start();
    expect(store.list().map(({ metadata, seen }) => [metadata.name, seen])).toEqual([
      ['a', 1],
      ['b', 1],
    ]);
    expect(await rig.stop()).toEqual(CLEAN);
  };

  test('TestReflectorRespectStoreTransformer: the store transforms all that it gets', () => transformed(false));
  test('the same for what is streamed', () => transformed(true));

  test('TestReflectorListAndWatchWithErrors: whatever fails, the next attempt goes on', async () => {
    const rig = new Rig();
    const down = new TypeError('fetch failed');
    rig.source.toList = [
      down,
      refusal(500),
      list('1', 'a'),
      refusal(503, 'Gone away', { retryAfterSeconds: 60 }),
      list('5', 'a', 'b'),
    ];
    rig.source.toWatch = [down, refusal(404), new ScriptedWatch()];
    await rig.start();
    const delays: unknown[] = [];
    for (let i = 0; rig.reflector.state.phase === 'waiting'; i++) {
      const { nextAttemptMs = 0, error } = rig.reflector.state;
      expect(error).toBe(rig.failures[i]?.error);
      delays.push(nextAttemptMs - rig.clock.now());
      await rig.pass(nextAttemptMs - rig.clock.now());
    }
    expect(delays).toEqual([800, 1_600, 3_200, 6_400, 60_000]);
    expect(rig.failures.map(({ kind, phase }) => `${kind} ${phase}`)).toEqual([
      ...['unreachable listing', 'other listing', 'unreachable watching', 'other watching', 'throttled listing'],
    ]);
    expect(rig.store.notes).toEqual(['replace 1 a', 'replace 5 a,b']);
    expect(rig.reflector.state).toMatchObject({ phase: 'watching', failures: 5, lastContactMs: 72_000 });
    rig.source.last.push(change('ADDED', 'c', '6'));
    await rig.pass(120_000);
    rig.source.last.push(change('ADDED', 'd', '7'));
    await rig.pass(0);
    expect(rig.reflector.state).toEqual({
      ...{ phase: 'watching', connected: true, lastContactMs: 192_000, failures: 0, error: undefined, nextAttemptMs: undefined },
    });
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('P10.4: while everything fails, the number of requests is bounded', async () => {
    for (const error of [refusal(500), refusal(410), refusal(429), new TypeError('fetch failed')]) {
      for (const streamingList of [true, false]) {
        const rig = new Rig({ streamingList });
        rig.source.toList = Array.from({ length: 1_000 }, () => error);
        rig.source.toWatch = Array.from({ length: 1_000 }, () => error);
        await rig.start();
        for (let i = 0; i < 360; i++) await rig.pass(10_000);
        // An hour, and at most two requests at once.
        expect(rig.source.lists.length + rig.source.watches.length).toBeLessThanOrEqual(2 * (6 + 3_600 / 30) + 2);
        expect(await rig.stop()).toEqual(CLEAN);
      }
    }
  });

  test('an abort during a list ends it, also if the source ignores the signal; the store sees nothing of it', async () => {
    const rig = new Rig();
    let answer: (all: ReturnType<typeof list>) => void = () => {};
    rig.source.toList = [
      () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
    ];
    await rig.start();
    const { signal } = rig.source.lists[0] as { signal: AbortSignal };
    expect(await rig.stop()).toEqual(CLEAN);
    expect(signal.aborted).toBe(true);
    answer(list('1', 'a'));
    await rig.pass(0);
    expect(rig.store.notes).toEqual([]);
  });

  test('selectors go with every request', async () => {
    const rig = new Rig({ labelSelector: 'app=web', fieldSelector: 'spec.nodeName=n1' });
    await rig.start();
    const selectors = { labelSelector: 'app=web', fieldSelector: 'spec.nodeName=n1' };
    expect([rig.source.lists[0], rig.source.watches[0]]).toMatchObject([selectors, selectors]);
    expect(rig.source.watches[0]).toMatchObject({ allowWatchBookmarks: true });
    expect(await rig.stop()).toEqual(CLEAN);
  });
});
