// Kinds that a server has, does not have yet, or no longer: how they are found, and followed.
import { describe, expect, it } from 'vitest';
import { ApiServer, CONFIG_MAPS, NAMESPACES, type ResourceDefinition } from '../../src/apiserver/index.ts';
import {
  Informer,
  type KubernetesObject,
  type List,
  type ListOptions,
  type ListWatchOptions,
  type ResourceClient,
} from '../../src/cache/index.ts';
import { preparedList } from '../../src/cache/pager.ts';
import { Broadcaster, type ObjectEvent } from '../../src/index.ts';
import { loadCluster } from '../../src/kubernetes/index.ts';
import { FollowedKind, type KindName, kind, Operator, type ResourceSource } from '../../src/operator/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { refused } from '../../src/storage/statuses.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { invalid } from '../../src/watch/errors.ts';
import { closers } from '../closing.ts';
import { json, serveCluster } from './cluster-server.ts';
import { crdOf } from './crd-rig.ts';
import { fate } from './support.ts';

const WIDGETS = { group: 'example.com', version: 'v1', plural: 'widgets', kind: 'Widget', namespaced: true } as const;
const widget = (name: string): KubernetesObject => ({ apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name } });

/** A server, and the kinds that it was asked for. */
function world() {
  const clock = new FakeClock();
  const resources = [CONFIG_MAPS, NAMESPACES] as ResourceDefinition[];
  const server = new ApiServer({ storage: new MemoryStorage(), resources, customResourceDefinitions: true });
  const asked: string[] = [];
  const source: ResourceSource = {
    resource: (type) => server.resource(type),
    kind: async (name, options) => {
      asked.push(typeof name === 'string' ? name : `${name.apiVersion} ${name.kind}`);
      return server.kind(name, options);
    },
  };
  const crds = server.resource('customresourcedefinitions.apiextensions.k8s.io/v1');
  const serves = async (name = 'widgets.example.com/v1'): Promise<ResourceClient> => {
    let found: ResourceClient | undefined;
    await expect
      .poll(async () => {
        found = await server.kind(name).catch(() => undefined);
        return found;
      })
      .toBeDefined();
    return found as ResourceClient;
  };
  const define = async (...args: Parameters<typeof crdOf>): Promise<ResourceClient> => {
    await crds.create(crdOf(...args));
    return serves(`${args[2] ?? 'widgets'}.example.com/v1`);
  };
  const remove = async (name = 'widgets.example.com'): Promise<void> => {
    await crds.delete(name);
    await expect.poll(() => crds.get(name).catch(() => undefined)).toBeUndefined();
  };
  const said: string[] = [];
  const follow = (name: KindName, more: object = {}): FollowedKind =>
    new FollowedKind(source, name, { clock, tell: (text) => void said.push(text), random: () => 0, ...more });
  return { clock, server, source, asked, said, define, remove, follow, crds };
}

/** A server with one object, whose collection and whose discovery say different things. */
function flaky() {
  const clock = new FakeClock();
  const state = {
    lists: true,
    knows: true,
    refusals: 0,
    pages: false,
    expired: false,
    namespace: undefined as string | undefined,
    onPage: (): unknown => undefined,
    cut: (): void => {},
    send: (_: ObjectEvent<KubernetesObject>): void => {},
  };
  const object = (name: string): KubernetesObject => ({
    metadata: { name, namespace: state.namespace, uid: name, resourceVersion: '5' },
  });
  const served = (): void => {
    if (state.lists) return;
    // Who asks again at once, and for ever, comes to an end here.
    if (++state.refusals > 100) throw new Error('asked without end');
    throw refused(404, 'NotFound', 'the server could not find the requested resource');
  };
  const client = {
    type: WIDGETS,
    list: async ({ continue: token }: ListOptions = {}) => {
      served();
      if (token) return { items: [object('b')], resourceVersion: '5' };
      state.onPage();
      return { items: [object('a')], resourceVersion: '5', ...(state.pages && { continue: 'b' }) };
    },
    watch: async ({ sendInitialEvents, signal }: ListWatchOptions = {}) => {
      served();
      if (sendInitialEvents) throw refused(422, 'Invalid', 'no streams');
      if (state.expired) throw refused(410, 'Expired', 'too old');
      const changes = new Broadcaster<ObjectEvent<KubernetesObject>>();
      state.cut = () => changes.shutdown();
      state.send = (event) => void changes.tryPublish(event);
      return changes.watch({ signal });
    },
  };
  const kindOf = async (): Promise<unknown> => {
    if (!state.knows) throw invalid('resource', 'widgets', 'one that the server has');
    return client;
  };
  return { clock, state, source: { resource: () => client, kind: kindOf } as unknown as ResourceSource };
}

const ends = closers();

/** Follows a kind with an informer, and notes what its handler sees. */
function inform(followed: FollowedKind, clock: FakeClock) {
  const changes: string[] = [];
  const errors: string[] = [];
  const informer = new Informer(followed, { clock, onError: (error) => void errors.push(String(error)) });
  informer.addHandler({
    onAdd: ({ metadata }) => changes.push(`+${metadata?.name}`),
    onUpdate: (old, { metadata }) => changes.push(`${old.metadata?.uid === metadata?.uid ? '~' : '!'}${metadata?.name}`),
    onDelete: ({ metadata }) => changes.push(`-${metadata?.name}`),
  });
  const abort = new AbortController();
  const ran = informer.run(abort.signal);
  ends.push(async () => {
    abort.abort();
    await ran;
    expect(clock.pending).toBe(0);
  });
  return { informer, changes, errors };
}

/** Lets the clock go on until something holds. */
const reached = (clock: FakeClock, holds: () => boolean): Promise<void> =>
  expect
    .poll(
      async () => {
        await clock.advanceAsync(500);
        return holds();
      },
      { interval: 1 },
    )
    .toBe(true) as never;

describe('what the server calls a kind', () => {
  it('is asked for by the word that names it, typed or not: a plural of the core group, or a name that the server has for one', async () => {
    const { server, source, asked, said, follow } = world();
    const deployments = { group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment', shortNames: ['deploy'] };
    const other = new ApiServer({ storage: new MemoryStorage(), resources: [CONFIG_MAPS, deployments] });
    const followed = new FollowedKind({ ...source, kind: (name, options) => other.kind(name, options) }, kind('deploy'), {
      tell: (text) => void said.push(text),
    });
    expect(await followed.resolve()).toMatchObject({ group: 'apps', plural: 'deployments', kind: 'Deployment' });
    expect([followed.name, said]).toEqual([new FollowedKind(source, 'deploy').name, []]);
    expect(await follow(kind('configmaps')).resolve()).toMatchObject({ group: '', plural: 'configmaps' });
    // With its version, it is a plural of the core group, and nothing else.
    expect([kind('deploy'), kind('deploy/v1')]).toEqual(Array(2).fill({ plural: 'deploy', version: 'v1' }));
    await expect(other.kind('deploy/v1')).rejects.toHaveProperty('code', 'INVALID_ARGUMENT');
    follow(kind('deploy/v1'))
      .resolve()
      .catch(() => undefined);
    await expect.poll(() => said).toEqual(['waits for deploy/v1: the server does not have it yet']);
    expect(asked).toEqual(['configmaps', 'deploy/v1']);
    expect(server.resource(kind('configmaps')).type).toMatchObject({ plural: 'configmaps' });
  });

  it('asks nothing of a complete type', () => {
    const { source, asked } = world();
    expect(new FollowedKind(source, kind(WIDGETS)).type).toEqual(WIDGETS);
    expect(new FollowedKind(source, { version: 'v1', plural: 'pods', kind: 'Pod', namespaced: true }).type).toMatchObject({
      group: '',
    });
    expect(asked).toEqual([]);
  });

  it.each([
    'widgets.example.com/v1',
    'widgets.example.com',
    { apiVersion: 'example.com/v1', kind: 'Widget' },
    { group: 'example.com', version: 'v1', plural: 'widgets' },
  ])('asks for %j', async (name) => {
    const { source, asked, define } = world();
    await define();
    expect(await new FollowedKind(source, name).resolve()).toEqual(WIDGETS);
    expect(asked).toHaveLength(1);
  });

  it.each([null, 5, {}, { apiVersion: 'v1' }, { kind: 'Pod' }, { plural: 'a/b', version: 'v1' }])('%j names no kind', (name) => {
    const { source, asked } = world();
    expect(() => new FollowedKind(source, name as never)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
    expect(asked).toEqual([]);
  });
});

describe('a kind that is not there yet', () => {
  it.each([
    ['by name', 'widgets.example.com/v1'],
    ['complete', WIDGETS],
    ['by kind', { apiVersion: 'example.com/v1', kind: 'Widget' }],
  ])('is waited for, %s', async (_, name) => {
    const { clock, follow, said, asked, define } = world();
    const followed = follow(name);
    const { informer, changes, errors } = inform(followed, clock);
    await clock.advanceAsync(60_000);
    expect(informer.hasSynced).toBe(false);
    expect(followed).toMatchObject({ waiting: true, type: undefined, client: undefined });
    expect(said).toEqual([`waits for ${followed.name}: the server does not have it yet`]);
    // 0.5, 1, 2, 4, and then every 5 seconds.
    expect(asked.length).toBeGreaterThan(10);
    expect(asked.length).toBeLessThan(20);
    await (await define()).in('default').create(widget('a'));
    await clock.advanceAsync(5_000);
    await informer.synced;
    await reached(clock, () => changes.length > 0);
    expect(changes).toEqual(['+a']);
    expect(said.slice(1)).toEqual([`the server has ${followed.name} now`]);
    expect(followed).toMatchObject({ waiting: false, type: WIDGETS });
    expect(errors).toEqual([]);
  });

  it('several wait for one answer, and the last that leaves ends the questions', async () => {
    const { clock, follow, asked } = world();
    const followed = follow('widgets.example.com/v1');
    const [one, other] = [new AbortController(), new AbortController()];
    const waits = [followed.resolve(one.signal), followed.resolve(other.signal)];
    await clock.advanceAsync(0);
    expect(asked).toHaveLength(1);
    one.abort('one');
    await expect(waits[0]).rejects.toBe('one');
    await clock.advanceAsync(600);
    expect(asked).toHaveLength(2);
    other.abort('other');
    await expect(waits[1]).rejects.toBe('other');
    await clock.advanceAsync(60_000);
    expect(asked).toHaveLength(2);
    expect(clock.pending).toBe(0);
  });

  it('a server that fails meanwhile is reported', async () => {
    const { clock, server } = world();
    const errors: unknown[] = [];
    let fails = true;
    const source: ResourceSource = {
      resource: (type) => server.resource(type),
      kind: async () => (fails ? Promise.reject(new Error('away')) : ({ type: WIDGETS } as never)),
    };
    await expect(new FollowedKind(source, 'widgets.example.com/v1', { clock }).resolve()).rejects.toThrow('away');
    const followed = new FollowedKind(source, 'widgets.example.com/v1', { clock, onError: (error) => errors.push(error) });
    const resolved = followed.resolve();
    await clock.advanceAsync(700);
    expect(errors.length).toBeGreaterThan(0);
    expect(followed.error).toBe(errors.at(-1));
    fails = false;
    await clock.advanceAsync(5_000);
    expect([await resolved, followed.error]).toEqual([WIDGETS, undefined]);
    expect(clock.pending).toBe(0);
  });
});

describe('a kind that is deleted', () => {
  it('leaves no objects behind, and comes back with its new ones', async () => {
    const { clock, follow, said, define, remove } = world();
    const widgets = (await define()).in('default');
    await widgets.create(widget('a'));
    await widgets.create(widget('b'));
    const followed = follow('widgets.example.com/v1');
    const { informer, changes } = inform(followed, clock);
    await reached(clock, () => changes.length === 2);
    await remove();
    await reached(clock, () => followed.waiting && informer.store.size === 0);
    expect(changes.slice(2).sort()).toEqual(['-a', '-b']);
    expect(said).toEqual(['widgets.example.com/v1 has been deleted: waits for the server to have it again']);
    await (await define()).in('default').create(widget('a'));
    await reached(clock, () => changes.length === 5);
    expect(changes[4]).toBe('+a');
    expect(said[1]).toBe('the server has widgets.example.com/v1 now');
    expect(informer.hasSynced).toBe(true);
  });

  it('is still gone for a follower that could not use that answer, at a version that does not go back', async () => {
    const { clock, source, state } = flaky();
    const followed = new FollowedKind(source, 'widgets.example.com/v1', { clock, random: () => 0 });
    await followed.list();
    const watch = await followed.watch({ resourceVersion: '5' });
    for (const resourceVersion of ['6', '3']) {
      state.send({ type: 'ADDED', object: { metadata: { name: 'b', resourceVersion } } });
      await watch.next();
    }
    watch.stop();
    Object.assign(state, { lists: false, knows: false });
    for (const resourceVersion of ['7', '', '']) {
      const list = fate(followed.list({ resourceVersion }));
      await clock.advanceAsync(5_000);
      expect(list.value).toEqual({ items: [], resourceVersion: resourceVersion || '6' });
    }
    const check = fate(followed.list({ resourceVersion: '5', resourceVersionMatch: 'NotOlderThan', limit: 1 }));
    await clock.advanceAsync(5_000);
    expect(check.error).toMatchObject({ status: { code: 410 } });
    Object.assign(state, { lists: true, knows: true });
    expect((await followed.list()).items).toHaveLength(1);
    expect(clock.pending).toBe(0);
  });

  it('is asked about twice, seconds apart: one of several servers may not know it', async () => {
    const { clock, source, state } = flaky();
    const said: string[] = [];
    const followed = new FollowedKind(source, 'widgets.example.com/v1', { clock, tell: (text) => void said.push(text) });
    const { informer, changes, errors } = inform(followed, clock);
    await reached(clock, () => changes.length === 1);
    await clock.advanceAsync(2_000);
    Object.assign(state, { lists: false, knows: false });
    state.cut();
    for (let at = 0; at < 10; at++) {
      await clock.advanceAsync(200);
      expect(informer.store.size).toBe(1);
    }
    state.knows = true;
    await reached(clock, () => errors.some((text) => text.includes('404')));
    expect([informer.store.size, changes, said]).toEqual([1, ['+a'], []]);
    state.knows = false;
    await reached(clock, () => informer.store.size === 0);
    expect(said).toEqual(['widgets.example.com/v1 has been deleted: waits for the server to have it again']);
  });

  it('while nobody could see it: the objects that were missed go with it', async () => {
    const { clock, source, state } = flaky();
    const { informer, changes, errors } = inform(new FollowedKind(source, 'widgets.example.com/v1', { clock }), clock);
    await reached(clock, () => changes.length === 1);
    Object.assign(state, { lists: false, knows: false });
    await clock.advanceAsync(2_000); // a watch that ends sooner is a failure of its own
    state.cut();
    await reached(clock, () => informer.store.size === 0);
    expect(changes).toEqual(['+a', '-a']);
    Object.assign(state, { lists: true, knows: true });
    await reached(clock, () => changes.length === 3);
    expect(changes[2]).toBe('+a');
    expect(errors.filter((text) => !/404|410/.test(text))).toEqual([]);
  });

  it('comes back with another scope', async () => {
    const { clock, follow, define, remove } = world();
    await (await define()).in('default').create(widget('a'));
    const followed = follow({ apiVersion: 'example.com/v1', kind: 'Widget' }, { namespace: 'default' });
    const { changes } = inform(followed, clock);
    await reached(clock, () => changes.length === 1);
    await remove();
    await reached(clock, () => changes.length === 2);
    await (await define({ scope: 'Cluster', names: { plural: 'widgetz', kind: 'Widget' } }, {}, 'widgetz')).create(widget('c'));
    await reached(clock, () => changes.length === 3);
    expect(changes).toEqual(['+a', '-a', '+c']);
    expect(followed.type).toEqual({ ...WIDGETS, plural: 'widgetz', namespaced: false });
  });

  it.each([
    { before: 'Namespaced', after: 'Cluster', there: true },
    { before: 'Namespaced', after: 'Cluster', there: false },
    { before: 'Cluster', after: 'Namespaced', there: true },
    { before: 'Cluster', after: 'Namespaced', there: false },
  ])('comes back, $after and no longer $before, before anybody looks; with objects: $there', async ({ before, after, there }) => {
    const { clock, follow, define, remove, said } = world();
    const names = { plural: 'widgets', kind: 'Widget' };
    const defined = async (scope: string): Promise<ResourceClient> => {
      const client = await define({ scope, names });
      return scope === 'Cluster' ? client : client.in('default');
    };
    await (await defined(before)).create(widget('a'));
    const followed = follow('widgets.example.com/v1');
    const { informer, changes } = inform(followed, clock);
    await reached(clock, () => changes.length === 1);
    await remove();
    const widgets = await defined(after);
    if (there) await widgets.create(widget('b'));
    await reached(clock, () => changes.length === (there ? 3 : 2));
    if (!there) await widgets.create(widget('b'));
    await reached(clock, () => followed.type?.namespaced === (after === 'Namespaced') && changes.includes('+b'));
    await reached(clock, () => informer.store.size === 1 && informer.state.connected);
    expect(followed.client?.type).toEqual({ ...WIDGETS, namespaced: after === 'Namespaced' });
    expect(said).toEqual([]);
  });

  it('comes back with another scope, and has gone again before the server is asked', async () => {
    const { clock, state, source } = flaky();
    state.namespace = 'default';
    const followed = new FollowedKind(source, 'widgets.example.com/v1', { clock, random: () => 0 });
    expect((await followed.list()).items).toHaveLength(1);
    const gone = (): unknown => Object.assign(state, { lists: false, knows: false });
    Object.assign(state, { namespace: undefined, onPage: gone });
    const list = fate(followed.list());
    await clock.advanceAsync(10_000);
    expect(list.value).toEqual({ items: [], resourceVersion: '5' });
    expect([followed.waiting, followed.client]).toEqual([true, undefined]);
  });

  it('comes back with another scope, whose objects a transform does not expect', async () => {
    const { clock, follow, define, remove } = world();
    const names = { plural: 'widgets', kind: 'Widget' };
    await (await define()).in('default').create(widget('a'));
    const followed = follow('widgets.example.com/v1');
    const seen: unknown[] = [];
    const list = (): Promise<List<KubernetesObject>> =>
      preparedList(followed, {}, (object) => {
        seen.push([object.metadata?.name, followed.type?.namespaced]);
        return object;
      });
    await list();
    await remove();
    await (await define({ scope: 'Cluster', names })).create(widget('b'));
    await list();
    expect(seen).toEqual([['a', true], ['b', false]]); // biome-ignore format: one line
    expect(clock.pending).toBe(0);
  });

  it('objects that are not of the scope that the server tells are taken as they are', async () => {
    const { clock, source } = flaky(); // it has objects in no namespace of a kind that has namespaces
    const asked: unknown[] = [];
    const counted = {
      ...source,
      kind: async (...args: Parameters<ResourceSource['kind']>) => {
        asked.push(args);
        return source.kind(...args);
      },
    };
    const { changes, errors } = inform(new FollowedKind(counted as ResourceSource, 'widgets.example.com/v1', { clock }), clock);
    await reached(clock, () => changes.length === 1);
    await clock.advanceAsync(60_000);
    expect([changes, errors, asked.length]).toEqual([['+a'], [], 2]);
  });

  it('a version that is no longer served takes no objects away', async () => {
    const { clock, follow, define, crds, server } = world();
    const versions = (served: boolean): object[] => {
      const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
      return [
        { name: 'v1', served, storage: true, schema },
        { name: 'v2', served: true, storage: false, schema },
      ];
    };
    await (await define({ versions: versions(true) })).in('default').create(widget('a'));
    const followed = follow('widgets.example.com/v1');
    const { informer, changes, errors } = inform(followed, clock);
    await reached(clock, () => changes.length === 1);
    await crds.patch('widgets.example.com', { spec: { versions: versions(false) } });
    await expect.poll(() => server.kind('widgets.example.com/v1').catch(() => undefined)).toBeUndefined();
    await reached(clock, () => errors.some((text) => text.includes('widgets.example.com/v2, and no longer')));
    expect(informer.store.size).toBe(1);
    expect(changes).toEqual(['+a']);
  });

  it('between two pages of a list: none of the first page is left', async () => {
    const { clock, source, state } = flaky();
    state.pages = true;
    const { informer, changes } = inform(new FollowedKind(source, 'widgets.example.com/v1', { clock }), clock);
    await reached(clock, () => changes.length === 2);
    await clock.advanceAsync(2_000);
    state.onPage = () => Object.assign(state, { lists: false, knows: false });
    state.expired = true;
    state.cut();
    await reached(clock, () => informer.store.size === 0);
    expect(changes.slice(2).sort()).toEqual(['-a', '-b']);
    Object.assign(state, { lists: true, knows: true, expired: false, onPage: () => {} });
    await reached(clock, () => changes.length === 6);
    expect(informer.store.keys().sort()).toEqual(['a', 'b']);
  });

  it('before anything was listed is one that is waited for, although all is known of it', async () => {
    const { clock, source, state } = flaky();
    const said: string[] = [];
    Object.assign(state, { lists: false, knows: false });
    const followed = new FollowedKind(source, WIDGETS, { clock, tell: (text) => void said.push(text) });
    const { changes, errors } = inform(followed, clock);
    await reached(clock, () => followed.waiting);
    Object.assign(state, { lists: true, knows: true });
    await reached(clock, () => changes.length === 1);
    expect(said).toEqual([
      'waits for widgets.example.com/v1: the server does not have it yet',
      'the server has widgets.example.com/v1 now',
    ]);
    expect(errors).toEqual([]);
  });

  it.each([
    ['404 to everything', 404],
    ['404 to lists, and 503 to questions', 503],
  ])('a proxy that answers %s takes none away', async (_, code) => {
    const served = await serveCluster();
    const cluster = await loadCluster({ file: served.kubeconfig({ token: 't' }) });
    ends.push(
      () => served.close(),
      () => cluster.close(),
    );
    const pages: Record<string, object> = {
      '/apis': { groups: [{ name: 'example.com', versions: [{ version: 'v1' }] }] },
      '/apis/example.com/v1': { resources: [{ name: 'widgets', kind: 'Widget', namespaced: true }] },
      '/apis/example.com/v1/widgets': { kind: 'WidgetList', metadata: { resourceVersion: '5' }, items: [widget('a')] },
    };
    served.reply = (response, noted) => json(pages[noted.url])(response, noted);
    const followed = new FollowedKind(cluster, 'widgets.example.com/v1', { clock: new FakeClock() });
    expect((await followed.list()).items).toHaveLength(1);
    served.reply = (response, { url }) =>
      void response.writeHead(url.endsWith('/widgets') ? 404 : code, { 'content-type': 'text/plain' }).end('nothing here');
    await expect(followed.list()).rejects.toMatchObject({ code: 'REFUSED', status: { code } });
    expect(followed).toMatchObject({ waiting: false, type: WIDGETS });
  });

  it('a 404 of a server that has the kind takes none away either', async () => {
    const { clock, source, state } = flaky();
    const { informer, changes, errors } = inform(new FollowedKind(source, 'widgets.example.com/v1', { clock }), clock);
    await reached(clock, () => changes.length === 1);
    state.lists = false;
    state.cut();
    await reached(clock, () => errors.length > 3);
    expect(informer.store.size).toBe(1);
    expect(changes).toEqual(['+a']);
    expect(errors.filter((text) => text.includes('asked without end'))).toEqual([]);
    expect(state.refusals).toBeLessThan(50);
  });

  it('ends a watch with 410 when it is back, so that its objects are listed', async () => {
    const { clock, source, state } = flaky();
    const followed = new FollowedKind(source, 'widgets.example.com/v1', { clock, random: () => 0 });
    await followed.list();
    Object.assign(state, { lists: false, knows: false });
    const empty = followed.list();
    await clock.advanceAsync(30_000);
    const { items, resourceVersion } = await empty;
    expect(items).toEqual([]);
    await expect(followed.watch({ resourceVersion, sendInitialEvents: true })).rejects.toMatchObject({ status: { code: 404 } });
    let isOver = false;
    const watch = followed.watch({ resourceVersion }).finally(() => {
      isOver = true;
    });
    const refusal = expect(watch).rejects.toMatchObject({ code: 'REFUSED', status: { code: 410, reason: 'Expired' } });
    await clock.advanceAsync(60_000);
    expect(isOver).toBe(false);
    Object.assign(state, { lists: true, knows: true });
    await clock.advanceAsync(10_000);
    expect(isOver).toBe(true);
    await refusal;
    expect(clock.pending).toBe(0);
  });
});

describe('an operator', () => {
  it('waits for a kind with those controllers that need it, and copes with its deletion and return', async () => {
    const { clock, server, source, define, remove, crds } = world();
    const seen: string[] = [];
    const said: string[] = [];
    const log = { debug: () => {}, info: () => {}, warn: (text: string) => said.push(text), error: () => {} };
    const maps = server.resource('configmaps/v1').in('default');
    const operator = new Operator({ cluster: source, name: 'widgets', clock, log })
      .controller({ for: 'customresourcedefinitions.apiextensions.k8s.io/v1', reconcile: ({ key }) => void seen.push(key) })
      .controller({
        for: { apiVersion: 'example.com/v1', kind: 'Widget' },
        owns: ['configmaps'],
        reconcile: async ({ key, object, resource }) => {
          seen.push(`${key} ${object ? 'is' : 'gone'}`);
          if (object) await resource({ apiVersion: 'example.com/v1', kind: 'Widget' }).patch(key, { spec: { seen: true } });
        },
      });
    const stop = new AbortController();
    const ran = operator.run(stop.signal);
    ends.push(async () => {
      stop.abort();
      await ran;
      expect(clock.pending).toBe(0);
    });
    await crds.create(crdOf({ names: { plural: 'others', kind: 'Other' } }, {}, 'others'));
    await reached(clock, () => seen.includes('others.example.com'));
    expect(operator.state.kinds).toMatchObject([
      { kind: 'customresourcedefinitions.apiextensions.k8s.io/v1', synced: true, absent: false },
      { kind: 'example.com/v1 Widget', synced: false, absent: true },
      { kind: 'configmaps/v1', synced: true, absent: false },
    ]);
    const widgets = (await define()).in('default');
    await widgets.create(widget('a'));
    await reached(clock, () => seen.includes('default/a is'));
    await expect.poll(() => widgets.get('a')).toMatchObject({ spec: { seen: true } });
    await remove();
    await reached(clock, () => seen.includes('default/a gone') && operator.state.kinds[1]?.absent === true);
    const other = await define({ scope: 'Cluster', names: { plural: 'gadgets', kind: 'Widget' } }, {}, 'gadgets');
    await other.create(widget('b'));
    await reached(clock, () => seen.includes('b is'));
    await expect.poll(() => other.get('b')).toMatchObject({ spec: { seen: true } });
    // What it owns is mapped to an owner in no namespace by now.
    seen.splice(0);
    const { metadata = {} } = await other.get('b');
    const owner = { apiVersion: 'example.com/v1', kind: 'Widget', name: 'b', uid: metadata.uid as string, controller: true };
    await maps.create({ metadata: { name: 'm', ownerReferences: [owner] } });
    await reached(clock, () => seen.includes('b is'));
    expect(said).toEqual([
      'waits for example.com/v1 Widget: the server does not have it yet',
      'the server has example.com/v1 Widget now',
      'example.com/v1 Widget has been deleted: waits for the server to have it again',
      'the server has example.com/v1 Widget now',
    ]);
  });
});
