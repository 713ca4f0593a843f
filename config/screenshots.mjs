// Takes the pictures that config/shots.mjs lists: npm run screenshots [folder]
//
// It needs a build and Chromium. Without a folder, docs/images gets the pictures that documents show; with one, it gets all.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { toSmallPng } from './png.mjs';
import { SHOTS } from './shots.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const [, , folder] = process.argv;
const into = folder ?? join(ROOT, 'docs/images');
const SIZES = [
  { width: 390, height: 780 },
  { width: 1440, height: 810 },
];
/** Pictures are part of the package. */
const MAX_BYTES = 80_000;

/** Starts a command, and waits for the address that it prints. */
async function start({ args, feed }) {
  const child = spawn(process.execPath, [join(ROOT, 'dist/cli/main.js'), ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  let out = '';
  const url = await new Promise((resolve, reject) => {
    child.on('exit', (code) => reject(new Error(`watchmux ${args.join(' ')} has ended with ${code}: ${out}`)));
    child.stdout.on('data', (text) => {
      out += text;
      const found = /^listening on (\S+)$/m.exec(out)?.[1];
      if (found !== undefined) resolve(found);
    });
  });
  await feed?.(child, url);
  return { child, url };
}

mkdirSync(into, { recursive: true });
const browser = await chromium.launch({
  executablePath: ['/usr/bin/chromium', '/usr/bin/chromium-headless-shell'].find(existsSync),
  args: ['--no-sandbox', '--disable-gpu', '--disable-lcd-text'],
});
try {
  for (const shot of SHOTS) {
    const { child, url } = await start(shot);
    for (const viewport of SIZES) {
      for (const colorScheme of ['light', 'dark']) {
        const name = `${viewport.width}-${colorScheme}`;
        if (folder === undefined && !shot.keep.includes(name)) continue;
        const page = await browser.newPage({ viewport, colorScheme, reducedMotion: 'reduce' });
        await page.goto(url);
        await shot.show(page, viewport);
        const file = join(into, `${shot.name}-${name}.png`);
        const png = toSmallPng(await page.screenshot());
        if (png.length > MAX_BYTES) throw new Error(`${file} would have ${png.length} bytes, more than ${MAX_BYTES}`);
        writeFileSync(file, png);
        console.log(`${file} ${png.length} bytes`);
        await page.close();
      }
    }
    child.kill('SIGTERM');
  }
} finally {
  await browser.close();
}
