import { versionOf } from '../../cache/object.ts';
import type { Storage, StorageEvent } from '../../storage/storage.ts';
import type { Watch } from '../../watch/watch.ts';
import {
  contentOf,
  expectSame,
  expectThat,
  type StorageCase,
  type StoredThing,
  set,
  storageCases,
  thing,
} from './storage-case.ts';
import { LISTS } from './storage-lists.ts';
import { WATCHES } from './storage-watches.ts';
import { UPDATES, WRITES } from './storage-writes.ts';

type Seen = StorageEvent<StoredThing>;

/** Each event with its version, and what was there before. */
function told(event: Seen): string {
  if (event.type === 'BOOKMARK' || event.type === 'ERROR') return event.type;
  return `${event.type} ${contentOf(event.object)}@${versionOf(event.object)} was ${event.previous ? contentOf(event.previous) : '-'}`;
}

/** Reads batches, and applies them to the state as a cache does; looks at nothing before that is done. */
async function follow(watch: Watch<Seen>, state: Map<string, StoredThing>, count: number): Promise<string[]> {
  const seen: string[] = [];
  for await (const events of watch.batches()) {
    for (const event of events) {
      if (event.type === 'BOOKMARK' || event.type === 'ERROR') continue;
      const { object } = event;
      if (event.type === 'DELETED') state.delete(object.metadata?.name ?? '');
      else state.set(object.metadata?.name ?? '', object);
    }
    seen.push(...events.map(told));
    if (seen.length >= count) break;
  }
  return seen;
}

/** Watches whose reader keeps the state and passes on objects of it. */
const HINTS: readonly StorageCase[] = storageCases({
  'previousOf: a watch whose reader knows the state delivers the same as one whose reader does not': async ({ storage }) => {
    const scope = storage.scope<StoredThing>('x/') as Storage<StoredThing>;
    const names = ['a', 'ü', '\u{1F600}'];
    const start = new Map<string, StoredThing>();
    for (const name of names) start.set(name, await scope.create(name, thing(name)));
    const resourceVersion = await storage.currentVersion();
    for (let n = 1; n <= 3; n++) for (const name of names) await set(scope, name, n);
    for (const name of names) await scope.delete(name);
    for (const name of names) await scope.create(name, thing(name, 9));
    for (const name of names) await scope.delete(name);
    const expected = await follow(await scope.watch({ resourceVersion }), new Map(), 18);
    const state = new Map(start);
    const previousOf = (key: string): StoredThing | undefined => state.get(key);
    const seen = await follow(await scope.watch({ resourceVersion, previousOf }), state, 18);
    expectSame(seen, expected, 'the events');
    expectThat(seen.length === 18 && state.size === 0, '18 events, and nothing left', state);
  },
});

/**
 * What every `Storage` must do, as cases that any test runner can run, in addition to those of `LIST_WATCHER_CONTRACT`:
 *
 *     const open = () => ({ storage: new MyStorage<StoredThing>() });
 *     for (const { name, needs, run } of STORAGE_CONTRACT) {
 *       if (needs === undefined || mine.includes(needs)) test(name, () => run(open));
 *     }
 *
 * Each case opens what it needs; closing it is up to the caller. Upstream: `storage/testing` of k8s.io/apiserver, after which
 * the cases are named. docs/storage.md has an example.
 */
export const STORAGE_CONTRACT: readonly StorageCase[] = [...WRITES, ...UPDATES, ...LISTS, ...WATCHES, ...HINTS];
