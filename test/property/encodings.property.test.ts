// S17: a watch tells the same over HTTP, over a WebSocket and in process; of two watches over HTTP the bytes are the same, whether an
// event was encoded for one of them or is kept from the other, and whether there is a cache. Nothing is compressed, so there is no other
// form of a body.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import type { ApiServer } from '../../src/apiserver/index.ts';
import { closers } from '../closing.ts';
import { listening } from '../listening.ts';
import { runs } from '../runs.ts';
import { ORDERS_PATH, rig } from '../unit/apiserver-rig.ts';

const RUNS = runs(20);
const timeout = 30_000 + RUNS * 400;
const END = 'end';

const step = fc.record({
  name: fc.constantFrom('a', 'b', 'c'),
  do: fc.constantFrom('put' as const, 'put', 'delete'),
  item: fc.oneof(fc.string({ unit: 'grapheme', maxLength: 8 }), fc.constantFrom('"\n\\', '\u2028', '\u{1F600}', 'ä')),
  count: fc.constantFrom(0, 1, 2 ** 53 - 1),
});

const closing = closers();

const isEnd = (text: string): boolean => text.includes(`"name":"${END}"`);

/** The lines of a watch over HTTP, up to the end. */
async function overHttp(url: string): Promise<string[]> {
  const abort = new AbortController();
  const { body } = await fetch(url, { signal: abort.signal });
  const utf8 = new TextDecoder();
  let text = '';
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    text += utf8.decode(chunk, { stream: true });
    if (isEnd(text) && text.endsWith('\n')) break;
  }
  abort.abort();
  return text.trimEnd().split('\n');
}

function overWebSocket(url: string): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url.replace('http', 'ws'));
    const messages: string[] = [];
    socket.on('error', reject);
    socket.on('message', (data) => {
      messages.push(String(data));
      if (!isEnd(messages.at(-1) as string)) return;
      socket.terminate();
      resolve(messages);
    });
  });
}

async function inProcess(server: ApiServer, resourceVersion: string): Promise<string[]> {
  const watch = await server.resource('orders.example.com').in('default').watch({ resourceVersion });
  const events: string[] = [];
  for await (const event of watch) {
    // In process an event also has what was there before.
    events.push(JSON.stringify({ type: event.type, object: event.object }));
    if (isEnd(events.at(-1) as string)) break;
  }
  return events;
}

describe.each([
  ['with a cache', true],
  ['without', false],
])('an API server %s', { timeout }, (_, cache) => {
  test('S17: every transport has the same events, and two watches have the same bytes', async () => {
    const property = fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      const { server, call } = rig({ cache });
      await server.ready;
      const { url, http, close } = await listening(server);
      http.on('upgrade', server.upgrade);
      closing.push(close, () => server.shutdown());
      const { body } = await call('GET', ORDERS_PATH);
      const { resourceVersion } = body.metadata;
      const path = `${url}${ORDERS_PATH}?watch=1&resourceVersion=${resourceVersion}`;
      const live = [overHttp(path), overWebSocket(path), inProcess(server, resourceVersion)];
      for (const { name, do: verb, item, count } of [...steps, { name: END, do: 'put', item: '', count: 0 }]) {
        const object = { metadata: { name }, spec: { item, count } };
        if (verb === 'delete') await call('DELETE', `${ORDERS_PATH}/${name}`);
        else if ((await call('POST', ORDERS_PATH, object)).code === 409) await call('PUT', `${ORDERS_PATH}/${name}`, object);
      }
      // Those that come late read from the history.
      const [first, socket, own, late] = (await Promise.all([...live, overHttp(path)])) as [
        string[],
        string[],
        string[],
        string[],
      ];
      expect(late).toEqual(first);
      expect(socket).toEqual(first);
      expect(own.map((each) => JSON.parse(each))).toEqual(first.map((each) => JSON.parse(each)));
      for (const end of closing.splice(0).reverse()) await end();
    });
    await fc.assert(property, { numRuns: RUNS });
  });
});
