import { type KubernetesObject, versionOf } from '../../cache/object.ts';
import { sleep } from '../../watch/clock.ts';
import { refusalCode } from '../../watch/errors.ts';
import { isErrorEvent, isInitialEventsEnd, type ObjectEvent } from '../../watch/event.ts';
import type { Watch } from '../../watch/watch.ts';
import { ListenerCount } from '../fakes/fake-clock.ts';
import { needs } from './contract.ts';
import {
  change,
  expectChanges,
  expectNext,
  expectThat,
  type ListWatcherCase,
  listWatcherCases,
  read,
  readLast,
  STREAMS,
  shown,
  stateOf,
} from './list-watcher-streams.ts';

type AnyWatch = Watch<ObjectEvent<KubernetesObject>>;

/** Ways to end a watch, each of which may come at any time, more than once. */
const WAYS: Readonly<Record<string, (watch: AnyWatch) => unknown>> = {
  stop: (watch) => watch.stop(),
  return: (watch) => watch.return(),
  'stop, and stop again': (watch) => [watch.stop(), watch.stop()],
  'stop and return': (watch) => Promise.all([watch.stop(), watch.return()]),
  'return, twice': (watch) => Promise.all([watch.return(), watch.return()]),
};

async function expectOver(watch: AnyWatch, by: string): Promise<void> {
  for (let more = 0; more < 20; more++) {
    if (!(await watch.next()).done) continue;
    expectThat((await watch.next()).done === true, `the end forever, by ${by}`, 'an event');
    expectThat(watch.stopped, `stopped to be true, by ${by}`, false);
    watch.stop();
    await watch.return();
    return;
  }
  expectThat(false, `an end by ${by}`, 'more and more events');
}

/** Waits until nothing of a request is left, and expects that. */
async function expectNone(listeners: ListenerCount, after: string): Promise<void> {
  for (let turn = 0; turn < 50 && listeners.count > 0; turn++) await sleep(0);
  expectThat(listeners.count === 0, `no listener on the signal after ${after}`, listeners.count);
}

/** A request that was answered before the signal aborted. */
async function leave(answer: unknown): Promise<void> {
  await (answer as Partial<AnyWatch>).return?.();
}

/** How the requests of a `ListWatcher` end (S15 of the specification), and what selectors select. */
const ENDINGS: readonly ListWatcherCase[] = listWatcherCases({
  'a watch can be stopped at any time, in any way, and again; pending reads end': async ({ source, put }) => {
    await put('a');
    const { resourceVersion } = await source.list();
    for (const [by, end] of Object.entries(WAYS)) {
      const [unread, pending, behind, ended] = [
        await source.watch({ resourceVersion }),
        await source.watch({ resourceVersion }),
        await source.watch({ resourceVersion: '0' }),
        await source.watch({ resourceVersion: '0' }),
      ];
      await end(unread);
      await expectOver(unread, `${by} before the first read`);
      const reads = [pending.next(), pending.next()];
      await end(pending);
      for (const each of reads) expectThat((await each).done === true, `a pending read to end by ${by}`, await each);
      await expectOver(pending, `${by} while a read was pending`);
      await read(behind, 1);
      await end(behind);
      await expectOver(behind, `${by} after an event`);
      await ended.return();
      await end(ended);
      await expectOver(ended, `${by} after the end`);
    }
  },

  'after an answer, a refusal or an end no listener stays on the signal; an abort ends what is open': async ({ source, put }) => {
    await put('a');
    const abort = new AbortController();
    const { signal } = abort;
    const listeners = new ListenerCount(signal);
    const { resourceVersion } = await source.list({ signal });
    await expectNone(listeners, 'a list');
    for (const end of ['stop', 'return'] as const) {
      const watch = await source.watch({ resourceVersion, signal });
      await watch[end]();
      await watch.next();
      await expectNone(listeners, end);
    }
    await source.list({ signal, continue: 'no such token' }).catch(() => {});
    await expectNone(listeners, 'a refusal');
    const watch = await source.watch({ resourceVersion, signal });
    const requests: Promise<unknown>[] = [source.list({ signal }), source.watch({ signal })];
    const pending = requests.map((request) => request.then(leave, () => {}));
    abort.abort(new Error('enough'));
    await Promise.all(pending);
    expectThat((await watch.next()).done === true, 'an open watch to end with its signal', 'an event');
  },

  'a selector: a list has what matches; what starts to match is ADDED, what stops is DELETED with its last matching content':
    needs('selectors', async ({ source, put, remove }) => {
      const [web, db] = [{ app: 'web' }, { app: 'db' }];
      await put('a', web);
      await put('b', db);
      const labelSelector = 'app=web';
      const { items, resourceVersion } = await source.list({ labelSelector });
      const names = items.map(({ metadata }) => metadata?.name);
      expectThat(names.join() === 'a', 'a', names);
      const watch = await source.watch({ resourceVersion, labelSelector });
      for (const labels of [web, web, db, db, web]) await put('b', labels);
      await put('a', db);
      await put('c', db);
      await remove('c');
      await remove('b');
      const seen = await readLast(watch, 6);
      expectChanges(seen, 'ADDED b, MODIFIED b, DELETED b, ADDED b, DELETED a, DELETED b');
      for (const { type, object } of seen) {
        expectThat(object.metadata?.labels?.app === 'web', `${type} to match the selector`, object);
      }
      // A change that takes an object out has its own version, at which a watch can resume.
      for (const [at, event] of seen.entries()) {
        const rest = await source.watch({ resourceVersion: versionOf(event.object), labelSelector });
        const next = await readLast(rest, seen.length - at - 1);
        expectChanges(next, shown(seen.slice(at + 1)), ` after ${at}`);
      }
    }),
});

/**
 * What every `ListWatcher` must do, as cases that any test runner can run:
 *
 *     for (const { name, needs, run } of LIST_WATCHER_CONTRACT) {
 *       if (needs === undefined || mine.includes(needs)) test(name, () => run(open));
 *     }
 */
export const LIST_WATCHER_CONTRACT: readonly ListWatcherCase[] = [
  ...listWatcherCases({
    'a list has what there is, at a version that is not empty': async ({ source, put, remove }) => {
      expectThat((await source.list()).items.length === 0, 'an empty list', (await source.list()).items);
      for (const name of ['a', 'b', 'c']) await put(name);
      await remove('b');
      const { items, resourceVersion } = await source.list();
      const names = items.map(({ metadata }) => metadata?.name).sort();
      expectThat(names.join() === 'a,c', 'a and c', names);
      expectThat(typeof resourceVersion === 'string' && resourceVersion !== '', 'a resourceVersion', resourceVersion);
      for (const item of items) expectThat(versionOf(item) !== '', 'a resourceVersion of each item', item);
    },

    'a watch from the version of a list delivers what comes after it, in order, and leads to the next list': async (subject) => {
      const { source, put } = subject;
      await put('a');
      const list = await source.list();
      const watch = await source.watch({ resourceVersion: list.resourceVersion });
      const expected = await change(subject);
      const seen = await readLast(watch, 5);
      expectChanges(seen, expected);
      await expectNext(source, list, seen);
    },

    'a watch may be given what is already stored, and delivers the same': async (subject) => {
      const { source, put } = subject;
      for (const name of ['a', 'b']) await put(name);
      const list = await source.list();
      const known = new Map(list.items.map((item) => [item.metadata?.name, item]));
      const watch = await source.watch({ resourceVersion: list.resourceVersion, stored: (name) => known.get(name) });
      await put('a');
      await put('c');
      const seen = await readLast(watch, 2);
      expectChanges(seen, 'MODIFIED a, ADDED c');
      await expectNext(source, list, seen);
    },

    'a DELETED has the version of the deletion': async ({ source, put, remove }) => {
      await put('a');
      const { items, resourceVersion } = await source.list();
      const watch = await source.watch({ resourceVersion });
      await remove('a');
      const [event] = await readLast(watch, 1);
      expectThat(event?.type === 'DELETED', 'DELETED', event);
      expectThat(versionOf(event?.object) !== versionOf(items[0]), 'a new version', event?.object);
      // A watch that resumes there does not get it again.
      const next = await source.watch({ resourceVersion: versionOf(event?.object) });
      await put('b');
      const [after] = await readLast(next, 1);
      expectThat(after?.type === 'ADDED' && after.object.metadata?.name === 'b', 'ADDED b after it', after);
    },

    'a watch from the version of any event delivers exactly what comes after that event': async (subject) => {
      const { source, put } = subject;
      await put('a');
      const { resourceVersion } = await source.list();
      await change(subject);
      const whole = await source.watch({ resourceVersion });
      const all = await readLast(whole, 5);
      for (const [at, event] of all.entries()) {
        const watch = await source.watch({ resourceVersion: versionOf(event.object) });
        const rest = await readLast(watch, 4 - at);
        expectChanges(rest, shown(all.slice(at + 1)), ` after event ${at}`);
      }
    },

    'watches do not know each other: one that stops takes nothing from the others': async ({ source, put }) => {
      const { resourceVersion } = await source.list();
      const [first, second] = [await source.watch({ resourceVersion }), await source.watch({ resourceVersion })];
      await put('a');
      await readLast(first, 1);
      await put('b');
      const seen = await readLast(second, 2);
      expectChanges(seen, 'ADDED a, ADDED b');
    },

    'an aborted signal rejects a request with its reason, and ends an open watch': async ({ source }) => {
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

    'the pages of a list are all of it, each item once, at one version, whatever changes meanwhile': needs(
      'pages',
      async ({ source, put, remove }) => {
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
    ),

    'initial events are the state as ADDED, then one BOOKMARK with the annotation, then changes': needs(
      'initial',
      async ({ source, put }) => {
        for (const name of ['a', 'b']) await put(name);
        const { items, resourceVersion } = await source.list();
        const watch = await source.watch({ sendInitialEvents: true });
        const state = await read(watch, 2);
        expectThat(shown(state).replace(/ADDED [ab]/g, '') === ', ', 'two ADDED', shown(state));
        expectThat(stateOf(state.map(({ object }) => object)) === stateOf(items), stateOf(items), state);
        let next = await watch.next();
        while (next.value?.type === 'BOOKMARK' && !isInitialEventsEnd(next.value)) next = await watch.next();
        const isEnd = next.value !== undefined && isInitialEventsEnd(next.value);
        expectThat(isEnd, 'the BOOKMARK that ends initial events', next.value);
        // A source may count versions for more than this collection, as a kube-apiserver does: then the expected one is
        // unknown.
        const isQuiet = (await source.list()).resourceVersion === resourceVersion;
        expectThat(!isQuiet || versionOf(next.value?.object) === resourceVersion, `its version ${resourceVersion}`, next.value);
        await put('c');
        expectChanges(await readLast(watch, 1), 'ADDED c');
      },
    ),

    'a watch from a version that is too old gets a 410, and nothing else': needs('expires', async (subject) => {
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
        seen = refusalCode(error) ?? error;
      }
      expectThat(seen === 410, 'code 410', seen);
    }),
  }),
  ...STREAMS,
  ...ENDINGS,
];
