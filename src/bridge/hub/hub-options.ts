import { toOverflow } from '../../broadcast/broadcaster.ts';
import { type Clock, systemClock } from '../../watch/clock.ts';
import {
  callable,
  checkOptions,
  checkText,
  invalid,
  namesOf,
  requireMethod,
  type Wholes,
  wholeNumbers,
} from '../../watch/errors.ts';
import type { MissingAdded, ObjectOf, WatchEvent } from '../../watch/event.ts';
import type { Overflow } from '../../watch/overflow.ts';
import type { Telemetry } from '../../watch/telemetry.ts';
import { nextTurn, type Turn } from '../../watch/turn.ts';
import { DEFAULTS, newEpoch } from '../protocol.ts';
import type { ClientStats } from './connection.ts';
import { EPOCH } from './query.ts';
import type { HubSource, SourceStats } from './source/source.ts';
import type { HubFailure, HubNotice, HubTotals } from './tally.ts';

/** Options of a hub. */
export interface HubOptions<E extends WatchEvent = WatchEvent> {
  /** Events queued per client; at least 1, default 100. A queue fills only while its client's connection has no room. */
  capacity?: number | undefined;
  /**
   * What happens to a client whose queue is full; default `disconnect`, which neither waits for the client nor hides losses from
   * it.
   */
  overflow?: Overflow | undefined;
  /**
   * Bytes of events queued per client while its connection has no room, or until its snapshot has been sent; at least 1, default
   * 64 MiB. A client for which more is queued is cut, whatever its policy: its queue is dropped, and it gets one ERROR with code
   * 410. Up to a sixteenth and one event more may be queued before that. Replayed events do not count: see `replayBytes`.
   */
  maxQueuedBytes?: number | undefined;
  /**
   * The longest event, and object of a snapshot, in bytes of its JSON text; at least 1, default 16,000,000. A longer one is refused
   * with FRAME_TOO_LARGE and counted, because by default clients accept up to 16 MiB (16,777,216): it would end each of them,
   * again and again. A snapshot with a longer object fails. A longer event of a `source` is skipped; one of a watch that `follow` reads
   * ends the hub.
   */
  maxEventBytes?: number | undefined;
  /**
   * How many past events a new client (one without a version) first gets, if there is no snapshot; default 0, at most
   * `replayItems`. Those that the client's filter rejects count, so it may get fewer.
   */
  replay?: number | undefined;
  /**
   * Events kept for clients that reconnect; default 1,000, or `replay` if that is more. With 0, only a client that missed nothing
   * can resume.
   */
  replayItems?: number | undefined;
  /**
   * Maximum total size of those events, in bytes of their texts and of compressed copies of these; default 8 MiB. Their objects,
   * which may be several times as large, stay in memory as long.
   */
  replayBytes?: number | undefined;
  /**
   * Returns the current state, for clients without a version. They get it as ADDED events, before the events that follow. The
   * objects have the type of the events' objects.
   */
  snapshot?: Snapshot<ObjectOf<E>> | undefined;
  /**
   * Snapshots read at the same time; default 4. Further clients wait in line. A snapshot whose client has no room does not count:
   * it pauses half-read.
   */
  maxSnapshots?: number | undefined;
  /**
   * Milliseconds within which a snapshot must produce its first, and each next, object; default 60,000. A snapshot that takes
   * longer has failed, and another client gets its turn. 0: no limit.
   */
  snapshotTimeoutMs?: number | undefined;
  /** Clients served at the same time; default 10,000. */
  maxClients?: number | undefined;
  /**
   * Clients served at the same time from one address; default 1,000. Behind a proxy all clients have the proxy's address, unless
   * `clientAddress` tells them apart. The addresses of an IPv6 /64 count as one, except in private networks.
   */
  maxClientsPerAddress?: number | undefined;
  /** Publishes that may wait before `publish` rejects with OVERLOADED; default 10,000. */
  maxPending?: number | undefined;
  /**
   * How long to collect events between two writes to each client, in milliseconds; default 0, one turn of the event loop. A
   * single event after a pause is sent at once. All events are sent early once they fill half of the smallest queue or number
   * 1,024. With `coalesce` and a large enough `capacity`, a client thus gets the latest state of each key once per interval.
   */
  flushIntervalMs?: number | undefined;
  /**
   * Milliseconds between two BOOKMARK events for a client that asked for them, or between two ids without an event over SSE;
   * default 30,000. Most proxies close a connection that is silent for a minute. This package's client learns the interval from
   * the BOOKMARKs.
   */
  bookmarkIntervalMs?: number | undefined;
  /**
   * Milliseconds after which a client is told to reconnect, and resumes; default 0, never. Each client is given a random time
   * between half of it and all of it, counted from the end of its snapshot. So `authenticate` is called again, clients spread to
   * new servers, and a client that vanished silently gives up its place.
   */
  maxConnectionAgeMs?: number | undefined;
  /**
   * Returns an event's key, for `coalesce`. Default: namespace and name in `object.metadata`; events without a name are not
   * folded.
   */
  keyOf?: ((event: E) => string) | undefined;
  /**
   * The topics of an event: one, several, or none. Clients whose `watchOptions` name `topics` get events by topic, and cost
   * nothing when events of other topics are published. Called once per event, and for each object of a snapshot that is sent to
   * such a client.
   */
  topicsOf?: ((event: E) => string | readonly string[] | undefined) | undefined;
  /**
   * Identifies this lifetime of the stream in versions; default random. Letters, digits, `-` and `_`. Must be unique per
   * lifetime.
   */
  epoch?: string | undefined;
  /**
   * A stream outside this process, such as a `NatsStream`: `publish` writes to it, and the hub gets its events from it, like
   * every other hub with the same stream. Versions are those of the stream, so a client resumes at any of these hubs. The hub
   * first reads the last `replayItems` events, and clients wait until it has them.
   */
  source?: HubSource | undefined;
  /**
   * How many events, and how many bytes, may be read from the source for one client whose version the hub no longer keeps;
   * default 100,000 and 64 MiB. A client that is further behind gets a 410. They are read 256 at a time, as the client takes
   * them.
   */
  maxCatchUpItems?: number | undefined;
  maxCatchUpBytes?: number | undefined;
  /** Reads of the source at the same time, for all such clients; default 4. Further clients wait in line. */
  maxReads?: number | undefined;
  /**
   * Called for each client that connects, leaves, is cut, is refused or resumes. An error it throws is reported as uncaught. It
   * may publish events, for example about who is present; but clients also leave during a shutdown, when `publish` rejects with
   * CLOSED.
   */
  onNotice?: ((notice: HubNotice) => void) | undefined;
  /**
   * Called with every error of a hook, a filter, a snapshot or the source; notices have the first three as well. An error it throws
   * is reported as uncaught. Default: `console.error`, once per kind, and when the source works again.
   */
  onError?: ((error: unknown, failure: HubFailure) => void) | undefined;
  /** Where the hub's metrics go until it is shut down: an `OpenTelemetry` of `watchmux/opentelemetry`. Default: nowhere. */
  telemetry?: Telemetry | undefined;
  /** The clock; replace it in tests. */
  clock?: Clock | undefined;
  /** The time of day for `expiresAtMs`, in ms since 1970. Default `Date.now`. */
  now?: (() => number) | undefined;
  /** Returns numbers from 0 to 1 that spread out reconnecting clients; default `Math.random`. */
  random?: (() => number) | undefined;
  /** Calls back in the next turn of the event loop; replace it in tests. */
  nextTurn?: Turn | undefined;
}

/** What a snapshot function is told about its client. */
export interface SnapshotContext {
  /** What `authenticate` returned for the client; undefined without `authenticate`. */
  readonly identity: unknown;
  /** The position taken before the snapshot. Events after it follow the snapshot automatically. */
  readonly resourceVersion: string;
  /** Aborts when the client is gone, or has waited too long, and the rest is not needed. */
  readonly signal: AbortSignal;
}

/** Returns the current state: the objects that a client gets as ADDED events before live events. */
export type Snapshot<T = unknown> = (context: SnapshotContext) => Objects<T> | Promise<Objects<T>>;

/** The objects of a snapshot, available now or produced over time. */
export type Objects<T = unknown> = Iterable<T> | AsyncIterable<T>;

/** Options of one client's watch. */
export interface ClientOptions<E extends WatchEvent = WatchEvent> {
  /**
   * Selects what this client may see: live events, replayed events and snapshots alike. Decide by properties that never change:
   * when an object no longer passes, this client gets no DELETED. If it throws or returns a promise, the client is cut. It sees
   * the objects of a snapshot as ADDED, whether or not `E` has that type.
   */
  readonly filter?: ((event: E | MissingAdded<E>) => boolean) | undefined;
  /**
   * Only events that have one of these topics (see `topicsOf`): live events, replayed events and snapshots alike. The result is
   * that of a filter, but only matching events cost anything. With `filter`, topics come first. Default: all events.
   */
  readonly topics?: readonly string[] | undefined;
  /** This client's overflow policy. */
  readonly overflow?: Overflow | undefined;
  /** This client's queue length in events; at least 1. */
  readonly capacity?: number | undefined;
  /** Bytes of events queued for this client; at least 1. */
  readonly maxQueuedBytes?: number | undefined;
  /**
   * When the client's right to watch ends, in ms since 1970: the `exp` of a JSON Web Token times 1,000. The client is then told to
   * reconnect, as with `maxConnectionAgeMs`, so that `authenticate` is called again. A time in the past means 401. Default:
   * `expiresAtMs` of its identity, if that is an object that has one; otherwise never. If both are set, the earlier one counts.
   * If the time of day is set ahead, that is noticed within `bookmarkIntervalMs`.
   */
  readonly expiresAtMs?: number | undefined;
}

/** The numbers of a hub. */
export interface HubStats {
  /** The version of the last accepted event. */
  readonly version: string;
  /** Number of accepted events. */
  readonly accepted: number;
  /** Number of events that were refused, or skipped in the source, because they are longer than `maxEventBytes`. */
  readonly oversize: number;
  /** The connected clients. */
  readonly clients: readonly ClientStats[];
  /** Totals, including clients that have left. */
  readonly total: HubTotals;
  /** The state of the hub's connection to its `source`. */
  readonly source?: SourceStats | undefined;
}

/** Options of {@link Hub.publish}. */
export interface PublishOptions {
  /** The event's JSON text, if the caller has it. It is sent as it is, with all its members. */
  readonly json?: string | undefined;
  /**
   * Identifies the event, in a hub with a source: an event that is published twice with one id is stored once, within a time that
   * the source defines. 1 to 256 printable ASCII characters without spaces. Default: a random one, which covers the attempts of
   * one call.
   */
  readonly id?: string | undefined;
}

/** Options of {@link Hub.shutdown}. */
export interface ShutdownOptions {
  /** When it aborts, clients that have not received their queue are cut. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Set it if only this server is going away and the stream continues: each client is told to reconnect after a random time of
   * up to this long, in milliseconds. Only clients of an HTTP stream without BOOKMARKs are not told.
   */
  readonly retryAfterMs?: number | undefined;
}

/** A hub's options with all defaults filled in. */
export type HubSettings<E extends WatchEvent> = {
  readonly [K in Exclude<keyof HubOptions<E>, 'telemetry'>]-?: K extends
    | 'snapshot'
    | 'keyOf'
    | 'topicsOf'
    | 'onNotice'
    | 'onError'
    | 'source'
    ? HubOptions<E>[K]
    : K extends 'epoch'
      ? () => string
      : Exclude<HubOptions<E>[K], undefined>;
};

/** Each option that is a number: its default, and its minimum. Records, so that none can be forgotten. */
const COUNTS: Wholes<CountedOption> = {
  capacity: [DEFAULTS.capacity, 1],
  maxQueuedBytes: [DEFAULTS.maxQueuedBytes, 1],
  maxEventBytes: [DEFAULTS.maxEventBytes, 1],
  replay: [0, 0],
  replayItems: [DEFAULTS.replayItems, 0],
  replayBytes: [DEFAULTS.replayBytes, 0],
  maxSnapshots: [DEFAULTS.maxSnapshots, 1],
  snapshotTimeoutMs: [DEFAULTS.snapshotTimeoutMs, 0],
  maxClients: [DEFAULTS.maxClients, 1],
  maxClientsPerAddress: [DEFAULTS.maxClientsPerAddress, 1],
  maxPending: [10_000, 0],
  flushIntervalMs: [0, 0],
  bookmarkIntervalMs: [DEFAULTS.bookmarkIntervalMs, 1],
  maxConnectionAgeMs: [0, 0],
  maxCatchUpItems: [100_000, 0],
  maxCatchUpBytes: [DEFAULTS.maxQueuedBytes, 0],
  maxReads: [4, 1],
};
const HOOKS = ['snapshot', 'keyOf', 'topicsOf', 'onNotice', 'onError', 'now', 'random', 'nextTurn'] as const;
const OTHERS: Readonly<Record<Exclude<keyof HubOptions, CountedOption | (typeof HOOKS)[number]>, true>> = {
  overflow: true,
  epoch: true,
  source: true,
  telemetry: true,
  clock: true,
};

/** Fills in defaults. Throws INVALID_ARGUMENT for an invalid option. */
export function toSettings<E extends WatchEvent>(options: HubOptions<E>): HubSettings<E> {
  const { epoch, overflow = 'disconnect', source } = checkOptions(options, [...namesOf(COUNTS), ...HOOKS, ...namesOf(OTHERS)]);
  if (epoch !== undefined && !EPOCH.test(checkText('epoch', epoch)))
    throw invalid('epoch', epoch, '1 to 64 letters, digits, - or _');
  const counts = wholeNumbers(options, COUNTS);
  const { replay } = counts;
  if (options.replayItems === undefined) counts.replayItems = Math.max(replay, counts.replayItems);
  if (replay > counts.replayItems) throw invalid('replay', replay, `no more than replayItems, which is ${counts.replayItems}`);
  for (const hook of HOOKS) callable(hook, options[hook]);
  if (source !== undefined) {
    requireMethod('source', source, 'follow', 'a HubSource, such as a NatsStream');
    if (epoch !== undefined) throw invalid('epoch', epoch, 'none, because the source sets it');
  }
  const { snapshot, keyOf, topicsOf, onNotice, onError, clock = systemClock, now = Date.now, random = Math.random } = options;
  const rest = { snapshot, keyOf, topicsOf, onNotice, onError, clock, now, random, nextTurn: options.nextTurn ?? nextTurn };
  return { ...counts, ...rest, epoch: toEpoch(epoch), source, overflow: toOverflow(overflow) };
}

/** A random epoch is generated when it is first needed: Cloudflare's runtime allows no random numbers in the global scope. */
function toEpoch(given: string | undefined): () => string {
  let epoch = given;
  return () => (epoch ??= newEpoch());
}

type CountedOption = {
  [K in keyof HubOptions]-?: Exclude<HubOptions[K], undefined> extends number ? K : never;
}[keyof HubOptions];
