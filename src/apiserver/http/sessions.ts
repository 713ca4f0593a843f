/**
 * Joins what is sent to a watcher within one turn of the event loop. A single change is sent at once; those that follow in the
 * same turn, such as the writes of many clients, are one batch and one write to each connection.
 *
 *     change --> write --> [ change, change, change ] --> next turn: one write --> [ ... ] --> next turn
 */

import type { Cleanup, CutReason, Served, Sink } from '../../bridge/hub/connection.ts';
import { clean } from '../../bridge/hub/connection.ts';
import { type Outbound, type SharedTimer, StallGuard, type TimerMember, toSharedTimer } from '../../bridge/transport/stall.ts';
import { type HeapNode, Timetable } from '../../watch/timetable.ts';
import { nextTurn } from '../../watch/turn.ts';
import type { Listener } from '../../watch/watch.ts';
import type { Settings } from '../options.ts';
import type { ApiCounts } from '../stats.ts';
import { LATER, type Source } from './sources.ts';
import type { Slot, StreamAnswer } from './wire.ts';

/** Something that waits for the next turn. */
interface Waits {
  turned(): void;
}

/** Everything that waits for the next turn, which is requested once. */
export class Turns {
  private waiting: Waits[] = [];

  wait(one: Waits): void {
    if (this.waiting.push(one) === 1) nextTurn(() => this.pass());
  }

  private pass(): void {
    const { waiting } = this;
    this.waiting = [];
    for (const one of waiting) one.turned();
  }
}

/**
 * One response that is sent bit by bit: a source, a sink of the bridge, and what ends them.
 *
 *     source --next--> session --write--> sink ---> network
 *                         ^                 |
 *                         '--- relieved ----'      while the sink has no room, the source is not read
 *
 * It ends once: when the source is exhausted, its time is up, the server shuts down, or the client has left or has stopped
 * reading for too long. Then the source is closed, no timer runs, and the sink is no longer called.
 */

interface SessionHost {
  readonly turns: Turns;
  readonly ends: Timetable<Session>;
  readonly onError: (error: unknown) => void;
  /** The session has ended. Called once. */
  ended(session: Session): void;
}

/** What a session sends, and to where. */
interface SessionOptions {
  readonly sink: Sink;
  readonly answer: Pick<StreamAnswer, 'source' | 'isWatch' | 'resource' | 'timeoutMs' | 'slot'>;
  readonly outbound: Outbound;
}

/**
 * One client. Created when the headers have been sent. A server may have ten thousand idle ones, so it has no closure, timer or
 * list, and keeps only the parts of the answer that it needs.
 */
export class Session implements Served, Waits, HeapNode, Listener {
  readonly source: Source;
  readonly isWatch: boolean;
  /** The resource of a watch. */
  readonly resource: string | undefined;
  /** The bytes that the network has not accepted yet. */
  readonly outbound: Outbound;
  /** Released when the session has ended. */
  readonly slot: Slot | undefined;
  heapRank: number = 0;
  heapTurn: number = 0;
  heapAt: number = -1;
  sentBytes: number = 0;
  over: boolean = false;
  reason: CutReason | undefined = undefined;
  private ended: boolean = false;
  private full: boolean = false;
  private busy: boolean = false;
  /** Whether something was written in this turn. */
  private wrote: boolean = false;
  private readonly sink: Sink;
  private readonly host: SessionHost;
  private cleanup: Cleanup | Cleanup[] | undefined = undefined;

  constructor(host: SessionHost, { sink, answer, outbound }: SessionOptions) {
    this.host = host;
    this.sink = sink;
    this.outbound = outbound;
    this.source = answer.source;
    this.isWatch = answer.isWatch;
    this.resource = answer.resource;
    this.slot = answer.slot;
    if (answer.timeoutMs > 0) host.ends.after(this, answer.timeoutMs);
  }

  get version(): string | undefined {
    return this.source.version;
  }

  /** Whether its connection is full, so that its source is not read. */
  get isFull(): boolean {
    return this.full;
  }

  start(): void {
    this.guarded(() => this.sink.opened(this));
    this.run();
  }

  /** Ends it gracefully after a delay, or at its own time if that is earlier. */
  stopAfter(delayMs: number): void {
    if (!this.over && !this.ended) this.host.ends.within(this, delayMs);
  }

  /** Ends it gracefully, between two events. A client that resumes after the last event gets what was not sent. */
  stop(): void {
    if (this.over || this.ended) return;
    this.release();
    this.guarded(() => this.sink.end('timeout', undefined));
  }

  relieved(): void {
    if (!this.full || this.over) return;
    this.full = false;
    this.run();
  }

  gone(): void {
    if (this.over) return;
    this.over = true;
    this.release();
    const { cleanup = [] } = this;
    this.cleanup = undefined;
    this.host.ended(this);
    for (const each of Array.isArray(cleanup) ? cleanup : [cleanup]) clean(each);
  }

  cut(reason: CutReason): void {
    if (this.over) return;
    this.reason = reason;
    try {
      this.sink.destroy(undefined);
    } catch (error) {
      this.host.onError(error);
    }
    this.gone();
  }

  whenOver(cleanup: Cleanup): void {
    if (this.over) clean(cleanup);
    else if (this.cleanup === undefined) this.cleanup = cleanup;
    else if (Array.isArray(this.cleanup)) this.cleanup.push(cleanup);
    else this.cleanup = [this.cleanup, cleanup];
  }

  private run(): void {
    while (!this.busy && !this.over && !this.ended && !this.full) {
      if (this.wrote && this.source.joins) {
        this.busy = true;
        this.host.turns.wait(this);
        return;
      }
      const got = this.next();
      if (got === LATER) this.busy = true;
      else if (got instanceof Promise) this.wait(got);
      else this.take(got);
    }
  }

  /** The next turn of the event loop: what has come since the last write is one batch. */
  turned(): void {
    this.wrote = false;
    this.readable();
  }

  /** The source may have something. */
  readable(): void {
    this.busy = false;
    this.run();
  }

  private next(): ReturnType<Source['next']> {
    try {
      return this.source.next(this.sink.form, this);
    } catch (error) {
      this.failed(error);
      return undefined;
    }
  }

  private wait(bytes: Promise<Uint8Array | undefined>): void {
    this.busy = true;
    bytes.then(
      (got) => {
        this.busy = false;
        this.take(got);
        this.run();
      },
      (error: unknown) => {
        this.busy = false;
        if (!this.over && !this.ended) this.failed(error);
      },
    );
  }

  private take(bytes: Uint8Array | undefined): void {
    if (this.over || this.ended) return;
    if (bytes === undefined) {
      this.release();
      this.guarded(() => this.sink.end('complete', undefined));
      return;
    }
    // Nothing yet.
    if (bytes.length === 0) return;
    this.sentBytes += bytes.length;
    this.wrote = true;
    try {
      this.full = !this.sink.write(bytes);
    } catch (error) {
      this.failed(error);
    }
  }

  /** If its sink or source throws, cuts this client and no other. */
  private guarded(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.failed(error);
    }
  }

  private failed(error: unknown): void {
    this.host.onError(error);
    this.cut('failed');
  }

  private release(): void {
    this.ended = true;
    this.host.ends.remove(this);
    this.source.close();
  }
}

/** The open watches of one resource, and how far they are behind. */
interface OpenWatches {
  readonly watchers: number;
  /** Watches with events waiting, because their connections are full. */
  readonly behind: number;
  /** The largest number of events that wait for one of them. */
  readonly lag: number;
}

export const NO_WATCHES: OpenWatches = { watchers: 0, behind: 0, lag: 0 };

/**
 * All responses that are being sent bit by bit. What a session needs only at times, such as a guard, is here and not in each of
 * them.
 */
export class Sessions implements SessionHost, TimerMember {
  readonly turns: Turns = new Turns();
  readonly ends: Timetable<Session>;
  readonly onError: (error: unknown) => void;
  private readonly counts: ApiCounts;
  private readonly random: () => number;
  /** Finds clients that read nothing of what is sent to them. */
  readonly stalls: SharedTimer | undefined;
  /** The guards of sessions with waiting bytes. */
  private readonly guards: Map<Session, StallGuard> = new Map();
  private readonly open: Set<Session> = new Set();
  private whenEmpty: (() => void)[] = [];
  private isStopped: boolean = false;
  private isCut: boolean = false;

  constructor({ stallTimeoutMs, clock, random, onError }: Settings, counts: ApiCounts) {
    this.random = random;
    this.counts = counts;
    this.onError = onError;
    this.ends = new Timetable(clock, (session) => session.stop());
    this.stalls = toSharedTimer(stallTimeoutMs, clock);
  }

  /** Starts to send a stream to a sink whose headers have been sent. The host calls `gone` when the connection has closed. */
  begin(answer: StreamAnswer, sink: Sink, outbound: Outbound): Session {
    const session = new Session(this, { answer, sink, outbound });
    this.open.add(session);
    if (this.open.size === 1) this.stalls?.add(this);
    if (answer.isWatch) {
      this.counts.watchers++;
      this.counts.watchersOpened++;
    }
    session.start();
    answer.slot?.begun?.(session);
    if (this.isStopped && answer.isWatch) session.stop();
    if (this.isCut) session.cut('disconnected');
    return session;
  }

  /**
   * Ends all watches gracefully, and later ones at once. They end at random times within `spreadMs`, but at least a thousand per
   * second: their clients come back, to this server or another one. Other responses are sent to the end.
   */
  stop(spreadMs: number = 0): void {
    this.isStopped = true;
    const watches = [...this.open].filter(({ isWatch }) => isWatch);
    const spanMs = Math.min(spreadMs, watches.length);
    for (const session of watches) {
      const delayMs = Math.floor(this.random() * spanMs);
      if (delayMs > 0) session.stopAfter(delayMs);
      else session.stop();
    }
  }

  /** Called when a connection was closed because a request came too early on it. */
  cutEarly(): void {
    this.counts.limited('pipelined');
  }

  /** Ends everything at once, including what begins later. */
  cut(): void {
    this.isCut = true;
    for (const session of [...this.open]) session.cut('disconnected');
  }

  /** What open sessions have been sent so far. It is added to `counts` as they end. */
  get sent(): { readonly events: number; readonly bytes: number } {
    let [events, bytes] = [0, 0];
    for (const { source, sentBytes } of this.open) {
      events += source.sent ?? 0;
      bytes += sentBytes;
    }
    return { events, bytes };
  }

  /** The open watches, by resource. Looks at every one. */
  get watches(): ReadonlyMap<string, OpenWatches> {
    const all = new Map<string, OpenWatches>();
    for (const { source, resource, isFull } of this.open) {
      if (resource === undefined) continue;
      const { watchers, behind, lag } = all.get(resource) ?? NO_WATCHES;
      // Events that only wait for the next turn do not count as behind.
      const waiting = isFull ? (source.waiting ?? 0) : 0;
      all.set(resource, { watchers: watchers + 1, behind: behind + (waiting > 0 ? 1 : 0), lag: Math.max(lag, waiting) });
    }
    return all;
  }

  /** Resolves when nothing is being sent any more. */
  drained(): Promise<void> {
    if (this.open.size === 0) return Promise.resolve();
    return new Promise((resolve) => void this.whenEmpty.push(resolve));
  }

  /** Looks for clients that have stopped reading, at each tick of the timer. */
  tick(): void {
    for (const session of this.open) {
      const { outbound } = session;
      if (outbound.writableLength === 0) {
        this.guards.delete(session);
        continue;
      }
      let guard = this.guards.get(session);
      if (guard === undefined) {
        guard = new StallGuard(session, outbound);
        this.guards.set(session, guard);
      }
      guard.tick();
    }
  }

  ended(session: Session): void {
    const { counts } = this;
    const { source } = session;
    this.open.delete(session);
    this.guards.delete(session);
    session.slot?.release(session.reason ?? (source.isExpired ? 'expired' : undefined));
    counts.sentBytes += session.sentBytes;
    counts.events += source.sent ?? 0;
    if (session.isWatch) counts.watchers--;
    if (session.reason === 'stalled') counts.watchersStalled++;
    if (this.open.size > 0) return;
    this.stalls?.remove(this);
    for (const resolve of this.whenEmpty) resolve();
    this.whenEmpty = [];
  }
}
