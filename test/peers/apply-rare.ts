// Stories of one object that random ones hardly ever tell: each is a corner of Kubernetes' server-side apply, and is told by both.
import type { Json } from '../../src/apply/field-manager.ts';
import type { Schemas, Step, Story } from './apply-stories.ts';

const text = { type: 'string' };
const number = { type: 'integer' };
const anyScalar = { 'x-kubernetes-int-or-string': true, anyOf: [number, text] };
const map = { type: 'object', additionalProperties: text };
const setOf = (items: object): object => ({ type: 'array', items, 'x-kubernetes-list-type': 'set' });
const listOf = (properties: object, ...keys: string[]): object => ({
  ...{ type: 'array', items: { type: 'object', properties } },
  ...{ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': keys },
});
const properties = {
  ...{
    name: text,
    flag: { type: 'boolean' },
    count: number,
    float: { type: 'number' },
    any: anyScalar,
    date: { ...text, format: 'date-time' },
  },
  ...{ map, whole: { ...map, 'x-kubernetes-map-type': 'atomic' }, atomic: { type: 'array', items: text } },
  ...{ set: setOf(text), mixed: setOf(anyScalar), sets: { type: 'object', additionalProperties: setOf(text) } },
  list: listOf({ k: text, value: text, set: setOf(text) }, 'k'),
  ports: listOf({ port: anyScalar, protocol: { ...text, default: 'TCP' }, name: text }, 'protocol', 'port'),
  open: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
};
const kindOf = (more: object = {}): Json => ({
  type: 'object',
  properties: { spec: { type: 'object', properties: { ...properties, ...more } }, status: { type: 'object', properties } },
});

type Write = (at: number) => Step;

const stepOf = (op: Step['op'], at: number, manager: string): Step => ({
  ...{ op, manager, version: 'v1', subresource: '', force: false },
  time: new Date(Date.UTC(2020, 0, 1, 0, 0, at)).toISOString().replace('.000Z', 'Z'),
});

interface More extends Partial<Omit<Step, 'object'>> {
  readonly metadata?: Json;
  readonly top?: Json;
}

function write(op: 'apply' | 'update', manager: string, spec: unknown, { metadata, top, ...more }: More = {}): Write {
  return (at) => {
    const uid = op === 'update' && at > 0 ? { uid: '1' } : {};
    const named = { name: 'thing', ...uid, ...metadata };
    const object = { apiVersion: `example.com/${more.version ?? 'v1'}`, kind: 'Thing', metadata: named, spec, ...top };
    return { ...stepOf(op, at, manager), ...more, object };
  };
}
const apply = (manager: string, spec: unknown, more?: More): Write => write('apply', manager, spec, more);
const forced = (manager: string, spec: unknown, more?: More): Write => apply(manager, spec, { ...more, force: true });
const update = (manager: string, spec: unknown, more?: More): Write => write('update', manager, spec, more);
const extract =
  (manager: string): Write =>
  (at) =>
    stepOf('extract', at, manager);
const become =
  (schemas: Schemas): Write =>
  (at) => ({ ...stepOf('schemas', at, ''), schemas });

const told = (schemas: Schemas, ...steps: readonly Write[]): Story => ({
  ...{ schemas, reset: { '': ['status'], status: ['spec', 'metadata.labels'] } },
  steps: steps.map((make, at) => make(at)),
});
const tell = (...steps: readonly Write[]): Story => told({ v1: kindOf() }, ...steps);

const items = (...names: readonly string[]): Json[] => [...names].map((k) => ({ k }));
const LAST = 'kubectl.kubernetes.io/last-applied-configuration';
const said = (annotation: string): More => ({ metadata: { annotations: { [LAST]: annotation } } });
const lastOf = (spec: unknown, version = 'v1'): More =>
  said(JSON.stringify({ apiVersion: `example.com/${version}`, kind: 'Thing', metadata: { name: 'thing' }, spec }));
const entry = { manager: 'm9', operation: 'Update', apiVersion: 'example.com/v1', fieldsType: 'FieldsV1' };
const owning = (...entries: readonly unknown[]): More => ({ metadata: { managedFields: entries } });
const owns = (fieldsV1: unknown): More => owning({ ...entry, fieldsV1 });

const WRONG: readonly unknown[] = [null, 's', 5, 1.5, true, {}, { a: 1 }, { a: null }, [], ['x'], [1], [null], [{}], [[]]];
const TWICE: readonly Json[] = [
  { set: ['a', 'a'], list: items('a', 'a') },
  { set: ['a', 'b', 'a', 'a'], list: [{ k: 'a', value: '1' }, { k: 'b' }, { k: 'a', value: '2' }] },
  { set: ['a'], list: [{ k: 'a', value: '2' }] },
  {
    set: ['b', 'b'],
    list: [
      { k: 'b', value: '1' },
      { k: 'b', value: '1' },
    ],
  },
  { set: [], list: [] },
];
/** All texts of some of these characters, each at most once. */
const arrangements = (characters: string): string[] => [
  '',
  ...[...characters].flatMap((first) => arrangements(characters.replace(first, '')).map((rest) => first + rest)),
];
const FIELDS: readonly unknown[] = [
  ...[{}, null, 5, [], { '.': {} }, { 'f:spec': null }, { 'f:spec': 5 }, { 'f:spec': { '.': { 'f:a': {} } } }],
  ...['', 'f', 'f:', 'x', 'x:', 'x:a', 'ab', 'k:', 'k:{}', 'k:5', 'k:null', 'k:{"k":1e2}', 'k:{"b":1,"a":"\\b\\f<"}'].map(
    (key) => ({
      'f:spec': { 'f:list': { [key]: {} } },
    }),
  ),
  ...['v:', 'v:null', 'v:1.50', 'v:"\\u003c"', 'v:[1, 2]', 'v:{"b":1,"a":2}', 'i:', 'i:5', 'i:-5', 'i:1.5', 'i:x'].map((key) => ({
    'f:spec': { 'f:set': { [key]: {} } },
  })),
];

const NAMED = { 'f:spec': { 'f:name': {}, 'f:map': {} } };
const OWNED: readonly Json[] = [
  NAMED,
  { 'f:spec': { '.': {}, 'f:name': {}, 'f:map': {} } },
  { 'f:spec': { 'f:name': { '.': {}, 'f:a': {} }, 'f:map': {} } },
  { 'f:spec': { 'f:name': { 'f:a': {} }, 'f:map': {} } },
  { 'f:spec': { 'f:name': {}, 'f:map': { 'f:a': {} } } },
  { 'f:spec': { 'f:name': {}, 'f:map': {}, 'f:flag': {} } },
  { 'f:spec': { 'f:name': {} } },
  { 'f:spec': {} },
  ...[{ 'f:name': {} }, { '.': {} }, {}, { 'f:name': { 'f:a': {} } }, { 'f:labels': {} }].map((metadata) => ({
    ...NAMED,
    'f:metadata': metadata,
  })),
  { ...NAMED, 'f:kind': {}, 'f:apiVersion': {} },
  { ...NAMED, 'f:status': { 'f:name': {} } },
];
const letters = (count: number): Json => Object.fromEntries([...'abcdefghijklmnopq'].slice(0, count).map((name) => [name, 'x']));

/** By name. */
export const RARE: readonly (readonly [string, Story])[] = [
  ...Object.keys(properties).map(
    (name) =>
      [
        `values of other types: ${name}`,
        tell(
          ...WRONG.flatMap((wrong) => [apply('m1', { [name]: wrong }), forced('m2', { [name]: wrong })]),
          ...WRONG.flatMap((wrong) => [update('m3', { [name]: wrong }), apply('m1', { [name]: wrong }), extract('m1')]),
        ),
      ] as const,
  ),
  ...TWICE.map(
    (first, at) =>
      [
        `items that occur more than once: ${at}`,
        tell(
          ...TWICE.flatMap((other) => [
            update('m1', first),
            update('m2', other),
            apply('m3', { list: [{ k: 'a', set: ['x'] }] }),
          ]),
          ...TWICE.flatMap((other) => [update('m1', first), forced('m3', other), extract('m3'), forced('m3', {})]),
        ),
      ] as const,
  ),
  [
    'all orders of items',
    tell(
      ...arrangements('abcdx').flatMap((order) => [
        update('m1', { set: [...'abcd'], list: items(...'abcd') }),
        forced('m2', { set: [...order], list: items(...order) }),
      ]),
    ),
  ],
  ...FIELDS.map(
    (fields) =>
      [
        `fields of an entry: ${JSON.stringify(fields)}`,
        tell(
          update('m1', { name: 'x', set: ['1.5'], list: items('a') }, owns(fields)),
          update('m2', { name: 'x', set: ['1.5'], list: items('a') }, owns(fields)),
          update('m2', { name: 'y' }, owns(fields)),
          apply('m3', { name: 'z', set: ['<'] }),
        ),
      ] as const,
  ),
  ...[
    ...['x', 5, null, []].map((each) => owning(each)),
    owning({}),
    owning({ manager: '' }),
    owning({ manager: '', operation: '' }),
    owning({ time: null }),
    owning({ manager: 'a' }),
    owning({}, {}),
    owning({ ...entry, fieldsV1: { 'f:spec': { 'f:name': {} } } }, {}),
    owning({ ...entry, time: 'never', fieldsV1: { 'f:spec': { 'f:name': {} } } }),
    owning({ ...entry, time: '2020-01-01T00:00:00Z', fieldsV1: { 'f:spec': { 'f:name': {} } } }),
    owning({ ...entry, subresource: 'status', fieldsV1: { 'f:spec': { 'f:name': {} } } }),
    owning({ ...entry, subresource: null, fieldsV1: { 'f:spec': { 'f:name': {} } } }),
    owning({ ...entry, manager: '', fieldsV1: { 'f:spec': { 'f:name': {} } } }),
    owning({ ...entry, apiVersion: '', fieldsV1: { 'f:spec': { 'f:name': {} } } }),
    owning({ ...entry, fieldsType: 'FieldsV2', fieldsV1: { 'f:spec': { 'f:name': {} } } }),
    owning({ ...entry, fieldsType: undefined, fieldsV1: { 'f:spec': { 'f:name': {} } } }),
    owning(entry),
    owning({ ...entry, fieldsV1: { 'f:spec': { 'f:name': {} } } }, { ...entry, fieldsV1: { 'f:spec': { 'f:flag': {} } } }),
  ].map(
    (more) =>
      [
        `entries: ${JSON.stringify(more.metadata?.managedFields)}`,
        tell(
          apply('m1', { name: 'x', flag: true }),
          update('m2', { name: 'x', flag: true }, more),
          update('m2', { name: 'y' }, more),
          apply('m1', { name: 'z' }),
          update('m2', {}, more),
        ),
      ] as const,
  ),
  ...[
    lastOf({ name: 'x' }),
    lastOf({ name: 'x', set: ['a'], list: items('a') }),
    lastOf({ name: 'y' }),
    lastOf({ name: 'x' }, 'v2'),
    lastOf({ name: 5 }),
    lastOf({ set: ['a', 'a'], name: 'x' }),
    lastOf(null),
    ...['', '{', '5', 'null', '[]', '"x"', '{}'].map(said),
  ].map(
    (more) =>
      [
        `what kubectl said before: ${JSON.stringify(more.metadata?.annotations)}`,
        tell(
          update('m1', { name: 'x', count: 1, set: ['a', 'b'], list: [{ k: 'a', value: '1' }] }, more),
          update('m2', { name: 'x', count: 2, set: ['a', 'b'], list: [{ k: 'a', value: '1' }] }, more),
          apply('m3', { name: 'z' }),
          apply('kubectl', { name: 'z', count: 3 }),
          apply('kubectl', { name: 'z', list: [{ k: 'a', value: '2' }] }, more),
          apply('kubectl', { name: 'z' }),
          apply('kubectl', { map: { a: 'x' } }),
        ),
      ] as const,
  ),
  [
    'many owners by updates',
    tell(
      apply('m1', { name: 'x' }),
      ...Array.from({ length: 14 }, (_, at) =>
        update(`m${(at * 5) % 14}`, { name: 'x', map: letters(at) }, { subresource: at % 4 === 0 ? 'status' : '' }),
      ),
      apply('m2', { map: { a: 'y' } }),
      ...[15, 16, 17].map((count) => update(`n${count}`, { name: 'x', map: letters(count) })),
    ),
  ],
  [
    'many owners of the same time',
    told(
      { v1: kindOf(), v2: kindOf() },
      update('m0', { map: letters(16) }),
      update(
        'm0',
        { map: letters(16) },
        owning(
          ...Object.keys(letters(16)).map((name, at) => ({
            ...{ ...entry, manager: `m${(at * 5) % 16}`, apiVersion: `example.com/${at % 3 ? 'v1' : 'v2'}` },
            ...{ operation: at % 7 ? 'Update' : 'Apply', time: `2019-01-01T00:00:0${at % 2}Z` },
            fieldsV1: { 'f:spec': { 'f:map': { [`f:${name}`]: {} } } },
          })),
        ),
      ),
      update('n', { map: letters(17) }),
      forced('m1', { map: { a: 'y', b: 'y' } }),
    ),
  ],
  ...OWNED.map(
    (fieldsV1) =>
      [
        `fields that an applier is said to own: ${JSON.stringify(fieldsV1)}`,
        tell(
          apply('m1', { name: 'x', map: {} }),
          update('m2', { name: 'x', map: {} }, owning({ ...entry, manager: 'm1', operation: 'Apply', fieldsV1 })),
          apply('m1', { name: 'x', map: {} }),
          apply('m1', { name: 'x' }),
        ),
      ] as const,
  ),
  [
    'owners in several versions, of which one goes',
    told(
      { v1: kindOf(), v2: kindOf() },
      apply('m1', { name: 'x', set: ['a'], list: items('a') }, { version: 'v2' }),
      apply('m2', { name: 'x', count: 1 }),
      ...Array.from({ length: 12 }, (_, at) =>
        update(
          `u${at}`,
          { name: 'x', count: 1, set: ['a'], list: items('a'), map: { [`k${at}`]: 'x' } },
          { version: at % 2 ? 'v1' : 'v2' },
        ),
      ),
      apply('m1', { name: 'x', set: ['b'] }),
      apply('m1', { name: 'y' }, { version: 'v2' }),
      become({ v1: kindOf() }),
      apply('m1', { name: 'x' }),
      forced('m1', { name: 'z' }),
      update('m3', { name: 'w' }),
      apply('m2', {}),
    ),
  ],
  [
    'versions with other schemas',
    told(
      {
        v1: kindOf(),
        v2: kindOf({
          map: { ...map, 'x-kubernetes-map-type': 'atomic' },
          list: { type: 'array', items: { type: 'object' } },
          name: number,
        }),
      },
      apply('m1', { map: { a: 'x' }, list: items('a', 'b') }),
      apply('m2', { map: { b: 'x' } }, { version: 'v2' }),
      forced('m2', { map: { b: 'x' } }, { version: 'v2' }),
      apply('m1', { map: { a: 'x' }, list: items('a') }),
      update('m3', { map: { a: 'y' }, list: items('a', 'c') }),
      apply('m1', { name: 'x' }),
      apply('m2', { flag: true }, { version: 'v2' }),
      update('m3', { name: 'x', map: { a: 'z' } }),
      apply('m2', {}, { version: 'v2' }),
    ),
  ],
  [
    'schemas that change',
    tell(
      apply('m1', { map: { a: 'x' }, list: [{ k: 'a', value: '1', set: ['a'] }], sets: { a: ['x'] }, open: { a: { b: [1] } } }),
      become({
        v1: kindOf({
          map: { ...map, 'x-kubernetes-map-type': 'atomic' },
          list: { type: 'array', items: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        }),
      }),
      apply('m2', { map: { b: 'x' } }),
      apply('m1', { map: { a: 'x' } }),
      become({ v1: kindOf({ sets: { type: 'object', additionalProperties: { type: 'array', items: text } }, open: map }) }),
      apply('m2', { sets: { a: ['y'] } }),
      forced('m2', { sets: { a: ['y'], b: ['z'] } }),
      become({ v1: null }),
      apply('m2', { sets: { a: ['z'] } }),
      update('m3', { sets: { a: ['z'], b: [] }, other: {} }),
      apply('m2', {}),
    ),
  ],
  [
    'keys and names of any characters',
    tell(
      ...[
        '<>&',
        '\b\f\n\t',
        '\u2028\u2029',
        '\\',
        '"',
        '\uffff',
        '\ud83d\ude00',
        '\ud83d\ude00\uffff',
        'é',
        '__proto__',
        '',
        '.',
        'a.b',
      ].flatMap((name) => [
        apply('m1', { map: JSON.parse(`{${JSON.stringify(name)}:"x"}`), list: items(name), set: [name], mixed: [name, 1] }),
        apply('m2', { map: JSON.parse(`{${JSON.stringify(name)}:"y"}`), list: [{ k: name, value: '1' }] }),
      ]),
    ),
  ],
  [
    'defaults of keys',
    tell(
      apply('m1', { ports: [{ port: 80 }, { port: 80, protocol: 'UDP' }] }),
      apply('m2', { ports: [{ port: 80, protocol: 'TCP', name: 'x' }] }),
      apply('m3', { ports: [{ port: 80 }, { port: 80, protocol: 'TCP' }] }),
      apply('m3', { ports: [{ protocol: 'TCP' }] }),
      apply('m3', { ports: [{ port: null }, { port: 'a', protocol: null }] }),
      apply('m1', { ports: [{ port: '80' }] }),
      update('m4', { ports: [{ port: 80, name: 'y' }, {}] }),
      apply('m1', {}),
    ),
  ],
  ...[
    { 'f:set': { 'v:"a"': { '.': {}, 'f:x': {} } }, 'f:other': { 'f:y': { 'f:z': {} } }, 'f:name': { 'f:y': { 'f:z': {} } } },
    {
      'f:map': { 'k:{"k":"a"}': { '.': {}, 'f:k': {} }, 'f:a': { 'f:b': { 'f:c': {} } } },
      'k:{"k":"a"}': { 'f:k': { 'f:x': {} } },
    },
    { 'f:list': { 'f:a': { 'f:k': {} }, 'k:{"k":"a"}': { 'f:set': { 'v:"x"': {} } }, 'i:0': { 'f:k': {} } } },
    { 'f:sets': { 'f:a': { 'f:b': {}, 'v:"x"': { 'v:"y"': {} } } }, 'f:whole': { 'f:a': {} }, 'f:atomic': { 'i:0': {} } },
  ].map(
    (spec) =>
      [
        `fields below what has none, pruned: ${JSON.stringify(spec)}`,
        tell(
          apply('m1', {
            ...{ name: 'x', set: ['a', 'b'], map: { a: 'x', b: 'y' }, sets: { a: ['x', 'y'], b: [] } },
            ...{ list: [{ k: 'a', value: '1', set: ['x'] }, { k: 'b' }], whole: { a: 'x' }, atomic: ['a'] },
          }),
          update('m2', { name: 'x' }, owning({ ...entry, manager: 'm1', operation: 'Apply', fieldsV1: { 'f:spec': spec } })),
          update(
            'm2',
            {
              ...{ name: 'x', set: ['a', 'b'], map: { a: 'x', b: 'y' }, sets: { a: ['x', 'y'], b: [] } },
              ...{ list: [{ k: 'a', value: '1', set: ['x'] }, { k: 'b' }], whole: { a: 'x' }, atomic: ['a'] },
            },
            owning({ ...entry, manager: 'm1', operation: 'Apply', fieldsV1: { 'f:spec': spec } }),
          ),
          extract('m1'),
          apply('m1', { flag: true }),
          apply('m1', {}),
        ),
      ] as const,
  ),
  [
    'values of any type whose lists are sets',
    told(
      { v1: kindOf({ loose: { ...properties.open, type: undefined, 'x-kubernetes-list-type': 'set', items: text } }) },
      ...[['a'], 'x', ['a', 'b'], { a: 'x' }, [], {}, 5, ['b', 'b'], { a: {} }, null, ['b', 'c']].flatMap((loose) => [
        update('m1', { name: 'x', loose }),
        apply('m2', { loose: ['a'] }),
        forced('m3', { loose }),
        forced('m4', { loose: { a: 'x' } }),
        extract('m3'),
        forced('m2', { loose: 'x' }),
        forced('m3', {}),
      ]),
    ),
  ],
  [
    'parts that become empty or null, and back',
    tell(
      ...[{}, null, { a: 'x' }, { a: null }].flatMap((one) =>
        [{}, null, { b: 'x' }].flatMap((other) => [
          update('m1', { map: one, whole: one, sets: one && { a: [] }, list: one && items('a', 'b') }),
          forced('m2', { map: other, whole: other, sets: other && { a: ['x'] }, list: other && [{ k: 'b', set: [] }] }),
          extract('m2'),
          update('m1', { map: other, whole: one, sets: null, list: [] }),
          apply('m2', { map: one, list: [{ k: 'a', set: null }] }),
          apply('m2', {}),
        ]),
      ),
    ),
  ],
  [
    'orders of items of which some occur twice',
    tell(
      ...arrangements('abx').flatMap((order) =>
        ['aab', 'aba', 'baa', 'aabb', 'abab', 'cabac'].flatMap((before) => [
          update('m1', { set: [...before], list: [...before].map((k, at) => ({ k, value: `${at}` })) }),
          forced('m2', { set: [...order], list: items(...order) }),
        ]),
      ),
    ),
  ],
  [
    'lists where something else is wanted, in words',
    tell(
      ...['name', 'flag', 'count', 'float', 'map', 'whole', 'any'].flatMap((name) => [
        apply('m1', { [name]: ['a', 'b', 1.5, null, true, ['c', '"<']] }),
        apply('m1', { [name]: [[], [null, null]] }),
        update('m2', { [name]: ['a', 1] }),
      ]),
    ),
  ],
  [
    'keys with names of any characters, and values of any kind',
    told(
      {
        v1: kindOf({
          list: listOf(
            { '<': text, '\b\u2028&': text, '\ud83d\ude00': text, '\uff21': text },
            '<',
            '\b\u2028&',
            '\ud83d\ude00',
            '\uff21',
          ),
        }),
      },
      ...[
        { '<': 'a' },
        { '\b\u2028&': '\b\u2028&' },
        { '<': 'a', '\uff21': '>' },
        { '\uff21': 'a', '\ud83d\ude00': 'b' },
      ].flatMap((item) => [apply('m1', { list: [item] }), forced('m2', { list: [item, { ...item, '<': 'x' }] })]),
      ...[
        'k:{"<":1,"b\\\\f":"\\f"}',
        'v:{"&":"<","a":[null,1e30]}',
        'k:{"\\b\\u0001":{"\\f>":1}}',
        'v:1e21',
        'v:1e-7',
        'v:[-1e-7,1e-10,1e-6]',
        'i:-0',
        'i:007',
      ].map((element) =>
        update('m1', { name: element }, owns({ 'f:spec': { 'f:list': { [element]: {} }, 'f:<': { 'f:\\': {} } } })),
      ),
      apply('m1', { mixed: [1e-7, 1e21, 1.5e-9, 'a'] }),
      apply('m2', { mixed: [1e-7, 0.5] }),
      apply('m1', {}),
      update('m3', { float: 1 }, said('x')),
      forced('kubectl', { float: 1e-7, map: { '<\\': '>' } }),
    ),
  ],
];
