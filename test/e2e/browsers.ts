// Real browsers for the tests that need them. If one is missing, its tests skip and say so; with REQUIRE_COMPONENTS=1 they fail.
// WATCHMUX_BROWSERS=chromium leaves the others out.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Browser } from 'playwright-core';
import { chromium, firefox } from 'playwright-core';
import { describe } from 'vitest';

export interface TestBrowser {
  readonly name: 'Chromium' | 'Firefox';
  /** Whether to skip the tests that need it. */
  readonly missing: boolean;
  readonly launch: () => Promise<Browser>;
}

const CHROMIUM = '/usr/bin/chromium';
const FIREFOX = '/usr/bin/firefox-esr';

const required = process.env.REQUIRE_COMPONENTS === '1';
const wanted = process.env.WATCHMUX_BROWSERS?.split(',');

function isMissing(path: string): boolean {
  const missing = !existsSync(path) && !required;
  if (missing) console.warn(`skipped: there is no ${path} (REQUIRE_COMPONENTS=1 makes that a failure)`);
  return missing;
}

const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
];

/** For tests that need not run in every browser. */
export const CHROMIUM_BROWSER: TestBrowser = {
  name: 'Chromium',
  missing: isMissing(CHROMIUM),
  launch: () => chromium.launch({ executablePath: CHROMIUM, args: ARGS }),
};

const FIREFOX_BROWSER: TestBrowser = {
  name: 'Firefox',
  missing: isMissing(FIREFOX),
  // With this channel, playwright speaks WebDriver BiDi, as every Firefox does, and not the protocol of its own builds.
  launch: () =>
    firefox.launch({ channel: 'moz-firefox', executablePath: fileURLToPath(new URL('firefox.mjs', import.meta.url)) }),
};

/** Defines tests that run in every browser. */
export function inBrowsers(title: string, body: (browser: TestBrowser) => void): void {
  for (const browser of [CHROMIUM_BROWSER, FIREFOX_BROWSER]) {
    const { name, missing } = browser;
    const unwanted = wanted?.includes(name.toLowerCase()) === false;
    if (unwanted) console.warn(`skipped: ${name} is not among WATCHMUX_BROWSERS, ${wanted}`);
    describe.skipIf(missing || unwanted)(`${title} in ${name}`, () => body(browser));
  }
}
