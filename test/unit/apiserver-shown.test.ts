// What a watch shows of objects that are stored in another form: it is made as it is sent, and once for all.
import { describe, expect, test } from 'vitest';
import type { Convert, ResourceDefinition } from '../../src/apiserver/index.ts';
import { ORDERS, rig } from './apiserver-rig.ts';

const V2 = { ...ORDERS, version: 'v2' } as ResourceDefinition;
const PATH = '/apis/example.com/v1/namespaces/default/orders';
const WATCH = 'http://127.0.0.1/apis/example.com/v2/namespaces/default/orders?watch=1&resourceVersion=0';

/** Orders that are stored as v1 and read as v2. */
async function converting(count: number, convert: Convert): Promise<ReturnType<typeof rig>> {
  const made = rig({ resources: [ORDERS as ResourceDefinition, V2], convert: { 'orders.example.com': convert } });
  const spec = { item: 'x'.repeat(2_000) };
  for (let at = 0; at < count; at++) await made.call('POST', PATH, { metadata: { name: `a${at}` }, spec });
  return made;
}

describe('a watch in another version than that of the objects', () => {
  test.each(['application/json', 'application/json;as=Table;g=meta.k8s.io;v=v1'])(
    'converts no more than it sends: %s',
    async (accept) => {
      let conversions = 0;
      const { server } = await converting(300, (object, apiVersion) => {
        conversions++;
        return { ...object, apiVersion };
      });
      conversions = 0;
      const abort = new AbortController();
      const response = await server.fetch(new Request(WATCH, { headers: { accept }, signal: abort.signal }));
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      const { value } = await reader.read();
      expect(new TextDecoder().decode(value)).toMatch(/^\{"type":"ADDED"/);
      expect(conversions).toBeLessThan(300);
      abort.abort();
      await server.shutdown();
    },
  );

  test('converts a change once for all clients, and tells the error of one that fails', async () => {
    let conversions = 0;
    const { server, call } = await converting(0, (object, apiVersion) => {
      conversions++;
      if (object.metadata?.name === 'bad') throw new Error('no such form');
      return { ...object, apiVersion };
    });
    const abort = new AbortController();
    const readers: ReadableStreamDefaultReader<Uint8Array>[] = [];
    for (let at = 0; at < 3; at++) {
      const { body } = await server.fetch(
        new Request(WATCH.replace('&resourceVersion=0', '&resourceVersion=1'), { signal: abort.signal }),
      );
      readers.push((body as ReadableStream<Uint8Array>).getReader());
    }
    const next = async (): Promise<string[]> =>
      Promise.all(readers.map(async (reader) => new TextDecoder().decode((await reader.read()).value)));
    conversions = 0;
    await call('POST', PATH, { metadata: { name: 'a' } });
    const texts = await next();
    expect(new Set(texts).size).toBe(1);
    expect(JSON.parse(texts[0] as string)).toMatchObject({ type: 'ADDED', object: { apiVersion: 'example.com/v2' } });
    expect(conversions).toBe(1);
    await call('POST', PATH, { metadata: { name: 'bad' } });
    for (const text of await next()) expect(JSON.parse(text)).toMatchObject({ type: 'ERROR', object: { code: 500 } });
    abort.abort();
    await server.shutdown();
  });
});

describe('what is deleted together', () => {
  test('is shown as the version that was asked for has it, in process and over HTTP', async () => {
    const { server, call } = await converting(3, (object, apiVersion) => ({ ...object, apiVersion, converted: true }));
    const remaining = (await server
      .resource('orders.example.com/v2')
      .in('default')
      .deleteCollection({ fieldSelector: 'metadata.name=a1' })) as object[];
    const own = { apiVersion: 'example.com/v2', converted: true };
    expect(remaining).toMatchObject([{ ...own, metadata: { name: 'a1' } }]);
    const answer = await call('DELETE', PATH.replace('v1', 'v2'));
    expect(answer.body).toMatchObject({
      items: [
        { ...own, metadata: { name: 'a0' } },
        { ...own, metadata: { name: 'a2' } },
      ],
    });
    await server.shutdown();
  });
});
