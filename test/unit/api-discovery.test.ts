import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { CONFIG_MAPS, NAMESPACES } from '../../src/apiserver/builtin.ts';
import type { ResourceDefinition } from '../../src/apiserver/definition.ts';
import { compareApiVersions, Discovery, digest } from '../../src/apiserver/documents/discovery.ts';
import { type ResourceInfo, toInfo } from '../../src/apiserver/resource-info.ts';

const order = (version: string, more: Partial<ResourceDefinition> = {}): ResourceDefinition => ({
  group: 'example.com',
  version,
  plural: 'orders',
  kind: 'Order',
  shortNames: ['ord'],
  categories: ['all'],
  status: true,
  ...more,
});
const make = (): Discovery =>
  new Discovery(
    ([order('v1beta1', { namespaced: false, status: false }), CONFIG_MAPS, NAMESPACES, order('v1')] as ResourceDefinition[]).map(
      (each) => toInfo(each),
    ),
  );
const body = (path: string, accept?: string): unknown => JSON.parse(make().document(path, accept)?.body ?? 'null');
const verbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];
const few = ['get', 'patch', 'update'];

describe('discovery', () => {
  it('the versions without a group, the groups, and one group', () => {
    const serverAddressByClientCIDRs = [{ clientCIDR: '0.0.0.0/0', serverAddress: '' }];
    expect(body('/api')).toEqual({ kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs });
    const v1 = { groupVersion: 'example.com/v1', version: 'v1' };
    const versions = [v1, { groupVersion: 'example.com/v1beta1', version: 'v1beta1' }];
    const group = { name: 'example.com', versions, preferredVersion: v1 };
    expect(body('/apis')).toEqual({ kind: 'APIGroupList', apiVersion: 'v1', groups: [group] });
    expect(body('/apis/')).toEqual(body('/apis'));
    expect(body('/apis/example.com')).toEqual({ kind: 'APIGroup', apiVersion: 'v1', ...group });
    for (const path of ['/api/v2', '/apis/other', '/apis/example.com/v2', '/constructor', '']) expect(body(path)).toBeNull();
  });

  it('all paths, at the root', () => {
    const { paths } = body('/') as unknown as { paths: string[] };
    expect(paths).toEqual([...paths].sort());
    for (const path of [
      '/api',
      '/api/v1',
      '/apis',
      '/apis/example.com',
      '/apis/example.com/v1',
      '/version',
      '/readyz',
      '/openapi/v3',
    ])
      expect(paths).toContain(path);
    expect(paths).not.toContain('/');
  });

  it('the resources of a version, with their status', () => {
    expect(body('/apis/example.com/v1')).toEqual({
      kind: 'APIResourceList',
      apiVersion: 'v1',
      groupVersion: 'example.com/v1',
      resources: [
        {
          name: 'orders',
          singularName: 'order',
          namespaced: true,
          kind: 'Order',
          verbs,
          shortNames: ['ord'],
          categories: ['all'],
        },
        { name: 'orders/status', singularName: '', namespaced: true, kind: 'Order', verbs: few },
      ],
    });
    expect(body('/api/v1')).toMatchObject({
      groupVersion: 'v1',
      resources: [
        { name: 'configmaps', shortNames: ['cm'], namespaced: true },
        { name: 'namespaces', namespaced: false, verbs: verbs.filter((verb) => verb !== 'deletecollection') },
        { name: 'namespaces/finalize', kind: 'Namespace', verbs: ['update'] },
        { name: 'namespaces/status', kind: 'Namespace', verbs: few },
      ],
    });
  });

  it('all of it at once, in the version that a client prefers, with an ETag that changes with it', () => {
    const aggregated = (version: string): string =>
      `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`;
    const accept = `${aggregated('v2')},${aggregated('v2beta1')},application/json`;
    const discovery = make();
    const document = discovery.document('/apis', accept);
    expect(document?.contentType).toBe(aggregated('v2'));
    expect(document?.etag).toMatch(/^"[0-9A-F]{16}"$/);
    const responseKind = { group: 'example.com', version: 'v1', kind: 'Order' };
    expect(body('/apis', accept)).toEqual({
      kind: 'APIGroupDiscoveryList',
      apiVersion: 'apidiscovery.k8s.io/v2',
      metadata: {},
      items: [
        {
          metadata: { name: 'example.com' },
          versions: [
            {
              version: 'v1',
              freshness: 'Current',
              resources: [
                {
                  resource: 'orders',
                  responseKind,
                  scope: 'Namespaced',
                  singularResource: 'order',
                  verbs,
                  shortNames: ['ord'],
                  categories: ['all'],
                  subresources: [{ subresource: 'status', responseKind, verbs: few }],
                },
              ],
            },
            { version: 'v1beta1', freshness: 'Current', resources: [expect.objectContaining({ scope: 'Cluster' })] },
          ],
        },
      ],
    });
    expect(body('/api', aggregated('v2beta1'))).toMatchObject({
      apiVersion: 'apidiscovery.k8s.io/v2beta1',
      items: [{ metadata: {} }],
    });
    expect(body('/api/v1', accept)).toMatchObject({ kind: 'APIResourceList' });
    expect(body('/apis', `${aggregated('v9')},application/json`)).toMatchObject({ kind: 'APIGroupList' });
    expect(() => discovery.document('/apis', aggregated('v9'))).toThrow('406 NotAcceptable');
    expect(() => discovery.document('/apis', 'text/html')).toThrow('406 NotAcceptable');
    const other = new Discovery([toInfo(order('v1'))]).document('/apis', accept);
    expect(other?.etag).not.toBe(document?.etag);
  });

  it('in YAML, if a client prefers it: the same, but for the version; the paths are JSON, whatever is accepted', () => {
    const discovery = make();
    const yaml = 'application/yaml';
    const aggregated = ';g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
    for (const path of ['/api', '/apis', '/api/v1', '/apis/example.com', '/apis/example.com/v1']) {
      const document = discovery.document(path, `${yaml}, application/json;q=0.9`);
      expect([document?.contentType, document?.etag, parse(document?.body ?? '')]).toEqual([yaml, undefined, body(path)]);
      expect(discovery.document(path, `application/json, ${yaml}`)?.contentType).toBe('application/json');
    }
    const [all, other] = [yaml, 'application/json'].map((type) => discovery.document('/apis', type + aggregated));
    expect([all?.contentType, parse(all?.body ?? '')]).toEqual([yaml + aggregated, JSON.parse(other?.body ?? '')]);
    expect(all?.etag).toMatch(/^"[0-9A-F]{16}"$/);
    expect(all?.etag).not.toBe(other?.etag);
    expect(() => discovery.document('/apis', `${yaml};as=Table;g=meta.k8s.io;v=v1`)).toThrow('406 NotAcceptable');
    expect(discovery.document('/version', `application/json${aggregated}`)?.contentType).toBe('application/json');
    expect(() => discovery.document('/version', yaml)).toThrow('406 NotAcceptable');
    for (const accept of [yaml, 'text/html']) expect(discovery.document('/', accept)?.contentType).toBe('application/json');
  });

  it('without an Accept, or with one of blanks, the plain document; of a path without a document nothing, whatever is accepted', () => {
    for (const accept of [undefined, '', '  ']) {
      expect(body('/apis', accept)).toMatchObject({ kind: 'APIGroupList' });
      expect(make().document('/nothing', accept)).toBeUndefined();
    }
    for (const accept of ['application/json', 'text/html']) expect(make().document('/nothing', accept)).toBeUndefined();
    const without = JSON.parse(new Discovery([toInfo(order('v1'))]).document('/api')?.body ?? 'null');
    expect(without).toMatchObject({ versions: [] });
  });

  it('only the namespaces without a group are deleted one by one', () => {
    const resources = [CONFIG_MAPS, NAMESPACES, order('v1', { plural: 'namespaces', kind: 'Namespace' })] as ResourceDefinition[];
    const [core, own] = ['/api/v1', '/apis/example.com/v1'].map((path) => {
      return JSON.parse(new Discovery(resources.map((each) => toInfo(each))).document(path)?.body ?? 'null').resources as {
        name: string;
        verbs: string[];
      }[];
    });
    expect(core?.map(({ name, verbs: all }) => [name, all.includes('deletecollection')])).toEqual([
      ['configmaps', true],
      ['namespaces', false],
      ['namespaces/finalize', false],
      ['namespaces/status', false],
    ]);
    expect(own?.[0]).toMatchObject({ name: 'namespaces', verbs });
  });

  it('groups, versions and resources are in their order, whatever that of the definitions', () => {
    const of = (group: string, plural: string): ResourceInfo => toInfo(order('v1', { group, plural, kind: plural }));
    const { groups } = JSON.parse(
      new Discovery([of('c.io', 'x'), of('a.io', 'z'), of('b.io', 'x'), of('a.io', 'y')]).document('/apis')?.body ?? 'null',
    );
    expect(groups.map(({ name }: { name: string }) => name)).toEqual(['a.io', 'b.io', 'c.io']);
  });

  it('the version of the protocol', () => {
    expect(body('/version')).toEqual({
      major: '1',
      minor: '37',
      gitVersion: expect.stringMatching(/^v1\.37\.\d+\+watchmux$/),
      ...{ gitCommit: '', gitTreeState: '', buildDate: '1970-01-01T00:00:00Z', goVersion: '', compiler: '', platform: '' },
    });
  });

  it('TestCompareKubeAwareVersionStrings: the best version comes first', () => {
    const versions = [
      'foo10',
      'v1alpha1',
      'v11beta2',
      'v2',
      'v10',
      'foo1',
      'v11alpha1',
      'v3beta1',
      'v12alpha2',
      'v1',
      'v11beta1',
    ];
    expect(versions.sort(compareApiVersions)).toEqual([
      ...['v10', 'v2', 'v1', 'v11beta2', 'v11beta1', 'v3beta1', 'v12alpha2', 'v11alpha1', 'v1alpha1', 'foo1', 'foo10'],
    ]);
    expect(compareApiVersions('x', 'x')).toBe(0);
  });

  it('a digest changes with every letter, and is never shorter', () => {
    const texts = ['', 'a', 'b', 'ab', 'ba', 'aa', 'aaa', '\0', '\u0100a'];
    expect(new Set(texts.map(digest)).size).toBe(texts.length);
    for (const text of texts) expect(digest(text)).toMatch(/^[0-9A-F]{16}$/);
    // Two servers of one release, and of the next, agree.
    expect(digest('watchmux')).toBe('472E06AEFB7CBB4F');
  });
});
