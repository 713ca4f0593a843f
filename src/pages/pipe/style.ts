/** What the page of `pipe` has besides the style of all pages. Every colour has a contrast of at least 4.5 to 1, on every ground. */

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
  .skip { position: absolute; padding: .5rem .8rem; background: var(--panel); }
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

/** The colours of terminals. As a ground they are tints, so that a text of any of them can be read on it. */
const TERMINAL = `
.fg1 { color: var(--bad); } .fg2 { color: var(--good); } .fg3 { color: var(--warn); } .fg4 { color: var(--accent); } .fg5 { color: var(--magenta); } .fg6 { color: var(--cyan); } .fg8, .faint { color: var(--dim); }
.bg1 { background: var(--bad-tint); } .bg2, .bg3, .bg4, .bg5, .bg6, .bg8 { background: var(--soft); }
.bold { font-weight: 700; } .italic { font-style: italic; } .underline { text-decoration: underline; } .strike { text-decoration: line-through; } .underline.strike { text-decoration: underline line-through; }
.inverse { background: var(--ink); color: var(--panel); }
:root { --magenta: #96348f; --cyan: #0a6a74; }
@media (prefers-color-scheme: dark) { :root { --magenta: #e79ae0; --cyan: #6fd0da; } }`;

export const EVENTS_STYLE: string = TABLE + TERMINAL;
