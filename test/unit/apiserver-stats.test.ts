// What an API server tells about itself: in process, at /stats and at /metrics.
import { connect } from 'node:net';
import { describe, expect, test, vi } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import type { ApiServerStats } from '../../src/apiserver/index.ts';
import { toCacheStats, toMetrics } from '../../src/apiserver/stats.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { toText } from '../../src/watch/telemetry.ts';
import { closers } from '../closing.ts';
import { exposition } from '../exposition.ts';
import { listening } from '../listening.ts';
import { ORDERS_PATH, remote, rig } from './apiserver-rig.ts';

const closing = closers();

const ofOrders = ({ resources }: ApiServerStats): ApiServerStats['resources'][number] | undefined =>
  resources.find(({ resource }) => resource === 'orders.example.com');

describe('the figures of a server', () => {
  test('are told of what somebody has asked for: objects, changes, window, watches', async () => {
    const { server, call } = rig({ storage: remote(new MemoryStorage()) });
    await server.ready;
    expect(ofOrders(server.stats)).toBeUndefined();
    for (const name of ['a', 'b']) await call('POST', ORDERS_PATH, { metadata: { name } });
    const watch = await server.resource('orders.example.com/v1').watch({ resourceVersion: '0' });
    await call('DELETE', `${ORDERS_PATH}/a`);
    await expect.poll(() => ofOrders(server.stats)?.cache?.changes).toBe(3);
    expect(ofOrders(server.stats)).toMatchObject({
      ...{ watchers: 0, behind: 0, lag: 0 },
      cache: { phase: 'ready', objects: 1, watches: 1, views: 1, window: { items: 3 }, fellBehind: 0, gaps: 0 },
    });
    const { body, headers } = await call('GET', '/stats');
    expect(headers.get('content-type')).toBe('application/json');
    expect(body.requests).toEqual({ 200: 1, 201: 2 });
    expect(ofOrders(body)).toEqual(ofOrders(JSON.parse(JSON.stringify(server.stats))));
    expect((await call('GET', '/metrics')).text).toContain('watchmux_apiserver_cache_objects{resource="orders.example.com"} 1');
    expect((await call('POST', '/stats', {})).code).toBe(405);
    await watch.return();
  });

  test('of a storage in memory are those of its part for the resource, and the window is that of all', async () => {
    const { server, call, storage } = rig();
    await server.ready;
    for (const name of ['a', 'b']) await call('POST', ORDERS_PATH, { metadata: { name } });
    const orders = server.resource('orders.example.com/v1');
    const watches = [await orders.watch({ resourceVersion: '0' }), await orders.in('default').watch(), await orders.watch()];
    await call('DELETE', `${ORDERS_PATH}/a`);
    await storage.create('elsewhere/a', {});
    const { historyItems: items, historyBytes: bytes } = storage.stats;
    expect(ofOrders(server.stats)?.cache).toEqual({
      ...{ phase: 'ready', generation: 1, resourceVersion: await storage.currentVersion(), objects: 1, changes: 3 },
      window: { items, bytes, since: '1' },
      ...{ watches: 3, views: 2, fellBehind: 0, gaps: 0, waiting: 0 },
    });
    await server.shutdown();
    expect([watches.map(({ stopped }) => stopped), storage.stats.watches]).toEqual([[true, true, true], 0]);
  });

  test('a client that takes nothing is behind, by what waits for it; and is sent what is told of it', async () => {
    const { server, call } = rig({ maxBufferedBytes: 1_024, cache: { windowItems: 1_000 } });
    const { url, close } = await listening(server);
    closing.push(close);
    const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {});
    closing.push(() => socket.destroy());
    socket.write(`GET ${ORDERS_PATH}?watch=1&resourceVersion=0 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
    await new Promise((resolve) => socket.once('readable', resolve));
    await expect.poll(() => ofOrders(server.stats)?.watchers).toBe(1);
    expect(ofOrders(server.stats)).toMatchObject({ behind: 0, lag: 0 });
    // More than the network between the two holds.
    const note = 'x'.repeat(1_000_000);
    for (let at = 0; at < 12; at++) await call('POST', ORDERS_PATH, { metadata: { name: `o${at}` }, note });
    await expect.poll(() => ofOrders(server.stats)?.behind).toBe(1);
    const { lag } = ofOrders(server.stats) ?? {};
    expect(lag).toBeGreaterThan(0);
    expect(server.metrics).toContain('watchmux_apiserver_resource_watchers_behind{resource="orders.example.com"} 1');
    expect(server.metrics).toContain(`watchmux_apiserver_resource_max_lag_events{resource="orders.example.com"} ${lag}`);
    await expect.poll(() => server.stats.events + (ofOrders(server.stats)?.lag ?? 0)).toBe(12);
    const { events, sentBytes } = server.stats;
    expect(sentBytes).toBeGreaterThan(0);
    socket.destroy();
    // What was sent to a client that has left is not forgotten.
    await expect.poll(() => server.stats.watchers).toBe(0);
    expect(server.stats.events).toBeGreaterThanOrEqual(events);
    expect(server.stats.sentBytes).toBeGreaterThanOrEqual(sentBytes);
    expect(ofOrders(server.stats)).toMatchObject({ watchers: 0, behind: 0, lag: 0 });
  });

  test('are for those who may read them', async () => {
    const asked: string[] = [];
    const { call } = rig({
      authenticate: (request) => (request as Request).headers.get('authorization') === 'Bearer t' && 'ada',
      authorize: (verb, path) => {
        asked.push(`${verb} ${path}`);
        return path !== '/stats';
      },
    });
    expect((await call('GET', '/stats')).code).toBe(401);
    expect((await call('GET', '/stats', undefined, { authorization: 'Bearer t' })).code).toBe(403);
    expect(asked).toEqual(['get /stats']);
  });

  test('without caches there are no figures of them', async () => {
    const { server, call } = rig({ cache: false });
    await call('GET', ORDERS_PATH);
    expect(ofOrders(server.stats)).toEqual({ resource: 'orders.example.com', watchers: 0, behind: 0, lag: 0, cache: undefined });
  });
});

describe('metrics', () => {
  const cache = toCacheStats({
    phase: 'ready',
    objects: 21,
    changes: 22,
    fellBehind: 23,
    gaps: 24,
    window: { items: 25, bytes: 26 },
  } as never);
  const stats: ApiServerStats = {
    ...{ requests: { 200: 1 }, requestsLimited: { full: 2 }, watchers: 3, watchersOpened: 4, watchersStalled: 5 },
    ...{ events: 6, sentBytes: 7 },
    resources: [
      { resource: 'a', watchers: 11, behind: 12, lag: 13, cache },
      { resource: 'b', watchers: 14, behind: 15, lag: 16, cache: undefined },
    ],
  };

  test('are what is counted, each with its kind and a text', () => {
    const durations = { bounds: [0.5, 1], counts: [3, 2, 1], sum: 4.25 };
    const health = { ready: false, storage: true, storageMs: 1_500 };
    const { prefix, metrics } = toMetrics(stats, { requestsByVerb: { get: 8 }, durationsByVerb: { get: durations }, health });
    const text = toText(metrics, { prefix });
    expect(prefix).toBe('watchmux_apiserver_');
    const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    const of = (resource: string): string => `{resource="${resource}"}`;
    expect(samples.map((line) => line.replace(prefix, ''))).toEqual([
      ...['requests_total{code="200"} 1', 'requests_by_verb_total{verb="get"} 8'],
      ...['0.5"} 3', '1"} 5', '+Inf"} 6'].map((bucket) => `request_duration_seconds_bucket{verb="get",le="${bucket}`),
      ...['sum{verb="get"} 4.25', 'count{verb="get"} 6'].map((sample) => `request_duration_seconds_${sample}`),
      ...['ready 0', 'storage_healthy 1', 'storage_check_seconds 1.5', 'requests_limited_total{limit="full"} 2'],
      ...['watchers 3', 'watchers_opened_total 4', 'watchers_stalled_total 5', 'watch_events_total 6', 'sent_bytes_total 7'],
      ...[`resource_watchers${of('a')} 11`, `resource_watchers${of('b')} 14`],
      ...[`resource_watchers_behind${of('a')} 12`, `resource_watchers_behind${of('b')} 15`],
      ...[`resource_max_lag_events${of('a')} 13`, `resource_max_lag_events${of('b')} 16`],
      ...[`cache_ready${of('a')} 1`, `cache_ready${of('b')} 0`, `cache_objects${of('a')} 21`, `cache_objects${of('b')} 0`],
      ...[`cache_window_events${of('a')} 25`, `cache_window_events${of('b')} 0`],
      ...[`cache_window_bytes${of('a')} 26`, `cache_window_bytes${of('b')} 0`],
      ...[`cache_changes_total${of('a')} 22`, `cache_changes_total${of('b')} 0`],
      ...[`cache_expired_watches_total${of('a')} 23`, `cache_expired_watches_total${of('b')} 0`],
      ...[`cache_gaps_total${of('a')} 24`, `cache_gaps_total${of('b')} 0`],
    ]);
    const about = (what: string): string[] =>
      text.split('\n').flatMap((line) => (line.startsWith(`# ${what} ${prefix}`) ? [line.slice(what.length + 3)] : []));
    for (const line of about('TYPE')) expect(line).toMatch(/_total counter$|[^l] gauge$|_duration_seconds histogram$/);
    expect(about('HELP').map((line) => line.replace(prefix, ''))).toEqual([
      'requests_total Answered requests, by status code.',
      'requests_by_verb_total Answered requests, by verb.',
      'request_duration_seconds How long requests took until their answers began, by verb.',
      'ready Whether the server is ready (1) or not (0), as at /readyz.',
      'storage_healthy Whether the storage answers and can be written to (1) or not (0).',
      'storage_check_seconds How long the last check of the storage took.',
      'requests_limited_total Requests refused with 429, by the limit.',
      'watchers Open watches.',
      'watchers_opened_total Watches opened.',
      'watchers_stalled_total Watches cut because their clients stopped reading.',
      'watch_events_total Watch events sent.',
      'sent_bytes_total Bytes sent for watches and long lists.',
      'resource_watchers Open watches, by resource.',
      'resource_watchers_behind Open watches with events waiting because their connections are full, by resource.',
      'resource_max_lag_events The largest number of events waiting for one watch, by resource.',
      'cache_ready Whether the cache follows the storage (1) or not (0), by resource.',
      'cache_objects Objects in the cache, by resource.',
      'cache_window_events Past changes kept in the cache for watches, by resource.',
      'cache_window_bytes Bytes of the past changes kept in the cache, by resource.',
      'cache_changes_total Object changes that reached the cache, by resource.',
      'cache_expired_watches_total Watches that got a 410 because they were too slow, by resource.',
      'cache_gaps_total How often all watches got a 410 because the storage had lost past changes, by resource.',
    ]);
  });

  test('health is that of the last look at it: /metrics looks, and the getter does not', async () => {
    const [clock, storage] = [new FakeClock(), new MemoryStorage()];
    const check = vi.spyOn(storage, 'currentVersion');
    const { server, call } = rig({ clock, storage });
    await server.ready;
    const asked = check.mock.calls.length;
    expect(server.metrics).not.toMatch(/^watchmux_apiserver_(?:ready|storage)/m);
    const page = async (): Promise<string> => (await call('GET', '/metrics')).text;
    const well = await page();
    for (const sample of ['ready 1', 'storage_healthy 1']) expect(well).toContain(`\nwatchmux_apiserver_${sample}\n`);
    expect(check.mock.calls.length).toBe(asked + 1);
    check.mockImplementation(() => {
      clock.advance(250);
      return Promise.reject(new Error('lost'));
    });
    clock.advance(1_000);
    const lost = ['ready 0', 'storage_healthy 0', 'storage_check_seconds 0.25'];
    const text = await page();
    for (const sample of lost) expect(text).toContain(`\nwatchmux_apiserver_${sample}\n`);
    expect(exposition(server.metrics).get('watchmux_apiserver_ready')?.samples).toEqual([{ labels: {}, value: 0 }]);
  });

  test('how long requests take is counted by verb: nothing that a client sends makes another series', async () => {
    const clock = new FakeClock();
    const storage = new MemoryStorage();
    const { server, call } = rig({
      ...{ clock, storage, cache: false },
      authorize: (verb) => {
        if (verb === 'list') clock.advance(300);
        return true;
      },
    });
    for (const path of [ORDERS_PATH, ORDERS_PATH, '/none', '/apis/x/v1/y', `/${'z'.repeat(100)}`]) await call('GET', path);
    await call('BREW', ORDERS_PATH);
    const family = exposition(server.metrics).get('watchmux_apiserver_request_duration_seconds');
    const of = (verb: string, le: string): number | undefined =>
      family?.samples.find(({ labels }) => labels.verb === verb && labels.le === le)?.value;
    expect(new Set(family?.samples.map(({ labels }) => labels.verb))).toEqual(new Set(['list', 'none']));
    expect(['0.25', '0.5', '60', '+Inf'].map((le) => of('list', le))).toEqual([0, 2, 2, 2]);
    expect([of('none', '0.001'), of('none', '+Inf')]).toEqual([4, 4]);
  });

  test('of the process and the build stand on the page, and not in the getter, whose reader may have them already', async () => {
    const { server, call } = rig();
    const page = exposition((await call('GET', '/metrics')).text);
    const value = (name: string): unknown => page.get(name)?.samples[0]?.value;
    expect(page.get('watchmux_build_info')?.samples).toEqual([{ labels: { version: manifest.version }, value: 1 }]);
    expect(page.get('nodejs_version_info')?.samples).toEqual([{ labels: { version: process.version }, value: 1 }]);
    const startMs = Date.now() - process.uptime() * 1_000;
    expect(Math.abs(Number(value('process_start_time_seconds')) * 1_000 - startMs)).toBeLessThan(5_000);
    for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'nodejs_heap_size_used_bytes'])
      expect(value(name)).toBeGreaterThan(0);
    expect([...exposition(server.metrics).keys()].filter((name) => !name.startsWith('watchmux_apiserver_'))).toEqual([]);
  });

  test('an error of a cache is told as its message', () => {
    expect(cache).not.toHaveProperty('error');
    expect(toCacheStats({ phase: 'failed', error: new Error('gone') } as never)).toEqual({ phase: 'failed', error: 'gone' });
  });
});
