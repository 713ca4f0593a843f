import type { List, ListWatcher } from '../../cache/list-watcher.ts';
import { type KubernetesObject, keyOf, versionOf } from '../../cache/object.ts';
import { compareVersions, type VersionComparator } from '../../cache/versions.ts';
import { isInitialEventsEnd, type ObjectEvent } from '../../watch/event.ts';
import type { Watch } from '../../watch/watch.ts';
import { show } from '../checkers/history.ts';
import { casesOf, needs, type Runs } from './contract.ts';

/** A new, empty source under test, and control over its objects. */
export interface ListWatcherSubject<T extends KubernetesObject = KubernetesObject> {
  readonly source: ListWatcher<T>;
  /**
   * Makes the source create an object with this name, or change the existing one. Resolves when the source has done so. `labels`:
   * only for `selectors`.
   */
  put(name: string, labels?: Readonly<Record<string, string>>): Promise<void> | void;
  /** Makes the source delete the object with this name. */
  remove(name: string): Promise<void> | void;
  /** Makes the source drop its past changes, so that every version before now is too old. Needed for `expires`. */
  expire?(): Promise<void> | void;
  /** Makes the source send a BOOKMARK to every watch that allows it. Needed for `bookmarks`. */
  bookmark?(): Promise<void> | void;
  /** How its versions compare. Default `compareVersions`: decimal numbers. */
  readonly compare?: VersionComparator | undefined;
}

/**
 * What some sources do not provide. A source without a trait declares that, and the cases that need it are left out.
 *
 * - `pages`: it obeys `limit`.
 * - `initial`: it obeys `sendInitialEvents`.
 * - `expires`: it drops past changes, and `expire` makes it do so.
 * - `bookmarks`: it sends BOOKMARKs, and `bookmark` makes it send one.
 * - `selectors`: it obeys `labelSelector`, and `put` sets labels.
 */
export type ListWatcherTrait = 'pages' | 'initial' | 'expires' | 'bookmarks' | 'selectors';

/** One requirement that every source must meet. */
export interface ListWatcherCase {
  readonly name: string;
  readonly needs?: ListWatcherTrait;
  /** Opens sources and tests them. Rejects with an error that says what was expected. */
  run<T extends KubernetesObject>(open: () => ListWatcherSubject<T> | Promise<ListWatcherSubject<T>>): Promise<void>;
}

/** Cases by name, each of which gets a source of its own. */
export function listWatcherCases(
  runs: Runs<ListWatcherTrait, (subject: ListWatcherSubject) => Promise<void>>,
): readonly ListWatcherCase[] {
  return casesOf(runs).map((one) => ({ ...one, run: async (open) => one.run((await open()) as unknown as ListWatcherSubject) }));
}

export function expectThat(truth: boolean, expected: string, seen: unknown): void {
  if (!truth) throw new Error(`list watcher contract: expected ${expected}, got ${show(seen)}`);
}

/** The versions of objects by key, as sorted text: two lists are the same if these are. */
export function stateOf(items: Iterable<KubernetesObject>): string {
  return Array.from(items, (item) => `${keyOf(item)}@${versionOf(item)}`)
    .sort()
    .join(' ');
}

function fold(list: List<KubernetesObject>, events: readonly ObjectEvent<KubernetesObject>[]): string {
  const state = new Map(list.items.map((item) => [keyOf(item), item]));
  for (const event of events) {
    if (event.type === 'DELETED') state.delete(keyOf(event.object));
    else if (event.type === 'ADDED' || event.type === 'MODIFIED') state.set(keyOf(event.object), event.object);
  }
  return stateOf(state.values());
}

type ObjectChange = Exclude<ObjectEvent<KubernetesObject>, { readonly type: 'BOOKMARK' | 'ERROR' }>;

/** Reads the next changes. */
export async function read<T extends KubernetesObject>(watch: Watch<ObjectEvent<T>>, count: number): Promise<ObjectChange[]> {
  const changes: ObjectChange[] = [];
  while (changes.length < count) {
    const { done, value } = await watch.next();
    expectThat(done !== true, `${count} changes`, changes.length);
    const event = value as ObjectEvent<KubernetesObject>;
    expectThat(event.type !== 'ERROR', 'no ERROR', event);
    if (event.type !== 'BOOKMARK' && event.type !== 'ERROR') changes.push(event);
  }
  return changes;
}

/** Reads the next changes, and ends the watch. */
export async function readLast<T extends KubernetesObject>(watch: Watch<ObjectEvent<T>>, count: number): Promise<ObjectChange[]> {
  const changes = await read(watch, count);
  await watch.return();
  return changes;
}

export const shown: (changes: readonly ObjectChange[]) => string = (changes) =>
  changes.map(({ type, object }) => `${type} ${object.metadata?.name}`).join(', ');

/** Expects these changes, such as `ADDED a, DELETED b`. */
export function expectChanges(seen: readonly ObjectChange[], expected: string, when: string = ''): void {
  expectThat(shown(seen) === expected, `${expected || 'nothing'}${when}`, shown(seen));
}

/** Expects changes to lead from a list to the next one. */
export async function expectNext(
  source: ListWatcher<KubernetesObject>,
  list: List<KubernetesObject>,
  seen: readonly ObjectChange[],
): Promise<void> {
  const later = stateOf((await source.list()).items);
  expectThat(fold(list, seen) === later, `the next list, ${later}`, fold(list, seen));
}

/** Some changes of each kind, to the objects a, b and c. */
export async function change({ put, remove }: ListWatcherSubject): Promise<string> {
  await put('b');
  await put('a');
  await remove('a');
  await put('c');
  await put('a');
  return 'ADDED b, MODIFIED a, DELETED a, ADDED c, ADDED a';
}

type Event = ObjectEvent<KubernetesObject>;

/** Changes of every kind to several objects, one of which is deleted and created again. Returns their number. */
async function changes({ put, remove }: ListWatcherSubject): Promise<number> {
  await put('b');
  await put('a');
  await put('b');
  await remove('a');
  await put('c');
  await remove('b');
  await put('a');
  await put('c');
  await remove('c');
  return 9;
}

/** Reads up to the version of an event, including BOOKMARKs. */
async function readUntil<T extends KubernetesObject>(
  watch: Watch<ObjectEvent<T>>,
  last: (event: Event) => boolean,
): Promise<Event[]> {
  const events: Event[] = [];
  for (;;) {
    const { done, value } = await watch.next();
    expectThat(done !== true, 'more events', events.length);
    const event = value as Event;
    expectThat(event.type !== 'ERROR', 'no ERROR', event);
    events.push(event);
    if (last(event)) return events;
  }
}

const isChange = (event: Event): event is ObjectChange => event.type !== 'BOOKMARK' && event.type !== 'ERROR';

/** What a `ListWatcher` owes the readers of its watches: S1 to S3, S5 and S6 of the specification. */
export const STREAMS: readonly ListWatcherCase[] = listWatcherCases({
  'a watch that is cut at any event or BOOKMARK and resumed there gets what an uncut one gets': needs(
    'bookmarks',
    async (subject) => {
      const { source, put, bookmark } = subject;
      await put('a');
      const { resourceVersion } = await source.list();
      const whole = await source.watch({ resourceVersion, allowWatchBookmarks: true });
      const all: Event[] = [];
      for (const name of ['b', 'a', 'c']) {
        await put(name);
        all.push(...(await readUntil(whole, isChange)));
        await bookmark?.();
        all.push(...(await readUntil(whole, ({ type }) => type === 'BOOKMARK')));
      }
      await whole.return();
      for (const [at, event] of all.entries()) {
        const rest = all.slice(at + 1).filter(isChange);
        const watch = await source.watch({ resourceVersion: versionOf(event.object) });
        const seen = await readLast(watch, rest.length);
        expectChanges(seen, shown(rest), ` after ${event.type} ${at}`);
      }
      // A watch that resumes at the last BOOKMARK gets only what is new.
      const watch = await source.watch({ resourceVersion: versionOf(all.at(-1)?.object) });
      await put('d');
      const next = await readLast(watch, 1);
      expectChanges(next, 'ADDED d');
    },
  ),

  'the versions of a watch never go back, each change of an object has a later one, and the next list is not older': async (
    subject,
  ) => {
    const { source, compare = compareVersions } = subject;
    const { resourceVersion } = await source.list();
    const watch = await source.watch({ resourceVersion, allowWatchBookmarks: true });
    const seen = await readLast(watch, await changes(subject));
    let last = resourceVersion;
    const keys = new Map<string, string>();
    for (const { type, object } of seen) {
      const version = versionOf(object);
      expectThat(compare(version, last) >= 0, `${type} at version ${last} or later`, version);
      last = version;
      const before = keys.get(keyOf(object)) ?? resourceVersion;
      expectThat(compare(version, before) > 0, `${type} ${keyOf(object)} after version ${before}`, version);
      keys.set(keyOf(object), version);
    }
    const later = (await source.list()).resourceVersion;
    expectThat(compare(later, last) >= 0, `a list at version ${last} or later`, later);
  },

  'an object is ADDED where there is none, and MODIFIED or DELETED where there is one': async (subject) => {
    const { source, put } = subject;
    await put('a');
    const list = await source.list();
    const watch = await source.watch({ resourceVersion: list.resourceVersion });
    const seen = await readLast(watch, await changes(subject));
    const there = new Set(list.items.map((item) => keyOf(item)));
    for (const event of seen) {
      const { type, object } = event;
      const key = keyOf(object);
      expectThat(there.has(key) === (type !== 'ADDED'), there.has(key) ? 'no ADDED' : 'ADDED', `${type} ${key}`);
      if (type === 'DELETED') there.delete(key);
      else there.add(key);
    }
  },

  'a DELETED has the last content of the object': async ({ source, put, remove }) => {
    for (let i = 0; i < 2; i++) await put('a', { turn: `${i}` });
    const { items, resourceVersion } = await source.list();
    const watch = await source.watch({ resourceVersion });
    await remove('a');
    const [event] = await readLast(watch, 1);
    // A client may add the kind to the items of a list. It is in every event of a real server.
    const content = (object: KubernetesObject | undefined): string => {
      const { kind: _, apiVersion: _version, metadata, ...rest } = object ?? {};
      const { resourceVersion: _last, deletionTimestamp: _time, generation: _generation, ...kept } = metadata ?? {};
      return show({ metadata: kept, ...rest });
    };
    expectThat(content(event?.object) === content(items[0]), content(items[0]), content(event?.object));
  },

  'a watch from the version of a list with pages leads from them to the next list, whatever changes meanwhile': needs(
    'pages',
    async (subject) => {
      const { source, put } = subject;
      for (const name of ['a', 'b', 'c', 'x']) await put(name);
      let page = await source.list({ limit: 1 });
      const { resourceVersion } = page;
      const items = [...page.items];
      const count = await changes(subject);
      for (let turn = 0; page.continue && turn < 10; turn++) {
        page = await source.list({ limit: 1, continue: page.continue });
        items.push(...page.items);
      }
      const watch = await source.watch({ resourceVersion });
      const seen = await readLast(watch, count);
      await expectNext(source, { items, resourceVersion }, seen);
    },
  ),

  'initial events and what follows lead from nothing to the next list': needs('initial', async (subject) => {
    const { source, put } = subject;
    await put('a');
    const watch = await source.watch({ sendInitialEvents: true });
    const count = await changes(subject);
    const initial = (await readUntil(watch, isInitialEventsEnd)).filter(isChange);
    const { resourceVersion } = (await source.list()) as { resourceVersion: string };
    // What happened before the BOOKMARK may be among the initial events, so the number of the others is not known.
    const seen = [...initial];
    const list = await source.list();
    for (let left = count; left > 0 && fold({ items: [], resourceVersion }, seen) !== stateOf(list.items); left--) {
      seen.push(...(await read(watch, 1)));
    }
    await watch.return();
    const state = fold({ items: [], resourceVersion }, seen);
    expectThat(state === stateOf(list.items), stateOf(list.items), state);
  }),
});
