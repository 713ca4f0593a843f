import type { WatchOptions } from '../../broadcast/broadcaster.ts';
import { Broadcaster } from '../../broadcast/broadcaster.ts';
import type { ErrorEvent, Status, WatchEvent } from '../../watch/event.ts';
import type { Envelope } from '../events/envelope.ts';
import { eventKey } from '../events/key.ts';
import { ReplayWindow } from '../events/window.ts';
import { toVersion } from '../protocol.ts';
import type { HubSettings } from './hub-options.ts';
import type { Asked } from './query.ts';
import type { ReadableWatch } from './session-host.ts';
import type { Start } from './start.ts';
import { toStart } from './start.ts';

/**
 * The events of a hub: a broadcaster for future events, and a window of the most recent ones.
 *
 *     publisher --> broadcaster --+--> watches of clients, the bell
 *                                 '--> tail --catchUp--> window --> what a client has missed
 *
 * The window is as of the last `catchUp`. A caller that runs `catchUp`, `start` and `watch` in one synchronous step gets missed
 * and live events without a gap or a repetition.
 */
export class Feed {
  readonly broadcaster: Broadcaster<Envelope, ErrorEvent>;
  private readonly settings: HubSettings<WatchEvent>;
  private readonly window: ReplayWindow;
  /** Events that were distributed but are not in the window yet. */
  private readonly tail: ReadableWatch<Envelope>;

  constructor(settings: HubSettings<WatchEvent>) {
    const { capacity, overflow, keyOf, maxPending, replayItems, replayBytes } = settings;
    this.settings = settings;
    // With an incoming queue, an event could be accepted but not distributed. Neither the tail nor a new client would see it.
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

  /** Position of the last distributed event. */
  get head(): number {
    return this.window.head;
  }

  /** Watches all events from now on. */
  watch(options: WatchOptions<Envelope>): ReadableWatch<Envelope> {
    return this.broadcaster.watch(options) as ReadableWatch<Envelope>;
  }

  /** Returns where a client with this request starts, or a Status of code 410 or 400. */
  start(asked: Asked): Start | Status {
    const { epoch, replay, snapshot } = this.settings;
    return toStart(asked, { epoch, replay, window: this.window, hasSnapshot: snapshot !== undefined });
  }

  /** Returns the version of a position. */
  versionOf(sequence: number): string {
    return toVersion(this.settings.epoch, sequence);
  }

  /** Moves distributed events into the window. Returns the head. */
  catchUp(): number {
    for (let batch = this.tail.tryBatch(); batch !== undefined; batch = this.tail.tryBatch()) {
      for (const envelope of batch) this.window.push(envelope);
    }
    return this.window.head;
  }
}
