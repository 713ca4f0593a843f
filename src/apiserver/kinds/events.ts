/**
 * Events: reports of what happened to objects. Two APIs, `events` of `v1` and of `events.k8s.io/v1`, have different names for the
 * same fields. Each event is stored once, in the form of `v1`, and can be read and written in either.
 */

import type { KubernetesObject } from '../../cache/object.ts';
import { comparing } from '../../storage/json.ts';
import { inPieces, type Work } from '../../watch/fair-queue.ts';
import type { Convert, FieldCause, PrinterColumn, ResourceDefinition } from '../definition.ts';
import { jsonStart, ours } from '../validation/causes.ts';
import { qualifiedFaults } from '../validation/formats.ts';
import { required } from './common.ts';

/** Upstream: `core.v1.ObjectReference`. */
export interface ObjectReference {
  readonly kind?: string | undefined;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly uid?: string | undefined;
  readonly apiVersion?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly fieldPath?: string | undefined;
}

/** Upstream: `core.v1.Event`. Times are null where there is none. */
export interface CoreEvent extends KubernetesObject {
  readonly involvedObject: ObjectReference;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly source?: { readonly component?: string | undefined; readonly host?: string | undefined } | undefined;
  readonly firstTimestamp?: string | null | undefined;
  readonly lastTimestamp?: string | null | undefined;
  readonly count?: number | undefined;
  /** `Normal` or `Warning`. */
  readonly type?: string | undefined;
  readonly eventTime?: string | null | undefined;
  readonly series?: { readonly count?: number | undefined; readonly lastObservedTime?: string | null | undefined } | undefined;
  readonly action?: string | undefined;
  readonly related?: ObjectReference | undefined;
  readonly reportingComponent?: string | undefined;
  readonly reportingInstance?: string | undefined;
}

/** The names in `events.k8s.io/v1` of fields that have another name in `v1`, in the order of its fields. */
const RENAMED: Readonly<Record<string, string>> = {
  reportingController: 'reportingComponent',
  regarding: 'involvedObject',
  note: 'message',
  deprecatedSource: 'source',
  deprecatedFirstTimestamp: 'firstTimestamp',
  deprecatedLastTimestamp: 'lastTimestamp',
  deprecatedCount: 'count',
};
const BACK: Readonly<Record<string, string>> = Object.fromEntries(Object.entries(RENAMED).map(([to, from]) => [from, to]));

const V1 = 'v1';
const EVENTS_V1 = 'events.k8s.io/v1';

function renamed(object: KubernetesObject, names: Readonly<Record<string, string>>): Record<string, unknown> {
  const entries = Object.entries(object).map(([name, value]) => [Object.hasOwn(names, name) ? names[name] : name, value]);
  return Object.fromEntries(entries);
}

function reportersOf(event: KubernetesObject): object {
  const { reportingController, reportingInstance } = event as { reportingController?: string; reportingInstance?: string };
  return {
    ...(reportingController !== undefined && { reportingComponent: reportingController }),
    ...(reportingInstance !== undefined && { reportingInstance }),
  };
}

/** An event in the other form. */
const convert: Convert = (event, apiVersion) => {
  if (apiVersion === event.apiVersion) return event;
  const start = { apiVersion, kind: event.kind };
  if (apiVersion === V1) {
    return {
      ...start,
      ...renamed(event, RENAMED),
      apiVersion,
      ...{ reportingComponent: '', reportingInstance: '' },
      ...reportersOf(event),
    };
  }
  const made = renamed(event, BACK);
  // One form always has these; the other only if they are not empty.
  for (const name of ['reportingController', 'reportingInstance']) if (made[name] === '') delete made[name];
  return { ...start, ...made, apiVersion };
};

/** Where and as what a resource is stored, if it is an alias of another. */
export function aliasOf({ group, plural }: Pick<ResourceDefinition, 'group' | 'plural'>): {
  readonly prefix?: string;
  readonly storedAs?: string;
  readonly convert?: Convert;
} {
  if (plural !== 'events') return {};
  if (group === '') return { convert };
  return group === 'events.k8s.io' ? { prefix: EVENTS_PREFIX, storedAs: V1, convert } : {};
}

/** What the keys of all events begin with. */
export const EVENTS_PREFIX = 'core/events/';

const inV1 = (event: CoreEvent): CoreEvent => (event.apiVersion === EVENTS_V1 ? (convert(event, V1) as CoreEvent) : event);

type Read = (event: CoreEvent) => string;
const of =
  (name: keyof ObjectReference): Read =>
  ({ involvedObject }) =>
    involvedObject?.[name] ?? '';
const REFERENCE = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'] as const;
const referenceFields = (member: string): Readonly<Record<string, Read>> =>
  Object.fromEntries(REFERENCE.map((name) => [`${member}.${name}`, of(name)]));
const SHARED_FIELDS: Readonly<Record<string, Read>> = { reason: ({ reason = '' }) => reason, type: ({ type = '' }) => type };
const reporter: Read = ({ reportingComponent = '' }) => reportingComponent;

/** The time from which a column shows the age. */
const firstSeen = ({ firstTimestamp, eventTime }: CoreEvent): string | undefined => firstTimestamp ?? eventTime ?? undefined;
const lastSeen = (event: CoreEvent): string | undefined =>
  event.series ? (event.series.lastObservedTime ?? undefined) : (event.lastTimestamp ?? firstSeen(event));

function sourceOf({ source = {}, reportingComponent, reportingInstance }: CoreEvent): string {
  const [component, instance] = [source.component || reportingComponent || '', source.host || reportingInstance || ''];
  return instance === '' ? component : `${component}, ${instance}`;
}

function targetOf({ involvedObject: { kind = '', name = '' } = {} }: CoreEvent): string {
  return name === '' ? kind.toLowerCase() : `${kind.toLowerCase()}/${name}`;
}

const wide = { priority: 1 } as const;

/** Columns for the stored form. They leave out the name, which nobody knows. Upstream: `printEvent`. */
const COLUMNS: readonly PrinterColumn<CoreEvent>[] = [
  { name: 'Last Seen', type: 'date', description: 'When it happened last.', value: lastSeen },
  { name: 'Type', type: 'string', description: 'Normal or Warning.', value: ({ type = '' }) => type },
  { name: 'Reason', type: 'string', description: 'Why, in one word.', value: ({ reason = '' }) => reason },
  { name: 'Object', type: 'string', description: 'What it is about.', value: targetOf },
  { name: 'Subobject', type: 'string', ...wide, description: 'A part of that.', value: of('fieldPath') },
  { name: 'Source', type: 'string', ...wide, description: 'Who reports it.', value: sourceOf },
  { name: 'Message', type: 'string', description: 'Why, in words.', value: ({ message = '' }) => message.trim() },
  { name: 'First Seen', type: 'date', ...wide, description: 'When it happened first.', value: firstSeen },
  {
    ...{ name: 'Count', type: 'string', ...wide, description: 'How often it has happened.' },
    value: ({ series, count }) => (series ? (series.count ?? 0) : count || 1),
  },
  {
    name: 'Name',
    type: 'string',
    format: 'name',
    ...wide,
    description: 'The name of the report.',
    value: ({ metadata }) => metadata?.name,
  },
];

/** A column of the stored form, made to show objects of either. */
const ofEither = (column: PrinterColumn<CoreEvent>): PrinterColumn<CoreEvent> => ({
  ...column,
  value: (event) => column.value(inV1(event)),
});

const COMMON = { version: 'v1', plural: 'events', kind: 'Event', shortNames: ['ev'] } as const;

/**
 * `events` of `v1` and of `events.k8s.io/v1`, which are the same objects: what is recorded with one can be read with the other.
 * They expire after `eventTtlMs`.
 */
export const EVENTS: readonly [ResourceDefinition<CoreEvent>, ResourceDefinition<CoreEvent>] = [
  {
    ...COMMON,
    group: '',
    columns: COLUMNS,
    fields: {
      ...referenceFields('involvedObject'),
      ...SHARED_FIELDS,
      reportingComponent: reporter,
      source: ({ source, reportingComponent }) => source?.component || reportingComponent || '',
    },
    validate: ours((event) => causesIn(event, 'reportingComponent')),
  },
  {
    ...COMMON,
    group: 'events.k8s.io',
    columns: COLUMNS.map(ofEither),
    fields: { ...referenceFields('regarding'), ...SHARED_FIELDS, reportingController: reporter },
    validate: ours((event, old) => inPieces(strictCauses(inV1(event), old && inV1(old)))),
  },
];

const MAX_CHARS = 128;
const MAX_MESSAGE_CHARS = 1_024;
const utf8 = new TextEncoder();
const sizeOf = (text: string): number => (text.length > MAX_MESSAGE_CHARS ? text.length : utf8.encode(text).length);

const invalidValue = (field: string, value: string, why: string): FieldCause => ({
  field,
  message: `Invalid value: ${JSON.stringify(value.slice(0, 300))}: ${why}`,
});

/** Causes that apply to both APIs. Upstream: `legacyValidateEvent`. */
function causesIn(event: CoreEvent, reporterField: string): FieldCause[] {
  const { metadata, involvedObject, eventTime, reason = '', message = '', action = '' } = event;
  const { reportingComponent = '', reportingInstance = '' } = event;
  const [own, told] = [metadata?.namespace ?? '', involvedObject?.namespace ?? ''];
  const mismatch = [invalidValue('involvedObject.namespace', told, 'does not match event.namespace')];
  if (!eventTime) {
    const matches = told === '' ? own === '' || own === 'default' : told === own;
    return matches ? [] : mismatch;
  }
  const limited = (field: string, value: string, most: number): FieldCause[] =>
    sizeOf(value) > most ? [invalidValue(field, '', `can have at most ${most} characters`)] : [];
  const named = (field: string, value: string): FieldCause[] => (value === '' ? [required(field)] : []);
  return [
    ...(told === '' && own !== 'default' && own !== 'kube-system' ? mismatch : []),
    ...named(reporterField, reportingComponent),
    ...qualifiedFaults(reportingComponent).map((why) => invalidValue(reporterField, reportingComponent, why)),
    ...named('reportingInstance', reportingInstance),
    ...limited('reportingInstance', reportingInstance, MAX_CHARS),
    ...named('action', action),
    ...limited('action', action, MAX_CHARS),
    ...named('reason', reason),
    ...limited('reason', reason, MAX_CHARS),
    ...limited('message', message, MAX_MESSAGE_CHARS),
  ];
}

const OF_OLD = ['firstTimestamp', 'lastTimestamp', 'count'] as const;
/** The fields that an update with the new API may not change, in upstream's order and with upstream's names. */
const FIXED: readonly (readonly [member: keyof CoreEvent, field: string])[] = [
  ...(
    ['involvedObject', 'reason', 'message', 'source', 'firstTimestamp', 'lastTimestamp', 'count', 'reason', 'type'] as const
  ).map((name) => [name, name] as const),
  ...(['eventTime', 'action', 'related'] as const).map((name) => [name, name] as const),
  ['reportingComponent', 'reportingController'],
  ['reportingInstance', 'reportingInstance'],
];

/** Causes that apply only to the new API. Upstream: `ValidateEventCreate`, `ValidateEventUpdate`. */
function* strictCauses(event: CoreEvent, old: CoreEvent | undefined): Work<FieldCause[]> {
  const causes = causesIn(event, 'reportingController');
  const { series, type = '', source = {} } = event;
  const seriesCauses = (): void => {
    if (series === undefined) return;
    if ((series.count ?? 0) < 2) causes.push(invalidValue('series.count', '', 'should be at least 2'));
    if (!series.lastObservedTime) causes.push(required('series.lastObservedTime'));
  };
  if (old !== undefined) {
    if (!(yield* comparing(series ?? {}, old.series ?? {}))) seriesCauses();
    for (const [member, field] of FIXED) {
      if (yield* comparing({ of: event[member] ?? null }, { of: old[member] ?? null })) continue;
      const value = event[member];
      const shown = value === undefined || value === null ? 'null' : jsonStart(value, 300);
      causes.push({ field, message: `Invalid value: ${shown}: field is immutable` });
    }
    return causes;
  }
  seriesCauses();
  if (!event.eventTime) causes.push(required('eventTime'));
  if (type !== 'Normal' && type !== 'Warning') causes.push(invalidValue('type', '', `has invalid value: ${type.slice(0, 300)}`));
  for (const name of OF_OLD) if (event[name]) causes.push(invalidValue(name, '', 'needs to be unset'));
  if (source.component || source.host) causes.push(invalidValue('source', '', 'needs to be unset'));
  return causes;
}
