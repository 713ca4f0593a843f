// A kind with two versions, v1 stored and v2 not, asked for in the version that is not stored: every verb, form and part, as steps for a
// kube-apiserver and ours. Then what becomes of it when a version is no longer served, and when another one is stored.
import { CRDS, type Step } from './definitions.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look into what came over the wire
type Json = any;

const GROUP = 'versions.example.com';
const ROOT = `/apis/${GROUP}`;
const [V1, V2] = [`${GROUP}/v1`, `${GROUP}/v2`] as const;
const MERGE = { 'content-type': 'application/merge-patch+json' };
const JSON_PATCH = { 'content-type': 'application/json-patch+json' };
const STRATEGIC = { 'content-type': 'application/strategic-merge-patch+json' };
const APPLY = { 'content-type': 'application/apply-patch+yaml' };
const accept = (as: string): { accept: string } => ({ accept: `application/json;as=${as};g=meta.k8s.io;v=v1` });
const TABLE = accept('Table');
const AT = `${CRDS}/widgets.${GROUP}`;
const IN = (version: string): string => `${ROOT}/${version}/namespaces/default/widgets`;

const typed = (properties: object, more: object = {}): object => ({ type: 'object', properties, ...more });
const text = { type: 'string' };
const whole = { type: 'integer' };
const schema = (spec: object): object => ({
  schema: {
    openAPIV3Schema: typed({
      spec,
      status: typed({ phase: text, replicas: whole, selector: text }),
      onlyIn: typed({ v1: text, v2: text }),
    }),
  },
});

const ONE = {
  ...{ name: 'v1', served: true, storage: true },
  ...schema(
    typed(
      {
        size: whole,
        old: text,
        both: text,
        color: { ...text, default: 'red' },
        replicas: whole,
        count: whole,
        items: { type: 'array', items: text },
      },
      {
        'x-kubernetes-validations': [
          { rule: '!has(oldSelf.size) || !has(self.size) || self.size >= oldSelf.size', message: 'grow' },
        ],
      },
    ),
  ),
  subresources: { status: {}, scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' } },
  additionalPrinterColumns: [{ name: 'Old', type: 'string', jsonPath: '.spec.old' }],
  selectableFields: [{ jsonPath: '.spec.old' }, { jsonPath: '.spec.both' }, { jsonPath: '.spec.color' }],
};
const TWO = {
  ...{ name: 'v2', served: true, storage: false, deprecated: true },
  ...schema(
    typed(
      {
        ...{
          size: whole,
          new: text,
          both: text,
          shape: { ...text, default: 'round' },
          color: { ...text, default: 'blue' },
          count: whole,
        },
        items: { type: 'array', items: text, 'x-kubernetes-list-type': 'set' },
      },
      {
        'x-kubernetes-validations': [
          { rule: '!has(oldSelf.size) || !has(self.size) || self.size <= oldSelf.size', message: 'shrink' },
        ],
      },
    ),
  ),
  subresources: {
    status: {},
    scale: { specReplicasPath: '.spec.count', statusReplicasPath: '.status.replicas', labelSelectorPath: '.status.selector' },
  },
  additionalPrinterColumns: [
    { name: 'New', type: 'string', jsonPath: '.spec.new' },
    { name: 'Shape', type: 'string', jsonPath: '.spec.shape' },
  ],
  selectableFields: [{ jsonPath: '.spec.new' }, { jsonPath: '.spec.both' }, { jsonPath: '.spec.shape' }],
};
const CRD = {
  ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata: { name: `widgets.${GROUP}` } },
  spec: {
    ...{ group: GROUP, scope: 'Namespaced', names: { plural: 'widgets', kind: 'Widget', shortNames: ['wd'] } },
    versions: [ONE, TWO],
  },
};

const widget = (apiVersion: string, name: string, spec: object, more: object = {}): Json => ({
  ...{ apiVersion, kind: 'Widget' },
  metadata: { name, ...more },
  spec,
});
type More = Omit<Step, 'path'>;
const read = (path: string, more: More = {}): Step => ({ path, ...more });
const send = (method: string, path: string, body: unknown, more: More = {}): Step => ({ method, path, body, ...more });
const post = (version: string, body: Json, more: More = {}): Step => send('POST', IN(version), body, { managers: true, ...more });
const change = (path: string, body: unknown, headers: More['headers'] = MERGE): Step =>
  send('PATCH', path, body, { managers: true, ...(headers && { headers }) });
const watched = (query: string, more: More = {}): Step => read(`${ROOT}/v2/widgets?watch=1&timeoutSeconds=1&${query}`, more);

const DEFINED: readonly Step[] = [
  send('POST', CRDS, CRD),
  read(AT, { until: '"InitialNamesAccepted"' }),
  read(`${ROOT}/v2`, { until: '"widgets"' }),
  read(IN('v1'), { until: 200 }),
  read(IN('v2'), { until: 200 }),
  read(ROOT),
];

const WRITTEN: readonly Step[] = [
  post('v1', widget(V1, 'a', { size: 3, old: 'o', both: 'b', replicas: 2 }, { labels: { app: 'a' } })),
  post('v2', widget(V2, 'b', { size: 3, new: 'n', both: 'b', count: 4, old: 'pruned' }, { labels: { app: 'b' } })),
  send('POST', `${IN('v2')}?fieldValidation=Strict`, widget(V2, 'c', { old: 'unknown here' })),
  send('POST', `${IN('v1')}?fieldValidation=Strict`, widget(V1, 'c', { new: 'unknown here' })),
  send('POST', `${IN('v2')}?fieldValidation=Warn`, widget(V2, 'c', { old: 'unknown here' })),
  send('POST', `${IN('v2')}?dryRun=All`, widget(V2, 'dry', { new: 'x' }), { managers: true }),
  post('v2', widget(V2, 'set', { items: ['x', 'x'] })),
  post('v1', widget(V1, 'set', { items: ['x', 'x'] })),
  ...['a', 'b', 'c', 'set'].flatMap((name) => ['v1', 'v2'].map((version) => read(`${IN(version)}/${name}`, { managers: true }))),
  ...['v1', 'v2'].flatMap((version) => [
    read(IN(version)),
    read(`${IN(version)}?limit=1`),
    read(IN(version), { headers: TABLE }),
    read(`${IN(version)}?includeObject=Object`, { headers: TABLE }),
    read(`${IN(version)}/a`, { headers: TABLE }),
    read(IN(version), { headers: accept('PartialObjectMetadataList') }),
    read(`${IN(version)}/b`, { headers: accept('PartialObjectMetadata') }),
    read(`${IN(version)}/a/status`),
    read(`${IN(version)}/a/scale`),
    read(`${IN(version)}/b/scale`),
  ]),
];

const SELECTED: readonly Step[] = ['v1', 'v2'].flatMap((version) =>
  [
    ...[
      'spec.old%3Do',
      'spec.new%3Dn',
      'spec.both%3Db',
      'spec.color%3Dred',
      'spec.shape%3Dround',
      'spec.shape%3D',
      'spec.shape!%3Dround',
    ],
    'spec.color%3Dred,metadata.name%3Db',
  ].map((selector) => read(`${IN(version)}?fieldSelector=${selector}`)),
);

const WATCHED: readonly Step[] = [
  watched(''),
  watched('', { headers: TABLE }),
  watched('', { headers: accept('PartialObjectMetadata') }),
  watched('fieldSelector=spec.shape%3Dround'),
  watched('fieldSelector=spec.old%3Do'),
  watched('sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'),
  watched('sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true', { headers: TABLE }),
];

const CHANGED: readonly Step[] = [
  change(`${IN('v2')}/a`, { spec: { new: 'merged' } }),
  change(`${IN('v2')}/a`, { apiVersion: V2, spec: { new: 'named' } }),
  change(`${IN('v2')}/a`, { apiVersion: V1, spec: { new: 'other' } }),
  change(`${IN('v2')}/a`, [{ op: 'test', path: '/apiVersion', value: V2 }], JSON_PATCH),
  change(`${IN('v2')}/a`, [{ op: 'test', path: '/apiVersion', value: V1 }], JSON_PATCH),
  change(
    `${IN('v2')}/a`,
    [
      { op: 'test', path: '/spec/shape', value: 'round' },
      { op: 'add', path: '/spec/new', value: 'patched' },
    ],
    JSON_PATCH,
  ),
  change(`${IN('v2')}/a`, [{ op: 'replace', path: '/apiVersion', value: V1 }], JSON_PATCH),
  change(`${IN('v2')}/a`, { spec: { new: 'x' } }, STRATEGIC),
  change(`${IN('v2')}/a?dryRun=All`, { spec: { new: 'dry' } }),
  change(`${IN('v2')}/a?fieldValidation=Strict`, { spec: { old: 'unknown here' } }),
  change(`${IN('v2')}/a?fieldValidation=Strict`, { spec: { new: 'known here' } }),
  // Each version's rule has the old object in its own version.
  change(`${IN('v1')}/a`, { spec: { size: 2 } }),
  change(`${IN('v2')}/a`, { spec: { size: 4 } }),
  change(`${IN('v2')}/a`, { spec: { size: 2 } }),
  change(`${IN('v1')}/a`, { spec: { size: 5 } }),
  change(`${IN('v2')}/a/status`, { status: { phase: 'Ready', replicas: 1, selector: 'x=y' } }),
  change(`${IN('v2')}/a/status`, { apiVersion: V1, status: { phase: 'Ready' } }),
  change(`${IN('v2')}/a/scale`, { spec: { replicas: 7 } }),
  change(`${IN('v1')}/a/scale`, { spec: { replicas: 8 } }),
  change(`${IN('v2')}/b/scale`, { spec: { replicas: 9 } }),
  ...['v1', 'v2'].flatMap((version) =>
    ['a', 'b'].flatMap((name) => ['', '/scale'].map((part) => read(`${IN(version)}/${name}${part}`, { managers: true }))),
  ),
  read(`${IN('v1')}/c`, { managers: true }),
];

/** A kind whose versions have the same fields, but other defaults, and other lists. */
const gears = (items: object, color: string): object =>
  schema(
    typed({
      size: whole,
      both: text,
      color: { ...text, default: color },
      replicas: whole,
      items: { type: 'array', items: text, ...items },
    }),
  );
const SCALED = { status: {}, scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' } };
const GEARS = {
  ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata: { name: `gears.${GROUP}` } },
  spec: {
    ...{ group: GROUP, scope: 'Namespaced', names: { plural: 'gears', kind: 'Gear' } },
    versions: [
      { name: 'v1', served: true, storage: true, subresources: SCALED, ...gears({}, 'red') },
      { name: 'v2', served: true, storage: false, subresources: SCALED, ...gears({ 'x-kubernetes-list-type': 'set' }, 'blue') },
    ],
  },
};
const GEARS_AT = `${CRDS}/gears.${GROUP}`;
const GEARS_IN = (version: string): string => `${ROOT}/${version}/namespaces/default/gears`;
const gear = (version: string, spec: object | undefined, more: object = {}): Json => ({
  ...{ apiVersion: `${GROUP}/${version}`, kind: 'Gear', metadata: { name: 'd' } },
  ...(spec && { spec }),
  ...more,
});
const apply = (version: string, body: Json, query: string): Step =>
  change(`${GEARS_IN(version)}/d${query}`, JSON.stringify(body), APPLY);
const both = (): Step[] => ['v1', 'v2'].map((version) => read(`${GEARS_IN(version)}/d`, { managers: true }));

const APPLIED: readonly Step[] = [
  send('POST', CRDS, GEARS),
  read(GEARS_AT, { until: '"InitialNamesAccepted"' }),
  read(`${ROOT}/v2`, { until: '"gears"' }),
  read(GEARS_IN('v1'), { until: 200 }),
  read(GEARS_IN('v2'), { until: 200 }),
  apply('v1', gear('v1', { size: 1, items: ['a'] }), '?fieldManager=one'),
  apply('v2', gear('v2', { size: 1, both: 'two', items: ['b'] }), '?fieldManager=two'),
  apply('v2', gear('v2', { size: 0 }), '?fieldManager=three'),
  apply('v2', gear('v2', { size: 1, items: ['b'] }), '?fieldManager=one'),
  ...both(),
  apply('v2', gear('v1', { size: 0 }), '?fieldManager=one'),
  apply('v1', gear('v1', { items: ['c'] }), '?fieldManager=one'),
  apply('v1', gear('v1', { items: ['c'] }), '?fieldManager=one&force=true'),
  change(`${GEARS_IN('v2')}/d?fieldManager=four`, { spec: { both: 'four' } }),
  change(`${GEARS_IN('v1')}/d?fieldManager=four`, { spec: { both: 'more', color: 'green' } }),
  apply('v2', gear('v2', { both: 'conflict', color: 'conflict' }), '?fieldManager=five'),
  apply('v2', gear('v2', { both: 'dry' }), '?fieldManager=five&force=true&dryRun=All'),
  apply('v2', gear('v2', { both: 'forced' }), '?fieldManager=five&force=true'),
  apply('v2', gear('v2', undefined, { status: { phase: 'Six' } }), '/status?fieldManager=six'),
  apply('v1', gear('v1', undefined, { status: { phase: 'Seven' } }), '/status?fieldManager=seven'),
  change(`${GEARS_IN('v2')}/d/scale?fieldManager=eight`, { spec: { replicas: 3 } }),
  apply('v1', gear('v1', { replicas: 4 }), '?fieldManager=nine'),
  ...both(),
  // What a write of the status does not change has the owners that it had, of either version.
  ...['v1', 'v2'].flatMap((version) => [
    apply(
      version,
      gear(version, { size: 9, both: 'other' }, { status: { phase: version } }),
      '/status?fieldManager=part&force=true',
    ),
    apply(version, gear(version, { size: 9 }, { status: { phase: 'both' } }), '/status?fieldManager=part'),
    ...both(),
  ]),
];
/** The same when v2 is not served any more, and again. */
const UNSERVED: readonly Step[] = [
  send(
    'PATCH',
    GEARS_AT,
    { spec: { versions: GEARS.spec.versions.map((each) => ({ ...each, served: each.name === 'v1' })) } },
    { headers: MERGE },
  ),
  read(`${GEARS_IN('v2')}/d`, { until: 404 }),
  read(`${GEARS_IN('v1')}/d`, { until: 200, managers: true }),
  apply('v1', gear('v1', { both: 'conflict' }), '?fieldManager=ten'),
  apply('v1', gear('v1', { size: 2 }), '?fieldManager=two'),
  change(`${GEARS_IN('v1')}/d/scale?fieldManager=eight`, { spec: { replicas: 5 } }),
  change(`${GEARS_IN('v1')}/d?fieldManager=four`, { spec: { color: 'none' } }),
  send('PATCH', GEARS_AT, { spec: { versions: GEARS.spec.versions } }, { headers: MERGE }),
  read(`${GEARS_IN('v2')}/d`, { until: 200, managers: true }),
  apply('v2', gear('v2', { both: 'conflict' }), '?fieldManager=ten'),
  send('DELETE', GEARS_AT, undefined),
];

const versionsOf = ({ kind, apiVersion, items }: Json): unknown => [
  ...[kind, apiVersion],
  ...items.map((each: Json) => [each.apiVersion, each.metadata.name, each.spec]),
];
const holding = (name: string): Step =>
  post('v1', widget(V1, name, { both: 'held' }, { finalizers: ['example.com/held'], labels: { held: 'yes' } }));

const HELD = { name: 'held', labels: { app: 'held' }, finalizers: ['example.com/held'] };

const DELETED: readonly Step[] = [
  ...['e', 'f', 'g'].map(holding),
  send('DELETE', `${IN('v2')}/e?dryRun=All`, undefined),
  send('DELETE', `${IN('v2')}/e`, undefined, { managers: true }),
  send('DELETE', `${IN('v2')}/e`, { apiVersion: V2, kind: 'DeleteOptions' }),
  send('DELETE', `${IN('v2')}/e`, { apiVersion: V1, kind: 'DeleteOptions' }),
  send('DELETE', `${IN('v2')}/e`, { apiVersion: 'meta.k8s.io/v1', kind: 'DeleteOptions' }),
  send('DELETE', `${IN('v2')}?labelSelector=held%3Dyes&dryRun=All`, undefined, { of: versionsOf }),
  send('DELETE', `${IN('v2')}?labelSelector=held%3Dyes`, undefined, { of: versionsOf }),
  send('DELETE', `${IN('v2')}?fieldSelector=spec.old%3Dheld`, undefined),
  watched('labelSelector=held%3Dyes'),
  send('PATCH', `${IN('v2')}/e`, { metadata: { finalizers: null } }, { headers: MERGE, of: ({ apiVersion }) => apiVersion }),
  change(`${IN('v1')}/f`, [{ op: 'remove', path: '/metadata/finalizers' }], JSON_PATCH),
  read(`${IN('v2')}/e`),
  send('DELETE', `${IN('v2')}/c`, undefined),
  send('DELETE', `${IN('v2')}?labelSelector=app%3Db`, undefined),
  // Many are answered as they were listed, and the last answer is what would have been stored.
  post('v1', { ...widget(V1, 'held', { size: 1 }), metadata: HELD }),
  send('DELETE', `${IN('v2')}?labelSelector=app%3Dheld&dryRun=All`, undefined),
  send('DELETE', `${IN('v2')}?labelSelector=app%3Dheld`, undefined),
  read(`${IN('v2')}/held`),
  change(`${IN('v2')}/held?dryRun=All`, { metadata: { finalizers: null } }),
  change(`${IN('v2')}/held`, { metadata: { finalizers: null } }),
  read(`${IN('v2')}/held`),
];

/** A change of the definition, and until it is in effect. */
const spec = (versions: readonly object[], title: string): Step =>
  send('PATCH', AT, { spec: { versions } }, { headers: MERGE, title });

const MIGRATED: readonly Step[] = [
  spec([ONE, { ...TWO, served: false }], 'v2 is not served'),
  read(`${IN('v2')}/a`, { until: 404 }),
  read(IN('v1'), { until: 200 }),
  read(ROOT),
  spec([ONE, { ...TWO, deprecationWarning: 'use another one' }], 'v2 is served again'),
  read(`${IN('v2')}/a`, { until: 200, managers: true }),
  spec(
    [
      { ...ONE, storage: false },
      { ...TWO, storage: true },
    ],
    'v2 is stored',
  ),
  read(AT, { until: '"v1","v2"' }),
  // Whoever has migrated the objects says so, and is believed until the definition itself is written.
  send('PATCH', `${AT}/status`, { status: { storedVersions: ['v1'] } }, { headers: MERGE }),
  read(AT),
  send('PATCH', `${AT}/status`, { status: { storedVersions: [] } }, { headers: MERGE }),
  send('PATCH', `${AT}/status`, { status: { storedVersions: ['v0'] } }, { headers: MERGE }),
  send('PATCH', AT, { metadata: { labels: { more: 'yes' } } }, { headers: MERGE, title: 'with a version that there is not' }),
  send('PATCH', `${AT}/status`, { status: { storedVersions: ['v1'] } }, { headers: MERGE }),
  send('PATCH', AT, { metadata: { labels: { more: 'yes' } } }, { headers: MERGE, title: 'with a version that there is' }),
  read(IN('v1'), { until: 200 }),
  read(IN('v2'), { until: 200 }),
  post('v1', widget(V1, 'h', { size: 1, old: 'after', both: 'h' })),
  read(`${IN('v2')}/h`, { managers: true }),
  read(IN('v1')),
  read(`${IN('v1')}?fieldSelector=spec.color%3Dblue`),
  read(IN('v2'), { headers: TABLE }),
  change(`${IN('v1')}/a`, { metadata: { labels: { moved: 'yes' } } }),
  read(`${IN('v2')}/a`, { managers: true }),
  spec([{ ...TWO, storage: true }], 'v1 is gone'),
  spec(
    [
      { ...ONE, storage: false, served: false },
      { ...TWO, storage: true },
    ],
    'v1 is not served',
  ),
  read(`${IN('v1')}/a`, { until: 404 }),
  read(IN('v2'), { until: 200 }),
  change(`${IN('v2')}/a`, { spec: { new: 'later' } }),
  read(`${IN('v2')}/a`, { managers: true }),
  send('PATCH', `${AT}/status`, { status: { storedVersions: ['v2'] } }, { headers: MERGE }),
  send('DELETE', AT, undefined),
];

export const VERSIONS: readonly Step[] = [
  ...DEFINED,
  ...WRITTEN,
  ...SELECTED,
  ...WATCHED,
  ...CHANGED,
  ...APPLIED,
  ...UNSERVED,
  ...DELETED,
  ...MIGRATED,
];

const OLD = '/api/v1/namespaces/default/events';
const NEW = '/apis/events.k8s.io/v1/namespaces/default/events';
const REGARDING = { apiVersion: 'v1', kind: 'Pod', name: 'p', namespace: 'default' };
const told = (name: string, more: object = {}): Json => ({
  ...{ apiVersion: 'events.k8s.io/v1', kind: 'Event', metadata: { name, labels: { app: 'told' }, ...more } },
  ...{ eventTime: '2026-01-02T03:04:05.000006Z', reportingController: 'example.com/c', reportingInstance: 'c-0' },
  ...{ action: 'Try', reason: 'Failed', regarding: REGARDING, note: 'a note', type: 'Normal' },
});
const recorded = (name: string, more: object = {}): Json => ({
  ...{ apiVersion: 'v1', kind: 'Event', metadata: { name, labels: { app: 'told' }, ...more }, involvedObject: REGARDING },
  ...{ reason: 'Failed', message: 'a message', type: 'Normal', count: 2, source: { component: 'c' } },
  ...{ firstTimestamp: '2026-01-02T03:04:05Z', lastTimestamp: '2026-01-02T03:04:06Z' },
});
const ofEvents = (make: (path: string) => Step): Step[] => [OLD, NEW].map(make);
const rowsOf = ({ rows }: Json): unknown => rows;
const PARTIAL = accept('PartialObjectMetadataList');

/** Events have two forms in two groups. Each is asked for as what it was not written as. */
export const TWO_GROUPS: readonly Step[] = [
  send('POST', NEW, told('new'), { managers: true }),
  send('POST', OLD, recorded('old'), { managers: true }),
  send('POST', OLD, { ...recorded('bare'), source: {}, firstTimestamp: null, lastTimestamp: null, count: 0 }, { managers: true }),
  // A write in one group forgets the managers of the other.
  change(`${NEW}/bare?fieldManager=other`, { metadata: { labels: { more: 'yes' } } }),
  change(`${OLD}/bare?fieldManager=back`, { count: 3 }),
  read(`${NEW}/bare`, { managers: true }),
  send('DELETE', `${OLD}/bare`, undefined),
  send('POST', `${NEW}?dryRun=All`, told('dry')),
  ...ofEvents((path) => read(`${path}/new`)),
  ...ofEvents((path) => read(`${path}/old`)),
  ...ofEvents((path) => read(`${path}?labelSelector=app%3Dtold`)),
  ...ofEvents((path) => read(`${path}?labelSelector=app%3Dtold`, { headers: TABLE, of: rowsOf })),
  ...ofEvents((path) => read(`${path}?labelSelector=app%3Dtold&includeObject=Object`, { headers: TABLE, of: rowsOf })),
  ...ofEvents((path) => read(`${path}?labelSelector=app%3Dtold`, { headers: PARTIAL })),
  ...ofEvents((path) => read(`${path}?labelSelector=app%3Dtold&watch=1&timeoutSeconds=1`)),
  ...ofEvents((path) =>
    read(`${path}?labelSelector=app%3Dtold&watch=1&timeoutSeconds=1`, {
      headers: TABLE,
      of: (lines) => lines.map(({ type, object }: Json) => [type, object.rows]),
    }),
  ),
  ...[
    ...[
      'involvedObject.name%3Dp',
      'regarding.name%3Dp',
      'reportingComponent%3Dexample.com/c',
      'reportingController%3Dexample.com/c',
    ],
    ...['source%3Dc', 'reason%3DFailed', 'type%3DNormal'],
  ].flatMap((selector) => ofEvents((path) => read(`${path}?labelSelector=app%3Dtold&fieldSelector=${selector}`))),
  change(`${OLD}/new`, { message: 'changed' }),
  change(`${OLD}/new`, { note: 'unknown here' }),
  change(`${NEW}/new`, { series: { count: 3, lastObservedTime: '2026-01-02T03:04:07.000006Z' } }),
  change(`${NEW}/new`, [{ op: 'test', path: '/apiVersion', value: 'events.k8s.io/v1' }], JSON_PATCH),
  change(`${NEW}/old`, { metadata: { labels: { more: 'yes' } } }),
  change(`${NEW}/old`, { metadata: { annotations: { a: 'b' } } }, STRATEGIC),
  change(`${NEW}/new?fieldManager=one`, JSON.stringify({ ...told('new'), note: undefined }), APPLY),
  change(
    `${OLD}/new?fieldManager=two&force=true`,
    JSON.stringify({
      ...{ apiVersion: 'v1', kind: 'Event', metadata: { name: 'new' } },
      message: 'mine',
      involvedObject: REGARDING,
    }),
    APPLY,
  ),
  ...ofEvents((path) => read(`${path}/new`)),
  change(`${OLD}/new`, { metadata: { finalizers: ['example.com/held'] } }),
  send('DELETE', `${NEW}/new`, undefined),
  ...ofEvents((path) => send('DELETE', `${path}?labelSelector=app%3Dtold&dryRun=All`, undefined)),
  send('DELETE', `${NEW}/old`, undefined),
  change(`${NEW}/new`, { metadata: { finalizers: null } }),
  send('POST', OLD, recorded('late')),
  send('DELETE', `${NEW}?fieldSelector=regarding.name%3Dp&labelSelector=app%3Dtold`, undefined),
];
