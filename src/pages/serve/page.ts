import { builtScript, chart, figures, HISTORY, inOneFile, type LivePage, numbers, overview } from '../document.ts';
import { DETAIL, DETAIL_STYLE } from './detail/markup.ts';

const OVERVIEW = overview({
  heading: 'The server',
  unit: 'changes',
  all: 'all objects',
  here: 'this page',
  tiles: [
    ['objects', 'objects', 'Objects of all resources that clients have asked for'],
    ['changes', 'changes', 'Changes of objects since the server started'],
    ['watchers', 'watchers', 'Watches that are open'],
    ['behind', 'behind', 'Watches whose events are queued because their connections have no room'],
    ['cut', 'cut', 'Watches that the server has cut because their clients stopped reading'],
    ['delivered', 'delivered', 'Events handed to connections, in total'],
    ['sent', 'sent', 'Bytes of watches and long lists handed to connections, in total'],
    ['requests', 'requests', 'Requests that the server has answered'],
    ['refused', 'refused', 'Requests that the server has refused, by status code'],
    ['expired', 'expired', 'Watches that were ended with 410 because they were too slow'],
  ],
});

const ASK = `
<form id="ask" aria-labelledby="ask-title">
  <h2 id="ask-title">This server requires a token</h2>
  <p class="dim">It is the one that was passed to <code>watchmux serve --token</code>. This page forgets it when it is closed or reloaded.</p>
  <div class="row">
    <label class="hidden" for="token">Token</label>
    <input id="token" type="password" placeholder="Token" autocomplete="off" spellcheck="false" maxlength="1000" aria-describedby="ask-fault" required>
    <button type="submit">Open</button>
  </div>
  <p id="ask-fault" role="alert" hidden></p>
</form>`;

const RESOURCES = `
<section id="kinds" aria-labelledby="resources-title">${figures('resources', ['resource', 'objects', 'watchers', 'lag'])}
</section>`;

const CACHE = `
<section id="cache" aria-labelledby="cache-title">
  <h2 id="cache-title">Cache</h2>
  ${numbers('cache-', 'own', [
    ['watchers', 'watchers', 'Watches that are open'],
    ['behind', 'behind', 'Watches whose events are queued because their connections have no room'],
    ['lag', 'lag', 'The most events that are queued for one watch'],
    ['views', 'views', 'Different selections among the watches: each change is matched once per selection'],
    ['gaps', 'gaps', 'How often all watches were ended with 410 because the storage could not tell what had changed'],
  ])}
  <p id="cache-window" class="dim"></p>
  <p id="cache-note" class="dim"></p>
  ${HISTORY}
</section>`;

const OBJECTS = `
<section id="objects" class="listing" aria-labelledby="objects-title" tabindex="-1">
  <div class="bar">
    <h2 id="objects-title">Objects</h2>
    <label class="hidden" for="namespace">Namespace</label>
    <select id="namespace"><option value="">all namespaces</option></select>
    <label class="hidden" for="selector">Label selector</label>
    <input id="selector" placeholder="Labels, such as app=web" autocomplete="off" autocapitalize="off" spellcheck="false" maxlength="5000" aria-describedby="fault">
    <label class="hidden" for="text">Search the names</label>
    <input id="text" type="search" placeholder="Search names" autocomplete="off" spellcheck="false" maxlength="200">
    <span id="note" class="dim"></span>
    <pre id="fault" role="alert" hidden></pre>
  </div>
  <table id="objects-table" aria-labelledby="objects-title">
    <thead><tr id="object-head"></tr></thead>
    <tbody id="object-rows" class="rows"></tbody>
  </table>
  <p id="none" class="dim">Reading \u2026</p>
</section>`;

const TEMPLATES = `
<template id="object-row"><tr></tr></template>
<template id="resource"><tr>
  <th scope="row"><span class="who" data-part="name"></span> <span class="dim" data-part="version"></span></th>
  <td><span data-part="objects">\u2013</span>${chart('objects')}</td>
  <td><span data-part="watchers">0</span>${chart('watchers')}</td>
  <td><span data-part="lag">0</span>${chart('queued')}</td>
</tr></template>`;

/** What the page of objects has besides the style of all pages. */
const OBJECTS_STYLE = `
main { grid-template-rows: auto auto 1fr; }
#objects { grid-column: 2; grid-row: 2 / span 2; }
#kinds, #cache { grid-column: 1; }
@media (max-width: 62rem) { main { grid-template-rows: none; } #objects { grid-column: 1; grid-row: auto; } }
#ask { display: none; grid-column: 1 / -1; justify-self: center; width: min(30rem, 100%); margin-top: 3rem; padding: 1.4rem 1.5rem; background: var(--panel); border: 1px solid var(--line); border-radius: 10px; }
#ask .dim { margin: .3rem 0 .9rem; }
#token { flex: 1 1 12rem; min-width: 0; }
#ask-fault { margin-top: .7rem; color: var(--bad); font-size: .85rem; }
.locked #ask { display: block; }
.locked main > :not(#ask), .locked .skip { display: none; }
[aria-invalid=true] { border-color: var(--bad); }
#total-behind.some, #cache-behind.some { color: var(--warn); }
#total-dropped.some, #total-cut.some, #total-expired.some { color: var(--bad); }
#resources-table thead th:first-child { width: 40%; }
#resources-table { margin-bottom: -.3rem; }
#resources button { min-height: 0; margin-left: -.45rem; padding: .05rem .45rem; border: 0; border-radius: 6px; background: none; font-weight: 600; text-align: left; overflow-wrap: anywhere; }
#resources button:hover { background: var(--soft); }
#resources button[aria-current] { background: var(--tint); color: var(--accent); }
#cache-window:empty, #cache-note:empty { display: none; }
#cache-note { margin-top: .35rem; }
#history-title { margin-top: .9rem; }
.own { margin-top: .6rem; }
#objects .bar { min-height: 3.65rem; }
#namespace { max-width: 14rem; }
#selector { flex: 1 1 10rem; min-width: 0; max-width: 20rem; font: .82rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
#objects #text { flex-basis: 7rem; max-width: 14rem; }
#fault { flex-basis: 100%; margin: .2rem 0 0; padding: .5rem .7rem; border-radius: 6px; overflow-x: auto; color: var(--bad); background: var(--bad-tint); font: .82rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
#objects-table { table-layout: fixed; }
#objects-table th:first-child, #object-rows td:first-child { padding-left: 1rem; }
#objects-table .namespace { width: 24%; color: var(--dim); }
#objects-table .age { width: 5.5rem; color: var(--dim); }
#object-rows td { padding-top: .32rem; padding-bottom: .32rem; white-space: normal; overflow-wrap: anywhere; }
#object-rows button { color: var(--ink); font-weight: 500; text-align: left; overflow-wrap: anywhere; }
#object-rows .leaving td, #object-rows .leaving button { color: var(--dim); }
@media (max-width: 40rem) {
  #objects-table th:first-child, #object-rows td:first-child { padding-left: .75rem; }
  #objects-table .namespace { width: 30%; }
  #objects-table .age { width: 4.2rem; }
  #objects-table .more { display: none; }
  #namespace, #selector, #objects #text { flex: 1 1 100%; max-width: none; }
  #note { margin-left: 0; }
  #objects .bar { position: static; }
}
@media (forced-colors: active) {
  #resources button[aria-current] { forced-color-adjust: none; background: Highlight; color: HighlightText; }
}
@media (max-width: 24rem) {
  #resources-table thead th { padding-right: 0; font-size: .7rem; }
  #resources-table th:not(:first-child), #resources-table td { padding-left: .15rem; padding-right: .15rem; }
  #resources button { padding-right: .2rem; font-size: .85rem; letter-spacing: -.01em; }
}`;

/**
 * Creates the page that `watchmux serve` shows to browsers at `/`: the resources, the objects of one of them, and the state of
 * the server. It contains no data of the server: it asks for that, as any client does, with a token if there is one. Its script
 * is `main.ts` with its imports.
 */
export function objectsPage(script: string = builtScript('objects-page.js')): LivePage {
  const main = ASK + OVERVIEW + RESOURCES + OBJECTS + CACHE + DETAIL;
  return inOneFile({ script, style: OBJECTS_STYLE + DETAIL_STYLE, skip: 'objects', main, templates: TEMPLATES });
}
