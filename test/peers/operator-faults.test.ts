// An operator on a kube-apiserver whose connections are cut, and which is killed again and again while four writers change what it works
// on: in the end everything is as if nothing had happened. operators.test.ts has the same operator beside those of others.
import { afterAll, beforeAll, describe, expect, onTestFailed, test } from 'vitest';
import { component, isMissing } from '../components.ts';
import { eventually } from '../eventually.ts';
import { type ApiServer, startApiServer } from './apiserver.ts';
import { inProcess } from './operators/in-process.ts';
import { bundled, OperatorProcess } from './operators/programs.ts';
import { RegistryLog } from './operators/registry-log.ts';
import websites from './operators/website.json' with { type: 'json' };
import { type Look, lastEdits, storm, World } from './operators/world.ts';
import { randomOf, seededFaults, startProxy } from './proxy.ts';

const SEED = Number(process.env.WATCHMUX_OPERATORS_SEED ?? 28);
const EDITS = 25;
const KILLS = 6;
const LIMIT_MS = 90_000;
const ALIVE = lastEdits(SEED).filter((edit) => edit.do === 'create').length;
/** Few enough that hardly any key fails ten times in a row: it would wait for longer than a test does. */
const FAULTS = { none: 90, cut: 6, truncate: 1, refuse: 3 } as const;

describe.skipIf(isMissing(component('kube-apiserver')))('an operator on a kube-apiserver', () => {
  let server: ApiServer;
  let program: Awaited<ReturnType<typeof bundled>>;
  let expected: Look;

  beforeAll(async () => {
    [server, program] = await Promise.all([startApiServer(), bundled()]);
    await server.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', websites);
    await eventually(() => server.get('/apis/example.com/v1/websites'));
  }, LIMIT_MS);

  afterAll(async () => {
    program?.remove();
    await server?.stop();
  });

  test('in this process it comes to what follows from the websites', async () => {
    expected = await inProcess('site', async ({ world, settled }) => {
      await world.play(storm(SEED, EDITS));
      await world.finish(lastEdits(SEED));
      await settled({ ready: true });
      return await world.look();
    });
    expect(Object.keys(expected.websites)).toHaveLength(ALIVE);
  });

  test(
    'through cuts and kill -9 it comes to the same, and does nothing twice',
    async () => {
      const world = new World((...request) => server.request(...request), 'site');
      await world.create();
      const proxy = await startProxy(server, seededFaults(SEED, FAULTS));
      const registry = new RegistryLog(server, world);
      const random = randomOf(SEED + 1);
      const start = (): OperatorProcess => new OperatorProcess(program, [proxy.url, world.namespace, world.registry]);
      let operator = start();
      let killed = false;
      let kills = 0;
      onTestFailed(async () => {
        const asked = proxy.seen.slice(-12).map(({ method, url }) => `${method} ${url.pathname}${url.search}`);
        console.log([`${kills} kills; ${await world.fault()}; ${proxy.open} open; last:`, ...asked, operator.log].join('\n'));
      });
      try {
        const write = async (): Promise<void> => {
          for (let seed = SEED; !killed; seed++) await world.play(storm(seed, EDITS));
        };
        const writing = write();
        /** Without writers, nothing happens that could be waited for. */
        const written = (wait: () => void): Promise<unknown> => Promise.race([eventually(wait), writing]);
        for (; kills < KILLS; kills++) {
          const asked = proxy.requests + 20 + Math.floor(random() * 60);
          await written(() => expect(proxy.requests).toBeGreaterThan(asked));
          if (kills % 2 === 0) proxy.cutAll();
          await operator.kill();
          operator = start();
        }
        await written(() => expect(Math.min(proxy.faults - KILLS, registry.removed)).toBeGreaterThan(0));
        killed = true;
        await writing;
        proxy.calm();
        await world.finish(lastEdits(SEED));
        await Promise.race([world.settled({ ready: true }), operator.ended]);
        expect(await world.look()).toEqual(expected);
        expect(await registry.gone(ALIVE)).toBeGreaterThan(0);
      } finally {
        killed = true;
        await operator.end();
        await registry.end();
        await proxy.close();
      }
    },
    LIMIT_MS,
  );
});
