/**
 * The script of the live page. Its parts, in the order in which data flows:
 *
 *     /watch --> Connection --> EventStore --> EventTable <-- EventPanel: filter, columns, wrap
 *                     '--> ConnectionPanel
 *     /stats --> Poller --> Overview, ClientTable, ConnectionPanel
 *
 * Everything is bounded: events held, rows shown, points of a chart, entries of the history. Events that arrive faster than they
 * can be shown are counted and skipped.
 */
import { STATS_PATH } from '../../bridge/protocol.ts';
import { getOrMake } from '../../watch/errors.ts';
import { arrange, bars, byId, drawingSoon, FigureRow, Overview, onPageLife, PageHistory, pollNumbers, say } from '../elements.ts';
import { count, type PipeClient, type PipeStats, plural, size } from '../words.ts';
import { ConnectionPanel, PageConnection } from './connection.ts';
import { PipeEvents } from './events.ts';
import { EventPanel } from './panel.ts';
import { EventTable } from './table.ts';

/** The stream as a whole: events per second, as accepted by the server and as received by this page, and the totals. */
function showOverview({ accepted, clients, total, recovered }: PipeStats, received: number): void {
  const { delivered, dropped, sentBytes, resumes, cut, cuts, refused, refusals } = total;
  // What a client has recovered is not lost, here as in the history of this page.
  const lost = Math.max(0, dropped - recovered);
  const totals = { accepted, received, watching: clients.length, delivered, dropped: lost, recovered, resumes, cut, refused };
  const here = store.missed > 0 ? `, ${count(store.missed)} of them here` : '';
  say(byId('lost'), lost + store.missed === 0 ? 'nothing lost' : `${count(lost)} lost${here}`);
  byId('lost').classList.toggle('some', lost + store.missed > 0);
  overview.show({ all: accepted, here: received, sentBytes }, totals, { cut: cuts, refused: refusals });
}

/** Clients in the table. If there are more, those that lag most are shown. */
const MAX_CLIENTS = 40;
/** The clients: queue, lag and losses of each, now and during the last minute. */
class ClientTable {
  private readonly body: HTMLTableSectionElement;
  private readonly rest: Element;
  private readonly rows: Map<number, ClientRow> = new Map();

  constructor(body: HTMLTableSectionElement, rest: Element) {
    this.body = body;
    this.rest = rest;
  }

  /** `own` is the id of the client that this page is. */
  show({ clients, capacity, overflow }: PipeStats, own: number | undefined): void {
    const shown = choose(clients, own);
    const present = new Set(shown.map(({ id }) => id));
    for (const id of this.rows.keys()) if (!present.has(id)) this.rows.delete(id);
    const elements = shown.map((client) => {
      const row = getOrMake(this.rows, client.id, () => new ClientRow('client'));
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
  /** Its policy cuts clients, which may then resume. */
  readonly returns: boolean;
}

class ClientRow extends FigureRow {
  private dropped: number = 0;

  show(client: PipeClient, { capacity, own, returns }: Circumstances): void {
    this.draw('queued', client.queued, { top: () => capacity });
    this.draw('lag', client.lag, { top: (max) => Math.max(max, capacity) });
    this.draw('dropped', Math.max(0, client.dropped - this.dropped), { as: bars });
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
  }
}

const store = new PipeEvents({ maxRows: 10_000, maxChars: 16_000_000 });
const history = new PageHistory();
const table: EventTable = new EventTable(store, {
  onLevel: () => events.onLevel(),
  onCopied: (text) => history.tell(text),
});
const events: EventPanel = new EventPanel(store, { table, tell: (text) => history.tell(text) });
const overview = new Overview('Events');
const clients = new ClientTable(byId<HTMLTableSectionElement>('clients'), byId('more-clients'));

const draw = drawingSoon(() => {
  events.learn();
  table.draw();
});
const connection = new PageConnection(history, {
  onEvents: (batch) => {
    store.push(batch);
    draw();
  },
  onState: (state, delayMs) => panel.onState(state, delayMs),
});
const panel = new ConnectionPanel(connection, history);

const poller = pollNumbers<PipeStats>({
  ask: async (signal) => {
    const answer = await fetch(STATS_PATH, { signal, cache: 'no-store' });
    if (!answer.ok) throw new Error(answer.statusText);
    return (await answer.json()) as PipeStats;
  },
  onAnswer: (stats) => {
    showOverview(stats, store.received);
    clients.show(stats, connection.own);
    panel.show(stats);
  },
  onFault: () => panel.lost(),
});

let left: Promise<string | undefined> | undefined;
onPageLife({
  leave: () => {
    poller.stop();
    left = connection.close();
  },
  // The page continues where it was.
  comeBack: () => {
    void left?.then((from) => connection.open(from));
    poller.start();
  },
  seen: () => poller.start(),
});

connection.open();
poller.start();
