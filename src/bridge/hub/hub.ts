import { verdictOf, whenAborted } from '../../watch/abort.ts';
import { checkOptions, invalid, requireMethod, WatchError } from '../../watch/errors.ts';
import { toStatus, type WatchEvent } from '../../watch/event.ts';
import { counter, DEFAULT_PREFIX, gauge, type Metric, type MetricsOptions, toTelemetry, toText } from '../../watch/telemetry.ts';
import type { Watch } from '../../watch/watch.ts';
import type { ClientStats } from './connection.ts';
import { HubCore } from './hub-core.ts';
import { type HubOptions, type HubStats, type PublishOptions, type ShutdownOptions, toSettings } from './hub-options.ts';
import { type HubEvent, type HubWatchOptions, watchHub } from './hub-watch.ts';
import type { Observer } from './tally.ts';

export type { ClientOptions, HubOptions, HubStats, ShutdownOptions } from './hub-options.ts';

/**
 * A broadcaster for remote clients. It numbers its events, encodes each once, and gives every client a bounded watch of its own.
 * Publish into it, or let it {@link follow} a watch. Then pass it to `createHttpHandler`, `createFetchHandler` and
 * `attachWebSocket`, or to several of them.
 *
 *     publish --> Broadcaster --+--> window: the last events, for clients that reconnect
 *                               +--> flush signal --> all sessions, once per turn of the event loop
 *                               +--> a cursor per session --> its connection
 *
 * A client that names a version continues right after it. The events it missed and the live events meet at one position, which is
 * taken in one synchronous step, so nothing is lost or repeated between them.
 */
export class Hub<E extends WatchEvent = WatchEvent> {
  /** The side that transports use; see {@link coreOf}. */
  private readonly core: HubCore;
  /** The watches that `follow` is publishing from. */
  private readonly followed: Set<Watch<E>> = new Set();
  private readonly unobserve: (() => void) | undefined;

  /** @throws {WatchError} INVALID_ARGUMENT for an invalid option. */
  constructor(options: HubOptions<E> = {}) {
    // Internally the event type does not matter; the compiler has checked it outside.
    this.core = new HubCore(toSettings(options as unknown as HubOptions));
    const { onNotice } = options;
    if (onNotice !== undefined) this.core.tally.observe({ tell: onNotice });
    const telemetry = toTelemetry(options.telemetry, (error) => this.core.tally.failed(error, 'telemetry'));
    this.unobserve = telemetry?.observe(() => [{ prefix: DEFAULT_PREFIX, metrics: hubMetrics(this.stats()) }]);
  }

  /**
   * Publishes an event. Resolves when it is accepted, which with `wait` is when every client has room. Also pauses now and then
   * for a turn of the event loop, in which connections can send, so that a burst does not overflow queues. `options` may be the
   * event's JSON text, if the caller has it; it is sent as it is.
   *
   * With a source, resolves when the stream has stored the event; all hubs of the stream then distribute it. If you do not await
   * each publish before the next, their events may be stored in another order.
   *
   * @throws {WatchError} (rejects) CLOSED after `shutdown`; OVERLOADED if `maxPending` publishes are waiting; INVALID_ARGUMENT
   * for an invalid event or option; FRAME_TOO_LARGE for an event longer than `maxEventBytes`; TIMEOUT if a source does not
   * acknowledge the event: it may have been stored anyway, and publishing it again with the same `id` is safe. Also rejects
   * with what JSON.stringify throws.
   */
  publish(event: E, options?: string | PublishOptions): Promise<void> {
    if (this.core.source !== undefined) return this.core.source.publish(event, options);
    if (options === undefined || typeof options === 'string') return this.core.publisher.publish(event, options);
    return this.publishWith(event, options);
  }

  private async publishWith(event: E, options: PublishOptions): Promise<void> {
    const { json, id } = checkOptions(options, ['json', 'id']);
    if (id !== undefined) throw invalid('id', id, 'none, because this hub has no source');
    return this.core.publisher.publish(event, json);
  }

  /**
   * Publishes an event without waiting. Returns false if a `wait` client has no room now, or if another event is being published
   * (for example when called from its `toJSON`).
   *
   * @throws {WatchError} CLOSED after `shutdown`; INVALID_ARGUMENT for an invalid event, and for a hub with a source, because
   * it must wait for an acknowledgement; FRAME_TOO_LARGE for an event longer than `maxEventBytes`. Also throws what
   * JSON.stringify throws.
   */
  tryPublish(event: E, json?: string): boolean {
    this.refuseSource('tryPublish', 'publish');
    return this.core.publisher.tryPublish(event, json);
  }

  /**
   * Publishes all events of a watch, as fast as the clients' policies allow, and shuts down when the watch ends. Resolves when
   * all clients have received their events. If the watch fails, or an event cannot be published, clients get an ERROR event, and
   * this rejects with the error. {@link shutdown} stops the watch.
   *
   * @throws {WatchError} (rejects) INVALID_ARGUMENT for a hub with a source, whose stream does not end with a watch.
   */
  async follow(watch: Watch<E>): Promise<void> {
    this.refuseSource('follow', 'a loop over the watch, and publish');
    requireMethod('watch', watch, 'tryNext', 'a Watch');
    const { lifetime } = this.core;
    this.followed.add(watch);
    if (lifetime.closing) watch.stop();
    try {
      for await (const event of watch) await this.publish(event);
    } catch (error) {
      if (!lifetime.closing) {
        lifetime.failure = toStatus({ code: 500, reason: 'InternalError', message: 'the source of this watch failed' });
        await this.publish({ type: 'ERROR', object: lifetime.failure } as WatchEvent as E).catch(() => {});
        await this.shutdown();
        throw error;
      }
    } finally {
      this.followed.delete(watch);
    }
    await this.shutdown();
  }

  /**
   * Resolves when the hub serves clients: at once without a source; with one, when it has read to the end of the stream.
   * Clients that connect earlier wait. If the connection to the source is lost later, the hub stays ready.
   *
   * @throws {WatchError} (rejects) CLOSED after `shutdown`; the signal's reason when it aborts.
   */
  async ready(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    const { signal = new AbortController().signal } = checkOptions(options, ['signal']);
    signal.throwIfAborted();
    if (await this.core.ready(signal)) return;
    signal.throwIfAborted();
    throw new WatchError('CLOSED', 'ready: the hub is shut down');
  }

  /**
   * Watches the hub's events in this process, from now on or right after a version. Events carry their `resourceVersion`: a
   * worker that stores it with its results can continue there after a restart, at any hub of the same source.
   *
   * The watch reads at its own pace and holds nobody up. It is never cut while the hub, or its source, holds the events that it
   * has not read. When they are gone, it delivers one ERROR with code 410 and ends; start over without `after`, from a fresh
   * state. Without `after`, the watch of a hub with a source begins at the hub's position, or at that where it becomes {@link
   * ready}. When the hub shuts down, the watch delivers the rest and ends; with a source, whose stream goes on, it just ends.
   *
   * @throws {WatchError} INVALID_ARGUMENT for an invalid option; CLOSED after `shutdown`; the signal's reason if it has aborted.
   */
  watch(options: HubWatchOptions<E> = {}): Watch<HubEvent<E>> {
    return watchHub<E>(this.core, options);
  }

  /** The version of the last accepted event. Continuing after it misses nothing. */
  get version(): string {
    return this.core.version;
  }

  /** Returns the hub's counters and the state of every connected client. */
  stats(): HubStats {
    return this.core.stats();
  }

  /**
   * Returns the hub's counters as a page for Prometheus, in its text format. Serve it as `text/plain; version=0.0.4;
   * charset=utf-8`; you may append the metrics of a library such as prom-client.
   *
   * @throws {WatchError} INVALID_ARGUMENT for a prefix that cannot begin a name, and for an unknown option.
   */
  metrics(options: MetricsOptions = {}): string {
    return toText(hubMetrics(this.stats()), checkOptions(options, ['prefix']));
  }

  /** Reports every client that connects, leaves, is cut, is refused or resumes. Returns a function that ends the observation. */
  observe(observer: Observer): () => void {
    return this.core.tally.observe(observer);
  }

  /** Makes a logged hub show its numbers rather than everything it holds. */
  toJSON(): HubStats {
    return this.stats();
  }

  /**
   * Disconnects the clients that `which` selects at once, for example because their tokens have expired. Returns how many. They
   * reconnect, and `authenticate` is called again: only it can keep them out.
   *
   * @throws {WatchError} INVALID_ARGUMENT if `which` returns a promise; then nobody is disconnected.
   */
  disconnect(which: (client: ClientStats) => boolean): number {
    this.core.disconnects++;
    const chosen = [...this.core.sessions.all].filter((session) => verdictOf('which', which(session.stats())));
    for (const session of chosen) session.cut('disconnected');
    return chosen.length;
  }

  private refuseSource(what: string, instead: string): void {
    if (this.core.source !== undefined) throw invalid(what, 'a hub with a source', `a hub without a source; use ${instead}`);
  }

  /**
   * Closes the hub: refuses new events, delivers the accepted ones, then ends every client's stream. Resolves when all clients
   * are gone. A client that does not read can delay this; when `signal` aborts, the remaining clients are cut. The first call
   * decides whether the stream ends or only this server goes away (`retryAfterMs`). With a source, only this server ever goes
   * away, and `retryAfterMs` defaults to 1,000. Publishes that are not yet acknowledged continue, and settle as usual.
   *
   * @throws {WatchError} (rejects) INVALID_ARGUMENT for an invalid `retryAfterMs`.
   */
  async shutdown(options: ShutdownOptions = {}): Promise<void> {
    const { signal, retryAfterMs } = checkOptions(options, ['signal', 'retryAfterMs']);
    const closed = this.core.close(retryAfterMs);
    for (const watch of this.followed) watch.stop();
    const cut = (): void => {
      for (const session of [...this.core.sessions.all]) session.cut('deadline');
    };
    const leave = whenAborted(signal, cut);
    await closed;
    leave();
    this.unobserve?.();
  }
}

/** Returns the side of a hub that transports use and applications do not. Throws INVALID_ARGUMENT for anything but a hub. */
export function coreOf<E extends WatchEvent>(hub: Hub<E>): HubCore {
  // biome-ignore lint/complexity/useLiteralKeys: the way to a private member
  const core = (hub as Hub<E> | undefined | null)?.['core'];
  // Checked by shape, so that a hub of the package's other copy (ESM or CommonJS) is recognized too.
  if (typeof core?.reserve !== 'function') throw invalid('hub', hub, 'a Hub');
  return core;
}

/**
 * Returns a hub's metrics. None is labelled by client, because each client would leave its series behind in Prometheus.
 * `Hub.stats` has the numbers of one client.
 */
export function hubMetrics({ accepted, oversize, clients, total }: HubStats): readonly Metric[] {
  let [queued, lag, buffered] = [0, 0, 0];
  const transports: Record<string, number> = { http: 0, sse: 0, websocket: 0 };
  for (const client of clients) {
    queued += client.queued;
    buffered += client.bufferedBytes;
    lag = Math.max(lag, client.lag);
    transports[client.transport] = (transports[client.transport] ?? 0) + 1;
  }
  const by = (label: string, values: Readonly<Partial<Record<string, number>>>): Metric['value'] => ({
    label,
    values: values as Readonly<Record<string, number>>,
  });
  return [
    counter('events_accepted_total', 'Events that were published and accepted.', accepted),
    counter('events_oversize_total', 'Events that were refused, because they are longer than maxEventBytes.', oversize),
    counter('events_delivered_total', 'Events written to connections, over all clients.', total.delivered),
    counter(
      'events_dropped_total',
      'Events that clients did not get because their queues were full, or that coalesce has folded.',
      total.dropped,
    ),
    counter('sent_bytes_total', 'Bytes of events written to connections.', total.sentBytes),
    counter('clients_opened_total', 'Clients that have connected.', total.clients),
    counter('clients_resumed_total', 'Clients that have reconnected and continued where they were.', total.resumes),
    counter('clients_refused_total', 'Clients that were refused, by reason.', by('reason', total.refusals)),
    counter('clients_cut_total', 'Clients that were cut, by reason.', by('reason', total.cuts)),
    gauge('clients', 'Clients that are connected, by transport.', by('transport', transports)),
    gauge('queued_events', 'Events queued for connections, over all clients.', queued),
    gauge('max_lag_events', 'Positions between the slowest client and the head of the stream.', lag),
    gauge('buffered_bytes', 'Bytes in connections that the network has not taken yet.', buffered),
  ];
}
