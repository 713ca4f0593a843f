/** How objects are shown to a client: as they are, or in another form, such as a table. */
import type { List } from '../../cache/list-watcher.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import { encoded } from '../../storage/values.ts';
import { refused } from '../../storage/statuses.ts';
import type { WatchError } from '../../watch/errors.ts';
import { PartialPresentation, TablePresentation } from '../representation/presentations.ts';
import { toIncludeObject } from '../representation/table.ts';
import { conversionOf, isJson, type MediaRange, readAccept } from '../request/accept.ts';
import type { ResourceInfo } from '../resource-info.ts';
import { type EventEncoder, PlainEvents } from './event-encoder.ts';

/** One way to show objects. */
export interface Presentation {
  /** The body of an answer that is one object. */
  object(info: ResourceInfo, object: KubernetesObject): Uint8Array;
  /** The body of an answer that is a list, in pieces. They are taken one after the other, as long as there is room for them. */
  list(info: ResourceInfo, list: List<KubernetesObject>): Iterable<Uint8Array>;
  /** The events of one stream. */
  events(info: ResourceInfo): EventEncoder;
}

/** What a request asks for, besides the clauses of its `Accept`: the parameters of its URL. */
interface PresentationRequest {
  readonly query: URLSearchParams;
  readonly subject: Subject;
  /** The time of day, for ages. */
  readonly now: () => number;
  /** Called with failures in a column of a table. */
  readonly onError: (error: unknown) => void;
}

/** What is shown. */
export type Subject = 'object' | 'list' | 'watch';

/** Returns the presentation of a request, or undefined if it is not of this kind. */
type Presenter = (clause: MediaRange, request: PresentationRequest) => Presentation | undefined;

const encoder = new TextEncoder();
const COMMA = encoder.encode(',');
const END = encoder.encode(']}\n');
const plainEvents: WeakMap<ResourceInfo, PlainEvents> = new WeakMap();

/** Objects as they are stored. */
export const PLAIN: Presentation = {
  object: (_, object) => encoded(object),
  *list(info, { items, ...more }) {
    yield encoder.encode(listHead(info.listKind, info.apiVersion, more));
    let first = true;
    for (const item of items) {
      if (!first) yield COMMA;
      first = false;
      yield encoded(item);
    }
    yield END;
  },
  events: (info) => {
    const known = plainEvents.get(info) ?? new PlainEvents(info);
    plainEvents.set(info, known);
    return known;
  },
};

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
function metaVersion(clause: MediaRange, kind: string): 'v1' | 'v1beta1' | undefined {
  const wanted = isJson(clause) ? conversionOf(clause) : undefined;
  if (wanted?.kind !== kind || wanted.group !== 'meta.k8s.io') return undefined;
  return wanted.version === 'v1' || wanted.version === 'v1beta1' ? wanted.version : undefined;
}

function asTable(clause: MediaRange, request: PresentationRequest): Presentation | undefined {
  const version = metaVersion(clause, 'Table');
  if (version === undefined) return undefined;
  const { now, onError } = request;
  return new TablePresentation({ now, version, includeObject: toIncludeObject(request.query.get('includeObject')), onError });
}

/** A watch takes either name; an object cannot be shown as a list, nor a list as an object. */
function asPartial(clause: MediaRange, { subject }: PresentationRequest): Presentation | undefined {
  const one = subject === 'list' ? undefined : metaVersion(clause, 'PartialObjectMetadata');
  const version = one ?? (subject === 'object' ? undefined : metaVersion(clause, 'PartialObjectMetadataList'));
  return version && new PartialPresentation(version);
}

/** All presentations of this server, in the order in which they are tried for each clause. */
const PRESENTERS: readonly Presenter[] = [asPlain, asTable, asPartial];

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
  throw notAcceptable();
}

const EVENT_STREAM = 'text/event-stream';

/** Whether a client wants events as Server-Sent Events. */
export function wantsEventStream(accept: string | undefined): boolean {
  return readAccept(accept).some(({ type }) => type === EVENT_STREAM);
}

function notAcceptable(): WatchError {
  return refused(406, 'NotAcceptable', 'only the following media types are accepted: application/json');
}
