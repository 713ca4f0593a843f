/**
 * Finalizers keep an object that is being deleted until their owners have removed them. A lost finalizer is a leak, and a lost
 * removal an object that is never deleted; so they are written by a patch that states the previous list:
 *
 *     [{ test: uid }, { test: the finalizers that were seen }, { write: the new ones }]
 *                        '---> 422 without causes: another changed them; read again
 *
 * Unlike a patch with the version, it does not fail when something else has changed, such as the status. Upstream:
 * `controllerutil.AddFinalizer` and `RemoveFinalizer`, which leave the write to the caller.
 */
import { metadataOf } from '../cache/object.ts';
import type { ResourceClient } from '../cache/resource-client.ts';
import { checkOptions, checkText, type WatchError } from '../watch/errors.ts';
import { isDeleting } from './predicates.ts';
import { isConflict, isInvalid, isNotFound } from './refusals.ts';
import { attempting, HELPER_OPTIONS, type HelperOptions, keyIn, readAgain } from './writes.ts';

/** The object no longer exists, or another one has its name. */
interface Gone {
  readonly result: 'gone';
  readonly object: undefined;
}

/** What {@link ensureFinalizer} did. `deleting`: the object is being deleted, and servers then accept no more finalizers. */
export type EnsureFinalizerResult<T> = Gone | { readonly result: 'added' | 'unchanged' | 'deleting'; readonly object: T };

/** What {@link removeFinalizer} did. */
export type RemoveFinalizerResult<T> = Gone | { readonly result: 'removed' | 'unchanged'; readonly object: T };

/**
 * Adds a finalizer to an object that does not have it. `object` is the last known state, such as that of a cache. Resolves with what
 * was done, and with the newest object; `unchanged` without a request.
 */
export async function ensureFinalizer<T extends object>(
  resource: ResourceClient<T>,
  object: T,
  name: string,
  options: HelperOptions = {},
): Promise<EnsureFinalizerResult<T>> {
  return await rewritten(resource, object, options, (current) => {
    const finalizers = finalizersOf(current);
    if (finalizers.includes(checkText('name', name))) return { result: 'unchanged', object: current };
    if (isDeleting(current)) return { result: 'deleting', object: current };
    return { finalizers: [...finalizers, name], result: 'added' };
  });
}

/**
 * Removes a finalizer from an object that has it. If it was the last one, and the object is being deleted, the object is then
 * gone; `object` of the result is its last state. It is not a failure if the object is gone already.
 */
export async function removeFinalizer<T extends object>(
  resource: ResourceClient<T>,
  object: T,
  name: string,
  options: HelperOptions = {},
): Promise<RemoveFinalizerResult<T>> {
  return await rewritten(resource, object, options, (current) => {
    const finalizers = finalizersOf(current);
    checkText('name', name);
    const others = finalizers.filter((each) => each !== name);
    if (others.length === finalizers.length) return { result: 'unchanged', object: current };
    return { finalizers: others, result: 'removed' };
  });
}

type Step<T, R> = { readonly result: R; readonly object: T } | { readonly result: R; readonly finalizers: readonly string[] };

async function rewritten<T extends object, R>(
  resource: ResourceClient<T>,
  object: T,
  options: HelperOptions,
  step: (current: T) => Step<T, R>,
): Promise<Gone | { readonly result: R; readonly object: T }> {
  checkOptions(options, HELPER_OPTIONS);
  let refusal: unknown;
  return await attempting<Gone | { readonly result: R; readonly object: T }>(options, async (attempt) => {
    const current = attempt === 1 ? object : await readAgain(resource, object, options);
    if (!current) return { done: GONE };
    const next = step(current);
    if ('object' in next) return { done: next };
    if (refusal !== undefined) throw refusal;
    const [key, patch] = [keyIn(resource, current), toPatch(current, next.finalizers)];
    const write = async () => ({ result: next.result, object: await resource.patch(key, patch, { ...options, type: 'json' }) });
    const isRaced = (error: unknown): boolean => {
      // With causes, the patch applied but its result broke a rule: temporarily, because the object is now being deleted, or
      // permanently.
      if (isInvalid(error) && (error as WatchError).status?.details?.causes?.length) refusal = error;
      return isConflict(error) || isInvalid(error) || isNotFound(error);
    };
    return { write, isRaced };
  });
}

const GONE: Gone = { result: 'gone', object: undefined };

function toPatch(object: object, finalizers: readonly string[]): readonly object[] {
  const { uid, finalizers: seen } = metadataOf(object);
  const path = '/metadata/finalizers';
  return [
    ...(uid ? [{ op: 'test', path: '/metadata/uid', value: uid }] : []),
    { op: 'test', path, value: seen?.length ? seen : null }, // null: there are none
    finalizers.length ? { op: 'add', path, value: finalizers } : { op: 'remove', path },
  ];
}

const finalizersOf = (object: object): readonly string[] => metadataOf(object).finalizers ?? [];
