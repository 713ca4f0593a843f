// WebSocket pings, without sockets: a silent client is cut, a slow one is not.
import { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import { describe, expect, test } from 'vitest';
import type { WebSocket } from 'ws';
import { MESSAGE } from '../../src/bridge/events/forms.ts';
import { coreOf, Hub } from '../../src/bridge/hub/hub.ts';
import { SharedTimer } from '../../src/bridge/transport/stall.ts';
import { WebSocketSink } from '../../src/bridge/transport/websocket-connection.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';

/** What is used of a WebSocket. */
class FakeClient extends EventEmitter {
  readonly readyState: number = 1;
  readonly pings: string[] = [];

  ping(data: string): void {
    this.pings.push(data);
  }

  /** The other side answers the last ping, or another. */
  pong(data: string = this.pings.at(-1) ?? ''): void {
    this.emit('pong', Buffer.from(data));
  }

  close(): void {}
  terminate(): void {
    this.emit('close');
  }
}

/** A socket's numbers. */
class FakeSocket extends EventEmitter {
  writableLength: number = 0;
  bytesWritten: number = 0;

  /** More waits. */
  pile(bytes: number): void {
    this.writableLength += bytes;
    this.bytesWritten += bytes;
  }

  /** The network takes some. */
  take(bytes: number): void {
    this.writableLength -= bytes;
  }
}

function setUp(hasHeartbeat: boolean = true): {
  client: FakeClient;
  socket: FakeSocket;
  hub: Hub;
  clock: FakeClock;
  interval: () => void;
  cuts: () => unknown;
} {
  const [clock, client, socket, hub] = [new FakeClock(), new FakeClient(), new FakeSocket(), new Hub()];
  const sink = new WebSocketSink({
    client: client as unknown as WebSocket,
    socket: socket as unknown as Duplex,
    form: MESSAGE,
    maxBufferedBytes: 1_000_000,
    clock,
  });
  coreOf(hub).open(sink, { transport: 'websocket', address: '' });
  if (hasHeartbeat) sink.startHeartbeat(new SharedTimer(1_000, clock));
  return { client, socket, hub, clock, interval: () => clock.advance(1_000), cuts: () => hub.stats().total.cuts };
}

describe('a client', () => {
  test('that answers every ping stays', () => {
    const { client, interval, cuts } = setUp();
    for (let i = 1; i <= 10; i++) {
      interval();
      expect(client.pings).toHaveLength(i);
      client.pong();
    }
    expect(cuts()).toEqual({});
  });

  test.each([
    ['nothing', () => {}],
    ['something else', (client: FakeClient) => client.pong('0')],
  ])('that answers %s is cut an interval later, and leaves nothing behind', (_what, answer) => {
    const { client, interval, cuts, clock } = setUp();
    interval();
    answer(client);
    interval();
    expect([cuts(), clock.pending, client.pings]).toEqual([{ silent: 1 }, 0, ['1']]);
  });

  test('that reads slowly stays as long as it reads, and has one interval to answer after it has received the ping', () => {
    const { client, socket, interval, cuts } = setUp();
    socket.pile(1_000);
    interval();
    for (let i = 0; i < 9; i++) {
      socket.take(100);
      interval();
    }
    socket.take(100);
    interval();
    expect([cuts(), client.pings]).toEqual([{}, ['1']]);
    client.pong();
    interval();
    expect([cuts(), client.pings]).toEqual([{}, ['1', '2']]);
  });

  test('that stops reading after a ping, with nothing else waiting, is cut an interval later', () => {
    const { client, socket, interval, cuts } = setUp();
    interval();
    socket.pile(1_000);
    interval();
    expect([cuts(), client.pings]).toEqual([{ silent: 1 }, ['1']]);
  });

  test.each([
    ['stops reading', (socket: FakeSocket) => socket.pile(100)],
    ['has got all and does not answer', (socket: FakeSocket) => socket.take(900)],
  ])('that reads slowly and then %s is cut', (_what, then) => {
    const { socket, interval, cuts } = setUp();
    socket.pile(1_000);
    interval();
    socket.take(100);
    interval();
    then(socket);
    interval();
    interval();
    expect(cuts()).toEqual({ silent: 1 });
  });

  test('that never answers a close is gone five seconds after it was told', async () => {
    const { hub, clock } = setUp(false);
    const down = hub.shutdown();
    await expect.poll(() => clock.pending).toBe(1);
    clock.advance(4_999);
    expect(hub.stats().clients).toHaveLength(1);
    clock.advance(1);
    await down;
    expect([hub.stats().clients, clock.pending]).toEqual([[], 0]);
  });

  test('that reads slowly after a close is waited for, until it reads no more', async () => {
    const { hub, clock, socket } = setUp(false);
    socket.pile(1_000);
    const down = hub.shutdown();
    await expect.poll(() => clock.pending).toBe(1);
    for (let turn = 0; turn < 5; turn++) {
      socket.take(100);
      clock.advance(5_000);
      expect(hub.stats().clients).toHaveLength(1);
    }
    clock.advance(5_000);
    await down;
    expect(hub.stats().clients).toEqual([]);
  });
});
