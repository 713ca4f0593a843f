// What a session says of itself at each moment: whether it has everything, whether it is behind, and what waits for it.
import { expect, test } from 'vitest';
import { coreOf, Hub } from '../../src/bridge/hub/hub.ts';
import type { Start } from '../../src/bridge/hub/hub-log.ts';
import type { HubSession } from '../../src/bridge/hub/hub-session.ts';
import { added, connect, FakeSink, turn, until } from './fake-sink.ts';
import { handFed, hubOf } from './snapshot-source.ts';

/** A connection that has been ended and is not closed yet. */
class Lingering extends FakeSink {
  override end(): void {}
}

const stateOf = ({ upToDate, isBehind, hasRoom }: HubSession): object => ({ upToDate, isBehind, hasRoom });
const CURRENT = { upToDate: true, isBehind: false, hasRoom: true };

test('it is up to date from the first moment, and after each event', async () => {
  const hub = new Hub();
  const { session } = connect(hub);
  expect(stateOf(session)).toEqual(CURRENT);
  await hub.publish(added(1));
  await turn();
  expect(stateOf(session)).toEqual(CURRENT);
  expect(session).toMatchObject({ isCatchingUp: false, resumed: false, reason: 'gone' });
});

test('it is not without room, though nothing waits; once there is room again, it is', async () => {
  const hub = new Hub();
  const sink = connect(hub);
  sink.stall();
  await hub.publish(added(1));
  await until(() => sink.events.length === 1);
  expect(stateOf(sink.session)).toEqual({ upToDate: false, isBehind: true, hasRoom: false });
  expect(sink.session.stats()).toMatchObject({ queued: 0, lag: 0 });
  sink.resume();
  expect(stateOf(sink.session)).toEqual(CURRENT);
});

test('it is not while something waits, be it read or not, though there is room again', async () => {
  const hub = new Hub();
  const sink = connect(hub);
  sink.stall();
  // The first slice is written, the rest of its batch waits.
  for (let i = 0; i < 3; i++) hub.tryPublish(added('x'.repeat(200_000)));
  await until(() => sink.writes.length === 1);
  sink.session.relieved();
  expect(sink.session.stats().queued).toBeGreaterThan(0);
  expect(stateOf(sink.session)).toEqual({ ...CURRENT, upToDate: false });
});

test('it is not once its watch was cut, which leaves nothing in its queue but the ERROR', async () => {
  const hub = new Hub({ capacity: 2, overflow: 'coalesce' });
  const sink = connect(hub);
  sink.stall();
  for (let i = 0; i < 10; i++) await hub.publish({ type: 'ADDED', object: { metadata: { name: `n${i}` } } });
  sink.resume();
  expect(sink.session.stats().queued).toBe(0);
  expect(stateOf(sink.session)).toEqual({ ...CURRENT, upToDate: false });
  await until(() => sink.ended === 'expired');
});

test('it is not while its snapshot runs, in which it is behind, but has room', async () => {
  const { snapshot, give, finish } = handFed();
  const hub = hubOf(snapshot);
  const sink = connect(hub, undefined, { start: coreOf(hub).start({}) as Start });
  give(1);
  await turn();
  expect(stateOf(sink.session)).toEqual({ upToDate: false, isBehind: true, hasRoom: true });
  finish();
  await until(() => sink.session.upToDate);
  expect(stateOf(sink.session)).toEqual(CURRENT);
});

test('it is not after its end, or when its client has gone; then room and a BOOKMARK are nothing to it', async () => {
  const hub = new Hub();
  const [ended, gone, full] = [connect(hub, new Lingering()), connect(hub), connect(hub)];
  ended.session.stop('timeout');
  gone.session.gone();
  full.stall();
  await hub.publish(added(1));
  await until(() => full.events.length === 1);
  full.session.gone();
  expect([ended, gone, full].map(({ session }) => session.upToDate)).toEqual([false, false, false]);
  for (const { session } of [ended, gone, full]) {
    session.relieved();
    session.bookmark();
    session.release();
  }
  await turn();
  expect([ended, gone, full].map(({ events }) => events.length)).toEqual([0, 0, 1]);
  expect(full.session.hasRoom).toBe(false);
});

test('a BOOKMARK waits for nothing: it is left out where events wait', async () => {
  const hub = new Hub();
  const [slow, current] = [connect(hub), connect(hub)];
  slow.stall();
  await hub.publish(added(1));
  await until(() => slow.events.length === 1);
  for (const { session } of [slow, current]) session.bookmark();
  slow.resume();
  await turn();
  expect(slow.events.map(({ type }) => type)).toEqual(['ADDED']);
  expect(current.events.map(({ type }) => type)).toEqual(['ADDED', 'BOOKMARK']);
  expect(current.session.stats()).toMatchObject({ delivered: 1, queued: 0, lag: 0 });
});
