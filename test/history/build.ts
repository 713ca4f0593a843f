import type { Overflow } from '../../src/broadcast/broadcaster.ts';
import { checkHistory } from '../../src/testing/checkers/checkers.ts';
import type { History, Step, WatcherOptions } from '../../src/testing/checkers/history.ts';
import { toStatus, type WatchEvent } from '../../src/watch/event.ts';

/** Histories by hand. Each event is named by a word, whose first letter is its key. */
const events = new Map<string, WatchEvent>();

export function ev(name: string, type: string = 'MODIFIED'): WatchEvent {
  const known = events.get(`${type} ${name}`);
  if (known !== undefined) return known;
  const event = { type, object: { name, metadata: { name: name[0] } } };
  events.set(`${type} ${name}`, event);
  return event;
}

export function watch(
  watcher: string,
  overflow: Overflow,
  capacity: number,
  more: Partial<WatcherOptions<WatchEvent>> = {},
): Step<WatchEvent> {
  return { step: 'watch', watcher, options: { capacity, overflow, ...more } };
}

export function accept(...names: (string | WatchEvent)[]): Step<WatchEvent>[] {
  return names.map((name) => ({ step: 'accepted', event: typeof name === 'string' ? ev(name) : name }));
}

let reads = 0;

/** A read that settles at once. */
export function read(watcher: string, ...got: (string | WatchEvent)[]): Step<WatchEvent>[] {
  const number = reads++;
  return [ask(watcher, number), gets(watcher, number, ...got)];
}

export function ask(watcher: string, number: number, by: 'next' | 'batch' | 'tryNext' = 'next'): Step<WatchEvent> {
  return { step: 'read', watcher, read: number, by };
}

export function gets(watcher: string, number: number, ...got: (string | WatchEvent)[]): Step<WatchEvent> {
  return { step: 'delivered', watcher, read: number, events: got.map((name) => (typeof name === 'string' ? ev(name) : name)) };
}

/** A read that reaches the end. */
export function end(watcher: string, failure?: unknown): Step<WatchEvent>[] {
  const number = reads++;
  return [
    ask(watcher, number),
    { step: 'end', watcher, read: number, ...(failure !== undefined && { failure: { error: failure } }) },
  ];
}

export function gap(watcher: string, missed: number): Step<WatchEvent> {
  return { step: 'gap', watcher, missed };
}

export function counts(watcher: string, queued: number, dropped: number): Step<WatchEvent> {
  return { step: 'counts', watcher, queued, dropped };
}

export function cut(missed: number): WatchEvent {
  return { type: 'ERROR', object: toStatus({ code: 410, reason: 'Expired', message: 'too slow', details: { missed } }) };
}

export function history(...steps: (Step<WatchEvent> | Step<WatchEvent>[])[]): History<WatchEvent> {
  return { incoming: 0, steps: steps.flat() };
}

/** A message that says what was expected and what was seen. */
export const WORDED = /^[A-Z][a-z]+( for [\w ]+)?( at [{"].+)?: expected (?!undefined)\S.*, seen (?!undefined)\S/;

/** What all checkers say of a history, in short: an event is named by its word. */
export function verdicts(steps: History<WatchEvent>): string[] {
  return checkHistory(steps).map(({ guarantee, watcher, event, expected, seen }) => {
    const { type, object } = (event ?? {}) as { type?: string; object?: { name?: string } };
    const where = `${watcher === undefined ? '' : ` for ${watcher}`}${event === undefined ? '' : ` at ${object?.name ?? type}`}`;
    return `${guarantee}${where}: expected ${expected}, seen ${seen}`.replace(/\{.*"name":"(\w+)","metadata".*\}/, '$1');
  });
}

export function publish(...names: (string | WatchEvent)[]): Step<WatchEvent>[] {
  return names.map((name) => ({ step: 'publish', event: typeof name === 'string' ? ev(name) : name }));
}

/** A read during whose call, or while it pends, these steps happen. */
export function readAmid(watcher: string, steps: Step<WatchEvent>[], ...got: (string | WatchEvent)[]): Step<WatchEvent>[] {
  const [asked, delivered] = read(watcher, ...got) as [Step<WatchEvent>, Step<WatchEvent>];
  return [asked, ...steps, delivered];
}

/** The history of a broadcaster that accepts one event ahead of a full `wait` watcher. */
export function oneAhead(...steps: (Step<WatchEvent> | Step<WatchEvent>[])[]): History<WatchEvent> {
  return { ...history(...steps), incoming: 1 };
}
