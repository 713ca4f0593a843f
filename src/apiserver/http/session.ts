/**
 * One response that is sent bit by bit: a source, a sink of the bridge, and what ends them.
 *
 *     source --next--> session --write--> sink ---> network
 *                         ^                 |
 *                         '--- relieved ----'      while the sink has no room, the source is not read
 *
 * It ends once: when the source is exhausted, its time is over, the server shuts down, or the client has left or stopped reading
 * for too long. After that the source is closed, no timer runs, and the sink is no longer called.
 */

import type { Cleanup, CutReason, Served, Sink } from '../../bridge/hub/connection.ts';
import type { Outbound } from '../../bridge/transport/stall.ts';
import type { HeapNode, Timetable } from '../../watch/timetable.ts';
import type { Listener } from '../../watch/watch.ts';
import { LATER, type Source } from './sources.ts';
import type { Turns, Waits } from './turns.ts';
import type { Slot, StreamAnswer } from './wire.ts';

/** What all sessions share. */
export interface SessionHost {
  readonly turns: Turns;
  /** When sessions end. */
  readonly ends: Timetable<Session>;
  readonly onError: (error: unknown) => void;
  /** The session has ended. Called once. */
  ended(session: Session): void;
}

/** What a session sends, and to where. */
export interface SessionOptions {
  readonly sink: Sink;
  readonly answer: Pick<StreamAnswer, 'source' | 'isWatch' | 'resource' | 'timeoutMs' | 'slot'>;
  readonly outbound: Outbound;
}

/**
 * One client. Created when its headers have been sent. A server may have ten thousand idle ones, so it has no closure, timer or
 * list, and keeps only what it needs of the answer.
 */
export class Session implements Served, Waits, HeapNode, Listener {
  readonly source: Source;
  readonly isWatch: boolean;
  /** The resource of a watch. */
  readonly resource: string | undefined;
  /** The bytes that the network has not taken yet. */
  readonly outbound: Outbound;
  /** Released when the session has ended. */
  readonly slot: Slot | undefined;
  heapRank: number = 0;
  heapTurn: number = 0;
  heapAt: number = -1;
  sentBytes: number = 0;
  over: boolean = false;
  /** Why it was cut; undefined if it was not. */
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

  /** Ends it properly after a delay, or at its own time if that is earlier. */
  stopAfter(delayMs: number): void {
    if (!this.over && !this.ended) this.host.ends.within(this, delayMs);
  }

  /** Ends it properly, between two events. A client that resumes after the last event gets what was not sent. */
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
    this.sentBytes += bytes.length;
    this.wrote = true;
    try {
      this.full = !this.sink.write(bytes);
    } catch (error) {
      this.failed(error);
    }
  }

  /** Cuts only this client if its sink or its source throws. */
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

function clean(cleanup: Cleanup): void {
  if (typeof cleanup === 'function') cleanup();
  else cleanup.leave();
}
