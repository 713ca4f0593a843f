/**
 * Server-side apply, without a server: what is stored after a write, and who then owns which of its fields.
 *
 *     updated:  live, sent -- compared --> what changed now belongs to the writer alone
 *     applied:  live, config -- merged --> what the writer gave up and nobody else owns is pruned --> compared
 *                                          a changed field of another owner is a conflict; with force, it is taken over
 *
 * Fields may have several owners: a manager that applies the value that a field already has shares it. Owners in another version
 * of the kind are compared in that version. The results are those of Kubernetes (structured-merge-diff and `managedfields` of
 * apimachinery); test/peers/apply.test.ts compares them.
 *
 * Invariants
 * - Arguments are not changed. Unchanged parts are shared with the result.
 * - A field that the object does not have has no owner, and identity (name, uid, version and so on) never has one.
 * - Everything runs in pieces, in time proportional to the size of the objects and of their owners' sets.
 */

import { comparing, put, walking } from '../storage/json.ts';
import { refused } from '../storage/statuses.ts';
import { getOrMake, isRecord, isWatchError, whyOf } from '../watch/errors.ts';
import type { Work } from '../watch/fair-queue.ts';
import { type Conflicting, Conflicts, conflictOf } from './conflicts.ts';
import {
  canonical,
  difference,
  type FieldSet,
  fieldElement,
  fromFields,
  intersection,
  isSame,
  isWithin,
  leavesOf,
  NO_FIELDS,
  setOf,
  union,
  unionOf,
} from './field-set.ts';
import {
  capped,
  checkOwnerCount,
  entriesOf,
  fromEntries,
  isReset,
  type Json,
  type KnownFields,
  type Owner,
  type Owners,
  ownerId,
  shownObject,
  toEntries,
  withEntries,
} from './managers.ts';
import type { StoredParts } from './quick.ts';
import { type Comparison, checkType, compared, fieldsOf, merged, reconciled, type Stored, withNamed, without } from './typed.ts';
import { beginOperation, type JsonSchema, kindType, type Type, TypedError } from './types.ts';

export type { Json } from './managers.ts';
export type { JsonSchema } from './types.ts';

/** Who writes what, when. */
export interface WriteBy {
  /** The name of the field manager, such as `kubectl`; never empty. */
  readonly manager: string;
  /** The subresource that is written; empty for the object itself. */
  readonly subresource: string;
  /** The version of the kind in which it is written, such as `apps/v1`. */
  readonly apiVersion: string;
  /** When, as RFC 3339 in whole seconds. */
  readonly time: string;
}

export interface FieldManagerOptions {
  /** The schema of the kind in this version; undefined: types are deduced from values. */
  readonly schema: JsonSchema | undefined;
  readonly apiVersion: string;
  /**
   * The members, as dotted paths, that a write of a subresource never owns, such as `status` for the object itself. For another
   * version: those that it never takes from that version's owners.
   */
  readonly reset?: ((subresource: string, apiVersion: string) => readonly string[]) | undefined;
  /** What a new object of the kind has before anything is set, like the zeros of a struct in Go: nobody owns that. */
  readonly empty?: Json | undefined;
  /** The other versions of the kind, with their schemas. */
  readonly versions?: Readonly<Record<string, JsonSchema | undefined>> | undefined;
  /** Converts an object to another version. Default: only its apiVersion changes. */
  readonly convert?: ((object: Json, apiVersion: string) => Work<Json>) | undefined;
  /** Present if live objects are those of a storage, which never change. */
  readonly stored?: StoredParts | undefined;
}

/** Paths that are never owned. */
const IDENTITY: FieldSet = setOf(
  ['f:apiVersion'],
  ['f:kind'],
  ['f:metadata'],
  ...'name namespace creationTimestamp selfLink uid clusterName generation managedFields resourceVersion'
    .split(' ')
    .map((name) => ['f:metadata', fieldElement(name)]),
);

/** The owner of the fields that existed before the first apply. */
const BEFORE = 'before-first-apply';
/** Stands for the owner of the fields that the current write changes, until they are its manager's. */
const SELF = '';
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';
const MAX_ANNOTATION_BYTES = 262_144;
/** The most levels of the annotation's JSON: as many as a body may have. */
const MAX_DEPTH = 128;

/** The object is in a version of the kind that no longer exists. */
class MissingVersion extends Error {}

/** Keeps the owners of the fields of the objects of a kind, in one version. */
export class FieldManager {
  readonly #options: FieldManagerOptions;
  readonly #types: Map<string, Type> = new Map();
  readonly #ignored: Map<string, FieldSet> = new Map();
  /** What is known about the parts of a live object. */
  readonly #live: Stored | undefined;

  constructor(options: FieldManagerOptions) {
    this.#options = options;
    this.#live = options.stored && { known: options.stored, notes: true };
  }

  /**
   * The object that a create, update or patch stores: `sent` with its `metadata.managedFields`. `live` is undefined for a create.
   * An untracked object stays untracked, and one that does not fit its type keeps its owners.
   */
  *updated(live: Json | undefined, sent: Json, by: WriteBy): Work<Json> {
    beginOperation();
    const before = live ?? this.#emptyOf(sent);
    try {
      const owners = yield* ownersOf(before, sent, { subresource: by.subresource, known: this.#options.stored?.owners });
      const next = withEntries(sent, undefined);
      if (owners.size === 0 && uidOf(before)) return next;
      yield* this.#update(before, next, { owners, by });
      return withEntries(next, yield* toEntries(owners));
    } catch (error) {
      if (!isInvalid(error)) throw error;
      return withEntries(sent, entriesOf(before));
    }
  }

  /**
   * The object that an apply stores. `live` is undefined if there is no object yet; `config` is in this version. Throws
   * {@link ApplyConflict}, or REFUSED with upstream's message if the configuration cannot be applied.
   */
  *applied(live: Json | undefined, config: Json, by: WriteBy & { readonly force: boolean }): Work<Json> {
    beginOperation();
    const before = live ?? this.#emptyOf(config);
    try {
      const owners = yield* liveOwners(before, this.#options.stored?.owners);
      const { object, owners: after } = yield* this.#apply(before, config, { owners, by });
      checkOwnerCount(after.size);
      const synced = by.manager === 'kubectl' ? withLastApplied(object, config) : object;
      return withEntries(synced, yield* toEntries(after));
    } catch (error) {
      if (error instanceof Conflicts) throw yield* conflictOf(error.found);
      if (!isInvalid(error)) throw error;
      throw refused(400, 'BadRequest', (error as Error).message);
    }
  }

  /** What a manager has applied, except what others have taken over; undefined if nothing. */
  *extracted(object: Json, manager: string, subresource: string): Work<Json | undefined> {
    beginOperation();
    const type = this.#type;
    yield* checkType(type, object, false);
    for (const entry of entriesOf(object) ?? []) {
      const isIts = entry.manager === manager && entry.operation === 'Apply' && (entry.subresource ?? '') === subresource;
      if (!isIts) continue;
      const leaves = yield* leavesOf((yield* fromFields(entry.fieldsV1)).set);
      return ((yield* without(type, object, leaves, true)) ?? {}) as Json;
    }
    return undefined;
  }

  #emptyOf({ apiVersion, kind }: Json): Json {
    return { ...this.#options.empty, apiVersion, ...(kind !== undefined && { kind }) };
  }

  /** An update: its manager becomes the owner of what changes. */
  *#update(live: Json, next: Json, { owners, by }: { owners: Owners; by: WriteBy }): Work<void> {
    const type = this.#type;
    yield* checked(type, next, { as: 'convert new object (%) to smd typed', lenient: true });
    yield* checkType(type, live, true, this.#live);
    yield* this.#reconcile(live, owners);
    const changes = yield* this.#disown(live, next, { owners, self: SELF, force: true, subresource: by.subresource });
    const changed = yield* union(changes.modified, changes.added);
    const set = yield* difference(changed, IDENTITY);
    if (!set.isEmpty) {
      const { manager, subresource, time } = by;
      const { apiVersion } = this.#options;
      const self: Omit<Owner, 'set'> = { manager, operation: 'Update', apiVersion, subresource, time };
      const id = ownerId(self);
      const previous = owners.get(id);
      owners.set(id, { ...self, set: previous ? yield* union(previous.set, set) : set });
    }
    yield* capped(owners);
  }

  /** An apply. What kubectl has applied client-side before counts as the manager's own. */
  *#apply(live: Json, config: Json, { owners, by }: ApplyOf): Work<{ object: Json; owners: Owners }> {
    const started = new Map(owners);
    if (owners.size === 0) {
      const before = this.#update(this.#emptyOf(config), live, { owners: started, by: { ...by, manager: BEFORE } });
      yield* told('failed to create manager for existing fields', before);
    }
    try {
      return yield* this.#merge(live, config, { owners: new Map(started), by });
    } catch (error) {
      if (!(error instanceof Conflicts) || by.manager !== 'kubectl') throw error;
      const allowed = yield* this.#lastApplied(live);
      if (!allowed) throw error;
      const left: Conflicting[] = [];
      for (const { owner, fields } of error.found) left.push({ owner, fields: yield* difference(fields, allowed) });
      if (left.some(({ fields }) => !fields.isEmpty)) throw new Conflicts(left);
      return yield* this.#merge(live, config, { owners: started, by: { ...by, force: true } });
    }
  }

  *#merge(live: Json, given: Json, { owners, by }: ApplyOf): Work<{ object: Json; owners: Owners }> {
    const [type, { apiVersion, stored }] = [this.#type, this.#options];
    if (entriesOf(given)) throw refused(400, 'BadRequest', 'metadata.managedFields must be nil');
    const config = stored ? (stored.likened(live, given) as Json) : given;
    yield;
    yield* checked(type, config, { as: 'create typed patch object (%)', lenient: false, stored: stored && { known: stored } });
    yield* checked(type, live, { as: 'create typed live object (%)', lenient: true, stored: this.#live });
    const { manager, subresource, time } = by;
    const self: Omit<Owner, 'set'> = { manager, operation: 'Apply', apiVersion, subresource, time };
    const id = ownerId(self);
    const lastTime = owners.get(id)?.time;
    yield* this.#reconcile(live, owners);
    const last = owners.get(id);
    const whole = (yield* told('failed to merge config', merged(type, live, config))) as Json;
    const apart = this.#ignoredBy(subresource, apiVersion);
    // Usually, a manager has the same fields as last time, and so gives up nothing.
    const isKept = last?.read && last.read.set === last.set && this.#isPlain(owners, last);
    const hasSame = isKept && stored?.hasFields(type, config, { fields: last.read.fields, but: IDENTITY, apart });
    const set = hasSame ? last.set : yield* difference(yield* fieldsOf(type, config), apart, true);
    owners.set(id, { ...self, set });
    const object = hasSame ? whole : yield* told('failed to prune fields', this.#prune(whole, owners, { id, last }));
    yield* this.#disown(live, object, { owners, self: id, force: by.force, subresource });
    const isNoop = yield* comparing(live, object);
    const owned = owners.get(id) && (yield* difference(set, IDENTITY));
    if (!owned || owned.isEmpty) owners.delete(id);
    else owners.set(id, { ...self, time: isNoop ? lastTime : time, ...(yield* again(last, owned)) });
    return { object: isNoop ? live : object, owners };
  }

  /** Takes what changes from all others. Throws Conflicts if that is not allowed. Returns what changes in this version. */
  *#disown(live: Json, next: Json, { owners, self, force, subresource }: Disowning): Work<Comparison> {
    const { apiVersion } = this.#options;
    const own = yield* this.#changes(live, next, subresource);
    const versions = new Map([[apiVersion, yield* writtenOf(own)]]);
    const found: Conflicting[] = [];
    for (const [id, owner] of [...owners].sort(([one], [other]) => (one < other ? -1 : 1))) {
      if (id === self) continue;
      let changes = versions.get(owner.apiVersion);
      if (!changes) {
        changes = yield* writtenOf(yield* this.#changesIn(owner.apiVersion, live, { next, subresource }));
        versions.set(owner.apiVersion, changes);
      }
      const touched = yield* intersection(owner.set, changes.written);
      if (!force && !touched.isEmpty) found.push({ owner, fields: touched });
      const left = yield* difference(yield* difference(owner.set, touched), changes.removed);
      if (left !== owner.set) owners.set(id, { ...owner, set: left });
    }
    if (found.length > 0) throw new Conflicts(found);
    for (const [id, { set }] of owners) if (set.isEmpty) owners.delete(id);
    return own;
  }

  *#changes(live: Json, next: Json, subresource: string): Work<Comparison> {
    const { apiVersion } = this.#options;
    return yield* withoutIgnored(yield* compared(this.#type, live, next), this.#ignoredBy(subresource, apiVersion));
  }

  /** What changes in another version. */
  *#changesIn(apiVersion: string, live: Json, { next, subresource }: { next: Json; subresource: string }): Work<Comparison> {
    const one = yield* told('failed to convert old object', this.#convert(live, apiVersion));
    const other = yield* told('failed to convert new object', this.#convert(next, apiVersion));
    const all = yield* compared(this.#typeOf(apiVersion), one, other);
    return yield* withoutIgnored(all, this.#ignoredBy(subresource, apiVersion));
  }

  /** Adapts the owners' fields to schemas that have changed since. Owners in versions that are gone are forgotten. */
  *#reconcile(live: Json, owners: Owners): Work<void> {
    const [versions, fitting] = [new Map<string, boolean>(), this.#options.stored?.owners];
    for (const [id, owner] of owners) {
      let isThere = versions.get(owner.apiVersion);
      if (isThere === undefined) isThere = yield* this.#isThere(live, owner.apiVersion);
      versions.set(owner.apiVersion, isThere);
      if (!isThere) {
        owners.delete(id);
        continue;
      }
      const type = this.#typeOf(owner.apiVersion);
      const { read } = owner;
      if (read && fitting?.get(read.fields) === type) continue;
      const set = owner.set.children ? yield* reconciled(type, owner.set) : owner.set;
      if (set !== owner.set && set.children) owners.set(id, { ...owner, set });
      else if (set === owner.set && read && fitting?.get(read.fields) !== undefined) fitting.set(read.fields, type);
    }
  }

  /** Whether a version exists. Throws if the object cannot be converted to it. */
  *#isThere(live: Json, apiVersion: string): Work<boolean> {
    try {
      yield* this.#convert(live, apiVersion);
      return true;
    } catch (error) {
      if (error instanceof MissingVersion) return false;
      throw error;
    }
  }

  /** Whether all owners write in this version, as far as that matters. */
  #isPlain(owners: Owners, last: Owner): boolean {
    const { convert, apiVersion } = this.#options;
    return last.apiVersion === apiVersion && (!convert || [...owners.values()].every((each) => each.apiVersion === apiVersion));
  }

  /** Removes what the manager applied last time but not now, unless others own it. */
  *#prune(whole: Json, owners: Owners, { id, last }: { id: string; last: Owner | undefined }): Work<Json> {
    const { set } = owners.get(id) as Owner;
    if (!last || last.set.isEmpty) return whole;
    if (this.#isPlain(owners, last) && (yield* isWithin(last.set, set))) return whole;
    const start = yield* this.#convert(whole, last.apiVersion);
    const type = this.#typeOf(last.apiVersion);
    const named = yield* withNamed(type, last.set);
    let pruned = (yield* without(type, start, named)) as Json;
    if (!isRecord(pruned)) throw new TypedError('nothing is left');
    const byVersion = new Map<string, FieldSet[]>([[last.apiVersion, []]]);
    for (const { apiVersion, set: owned } of owners.values()) {
      getOrMake(byVersion, apiVersion, () => []).push(owned);
    }
    let with_ = start;
    for (const [version, sets] of byVersion) {
      const managed = yield* unionOf(sets);
      if (managed.isEmpty && version === last.apiVersion) continue;
      [with_, pruned] = yield* this.#addBack(with_, pruned, { version, managed });
    }
    const [left, all] = [yield* fieldsOf(type, yield* this.#convert(pruned, last.apiVersion)), yield* fieldsOf(type, start)];
    const gone = yield* difference(yield* withNamed(type, all), yield* withNamed(type, left));
    const result = (yield* without(type, start, yield* intersection(gone, named))) as Json;
    return yield* this.#convert(result, this.#options.apiVersion);
  }

  /** Adds back what was pruned but is owned in a version. */
  *#addBack(
    whole: Json,
    pruned: Json,
    { version, managed }: { version: string; managed: FieldSet },
  ): Work<readonly [Json, Json]> {
    const [all, some] = [yield* this.#convert(whole, version), yield* this.#convert(pruned, version)];
    const type = this.#typeOf(version);
    const allFields = yield* withNamed(type, yield* fieldsOf(type, all));
    const kept = yield* union(yield* withNamed(type, yield* fieldsOf(type, some)), yield* withNamed(type, managed));
    return [all, (yield* without(type, all, yield* difference(allFields, kept))) as Json];
  }

  /** What kubectl has applied client-side, as far as the object still has it. */
  *#lastApplied(live: Json): Work<FieldSet | undefined> {
    const text = annotationsOf(live)?.[LAST_APPLIED];
    if (typeof text !== 'string' || text === '') return undefined;
    try {
      const last: unknown = JSON.parse(text);
      if (!isRecord(last) || last.apiVersion !== this.#options.apiVersion || (yield* depthOf(last)) > MAX_DEPTH) return undefined;
      const type = this.#type;
      yield* checkType(type, live, false);
      yield* checkType(type, last, false);
      const { modified, added, removed } = yield* compared(type, last, live);
      let set = yield* fieldsOf(type, last);
      for (const other of [modified, added, removed]) set = yield* difference(set, other);
      return set;
    } catch (error) {
      if (error instanceof SyntaxError || isInvalid(error)) return undefined;
      throw error;
    }
  }

  get #type(): Type {
    return this.#typeOf(this.#options.apiVersion);
  }

  #typeOf(apiVersion: string): Type {
    const known = this.#types.get(apiVersion);
    if (known) return known;
    const { schema, versions = {} } = this.#options;
    const isOwn = apiVersion === this.#options.apiVersion;
    if (!isOwn && !Object.hasOwn(versions, apiVersion)) throw new MissingVersion(apiVersion);
    const type = kindType(isOwn ? schema : versions[apiVersion]);
    this.#types.set(apiVersion, type);
    return type;
  }

  *#convert(object: Json, apiVersion: string): Work<Json> {
    if (object.apiVersion === apiVersion) return object;
    const type = this.#typeOf(apiVersion);
    const converted = yield* this.#converted(object, apiVersion);
    yield* checkType(type, converted, false);
    return converted;
  }

  *#converted(object: Json, apiVersion: string): Work<Json> {
    const { convert } = this.#options;
    if (!convert) return { ...object, apiVersion };
    try {
      return yield* convert(object, apiVersion);
    } catch (error) {
      throw new TypedError(`failed to convert object: ${whyOf(error)}`);
    }
  }

  #ignoredBy(subresource: string, apiVersion: string): FieldSet {
    const { reset } = this.#options;
    if (!reset) return NO_FIELDS;
    const key = `${subresource} ${apiVersion}`;
    return getOrMake(this.#ignored, key, () =>
      setOf(...reset(subresource, apiVersion).map((path) => path.split('.').map(fieldElement))),
    );
  }
}

function* withoutIgnored({ added, modified, removed }: Comparison, ignored: FieldSet): Work<Comparison> {
  return {
    added: yield* difference(added, ignored, true),
    modified: yield* difference(modified, ignored, true),
    removed: yield* difference(removed, ignored, true),
  };
}

/** A set; the one that was read if it is the same. */
function* again(last: Owner | undefined, set: FieldSet): Work<Pick<Owner, 'set' | 'read'>> {
  return last && (yield* isSame(last.set, set)) ? { set: last.set, read: last.read } : { set };
}

interface ApplyOf {
  readonly owners: Owners;
  readonly by: WriteBy & { readonly force: boolean };
}

/** What a change removes, and what it adds or modifies. */
interface Changes {
  readonly removed: FieldSet;
  readonly written: FieldSet;
}

function* writtenOf({ removed, modified, added }: Comparison): Work<Changes> {
  return { removed, written: yield* union(modified, added) };
}

interface Disowning {
  readonly owners: Owners;
  /** The owner that writes. */
  readonly self: string;
  readonly force: boolean;
  readonly subresource: string;
}

/** The uid of an object, which has none before it is created. */
const uidOf = ({ metadata }: Json): unknown => (isRecord(metadata) ? metadata.uid : undefined);

/** The owners in the request, or else those of the object. */
function* ownersOf(live: Json, sent: Json, { subresource, known }: { subresource: string; known: Known }): Work<Owners> {
  const entries = subresource === '' ? entriesOf(sent) : undefined;
  if (entries && isReset(entries)) return new Map();
  try {
    const owners = yield* fromEntries(entries ?? []);
    if (owners.size > 0) return owners;
  } catch (error) {
    if (!isInvalid(error)) throw error;
  }
  try {
    return yield* fromEntries(entriesOf(live) ?? [], known);
  } catch (error) {
    if (!isInvalid(error)) throw error;
    return new Map();
  }
}

type Known = KnownFields | undefined;

function* liveOwners(live: Json, known: Known): Work<Owners> {
  try {
    return yield* fromEntries(entriesOf(live) ?? [], known);
  } catch (error) {
    if (!isInvalid(error)) throw error;
    throw new TypedError(`failed to decode managed fields: ${(error as Error).message}`);
  }
}

const isInvalid = (error: unknown): boolean => error instanceof TypedError || isWatchError(error, 'INVALID_ARGUMENT');

/** Does work. If it fails, the error says what failed. */
function* told<R>(what: string, work: Work<R>): Work<R> {
  try {
    return yield* work;
  } catch (error) {
    if (!(error instanceof TypedError)) throw error;
    throw new TypedError(`${what}: ${error.message}`);
  }
}

function checked(
  type: Type,
  object: Json,
  { as, lenient, stored }: { as: string; lenient: boolean; stored?: Stored | undefined },
): Work<void> {
  return told(`failed to ${as.replace('%', () => shownObject(object))}`, checkType(type, object, lenient, stored));
}

function annotationsOf({ metadata }: Json): Readonly<Record<string, unknown>> | undefined {
  const { annotations } = isRecord(metadata) ? metadata : {};
  return isRecord(annotations) ? annotations : undefined;
}

/** An object whose annotation of client-side apply, if there is one, is updated to what was applied now. */
function withLastApplied(object: Json, config: Json): Json {
  const annotations = annotationsOf(object);
  if (!annotations?.[LAST_APPLIED]) return object;
  const own = annotationsOf(config);
  const { [LAST_APPLIED]: _, ...others } = own ?? {};
  const said = own ? { ...config, metadata: { ...(config.metadata as Json), annotations: others } } : config;
  const text = `${canonical(said, String)}\n`;
  const next: Record<string, unknown> = { ...annotations };
  put(next, LAST_APPLIED, text);
  if (bytesOf(next) > MAX_ANNOTATION_BYTES) delete next[LAST_APPLIED];
  return { ...object, metadata: { ...(object.metadata as Json), annotations: next } };
}

function* depthOf(value: unknown): Work<number> {
  let deepest = 0;
  yield* walking(value, (_names, _size, depth) => {
    deepest = depth + 1;
  });
  return deepest;
}

const ENCODER = new TextEncoder();

function bytesOf(annotations: Readonly<Record<string, unknown>>): number {
  let bytes = 0;
  for (const name in annotations) bytes += ENCODER.encode(`${name}${annotations[name]}`).length;
  return bytes;
}
