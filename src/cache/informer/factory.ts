import { untilAborted, whenAborted } from '../../watch/abort.ts';
import { callable, checkOptions, checkSignal, invalid, WatchError } from '../../watch/errors.ts';
import { Failures } from '../../watch/failures.ts';
import type { ListWatcher } from '../list-watcher.ts';
import { Informer } from './informer.ts';
import type { InformerOptions, StopOptions } from './informer-options.ts';

/** Creates the source of one resource. `namespace` is the factory's. */
export type InformerSource<Resource, T> = (
  resource: Resource,
  options: { readonly namespace: string | undefined },
) => ListWatcher<T>;

/** Options of an {@link InformerFactory}, for all its informers. */
export interface InformerFactoryOptions<T>
  extends Pick<InformerOptions<T>, 'resyncMs' | 'transform' | 'onError' | 'clock' | 'random'> {
  /** The namespace that sources are limited to. Default: all. */
  readonly namespace?: string | undefined;
}

const OPTIONS = ['resyncMs', 'transform', 'onError', 'clock', 'random', 'namespace'] as const;

interface FactoryEntry<Resource> {
  readonly resource: Resource;
  readonly informer: Informer<unknown>;
  started: boolean;
}

/**
 * Makes one informer per resource, and starts and stops them together. Upstream: `SharedInformerFactory`.
 *
 *     const factory = new InformerFactory((path: string, { namespace }) => createListWatcher<Pod>(urlOf(path, namespace)));
 *     const pods = factory.informer('pods');
 *     factory.start(signal);
 *     await factory.waitForSync();
 *
 * A resource is whatever `source` takes. Strings are the same if they are equal, objects if they are equal as JSON.
 */
export class InformerFactory<Resource = string, T = unknown> {
  readonly #source: InformerSource<Resource, T>;
  readonly #namespace: string | undefined;
  readonly #options: InformerOptions<unknown>;
  readonly #entries: Map<string, FactoryEntry<Resource>> = new Map();
  #shutdown: Promise<void> | undefined;
  /** One per `start`. */
  readonly #ends: Promise<void>[] = [];

  /** @throws {WatchError} INVALID_ARGUMENT for anything but a function, and for an unknown option. */
  constructor(source: InformerSource<Resource, T>, options: InformerFactoryOptions<T> = {}) {
    if (!callable('source', source)) throw invalid('source', source, 'a function');
    const { namespace, ...others } = checkOptions(options, OPTIONS);
    this.#source = source;
    this.#namespace = namespace;
    this.#options = others as InformerOptions<unknown>;
  }

  /**
   * Returns the informer of a resource, and creates it in the first call. Only that call's options are used; they override those
   * of the factory.
   *
   * @throws {WatchError} CLOSED after `shutdown`. What `source` throws.
   */
  informer<O extends T = T, Name extends string = string>(
    resource: Resource,
    options: InformerOptions<O, Name> = {},
  ): Informer<O, Name> {
    const key = JSON.stringify(resource);
    const existing = this.#entries.get(key)?.informer as unknown as Informer<O, Name> | undefined;
    if (existing) return existing;
    if (this.#shutdown) throw new WatchError('CLOSED', 'the informer factory is shut down');
    const source = this.#source(resource, { namespace: this.#namespace }) as unknown as ListWatcher<O>;
    const given = Object.entries(options).filter(([, value]) => value !== undefined);
    const all = { ...this.#options, ...Object.fromEntries(given) } as InformerOptions<O, Name>;
    const informer = new Informer<O, Name>(source, all);
    this.#entries.set(key, { resource, informer: informer as unknown as Informer<unknown>, started: false });
    return informer;
  }

  /**
   * Starts the informers that have not been started, until the signal aborts. May be called again; has no effect after
   * `shutdown`. If one ends because `onError` or `onStateChange` has thrown, the error goes to `console.error`.
   */
  start(signal?: AbortSignal): void {
    checkSignal(signal);
    if (this.#shutdown) return;
    const fresh: FactoryEntry<Resource>[] = [];
    for (const entry of this.#entries.values()) {
      if (entry.started) continue;
      entry.started = true;
      if (!entry.informer.started) fresh.push(entry);
    }
    if (fresh.length === 0) return;
    const leave = whenAborted(signal, () => {
      for (const { informer } of fresh) void informer.stop();
    });
    const failures = new Failures('informer factory');
    const runs = fresh.map(({ resource, informer }) =>
      // Rejects with what `onError` threw. Nobody can catch that here; code that calls `run` itself can.
      informer.run().catch((error) => failures.failed('an informer', error, ` (${JSON.stringify(resource)})`)),
    );
    this.#ends.push(Promise.all(runs).then(leave));
  }

  /**
   * Resolves with true when each started informer has synced, or with false if one has stopped before that or the signal has
   * aborted.
   */
  async waitForSync(signal?: AbortSignal): Promise<Map<Resource, boolean>> {
    checkSignal(signal);
    const started = [...this.#entries.values()].filter((entry) => entry.started);
    const all = Promise.all(started.map(({ informer }) => informer.synced.catch(() => {})));
    await untilAborted(all, signal).catch(() => {});
    return new Map(started.map(({ resource, informer }) => [resource, informer.hasSynced]));
  }

  /**
   * Stops all informers, and refuses later ones. Resolves when everything has stopped. Idempotent.
   *
   * @throws {WatchError} (rejects) TIMEOUT when calls of handlers take longer than `timeoutMs`; it names them.
   */
  shutdown(options: StopOptions = {}): Promise<void> {
    const { timeoutMs } = checkOptions(options, ['timeoutMs']);
    const stop = (how: StopOptions): Promise<void>[] => Array.from(this.#entries.values(), ({ informer }) => informer.stop(how));
    this.#shutdown ??= Promise.all([...stop({}), ...this.#ends]).then(() => {});
    return timeoutMs ? Promise.all(stop(options)).then(() => this.#shutdown) : this.#shutdown;
  }
}
