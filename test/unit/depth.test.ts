// How deep JSON may be nested, wherever it comes in: nothing that recurses over it runs out of stack. And halves of surrogate pairs.
import { describe, expect, test } from 'vitest';
import { Hub } from '../../src/bridge/hub/hub.ts';
import { parse } from '../../src/bridge/hub/source/source-follower.ts';
import { toObject } from '../../src/cache/http/answer.ts';
import { createListWatcher } from '../../src/cache/index.ts';
import { isTooDeep, jsonCodec, MAX_DEPTH } from '../../src/decode/codec.ts';
import { StreamWatcher, toDecoder } from '../../src/index.ts';
import { ORDERS_PATH, rig } from './apiserver-rig.ts';

const lists = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;
const objects = (levels: number): string => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
/** An event whose nesting is that of its object and one more. */
const event = (object: string): string => `{"type":"ADDED","object":${object}}`;
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const jsonOf = (text: string): Response => new Response(text, { headers: { 'content-type': 'application/json' } });
const depthOf = (value: unknown): number => {
  let depth = 0;
  for (let at = value; Array.isArray(at); at = at[0]) depth++;
  return depth;
};

describe('the nesting of a text', () => {
  test('ends at ten thousand levels, as in Go', () => {
    expect(MAX_DEPTH).toBe(10_000);
    for (const nested of [lists, objects]) {
      expect([isTooDeep(nested(10_000)), isTooDeep(nested(10_001)), isTooDeep(nested(1_000_000))]).toEqual([false, true, true]);
    }
    expect(isTooDeep(`${'['.repeat(10_000)}${']'.repeat(10_000)}${' '.repeat(10)}`)).toBe(false);
  });

  test('is not what stands in a string, and not what has been closed', () => {
    const text = `"${'[{'.repeat(20_000)}"`;
    const escaped = `"${'\\"[\\\\'.repeat(20_000)}"`;
    for (const each of [text, escaped, `[${text},${escaped}]`, `[${'[],{},'.repeat(30_000)}1]`, `{${text}:${escaped}}`]) {
      expect([isTooDeep(each), JSON.stringify(JSON.parse(each.replaceAll('{},', ''))).length > 0]).toEqual([false, true]);
    }
  });
});

describe('what is nested deeper', () => {
  test('is refused by the decoder: one ERROR, and the end, as for anything else that is no event', async () => {
    const { decode } = jsonCodec();
    expect(depthOf(decode(bytes(event(lists(9_999)))).object)).toBe(9_999);
    expect(() => decode(bytes(event(lists(10_000))))).toThrow(
      expect.objectContaining({
        code: 'INVALID_FRAME',
        message: expect.stringMatching(/^bad frame, nested deeper than 10000 levels: \{"type":"ADDED","object":\[\[/),
      }),
    );
    async function* source(): AsyncGenerator<string> {
      yield `${event('1')}\n${event(lists(100_000))}\n${event('2')}\n`;
    }
    const seen: unknown[] = [];
    for await (const { type, object } of new StreamWatcher(toDecoder(source()))) seen.push([type, object]);
    expect(seen).toEqual([
      ['ADDED', 1],
      ['ERROR', expect.objectContaining({ code: 500, message: expect.stringContaining('nested deeper than 10000 levels') })],
    ]);
  });

  test('is refused by a hub, as a text and as an object; what comes after it is delivered', async () => {
    const hub = new Hub();
    const watch = hub.watch();
    const any = { type: 'ADDED', object: undefined };
    await expect(hub.publish(any, { json: event(lists(10_000)) })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('json: expected at most 10000 levels of objects and lists'),
    });
    expect(() => hub.tryPublish(any, event(lists(100_000)))).toThrow('json: expected at most 10000 levels');
    const deep: unknown = JSON.parse(lists(100_000));
    // Before Node 26, JSON.stringify says so itself.
    const isWritten = ((): boolean => {
      try {
        return JSON.stringify(deep) !== '';
      } catch {
        return false;
      }
    })();
    const refusal = isWritten ? /^object: expected at most 10000 levels of objects and lists, got / : RangeError;
    await expect(hub.publish({ type: 'ADDED', object: deep })).rejects.toThrow(refusal);
    expect(() => hub.tryPublish({ type: 'ADDED', object: deep })).toThrow(refusal);
    await hub.publish(any, { json: event(lists(9_999)) });
    await hub.publish({ type: 'ADDED', object: 1 });
    expect(hub.stats().accepted).toBe(2);
    await watch.return();
    await hub.shutdown();
  });

  test('is no event of a stream that a hub follows', () => {
    expect(parse(event(lists(9_999)))).toMatchObject({ type: 'ADDED' });
    expect(parse(event(lists(10_000)))).toBeUndefined();
  });

  test.each([
    ['an item', (deep: string) => `{"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a"},"n":${deep}}]}`, 9_997],
    ['what stands before them', (deep: string) => `{"metadata":{"resourceVersion":"1","n":${deep}},"items":[]}`, 9_998],
    ['what is read whole', (deep: string) => `{"metadata":{"name":"a"},"n":${deep}}`, 9_999],
  ])('is refused in an answer to a list or a get: %s', async (what, toText, levels) => {
    const read = async (text: string): Promise<void> => {
      if (what === 'what is read whole') toObject(text);
      else await createListWatcher('http://a/pods', { fetch: async () => jsonOf(text) }).list();
    };
    await read(toText(lists(levels)));
    for (const deeper of [10_001, 100_000])
      await expect(read(toText(lists(deeper)))).rejects.toMatchObject({
        code: 'INVALID_FRAME',
        message: expect.stringContaining('nested deeper than 10000 levels'),
      });
  });

  test.each([false, true])('is an ERROR in a watch of a server, also if its object is stored: %s', async (isStored) => {
    const change = (deep: string): string => `{"type":"MODIFIED","object":{"metadata":{"name":"a"},"n":${deep}}}\n`;
    const fetch = async (): Promise<Response> => jsonOf(change(lists(9_998)) + change(lists(9_999)));
    const stored = isStored ? () => ({ metadata: { name: 'a' }, n: 1 }) : undefined;
    const seen: unknown[] = [];
    for await (const { type, object } of await createListWatcher('http://a/pods', { fetch }).watch({ stored }))
      seen.push([type, 'code' in object ? object.message : depthOf((object as { n?: unknown }).n)]);
    expect(seen).toEqual([
      ['MODIFIED', 9_998],
      ['ERROR', expect.stringContaining('nested deeper than 10000 levels')],
    ]);
  });

  test.each([
    ['POST', '', 'application/json'],
    ['PUT', '/a', 'application/json'],
    ['PATCH', '/a', 'application/merge-patch+json'],
    ['PATCH', '/a', 'application/json-patch+json'],
    ['DELETE', '/a', 'application/json'],
    ['DELETE', '', 'application/json'],
  ])('is refused by an API server: %s %s, %s', async (method, path, type) => {
    const errors: unknown[] = [];
    const { server, call } = rig({ onError: (error) => errors.push(error) });
    await call('POST', ORDERS_PATH, { metadata: { name: 'a' } });
    const ask = async (value: string): Promise<[number, string]> => {
      const init = { method, headers: { 'content-type': type }, body: value };
      const response = await server.fetch(new Request(`http://localhost${ORDERS_PATH}${path}`, init));
      return [response.status, ((await response.json()) as { message: string }).message];
    };
    for (const levels of [129, 10_000, 500_000]) {
      for (const nested of [lists, objects]) {
        const sent = nested(levels);
        // The options of a DELETE are short.
        const isLong = method === 'DELETE' && sent.length > 65_536;
        const refusal = isLong ? [413, expect.stringContaining('65536')] : [400, 'the body is nested deeper than 128 levels'];
        expect(await ask(sent)).toEqual(refusal);
      }
    }
    expect(errors).toEqual([]);
  });

  test('is refused by a resource in the same process, however deep', async () => {
    const { server } = rig();
    const orders = server.resource('orders.example.com/v1').in('default');
    for (const levels of [128, 5_000, 500_000]) {
      const order = { metadata: { name: 'deep' }, spec: JSON.parse(objects(levels)) as object };
      await expect(orders.create(order)).rejects.toMatchObject({
        code: 'REFUSED',
        status: { code: 400, message: 'the body is nested deeper than 128 levels' },
      });
    }
  });

  test('does not come about by patches, each of which is flat', async () => {
    const errors: unknown[] = [];
    const { server, call } = rig({ onError: (error) => errors.push(error) });
    await call('POST', ORDERS_PATH, { metadata: { name: 'a' }, x: {} });
    const patch = async (operations: readonly object[]): Promise<number> => {
      const init = {
        method: 'PATCH',
        headers: { 'content-type': 'application/json-patch+json' },
        body: JSON.stringify(operations),
      };
      return (await server.fetch(new Request(`http://localhost${ORDERS_PATH}/a`, init))).status;
    };
    const down = (levels: number): string => `/x${'/a'.repeat(levels)}`;
    // Each goes below the one before.
    const adding = Array.from({ length: 1_000 }, (_, at) => ({ op: 'add', path: down(at + 1), value: {} }));
    const deepest = JSON.parse(objects(100)) as object;
    const adding100 = Array.from({ length: 100 }, (_, at) => ({ op: 'add', path: down(100 * at + 1), value: deepest }));
    // Each takes what there is into itself.
    const moving = Array.from({ length: 5_000 }, () => [
      { op: 'move', from: '/x', path: '/y' },
      { op: 'add', path: '/x', value: {} },
      { op: 'move', from: '/y', path: '/x/a' },
    ]).flat();
    expect(await patch(adding)).toBe(400);
    expect([await patch(adding100), await patch(moving.slice(0, 9_999))]).toEqual([400, 400]);
    // One level with each patch, until the object is as deep as it may be.
    const codes = new Set<number>();
    for (let at = 0; at < 210; at++) codes.add(await patch([{ op: 'add', path: down(at + 1), value: {} }]));
    // What is refused is not there for the next one to go below.
    expect([...codes]).toEqual([200, 400, 422]);
    expect((await call('GET', `${ORDERS_PATH}/a`)).code).toBe(200);
    expect(errors).toEqual([]);
  });
});

describe('half a surrogate pair, escaped', () => {
  const half = '"\\ud800"';

  test('is kept by the decoder, and written as it came', () => {
    const codec = jsonCodec();
    const decoded = codec.decode(bytes(event(half)));
    expect(decoded.object).toBe('\ud800');
    expect(codec.encode(decoded)).toBe(event(half));
  });

  test('is kept by an API server: in an answer, in a list, and after a patch', async () => {
    const { server, call } = rig();
    const init = { method: 'POST', headers: { 'content-type': 'application/json' } };
    const body = `{"apiVersion":"example.com/v1","kind":"Order","metadata":{"name":"a"},"text":${half}}`;
    const url = `http://localhost${ORDERS_PATH}`;
    expect(await (await server.fetch(new Request(url, { ...init, body }))).text()).toContain(`"text":${half}`);
    await call('PATCH', `${ORDERS_PATH}/a`, { more: 1 }, { 'content-type': 'application/merge-patch+json' });
    expect((await call('GET', ORDERS_PATH)).text).toContain(`"text":${half}`);
  });

  test('is no part of a name, a label or a key', async () => {
    const { call } = rig();
    expect((await call('POST', ORDERS_PATH, { metadata: { name: 'a\ud800' } })).code).toBe(422);
    expect((await call('POST', ORDERS_PATH, { metadata: { name: 'a', labels: { a: '\ud800' } } })).code).toBe(422);
    expect((await call('POST', ORDERS_PATH, { metadata: { name: 'a', labels: { '\ud800': 'a' } } })).code).toBe(422);
  });
});
