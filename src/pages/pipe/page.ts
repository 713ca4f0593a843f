import { builtScript, chart, figures, HISTORY, inOneFile, type LivePage, numbers, overview } from '../document.ts';
import { MAX_QUERY_CHARS } from './query.ts';
import { EVENTS_STYLE } from './style.ts';

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
    ['recovered', 'recovered', 'Events that did not fit in a queue, but that clients got after all when they resumed'],
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
    <label class="hidden" for="type">Event type</label>
    <select id="type" hidden></select>
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
