// The worst that one client can ask of an API server, for `fair.test.ts`: what each of its connections sends again and again.

/** How many objects there are. */
export const OBJECTS = 50_000;

const ORDERS = '/apis/example.com/v1/namespaces/default/orders';
const ALL_ORDERS = '/apis/example.com/v1/orders';
const CHECKED = '/apis/example.com/v1/namespaces/default/checked';
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const TABLE = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };
const JSON_PATCH = { 'content-type': 'application/json-patch+json' };
const MERGE_PATCH = { 'content-type': 'application/merge-patch+json' };
const STRATEGIC = { 'content-type': 'application/strategic-merge-patch+json' };

const record = (count, value = '1') => Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, value]));
const list = (count, make) => Array.from({ length: count }, (_, at) => make(at));
const get = (path, headers = {}) => ({ method: 'GET', path, headers });
const send = (method, path, body, headers = {}) => ({
  ...{ method, path, headers: { 'content-type': 'application/json', ...headers } },
  body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
});
const typed = (kind, object) => ({ apiVersion: 'example.com/v1', kind, ...object });
const created = (path, body) => [send('POST', `${path}?dryRun=All`, body), send('POST', path, body)];
const ordered = (spec) => created(ORDERS, typed('Order', { metadata: generated(), spec }));
const checked = (spec) => created(CHECKED, typed('Checked', { metadata: generated(), spec }));
/** The beginning of an order that is written by hand. */
const ORDER = '"apiVersion":"example.com/v1","kind":"Order","metadata":{"generateName":"a-"}';
const selector = (name, terms) => `?${name}=${encodeURIComponent(terms.join(','))}`;
const generated = (more = {}) => ({ generateName: 'a-', ...more });

/**
 * The attacks: what `requests` has is sent in turn, on `connections` connections. `leaveAfterBytes`: a connection is closed after so
 * many bytes of an answer. `isLarge`: bodies, or objects, near their limits. Functions make such bodies only when they are needed.
 *
 * @type {{ name: string, connections?: number, leaveAfterBytes?: number, isLarge?: boolean, requests: () => object[] }[]}
 */
export const ATTACKS = [
  {
    name: 'lists with a selector of a thousand requirements',
    requests: () => [
      get(
        ORDERS +
          selector(
            'labelSelector',
            list(1_000, () => '!x'),
          ),
      ),
    ],
  },
  {
    name: 'lists with as many requirements as are allowed, on absent labels',
    requests: () => [get(ORDERS + selector('labelSelector', ['app=none', ...list(255, (at) => `!x${at}`)]))],
  },
  {
    name: 'lists that select nothing, with as many requirements as are allowed, on labels that are there',
    requests: () => [
      get(
        ORDERS +
          selector(
            'labelSelector',
            list(256, (at) => `app!=x${at}`),
          ) +
          '&fieldSelector=spec.item%21%3Dx',
      ),
    ],
  },
  {
    name: 'lists with a thousand values in a requirement',
    requests: () => [get(ORDERS + selector('labelSelector', [`app in (${list(650, (at) => `x${at}`)})`]))],
  },
  {
    name: 'lists with as many fields as are allowed',
    requests: () => [
      get(
        ORDERS +
          selector(
            'fieldSelector',
            list(180, (at) => `spec.item!=x${at}`),
          ),
      ),
    ],
  },
  {
    name: 'lists of a namespace by its field',
    requests: () => [get(`${ALL_ORDERS}?fieldSelector=metadata.namespace%3Ddefault&limit=1`)],
  },
  { name: 'lists of everything', requests: () => [get(ORDERS)] },
  { name: 'lists of everything that nobody reads', connections: 100, leaveAfterBytes: 1, requests: () => [get(ORDERS)] },
  { name: 'tables of everything', connections: 100, requests: () => [get(ORDERS, TABLE)] },
  { name: 'tables of ten thousand objects', connections: 100, requests: () => [get(`${ORDERS}?limit=10000`, TABLE)] },
  {
    name: 'tables of nothing but names',
    connections: 100,
    requests: () => [get(`${ORDERS}?includeObject=None`, TABLE)],
  },
  {
    name: 'first pages that select nothing',
    connections: 100,
    requests: () => [get(`${ORDERS}?limit=1&labelSelector=app%3Dnone`)],
  },
  {
    name: 'past states in turn, while there are changes',
    requests: () => [
      send('PATCH', `${ORDERS}/order-1`, { spec: { count: 1 } }, MERGE_PATCH),
      send('PATCH', `${ORDERS}/order-1`, { spec: { count: 2 } }, MERGE_PATCH),
      get(`${ORDERS}?limit=1&resourceVersion=60000&resourceVersionMatch=Exact`),
      get(`${ORDERS}?limit=1`),
    ],
  },
  {
    name: 'watches that begin with everything',
    connections: 100,
    leaveAfterBytes: 300_000,
    requests: () => [get(`${ORDERS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`)],
  },
  {
    name: 'watches that begin with tables of everything',
    connections: 100,
    leaveAfterBytes: 300_000,
    requests: () => [get(`${ORDERS}?watch=1`, TABLE)],
  },
  {
    name: 'watches with selectors of their own',
    connections: 100,
    leaveAfterBytes: 1_000,
    requests: () => list(50, (at) => get(`${ORDERS}?watch=1&labelSelector=${encodeURIComponent(`app!=${at},tier`)}`)),
  },
  {
    name: 'watches from an old version',
    connections: 50,
    leaveAfterBytes: 1_000,
    requests: () =>
      list(50, (at) => get(`${ALL_ORDERS}?watch=1&resourceVersion=60000&labelSelector=${encodeURIComponent(`app!=${at}`)}`)),
  },
  {
    name: 'as many labels as fit',
    isLarge: true,
    requests: () => created(CONFIG_MAPS, { metadata: generated({ labels: record(200_000, '') }) }),
  },
  {
    name: 'as many labels, annotations and finalizers as are allowed',
    isLarge: true,
    requests: () =>
      created(CONFIG_MAPS, {
        metadata: generated({ labels: record(4_096), annotations: record(4_096), finalizers: list(50_000, (at) => `a/b${at}`) }),
      }),
  },
  {
    name: 'labels that are all wrong',
    requests: () =>
      created(CONFIG_MAPS, { metadata: generated({ annotations: Object.fromEntries(list(4_096, (at) => [`?${at}`, ''])) }) }),
  },
  {
    name: 'owners that are all wrong',
    requests: () => created(CONFIG_MAPS, { metadata: generated({ ownerReferences: list(20_000, () => ({})) }) }),
  },
  {
    name: 'more keys than are allowed',
    isLarge: true,
    requests: () => ordered(record(200_000)),
  },
  {
    name: 'as many keys as are allowed',
    isLarge: true,
    requests: () => ordered({ a: record(65_000), b: record(37_000) }),
  },
  {
    name: 'as many objects as are allowed',
    isLarge: true,
    requests: () => ordered({ list: list(102_000, () => ({})) }),
  },
  {
    name: 'as many numbers as fit',
    isLarge: true,
    requests: () => ordered({ list: list(1_500_000, () => 0) }),
  },
  {
    name: 'long texts of escapes',
    isLarge: true,
    requests: () => ordered({ item: '\u0001'.repeat(500_000) }),
  },
  {
    name: 'keys that come twice',
    requests: () => created(ORDERS, `{${ORDER},"spec":{${list(65_000, () => '"a":1').join()}}}`),
  },
  {
    name: 'deep objects',
    requests: () => created(ORDERS, `{${ORDER},"spec":${'{"a":'.repeat(125)}1${'}'.repeat(126)}`),
  },
  {
    name: 'replacements of an object with sixty thousand keys',
    isLarge: true,
    requests: () =>
      [1, 2].map((value) =>
        send('PUT', `${ORDERS}/big`, typed('Order', { metadata: { name: 'big' }, spec: record(60_000, value) })),
      ),
  },
  {
    name: 'small patches of an object with sixty thousand keys',
    isLarge: true,
    requests: () => [1, 2].map((value) => send('PATCH', `${ORDERS}/big`, { spec: { k1: value } }, MERGE_PATCH)),
  },
  {
    name: 'JSON patches that move half a million elements',
    requests: () => [
      send(
        'PATCH',
        `${ORDERS}/long`,
        list(10_000, () => ({ op: 'add', path: '/list/0', value: 0 })),
        JSON_PATCH,
      ),
      send(
        'PATCH',
        `${ORDERS}/long?dryRun=All`,
        list(60, () => ({ op: 'add', path: '/list/0', value: 0 })),
        JSON_PATCH,
      ),
    ],
  },
  {
    name: 'JSON patches of ten thousand operations',
    isLarge: true,
    requests: () => [
      send(
        'PATCH',
        `${ORDERS}/order-2`,
        list(10_000, (at) => ({ op: 'add', path: `/spec/k${at % 5_000}`, value: at })),
        JSON_PATCH,
      ),
      send(
        'PATCH',
        `${ORDERS}/big`,
        list(10_000, (at) => ({ op: 'test', path: `/spec/k${at}`, value: 1 })),
        JSON_PATCH,
      ),
      send(
        'PATCH',
        `${ORDERS}/big`,
        list(50, (at) => ({ op: 'copy', from: '/spec', path: `/a${at}` })),
        JSON_PATCH,
      ),
    ],
  },
  {
    name: 'strategic merge patches of sixty thousand keys',
    isLarge: true,
    requests: () => [
      send('POST', CONFIG_MAPS, { metadata: { name: 'wide' } }),
      send(
        'PATCH',
        `${CONFIG_MAPS}/wide`,
        { data: { ...record(60_000, ''), $retainKeys: Object.keys(record(60_000)) } },
        STRATEGIC,
      ),
    ],
  },
  {
    name: 'texts for a pattern that backtracks',
    isLarge: true,
    requests: () => [...checked({ name: `${'a'.repeat(40)}!` }), ...checked({ name: `${'a'.repeat(3_000_000)}!` })],
  },
  {
    name: 'lists of fifty thousand items that must differ',
    isLarge: true,
    requests: () => checked({ list: [...list(50_000, (at) => ({ a: at })), { a: 1 }] }),
  },
  { name: 'deletions of everything that are only tried', requests: () => [send('DELETE', `${ORDERS}?dryRun=All`, '')] },
  { name: 'deletions of namespaces', requests: () => list(20, (at) => send('DELETE', `/api/v1/namespaces/doomed-${at}`, '')) },
  {
    name: 'documents',
    connections: 100,
    requests: () => ['/openapi/v2', '/openapi/v3/apis/example.com/v1', '/apis', '/api/v1', '/'].map((path) => get(path)),
  },
  { name: 'statistics', connections: 100, requests: () => [get('/stats'), get('/metrics'), get('/readyz?verbose')] },
  {
    name: 'small requests',
    connections: 100,
    requests: () => [get(`${ORDERS}/order-1`), get('/nothing'), send('POST', ORDERS, 'x')],
  },
  {
    name: 'writes that all of its own watches see',
    connections: 200,
    leaveAfterBytes: 10_000_000,
    requests: () => [
      ...list(150, (at) => get(`${ORDERS}?watch=1&resourceVersion=0&labelSelector=${encodeURIComponent(`app!=${at}`)}`)),
      ...list(50, (at) => send('PATCH', `${ORDERS}/order-${at}`, { metadata: { annotations: { at: `${at}` } } }, MERGE_PATCH)),
    ],
  },
];
