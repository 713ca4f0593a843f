// Two instances of an operator, of which one leads, on a kube-apiserver that is restarted: the rest is as in operator-faults.test.ts.
import { afterAll, beforeAll, describe, expect, onTestFailed, test } from 'vitest';
import { component, isMissing } from '../components.ts';
import { eventually } from '../eventually.ts';
import { type ApiServer, startApiServer } from './apiserver.ts';
import { inProcess } from './operators/in-process.ts';
import { bundled, OperatorProcess } from './operators/programs.ts';
import { RegistryLog } from './operators/registry-log.ts';
import websites from './operators/website.json' with { type: 'json' };
import { type Look, lastEdits, NO_ANSWER, storm, World } from './operators/world.ts';
import { seededFaults, startProxy } from './proxy.ts';

const SEED = Number(process.env.WATCHMUX_OPERATORS_SEED ?? 28);
const EDITS = 25;
const KILLS = 4;
const LIMIT_MS = 180_000;
const FAULTS = { none: 92, cut: 5, truncate: 1, refuse: 2 } as const;
const LAST = lastEdits(SEED);
const ALIVE = LAST.filter((edit) => edit.do === 'create').length;

describe.skipIf(isMissing(component('kube-apiserver')))('two instances of an operator', () => {
  let server: ApiServer;
  let program: Awaited<ReturnType<typeof bundled>>;

  beforeAll(async () => {
    [server, program] = await Promise.all([startApiServer(), bundled()]);
    await server.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', websites);
    await eventually(() => server.get('/apis/example.com/v1/websites'));
  }, LIMIT_MS);

  afterAll(async () => {
    program?.remove();
    await server?.stop();
  });

  const holder = async (world: World): Promise<string> => {
    const { spec } = await server.get(`/apis/coordination.k8s.io/v1/namespaces/${world.namespace}/leases/website`);
    return spec.holderIdentity ?? '';
  };

  test(
    'take over from each other, and do nothing twice',
    async () => {
      const expected: Look = await inProcess('site', async ({ world, settled }) => {
        await world.finish(LAST);
        await settled({ ready: true });
        return await world.look();
      });
      /** A server that starts refuses for a while, and one that has gone does not answer. */
      const answered = (error: Error & { code?: unknown }): never => {
        const isRefusal = typeof error.code === 'number' && error.code < 500;
        throw Object.assign(error, { code: isRefusal ? error.code : NO_ANSWER });
      };
      const world = new World((...request) => server.request(...request).catch(answered), 'site');
      await world.create();
      const proxy = await startProxy(server, seededFaults(SEED, FAULTS));
      const registry = new RegistryLog(server, world);
      const names = ['one', 'two'] as const;
      const start = (name: string): OperatorProcess =>
        new OperatorProcess(program, [proxy.url, world.namespace, world.registry, name]);
      const running = new Map(names.map((name) => [name as string, start(name)]));
      onTestFailed(() => console.log(Array.from(running, ([name, { log }]) => `${name}:\n${log}`).join('\n')));
      const leaders = new Set<string>();
      let isOver = false;
      const write = async (): Promise<void> => {
        for (let seed = SEED; !isOver; seed++) await world.play(storm(seed, EDITS));
      };
      const writing = write();
      try {
        for (let kills = 0; kills < KILLS; kills++) {
          const before = await eventually(async () => {
            const found = await holder(world);
            expect(names).toContain(found);
            return found;
          });
          leaders.add(before);
          const asked = proxy.requests;
          await eventually(() => expect(proxy.requests).toBeGreaterThan(asked + 40));
          if (kills === 1) await server.restart();
          await running.get(before)?.kill();
          await eventually(async () => expect(await holder(world)).not.toBe(before));
          running.set(before, start(before));
        }
        isOver = true;
        await writing;
        proxy.calm();
        await world.finish(LAST);
        await world.settled({ ready: true });
        expect(await world.look()).toEqual(expected);
        expect(await registry.gone(ALIVE)).toBeGreaterThan(0);
        expect([...leaders].sort()).toEqual([...names]);
        // One that ends gives the lease back.
        const last = await holder(world);
        await running.get(last)?.end();
        await world.play([[{ ...LAST[0], do: 'spec', html: 'the end' } as (typeof LAST)[number]]]);
        await world.settled({ ready: true });
        expect(await holder(world)).not.toBe(last);
      } finally {
        isOver = true;
        await writing;
        for (const each of running.values()) await each.end();
        await registry.end();
        await proxy.close();
      }
    },
    LIMIT_MS,
  );
});
