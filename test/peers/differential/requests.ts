// The requests of differential.test.ts: what is asked of a real kube-apiserver and of ours, in this order.

/** What an earlier answer of the same server has said. */
export interface Memory {
  /** The newest version that was seen. */
  version: string;
  /** The last `continue`. */
  next: string;
  /** The last object, by its name. */
  readonly objects: Map<string, { metadata: { uid: string; resourceVersion: string } }>;
}

/** One request. */
export interface Asked {
  readonly title: string;
  readonly method: string;
  readonly path: string | ((memory: Memory) => string);
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | ((memory: Memory) => string);
  /** Its answer is needed by those that follow: its `continue`. */
  readonly keep?: boolean;
}

export const NAMESPACE = 'differential';
export const MAPS: string = `/api/v1/namespaces/${NAMESPACE}/configmaps`;
const JSON_TYPE = { 'content-type': 'application/json' };

const get = (path: Asked['path'], headers?: Record<string, string>, title?: string): Asked => ({
  title: title ?? `GET ${typeof path === 'string' ? path : ''}${headers ? ` ${Object.values(headers).join(' ')}` : ''}`,
  method: 'GET',
  path,
  ...(headers && { headers }),
});
export const send = (
  method: string,
  path: string,
  body: unknown,
  more: { title?: string; headers?: Record<string, string> } = {},
): Asked => {
  const text = typeof body === 'string' || typeof body === 'function' ? (body as string) : JSON.stringify(body);
  return {
    title: more.title ?? `${method} ${path} ${String(text).slice(0, 120)}`,
    method,
    path,
    headers: more.headers ?? JSON_TYPE,
    body: text,
  };
};
const post = (body: unknown, more?: Parameters<typeof send>[3]): Asked => send('POST', MAPS, body, more);
const patch = (kind: string, name: string, body: unknown): Asked =>
  send('PATCH', `${MAPS}/${name}`, body, {
    title: `PATCH ${kind} ${name} ${typeof body === 'string' ? body.slice(0, 80) : JSON.stringify(body)}`,
    headers: { 'content-type': `application/${kind}+json` },
  });

const map = (name: string, more: object = {}): object => ({ metadata: { name }, data: { k: 'v' }, ...more });

const creations: readonly Asked[] = [
  send('POST', '/api/v1/namespaces', { metadata: { name: NAMESPACE, labels: { of: 'differential' } } }),
  ...['a', 'b', 'c', 'd'].map((name) =>
    post({ ...map(name), metadata: { name, labels: { app: name, tier: name < 'c' ? 'x' : 'y' } } }),
  ),
  post(map('a')),
  post({ metadata: { generateName: 'gen-' } }),
  // Its place in lists must not depend on what is drawn for the one before.
  post({ metadata: { name: 'generation-8', generation: 8 } }),
  post({ metadata: { name: 'bad', generation: -1 } }),
  post({ metadata: { name: 'bad', generation: '1' } }),
  post({ metadata: {} }),
  post({}),
  post({ metadata: { name: 'UPPER' } }),
  post({ metadata: { name: 'a/b' } }),
  post({ metadata: { name: '' } }),
  post({ metadata: { name: 'x'.repeat(254) } }, { title: 'POST a name of 254 characters' }),
  post({ metadata: { name: 'bad', namespace: 'other' } }),
  post({ metadata: { name: 'bad', labels: { 'b@d': 'x' } } }),
  post({ metadata: { name: 'bad', labels: { x: 'b d' } } }),
  post({ metadata: { name: 'bad', annotations: { 'b@d': 'x' } } }),
  post({ metadata: { name: 'bad', finalizers: ['nodomain'] } }),
  post({ metadata: { name: 'bad', ownerReferences: [{ name: 'x' }] } }),
  post({ metadata: { name: 'bad', resourceVersion: '1' } }),
  post({ metadata: { name: 'kind' }, kind: 'Secret', apiVersion: 'v1' }),
  post({ metadata: { name: 'kind' }, kind: 'ConfigMap', apiVersion: 'v2' }),
  post({ metadata: { name: 'bad' }, data: { 'b d': 'x' } }),
  post({ metadata: { name: 'bad' }, data: { '..': 'x' } }),
  post({ metadata: { name: 'bad' }, data: { a: 'x' }, binaryData: { a: 'eA==' } }),
  post({ metadata: { name: 'bad' }, data: { a: 1 } }),
  post({ metadata: { name: 'bad' }, data: 'x' }),
  post({ metadata: { name: 'bad' }, data: { a: 'x'.repeat(2 ** 20 + 1) } }, { title: 'POST a ConfigMap over 1 MiB' }),
  post({ metadata: { name: 'big' }, data: { a: 'x'.repeat(4 * 2 ** 20) } }, { title: 'POST a body over 3 MiB' }),
  post('{'),
  post('[]'),
  post('null'),
  post('"text"'),
  post(''),
  post('x: y', { title: 'POST text', headers: { 'content-type': 'text/plain' } }),
  post('{}', { title: 'POST a form', headers: { 'content-type': 'application/x-www-form-urlencoded' } }),
  post(map('charset'), { title: 'POST with a charset', headers: { 'content-type': 'application/json; charset=utf-8' } }),
  post(map('dry'), { title: 'POST dry run' }),
  { ...post(map('dry2')), title: 'POST ?dryRun=All', path: `${MAPS}?dryRun=All` },
  { ...post(map('dry3')), title: 'POST ?dryRun=Some', path: `${MAPS}?dryRun=Some` },
  ...['', 'all', 'All&dryRun=All', 'All&dryRun=Some'].map((value) => send('POST', `${MAPS}?dryRun=${value}`, map('dry4'))),
  send('POST', `${MAPS}?dryRun=Some`, '{'),
  send('POST', '/api/v1/namespaces/nowhere/configmaps', map('a')),
  send('POST', `${MAPS}/a`, map('a')),
  send('POST', '/api/v1/configmaps', map('a')),
  send('POST', '/api/v1/namespaces', { metadata: { name: 'UPPER' } }),
  send('POST', '/api/v1/namespaces', { metadata: { name: 'has.dots' } }),
];

const gets: readonly Asked[] = [
  ...['a', 'missing', 'UPPER', '%61', 'a%2Fb', '..'].map((name) => get(`${MAPS}/${name}`)),
  ...[
    '?resourceVersion=0',
    '?resourceVersion=abc',
    '?resourceVersion=',
    '?watch=true&timeoutSeconds=1',
    '?pretty=true',
    '?unknown=x',
  ].map((query) => get(`${MAPS}/a${query}`)),
  get(({ version }) => `${MAPS}/a?resourceVersion=${version}`, undefined, 'GET a at the newest version'),
  get(`${MAPS}/a/status`),
  get(`${MAPS}/a/b/c`),
  get(`/api/v1/namespaces/${NAMESPACE}`),
  get('/api/v1/namespaces/missing'),
  ...[
    '/api/v1/nothing',
    '/api/v2/configmaps',
    '/apis/nothing',
    '/apis/nothing/v1',
    '/apis/nothing/v1/things',
    '/nothing',
    '/api/v1/configmaps/a',
  ].map((path) => get(path)),
  ...['/healthz', '/livez', '/readyz'].map((path) => get(path)),
  ...['HEAD', 'OPTIONS', 'TRACE2', 'PUT', 'PATCH'].map(
    (method): Asked => ({ title: `${method} the collection`, method, path: MAPS }),
  ),
  { title: 'HEAD a', method: 'HEAD', path: `${MAPS}/a` },
];

const accepts: readonly string[] = [
  ...['*/*', 'application/json', 'text/html', 'text/html,*/*;q=0.1', 'application/json;as=Table;v=v1;g=meta.k8s.io'],
  ...['application/json;as=Table;v=v1beta1;g=meta.k8s.io', 'application/json;as=Table;v=v2;g=meta.k8s.io'],
  ...[
    'application/json;as=Table;v=v2;g=meta.k8s.io,application/json',
    'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
  ],
  ...[
    'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
    'application/json;stream=watch',
    'application/json;foo=bar',
  ],
  ...['application/json;as=Table', 'application/*', 'APPLICATION/JSON', 'application/json;q=0', 'application/json;pretty=0'],
];
const negotiated: readonly Asked[] = accepts.flatMap((accept) => [
  get(`${MAPS}/a`, { accept }),
  get(`${MAPS}?limit=2`, { accept }),
  get(`${MAPS}?watch=true&resourceVersion=0&timeoutSeconds=1`, { accept }),
]);
const tables: readonly Asked[] = ['None', 'Metadata', 'Object', 'Other', ''].map((include) =>
  get(`${MAPS}/a?includeObject=${include}`, { accept: accepts[4] as string }),
);

/** The truth table of a list's and a watch's parameters. */
function parameters(): Asked[] {
  const rows: Asked[] = [];
  for (const watch of ['', 'watch=true&timeoutSeconds=1']) {
    for (const version of [undefined, '', '0', 'NOW', 'abc']) {
      for (const match of [undefined, 'Exact', 'NotOlderThan', 'Other']) {
        for (const initial of [undefined, 'true', 'false']) {
          if (watch === '' && initial !== undefined && match === 'Other') continue;
          const query = [
            ...(watch ? [watch] : []),
            ...(version === undefined ? [] : [`resourceVersion=${version}`]),
            ...(match === undefined ? [] : [`resourceVersionMatch=${match}`]),
            ...(initial === undefined ? [] : [`sendInitialEvents=${initial}`]),
          ].join('&');
          rows.push(get((memory) => `${MAPS}?${query.replace('NOW', memory.version)}`, undefined, `GET ?${query}`));
        }
      }
    }
  }
  return rows;
}

const lists: readonly Asked[] = [
  ...[
    'limit=2',
    'limit=0',
    'limit=-1',
    'limit=',
    'limit=x',
    'limit=2&limit=3',
    'limit=2.5',
    'continue=x',
    'continue=',
    'timeoutSeconds=x',
    'watch=%',
    'limit=%zz',
  ].map((query) => get(`${MAPS}?${query}`)),
  { ...get(`${MAPS}?limit=2`), title: 'GET the first page', keep: true },
  get(({ next }) => `${MAPS}?limit=2&continue=${encodeURIComponent(next)}`, undefined, 'GET the second page'),
  get(({ next }) => `${MAPS}?continue=${encodeURIComponent(next)}&resourceVersion=5`, undefined, 'GET a page with a version'),
  get(
    ({ next }) => `${MAPS}?continue=${encodeURIComponent(next)}&resourceVersionMatch=Exact`,
    undefined,
    'GET a page with a match',
  ),
  get(({ next }) => `${MAPS}?watch=true&timeoutSeconds=1&continue=${encodeURIComponent(next)}`, undefined, 'watch with continue'),
  get(
    ({ version }) => `${MAPS}?limit=2&resourceVersion=${version}&resourceVersionMatch=Exact`,
    undefined,
    'GET a page of a version',
  ),
  get(`${MAPS}?resourceVersion=99999999`),
  ...[
    'app=a',
    'app==a',
    'app!=a',
    'app in (a,b)',
    'app notin (a)',
    'app',
    '!app',
    'app>1',
    'tier=x,app=b',
    'nothing',
    '',
    '!!',
    'app in ()',
    'b@d=x',
    'app=b d',
    'a=b=c',
  ].map((selector) => get(`${MAPS}?labelSelector=${encodeURIComponent(selector)}`, undefined, `GET labels ${selector}`)),
  ...[
    'metadata.name=a',
    'metadata.name!=a',
    'metadata.namespace=differential',
    'metadata.namespace=x',
    'data.k=v',
    'x',
    'metadata.name=a,metadata.name=b',
    '',
    'metadata.name in (a)',
    'metadata.name==a',
  ].map((selector) => get(`${MAPS}?fieldSelector=${encodeURIComponent(selector)}`, undefined, `GET fields ${selector}`)),
  get('/api/v1/namespaces?labelSelector=of%3Ddifferential'),
  get('/api/v1/namespaces?fieldSelector=metadata.namespace%3Dx'),
  get('/api/v1/configmaps?labelSelector=tier%3Dx'),
  get(`/api/v1/watch/namespaces/${NAMESPACE}/configmaps?timeoutSeconds=1&fieldSelector=metadata.name%3Da`),
  get(`/api/v1/watch/namespaces/${NAMESPACE}/configmaps/a?timeoutSeconds=1`),
  ...['watch', 'watch=', 'watch=1', 'watch=0', 'watch=FALSE', 'watch=f', 'watch=yes'].map((query) =>
    get(`${MAPS}?${query}&timeoutSeconds=1&resourceVersion=0&labelSelector=app%3Da`),
  ),
];

const updates: readonly Asked[] = [
  send('PUT', `${MAPS}/a`, map('a', { data: { k: 'new' } })),
  send('PUT', `${MAPS}/a`, map('b')),
  send('PUT', `${MAPS}/missing`, map('missing')),
  send('PUT', `${MAPS}/a`, map('a', { metadata: { name: 'a', resourceVersion: '1' } })),
  send('PUT', `${MAPS}/a`, map('a', { metadata: { name: 'a', resourceVersion: 'abc' } })),
  send('PUT', `${MAPS}/a`, map('a', { metadata: { name: 'a', resourceVersion: '0' } })),
  send('PUT', `${MAPS}/a`, map('a', { metadata: { name: 'a', uid: 'other' } })),
  send('PUT', `${MAPS}/a`, map('a', { metadata: { name: 'a', namespace: 'other' } })),
  send('PUT', `${MAPS}/a`, { data: { k: 'x' } }),
  send('PUT', `${MAPS}/a`, '{'),
  { ...send('PUT', `${MAPS}/a`, map('a', { data: { k: 'dry' } })), title: 'PUT ?dryRun=All', path: `${MAPS}/a?dryRun=All` },
  patch('merge-patch', 'a', { data: { p: '1', k: null } }),
  patch('merge-patch', 'a', { metadata: { labels: { app: 'a' } } }),
  ...['x-', 'y-', null].map((generateName) => patch('merge-patch', 'a', { metadata: { generateName } })),
  ...[0, 5, '5', 1.5].map((grace) => patch('merge-patch', 'a', { metadata: { deletionGracePeriodSeconds: grace } })),
  patch('merge-patch', 'a', { metadata: { generation: '5' } }),
  patch('merge-patch', 'missing', { data: {} }),
  patch('merge-patch', 'a', []),
  patch('merge-patch', 'a', '{'),
  patch('merge-patch', 'a', { metadata: { name: 'b' } }),
  patch('merge-patch', 'a', { metadata: { resourceVersion: '1' } }),
  patch('merge-patch', 'a', { metadata: { uid: 'x' } }),
  patch('merge-patch', 'a', { data: { 'b d': 'x' } }),
  patch('merge-patch', 'a', {}),
  patch('json-patch', 'a', [
    { op: 'test', path: '/data/p', value: '1' },
    { op: 'add', path: '/data/q', value: '2' },
  ]),
  patch('json-patch', 'a', [{ op: 'test', path: '/data/p', value: 'x' }]),
  patch('json-patch', 'a', [{ op: 'remove', path: '/data/nothing' }]),
  patch('json-patch', 'a', [{ op: 'nonsense', path: '/data' }]),
  patch('json-patch', 'a', {}),
  patch('json-patch', 'a', [
    { op: 'copy', from: '/data/p', path: '/data/r' },
    { op: 'move', from: '/data/q', path: '/data/s' },
  ]),
  patch('json-patch', 'a', [{ op: 'replace', path: '/data/absent', value: 'x' }]),
  patch('json-patch', 'a', [{ op: 'replace', path: '/absent/absent', value: 'x' }]),
  patch('json-patch', 'a', [{ op: 'copy', from: '/data/none', path: '/data/copied' }]),
  patch('json-patch', 'a', [{ op: 'move', from: '/data/none', path: '/data/moved' }]),
  patch('json-patch', 'a', [
    { op: 'add', path: '/metadata/finalizers', value: ['x.io/1', 'x.io/2'] },
    { op: 'replace', path: '/metadata/finalizers/-1', value: 'x.io/3' },
    { op: 'add', path: '/metadata/finalizers/-1', value: 'x.io/4' },
    { op: 'remove', path: '/metadata/finalizers/-3' },
  ]),
  patch('json-patch', 'a', [{ op: 'remove', path: '/metadata/finalizers/-3' }]),
  patch('strategic-merge-patch', 'a', { metadata: { finalizers: ['x.io/a', 'x.io/b'] } }),
  patch('strategic-merge-patch', 'a', { metadata: { '$deleteFromPrimitiveList/finalizers': ['x.io/a'] } }),
  patch('strategic-merge-patch', 'a', {
    metadata: { '$setElementOrder/finalizers': ['x.io/c', 'x.io/b'], finalizers: ['x.io/c'] },
  }),
  patch('strategic-merge-patch', 'a', { metadata: { finalizers: null } }),
  patch('strategic-merge-patch', 'a', { data: { $patch: 'replace', only: 'this' } }),
  patch('strategic-merge-patch', 'a', { data: { $retainKeys: ['more'], more: 'x' } }),
  patch('strategic-merge-patch', 'a', { data: { $retainKeys: ['other'], more: 'x' } }),
  patch('strategic-merge-patch', 'a', { data: { $patch: 'nonsense' } }),
  patch('strategic-merge-patch', 'a', { data: { $patch: 'merge', k: 'x' } }),
  patch('strategic-merge-patch', 'a', {
    binaryData: { $patch: 'replace', k: 'AA==' },
    metadata: { annotations: { $patch: 'x' } },
  }),
  patch('strategic-merge-patch', 'a', {
    metadata: { finalizers: ['x.io/b', 'x.io/a'], '$setElementOrder/finalizers': ['x.io/a', 'x.io/b'] },
  }),
  patch('strategic-merge-patch', 'a', { metadata: { finalizers: ['x.io/b', 'x.io/a', 'x.io/c'] } }),
  patch('strategic-merge-patch', 'a', { metadata: { '$setElementOrder/finalizers': ['x.io/a', 'x.io/c', 'x.io/a', 'x.io/b'] } }),
  patch('strategic-merge-patch', 'a', { metadata: { finalizers: null } }),
  patch('strategic-merge-patch', 'a', { data: { $patch: 'delete' } }),
  patch('strategic-merge-patch', 'a', []),
  send('PATCH', `${MAPS}/a`, {}, { title: 'PATCH application/json' }),
  send('PATCH', `${MAPS}/a`, {}, { title: 'PATCH text/plain', headers: { 'content-type': 'text/plain' } }),
  send('PATCH', `${MAPS}/a`, {}, { title: 'PATCH apply', headers: { 'content-type': 'application/apply-patch+yaml' } }),
  post(map('fixed', { immutable: true }), { title: 'POST immutable' }),
  patch('merge-patch', 'fixed', { data: { k: 'x' } }),
  patch('merge-patch', 'fixed', { immutable: null }),
  patch('merge-patch', 'd', { metadata: { creationTimestamp: '2001-01-01T00:00:00Z' } }),
  patch('merge-patch', 'd', { metadata: { deletionTimestamp: '2001-01-01T00:00:00Z' } }),
  patch('json-patch', 'd', [{ op: 'test', path: '/data/none', value: null }]),
  patch('json-patch', 'd', [{ op: 'test', path: '/none/none', value: null }]),
  patch('merge-patch', 'fixed', { metadata: { labels: { ok: 'yes' } } }),
];

const remove = (path: string, body?: unknown, query: string = ''): Asked => ({
  title: `DELETE ${path}${query} ${body === undefined ? '' : JSON.stringify(body)}`,
  method: 'DELETE',
  path: `${MAPS}${path}${query}`,
  ...(body !== undefined && { headers: JSON_TYPE, body: JSON.stringify(body) }),
});
const removals: readonly Asked[] = [
  remove('/missing'),
  remove('/b', undefined, '?dryRun=All'),
  remove('/b', { preconditions: { uid: 'other' } }),
  remove('/b', { preconditions: { resourceVersion: '1' } }),
  remove('/b', { kind: 'Other', apiVersion: 'v1' }),
  remove('/b', { propagationPolicy: 'Nonsense' }),
  remove('/b', { propagationPolicy: 'Nonsense', dryRun: ['Some'] }),
  remove('/b', undefined, '?propagationPolicy=Nonsense'),
  remove('/b', undefined, '?dryRun=Some'),
  remove('/b', { dryRun: ['All', 'Some'] }),
  remove('', undefined, '?dryRun=Some'),
  remove('/missing', undefined, '?dryRun=Some'),
  send('PUT', `${MAPS}/b?dryRun=Some`, map('b')),
  { ...patch('merge-patch', 'b?dryRun=Some', {}), title: 'PATCH ?dryRun=Some' },
  remove('/b', { propagationPolicy: 'Background' }),
  remove('/b'),
  patch('merge-patch', 'c', { metadata: { finalizers: ['x.io/y'] } }),
  remove('/c'),
  remove('/c'),
  get(`${MAPS}/c`, undefined, 'GET what is held by a finalizer'),
  patch('merge-patch', 'c', { metadata: { finalizers: ['x.io/y', 'x.io/z'] } }),
  patch('merge-patch', 'c', { data: { still: 'writable' } }),
  ...[0, 5, null].map((grace) => patch('merge-patch', 'c', { metadata: { deletionGracePeriodSeconds: grace } })),
  remove('', undefined, '?labelSelector=app%3Dc'),
  remove('', undefined, '?labelSelector=app%3Dc&dryRun=All'),
  patch('merge-patch', 'c', { metadata: { finalizers: null } }),
  get(`${MAPS}/c`, undefined, 'GET what is gone'),
  { title: 'DELETE of all namespaces', method: 'DELETE', path: '/api/v1/configmaps' },
  remove('', undefined, '?limit=1&resourceVersionMatch=Exact'),
  remove('', undefined, '?labelSelector=app%3Dd'),
  remove('', undefined, '?labelSelector=%21%21'),
  remove('', undefined, '?limit=1'),
  get(MAPS, undefined, 'GET what is left by a limit'),
  remove(''),
  get(MAPS, undefined, 'GET what is left'),
  ...['dryRun=All', 'uid=other', 'resourceVersion=0'].flatMap((query) => [
    post(map('tried')),
    send('DELETE', `${MAPS}/tried?${query}`, { kind: 'DeleteOptions', apiVersion: 'v1' }),
    get(`${MAPS}/tried`, undefined, `GET tried after ${query} and a body`),
    { title: `DELETE tried after ${query} and a body`, method: 'DELETE', path: `${MAPS}/tried` },
  ]),
];

const HELD = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`;
const lease = (name: string, spec: unknown): object => ({ metadata: { name }, spec });
const renewed = { renewTime: '2026-01-02T03:04:05.000006Z', acquireTime: '2026-01-02T03:04:05.000000Z' };
const leases: readonly Asked[] = [
  send('POST', HELD, lease('l', { holderIdentity: 'me', leaseDurationSeconds: 15, leaseTransitions: 0, ...renewed })),
  send('POST', HELD, { metadata: { name: 'empty' } }),
  ...[
    { leaseDurationSeconds: 0 },
    { leaseDurationSeconds: -1 },
    { leaseDurationSeconds: '1' },
    { leaseDurationSeconds: 1.5 },
    { leaseDurationSeconds: 2 ** 31 },
    { leaseTransitions: -1 },
    { holderIdentity: 1 },
    { renewTime: 'now' },
    'x',
    [],
  ].map((spec) => send('POST', HELD, lease('bad', spec))),
  get(`${HELD}/l`),
  get(`${HELD}/l`, { accept: accepts[4] as string }),
  get(HELD),
  // A Lease says which version it replaces, and a missing one is created.
  send('PUT', `${HELD}/l`, lease('l', { holderIdentity: 'thief' })),
  send('PUT', `${HELD}/l`, { ...lease('l', { holderIdentity: 'thief' }), metadata: { name: 'l', resourceVersion: '0' } }),
  ...['', '?dryRun=All'].flatMap((query) => [
    send('PUT', `${HELD}/put${query}`, lease('other', {})),
    send('PUT', `${HELD}/put${query}`, { metadata: { name: 'put', uid: 'x' } }),
    send('PUT', `${HELD}/put${query}`, { metadata: {} }),
    send('PUT', `${HELD}/put${query}`, lease('put', { leaseDurationSeconds: 0 })),
    send('PUT', `${HELD}/put-${query.length}${query}`, {
      metadata: { name: `put-${query.length}`, ...(query === '' && { resourceVersion: '5' }) },
    }),
    send('PUT', `${HELD}/put-${query.length}`, lease(`put-${query.length}`, {})),
    send('PATCH', `${HELD}/none${query}`, { spec: {} }, { headers: { 'content-type': 'application/merge-patch+json' } }),
  ]),
  send('PUT', `${HELD}/l?dryRun=All`, lease('l', { holderIdentity: '', leaseDurationSeconds: 1, leaseTransitions: 0 })),
  send(
    'PATCH',
    `${HELD}/l`,
    { spec: { holderIdentity: 'you', leaseTransitions: 1 } },
    {
      title: 'PATCH strategic-merge-patch a Lease',
      headers: { 'content-type': 'application/strategic-merge-patch+json' },
    },
  ),
  send('DELETE', `${HELD}/l`, { preconditions: { uid: 'other' } }),
  send('DELETE', `${HELD}/l`, { kind: 'DeleteOptions', apiVersion: 'v1' }),
  get(`${HELD}/l`),
];

/** What could bring headers: methods that are not there could tell which are. */
const headed: readonly Asked[] = [
  send('PUT', MAPS, map('all')),
  send('PATCH', MAPS, {}, { headers: { 'content-type': 'application/merge-patch+json' } }),
  send('POST', `${MAPS}/kept`, map('kept')),
  get('/'),
  get('/api'),
  get('/apis/coordination.k8s.io'),
  get('/api', { 'if-none-match': '"x"' }, 'GET /api if-none-match'),
];

const [LONG, LONGER] = ['x'.repeat(64), 'x'.repeat(254)];
const OWNING = { apiVersion: 'v1', kind: 'ConfigMap', name: 'o', uid: 'u' };
const EVENT = { ...OWNING, kind: 'Event' };
const CONTROLLER = { ...OWNING, controller: true };
const wrongOwners: readonly (readonly (object | null)[])[] = [
  ...['apiVersion', 'kind', 'name', 'uid'].flatMap((member) => [
    [{ ...OWNING, [member]: '' }],
    [OWNING, { ...OWNING, [member]: undefined }],
    [{ ...OWNING, [member]: null, blockOwnerDeletion: true }],
  ]),
  ...['a/b/c', 'a/', '/', '//', '/a/', 'a b/c/', 'a//b'].flatMap((apiVersion) => [
    [{ ...OWNING, apiVersion }],
    [{ ...EVENT, apiVersion, name: '' }],
  ]),
  [{}],
  [null],
  [OWNING, null, { apiVersion: 'a/b/c' }],
  [EVENT],
  [{ ...EVENT, apiVersion: '/v1', name: '', uid: '' }],
  [OWNING, { ...EVENT, controller: true, blockOwnerDeletion: false }],
  [{ uid: 'u', name: 'o', kind: 'Event', blockOwnerDeletion: true, apiVersion: 'v1' }],
  [CONTROLLER, { ...CONTROLLER, name: 'p', uid: 'v' }],
  [CONTROLLER, { ...OWNING, uid: 'v', controller: false }, { ...CONTROLLER, uid: 'w' }, { ...CONTROLLER, kind: '', name: 'q' }],
  [
    { ...CONTROLLER, kind: '', name: '', blockOwnerDeletion: true },
    { ...CONTROLLER, uid: 'v' },
  ],
  [{ ...EVENT, controller: true, other: 'x' }, CONTROLLER],
  [{ ...OWNING, name: '"<&>\u2028', kind: 'Event' }],
];
const refusedMetadata: readonly object[] = [
  ...['-a', 'a b', '', 'a/', '/a', 'A/a', 'a/b/c', LONG, `${LONGER}/a`].flatMap((key) => [
    { labels: { [key]: 'x' } },
    { annotations: { [key]: 'x' } },
  ]),
  ...['-a', 'a b', 'a/b', LONG].map((value) => ({ labels: { k: value } })),
  { finalizers: ['a b/c'] },
  ...wrongOwners.map((ownerReferences) => ({ ownerReferences })),
];
/** What is refused in the same words, too: people search for them. */
const worded: readonly Asked[] = [
  ...refusedMetadata.map((more): Asked => {
    const body = map('worded', { metadata: { name: 'worded', ...more } });
    return post(body, { title: `WORDS ${JSON.stringify(more).slice(0, 240)}` });
  }),
  ...['UPPER', 'has.dots', 'a_b', LONG].map((name) =>
    send('POST', '/api/v1/namespaces', { metadata: { name } }, { title: `WORDS the namespace ${name}` }),
  ),
  post({ metadata: { name: LONGER } }, { title: 'WORDS a long name' }),
  { title: 'WORDS a policy', method: 'DELETE', path: `${MAPS}/none?propagationPolicy=Nope` },
];

/** Owners that are there twice. Those of a strategic merge patch are merged by their uid. */
function twins(): Asked[] {
  const other = { ...OWNING, uid: 'v' };
  const of = (...ownerReferences: readonly unknown[]): object => map('twins', { metadata: { name: 'twins', ownerReferences } });
  const unlike = [
    { ...OWNING, controller: false },
    { ...OWNING, blockOwnerDeletion: true },
    { ...OWNING, kind: 'X' },
  ];
  const nulls = { ...OWNING, controller: null, blockOwnerDeletion: null, unknown: 'x' };
  const titled = (asked: Asked, at: number): Asked => ({ ...asked, title: `TWINS ${at} ${asked.method}` });
  const path = `${MAPS}/twins`;
  const patched = (kind: string, query: string, body: unknown): Asked =>
    send('PATCH', path + query, body, { headers: { 'content-type': `application/${kind}+json` } });
  return [
    post(of(OWNING, other, OWNING, ...unlike, other, ...unlike, OWNING)),
    post(of({}, {}, null)),
    post(of({ ...OWNING, uid: '' }, { ...OWNING, uid: '' }, OWNING, OWNING)),
    send('PUT', path, of(OWNING, nulls)),
    send('PUT', `${path}?dryRun=All`, of(other, OWNING, other)),
    patched('merge-patch', '?dryRun=All', { metadata: { ownerReferences: [OWNING, OWNING, other] } }),
    patched('merge-patch', '', { metadata: { labels: { app: 'twins' } } }),
    patched('merge-patch', '?dryRun=All&fieldValidation=Strict', {
      metadata: { ownerReferences: [{ ...other, controller: null, x: null }] },
    }),
    patched('json-patch', '', [{ op: 'add', path: '/metadata/ownerReferences/-', value: OWNING }]),
    patched('strategic-merge-patch', '?dryRun=All', { metadata: { ownerReferences: [OWNING, OWNING, other] } }),
    { title: '', method: 'DELETE', path },
  ].map(titled);
}

/** All of them. */
export const REQUESTS: readonly Asked[] = [
  ...[
    ...creations,
    ...gets,
    ...negotiated,
    ...tables,
    ...lists,
    ...parameters(),
    ...updates,
    ...removals,
    ...leases,
    ...headed,
    ...worded,
    ...twins(),
  ],
];
