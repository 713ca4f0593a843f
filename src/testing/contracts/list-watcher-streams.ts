import { type KubernetesObject, keyOf, versionOf } from '../../cache/object.ts';
import { compareVersions } from '../../cache/versions.ts';
import { isInitialEventsEnd, type ObjectEvent } from '../../watch/event.ts';
import type { Watch } from '../../watch/watch.ts';
import { show } from '../checkers/guarantees.ts';
import {
  type Change,
  expectThat,
  fold,
  type ListWatcherCase,
  type ListWatcherSubject,
  read,
  shown,
  stateOf,
} from './list-watcher-case.ts';

type Event = ObjectEvent<KubernetesObject>;
type Subject = ListWatcherSubject<never>;

/** Changes of every kind to several objects, one of which is deleted and created again. Returns their number. */
async function changes({ put, remove }: Subject): Promise<number> {
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

const isChange = (event: Event): event is Change => event.type !== 'BOOKMARK' && event.type !== 'ERROR';

const anywhere: ListWatcherCase = {
  name: 'a watch that is cut at any event or BOOKMARK and resumed there gets what an uncut one gets',
  needs: 'bookmarks',
  async run(open) {
    const subject = await open();
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
      const seen = await read(watch, rest.length);
      await watch.return();
      expectThat(shown(seen) === shown(rest), `${shown(rest) || 'nothing'} after ${event.type} ${at}`, shown(seen));
    }
    // A watch that resumes at the last BOOKMARK gets only what is new.
    const watch = await source.watch({ resourceVersion: versionOf(all.at(-1)?.object) });
    await put('d');
    const next = await read(watch, 1);
    await watch.return();
    expectThat(shown(next) === 'ADDED d', 'ADDED d', shown(next));
  },
};

const monotone: ListWatcherCase = {
  name: 'the versions of a watch never go back, each change of an object has a later one, and the next list is not older',
  async run(open) {
    const subject = await open();
    const { source, compare = compareVersions } = subject;
    const { resourceVersion } = await source.list();
    const watch = await source.watch({ resourceVersion, allowWatchBookmarks: true });
    const seen = await read(watch, await changes(subject as Subject));
    await watch.return();
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
};

const typed: ListWatcherCase = {
  name: 'an object is ADDED where there is none, and MODIFIED or DELETED where there is one',
  async run(open) {
    const subject = await open();
    const { source, put } = subject;
    await put('a');
    const list = await source.list();
    const watch = await source.watch({ resourceVersion: list.resourceVersion });
    const seen = await read(watch, await changes(subject as Subject));
    await watch.return();
    const there = new Set(list.items.map((item) => keyOf(item)));
    for (const event of seen) {
      const { type, object } = event;
      const key = keyOf(object);
      expectThat(there.has(key) === (type !== 'ADDED'), there.has(key) ? 'no ADDED' : 'ADDED', `${type} ${key}`);
      if (type === 'DELETED') there.delete(key);
      else there.add(key);
    }
  },
};

const contents: ListWatcherCase = {
  name: 'a DELETED has the last content of the object',
  async run(open) {
    const { source, put, remove } = await open();
    for (let i = 0; i < 2; i++) await put('a', { turn: `${i}` });
    const { items, resourceVersion } = await source.list();
    const watch = await source.watch({ resourceVersion });
    await remove('a');
    const [event] = await read(watch, 1);
    await watch.return();
    // A client may add the kind to the items of a list. It is in every event of a real server.
    const content = (object: KubernetesObject | undefined): string => {
      const { kind: _, apiVersion: _version, metadata, ...rest } = object ?? {};
      const { resourceVersion: _last, deletionTimestamp: _time, generation: _generation, ...kept } = metadata ?? {};
      return show({ metadata: kept, ...rest });
    };
    expectThat(content(event?.object) === content(items[0]), content(items[0]), content(event?.object));
  },
};

const pagesThenWatch: ListWatcherCase = {
  name: 'a watch from the version of a list with pages leads from them to the next list, whatever changes meanwhile',
  needs: 'pages',
  async run(open) {
    const subject = await open();
    const { source, put } = subject;
    for (const name of ['a', 'b', 'c', 'x']) await put(name);
    let page = await source.list({ limit: 1 });
    const { resourceVersion } = page;
    const items = [...page.items];
    const count = await changes(subject as Subject);
    for (let turn = 0; page.continue && turn < 10; turn++) {
      page = await source.list({ limit: 1, continue: page.continue });
      items.push(...page.items);
    }
    const watch = await source.watch({ resourceVersion });
    const seen = await read(watch, count);
    await watch.return();
    const later = stateOf((await source.list()).items);
    expectThat(
      fold({ items, resourceVersion }, seen) === later,
      `the next list, ${later}`,
      fold({ items, resourceVersion }, seen),
    );
  },
};

const initialThenWatch: ListWatcherCase = {
  name: 'initial events and what follows lead from nothing to the next list',
  needs: 'initial',
  async run(open) {
    const subject = await open();
    const { source, put } = subject;
    await put('a');
    const watch = await source.watch({ sendInitialEvents: true });
    const count = await changes(subject as Subject);
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
  },
};

/** What a `ListWatcher` owes the readers of its watches: S1 to S3, S5 and S6 of the specification. */
export const STREAMS: readonly ListWatcherCase[] = [anywhere, monotone, typed, contents, pagesThenWatch, initialThenWatch];
