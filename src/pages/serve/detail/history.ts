/** The history of one object: what has changed, and when. Bounded in entries and in bytes; the oldest entries go first. */

import { metadataOf, versionOf } from '../../../cache/object.ts';
import { getOrMake } from '../../../watch/errors.ts';
import { byId, make } from '../../elements.ts';
import { plural, timeOf, visible } from '../../words.ts';
import { changesOf, type FieldChanges } from './changes.ts';
import { hasMembers, type Members } from './paths.ts';

/** What can happen to an object. `gap`: it may have changed in between without being seen. */
export type Happening = 'read' | 'created' | 'changed' | 'deleted' | 'gap';

/** A changed value as texts, which may be cut. Undefined: there is none. */
interface ShownChange {
  readonly path: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
}

/** An entry of the history. */
export interface HistoryEntry {
  readonly what: Happening;
  /** When this page got it; for older entries, when the object says it was written. Undefined: it does not say. */
  readonly at: Date | undefined;
  readonly version: string;
  readonly changes: readonly ShownChange[];
  /** Further changes. */
  readonly more: number;
}

/** Entries, and the bytes of their texts. */
const LIMITS: HistoryLimits = { maxItems: 200, maxBytes: 1_048_576 };

interface HistoryLimits {
  readonly maxItems: number;
  readonly maxBytes: number;
}

/** Changes of one entry. */
const MAX_CHANGES = 50;
/** Characters of a changed value. */
const MAX_VALUE_CHARS = 500;

/** Entries, newest first. */
export class ObjectHistory {
  readonly entries: HistoryEntry[] = [];
  private readonly limits: HistoryLimits;
  private bytes: number = 0;

  constructor(limits: HistoryLimits = LIMITS) {
    this.limits = limits;
  }

  /** Adds what has just happened. */
  add(entry: HistoryEntry): void {
    this.entries.unshift(entry);
    this.bytes += bytesOf(entry);
    while (this.entries.length > 1 && this.isOver) this.drop();
  }

  /**
   * Adds older entries, oldest first, as far as there is room. If they include how the first state came about, that replaces
   * its entry.
   */
  addOlder(entries: readonly HistoryEntry[]): void {
    const first = this.entries.at(-1);
    if (first?.what === 'read' && first.version === entries.at(-1)?.version) this.drop();
    for (const entry of [...entries].reverse()) {
      this.entries.push(entry);
      this.bytes += bytesOf(entry);
      if (!this.isOver) continue;
      this.drop();
      return;
    }
  }

  private get isOver(): boolean {
    return this.entries.length > this.limits.maxItems || this.bytes > this.limits.maxBytes;
  }

  private drop(): void {
    const dropped = this.entries.pop();
    if (dropped !== undefined) this.bytes -= bytesOf(dropped);
  }
}

/** The bytes of its texts. An entry without any counts, too. */
function bytesOf({ changes }: HistoryEntry): number {
  const chars = changes.reduce(
    (sum, { path, before = '', after = '' }) => sum + path.length + before.length + after.length + 32,
    64,
  );
  return 2 * chars;
}

/** What an entry is made of. */
interface Step {
  readonly what: Happening;
  readonly at: Date | undefined;
  readonly before: unknown;
  readonly after: unknown;
}

/** Creates an entry. Without a state before or after, there is nothing to compare. */
export function toEntry({ what, at, before, after }: Step): HistoryEntry {
  const { list, more }: FieldChanges = before && after ? changesOf(before, after, MAX_CHANGES) : { list: [], more: 0 };
  const changes = list.map((change) => ({
    path: change.path.slice(0, MAX_VALUE_CHARS),
    before: 'before' in change ? valueText(change.before) : undefined,
    after: 'after' in change ? valueText(change.after) : undefined,
  }));
  return { what, at, version: versionOf(after ?? before), changes, more };
}

function valueText(value: unknown): string {
  // A long text is cut before it is written.
  const text = typeof value === 'string' ? JSON.stringify(value.slice(0, MAX_VALUE_CHARS)) : (JSON.stringify(value) ?? '');
  return text.length > MAX_VALUE_CHARS ? `${text.slice(0, MAX_VALUE_CHARS)}\u2026` : text;
}

/** When something happened, as far as the object says: its creation, or the latest time at which a manager has written fields. */
export function writtenAt(what: Happening, object: unknown): Date | undefined {
  const { managedFields, creationTimestamp } = metadataOf(object) as Members;
  const managers = (Array.isArray(managedFields) ? managedFields : []) as readonly unknown[];
  const told = what === 'created' ? [creationTimestamp] : managers.map((each) => (hasMembers(each) ? each.time : undefined));
  const times = told
    .map((time) => (typeof time === 'string' ? Date.parse(time) : Number.NaN))
    .filter((time) => !Number.isNaN(time));
  return times.length === 0 || what === 'deleted' ? undefined : new Date(Math.max(...times));
}

/** Changes of an entry that are shown. */
const MAX_SHOWN = 12;

/** The history of an object as a list. */
export class HistoryView {
  private readonly list: HTMLElement = byId('detail-entries');
  private readonly elements: WeakMap<HistoryEntry, HTMLLIElement> = new WeakMap();

  show({ entries }: ObjectHistory): void {
    this.list.replaceChildren(
      ...entries.map((entry) => {
        return getOrMake(this.elements, entry, () => toItem(entry));
      }),
    );
  }
}

function toItem({ what, at, version, changes, more }: HistoryEntry): HTMLLIElement {
  const item = make('li');
  const time = make('time', { text: at === undefined ? 'earlier' : momentOf(at) });
  if (at !== undefined) time.dateTime = at.toISOString();
  item.append(
    time,
    ' ',
    make('b', { text: what === 'gap' ? 'changed, perhaps more than once' : what }),
    make('span', { text: version && ` version ${visible(version)}`, name: 'dim' }),
  );
  if (changes.length > 0) item.append(changeList(changes, more, make('ul', { name: 'changes' })));
  return item;
}

/** Fills a list with changes: old values are struck out, new ones underlined. */
export function changeList(changes: readonly ShownChange[], more: number, list: HTMLUListElement): HTMLUListElement {
  list.replaceChildren(
    ...changes.slice(0, MAX_SHOWN).map(({ path, before, after }) => {
      const item = make('li', { text: visible(path === '' ? 'all of it' : path) });
      if (before !== undefined) item.append(' ', make('del', { text: visible(before) }));
      if (after !== undefined) item.append(' ', make('ins', { text: visible(after) }));
      return item;
    }),
  );
  const hidden = more + Math.max(0, changes.length - MAX_SHOWN);
  if (hidden > 0) list.append(make('li', { text: `and ${plural(hidden, 'more change')}`, name: 'dim' }));
  return list;
}

/** The time of day, with the date if that is not today's. */
export function momentOf(date: Date): string {
  return date.toDateString() === new Date().toDateString() ? timeOf(date) : `${date.toLocaleDateString()} ${timeOf(date)}`;
}
