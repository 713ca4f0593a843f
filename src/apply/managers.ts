/**
 * `metadata.managedFields`: who owns which fields of an object. An owner is a manager's name with the operation, the version (unless
 * it applies) and the subresource by which it writes.
 */
import type { Recent } from '../storage/shared.ts';
import { refused } from '../storage/statuses.ts';
import { isRecord } from '../watch/errors.ts';
import type { Work } from '../watch/fair-queue.ts';
import { canonical, compareText, type FieldSet, fromFields, ofExact, toFields, unionOf } from './field-set.ts';
import { type Type, TypedError } from './types.ts';

export type Json = Readonly<Record<string, unknown>>;

export interface Owner {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly apiVersion: string;
  readonly subresource: string;
  readonly time: string | undefined;
  readonly set: FieldSet;
  /** What was read, if it would be written in the same way. */
  readonly read?: { readonly set: FieldSet; readonly fields: Json } | undefined;
}

/** Small FieldsV1 that have been read, and would be written in the same way, with the type that they fit. They never change. */
export type KnownFields = Recent<Type | null>;

/** All owners of an object, by their ids. */
export type Owners = Map<string, Owner>;

/** The id of an owner, whose order is upstream's. */
export function ownerId({ manager, operation, apiVersion, subresource }: Omit<Owner, 'set' | 'time' | 'read'>): string {
  const members = [
    manager && `"manager":${canonical(manager)}`,
    `"operation":"${operation}"`,
    operation === 'Update' && `"apiVersion":${canonical(apiVersion)}`,
    subresource && `"subresource":${canonical(subresource)}`,
  ];
  return `{${members.filter(Boolean).join(',')}}`;
}

/** An owner as upstream's messages name it. */
export function shownOwner({ manager, operation, apiVersion, subresource }: Owner): string {
  const name = `${JSON.stringify(manager)}${subresource && ` with subresource ${JSON.stringify(subresource)}`}`;
  return operation === 'Update' ? `${name} using ${apiVersion}` : name;
}

const metadataOf = (object: Json | undefined): Json => (isRecord(object?.metadata) ? object.metadata : {});

/** The entries of an object's `metadata.managedFields`; undefined if it has none, or they are malformed. */
export function entriesOf(object: Json | undefined): readonly Json[] | undefined {
  const { managedFields } = metadataOf(object);
  return Array.isArray(managedFields) && managedFields.every(isEntry) ? managedFields : undefined;
}

const TEXTS = ['manager', 'operation', 'apiVersion', 'fieldsType', 'subresource'] as const;

function isEntry(entry: unknown): entry is Json {
  if (!isRecord(entry)) return false;
  const { time } = entry;
  if (time !== undefined && time !== null && !(typeof time === 'string' && !Number.isNaN(Date.parse(time)))) return false;
  return TEXTS.every((name) => entry[name] === undefined || entry[name] === null || typeof entry[name] === 'string');
}

/** Whether a request clears all owners: with an empty list, or one with an empty entry. */
export function isReset(entries: readonly Json[]): boolean {
  const [first] = entries;
  return entries.length < 2 && Object.values(first ?? {}).every((value) => value === '' || value === null);
}

/** The most owners that an object has. */
export const MAX_MANAGERS = 1_000;

/** Refuses a write that would result in more owners than can be read. */
export function checkOwnerCount(count: number): void {
  if (count > MAX_MANAGERS)
    throw refused(422, 'Invalid', `metadata.managedFields: Too many: ${count}: must have at most ${MAX_MANAGERS} items`);
}

/** Reads the entries of `metadata.managedFields`. Throws an error if one of them is invalid. */
export function* fromEntries(entries: readonly Json[], known?: KnownFields): Work<Owners> {
  if (entries.length > MAX_MANAGERS) throw new TypedError(`expected at most ${MAX_MANAGERS} entries`);
  const owners: Owners = new Map();
  for (const entry of entries) {
    const [operation, apiVersion] = [entry.operation, textOf(entry.apiVersion)];
    if (operation !== 'Apply' && operation !== 'Update') throw new TypedError('operation must be `Apply` or `Update`');
    if (apiVersion === '') throw new TypedError('apiVersion must not be empty');
    if (entry.fieldsType !== 'FieldsV1') throw new TypedError(`invalid fieldsType ${JSON.stringify(textOf(entry.fieldsType))}`);
    const fields = isRecord(entry.fieldsV1) ? entry.fieldsV1 : undefined;
    const isKnown = fields && known?.get(fields) !== undefined;
    const { set, isExact, size } = isKnown ? ofExact(fields) : yield* fromFields(entry.fieldsV1);
    if (!isKnown && fields && isExact && size <= MAX_KNOWN_FIELDS) known?.set(fields, null);
    const time = typeof entry.time === 'string' ? entry.time : undefined;
    const [manager, subresource] = [textOf(entry.manager), textOf(entry.subresource)];
    const read = isExact && fields ? { set, fields } : undefined;
    const owner: Owner = { manager, operation, apiVersion, subresource, time, set, read };
    owners.set(ownerId(owner), owner);
  }
  return owners;
}

const MAX_KNOWN_FIELDS = 4_096;

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const secondsOf = (time: string | undefined): number => (time === undefined ? 0 : Math.floor(Date.parse(time) / 1_000));

/** The entries in upstream's order. */
export function* toEntries(owners: Owners): Work<readonly Json[]> {
  const sorted = [...owners.values()].sort(
    (one, other) =>
      compareText(one.operation, other.operation) ||
      secondsOf(one.time) - secondsOf(other.time) ||
      compareText(one.manager, other.manager) ||
      compareText(one.apiVersion, other.apiVersion) ||
      compareText(one.subresource, other.subresource),
  );
  const entries: Json[] = [];
  for (const { manager, operation, apiVersion, time, subresource, set, read } of sorted) {
    entries.push({
      ...(manager && { manager }),
      operation,
      apiVersion,
      ...(time !== undefined && { time }),
      fieldsType: 'FieldsV1',
      fieldsV1: read?.set === set ? read.fields : yield* toFields(set),
      ...(subresource && { subresource }),
    });
  }
  return entries;
}

/** An object with other entries; without any, it has no `managedFields`. */
export function withEntries(object: Json, entries: readonly Json[] | undefined): Json {
  const { managedFields: _, ...metadata } = metadataOf(object);
  if (!entries?.length && !isRecord(object.metadata)) return object;
  return { ...object, metadata: entries?.length ? { ...metadata, managedFields: entries } : metadata };
}

/** The most owners by updates that an object may have. */
const MAX_UPDATERS = 10;
const ANCIENT = 'ancient-changes';

/** Merges the oldest owners by updates, per version, until there are few enough. */
export function* capped(owners: Owners): Work<void> {
  const updaters = [...owners].filter(([, { operation }]) => operation === 'Update');
  let excess = updaters.length - MAX_UPDATERS;
  if (excess <= 0) return;
  updaters.sort(([id, one], [otherId, other]) => secondsOf(one.time) - secondsOf(other.time) || compareText(id, otherId));
  const firsts = new Map<string, string>();
  const joined = new Map<string, FieldSet[]>();
  for (const [id, owner] of updaters) {
    if (excess <= 0) break;
    const { apiVersion } = owner;
    const first = firsts.get(apiVersion);
    if (first === undefined) {
      firsts.set(apiVersion, id);
      continue;
    }
    const ancient = { manager: ANCIENT, operation: 'Update', apiVersion, subresource: '' } as const;
    const bucket = ownerId(ancient);
    if (!owners.has(bucket)) {
      const moved = owners.get(first) as Owner;
      owners.delete(first);
      owners.set(bucket, { ...ancient, time: undefined, set: moved.set });
    }
    const sets = joined.get(bucket) ?? [(owners.get(bucket) as Owner).set];
    sets.push(owner.set);
    joined.set(bucket, sets);
    owners.delete(id);
    owners.set(bucket, { ...ancient, time: owner.time, set: owner.set });
    excess--;
  }
  for (const [bucket, sets] of joined) owners.set(bucket, { ...(owners.get(bucket) as Owner), set: yield* unionOf(sets) });
}

/** The name of an object in messages. */
export function shownObject({ apiVersion, kind, metadata }: Json): string {
  const { namespace, name } = isRecord(metadata) ? metadata : {};
  return `${textOr(namespace)}/${textOr(name)}; ${shownKind(apiVersion, kind)}`;
}

/** The kind of a sent object. Only strings are shown: converting an object to a string runs its own code, which could fail. */
export function shownKind(apiVersion: unknown, kind: unknown): string {
  const version = textOr(apiVersion);
  return `${version.includes('/') ? '' : '/'}${version}, Kind=${textOr(kind)}`;
}

const textOr = (value: unknown): string => (typeof value === 'string' ? value.slice(0, 300) : '');
