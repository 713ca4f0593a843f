import type { WireEvent } from '../../bridge/protocol.ts';
import { epochOf, jsonOf, placeOf } from './words.ts';

/** An event held by the page. */
export interface EventRow {
  readonly kind: 'event';
  /** Counts the rows of this page, including those not held. */
  readonly id: number;
  readonly event: WireEvent;
  readonly time: Date;
  /** Its sequence in the stream; undefined if it has none. */
  readonly place: number | undefined;
  /** Its object as one line of text. */
  readonly text: string;
}

/** A place where events are missing. */
export interface GapRow {
  readonly kind: 'gap';
  readonly id: number;
  /** How many events; undefined if that is unknown. */
  readonly missed: number | undefined;
}

/** A row of the table. */
export type Row = EventRow | GapRow;

/** A filter for rows. */
export interface Wanted {
  /** In lower case; empty for all. */
  readonly text: string;
  /** Empty for all. */
  readonly type: string;
}

/** The limits of an {@link EventStore}. */
export interface StoreLimits {
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
export class EventStore {
  /** The event types seen, up to a limit. */
  readonly types: Set<string> = new Set();
  received: number = 0;
  private rows: Row[] = [];
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

  /** Returns the rows after a given id that match, newest first. */
  *newest(wanted: Wanted, after: number = -1): Generator<Row, void> {
    for (let at = this.rows.length - 1; at >= 0; at--) {
      const row = this.rows[at] as Row;
      if (row.id <= after) return;
      if (matches(row, wanted)) yield row;
    }
  }

  /** Number of matching events, without gaps. */
  matching(wanted: Wanted): number {
    let found = 0;
    for (const row of this.rows) if (row.kind === 'event' && matches(row, wanted)) found++;
    return found;
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
    this.rows.push({ kind: 'gap', id: this.nextId++, missed });
  }

  private keep(event: WireEvent, time: Date): void {
    const text = typeof event.object === 'string' ? event.object : jsonOf(event.object);
    this.rows.push({ kind: 'event', id: this.nextId++, event, time, place: placeOf(event.resourceVersion), text });
    this.chars += text.length;
    this.kept++;
    if (this.types.size < MAX_TYPES) this.types.add(event.type);
  }

  private trim(): void {
    const { maxRows, maxChars } = this.limits;
    let from = 0;
    while (this.rows.length - from > maxRows || (this.chars > maxChars && this.rows.length - from > 1)) {
      const row = this.rows[from++] as Row;
      if (row.kind === 'gap') continue;
      this.chars -= row.text.length;
      this.kept--;
    }
    if (from > 0) this.rows = this.rows.slice(from);
  }
}

/** Types offered by the filter. */
const MAX_TYPES = 50;

function matches(row: Row, { text, type }: Wanted): boolean {
  if (row.kind === 'gap') return text === '' && type === '';
  if (type !== '' && row.event.type !== type) return false;
  return text === '' || row.text.toLowerCase().includes(text) || row.event.type.toLowerCase().includes(text);
}
