import type { ListOptions, ListWatchOptions } from '../../cache/list-watcher.ts';
import { metadataOf } from '../../cache/object.ts';
import { FieldSelector, parseFieldSelector } from '../../selectors/field-selector.ts';
import { LabelSelector, parseLabelSelector } from '../../selectors/label-selector.ts';
import { SelectionPredicate } from '../../selectors/predicate.ts';
import { Latch, untilAborted } from '../../watch/abort.ts';
import { type Clock, sleep } from '../../watch/clock.ts';
import { invalid, isWatchError, WatchError, wholeNumber } from '../../watch/errors.ts';
import { type Status, type StatusDetails, toStatus } from '../../watch/event.ts';
import { fromAsyncIterable } from '../../watch/pull-watch.ts';
import { done } from '../../watch/reader.ts';
import type { Watch } from '../../watch/watch.ts';

/** A request that a {@link FakeListWatcher} got. */
export type FakeRequest =
  | { readonly verb: 'list'; readonly options: ListOptions }
  | { readonly verb: 'watch'; readonly options: ListWatchOptions };

/** The fault of the next watches that a {@link FakeListWatcher} accepts. */
type FakeDefect = 'short' | 'silent' | 'twice';

/** The number of requests that it records. */
const MAX_REQUESTS = 10_000;

/**
 * What a test can make go wrong in a {@link FakeListWatcher}: requests fail, wait, or are accepted and then served badly. Faults
 * of open connections are in that class itself.
 */
export abstract class FakeFaults {
  /** The requests so far, up to 10,000. Their options are those that a server would get: no signals, and no functions. */
  readonly requests: FakeRequest[] = [];
  readonly #failures: Record<FakeRequest['verb'], unknown[]> = { list: [], watch: [] };
  readonly #clock: Clock | undefined;
  #defects: FakeDefect[] = [];
  #cutAfter: number = Number.POSITIVE_INFINITY;
  #error: { readonly after: number; readonly status: Status } | undefined;
  #held: Latch | undefined;
  #delayMs: number = 0;
  #refusesInitial: boolean = false;
  /** The annotation of the BOOKMARK that ends initial events. */
  protected endAnnotation: string | undefined = 'true';
  /** Whether watches begin with a BOOKMARK with the version at which they start. */
  protected marksStart: boolean = false;

  protected constructor(clock: Clock | undefined) {
    this.#clock = clock;
  }

  /** An error like that of a server's refusal, for {@link failList} and {@link failWatch}. */
  static refusal(code: number, reason: string, details?: StatusDetails): WatchError {
    return refusal(code, reason, details);
  }

  /** The next `times` lists reject with this error. Without an error: no further lists fail. */
  failList(error?: unknown, times: number = 1): void {
    this.#fail('list', error, times);
  }

  /** The next `times` watches reject with this error. Without an error: no further watches fail. */
  failWatch(error?: unknown, times: number = 1): void {
    this.#fail('watch', error, times);
  }

  /** The next `times` lists break off within their answer, as if an HTTP connection broke. */
  truncateList(times: number = 1): void {
    this.failList(new WatchError('INVALID_FRAME', 'the list is not JSON: Unexpected end of JSON input'), times);
  }

  /** Every watch opened from now on ends after this many events. Infinity, the default: none does. */
  cutAfter(events: number): void {
    this.#cutAfter = eventCount(events);
  }

  /** Every watch opened from now on gets this ERROR, by default 410, after this many events. Infinity: none does. */
  errorAfter(events: number, status: Status = expired()): void {
    this.#error = { after: eventCount(events), status };
  }

  /** The next `times` watches are accepted and end at once, without an event. 0: no further watches do. */
  shortWatch(times: number = 1): void {
    this.#addDefect('short', times);
  }

  /** The next `times` watches are accepted, and then get nothing: no event and no end. 0: no further watches do that. */
  silentWatch(times: number = 1): void {
    this.#addDefect('silent', times);
  }

  /** The next `times` watches deliver every event twice. 0: no further watches do. */
  repeatEvents(times: number = 1): void {
    this.#addDefect('twice', times);
  }

  /** Requests made from now on are answered after this many milliseconds of the `clock`. 0, the default: at once. */
  delay(delayMs: number): void {
    if (!this.#clock) throw invalid('delay', delayMs, 'a FakeListWatcher with a clock');
    this.#delayMs = delayMs;
  }

  /** Whether watches that ask for initial events are refused with 422, as by servers that do not support them. */
  refuseInitialEvents(refuses: boolean = true): void {
    this.#refusesInitial = refuses;
  }

  /** The annotation of the BOOKMARK that ends initial events, instead of `true`; undefined: no annotation. */
  endInitialEventsWith(annotation: string | undefined): void {
    this.endAnnotation = annotation;
  }

  /** Whether watches from a version begin with a BOOKMARK with that version, if they allow BOOKMARKs. */
  bookmarkAtStart(marks: boolean = true): void {
    this.marksStart = marks;
  }

  /** Requests made from now on wait until the returned function is called, or their signal aborts. */
  hold(): () => void {
    const held = new Latch();
    this.#held = held;
    return () => {
      if (this.#held === held) this.#held = undefined;
      held.open();
    };
  }

  /** Waits and fails as requested. */
  protected async admit(request: FakeRequest): Promise<void> {
    const { verb, options } = request;
    const { signal } = options;
    signal?.throwIfAborted();
    if (this.requests.length < MAX_REQUESTS) this.requests.push({ verb, options: dataOf(options) });
    if (this.#delayMs > 0) await sleep(this.#delayMs, { clock: this.#clock, signal });
    if (this.#held) await untilAborted(this.#held.promise, signal);
    signal?.throwIfAborted();
    if (this.#failures[verb].length > 0) throw this.#failures[verb].shift();
    if (this.#refusesInitial && request.verb === 'watch' && request.options.sendInitialEvents !== undefined) {
      const message = 'sendInitialEvents: Forbidden: it is forbidden for watch unless the WatchList feature gate is enabled';
      throw refusal(422, 'Invalid', undefined, message);
    }
  }

  /** The fault of the watch that is being accepted. */
  protected nextDefect(): FakeDefect | undefined {
    return this.#defects.shift();
  }

  /** The watch as its reader gets it. */
  protected served<E>(watch: Watch<E>, defect: FakeDefect | undefined): Watch<E> {
    const cutAfter = defect === 'short' ? 0 : this.#cutAfter;
    const error = this.#error;
    const last = error && error.after <= cutAfter ? ({ type: 'ERROR', object: error.status } as E) : undefined;
    const events = Math.min(cutAfter, error?.after ?? cutAfter);
    const whole = defect === 'twice' ? twice(watch) : watch;
    return events === Number.POSITIVE_INFINITY ? whole : shortened(whole, { events, last });
  }

  #fail(verb: FakeRequest['verb'], error: unknown, times: number): void {
    this.#failures[verb] = error === undefined ? [] : Array.from({ length: wholeNumber('times', times) }, () => error);
  }

  #addDefect(defect: FakeDefect, times: number): void {
    const others = this.#defects.filter((other) => times > 0 || other !== defect);
    this.#defects = [...others, ...Array.from({ length: wholeNumber('times', times) }, () => defect)];
  }
}

/** The Status of a version that is too old. */
export function expired(): Status {
  return toStatus({ code: 410, reason: 'Expired', message: 'too old resource version' });
}

/** The first events of a watch, which then ends, with `last` if there is one. */
function shortened<E>(watch: Watch<E>, { events, last }: { events: number; last: E | undefined }): Watch<E> {
  let left = events;
  let end = last;
  return fromAsyncIterable<E>({
    next: () => {
      if (left-- > 0) return watch.next();
      watch.stop();
      const value = end;
      end = undefined;
      return Promise.resolve(value === undefined ? done() : { done: false, value });
    },
    return: () => watch.return(),
  });
}

/** A watch that delivers every event twice. */
function twice<E>(watch: Watch<E>): Watch<E> {
  let again: IteratorResult<E, undefined> | undefined;
  return fromAsyncIterable<E>({
    next: async () => {
      const repeated = again;
      again = undefined;
      if (repeated) return repeated;
      const result = await watch.next();
      if (!result.done) again = result;
      return result;
    },
    return: () => watch.return(),
  });
}

/** An error like that of a server's refusal. */
export function refusal(code: number, reason: string, details?: StatusDetails, message: string = reason): WatchError {
  return new WatchError('REFUSED', `${code} ${reason}`, { status: toStatus({ code, reason, message, details }) });
}

/**
 * What a request selects. A field is a path in the object, such as `spec.nodeName`; a value that is not a string is compared as
 * JSON, and a missing one is empty.
 *
 * @throws {WatchError} REFUSED with code 400 for an invalid selector.
 */
export function predicateOf<T>({ labelSelector = '', fieldSelector = '' }: ListOptions): SelectionPredicate<T> {
  try {
    const labels = labelSelector ? parseLabelSelector(labelSelector) : LabelSelector.everything();
    const fields = fieldSelector ? parseFieldSelector(fieldSelector) : FieldSelector.everything();
    const names = fields.terms.map(({ field }) => field);
    return new SelectionPredicate<T>({
      labels,
      fields,
      attributesOf: (object) => ({
        labels: metadataOf(object).labels,
        fields: Object.fromEntries(names.map((name) => [name, textAt(object, name)])),
      }),
    });
  } catch (error) {
    if (isWatchError(error, 'INVALID_SELECTOR')) throw refusal(400, 'BadRequest', undefined, error.message);
    throw error;
  }
}

function textAt(object: unknown, path: string): string {
  let value = object;
  for (const name of path.split('.')) {
    if (value === null || typeof value !== 'object' || !Object.hasOwn(value, name)) return '';
    value = (value as Record<string, unknown>)[name];
  }
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);
}

/** Refuses a combination of options that a kube-apiserver refuses. */
export function checkMatch({ resourceVersion = '', resourceVersionMatch, continue: token }: ListOptions): void {
  if (resourceVersionMatch === undefined) return;
  const wrong =
    (token && 'it is forbidden with continue') ||
    (resourceVersion === '' && 'it is forbidden without resourceVersion') ||
    (resourceVersionMatch === 'Exact' && resourceVersion === '0' && 'Exact is forbidden for resourceVersion 0') ||
    (resourceVersionMatch !== 'Exact' && resourceVersionMatch !== 'NotOlderThan' && 'it must be Exact or NotOlderThan');
  if (wrong) throw refusal(422, 'Invalid', undefined, `resourceVersionMatch: ${wrong}`);
}

/** Signals and functions would keep their callers in memory, with all that these hold. */
function dataOf<O extends object>(options: O): O {
  const isData = (value: unknown): boolean => typeof value !== 'function' && !(value instanceof AbortSignal);
  return Object.fromEntries(Object.entries(options).filter(([, value]) => isData(value))) as O;
}

function eventCount(events: number): number {
  return events === Number.POSITIVE_INFINITY ? events : wholeNumber('events', events);
}
