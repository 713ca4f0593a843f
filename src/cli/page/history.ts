import type { Announcer } from './announcer.ts';
import { byId, make } from './elements.ts';
import { timeOf } from './words.ts';

/** The kind of a history entry. */
export type HistoryKind = 'good' | 'cut' | 'loss' | 'note';

/** Entries in the history. */
const MAX_HISTORY = 30;

/** What has happened to this page's connection, newest first. */
export class History {
  private readonly announcer: Announcer;
  private repeats: { readonly text: string; readonly times: number } = { text: '', times: 0 };

  constructor(announcer: Announcer) {
    this.announcer = announcer;
  }

  add(text: string, kind: HistoryKind): void {
    const list = byId('history');
    const entry = make('li', { name: kind });
    const { repeats } = this;
    // While a server is away, every attempt fails: show one entry with a count.
    const times = repeats.text === text ? repeats.times + 1 : 1;
    if (times > 1) list.firstElementChild?.remove();
    this.repeats = { text, times };
    entry.append(make('time', { text: timeOf(new Date()) }), ` ${text}${times > 1 ? ` (${times} times)` : ''}`);
    list.prepend(entry);
    while (list.children.length > MAX_HISTORY) list.lastElementChild?.remove();
    this.announcer.say(text);
  }
}
