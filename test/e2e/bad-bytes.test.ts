// Bytes that are bad are reported, although undici reports them as it reports a connection that broke.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { afterEach, expect, test } from 'vitest';
import { StreamWatcher, toDecoder, type WatchEvent } from '../../src/index.ts';

const TEXT = Array.from({ length: 2_000 }, (_, n) => `{"type":"line","object":${n * n}}\n`).join('');
let server: Server;

afterEach(() => {
  server.close();
});

async function read(listening: Server): Promise<WatchEvent[]> {
  server = listening.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { body } = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const events: WatchEvent[] = [];
  for await (const event of new StreamWatcher(toDecoder(body as ReadableStream<Uint8Array>))) events.push(event);
  return events;
}

test.each([
  ['gzip', gzipSync(TEXT)],
  ['br', brotliCompressSync(TEXT)],
])('a body of damaged %s ends with one ERROR event', async (encoding, bytes) => {
  bytes.fill(0x5a, 20);
  const events = await read(
    createServer((_request, response) => response.writeHead(200, { 'content-encoding': encoding }).end(bytes)),
  );
  expect(events.at(-1)).toMatchObject({ type: 'ERROR', object: { code: 500 } });
  expect(events.filter(({ type }) => type === 'ERROR')).toHaveLength(1);
});

/** A server that answers with a chunk that holds an event, and then does what it is told. */
function chunked(then: (socket: Socket) => void): Server {
  const line = '{"type":"line","object":1}\n';
  return createTcpServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      const head = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
      socket.write(`${head}${line.length.toString(16)}\r\n${line}\r\n`, () => then(socket));
    });
  });
}

test('a chunk of no length ends with one ERROR event', async () => {
  const events = await read(chunked((socket) => socket.end('no length\r\n')));
  expect(events.map(({ type }) => type)).toEqual(['line', 'ERROR']);
});

test('a body that is cut short ends without one', async () => {
  const events = await read(chunked((socket) => socket.end('10\r\n{')));
  expect(events.map(({ type }) => type)).toEqual(['line']);
});
