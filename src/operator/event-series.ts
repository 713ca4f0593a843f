/**
 * Which events belong together, which are too many, and how one is written in either API. It is a pure state machine, without
 * server or timer. Upstream: `EventCorrelator` of `tools/record`, and the cache of `tools/events`.
 *
 *     occurrence ---> similar? ---> same type, reason, action, objects and message: one series, counted
 *                        |
 *                        '--> the tenth message within ten minutes: all further ones are one series, "(combined ...)"
 *
 *     series ---> to be written? ---> a token of its object and type, 25 of them, one more every five minutes
 *                        |--> none, and the series is new: the occurrence is dropped
 *                        '--> none, or the API's own rule: the count is held back, and written later
 *
 * Upstream's two APIs differ in when counts are written: `v1` writes each, `events.k8s.io/v1` the second, then every half hour,
 * and when a series has ended. Here, a series is the same in both: upstream's `events.k8s.io/v1` shows only the first of
 * several messages, and has no limit.
 *
 * Invariants
 * - A series has at most one event on the server, whose count is `told`.
 * - `told <= sent <= count`; the rest is still to be written. Code that gives up on it subtracts it from `count`.
 */
import type { CoreEvent, ObjectReference } from '../apiserver/kinds/events.ts';
import type { KubernetesObject } from '../cache/object.ts';
import { faultOfKey } from '../selectors/syntax.ts';

/** The APIs that events can be written to. Servers show the events of both in either. */
export const EVENT_APIS = ['events.k8s.io/v1', 'v1'] as const;
/** One of them. */
export type EventApi = (typeof EVENT_APIS)[number];

/** The limits of a recorder, all of them whole numbers above 0. */
export interface EventLimits {
  /** Events about one object, of one type, that are written at once; default 25. */
  readonly burst?: number | undefined;
  /** The interval at which one more may be written when these are used up, in milliseconds; default 300,000. */
  readonly refillMs?: number | undefined;
  /** Events that differ only in their messages before further ones are combined; default 10. */
  readonly maxSimilar?: number | undefined;
  /** How long there must be no such event before they are separate again, in milliseconds; default 600,000. */
  readonly similarMs?: number | undefined;
  /** Events that wait to be written; default 1,000. More are dropped. */
  readonly maxQueuedEvents?: number | undefined;
  /** How many series, the most recent ones, and how many objects are remembered; default 4,096. */
  readonly maxSeries?: number | undefined;
}

export type EventSettings = { readonly [K in keyof EventLimits]-?: number };

/** Something that has happened to an object, once. */
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

/** Something that happens repeatedly, and its event. */
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
  /** The count in the request that is under way or retried; otherwise `told`. */
  sent: number = 0;
  lastDate: number;
  /** When it last happened, and when that was written, by the clock. */
  at: number;
  toldAt: number;
  /** Whether the server has the event. */
  created: boolean = false;
  /** How many times in a row writing it has failed, and whether an attempt without an answer may have written it. */
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

/** A map that drops the least recently used entries. */
class RecentEvents<V> extends Map<string, V> {
  readonly #max: number;

  constructor(max: number) {
    super();
    this.#max = max;
  }

  override get(key: string): V | undefined {
    const value = super.get(key);
    if (value === undefined) return undefined;
    this.delete(key);
    this.set(key, value);
    return value;
  }

  /** Adds a new key. Returns the value that was dropped for it. */
  add(key: string, value: V): V | undefined {
    this.set(key, value);
    if (this.size <= this.#max) return undefined;
    const [oldest, gone] = this.entries().next().value as [string, V];
    this.delete(oldest);
    return gone;
  }
}

interface Bucket {
  tokens: number;
  at: number;
  /** Whether it was reported that it ran out. */
  told: boolean;
}

/** What became of an occurrence. */
interface Observed {
  /** Undefined: it is dropped, because its object has no token left. */
  readonly series: EventSeries | undefined;
  /** Whether the series is to be written now. */
  readonly due: boolean;
  /** Whether it is the first one dropped for this reason. */
  readonly isNews?: boolean;
  /** A series that is no longer remembered, so its held-back count is written now or never. */
  readonly evicted?: EventSeries | undefined;
}

/** How long a series must be without an occurrence to have ended. Upstream: `finishTime`. */
export const FINISH_MS = 360_000;
/** How often a continuing series is written. Upstream: `refreshTime`. */
const REFRESH_MS = 1_800_000;
const COMBINED = '(combined from similar events): ';

/** Folds occurrences into series. See the top of this file. */
export class EventCorrelator {
  readonly #api: EventApi;
  readonly #limits: EventSettings;
  readonly #nameOf: (object: string, date: number) => string;
  readonly #series: RecentEvents<EventSeries>;
  readonly #similar: RecentEvents<{ at: number; messages: Set<string> }>;
  readonly #buckets: RecentEvents<Bucket>;

  /** `nameOf` makes names of events. */
  constructor(api: EventApi, limits: EventSettings, nameOf: (object: string, date: number) => string) {
    this.#api = api;
    this.#limits = limits;
    this.#nameOf = nameOf;
    this.#series = new RecentEvents(limits.maxSeries);
    this.#similar = new RecentEvents(limits.maxSeries);
    this.#buckets = new RecentEvents(limits.maxSeries);
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

  /** Whether events of this group, this one in particular, are still distinguished by their messages. */
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

  /** The series whose counts are not fully written. */
  *untold(): Generator<EventSeries> {
    for (const [, series] of this.#series) if (series.told < series.count) yield series;
  }

  /** Whether {@link due} may return something later, even if nothing happens. */
  get isOpen(): boolean {
    if (this.#api !== 'v1') return this.#series.size > 0;
    return !this.untold().next().done;
  }

  /** The series to be written now because they have ended, or have not been written for long. */
  due(at: number): readonly EventSeries[] {
    const due: EventSeries[] = [];
    for (const [key, series] of this.#series) {
      const isOver = at - series.at >= FINISH_MS;
      if (series.told < series.count && (isOver || at - series.toldAt >= REFRESH_MS)) due.push(series);
      // In `v1` it continues when it happens again, as upstream.
      if (isOver && this.#api !== 'v1') this.#series.delete(key);
    }
    return due;
  }

  /** Whether it will be found when it happens again. */
  has(series: EventSeries): boolean {
    return this.#series.get(series.key) === series;
  }

  /** The server has nothing of this series, and never will. */
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

/** A text cut to the length that servers accept. */
export function cut(text: string): string {
  if (text.length * 3 <= MAX_MESSAGE_BYTES || utf8.encode(text.slice(0, MAX_MESSAGE_BYTES + 1)).length <= MAX_MESSAGE_BYTES)
    return text;
  const { read } = utf8.encodeInto(text, new Uint8Array(MAX_MESSAGE_BYTES - utf8.encode(ELLIPSIS).length));
  return text.slice(0, read) + ELLIPSIS;
}

/** Makes names of events: of the object's name, and 16 hexadecimal digits that no other event has. Upstream: `GenerateEventName`. */
export function eventNames(random: () => number): (object: string, date: number) => string {
  const many = 2 ** 20;
  // It does not begin shortly before its end: by their names, events of one time can be put in order.
  let next = Math.floor(random() * many) & ~(many / 4);
  return (object, date) => {
    next = (next + 1) % many;
    const name = `${object}.${date.toString(16)}${next.toString(16).padStart(5, '0')}`;
    // Names of roles, for example, may have characters that names of events may not. A label's prefix has the same form.
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

/** The changes since the server got the event. */
export function toEventPatch(series: EventSeries, api: EventApi): object {
  if (api !== 'v1') return seriesOf(series);
  return { count: series.sent, lastTimestamp: toTime(series.lastDate), message: series.message };
}

/** The count of an event, whichever API it was written to. */
export function countIn({ series, count }: CoreEvent): number {
  return series?.count ?? (count || 1);
}

const seriesOf = ({ sent, lastDate }: EventSeries): object => ({
  series: { count: sent, lastObservedTime: toMicroTime(lastDate) },
});
const toMicroTime = (date: number): string => new Date(date).toISOString().replace('Z', '000Z');
const toTime = (date: number): string => new Date(date).toISOString().replace(/\.\d+/, '');
