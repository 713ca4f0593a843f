// The parts of the page of `watchmux serve` that need no browser.
import { describe, expect, test } from 'vitest';
import type { ResourceDefinition } from '../../src/apiserver/definition.ts';
import { Discovery } from '../../src/apiserver/documents/discovery.ts';
import { toInfo } from '../../src/apiserver/resource-info.ts';
import { wantsPage } from '../../src/cli/serve/serve.ts';
import { AGGREGATED, collectionPath, DISCOVERY_PATHS, type PageResource, toResources } from '../../src/pages/serve/api.ts';
import { arrivalWords, failureWords, pastWords } from '../../src/pages/serve/connection.ts';
import { faultOf } from '../../src/pages/serve/filters.ts';
import { objectsPage } from '../../src/pages/serve/page.ts';
import { noteWords, windowWords } from '../../src/pages/serve/resources.ts';
import { WatchError } from '../../src/watch/errors.ts';
import { toStatus } from '../../src/watch/event.ts';

const ORDERS: PageResource = {
  ...{ id: 'orders.example.com/v1', name: 'orders.example.com', group: 'example.com', version: 'v1', plural: 'orders' },
  ...{ kind: 'Order', namespaced: true },
};

describe('the page of serve', () => {
  test('loads nothing from elsewhere, and its policy allows only its own content', () => {
    const { html, policy } = objectsPage('let a = "</script>";');
    expect(html).not.toMatch(/https?:|innerHTML|\son\w+=|\sstyle=/);
    expect(html).toContain('<script type="module">let a = "<\\/script>";</script>');
    expect(policy).toMatch(/default-src 'none'.*script-src 'sha256-[^']+'.*connect-src 'self'/);
    expect(policy).not.toContain('unsafe');
  });

  test.each([
    ['a browser', 'GET', '/', 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', true],
    ['a browser, with a query', 'HEAD', '/?x=1', 'text/html', true],
    ['a browser that asks for something else', 'GET', '/api', 'text/html', false],
    ['a browser, with a query that cannot be decoded', 'GET', '/?x=%', 'text/html', false],
    ['a form', 'POST', '/', 'text/html', false],
    ['kubectl', 'GET', '/', 'application/json, */*', false],
    ['kubectl with tables', 'GET', '/', 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json', false],
    ['curl', 'GET', '/', '*/*', false],
    ['who says nothing', 'GET', '/', undefined, false],
    ['who prefers JSON', 'GET', '/', 'text/html;q=0.5,application/json', false],
    ['who refuses HTML', 'GET', '/', 'text/html;q=0', false],
  ])('%s', (_who, method, url, accept, expected) => {
    expect(wantsPage({ method, url, headers: { accept } })).toBe(expected);
  });
});

describe('the resources of a server', () => {
  test('are those of its discovery, kinds of one’s own first', () => {
    const definitions: readonly ResourceDefinition[] = [
      { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap' },
      { group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order', status: true },
      { group: 'example.com', version: 'v1', plural: 'zones', kind: 'Zone', namespaced: false },
    ];
    const discovery = new Discovery(definitions.map((each) => toInfo(each)));
    const documents = DISCOVERY_PATHS.map((path) => JSON.parse(discovery.document(path, AGGREGATED)?.body ?? '') as unknown);
    const resources = toResources(documents);
    expect(resources.map(({ id, namespaced }) => [id, namespaced])).toEqual([
      ['orders.example.com/v1', true],
      ['zones.example.com/v1', false],
      ['configmaps/v1', true],
    ]);
    expect(resources.map((each) => collectionPath(each, 'a b'))).toEqual([
      '/apis/example.com/v1/namespaces/a%20b/orders',
      '/apis/example.com/v1/zones',
      '/api/v1/namespaces/a%20b/configmaps',
    ]);
    expect(collectionPath(ORDERS)).toBe('/apis/example.com/v1/orders');
  });

  test('what is not as expected, or cannot be followed, is left out', () => {
    const resource = (more: object): unknown => ({
      items: [{ versions: [{ resources: [{ resource: 'a', scope: 'Namespaced', verbs: ['list', 'watch'], ...more }] }] }],
    });
    expect(toResources([resource({ responseKind: { version: 'v1', kind: 'A' } })])).toHaveLength(1);
    for (const wrong of [
      ...[null, 1, 'x', {}, { items: 1 }, { items: [null, { versions: [{ resources: [1] }] }] }],
      ...[resource({}), resource({ responseKind: null }), resource({ responseKind: { version: 1, kind: 'A' } })],
      resource({ responseKind: { version: 'v1', kind: 'A' }, verbs: ['get'] }),
    ]) {
      expect(toResources([wrong])).toEqual([]);
    }
  });
});

describe('words', () => {
  test('a wrong selector is marked where it is wrong', () => {
    expect(faultOf('app in (a,b)')).toBeUndefined();
    expect(faultOf('')).toBeUndefined();
    const fault = faultOf('app in (a b)')?.split('\n');
    expect(fault?.[0]).toMatch(/^label selector: expected .* at character 11, got "b"$/);
    expect(fault?.[2]?.indexOf('^')).toBe(fault?.[1]?.indexOf('b)'));
    expect(faultOf('a'.repeat(5_000))).toContain('at most 4096 characters');
  });

  test('what is followed, and what went wrong', () => {
    const scope = { resource: ORDERS, namespace: '', labelSelector: '', fieldSelector: '', version: '' };
    expect(arrivalWords({ scope, objects: 1_234, resourceVersion: '56789' })).toBe(
      'Following orders in all namespaces: 1,234 objects at version 56,789.',
    );
    const some = { ...scope, namespace: 'a', labelSelector: 'x=1' };
    expect(arrivalWords({ scope: some, objects: 1, resourceVersion: '' })).toBe(
      'Following orders in a with x=1: 1 object at version none.',
    );
    const status = toStatus({ code: 403, reason: 'Forbidden', message: 'no' });
    expect(failureWords(new WatchError('REFUSED', '403 Forbidden: no', { status }))).toBe('Refused: 403 Forbidden: no.');
    const past = (error: unknown, since?: string): string => pastWords(error, { version: '12345', since });
    const gone = new WatchError('REFUSED', 'too old', { status: toStatus({ code: 410, reason: 'Expired', message: 'too old' }) });
    expect(past(gone, '20000')).toBe(
      'The server does not have version 12,345: it is too old, or was never given. It has those from 20,000 on.',
    );
    expect(past(gone)).toBe('The server does not have version 12,345: it is too old, or was never given.');
    expect(past(new WatchError('REFUSED', 'no', { status }))).toBe('The server does not show version 12,345: no.');
    expect(past(new TypeError('Failed to fetch'))).toBe('The state at version 12,345 could not be read: Failed to fetch.');
    const arrived = arrivalWords({ scope: { ...scope, fieldSelector: 'a=b', version: '7' }, objects: 2, resourceVersion: '7' });
    expect(arrived).toBe('Read orders in all namespaces with a=b: 2 objects at version 7.');
    expect(failureWords(new TypeError('Failed to fetch'))).toBe('Connection lost: Failed to fetch.');
  });

  test('the window of a cache, and what is unusual about it', () => {
    const cache = {
      ...{
        phase: 'ready' as const,
        generation: 1,
        resourceVersion: '1234',
        objects: 3,
        changes: 9,
        views: 1,
        gaps: 0,
        waiting: 0,
      },
      ...{ window: { items: 1, bytes: 2_048, since: '5' }, watches: 3, fellBehind: 1 },
    };
    expect(windowWords(cache)).toBe('Window: a watch can begin at any version from 5 to 1,234 (1 change kept, 2.0 KiB).');
    expect(windowWords({ ...cache, window: { items: 0, bytes: 0, since: '' } })).toBe(
      'Version 1,234. No past changes are kept yet.',
    );
    expect(noteWords(cache, 2)).toBe('1 more watch in the server itself. 1 watch was too slow, and got a 410.');
    expect(noteWords({ ...cache, phase: 'pending', error: 'no etcd', fellBehind: 0 }, 3)).toBe('Not ready: no etcd.');
  });
});
