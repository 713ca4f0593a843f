// What a reflector and its requests do at the edges: each test is about one line that nothing else shows.
import { describe, expect, test, vi } from 'vitest';
import { type List, Reflector, RetryWatcher } from '../../src/cache/index.ts';
import { ReflectorAttempt } from '../../src/cache/reflector/attempt.ts';
import { ReflectorMachine } from '../../src/cache/reflector/machine.ts';
import type { MachineSettings } from '../../src/cache/reflector/reflector-options.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { fromAsyncIterable } from '../../src/watch/pull-watch.ts';
import { settle } from './faulty-source.ts';
import {
  bookmark,
  CLEAN,
  change,
  errorEvent,
  list,
  NotingStore,
  type Pod,
  Rig,
  refusal,
  ScriptedSource,
  ScriptedWatch,
} from './reflector-rig.ts';
import { fate } from './support.ts';

/** A watch that cannot be read. */
class BrokenWatch extends ScriptedWatch {
  readonly why: unknown;
  constructor(why: unknown) {
    super();
    this.why = why;
  }
  override next(): Promise<never> {
    return Promise.reject(this.why);
  }
}

describe('an attempt', () => {
  test('that was interrupted before it waits does not wait', async () => {
    const attempt = new ReflectorAttempt<never, string>(new FakeClock());
    attempt.interrupt('first');
    attempt.interrupt('second');
    expect(await attempt.rest()).toBe('first');
    expect(await attempt.during(Promise.resolve(5))).toEqual({ is: 'interrupted', reason: 'first' });
    expect(await attempt.during(Promise.reject(new Error('late')))).toEqual({ is: 'interrupted', reason: 'first' });
  });

  test('says what to do about a source whose watch is a plain generator', async () => {
    const attempt = new ReflectorAttempt<never, string>(new FakeClock());
    const source = { list: async () => list('1'), watch: async () => (async function* () {})() };
    expect(await attempt.open(source as never, {})).toMatchObject({
      is: 'error',
      error: { code: 'INVALID_ARGUMENT', message: expect.stringContaining('fromAsyncIterable') },
    });
  });

  test('that is closed starts no timer, also from a callback', () => {
    const clock = new FakeClock();
    const attempt = new ReflectorAttempt<never, string>(clock);
    const calls: number[] = [];
    const again = (): void => {
      calls.push(clock.now());
      if (calls.length === 2) attempt.close();
      attempt.after(1_000, again);
    };
    attempt.after(1_000, again);
    clock.advance(5_000);
    attempt.after(1_000, () => calls.push(-1));
    attempt.close();
    expect([calls, clock.pending, attempt.signal.aborted]).toEqual([[1_000, 2_000], 0, true]);
  });
});

describe('a list', () => {
  test.each([undefined, 5, ''])('of version %j is refused, and says so', async (resourceVersion) => {
    const rig = new Rig();
    rig.source.toList = [{ ...list('1', 'a'), resourceVersion: resourceVersion as string }];
    await rig.start();
    expect(rig.failures.map(({ error }) => error)).toEqual([
      expect.objectContaining({ code: 'INVALID_FRAME', message: expect.stringContaining('a list without a version') }),
    ]);
    expect(rig.store.notes).toEqual([]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test.each([
    [undefined, 'undefined'],
    [[{ metadata: { name: 'a' } }], 'Array {0}'],
    [{ resourceVersion: '1' }, 'Object {resourceVersion}'],
  ])('without items is refused, and says so: %j', async (given, shown) => {
    const rig = new Rig();
    rig.source.toList = [(async () => given) as never];
    await rig.start();
    expect(rig.failures).toMatchObject([
      { kind: 'other', error: { message: `list: expected { items, resourceVersion }, got ${shown}`, code: 'INVALID_ARGUMENT' } },
    ]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('that is older says which version was asked for', async () => {
    const rig = new Rig();
    rig.source.toList = [list('8', 'a'), list('7', 'a'), list('9', 'a')];
    rig.source.toWatch = [refusal(410, 'Expired')];
    await rig.start();
    const { error, kind } = rig.failures.at(-1) ?? {};
    expect(error).toMatchObject({ code: 'INVALID_FRAME' });
    expect([kind, (error as Error).message]).toEqual(['expired', expect.stringContaining('version 7, which is older than 8')]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('in pages that nobody asked for is no reason to ask for pages from then on', () => {
    const machine = new ReflectorMachine({ ...SETTINGS, streamingList: false });
    machine.take({ type: 'start' }, 0);
    machine.take({ type: 'listed', paged: false }, 0);
    machine.take({ type: 'replaced', resourceVersion: '7' }, 0);
    machine.take({ type: 'refused', kind: 'expired', error: undefined, ranMs: 0 }, 0);
    machine.take({ type: 'listed', paged: true }, 0);
    machine.take({ type: 'replaced', resourceVersion: '8' }, 0);
    machine.take({ type: 'opened' }, 0);
    machine.take({ type: 'storeFailed', kind: 'store', error: undefined, ranMs: 0 }, 0);
    expect(machine.take({ type: 'due' }, 0)).toEqual({ action: { do: 'list', resourceVersion: '8', pageSize: 0 } });
  });
});

const SETTINGS: MachineSettings = {
  ...{ minMs: 800, maxMs: 30_000, factor: 2, resetMs: 120_000, random: () => 0 },
  ...{ streamingList: true, consistentList: false, pageSize: undefined, internalErrorRetryMs: 0 },
};
const FAILED = { kind: 'other', error: undefined, ranMs: 0 } as const;

describe('a watch of what is no event', () => {
  test.each([
    [undefined, 'undefined'],
    [null, 'null'],
    [5, '5'],
    [{ object: {} }, 'Object {object}'],
  ])('%j: says so, and is read on', async (given, shown) => {
    const lists = { list: async () => list('1', 'a') };
    const watch = async (): Promise<never> => {
      const next = vi.fn<() => Promise<IteratorResult<unknown>>>(() => new Promise(() => {}));
      return fromAsyncIterable({ next: next.mockResolvedValueOnce({ done: false, value: given }) }) as never;
    };
    const told: unknown[] = [];
    const onError = (error: unknown, { kind }: { kind: string }): void => void told.push(kind, (error as Error).message);
    const reflector = new Reflector({ ...lists, watch }, new NotingStore(), {
      streamingList: false,
      clock: new FakeClock(),
      onError,
    });
    const stop = new AbortController();
    const run = reflector.run(stop.signal);
    await settle();
    expect([told, reflector.state.phase]).toEqual([['event', `expected an event, got ${shown}`], 'watching']);
    stop.abort();
    await run;
    const retrying = new RetryWatcher<Pod>({ ...lists, watch }, { resourceVersion: '1' });
    expect((await retrying.next()).value).toMatchObject({
      type: 'ERROR',
      object: { code: 500, message: `expected an event, got ${shown}` },
    });
    await retrying.return();
  });
});

describe('a source that is deaf to signals', () => {
  test('is asked for no further page after the end, and the store gets nothing of the one that comes then', async () => {
    const prepare = vi.fn((object: Pod) => object);
    const rig = new Rig({ pageSize: 1 }, Object.assign(new NotingStore(), { prepare }));
    let answer = (_: List<Pod>): void => {};
    rig.source.toList = [() => new Promise((resolve) => (answer = resolve))];
    await rig.start();
    expect(await rig.stop()).toEqual(CLEAN);
    answer({ ...list('1', 'a'), continue: 'more' });
    await settle();
    expect([rig.source.lists.length, prepare.mock.calls]).toEqual([1, []]);
  });
});

describe('failures', () => {
  test('are forgotten when the source was well for long enough, however quiet it was', () => {
    const machine = new ReflectorMachine({ ...SETTINGS, streamingList: false });
    machine.take({ type: 'start' }, 0);
    for (let at = 0; at < 3; at++) {
      machine.take({ type: 'refused', ...FAILED }, 0);
      machine.take({ type: 'due' }, 0);
    }
    expect(machine.failures).toBe(3);
    machine.take({ type: 'listed', paged: false }, 1_000);
    machine.take({ type: 'replaced', resourceVersion: '1' }, 1_000);
    machine.take({ type: 'opened' }, 1_000);
    machine.take({ type: 'error', ...FAILED }, 121_000);
    expect(machine.failures).toBe(1);
  });

  test('are not forgotten while nothing was ever well, also with a resetMs of 0', () => {
    const machine = new ReflectorMachine({ ...SETTINGS, streamingList: false, resetMs: 0 });
    machine.take({ type: 'start' }, 0);
    const delays = Array.from({ length: 3 }, () => {
      const { action } = machine.take({ type: 'refused', ...FAILED }, 0);
      machine.take({ type: 'due' }, 0);
      return action;
    });
    expect(delays).toEqual([800, 1_600, 3_200].map((delayMs) => ({ do: 'wait', delayMs })));
  });
});

describe('a stream that ends before its state is complete, and has brought nothing', () => {
  test.each([
    [999, 'list'],
    [1_000, 'wait'],
  ])('within %i ms leads to: %s', (ranMs, action) => {
    const machine = new ReflectorMachine(SETTINGS);
    machine.take({ type: 'start' }, 0);
    machine.take({ type: 'opened' }, 0);
    const step = machine.take({ type: 'ended', ranMs, empty: true }, ranMs);
    expect(step.action.do).toBe(action);
    const message = 'the watch ended within its initial state';
    if (action === 'wait') expect(step.failure).toMatchObject({ kind: 'other', error: { code: 'CLOSED', message } });
  });
});

describe('a watch', () => {
  test('that ends at once is told as such', async () => {
    const rig = new Rig();
    await rig.start();
    rig.source.last.finish();
    await settle();
    expect(rig.failures).toMatchObject([
      { kind: 'short', error: { code: 'CLOSED', message: expect.stringContaining('within 1000 ms without an event') } },
    ]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('that is silent is told with its limit', async () => {
    const rig = new Rig({ idleTimeoutMs: 5_000 });
    await rig.start();
    await rig.pass(5_000);
    const message = expect.stringContaining('the watch was silent for 5000 ms');
    expect(rig.failures).toMatchObject([{ kind: 'silent', error: { code: 'TIMEOUT', limit: 5_000, message } }]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('whose read rejects fails with that', async () => {
    const rig = new Rig();
    rig.source.toWatch = [new BrokenWatch(refusal(401, 'Unauthorized'))];
    await rig.start();
    expect(rig.failures).toMatchObject([{ kind: 'denied', phase: 'watching', failures: 1, delayMs: 800 }]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('that takes too long to open was no contact with the source', async () => {
    const rig = new Rig({ minWatchTimeoutMs: 1_000 });
    rig.source.toWatch = [() => new Promise(() => {})];
    rig.source.toCheck = [() => new Promise(() => {})];
    await rig.start();
    await rig.pass(10_999);
    rig.source.toWatch = [() => new Promise(() => {})];
    expect([rig.source.watches.length, rig.reflector.state.lastContactMs]).toEqual([1, 0]);
    await rig.pass(1);
    await rig.pass(5_000);
    expect([rig.source.checks.length, rig.reflector.state.lastContactMs]).toEqual([1, 0]);
    rig.abort.abort();
    await rig.running;
  });

  test.each([
    ['a change', change('MODIFIED', 'a', '4')],
    ['a deletion', change('DELETED', 'a', '4')],
    ['a BOOKMARK', bookmark('4')],
    ['a late end of the state', bookmark('4', 'true')],
  ])(
    'that goes back, by %s, is of another life of the source: the store gets nothing of it, and the newest state',
    async (_name, event) => {
      const rig = new Rig();
      rig.source.toList = [list('1'), list('4', 'b')];
      await rig.start();
      rig.source.last.push(change('ADDED', 'a', '5'), bookmark('5'), event, change('ADDED', 'c', '7'));
      await settle();
      await rig.pass(60_000);
      expect(rig.store.notes).toEqual(['replace 1 ', 'add a', 'bookmark 5', 'replace 4 b']);
      expect(rig.failures.map(({ kind, error }) => [kind, (error as Error).message])).toEqual([
        ['expired', 'the watch went back to version 4 after 5: the source may have been restored from a copy'],
      ]);
      expect([rig.source.listed, rig.source.watched]).toEqual([
        ['0', ''],
        ['1', '4'],
      ]);
      rig.source.last.push(change('ADDED', 'c', '5'));
      await settle();
      expect([rig.store.notes.at(-1), rig.reflector.resourceVersion]).toEqual(['add c', '5']);
      expect(await rig.stop()).toEqual(CLEAN);
    },
  );

  test.each<[string, Error | List<Pod>, string]>([
    ['says that it is too new', refusal(504, 'Timeout', { causes: [{ reason: 'ResourceVersionTooLarge', message: '' }] }), '504'],
    ['answers with an older one', list('4'), 'the list has version 4, which is older than 5'],
  ])(
    'is not opened after an outage if the source, asked for its version, %s: the store gets the state that it has',
    async (_name, answer, message) => {
      const rig = new Rig({ labelSelector: 'a=b' });
      rig.source.toList = [list('5', 'a'), list('4'), list('4', 'b')];
      rig.source.toWatch = [new TypeError('fetch failed')];
      rig.source.toCheck = [answer];
      await rig.start();
      await rig.pass(60_000);
      const { signal: _signal, ...asked } = rig.source.checks[0] ?? {};
      expect(asked).toEqual({
        ...{
          resourceVersion: '5',
          resourceVersionMatch: 'NotOlderThan',
          limit: 1,
          labelSelector: 'a=b',
          fieldSelector: undefined,
        },
      });
      expect(rig.store.notes).toEqual(['replace 5 a', 'replace 4 b']);
      expect([rig.source.listed, rig.source.watched]).toEqual([
        ['0', '5', ''],
        ['5', '4'],
      ]);
      expect(rig.failures[1]).toMatchObject({ kind: 'expired', error: { message: expect.stringContaining(message) } });
      expect(await rig.stop()).toEqual(CLEAN);
    },
  );

  test('may be stopped while the source is asked for its version', async () => {
    const rig = new Rig();
    rig.source.toWatch = [new TypeError('fetch failed')];
    rig.source.toCheck = [() => new Promise(() => {})];
    await rig.start();
    await rig.pass(800);
    expect([rig.source.checks.length, rig.reflector.state.phase]).toEqual([1, 'watching']);
    expect(await rig.stop()).toEqual(CLEAN);
    expect([rig.source.checks[0]?.signal?.aborted, rig.source.watches.length]).toEqual([true, 1]);
  });

  test('ends with what onError throws about an event that is there at once', async () => {
    const rig = new Rig({
      onError: (error, { kind }) => {
        if (kind === 'event') throw error;
      },
    });
    rig.source.toWatch = [new ScriptedWatch([{ type: 'NEW', object: {} } as never])];
    const running = fate(rig.reflector.run(rig.abort.signal));
    await settle();
    expect(running.error).toMatchObject({ code: 'INVALID_FRAME', message: 'an event of the unknown type NEW' });
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('needs no onError, and a store that takes no BOOKMARK', async () => {
    const source = new ScriptedSource();
    const seen: string[] = [];
    const store = {
      add: () => void seen.push('add'),
      update: () => void seen.push('update'),
      delete: () => void seen.push('delete'),
      replace: () => void seen.push('replace'),
    };
    const clock = new FakeClock();
    const reflector = new Reflector(source, store, { clock, streamingList: false });
    const stop = new AbortController();
    const run = reflector.run(stop.signal);
    await settle();
    source.last.push({ type: 'NEW', object: {} } as never, bookmark('5'), change('ADDED', 'a', '6'), errorEvent(500));
    await settle();
    expect([seen, reflector.resourceVersion, reflector.state.failures]).toEqual([['replace', 'add'], '6', 1]);
    stop.abort();
    await run;
    expect(clock.pending).toBe(0);
  });
});

describe('a state with more than maxObjects', () => {
  const overloaded = {
    kind: 'other',
    error: { code: 'OVERLOADED', limit: 2, message: expect.stringContaining('maxObjects (2)') },
  };

  test('is not collected to its end: the stream is left, and so is the list; the store sees nothing', async () => {
    const keyOf = vi.fn(({ metadata }: { metadata: { name: string } }) => metadata.name);
    const rig = new Rig({ streamingList: true, maxObjects: 2, keyOf });
    const many = Array.from({ length: 50 }, (_, at) => change('ADDED', `p${at}`, '5'));
    rig.source.toWatch = [new ScriptedWatch([...many, bookmark('5', 'true')])];
    rig.source.toList = [list('5', 'a', 'b', 'c')];
    await rig.start();
    expect(rig.failures).toMatchObject([overloaded, { ...overloaded, delayMs: expect.any(Number) }]);
    expect([rig.store.notes, keyOf.mock.calls.length]).toEqual([[], 3]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('is taken again as soon as it has no more, counting what is deleted while it is streamed', async () => {
    const rig = new Rig({ streamingList: true, maxObjects: 2 });
    const events = [change('ADDED', 'a', '1'), change('ADDED', 'b', '1'), change('DELETED', 'a', '2'), change('ADDED', 'c', '3')];
    rig.source.toWatch = [new ScriptedWatch([...events, bookmark('3', 'true')])];
    await rig.start();
    rig.source.last.push(change('ADDED', 'd', '4')); // later ones are the store's business
    await settle();
    expect([rig.store.notes, rig.failures]).toEqual([['replace 3 b,c', 'add d'], []]);
    expect(await rig.stop()).toEqual(CLEAN);
  });
});

describe('a resync', () => {
  test('comes once in a period, however much comes in it', async () => {
    const rig = new Rig({ resyncMs: 10_000 });
    await rig.start();
    for (let version = 2; version < 30; version++) {
      rig.source.last.push(change('MODIFIED', 'a', `${version}`));
      await rig.pass(1_000);
    }
    expect(rig.store.notes.filter((note) => note === 'resync').length).toBe(2);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('comes in its period, though no watch lasts as long', async () => {
    const rig = new Rig({ resyncMs: 1_000_000 });
    await rig.start();
    for (let watches = 0; watches < 10; watches++) {
      await rig.pass(299_000);
      rig.source.last.finish();
      await settle();
      await rig.pass(1_000);
    }
    expect(rig.store.notes).toEqual(['replace 1 ', 'resync', 'resync', 'resync']);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('does not come while the state is still streamed', async () => {
    const rig = new Rig({ resyncMs: 5_000, streamingList: true });
    rig.source.toWatch = [new ScriptedWatch([change('ADDED', 'a', '1')])];
    await rig.start();
    await rig.pass(6_000);
    expect(rig.store.notes).toEqual([]);
    rig.source.last.push(bookmark('1', 'true'));
    await settle();
    await rig.pass(5_000);
    expect(rig.store.notes).toEqual(['replace 1 a', 'resync']);
    expect(await rig.stop()).toEqual(CLEAN);
  });
});

describe('a retry watcher', () => {
  const options = (clock: FakeClock) => ({ resourceVersion: '1', clock, random: () => 0 });

  test('passes over BOOKMARKs also for who does not wait', async () => {
    const source = new ScriptedSource();
    source.toWatch = [new ScriptedWatch([change('ADDED', 'a', '2'), bookmark('3'), change('ADDED', 'b', '4')])];
    const watch = new RetryWatcher(source, options(new FakeClock()));
    await watch.next();
    expect(watch.tryNext()).toMatchObject({ object: { metadata: { name: 'b' } } });
    expect(watch.resourceVersion).toBe('4');
    await watch.return();
  });

  test('tells a read that is refused with 410, keeps its version, and ends', async () => {
    const source = new ScriptedSource();
    source.toWatch = [new BrokenWatch(refusal(410, 'Gone'))];
    const watch = new RetryWatcher(source, options(new FakeClock()));
    expect(await watch.next()).toMatchObject({ value: { type: 'ERROR', object: { code: 410, reason: 'Gone' } } });
    expect([await watch.next(), watch.resourceVersion]).toEqual([{ done: true, value: undefined }, '1']);
  });

  test('waits longer after a read that fails than after an end', async () => {
    const clock = new FakeClock();
    const source = new ScriptedSource();
    source.toWatch = [refusal(500), new BrokenWatch(new TypeError('terminated')), new ScriptedWatch([change('ADDED', 'a', '2')])];
    const watch = new RetryWatcher(source, options(clock));
    const read = vi.fn();
    void watch.next().then(read);
    await settle();
    clock.advance(1_000);
    await settle();
    expect(source.watches.length).toBe(2);
    clock.advance(1_999);
    await settle();
    expect(source.watches.length).toBe(2);
    clock.advance(1);
    await settle();
    expect([source.watches.length, read.mock.calls.length]).toEqual([3, 1]);
    await watch.return();
    expect(clock.pending).toBe(0);
  });

  test('tries again when its version is yet to come', async () => {
    const clock = new FakeClock();
    const source = new ScriptedSource();
    const details = { causes: [{ reason: 'ResourceVersionTooLarge', message: '' }] } as never;
    source.toWatch = [refusal(504, 'Timeout', details), new ScriptedWatch([change('ADDED', 'a', '2')])];
    const watch = new RetryWatcher(source, options(clock));
    const read = watch.next();
    await settle();
    clock.advance(30_000);
    expect(await read).toMatchObject({ value: { type: 'ADDED' } });
    await watch.return();
  });

  test.each<[unknown, string]>([
    [{ type: 'ADDED', object: { metadata: {} } }, 'ADDED without a version'],
    [{ type: 'NEW', object: { metadata: { resourceVersion: '3' } } }, 'an event of the unknown type NEW'],
  ])('says what is wrong with %j', async (event, message) => {
    const source = new ScriptedSource();
    source.toWatch = [new ScriptedWatch([event as never])];
    const watch = new RetryWatcher(source, options(new FakeClock()));
    const { value } = await watch.next();
    expect(value).toMatchObject({ type: 'ERROR', object: { code: 500, reason: 'InternalError', message } });
    expect(await watch.next()).toMatchObject({ done: true });
  });

  test('may be stopped without a signal, in the middle of a read', async () => {
    const clock = new FakeClock();
    const watch = new RetryWatcher({ list: async () => list('1'), watch: async () => new ScriptedWatch() }, options(clock));
    const read = watch.next();
    await settle();
    watch.stop();
    expect([await read, clock.pending]).toEqual([{ done: true, value: undefined }, 0]);
  });
});
