/** The page's icon: one line that becomes many. */
const ICON = `<svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round"><path d="M2 12h6M8 12c5 0 4-7 9-7h5M8 12h14M8 12c5 0 4 7 9 7h5"/></svg>`;

/** A small chart, whose path the script sets. */
const chart = (name: string): string =>
  `<svg class="spark" data-chart="${name}" viewBox="0 0 64 20" preserveAspectRatio="none" aria-hidden="true"><path/></svg>`;

const tile = (name: string, label: string, title: string): string =>
  `<div title="${title}"><dt>${label}</dt><dd id="total-${name}">0</dd></div>`;

const OVERVIEW = `
<section id="overview" aria-labelledby="rate-title">
  <h2 id="rate-title" class="hidden">The stream</h2>
  <p class="now"><span id="rate">0</span> <span class="unit">events per second</span> <span class="unit bytes"><span id="bytes">0 bytes</span> per second sent</span></p>
  <figure>
    <svg id="rate-chart" role="img" aria-label="Events per second in the last two minutes" viewBox="0 0 600 96" preserveAspectRatio="none">
      <path id="rate-area"/><path id="rate-line" vector-effect="non-scaling-stroke"/><path id="rate-here" vector-effect="non-scaling-stroke"/>
    </svg>
    <figcaption><span class="key all">accepted</span> <span class="key here">received</span> <span class="span">last two minutes, top edge <span id="rate-top">1</span> per second</span></figcaption>
  </figure>
  <dl class="totals">
    ${tile('accepted', 'accepted', 'Events that the server has accepted')}
    ${tile('received', 'received', 'Events that this page has received')}
    ${tile('watching', 'clients', 'Clients that are connected now')}
    ${tile('delivered', 'delivered', 'Events handed to connections, in total')}
    ${tile('sent', 'sent', 'Bytes of events handed to connections, in total')}
    ${tile('dropped', 'dropped', 'Events that clients did not get, in total, without those that they recovered')}
    ${tile('recovered', 'recovered', 'Events that did not fit in a queue, and that their clients got after all, because they resumed')}
    ${tile('resumes', 'resumes', 'Clients that have reconnected and resumed')}
    ${tile('cut', 'cut', 'Clients that the server has cut')}
    ${tile('refused', 'refused', 'Requests that the server has refused')}
  </dl>
</section>`;

const OWN = `
<section id="own" aria-labelledby="own-title">
  <h2 id="own-title">This page</h2>
  <div class="meter"><div id="own-bar"></div></div>
  <dl class="own">
    <div><dt>queue</dt><dd id="own-queue">0</dd></div>
    <div><dt>lag</dt><dd id="own-lag">0</dd></div>
    <div><dt>dropped</dt><dd id="own-dropped">0</dd></div>
    <div><dt>recovered</dt><dd id="own-recovered">0</dd></div>
    <div><dt>resumes</dt><dd id="resumes">0</dd></div>
  </dl>
  <div class="row">
    <button id="slow" type="button" aria-pressed="false" aria-describedby="slow-note">Slow on purpose</button>
    <label class="hidden" for="share">How slow</label>
    <select id="share"><option value="2">to half</option><option value="10" selected>to a tenth</option><option value="100">to a hundredth</option></select>
  </div>
  <p id="slow-note" class="dim"></p>
  <h3 id="history-title">History</h3>
  <ol id="history" aria-labelledby="history-title" tabindex="0"></ol>
</section>`;

const CLIENTS = `
<section aria-labelledby="clients-title">
  <h2 id="clients-title">Clients</h2>
  <table id="clients-table" aria-labelledby="clients-title">
    <thead><tr><th scope="col">client</th><th scope="col">queue</th><th scope="col">lag</th><th scope="col">dropped</th></tr></thead>
    <tbody id="clients"></tbody>
  </table>
  <p id="more-clients" class="dim">No client is connected.</p>
</section>`;

const EVENTS = `
<section id="events" aria-labelledby="events-title" tabindex="-1">
  <div class="bar">
    <h2 id="events-title">Events</h2>
    <label class="hidden" for="text">Search the events</label>
    <input id="text" type="search" placeholder="Search" autocomplete="off" spellcheck="false" maxlength="200">
    <label class="hidden" for="type">Event type</label>
    <select id="type"><option value="">all types</option></select>
    <button id="pause" type="button">Pause</button>
    <span id="note" class="dim"></span>
  </div>
  <table id="events-table" aria-labelledby="events-title">
    <thead><tr><th scope="col">no.</th><th scope="col">time</th><th scope="col">type</th><th scope="col">object</th></tr></thead>
    <tbody id="rows"></tbody>
  </table>
  <p id="none" class="dim">No events yet. They appear here as they arrive.</p>
</section>`;

const TEMPLATES = `
<template id="row"><tr><td><button type="button" aria-expanded="false" tabindex="-1"></button></td><td></td><td></td><td><span></span></td></tr></template>
<template id="client"><tr>
  <th scope="row"><span class="who"><span data-part="name"></span> <span data-part="how"></span> <span class="tag" data-part="own" hidden>this page</span> <span class="tag" data-part="resumed" hidden>resumed</span> <span class="tag" data-part="recovered" hidden></span></span>
    <span class="dim"><span data-part="where"></span> <span data-part="sent"></span> <span data-part="waiting"></span></span></th>
  <td><span data-part="queued"></span>${chart('queued')}</td>
  <td><span data-part="lag"></span>${chart('lag')}</td>
  <td><span data-part="dropped"></span>${chart('dropped')}</td>
</tr></template>`;

/** The parts of the page that are not always the same. */
interface Parts {
  readonly style: string;
  readonly script: string;
  readonly title: string | undefined;
}

/** Returns the page with its style and its script. */
export function pageHtml({ style, script, title }: Parts): string {
  const heading = title === undefined ? 'watchmux' : toMarkup(title);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${heading}</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<a class="skip" href="#events">Skip to the events</a>
<header>
  <h1>${ICON} <span>${heading}</span></h1>
  <p id="state" data-state="connecting">connecting</p>
  <button id="retry" type="button" hidden>Try now</button>
  <p class="old">These numbers are out of date: the server does not respond.</p>
  <p id="policy" class="dim"></p>
</header>
<main>${OVERVIEW}
<div class="side">${OWN}${CLIENTS}
</div>${EVENTS}
</main>
<p id="announcer" class="hidden" role="status" aria-live="polite"></p>
${TEMPLATES}
<script type="module">${script}</script>
</body>
</html>
`;
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

function toMarkup(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] as string);
}
