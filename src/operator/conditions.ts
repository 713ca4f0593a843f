/** The conditions of an object: what a controller reports about it, and since when. Upstream: `api/meta`. */
import type { KubernetesObject } from '../cache/object.ts';
import { checkOptions, checkText, invalid, isRecord, oneOf } from '../watch/errors.ts';

/** Something that is true, false or unknown, and since when. Upstream: `metav1.Condition`. */
export interface Condition {
  /** Such as `Ready`. Unique within the object. */
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  /** Why, in one word, such as `MinimumReplicasAvailable`. */
  readonly reason: string;
  /** The same for people. Default empty. */
  readonly message?: string | undefined;
  /** The `metadata.generation` that was observed. */
  readonly observedGeneration?: number | undefined;
  /** Since when it has this status. Default: now. */
  readonly lastTransitionTime?: string | undefined;
}

/** An object that may have conditions, of this type or of one of its kind's own. */
export type WithConditions<C extends { readonly type: string; readonly status: string } = { type: string; status: string }> =
  KubernetesObject & { readonly status?: { readonly conditions?: readonly C[] | null | undefined } | null | undefined };

/** Options of {@link setCondition}. */
export interface ConditionOptions {
  /** The time of day, in milliseconds since 1970. Default `Date.now`; in `updateStatus` of a reconcile, its `now`. */
  readonly now?: (() => number) | undefined;
}

let timeOfDay = (): number => Date.now();

/** Does synchronous work with another time of day. */
export function atTimeOf<R>(now: () => number, work: () => R): R {
  const before = timeOfDay;
  timeOfDay = now;
  try {
    return work();
  } finally {
    timeOfDay = before;
  }
}

const STATES: readonly Condition['status'][] = ['True', 'False', 'Unknown'];

/** A condition as it is written here. */
type Written = { -readonly [K in keyof Condition]: unknown };
type Writing = { status?: { conditions?: Written[] | null } | null };

/**
 * Sets the condition of this type in `object.status.conditions`, which it creates if need be. Returns whether anything changed.
 *
 * `lastTransitionTime` changes only together with `status`: to that of the condition, otherwise to now, in whole seconds.
 * Everything else becomes what the condition says; what it leaves out becomes empty. Throws INVALID_ARGUMENT for an empty type, for
 * a status other than True, False and Unknown, and for a member that should be a string. A kind's schema may demand more, such as
 * a reason of one word.
 *
 *     setCondition(order, { type: 'Ready', status: 'True', reason: 'Paid', observedGeneration: order.metadata.generation });
 *
 * Upstream: `meta.SetStatusCondition`.
 */
export function setCondition(object: WithConditions, condition: Condition, options: ConditionOptions = {}): boolean {
  const { now = timeOfDay } = checkOptions(options, ['now']);
  if (!isRecord(condition)) throw invalid('condition', condition, 'a Condition');
  const { type, status, reason, message = '', observedGeneration = 0 } = condition;
  if (checkText('type', type) === '') throw invalid('type', type, 'a name such as Ready');
  oneOf('status', status, STATES);
  checkText('reason', reason);
  checkText('message', message);
  if (condition.lastTransitionTime !== undefined) checkText('lastTransitionTime', condition.lastTransitionTime);
  const holder = checked(object) as Writing;
  holder.status ??= {};
  holder.status.conditions ??= [];
  const { conditions } = holder.status;
  const since = (): string => condition.lastTransitionTime || `${new Date(now()).toISOString().slice(0, -5)}Z`;
  const known = conditions.find((each) => each.type === type);
  if (!known) {
    const generation = observedGeneration && { observedGeneration };
    conditions.push({ type, status, ...generation, lastTransitionTime: since(), reason, message });
    return true;
  }
  let changed = false;
  const set = (name: 'status' | 'reason' | 'message' | 'observedGeneration', value: unknown): void => {
    if ((known[name] || undefined) === (value || undefined)) return;
    changed = true;
    if (name === 'status') known.lastTransitionTime = since();
    if (value === 0) delete known[name];
    else known[name] = value;
  };
  set('status', status);
  set('reason', reason);
  set('message', message);
  set('observedGeneration', observedGeneration);
  return changed;
}

/** Throws INVALID_ARGUMENT for anything but an object. */
function checked<O extends WithConditions>(object: O): O {
  if (!isRecord(object)) throw invalid('object', object, 'an object');
  return object;
}

/** The condition of this type; undefined if there is none. Upstream: `meta.FindStatusCondition`. */
export function findCondition<C extends { readonly type: string; readonly status: string }>(
  object: WithConditions<C>,
  type: string,
): C | undefined {
  return checked(object).status?.conditions?.find((each) => each.type === type);
}

/** Whether there is a condition of this type with status `True`. Upstream: `meta.IsStatusConditionTrue`. */
export function isConditionTrue(object: WithConditions, type: string): boolean {
  return findCondition(object, type)?.status === 'True';
}

/** Removes the condition of this type. Returns whether there was one. Upstream: `meta.RemoveStatusCondition`. */
export function removeCondition(object: WithConditions, type: string): boolean {
  const { status } = checked(object) as Writing;
  const kept = status?.conditions?.filter((each) => each.type !== type);
  if (!status || !kept || kept.length === status.conditions?.length) return false;
  status.conditions = kept;
  return true;
}
