/**
 * Objects as tables and as metadata, over HTTP. Lists are made piece by piece, while they are sent. A stream of tables is not
 * shared between clients: only its first event has the columns, and ages are relative to now.
 */
import { Envelope } from '../../bridge/events/envelope.ts';
import type { List } from '../../cache/list-watcher.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import { stringifying } from '../../storage/json.ts';
import type { StorageEvent } from '../../storage/storage.ts';
import { encoded, encoding, isLarge, isReady } from '../../storage/values.ts';
import { isPromise } from '../../watch/abort.ts';
import { getOrMake } from '../../watch/errors.ts';
import { atOnce, inPieces, type Work } from '../../watch/fair-queue.ts';
import { notAcceptable } from '../api-status.ts';
import { conversionOf, isJson, type MediaRange, readAccept } from '../request/path.ts';
import { hasProtobuf, PROTOBUF } from '../request/protobuf.ts';
import type { ResourceInfo } from '../resource-info.ts';
import type { SeenKind } from '../subresources.ts';
import { showing } from '../verbs/read.ts';
import { type EventEncoder, isLargeChange, PlainEvents, type Presentation, sliceOf } from './event-encoder.ts';
import { AS_PROTOBUF } from './protobuf-presentation.ts';
import {
  type IncludeObject,
  type ListMeta,
  type MetaVersion,
  toBookmarkTable,
  toIncludeObject,
  toPartial,
  toPartialList,
  toRow,
  toTable,
} from './table.ts';
import { JSON_HEADERS } from './wire.ts';
import { yamlOf } from './yaml-writer.ts';

const utf8 = new TextEncoder();
const toBytes = (value: unknown): Uint8Array => utf8.encode(JSON.stringify(value));

function* writingBytes(value: unknown): Work<Uint8Array> {
  return utf8.encode(yield* stringifying(value));
}

/** What is needed to make a table. */
interface TableTerms {
  readonly now: () => number;
  readonly version: MetaVersion;
  readonly includeObject: IncludeObject;
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** Objects as tables. Upstream: `asTable`. */
function tables({ now, ...rest }: TableTerms): Presentation {
  const terms = (): Omit<TableTerms, 'now'> & { readonly now: number } => ({ ...rest, now: now() });
  return {
    headers: JSON_HEADERS,
    writing: (info, object) => writingBytes(toTable(info, [object], terms())),
    *list(info, { items, ...more }) {
      const own = { ...terms(), list: items };
      yield* pieces(toTable(info, [], { ...own, metadata: toListMeta(more) }), items, (each) => toRow(info, each, own));
    },
    events(info) {
      let columns = true;
      return projected(info, (object, type) => {
        const own = { ...terms(), columns };
        columns = false;
        return type === 'BOOKMARK' ? toBookmarkTable(info, object, own) : toTable(info, [object], own);
      });
    },
  };
}

/** Objects reduced to their metadata. Upstream: `asPartialObjectMetadata`. */
function partials(version: MetaVersion): Presentation {
  return {
    headers: JSON_HEADERS,
    writing: (_, object) => writingBytes(toPartial(object, version)),
    *list(_, { items, ...more }) {
      const list = toPartialList([], { version, metadata: toListMeta(more) });
      yield* pieces(list, items, (each) => toPartial(each, version));
    },
    events: (info) => projected(info, (object) => toPartial(object, version)),
  };
}

/** The events of one stream, each with the projection of its object. An ERROR stays as it is. */
function projected(info: ResourceInfo, project: (object: KubernetesObject, type: string) => object): EventEncoder {
  const show = showing(info);
  /** The next event, if it is large. It is kept no longer than that, as each stream would have its own. */
  let prepared: { readonly event: object; readonly envelope: Envelope } | undefined;
  function* making(event: StorageEvent<KubernetesObject>): Work<Envelope> {
    const { type, object } = event;
    if (type === 'ERROR') return new Envelope({ type, object }, { sequence: 0 });
    const shown = show && type !== 'BOOKMARK' ? yield* show(object) : object;
    const told = { type, object: project(shown, type) };
    const bytes = isLargeChange(event) ? yield* writingBytes(told) : undefined;
    return new Envelope(told, { sequence: 0, id: object.metadata?.resourceVersion, bytes });
  }
  const toEnvelope = (event: StorageEvent<KubernetesObject>): Envelope => {
    const known = prepared;
    prepared = undefined;
    return known?.event === event ? known.envelope : atOnce(making(event));
  };
  return {
    prepare(batch, from, pace) {
      const event = batch[from];
      if (!isLargeChange(event) || prepared?.event === event) return undefined;
      const take = (envelope: Envelope): undefined => {
        prepared = { event, envelope };
      };
      const made = inPieces(making(event), { pace });
      return isPromise(made) ? made.then(take) : take(made);
    },
    slice: (batch, from, form) => sliceOf(batch, from, { form, toEnvelope, isSlow: true }),
  };
}

const COMMA = utf8.encode(',');
const END = utf8.encode(']}\n');

/** The pieces of a list: the list without items, whose last member is their empty list, and each item. */
function* pieces(
  empty: object,
  items: readonly KubernetesObject[],
  make: (item: KubernetesObject) => object,
): Generator<Uint8Array> {
  const text = JSON.stringify(empty);
  yield utf8.encode(text.slice(0, text.lastIndexOf(']}')));
  let first = true;
  for (const item of items) {
    if (!first) yield COMMA;
    first = false;
    const made = make(item);
    yield isLarge(item) ? yield* paused(writingBytes(made)) : toBytes(made);
  }
  yield END;
}

function toListMeta({ resourceVersion, continue: next, remainingItemCount }: ListMeta): ListMeta {
  return { resourceVersion, ...(next && { continue: next }), ...(remainingItemCount !== undefined && { remainingItemCount }) };
}

/** How objects are shown to a client: as they are, or in another form, such as a table. */

/** What a request asks for besides the clauses of its `Accept`: the parameters of its URL, and what is shown. */
interface PresentationRequest {
  readonly query: URLSearchParams;
  readonly subject: Subject;
  /** The kind that is shown; undefined for kinds that are available only as JSON. */
  readonly kind?: SeenKind | undefined;
  /** The time of day, for ages. */
  readonly now: () => number;
  /** Called with failures in a column of a table. */
  readonly onError: (error: unknown) => void;
}

/** What is shown. */
export type Subject = 'object' | 'list' | 'watch';

/** Returns the presentation of a request, or undefined if it is not of this kind. */
type Presenter = (clause: MediaRange, request: PresentationRequest) => Presentation | undefined;
const plainEvents: WeakMap<ResourceInfo, PlainEvents> = new WeakMap();

/** Objects as they are stored. */
export const PLAIN: Presentation = {
  headers: JSON_HEADERS,
  // An object that is not stored has not been encoded yet.
  writing: (_, object) => encoding(object, true),
  *list(info, { items, ...more }) {
    yield utf8.encode(listHead(info.listKind, info.apiVersion, more));
    const start = hasProtobuf(info) ? startOf(info) : NOTHING;
    let first = true;
    for (const item of items) {
      const bytes = isReady(item) ? encoded(item) : yield* paused(encoding(item, true));
      const isBare = start.length > 0 && startsWith(bytes, start);
      if (!first || isBare) yield isBare ? (first ? BRACE : COMMA_BRACE) : COMMA;
      first = false;
      yield isBare ? bytes.subarray(start.length) : bytes;
    }
    yield END;
  },
  events: (info) => {
    return getOrMake(plainEvents, info, () => new PlainEvents(info, { show: showing(info) }));
  },
};

/** Runs work, and yields an empty piece at each of its pauses. */
function* paused<R>(work: Work<R>): Generator<Uint8Array, R> {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
    yield NOTHING;
  }
}

/** The `apiVersion` and `kind`, which items of built-in lists omit. */
function startOf({ apiVersion, kind }: ResourceInfo): Uint8Array {
  const text = `${JSON.stringify({ apiVersion, kind }).slice(0, -1)},`;
  return getOrMake(starts, text, () => utf8.encode(text));
}

const starts: Map<string, Uint8Array> = new Map();
const NOTHING = new Uint8Array(0);
const [BRACE, COMMA_BRACE] = [utf8.encode('{'), utf8.encode(',{')] as const;

function startsWith(bytes: Uint8Array, start: Uint8Array): boolean {
  for (let at = start.length - 1; at >= 0; at--) if (bytes[at] !== start[at]) return false;
  return true;
}

const YAML: Presentation = {
  headers: { ...JSON_HEADERS, 'content-type': 'application/yaml' },
  writing: (_, object) => yamlBytes(object),
  *list({ listKind, apiVersion }, { items, ...more }) {
    yield utf8.encode(`apiVersion: ${apiVersion}\nitems:${items.length === 0 ? ' []' : ''}\n`);
    for (const item of items) yield* pausing(yamlBytes([item]));
    yield atOnce(yamlBytes({ kind: listKind, metadata: toListMeta(more) }));
  },
  events: PLAIN.events,
};

/** Yields the result of work, and an empty piece wherever others may have their turn first. */
function* pausing(work: Work<Uint8Array>): Generator<Uint8Array> {
  let step = work.next();
  for (; !step.done; step = work.next()) yield NOTHING;
  yield step.value;
}

function* yamlBytes(value: object): Work<Uint8Array> {
  return utf8.encode(yield* yamlOf(value));
}

/** The beginning of a list, up to its first item. */
export function listHead(
  kind: string,
  apiVersion: string,
  { resourceVersion, continue: next, remainingItemCount }: Omit<List<unknown>, 'items'>,
): string {
  const metadata = { resourceVersion, continue: next || undefined, remainingItemCount };
  const head = JSON.stringify({ kind, apiVersion, metadata });
  return `${head.slice(0, -1)},"items":[`;
}

/** JSON as it is stored. */
const asPlain: Presenter = (clause) => (isJson(clause) && conversionOf(clause) === undefined ? PLAIN : undefined);

/** The version of `meta.k8s.io` that is requested for one of its kinds. */
function metaVersion(clause: MediaRange, kind: string): MetaVersion | undefined {
  const wanted = isJson(clause) ? conversionOf(clause) : undefined;
  if (wanted?.kind !== kind || wanted.group !== 'meta.k8s.io') return undefined;
  return wanted.version === 'v1' || wanted.version === 'v1beta1' ? wanted.version : undefined;
}

function asTable(clause: MediaRange, request: PresentationRequest): Presentation | undefined {
  const version = metaVersion(clause, 'Table');
  if (version === undefined) return undefined;
  const { now, onError } = request;
  return tables({ now, version, includeObject: toIncludeObject(request.query.get('includeObject')), onError });
}

const asYaml: Presenter = (clause, { subject }) =>
  clause.type === 'application/yaml' && subject !== 'watch' && conversionOf(clause) === undefined ? YAML : undefined;

/** A watch takes either name; an object cannot be shown as a list, nor a list as an object. */
function asPartial(clause: MediaRange, { subject }: PresentationRequest): Presentation | undefined {
  const one = subject === 'list' ? undefined : metaVersion(clause, 'PartialObjectMetadata');
  const version = one ?? (subject === 'object' ? undefined : metaVersion(clause, 'PartialObjectMetadataList'));
  return version && partials(version);
}

const asProtobuf: Presenter = (clause, { kind }) =>
  clause.type === PROTOBUF && conversionOf(clause) === undefined && kind && hasProtobuf(kind) ? AS_PROTOBUF : undefined;

/** All presentations of this server, in the order in which they are tried for each clause. */
const PRESENTERS: readonly Presenter[] = [asPlain, asTable, asPartial, asYaml, asProtobuf];

/**
 * Chooses how objects are shown to a client.
 *
 * @throws 406 if nothing that it accepts can be sent.
 */
export function choosePresentation(accept: string | undefined, request: PresentationRequest): Presentation {
  const isWatch = request.subject === 'watch';
  for (const clause of readAccept(accept)) {
    const { parameters, type } = clause;
    const stream = parameters.get('stream');
    if (stream !== undefined && stream !== 'watch') continue;
    if (type === EVENT_STREAM && isWatch) return PLAIN;
    for (const presenter of PRESENTERS) {
      const found = presenter(clause, request);
      if (found !== undefined) return found;
    }
  }
  throw notAcceptable('application/json, application/yaml');
}

const EVENT_STREAM = 'text/event-stream';

/** Whether a client wants events as Server-Sent Events. */
export function wantsEventStream(accept: string | undefined): boolean {
  return readAccept(accept).some(({ type }) => type === EVENT_STREAM);
}
