import type { ObjectLookup } from '../list-watcher.ts';
import { CLOSE_OBJECT, COMMA, OPEN_OBJECT } from './json-bytes.ts';
import { Reparser, UNUSUAL } from './reparse.ts';

/**
 * Reads an event about an object that is already stored, and shares with it the parts that are the same. The event has the
 * members `type` and `object`, in this order and without white space, as servers write it. Returns undefined if it is different,
 * or if no such object is stored: then another decoder reads it.
 */
export function readStored(
  frame: Uint8Array,
  stored: ObjectLookup,
): { readonly type: string; readonly object: unknown } | undefined {
  const reader = new Reparser(frame);
  try {
    reader.expect(OPEN_OBJECT);
    if (!reader.isName('type')) return undefined;
    const type = reader.parsed();
    reader.expect(COMMA);
    if (typeof type !== 'string' || !reader.isName('object')) return undefined;
    const from = reader.at;
    const before = storedOf(reader, stored);
    if (before === undefined) return undefined;
    reader.at = from;
    const object = reader.value(before, 0);
    reader.expect(CLOSE_OBJECT);
    return reader.at === frame.length ? { type, object } : undefined;
  } catch (error) {
    if (error === UNUSUAL || error instanceof SyntaxError || error instanceof TypeError) return undefined;
    throw error;
  }
}

/** Finds the name and the namespace in the metadata; Kubernetes writes them near its beginning. */
function storedOf(reader: Reparser, stored: ObjectLookup): unknown {
  let [name, namespace] = ['', ''];
  reader.expect(OPEN_OBJECT);
  if (!passTo(reader, 'metadata')) return undefined;
  reader.expect(OPEN_OBJECT);
  if (reader.empty(CLOSE_OBJECT)) return undefined;
  do {
    if (reader.isName('name')) name = String(reader.parsed());
    else if (reader.isName('namespace')) namespace = String(reader.parsed());
    else reader.skipMember();
  } while (!(name && namespace) && reader.more(CLOSE_OBJECT));
  return name ? stored(name, namespace) : undefined;
}

/** Passes members until this one, whose value is next. */
function passTo(reader: Reparser, wanted: string): boolean {
  if (reader.empty(CLOSE_OBJECT)) return false;
  do {
    if (reader.isName(wanted)) return true;
    reader.skipMember();
  } while (reader.more(CLOSE_OBJECT));
  return false;
}
