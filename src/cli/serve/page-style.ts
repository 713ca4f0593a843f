/** What the page of objects has besides the style of all pages. */
export const OBJECTS_STYLE = `
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
#object-rows .gone td, #object-rows .gone button { color: var(--dim); text-decoration: line-through; }
#object-rows .detail td { padding: .5rem 1rem .9rem; }
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
