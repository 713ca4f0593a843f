import { createHash } from 'node:crypto';
import { STATS_PATH, WATCH_PATH } from '../bridge/protocol.ts';

/** The live page, and the content security policy that lets it and nothing else run. */
export interface LivePage {
  readonly html: string;
  readonly policy: string;
}

/**
 * The page that `watchmux pipe` serves at `/`: events as they come, and who else is watching. One file, nothing to load, so
 * it works without a network; data gets into it as text only, never as markup.
 */
export function livePage(): LivePage {
  const policy = [
    "default-src 'none'",
    `style-src ${hashOf(STYLE)}`,
    `script-src ${hashOf(SCRIPT)}`,
    "connect-src 'self'",
    // The empty icon that keeps browsers from asking for one.
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  return { html: HTML, policy: policy.join('; ') };
}

function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

const STYLE = `
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --dim: light-dark(#555, #aaa); --accent: light-dark(#0b62c4, #6db3ff); --bad: light-dark(#b3261e, #ff8a80); --good: light-dark(#1b7f3b, #6fd08c); }
* { box-sizing: border-box; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; padding: 1rem; max-width: 72rem; }
header { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; align-items: baseline; }
h1 { font-size: 1.3rem; margin: 0; }
h2 { font-size: 1rem; margin: 1.25rem 0 .4rem; }
#state::before { content: "\\25CF"; margin-right: .4em; color: var(--bad); }
#state[data-state=live]::before { color: var(--good); }
#numbers { color: var(--dim); font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; color: var(--dim); white-space: nowrap; }
.number { text-align: right; }
.lost { color: var(--bad); font-weight: 600; }
#events { table-layout: fixed; }
#events th:nth-child(1) { width: 5rem; }
#events th:nth-child(2) { width: 7.5rem; }
#events td { font-family: ui-monospace, monospace; font-size: .85rem; overflow-wrap: anywhere; }
#events td:nth-child(2) { color: var(--accent); }
#events tr[data-type=ERROR] td { color: var(--bad); }
.empty { color: var(--dim); }
@media (max-width: 40rem) { body { padding: .6rem; font-size: 14px; } th, td { padding: .2rem .35rem; } #events th:nth-child(1) { width: 3rem; } #events th:nth-child(2) { width: 5.5rem; } #clients td:nth-child(3), #clients-head th:nth-child(3) { display: none; } }
`;

const SCRIPT = `
'use strict';
const KEPT = 300, SHOWN = 600;
const by = (id) => document.getElementById(id);
const rows = by('rows'), clients = by('clients'), state = by('state'), numbers = by('numbers'), none = by('none');
let waiting = [], received = 0, framed = false, stats;

const say = (name, words) => { state.dataset.state = name; state.textContent = words; };
const cell = (text, name) => { const td = document.createElement('td'); td.textContent = text; if (name) td.className = name; return td; };

// Rows are made once per frame, and only those that will stay: a flood of events must not drown the page.
const draw = () => {
  framed = false;
  const fresh = document.createDocumentFragment();
  for (const { id, data } of waiting.reverse()) {
    let type = '?', text = data;
    try { const event = JSON.parse(data); type = String(event.type); text = typeof event.object === 'string' ? event.object : JSON.stringify(event.object); } catch {}
    const tr = document.createElement('tr');
    tr.dataset.type = type;
    tr.append(cell(id.split('.').pop()), cell(type), cell(text.length > SHOWN ? text.slice(0, SHOWN) + ' \\u2026' : text));
    fresh.append(tr);
  }
  waiting = [];
  rows.prepend(fresh);
  while (rows.rows.length > KEPT) rows.deleteRow(-1);
  none.hidden = rows.rows.length > 0;
  count();
};

const count = () => {
  const all = stats ? ' of ' + stats.accepted + ' accepted' : '';
  numbers.textContent = received + ' events here' + all;
};

const source = new EventSource('${WATCH_PATH}');
source.onopen = () => say('live', 'live');
source.onerror = () => say('off', source.readyState === EventSource.CLOSED ? 'ended: reload to try again' : 'not connected, trying again');
source.onmessage = ({ lastEventId, data }) => {
  received++;
  waiting.push({ id: lastEventId, data });
  if (waiting.length > KEPT) waiting.shift();
  if (!framed) { framed = true; requestAnimationFrame(draw); }
};

const poll = async () => {
  try {
    const answer = await fetch('${STATS_PATH}');
    stats = await answer.json();
    clients.replaceChildren(...stats.clients.slice(0, 200).map((client) => {
      const tr = document.createElement('tr');
      tr.append(cell(client.id, 'number'), cell(client.transport), cell(client.address), cell(client.queued, 'number'),
        cell(client.delivered, 'number'), cell(client.dropped, client.dropped ? 'number lost' : 'number'));
      return tr;
    }));
    count();
  } catch { /* the state above says it */ }
  setTimeout(poll, 1000);
};
poll();
`;

const HTML = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>watchmux</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style>
</head>
<body>
<header><h1>watchmux</h1><span id="state" role="status">connecting</span><span id="numbers"></span></header>
<main>
<h2>Clients</h2>
<div class="scroll"><table>
<thead id="clients-head"><tr><th class="number">id</th><th>transport</th><th>address</th><th class="number">queued</th><th class="number">delivered</th><th class="number">dropped</th></tr></thead>
<tbody id="clients"></tbody>
</table></div>
<h2>Events, newest first</h2>
<table id="events">
<thead><tr><th>no.</th><th>type</th><th>object</th></tr></thead>
<tbody id="rows"></tbody>
</table>
<p id="none" class="empty">None yet.</p>
</main>
<script>${SCRIPT}</script>
</body>
</html>
`;
