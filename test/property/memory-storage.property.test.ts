// P9.1 to P9.6, P14.1, S1, S2, S3 (versions rise), S4 (nothing is missing before the last that came), S5 (ADDED where there is
// nothing, else MODIFIED or DELETED) and S6 of a MemoryStorage: whatever is done to it, every list, every watch and every refusal is that of a
// plain list of revisions. And recorded histories of concurrent clients are linearizable.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { List, ListOptions } from '../../src/cache/index.ts';
import { isWatchError, type Watch } from '../../src/index.ts';
import { MemoryStorage, type Storage, type StorageEvent } from '../../src/storage/index.ts';
import { checkLinearizable, GUARANTEES, type StorageRequest } from '../../src/testing/index.ts';
import { runs } from '../runs.ts';
import { type Item, lineOf, type Selects, StorageModel, WatchModel } from './storage-model.ts';

const RUNS = runs(1_500);
const timeout = 30_000 + RUNS * 40;

const PREFIXES = ['', 'x/', 'x/p/', 'y/'] as const;
const KEYS = ['x/p/a', 'x/p/b', 'x/q/a', 'y/a', 'y/b', 'x/pp'] as const;
const SELECTORS: readonly (readonly [string, string, Selects])[] = [
  ['', '', () => true],
  ['even', '', ({ n }) => n % 2 === 0],
  ['!even', '', ({ n }) => n % 2 !== 0],
  ['', 'metadata.name=a', ({ metadata }) => metadata?.name === 'a'],
  ['', 'third=0', ({ n }) => n % 3 === 0],
];

const key = fc.constantFrom(...KEYS);
const prefix = fc.constantFrom(...PREFIXES);
const selector = fc.constantFrom(...SELECTORS);
/** How far back a version is. */
const back = fc.integer({ min: 0, max: 12 });

type Command =
  | { readonly do: 'put'; readonly key: (typeof KEYS)[number]; readonly n: number }
  | { readonly do: 'delete'; readonly key: (typeof KEYS)[number]; readonly version: number | undefined }
  | { readonly do: 'compact' | 'list' | 'progress'; readonly back: number }
  | { readonly do: 'page'; readonly limit: number; readonly writes: number }
  | { readonly do: 'watch'; readonly from: number | 'state' | 'marked'; readonly bookmarks: boolean }
  | { readonly do: 'read' | 'stop' | 'resume'; readonly watch: number; readonly count: number };
type Placed = Command & { readonly prefix: (typeof PREFIXES)[number]; readonly selector: (typeof SELECTORS)[number] };

const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant('put' as const), key, n: fc.integer({ min: 0, max: 5 }) }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('delete' as const), key, version: fc.option(back, { nil: undefined }) }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('compact' as const, 'list', 'list', 'list', 'progress'), back }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('page' as const),
      limit: fc.integer({ min: 1, max: 3 }),
      writes: fc.integer({ min: 0, max: 2 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('watch' as const),
      from: fc.oneof(back, fc.constantFrom('state' as const, 'marked' as const)),
      bookmarks: fc.boolean(),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constantFrom('read' as const, 'read', 'read', 'stop'),
      watch: fc.nat(20),
      count: fc.integer({ min: 1, max: 6 }),
    }),
  },
);
const placed: fc.Arbitrary<Placed> = fc.tuple(command, prefix, selector).map(([each, prefix, selector]) => ({
  ...each,
  prefix,
  selector,
}));

const item = (key: string, n: number): Item => ({
  metadata: { name: key.split('/').at(-1) as string, ...(n % 2 === 0 && { labels: { even: 'yes' } }) },
  n,
});
const shown = ({ metadata, n }: Item): string => `${metadata?.name}=${n}@${metadata?.resourceVersion}`;
const codeOf = (error: unknown): number | undefined => (isWatchError(error, 'REFUSED') ? error.status?.code : undefined);

/** A storage, its model, and the watches of both. */
class World {
  readonly model: StorageModel = new StorageModel();
  readonly storage: MemoryStorage<Item>;
  readonly #maxItems: number;
  readonly #watches: { real: Watch<StorageEvent<Item>>; model: WatchModel; prefix: string }[] = [];

  constructor(maxHistoryItems: number) {
    this.#maxItems = maxHistoryItems;
    this.storage = new MemoryStorage<Item>({ maxHistoryItems, fields: { third: ({ n }) => `${n % 3}` } });
  }

  scope(prefix: string): Storage<Item> {
    return prefix ? this.storage.scope<Item>(prefix) : this.storage;
  }

  async run(each: Placed): Promise<void> {
    if (each.do === 'put') await this.#put(each.key, each.n);
    else if (each.do === 'delete') await this.#delete(each.key, each.version);
    else if (each.do === 'compact') this.#compact(this.model.version - each.back);
    else if (each.do === 'list') await this.#list(this.model.version - each.back, each);
    else if (each.do === 'progress') await this.#progress(each.prefix);
    else if (each.do === 'page') await this.#pages(each);
    else if (each.do === 'watch') await this.#watch(each);
    else this.#read(each);
  }

  /** P9.2: a write of what is there is none. */
  async #put(key: string, n: number): Promise<void> {
    const stored = await this.storage.update(key, () => item(key, n), { createIfMissing: true });
    if (this.model.get(key)?.item.n !== n) this.#written(key, item(key, n));
    expect(shown(stored)).toBe(`${item(key, n).metadata?.name}=${n}@${this.model.get(key)?.version}`);
  }

  async #delete(key: string, back: number | undefined): Promise<void> {
    const there = this.model.get(key);
    const resourceVersion = back === undefined ? undefined : `${this.model.version - back}`;
    const outcome = await this.storage.delete(key, { resourceVersion }).catch(codeOf);
    const fits = resourceVersion === undefined || resourceVersion === `${there?.version}`;
    if (!there || !fits) {
      expect(outcome).toBe(there ? 409 : 404);
      return;
    }
    this.#written(key, undefined);
    expect(shown(outcome as Item)).toBe(`${there.item.metadata?.name}=${there.item.n}@${this.model.version}`);
  }

  #written(key: string, item: Item | undefined): void {
    this.model.write(key, item);
    this.model.compacted = Math.max(this.model.compacted, this.model.version - this.#maxItems);
  }

  #compact(version: number): void {
    this.storage.compact(`${Math.max(1, version)}`);
    this.model.compacted = Math.max(this.model.compacted, version);
  }

  /** P9.4, R9.18. */
  async #list(version: number, { prefix, selector: [labelSelector, fieldSelector, selects] }: Placed): Promise<void> {
    if (version < 1) return;
    const options = { resourceVersion: `${version}`, resourceVersionMatch: 'Exact' as const, labelSelector, fieldSelector };
    const list = await this.scope(prefix).list(options).catch(codeOf);
    if (version < this.model.compacted) expect(list).toBe(410);
    else expect((list as List<Item>).items.map(shown)).toEqual(this.model.list(version, { prefix, selects }));
    const newest = await this.scope(prefix).list({ resourceVersion: `${version}`, labelSelector, fieldSelector });
    expect(newest.items.map(shown)).toEqual(this.model.list(this.model.version, { prefix, selects }));
    expect(newest.resourceVersion).toBe(`${this.model.version}`);
  }

  async #progress(prefix: string): Promise<void> {
    await this.scope(prefix).requestProgress();
    for (const watch of this.#watches) if (watch.prefix.startsWith(prefix)) watch.model.progress();
  }

  /** P9.4 and P9.5: the pages are the list of the first page's version, or a 410 says that they cannot be. */
  async #pages({ prefix, selector: [labelSelector, fieldSelector, selects], ...each }: Placed): Promise<void> {
    const { limit, writes } = each as { limit: number; writes: number };
    const version = this.model.version;
    const whole = this.model.list(version, { prefix, selects });
    const found: string[] = [];
    let token: string | undefined = '';
    while (token !== undefined) {
      const options: ListOptions = { limit, continue: token, labelSelector, fieldSelector };
      const page: List<Item> | number | undefined = await this.scope(prefix).list(options).catch(codeOf);
      if (typeof page !== 'object') {
        expect([page, this.model.compacted > version]).toEqual([410, true]);
        return;
      }
      expect(page.items.length).toBeLessThanOrEqual(limit);
      expect(page.resourceVersion).toBe(`${version}`);
      found.push(...page.items.map(shown));
      if (page.remainingItemCount !== undefined) expect(page.remainingItemCount).toBe(whole.length - found.length);
      token = page.continue;
      for (let write = 0; write < writes; write++) await this.#put(KEYS[write] as string, found.length + write);
    }
    expect(found).toEqual(whole);
  }

  async #watch({ prefix, selector: [labelSelector, fieldSelector, selects], ...each }: Placed): Promise<void> {
    const { from: start, bookmarks } = each as { from: number | 'state' | 'marked'; bookmarks: boolean };
    const from = typeof start === 'number' ? Math.max(1, this.model.version - start) : start;
    const watching = this.scope(prefix).watch({
      labelSelector,
      fieldSelector,
      ...(typeof from === 'number' && { resourceVersion: `${from}` }),
      ...(from === 'marked' ? { sendInitialEvents: true } : { allowWatchBookmarks: bookmarks }),
    });
    if (typeof from === 'number' && from < this.model.compacted) {
      expect(await watching.catch(codeOf)).toBe(410);
      return;
    }
    const real = await watching;
    this.#watches.push({ real, model: new WatchModel(this.model, { prefix, selects, from, bookmarks }), prefix });
  }

  #read(each: Placed): void {
    const { watch, count } = each as { watch: number; count: number };
    const open = this.#watches[watch % Math.max(1, this.#watches.length)];
    if (!open) return;
    if (each.do === 'stop') {
      open.real.stop();
      open.model.stop();
    }
    for (let at = 0; at < count; at++) {
      const event = open.real.tryNext();
      const expected = open.model.next();
      expect(event ? lineOf(event) : undefined).toBe(expected === 'none' || expected === 'end' ? undefined : expected);
      if (expected === 'end') expect(open.real.stopped).toBe(true);
    }
  }

  /** Every watch is read to its end, each of its reads a waiting one at last. */
  async finish(): Promise<void> {
    await this.storage.close();
    for (const { real, model } of this.#watches) {
      model.stop();
      const seen: string[] = [];
      const expected: string[] = [];
      for await (const event of real) seen.push(lineOf(event));
      for (let line = model.next(); line !== 'end'; line = model.next()) expected.push(line);
      expect(seen).toEqual(expected);
    }
    expect(this.storage.stats.watches).toBe(0);
  }
}

describe('a MemoryStorage is a list of revisions', { timeout }, () => {
  test('in every list, every watch and every refusal', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(placed, { maxLength: 60, size: 'max' }),
        fc.constantFrom(0, 2, 5, 20, 1_000),
        async (commands, maxItems) => {
          const world = new World(maxItems);
          for (const each of commands) await world.run(each);
          await world.finish();
        },
      ),
      { numRuns: RUNS },
    );
  });
});

describe(`Linearizable: ${GUARANTEES.Linearizable}`, { timeout }, () => {
  test('for concurrent clients, each of which may be slow within a change', async () => {
    const step = fc.record({
      key: fc.constantFrom('a', 'b'),
      do: fc.constantFrom('get' as const, 'list', 'create', 'update', 'delete', 'compareAndSet'),
      turns: fc.nat(4),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(step, { maxLength: 6 }), { minLength: 2, maxLength: 4 }), async (clients) => {
        const storage = new MemoryStorage<Item>();
        const requests: StorageRequest[] = [];
        let time = 0;
        let made = 0;
        const turns = async (count: number): Promise<void> => {
          for (let turn = 0; turn < count; turn++) await undefined;
        };
        const record = async (
          request: Pick<StorageRequest, 'key' | 'call' | 'client'>,
          ask: () => Promise<Item | undefined>,
        ): Promise<void> => {
          const from = ++time;
          let answer: StorageRequest['answer'];
          try {
            const found = await ask();
            answer = { is: 'done', value: found?.n };
          } catch (error) {
            if (codeOf(error) === undefined) throw error;
            answer = { is: 'refused' };
          }
          requests.push({ ...request, from, to: ++time, answer });
        };
        const client = async (steps: typeof clients extends (infer S)[] ? S : never, name: string): Promise<void> => {
          for (const { key, do: verb, turns: count } of steps) {
            const n = ++made;
            await turns(count);
            if (verb === 'get') await record({ key, call: { do: 'read' }, client: name }, () => storage.get(key));
            else if (verb === 'list') {
              const find = async (): Promise<Item | undefined> =>
                (await storage.list()).items.find(({ metadata }) => metadata?.name === key);
              await record({ key, call: { do: 'read' }, client: name }, find);
            } else if (verb === 'create') {
              const call = { do: 'write', value: n, if: { value: undefined } } as const;
              await record({ key, call, client: name }, () => storage.create(key, item(key, n)));
            } else if (verb === 'delete') {
              await record({ key, call: { do: 'delete' }, client: name }, () => storage.delete(key));
            } else if (verb === 'update') {
              const change = async (): Promise<Item> => turns(count).then(() => item(key, n));
              const options = { createIfMissing: true };
              await record({ key, call: { do: 'write', value: n }, client: name }, () => storage.update(key, change, options));
            } else {
              const seen = await storage.get(key);
              if (!seen) continue;
              await turns(count);
              const precondition = { resourceVersion: seen.metadata?.resourceVersion };
              const call = { do: 'write', value: n, if: { value: seen.n } } as const;
              await record({ key, call, client: name }, () =>
                storage.update(key, async () => turns(count).then(() => item(key, n)), precondition),
              );
            }
          }
        };
        await Promise.all(clients.map((steps, at) => client(steps, `client ${at}`)));
        expect(checkLinearizable({ requests })).toBeUndefined();
      }),
      { numRuns: RUNS },
    );
  });
});
