// A reflector, or an informer, that is asked for the newest state.
import { describe, expect, test } from 'vitest';
import { Informer } from '../../src/cache/index.ts';
import { FakeListWatcher } from '../../src/testing/index.ts';
import { settle, type Thing, thing } from './faulty-source.ts';
import { bookmark, CLEAN, change, list, type Pod, Rig, refusal, ScriptedSource, ScriptedWatch } from './reflector-rig.ts';
import { fate } from './support.ts';

describe('a refresh', () => {
  test('ends the watch, and asks for the newest state at once', async () => {
    const rig = new Rig();
    rig.source.toList = [list('1', 'old'), list('9', 'new')];
    await rig.start();
    const refreshed = fate(rig.reflector.refresh());
    await settle();
    expect([refreshed.state, rig.source.listed, rig.source.watched]).toEqual(['resolved', ['0', ''], ['1', '9']]);
    expect([rig.store.notes, rig.failures]).toEqual([['replace 1 old', 'replace 9 new'], []]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('streams, if the source can', async () => {
    const source = new FakeListWatcher<Thing>({ objects: [thing('a')] });
    const asked: unknown[] = [];
    const watch = source.watch.bind(source);
    source.watch = (options = {}) => {
      asked.push([options.sendInitialEvents ?? false, options.resourceVersion]);
      return watch(options);
    };
    const informer = new Informer<Thing>(source);
    const running = informer.run();
    await informer.synced;
    await informer.refresh();
    await informer.stop();
    await running;
    expect(asked).toEqual([
      [true, ''],
      [true, ''],
    ]);
    expect([informer.store.size, source.openWatches]).toEqual([1, 0]);
  });

  test('does not wait for the end of a delay', async () => {
    const rig = new Rig();
    rig.source.toWatch = [refusal(503), refusal(503), refusal(503), refusal(503)];
    await rig.start();
    for (let i = 0; i < 20; i++) await rig.pass(100);
    expect([rig.reflector.state.phase, rig.reflector.state.nextAttemptMs]).toEqual(['waiting', 2_400]);
    rig.source.toWatch = [];
    const refreshed = fate(rig.reflector.refresh());
    await settle();
    expect([refreshed.state, rig.source.listed.at(-1), rig.reflector.state.phase]).toEqual(['resolved', '', 'watching']);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('takes no state that was asked for before', async () => {
    const rig = new Rig();
    let answer: (pods: ReturnType<typeof list>) => void = () => {};
    const later = (): Promise<ReturnType<typeof list>> => new Promise((resolve) => (answer = resolve));
    rig.source.toList = [later, later];
    await rig.start();
    const answerFirst = answer;
    const refreshed = fate(rig.reflector.refresh());
    await settle();
    answerFirst(list('1', 'old'));
    await settle();
    expect([refreshed.state, rig.store.notes]).toEqual(['pending', []]);
    answer(list('2', 'new'));
    await settle();
    expect([refreshed.state, rig.store.notes, rig.source.listed]).toEqual(['resolved', ['replace 2 new'], ['0', '']]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test.each([true, false])(
    'P10.2: takes no state older than the one it has, unless the source insists; streams: %s',
    async (streamingList) => {
      const rig = new Rig({ streamingList });
      const streamed = (version: string) => () => new ScriptedWatch([change('ADDED', 'a', version), bookmark(version, 'true')]);
      rig.source.toList = [list('9', 'a'), list('8', 'behind'), list('5', 'restored')];
      if (streamingList) rig.source.toWatch = [streamed('9'), streamed('8'), streamed('5')];
      await rig.start();
      const refreshed = fate(rig.reflector.refresh());
      await settle();
      expect([refreshed.state, rig.store.notes.map((note) => note.slice(0, 9))]).toEqual([
        'resolved',
        ['replace 9', 'replace 5'],
      ]);
      expect(rig.failures).toMatchObject([{ kind: 'expired', error: { code: 'INVALID_FRAME' }, delayMs: undefined }]);
      expect((streamingList ? rig.source.watched : rig.source.listed).slice(1, 3)).toEqual(['', '']);
      expect(await rig.stop()).toEqual(CLEAN);
    },
  );

  test('that is asked for during another one shares the next one, so nobody can hold it up', async () => {
    const rig = new Rig();
    await rig.start();
    let answer: () => void = () => {};
    rig.source.toList = [() => new Promise((resolve) => (answer = () => resolve(list('2')))), list('3')];
    const first = fate(rig.reflector.refresh());
    await settle();
    const others = [fate(rig.reflector.refresh()), fate(rig.reflector.refresh())];
    await settle();
    expect([first, ...others].map(({ state }) => state)).toEqual(['pending', 'pending', 'pending']);
    answer();
    await settle();
    expect([first, ...others].map(({ state }) => state)).toEqual(['resolved', 'resolved', 'resolved']);
    expect([rig.source.listed, rig.store.notes]).toEqual([
      ['0', '', ''],
      ['replace 1 ', 'replace 2 ', 'replace 3 '],
    ]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('does not wait for the end of a delay either, if an earlier one has failed', async () => {
    const rig = new Rig();
    await rig.start();
    rig.source.toList = [refusal(503), refusal(503), list('5')];
    const first = fate(rig.reflector.refresh());
    await settle();
    const second = fate(rig.reflector.refresh());
    await settle();
    expect([first.state, second.state, rig.source.listed]).toEqual(['pending', 'pending', ['0', '', '']]);
    const third = fate(rig.reflector.refresh());
    await settle();
    expect([first, second, third].map(({ state }) => state)).toEqual(['resolved', 'resolved', 'resolved']);
    expect(rig.source.listed).toEqual(['0', '', '', '']);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('in onError waits for the next attempt, so it cannot ask without end', async () => {
    const refreshed: ReturnType<typeof fate>[] = [];
    const rig: Rig = new Rig({ onError: () => void refreshed.push(fate(rig.reflector.refresh())) });
    await rig.start();
    rig.source.toList = [refusal(503), refusal(503), refusal(503), list('5')];
    refreshed.push(fate(rig.reflector.refresh()));
    for (let i = 0; i < 7; i++) await rig.pass(0);
    expect(rig.source.listed).toEqual(['0', '']);
    for (let i = 0; i < 10; i++) await rig.pass(1_000);
    expect([rig.source.listed.length, refreshed.map(({ state }) => state)]).toEqual([5, Array(4).fill('resolved')]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('reports its failures, and tries again', async () => {
    const rig = new Rig();
    await rig.start();
    rig.source.toList = [refusal(503), list('5', 'a')];
    const refreshed = fate(rig.reflector.refresh());
    rig.store.error = new Error('the store is on strike');
    await settle();
    expect([refreshed.state, rig.failures.map(({ delayMs }) => delayMs)]).toEqual(['pending', [800]]);
    await rig.pass(800);
    expect([refreshed.state, rig.failures.map(({ kind }) => kind)]).toEqual(['pending', ['other', 'store']]);
    await rig.pass(1_600);
    expect([refreshed.state, rig.source.listed, rig.store.notes.at(-1)]).toEqual([
      ...['resolved', ['0', '', '', ''], 'replace 5 a'],
    ]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('before the run waits for the first state; a stop ends it', async () => {
    const rig = new Rig();
    const first = fate(rig.reflector.refresh());
    await settle();
    expect(first.state).toBe('pending');
    await rig.start();
    expect([first.state, rig.source.listed.at(-1)]).toEqual(['resolved', '']);
    rig.source.toList = [() => new Promise(() => {})];
    const pending = [fate(rig.reflector.refresh()), fate(rig.reflector.refresh())];
    expect(await rig.stop()).toEqual(CLEAN);
    for (const each of [...pending, fate(rig.reflector.refresh())]) {
      await settle();
      expect(each.error).toMatchObject({ code: 'CLOSED' });
    }
  });
});

describe('the refresh of an informer', () => {
  const silent = (): Informer<Pod> => {
    const source = new ScriptedSource();
    source.toList = [() => new Promise(() => {}), () => new Promise(() => {})];
    return new Informer<Pod>(source, { streamingList: false });
  };

  test('is given up when its signal aborts', async () => {
    const informer = silent();
    const running = informer.run();
    const abort = new AbortController();
    const refreshed = fate(informer.refresh({ signal: abort.signal }));
    const late = new Error('too late');
    abort.abort(late);
    await settle();
    expect(refreshed.error).toBe(late);
    await expect(informer.refresh({ signal: abort.signal })).rejects.toBe(late);
    await informer.stop();
    await running;
  });

  test.each([true, false])('rejects when the informer stops; it ran: %s', async (ran) => {
    const informer = silent();
    const running = ran ? informer.run() : undefined;
    const refreshed = fate(informer.refresh());
    await settle();
    await informer.stop();
    await running;
    await settle();
    for (const error of [refreshed.error, await informer.refresh().catch((late: unknown) => late)]) {
      expect(error).toMatchObject({ code: 'CLOSED', message: 'the informer has stopped' });
    }
  });

  test('rejects with what has ended the informer', async () => {
    const oops = new Error('onError is broken');
    const source = new ScriptedSource();
    const onError = (): void => {
      throw oops;
    };
    const informer = new Informer<Pod>(source, { streamingList: false, onError });
    const running = fate(informer.run());
    await settle();
    source.toList = [refusal(503)];
    const refreshed = fate(informer.refresh());
    await settle();
    expect([running.error, refreshed.error, await informer.refresh().catch((late: unknown) => late)]).toEqual([oops, oops, oops]);
  });

  test('refuses options that it does not have', async () => {
    await expect(silent().refresh({ timeoutMs: 5 } as object)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });
});
