import type { WatchEvent } from '../watch/event.ts';
import { toStatus } from '../watch/event.ts';
import { Envelope } from './envelope.ts';
import { SLICE_BYTES } from './forms.ts';
import { toBookmark } from './protocol.ts';
import type { Session } from './session.ts';

/** What a snapshot is made for. */
export interface SnapshotContext {
  /** What `authenticate` said of the client; undefined if nobody asked. */
  readonly identity: unknown;
  /** The position that was taken before: what happens after it follows the snapshot by itself. */
  readonly resourceVersion: string;
  /** Aborts when the client has gone: nobody wants the rest. */
  readonly signal: AbortSignal;
}

/** The state of things now: the objects that a client gets as ADDED events before what follows. */
export type Snapshot = (context: SnapshotContext) => Objects | Promise<Objects>;

/** Objects, all there or still to come. */
export type Objects = Iterable<unknown> | AsyncIterable<unknown>;

/** One snapshot for one client. */
export interface SnapshotRequest {
  readonly source: Snapshot;
  readonly identity: unknown;
  readonly version: string;
  readonly filter: ((event: WatchEvent) => boolean) | undefined;
}

/** So many objects are looked at, and sent, at once at most. */
const BATCH = 256;

/**
 * Snapshots for those who come without a version: **position first, then data**. The client's watch is there before the source
 * is asked, so what changes meanwhile waits in its queue, and comes after the BOOKMARK that ends the snapshot.
 *
 *     open: watch, hold --> in line --> copying --> BOOKMARK, release
 *                 `------------`-----------`---- client gone: signal aborted, the place in line given up
 *
 * At most so many are copied at the same time; whoever stands in line is a client, and so there are no more of them than
 * clients may be.
 */
export class Snapshots {
  private free: number;
  private readonly line: Set<() => void> = new Set();
  private readonly turn: () => Promise<void>;

  constructor(options: { atOnce: number; turn: () => Promise<void> }) {
    this.free = options.atOnce;
    this.turn = options.turn;
  }

  /** Sends a snapshot to a client, then lets it go on live; settles everything when the client goes. */
  async run(session: Session, request: SnapshotRequest): Promise<void> {
    session.hold();
    const gone = new AbortController();
    session.whenOver(() => gone.abort());
    if (this.free > 0) this.free--;
    else if (!(await this.queue(gone.signal))) return;
    try {
      await this.copy(session, { ...request, gone: gone.signal });
    } catch (error) {
      const status = toStatus({ code: 500, reason: 'InternalError', message: 'the snapshot of this watch failed' });
      await session.send([new Envelope({ type: 'ERROR', object: status }, { sequence: 0 })]);
      session.stop('failed', error);
    }
    this.next();
  }

  private async copy(session: Session, { source, gone, ...request }: SnapshotRequest & { gone: AbortSignal }): Promise<void> {
    if (gone.aborted) return;
    const { identity, version, filter } = request;
    const asked = Promise.resolve(source({ identity, resourceVersion: version, signal: gone }));
    const objects = await unless(gone, asked);
    if (gone.aborted) return;
    const { iterator, isAsync } = iterate(objects as Objects);
    let batch: Envelope[] = [];
    // Of all that was looked at since the last turn, whatever the filter said: it costs the same.
    let looked = 0;
    let bytes = 0;
    let done = false;
    try {
      while (!done) {
        const pulled = iterator.next();
        const result = isAsync ? await unless(gone, pulled) : (pulled as IteratorResult<unknown>);
        if (gone.aborted) return;
        const { value, done: last } = result as IteratorResult<unknown>;
        done = last === true;
        if (!done) {
          const event = new Envelope({ type: 'ADDED', object: value }, { sequence: 0 });
          bytes += event.bytes.length;
          if (filter?.(event) ?? true) batch.push(event);
          if (bytes < SLICE_BYTES && ++looked < BATCH) continue;
        }
        if (batch.length > 0 && !(await session.send(batch))) return;
        // A source that has all at hand must not keep the others from theirs.
        await this.turn();
        batch = [];
        looked = bytes = 0;
      }
    } finally {
      if (!done) ignore(iterator.return?.());
    }
    const end = new Envelope(toBookmark(version, { initialEventsEnd: true }), { sequence: 0, version });
    if (await session.send([end])) session.release();
  }

  /** Waits for a turn. False: the client has gone before. */
  private queue(gone: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const leave = (): void => {
        this.line.delete(go);
        resolve(false);
      };
      const go = (): void => {
        gone.removeEventListener('abort', leave);
        resolve(true);
      };
      gone.addEventListener('abort', leave, { once: true });
      this.line.add(go);
    });
  }

  /** A turn is over: it goes to whoever is first in line. */
  private next(): void {
    const [go] = this.line;
    if (go === undefined) {
      this.free++;
      return;
    }
    this.line.delete(go);
    go();
  }
}

function iterate(objects: Objects): { iterator: Iterator<unknown> | AsyncIterator<unknown>; isAsync: boolean } {
  if (Symbol.asyncIterator in objects) return { iterator: objects[Symbol.asyncIterator](), isAsync: true };
  return { iterator: objects[Symbol.iterator](), isAsync: false };
}

/**
 * What a promise comes to, or undefined as soon as the client has gone. No `Promise.race`: what lasts as long as the client
 * would keep all that it ever raced with, and so a snapshot of its own for each who has long got it.
 */
function unless<T>(gone: AbortSignal, outcome: T | PromiseLike<T>): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const leave = (): void => resolve(undefined);
    gone.addEventListener('abort', leave, { once: true });
    void Promise.resolve(outcome)
      .then(resolve, reject)
      .then(() => gone.removeEventListener('abort', leave));
  });
}

/** What a source has to say after its client has gone concerns nobody any more. */
function ignore(outcome: unknown): void {
  if (outcome instanceof Promise) outcome.catch(() => {});
}
