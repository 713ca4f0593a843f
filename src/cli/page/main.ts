/**
 * The script of the live page. Its parts, in the order in which data flows:
 *
 *     /watch --> Connection --> EventStore --> EventTable
 *                     '--> ConnectionPanel
 *     /stats --> Poller --> Overview, ClientTable, ConnectionPanel
 *
 * Everything is bounded: events held, rows shown, points of a chart, entries of the history. Events that arrive faster than they
 * can be shown are counted and skipped.
 */
import { STATS_PATH } from '../../bridge/protocol.ts';
import { Announcer } from './announcer.ts';
import { ClientTable } from './client-table.ts';
import { Connection } from './connection.ts';
import { ConnectionPanel } from './connection-panel.ts';
import { byId } from './elements.ts';
import { EventStore } from './event-store.ts';
import { EventTable } from './event-table.ts';
import { History } from './history.ts';
import { Overview } from './overview.ts';
import { Poller } from './poller.ts';
import type { PipeStats } from './stats.ts';

/** The minimum time between two redraws of the table. */
const DRAW_MS = 120;

const store = new EventStore({ maxRows: 2_000, maxChars: 8_000_000 });
const table = new EventTable(
  {
    body: byId<HTMLTableSectionElement>('rows'),
    empty: byId('none'),
    note: byId('note'),
    pause: byId<HTMLButtonElement>('pause'),
    text: byId<HTMLInputElement>('text'),
    type: byId<HTMLSelectElement>('type'),
  },
  store,
);
const overview = new Overview();
const clients = new ClientTable(byId<HTMLTableSectionElement>('clients'), byId('more-clients'));

let drawing = false;
const draw = (): void => {
  if (drawing) return;
  drawing = true;
  setTimeout(() => {
    drawing = false;
    table.draw();
  }, DRAW_MS);
};

const history = new History(new Announcer(byId('announcer')));
const connection = new Connection({
  onEvents: (batch) => {
    store.push(batch);
    draw();
  },
  onHistory: (text, kind) => history.add(text, kind),
  onState: (state, delayMs) => panel.onState(state, delayMs),
});
const panel = new ConnectionPanel(connection, history);

const poller = new Poller<PipeStats>({
  ask: async (signal) => {
    const answer = await fetch(STATS_PATH, { signal, cache: 'no-store' });
    if (!answer.ok) throw new Error(answer.statusText);
    return (await answer.json()) as PipeStats;
  },
  onAnswer: (stats) => {
    document.body.classList.remove('stale');
    overview.show(stats, store.received);
    clients.show(stats, connection.own);
    panel.show(stats);
  },
  // Old numbers must not look like current ones.
  onFault: () => {
    document.body.classList.add('stale');
    panel.lost();
  },
  intervalMs: 1_000,
  maxIntervalMs: 15_000,
  timeoutMs: 5_000,
});

let left: Promise<string | undefined> | undefined;
addEventListener('pagehide', () => {
  poller.stop();
  left = connection.close();
});
// Restored from the back/forward cache: the page continues where it was.
addEventListener('pageshow', ({ persisted }) => {
  if (!persisted) return;
  void left?.then((from) => connection.open(from));
  poller.start();
});
// Browsers throttle the timers of a hidden page. Catch up at once when it becomes visible.
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) poller.start();
});

table.draw();
connection.open();
poller.start();
