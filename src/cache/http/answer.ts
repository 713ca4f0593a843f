// Server responses: lists, events and refusals. All of it comes over the wire, so none of it is trusted.

import { isPage, toHintMs, toStatusIn, UNEXPECTED } from '../../bridge/client/transport.ts';
import { type Codec, jsonCodec, parseJson } from '../../decode/codec.ts';
import { MAX_HINT_MS } from '../../watch/backoff.ts';
import { isRecord, refusedBy, WatchError } from '../../watch/errors.ts';
import { CHANGES, isStatus, type ObjectEvent, type Status, type StatusDetails, toStatus } from '../../watch/event.ts';
import type { List, ObjectLookup } from '../list-watcher.ts';
import { type Prepare, prepareItems } from '../pager.ts';
import { ListReader } from './list-reader.ts';
import { readStored } from './reparse.ts';

/** The reasons for codes that a server sent without a Status. */
const REASONS: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  406: 'NotAcceptable',
  409: 'Conflict',
  410: 'Expired',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

/** The head of a response. Only that of a `fetch` has a type. */
type ResponseHead = Pick<Response, 'status' | 'headers'> & { readonly type?: Response['type'] };

/**
 * The error of a refusal: the Status in its body or, if it has none, one made from the response's code. In that case the text
 * of the body, perhaps a proxy's page, is the `cause` of the error, and its beginning is among the causes in the Status.
 */
export function toRefused(response: ResponseHead, body: string, url?: URL): WatchError {
  const { status, headers } = response;
  const hintMs = toHintMs(headers.get('retry-after') ?? '', headers.get('date')) || 0;
  const given = toStatusIn(body);
  if (given) return refusedBy(checked(given, status, hintMs));
  const text = body.trim();
  const code = status < 400 ? 500 : status;
  const start = text.slice(0, 200);
  const causes = [{ reason: UNEXPECTED, message: start || `status ${status}` }];
  const said = isPage(text) ? ', with a page' : start && `: ${start}`;
  const own = {
    code,
    reason: REASONS[code] ?? (code < 500 ? 'Unknown' : 'InternalError'),
    message: redirectOf(response, url) ?? `the server answered ${status}${said}`,
  };
  return refusedBy(checked(toStatus({ ...own, details: { causes } }), code, hintMs), text || undefined);
}

/** Where a redirect that was not followed leads. Browsers do not say. */
function redirectOf({ status, headers, type }: ResponseHead, url?: URL): string | undefined {
  const location = headers.get('location');
  const to = status < 400 && location && URL.canParse(location, url) && ` to ${shownUrl(new URL(location, url))}`;
  return to || type === 'opaqueredirect' ? `the server redirects${to || ''}, which is not followed` : undefined;
}

/** A URL without the parts that may be secret: user, password, query. */
export function shownUrl({ origin, pathname }: URL): string {
  return origin + pathname;
}

/** A Status whose members are checked to have their types. The delay of the header counts if the body has none. */
function checked(status: Status, fallback: number, hintMs: number): Status {
  const { code, reason, message, metadata, details } = status as Partial<Status>;
  const known =
    Number.isInteger(code) && (code as number) >= 400 && (code as number) < 600 ? (code as number) : Math.max(fallback, 400);
  const given = details !== null && typeof details === 'object' ? details : {};
  const seconds = [given.retryAfterSeconds, hintMs / 1_000].find(
    (each) => typeof each === 'number' && each > 0 && each < Infinity,
  );
  const more: StatusDetails = { ...given, retryAfterSeconds: seconds && Math.min(Math.ceil(seconds), MAX_HINT_MS / 1_000) };
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: typeof metadata?.continue === 'string' ? { continue: metadata.continue } : {},
    status: 'Failure',
    message: typeof message === 'string' ? message : '',
    reason: typeof reason === 'string' && reason ? reason : (REASONS[known] ?? 'Unknown'),
    code: known,
    ...((details || seconds) && { details: more }),
  };
}

/** Throws INVALID_FRAME for a response that claims to be something other than JSON, such as the page of a proxy. */
export function checkType(response: Pick<Response, 'headers'>): void {
  const type = response.headers.get('content-type');
  if (type && !type.toLowerCase().includes('json')) throw unreadable(`expected JSON, got ${type.slice(0, 80)}`);
}

function unreadable(what: string, cause?: unknown): WatchError {
  return new WatchError('INVALID_FRAME', what, { cause });
}

type JsonObject = Readonly<Record<string, unknown>>;

/** The `kind` and `apiVersion` that a list gives for all its items; events have their own. Undefined: it gives none. */
interface ItemType {
  readonly kind: string;
  readonly apiVersion: unknown;
}

function itemTypeOf({ kind, apiVersion }: JsonObject): ItemType | undefined {
  const isTyped = typeof kind === 'string' && kind.endsWith('List') && kind !== 'List';
  return isTyped ? { kind: kind.slice(0, -'List'.length), apiVersion } : undefined;
}

/** An item of a list, with the members that the list gives for all items. */
function toItem(item: unknown, type: ItemType | undefined): JsonObject {
  if (!isRecord(item)) throw unreadable('the list has an item that is not an object');
  if (type && item.kind === undefined && item.apiVersion === undefined) Object.assign(item, type);
  return item;
}

/**
 * Reads a list that comes in parts, item by item. With `prepare`, only its results are held; but if the list gives the type of
 * its items after them, which no Kubernetes server does, they are prepared at the end.
 */
export class ListParts<T> {
  readonly #reader: ListReader;
  readonly #prepare: Prepare<T> | undefined;
  /** What comes before the items. */
  #head: JsonObject | undefined;
  #type: ItemType | undefined;

  constructor(prepare?: Prepare<T>) {
    this.#prepare = prepare;
    this.#reader = new ListReader(
      prepare && ((item, head) => (this.#isTyped(head) ? prepare(toItem(item, this.#type) as T) : item)),
    );
  }

  push(bytes: Uint8Array): void {
    orUnreadable('list', () => this.#reader.push(bytes));
  }

  end(): List<T> {
    const prepared = this.#head?.kind !== undefined;
    const value = orUnreadable('list', () => this.#reader.end());
    const list = checkedList<T>(value, prepared);
    return prepared ? list : prepareItems(list, this.#prepare);
  }

  #isTyped(head: () => object): boolean {
    if (this.#head === undefined) {
      this.#head = head() as JsonObject;
      this.#type = itemTypeOf(this.#head);
    }
    return this.#head.kind !== undefined;
  }
}

/** Reads a list. See {@link checkedList}. */
export function toList<T>(text: string): List<T> {
  return checkedList(parse('list', text));
}

/** Checks a list, and its items unless they are prepared. */
function checkedList<T>(value: unknown, isPrepared: boolean = false): List<T> {
  if (isStatus(value) && (value as { status?: unknown }).status !== 'Success') throw refusedBy(checked(value, 500, 0));
  if (!isRecord(value) || !isRecord(value.metadata)) throw unreadable('not a list: it has no metadata');
  const { kind, metadata } = value;
  const { resourceVersion, continue: next, remainingItemCount } = metadata as JsonObject;
  const items = value.items === null ? [] : value.items;
  if (!Array.isArray(items)) throw unreadable(`not a list: expected items, got kind ${String(kind).slice(0, 80)}`);
  if (typeof resourceVersion !== 'string' || !resourceVersion) throw unreadable('the list has no resourceVersion');
  const type = itemTypeOf(value);
  if (!isPrepared) for (const item of items) toItem(item, type);
  return {
    items,
    resourceVersion,
    ...(typeof next === 'string' && next && { continue: next }),
    ...(typeof remainingItemCount === 'number' && { remainingItemCount }),
  };
}

/** Reads one object; undefined for a Status that reports success. */
export function toObject<T>(text: string): T | undefined {
  const value = parse('object', text);
  if (!isRecord(value)) throw unreadable('the answer is not an object');
  if (value.kind !== 'Status') return value as T;
  if (value.status === 'Success') return undefined;
  throw refusedBy(checked(value as unknown as Status, 500, 0));
}

function parse(what: string, text: string): unknown {
  return orUnreadable(what, () => parseJson(text));
}

function orUnreadable<R>(what: string, read: () => R): R {
  try {
    return read();
  } catch (cause) {
    // The caller's `prepare` may throw, too.
    if (!(cause instanceof SyntaxError)) throw cause;
    throw unreadable(`the ${what} is not JSON`, cause);
  }
}

const TYPES: readonly ObjectEvent<unknown>['type'][] = [...CHANGES, 'BOOKMARK', 'ERROR'];

/**
 * Decodes the events of a watch. A Status in place of an event is an ERROR. Anything but an event of Kubernetes is refused with
 * INVALID_FRAME. Parts that are the same in an object that is already stored are reused.
 */
export function eventCodec<T>(stored?: ObjectLookup): Codec<ObjectEvent<T>> {
  const json = jsonCodec<ObjectEvent<unknown>>({ types: TYPES });
  const inStore = stored && storedReader(stored);
  return {
    isWhole: json.isWhole,
    decode: (frame) => {
      const event = inStore?.(frame) ?? decodeOr(frame, json);
      if (event.type === 'ERROR') {
        if (!isStatus(event.object)) throw unreadable('the ERROR has no Status');
        return { type: 'ERROR', object: checked(event.object, 500, 0) };
      }
      const object: unknown = event.object;
      if (!isRecord(object) || !isRecord(object.metadata)) throw unreadable(`the ${event.type} has no object with metadata`);
      return event as ObjectEvent<T>;
    },
  };
}

/** After this many events about objects that are not stored, an initial state is probably on its way. */
const MAX_MISSES = 8;
/** Then only one event in this many is looked up, because that takes time. */
const SAMPLE_EVERY = 16;

/** Reads events about objects that are stored. Returns undefined for others, and for some that follow many others. */
function storedReader(stored: ObjectLookup): (frame: Uint8Array) => ObjectEvent<unknown> | undefined {
  let fresh = 0;
  return (frame) => {
    if (fresh > MAX_MISSES && fresh++ % SAMPLE_EVERY > 0) return undefined;
    const event = readStored(frame, stored) as ObjectEvent<unknown> | undefined;
    fresh = event ? 0 : fresh + 1;
    return event && TYPES.includes(event.type) ? event : undefined;
  };
}

function decodeOr(frame: Uint8Array, json: Codec<ObjectEvent<unknown>>): ObjectEvent<unknown> {
  try {
    return json.decode(frame) as ObjectEvent<unknown>;
  } catch (error) {
    const status = toStatusIn(new TextDecoder().decode(frame));
    if (!status) throw error;
    return { type: 'ERROR', object: status };
  }
}
