// 10,000 rows in the page of `watchmux serve`, in Chromium, while 100 objects change per second. It prints frame times, long tasks and
// how busy the page's thread was; what it demands is in CPU time, which other programs do not take from it. The control is the same page
// with 100 rows.
import type { Browser, CDPSession, Page } from 'playwright-core';
import { afterAll, expect, test } from 'vitest';
import { CHROMIUM_BROWSER } from '../e2e/browsers.ts';
import { killAll, type Serving, serve } from '../e2e/cli.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';
const ROWS = 10_000;
const FEW = 100;
const PER_SECOND = 100;
const WATCHED_MS = 6_000;
const TICK_MS = 20;
/** Ten thousand objects are created one by one. */
const LONG_MS = 600_000;
/**
 * The page's thread with 10,000 rows may have so much to do, as a multiple of what it has with 100. It was 0.6, because few of the rows
 * that change are in view.
 */
const MOST_TIMES = 1;

let browser: Browser | undefined;
let timer: ReturnType<typeof setInterval> | undefined;
afterAll(async () => {
  clearInterval(timer);
  await browser?.close();
  killAll();
});

async function send(server: Serving, method: string, path: string, body: object): Promise<void> {
  const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
  const response = await fetch(`${server.url}${path}`, { method, headers: { 'content-type': type }, body: JSON.stringify(body) });
  await response.arrayBuffer();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status}`);
}

async function fill(server: Serving, rows: number): Promise<void> {
  for (let at = 0; at < rows; at += 100) {
    const names = Array.from({ length: Math.min(100, rows - at) }, (_, more) => `m-${at + more}`);
    await Promise.all(names.map((name) => send(server, 'POST', MAPS, { metadata: { name, labels: { app: 'web', tier: 'a' } } })));
  }
}

/** Changes objects at a steady rate, all over the table, until it is stopped. */
function changing(server: Serving, rows: number): { readonly stop: () => number } {
  const begun = performance.now();
  let sent = 0;
  timer = setInterval(() => {
    for (const due = ((performance.now() - begun) / 1_000) * PER_SECOND; sent < due; sent++) {
      const labels = { tier: `t${sent % 7}` };
      void send(server, 'PATCH', `${MAPS}/m-${(sent * 7_919) % rows}`, { metadata: { labels } }).catch(() => {});
    }
  }, TICK_MS);
  return {
    stop: () => {
      clearInterval(timer);
      return sent;
    },
  };
}

interface Figures {
  readonly frames: readonly number[];
  readonly longTasks: readonly number[];
  /** Of the page's thread, per second. */
  readonly busyMs: number;
}

/** What the page does meanwhile. */
async function watched(page: Page, cdp: CDPSession, act: () => Promise<unknown>): Promise<Figures> {
  await page.evaluate(() => {
    const seen = { frames: [] as number[], longTasks: [] as number[], on: true };
    Object.assign(globalThis, { seen });
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) if (seen.on) seen.longTasks.push(duration);
    }).observe({ type: 'longtask' });
    let last = performance.now();
    const frame = (now: number): void => {
      seen.frames.push(now - last);
      last = now;
      if (seen.on) requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  const busy = async (): Promise<number> => {
    const { metrics } = await cdp.send('Performance.getMetrics');
    return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? 0) * 1_000;
  };
  const before = await busy();
  const begun = performance.now();
  await act();
  const busyMs = ((await busy()) - before) / ((performance.now() - begun) / 1_000);
  const { frames, longTasks } = await page.evaluate(() => {
    const { seen } = globalThis as unknown as { seen: { frames: number[]; longTasks: number[]; on: boolean } };
    seen.on = false;
    return seen;
  });
  return { frames: frames.sort((one, other) => one - other), longTasks, busyMs };
}

function tell(what: string, { frames, longTasks, busyMs }: Figures): void {
  const at = (share: number): string => (frames[Math.floor(frames.length * share)] ?? 0).toFixed(1);
  const longest = Math.max(0, ...longTasks).toFixed(0);
  console.log(
    `${what}: frames ${at(0.5)} ms, 95 % ${at(0.95)}, 99 % ${at(0.99)}; ${longTasks.length} tasks over 50 ms, the longest ${longest} ms; ` +
      `busy for ${busyMs.toFixed(0)} ms of each second`,
  );
}

test.skipIf(CHROMIUM_BROWSER.missing)(
  '10,000 rows at 100 changes per second keep the page no busier than 100 rows do',
  async () => {
    browser = await CHROMIUM_BROWSER.launch();
    const busy: number[] = [];
    for (const rows of [FEW, ROWS]) {
      const server = await serve();
      await fill(server, rows);
      const page = await browser.newPage({ viewport: { width: 1_440, height: 900 } });
      await page.goto(`${server.url}/#configmaps%2Fv1`);
      await page.waitForFunction((count) => document.getElementById('objects-table')?.ariaRowCount === String(count + 1), rows);
      const cdp = await page.context().newCDPSession(page);
      await cdp.send('Performance.enable', { timeDomain: 'threadTicks' });
      const changes = changing(server, rows);
      const still = await watched(page, cdp, () => page.waitForTimeout(WATCHED_MS));
      tell(`${rows} rows`, still);
      busy.push(still.busyMs);
      if (rows === ROWS) {
        await page.mouse.move(900, 700);
        const scroll = async (): Promise<void> => {
          for (let times = 0; times < 40; times++) {
            await page.mouse.wheel(0, 700);
            await page.waitForTimeout(50);
          }
        };
        tell('scrolling', await watched(page, cdp, scroll));
        tell('sorting', await watched(page, cdp, () => page.click('#object-head .labels button')));
        tell('searching', await watched(page, cdp, () => page.type('#text', 'm-1', { delay: 100 })));
        // The page is up to date, and it is not the changes that are missing.
        await page.waitForFunction(() => document.getElementById('note')?.textContent?.startsWith('1,111 of 10,000'));
      }
      expect(changes.stop()).toBeGreaterThan((WATCHED_MS / 1_000) * PER_SECOND * 0.5);
      await page.close();
      server.child.kill('SIGKILL');
    }
    const [few = 0, many = 0] = busy;
    expect(many).toBeLessThan(few * MOST_TIMES);
  },
  LONG_MS,
);
