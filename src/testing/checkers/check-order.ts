import type { WatchEvent } from '../../watch/event.ts';
import { digest, lostOf, type Run, takenAt } from './digest.ts';
import { show, type Violation, violation } from './guarantees.ts';
import type { History } from './history.ts';
import { RULES } from './policy-rules.ts';

/**
 * **Ordered**: a watcher's events are a subsequence of the published order; with `coalesce`, this holds for each key, and nothing
 * overtakes an ERROR.
 */
export function checkOrdered<E>(history: History<E>): Violation | undefined {
  for (const { name: watcher, options, given, owed } of digest(history).runs) {
    const last = new Map<unknown, number>();
    let latest = -1;
    let error = -1;
    for (const { event, place, reason } of given) {
      if (reason.includes('never accepted')) {
        return violation('Ordered', { watcher, event, expected: 'an event that was published', seen: reason });
      }
      const published = owed[place];
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
    const { name: watcher, owed, options } = run;
    if (!RULES[options.overflow].waits) continue;
    const last = Math.max(-1, ...run.given.map(({ place }) => place));
    // Giving up on a shutdown accepts the loss of the last events.
    const [lost] = lostOf(run).filter((place) => place < last || gaveUp === Number.POSITIVE_INFINITY);
    if (lost !== undefined) {
      const { event } = owed[lost] as { event: E };
      return violation('Complete', { watcher, event, expected: 'it to be delivered', seen: 'it missing' });
    }
    const counted = run.counts.find(({ dropped, at }) => dropped > 0 && at < Math.min(run.stopped, gaveUp));
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
  const { name: watcher, options, owed, given } = run;
  if (RULES[options.overflow].folds) return undefined;
  const first = given.find(({ place }) => place >= 0);
  const lost = lostOf(run).filter((place) => first === undefined || place < first.place);
  const place = lost[0];
  if (place === undefined) return undefined;
  const { event } = owed[place] as { event: E };
  // With drop-oldest it may have been pushed out, if later events filled the queue before the first read.
  const until = first === undefined ? Number.POSITIVE_INFINITY : takenAt(run, first).to;
  const newer = owed.filter(({ from }, index) => index > (lost.at(-1) as number) && from < until).length;
  if (RULES[options.overflow].dropsOldest && newer >= options.capacity) return undefined;
  return violation('Eager', { watcher, event, expected: 'it first', seen: first ? `${show(first.event)} first` : 'nothing' });
}
