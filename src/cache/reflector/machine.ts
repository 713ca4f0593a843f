/**
 * The state machine of a reflector: it knows how far the store is, and decides what to do next. It has no sockets, timers or
 * promises. Each input returns one action, whose outcome is the next input; so a test can drive it through any history.
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
 * Invariants
 * - `resourceVersion` is a version that the source has reported, with a list, an event or a BOOKMARK, and the store has got what
 *   belongs to it. No request names another one, except `0` (any state) and the empty one (the newest).
 * - A store sees a whole state at once, or one change after the other. It sees nothing of a list that failed.
 * - Between two requests is a delay with jitter, which grows with each failure. There are three exceptions, each of which happens
 *   once in a row: a list instead of a stream, a list without a version after a 410, and a list after the 410 of a watch.
 * - `stopped` is final.
 */
import * as decide from './decisions.ts';
import { type Input, type Memory, newMemory, type State, type Step } from './decisions.ts';
import { isOlder } from './events.ts';
import type { MachineSettings, ReflectorPhase } from './reflector-options.ts';

type InputOf<Type extends Input['type']> = Extract<Input, { readonly type: Type }>;
type Cell<Type extends Input['type']> = (memory: Memory, input: InputOf<Type>, nowMs: number) => Step;
type Table = { readonly [In in Exclude<State, 'stopped'>]: { readonly [Type in Input['type']]?: Cell<Type> } };

/** What callers of the machine see of its states. */
const PHASES: Readonly<Record<State, ReflectorPhase>> = {
  idle: 'waiting',
  streaming: 'listing',
  listing: 'listing',
  watching: 'watching',
  waiting: 'waiting',
  stopped: 'stopped',
};

const STOP: Step = { state: 'stopped', action: { do: 'end' } };

/** The inputs of each state, except `stop`. It gets no others, because its actions have no other outcomes. */
const TABLE: Table = {
  idle: { start: decide.begin },
  streaming: {
    opened: (memory, _, nowMs) => {
      decide.well(memory, nowMs);
      return decide.read('streaming');
    },
    event: () => ({ state: 'streaming', action: { do: 'collect' } }),
    bookmark: () => decide.read('streaming'),
    initialEnd: () => ({ state: 'streaming', action: { do: 'replace' } }),
    stored: () => decide.read('streaming'),
    replaced: (memory, { resourceVersion }) => {
      decide.replaced(memory, resourceVersion);
      return decide.read('watching'); // the same stream goes on with changes
    },
    storeFailed: decide.relist,
    refused: decide.streamRefused,
    error: decide.streamFailed,
    silent: decide.streamSilent,
    ended: decide.streamEnded,
  },
  listing: {
    listed: decide.listed,
    replaced: (memory, { resourceVersion }) => {
      decide.replaced(memory, resourceVersion);
      return decide.watch(memory);
    },
    storeFailed: decide.relist,
    refused: decide.listFailed,
  },
  watching: {
    opened: (memory, _, nowMs) => {
      decide.well(memory, nowMs);
      return decide.read('watching');
    },
    event: decide.delivered,
    bookmark: decide.delivered,
    initialEnd: decide.delivered, // a BOOKMARK like others, by now
    stored: (memory, { resourceVersion }, nowMs) => {
      decide.well(memory, nowMs);
      // A broken event may have any version.
      if (resourceVersion && !isOlder(resourceVersion, memory.version)) memory.version = resourceVersion;
      return decide.read('watching');
    },
    storeFailed: decide.relist,
    refused: decide.watchRefused,
    error: decide.watchFailed,
    silent: decide.watchSilent,
    ended: decide.watchEnded,
  },
  waiting: { due: decide.due },
};

export class ReflectorMachine {
  #state: State = 'idle';
  readonly #memory: Memory;

  constructor(settings: MachineSettings) {
    this.#memory = newMemory(settings);
  }

  get state(): State {
    return this.#state;
  }

  get phase(): ReflectorPhase {
    return PHASES[this.#state];
  }

  get resourceVersion(): string {
    return this.#memory.version;
  }

  /** Failures since the source was last well for long enough. */
  get failures(): number {
    return this.#memory.backoff.failures;
  }

  /** Something has happened, at this time. Returns what to do. */
  take<Type extends Input['type']>(input: InputOf<Type>, nowMs: number): Omit<Step, 'state'> {
    const { state, ...rest } = this.#step(input, nowMs);
    this.#state = state;
    return rest;
  }

  #step<Type extends Input['type']>(input: InputOf<Type>, nowMs: number): Step {
    if (this.#state === 'stopped' || input.type === 'stop') return STOP;
    const cell: Cell<Type> | undefined = TABLE[this.#state][input.type as Type];
    if (!cell) throw new Error('an input that its state cannot have');
    return cell(this.#memory, input, nowMs);
  }
}
