// What Lighthouse says of the site that `npm run docs` has written: .ci/full alone writes it, and runs this.
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { scoresOf, serve } from '../../config/site/parts.mjs';
import { component, isMissing } from '../components.ts';

const SITE = component('site');
const CHROMIUM = component('Chromium');
/** Of 100, in each category. */
const ENOUGH = 95;
const RUNS = 4;

describe.skipIf(isMissing(SITE) || isMissing(CHROMIUM))('the site', () => {
  let server: Server;

  beforeAll(async () => {
    server = await serve(dirname(SITE.path), { base: '/some/where/' });
  });

  afterAll(() => {
    server?.closeAllConnections();
    server?.close();
  });

  test.each(['index.html', 'docs/bridge.html', 'reference/http/Hub.html'])(
    'has 95 points and more in each category: %s',
    { timeout: 180_000 },
    async (path) => {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/some/where/${path}`;
      const scores = await scoresOf(url, { chromium: CHROMIUM.path, enough: ENOUGH, runs: RUNS });
      expect(Object.keys(scores).sort()).toEqual(['accessibility', 'best-practices', 'performance', 'seo']);
      expect(Object.entries(scores).filter(([, { score }]) => score < ENOUGH)).toEqual([]);
    },
  );
});
