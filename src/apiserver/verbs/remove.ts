/**
 * Deletion. An object with finalizers is not deleted at once: it gets a deletion time, and goes with its last finalizer.
 *
 *     there --delete, no finalizers-------------------------------------> gone
 *       '----delete, finalizers---> waiting --last one removed (update)-----^
 */
import type { KubernetesObject } from '../../cache/object.ts';
import type { NamespacedName } from '../../cache/resource-client.ts';
import { paceOf } from '../../watch/fair-queue.ts';
import { conflict, hasCode, MODIFIED, notFound, translated } from '../api-status.ts';
import { type ResourceContext, storageKey, timestamp } from '../resource-info.ts';
import { withMeta } from './metadata.ts';

/** Options of a deletion. */
export interface DeleteTerms {
  readonly preconditions?: { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined } | undefined;
  readonly dryRun: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** The result for an object: its last content, and whether it is gone. */
interface Deleted {
  readonly object: KubernetesObject;
  readonly gone: boolean;
}

const MAX_ATTEMPTS = 100;

/** Deletes an object, or marks it as waiting for its finalizers. */
export async function deleteObject(context: ResourceContext, place: NamespacedName, terms: DeleteTerms): Promise<Deleted> {
  const { info, storage } = context;
  const key = storageKey(place);
  const { dryRun, signal } = terms;
  let { preconditions } = terms;
  let emptied: KubernetesObject | undefined;
  const validate = (current: KubernetesObject): void => {
    // Another object of this name has not been emptied, and is not the one to delete.
    if (emptied && current.metadata?.uid !== emptied.metadata?.uid) throw notFound(info, place.name);
    checkPreconditions(context, current, preconditions);
    if (isHeld(context, current)) throw new HasFinalizers();
    if (dryRun) throw new DryRunDone(current);
  };
  for (let attempt = 1; ; attempt++) {
    try {
      if (context.empty) {
        emptied = await storage.get(key, { signal });
        if (emptied === undefined) throw notFound(info, place.name);
        checkPreconditions(context, emptied, preconditions);
        // Emptying marks it first: from then on it has another version.
        if (!dryRun) preconditions = { uid: emptied.metadata?.uid };
        const left = (await context.empty(emptied, { dryRun, signal })) ? undefined : await storage.get(key, { signal });
        if (left !== undefined) return { object: left, gone: false };
      }
      const object = await storage.delete(key, { validate, signal });
      context.removed(place.namespace);
      return { object, gone: true };
    } catch (error) {
      if (error instanceof DryRunDone) return { object: error.object, gone: true };
      if (!(error instanceof HasFinalizers)) throw translated(error, info, place.name);
    }
    const marked = await mark(context, key, { ...terms, preconditions }).catch((error: unknown) => {
      // The last finalizer has gone meanwhile.
      if (!(error instanceof FinalizersGone)) throw translated(error, info, place.name);
      if (attempt === MAX_ATTEMPTS) throw conflict(info, place.name, MODIFIED);
      return undefined;
    });
    if (marked !== undefined) return { object: marked, gone: false };
  }
}

async function mark(context: ResourceContext, key: string, terms: DeleteTerms): Promise<KubernetesObject> {
  const { storage, now } = context;
  const change = (current: KubernetesObject): KubernetesObject => {
    checkPreconditions(context, current, terms.preconditions);
    if (!isHeld(context, current)) throw new FinalizersGone();
    if (current.metadata?.deletionTimestamp !== undefined) return current;
    if (context.marked) return context.marked(current);
    const generation = current.metadata?.generation;
    return withMeta(current, {
      deletionTimestamp: timestamp(now()),
      deletionGracePeriodSeconds: 0,
      generation: generation === undefined ? undefined : generation + 1,
    });
  };
  if (!terms.dryRun) return storage.update(key, change, { signal: terms.signal, ttlSeconds: context.ttlSeconds });
  const current = await storage.get(key, { signal: terms.signal });
  if (current === undefined) throw new FinalizersGone();
  return change(current);
}

function checkPreconditions(
  { info }: ResourceContext,
  { metadata }: KubernetesObject,
  preconditions: DeleteTerms['preconditions'],
): void {
  for (const [member, label] of [
    ['uid', 'UID'],
    ['resourceVersion', 'ResourceVersion'],
  ] as const) {
    const wanted = preconditions?.[member];
    if (wanted === undefined || wanted === metadata?.[member]) continue;
    const why = `Precondition failed: ${label} in precondition: ${wanted.slice(0, 100)}, ${label} in object meta: ${metadata?.[member]}`;
    throw conflict(info, metadata?.name ?? '', why);
  }
}

/** Whether an object must be marked before it can be deleted, or waits for its finalizers. */
const isHeld = ({ marked }: ResourceContext, { metadata }: KubernetesObject): boolean =>
  (metadata?.finalizers ?? []).length > 0 || (marked !== undefined && metadata?.deletionTimestamp === undefined);

/** Deletions between two looks at the clock. */
const STRIDE = 16;
/** The number of objects that a page of a collection's deletion reads. */
const PAGE = 500;

/**
 * Deletes the objects that a list selects, one after the other, and nothing that has replaced them since. Returns what was there.
 * Objects that others delete meanwhile are not failures. Everything is listed first: many deletions could make a storage drop the
 * list's version.
 */
export async function deleteObjects(
  context: ResourceContext,
  namespace: string | undefined,
  {
    list,
    limit = 0,
    ...terms
  }: DeleteTerms & {
    /** At most this many; 0: all. */
    readonly limit?: number;
    readonly list: (page: {
      limit: number;
      continue: string;
    }) => Promise<{ items: readonly KubernetesObject[]; continue?: string | undefined }>;
  },
): Promise<readonly KubernetesObject[]> {
  const found: { readonly place: NamespacedName; readonly uid: string | undefined }[] = [];
  let next = '';
  do {
    const page = await list({ limit: limit || PAGE, continue: next });
    for (const { metadata } of page.items) {
      found.push({ place: { namespace: namespace ?? metadata?.namespace, name: metadata?.name ?? '' }, uid: metadata?.uid });
    }
    next = page.continue ?? '';
  } while (next !== '' && limit === 0);
  const deleted: KubernetesObject[] = [];
  const pace = paceOf(terms.signal);
  for (const [at, { place, uid }] of found.entries()) {
    // A storage in memory answers in the same turn of the event loop.
    const pause = at % STRIDE === STRIDE - 1 ? pace.pause() : undefined;
    if (pause) await pause;
    terms.signal?.throwIfAborted();
    const { uid: wanted = uid, resourceVersion } = terms.preconditions ?? {};
    try {
      deleted.push((await deleteObject(context, place, { ...terms, preconditions: { uid: wanted, resourceVersion } })).object);
    } catch (error) {
      const isGone = hasCode(error, 404) || (hasCode(error, 409) && terms.preconditions === undefined);
      if (!isGone) throw error;
    }
  }
  return deleted;
}

/** It has finalizers. */
class HasFinalizers extends Error {}
/** It no longer has any. */
class FinalizersGone extends Error {}
/** A dry run has shown that it could be deleted. */
class DryRunDone extends Error {
  readonly object: KubernetesObject;

  constructor(object: KubernetesObject) {
    super('dry run');
    this.object = object;
  }
}
