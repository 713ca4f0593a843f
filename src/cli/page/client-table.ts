import { area, bars, Series } from './charts.ts';
import { say } from './elements.ts';
import { arrange, FigureRow } from './figure-row.ts';
import type { PipeClient, PipeStats } from './stats.ts';
import { count, plural, size } from './words.ts';

/** Clients in the table. If there are more, those that lag most are shown. */
const MAX_CLIENTS = 40;
/** Points of a chart: one minute, at one sample per second. */
const POINTS = 60;
const BOX = { width: 64, height: 20 };

/** The clients: queue, lag and losses of each, now and during the last minute. */
export class ClientTable {
  private readonly body: HTMLTableSectionElement;
  private readonly rest: Element;
  private readonly rows: Map<number, ClientRow> = new Map();

  constructor(body: HTMLTableSectionElement, rest: Element) {
    this.body = body;
    this.rest = rest;
  }

  /** `ownState` is the id of the client that this page is. */
  show({ clients, capacity, overflow }: PipeStats, own: number | undefined): void {
    const shown = choose(clients, own);
    const present = new Set(shown.map(({ id }) => id));
    for (const id of this.rows.keys()) if (!present.has(id)) this.rows.delete(id);
    const elements = shown.map((client) => {
      const row = this.rows.get(client.id) ?? new ClientRow('client');
      this.rows.set(client.id, row);
      row.show(client, { capacity, own: client.id === own, returns: overflow === 'disconnect' });
      return row.element;
    });
    arrange(this.body, elements);
    const hidden = clients.length - shown.length;
    this.rest.toggleAttribute('hidden', hidden === 0 && clients.length > 0);
    say(this.rest, clients.length === 0 ? 'No client is connected.' : `and ${plural(hidden, 'more client')}, which lag less`);
  }
}

function choose(clients: readonly PipeClient[], own: number | undefined): readonly PipeClient[] {
  const few =
    clients.length <= MAX_CLIENTS
      ? [...clients]
      : [...clients].sort((a, b) => Number(b.id === own) - Number(a.id === own) || b.lag - a.lag).slice(0, MAX_CLIENTS);
  return few.sort((a, b) => Number(b.id === own) - Number(a.id === own) || a.id - b.id);
}

interface Circumstances {
  readonly capacity: number;
  /** It is this page. */
  readonly own: boolean;
  /** The policy is one whose clients are cut, and may resume. */
  readonly returns: boolean;
}

class ClientRow extends FigureRow {
  private readonly queued: Series = new Series(POINTS);
  private readonly lag: Series = new Series(POINTS);
  private readonly lost: Series = new Series(POINTS);
  private dropped: number = 0;

  show(client: PipeClient, { capacity, own, returns }: Circumstances): void {
    this.queued.push(client.queued);
    this.lag.push(client.lag);
    this.lost.push(Math.max(0, client.dropped - this.dropped));
    this.dropped = client.dropped;
    this.say('name', `${client.id}`);
    this.say('how', client.transport);
    this.say('where', client.address);
    this.say('sent', `${count(client.delivered)} sent, ${size(client.sentBytes)}`);
    this.say('waiting', client.bufferedBytes > 0 ? `${size(client.bufferedBytes)} on the way` : '');
    this.say('queued', count(client.queued));
    this.say('lag', count(client.lag));
    this.say('dropped', count(client.dropped));
    this.part('own').toggleAttribute('hidden', !own);
    this.part('resumed').toggleAttribute('hidden', !client.resumed);
    this.element.classList.toggle('full', client.queued >= capacity);
    // A client that is cut can come back for what it has missed, so that is not a loss yet.
    this.element.classList.toggle('loses', client.dropped > 0 && !returns);
    this.element.classList.toggle('misses', client.dropped > 0 && returns);
    this.part('recovered').toggleAttribute('hidden', client.recovered === 0);
    this.say('recovered', `recovered ${count(client.recovered)}`);
    this.draw('queued', area(this.queued, BOX, Math.max(capacity, 1)));
    this.draw('lag', area(this.lag, BOX, Math.max(this.lag.max, capacity, 1)));
    this.draw('dropped', bars(this.lost, BOX, Math.max(this.lost.max, 1)));
  }
}
