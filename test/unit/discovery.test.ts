// Resources by the names that people use, from what a server says it has, well-formed or not.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Cluster, type ResourceType } from '../../src/kubernetes/index.ts';
import { type ClusterServer, json, type Reply, serveCluster } from './cluster-server.ts';

let server: ClusterServer;
let cluster: Cluster;
let pages: Record<string, unknown>;

const resource = (name: string, singularName: string, kind: string, more: object = {}): object => ({
  name,
  singularName,
  kind,
  namespaced: true,
  ...more,
});

beforeEach(async () => {
  server = await serveCluster();
  server.reply = (response, noted) => {
    const page = pages[noted.url];
    if (typeof page === 'number' || page === undefined) json({ kind: 'Status', code: page ?? 404 }, page ?? 404)(response, noted);
    else json(page)(response, noted);
  };
  pages = {
    '/api': { kind: 'APIVersions', versions: ['v1'] },
    '/api/v1': {
      resources: [
        resource('pods/status', '', 'Pod'),
        resource('pods', 'pod', 'Pod', { shortNames: ['po'] }),
        resource('nodes', 'node', 'Node', { namespaced: false }),
      ],
    },
    '/apis': {
      groups: [
        { name: 'metrics.k8s.io', preferredVersion: { version: 'v1' }, versions: [{ version: 'v1' }] },
        { name: 'apps', preferredVersion: { version: 'v1' }, versions: [{ version: 'v2beta1' }, { version: 'v1' }] },
      ],
    },
    '/apis/metrics.k8s.io/v1': 503, // whose server is away
    '/apis/apps': { name: 'apps', preferredVersion: { version: 'v1' }, versions: [{ version: 'v2beta1' }, { version: 'v1' }] },
    '/apis/apps/v1': { resources: [resource('deployments', 'deployment', 'Deployment', { shortNames: ['deploy'] })] },
    '/apis/apps/v2beta1': { resources: [resource('novelties', '', 'Novelty')] },
  };
  cluster = new Cluster({
    getCurrentContext: () => 'c',
    getContextObject: () => null,
    getCurrentCluster: () => ({ server: server.url }),
    getCurrentUser: () => ({}),
    applyToHTTPSOptions: async (options) => void Object.assign(options, { ca: server.ca }),
  });
});
afterEach(async () => {
  cluster.close();
  await server.close();
});

const urls = (): string[] => server.requests.map(({ url }) => url);
const found = async (name: string): Promise<ResourceType> => (await cluster.find(name)).type;
const deployments = { group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment', namespaced: true };

describe('find', () => {
  it.each(['pods', 'pod', 'po', 'Pod', 'pods/v1'])('%s of the core group', async (name) => {
    expect(await found(name)).toEqual({ group: '', version: 'v1', plural: 'pods', kind: 'Pod', namespaced: true });
    expect(server.requests.map(({ url }) => url)).toEqual(['/api/v1']);
  });

  it.each(['deploy', 'deployments', 'deployments.apps', 'deployment.apps/v1', 'deployments.v1.apps'])(
    '%s of another',
    async (name) => {
      expect(await found(name)).toEqual(deployments);
    },
  );

  it('with the version before the group, as kubectl writes it', async () => {
    expect(await found('novelties.v2beta1.apps')).toMatchObject({ group: 'apps', version: 'v2beta1' });
    expect(await found('pods.v1.')).toMatchObject({ group: '', version: 'v1' });
    pages['/apis/v1.apps'] = { name: 'v1.apps', preferredVersion: { version: 'v3' } };
    pages['/apis/v1.apps/v3'] = { resources: [resource('deployments', 'deployment', 'Deployment')] };
    expect(await found('deployments.v1.apps')).toMatchObject({ group: 'v1.apps', version: 'v3' });
  });

  it('in the version that has it, the preferred one first', async () => {
    expect(await found('novelties')).toMatchObject({ version: 'v2beta1' });
    expect(server.requests.map(({ url }) => url)).toEqual([
      '/api/v1',
      '/apis',
      '/apis/metrics.k8s.io/v1',
      '/apis/apps/v1',
      '/apis/apps/v2beta1',
    ]);
  });

  it('knows what is in no namespace', async () => {
    const nodes = await cluster.find('nodes');
    expect(nodes.type.namespaced).toBe(false);
    expect(nodes.url.href).toBe(`${server.url}/api/v1/nodes`);
  });

  it.each(['nothing', 'pods.apps', 'pods.nowhere', 'pods/v2', 'pods.nowhere/v1'])('%s: nothing of this name', async (name) => {
    await expect(cluster.find(name)).rejects.toThrow(`resource: expected one that the server has, got "${name}"`);
  });

  it.each(['', '/', 'a/b/c', 'a./v1', '../x', 'pods/..', 'pods.a%2f..'])('%j is no name', async (name) => {
    await expect(cluster.find(name)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(server.requests).toEqual([]);
  });

  it('whatever the server says instead is no reason to fail in another way', async () => {
    const odd = [null, 'x', { groups: 5 }, { groups: [null, 5, { name: 5 }, { name: '..', versions: [{ version: '..' }] }] }];
    for (const apis of odd) {
      pages['/apis'] = apis;
      await expect(found('deploy')).rejects.toHaveProperty('code');
    }
    pages['/api/v1'] = { resources: [null, 5, {}, { name: 5 }, { name: 'x', shortNames: 'deploy' }] };
    await expect(found('deploy')).rejects.toHaveProperty('code');
  });

  it('a group that is called like a version', async () => {
    pages['/apis/v1'] = { name: 'v1', versions: [{ version: 'v2' }] };
    pages['/apis/v1/v2'] = { resources: [resource('oddities', '', 'Oddity')] };
    expect(await found('oddities.v1')).toMatchObject({ group: 'v1', version: 'v2' });
  });

  it('a refusal is passed on', async () => {
    pages['/api/v1'] = 401;
    await expect(found('pods')).rejects.toMatchObject({ code: 'REFUSED', status: { code: 401 } });
  });
});

describe('what is no word of the server', () => {
  const NAMES = ['sites', 'sites.apps', 'sites.apps/v1', 'sites.nowhere/v1', 'pods/v2', { apiVersion: 'apps/v1', kind: 'Site' }];
  const text =
    (code: number, body: string): Reply =>
    (response) =>
      void response.writeHead(code, { 'content-type': 'text/plain' }).end(body);

  it.each([
    [404, '404 page not found\n'],
    [503, 'no available server\n'],
  ])('a proxy that answers %d to everything', async (code, body) => {
    server.reply = text(code, body);
    for (const name of NAMES) await expect(cluster.kind(name)).rejects.toMatchObject({ code: 'REFUSED', status: { code } });
  });

  it.each([['{}'], ['[]'], ['{"groups":5,"resources":{},"versions":"v1"}']])(
    'a document that lists nothing, %s',
    async (body) => {
      server.reply = (response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(body);
      for (const name of NAMES) await expect(cluster.kind(name)).rejects.toMatchObject({ code: 'INVALID_FRAME' });
    },
  );

  it('a 404 of what it lists', async () => {
    for (const path of ['/apis/apps', '/apis/apps/v1', '/api/v1']) delete pages[path];
    for (const name of ['sites.apps', 'sites.apps/v1', 'sites/v1']) {
      await expect(cluster.find(name)).rejects.toMatchObject({ status: { code: 404 } });
    }
  });

  it('a 503 of a group that was named; but another version may have it', async () => {
    pages['/apis/apps/v1'] = 503;
    await expect(found('sites.apps')).rejects.toMatchObject({ status: { code: 503 } });
    expect(await found('novelties.apps')).toMatchObject({ version: 'v2beta1' });
  });

  it('of a server that has no core group, the others are found', async () => {
    for (const path of ['/api', '/api/v1']) delete pages[path];
    expect(await found('deploy')).toEqual(deployments);
    await expect(found('sites')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(found('pods/v1')).rejects.toMatchObject({ status: { code: 404 } });
  });
});

describe('kind', () => {
  it('by the kind of the objects, in its own spelling', async () => {
    const { type, url } = await cluster.kind({ apiVersion: 'apps/v1', kind: 'Deployment' });
    expect(type).toEqual(deployments);
    expect(url.pathname).toBe('/apis/apps/v1/deployments');
    expect((await cluster.kind({ apiVersion: 'v1', kind: 'Node' })).type).toMatchObject({ group: '', plural: 'nodes' });
    for (const kind of ['deployment', 'deployments', 'deploy', 'Pod']) {
      await expect(cluster.kind({ apiVersion: 'apps/v1', kind })).rejects.toThrow(`got "apps/v1 ${kind}"`);
    }
  });

  it.each([
    {},
    { apiVersion: 'v1' },
    { kind: 'Pod' },
    { apiVersion: 'a/b/c', kind: 'Pod' },
    { apiVersion: '../v1', kind: 'Pod' },
  ])('%j is none', async (kind) => {
    await expect(cluster.kind(kind as never)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(urls()).toEqual([]);
  });

  it('refuses other options', async () => {
    await expect(cluster.kind('pods', { maxAge: 5 } as never)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(cluster.kind('pods', { maxAgeMs: -1 })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(cluster.find('pods', { signal: AbortSignal.abort('why') })).rejects.toBe('why');
    expect(urls()).toEqual([]);
  });
});

describe('the whole answer, since Kubernetes 1.26', () => {
  const described = (name: string, kind: string, more: object = {}): object => ({
    ...{
      resource: name,
      responseKind: { group: '', version: '', kind },
      scope: 'Namespaced',
      singularResource: kind.toLowerCase(),
    },
    ...more,
  });
  beforeEach(() => {
    pages['/apis'] = {
      kind: 'APIGroupDiscoveryList',
      items: [
        {
          metadata: { name: 'apps' },
          versions: [
            {
              version: 'v1',
              resources: [
                described('deployments', 'Deployment', { shortNames: ['deploy'], subresources: [{ subresource: 'scale' }] }),
                described('things', 'Thing', { scope: 'Cluster' }),
              ],
              freshness: 'Current',
            },
            { version: 'v2beta1', resources: [described('deployments', 'Deployment'), described('novelties', 'Novelty')] },
          ],
        },
        { metadata: { name: 'metrics.k8s.io' }, versions: [{ version: 'v1', freshness: 'Stale' }] },
        null,
        { metadata: { name: '..' }, versions: [{ version: 'v1', resources: [described('deploy', 'Deploy')] }] },
        { versions: [null, {}] },
      ],
    };
  });

  it('costs one request for all groups, and one for the core group', async () => {
    const names = [
      'deployments.apps/v1',
      { apiVersion: 'apps/v1', kind: 'Thing' },
      'novelties.apps',
      'pods/v1',
      'nodes',
      'deploy',
    ];
    const types = await Promise.all(names.map(async (name) => (await cluster.kind(name)).type));
    expect(types[0]).toEqual(deployments);
    expect(types[1]).toEqual({ group: 'apps', version: 'v1', plural: 'things', kind: 'Thing', namespaced: false });
    expect(types[2]).toMatchObject({ version: 'v2beta1' });
    expect(types[5]).toEqual(deployments);
    expect(urls().sort()).toEqual(['/api/v1', '/apis']);
    expect(server.requests[0]?.headers.accept).toMatch(
      /^application\/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,.*,application\/json$/,
    );
  });

  it('a server that is away is asked itself', async () => {
    pages['/apis/metrics.k8s.io/v1'] = { resources: [resource('nodes', 'node', 'NodeMetrics')] };
    expect((await cluster.kind('nodes.metrics.k8s.io/v1')).type).toMatchObject({ kind: 'NodeMetrics' });
    expect(urls()).toEqual(['/apis', '/apis/metrics.k8s.io/v1']);
  });

  it('what is new is found, although the whole answer is kept', async () => {
    await found('deploy');
    pages['/apis/apps/v1'] = { resources: [resource('sites', 'site', 'Site')] };
    expect(await found('sites.apps/v1')).toMatchObject({ kind: 'Site' });
    expect(await found('sites.apps')).toMatchObject({ kind: 'Site' });
    expect(urls()).toEqual(['/api/v1', '/apis', '/apis/apps/v1', '/apis/apps', '/apis/apps/v1']);
  });

  it('is the answer, too, while the one of the group is not there yet', async () => {
    delete pages['/apis/apps/v1'];
    expect((await cluster.kind('things.apps/v1', { maxAgeMs: 0 })).type).toMatchObject({ kind: 'Thing' });
    await expect(found('sites.apps/v1')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  it('is asked for again when it is too old for the caller', async () => {
    await found('things.apps');
    await found('things.apps');
    expect(urls()).toEqual(['/apis']);
    pages['/apis/apps/v1'] = { resources: [] };
    await expect(cluster.kind('things.apps/v1', { maxAgeMs: 0 })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(urls()).toEqual(['/apis', '/apis/apps/v1']);
    expect(await found('things.apps/v1')).toMatchObject({ kind: 'Thing' });
  });

  it('what has failed is not kept', async () => {
    const good = pages['/apis'];
    pages['/apis'] = 500;
    const asked = [found('things.apps'), found('things.apps')];
    for (const each of asked) await expect(each).rejects.toMatchObject({ status: { code: 500 } });
    pages['/apis'] = good;
    expect(await found('things.apps')).toMatchObject({ kind: 'Thing' });
    expect(urls()).toEqual(['/apis', '/apis']);
  });

  it('one that leaves takes nothing from the others', async () => {
    const abort = new AbortController();
    const [gone, stays] = [cluster.kind('things.apps', { signal: abort.signal }), cluster.kind('things.apps')];
    abort.abort('enough');
    await expect(gone).rejects.toBe('enough');
    expect((await stays).type.kind).toBe('Thing');
  });
});
