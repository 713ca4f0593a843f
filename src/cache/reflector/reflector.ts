/**
 * A reflector keeps a store equal to a collection: it lists, then watches, and starts over when it has to, forever. {@link
 * ReflectorMachine} makes all decisions. {@link Requests} carries out those that concern the source; those that concern the
 * store are carried out here.
 *
 *     machine.take(input) --> action --> perform: list, watch, read, wait; or call the store --> input
 *          ^                                                                                      |
 *          '--------------------------------------------------------------------------------------'
 *
 * Invariants
 * - One action at a time, and no `await` between an event and its change in the store, except for room in it.
 * - Each watch is read by one reader, and ended once. An abort leaves nothing pending.
 * - No call of the store, `onError` or `onStateChange` follows the end of `run`.
 */
import { isPromise, Latch, verdictOf, whenAborted } from '../../watch/abort.ts';
import type { Clock } from '../../watch/clock.ts';
import { checkSignal, requireMethod, WatchError } from '../../watch/errors.ts';
import type { ObjectEvent } from '../../watch/event.ts';
import { Failures } from '../../watch/failures.ts';
import type { ListWatcher, ReflectorStore } from '../list-watcher.ts';
import { call, type ReflectorAttempt } from './attempt.ts';
import { toBroken, versionBeside, versionIn } from './events.ts';
import { type MachineAction, type MachineInput, ReflectorMachine } from './machine.ts';
import {
  type ReflectorFailure,
  type ReflectorOptions,
  type ReflectorSettings,
  type ReflectorState,
  toSettings,
} from './reflector-options.ts';
import { Requests } from './requests.ts';

/** The inputs that mean that the source answered a request as asked. */
const ANSWERS: readonly MachineInput['type'][] = ['opened', 'listed'];

/**
 * Keeps a store equal to a collection: it lists, then watches, and starts over when it has to, until it is stopped. Upstream:
 * `cache.Reflector`, `NewReflector`.
 *
 *     const pods = new Store<Pod>();
 *     const reflector = new Reflector(createListWatcher<Pod>(url), pods);
 *     await reflector.run(signal);
 *
 * Failures of the source do not end it: they go to `onError`, and it retries after a delay. Errors of the store also go to
 * `onError`, and make it list again.
 */
export class Reflector<T> {
  readonly #store: ReflectorStore<T>;
  readonly #settings: ReflectorSettings<T>;
  readonly #machine: ReflectorMachine;
  readonly #requests: Requests<T>;
  #stopping: boolean = false;
  #ran: boolean = false;
  /** The callers of `refresh` whose state has been asked for, and those whose state has not. */
  #refreshing: Latch | undefined;
  #refresh: Latch | undefined;
  /** The attempt during which the store resyncs. */
  #resyncing: unknown;
  /** When it does so next. A watch may be shorter than the period. */
  #resyncDueMs: number = 0;
  #connected: boolean = false;
  #error: unknown;
  /** What an async callback has rejected with. */
  #thrown: { readonly error: unknown } | undefined;
  #nextAttemptMs: number | undefined;
  #told: string;
  /** Only without `onError`. */
  readonly #reports: SourceReports | undefined;

  /** @throws {WatchError} INVALID_ARGUMENT for an invalid or unknown option, and for an invalid source or store. */
  constructor(source: ListWatcher<T>, store: ReflectorStore<T>, options: ReflectorOptions<T> = {}) {
    requireMethod('source', requireMethod('source', source, 'watch', 'a ListWatcher'), 'list', 'a ListWatcher');
    this.#store = requireMethod('store', store, 'replace', 'a ReflectorStore');
    this.#settings = toSettings(options);
    this.#reports = this.#settings.onError ? undefined : new SourceReports('reflector', this.#settings.clock);
    this.#machine = new ReflectorMachine(this.#settings);
    const stored = typeof store.stored === 'function' ? store.stored.bind(store) : undefined;
    const prepare = store.prepare?.bind(store);
    const oldest = (): string => this.#machine.oldest;
    this.#requests = new Requests(source, this.#settings, { oldest, onBroken: (event) => this.#broken(event), stored, prepare });
    this.#told = this.#description;
  }

  /** The latest version that the source has reported and the store has; empty before the first. */
  get resourceVersion(): string {
    return this.#machine.resourceVersion;
  }

  /** Its current state. */
  get state(): ReflectorState {
    const { phase, failures } = this.#machine;
    const nextAttemptMs = this.#nextAttemptMs;
    const error = failures > 0 ? this.#error : undefined;
    const connected = this.#connected && phase !== 'stopped';
    return { phase, connected, lastContactMs: this.#requests.contactMs, failures, error, nextAttemptMs };
  }

  /**
   * Runs until the signal aborts, and resolves when everything has stopped. May be called only once: create another reflector to
   * start over.
   *
   * @throws {WatchError} (rejects) INVALID_ARGUMENT when called again; also what `onError` and `onStateChange` throw.
   */
  async run(signal?: AbortSignal): Promise<void> {
    checkSignal(signal);
    if (this.#ran) throw new WatchError('INVALID_ARGUMENT', 'a reflector runs once');
    this.#ran = true;
    const leave = whenAborted(signal, () => this.#halt());
    let why: unknown = ended();
    try {
      await this.#loop();
      if (this.#thrown) throw this.#thrown.error;
    } catch (error) {
      why = error;
      throw error;
    } finally {
      leave();
      this.#stopping = true;
      for (const each of [this.#refreshing, this.#refresh]) each?.reject(why);
      this.#requests.close();
      this.#nextAttemptMs = undefined;
      this.#machine.take({ type: 'stop' }, 0);
    }
  }

  /**
   * Asks the source for its newest state, at once, even while it waits after a failure. Resolves when the store has a state that was
   * asked for after this call; failures are reported and retried as usual. Before `run`, it waits for the first state. Calls during
   * the request of another one share the next request.
   *
   * @throws {WatchError} (rejects) CLOSED if the reflector stops before that, or what has ended `run`.
   */
  refresh(): Promise<void> {
    if (this.#stopping) return Promise.reject(ended());
    // While it waits, the next request comes after this call.
    const isFree = !this.#refreshing || this.#machine.state === 'waiting';
    if (isFree) this.#requests.attempt.interrupt({ type: 'refresh' });
    if (isFree && this.#refreshing) return this.#refreshing.promise;
    this.#refresh ??= new Latch();
    return this.#refresh.promise;
  }

  async #loop(): Promise<void> {
    let input: MachineInput = { type: 'start' };
    for (;;) {
      const action = this.#take(this.#stopping ? { type: 'stop' } : input);
      if (action.do === 'end') return;
      if (this.#stopping) continue; // by a callback just now: the previous request is over, and the next one must not begin
      if (this.#mustRefresh(input)) {
        input = { type: 'refresh' };
        continue;
      }
      const outcome = this.#perform(action);
      input = outcome instanceof Promise ? await outcome : outcome;
    }
  }

  /** After an input: settles what it completes, and returns whether the state must be asked for anew. */
  #mustRefresh({ type }: MachineInput): boolean {
    if (type === 'replaced') {
      this.#refreshing?.open();
      this.#refreshing = undefined;
    }
    if (this.#refreshing || !this.#refresh) return false;
    this.#refreshing = this.#refresh;
    this.#refresh = undefined;
    return type !== 'refresh';
  }

  /** Asks the machine what to do, and reports what has changed. */
  #take(input: MachineInput): MachineAction {
    const nowMs = this.#settings.clock.now();
    const { phase } = this.#machine;
    const { action, quiet, failure = 'error' in input ? input : undefined } = this.#machine.take(input, nowMs);
    const delayMs = action.do === 'wait' ? action.delayMs : undefined;
    this.#nextAttemptMs = delayMs === undefined ? undefined : nowMs + delayMs;
    if (failure && failure.kind !== 'store') this.#connected = false;
    else if (!this.#connected) this.#connected = ANSWERS.includes(input.type);
    if (failure && !quiet) {
      this.#error = failure.error;
      const { kind, error } = failure;
      this.#failed(error, { kind, phase, failures: this.#machine.failures, delayMs });
    }
    const told = this.#description;
    if (told !== this.#told) {
      this.#told = told;
      this.#reports?.changed(this.state);
      this.#call(() => this.#settings.onStateChange?.(this.state));
    }
    return action;
  }

  get #description(): string {
    return `${this.#machine.phase} ${this.#connected} ${this.#machine.failures}`;
  }

  #perform(action: Exclude<MachineAction, { readonly do: 'end' }>): MachineInput | Promise<MachineInput> {
    const requests = this.#requests;
    switch (action.do) {
      case 'list':
        return requests.list(action.resourceVersion, action.pageSize);
      case 'check':
        return requests.check(action.resourceVersion);
      case 'stream':
      case 'watch':
        return requests.watch(action.resourceVersion, action.do === 'stream');
      case 'read':
        this.#resyncIfDue(requests.attempt);
        return requests.read();
      case 'collect':
        return requests.collect();
      case 'replace':
        return this.#withRoom(() => this.#replace());
      case 'apply':
        return this.#withRoom(() => this.#apply());
      case 'wait':
        return requests.wait(action.delayMs);
    }
  }

  /** Reported at once, because nothing ends with it. */
  #broken(event: ObjectEvent<T>): void {
    const { phase, failures } = this.#machine;
    this.#failed(toBroken(event), { kind: 'event', phase, failures });
  }

  #failed(error: unknown, failure: ReflectorFailure): void {
    this.#reports?.failed(error, failure);
    this.#call(() => this.#settings.onError?.(error, failure));
  }

  /** Calls user code. If it throws, or is async and rejects, `run` ends with that error. */
  #call(code: () => unknown): void {
    const said = code();
    if (!isPromise(said)) return;
    said.then(undefined, (error: unknown) => {
      this.#thrown ??= { error };
      this.#halt();
    });
  }

  #halt(): void {
    this.#stopping = true;
    this.#requests.attempt.interrupt({ type: 'stop' });
  }

  /** Makes a call of the store as soon as there is room. */
  #withRoom(code: () => MachineInput): MachineInput | Promise<MachineInput> {
    const { attempt } = this.#requests;
    const guarded = (): MachineInput => {
      try {
        return code();
      } catch (error) {
        return this.#storeFailed(error);
      }
    };
    if (!this.#store.room) return guarded();
    return attempt.during(call(() => this.#store.room?.(attempt.signal))).then((early) => {
      const outcome = attempt.interruption ?? early; // it may have come in between
      if (outcome.is === 'interrupted') return outcome.reason;
      return outcome.is === 'error' ? this.#storeFailed(outcome.error) : guarded();
    });
  }

  #replace(): MachineInput {
    const { items, resourceVersion } = this.#requests.takeWhole();
    this.#store.replace(items, resourceVersion);
    return { type: 'replaced', resourceVersion };
  }

  #apply(): MachineInput {
    const event = this.#requests.takeEvent();
    const resourceVersion = versionIn(event);
    const beside = versionBeside(event);
    if (event.type === 'ADDED') this.#store.add(event.object, beside);
    else if (event.type === 'MODIFIED') this.#store.update(event.object, beside);
    else if (event.type === 'DELETED') this.#store.delete(event.object, beside);
    else this.#store.bookmark?.(resourceVersion);
    return { type: 'stored', resourceVersion };
  }

  /** Makes the store resync while a watch is open. A period continues in the next watch, unless it ended between the two. */
  #resyncIfDue(attempt: ReflectorAttempt<T, MachineInput>): void {
    const { resyncMs, shouldResync, clock } = this.#settings;
    if (resyncMs === 0 || this.#resyncing === attempt || this.#machine.state !== 'watching') return;
    this.#resyncing = attempt;
    const wait = (): void =>
      attempt.after(this.#resyncDueMs - clock.now(), () => {
        this.#resyncDueMs = clock.now() + resyncMs;
        try {
          if (verdictOf('shouldResync', shouldResync())) this.#store.resync?.();
        } catch (error) {
          attempt.interrupt(this.#storeFailed(error));
        }
        wait();
      });
    if (this.#resyncDueMs <= clock.now()) this.#resyncDueMs = clock.now() + resyncMs;
    wait();
  }

  #storeFailed(error: unknown): MachineInput {
    return { type: 'storeFailed', kind: 'store', error, ranMs: this.#requests.attempt.ranMs };
  }
}

function ended(): WatchError {
  return new WatchError('CLOSED', 'the reflector has stopped');
}

/**
 * Prints a source's failures without `onError`. A failure that is followed by an immediate attempt, such as an expired version,
 * is part of the protocol: it gets a line only if that attempt fails as well. A source that should have refused to stream has a fault.
 */
export class SourceReports {
  readonly #failures: Failures;

  constructor(who: string, clock: Clock | undefined) {
    this.#failures = new Failures(who, { clock });
  }

  failed(error: unknown, { kind, phase, delayMs }: Pick<ReflectorFailure, 'kind' | 'phase' | 'delayMs'>): void {
    if (kind === 'silent' && phase === 'listing') this.#failures.failed('the initial state', error);
    else if (kind === 'event') this.#failures.failed('an event', error);
    else if (kind === 'store') this.#failures.failed('the store', error);
    else if (delayMs !== undefined) this.#failures.down('the source', error, ` (${kind})`);
  }

  changed({ connected }: Pick<ReflectorState, 'connected'>): void {
    if (connected) this.#failures.up('the source');
  }
}
