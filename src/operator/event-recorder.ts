/**
 * Reports what happens to objects, as Events that `kubectl describe` shows. Emitting one never waits:
 *
 *     event(object, ...) ---> EventCorrelator ---> queue of series ---> a writer: create, or patch the count
 *                                |                    |                    |
 *                                |                    |                    '-- no answer, 5xx, 429: again, 12 times in all; refused: dropped
 *                                |                    '-- full: dropped
 *                                '-- the object has had its share: dropped, or counted and reported later
 *
 * - **What is lost?** Only what `stats.dropped` counts, by reason. The first event dropped for a reason is reported, until the
 *   reason is over. The counts of the events on the server add up exactly to the occurrences written. If a request is refused
 *   after one without an answer, the server is asked what that one wrote.
 * - **In which order is it written?** In order of the queue; a series that is queued again keeps its place. While the server does not
 *   answer, everything waits. While it answers with 5xx or 429, as a webhook or a limit may make it do in one namespace, that
 *   namespace waits: one of its series is tried at a time, and all waiting series may take at most half of the queue. They have
 *   a writer of their own, so slow and failing requests hold up the others for one request at most.
 * - **What ends it?** `shutdown`, which writes what it can until its deadline. After that, nothing is pending, and no timer runs.
 *
 * Bounds: `maxSeries`, `maxQueuedEvents`; a message is cut at 1,024 bytes, because servers refuse longer ones.
 */
import { hostname } from 'node:os';
import type { CoreEvent, ObjectReference } from '../apiserver/kinds/events.ts';
import { type KubernetesObject, metadataOf } from '../cache/object.ts';
import type { ResourceClient } from '../cache/resource-client.ts';
import { faultOfKey } from '../selectors/syntax.ts';
import { untilAborted } from '../watch/abort.ts';
import { Backoff } from '../watch/backoff.ts';
import { type Clock, sleep, systemClock, upkeepClock } from '../watch/clock.ts';
import {
  callable,
  checkOptions,
  checkText,
  invalid,
  isWatchError,
  namesOf,
  oneOf,
  refusalCode,
  requireMethod,
  WatchError,
  type Wholes,
  wholeNumber,
  wholeNumbers,
} from '../watch/errors.ts';
import { quietly, reporter } from '../watch/failures.ts';
import { soon } from '../watch/turn.ts';
import {
  countIn,
  cut,
  EVENT_APIS,
  type EventApi,
  EventCorrelator,
  type EventLimits,
  type EventSeries,
  type EventSettings,
  eventNames,
  FINISH_MS,
  type Occurrence,
  toEvent,
  toEventPatch,
} from './event-series.ts';
import type { ResourceSource } from './kinds.ts';

/** Details of an event besides type, reason and message. */
export interface EventDetails {
  /** What was done or tried, in one word; default: the reason. Shown by `events.k8s.io/v1`. */
  readonly action?: string | undefined;
  /** Another object that it is about, with the same requirements as the first. */
  readonly related?: KubernetesObject | undefined;
  /** At most 4,096 characters in all. */
  readonly annotations?: Readonly<Record<string, string>> | undefined;
}

/** An event. */
export interface EventOptions extends EventDetails {
  readonly type: 'Normal' | 'Warning';
  /** Why, in one word, such as `Created`, for programs; at most 128 bytes. */
  readonly reason: string;
  /** Why, for people. Cut after 1,024 bytes. */
  readonly message: string;
}

/** What `onError` gets with the error. */
export interface EventFailure {
  /** The object; undefined if it concerns several. */
  readonly regarding: ObjectReference | undefined;
  /** How many events were dropped because of it. 0: it is tried again. */
  readonly dropped: number;
}

/** Why events are dropped. `limited`: their object has had its share. `queue`: too many are waiting. `refused`: by the server.
 * `unanswered`: 12 times in a row, the server did not answer, or answered with 5xx or 429; or an attempt got no answer, and the
 * server now refuses both the event and the question what was written. `closed`: the recorder was shut down. */
export type EventDropReason = 'limited' | 'queue' | 'refused' | 'unanswered' | 'closed';

/** What a recorder counts. `emitted` is the sum of the others. */
export interface EventRecorderStats {
  readonly emitted: number;
  /** Events that were written to the server. */
  readonly written: number;
  /** Events still to be written, or held back. */
  readonly pending: number;
  readonly dropped: Readonly<Record<EventDropReason, number>>;
}

/** Options of an {@link EventRecorder}. */
export interface EventRecorderOptions extends EventLimits {
  /** A `Cluster`, or an `ApiServer`. */
  readonly cluster: Pick<ResourceSource, 'resource'>;
  /** Who reports: the name of a controller, such as `example.com/websites`. */
  readonly name: string;
  /** Which instance of it; at most 128 bytes. Default: the name, and that of the host. */
  readonly instance?: string | undefined;
  /** Default `events.k8s.io/v1`. */
  readonly api?: EventApi | undefined;
  /**
   * Called with each failed request, and with the first event that is dropped for a reason. Default: `console.error`, once per
   * kind.
   */
  readonly onError?: ((error: unknown, failure: EventFailure) => void) | undefined;
  readonly clock?: Clock | undefined;
  /** The time of day for the events' timestamps, in ms since 1970. Default `Date.now`. */
  readonly now?: (() => number) | undefined;
  /** Source of jitter, and of names: a number from 0 to below 1. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
}

const LIMITS: Wholes<keyof EventSettings> = {
  burst: [25, 1],
  refillMs: [300_000, 1],
  maxSimilar: [10, 1],
  similarMs: [600_000, 1],
  maxQueuedEvents: [1_000, 1],
  maxSeries: [4_096, 1],
};

const NAMES = [
  ...(['cluster', 'name', 'instance', 'api', 'onError', 'clock', 'now', 'random'] as const),
  ...namesOf(LIMITS),
] as const;
const EVENT_NAMES = ['type', 'reason', 'message', 'action', 'related', 'annotations'] as const;
const MAX_TRIES = 12;
const RETRIES = { minMs: 1_000, maxMs: 10_000, factor: 2, apart: true } as const;
const MAX_BYTES = 128;
const MAX_ANNOTATION_CHARS = 4_096;

/** The writers: one for namespaces for which the server has failed, and one for all others. */
const WRITERS = ['prompt', 'held'] as const;
type Writer = (typeof WRITERS)[number];

/** How long a namespace waits for which the server has failed. */
interface Hold {
  readonly backoff: Backoff;
  readonly until: number;
}

/** A caller that waits until these have been written. */
interface Flush {
  readonly left: Set<EventSeries>;
  readonly done: () => void;
}

/**
 * Emits events about objects. See the top of this file. Upstream: `EventRecorder` of `tools/events` and `tools/record`.
 *
 *     const recorder = new EventRecorder({ cluster, name: 'example.com/websites' });
 *     recorder.normal(website, 'Published', 'at https://example.com');
 */
export class EventRecorder {
  readonly #api: EventApi;
  readonly #cluster: EventRecorderOptions['cluster'];
  readonly #reporter: { readonly name: string; readonly instance: string };
  readonly #clock: Clock;
  readonly #now: () => number;
  readonly #random: () => number;
  readonly #onError: EventRecorderOptions['onError'];
  readonly #print: (error: unknown) => void;
  readonly #limits: EventSettings;
  /** How many series of waiting namespaces the queue may have. */
  readonly #maxHeld: number;
  readonly #correlator: EventCorrelator;
  readonly #queue: Set<EventSeries> = new Set();
  /** By namespace. */
  readonly #holds: Map<string, Hold> = new Map();
  readonly #flushes: Set<Flush> = new Set();
  readonly #dropped: Record<EventDropReason, number> = { limited: 0, queue: 0, refused: 0, unanswered: 0, closed: 0 };
  readonly #cut: AbortController = new AbortController();
  #events: ResourceClient | undefined;
  #emitted: number = 0;
  #written: number = 0;
  readonly #writing: Set<EventSeries> = new Set();
  readonly #working: Set<Writer> = new Set();
  /** Whether the full queue was reported. */
  #toldFull: boolean = false;
  #cancelUpkeep: (() => void) | undefined;
  /** If a namespace waits. */
  #cancelRest: (() => void) | undefined;
  #shutdown: Promise<void> | undefined;

  /** @throws {WatchError} INVALID_ARGUMENT for an invalid option. */
  constructor(options: EventRecorderOptions) {
    const { cluster, name, instance, api = 'events.k8s.io/v1', ...more } = checkOptions(options, NAMES);
    this.#cluster = requireMethod('cluster', cluster, 'resource', 'a Cluster or an ApiServer');
    if (typeof name !== 'string' || faultOfKey(name))
      throw invalid('name', name, 'a name such as "websites" or "example.com/websites"');
    this.#reporter = { name, instance: short('instance', instance ?? `${name}-${hostname()}`.slice(0, MAX_BYTES)) };
    this.#api = oneOf('api', api, EVENT_APIS);
    this.#onError = callable('onError', more.onError);
    this.#clock = more.clock ?? systemClock;
    this.#now = callable('now', more.now) ?? Date.now;
    this.#random = callable('random', more.random) ?? Math.random;
    this.#limits = wholeNumbers(more, LIMITS);
    this.#maxHeld = Math.ceil(this.#limits.maxQueuedEvents / 2);
    this.#correlator = new EventCorrelator(this.#api, this.#limits, eventNames(this.#random));
    this.#print = reporter('events', { clock: this.#clock });
  }

  /** Emits a `Normal` event. See {@link event}. */
  normal(object: KubernetesObject, reason: string, message: string, details: EventDetails = {}): void {
    this.event(object, { ...details, type: 'Normal', reason, message });
  }

  /** Emits a `Warning`. See {@link event}. */
  warning(object: KubernetesObject, reason: string, message: string, details: EventDetails = {}): void {
    this.event(object, { ...details, type: 'Warning', reason, message });
  }

  /**
   * Emits an event about an object, in its namespace, or in `default` if it has none. Returns at once.
   *
   * @throws {WatchError} INVALID_ARGUMENT for an object without apiVersion, kind or name, for an unknown type, and for a reason or an
   *   action that is empty or too long.
   */
  event(object: KubernetesObject, event: EventOptions): void {
    const occurrence = toOccurrence(object, event);
    this.#emitted++;
    if (this.#shutdown) this.#drop('closed', 1);
    else this.#emit(occurrence);
  }

  #emit(occurrence: Occurrence): void {
    const moment = { at: this.#clock.now(), date: Math.floor(this.#now()) };
    const { series, due, isNews, evicted } = this.#correlator.observe(occurrence, moment, (each) => this.#queue.has(each));
    if (series === undefined) {
      this.#drop('limited', 1);
      if (isNews) this.#tellLimit(occurrence);
      return;
    }
    if (evicted && evicted.sent < evicted.count) this.#enqueue(evicted);
    if (due) this.#enqueue(series);
    this.#arm();
  }

  /** How many events have been emitted, and what became of them. */
  get stats(): EventRecorderStats {
    const dropped = { ...this.#dropped };
    const gone = Object.values(dropped).reduce((sum, each) => sum + each, 0);
    return { emitted: this.#emitted, written: this.#written, pending: this.#emitted - this.#written - gone, dropped };
  }

  /** Resolves when everything that was emitted before has been written or dropped, including the counts that were held back. */
  flush(): Promise<void> {
    for (const series of this.#correlator.untold()) this.#push(series);
    const left = new Set([...this.#queue, ...this.#writing]);
    if (left.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const flush: Flush = { left, done: () => this.#flushes.delete(flush) && resolve() };
      this.#flushes.add(flush);
    });
  }

  /**
   * Writes what is pending, and ends. What is not written after `timeoutMs`, by default 5,000, is dropped and reported. Events
   * emitted later are dropped.
   */
  shutdown(options: { readonly timeoutMs?: number | undefined } = {}): Promise<void> {
    const { timeoutMs = 5_000 } = checkOptions(options, ['timeoutMs']);
    wholeNumber('timeoutMs', timeoutMs);
    this.#shutdown ??= this.#end(timeoutMs);
    return this.#shutdown;
  }

  async #end(timeoutMs: number): Promise<void> {
    this.#cancelUpkeep?.();
    const flushed = this.flush();
    const cancel = this.#clock.schedule(timeoutMs, () => this.#giveUp(timeoutMs));
    await flushed;
    cancel();
  }

  #giveUp(timeoutMs: number): void {
    const { pending } = this.stats;
    const what = `gave up writing ${pending} event${pending === 1 ? '' : 's'} after ${timeoutMs} ms`;
    const error = new WatchError('TIMEOUT', what, { limit: timeoutMs });
    this.#tell(error, { regarding: undefined, dropped: pending });
    for (const series of this.#queue) {
      if (this.#writing.has(series)) this.#queue.delete(series);
      else this.#lose(series, 'closed');
    }
    this.#cancelRest?.();
    this.#cut.abort(error);
  }

  #enqueue(series: EventSeries): void {
    const max = this.#holds.has(series.namespace) ? this.#maxHeld : this.#limits.maxQueuedEvents;
    if (this.#queue.size < max || this.#queue.has(series)) {
      this.#push(series);
      return;
    }
    // If the server has its event, the count is written later.
    if (series.created && this.#correlator.has(series)) return;
    this.#tellFull(series, max, this.#lose(series, 'queue'));
  }

  #tellFull({ first }: EventSeries, limit: number, dropped: number): void {
    if (this.#toldFull) return;
    this.#toldFull = true;
    const what = `${limit} events are waiting to be written: more are dropped`;
    this.#tell(new WatchError('OVERLOADED', what, { limit }), { regarding: first.regarding, dropped });
  }

  #push(series: EventSeries): void {
    this.#queue.add(series);
    this.#start();
  }

  #start(): void {
    for (const writer of WRITERS) {
      if (this.#working.has(writer)) continue;
      this.#working.add(writer);
      soon(() => void this.#work(writer));
    }
  }

  async #work(writer: Writer): Promise<void> {
    for (let series = this.#next(writer); series; series = this.#next(writer)) {
      this.#queue.delete(series);
      this.#writing.add(series);
      if (series.told < series.count) await this.#write(series); // a flush queues what is being written, too
      this.#writing.delete(series);
      this.#settle(series);
      if (this.#queue.has(series)) this.#start(); // it may be the other writer's now
    }
    this.#working.delete(writer);
    if (this.#queue.size === 0) this.#toldFull = false;
    this.#rest();
  }

  /** The first series that a writer may write now. */
  #next(writer: Writer): EventSeries | undefined {
    for (const series of this.#queue) {
      if (this.#writing.has(series)) continue;
      const hold = this.#holds.get(series.namespace);
      if (writer === 'held' ? hold && hold.until <= this.#clock.now() : !hold) return series;
    }
    return undefined;
  }

  /** Continues when the first namespace has waited long enough. */
  #rest(): void {
    this.#cancelRest?.();
    const waiting = new Set(Array.from([...this.#queue, ...this.#writing], ({ namespace }) => namespace));
    for (const namespace of this.#holds.keys()) if (!waiting.has(namespace)) this.#holds.delete(namespace);
    if (this.#holds.size === 0 || this.#working.has('held')) return;
    let until = Infinity;
    for (const hold of this.#holds.values()) until = Math.min(until, hold.until);
    this.#cancelRest = this.#clock.schedule(Math.max(0, until - this.#clock.now()), () => this.#start());
  }

  async #write(series: EventSeries): Promise<void> {
    const { signal } = this.#cut;
    const backoff = new Backoff({ ...RETRIES, random: this.#random });
    for (let tries = 1; !signal.aborted; tries++) {
      series.sent = series.count;
      try {
        await untilAborted(this.#send(series, signal), signal);
        this.#wrote(series, series.sent);
        series.toldAt = this.#clock.now();
        series.failures = 0;
        if (this.#holds.delete(series.namespace)) this.#start();
        if (!signal.aborted) return;
      } catch (error) {
        if (signal.aborted) break;
        const { means, isQuiet, hintMs } = faultOf(error);
        const isOver = means !== 'unanswered' || tries === MAX_TRIES;
        const isUnsure = means === 'refused' && series.isUnsure;
        const isKnown =
          !isUnsure || (await untilAborted(this.#ask(series, signal), signal).then(yes, (why) => refusalCode(why) === 404));
        if (isOver) series.sent = series.told;
        else series.isUnsure = true;
        const dropped =
          means === 'later' ? this.#hold(series, hintMs) : isOver ? this.#lose(series, isKnown ? means : 'unanswered') : 0;
        if (!isQuiet) this.#tell(error, { regarding: series.first.regarding, dropped });
        if (isOver) return;
        await sleep(backoff.failed({ hintMs }), { clock: this.#clock, signal }).catch(() => {});
      }
    }
    series.sent = series.told;
    this.#lose(series, 'closed');
  }

  /** The server has an event of a series with this count. */
  #wrote(series: EventSeries, count: number): void {
    this.#written += count - series.told;
    series.told = count;
    series.isUnsure = false;
  }

  /** Postpones a series, and with it all others of its namespace. Returns how many events are given up. */
  #hold(series: EventSeries, hintMs: number | undefined): number {
    const { namespace } = series;
    const backoff = this.#holds.get(namespace)?.backoff ?? new Backoff({ ...RETRIES, random: this.#random });
    this.#holds.set(namespace, { backoff, until: this.#clock.now() + backoff.failed({ hintMs }) });
    this.#queue.add(series);
    this.#rest();
    const isLast = ++series.failures >= MAX_TRIES;
    if (backoff.failures < MAX_TRIES) {
      if (isLast) return this.#lose(series, 'unanswered');
      this.#trim();
      return 0;
    }
    this.#holds.delete(namespace);
    // A series that the server may already have is tried on its own, or its count would be wrong.
    const isLost = (each: EventSeries): boolean => !each.isUnsure || each.failures >= MAX_TRIES;
    const lost = Array.from(this.#queue).filter((each) => each.namespace === namespace && isLost(each));
    return lost.reduce((sum, each) => sum + this.#lose(each, 'unanswered'), 0);
  }

  /** Makes room for series that need not wait. */
  #trim(): void {
    for (const series of this.#queue) {
      if (this.#queue.size <= this.#maxHeld) return;
      if (this.#holds.has(series.namespace) && !series.isUnsure)
        this.#tellFull(series, this.#maxHeld, this.#lose(series, 'queue'));
    }
  }

  /** Brings the event of a series up to date. Events expire, so a missing one is created again. */
  async #send(series: EventSeries, signal: AbortSignal): Promise<void> {
    const events = this.#eventsIn(series.namespace);
    const patch = (): Promise<object> => events.patch(series.name, toEventPatch(series, this.#api), { signal });
    if (series.created) {
      const isThere = await patch().then(yes, (error) => refusalCode(error) !== 404 && Promise.reject(error));
      if (isThere) return;
      series.created = false;
    }
    // No other event has this name: it was created, and the answer was lost.
    const isNew = await events.create(toEvent(series, this.#api, this.#reporter), { signal }).then(yes, (error) => {
      if (refusalCode(error) !== 409) throw error;
      return false;
    });
    series.created = true;
    if (!isNew && series.sent > 1) await patch();
  }

  /**
   * Finds out what an attempt without an answer has written. A patch that changes nothing needs no rights beyond those for
   * writing.
   */
  async #ask(series: EventSeries, signal: AbortSignal): Promise<void> {
    const events = this.#eventsIn(series.namespace);
    // A server that refuses every write may still allow reading.
    const read = (error: unknown): Promise<object> =>
      refusalCode(error) === 404 ? Promise.reject(error) : events.get(series.name, { signal });
    const event = await events.patch(series.name, {}, { signal }).catch(read);
    series.created = true;
    this.#wrote(series, Math.max(series.told, countIn(event as CoreEvent)));
  }

  #eventsIn(namespace: string): ResourceClient {
    this.#events ??= this.#cluster.resource(this.#api === 'v1' ? 'events/v1' : 'events.events.k8s.io/v1');
    return this.#events.in(namespace);
  }

  #tellLimit({ regarding, type }: Occurrence): void {
    const { burst, refillMs } = this.#limits;
    const { kind, namespace, name } = regarding;
    const object = `${kind} ${namespace ? `${namespace}/` : ''}${name}`;
    const what = `more than ${burst} different events of type ${type} about ${object}: others are dropped, except one every ${refillMs} ms`;
    this.#tell(new WatchError('OVERLOADED', what, { limit: burst }), { regarding, dropped: 1 });
  }

  /** Gives up on the occurrences of a series that are not written. Returns their number. */
  #lose(series: EventSeries, reason: EventDropReason): number {
    const lost = series.count - series.sent;
    series.count = series.sent;
    if (series.count === 0) this.#correlator.forget(series);
    this.#queue.delete(series);
    this.#drop(reason, lost);
    this.#settle(series);
    return lost;
  }

  #drop(reason: EventDropReason, count: number): void {
    this.#dropped[reason] += count;
  }

  #settle(series: EventSeries): void {
    if (this.#queue.has(series) || this.#writing.has(series)) return;
    for (const { left, done } of this.#flushes) if (left.delete(series) && left.size === 0) done();
  }

  /** Counts that were held back are written when a series has ended, or has gone on for long. */
  #arm(): void {
    this.#cancelUpkeep ??= upkeepClock(this.#clock).schedule(FINISH_MS, () => {
      this.#cancelUpkeep = undefined;
      for (const series of this.#correlator.due(this.#clock.now())) this.#enqueue(series);
      if (this.#correlator.isOpen) this.#arm();
    });
  }

  #tell(error: unknown, failure: EventFailure): void {
    if (!this.#onError) {
      this.#print(error);
      return;
    }
    // It is not the fault of the code that emits events.
    quietly(
      () => this.#onError?.(error, failure),
      (thrown) => this.#print(thrown),
    );
  }
}

const yes = (): true => true;

/** What a failed request means. `later`: the server has answered, and may answer differently later. */
interface Fault {
  readonly means: 'refused' | 'later' | 'unanswered';
  readonly isQuiet: boolean;
  readonly hintMs?: number;
}

function faultOf(error: unknown): Fault {
  if (!isWatchError(error, 'REFUSED')) {
    const isFinal = isWatchError(error, 'INVALID_ARGUMENT') || isWatchError(error, 'CLOSED');
    return { means: isFinal ? 'refused' : 'unanswered', isQuiet: false };
  }
  const { code = 0, details } = error.status ?? {};
  const isFinal = code < 500 && code !== 409 && code !== 429;
  // Its namespace is being deleted, or gone, with everything in it: nobody will miss the event.
  const isGone = (code === 404 && details?.kind === 'namespaces') || details?.causes?.[0]?.reason === 'NamespaceTerminating';
  return { means: isFinal ? 'refused' : 'later', isQuiet: isGone, hintMs: (details?.retryAfterSeconds ?? 0) * 1_000 };
}

function toOccurrence(object: KubernetesObject, event: EventOptions): Occurrence {
  const { type, reason, message, action, related, annotations } = checkOptions(event, EVENT_NAMES);
  if (annotations && JSON.stringify(annotations).length > MAX_ANNOTATION_CHARS) {
    throw invalid('annotations', annotations, `at most ${MAX_ANNOTATION_CHARS} characters`);
  }
  return {
    regarding: referenceTo('object', object),
    related: related && referenceTo('related', related),
    type: oneOf('type', type, ['Normal', 'Warning']),
    reason: short('reason', reason),
    action: short('action', action ?? reason),
    message: cut(checkText('message', message)),
    annotations: annotations && { ...annotations },
  };
}

/** Upstream: `GetReference`. */
function referenceTo(what: string, object: KubernetesObject): ObjectReference {
  const { apiVersion, kind } = object ?? {};
  const { name, namespace, uid, resourceVersion } = metadataOf(object);
  const needed = (member: string, value: string | undefined): string => {
    if (typeof value === 'string' && value) return value;
    throw invalid(`${what}.${member}`, value, 'a text: an event names the apiVersion, the kind and the name of its object');
  };
  return {
    ...{ kind: needed('kind', kind), ...(namespace && { namespace }), name: needed('metadata.name', name) },
    ...{ ...(uid && { uid }), apiVersion: needed('apiVersion', apiVersion), ...(resourceVersion && { resourceVersion }) },
  };
}

const utf8 = new TextEncoder();

function short(what: string, text: string): string {
  const isShort = typeof text === 'string' && text !== '' && text.length <= MAX_BYTES && utf8.encode(text).length <= MAX_BYTES;
  if (!isShort) throw invalid(what, text, `a text of 1 to ${MAX_BYTES} bytes`);
  return text;
}
