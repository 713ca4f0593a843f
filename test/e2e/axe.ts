// What axe-core says of a page: each fault with where it is. It cannot see how a page behaves: that is tested beside it.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults, RunOptions } from 'axe-core';
import type { Page } from 'playwright-core';

const SOURCE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const RULES: RunOptions = {
  runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
  resultTypes: ['violations'],
};
const COLOURS: RunOptions = { runOnly: { type: 'rule', values: ['color-contrast'] }, resultTypes: ['violations'] };

/** On a desk and on a phone. */
const SIZES = [
  { width: 1_440, height: 900 },
  { width: 390, height: 844 },
] as const;

interface Axe {
  readonly run: (options: RunOptions) => Promise<AxeResults>;
}

async function check(page: Page, options: RunOptions): Promise<string[]> {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(SOURCE);
  const { violations } = await page.evaluate(
    (how) => (window as unknown as { axe: Axe }).axe.run(how as RunOptions),
    options as object,
  );
  return violations.map(({ id, nodes: [first, ...more] }) => {
    const why = first?.failureSummary?.replace(/\s+/g, ' ');
    return `${id}: ${first?.target.join(' ')}${more.length > 0 ? ` and ${more.length} more` : ''}: ${why}`;
  });
}

/** The faults of a page as it is, in two sizes, light and dark: only its colours differ between these. */
export async function accessFaults(
  page: Page,
  state: string,
  sizes: readonly { readonly width: number; readonly height: number }[] = SIZES,
): Promise<string[]> {
  const faults: string[] = [];
  const before = page.viewportSize();
  for (const size of sizes) {
    await page.setViewportSize(size);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      const found = await check(page, colorScheme === 'light' ? RULES : COLOURS);
      faults.push(...found.map((fault) => `${state}, ${size.width} px, ${colorScheme}: ${fault}`));
    }
  }
  await page.emulateMedia({ colorScheme: 'light' });
  if (before !== null) await page.setViewportSize(before);
  return faults;
}
