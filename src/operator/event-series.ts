/**
 * Which events are one, which are one too many, and how one is written in either API. It is a pure machine: it knows no server and
 * no timer. Upstream: `EventCorrelator` of `tools/record`, and the cache of `tools/events`.
 *
 *     occurrence ---> similar? ---> same type, reason, action, objects and message: one series, counted
 *                        |
 *                        '--> the tenth message within ten minutes: all further ones are one series, "(combined ...)"
 *
 *     series ---> to be written? ---> a token of its object and type, 25 of them, one more every five minutes
 *                        |--> none, and the series is new: the occurrence is dropped
 *                        '--> none, or the API's own rule: the count is held back, and told later
 *
 * Upstream's two APIs differ in when counts are told: `v1` tells each, `events.k8s.io/v1` the second, and then every half an hour, and
 * when a series has ended. They do not differ here in what a series is: upstream's `events.k8s.io/v1` shows only the first of several
 * messages, and has no limit.
 *
 * Invariants
 * - A series has at most one event on the server, and its count is what is told of it.
 * - `told <= sent <= count`; what is not sent is still to be written. Whoever gives up on it takes it off `count`.
 */
import type { CoreEvent, ObjectReference } from '../apiserver/kinds/events.ts';
import type { KubernetesObject } from '../cache/object.ts';
import { faultOfKey } from '../selectors/syntax.ts';

/** The APIs that events can be written to. Servers show what is written to one in the other, too. */
export const EVENT_APIS = ['events.k8s.io/v1', 'v1'] as const;
/** One of them. */
export type EventApi = (typeof EVENT_APIS)[number];

/** The limits of a recorder, all of them whole numbers above 0. */
export interface EventLimits {
  /** Events about one object, of one type, that are written at once; default 25. */
  readonly burst?: number | undefined;
  /** How often one more may be written when these are used up, in milliseconds; default 300,000. */
  readonly refillMs?: number | undefined;
  /** Events that differ only in their messages before further ones are combined; default 10. */
  readonly maxSimilar?: number | undefined;
  /** After what time without such an event they are told apart again, in milliseconds; default 600,000. */
  readonly similarMs?: number | undefined;
  /** Events that wait to be written; default 1,000. More are dropped. */
  readonly maxQueuedEvents?: number | undefined;
  /** Series that are remembered, the latest ones, and as many objects; default 4,096. */
  readonly maxSeries?: number | undefined;
}

export type EventSettings = { readonly [K in keyof EventLimits]-?: number };

/** What has happened to an object, once. */
export interface Occurrence {
  readonly regarding: ObjectReference;
  readonly related: ObjectReference | undefined;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly action: string;
  readonly message: string;
  readonly annotations: Readonly<Record<string, string>> | undefined;
}

/** The moment of an occurrence: by the clock, and by the calendar, both in milliseconds. */
interface Moment {
  readonly at: number;
  readonly date: number;
}

/** What happens again and again, and the event that says so. */
export class EventSeries {
  readonly key: string;
  readonly first: Occurrence;
  readonly firstDate: number;
  /** The event's name, and its namespace. */
  readonly name: string;
  readonly namespace: string;
  message: string;
  count: number = 0;
  told: number = 0;
  /** What the request says that is on its way, or tried again; otherwise what is told. */
  sent: number = 0;
  lastDate: number;
  /** When it happened last, and when that was told, by the clock. */
  at: number;
  toldAt: number;
  /** Whether the server has the event. */
  created: boolean = false;
  /** How often in a row the server has failed to write it, and whether it may have done so without an answer. */
  failures: number = 0;
  isUnsure: boolean = false;

  constructor(
    first: Occurrence,
    { key, name, moment }: { readonly key: string; readonly name: string; readonly moment: Moment },
  ) {
    this.key = key;
    this.first = first;
    this.name = name;
    this.namespace = first.regarding.namespace || 'default';
    this.message = first.message;
    this.firstDate = this.lastDate = moment.date;
    this.at = this.toldAt = moment.at;
  }
}

/** A map that forgets what was used least recently. */
class Recent<V> {
  readonly #values: Map<string, V> = new Map();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#values.size;
  }

  get(key: string): V | undefined {
    const value = this.#values.get(key);
    if (value === undefined) return undefined;
    this.#values.delete(key);
    this.#values.set(key, value);
    return value;
  }

  /** Adds a key that is not there. Returns the value that had to go. */
  add(key: string, value: V): V | undefined {
    this.#values.set(key, value);
    if (this.#values.size <= this.#max) return undefined;
    const [oldest, gone] = this.#values.entries().next().value as [string, V];
    this.#values.delete(oldest);
    return gone;
  }

  /** Also during an iteration. */
  delete(key: string): void {
    this.#values.delete(key);
  }

  [Symbol.iterator](): Iterator<[string, V]> {
    return this.#values.entries();
  }
}

interface Bucket {
  tokens: number;
  at: number;
  /** Whether it is known that it ran out. */
  told: boolean;
}

/** What became of an occurrence. */
interface Observed {
  /** Undefined: it is dropped, because its object has no token. */
  readonly series: EventSeries | undefined;
  /** Whether the series is to be written now. */
  readonly due: boolean;
  /** Whether it is the first one that is dropped for this reason. */
  readonly isNews?: boolean;
  /** A series that is no longer remembered, so that what it holds back is written now or never. */
  readonly evicted?: EventSeries | undefined;
}

/** After what time without an occurrence a series has ended. Upstream: `finishTime`. */
export const FINISH_MS = 360_000;
/** How often a series that goes on is told. Upstream: `refreshTime`. */
const REFRESH_MS = 1_800_000;
const COMBINED = '(combined from similar events): ';

/** Folds occurrences into series. See the top of this file. */
export class EventCorrelator {
  readonly #api: EventApi;
  readonly #limits: EventSettings;
  readonly #nameOf: (object: string, date: number) => string;
  readonly #series: Recent<EventSeries>;
  readonly #similar: Recent<{ at: number; messages: Set<string> }>;
  readonly #buckets: Recent<Bucket>;

  /** `nameOf` makes names of events. */
  constructor(api: EventApi, limits: EventSettings, nameOf: (object: string, date: number) => string) {
    this.#api = api;
    this.#limits = limits;
    this.#nameOf = nameOf;
    this.#series = new Recent(limits.maxSeries);
    this.#similar = new Recent(limits.maxSeries);
    this.#buckets = new Recent(limits.maxSeries);
  }

  /** `isQueued`: this series will be written anyway, so it takes no token. */
  observe(occurrence: Occurrence, moment: Moment, isQueued: (series: EventSeries) => boolean): Observed {
    const { regarding, related, type, reason, action } = occurrence;
    const { apiVersion, kind, namespace, name, uid } = regarding;
    const subject = JSON.stringify([type, apiVersion, kind, namespace, name, uid]);
    const group = JSON.stringify([
      subject,
      reason,
      action,
      related && [related.kind, related.namespace, related.name, related.uid],
    ]);
    const isSingle = this.#isSingle(group, occurrence.message, moment.at);
    const message = isSingle ? occurrence.message : cut(COMBINED + occurrence.message);
    const key = isSingle ? JSON.stringify([group, message]) : group;
    let series = this.#series.get(key);
    let evicted: EventSeries | undefined;
    if (series === undefined) {
      const bucket = this.#bucket(subject, moment.at);
      if (!taken(bucket)) {
        const isNews = !bucket.told;
        bucket.told = true;
        return { series: undefined, due: false, isNews };
      }
      series = new EventSeries(isSingle ? occurrence : { ...occurrence, message, annotations: undefined }, {
        ...{ key, name: this.#nameOf(name as string, moment.date), moment },
      });
      evicted = this.#series.add(key, series);
    } else {
      const counts = this.#api === 'v1' || series.count < 2;
      if (!isQueued(series) && !(counts && taken(this.#bucket(subject, moment.at)))) return held(series, message, moment);
    }
    return { ...held(series, message, moment), due: true, evicted };
  }

  /** Whether events of this group are still told apart by their messages, this one in particular. */
  #isSingle(group: string, message: string, at: number): boolean {
    const { maxSimilar, similarMs } = this.#limits;
    const known = this.#similar.get(group);
    const similar = known ?? { at, messages: new Set<string>() };
    if (known === undefined) this.#similar.add(group, similar);
    if (at - similar.at > similarMs) similar.messages.clear();
    similar.at = at;
    if (!similar.messages.has(message) && similar.messages.size >= maxSimilar - 1) return false;
    similar.messages.add(message);
    return true;
  }

  #bucket(subject: string, at: number): Bucket {
    const { burst, refillMs } = this.#limits;
    const known = this.#buckets.get(subject);
    if (known === undefined) {
      const bucket: Bucket = { tokens: burst, at, told: false };
      this.#buckets.add(subject, bucket);
      return bucket;
    }
    known.tokens = Math.min(burst, known.tokens + Math.max(0, at - known.at) / refillMs);
    known.at = at;
    if (known.tokens === burst) known.told = false;
    return known;
  }

  /** The series whose counts are not told entirely. */
  *untold(): Generator<EventSeries> {
    for (const [, series] of this.#series) if (series.told < series.count) yield series;
  }

  /** Whether there is anything that {@link due} may return later, if nothing happens. */
  get isOpen(): boolean {
    if (this.#api !== 'v1') return this.#series.size > 0;
    return !this.untold().next().done;
  }

  /** The series that are to be told now because they have ended, or have not been told for long. */
  due(at: number): readonly EventSeries[] {
    const due: EventSeries[] = [];
    for (const [key, series] of this.#series) {
      const isOver = at - series.at >= FINISH_MS;
      if (series.told < series.count && (isOver || at - series.toldAt >= REFRESH_MS)) due.push(series);
      // In `v1` it goes on when it happens again, as upstream.
      if (isOver && this.#api !== 'v1') this.#series.delete(key);
    }
    return due;
  }

  /** Whether it will be found when it happens again. */
  has(series: EventSeries): boolean {
    return this.#series.get(series.key) === series;
  }

  /** Nothing is on the server of this one, nor ever will be. */
  forget(series: EventSeries): void {
    if (this.has(series)) this.#series.delete(series.key);
  }
}

function taken(bucket: Bucket): boolean {
  if (bucket.tokens < 1) return false;
  bucket.tokens--;
  return true;
}

function held(series: EventSeries, message: string, { at, date }: Moment): Observed {
  series.count++;
  series.message = message;
  series.at = at;
  series.lastDate = date;
  return { series, due: false };
}

const MAX_MESSAGE_BYTES = 1_024;
const ELLIPSIS = '…';
const utf8 = new TextEncoder();

/** A text as long as the server takes it. */
export function cut(text: string): string {
  if (text.length * 3 <= MAX_MESSAGE_BYTES || utf8.encode(text.slice(0, MAX_MESSAGE_BYTES + 1)).length <= MAX_MESSAGE_BYTES)
    return text;
  const { read } = utf8.encodeInto(text, new Uint8Array(MAX_MESSAGE_BYTES - utf8.encode(ELLIPSIS).length));
  return text.slice(0, read) + ELLIPSIS;
}

/** Makes names of events: of the object's name, and 16 hexadecimal digits that no other event has. Upstream: `GenerateEventName`. */
export function eventNames(random: () => number): (object: string, date: number) => string {
  const many = 2 ** 20;
  let next = Math.floor(random() * many);
  return (object, date) => {
    next = (next + 1) % many;
    const name = `${object}.${date.toString(16)}${next.toString(16).padStart(5, '0')}`;
    // Names of roles, for example, may have what names of events may not. A label's prefix has the same form.
    return faultOfKey(`${name}/name`) === undefined ? name : crypto.randomUUID();
  };
}

/** Who reports. */
interface Reporter {
  readonly name: string;
  readonly instance: string;
}

/** The event of a series that the server does not have yet. */
export function toEvent(series: EventSeries, api: EventApi, { name, instance }: Reporter): KubernetesObject {
  const { first, sent: count, message } = series;
  const { type, reason, action, regarding, related, annotations } = first;
  const head = {
    ...{ apiVersion: api, kind: 'Event' },
    metadata: { name: series.name, namespace: series.namespace, ...(annotations && { annotations }) },
  };
  const shared = { type, reason, reportingInstance: instance, ...(related && { related }) };
  if (api !== 'v1') {
    const note = { ...shared, action, regarding, note: message, reportingController: name };
    return { ...head, ...note, eventTime: toMicroTime(series.firstDate), ...(count > 1 && seriesOf(series)) } as KubernetesObject;
  }
  const event: CoreEvent = {
    ...{ ...head, ...shared, involvedObject: regarding, message, reportingComponent: name },
    ...{ source: { component: name }, count },
    ...{ firstTimestamp: toTime(series.firstDate), lastTimestamp: toTime(series.lastDate) },
  };
  return event;
}

/** What has changed since the server got the event. */
export function toEventPatch(series: EventSeries, api: EventApi): object {
  if (api !== 'v1') return seriesOf(series);
  return { count: series.sent, lastTimestamp: toTime(series.lastDate), message: series.message };
}

/** How often an event says that it has happened, in whatever API it was written. */
export function countIn({ series, count }: CoreEvent): number {
  return series?.count ?? (count || 1);
}

const seriesOf = ({ sent, lastDate }: EventSeries): object => ({
  series: { count: sent, lastObservedTime: toMicroTime(lastDate) },
});
const toMicroTime = (date: number): string => new Date(date).toISOString().replace('Z', '000Z');
const toTime = (date: number): string => new Date(date).toISOString().replace(/\.\d+/, '');
