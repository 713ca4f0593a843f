// Long answers for clients that accept gzip, without a socket and with one.
import { get, type IncomingMessage } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { compressed } from '../../src/apiserver/http/gzip.ts';
import { PiecesSource, type Source } from '../../src/apiserver/http/sources.ts';
import type { StreamAnswer } from '../../src/apiserver/http/wire.ts';
import type { ApiServerOptions } from '../../src/apiserver/index.ts';
import { closers } from '../closing.ts';
import { eventually } from '../eventually.ts';
import { listening } from '../listening.ts';
import { ORDERS_PATH, rig } from './apiserver-rig.ts';

const closing = closers();

async function served(options: Partial<ApiServerOptions> = {}, text: string = 'x'.repeat(20_000)) {
  const { server, call } = rig(options);
  for (let at = 0; at < 10; at++) {
    expect((await call('POST', ORDERS_PATH, { metadata: { name: `o${at}` }, spec: { item: `${text}${at}` } })).code).toBe(201);
  }
  const { port, close } = await listening(server);
  closing.push(close);
  const read = (path: string, headers: Record<string, string>): Promise<{ answer: IncomingMessage; bytes: Buffer }> =>
    new Promise((resolve) => {
      get({ host: '127.0.0.1', port, path, headers }, (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk) => chunks.push(chunk)).on('end', () => resolve({ answer, bytes: Buffer.concat(chunks) }));
      });
    });
  return { server, call, read, port };
}

describe('gzip', () => {
  it('shortens a long list if it is asked to', async () => {
    const { read, call } = await served();
    const { answer, bytes } = await read(ORDERS_PATH, { 'accept-encoding': 'deflate, GZIP;q=0.5' });
    expect(answer.headers).toMatchObject({
      'content-encoding': 'gzip',
      vary: 'Accept-Encoding',
      'content-type': 'application/json',
    });
    expect(bytes.length).toBeLessThan(20_000);
    expect(JSON.parse(gunzipSync(bytes).toString())).toEqual((await call('GET', ORDERS_PATH)).body);
    const told = await call('GET', ORDERS_PATH, undefined, { 'accept-encoding': 'gzip' });
    expect(told.headers.get('content-encoding')).toBe('gzip');
  });

  it.each([
    ['nobody asks', {}, {}, ORDERS_PATH],
    ['it is excluded', {}, { 'accept-encoding': 'gzip;q=0, br' }, ORDERS_PATH],
    ['the answer is short', {}, { 'accept-encoding': 'gzip' }, `${ORDERS_PATH}?limit=2`],
    ['it is switched off', { minGzipBytes: 0 }, { 'accept-encoding': 'gzip' }, ORDERS_PATH],
  ])('does nothing if %s', async (_, options, headers, path) => {
    const { read } = await served(options);
    const { answer, bytes } = await read(path, headers as Record<string, string>);
    expect(answer.headers['content-encoding']).toBeUndefined();
    expect(answer.headers.vary).toBeUndefined();
    expect(JSON.parse(bytes.toString()).kind).toBe('OrderList');
  });

  it('leaves watches alone', async () => {
    const { port } = await served();
    const encoding = await new Promise((resolve) => {
      const path = `${ORDERS_PATH}?watch=1`;
      const asked = get({ host: '127.0.0.1', port, path, headers: { 'accept-encoding': 'gzip' } }, ({ headers }) =>
        resolve(headers['content-encoding']),
      );
      closing.push(() => asked.destroy());
    });
    expect(encoding).toBeUndefined();
  });

  it('shortens one long object, and tells of both reasons to vary', async () => {
    const { read } = await served({ allowedOrigins: ['http://page.example'] }, 'y'.repeat(200_000));
    const headers = { 'accept-encoding': 'gzip', origin: 'http://page.example' };
    const { answer, bytes } = await read(`${ORDERS_PATH}/o1`, headers);
    expect(answer.headers.vary).toMatch(/^Accept-Encoding, origin$/i);
    expect(JSON.parse(gunzipSync(bytes).toString()).metadata.name).toBe('o1');
  });
});

/** An answer of so many chunks, which counts what is taken of it. */
function answerOf(count: number, fails?: Error): { answer: StreamAnswer; taken: () => number; closed: () => number } {
  let [taken, closed] = [0, 0];
  function* chunks(): Generator<Uint8Array> {
    try {
      for (; taken < count; taken++) yield Buffer.from(Array.from({ length: 65_536 }, () => Math.floor(Math.random() * 256)));
      if (fails) throw fails;
    } finally {
      closed++;
    }
  }
  const source = new PiecesSource(chunks(), { ahead: [Buffer.alloc(200_000)] });
  const answer: StreamAnswer = { code: 200, headers: {}, source, isWatch: false, sse: false, timeoutMs: 0, slot: undefined };
  return { answer, taken: () => taken, closed: () => closed };
}

const gzip = (answer: StreamAnswer): Source => compressed(answer, { accepted: 'gzip', minBytes: 1 }).source as Source;
const next = (source: Source): Promise<Uint8Array | undefined> =>
  source.next({} as never, { readable: () => {} }) as Promise<Uint8Array | undefined>;

describe('a compressed source', () => {
  it('makes no more than there is room for, and closes what it reads', async () => {
    const { answer, taken, closed } = answerOf(1_000);
    const source = gzip(answer);
    expect(await next(source)).toBeInstanceOf(Uint8Array);
    await eventually(() => expect(taken()).toBeGreaterThan(0));
    const before = taken();
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(taken()).toBeLessThan(before + 6);
    source.close();
    expect(closed()).toBe(1);
  });

  it('fails with its source', async () => {
    const source = gzip(answerOf(2, new Error('broken')).answer);
    await expect(
      (async () => {
        while (await next(source));
      })(),
    ).rejects.toThrow('broken');
  });

  it('ends what waits when it is closed', async () => {
    const { answer, closed } = answerOf(1_000);
    const source = gzip(answer);
    const pending = next(source).catch(() => undefined);
    source.close();
    await pending;
    expect(closed()).toBeLessThan(2);
  });
});
