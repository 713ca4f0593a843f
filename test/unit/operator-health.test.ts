// What a kubelet hears of an operator.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { ApiServer } from '../../src/apiserver/index.ts';
import type { KubernetesObject } from '../../src/cache/index.ts';
import { type HealthServer, OperatorHealth, serveHealth } from '../../src/operator/health.ts';
import { Operator } from '../../src/operator/index.ts';
import type { OperatorChecks, OperatorState } from '../../src/operator/operator-options.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { eventually } from '../eventually.ts';
import { exposition } from '../exposition.ts';
import { crdOf } from './crd-rig.ts';

const kindOf = (kind: string, synced: boolean, error?: unknown): OperatorState['kinds'][number] => ({
  ...{ kind, synced, connected: synced, absent: false, error, resourceVersion: '1', objects: 0 },
});

function rig(checks?: OperatorChecks) {
  const clock = new FakeClock();
  const logged: string[] = [];
  const log = (text: string): void => void logged.push(text);
  const state = { running: true, leads: true, kinds: [kindOf('pods/v1', true)], controllers: [] as OperatorState['controllers'] };
  const health = new OperatorHealth({
    state: () => state,
    metrics: () => 'metrics\n',
    checks,
    log: { debug: log, info: log, warn: log, error: log },
    clock,
  });
  const get = async (target: string): Promise<[number, string]> => {
    const { code, body } = await health.answer('GET', target);
    return [code, body];
  };
  return { clock, logged, state, health, get };
}

describe('health', () => {
  it('is answered whatever metrics throw', async () => {
    const { state, logged } = rig();
    const log = (text: string): void => void logged.push(text);
    const metrics = (): never => {
      throw new Error('no numbers');
    };
    const health = new OperatorHealth({ state: () => state, metrics, log: { debug: log, info: log, warn: log, error: log } });
    expect(await health.answer('GET', '/metrics')).toMatchObject({ code: 500, body: 'internal error' });
    expect([(await health.answer('GET', '/healthz')).code, logged]).toEqual([200, [expect.stringContaining('no numbers')]]);
  });

  it('is ok, in one word', async () => {
    const { get } = rig();
    for (const path of ['/healthz', '/livez', '/readyz']) expect(await get(path)).toEqual([200, 'ok']);
  });

  it('names the checks if it is asked to', async () => {
    const { get } = rig({ healthz: { disk: () => {} }, readyz: { files: async () => true } });
    expect(await get('/healthz?verbose')).toEqual([200, '[+]ping ok\n[+]disk ok\nhealthz check passed\n']);
    expect(await get('/livez?verbose')).toEqual([200, '[+]ping ok\n[+]disk ok\nlivez check passed\n']);
    expect(await get('/readyz?verbose=1')).toEqual([
      200,
      '[+]running ok\n[+]kind/pods/v1 ok\n[+]files ok\nreadyz check passed\n',
    ]);
  });

  it('is not ready while kinds are not synced, and names them', async () => {
    const { get, state, logged } = rig();
    state.kinds.push(kindOf('sites.example.com/v1', false, new Error('403')));
    const [code, body] = await get('/readyz');
    expect([code, body]).toEqual([
      500,
      '[+]running ok\n[+]kind/pods/v1 ok\n[-]kind/sites.example.com/v1 failed: reason withheld\nreadyz check failed\n',
    ]);
    expect(await get('/healthz')).toEqual([200, 'ok']);
    await get('/readyz');
    expect(logged).toEqual([expect.stringMatching(/^readyz\/kind\/sites.example.com\/v1 fails: .*403/)]);
    state.kinds[1] = kindOf('sites.example.com/v1', true);
    expect(await get('/readyz')).toEqual([200, 'ok']);
  });

  it('is not ready before it runs, and when it stops', async () => {
    const { get, state } = rig();
    state.running = false;
    expect((await get('/readyz'))[1]).toContain('[-]running failed');
    expect(await get('/livez')).toEqual([200, 'ok']);
  });

  it('one check can be asked for, or left out', async () => {
    const { get, state } = rig({ readyz: { files: () => Promise.reject(new Error('gone')) } });
    expect((await get('/readyz/files'))[0]).toBe(500);
    expect(await get('/readyz/kind/pods/v1')).toEqual([200, 'ok']);
    expect(await get('/readyz/kind%2Fpods%2Fv1')).toEqual([200, 'ok']);
    expect((await get('/readyz/%'))[0]).toBe(404);
    expect((await get('/readyz/nothing'))[0]).toBe(404);
    expect(await get('/readyz?exclude=files')).toEqual([200, 'ok']);
    state.running = false;
    expect((await get('/readyz?exclude=files'))[0]).toBe(500);
    expect(await get('/readyz?exclude=files&exclude=running')).toEqual([200, 'ok']);
  });

  it('a check that throws has failed, and its reason is only logged', async () => {
    const { get, logged } = rig({
      healthz: {
        disk: () => {
          throw new Error('secret\nreason');
        },
      },
    });
    const [code, body] = await get('/healthz');
    expect(code).toBe(500);
    expect(body).toBe('[+]ping ok\n[-]disk failed: reason withheld\nhealthz check failed\n');
    expect(logged).toEqual([expect.stringMatching(/^healthz\/disk fails: .*secret.reason/)]);
  });

  it.each([() => false, async () => false])('a check that returns false has failed: %s', async (disk) => {
    const { get, logged } = rig({ healthz: { disk } });
    expect((await get('/healthz'))[0]).toBe(500);
    expect(logged).toEqual([expect.stringMatching(/^healthz\/disk fails: .*it returned false/)]);
  });

  it('a check that does not end has failed, and is not begun again', async () => {
    let [begun, end] = [0, (): void => {}];
    const slow = (): Promise<void> => {
      begun++;
      return new Promise((resolve) => {
        end = resolve;
      });
    };
    const { get, clock } = rig({ readyz: { slow } });
    for (let at = 0; at < 3; at++) {
      const asked = Promise.all([get('/readyz'), get('/readyz')]);
      await clock.advanceAsync(1_000);
      expect((await asked).map(([code]) => code)).toEqual([500, 500]);
    }
    expect(begun).toBe(1);
    end();
    await clock.advanceAsync(0);
    const asked = get('/readyz');
    await clock.advanceAsync(0);
    end();
    expect(await asked).toEqual([200, 'ok']);
    expect(begun).toBe(2);
    expect(clock.pending).toBe(0);
  });

  it('refuses checks that are none', () => {
    expect(() => rig({ readyz: { files: 5 as never } })).toThrow('checks.readyz.files');
    expect(() => rig({ readyz: { files: undefined as never } })).toThrow('checks.readyz.files');
    expect(() => rig({ ready: {} } as never)).toThrow('ready');
  });

  it('has metrics, and nothing else', async () => {
    const { health, get } = rig();
    expect(await health.answer('GET', '/metrics')).toMatchObject({
      code: 200,
      headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' },
      body: 'metrics\n',
    });
    for (const path of ['/', '', '/stats', '/metrics/', '/constructor', '/__proto__']) expect((await get(path))[0]).toBe(404);
    expect(await health.answer('POST', '/healthz')).toMatchObject({ code: 405, headers: { allow: 'GET, HEAD' } });
  });

  it('answers for fetch', async () => {
    const { health } = rig();
    const answer = await health.fetch(new Request('http://x/readyz?verbose'));
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect(await answer.text()).toContain('readyz check passed');
    const head = await health.fetch(new Request('http://x/healthz', { method: 'HEAD' }));
    expect([head.status, await head.text()]).toEqual([200, '']);
  });
});

describe('its server', () => {
  let server: HealthServer | undefined;
  afterEach(() => server?.close());

  it('listens, answers, and closes', async () => {
    const { health } = rig();
    server = await serveHealth(health, { port: 0, host: '127.0.0.1' });
    const answer = await fetch(`${server.url}/readyz?verbose`);
    expect([answer.status, await answer.text()]).toEqual([200, '[+]running ok\n[+]kind/pods/v1 ok\nreadyz check passed\n']);
    expect((await fetch(`${server.url}/healthz`, { method: 'HEAD' })).headers.get('content-length')).toBe('2');
    expect((await fetch(`${server.url}/healthz`, { method: 'POST', body: 'x' })).status).toBe(405);
    const port = Number(new URL(server.url).port);
    await expect(serveHealth(health, { port, host: '127.0.0.1' })).rejects.toMatchObject({ code: 'EADDRINUSE' });
    const { url } = server;
    await server.close();
    await expect(fetch(`${url}/healthz`)).rejects.toThrow();
  });

  it('goes on when a connection cannot be accepted', async () => {
    server = await serveHealth(rig().health, { port: 0, host: '127.0.0.1' });
    const servers: Server[] = [];
    const note = (message: unknown): void => void servers.push((message as { server: Server }).server);
    subscribe('http.server.request.start', note);
    const first = await fetch(`${server.url}/healthz`);
    unsubscribe('http.server.request.start', note);
    expect(servers[0]?.emit('error', new Error('accept EMFILE'))).toBe(true); // somebody listens
    expect([first.status, (await fetch(`${server.url}/healthz`)).status]).toEqual([200, 200]);
  });

  it('has so many connections, and so many of one address: further ones are closed', async () => {
    server = await serveHealth(rig().health, { port: 0, host: '127.0.0.1' });
    const port = Number(new URL(server.url).port);
    let closed = 0;
    const enter = async (localAddress: string, count: number): Promise<void> => {
      const opened = Array.from({ length: count }, () => {
        const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {});
        socket.resume().on('close', () => closed++);
        return once(socket, 'connect');
      });
      await Promise.all(opened);
    };
    await enter('127.0.0.2', 65);
    await eventually(() => expect(closed).toBe(1));
    for (const address of ['127.0.0.3', '127.0.0.4', '127.0.0.5']) await enter(address, 64);
    await enter('127.0.0.6', 1);
    await eventually(() => expect(closed).toBe(2));
  });

  it('on all addresses by default', async () => {
    server = await serveHealth(rig().health, { port: 0 });
    expect(new URL(server.url).hostname).toMatch(/^(\[::\]|0\.0\.0\.0)$/);
    const { port } = new URL(server.url);
    expect((await fetch(`http://127.0.0.1:${port}/livez`)).status).toBe(200);
  });

  it('refuses other options', async () => {
    await expect(serveHealth(rig().health, { port: -1 })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(serveHealth(rig().health, { port: 0, address: 'x' } as never)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    });
  });
});

describe('of an operator', () => {
  const QUIET = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
  const get = async (operator: Operator, path: string): Promise<[number, string]> => {
    const answer = await operator.fetch(new Request(`http://x${path}`));
    return [answer.status, await answer.text()];
  };

  it('ready once its kinds are there and synced; metrics of what it does; not ready when it stops', async () => {
    const server = new ApiServer({ storage: new MemoryStorage(), resources: [], customResourceDefinitions: true });
    const clock = new FakeClock();
    let release = (): void => {};
    const operator = new Operator({ cluster: server, name: 'sites', clock, log: QUIET, checks: { healthz: { own: () => {} } } });
    operator.controller({
      for: { apiVersion: 'example.com/v1', kind: 'Widget' },
      concurrency: 2,
      maxRetries: 0,
      reconcile: ({ name }) => {
        if (name === 'bad') throw new Error('bad');
        return new Promise<void>((resolve) => {
          release = resolve;
        });
      },
    });
    expect((await get(operator, '/readyz'))[1]).toContain('[-]running failed');
    const stop = new AbortController();
    const ran = operator.run(stop.signal);
    await clock.advanceAsync(2_000);
    expect(await get(operator, '/readyz')).toEqual([
      500,
      '[+]running ok\n[-]kind/example.com/v1 Widget failed: reason withheld\nreadyz check failed\n',
    ]);
    expect((await get(operator, '/readyz/kind/example.com/v1%20Widget'))[0]).toBe(500);
    expect(await get(operator, '/healthz?verbose')).toEqual([200, '[+]ping ok\n[+]own ok\nhealthz check passed\n']);
    await server.resource('customresourcedefinitions.apiextensions.k8s.io/v1').create(crdOf());
    await eventually(async () => {
      await clock.advanceAsync(1_000);
      expect(await get(operator, '/readyz?verbose')).toEqual([
        200,
        '[+]running ok\n[+]kind/widgets.example.com/v1 ok\nreadyz check passed\n',
      ]);
    });
    const widgets = server.resource<KubernetesObject>('widgets.example.com/v1').in('default');
    await widgets.create({ metadata: { name: 'bad' } });
    await widgets.create({ metadata: { name: 'good' } });
    const metric = (name: string, label = ''): number | undefined =>
      exposition(operator.metrics)
        .get(name)
        ?.samples.find(({ labels }) => label === '' || Object.values(labels).includes(label))?.value;
    await eventually(async () => {
      await clock.advanceAsync(1);
      expect(metric('controller_runtime_active_workers')).toBe(1);
      expect(metric('controller_runtime_terminal_reconcile_errors_total')).toBe(1);
    });
    expect(metric('controller_runtime_max_concurrent_reconciles')).toBe(2);
    expect(metric('controller_runtime_reconcile_total', 'error')).toBe(1);
    expect(metric('workqueue_adds_total')).toBe(2);
    expect(metric('watchmux_operator_kind_synced', 'widgets.example.com/v1')).toBe(1);
    stop.abort();
    expect((await get(operator, '/readyz'))[1]).toContain('[-]running failed');
    release();
    await ran;
    expect(clock.pending).toBe(0);
    await server.shutdown();
  });

  it('listens while it runs, and ends if it cannot', async () => {
    const server = new ApiServer({ storage: new MemoryStorage(), resources: [], customResourceDefinitions: true });
    const said: string[] = [];
    const create = (port: number): Operator =>
      new Operator({
        cluster: server,
        name: 'sites',
        listen: { port, host: '127.0.0.1' },
        log: { ...QUIET, info: (text) => said.push(text) },
      }).controller({ for: 'customresourcedefinitions.apiextensions.k8s.io/v1', reconcile: () => {} });
    const stop = new AbortController();
    const ran = create(0).run(stop.signal);
    const url = await eventually(() => /http:\S+/.exec(said.join())?.[0] ?? Promise.reject(new Error('not yet')));
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    await expect(create(Number(new URL(url).port)).run(stop.signal)).rejects.toMatchObject({ code: 'EADDRINUSE' });
    stop.abort();
    await ran;
    await expect(fetch(`${url}/healthz`)).rejects.toThrow();
    await server.shutdown();
  });

  it('with webhooks is ready before its kinds are synced: the server may need them to list these', async () => {
    const server = new ApiServer({ storage: new MemoryStorage(), resources: [], customResourceDefinitions: true });
    const clock = new FakeClock();
    const run = (signal: AbortSignal): Promise<void> =>
      new Promise((resolve) => signal.addEventListener('abort', () => resolve()));
    const webhooks = { run, ready: Promise.resolve('https://localhost') };
    const operator = new Operator({ cluster: server, name: 'sites', clock, log: QUIET, webhooks: webhooks as never });
    operator.controller({ for: 'widgets.example.com/v1', reconcile: () => {} });
    const stop = new AbortController();
    const ran = operator.run(stop.signal);
    await clock.advanceAsync(1_000);
    expect(await get(operator, '/readyz?verbose')).toEqual([200, '[+]running ok\n[+]webhooks ok\nreadyz check passed\n']);
    expect((await get(operator, '/readyz/kind/widgets.example.com/v1'))[0]).toBe(500);
    stop.abort();
    await ran;
    await server.shutdown();
  });

  it('stops to listen if it cannot say where it does', async () => {
    let url = '';
    const info = (text: string): void => {
      url = /http:\S+/.exec(text)?.[0] ?? '';
      throw new Error('no paper');
    };
    const server = new ApiServer({ storage: new MemoryStorage(), resources: [], customResourceDefinitions: true });
    const options = { cluster: server, name: 'sites', listen: { port: 0, host: '127.0.0.1' }, log: { ...QUIET, info } };
    const kind = 'customresourcedefinitions.apiextensions.k8s.io/v1';
    const operator = new Operator(options).controller({ for: kind, reconcile: () => {} });
    await expect(operator.run(new AbortController().signal)).rejects.toThrow('no paper');
    await expect(fetch(`${url}/healthz`)).rejects.toThrow('fetch failed');
    await server.shutdown();
  });
});
