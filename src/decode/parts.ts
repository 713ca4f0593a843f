/** A part that is not joined with others before all are. */
const LONG_BYTES = 65_536;

/**
 * Adds a part. Joins short parts so that each is shorter than the one before: a view costs 100 bytes, and a peer may send single
 * bytes.
 */
export function hold(parts: Uint8Array[], bytes: Uint8Array): void {
  let last = bytes;
  for (let before = parts.at(-1); before && before.length <= last.length && last.length < LONG_BYTES; before = parts.at(-1)) {
    parts.pop();
    last = joined([before, last]);
  }
  parts.push(last);
}

/** All parts in one. */
export function joined(parts: readonly Uint8Array[]): Uint8Array {
  const [first = new Uint8Array(0), ...more] = parts;
  if (more.length === 0) return first;
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
