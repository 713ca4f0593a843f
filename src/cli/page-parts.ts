/** What the pages of the command line have in common, as markup. */

/** The page's icon: one line that becomes many. */
const ICON = `<svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round"><path d="M2 12h6M8 12c5 0 4-7 9-7h5M8 12h14M8 12c5 0 4 7 9 7h5"/></svg>`;

/** A small chart, whose path the script sets. */
export const chart = (name: string): string =>
  `<svg class="spark" data-chart="${name}" viewBox="0 0 64 20" preserveAspectRatio="none" aria-hidden="true"><path/></svg>`;

const tile = ([name, label, title]: Tile): string => `<div title="${title}"><dt>${label}</dt><dd id="total-${name}">0</dd></div>`;

/** A number of the overview: the end of its id, its label, and what it means. */
export type Tile = readonly [name: string, label: string, title: string];

/** What the overview of a page shows. */
export interface OverviewWords {
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
  <dl class="totals">
    ${tiles.map(tile).join('\n    ')}
  </dl>
</section>`;
}

const toTitle = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** What has happened on this page, newest first. */
export const HISTORY = `<h3 id="history-title">History</h3>
  <ol id="history" aria-labelledby="history-title" tabindex="0"></ol>`;

/** What differs between pages. */
export interface Frame {
  readonly style: string;
  readonly script: string;
  /** As text. */
  readonly heading: string;
  /** Where the first link leads: an id, and what is there. */
  readonly skip: { readonly to: string; readonly name: string };
  /** The content of `main`, and the templates after it; as markup. */
  readonly main: string;
  readonly templates: string;
}

/** A page of one file: head, header with the state of the connection, content, script. */
export function frame({ style, script, heading, skip, main, templates }: Frame): string {
  const title = toMarkup(heading);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<a class="skip" href="#${skip.to}">Skip to the ${skip.name}</a>
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
<script type="module">${script}</script>
</body>
</html>
`;
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

function toMarkup(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] as string);
}
