// Who is admitted: origins, the application's hooks, timeouts, and clients that leave meanwhile.
import { describe, expect, test, vi } from 'vitest';
import { type AdmissionOptions, type Caller, HubAdmission, toLimits } from '../../src/bridge/hub/admission/admission.ts';
import { coreOf, Hub } from '../../src/bridge/hub/hub.ts';
import type { Admitted } from '../../src/bridge/hub/hub-core.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { macrotask } from './support.ts';

type Request = { readonly user?: string };

function caller(more: Partial<Caller<Request>> = {}): Caller<Request> & { leave: () => void; listeners: Set<() => void> } {
  const listeners = new Set<() => void>();
  return {
    request: {},
    address: 'a',
    origin: undefined,
    site: undefined,
    host: 'here:80',
    search: '',
    lastEventId: undefined,
    onGone: (callback) => {
      listeners.add(callback);
      return () => void listeners.delete(callback);
    },
    leave: () => {
      for (const callback of [...listeners]) callback();
    },
    listeners,
    ...more,
  };
}

function setUp<I = unknown>(options: AdmissionOptions<Request, I> = {}, hub: Hub = new Hub({ maxClients: 1 })) {
  const clock = new FakeClock();
  return {
    hub,
    clock,
    admission: new HubAdmission<Request, I>(coreOf(hub), options, toLimits({ clock, handshakeTimeoutMs: 1_000 })),
  };
}

describe('origins', () => {
  test.each<[AdmissionOptions<Request>['allowedOrigins'], string | undefined, boolean]>([
    [undefined, undefined, true],
    [undefined, 'http://here:80', false], // a browser writes no default port: the host would be `here`
    [undefined, 'http://here:81', false],
    [undefined, 'null', false],
    [undefined, 'not a URL', false],
    ['*', 'http://evil.example', true],
    [['http://good.example'], 'http://good.example', true],
    [['http://good.example'], 'http://good.example.evil', false],
    [(origin) => origin.startsWith('http://a'), 'http://a.example', true],
    [
      () => {
        throw new Error('broken');
      },
      'http://a.example',
      false,
    ],
  ])('%o: whether %s may connect: %s', (allowedOrigins, origin, expected) => {
    const { admission, hub } = setUp({ allowedOrigins });
    const verdict = admission.admit(caller({ origin }));
    expect('reservation' in (verdict as object)).toBe(expected);
    if (!expected) expect(verdict).toMatchObject({ code: 403, reason: 'Forbidden' });
    expect(hub.stats().total.refusals).toEqual(expected ? {} : { origin: 1 });
  });

  test.each<[AdmissionOptions<Request>['allowedOrigins'], string]>([
    [undefined, 'it does not match the header Host'],
    [['http://a.example'], 'allowedOrigins does not admit it'],
  ])('%o: who is refused hears what decides it, and not what this host is called behind a proxy', (allowedOrigins, why) => {
    const { admission } = setUp({ allowedOrigins });
    const verdict = admission.admit(caller({ origin: 'http://b.example', host: 'inside:8080' }));
    expect(verdict).toMatchObject({ code: 403, message: `this origin may not connect: ${why}` });
  });

  test.each<[AdmissionOptions<Request>['allowedOrigins'], string | undefined, string | undefined, boolean]>([
    [undefined, 'cross-site', undefined, false],
    [undefined, 'same-site', undefined, false],
    [undefined, 'same-origin', undefined, true],
    [undefined, 'none', undefined, true],
    [undefined, undefined, undefined, true],
    [['http://a.example'], 'cross-site', undefined, false],
    [() => true, 'cross-site', undefined, false],
    ['*', 'cross-site', undefined, true],
    // Where there is an origin, that decides.
    [['http://a.example'], 'cross-site', 'http://a.example', true],
    [undefined, 'same-site', 'http://here:81', false],
    [undefined, 'same-origin', 'http://evil.example', false],
  ])('%o: whether a request from %s with origin %s may connect: %s', (allowedOrigins, site, origin, expected) => {
    const { admission, hub } = setUp({ allowedOrigins });
    const verdict = admission.admit(caller({ site, origin }));
    expect('reservation' in (verdict as object)).toBe(expected);
    expect(hub.stats().total.refusals).toEqual(expected ? {} : { origin: 1 });
    if (!expected && origin === undefined)
      expect(verdict).toMatchObject({ code: 403, message: `pages of other origins may not connect: Sec-Fetch-Site is ${site}` });
  });

  test('a string is not a list of origins', () => {
    expect(() => setUp({ allowedOrigins: 'http://good.example' as '*' })).toThrow('allowedOrigins');
  });

  test.each<[string, () => unknown, RegExp]>([
    [
      'throws',
      () => {
        throw new Error('broken');
      },
      /^broken$/,
    ],
    ['returns a promise', async () => true, /^allowedOrigins: expected a boolean, not a promise, got /],
    ['rejects', async () => Promise.reject(new Error('no database')), /^allowedOrigins: expected a boolean, not a promise, got /],
  ])('a function that %s admits nobody, and that is told', (_, said, message) => {
    const told: unknown[] = [];
    const hub = new Hub({ onError: (error, failure) => told.push([(error as Error).message, failure]) });
    const { admission } = setUp({ allowedOrigins: said as () => boolean }, hub);
    expect(admission.admit(caller({ origin: 'http://good.example' }))).toMatchObject({ code: 403 });
    expect(told).toEqual([[expect.stringMatching(message), { during: 'admission' }]]);
  });

  test.each([5, null, new Set(['http://good.example']), {}])('%o is not a list of origins, and throws at once', (list) => {
    expect(() => setUp({ allowedOrigins: list as never })).toThrow(
      "allowedOrigins: expected '*', an array of origins, or a func",
    );
  });

  test.each([
    ...[
      '*',
      'http://good.example/',
      'HTTP://good.example',
      'https://good.example:443',
      'https://*.good.example',
      'good.example',
      '',
    ],
    ...[/good/, 5, undefined],
  ])('a list with %o is refused at once: no page has that origin, so it would admit nobody', (origin) => {
    const refused = 'allowedOrigins: expected origins such as https://example.org, without a path, got ';
    expect(() => setUp({ allowedOrigins: ['https://good.example', origin as string] })).toThrow(refused);
  });

  test('a list may have origins of apps, and that of pages without one', () => {
    const allowedOrigins = ['http://[::1]:8080', 'capacitor://localhost', 'chrome-extension://abc', 'file://', 'null'];
    const { admission } = setUp({ allowedOrigins });
    for (const origin of allowedOrigins) expect(admission.allows(caller({ origin }))).toBe(true);
  });

  test('the same host may connect', () => {
    expect(setUp().admission.admit(caller({ origin: 'https://here.example', host: 'here.example' }))).toHaveProperty(
      'reservation',
    );
  });

  test('an origin that is admitted by name gets CORS headers', () => {
    const named = setUp({ allowedOrigins: ['http://good.example'] }).admission;
    expect(named.corsHeaders(caller({ origin: 'http://good.example' }))).toEqual({
      'access-control-allow-origin': 'http://good.example',
      vary: 'Origin',
    });
    expect(named.corsHeaders(caller())).toEqual({});
    expect(setUp({ allowedOrigins: '*' }).admission.corsHeaders(caller({ origin: 'http://x' }))).toEqual({
      'access-control-allow-origin': '*',
    });
    expect(setUp().admission.corsHeaders(caller({ origin: 'http://here:80' }))).toEqual({});
  });
});

describe('authenticate', () => {
  const thrown = (error: unknown) => (): never => {
    throw error;
  };
  const cases: [string, () => unknown, unknown][] = [
    ['an identity', () => ({ user: 'u' }), { identity: { user: 'u' } }],
    ['an identity with a status of its own', () => ({ status: 'active' }), { identity: { status: 'active' } }],
    ['undefined', () => undefined, { code: 401, reason: 'Unauthorized' }],
    ['false', () => false, { code: 401 }],
    ['null', () => null, { code: 401 }],
    ['an empty text, as of an empty header', () => '', { code: 401 }],
    ['zero', () => 0, { code: 401 }],
    ['no number', () => Number.NaN, { code: 401 }],
    ['a 403', () => ({ status: 403, message: 'not you' }), { code: 403, message: 'not you' }],
    ['a 401', () => ({ status: 401 }), { code: 401 }],
    ['a 401 in no words', () => ({ status: 401, message: 7 }) as never, { code: 401, message: 'authentication required' }],
    ['a 403 without a word', () => ({ status: 403 }), { code: 403, message: 'this client may not watch' }],
    ['a thrown 403', thrown({ status: 403 }), { code: 403 }],
    [
      'an error with a 401',
      thrown(Object.assign(new Error('secret'), { status: 401 })),
      { code: 401, message: 'authentication required' },
    ],
    ['an error', thrown(new Error('secret')), { code: 503, message: expect.not.stringContaining('secret') }],
    [
      'undefined that is thrown',
      thrown(undefined),
      { code: 503, message: 'the server could not decide whether to admit this client' },
    ],
  ];

  test.each(cases)('%s', async (_name, say, expected) => {
    for (const authenticate of [say, async () => say()]) {
      const { admission, hub, clock } = setUp({ authenticate });
      const from = caller();
      const verdict = admission.admit(from);
      expect(verdict instanceof Promise).toBe(authenticate !== say);
      expect(await verdict).toMatchObject(expected as object);
      // One who was refused has left the slot to others.
      const refused = 'code' in ((await verdict) as object);
      expect('code' in coreOf(hub).reserve('b')).toBe(!refused);
      expect(clock.pending).toBe(0);
      expect(from.listeners.size).toBe(0);
    }
  });

  test('is not asked for those whom the origin, the query or the lack of a slot keeps out', () => {
    let asked = 0;
    const hub = new Hub({ maxClients: 1 });
    const { admission } = setUp({ authenticate: () => ++asked }, hub);
    expect(admission.admit(caller({ origin: 'http://evil' }))).toMatchObject({ code: 403 });
    expect(admission.admit(caller({ search: 'resourceVersion=x' }))).toMatchObject({ code: 400 });
    coreOf(hub).reserve('');
    expect(admission.admit(caller())).toMatchObject({ code: 503 });
    expect(asked).toBe(0);
    expect(hub.stats().total).toMatchObject({ refused: 3, refusals: { origin: 1, badRequest: 1, full: 1 } });
  });

  test('holds a slot while it thinks, and gives it back when its time is up', async () => {
    const { admission, hub, clock } = setUp({ authenticate: () => new Promise(() => {}) });
    const from = caller();
    const verdict = admission.admit(from);
    expect(coreOf(hub).reserve('b')).toMatchObject({ code: 503 });
    clock.advance(999);
    expect(coreOf(hub).reserve('b')).toMatchObject({ code: 503 });
    clock.advance(1);
    expect(await verdict).toMatchObject({ code: 503, message: expect.stringContaining('too long') });
    expect(coreOf(hub).reserve('b')).not.toHaveProperty('code');
    expect(hub.stats().total.refusals).toMatchObject({ timeout: 1 });
    expect([clock.pending, from.listeners.size]).toEqual([0, 0]);
  });

  test('that is not through when the hub shuts down is not waited for', async () => {
    const { admission, hub, clock } = setUp({ authenticate: () => new Promise(() => {}) });
    const from = caller();
    const verdict = admission.admit(from);
    void hub.shutdown();
    expect(await verdict).toMatchObject({ code: 503 });
    expect(hub.stats().total.refusals).toEqual({ ended: 1 });
    expect([clock.pending, from.listeners.size]).toEqual([0, 0]);
  });

  test('whose client leaves meanwhile settles at once, whatever it says later', async () => {
    let answer: (identity: object) => void = () => {};
    const { admission, hub, clock } = setUp<object>({
      authenticate: () =>
        new Promise<object>((resolve) => {
          answer = resolve;
        }),
    });
    const from = caller();
    const verdict = admission.admit(from);
    from.leave();
    expect(await verdict).toBeUndefined();
    answer({ user: 'late' });
    expect(coreOf(hub).reserve('b')).not.toHaveProperty('code');
    expect([clock.pending, from.listeners.size]).toEqual([0, 0]);
  });
});

describe('watchOptions', () => {
  test('are asked with the identity, and may take their time', async () => {
    const filter = (): boolean => true;
    const options = setUp({
      authenticate: (request: Request) => request.user,
      watchOptions: async (_request, identity) =>
        identity === 'u' ? { filter, capacity: 7, overflow: 'wait', maxQueuedBytes: 1 } : {},
    });
    const verdict = (await options.admission.admit(caller({ request: { user: 'u' } }))) as Admitted;
    expect(verdict).toMatchObject({ identity: 'u', options: { filter, capacity: 7, overflow: 'wait', maxQueuedBytes: 1 } });
  });

  test('say no more than they may', () => {
    const { admission } = setUp({ watchOptions: () => ({ capacity: 2, prefix: undefined }) });
    expect((admission.admit(caller()) as Admitted).options).toEqual({ capacity: 2 });
  });

  test.each<[string, () => object]>([
    [
      'throw',
      () => {
        throw new Error('secret');
      },
    ],
    ['make no sense', () => ({ capacity: 0 })],
    ['limit bytes to none', () => ({ maxQueuedBytes: 0 })],
    ['name no policy', () => ({ overflow: 'explode' })],
    ['have no function for a filter', () => ({ filter: 'all' })],
    ['misspell the filter', () => ({ filtre: () => false })],
    ['are those of a watcher', () => ({ capacity: 2, prefix: [1] })],
    ['are a word', () => 'all' as never],
  ])('that %s let nobody in', (_name, watchOptions) => {
    const { admission, hub } = setUp({ watchOptions });
    expect(admission.admit(caller())).toMatchObject({ code: 503 });
    expect(coreOf(hub).reserve('b')).not.toHaveProperty('code');
  });
});

describe('watchOptions that answer nothing', () => {
  const refusedBy = async (nothing: unknown, late: boolean): Promise<unknown[]> => {
    const notices: unknown[] = [];
    const hub = new Hub({ maxClients: 1, onNotice: (notice) => void notices.push(notice) });
    const { admission } = setUp({ watchOptions: () => (late ? Promise.resolve(nothing) : nothing) as never }, hub);
    expect(await admission.admit(caller())).toMatchObject({ code: 503, message: expect.not.stringContaining('watchOptions') });
    expect(coreOf(hub).reserve('b')).not.toHaveProperty('code');
    return notices;
  };

  // A filter whose `return` was forgotten would show everybody everything.
  test.each([undefined, null, false])('let nobody in, now or later: %s', async (nothing) => {
    const error = expect.objectContaining({
      code: 'INVALID_ARGUMENT',
      message: `watchOptions: expected an object, {} for no options, got ${nothing}`,
    });
    const told = [expect.objectContaining({ type: 'refused', reason: 'failed', error })];
    expect(await refusedBy(nothing, false)).toEqual(told);
    expect(await refusedBy(nothing, true)).toEqual(told);
  });

  test('{} is no options, and so is no hook', async () => {
    for (const watchOptions of [() => ({}), async () => ({}), undefined]) {
      expect(await setUp({ watchOptions }).admission.admit(caller())).toMatchObject({ options: {} });
    }
  });
});

test('clientAddress says whose a connection is; one that throws lets nobody in', () => {
  const hub = new Hub({ maxClientsPerAddress: 1 });
  const { admission } = setUp({ clientAddress: () => 'behind the proxy' }, hub);
  expect(admission.admit(caller())).toMatchObject({ address: 'behind the proxy' });
  expect(admission.admit(caller({ address: 'b' }))).toMatchObject({ code: 503, message: expect.stringContaining('address') });
  const broken = setUp({
    clientAddress: () => {
      throw new Error('x');
    },
  });
  expect(broken.admission.admit(caller())).toMatchObject({ code: 503 });
});

test.each([[['a']], [5], [Promise.resolve('a')]])(
  'clientAddress that returns %o lets nobody in: what is no text cannot be counted',
  (said) => {
    const notices: unknown[] = [];
    const hub = new Hub({ onNotice: (notice) => void notices.push(notice) });
    expect(setUp({ clientAddress: () => said as never }, hub).admission.admit(caller())).toMatchObject({ code: 503 });
    expect(notices).toMatchObject([{ error: { message: expect.stringMatching(/^clientAddress: expected a string, got /) } }]);
  },
);

test('clientAddress that rejects lets nobody in, and does not end the process', async () => {
  const hub = new Hub({ onError: () => {} });
  const { admission } = setUp({ clientAddress: (() => Promise.reject(new Error('no database'))) as never }, hub);
  expect(admission.admit(caller())).toMatchObject({ code: 503 });
  await macrotask(); // a rejection without a handler would be noticed here
});

test('what a hook has thrown is in the notice, and in onError, and not in the answer', () => {
  const oops = new Error('the database is down');
  const notices: unknown[] = [];
  const told: unknown[] = [];
  const onError = (...failure: unknown[]): void => void told.push(failure);
  const hub = new Hub({ onNotice: (notice) => void notices.push(notice), onError });
  const { admission } = setUp({ authenticate: () => Promise.reject(oops) }, hub);
  return Promise.resolve(admission.admit(caller())).then((verdict) => {
    expect(JSON.stringify(verdict)).not.toContain('database');
    expect(notices).toEqual([expect.objectContaining({ type: 'refused', reason: 'failed', error: oops })]);
    expect(told).toEqual([[oops, { during: 'admission' }]]);
  });
});

test.each(['authenticate', 'watchOptions', 'clientAddress'])(
  'a %s that throws is printed once, without onError',
  async (hook) => {
    const print = vi.spyOn(console, 'error').mockImplementation(() => {});
    const fails = (): never => {
      throw new Error('the database is down');
    };
    const { admission } = setUp({ [hook]: fails });
    for (let n = 0; n < 1_000; n++) expect(await admission.admit(caller())).toMatchObject({ code: 503 });
    const line = /^watchmux hub: the admission of a client failed: Error: the database is down \(at .*admission\.test/;
    expect(print.mock.calls).toEqual([[expect.stringMatching(line)]]);
    print.mockRestore();
  },
);

test('an onError that throws harms no client: its error is reported as uncaught', async () => {
  const reported: (() => void)[] = [];
  vi.spyOn(globalThis, 'queueMicrotask').mockImplementation((callback) => void reported.push(callback));
  const hub = new Hub({
    onError: () => {
      throw new Error('mine');
    },
  });
  const { admission } = setUp({ authenticate: () => Promise.reject(new Error('theirs')) }, hub);
  expect(await admission.admit(caller())).toMatchObject({ code: 503 });
  vi.restoreAllMocks();
  expect(reported).toHaveLength(1);
  expect(reported[0]).toThrow('mine');
});

test.each([
  [401, 'unauthorized'],
  [403, 'forbidden'],
])('a %i is no failure: the notice says %s, and nothing was thrown', (status, reason) => {
  const notices: unknown[] = [];
  const hub = new Hub({ onNotice: (notice) => void notices.push(notice) });
  const { admission } = setUp({ authenticate: () => ({ status: status as 401 | 403 }) }, hub);
  expect(admission.admit(caller())).toMatchObject({ code: status });
  expect(notices).toMatchObject([{ type: 'refused', reason, address: 'a' }]);
  expect(notices[0]).not.toHaveProperty('error');
});

test.each([400, 404, 429, 500, 599, '401'])(
  'a status of %j that authenticate returns admits nobody: the notice says what was wrong',
  (status) => {
    const notices: unknown[] = [];
    const hub = new Hub({ onNotice: (notice) => void notices.push(notice) });
    const { admission } = setUp({ authenticate: () => ({ status, message: 'no' }) }, hub);
    expect(admission.admit(caller())).toMatchObject({ code: 503 });
    expect(notices).toMatchObject([
      { reason: 'failed', error: { message: expect.stringMatching(/^status: expected 401 or 403, /) } },
    ]);
  },
);

test.each([200, 'active', undefined, 4040])('a status of %j is part of an identity', async (status) => {
  const seen: unknown[] = [];
  const hooks = { authenticate: () => ({ status }), watchOptions: (_: unknown, who: unknown) => (seen.push(who) ? {} : {}) };
  await setUp(hooks as never).admission.admit(caller());
  expect(seen).toEqual([{ status }]);
});

test.each([
  [{ filter: 'all' }, 'filter: expected a function, got "all"'],
  [{ capacity: 0 }, 'capacity: expected a whole number >= 1, got 0'],
  [{ overflow: 'explode' }, 'overflow: expected one of'],
])('watchOptions of %j: the notice says what is wrong with them', (options, message) => {
  const notices: unknown[] = [];
  const hub = new Hub({ onNotice: (notice) => void notices.push(notice) });
  expect(setUp({ watchOptions: () => options as never }, hub).admission.admit(caller())).toMatchObject({ code: 503 });
  expect(notices).toMatchObject([{ reason: 'failed', error: { message: expect.stringContaining(message) } }]);
});

test.each(['authenticate', 'watchOptions', 'clientAddress'])('%s that is no function is refused at once', (hook) => {
  expect(() => setUp({ [hook]: true })).toThrow(`${hook}: expected a function`);
});
