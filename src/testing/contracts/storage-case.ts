import type { KubernetesObject } from '../../cache/object.ts';
import type { Storage, StorageEvent } from '../../storage/storage.ts';
import { isWatchError } from '../../watch/errors.ts';
import type { Watch } from '../../watch/watch.ts';
import { show } from '../checkers/history.ts';
import { casesOf, type Runs } from './contract.ts';

/** The objects that the contract's cases store. */
export interface StoredThing extends KubernetesObject {
  readonly spec?: { readonly n: number; readonly text?: string | undefined } | undefined;
}

/** A new, empty storage under test, and control over it. */
export interface StorageSubject {
  readonly storage: Storage<StoredThing>;
  /** Makes the storage drop the states before now. Needed for `compacts`. */
  compact?(): Promise<void> | void;
  /**
   * Lets this much time pass for the storage, in milliseconds. Needed for `ttl`. Nothing else lets time pass: a `BackedStorage` waits
   * up to 200 ms after conflicts, for which it needs a clock that goes on by itself.
   */
  pass?(ms: number): Promise<void> | void;
}

/**
 * What some storages do not provide. A storage without a trait declares that, and the cases that need it are left out.
 *
 * - `compacts`: it drops past states, and `compact` makes it do so.
 * - `ttl`: it obeys `ttlSeconds`, and `pass` lets time pass.
 * - `exact`: it reads lists at any version that is kept.
 */
export type StorageTrait = 'compacts' | 'ttl' | 'exact';

/** One requirement that every storage must meet. */
export interface StorageCase {
  readonly name: string;
  readonly needs?: StorageTrait;
  /** Opens storages and tests them. Rejects with an error that says what was expected. */
  run(open: () => StorageSubject | Promise<StorageSubject>): Promise<void>;
}

/** Cases by name, each of which gets a storage of its own. */
export function storageCases(runs: Runs<StorageTrait, (subject: StorageSubject) => Promise<void>>): readonly StorageCase[] {
  return casesOf(runs).map((one) => ({ ...one, run: async (open) => one.run(await open()) }));
}

export function expectThat(truth: boolean, expected: string, seen: unknown): void {
  if (!truth) throw new Error(`storage contract: expected ${expected}, got ${show(seen)}`);
}

export function expectSame(seen: unknown, expected: unknown, of: string): void {
  expectThat(canonical(seen) === canonical(expected), `${of} to be ${show(expected)}`, seen);
}

/** JSON in which the order of members does not matter. */
function canonical(value: unknown): string {
  const sorted = (_: string, member: unknown): unknown =>
    member !== null && typeof member === 'object' && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member;
  return JSON.stringify(value, sorted) ?? 'undefined';
}

/** An object to store. Its namespace is what is before the slash of its key, if there is one. */
export function thing(key: string, n: number = 0, labels?: Readonly<Record<string, string>>): StoredThing {
  const [namespace, name] = key.includes('/') ? key.split('/') : [undefined, key];
  return { metadata: { ...(namespace && { namespace }), name, ...(labels && { labels }) }, spec: { n } };
}

/** Puts objects under keys, one after the other. */
export async function fill(storage: Storage<StoredThing>, keys: readonly string[]): Promise<StoredThing[]> {
  const stored: StoredThing[] = [];
  for (const key of keys) stored.push(await storage.create(key, thing(key)));
  return stored;
}

/** Changes one object. */
export function set(storage: Storage<StoredThing>, key: string, n: number): Promise<StoredThing> {
  return storage.update(key, (current) => ({ ...(current ?? thing(key)), spec: { n } }), { createIfMissing: true });
}

/** A version that the storage cannot have given yet. */
export const newer = (version: string): string => `${BigInt(version) + 1_000_000n}`;

const nameOf = (object: KubernetesObject | undefined): string => object?.metadata?.name ?? '';
export const namesOf = (objects: readonly KubernetesObject[]): string => objects.map(nameOf).join(' ');
export const contentOf = (object: StoredThing | undefined): string => `${nameOf(object)}=${object?.spec?.n}`;
export const contentsOf = (objects: readonly StoredThing[]): string => objects.map(contentOf).join(' ');

/** The code and reason of a refusal; anything else as it is. */
async function refusalOf(request: Promise<unknown>): Promise<unknown> {
  try {
    return { resolved: await request };
  } catch (error) {
    return isWatchError(error, 'REFUSED') ? `${error.status?.code} ${error.status?.reason}` : error;
  }
}

export async function expectRefused(request: Promise<unknown>, expected: string, of: string): Promise<void> {
  expectSame(await refusalOf(request), expected, of);
}

/** Reads the next events except BOOKMARKs, as text: `ADDED a=1`. */
export async function read(watch: Watch<StorageEvent<StoredThing>>, count: number): Promise<StorageEvent<StoredThing>[]> {
  const events: StorageEvent<StoredThing>[] = [];
  while (events.length < count) {
    const { done, value } = await watch.next();
    expectThat(done !== true, `${count} events`, events.length);
    if (value?.type !== 'BOOKMARK') events.push(value as StorageEvent<StoredThing>);
  }
  return events;
}

export function shown(events: readonly StorageEvent<StoredThing>[]): string {
  return events
    .map((event) =>
      event.type === 'ERROR' ? `ERROR ${event.object.code}` : `${event.type} ${contentOf(event.object as StoredThing)}`,
    )
    .join(', ');
}

/** Reads as many events as are expected, and compares them. */
export async function expectEvents(
  watch: Watch<StorageEvent<StoredThing>>,
  expected: string,
): Promise<StorageEvent<StoredThing>[]> {
  const seen = await read(watch, expected.split(', ').length);
  expectSame(shown(seen), expected, 'the events');
  return seen;
}

export async function expectLastEvents(watch: Watch<StorageEvent<StoredThing>>, expected: string): Promise<void> {
  await expectEvents(watch, expected);
  await watch.return();
}
