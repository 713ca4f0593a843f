// The obviously right model of a storage: a list of revisions, and questions that are answered by going through all of it.
import type { KubernetesObject } from '../../src/cache/index.ts';
import type { StorageEvent } from '../../src/storage/index.ts';

export interface Item extends KubernetesObject {
  readonly n: number;
}

interface Revision {
  readonly key: string;
  /** Undefined: deleted. */
  readonly item: Item | undefined;
}

export type Selects = (item: Item) => boolean;
/** An event in one line: `MODIFIED a=3@7 was 2`. */
export type Line = string;

export const lineOf = (event: StorageEvent<Item>): Line => {
  if (event.type === 'ERROR') return `ERROR ${event.object.code}`;
  const { metadata, n } = event.object as Item;
  const version = metadata?.resourceVersion;
  if (event.type === 'BOOKMARK') return `BOOKMARK ${version}${event.object.metadata.annotations ? ' end' : ''}`;
  const was = 'previous' in event && event.previous ? ` was ${event.previous.n}` : '';
  return `${event.type} ${metadata?.name}=${n}@${version}${was}`;
};

export class StorageModel {
  /** At index i is revision i + 2: the first is an empty storage. */
  readonly revisions: Revision[] = [];
  compacted: number = 1;

  get version(): number {
    return this.revisions.length + 1;
  }

  write(key: string, item: Item | undefined): void {
    this.revisions.push({ key, item });
  }

  /** What is under a key at a version, with the version of its write. */
  get(key: string, version: number = this.version): { item: Item; version: number } | undefined {
    for (let at = version; at > 1; at--) {
      const { key: changed, item } = this.revisions[at - 2] as Revision;
      if (changed === key) return item && { item, version: at };
    }
    return undefined;
  }

  /** `a=1@2 b=5@3`, of what is under a prefix and selected. */
  list(version: number, { prefix, selects }: { prefix: string; selects: Selects }): string[] {
    const keys = [...new Set(this.revisions.map(({ key }) => key))].filter((key) => key.startsWith(prefix)).sort();
    return keys.flatMap((key) => {
      const found = this.get(key, version);
      return found && selects(found.item) ? [`${found.item.metadata?.name}=${found.item.n}@${found.version}`] : [];
    });
  }

  /** What a watch is told of one revision. */
  event(version: number, { prefix, selects }: { prefix: string; selects: Selects }): Line | undefined {
    const { key, item } = this.revisions[version - 2] as Revision;
    if (!key.startsWith(prefix)) return undefined;
    const before = this.get(key, version - 1)?.item;
    const [was, is] = [before && selects(before), item && selects(item)];
    const name = (item ?? before)?.metadata?.name;
    const old = before ? ` was ${before.n}` : '';
    if (item && is) return `${was ? 'MODIFIED' : 'ADDED'} ${name}=${item.n}@${version}${old}`;
    return was ? `DELETED ${name}=${before?.n}@${version}${old}` : undefined;
  }
}

/** What a watch owes its reader: a position in the model. */
export class WatchModel {
  readonly #model: StorageModel;
  readonly #what: { readonly prefix: string; readonly selects: Selects };
  readonly bookmarks: boolean;
  #state: string[];
  #mark: boolean;
  #seen: number;
  #last: number = Number.POSITIVE_INFINITY;
  #owed: number[] = [];
  #over: boolean = false;

  constructor(
    model: StorageModel,
    what: { prefix: string; selects: Selects; from: number | 'state' | 'marked'; bookmarks: boolean },
  ) {
    this.#model = model;
    this.#what = what;
    this.bookmarks = what.bookmarks || what.from === 'marked';
    const { from } = what;
    this.#seen = typeof from === 'number' ? from : model.version;
    this.#state = typeof from === 'number' ? [] : model.list(model.version, what);
    this.#mark = from === 'marked';
  }

  progress(): void {
    if (!this.bookmarks || this.#last !== Number.POSITIVE_INFINITY || this.#over) return;
    const { version } = this.#model;
    if (this.#owed.length === 2) this.#owed[1] = version;
    else if (this.#owed[0] !== version) this.#owed.push(version);
  }

  stop(): void {
    if (this.#last !== Number.POSITIVE_INFINITY) return;
    this.#last = this.#model.version;
    this.#owed = [];
  }

  /** Whether something that it has not told is no longer kept. */
  get #isLost(): boolean {
    for (let version = this.#seen + 1; version <= Math.min(this.#last, this.#model.compacted); version++)
      if (this.#model.event(version, this.#what) !== undefined) return true;
    return false;
  }

  /** The next line; `none`: nothing now; `end`: nothing any more. */
  next(): Line | 'none' | 'end' {
    if (this.#over) return 'end';
    const item = this.#state.shift();
    if (item !== undefined) return `ADDED ${item}`;
    if (this.#mark) {
      this.#mark = false;
      return `BOOKMARK ${this.#seen} end`;
    }
    if (this.#isLost) {
      this.#over = true;
      return 'ERROR 410';
    }
    for (;;) {
      if (this.#owed.length > 0 && this.#seen >= (this.#owed[0] as number)) {
        this.#owed.shift();
        return `BOOKMARK ${this.#seen}`;
      }
      if (this.#seen >= Math.min(this.#last, this.#model.version)) {
        this.#over = this.#last !== Number.POSITIVE_INFINITY;
        return this.#over ? 'end' : 'none';
      }
      const line = this.#model.event(++this.#seen, this.#what);
      if (line !== undefined) return line;
    }
  }
}
