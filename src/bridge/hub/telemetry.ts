import type { Metric } from './metrics.ts';

/** Metrics whose names begin alike. */
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
 * Where a hub, an API server, a cluster or an operator tells what it does: an `OpenTelemetry` of `watchmux/opentelemetry`. What is
 * given none does nothing for it. `serve`, `send` and `reconcile` do the work that they get, once, and return what it returns.
 */
export interface Telemetry {
  /** Reads metrics whenever they are collected, until the function that it returns is called. The metrics are always the same. */
  observe(read: () => readonly MetricGroup[]): () => void;
  /** A value of a histogram, which `observe` has among its metrics, by its full name. */
  record(name: string, value: number, labels: Readonly<Record<string, string>>): void;
  serve<T>(request: ServedRequest, work: (tell: (answer: ServedAnswer) => void) => Promise<T>): Promise<T>;
  /** `headers` belong to the request. */
  send(method: string, url: URL, work: (headers: Readonly<Record<string, string>>) => Promise<Response>): Promise<Response>;
  /** `result` is undefined if the reconcile was told to stop. */
  reconcile<T>(start: ReconcileStart, work: (tell: (result: string | undefined) => void) => Promise<T>): Promise<T>;
}
