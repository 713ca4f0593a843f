import { type KubernetesObject, versionOf } from '../../cache/object.ts';
import { sleep } from '../../watch/clock.ts';
import type { ObjectEvent } from '../../watch/event.ts';
import type { Watch } from '../../watch/watch.ts';
import { ListenerCount } from '../fakes/listener-count.ts';
import { expectThat, type ListWatcherCase, read, shown } from './list-watcher-case.ts';

type AnyWatch = Watch<ObjectEvent<KubernetesObject>>;

/** Ways to end a watch, each of which may come at any time, more than once. */
const WAYS: readonly (readonly [string, (watch: AnyWatch) => unknown])[] = [
  ['stop', (watch) => watch.stop()],
  ['return', (watch) => watch.return()],
  [
    'stop, and stop again',
    (watch) => {
      watch.stop();
      watch.stop();
    },
  ],
  [
    'stop and return',
    (watch) => {
      watch.stop();
      return watch.return();
    },
  ],
  ['return, twice', (watch) => Promise.all([watch.return(), watch.return()])],
];

async function expectOver(watch: AnyWatch, by: string): Promise<void> {
  for (let more = 0; more < 20; more++) {
    if (!(await watch.next()).done) continue;
    expectThat((await watch.next()).done === true, `the end for ever, by ${by}`, 'an event');
    expectThat(watch.stopped, `stopped to be true, by ${by}`, false);
    watch.stop();
    await watch.return();
    return;
  }
  expectThat(false, `an end by ${by}`, 'more and more events');
}

const stops: ListWatcherCase = {
  name: 'a watch can be stopped at any time, in any way, and again; pending reads end',
  async run(open) {
    const { source, put } = await open();
    await put('a');
    const { resourceVersion } = await source.list();
    for (const [by, end] of WAYS) {
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
};

/** Waits until nothing of a request is left, and expects that. */
async function expectNone(listeners: ListenerCount, after: string): Promise<void> {
  for (let turn = 0; turn < 50 && listeners.count > 0; turn++) await sleep(0);
  expectThat(listeners.count === 0, `no listener on the signal after ${after}`, listeners.count);
}

const leavesNothing: ListWatcherCase = {
  name: 'after an answer, a refusal or an end no listener stays on the signal; an abort ends what is open',
  async run(open) {
    const { source, put } = await open();
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
};

/** A request that was answered before the signal aborted. */
async function leave(answer: unknown): Promise<void> {
  await (answer as Partial<AnyWatch>).return?.();
}

const selects: ListWatcherCase = {
  name: 'a selector: a list has what matches; what starts to match is ADDED, what stops is DELETED with its last matching content',
  needs: 'selectors',
  async run(open) {
    const { source, put, remove } = await open();
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
    const seen = await read(watch, 6);
    await watch.return();
    const expected = 'ADDED b, MODIFIED b, DELETED b, ADDED b, DELETED a, DELETED b';
    expectThat(shown(seen) === expected, expected, shown(seen));
    for (const { type, object } of seen) {
      expectThat(object.metadata?.labels?.app === 'web', `${type} to match the selector`, object);
    }
    // A change that takes an object out has its own version, at which a watch can resume.
    for (const [at, event] of seen.entries()) {
      const rest = await source.watch({ resourceVersion: versionOf(event.object), labelSelector });
      const next = await read(rest, seen.length - at - 1);
      await rest.return();
      expectThat(shown(next) === shown(seen.slice(at + 1)), `${shown(seen.slice(at + 1)) || 'nothing'} after ${at}`, shown(next));
    }
  },
};

/** How the requests of a `ListWatcher` end: S15 of the specification. */
export const STOPPING: readonly ListWatcherCase[] = [stops, leavesNothing];

/** What a `ListWatcher` with selectors selects. */
export const SELECTING: readonly ListWatcherCase[] = [selects];
