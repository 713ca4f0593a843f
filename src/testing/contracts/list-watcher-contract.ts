/**
 * What every `ListWatcher` must do, as cases that any test runner can run:
 *
 *     for (const { name, needs, run } of LIST_WATCHER_CONTRACT) {
 *       if (needs === undefined || mine.includes(needs)) test(name, () => run(open));
 *     }
 */
import { versionOf } from '../../cache/object.ts';
import { isWatchError } from '../../watch/errors.ts';
import { isErrorEvent, isInitialEventsEnd } from '../../watch/event.ts';
import {
  type Change,
  change,
  expectThat,
  fold,
  type ListWatcherCase,
  type ListWatcherSubject,
  read,
  shown,
  stateOf,
} from './list-watcher-case.ts';
import { SELECTING, STOPPING } from './list-watcher-ends.ts';
import { STREAMS } from './list-watcher-streams.ts';

const states: ListWatcherCase = {
  name: 'a list has what there is, at a version that is not empty',
  async run(open) {
    const { source, put, remove } = await open();
    expectThat((await source.list()).items.length === 0, 'an empty list', (await source.list()).items);
    for (const name of ['a', 'b', 'c']) await put(name);
    await remove('b');
    const { items, resourceVersion } = await source.list();
    const names = items.map(({ metadata }) => metadata?.name).sort();
    expectThat(names.join() === 'a,c', 'a and c', names);
    expectThat(typeof resourceVersion === 'string' && resourceVersion !== '', 'a resourceVersion', resourceVersion);
    for (const item of items) expectThat(versionOf(item) !== '', 'a resourceVersion of each item', item);
  },
};

const follows: ListWatcherCase = {
  name: 'a watch from the version of a list delivers what comes after it, in order, and leads to the next list',
  async run(open) {
    const subject = await open();
    const { source, put } = subject;
    await put('a');
    const list = await source.list();
    const watch = await source.watch({ resourceVersion: list.resourceVersion });
    const expected = await change(subject as ListWatcherSubject<never>);
    const seen = await read(watch, 5);
    await watch.return();
    expectThat(shown(seen) === expected, expected, shown(seen));
    const later = stateOf((await source.list()).items);
    expectThat(fold(list, seen) === later, `the next list, ${later}`, fold(list, seen));
  },
};

const stored: ListWatcherCase = {
  name: 'a watch may be given what is already stored, and delivers the same',
  async run(open) {
    const subject = await open();
    const { source, put } = subject;
    for (const name of ['a', 'b']) await put(name);
    const list = await source.list();
    const known = new Map(list.items.map((item) => [item.metadata?.name, item]));
    const watch = await source.watch({ resourceVersion: list.resourceVersion, stored: (name) => known.get(name) });
    await put('a');
    await put('c');
    const seen = await read(watch, 2);
    await watch.return();
    expectThat(shown(seen) === 'MODIFIED a, ADDED c', 'MODIFIED a, ADDED c', shown(seen));
    const later = stateOf((await source.list()).items);
    expectThat(fold(list, seen) === later, `the next list, ${later}`, fold(list, seen));
  },
};

const deletions: ListWatcherCase = {
  name: 'a DELETED has the version of the deletion',
  async run(open) {
    const { source, put, remove } = await open();
    await put('a');
    const { items, resourceVersion } = await source.list();
    const watch = await source.watch({ resourceVersion });
    await remove('a');
    const [event] = await read(watch, 1);
    await watch.return();
    expectThat(event?.type === 'DELETED', 'DELETED', event);
    expectThat(versionOf(event?.object) !== versionOf(items[0]), 'a new version', event?.object);
    // A watch that resumes there does not get it again.
    const next = await source.watch({ resourceVersion: versionOf(event?.object) });
    await put('b');
    const [after] = await read(next, 1);
    await next.return();
    expectThat(after?.type === 'ADDED' && after.object.metadata?.name === 'b', 'ADDED b after it', after);
  },
};

const resumes: ListWatcherCase = {
  name: 'a watch from the version of any event delivers exactly what comes after that event',
  async run(open) {
    const subject = await open();
    const { source, put } = subject;
    await put('a');
    const { resourceVersion } = await source.list();
    await change(subject as ListWatcherSubject<never>);
    const whole = await source.watch({ resourceVersion });
    const all = await read(whole, 5);
    await whole.return();
    for (const [at, event] of all.entries()) {
      const watch = await source.watch({ resourceVersion: versionOf(event.object) });
      const rest = await read(watch, 4 - at);
      await watch.return();
      const expected = shown(all.slice(at + 1));
      expectThat(shown(rest) === expected, `${expected || 'nothing'} after event ${at}`, shown(rest));
    }
  },
};

const apart: ListWatcherCase = {
  name: 'watches do not know each other: one that stops takes nothing from the others',
  async run(open) {
    const { source, put } = await open();
    const { resourceVersion } = await source.list();
    const [first, second] = [await source.watch({ resourceVersion }), await source.watch({ resourceVersion })];
    await put('a');
    await read(first, 1);
    await first.return();
    await put('b');
    const seen = await read(second, 2);
    await second.return();
    expectThat(shown(seen) === 'ADDED a, ADDED b', 'ADDED a, ADDED b', shown(seen));
  },
};

const aborts: ListWatcherCase = {
  name: 'an aborted signal rejects a request with its reason, and ends an open watch',
  async run(open) {
    const { source } = await open();
    const reason = new Error('enough');
    for (const request of [source.list.bind(source), source.watch.bind(source)]) {
      const seen: unknown = await request({ signal: AbortSignal.abort(reason) }).catch((error: unknown) => error);
      expectThat(seen === reason, 'the reason of the signal', seen);
    }
    const { resourceVersion } = await source.list();
    const abort = new AbortController();
    const watch = await source.watch({ resourceVersion, signal: abort.signal });
    const pending = watch.next();
    abort.abort(reason);
    expectThat((await pending).done === true, 'the end of the watch', await pending);
  },
};

const pages: ListWatcherCase = {
  name: 'the pages of a list are all of it, each item once, at one version, whatever changes meanwhile',
  needs: 'pages',
  async run(open) {
    const { source, put, remove } = await open();
    for (const name of ['a', 'b', 'c', 'd', 'e']) await put(name);
    const whole = await source.list();
    let page = await source.list({ limit: 2 });
    const { resourceVersion } = page;
    const items = [...page.items];
    for (let turn = 0; page.continue && turn < 10; turn++) {
      await (turn === 0 ? remove('e') : put(`new${turn}`));
      page = await source.list({ limit: 2, continue: page.continue });
      items.push(...page.items);
      expectThat(page.resourceVersion === resourceVersion, `version ${resourceVersion}`, page.resourceVersion);
    }
    expectThat(stateOf(items) === stateOf(whole.items), stateOf(whole.items), stateOf(items));
  },
};

const initial: ListWatcherCase = {
  name: 'initial events are the state as ADDED, then one BOOKMARK with the annotation, then changes',
  needs: 'initial',
  async run(open) {
    const { source, put } = await open();
    for (const name of ['a', 'b']) await put(name);
    const { items, resourceVersion } = await source.list();
    const watch = await source.watch({ sendInitialEvents: true });
    const state = await read(watch, 2);
    expectThat(shown(state).replace(/ADDED [ab]/g, '') === ', ', 'two ADDED', shown(state));
    expectThat(stateOf(state.map(({ object }) => object)) === stateOf(items), stateOf(items), state);
    let next = await watch.next();
    while (next.value?.type === 'BOOKMARK' && !isInitialEventsEnd(next.value)) next = await watch.next();
    expectThat(next.value !== undefined && isInitialEventsEnd(next.value), 'the BOOKMARK that ends initial events', next.value);
    // A source may count versions for more than this collection, as a kube-apiserver does: then nobody knows which one it is.
    const isQuiet = (await source.list()).resourceVersion === resourceVersion;
    expectThat(!isQuiet || versionOf(next.value?.object) === resourceVersion, `its version ${resourceVersion}`, next.value);
    await put('c');
    const [after] = await read(watch, 1);
    await watch.return();
    expectThat(shown([after as Change]) === 'ADDED c', 'ADDED c', after);
  },
};

const expires: ListWatcherCase = {
  name: 'a watch from a version that is too old gets a 410, and nothing else',
  needs: 'expires',
  async run(open) {
    const subject = await open();
    const { source, put } = subject;
    await put('a');
    const { resourceVersion } = await source.list();
    await put('b');
    await subject.expire?.();
    await put('c');
    let seen: unknown;
    try {
      const watch = await source.watch({ resourceVersion });
      const { value } = await watch.next();
      seen = value && isErrorEvent(value) ? value.object.code : value;
      await watch.return();
    } catch (error) {
      seen = isWatchError(error, 'REFUSED') ? error.status?.code : error;
    }
    expectThat(seen === 410, 'code 410', seen);
  },
};

/** What every `ListWatcher` must do, as test cases for any test runner. */
export const LIST_WATCHER_CONTRACT: readonly ListWatcherCase[] = [
  states,
  follows,
  stored,
  deletions,
  resumes,
  apart,
  aborts,
  pages,
  initial,
  expires,
  ...STREAMS,
  ...STOPPING,
  ...SELECTING,
];
