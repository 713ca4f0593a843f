// How a reflector gets the state as the beginning of a watch.
import { describe, expect, test } from 'vitest';
import type { ReflectorOptions } from '../../src/cache/index.ts';
import type { ObjectEvent } from '../../src/watch/event.ts';
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
  ScriptedWatch,
} from './reflector-rig.ts';

const added = (name: string, version: string): ObjectEvent<Pod> => change('ADDED', name, version);
const end = (version: string): ObjectEvent<Pod> => bookmark(version, 'true');

async function streamed(answers: (Error | ScriptedWatch)[], options: ReflectorOptions<Pod> = {}): Promise<Rig> {
  const rig = new Rig({ streamingList: true, ...options });
  rig.source.toWatch = answers;
  await rig.start();
  return rig;
}

describe('a stream', () => {
  test('TestWatchList: the state reaches the store at once, when its end is told; the same watch goes on', async () => {
    const rig = await streamed([new ScriptedWatch([added('a', '9'), added('b', '3')])]);
    expect(rig.source.watches).toMatchObject([
      {
        ...{ resourceVersion: '', sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan', allowWatchBookmarks: true },
        timeoutSeconds: 300,
      },
    ]);
    expect([rig.store.notes, rig.phases, rig.reflector.resourceVersion]).toEqual([[], ['listing'], '']);
    rig.source.last.push(end('10'), added('c', '11'));
    await settle();
    expect(rig.store.notes).toEqual(['replace 10 a,b', 'add c']);
    expect([rig.phases, rig.reflector.resourceVersion]).toEqual([['listing', 'watching'], '11']);
    expect([rig.source.lists.length, rig.source.watches.length]).toEqual([0, 1]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('changes within the state count', async () => {
    const events = [added('a', '1'), added('b', '2'), change('MODIFIED', 'a', '3'), change('DELETED', 'b', '4'), added('c', '5')];
    const rig = await streamed([new ScriptedWatch([...events, bookmark('5'), end('6')])]);
    expect(rig.store.notes).toEqual(['replace 6 a,c']);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('only the annotation "true" is the end', async () => {
    const rig = await streamed([new ScriptedWatch([added('a', '1'), bookmark('2', 'false'), bookmark('3')])]);
    expect([rig.store.notes, rig.reflector.resourceVersion]).toEqual([[], '']);
    rig.source.last.push(bookmark('4', 'true'), bookmark('5', 'true'));
    await settle();
    expect(rig.store.notes).toEqual(['replace 4 a', 'bookmark 5']);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test.each([
    ['refuses it as invalid', refusal(422, 'Invalid')],
    ['refuses it as unknown', refusal(400, 'BadRequest')],
    ['fails', refusal(500, 'InternalError')],
  ])('a source that %s is listed at once, and nothing is told', async (_, error) => {
    const rig = await streamed([error]);
    expect([rig.source.listed, rig.failures, rig.store.notes]).toEqual([['0'], [], ['replace 1 ']]);
    expect(rig.source.watches.map(({ sendInitialEvents = false }) => sendInitialEvents)).toEqual([true, false]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('an ERROR within the state leads to a list', async () => {
    const rig = await streamed([new ScriptedWatch([added('a', '1'), errorEvent(500, 'InternalError')])]);
    expect([rig.source.listed, rig.store.notes]).toEqual([['0'], ['replace 1 ']]);
    expect(rig.failures).toMatchObject([{ kind: 'internal', phase: 'listing' }]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('an abort within the state: the store sees nothing', async () => {
    const rig = await streamed([new ScriptedWatch([added('a', '1')])]);
    expect(await rig.stop()).toEqual(CLEAN);
    expect(rig.store.notes).toEqual([]);
  });

  test('a 410 within the state: it is streamed again at once, without a version', async () => {
    const rig = await streamed([
      new ScriptedWatch([added('old', '1'), errorEvent(410, 'Expired')]),
      new ScriptedWatch([end('5')]),
    ]);
    expect([rig.source.watched, rig.store.notes, rig.source.lists]).toEqual([['', ''], ['replace 5 '], []]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('a 410 after the state: it is streamed again at once, not older than before', async () => {
    const first = new ScriptedWatch([added('a', '1'), end('5'), errorEvent(410, 'Expired')]);
    const rig = await streamed([first, new ScriptedWatch([added('b', '6'), end('7')])]);
    expect([rig.source.watched, rig.store.notes]).toEqual([
      ['', '5'],
      ['replace 5 a', 'replace 7 b'],
    ]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('a state that is older than what was asked for is not taken', async () => {
    const first = new ScriptedWatch([end('5'), errorEvent(410, 'Expired')]);
    const rig = await streamed([first, new ScriptedWatch([added('old', '3'), end('4')]), new ScriptedWatch([end('9')])]);
    expect([rig.source.watched, rig.store.notes]).toEqual([
      ['', '5', ''],
      ['replace 5 ', 'replace 9 '],
    ]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test.each([refusal(429), new TypeError('fetch failed')])('%s: it waits, and streams again', async (error) => {
    const rig = await streamed([error, new ScriptedWatch([end('5')])]);
    expect(rig.reflector.state).toMatchObject({ phase: 'waiting', nextAttemptMs: 800, error });
    await rig.pass(800);
    expect([rig.source.lists, rig.store.notes]).toEqual([[], ['replace 5 ']]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('a source that throws something of its own each time is listed after the second', async () => {
    const rig = await streamed([new Error('not implemented'), new Error('not implemented')]);
    await rig.pass(800);
    expect([rig.source.listed, rig.store.notes]).toEqual([['0'], ['replace 1 ']]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('FIX10.2: a watch that ends within the state is opened again after a delay, with an empty state; then it is listed', async () => {
    const cut = (...events: ObjectEvent<Pod>[]): ScriptedWatch => {
      const watch = new ScriptedWatch(events);
      watch.finish();
      return watch;
    };
    const rig = await streamed([cut(added('a', '1')), new ScriptedWatch([added('b', '2')])]);
    expect(rig.failures).toMatchObject([{ kind: 'other', error: { code: 'CLOSED' }, delayMs: 800 }]);
    await rig.pass(800);
    rig.source.last.push(end('3'));
    await settle();
    expect(rig.store.notes).toEqual(['replace 3 b']);
    rig.source.toWatch = [cut(added('a', '4')), cut(added('a', '5'))];
    rig.source.toList = [list('6', 'c')];
    rig.source.last.push(errorEvent(410));
    await settle();
    await rig.pass(3_200);
    expect([rig.source.listed, rig.store.notes]).toEqual([['3'], ['replace 3 b', 'replace 6 c']]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('one that ends at once and has brought nothing is listed at once', async () => {
    const watch = new ScriptedWatch();
    watch.finish();
    const rig = await streamed([watch]);
    expect(rig.source.listed).toEqual(['0']);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('TestInitialEventsEndBookmarkTicker: a source that never ends the state is listed after 30 s of silence, and from then on', async () => {
    const rig = await streamed([new ScriptedWatch([added('a', '1')])]);
    await rig.pass(20_000);
    rig.source.last.push(added('b', '2'));
    await settle();
    await rig.pass(29_999);
    expect(rig.source.lists).toHaveLength(0);
    await rig.pass(1);
    expect(rig.failures).toMatchObject([{ kind: 'silent', phase: 'listing', error: { code: 'TIMEOUT', limit: 30_000 } }]);
    expect([rig.source.listed, rig.store.notes]).toEqual([['0'], ['replace 1 ']]);
    rig.source.last.push(errorEvent(410));
    await settle();
    expect([rig.source.listed, rig.source.watches.filter(({ sendInitialEvents }) => sendInitialEvents).length]).toEqual([
      ['0', '1'],
      1,
    ]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  /** What a source that has accepted a stream, but does not know streams, leads to: a list, at once, and no stream later. */
  async function expectListed(rig: Rig, error: object): Promise<void> {
    const failure = { kind: 'silent', phase: 'listing', failures: 0, delayMs: undefined };
    const message = expect.stringMatching(/: a source that cannot begin a watch with the state must refuse sendInitialEvents$/);
    expect(rig.failures).toEqual([{ ...failure, error: expect.objectContaining({ message, ...error }) }]);
    expect([rig.source.listed, rig.store.notes]).toEqual([['0'], ['replace 1 ']]);
    rig.source.last.push(errorEvent(410));
    await settle();
    expect(rig.source.watches.map(({ sendInitialEvents = false }) => sendInitialEvents)).toEqual([true, false, false]);
    expect(await rig.stop()).toEqual(CLEAN);
  }

  test.each(['MODIFIED', 'DELETED'] as const)('%s of an object that is not in the state: the source is listed', async (type) => {
    const live = [added('a', '1'), change('MODIFIED', 'a', '2'), change(type, 'b', '3'), added('c', '4')];
    await expectListed(await streamed([new ScriptedWatch(live)]), { code: 'INVALID_FRAME' });
  });

  test('an object that is gone from the state is not in it', async () => {
    const live = [added('a', '1'), change('DELETED', 'a', '2'), change('MODIFIED', 'a', '3')];
    await expectListed(await streamed([new ScriptedWatch(live)]), { code: 'INVALID_FRAME' });
  });

  test('a source that sends what is new instead of the state is listed after a minute', async () => {
    const rig = await streamed([new ScriptedWatch()]);
    for (let n = 0; n < 6; n++) {
      expect(rig.source.lists).toEqual([]);
      rig.source.last.push(added(`a${n}`, `${n + 1}`), added('again', `${n + 1}`));
      await settle();
      await rig.pass(10_000);
    }
    await expectListed(rig, {
      code: 'TIMEOUT',
      limit: 60_000,
      message: expect.stringMatching(/^7 objects came in 60000 ms, and no end/),
    });
  });

  test.each([
    ['600 objects', (at: number) => Array.from({ length: 100 }, (_, n) => added(`a${at}-${n}`, '1')), 0],
    ['256 KiB', (at: number) => [added(`a${at}`, '1')], 2 ** 16],
  ])('a large state over a slow connection, with %s in a minute, is not given up', async (_name, events, bytes) => {
    const rig = await streamed([new ScriptedWatch()]);
    for (let at = 0; at < 18; at++) {
      rig.source.watches[0]?.onBytes?.(bytes);
      rig.source.last.push(...events(at));
      await settle();
      await rig.pass(10_000);
    }
    expect([rig.source.lists, rig.failures, rig.store.notes]).toEqual([[], [], []]);
    rig.source.last.push(end('9'));
    await settle();
    await rig.pass(60_000);
    expect([rig.source.lists, rig.failures, rig.store.notes.length]).toEqual([[], [], 1]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('a state that has ended, and waits for room in the store, is not given up', async () => {
    const store = new NotingStore();
    let release: () => void = () => {};
    const room = new Promise<void>((resolve) => {
      release = resolve;
    });
    const rig = new Rig({ streamingList: true }, Object.assign(store, { room: () => room }));
    rig.source.toWatch = [new ScriptedWatch([added('a', '1'), end('2')])];
    await rig.start();
    await rig.pass(120_000);
    release();
    await settle();
    expect([rig.source.lists, rig.failures, store.notes]).toEqual([[], [], ['replace 2 a']]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('an object without a key is for the store to judge', async () => {
    const nameless = (type: string): ObjectEvent<Pod> => ({ type, object: { metadata: {} } }) as never;
    const rig = await streamed([new ScriptedWatch([nameless('ADDED'), nameless('MODIFIED'), end('5')])]);
    expect(rig.store.notes).toEqual(['replace 5 ,']);
    expect(await rig.stop()).toEqual(CLEAN);
    const keyed = await streamed([new ScriptedWatch([added('a', '1'), added('b', '2'), end('5')])], { keyOf: () => 'same' });
    expect(keyed.store.notes).toEqual(['replace 5 b']);
    expect(await keyed.stop()).toEqual(CLEAN);
  });
});

test('TestWatchListResourceVersion: requests through failures name the last version, or none', async () => {
  const rig = await streamed([
    new ScriptedWatch([end('5'), errorEvent(418)]),
    refusal(410),
    refusal(422),
    new ScriptedWatch([errorEvent(418)]),
    new ScriptedWatch([end('8')]),
  ]);
  rig.source.toList = [list('7')];
  await rig.pass(800);
  await rig.pass(1_600);
  expect([rig.source.watched, rig.source.listed]).toEqual([['', '5', '', '7', '7'], ['']]);
  expect(rig.store.notes).toEqual(['replace 5 ', 'replace 7 ', 'replace 8 ']);
  expect(await rig.stop()).toEqual(CLEAN);
});

test('TestNewReflectorWithDisablementWatchList: without streams, it lists', async () => {
  const rig = await streamed([], { streamingList: false });
  expect([rig.source.listed, rig.source.watched]).toEqual([['0'], ['1']]);
  expect(await rig.stop()).toEqual(CLEAN);
});
