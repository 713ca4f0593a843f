const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Returns the JSON text of an event with another type. The rest of it stays as it was written. */
export function retyped(json: Uint8Array, type: string): Uint8Array {
  const { from, to } = typeIn(json) ?? {};
  if (from === undefined || to === undefined) return json;
  const value = encoder.encode(JSON.stringify(type));
  const bytes = new Uint8Array(json.length - (to - from) + value.length);
  bytes.set(json.subarray(0, from));
  bytes.set(value, from);
  bytes.set(json.subarray(to), from + value.length);
  return bytes;
}

/** Where the value of the member `type` is. Of two members with the same name, JSON parsers keep the last. */
function typeIn(json: Uint8Array): { readonly from: number; readonly to: number } | undefined {
  let found: { readonly from: number; readonly to: number } | undefined;
  let depth = 0;
  let isName = false;
  let isType = false;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if (byte === QUOTE) {
      const to = endOfString(json, at);
      if (depth === 1 && isName) isType = JSON.parse(decoder.decode(json.subarray(at, to))) === 'type';
      else if (depth === 1 && isType) found = { from: at, to };
      isName = false;
      at = to - 1;
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) isName = ++depth === 1;
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth--;
    else if (byte === COMMA) isName = depth === 1;
  }
  return found;
}

function endOfString(json: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < json.length && json[at] !== QUOTE) at += json[at] === BACKSLASH ? 2 : 1;
  return at + 1;
}
