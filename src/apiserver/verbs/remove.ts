/**
 * Deletion. An object with finalizers is not deleted at once: it gets a deletion time, and goes with its last finalizer. What
 * should happen to its dependents is also a finalizer, which the garbage collector removes once it has happened. An object whose
 * kind knows graceful deletion is told to end first: grace.ts.
 *
 *     there --delete, no finalizers-------------------------------------> gone
 *       '----delete, finalizers---> waiting --last one removed (update)-----^
 */
import { type KubernetesObject, versionOf } from '../../cache/object.ts';
import type { DeleteOptions, NamespacedName } from '../../cache/resource-client.ts';
import { paceOf } from '../../watch/fair-queue.ts';
import { conflict, hasCode, MODIFIED, notFound, translated } from '../api-status.ts';
import { type ResourceContext, storageKey, timestamp } from '../resource-info.ts';
import { endingOf, graceOf, isDone } from './grace.ts';
import { withMeta } from './metadata.ts';
import { presented } from './read.ts';

/** What the object must be like. */
interface Preconditions {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
  /** The server's own condition. */
  readonly holds?: ((current: KubernetesObject) => boolean) | undefined;
}

/** Options of a deletion. */
export interface DeleteTerms {
  readonly preconditions?: Preconditions | undefined;
  /** What happens to the object's dependents. Default: as its finalizers say, or in the background. */
  readonly propagation?: DeleteOptions['propagation'];
  /** How long the object has to end, if its kind needs time for it. Default: as the object says. Hooks and webhooks are told. */
  readonly gracePeriodSeconds?: number | undefined;
  readonly dryRun: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Whether a collection is deleted: webhooks are told the options as they are sent, and no name. */
  readonly isOfMany?: boolean | undefined;
}

/** The finalizers that say what happens to dependents. Upstream: `FinalizerOrphanDependents`, `FinalizerDeleteDependents`. */
export const ORPHAN = 'orphan';
export const FOREGROUND = 'foregroundDeletion';
const OF_PROPAGATION = { Orphan: [ORPHAN], Foreground: [FOREGROUND], Background: [] } as const;

/** Kubernetes' own kinds whose dependents stay unless a deletion says otherwise. Upstream: `DefaultGarbageCollectionPolicy`. */
const ORPHANING: readonly string[] = ['jobs.batch', 'replicationcontrollers'];

const isOrphaning = ({ resourceName, shape }: ResourceContext['info']): boolean =>
  shape !== undefined && ORPHANING.includes(resourceName);

/** What a client is told who may not expect what happens to dependents. Upstream: `deleteOptionWarnings`. */
export function deletionWarning(
  { info, collected }: ResourceContext,
  { propagation }: Pick<DeleteTerms, 'propagation'>,
): string | undefined {
  if (!collected || propagation !== undefined || info.plural !== 'jobs' || !isOrphaning(info)) return undefined;
  return 'child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning';
}

/** The finalizers with which an object's deletion begins. Upstream: `deletionFinalizersForGarbageCollection`. */
function finalizersOf(context: ResourceContext, { metadata }: KubernetesObject, terms: DeleteTerms): readonly string[] {
  const { finalizers = [] } = metadata ?? {};
  const isDecided = finalizers.some((each) => each === ORPHAN || each === FOREGROUND);
  const propagation = terms.propagation ?? (!isDecided && isOrphaning(context.info) ? 'Orphan' : undefined);
  if (!context.collected || propagation === undefined) return finalizers;
  const own: readonly string[] = OF_PROPAGATION[propagation];
  const others = finalizers.filter((each) => each !== ORPHAN && each !== FOREGROUND);
  // Keep the object's order unless something changes.
  return own.every((each) => finalizers.includes(each)) && others.length + own.length === finalizers.length
    ? finalizers
    : [...others, ...own];
}

/** The result of a deletion: the object's last content, and whether it is gone. */
interface Deleted {
  readonly object: KubernetesObject;
  readonly gone: boolean;
}

const MAX_ATTEMPTS = 100;

/** Deletes an object, or marks it as waiting for its finalizers, or as ending. */
export async function deleteObject(context: ResourceContext, place: NamespacedName, terms: DeleteTerms): Promise<Deleted> {
  const { info, storage } = context;
  const key = storageKey(place);
  const { dryRun, signal } = terms;
  let { preconditions, gracePeriodSeconds } = terms;
  let emptied: KubernetesObject | undefined;
  // An object that was emptied has already been admitted.
  const admit = (oldObject: KubernetesObject): Promise<void> | undefined => {
    if (emptied) return undefined;
    if (!terms.isOfMany) gracePeriodSeconds = graceOf(context, oldObject, gracePeriodSeconds);
    const about = { ...terms, gracePeriodSeconds, operation: 'DELETE', place, oldObject: presented(info, oldObject) } as const;
    return context.admission?.validate(undefined, about);
  };
  const validate = (current: KubernetesObject): void | Promise<void> => {
    // Another object with this name has not been emptied, and is not the one to delete.
    if (emptied && current.metadata?.uid !== emptied.metadata?.uid) throw notFound(info, place.name);
    checkPreconditions(context, current, preconditions);
    if (isHeld(context, current, terms)) throw new Held();
    const admitted = admit(current);
    if (admitted && dryRun) return admitted.then(() => Promise.reject(new DryRunDone(current)));
    if (dryRun) throw new DryRunDone(current);
    return admitted;
  };
  let marked: KubernetesObject | undefined;
  for (let attempt = 1; ; attempt++) {
    try {
      if (context.empty) {
        const found = await storage.get(key, { signal });
        if (found === undefined) throw notFound(info, place.name);
        checkPreconditions(context, found, preconditions);
        await admit(found);
        emptied = found;
        const asked = preconditions;
        const check = (current: KubernetesObject): void => checkPreconditions(context, current, asked);
        // Emptying first marks the object, which changes its version.
        if (!dryRun) preconditions = { uid: emptied.metadata?.uid };
        const isEmpty = await context.empty(emptied, { dryRun, signal, check });
        if (dryRun && context.tried)
          return { object: context.tried(withMeta(found, { finalizers: finalizersOf(context, found, terms) })), gone: false };
        const left = isEmpty ? undefined : await storage.get(key, { signal });
        if (left !== undefined) return { object: left, gone: false };
      }
      const object = await storage.delete(key, { validate, signal });
      context.removed(place.namespace);
      return { object, gone: true };
    } catch (error) {
      if (error instanceof DryRunDone) return { object: error.object, gone: true };
      // Its kubelet has been faster.
      if (marked && hasCode(error, 404)) return { object: marked, gone: true };
      if (!(error instanceof Held)) throw translated(error, info, place.name);
    }
    marked = await mark(context, key, { ...terms, preconditions, admit }).catch((error: unknown) => {
      // What held it has gone in the meantime.
      if (!(error instanceof Unheld)) throw translated(error, info, place.name);
      if (attempt === MAX_ATTEMPTS) throw conflict(info, place.name, MODIFIED);
      return undefined;
    });
    if (marked === undefined) continue;
    const gone = isDone(marked);
    if (dryRun || !gone) return { object: marked, gone };
    if (preconditions?.resourceVersion !== undefined) preconditions = { ...preconditions, resourceVersion: versionOf(marked) };
  }
}

/** Marks an object as being deleted. Without finalizers and grace, it can go then. */
async function mark(
  context: ResourceContext,
  key: string,
  terms: DeleteTerms & { readonly admit: (current: KubernetesObject) => Promise<void> | undefined },
): Promise<KubernetesObject> {
  const { storage, now } = context;
  const admitted = (current: KubernetesObject): KubernetesObject | Promise<KubernetesObject> => {
    checkPreconditions(context, current, terms.preconditions);
    if (!isHeld(context, current, terms)) throw new Unheld();
    const ending = endingOf(context, current, terms.gracePeriodSeconds);
    // Upstream, nobody is asked then.
    if (ending === 'pending') return current;
    const change = (): KubernetesObject => {
      const finalizers = finalizersOf(context, current, terms);
      if (ending !== 'now') return withMeta(current, { finalizers, ...ending });
      if (current.metadata?.deletionTimestamp !== undefined) return withMeta(current, { finalizers });
      if (context.marked) return context.marked(withMeta(current, { finalizers }));
      const generation = current.metadata?.generation;
      return withMeta(current, {
        finalizers,
        deletionTimestamp: timestamp(now()),
        deletionGracePeriodSeconds: 0,
        generation: generation === undefined ? undefined : generation + 1,
      });
    };
    return terms.admit(current)?.then(change) ?? change();
  };
  if (!terms.dryRun) return storage.update(key, admitted, { signal: terms.signal, ttlSeconds: context.ttlSeconds });
  const current = await storage.get(key, { signal: terms.signal });
  if (current === undefined) throw new Unheld();
  return admitted(current);
}

/** Throws 409. Upstream: `BeforeDelete`; for a kind whose objects have contents, its own `Delete`, in other words. */
export function checkPreconditions(
  { info, empty }: ResourceContext,
  current: KubernetesObject,
  preconditions: DeleteTerms['preconditions'],
): void {
  const { metadata } = current;
  for (const [member, label, done] of [
    ['uid', 'UID', 'deleted and then recreated'],
    ['resourceVersion', 'ResourceVersion', 'modified'],
  ] as const) {
    const [asked, own] = [preconditions?.[member], metadata?.[member]];
    if (asked === undefined || asked === own) continue;
    const wanted = asked.slice(0, 100);
    const why = empty
      ? `Precondition failed: ${label} in precondition: ${wanted}, ${label} in object meta: ${own}`
      : `the ${label} in the precondition (${wanted}) does not match the ${label} in record (${own}). The object might have been ${done}`;
    const about = empty ? info : { ...info, plural: info.kind, resourceName: info.kindName };
    throw conflict(about, metadata?.name ?? '', why);
  }
  if (preconditions?.holds?.(current) === false) throw conflict(info, metadata?.name ?? '', MODIFIED);
}

/** Whether an object must be marked before it can be deleted, or waits for its finalizers, or for its end. */
const isHeld = (context: ResourceContext, object: KubernetesObject, terms: DeleteTerms): boolean =>
  finalizersOf(context, object, terms).length > 0 ||
  endingOf(context, object, terms.gracePeriodSeconds) !== 'now' ||
  (context.marked !== undefined && object.metadata?.deletionTimestamp === undefined);

/** How many deletions there are between two looks at the clock. */
const STRIDE = 16;
/** The number of objects that a page of a collection's deletion reads. */
const PAGE = 500;

/**
 * Deletes the objects that a list selects, one after the other, but none that has replaced one since. Returns them as they were
 * listed. Objects that others delete in the meantime are not failures. Everything is listed first, as many deletions could make a
 * storage drop the list's version. Upstream: `Store.DeleteCollection`.
 */
export async function deleteObjects<T extends KubernetesObject>(
  context: ResourceContext,
  namespace: string | undefined,
  {
    list,
    limit = 0,
    ...terms
  }: DeleteTerms & {
    /** At most this many; 0: all. */
    readonly limit?: number;
    readonly list: (page: { limit: number; continue: string }) => Promise<{ items: readonly T[]; continue?: string | undefined }>;
  },
): Promise<readonly T[]> {
  const found: T[] = [];
  let next = '';
  do {
    const page = await list({ limit: limit || PAGE, continue: next });
    for (const each of page.items) found.push(each);
    next = page.continue ?? '';
  } while (next !== '' && limit === 0);
  const deleted: T[] = [];
  const pace = paceOf(terms.signal);
  for (const [at, each] of found.entries()) {
    const { metadata } = each;
    // A storage in memory answers in the same turn of the event loop.
    const pause = at % STRIDE === STRIDE - 1 ? pace.pause() : undefined;
    if (pause) await pause;
    terms.signal?.throwIfAborted();
    const place = { namespace: namespace ?? metadata?.namespace, name: metadata?.name ?? '' };
    // Not a precondition of the client, which webhooks are told.
    const isListed = (current: KubernetesObject): boolean => [undefined, current.metadata?.uid].includes(metadata?.uid);
    try {
      const preconditions = { ...terms.preconditions, holds: isListed };
      await deleteObject(context, place, { ...terms, isOfMany: true, preconditions });
      deleted.push(each);
    } catch (error) {
      const isGone = hasCode(error, 404) || (hasCode(error, 409) && terms.preconditions === undefined);
      if (!isGone) throw error;
    }
  }
  return deleted;
}

class Held extends Error {}
/** It no longer is. */
class Unheld extends Error {}
/** A dry run has shown that it could be deleted. */
class DryRunDone extends Error {
  readonly object: KubernetesObject;

  constructor(object: KubernetesObject) {
    super('dry run');
    this.object = object;
  }
}
