/** At 3 KB/s, one piece takes 22 s. By default, a client has 30 s. */
export const PIECE_BYTES = 65_536;

/**
 * Splits bytes into pieces, for streams that report only whole writes as taken. A slow client may need minutes for one long event.
 * Its progress shows only if the event is written in pieces.
 */
export function* toPieces(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}
