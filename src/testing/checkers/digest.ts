import { foldKey, objectKey } from '../../broadcast/fold.ts';
import { getOrMake, invalid, oneOf } from '../../watch/errors.ts';
import { isErrorEvent, type WatchEvent } from '../../watch/event.ts';
import { checkSteps, type History, RULES, type Step, type StepNames, show, type WatcherOptions } from './history.ts';

/** An event that a watcher should receive. Times are indices of steps. */
export interface Due<E> {
  readonly event: E;
  /** The event was not distributed before this step. */
  readonly from: number;
  /** The step that shows its acceptance. */
  readonly at: number;
  /** The event was distributed by this step; Infinity if no step proves it. */
  readonly to: number;
  /** The event was being published as the watch began or stopped, so it may or may not belong to the watch. */
  readonly doubtful: boolean;
}

/** An event that a watcher received. */
export interface ReceivedEvent<E> {
  readonly event: E;
  /** Its index among the due events; -1 if it is not one of them, and `reason` says why. */
  readonly place: number;
  readonly reason: string;
  /** When the read was called, and when its result was seen. */
  readonly asked: number;
  readonly seen: number;
  readonly batch: boolean;
  /** The step from which its read was pending; Infinity for `tryNext`. */
  readonly waits: number;
  /** Whether it is the first event of its read. */
  readonly first: boolean;
}

/** One watcher's part of a history. */
export interface Run<E> {
  readonly name: string;
  /** `keyOf` returns the key under which `coalesce` folds the event: a BOOKMARK or an ERROR does not change an object. */
  readonly options: WatcherOptions<E> & { readonly keyOf: (event: E) => unknown };
  readonly joined: number;
  readonly due: readonly Due<E>[];
  readonly given: readonly ReceivedEvent<E>[];
  readonly gaps: readonly { readonly missed: number; readonly at: number }[];
  readonly counts: readonly { readonly queued: number; readonly dropped: number; readonly at: number }[];
  /** The ERROR event with which `disconnect` or `coalesce` cut the watch. */
  readonly cut: ReceivedEvent<E> | undefined;
  /** An event after that one, which must be the last. */
  readonly afterCut: ReceivedEvent<E> | undefined;
  /** When its consumer ended it; Infinity if it did not. */
  readonly stopped: number;
  /** When that call returned. */
  readonly over: number;
  readonly returned: boolean;
  /** Whether its filter, its `keyOf` or `onGap` threw. */
  readonly broken: boolean;
  /** The reads that reached the end: when they were called, and when that was seen. */
  readonly ends: readonly { readonly failed: boolean; readonly asked: number; readonly at: number }[];
  /** A read that returned without an event, although reads of its kind wait. */
  readonly misread: string | undefined;
  /** How many reads never settled. */
  readonly waiting: number;
}

/** A history, arranged by watcher. */
export interface Digest<E> {
  readonly runs: readonly Run<E>[];
  readonly accepted: readonly Accepted<E>[];
  /** When `shutdown` was called, was given up, and resolved; Infinity if it did not. */
  readonly shutdown: number;
  readonly gaveUp: number;
  readonly closed: number;
  /** How many events may have been accepted and not yet distributed. */
  readonly behind: number;
}

const STEPS: StepNames<Step> = {
  ...{ publish: true, accepted: true, refused: true, watch: true, read: true, asked: true, delivered: true, end: true },
  ...{ gap: true, threw: true, stop: true, return: true, stopped: true, counts: true, shutdown: true, 'gave-up': true },
  ...{ closed: true, leftovers: true },
};

/** Arranges a history by watcher. */
export function digest<E>(history: History<E>): Digest<E> {
  const { steps, idOf = (event) => (event as WatchEvent).object, incoming = 25 } = history;
  checkSteps(steps, STEPS);
  for (const [at, step] of steps.entries())
    if (step.step === 'watch') oneOf(`steps[${at}].options.overflow`, step.options?.overflow, Object.keys(RULES));
  const first = (kind: Step['step']): number => indexOf(steps, ({ step }) => step === kind);
  const waits = steps.some((step) => step.step === 'watch' && RULES[step.options.overflow].waits);
  const known = {
    accepted: acceptedOf(steps, idOf),
    shutdown: first('shutdown'),
    gaveUp: first('gave-up'),
    closed: first('closed'),
    behind: waits ? incoming : 0,
  };
  const runs = steps.flatMap((step, at) => (step.step === 'watch' ? [runOf(history, step, { ...known, at, idOf })] : []));
  return { ...known, runs };
}

interface RunContext<E> extends Omit<Digest<E>, 'runs'> {
  readonly at: number;
  readonly idOf: (event: E) => unknown;
}

/** Returns the index of the first match; Infinity if there is none. */
function indexOf<T>(all: readonly T[], matches: (one: T) => boolean): number {
  const at = all.findIndex(matches);
  return at < 0 ? Number.POSITIVE_INFINITY : at;
}

type StepOf<E, Kind> = Extract<Step<E>, { step: Kind }>;

function runOf<E>({ steps }: History<E>, { watcher, options: own }: StepOf<E, 'watch'>, known: RunContext<E>): Run<E> {
  const keyOf = (event: E): unknown => foldKey(event, own.keyOf ?? ((one) => objectKey(one as WatchEvent)));
  const options = { ...own, keyOf };
  const mine = steps.map((step) => ('watcher' in step && step.watcher === watcher ? step : undefined));
  const stopped = indexOf(mine, (step) => step?.step === 'stop' || step?.step === 'return');
  const over = indexOf(mine, (step) => step?.step === 'stopped');
  const stop = { asked: stopped, over: over === Number.POSITIVE_INFINITY ? stopped : over };
  const { due: all, broken } = dueTo(options, known, stop);
  const { folds } = RULES[options.overflow];
  const { given, waiting } = givenTo(mine, { due: all, keyOf: folds ? keyOf : undefined }, known);
  const last = Math.max(-1, ...given.map(({ place }) => place));
  const inFilter = mine.some((step) => (step?.step === 'stop' || step?.step === 'return') && step.inFilter);
  const due = inFilter ? all.map((one, place) => (place > last ? { ...one, doubtful: true } : one)) : all;
  const cutAt = given.findIndex((one) => one.place < 0 && isCut(one.event, options));
  return {
    name: watcher,
    options,
    joined: known.at,
    due,
    given: given.filter((_, index) => index !== cutAt),
    gaps: mine.flatMap((step, at) => (step?.step === 'gap' ? [{ missed: step.missed, at }] : [])),
    counts: mine.flatMap((step, at) => (step?.step === 'counts' ? [{ queued: step.queued, dropped: step.dropped, at }] : [])),
    cut: given[cutAt],
    afterCut: cutAt < 0 ? undefined : given[cutAt + 1],
    stopped,
    over: stop.over,
    returned: mine.some((step) => step?.step === 'return'),
    broken: broken || mine.some((step) => step?.step === 'threw'),
    ends: mine.flatMap((step, at) => {
      if (step?.step !== 'end') return [];
      const { read, failure } = step;
      const asked = indexOf(mine, (other) => other?.step === 'read' && other.read === read);
      return [{ failed: failure !== undefined, asked: Math.min(asked, at), at }];
    }),
    misread: misreadOf(mine),
    waiting,
  };
}

/** Only `tryNext` may return nothing. A history written by hand may leave out how it was read. */
function misreadOf<E>(mine: readonly (Step<E> | undefined)[]): string | undefined {
  const by = new Map(mine.flatMap((step) => (step?.step === 'read' ? [[step.read, step.by ?? 'tryNext'] as const] : [])));
  for (const step of mine) {
    const call = step?.step === 'delivered' && step.events.length === 0 ? by.get(step.read) : undefined;
    if (call !== undefined && call !== 'tryNext') return `nothing by ${call}`;
  }
  return undefined;
}

function dueTo<E>(
  options: Run<E>['options'],
  known: RunContext<E>,
  stop: { asked: number; over: number },
): { due: Due<E>[]; broken: boolean } {
  const { accepted, at: joined, behind, closed, gaveUp } = known;
  const { filter, prefix = [], overflow, keyOf } = options;
  const due: Due<E>[] = prefix.map((event) => ({ event, from: joined, at: joined, to: joined, doubtful: false }));
  accepted.forEach(({ event, called, at }, index) => {
    if (at < joined || called > stop.over) return;
    const by = Math.max(at, Math.min(accepted[index + behind]?.at ?? Number.POSITIVE_INFINITY, closed, gaveUp));
    // An event that was on its way when the watch stopped may have arrived before, or never.
    const to = by > stop.asked ? Number.POSITIVE_INFINITY : by;
    due.push({ event, from: called, at, to, doubtful: called < joined || at > stop.asked });
  });
  return passed(due, (event) => {
    if (filter && !filter(event)) return false;
    if (RULES[overflow].folds) keyOf(event);
    return true;
  });
}

/**
 * Filters the events that are due. A filter or a `keyOf` that throws ends the watch. At an event that may not belong to the
 * watch, it may or may not have thrown, so all later events are equally doubtful.
 */
function passed<E>(due: readonly Due<E>[], passes: (event: E) => boolean): { due: Due<E>[]; broken: boolean } {
  const rest: Due<E>[] = [];
  let broken = false;
  for (const one of due) {
    try {
      if (passes(one.event)) rest.push({ ...one, doubtful: one.doubtful || broken });
    } catch {
      if (!one.doubtful) return { due: rest, broken: true };
      broken = true;
    }
  }
  return { due: rest, broken };
}

interface Call {
  readonly at: number;
  /** See {@link ReceivedEvent.waits}. */
  readonly waits: number;
  readonly batch: boolean;
  /** When it returned, if something else happened during it; otherwise 0. */
  readonly returned: number;
}

function callsOf<E>(mine: readonly (Step<E> | undefined)[]): Map<number, Call> {
  const calls = new Map<number, Call>();
  mine.forEach((step, at) => {
    if (step?.step === 'read') {
      const waits = step.by === 'tryNext' ? Number.POSITIVE_INFINITY : at;
      calls.set(step.read, { at, waits, batch: step.by === 'batch', returned: 0 });
    }
    if (step?.step !== 'asked' && step?.step !== 'delivered') return;
    const call = calls.get(step.read);
    if (call && step.step === 'asked') calls.set(step.read, { ...call, waits: at, returned: at });
    else if (call?.waits === Number.POSITIVE_INFINITY) calls.set(step.read, { ...call, returned: at });
  });
  return calls;
}

/** Whether `later` was called during `call`: by a filter or an `onGap`. Then either may be served first. */
function isDuring(call: Call | undefined, later: Call | undefined): boolean {
  return call !== undefined && later !== undefined && call.at < later.at && later.at < call.returned;
}

/** The reads of which one was called during the other. */
function overlapping(calls: ReadonlyMap<number, Call>): ReadonlySet<number> {
  const found = new Set<number>();
  const all = [...calls];
  all.forEach(([read, call], at) => {
    for (let next = at + 1; isDuring(call, all[next]?.[1]); next++) found.add(read).add((all[next] as [number, Call])[0]);
  });
  return found;
}

/** What a read got, and the places of its events among those due; -1: none of them. */
interface Got<E> {
  readonly read: number;
  readonly seen: number;
  readonly events: readonly E[];
  readonly places: readonly number[];
}

function givenTo<E>(
  mine: readonly (Step<E> | undefined)[],
  { due, keyOf }: { readonly due: readonly Due<E>[]; readonly keyOf: ((event: E) => unknown) | undefined },
  known: RunContext<E>,
): { given: ReceivedEvent<E>[]; waiting: number } {
  const places = new Map(due.map(({ event }, place) => [known.idOf(event), place]));
  const calls = callsOf(mine);
  const got: Got<E>[] = [];
  const settled = new Set<number>();
  mine.forEach((step, seen) => {
    if (step?.step === 'delivered' || step?.step === 'end') settled.add(step.read);
    if (step?.step !== 'delivered') return;
    const { read, events } = step;
    got.push({ read, seen, events, places: events.map((event) => places.get(known.idOf(event)) ?? -1) });
  });
  const given = asServed(got, { calls, due, keyOf }).flatMap((one) => {
    const { read, seen, events } = one;
    const { at: asked, waits, batch } = calls.get(read) ?? { at: seen, waits: seen, batch: true };
    return events.map((event, index): ReceivedEvent<E> => {
      const place = one.places[index] as number;
      const reason = place < 0 ? reasonOf(event, known) : '';
      return { event, place, reason, asked, waits, batch, seen, first: index === 0 };
    });
  });
  return { given, waiting: [...calls.keys()].filter((read) => !settled.has(read)).length };
}

/**
 * Reads in the order in which they were served, which is that of their calls: the order in which they are seen to settle depends
 * on the host's promises. Of calls of which one was made during the other, that one comes first whose event was queued first: with
 * `coalesce`, whose key has the earliest change that was not delivered (`keyOf`).
 */
function asServed<E>(
  got: readonly Got<E>[],
  {
    calls,
    due,
    keyOf,
  }: {
    readonly calls: ReadonlyMap<number, Call>;
    readonly due: readonly Due<E>[];
    readonly keyOf: ((event: E) => unknown) | undefined;
  },
): readonly Got<E>[] {
  const rest = [...got].sort((a, b) => a.read - b.read);
  if (overlapping(calls).size === 0) return rest;
  const keys = keyOf && due.map(({ event }) => keyOf(event));
  const typeAt = (place: number): string => (due[place] as Due<WatchEvent>).event.type;
  const told = new Map<unknown, number>();
  /** What changed before this place has been delivered, or was added and deleted unseen. */
  let passed = 0;
  /** The place of the first change that it tells of, and its own. The ERROR that cuts a watch comes last. */
  const rankOf = ({ places: [place = -1] }: Got<E>): readonly [number, number] => {
    if (place < 0) return [Number.POSITIVE_INFINITY, place];
    if (!keys || typeAt(place) === 'BOOKMARK') return [place, place];
    // Nothing is folded across an ERROR.
    const error = due.findLastIndex((_, at) => at < place && typeAt(at) === 'ERROR');
    let first = keys.indexOf(keys[place], Math.max(told.get(keys[place]) ?? -1, error) + 1);
    while (first >= 0 && first < Math.min(place, passed) && typeAt(first) === 'ADDED') {
      const gone = due.findIndex((_, at) => at > first && keys[at] === keys[place] && typeAt(at) === 'DELETED');
      if (gone < 0 || gone >= place) break;
      first = keys.indexOf(keys[place], gone + 1);
    }
    return [first < 0 ? place : first, place]; // it has been told of before
  };
  const precedes = (a: Got<E>, b: Got<E>): boolean => {
    if (a.events.length === 0 || b.events.length === 0) return false;
    if (a.places.some((place) => (due[place]?.from ?? 0) > b.seen)) return false;
    const [[first, own], [other, others]] = [rankOf(a), rankOf(b)];
    return first < other || (first === other && own < others);
  };
  const served: Got<E>[] = [];
  while (rest.length > 0) {
    let next = 0;
    for (let at = 1; at < rest.length; at++) {
      const { read } = rest[at] as Got<E>;
      if (!rest.slice(0, at).every((before) => isDuring(calls.get(before.read), calls.get(read)))) break;
      if (precedes(rest[at] as Got<E>, rest[next] as Got<E>)) next = at;
    }
    const [first] = rest.splice(next, 1) as [Got<E>];
    for (const place of first.places) {
      if (!keys || place < 0) continue;
      if (typeAt(place) !== 'BOOKMARK') passed = Math.max(passed, rankOf({ ...first, places: [place] })[0]);
      told.set(keys[place], place);
    }
    served.push(first);
  }
  return served;
}

function reasonOf<E>(event: E, { accepted, at, idOf }: RunContext<E>): string {
  const found = accepted.find(({ id }) => id === idOf(event));
  if (found === undefined) return 'an event that was never accepted';
  return found.at < at ? 'an event from before watch()' : 'an event from after stop, or that the filter rejects';
}

function isCut<E>(event: E, { overflow }: WatcherOptions<E>): boolean {
  return RULES[overflow].cuts && isErrorEvent(event as WatchEvent) && (event as { object: { code: number } }).object.code === 410;
}

/** Returns the range of steps in which an event left the queue: at once for a pending read, otherwise when the read came. */
export function takenAt<E>(run: Run<E>, { place, asked, seen, batch, waits }: ReceivedEvent<E>): { from: number; to: number } {
  const { from = 0, to = seen } = run.due[place] ?? {};
  // A pending batch also takes events that come after its first one, somewhat later. User code inside a read may publish.
  const late = batch && to > asked;
  return { from: Math.max(asked, from), to: late ? seen : Math.min(seen, Math.max(waits, to)) };
}

/** Whether a watch was read to its end, so that every event it did not receive is lost. */
export function readOut<E>(run: Run<E>): boolean {
  return run.ends.length > 0 && !run.returned && !run.broken;
}

/** Returns the indices of the events that are certainly lost. A watch that ended by itself was told of all of them. */
export function lostOf<E>(run: Run<E>): number[] {
  const got = new Set(run.given.map(({ place }) => place));
  const last = Math.max(-1, ...got);
  const until = Math.min(run.stopped, run.cut?.asked ?? Number.POSITIVE_INFINITY);
  const isLost = ({ doubtful, to }: Due<E>, place: number): boolean =>
    !doubtful && !got.has(place) && (place < last || (readOut(run) && to <= until));
  return run.due.flatMap((due, place) => (isLost(due, place) ? [place] : []));
}

/** An accepted event. `called` is the step of the call of `publish`, `at` the step of its answer. */
interface Accepted<E> {
  readonly event: E;
  readonly id: unknown;
  readonly called: number;
  readonly at: number;
}

/**
 * Returns the accepted events in the order in which they were accepted. Throws INVALID_ARGUMENT if two have the same identity: no
 * checker could tell them apart, and each would blame the broadcaster.
 */
function acceptedOf<E>(steps: readonly Step<E>[], idOf: (event: E) => unknown): Accepted<E>[] {
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
  const got = new Set<unknown>();
  const own = new Map<string, Step<E>[]>();
  for (const step of steps) {
    if ('watcher' in step && !folds.has(step.watcher)) getOrMake(own, step.watcher, () => []).push(step);
  }
  const ranks = [...own.values()].map((mine) => {
    // Of two calls, one of which was made during the other, nobody knows which was served first.
    const unsure = overlapping(callsOf(mine));
    const reads = mine.flatMap((step) => (step.step === 'delivered' ? step : []));
    reads.sort((one, other) => one.read - other.read);
    for (const { events } of reads) for (const event of events) got.add(idOf(event));
    const sure = reads.flatMap(({ read, events }) => (unsure.has(read) ? [] : events));
    return new Map(sure.map((event, rank) => [idOf(event), rank]));
  });
  return {
    got: (id) => got.has(id),
    gotLater: (a, b) => ranks.some((rank) => (rank.get(a) ?? -1) > (rank.get(b) ?? Number.POSITIVE_INFINITY)),
  };
}
