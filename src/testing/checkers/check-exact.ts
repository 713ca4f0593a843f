import { getOrMake } from '../../watch/errors.ts';
import type { WatchEvent } from '../../watch/event.ts';
import { type Due, digest, lostOf, type ReceivedEvent, type Run, readOut, takenAt } from './digest.ts';
import { type History, RULES, type Violation, violation } from './history.ts';

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
    if (run.misread !== undefined) return fault(run, undefined, 'an event or the end for each read that waits', run.misread);
    if (run.afterCut !== undefined)
      return fault(run, run.afterCut.event, 'nothing after a loss but one ERROR event', 'this event');
    const other = folds ? undefined : run.given.find((given) => isOther(given, run.due[given.place]));
    if (other !== undefined) return fault(run, other.event, 'it as it was published', 'another type');
    const wrong = folds ? wrongFold(run) : (wrongLoss(run, known.gaveUp) ?? wrongKeep(run) ?? wrongAfterCut(run));
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

function isOther<E>({ event }: ReceivedEvent<E>, due: Due<E> | undefined): boolean {
  return due !== undefined && (event as WatchEvent).type !== (due.event as WatchEvent).type;
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
    const { event, from, to } = run.due[place] as Due<E>;
    const next = kept.find((given) => given.place > place);
    if (next?.first && next.waits < from) return fault(run, event, 'it given to the read that waited', 'it lost');
    if (waits && to < gaveUp) return fault(run, event, 'it kept, by wait', 'it lost');
    if (dropsOldest) {
      const until = next?.gone ?? Number.POSITIVE_INFINITY;
      const newer = run.due.filter((other, index) => index > place && other.from < until).length;
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
  return run.due.some(({ doubtful }, place) => doubtful && place < before && !got.has(place));
}

/** Finds an event that was kept although its array was full or, with drop-oldest, had been overwritten since. */
function wrongKeep<E>(run: Run<E>): Violation | undefined {
  const { capacity } = run.options;
  const { dropsOldest } = RULES[run.options.overflow];
  for (const given of run.given) {
    const due = run.due[given.place];
    if (due === undefined) continue;
    const taken = takenAt(run, given).from;
    if (taken <= due.to) continue;
    const later = dropsOldest ? run.due.slice(given.place + 1) : [];
    const newer = later.filter(({ doubtful, to }) => !doubtful && to < taken).length;
    if (newer >= Math.max(1, capacity)) return fault(run, given.event, 'it pushed out', `it kept before ${newer} newer ones`);
    const before = run.given.filter((other) => other.place <= given.place && isHeld(run, other, due)).length;
    if (before > capacity)
      return fault(run, given.event, 'it lost, as there was no room', `it kept as number ${before} of ${capacity}`);
  }
  return undefined;
}

/** Whether an event was certainly in the queue when another one was distributed. */
function isHeld<E>(run: Run<E>, other: ReceivedEvent<E>, due: Due<E>): boolean {
  return other.place >= 0 && takenAt(run, other).from > due.to;
}

function wrongAfterCut<E>(run: Run<E>): Violation | undefined {
  const { cut, given } = run;
  const [lost] = RULES[run.options.overflow].cutsAtLoss ? lostOf(run) : [];
  const late = given.find(({ place }) => place > (lost ?? Number.POSITIVE_INFINITY));
  if (late !== undefined) return fault(run, late.event, 'nothing after a loss but one ERROR event', 'this event');
  if (lost === undefined || cut !== undefined || run.ends.some(({ failed }) => failed)) return undefined;
  return fault(run, (run.due[lost] as Due<E>).event, 'an ERROR event (410) at its loss', 'the end without one');
}

/**
 * **Exact** with `coalesce`: each event is the net change of its key since the one before, and its latest state. A BOOKMARK comes
 * after everything that it covers. Nothing is folded across an ERROR.
 */
function wrongFold<E>(run: Run<E>): Violation | undefined {
  const story = storyOf(run);
  for (const given of run.given) {
    const change = story.changes[given.place];
    if (change === undefined) continue;
    const wrong = wrongChange(story, given, change.key) ?? overtakes(story, given) ?? comesEarly(story, given, change.key);
    if (wrong !== undefined) return wrong;
    story.told.set(change.key, given.place);
  }
  return run.cut === undefined ? neverTold(story) : tooFewKeys(story, run.cut);
}

interface KeyedChange<E> extends Due<E> {
  readonly place: number;
  readonly key: unknown;
}

interface Story<E> {
  readonly run: Run<E>;
  readonly changes: readonly KeyedChange<E>[];
  readonly byKey: ReadonlyMap<unknown, readonly KeyedChange<E>[]>;
  /** By key, the place of its last delivered event. */
  readonly told: Map<unknown, number>;
  /** The places of ERRORs. */
  readonly errors: readonly number[];
}

function storyOf<E>(run: Run<E>): Story<E> {
  const changes = run.due.map((due, place) => ({ ...due, place, key: run.options.keyOf(due.event) }));
  const byKey = new Map<unknown, KeyedChange<E>[]>();
  for (const change of changes) {
    getOrMake(byKey, change.key, () => []).push(change);
  }
  const errors = changes.filter(({ event }) => isError(event)).map(({ place }) => place);
  return { run, changes, byKey, told: new Map(), errors };
}

/** Returns the changes of a key since its last event. */
function untold<E>({ byKey, told }: Story<E>, key: unknown): readonly KeyedChange<E>[] {
  const last = told.get(key) ?? -1;
  return (byKey.get(key) as readonly KeyedChange<E>[]).filter(({ place }) => place > last);
}

function wrongChange<E>(story: Story<E>, given: ReceivedEvent<E>, key: unknown): Violation | undefined {
  const { type } = given.event as WatchEvent;
  const { from } = takenAt(story.run, given);
  const changes = untold(story, key);
  const told = changes.filter(({ place }) => place <= given.place);
  if (!netTypes(told).has(type)) return fault(story.run, given.event, `the net change of ${typesOf(told)}`, type);
  const next = story.errors.find((place) => place > given.place) ?? Infinity;
  const isLater = (place: number): boolean => place > given.place && place < next;
  if (!changes.some(({ place, doubtful, to }) => isLater(place) && !doubtful && to < from)) return undefined;
  return fault(story.run, given.event, 'the latest state of its key', 'one from before it');
}

/** Finds a BOOKMARK that was delivered before an event that it covers, or an ERROR before one that came before it. */
function overtakes<E>(story: Story<E>, given: ReceivedEvent<E>): Violation | undefined {
  const error = isError(given.event);
  if (!isBookmark(given.event) && !error) return undefined;
  for (const key of story.byKey.keys()) {
    const changes = untold(story, key).filter(({ from, place }) => from < given.seen && (!error || place < given.place));
    const last = changes.at(-1);
    // A BOOKMARK that replaces another one comes last, so this one is not behind it.
    if (last === undefined || (last.place >= given.place && isBookmark(last.event))) continue;
    const sure = changes.findLastIndex(({ place, doubtful }) => place < given.place && !doubtful) + 1;
    if (!mayBeNothing(changes, sure)) return fault(story.run, given.event, `it after ${typesOf(changes)}`, 'it before');
  }
  return undefined;
}

/** Finds an event that was delivered before one of another key, whose first unseen change was earlier, and was in the queue. */
function comesEarly<E>(story: Story<E>, given: ReceivedEvent<E>, key: unknown): Violation | undefined {
  if (isBookmark(given.event)) return undefined; // it comes last
  const { from } = takenAt(story.run, given);
  const first = (untold(story, key)[0] as KeyedChange<E>).place;
  for (const other of story.byKey.keys()) {
    const changes = other === key ? [] : untold(story, other).filter((change) => change.from < given.seen);
    const [before] = changes;
    if (!before || before.place > first || before.doubtful || before.to >= from || isBookmark(before.event)) continue;
    // An earlier read may have skipped an object that was added and deleted; it counts from when it was added again.
    if (changes.some((_, index) => netTypes(changes.slice(0, index + 1)).has(''))) continue;
    return fault(story.run, given.event, 'it behind a key that changed before it', 'it first');
  }
  return undefined;
}

function isBookmark(event: unknown): boolean {
  return (event as WatchEvent).type === 'BOOKMARK';
}

function isError(event: unknown): boolean {
  return (event as WatchEvent).type === 'ERROR';
}

/** A watch that was read to its end must have delivered the net change of every key. */
function neverTold<E>(story: Story<E>): Violation | undefined {
  const { run, byKey } = story;
  if (!readOut(run)) return undefined;
  for (const key of byKey.keys()) {
    const changes = untold(story, key);
    const sure = changes.findLastIndex(({ doubtful, to }) => !doubtful && to <= run.stopped) + 1;
    if (!mayBeNothing(changes, sure))
      return fault(story.run, changes[0]?.event, `the net change of ${typesOf(changes)}`, 'nothing');
  }
  return undefined;
}

function tooFewKeys<E>(story: Story<E>, cut: ReceivedEvent<E>): Violation | undefined {
  const { capacity } = story.run.options;
  const errorsBefore = (at: number): number => story.errors.filter((place) => place < at).length;
  let keys = 0;
  for (const key of story.byKey.keys()) {
    const changes = untold(story, key).filter(({ from }) => from < cut.seen);
    keys += new Set(changes.map(({ place }) => errorsBefore(place))).size;
  }
  if (keys > capacity) return undefined;
  return fault(story.run, cut.event, `it cut only by more than ${capacity} keys`, `${keys} keys`);
}

function typesOf<E>(changes: readonly Due<E>[]): string {
  return changes.map(({ event }) => (event as WatchEvent).type).join(', ') || 'nothing';
}

/** Whether these changes may need no event. The first `sure` of which have certainly happened. */
function mayBeNothing<E>(changes: readonly Due<E>[], sure: number): boolean {
  return sure === 0 || changes.some((_, index) => index + 1 >= sure && netTypes(changes.slice(0, index + 1)).has(''));
}

/**
 * Returns the possible net types of a sequence of changes; '' is none. There may be several: a queue that was read in between has
 * forgotten changes that cancelled out, or may not have seen a doubtful first one.
 */
function netTypes<E>(changes: readonly Due<E>[]): Set<string> {
  const types = new Set<string>();
  const last = (changes.at(-1)?.event as WatchEvent | undefined)?.type ?? '';
  let existed: boolean | undefined;
  for (const { event, doubtful } of changes) {
    const { type } = event as WatchEvent;
    if (existed === undefined) {
      existed = type !== 'ADDED';
      types.add(net(existed, last));
    }
    if (doubtful || (!existed && type === 'DELETED')) existed = undefined;
  }
  return types;
}

function net(existed: boolean, last: string): string {
  if (last === 'DELETED') return existed ? 'DELETED' : '';
  if (last === 'ADDED' && existed) return 'MODIFIED';
  return last === 'MODIFIED' && !existed ? 'ADDED' : last;
}
