import { type Digest, digest, type Run } from './digest.ts';
import { type Violation, violation } from './guarantees.ts';
import type { History } from './history.ts';
import { RULES } from './policy-rules.ts';

const NEVER = Number.POSITIVE_INFINITY;

/**
 * **Isolated**: a stalled, throwing or stopped watcher changes nothing for the others; only `wait`, by design, holds them back.
 */
export function checkIsolated<E>(history: History<E>): Violation | undefined {
  const known = digest(history);
  for (const { name: watcher, ends, stopped, cut, broken } of known.runs) {
    const end = ends[0];
    if (end?.failed && !broken) {
      return violation('Isolated', { watcher, expected: 'it to fail only by its own code', seen: 'an error of someone else' });
    }
    const own = Math.min(stopped, known.shutdown, cut?.asked ?? NEVER);
    if (end !== undefined && !end.failed && !broken && own > end.at) {
      return violation('Isolated', { watcher, expected: 'it to end only by itself or by shutdown', seen: 'its end' });
    }
  }
  return publisherHeldUp(history, known);
}

function publisherHeldUp<E>({ steps }: History<E>, { runs, shutdown }: Digest<E>): Violation | undefined {
  const called = new Map<unknown, number>();
  for (const [at, step] of steps.entries()) {
    if (step.step === 'publish') called.set(step.event, at);
    if (step.step !== 'refused') continue;
    const { event, code } = step;
    const asked = called.get(event) ?? at;
    if (code !== 'FULL' && code !== 'OVERLOADED' && code !== 'CLOSED') {
      return violation('Isolated', { event, expected: 'a publisher that hears of no watcher', seen: code });
    }
    if (code !== 'CLOSED' && shutdown > asked && !runs.some((run) => mayHold(run, asked))) {
      return violation('Isolated', { event, expected: 'it accepted, as nobody has the policy wait', seen: code });
    }
  }
  return undefined;
}

/** Whether a watcher may hold up publishers at that step. */
function mayHold<E>({ options, joined, over, ends }: Run<E>, at: number): boolean {
  return RULES[options.overflow].waits && joined < at && Math.min(over, ends[0]?.at ?? NEVER) >= at;
}

/** **Drained**: `shutdown` delivers every accepted event, then ends every watch. */
export function checkDrained<E>(history: History<E>): Violation | undefined {
  const { runs, accepted, shutdown, closed, gaveUp } = digest(history);
  const late = accepted.find(({ called }) => called > shutdown);
  if (late !== undefined) {
    return violation('Drained', { event: late.event, expected: 'it refused after shutdown', seen: 'it accepted' });
  }
  for (const run of runs) {
    const { name: watcher, ends, given, owed } = run;
    const after = given.find(({ asked }) => asked > (ends.find(({ failed }) => !failed)?.at ?? NEVER));
    if (after !== undefined) {
      return violation('Drained', { watcher, event: after.event, expected: 'nothing after the end', seen: 'this event' });
    }
    if (!RULES[run.options.overflow].waits || shutdown === NEVER || gaveUp < closed || run.stopped < NEVER || run.broken)
      continue;
    const counts = run.counts.findLast(({ at }) => at > closed);
    const here = given.length + (ends.length > 0 ? 0 : (counts?.queued ?? NEVER));
    const all = owed.filter(({ doubtful }) => !doubtful).length;
    if (here < all) {
      const seen = `${given.length} delivered, ${counts?.queued ?? 0} queued`;
      return violation('Drained', { watcher, expected: `all ${all} accepted events`, seen });
    }
  }
  return undefined;
}

/** **Settled**: after a watch ends, in whatever way, no promise stays pending, no timer runs and no listener stays registered. */
export function checkSettled<E>(history: History<E>): Violation | undefined {
  const { runs, shutdown, closed, gaveUp } = digest(history);
  const over = Math.min(closed, gaveUp);
  for (const { name: watcher, stopped, ends, cut, waiting } of runs) {
    const ended = Math.min(stopped, over, ends[0]?.at ?? NEVER, cut?.seen ?? NEVER);
    if (ended < NEVER && waiting > 0) {
      return violation('Settled', { watcher, expected: 'no read that pends after the end', seen: `${waiting}` });
    }
  }
  const holds = runs.some((run) => mayHold(run, NEVER));
  if (shutdown < NEVER && over === NEVER && !holds) {
    return violation('Settled', { expected: 'a shutdown that resolves, as nobody holds it up', seen: 'it pends' });
  }
  return over < NEVER || !holds ? leftBehind(history) : undefined;
}

function leftBehind<E>({ steps }: History<E>): Violation | undefined {
  const pending = new Set<unknown>();
  for (const step of steps) {
    if (step.step === 'publish') pending.add(step.event);
    if (step.step === 'accepted' || step.step === 'refused') pending.delete(step.event);
    if (step.step === 'leftovers' && step.timers + step.listeners > 0) {
      const seen = `${step.timers} timers, ${step.listeners} listeners`;
      return violation('Settled', { expected: 'no timer and no listener left', seen });
    }
  }
  const [event] = pending;
  if (pending.size === 0) return undefined;
  return violation('Settled', { event, expected: 'no publish that pends', seen: `${pending.size}` });
}
