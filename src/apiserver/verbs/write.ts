/**
 * Create, update and patch. Each is one step in the storage: an update reads and writes the same revision, and if another writer
 * was faster, it is repeated with what is there then.
 */

import type { KubernetesObject } from '../../cache/object.ts';
import { versionOf } from '../../cache/object.ts';
import type { NamespacedName } from '../../cache/resource-client.ts';
import { isPromise } from '../../watch/abort.ts';
import { inPieces, paceOf, requestPace, type Soon, type Work } from '../../watch/fair-queue.ts';
import { alreadyExists, hasCode, notFound, translated } from '../api-status.ts';
import type { Subresource } from '../subresources.ts';
import { withMeta } from './metadata.ts';
import { decodeCreate, prepareCreate, prepareUpdate } from './prepare.ts';
import { deleteObject } from './remove.ts';
import type { ResourceContext } from './resource-context.ts';
import { storageKey } from './resource-context.ts';

/** Options of writes. */
export interface WriteTerms {
  /** Check everything, and change nothing. */
  readonly dryRun: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** How many other names are tried if a generated one is taken. */
const MAX_NAME_ATTEMPTS = 8;

/** Creates an object. */
export async function createObject(
  context: ResourceContext,
  sent: unknown,
  { namespace, dryRun, signal }: WriteTerms & { namespace: string | undefined },
): Promise<KubernetesObject> {
  const readable = decodeCreate(context.info, sent, namespace);
  const pace = requestPace(signal);
  for (let attempt = 1; ; attempt++) {
    // Causes are reported only where the object could exist. Upstream: the plugin `NamespaceLifecycle`, before validation.
    const asked = readable.metadata.name ?? '';
    const within = namespace === undefined ? undefined : await context.namespaceExists(namespace, asked);
    const before = pace?.pause();
    if (before) await before;
    const object = await prepareCreate(context, readable, signal);
    const between = pace?.pause();
    if (between) await between;
    const { name = '' } = object.metadata;
    const key = storageKey({ namespace, name });
    try {
      if (!dryRun) {
        const created = await context.storage.create(key, object, { signal });
        if (namespace !== undefined && within !== undefined) {
          await context.namespaceHolds(namespace, { uid: within, created }).catch(takeBack(context, key, created));
        }
        return created;
      }
      if ((await context.storage.get(key, { signal })) === undefined) return object;
      throw alreadyExists(context.info, name);
    } catch (error) {
      const generated = asked === '';
      if (generated && attempt < MAX_NAME_ATTEMPTS && hasCode(error, 409, 'AlreadyExists')) continue;
      throw translated(error, context.info, name);
    }
  }
}

/** Deletes an object that was created in a Terminating namespace: the server that empties it may have looked before. */
function takeBack(context: ResourceContext, key: string, { metadata }: KubernetesObject): (why: unknown) => Promise<never> {
  return async (why) => {
    if (hasCode(why, 403) || hasCode(why, 404)) {
      await context.storage.delete(key, { uid: metadata?.uid }).catch((error: unknown) => {
        if (!hasCode(error, 404) && !hasCode(error, 409)) throw error;
      });
      context.removed(metadata?.namespace);
    }
    throw why;
  };
}

/** Options of {@link updateObject}. */
export interface UpdateTerms extends WriteTerms {
  readonly place: NamespacedName;
  /** What is written: the object itself, or a subresource. */
  readonly row: Subresource;
  /** Returns what was sent, or the work that applies it to what is there. May be called several times. */
  readonly make: (current: KubernetesObject) => unknown;
}

type Change = (current: KubernetesObject) => Soon<KubernetesObject>;

/** JSON has no functions. */
function isWork(made: unknown): made is Work<unknown> {
  return typeof (made as Partial<Work<unknown>> | undefined)?.next === 'function';
}

/** How often other writers may be faster before an update gives up. */
const MAX_ATTEMPTS = 100;

/** Updates an object. If that removes the last finalizer of one that is being deleted, it is gone. */
export async function updateObject(context: ResourceContext, terms: UpdateTerms): Promise<KubernetesObject> {
  const { storage, info } = context;
  const { place, signal } = terms;
  const key = storageKey(place);
  const unlessDone = (next: KubernetesObject, current: KubernetesObject): KubernetesObject => {
    if (!context.empty && isDone(next)) throw new Done(next, current);
    return next;
  };
  const changing = function* (current: KubernetesObject): Work<Soon<KubernetesObject>> {
    const made = terms.make(current);
    const sent = isWork(made) ? yield* made : made;
    const next = yield* prepareUpdate(context, sent, { current, place, row: terms.row });
    return isPromise(next) ? next.then((checked) => unlessDone(checked, current)) : unlessDone(next, current);
  };
  const change: Change = (current) => inPieces(changing(current), { pace: paceOf(signal), signal }) as Soon<KubernetesObject>;
  for (let attempt = 1; ; attempt++) {
    try {
      if (terms.dryRun) return await dry(context, terms, change);
      const updated = await storage.update(key, change, { signal });
      // A container goes when its contents have gone.
      if (context.empty && isDone(updated)) await deleteEmpty(context, updated, terms);
      return updated;
    } catch (error) {
      if (!(error instanceof Done)) throw translated(error, info, place.name);
      if (terms.dryRun) return error.next;
      const gone = await finish(context, terms, error).catch((late: unknown) => {
        if (attempt < MAX_ATTEMPTS && hasCode(late, 409, 'Conflict')) return undefined;
        throw translated(late, info, place.name);
      });
      if (gone !== undefined) return gone;
    }
  }
}

/** Deletes an object that has no finalizers any more. Another server may be faster. */
async function deleteEmpty(
  context: ResourceContext,
  { metadata }: KubernetesObject,
  { place, signal }: UpdateTerms,
): Promise<void> {
  const terms = { dryRun: false, preconditions: { uid: metadata?.uid }, signal };
  await deleteObject(context, place, terms).catch((error: unknown) => {
    if (!hasCode(error, 404) && !hasCode(error, 409)) throw error;
  });
}

async function dry(context: ResourceContext, { place, signal }: UpdateTerms, change: Change): Promise<KubernetesObject> {
  const current = await context.storage.get(storageKey(place), { signal });
  if (current === undefined) throw notFound(context.info, place.name);
  return change(current);
}

/** Deletes an object that no finalizer holds any more. Its last content is what was to be written. */
async function finish(
  context: ResourceContext,
  { place, signal }: UpdateTerms,
  { next, current }: Done,
): Promise<KubernetesObject> {
  const deleted = await context.storage.delete(storageKey(place), { resourceVersion: versionOf(current), signal });
  context.removed(place.namespace);
  return withMeta(next, { resourceVersion: versionOf(deleted) });
}

/** Whether an object is only waiting for finalizers, and has none. */
function isDone({ metadata }: KubernetesObject): boolean {
  return metadata?.deletionTimestamp !== undefined && (metadata.finalizers ?? []).length === 0;
}

/** Not a failure: the update leaves nothing that holds the object. */
class Done extends Error {
  readonly next: KubernetesObject;
  readonly current: KubernetesObject;

  constructor(next: KubernetesObject, current: KubernetesObject) {
    super('the object is gone');
    this.next = next;
    this.current = current;
  }
}
