// What Node cannot read as a request is answered with a Status, unless something else is on its way to the client.
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { refuseBadRequests } from '../../src/cli/server/connections.ts';

let server: Server;
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

const PATIENCE = { headersTimeout: 100, requestTimeout: 100, connectionsCheckingInterval: 20 };

/** All that a server says before it closes the connection. `next` is sent when there has been an answer. */
async function said(listener: RequestListener, request: string, more: { next?: string; options?: object } = {}): Promise<string> {
  server = createServer(more.options ?? {}, listener);
  refuseBadRequests(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  let text = '';
  let { next } = more;
  socket.setEncoding('utf8').on('data', (some: string) => {
    text += some;
    if (next !== undefined) socket.write(next);
    next = undefined;
  });
  socket.on('error', () => {});
  socket.write(request);
  await once(socket, 'close');
  return text;
}

const head = (line: string, ...more: string[]): string => `${[line, 'Host: a', ...more].join('\r\n')}\r\n\r\n`;
const done: RequestListener = (_, response) => void response.end('done');
const never: RequestListener = (request) => void request.resume();
const begun: RequestListener = (_, response) => void response.write('begun');

describe('what is no request', () => {
  test.each([
    ['an unknown method', head('BREW / HTTP/1.1'), 400, 'BadRequest', {}],
    ['no HTTP', 'hello\r\n\r\n', 400, 'BadRequest', {}],
    ['a URL that is too long', head(`GET /${'x'.repeat(40_000)} HTTP/1.1`), 431, 'RequestHeaderFieldsTooLarge', {}],
    ['a head that does not end', 'GET / HTTP/1.1\r\nHost: a\r\n', 408, 'RequestTimeout', PATIENCE],
    ['a body that does not end', head('POST / HTTP/1.1', 'Content-Length: 5'), 408, 'RequestTimeout', PATIENCE],
    ['a body that is none', `${head('POST / HTTP/1.1', 'Transfer-Encoding: chunked')}no\r\n`, 400, 'BadRequest', {}],
  ])('%s gets a Status, and the connection is closed', async (_, request, code, reason, options) => {
    const text = await said(never, request, { options });
    expect(text).toMatch(new RegExp(`^HTTP/1.1 ${code} [^]*\r\nconnection: close\r\ncontent-type: application/json\r\n`));
    expect(JSON.parse(text.slice(text.indexOf('\r\n\r\n')))).toMatchObject({ kind: 'Status', status: 'Failure', code, reason });
  });

  test('on a connection whose last answer is complete gets one as well', async () => {
    const text = await said(done, head('GET / HTTP/1.1'), { next: 'hello\r\n\r\n' });
    expect(text).toMatch(/^HTTP\/1.1 200 OK.*doneHTTP\/1.1 400 Bad Request.*"kind":"Status"/s);
  });

  test('behind a request without an answer, or with half of one, only ends the connection', async () => {
    expect(await said(never, `${head('GET / HTTP/1.1')}hello\r\n\r\n`)).toBe('');
    server.close();
    const text = await said(begun, head('GET / HTTP/1.1'), { next: 'hello\r\n\r\n' });
    expect(text).toContain('begun');
    expect(text).not.toContain('Status');
  });
});
