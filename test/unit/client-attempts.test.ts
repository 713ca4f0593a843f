// The URL and the headers as functions, which are asked before each attempt, so that a token can be refreshed.
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { connect, type FetchLike, type WebSocketConstructor } from '../../src/bridge/client.ts';
import { toBookmark } from '../../src/bridge/protocol.ts';
import { ListenerCount } from '../../src/testing/fakes/fake-clock.ts';
import { FakeNetwork, KINDS, settle } from './client-network.ts';
import { type Attempt, at, type Event, error, event, open, range } from './client-rig.ts';
import { fate, thrown } from './support.ts';

/** A function that answers when the test wants it to, and the signals that it was given. */
function pending<T>(): {
  ask: (attempt: Attempt) => Promise<T>;
  signals: AbortSignal[];
  answer: (value: T) => void;
  fail: (reason: unknown) => void;
} {
  const signals: AbortSignal[] = [];
  const open: { resolve: (value: T) => void; reject: (reason: unknown) => void }[] = [];
  return {
    signals,
    ask: ({ signal }) => {
      signals.push(signal);
      return new Promise((resolve, reject) => open.push({ resolve, reject }));
    },
    answer: (value) => open.at(-1)?.resolve(value),
    fail: (reason) => open.at(-1)?.reject(reason),
  };
}

describe.each(KINDS)('over %s', (kind) => {
  test('a url function is asked for each attempt, sync or async, and each attempt resumes', async () => {
    for (const later of [false, true]) {
      let asked = 0;
      const url = (): URL | string | Promise<string> => {
        const next = `http://h.example/watch?token=${++asked}`;
        return later ? Promise.resolve(next) : asked % 2 === 0 ? next : new URL(next);
      };
      const { network, accept, read, backOff, watch } = open(kind, {}, url);
      await accept(...range(1, 3));
      for (const token of [2, 3]) {
        network.link.cut();
        await settle();
        backOff();
        await accept(event(token + 1));
        const { searchParams } = network.link.url;
        expect(Object.fromEntries(searchParams)).toEqual({
          token: String(token),
          allowWatchBookmarks: 'true',
          resourceVersion: at(token),
        });
      }
      expect(await read()).toEqual([1, 2, 3, 4]);
      expect([asked, network.links.length]).toEqual([3, 3]);
      await watch.return();
    }
  });

  test('a headers function is asked for each attempt, sync or async', async () => {
    if (kind === 'browser') return; // its WebSocket takes none
    for (const later of [false, true]) {
      let asked = 0;
      const headers = (): Record<string, string> | Promise<Record<string, string>> => {
        const next = { authorization: `token ${++asked}` };
        return later ? Promise.resolve(next) : next;
      };
      const { network, accept, backOff, watch } = open(kind, { headers });
      await accept(event(1));
      expect(network.link.headers).toMatchObject({ authorization: 'token 1' });
      network.link.cut();
      await settle();
      backOff();
      await settle();
      expect(network.link.headers).toMatchObject({ authorization: 'token 2' });
      await watch.return();
    }
  });

  test.each([
    [
      'throws',
      () => {
        throw new Error('no token');
      },
    ],
    ['rejects', () => Promise.reject(new Error('no token'))],
  ])('one that %s is a failure like any other: reported, and asked again after a growing delay', async (_, url) => {
    const { network, watch, details, backOff, read, expectOver } = open(kind, { maxAttempts: 2 }, url as () => never);
    for (const delayMs of [500, 1_000]) {
      await settle();
      expect(watch.state).toBe('waiting');
      expect(details.at(-1)).toMatchObject({ delayMs, error: { code: 503, message: 'no token' } });
      backOff();
    }
    expect(await read()).toEqual([503]);
    expect(details.at(-1)?.error?.message).toBe('no token');
    expect(network.links).toEqual([]);
    await expectOver();
  });

  test('one that answers after a failure connects', async () => {
    let asked = 0;
    const url = async (): Promise<string> => {
      if (++asked === 1) throw new Error('not yet');
      return 'http://h.example/watch';
    };
    const { accept, read, backOff, states, watch } = open(kind, {}, url);
    await settle();
    backOff();
    await accept(event(1));
    expect(await read()).toEqual([1]);
    expect(states).toEqual(['waiting', 'connecting', 'open']);
    await watch.return();
  });

  test('the wait for it is part of connectTimeoutMs; then its signal aborts, and a late answer opens nothing', async () => {
    const url = pending<string>();
    const { network, clock, watch, details, read } = open(kind, { connectTimeoutMs: 1_000 }, url.ask);
    await settle();
    clock.advance(999);
    expect([watch.state, url.signals[0]?.aborted]).toEqual(['connecting', false]);
    clock.advance(1);
    expect([watch.state, url.signals[0]?.aborted]).toEqual(['waiting', true]);
    expect(details.at(-1)).toMatchObject({ delayMs: 500, error: { message: 'no data for 1000 ms' } });
    url.answer('http://h.example/late');
    await settle();
    expect(network.links).toEqual([]);
    clock.advance(500);
    url.answer('http://h.example/watch');
    await settle();
    network.link.accept();
    await settle();
    network.link.send(event(1));
    expect(await read()).toEqual([1]);
    expect(network.links).toHaveLength(1);
    await watch.return();
    expect(url.signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  });

  test('a late answer or failure does not concern the next attempt', async () => {
    for (const late of ['answer', 'fail'] as const) {
      const [first, second] = [pending<string>(), pending<string>()];
      let asked = 0;
      const url = (attempt: Attempt): Promise<string> => (++asked === 1 ? first : second).ask(attempt);
      const { network, clock, watch, states, accept } = open(kind, { connectTimeoutMs: 1_000 }, url);
      clock.advance(1_000);
      clock.advance(500);
      await settle();
      first[late]('http://h.example/late');
      await settle();
      expect([states, network.links]).toEqual([['waiting', 'connecting'], []]);
      second.answer('http://h.example/watch');
      await accept();
      expect([watch.state, network.links.length]).toEqual(['open', 1]);
      await watch.return();
    }
  });

  test.each(['stop', 'return', 'abort'] as const)('%s while it is asked settles everything, whatever it answers', async (end) => {
    for (const late of ['answer', 'fail'] as const) {
      const abort = new AbortController();
      const listeners = new ListenerCount(abort.signal);
      const url = pending<string>();
      const { network, clock, watch } = open(kind, { signal: abort.signal }, url.ask);
      const read = fate(watch.next());
      await settle();
      if (end === 'abort') abort.abort();
      else void watch[end]();
      await settle();
      expect([read.value?.done, watch.state, clock.pending, listeners.count]).toEqual([true, 'closed', 0, 0]);
      expect(url.signals.map(({ aborted }) => aborted)).toEqual([true]);
      url[late]('http://h.example/watch');
      await settle();
      expect([network.links, watch.state]).toEqual([[], 'closed']);
    }
  });

  test('one that stops the watch itself opens nothing', async () => {
    let asked = 0;
    const url = (): string => {
      if (++asked === 2) watch.stop();
      return 'http://h.example/watch';
    };
    const { network, watch, backOff, accept, expectOver } = open(kind, {}, url);
    await accept(event(1));
    network.link.cut();
    await settle();
    backOff();
    await settle();
    expect([asked, network.links.length, watch.state]).toEqual([2, 1, 'closed']);
    expect(watch.tryNext()).toEqual(event(1));
    await expectOver();
  });

  test('a watch that is stopped by user code while the answer is used, such as by a custom fetch, leaves nothing open', async () => {
    const network = new FakeNetwork();
    const { fetch, WebSocket = class {} as never } = network.options(kind);
    class Stopping extends WebSocket {
      constructor(...request: ConstructorParameters<WebSocketConstructor>) {
        super(...request);
        watch.stop();
      }
    }
    const stopping: FetchLike = (...request) => {
      watch.stop();
      return (fetch as FetchLike)(...request);
    };
    const url = async (): Promise<string> => 'http://h.example/watch';
    const { watch, clock, expectOver } = open(kind, { fetch: stopping, WebSocket: Stopping }, url);
    await expectOver();
    expect([network.links.map(({ closed }) => closed), clock.pending]).toEqual([[true], 0]);
  });

  test('a cut is noticed on the connection that follows, and a full queue holds it back', async () => {
    const url = async (): Promise<string> => 'http://h.example/watch';
    const { network, accept, read, backOff, watch } = open(kind, { capacity: 2 }, url);
    await accept(...range(1, 3));
    if (kind === 'browser') expect(network.link.closed).toBe(true);
    if (kind === 'ws') expect(network.link.paused).toBe(true);
    expect(await read()).toEqual([1, 2]);
    await settle();
    if (kind !== 'browser') {
      network.link.cut();
      await settle();
      backOff();
    }
    await accept(event(3));
    expect([network.links.length, await read()]).toEqual([2, [3]]);
    await watch.return();
  });

  test.each([
    ['another scheme', 'ftp://h/', 'url: expected an http(s) or ws(s) URL, got "ftp://h/"'],
    ['nothing', undefined, 'url: expected an http(s) or ws(s) URL, got undefined'],
  ])('a url function that answers %s is final, as it would be for connect', async (_, answer, message) => {
    const { network, details, read, expectOver } = open(kind, {}, () => answer as string);
    expect(await read()).toEqual([400]);
    expect(details.at(-1)?.error?.message).toBe(message);
    expect(network.links).toEqual([]);
    await expectOver();
  });

  test('the version in its first URL is where the watch begins, and counts no more after that', async () => {
    let asked = 0;
    const url = (): string => {
      if (++asked === 1) throw new Error('not yet');
      return `http://h.example/watch?resourceVersion=${at(asked)}&sendInitialEvents=true`;
    };
    const { network, accept, watch, backOff } = open(kind, { onExpired: 'restart' }, url);
    const versions: (string | null)[] = [];
    const look = (): void => void versions.push(network.link.url.searchParams.get('resourceVersion'));
    await settle();
    backOff();
    await settle();
    look();
    expect(watch.resourceVersion).toBe(at(2));
    // A connection that is cut before an event is resumed there, and is no loss of the place.
    network.link.cut();
    await settle();
    backOff();
    await accept();
    look();
    network.link.send(error(410));
    await settle();
    backOff();
    await accept(event(9));
    look();
    expect(versions).toEqual([at(2), at(2), null]);
    await watch.return();
  });

  test('an own resourceVersion takes precedence over that of its URL, and 0 is none', async () => {
    for (const [resourceVersion, inUrl, expected] of [
      [at(1), at(2), at(1)],
      [undefined, '0', '0'],
    ] as const) {
      const url = async (): Promise<string> => `http://h.example/watch?resourceVersion=${inUrl}`;
      const { network, watch } = open(kind, { resourceVersion }, url);
      await settle();
      expect(network.link.url.searchParams.get('resourceVersion')).toBe(expected);
      expect(watch.resourceVersion).toBe(resourceVersion);
      await watch.return();
    }
  });

  test('its URL says whether BOOKMARKs are shown', async () => {
    for (const [asked, shown] of [
      ['', []],
      ['?allowWatchBookmarks=true', ['BOOKMARK']],
      ['?allowWatchBookmarks=1', ['BOOKMARK']],
      ['?allowWatchBookmarks=false', []],
    ] as const) {
      const { accept, watch } = open(kind, {}, async () => `http://h.example/watch${asked}`);
      await accept(toBookmark(at(1)) as Event);
      expect([watch.tryNext()].flatMap((each) => each?.type ?? [])).toEqual(shown);
      await watch.return();
    }
  });
});

describe('the transport', () => {
  test('follows the scheme of each URL, if there is no option for it', async () => {
    const [stream, socket] = [new FakeNetwork(), new FakeNetwork()];
    let asked = 0;
    const url = (): string => (++asked === 1 ? 'https://h.example/watch' : 'wss://h.example/watch');
    const { fetch } = stream.options('http');
    const { WebSocket } = socket.options('browser');
    const { watch, backOff } = open('http', { transport: undefined, fetch, WebSocket }, url);
    await settle();
    stream.link.cut();
    await settle();
    backOff();
    await settle();
    expect([stream.link.url.protocol, socket.link.url.protocol]).toEqual(['https:', 'wss:']);
    await watch.return();
  });

  test('that the host lacks is final', async () => {
    vi.stubGlobal('WebSocket', undefined); // Node has one since version 22
    onTestFinished(() => void vi.unstubAllGlobals());
    const { details, read, expectOver } = open('http', { transport: undefined, WebSocket: null as never }, () => 'ws://h/');
    expect(await read()).toEqual([400]);
    expect(details.at(-1)?.error?.message).toContain('WebSocket');
    await expectOver();
  });
});

describe('headers', () => {
  test.each([
    ['an invalid name', { 'a b': 'c' }],
    ['null', null],
    ['a text', 'authorization: x'],
  ])('a function that answers %s is final', async (_, answer) => {
    const { network, read, expectOver } = open('http', { headers: () => answer as never });
    expect(await read()).toEqual([400]);
    expect(network.links).toEqual([]);
    await expectOver();
  });

  test('a function that answers nothing adds none', async () => {
    const { network, watch } = open('http', { headers: async () => undefined as never });
    await settle();
    expect(Object.keys(network.link.headers)).toEqual(['accept']);
    await watch.return();
  });

  test('a failed one counts like a failed url, and neither rejection is left unhandled', async () => {
    const headers = (): never => {
      throw new Error('no headers');
    };
    const { details, watch } = open('http', { headers }, () => Promise.reject(new Error('no url')));
    await settle();
    expect(details).toMatchObject([{ error: { code: 503, message: expect.stringMatching(/no (url|headers)/) }, delayMs: 500 }]);
    await watch.return();
  });

  test('both are asked at the same time', async () => {
    const [url, headers] = [pending<string>(), pending<Record<string, string>>()];
    const { network, watch } = open('http', { headers: headers.ask }, url.ask);
    expect([url.signals.length, headers.signals.length]).toEqual([1, 1]);
    headers.answer({ authorization: 'x' });
    await settle();
    expect(network.links).toEqual([]);
    url.answer('http://h.example/watch');
    await settle();
    expect(network.link.headers).toMatchObject({ authorization: 'x' });
    await watch.return();
  });

  test('a function where no header can be sent: connect throws, as for an object', () => {
    const network = new FakeNetwork();
    const options = { ...network.options('browser'), headers: () => ({}) };
    for (const url of ['ws://h/', () => 'ws://h/'])
      expect(thrown(() => connect(url, options))).toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(network.links).toEqual([]);
  });

  test('an object is checked at once, also if the url is a function', () => {
    const network = new FakeNetwork();
    const connected = (): unknown => connect(() => 'http://h/', { ...network.options('http'), headers: { 'a b': 'c' } });
    expect(thrown(connected)).toBeInstanceOf(TypeError);
  });
});
