import type { Status } from './event.ts';

/**
 * The stable code of a {@link WatchError}, the error for every failure this package detects itself. Match on the code with
 * {@link isWatchError}: unlike `instanceof`, it works when a program contains two copies of the package. Errors thrown by a
 * source, by user code, by an abort or by the host are passed on unchanged.
 *
 * | code | when | data |
 * |---|---|---|
 * | `CLOSED` | `publish`, `tryPublish` or `watch` after `shutdown`; a pending `publish` when the signal of `shutdown` aborts; calls to an informer, storage or server that has stopped or was closed, and calls that wait when it stops | |
 * | `OVERLOADED` | `publish` while `maxPending` publishes are pending; `fromObservable` with `wait` when its queue is full; adding a key to a work queue that holds `maxKeys` others; a list beyond `maxPages`, `maxObjects` or `maxTotalListBytes` | `limit` |
 * | `INVALID_ARGUMENT` | an option or argument of the wrong kind; the message names the value and what was expected | |
 * | `FRAME_TOO_LARGE` | a frame of a byte stream is longer than `maxFrameBytes`, an event that is published to a hub is longer than `maxEventBytes`, or a response is longer than its limit | `limit` |
 * | `INVALID_FRAME` | a frame, a response or a storage's file is not what was expected: not JSON, not an event, or damaged | |
 * | `QUEUE_FULL` | a fake was given more events than its queue holds | `limit` |
 * | `INVALID_SELECTOR` | the text of a selector is invalid or too long; the message shows where | `position`, `limit` |
 * | `REFUSED` | a server or a storage refused a request; `status` says why | `status` |
 * | `TIMEOUT` | a server did not answer in time, or an awaited event did not happen in time | `limit` in ms, if there is one |
 */
export type WatchErrorCode =
  | 'CLOSED'
  | 'OVERLOADED'
  | 'INVALID_ARGUMENT'
  | 'FRAME_TOO_LARGE'
  | 'INVALID_FRAME'
  | 'QUEUE_FULL'
  | 'INVALID_SELECTOR'
  | 'REFUSED'
  | 'TIMEOUT';

/** The only error class of this package. See {@link WatchErrorCode} for the codes. */
export class WatchError extends Error {
  override readonly name: string = 'WatchError';
  readonly code: WatchErrorCode;
  /** The limit that was reached, for codes that have one. */
  readonly limit?: number | undefined;
  /** The index of the character at which a text is invalid, for codes that have one. */
  readonly position?: number | undefined;
  /** The Status of the refusal, for REFUSED. Its `code` is an HTTP status, and `details.retryAfterSeconds` says when to try again. */
  readonly status?: Status | undefined;

  constructor(
    code: WatchErrorCode,
    message: string,
    more?: { limit?: number | undefined; position?: number | undefined; status?: Status | undefined; cause?: unknown },
  ) {
    super(message, more);
    this.code = code;
    this.limit = more?.limit;
    if (more?.position !== undefined) this.position = more.position;
    this.status = more?.status;
  }
}

/** Whether `error` is a {@link WatchError}, with the given code if there is one. Works across copies of the package. */
export function isWatchError(error: unknown, code?: WatchErrorCode): error is WatchError {
  const thrown = error as Partial<WatchError> | undefined | null;
  return thrown?.name === 'WatchError' && (code === undefined || thrown.code === code);
}

/** Creates an INVALID_ARGUMENT error that names the value and what was expected. */
export function invalid(name: string, value: unknown, expected: string): WatchError {
  return new WatchError('INVALID_ARGUMENT', `${name}: expected ${expected}, got ${shownOf(value).slice(0, 80)}`);
}

/** A value for a message. Of an object, only its class and the names of its members, because the values may be secret. */
export function shownOf(value: unknown): string {
  try {
    if (typeof value === 'string') return JSON.stringify(value);
    const text = String(value);
    if (text && !text.includes('[object ')) return text;
    return `${(value as object).constructor.name} {${Object.keys(value as object).join(', ')}}`;
  } catch {
    return typeof value; // it cannot be converted to text
  }
}

/** The message of an error; for anything else that was thrown, a description. */
export function whyOf(error: unknown): string {
  const { message } = (error ?? {}) as Partial<Error>;
  return message || (typeof error === 'string' ? error : shownOf(error));
}

/** Returns `value` if it is a whole number of at least `min`; otherwise throws INVALID_ARGUMENT. */
export function wholeNumber(name: string, value: number, min: number = 0): number {
  if (!Number.isSafeInteger(value) || value < min) throw invalid(name, value, `a whole number >= ${min}`);
  return value;
}

/** The options that are whole numbers: the default of each, and the least that it may be; by default 0. */
export type Wholes<Name extends string> = Readonly<Record<Name, readonly [fallback: number, min?: number]>>;

/** Returns these options, with their defaults. Throws INVALID_ARGUMENT as {@link wholeNumber} does. */
export function wholeNumbers<Name extends string>(
  options: { readonly [Each in NoInfer<Name>]?: number | undefined },
  wholes: Wholes<Name>,
): Record<Name, number> {
  const numbers = {} as Record<Name, number>;
  for (const name of namesOf(wholes)) {
    const { [name]: value = wholes[name][0] } = options; // not for null, which may be a number that nobody knew
    numbers[name] = wholeNumber(name, value, wholes[name][1]);
  }
  return numbers;
}

/** The names in a table, for {@link checkOptions}. */
export function namesOf<Name extends string>(table: Readonly<Record<Name, unknown>>): Name[] {
  return Object.keys(table) as Name[];
}

/** Whether a value is an object, but not a list: what JSON calls an object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

export function isNullish(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}

/** Returns the value of a key, which `make` makes if the map does not have it. */
export function getOrMake<K, V>(map: { get(key: K): V | undefined; set(key: K, value: V): unknown }, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}

/** Returns what `work` returns; undefined if it throws. */
export function tried<R>(work: () => R): R | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

/** The error of a refusal, which says what its Status says. */
export function refusedBy(status: Status, cause?: unknown): WatchError {
  const { code, reason, message } = status;
  return new WatchError('REFUSED', `${code} ${reason}: ${message}`, { status, ...(cause !== undefined && { cause }) });
}

/** The code of the Status with which a server refused; undefined if an error is not a refusal. */
export function refusalCode(error: unknown): number | undefined {
  return isWatchError(error, 'REFUSED') ? error.status?.code : undefined;
}

/** Returns `value` if it is a string; otherwise throws INVALID_ARGUMENT. */
export function checkText(name: string, value: unknown): string {
  if (typeof value !== 'string') throw invalid(name, value, 'a string');
  return value;
}

/**
 * The JSON of an argument. Throws INVALID_ARGUMENT for what JSON cannot express, with its path, and for the numbers of which it would
 * make null without a word, because null deletes in a merge patch; also for a map or a set, of which it would make `{}`. Only a text
 * with one of these is looked at more closely.
 */
export function toJson(name: string, object: object): string {
  let text: string | undefined;
  let cause: unknown;
  try {
    text = JSON.stringify(object);
  } catch (error) {
    cause = error;
  }
  const path = cause || (text && /null|\{\}/.test(text)) ? tried(() => lossIn(object)) : undefined;
  if (path !== undefined) throw new WatchError('INVALID_ARGUMENT', `${name}${path}: expected a value that JSON has`, { cause });
  if (cause) throw new WatchError('INVALID_ARGUMENT', `${name}: ${whyOf(cause)}`, { cause });
  if (text === undefined) throw invalid(name, object, 'an object');
  return text;
}

/** The path of the first number, map or set in a value that JSON does not have. What has a `toJSON` speaks for itself. */
function lossIn(value: unknown): string | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : '';
  if (typeof (value as { toJSON?: unknown } | null | undefined)?.toJSON === 'function') return undefined;
  if (typeof value === 'bigint' || value instanceof Map || value instanceof Set) return '';
  if (!isContainer(value)) return undefined;
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) {
      const below = lossIn(value[at]);
      if (below !== undefined) return `[${at}]${below}`;
    }
    return undefined;
  }
  for (const name in value) {
    const each = (value as Record<string, unknown>)[name];
    const below = typeof each === 'string' ? undefined : lossIn(each);
    if (below !== undefined) return `.${name}${below}`;
  }
  return undefined;
}

/** Returns `value` if it has this method; otherwise throws INVALID_ARGUMENT. */
export function requireMethod<T>(name: string, value: T, method: keyof T & string, expected: string): T {
  if (typeof (value as T | undefined | null)?.[method] !== 'function') throw invalid(name, value, expected);
  return value;
}

/** Returns `value` if it is a function or undefined; otherwise throws INVALID_ARGUMENT. */
export function callable<F>(name: string, value: F): F {
  if (value !== undefined && typeof value !== 'function') throw invalid(name, value, 'a function');
  return value;
}

/** Returns `value` if it is an object of functions; otherwise throws INVALID_ARGUMENT. */
export function callables<F extends object>(name: string, value: F): F {
  if (!isRecord(value)) throw invalid(name, value, 'an object of functions');
  for (const [key, each] of Object.entries(value)) callable(`${name}[${JSON.stringify(key)}]`, each ?? null);
  return value;
}

/** Returns `value` if it is one of `words`; otherwise throws INVALID_ARGUMENT. */
export function oneOf<W extends string>(name: string, value: W, words: readonly W[]): W {
  if (!words.includes(value)) throw invalid(name, value, `one of ${words.join(', ')}`);
  return value;
}

/**
 * Returns `options`. Throws INVALID_ARGUMENT for anything but an object, for a list, a promise and the like, and for an option that
 * is not in `names`: a misspelt one would otherwise mean the default. An option that is undefined counts as not given. Class
 * instances may have other members, so the names of plain objects only are checked. `signal` and `clock` are the same everywhere.
 */
export function checkOptions<O extends object>(options: O, names: readonly (keyof O & string)[]): O {
  // A promise, a signal or a list would otherwise mean the defaults, such as no authentication.
  if (!/Object|Module/.test({}.toString.call(options))) throw invalid('options', options, 'an object');
  for (const name of Object.keys(options) as (keyof O & string)[]) {
    const value: unknown = options[name];
    if (name === 'signal' && !isNullish(value)) requireMethod(name, value as AbortSignal, 'addEventListener', 'an AbortSignal');
    if (name === 'clock' && value !== undefined) requireMethod(name, value as { schedule: unknown }, 'schedule', 'a Clock');
    if (names.includes(name) || value === undefined || !isPlain(options)) continue;
    const near = nearest(name, names);
    const advice = near ? `did you mean ${near}?` : `expected one of ${names.join(', ')}`;
    throw new WatchError('INVALID_ARGUMENT', `unknown option ${name.slice(0, 80)}: ${advice}`);
  }
  return options;
}

/** Throws INVALID_ARGUMENT for anything but a signal or undefined, such as options with one. */
export function checkSignal(signal: AbortSignal | undefined): void {
  checkOptions({ signal }, ['signal']);
}

/** Throws INVALID_ARGUMENT for anything but a Request, such as a URL or the context of a framework. */
export function checkRequest(request: Request): void {
  if (typeof (request as Partial<Request> | null | undefined)?.url !== 'string' || !request.headers)
    throw invalid('request', request, 'a Request');
}

/** Whether an object is plain, in any realm: it has no prototype, or one without a prototype. */
export function isPlain(object: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(object);
  return !prototype || !Object.getPrototypeOf(prototype);
}

/** The name that was probably meant; empty if none is similar. */
export function nearest(name: string, names: readonly string[]): string {
  const near = names.reduce((one, other) => (distance(name, other) < distance(name, one) ? other : one), names[0] ?? '');
  const beginsAlike = name.length > 2 && near.startsWith(name.slice(0, 3));
  return beginsAlike || distance(name, near) <= Math.min(name.length, near.length) / 2 ? near : '';
}

/** The number of letters to insert, remove or replace to get from one word to the other (Levenshtein), row by row. */
export function distance(from: string, to: string): number {
  let row = Array.from(`${to}.`, (_, at) => at);
  for (const letter of from.slice(0, 40)) {
    let left = 0;
    row = row.map((above, at) => {
      left = 1 + (at ? Math.min(above, left, (row[at - 1] as number) - +(to[at - 1] === letter)) : above);
      return left;
    });
  }
  return row.at(-1) as number;
}
