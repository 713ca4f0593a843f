/**
 * What every `Backend` must do, as cases that any test runner can run. `BackedStorage` relies on it; run `STORAGE_CONTRACT` on a
 * `BackedStorage` over the backend as well.
 *
 *     const open = () => ({ backend: new MyBackend() });
 *     for (const { name, needs, run } of BACKEND_CONTRACT) {
 *       if (needs === undefined || mine.includes(needs)) test(name, () => run(open));
 *     }
 *
 * Each case opens what it needs, but closes only a backend whose end it tests: closing the others is up to the caller.
 */
import { type KubernetesObject, versionOf } from '../../cache/object.ts';
import type { Backend, Change, Changes, ChangesOptions, TxnResult } from '../../storage/backend.ts';
import { Draft } from '../../storage/values.ts';
import { isWatchError } from '../../watch/errors.ts';
import { casesOf, needs, type Runs } from './contract.ts';
import { contentOf, expectRefused, expectSame, expectThat, type StoredThing, thing } from './storage-case.ts';

/** A new, empty backend under test, and control over it. */
export interface BackendSubject {
  readonly backend: Backend;
  /** What its keys must begin with, ending with a slash; default: nothing. */
  readonly prefix?: string | undefined;
  /** Makes it drop the past before now. Needed for `compacts`. */
  compact?(): Promise<void> | void;
  /** Lets this much time pass for it, in milliseconds. Needed for `ttl`. */
  pass?(ms: number): Promise<void> | void;
  /** Opens another backend over the same data, as another process does. Needed for `shared`. */
  another?(): Promise<Backend> | Backend;
}

/**
 * What some backends do not provide. A backend without a trait declares that, and the cases that need it are left out.
 *
 * - `compacts`: it drops the past, and `compact` makes it do so.
 * - `ttl`: it obeys `ttlSeconds`, and `pass` lets time pass.
 * - `shared`: several can be open on the same data.
 */
export type BackendTrait = 'compacts' | 'ttl' | 'shared';

/** One requirement that every backend must meet. */
export interface BackendCase {
  readonly name: string;
  readonly needs?: BackendTrait;
  /** Opens backends and tests them. Rejects with an error that says what was expected. */
  run(open: () => BackendSubject | Promise<BackendSubject>): Promise<void>;
}

/** A backend with its prefix, and short names for what the cases do. */
class Rig {
  readonly backend: Backend;
  readonly prefix: string;
  readonly subject: BackendSubject;

  constructor(subject: BackendSubject, backend: Backend = subject.backend) {
    this.backend = backend;
    this.prefix = subject.prefix ?? '';
    this.subject = subject;
  }

  txn(key: string, expected: string, n?: number, ttlSeconds?: number): Promise<TxnResult<StoredThing>> {
    const put = n === undefined ? undefined : new Draft(thing(key.slice(key.lastIndexOf('/') + 1), n));
    return this.backend.txn<StoredThing>({ key: this.prefix + key, expected, put, ttlSeconds });
  }

  /** A txn that must succeed, whatever is there. Resolves with its revision. */
  async set(key: string, n?: number, ttlSeconds?: number): Promise<string> {
    const { entry } = await this.backend.get<StoredThing>(this.prefix + key);
    const result = await this.txn(key, versionOf(entry?.object) || '0', n, ttlSeconds);
    if (!result.succeeded) throw new Error(`backend contract: expected a txn of ${key} to succeed`);
    return result.revision;
  }

  async get(key: string): Promise<string> {
    const { entry } = await this.backend.get<StoredThing>(this.prefix + key);
    const object = entry?.object;
    return object ? `${contentOf(object)}@${versionOf(object)}` : 'nothing';
  }

  /** The state at a revision, as text: `a=1 b=2`. */
  async state(revision?: string, prefix: string = this.prefix): Promise<string> {
    const { entries } = await this.backend.range<StoredThing>({ prefix, limit: 1_000, revision });
    return entries.map(({ object }) => contentOf(object)).join(' ');
  }

  /** The same over another backend on the same data. */
  async another(): Promise<Rig> {
    return new Rig(this.subject, await this.subject.another?.());
  }

  changes(after: string, options: Partial<ChangesOptions> = {}): Changes<StoredThing> {
    return this.backend.changesAfter<StoredThing>(after, { prefix: this.prefix, previous: true, ...options });
  }
}

/** Cases by name, each of which gets a backend of its own. */
function backendCases(runs: Runs<BackendTrait, (rig: Rig) => Promise<void>>): readonly BackendCase[] {
  return casesOf(runs).map((one) => ({ ...one, run: async (open) => one.run(new Rig(await open())) }));
}

async function read(changes: Changes<StoredThing>, count: number): Promise<Change<StoredThing>[]> {
  const seen: Change<StoredThing>[] = [];
  while (seen.length < count) {
    const batch = changes.poll() ?? (await changes.next());
    if (!batch) throw new Error(`backend contract: expected ${count} changes, got ${seen.length} and the end`);
    seen.push(...batch.changes);
  }
  return seen;
}

/** Reads until progress arrives. */
async function readProgress(changes: Changes<StoredThing>): Promise<{ progress: string; seen: Change<StoredThing>[] }> {
  const seen: Change<StoredThing>[] = [];
  for (;;) {
    const batch = await changes.next();
    if (!batch) throw new Error('backend contract: expected progress, got the end');
    seen.push(...batch.changes);
    if (batch.progress !== undefined) return { progress: batch.progress, seen };
  }
}

/** A change as text: `MODIFIED a=1->2`. */
function shown({ type, object, previous }: Change<StoredThing>): string {
  const [was, is] = [previous, object].map((each) => each?.spec?.n ?? '');
  return `${type} ${(object ?? previous)?.metadata?.name}=${was}->${is}`;
}

const revisionsOf = (changes: readonly Change<StoredThing>[]): readonly string[] => changes.map(({ revision }) => revision);

const isBelow = (one: string, other: string): boolean => BigInt(one) < BigInt(other);

/** How a request that cannot be answered ends. */
async function endOf(request: () => Promise<unknown>): Promise<unknown> {
  try {
    return await request();
  } catch (error) {
    return isWatchError(error) ? error.code : error;
  }
}

const TXNS: readonly BackendCase[] = backendCases({
  'a put of a new key succeeds once, at a revision that the object has; the next one is told what is there': async (rig) => {
    // `0` stands for none.
    const before = await rig.backend.revision();
    expectThat(/^[1-9]\d{0,38}$/.test(before), 'a decimal number above 0 as the revision before any write', before);
    const first = await rig.txn('a', '0', 1);
    if (!first.succeeded) throw new Error('backend contract: expected a put of a new key to succeed');
    expectSame(versionOf(first.object), first.revision, 'the version of what was put');
    expectSame(await rig.get('a'), `a=1@${first.revision}`, 'what is stored');
    expectSame(await rig.backend.revision(), first.revision, 'the revision');
    const second = await rig.txn('a', '0', 2);
    if (second.succeeded) throw new Error('backend contract: expected a put of a key that is taken to fail');
    expectSame([second.current?.key, contentOf(second.current?.object)], [`${rig.prefix}a`, 'a=1'], 'what it is told');
    expectSame(await rig.get('a'), `a=1@${first.revision}`, 'what is stored');
  },

  'a put and a delete happen only if the version is the expected one': async (rig) => {
    const [one, other] = [await rig.set('a', 1), await rig.set('b', 1)];
    for (const [key, expected] of [
      ['a', other],
      ['a', '0'],
      ['c', one],
    ] as const) {
      for (const n of [9, undefined]) {
        const result = await rig.txn(key, expected, n);
        expectSame(result.succeeded, false, `a txn of ${key} that expects ${expected}`);
        if (!result.succeeded) expectSame(result.current !== undefined, key === 'a', 'whether something is there');
      }
    }
    expectSame(await rig.state(), 'a=1 b=1', 'the state');
    const put = await rig.set('a', 2);
    const gone = await rig.txn('a', put);
    expectThat(gone.succeeded && isBelow(put, gone.revision), 'a delete at a later revision', gone);
    expectSame([await rig.get('a'), await rig.state()], ['nothing', 'b=1'], 'what is stored');
    expectSame((await rig.txn('a', '0', 3)).succeeded, true, 'a put after a delete');
  },

  'a delete of nothing succeeds where nothing is expected, and writes nothing: no revision, no change': async (rig) => {
    const put = await rig.set('a', 1);
    const changes = rig.changes(put);
    const never = await rig.txn('b', '0');
    expectSame([never.succeeded, never.succeeded && never.revision], [true, put], 'a delete of what was never there');
    const deleted = await rig.set('a');
    const again = await rig.txn('a', '0');
    expectSame([again.succeeded, again.succeeded && again.revision], [true, deleted], 'a delete of what is gone');
    expectSame([await rig.backend.revision(), await rig.state()], [deleted, ''], 'the revision and the state');
    await rig.set('c', 1);
    expectSame((await read(changes, 2)).map(shown), ['DELETED a=1->', 'ADDED c=->1'], 'the changes');
    changes.close();
  },

  'each txn has a revision of its own, larger than all before, whatever its key': async (rig) => {
    const keys = Array.from({ length: 20 }, (_, at) => `k${at % 5}/n${at}`);
    const revisions = await Promise.all(keys.map((key) => rig.set(key, 1)));
    expectSame(new Set(revisions).size, 20, 'the number of revisions');
    const newest = await rig.backend.revision();
    const isAbove = revisions.some((revision) => isBelow(newest, revision));
    expectSame(isAbove, false, 'whether a revision is above the newest');
    for (let i = 0; i < 5; i++) expectThat(isBelow(newest, await rig.set('a', i)), 'a larger revision', newest);
  },

  'of writers that expect the same, one wins; the others see what it wrote': async (rig) => {
    const first = await rig.set('a', 0);
    const results = await Promise.all(Array.from({ length: 8 }, (_, at) => rig.txn('a', first, at + 1)));
    const won = results.flatMap((result) => (result.succeeded ? [contentOf(result.object)] : []));
    const told = results.flatMap((result) => (result.succeeded ? [] : [contentOf(result.current?.object)]));
    expectSame(won.length, 1, 'the number of winners');
    expectSame(new Set(told).size === 1 && told[0], won[0], 'what the others are told');
  },

  'an object comes back as its JSON, with the version of its last write': async (rig) => {
    const text = '\u{1F600} \uFFFF \u0000 ÿ "{}" __proto__';
    const put = new Draft<StoredThing>({ metadata: { name: 'a', resourceVersion: '5' }, spec: { n: 1.5e300, text } });
    const key = `${rig.prefix}deep/a`;
    const result = await rig.backend.txn<StoredThing>({ key, expected: '0', put });
    const { entry } = await rig.backend.get<StoredThing>(key);
    const resourceVersion = result.succeeded ? result.revision : '';
    expectSame(entry?.object, { metadata: { name: 'a', resourceVersion }, spec: { n: 1.5e300, text } }, 'the object');
  },
});

/** Of 400 KB. */
const LINES: readonly string[] = Array.from({ length: 5_000 }, (_, at) => `${at} ${'x'.repeat(74)}`);

/** Loads an object, more than once, and returns it. */
async function loaded<O extends { load?(): Promise<void> | undefined }>(one: O | undefined): Promise<O> {
  if (!one) throw new Error('backend contract: expected something under the key');
  await Promise.all([one.load?.(), one.load?.()]);
  expectSame(one.load?.(), undefined, 'what to wait for once it is loaded');
  return one;
}

const LARGE: readonly BackendCase[] = backendCases({
  'a large object can be loaded before it is read, in what is read, in what a txn is told, and in changes': async (rig) => {
    const { backend, prefix } = rig;
    const key = `${prefix}a`;
    const start = await rig.set('b', 1);
    const versions: string[] = [];
    for (const n of [1, 2, undefined]) {
      const put = n === undefined ? undefined : new Draft<Lines>({ metadata: { name: 'a' }, spec: { n, lines: LINES } });
      const result = await backend.txn<Lines>({ key, expected: versions.at(-1) ?? '0', put });
      if (!result.succeeded) throw new Error('backend contract: expected a txn of a large object to succeed');
      versions.push(result.revision);
      if (n === undefined) break;
      const told = await backend.txn<Lines>({ key, expected: start });
      const read = [(await backend.get<Lines>(key)).entry, (await backend.range<Lines>({ prefix, limit: 1 })).entries[0]];
      for (const entry of [...read, told.succeeded ? undefined : told.current]) {
        const { object } = await loaded(entry);
        const metadata = { name: 'a', resourceVersion: result.revision };
        expectSame(object, { metadata, spec: { n, lines: LINES } }, 'the object');
      }
    }
    const changes = backend.changesAfter<Lines>(start, { prefix, previous: true });
    const seen: unknown[] = [];
    while (seen.length < 3) {
      for (const change of (changes.poll() ?? (await changes.next()))?.changes ?? []) {
        const { type, object, previous } = await loaded(change);
        const lengths = [object, previous].flatMap((each) => (each ? [each.spec?.lines.length] : []));
        expectSame(lengths, Array(type === 'MODIFIED' ? 2 : 1).fill(LINES.length), 'the objects of a change');
        seen.push([type, versionOf(object), versionOf(previous)]);
      }
    }
    changes.close();
    const [one, two] = versions;
    expectSame(
      seen,
      [
        ['ADDED', one, ''],
        ['MODIFIED', two, one],
        ['DELETED', '', two],
      ],
      'the changes',
    );
  },
});

interface Lines extends KubernetesObject {
  readonly spec?: { readonly n: number; readonly lines: readonly string[] };
}

const RANGES: readonly BackendCase[] = backendCases({
  'a range has the keys with its prefix, in the order of UTF-16 code units': async (rig) => {
    const keys = ['b', 'a/\uFFFD', 'a/\u{1F600}', 'a/b', 'a.b', 'a/b/c', 'a0', 'a/\uD7FF', 'ä/x', 'a/\u0001'];
    for (const [at, key] of keys.entries()) await rig.set(key, at);
    const { entries, left } = await rig.backend.range({ prefix: `${rig.prefix}a/`, limit: 100 });
    const expected = keys.filter((key) => key.startsWith('a/')).sort((a, b) => (a < b ? -1 : 1));
    expectSame([entries.map(({ key }) => key.slice(rig.prefix.length)), left], [expected, 0], 'the keys');
    const all = await rig.backend.range({ prefix: rig.prefix, limit: 100, keysOnly: true });
    expectSame(all.entries.length, keys.length, 'the number of all keys');
  },

  'a range begins at a key or behind an entry, ends at its limit, and tells how many follow': async (rig) => {
    for (const key of ['a', 'b', 'c', 'd', 'e']) await rig.set(key, 1);
    const { prefix } = rig;
    const first = await rig.backend.range({ prefix, from: `${prefix}b`, limit: 2 });
    expectThat(first.bytes > 0, 'a size', first.bytes);
    const names = (entries: readonly { readonly key: string }[]): string => entries.map(({ key }) => key.slice(-1)).join('');
    expectSame([names(first.entries), first.left], ['bc', 2], 'the first part');
    const second = await rig.backend.range({ prefix, after: first.entries[1], revision: first.revision, limit: 2 });
    expectSame([names(second.entries), second.left, second.revision], ['de', 0, first.revision], 'the second part');
    const between = await rig.backend.range({ prefix, from: `${prefix}bb`, limit: 1, keysOnly: true });
    expectSame([names(between.entries), between.left], ['c', 2], 'a part that begins between keys');
    const none = await rig.backend.range({ prefix: `${prefix}x/`, limit: 1 });
    expectSame([none.entries.length, none.left], [0, 0], 'a range without keys');
  },

  'a range at a revision is the state that was there, with the versions of then': async (rig) => {
    const states: [string, string][] = [];
    const [now, steps] = [new Map<string, number>(), 'a b a -b c b -a a -c -a b a'.split(' ')];
    for (const [at, step] of steps.entries()) {
      const key = step.replace('-', '');
      if (step === key) now.set(key, at);
      else now.delete(key);
      const revision = await rig.set(key, step === key ? at : undefined);
      const state = [...now].sort(([one], [other]) => (one < other ? -1 : 1)).map(([name, n]) => `${name}=${n}`);
      states.push([revision, state.join(' ')]);
    }
    for (const [revision, state] of states) expectSame(await rig.state(revision), state, `the state at ${revision}`);
    const [, [second = ''] = []] = states;
    const part = await rig.backend.range<StoredThing>({ prefix: rig.prefix, limit: 1, revision: second });
    expectSame([part.left, part.revision], [1, second], 'what follows a part of the past, and its revision');
    const versions = part.entries.map(({ object }) => versionOf(object));
    expectSame(versions, [states[0]?.[0]], 'the versions of then');
  },

  'a state or changes after a revision that was never given: 410': async (rig) => {
    const beyond = `${BigInt(await rig.set('a', 1)) + 1_000_000_000n}`;
    await expectRefused(rig.state(beyond), '410 Expired', 'a range');
    await expectRefused(rig.changes(beyond).open(), '410 Expired', 'changes');
    await expectRefused(rig.state('9'.repeat(39)), '410 Expired', 'a range far beyond');
  },

  'a state or changes after a revision that is compacted: 410; what is there stays': needs('compacts', async (rig) => {
    const first = await rig.set('a', 1);
    for (let n = 2; n < 5; n++) await rig.set('a', n);
    await rig.set('b', 1);
    await rig.subject.compact?.();
    await expectRefused(rig.state(first), '410 Expired', 'a range');
    const changes = rig.changes(first);
    const next = changes.open().then(() => changes.next());
    await expectRefused(next, '410 Expired', 'changes');
    expectSame(await rig.state(), 'a=4 b=1', 'the newest state');
    const after = rig.changes(await rig.backend.revision());
    await after.open();
    await rig.set('a', 5);
    expectSame((await read(after, 1)).map(shown), ['MODIFIED a=4->5'], 'the changes after now');
  }),
});

const CHANGES: readonly BackendCase[] = backendCases({
  'changes have the type, the key, the revision, what is there and what was; only those with the prefix': async (rig) => {
    const start = await rig.set('in/a', 1);
    const revisions = [await rig.set('in/a', 2), await rig.set('out/a', 9)];
    const changes = rig.changes(start, { prefix: `${rig.prefix}in/` });
    await changes.open();
    revisions.push(await rig.set('in/b', 1), await rig.set('in/a'), await rig.set('in/a', 3), await rig.set('into', 1));
    const seen = await read(changes, 4);
    const expected = ['MODIFIED a=1->2', 'ADDED b=->1', 'DELETED a=2->', 'ADDED a=->3'];
    expectSame(seen.map(shown), expected, 'the changes');
    const keys = seen.map(({ key }) => key.slice(rig.prefix.length));
    expectSame(keys, ['in/a', 'in/b', 'in/a', 'in/a'], 'the keys');
    const [first, , third, fourth, fifth] = revisions;
    expectSame(revisionsOf(seen), [first, third, fourth, fifth], 'the revisions');
    expectSame(
      seen.map(({ object, previous }) => [versionOf(object), versionOf(previous)]),
      [
        [first, start],
        [third, ''],
        ['', first],
        [fifth, ''],
      ],
      'the versions',
    );
  },

  'changes can be resumed after each of them: nothing is missing, nothing comes twice, whoever writes meanwhile': async (rig) => {
    const start = await rig.set('z', 0);
    const live = rig.changes(start, { previous: false });
    await live.open();
    const writing = Array.from({ length: 4 }, async (_, writer) => {
      for (let n = 0; n < 10; n++) await rig.set(`w${writer}/k${n % 3}`, n);
    });
    const [seen] = await Promise.all([read(live, 40), ...writing]);
    const revisions = revisionsOf(seen);
    const isGrowing = revisions.every((revision, at) => at === 0 || isBelow(revisions[at - 1] as string, revision));
    expectThat(isGrowing, 'revisions that grow', revisions);
    for (const at of [0, 7, 20, 38]) {
      const again = await read(rig.changes(revisions[at] as string), 39 - at);
      expectSame(revisionsOf(again), revisions.slice(at + 1), `what follows ${revisions[at]}`);
    }
  },

  'progress comes when it is asked for, after all changes, though nothing with the prefix changes': async (rig) => {
    const changes = rig.changes(await rig.set('in/a', 1), { prefix: `${rig.prefix}in/` });
    await changes.open();
    await rig.set('in/a', 2);
    const newest = await rig.set('out/a', 1);
    changes.requestProgress();
    const { progress, seen } = await readProgress(changes);
    expectSame(seen.map(shown), ['MODIFIED a=1->2'], 'the changes before it');
    expectThat(!isBelow(progress, newest), `progress to ${newest} or later`, progress);
    const pending = changes.next();
    changes.requestProgress();
    const batch = await pending;
    expectThat(batch?.progress !== undefined, 'progress for a read that already waits', batch);
  },

  'the end of changes settles who waits for them, and that of a backend who waits for anything': async (rig) => {
    const start = await rig.set('a', 1);
    const [one, other] = [rig.changes(start), rig.changes(start)];
    await one.open();
    await other.open();
    const [waiting, waitingToo] = [one.next(), endOf(() => other.next())];
    one.close();
    expectSame(await waiting, undefined, 'what changes end with');
    await rig.backend.close();
    other.close();
    await waitingToo;
    for (const request of [() => rig.get('a'), () => rig.txn('a', start, 2), () => rig.state(), () => rig.backend.revision()]) {
      expectSame(await endOf(request), 'CLOSED', 'the end of a request to what is closed');
    }
  },

  'what has a time to live is deleted by itself; a put without one ends it': needs('ttl', async (rig) => {
    await rig.set('lives', 1, 3);
    const start = await rig.set('dies', 1, 3);
    await rig.set('lives', 2);
    const changes = rig.changes(start);
    await changes.open();
    expectSame((await read(changes, 1)).map(shown), ['MODIFIED lives=1->2'], 'the changes before');
    await rig.subject.pass?.(4_000);
    expectSame((await read(changes, 1)).map(shown), ['DELETED dies=1->'], 'the changes after');
    expectSame(await rig.state(), 'lives=2', 'what is left');
  }),
});

const SHARED: readonly BackendCase[] = backendCases({
  'what one writes, another over the same data reads at once, and follows': needs('shared', async (one) => {
    const other = await one.another();
    const start = await one.set('a', 1);
    expectSame(await other.get('a'), `a=1@${start}`, 'what the other reads');
    const changes = other.changes(start);
    await changes.open();
    const write = async (): Promise<readonly string[]> => [await one.set('a', 2), await other.set('b', 1)];
    const [seen, revisions] = await Promise.all([read(changes, 2), write()]);
    expectSame(revisionsOf(seen), revisions, 'what the other follows');
    expectSame(await one.state(), 'a=2 b=1', 'the state');
  }),

  'of writers over the same data that expect the same, one wins, and no write is lost': needs('shared', async (one) => {
    const rigs = [one, await one.another()];
    await one.set('a', 0);
    let done = 0;
    const add = async (rig: Rig): Promise<void> => {
      for (let left = 10; left > 0; ) {
        const { entry } = await rig.backend.get<StoredThing>(`${rig.prefix}a`);
        const object = entry?.object;
        const result = await rig.txn('a', versionOf(object), (object?.spec?.n ?? 0) + 1);
        if (!result.succeeded) continue;
        left--;
        done++;
      }
    };
    await Promise.all(rigs.flatMap((rig) => [add(rig), add(rig)]));
    expectSame([done, await rigs[1]?.state()], [40, 'a=40'], 'the sum');
  }),
});

/** What every `Backend` must do, as test cases for any test runner. docs/storage.md has an example. */
export const BACKEND_CONTRACT: readonly BackendCase[] = [...TXNS, ...LARGE, ...RANGES, ...CHANGES, ...SHARED];
