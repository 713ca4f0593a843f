import { constants, deflateRawSync } from 'node:zlib';
import type { Envelope } from './envelope.ts';
import type { Form } from './forms.ts';
import { FINAL_DEFLATED_TEXT, frameSize, MESSAGE, putFrame } from './forms.ts';

/** Below this size, compression costs more than it saves. */
const COMPRESSION_THRESHOLD_BYTES = 1_024;
/** The WebSocket of Node refuses messages that become longer than this when they are decompressed, but takes longer plain ones. */
const MAX_COMPRESSED_BYTES = 4_194_304;

/**
 * One WebSocket frame per event, for clients that have negotiated permessage-deflate without context takeover. No message depends
 * on earlier ones, so each is compressed once for all clients. Short messages, and those that Node would not take, stay
 * uncompressed, as the extension allows.
 */
export const DEFLATED_MESSAGE: Form = {
  chunked: false,
  size(envelope) {
    const payload = payloadOf(envelope);
    return payload === undefined ? MESSAGE.size(envelope) : frameSize(payload);
  },
  put(envelope, to, at) {
    const payload = payloadOf(envelope);
    return payload === undefined ? MESSAGE.put(envelope, to, at) : putFrame(payload, to, { at, first: FINAL_DEFLATED_TEXT });
  },
};

/** What is kept of an event that compression does not make smaller. */
const NO_SMALLER: Uint8Array = new Uint8Array(0);

/** Returns the compressed bytes, or undefined if compression does not make the event smaller. */
function payloadOf(envelope: Envelope): Uint8Array | undefined {
  const { bytes } = envelope;
  if (bytes.length < COMPRESSION_THRESHOLD_BYTES || bytes.length > MAX_COMPRESSED_BYTES) return undefined;
  if (envelope.deflated === undefined) envelope.keepDeflated(deflated(bytes));
  const kept = envelope.deflated as unknown as Uint8Array;
  return kept.length > 0 ? kept : undefined;
}

function deflated(bytes: Uint8Array): Uint8Array {
  const all = deflateRawSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH });
  // A sync flush ends in 00 00 ff ff, which the extension omits.
  const payload = all.subarray(0, -4);
  // A copy: zlib's result is part of a buffer of 16 KiB or more, which would live as long as the event.
  return payload.length < bytes.length ? new Uint8Array(payload) : NO_SMALLER;
}
