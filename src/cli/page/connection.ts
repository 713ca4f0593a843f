import type { ClientState, ClientWatch, StateDetail } from '../../bridge/client.ts';
import { connect } from '../../bridge/client.ts';
import type { WireEvent } from '../../bridge/protocol.ts';
import { WATCH_PATH } from '../../bridge/protocol.ts';
import type { HistoryKind } from './history.ts';
import { CLIENT_HEADER, SLOW } from './stats.ts';
import { count, parseExactly, placeOf, plural } from './words.ts';

/** The callbacks of a {@link Connection}. */
export interface ConnectionEvents {
  readonly onEvents: (batch: readonly WireEvent[]) => void;
  /** Reports something that a reader may want to look up later. */
  readonly onHistory: (text: string, kind: HistoryKind) => void;
  readonly onState: (state: ClientState, delayMs: number | undefined) => void;
}

/**
 * This page's ownState watch: the client of `watchmux/client`, with its states put into words. `reopen` ends the watch and starts
 * another one that continues where the first was.
 */
export class Connection {
  /** Which of the server's clients this page is; undefined until it is known. */
  own: number | undefined = undefined;
  /** Bytes per second that the page asks for; 0 means no limit. */
  slow: number = 0;
  resumes: number = 0;
  private readonly events: ConnectionEvents;
  private watch: ClientWatch<WireEvent> | undefined = undefined;
  private reading: Promise<void> = Promise.resolve();

  constructor(events: ConnectionEvents) {
    this.events = events;
  }

  open(from?: string): void {
    const url = new URL(WATCH_PATH, location.href);
    url.searchParams.set(SLOW, String(this.slow));
    let asked = from;
    const watch = connect<WireEvent>(url, {
      transport: 'http',
      resourceVersion: from,
      onExpired: 'restart',
      backoff: { maxMs: MAX_PAUSE_MS },
      codec: EXACT,
      fetch: async (target, init) => {
        asked = target.searchParams.get('resourceVersion') ?? undefined;
        const response = await fetch(target, init);
        this.own = Number(response.headers.get(CLIENT_HEADER)) || undefined;
        return response;
      },
      onStateChange: (state, detail) => {
        this.tell(state, detail, asked);
        this.events.onState(state, detail.delayMs);
      },
    });
    this.watch = watch;
    this.events.onState('connecting', undefined);
    this.reading = this.read(watch);
  }

  /** Ends the watch and starts another one, which continues after the last event. */
  async reopen(): Promise<void> {
    const from = await this.close();
    this.open(from);
  }

  /** Does not wait for the next attempt, nor for a connection over which nothing has come since then. */
  renew(sinceMs: number): void {
    const { watch } = this;
    if (watch !== undefined && watch.state !== 'connecting' && (watch.lastContactMs ?? 0) < sinceMs) watch.reconnect();
  }

  /** Ends the watch. Returns the version to continue after. */
  async close(): Promise<string | undefined> {
    const { watch } = this;
    watch?.stop();
    await this.reading;
    return watch?.resourceVersion;
  }

  private async read(watch: ClientWatch<WireEvent>): Promise<void> {
    for await (const batch of watch.batches()) this.events.onEvents(batch);
  }

  private tell(state: ClientState, { error }: StateDetail, asked: string | undefined): void {
    const { onHistory } = this.events;
    if (state === 'open') {
      const place = placeOf(asked);
      if (place === undefined) onHistory('Connected: new events arrive from now on.', 'good');
      else {
        this.resumes++;
        onHistory(`Connected, and resumed after event ${count(place)}: nothing is missing, and nothing is repeated.`, 'good');
      }
      return;
    }
    this.own = undefined;
    if (error === undefined || state === 'connecting') return;
    const missed = error.details?.missed;
    if (error.code === 410 && missed !== undefined) {
      const lost = `${plural(missed, 'event')} did not fit in its queue`;
      onHistory(`Cut by the server (410): this page was too slow, and ${lost}. It reconnects and asks for them.`, 'cut');
    } else if (error.code === 410 && asked !== undefined) {
      const place = count(placeOf(asked) ?? 0);
      const why = 'that was too long ago, or the server has been restarted';
      onHistory(`Expired (410): the server cannot resume after event ${place}; ${why}. Starting from now.`, 'loss');
    } else if (error.code === 410) {
      onHistory('The connection broke before there was an event to resume after. Starting from now.', 'loss');
    } else if (error.message === ENDED) {
      onHistory('The stream has ended. If it goes on, this page resumes.', 'note');
    } else {
      onHistory(state === 'closed' ? `Ended: ${error.message}` : `Connection lost: ${error.message}`, 'note');
    }
  }
}

const utf8 = new TextDecoder();
/** The server's lines are events. */
const EXACT = { decode: (frame: Uint8Array): WireEvent => parseExactly(utf8.decode(frame)) as WireEvent };

/** How the client reports a response that is complete: a source has ended, or a proxy has cut a long response. */
const ENDED = 'status 200';
/** The longest pause between two attempts. */
const MAX_PAUSE_MS = 10_000;
