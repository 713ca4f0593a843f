/** Names and metadata of objects. Upstream: `apimachinery/validation`. */

import { MAX_MANAGERS } from '../../apply/managers.ts';
import type { KubernetesObject, ObjectMeta } from '../../cache/object.ts';
import { isNullish, isRecord, type WatchError } from '../../watch/errors.ts';
import type { Work } from '../../watch/fair-queue.ts';
import { badRequest } from '../api-status.ts';
import type { FieldCause } from '../definition.ts';
import { timeOf } from '../kinds/shape.ts';
import type { Json, Step } from '../request/json.ts';
import { canBeSegment } from '../request/path.ts';
import { goEscaped, invalidCause, jsonStart, middleCut } from '../validation/causes.ts';
import { labelFaults, labelValueFaults, qualifiedFaults, subdomainFaults } from '../validation/formats.ts';

const MAX_LABEL_CHARS = 63;

/** A value in a message: short, and without characters that could forge log lines. */
export function shown(value: string): string {
  const short = value.length > 300 ? `${value.slice(0, 300)}...` : value;
  return JSON.stringify(short.replace(/\p{C}/gu, '.'));
}

/** The characters that generated names end with: no vowels, and none that look alike. Upstream: `rand.String`. */
const ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
const RANDOM_CHARS = 5;

/** A name with the given beginning. Upstream: `names.SimpleNameGenerator`. */
export function generateName(base: string, random: () => number): string {
  const start = base.slice(0, MAX_LABEL_CHARS - RANDOM_CHARS);
  const end = Array.from({ length: RANDOM_CHARS }, () => ALPHABET.charAt(Math.floor(random() * ALPHABET.length)));
  return start + end.join('');
}

/** How many bytes a text has on the wire. */
export function utf8Bytes(value: string): number {
  let bytes = value.length;
  for (let at = 0; at < value.length; at++) {
    const unit = value.charCodeAt(at);
    // A surrogate is half of four bytes.
    bytes += unit < 0x80 ? 0 : unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 1 : 2;
  }
  return bytes;
}

/** What is wrong with the metadata of an object: 422, with all causes at once. Upstream: the validation of `ObjectMeta`. */

/** The most bytes of all labels together, and of all annotations. Upstream: `TotalAnnotationSizeLimitB`. */
const MAX_MAP_BYTES = 262_144;
/** The most labels, and annotations. */
const MAX_MAP_ITEMS = 4_096;
/** How many items are checked in less than a millisecond. */
const FEW = 512;
const MAX_FINALIZERS = 50_000;
const MAX_OWNERS = 20_000;
/** The most characters of an owner in a message, and of all owners. */
const [MAX_OWNER_CHARS, MAX_OWNERS_CHARS] = [300, 450] as const;
/** Further causes are counted, but without text. */
const MAX_TEXTS = 100;

/** Collects causes. There may be a million. */
class Causes {
  readonly all: FieldCause[] = [];

  add(field: string, message: () => string): void {
    this.all.push(this.all.length < MAX_TEXTS ? { field, message: message() } : (this.all[0] as FieldCause));
  }

  invalid(field: string, value: string, faults: readonly string[]): void {
    for (const why of faults) this.add(field, () => `Invalid value: ${shown(value)}: ${why}`);
  }

  /** Whether a list or map is small enough to be checked. */
  fits(field: string, count: number, most: number): boolean {
    if (count > most) this.add(field, () => `Too many: ${count}: must have at most ${most} items`);
    return count <= most;
  }
}

/** What is wrong with metadata, in any write. */
export function* metadataCauses(metadata: Meta): Work<FieldCause[]> {
  const causes = new Causes();
  const { generation = 0 } = metadata;
  if (generation < 0) {
    causes.add('metadata.generation', () => `Invalid value: ${generation}: must be greater than or equal to 0`);
  }
  const { labels, annotations, finalizers, ownerReferences, managedFields } = metadata;
  if (labels) yield* mapCauses(causes, { field: 'metadata.labels', map: labels, fault: labelFault });
  if (annotations) yield* mapCauses(causes, { field: 'metadata.annotations', map: annotations, fault: annotationFault });
  if (finalizers && causes.fits('metadata.finalizers', finalizers.length, MAX_FINALIZERS)) {
    for (const [at, given] of finalizers.entries()) {
      const finalizer = given ?? ''; // null is an empty text, as in Go
      causes.invalid('metadata.finalizers', finalizer, qualifiedFaults(finalizer));
      if (at % FEW === FEW - 1) yield;
    }
    if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion')) {
      const why = 'finalizer orphan and foregroundDeletion cannot be both set';
      causes.add('metadata.finalizers', () => invalidCause('', finalizers, why).message);
    }
  }
  if (ownerReferences) yield* checkOwners(causes, ownerReferences as readonly (Json | null)[]);
  if (managedFields) yield* checkManagers(causes, managedFields as readonly Json[]);
  return causes.all;
}

/** The most bytes of the name of a field manager. Upstream: `FieldManagerMaxLength`. */
export const MAX_MANAGER_BYTES = 128;
const MAX_SUBRESOURCE_BYTES = 256;

const PRINTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;

/** Whether a character can be printed. ASCII is checked directly, as Unicode classes are slow. Upstream: `unicode.IsPrint`. */
export const isPrintable = (char: string): boolean => (char < '\x7f' ? char >= ' ' : PRINTABLE.test(char));

/** What is wrong with the name of a field manager. Upstream: `ValidateFieldManager`. */
export function faultOfManager(name: string): string | undefined {
  if (utf8Bytes(name) > MAX_MANAGER_BYTES) return `Too long: may not be more than ${MAX_MANAGER_BYTES} bytes`;
  let at = 0;
  for (const char of name) {
    if (!isPrintable(char)) {
      const point = (char.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, '0');
      return `Invalid value: ${shown(name)}: invalid character U+${point} (at position ${at})`;
    }
    at += utf8Bytes(char);
  }
  return undefined;
}

/** Upstream: `ValidateManagedFields`. */
function* checkManagers(causes: Causes, entries: readonly Json[]): Work<void> {
  if (!causes.fits('metadata.managedFields', entries.length, MAX_MANAGERS)) return;
  for (const [at, { manager = '', subresource = '' }] of entries.entries()) {
    if (at % FEW === FEW - 1) yield;
    const [fault, field] = [faultOfManager(String(manager)), `metadata.managedFields[${at}]`];
    if (fault !== undefined) causes.add(`${field}.manager`, () => fault);
    if (utf8Bytes(String(subresource)) > MAX_SUBRESOURCE_BYTES)
      causes.add(`${field}.subresource`, () => `Too long: may not be more than ${MAX_SUBRESOURCE_BYTES} bytes`);
  }
}

interface CheckedMap {
  readonly field: string;
  readonly map: Readonly<Record<string, string>>;
  readonly fault: (causes: Causes, key: string, value: string) => void;
}

function* mapCauses(causes: Causes, { field, map, fault }: CheckedMap): Work<void> {
  const keys = Object.keys(map);
  if (keys.length > FEW) yield;
  if (!causes.fits(field, keys.length, MAX_MAP_ITEMS)) return;
  let bytes = 0;
  for (const [at, key] of keys.entries()) {
    if (at % FEW === FEW - 1) yield;
    const value = map[key] as string;
    fault(causes, key, value);
    bytes += utf8Bytes(key) + utf8Bytes(value);
  }
  if (bytes > MAX_MAP_BYTES) causes.add(field, () => `Too long: may not be more than ${MAX_MAP_BYTES} bytes`);
}

function labelFault(causes: Causes, key: string, value: string): void {
  causes.invalid('metadata.labels', key, qualifiedFaults(key));
  causes.invalid('metadata.labels', value, labelValueFaults(value));
}

function annotationFault(causes: Causes, key: string): void {
  causes.invalid('metadata.annotations', key, qualifiedFaults(key.toLowerCase()));
}

const OWNER_MEMBERS = ['apiVersion', 'kind', 'name', 'uid'] as const;
/** Upstream: `ParseGroupVersion`, and a version. */
const GROUP_VERSION = /^(?:[^/]*\/)?[^/]+$/;
const OWNER_FLAGS = ['controller', 'blockOwnerDeletion'] as const;

type Owner = Record<(typeof OWNER_MEMBERS)[number], string> & Partial<Record<(typeof OWNER_FLAGS)[number], boolean>>;

/** A reference with the members of upstream's, in their order. */
function toOwner(reference: Json | null): Owner {
  const texts = OWNER_MEMBERS.map((name) => [name, reference?.[name] ?? '']);
  const flags = OWNER_FLAGS.map((name) => [name, reference?.[name] ?? undefined]);
  return Object.fromEntries([...texts, ...flags]);
}

function shownOwners(value: Owner | readonly Owner[]): string {
  const text = jsonStart(value, MAX_OWNERS_CHARS + 1);
  return goEscaped(text.length > MAX_OWNERS_CHARS ? `${text.slice(0, MAX_OWNERS_CHARS)}...` : text);
}

const TWINS_WHY = 'API server dedups owner references in 1.20+, and may reject such requests as early as 1.24';

/** The object with each of its owners once. Upstream: `dedupOwnerReferencesAndAddWarning`. */
export function* withoutTwins(
  object: Mutable,
  { warn, isLate = false }: { readonly warn?: ((text: string) => void) | undefined; readonly isLate?: boolean | undefined },
): Work<Mutable> {
  const references = (object.metadata.ownerReferences ?? NONE) as readonly (Json | null)[];
  if (references.length < 2) return object;
  const owners = new Map<string, Json | null>();
  const twins: string[] = [];
  for (const [at, reference] of references.entries()) {
    const owner = toOwner(reference);
    const key = JSON.stringify(owner);
    if (owners.has(key)) twins.push(owner.uid);
    else owners.set(key, reference);
    if (at % FEW === FEW - 1) yield;
  }
  if (twins.length === 0) return object;
  const uids = middleCut(twins.slice(0, MAX_TEXTS).join(', '), MAX_OWNERS_CHARS);
  const what = `.metadata.ownerReferences contains duplicate entries${isLate ? ' after mutating admission happens' : ''}`;
  warn?.(`${what}; ${TWINS_WHY}; please fix your requests; duplicate UID(s) observed: ${uids}`);
  return withMeta(object, { ownerReferences: [...owners.values()] });
}

/** Upstream: `ValidateOwnerReferences`. */
function* checkOwners(causes: Causes, references: readonly (Json | null)[]): Work<void> {
  const all = 'metadata.ownerReferences';
  if (!causes.fits(all, references.length, MAX_OWNERS)) return;
  let controller: string | undefined;
  let listed: string | undefined;
  for (const [at, reference] of references.entries()) {
    if (at % FEW === FEW - 1) yield;
    const field = `${all}[${at}]`;
    const owner = toOwner(reference);
    const { apiVersion, kind, name } = owner;
    for (const member of OWNER_MEMBERS) {
      if (owner[member] === '') causes.add(`${field}.${member}`, () => 'Required value: must not be empty');
      else if (member === 'apiVersion' && !GROUP_VERSION.test(apiVersion)) {
        causes.invalid(`${field}.apiVersion`, apiVersion, ['must be <group>/<version> or <version>']);
      }
    }
    if (/^\/?v1$/.test(apiVersion) && kind === 'Event') {
      causes.add(field, () => `Invalid value: ${shownOwners(owner)}: /v1, Kind=Event is disallowed from being an owner`);
    }
    if (owner.controller !== true) continue;
    const [first, other] = [controller, middleCut(`${kind}/${name}`, MAX_OWNER_CHARS)];
    const why = `Only one reference can have Controller set to true. Found "true" in references for ${first} and ${other}`;
    if (first !== undefined) {
      listed ??= shownOwners(references.slice(0, MAX_OWNERS_CHARS).map(toOwner));
      causes.add(all, () => `Invalid value: ${listed}: ${why}`);
    }
    controller ??= other;
  }
}

type Named = { readonly group: string; readonly plural: string };

/** What is within another object may have the name of any kind: that of a role. */
export const ANY_NAME: Named = { group: 'rbac.authorization.k8s.io', plural: '' };

const namedCauses = (field: string, name: string, faultsOf: (name: string) => readonly string[]): FieldCause[] =>
  faultsOf(name).map((why) => ({ field, message: `Invalid value: ${shown(name)}: ${why}` }));

const faultsOfNamesOf = ({ group, plural }: Named): ((name: string) => readonly string[]) => {
  if (group === ANY_NAME.group || (group === '' && plural === 'events')) return segmentFaults;
  return group === '' && plural === 'namespaces' ? labelFaults : (name) => subdomainFaults(name);
};

/** Roles are named like `system:reader`, and Events of v1 like what they are about. Upstream: `IsValidPathSegmentName`. */
function segmentFaults(name: string): readonly string[] {
  if (name === '.' || name === '..') return [`may not be '${name}'`];
  const found = ['/', '%'].filter((each) => name.includes(each)).map((each) => `may not contain '${each}'`);
  return found.length > 0 || canBeSegment(name) ? found : ['must be a text that a path can have, of at most 512 characters'];
}

/** What is wrong with the beginning of a generated name. */
export function baseCauses(resource: Named, { generateName: base = '' }: Meta): FieldCause[] {
  if (base === '') return [];
  // The random suffix makes it end like a name. Upstream: `maskTrailingDash`.
  const masked = base.length > 1 && base.endsWith('-') ? `${base.slice(0, -2)}a` : base;
  return namedCauses('metadata.generateName', base, () => faultsOfNamesOf(resource)(masked));
}

/** What is wrong with the name of an object, and with that of its namespace. */
export function nameCauses(resource: Named, metadata: Meta): FieldCause[] {
  const { name = '', namespace } = metadata;
  return [
    ...baseCauses(resource, metadata),
    ...namedCauses('metadata.name', name, faultsOfNamesOf(resource)),
    ...(namespace === undefined ? [] : namedCauses('metadata.namespace', namespace, labelFaults)),
  ];
}

/** What an update may not change. */
export function updateCauses(sent: Meta, old: Meta, next: Meta): FieldCause[] {
  const causes: FieldCause[] = [];
  // Other timestamps are ignored: those in a file may belong to another object. Upstream: `BeforeUpdate`.
  const { deletionTimestamp } = sent;
  if (deletionTimestamp !== undefined && old.deletionTimestamp === undefined) {
    const message = `Invalid value: ${shown(String(deletionTimestamp))}: field is immutable`;
    causes.push({ field: 'metadata.deletionTimestamp', message });
  }
  const { deletionGracePeriodSeconds: grace } = sent;
  if (!isNullish(grace) && grace !== old.deletionGracePeriodSeconds) {
    causes.push({ field: 'metadata.deletionGracePeriodSeconds', message: `Invalid value: ${grace}: field is immutable` });
  }
  if (old.deletionTimestamp === undefined) return causes;
  const before = new Set(old.finalizers); // there may be a hundred thousand of each
  const added = (next.finalizers ?? []).filter((each) => !before.has(each));
  if (added.length > 0) {
    const why = 'no new finalizers can be added if the object is being deleted, found new finalizers';
    const more = added.length > MAX_TEXTS ? ', ...' : '';
    const texts = added.slice(0, MAX_TEXTS).map((each) => shown(each ?? ''));
    causes.push({ field: 'metadata.finalizers', message: `Forbidden: ${why} []string{${texts.join(', ')}${more}}` });
  }
  return causes;
}

/** The form of an object that was sent, and of its metadata as it is stored. Upstream: `ObjectMeta`. */

/** An object whose members are not known. */
export type Mutable = KubernetesObject & Json & { readonly metadata: Meta };

type Meta = ObjectMeta & Json;

interface KindName {
  readonly apiVersion: string;
  readonly kind: string;
}

/** Whether what was sent is an object that does not declare another kind. */
export function isOfKind(info: KindName, sent: unknown): boolean {
  if (!isRecord(sent)) return false;
  const { apiVersion = info.apiVersion, kind = info.kind } = sent;
  return apiVersion === info.apiVersion && kind === info.kind;
}

/** Checks that what was sent is an object of this kind, and fills in the members that all objects have. */
export function normalized(info: KindName, sent: unknown): Mutable {
  if (!isRecord(sent)) throw badRequest('expected an object');
  const { apiVersion = info.apiVersion, kind = info.kind, metadata, ...rest } = sent;
  if (!isOfKind(info, sent)) {
    const given = typeof apiVersion === 'string' && typeof kind === 'string' ? `a ${kind} of ${apiVersion}` : 'something else';
    throw badRequest(`expected a ${info.kind} of ${info.apiVersion}, got ${given.slice(0, 202)}`);
  }
  return { apiVersion, kind, metadata: metaOf(metadata), ...rest } as Mutable;
}

/** Metadata as it is stored. Throws 400 if a member has another type. */
function metaOf(metadata: unknown): Meta {
  if (metadata !== undefined && metadata !== null && !isRecord(metadata)) throw badRequest('metadata: expected an object');
  const checked = (metadata ?? {}) as Json;
  for (const name of TEXTS) {
    if (typeof (checked[name] ?? '') !== 'string') throw badRequest(`metadata.${name}: expected a string`);
  }
  for (const name of TIMES) checkTime(`metadata.${name}`, checked[name]);
  for (const name of NUMBERS) {
    const number = checked[name] ?? 0;
    if (!Number.isInteger(number) || Math.abs(number as number) >= 2 ** 63)
      throw badRequest(`metadata.${name}: expected an integer`);
  }
  const maps: Record<string, unknown> = {};
  for (const name of MAPS) maps[name] = textsOf(name, checked[name] ?? undefined);
  for (const name of LISTS) {
    if (!Array.isArray(checked[name] ?? NONE)) throw badRequest(`metadata.${name}: expected a list`);
  }
  for (const each of (checked.finalizers ?? NONE) as readonly unknown[]) {
    if (!isText(each)) throw badRequest('metadata.finalizers: expected a string');
  }
  for (const [name, check] of PARTS)
    for (const [at, each] of ((checked[name] ?? NONE) as readonly unknown[]).entries())
      if (!isNullish(each)) check(each, `metadata.${name}[${at}]`);
  return ordered(checked, maps);
}

const MANAGED_TEXTS = ['manager', 'operation', 'apiVersion', 'time', 'fieldsType', 'subresource'] as const;

/** What the fields of an entry are is the affair of who reads them: if they are wrong, all entries are forgotten. */
function checkManaged(entry: unknown, field: string): void {
  if (!isRecord(entry)) throw badRequest(`${field}: expected an object`);
  for (const name of MANAGED_TEXTS) if (!isText(entry[name])) throw badRequest(`${field}.${name}: expected a string`);
  checkTime(`${field}.time`, entry.time);
}

function checkTime(field: string, time: unknown): void {
  if (!isNullish(time) && timeOf(String(time), 0) === undefined) throw badRequest(`${field}: expected a time`);
}

function checkOwnerShape(reference: unknown, field: string): void {
  if (!isRecord(reference)) throw badRequest(`${field}: expected an object`);
  for (const name of OWNER_MEMBERS) if (!isText(reference[name])) throw badRequest(`${field}.${name}: expected a string`);
  for (const name of OWNER_FLAGS) {
    const value = reference[name];
    if (!isNullish(value) && typeof value !== 'boolean') throw badRequest(`${field}.${name}: expected a boolean`);
  }
}

const PARTS = [
  ['managedFields', checkManaged],
  ['ownerReferences', checkOwnerShape],
] as const;
const TIMES = ['creationTimestamp', 'deletionTimestamp'] as const;
const TEXTS = ['name', 'generateName', 'namespace', 'uid', 'resourceVersion', 'selfLink', ...TIMES] as const;
const NUMBERS = ['generation', 'deletionGracePeriodSeconds'] as const;
const MAPS = ['labels', 'annotations'] as const;
const LISTS = ['finalizers', 'ownerReferences', 'managedFields'] as const;
/** The members of metadata in the order in which they are stored, no matter how they were sent. */
const ORDER = [
  ...(['name', 'generateName', 'namespace', 'uid', 'resourceVersion', 'generation', 'creationTimestamp'] as const),
  ...(['deletionTimestamp', 'deletionGracePeriodSeconds', 'labels', 'annotations', 'ownerReferences', 'finalizers'] as const),
  'managedFields',
] as const;

const KNOWN: ReadonlySet<string> = new Set([...ORDER, 'selfLink']);

const OF_OWNERS: ReadonlySet<string> = new Set([...OWNER_MEMBERS, ...OWNER_FLAGS]);

/** The paths of the members that no metadata has. */
export function unknownMeta(metadata: Json): Step[][] {
  const { ownerReferences: owners } = metadata;
  const own = Object.keys(metadata).filter((name) => !KNOWN.has(name));
  const ofOwners = (Array.isArray(owners) ? owners : NONE).flatMap((owner, at) =>
    Object.keys(isRecord(owner) ? owner : UNCHANGED).flatMap((name) =>
      OF_OWNERS.has(name) ? [] : [['ownerReferences', at, name]],
    ),
  );
  return [...own.map((name) => [name]), ...ofOwners];
}

/** The metadata of an object within an object, in which also owners have only known members; or why it is none. */
export function embeddedMeta(metadata: unknown): Meta | string {
  if (!isRecord(metadata)) {
    const given = Array.isArray(metadata) ? 'array' : typeof metadata === 'boolean' ? 'bool' : typeof metadata;
    return `json: cannot unmarshal ${given} into Go value of type v1.ObjectMeta`;
  }
  try {
    const read = metaOf(metadata);
    const { ownerReferences } = read as { ownerReferences?: readonly (Json | null)[] };
    return ownerReferences === undefined ? read : ordered(read as Json, { ownerReferences: ownerReferences.map(toOwner) });
  } catch (error) {
    return (error as WatchError).status?.message ?? String(error);
  }
}

const NONE: readonly never[] = [];
const UNCHANGED: Json = {};

const isText = (value: unknown): boolean => typeof value === 'string' || isNullish(value);

/** The same map, with null as an empty string, as in Go. */
function textsOf(name: string, value: unknown): unknown {
  if (value === undefined) return undefined;
  if (!isRecord(value)) throw badRequest(`metadata.${name}: expected an object`);
  let hasNull = false;
  // By key: Object.values would take twice as long.
  for (const each of Object.keys(value)) {
    if (typeof value[each] === 'string') continue;
    if (value[each] !== null) throw badRequest(`metadata.${name}: expected strings as values`);
    hasNull = true;
  }
  return hasNull ? Object.fromEntries(Object.entries(value).map(([key, each]) => [key, each ?? ''])) : value;
}

/** Metadata with only known members, as upstream. Empty ones, and those that this server does not keep, are left out. */
function ordered(metadata: Json, changes: Json = UNCHANGED): Meta {
  const known: Record<string, unknown> = {};
  for (const name of ORDER) {
    const value = (name in changes ? changes[name] : metadata[name]) ?? '';
    // Kubernetes leaves out null, and empty strings, lists and maps.
    if (value !== '' && (typeof value !== 'object' || !isEmpty(value))) known[name] = value;
  }
  return known as Meta;
}

function isEmpty(object: object): boolean {
  if (Array.isArray(object)) return object.length === 0;
  for (const _ in object) return false;
  return true;
}

/** Returns the object with some members of its metadata replaced; undefined removes one. */
export function withMeta<T extends KubernetesObject>(
  object: T,
  changes: Partial<Record<keyof ObjectMeta | 'deletionGracePeriodSeconds', unknown>>,
): T {
  return { ...object, metadata: ordered((object.metadata as Json | undefined) ?? UNCHANGED, changes) };
}
