// Reads answers in protobuf, a kube-apiserver's and ours, by our tables of fields: objects, lists, and the events of a watch.
import { type Shape, shape } from '../../../src/apiserver/kinds/shape.ts';
import { LIST_META, shapeOf } from '../../../src/apiserver/kinds/tables.ts';
import { readEnvelope } from '../../../src/apiserver/request/protobuf.ts';
import { atOnce } from '../../../src/watch/fair-queue.ts';

const NOTHING = shape('', {});
const STATUS = shape('', {
  ...{ metadata: [1, LIST_META, '', ''], status: [2, 'string', '', ''], message: [3, 'string', '', ''] },
  ...{ reason: [4, 'string', '', ''], code: [6, 'int32', '', ''] },
  details: [5, shape('', { name: [1, 'string', '', ''], group: [2, 'string', '', ''], kind: [3, 'string', '', ''] }), '', ''],
});

/** The values of an answer: one, or those of the events of a watch. */
export function decoded(bytes: Uint8Array, isWatch: boolean): unknown[] {
  if (!isWatch) return [object(bytes)];
  const events: unknown[] = [];
  for (let at = 0; at < bytes.length; ) {
    const size = new DataView(bytes.buffer, bytes.byteOffset + at).getUint32(0);
    events.push(event(bytes.subarray(at + 4, at + 4 + size)));
    at += 4 + size;
  }
  return events;
}

function object(bytes: Uint8Array): unknown {
  const { apiVersion = '', kind = '' } = atOnce(readEnvelope(bytes, NOTHING)) as { apiVersion?: string; kind?: string };
  const [version = '', group = ''] = apiVersion.split('/').reverse();
  const of = (name: string): Shape => {
    const found = shapeOf({ group, version, kind: name });
    if (found === undefined) throw new Error(`no shape of ${apiVersion} ${name}`);
    return found;
  };
  if (kind === 'Status') return atOnce(readEnvelope(bytes, STATUS));
  if (!kind.endsWith('List')) return atOnce(readEnvelope(bytes, of(kind)));
  const list = shape('', { metadata: [1, LIST_META, '!', ''], items: [2, of(kind.slice(0, -4)), '[]', ''] });
  return atOnce(readEnvelope(bytes, list));
}

/** `WatchEvent`: 1: the type, 2: { 1: the object }. */
function event(bytes: Uint8Array): unknown {
  const [type, afterType] = field(bytes, 0);
  const [raw] = field(bytes, afterType);
  const [bytesOfObject] = field(raw, 0);
  return { type: new TextDecoder().decode(type), object: object(bytesOfObject) };
}

function field(bytes: Uint8Array, at: number): [Uint8Array, number] {
  let [length, shift, next] = [0, 1, at + 1];
  for (; ; next++) {
    const byte = bytes[next] as number;
    length += (byte & 127) * shift;
    shift *= 128;
    if (byte < 128) break;
  }
  return [bytes.subarray(next + 1, next + 1 + length), next + 1 + length];
}
