// A real Chromium for the tests that need one. Without it they skip and say so; REQUIRE_COMPONENTS=1 makes that a failure.
import { existsSync } from 'node:fs';
import type { Browser } from 'playwright-core';
import { chromium } from 'playwright-core';

const CHROMIUM = '/usr/bin/chromium';
const here = existsSync(CHROMIUM);
const required = process.env.REQUIRE_COMPONENTS === '1';

/** Whether tests that need it are to be skipped. */
export const withoutChromium: boolean = !here && !required;

if (withoutChromium) console.warn(`skipped: there is no ${CHROMIUM} (REQUIRE_COMPONENTS=1 makes that a failure)`);

const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
];

export function launch(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM, args: ARGS });
}
