import type { KubernetesObject, ListWatcher } from '../../src/cache/index.ts';
import { isWatchError, type ObjectEvent, type Watch } from '../../src/index.ts';
import type { RecordableCache, RecordableRegistration, RecordedHandler } from '../../src/testing/index.ts';
import { turn } from '../unit/support.ts';

/** What is wrong with a {@link ToyCache}. */
export type Flaw =
  | 'none'
  | 'skips'
  | 'goes back'
  | 'forgets deletions'
  | 'syncs early'
  | 'swallows 410'
  | 'dies'
  | 'adds twice'
  | 'promises early';

/** Which guarantee each flaw breaks. */
export const BREAKS: Readonly<Record<Exclude<Flaw, 'none'>, string>> = {
  skips: 'Consistent',
  'goes back': 'Monotonic',
  'forgets deletions': 'Consistent',
  'syncs early': 'Synced',
  'swallows 410': 'Told',
  dies: 'Convergent',
  'adds twice': 'Folded',
  'promises early': 'Synced',
};

type Thing = KubernetesObject;
const keyOf = ({ metadata }: Thing): string => metadata?.name ?? '';

/** The simplest cache that keeps the guarantees, and broken ones. It asks again at once, whatever fails. */
export class ToyCache implements RecordableCache<Thing> {
  resourceVersion: string = '';
  hasSynced: boolean;
  readonly #objects: Map<string, Thing> = new Map();
  readonly #handlers: Map<object, RecordedHandler<Thing>> = new Map();
  readonly #source: ListWatcher<Thing>;
  readonly #flaw: Flaw;
  readonly #abort: AbortController = new AbortController();
  #events: number = 0;

  constructor(source: ListWatcher<Thing>, flaw: Flaw) {
    this.#source = source;
    this.#flaw = flaw;
    this.hasSynced = flaw === 'syncs early';
  }

  get store(): { list(): Iterable<Thing> } {
    return { list: () => [...this.#objects.values()] };
  }

  addHandler(handler: RecordedHandler<Thing>): RecordableRegistration {
    const told = (): boolean => this.hasSynced || this.#flaw === 'promises early';
    const registration = {
      get hasSynced(): boolean {
        return told();
      },
      remove: (): void => void this.#handlers.delete(registration),
    };
    this.#handlers.set(registration, handler);
    for (const object of this.#objects.values()) handler.onAdd?.(object, true);
    return registration;
  }

  stop(): void {
    this.#abort.abort();
  }

  async run(): Promise<void> {
    const { signal } = this.#abort;
    let relist = true;
    let listed = '';
    while (!signal.aborted) {
      try {
        if (relist) {
          const { items, resourceVersion } = await this.#source.list({ signal, resourceVersion: this.resourceVersion });
          this.#replace(items, resourceVersion);
          listed = resourceVersion;
        }
        relist = false;
        if (this.#flaw === 'goes back') this.resourceVersion = listed;
        const watch = await this.#source.watch({ signal, resourceVersion: this.resourceVersion, allowWatchBookmarks: true });
        relist = await this.#follow(watch);
      } catch (error) {
        relist = relist || (isWatchError(error, 'REFUSED') && error.status?.code === 410);
        if (this.#flaw === 'dies') return;
      }
      if (relist && this.#flaw === 'swallows 410' && this.resourceVersion !== '') {
        relist = false;
        this.resourceVersion = `${BigInt(this.resourceVersion) + 1n}`;
      }
      await turn();
    }
  }

  /** Resolves with whether it must list again. */
  async #follow(watch: Watch<ObjectEvent<Thing>>): Promise<boolean> {
    for await (const event of watch) {
      if (event.type === 'ERROR') return event.object.code === 410;
      const version = (event.object as Thing).metadata?.resourceVersion ?? '';
      const skipped = this.#flaw === 'skips' && event.type !== 'BOOKMARK' && ++this.#events % 3 === 0;
      this.resourceVersion = version;
      if (event.type !== 'BOOKMARK' && !skipped) this.#apply(event.type === 'DELETED', event.object as Thing);
    }
    return false;
  }

  #replace(items: readonly Thing[], resourceVersion: string): void {
    const keys = new Set(items.map(keyOf));
    const gone = [...this.#objects.values()].filter((object) => !keys.has(keyOf(object)));
    const before = new Map(this.#objects);
    if (this.#flaw !== 'forgets deletions') for (const object of gone) this.#objects.delete(keyOf(object));
    for (const object of items) this.#objects.set(keyOf(object), object);
    this.resourceVersion = resourceVersion;
    if (this.#flaw !== 'forgets deletions') for (const object of gone) this.#tell(true, object, object);
    for (const object of items) {
      const old = before.get(keyOf(object));
      if (old?.metadata?.resourceVersion !== object.metadata?.resourceVersion) this.#tell(false, object, old);
    }
    this.hasSynced = true;
  }

  #apply(deleted: boolean, object: Thing): void {
    const old = this.#objects.get(keyOf(object));
    if (deleted) this.#objects.delete(keyOf(object));
    else this.#objects.set(keyOf(object), object);
    this.#tell(deleted, object, old);
  }

  #tell(deleted: boolean, object: Thing, old: Thing | undefined): void {
    for (const handler of this.#handlers.values()) {
      if (deleted) handler.onDelete?.(object, false);
      else if (old && this.#flaw !== 'adds twice') handler.onUpdate?.(old, object);
      else handler.onAdd?.(object, !this.hasSynced);
    }
  }
}
