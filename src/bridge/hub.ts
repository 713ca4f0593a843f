import type { Overflow } from '../broadcast/broadcaster.ts';
import { Broadcaster } from '../broadcast/broadcaster.ts';
import { invalid, WatchError, wholeNumber } from '../watch/errors.ts';
import type { Status, WatchEvent } from '../watch/event.ts';
import { toStatus } from '../watch/event.ts';
import type { Watch } from '../watch/watch.ts';
import { Envelope } from './envelope.ts';
import { DEFAULTS, newEpoch, toVersion } from './protocol.ts';
import type { ClientInfo, ClientStats, Sink } from './session.ts';
import { Session } from './session.ts';

/** How a {@link Hub} treats its clients. */
export interface HubOptions<E extends WatchEvent = WatchEvent> {
  /** Events queued per client; default 100. */
  capacity?: number;
  /** What happens to a client whose queue is full; default `disconnect`, the one that neither waits for it nor hides a loss from it. */
  overflow?: Overflow;
  /** A new client first gets the last so many events; default 0. */
  replay?: number;
  /** Clients served at the same time; default 10,000. */
  maxClients?: number;
  /** Publishes that may pend before `publish` rejects with OVERLOADED; default 10,000. */
  maxPending?: number;
  /** For `coalesce`: what an event is about. Default: namespace and name in `object.metadata`; events without are not folded. */
  keyOf?: (event: E) => string;
  /** Names this life of the stream in versions; default random. Letters, digits, `-` and `_`. */
  epoch?: string;
}

/** A hub in numbers. `total` counts clients that have gone, too. */
export interface HubStats {
  /** The version of the last accepted event. */
  readonly version: string;
  /** Events accepted. */
  readonly accepted: number;
  readonly clients: readonly ClientStats[];
  readonly total: { readonly clients: number; readonly refused: number; readonly delivered: number; readonly dropped: number };
}

/**
 * What clients connect to: a {@link Broadcaster} that numbers its events, encodes each of them once, and gives every client a
 * bounded watch of its own. Publish into it, or let it {@link follow} any watch; then hand it to `createHttpHandler` and
 * `attachWebSocket`, both at once if you like.
 *
 * With `replay`, a client's first events are the last ones accepted before it came. Replay and live meet at one position that
 * is taken in one synchronous step: nothing is lost between them, and nothing comes twice.
 */
export class Hub<E extends WatchEvent = WatchEvent> {
  private readonly broadcaster: Broadcaster<Envelope>;
  private readonly epoch: string;
  private readonly replay: number;
  private readonly maxClients: number;
  private readonly maxPending: number;
  /** Clients get a turn after so many events: half a queue. */
  private readonly pace: number;
  /** The last events, as a watcher that nobody waits for holds them: never more than `replay`. */
  private readonly tail: Watch<Envelope> | undefined;
  private recent: Envelope[] = [];
  private readonly sessions: Set<Session> = new Set();
  private sequence: number = 0;
  private accepted: number = 0;
  private pending: number = 0;
  private unpaced: number = 0;
  private closing: Promise<void> | undefined = undefined;
  private total: { clients: number; refused: number; delivered: number; dropped: number };

  constructor(options: HubOptions<E> = {}) {
    const { capacity = DEFAULTS.capacity, overflow = 'disconnect', keyOf } = options;
    this.epoch = options.epoch ?? newEpoch();
    if (!/^[\w-]{1,64}$/.test(this.epoch)) throw invalid('epoch', this.epoch, '1 to 64 letters, digits, - or _');
    this.replay = wholeNumber('replay', options.replay ?? 0);
    this.maxClients = wholeNumber('maxClients', options.maxClients ?? DEFAULTS.maxClients, 1);
    this.maxPending = wholeNumber('maxPending', options.maxPending ?? 10_000);
    this.pace = Math.min(1_024, Math.max(1, capacity >> 1));
    // Nothing may be accepted and not yet distributed: neither the tail nor a new client would see it.
    this.broadcaster = new Broadcaster<Envelope>({ capacity, overflow, incoming: 0, keyOf: (event) => key(event, keyOf) });
    this.tail = this.replay > 0 ? this.broadcaster.watch({ capacity: this.replay, overflow: 'drop-oldest' }) : undefined;
    this.total = { clients: 0, refused: 0, delivered: 0, dropped: 0 };
  }

  /**
   * Resolves when the event is accepted, which under `wait` is when every client has room, and when the clients have had the
   * turns of the event loop that keep a burst from being an overflow. Rejects with CLOSED or OVERLOADED.
   * `json` is the event's text, for callers that have it: one line, and trusted.
   */
  async publish(event: E, json?: string): Promise<void> {
    if (this.pending >= this.maxPending) {
      throw new WatchError('OVERLOADED', `publish: ${this.maxPending} publishes pend already`, { limit: this.maxPending });
    }
    const envelope = this.envelop(event, json);
    if (this.pending > 0 || !this.accepts(envelope)) {
      this.sequence = envelope.sequence;
      this.pending++;
      try {
        await this.broadcaster.publish(envelope);
        this.accepted++;
      } finally {
        this.pending--;
      }
    }
    if (++this.unpaced < this.pace) return;
    this.unpaced = 0;
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** Never waits: false when a client with `wait` has no room now. Throws CLOSED after shutdown. */
  tryPublish(event: E): boolean {
    return this.pending === 0 && this.accepts(this.envelop(event));
  }

  /**
   * Publishes all that a watch brings, at the pace that the clients' policy allows, and shuts down when it ends. Resolves
   * when all clients have got theirs. If the watch fails, clients get an ERROR event, and this rejects with the watch's error.
   */
  async follow(watch: Watch<E>): Promise<void> {
    try {
      for await (const event of watch) await this.publish(event);
    } catch (error) {
      if (this.closing === undefined) {
        const status = toStatus({ code: 500, reason: 'InternalError', message: 'the source of this watch failed' });
        await this.publish({ type: 'ERROR', object: status } as WatchEvent as E).catch(() => {});
        await this.shutdown();
        throw error;
      }
    }
    await this.shutdown();
  }

  /** Why a client cannot be taken now, or undefined. Counts a refusal. */
  refusal(): Status | undefined {
    const full = this.sessions.size >= this.maxClients;
    if (!full && this.closing === undefined) return undefined;
    this.total.refused++;
    const message = full ? `${this.maxClients} clients are connected, which is the limit` : 'the stream has ended';
    return toStatus({ code: 503, reason: 'ServiceUnavailable', message, details: { retryAfterSeconds: 5 } });
  }

  /** Takes a client. For transports, which have asked {@link refusal} in the same step. */
  open(sink: Sink, info: ClientInfo): Session {
    const session = new Session(this.broadcaster.watch({ prefix: this.last() }), sink, { ...info, id: ++this.total.clients });
    this.sessions.add(session);
    void session.done.then(() => {
      this.sessions.delete(session);
      const { delivered, dropped } = session.stats();
      this.total.delivered += delivered;
      this.total.dropped += dropped;
    });
    return session;
  }

  stats(): HubStats {
    const clients = Array.from(this.sessions, (session) => session.stats());
    const total = { ...this.total };
    for (const client of clients) {
      total.delivered += client.delivered;
      total.dropped += client.dropped;
    }
    return { version: toVersion(this.epoch, this.sequence), accepted: this.accepted, clients, total };
  }

  /**
   * No more events: what was accepted is delivered, then every client's stream ends; resolves when they are gone. A client that
   * does not read can make that long: an aborted `signal` cuts whoever is left.
   */
  shutdown(options: { signal?: AbortSignal } = {}): Promise<void> {
    const { signal } = options;
    const cut = (): void => {
      for (const session of this.sessions) session.cut();
    };
    this.closing ??= this.close();
    if (signal?.aborted) cut();
    signal?.addEventListener('abort', cut, { once: true });
    return this.closing.finally(() => signal?.removeEventListener('abort', cut));
  }

  private async close(): Promise<void> {
    this.tail?.stop();
    await this.broadcaster.shutdown();
    await Promise.all(Array.from(this.sessions, (session) => session.done));
  }

  /** The last `replay` events, up to this moment. */
  private last(): readonly Envelope[] {
    for (let event = this.tail?.tryNext(); event !== undefined; event = this.tail?.tryNext()) this.recent.push(event);
    if (this.recent.length > this.replay) this.recent = this.recent.slice(-this.replay);
    return this.recent.slice();
  }

  private envelop(event: E, json?: string): Envelope {
    const sequence = this.sequence + 1;
    return new Envelope(event, { sequence, version: toVersion(this.epoch, sequence), json });
  }

  private accepts(envelope: Envelope): boolean {
    if (!this.broadcaster.tryPublish(envelope)) return false;
    this.sequence = envelope.sequence;
    this.accepted++;
    return true;
  }
}

/** What an event is about. One that does not say is about nothing but itself: its place in the stream is its key. */
function key<E extends WatchEvent>(envelope: Envelope, keyOf: ((event: E) => string) | undefined): string {
  if (keyOf !== undefined) return keyOf(envelope as WatchEvent as E);
  const { metadata } = (envelope.object ?? {}) as { metadata?: { namespace?: unknown; name?: unknown } | null };
  const { namespace, name } = metadata ?? {};
  if (typeof name !== 'string') return `#${envelope.sequence}`;
  return `${typeof namespace === 'string' ? namespace : ''}/${name}`;
}
