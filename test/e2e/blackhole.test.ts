// A network that goes without a word: no end, no reset, nothing arrives any more. Between client and server stands a line that can do that.
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import type { ClientTransport, WebSocketConstructor } from '../../src/bridge/client.ts';
import { connect } from '../../src/bridge/client.ts';
import { Hub } from '../../src/bridge/http.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { until } from '../eventually.ts';
import { startTcpProxy, type TcpProxy } from '../tcp-proxy.ts';
import { closeAll, serve } from './servers.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});
afterAll(closeAll);

/** A line to a server that can go silent. */
async function line(to: number): Promise<TcpProxy> {
  const proxy = await startTcpProxy(to);
  ends.push(() => proxy.close());
  return proxy;
}

describe.each<ClientTransport>(['websocket', 'http', 'sse'])('%s', (transport) => {
  test('a client that goes on after a version notices, comes back, and has missed nothing', async () => {
    const [clock, serverClock] = [new FakeClock(), new FakeClock()];
    const hub = new Hub<WatchEvent<'count', number>>({ epoch: 'e', clock: serverClock });
    const { port } = await serve(hub as unknown as Hub, { clock: serverClock });
    const network = await line(port);
    await hub.publish({ type: 'count', object: 1 });
    let delayMs: number | undefined;
    const watch = connect<WatchEvent<'count', number>>(`http://127.0.0.1:${network.port}/watch`, {
      ...{ transport, clock, resourceVersion: 'e.1', random: () => 0.5 },
      WebSocket: WebSocket as unknown as WebSocketConstructor,
      onStateChange: (_state, detail) => {
        delayMs = detail.delayMs;
      },
    });
    ends.push(() => watch.stop());

    for (const round of [1, 2]) {
      // The server has shown that it lives: from here on silence has a limit.
      await until(() => watch.state === 'open' && clock.pending === 1);
      network.swallow(true);
      await hub.publish({ type: 'count', object: 2 * round });
      await hub.publish({ type: 'count', object: 2 * round + 1 });
      clock.advance(149_999);
      expect(watch.state).toBe('open');
      clock.advance(1);
      expect(watch.state).toBe('waiting');
      clock.advance(delayMs as number);
      expect(watch.state).toBe('connecting');
      clock.advance(10_000);
      expect(watch.state).toBe('waiting');
      network.swallow(false);
      clock.advance(delayMs as number);
      for (const count of [2 * round, 2 * round + 1]) expect((await watch.next()).value?.object).toBe(count);
    }
    expect(hub.stats().total.resumes).toBe(3);
    await watch.return();
    expect(clock.pending).toBe(0);
  });
});
