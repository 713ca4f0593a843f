// Requests that clients could send by mistake: real ones of all verbs, of which something is changed. fast-check makes them, so a seed
// brings them back.
import fc from 'fast-check';
import type { ResourceDefinition } from '../../../src/apiserver/index.ts';

/** A request as it is sent. */
export interface Mutated {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | undefined;
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
  ...[
    'metadata',
    'name',
    'generateName',
    'namespace',
    'labels',
    'annotations',
    'finalizers',
    'ownerReferences',
    'uid',
    'resourceVersion',
  ],
  ...[
    'creationTimestamp',
    'deletionTimestamp',
    'deletionGracePeriodSeconds',
    'managedFields',
    'generation',
    'selfLink',
    'kind',
    'apiVersion',
  ],
  ...[
    'spec',
    'status',
    'data',
    'binaryData',
    'immutable',
    'replicas',
    'conditions',
    'holderIdentity',
    'leaseDurationSeconds',
    'renewTime',
  ],
  ...[
    '__proto__',
    'constructor',
    'toString',
    'x',
    '',
    'propagationPolicy',
    'preconditions',
    'gracePeriodSeconds',
    'dryRun',
    'orphanDependents',
  ],
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

/** The JSON of a value, at times broken. */
const written = (value: fc.Arbitrary<unknown>): fc.Arbitrary<string> =>
  fc
    .tuple(value, fc.nat(), fc.constantFrom(...Array<string>(9).fill('whole'), 'cut', 'twice', 'flip', 'text', 'nothing'))
    .map(([made, at, how]) => {
      const text = JSON.stringify(made) ?? 'null';
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

/** A ConfigMap in protobuf. */
function toProtobuf({
  metadata,
  data,
}: {
  metadata?: { name: string; labels?: object; annotations?: object };
  data?: object;
}): Uint8Array {
  const { name = '', labels, annotations } = metadata ?? {};
  const meta = joined(field(1, name), entries(11, labels), entries(12, annotations), field(14, 'example.com/a'));
  const raw = joined(field(1, meta), entries(2, data));
  const unknown = joined(field(1, joined(field(1, 'v1'), field(2, 'ConfigMap'))), field(2, raw));
  return joined(new TextEncoder().encode('k8s\0'), unknown);
}

const bytesOf = (object: object): fc.Arbitrary<Uint8Array> =>
  fc.tuple(fc.nat(), fc.nat({ max: 255 }), fc.constantFrom('whole', 'flip', 'cut', 'insert')).map(([at, byte, how]) => {
    const bytes = toProtobuf(object);
    if (how === 'cut') return bytes.slice(0, at % (bytes.length + 1));
    if (how === 'flip') bytes[at % bytes.length] = byte;
    if (how === 'insert') return new Uint8Array([...bytes.slice(0, at % bytes.length), byte, ...bytes.slice(at % bytes.length)]);
    return bytes;
  });

const parameter = fc.constantFrom(
  ...[
    'limit',
    'continue',
    'resourceVersion',
    'resourceVersionMatch',
    'timeoutSeconds',
    'labelSelector',
    'fieldSelector',
    'pretty',
    'dryRun',
  ],
  ...[
    'fieldManager',
    'fieldValidation',
    'force',
    'gracePeriodSeconds',
    'propagationPolicy',
    'orphanDependents',
    'sendInitialEvents',
    'x',
    '',
  ],
  ...['allowWatchBookmarks', 'includeObject', 'export', 'exact'],
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
const query = fc
  .array(fc.tuple(parameter, parameterValue), { maxLength: 2 })
  .map((all) =>
    all.length === 0
      ? ''
      : `?${all.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join('&')}`,
  );

const segment = fc.constantFrom(
  'x',
  '',
  '..',
  '.',
  '%2e%2e',
  '%2F',
  '%zz',
  '%00',
  'status',
  'scale',
  'watch',
  'proxy',
  'namespaces',
  '-',
  'a'.repeat(300),
  '%20',
  'v1',
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

const TYPES = [
  'application/json',
  'application/yaml',
  'application/vnd.kubernetes.protobuf',
  'text/plain',
  '',
  'application/json;x=y',
  'nonsense',
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

/** All requests for some targets. */
export function mutatedRequests(targets: readonly Target[]): fc.Arbitrary<Mutated> {
  return fc.oneof(...targets.map(requestsOf));
}

function requestsOf({ path, object, subresources, hasProtobuf, isCustom, staysForEver }: Target): fc.Arbitrary<Mutated> {
  const { name } = object.metadata;
  const one = `${path}/${name}`;
  const full = { ...object, metadata: { ...object.metadata, ...FULL_METADATA } };
  const fresh = fc.nat({ max: 9 }).map((at) => ({ ...full, metadata: { ...full.metadata, name: `fresh-${at}` } }));
  const places = [one, one, ...subresources.map((each) => `${one}/${each}`)];
  const make = (
    method: string,
    at: fc.Arbitrary<string>,
    [type, body]: readonly [string, fc.Arbitrary<Mutated['body']>],
  ): fc.Arbitrary<Mutated> =>
    fc.record({
      method: fc.constant(method),
      path: fc.tuple(at, query).map((each) => each.join('')),
      headers: headers(type),
      body,
    });
  const json = 'application/json';
  const scale = { metadata: { name }, spec: { replicas: 1 } };
  const place = fc.constantFrom(...places).chain(mutatedPath);
  const body = fc.constantFrom(full, full, subresources.includes('scale') ? scale : full);
  const going = fc.nat({ max: 9 }).map((at) => `${path}/fresh-${at}`);
  const deletions = [
    make('DELETE', going.chain(mutatedPath), [json, written(mutant(OPTIONS))]),
    make('DELETE', place, [json, written(mutant({ ...OPTIONS, preconditions: { uid: 'another' } }))]),
  ];
  const none = [json, fc.constant(undefined)] as const;
  const all: fc.Arbitrary<Mutated>[] = [
    make('POST', mutatedPath(path), [json, written(fresh.chain(mutant))]),
    make('PUT', place, [json, written(body.chain(mutant))]),
    make('PATCH', place, ['application/merge-patch+json', written(body.chain(mutant))]),
    make('PATCH', place, ['application/json-patch+json', written(jsonPatch)]),
    make('PATCH', place, [
      isCustom ? 'application/merge-patch+json' : 'application/strategic-merge-patch+json',
      written(body.chain(mutant)),
    ]),
    ...(staysForEver ? [] : deletions),
    make('GET', fc.constantFrom(path, ...places).chain(mutatedPath), none),
    make('POST', mutatedPath(path), ['application/yaml', written(fresh.chain(mutant))]),
  ];
  if (hasProtobuf) {
    all.push(make('POST', mutatedPath(path), ['application/vnd.kubernetes.protobuf', fresh.chain((each) => bytesOf(each))]));
    all.push(make('PUT', place, ['application/vnd.kubernetes.protobuf', bytesOf(full)]));
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

/** What is asked for: three built-in kinds and a custom one with both subresources. */
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
    hasProtobuf: false,
    isCustom: false,
  },
  {
    path: '/api/v1/namespaces',
    object: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'mutated-a' } },
    subresources: ['status'],
    hasProtobuf: false,
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
];
