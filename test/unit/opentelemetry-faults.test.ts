// What an SDK throws, or its plugins: nobody who is served hears of it.
import { type Meter, type MeterProvider, type Span, type TracerProvider, trace } from '@opentelemetry/api';
import { describe, expect, test, vi } from 'vitest';
import { ApiServer } from '../../src/apiserver/index.ts';
import { OpenTelemetry } from '../../src/opentelemetry/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { ORDERS } from './apiserver-rig.ts';

const fault = (): never => {
  throw new Error('no disk');
};
const none = trace.getTracer('none').startSpan('none');
const meter = (record: () => void): MeterProvider =>
  ({
    getMeter: () =>
      ({
        createHistogram: () => ({ record }),
        createObservableCounter: () => ({}),
        createObservableGauge: () => ({}),
        addBatchObservableCallback: () => {},
        removeBatchObservableCallback: () => {},
      }) as unknown as Meter,
  }) as MeterProvider;
const tracer = (startSpan: () => Span): TracerProvider => ({ getTracer: () => ({ startSpan }) }) as never;
const spanWith = (broken: object): Span => Object.assign(Object.create(none), broken) as Span;

describe.each([
  ['a histogram', { meterProvider: meter(fault), tracerProvider: tracer(() => none) }],
  ['a sampler', { meterProvider: meter(() => {}), tracerProvider: tracer(fault) }],
  ['a processor of spans', { meterProvider: meter(() => {}), tracerProvider: tracer(() => spanWith({ end: fault })) }],
  [
    'a span',
    { meterProvider: meter(() => {}), tracerProvider: tracer(() => spanWith({ setAttributes: fault, setAttribute: fault })) },
  ],
])('if %s throws', (_, providers) => {
  const print = vi.spyOn(console, 'error').mockImplementation(() => {});

  test('requests are answered, once', async () => {
    print.mockClear();
    const telemetry = new OpenTelemetry(providers);
    const storage = new MemoryStorage();
    const server = new ApiServer({ storage, resources: [ORDERS], telemetry });
    const response = await server.fetch(new Request('http://h.example/apis/example.com/v1/namespaces/default/orders'));
    expect(response.status).toBe(200);
    expect(server.stats.requests).toEqual({ 200: 1 });
    expect(print.mock.calls.flat().join()).toContain('watchmux telemetry: Error: no disk');
    await server.shutdown();
    await storage.close();
  });

  test('requests are sent, and reconciles run, once; what they throw is thrown', async () => {
    const telemetry = new OpenTelemetry(providers);
    const work = vi.fn(async () => new Response('yes'));
    await expect((await telemetry.send('GET', new URL('http://h.example/'), work)).text()).resolves.toBe('yes');
    expect(work).toHaveBeenCalledTimes(1);
    const own = new Error('mine');
    const reconcile = vi.fn(async (tell: (result: string) => void) => {
      tell('error');
      throw own;
    });
    const start = { controller: 'c', namespace: 'n', name: 'a', attempt: 1 };
    await expect(telemetry.reconcile(start, reconcile)).rejects.toBe(own);
    expect(reconcile).toHaveBeenCalledTimes(1);
    telemetry.record('any', 1, {});
  });
});
