import { byId, make } from '../../elements.ts';
import { plural, timeOf, visible } from '../../words.ts';
import type { HistoryEntry, ObjectHistory, ShownChange } from './history.ts';

/** Changes of an entry that are shown. */
const MAX_SHOWN = 12;

const WORDS: Readonly<Record<HistoryEntry['what'], string>> = {
  read: 'read',
  created: 'created',
  changed: 'changed',
  deleted: 'deleted',
  gap: 'changed, perhaps more than once',
};

/** The history of an object as a list. */
export class HistoryView {
  private readonly list: HTMLElement = byId('detail-entries');
  private readonly elements: WeakMap<HistoryEntry, HTMLLIElement> = new WeakMap();

  show({ entries }: ObjectHistory): void {
    this.list.replaceChildren(
      ...entries.map((entry) => {
        const element = this.elements.get(entry) ?? toItem(entry);
        this.elements.set(entry, element);
        return element;
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
    make('b', { text: WORDS[what] }),
    make('span', { text: version && ` version ${visible(version)}`, name: 'dim' }),
  );
  if (changes.length > 0) item.append(changeList(changes, more, make('ul', { name: 'changes' })));
  return item;
}

/** Fills a list with changes: what was there is struck out, what is there now is underlined. */
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
