import type { List, ListOptions, ListWatcher, ListWatchOptions } from '../../cache/list-watcher.ts';
import { versionOf } from '../../cache/object.ts';
import { type Prepare, preparedList, prepareItems, takesPrepare } from '../../cache/pager.ts';
import { refusalCode } from '../../watch/errors.ts';
import { isErrorEvent, isInitialEventsEnd, type ObjectEvent } from '../../watch/event.ts';
import { Batches, Iteration } from '../../watch/reader.ts';
import type { Watch, WatchBatches } from '../../watch/watch.ts';
import type { CacheState, CacheStep } from '../checkers/cache/cache-history.ts';

/** Where the steps go, and how objects are identified in them. */
export interface CacheNotebook<T> {
  write(step: CacheStep): void;
  keyOf(object: T): string;
  idOf(object: T): string;
  stateOf(objects: Iterable<T>): CacheState;
  /** A new name for a request of this client. */
  nameFor(client: string, verb: string): string;
}

/** A list with more pages to come. */
interface Part<T> {
  readonly name: string;
  readonly items: readonly T[];
  readonly resourceVersion: string;
}

/** A source that records its requests and their results. Those with a selector are passed on unrecorded. */
export class RecordedSource<T> implements ListWatcher<T> {
  readonly #source: ListWatcher<T>;
  readonly #client: string;
  readonly #notebook: CacheNotebook<T>;
  readonly #parts: Map<string, Part<T>> = new Map();

  constructor(source: ListWatcher<T>, { client, notebook }: { client: string; notebook: CacheNotebook<T> }) {
    takesPrepare(RecordedSource.prototype.list);
    this.#source = source;
    this.#client = client;
    this.#notebook = notebook;
  }

  async list(options: ListOptions = {}, prepare?: Prepare<T>): Promise<List<T>> {
    const { continue: token, resourceVersion } = options;
    const part = token ? this.#parts.get(token) : undefined;
    if (options.labelSelector || options.fieldSelector || (token && !part)) return preparedList(this.#source, options, prepare);
    const client = this.#client;
    const list = part?.name ?? this.#notebook.nameFor(client, 'list');
    if (token) this.#parts.delete(token);
    // A page belongs to the first request.
    if (!part) this.#notebook.write({ step: 'list', list, client, resourceVersion, resourceVersionMatch: matchOf(options) });
    // Recorded as the source has sent it.
    const page = await this.#source.list(options).catch((error: unknown) => {
      this.#notebook.write({ step: 'refused', request: list, code: refusalCode(error) });
      throw error;
    });
    this.#listed(page, { list, part });
    return prepareItems(page, prepare);
  }

  async watch(options: ListWatchOptions = {}): Promise<Watch<ObjectEvent<T>>> {
    if (options.labelSelector || options.fieldSelector) return this.#source.watch(options);
    const { resourceVersion, sendInitialEvents } = options;
    const client = this.#client;
    const watch = this.#notebook.nameFor(client, 'watch');
    this.#notebook.write({ step: 'watch', watch, client, resourceVersion, sendInitialEvents });
    const opened = await this.#source.watch(options).catch((error: unknown) => {
      this.#notebook.write({ step: 'refused', request: watch, code: refusalCode(error) });
      throw error;
    });
    return new RecordedObjectWatch(opened, { name: watch, notebook: this.#notebook, signal: options.signal });
  }

  #listed(page: List<T>, { list, part }: { list: string; part: Part<T> | undefined }): void {
    const items = part ? [...part.items, ...page.items] : page.items;
    const { resourceVersion: version } = page;
    // A list that continues at another version is not a state.
    if (part && part.resourceVersion !== version) return;
    if (page.continue) this.#parts.set(page.continue, { name: list, items, resourceVersion: version });
    else this.#notebook.write({ step: 'listed', list, version, state: this.#notebook.stateOf(items) });
  }
}

/** How a kube-apiserver interprets a version: one with a limit is exact, unless the request says otherwise. */
function matchOf({ resourceVersionMatch, resourceVersion = '', limit = 0 }: ListOptions): ListOptions['resourceVersionMatch'] {
  const exact = limit > 0 && resourceVersion !== '' && resourceVersion !== '0';
  return resourceVersionMatch ?? (exact ? 'Exact' : undefined);
}

/** A watch that passes on what another one says of itself. */
export abstract class RecordingWatch<E> extends Iteration {
  protected readonly watch: Watch<E>;
  protected readonly inner: WatchBatches<E>;

  constructor(watch: Watch<E>) {
    super();
    this.watch = watch;
    this.inner = watch.batches();
  }

  get stopped(): boolean {
    return this.watch.stopped;
  }

  get queued(): number {
    return this.watch.queued;
  }

  get dropped(): number {
    return this.watch.dropped;
  }
}

/** A watch that records what its consumer gets, and its end. */
export class RecordedObjectWatch<T> extends RecordingWatch<ObjectEvent<T>> implements Watch<ObjectEvent<T>> {
  readonly #name: string;
  readonly #notebook: CacheNotebook<T>;
  readonly #signal: AbortSignal | undefined;
  #ended: boolean = false;
  #stopped: boolean = false;

  constructor(
    watch: Watch<ObjectEvent<T>>,
    { name, notebook, signal }: { name: string; notebook: CacheNotebook<T>; signal?: AbortSignal | undefined },
  ) {
    super(watch);
    this.#name = name;
    this.#notebook = notebook;
    this.#signal = signal;
  }

  async next(): Promise<IteratorResult<ObjectEvent<T>, undefined>> {
    const result = await this.#ending(this.watch.next());
    if (!result.done) this.#got(result.value);
    return result;
  }

  tryNext(): ObjectEvent<T> | undefined {
    const event = this.watch.tryNext();
    if (event) this.#got(event);
    return event;
  }

  batches(): WatchBatches<ObjectEvent<T>> {
    return new Batches(this, async () => {
      const result = await this.#ending(this.inner.next());
      if (!result.done) for (const event of result.value) this.#got(event);
      return result;
    });
  }

  stop(): void {
    this.#stops();
    this.watch.stop();
  }

  return(): Promise<IteratorResult<ObjectEvent<T>, undefined>> {
    this.#stops();
    return this.watch.return();
  }

  /** Records the end, even if it is an error. */
  async #ending<R>(read: Promise<IteratorResult<R, undefined>>): Promise<IteratorResult<R, undefined>> {
    try {
      const result = await read;
      if (result.done) this.#end(undefined);
      return result;
    } catch (error) {
      this.#end(refusalCode(error) ?? 0);
      throw error;
    }
  }

  #stops(): void {
    if (this.#stopped || this.#ended) return;
    this.#stopped = true;
    this.#notebook.write({ step: 'stop', watch: this.#name });
  }

  #end(code: number | undefined): void {
    if (this.#ended) return;
    if (this.#signal?.aborted) this.#stops();
    this.#ended = true;
    this.#notebook.write({ step: 'end', watch: this.#name, code });
  }

  #got(event: ObjectEvent<T>): void {
    const watch = this.#name;
    if (isErrorEvent(event)) this.#end(event.object.code);
    else if (event.type === 'BOOKMARK') {
      this.#notebook.write({ step: 'bookmark', watch, version: versionOf(event.object), end: isInitialEventsEnd(event) });
    } else {
      const { type } = event;
      const object = event.object as T;
      const [key, id] = [this.#notebook.keyOf(object), this.#notebook.idOf(object)];
      this.#notebook.write({ step: 'event', watch, type, version: versionOf(object), key, object: id });
    }
  }
}
