// A request for a WebSocket, where the package that speaks it is not installed, or fails to load.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { ApiServer } from '../../src/apiserver/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { FakeWatcher } from '../../src/testing/index.ts';

const loading = vi.hoisted(() => ({ error: undefined as Error | undefined }));
vi.mock('../../src/apiserver/http/websocket.ts', () => ({
  WebSockets: class {
    constructor() {
      throw loading.error;
    }
  },
}));

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** The code of the refusal, and its Status. */
async function refusalOf(url: string): Promise<[number | undefined, unknown]> {
  const socket = new WebSocket(url);
  socket.on('error', () => {});
  return new Promise((resolve) => {
    socket.on('unexpected-response', (_request, response) => {
      let text = '';
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => resolve([response.statusCode, JSON.parse(text)]));
    });
  });
}

describe('without ws', () => {
  const missing = Object.assign(new Error("Cannot find package 'ws'"), { code: 'ERR_MODULE_NOT_FOUND' });
  const broken = new Error('broken');

  test.each([
    [missing, 501, 'this server has no WebSockets: the package ws is not installed', []],
    [broken, 500, 'Internal error occurred', [broken, broken]],
  ])('a watch is refused, and what was opened for it is ended: %s', async (error, code, message, told) => {
    loading.error = error;
    const [storage, errors, watchers] = [new MemoryStorage(), [] as unknown[], [] as FakeWatcher<never>[]];
    const scope = Object.getPrototypeOf(storage.scope('x/'));
    const watch = vi.spyOn(scope, 'watch').mockImplementation(async () => {
      const watcher = new FakeWatcher<never>();
      watchers.push(watcher);
      return watcher;
    });
    closing.push(() => watch.mockRestore());
    const resources = [{ group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order' }];
    const server = new ApiServer({ storage, resources, cache: false, onError: (each) => errors.push(each) });
    closing.push(() => server.shutdown());
    const http = createServer(server.handler);
    http.on('upgrade', server.upgrade);
    await new Promise<void>((resolve) => void http.listen(0, '127.0.0.1', resolve));
    closing.push(() => http.close());
    const url = `ws://127.0.0.1:${(http.address() as AddressInfo).port}/apis/example.com/v1/orders?watch=1`;
    // Each time: it is not loaded again, and says the same.
    for (let twice = 0; twice < 2; twice++) {
      expect(await refusalOf(url)).toEqual([code, expect.objectContaining({ kind: 'Status', code, message })]);
    }
    expect([errors, server.stats.watchers]).toEqual([told, 0]);
    expect(watchers.map(({ stopped }) => stopped)).toEqual([true, true]);
  });
});
