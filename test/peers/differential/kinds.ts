// The built-in kinds besides ConfigMaps, Leases and namespaces as objects, as requests of differential.test.ts: each in JSON and protobuf.
import { type Asked, NAMESPACE, send } from './requests.ts';

const CORE = `/api/v1/namespaces/${NAMESPACE}`;
const SECRETS = `${CORE}/secrets`;
const ACCOUNTS = `${CORE}/serviceaccounts`;
const EVENTS = `${CORE}/events`;
const NEW_EVENTS = `/apis/events.k8s.io/v1/namespaces/${NAMESPACE}/events`;
const MAPS = `${CORE}/configmaps`;
const NAMESPACES = '/api/v1/namespaces';

const titled = (method: string, path: string, text: string): string => `KINDS ${method} ${path.replace(CORE, '')} ${text}`;
const get = (path: string, accept?: string): Asked => ({
  title: titled('GET', path, accept ?? ''),
  method: 'GET',
  path,
  // A real server compresses some watches, and says that it might.
  ...(accept && { headers: { accept, 'accept-encoding': 'identity' } }),
});
function write(method: string, path: string, body: unknown, type: string = 'json'): Asked {
  const shown = typeof body === 'string' ? body : JSON.stringify(body);
  return send(method, path, body, {
    title: titled(method, path, `${type} ${shown.length > 150 ? `${shown.slice(0, 150)} of ${shown.length}` : shown}`),
    headers: { 'content-type': `application/${type}` },
  });
}
const post = (path: string, body: unknown): Asked => write('POST', path, body);
const [MERGE, STRATEGIC, JSON_PATCH] = ['merge-patch+json', 'strategic-merge-patch+json', 'json-patch+json'] as const;
const patch = (path: string, body: unknown, type: string = MERGE): Asked => write('PATCH', path, body, type);
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';
const base64 = (text: string): string => Buffer.from(text).toString('base64');
const named = (name: string, more: object = {}): object => ({ metadata: { name }, ...more });

const badSecrets: readonly object[] = [
  { data: { 'a b': '' } },
  { data: { a: 1 } },
  { data: { a: '%' } },
  { data: [] },
  { stringData: { a: 1 } },
  { stringData: 'x' },
  { type: 1 },
  { immutable: 'x' },
  { data: { a: base64('x'.repeat(2 ** 20 + 1)) } },
  { metadata: { name: 'bad', finalizers: ['mine'] } },
  ...['service-account-token', 'dockercfg', 'dockerconfigjson', 'basic-auth', 'ssh-auth', 'tls'].map((type) => ({
    type: `kubernetes.io/${type}`,
  })),
  { type: 'kubernetes.io/dockercfg', data: { '.dockercfg': base64('no') } },
  { type: 'kubernetes.io/dockerconfigjson', data: { '.dockerconfigjson': base64('[]') } },
  { type: 'kubernetes.io/tls', data: { 'tls.crt': '' } },
  { type: 'kubernetes.io/ssh-auth', data: { 'ssh-privatekey': '' } },
];

const [CERTIFICATE, KEY] = ['CERTIFICATE', 'PRIVATE KEY'].map((type) =>
  base64(`-----BEGIN ${type}-----\nMIIB\n-----END ${type}-----\n`),
);
const pairs = [
  ['', ''],
  [CERTIFICATE, ''],
  [CERTIFICATE, CERTIFICATE],
  [KEY, KEY],
].map(([certificate, key], at) =>
  named(`pair${at}`, { type: 'kubernetes.io/tls', data: { 'tls.crt': certificate, 'tls.key': key } }),
);

const secrets: readonly Asked[] = [
  ...pairs.map((each) => post(SECRETS, each)),
  post(SECRETS, named('s', { data: { a: 'AA==', b: 'YQ==' }, stringData: { b: 'x', c: 'é' }, other: 1 })),
  post(SECRETS, named('null', { data: { a: null }, stringData: { b: null }, immutable: null, type: null })),
  post(SECRETS, named('empty', { data: {}, stringData: {}, type: '' })),
  post(SECRETS, named('lines', { data: { a: 'YWFh\nYWFh' } })),
  post(SECRETS, named('basic', { type: 'kubernetes.io/basic-auth', data: { password: '' } })),
  post(SECRETS, named('docker', { type: 'kubernetes.io/dockerconfigjson', stringData: { '.dockerconfigjson': '{"auths":{}}' } })),
  ...badSecrets.map((each) => post(SECRETS, { metadata: { name: 'bad' }, ...each })),
  post(SECRETS, named('s')),
  patch(`${SECRETS}/s`, { stringData: { d: 'd' }, data: { a: null } }),
  patch(`${SECRETS}/s`, { stringData: { e: 'e' }, metadata: { labels: { a: 'b' } } }, STRATEGIC),
  patch(`${SECRETS}/s`, [{ op: 'add', path: '/data/f', value: 'Zg==' }], JSON_PATCH),
  patch(`${SECRETS}/s`, [{ op: 'add', path: '/data/f', value: '%' }], JSON_PATCH),
  patch(`${SECRETS}/s`, { data: { a: 1 } }),
  patch(`${SECRETS}/s`, { data: 'x' }, STRATEGIC),
  patch(`${SECRETS}/s`, { type: 'other' }),
  write('PUT', `${SECRETS}/s`, named('s', { data: { z: '' } })),
  write('PUT', `${SECRETS}/basic`, named('basic', { data: { username: '' } })),
  patch(`${SECRETS}/s`, { immutable: true }),
  patch(`${SECRETS}/s`, { data: { q: 'cQ==' }, immutable: false }),
  patch(`${SECRETS}/s`, { metadata: { annotations: { a: 'b' } } }),
  ...['type=Opaque', 'type=kubernetes.io/basic-auth', 'type!=Opaque', 'metadata.name=s', 'data=x'].map((each) =>
    get(`${SECRETS}?fieldSelector=${each}`),
  ),
  get(SECRETS, TABLE),
  get(`${SECRETS}/s`, TABLE),
  write('DELETE', `${SECRETS}/docker`, {}),
];

/** Elements of lists that are there and of new ones: what is null or unknown in them, and directives. */
function strategic(path: string): Asked[] {
  const lists: readonly object[] = [
    ...[
      { name: 'n', x: null },
      { name: 'z', x: null },
      { name: 'n', x: { y: null } },
      { name: 'n', x: [{ y: null }] },
    ].map((each) => [each]),
    [{ name: 'n', namespace: null }],
    [{ name: 'n' }, { name: 'n', x: null }],
    [{ name: 'n', x: null }, { $patch: 'replace' }],
    [
      { name: 'n', x: 1 },
      { $patch: 'replace', name: 'm' },
    ],
    [{ name: 'n' }, { $patch: 'delete', name: 'z' }],
  ];
  return lists.flatMap((list) =>
    ['Strict', 'Warn'].flatMap((mode) =>
      [{ secrets: list }, { imagePullSecrets: list }].map((body) =>
        patch(`${path}?dryRun=All&fieldValidation=${mode}`, body, STRATEGIC),
      ),
    ),
  );
}

const accounts: readonly Asked[] = [
  post(ACCOUNTS, named('a', { secrets: [{ name: 'x' }, { name: 'y', other: 1 }], imagePullSecrets: [{ name: 'p' }, null] })),
  post(ACCOUNTS, named('b', { automountServiceAccountToken: false, secrets: [], imagePullSecrets: null })),
  ...[{ secrets: 'x' }, { secrets: ['x'] }, { automountServiceAccountToken: 1 }, { imagePullSecrets: {} }].map((each) =>
    post(ACCOUNTS, named('bad', each)),
  ),
  patch(`${ACCOUNTS}/a`, { secrets: [{ name: 'z' }, { name: 'x', $patch: 'delete' }] }, STRATEGIC),
  patch(`${ACCOUNTS}/a`, { imagePullSecrets: [{ name: 'q' }] }, STRATEGIC),
  ...['a', 'b'].flatMap((name) => strategic(`${ACCOUNTS}/${name}`)),
  patch(`${ACCOUNTS}/a`, { secrets: [{ name: 'w' }] }),
  write('PUT', `${ACCOUNTS}/a`, named('a', { secrets: [{ name: 'v' }] })),
  get(`${ACCOUNTS}/a`, TABLE),
  write('DELETE', `${ACCOUNTS}/b`, {}),
];

const about = { involvedObject: { kind: 'ConfigMap', name: 'm', namespace: NAMESPACE, uid: 'u' } };
const time = '2026-01-02T03:04:05Z';
const micro = '2026-01-02T03:04:05.000006Z';
const whole = {
  ...{ eventTime: micro, reportingController: 'example.com/c', reportingInstance: 'i', action: 'Do', reason: 'Did' },
  ...{ regarding: about.involvedObject, note: 'n', type: 'Normal' },
};

const events: readonly Asked[] = [
  post(
    EVENTS,
    named('e', {
      ...about,
      reason: 'R',
      message: ' m ',
      source: { component: 'c', host: 'h' },
      count: 3,
      type: 'Normal',
      firstTimestamp: time,
      lastTimestamp: '2026-01-02T05:04:05.5+01:00',
    }),
  ),
  post(EVENTS, named('bare', about)),
  post(
    EVENTS,
    named('new', {
      ...about,
      eventTime: micro,
      reportingComponent: 'c',
      reportingInstance: 'i',
      action: 'a',
      reason: 'r',
      series: { count: 2, lastObservedTime: '2026-01-02T03:04:05Z' },
    }),
  ),
  post(EVENTS, named('bad', {})),
  ...['system:node.17', 'A_b', 'a b', 'a%', '..', 'x'.repeat(300)].flatMap((name) => [
    post(`${EVENTS}?dryRun=All`, named(name, about)),
    post(`${MAPS}?dryRun=All`, named(name)),
  ]),
  post(EVENTS, named('bad', { involvedObject: { namespace: 'other' } })),
  post(EVENTS, named('bad', { ...about, eventTime: micro })),
  post(
    EVENTS,
    named('bad', {
      ...about,
      eventTime: micro,
      reportingComponent: 'a b',
      reportingInstance: 'x'.repeat(129),
      action: 'x'.repeat(129),
      reason: 'x'.repeat(129),
      message: 'x'.repeat(1025),
    }),
  ),
  ...[
    { count: 'x' },
    { count: 2 ** 31 },
    { firstTimestamp: 'x' },
    { eventTime: 1 },
    { source: [] },
    { series: 1 },
    { reason: {} },
  ].map((each) => post(EVENTS, named('bad', { ...about, ...each }))),
  post(NEW_EVENTS, named('v1', whole)),
  post(NEW_EVENTS, named('bad', {})),
  post(
    NEW_EVENTS,
    named('bad', {
      ...whole,
      type: 'Other',
      deprecatedCount: 1,
      deprecatedSource: { host: 'h' },
      deprecatedFirstTimestamp: time,
      deprecatedLastTimestamp: time,
      series: { count: 1 },
    }),
  ),
  post(NEW_EVENTS, named('bad', { ...whole, reportingController: '' })),
  ...['e', 'bare', 'new', 'v1'].flatMap((name) => [get(`${EVENTS}/${name}`), get(`${NEW_EVENTS}/${name}`)]),
  patch(`${EVENTS}/e`, { count: 4, lastTimestamp: time }, STRATEGIC),
  patch(`${EVENTS}/e`, { message: 'other' }),
  patch(`${NEW_EVENTS}/v1`, { series: { count: 3, lastObservedTime: micro } }, STRATEGIC),
  patch(`${NEW_EVENTS}/v1`, { series: { count: 1 } }, MERGE),
  patch(`${NEW_EVENTS}/v1`, { note: 'other', type: 'Warning', regarding: { name: 'q' }, action: 'x' }),
  patch(`${NEW_EVENTS}/v1`, { eventTime: null, related: { name: 'x' }, reportingController: 'other', reportingInstance: 'z' }),
  write('PUT', `${EVENTS}/bare`, named('bare', { ...about, reason: 'put' })),
  ...[
    'involvedObject.name=m',
    'involvedObject.kind=ConfigMap,reason=R',
    'source=c',
    'reportingComponent=c',
    'type=Normal',
    'type=',
    'involvedObject.uid=u,involvedObject.fieldPath=',
    'message=x',
    'regarding.name=m',
  ].map((each) => get(`${EVENTS}?fieldSelector=${encodeURIComponent(each)}`)),
  ...['regarding.name=m', 'reportingController=example.com/c', 'reason=Did', 'source=c', 'involvedObject.name=m'].map((each) =>
    get(`${NEW_EVENTS}?fieldSelector=${encodeURIComponent(each)}`),
  ),
  get(EVENTS, TABLE),
  get(NEW_EVENTS, TABLE),
  get(`/api/v1/events?fieldSelector=metadata.namespace=${NAMESPACE}`),
];

const namespaces: readonly Asked[] = [
  post(NAMESPACES, named('fin', { spec: { finalizers: ['example.com/mine'] }, status: { phase: 'Odd' } })),
  post(NAMESPACES, named('bad', { spec: { finalizers: ['mine'] } })),
  post(NAMESPACES, named('bad', { spec: { finalizers: [1] } })),
  post(NAMESPACES, named('x'.repeat(64))),
  post(`/api/v1/namespaces/${'x'.repeat(64)}/configmaps`, named('a')),
  patch(`${NAMESPACES}/fin`, { spec: { finalizers: [] }, metadata: { labels: { a: 'b' } } }),
  get(`${NAMESPACES}/fin/status`),
  patch(`${NAMESPACES}/fin/status`, {
    status: { conditions: [{ type: 'T', status: 'True' }] },
    metadata: { annotations: { x: 'y' } },
  }),
  patch(
    `${NAMESPACES}/fin/status`,
    { status: { conditions: [{ type: 'U', status: 'False', lastTransitionTime: time }] } },
    STRATEGIC,
  ),
  patch(`${NAMESPACES}/fin/status`, { status: { phase: 'Terminating' } }),
  write('PUT', `${NAMESPACES}/fin/status`, named('fin', { status: {} })),
  write('PUT', `${NAMESPACES}/fin/finalize`, named('fin', { spec: { finalizers: ['kubernetes', 'example.com/z'] } })),
  write('PUT', `${NAMESPACES}/fin/finalize`, named('fin', { spec: { finalizers: ['z'] } })),
  get(`${NAMESPACES}/fin/finalize`),
  patch(`${NAMESPACES}/fin/finalize`, {}),
  get(`${NAMESPACES}?fieldSelector=status.phase=Active,metadata.name=fin`),
  get(`${NAMESPACES}?fieldSelector=name=fin`),
  get(`${NAMESPACES}?fieldSelector=spec.x=fin`),
];

const maps: readonly Asked[] = [
  post(
    MAPS,
    named('nulls', {
      data: { a: null },
      binaryData: null,
      metadata: { name: 'nulls', labels: { a: null }, annotations: { b: null } },
    }),
  ),
  post(MAPS, { metadata: { generateName: 'x'.repeat(300) } }),
  post(MAPS, { metadata: { generateName: 'A-' } }),
  post(MAPS, named('doomed', { metadata: { name: 'doomed', finalizers: ['a.b/c'] } })),
  write('DELETE', `${MAPS}/doomed`, {}),
  post(MAPS, named('doomed')),
  patch(`${MAPS}/doomed`, { metadata: { finalizers: null } }),
  ...['invalid', '-1s', '1', '0', '2562048h', '-9999999h', '2562047h', '1m30s', '.5s', '1.5h', '', '1x', 's', '+1s'].map((each) =>
    get(`${MAPS}?timeout=${encodeURIComponent(each)}&limit=1&fieldSelector=metadata.name=none`),
  ),
];

const AUTHENTICATION = '/apis/authentication.k8s.io/v1';
const AUTHORIZATION = '/apis/authorization.k8s.io/v1';
const reviews: readonly Asked[] = [
  post(`${AUTHORIZATION}/selfsubjectaccessreviews`, {}),
  post(`${AUTHORIZATION}/selfsubjectaccessreviews`, { spec: { resourceAttributes: {}, nonResourceAttributes: {} } }),
  post(`${AUTHORIZATION}/selfsubjectaccessreviews`, { metadata: { name: 'x' }, spec: { resourceAttributes: { verb: 'get' } } }),
  post(`${AUTHORIZATION}/selfsubjectaccessreviews`, { spec: 'x' }),
  ...[{ rawSelector: 'a=b' }, { requirements: [{ key: 'a', operator: 'In', values: ['b'] }] }].map((selector) =>
    post(`${AUTHORIZATION}/selfsubjectaccessreviews?fieldValidation=Strict`, {
      spec: { resourceAttributes: { verb: 'list', resource: 'configmaps', labelSelector: selector, fieldSelector: selector } },
    }),
  ),
  post(`${AUTHORIZATION}/selfsubjectrulesreviews`, {}),
  ...[
    {},
    { spec: { resourceAttributes: { verb: 'get' }, nonResourceAttributes: { path: '/x' } } },
    { spec: { user: 'jo', resourceAttributes: { verb: 'get', resource: 'configmaps', namespace: NAMESPACE } } },
    { metadata: { name: 'x', labels: { a: 'b' } }, spec: { groups: ['g'], nonResourceAttributes: { verb: 'get', path: '/x' } } },
    {
      metadata: { namespace: 'other' },
      spec: { user: 'jo', uid: '7', extra: { k: ['v'] }, nonResourceAttributes: { verb: 'get', path: '/x' } },
    },
    { spec: { user: 1, extra: { k: 'v' } } },
  ].flatMap((review) => [
    post(`${AUTHORIZATION}/subjectaccessreviews`, review),
    post(`${AUTHORIZATION}/namespaces/${NAMESPACE}/localsubjectaccessreviews`, review),
    post(`${AUTHORIZATION}/selfsubjectaccessreviews`, review),
  ]),
  post(`${AUTHORIZATION}/localsubjectaccessreviews`, {}),
  post(`${AUTHORIZATION}/subjectaccessreviews?dryRun=All`, { spec: { user: 'jo', resourceAttributes: {} } }),
  ...[
    {},
    { spec: {} },
    { spec: { token: 'nobody' } },
    { metadata: { name: 'x' }, spec: { token: 'nobody', audiences: ['a'] } },
  ].map((review) => post(`${AUTHENTICATION}/tokenreviews`, review)),
  get(`${AUTHENTICATION}/tokenreviews`),
  ...[
    { 'impersonate-user': 'jo' },
    { 'impersonate-user': 'jo', 'impersonate-group': 'dev', 'impersonate-uid': '7', 'impersonate-extra-Some%2fKey': 'v' },
    { 'impersonate-user': 'jo', 'impersonate-group': 'system:unauthenticated' },
    { 'impersonate-user': 'system:anonymous' },
    { 'impersonate-user': 'system:anonymous', 'impersonate-group': 'dev' },
    { 'impersonate-user': 'system:serviceaccount:default:robot' },
    { 'impersonate-user': 'system:serviceaccount:default:robot', 'impersonate-group': 'dev' },
    { 'impersonate-user': 'system:serviceaccount:Default:robot' },
    { 'impersonate-user': 'system:serviceaccount:default:' },
    { 'impersonate-group': 'dev' },
    { 'impersonate-uid': '7' },
    { 'impersonate-user': '', 'impersonate-extra-k': 'v' },
  ].map((headers) => {
    const asked = post(`${AUTHENTICATION}/selfsubjectreviews`, {});
    return { ...asked, title: `${asked.title} ${JSON.stringify(headers)}`, headers: { ...asked.headers, ...headers } };
  }),
  get(`${AUTHORIZATION}/selfsubjectaccessreviews`),
];

/** Bodies that a typed client sends: envelopes of protobuf. Built by hand: what decodes them is what is tested. */
const f = (number: number, ...parts: readonly (string | Uint8Array)[]): Buffer => {
  const bytes = Buffer.concat(parts.map((part) => Buffer.from(part)));
  return Buffer.concat([Buffer.from([number * 8 + 2, ...sized(bytes.length)]), bytes]);
};
const sized = (length: number): number[] => (length < 128 ? [length] : [(length % 128) + 128, Math.floor(length / 128)]);
const n = (number: number, value: number): Buffer => Buffer.from([number * 8, value]);
const PROTOBUF = 'application/vnd.kubernetes.protobuf';
const sendProto = (
  path: string,
  title: string,
  [apiVersion, kind]: readonly [string, string],
  ...object: Uint8Array[]
): Asked => ({
  title: titled('POST', path, `protobuf ${title}`),
  method: 'POST',
  path,
  headers: { 'content-type': PROTOBUF },
  body: Buffer.concat([Buffer.from('k8s\0'), f(1, f(1, apiVersion), f(2, kind)), f(2, ...object)]) as unknown as string,
});
const reference = [f(1, 'ConfigMap'), f(2, NAMESPACE), f(3, 'm')];

const protobuf: readonly Asked[] = [
  sendProto(
    SECRETS,
    'secret',
    ['v1', 'Secret'],
    f(1, f(1, 'proto')),
    f(2, f(1, 'k'), f(2, Buffer.from([0, 255]))),
    f(4, f(1, 's'), f(2, 't')),
    n(5, 0),
  ),
  sendProto(ACCOUNTS, 'account', ['v1', 'ServiceAccount'], f(1, f(1, 'proto')), f(2, f(3, 'x')), f(3, f(1, 'p')), n(4, 1)),
  sendProto(
    EVENTS,
    'event',
    ['v1', 'Event'],
    f(1, f(1, 'proto')),
    f(2, ...reference),
    f(3, 'R'),
    f(4, 'm'),
    f(6, n(1, 5)),
    n(8, 2),
  ),
  sendProto(EVENTS, 'event that is none', ['v1', 'Event'], f(1, f(1, 'proto2')), f(2)),
  sendProto(
    NEW_EVENTS,
    'event',
    ['events.k8s.io/v1', 'Event'],
    f(1, f(1, 'proto3')),
    f(2, n(1, 5)),
    f(4, 'c'),
    f(5, 'i'),
    f(6, 'a'),
    f(7, 'R'),
    f(8, ...reference),
    f(11, 'Normal'),
  ),
];

const ACCEPT = `${PROTOBUF},application/json`;
const answers: readonly Asked[] = [
  ...[SECRETS, ACCOUNTS, EVENTS, NEW_EVENTS, MAPS, '/apis/coordination.k8s.io/v1/namespaces/differential/leases'].flatMap(
    (path) => [
      get(path, ACCEPT),
      get(`${path}?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan`, ACCEPT),
      get(`${path}?watch=1&timeoutSeconds=1&resourceVersion=1`, ACCEPT),
    ],
  ),
  ...[`${SECRETS}/s`, `${ACCOUNTS}/a`, `${EVENTS}/e`, `${NEW_EVENTS}/e`, `${NAMESPACES}/fin`, `${SECRETS}/none`].map((path) =>
    get(path, ACCEPT),
  ),
  { ...post(SECRETS, named('answer', { data: { a: 'AA==' } })), headers: { 'content-type': 'application/json', accept: ACCEPT } },
];

export const KIND_REQUESTS: readonly Asked[] = [
  ...secrets,
  ...accounts,
  ...events,
  ...namespaces,
  ...maps,
  ...reviews,
  ...protobuf,
  ...answers,
];
