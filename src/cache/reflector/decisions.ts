/**
 * What a reflector knows, and what it decides. The table of {@link ReflectorMachine} says which decision belongs where.
 *
 *     begin   learn the state of the collection: by a stream, or by a list
 *     renew   a watch is over, and its version is still good: open the next one
 *     retry   a failure: wait, then do the request again
 *     relist  a failure: wait, then begin
 *     restart the version is of no use any more: begin, at once if that may help
 */
import { Backoff } from '../../watch/backoff.ts';
import { WatchError } from '../../watch/errors.ts';
import { type Failure, isOlder } from './events.ts';
import type { MachineSettings } from './reflector-options.ts';

/** What the next request is after a delay. */
export type Next = 'begin' | 'watch';

/** What the machine knows. */
export interface Memory {
  readonly settings: MachineSettings;
  readonly backoff: Backoff;
  /** The last version that the store has got; empty before. */
  version: string;
  /** The source cannot serve that version: the next list asks for the newest state. */
  unavailable: boolean;
  /** A list from the source's cache came in pages, so there is no cache, and a whole list at once would be a burden. */
  paged: boolean;
  /** Whether to ask for streams. */
  streams: boolean;
  /** Streams in a row that broke off before their initial state was complete. */
  broken: number;
  /** What to do when the delay has passed. */
  next: Next;
  /** Since when the source has done what it was asked for. */
  healthySinceMs: number | undefined;
  /** Errors 500 in a row: the first, and the last. */
  internal: { readonly sinceMs: number; readonly lastMs: number } | undefined;
}

type Failed = Failure & { readonly ranMs: number };

/** Upstream's threshold. A watch that ends before that, and has brought nothing, does not work. */
const SHORT_MS = 1_000;
/** Upstream's. Errors that are further apart do not belong together. */
const INTERNAL_PAUSE_MS = 60_000;
const PAGE_SIZE = 500;

export function newMemory(settings: MachineSettings): Memory {
  return {
    settings,
    backoff: new Backoff({ ...settings, apart: true }),
    version: '',
    unavailable: false,
    paged: false,
    streams: settings.streamingList,
    broken: 0,
    next: 'begin',
    healthySinceMs: undefined,
    internal: undefined,
  };
}

/** Learns the state of the collection. */
export function begin(memory: Memory): Step {
  if (!memory.streams) return list(memory);
  const resourceVersion = memory.unavailable ? '' : memory.version;
  return { state: 'streaming', action: { do: 'stream', resourceVersion } };
}

/**
 * Lists the collection: at first any state that the source has at hand, then one not older than the last, and the newest if that
 * cannot be had. A list in pages may cost the source a read of its database, so it is avoided where a cache can answer.
 */
export function list(memory: Memory): Step {
  const { version, unavailable, paged, settings } = memory;
  const resourceVersion = unavailable ? '' : version || '0';
  const cached = !paged && resourceVersion !== '' && resourceVersion !== '0';
  return {
    state: 'listing',
    action: { do: 'list', resourceVersion, pageSize: settings.pageSize ?? (cached ? 0 : PAGE_SIZE) },
  };
}

export function listed(memory: Memory, { paged }: Extract<Input, { type: 'listed' }>, nowMs: number): Step {
  well(memory, nowMs);
  if (paged && !memory.unavailable && memory.version === '') memory.paged = true;
  return { state: 'listing', action: { do: 'replace' } };
}

/** The store has a whole state of the collection. */
export function replaced(memory: Memory, resourceVersion: string): void {
  memory.version = resourceVersion;
  memory.unavailable = false;
  memory.broken = 0;
}

export function watch({ version }: Memory): Step {
  return { state: 'watching', action: { do: 'watch', resourceVersion: version } };
}

export function read(state: State): Step {
  return { state, action: { do: 'read' } };
}

/** The source does what it is asked for. When it has done so for long enough, earlier failures are forgotten. */
export function well(memory: Memory, nowMs: number): void {
  memory.healthySinceMs ??= nowMs;
  if (nowMs - memory.healthySinceMs >= memory.settings.resetMs) memory.backoff.healthy();
}

/** Counts a failure, and waits after it; or goes on at once, if there is nothing to wait for. */
function wait(memory: Memory, failed: Failed & { readonly next: Next; readonly nowMs: number }): Step {
  const { kind, hintMs, next, nowMs } = failed;
  if (memory.healthySinceMs !== undefined) well(memory, nowMs);
  memory.healthySinceMs = undefined;
  const expired = kind === 'expired';
  const delayMs = memory.backoff.failed({ hintMs, expired, curable: expired });
  return pause(memory, next, delayMs);
}

function pause(memory: Memory, next: Next, delayMs: number): Step {
  memory.next = next;
  return delayMs > 0 ? { state: 'waiting', action: { do: 'wait', delayMs } } : due(memory);
}

/** The delay has passed. */
export function due(memory: Memory): Step {
  return memory.next === 'watch' ? watch(memory) : begin(memory);
}

export function relist(memory: Memory, failed: Failed, nowMs: number): Step {
  return wait(memory, { ...failed, next: 'begin', nowMs });
}

/** The version is of no use. The first time, a state not older than it is enough; the second time, only the newest one is. */
function restart(memory: Memory, failed: Failed, nowMs: number): Step {
  if (memory.backoff.expired) memory.unavailable = true;
  return relist(memory, failed, nowMs);
}

/** A watch is over, and its version is still good. */
function renew(memory: Memory, ranMs: number): Step {
  return pause(memory, 'watch', memory.backoff.renewed(ranMs));
}

/** A list has failed. */
export function listFailed(memory: Memory, failed: Failed, nowMs: number): Step {
  if (failed.kind !== 'expired' || memory.unavailable) return relist(memory, failed, nowMs);
  memory.unavailable = true;
  return list(memory);
}

/** A stream has failed before its initial state was complete. A source that cannot stream may be able to list. */
export function streamFailed(memory: Memory, failed: Failed, nowMs: number): Step {
  if (failed.kind === 'throttled') return relist(memory, failed, nowMs);
  if (failed.kind === 'expired') {
    if (memory.unavailable) return relist(memory, failed, nowMs);
    memory.unavailable = true;
    return begin(memory);
  }
  // An error of the source's own may mean that it does not stream.
  if (failed.kind !== 'unreachable' || ++memory.broken > 1) return list(memory);
  return relist(memory, failed, nowMs);
}

/** The same for one that was refused: the list shows whether the source only does not stream, or more is wrong. */
export function streamRefused(memory: Memory, failed: Failed, nowMs: number): Step {
  const step = streamFailed(memory, failed, nowMs);
  return step.action.do === 'list' ? { ...step, quiet: true } : step;
}

/** A stream has ended before its initial state was complete. The store has seen nothing of it. */
export function streamEnded(memory: Memory, ended: Extract<Input, { type: 'ended' }>, nowMs: number): Step {
  const { ranMs, empty } = ended;
  if (++memory.broken > 1 || (empty && ranMs < SHORT_MS)) return list(memory);
  const failure: Failure = { kind: 'other', error: new WatchError('CLOSED', 'the watch ended within its initial state') };
  return { ...relist(memory, { ...failure, ranMs }, nowMs), failure };
}

/** A source that accepts streams and does not end their initial state does not know them. It never will. */
export function streamSilent(memory: Memory): Step {
  memory.streams = false;
  return list(memory);
}

/**
 * A watch has delivered something. Versions never go back while a source lives: one that is older than what the store has comes from
 * another life of it, such as before it was restored from a copy. Then nothing can be gone on with, and only the newest state will do.
 */
export function delivered(memory: Memory, { resourceVersion }: { readonly resourceVersion: string }, nowMs: number): Step {
  const { version } = memory;
  if (!isOlder(resourceVersion, version)) return { state: 'watching', action: { do: 'apply' } };
  const text = `the watch went back to version ${resourceVersion} after ${version}: the source may have been restored from a copy`;
  const failure: Failure = { kind: 'expired', error: new WatchError('INVALID_FRAME', text) };
  memory.unavailable = true;
  return { ...relist(memory, { ...failure, ranMs: 0 }, nowMs), failure };
}

/** A watch was refused. */
export function watchRefused(memory: Memory, failed: Failed, nowMs: number): Step {
  if (failed.kind === 'expired') return restart(memory, failed, nowMs);
  const reached = failed.kind !== 'throttled' && failed.kind !== 'unreachable';
  return wait(memory, { ...failed, next: reached ? 'begin' : 'watch', nowMs });
}

/** A watch has delivered an ERROR. */
export function watchFailed(memory: Memory, failed: Failed, nowMs: number): Step {
  if (failed.kind !== 'internal') return watchRefused(memory, failed, nowMs);
  const { internal, settings } = memory;
  const sinceMs = internal && nowMs - internal.lastMs < INTERNAL_PAUSE_MS ? internal.sinceMs : nowMs;
  memory.internal = { sinceMs, lastMs: nowMs };
  if (nowMs - sinceMs >= settings.internalErrorRetryMs) return relist(memory, failed, nowMs);
  return renew(memory, failed.ranMs);
}

/** A watch has ended. */
export function watchEnded(memory: Memory, ended: Extract<Input, { type: 'ended' }>, nowMs: number): Step {
  const { ranMs, empty } = ended;
  if (!empty || ranMs >= SHORT_MS) return renew(memory, ranMs);
  const failure: Failure = {
    kind: 'short',
    error: new WatchError('CLOSED', `the watch ended within ${SHORT_MS} ms without an event`),
  };
  return { ...relist(memory, { ...failure, ranMs }, nowMs), failure };
}

/** Nothing has come for too long. */
export function watchSilent(memory: Memory, { ranMs }: Failed): Step {
  return renew(memory, ranMs);
}

/**
 * The states of a reflector. `streaming` is a watch that begins with the state of the collection, up to where that ends; `watching`
 * is a watch from there, or one that is about to be opened; `waiting` is between two requests.
 */
export type State = 'idle' | 'streaming' | 'listing' | 'watching' | 'waiting' | 'stopped';

/** How long a watch took, from the request on. */
interface Ran {
  readonly ranMs: number;
}

/** What has happened. Each is the outcome of the action before it, except `stop`, which may come at any time. */
export type Input =
  | { readonly type: 'start' }
  /** The source has accepted a watch. */
  | { readonly type: 'opened' }
  | { readonly type: 'listed'; readonly paged: boolean }
  /** The watch has delivered a change of an object, a BOOKMARK, or the BOOKMARK that ends the initial state, of this version. */
  | { readonly type: 'event'; readonly resourceVersion: string }
  | { readonly type: 'bookmark'; readonly resourceVersion: string }
  | { readonly type: 'initialEnd'; readonly resourceVersion: string }
  /** What was read is stored, collected for the initial state, or reported as broken. The version is empty if it had none. */
  | { readonly type: 'stored'; readonly resourceVersion: string }
  /** The store has got a whole list. */
  | { readonly type: 'replaced'; readonly resourceVersion: string }
  /** The store has thrown, or `shouldResync` has. */
  | ({ readonly type: 'storeFailed' } & Failure & Ran)
  /** A list or a watch was refused. */
  | ({ readonly type: 'refused' } & Failure & Ran)
  /** The watch has delivered an ERROR, or reading it has failed. */
  | ({ readonly type: 'error' } & Failure & Ran)
  /** Nothing has come for too long. */
  | ({ readonly type: 'silent' } & Failure & Ran)
  /** The watch has ended. `empty`: it had brought nothing. */
  | ({ readonly type: 'ended'; readonly empty: boolean } & Ran)
  /** The delay has passed. */
  | { readonly type: 'due' }
  | { readonly type: 'stop' };

/** What the shell does next. Its outcome is the next input. */
export type Action =
  /** List the collection. */
  | { readonly do: 'list'; readonly resourceVersion: string; readonly pageSize: number }
  /** Open a watch that begins with the state. */
  | { readonly do: 'stream'; readonly resourceVersion: string }
  /** Open a watch that goes on from a version. */
  | { readonly do: 'watch'; readonly resourceVersion: string }
  /** Get the next event. */
  | { readonly do: 'read' }
  /** The event belongs to the state that is being streamed. */
  | { readonly do: 'collect' }
  /** What was listed or collected replaces what the store has. */
  | { readonly do: 'replace' }
  /** The event is for the store. */
  | { readonly do: 'apply' }
  /** End the watch, and wait. */
  | { readonly do: 'wait'; readonly delayMs: number }
  /** End everything. */
  | { readonly do: 'end' };

/** What an input leads to. */
export interface Step {
  readonly state: State;
  readonly action: Action;
  /** A failure that is not reported: the next request will show whether it matters. */
  readonly quiet?: boolean | undefined;
  /** A failure that is not the input's. */
  readonly failure?: Failure | undefined;
}
