/**
 * Sixty-four bits of a text as hexadecimal digits, which show whether a document has changed. It needs no builtin of Node, and is
 * no protection against anybody who tries to find two texts with the same digest.
 */
export function digest(text: string): string {
  let [one, other] = [0x811c9dc5, 0x1000193];
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    one = Math.imul(one ^ unit, 0x01000193);
    other = Math.imul(other ^ (unit + at), 0x85ebca6b);
    other ^= other >>> 13;
  }
  return [one ^ (other >>> 16), other ^ (one >>> 15)]
    .map((half) => (half >>> 0).toString(16).padStart(8, '0'))
    .join('')
    .toUpperCase();
}
