// Requests that clients could send by mistake: real ones of all verbs, of which something is changed. fast-check makes them, so a seed
// brings them back.
import fc from 'fast-check';
import { stringify } from 'yaml';
import type { ResourceDefinition } from '../../../src/apiserver/index.ts';

/** A request as it is sent. */
export interface Mutated {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | undefined;
  /** The path of the kind whose objects it may change; undefined: of none. */
  readonly target?: string;
}

/** A kind whose objects are asked for: its path in a namespace, and an object that is there. */
export interface Target {
  readonly path: string;
  readonly object: Readonly<Record<string, unknown>> & { readonly metadata: { readonly name: string } };
  /** Names of subresources. */
  readonly subresources: readonly string[];
  readonly hasProtobuf: boolean;
  readonly isCustom: boolean;
  /** A real namespace needs a controller to go. */
  readonly staysForEver?: boolean;
  /** Its objects are never changed: what serves them takes long to follow. */
  readonly isDry?: boolean;
}

const ODD: readonly unknown[] = [
  ...[
    null,
    true,
    false,
    0,
    -1,
    1.5,
    1e300,
    9_007_199_254_740_991,
    '',
    ' ',
    'x',
    'a/b',
    '..',
    'UPPER',
    '-',
    '0',
    'ä',
    '\u0000',
    '🙂',
  ],
  ...['x'.repeat(64), 'x'.repeat(254), '2026-01-01T00:00:00Z', 'not a time', '1', '999999999999999999999', 'Background', 'All'],
  ...[
    [],
    [null],
    [[]],
    [{}],
    ['x', 'x'],
    [null, 'x'],
    [1],
    {},
    { a: null },
    { '': '' },
    { x: { y: { z: [] } } },
    { toString: null },
  ],
  ...[
    JSON.parse('{"__proto__":{"x":1}}'),
    JSON.parse('{"constructor":{"prototype":null}}'),
    { length: -1 },
    { hasOwnProperty: 1 },
  ],
];
const odd: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom(...ODD) },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
);

const NAMES: readonly string[] = [
  ...'metadata name generateName namespace labels annotations finalizers ownerReferences uid resourceVersion'.split(' '),
  ...'creationTimestamp deletionTimestamp deletionGracePeriodSeconds managedFields generation selfLink kind'.split(' '),
  ...'apiVersion spec status data binaryData immutable replicas conditions holderIdentity leaseDurationSeconds'.split(' '),
  ...'renewTime __proto__ constructor toString x'.split(' '),
  '',
  ...'propagationPolicy preconditions gracePeriodSeconds dryRun orphanDependents'.split(' '),
  ...'versions schema openAPIV3Schema properties items type format default pattern names plural scope group conversion'.split(
    ' ',
  ),
  ...'additionalProperties required enum maxLength subresources scale additionalPrinterColumns selectableFields jsonPath'.split(
    ' ',
  ),
  ...'served storage nullable x-kubernetes-validations x-kubernetes-list-type x-kubernetes-list-map-keys oneOf'.split(' '),
];
const memberName = fc.constantFrom(...NAMES);

const OWNER_REFERENCE = { apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'u', controller: true, blockOwnerDeletion: true };
const FULL_METADATA = {
  labels: { a: 'b', 'example.com/c': 'd' },
  annotations: { a: 'b' },
  finalizers: ['example.com/a'],
  ownerReferences: [OWNER_REFERENCE],
};

type Path = readonly (string | number)[];

function pathsOf(value: unknown, at: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [at];
  return [
    at,
    ...Object.entries(value).flatMap(([name, each]) => pathsOf(each, [...at, Array.isArray(value) ? Number(name) : name])),
  ];
}

/** The value with another at a path; undefined takes it out. */
function changed(value: unknown, path: Path, to: unknown): unknown {
  const [first, ...rest] = path;
  if (first === undefined) return to;
  if (Array.isArray(value)) {
    const list = [...value];
    const made = changed(typeof first === 'number' ? list[first] : undefined, rest, to);
    if (made === undefined) list.splice(Number(first), 1);
    else if (typeof first === 'number') list[first] = made;
    else list.push(made);
    return list;
  }
  const entries = new Map(Object.entries((value ?? {}) as object));
  const made = changed(entries.get(String(first)), rest, to);
  if (made === undefined) entries.delete(String(first));
  else entries.set(String(first), made);
  return Object.fromEntries(entries);
}

/** Members that may be there already. */
const NAMES_TWICE: readonly string[] = ['"metadata"', '"kind"', '"spec"', '"data"', '"x"'];

/** A value of which one to three things are changed. */
const mutant = (value: unknown): fc.Arbitrary<unknown> =>
  fc
    .array(fc.tuple(fc.nat(), fc.constantFrom('set', 'set', 'set', 'drop', 'add'), memberName, odd), {
      minLength: 1,
      maxLength: 3,
    })
    .map((changes) =>
      changes.reduce<unknown>((now, [pick, how, name, to]) => {
        const paths = pathsOf(now);
        const path = paths[pick % paths.length] as Path;
        if (how === 'add') return changed(now, [...path.slice(0, -1), name], to);
        return changed(now, path, how === 'drop' && path.length > 0 ? undefined : to);
      }, value),
    );

const FAULTS: readonly string[] = ['cut', 'twice', 'flip', 'member', 'text', 'nothing'];

/** The JSON of a value, at times broken; `yaml`: at times the YAML. */
const written = (value: fc.Arbitrary<unknown>, yaml: boolean = false): fc.Arbitrary<string> =>
  fc
    .tuple(
      value,
      fc.nat(),
      fc.constantFrom(...Array<string>(10).fill('whole'), ...(yaml ? Array(10).fill('yaml') : []), ...FAULTS),
    )
    .map(([made, at, how]) => {
      const text = JSON.stringify(made) ?? 'null';
      if (how === 'yaml') return stringify(made);
      if (how === 'member' && text.length > 2) return `{${NAMES_TWICE[at % NAMES_TWICE.length]}:null,${text.slice(1)}`;
      if (how === 'cut') return text.slice(0, at % (text.length + 1));
      if (how === 'twice') return text + text;
      if (how === 'flip') return text.slice(0, at % text.length) + '}],:"\\ x0'[at % 9] + text.slice((at % text.length) + 1);
      return how === 'text' ? 'nonsense' : how === 'nothing' ? '' : text;
    });

/** A field of protobuf that is a text, bytes or a message. */
function field(number: number, content: string | Uint8Array): Uint8Array {
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content;
  const size = bytes.length < 128 ? [bytes.length] : [(bytes.length & 0x7f) | 0x80, bytes.length >> 7];
  return new Uint8Array([number * 8 + 2, ...size, ...bytes]);
}

const joined = (...parts: Uint8Array[]): Uint8Array => new Uint8Array(parts.flatMap((each) => [...each]));
const entries = (number: number, map: object = {}): Uint8Array =>
  joined(...Object.entries(map).map(([key, value]) => field(number, joined(field(1, key), field(2, String(value))))));

const varint = (number: number, value: number): Uint8Array => new Uint8Array([number * 8, value]);

const inEnvelope = ({ apiVersion, kind }: { apiVersion?: unknown; kind?: unknown }, raw: Uint8Array): Uint8Array =>
  joined(
    new TextEncoder().encode('k8s\0'),
    field(1, joined(field(1, String(apiVersion)), field(2, String(kind)))),
    field(2, raw),
  );

/** What is in protobuf beside the metadata, by kind. */
const REST: Readonly<Record<string, (object: { data?: object }) => Uint8Array>> = {
  ConfigMap: ({ data }) => entries(2, data),
  Lease: () => field(2, joined(field(1, 'x'), varint(2, 15), field(3, varint(1, 100)), varint(5, 1))),
  Namespace: () => field(2, field(1, 'kubernetes')),
};

/** An object of a built-in kind in protobuf. */
function toProtobuf(object: {
  kind?: unknown;
  data?: object;
  metadata?: { name: string; labels?: object; annotations?: object };
}): Uint8Array {
  const { name = '', labels, annotations } = object.metadata ?? {};
  const meta = joined(field(1, name), entries(11, labels), entries(12, annotations), field(14, 'example.com/a'));
  return inEnvelope(object, joined(field(1, meta), REST[String(object.kind)]?.(object) ?? new Uint8Array()));
}

/** Bytes, most of them broken. */
const broken = (whole: Uint8Array): fc.Arbitrary<Uint8Array> =>
  fc.tuple(fc.nat(), fc.nat({ max: 255 }), fc.constantFrom('whole', 'flip', 'cut', 'insert')).map(([at, byte, how]) => {
    const bytes = Uint8Array.from(whole);
    if (how === 'cut') return bytes.slice(0, at % (bytes.length + 1));
    if (how === 'flip') bytes[at % bytes.length] = byte;
    if (how === 'insert') return new Uint8Array([...bytes.slice(0, at % bytes.length), byte, ...bytes.slice(at % bytes.length)]);
    return bytes;
  });

/** Options of a deletion, in protobuf. */
const DELETE_OPTIONS = inEnvelope(
  { apiVersion: 'v1', kind: 'DeleteOptions' },
  joined(varint(1, 0), field(2, joined(field(1, 'x'), field(2, '1'))), varint(3, 1), field(4, 'Background'), field(5, 'All')),
);

const parameter = fc.constantFrom(
  ...'limit continue resourceVersion resourceVersionMatch timeoutSeconds labelSelector fieldSelector pretty dryRun'.split(' '),
  ...'fieldManager fieldValidation force gracePeriodSeconds propagationPolicy orphanDependents sendInitialEvents uid'.split(' '),
  ...'x'.split(' '),
  '',
  ...'allowWatchBookmarks includeObject export exact watch'.split(' '),
);
const parameterValue = fc.oneof(
  fc.constantFrom(
    '',
    '0',
    '1',
    '-1',
    'x',
    'true',
    'false',
    'All',
    'Strict',
    'Warn',
    'Ignore',
    'NotOlderThan',
    'Exact',
    'Background',
    'Orphan',
    'Foreground',
  ),
  fc.constantFrom(
    'a=b',
    'a in (b,c)',
    'a in (',
    '!a',
    'metadata.name=a',
    'metadata.name!=a',
    'spec.x=y',
    '=',
    ',',
    '99999999999999999999',
    'ä',
    'null',
  ),
  fc.string({ maxLength: 6 }),
);
/** What clients send. */
const USUAL: readonly string[] = [
  ...[
    'dryRun=All',
    'fieldValidation=Strict',
    'fieldValidation=Warn',
    'fieldManager=m',
    'fieldManager=other',
    'force=true',
    'limit=1',
  ],
  ...['watch=true', 'watch=1&timeoutSeconds=1', 'resourceVersion=0', 'resourceVersion=0&resourceVersionMatch=NotOlderThan'],
  ...['watch=1&resourceVersion=0', 'labelSelector=a%3Db', 'fieldSelector=metadata.name%3Da', 'gracePeriodSeconds=0'],
  'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true',
];
/** A query with some parameters, those of `always` first. */
const queryWith = (...always: string[]): fc.Arbitrary<string> =>
  fc
    .array(
      fc.oneof(
        fc.tuple(parameter, parameterValue).map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`),
        fc.constantFrom(...USUAL),
      ),
      { maxLength: 2 },
    )
    .map((some) => [...always, ...some].join('&'))
    .map((all) => (all === '' ? '' : `?${all}`));

const segment = fc.constantFrom(
  ...['x', '', '..', '.', '%2e%2e', '%2F', '%zz', '%00', 'status', 'scale', 'watch', 'proxy', 'namespaces', '-'],
  ...['a'.repeat(300), '%20', 'v1'],
);

/** A path, at times with another segment, one more or one less. */
const mutatedPath = (path: string): fc.Arbitrary<string> =>
  fc
    .tuple(fc.constantFrom(...Array<string>(12).fill('whole'), 'other', 'more', 'less'), fc.nat(), segment)
    .map(([how, pick, other]) => {
      if (how === 'whole') return path;
      const parts = path.slice(1).split('/');
      if (how === 'more') parts.push(other);
      else if (how === 'less') parts.pop();
      else parts[pick % parts.length] = other;
      return `/${parts.join('/')}`;
    });

const PROTOBUF = 'application/vnd.kubernetes.protobuf';
const TYPES = [
  'application/json',
  'application/yaml',
  'application/vnd.kubernetes.protobuf',
  'text/plain',
  '',
  'application/json;x=y',
  'nonsense',
  ...['application/cbor', 'application/apply-patch+cbor', 'application/apply-patch+yaml', 'application/merge-patch+json'],
  ...['application/json-patch+json', 'application/strategic-merge-patch+json'],
];
const ACCEPTED = [
  ...[
    'application/json',
    '*/*',
    'application/yaml',
    'text/plain',
    'application/json;as=Table;g=meta.k8s.io;v=v1',
    'application/json;as=X;g=y;v=z',
  ],
  ...[
    'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1',
    '',
    ';',
    'application/json;q=x',
    'application/*',
    'text/plain, */*',
  ],
  ...['application/cbor', 'application/cbor, application/json', 'application/vnd.kubernetes.protobuf, application/json'],
  ...['application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1', 'application/json;as=Table;g=meta.k8s.io;v=v1beta1'],
  ...['application/yaml;as=Table;g=meta.k8s.io;v=v1', 'application/json;as=Table;g=meta.k8s.io;v=v1,application/json'],
  ...['application/json;as=Table;v=v1', 'application/json;as=APIGroupDiscoveryList;g=apidiscovery.k8s.io;v=v2'],
  ...['application/json;stream=watch', 'application/json;q=0.1,application/yaml;q=0.9', 'application/json;g=x;v=v1'],
];
const headers = (type: string): fc.Arbitrary<Record<string, string>> =>
  fc
    .tuple(fc.nat({ max: 19 }), fc.constantFrom(...TYPES), fc.nat({ max: 9 }), fc.constantFrom(...ACCEPTED))
    .map(([a, other, b, accept]) => ({ 'content-type': a === 0 ? other : type, ...(b === 0 && { accept }) }));

const OPTIONS = {
  kind: 'DeleteOptions',
  apiVersion: 'v1',
  propagationPolicy: 'Background',
  gracePeriodSeconds: 0,
  preconditions: { uid: 'x', resourceVersion: '1' },
  dryRun: ['All'],
};

/** A JSON patch whose operations are changed. */
const jsonPatch = mutant([
  { op: 'test', path: '/metadata/name', value: 'x' },
  { op: 'add', path: '/metadata/labels', value: { a: 'b' } },
  { op: 'replace', path: '/metadata/labels/a', value: 'c' },
  { op: 'copy', from: '/metadata/labels', path: '/metadata/annotations' },
  { op: 'remove', path: '/metadata/labels/a' },
]);

/** What tells of the kinds. */
const DOCUMENTS: readonly string[] = [
  '/api',
  '/apis',
  '/api/v1',
  '/apis/example.com',
  '/apis/example.com/v1',
  '/version',
  '/openapi/v3',
];
const documents: fc.Arbitrary<Mutated> = fc.record({
  method: fc.constant('GET'),
  path: fc.tuple(fc.constantFrom(...DOCUMENTS), queryWith()).map((each) => each.join('')),
  headers: fc.constantFrom(...ACCEPTED).map((accept) => ({ accept })),
  body: fc.constant(undefined),
});

/** All requests for some targets. */
export function mutatedRequests(targets: readonly Target[]): fc.Arbitrary<Mutated> {
  const weight = 6;
  return fc.oneof(...targets.map((each) => ({ weight, arbitrary: requestsOf(each) })), { weight: 1, arbitrary: documents });
}

type Body = readonly [type: string, body: fc.Arbitrary<Mutated['body']>];

function requestsOf({ path, object, subresources, hasProtobuf, isCustom, staysForEver, isDry }: Target): fc.Arbitrary<Mutated> {
  const { name } = object.metadata;
  const one = `${path}/${name}`;
  const full = { ...object, metadata: { ...object.metadata, ...FULL_METADATA } };
  const fresh = fc
    .nat({ max: 9 })
    .map((at) => ({ ...full, metadata: { ...full.metadata, ...(!isDry && { name: `fresh-${at}` }) } }));
  const places = [one, one, ...subresources.map((each) => `${one}/${each}`)];
  const dry = isDry ? ['dryRun=All'] : [];
  const make = (method: string, at: fc.Arbitrary<string>, [type, body]: Body, ...always: string[]): fc.Arbitrary<Mutated> =>
    fc.record({
      method: fc.constant(method),
      path: fc.tuple(at, queryWith(...always, ...dry)).map((each) => each.join('')),
      headers: headers(type),
      body,
      target: fc.constant(path),
    });
  const json = 'application/json';
  const yaml = 'application/yaml';
  const scale = { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name }, spec: { replicas: 1 } };
  const place = fc.constantFrom(...places).chain(mutatedPath);
  const body = fc.constantFrom(full, full, subresources.includes('scale') ? scale : full);
  const going = fc.nat({ max: 9 }).map((at) => `${path}/fresh-${at}`);
  const options = mutant({ ...OPTIONS, preconditions: { uid: 'another' } });
  const deletions = [
    make('DELETE', going.chain(mutatedPath), [json, written(mutant(OPTIONS))]),
    make('DELETE', place, [json, written(options)]),
    make('DELETE', place, [yaml, written(options, true)]),
    make('DELETE', place, [PROTOBUF, broken(DELETE_OPTIONS)]),
    make('DELETE', fc.constantFrom(path, `${path}/`), [json, written(options)]), // less of it is a namespace
  ];
  const everywhere = path.replace(/namespaces\/[^/]+\//, '');
  const seen = [path, path, everywhere, everywhere.replace(/\/v1\//, '/v1/watch/'), ...places];
  const none: Body = [json, fc.constant(undefined)];
  const applied = fc.oneof(going, place);
  const all: fc.Arbitrary<Mutated>[] = [
    make('POST', mutatedPath(path), [json, written(fresh.chain(mutant))]),
    make('PUT', place, [json, written(body.chain(mutant))]),
    make('PATCH', place, ['application/merge-patch+json', written(body.chain(mutant))]),
    make('PATCH', place, ['application/json-patch+json', written(jsonPatch)]),
    make('PATCH', place, [
      isCustom ? 'application/merge-patch+json' : 'application/strategic-merge-patch+json',
      written(body.chain(mutant)),
    ]),
    make('PATCH', isDry ? place : applied, ['application/apply-patch+yaml', written(body.chain(mutant), true)], 'fieldManager=m'),
    make('PATCH', place, ['application/apply-patch+yaml', written(body.chain(mutant), true)]),
    ...(staysForEver || isDry ? [] : deletions),
    make('GET', fc.constantFrom(...seen).chain(mutatedPath), none),
    make('POST', mutatedPath(path), [yaml, written(fresh.chain(mutant), true)]),
  ];
  if (hasProtobuf) {
    all.push(make('POST', mutatedPath(path), [PROTOBUF, fresh.chain((each) => broken(toProtobuf(each)))]));
    all.push(make('PUT', place, [PROTOBUF, broken(toProtobuf(full))]));
  }
  return fc.oneof(...all);
}

export const NAMESPACE = 'mutated';
const inNamespace = `namespaces/${NAMESPACE}`;

const OPEN = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const;
const SCHEMA = {
  type: 'object',
  properties: {
    spec: { ...OPEN, properties: { replicas: { type: 'integer', minimum: 0, maximum: 50 } } },
    status: { ...OPEN, properties: { replicas: { type: 'integer' }, selector: { type: 'string' } } },
  },
} as const;
const SHIP = { group: 'example.com', version: 'v1', plural: 'ships', kind: 'Ship' } as const;
const SCALE = {
  specReplicasPath: '.spec.replicas',
  statusReplicasPath: '.status.replicas',
  labelSelectorPath: '.status.selector',
} as const;

/** The custom kind. */
export const SHIPS: ResourceDefinition = {
  ...SHIP,
  status: true,
  scale: SCALE,
  schema: SCHEMA,
  preserveUnknownFields: false,
};

/** The same as a CustomResourceDefinition. */
export const SHIPS_CRD: object = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${SHIP.plural}.${SHIP.group}` },
  spec: {
    group: SHIP.group,
    scope: 'Namespaced',
    names: { plural: SHIP.plural, kind: SHIP.kind },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {}, scale: SCALE },
        schema: { openAPIV3Schema: SCHEMA },
      },
    ],
  },
};

const BOAT = {
  ...{ name: 'v1', served: true, storage: true, subresources: { status: {}, scale: SCALE } },
  additionalPrinterColumns: [{ name: 'Sails', type: 'integer', jsonPath: '.spec.sails' }],
  selectableFields: [{ jsonPath: '.spec.home' }],
  schema: {
    openAPIV3Schema: {
      type: 'object',
      properties: {
        spec: {
          ...{
            type: 'object',
            required: ['home'],
            'x-kubernetes-validations': [{ rule: 'self.sails > 0', message: 'no sails' }],
          },
          properties: {
            ...{
              sails: { type: 'integer', default: 1, maximum: 9 },
              home: { type: 'string', pattern: '^[a-z]+$', maxLength: 9 },
            },
            crew: {
              ...{ type: 'array', maxItems: 9, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] },
              items: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } },
            },
            load: { type: 'object', additionalProperties: { 'x-kubernetes-int-or-string': true } },
          },
        },
        status: OPEN,
      },
    },
  },
};

/** What is asked for: three built-in kinds, a custom one with both subresources, and definitions. */
export const TARGETS: readonly Target[] = [
  {
    path: `/api/v1/${inNamespace}/configmaps`,
    object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { k: 'v' }, binaryData: { b: 'eA==' } },
    subresources: [],
    hasProtobuf: true,
    isCustom: false,
  },
  {
    path: `/apis/coordination.k8s.io/v1/${inNamespace}/leases`,
    object: {
      ...{ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'a' } },
      spec: { holderIdentity: 'x', leaseDurationSeconds: 15, acquireTime: '2026-01-01T00:00:00.000000Z', leaseTransitions: 1 },
    },
    subresources: [],
    hasProtobuf: true,
    isCustom: false,
  },
  {
    path: '/api/v1/namespaces',
    object: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'mutated-a' } },
    subresources: ['status'],
    hasProtobuf: true,
    staysForEver: true,
    isCustom: false,
  },
  {
    path: `/apis/example.com/v1/${inNamespace}/ships`,
    object: {
      ...{ apiVersion: 'example.com/v1', kind: 'Ship', metadata: { name: 'a' } },
      ...{ spec: { replicas: 1, items: [{ name: 'x', sizes: [1] }] }, status: { replicas: 1, selector: 'a=b' } },
    },
    subresources: ['status', 'scale'],
    hasProtobuf: false,
    isCustom: true,
  },
  {
    path: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
    object: {
      ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata: { name: 'boats.example.com' } },
      spec: {
        ...{ group: 'example.com', scope: 'Namespaced', names: { plural: 'boats', kind: 'Boat', shortNames: ['bo'] } },
        ...{ conversion: { strategy: 'None' }, versions: [BOAT] },
      },
    },
    subresources: ['status'],
    hasProtobuf: false,
    isCustom: false,
    isDry: true,
  },
];
