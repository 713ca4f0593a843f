/**
 * What every `Storage` must do, as cases that any test runner can run, in addition to those of `LIST_WATCHER_CONTRACT`:
 *
 *     const open = () => ({ storage: new MyStorage<StoredThing>() });
 *     for (const { name, needs, run } of STORAGE_CONTRACT) {
 *       if (needs === undefined || mine.includes(needs)) test(name, () => run(open));
 *     }
 *
 * Each case opens what it needs, and closes nothing: the caller does. Upstream: `storage/testing` of k8s.io/apiserver, after
 * which the cases are named.
 */
import type { StorageCase } from './storage-case.ts';
import { HINTS } from './storage-hints.ts';
import { LISTS } from './storage-lists.ts';
import { UPDATES } from './storage-updates.ts';
import { WATCHES } from './storage-watches.ts';
import { WRITES } from './storage-writes.ts';

/** What every `Storage` must do, as test cases for any test runner. docs/storage.md has an example. */
export const STORAGE_CONTRACT: readonly StorageCase[] = [...WRITES, ...UPDATES, ...LISTS, ...WATCHES, ...HINTS];
