/** The detail of an object, as markup and style: a drawer beside the objects, or the whole screen of a phone. */
const TABS = [
  ['object', 'Object'],
  ['history', 'History'],
  ['events', 'Events'],
  ['edit', 'Edit'],
] as const;

const tabs = TABS.map(
  ([id, text]) => `<button type="button" role="tab" id="detail-tab-${id}" aria-controls="detail-${id}">${text}</button>`,
).join('');

const panel = (id: string, content: string): string =>
  `<div role="tabpanel" id="detail-${id}" aria-labelledby="detail-tab-${id}" hidden>${content}\n  </div>`;

const OBJECT = panel(
  'object',
  `
    <div class="row">
      <label class="hidden" for="detail-format">Format</label>
      <select id="detail-format"><option value="yaml">YAML</option><option value="json">JSON</option></select>
      <button type="button" id="detail-copy">Copy</button>
      <button type="button" id="detail-download">Download</button>
      <label class="dim"><input type="checkbox" id="detail-managed"> managed fields</label>
    </div>
    <p id="detail-changed" class="dim"></p>
    <div id="detail-text" class="text" role="region" aria-label="Object as text" tabindex="0"></div>
    <button type="button" id="detail-all" hidden>Show all</button>`,
);

const HISTORY = panel(
  'history',
  `
    <ol id="detail-entries" aria-label="What has happened to the object, newest first" tabindex="0"></ol>
    <p id="detail-older-note" class="dim"></p>
    <button type="button" id="detail-older">Read older changes</button>`,
);

const EVENTS = panel(
  'events',
  `
    <p id="detail-events-note" class="dim"></p>
    <div class="scroll" role="region" aria-label="Events about the object" tabindex="0">
    <table><thead><tr><th scope="col">last seen</th><th scope="col">type</th><th scope="col">reason</th><th scope="col">message</th><th scope="col">from</th></tr></thead>
    <tbody id="detail-events-rows"></tbody></table></div>`,
);

const EDIT = panel(
  'edit',
  `
    <form id="edit" novalidate>
      <p id="edit-about" class="dim"></p>
      <div id="edit-body">
        <textarea id="edit-text" aria-label="Object to be saved" aria-describedby="edit-about edit-said" spellcheck="false" autocomplete="off" autocapitalize="off" wrap="off"></textarea>
        <ul id="edit-faults" aria-label="What the server says is wrong" hidden></ul>
      </div>
      <div class="row">
        <button type="submit" id="edit-save" class="on">Save</button>
        <button type="button" id="edit-try">Dry run</button>
        <button type="button" id="edit-reset">Start again</button>
      </div>
      <p id="edit-said" role="alert"></p>
      <div id="edit-other" hidden>
        <h3 id="edit-other-title"></h3>
        <ul id="edit-differences" class="changes"></ul>
        <button type="button" id="edit-rebase">Keep my text, for this version</button>
        <div id="edit-theirs" class="text" role="region" aria-label="The object as it is now" tabindex="0"></div>
      </div>
    </form>`,
);

/** The drawer, and the question before an object is deleted. */
export const DETAIL: string = `
<section id="detail" aria-labelledby="detail-title" tabindex="-1" hidden>
  <div class="head">
    <h2 id="detail-title"></h2>
    <button type="button" id="detail-delete">Delete \u2026</button>
    <button type="button" id="detail-close">Close</button>
  </div>
  <p><span id="detail-phase"></span> <span id="detail-facts" class="dim"></span></p>
  <p id="detail-owners" class="dim" hidden></p>
  <p id="detail-announcer" class="hidden" role="status"></p>
  <div role="tablist" id="detail-tabs" aria-label="What is shown of the object">${tabs}</div>
  ${OBJECT}${HISTORY}${EVENTS}${EDIT}
</section>
<dialog id="delete" aria-labelledby="delete-title">
  <h2 id="delete-title"></h2>
  <p>This cannot be undone.</p>
  <p><label for="delete-policy">Objects that it owns</label>
  <select id="delete-policy"><option value="Background">are deleted after it</option><option value="Foreground">are deleted before it</option><option value="Orphan">stay</option></select></p>
  <p id="delete-said" role="alert"></p>
  <div class="row"><button type="button" id="delete-no" autofocus>Keep it</button><button type="button" id="delete-yes">Delete it</button></div>
</dialog>`;

const MONO = '.82rem/1.5 var(--mono)';

/** The style of the detail, beyond that of all pages. */
export const DETAIL_STYLE: string = `
#detail { position: fixed; inset: 0 0 0 auto; z-index: 4; width: min(50rem, 100%); overflow-y: auto; overscroll-behavior: contain; border-radius: 0; border-width: 0 0 0 1px; box-shadow: 0 0 2rem #0003; }
#detail:focus-visible { outline: 0; border-color: var(--accent); }
#detail .head { position: sticky; top: -.9rem; z-index: 1; display: flex; align-items: center; gap: .5rem; margin: -.9rem -1rem 0; padding: .7rem 1rem; background: var(--panel); }
#detail-title { flex: 1; min-width: 0; overflow-wrap: anywhere; }
#detail .gone { text-decoration: line-through; color: var(--dim); }
#detail-phase { font-weight: 550; }
#detail-phase[data-state=off] { color: var(--bad); }
#detail-phase[data-state=live]::before { content: "\u25cf "; color: var(--good); }
#detail-phase[data-state=off]::before { content: "\u25cb "; }
#detail-owners { overflow-wrap: anywhere; }
#detail a { color: var(--accent); }
#detail-tabs { display: flex; gap: .25rem; margin: .7rem 0; border-bottom: 1px solid var(--line); }
#detail-tabs button { border: 0; border-bottom: 3px solid transparent; border-radius: 6px 6px 0 0; background: none; }
#detail-tabs button:hover { background: var(--soft); }
#detail-tabs [aria-selected=true] { border-bottom-color: var(--accent); color: var(--accent); }
#detail-delete, #delete-yes { color: var(--bad); }
#detail-changed { min-height: 1.4em; margin: .4rem 0; overflow-wrap: anywhere; }
.text { max-height: 70vh; overflow: auto; padding: .5rem 0; border: 1px solid var(--line); border-radius: 6px; font: ${MONO}; }
.text div { position: relative; padding: 0 .6rem 0 1.4rem; white-space: pre-wrap; overflow-wrap: anywhere; content-visibility: auto; contain-intrinsic-block-size: auto 30rem; }
.text mark { background: var(--tint); color: inherit; font-weight: 650; }
.text mark::before { content: "\u00b1"; position: absolute; left: .35rem; color: var(--accent); }
.text .key { color: var(--accent); } .text .key::before { display: none; }
.text .string { color: var(--good); }
.text .key, .text .string { unicode-bidi: isolate; }
.text .number { color: var(--warn); }
#detail-managed { min-height: 0; margin: 0 .2rem 0 0; vertical-align: middle; }
#detail-all { margin-top: .5rem; }
#detail-entries { list-style: none; font-size: .88rem; }
#detail-entries > li { padding: .4rem 0; border-top: 1px solid var(--line); }
#detail-entries > li:first-child { border-top: 0; }
.changes { margin: .2rem 0 0; padding: 0; list-style: none; font: ${MONO}; overflow-wrap: anywhere; }
.changes li { padding: .1rem 0 .1rem 1rem; text-indent: -1rem; }
.changes del { color: var(--bad); } .changes ins { color: var(--good); }
#detail-events .scroll { overflow-x: auto; }
#detail-events table { font-size: .85rem; }
#detail-events td { padding: .3rem .5rem; vertical-align: top; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
#detail-events .Warning { color: var(--warn); font-weight: 600; }
#edit-body { display: grid; gap: .6rem; grid-template-columns: minmax(0, 1fr); margin: .4rem 0; }
#edit-text { width: 100%; min-height: 55vh; padding: .5rem .6rem; border: 1px solid var(--line); border-radius: 6px; background: var(--panel); color: inherit; font: ${MONO}; resize: vertical; }
#edit-faults { margin: 0; padding: .4rem .6rem; list-style: none; border-radius: 6px; background: var(--bad-tint); font-size: .85rem; overflow-wrap: anywhere; align-self: start; }
#edit-faults button { min-height: 0; padding: 0; border: 0; background: none; color: var(--bad); font: ${MONO}; font-weight: 650; text-align: left; text-decoration: underline; overflow-wrap: anywhere; }
#edit-said { min-height: 1.4em; margin: .5rem 0; overflow-wrap: anywhere; }
#edit-said.bad, #delete-said { color: var(--bad); }
#edit-other { display: grid; gap: .5rem; justify-items: start; }
#edit-theirs { width: 100%; max-height: 40vh; }
#delete { max-width: min(30rem, 94vw); padding: 1.2rem 1.4rem; border: 1px solid var(--line); border-radius: 10px; background: var(--panel); color: inherit; overflow-wrap: anywhere; }
#delete p { margin: .6rem 0; }
#delete::backdrop { background: #0007; }
@media (min-width: 62rem) { #edit-body:has(> ul:not([hidden])) { grid-template-columns: minmax(0, 1fr) 15rem; } }
@media (max-width: 40rem) { #detail .head { top: -.75rem; margin: -.75rem -.75rem 0; padding: .6rem .75rem; } .text { max-height: none; } #detail-tabs button { padding: .35rem .55rem; } }
@media print {
  main:has(> #detail:not([hidden])) > :not(#detail) { display: none; }
  #detail { position: static; width: auto; overflow: visible; border: 0; box-shadow: none; }
  #detail .head { position: static; }
  #detail :is(button, select, input, label) { display: none; }
  .text { max-height: none; overflow: visible; }
  .text div { content-visibility: visible; }
}
@media (forced-colors: active) { .text mark { forced-color-adjust: none; background: Highlight; color: HighlightText; } #detail-tabs [aria-selected=true] { border-bottom-color: Highlight; } }`;
