import { describe, expect, it } from 'vitest';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import { checkHistory } from '../../src/testing/checkers/checkers.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { HistoryRecorder } from '../../src/testing/recorder/history-recorder.ts';
import { ev } from './build.ts';

describe('a history recorder', () => {
  it('records a run that keeps all guarantees, with little effort', async () => {
    const options = { capacity: 2, overflow: 'drop-oldest' } as const;
    const recorder = new HistoryRecorder(new Broadcaster(options), options);
    const abort = new AbortController();
    const watch = recorder.watch({ name: 'w', signal: abort.signal });
    for (const name of ['a', 'b', 'c']) await recorder.publish(ev(name));
    expect(await watch.next()).toEqual({ done: false, value: ev('b') });
    await recorder.shutdown();
    for await (const event of watch) expect(event).toEqual(ev('c'));
    const { steps } = recorder.history();
    expect(steps.map(({ step }) => step).join(' ')).toBe(
      `watch ${'publish accepted '.repeat(3)}read gap asked delivered shutdown closed read delivered read end counts leftovers`,
    );
    expect(checkHistory(recorder.history())).toEqual([]);
  });

  it('refuses events that it cannot tell apart, instead of accusing the broadcaster; idOf tells them apart', async () => {
    const seven = { type: 'temperature', object: 7 };
    const run = async (idOf?: (event: unknown) => unknown): Promise<unknown> => {
      const recorder = new HistoryRecorder(new Broadcaster(), idOf && { idOf });
      const watch = recorder.watch();
      for (const event of [seven, { ...seven }]) await recorder.publish(event);
      await recorder.shutdown();
      for await (const event of watch) expect(event).toEqual(seven);
      return checkHistory(recorder.history());
    };
    await expect(run()).rejects.toThrow('idOf: expected an identity of its own for each accepted event, got "7"');
    expect(await run((event) => event)).toEqual([]);
  });

  it('detects a lossy watcher, and a timer and a listener left behind', async () => {
    const broadcaster = new Broadcaster({ capacity: 1 });
    const clock = new FakeClock();
    const recorder = new HistoryRecorder(broadcaster, { timers: () => clock.pending });
    const abort = new AbortController();
    const watch = recorder.watch({ overflow: 'drop-newest', signal: abort.signal });
    abort.signal.addEventListener('abort', () => {});
    clock.schedule(1, () => {});
    for (const name of ['a', 'b', 'c']) recorder.tryPublish(ev(name));
    watch.stop();
    await watch.next();
    await watch.next();
    const [exact, ...others] = checkHistory(recorder.history());
    // The recorder was not told of the capacity: by its own default of 100, there was room.
    expect(exact).toMatchObject({ guarantee: 'Exact', watcher: 'watcher 1', event: ev('b') });
    expect(others.map(({ message }) => message)).toEqual([
      'Settled: expected no timer and no listener left, seen 1 timers, 1 listeners',
    ]);
  });

  it('keeps the order of publishes that waited, even if one of them is seen to arrive before another', async () => {
    const options = { capacity: 1, incoming: 0 };
    const recorder = new HistoryRecorder(new Broadcaster(options), options);
    const [all, some] = [
      recorder.watch({ name: 'all', capacity: 0 }),
      recorder.watch({ name: 'some', filter: (event) => event !== ev('b') }),
    ];
    const reads = [all.next()];
    const published = [...'abc'].map((name) => recorder.publish(ev(name)));
    expect(some.tryNext()).toEqual(ev('a'));
    reads.push(all.next(), all.next());
    expect(some.tryNext()).toEqual(ev('c'));
    await Promise.all([...reads, ...published]);
    await recorder.shutdown();
    const { steps } = recorder.history();
    expect(steps.flatMap((step) => (step.step === 'accepted' ? step.event : []))).toEqual([...'abc'].map((name) => ev(name)));
    expect(checkHistory(recorder.history())).toEqual([]);
  });

  it('returns the result of a filter, and interprets it as the broadcaster does', async () => {
    const recorder = new HistoryRecorder(new Broadcaster());
    const watches = [undefined, null, 1].map((said) => recorder.watch({ prefix: [ev('p')], filter: () => said as never }));
    recorder.tryPublish(ev('a'));
    await recorder.shutdown();
    expect(watches.map((watch) => [watch.tryNext(), watch.tryNext()])).toEqual([
      [undefined, undefined],
      [undefined, undefined],
      [ev('p'), ev('a')],
    ]);
    expect(checkHistory(recorder.history())).toEqual([]);
  });

  it('records who aborted a shutdown, and what an abort ended', async () => {
    const options = { capacity: 1, incoming: 5 };
    const recorder = new HistoryRecorder(new Broadcaster(options), options);
    const [abort, giveUp] = [new AbortController(), new AbortController()];
    recorder.watch({ name: 'aborted', signal: abort.signal });
    recorder.watch({ name: 'stalled' });
    for (const name of ['a', 'b']) recorder.tryPublish(ev(name));
    abort.abort();
    const over = recorder.shutdown({ signal: giveUp.signal });
    giveUp.abort(new Error('enough'));
    await expect(over).rejects.toThrow('enough');
    const steps = recorder.history().steps.map(({ step }) => step);
    expect(steps.join(' ')).toBe(
      `watch watch ${'publish accepted '.repeat(2)}stop stopped shutdown gave-up counts counts leftovers`,
    );
    expect(checkHistory(recorder.history())).toEqual([]);
  });

  it('throws what its broadcaster throws', async () => {
    const recorder = new HistoryRecorder(new Broadcaster());
    await recorder.shutdown();
    expect(() => recorder.watch()).toThrow('shut down');
    expect(() => recorder.tryPublish(ev('a'))).toThrow('shut down');
    await expect(recorder.publish(ev('b'))).rejects.toMatchObject({ code: 'CLOSED' });
    expect(checkHistory(recorder.history())).toEqual([]);
  });
});
