// 10,000 rows in React, 100 changes a second: the page goes on drawing. In Chromium, as a production build.
//
// The figures are printed. What must hold does not depend on the machine: they are compared with those of the same page without changes.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { expect, test } from 'vitest';
import { createHttpHandler, Hub } from '../../src/bridge/http.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { CHROMIUM_BROWSER } from '../e2e/browsers.ts';

const ROWS = 10_000;
const CHANGES_PER_SECOND = 100;
const SECONDS = 4;

interface Row {
  readonly id: string;
  readonly size: number;
}

interface Frames {
  readonly perSecond: number;
  readonly longestMs: number;
  readonly longTasks: number;
  /** Of the rows: how often one has rendered. */
  readonly rendered: number;
}

const PAGE = `
import { memo } from 'react';
import { createRoot } from 'react-dom/client';
import { useCollection } from 'watchmux/react';

let rendered = 0;
const Row = memo(function Row({ row }) {
  rendered++;
  return <li>{row.id}: {row.size}</li>;
});
// As docs/react.md says it.
const isSame = (one, other) => one.rows.length === other.rows.length && one.rows.every((row, at) => row === other.rows[at]);
const Part = memo(function Part({ rows }) {
  return <ul>{rows.map((row) => <Row key={row.id} row={row} />)}</ul>;
}, isSame);
function List() {
  const { items } = useCollection('/watch');
  const parts = Array.from({ length: Math.ceil(items.length / 100) }, (_, at) => items.slice(100 * at, 100 * at + 100));
  return parts.map((rows, at) => <Part key={at} rows={rows} />);
}
createRoot(document.querySelector('main')).render(<List />);

window.measure = (seconds) => new Promise((resolve) => {
  let longTasks = 0;
  const observer = new PerformanceObserver((list) => {
    longTasks += list.getEntries().length;
  });
  observer.observe({ type: 'longtask' });
  const before = rendered;
  const frames = [];
  const next = (now) => {
    frames.push(now);
    if (now - frames[0] < seconds * 1000) return requestAnimationFrame(next);
    observer.disconnect();
    const gaps = frames.slice(1).map((at, index) => at - frames[index]);
    resolve({
      perSecond: Math.round(gaps.length / seconds),
      longestMs: Math.round(Math.max(...gaps)),
      longTasks,
      rendered: rendered - before,
    });
  };
  requestAnimationFrame(next);
});
`;

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

async function script(): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: PAGE, loader: 'jsx', resolveDir: here('../..') },
    alias: { 'watchmux/react': here('../../src/react/index.ts'), 'watchmux/client': here('../../src/bridge/client.ts') },
    define: { 'process.env.NODE_ENV': '"production"' },
    jsx: 'automatic',
    bundle: true,
    minify: true,
    format: 'esm',
    write: false,
  });
  return outputFiles[0]?.text ?? '';
}

test.skipIf(CHROMIUM_BROWSER.missing)(`${ROWS} rows, ${CHANGES_PER_SECOND} changes a second`, { timeout: 60_000 }, async () => {
  const rows = new Map<string, Row>();
  for (let at = 0; at < ROWS; at++) rows.set(`row-${at}`, { id: `row-${at}`, size: 0 });
  const hub = new Hub<WatchEvent<'ADDED' | 'MODIFIED', Row>>({ snapshot: () => rows.values() });
  const watch = createHttpHandler(hub);
  const style = '<style>ul { content-visibility: auto; contain-intrinsic-size: auto 2000px } li { height: 20px }</style>';
  const html = `<!doctype html>${style}<main></main><script type="module">${await script()}</script>`;
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/watch')) watch(request, response);
    else response.setHeader('content-type', 'text/html').end(html);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const browser = await CHROMIUM_BROWSER.launch();
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  await page.waitForFunction(`document.querySelectorAll('li').length === ${ROWS}`);
  const measure = (): Promise<Frames> => page.evaluate(`measure(${SECONDS})`);
  const idle = await measure();
  let changes = 0;
  const changing = setInterval(() => {
    const id = `row-${(changes * 7_919) % ROWS}`;
    const row = { id, size: ++changes };
    rows.set(id, row);
    void hub.publish({ type: 'MODIFIED', object: row });
  }, 1_000 / CHANGES_PER_SECOND);
  const busy = await measure();
  clearInterval(changing);
  console.log(`${ROWS} rows, ${changes} changes in ${SECONDS} s: ${JSON.stringify({ idle, busy })}`);
  expect(idle.rendered).toBe(0);
  // A change renders its row and no other, so the page draws about as often as it does without changes.
  expect(busy.rendered).toBeLessThanOrEqual(changes);
  expect(busy.rendered).toBeGreaterThan(0);
  expect(busy.perSecond).toBeGreaterThan(idle.perSecond / 2);
  await browser.close();
  await hub.shutdown();
  server.close();
  server.closeAllConnections();
});
