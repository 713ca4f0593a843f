import type { WatchOptions } from '../broadcast/broadcaster.ts';
import { Broadcaster } from '../broadcast/broadcaster.ts';
import type { Status, WatchEvent } from '../watch/event.ts';
import type { Envelope } from './envelope.ts';
import type { HubSettings } from './hub-options.ts';
import { eventKey } from './key.ts';
import { toVersion } from './protocol.ts';
import type { Asked } from './query.ts';
import type { ReadableWatch } from './session-host.ts';
import type { Start } from './start.ts';
import { toStart } from './start.ts';
import { ReplayWindow } from './window.ts';

/**
 * The events of a hub: those to come in a broadcaster, the last of those that were in a window.
 *
 *     publisher --> broadcaster --+--> watches of clients, the bell
 *                                 '--> tail --catchUp--> window --> what a client has missed
 *
 * What is asked of the past is as of the last `catchUp`. Who calls `catchUp`, `start` and `watch` in one synchronous step gets
 * what was missed and what is live without a gap, and nothing of it twice.
 */
export class Feed {
  readonly broadcaster: Broadcaster<Envelope>;
  private readonly settings: HubSettings<WatchEvent>;
  private readonly window: ReplayWindow;
  /** What was distributed and is not in the window yet. */
  private readonly tail: ReadableWatch<Envelope>;

  constructor(settings: HubSettings<WatchEvent>) {
    const { capacity, overflow, keyOf, maxPending, replayItems, replayBytes } = settings;
    this.settings = settings;
    // Nothing may be accepted and not yet distributed: neither the tail nor a new client would see it.
    this.broadcaster = new Broadcaster<Envelope>({
      capacity,
      overflow,
      maxPending,
      incoming: 0,
      keyOf: (event) => eventKey(event, keyOf),
    });
    this.tail = this.watch({ capacity: Math.max(replayItems, 1), overflow: 'drop-oldest' });
    this.window = new ReplayWindow({ items: replayItems, bytes: replayBytes });
  }

  /** The place of the last event that was distributed. */
  get head(): number {
    return this.window.head;
  }

  /** What comes from now on. */
  watch(options: WatchOptions<Envelope>): ReadableWatch<Envelope> {
    return this.broadcaster.watch(options) as ReadableWatch<Envelope>;
  }

  /** Where a client begins that asked so; a Status of code 410 or 400 if it cannot. */
  start(asked: Asked): Start | Status {
    const { epoch, replay, snapshot } = this.settings;
    return toStart(asked, { epoch, replay, window: this.window, hasSnapshot: snapshot !== undefined });
  }

  /** The version of a place. */
  versionOf(sequence: number): string {
    return toVersion(this.settings.epoch, sequence);
  }

  /** Moves what was distributed into the window. Answers the head. */
  catchUp(): number {
    for (let batch = this.tail.tryBatch(); batch !== undefined; batch = this.tail.tryBatch()) {
      for (const envelope of batch) this.window.push(envelope);
    }
    return this.window.head;
  }
}
