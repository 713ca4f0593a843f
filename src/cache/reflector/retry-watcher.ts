/**
 * A watch that never ends by itself: when its connection does, it opens the next one from the last version. It uses the same
 * state machine as a hub's client; this file reads Kubernetes' events.
 *
 *     read --> pull --> wait for the delay --> open --> event --> read
 *                          ^                              |  ERROR that may pass, or the end
 *                          '------------------------------'
 *
 * Invariants
 * - Its events are those of the source after the first version, in order, each once. If some are no longer available, one ERROR
 *   says so, as the last event.
 * - `resourceVersion` is that of the last event read. An event that was fetched, but not read, does not count.
 * - Nothing is fetched ahead of the reader, except one event. So it opens its first connection with the first read.
 */
import { ClientMachine, ENDED, LOST, toFailure as toLost } from '../../bridge/client/machine.ts';
import { whenAborted } from '../../watch/abort.ts';
import { checkOptions, checkText, invalid, isWatchError, requireMethod, wholeNumber } from '../../watch/errors.ts';
import { type ObjectEvent, type Status, toStatus } from '../../watch/event.ts';
import { Failures } from '../../watch/failures.ts';
import { type PullSource, PullWatch } from '../../watch/pull-watch.ts';
import { done, NONE } from '../../watch/reader.ts';
import type { ListOptions, ListWatcher } from '../list-watcher.ts';
import { ReflectorAttempt } from './attempt.ts';
import { fromErrorEvent, isOlder, type SourceFailure, shapeOf, toBroken, toFailure, toSilence, versionIn } from './events.ts';
import { type CheckedRetry, checkRetry, RETRY_NAMES, type RetryOptions } from './reflector-options.ts';

/** Options of a {@link RetryWatcher}. */
export interface RetryWatcherOptions extends RetryOptions, Pick<ListOptions, 'labelSelector' | 'fieldSelector'> {
  /** The version after which to begin, for example a list's. Neither empty nor `0`. */
  readonly resourceVersion: string;
  /**
   * A connection on which nothing arrives for this long, in milliseconds, is considered dead; default 0: never. See
   * `ReflectorOptions`.
   */
  readonly idleTimeoutMs?: number | undefined;
  /**
   * Called with every failure after which it connects again. Errors that it throws are ignored. Default: `console.error`, once
   * per kind, and when the source works again.
   */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** Stops the watch. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * A watch of a collection that reconnects: it delivers the events after a version, in order, each once. If that becomes
 * impossible, its last event is an ERROR. Upstream: `watch.RetryWatcher`.
 *
 * | what happens | what it does |
 * |---|---|
 * | a connection ends, or cannot be made; any ERROR other than those below | opens the next one, at least `minMs` after the last one |
 * | 410: the following changes are no longer available | delivers the ERROR, and ends. List, and watch from there; or use a `Reflector` |
 * | 401, 403 | delivers the ERROR, and ends |
 * | an event without a version, or of an unknown type | delivers an ERROR with code 500, and ends: it could not resume after it |
 *
 * BOOKMARKs are not delivered; `resourceVersion` shows them.
 */
export class RetryWatcher<T> extends PullWatch<ObjectEvent<T>> {
  readonly #connections: Connections<T>;

  /** @throws {WatchError} INVALID_ARGUMENT for an invalid or unknown option, and for an invalid source. */
  constructor(source: ListWatcher<T>, options: RetryWatcherOptions) {
    const connections = new Connections(requireMethod('source', source, 'watch', 'a ListWatcher'), toSettings(options));
    super(connections);
    this.#connections = connections;
    connections.listen(() => this.stop());
  }

  /** The version to resume after, up to what has been read so far. Upstream: `LastResourceVersion` of 1.36. */
  get resourceVersion(): string {
    return this.#connections.read;
  }

  protected override take(): ObjectEvent<T> | typeof NONE {
    const event = super.take();
    if (event !== NONE && event.type !== 'ERROR') this.#connections.read = versionIn(event);
    return event;
  }
}

type RetrySettings = CheckedRetry &
  Pick<RetryWatcherOptions, 'labelSelector' | 'fieldSelector' | 'signal'> & {
    readonly resourceVersion: string;
    readonly idleTimeoutMs: number;
    readonly failures: Failures;
  };

function toSettings(options: RetryWatcherOptions): RetrySettings {
  checkOptions(options, [
    ...RETRY_NAMES,
    'resourceVersion',
    'labelSelector',
    'fieldSelector',
    'idleTimeoutMs',
    'onError',
    'signal',
  ]);
  const { resourceVersion, labelSelector, fieldSelector, idleTimeoutMs = 0, onError, signal } = options;
  if (typeof resourceVersion !== 'string' || resourceVersion === '' || resourceVersion === '0') {
    throw invalid('resourceVersion', resourceVersion, 'a version of the collection, neither empty nor 0');
  }
  const retry = checkRetry(options, 1_000);
  return {
    ...retry,
    resourceVersion,
    labelSelector: labelSelector && checkText('labelSelector', labelSelector),
    fieldSelector: fieldSelector && checkText('fieldSelector', fieldSelector),
    idleTimeoutMs: wholeNumber('idleTimeoutMs', idleTimeoutMs),
    failures: new Failures('retry watcher', { onError, clock: retry.clock }),
    signal,
  };
}

/** One connection after the other, of which the watch pulls its events. */
class Connections<T> implements PullSource<ObjectEvent<T>> {
  /** Up to here, everything has been read. */
  read: string;
  readonly #source: ListWatcher<T>;
  readonly #settings: RetrySettings;
  readonly #machine: ClientMachine;
  #attempt: ReflectorAttempt<T, SourceFailure | undefined>;
  #delayMs: number = 0;
  /** The ERROR that is the last event. */
  #last: Status | undefined;
  /** Stops listening to the signal. */
  #leave: () => void = () => {};

  constructor(source: ListWatcher<T>, settings: RetrySettings) {
    const { resourceVersion, clock } = settings;
    this.read = resourceVersion;
    this.#source = source;
    this.#settings = settings;
    const options = { ...settings, apart: true, maxAttempts: Infinity, reconnectOnEnd: true };
    this.#machine = new ClientMachine(options, resourceVersion);
    this.#attempt = new ReflectorAttempt(clock);
  }

  /** Calls `onAbort` when the signal aborts, which may be now. */
  listen(onAbort: () => void): void {
    this.#leave = whenAborted(this.#settings.signal, onAbort);
  }

  async pull(): Promise<IteratorResult<ObjectEvent<T>, undefined>> {
    for (;;) {
      const { state } = this.#machine;
      if (state === 'closed') break;
      const event = state === 'open' ? await this.#next() : await this.#connect();
      if (event) return { done: false, value: event };
    }
    const object = this.#last;
    this.#last = undefined;
    return object ? { done: false, value: { type: 'ERROR', object } } : done();
  }

  poll(): ObjectEvent<T> | undefined {
    try {
      while (this.#machine.state === 'open') {
        const event = this.#attempt.poll();
        if (event === undefined) return undefined;
        const accepted = this.#accept(event);
        if (accepted) return accepted;
      }
    } catch (error) {
      return this.#lose(toFailure(error));
    }
    return undefined;
  }

  cancel(): void {
    this.#machine.close();
    this.#attempt.interrupt(undefined);
    this.#attempt.close();
    this.#leave();
  }

  async #connect(): Promise<undefined> {
    const { clock, labelSelector, fieldSelector, idleTimeoutMs } = this.#settings;
    if (this.#delayMs > 0) {
      this.#attempt = new ReflectorAttempt(clock);
      this.#attempt.after(this.#delayMs, () => this.#attempt.interrupt(undefined));
      await this.#attempt.rest();
    }
    this.#machine.connect();
    if (this.#machine.state === 'closed') return;
    this.#attempt = new ReflectorAttempt(clock);
    if (idleTimeoutMs > 0) this.#attempt.limitSilence(idleTimeoutMs, () => toSilence(idleTimeoutMs));
    const options = { resourceVersion: this.#machine.position, allowWatchBookmarks: true, labelSelector, fieldSelector };
    const outcome = await this.#attempt.open(this.#source, options);
    if (outcome.is === 'value') {
      this.#machine.opened();
      this.#settings.failures.up('the source');
    } else this.#lose(outcome.is === 'error' ? toFailure(outcome.error) : outcome.reason);
  }

  async #next(): Promise<ObjectEvent<T> | undefined> {
    const outcome = await this.#attempt.next();
    if (outcome.is === 'value') return outcome.value.done ? this.#lose(undefined) : this.#accept(outcome.value.value);
    return this.#lose(outcome.is === 'error' ? toFailure(outcome.error) : outcome.reason);
  }

  /** Returns the event if it is for the reader. */
  #accept(event: ObjectEvent<T>): ObjectEvent<T> | undefined {
    const shape = shapeOf(event);
    const version = versionIn(event);
    if (shape === 'error') return this.#lose(fromErrorEvent(event.object));
    if (shape === 'broken' || version === '') {
      const message = version === '' && event?.type ? `${event.type} without a version` : toBroken(event).message;
      this.#end(toStatus({ code: 500, reason: 'InternalError', message }));
      return undefined;
    }
    const { position = '' } = this.#machine;
    if (isOlder(version, position)) {
      const message = `the watch went back to version ${version} after ${position}`;
      this.#end(toStatus({ code: 410, reason: 'Expired', message }));
      return undefined;
    }
    this.#machine.position = version;
    this.#machine.lasted();
    if (shape === 'change') return event;
    this.read = version; // what came before it has been read: there was nothing in hand
    return undefined;
  }

  /** The connection is over: without a failure if it has ended. */
  #lose(failure: SourceFailure | undefined): undefined {
    const status = isWatchError(failure?.error) ? failure.error.status : undefined;
    const final = failure?.kind === 'denied' || status?.code === 410;
    const error = status ?? toLost(LOST, failure?.error instanceof Error ? failure.error.message : 'no answer');
    const code = final ? error.code : failure ? LOST : ENDED;
    // After an end that is not a failure, the time counts from the request for the connection.
    const ranMs = failure ? 0 : this.#attempt.ranMs;
    if (failure && !final) this.#settings.failures.down('the source', failure.error, ` (${failure.kind})`);
    const action = this.#machine.over({ code, error, hintMs: failure?.hintMs, ranMs });
    this.#attempt.close();
    this.#delayMs = action?.delayMs ?? 0;
    if (action?.notice) this.#last = action.error;
  }

  #end(status: Status): void {
    this.#attempt.close();
    this.#machine.close();
    this.#last = status;
  }
}
