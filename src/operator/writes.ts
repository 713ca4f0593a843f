/**
 * Writes that do not lose what others write, and that are skipped if nothing would change.
 *
 *     apply            what you state, and nothing else        one request; others' fields stay theirs
 *     createOrUpdate   read or create, mutate, compare, write  409: read again and mutate that
 *     updateStatus     mutate, compare, write the status       409: read again and mutate that
 *
 * An attempt fails with a conflict only if another's write succeeded, so there is no pause between attempts. After
 * {@link MAX_ATTEMPTS}, it gives up with an error that is still a conflict.
 */
import { type KubernetesObject, keyOf, metadataOf, versionOf } from '../cache/object.ts';
import { type PatchOptions, placeOfObject, type ResourceClient, type WriteOptions } from '../cache/resource-client.ts';
import { refused } from '../storage/statuses.ts';
import { callable, checkOptions, invalid, isRecord, isWatchError, WatchError } from '../watch/errors.ts';
import { equals } from './equals.ts';
import { isAlreadyExists, isConflict, isNotFound } from './refusals.ts';

/** How often a write is tried before its conflict is reported. */
const MAX_ATTEMPTS = 10;

/** A value that may be changed, at any depth: what `mutate` functions get. */
export type Mutable<T> = T extends Date | ((...args: never[]) => unknown)
  ? T
  : T extends object
    ? { -readonly [K in keyof T]: Mutable<T[K]> }
    : T;

/**
 * What an apply states about an object `T`: any part of it, at any depth. For a kind without a type: anything. Upstream: the
 * types of `client-go/applyconfigurations`.
 */
export type ApplyConfiguration<T> = [
  // As an argument, `kind('pods/v1')` becomes never.
  [T] extends [never] ? object : keyof T extends keyof KubernetesObject ? object : Part<T>,
][[T] extends [unknown] ? 0 : never]; // so that `T` is not inferred from it, as with `NoInfer` of TypeScript 5.4

type Part<T> = T extends Date | ((...args: never[]) => unknown)
  ? T
  : T extends readonly (infer Element)[]
    ? readonly Part<Element>[]
    : T extends object
      ? { readonly [K in keyof T]?: Part<T[K]> | undefined }
      : T;

/** Options of {@link apply}. */
export interface ApplyOptions extends Omit<PatchOptions, 'type'> {
  /** Take over fields of other managers. Default true: an operator decides about what it owns. */
  readonly force?: boolean | undefined;
}

/** Options of {@link updateStatus} and the like. */
export type HelperOptions = Omit<WriteOptions, 'subresource'>;

/** Options of {@link createOrUpdate}. */
export interface CreateOrUpdateOptions<T extends object> extends HelperOptions {
  /** Where to look for the object first, such as a cache: that saves a request. Default: the server. */
  readonly cached?: ((key: string) => T | undefined) | undefined;
}

/** What {@link createOrUpdate} did, and the object after it. Upstream: `controllerutil.OperationResult`. */
export interface CreateOrUpdateResult<T extends object> {
  readonly result: 'created' | 'updated' | 'unchanged';
  readonly object: T;
}

/**
 * Server-side apply: sets the fields that `object` has, and removes those that an earlier apply of this field manager had and
 * this one does not. Fills in apiVersion, kind and namespace from the resource. Resolves with the resulting object.
 *
 * @throws {WatchError} INVALID_ARGUMENT without a name, and without `fieldManager`.
 */
export async function apply<T extends object>(
  resource: ResourceClient<T>,
  object: ApplyConfiguration<T>,
  options: ApplyOptions & { readonly fieldManager: string },
): Promise<T> {
  const { force = true, ...patch } = options ?? {};
  const place = placeOfObject(checked(resource), object, 'apply');
  // The resource adds apiVersion and kind, which for some subresources are not those of the type.
  const sent = { ...object, metadata: { ...metadataOf(object), ...place } };
  return await resource.patch(keyOf({ metadata: place }), sent, { ...patch, force, type: 'apply' });
}

/**
 * Reads the object that has the name of `desired`, or takes `desired` if there is none, lets `mutate` change a copy of it, and
 * writes that: with `create`, or with `update` if it differs according to {@link equals}. If others create, change or delete it
 * meanwhile, it is read and mutated again. A status has a path of its own: see {@link updateStatus}.
 *
 *     await createOrUpdate(services, { metadata: { name: 'web' } }, (service) => { service.spec = { ...service.spec, ports }; });
 *
 * `mutate` should set values as the server stores them, with its defaults: otherwise each call makes a request. Upstream:
 * `controllerutil.CreateOrUpdate`, which leaves conflicts to the caller.
 *
 * @throws {WatchError} INVALID_ARGUMENT if `mutate` changes name or namespace, or returns another object; also if it changes the
 *   status and the server has left that as it was, in which case everything else is written. REFUSED if the server refuses.
 */
export async function createOrUpdate<T extends object>(
  resource: ResourceClient<T>,
  desired: T,
  mutate: (draft: Mutable<T>) => unknown,
  options: CreateOrUpdateOptions<T> = {},
): Promise<CreateOrUpdateResult<T>> {
  const { cached, ...write } = checkOptions(options, ['cached', ...HELPER_OPTIONS]);
  const key = keyIn(resource, desired);
  return await attempting<CreateOrUpdateResult<T>>(write, async (attempt) => {
    const current = (attempt === 1 && cached?.(key)) || (await readIfAny(resource, key, write));
    const draft = await mutated(current ?? desired, mutate);
    const named = keyIn(resource, draft);
    if (named !== key) throw invalid('object', named, `${key}: mutate may not change name and namespace`);
    const written = (object: T): T => {
      if (equals(statusOf(current ?? desired), statusOf(draft)) || !equals(statusOf(current), statusOf(object))) return object;
      const what = `${key}: the server writes the status at a path of its own, and \`mutate\` has changed it: use updateStatus`;
      throw new WatchError('INVALID_ARGUMENT', what);
    };
    if (!current) {
      const create = async () => ({ result: 'created', object: written(await resource.create(draft, write)) }) as const;
      return { write: create, isRaced: isAlreadyExists };
    }
    if (equals(current, draft)) return { done: { result: 'unchanged', object: current } };
    const update = async () => ({ result: 'updated', object: written(await resource.update(draft, write)) }) as const;
    return { write: update, isRaced: (error) => isConflict(error) || isNotFound(error) };
  });
}

/**
 * Lets `mutate` change a copy of an object, and writes its status if that differs according to {@link equals}. `object` is the
 * last known state, such as that of a cache: if it is not the newest, the newest is read and mutated. Resolves with the newest
 * object.
 *
 * Upstream: `RetryOnConflict` around a read and a write.
 *
 * @throws {WatchError} INVALID_ARGUMENT if `mutate` changes anything but the status, which a server would not write, or returns
 *   another object. REFUSED if the server refuses; with 404 if the object is gone, even if another one has its name.
 */
export async function updateStatus<T extends object>(
  resource: ResourceClient<T>,
  object: T,
  mutate: (draft: Mutable<T>) => unknown,
  options: HelperOptions = {},
): Promise<T> {
  checkOptions(options, HELPER_OPTIONS);
  return await attempting(options, async (attempt) => {
    const isFresh = attempt === 1 && versionOf(object) !== '';
    const current = isFresh ? object : await readAgain(resource, object, options);
    if (!current) throw refused(404, 'NotFound', `${keyIn(resource, object)} with uid ${metadataOf(object).uid} is gone`);
    const draft = await mutated(current, mutate);
    const other = changedBeside(current, draft);
    if (other) {
      const what = `${keyIn(resource, object)}: updateStatus writes nothing but the status, and \`mutate\` has changed ${other}`;
      throw new WatchError('INVALID_ARGUMENT', what);
    }
    const status = statusOf(draft);
    if (equals(statusOf(current), status)) return { done: current };
    return { write: () => resource.update({ ...current, status }, { ...options, subresource: 'status' }), isRaced: isConflict };
  });
}

/**
 * Repeats work while it rejects with a conflict: see {@link isConflict}. It should read the newest state each time. Upstream:
 * `retry.RetryOnConflict`.
 *
 * @throws {WatchError} REFUSED with the last conflict, after 10 attempts.
 */
export async function retryOnConflict<R>(
  work: (attempt: number) => R | Promise<R>,
  options: { readonly signal?: AbortSignal | undefined } = {},
): Promise<R> {
  callable('work', work ?? null);
  return await attempting(checkOptions(options, ['signal']), async (attempt) => ({
    write: async () => work(attempt),
    isRaced: isConflict,
  }));
}

export const HELPER_OPTIONS = ['signal', 'dryRun', 'fieldManager', 'fieldValidation'] as const;

/** The result of an attempt: nothing needs to be written, or a write, which another's write may make fail. */
type WriteAttempt<R> = { readonly done: R } | { readonly write: () => Promise<R>; readonly isRaced: (error: unknown) => boolean };

/** Repeats attempts until one succeeds, or fails for another reason, such as an error of `prepare`. */
export async function attempting<R>(
  { signal }: { readonly signal?: AbortSignal | undefined },
  prepare: (attempt: number) => Promise<WriteAttempt<R>>,
): Promise<R> {
  for (let attempt = 1; ; attempt++) {
    const next = await prepare(attempt);
    if ('done' in next) return next.done;
    signal?.throwIfAborted();
    try {
      return await next.write();
    } catch (error) {
      if (!next.isRaced(error)) throw error;
      if (attempt === MAX_ATTEMPTS) throw gaveUp(error);
    }
  }
}

/** The error after the last attempt, for which {@link isConflict} is still true. */
function gaveUp(cause: unknown): unknown {
  if (!isWatchError(cause, 'REFUSED')) return cause;
  return new WatchError('REFUSED', `gave up after ${MAX_ATTEMPTS} attempts: ${cause.message}`, { status: cause.status, cause });
}

async function mutated<T extends object>(object: T, mutate: (draft: Mutable<T>) => unknown): Promise<T> {
  callable('mutate', mutate ?? null);
  const draft = structuredClone(object);
  const said = await mutate(draft as Mutable<T>);
  // Short arrows return what they assign, which may be a template with metadata, but not one with the object's own name.
  if (said !== draft && isRecord(said) && metadataOf(said).name === metadataOf(draft).name)
    throw invalid('mutate', said, 'changes of its argument instead of another object');
  return draft;
}

/** A member of an object, or of its metadata, that is not as it was; undefined if it is only the status. */
function changedBeside(before: object, after: object): string | undefined {
  const [one, other] = [before, after].map((object) => ({ ...object, status: undefined }) as Readonly<Record<string, unknown>>);
  if (equals(one, other)) return undefined;
  const changed = (from: object, to: object, within = (part: object) => part): string | undefined =>
    Object.keys({ ...from, ...to }).find(
      (name) => !equals(within({ [name]: from[name as never] }), within({ [name]: to[name as never] })),
    );
  const name = changed(one as object, other as object);
  if (name !== 'metadata') return name;
  return `metadata.${changed(metadataOf(before), metadataOf(after), (metadata) => ({ metadata }))}`;
}

const statusOf = (object: object | undefined): unknown => (object as { readonly status?: unknown } | undefined)?.status;

/** The key of an object, which may leave out the namespace of its resource. */
export function keyIn(resource: Pick<ResourceClient, 'type' | 'namespace'>, object: object): string {
  return keyOf({ metadata: placeOfObject(checked(resource), object, 'write') });
}

/** Throws INVALID_ARGUMENT for anything but a resource, such as its name. */
function checked<R extends Pick<ResourceClient, 'type'>>(resource: R): R {
  if (!isRecord((resource as R | null | undefined)?.type))
    throw invalid('resource', resource, 'a resource of a Cluster or an ApiServer');
  return resource;
}

type Reading = Pick<WriteOptions, 'signal'>;

async function readIfAny<T extends object>(
  resource: ResourceClient<T>,
  key: string,
  { signal }: Reading,
): Promise<T | undefined> {
  try {
    return await resource.get(key, { signal });
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** The newest state of an object; undefined if it is gone, even if another one has its name. */
export async function readAgain<T extends object>(
  resource: ResourceClient<T>,
  object: T,
  options: Reading,
): Promise<T | undefined> {
  const found = await readIfAny(resource, keyIn(resource, object), options);
  const { uid } = metadataOf(object);
  return uid && metadataOf(found).uid !== uid ? undefined : found;
}
