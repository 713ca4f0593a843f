import { wrongFold } from './check-fold.ts';
import { digest, type Given, lostOf, type Owed, type Run, takenAt } from './digest.ts';
import { type Violation, violation } from './guarantees.ts';
import type { History } from './history.ts';
import { RULES } from './policy-rules.ts';

/**
 * **Exact**: with any policy, a watcher gets precisely what its own bounded array, filled at each event, would have given it.
 *
 * So an event is lost only when the array was full, and kept only when there was room or a pending read. After its first loss
 * `disconnect` delivers only the ERROR event. `coalesce` delivers the net change of each key, up to its latest state, and a
 * BOOKMARK after all that it covers.
 */
export function checkExact<E>(history: History<E>): Violation | undefined {
  const known = digest(history);
  for (const run of known.runs) {
    const { folds } = RULES[run.options.overflow];
    const stray = run.given.find(({ reason }) => reason.includes('after stop'));
    if (stray !== undefined) return fault(run, stray.event, 'only events that its array would hold', stray.reason);
    const wrong = folds ? wrongFold(run) : (wrongLoss(run, known.gaveUp) ?? wrongKeep(run) ?? wrongAfterCut(run));
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

function fault<E>(run: Run<E>, event: unknown, expected: string, seen: string): Violation {
  return violation('Exact', { watcher: run.name, event, expected, seen });
}

/** Finds an event that was lost although its array had room, or a read was pending. */
function wrongLoss<E>(run: Run<E>, gaveUp: number): Violation | undefined {
  const { capacity } = run.options;
  const { waits, dropsOldest, cutsAtLoss } = RULES[run.options.overflow];
  const kept = run.given.filter(({ place }) => place >= 0).map((given) => ({ ...given, gone: takenAt(run, given).to }));
  const lost = lostOf(run);
  // After its first loss `disconnect` accepts nothing. That loss may have been a doubtful event, published as the watch began.
  for (const place of cutsAtLoss ? lost.slice(0, 1).filter((first) => !mayBeCut(run, first)) : lost) {
    const { event, from, to } = run.owed[place] as Owed<E>;
    const next = kept.find((given) => given.place > place);
    if (next?.first && next.waits < from) return fault(run, event, 'it given to the read that waited', 'it lost');
    if (waits && to < gaveUp) return fault(run, event, 'it kept, by wait', 'it lost');
    if (dropsOldest) {
      const until = next?.gone ?? Number.POSITIVE_INFINITY;
      const newer = run.owed.filter((other, index) => index > place && other.from < until).length;
      if (newer < capacity) return fault(run, event, `it lost only to ${capacity} newer ones`, `${newer} newer`);
      continue;
    }
    const queued = kept.filter((given) => given.place < place && given.gone > from).length;
    if (queued < capacity) return fault(run, event, `it kept, as there was room for ${capacity}`, `it lost behind ${queued}`);
  }
  return undefined;
}

/** Whether an earlier doubtful event was not delivered, and so may have been the loss. */
function mayBeCut<E>(run: Run<E>, before: number): boolean {
  const got = new Set(run.given.map(({ place }) => place));
  return run.owed.some(({ doubtful }, place) => doubtful && place < before && !got.has(place));
}

/** Finds an event that was kept although its array was full or, with drop-oldest, had been overwritten since. */
function wrongKeep<E>(run: Run<E>): Violation | undefined {
  const { capacity } = run.options;
  const { dropsOldest } = RULES[run.options.overflow];
  for (const given of run.given) {
    const owed = run.owed[given.place];
    if (owed === undefined) continue;
    const taken = takenAt(run, given).from;
    if (taken <= owed.to) continue;
    const later = dropsOldest ? run.owed.slice(given.place + 1) : [];
    const newer = later.filter(({ doubtful, to }) => !doubtful && to < taken).length;
    if (newer >= Math.max(1, capacity)) return fault(run, given.event, 'it pushed out', `it kept before ${newer} newer ones`);
    const before = run.given.filter((other) => other.place <= given.place && isHeld(run, other, owed)).length;
    if (before > capacity)
      return fault(run, given.event, 'it lost, as there was no room', `it kept as number ${before} of ${capacity}`);
  }
  return undefined;
}

/** Whether an event was certainly in the queue when another one was distributed. */
function isHeld<E>(run: Run<E>, other: Given<E>, owed: Owed<E>): boolean {
  return other.place >= 0 && takenAt(run, other).from > owed.to;
}

function wrongAfterCut<E>(run: Run<E>): Violation | undefined {
  const { cut, given } = run;
  const [lost] = RULES[run.options.overflow].cutsAtLoss ? lostOf(run) : [];
  const late = given.find(({ place, asked }) => place > (lost ?? Number.POSITIVE_INFINITY) || (cut && asked > cut.seen));
  if (late !== undefined) return fault(run, late.event, 'nothing after a loss but one ERROR event', 'this event');
  if (lost === undefined || cut !== undefined || run.ends.some(({ failed }) => failed)) return undefined;
  return fault(run, (run.owed[lost] as Owed<E>).event, 'an ERROR event (410) at its loss', 'the end without one');
}
