// Features that only some WebSockets have, and how the client handles the others.
import { describe, expect, test, vi } from 'vitest';
import { checkWebSocket } from '../../src/bridge/client/websocket-browser.ts';
import type { ConnectOptions } from '../../src/bridge/client.ts';
import { connect } from '../../src/bridge/client.ts';
import { FakeNetwork } from './client-network.ts';
import type { Event } from './client-rig.ts';
import { thrown } from './support.ts';

const headers = { authorization: 'x' };

test('that of Bun, which has terminate but is no event emitter, gets options in place of the protocols', async () => {
  const asks: unknown[][] = [];
  class Bun {
    constructor(...args: unknown[]) {
      asks.push(args);
    }
    terminate(): void {}
    close(): void {}
  }
  connect('ws://h/', { headers, WebSocket: Bun as never }).stop();
  expect(asks).toMatchObject([['ws://h/?allowWatchBookmarks=true', { headers, maxPayload: 67_108_864 }, {}]]);
});

describe('connect names what is missing', () => {
  const network = new FakeNetwork();
  const { WebSocket } = network.options('ws');
  const { WebSocket: plain } = network.options('browser');
  const none = 'WebSocket: expected that of the package ws (there is none here), got undefined';
  const poor = 'WebSocket: expected that of the package ws (this one does not accept headers), got class';
  const refusal = (url: string, options: ConnectOptions<Event>): string => (thrown(() => connect(url, options)) as Error).message;

  test('if there is no WebSocket', () => {
    vi.stubGlobal('WebSocket', undefined);
    try {
      expect(refusal('ws://h/', {})).toBe(none);
      expect(refusal('ws://h/', { headers })).toBe(none);
      expect(refusal('http://h/', { transport: 'websocket' })).toBe(none);
    } finally {
      vi.unstubAllGlobals();
    }
  });

  test('if the WebSocket accepts no headers', async () => {
    expect(refusal('ws://h/', { headers, WebSocket: plain })).toContain(poor);
    expect(refusal('http://h/', { transport: 'websocket', headers, WebSocket: plain })).toContain(poor);
    await connect('ws://h/', { headers, WebSocket }).return();
    expect(network.link.headers).toEqual(headers);
  });

  test('in a browser, whose WebSocket never accepts any', () => {
    expect(() => checkWebSocket(plain, 'authorization')).toThrow('headers: expected none with a WebSocket, got "authorization"');
    expect(() => checkWebSocket(plain, undefined)).not.toThrow();
  });
});
