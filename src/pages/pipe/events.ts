import type { WireEvent } from '../../bridge/protocol.ts';
import { bisect } from '../../watch/bisect.ts';
import { tried } from '../../watch/errors.ts';
import { epochOf, jsonOf, parseExactly, placeOf } from '../words.ts';
import { type Level, levelOf } from './fields.ts';
import type { Searched } from './query.ts';

/** Longer lines of text are not tried as JSON. */
const MAX_JSON_CHARS = 100_000;

/** An event held by the page. */
export class EventRow implements Searched {
  readonly kind = 'event' as const;
  /** Counts the rows of this page, including those not held. */
  readonly id: number;
  readonly event: WireEvent;
  readonly time: Date;
  readonly text: string;
  private read: { readonly value: unknown; readonly level: Level | undefined } | undefined = undefined;

  constructor(id: number, { event, time }: { readonly event: WireEvent; readonly time: Date }) {
    this.id = id;
    this.event = event;
    this.time = time;
    this.text = typeof event.object === 'string' ? event.object : jsonOf(event.object);
  }

  get type(): string {
    return this.event.type;
  }

  get place(): number | undefined {
    return placeOf(this.event.resourceVersion);
  }

  get value(): unknown {
    return this.content.value;
  }

  get level(): Level | undefined {
    return this.content.level;
  }

  /** Read when it is needed: only part of a flood is shown. */
  private get content(): { readonly value: unknown; readonly level: Level | undefined } {
    if (this.read === undefined) {
      const value = typeof this.event.object === 'string' ? parsed(this.text) : this.event.object;
      this.read = { value, level: levelOf(value) };
    }
    return this.read;
  }

  /** The event as one line of JSON, as `watchmux watch` prints it. */
  toJson(): string {
    const { type, object, resourceVersion } = this.event;
    // An object that is nested too deeply has a note as its text.
    const isText = typeof object === 'string' || this.text.startsWith('(');
    const version = resourceVersion === undefined ? '' : `,"resourceVersion":${JSON.stringify(resourceVersion)}`;
    return `{"type":${JSON.stringify(type)},"object":${isText ? JSON.stringify(this.text) : this.text}${version}}`;
  }
}

/** With `--raw`, lines that are JSON arrive as text. */
function parsed(text: string): unknown {
  if (!text.startsWith('{') || text.length > MAX_JSON_CHARS) return text;
  return tried(() => parseExactly(text)) ?? text;
}

/** A place where events are missing. */
interface GapRow {
  readonly kind: 'gap';
  readonly id: number;
  /** How many events; undefined if that is unknown. */
  readonly missed: number | undefined;
}

export type ListedRow = EventRow | GapRow;

interface StoreLimits {
  readonly maxRows: number;
  readonly maxChars: number;
}

/**
 * The most recent events, as many as the limits allow, with a gap wherever the stream's sequence jumps.
 *
 * Invariants
 * - It holds at most `maxRows` rows, and at most `maxChars` characters unless there is only one row.
 * - Rows are in the order in which they came, and their ids increase.
 */
export class PipeEvents {
  /** The event types seen, up to a limit. */
  readonly types: Set<string> = new Set();
  received: number = 0;
  /** Events that the gaps say are missing. */
  missed: number = 0;
  private rows: ListedRow[] = [];
  private chars: number = 0;
  private kept: number = 0;
  private nextId: number = 0;
  private last: string | undefined = undefined;
  private readonly limits: StoreLimits;

  constructor(limits: StoreLimits) {
    this.limits = limits;
  }

  /** The id of the next row. */
  get head(): number {
    return this.nextId;
  }

  /** Number of events held. */
  get events(): number {
    return this.kept;
  }

  /** Adds a batch. If it is longer than the store, only its end is kept. */
  push(batch: readonly WireEvent[]): void {
    const time = new Date();
    const first = batch.length - this.limits.maxRows;
    for (const [at, event] of batch.entries()) {
      this.received++;
      this.follow(event);
      if (at >= first) this.keep(event, time);
      else this.nextId++;
    }
    this.trim();
  }

  /** The id of the oldest row that is held. */
  get oldest(): number {
    return this.rows[0]?.id ?? this.nextId;
  }

  /** Returns the rows from a given id on, oldest first. */
  *from(id: number): Generator<ListedRow, void> {
    let at = bisect(0, this.rows.length, (place) => (this.rows[place] as ListedRow).id < id);
    for (const { rows } = this; at < rows.length; at++) yield rows[at] as ListedRow;
  }

  /** Compares an event's sequence with that of the event before, and adds a gap if they are not consecutive. */
  private follow({ resourceVersion }: WireEvent): void {
    if (resourceVersion === undefined) return;
    const { last } = this;
    this.last = resourceVersion;
    if (last === undefined) return;
    if (epochOf(last) !== epochOf(resourceVersion)) {
      this.rows.push({ kind: 'gap', id: this.nextId++, missed: undefined });
      return;
    }
    const missed = (placeOf(resourceVersion) ?? 0) - (placeOf(last) ?? 0) - 1;
    if (!(missed > 0)) return;
    this.missed += missed;
    this.rows.push({ kind: 'gap', id: this.nextId++, missed });
  }

  private keep(event: WireEvent, time: Date): void {
    const row = new EventRow(this.nextId++, { event, time });
    this.rows.push(row);
    this.chars += row.text.length;
    this.kept++;
    if (this.types.size < MAX_TYPES) this.types.add(event.type);
  }

  private trim(): void {
    const { maxRows, maxChars } = this.limits;
    let from = 0;
    while (this.rows.length - from > maxRows || (this.chars > maxChars && this.rows.length - from > 1)) {
      const row = this.rows[from++] as ListedRow;
      if (row.kind === 'gap') continue;
      this.chars -= row.text.length;
      this.kept--;
    }
    if (from > 0) this.rows = this.rows.slice(from);
  }
}

/** Types offered by the filter. */
const MAX_TYPES = 50;
