import { messageOf } from '../bridge/client/transport.ts';
import type { CacherStats } from '../storage/storage.ts';
import { getOrMake } from '../watch/errors.ts';
import { counter, Durations, gauge, type Histogram, type Metric, type MetricGroup } from '../watch/telemetry.ts';
import type { KnownHealth } from './health.ts';
import type { QuotaReason } from './http/quotas.ts';

/** In seconds: from an answer from memory to the longest time that a request may take by default. */
const BOUNDS: readonly number[] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** A server's counters. All but `watchers` only grow. */
export class ApiCounts {
  private readonly byCode: Map<string, number> = new Map();
  private readonly byVerb: Map<string, number> = new Map();
  private readonly durations: Map<string, Durations> = new Map();
  private readonly limitedBy: Map<string, number> = new Map();
  watchers: number = 0;
  watchersOpened: number = 0;
  watchersStalled: number = 0;
  /** Counts only streams that have ended; so does `sentBytes`. */
  events: number = 0;
  sentBytes: number = 0;

  answered(code: number, { verb = 'none', durationMs }: { verb?: string | undefined; durationMs: number }): void {
    this.byCode.set(`${code}`, (this.byCode.get(`${code}`) ?? 0) + 1);
    this.byVerb.set(verb, (this.byVerb.get(verb) ?? 0) + 1);
    getOrMake(this.durations, verb, () => new Durations(BOUNDS)).add(Math.max(0, durationMs) / 1_000);
  }

  /**
   * Counts a request that was refused with 429 because of its address, its tenant, or because all places are taken; or whose
   * connection was closed because too many earlier requests on it are unanswered.
   */
  limited(reason: QuotaReason | 'pipelined'): void {
    this.limitedBy.set(reason, (this.limitedBy.get(reason) ?? 0) + 1);
  }

  /** Answered requests, by status code. */
  get requests(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.byCode);
  }

  /** Requests beyond a limit, by the limit. */
  get requestsLimited(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.limitedBy);
  }

  /** How long answered requests took until their answers began, by verb. */
  get durationsByVerb(): Readonly<Record<string, Histogram>> {
    return Object.fromEntries(this.durations);
  }

  get requestsByVerb(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.byVerb);
  }
}

/** A server's statistics, as JSON at `/stats` and as text for Prometheus at `/metrics`. */

/** The statistics of a server at one moment. */
export interface ApiServerStats {
  /** Answered requests, by status code. */
  readonly requests: Readonly<Record<string, number>>;
  /**
   * Requests refused with 429, by the limit: `full`, `address`, `tenant` or `writes`; and as `pipelined`, connections that were
   * closed because they did not wait for earlier answers.
   */
  readonly requestsLimited: Readonly<Record<string, number>>;
  /** Open watches over the network. */
  readonly watchers: number;
  readonly watchersOpened: number;
  /** Watches that were cut because their clients stopped reading. */
  readonly watchersStalled: number;
  /** Watch events that were sent. */
  readonly events: number;
  /** Bytes that were sent for watches and long lists. */
  readonly sentBytes: number;
  /** The resources that have been used. */
  readonly resources: readonly ResourceStats[];
}

/** The statistics of one resource at one moment. */
export interface ResourceStats {
  /** Such as `orders.example.com`. All its versions are one collection, and are counted together. */
  readonly resource: string;
  /** Open watches over the network. */
  readonly watchers: number;
  /** How many of them have events waiting because their connections are full. */
  readonly behind: number;
  /** The largest number of events waiting for any one of them. */
  readonly lag: number;
  /** Its cache, whose watches include those in the same process; undefined if it has none. */
  readonly cache: CacheStats | undefined;
}

/** The state of a cache; an error is its message. */
export type CacheStats = Omit<CacherStats, 'error'> & { readonly error?: string | undefined };

export function toCacheStats({ error, ...stats }: CacherStats): CacheStats {
  return error === undefined ? stats : { ...stats, error: messageOf(error) };
}

/** What `/metrics` has in addition to `/stats`. */
interface MoreFigures {
  readonly requestsByVerb: Readonly<Record<string, number>>;
  readonly durationsByVerb: Readonly<Record<string, Histogram>>;
  /** Undefined until somebody asks. */
  readonly health: KnownHealth | undefined;
}

function ofHealth(health: KnownHealth | undefined): readonly Metric[] {
  const told = (name: string, help: string, value: number | undefined): Metric =>
    gauge(name, help, value ?? { label: '', values: {} });
  return [
    told('ready', 'Whether the server is ready (1) or not (0), as at /readyz.', health && Number(health.ready)),
    told(
      'storage_healthy',
      'Whether the storage answers and can be written to (1) or not (0).',
      health && Number(health.storage),
    ),
    told('storage_check_seconds', 'How long the last check of the storage took.', health && health.storageMs / 1_000),
  ];
}

type Read = (resource: ResourceStats) => number | undefined;

/** The metrics of each resource. */
const OF_RESOURCES: readonly (readonly [typeof gauge, name: string, help: string, Read])[] = [
  [gauge, 'resource_watchers', 'Open watches, by resource.', ({ watchers }) => watchers],
  [
    gauge,
    'resource_watchers_behind',
    'Open watches with events waiting because their connections are full, by resource.',
    ({ behind }) => behind,
  ],
  [gauge, 'resource_max_lag_events', 'The largest number of events waiting for one watch, by resource.', ({ lag }) => lag],
  [
    gauge,
    'cache_ready',
    'Whether the cache follows the storage (1) or not (0), by resource.',
    ({ cache }) => Number(cache?.phase === 'ready'),
  ],
  [gauge, 'cache_objects', 'Objects in the cache, by resource.', ({ cache }) => cache?.objects],
  [gauge, 'cache_window_events', 'Past changes kept in the cache for watches, by resource.', ({ cache }) => cache?.window.items],
  [gauge, 'cache_window_bytes', 'Bytes of the past changes kept in the cache, by resource.', ({ cache }) => cache?.window.bytes],
  [counter, 'cache_changes_total', 'Object changes that reached the cache, by resource.', ({ cache }) => cache?.changes],
  [
    counter,
    'cache_expired_watches_total',
    'Watches that got a 410 because they were too slow, by resource.',
    ({ cache }) => cache?.fellBehind,
  ],
  [
    counter,
    'cache_gaps_total',
    'How often all watches got a 410 because the storage had lost past changes, by resource.',
    ({ cache }) => cache?.gaps,
  ],
];

/** No labels for clients or names, whose number is unbounded. The number of resources is bounded. */
export function toMetrics(stats: ApiServerStats, { requestsByVerb, durationsByVerb, health }: MoreFigures): MetricGroup {
  const by = (read: Read): Metric['value'] => ({
    label: 'resource',
    values: Object.fromEntries(stats.resources.map((each) => [each.resource, read(each) ?? 0])),
  });
  const { requests, requestsLimited } = stats;
  return {
    prefix: 'watchmux_apiserver_',
    metrics: [
      counter('requests_total', 'Answered requests, by status code.', { label: 'code', values: requests }),
      counter('requests_by_verb_total', 'Answered requests, by verb.', { label: 'verb', values: requestsByVerb }),
      {
        name: 'request_duration_seconds',
        type: 'histogram',
        help: 'How long requests took until their answers began, by verb.',
        value: { label: 'verb', values: durationsByVerb },
      },
      ...ofHealth(health),
      counter('requests_limited_total', 'Requests refused with 429, by the limit.', { label: 'limit', values: requestsLimited }),
      gauge('watchers', 'Open watches.', stats.watchers),
      counter('watchers_opened_total', 'Watches opened.', stats.watchersOpened),
      counter('watchers_stalled_total', 'Watches cut because their clients stopped reading.', stats.watchersStalled),
      counter('watch_events_total', 'Watch events sent.', stats.events),
      counter('sent_bytes_total', 'Bytes sent for watches and long lists.', stats.sentBytes),
      ...OF_RESOURCES.map(([make, name, help, read]) => make(name, help, by(read))),
    ],
  };
}
