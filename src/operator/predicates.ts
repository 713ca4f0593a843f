/**
 * Which changes are worth a reconcile, for `when` of an operator's sources.
 *
 *     { kind: DEPLOYMENTS, when: anyOf(generationChanged, labelsChanged) }
 *
 * | | ADDED | MODIFIED | a resync: the same object twice | DELETED |
 * |---|---|---|---|---|
 * | `...Changed` | yes | if that changed | no | yes |
 * | `deletionStarted` | if it is being deleted | if it was not, and now is | no | yes |
 *
 * Upstream: controller-runtime's `predicate`, which also passes ADDED and DELETED: an object may have changed while the
 * controller did not see it.
 */
import { metadataOf } from '../cache/object.ts';
import { verdictOf } from '../watch/abort.ts';
import { callable } from '../watch/errors.ts';
import { equals } from './equals.ts';
import type { ChangeType, When } from './operator-options.ts';

/** A predicate for objects of any kind; the predicates beside it determine the type. */
export type AnyWhen = <T extends object>(old: T | undefined, object: T | undefined, event: ChangeType) => boolean;

/** Compares a part of both states; events with only one state pass. */
function changed(partOf: (object: object) => unknown): AnyWhen {
  return (old, object) => old === undefined || object === undefined || !equals(partOf(old), partOf(object));
}

/**
 * The generation changed. The server increments it when the spec changes and when a deletion starts, but not for status and
 * metadata; of a kind without the subresource `status`, for the status, too. Kinds without a generation, such as ConfigMaps, never
 * pass as MODIFIED. Upstream: `GenerationChangedPredicate`.
 */
export const generationChanged: AnyWhen = changed((object) => metadataOf(object).generation);

/** The labels changed. Upstream: `LabelChangedPredicate`. */
export const labelsChanged: AnyWhen = changed((object) => metadataOf(object).labels ?? {});

/** The annotations changed. Upstream: `AnnotationChangedPredicate`. */
export const annotationsChanged: AnyWhen = changed((object) => metadataOf(object).annotations ?? {});

/** The status changed, as {@link equals} compares. */
export const statusChanged: AnyWhen = changed((object) => (object as { readonly status?: unknown }).status);

/**
 * The object is being deleted, and was not before. One that is seen for the first time counts if it is being deleted. DELETED
 * passes: without a finalizer, an object goes without being seen in deletion.
 */
export const deletionStarted: AnyWhen = (old, object) => object === undefined || (isDeleting(object) && !isDeleting(old));

/** Whether an object is being deleted: it goes when its finalizers and its grace period are done. */
export function isDeleting(object: object | undefined): boolean {
  return (metadataOf(object).deletionTimestamp ?? null) !== null;
}

/** The finalizers of the garbage collector: it gives up, or deletes, what the object owns, and then lets the object go. */
export const COLLECTORS: readonly string[] = ['orphan', 'foregroundDeletion'];

/** Whether an object is being deleted, and nobody but the garbage collector still holds it. */
export function isLeftToCollector(object: object | undefined): boolean {
  const { finalizers = [] } = metadataOf(object);
  return isDeleting(object) && finalizers.length > 0 && finalizers.every((each) => COLLECTORS.includes(each));
}

/** The result of a `when`, which cannot be async. */
export function answerOf<T extends object>(when: When<T>, ...change: Parameters<When<T>>): boolean {
  return verdictOf('when', when(...change));
}

/** All of them say yes. Upstream: `predicate.And`. */
export function allOf<T extends object>(...whens: readonly When<T>[]): When<T> {
  checkAll(whens);
  return (old, object, event) => whens.every((when) => answerOf(when, old, object, event));
}

/** One of them says yes. Upstream: `predicate.Or`. */
export function anyOf<T extends object>(...whens: readonly When<T>[]): When<T> {
  checkAll(whens);
  return (old, object, event) => whens.some((when) => answerOf(when, old, object, event));
}

/** The opposite, even for ADDED and DELETED if the other lets them pass. Upstream: `predicate.Not`. */
export function not<T extends object>(when: When<T>): When<T> {
  checkAll([when]);
  return (old, object, event) => !answerOf(when, old, object, event);
}

/** Throws INVALID_ARGUMENT now, and not at the first change. */
function checkAll(whens: readonly unknown[]): void {
  for (const when of whens) callable('when', when ?? null);
}
