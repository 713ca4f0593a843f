// Files that are copied and restored at any moment, and clients that come and go: what a client has equals what was there at its version, or
// it was told 410 (Told). Each life of the file is another storage object; a client keeps its state and its version across all of them.
// Lives begin where chance takes them, or, so that the checker can tell them apart by their versions, in order.
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { KubernetesObject, ListWatcher } from '../../src/cache/index.ts';
import { versionOf } from '../../src/cache/object.ts';
import { Cacher, openMemoryStorage, type Storage } from '../../src/storage/index.ts';
import { type CacheState, type CacheStep, checkTold } from '../../src/testing/index.ts';
import { runs } from '../runs.ts';

interface Thing extends KubernetesObject {
  readonly n: number;
}

type Reopening = { readonly do: 'restore'; readonly slot: number } | { readonly do: 'restart' | 'empty' };
type Command =
  | Reopening
  | { readonly do: 'put' | 'remove'; readonly key: string }
  | { readonly do: 'copy'; readonly slot: number }
  | { readonly do: 'follow' | 'list'; readonly client: number };

const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constantFrom('put' as const, 'put', 'remove'), key: fc.constantFrom('a', 'b', 'c', 'd') }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('copy' as const), slot: fc.nat(2) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restore' as const), slot: fc.nat(2) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('restart' as const, 'restart', 'empty') }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constantFrom('follow' as const, 'follow', 'list'), client: fc.nat(2) }) },
);

interface Client {
  version: string;
  readonly state: Map<string, number>;
}

/** A client whose version is in the copy, but not in the life between. */
const ACROSS_LIVES: Command[] = [
  { do: 'copy', slot: 0 },
  { do: 'follow', client: 0 },
  { do: 'empty' },
  { do: 'restore', slot: 0 },
  { do: 'follow', client: 0 },
];

class World {
  readonly steps: CacheStep[] = [];
  readonly #directory: string;
  readonly #cached: boolean;
  readonly #ordered: boolean;
  readonly #clients: Client[] = Array.from({ length: 3 }, () => ({ version: '', state: new Map() }));
  /** By slot: the state and the version that was copied. */
  readonly #copies: (string | undefined)[] = [];
  #storage: Storage<Thing> | undefined;
  #cacher: Cacher<Thing> | undefined;
  #n: number = 0;
  #lives: number = 0;

  constructor(directory: string, { cached, ordered }: { cached: boolean; ordered: boolean }) {
    this.#directory = directory;
    this.#cached = cached;
    this.#ordered = ordered;
  }

  get #file(): string {
    return join(this.#directory, 'data');
  }

  get #source(): Storage<Thing> {
    return this.#cacher ?? (this.#storage as Storage<Thing>);
  }

  async open(): Promise<void> {
    const startRevision = this.#ordered ? ++this.#lives * 1_000_000 : undefined;
    this.#storage = await openMemoryStorage<Thing>({ file: this.#file, minCompactBytes: 1_000, startRevision });
    if (this.#cached) {
      this.#cacher = new Cacher<Thing>(this.#storage);
      await this.#cacher.ready();
    }
    await this.#storage.update('opened', () => ({ metadata: { name: 'opened' }, n: ++this.#n }), { createIfMissing: true });
  }

  async close(): Promise<void> {
    await this.#cacher?.close();
    await this.#storage?.close();
  }

  /** Opens the file as another life. `since`: the newest version that both lives have. */
  async again(since: string): Promise<void> {
    await this.open();
    const { resourceVersion, state } = await this.truth();
    this.steps.push({ step: 'restored', since, version: resourceVersion, state });
  }

  async truth(): Promise<{ readonly resourceVersion: string; readonly state: CacheState }> {
    const { items, resourceVersion } = await (this.#storage as Storage<Thing>).list();
    return { resourceVersion, state: Object.fromEntries(items.map((item) => [item.metadata?.name ?? '', String(item.n)])) };
  }

  async #version(): Promise<string> {
    return (this.#storage as Storage<Thing>).currentVersion();
  }

  async run(todo: Command): Promise<void> {
    const storage = this.#storage as Storage<Thing>;
    if (todo.do === 'put') {
      const n = ++this.#n;
      const stored = await storage.update(todo.key, () => ({ metadata: { name: todo.key }, n }), { createIfMissing: true });
      this.steps.push({ step: 'changed', version: versionOf(stored), key: todo.key, object: String(n) });
    } else if (todo.do === 'remove') {
      const gone = await storage.delete(todo.key).catch(() => undefined);
      if (gone) this.steps.push({ step: 'changed', version: versionOf(gone), key: todo.key });
    } else if (todo.do === 'copy') {
      await copyFile(this.#file, `${this.#file}.${todo.slot}`);
      this.#copies[todo.slot] = await this.#version();
    } else if (todo.do === 'follow' || todo.do === 'list') {
      const client = this.#clients[todo.client] as Client;
      if (todo.do === 'list' || client.version === '') await this.#list(client);
      else await this.#follow(client);
    } else await this.#reopen(todo as Reopening);
  }

  async #reopen(todo: Reopening): Promise<void> {
    const since = todo.do === 'restore' ? this.#copies[todo.slot] : todo.do === 'empty' ? '1' : await this.#version();
    if (since === undefined) return;
    await this.close();
    if (todo.do === 'restore') await copyFile(`${this.#file}.${todo.slot}`, this.#file);
    if (todo.do === 'empty') await rm(this.#file);
    await this.again(since);
  }

  async #list(client: Client): Promise<void> {
    const { items, resourceVersion } = await this.#source.list();
    client.version = resourceVersion;
    client.state.clear();
    for (const { metadata, n } of items) client.state.set(metadata?.name ?? '', n);
  }

  /** Resumes from the client's version, up to now. Then it has what is there, or it was told 410 and lists. */
  async #follow(client: Client): Promise<void> {
    const { state } = await this.truth();
    const told = await this.#resume(client);
    if (told !== undefined) {
      expect(told).toBe(410);
      await this.#list(client);
    }
    expect(Object.fromEntries(Array.from(client.state, ([key, n]) => [key, String(n)]))).toEqual(state);
  }

  async #resume(client: Client): Promise<unknown> {
    const name = `w${this.steps.length}`;
    const now = await this.#version();
    this.steps.push({ step: 'watch', watch: name, resourceVersion: client.version });
    const source: ListWatcher<Thing> = this.#source;
    const watch = await source
      .watch({ resourceVersion: client.version, allowWatchBookmarks: true })
      .catch((error: unknown) => error);
    if (watch instanceof Error) {
      const code = (watch as { status?: { code?: number } }).status?.code;
      this.steps.push({ step: 'refused', request: name, ...(code !== undefined && { code }) });
      return code ?? watch;
    }
    const opened = watch as Awaited<ReturnType<typeof source.watch>>;
    await this.#source.requestProgress();
    for (let at = ''; at !== now; ) {
      const { value } = await opened.next();
      if (value?.type === 'ERROR') {
        this.steps.push({ step: 'end', watch: name, code: value.object.code as number });
        return value.object.code;
      }
      at = versionOf(value?.object);
      if (value?.type === 'BOOKMARK') this.steps.push({ step: 'bookmark', watch: name, version: at });
      else if (value) this.#apply(client, name, { type: value.type, object: value.object, version: at });
    }
    client.version = now;
    this.steps.push({ step: 'stop', watch: name });
    await opened.return();
    return undefined;
  }

  #apply(client: Client, watch: string, event: { type: 'ADDED' | 'MODIFIED' | 'DELETED'; object: Thing; version: string }): void {
    const { type, object, version } = event;
    const key = object.metadata?.name ?? '';
    this.steps.push({ step: 'event', watch, type, version, key, object: String(object.n) });
    if (type === 'DELETED') client.state.delete(key);
    else client.state.set(key, object.n);
  }
}

it.each([
  ['the storage', { cached: false, ordered: true }],
  ['the storage', { cached: false, ordered: false }],
  ['a cacher', { cached: true, ordered: true }],
  ['a cacher', { cached: true, ordered: false }],
])('Told: a client of %s has what is there, or hears 410, whatever was copied and restored: %o', async (_name, options) => {
  await fc.assert(
    fc.asyncProperty(fc.array(command, { maxLength: 30, size: 'max' }), async (commands) => {
      const directory = await mkdtemp(join(tmpdir(), 'watchmux-lives-'));
      const world = new World(directory, options);
      try {
        await world.open();
        const { resourceVersion, state } = await world.truth();
        world.steps.push({ step: 'source', version: resourceVersion, state });
        for (const each of commands) await world.run(each);
        if (options.ordered) expect(checkTold({ steps: world.steps })?.message).toBeUndefined();
      } finally {
        await world.close();
        await rm(directory, { recursive: true });
      }
    }),
    { numRuns: runs(100), examples: [[ACROSS_LIVES]] },
  );
});
