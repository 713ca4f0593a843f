/**
 * The state machine of a reflector: it knows how far the store is, and decides what to do next. It has no sockets, timers or
 * promises. Each input returns one action, whose outcome is the next input, so a test can drive it through any history.
 *
 *                 .--------------- 410, or too many failures ----------------.
 *                 |                                                          |
 *                 v                 initial state complete                   |
 *     start -> streaming ------------------------------------------> watching --ends--.
 *                 |   \                                                ^  ^  |        |
 *          cannot |    '--fails--> waiting --- delay has passed -------'  |  |  waiting (a jitter)
 *          stream |    .--fails------^ |                                  |  |        |
 *                 v   /                '---> streaming, or listing        |  '<-------'
 *              listing ------------------ listed -------------------------'
 *
 *     refresh, in any state after `start`: streaming, or listing; the newest state
 *
 * Invariants
 * - `resourceVersion` is a version that the source has reported, with a list, an event or a BOOKMARK, and the store has
 *   everything up to it. No request names another one, except `0` (any state) and the empty one (the newest).
 * - A store sees a whole state at once, or one change after the other. It sees nothing of a list that failed.
 * - Between two requests is a delay with jitter, which grows with each failure. A refresh does not wait. There are four more
 *   exceptions, each of which happens once in a row: a list instead of a stream, a list without a version after a 410, a list
 *   after the 410 of a watch, and a watch after the question whether the source has reached its version.
 * - `stopped` is final.
 */
import { Backoff } from '../../watch/backoff.ts';
import { WatchError } from '../../watch/errors.ts';
import { isOlder, type SourceFailure } from './events.ts';
import type { MachineSettings, ReflectorPhase } from './reflector-options.ts';

type InputOf<Type extends MachineInput['type']> = Extract<MachineInput, { readonly type: Type }>;
type Cell<Type extends MachineInput['type']> = (memory: Memory, input: InputOf<Type>, nowMs: number) => MachineStep;
type Table = { readonly [In in Exclude<MachineState, 'stopped'>]: { readonly [Type in MachineInput['type']]?: Cell<Type> } };

/** What callers of the machine see of its states. */
const PHASES: Readonly<Record<MachineState, ReflectorPhase>> = {
  idle: 'waiting',
  streaming: 'listing',
  listing: 'listing',
  watching: 'watching',
  checking: 'watching',
  waiting: 'waiting',
  stopped: 'stopped',
};

const STOP: MachineStep = { state: 'stopped', action: { do: 'end' } };

/** The inputs of each state, except `stop`. It gets no others, because its actions have no other outcomes. */
const TABLE: Table = {
  idle: { start: begin },
  streaming: {
    opened: (memory, _, nowMs) => {
      well(memory, nowMs);
      return read('streaming');
    },
    event: () => ({ state: 'streaming', action: { do: 'collect' } }),
    bookmark: () => read('streaming'),
    initialEnd: () => ({ state: 'streaming', action: { do: 'replace' } }),
    stored: () => read('streaming'),
    refresh: refresh,
    replaced: (memory, { resourceVersion }) => {
      replaced(memory, resourceVersion);
      return read('watching'); // the same stream goes on with changes
    },
    storeFailed: relist,
    refused: streamRefused,
    error: streamFailed,
    silent: streamSilent,
    ended: streamEnded,
  },
  listing: {
    refresh: refresh,
    listed: listed,
    replaced: (memory, { resourceVersion }) => {
      replaced(memory, resourceVersion);
      return watch(memory);
    },
    storeFailed: relist,
    refused: listFailed,
  },
  watching: {
    opened: (memory, _, nowMs) => {
      well(memory, nowMs);
      return read('watching');
    },
    event: delivered,
    bookmark: delivered,
    refresh: refresh,
    initialEnd: delivered, // by now a BOOKMARK like any other
    stored: (memory, { resourceVersion }, nowMs) => {
      well(memory, nowMs);
      // A broken event may have any version.
      if (resourceVersion && !isOlder(resourceVersion, memory.version)) memory.version = resourceVersion;
      return read('watching');
    },
    storeFailed: relist,
    refused: watchRefused,
    error: watchFailed,
    silent: watchSilent,
    ended: watchEnded,
  },
  checking: {
    listed: (memory, _, nowMs) => {
      well(memory, nowMs);
      memory.unsure = false;
      return watch(memory);
    },
    refresh: refresh,
    refused: watchRefused,
  },
  waiting: { due: due, refresh: refresh },
};

export class ReflectorMachine {
  #state: MachineState = 'idle';
  readonly #memory: Memory;

  constructor(settings: MachineSettings) {
    this.#memory = newMemory(settings);
  }

  get state(): MachineState {
    return this.#state;
  }

  get phase(): ReflectorPhase {
    return PHASES[this.#state];
  }

  get resourceVersion(): string {
    return this.#memory.version;
  }

  /** A state may not be older than this. */
  get oldest(): string {
    return this.#memory.unavailable ? '' : this.#memory.version;
  }

  /** Failures since the source was last well for long enough. */
  get failures(): number {
    return this.#memory.backoff.failures;
  }

  /** Something has happened, at this time. Returns what to do. */
  take<Type extends MachineInput['type']>(input: InputOf<Type>, nowMs: number): Omit<MachineStep, 'state'> {
    const { state, ...rest } = this.#step(input, nowMs);
    this.#state = state;
    return rest;
  }

  #step<Type extends MachineInput['type']>(input: InputOf<Type>, nowMs: number): MachineStep {
    if (this.#state === 'stopped' || input.type === 'stop') return STOP;
    const cell: Cell<Type> | undefined = TABLE[this.#state][input.type as Type];
    if (!cell) throw new Error('an input that its state cannot have');
    return cell(this.#memory, input, nowMs);
  }
}

/**
 * What a reflector knows, and what it decides. The table of {@link ReflectorMachine} says which decision belongs where.
 *
 *     begin   learn the state of the collection: by a stream, or by a list
 *     renew   a watch is over, and its version is still good: open the next one
 *     retry   a failure: wait, then do the request again
 *     relist  a failure: wait, then begin
 *     refresh somebody asks for the newest state: begin, at once
 *     restart the version is no longer of use: begin, at once if that may help
 */

/** What the next request is after a delay. */
type Next = 'begin' | 'watch';

/** What the machine knows. */
interface Memory {
  readonly settings: MachineSettings;
  readonly backoff: Backoff;
  /** The last version that the store has; empty before the first. */
  version: string;
  /** The next list asks for the newest state. */
  anew: boolean;
  /** The source cannot serve that version, so the newest state may be older. */
  unavailable: boolean;
  /** Whether the source may have been restored from a copy, to an older version, since it has last answered. */
  unsure: boolean;
  /** A list from the source's cache came in pages, so it has no cache, and a whole list at once would burden it. */
  paged: boolean;
  /** Whether to ask for streams. */
  streams: boolean;
  /** Streams in a row that broke off before their initial state was complete. */
  broken: number;
  /** What to do when the delay has passed. */
  next: Next;
  /** Since when the source has answered as asked. */
  healthySinceMs: number | undefined;
  /** Errors 500 in a row: the first, and the last. */
  internal: { readonly sinceMs: number; readonly lastMs: number } | undefined;
}

type Failed = SourceFailure & { readonly ranMs: number };

/** Upstream's threshold. A watch that ends before that without an event does not work. */
const SHORT_MS = 1_000;
/** Upstream's. Errors further apart do not count as a series. */
const INTERNAL_PAUSE_MS = 60_000;
const PAGE_SIZE = 500;

function newMemory(settings: MachineSettings): Memory {
  return {
    settings,
    backoff: new Backoff({ ...settings, apart: true }),
    version: '',
    unavailable: false,
    anew: false,
    unsure: false,
    paged: false,
    streams: settings.streamingList,
    broken: 0,
    next: 'begin',
    healthySinceMs: undefined,
    internal: undefined,
  };
}

/** Learns the state of the collection. */
function begin(memory: Memory): MachineStep {
  if (!memory.streams) return list(memory);
  const resourceVersion = memory.anew ? '' : memory.version;
  return { state: 'streaming', action: { do: 'stream', resourceVersion } };
}

/** Learns the newest state of the collection, even if nothing was wrong with the one before. */
function refresh(memory: Memory): MachineStep {
  memory.anew = true;
  return begin(memory);
}

/**
 * Lists the collection: at first any state that the source has at hand, or the newest; then one not older than the last, and the
 * newest if that is not available. A list in pages may cost the source a read of its database, so it is avoided where a cache can
 * answer.
 */
function list(memory: Memory): MachineStep {
  const { version, anew, paged, settings } = memory;
  const resourceVersion = anew ? '' : version || (settings.consistentList ? '' : '0');
  const cached = !paged && resourceVersion !== '' && resourceVersion !== '0';
  return {
    state: 'listing',
    action: { do: 'list', resourceVersion, pageSize: settings.pageSize ?? (cached ? 0 : PAGE_SIZE) },
  };
}

function listed(memory: Memory, { paged }: Extract<MachineInput, { type: 'listed' }>, nowMs: number): MachineStep {
  well(memory, nowMs);
  const { anew, version, settings } = memory;
  if (paged && !anew && version === '' && !settings.consistentList) memory.paged = true;
  return { state: 'listing', action: { do: 'replace' } };
}

/** The store has a whole state of the collection. */
function replaced(memory: Memory, resourceVersion: string): void {
  memory.version = resourceVersion;
  memory.unavailable = memory.anew = memory.unsure = false;
  memory.broken = 0;
}

/**
 * Some servers, such as kube-apiserver, accept a watch from a version that they have not reached, and are silent until they
 * have. So after an outage, and after a watch without an event, the source is asked for its version first; not with opaque
 * versions, which cannot be compared.
 */
function watch({ version, unsure }: Memory): MachineStep {
  if (unsure && isOlder('0', version)) return { state: 'checking', action: { do: 'check', resourceVersion: version } };
  return { state: 'watching', action: { do: 'watch', resourceVersion: version } };
}

function read(state: MachineState): MachineStep {
  return { state, action: { do: 'read' } };
}

/** The source answers as asked. Once it has done so for long enough, earlier failures are forgotten. */
function well(memory: Memory, nowMs: number): void {
  memory.healthySinceMs ??= nowMs;
  if (nowMs - memory.healthySinceMs >= memory.settings.resetMs) memory.backoff.healthy();
}

/** Counts a failure, and waits after it; or continues at once, if there is nothing to wait for. */
function wait(memory: Memory, failed: Failed & { readonly next: Next; readonly nowMs: number }): MachineStep {
  const { kind, hintMs, next, nowMs } = failed;
  if (memory.healthySinceMs !== undefined) well(memory, nowMs);
  memory.healthySinceMs = undefined;
  const expired = kind === 'expired';
  const delayMs = memory.backoff.failed({ hintMs, expired, curable: expired });
  return pause(memory, next, delayMs);
}

function pause(memory: Memory, next: Next, delayMs: number): MachineStep {
  memory.next = next;
  return delayMs > 0 ? { state: 'waiting', action: { do: 'wait', delayMs } } : due(memory);
}

/** The delay has passed. */
function due(memory: Memory): MachineStep {
  return memory.next === 'watch' ? watch(memory) : begin(memory);
}

function relist(memory: Memory, failed: Failed, nowMs: number): MachineStep {
  return wait(memory, { ...failed, next: 'begin', nowMs });
}

/** The version is of no use. The first time, a state not older than it is enough; the second time, only the newest one is. */
function restart(memory: Memory, failed: Failed, nowMs: number): MachineStep {
  if (memory.backoff.expired) memory.unavailable = memory.anew = true;
  return relist(memory, failed, nowMs);
}

/** A watch is over, and its version is still good. */
function renew(memory: Memory, ranMs: number): MachineStep {
  return pause(memory, 'watch', memory.backoff.renewed(ranMs));
}

function listFailed(memory: Memory, failed: Failed, nowMs: number): MachineStep {
  if (failed.kind !== 'expired' || memory.unavailable) return relist(memory, failed, nowMs);
  memory.unavailable = memory.anew = true;
  return list(memory);
}

/** A stream has failed before its initial state was complete. A source that cannot stream may be able to list. */
function streamFailed(memory: Memory, failed: Failed, nowMs: number): MachineStep {
  if (failed.kind === 'throttled') return relist(memory, failed, nowMs);
  if (failed.kind === 'expired') {
    if (memory.unavailable) return relist(memory, failed, nowMs);
    memory.unavailable = memory.anew = true;
    return begin(memory);
  }
  // An error from the source itself may mean that it does not stream.
  if (failed.kind !== 'unreachable' || ++memory.broken > 1) return list(memory);
  return relist(memory, failed, nowMs);
}

/** The same for one that was refused: the list shows whether the source merely does not stream, or more is wrong. */
function streamRefused(memory: Memory, failed: Failed, nowMs: number): MachineStep {
  const step = streamFailed(memory, failed, nowMs);
  return step.action.do === 'list' ? { ...step, quiet: true } : step;
}

/** A stream has ended before its initial state was complete. The store has seen nothing of it. */
function streamEnded(memory: Memory, ended: Extract<MachineInput, { type: 'ended' }>, nowMs: number): MachineStep {
  const { ranMs, empty } = ended;
  if (++memory.broken > 1 || (empty && ranMs < SHORT_MS)) return list(memory);
  const failure: SourceFailure = { kind: 'other', error: new WatchError('CLOSED', 'the watch ended within its initial state') };
  return { ...relist(memory, { ...failure, ranMs }, nowMs), failure };
}

/** A source that accepts streams without an initial state that ends does not support them, so it is not asked for one again. */
function streamSilent(memory: Memory): MachineStep {
  memory.streams = false;
  return list(memory);
}

/**
 * A watch has delivered something. Versions never go back while a source lives: one older than the store's is from another life
 * of the source, for example after a restore from a copy. Then nothing can be continued, and only the newest state will do.
 */
function delivered(memory: Memory, { resourceVersion }: { readonly resourceVersion: string }, nowMs: number): MachineStep {
  const { version } = memory;
  if (!isOlder(resourceVersion, version)) return { state: 'watching', action: { do: 'apply' } };
  const text = `the watch went back to version ${resourceVersion} after ${version}: the source may have been restored from a copy`;
  const failure: SourceFailure = { kind: 'expired', error: new WatchError('INVALID_FRAME', text) };
  memory.unavailable = memory.anew = true;
  return { ...relist(memory, { ...failure, ranMs: 0 }, nowMs), failure };
}

function watchRefused(memory: Memory, failed: Failed, nowMs: number): MachineStep {
  if (failed.kind === 'expired') return restart(memory, failed, nowMs);
  const isAway = failed.kind === 'unreachable';
  if (isAway) memory.unsure = true;
  return wait(memory, { ...failed, next: isAway || failed.kind === 'throttled' ? 'watch' : 'begin', nowMs });
}

/** A watch has delivered an ERROR. */
function watchFailed(memory: Memory, failed: Failed, nowMs: number): MachineStep {
  if (failed.kind !== 'internal') return watchRefused(memory, failed, nowMs);
  const { internal, settings } = memory;
  const sinceMs = internal && nowMs - internal.lastMs < INTERNAL_PAUSE_MS ? internal.sinceMs : nowMs;
  memory.internal = { sinceMs, lastMs: nowMs };
  if (nowMs - sinceMs >= settings.internalErrorRetryMs) return relist(memory, failed, nowMs);
  return renew(memory, failed.ranMs);
}

function watchEnded(memory: Memory, ended: Extract<MachineInput, { type: 'ended' }>, nowMs: number): MachineStep {
  const { ranMs, empty } = ended;
  if (empty) memory.unsure = true;
  if (!empty || ranMs >= SHORT_MS) return renew(memory, ranMs);
  const failure: SourceFailure = {
    kind: 'short',
    error: new WatchError('CLOSED', `the watch ended within ${SHORT_MS} ms without an event`),
  };
  return { ...relist(memory, { ...failure, ranMs }, nowMs), failure };
}

/** Nothing has arrived for too long. */
function watchSilent(memory: Memory, { ranMs }: Failed): MachineStep {
  memory.unsure = true;
  return renew(memory, ranMs);
}

/**
 * The states of a reflector. `streaming` is a watch that begins with the state of the collection, up to where that ends; `watching`
 * is a watch from there, or one that is about to be opened, and `checking` what may come before it; `waiting` is between two requests.
 */
export type MachineState = 'idle' | 'streaming' | 'listing' | 'watching' | 'checking' | 'waiting' | 'stopped';

/** How long a watch took, from the request on. */
interface Ran {
  readonly ranMs: number;
}

/** What has happened. Each is the outcome of the action before it, except `refresh` and `stop`. */
export type MachineInput =
  | { readonly type: 'start' }
  /** The source has accepted a watch. */
  | { readonly type: 'opened' }
  /** It has listed the collection, or, when it was checked, a part of it. */
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
  | ({ readonly type: 'storeFailed' } & SourceFailure & Ran)
  /** A list or a watch was refused. */
  | ({ readonly type: 'refused' } & SourceFailure & Ran)
  /** The watch has delivered an ERROR, or reading it has failed. */
  | ({ readonly type: 'error' } & SourceFailure & Ran)
  /** Nothing has arrived for too long, or no initial state that ends. */
  | ({ readonly type: 'silent' } & SourceFailure & Ran)
  /** The watch has ended. `empty`: it had brought nothing. */
  | ({ readonly type: 'ended'; readonly empty: boolean } & Ran)
  /** The delay has passed. */
  | { readonly type: 'due' }
  /** Somebody needs the newest state. May come at any time after `start`, like `stop`. */
  | { readonly type: 'refresh' }
  /** May come at any time. */
  | { readonly type: 'stop' };

/** What the shell does next. Its outcome is the next input. */
export type MachineAction =
  /** List the collection. */
  | { readonly do: 'list'; readonly resourceVersion: string; readonly pageSize: number }
  /** Ask whether the source has reached a version. */
  | { readonly do: 'check'; readonly resourceVersion: string }
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
interface MachineStep {
  readonly state: MachineState;
  readonly action: MachineAction;
  /** A failure that is not reported: the next request will show whether it matters. */
  readonly quiet?: boolean | undefined;
  /** A failure that is not the input's. */
  readonly failure?: SourceFailure | undefined;
}
