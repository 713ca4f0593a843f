// What both pages are made of, in Node: one document that loads nothing, with its style, and the policy that allows nothing else.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** A page, and the content security policy that allows it and nothing else. */
export interface LivePage {
  readonly html: string;
  readonly policy: string;
}

/** Returns a script that was bundled when this package was built. It is next to the built command line. */
export function builtScript(name: string): string {
  return readFileSync(new URL(name, import.meta.url), 'utf8');
}

function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

/** The page's icon: one line that becomes many. */
const ICON = `<svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round"><path d="M2 12h6M8 12c5 0 4-7 9-7h5M8 12h14M8 12c5 0 4 7 9 7h5"/></svg>`;

/** A small chart, whose path the script sets. */
export const chart = (name: string): string =>
  `<svg class="spark" data-chart="${name}" viewBox="0 0 64 20" preserveAspectRatio="none" aria-hidden="true"><path/></svg>`;

/** A number: the end of its id, its label, and what it means. */
type Tile = readonly [name: string, label: string, title?: string];

/** Numbers with labels; their ids begin with `of`. */
export const numbers = (of: string, style: string, tiles: readonly Tile[]): string => {
  const tile = ([name, label, title]: Tile): string =>
    `<div${title ? ` title="${title}"` : ''}><dt>${label}</dt><dd id="${of}${name}">0</dd></div>`;
  return `<dl class="${style}">\n    ${tiles.map(tile).join('\n    ')}\n  </dl>`;
};

/** A section with a table of figures, whose rows the script adds. */
export const figures = (id: string, columns: readonly string[]): string => `
  <h2 id="${id}-title">${toTitle(id)}</h2>
  <table id="${id}-table" class="figures" aria-labelledby="${id}-title">
    <thead><tr>${columns.map((name) => `<th scope="col">${name}</th>`).join('')}</tr></thead>
    <tbody id="${id}"></tbody>
  </table>`;

/** What the overview of a page shows. */
interface OverviewWords {
  /** What the numbers are about, for screen readers. */
  readonly heading: string;
  /** What is counted per second: `events`. */
  readonly unit: string;
  /** What the two lines are. */
  readonly all: string;
  readonly here: string;
  readonly tiles: readonly Tile[];
}

/** The first section: a rate, as a number and as a chart, and totals. */
export function overview({ heading, unit, all, here, tiles }: OverviewWords): string {
  return `
<section id="overview" aria-labelledby="rate-title">
  <h2 id="rate-title" class="hidden">${heading}</h2>
  <p class="now"><span id="rate">0</span> <span class="unit">${unit} per second</span> <span class="unit bytes"><span id="bytes">0 bytes</span> per second sent</span></p>
  <figure>
    <svg id="rate-chart" role="img" aria-label="${toTitle(unit)} per second in the last two minutes" viewBox="0 0 600 96" preserveAspectRatio="none">
      <path id="rate-area"/><path id="rate-line" vector-effect="non-scaling-stroke"/><path id="rate-here" vector-effect="non-scaling-stroke"/>
    </svg>
    <figcaption><span class="key all">${all}</span> <span class="key here">${here}</span> <span class="span">last two minutes, top edge <span id="rate-top">1</span> per second</span></figcaption>
  </figure>
  ${numbers('total-', 'totals', tiles)}
</section>`;
}

const toTitle = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** What has happened on this page, newest first. */
export const HISTORY = `<h3 id="history-title">History</h3>
  <ol id="history" aria-labelledby="history-title" tabindex="0"></ol>`;

/** What differs between pages. */
interface PageParts {
  readonly style?: string;
  readonly script: string;
  /** As text; default: the name of this program. */
  readonly heading?: string | undefined;
  /** Where the first link leads: an id, and what is there. */
  readonly skip: string;
  /** The content of `main`, and the templates after it; as markup. */
  readonly main: string;
  readonly templates: string;
}

/** A style without the white space that it can be read by; none of its strings has what is replaced here. */
const packed = (style: string): string =>
  style
    .replace(/\s*([{};])\s*/g, '$1')
    .replace(/([:,]) /g, '$1')
    .replaceAll(';}', '}');

/**
 * Makes a page of one file that loads nothing, so it works without a network: head, header with the state of the connection,
 * content, script. Data is inserted only as text, never as markup.
 */
export function inOneFile({ style = '', script, heading = 'watchmux', skip, main, templates }: PageParts): LivePage {
  const title = heading.replace(/[&<>"']/g, (character) => ENTITIES[character] as string);
  const styles = packed(STYLE + style);
  // The only sequences that an inline script must not contain. The replacements mean the same in JavaScript.
  const safe = script.replaceAll('</script', '<\\/script').replaceAll('<!--', '\\x3c!--');
  const policy = [
    "default-src 'none'",
    `style-src ${hashOf(styles)}`,
    `script-src ${hashOf(safe)}`,
    "connect-src 'self'",
    // Allows the empty icon, which keeps browsers from requesting one.
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="data:,">
<style>${styles}</style>
</head>
<body>
<a class="skip" href="#${skip}">Skip to the ${skip}</a>
<header>
  <h1>${ICON} <span>${title}</span></h1>
  <p id="state" data-state="connecting">connecting</p>
  <button id="retry" type="button" hidden>Try now</button>
  <p class="old">These numbers are out of date: the server does not respond.</p>
  <p id="policy" class="dim"></p>
</header>
<main>${main}
</main>
<p id="announcer" class="hidden" role="status" aria-live="polite"></p>
${templates}
<script type="module">${safe}</script>
</body>
</html>
`;
  return { html, policy: policy.join('; ') };
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** The page's colours, light and dark. Text has a contrast of at least 4.5 to 1 against its background in both. */
const COLOURS = `
:root {
  --mono: ui-monospace, "SF Mono", Menlo, Consolas, monospace;
  color-scheme: light dark;
  --ground: #f7f7f5; --panel: #fff; --ink: #1d2023; --dim: #5b626a; --line: #e2e3df; --soft: #f1f1ee;
  --accent: #1f5fae; --tint: #1f5fae1f; --good: #14713a; --warn: #8a5800; --bad: #b0261d; --bad-tint: #b0261d14;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #121416; --panel: #191c1f; --ink: #e6e8ea; --dim: #9ba3ab; --line: #2a2f34; --soft: #202428;
    --accent: #82b6ff; --tint: #82b6ff26; --good: #74d394; --warn: #e8b860; --bad: #ff9087; --bad-tint: #ff908717;
  }
}`;

const BASICS = `
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 14px/1.45 system-ui, -apple-system, "Segoe UI", sans-serif; font-variant-numeric: tabular-nums; }
h1, h2, h3, p, dl, dd, figure, ol { margin: 0; padding: 0; }
h1 { display: flex; align-items: center; gap: .5rem; font-size: 1.05rem; font-weight: 650; letter-spacing: -.01em; }
h1 svg { color: var(--accent); flex: none; }
h1 span { overflow-wrap: anywhere; }
h2 { font-size: .95rem; font-weight: 650; letter-spacing: -.005em; }
h3 { font-size: .8rem; font-weight: 600; color: var(--dim); }
.dim { color: var(--dim); font-size: .85rem; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.skip { position: absolute; left: .5rem; top: -4rem; z-index: 3; padding: .5rem .8rem; background: var(--panel); color: var(--accent); border-radius: 6px; }
.skip:focus { top: .5rem; }
button, select, input { font: inherit; color: inherit; background: var(--panel); border: 1px solid var(--line); border-radius: 7px; padding: .35rem .7rem; min-height: 2.2rem; }
::placeholder { color: var(--dim); opacity: 1; }
button { cursor: pointer; font-weight: 550; }
button:hover, select:hover { border-color: var(--dim); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
button[aria-pressed=true], button.on { background: var(--accent); border-color: var(--accent); color: var(--panel); }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 500; }
thead th { color: var(--dim); font-size: .8rem; padding: .3rem .5rem; border-bottom: 1px solid var(--line); }`;

const LAYOUT = `
header { display: flex; flex-wrap: wrap; align-items: center; gap: .3rem 1.1rem; min-height: 3.4rem; padding: .4rem 1.25rem; }
main { display: grid; grid-template-columns: minmax(0, 24rem) minmax(0, 1fr); gap: 1rem; padding: 0 1.25rem 2rem; max-width: 110rem; align-items: start; }
section { background: var(--panel); border: 1px solid var(--line); border-radius: 10px; padding: .9rem 1rem; }
#overview { grid-column: 1 / -1; }
.side { display: grid; gap: 1rem; grid-template-columns: minmax(0, 1fr); }
.row, .bar { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem; }
@media (max-width: 62rem) { main { grid-template-columns: minmax(0, 1fr); } header #policy { flex-basis: 100%; margin-left: 0; } }
@media (max-width: 40rem) { header, main { padding-left: .75rem; padding-right: .75rem; } main, .side { gap: .75rem; } section { padding: .75rem; } }`;

const STATE = `
#state::before { content: ""; display: inline-block; width: .6em; height: .6em; margin-right: .5em; border-radius: 50%; background: var(--dim); }
#state[data-state=live]::before { background: var(--good); }
#state[data-state=slow]::before { background: var(--warn); }
#state[data-state=off]::before { background: none; box-shadow: inset 0 0 0 2px var(--bad); }
#state[data-state=slow] { color: var(--warn); }
#state[data-state=off] { color: var(--bad); }
#policy { margin-left: auto; }
.old { display: none; color: var(--bad); }
.stale .old { display: block; }
.stale :is(#overview, .figures, .own) { color: var(--dim); filter: grayscale(1); }`;

const OVERVIEW = `
#overview { display: grid; grid-template-columns: auto minmax(12rem, 1fr) auto; gap: .5rem 2rem; align-items: center; }
.now { display: grid; min-width: 9.5rem; }
#rate { font-size: 2.9rem; line-height: 1.1; font-weight: 300; letter-spacing: -.03em; }
.unit { color: var(--dim); }
#rate-chart { display: block; width: 100%; height: 5.2rem; overflow: visible; border-bottom: 1px solid var(--line); }
#rate-area { fill: var(--tint); }
#rate-line, #rate-here { fill: none; stroke: var(--accent); stroke-width: 1.5; stroke-linejoin: round; }
#rate-here { stroke: var(--warn); stroke-dasharray: 4 3; }
figcaption { display: flex; flex-wrap: wrap; gap: .1rem 1rem; padding-top: .3rem; color: var(--dim); font-size: .8rem; }
.key::before { content: ""; display: inline-block; width: 1.1em; margin-right: .4em; vertical-align: .25em; border-top: 2px solid var(--accent); }
.key.here::before { border-top: 2px dashed var(--warn); }
.span { margin-left: auto; }
.totals { display: grid; grid-template-columns: repeat(5, minmax(4.6rem, auto)); gap: .55rem 1.2rem; }
dt { color: var(--dim); font-size: .8rem; }
dd { font-weight: 600; }
#total-dropped.some, #total-refused.some { color: var(--bad); }
#total-recovered.some { color: var(--good); }
@media (max-width: 62rem) { #overview { grid-template-columns: auto minmax(0, 1fr); } .totals { grid-column: 1 / -1; grid-template-columns: repeat(auto-fit, minmax(4.6rem, 1fr)); } }
@media (max-width: 40rem) { #overview { grid-template-columns: minmax(0, 1fr); } .now { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 .5rem; } .bytes { flex-basis: 100%; } .totals { grid-template-columns: repeat(auto-fit, minmax(3.8rem, 1fr)); gap: .5rem .4rem; } .span { margin-left: 0; } }`;

const SIDE = `
.meter { height: 6px; margin: .7rem 0 .6rem; border-radius: 3px; background: var(--soft); overflow: hidden; }
#own-bar { height: 100%; background: var(--accent); transform: scaleX(0); transform-origin: left; transition: transform .3s; }
.slow #own-bar { background: var(--warn); }
.own { display: grid; grid-template-columns: repeat(5, auto); justify-content: space-between; gap: .5rem; margin-bottom: .8rem; }
#history { list-style: none; max-height: 12rem; overflow-y: auto; font-size: .85rem; }
#history li { position: relative; padding: .3rem 0 .3rem .9rem; border-top: 1px solid var(--line); }
#history li:first-child { border-top: 0; }
#history li::before { content: ""; position: absolute; left: 0; top: .72rem; width: .4rem; height: .4rem; border-radius: 50%; background: var(--dim); }
#history .good::before { background: var(--good); }
#history .loss::before { background: var(--bad); }
#history .cut::before { background: var(--warn); }
#history time { color: var(--dim); }
.figures { table-layout: fixed; margin-top: .4rem; }
.figures thead th { padding: .3rem .4rem; }
.figures thead th:first-child { padding-left: 0; width: 44%; }
.figures thead th:last-child { padding-right: 0; }
.figures tbody th, .figures td { padding: .45rem .4rem; vertical-align: top; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
.figures tbody th { padding-left: 0; }
.figures tr:last-child > * { border-bottom: 0; }
.who { font-weight: 600; }
.figures th .dim, .figures th .dim span { display: block; font-weight: 400; }
.tag { display: inline-block; padding: 0 .4em; border-radius: 4px; background: var(--tint); color: var(--accent); font-size: .75rem; font-weight: 550; }
.spark { display: block; width: 100%; height: 1.25rem; margin-top: .15rem; border-bottom: 1px solid var(--line); overflow: visible; }
.spark path { fill: var(--accent); fill-opacity: .35; }
.full [data-chart=queued] path { fill: var(--warn); fill-opacity: .7; }
[data-chart=dropped] path { fill: var(--bad); fill-opacity: 1; }
.loses [data-part=dropped] { color: var(--bad); font-weight: 600; }
.misses [data-part=dropped] { color: var(--warn); font-weight: 600; }
.misses [data-chart=dropped] path { fill: var(--warn); }
#more-clients { padding-top: .5rem; }
@media (max-width: 40rem) { #history { max-height: 8rem; } }`;

const EVENTS = `
.listing { padding: 0; }
.bar { position: sticky; top: 0; z-index: 1; padding: .7rem 1rem; background: var(--panel); border-radius: 10px 10px 0 0; border-bottom: 1px solid var(--line); }
.bar h2 { margin-right: .5rem; }
#text { flex: 1 1 9rem; min-width: 0; max-width: 20rem; }
#note { margin-left: auto; }
.space td { padding: 0; border: 0; }
.rows td { padding: .22rem .5rem; border-bottom: 1px solid var(--line); overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.rows tr[data-id] { cursor: pointer; }
.rows tr[data-id]:hover td { background: var(--soft); }
.rows td:nth-child(1) { padding-left: 1rem; overflow: visible; }
.rows button { min-height: 0; padding: 0 .2rem; margin-left: -.2rem; border: 0; border-radius: 4px; background: none; font-weight: 400; color: var(--dim); }
.rows button[aria-expanded=true] { color: var(--ink); font-weight: 600; }
.rows .gap td { padding-left: 1rem; color: var(--bad); background: var(--bad-tint); font: inherit; font-size: .85rem; }
.rows .detail td { padding: .5rem 1rem .9rem; white-space: normal; color: var(--dim); font: inherit; font-size: .85rem; letter-spacing: 0; background: var(--soft); }
.detail p { overflow-wrap: anywhere; }
.detail pre { margin: .5rem 0 0; max-height: 30rem; overflow: auto; color: var(--ink); font: .85rem/1.5 var(--mono); white-space: pre-wrap; overflow-wrap: anywhere; }
.detail .key::before { display: none; }
.detail .key { color: var(--accent); }
.detail .string { color: var(--good); }
.detail span { unicode-bidi: isolate; }
.detail .number { color: var(--warn); }
#none { padding: 1.5rem 1rem; }
@media (max-width: 40rem) {
  .bar { padding: .6rem .75rem; } .bar h2 { margin-right: 0; } #text { flex-basis: 12rem; max-width: none; }
  .rows td:nth-child(1) { padding-left: .75rem; }
  .rows td { vertical-align: top; padding-top: .4rem; padding-bottom: .4rem; }
}
@media (max-height: 30rem) { .bar { position: static; } }
@media (forced-colors: active) {
  .meter, #own-bar, .spark, #rate-chart, #state::before, #history li::before { forced-color-adjust: none; }
  button[aria-pressed=true], button.on { forced-color-adjust: none; background: Highlight; border-color: Highlight; color: HighlightText; }
}
@media print {
  header, .rows .name, .listing, .listing > *, .listing thead th { position: static !important; }
  .listing, .listing > *, .detail pre { height: auto !important; max-height: none !important; overflow: visible !important; }
}
@media (prefers-reduced-motion: reduce) { * { transition: none !important; animation: none !important; scroll-behavior: auto !important; } }`;

const STYLE: string = [COLOURS, BASICS, LAYOUT, STATE, OVERVIEW, SIDE, EVENTS].join('\n');
