// The age at which a hub tells a client to reconnect.
import { describe, expect, test } from 'vitest';
import { Hub } from '../../src/bridge/hub/hub.ts';
import { type Bookmark, fromAnnotation, RETRY_AFTER } from '../../src/bridge/protocol.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { added, join, turn, until } from './fake-sink.ts';
import { handFed, hubOf } from './snapshot-source.ts';

describe('maxConnectionAgeMs', () => {
  test.each([
    [0, 500],
    [0.5, 750],
    [0.9999, 1_000],
  ])('with a random number of %d, a client is told to reconnect after %d ms of 1,000', (random, ageMs) => {
    const clock = new FakeClock();
    const sink = join(new Hub({ clock, maxConnectionAgeMs: 1_000, random: () => random }));
    clock.advance(ageMs - 1);
    expect(sink.ended).toBeUndefined();
    clock.advance(1);
    expect([sink.ended, sink.retryMs]).toEqual(['goingAway', undefined]);
    expect(clock.pending).toBe(0);
  });

  test('all clients of a hub have one timer for their ages, ends and reports, and none when they have gone', () => {
    const clock = new FakeClock();
    const hub = new Hub({ clock, maxConnectionAgeMs: 1_000, bookmarkIntervalMs: 400 });
    const own = clock.pending;
    const sinks = Array.from({ length: 100 }, (_, n) => join(hub, { allowWatchBookmarks: n % 2 === 0, timeoutSeconds: 5 }));
    expect(clock.pending - own).toBe(1);
    clock.advance(450);
    expect(clock.pending - own).toBe(1);
    for (const { session } of sinks) session?.gone();
    expect(clock.pending).toBe(own);
  });

  test('a client gets all that is queued, and if it asked for them a last BOOKMARK; others are not affected', async () => {
    const clock = new FakeClock();
    const hub = new Hub({ epoch: 'e', clock, maxConnectionAgeMs: 1_000, random: () => 0 });
    const sink = join(hub, { allowWatchBookmarks: true }, { options: { filter: (event) => event.object !== 2 } });
    const plain = join(hub);
    clock.advance(499);
    const young = join(hub);
    plain.stall();
    await hub.publish(added(1));
    hub.tryPublish(added(2));
    clock.advance(1);
    hub.tryPublish(added(3));
    expect(sink.versions).toEqual(['e.0', 'e.1', 'e.2']);
    expect(sink.events.at(-1)?.type).toBe('BOOKMARK');
    // Planned, and at once: the age itself differs for each client.
    expect(fromAnnotation(sink.events.at(-1)?.object as Bookmark, RETRY_AFTER)).toBe(0);
    expect([sink.ended, plain.ended, young.ended]).toEqual(['goingAway', undefined, undefined]);
    plain.resume();
    await until(() => plain.ended !== undefined);
    // The third came after the end; the client resumes with it.
    expect([plain.ended, plain.objects]).toEqual(['goingAway', [1, 2]]);
    expect(young.objects).toEqual([1, 2, 3]);
    expect(hub.stats().total).toMatchObject({ cut: 0, dropped: 0 });
  });

  test('counts from the end of a snapshot, and does not end one', async () => {
    const clock = new FakeClock();
    const { snapshot, give, finish } = handFed();
    const sink = join(hubOf(snapshot, { clock, maxConnectionAgeMs: 1_000, random: () => 0 }));
    give('a');
    await turn();
    clock.advance(5_000);
    finish();
    await until(() => sink.events.length === 2);
    await turn();
    clock.advance(499);
    expect(sink.ended).toBeUndefined();
    clock.advance(1);
    expect(sink.ended).toBe('goingAway');
  });

  test('leaves no timer for a client that went before, during a snapshot or after', async () => {
    const clock = new FakeClock();
    const { snapshot } = handFed();
    const hub = hubOf(snapshot, { clock, maxConnectionAgeMs: 1_000, snapshotTimeoutMs: 0 });
    const copying = join(hub);
    const live = join(hub, { sendInitialEvents: false });
    await turn();
    expect(clock.pending).toBe(1);
    copying.session.gone();
    live.session.gone();
    await turn();
    expect(clock.pending).toBe(0);
  });

  test('tells its delay to those who reconnect when the whole server goes away at the same time', async () => {
    const clock = new FakeClock();
    const hub = new Hub({ clock, maxConnectionAgeMs: 1_000, random: () => 0.5 });
    const sink = join(hub);
    sink.stall();
    hub.tryPublish(added(1));
    void hub.shutdown({ retryAfterMs: 8_000 });
    clock.advance(750);
    sink.resume();
    await until(() => sink.ended !== undefined);
    expect([sink.ended, sink.retryMs]).toEqual(['goingAway', 4_000]);
  });

  test('is off by default, and must be a whole number', () => {
    const clock = new FakeClock();
    const sink = join(new Hub({ clock }));
    expect(clock.pending).toBe(0);
    expect(sink.ended).toBeUndefined();
    expect(() => new Hub({ maxConnectionAgeMs: -1 })).toThrow(/maxConnectionAgeMs/);
  });
});
