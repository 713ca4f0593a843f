/** The options of requests, checked as a server must: they may have come over the wire. */
import type { ListOptions, ListWatchOptions } from '../cache/list-watcher.ts';
import { type KubernetesObject, metadataOf } from '../cache/object.ts';
import { FieldSelector, parseFieldSelector, rulesOf } from '../selectors/field-selector.ts';
import { LabelSelector, parseLabelSelector } from '../selectors/label-selector.ts';
import { type Attributes, SelectionPredicate } from '../selectors/predicate.ts';
import type { Labels } from '../selectors/syntax.ts';
import {
  callable,
  checkOptions,
  checkText,
  invalid,
  isWatchError,
  shownOf,
  type WatchError,
  wholeNumber,
} from '../watch/errors.ts';
import { checkKey, MAX_KEY_CHARS } from './keys.ts';
import { badRequest, conflict } from './statuses.ts';
import type {
  CreateOptions,
  DeleteOptions,
  FieldFunctions,
  KeysOptions,
  Preconditions,
  ServedOptions,
  StorageWatchOptions,
  UpdateOptions,
} from './storage.ts';

/** The fields of every object. */
const META_FIELDS: FieldFunctions<unknown> = {
  'metadata.name': (object) => metadataOf(object).name,
  'metadata.namespace': (object) => metadataOf(object).namespace,
};

/**
 * What a request selects: labels, the fields `metadata.name` and `metadata.namespace`, and those of `fields`.
 *
 * @throws {WatchError} REFUSED with code 400 for an invalid selector, one with too many requirements, or one that names an
 * unknown field.
 */
export function predicateOf<T>(
  { labelSelector = '', fieldSelector = '' }: Pick<ListOptions, 'labelSelector' | 'fieldSelector'>,
  fields: FieldFunctions<T> = {},
): SelectionPredicate<T> {
  try {
    const selector = fieldSelector ? parseFieldSelector(fieldSelector) : FieldSelector.everything();
    const labels = labelSelector ? parseLabelSelector(labelSelector) : LabelSelector.everything();
    checkCount('labelSelector', labels.requirements.length);
    checkCount('fieldSelector', selector.terms.length);
    return new SelectionPredicate<T>({
      labels,
      fields: selector,
      attributesOf: attributes(
        rulesOf(selector.terms).map(({ field }) => field),
        fields,
      ),
    });
  } catch (error) {
    if (isWatchError(error, 'INVALID_SELECTOR')) throw badRequest(error.message);
    throw error;
  }
}

/** The most requirements of a selector that comes from a client. */
const MAX_REQUIREMENTS = 256;

function checkCount(name: string, count: number): void {
  if (count > MAX_REQUIREMENTS) throw badRequest(`${name}: expected at most ${MAX_REQUIREMENTS} requirements, got ${count}`);
}

function attributes<T>(names: readonly string[], fields: FieldFunctions<T>): (object: T) => Attributes {
  const wanted = names.map((name) => {
    const own = [META_FIELDS as FieldFunctions<T>, fields].find((each) => Object.hasOwn(each, name))?.[name];
    if (!own) throw badRequest(`field label not supported: ${name}`);
    return [name, own] as const;
  });
  return (object) => ({
    labels: metadataOf(object).labels as Labels | undefined,
    fields: Object.fromEntries(wanted.map(([name, read]) => [name, fieldValue(name, read(object))])),
  });
}

/** What a function of `fields` has returned: no field equals a number, so whoever returns one must be told. */
export const fieldValue = (name: string, value: unknown): string => checkText(`fields[${JSON.stringify(name)}]`, value ?? '');

export interface ListPlan {
  /** Exactly this revision; undefined: the newest. */
  readonly exact: string | undefined;
  /** The state must not be older than this; undefined: it may be of any age. */
  readonly atLeast: string | undefined;
  /** Where a further page begins. */
  readonly from: Continuation | undefined;
}

/**
 * Decides what a list reads. Upstream: `ValidateListOptions` of storage.
 *
 * @throws {WatchError} REFUSED with code 400 for a version, match or `continue` that is invalid, or does not fit the others.
 */
export function planList({ resourceVersion, resourceVersionMatch, limit = 0, continue: token }: ListOptions): ListPlan {
  const version = parseVersion(resourceVersion);
  checkMatch(version, { resourceVersionMatch, token });
  if (token) {
    if (version !== undefined) throw badRequest('specifying resource version is not allowed when using continue');
    return { exact: undefined, atLeast: undefined, from: decodeContinue(token) };
  }
  // Without a match, a page at a version has always meant exactly that version.
  const isExact = resourceVersionMatch === 'Exact' || (resourceVersionMatch === undefined && limit > 0);
  return isExact && version !== undefined
    ? { exact: version, atLeast: undefined, from: undefined }
    : { exact: undefined, atLeast: version, from: undefined };
}

function checkMatch(
  version: string | undefined,
  {
    resourceVersionMatch: match,
    token,
  }: { resourceVersionMatch: ListOptions['resourceVersionMatch']; token: string | undefined },
): void {
  if (match === undefined) return;
  if (match !== 'Exact' && match !== 'NotOlderThan') throw badRequest('resourceVersionMatch: expected Exact or NotOlderThan');
  if (token) throw badRequest('resourceVersionMatch is forbidden with continue');
  if (match === 'Exact' && version === undefined) {
    throw badRequest('resourceVersionMatch "Exact" is forbidden without a resourceVersion other than "0"');
  }
}

export interface WatchPlan {
  /** Deliver the changes after this; undefined: begin with the state. */
  readonly after: string | undefined;
  /** The state must not be older than this. */
  readonly atLeast: string | undefined;
  /** Whether an annotated BOOKMARK ends the state. */
  readonly marksEnd: boolean;
  readonly bookmarks: boolean;
}

/**
 * Decides what a watch begins with.
 *
 * @throws {WatchError} REFUSED with code 400 for an invalid version, and for options that cannot be combined.
 */
export function planWatch(options: ListWatchOptions): WatchPlan {
  const { resourceVersionMatch, sendInitialEvents = false, allowWatchBookmarks = sendInitialEvents } = options;
  const version = parseVersion(options.resourceVersion);
  if (resourceVersionMatch !== undefined && resourceVersionMatch !== 'NotOlderThan') {
    throw badRequest('resourceVersionMatch of a watch: expected NotOlderThan');
  }
  if (sendInitialEvents && !allowWatchBookmarks) {
    throw badRequest('sendInitialEvents ends with a BOOKMARK: allowWatchBookmarks must not be false');
  }
  return sendInitialEvents
    ? { after: undefined, atLeast: version, marksEnd: true, bookmarks: true }
    : { after: version, atLeast: undefined, marksEnd: false, bookmarks: allowWatchBookmarks };
}

/**
 * Returns a version in its shortest form; undefined for none and for `0`. Upstream: `ParseResourceVersion`.
 *
 * @throws {WatchError} REFUSED with code 400 for anything but a decimal number.
 */
export function parseVersion(version: string | undefined): string | undefined {
  if (version === undefined || version === '') return undefined;
  if (typeof version !== 'string' || !/^\d{1,39}$/.test(version)) {
    const shown = shownOf(version).slice(0, 80);
    throw badRequest(`Invalid resource version: ${shown} is not a ${typeof version === 'string' ? 'decimal number' : 'string'}`);
  }
  return version.replace(/^0+/, '') || undefined;
}

/**
 * The `continue` of a list: the revision that it reads, and the key at which it continues. The key is relative to the scope, so
 * that a forged token cannot reach outside it. The format is upstream's, plus the number of items left.
 *
 *     { revision: '7', start: 'b\0', left: 3 } <---> base64url of {"v":"meta.k8s.io/v1","rv":7,"start":"b\u0000","left":3}
 *
 * Upstream: `storage/continue.go`.
 */
interface Continuation {
  /** The revision of all pages; undefined for the newest, if the first pages' revision is no longer kept. */
  readonly revision: string | undefined;
  /** The smallest key of the next page, relative to the scope. */
  readonly start: string;
  /** How many items follow, if an earlier page has counted them, so that no page has to count again. */
  readonly left?: number | undefined;
}

const VERSION = 'meta.k8s.io/v1';
/** A character of a key takes at most 6 characters of JSON; 3 bytes of UTF-8 take 4 characters of base64. */
const MAX_TOKEN_CHARS = 8 * MAX_KEY_CHARS + 200;
const DECIMAL = /"rv":(-1|[1-9]\d{0,38})[,}]/;

/** The `continue` of a next page that begins after `last`, the last key of this one. */
export function continueAfter(last: string, { revision, left }: Omit<Continuation, 'start'>): string {
  return encodeContinue({ revision, start: `${last}\0`, left });
}

export function encodeContinue({ revision = '-1', start, left }: Continuation): string {
  // Not by JSON.stringify alone: a revision may be too large for a JavaScript number.
  const count = left === undefined ? '' : `,"left":${left}`;
  const text = `{"v":"${VERSION}","rv":${revision},"start":${JSON.stringify(start)}${count}}`;
  const binary = Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join('');
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** @throws {WatchError} REFUSED with code 400 for an invalid token. */
export function decodeContinue(token: string): Continuation {
  const bad = badRequest('continue key is not valid');
  if (typeof token !== 'string' || token.length > MAX_TOKEN_CHARS) throw bad;
  let text: string;
  let parsed: { v?: unknown; start?: unknown; left?: unknown } | null;
  try {
    const binary = atob(token.replaceAll('-', '+').replaceAll('_', '/'));
    text = new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(binary, (char) => char.charCodeAt(0)));
    parsed = JSON.parse(text) as typeof parsed;
  } catch {
    throw bad;
  }
  const revision = DECIMAL.exec(text)?.[1];
  const { v, start, left } = parsed ?? {};
  if (v !== VERSION || revision === undefined || typeof start !== 'string' || start === '') throw bad;
  checkKey(start.endsWith('\0') ? start.slice(0, -1) : start);
  const counted = Number.isSafeInteger(left) && (left as number) >= 0 ? (left as number) : undefined;
  return { revision: revision === '-1' ? undefined : revision, start, left: counted };
}

/** The names of options that every storage knows. Unknown ones are refused, as they are probably misspelt. */
const SELECTION: readonly (keyof ListOptions & keyof ListWatchOptions)[] = [
  'labelSelector',
  'fieldSelector',
  'resourceVersion',
  'resourceVersionMatch',
  'timeoutSeconds',
  'signal',
];
export const LIST_NAMES: readonly (keyof ListOptions)[] = [...SELECTION, 'limit', 'continue'];
export const WATCH_NAMES: readonly (keyof StorageWatchOptions<unknown>)[] = [
  ...SELECTION,
  'sendInitialEvents',
  'allowWatchBookmarks',
  'stored',
  'onBytes',
  'previousOf',
];
export const KEYS_NAMES: readonly (keyof KeysOptions)[] = ['from', 'limit', 'signal'];
const PRECONDITION_NAMES: readonly (keyof Preconditions)[] = ['uid', 'resourceVersion'];
const CREATE_NAMES: readonly (keyof CreateOptions)[] = ['ttlSeconds', 'signal'];
const UPDATE_NAMES: readonly (keyof UpdateOptions<unknown>)[] = [
  ...PRECONDITION_NAMES,
  'cached',
  'createIfMissing',
  ...CREATE_NAMES,
];
const DELETE_NAMES: readonly (keyof DeleteOptions<unknown>)[] = [...PRECONDITION_NAMES, 'validate', 'cached', 'signal'];
export const SERVED_NAMES: readonly (keyof ServedOptions)[] = ['bookmarkMs', 'maxWatches', 'clock'];

/** @throws {WatchError} INVALID_ARGUMENT for an unknown or invalid option of a `create`. */
export function checkCreate(options: CreateOptions): CreateOptions & { readonly ttlSeconds: number } {
  const { ttlSeconds = 0, signal } = checkOptions(options, CREATE_NAMES);
  return { ttlSeconds: wholeNumber('ttlSeconds', ttlSeconds), signal };
}

/** @throws {WatchError} REFUSED with code 400 for an object that has a version other than 0, and so has been created before. */
export function checkNew(object: KubernetesObject): void {
  if ((object?.metadata?.resourceVersion || '0') !== '0')
    throw badRequest('resourceVersion should not be set on objects to be created');
}

/** @throws {WatchError} INVALID_ARGUMENT for an unknown or invalid option of an `update`, and if `change` is not a function. */
export function checkUpdate<T>(change: unknown, options: UpdateOptions<T>): UpdateOptions<T> & { readonly ttlSeconds: number } {
  const { ttlSeconds = 0 } = checkOptions(options, UPDATE_NAMES);
  if (callable('change', change) === undefined) throw invalid('change', change, 'a function');
  return { ...options, ttlSeconds: wholeNumber('ttlSeconds', ttlSeconds) };
}

/** @throws {WatchError} INVALID_ARGUMENT for an unknown or invalid option of a `delete`. */
export function checkDelete<T>(options: DeleteOptions<T>): DeleteOptions<T> {
  callable('validate', checkOptions(options, DELETE_NAMES).validate);
  return options;
}

/** The refusal with code 409 if a precondition fails; undefined if all hold. */
export function unmetPrecondition(
  key: string,
  object: KubernetesObject | undefined,
  preconditions: Preconditions,
): WatchError | undefined {
  for (const name of PRECONDITION_NAMES) {
    const expected = preconditions[name];
    if (expected === undefined) continue;
    const found = object?.metadata?.[name];
    if (expected === found) continue;
    return conflict(key, `the ${name} of the precondition is ${expected}, that of the object is ${found ?? 'none'}`);
  }
  return undefined;
}
