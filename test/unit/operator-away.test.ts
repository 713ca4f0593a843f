// A kind that is deleted while an operator runs: who waits for it, who is told, and what happens at its return.
import { describe, expect, it } from 'vitest';
import type { KubernetesObject } from '../../src/cache/index.ts';
import type { FollowedKind } from '../../src/operator/followed-kind.ts';
import { controller, kind, type Log, Operator } from '../../src/operator/index.ts';
import { KindCache } from '../../src/operator/kind-cache.ts';
import { FakeClock, FakeListWatcher } from '../../src/testing/index.ts';
import { testOperator } from '../../src/testing/test-operator.ts';
import { crdOf } from './crd-rig.ts';
import { settle } from './operator-rig.ts';

type Family = KubernetesObject & { spec?: object };
const [PARENTS, CHILDREN] = [kind<Family>('parents.example.com/v1'), kind<Family>('children.example.com/v1')];
const CRDS = 'customresourcedefinitions.apiextensions.k8s.io/v1';
const parentsCrd = crdOf({ names: { plural: 'parents', kind: 'Parent' } }, {}, 'parents');
const childrenCrd = crdOf({ names: { plural: 'children', kind: 'Child' } }, {}, 'children');

/** Parents `p` and `q` with a child each; and a controller that does not need the children. */
async function family() {
  const [runs, bystander, told]: [string[], string[], string[]] = [[], [], []];
  let isBroken = false;
  const parents = controller({
    for: PARENTS,
    owns: [CHILDREN],
    reconcile: async ({ key, object, apply, store }) => {
      runs.push(`${key} ${object ? store(CHILDREN).size : 'gone'}`);
      if (isBroken) throw new Error('broken');
      if (object) await apply(CHILDREN, { spec: { a: 1 } });
    },
  });
  const others = controller({ name: 'others', for: PARENTS, reconcile: ({ key }) => void bystander.push(key) });
  const test = await testOperator({
    ...{ resources: [parentsCrd, childrenCrd] as KubernetesObject[], controllers: [parents, others] },
    onError: (error, { during, key = '' }) => void told.push(`${during} ${key}: ${(error as Error).message}`),
  });
  const definitions = test.server.resource(CRDS);
  const resource = test.resource(PARENTS).in('default');
  for (const name of ['p', 'q']) await resource.create({ metadata: { name }, spec: {} });
  await test.settled();
  const remove = async (name: string): Promise<void> => {
    await definitions.delete(`${name}.example.com`);
    await expect.poll(() => definitions.get(`${name}.example.com`).catch(() => undefined)).toBeUndefined();
  };
  const define = async (crd: object): Promise<void> => {
    await definitions.create(crd);
    await expect.poll(() => test.server.kind('children.example.com/v1').catch(() => undefined)).toBeDefined();
  };
  const ready = async (): Promise<readonly [number, string]> => {
    const answer = await test.operator.fetch(new Request('http://localhost/readyz?verbose'));
    return [answer.status, await answer.text()];
  };
  const breaks = (broken: boolean): void => {
    isBroken = broken;
  };
  return { test, runs, bystander, told, resource, remove, define, ready, breaks };
}

describe('a kind that is deleted while an operator runs', () => {
  it('is waited for by those controllers that need it, and is not ready', async () => {
    const { test, runs, bystander, resource, remove, ready, told } = await family();
    expect((await ready())[0]).toBe(200);
    await remove('children');
    await test.advance(30_000);
    const [code, text] = await ready();
    expect(code).toBe(500);
    expect(text).toContain('[-]kind/children.example.com/v1');
    expect(text).toContain('[+]kind/parents.example.com/v1 ok');
    expect(test.operator.state).toMatchObject({
      kinds: [{ synced: true }, { kind: 'children.example.com/v1', synced: false, absent: true }],
      controllers: [
        { name: 'parents', working: false },
        { name: 'others', working: true },
      ],
    });
    runs.splice(0);
    bystander.splice(0);
    told.splice(0);
    await resource.patch('p', { spec: { b: 1 } });
    await test.advance(60_000);
    expect([runs, bystander, told]).toEqual([[], ['default/p'], []]);
    await test.close();
  });

  it('is reported after syncTimeoutMs, once each time', async () => {
    const { test, remove, define, told } = await family();
    const late = (): string[] => told.filter((text) => text.startsWith('sync'));
    const text = 'sync : children.example.com/v1 (the server does not have it) is not synced after 120000 ms';
    await remove('children');
    await test.advance(110_000);
    expect(late()).toEqual([]);
    await test.advance(300_000);
    expect(late()).toEqual([text]);
    await define(childrenCrd);
    await test.advance(200_000);
    expect(late()).toEqual([text]);
    await remove('children');
    await test.advance(200_000);
    expect(late()).toEqual([text, text]);
    await test.close();
  });

  it('and comes back in time is not reported', async () => {
    const { test, remove, define, told } = await family();
    await remove('children');
    await test.advance(60_000);
    await define(childrenCrd);
    await test.advance(200_000);
    expect(told.filter((text) => text.startsWith('sync'))).toEqual([]);
    await test.close();
  });

  it('leads, when it is back, to a run of what has failed, or was due, without it: at once', async () => {
    const { test, runs, resource, remove, define, ready, breaks } = await family();
    breaks(true);
    await resource.patch('q', { spec: { b: 1 } });
    await test.advance(100_000); // its next attempt is a minute away
    await remove('children');
    await test.advance(10_000);
    breaks(false);
    runs.splice(0);
    await define(childrenCrd);
    await test.advance(10_000); // the server is asked every five to ten seconds
    expect(runs.slice(0, 2).map((run) => run.slice(0, -2)).sort()).toEqual(['default/p', 'default/q']); // biome-ignore format: one line
    expect((await test.resource(CHILDREN).list()).items.map(({ metadata }) => metadata?.name)).toEqual(['p', 'q']);
    expect((await ready())[0]).toBe(200);
    // Nothing is left of the delays.
    runs.splice(0);
    await test.advance(1_000_000);
    expect(runs).toEqual([]);
    await test.close();
  });

  it('is logged as deleted and as back, and its source works again only then', async () => {
    const { test, remove, define } = await family();
    const lines: string[] = [];
    const say = (text: string): void => void lines.push(text);
    const faults: string[] = [];
    const log: Log = { debug: say, info: say, warn: say, error: (text) => void faults.push(text) };
    const operator = new Operator({ cluster: test.server, name: 'second', clock: test.clock, log });
    operator.controller({ for: CHILDREN, reconcile: () => {} });
    const stop = new AbortController();
    const ran = operator.run(stop.signal);
    await test.advance(2_000);
    await remove('children');
    await test.advance(60_000);
    expect(lines.at(-1)).toBe('children.example.com/v1 has been deleted: waits for the server to have it again');
    const before = lines.length;
    await define(childrenCrd);
    await test.advance(10_000);
    expect(lines[before]).toBe('the server has children.example.com/v1 now');
    expect(lines.slice(before + 1)).toEqual([expect.stringContaining('works again')]);
    expect(faults).toEqual([expect.stringContaining('failed')]);
    stop.abort();
    await ran;
    await test.close();
  });

  it('leaves nothing when the operator ends meanwhile', async () => {
    const { test, remove } = await family();
    await remove('children');
    await test.advance(10_000);
    await test.close();
    expect(test.clock.pending).toBe(0);
  });

  it('that a controller is for: its objects are reconciled as deleted, and the others go on', async () => {
    const { test, runs, remove, ready } = await family();
    runs.splice(0);
    await remove('parents');
    await test.advance(30_000);
    expect([...new Set(runs)].sort()).toEqual(['default/p gone', 'default/q gone']);
    expect((await ready())[0]).toBe(500);
    await test.close();
  });
});

describe('the cache of a kind', () => {
  /** That of the children, whose source is a fake, and what it tells. */
  function cacheOf(objects: readonly object[] = []) {
    const clock = new FakeClock();
    const source = new FakeListWatcher({ objects: objects as KubernetesObject[] });
    const followed = Object.assign(source, { waiting: false, client: undefined, type: undefined });
    const type = { group: 'example.com', version: 'v1', plural: 'children', kind: 'Child', namespaced: true };
    const told: string[] = [];
    // That a source works, or that something has changed, may be said again and again.
    const tell = (text: string) => (): void => void (told.at(-1) !== text && told.push(text));
    const onAway = (): (() => void) => {
      told.push('away');
      return tell('back');
    };
    const deps = { clock, onAway, onError: tell('failed'), onWell: tell('well') };
    const cache = new KindCache(followed as unknown as FollowedKind, type, deps);
    cache.listeners.add(tell(''));
    const stop = new AbortController();
    const run = async (): Promise<void> => {
      void cache.run(stop.signal);
      await settle();
    };
    const turn = (waiting: boolean): void => {
      followed.waiting = waiting;
      cache.turned();
    };
    return { cache, clock, source, followed, told, stop, run, turn };
  }

  it('is not away before it was there', async () => {
    const { cache, told, run, turn, stop } = cacheOf();
    turn(true);
    turn(false);
    expect([cache.isAway, cache.isComplete, told]).toEqual([false, true, []]);
    await run();
    expect(told.splice(0)).toEqual(['well']);
    turn(true);
    expect([cache.isAway, told]).toEqual([true, ['away', '']]);
    stop.abort();
    await settle();
    expect(told).toEqual(['away', '', 'back']);
  });

  it('tells once that it is away and back, however often its kind comes and goes before it has its objects', async () => {
    const { cache, told, run, turn, stop } = cacheOf();
    await run();
    told.splice(0);
    for (const waiting of [true, false, true, false, false]) turn(waiting);
    expect([cache.isAway, cache.isComplete, told.splice(0)]).toEqual([true, false, ['away', '']]);
    await settle();
    expect([cache.isAway, cache.isComplete, told.splice(0)]).toEqual([false, true, ['well', 'back', 'well', '']]);
    turn(true);
    turn(false);
    turn(true);
    await settle();
    expect([cache.isAway, told]).toEqual([true, ['away', '']]);
    stop.abort();
  });

  it('has a source that works when it is connected and the server has the kind', async () => {
    const { clock, source, followed, told, run, stop } = cacheOf();
    source.failList(new Error('down'), 2);
    source.failWatch(new Error('down'), 2);
    await run();
    expect(told.splice(0)).toEqual(['failed']);
    await clock.advanceAsync(100_000);
    expect([told[0], told.at(-1)]).toEqual(['failed', 'well']);
    followed.waiting = true;
    told.splice(0);
    source.cut();
    await clock.advanceAsync(100_000);
    expect([source.openWatches, told]).toEqual([1, []]);
    stop.abort();
  });

  it.each([{}, { kind: 'Child' }, { apiVersion: 'example.com/v1' }])(
    'completes the kind of objects that have %j of it, and keeps others',
    async (given) => {
      const typed = { kind: 'Child', apiVersion: 'example.com/v1', metadata: { name: 'b' } };
      const { cache, source, run, stop } = cacheOf([{ metadata: { name: 'a' }, ...given }, typed]);
      await run();
      const [a, b] = ['a', 'b'].map((name) => cache.informer.store.get(name));
      expect([a?.kind, a?.apiVersion, b]).toEqual(['Child', 'example.com/v1', source.objects[1]]);
      expect(b).toBe(source.objects[1]);
      stop.abort();
    },
  );
});
