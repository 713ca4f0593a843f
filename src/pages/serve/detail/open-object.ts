import { keyOf } from '../../../cache/object.ts';
import { type Clock, systemClock } from '../../../watch/clock.ts';
import { jsonBox, make, say, showJson } from '../../elements.ts';
import type { TableRow } from '../../table.ts';
import { parseExactly, plural, timeOf } from '../../words.ts';

/** What an open object needs. */
interface OpenOptions {
  readonly row: TableRow;
  /** The columns of the table. */
  readonly columns: number;
  readonly read: (signal: AbortSignal) => Promise<Content>;
}

/** The row below an object's own: its content as JSON, followed live. */
export class OpenObject {
  readonly key: string;
  readonly element: HTMLTableRowElement = make('tr', { name: 'detail' });
  isGone: boolean = false;
  /** Its last known row. */
  row: TableRow;
  private readonly facts: HTMLParagraphElement = make('p', { text: 'Reading \u2026' });
  private readonly json: HTMLPreElement = jsonBox('');
  private readonly reader: ObjectReader;

  constructor({ row, columns, read }: OpenOptions) {
    this.row = row;
    this.key = keyOf(row);
    const cell = this.element.insertCell();
    cell.colSpan = columns;
    this.json.hidden = true;
    cell.append(this.facts, this.json);
    this.reader = new ObjectReader({ read, onContent: (content) => this.onContent(content) });
  }

  /** Shows this row as its current state. */
  show(row: TableRow): void {
    if (row === this.row && !this.isGone) return;
    this.row = row;
    this.isGone = false;
    this.reader.changed();
  }

  /** It no longer exists. Its last state stays. */
  gone(): void {
    if (this.isGone) return;
    this.isGone = true;
    say(this.facts, `Deleted at ${timeOf(new Date())}. This was its last state.`);
  }

  close(): void {
    this.reader.close();
    this.element.remove();
  }

  private onContent(content: Content): void {
    if (this.isGone) return;
    if (content.is === 'gone') this.gone();
    else if (content.is === 'failed') say(this.facts, `It could not be read: ${content.message}.`);
    else this.fill(content.text);
  }

  private fill(text: string): void {
    const object = parseExactly(text) as { metadata?: { resourceVersion?: unknown } };
    const version = String(object.metadata?.resourceVersion ?? 'unknown');
    say(this.facts, `version ${version}, read at ${timeOf(new Date())}, ${plural(text.length, 'character')}`);
    this.json.hidden = false;
    showJson(this.json, object);
  }
}

/** What there is to show of an object. */
export type Content =
  | { readonly is: 'object'; readonly text: string }
  | { readonly is: 'gone' }
  | { readonly is: 'failed'; readonly message: string };

/** Options of an {@link ObjectReader}. */
interface ReaderOptions {
  /** Reads the object as it is now. */
  readonly read: (signal: AbortSignal) => Promise<Content>;
  readonly onContent: (content: Content) => void;
  readonly clock?: Clock | undefined;
}

/** An object that changes all the time is read this often. */
const REST_MS = 250;

/**
 * Keeps the content of one object up to date. A row says that the object has changed, but not what it is now; so it is read
 * again, one read at a time. Changes that come meanwhile become one more read.
 *
 *     idle --changed--> reading --answer--> resting --REST_MS--> idle, or reading if it has changed again
 */
export class ObjectReader {
  private readonly options: ReaderOptions;
  private readonly clock: Clock;
  private readonly closing: AbortController = new AbortController();
  private busy: boolean = false;
  private stale: boolean = false;
  private cancelRest: () => void = () => {};

  constructor(options: ReaderOptions) {
    this.options = options;
    this.clock = options.clock ?? systemClock;
    this.changed();
  }

  /** Reads it, now or when the current read is over. */
  changed(): void {
    if (this.closing.signal.aborted) return;
    this.stale = true;
    if (!this.busy) void this.read();
  }

  /** Nothing is read or called from here on. */
  close(): void {
    this.closing.abort();
    this.cancelRest();
  }

  private async read(): Promise<void> {
    const { signal } = this.closing;
    this.busy = true;
    this.stale = false;
    const content = await this.options.read(signal).catch((error: Error): Content => ({ is: 'failed', message: error.message }));
    if (signal.aborted) return;
    this.options.onContent(content);
    this.cancelRest = this.clock.schedule(REST_MS, () => {
      this.busy = false;
      if (this.stale) void this.read();
    });
  }
}
