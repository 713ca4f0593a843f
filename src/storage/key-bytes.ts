/**
 * Keys as backends have them: bytes, with the prefix of the storage and then that of the scope before the key.
 *
 *     /watchmux/ orders.example.com/orders/ default/a
 *     storage    scope                      key
 *
 * Backends order keys by their bytes, and a storage lists in the order of UTF-16 code units. The two orders agree if each code unit
 * is encoded by itself, which is called CESU-8. Except for emoji and rare scripts, that is UTF-8.
 */
const utf8 = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
const SURROGATE = /[\uD800-\uDFFF]/;
/** What is decoded from anything but the common case: invalid UTF-8 becomes U+FFFD. */
const UNUSUAL = /[\uD800-\uDFFF\uFFFD]/;

/** A text as bytes whose order is that of its code units. */
export function toBytes(text: string): Uint8Array {
  if (!SURROGATE.test(text)) return utf8.encode(text);
  const bytes: number[] = [];
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80) bytes.push(unit);
    else if (unit < 0x800) bytes.push(0xc0 | (unit >> 6), 0x80 | (unit & 0x3f));
    else bytes.push(0xe0 | (unit >> 12), 0x80 | ((unit >> 6) & 0x3f), 0x80 | (unit & 0x3f));
  }
  return Uint8Array.from(bytes);
}

/** The text of bytes that {@link toBytes} made; of other bytes, a text that resembles them. */
export function toText(bytes: Uint8Array): string {
  let text = decoder.decode(bytes);
  if (!UNUSUAL.test(text)) return text;
  text = '';
  for (let at = 0; at < bytes.length; ) {
    const [first = 0, second = 0, third = 0] = bytes.subarray(at, at + 3);
    const length = first < 0x80 ? 1 : first < 0xe0 ? 2 : 3;
    at += length;
    if (length === 1) text += String.fromCharCode(first);
    else if (length === 2) text += String.fromCharCode(((first & 0x1f) << 6) | (second & 0x3f));
    else text += String.fromCharCode(((first & 0x0f) << 12) | ((second & 0x3f) << 6) | (third & 0x3f));
  }
  return text;
}

/** The first bytes after all keys that begin with a prefix, which ends with a slash. */
export function behind(prefix: Uint8Array): Uint8Array {
  const end = prefix.slice();
  end[end.length - 1] = (end.at(-1) as number) + 1;
  return end;
}

/** The first bytes after one key. */
export function after(key: Uint8Array): Uint8Array {
  const next = new Uint8Array(key.length + 1);
  next.set(key);
  return next;
}
