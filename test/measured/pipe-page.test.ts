// What the page of `pipe` costs with ten thousand events, compared with five hundred. Nothing runs beside it. The browser counts the
// time for which its main thread ran, so it does not matter what else the machine does.
import type { Browser, CDPSession, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CHROMIUM_BROWSER } from '../e2e/browsers.ts';
import { killAll, type Pipe, pipe } from '../e2e/cli.ts';

describe.skipIf(CHROMIUM_BROWSER.missing)('the live page with many events', () => {
  let browser: Browser;
  let server: Pipe;

  beforeAll(async () => {
    [browser, server] = await Promise.all([CHROMIUM_BROWSER.launch(), pipe('--capacity', '20000')]);
  });

  afterAll(async () => {
    await browser?.close();
    killAll();
  });

  /** Milliseconds of the main thread. */
  async function busy(session: CDPSession): Promise<number> {
    const { metrics } = await session.send('Performance.getMetrics');
    return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? 0) * 1_000;
  }

  const frames = (page: Page, count: number): Promise<void> =>
    page.evaluate(async (times) => {
      const scroll = document.querySelector('#scroll') as HTMLElement;
      for (let i = 0; i < times; i++) {
        scroll.scrollTop += 400;
        await new Promise((resolve) => requestAnimationFrame(resolve));
      }
    }, count);

  interface Costs {
    readonly scrolling: number;
    readonly arriving: number;
    readonly elements: number;
  }

  async function costs(events: number): Promise<Costs> {
    const page = await browser.newPage({ viewport: { width: 1_280, height: 800 } });
    await page.goto(server.url);
    await page.waitForSelector('#state[data-state=live]');
    let sent = (await server.stats()).accepted;
    const write = async (count: number): Promise<void> => {
      server.write(
        ...Array.from({ length: count }, (_, i) => ({ level: ((i % 6) + 1) * 10, msg: `message ${i}`, req: { id: i } })),
      );
      sent += count;
      await page.waitForFunction((text) => document.querySelector('#rows td')?.textContent === text, String(sent));
    };
    await write(events);
    const session = await page.context().newCDPSession(page);
    await session.send('Performance.enable', { timeDomain: 'threadTicks' });
    await frames(page, 5);
    let before = await busy(session);
    await frames(page, 20);
    const scrolling = (await busy(session)) - before;
    await page.evaluate(() => document.querySelector('#scroll')?.scrollTo(0, 0));
    await page.waitForFunction(() => document.querySelector('#pause')?.textContent === 'Pause');
    before = await busy(session);
    for (let i = 0; i < 3; i++) await write(20);
    const arriving = (await busy(session)) - before;
    const elements = await page.locator('*').count();
    await page.close();
    return { scrolling, arriving, elements };
  }

  test('scrolling and new events cost about the same, with as many elements', async () => {
    const few = await costs(500);
    const many = await costs(10_000);
    expect(many.elements).toBeLessThan(few.elements + 50);
    expect(many.scrolling).toBeLessThan(few.scrolling * 2 + 20);
    expect(many.arriving).toBeLessThan(few.arriving * 2 + 20);
  });
});
