// The subresource `scale` of a kind that is a custom resource there and a definition here, as requests of differential.test.ts.
import type { ResourceDefinition } from 'watchmux/apiserver';
import { type Asked, type Memory, NAMESPACE, send } from './requests.ts';

const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const;
const SCHEMA = {
  type: 'object',
  properties: { spec: { ...open, properties: { replicas: { type: 'integer', maximum: 50 }, size: open } }, status: open },
} as const;
const SCALE = {
  specReplicasPath: '.spec.replicas',
  statusReplicasPath: '.status.replicas',
  labelSelectorPath: '.status.selector',
} as const;
const NAMES = { group: 'example.com', version: 'v1' } as const;

/** Two kinds: one whose schema knows the number, and one whose paths are deeper, and whose schema knows nothing. */
const KINDS = [
  { plural: 'fleets', kind: 'Fleet', scale: SCALE, schema: SCHEMA },
  {
    ...{ plural: 'swarms', kind: 'Swarm', schema: { type: 'object', properties: { spec: open, status: open } } },
    scale: {
      specReplicasPath: '.spec.size.count',
      statusReplicasPath: '.status.size.count',
      labelSelectorPath: '.spec.selector',
    },
  },
] as const;

export const SCALED: readonly ResourceDefinition[] = KINDS.map((each) => ({ ...NAMES, ...each, status: true }));

export const SCALED_CRDS: readonly object[] = KINDS.map(({ plural, kind, scale, schema }) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.${NAMES.group}` },
  spec: {
    ...{ group: NAMES.group, scope: 'Namespaced', names: { plural, kind } },
    versions: [
      {
        ...{ name: NAMES.version, served: true, storage: true, subresources: { status: {}, scale } },
        schema: { openAPIV3Schema: schema },
      },
    ],
  },
}));

const collection = (plural: string): string => `/apis/${NAMES.group}/${NAMES.version}/namespaces/${NAMESPACE}/${plural}`;
export const SCALED_PATHS: readonly string[] = KINDS.map(({ plural }) => collection(plural));
const [FLEETS, SWARMS] = SCALED_PATHS as [string, string];

const get = (path: string, accept?: string): Asked => ({
  title: `SCALE GET ${path}${accept ? ` ${accept}` : ''}`,
  method: 'GET',
  path,
  ...(accept && { headers: { accept } }),
});

function write(method: string, path: string, body: unknown, type: string = 'json'): Asked {
  const shown = typeof body === 'function' ? 'a version' : typeof body === 'string' ? body : JSON.stringify(body);
  return send(method, path, body, {
    title: `SCALE ${method} ${type} ${path.replace(`/apis/example.com/v1/namespaces/${NAMESPACE}`, '')} ${shown.slice(0, 150)}`,
    headers: { 'content-type': `application/${type}` },
  });
}

const object = (kind: string, name: string, more: object): object => ({
  ...{ apiVersion: `${NAMES.group}/${NAMES.version}`, kind, metadata: { name } },
  ...more,
});
const scale = (spec: unknown, metadata: object = { name: 'a' }, more: object = {}): object => ({
  ...{ apiVersion: 'autoscaling/v1', kind: 'Scale', metadata, spec },
  ...more,
});
const ofVersion =
  (shift: number, spec: object) =>
  ({ version }: Memory): string =>
    JSON.stringify(scale(spec, { name: 'a', resourceVersion: String(Number(version) + shift) }));

const A = `${FLEETS}/a/scale`;
const put = (body: unknown, path: string = A): Asked => write('PUT', path, body);
const [MERGE, JSON_PATCH] = ['merge-patch+json', 'json-patch+json'] as const;
const patch = (body: unknown, type: string = MERGE, path: string = A): Asked => write('PATCH', path, body, type);

const reads: readonly Asked[] = [
  get(A),
  get(A, 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io'),
  get(A, 'application/json;as=Table;v=v1;g=meta.k8s.io'),
  get(`${A}?resourceVersion=0`),
  get(`${FLEETS}/none/scale`),
  get(`${FLEETS}/gone/scale`),
];

const puts: readonly Asked[] = [
  put(scale({ replicas: 3 }, { name: 'a', namespace: NAMESPACE })),
  put({ metadata: { name: 'a' }, spec: { replicas: 4 } }),
  put(ofVersion(0, { replicas: 5 })),
  put(ofVersion(-1, { replicas: 6 })),
  put(scale({ replicas: 4 }, { name: 'a', resourceVersion: 'abc' })),
  put(scale({ replicas: 4 }, { name: 'a', uid: 'x' })),
  put(scale({ replicas: 4 }, { name: 'b' })),
  put(scale({ replicas: 4 }, {})),
  put(scale({ replicas: 4 }, { name: 'a', namespace: 'other' })),
  ...[-1, '3', 2.5, true, 2 ** 31, [], {}, 99].map((replicas) => put(scale({ replicas }))),
  ...[{ replicas: null }, {}, undefined, null, [], 'x'].map((spec) => put(scale(spec))),
  put(scale({ replicas: 5 }, { name: 'a' }, { status: { replicas: 100, selector: 'no' } })),
  ...[{ replicas: 'x' }, { selector: 1 }, 3].map((status) => put(scale({ replicas: 5 }, { name: 'a' }, { status }))),
  put(scale({ replicas: 5 }, { name: 'a', labels: { '': 'x y' }, annotations: { z: 'z' }, finalizers: ['q/w'] })),
  put(scale({ replicas: -5 }, { name: 'a', labels: { '': 'x y' } })),
  put(scale({ replicas: 5 }, { name: 'a', deletionTimestamp: '2030-01-02T03:04:05Z' })),
  put({ apiVersion: 'example.com/v1', kind: 'Fleet', metadata: { name: 'a' }, spec: { replicas: 3 } }),
  put(scale({ replicas: 6, foo: 1 }, { name: 'a', lables: {} }, { zz: 1 })),
  put(scale({ replicas: 6, foo: 1 }, { name: 'a', lables: {} }, { zz: 1 }), `${A}?fieldValidation=Strict`),
  put(scale({ replicas: 7 }), `${A}?dryRun=All`),
  put(scale({ replicas: 7 }), `${A}?dryRun=Some`),
  put('{"metadata":{"name":"a"},"spec":{"replicas":2.0}}', `${A}?dryRun=All`),
  put(scale({ replicas: 1 }, { name: 'none' }), `${FLEETS}/none/scale?dryRun=All`),
  put(scale({ replicas: 1 }, { name: 'gone' }), `${FLEETS}/gone/scale`),
  write('POST', A, scale({ replicas: 1 })),
  write('DELETE', A, {}),
  get(`${FLEETS}/a`),
];

const patches: readonly Asked[] = [
  ...[8, -1, '8', 2.5, null, 99].map((replicas) => patch({ spec: { replicas } })),
  ...[{ spec: null }, {}, { status: { replicas: 50 } }, { spec: { foo: 1 } }, { kind: 'Other' }].map((each) => patch(each)),
  ...[{ name: 'b' }, { labels: { q: 'r' } }, { resourceVersion: '1' }, { resourceVersion: 'abc' }].map((metadata) =>
    patch({ metadata, spec: { replicas: 9 } }),
  ),
  patch('[]'),
  patch([{ op: 'replace', path: '/spec/replicas', value: 11 }], JSON_PATCH),
  patch([{ op: 'test', path: '/spec/replicas', value: 3 }], JSON_PATCH),
  patch([{ op: 'replace', path: '/spec/replicas', value: '11' }], JSON_PATCH),
  patch([{ op: 'remove', path: '/spec/replicas' }], JSON_PATCH),
  patch({ spec: { replicas: 12 } }, 'strategic-merge-patch+json'),
  patch({ spec: { foo: 1 } }, MERGE, `${A}?fieldValidation=Strict`),
  patch({}, MERGE, `${FLEETS}/none/scale`),
  patch([{ op: 'test', path: '/spec/replicas', value: 3 }], JSON_PATCH, `${FLEETS}/none/scale`),
  patch({ spec: { replicas: 1 } }, MERGE, `${FLEETS}/none/scale`),
  patch({ spec: { replicas: 1 } }, MERGE, `${FLEETS}/gone/scale`),
  get(`${FLEETS}/none`),
];

/** The numbers of an object, however it is written. */
const objects: readonly Asked[] = [
  write('POST', SWARMS, object('Swarm', 's', { spec: { size: { count: 1, other: 2 } } })),
  ...[-1, 'x', 2.5, 3_000_000_000, {}].flatMap((count) => [
    write('POST', SWARMS, object('Swarm', 'bad', { spec: { size: { count } } })),
    patch({ spec: { size: { count } } }, MERGE, `${SWARMS}/s`),
    patch({ status: { size: { count } } }, MERGE, `${SWARMS}/s/status`),
  ]),
  patch({ spec: { selector: 5 } }, MERGE, `${SWARMS}/s`),
  patch({ spec: { selector: { matchLabels: { a: 'b' } } } }, MERGE, `${SWARMS}/s`),
  patch({ spec: { size: 'x', selector: 'a=b' } }, MERGE, `${SWARMS}/s`),
  patch({ spec: { selector: 'a=b' } }, MERGE, `${SWARMS}/s`),
  patch({ status: { size: { count: 3 } } }, MERGE, `${SWARMS}/s/status`),
  get(`${SWARMS}/s/scale`),
  put(scale({ replicas: 4 }, { name: 's' }), `${SWARMS}/s/scale`),
  get(`${SWARMS}/s`),
];

export const SCALE_REQUESTS: readonly Asked[] = [
  write('POST', FLEETS, object('Fleet', 'a', { metadata: { name: 'a', labels: { a: 'b' } }, spec: { replicas: 2 } })),
  write('POST', FLEETS, object('Fleet', 'none', { spec: { x: 1 } })),
  get(A),
  patch({ status: { replicas: 7, selector: 'a=b' } }, MERGE, `${FLEETS}/a/status`),
  ...reads,
  ...puts,
  ...patches,
  ...objects,
];
