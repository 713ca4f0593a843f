import { invalid } from '../watch/errors.ts';
import type { WatchEvent } from '../watch/event.ts';
import { toStatus } from '../watch/event.ts';
import type { Watch } from '../watch/watch.ts';
import type { ClientStats } from './client-info.ts';
import type { HubOptions, HubStats, ShutdownOptions } from './hub-options.ts';
import { toSettings } from './hub-options.ts';
import { Reception } from './reception.ts';
import type { Observer } from './tally.ts';

export type { ClientOptions, HubOptions, HubStats, ShutdownOptions } from './hub-options.ts';

/**
 * What clients connect to: a {@link Broadcaster} that numbers its events, encodes each of them once, and gives every client a
 * bounded watch of its own. Publish into it, or let it {@link follow} any watch; then hand it to `createHttpHandler`,
 * `createFetchHandler` and `attachWebSocket`, all at once if you like.
 *
 *     publish --> Broadcaster --+--> window: the last events, for who comes back
 *                               +--> bell --> flusher: all sessions, once per turn of the event loop
 *                               +--> a cursor per session --> its connection
 *
 * A client that names a version goes on right after it. What it missed and what is live meet at one position that is taken in
 * one synchronous step: nothing is lost between them, and nothing comes twice.
 */
export class Hub<E extends WatchEvent = WatchEvent> {
  /** Its other side, which transports speak to: {@link receptionOf}. */
  private readonly reception: Reception;
  /** What is published by itself, until it ends or this does. */
  private readonly followed: Set<Watch<E>> = new Set();

  /** @throws {WatchError} INVALID_ARGUMENT for an option that is not what it should be. */
  constructor(options: HubOptions<E> = {}) {
    // Inside, events are events: which, the compiler has seen to outside.
    this.reception = new Reception(toSettings(options as unknown as HubOptions));
    const { onNotice } = options;
    if (onNotice !== undefined) this.reception.tally.observe({ tell: onNotice });
  }

  /**
   * Resolves when the event is accepted, which under `wait` is when every client has room, and when connections have had the
   * turns of the event loop that keep a burst from being an overflow. `json` is the event's text, for callers that have it: it
   * goes out as it is written. Rejects with CLOSED, OVERLOADED or INVALID_ARGUMENT, and with what JSON.stringify throws.
   */
  publish(event: E, json?: string): Promise<void> {
    return this.reception.publisher.publish(event, json);
  }

  /**
   * Never waits: false when a client with `wait` has no room now, and while another event is being published, as from inside
   * its `toJSON`. Throws CLOSED after shutdown, INVALID_ARGUMENT, and what JSON.stringify throws.
   */
  tryPublish(event: E, json?: string): boolean {
    return this.reception.publisher.tryPublish(event, json);
  }

  /**
   * Publishes all that a watch brings, at the pace that the clients' policy allows, and shuts down when it ends. Resolves
   * when all clients have got theirs. If the watch fails, clients get an ERROR event, and this rejects with the watch's error.
   * {@link shutdown} stops the watch.
   */
  async follow(watch: Watch<E>): Promise<void> {
    const { lifetime } = this.reception;
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

  /** The version of the last accepted event: going on after it misses nothing. */
  get version(): string {
    return this.reception.version;
  }

  stats(): HubStats {
    return this.reception.stats();
  }

  /** Tells someone of every client that comes, goes, is cut, refused, or resumes. The function that comes back ends that. */
  observe(observer: Observer): () => void {
    return this.reception.tally.observe(observer);
  }

  /** What is logged of a hub is its numbers, and not all that it keeps. */
  toJSON(): HubStats {
    return this.stats();
  }

  /**
   * Ends clients at once, such as those whose token has expired; answers how many. They come back, and `authenticate` is asked
   * again: only it can keep them out.
   */
  disconnect(which: (client: ClientStats) => boolean): number {
    const chosen = [...this.reception.sessions].filter((session) => which(session.stats()));
    for (const session of chosen) session.cut('disconnected');
    return chosen.length;
  }

  /**
   * No more events: what was accepted is delivered, then every client's stream ends; resolves when they are gone. A client that
   * does not read can make that long: an aborted `signal` cuts whoever is left. The first call says whether it is the stream or
   * the server that ends.
   */
  async shutdown(options: ShutdownOptions = {}): Promise<void> {
    const { signal, retryAfterMs } = options;
    const closed = this.reception.close(retryAfterMs);
    for (const watch of this.followed) watch.stop();
    const cut = (): void => {
      for (const session of [...this.reception.sessions]) session.cut('deadline');
    };
    if (signal?.aborted) cut();
    signal?.addEventListener('abort', cut, { once: true });
    await closed;
    signal?.removeEventListener('abort', cut);
  }
}

/** For transports: the side of a hub that they speak to, and that applications do not see. INVALID_ARGUMENT for what is no hub. */
export function receptionOf<E extends WatchEvent>(hub: Hub<E>): Reception {
  // biome-ignore lint/complexity/useLiteralKeys: the way to a private member
  const reception = (hub as Hub<E> | undefined | null)?.['reception'];
  // By its shape: a hub of this package's other copy, ESM or CommonJS, is one, too.
  if (typeof reception?.reserve !== 'function') throw invalid('hub', hub, 'a Hub');
  return reception;
}
