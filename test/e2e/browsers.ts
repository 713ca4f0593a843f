// Real browsers for the tests that need them; see test/components.ts. WATCHMUX_BROWSERS=chromium leaves the others out, and
// chromium,firefox:few all tests in Firefox of what hardly differs there.
import { fileURLToPath } from 'node:url';
import type { Browser } from 'playwright-core';
import { chromium, firefox } from 'playwright-core';
import { describe, test } from 'vitest';
import { component, isForFew, isMissing, isUnwanted } from '../components.ts';

export interface TestBrowser {
  readonly name: 'Chromium' | 'Firefox';
  /** Whether to skip the tests that need it. */
  readonly missing: boolean;
  readonly launch: () => Promise<Browser>;
}

type Define = (title: string, code: () => Promise<void>) => void;

const CHROMIUM = component('Chromium');
const FIREFOX = component('Firefox');

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
  launch: () => chromium.launch({ executablePath: CHROMIUM.path, args: ARGS }),
};

const FIREFOX_BROWSER: TestBrowser = {
  name: 'Firefox',
  missing: isMissing(FIREFOX),
  // With this channel, playwright speaks WebDriver BiDi, as every Firefox does, and not the protocol of its own builds.
  launch: () =>
    firefox.launch({ channel: 'moz-firefox', executablePath: fileURLToPath(new URL('firefox.mjs', import.meta.url)) }),
};

/** Defines tests that run in every browser; with `often`, those of what hardly differs between them. */
export function inBrowsers(title: string, body: (browser: TestBrowser & { often: Define }) => void): void {
  for (const browser of [CHROMIUM_BROWSER, FIREFOX_BROWSER]) {
    const { name, missing } = browser;
    const unwanted = isUnwanted(component(name));
    const often: Define = (title, code) => void (isForFew(component(name)) || test(title, code));
    describe.skipIf(missing || unwanted)(`${title} in ${name}`, () => body({ ...browser, often }));
  }
}
