// The options that a client accepts or rejects, and the URLs that it requests.
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { ConnectOptions } from '../../src/bridge/client.ts';
import { connect } from '../../src/bridge/client.ts';
import { toBookmark } from '../../src/bridge/protocol.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { FakeNetwork, settle } from './client-network.ts';
import type { Event } from './client-rig.ts';
import { at, error, event, open } from './client-rig.ts';
import { thrown } from './support.ts';

describe('the query', () => {
  const asked = async (url: string, options: ConnectOptions<Event> = {}): Promise<string> => {
    const network = new FakeNetwork();
    const watch = connect<Event>(url, { ...network.options('http'), ...options });
    await settle();
    await watch.return();
    return network.link.url.href;
  };

  test('keeps the parameters of the URL, uses its version, and asks for BOOKMARKs unless told otherwise', async () => {
    expect(await asked('http://h/w?a=1#x')).toBe('http://h/w?a=1&allowWatchBookmarks=true');
    expect(await asked('http://h/w?resourceVersion=e.1&a=1', { bookmarks: false })).toBe('http://h/w?a=1&resourceVersion=e.1');
    expect(await asked('http://h/w?resourceVersion=e.1', { resourceVersion: 'e.2', bookmarks: false })).toBe(
      'http://h/w?resourceVersion=e.2',
    );
    expect(await asked('http://h/w?allowWatchBookmarks=false')).toBe('http://h/w?allowWatchBookmarks=false');
    expect(await asked('ws://h/w', { bookmarks: false })).toBe('http://h/w');
  });

  test('0 is no version, and stays in the URL', async () => {
    expect(await asked('http://h/w?resourceVersion=0', { bookmarks: false })).toBe('http://h/w?resourceVersion=0');
    expect(await asked('http://h/w?resourceVersion=', { bookmarks: false })).toBe('http://h/w?resourceVersion=');
    // As an option it is an own answer: not the version in the URL.
    expect(await asked('http://h/w?resourceVersion=e.1', { resourceVersion: '0', bookmarks: false })).toBe('http://h/w');
    expect(await asked('http://h/w?resourceVersion=e.1', { resourceVersion: '', bookmarks: false })).toBe(
      'http://h/w?resourceVersion=e.1',
    );
  });

  test('a requested snapshot is requested once', async () => {
    const clock = new FakeClock();
    const network = new FakeNetwork();
    const options = { ...network.options('http'), clock, random: () => 1 };
    const watch = connect<Event>('http://h/w?sendInitialEvents=true&resourceVersion=e.1', options);
    await settle();
    expect(network.link.url.searchParams.get('sendInitialEvents')).toBe('true');
    network.link.accept();
    await settle();
    network.link.send({ type: 'ADDED', object: 1 }, toBookmark(at(4), { initialEventsEnd: true }) as Event);
    await settle();
    network.link.cut();
    await settle();
    clock.advance(500);
    await settle();
    expect(network.link.url.search).toBe('?allowWatchBookmarks=true&resourceVersion=e.4');
    await watch.return();
  });

  test.each([
    ['of one object', [{ type: 'ADDED', object: 1 }]],
    ['of nothing', []],
  ])('a requested snapshot %s is requested once, also if it is at the version that the client began with', async (_, objects) => {
    const clock = new FakeClock();
    const network = new FakeNetwork();
    const options = { ...network.options('http'), clock, random: () => 1 };
    const watch = connect<Event>('http://h/w?sendInitialEvents=true', { ...options, resourceVersion: at(1) });
    await settle();
    network.link.accept();
    await settle();
    network.link.send(...objects, toBookmark(at(1), { initialEventsEnd: true }) as Event);
    await settle();
    network.link.cut();
    await settle();
    clock.advance(500);
    await settle();
    expect(network.link.url.search).toBe('?allowWatchBookmarks=true&resourceVersion=e.1');
    await watch.return();
  });

  test.each(['http', 'ws'] as const)(
    'over %s, what one attempt adds to it is not taken for that of the URL by the next',
    async (kind) => {
      const { network, accept, read, backOff, watch } = open(kind, { onExpired: 'restart' }, 'http://h/w?sendInitialEvents=true');
      for (const end of [error(410), undefined]) {
        await accept(event(1), toBookmark(at(1)) as Event);
        if (end) network.link.send(end);
        else network.link.cut();
        await settle();
        backOff();
        await settle();
      }
      expect(network.links.map(({ url }) => url.search)).toEqual([
        '?sendInitialEvents=true&allowWatchBookmarks=true',
        '?sendInitialEvents=true&allowWatchBookmarks=true',
        '?allowWatchBookmarks=true&resourceVersion=e.1',
      ]);
      await accept(toBookmark(at(2)) as Event);
      expect(await read()).toEqual([1, 410, 1]);
      await watch.return();
    },
  );

  test('a requested snapshot of which nothing arrived is requested again', async () => {
    const clock = new FakeClock();
    const network = new FakeNetwork();
    const options = { ...network.options('http'), clock, random: () => 1 };
    const watch = connect<Event>('http://h/w?sendInitialEvents=true&resourceVersion=e.1', options);
    await settle();
    network.link.accept();
    await settle();
    network.link.cut();
    await settle();
    clock.advance(500);
    await settle();
    expect(network.links).toHaveLength(2);
    expect(network.link.url.search).toBe('?sendInitialEvents=true&allowWatchBookmarks=true&resourceVersion=e.1');
    await watch.return();
  });
});

describe('arguments', () => {
  const network = new FakeNetwork();
  const refused = (url: string, options: object): unknown =>
    thrown(() => connect(url, { ...network.options('browser'), ...options }));

  test.each([
    ["coalesce is the server's", { overflow: 'coalesce' }, 'overflow'],
    ['a policy', { overflow: 'latest' }, 'overflow'],
    ['a transport', { transport: 'carrier' }, 'transport'],
    ['onExpired', { onExpired: 'ignore' }, 'onExpired'],
    ['a capacity', { capacity: 0 }, 'capacity'],
    ['bytes', { maxBufferedBytes: -1 }, 'maxBufferedBytes'],
    ['a backoff', { backoff: { minMs: Number.NaN } }, 'minMs'],
    ['attempts', { maxAttempts: -1 }, 'maxAttempts'],
    ['headers where they cannot be sent', { headers: { a: 'b' } }, 'WebSocket'],
    ['a function of headers where they cannot be sent', { headers: () => ({}) }, 'WebSocket'],
  ])('%s', (_, options, named) => {
    expect(refused('http://h/', options)).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(named) });
    expect(network.links).toEqual([]);
  });

  test.each([
    ['capacity', [1.5, '5', 0, -1, Number.NaN, Infinity, null], 'a whole number >= 1'],
    ['maxBufferedBytes', ['5', 0.5, Number.NaN, null], 'a number >= 1'],
    ['idleTimeoutMs', [-1, '5', Number.NaN, null, true], 'a number >= 0'],
    ['connectTimeoutMs', [-1, '5', null, true], 'a number >= 0'],
  ])('%s that is out of range', (name, values, expected) => {
    for (const value of values) {
      const shown = typeof value === 'string' ? `"${value}"` : value;
      const message = `${name}: expected ${expected}, got ${shown}`;
      expect(refused('http://h/', { [name]: value })).toMatchObject({ code: 'INVALID_ARGUMENT', message });
    }
    expect(network.links).toEqual([]);
  });

  test.each([
    ['onGap', [5, 'x', {}, true], 'a function'],
    ['onStateChange', [5, 'x', {}], 'a function'],
    ['random', [1, 'x', null], 'a function'],
    ['fetch', [3, 'x', {}], 'a function'],
    ['WebSocket', [3, 'x', {}], 'a function'],
    ['bookmarks', ['no', 0, null, {}], 'a boolean'],
    ['reconnectOnEnd', ['no', 0, {}], 'a boolean'],
    ['resourceVersion', [7, true, {}], 'a string'],
    ['token', [5, {}, true], 'a function or string'],
    ['headers', [5, 'x'], 'a function or object'],
    ['codec', [5, 'x'], 'a codec'],
    ['clock', [5, {}, null], 'a Clock'],
    ['signal', [5, {}, new AbortController()], 'an AbortSignal'],
  ])('%s of another kind', (name, values, expected) => {
    for (const value of values) {
      const message = expect.stringContaining(`${name}: expected ${expected}, got `);
      expect(refused('http://h/', { [name]: value })).toMatchObject({ code: 'INVALID_ARGUMENT', message });
    }
    expect(network.links).toEqual([]);
  });

  test('null, where there is no default, is as good as nothing', async () => {
    const { watch } = open('http', { signal: null, onGap: null, headers: null, token: null, codec: null } as never);
    expect(watch.state).toBe('connecting');
    await watch.return();
  });

  test.each(['http://ann:secret@h/', 'https://ann@h/watch'])('credentials in a URL, which fetch does not take: %s', (url) => {
    const { message } = thrown(() => connect(url)) as Error;
    expect(message).toBe('url: expected no credentials: use token or headers, got "...@h"');
    const watch = connect(url, network.options('http')); // another fetch may take them
    watch.stop();
  });

  test('the smallest numbers allowed', async () => {
    for (const least of [{ capacity: 1 }, { idleTimeoutMs: 0 }, { idleTimeoutMs: undefined }, { maxAttempts: Infinity }]) {
      const { watch } = open('http', least);
      expect(watch.state).toBe('connecting');
      await watch.return();
    }
  });

  test.each(['ftp://h/', 'h', '', '/watch', 'javascript:alert(1)'])('the URL %j', (url) => {
    expect(refused(url, {})).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('url') });
  });

  test("an invalid header throws the host's error", () => {
    expect(thrown(() => connect('http://h/', { ...network.options('http'), headers: { 'a b': 'c' } }))).toBeInstanceOf(TypeError);
  });

  test('a relative URL is resolved against the page', async () => {
    vi.stubGlobal('location', { href: 'https://page.example/a/b' });
    try {
      const own = new FakeNetwork();
      const watch = connect('../watch', { ...own.options('browser'), bookmarks: false });
      expect(own.link.url.href).toBe('wss://page.example/watch');
      await watch.return();
    } finally {
      vi.unstubAllGlobals();
    }
  });

  test('a relative URL is resolved against the base of the page, as for fetch', async () => {
    vi.stubGlobal('location', { href: 'https://page.example/a/b' });
    vi.stubGlobal('document', { baseURI: 'https://page.example/app/' });
    try {
      const own = new FakeNetwork();
      const watch = connect('watch', { ...own.options('browser'), bookmarks: false });
      expect(own.link.url.href).toBe('wss://page.example/app/watch');
      await watch.return();
    } finally {
      vi.unstubAllGlobals();
    }
  });

  describe('the transport', () => {
    const own = new FakeNetwork();
    const { fetch } = own.options('http');
    const { WebSocket } = own.options('ws');
    const { WebSocket: plain } = own.options('browser');
    const asked = async (url: string, options: ConnectOptions<Event>): Promise<string> => {
      const watch = connect<Event>(url, { bookmarks: false, ...options });
      await settle();
      await watch.return();
      return `${own.link.headers.accept ?? 'websocket'} ${own.link.url.href}`;
    };
    afterEach(() => void vi.unstubAllGlobals());

    test.each([
      ['http://h/', 'application/json http://h/'],
      ['https://h/', 'application/json https://h/'],
      ['/w', 'application/json https://page.example/w'],
      ['ws://h/', 'websocket ws://h/'],
      ['wss://h/', 'websocket wss://h/'],
    ])('follows the URL, whatever the host has: %s', async (url, expected) => {
      vi.stubGlobal('location', { href: 'https://page.example/a/b' });
      vi.stubGlobal('WebSocket', plain);
      vi.stubGlobal('fetch', fetch);
      expect(await asked(url, {})).toBe(expected);
      expect(await asked(url, { WebSocket })).toBe(expected);
    });

    test.each([
      ['ws://h/', 'http', 'application/json http://h/'],
      ['wss://h/', 'sse', 'text/event-stream https://h/'],
      ['http://h/', 'websocket', 'websocket ws://h/'],
      ['https://h/', 'websocket', 'websocket wss://h/'],
    ] as const)('is the one in the options: %s as %s', async (url, transport, expected) => {
      expect(await asked(url, { transport, fetch, WebSocket: plain })).toBe(expected);
    });

    test('needs a WebSocket only if it uses one', async () => {
      vi.stubGlobal('WebSocket', undefined);
      const headers = { authorization: 'x' };
      expect(await asked('https://h/', { fetch, headers })).toBe('application/json https://h/');
      expect(await asked('https://h/', { fetch, headers, WebSocket: plain })).toBe('application/json https://h/');
      expect(own.link.headers).toMatchObject(headers);
    });
  });

  describe('a host that lacks something, as jsdom does', () => {
    afterEach(() => void vi.unstubAllGlobals());

    test.each([
      ['http', 'fetch'],
      ['sse', 'fetch'],
      ['websocket', 'WebSocket'],
    ] as const)('over %s without %s: connect throws instead of trying again', async (transport, name) => {
      vi.stubGlobal(name, undefined);
      const own = new FakeNetwork();
      expect(thrown(() => connect('http://h/', { transport }))).toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringMatching(new RegExp(`^${name}: expected .*, got undefined$`)),
      });
      await connect('http://h/', { ...own.options(transport === 'websocket' ? 'browser' : transport), transport }).return();
      expect(own.links).toHaveLength(1);
    });

    test('without a TextEncoder: the client can be loaded', async () => {
      vi.stubGlobal('TextEncoder', undefined);
      vi.resetModules();
      await expect(import('../../src/bridge/client.ts')).resolves.toHaveProperty('connect');
    });
  });

  test('a codec decodes the events', async () => {
    const own = new FakeNetwork();
    const decode = (frame: Uint8Array): (Event & { line: string }) | undefined => {
      const line = new TextDecoder().decode(frame);
      return line.includes('skip') ? undefined : { ...(JSON.parse(line) as Event), line };
    };
    const watch = connect('http://h/', { ...own.options('http'), codec: { decode } });
    await settle();
    own.link.accept();
    await settle();
    own.link.send('{"type":"A","object":1.0,"resourceVersion":"e.1"}\nskip\n');
    await settle();
    expect(watch.tryNext()).toHaveProperty('line', '{"type":"A","object":1.0,"resourceVersion":"e.1"}');
    expect(watch.resourceVersion).toBe(at(1));
    await watch.return();
  });
});
