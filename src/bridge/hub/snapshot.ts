import { whenAborted } from '../../watch/abort.ts';
import { type Status, toStatus, type WatchEvent } from '../../watch/event.ts';
import { checkSize, Envelope } from '../events/envelope.ts';
import { SLICE_BYTES } from '../events/forms.ts';
import type { HubSettings, Objects, Snapshot } from './hub-options.ts';
import type { HubSession } from './hub-session.ts';

interface SnapshotRequest {
  readonly source: Snapshot;
  readonly identity: unknown;
  readonly version: string;
  readonly filter: ((event: WatchEvent) => boolean) | undefined;
}

type SnapshotSettings = Pick<
  HubSettings<WatchEvent>,
  'maxSnapshots' | 'snapshotTimeoutMs' | 'maxEventBytes' | 'clock' | 'nextTurn'
>;

/** How many objects are examined, and sent, at once at most. */
const BATCH = 256;

/**
 * Sends snapshots to clients without a version: **position first, then data**. The client's watch starts before the source is
 * asked. Events that come meanwhile wait in its queue and follow the BOOKMARK that ends the snapshot.
 *
 *     open: watch, held --> in line --> copying --> BOOKMARK, release
 *                 |            ^           |   client gone, at any point: signal aborted, slot released
 *                 |            '-----------' connection full: another gets its slot until it has room
 *
 * The number of snapshots copied at the same time is limited. Waiting clients count as clients, so `maxClients` limits them. A
 * client whose connection is full holds no slot; otherwise four slow readers would block all others. Nor may four sources that
 * produce nothing block them: each wait for a source is limited.
 */
/** Upstream: `NewServerTimeout`, for what could not be done at this time. A client that has got nothing yet can just ask again. */
const FAILED: Status = toStatus({
  code: 500,
  reason: 'ServerTimeout',
  message: 'the snapshot of this watch failed',
  details: { retryAfterSeconds: 1 },
});

export class Snapshots {
  private readonly slots: Semaphore;
  private readonly settings: SnapshotSettings;

  constructor(settings: SnapshotSettings) {
    this.slots = new Semaphore(settings.maxSnapshots);
    this.settings = settings;
  }

  /** Sends a snapshot to a client and then releases its live events. Cleans up when the client leaves. */
  async run(session: HubSession, request: SnapshotRequest): Promise<void> {
    const gone = new AbortController();
    session.whenOver(() => gone.abort());
    const copy: Copy = { ...request, session, gone: gone.signal, hasSlot: await this.slots.enter(gone.signal) };
    try {
      // The client may have left since it got its slot.
      if (!copy.hasSlot || gone.signal.aborted || !(await this.copy(copy))) return;
      this.releaseSlot(copy);
      if (await session.endSnapshot(request.version)) session.release();
    } catch (error) {
      this.releaseSlot(copy);
      session.stop('failed', error, FAILED);
    } finally {
      this.releaseSlot(copy);
    }
  }

  /** Sends all objects of the source. Returns whether the client is still there. */
  private async copy(copy: Copy): Promise<boolean> {
    const { source, gone, identity, version, filter } = copy;
    const asked = Promise.resolve(source({ identity, resourceVersion: version, signal: gone }));
    const objects = await this.unless(gone, asked);
    if (gone.aborted) return false;
    const { iterator, isAsync } = iterate(objects as Objects);
    let batch: Envelope[] = [];
    // Objects examined since the last turn, including those the filter rejected: they cost the same.
    let looked = 0;
    let bytes = 0;
    let done = false;
    try {
      while (!done) {
        const pulled = iterator.next();
        const result = isAsync ? await this.unless(gone, pulled) : (pulled as IteratorResult<unknown>);
        if (gone.aborted) return false;
        const { value, done: last } = result as IteratorResult<unknown>;
        done = last === true;
        if (!done) {
          const event = new Envelope({ type: 'ADDED', object: value }, { sequence: 0 });
          bytes += event.bytes.length;
          if (!filter || filter(event)) batch.push(this.checked(event));
          if (bytes < SLICE_BYTES && ++looked < BATCH) continue;
        }
        if (batch.length > 0 && !(await this.send(copy, batch))) return false;
        // A source that has all its objects at once must not keep other clients from their turns.
        await new Promise<void>((resolve) => this.settings.nextTurn(resolve));
        batch = [];
        looked = bytes = 0;
      }
    } finally {
      if (!done) ignore(iterator.return?.());
    }
    return true;
  }

  /**
   * Returns the event if clients accept it. Otherwise the whole snapshot fails: without that object, the rest would look like
   * the whole state.
   */
  private checked(event: Envelope): Envelope {
    checkSize('an object of the snapshot', event.bytes.length, this.settings.maxEventBytes);
    return event;
  }

  /** Resolves with true when the connection has room and a slot is free; with false if the client is gone. */
  private async send(copy: Copy, batch: readonly Envelope[]): Promise<boolean> {
    const sent = copy.session.send(batch);
    if (copy.session.hasRoom) return sent;
    this.releaseSlot(copy);
    if (!(await sent)) return false;
    copy.hasSlot = await this.slots.enter(copy.gone, true);
    return copy.hasSlot;
  }

  /**
   * Resolves with the outcome of a promise, or with undefined as soon as the client is gone. Rejects when it takes too long.
   * `Promise.race` would leak: a promise that lasts as long as the client would keep every value it ever raced with.
   */
  private unless<T>(gone: AbortSignal, outcome: T | PromiseLike<T>): Promise<T | undefined> {
    const { snapshotTimeoutMs: timeoutMs, clock } = this.settings;
    return new Promise((resolve, reject) => {
      const late = (): void => settle(() => reject(new Error(`no object for ${timeoutMs} ms (snapshotTimeoutMs)`)));
      const cancel = timeoutMs > 0 ? clock.schedule(timeoutMs, late) : undefined;
      const leave = (): void => settle(() => resolve(undefined));
      const settle = (how: () => void): void => {
        cancel?.();
        gone.removeEventListener('abort', leave);
        how();
      };
      gone.addEventListener('abort', leave);
      Promise.resolve(outcome).then(
        (value) => settle(() => resolve(value)),
        (error: unknown) => settle(() => reject(error)),
      );
      if (gone.aborted) leave();
    });
  }

  private releaseSlot(copy: Copy): void {
    if (copy.hasSlot) this.slots.leave();
    copy.hasSlot = false;
  }
}

/** A snapshot in progress. */
interface Copy extends SnapshotRequest {
  readonly session: HubSession;
  /** Aborts when the client goes. */
  readonly gone: AbortSignal;
  hasSlot: boolean;
}

function iterate(objects: Objects): { iterator: Iterator<unknown> | AsyncIterator<unknown>; isAsync: boolean } {
  if (Symbol.asyncIterator in objects) return { iterator: objects[Symbol.asyncIterator](), isAsync: true };
  return { iterator: objects[Symbol.iterator](), isAsync: false };
}

/** The client is gone, so an error of its source does not matter. */
function ignore(outcome: unknown): void {
  if (outcome instanceof Promise) outcome.catch(() => {});
}

/**
 * A semaphore with two lines. Each line is first come, first served. Callers that have begun and paused go before callers that
 * have not begun, because unfinished work holds more memory.
 */
export class Semaphore {
  private free: number;
  private readonly begun: Set<() => void> = new Set();
  private readonly fresh: Set<() => void> = new Set();

  constructor(slots: number) {
    this.free = slots;
  }

  /** Resolves to true when there is a slot; to false if `gone` aborts first. */
  enter(gone: AbortSignal, hasBegun: boolean = false): Promise<boolean> {
    if (gone.aborted) return Promise.resolve(false);
    if (this.free > 0) {
      this.free--;
      return Promise.resolve(true);
    }
    const line = hasBegun ? this.begun : this.fresh;
    return new Promise((resolve) => {
      const settle = (hasSlot: boolean): void => {
        line.delete(go);
        leave();
        resolve(hasSlot);
      };
      const go = (): void => settle(true);
      const leave = whenAborted(gone, () => settle(false));
      line.add(go);
    });
  }

  /** Frees a slot and gives it to the first in line. */
  leave(): void {
    const [go] = this.begun.size > 0 ? this.begun : this.fresh;
    if (go === undefined) this.free++;
    else go();
  }
}
