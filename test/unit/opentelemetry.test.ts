// Metrics and traces, as the SDK of OpenTelemetry has them.
import { context, propagation, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { DataPointType, MeterProvider, type MetricData, MetricReader } from '@opentelemetry/sdk-metrics';
import { BasicTracerProvider, InMemorySpanExporter, type ReadableSpan, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { ApiServer, type ApiServerOptions, CONFIG_MAPS } from '../../src/apiserver/index.ts';
import { Hub } from '../../src/bridge/http.ts';
import { loadCluster } from '../../src/kubernetes/index.ts';
import { OpenTelemetry, type OpenTelemetryOptions } from '../../src/opentelemetry/index.ts';
import { Operator } from '../../src/operator/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { exposition } from '../exposition.ts';
import { listening } from '../listening.ts';
import { ORDERS, type Order } from './apiserver-rig.ts';
import { CONFIG_MAP, ORDER } from './operator-rig.ts';

/** Reads when it is asked to. */
class Reader extends MetricReader {
  protected async onForceFlush(): Promise<void> {}
  protected async onShutdown(): Promise<void> {}
}

/** Whoever observes has to end it. */
let observed = 0;
class Counting extends OpenTelemetry {
  override observe(...[read]: Parameters<OpenTelemetry['observe']>): () => void {
    let isOver = false;
    observed++;
    const stop = super.observe(() => {
      expect(isOver).toBe(false);
      return read();
    });
    return () => {
      isOver = true;
      observed--;
      stop();
    };
  }
}

/** An SDK that keeps everything, and what reports to it. */
function sdk() {
  const reader = new Reader();
  const meterProvider = new MeterProvider({ readers: [reader] });
  const exporter = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const create = (more: OpenTelemetryOptions = {}): OpenTelemetry => new Counting({ meterProvider, tracerProvider, ...more });
  return {
    create,
    telemetry: create(),
    tracer: tracerProvider.getTracer('test'),
    spans: (): readonly ReadableSpan[] => exporter.getFinishedSpans(),
    async metrics(): Promise<ReadonlyMap<string, MetricData>> {
      const { resourceMetrics, errors } = await reader.collect();
      expect(errors).toEqual([]);
      const all = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
      return new Map(all.map((each) => [each.descriptor.name, each]));
    },
  };
}

type Sdk = ReturnType<typeof sdk>;

/** Values by attributes, which are written as `name=value`. */
function values(data: MetricData | undefined): Readonly<Record<string, unknown>> {
  const points = data?.dataPoints ?? [];
  return Object.fromEntries(
    points.map(({ attributes, value }) => [
      Object.entries(attributes)
        .map((pair) => pair.join('='))
        .sort()
        .join(' '),
      value,
    ]),
  );
}

/** What an exporter for Prometheus calls a metric. */
function prometheusName({ descriptor: { name, unit }, dataPointType, ...data }: MetricData): string {
  const units: Readonly<Record<string, string>> = { s: '_seconds', By: '_bytes' };
  const isCounter = dataPointType === DataPointType.SUM && 'isMonotonic' in data && data.isMonotonic;
  return name.replaceAll('.', '_') + (units[unit] ?? '') + (isCounter ? '_total' : '');
}

beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
});
afterAll(() => {
  context.disable();
  propagation.disable();
});

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
  expect(observed).toBe(0);
});

/** A server with orders and config maps, over HTTP. */
async function serve(options: Partial<ApiServerOptions>): Promise<{ readonly url: string; readonly server: ApiServer }> {
  const storage = new MemoryStorage();
  const server = new ApiServer({ storage, resources: [ORDERS, CONFIG_MAPS], ...options });
  const { url, close } = await listening(server);
  ends.push(async () => {
    await close();
    await storage.close();
  });
  return { url, server };
}

const COLLECTION = '/apis/example.com/v1/namespaces/default/orders';
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const TRACEPARENT = `00-${TRACE}-b7ad6b7169203331-01`;

describe('metrics', () => {
  test('a hub has the same numbers here as in the text for Prometheus, until it is shut down', async () => {
    const { telemetry, metrics } = sdk();
    const hub = new Hub({ telemetry });
    await hub.publish({ type: 'price', object: 1 });
    const seen = await metrics();
    expect(values(seen.get('watchmux.events_accepted'))).toEqual({ '': 1 });
    expect(values(seen.get('watchmux.clients'))).toEqual({ 'transport=http': 0, 'transport=sse': 0, 'transport=websocket': 0 });
    expect(seen.get('watchmux.sent')?.descriptor.unit).toBe('By');
    const text = exposition(hub.metrics());
    const quiet = ['watchmux_clients_refused_total', 'watchmux_clients_cut_total']; // no reason yet
    expect([...seen.values()].map(prometheusName).sort()).toEqual(
      [...text.keys()].filter((name) => !quiet.includes(name)).sort(),
    );
    expect(observed).toBe(1);
    await hub.shutdown();
    expect(observed).toBe(0);
    await metrics(); // reads no more, as Counting says
  });

  test('attributes tell two hubs apart', async () => {
    const { create, metrics } = sdk();
    const hubs = ['a', 'b'].map((name) => new Hub({ telemetry: create({ attributes: { 'watchmux.hub': name } }) }));
    await hubs[1]?.publish({ type: 'price', object: 1 });
    expect(values((await metrics()).get('watchmux.events_accepted'))).toEqual({ 'watchmux.hub=a': 0, 'watchmux.hub=b': 1 });
    for (const hub of hubs) await hub.shutdown();
  });

  test('a server has its own under the names that Prometheus gets, and the durations under that of the conventions', async () => {
    const { telemetry, metrics } = sdk();
    const { url, server } = await serve({ telemetry });
    await (await fetch(url + COLLECTION)).text();
    await (await fetch(`${url}/nowhere`)).text();
    await (await fetch(`${url}/readyz`)).text();
    const seen = await metrics();
    const durations = seen.get('http.server.request.duration');
    const own = [...seen.values()].filter((each) => each !== durations).map(prometheusName);
    const text = [...exposition(server.metrics)].filter(([, { type, samples }]) => type !== 'histogram' && samples.length > 0);
    expect(own.sort()).toEqual(text.map(([name]) => name).sort());
    expect(values(seen.get('watchmux.apiserver.requests'))).toEqual({ 'code=200': 2, 'code=404': 1 });
    const common = 'http.request.method=GET';
    expect(Object.keys(values(durations)).sort()).toEqual([
      `${common} http.response.status_code=200 http.route=/apis/example.com/v1/namespaces/{namespace}/orders url.scheme=http watchmux.verb=list`,
      `${common} http.response.status_code=200 http.route=/readyz url.scheme=http`,
      `${common} http.response.status_code=404 url.scheme=http`,
    ]);
    expect(durations?.descriptor.unit).toBe('s');
    await server.shutdown();
    await metrics();
  });
});

describe('spans of requests to a server', () => {
  async function spansOf(paths: readonly string[], options: Partial<ApiServerOptions> = {}): Promise<Sdk> {
    const own = sdk();
    const { url } = await serve({ telemetry: own.telemetry, ...options });
    for (const path of paths) await (await fetch(url + path, { headers: { traceparent: TRACEPARENT } })).text();
    return own;
  }

  test('continue the trace of the client, and are named by the route', async () => {
    const { spans } = await spansOf([`${COLLECTION}?limit=1`]);
    const [span] = spans();
    expect(span).toMatchObject({
      name: 'GET /apis/example.com/v1/namespaces/{namespace}/orders',
      kind: SpanKind.SERVER,
      attributes: {
        'http.request.method': 'GET',
        'http.response.status_code': 200,
        'http.route': '/apis/example.com/v1/namespaces/{namespace}/orders',
        'url.path': COLLECTION,
        'url.scheme': 'http',
        'client.address': '127.0.0.1',
        'watchmux.verb': 'list',
      },
      status: { code: SpanStatusCode.UNSET },
    });
    expect(span?.spanContext().traceId).toBe(TRACE);
    expect(span?.parentSpanContext?.spanId).toBe('b7ad6b7169203331');
  });

  test('are not named by what clients can make up', async () => {
    const made = ['/made/up', '/apis/made.up/v1/things', `${COLLECTION}/a/made-up`, '/api/v1/configmaps/a%2fb', '/%72eadyz'];
    const { spans } = await spansOf(made);
    expect(spans().map(({ name }) => name)).toEqual([
      ...['GET', 'GET', 'GET /apis/example.com/v1/namespaces/{namespace}/orders/{name}/{subresource}', 'GET', 'GET /readyz'],
    ]);
  });

  test('are the parents of what the hooks of the program do, and have failed when the server has', async () => {
    const own = sdk();
    const authenticate = (): string => {
      own.tracer.startSpan('tokens').end();
      throw new Error('no database');
    };
    const { url } = await serve({ telemetry: own.telemetry, authenticate, onError: () => {} });
    await (await fetch(url + COLLECTION)).text();
    const [hook, request] = own.spans();
    expect(hook?.parentSpanContext?.spanId).toBe(request?.spanContext().spanId);
    expect(request).toMatchObject({ attributes: { 'error.type': '503' }, status: { code: SpanStatusCode.ERROR } });
  });

  test('are within that of an instrumentation of the HTTP server', async () => {
    const { telemetry, tracer, spans } = sdk();
    const server = new ApiServer({ storage: new MemoryStorage(), resources: [CONFIG_MAPS], telemetry });
    const outer = tracer.startSpan('outer');
    const request = new Request('https://example.com/api/v1/configmaps', { headers: { traceparent: TRACEPARENT } });
    await context.with(trace.setSpan(ROOT_CONTEXT, outer), () => server.fetch(request));
    outer.end();
    expect(spans()[0]).toMatchObject({ kind: SpanKind.INTERNAL, attributes: { 'url.scheme': 'https' } });
    expect(spans()[0]?.parentSpanContext?.spanId).toBe(outer.spanContext().spanId);
    await server.shutdown();
  });
});

describe('an operator', () => {
  const run = async (own: Sdk, reconcile: Parameters<Operator['controller']>[0]['reconcile']): Promise<void> => {
    const { url, server } = await serve({ telemetry: own.create({ attributes: { at: 'server' } }) });
    await server
      .resource<Order>('orders.example.com/v1')
      .in('default')
      .create({ metadata: { name: 'tea' } } as Order);
    const cluster = await loadCluster({ server: url, telemetry: own.telemetry });
    const options = { cluster, name: 'orders', telemetry: own.telemetry, onError: () => {} };
    const operator = new Operator(options).controller({ for: ORDER, owns: [CONFIG_MAP], reconcile, maxRetries: 0 });
    const stop = new AbortController();
    const running = operator.run(stop.signal);
    await operator.idle();
    stop.abort();
    await running;
    cluster.close();
  };

  test('makes a trace of each reconcile, which goes through the cluster’s requests to the server', async () => {
    const own = sdk();
    await run(own, async ({ object, apply }) => {
      if (object) await apply(CONFIG_MAP, { data: { a: 'b' } });
    });
    const spans = own.spans();
    const reconcile = spans.find(({ name }) => name === 'reconcile orders');
    expect(reconcile).toMatchObject({
      kind: SpanKind.INTERNAL,
      attributes: {
        'watchmux.controller': 'orders',
        'k8s.namespace.name': 'default',
        'watchmux.name': 'tea',
        'watchmux.attempt': 1,
        'watchmux.result': 'success',
      },
    });
    expect(reconcile?.parentSpanContext).toBeUndefined();
    const chain = spans.filter((each) => each.spanContext().traceId === reconcile?.spanContext().traceId);
    const [server, client] = chain;
    expect(chain.map(({ name }) => name)).toEqual([
      'PATCH /api/v1/namespaces/{namespace}/configmaps/{name}',
      'PATCH',
      'reconcile orders',
    ]);
    expect(server?.parentSpanContext?.spanId).toBe(client?.spanContext().spanId);
    expect(client?.parentSpanContext?.spanId).toBe(reconcile?.spanContext().spanId);
    expect(client).toMatchObject({ kind: SpanKind.CLIENT, attributes: { 'server.address': '127.0.0.1' } });
  });

  test('reports what it counts while it runs, and how long things took', async () => {
    const own = sdk();
    const seen: ReadonlyMap<string, MetricData>[] = [];
    await run(own, async () => void seen.push(await own.metrics()));
    expect(values(seen[0]?.get('controller_runtime.active_workers'))).toEqual({ 'controller=orders': 1 });
    expect(Object.keys(values(seen[0]?.get('rest_client.requests'))).length).toBeGreaterThan(0);
    const after = await own.metrics();
    expect([...after.keys()]).toContain('http.client.request.duration');
    expect(values(after.get('controller_runtime.reconcile_time'))).toMatchObject({ 'controller=orders': { count: 1 } });
    const text = after.get('workqueue.queue_duration');
    expect(text && prometheusName(text)).toBe('workqueue_queue_duration_seconds');
    expect(values(text)).toMatchObject({
      'controller=orders name=orders': { count: 1, buckets: { boundaries: expect.arrayContaining([1e-8, 1_000]) } },
    });
  });

  test('has a span that failed for a reconcile that did', async () => {
    const own = sdk();
    await run(own, async () => {
      throw new Error('out of tea');
    });
    const reconcile = own.spans().find(({ name }) => name === 'reconcile orders');
    expect(reconcile).toMatchObject({
      attributes: { 'watchmux.result': 'error' },
      status: { code: SpanStatusCode.ERROR, message: expect.stringContaining('out of tea') },
    });
    expect(reconcile?.events[0]).toMatchObject({ name: 'exception' });
  });
});

describe('a cluster', () => {
  test('has a span for a request without an answer, and for one that was refused', async () => {
    const { telemetry, spans } = sdk();
    const { url } = await serve({});
    const cluster = await loadCluster({ server: url, telemetry });
    await expect(cluster.resource('orders.example.com/v1').in('default').get('none')).rejects.toThrow('404');
    ends.push(() => cluster.close());
    const gone = await loadCluster({ server: 'http://127.0.0.1:1', telemetry });
    await expect(gone.resource('configmaps').list()).rejects.toThrow();
    expect(spans().map(({ attributes }) => attributes['error.type'])).toEqual(['404', 'ECONNREFUSED']);
    expect(spans().map(({ status }) => status.code)).toEqual([SpanStatusCode.ERROR, SpanStatusCode.ERROR]);
  });
});

test('an option that is none is refused', () => {
  expect(() => new OpenTelemetry({ meter: 1 } as object)).toThrow('meter');
  const telemetry = {} as OpenTelemetry;
  expect(() => new Hub({ telemetry })).toThrow('expected an OpenTelemetry');
  expect(() => new ApiServer({ storage: new MemoryStorage(), resources: [CONFIG_MAPS], telemetry })).toThrow('OpenTelemetry');
});
