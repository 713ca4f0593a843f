/**
 * The positions that a watch over Server-Sent Events sends. Its client reconnects by itself and resumes after the last `id:`, so
 * there is no id after which something would be missed:
 *
 *     state:      ADDED ADDED ADDED          in the order of keys: each has a version, but what follows it is older or newer. No ids
 *     its end:    BOOKMARK                   id: the version of the state
 *     afterwards: ADDED MODIFIED DELETED     id: the version of each
 *     too old:    ERROR 410                  id: empty, so that the next attempt has no version and starts over
 *
 * A client that has not asked for BOOKMARKs still gets their ids, in messages that a page does not see.
 */
import { Envelope } from '../../bridge/events/envelope.ts';
import type { Form, Slice } from '../../bridge/events/forms.ts';
import { toMark } from '../../bridge/transport/http-head.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import type { StorageEvent } from '../../storage/storage.ts';
import { isErrorEvent, isInitialEventsEnd } from '../../watch/event.ts';
import type { EventEncoder } from './event-encoder.ts';

type Batch = readonly StorageEvent<KubernetesObject>[];

/** The events of one stream, with the positions from which its client can resume. */
export class EventStream implements EventEncoder {
  private readonly encoder: EventEncoder;
  private readonly bookmarks: boolean;
  private inState: boolean;
  /** The batch that is being sent, and the part of it that belongs to the state. */
  private batch: Batch | undefined = undefined;
  private part: Batch = [];

  /** `state`: the watch begins with it. `bookmarks`: the client has asked for them. */
  constructor(encoder: EventEncoder, { state, bookmarks }: { state: boolean; bookmarks: boolean }) {
    this.encoder = encoder;
    this.bookmarks = bookmarks;
    this.inState = state;
  }

  slice(batch: Batch, from: number, form: Form): Slice {
    if (!this.inState) return this.encoder.slice(batch, from, formOf(form, this.bookmarks ? LIVE : QUIET_LIVE));
    if (batch !== this.batch) {
      const end = batch.findIndex(isInitialEventsEnd);
      this.batch = batch;
      // The batch itself is shared with other watches, and so are its bytes.
      this.part = end < 0 || end === batch.length - 1 ? batch : batch.slice(0, end + 1);
    }
    const { part } = this;
    const slice = this.encoder.slice(part, from, formOf(form, this.bookmarks ? STATE : QUIET_STATE));
    const last = part[part.length - 1];
    if (slice.to === part.length && last !== undefined && isInitialEventsEnd(last)) {
      this.inState = false;
      this.batch = undefined;
      this.part = [];
    }
    return slice;
  }
}

/** How events are written: whether each has its id, and whether a BOOKMARK is sent as an event. */
interface Manner {
  readonly ids: boolean;
  readonly bookmarks: boolean;
  /** One for each form of a transport: streams of one form share their bytes. */
  readonly forms: WeakMap<Form, Form>;
}

const STATE: Manner = { ids: false, bookmarks: true, forms: new WeakMap() };
const LIVE: Manner = { ids: true, bookmarks: true, forms: new WeakMap() };
const QUIET_STATE: Manner = { ids: false, bookmarks: false, forms: new WeakMap() };
const QUIET_LIVE: Manner = { ids: true, bookmarks: false, forms: new WeakMap() };

function formOf(form: Form, manner: Manner): Form {
  const known = manner.forms.get(form) ?? toForm(form, manner);
  manner.forms.set(form, known);
  return known;
}

const encoder = new TextEncoder();

function toForm(form: Form, { ids, bookmarks }: Manner): Form {
  const markOf = ({ type, id }: Envelope): Uint8Array | undefined =>
    bookmarks || type !== 'BOOKMARK' ? undefined : encoder.encode(toMark(id ?? ''));
  const shown = (envelope: Envelope): Envelope => {
    const { type } = envelope;
    if (isErrorEvent(envelope) && envelope.object.code === 410) return withId(envelope, '');
    return ids || type === 'BOOKMARK' ? envelope : withId(envelope, undefined);
  };
  return {
    chunked: form.chunked,
    size: (envelope) => markOf(envelope)?.length ?? form.size(shown(envelope)),
    put(envelope, to, at) {
      const mark = markOf(envelope);
      if (mark === undefined) return form.put(shown(envelope), to, at);
      to.set(mark, at);
      return at + mark.length;
    },
  };
}

function withId(envelope: Envelope, id: string | undefined): Envelope {
  if (envelope.id === id) return envelope;
  return new Envelope(envelope, { sequence: envelope.sequence, bytes: envelope.bytes, id });
}
