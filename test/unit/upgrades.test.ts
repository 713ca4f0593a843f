// Upgrade requests, without a network: whose they are, how they are refused, and what happens while one waits.
import { EventEmitter } from 'node:events';
import type { IncomingMessage, Server } from 'node:http';
import { Duplex } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { NO_WEBSOCKET, unauthorized } from '../../src/bridge/hub/admission/refusals.ts';
import { attachHandler, pathOf, refuseUpgrade, WaitingUpgrade } from '../../src/bridge/transport/upgrades.ts';
import { type Status, toUnavailable } from '../../src/watch/event.ts';
import { turn } from './fake-sink.ts';

/** A socket that records what it is sent, and takes it when the test says so. */
class FakeSocket extends Duplex {
  sent: string = '';
  private taken: () => void = () => {};

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.sent += chunk.toString();
    this.taken = done;
  }

  /** The network takes what was written. */
  drain(): void {
    this.taken();
  }

  /** The client sends something, or closes its side. */
  say(text: string | null): void {
    this.push(text === null ? null : Buffer.from(text));
  }

  get listening(): number {
    return ['data', 'end', 'close', 'error'].reduce((sum, name) => sum + this.listenerCount(name), 0);
  }
}

const HEAD = Buffer.from('head');

/** A server without a network. */
function serverOf(): { server: Server; ask: (url: string) => { socket: FakeSocket; heard: boolean } } {
  const server = new EventEmitter() as unknown as Server;
  const ask = (url: string): { socket: FakeSocket; heard: boolean } => {
    const socket = new FakeSocket();
    return { socket, heard: server.emit('upgrade', { url } as IncomingMessage, socket, HEAD) };
  };
  return { server, ask };
}

const nobody = (): boolean => false;
const anybody = (): boolean => true;
const isOwn = (server: Server): boolean => Object.hasOwn(server, 'emit');

describe('a server with handlers for upgrade requests', () => {
  test('gives each request to the first handler that accepts it, and to no other listener', () => {
    const { server, ask } = serverOf();
    const told: unknown[] = [];
    server.on('upgrade', ({ url }) => told.push(['listener', url]));
    for (const name of ['a', 'b']) {
      attachHandler(server, ({ url }, socket, head) => {
        told.push([name, url, socket instanceof FakeSocket, head]);
        return url === `/${name}` || url === '/both';
      });
    }
    expect(['/b', '/both', '/others'].map((url) => ask(url).heard)).toEqual([true, true, true]);
    expect(told).toEqual([
      ['a', '/b', true, HEAD],
      ['b', '/b', true, HEAD],
      ['a', '/both', true, HEAD],
      ['a', '/others', true, HEAD],
      ['b', '/others', true, HEAD],
      ['listener', '/others'],
    ]);
  });

  test('leaves all other events alone', () => {
    const { server } = serverOf();
    attachHandler(server, () => expect.unreachable());
    const told: unknown[] = [];
    server.on('request', (...args) => told.push(args));
    expect([server.emit('request', 1 as never, 2 as never), server.emit('listening')]).toEqual([true, false]);
    expect(told).toEqual([[1, 2]]);
  });

  test('answers what neither a handler nor another listener wants, once, and leaves to a listener what it may want', () => {
    const { server, ask } = serverOf();
    attachHandler(server, nobody);
    attachHandler(server, nobody);
    expect(ask('/').socket.sent.match(/404/g)).toHaveLength(2); // in its first line, and in the Status
    server.on('upgrade', () => {});
    expect(ask('/').socket.sent).toBe('');
  });

  test.each([
    ['before', 0],
    ['after', 1],
  ])(
    'answers it if a listener that refuses was attached %s by another copy of this package, but only the first does',
    (when, own) => {
      const { server, ask } = serverOf();
      const refuser = Object.assign(() => {}, { [Symbol.for('watchmux.refuses')]: true });
      if (when === 'before') server.on('upgrade', refuser);
      attachHandler(server, nobody);
      if (when === 'after') server.on('upgrade', refuser);
      expect(ask('/').socket.sent === '' ? 0 : 1).toBe(own);
      // What this copy leaves for the other to see.
      expect(server.listeners('upgrade').every((each) => (each as never)[Symbol.for('watchmux.refuses')])).toBe(true);
    },
  );

  test('asks a removed handler no longer, and is as before when the last one is removed', () => {
    const { server, ask } = serverOf();
    const detach = [attachHandler(server, nobody), attachHandler(server, anybody)];
    detach[1]?.();
    detach[1]?.();
    expect([ask('/').socket.sent === '', isOwn(server)]).toEqual([false, true]);
    detach[0]?.();
    expect([ask('/').heard, isOwn(server), server.listenerCount('upgrade')]).toEqual([false, false, 0]);
    attachHandler(server, anybody);
    expect([ask('/').heard, isOwn(server), server.listenerCount('upgrade')]).toEqual([true, true, 1]);
  });

  test('removed before it was added again, a handler stays if it is removed a second time', () => {
    const { server, ask } = serverOf();
    const detach = attachHandler(server, nobody);
    detach();
    attachHandler(server, anybody);
    detach();
    expect(ask('/')).toMatchObject({ heard: true, socket: { sent: '' } });
  });

  test('has its own `emit` again if it had one, and keeps one that was put around ours', () => {
    for (const isWrapped of [false, true]) {
      const { server, ask } = serverOf();
      const seen: string[] = [];
      const wrap = (name: string): Server['emit'] => {
        const emit: (event: string, ...args: unknown[]) => boolean = server.emit;
        server.emit = ((event: string, ...args: unknown[]) => {
          seen.push(name);
          return emit.call(server, event, ...args);
        }) as Server['emit'];
        return server.emit;
      };
      const before = wrap('inner');
      const detach = attachHandler(server, anybody);
      const after = isWrapped ? wrap('outer') : before;
      detach();
      expect(server.emit).toBe(after);
      expect(ask('/').heard).toBe(false);
      expect(seen).toEqual(isWrapped ? ['outer', 'inner'] : ['inner']);
    }
  });
});

test.each([
  [undefined, '/'],
  ['', '/'],
  ['?a=/b', '/'],
  ['/watch', '/watch'],
  ['/a/b?c?d', '/a/b'],
  ['http://host/watch?a=http://b/c', '/watch'],
  ['WSS+x.y-1://host:1/watch', '/watch'],
  ['http://host', '/'],
  ['http://host?a', '/'],
  ['/redirect/http://host/x', '/redirect/http://host/x'],
])('the path of %s is %s', (target, path) => {
  expect(pathOf(target)).toBe(path);
});

describe('a refused upgrade request', () => {
  const answer = (status: Status): string[] => {
    const socket = new FakeSocket();
    refuseUpgrade(socket, status);
    return socket.sent.split('\r\n');
  };

  test('is an HTTP response with the Status as its only line, as long as it says', () => {
    const status = { ...NO_WEBSOCKET, message: 'nö' };
    const body = `${JSON.stringify(status)}\n`;
    expect(answer(status)).toEqual([
      'HTTP/1.1 404 Not Found',
      'connection: close',
      'content-type: application/json',
      `content-length: ${Buffer.byteLength(body)}`,
      '',
      body,
    ]);
  });

  test('says when to retry, if that helps', () => {
    expect(answer(toUnavailable('later'))).toContain('retry-after: 5');
    expect(answer(unauthorized()).join()).not.toContain('retry-after');
    expect(answer({ ...unauthorized(), code: 499 })[0]).toBe('HTTP/1.1 499 ');
  });

  test('is closed when the answer has been taken, not before; what the client sends is read, and an error is no exception', async () => {
    const socket = new FakeSocket();
    refuseUpgrade(socket, NO_WEBSOCKET);
    socket.say('unread');
    await turn();
    expect([socket.destroyed, socket.readableLength]).toEqual([false, 0]);
    socket.drain();
    await turn();
    expect(socket.destroyed).toBe(true);
    const broken = new FakeSocket();
    refuseUpgrade(broken, NO_WEBSOCKET);
    broken.destroy(new Error('ECONNRESET'));
    await turn();
    expect(broken.destroyed).toBe(true);
  });
});

describe('an upgrade request that waits', () => {
  const waiting = (maxBytes: number = 10): { socket: FakeSocket; upgrade: WaitingUpgrade; left: () => number } => {
    const socket = new FakeSocket();
    const upgrade = new WaitingUpgrade(socket, HEAD, maxBytes);
    let left = 0;
    upgrade.onGone(() => left++);
    return { socket, upgrade, left: () => left };
  };

  test('keeps what its client sends, for the WebSocket, which is then alone with its socket', async () => {
    const { socket, upgrade, left } = waiting();
    socket.say('-1');
    await turn();
    socket.say('-2');
    await turn();
    expect([upgrade.take().toString(), socket.listening]).toEqual(['head-1-2', 0]);
    socket.destroy();
    await turn();
    expect(left()).toBe(0);
  });

  test.each([
    [6, false],
    [7, true],
  ])('whose client sends %i bytes more than the request, of which 10 are kept, is over: %s', async (more, over) => {
    const { socket, left } = waiting();
    socket.say('x'.repeat(more - 1));
    await turn();
    expect(socket.destroyed).toBe(false);
    socket.say('x');
    await turn();
    expect([socket.destroyed, left() > 0]).toEqual([over, over]);
  });

  test.each<[string, (socket: FakeSocket) => unknown]>([
    ['closes its side', (socket) => socket.say(null)],
    ['closes its connection', (socket) => socket.destroy()],
    ['is lost', (socket) => socket.destroy(new Error('ECONNRESET'))],
  ])('whose client %s is told, and closed', async (_what, leave) => {
    const { socket, left } = waiting();
    leave(socket);
    await turn();
    expect([socket.destroyed, left() > 0]).toEqual([true, true]);
  });

  test('tells nobody who has cancelled that, or has not asked for it', async () => {
    const socket = new FakeSocket();
    let left = 0;
    const cancel = new WaitingUpgrade(socket, HEAD, 10).onGone(() => left++);
    cancel();
    const other = new FakeSocket();
    new WaitingUpgrade(other, HEAD, 10);
    for (const each of [socket, other]) each.destroy();
    await turn();
    expect(left).toBe(0);
  });
});
