import { describe, expect, it } from 'vitest';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import { checkHistory } from '../../src/testing/checkers/checkers.ts';
import { WATCH_CONTRACT } from '../../src/testing/contracts/contract.ts';
import { RaceFreeFakeWatcher } from '../../src/testing/fakes/fakes.ts';
import { HistoryRecorder } from '../../src/testing/recorder/history-recorder.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { OVERFLOWS } from '../../src/watch/overflow.ts';
import { IMPLEMENTERS } from './watch.contract.ts';

describe.each(IMPLEMENTERS)('the contract of a watch, $name', ({ open, lacks }) => {
  for (const { name, needs, run } of WATCH_CONTRACT) {
    if (needs === undefined || !lacks.includes(needs)) it(name, () => run(open));
    else {
      it(`lacks ${needs}, and says so: ${name}`, async () => {
        await expect(run(open)).rejects.toThrow(/^watch contract: expected/);
      });
    }
  }
});

// The contract sends no more events than there is room for. What a policy does with more is what the guarantees say.
describe.each(OVERFLOWS)('a watch of a Broadcaster with %s', (overflow) => {
  it.each([
    ['all events', undefined],
    ['those that its filter passes', () => true],
  ])('keeps every guarantee when it has no room for %s', async (_, filter) => {
    const recorder = new HistoryRecorder(new Broadcaster({ incoming: 10 }));
    const watch = recorder.watch({ overflow, capacity: 2, filter });
    const publish = (step: number): Promise<void> =>
      recorder.publish({ type: 'MODIFIED', object: { metadata: { name: `n${step}` }, step } });
    for (const step of [1, 2, 3, 4, 5]) await publish(step);
    expect(watch.queued + watch.dropped).toBeGreaterThan(0);
    watch.tryNext();
    for (const step of [6, 7, 8]) await publish(step);
    const closed = recorder.shutdown();
    for await (const _event of watch);
    await closed;
    expect(checkHistory(recorder.history()).map(({ message }) => message)).toEqual([]);
  });
});

describe('the contract', () => {
  const [first] = IMPLEMENTERS;
  const broken: [string, string, (watch: ReturnType<(typeof IMPLEMENTERS)[0]['open']>['watch']) => object][] = [
    ['swallows an event', 'delivers what', (watch) => ({ next: () => watch.next().then(() => watch.next()) })],
    ['never settles return', 'return settles', () => ({ return: () => new Promise(() => {}) })],
    ['does not stop', 'stop and return may', () => ({ stop() {}, return: async () => ({ done: true, value: undefined }) })],
    ['throws away at stop', 'stop leaves', (watch) => ({ stop: () => void watch.return() })],
    ['does not count what it discards', 'return discards', () => ({ dropped: 0 })],
    ['promises what it has not', 'queued promises', () => ({ queued: 7 })],
  ];

  const order = WATCH_CONTRACT.find(({ name }) => name.startsWith('delivers what'));
  /** A watch that gives its first two events in the wrong order. */
  const swapped = (object: (number: number) => unknown): Promise<void> | undefined =>
    order?.run(() => {
      const watch = new RaceFreeFakeWatcher();
      const held: WatchEvent[] = [];
      const send = (number: number): WatchEvent => {
        const event = { type: 'ADDED', object: object(number) };
        if (number === 0) held.push(event);
        else for (const next of [event, ...held.splice(0)]) watch.action(next.type, next.object);
        return event;
      };
      return { watch, send, end: () => watch.stop() };
    });

  it.each<[string, (number: number) => unknown]>([
    ['begin alike', (number) => ({ padding: 'x'.repeat(200), number })],
    ['hold a bigint', (number) => ({ number: BigInt(number) })],
    [
      'hold themselves',
      () => ({
        get own() {
          return this;
        },
      }),
    ],
  ])('tells events apart that %s', async (_, object) => {
    await expect(swapped(object)).rejects.toThrow(/^watch contract: expected all events in order: number 0 of 5 to be /);
  });

  it('says which event is wrong, and what was expected instead', async () => {
    await expect(swapped((number) => number)).rejects.toThrow(
      'watch contract: expected all events in order: number 0 of 5 to be {"type":"ADDED","object":0}, got {"type":"ADDED","object":1}',
    );
  });

  it.each(broken)('rejects a watch that %s', async (_, title, wrong) => {
    const rule = WATCH_CONTRACT.find(({ name }) => name.startsWith(title));
    const open = (): ReturnType<(typeof IMPLEMENTERS)[0]['open']> => {
      const subject = (first as (typeof IMPLEMENTERS)[0]).open();
      const over = wrong(subject.watch);
      const watch = new Proxy(subject.watch, {
        get: (target, key) => {
          const value: unknown = Reflect.get(key in over ? over : target, key);
          return typeof value === 'function' ? value.bind(target) : value;
        },
      });
      return { ...subject, watch };
    };
    await expect(rule?.run(open)).rejects.toThrow(/^watch contract: expected/);
  });
});
