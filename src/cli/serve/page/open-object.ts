import { keyOf } from '../../../cache/object.ts';
import type { Row } from '../../get/table.ts';
import { make, say } from '../../page/elements.ts';
import { jsonBox, showJson } from '../../page/json-box.ts';
import { parseExactly, plural, timeOf } from '../../page/words.ts';
import { type Content, ObjectReader } from './object-reader.ts';

/** What an open object needs. */
export interface OpenOptions {
  readonly row: Row;
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
  row: Row;
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
  show(row: Row): void {
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
