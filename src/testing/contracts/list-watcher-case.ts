import type { List, ListWatcher } from '../../cache/list-watcher.ts';
import { type KubernetesObject, keyOf, versionOf } from '../../cache/object.ts';
import type { VersionComparator } from '../../cache/versions.ts';
import type { ObjectEvent } from '../../watch/event.ts';
import type { Watch } from '../../watch/watch.ts';
import { show } from '../checkers/guarantees.ts';

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

export function expectThat(truth: boolean, expected: string, seen: unknown): void {
  if (!truth) throw new Error(`list watcher contract: expected ${expected}, got ${show(seen)}`);
}

/** The versions of objects by key, as sorted text: two lists are the same if these are. */
export function stateOf(items: Iterable<KubernetesObject>): string {
  return Array.from(items, (item) => `${keyOf(item)}@${versionOf(item)}`)
    .sort()
    .join(' ');
}

/** Applies events to a list. */
export function fold(list: List<KubernetesObject>, events: readonly ObjectEvent<KubernetesObject>[]): string {
  const state = new Map(list.items.map((item) => [keyOf(item), item]));
  for (const event of events) {
    if (event.type === 'DELETED') state.delete(keyOf(event.object));
    else if (event.type === 'ADDED' || event.type === 'MODIFIED') state.set(keyOf(event.object), event.object);
  }
  return stateOf(state.values());
}

export type Change = Exclude<ObjectEvent<KubernetesObject>, { readonly type: 'BOOKMARK' | 'ERROR' }>;

/** Reads the next changes. */
export async function read<T extends KubernetesObject>(watch: Watch<ObjectEvent<T>>, count: number): Promise<Change[]> {
  const changes: Change[] = [];
  while (changes.length < count) {
    const { done, value } = await watch.next();
    expectThat(done !== true, `${count} changes`, changes.length);
    const event = value as ObjectEvent<KubernetesObject>;
    expectThat(event.type !== 'ERROR', 'no ERROR', event);
    if (event.type !== 'BOOKMARK' && event.type !== 'ERROR') changes.push(event);
  }
  return changes;
}

export const shown: (changes: readonly Change[]) => string = (changes) =>
  changes.map(({ type, object }) => `${type} ${object.metadata?.name}`).join(', ');

/** Some changes of each kind, to the objects a, b and c. */
export async function change({ put, remove }: ListWatcherSubject<never>): Promise<string> {
  await put('b');
  await put('a');
  await remove('a');
  await put('c');
  await put('a');
  return 'ADDED b, MODIFIED a, DELETED a, ADDED c, ADDED a';
}
