// How often each website was entered in the registry, and removed from it.
import { createListWatcher, Informer, type KubernetesObject } from 'watchmux/cache';
import { eventually } from '../../eventually.ts';
import type { ApiServer } from '../apiserver.ts';
import type { World } from './world.ts';

type Entry = KubernetesObject & { readonly data?: { readonly uid?: string } };

export class RegistryLog {
  readonly #counts: Map<string, { entered: number; removed: number }> = new Map();
  readonly #informer: Informer<Entry>;
  readonly #ended: AbortController = new AbortController();
  /** Names that were used again while they were in use. */
  readonly #taken: Set<string> = new Set();
  readonly #running: Promise<unknown>;

  constructor(server: ApiServer, world: World) {
    this.#informer = new Informer<Entry>(
      createListWatcher(`${server.url}${world.path('registry')}`, { fetch: (url, init) => server.fetch(url, init) }),
      { onError: () => {} },
    );
    this.#informer.addHandler({
      onAdd: (entry) => this.#of(entry).entered++,
      onDelete: (entry) => this.#of(entry).removed++,
      onUpdate: (old, { metadata, ...entry }) => {
        // A handler that is behind hears of a removal and of what follows it at once.
        if (old.metadata?.uid !== metadata?.uid) {
          this.#of(old).removed++;
          this.#of(entry).entered++;
        } else if (old.data?.uid !== entry.data?.uid) this.#taken.add(metadata?.name ?? '');
      },
    });
    this.#running = this.#informer.run(this.#ended.signal);
  }

  #of({ data }: Entry): { entered: number; removed: number } {
    const uid = data?.uid ?? '';
    const counts = this.#counts.get(uid) ?? { entered: 0, removed: 0 };
    this.#counts.set(uid, counts);
    return counts;
  }

  /** How many entries were removed. */
  get removed(): number {
    return Array.from(this.#counts.values(), ({ removed }) => removed).reduce((sum, each) => sum + each, 0);
  }

  /** How many websites were entered once and removed once, or not yet. Fails if one was entered or removed twice. */
  async gone(alive: number): Promise<number> {
    return await eventually(() => {
      if (this.#taken.size > 0) throw new Error(`not removed before their names were used again: ${[...this.#taken]}`);
      const all = [...this.#counts.values()];
      const twice = all.filter(({ entered, removed }) => entered !== 1 || removed > 1);
      if (twice.length > 0) throw new Error(`entered or removed twice: ${JSON.stringify(twice)}`);
      const gone = all.filter(({ removed }) => removed === 1).length;
      if (all.length - gone !== alive) throw new Error(`${all.length - gone} are in the registry, and not ${alive}`);
      return gone;
    });
  }

  async end(): Promise<void> {
    this.#ended.abort();
    await this.#running;
  }
}
