/**
 * Built-in kinds in protobuf, for clients that prefer it, as client-go's typed ones do. An object is encoded once, as for JSON:
 * lists and watches put headers before the same bytes.
 *
 *     k8s\0 type | length | message | tail                       an object
 *     k8s\0 type | length | metadata, [length, message]... | tail a list
 *     size, { type, k8s\0 ... }                                  an event of a watch, in a frame of its own
 */
import { Envelope } from '../../bridge/events/envelope.ts';
import type { Form } from '../../bridge/events/forms.ts';
import { versionOf } from '../../cache/object.ts';
import { joined } from '../../decode/framing.ts';
import { getOrMake } from '../../watch/errors.ts';
import { atOnce, STRIDE, type Work } from '../../watch/fair-queue.ts';
import { type Shape, shape } from '../kinds/shape.ts';
import { LIST_META, type NamedKind, shapeOf } from '../kinds/tables.ts';
import { envelopeOf, fieldHead, PROTOBUF, writingMessage } from '../request/protobuf.ts';
import type { ResourceInfo } from '../resource-info.ts';
import type { SeenKind } from '../subresources.ts';
import { showing } from '../verbs/read.ts';
import { type EventWire, PlainEvents, type Presentation } from './event-encoder.ts';
import { JSON_HEADERS } from './wire.ts';

const encoder = new TextEncoder();
const made: WeakMap<object, Uint8Array> = new WeakMap();

/** Encodes an object, unless that has been done. */
function* preparing(kind: NamedKind, object: object): Work<Uint8Array> {
  let bytes = made.get(object);
  if (bytes === undefined) {
    bytes = yield* writingMessage(object, shapeOf(kind) as Shape);
    made.set(object, bytes);
  }
  return bytes;
}

const messageOf = (kind: NamedKind, object: object): Uint8Array => made.get(object) ?? atOnce(preparing(kind, object));

function enveloped(type: { readonly apiVersion: string; readonly kind: string }, message: Uint8Array): Uint8Array {
  const { head, tail } = envelopeOf(type, message.length);
  return joined([head, message, tail]);
}

/** The field of a list in which its items are. */
const ITEMS = 2;

export const AS_PROTOBUF: Presentation = {
  headers: { ...JSON_HEADERS, 'content-type': PROTOBUF },
  watchContentType: `${PROTOBUF};stream=watch`,
  *writing(kind, object) {
    return enveloped(kind, yield* preparing(kind, object));
  },
  *prepareList(info, { items }) {
    for (const [at, item] of items.entries()) {
      if (at % STRIDE === STRIDE - 1) yield;
      yield* preparing(info, item);
    }
  },
  *list(info, { items, ...metadata }) {
    const meta = atOnce(writingMessage(metadata, LIST_META));
    const metaHead = fieldHead(1, meta.length);
    let length = metaHead.length + meta.length;
    for (const item of items) {
      const { length: own } = messageOf(info, item);
      length += fieldHead(ITEMS, own).length + own;
    }
    const { head, tail } = envelopeOf({ apiVersion: info.apiVersion, kind: info.listKind }, length);
    yield joined([head, metaHead, meta]);
    for (const item of items) {
      const message = messageOf(info, item);
      yield joined([fieldHead(ITEMS, message.length), message]);
    }
    yield tail;
  },
  events: (info) => {
    return getOrMake(events, info, () => new PlainEvents(info, { wire: wireOf(info), show: showing(info) }));
  },
};

const events: WeakMap<ResourceInfo, PlainEvents> = new WeakMap();

const CAUSE: Shape = shape('', { reason: [1, 'string', '', ''], message: [2, 'string', '', ''], field: [3, 'string', '', ''] });
const DETAILS: Shape = shape('', {
  ...{ name: [1, 'string', '', ''], group: [2, 'string', '', ''], kind: [3, 'string', '', ''], causes: [4, CAUSE, '[]', ''] },
  ...{ retryAfterSeconds: [5, 'int32', '', ''], uid: [6, 'string', '', ''] },
});
const STATUS: Shape = shape('', {
  ...{ metadata: [1, LIST_META, '', ''], status: [2, 'string', '', ''], message: [3, 'string', '', ''] },
  ...{ reason: [4, 'string', '', ''], details: [5, DETAILS, '?', ''], code: [6, 'int32', '', ''] },
});

function wireOf(info: SeenKind): EventWire {
  const wrap = (type: string, object: object, { bytes, id }: { bytes: Uint8Array; id?: string | undefined }): Envelope => {
    const raw = joined([fieldHead(1, bytes.length), bytes]);
    const name = encoder.encode(type);
    const whole = joined([fieldHead(1, name.length), name, fieldHead(2, raw.length), raw]);
    return new Envelope({ type, object } as never, { sequence: 0, bytes: whole, id });
  };
  return {
    making: (object) => (made.has(object) ? undefined : preparing(info, object)),
    object: (type, object) =>
      wrap(type, object, { bytes: enveloped(info, messageOf(info, object)), id: versionOf(object) || undefined }),
    bookmark: ({ object }) =>
      wrap('BOOKMARK', object, { bytes: enveloped(info, atOnce(writingMessage(object, shapeOf(info) as Shape))) }),
    error: ({ object }) =>
      wrap('ERROR', object, { bytes: enveloped({ apiVersion: 'v1', kind: 'Status' }, atOnce(writingMessage(object, STATUS))) }),
    form: framed,
  };
}

/** Each event behind its size, of four bytes. */
function framed(form: Form): Form {
  const known = forms.get(form);
  if (known !== undefined) return known;
  const frame: Form = {
    chunked: form.chunked,
    size: ({ bytes }) => bytes.length + 4,
    put: ({ bytes }, to, at) => {
      new DataView(to.buffer, to.byteOffset).setUint32(at, bytes.length);
      to.set(bytes, at + 4);
      return at + 4 + bytes.length;
    },
  };
  forms.set(form, frame);
  return frame;
}

const forms: WeakMap<Form, Form> = new WeakMap();
