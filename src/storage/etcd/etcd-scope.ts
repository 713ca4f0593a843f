import type { List, ListOptions, ListWatchOptions } from '../../cache/list-watcher.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import { whenAborted } from '../../watch/abort.ts';
import { callable, checkOptions, invalid, wholeNumber } from '../../watch/errors.ts';
import type { Watch } from '../../watch/watch.ts';
import { checkKey, checkPrefix } from '../keys.ts';
import { CREATE_NAMES, DELETE_NAMES, KEYS_NAMES, LIST_NAMES, UPDATE_NAMES, WATCH_NAMES } from '../option-names.ts';
import { parseVersion, planList, planWatch, predicateOf } from '../selection.ts';
import { alreadyExists, badRequest, foreign } from '../statuses.ts';
import type {
  CreateOptions,
  DeleteOptions,
  FieldFunctions,
  GetOptions,
  KeysOptions,
  ScopeOptions,
  Storage,
  StorageEvent,
  StorageWatchOptions,
  UpdateOptions,
} from '../storage.ts';
import type { CallContext, EtcdClient, OpenWatch } from './etcd-client.ts';
import { EtcdWatch, EtcdWatchSource } from './etcd-watch.ts';
import { behind, toBytes, toText } from './key-bytes.ts';
import { readList } from './lists.ts';
import { objectOf, toObject, toStored } from './objects.ts';
import { deleteObject, type Target, updateObject } from './writes.ts';

/** The keys of an etcd that begin with a prefix. */
export class EtcdScope<T extends KubernetesObject> implements Storage<T> {
  readonly #client: EtcdClient;
  readonly #prefix: string;
  readonly #fields: FieldFunctions<T>;

  constructor(client: EtcdClient, { prefix, fields }: { prefix: string; fields: FieldFunctions<T> }) {
    this.#client = client;
    this.#prefix = prefix;
    this.#fields = fields;
  }

  async get(key: string, options: GetOptions = {}): Promise<T | undefined> {
    const { resourceVersion, signal } = checkOptions(options, ['resourceVersion', 'signal']);
    const atLeast = parseVersion(resourceVersion);
    const { place, context } = this.#target('get', key, signal);
    const isAny = resourceVersion !== undefined && resourceVersion !== '' && atLeast === undefined;
    const { kvs, header } = await this.#client.range({ key: toBytes(place), serializable: isAny }, context);
    if (atLeast !== undefined && header.revision < BigInt(atLeast)) throw foreign(atLeast, `${header.revision}`);
    return kvs[0] && objectOf<T>(kvs[0]);
  }

  async list(options: ListOptions = {}): Promise<List<T>> {
    const { resourceVersion = '', limit = 0, signal } = checkOptions(options, LIST_NAMES);
    this.#client.check(signal);
    const plan = planList(options);
    const anyState = resourceVersion !== '' && plan.exact === undefined && plan.atLeast === undefined;
    const selects = this.#selects(options);
    return readList<T>(this.#client, {
      prefix: this.#prefix,
      plan,
      anyState,
      limit: wholeNumber('limit', limit),
      selects,
      signal,
    });
  }

  async watch(options: StorageWatchOptions<T> = {}): Promise<Watch<StorageEvent<T>>> {
    const { signal, timeoutSeconds = 0, previousOf } = checkOptions(options, WATCH_NAMES);
    callable('previousOf', previousOf);
    this.#client.check(signal);
    let plan = planWatch(options);
    const selects = this.#selects(options);
    // Only an explicit false leaves out the state.
    if (options.sendInitialEvents === false && plan.after === undefined) {
      plan = { ...plan, after: await this.currentVersion({ signal }) };
    }
    const open = { prefix: this.#prefix, plan, selects, previousOf };
    return openWatch<T>(this.#client, open, { signal, timeoutMs: wholeNumber('timeoutSeconds', timeoutSeconds) * 1_000 });
  }

  async create(key: string, object: T, options: CreateOptions = {}): Promise<T> {
    const { ttlSeconds = 0, signal } = checkOptions(options, CREATE_NAMES);
    const { place, context } = this.#target('create', key, signal);
    if (object?.metadata?.resourceVersion) {
      throw badRequest('resourceVersion should not be set on objects to be created');
    }
    const [stored, bytes] = [toStored(object), toBytes(place)];
    const write = { key: bytes, expected: 0n, value: stored.value, ttlSeconds: wholeNumber('ttlSeconds', ttlSeconds) };
    const { succeeded, header } = await this.#client.write(write, context);
    if (!succeeded) throw alreadyExists(key);
    return this.#client.wrote(header.revision, toObject<T>(bytes, { ...stored, revision: header.revision }));
  }

  async update(key: string, change: (current: T) => T | Promise<T>, options: UpdateOptions<T> = {}): Promise<T> {
    const { ttlSeconds = 0, signal } = checkOptions(options, UPDATE_NAMES);
    if (callable('change', change) === undefined) throw invalid('change', change, 'a function');
    wholeNumber('ttlSeconds', ttlSeconds);
    return updateObject<T>(this.#target('update', key, signal), change, options);
  }

  async delete(key: string, options: DeleteOptions<T> = {}): Promise<T> {
    const { validate, signal } = checkOptions(options, DELETE_NAMES);
    callable('validate', validate);
    return deleteObject<T>(this.#target('delete', key, signal), options);
  }

  async currentVersion(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<string> {
    const { signal } = checkOptions(options, ['signal']);
    return `${(await this.#client.head({ what: 'read the revision', signal })).revision}`;
  }

  async keys(options: KeysOptions): Promise<readonly string[]> {
    const { from = '', limit, signal } = checkOptions(options, KEYS_NAMES);
    const prefix = this.#prefix;
    const range = { key: toBytes(prefix + from), end: behind(toBytes(prefix)), limit, keysOnly: true };
    const { kvs } = await this.#client.range(range, { what: `list the keys of ${prefix}`, signal });
    return kvs.map(({ key }) => toText(key).slice(prefix.length));
  }

  checkHealth(): Promise<void> {
    return this.#client.checkAlarms();
  }

  async requestProgress(): Promise<void> {
    this.#client.check(undefined);
    for (const watch of this.#client.watches) if (watch.prefix.startsWith(this.#prefix)) watch.requestProgress();
  }

  scope<U extends KubernetesObject = T>(prefix: string, options: ScopeOptions<U> = {}): Storage<U> {
    const { fields = this.#fields as unknown as FieldFunctions<U> } = checkOptions(options, ['fields']);
    return new EtcdScope<U>(this.#client, { prefix: this.#prefix + checkPrefix(prefix), fields });
  }

  async close(): Promise<void> {}

  #target(verb: string, key: string, signal: AbortSignal | undefined): Target & { readonly context: CallContext } {
    this.#client.check(signal);
    const place = this.#prefix + checkKey(key);
    return { client: this.#client, key, place, context: { what: `${verb} ${key}`, signal } };
  }

  /** The condition for objects to be selected; undefined for all. If a field's function throws, the object is not selected. */
  #selects(options: ListOptions | ListWatchOptions): ((object: T) => boolean) | undefined {
    const predicate = predicateOf<T>(options, this.#fields);
    const { onError } = this.#client.settings;
    if (predicate.isEmpty) return undefined;
    return (object) => {
      try {
        return predicate.matches(object);
      } catch (error) {
        onError(error);
        return false;
      }
    };
  }
}

type Opening<T> = Omit<ConstructorParameters<typeof EtcdWatchSource<T & KubernetesObject>>[1], 'onEnd'>;

/** Opens a watch. It ends with its signal, at its timeout, and with the storage. */
async function openWatch<T extends KubernetesObject>(
  client: EtcdClient,
  opening: Opening<T>,
  { signal, timeoutMs }: { signal: AbortSignal | undefined; timeoutMs: number },
): Promise<Watch<StorageEvent<T>>> {
  let watch: EtcdWatch<T> | undefined;
  let stopClock: (() => void) | undefined;
  let leave = (): void => {};
  const onAbort = (): void => (watch ? watch.stop() : source.cancel(signal?.reason));
  const onEnd = (): void => {
    stopClock?.();
    client.left(entry);
    leave();
  };
  const source = new EtcdWatchSource<T>(client, { ...opening, onEnd });
  const entry: OpenWatch = { prefix: opening.prefix, requestProgress: () => source.requestProgress(), stop: onAbort };
  client.watches.add(entry);
  leave = whenAborted(signal, onAbort);
  try {
    await source.open();
    client.check(signal);
  } catch (error) {
    source.cancel();
    client.check(signal);
    throw error;
  }
  watch = new EtcdWatch<T>(source);
  const opened = watch;
  if (timeoutMs > 0) stopClock = client.settings.clock.schedule(timeoutMs, () => opened.stop());
  return watch;
}
