// How long a hub waits for a nats-server that is back. Nothing runs beside this test. The control is a new hub of the same server.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Hub } from '../../src/bridge/hub/hub.ts';
import { NatsStream } from '../../src/nats/index.ts';
import { component, isMissing } from '../components.ts';
import { type NatsServer, startNats } from '../peers/nats-server.ts';

const missing = isMissing(component('nats-server'));
let nats: NatsServer;

beforeAll(async () => {
  if (!missing) nats = await startNats();
});
afterAll(() => nats?.stop());

const open = (): NatsStream => new NatsStream({ servers: nats.address, stream: 'outage', create: {}, publishTimeoutMs: 60_000 });

describe.skipIf(missing)('a server that is back', () => {
  test('is used at once, also by what was asked when it went away or while it was', async () => {
    const stream = open();
    const hub = new Hub({ source: stream, onError: () => {} });
    await hub.ready();
    const watch = hub.watch();
    nats.pause();
    const asked = hub.publish({ type: 'MODIFIED', object: 1 });
    await nats.kill();
    const meanwhile = hub.publish({ type: 'MODIFIED', object: 2 });
    await nats.start();
    const began = performance.now();
    await Promise.all([asked, meanwhile]);
    const got = [(await watch.next()).value, (await watch.next()).value] as { object: unknown }[];
    const tookMs = performance.now() - began;
    expect(got.map(({ object }) => object).sort()).toEqual([1, 2]);

    const again = performance.now();
    const control = open();
    const fresh = new Hub({ source: control });
    await fresh.publish({ type: 'MODIFIED', object: 3 });
    const freshMs = performance.now() - again;
    // Not after the 10 s in which the server would have answered what it has never got.
    expect(tookMs - freshMs).toBeLessThan(6_000);
    await hub.shutdown();
    await fresh.shutdown();
    await stream.close();
    await control.close();
  });
});
