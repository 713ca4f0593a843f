/**
 * Evictions: deletions of Pods that their disruption budgets allow.
 *
 *     Pending, or at its end, or without a budget ---------------------------> told why it goes (a condition), deleted
 *     not ready, and its budget is met, or does not care --------------------> the same, if it is still so
 *     a budget that allows a disruption ---> one less, and the Pod's name ---> the same
 *     any other --> 429, as for one that its controller has not seen yet
 *
 * A budget to which no controller has ever given a status is not asked: nothing would ever meet it. Upstream: `EvictionREST`.
 */
import { type KubernetesObject, versionOf } from '../../cache/object.ts';
import type { NamespacedName } from '../../cache/resource-client.ts';
import { LabelSelector } from '../../selectors/label-selector.ts';
import { refused } from '../../storage/statuses.ts';
import { unasked } from '../admission.ts';
import { hasCode } from '../api-status.ts';
import type { Json } from '../request/json.ts';
import { type ResourceContext, storageKey, timestamp } from '../resource-info.ts';
import type { Subresource } from '../subresources.ts';
import type { Writer } from './managed-fields.ts';
import { checkPreconditions, type DeleteTerms, deleteObject } from './remove.ts';
import { updateObject } from './write.ts';

interface Budget extends KubernetesObject {
  readonly spec?: { readonly selector?: object; readonly unhealthyPodEvictionPolicy?: string };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly disruptionsAllowed?: number;
    readonly currentHealthy?: number;
    readonly desiredHealthy?: number;
    readonly disruptedPods?: Readonly<Record<string, string>>;
  };
}

interface Pod extends KubernetesObject {
  readonly status?: { readonly phase?: string; readonly conditions?: readonly Json[] };
}

/** What is written at which path, by whom, and how the Pod is deleted. */
interface EvictTerms extends DeleteTerms {
  readonly sent: object;
  readonly row: Subresource;
  readonly writer: Writer | undefined;
}

/** The most Pods that a budget's controller has not yet seen go. Upstream: `MaxDisruptedPodSize`. */
const MAX_DISRUPTED = 2_000;
const PROCESSING = 'is still being processed by the server.';
const CANNOT = "Cannot evict pod as it would violate the pod's disruption budget.";
const SEVERAL = 'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.';
const UNGUARDED: readonly unknown[] = ['Succeeded', 'Failed', 'Pending'];

export async function evictObject(context: ResourceContext, place: NamespacedName, terms: EvictTerms): Promise<void> {
  const { dryRun, signal, row, writer, sent } = terms;
  const pod = (await context.storage.get(storageKey(place), { signal })) as Pod | undefined;
  if (pod) checkPreconditions(context, pod, terms.preconditions);
  const state = pod && (await stateToKeep(context, pod, terms));
  const preconditions = state ? { ...terms.preconditions, resourceVersion: state } : terms.preconditions;
  const make = (current: KubernetesObject): object => {
    checkPreconditions(context, current, preconditions);
    return sent;
  };
  try {
    const told = await updateObject(context, { dryRun, writer, signal, place, row, make });
    const { uid } = told.metadata ?? {};
    const version = preconditions?.resourceVersion && { resourceVersion: versionOf(told) };
    // The eviction has been admitted.
    await deleteObject(unasked(context), place, { ...terms, preconditions: { uid, ...version } });
  } catch (error) {
    // It may be ready by now.
    throw state && hasCode(error, 409) && terms.preconditions?.resourceVersion === undefined
      ? tooMany(`The disruption budget ${PROCESSING}`, 10)
      : error;
  }
}

/** Asks the budget of a Pod, and rejects if it must stay. Resolves to the Pod's version if it may go only as it is now. */
async function stateToKeep(context: ResourceContext, pod: Pod, { dryRun, signal }: EvictTerms): Promise<string | undefined> {
  const { namespace, name } = pod.metadata as NamespacedName;
  const { metadata: { labels = {}, deletionTimestamp } = {}, status = {} } = pod;
  const own = context.related('policy/v1', 'poddisruptionbudgets');
  if (own === undefined || deletionTimestamp !== undefined || UNGUARDED.includes(status.phase)) return undefined;
  const { items } = await own.storage.scope(`${namespace}/`).list({ signal });
  const budgets = (items as readonly Budget[]).filter(
    (each) =>
      each.status?.observedGeneration !== undefined &&
      each.spec?.selector !== undefined &&
      LabelSelector.fromObject(each.spec.selector).matches(labels),
  );
  const [budget, another] = budgets;
  if (another) throw refused(500, 'InternalError', SEVERAL);
  if (budget === undefined) return undefined;
  const isReady = status.conditions?.some((each) => each.type === 'Ready' && each.status === 'True') === true;
  const { currentHealthy = 0, desiredHealthy = 0 } = budget.status ?? {};
  const { unhealthyPodEvictionPolicy: unhealthy } = budget.spec ?? {};
  const isMet = currentHealthy >= desiredHealthy && desiredHealthy > 0;
  if (!isReady && (isMet || unhealthy === 'AlwaysAllow')) return versionOf(pod);
  const change = (current: KubernetesObject): KubernetesObject => disrupted(current, name, timestamp(context.now()));
  if (dryRun) change(budget);
  else await own.storage.update(storageKey(budget.metadata as NamespacedName), change, { signal });
  return undefined;
}

/** Without a time to wait, clients in Go do not try again by themselves. */
function tooMany(message: string, retryAfterSeconds?: number): Error {
  const causes = [{ reason: 'DisruptionBudget', message }];
  return refused(429, 'TooManyRequests', CANNOT, { ...(retryAfterSeconds && { retryAfterSeconds }), causes });
}

/** A budget with one disruption less. Upstream: `checkAndDecrement`. */
function disrupted(budget: Budget, pod: string, now: string): KubernetesObject {
  const { name, generation = 0 } = budget.metadata ?? {};
  const { observedGeneration = 0, disruptionsAllowed = 0, disruptedPods = {}, ...rest } = budget.status ?? {};
  if (observedGeneration < generation) throw tooMany(`The disruption budget ${name} ${PROCESSING}`, 10);
  if (Object.keys(disruptedPods).length > MAX_DISRUPTED)
    throw tooMany(`The disruption budget ${name} has too many pending evictions`);
  const { desiredHealthy = 0, currentHealthy = 0 } = rest;
  const needs = `needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`;
  if (disruptionsAllowed < 1) throw tooMany(`The disruption budget ${name} ${needs}`);
  return {
    ...budget,
    status: {
      ...{ ...rest, observedGeneration, disruptionsAllowed: disruptionsAllowed - 1 },
      disruptedPods: { ...disruptedPods, [pod]: now },
    },
  } as KubernetesObject;
}
