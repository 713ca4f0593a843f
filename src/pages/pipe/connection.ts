import { type ClientState, type ClientWatch, connect, type StateDetail } from '../../bridge/client.ts';
import type { ClientStats } from '../../bridge/hub/connection.ts';
import { WATCH_PATH, type WireEvent } from '../../bridge/protocol.ts';
import type { Overflow } from '../../watch/overflow.ts';
import { byId, type PageHistory, StateLine, say } from '../elements.ts';
import { CLIENT_HEADER, count, type PipeClient, type PipeStats, parseExactly, placeOf, plural, SLOW, size } from '../words.ts';

interface PageConnectionEvents {
  readonly onEvents: (batch: readonly WireEvent[]) => void;
  readonly onState: (state: ClientState, delayMs: number | undefined) => void;
}

/**
 * This page's own watch: the client of `watchmux/client`, with its states put into words. `reopen` ends the watch and starts
 * another one that continues where the first was.
 */
export class PageConnection {
  /** Which of the server's clients this page is; undefined until it is known. */
  own: number | undefined = undefined;
  /** Bytes per second that the page asks for; 0 means no limit. */
  slow: number = 0;
  resumes: number = 0;
  private readonly history: PageHistory;
  private readonly events: PageConnectionEvents;
  private watch: ClientWatch<WireEvent> | undefined = undefined;
  private reading: Promise<void> = Promise.resolve();

  constructor(history: PageHistory, events: PageConnectionEvents) {
    this.history = history;
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

  /** Does not wait for the next attempt, or for a connection that has been silent since then. */
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
    const { history } = this;
    if (state === 'open') {
      const place = placeOf(asked);
      if (place === undefined) history.add('Connected: new events arrive from now on.', 'good');
      else {
        this.resumes++;
        history.add(`Connected, and resumed after event ${count(place)}: nothing is missing, and nothing is repeated.`, 'good');
      }
      return;
    }
    this.own = undefined;
    if (error === undefined || state === 'connecting') return;
    const missed = error.details?.missed;
    if (error.code === 410 && missed !== undefined) {
      const lost = `${plural(missed, 'event')} did not fit in its queue`;
      history.add(`Cut by the server (410): this page was too slow, and ${lost}. It reconnects and asks for them.`, 'cut');
    } else if (error.code === 410 && asked !== undefined) {
      const place = count(placeOf(asked) ?? 0);
      const why = 'that was too long ago, or the server has been restarted';
      history.add(`Expired (410): the server cannot resume after event ${place}; ${why}. Starting from now.`, 'loss');
    } else if (error.code === 410) {
      history.add('The connection broke before there was an event to resume after. Starting from now.', 'loss');
    } else if (error.message === ENDED) {
      history.add('The stream has ended. If it goes on, this page resumes.', 'note');
    } else {
      history.add(state === 'closed' ? `Ended: ${error.message}` : `Connection lost: ${error.message}`, 'note');
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

/** The rate to request if none has been measured yet, and the lowest one. */
const LEAST_BYTES_PER_SECOND = 64;

/** What happens when a queue is full, by policy. */
const POLICIES: Readonly<Record<Overflow, string>> = {
  disconnect: 'the server cuts this page and reports how many events it missed; then the page reconnects and asks for them',
  'drop-oldest': 'the oldest events in it are dropped',
  'drop-newest': 'new events are dropped',
  coalesce: 'only the latest state of each object is kept',
  wait: 'the source waits for this page, and so do all other clients',
};

/** The state of this page's connection in words, and the button that slows it down. */
export class ConnectionPanel {
  private readonly connection: PageConnection;
  private readonly history: PageHistory;
  private readonly line: StateLine = new StateLine();
  private bytesPerSecond: number = 0;
  private last: { readonly id: number; readonly sentBytes: number; readonly atMs: number } | undefined = undefined;
  private policy: Overflow | undefined = undefined;
  private state: ClientState = 'connecting';
  /** Since when the server has not answered. */
  private lostMs: number | undefined = undefined;

  constructor(connection: PageConnection, history: PageHistory) {
    this.connection = connection;
    this.history = history;
    // For demonstrations of policies: a page in ordinary use does not offer it.
    byId('slow-panel').toggleAttribute('hidden', !new URLSearchParams(location.search).has(SLOW));
    byId('slow').addEventListener('click', () => void this.setSlow(connection.slow === 0));
    byId('share').addEventListener('change', () => connection.slow > 0 && void this.setSlow(true));
    byId('retry').addEventListener('click', () => void connection.reopen());
  }

  onState(state: ClientState, delayMs: number | undefined): void {
    this.state = state;
    say(byId('resumes'), count(this.connection.resumes));
    this.showState(delayMs);
  }

  private showState(delayMs?: number): void {
    const { state, lostMs } = this;
    const slow = this.connection.slow > 0;
    // A lost network leaves the connection open. It would look live until it has been silent for too long.
    if (state === 'open' && lostMs !== undefined) this.line.show('off', 'the server does not answer', { retry: true });
    else if (state === 'open') this.line.show(slow ? 'slow' : 'live', slow ? 'live, slow on purpose' : 'live');
    else if (state === 'connecting') this.line.show('connecting', 'connecting');
    else if (state === 'closed') this.line.show('off', 'ended', { retry: true });
    else this.line.countDown(delayMs ?? 0);
  }

  /** The server does not answer. */
  lost(): void {
    this.lostMs ??= performance.now();
    if (this.state === 'open') this.showState();
  }

  private found(): void {
    const { lostMs } = this;
    if (lostMs === undefined) return;
    this.lostMs = undefined;
    if (this.state === 'open') this.showState();
    this.connection.renew(lostMs);
  }

  /** Shows new numbers from the server. */
  show(stats: PipeStats): void {
    this.found();
    this.policy = stats.overflow;
    say(byId('policy'), `queue per client: ${plural(stats.capacity, 'event')}, overflow: ${stats.overflow}`);
    const own = stats.clients.find(({ id }) => id === this.connection.own);
    const queued = own?.queued ?? 0;
    say(byId('own-queue'), `${count(queued)} of ${count(stats.capacity)}`);
    byId('own-bar').style.transform = `scaleX(${Math.min(1, queued / stats.capacity)})`;
    byId('own-lag').textContent = count(own?.lag ?? 0);
    byId('own-dropped').textContent = count(own?.dropped ?? 0);
    this.showRecovered(own);
    if (own !== undefined && this.connection.slow === 0) this.measure(own);
    this.explain(own);
  }

  /** Shows how many events this page has recovered. While it is not connected, the last number stays. */
  private showRecovered(own: PipeClient | undefined): void {
    if (own !== undefined) say(byId('own-recovered'), count(own.recovered));
  }

  /** Measures how much the server sends this page per second at full speed, smoothed over some seconds. */
  private measure({ id, sentBytes }: { readonly id: number; readonly sentBytes: number }): void {
    const atMs = performance.now();
    const { last } = this;
    this.last = { id, sentBytes, atMs };
    if (last?.id !== id) return;
    const now = ((sentBytes - last.sentBytes) * 1_000) / Math.max(1, atMs - last.atMs);
    this.bytesPerSecond = this.bytesPerSecond === 0 ? now : this.bytesPerSecond * 0.8 + now * 0.2;
  }

  private async setSlow(slow: boolean): Promise<void> {
    const share = Number(byId<HTMLSelectElement>('share').value);
    this.connection.slow = slow ? Math.max(LEAST_BYTES_PER_SECOND, Math.round(this.bytesPerSecond / share)) : 0;
    byId('slow').setAttribute('aria-pressed', String(slow));
    document.body.classList.toggle('slow', slow);
    const text = slow
      ? `Slow on purpose: from now on, the server sends this page at most ${this.pace}.`
      : 'Full speed again: the server no longer limits the rate of this page.';
    this.history.add(text, 'note');
    this.explain();
    await this.connection.reopen();
  }

  private get pace(): string {
    return `${size(this.connection.slow)} per second`;
  }

  private explain(own?: ClientStats): void {
    const full = this.policy === undefined ? 'its policy decides' : POLICIES[this.policy];
    const slow = this.connection.slow > 0;
    const cut = this.policy === 'disconnect' && own !== undefined && own.dropped > 0;
    const text = cut
      ? `The queue was full, so the server has cut this page. The queued events are still on their way (${size(own.bufferedBytes)}). Then the stream ends, and the page reconnects for the rest.`
      : slow
        ? `The server sends this page at most ${this.pace}, as if its network were that slow. Further events wait in its queue. When the queue is full: ${full}.`
        : `Limits the rate of this page so that its queue on the server fills up. When the queue is full: ${full}.`;
    say(byId('slow-note'), text);
  }
}
