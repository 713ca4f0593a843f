// What both queues of deltas have in common: how pops are served, what `close` does, and how a producer is held back.
import { describe, expect, it } from 'vitest';
import { DeltaFifo, RealFifo } from '../../src/cache/index.ts';
import { ListenerCount } from '../../src/testing/fakes/fake-clock.ts';
import { type Thing, thing, things } from './delta-support.ts';
import { fate, turn } from './support.ts';

type Queue = DeltaFifo<Thing> | RealFifo<Thing>;
interface Options {
  readonly capacity?: number;
}

describe.each<[string, (options?: Options) => Queue]>([
  ['DeltaFifo', (options) => new DeltaFifo<Thing>(options)],
  ['RealFifo', (options) => new RealFifo<Thing>(options)],
])('the pops of a %s', (_, open) => {
  const pop = (queue: Queue, process: (key: string) => unknown = () => {}): Promise<unknown> =>
    queue.pop((deltas: readonly unknown[]) => process((deltas[0] as { key: string }).key));

  it('wait for a delta, and are served in the order of their calls', async () => {
    const queue = open();
    const seen: string[] = [];
    const pops = [0, 1, 2].map((number) => pop(queue, (key) => seen.push(`${number} ${key}`)));
    for (const each of things('a1 b1 c1')) queue.add(each);
    expect(seen).toEqual([]); // never within the call of the producer
    await Promise.all(pops);
    expect(seen).toEqual(['0 a', '1 b', '2 c']);
  });

  it('are processed one at a time: the next one waits for the promise of the one before', async () => {
    const queue = open();
    for (const each of things('a1 b1')) queue.add(each);
    const seen: string[] = [];
    let release = (): void => {};
    const first = fate(
      pop(queue, (key) => {
        seen.push(key);
        return new Promise<void>((resolve) => {
          release = resolve;
        });
      }),
    );
    const second = fate(pop(queue, (key) => seen.push(key)));
    await turn();
    expect([seen, first.state, second.state]).toEqual([['a'], 'pending', 'pending']);
    release();
    await turn();
    expect([seen, first.state, second.state]).toEqual([['a', 'b'], 'resolved', 'resolved']);
  });

  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('broken');
      },
    ],
    ['rejects', () => Promise.reject(new Error('broken'))],
  ])('reject with the error of a process that %s; its deltas are gone, and count as processed', async (_how, process) => {
    const queue = new DeltaFifo<Thing>();
    const real = new RealFifo<Thing>();
    for (const each of [queue, real]) {
      each.replace(things('a1'), '1');
      await expect(pop(each, process)).rejects.toThrow('broken');
      expect([each.size, each.hasSynced]).toEqual([0, true]);
      each.add(thing('b', 1));
      await pop(each, (key) => expect(key).toBe('b'));
    }
  });

  it('may be called, and changes may be made, while one is processed', async () => {
    const queue = open();
    queue.add(thing('a', 1));
    let inner: Promise<unknown> | undefined;
    await pop(queue, () => {
      queue.add(thing('b', 1));
      inner = pop(queue, (key) => expect(key).toBe('b'));
    });
    await inner;
    expect(queue.size).toBe(0);
  });

  it('TestDeltaFIFO_PopShouldUnblockWhenClosed, TestRealFIFO_PopShouldUnblockWhenClosed: reject when the queue is closed', async () => {
    const queue = open();
    const pops = [0, 1, 2].map(() => pop(queue));
    queue.close();
    queue.close();
    for (const each of pops) await expect(each).rejects.toMatchObject({ code: 'CLOSED', message: 'the queue is closed' });
    expect(queue.closed).toBe(true);
  });

  it('after close, get what is queued and what is added later, then CLOSED', async () => {
    const queue = open();
    queue.add(thing('a', 1));
    queue.close();
    queue.add(thing('b', 1));
    const seen: string[] = [];
    for (let i = 0; i < 2; i++) await pop(queue, (key) => seen.push(key));
    expect(seen).toEqual(['a', 'b']);
    await expect(pop(queue)).rejects.toMatchObject({ code: 'CLOSED' });
    queue.add(thing('c', 1));
    await pop(queue, (key) => seen.push(key));
    expect(seen).toEqual(['a', 'b', 'c']);
  });

  it('hold a producer back that awaits room, from capacity on', async () => {
    const queue = open({ capacity: 2 });
    queue.add(thing('a', 1));
    expect(await queue.room()).toBeUndefined();
    queue.add(thing('b', 1));
    const held = [fate(queue.room()), fate(queue.room())];
    await turn();
    expect(held.map(({ state }) => state)).toEqual(['pending', 'pending']);
    await pop(queue);
    await turn();
    expect(held.map(({ state }) => state)).toEqual(['resolved', 'resolved']);
  });

  it('let a producer go on when the queue is closed, or its signal aborts; no listener stays', async () => {
    const queue = open({ capacity: 1 });
    queue.add(thing('a', 1));
    const abort = new AbortController();
    const closing = new AbortController();
    const listeners = [abort, closing].map(({ signal }) => new ListenerCount(signal));
    const aborted = fate(queue.room(abort.signal));
    const closed = fate(queue.room(closing.signal));
    abort.abort('enough');
    await turn();
    expect([aborted.state, aborted.error, closed.state]).toEqual(['rejected', 'enough', 'pending']);
    expect(listeners.map(({ count }) => count)).toEqual([0, 1]);
    await expect(queue.room(abort.signal)).rejects.toBe('enough');
    queue.close();
    await turn();
    expect(closed.state).toBe('resolved');
    expect(listeners.map(({ count }) => count)).toEqual([0, 0]);
  });

  it.each<[string, () => unknown, string]>([
    ['no process', () => open().pop(undefined as never), 'process: expected a function, got null'],
    ['a capacity of 0', () => open({ capacity: 0 }), 'capacity: expected a whole number >= 1, got 0'],
    ['an unknown option', () => open({ capacitty: 1 } as never), 'unknown option capacitty: did you mean capacity?'],
    ['a keyOf of no function', () => open({ keyOf: 1 } as never), 'keyOf: expected a function, got 1'],
    ['knownObjects without keys', () => open({ knownObjects: {} } as never), 'knownObjects.keys: expected a function, got null'],
    ['a list that is none', () => open().replace(5 as never, '1'), 'list: expected an iterable of objects, got 5'],
  ])('refuse %s', (_what, call, message) => {
    expect(call).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', message }));
  });
});
