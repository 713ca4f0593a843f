// A storage over a journal while times to live run out, the past is compacted, and it is opened again: what it shows of any version that
// it has given, as a list, in pages or as a watch from there, is what was there, or it is 410.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../src/cache/index.ts';
import { type JournalRecord, MemoryStorage, type StorageJournal } from '../../src/storage/index.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { runs } from '../runs.ts';

type State = ReadonlyMap<string, string>;

interface Command {
  readonly do: 'put' | 'delete' | 'later' | 'compact' | 'reopen' | 'list' | 'pages' | 'watch';
  readonly key: string;
  /** A time to live or a wait in seconds, or how many versions back. */
  readonly n: number;
}

const verb = fc.constantFrom<Command['do'][]>(
  ...(['put', 'put', 'put', 'put', 'delete', 'later', 'compact', 'reopen', 'list', 'pages', 'watch', 'watch'] as const),
);
const command: fc.Arbitrary<Command> = fc.record({ do: verb, key: fc.constantFrom('a', 'b', 'c'), n: fc.nat(6) });
const isExpired = (error: unknown): boolean => (error as { status?: { code?: number } }).status?.code === 410;

class World {
  readonly #clock: FakeClock = new FakeClock();
  readonly #records: JournalRecord[] = [];
  #storage: MemoryStorage = this.#opened();
  #n: number = 0;
  /** What is there, and when it expires. */
  readonly #state: Map<string, { readonly shown: string; readonly ttlMs: number; dueMs: number }> = new Map();
  /** What was there at each version that was given. */
  readonly #past: Map<string, State> = new Map();

  #opened(): MemoryStorage {
    const writes = [...this.#records];
    const journal: StorageJournal = {
      restore: () => ({ state: { revision: 1, records: [] }, writes }),
      append: async (record) => {
        this.#records.push(record);
        return record.revision;
      },
      close: async () => {},
    };
    return new MemoryStorage({ journal, clock: this.#clock, maxHistoryItems: 8 });
  }

  async run({ do: what, key, n }: Command): Promise<void> {
    if (what === 'put') await this.#put(key, n);
    else if (what === 'delete' && this.#state.delete(key)) await this.#storage.delete(key);
    else if (what === 'later') this.#later(n * 1_000);
    else if (what === 'reopen') await this.#reopen();
    await this.#settled();
    if (what === 'compact') this.#storage.compact(this.#back(n));
    else if (what === 'list') await this.#listed(this.#back(n));
    else if (what === 'pages') await this.#paged(key);
    else if (what === 'watch') await this.#watched(this.#back(n));
  }

  async close(): Promise<void> {
    await this.#storage.close();
    expect(this.#clock.pending).toBe(0);
  }

  async #put(key: string, ttlSeconds: number): Promise<void> {
    const n = ++this.#n;
    const object = { metadata: { name: key }, n } as KubernetesObject;
    await this.#storage.update(key, () => object, { createIfMissing: true, ttlSeconds });
    const ttlMs = ttlSeconds === 0 ? Infinity : ttlSeconds * 1_000;
    this.#state.set(key, { shown: `${key}=${n}`, ttlMs, dueMs: this.#clock.now() + ttlMs });
  }

  #later(ms: number): void {
    this.#clock.advance(ms);
    for (const [key, { dueMs }] of this.#state) if (dueMs <= this.#clock.now()) this.#state.delete(key);
  }

  /** A crash: a time to live begins again. */
  async #reopen(): Promise<void> {
    await this.#storage.close();
    this.#storage = this.#opened();
    for (const each of this.#state.values()) each.dueMs = this.#clock.now() + each.ttlMs;
  }

  /** Notes what is there. Nothing is between two turns but what a time to live has deleted, whose versions nobody was given. */
  async #settled(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    const { items, resourceVersion } = await this.#storage.list();
    expect(shownOf(items)).toEqual(this.#now);
    this.#past.set(resourceVersion, this.#now);
  }

  get #now(): State {
    return new Map([...this.#state].map(([key, { shown }]) => [key, shown] as const).sort());
  }

  /** A version of so many before. */
  #back(n: number): string {
    const versions = [...this.#past.keys()];
    return versions[Math.max(0, versions.length - 1 - n)] as string;
  }

  async #listed(version: string): Promise<void> {
    const options = { resourceVersion: version, resourceVersionMatch: 'Exact' } as const;
    await orExpired(async () => expect(shownOf((await this.#storage.list(options)).items)).toEqual(this.#past.get(version)));
  }

  /** With a write between the pages. */
  async #paged(key: string): Promise<void> {
    const first = await this.#storage.list({ limit: 1 });
    const items = [...first.items];
    await this.#put(key, 0);
    await this.#settled();
    await orExpired(async () => {
      for (let token = first.continue; token; ) {
        const page = await this.#storage.list({ limit: 1, continue: token });
        items.push(...page.items);
        token = page.continue;
      }
      expect(shownOf(items)).toEqual(this.#past.get(first.resourceVersion));
    });
  }

  async #watched(version: string): Promise<void> {
    const state = new Map(this.#past.get(version));
    await orExpired(async () => {
      const watch = await this.#storage.watch({ resourceVersion: version, timeoutSeconds: 1 });
      this.#later(1_000);
      for await (const { type, object } of watch) {
        if (type === 'ERROR' && object.code === 410) return;
        const name = (object as KubernetesObject).metadata?.name as string;
        if (type === 'DELETED') expect(state.delete(name)).toBe(true);
        else state.set(name, shown(object as KubernetesObject));
      }
      await this.#settled();
      // What expires with the watch comes after it, or not.
      for (const each of [...state.keys()]) if (!this.#state.has(each)) state.delete(each);
      expect(new Map([...state].sort())).toEqual(this.#now);
    });
    await this.#settled();
  }
}

const shown = (object: KubernetesObject): string => `${object.metadata?.name}=${(object as { n?: number }).n}`;
const shownOf = (items: readonly KubernetesObject[]): State =>
  new Map(items.map((each) => [each.metadata?.name as string, shown(each)]));

async function orExpired(run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    if (!isExpired(error)) throw error;
  }
}

test('a version shows what was there, or is 410, through times to live, compaction and restarts', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(command, { minLength: 5, maxLength: 40 }), async (commands) => {
      const world = new World();
      for (const each of commands) await world.run(each);
      await world.close();
    }),
    { numRuns: runs(1_500) },
  );
});
