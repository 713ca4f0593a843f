// CustomResourceDefinitions at run time, as steps for a kube-apiserver and ours: right ones, wrong ones, names that others have, columns,
// versions, rules, and deletion.
import { ASKED, REFUSED, RULED as RULED_MORE, TAKEN } from './rules.ts';

/** One request, or the same one until its answer is as told. */
export interface Step {
  readonly title?: string;
  readonly method?: string;
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Asked again until this is part of the answer's text. */
  readonly until?: string | number;
  /** Whether the managers of objects are compared, too. */
  readonly managers?: boolean;
  /** Reads only this of the answer. */
  readonly of?: (body: Json) => unknown;
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into what came over the wire
type Json = any;

export const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const GROUP = 'run.example.com';
const ROOT = `/apis/${GROUP}`;
const MERGE = { 'content-type': 'application/merge-patch+json' };
const TABLE = { accept: 'application/json;as=Table;g=meta.k8s.io;v=v1' };
const AGGREGATED = { accept: 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList' };
const OPEN = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

const schemaOf = (properties: object): object => ({ schema: { openAPIV3Schema: { type: 'object', properties } } });
const VERSION = { name: 'v1', served: true, storage: true, ...schemaOf({ spec: OPEN, status: OPEN }) };

/** A definition. */
function crd(plural: string, kind: string, spec: object = {}, metadata: object = {}): Json {
  return {
    ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
    metadata: { name: `${plural}.${GROUP}`, ...metadata },
    spec: { group: GROUP, scope: 'Namespaced', names: { plural, kind }, versions: [VERSION], ...spec },
  };
}

const version = (more: object): object => ({ versions: [{ ...VERSION, ...more }] });
const post = (body: Json, title?: string): Step => ({ method: 'POST', path: CRDS, body, ...(title && { title }) });
const at = (plural: string): string => `${CRDS}/${plural}.${GROUP}`;
const settled = (plural: string, until: string = '"InitialNamesAccepted"'): Step => ({ path: at(plural), until });
const patch = (path: string, body: object): Step => ({ method: 'PATCH', path, body, headers: MERGE });

const column = (name: string, type: string, jsonPath: string, more: object = {}): object => ({ name, type, jsonPath, ...more });
const COLUMNS = [
  column('Size', 'integer', '.spec.size'),
  column('Text', 'string', '.spec.size', { priority: 1, format: 'int32' }),
  column('Ratio', 'number', '.spec.ratio', { description: 'Of both.' }),
  column('Ready', 'string', '.status.conditions[?(@.type=="Ready")].status'),
  column('Any', 'string', '.spec.any'),
  column('List', 'string', '.spec.list[*]'),
  column('Last', 'string', '.spec.list[-1:]'),
  column('Third', 'string', '.spec.list[2]'),
  column('On', 'boolean', '.spec.on'),
  column('Since', 'date', '.spec.since'),
  column('Quoted', 'string', ".metadata.annotations['a\\.b/c']"),
  column('Deep', 'string', '..inner'),
  column('Age', 'date', '.metadata.creationTimestamp'),
];

const GADGET_SPEC = {
  size: { type: 'integer' },
  color: { type: 'string' },
  on: { type: 'boolean' },
  replicas: { type: 'integer' },
};
const GADGETS = crd('gadgets', 'Gadget', {
  names: { plural: 'gadgets', kind: 'Gadget', shortNames: ['gad', 'gdt'], categories: ['all', 'things'] },
  versions: [
    {
      ...VERSION,
      ...schemaOf({ spec: { ...OPEN, properties: GADGET_SPEC }, status: OPEN }),
      subresources: { status: {}, scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' } },
      additionalPrinterColumns: COLUMNS,
      selectableFields: [{ jsonPath: '.spec.color' }, { jsonPath: '.spec.size' }, { jsonPath: '.spec.on' }],
    },
    { ...VERSION, name: 'v2beta1', storage: false, ...schemaOf({ spec: OPEN, status: OPEN }) },
    { ...VERSION, name: 'v2', storage: false, served: false },
  ],
});

const IN = (v: string): string => `${ROOT}/${v}/namespaces/default/gadgets`;
const gadget = (name: string, spec: object, more: object = {}): Json => ({
  ...{ apiVersion: `${GROUP}/v1`, kind: 'Gadget', metadata: { name, ...more }, spec },
});

const FULL = { size: 3, ratio: 0.5, color: 'red', on: true, since: '2026-01-02T03:04:05Z', replicas: 2 };

const DISCOVERY: readonly Step[] = [
  { path: ROOT },
  { path: `${ROOT}/v1` },
  { path: `${ROOT}/v2beta1` },
  { path: `${ROOT}/v2` },
  {
    path: '/apis',
    headers: AGGREGATED,
    of: ({ items }) => items?.filter((each: Json) => each.metadata.name === GROUP),
  },
];

/** What is served by a definition. */
const SERVED: readonly Step[] = [
  { path: `${ROOT}/v1/gadgets` },
  post(GADGETS),
  post(GADGETS, 'again'),
  settled('gadgets'),
  { path: `${ROOT}/v1`, until: '"gadgets"' },
  ...DISCOVERY,
  { path: `${IN('v1')}`, until: 200 },
  { method: 'POST', path: IN('v1'), body: gadget('a', FULL, { annotations: { 'a.b/c': 'noted' } }) },
  { method: 'POST', path: IN('v1'), body: gadget('b', { any: { b: 1, a: '<x>' }, list: ['x', 'y', 'z'], since: 'never' }) },
  { method: 'POST', path: IN('v1'), body: gadget('c', { any: 0.00001, list: [], in: { inner: 'deep' } }) },
  { method: 'POST', path: IN('v1'), body: gadget('d', { any: [1, null, 'x'], list: 'none', ratio: 3 }) },
  {
    method: 'POST',
    path: IN('v2beta1'),
    body: { ...gadget('e', { size: 'any', any: 123456789012 }), apiVersion: `${GROUP}/v2beta1` },
  },
  { method: 'POST', path: IN('v2beta1'), body: gadget('f', {}), title: 'in another version than it says' },
  { method: 'POST', path: IN('v2'), body: gadget('f', {}), title: 'in a version that is not served' },
  patch(`${IN('v1')}/a/status`, {
    status: {
      replicas: 1,
      conditions: [
        { type: 'X', status: 'no' },
        { type: 'Ready', status: 'True' },
      ],
    },
  }),
  { path: `${IN('v1')}/a` },
  { path: `${IN('v2beta1')}/a` },
  { path: `${IN('v1')}/e` },
  { path: IN('v2beta1') },
  { path: IN('v1'), headers: TABLE },
  { path: IN('v2beta1'), headers: TABLE },
  { path: `${IN('v1')}/a/scale` },
  patch(`${IN('v1')}/a/scale`, { spec: { replicas: 5 } }),
  { path: `${IN('v2beta1')}/a/scale` },
  { path: `${IN('v2beta1')}/a/status` },
  { path: `${IN('v1')}?fieldSelector=spec.color%3Dred`, of: names },
  { path: `${IN('v1')}?fieldSelector=spec.size%3D3`, of: names },
  { path: `${IN('v1')}?fieldSelector=spec.on%3Dtrue`, of: names },
  { path: `${IN('v1')}?fieldSelector=spec.color%3D`, of: names },
  { path: `${IN('v1')}?fieldSelector=spec.any%3Dred` },
  {
    path: `${ROOT}/v1/gadgets?watch=1&timeoutSeconds=1`,
    of: (lines: Json) => lines.map(({ type, object }: Json) => [type, object.apiVersion]),
  },
  {
    path: `${ROOT}/v2beta1/gadgets?watch=1&timeoutSeconds=1`,
    of: (lines: Json) => lines.map(({ type, object }: Json) => [type, object.apiVersion]),
  },
];

function names({ items }: Json): unknown {
  return items?.map(({ metadata }: Json) => metadata.name);
}

/** Definitions that are refused. */
/** Rules that could only fail. */
const RULES: readonly (string | object)[] = [
  ...['self.nope == 1', 'self.n == "a"', 'self.d + 1 > 2.0', 'has(self.open.a)', 'self.t == "2020"', 'self.l.all(x, x == 1)'],
  ...[
    'self.s.foo()',
    'unknown == 1',
    'self.s in [1, 2]',
    'self.l["a"] == "a"',
    'self.s.nope',
    'self.n',
    '!self.n',
    'self.m[1] == "x"',
  ],
  { rule: 'true', messageExpression: 'self.n' },
  { rule: 'oldSelf.n == self.n', optionalOldSelf: true },
  { rule: 'true', optionalOldSelf: true },
];
const RULED = {
  ...{
    n: { type: 'integer' },
    d: { type: 'number' },
    s: { type: 'string' },
    t: { type: 'string', format: 'date-time' },
    open: OPEN,
  },
  ...{ l: { type: 'array', items: { type: 'string' } }, m: { type: 'object', additionalProperties: { type: 'string' } } },
};
const ruled = (rule: string | object): object => {
  const rules = [typeof rule === 'string' ? { rule } : rule];
  return schemaOf({ spec: { type: 'object', properties: RULED, 'x-kubernetes-validations': rules } });
};

const ruledMore = (rules: readonly object[]): object =>
  schemaOf({ spec: { type: 'object', properties: RULED_MORE, 'x-kubernetes-validations': rules } });

/** A kube-apiserver takes no more rules of their cost in one definition. */
const RULES_OF_ONE = 25;

/** Definitions with rules, each with an object that they are asked of; which rule is told by its message. */
const ASKING: readonly Step[] = Array.from({ length: Math.ceil(TAKEN.length / RULES_OF_ONE) }, (_, no): readonly Step[] => {
  const [plural, kind, first] = [`asked${no}s`, `Asked${no}`, no * RULES_OF_ONE];
  const rules = TAKEN.slice(first, first + RULES_OF_ONE).map((rule, at) => ({ rule, message: `rule ${first + at}` }));
  const path = `${ROOT}/v1/namespaces/default/${plural}`;
  const body = { apiVersion: `${GROUP}/v1`, kind, metadata: { name: 'a' }, spec: ASKED };
  return [
    post(crd(plural, kind, version(ruledMore(rules))), `rules from ${first}`),
    settled(plural),
    { path, until: 200 },
    { method: 'POST', path, body, title: `rules from ${first}` },
    { method: 'DELETE', path: at(plural), of: () => undefined },
  ];
}).flat();

const WORD = { type: 'string' };
const PART = { type: 'object', properties: { word: WORD } };
const NULLED = crd('nulleds', 'Nulled', {
  versions: [
    {
      ...VERSION,
      ...schemaOf({
        spec: {
          type: 'object',
          properties: {
            ...{ word: WORD, part: PART, either: { 'x-kubernetes-int-or-string': true }, open: OPEN },
            ...{ may: { ...WORD, nullable: true }, given: { ...WORD, default: 'x' }, whole: { ...PART, default: { word: 'z' } } },
            ...{ words: { type: 'array', items: WORD }, parts: { type: 'array', items: PART } },
            map: { type: 'object', additionalProperties: WORD },
          },
        },
      }),
    },
  ],
});

/** Nulls: removed from what is sent, unless it is applied. */
const NULLS: readonly Step[] = [
  post(NULLED),
  settled('nulleds'),
  { path: `${ROOT}/v1/namespaces/default/nulleds`, until: 200 },
  ...[
    ...[null, { word: null }, { part: null }, { part: { word: null } }, { words: null }, { words: [null] }, { parts: [null] }],
    ...[{ parts: [{ word: null }] }, { may: null }, { given: null }, { whole: null }, { whole: { word: null } }, { map: null }],
    ...[{ map: { a: null } }, { either: null }, { open: null }, { open: { a: null } }],
  ].flatMap((spec, no): readonly Step[] => {
    const [path, title] = [`${ROOT}/v1/namespaces/default/nulleds`, `null: ${JSON.stringify(spec)}`];
    const nulled = (name: string): Json => ({ apiVersion: `${GROUP}/v1`, kind: 'Nulled', metadata: { name }, spec });
    const headers = { 'content-type': 'application/apply-patch+yaml' };
    const apply = {
      method: 'PATCH',
      headers,
      path: `${path}/a${no}?fieldManager=one`,
      body: nulled(`a${no}`),
      title,
      managers: true,
    };
    const merge = { ...patch(`${path}/p${no}?fieldManager=one`, { spec }), title };
    return [{ method: 'POST', path: `${path}?fieldManager=one`, body: nulled(`p${no}`), title }, merge, apply, apply];
  }),
  { method: 'DELETE', path: at('nulleds'), of: () => undefined },
];

/** The metadata of an object within an object. */
const WITHIN: readonly Step[] = [
  post(crd('holders', 'Holder', version(schemaOf({ spec: { ...OPEN, 'x-kubernetes-embedded-resource': true } })))),
  settled('holders'),
  { path: `${ROOT}/v1/namespaces/default/holders`, until: 200 },
  ...[
    ...[{}, { lables: {} }, { labels: { 'a b': 'x' } }, { labels: { a: 'b c' } }, { annotations: { 'a b': 'x' } }],
    ...[{ name: 'a/b' }, { name: '..' }, { name: 'UP per' }, { namespace: 'UP' }, { namespace: '' }, { generateName: 'a%b' }],
    ...[{ finalizers: ['x', 'a b'] }, { ownerReferences: [{}] }, { generation: -1 }, { creationTimestamp: null }],
    ...[5, [], { annotations: { a: null } }],
    { ownerReferences: [{ apiVersion: 'v1', kind: 'A', name: 'a', uid: 'u', colour: 1 }] },
    { ...{ uid: 'x', resourceVersion: '7', generation: 3 }, deletionTimestamp: '2026-01-01T00:00:00Z' },
  ].flatMap((metadata, no): readonly Step[] =>
    ['Warn', 'Strict'].map((validation) => ({
      ...{ method: 'POST', path: `${ROOT}/v1/namespaces/default/holders?fieldValidation=${validation}` },
      body: {
        ...{ apiVersion: `${GROUP}/v1`, kind: 'Holder', metadata: { name: `${validation.toLowerCase()}${no}` } },
        spec: { apiVersion: 'v1', kind: 'Pod', metadata },
      },
      title: `${validation} within: ${JSON.stringify(metadata)}`,
    })),
  ),
  { method: 'DELETE', path: at('holders'), of: () => undefined },
];

const STATUS = {
  ...{ type: 'object', required: ['phase'] },
  properties: {
    ...{ phase: { ...WORD, enum: ['A', 'B'] }, count: { type: 'integer', maximum: 5 }, as: { ...WORD, pattern: '^a+$' } },
    parts: { type: 'array', maxItems: 2, items: { type: 'object', required: ['word'], properties: { word: WORD } } },
    set: { type: 'array', items: WORD, 'x-kubernetes-list-type': 'set' },
    ruled: { type: 'object', properties: { a: { type: 'integer' } }, 'x-kubernetes-validations': [{ rule: 'self.a > 1' }] },
  },
};
/** `isTight`: what is stored does not match it any more. */
const tightened = (isTight: boolean): object => {
  const set = { type: 'array', items: WORD, maxItems: 9, 'x-kubernetes-list-type': isTight ? 'set' : 'atomic' };
  const word = isTight ? { ...WORD, minLength: 3, maxLength: 9 } : WORD;
  const rule = { 'x-kubernetes-validations': [{ rule: "has(self.set) || self.word != 'x'" }] };
  const spec = { type: 'object', properties: { word, set }, ...(isTight && { required: ['word'], ...rule }) };
  const schema = { type: 'object', properties: { spec, status: STATUS }, ...(isTight && { required: ['spec'] }) };
  return version({ schema: { openAPIV3Schema: schema }, subresources: { status: {} } });
};

/** At `/status`, only the status has to match the schema, and messages name the place within it; rules are asked of everything. */
const STATUSES: readonly Step[] = [
  post(crd('tighteneds', 'Tightened', tightened(false))),
  settled('tighteneds'),
  { path: `${ROOT}/v1/namespaces/default/tighteneds`, until: 200 },
  ...Object.entries({ none: undefined, bad: { word: 'x', set: ['b', 'b'] }, empty: {} }).map(
    ([name, spec]): Step => ({
      ...{ method: 'POST', path: `${ROOT}/v1/namespaces/default/tighteneds` },
      body: { apiVersion: `${GROUP}/v1`, kind: 'Tightened', metadata: { name }, spec },
    }),
  ),
  patch(at('tighteneds'), { spec: tightened(true) }),
  { ...patch(`${ROOT}/v1/namespaces/default/tighteneds/none`, { metadata: { labels: { a: 'b' } } }), until: 422 },
  ...['none', 'bad', 'empty'].flatMap((name) =>
    [
      ...[{ phase: 'A' }, { phase: 'C' }, { count: 6 }, 5, [], {}, { phase: 'A', parts: [{}, {}, { word: 1 }] }],
      ...[
        { phase: 'A', set: ['x', 'x'] },
        { phase: 'A', as: 'b' },
        // Of the empty one, a rule fails anyway, and upstream tells of two in any order.
        ...(name === 'empty' ? [] : [{ phase: 'A', ruled: { a: 0 } }]),
        { phase: 'A', ruled: 'x' },
      ],
      { phase: 'A', count: 'x', ruled: { a: 0 } },
    ].map(
      (status): Step => ({
        ...{ method: 'PATCH', headers: { 'content-type': 'application/json-patch+json' } },
        path: `${ROOT}/v1/namespaces/default/tighteneds/${name}/status?dryRun=All`,
        body: [{ op: 'add', path: '/status', value: status }],
        title: `a status of ${name}: ${JSON.stringify(status)}`,
      }),
    ),
  ),
  { method: 'DELETE', path: at('tighteneds'), of: () => undefined },
];

const WRONG: readonly Step[] = [
  ...REFUSED.map((rule) => post(crd('x', 'X', version(ruledMore([{ rule }]))), `a rule: ${rule}`)),
  ...RULES.map((rule) => post(crd('x', 'X', version(ruled(rule))), `a rule: ${JSON.stringify(rule)}`)),
  {
    ...post(crd('x', 'X', version(schemaOf({ spec: { ...OPEN, foo: 1, properties: { a: { type: 'string', patern: 'x' } } } })))),
    ...{ path: `${CRDS}?fieldValidation=Strict`, title: 'unknown keywords' },
  },
  post(crd('x', 'X', {}, { name: 'y.run.example.com' }), 'another name'),
  post(crd('x', 'X', { group: 'example' }, { name: 'x.example' }), 'a group without a dot'),
  post(crd('x', 'X', { group: 'Run.example.com' }, { name: 'x.Run.example.com' }), 'a group in upper case'),
  post(crd('x', 'X', { group: 'x.k8s.io' }, { name: 'x.x.k8s.io' }), 'a group of Kubernetes'),
  post(
    crd('x', 'X', { group: 'x.k8s.io' }, { name: 'x.x.k8s.io', annotations: { 'api-approved.kubernetes.io': 'nonsense' } }),
    'not approved',
  ),
  post(crd('x', 'X', { scope: 'Somewhere' }), 'a scope'),
  post(crd('x', 'X', { scope: undefined }), 'no scope'),
  post(crd('x', 'X', { names: { plural: 'x' } }), 'no kind'),
  post(crd('x', 'X', { names: { plural: 'x', kind: 'X-' } }), 'a kind'),
  post(crd('x', 'X', { names: { plural: 'x', kind: 'X', listKind: 'X' } }), 'a list of the same name'),
  post(crd('x', 'X', { names: { plural: 'x', kind: 'X', shortNames: ['Y', 'ok', ''], categories: ['A', ''] } }), 'short names'),
  post(crd('X', 'X'), 'a plural'),
  post(crd('x', 'X', { versions: [] }), 'no versions'),
  post(crd('x', 'X', version({ storage: false })), 'none stored'),
  post(crd('x', 'X', { versions: [VERSION, { ...VERSION, name: 'v2' }] }), 'two stored'),
  post(crd('x', 'X', { versions: [VERSION, { ...VERSION, storage: false }] }), 'a version twice'),
  post(crd('x', 'X', version({ name: 'V1' })), 'a version'),
  post(crd('x', 'X', version({ schema: undefined })), 'no schema'),
  post(crd('x', 'X', version({ schema: { openAPIV3Schema: { type: 'string' } } })), 'a schema of a string'),
  post(crd('x', 'X', version({ schema: { openAPIV3Schema: {} } })), 'an empty schema'),
  post(crd('x', 'X', version(schemaOf({ a: {}, b: { type: 'array' }, c: { type: 'text' } }))), 'no structural schema'),
  post(
    crd('x', 'X', {
      versions: [
        { ...VERSION, ...schemaOf({ a: {} }) },
        { ...VERSION, ...schemaOf({ b: {} }), name: 'v2', storage: false },
      ],
    }),
    'two that are not structural',
  ),
  post(crd('x', 'X', version({ deprecationWarning: 'old' })), 'a warning'),
  post(crd('x', 'X', version({ deprecated: true, deprecationWarning: '' })), 'an empty warning'),
  post(
    crd('x', 'X', version({ additionalPrinterColumns: [column('', 'text', 'spec', { format: 'x' }), { name: 'y' }] })),
    'columns',
  ),
  post(
    crd(
      'x',
      'X',
      version({
        subresources: { scale: { specReplicasPath: '.status.x', statusReplicasPath: 'x', labelSelectorPath: '.metadata.x' } },
      }),
    ),
    'scale',
  ),
  post(crd('x', 'X', version({ subresources: { scale: {} } })), 'an empty scale'),
  post(
    crd('x', 'X', {
      versions: [
        {
          ...VERSION,
          ...schemaOf({ spec: { type: 'object', properties: { o: OPEN, s: { type: 'string' } } } }),
          selectableFields: [
            { jsonPath: '.spec.o' },
            { jsonPath: '.spec.none' },
            { jsonPath: '.metadata.name' },
            { jsonPath: '.spec.s' },
            { jsonPath: '.spec.s' },
            { jsonPath: '' },
          ],
        },
      ],
    }),
    'selectable fields',
  ),
  post(crd('x', 'X', { conversion: { strategy: 'Some' } }), 'a conversion'),
  post(
    crd('x', 'X', { conversion: { strategy: 'None', webhook: { conversionReviewVersions: ['v1'] } } }),
    'a webhook without the strategy',
  ),
  post(crd('x', 'X', { preserveUnknownFields: true }), 'unknown fields'),
  post({ ...crd('x', 'X'), spec: undefined }, 'no spec'),
  post(crd('x', 'X', { versions: 'v1' }), 'versions as a text'),
  post(crd('x', 'X', version({ served: 'yes' })), 'served as a text'),
  {
    ...post({ ...crd('x', 'X'), spec: { ...crd('x', 'X').spec, extra: 1 } }, 'an unknown field'),
    path: `${CRDS}?fieldValidation=Strict`,
  },
  { ...post(crd('x', 'X'), 'dry run'), path: `${CRDS}?dryRun=All` },
  { path: at('x') },
];

/** Names that others have. */
const NAMES: readonly Step[] = [
  post(crd('firsts', 'First', { names: { plural: 'firsts', kind: 'First', shortNames: ['fst'] } })),
  settled('firsts'),
  post(crd('seconds', 'Second', { names: { plural: 'seconds', kind: 'Second', shortNames: ['fst', 'snd'] } })),
  settled('seconds', '"ShortNamesConflict"'),
  { path: `${ROOT}/v1/seconds` },
  post(crd('thirds', 'First')),
  settled('thirds', '"ListKindConflict"'),
  patch(at('firsts'), { spec: { names: { kind: 'Other' } } }),
  // Its own plural is in use, by itself.
  patch(at('firsts'), { spec: { names: { shortNames: ['fst', 'firsts'] } } }),
  settled('firsts', '"ShortNamesConflict"'),
  patch(at('firsts'), { spec: { names: { shortNames: ['fst'] } } }),
  settled('firsts', '"NoConflicts"'),
  patch(at('firsts'), { spec: { scope: 'Cluster' } }),
  patch(at('firsts'), { spec: { group: 'other.example.com' } }),
  patch(at('firsts'), { spec: { names: { shortNames: ['one'], categories: ['all'] } } }),
  settled('seconds'),
  settled('firsts', '"acceptedNames":{"categories":["all"]'),
  { path: `${ROOT}/v1`, until: '"seconds"' },
  { method: 'DELETE', path: at('firsts') },
  { path: at('firsts'), until: 404 },
  settled('thirds'),
  { method: 'DELETE', path: at('seconds') },
  { path: at('seconds'), until: 404 },
  { method: 'DELETE', path: at('thirds') },
  { path: at('thirds'), until: 404 },
];

/** Definitions that are changed. */
const CHANGED: readonly Step[] = [
  { method: 'PUT', path: at('gadgets'), body: GADGETS, title: 'without a version' },
  patch(at('gadgets'), { spec: { versions: [VERSION] }, title: 'a version less' }),
  { path: `${ROOT}/v2beta1`, until: 404 },
  { path: `${IN('v2beta1')}/a` },
  patch(at('gadgets'), { spec: { versions: [{ ...VERSION, name: 'v3' }] } }),
  patch(at('gadgets'), {
    spec: {
      versions: [
        { ...VERSION, storage: false },
        { ...VERSION, name: 'v3' },
      ],
    },
  }),
  { path: `${ROOT}/v3`, until: '"gadgets"' },
  { path: `${IN('v3')}/a`, until: 200 },
  { path: `${IN('v1')}/a` },
  { method: 'PATCH', path: `${at('gadgets')}/status`, body: { status: { storedVersions: ['v3'] } }, headers: MERGE },
  { method: 'PATCH', path: `${at('gadgets')}/status`, body: { status: { storedVersions: [] } }, headers: MERGE },
  { path: CRDS, of: names },
  {
    path: CRDS,
    headers: TABLE,
    of: ({ columnDefinitions, rows }: Json) => [columnDefinitions.map(({ name }: Json) => name), rows.length],
  },
];

/** Definitions that go. */
const DELETED: readonly Step[] = [
  { method: 'DELETE', path: at('gadgets'), body: { preconditions: { uid: 'other' } } },
  { method: 'DELETE', path: `${at('gadgets')}?dryRun=All` },
  patch(`${IN('v1')}/a`, { metadata: { finalizers: ['b', 'a.c'] } }),
  patch(`${IN('v1')}/a`, { metadata: { finalizers: ['run.example.com/held'] } }),
  { method: 'DELETE', path: at('gadgets') },
  { method: 'DELETE', path: at('gadgets'), title: 'again' },
  settled('gadgets', '"InstanceDeletionInProgress"'),
  { method: 'POST', path: IN('v1'), body: gadget('late', {}) },
  { path: `${ROOT}/v1`, until: '"verbs":["delete","deletecollection","get","list","watch"]' },
  // The last of those that nothing holds.
  { path: `${IN('v1')}/e`, until: 404 },
  { path: IN('v1'), until: '"deletionTimestamp"', of: names },
  patch(`${IN('v1')}/a`, { metadata: { finalizers: [] } }),
  { path: at('gadgets'), until: 404 },
  { path: `${ROOT}/v1`, until: 404 },
  { path: IN('v1') },
  post(GADGETS, 'afresh'),
  settled('gadgets'),
  { path: IN('v1'), until: 200 },
  { method: 'DELETE', path: at('gadgets') },
  { path: at('gadgets'), until: 404 },
];

export const STEPS: readonly Step[] = [
  ...SERVED,
  ...NULLS,
  ...WITHIN,
  ...STATUSES,
  ...WRONG,
  ...ASKING,
  ...NAMES,
  ...CHANGED,
  ...DELETED,
];
