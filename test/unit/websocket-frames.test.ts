// The server's end of a WebSocket, against the client of the package ws, against a raw socket, and with a clock of its own.
import { createServer, type IncomingMessage, request, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { json } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { MESSAGE } from '../../src/bridge/events/forms.ts';
import type { Frames } from '../../src/bridge/transport/frames.ts';
import { DEFLATED_MESSAGE, Handshakes } from '../../src/bridge/transport/handshakes.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { closers } from '../closing.ts';
import { eventually } from '../eventually.ts';

const closing = closers();

interface Served {
  readonly port: number;
  readonly opened: Frames[];
  readonly forms: unknown[];
  readonly seen: string[];
  readonly clock: FakeClock;
}

async function serve({ compression = false } = {}): Promise<Served> {
  const clock = new FakeClock();
  const handshakes = new Handshakes({ compression, maxInboundBytes: 100, clock });
  const served = { opened: [] as Frames[], forms: [] as unknown[], seen: [] as string[], clock };
  const server: Server = createServer();
  server.on('upgrade', (asked, socket, head) => {
    const whole = handshakes.answer({ request: asked, socket, head }, (client, form) => {
      served.opened.push(client as Frames);
      served.forms.push(form);
      for (const event of ['message', 'ping', 'pong', 'close'] as const) {
        client.on(event, (data) => void served.seen.push(event === 'pong' || event === 'ping' ? `${event} ${data}` : event));
      }
    });
    if (!whole) served.seen.push('refused');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => server.close());
  return { ...served, port: (server.address() as AddressInfo).port };
}

async function dial(
  port: number,
  options: object = {},
  protocols: string[] = [],
): Promise<{ client: WebSocket; said: string[] }> {
  const client = new WebSocket(`ws://127.0.0.1:${port}/`, protocols, { perMessageDeflate: false, ...options });
  const said: string[] = [];
  client.on('message', (data) => void said.push(String(data)));
  client.on('ping', (data) => void said.push(`ping ${data}`));
  client.on('pong', (data) => void said.push(`pong ${data}`));
  client.on('close', (code, reason) => void said.push(`${code} ${reason}`));
  client.on('error', () => {});
  closing.push(() => client.terminate());
  await new Promise((resolve) => client.once('open', resolve));
  return { client, said };
}

const KEY = 'dGhlIHNhbXBsZSBub25jZQ==';

const UPGRADE = { upgrade: 'websocket', connection: 'upgrade', 'sec-websocket-key': KEY, 'sec-websocket-version': '13' };

/** A client that speaks bytes. */
async function raw(port: number): Promise<{ socket: Socket; said: () => Buffer; ended: () => boolean }> {
  const socket = connect(port, '127.0.0.1');
  const chunks: Buffer[] = [];
  let over = false;
  socket
    .on('data', (chunk) => void chunks.push(chunk))
    .on('close', () => {
      over = true;
    });
  socket.on('error', () => {});
  closing.push(() => socket.destroy());
  const lines = ['GET / HTTP/1.1', 'Host: a', 'Upgrade: websocket', 'Connection: Upgrade', `Sec-WebSocket-Key: ${KEY}`];
  socket.write([...lines, 'Sec-WebSocket-Version: 13', '', ''].join('\r\n'));
  const all = (): Buffer => Buffer.concat(chunks);
  await eventually(() => expect(all().includes('\r\n\r\n')).toBe(true));
  expect(all().toString()).toContain('Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=');
  const from = all().indexOf('\r\n\r\n') + 4;
  return { socket, said: () => all().subarray(from), ended: () => over };
}

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');

describe('a WebSocket of the server', () => {
  test('sends texts and pings, and answers pings', async () => {
    const { port, opened, seen } = await serve();
    const { client, said } = await dial(port);
    const [own] = opened as [Frames];
    own.send('hällo');
    own.send('x'.repeat(70_000));
    own.ping('1');
    client.ping('p');
    client.send('text');
    client.send(Buffer.from([255]));
    await eventually(() => expect(said).toEqual(['hällo', 'x'.repeat(70_000), 'ping 1', 'pong p']));
    await eventually(() => expect([...seen].sort()).toEqual(['message', 'message', 'ping p', 'pong 1']));
  });

  test('closes, whoever begins', async () => {
    const { port, opened, seen, clock } = await serve();
    const first = await dial(port);
    (opened[0] as Frames).close(1001, 'bye');
    (opened[0] as Frames).send('late');
    await eventually(() => expect(first.said).toEqual(['1001 bye']));
    const second = await dial(port);
    second.client.close(4321, 'enough');
    await eventually(() => expect(second.said).toEqual(['4321 ']));
    const third = await dial(port);
    third.client.close();
    await eventually(() => expect(third.said).toEqual(['1005 ']));
    await eventually(() => expect(seen).toEqual(['close', 'close', 'close']));
    expect(clock.pending).toBe(0);
  });

  test('does not wait for ever for a client that does not close', async () => {
    const { port, opened, seen, clock } = await serve();
    const { said, ended } = await raw(port);
    (opened[0] as Frames).close(1000, '');
    await eventually(() => expect(said().toString('hex')).toBe('880203e8'));
    expect(ended()).toBe(false);
    clock.advance(30_000);
    await eventually(() => expect([ended(), ...seen]).toEqual([true, 'close']));
    expect(clock.pending).toBe(0);
  });

  test.each([
    ['a frame without a mask', '8101 61', 1002],
    ['a reserved bit', 'c181 00000000 61', 1002],
    ['a reserved kind', '8380 00000000', 1002],
    ['a control frame in parts', '0980 00000000', 1002],
    ['a long ping', `89fe 0080 00000000${'00'.repeat(128)}`, 1002],
    ['a continuation of nothing', '8080 00000000', 1002],
    ['a message within a message', '0181 00000000 61 8181 00000000 61', 1002],
    ['a close frame of one byte', '8881 00000000 03', 1002],
    ['a code that nobody may send', '8882 00000000 03ed', 1002],
    ['text that is not UTF-8', '8182 00000000 c328', 1007],
    ['half a character', '8181 00000000 c3', 1007],
    ['a reason that is not UTF-8', '8883 00000000 03e8 ff', 1007],
    ['a long message', '81fe 0065 00000000', 1009],
    ['a very long message', '82ff 7fffffffffffffff 00000000', 1009],
    ['a long message in parts', `01e4 00000000${'61'.repeat(100)} 8081 00000000 61`, 1009],
  ])('refuses %s', async (_, bytes, code) => {
    const { port, seen, clock } = await serve();
    const { socket, said, ended } = await raw(port);
    socket.write(hex(bytes));
    await eventually(() => expect(said().toString('hex')).toBe(`8802${code.toString(16).padStart(4, '0')}`));
    await eventually(() => expect([ended(), ...seen]).toEqual([true, 'close']));
    expect(clock.pending).toBe(0);
  });

  test('takes a character in two frames, with a ping between them', async () => {
    const { port, seen } = await serve();
    const { socket, said } = await raw(port);
    for (const byte of hex('0181 00000000 c3 8980 01020304 8081 00000000 a4')) socket.write(Buffer.of(byte));
    await eventually(() => expect(seen).toEqual(['ping ', 'message']));
    await eventually(() => expect(said().toString('hex')).toBe('8a00'));
  });

  test('takes what came with the request', async () => {
    const { port, seen } = await serve();
    const asked = request({ port, host: '127.0.0.1', headers: { upgrade: 'websocket', connection: 'upgrade' } });
    asked.setHeader('sec-websocket-key', KEY).setHeader('sec-websocket-version', 13);
    asked.on('upgrade', (_response, socket) => closing.push(() => socket.destroy()));
    asked.flushHeaders();
    (asked as unknown as { _send(data: Buffer): void })._send(hex('8181 00000000 61'));
    await eventually(() => expect(seen).toEqual(['message']));
  });
});

describe('a handshake', () => {
  test('echoes the first subprotocol', async () => {
    const { port } = await serve();
    expect((await dial(port, {}, ['a', 'b'])).client.protocol).toBe('a');
    expect((await dial(port)).client.protocol).toBe('');
  });

  test.each([
    ['permessage-deflate', true],
    ['permessage-deflate; client_max_window_bits', true],
    ['permessage-deflate; client_max_window_bits="10"; server_no_context_takeover', true],
    ['permessage-deflate; server_max_window_bits=99, permessage-deflate', true],
    ['permessage-deflate; server_max_window_bits', false],
    ['x-webkit-deflate-frame', false],
    ['permessage-deflate; client_max_window_bits=99', false],
    ['permessage-deflate; __proto__', false],
  ])('takes the offer to compress: %s', async (offer, taken) => {
    const { port, forms, seen } = await serve({ compression: true });
    const headers = { ...UPGRADE, 'sec-websocket-extensions': offer };
    const asked = request({ port, host: '127.0.0.1', headers }).end();
    const answer = await new Promise<string | undefined>((resolve) => {
      asked.on('upgrade', (response, socket) => {
        closing.push(() => socket.destroy());
        socket
          .on('error', () => {})
          .resume()
          .write(hex('c181 00000000 61'));
        resolve(response.headers['sec-websocket-extensions']);
      });
    });
    expect(forms[0]).toBe(taken ? DEFLATED_MESSAGE : MESSAGE);
    expect(answer?.startsWith('permessage-deflate') ?? false).toBe(taken);
    await eventually(() => expect(seen).toEqual(taken ? ['message'] : ['close']));
  });

  test.each([
    [{ 'sec-websocket-key': 'short' }],
    [{ 'sec-websocket-version': '8' }],
    [{ 'sec-websocket-protocol': 'a b' }],
    [{ upgrade: 'h2c' }],
    [{}, 'POST'],
  ])('is refused with 400 and a Status: %j %s', async (wrong, method = 'GET') => {
    const { port, seen } = await serve();
    const headers = {
      upgrade: 'websocket',
      connection: 'upgrade',
      'sec-websocket-key': KEY,
      'sec-websocket-version': '13',
      ...wrong,
    };
    const asked = request({ port, host: '127.0.0.1', headers, method });
    const response = await new Promise<IncomingMessage>((resolve) => asked.on('response', resolve).end());
    expect([response.statusCode, ...seen]).toEqual([400, 'refused']);
    expect(await json(response)).toMatchObject({ kind: 'Status', code: 400, reason: 'BadRequest' });
  });
});
