import type { Overflow } from '../broadcast/broadcaster.ts';
import type { Clock } from '../watch/clock.ts';
import { systemClock } from '../watch/clock.ts';
import { invalid, wholeNumber } from '../watch/errors.ts';
import type { WatchEvent } from '../watch/event.ts';
import type { ClientStats } from './client-info.ts';
import { DEFAULTS, newEpoch } from './protocol.ts';
import { EPOCH } from './query.ts';
import type { Snapshot } from './snapshot.ts';
import type { HubNotice, HubTotals } from './tally.ts';
import type { Turn } from './turn.ts';
import { nextTurn } from './turn.ts';

/** How a hub treats its clients. */
export interface HubOptions<E extends WatchEvent = WatchEvent> {
  /** Events queued per client, at least 1; default 100. A queue fills only while its client's connection has no room. */
  capacity?: number | undefined;
  /** What happens to a client whose queue is full; default `disconnect`, the one that neither waits for it nor hides a loss from it. */
  overflow?: Overflow | undefined;
  /** A new client, one without a version, first gets the last so many events; default 0. No more than `replayItems`. */
  replay?: number | undefined;
  /** Events kept for clients that come back; default 1,000, or `replay` if that is more. 0: nobody can go on but who missed nothing. */
  replayItems?: number | undefined;
  /** Bytes of those events, at most; default 8 MiB. */
  replayBytes?: number | undefined;
  /** The state of things, for a client without a version: sent as ADDED events before what follows. The objects are those of the events. */
  snapshot?: Snapshot<E['object']> | undefined;
  /** Snapshots read at the same time; default 4. Who comes then stands in line. One whose client has no room does not count: it waits, half read. */
  maxSnapshots?: number | undefined;
  /** Clients served at the same time; default 10,000. */
  maxClients?: number | undefined;
  /** Of those, so many from one address; default 1,000. Behind a proxy all have the proxy's, unless `clientAddress` tells them apart. */
  maxClientsPerAddress?: number | undefined;
  /** Publishes that may pend before `publish` rejects with OVERLOADED; default 10,000. */
  maxPending?: number | undefined;
  /**
   * Gathers events for so long before the next write to each client; default 0: one turn of the event loop. An event alone leaves
   * at once, and all do when as many have come as half the smallest queue holds, or 1,024. So with `coalesce` and a `capacity`
   * that is large enough a client gets the latest of each key once in that time.
   */
  flushIntervalMs?: number | undefined;
  /** Between two BOOKMARK events of a client that asked for them, or two ids without an event on an event stream; default 30,000: proxies end what is quiet for a minute. */
  bookmarkIntervalMs?: number | undefined;
  /** For `coalesce`: what an event is about. Default: namespace and name in `object.metadata`; events without are not folded. */
  keyOf?: ((event: E) => string) | undefined;
  /** Names this life of the stream in versions; default random. Letters, digits, `-` and `_`. Never the same for two lives. */
  epoch?: string | undefined;
  /**
   * Told of each client that comes, goes, is cut, refused, or resumes. What it throws is reported as an uncaught error. It may
   * publish, as for who is present; but clients go at a shutdown, too, and then `publish` rejects with CLOSED.
   */
  onNotice?: ((notice: HubNotice) => void) | undefined;
  /** Time, for tests. */
  clock?: Clock | undefined;
  /** Numbers from 0 to 1 that spread those who are to come back; default `Math.random`. */
  random?: (() => number) | undefined;
  /** Calls back in the next turn of the event loop, for tests. */
  nextTurn?: Turn | undefined;
}

/** What one client's watch is like. */
export interface ClientOptions<E extends WatchEvent = WatchEvent> {
  /** What this client may see: neither live nor replayed, nor of a snapshot, does it get what this rejects. Judge by what never changes in an object: one that no longer passes is not DELETED for this client. If it throws, or answers with a promise, its client is cut. */
  readonly filter?: ((event: E) => boolean) | undefined;
  readonly overflow?: Overflow | undefined;
  readonly capacity?: number | undefined;
}

/** A hub in numbers. */
export interface HubStats {
  /** The version of the last accepted event. */
  readonly version: string;
  /** Events accepted. */
  readonly accepted: number;
  readonly clients: readonly ClientStats[];
  readonly total: HubTotals;
}

/** How a hub shuts down. */
export interface ShutdownOptions {
  /** When it aborts, clients that have not taken their queue by then are cut. */
  readonly signal?: AbortSignal | undefined;
  /** Not the stream ends but this server: clients are told to come back, each after a time of its own up to this. */
  readonly retryAfterMs?: number | undefined;
}

/** The options of a hub, all filled in but those that nothing stands for. */
export type HubSettings<E extends WatchEvent> = {
  readonly [K in keyof HubOptions<E>]-?: K extends 'snapshot' | 'keyOf' | 'onNotice'
    ? HubOptions<E>[K]
    : Exclude<HubOptions<E>[K], undefined>;
};

/** Fills in what is not said and refuses nonsense with INVALID_ARGUMENT. */
export function toSettings<E extends WatchEvent>(options: HubOptions<E>): HubSettings<E> {
  const { epoch = newEpoch(), overflow = 'disconnect' } = options;
  if (!EPOCH.test(epoch)) throw invalid('epoch', epoch, '1 to 64 letters, digits, - or _');
  const count = (name: CountedOption, fallback: number, min: number = 0): number =>
    wholeNumber(name, options[name] ?? fallback, min);
  const replay = count('replay', 0);
  const replayItems = count('replayItems', Math.max(replay, DEFAULTS.replayItems));
  if (replay > replayItems) throw invalid('replay', replay, `no more than replayItems, which is ${replayItems}`);
  for (const hook of ['snapshot', 'keyOf', 'onNotice'] as const) {
    if (options[hook] !== undefined && typeof options[hook] !== 'function') throw invalid(hook, options[hook], 'a function');
  }
  return {
    epoch,
    overflow,
    replay,
    replayItems,
    capacity: count('capacity', DEFAULTS.capacity, 1),
    replayBytes: count('replayBytes', DEFAULTS.replayBytes),
    maxSnapshots: count('maxSnapshots', DEFAULTS.maxSnapshots, 1),
    maxClients: count('maxClients', DEFAULTS.maxClients, 1),
    maxClientsPerAddress: count('maxClientsPerAddress', DEFAULTS.maxClientsPerAddress, 1),
    maxPending: count('maxPending', 10_000),
    flushIntervalMs: count('flushIntervalMs', 0),
    bookmarkIntervalMs: count('bookmarkIntervalMs', DEFAULTS.bookmarkIntervalMs, 1),
    snapshot: options.snapshot,
    keyOf: options.keyOf,
    onNotice: options.onNotice,
    clock: options.clock ?? systemClock,
    random: options.random ?? Math.random,
    nextTurn: options.nextTurn ?? nextTurn,
  };
}

type CountedOption = {
  [K in keyof HubOptions]-?: Exclude<HubOptions[K], undefined> extends number ? K : never;
}[keyof HubOptions];
