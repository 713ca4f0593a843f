// How long the watches of clients last, over every transport: what they may ask for, when their identity expires, when they are
// disconnected, and when `authorize` no longer lets them.
import { describe, expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import type { ApiServerOptions, WatchClient } from '../../src/apiserver/index.ts';
import { type KeysOptions, MemoryStorage, type Storage } from '../../src/storage/index.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { ORDERS_PATH, type Order } from './apiserver-rig.ts';
import { open as openSockets } from './apiserver-sockets.ts';
import { macrotask } from './support.ts';

const NOW = Date.UTC(2026, 0, 2);
const HOUR = 3_600_000;
const WATCH = `${ORDERS_PATH}?watch=1&resourceVersion=0`;

interface Ann {
  readonly name: string;
  readonly expiresAtMs?: number | undefined;
}

async function open(options: Partial<ApiServerOptions> = {}) {
  const clock = new FakeClock();
  const errors: unknown[] = [];
  const now = (): number => NOW + clock.now();
  const made = await openSockets({ clock, now, onError: (error) => errors.push(error), ...options });
  await made.server.ready;
  const orders = made.server.resource<Order>('orders.example.com/v1').in('default');
  const create = (name: string): Promise<unknown> => orders.create({ metadata: { name } });
  return { ...made, clock, errors, create };
}

type Opened = Awaited<ReturnType<typeof open>>;

interface Stream {
  readonly said: () => string;
  readonly ended: () => unknown;
}

async function read(response: Response): Promise<Stream> {
  let said = '';
  let ended: unknown;
  const reading = async (): Promise<void> => {
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) said += Buffer.from(chunk).toString();
  };
  void reading().then(
    () => {
      ended = 'end';
    },
    () => {
      ended = 'cut';
    },
  );
  if (response.status !== 200) await expect.poll(() => ended).toBeDefined();
  return { said: () => said, ended: () => (response.status === 200 ? ended : response.status) };
}

const TRANSPORTS: Readonly<Record<string, (made: Opened, path?: string) => Promise<Stream>>> = {
  http: async ({ url }, path = WATCH) => read(await fetch(url + path)),
  sse: async ({ url }, path = WATCH) => read(await fetch(url + path, { headers: { accept: 'text/event-stream' } })),
  fetch: async ({ server }, path = WATCH) => read(await server.fetch(new Request(`http://a${path}`))),
  websocket: async ({ url }, path = WATCH) => {
    const socket = new WebSocket(url.replace('http', 'ws') + path);
    onTestFinished(() => socket.terminate());
    let said = '';
    let ended: unknown;
    socket.on('message', (data) => {
      said += data;
    });
    socket.on('unexpected-response', (_request, { statusCode }) => {
      ended = statusCode;
    });
    socket.on('close', (code) => {
      ended ??= code === 1000 ? 'end' : 'cut';
    });
    socket.on('error', () => {});
    await expect.poll(() => socket.readyState !== WebSocket.CONNECTING || ended !== undefined).toBe(true);
    return { said: () => said, ended: () => ended };
  },
};

/** A clock that jumps over the pings of a WebSocket leaves its client no time to answer. */
const WITHOUT_PINGS_S = 30;

describe.each(Object.entries(TRANSPORTS))('over %s', (name, enter) => {
  const all: readonly [asked: number | undefined, seconds: number, limits: Partial<ApiServerOptions>][] = [
    // Half an hour to an hour; the random number is 0.5.
    [undefined, 2_700, {}],
    [600, 600, {}],
    [3_600, 3_600, {}],
    [3_601, 2_700, {}],
    [999_999_999, 2_700, {}],
    [999_999_999, 75, { maxWatchMs: 100_000 }],
    [undefined, 75, { maxWatchMs: 100_000 }],
    [100, 100, { maxWatchMs: 100_000 }],
    [999_999_999, 75, { maxWatchMs: 100_000, minRequestTimeoutMs: 0 }],
    [undefined, 75, { maxWatchMs: 100_000, minRequestTimeoutMs: 0 }],
    [undefined, 15, { minRequestTimeoutMs: 10_000 }],
    [40_000, 15, { minRequestTimeoutMs: 10_000 }],
    [7_200, 7_200, { maxWatchMs: 0 }],
    [999_999_999, 15, { maxWatchMs: 20_000 }],
    [20, 20, { maxWatchMs: 20_000 }],
  ];
  test.each(all.filter(([, seconds]) => name !== 'websocket' || seconds < WITHOUT_PINGS_S))(
    'a watch of %j seconds lasts %d with %j',
    async (asked, seconds, limits) => {
      const made = await open(limits);
      const { ended } = await enter(made, asked === undefined ? WATCH : `${WATCH}&timeoutSeconds=${asked}`);
      await expect.poll(() => made.server.stats.watchers).toBe(1);
      made.clock.advance(seconds * 1_000 - 1);
      await macrotask();
      expect(made.server.stats.watchers).toBe(1);
      made.clock.advance(1);
      await expect.poll(ended).toBe('end');
      await expect.poll(() => made.server.stats.watchers).toBe(0);
    },
  );

  test('no event comes after the identity has expired, and an expired one is refused', async () => {
    const expiresAtMs = NOW + 3_000;
    const made = await open({ authenticate: () => ({ name: 'ann', expiresAtMs }) });
    const { said, ended } = await enter(made);
    await expect.poll(() => made.server.stats.watchers).toBe(1);
    made.clock.advance(2_999);
    await made.create('before');
    await expect.poll(said).toContain('before');
    made.clock.advance(1);
    await made.create('after');
    await expect.poll(ended).toBe('end');
    expect(said()).not.toContain('after');
    const again = await enter(made);
    await expect.poll(again.ended).toBe(401);
  });

  test('an identity ends at its time of day, though the clock is set, and runs on while the machine sleeps', async () => {
    let setMs = 0;
    const now = (): number => NOW + setMs;
    const made = await open({ now, authenticate: () => ({ name: 'ann', expiresAtMs: NOW + HOUR }) });
    const { ended } = await enter(made);
    await expect.poll(() => made.server.stats.watchers).toBe(1);
    setMs = HOUR - 1;
    made.clock.advance(15_000);
    await macrotask();
    expect(made.server.stats.watchers).toBe(1);
    setMs = HOUR;
    made.clock.advance(15_000);
    await expect.poll(ended).toBe('end');
    await expect.poll(() => made.server.stats.watchers).toBe(0);
  });

  test('those who are chosen are disconnected, and nobody else', async () => {
    let users = 0;
    const made = await open({ authenticate: () => ({ name: users++ === 0 ? 'ann' : 'bob' }) });
    const [ann, bob] = [await enter(made), await enter(made)];
    await expect.poll(() => made.server.stats.watchers).toBe(2);
    const seen: WatchClient[] = [];
    const which = (client: WatchClient): boolean => {
      seen.push(client);
      return (client.identity as Ann).name === 'ann';
    };
    expect(made.server.disconnect(which)).toBe(1);
    await expect.poll(ann.ended).toBe('cut');
    expect(seen).toHaveLength(2);
    expect(seen[0]).toMatchObject({
      ...{ identity: { name: 'ann' }, resource: 'orders.example.com', namespace: 'default', name: undefined },
      address: expect.any(String),
    });
    await made.create('later');
    await expect.poll(bob.said).toContain('later');
    expect(made.server.stats.watchers).toBe(1);
    expect(() => made.server.disconnect((async () => false) as never)).toThrow('which: expected a boolean, not a promise');
    // Nor does what it rejects with end the process.
    expect(() => made.server.disconnect((() => Promise.reject(new Error('late'))) as never)).toThrow('not a promise');
    expect(made.server.disconnect(() => true)).toBe(1);
    expect(made.server.disconnect(() => true)).toBe(0);
  });

  test('authorize is asked again in time, and a watch ends that it no longer allows', async () => {
    let allowed = true;
    const asked: unknown[] = [];
    const authorize: NonNullable<ApiServerOptions['authorize']> = (...args) => {
      asked.push(args);
      return allowed;
    };
    const made = await open({ authenticate: () => ({ name: 'ann' }), authorize, reauthorizeMs: 8_000 });
    const { ended } = await enter(made);
    await expect.poll(() => made.server.stats.watchers).toBe(1);
    expect(asked).toHaveLength(1);
    made.clock.advance(8_000);
    await macrotask();
    made.clock.advance(8_000);
    await macrotask();
    expect(asked).toEqual(Array(3).fill(['watch', 'orders.example.com', 'default', undefined, { name: 'ann' }]));
    expect(ended()).toBeUndefined();
    allowed = false;
    made.clock.advance(8_000);
    await expect.poll(ended).toBe('end');
    expect(made.errors).toEqual([]);
    expect((await enter(made)).ended()).toBe(403);
  });
});

const enterOverHttp = TRANSPORTS.http as NonNullable<(typeof TRANSPORTS)[string]>;

describe('reauthorizeMs', () => {
  test('0 is never, and neither is one without authorize', async () => {
    for (const options of [{ authorize: () => true }, { reauthorizeMs: 1_000 }]) {
      const made = await open({ ...options, cache: false, stallTimeoutMs: 0, minRequestTimeoutMs: 0 });
      const before = made.clock.pending;
      await enterOverHttp(made);
      await expect.poll(() => made.server.stats.watchers).toBe(1);
      expect(made.clock.pending).toBe(before);
    }
  });

  test.each<[string, () => boolean | Promise<boolean>, number]>([
    [
      'throws',
      () => {
        throw new Error('no');
      },
      0,
    ],
    ['rejects', () => Promise.reject(new Error('no')), 0],
    ['does not answer in time', () => new Promise<boolean>(() => {}), 10_000],
  ])('an authorize that %s ends the watch, and is told', async (_what, answer, afterMs) => {
    let first = true;
    const authorize = (): boolean | Promise<boolean> => {
      if (!first) return answer();
      first = false;
      return true;
    };
    const made = await open({ authorize, reauthorizeMs: 1_000 });
    const { ended } = await enterOverHttp(made);
    await expect.poll(() => made.server.stats.watchers).toBe(1);
    made.clock.advance(1_000);
    await macrotask();
    if (afterMs > 0) {
      made.clock.advance(afterMs - 1);
      await macrotask();
      expect(ended()).toBeUndefined();
      made.clock.advance(1);
    }
    await expect.poll(ended).toBe('end');
    expect(made.errors).toHaveLength(1);
  });

  test('asks about one watch once at a time, about a hundred at once, and leaves nothing behind', async () => {
    let [asking, most, asked] = [0, 0, 0];
    const answers: (() => void)[] = [];
    let slow = false;
    const authorize = (): boolean | Promise<boolean> => {
      asked++;
      if (!slow) return true;
      most = Math.max(most, ++asking);
      return new Promise((resolve) => {
        answers.push(() => {
          asking--;
          resolve(true);
        });
      });
    };
    const made = await open({ authorize, reauthorizeMs: 4_000, handshakeTimeoutMs: HOUR });
    const all = await Promise.all(Array.from({ length: 120 }, () => (TRANSPORTS.fetch as typeof enterOverHttp)(made)));
    await expect.poll(() => made.server.stats.watchers).toBe(120);
    slow = true;
    asked = 0;
    made.clock.advance(40_000);
    await macrotask();
    expect([asking, asked]).toEqual([100, 100]);
    for (const answer of answers.splice(0)) answer();
    await macrotask();
    expect([most, asked]).toEqual([100, 120]);
    await made.server.shutdown();
    await expect.poll(() => all.every(({ ended }) => ended() === 'end')).toBe(true);
    expect(made.clock.pending).toBe(0);
  });
});

/** A storage whose watches of orders wait. */
function waiting(): { storage: Storage; asked: () => boolean; admit: () => void } {
  let asked = false;
  let admit = (): void => {};
  const admitted = new Promise<void>((resolve) => {
    admit = resolve;
  });
  const memory = new MemoryStorage();
  const storage = {
    ...{ currentVersion: () => memory.currentVersion(), checkHealth: () => memory.checkHealth() },
    keys: (options: KeysOptions) => memory.keys(options),
    scope: (...args: Parameters<typeof memory.scope>) => {
      const scope = memory.scope(...args);
      const watch = scope.watch.bind(scope);
      scope.watch = async (options) => {
        if (args[0] === 'example.com/orders/default/') {
          asked = true;
          await admitted;
        }
        return watch(options);
      };
      const inner = scope.scope.bind(scope);
      scope.scope = ((prefix: string) =>
        args[0] === 'example.com/orders/' ? storage.scope(args[0] + prefix) : inner(prefix)) as never;
      return scope;
    },
  };
  return { storage: storage as never, asked: () => asked, admit: () => admit() };
}

test('a watch that is disconnected before it has begun does not begin', async () => {
  const { storage, asked, admit } = waiting();
  const made = await open({ cache: false, storage, authenticate: () => ({ name: 'ann' }) });
  const answer = made.call('GET', WATCH);
  await expect.poll(asked).toBe(true);
  expect(made.server.disconnect(() => true)).toBe(1);
  expect((await answer).code).toBe(503);
  admit();
  await macrotask();
  expect(made.server.stats.watchers).toBe(0);
  expect(made.server.disconnect(() => true)).toBe(0);
});

test.each([2_000, 4_000])('an identity that expires is no longer one, though its watch takes %d ms to begin', async (ms) => {
  const { storage, asked, admit } = waiting();
  const made = await open({ cache: false, storage, authenticate: () => ({ expiresAtMs: NOW + 3_000 }) });
  const answer = made.server.fetch(new Request(`http://a${WATCH}`));
  await expect.poll(asked).toBe(true);
  made.clock.advance(ms);
  admit();
  const { ended } = await read(await answer);
  await macrotask();
  expect(ended()).toBe(ms < 3_000 ? undefined : 'end');
  if (ms < 3_000) made.clock.advance(3_000 - ms);
  await expect.poll(ended).toBe('end');
});

test('a watch about which the hooks decide while clients are disconnected has to come again', async () => {
  let admit = (): void => {};
  const authorize = (): Promise<boolean> =>
    new Promise((resolve) => {
      admit = () => resolve(true);
    });
  const made = await open({ authenticate: () => ({ name: 'ann' }), authorize });
  for (const [path, code] of [
    [WATCH, 503],
    [ORDERS_PATH, 200],
  ] as const) {
    const answer = made.call('GET', path);
    await macrotask();
    expect(made.server.disconnect(() => true)).toBe(0);
    admit();
    expect((await answer).code).toBe(code);
  }
});
