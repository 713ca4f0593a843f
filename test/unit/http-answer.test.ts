// What a list watcher makes of the answers of servers, piece by piece; http-list-watcher.test.ts has whole exchanges.
import { describe, expect, it } from 'vitest';
import { checkType, eventCodec, toList, toRefused } from '../../src/cache/http/answer.ts';
import { createListWatcher } from '../../src/cache/index.ts';
import { thrown } from './support.ts';

const response = (status: number, headers: Record<string, string> = {}): Pick<Response, 'status' | 'headers'> => ({
  status,
  headers: new Headers(headers),
});
const status = (more: object): string => JSON.stringify({ kind: 'Status', status: 'Failure', code: 403, message: 'no', ...more });

describe('a refusal', () => {
  it.each<[number, number, string]>([
    [200, 500, 'InternalError'],
    [302, 500, 'InternalError'],
    [400, 400, 'BadRequest'],
    [418, 418, 'Unknown'],
    [499, 499, 'Unknown'],
    [500, 500, 'InternalError'],
    [599, 599, 'InternalError'],
  ])('of %i without a Status has code %i and reason %s', (answered, code, reason) => {
    const message = `the server answered ${answered}: text`;
    expect(toRefused(response(answered), 'text')).toMatchObject({
      code: 'REFUSED',
      message: `${code} ${reason}: ${message}`,
      status: { code, reason, message, metadata: {}, details: { causes: [{ reason: 'UnexpectedServerResponse' }] } },
    });
  });

  it.each([
    ['a page', '<html><body>502 Bad Gateway</body></html>', 'the server answered 502, with a page'],
    ['a text', ' no upstream\r\n here\n', 'the server answered 502: no upstream\r\n here'],
    ['a long text', 'a'.repeat(300), `the server answered 502: ${'a'.repeat(200)}`],
    ['nothing', '', 'the server answered 502'],
  ])('whose body is %s says so in words; the text is the cause', (_, body, message) => {
    const error = toRefused(response(502), body);
    expect(error).toMatchObject({ message: `502 InternalError: ${message}`, status: { message } });
    expect(error.cause).toBe(body.trim() || undefined);
    expect(error.status?.details?.causes).toEqual([
      { reason: 'UnexpectedServerResponse', message: body.trim().slice(0, 200) || 'status 502' },
    ]);
  });

  it.each<[unknown, number]>([
    [400, 400],
    [599, 599],
    [399, 422],
    [600, 422],
    [450.5, 422],
  ])('whose Status has code %s has code %i', (code, expected) => {
    expect(toRefused(response(422), status({ code })).status?.code).toBe(expected);
  });

  it.each<[string, object, object | undefined]>([
    ['no details', {}, undefined],
    ['null', { details: null }, undefined],
    ['a text', { details: 'text' }, {}],
    ['a delay', { details: { retryAfterSeconds: 1.5 } }, { retryAfterSeconds: 2 }],
    ['a text as the delay', { details: { retryAfterSeconds: '5' } }, {}],
    ['no delay', { details: { retryAfterSeconds: 0, name: 'a' } }, { name: 'a' }],
    ['a negative delay', { details: { retryAfterSeconds: -1 } }, {}],
  ])('with %s in its details', (_, more, expected) => {
    const { details } = toRefused(response(403), status(more)).status ?? {};
    expect(details && JSON.parse(JSON.stringify(details))).toEqual(expected);
  });

  it('has a delay that ends, whatever the body says', () => {
    const endless = status({ details: { retryAfterSeconds: 1 } }).replace('"retryAfterSeconds":1', '"retryAfterSeconds":1e999');
    expect(toRefused(response(429), endless).status?.details?.retryAfterSeconds).toBeUndefined();
    expect(toRefused(response(429, { 'retry-after': '7' }), endless).status?.details?.retryAfterSeconds).toBe(7);
  });

  it('has texts where its Status has something else', () => {
    const wrong = toRefused(response(403), status({ message: 1, reason: 2, metadata: { continue: 3 } })).status;
    expect(wrong).toMatchObject({ message: '', reason: 'Forbidden', metadata: {} });
    expect(toRefused(response(403), status({ reason: '', code: 499 })).status?.reason).toBe('Unknown');
    expect(toRefused(response(410), status({ metadata: { continue: 'next' } })).status?.metadata).toEqual({ continue: 'next' });
  });
});

describe('a list', () => {
  const list = (more: object): string =>
    JSON.stringify({ kind: 'PodList', metadata: { resourceVersion: '7' }, items: [], ...more });

  it.each([['application/json', 'Application/JSON; charset=utf-8', 'application/vnd.x+json']])(
    'is JSON, as its type says',
    (...types) => {
      for (const type of types) expect(() => checkType(response(200, { 'content-type': type }))).not.toThrow();
      expect(() => checkType(response(200))).not.toThrow();
      expect(thrown(() => checkType(response(200, { 'content-type': `x${'y'.repeat(100)}` })))).toMatchObject({
        code: 'INVALID_FRAME',
        message: `expected JSON, got x${'y'.repeat(79)}`,
      });
    },
  );

  it('tells why it cannot be read', () => {
    expect(thrown(() => toList('{'))).toMatchObject({ message: 'the list is not JSON', cause: expect.any(SyntaxError) });
    expect(thrown(() => toList(list({ items: 5, kind: 'K'.repeat(100) })))).toMatchObject({
      message: `not a list: expected items, got kind ${'K'.repeat(80)}`,
    });
    expect(thrown(() => toList(status({})))).toMatchObject({ code: 'REFUSED', status: { code: 403, message: 'no' } });
    expect(thrown(() => toList(status({ status: 'Success' })))).toMatchObject({ message: 'not a list: it has no metadata' });
  });

  it.each<[string, unknown, unknown]>([
    ['gets the kind of the list', 'PodList', { kind: 'Pod', apiVersion: 'v1' }],
    ['gets none of a list of anything', 'List', {}],
    ['gets none of what is no kind of list', 'Pods', {}],
    ['gets none of what is no text', 5, {}],
  ])('whose item %s', (_, kind, expected) => {
    expect(toList(list({ kind, apiVersion: 'v1', items: [{}] })).items).toEqual([expected]);
  });

  it('leaves items as they are that say what they are, if only in part', () => {
    const items = [{ kind: 'Own' }, { apiVersion: 'own/v1' }];
    expect(toList(list({ apiVersion: 'v1', items })).items).toEqual(items);
  });

  it.each([5, '', null])('takes %s for no continue', (next) => {
    expect(toList(list({ metadata: { resourceVersion: '7', continue: next } }))).toEqual({ items: [], resourceVersion: '7' });
  });
});

describe('an event', () => {
  const decode = (text: string): unknown => eventCodec().decode(new TextEncoder().encode(text));

  it('of type ERROR has a Status, whose parts are what they should be', () => {
    expect(decode(`{"type":"ERROR","object":${status({ code: 5, message: 5 })}}`)).toMatchObject({
      type: 'ERROR',
      object: { code: 500, message: '', reason: 'InternalError' },
    });
    expect(decode(status({ code: 410 }))).toMatchObject({ type: 'ERROR', object: { code: 410 } });
    expect(thrown(() => decode('{"type":"ERROR","object":{"kind":"Pod"}}'))).toMatchObject({ code: 'INVALID_FRAME' });
  });

  it.each([
    ['{"type":"MODIFIED","object":{}}', 'the MODIFIED has no object with metadata'],
    ['{"type":"ADDED","object":[]}', 'the ADDED has no object with metadata'],
  ])('%s is refused', (text, message) => {
    expect(thrown(() => decode(text))).toMatchObject({ code: 'INVALID_FRAME', message });
  });

  it.each(['no JSON', '{"type":"OTHER","object":{}}', '5'])('%s is none', (text) => {
    expect(thrown(() => decode(text))).toMatchObject({ code: 'INVALID_FRAME', message: expect.not.stringMatching(/^$/) });
  });
});

describe('the body of a list', () => {
  const text = JSON.stringify({ metadata: { resourceVersion: '7' }, items: [{ metadata: { name: 'grün 🌱' } }] });
  const bytes = new TextEncoder().encode(text);
  const fetched = (maxListBytes: number): Promise<unknown> => {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
        controller.close();
      },
    });
    const fetch = async (): Promise<Response> => new Response(body, { headers: { 'content-type': 'application/json' } });
    return createListWatcher('http://127.0.0.1/', { fetch, maxListBytes }).list();
  };

  it('may come byte by byte, and be just as long as it may', async () => {
    expect(await fetched(bytes.length)).toEqual({ items: [{ metadata: { name: 'grün 🌱' } }], resourceVersion: '7' });
    await expect(fetched(bytes.length - 1)).rejects.toMatchObject({ code: 'FRAME_TOO_LARGE', limit: bytes.length - 1 });
  });

  it('may not end in the middle of a character', async () => {
    const cut = new TextEncoder().encode('{"metadata":{"resourceVersion":"7"},"items":[]}');
    const body = new Uint8Array([...cut, 0xf0, 0x9f]);
    const fetch = async (): Promise<Response> => new Response(body, { headers: { 'content-type': 'application/json' } });
    await expect(createListWatcher('http://127.0.0.1/', { fetch }).list()).rejects.toMatchObject({ code: 'INVALID_FRAME' });
  });
});
