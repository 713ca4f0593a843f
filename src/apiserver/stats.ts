/** What a server tells about itself, as JSON at `/stats` and as text for Prometheus at `/metrics`. */
import { messageOf } from '../bridge/client/transport.ts';
import { counter, type Metric, toText } from '../bridge/hub/metrics.ts';
import type { CacherStats } from '../storage/cacher/options.ts';

/** The statistics of a server at one moment. */
export interface ApiServerStats {
  /** Requests that were answered, by status code. */
  readonly requests: Readonly<Record<string, number>>;
  /** Those that were refused with 429, by the limit: `full`, `address`, `tenant` or `writes`. */
  readonly requestsLimited: Readonly<Record<string, number>>;
  /** Open watches over the network. */
  readonly watchers: number;
  readonly watchersOpened: number;
  /** Watches that were cut because their clients took nothing. */
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
  /** How many of them have events waiting because their connections have no room. */
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

/** Nothing is labelled by client or by name: their number has no bound. That of resources has. */
export function toMetricsText(stats: ApiServerStats, requestsByVerb: Readonly<Record<string, number>>): string {
  const gauge = (name: string, help: string, value: Metric['value']): Metric => ({ name, type: 'gauge', help, value });
  const by = (read: (resource: ResourceStats) => number | undefined): Metric['value'] => {
    const values = stats.resources.map((each): [string, number] => [each.resource, read(each) ?? 0]);
    return { label: 'resource', values: Object.fromEntries(values) };
  };
  return toText(
    [
      counter('requests_total', 'Requests that were answered, by the code of the answer.', {
        label: 'code',
        values: stats.requests,
      }),
      counter('requests_by_verb_total', 'Requests that were answered, by verb.', { label: 'verb', values: requestsByVerb }),
      counter('requests_limited_total', 'Requests beyond a limit, by the limit.', {
        label: 'limit',
        values: stats.requestsLimited,
      }),
      gauge('watchers', 'Watches that are open.', stats.watchers),
      counter('watchers_opened_total', 'Watches that were opened.', stats.watchersOpened),
      counter('watchers_stalled_total', 'Watches that were cut because their clients took nothing.', stats.watchersStalled),
      counter('watch_events_total', 'Events of watches that were sent.', stats.events),
      counter('sent_bytes_total', 'Bytes of watches and of long lists that were sent.', stats.sentBytes),
      gauge(
        'resource_watchers',
        'Watches that are open, by resource.',
        by(({ watchers }) => watchers),
      ),
      gauge(
        'resource_watchers_behind',
        'Those of them for which events wait.',
        by(({ behind }) => behind),
      ),
      gauge(
        'resource_max_lag_events',
        'The most events that wait for one watch, by resource.',
        by(({ lag }) => lag),
      ),
      gauge(
        'cache_ready',
        'Whether the cache follows the storage, by resource.',
        by(({ cache }) => (cache?.phase === 'ready' ? 1 : 0)),
      ),
      gauge(
        'cache_objects',
        'Objects, by resource.',
        by(({ cache }) => cache?.objects),
      ),
      gauge(
        'cache_window_events',
        'Past changes that are kept for watches, by resource.',
        by(({ cache }) => cache?.window.items),
      ),
      gauge(
        'cache_window_bytes',
        'Bytes that they take.',
        by(({ cache }) => cache?.window.bytes),
      ),
      counter(
        'cache_changes_total',
        'Changes of objects, by resource.',
        by(({ cache }) => cache?.changes),
      ),
      counter(
        'cache_expired_watches_total',
        'Watches ended with 410: too slow.',
        by(({ cache }) => cache?.fellBehind),
      ),
      counter(
        'cache_gaps_total',
        'How often all were, because the storage had lost the past.',
        by(({ cache }) => cache?.gaps),
      ),
    ],
    { prefix: 'watchmux_apiserver_' },
  );
}
