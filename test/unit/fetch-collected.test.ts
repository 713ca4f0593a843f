// A `Request` that nobody holds is collected, and on Node its signal never aborts then. A client that leaves must be noticed all the same.
import { afterEach, describe, expect, test } from 'vitest';
import { createFetchHandler } from '../../src/bridge/fetch.ts';
import { Hub } from '../../src/bridge/hub/hub.ts';
import { eventually } from '../eventually.ts';
import { ORDERS_PATH, rig } from './apiserver-rig.ts';
import { collectedUntil, NO_GC } from './support.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

type Serve = (request: Request) => Response | Promise<Response>;

const SERVERS: Readonly<Record<string, () => { readonly serve: Serve; readonly watchers: () => number }>> = {
  'an API server': () => {
    const { server } = rig();
    closing.push(() => server.shutdown());
    return { serve: (request) => server.fetch(request), watchers: () => server.stats.watchers };
  },
  'a hub': () => {
    const hub = new Hub({ epoch: 'e' });
    closing.push(() => hub.shutdown());
    return { serve: createFetchHandler(hub), watchers: () => hub.stats().clients.length };
  },
};

describe.skipIf(globalThis.gc === undefined)(`a watch whose request was collected${NO_GC}`, () => {
  for (const [title, serverOf] of Object.entries(SERVERS)) {
    test(`${title} notices that its client leaves`, async () => {
      const { serve, watchers } = serverOf();
      const client = new AbortController();
      const open = async (): Promise<ReadableStream> => {
        const url = `http://127.0.0.1${ORDERS_PATH}?watch=1`;
        return (await serve(new Request(url, { signal: client.signal }))).body as ReadableStream;
      };
      const body = await open();
      const other = new WeakRef({});
      expect(await collectedUntil(() => other.deref() === undefined)).toBe(true);
      expect(watchers()).toBe(1);
      client.abort();
      await eventually(() => expect(watchers()).toBe(0));
      await body.cancel().catch(() => {});
    });
  }
});
