// What a client may send, without sockets: bytes and messages are counted per second, and too many of either cut the client.
import { EventEmitter } from 'node:events';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  guardInbound,
  type InboundClient,
  InboundGuard,
  type InboundLimits,
  type InboundSocket,
} from '../../src/bridge/transport/websocket-connection.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';

class FakeClient extends EventEmitter {
  readonly told: unknown[] = [];
  close(code: number, reason: string): void {
    this.told.push([code, reason]);
  }
  terminate(): void {
    this.told.push('terminated');
  }
}

function guarded(limits: Partial<InboundLimits> = {}) {
  const [clock, client, socket] = [new FakeClock(), new FakeClient(), new EventEmitter()];
  const cuts: string[] = [];
  const sessionOf = (): { cut(reason: string): void } => ({ cut: (reason) => void cuts.push(reason) });
  const all = { maxInboundBytesPerSecond: 100, maxInboundMessagesPerSecond: 3, clock, sessionOf, ...limits };
  new InboundGuard(client as unknown as InboundClient, socket as InboundSocket, all);
  const send = (bytes: number): void => void socket.emit('data', new Uint8Array(bytes));
  const listening = (): number => client.eventNames().length + socket.eventNames().length;
  return { clock, client, cuts, send, listening };
}

const CUT = [[1008, 'flooding'], 'terminated'];

test.each(['message', 'ping', 'pong'])(
  'as many of "%s" as allowed are fine, in each second; one more cuts the client',
  (frame) => {
    const { clock, client, listening } = guarded();
    for (let second = 0; second < 5; second++) {
      for (let i = 0; i < 3; i++) client.emit(frame, Buffer.from('x'));
      clock.advance(1_000);
    }
    for (let i = 0; i < 3; i++) client.emit(frame, Buffer.from('x'));
    clock.advance(999);
    expect(client.told).toEqual([]);
    client.emit(frame, Buffer.from('x'));
    expect(client.told).toEqual(CUT);
    expect(listening()).toBe(0);
  },
);

test('as many bytes as allowed are fine; one more cuts the client and its session, once', () => {
  const { client, cuts, send } = guarded();
  send(60);
  send(40);
  expect(cuts).toEqual([]);
  send(1);
  send(1_000);
  expect([cuts, client.told]).toEqual([['flooding'], CUT]);
});

test('0 means no limit', () => {
  const { client, send } = guarded({ maxInboundBytesPerSecond: 0, maxInboundMessagesPerSecond: 0 });
  for (let i = 0; i < 1_000; i++) client.emit('message', Buffer.from('x'));
  send(1e6);
  expect(client.told).toEqual([]);
});

test('within any second that starts with a client, nobody sends more than the limit, and nobody who sends less is cut', () => {
  const step = fc.record({ afterMs: fc.integer({ min: 0, max: 700 }), bytes: fc.integer({ min: 0, max: 60 }) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const { clock, client, send } = guarded();
      let [since, sum] = [Number.NEGATIVE_INFINITY, 0];
      for (const { afterMs, bytes } of steps) {
        clock.advance(afterMs);
        if (clock.now() - since >= 1_000) [since, sum] = [clock.now(), 0];
        sum += bytes;
        send(bytes);
        expect(client.told).toEqual(sum > 100 ? CUT : []);
        if (sum > 100) return;
      }
    }),
  );
});

test('a client is guarded from its first bytes on, and the messages in them count', () => {
  const [client, socket] = [new FakeClient(), new EventEmitter()];
  const limits = {
    maxInboundBytesPerSecond: 100,
    maxInboundMessagesPerSecond: 3,
    clock: new FakeClock(),
    sessionOf: () => undefined,
  };
  // As ws does: it reads the bytes in a listener that came first, and tells of their messages.
  socket.on('data', (bytes: Uint8Array) => {
    for (let i = 0; i < bytes.length; i += 10) client.emit('message', Buffer.from('x'));
  });
  guardInbound(limits)(client as unknown as InboundClient, socket as unknown as InboundSocket);
  expect(client.eventNames()).toEqual([]);
  socket.emit('data', new Uint8Array(30));
  expect(client.told).toEqual([]);
  socket.emit('data', new Uint8Array(10));
  expect(client.told).toEqual(CUT);
});
