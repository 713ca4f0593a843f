/**
 * Objects as tables and as metadata, over HTTP. Lists are made piece by piece, while they are sent. A stream of tables is not
 * shared between clients: only its first event has the columns, and ages are relative to now.
 */
import { Envelope } from '../../bridge/events/envelope.ts';
import { type Form, SLICE_BYTES, type Slice, toSlice } from '../../bridge/events/forms.ts';
import type { List } from '../../cache/list-watcher.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import type { StorageEvent } from '../../storage/storage.ts';
import { PIECE_MS } from '../../watch/fair-queue.ts';
import type { ListMeta } from './metadata.ts';
import { toPartial, toPartialList } from './metadata.ts';
import { type Columns, type IncludeObject, toBookmarkTable, toRow, toTable } from './table.ts';

type Version = 'v1' | 'v1beta1';
type Event = StorageEvent<KubernetesObject>;

const utf8 = new TextEncoder();
const toBytes = (value: unknown): Uint8Array => utf8.encode(JSON.stringify(value));

/** What is needed to make a table. */
interface TableTerms {
  readonly now: () => number;
  readonly version: Version;
  readonly includeObject: IncludeObject;
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** Objects as tables. Upstream: `asTable`. */
export class TablePresentation {
  readonly #terms: TableTerms;

  constructor(terms: TableTerms) {
    this.#terms = terms;
  }

  object(info: Columns, object: KubernetesObject): Uint8Array {
    return toBytes(toTable(info, [object], this.#now()));
  }

  *list(info: Columns, { items, ...more }: List<KubernetesObject>): Generator<Uint8Array> {
    const terms = this.#now();
    yield* pieces(toTable(info, [], { ...terms, metadata: toListMeta(more) }), items, (each) => toRow(info, each, terms));
  }

  events(info: Columns): ProjectedEvents {
    let columns = true;
    return new ProjectedEvents((object, type) => {
      const terms = { ...this.#now(), columns };
      columns = false;
      return type === 'BOOKMARK' ? toBookmarkTable(info, object, terms) : toTable(info, [object], terms);
    });
  }

  #now(): Omit<TableTerms, 'now'> & { readonly now: number } {
    return { ...this.#terms, now: this.#terms.now() };
  }
}

/** Objects without their content. Upstream: `asPartialObjectMetadata`. */
export class PartialPresentation {
  readonly #version: Version;

  constructor(version: Version) {
    this.#version = version;
  }

  object(_: unknown, object: KubernetesObject): Uint8Array {
    return toBytes(toPartial(object, this.#version));
  }

  *list(_: unknown, { items, ...more }: List<KubernetesObject>): Generator<Uint8Array> {
    const list = toPartialList([], { version: this.#version, metadata: toListMeta(more) });
    yield* pieces(list, items, (each) => toPartial(each, this.#version));
  }

  events(): ProjectedEvents {
    return new ProjectedEvents((object) => toPartial(object, this.#version));
  }
}

/** The events of one stream, each with the projection of its object. An ERROR stays as it is. */
class ProjectedEvents {
  readonly #project: (object: KubernetesObject, type: string) => object;

  constructor(project: (object: KubernetesObject, type: string) => object) {
    this.#project = project;
  }

  slice(batch: readonly Event[], from: number, form: Form): Slice {
    const envelopes: Envelope[] = [];
    let bytes = 0;
    const untilMs = performance.now() + PIECE_MS;
    // No more than a slice takes: a batch may be a whole collection, and to look at one of its objects takes long if it is large.
    for (let at = from; at < batch.length && bytes <= SLICE_BYTES && (at === from || performance.now() < untilMs); at++) {
      const envelope = this.#envelope(batch[at] as Event);
      envelopes.push(envelope);
      bytes += envelope.bytes.length;
    }
    const slice = toSlice(envelopes, 0, form);
    return { ...slice, to: from + slice.to };
  }

  #envelope({ type, object }: Event): Envelope {
    if (type === 'ERROR') return new Envelope({ type, object }, { sequence: 0 });
    const projected = { type, object: this.#project(object, type) };
    return new Envelope(projected, { sequence: 0, id: object.metadata?.resourceVersion });
  }
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
    yield toBytes(make(item));
  }
  yield END;
}

function toListMeta({ resourceVersion, continue: next, remainingItemCount }: ListMeta): ListMeta {
  return { resourceVersion, ...(next && { continue: next }), ...(remainingItemCount !== undefined && { remainingItemCount }) };
}
