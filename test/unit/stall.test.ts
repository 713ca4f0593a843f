import { expect, test } from 'vitest';
import { createFetchHandler } from '../../src/bridge/fetch.ts';
import { Hub } from '../../src/bridge/hub/hub.ts';
import { guardStalls, type Outbound, SharedTimer } from '../../src/bridge/transport/stall.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { connect } from './fake-sink.ts';

type Numbers = { -readonly [K in keyof Outbound]: Outbound[K] } & { _handle: { writeQueueSize: number } };

function watched(stallTimeoutMs: number = 1_000): { sink: ReturnType<typeof connect>; socket: Numbers; clock: FakeClock } {
  const clock = new FakeClock();
  const sink = connect(new Hub());
  const socket = { writableLength: 0, bytesWritten: 0, _handle: { writeQueueSize: 0 } };
  guardStalls(sink.session, socket, new SharedTimer(stallTimeoutMs, clock));
  return { sink, socket, clock };
}

/** More bytes wait, and none is taken. */
const pile = (socket: Numbers, bytes: number): void => {
  socket.writableLength += bytes;
  socket.bytesWritten = (socket.bytesWritten ?? 0) + bytes;
};

test('a client that takes nothing is cut, not before the timeout and at most a quarter later', () => {
  const { sink, socket, clock } = watched();
  clock.advance(10_249);
  pile(socket, 100);
  clock.advance(1_000);
  expect(sink.destroyed).toBe(false);
  clock.advance(250);
  expect([sink.destroyed, sink.session.reason]).toEqual([true, 'stalled']);
  expect(clock.pending).toBe(0);
});

test('newly written bytes are not progress', () => {
  const { sink, socket, clock } = watched();
  for (let at = 0; at < 1_250; at += 125) {
    pile(socket, 100);
    clock.advance(125);
  }
  expect(sink.destroyed).toBe(true);
});

test.each([
  ['a write that is done', 1, 0],
  ['a part of one, be it as long as it may', 0, 1],
])('%s is progress', (_what, done, part) => {
  const { sink, socket, clock } = watched();
  pile(socket, 1_000);
  socket._handle.writeQueueSize = 1_000;
  for (let i = 0; i < 20; i++) {
    clock.advance(900);
    socket.writableLength -= done;
    socket._handle.writeQueueSize -= part;
  }
  expect(sink.destroyed).toBe(false);
  clock.advance(1_250);
  expect(sink.destroyed).toBe(true);
});

test('a stream that is not a socket is judged by what the session has sent', () => {
  const { sink, socket, clock } = watched();
  socket.bytesWritten = undefined as unknown as number;
  socket.writableLength = 1_000;
  for (let i = 0; i < 20; i++) {
    sink.session.sentBytes += 10;
    clock.advance(900);
  }
  expect(sink.destroyed).toBe(false);
  clock.advance(1_250);
  expect(sink.destroyed).toBe(true);
});

test.each([
  ['one long event', [1_000_000, 10, 10]],
  ['many events at once', Array.from({ length: 99 }, () => 10_000)],
])('a host that passes on %s at 5 KB/s is at work all the time', async (_what, sizes) => {
  const clock = new FakeClock();
  const hub = new Hub({ clock });
  const { body } = await createFetchHandler(hub, { clock })(new Request('http://here/watch'));
  const reader = (body as ReadableStream<Uint8Array>).getReader();
  for (const size of sizes) await hub.publish({ type: 'text', object: 'x'.repeat(size) });
  let text = '';
  while (text.split('\n').length <= sizes.length) {
    const { value } = await reader.read();
    text += new TextDecoder().decode(value);
    clock.advance((value?.length ?? 0) / 5);
    expect(hub.stats().total.cut).toBe(0);
  }
  await reader.cancel();
  expect(clock.pending).toBe(0);
});

test('many clients share one timer, and each is cut separately', () => {
  const clock = new FakeClock();
  const timer = new SharedTimer(1_000, clock);
  const sockets = Array.from({ length: 3 }, () => ({ writableLength: 0, bytesWritten: 0 }));
  const sinks = sockets.map((socket) => {
    const sink = connect(new Hub());
    guardStalls(sink.session, socket, timer);
    return sink;
  });
  expect(clock.pending).toBe(1);
  (sockets[1] as Numbers).writableLength = (sockets[1] as Numbers).bytesWritten = 7;
  clock.advance(1_250);
  expect(sinks.map(({ destroyed }) => destroyed)).toEqual([false, true, false]);
  for (const sink of sinks) sink.session.gone();
  expect(clock.pending).toBe(0);
});

test('without a timer no client is cut, and a client that has gone leaves no timer', () => {
  const stalled = connect(new Hub());
  guardStalls(stalled.session, { writableLength: 1, bytesWritten: 1 }, undefined);
  expect(stalled.destroyed).toBe(false);
  const { sink, clock } = watched();
  expect(clock.pending).toBe(1);
  sink.session.gone();
  expect(clock.pending).toBe(0);
});
