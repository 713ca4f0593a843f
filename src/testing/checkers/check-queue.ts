import { type Digest, digest, type Owed, type Run, takenAt } from './digest.ts';
import { type Violation, violation } from './guarantees.ts';
import type { History } from './history.ts';
import { RULES } from './policy-rules.ts';

/**
 * **Counted**: delivered + dropped + queued equals the events accepted since `watch()`, after the filter; each gap is
 * counted exactly.
 */
export function checkCounted<E>(history: History<E>): Violation | undefined {
  for (const run of digest(history).runs) {
    const fault = wrongSum(run) ?? wrongGap(run) ?? wrongCut(run);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** Returns the least and the largest number of events that may have been distributed to the watcher. */
function distributed<E>(run: Run<E>, stretch: { from: number; to: number }): { least: number; most: number } {
  const until = Math.min(stretch.from, run.stopped, run.cut?.asked ?? Number.POSITIVE_INFINITY);
  const least = run.owed.filter(({ doubtful, to }) => !doubtful && to < until).length;
  return { least: run.broken ? 0 : least, most: run.owed.filter(({ from }) => from < stretch.to).length };
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

/**
 * Each gap must be reported once, with its size, between the call of the read that gets the first event behind it and that event.
 */
function wrongGap<E>(run: Run<E>): Violation | undefined {
  const { name: watcher, options, given, owed } = run;
  if (RULES[options.overflow].folds) return undefined;
  const gaps = [...run.gaps];
  let next = 0;
  for (const { event, place, asked, seen } of given) {
    const skipped = owed.slice(next, Math.max(next, place));
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
  if (gap === undefined || run.returned || run.broken) return undefined;
  return violation('Counted', { watcher, expected: 'no gap', seen: `a gap of ${gap.missed} told` });
}

function wrongCut<E>(run: Run<E>): Violation | undefined {
  const { cut, name: watcher, options, owed } = run;
  if (cut === undefined) return undefined;
  const next = Math.max(-1, ...run.given.map(({ place }) => place)) + 1;
  const { missed } = (cut.event as { object: { details: { missed: number } } }).object.details;
  const rest = owed.slice(next);
  const most = rest.filter(({ from }) => from < cut.seen).length;
  const sure = rest.filter(({ doubtful, to }) => !doubtful && to < Math.min(cut.asked, run.stopped)).length;
  // Keys that fold were delivered in any order, and changes that cancelled out are not a loss.
  const { folds } = RULES[options.overflow];
  const least = folds ? options.capacity + 1 : Math.max(1, sure);
  if (missed >= least && (folds || missed <= most)) return undefined;
  const range = folds ? `at least ${least}` : least === most ? most : `${least} to ${most}`;
  const expected = least > most ? 'no cut, as nothing was lost' : `details.missed of ${range}`;
  return violation('Counted', { watcher, event: cut.event, expected, seen: `${missed}` });
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
    const owed = run.owed[given.place] as Owed<E>;
    const heldAt = (moment: number): number =>
      kept.filter((other) => other.given.place <= given.place && other.taken > moment).length;
    const fault = (expected: string, seen: number): Violation =>
      violation('Bounded', { watcher: run.name, event: given.event, expected, seen: `${seen}` });
    const queued = heldAt(owed.to);
    if (queued > capacity) return fault(`at most ${capacity} in the queue`, queued);
    const held = heldAt(owed.at);
    if (held > capacity + behind) return fault(`at most ${capacity + behind} unread`, held);
  }
  return undefined;
}
