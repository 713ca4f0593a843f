import type { WatchEvent } from '../../watch/event.ts';
import { checkExact } from './check-exact.ts';
import { type Digest, type Due, digest, lostOf, type ReceivedEvent, type Run, takenAt } from './digest.ts';
import { type CacheGuaranteeName, type GuaranteeName, type History, RULES, show, type Violation, violation } from './history.ts';

/** Returns how a history violates a guarantee, or undefined if it does not. */
export type Checker = <E>(history: History<E>) => Violation | undefined;

/** The checkers of all guarantees that are visible in the history of a broadcaster. */
export const CHECKERS: Readonly<
  Record<
    Exclude<GuaranteeName, 'Resumable' | 'Transitional' | 'Serial' | 'Linearizable' | 'Fair' | 'Owned' | CacheGuaranteeName>,
    Checker
  >
> = {
  Ordered: checkOrdered,
  Unique: checkUnique,
  Complete: checkComplete,
  Exact: checkExact,
  Counted: checkCounted,
  Isolated: checkIsolated,
  Bounded: checkBounded,
  Eager: checkEager,
  Drained: checkDrained,
  Settled: checkSettled,
};

/**
 * Runs all checkers on a history. Returns at most one violation per guarantee, in the order of the guarantees.
 *
 * @throws {WatchError} INVALID_ARGUMENT if two accepted events have the same identity; see {@link History.idOf}.
 */
export function checkHistory<E>(history: History<E>): Violation[] {
  return Object.values(CHECKERS).flatMap((check) => check(history) ?? []);
}

/**
 * **Ordered**: a watcher's events are a subsequence of the published order; with `coalesce`, this holds for each key, and nothing
 * overtakes an ERROR.
 */
export function checkOrdered<E>(history: History<E>): Violation | undefined {
  for (const { name: watcher, options, given, due } of digest(history).runs) {
    const last = new Map<unknown, number>();
    let latest = -1;
    let error = -1;
    for (const { event, place, reason } of given) {
      if (reason.includes('never accepted')) {
        return violation('Ordered', { watcher, event, expected: 'an event that was published', seen: reason });
      }
      const published = due[place];
      if (published === undefined) continue;
      const key = RULES[options.overflow].folds ? options.keyOf(published.event) : undefined;
      const isError = (event as WatchEvent).type === 'ERROR';
      const before = isError ? latest : Math.max(error, last.get(key) ?? -1);
      if (place < before) {
        return violation('Ordered', {
          watcher,
          event,
          expected: `it before number ${before}`,
          seen: `number ${place} behind it`,
        });
      }
      last.set(key, Math.max(place, before));
      latest = Math.max(latest, place);
      if (isError) error = place;
    }
  }
  return undefined;
}

/** **Unique**: no watcher gets an event twice. */
export function checkUnique<E>(history: History<E>): Violation | undefined {
  for (const { name: watcher, given } of digest(history).runs) {
    const places = new Set<number>();
    for (const { event, place } of given) {
      if (places.has(place)) return violation('Unique', { watcher, event, expected: 'it once', seen: 'it again' });
      if (place >= 0) places.add(place);
    }
  }
  return undefined;
}

/** **Complete**: with `wait`, no event is missing between `watch()` and the end. */
export function checkComplete<E>(history: History<E>): Violation | undefined {
  const { runs, gaveUp } = digest(history);
  for (const run of runs) {
    const { name: watcher, due, options } = run;
    if (!RULES[options.overflow].waits) continue;
    const last = Math.max(-1, ...run.given.map(({ place }) => place));
    // Giving up on a shutdown accepts the loss of the last events.
    const [lost] = lostOf(run).filter((place) => place < last || gaveUp === Number.POSITIVE_INFINITY);
    if (lost !== undefined) {
      const { event } = due[lost] as { event: E };
      return violation('Complete', { watcher, event, expected: 'it to be delivered', seen: 'it missing' });
    }
    // `stop` leaves what is queued; a filter that ends its own watch loses the event that it was called with.
    const until = options.filter || run.returned ? Math.min(run.stopped, gaveUp) : gaveUp;
    const counted = run.counts.find(({ dropped, at }) => dropped > 0 && at < until);
    if (counted !== undefined && !run.broken) {
      return violation('Complete', { watcher, expected: 'nothing dropped', seen: `dropped is ${counted.dropped}` });
    }
  }
  return undefined;
}

/** **Eager**: a watcher sees no event from before `watch()`, and loses none between `watch()` and its first read. */
export function checkEager<E>(history: History<E>): Violation | undefined {
  for (const run of digest(history).runs) {
    const early = run.given.find(({ reason }) => reason.includes('before watch()'));
    if (early !== undefined) {
      const { event, reason } = early;
      return violation('Eager', { watcher: run.name, event, expected: 'only events from after watch()', seen: reason });
    }
    const missing = run.options.capacity > 0 ? missingAtFirst(run) : undefined;
    if (missing !== undefined) return missing;
  }
  return undefined;
}

/** The first event must be the oldest that a queue, filled since `watch()`, would hold. */
function missingAtFirst<E>(run: Run<E>): Violation | undefined {
  const { name: watcher, options, due, given } = run;
  if (RULES[options.overflow].folds) return undefined;
  const first = given.find(({ place }) => place >= 0);
  const lost = lostOf(run).filter((place) => first === undefined || place < first.place);
  const place = lost[0];
  if (place === undefined) return undefined;
  const { event } = due[place] as { event: E };
  // With drop-oldest it may have been pushed out, if later events filled the queue before the first read.
  const until = first === undefined ? Number.POSITIVE_INFINITY : takenAt(run, first).to;
  const newer = due.filter(({ from }, index) => index > (lost.at(-1) as number) && from < until).length;
  if (RULES[options.overflow].dropsOldest && newer >= options.capacity) return undefined;
  return violation('Eager', { watcher, event, expected: 'it first', seen: first ? `${show(first.event)} first` : 'nothing' });
}

/**
 * **Counted**: delivered + dropped + queued equals the events accepted since `watch()`, after the filter; each gap is
 * counted exactly.
 */
export function checkCounted<E>(history: History<E>): Violation | undefined {
  for (const run of digest(history).runs) {
    const fault = wrongSum(run) ?? wrongCount(run) ?? wrongGap(run) ?? wrongCut(run);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** Returns the least and the largest number of events that may have been distributed to the watcher. */
function distributed<E>(run: Run<E>, stretch: { from: number; to: number }): { least: number; most: number } {
  const until = Math.min(stretch.from, run.stopped, run.cut?.asked ?? Number.POSITIVE_INFINITY);
  const least = run.due.filter(({ doubtful, to }) => !doubtful && to < until).length;
  return { least: run.broken ? 0 : least, most: run.due.filter(({ from }) => from < stretch.to).length };
}

function wrongSum<E>(run: Run<E>): Violation | undefined {
  for (const { queued, dropped, at } of run.counts) {
    const delivered = run.given.filter(({ seen }) => seen < at).length;
    const onTheWay = run.given.filter(({ asked, seen }) => asked < at && seen > at).length;
    const { least, most } = distributed(run, { from: at, to: Math.min(at, run.cut?.seen ?? at) });
    const sum = delivered + dropped + queued;
    if (sum <= most && sum + onTheWay >= least) continue;
    const expected = least === most ? `${most} in all` : `${least} to ${most} in all`;
    return violation('Counted', {
      watcher: run.name,
      expected,
      seen: `${delivered} delivered + ${dropped} dropped + ${queued} queued = ${sum}`,
    });
  }
  return undefined;
}

/** Finds a count that contradicts an earlier one of the watch. */
function wrongCount<E>(run: Run<E>): Violation | undefined {
  const { name: watcher, cut, options, ends } = run;
  const { cutsAtLoss } = RULES[options.overflow];
  const fault = (expected: string, seen: string): Violation => violation('Counted', { watcher, expected, seen });
  const over = Math.min(ends.find(({ failed }) => !failed)?.at ?? NEVER, run.returned ? run.over : NEVER);
  let before = 0;
  for (const { queued, dropped, at } of run.counts) {
    if (queued < 0 || (queued > 0 && at > over)) return fault('0 queued, or more before the end', `${queued} queued`);
    if (dropped < before) return fault(`no less than ${before} dropped`, `${dropped} dropped`);
    before = dropped;
    const told = run.gaps.reduce((sum, gap) => (gap.at < at ? sum + gap.missed : sum), 0);
    if (dropped < told) return fault(`the ${told} that were told among those dropped`, `${dropped} dropped`);
    if (!cut || cut.seen > at) continue;
    const missed = missedBy(cut.event);
    // What a stop or an error leaves behind counts as dropped, but not as missed.
    const isExact = cutsAtLoss && run.stopped === NEVER && !run.broken;
    if (dropped < missed || (isExact && dropped > missed)) return fault(`the ${missed} missed as dropped`, `${dropped} dropped`);
  }
  return undefined;
}

function missedBy(cut: unknown): number {
  return (cut as { object: { details: { missed: number } } }).object.details.missed;
}

/**
 * Each gap must be reported once, with its size, between the call of the read that gets the first event behind it and that event.
 */
function wrongGap<E>(run: Run<E>): Violation | undefined {
  const { name: watcher, options, given, due } = run;
  const gaps = [...run.gaps];
  if (RULES[options.overflow].folds) return gaps[0] && tellsNothing(watcher, gaps[0]);
  let next = 0;
  for (const { event, place, asked, seen } of given) {
    const skipped = due.slice(next, Math.max(next, place));
    next = Math.max(next, place + 1);
    const most = skipped.length;
    const least = skipped.filter(({ doubtful }) => !doubtful).length;
    if (most === 0) continue;
    let told = 0;
    // An `onGap` that publishes may widen the gap; the rest is reported as well.
    while (told < Math.max(1, least) && gaps[0] !== undefined && gaps[0].at < seen) {
      const gap = gaps.shift() as (typeof gaps)[0];
      if (gap.at < asked)
        return violation('Counted', { watcher, event, expected: 'a gap told right before it', seen: 'it told early' });
      told += gap.missed;
    }
    if (told >= least && told <= most) continue;
    return violation('Counted', { watcher, event, expected: `a gap of ${least} told before it`, seen: `${told} told by then` });
  }
  const [gap] = gaps;
  if (gap === undefined) return undefined;
  // An `onGap` that ends its watch is told of a gap whose event is no longer delivered.
  const missed = gaps.reduce((sum, each) => sum + each.missed, 0);
  const isLast = gap.at > (given.at(-1)?.asked ?? -1) && missed <= due.length - next;
  return (run.returned || run.broken) && isLast ? undefined : tellsNothing(watcher, gap);
}

function tellsNothing(watcher: string, { missed }: { readonly missed: number }): Violation {
  return violation('Counted', { watcher, expected: 'no gap', seen: `a gap of ${missed} told` });
}

function wrongCut<E>(run: Run<E>): Violation | undefined {
  const { cut, name: watcher, options, due } = run;
  if (cut === undefined) return undefined;
  const next = Math.max(-1, ...run.given.map(({ place }) => place)) + 1;
  const missed = missedBy(cut.event);
  const { folds } = RULES[options.overflow];
  const rest = folds ? untold(run) : due.slice(next);
  const most = rest.filter(({ from }) => from < cut.seen).length;
  const sure = rest.filter(({ doubtful, to }) => !doubtful && to < Math.min(cut.asked, run.stopped)).length;
  const least = folds ? Math.max(options.capacity + 1, foldedAway(run, cut)) : Math.max(1, sure);
  if (missed >= least && missed <= most) return undefined;
  if (folds && least > most) return undefined; // too few keys: **Exact** checks whether it may be cut at all
  const range = folds && missed < least ? `at least ${least}` : least === most ? most : `${least} to ${most}`;
  const expected = least > most ? 'no cut, as nothing was lost' : `details.missed of ${range}`;
  return violation('Counted', { watcher, event: cut.event, expected, seen: `${missed}` });
}

/**
 * How many events a fold that was cut has certainly lost. A deleted object may have cancelled out before, and is not a loss.
 */
function foldedAway<E>(run: Run<E>, cut: ReceivedEvent<E>): number {
  const until = Math.min(cut.asked, run.stopped);
  const counts = new Map<unknown, number>();
  for (const { event, doubtful, to } of untold(run)) {
    const key = run.options.keyOf(event);
    const isSure = !doubtful && to < until;
    counts.set(key, (event as WatchEvent).type === 'DELETED' ? 0 : (counts.get(key) ?? 0) + (isSure ? 1 : 0));
  }
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

/** Returns the events of a watch that folds which came after the last one of their key that it delivered. */
function untold<E>({ options, given, due }: Run<E>): readonly Due<E>[] {
  const told = new Map<unknown, number>();
  for (const { event, place } of given) if (place >= 0) told.set(options.keyOf(event), place);
  return due.filter(({ event }, place) => place > (told.get(options.keyOf(event)) ?? -1));
}

/** **Bounded**: memory never exceeds what the capacities allow: no queue exceeds its capacity, whatever its watcher does. */
export function checkBounded<E>(history: History<E>): Violation | undefined {
  const known = digest(history);
  for (const run of known.runs) {
    const { capacity } = run.options;
    const over = run.counts.find(({ queued }) => queued > capacity);
    if (over !== undefined) {
      return violation('Bounded', { watcher: run.name, expected: `at most ${capacity} queued`, seen: `${over.queued}` });
    }
    const fault = heldTooMuch(run, known);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** An event delivered later was held meanwhile: in the queue, or among the accepted events that were not distributed. */
function heldTooMuch<E>(run: Run<E>, { behind }: Digest<E>): Violation | undefined {
  const { capacity } = run.options;
  const kept = run.given.filter(({ place }) => place >= 0).map((given) => ({ given, taken: takenAt(run, given).from }));
  for (const { given } of kept) {
    const due = run.due[given.place] as Due<E>;
    const heldAt = (moment: number): number =>
      kept.filter((other) => other.given.place <= given.place && other.taken > moment).length;
    const fault = (expected: string, seen: number): Violation =>
      violation('Bounded', { watcher: run.name, event: given.event, expected, seen: `${seen}` });
    const queued = heldAt(due.to);
    if (queued > capacity) return fault(`at most ${capacity} in the queue`, queued);
    const held = heldAt(due.at);
    if (held > capacity + behind) return fault(`at most ${capacity + behind} unread`, held);
  }
  return undefined;
}

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
      return violation('Isolated', { event, expected: 'no error of a watcher at the publisher', seen: code });
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
    const { name: watcher, ends, given, due } = run;
    const after = given.find(({ asked }) => asked > (ends.find(({ failed }) => !failed)?.at ?? NEVER));
    if (after !== undefined) {
      return violation('Drained', { watcher, event: after.event, expected: 'nothing after the end', seen: 'this event' });
    }
    // Reads that are pending together settle in another order: a rejection is seen later.
    const [failure, again] = ends.filter(({ failed }) => failed);
    if (failure && (again || failure.asked > (ends.find(({ failed }) => !failed)?.at ?? NEVER))) {
      return violation('Drained', {
        watcher,
        expected: 'one error, before the end',
        seen: again ? 'another one' : 'it after the end',
      });
    }
    if (!RULES[run.options.overflow].waits || shutdown === NEVER || gaveUp < closed || run.stopped < NEVER || run.broken)
      continue;
    const counts = run.counts.findLast(({ at }) => at > closed);
    const here = given.length + (ends.length > 0 ? 0 : (counts?.queued ?? NEVER));
    const all = due.filter(({ doubtful }) => !doubtful).length;
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
      return violation('Settled', { watcher, expected: 'no read pending after the end', seen: `${waiting}` });
    }
  }
  const holds = runs.some((run) => mayHold(run, NEVER));
  if (shutdown < NEVER && over === NEVER && !holds) {
    return violation('Settled', { expected: 'the shutdown to resolve, as nobody holds it up', seen: 'it pending' });
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
  return violation('Settled', { event, expected: 'no publish pending', seen: `${pending.size}` });
}
