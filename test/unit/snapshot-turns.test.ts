// Snapshots and other clients: turns of the event loop, backpressure, and the limit on concurrent snapshots.
import { describe, expect, test } from 'vitest';
import { SLICE_BYTES } from '../../src/bridge/events/forms.ts';
import { coreOf } from '../../src/bridge/hub/hub.ts';
import type { Start } from '../../src/bridge/hub/hub-log.ts';
import type { Snapshot } from '../../src/bridge/hub/hub-options.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { added, connect, FakeSink, join, turn, until } from './fake-sink.ts';
import { handFed, hubOf } from './snapshot-source.ts';

describe('a snapshot', () => {
  test.each([
    ['small', 1_000, 10_000],
    ['large', 50_000, 200],
  ])('of %s objects waits for a client without room, and holds no more than a slice for it', async (_size, length, count) => {
    let asked = 0;
    const hub = hubOf(function* () {
      for (; asked < count; asked++) yield 'x'.repeat(length);
    });
    const sink = new FakeSink();
    sink.stall();
    connect(hub, sink, { start: coreOf(hub).start({}) as Start });
    for (let i = 0; i < 50; i++) await turn();
    expect(asked).toBeGreaterThan(1);
    expect(asked).toBeLessThan(SLICE_BYTES / length);
    sink.resume();
    await until(() => sink.events.length === count + 1);
  });

  test('that is ended while its client has no room ends with what was read: nothing more is read, nothing vouches for it', async () => {
    const clock = new FakeClock();
    let asked = 0;
    const hub = hubOf(
      function* () {
        for (; asked < 1_000; asked++) yield asked;
      },
      { clock },
    );
    const sink = new FakeSink();
    sink.stall();
    const timeout = { timeoutSeconds: 1, allowWatchBookmarks: true };
    connect(hub, sink, { start: coreOf(hub).start(timeout) as Start, asked: timeout });
    await turn();
    const read = asked + 1;
    clock.advance(1_000);
    for (let i = 0; i < 3; i++) await turn();
    expect(sink.ended).toBeUndefined();
    sink.resume();
    await until(() => sink.ended !== undefined);
    expect([sink.ended, asked + 1]).toEqual(['timeout', read]);
    expect(sink.events).toEqual(Array.from({ length: read }, (_, i) => added(i)));
  });

  test('lets other clients have their turns, however long it is', async () => {
    const hub = hubOf(() => Array.from({ length: 100_000 }, (_, i) => i));
    join(hub);
    const other = join(hub, { sendInitialEvents: false });
    await hub.publish(added('live'));
    await turn();
    expect(other.objects).toEqual(['live']);
  });

  test('does so even if the filter hides all of it from its client, which may leave', async () => {
    let looked = 0;
    const endless = function* (): Generator<number> {
      for (;;) yield looked++;
    };
    const sources: Snapshot[] = [
      endless,
      async function* () {
        yield* endless();
      },
    ];
    for (const snapshot of sources) {
      const hub = hubOf(snapshot);
      const sink = join(hub, {}, { options: { filter: () => false } });
      looked = 0;
      await turn();
      expect(looked).toBeLessThan(1_000);
      sink.session.gone();
      for (let i = 0; i < 3; i++) await turn();
      const so = looked;
      await turn();
      expect(looked).toBe(so);
    }
  });

  test('that takes longer than the queue lasts makes its client a slow one like any other', async () => {
    const { snapshot, finish } = handFed();
    const hub = hubOf(snapshot, { capacity: 3 });
    const sink = join(hub);
    for (let i = 0; i < 10; i++) hub.tryPublish(added(i));
    finish();
    await until(() => sink.ended !== undefined);
    expect(sink.objects.slice(1, 4)).toEqual([0, 1, 2]);
    expect(sink.events.at(-1)).toMatchObject({ type: 'ERROR', object: { code: 410, details: { missed: 7 } } });
    expect(sink.ended).toBe('expired');
  });

  test('waits in line at the limit of concurrent snapshots; a client that leaves or fails frees its slot', async () => {
    const sources = Array.from({ length: 6 }, handFed);
    let begun = 0;
    const hub = hubOf((context) => (sources[begun++] as ReturnType<typeof handFed>).snapshot(context), { maxSnapshots: 2 });
    const sinks = sources.map(() => join(hub));
    await turn();
    expect(begun).toBe(2);
    sinks[2]?.session.gone(); // in line
    sinks[0]?.session.gone(); // being read: a place is free
    await until(() => begun === 3);
    sources[1]?.finish();
    await until(() => begun === 4);
    sources[2]?.finish(); // the third to begin: sinks[3]
    sources[3]?.finish();
    await until(() => begun === 5);
    expect(sinks.map(({ events }) => events.length)).toEqual([0, 1, 0, 1, 1, 0]);
    await turn();
    sources[4]?.finish();
    await until(() => sinks[5]?.events.length === 1);
    expect(begun).toBe(5);
  });

  test('whose client leaves at once is not read, and frees its slot', async () => {
    const asked: unknown[] = [];
    const hub = hubOf(
      ({ identity }) => {
        asked.push(identity);
        return [identity];
      },
      { maxSnapshots: 1 },
    );
    join(hub, {}, { identity: 'gone' }).session.gone();
    const sink = join(hub, {}, { identity: 'here' });
    await until(() => sink.events.length === 2);
    expect(asked).toEqual(['here']);
  });

  test.each(['asked', 'read'])('whose source disconnects its client as it is %s frees its slot', async (when) => {
    const hub = hubOf(
      ({ identity }) => {
        if (identity === 'here') return [1];
        const cut = (): Promise<never> => {
          hub.disconnect((client) => client.identity === identity);
          return new Promise(() => {});
        };
        return when === 'asked' ? cut() : { [Symbol.asyncIterator]: () => ({ next: cut }) };
      },
      { maxSnapshots: 1 },
    );
    join(hub, {}, { identity: 'leaving' });
    const sink = join(hub, {}, { identity: 'here' });
    await until(() => sink.events.length === 2);
    expect(hub.stats().total.cuts).toEqual({ disconnected: 1 });
  });

  test('whose client has no room gives its slot to others, and continues before those that have not started', async () => {
    /** Who has begun, and how much the slow one had got by then. */
    const begun: [unknown, number][] = [];
    const slow = new FakeSink();
    slow.stall();
    const hub = hubOf(
      ({ identity }) => {
        begun.push([identity, slow.events.length]);
        return Array.from({ length: 1_000 }, (_, i) => i);
      },
      { maxSnapshots: 1 },
    );
    connect(hub, slow, { start: coreOf(hub).start({}) as Start, identity: 'slow' });
    const second = join(hub, {}, { identity: 'second' });
    await until(() => second.events.length === 1_001);
    const part = slow.events.length;
    expect(part).toBeLessThan(500);
    const [third, fourth] = ['third', 'fourth'].map((identity) => join(hub, {}, { identity }));
    slow.resume();
    await until(() => fourth?.events.length === 1_001);
    expect(slow.objects.slice(0, 1_000)).toEqual(Array.from({ length: 1_000 }, (_, i) => i));
    expect(third?.events.length).toBe(1_001);
    expect(begun).toEqual([
      ['slow', 0],
      ['second', part],
      ['third', part],
      ['fourth', 1_001],
    ]);
  });
});
