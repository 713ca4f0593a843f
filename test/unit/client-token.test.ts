// A client's token: where each transport carries it, that it is asked for before each attempt, and that nothing shows it.
import { describe, expect, test, vi } from 'vitest';
import { openWebSocket } from '../../src/bridge/client/websocket-browser.ts';
import { type ConnectOptions, connect } from '../../src/bridge/client.ts';
import { readSubprotocols } from '../../src/bridge/transport/http-head.ts';
import { FakeNetwork, KINDS, settle } from './client-network.ts';
import { type Event, event, open } from './client-rig.ts';
import { thrown } from './support.ts';

const TOKEN = 'eyJhbGciOi.s3cret+/=?>~.x';

/** The token of a connection as its server reads it. */
function tokenOf({ link }: FakeNetwork): string | undefined {
  return (link.headers.authorization ?? '').replace('Bearer ', '') || readSubprotocols(link.protocols.join()).token;
}

describe.each(KINDS)('over %s', (kind) => {
  test('a token is a header where there can be one, and a subprotocol elsewhere, never part of the URL', async () => {
    const { network, watch } = open(kind, { token: TOKEN }, 'http://h.example/watch');
    expect(tokenOf(network)).toBe(TOKEN);
    const { url, headers, protocols } = network.link;
    expect(url.href).toBe(`${kind === 'http' || kind === 'sse' ? 'http' : 'ws'}://h.example/watch?allowWatchBookmarks=true`);
    if (kind === 'browser') {
      expect(headers).toEqual({});
      expect(protocols).toEqual(['watchmux', expect.stringMatching(/^base64url\.bearer\.authorization\.k8s\.io\.[\w-]+$/)]);
      expect(protocols.join()).not.toContain(TOKEN);
    } else expect([headers.authorization, protocols]).toEqual([`Bearer ${TOKEN}`, []]);
    await watch.return();
  });

  test('a function is asked for it before each attempt, sync or async', async () => {
    for (const later of [false, true]) {
      let asked = 0;
      const token = (): string | Promise<string> => (later ? Promise.resolve(`t${++asked}`) : `t${++asked}`);
      const { network, accept, read, backOff, watch } = open(kind, { token });
      await accept(event(1));
      expect(tokenOf(network)).toBe('t1');
      network.link.cut();
      await settle();
      backOff();
      await accept(event(2));
      expect(tokenOf(network)).toBe('t2');
      expect(await read()).toEqual([1, 2]);
      await watch.return();
    }
  });

  test.each([undefined, '', null])('%j means none', async (none) => {
    for (const token of [none, () => none]) {
      const { network, watch } = open(kind, { token: token as undefined });
      await settle();
      expect([network.link.headers.authorization, network.link.protocols]).toEqual([undefined, []]);
      await watch.return();
    }
  });

  test('one that no header can carry is refused, and nothing shows it', async () => {
    for (const token of ['a s3cret', 's3cret\r\nx: y', 's3crét', 's3cret\0']) {
      const network = new FakeNetwork();
      const options = { ...network.options(kind), token } as ConnectOptions<Event>;
      const { message } = thrown(() => connect('http://h/', options)) as Error;
      expect(message).toBe('token: expected visible ASCII, and no header authorization beside it, got "string"');
      const { details, read, expectOver } = open(kind, { token: () => token });
      expect(await read()).toEqual([400]);
      expect(JSON.stringify(details)).not.toContain('s3c');
      await expectOver();
      expect(network.links).toEqual([]);
    }
  });

  test('a function that fails is a failed attempt', async () => {
    const { network, details, watch } = open(kind, { token: () => Promise.reject(new Error('signed out')) });
    await settle();
    expect(details).toMatchObject([{ error: { code: 503, message: 'signed out' }, delayMs: 500 }]);
    expect(network.links).toEqual([]);
    await watch.return();
  });
});

test('a token beside a header of that name is refused, in whatever case that is', async () => {
  const network = new FakeNetwork();
  const options = { ...network.options('http'), token: TOKEN, headers: { Authorization: 'Basic x' } };
  const wrong = 'token: expected visible ASCII, and no header authorization beside it, got "string"';
  expect((thrown(() => connect('http://h/', options)) as Error).message).toBe(wrong);
  const { read, details, expectOver } = open('http', { token: () => TOKEN, headers: { Authorization: 'Basic x' } });
  expect(await read()).toEqual([400]);
  expect(details.at(-1)).toMatchObject({ error: { message: wrong } });
  await expectOver();
});

test.each(['http', 'sse', 'ws'] as const)(
  '%s: headers are sent in whatever form fetch takes them, with a token and without',
  async (kind) => {
    const forms = [{ 'x-a': 'b' }, new Headers({ 'x-a': 'b' }), new Map([['x-a', 'b']]), [['x-a', 'b']]] as unknown as Record<
      string,
      string
    >[];
    for (const form of forms) {
      for (const headers of [form, () => form]) {
        for (const token of [undefined, TOKEN]) {
          const { network, watch } = open(kind, { headers, token });
          await settle();
          const authorization = token && `Bearer ${token}`;
          expect(network.link.headers).toMatchObject({ 'x-a': 'b', ...(authorization && { authorization }) });
          await watch.return();
        }
      }
    }
  },
);

test('other headers stay, and a redirect is not followed: the token is meant for this server', async () => {
  const asked: unknown[] = [];
  const fetch: ConnectOptions<Event>['fetch'] = async (_url, init) => {
    asked.push(init);
    return new Response(null, { status: 302, headers: { location: 'https://evil.example/?x=1' } });
  };
  const { read, expectOver } = open('http', { fetch, token: TOKEN, headers: { 'x-a': 'b' } });
  expect(await read()).toEqual([503]);
  expect(asked).toMatchObject([{ redirect: 'manual', headers: { 'x-a': 'b', authorization: `Bearer ${TOKEN}` } }]);
  await expectOver();
});

test('the browser bundle asks for subprotocols only with a token', () => {
  const asked: unknown[][] = [];
  class Socket {
    constructor(...args: unknown[]) {
      asked.push(args);
    }
    close(): void {}
  }
  const opening = { url: new URL('ws://h/'), maxFrameChars: 1, WebSocket: Socket as never };
  const receiver = { opened: vi.fn(), alive: vi.fn(), frame: vi.fn(), over: vi.fn() };
  openWebSocket({ ...opening, token: 'a' }, receiver).close();
  openWebSocket({ ...opening, token: undefined }, receiver).close();
  expect(asked).toEqual([
    ['ws://h/', ['watchmux', 'base64url.bearer.authorization.k8s.io.YQ']],
    ['ws://h/', []],
  ]);
});
