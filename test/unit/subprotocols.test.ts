// Tokens that come as a WebSocket's subprotocol, because pages cannot set its headers: how they are read, and that nothing sends them back.
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { WebSocketServer } from 'ws';
import { Hub } from '../../src/bridge/http.ts';
import { readSubprotocols, takeToken } from '../../src/bridge/transport/http-head.ts';
import { attachWebSocket, attachWebSocketServer, type WebSocketServerOptions } from '../../src/bridge/websocket.ts';

const PREFIX = 'base64url.bearer.authorization.k8s.io.';
const bearer = (token: string): string => PREFIX + Buffer.from(token).toString('base64url');
const secret = bearer('secret');

describe('what a client asks for', () => {
  test.each([
    [undefined, [], undefined],
    [null, [], undefined],
    ['', [], undefined],
    ['a', ['a'], undefined],
    [' a , ', ['a'], undefined],
    ['a, b', ['a', 'b'], undefined],
    [`${secret}, a`, ['a'], 'secret'],
    [`a,${bearer('??>>~~~')}`, ['a'], '??>>~~~'], // with -
    [`a,${bearer('???')},b`, ['a', 'b'], '???'], // with _
    [`x${secret}`, [`x${secret}`], undefined],
    [`constructor,${bearer('__proto__')}`, ['constructor'], '__proto__'],
  ])('%j', (header, protocols, token) => expect(readSubprotocols(header)).toEqual({ protocols, token, fault: undefined }));

  test.each([
    [`${bearer('a')},${bearer('b')},c`, 'multiple base64.bearer.authorization tokens specified'],
    [bearer('a'), 'missing additional subprotocol'],
    ...['', '!', 'a b', 'YQ==', 'YQ.', '.YQ', '_w', 'Y'].map((text) => [`${PREFIX}${text},a`, 'token encoding']),
    ...['a b', 'a\nb', 'a\r\nx: y', 'ä', '\u007f', '\0'].map((text) => [`${bearer(text)},a`, 'token encoding']),
  ])('%j is refused', (header, fault) => {
    const read = readSubprotocols(header);
    expect(read).toMatchObject({ token: undefined, fault: expect.stringContaining(fault as string) });
    expect(JSON.stringify(read)).not.toContain(PREFIX);
  });

  test('a header of a million commas is read in one go', () => {
    expect(readSubprotocols(`${','.repeat(1_000_000)}${secret},a`)).toMatchObject({ protocols: ['a'], token: 'secret' });
  });

  test('a token becomes a header, unless there is one; what is left may be echoed', () => {
    const taken = (headers: Parameters<typeof takeToken>[0]): unknown => [takeToken(headers), headers];
    const name = 'sec-websocket-protocol';
    expect(taken({})).toEqual([undefined, {}]);
    expect(taken({ [name]: `${secret},a, b` })).toEqual([undefined, { authorization: 'Bearer secret', [name]: 'a, b' }]);
    expect(taken({ [name]: `a,${secret}`, authorization: 'own' })).toEqual([undefined, { authorization: 'own', [name]: 'a' }]);
    expect(taken({ [name]: secret })).toEqual(['missing additional subprotocol', { [name]: undefined }]);
    expect(taken({ [name]: `a,${PREFIX}!` })).toEqual([expect.stringContaining('encoding'), { [name]: 'a' }]);
  });
});

type Attach = typeof attachWebSocket<string>;

/** A hub on a server, with what its hooks have seen, and a client that shows everything that the server sends. */
async function serve(attach: Attach) {
  const hub = new Hub();
  const seen: unknown[] = [];
  const server = createServer();
  attach(server, hub, {
    authenticate: ({ headers }: IncomingMessage) => {
      seen.push([headers.authorization, headers['sec-websocket-protocol']]);
      return headers.authorization;
    },
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    await hub.shutdown({ signal: AbortSignal.abort() }).catch(() => {});
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  /** The answer up to `end`, or to the end of the connection. */
  const ask = (protocols: string, end: string): Promise<string> =>
    new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1').setEncoding('latin1');
      onTestFinished(() => void socket.destroy());
      const lines = ['GET /watch HTTP/1.1', 'Host: a', 'Upgrade: websocket', 'Connection: Upgrade', 'Sec-WebSocket-Version: 13'];
      socket.write(
        `${lines.join('\r\n')}\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: ${protocols}\r\n\r\n`,
      );
      let heard = '';
      socket.on('error', () => {}).on('close', () => resolve(heard));
      socket.on('data', (chunk) => {
        heard += chunk;
        if (heard.includes(end)) resolve(heard);
      });
    });
  return { hub, seen, ask };
}

const attachToServer: Attach = (server, hub, options) =>
  attachWebSocketServer(
    new WebSocketServer({ server: server as never }),
    hub as never,
    options as WebSocketServerOptions<string>,
  );

describe.each([
  ['attachWebSocket', attachWebSocket as Attach],
  ['attachWebSocketServer', attachToServer],
])('%s', (name, attach) => {
  test('authenticate finds a token as if it were a header; it is never echoed, and no notice has it', async () => {
    const { hub, seen, ask } = await serve(attach);
    const notices: unknown[] = [];
    hub.observe({ tell: (notice) => void notices.push(notice) });
    const answer = await ask(`watchmux, ${secret}`, '\r\n\r\n');
    expect(answer).toMatch(/^HTTP\/1.1 101 /);
    expect(answer).toMatch(/^Sec-WebSocket-Protocol: watchmux\r$/m);
    expect(answer).not.toContain(PREFIX);
    expect(seen).toEqual([['Bearer secret', 'watchmux']]);
    expect(hub.stats().clients).toMatchObject([{ identity: 'Bearer secret' }]);
    expect(JSON.stringify(notices)).not.toContain(secret);
  });

  test.each([`watchmux, ${PREFIX}!`, `watchmux, ${bearer('a')}, ${bearer('b')}`])(
    'a token that is none is refused with 400, before authenticate: %s',
    async (protocols) => {
      const { hub, seen, ask } = await serve(attach);
      const answer = await ask(protocols, 'bad request');
      expect(answer).toContain('"code":400');
      expect(answer).toContain('base64.bearer.authorization token');
      expect(answer).not.toContain(PREFIX);
      expect(seen).toEqual([]);
      expect(hub.stats().total.refusals).toMatchObject({ badRequest: 1 });
    },
  );

  test('a token that comes first: we accept what follows it; the server of ws accepts the token, so it is refused', async () => {
    const { seen, ask } = await serve(attach);
    const answer = await ask(`${secret}, watchmux`, name === 'attachWebSocket' ? '\r\n\r\n' : 'bad request');
    if (name === 'attachWebSocket') {
      expect(answer).toMatch(/^Sec-WebSocket-Protocol: watchmux\r$/m);
      expect(seen).toEqual([['Bearer secret', 'watchmux']]);
    } else {
      expect(answer).toContain('another subprotocol must come before the token');
      expect(seen).toEqual([]);
    }
  });

  test('a token alone is refused: a page’s WebSocket fails without a subprotocol in the answer', async () => {
    const { seen, ask } = await serve(attach);
    expect(await ask(secret, '"code":400')).toContain(
      name === 'attachWebSocket' ? 'missing additional subprotocol' : 'another subprotocol must come before the token',
    );
    expect(seen).toEqual([]);
  });
});
