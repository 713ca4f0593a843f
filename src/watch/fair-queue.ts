/**
 * Divides CPU time among those on whose behalf work is done, so that nobody's work holds up somebody else's small request.
 *
 *     turn() --> little has been done in this turn of the event loop, and nobody waits? --> go on immediately
 *        '-----> tenants --> addresses of one --> calls of one address --> one after the other, with I/O between
 *                `---- the one that has used least time goes first '
 *
 * Work comes in pieces: a request begins with `turn`, and asks `pause` every few hundred steps. No piece is interrupted, so a
 * wait is bounded by the longest piece, not by how much others have sent. A newcomer counts as having used as much as the one
 * that was served last had before its piece, so a small request goes before all further pieces of a large one. This is start-time
 * fair queuing.
 *
 * Invariants
 * - While calls wait, a turn of the event loop is requested; otherwise nothing is scheduled after the next one.
 * - The calls of one address are served in their order.
 */
import { Heap, type HeapNode } from './timetable.ts';
import { nextTurn, type Turn } from './turn.ts';

/** On whose behalf work is done. An empty name stands for nobody in particular. */
export interface OnBehalf {
  readonly tenant: string;
  readonly address: string;
}

/** How long work goes on in one turn of the event loop, in ms, unless a single piece takes longer. */
export const PIECE_MS = 5;
/** The least that a piece counts for, as clocks are coarse. */
const LEAST_MS = 0.01;
/** The most calls of one turn of the event loop. */
const MAX_CALLS = 16;

/** Somebody who waits, and how much time has been spent on their behalf. */
interface Share extends HeapNode {
  readonly name: string;
  usedMs: number;
  waiting: number;
}

/** The calls of one address, in their order. */
interface Line extends Share {
  readonly calls: (() => void)[];
}

/** The addresses of one tenant. */
interface Tenant extends Share {
  readonly lines: Shares<Line>;
}

/** Those who wait, or have used more than those who wait, by name. Never iterated over, as there may be ten thousand. */
class Shares<S extends Share> {
  readonly #byName: Map<string, S> = new Map();
  /** Ordered by the time used. Each share is in one of the two. */
  readonly #waiting: Heap<S> = new Heap();
  readonly #others: Heap<S> = new Heap();
  /** The time that the one served last had used before. */
  #atMs: number = 0;

  /** The share of a name. If it has used less than the one served last, it starts from there. */
  of(name: string, make: (share: Share) => S): S {
    let share = this.#byName.get(name);
    if (share === undefined) {
      share = make({ name, usedMs: this.#atMs, waiting: 0, heapRank: 0, heapTurn: 0, heapAt: -1 });
      this.#byName.set(name, share);
      this.#others.add(share, share.usedMs);
    } else if (share.waiting === 0) this.#put(share, Math.max(share.usedMs, this.#atMs));
    return share;
  }

  /** One more of its calls waits. */
  join(share: S): void {
    if (share.waiting++ > 0) return;
    this.#others.remove(share);
    this.#waiting.add(share, share.usedMs);
  }

  charge(share: S, ms: number): void {
    this.#put(share, share.usedMs + ms);
  }

  #put(share: S, usedMs: number): void {
    share.usedMs = usedMs;
    // If it is in neither heap, it has been forgotten, perhaps with all others.
    if (share.heapAt >= 0) (share.waiting > 0 ? this.#waiting : this.#others).put(share, usedMs);
  }

  /** The one with waiting calls that has used least; among equals, the one that came first. */
  next(): S {
    for (let { first } = this.#others; first && first.usedMs <= this.#atMs; { first } = this.#others) {
      this.#others.remove(first);
      this.#byName.delete(first.name);
    }
    const found = this.#waiting.first as S;
    this.#atMs = found.usedMs;
    if (--found.waiting === 0) {
      this.#waiting.remove(found);
      this.#others.add(found, found.usedMs);
    }
    return found;
  }
}

const toLine = (share: Share): Line => ({ ...share, calls: [] });
const toTenant = (share: Share): Tenant => ({ ...share, lines: new Shares() });

export class FairQueue {
  #tenants: Shares<Tenant> = new Shares();
  readonly #now: () => number;
  readonly #nextTurn: Turn;
  #size: number = 0;
  /** Whether a turn of the event loop is requested: then work has been going on since `begunMs`. */
  #isOpen: boolean = false;
  #begunMs: number = 0;
  /** The piece that began last. */
  #running: { readonly tenant: Tenant; readonly line: Line; readonly sinceMs: number } | undefined;

  constructor({ now = () => performance.now(), turn = nextTurn }: { now?: () => number; turn?: Turn } = {}) {
    this.#now = now;
    this.#nextTurn = turn;
  }

  /** The number of waiting calls. */
  get size(): number {
    return this.#size;
  }

  /** Call it before a request, or work that cannot be divided: resolves when it is its turn; undefined if it is now. */
  turn(whose: OnBehalf): Promise<void> | undefined {
    if (!this.#isOpen) this.#open();
    else if (this.#size > 0 || !this.#hasTime) return this.#join(whose);
    const tenant = this.#tenants.of(whose.tenant, toTenant);
    this.#begin(tenant, tenant.lines.of(whose.address, toLine));
    return undefined;
  }

  /** Call it within work: resolves when it may go on; undefined if it may now. */
  pause(whose: OnBehalf): Promise<void> | undefined {
    if (!this.#isOpen) this.#open();
    return this.#hasTime ? undefined : this.#join(whose);
  }

  get #hasTime(): boolean {
    return this.#now() - this.#begunMs < PIECE_MS;
  }

  #open(): void {
    this.#isOpen = true;
    this.#begunMs = this.#now();
    this.#plan();
  }

  #join(whose: OnBehalf): Promise<void> {
    const tenant = this.#tenants.of(whose.tenant, toTenant);
    const line = tenant.lines.of(whose.address, toLine);
    this.#tenants.join(tenant);
    tenant.lines.join(line);
    this.#size++;
    this.#charge();
    return new Promise((resolve) => void line.calls.push(resolve));
  }

  /** Each callback is a separate call by the host, after which promises continue; all of them run in the next turn. */
  #plan(): void {
    const count = Math.min(Math.max(1, this.#size), MAX_CALLS);
    for (let at = 0; at < count; at++) this.#nextTurn(() => this.#pass(at === 0, at === count - 1));
  }

  #pass(isFirst: boolean, isLast: boolean): void {
    if (this.#running) this.#charge();
    if (isFirst) this.#begunMs = this.#now();
    const isBusy = this.#size > 0;
    if (isBusy && (isFirst || this.#hasTime)) this.#serve();
    if (!isLast) return;
    if (isBusy) {
      this.#plan();
      return;
    }
    this.#isOpen = false;
    this.#tenants = new Shares();
  }

  #serve(): void {
    const tenant = this.#tenants.next();
    const line = tenant.lines.next();
    this.#size--;
    this.#begin(tenant, line);
    (line.calls.shift() as () => void)();
  }

  #begin(tenant: Tenant, line: Line): void {
    if (this.#running) this.#charge();
    this.#running = { tenant, line, sinceMs: this.#now() };
  }

  /** The piece that was begun last has ended. */
  #charge(): void {
    const running = this.#running;
    if (running === undefined) return;
    this.#running = undefined;
    const { tenant, line, sinceMs } = running;
    const spentMs = Math.max(this.#now() - sinceMs, LEAST_MS);
    this.#tenants.charge(tenant, spentMs);
    tenant.lines.charge(line, spentMs);
  }
}

/**
 * How long work goes on before it yields, and to whom. Code that works for a request finds its pace by the request's signal, so
 * that no option has to carry it through storages; work without one yields to everything else in the process.
 */

/** Says when work may go on. */
export interface Pace {
  /** Call it before work that cannot be divided: resolves when it is its turn; undefined if it is now. */
  turn(): Promise<void> | undefined;
  /** Call it every few hundred steps of work: resolves when it may go on; undefined if it may now. */
  pause(): Promise<void> | undefined;
  /**
   * Call it before work on something large: resolves when few enough others of its client are being processed; undefined: now.
   */
  heavy?(signal: AbortSignal): Promise<void> | undefined;
}

const paces: WeakMap<AbortSignal, Pace> = new WeakMap();
/** Marked, so that bundles without requests do not have it. */
const queue: FairQueue = /* @__PURE__ */ new FairQueue();
const NOBODY = { tenant: '', address: '' };
const OWN: Pace = { turn: () => queue.turn(NOBODY), pause: () => queue.pause(NOBODY) };

export function setPace(signal: AbortSignal, pace: Pace): void {
  paces.set(signal, pace);
}

/** The pace of the request with a signal; undefined for other work. */
export function requestPace(signal: AbortSignal | undefined): Pace | undefined {
  return signal && paces.get(signal);
}

export function paceOf(signal: AbortSignal | undefined): Pace {
  return requestPace(signal) ?? OWN;
}

/** Work that yields every few hundred steps, where it may be interrupted. */
export type Work<R> = Generator<undefined, R>;

/** A result: now, or later if it takes long. */
export type Soon<R> = R | Promise<R>;

interface Terms {
  /** Default: the pace of the request with the signal. */
  readonly pace?: Pace | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The most steps of work between two yields. */
export const STRIDE = 256;

/** Does work in one go. */
export function atOnce<R>(work: Work<R>): R {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}

/**
 * Does work, and yields every few milliseconds. Returns the result directly if it takes no longer than that; otherwise, the
 * promise rejects if the signal aborts.
 */
export function inPieces<R>(work: Work<R>, { pace, signal }: Terms = {}): Soon<R> {
  let own = pace;
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
    own ??= paceOf(signal);
    const pause = own.pause();
    if (pause) return resumed(work, pause, { pace: own, signal });
  }
}

async function resumed<R>(work: Work<R>, first: Promise<void>, { pace, signal }: Terms & { pace: Pace }): Promise<R> {
  for (let pause: Promise<void> | undefined = first; ; pause = pace.pause()) {
    if (pause) await pause;
    signal?.throwIfAborted();
    const { done, value } = work.next();
    if (done) return value;
  }
}

/** Visits things one by one until `visit` returns false, in pieces. Undefined if it is done. */
export function through<T>(things: Iterable<T>, visit: (thing: T) => boolean, terms: Terms): Promise<void> | undefined {
  return inPieces(visiting(things, visit), terms) as Promise<void> | undefined;
}

function* visiting<T>(things: Iterable<T>, visit: (thing: T) => boolean): Work<void> {
  let steps = 0;
  for (const thing of things) {
    if (!visit(thing)) return;
    if (++steps % STRIDE === 0) yield;
  }
}
