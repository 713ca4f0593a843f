// Writes with fields that are unknown or sent twice, as requests of differential.test.ts: of kinds of Kubernetes' own, and of one that
// is a custom resource there and a definition here, with the same schema.
import type { ResourceDefinition } from 'watchmux/apiserver';
import { stringify } from 'yaml';
import { type Asked, MAPS, type Memory, NAMESPACE, send } from './requests.ts';

const text = { type: 'string' };
const one = { type: 'object', properties: { a: text } };

/** A schema as a CustomResourceDefinition takes it. */
const SCHEMA = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        count: { type: 'integer', minimum: 1 },
        map: { type: 'object', additionalProperties: one },
        items: { type: 'array', items: one },
        nullable: { ...one, nullable: true },
        port: { 'x-kubernetes-int-or-string': true },
        any: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, properties: { known: one } },
        anys: { type: 'array', 'x-kubernetes-preserve-unknown-fields': true, items: one },
        template: { type: 'object', 'x-kubernetes-embedded-resource': true, properties: { spec: one } },
      },
    },
    status: { type: 'object', properties: { done: { type: 'boolean' } } },
  },
} as const;

const [group, version, plural, kind] = ['example.com', 'v1', 'meals', 'Meal'] as const;

export const MEALS: ResourceDefinition = { group, version, plural, kind, status: true, schema: SCHEMA };

export const MEALS_CRD = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { plural, kind },
    versions: [{ name: version, served: true, storage: true, subresources: { status: {} }, schema: { openAPIV3Schema: SCHEMA } }],
  },
} as const;

export const MEALS_PATH: string = `/apis/${group}/${version}/namespaces/${NAMESPACE}/${plural}`;

const PATCHES = { merge: 'application/merge-patch+json', json: 'application/json-patch+json' } as const;
const STRATEGIC = 'application/strategic-merge-patch+json';

const meal = (spec: object, more: object = {}): object => ({
  ...{ apiVersion: `${group}/${version}`, kind, metadata: { name: 'm' }, spec },
  ...more,
});

/** The object that is there, with other members. A custom resource can be replaced only by who names its version. */
const there =
  (spec: object, more: object = {}) =>
  ({ version }: Memory): string =>
    JSON.stringify({ ...meal(spec, more), metadata: { name: 'there', resourceVersion: version } });

const DEEP = {
  map: { k: { a: 'a', b: 1 }, 'x.y/z': { b: 2 } },
  items: [{ a: 'a' }, { b: 1 }],
  nullable: null,
  port: 80,
  any: { what: { ever: 1 }, known: { a: 'a', b: 1 } },
  anys: [{ b: 1 }],
  template: { apiVersion: 'v1', kind: 'X', metadata: { name: 'x' }, spec: { b: 1 }, c: 1 },
};
const TWICE = `{"apiVersion":"${group}/${version}","kind":"${kind}","metadata":{"name":"t","name":"m"},"spec":{"count":1,"count":2,"count":3,"items":[{"a":"x","a":"y"}]}}`;
const METADATA = {
  name: 'm',
  lables: {},
  Labels: {},
  selfLink: 'x',
  ownerReferences: [{ apiVersion: 'v1', kind: 'X', name: 'x', uid: 'y', foo: 1 }],
};

/** A write that changes nothing. Its title says how, and whether what is unknown is in the answer of a server that keeps it. */
function write(mode: string, what: string, [method, path, body, type]: readonly [string, string, unknown, string?]): Asked {
  return send(method, `${path}?dryRun=All&fieldValidation=${mode}`, body, {
    title: `FIELDS ${mode} ${what}`,
    headers: { 'content-type': type ?? 'application/json' },
  });
}

const inMode = (mode: string): Asked[] => [
  write(mode, 'keep: misspelt', ['POST', MEALS_PATH, meal({ count: 1, colour: 'red', zz: 1 }, { extra: null })]),
  write(mode, 'keep: deep', ['POST', MEALS_PATH, meal(DEEP)]),
  write(mode, 'known', ['POST', MEALS_PATH, meal({ count: 1, items: [{ a: 'a' }] })]),
  write(mode, 'keep: metadata', ['POST', MEALS_PATH, meal({}, { metadata: METADATA })]),
  write(mode, 'twice', ['POST', MEALS_PATH, TWICE]),
  write(mode, 'keep: not ASCII', ['POST', MEALS_PATH, meal({ ä日: 1, 'a.b': 1 })]),
  write(mode, 'invalid', ['POST', MEALS_PATH, meal({ count: 0, zz: 1 })]),
  write(mode, 'there already', ['POST', MEALS_PATH, meal({ zz: 1 }, { metadata: { name: 'there' } })]),
  write(mode, 'in no namespace', ['POST', MEALS_PATH.replace(NAMESPACE, 'nowhere'), meal({ zz: 1 })]),
  write(mode, 'keep: PUT', ['PUT', `${MEALS_PATH}/there`, there({ zz: 1 })]),
  write(mode, 'PUT of what is not there', ['PUT', `${MEALS_PATH}/m`, meal({ zz: 1 })]),
  write(mode, 'keep: PUT of a status', ['PUT', `${MEALS_PATH}/there/status`, there({ zz: 1 }, { status: { dome: 1 } })]),
  write(mode, 'keep: merge patch', ['PATCH', `${MEALS_PATH}/there`, { spec: { zz: 1, yy: null } }, PATCHES.merge]),
  write(mode, 'merge patch of metadata', ['PATCH', `${MEALS_PATH}/there`, { metadata: { lables: {} } }, PATCHES.merge]),
  write(mode, 'merge patch, twice', ['PATCH', `${MEALS_PATH}/there`, '{"spec":{"count":1,"count":2}}', PATCHES.merge]),
  write(mode, 'keep: JSON patch', ['PATCH', `${MEALS_PATH}/there`, [{ op: 'add', path: '/spec/zz', value: 1 }], PATCHES.json]),
  write(mode, 'an operation', [
    'PATCH',
    `${MEALS_PATH}/there`,
    [{ op: 'add', path: '/spec/count', value: 1, foo: 1 }],
    PATCHES.json,
  ]),
  write(mode, 'an operation, twice', [
    'PATCH',
    `${MEALS_PATH}/there`,
    '[{"op":"add","path":"/spec/count","value":1,"value":2}]',
    PATCHES.json,
  ]),
  write(mode, 'patch of what is not there', ['PATCH', `${MEALS_PATH}/m`, { spec: { zz: 1 } }, PATCHES.merge]),
  write(mode, 'keep: ConfigMap', ['POST', MAPS, { metadata: { name: 'm', lables: {} }, colour: 'red', datum: {} }]),
  write(mode, 'ConfigMap, twice', ['POST', MAPS, '{"metadata":{"name":"m"},"data":{"a":"b","a":"c"}}']),
  write(mode, 'keep: strategic patch', ['PATCH', `${MAPS}/a`, { colour: 'red' }, STRATEGIC]),
  write(mode, 'keep: Namespace', [
    'POST',
    '/api/v1/namespaces',
    { metadata: { name: 'm' }, spec: { finalizers: ['kubernetes'], foo: 1 } },
  ]),
  write(mode, 'keep: Lease', [
    'POST',
    `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`,
    { metadata: { name: 'm' }, spec: { holder: 'b' }, status: {} },
  ]),
];

/** The warnings for finalizers that a custom resource gets, and other kinds do not. */
const ofFinalizers = (): Asked[] => {
  const path = `${MEALS_PATH}/held`;
  const held = (finalizers: readonly string[] | null, more: object = {}): object => ({ metadata: { finalizers, ...more } });
  const named = (name: string, ...finalizers: string[]): object => meal({}, { metadata: { name, finalizers } });
  const replaced = ({ version }: Memory): string =>
    JSON.stringify(
      meal({ count: 2 }, { metadata: { name: 'held', resourceVersion: version, finalizers: ['mine', 'put', 'a/b'] } }),
    );
  const apply = 'application/apply-patch+yaml';
  const ofKind = `"apiVersion":"${group}/${version}","kind":"${kind}"`;
  const parts: readonly (readonly [method: string, path: string, body: unknown, type?: string, more?: string])[] = [
    ['POST', MEALS_PATH, named('held', 'mine', 'x.y', 'a.b/c', 'kubernetes', 'orphan', 'aa', 'mine', 'foreground.Deletion')],
    ['POST', MEALS_PATH, named('held', 'zz')],
    ['POST', `${MEALS_PATH}?dryRun=All`, named('dry', 'mine')],
    ['POST', `${MEALS_PATH}?fieldValidation=Ignore`, named('refused', 'mine', 'a b')],
    [
      'POST',
      `${MEALS_PATH}?dryRun=All`,
      `{${ofKind},"metadata":{"name":"dry","lables":1,"finalizers":["mine"]},"spec":{"count":1},"spec":{"count":1}}`,
    ],
    ['PUT', path, replaced],
    ['PUT', path, replaced],
    ['PATCH', path, held(['mine', 'merged', 'put']), PATCHES.merge],
    ['PATCH', `${path}?dryRun=All`, [{ op: 'add', path: '/metadata/finalizers/-', value: 'dry' }], PATCHES.json],
    ['PATCH', path, [{ op: 'add', path: '/metadata/finalizers/-', value: 'added' }], PATCHES.json],
    ['PATCH', path, held(['mine', 'added']), PATCHES.merge],
    ['PATCH', path, held(['other'], { resourceVersion: '1' }), PATCHES.merge],
    ['PATCH', path, held(['other'], { labels: { 'a b': 'c' } }), PATCHES.merge, ' a wrong label'],
    ['PATCH', `${path}/status`, { ...held(['other']), status: { done: true } }, PATCHES.merge],
    ['PATCH', `${path}?fieldManager=f&force=true`, named('held', 'applied', 'mine'), apply],
    ['PATCH', `${MEALS_PATH}/applied?fieldManager=f&dryRun=All`, named('applied', 'applied'), apply],
    ['DELETE', path, {}],
    ['PATCH', path, held(['mine', 'late']), PATCHES.merge, ' a late finalizer'],
    ['PATCH', path, held(null), PATCHES.merge],
    [
      'POST',
      `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases?dryRun=All`,
      { metadata: { name: 'held', finalizers: ['mine'] } },
    ],
  ];
  return parts.map(([method, at, body, type = 'application/json', more = ''], index) =>
    send(method, at, body, { title: `FINALIZERS ${index} ${method} ${at}${more}`, headers: { 'content-type': type } }),
  );
};

/** Writes that do not say of what kind they are. For Kubernetes' own kinds, the path is enough. */
const untyped = (): Asked[] => {
  const paths = [
    ...[`POST ${MEALS_PATH}`, `POST ${MEALS_PATH}?fieldValidation=Strict`, `PUT ${MEALS_PATH}/there`],
    ...[`PUT ${MEALS_PATH}/nowhere`, `PUT ${MEALS_PATH}/there/status`],
  ];
  const types = [{}, { kind }, { apiVersion: `${group}/${version}` }, { apiVersion: `${group}/${version}`, kind: '' }];
  const bodies = types.map((type) => ({ ...type, metadata: { name: 'there' }, zz: 1 }));
  const asked = paths.flatMap((path) => {
    const [method = '', at = ''] = path.split(' ');
    return bodies.flatMap((body) => [
      send(method, at, body),
      send(method, at, stringify(body), { headers: { 'content-type': 'application/yaml' } }),
    ]);
  });
  const own = [{ kind: 'ConfigMap' }, { apiVersion: 'v1' }].map((type) =>
    send('POST', `${MAPS}?dryRun=All`, { ...type, metadata: { name: 'untyped' } }),
  );
  return [...asked, ...own].map((each) => ({ ...each, title: `UNTYPED ${each.title}` }));
};

/** Members of metadata of other types, and entries of managedFields that cannot be read. */
const mistyped = (): Asked[] => {
  const entries = [null, 'x', { manager: 5 }, { time: 'x' }, ...[5, 'x', [], {}].map((fieldsV1) => ({ fieldsV1 }))];
  const owner = { apiVersion: 'v1', kind: 'X', name: 'x', uid: 'y' };
  const owners = ['x', 5, [], { name: 5 }, { uid: {} }, { controller: 'x' }, { blockOwnerDeletion: 1 }].map((each) =>
    typeof each === 'object' && !Array.isArray(each) ? { ...owner, ...each } : each,
  );
  const metadata: readonly object[] = [
    ...entries.map((each) => ({ managedFields: [each] })),
    ...owners.map((each) => ({ ownerReferences: [owner, each] })),
    ...[1e300, -1e30, 1.5, 'x', {}].flatMap((each) => [{ generation: each }, { deletionGracePeriodSeconds: each }]),
  ];
  return metadata.flatMap((more) =>
    [
      send('POST', `${MEALS_PATH}?dryRun=All`, meal({ count: 1 }, { metadata: { name: 'm', ...more } })),
      send('POST', `${MAPS}?dryRun=All`, { metadata: { name: 'm', ...more } }),
      send('PATCH', `${MEALS_PATH}/there?dryRun=All`, { metadata: more }, { headers: { 'content-type': PATCHES.merge } }),
    ].map((each) => ({ ...each, title: `MISTYPED ${each.title}` })),
  );
};

export const FIELD_REQUESTS: readonly Asked[] = [
  send('POST', MEALS_PATH, meal({ count: 1 }, { metadata: { name: 'there' } })),
  ...['Strict', 'Warn', 'Ignore', ''].flatMap(inMode),
  ...['strict', 'Nonsense'].flatMap((mode) => [
    write(mode, 'create', ['POST', MEALS_PATH, meal({})]),
    write(mode, 'update', ['PUT', `${MEALS_PATH}/there`, meal({}, { metadata: { name: 'there' } })]),
    write(mode, 'patch', ['PATCH', `${MEALS_PATH}/there`, {}, PATCHES.merge]),
  ]),
  ...['there', 'nowhere'].map((name): Asked => {
    const path = `${MEALS_PATH}/${name}/nope`;
    return { title: `WORDS a part that no object has: ${name}`, method: 'GET', path };
  }),
  ...ofFinalizers(),
  ...untyped(),
  ...mistyped(),
];
