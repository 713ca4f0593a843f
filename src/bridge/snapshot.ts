import type { WatchEvent } from '../watch/event.ts';
import { toStatus } from '../watch/event.ts';
import { bookmarkOf, Envelope } from './envelope.ts';
import { SLICE_BYTES } from './forms.ts';
import { Line } from './line.ts';
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
export type Snapshot<T = unknown> = (context: SnapshotContext) => Objects<T> | Promise<Objects<T>>;

/** Objects, all there or still to come. */
export type Objects<T = unknown> = Iterable<T> | AsyncIterable<T>;

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
 *                 |            ^           |   client gone, from anywhere: signal aborted, the place given up
 *                 |            '-----------' no room for more: its place is another's until there is
 *
 * At most so many are copied at the same time; whoever stands in line is a client, and so there are no more of them than
 * clients may be. Nobody holds a place while its client has no room: four who read slowly would keep all others from theirs.
 */
export class Snapshots {
  private readonly line: Line;
  private readonly turn: () => Promise<void>;

  constructor(options: { atOnce: number; turn: () => Promise<void> }) {
    this.line = new Line(options.atOnce);
    this.turn = options.turn;
  }

  /** Sends a snapshot to a client, then lets it go on live; settles everything when the client goes. */
  async run(session: Session, request: SnapshotRequest): Promise<void> {
    session.hold();
    const gone = new AbortController();
    session.whenOver(() => gone.abort());
    const copy: Copy = { ...request, session, gone: gone.signal, placed: await this.line.enter(gone.signal) };
    try {
      if (!copy.placed || !(await this.copy(copy))) return;
      this.stepAside(copy);
      if (await session.send([bookmarkOf(request.version, { initialEventsEnd: true })])) session.release();
    } catch (error) {
      this.stepAside(copy);
      const status = toStatus({ code: 500, reason: 'InternalError', message: 'the snapshot of this watch failed' });
      await session.send([new Envelope({ type: 'ERROR', object: status }, { sequence: 0 })]);
      session.stop('failed', error);
    } finally {
      this.stepAside(copy);
    }
  }

  /** Sends all that the source has. Answers whether the client is still there. */
  private async copy(copy: Copy): Promise<boolean> {
    const { source, gone, identity, version, filter } = copy;
    const asked = Promise.resolve(source({ identity, resourceVersion: version, signal: gone }));
    const objects = await unless(gone, asked);
    if (gone.aborted) return false;
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
        if (gone.aborted) return false;
        const { value, done: last } = result as IteratorResult<unknown>;
        done = last === true;
        if (!done) {
          const event = new Envelope({ type: 'ADDED', object: value }, { sequence: 0 });
          bytes += event.bytes.length;
          if (!filter || filter(event)) batch.push(event);
          if (bytes < SLICE_BYTES && ++looked < BATCH) continue;
        }
        if (batch.length > 0 && !(await this.send(copy, batch))) return false;
        // A source that has all at hand must not keep the others from theirs.
        await this.turn();
        batch = [];
        looked = bytes = 0;
      }
    } finally {
      if (!done) ignore(iterator.return?.());
    }
    return true;
  }

  /** Resolves when there is room for more, and a place; false if there is nobody any more. */
  private async send(copy: Copy, batch: readonly Envelope[]): Promise<boolean> {
    const sent = copy.session.send(batch);
    if (copy.session.hasRoom) return sent;
    this.stepAside(copy);
    if (!(await sent)) return false;
    copy.placed = await this.line.enter(copy.gone, true);
    return copy.placed;
  }

  private stepAside(copy: Copy): void {
    if (copy.placed) this.line.leave();
    copy.placed = false;
  }
}

/** A snapshot under way. */
interface Copy extends SnapshotRequest {
  readonly session: Session;
  /** Aborts when the client goes. */
  readonly gone: AbortSignal;
  /** It counts among those that are read at the same time. */
  placed: boolean;
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
