// Resources by the names that people use, from what a server says it has, well-formed or not.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Cluster, type ResourceType } from '../../src/kubernetes/index.ts';
import { type ClusterServer, json, serveCluster } from './cluster-server.ts';

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

  it('a refusal is passed on', async () => {
    pages['/api/v1'] = 401;
    await expect(found('pods')).rejects.toMatchObject({ code: 'REFUSED', status: { code: 401 } });
  });
});
