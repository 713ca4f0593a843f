import type { ObjectLookup } from '../list-watcher.ts';
import { Reparser, UNUSUAL } from './reparse.ts';

const [COMMA, OPEN, CLOSE] = [0x2c, 0x7b, 0x7d];

/**
 * Reads an event about an object that is stored already, and shares with it what is the same. The event has the members `type` and
 * `object`, in this order and without white space, as servers write it. Returns undefined if it is not like that, or if no such
 * object is stored: then others read it.
 */
export function readStored(
  frame: Uint8Array,
  stored: ObjectLookup,
): { readonly type: string; readonly object: unknown } | undefined {
  const reader = new Reparser(frame);
  try {
    reader.expect(OPEN);
    if (!reader.isName('type')) return undefined;
    const type = reader.parsed();
    reader.expect(COMMA);
    if (typeof type !== 'string' || !reader.isName('object')) return undefined;
    const from = reader.at;
    const before = storedOf(reader, stored);
    if (before === undefined) return undefined;
    reader.at = from;
    const object = reader.value(before, 0);
    reader.expect(CLOSE);
    return reader.at === frame.length ? { type, object } : undefined;
  } catch (error) {
    if (error === UNUSUAL || error instanceof SyntaxError || error instanceof TypeError) return undefined;
    throw error;
  }
}

/** Finds the name and the namespace in the metadata, which stand near its beginning where Kubernetes writes it. */
function storedOf(reader: Reparser, stored: ObjectLookup): unknown {
  let [name, namespace] = ['', ''];
  reader.expect(OPEN);
  if (!passTo(reader, 'metadata')) return undefined;
  reader.expect(OPEN);
  if (reader.empty(CLOSE)) return undefined;
  do {
    if (reader.isName('name')) name = String(reader.parsed());
    else if (reader.isName('namespace')) namespace = String(reader.parsed());
    else reader.skipMember();
  } while (!(name && namespace) && reader.more(CLOSE));
  return name ? stored(name, namespace) : undefined;
}

/** Passes members until this one, whose value is next. */
function passTo(reader: Reparser, wanted: string): boolean {
  if (reader.empty(CLOSE)) return false;
  do {
    if (reader.isName(wanted)) return true;
    reader.skipMember();
  } while (reader.more(CLOSE));
  return false;
}
