/** A change of a named object. */
interface Change {
  readonly type: string;
  readonly object: { readonly metadata: { readonly name: string } };
}

/** All changes of one object since the last read. */
interface Entry<E> {
  /** Whether the object existed before the first of them. */
  readonly existed: boolean;
  readonly last: E;
  readonly count: number;
  /** The place among all events of the first of them. */
  readonly first: number;
  /** The same, of the first that counts. */
  readonly place: number;
}

/** An obviously correct `coalesce`: unread changes by name, in the order of the first unseen change, and apart between ERRORs. */
export class ModelFold<E extends Change> {
  private readonly entries: Map<string, Entry<E>> = new Map();
  private errors: number = 0;

  /** Number of changed objects, including those whose changes cancel out. */
  get size(): number {
    return this.entries.size;
  }

  /** Number of folded changes. */
  get changes(): number {
    return [...this.entries.values()].reduce((sum, { count }) => sum + count, 0);
  }

  /** Number of events that will be delivered. */
  get live(): number {
    return [...this.entries.values()].filter((entry) => outcome(entry) !== undefined).length;
  }

  /** The place of the first unread change, whatever came of it. */
  get first(): number | undefined {
    return this.entries.values().next().value?.first;
  }

  /** The place of the first change that will result in an event. */
  get place(): number | undefined {
    const places = [...this.entries.values()].filter((entry) => outcome(entry) !== undefined).map(({ place }) => place);
    return places.length > 0 ? Math.min(...places) : undefined;
  }

  add(event: E, at: number = 0): void {
    const isError = event.type === 'ERROR';
    const name = `${this.errors} ${isError ? '' : event.object.metadata.name}`;
    if (isError) this.errors++;
    const known = this.entries.get(name);
    const { existed, count, first } = known ?? { existed: event.type !== 'ADDED', count: 0, first: at };
    // Changes that have come to nothing need not come again.
    const place = known && outcome(known) ? known.place : at;
    this.entries.set(name, { existed, last: event, count: count + 1, first, place });
  }

  /** Removes the first object. Returns the number of its changes, and the resulting event, if any. */
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
