/**
 * The entry point `watchmux/opentelemetry`: metrics and traces by `@opentelemetry/api`.
 *
 *     what is counted ---> observe ---> observable instruments, read when the SDK collects
 *     a request -----> serve ------> a span whose parent the header `traceparent` names; `http.server.request.duration`
 *     a reconcile ---> reconcile --> a trace of its own ---.
 *                                                          v
 *     a request of a cluster ------> send ---------------> a span; its `traceparent` goes with the request
 *
 * Names are those of the semantic conventions where they have one. An exporter for Prometheus turns all others into those at
 * `/metrics`, so that dashboards and alerts work: `watchmux.sent` in `By` is `watchmux_sent_bytes_total`.
 */
import {
  type Attributes,
  type Context,
  context,
  type Histogram,
  type Meter,
  type MeterProvider,
  metrics,
  type Observable,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  type TracerProvider,
  trace,
} from '@opentelemetry/api';
import { systemClock } from '../watch/clock.ts';
import { checkOptions } from '../watch/errors.ts';
import { oneLine, reporter } from '../watch/failures.ts';
import {
  type Metric,
  type MetricGroup,
  type ReconcileStart,
  type Series,
  type ServedAnswer,
  type ServedRequest,
  type Telemetry,
  toldWork,
} from '../watch/telemetry.ts';

export type { Telemetry } from '../watch/telemetry.ts';

/** Options of {@link OpenTelemetry}. */
export interface OpenTelemetryOptions {
  /**
   * Attributes of all metrics and spans, to distinguish several hubs of one program: `{ 'watchmux.hub': 'orders' }`. Default:
   * none.
   */
  readonly attributes?: Attributes | undefined;
  /** Default: the global one, which an SDK sets. */
  readonly meterProvider?: MeterProvider | undefined;
  /** Default: the global one, which an SDK sets. */
  readonly tracerProvider?: TracerProvider | undefined;
}

/** In seconds, as the semantic conventions advise for the durations of requests. */
const REQUEST_BOUNDS: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
const NAMES = ['attributes', 'meterProvider', 'tracerProvider'] as const;
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']);

/**
 * Reports metrics and traces to OpenTelemetry. Set up its SDK first; without one, this does nothing.
 *
 *     const telemetry = new OpenTelemetry();
 *     const hub = new Hub({ telemetry });
 *     const cluster = await loadCluster({ telemetry });
 *     const operator = new Operator({ cluster, name: 'websites', telemetry });
 *
 * An error of a provider, such as a processor of spans, is printed, and does not affect clients.
 */
export class OpenTelemetry implements Telemetry {
  readonly #attributes: Attributes;
  readonly #meter: Meter;
  readonly #tracer: Tracer;
  /** By the full name of a metric. */
  readonly #instruments: Map<string, Observable> = new Map();
  readonly #histograms: Map<string, Histogram> = new Map();
  /** Reports an error of a provider. */
  readonly #failed: (error: unknown) => void = reporter('telemetry', {});
  readonly #served: Histogram;
  readonly #sent: Histogram;

  /** @throws {WatchError} INVALID_ARGUMENT for an unknown option. */
  constructor(options: OpenTelemetryOptions = {}) {
    const { attributes = {}, meterProvider, tracerProvider } = checkOptions(options, NAMES);
    this.#attributes = attributes;
    this.#meter = meterProvider?.getMeter('watchmux') ?? metrics.getMeter('watchmux');
    this.#tracer = tracerProvider?.getTracer('watchmux') ?? trace.getTracer('watchmux');
    const advice = { explicitBucketBoundaries: [...REQUEST_BOUNDS] };
    this.#served = this.#meter.createHistogram('http.server.request.duration', {
      ...{ unit: 's', description: 'How long requests took until their answers began.', advice },
    });
    this.#sent = this.#meter.createHistogram('http.client.request.duration', {
      ...{ unit: 's', description: 'How long it took until answers to requests began.', advice },
    });
  }

  observe(read: () => readonly MetricGroup[]): () => void {
    const observed = read().flatMap(({ prefix, metrics }) => metrics.flatMap((metric) => this.#instrument(prefix, metric)));
    const callback: Parameters<Meter['addBatchObservableCallback']>[0] = (result) => {
      for (const { prefix, metrics } of read()) {
        for (const { name, value } of metrics) {
          const instrument = this.#instruments.get(prefix + name);
          if (!instrument) continue;
          for (const { labels, value: now } of seriesOf(value)) {
            if (typeof now === 'number') result.observe(instrument, now, { ...this.#attributes, ...labels });
          }
        }
      }
    };
    this.#meter.addBatchObservableCallback(callback, observed);
    return () => this.#meter.removeBatchObservableCallback(callback, observed);
  }

  record(name: string, value: number, labels: Readonly<Record<string, string>>): void {
    this.#safely(() => this.#histograms.get(name)?.record(value, { ...this.#attributes, ...labels }));
  }

  serve<T>(request: ServedRequest, work: (tell: (answer: ServedAnswer) => void) => Promise<T>): Promise<T> {
    return toldWork(work, { without: () => {}, failed: this.#failed, through: (own) => this.#serve(request, own) });
  }

  send(method: string, url: URL, work: (headers: Readonly<Record<string, string>>) => Promise<Response>): Promise<Response> {
    return toldWork(work, { without: {}, failed: this.#failed, through: (own) => this.#send(method, url, own) });
  }

  reconcile<T>(start: ReconcileStart, work: (tell: (result: string | undefined) => void) => Promise<T>): Promise<T> {
    return toldWork(work, { without: () => {}, failed: this.#failed, through: (own) => this.#reconcile(start, own) });
  }

  #safely(tell: () => void): void {
    try {
      tell();
    } catch (error) {
      this.#failed(error);
    }
  }

  #serve<T>(request: ServedRequest, work: (tell: (answer: ServedAnswer) => void) => Promise<T>): Promise<T> {
    const { path, scheme } = request;
    const method = METHODS.has(request.method) ? request.method : '_OTHER';
    const known = { 'http.request.method': method, 'url.scheme': scheme };
    // An instrumentation of the HTTP server has already read the header.
    const active = context.active();
    const isWithin = trace.getSpan(active)?.isRecording() ?? false;
    const parent = isWithin ? active : propagation.extract(active, request, GETTER);
    const kind = isWithin ? SpanKind.INTERNAL : SpanKind.SERVER;
    const attributes = { ...this.#attributes, ...known, 'url.path': path };
    const span = this.#tracer.startSpan(method, { kind, attributes }, parent);
    const tell = ({ code, verb, route, address, durationMs }: ServedAnswer): void => {
      const answered = {
        ...{ 'http.response.status_code': code, ...(route && { 'http.route': route }), ...(verb && { 'watchmux.verb': verb }) },
        ...(code >= 500 && { 'error.type': `${code}` }),
      };
      this.#served.record(durationMs / 1_000, { ...this.#attributes, ...known, ...answered });
      if (route) span.updateName(`${method} ${route}`);
      span.setAttributes({ ...answered, ...(address && { 'client.address': address }) });
      if (code >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
    };
    return within(span, parent, () => work((answer) => this.#safely(() => tell(answer))));
  }

  async #send(
    method: string,
    { origin, protocol, hostname, port, pathname, search }: URL,
    work: (headers: Readonly<Record<string, string>>) => Promise<Response>,
  ): Promise<Response> {
    const known = {
      ...{ 'http.request.method': method, 'server.address': hostname.replace(/^\[|\]$/g, '') },
      'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
    };
    const attributes = { ...this.#attributes, ...known, 'url.full': origin + pathname + search };
    const parent = context.active();
    const span = this.#tracer.startSpan(method, { kind: SpanKind.CLIENT, attributes }, parent);
    const headers: Record<string, string> = {};
    propagation.inject(trace.setSpan(parent, span), headers);
    const begun = systemClock.now();
    const ended = (result: Attributes): void => {
      this.#sent.record((systemClock.now() - begun) / 1_000, { ...this.#attributes, ...known, ...result });
      span.setAttributes(result);
      if (result['error.type']) span.setStatus({ code: SpanStatusCode.ERROR });
    };
    return within(span, parent, async () => {
      try {
        const response = await work(headers);
        const { status } = response;
        ended({ 'http.response.status_code': status, ...(status >= 400 && { 'error.type': `${status}` }) });
        return response;
      } catch (error) {
        const { code, name = '_OTHER' } = error as { readonly code?: unknown; readonly name?: string };
        ended({ 'error.type': typeof code === 'string' ? code : name });
        throw error;
      }
    });
  }

  #reconcile<T>(
    { controller, namespace, name, attempt }: ReconcileStart,
    work: (tell: (result: string | undefined) => void) => Promise<T>,
  ): Promise<T> {
    const attributes = {
      ...{ ...this.#attributes, 'watchmux.controller': controller, 'watchmux.name': name, 'watchmux.attempt': attempt },
      ...(namespace && { 'k8s.namespace.name': namespace }),
    };
    // A key may be queued because of many changes, or none: each reconcile is a trace of its own.
    const parent = trace.deleteSpan(context.active());
    const span = this.#tracer.startSpan(`reconcile ${controller}`, { kind: SpanKind.INTERNAL, attributes }, parent);
    let result: string | undefined;
    const tell = (how: string | undefined): void => {
      result = how;
      this.#safely(() => span.setAttribute('watchmux.result', how ?? 'stopped'));
    };
    return within(span, parent, async () => {
      try {
        return await work(tell);
      } catch (error) {
        if (result === 'error') {
          span.recordException(error as Error);
          span.setStatus({ code: SpanStatusCode.ERROR, message: oneLine(error) });
        }
        throw error;
      }
    });
  }

  /** The instrument of a metric, if it is an observable one. */
  #instrument(prefix: string, { name, type, help: description, value }: Metric): Observable | readonly [] {
    const full = prefix + name;
    const known = this.#instruments.get(full);
    if (known || this.#histograms.has(full)) return known ?? [];
    const { unit, own } = toUnit(name.replace(/_total$/, ''));
    const given = { description, ...(unit && { unit }) };
    const called = prefix.replace(/^watchmux_(?=.)/, 'watchmux.').replace(/_$/, '.') + own;
    if (type === 'histogram') {
      const first = seriesOf(value)[0]?.value;
      const advice = typeof first === 'object' ? { advice: { explicitBucketBoundaries: [...first.bounds] } } : {};
      this.#histograms.set(full, this.#meter.createHistogram(called, { ...given, ...advice }));
      return [];
    }
    const create = type === 'counter' ? 'createObservableCounter' : 'createObservableGauge';
    const instrument = this.#meter[create](called, given);
    this.#instruments.set(full, instrument);
    return instrument;
  }
}

/** Runs work as part of a span, which ends with it. */
async function within<T>(span: Span, parent: Context, work: () => Promise<T>): Promise<T> {
  try {
    return await context.with(trace.setSpan(parent, span), work);
  } finally {
    span.end();
  }
}

const GETTER = {
  keys: () => [],
  get: (request: ServedRequest, name: string) => request.header(name.toLowerCase()),
};

/** A name without its unit, and the unit as OpenTelemetry writes it. */
function toUnit(name: string): { readonly own: string; readonly unit?: string } {
  if (name.endsWith('_seconds')) return { own: name.slice(0, -'_seconds'.length), unit: 's' };
  if (name.endsWith('_bytes')) return { own: name.slice(0, -'_bytes'.length), unit: 'By' };
  return { own: name };
}

function seriesOf(value: Metric['value']): readonly Series[] {
  if (typeof value === 'number') return [{ labels: {}, value }];
  if (!('label' in value)) return value;
  return Object.entries(value.values).map(([text, each]) => ({ labels: { [value.label]: text }, value: each }));
}
