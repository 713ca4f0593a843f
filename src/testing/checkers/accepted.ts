import { invalid } from '../../watch/errors.ts';
import { show } from './guarantees.ts';
import type { Step } from './history.ts';
import { RULES } from './policy-rules.ts';

/** An accepted event. `called` is the step of the call of `publish`, `at` the step of its answer. */
export interface Accepted<E> {
  readonly event: E;
  readonly id: unknown;
  readonly called: number;
  readonly at: number;
}

/**
 * Returns the accepted events in the order in which they were accepted. Throws INVALID_ARGUMENT if two have the same identity: no
 * checker could tell them apart, and each would blame the broadcaster.
 */
export function acceptedOf<E>(steps: readonly Step<E>[], idOf: (event: E) => unknown): Accepted<E>[] {
  const called = new Map<unknown, number>();
  const accepted: Accepted<E>[] = [];
  const ids = new Set<unknown>();
  const { got, gotLater } = witnesses(steps, idOf);
  steps.forEach((step, at) => {
    if (step.step === 'publish') called.set(idOf(step.event), at);
    if (step.step !== 'accepted') return;
    const id = idOf(step.event);
    if (ids.has(id)) throw invalid('idOf', show(id), 'an identity of its own for each accepted event');
    ids.add(id);
    const one = { event: step.event, id, called: called.get(id) ?? at, at };
    // Both publishes ran at the same time, one inside the other. Only watchers that received both can tell which came first.
    const behind = accepted.findIndex((other) => {
      if (other.at <= one.called) return false;
      // The inner publish was answered first. If nobody received its event, nothing proves that it was accepted first.
      return gotLater(other.id, id) || (other.called > one.called && got(id) && !got(other.id));
    });
    accepted.splice(behind < 0 ? accepted.length : behind, 0, one);
  });
  return accepted;
}

/** What the deliveries prove: whether any watcher received an event, and whether any received `a` after `b`. */
interface Witnesses {
  got(id: unknown): boolean;
  gotLater(a: unknown, b: unknown): boolean;
}

function witnesses<E>(steps: readonly Step<E>[], idOf: (event: E) => unknown): Witnesses {
  const folds = new Set(
    steps.flatMap((step) => (step.step === 'watch' && RULES[step.options.overflow].folds ? step.watcher : [])),
  );
  const reads = new Map<string, { read: number; events: readonly E[] }[]>();
  for (const step of steps) {
    if (step.step !== 'delivered' || folds.has(step.watcher)) continue;
    const own = reads.get(step.watcher) ?? [];
    reads.set(step.watcher, own);
    own.push(step);
  }
  const ranks = [...reads.values()].map((own) => {
    own.sort((one, other) => one.read - other.read);
    return new Map(own.flatMap(({ events }) => events).map((event, rank) => [idOf(event), rank]));
  });
  return {
    got: (id) => ranks.some((rank) => rank.has(id)),
    gotLater: (a, b) => ranks.some((rank) => (rank.get(a) ?? -1) > (rank.get(b) ?? Number.POSITIVE_INFINITY)),
  };
}
