/**
 * The parameters of a list and of a watch: read from a query or from options, completed, and checked. Whether they may be
 * combined depends on nothing else. Upstream: `metainternalversion` defaults and validation.
 */
import type { ListOptions, ListWatchOptions } from '../../cache/list-watcher.ts';
import { parseFieldSelector } from '../../selectors/field-selector.ts';
import { parseLabelSelector } from '../../selectors/label-selector.ts';
import { LIST_NAMES } from '../../storage/requests.ts';
import { checkOptions, checkText, isWatchError } from '../../watch/errors.ts';
import { badRequest, invalidOptions } from '../api-status.ts';
import type { FieldCause } from '../definition.ts';
import { shown } from '../verbs/metadata.ts';

/** What a list or a watch asks for. Strings that were not given are empty. */
export interface ListParameters {
  readonly watch: boolean;
  readonly resourceVersion: string;
  readonly resourceVersionMatch: string;
  readonly sendInitialEvents: boolean | undefined;
  readonly allowWatchBookmarks: boolean;
  readonly timeoutSeconds: number;
  readonly labelSelector: string;
  readonly fieldSelector: string;
  readonly limit: number;
  readonly continue: string;
}

/** How long strings may be. */
interface QueryLimits {
  readonly maxSelectorLength: number;
}

const MAX_CONTINUE_CHARS = 4_096;

/**
 * A flag of Kubernetes: absent means no; `0` and `false` in upper or lower case mean no; anything else, even an empty value,
 * means yes.
 */
export function readFlag(text: string | null): boolean | undefined {
  return text === null ? undefined : !/^(0|false)$/i.test(text);
}

const UNITS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  '\u00b5s': 1e-3,
  '\u03bcs': 1e-3,
  ms: 1,
  s: 1e3,
  m: 6e4,
  h: 36e5,
};
const PART = /(\d{1,15}(?:\.\d{0,15})?|\.\d{1,15})(ns|us|\u00b5s|\u03bcs|ms|s|m|h)/gy;

/** The parameter `timeout`, a duration as Go writes it, in ms; 0 if it is absent or empty. Throws 400. */
export function readTimeout(text: string | null): number {
  const digits = (text ?? '').slice(0, 100).replace(/^[-+]/, '');
  if (digits === '' && !text) return 0;
  let [ms, at] = [0, 0];
  PART.lastIndex = 0;
  for (let part = PART.exec(digits); part !== null; part = PART.exec(digits)) {
    ms += Number(part[1]) * (UNITS[part[2] as string] as number);
    at = PART.lastIndex;
  }
  // Go has 64 bits for nanoseconds.
  const isTooLong = ms >= 2 ** 63 / 1_000_000;
  if ((digits !== '0' && (at === 0 || at < digits.length)) || isTooLong) {
    throw badRequest(`invalid timeout specified in the request URL - time: invalid duration ${shown(String(text))}`);
  }
  return String(text).startsWith('-') ? 0 : ms;
}

/** A whole number; 0 if it is absent or empty. */
export function readCount(name: string, text: string | null): number {
  if (text === null || text === '') return 0;
  const value = Number(text);
  if (!/^[0-9]{1,15}$/.test(text))
    throw badRequest(`${name}: Invalid value: ${shown(text)}: expected a whole number that is not negative`);
  return value;
}

/** Reads the query of a list or a watch. Of repeated parameters the first counts, as upstream. */
export function readListQuery(query: URLSearchParams, forcedWatch: boolean = false): ListParameters {
  return {
    watch: forcedWatch || (readFlag(query.get('watch')) ?? false),
    resourceVersion: query.get('resourceVersion') ?? '',
    resourceVersionMatch: query.get('resourceVersionMatch') ?? '',
    sendInitialEvents: readFlag(query.get('sendInitialEvents')),
    allowWatchBookmarks: readFlag(query.get('allowWatchBookmarks')) ?? false,
    timeoutSeconds: readCount('timeoutSeconds', query.get('timeoutSeconds')),
    labelSelector: query.get('labelSelector') ?? '',
    fieldSelector: query.get('fieldSelector') ?? '',
    limit: readCount('limit', query.get('limit')),
    continue: query.get('continue') ?? '',
  };
}

const COMMON = ['labelSelector', 'fieldSelector', 'resourceVersion', 'resourceVersionMatch', 'timeoutSeconds', 'signal'] as const;

/** The same from the options of a list in process. */
export function fromListOptions(options: ListOptions): ListParameters {
  checkOptions(options, LIST_NAMES);
  return { ...common(options), limit: count('limit', options.limit), continue: text('continue', options.continue) };
}

/** The same from the options of a watch in process. Adds what `sendInitialEvents` requires, as `createListWatcher` does. */
export function fromWatchOptions(options: ListWatchOptions): ListParameters {
  checkOptions(options, [...COMMON, 'sendInitialEvents', 'allowWatchBookmarks', 'stored', 'onBytes']);
  const { sendInitialEvents, allowWatchBookmarks = sendInitialEvents ?? false } = options;
  const base = common(options);
  const resourceVersionMatch = base.resourceVersionMatch || (sendInitialEvents === undefined ? '' : 'NotOlderThan');
  return { ...base, resourceVersionMatch, watch: true, sendInitialEvents, allowWatchBookmarks };
}

/** Parameters of a request without any. */
const NOTHING: ListParameters = {
  ...{ watch: false, sendInitialEvents: undefined, allowWatchBookmarks: false, timeoutSeconds: 0, limit: 0 },
  ...{ resourceVersion: '', resourceVersionMatch: '', labelSelector: '', fieldSelector: '', continue: '' },
};

function common(options: ListOptions): ListParameters {
  return {
    ...NOTHING,
    resourceVersion: text('resourceVersion', options.resourceVersion),
    resourceVersionMatch: text('resourceVersionMatch', options.resourceVersionMatch),
    timeoutSeconds: count('timeoutSeconds', options.timeoutSeconds),
    labelSelector: text('labelSelector', options.labelSelector),
    fieldSelector: text('fieldSelector', options.fieldSelector),
  };
}

const text = (name: string, value: unknown = ''): string => checkText(name, value);

function count(name: string, value: number = 0): number {
  return readCount(name, String(value));
}

/**
 * Completes and checks parameters. A watch without a version begins with the state, so that clients from before
 * `sendInitialEvents` still work.
 *
 * @throws 400 for a malformed value, 422 for parameters that cannot be combined.
 */
export function checkedParameters(given: ListParameters, { maxSelectorLength }: QueryLimits): ListParameters {
  for (const name of ['labelSelector', 'fieldSelector'] as const) {
    if (given[name].length > maxSelectorLength) {
      throw badRequest(`${name}: expected at most ${maxSelectorLength} characters, got ${given[name].length}`);
    }
  }
  if (given.continue.length > MAX_CONTINUE_CHARS) throw badRequest('continue: the token is too long');
  // Upstream, selectors are part of what is decoded, before all is validated, and a version is nobody's business until it is used.
  checkSyntax(given);
  const meant: ListParameters = isLegacyWatch(given)
    ? { ...given, sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' }
    : given;
  const causes = meant.watch ? watchCauses(meant) : listCauses(meant);
  if (causes.length > 0) throw invalidOptions('ListOptions', causes);
  checkVersion('resourceVersion', given.resourceVersion);
  return meant;
}

/** Throws 400 for a selector that cannot be read. */
function checkSyntax({ labelSelector, fieldSelector }: ListParameters): void {
  try {
    parseLabelSelector(labelSelector);
    parseFieldSelector(fieldSelector);
  } catch (error) {
    if (isWatchError(error, 'INVALID_SELECTOR')) throw badRequest(error.message);
    throw error;
  }
}

/** Throws 400 for a version that is not a decimal number. */
export function checkVersion(name: string, version: string): void {
  if (version !== '' && !/^(0|[1-9][0-9]{0,38})$/.test(version)) {
    throw badRequest(`${name}: Invalid value: ${shown(version)}: expected a decimal number`);
  }
}

const isUnset = (version: string): boolean => version === '' || version === '0';

function isLegacyWatch({ watch, sendInitialEvents, resourceVersionMatch, resourceVersion }: ListParameters): boolean {
  return watch && sendInitialEvents === undefined && resourceVersionMatch === '' && isUnset(resourceVersion);
}

const forbidden = (field: string, why: string): FieldCause => ({ field, message: `Forbidden: ${why}` });
const MATCH = 'resourceVersionMatch';

function unsupported(value: string, supported: readonly string[]): FieldCause {
  const list = supported.map((each) => JSON.stringify(each)).join(', ');
  return { field: MATCH, message: `Unsupported value: ${shown(value)}: supported values: ${list}` };
}

/** What cannot be combined in a list. */
function listCauses(given: ListParameters): readonly FieldCause[] {
  const { resourceVersionMatch: match, resourceVersion, sendInitialEvents } = given;
  const causes: FieldCause[] = [];
  if (match !== '') {
    if (resourceVersion === '')
      causes.push(forbidden(MATCH, 'resourceVersionMatch is forbidden unless resourceVersion is provided'));
    if (given.continue !== '') causes.push(forbidden(MATCH, 'resourceVersionMatch is forbidden when continue is provided'));
    if (match !== 'Exact' && match !== 'NotOlderThan') causes.push(unsupported(match, ['Exact', 'NotOlderThan', '']));
    if (match === 'Exact' && resourceVersion === '0') {
      causes.push(forbidden(MATCH, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'));
    }
  }
  if (sendInitialEvents !== undefined) {
    causes.push(forbidden('sendInitialEvents', 'sendInitialEvents is forbidden for list'));
  }
  return causes;
}

/** What cannot be combined in a watch. */
function watchCauses(given: ListParameters): readonly FieldCause[] {
  const { resourceVersionMatch: match, sendInitialEvents } = given;
  const causes: FieldCause[] = [];
  if (sendInitialEvents !== undefined && match !== 'NotOlderThan') {
    causes.push(forbidden(MATCH, 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'));
  }
  if (match !== '') {
    if (sendInitialEvents === undefined) {
      causes.push(forbidden(MATCH, 'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided'));
    }
    if (match !== 'NotOlderThan') causes.push(unsupported(match, ['NotOlderThan']));
    if (given.continue !== '') causes.push(forbidden(MATCH, 'resourceVersionMatch is forbidden when continue is provided'));
  }
  return causes;
}
