// A program that does not pass upgrades on to the server: its clients of WebSockets are told, and so is the program.
import { expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { closers } from '../closing.ts';
import { listening } from '../listening.ts';
import { ORDERS_PATH, rig } from './apiserver-rig.ts';

const closing = closers();

const UPGRADE = { connection: 'keep-alive, Upgrade', upgrade: 'WebSocket' };

it('refuses a request for a WebSocket that nobody listens for, and says so once', async () => {
  const errors: unknown[] = [];
  const { server } = rig({ onError: (error) => errors.push(error) });
  const { http, port, close } = await listening(server);
  closing.push(close);
  const url = `ws://127.0.0.1:${port}${ORDERS_PATH}?watch=1`;
  for (const _ of [1, 2]) {
    const client = new WebSocket(url);
    const said = await new Promise((resolve) => client.on('error', ({ message }) => resolve(message)));
    expect(said).toContain('501');
  }
  expect(errors).toHaveLength(1);
  expect(errors[0]).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining('http.on("upgrade", server.upgrade)'),
  });
  // With the listener, the same URL is a watch.
  http.on('upgrade', server.upgrade);
  const client = new WebSocket(url);
  closing.push(() => client.terminate());
  await new Promise((resolve) => client.on('open', resolve));
  expect(errors).toHaveLength(1);
});

it('does so on hosts of fetch, and serves every other upgrade as if it had not been asked for', async () => {
  const errors: unknown[] = [];
  const { call } = rig({ onError: (error) => errors.push(error) });
  expect(await call('GET', `${ORDERS_PATH}?watch=1`, undefined, UPGRADE)).toMatchObject({
    code: 501,
    body: { kind: 'Status', reason: 'NotImplemented', message: expect.stringContaining('does not listen for upgrades') },
  });
  expect((await call('GET', ORDERS_PATH, undefined, { ...UPGRADE, upgrade: 'h2c' })).code).toBe(200);
  expect((await call('GET', ORDERS_PATH, undefined, { upgrade: 'websocket' })).code).toBe(200);
  expect(errors).toHaveLength(1);
});
