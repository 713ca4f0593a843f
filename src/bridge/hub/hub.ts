import { having, invalid } from '../../watch/errors.ts';
import type { WatchEvent } from '../../watch/event.ts';
import { toStatus } from '../../watch/event.ts';
import { known } from '../../watch/options.ts';
import type { Watch } from '../../watch/watch.ts';
import type { ClientStats } from './client-info.ts';
import { HubCore } from './hub-core.ts';
import type { HubOptions, HubStats, ShutdownOptions } from './hub-options.ts';
import { toSettings } from './hub-options.ts';
import type { MetricsOptions } from './metrics.ts';
import { hubMetrics, toText } from './metrics.ts';
import type { Observer } from './tally.ts';

export type { ClientOptions, HubOptions, HubStats, ShutdownOptions } from './hub-options.ts';
export type { MetricsOptions } from './metrics.ts';

/**
 * A broadcaster for remote clients. It numbers its events, encodes each once, and gives every client a bounded watch of its own.
 * Publish into it, or let it {@link follow} a watch. Then pass it to `createHttpHandler`, `createFetchHandler` and
 * `attachWebSocket`, or to several of them.
 *
 *     publish --> Broadcaster --+--> window: the last events, for clients that reconnect
 *                               +--> flush signal --> flusher: all sessions, once per turn of the event loop
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

  /** @throws {WatchError} INVALID_ARGUMENT for an invalid option. */
  constructor(options: HubOptions<E> = {}) {
    // Internally the event type does not matter; the compiler has checked it outside.
    this.core = new HubCore(toSettings(options as unknown as HubOptions));
    const { onNotice } = options;
    if (onNotice !== undefined) this.core.tally.observe({ tell: onNotice });
  }

  /**
   * Publishes an event. Resolves when it is accepted, which with `wait` is when every client has room. Also pauses now and then
   * for a turn of the event loop, in which connections can send, so that a burst does not overflow queues. `json` is the event's
   * JSON text, if the caller has it; it is sent as it is.
   *
   * @throws {WatchError} (rejects) CLOSED after `shutdown`; OVERLOADED if `maxPending` publishes are waiting; INVALID_ARGUMENT
   * for an invalid event. Also rejects with what JSON.stringify throws.
   */
  publish(event: E, json?: string): Promise<void> {
    return this.core.publisher.publish(event, json);
  }

  /**
   * Publishes an event without waiting. Returns false if a `wait` client has no room now, or if another event is being published
   * (for example when called from its `toJSON`).
   *
   * @throws {WatchError} CLOSED after `shutdown`; INVALID_ARGUMENT for an invalid event. Also throws what JSON.stringify throws.
   */
  tryPublish(event: E, json?: string): boolean {
    return this.core.publisher.tryPublish(event, json);
  }

  /**
   * Publishes all events of a watch, as fast as the clients' policies allow, and shuts down when the watch ends. Resolves when
   * all clients have received their events. If the watch fails, clients get an ERROR event, and this rejects with the watch's
   * error. {@link shutdown} stops the watch.
   */
  async follow(watch: Watch<E>): Promise<void> {
    having('watch', watch, 'tryNext', 'a Watch');
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

  /** The version of the last accepted event. Continuing after it misses nothing. */
  get version(): string {
    return this.core.version;
  }

  /** Returns the hub's counters and the state of every connected client. */
  stats(): HubStats {
    return this.core.stats();
  }

  /**
   * Returns the hub's counters as a page for Prometheus, in its text format. Serve it as
   * `text/plain; version=0.0.4; charset=utf-8`; a page may go on with the metrics of a library such as prom-client.
   *
   * @throws {WatchError} INVALID_ARGUMENT for a prefix that cannot begin a name.
   */
  metrics(options: MetricsOptions = {}): string {
    return toText(hubMetrics(this.stats()), options);
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
   */
  disconnect(which: (client: ClientStats) => boolean): number {
    const chosen = [...this.core.sessions].filter((session) => which(session.stats()));
    for (const session of chosen) session.cut('disconnected');
    return chosen.length;
  }

  /**
   * Closes the hub: refuses new events, delivers the accepted ones, then ends every client's stream. Resolves when all clients
   * are gone. A client that does not read can delay this; when `signal` aborts, the remaining clients are cut. The first call
   * decides whether the stream ends or only this server goes away (`retryAfterMs`).
   *
   * @throws {WatchError} (rejects) INVALID_ARGUMENT for an invalid `retryAfterMs`.
   */
  async shutdown(options: ShutdownOptions = {}): Promise<void> {
    const { signal, retryAfterMs } = known(options, ['signal', 'retryAfterMs']);
    const closed = this.core.close(retryAfterMs);
    for (const watch of this.followed) watch.stop();
    const cut = (): void => {
      for (const session of [...this.core.sessions]) session.cut('deadline');
    };
    if (signal?.aborted) cut();
    signal?.addEventListener('abort', cut, { once: true });
    await closed;
    signal?.removeEventListener('abort', cut);
  }
}

/** Returns the side of a hub that transports use, and applications do not. Throws INVALID_ARGUMENT for anything but a hub. */
export function coreOf<E extends WatchEvent>(hub: Hub<E>): HubCore {
  // biome-ignore lint/complexity/useLiteralKeys: the way to a private member
  const core = (hub as Hub<E> | undefined | null)?.['core'];
  // Checked by shape, so that a hub of the package's other copy (ESM or CommonJS) is recognized too.
  if (typeof core?.reserve !== 'function') throw invalid('hub', hub, 'a Hub');
  return core;
}
