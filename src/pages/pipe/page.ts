/**
 * The style of the page of `pipe`, beyond that of all pages. Every colour has a contrast of at least 4.5 to 1, on every
 * background.
 */
import { builtScript, chart, figures, HISTORY, inOneFile, type LivePage, numbers, overview } from '../document.ts';
import { MAX_QUERY_CHARS } from './query.ts';

const TABLE = `
main { grid-template-columns: minmax(0, 1fr) minmax(0, 23rem); max-width: none; }
#overview { grid-template-columns: minmax(0, 1fr); }
.now { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 .5rem; }
.now .bytes { flex-basis: 100%; }
.totals { grid-template-columns: repeat(auto-fill, minmax(4.6rem, 1fr)); grid-column: auto; }
#history-title { margin-top: .2rem; }
#slow-note { margin: .6rem 0 .9rem; min-height: 4.4em; }
#slow[aria-pressed=true] { background: var(--warn); border-color: var(--warn); }
#events { position: sticky; top: .75rem; display: flex; flex-direction: column; height: calc(100vh - 5.2rem); height: calc(100dvh - 5.2rem); min-height: 22rem; }
#events .bar { position: relative; flex: none; align-items: flex-start; gap: .5rem; padding: .7rem 1rem .5rem; }
#events h2 { padding-top: .45rem; }
.search { flex: 1 1 15rem; min-width: 0; }
#filter { width: 100%; }
#filter[aria-invalid=true] { border-color: var(--bad); }
#hint { min-height: 1.45em; padding-top: .15rem; font: .75rem/1.5 var(--mono); white-space: pre-wrap; overflow-wrap: anywhere; }
#hint.fault { color: var(--bad); }
#type { max-width: 10rem; }
#pause { min-width: 5.2rem; }
.notes { flex-basis: 100%; display: flex; flex-wrap: wrap; gap: 0 1rem; }
#note { margin-left: 0; }
#lost { margin-left: auto; }
#lost.some { color: var(--bad); font-weight: 600; }
#columns-panel { flex-basis: 100%; padding: .5rem 0; border-top: 1px solid var(--line); }
#columns-list { display: grid; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr)); gap: .2rem 1.5rem; margin: 0 0 .6rem; padding: 0; max-height: 14rem; overflow-y: auto; list-style: none; }
#columns-list li { display: flex; align-items: center; gap: .3rem; min-height: 2rem; }
#columns-list label { flex: 1; min-width: 0; overflow-wrap: anywhere; }
#columns-list input[type=checkbox] { min-height: 0; vertical-align: -.1em; accent-color: var(--accent); }
#columns-list button, #columns-list input[type=number] { min-height: 1.75rem; padding: 0 .5rem; }
#columns-list input[type=number] { width: 5.5rem; }
#columns-list button[aria-disabled=true] { color: var(--dim); cursor: default; }
#scroll { position: relative; flex: 1; min-height: 0; overflow: auto; overflow-anchor: none; scroll-padding-top: 2rem; border-radius: 0 0 10px 10px; outline: none; }
#events-table { table-layout: fixed; }
#events-table thead th { position: sticky; top: 0; z-index: 1; background: var(--panel); box-shadow: inset 0 -1px var(--line); border-bottom: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
#events-table .no { width: max(4.5rem, .56rem * var(--digits, 1) + 1.7rem); padding-left: 1rem; }
.grip { position: absolute; right: 0; top: .3rem; bottom: .3rem; width: .6rem; border-right: 2px solid var(--line); cursor: col-resize; touch-action: none; }
.grip:hover { border-color: var(--accent); }
#rows td:nth-child(n+2) { padding-left: .5rem; }
#rows .received { color: var(--dim); }
#rows .type { font-size: .8rem; font-weight: 600; letter-spacing: .02em; color: var(--accent); }
#rows .level { font-weight: 600; }
#rows .field { font: .82rem/1.5 var(--mono); }
#rows tr[data-type=ADDED] .type { color: var(--good); }
#rows tr[data-type=DELETED] .type, #rows tr[data-type=BOOKMARK] .type { color: var(--dim); }
#rows tr[data-type=ERROR] .type, #rows tr[data-type=ERROR] .object { color: var(--bad); }
#rows tr[data-level] .no { box-shadow: inset 3px 0 var(--level, transparent); }
#rows .level { color: var(--level, var(--ink)); }
tr[data-level=trace], tr[data-level=debug] { --level: var(--dim); }
tr[data-level=info], tr[data-level=notice] { --level: var(--accent); }
tr[data-level=warn] { --level: var(--warn); }
tr[data-level=error], tr[data-level=fatal], tr[data-level=alert], tr[data-level=emerg] { --level: var(--bad); }
#rows tr[data-level=fatal] td, #rows tr[data-level=alert] td, #rows tr[data-level=emerg] td { background: var(--bad-tint); }
.wrap .rows .field { white-space: pre-wrap; overflow-wrap: anywhere; }
.wrap .rows td { vertical-align: top; }
.detail .row { padding-top: .5rem; }
#rows .detail .row button { min-height: 1.9rem; margin: 0; padding: .1rem .6rem; border: 1px solid var(--line); background: var(--panel); color: var(--ink); }
@media (max-width: 62rem) {
  main { grid-template-columns: minmax(0, 1fr); }
  #events { position: static; height: 82vh; height: 82dvh; }
}
@media (max-width: 40rem) {
  header { min-height: 0; padding-top: .5rem; padding-bottom: .5rem; }
  header #policy { font-size: .78rem; }
  #events h2 { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  #events .bar { padding: .6rem .75rem .4rem; gap: .4rem; }
  #events .bar > button { flex: 1 1 auto; min-width: 0; padding: .35rem .4rem; font-size: .85rem; }
  .search { flex: 1 1 100%; }
  #events .bar > #type { flex: 1 1 6rem; min-width: 0; max-width: none; padding: .35rem .4rem; font-size: .85rem; }
  #events-table .no { width: max(3.7rem, .56rem * var(--digits, 1) + 1.2rem); padding-left: .75rem; }
  #rows .object span { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; white-space: normal; word-break: break-all; }
  #rows .object span span { display: inline; }
  .wrap #rows .object > span { display: inline; }
  .rows td { vertical-align: top; padding-top: .4rem; padding-bottom: .4rem; }
}
@media (max-height: 30rem) { #events { height: auto; min-height: 0; } #scroll { flex: none; height: 14rem; } }
@media (forced-colors: active) { #slow[aria-pressed=true] { forced-color-adjust: none; background: Highlight; border-color: Highlight; color: HighlightText; } }`;

/** The colours of terminals. As backgrounds they are tints, so that text of any colour is legible on them. */
const TERMINAL = `
.fg1 { color: var(--bad); } .fg2 { color: var(--good); } .fg3 { color: var(--warn); } .fg4 { color: var(--accent); } .fg5 { color: var(--magenta); } .fg6 { color: var(--cyan); } .fg8, .faint { color: var(--dim); }
.bg1 { background: var(--bad-tint); } .bg2, .bg3, .bg4, .bg5, .bg6, .bg8 { background: var(--soft); }
.bold { font-weight: 700; } .italic { font-style: italic; } .underline { text-decoration: underline; } .strike { text-decoration: line-through; } .underline.strike { text-decoration: underline line-through; }
.inverse { background: var(--ink); color: var(--panel); }
:root { --magenta: #96348f; --cyan: #0a6a74; }
@media (prefers-color-scheme: dark) { :root { --magenta: #e79ae0; --cyan: #6fd0da; } }`;

const EVENTS_STYLE: string = TABLE + TERMINAL;

const OVERVIEW = overview({
  heading: 'The stream',
  unit: 'events',
  all: 'accepted',
  here: 'received',
  tiles: [
    ['accepted', 'accepted', 'Events that the server has accepted'],
    ['received', 'received', 'Events that this page has received'],
    ['watching', 'clients', 'Clients that are connected now'],
    ['delivered', 'delivered', 'Events handed to connections, in total'],
    ['sent', 'sent', 'Bytes of events handed to connections, in total'],
    ['dropped', 'dropped', 'Events that clients did not get, in total, not counting those that they recovered'],
    ['recovered', 'recovered', 'Events that did not fit in a queue, but that clients received after all, when they resumed'],
    ['resumes', 'resumes', 'Clients that have reconnected and resumed'],
    ['cut', 'cut', 'Clients that the server has cut'],
    ['refused', 'refused', 'Requests that the server has refused'],
  ],
});

const OWN = `
<section id="own" aria-labelledby="own-title">
  <h2 id="own-title">This page</h2>
  <div class="meter"><div id="own-bar"></div></div>
  ${numbers('', 'own', [
    ['own-queue', 'queue'],
    ['own-lag', 'lag'],
    ['own-dropped', 'dropped'],
    ['own-recovered', 'recovered'],
    ['resumes', 'resumes'],
  ])}
  <div id="slow-panel" hidden>
    <div class="row">
      <button id="slow" type="button" aria-pressed="false" aria-describedby="slow-note">Slow on purpose</button>
      <label class="hidden" for="share">How slow</label>
      <select id="share"><option value="2">to half</option><option value="10" selected>to a tenth</option><option value="100">to a hundredth</option></select>
    </div>
    <p id="slow-note" class="dim"></p>
  </div>
  ${HISTORY}
</section>`;

const CLIENTS = `
<section aria-labelledby="clients-title">${figures('clients', ['client', 'queue', 'lag', 'dropped'])}
  <p id="more-clients" class="dim">No client is connected.</p>
</section>`;

const EVENTS = `
<section id="events" class="listing" aria-labelledby="events-title" tabindex="-1">
  <div class="bar">
    <h2 id="events-title">Events</h2>
    <div class="search">
      <label class="hidden" for="filter">Filter the events</label>
      <input id="filter" type="search" placeholder="Filter" autocomplete="off" autocapitalize="off" spellcheck="false" maxlength="${MAX_QUERY_CHARS}" aria-describedby="hint">
      <p id="hint" class="dim"></p>
    </div>
    <select id="type" aria-label="Event type" hidden></select>
    <button id="wrap" type="button" aria-pressed="false">Wrap</button>
    <button id="columns" type="button" aria-expanded="false" aria-controls="columns-panel">Columns</button>
    <button id="download" type="button" title="Save what is shown, one event per line">Download</button>
    <button id="pause" type="button">Pause</button>
    <p class="notes"><span id="note" class="dim"></span> <span id="lost" class="dim"></span></p>
    <div id="columns-panel" role="group" aria-label="Columns" hidden>
      <ul id="columns-list"></ul>
      <button id="columns-reset" type="button">Let the page choose</button>
    </div>
  </div>
  <div id="scroll" role="group" aria-label="Rows" tabindex="-1">
    <table id="events-table" aria-labelledby="events-title">
      <thead><tr id="head"><th scope="col" class="no">no.</th></tr></thead>
      <tbody id="rows" class="rows"></tbody>
    </table>
    <p id="none" class="dim">No events yet. They appear here as they arrive.</p>
  </div>
</section>`;

const TEMPLATES = `
<template id="row"><tr><td class="no"><button type="button" class="open" aria-expanded="false" tabindex="-1"></button></td></tr></template>
<template id="client"><tr>
  <th scope="row"><span class="who"><span data-part="name"></span> <span data-part="how"></span> <span class="tag" data-part="own" hidden>this page</span> <span class="tag" data-part="resumed" hidden>resumed</span> <span class="tag" data-part="recovered" hidden></span></span>
    <span class="dim"><span data-part="where"></span> <span data-part="sent"></span> <span data-part="waiting"></span></span></th>
  <td><span data-part="queued"></span>${chart('queued')}</td>
  <td><span data-part="lag"></span>${chart('lag')}</td>
  <td><span data-part="dropped"></span>${chart('dropped')}</td>
</tr></template>`;

/**
 * Creates the page that `watchmux pipe` serves at `/`: incoming events, the other clients, and the state of the page's own
 * connection. Its script is `main.ts` with its imports.
 */
export function livePage(script: string = builtScript('live-page.js'), heading?: string): LivePage {
  // Events come first, on a phone too.
  const main = `${EVENTS}
<div class="side">${OVERVIEW}${OWN}${CLIENTS}
</div>`;
  return inOneFile({ script, style: EVENTS_STYLE, heading, skip: 'events', main, templates: TEMPLATES });
}
