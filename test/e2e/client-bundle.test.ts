// The client as browsers get it: the bundle, minified and with parts left out, behaves like the source.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';

vi.mock('../../src/bridge/client.ts', () => import('../../dist/client-browser.js' as string));
// What only the WebSocket of ws can do is not in it.
vi.mock('../unit/client-network.ts', async (original) => ({
  ...(await original<object>()),
  KINDS: ['http', 'sse', 'browser'],
}));

test('runs the browser bundle, whose WebSocket accepts no headers', async () => {
  const { connect } = await import('../../src/bridge/client.ts');
  const headers = { authorization: 'secret' };
  expect(() => connect('ws://h/', { headers })).toThrow('headers: expected none with a WebSocket, got "authorization"');
});

test('with the WebSocket of ws, as an Electron page may pass it, a failure is reported and does not end the process', async () => {
  const { connect } = await import('../../src/bridge/client.ts');
  const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const given = connect(url, { WebSocket });
  given.stop();
  const failed = connect(url, { WebSocket, maxAttempts: 0 });
  expect((await failed.next()).value).toMatchObject({ type: 'ERROR', object: { code: 503 } });
  expect(await failed.next()).toHaveProperty('done', true);
  server.close();
});

await import('../unit/client-arguments.test.ts');
await import('../unit/client-attempts.test.ts');
await import('../unit/client-ends.test.ts');
await import('../unit/client-events.test.ts');
await import('../unit/client-overflow.test.ts');
await import('../unit/client-reconnect.test.ts');
await import('../unit/client-refusals.test.ts');
await import('../unit/client-timing.test.ts');
