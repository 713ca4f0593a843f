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
    <h2 id="objects-title" class="hidden">Objects</h2>
    <label class="hidden" for="kind">Kind</label>
    <select id="kind"></select>
    <label class="hidden" for="namespace">Namespace</label>
    <select id="namespace"><option value="">all namespaces</option></select>
    <label class="hidden" for="selector">Label selector</label>
    <input id="selector" class="code" placeholder="Labels: app=web" autocomplete="off" autocapitalize="off" spellcheck="false" maxlength="5000" aria-describedby="fault">
    <label class="hidden" for="text">Search what is shown</label>
    <input id="text" type="search" placeholder="Search" autocomplete="off" spellcheck="false" maxlength="200">
    <span id="note" class="dim"></span>
    <details id="more">
      <summary>Fields, version, columns</summary>
      <div class="row">
        <label for="fields">Fields</label>
        <input id="fields" class="code" placeholder="metadata.name=a" autocomplete="off" autocapitalize="off" spellcheck="false" maxlength="5000" aria-describedby="fault">
        <label for="version">As of version</label>
        <input id="version" class="code" placeholder="now" inputmode="numeric" autocomplete="off" spellcheck="false" maxlength="200" aria-describedby="fault">
        <label for="breadth">Columns</label>
        <select id="breadth"><option value="">as fits</option><option value="few">name and age</option><option value="usual">usual</option><option value="all">all</option></select>
      </div>
    </details>
    <pre id="fault" role="alert" tabindex="0" hidden></pre>
    <div id="lost-bar" class="row"><p id="lost" role="status" hidden></p><button id="go-live" type="button" hidden>Show what there is now</button></div>
  </div>
  <div id="object-list" tabindex="-1">
    <table id="objects-table" aria-labelledby="objects-title" aria-describedby="lost">
      <colgroup id="object-columns"></colgroup>
      <thead><tr id="object-head" aria-rowindex="1"></tr></thead>
      <tbody id="object-rows" class="rows"></tbody>
    </table>
    <p id="none" class="dim">Reading \u2026</p>
  </div>
</section>`;

const TEMPLATES = `
<template id="object-row"><tr></tr></template>
<template id="resource"><tr>
  <th scope="row"><span class="who" data-part="name"></span> <span class="dim" data-part="version"></span></th>
  <td><span data-part="objects">\u2013</span>${chart('objects')}</td>
  <td><span data-part="watchers">0</span>${chart('watchers')}</td>
  <td><span data-part="lag">0</span>${chart('queued')}</td>
</tr></template>`;

/** The style of the page of objects, beyond that of all pages. */
const OBJECTS_STYLE = `
header { position: sticky; top: 0; z-index: 2; background: var(--ground); }
main { grid-template-rows: auto auto auto 1fr; }
#overview { grid-row: 1; }
#objects { grid-column: 2; grid-row: 2 / span 3; }
#kinds, #cache { grid-column: 1; }
#resources-table thead th:first-child { width: 40%; }
@media (min-width: 80rem) { main { grid-template-columns: minmax(0, 29rem) minmax(0, 1fr); } #resources-table thead th:first-child { width: 54%; } #resources button { letter-spacing: -.01em; } }
@media (max-width: 62rem) { main { grid-template-rows: none; } #overview, #objects { grid-column: 1; grid-row: auto; } }
#ask { display: none; grid-column: 1 / -1; justify-self: center; width: min(30rem, 100%); margin-top: 3rem; padding: 1.4rem 1.5rem; background: var(--panel); border: 1px solid var(--line); border-radius: 10px; }
#ask .dim { margin: .3rem 0 .9rem; }
#token { flex: 1 1 12rem; min-width: 0; }
#ask-fault { margin-top: .7rem; color: var(--bad); font-size: .85rem; }
.locked #ask { display: block; }
.locked main > :not(#ask), .locked .skip { display: none; }
[aria-invalid=true] { border-color: var(--bad); }
#total-behind.some, #cache-behind.some { color: var(--warn); }
#total-dropped.some, #total-cut.some, #total-expired.some { color: var(--bad); }
#resources-table { margin-bottom: -.3rem; }
#resources button { min-height: 0; margin-left: -.45rem; padding: .05rem .45rem; border: 0; border-radius: 6px; background: none; font-weight: 600; text-align: left; overflow-wrap: anywhere; }
#resources button:hover { background: var(--soft); }
#resources button[aria-current] { background: var(--tint); color: var(--accent); }
#cache-window:empty, #cache-note:empty { display: none; }
#cache-note { margin-top: .35rem; }
#history-title { margin-top: .9rem; }
.own { margin-top: .6rem; }
.code { font: .82rem/1.5 var(--mono); }
#objects { display: flex; flex-direction: column; max-height: calc(100dvh - 4.4rem); scroll-margin-top: 4rem; }
#objects .bar { position: static; }
#kind { max-width: 16rem; font-weight: 650; }
#namespace { max-width: 14rem; }
#selector { flex: 1 1 10rem; min-width: 0; max-width: 22rem; }
#objects #text { flex-basis: 9rem; max-width: 16rem; }
#more { flex-basis: 100%; font-size: .85rem; }
#more summary { width: max-content; color: var(--dim); cursor: pointer; }
#more .row { padding-top: .5rem; }
#fields { flex: 1 1 10rem; min-width: 0; max-width: 22rem; }
#version { width: 9rem; }
#fault { flex-basis: 100%; margin: .2rem 0 0; padding: .5rem .7rem; border-radius: 6px; overflow-x: auto; color: var(--bad); background: var(--bad-tint); font: .82rem/1.5 var(--mono); }
#lost-bar { flex-basis: 100%; }
#lost { flex: 1 1 auto; padding: .4rem .7rem; border-radius: 6px; color: var(--bad); background: var(--bad-tint); font-weight: 550; }
#object-list { position: relative; overflow: auto; overflow-anchor: none; scroll-padding-top: 2.1rem; min-height: 8rem; border-radius: 0 0 10px 10px; outline-offset: -2px; }
#objects-table { table-layout: fixed; border-collapse: separate; border-spacing: 0; }
#object-head th { position: sticky; top: 0; z-index: 1; padding: 0; background: var(--panel); }
#object-head button { width: 100%; min-height: 2rem; padding: .2rem .5rem; border: 0; border-radius: 0; background: none; color: inherit; font-size: .8rem; font-weight: 550; text-align: left; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
#object-head button:hover { background: var(--soft); }
#object-head button:focus-visible, #object-rows button:focus-visible { outline-offset: -2px; }
#object-head [aria-sort] { color: var(--ink); }
#object-head [aria-sort] button::after { content: " \u2191"; content: " \u2191" / ""; }
#object-head [aria-sort=descending] button::after { content: " \u2193"; content: " \u2193" / ""; }
#object-rows tr { height: 2.1rem; }
#object-rows td { padding: 0 .5rem; }
#objects-table th:first-child button, #object-rows td:first-child { padding-left: 1rem; }
#object-rows .namespace, #object-rows .age, #object-rows .labels { color: var(--dim); }
#object-rows .number, #object-head .number button { text-align: right; }
#object-rows .name button { max-width: 100%; overflow: hidden; text-overflow: ellipsis; color: var(--ink); font-weight: 500; text-align: left; }
#objects-table.wide tbody .name { position: sticky; left: 0; background: var(--panel); }
#objects-table.wide thead .name { left: 0; z-index: 2; }
#object-rows td, #object-rows button { overflow: clip; }
#object-rows .open td { background: var(--soft); box-shadow: inset 0 2px var(--accent), inset 0 -2px var(--accent); }
#object-rows .leaving td, #object-rows .leaving button { color: var(--dim); }
#object-rows .chip { margin: 0 .3rem 0 0; padding: 0 .45rem; border: 1px solid var(--line); max-width: 12rem; overflow: hidden; text-overflow: ellipsis; vertical-align: middle; border-radius: 1rem; background: var(--soft); color: var(--ink); font-size: .78rem; }
#object-rows .chip[aria-pressed=true] { background: var(--accent); color: var(--panel); }
.lost #object-list { background: repeating-linear-gradient(135deg, transparent 0 .6rem, var(--soft) .6rem 1.2rem); }
@media (max-width: 40rem) {
  #objects-table th:first-child button, #object-rows td:first-child { padding-left: .75rem; }
  #object-rows tr { height: 2.9rem; }
  #object-rows td { padding-top: 0; padding-bottom: 0; vertical-align: middle; }
  #object-rows .name button { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; white-space: normal; overflow-wrap: anywhere; }
  #kind, #namespace { flex: 1 1 8rem; max-width: none; min-width: 0; }
  #selector, #objects #text { flex: 1 1 8rem; max-width: none; }
  #more .row { display: grid; grid-template-columns: auto minmax(0, 1fr); }
  #fields, #version { width: auto; max-width: none; }
  #note { flex-basis: 100%; margin-left: 0; }
  #policy { display: none; }
}
@media (max-height: 30rem) { header { position: static; } #objects { max-height: none; } #object-list { max-height: 90vh; } }
@media (forced-colors: active) {
  #resources button[aria-current], #object-rows .chip[aria-pressed=true] { forced-color-adjust: none; background: Highlight; color: HighlightText; }
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
  // On a phone, the objects come first.
  const main = ASK + OBJECTS + OVERVIEW + RESOURCES + CACHE + DETAIL;
  return inOneFile({ script, style: OBJECTS_STYLE + DETAIL_STYLE, skip: 'objects', main, templates: TEMPLATES });
}
