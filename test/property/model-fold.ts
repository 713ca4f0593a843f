/** A change of an object that has a name. */
interface Change {
  readonly type: string;
  readonly object: { readonly metadata: { readonly name: string } };
}

/** All changes of one object since its last read. */
interface Entry<E> {
  /** Whether it was there before the first of them. */
  readonly existed: boolean;
  readonly last: E;
  readonly count: number;
}

/** The obviously right `coalesce`: what a watcher has not read, by name, in the order of the first unseen change. */
export class ModelFold<E extends Change> {
  private readonly entries: Map<string, Entry<E>> = new Map();

  /** Objects that changed, those included of which nothing is left. */
  get size(): number {
    return this.entries.size;
  }

  /** Changes that are folded here. */
  get changes(): number {
    return [...this.entries.values()].reduce((sum, { count }) => sum + count, 0);
  }

  /** Events that will come out. */
  get live(): number {
    return [...this.entries.values()].filter((entry) => outcome(entry) !== undefined).length;
  }

  add(event: E): void {
    const { name } = event.object.metadata;
    const { existed, count } = this.entries.get(name) ?? { existed: event.type !== 'ADDED', count: 0 };
    this.entries.set(name, { existed, last: event, count: count + 1 });
  }

  /** Takes the first object out: how many changes it had, and the one event that is left of them, if one is. */
  take(): { readonly count: number; readonly event: E | undefined } | undefined {
    for (const [name, entry] of this.entries) {
      this.entries.delete(name);
      return { count: entry.count, event: outcome(entry) };
    }
    return undefined;
  }

  clear(): void {
    this.entries.clear();
  }
}

function outcome<E extends Change>({ existed, last }: Entry<E>): E | undefined {
  if (last.type === 'DELETED') return existed ? last : undefined;
  if (last.type === 'ADDED' && existed) return { ...last, type: 'MODIFIED' };
  if (last.type === 'MODIFIED' && !existed) return { ...last, type: 'ADDED' };
  return last;
}
