// Watches as Server-Sent Events, as an EventSource takes them: cut anywhere, it goes on from its last id and has lost nothing.
import { describe, expect, test } from 'vitest';
import type { ApiServerOptions } from '../../src/apiserver/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { closers } from '../closing.ts';
import { listening } from '../listening.ts';
import { ORDERS_PATH, rig } from './apiserver-rig.ts';

const closing = closers();

async function open(options: Partial<ApiServerOptions> = {}): Promise<ReturnType<typeof rig> & { url: string }> {
  const made = rig(options);
  const { url, close } = await listening(made.server);
  closing.push(close);
  return { ...made, url };
}

interface Message {
  /** Undefined for one without an `id:`. */
  readonly id: string | undefined;
  /** What a page is told under the name `message`; undefined for a message of another name. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into what came over the wire
  readonly event: any;
}

/** What an EventSource does: it keeps the last id, and sends it when it connects again, unless it is empty. */
class Source {
  readonly #url: string;
  readonly #accept: string;
  lastId: string = '';

  constructor(url: string, accept: string = 'text/event-stream') {
    this.#url = url;
    this.#accept = accept;
  }

  /** The messages of one connection. Leaving the loop cuts it. */
  async *messages(): AsyncGenerator<Message> {
    const abort = new AbortController();
    const headers = { accept: this.#accept, ...(this.lastId && { 'last-event-id': this.lastId }) };
    const { body, status } = await fetch(this.#url, { headers, signal: abort.signal });
    expect(status).toBe(200);
    try {
      let text = '';
      const utf8 = new TextDecoder();
      for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
        const records = (text + utf8.decode(chunk, { stream: true })).split('\n\n');
        text = records.pop() ?? '';
        for (const record of records) {
          const fields = new Map(
            record.split('\n').map((line) => /^(\w+)(?:: ?(.*))?$/.exec(line)?.slice(1) as [string, string]),
          );
          if (fields.has('id')) this.lastId = fields.get('id') ?? '';
          if (!fields.has('data')) continue;
          yield { id: fields.get('id'), event: fields.has('event') ? undefined : JSON.parse(fields.get('data') ?? '') };
        }
      }
    } finally {
      abort.abort();
    }
  }
}

const COUNT = 30;

/** Fills a collection against the order of its names, so that its last key has its oldest version. Returns the state's. */
async function fill({ call }: Pick<ReturnType<typeof rig>, 'call'>): Promise<string> {
  for (let at = COUNT; at > 0; at--) await call('POST', ORDERS_PATH, { metadata: { name: `o-${100 + at}` } });
  return (await call('GET', ORDERS_PATH)).body.metadata.resourceVersion;
}

const STATE = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan';
const QUERIES = [
  'watch=1',
  'watch=1&resourceVersion=0',
  'watch=1&allowWatchBookmarks=true',
  `watch=1&${STATE}`,
  `watch=1&${STATE}&resourceVersion=1`,
];

describe.each([true, false])('cache: %s', (cache) => {
  test.each(QUERIES.flatMap((query) => [1, COUNT - 1, COUNT, COUNT + 1, COUNT + 2].map((after) => [query, after] as const)))(
    '%s, cut after %i messages: nothing is lost',
    async (query, after) => {
      const { url, call } = await open({ cache });
      const version = await fill({ call });
      const source = new Source(`${url}${ORDERS_PATH}?${query}`);
      const names = new Set<string>();
      const take = ({ event }: Message): void => {
        if (event?.type === 'ADDED') names.add(event.object.metadata.name);
        if (event?.type === 'DELETED') names.delete(event.object.metadata.name);
      };
      if (after > COUNT + 1) setTimeout(() => void call('POST', ORDERS_PATH, { metadata: { name: 'new' } }), 50);
      let left = after;
      for await (const message of source.messages()) {
        take(message);
        if (--left === 0) break;
      }
      if (after <= COUNT) expect(source.lastId).toBe('');
      else if (after === COUNT + 1) expect(source.lastId).toBe(version);
      else expect(Number(source.lastId)).toBeGreaterThan(Number(version));

      await call('DELETE', `${ORDERS_PATH}/o-${100 + COUNT}`);
      const created = await call('POST', ORDERS_PATH, { metadata: { name: 'late' } });
      if (source.lastId === '') names.clear();
      for await (const message of source.messages()) {
        take(message);
        if (source.lastId === created.body.metadata.resourceVersion) break;
      }
      const { body } = await call('GET', ORDERS_PATH);
      expect([...names].sort()).toEqual(body.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name).sort());
    },
  );

  test.each(['text/event-stream', 'application/json;as=Table;v=v1;g=meta.k8s.io, text/event-stream'])(
    'a state has no ids, and only a client that asks for BOOKMARKs gets one: %s',
    async (accept) => {
      const { url, call } = await open({ cache });
      const version = await fill({ call });
      for (const [query, type] of [
        ['watch=1', undefined],
        ['watch=1&allowWatchBookmarks=1', 'BOOKMARK'],
      ] as const) {
        const messages: Message[] = [];
        for await (const message of new Source(`${url}${ORDERS_PATH}?${query}`, accept).messages()) {
          if (messages.push(message) > COUNT) break;
        }
        expect(messages.slice(0, COUNT).map(({ id }) => id)).toEqual(Array(COUNT).fill(undefined));
        expect(messages[COUNT]?.id).toBe(version);
        expect(messages[COUNT]?.event?.type).toBe(type);
      }
    },
  );

  test.each(['watch=1&resourceVersion=VERSION', `watch=1&${STATE.replace('true', 'false')}`])(
    '%s: a stream without a state begins with its position, also behind one that was cut before any event',
    async (query) => {
      const { url, call } = await open({ cache });
      const version = await fill({ call });
      const source = new Source(`${url}${ORDERS_PATH}?${query.replace('VERSION', version)}`);
      for await (const { id, event } of source.messages()) {
        expect([id, event]).toEqual([version, undefined]);
        break;
      }
      const { body } = await call('POST', ORDERS_PATH, { metadata: { name: 'between' } });
      const messages: Message[] = [];
      for await (const message of source.messages()) if (messages.push(message) === 2) break;
      expect(messages[0]).toEqual({ id: version, event: undefined });
      expect(messages[1]).toMatchObject({
        id: body.metadata.resourceVersion,
        event: { object: { metadata: { name: 'between' } } },
      });
    },
  );
});

test('after a version that is too old, an EventSource begins anew', async () => {
  const { url, call } = await open({ storage: new MemoryStorage({ maxHistoryItems: 1 }), cache: false });
  const version = await fill({ call });
  const source = new Source(`${url}${ORDERS_PATH}?watch=1`);
  source.lastId = '1';
  const messages: Message[] = [];
  for await (const message of source.messages()) messages.push(message);
  expect(messages.pop()).toMatchObject({ id: '', event: { type: 'ERROR', object: { code: 410 } } });
  messages.length = 0;
  for await (const message of source.messages()) if (messages.push(message) > COUNT) break;
  expect(source.lastId).toBe(version);
});

test('a quiet watch is told how far the server is, so that its version stays fresh', async () => {
  const { url, call } = await open({ cache: { bookmarkMs: 20 } });
  const version = await fill({ call });
  const source = new Source(`${url}${ORDERS_PATH}?watch=1&labelSelector=none=such`);
  for await (const { id } of source.messages()) {
    if (id === version) void call('POST', ORDERS_PATH, { metadata: { name: 'hidden' } });
    else break;
  }
  expect(Number(source.lastId)).toBeGreaterThan(Number(version));
});
