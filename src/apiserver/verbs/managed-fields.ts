/**
 * Who manages which fields of an object, its `metadata.managedFields`: whether a write is tracked, under which name, and what it
 * results in. The algorithm is in `src/apply`; this file connects it with the verbs.
 *
 *     create, update, patch ---> tracked? --- no ---> none: an object without managers costs nothing
 *                                   | yes
 *     apply ------------------> FieldManager ---> managedFields ---> the same except for times? then nothing is written
 *
 * - Tracking begins when an object is created by a named manager, or is applied; from then on, every write of it is tracked.
 *   Other objects have no managers. Upstream: `skipNonAppliedManager`.
 * - A Scale is a view of the object, so its managers are translated on the way in and out. Upstream: `ScaleHandler`.
 */
import { ApplyConflict, conflictCauses } from '../../apply/conflicts.ts';
import { FieldManager, type WriteBy } from '../../apply/field-manager.ts';
import { checkOwnerCount, shownKind } from '../../apply/managers.ts';
import { StoredParts } from '../../apply/quick.ts';
import { comparing } from '../../storage/json.ts';
import { noteConstant } from '../../storage/shared.ts';
import { refused } from '../../storage/statuses.ts';
import type { StatusCause } from '../../watch/event.ts';
import type { Work } from '../../watch/fair-queue.ts';
import { badRequest } from '../api-status.ts';
import type { FieldCause } from '../definition.ts';
import { type DocumentedKind, OPEN, schemaOf } from '../documents/schemas.ts';
import { zeroOf } from '../kinds/shape.ts';
import { messageOf, typed } from '../kinds/tables.ts';
import { checkingParts, type Json } from '../request/json.ts';
import { hasProtobuf } from '../request/protobuf.ts';
import { type ResourceContext, timestamp } from '../resource-info.ts';
import { isAction, rowOf, SCALE_REPLICAS, type Subresource } from '../subresources.ts';
import { faultOfManager, isPrintable, MAX_MANAGER_BYTES, type Mutable, utf8Bytes } from './metadata.ts';
import { converting } from './read.ts';

/** Who writes. */
export interface Writer {
  /** The manager that the request names. */
  readonly fieldManager?: string | undefined;
  /** The program that sends the request: its name is used if no manager is named. */
  readonly userAgent?: string | undefined;
  /** Tells a client what may be a mistake, although it is accepted. */
  readonly warn?: ((text: string) => void) | undefined;
}

/** An entry of `managedFields`. Upstream: `metav1.ManagedFieldsEntry`. */
type Entry = Json & {
  readonly manager?: string;
  readonly operation?: string;
  readonly apiVersion?: string;
  readonly subresource?: string;
  readonly time?: string;
  readonly fieldsV1?: Json;
};

type Entries = readonly Entry[];

/** What is wrong with the name of a manager. Upstream: `ValidateFieldManager`. */
export function managerCauses(name: string | undefined): FieldCause[] {
  const fault = name && faultOfManager(name);
  return fault ? [{ field: 'fieldManager', message: fault }] : [];
}

const MAX_AGENT_CHARS = 1_024;

/** A program as a manager: its name before the first slash, without unprintable characters. Upstream: `prefixFromUserAgent`. */
function toManager(userAgent: string): string {
  let name = '';
  let bytes = 0;
  for (const char of userAgent.slice(0, MAX_AGENT_CHARS).split('/', 1)[0] as string) {
    if (!isPrintable(char)) continue;
    bytes += utf8Bytes(char);
    if (bytes > MAX_MANAGER_BYTES) break;
    name += char;
  }
  return name;
}

interface Written {
  /** The object before; undefined: it is created. */
  readonly live: Mutable | undefined;
  /** What was sent, as it was sent. */
  readonly sent: unknown;
  /** The same in the form in which it is stored. */
  readonly object: Mutable;
  readonly row: Subresource;
  /** `applied`: `sent` is the result of an apply, and so has its managers already. */
  readonly terms: { readonly writer?: Writer | undefined; readonly applied?: boolean | undefined };
}

const entriesOf = (object: unknown): Entries | undefined | null =>
  (object as { metadata?: { managedFields?: Entries | null } | null } | undefined)?.metadata?.managedFields;

export function* managedFieldsAfter(context: ResourceContext, written: Written): Work<Entries | undefined> {
  const { live, object, row, terms } = written;
  const { writer } = terms;
  if (terms.applied) return objectEntries(context, live, { entries: entriesOf(written.sent) ?? [], row });
  const own = entriesOf(live);
  if (isAction(row)) return own ?? undefined;
  const asked = row.name === '' ? askedOf(context, written.sent) : undefined;
  const begins = live === undefined && (context.tracksAll === true || Boolean(writer?.fieldManager));
  if (!begins && !own?.length && !asked?.length) return undefined;
  const sent = { ...object, metadata: { ...object.metadata, managedFields: asked } };
  const updated = yield* managerOf(context, row).updated(live && viewed(context, live, row), sent, by(context, row, writer));
  return objectEntries(context, live, { entries: entriesOf(updated) ?? [], row });
}

/** The managers that a client sends itself. A subresource cannot change them. */
function askedOf({ info }: ResourceContext, sent: unknown): Entries | undefined {
  // Go reads null as an empty entry.
  const asked = entriesOf(sent)?.map((entry: Entry | null) => entry ?? {});
  if (asked) checkOwnerCount(asked.length);
  // For kinds that are not Go types, upstream ignores an empty list: only a list with an empty entry clears the managers.
  return asked?.length === 0 && !hasProtobuf(info) ? undefined : asked;
}

function by({ info, now }: ResourceContext, row: Subresource, writer: Writer | undefined): WriteBy {
  const { fieldManager, userAgent = '' } = writer ?? {};
  const manager = fieldManager || toManager(userAgent) || 'unknown';
  return { manager, subresource: row.name, apiVersion: (row.kind ?? info).apiVersion, time: timestamp(now()) };
}

export interface Applying {
  readonly config: unknown;
  readonly row: Subresource;
  readonly writer: Writer;
  /** Take over what others manage. */
  readonly force: boolean;
}

/** Applies a configuration to a stored object. Refuses an invalid one. */
export function toApply(context: ResourceContext, { config, row, writer, force }: Applying): (live?: Mutable) => Work<Json> {
  const { info } = context;
  const kind = row.kind ?? info;
  const { apiVersion = '', kind: name = '' } = (config ?? {}) as { apiVersion?: unknown; kind?: unknown };
  if (apiVersion !== kind.apiVersion || name !== kind.kind)
    throw badRequest(`invalid object type: ${shownKind(apiVersion, name)}`);
  return function* (live) {
    const terms = { ...by(context, row, writer), force };
    try {
      const applied = yield* managerOf(context, row).applied(live && viewed(context, live, row), config as Json, terms);
      yield* checkingParts(applied);
      for (const { fieldsV1 } of entriesOf(applied) ?? []) if (fieldsV1) noteConstant(fieldsV1);
      // Converts write-only fields, such as a Secret's `stringData`.
      return (yield* typed(kind, applied)) as Json;
    } catch (error) {
      if (!(error instanceof ApplyConflict)) throw error;
      const causes = conflictCauses(error.conflicts) as readonly StatusCause[];
      throw refused(409, 'Conflict', error.message, { causes });
    }
  };
}

type Listed = readonly object[] | undefined;

/**
 * Whether two lists differ only in times: a write that changes nothing else is not stored. Upstream:
 * `IgnoreManagedFieldsTimestampsTransformer`.
 */
export function* sameButTimes(one: Listed, other: Listed): Work<boolean> {
  if (one === other) return true;
  if (one === undefined || other === undefined || one.length !== other.length) return false;
  for (const [at, entry] of one.entries()) if (!(yield* comparing(entry, other[at], TIME))) return false;
  return true;
}

const TIME = ['time'] as const;

const managers: WeakMap<object, Map<string, FieldManager>> = new WeakMap();

/** The field manager of a kind, or of a subresource with a kind of its own. */
function managerOf({ info, versions }: ResourceContext, { kind }: Subresource): FieldManager {
  const { apiVersion } = kind ?? info;
  const known = managers.get(info) ?? new Map<string, FieldManager>();
  managers.set(info, known);
  let manager = known.get(apiVersion);
  if (manager === undefined) {
    // Here, upstream does not convert between groups: it forgets the managers of events in the other one.
    const others = kind ? [] : (versions?.() ?? []).filter(({ group }) => group === info.group);
    const shape = messageOf(kind ?? info);
    manager = new FieldManager({
      ...{ schema: knownSchema(kind ?? info), apiVersion, empty: shape && zeroOf(shape), stored: new StoredParts() },
      reset: (subresource, version) => {
        if (kind || rowOf(info, subresource || undefined)?.isPart) return [];
        if (subresource === '') return version === apiVersion ? info.apart : [];
        // Upstream: `getStatusResetFields`.
        const ofVersion = version === apiVersion ? info : others.find((each) => each.apiVersion === version);
        const asked = ofVersion && rowOf(ofVersion, subresource);
        return asked ? (asked.keeps ?? (info.group === '' ? ['spec'] : ['metadata', 'spec'])) : [];
      },
      versions: Object.fromEntries(others.map((each) => [each.apiVersion, knownSchema(each)])),
      convert: info.convert && ((object, version) => converting(info, object, version)),
    });
    known.set(apiVersion, manager);
  }
  return manager;
}

/** The published schema of a kind; undefined if there is none. */
function knownSchema(kind: DocumentedKind): Json | undefined {
  const schema = schemaOf(kind);
  return kind.schema === undefined && schema[OPEN] === true ? undefined : schema;
}

/** An object as it is written at a row, with the managers of what the row shows. */
function viewed(context: ResourceContext, live: Mutable, row: Subresource): Json {
  const seen = row.view(live, true) as Mutable;
  const paths = row.replicas && pathsOf(context, row);
  if (paths === undefined) return seen;
  const entries = (entriesOf(live) ?? []).flatMap((entry) => {
    const path = paths.get(entry.apiVersion ?? '');
    return path && has(entry.fieldsV1, path) ? [{ ...entry, ...SCALED }] : [];
  });
  return { ...seen, metadata: { ...seen.metadata, managedFields: entries } };
}

const SCALED = { apiVersion: 'autoscaling/v1', fieldsV1: { 'f:spec': { 'f:replicas': {} } } } as const;

/** The path of the replicas in each version of a kind; undefined for a version without a Scale. */
function pathsOf({ info, versions }: ResourceContext, row: Subresource): Map<string, readonly string[] | undefined> {
  const of = (rows: readonly Subresource[]): readonly string[] | undefined =>
    rows.find(({ name }) => name === row.name)?.replicas?.map((step) => `f:${step}`);
  const all = [...(versions?.() ?? []), info];
  return new Map(all.map(({ apiVersion, subresources }) => [apiVersion, of(subresources)]));
}

/** The managed fields of an object, given those of a row. The replicas have only the managers of the Scale. */
function objectEntries(
  context: ResourceContext,
  live: Mutable | undefined,
  { entries, row }: { entries: Entries; row: Subresource },
): Entries | undefined {
  const made = row.replicas ? withScaled(entriesOf(live) ?? [], { entries, ...context, paths: pathsOf(context, row) }) : entries;
  return made.length === 0 ? undefined : made;
}

function withScaled(
  parent: Entries,
  { entries, info, paths }: Pick<ResourceContext, 'info'> & { entries: Entries; paths: ReturnType<typeof pathsOf> },
): Entries {
  const scaled = new Map(entries.map((entry) => [idOf(entry), entry]));
  const made: Entry[] = [];
  for (const entry of parent) {
    const { apiVersion = '', fieldsV1 } = entry;
    if (!paths.has(apiVersion)) continue;
    const path = paths.get(apiVersion);
    if (path === undefined || !has(fieldsV1, path) || scaled.delete(idOf(entry))) made.push(entry);
    else {
      const rest = without(fieldsV1 as Json, path);
      if (rest !== undefined) made.push({ ...entry, fieldsV1: rest });
    }
  }
  const own = paths.get(info.apiVersion) as readonly string[];
  const fieldsV1 = own.reduceRight<Json>((inner, step) => ({ [step]: inner }), {});
  for (const { time: _, ...entry } of scaled.values()) {
    if (has(entry.fieldsV1, SCALE_REPLICAS)) made.push({ ...entry, apiVersion: info.apiVersion, fieldsV1 });
  }
  return made.sort(inOrder);
}

/** What tells entries apart. An applier has one entry for all versions. Upstream: `BuildManagerIdentifier`. */
const idOf = ({ manager, operation, apiVersion, subresource }: Entry): string =>
  JSON.stringify([manager, operation, operation === 'Apply' ? '' : apiVersion, subresource]);

/** Upstream: `sortEncodedManagedFields`. */
function inOrder(one: Entry, other: Entry): number {
  const order = (a: string = '', b: string = ''): number => (a < b ? -1 : a > b ? 1 : 0);
  return (
    order(one.operation, other.operation) ||
    order(one.time, other.time) ||
    order(one.manager, other.manager) ||
    order(one.apiVersion, other.apiVersion) ||
    order(one.subresource, other.subresource)
  );
}

/** Whether a set in the form of FieldsV1 has a path. */
function has(fields: Json | undefined, path: readonly string[]): boolean {
  let at: unknown = fields;
  for (const step of path) at = Object.hasOwn((at ?? {}) as object, step) ? (at as Json)[step] : undefined;
  return at !== undefined && (Object.keys(at as object).length === 0 || Object.hasOwn(at as object, '.'));
}

/** A set without a path; undefined if nothing is left. */
function without(fields: Json, [step = '', ...rest]: readonly string[]): Json | undefined {
  const { [step]: inner, ...others } = fields;
  const left = rest.length === 0 ? withoutSelf(inner as Json) : without(inner as Json, rest);
  if (left !== undefined) return { ...fields, [step]: left };
  const names = Object.keys(others);
  if (names.length === 0) return undefined;
  // A member with nothing below it is written as `{}`.
  return names.length === 1 && names[0] === '.' ? {} : others;
}

function withoutSelf({ '.': _, ...below }: Json): Json | undefined {
  return Object.keys(below).length === 0 ? undefined : below;
}
