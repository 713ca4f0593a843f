import { tried } from '../../watch/errors.ts';
import type { Status } from '../../watch/event.ts';
import { toStatus } from '../../watch/event.ts';
import type { WatchQuery } from '../protocol.ts';
import { DEFAULTS, LAST_EVENT_ID, PARAMETERS } from '../protocol.ts';

export interface ParsedQuery extends WatchQuery {
  /** Whether the version came in `Last-Event-ID`: an EventSource that reconnects, and repeats its original URL. */
  readonly isBack?: boolean;
}

/** The raw parts of a request. */
interface RawQuery {
  /** The text after the `?`, or empty. */
  readonly search: string;
  readonly lastEventId: string | undefined;
}

/** The message for a query that cannot be decoded. */
export const BAD_QUERY_TEXT = 'the query of the URL is not encoded correctly';

/**
 * The parameters of the text after a `?`; undefined if one cannot be decoded: a `%` is not followed by two hexadecimal digits, or the
 * bytes are not UTF-8. `URLSearchParams` would read such a text as another one, and `watch=%` as true.
 */
export function toParameters(search: string): URLSearchParams | undefined {
  if (search.includes('%') && tried(() => decodeURIComponent(search)) === undefined) return undefined;
  return new URLSearchParams(search);
}

/**
 * Parses a query. Returns a Status of code 400 if it is invalid. The parameters of this protocol may occur once each, with a
 * limited length; other parameters are ignored.
 */
export function readQuery(words: RawQuery, maxQueryBytes: number = DEFAULTS.maxQueryBytes): ParsedQuery | Status {
  const { search, lastEventId } = words;
  if (search.length > maxQueryBytes) return invalidQuery('the query', search, `at most ${maxQueryBytes} bytes`);
  const given = toParameters(search);
  if (given === undefined) return toStatus({ code: 400, reason: 'BadRequest', message: BAD_QUERY_TEXT });
  for (const name of Object.values(PARAMETERS)) {
    const values = given.getAll(name);
    if (values.length > 1) return invalidQuery(name, values.join(', '), 'one value');
    if ((values[0] ?? '').length > DEFAULTS.maxParameterChars) {
      return invalidQuery(name, values[0] as string, `at most ${DEFAULTS.maxParameterChars} characters`);
    }
  }
  const flags: Record<'allowWatchBookmarks' | 'sendInitialEvents', boolean | undefined> = {
    allowWatchBookmarks: undefined,
    sendInitialEvents: undefined,
  };
  for (const name of ['allowWatchBookmarks', 'sendInitialEvents'] as const) {
    const text = given.get(name) ?? '';
    if (!BOOLEANS.has(text)) return invalidQuery(name, text, 'true or false');
    flags[name] = BOOLEANS.get(text);
  }
  const seconds = given.get(PARAMETERS.timeoutSeconds) ?? '';
  if (!/^[0-9]{0,9}$/.test(seconds)) return invalidQuery(PARAMETERS.timeoutSeconds, seconds, 'a whole number of seconds');
  const isBack = lastEventId !== undefined && lastEventId !== '';
  const version = isBack ? lastEventId : (given.get(PARAMETERS.resourceVersion) ?? '');
  if (version !== '' && version !== '0' && readVersion(version) === undefined) {
    return invalidQuery(isBack ? LAST_EVENT_ID : PARAMETERS.resourceVersion, version, 'a version from this stream');
  }
  return {
    ...flags,
    isBack,
    timeoutSeconds: Number(seconds) || undefined,
    resourceVersion: version === '' || version === '0' ? undefined : version,
  };
}

const BOOLEANS: ReadonlyMap<string, boolean | undefined> = new Map([
  ['', undefined],
  ['true', true],
  ['1', true],
  ['false', false],
  ['0', false],
]);

/** A version, split into its parts. */
interface Version {
  readonly epoch: string;
  /** Infinity if it is larger than any number counted here. */
  readonly sequence: number;
}

/** The characters and length of an epoch. */
export const EPOCH: RegExp = /^[\w-]{1,64}$/;
/** The same in a version, where the mark of a hub's source may follow; see source.ts. */
const VERSION_EPOCH: RegExp = /^[\w-]{1,64}(?:~[0-9a-z]{1,16})?$/;

/** Splits a version, or returns undefined if it is invalid. Only digits are ever converted to a number. */
export function readVersion(text: string): Version | undefined {
  if (text.length > DEFAULTS.maxParameterChars) return undefined;
  const dot = text.lastIndexOf('.');
  const epoch = text.slice(0, Math.max(0, dot));
  const digits = text.slice(dot + 1);
  if (!VERSION_EPOCH.test(epoch) || !/^(0|[1-9][0-9]*)$/.test(digits)) return undefined;
  return { epoch, sequence: digits.length > 15 ? Number.POSITIVE_INFINITY : Number(digits) };
}

/** Creates the Status of an invalid request: the name, its value, and what was expected. */
export function invalidQuery(name: string, value: string, expected: string): Status {
  const shown = value.length > 80 ? `${value.slice(0, 80)}...` : value;
  const message = `${name}: expected ${expected}, got "${shown.replace(/\p{C}/gu, '.')}"`;
  return toStatus({ code: 400, reason: 'BadRequest', message });
}
