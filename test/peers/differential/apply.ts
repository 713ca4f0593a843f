// Server-side apply and managed fields, as requests of differential-apply.test.ts: of a ConfigMap, and of a kind that is a custom
// resource there and a definition here, with the same schema.
import type { ResourceDefinition } from 'watchmux/apiserver';
import { type Asked, MAPS, type Memory, NAMESPACE, send } from './requests.ts';

const text = { type: 'string' };
const keyed = {
  type: 'array',
  items: { type: 'object', required: ['name'], properties: { name: text, value: text, count: { type: 'integer' } } },
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['name'],
};

const SCHEMA = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        replicas: { type: 'integer' },
        color: text,
        size: text,
        parts: keyed,
        tags: { type: 'array', items: text, 'x-kubernetes-list-type': 'set' },
        plain: { type: 'array', items: text },
        nested: { type: 'object', properties: { a: text, b: text } },
        whole: { type: 'object', properties: { a: text, b: text }, 'x-kubernetes-map-type': 'atomic' },
        labels: { type: 'object', additionalProperties: text },
        any: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        port: { 'x-kubernetes-int-or-string': true },
      },
    },
    status: { type: 'object', properties: { phase: text, replicas: { type: 'integer' }, conditions: keyed } },
  },
} as const;

const [group, version, plural, kind] = ['example.com', 'v1', 'gadgets', 'Gadget'] as const;
const SCALE = { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' };

export const GADGETS: ResourceDefinition = { group, version, plural, kind, status: true, scale: SCALE, schema: SCHEMA };

export const GADGETS_CRD = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.${group}` },
  spec: {
    ...{ group, scope: 'Namespaced', names: { plural, kind } },
    versions: [
      {
        ...{ name: version, served: true, storage: true, subresources: { status: {}, scale: SCALE } },
        schema: { openAPIV3Schema: SCHEMA },
      },
    ],
  },
} as const;

export const GADGETS_PATH: string = `/apis/${group}/${version}/namespaces/${NAMESPACE}/${plural}`;

const [APPLY, MERGE, JSON_PATCH, STRATEGIC] = [
  'application/apply-patch+yaml',
  'application/merge-patch+json',
  'application/json-patch+json',
  'application/strategic-merge-patch+json',
];

/** A title has all that matters, as there may be only one of each. */
let count = 0;
function ask(method: string, path: string, body: unknown, headers: Record<string, string>): Asked {
  const shown = typeof body === 'function' ? 'what there is' : typeof body === 'string' ? body : JSON.stringify(body);
  const short = path.replace(GADGETS_PATH, '').replace(MAPS, '/cm');
  return send(method, path, body, { title: `${++count} ${method} ${short} ${shown.slice(0, 200)}`, headers });
}

const patched = (type: string, path: string, body: unknown): Asked => ask('PATCH', path, body, { 'content-type': type });
const applied = (path: string, body: unknown): Asked => patched(APPLY as string, path, body);
const written = (method: string, path: string, body: unknown, agent?: string): Asked =>
  ask(method, path, body, { 'content-type': 'application/json', ...(agent && { 'user-agent': agent }) });
const got = (path: string): Asked => ({ title: `${++count} GET ${path}`, method: 'GET', path });

const gadget = (name: string, spec: unknown, more: object = {}): object => ({
  ...{ apiVersion: `${group}/${version}`, kind, metadata: { name }, spec },
  ...more,
});
const meta = (name: string, metadata: object, spec?: unknown): object => ({
  ...{ apiVersion: `${group}/${version}`, kind, metadata: { name, ...metadata } },
  ...(spec !== undefined && { spec }),
});
const map = (name: string, data: unknown, metadata: object = {}): object => ({
  ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...metadata }, data },
});
const scale = (name: string, spec: object): object => ({ apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name }, spec });

/** The last answer of this name, changed: what a client does that reads and writes. */
const changed =
  (name: string, change: (object: Record<string, unknown> & { metadata: Record<string, unknown> }) => object) =>
  ({ objects }: Memory): string =>
    JSON.stringify(change(structuredClone(objects.get(name)) as never));

const at = (name: string, query: string = 'fieldManager=one'): string => `${GADGETS_PATH}/${name}?${query}`;
const cm = (name: string, query: string = 'fieldManager=one'): string => `${MAPS}/${name}?${query}`;
const G = GADGETS_PATH;

const options: readonly Asked[] = [
  applied(`${G}/o`, gadget('o', { color: 'red' })),
  applied(at('o', 'fieldManager='), gadget('o', {})),
  applied(at('o', `fieldManager=${'m'.repeat(129)}`), gadget('o', {})),
  applied(at('o', 'fieldManager=a%07b'), gadget('o', {})),
  applied(at('o', 'fieldManager=%C3%BC%20b'), gadget('ü', {})),
  applied(at('o', 'fieldManager=one&dryRun=Some'), gadget('o', {})),
  applied(at('o', 'fieldManager=a%07b&dryRun=Some'), gadget('o', {})),
  patched(MERGE as string, at('o', 'force=true'), {}),
  patched(MERGE as string, at('o', 'force=false'), {}),
  written('POST', `${G}?fieldManager=a%07b`, gadget('o', {})),
  written('POST', `${G}?fieldManager=${'m'.repeat(129)}`, gadget('o', {})),
  written('PUT', at('o', 'fieldManager=a%07b'), gadget('o', {})),
  patched('application/apply-patch+cbor', at('o'), gadget('o', {})),
  patched('application/apply-patch+json', at('o'), gadget('o', {})),
  applied(at('o'), '{'),
  applied(at('o'), ''),
  applied(at('o'), '[]'),
  applied(at('o'), 'null'),
  applied(at('o'), 'a: [b'),
  applied(at('o'), {}),
  applied(at('o'), { metadata: { name: 'o' } }),
  applied(at('o'), { apiVersion: 'example.com/v2', kind, metadata: { name: 'o' } }),
  applied(at('o'), { apiVersion: 'example.com/v1', kind: 'Other', metadata: { name: 'o' } }),
  applied(cm('o'), { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'o' } }),
  applied(at('o'), { apiVersion: 'example.com/v1', kind }),
  applied(at('o'), gadget('other', {})),
  applied(at('o'), meta('o', { namespace: 'other' })),
  applied(at('o'), meta('o', { uid: 'x' })),
  applied(at('o'), meta('o', { resourceVersion: '1' })),
  applied(at('o'), meta('o', { managedFields: [] })),
  applied(at('o'), meta('o', { managedFields: [{ manager: 'x' }] })),
  applied(at('UPPER'), gadget('UPPER', {})),
  applied(at('o'), gadget('o', { unknown: 1 })),
  applied(at('o'), gadget('o', { replicas: 'x' })),
  applied(at('o'), gadget('o', { parts: [{ name: 'a' }, { name: 'a' }] })),
  applied(at('o'), gadget('o', { parts: [{ value: 'a' }] })),
  applied(at('o'), gadget('o', { tags: ['a', 'a'] })),
  applied(at('o'), gadget('o', null)),
  applied(cm('o'), map('o', { a: 1 })),
  applied(cm('o'), { ...map('o', {}), unknown: 1 }),
  applied(
    at('o', 'fieldManager=one&fieldValidation=Strict'),
    `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"o"},"spec":{"color":"a","color":"b"}}`,
  ),
  applied(at('o', 'fieldManager=one&dryRun=All'), gadget('o', { color: 'dry' })),
  got(`${G}/o`),
  applied(`/apis/example.com/v1/namespaces/nowhere/gadgets/o?fieldManager=one`, gadget('o', {})),
  applied(`/api/v1/namespaces/nowhere/configmaps/o?fieldManager=one`, map('o', {})),
  applied(`${G}/none/status?fieldManager=one`, gadget('none', undefined, { status: { phase: 'x' } })),
  applied(`${G}/none/scale?fieldManager=one`, scale('none', { replicas: 1 })),
];

const lives: readonly Asked[] = [
  // Two appliers, a conflict, force, giving up.
  applied(at('a'), gadget('a', { color: 'red', size: 'big', parts: [{ name: 'x', value: '1' }], tags: ['t'], plain: ['p'] })),
  applied(at('a'), gadget('a', { color: 'red', size: 'big', parts: [{ name: 'x', value: '1' }], tags: ['t'], plain: ['p'] })),
  applied(at('a', 'fieldManager=two'), gadget('a', { color: 'blue' })),
  applied(at('a', 'fieldManager=two'), gadget('a', { color: 'blue', size: 'small', parts: [{ name: 'x', value: '2' }] })),
  applied(at('a', 'fieldManager=two'), gadget('a', { color: 'red', parts: [{ name: 'y', count: 2 }], tags: ['u'] })),
  applied(at('a', 'fieldManager=two&force=true'), gadget('a', { color: 'blue', parts: [{ name: 'y', count: 2 }] })),
  applied(at('a'), gadget('a', { size: 'big' })),
  applied(at('a', 'fieldManager=two&dryRun=All'), gadget('a', {})),
  applied(at('a', 'fieldManager=two'), gadget('a', {})),
  applied(at('a', 'fieldManager=three'), gadget('a', { plain: ['q'] })),
  applied(at('a', 'fieldManager=two&force=false'), gadget('a', { size: 'huge' })),
  applied(at('a', 'fieldManager=two&force=1'), gadget('a', { size: 'huge', nested: { a: 'x' }, whole: { a: 'x' } })),
  applied(at('a', 'fieldManager=four'), gadget('a', { nested: { b: 'y' }, whole: { b: 'y' } })),
  applied(
    at('a', 'fieldManager=four'),
    gadget('a', { nested: { b: 'y' }, labels: { l: 'm' }, any: { deep: { er: 1 } }, port: 80 }),
  ),
  applied(at('a', 'fieldManager=four'), gadget('a', { any: { deep: { er: 1, more: [1, 2] } }, port: 'http' })),
  // Others update it.
  patched(MERGE as string, at('a', ''), { spec: { color: 'green' } }),
  patched(MERGE as string, at('a', ''), { spec: { color: 'green' } }),
  patched(MERGE as string, at('a', 'fieldManager=editor'), { spec: { size: 'tiny' }, metadata: { labels: { app: 'a' } } }),
  patched(JSON_PATCH as string, at('a', 'fieldManager=patcher'), [{ op: 'add', path: '/spec/plain/-', value: 'z' }]),
  patched(MERGE as string, at('a', 'fieldManager=editor'), { metadata: { labels: null } }),
  applied(at('a'), gadget('a', { size: 'big', color: 'red' })),
  applied(at('a', 'fieldManager=one&force=true'), gadget('a', { size: 'big', color: 'red' })),
  // A read-modify-write, with and without managers, and a stale one.
  written(
    'PUT',
    at('a', 'fieldManager=putter'),
    changed('a', (object) => ({ ...object, spec: { color: 'put' } })),
    'agent/1.0 x',
  ),
  written(
    'PUT',
    at('a', ''),
    changed('a', (object) => ({
      ...object,
      metadata: { ...object.metadata, managedFields: undefined },
      spec: { color: 'put2' },
    })),
    'my-agent/v1.0 (linux)',
  ),
  written(
    'PUT',
    at('a', ''),
    changed('a', (object) => object),
    'other/1',
  ),
  written(
    'PUT',
    at('a', ''),
    changed('a', (object) => ({ ...object, spec: { color: 'x' } })),
    'naïve\u00ffagent',
  ),
  // Status and scale.
  patched(MERGE as string, `${G}/a/status?fieldManager=controller`, { status: { phase: 'Done' }, spec: { color: 'no' } }),
  applied(
    `${G}/a/status?fieldManager=one`,
    gadget('a', { color: 'no' }, { status: { conditions: [{ name: 'Ready', value: 'True' }] } }),
  ),
  applied(`${G}/a/status?fieldManager=two`, gadget('a', undefined, { status: { phase: 'Other' } })),
  applied(`${G}/a/status?fieldManager=two&force=true`, gadget('a', undefined, { status: { phase: 'Other' } })),
  applied(at('a'), gadget('a', { color: 'red' }, { status: { phase: 'ignored' } })),
  applied(at('a', 'fieldManager=one&force=true'), gadget('a', { color: 'red', replicas: 3 }, { status: { phase: 'ignored' } })),
  written('PUT', `${G}/a/scale?fieldManager=scaler`, scale('a', { replicas: 5 })),
  got(`${G}/a`),
  applied(at('a'), gadget('a', { color: 'red', replicas: 3 })),
  patched(MERGE as string, `${G}/a/scale`, { spec: { replicas: 5 } }),
  patched(MERGE as string, `${G}/a/scale?fieldManager=scaler2`, { spec: { replicas: 6 } }),
  got(`${G}/a`),
  applied(`${G}/a/scale?fieldManager=autoscaler`, scale('a', { replicas: 7 })),
  applied(`${G}/a/scale?fieldManager=autoscaler`, gadget('a', {})),
  // Preconditions.
  applied(at('a', 'fieldManager=five'), meta('a', { resourceVersion: '1' }, { size: 'v' })),
  applied(at('a', 'fieldManager=five'), meta('a', { uid: 'other' }, { size: 'v' })),
  applied(
    at('a', 'fieldManager=five'),
    changed('a', ({ metadata }) => meta('a', { resourceVersion: metadata.resourceVersion }, { size: 'v' })),
  ),
  applied(
    at('a', 'fieldManager=five'),
    changed('a', ({ metadata }) => meta('a', { uid: metadata.uid }, { size: 'v' })),
  ),
  applied(
    at('a', 'fieldManager=five'),
    meta('a', { labels: { l: 'x' }, annotations: { n: 'y' }, finalizers: ['example.com/f'] }),
  ),
  applied(at('a', 'fieldManager=five'), meta('a', { labels: { l: 'x' } })),
  // Clients write managedFields themselves.
  written(
    'PUT',
    at('a'),
    changed('a', (object) => ({
      ...object,
      metadata: {
        ...object.metadata,
        managedFields: [
          {
            manager: 'made',
            operation: 'Apply',
            apiVersion: 'example.com/v1',
            time: '2024-01-01T00:00:00Z',
            fieldsType: 'FieldsV1',
            fieldsV1: { 'f:spec': { 'f:color': {} } },
          },
        ],
      },
    })),
  ),
  written(
    'PUT',
    at('a'),
    changed('a', (object) => ({
      ...object,
      metadata: {
        ...object.metadata,
        managedFields: [
          { manager: 'bad', operation: 'Wrong', apiVersion: 'example.com/v1', fieldsType: 'FieldsV1', fieldsV1: {} },
        ],
      },
    })),
  ),
  written(
    'PUT',
    at('a'),
    changed('a', (object) => ({
      ...object,
      metadata: {
        ...object.metadata,
        managedFields: [
          {
            manager: 'm'.repeat(200),
            operation: 'Update',
            apiVersion: 'example.com/v1',
            fieldsType: 'FieldsV1',
            fieldsV1: { 'f:spec': {} },
          },
        ],
      },
    })),
  ),
  written(
    'PUT',
    at('a'),
    changed('a', (object) => ({
      ...object,
      metadata: {
        ...object.metadata,
        managedFields: [
          { manager: 'bad', operation: 'Update', apiVersion: 'example.com/v1', fieldsType: 'FieldsV2', fieldsV1: {} },
        ],
      },
    })),
  ),
  written(
    'PUT',
    at('a'),
    changed('a', (object) => ({ ...object, metadata: { ...object.metadata, managedFields: [] } })),
  ),
  patched(MERGE as string, at('a'), { spec: { color: 'untracked' } }),
  applied(at('a', 'fieldManager=late'), gadget('a', { color: 'late' })),
  applied(at('a', 'fieldManager=late&force=true'), gadget('a', { color: 'late' })),
  patched(MERGE as string, at('a'), { metadata: { managedFields: [{}] } }),
  patched(JSON_PATCH as string, at('a'), [{ op: 'add', path: '/metadata/managedFields', value: [{}] }]),
  applied(at('a'), gadget('a', { color: 'late', size: 'again' })),
  patched(MERGE as string, `${G}/a/status`, { metadata: { managedFields: [] }, status: { phase: 'kept' } }),
  { title: 'DELETE a', method: 'DELETE', path: `${G}/a` },
  applied(at('a'), gadget('a', { color: 'new' })),
];

const scales: readonly Asked[] = [
  applied(at('s'), gadget('s', { replicas: 1 })),
  applied(`${G}/s/scale?fieldManager=autoscaler&force=true`, scale('s', { replicas: 7 })),
  got(`${G}/s`),
  // As in test/unit/apiserver-apply.test.ts.
  applied(at('t'), gadget('t', { replicas: 1, color: 'red' })),
  patched(MERGE as string, `${G}/t/scale?fieldManager=scaler`, { spec: { replicas: 2 } }),
  got(`${G}/t`),
  patched(MERGE as string, at('t', 'fieldManager=editor'), { spec: { replicas: 3 } }),
  got(`${G}/t`),
  patched(MERGE as string, `${G}/t/scale?fieldManager=autoscaler`, { spec: { replicas: 4 } }),
  got(`${G}/t`),
  applied(`${G}/t/scale?fieldManager=a`, scale('t', { replicas: 5 })),
  patched(MERGE as string, `${G}/t/scale?fieldManager=scaler`, { spec: { replicas: 6 } }),
  got(`${G}/t`),
  patched(MERGE as string, `${G}/t/status?fieldManager=z`, { metadata: { labels: { a: 'b' } }, status: { phase: 'Done' } }),
  applied(`${G}/t/status?fieldManager=one`, gadget('t', { color: 'no' }, { status: { phase: 'Done' } })),
  patched(MERGE as string, at('t', 'fieldManager=editor'), { spec: { size: 'x' }, status: { phase: 'no' } }),
];

const maps: readonly Asked[] = [
  written('POST', `${MAPS}?fieldManager=creator`, map('m', { a: '1' }, { labels: { l: '1' }, annotations: { n: '1' } })),
  applied(cm('m'), map('m', { a: '1', b: '2' })),
  applied(cm('m', 'fieldManager=two'), map('m', { a: '2' })),
  patched(STRATEGIC as string, cm('m', 'fieldManager=strategic'), {
    data: { c: '3' },
    metadata: { finalizers: ['example.com/one'] },
  }),
  applied(cm('m'), map('m', { b: '2' }, { finalizers: ['example.com/two'] })),
  applied(cm('m'), map('m', { b: '2' }, { ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'u' }] })),
  applied(cm('m'), { ...map('m', undefined), data: null }),
  applied(cm('m'), { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'm' }, binaryData: { z: 'eA==' }, immutable: false }),
  applied(cm('m', 'fieldManager=yaml'), 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\ndata:\n  y: "1"\n'),
  applied(cm('m', 'fieldManager=yaml'), 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {y: 1}\n'),
  applied(cm('m', 'fieldManager=yaml'), map('m', { '': 'x' })),
  written('PUT', cm('m', ''), map('m', { a: 'replaced' }), 'replacer/1'),
  written('PUT', cm('m', ''), map('m', { a: 'replaced' }), 'replacer/1'),
  written(
    'PUT',
    cm('m'),
    changed('m', (object) => ({ ...object, metadata: { ...object.metadata, managedFields: [] } })),
  ),
  patched(MERGE as string, cm('m'), { data: { a: 'untracked' } }),
  applied(cm('m', 'fieldManager=late'), map('m', { a: 'late' })),
  // From client-side to server-side apply.
  written(
    'POST',
    `${MAPS}?fieldManager=kubectl-client-side-apply`,
    map(
      'csa',
      { a: '1', b: '2' },
      {
        annotations: {
          'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify(map('csa', { a: '1', b: '2' }, { annotations: {} })),
        },
      },
    ),
  ),
  applied(cm('csa', 'fieldManager=kubectl'), map('csa', { a: '2', b: '2' })),
  applied(cm('csa', 'fieldManager=kubectl'), map('csa', { a: '2' })),
  patched(MERGE as string, cm('csa', 'fieldManager=other'), { data: { b: '9' } }),
  applied(cm('csa', 'fieldManager=kubectl'), map('csa', { a: '2', b: '3' })),
  // More updates than are kept apart. Their names are in the order of their times, which are of seconds.
  ...Array.from({ length: 13 }, (_, index) => `u${index + 10}`).map((manager) =>
    patched(MERGE as string, cm('csa', `fieldManager=${manager}`), { data: { [manager]: 'x' } }),
  ),
  written('POST', `${MAPS}`, map('agent', { a: '1' }), 'program/1.2 (x)'),
  written('POST', `${MAPS}`, map('blank', { a: '1' }), '/1.2'),
  written(
    'POST',
    `${MAPS}`,
    map(
      'given',
      { a: '1' },
      {
        managedFields: [
          {
            manager: 'backup',
            operation: 'Update',
            apiVersion: 'v1',
            fieldsType: 'FieldsV1',
            fieldsV1: { 'f:data': { 'f:a': {} } },
          },
        ],
      },
    ),
    'restore/1',
  ),
  written('POST', `${MAPS}?fieldManager=x`, map('wrong', { a: '1' }, { managedFields: [{ manager: 'me' }] })),
  written('POST', `${MAPS}?fieldManager=x`, map('none', { a: '1' }, { managedFields: [] })),
  written('POST', `${MAPS}?fieldManager=x`, map('texts', { a: '1' }, { managedFields: ['x'] })),
  written('POST', `${MAPS}?fieldManager=x`, map('numbers', { a: '1' }, { managedFields: [{ manager: 1 }] })),
  written('POST', `/api/v1/namespaces?fieldManager=x`, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'applied-1' } }),
  applied(`/api/v1/namespaces/applied-2?fieldManager=x`, {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'applied-2', labels: { a: 'b' } },
  }),
  applied(`/api/v1/namespaces/applied-2?fieldManager=y`, {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'applied-2', labels: { a: 'c' } },
  }),
];

export const APPLY_REQUESTS: readonly Asked[] = [
  send('POST', '/api/v1/namespaces', { metadata: { name: NAMESPACE } }),
  ...options,
  ...lives,
  ...scales,
  ...maps,
];
