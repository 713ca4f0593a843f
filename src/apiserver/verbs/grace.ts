/**
 * Graceful deletion: an object of some kinds, such as a Pod that has a node, is told to end, and goes when whoever runs it says so.
 *
 *     there --delete--> ending: in 30 s, grace 30 --delete, grace 0--> ending now, grace 0 ---> gone, if no finalizer holds it
 *                          |  '--delete, grace 5--> ending: 25 s earlier, grace 5
 *                          '--delete, without grace or with a longer one--> unchanged
 *
 * The end of the time removes nothing: only a deletion without grace does. Which kinds have grace, and how much, is in their shapes.
 * Upstream: `rest.BeforeDelete`, and `RESTGracefulDeleteStrategy`.
 */
import type { KubernetesObject, ObjectMeta } from '../../cache/object.ts';
import { shapeOf } from '../kinds/tables.ts';
import { type ResourceContext, timestamp } from '../resource-info.ts';

/** What a deletion changes in the metadata of an object that is told to end. */
interface Ending {
  readonly deletionTimestamp: string;
  readonly deletionGracePeriodSeconds: number;
  readonly generation?: number | undefined;
}

/** The last time that has four digits for its year. */
const MAX_MS = Date.UTC(9999, 11, 31, 23, 59, 59);

type Meta = ObjectMeta & { readonly deletionGracePeriodSeconds?: number | null };

const metaOf = ({ metadata }: KubernetesObject): Meta => (metadata ?? {}) as Meta;

/** The grace with which an object is deleted, as hooks and webhooks hear it. Less than nothing is a second. */
export function graceOf({ info }: ResourceContext, object: KubernetesObject, asked: number | undefined): number | undefined {
  const least = asked !== undefined && asked < 0 ? 1 : asked;
  const own = shapeOf(info)?.graceOf;
  return own && metaOf(object).deletionTimestamp === undefined ? own({ ...object }, least) : least;
}

/**
 * What a deletion does to an object: `now`, it goes, unless finalizers hold it; `pending`, nothing, as it is ending already, and not
 * later than asked. Otherwise what it changes first; if no grace is left then, the object goes.
 */
export function endingOf(
  context: ResourceContext,
  object: KubernetesObject,
  given: number | undefined,
): Ending | 'now' | 'pending' {
  if (shapeOf(context.info)?.graceOf === undefined) return 'now';
  const { deletionTimestamp, deletionGracePeriodSeconds, generation } = metaOf(object);
  const now = context.now();
  const asked = graceOf(context, object, given);
  if (deletionTimestamp === undefined) {
    const seconds = asked ?? 0;
    return {
      ...endingAt(now + seconds * 1_000, seconds),
      generation: generation === undefined ? undefined : generation + 1,
    };
  }
  const left = deletionGracePeriodSeconds ?? 0;
  // A server has ended between the two steps of a deletion without grace.
  if (left <= 0) return 'now';
  if (asked === undefined || asked >= left) return 'pending';
  const at = Date.parse(String(deletionTimestamp)) - (left - asked) * 1_000;
  if (at >= now) return endingAt(at, asked);
  // It is late, but its kubelet still has to say that it has ended.
  return endingAt(now, asked === 0 ? 0 : 1);
}

const endingAt = (ms: number, seconds: number): Ending => ({
  deletionTimestamp: timestamp(Math.min(ms, MAX_MS)),
  deletionGracePeriodSeconds: seconds,
});

/** Whether an object is being deleted, and nothing holds it any more: neither finalizers nor its grace. */
export function isDone(object: KubernetesObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds, finalizers = [] } = metaOf(object);
  return deletionTimestamp !== undefined && finalizers.length === 0 && (deletionGracePeriodSeconds ?? 0) <= 0;
}
