/** The options of a list or a watch, checked as a server must: they may have come over the wire. */
import type { ListOptions, ListWatchOptions } from '../cache/list-watcher.ts';
import { metadataOf } from '../cache/object.ts';
import {
  type Attributes,
  FieldSelector,
  LabelSelector,
  type Labels,
  parseFieldSelector,
  parseLabelSelector,
  rulesOf,
  SelectionPredicate,
} from '../selectors/index.ts';
import { isWatchError } from '../watch/errors.ts';
import { type Continuation, decodeContinue } from './continue.ts';
import { badRequest } from './statuses.ts';
import type { FieldFunctions } from './storage.ts';

/** The fields of every object. */
const META_FIELDS: FieldFunctions<unknown> = {
  'metadata.name': (object) => metadataOf(object).name,
  'metadata.namespace': (object) => metadataOf(object).namespace,
};

/**
 * What a request selects: labels, the fields `metadata.name` and `metadata.namespace`, and those of `fields`.
 *
 * @throws {WatchError} REFUSED with code 400 for an invalid selector, one with too many requirements, or one that names another
 *   field.
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
export const MAX_REQUIREMENTS = 256;

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
    fields: Object.fromEntries(wanted.map(([name, read]) => [name, read(object) ?? ''])),
  });
}

/** Which state a list reads. */
export interface ListPlan {
  /** That revision and no other; undefined: the newest. */
  readonly exact: string | undefined;
  /** The newest must not be older than this; undefined: it may be of any age. */
  readonly atLeast: string | undefined;
  /** Where a further page begins. */
  readonly from: Continuation | undefined;
}

/**
 * Decides what a list reads. Upstream: `ValidateListOptions` of storage.
 *
 * @throws {WatchError} REFUSED with code 400 for a version, match or `continue` that is invalid, or that does not fit the others.
 */
export function planList({ resourceVersion, resourceVersionMatch, limit = 0, continue: token }: ListOptions): ListPlan {
  const version = parseVersion(resourceVersion);
  checkMatch(version, { resourceVersionMatch, token });
  if (token) {
    if (version !== undefined) throw badRequest('specifying resource version is not allowed when using continue');
    return { exact: undefined, atLeast: undefined, from: decodeContinue(token) };
  }
  // Without a match, a page of a version has always meant exactly that version.
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

/** What a watch begins with. */
export interface WatchPlan {
  /** Deliver what follows this; undefined: begin with the state. */
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
 * @throws {WatchError} REFUSED with code 400 for an invalid version, and for options that do not fit each other.
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
    throw badRequest(`Invalid resource version: ${JSON.stringify(String(version).slice(0, 80))} is not a decimal number`);
  }
  return version.replace(/^0+/, '') || undefined;
}
