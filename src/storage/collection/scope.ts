/** The part of a collection whose keys begin with a prefix: what every storage that has one answers from it. */
import type { List, ListOptions } from '../../cache/list-watcher.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import { isPromise } from '../../watch/abort.ts';
import { checkOptions, wholeNumber } from '../../watch/errors.ts';
import type { Watch } from '../../watch/watch.ts';
import { LIST_NAMES, WATCH_NAMES } from '../option-names.ts';
import type { Pending } from '../pending.ts';
import type { StorageEvent, StorageWatchOptions } from '../storage.ts';
import type { Collection } from './collection.ts';
import { listOf, type Source } from './lists.ts';
import { type FieldReader, Selection } from './selection.ts';
import type { Watches } from './watches.ts';

/** A part of a collection, and what it needs to answer. */
export interface ScopeParts<T extends KubernetesObject> {
  readonly collection: Collection<T>;
  readonly source: Source<T>;
  readonly watches: Watches<T>;
  readonly prefix: string;
  readonly reader: FieldReader<T>;
}

export class CollectionScope<T extends KubernetesObject> {
  protected readonly parts: ScopeParts<T>;

  constructor(parts: ScopeParts<T>) {
    this.parts = parts;
  }

  protected get pending(): Pending {
    return this.parts.watches.pending;
  }

  async list(options: ListOptions = {}): Promise<List<T>> {
    const { limit = 0, signal } = checkOptions(options, LIST_NAMES);
    const { source } = this.parts;
    this.pending.check(signal);
    wholeNumber('limit', limit);
    const selection = this.#select(options);
    const ready = source.ready(signal);
    if (isPromise(ready)) await ready;
    const list = listOf(this.parts, selection, options);
    return isPromise(list) ? await this.pending.until(list, signal) : list;
  }

  async watch(options: StorageWatchOptions<T> = {}): Promise<Watch<StorageEvent<T>>> {
    const { timeoutSeconds = 0, signal } = checkOptions(options, WATCH_NAMES);
    this.pending.check(signal);
    wholeNumber('timeoutSeconds', timeoutSeconds);
    const watch = await this.parts.watches.open(this.#select(options), options);
    // Nobody is told of a watch that was given up while it was opened.
    if (signal?.aborted) void watch.return();
    signal?.throwIfAborted();
    return watch;
  }

  /** Does nothing: the whole is closed, not a part of it. */
  async close(): Promise<void> {}

  #select({ labelSelector, fieldSelector }: ListOptions): Selection<T> {
    const { prefix, reader } = this.parts;
    return new Selection(reader, { prefix, labelSelector, fieldSelector });
  }
}
