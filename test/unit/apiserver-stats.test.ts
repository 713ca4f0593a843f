// What an API server tells about itself: in process, at /stats and at /metrics.
import { connect } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import type { ApiServerStats } from '../../src/apiserver/index.ts';
import { toCacheStats, toMetricsText } from '../../src/apiserver/stats.ts';
import { listening, ORDERS_PATH, rig } from './apiserver-rig.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const ofOrders = ({ resources }: ApiServerStats): ApiServerStats['resources'][number] | undefined =>
  resources.find(({ resource }) => resource === 'orders.example.com');

describe('the figures of a server', () => {
  test('are told of what somebody has asked for: objects, changes, window, watches', async () => {
    const { server, call } = rig();
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
    const text = toMetricsText(stats, { get: 8 });
    const prefix = 'watchmux_apiserver_';
    const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    const of = (resource: string): string => `{resource="${resource}"}`;
    expect(samples.map((line) => line.replace(prefix, ''))).toEqual([
      ...['requests_total{code="200"} 1', 'requests_by_verb_total{verb="get"} 8', 'requests_limited_total{limit="full"} 2'],
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
    for (const line of about('TYPE')) expect(line).toMatch(/_total counter$|[^l] gauge$/);
    expect(about('HELP').map((line) => line.replace(prefix, ''))).toEqual([
      'requests_total Answered requests, by status code.',
      'requests_by_verb_total Answered requests, by verb.',
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

  test('an error of a cache is told as its message', () => {
    expect(cache).not.toHaveProperty('error');
    expect(toCacheStats({ phase: 'failed', error: new Error('gone') } as never)).toEqual({ phase: 'failed', error: 'gone' });
  });
});
