import type { ClientState } from '../../bridge/client.ts';
import type { ClientStats } from '../../bridge/hub/connection.ts';
import type { Overflow } from '../../watch/overflow.ts';
import type { Connection } from './connection.ts';
import { byId, say } from './elements.ts';
import type { History } from './history.ts';
import { StateLine } from './state-line.ts';
import type { PipeClient, PipeStats } from './stats.ts';
import { count, plural, size } from './words.ts';

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
  private readonly connection: Connection;
  private readonly history: History;
  private readonly line: StateLine = new StateLine();
  private bytesPerSecond: number = 0;
  private last: { readonly id: number; readonly sentBytes: number; readonly atMs: number } | undefined = undefined;
  private policy: Overflow | undefined = undefined;
  private state: ClientState = 'connecting';
  /** Since when the server does not answer. */
  private lostMs: number | undefined = undefined;

  constructor(connection: Connection, history: History) {
    this.connection = connection;
    this.history = history;
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
    // A lost network leaves the connection open. It would look live until nothing has come for too long.
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

  /** Shows what this page has got after all. While it is not connected, the last number stays. */
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
