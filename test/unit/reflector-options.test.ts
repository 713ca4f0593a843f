// What is refused says which argument is wrong, and what it should be.
import { describe, expect, test } from 'vitest';
import { Reflector, RetryWatcher, until } from '../../src/cache/index.ts';
import { FakeClock, FakeWatcher } from '../../src/testing/index.ts';
import { settle } from './faulty-source.ts';
import { NotingStore, Rig, ScriptedSource, ScriptedWatch } from './reflector-rig.ts';
import { thrown } from './support.ts';

const RETRY: readonly [string, unknown, string][] = [
  ['minMs', 0, 'minMs'],
  ['maxMs', 5, 'maxMs'],
  ['factor', 0.5, 'factor: expected a number >= 1'],
  ['factor', Number.NaN, 'factor'],
  ['random', 1, 'random'],
  ['labelSelector', {}, 'labelSelector'],
  ['fieldSelector', {}, 'fieldSelector'],
  ['idleTimeoutMs', -1, 'idleTimeoutMs'],
  ['other', 1, 'other'],
];

describe('a reflector', () => {
  const make = (options: object): unknown => new Reflector(new ScriptedSource(), new NotingStore(), options);

  test.each<[string, unknown, string]>([
    ...RETRY,
    ['resetMs', -1, 'resetMs'],
    ['streamingList', 'yes', 'streamingList: expected true or false'],
    ['consistentList', 1, 'consistentList: expected true or false'],
    ['pageSize', 0.5, 'pageSize'],
    ['maxObjects', 0, 'maxObjects'],
    ['maxTotalListBytes', 0, 'maxTotalListBytes'],
    ['minWatchTimeoutMs', 999, 'minWatchTimeoutMs'],
    ['internalErrorRetryMs', -1, 'internalErrorRetryMs'],
    ['resyncMs', -1, 'resyncMs'],
    ['shouldResync', true, 'shouldResync'],
    ['keyOf', 'name', 'keyOf'],
    ['onError', {}, 'onError'],
    ['onStateChange', {}, 'onStateChange'],
  ])('refuses %s: %j', (name, value, text) => {
    const error = thrown(() => make({ minMs: 10, [name]: value }));
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(text) });
  });

  test('takes what is just allowed', () => {
    expect(() => make({ minMs: 1, maxMs: 1, factor: 1, minWatchTimeoutMs: 1_000, idleTimeoutMs: 0, pageSize: 0 })).not.toThrow();
  });

  test('refuses what is no source or store, and a second run', async () => {
    const store = new NotingStore();
    for (const part of ['list', 'watch'] as const) {
      const source = { list: async () => {}, watch: async () => {}, [part]: 1 };
      const error = thrown(() => new Reflector(source as never, store));
      expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(/^source: .*a ListWatcher/) });
    }
    expect(thrown(() => new Reflector(new ScriptedSource(), {} as never))).toMatchObject({
      message: expect.stringMatching(/^store: .*a ReflectorStore/),
    });
    const rig = new Rig();
    await rig.start();
    await expect(rig.reflector.run()).rejects.toThrow('a reflector runs once');
    await rig.stop();
  });

  test('streams unless it is told otherwise, and needs no option and no signal', async () => {
    const source = new ScriptedSource();
    const enough = new Error('enough');
    const store = new NotingStore();
    const reflector = new Reflector(source, store, {
      onStateChange: ({ phase }) => {
        if (phase === 'watching') throw enough;
      },
    });
    source.toWatch = [new ScriptedWatch([{ type: 'BOOKMARK', object: END }])];
    await expect(reflector.run()).rejects.toBe(enough);
    await settle();
    expect([source.lists.length, store.notes, source.last.ends]).toEqual([0, ['replace 3 '], 1]);
  });
});

const END = { metadata: { resourceVersion: '3', annotations: { 'k8s.io/initial-events-end': 'true' } } };

describe('a retry watcher', () => {
  const make = (options: object): unknown => new RetryWatcher(new ScriptedSource(), { resourceVersion: '1', ...options });

  test.each<[string, unknown, string]>([
    ...RETRY,
    ['resourceVersion', '0', 'resourceVersion: expected a version of the collection, neither empty nor 0'],
  ])('refuses %s: %j', (name, value, text) => {
    const error = thrown(() => make({ minMs: 10, [name]: value }));
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(text) });
  });

  test('refuses what is no source', () => {
    const error = thrown(() => new RetryWatcher({} as never, { resourceVersion: '1' }));
    expect(error).toMatchObject({ message: expect.stringMatching(/^source: .*a ListWatcher/) });
  });
});

describe('until', () => {
  test('says why it was in vain', async () => {
    const clock = new FakeClock();
    const late = until(new FakeWatcher(), [() => true], { timeoutMs: 1_000, clock });
    clock.advance(1_000);
    await expect(late).rejects.toMatchObject({ code: 'TIMEOUT', message: 'not all conditions were met within 1000 ms' });
    const ended = new FakeWatcher();
    ended.stop();
    const message = 'the watch ended before all conditions were met';
    await expect(until(ended, [() => true])).rejects.toMatchObject({ code: 'CLOSED', message });
  });

  test.each<[string, unknown[], string]>([
    ['a negative limit', [new FakeWatcher(), [], { timeoutMs: -1 }], 'timeoutMs'],
    ['conditions that are no array', [new FakeWatcher(), {}], 'conditions: expected an array of functions'],
    ['a condition that is no function', [new FakeWatcher(), [undefined]], 'condition'],
    ['what is neither watch nor source', [undefined, []], 'watch: expected a watch, or a source'],
  ])('refuses %s', async (_, [from, conditions, options], text) => {
    const waiting = until(from as never, conditions as never, options as never);
    await expect(waiting).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(text) });
  });
});
