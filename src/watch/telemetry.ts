/**
 * What a component reports about itself: a hub, an API server, a cluster, an operator.
 *
 *     counts ---> Metric ---> toText: the text format of Prometheus, at `/metrics`
 *                    '------> Telemetry.observe --.
 *     a request, a reconcile ---> Telemetry -------'---> watchmux/opentelemetry, the built-in one
 */
import { isPromise } from './abort.ts';
import { invalid, requireMethod } from './errors.ts';

/** The content type of {@link toText}: the text format of Prometheus. */
export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** Options of `Hub.metrics`. */
export interface MetricsOptions {
  /** The prefix of every name, default `watchmux_`. Metrics of two hubs on one page need two prefixes. */
  readonly prefix?: string | undefined;
}

/** One metric: its name without prefix, and its samples. */
export interface Metric {
  /** By Prometheus' conventions: it ends with the unit, followed by `_total` for a counter. */
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  /** One value, one per value of a label, or one per set of labels. */
  readonly value: number | Labelled<number> | Labelled<Histogram> | readonly Series[];
}

/** One value, and its labels. */
export interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number | Histogram;
}

/** One value per value of a label. */
interface Labelled<T> {
  readonly label: string;
  readonly values: Readonly<Record<string, T>>;
}

/** How often values were in which range. */
export interface Histogram {
  /** The largest value of each range except the last, which is unbounded. */
  readonly bounds: readonly number[];
  /** How many values are in each range: one more than there are bounds. */
  readonly counts: readonly number[];
  /** The sum of all values. */
  readonly sum: number;
}

/** Durations in seconds, by how long they were. */
export class Durations implements Histogram {
  readonly bounds: readonly number[];
  readonly counts: number[];
  sum: number = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  add(seconds: number): void {
    let index = 0;
    while (index < this.bounds.length && seconds > (this.bounds[index] as number)) index++;
    this.counts[index] = (this.counts[index] ?? 0) + 1;
    this.sum += seconds;
  }
}

/** The default prefix of metrics. */
export const DEFAULT_PREFIX = 'watchmux_';
const PREFIX = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;

/**
 * Returns metrics in the text format of Prometheus, version 0.0.4. Throws INVALID_ARGUMENT for a prefix that cannot begin a name.
 */
export function toText(metrics: readonly Metric[], { prefix = DEFAULT_PREFIX }: MetricsOptions = {}): string {
  if (typeof prefix !== 'string' || !PREFIX.test(prefix))
    throw invalid('prefix', prefix, 'letters, digits, _ and :, not beginning with a digit');
  return metrics.map((metric) => familyOf(metric, prefix + metric.name)).join('');
}

/** A metric that goes up and down. */
export function gauge(name: string, help: string, value: Metric['value']): Metric {
  return { name, type: 'gauge', help, value };
}

/** A metric that only grows. */
export function counter(name: string, help: string, value: Metric['value']): Metric {
  return { name, type: 'counter', help, value };
}

function familyOf({ type, help, value }: Metric, name: string): string {
  const head = `# HELP ${name} ${help.replace(/[\\\n]/g, escaped)}\n# TYPE ${name} ${type}\n`;
  if (typeof value === 'number') return `${head}${name} ${numeral(value)}\n`;
  const all = 'label' in value ? seriesOf(value) : value;
  return head + all.map((each) => samplesOf(each, name)).join('');
}

function seriesOf({ label, values }: Labelled<number | Histogram>): Series[] {
  return Object.entries(values).map(([text, value]) => ({ labels: { [label]: text }, value }));
}

/** The samples of a number, or of a histogram, whose buckets are cumulative. */
function samplesOf({ labels, value }: Series, name: string): string {
  const all = Object.entries(labels).map(([label, text]) => `${label}="${text.replace(/[\\\n"]/g, escaped)}"`);
  const own = all.join(',');
  if (typeof value === 'number') return `${name}{${own}} ${numeral(value)}\n`;
  let count = 0;
  const buckets = value.counts.map((some, at) => {
    count += some;
    return `${name}_bucket{${own},le="${numeral(value.bounds[at] ?? Infinity)}"} ${count}\n`;
  });
  return `${buckets.join('')}${name}_sum{${own}} ${numeral(value.sum)}\n${name}_count{${own}} ${count}\n`;
}

/** Prometheus spells Infinity differently. */
function numeral(value: number): string {
  return `${value}`.replace(/^(-?)Infinity$/, (_, sign: string) => `${sign || '+'}Inf`);
}

function escaped(character: string): string {
  return character === '\n' ? '\\n' : `\\${character}`;
}

/** Metrics whose names have one prefix. */
export interface MetricGroup {
  readonly prefix: string;
  readonly metrics: readonly Metric[];
}

/** A request that an API server answers. */
export interface ServedRequest {
  readonly method: string;
  /** As it was sent. */
  readonly path: string;
  readonly scheme: 'http' | 'https';
  /** A header by its name in lower case. */
  header(name: string): string | undefined;
}

/** How it was answered. */
export interface ServedAnswer {
  /** Undefined if the path is not a resource, or if the request was refused earlier. */
  readonly verb?: string | undefined;
  /** The pattern of the path, such as `/apis/example.com/v1/orders/{name}`. Undefined if clients could invent it. */
  readonly route?: string | undefined;
  readonly code: number;
  /** The time from its arrival until its response began. */
  readonly durationMs: number;
  readonly address: string;
}

/** A reconcile of an operator. */
export interface ReconcileStart {
  readonly controller: string;
  readonly namespace: string;
  readonly name: string;
  readonly attempt: number;
}

/**
 * Where a hub, an API server, a cluster or an operator reports what it does: an `OpenTelemetry` of `watchmux/opentelemetry`.
 * Without one, there is no overhead. `serve`, `send` and `reconcile` do the work that they get, once, and return its result.
 */
export interface Telemetry {
  /** Reads metrics whenever they are collected, until the function that it returns is called. The metrics are always the same. */
  observe(read: () => readonly MetricGroup[]): () => void;
  /** Records a value of a histogram, which `observe` also reports, by its full name. */
  record(name: string, value: number, labels: Readonly<Record<string, string>>): void;
  serve<T>(request: ServedRequest, work: (tell: (answer: ServedAnswer) => void) => Promise<T>): Promise<T>;
  /** `headers` belong to the request. */
  send(method: string, url: URL, work: (headers: Readonly<Record<string, string>>) => Promise<Response>): Promise<Response>;
  /** `result` is undefined if the reconcile was told to stop. */
  reconcile<T>(start: ReconcileStart, work: (tell: (result: string | undefined) => void) => Promise<T>): Promise<T>;
}

/**
 * Does work once, through telemetry, and returns its result, even if the telemetry throws. `without`: the argument of the work if
 * the telemetry never begins it.
 */
export async function toldWork<T, Given>(
  work: (given: Given) => Promise<T>,
  {
    without,
    through,
    failed,
  }: {
    readonly without: NoInfer<Given>;
    readonly through: (own: (given: Given) => Promise<T>) => unknown;
    readonly failed: (error: unknown) => void;
  },
): Promise<T> {
  let done: Promise<T> | undefined;
  try {
    await through((given) => (done ??= work(given)));
  } catch (error) {
    const result = await (done ?? work(without)); // throws what the work has thrown
    failed(error);
    return result;
  }
  return done ?? work(without);
}

/**
 * The same telemetry, but errors of its methods do not reach those who are served. `failed` gets the first one.
 *
 * @throws {WatchError} INVALID_ARGUMENT for anything but a Telemetry.
 */
export function toTelemetry(given: Telemetry | undefined, failed: (error: unknown) => void): Telemetry | undefined {
  if (given === undefined) return undefined;
  const telemetry = requireMethod('telemetry', given, 'observe', 'an OpenTelemetry');
  let isTold = false;
  const tellOnce = (cause: unknown): void => {
    if (!isTold) failed(new Error('telemetry failed; further failures are not reported', { cause }));
    isTold = true;
  };
  const safely = <R>(call: () => R): R | undefined => {
    try {
      const made = call();
      if (isPromise(made)) made.then(undefined, tellOnce);
      return made;
    } catch (error) {
      tellOnce(error);
      return undefined;
    }
  };
  type Tell<A> = (told: A) => void;
  const quiet =
    <A>(tell: Tell<A>): Tell<A> =>
    (told) =>
      void safely(() => tell(told));
  const silent = (): void => {};
  return {
    observe(read) {
      const stop = safely(() => telemetry.observe(read));
      return () => void safely(() => stop?.());
    },
    record: (...all) => void safely(() => telemetry.record(...all)),
    serve: (request, work) =>
      toldWork((tell: Tell<ServedAnswer>) => work(quiet(tell)), {
        ...{ without: silent, failed: tellOnce, through: (own) => telemetry.serve(request, own) },
      }),
    send: (method, url, work) =>
      toldWork(work, { without: {}, failed: tellOnce, through: (own) => telemetry.send(method, url, own) }),
    reconcile: (start, work) =>
      toldWork((tell: Tell<string | undefined>) => work(quiet(tell)), {
        ...{ without: silent, failed: tellOnce, through: (own) => telemetry.reconcile(start, own) },
      }),
  };
}
