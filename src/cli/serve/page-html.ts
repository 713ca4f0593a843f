import { chart, frame, HISTORY, overview } from '../page-parts.ts';

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
<section id="kinds" aria-labelledby="resources-title">
  <h2 id="resources-title">Resources</h2>
  <table id="resources-table" class="figures" aria-labelledby="resources-title">
    <thead><tr><th scope="col">resource</th><th scope="col">objects</th><th scope="col">watchers</th><th scope="col">lag</th></tr></thead>
    <tbody id="resources"></tbody>
  </table>
</section>`;

const CACHE = `
<section id="cache" aria-labelledby="cache-title">
  <h2 id="cache-title">Cache</h2>
  <dl class="own">
    <div title="Watches that are open"><dt>watchers</dt><dd id="cache-watchers">0</dd></div>
    <div title="Watches whose events are queued because their connections have no room"><dt>behind</dt><dd id="cache-behind">0</dd></div>
    <div title="The most events that are queued for one watch"><dt>lag</dt><dd id="cache-lag">0</dd></div>
    <div title="Different selections among the watches: each change is matched once per selection"><dt>views</dt><dd id="cache-views">0</dd></div>
    <div title="How often all watches were ended with 410 because the storage could not tell what had changed"><dt>gaps</dt><dd id="cache-gaps">0</dd></div>
  </dl>
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

/** Returns the page with its style and its script. */
export function objectsHtml({ style, script }: { readonly style: string; readonly script: string }): string {
  return frame({
    ...{ style, script, templates: TEMPLATES, heading: 'watchmux', skip: { to: 'objects', name: 'objects' } },
    main: ASK + OVERVIEW + RESOURCES + OBJECTS + CACHE,
  });
}
