import { constants, deflateRawSync } from 'node:zlib';
import type { Envelope } from './envelope.ts';
import type { Form } from './forms.ts';
import { FINAL_DEFLATED_TEXT, frameSize, MESSAGE, putFrame } from './forms.ts';

/** Below this size, compression costs more than it saves. */
const COMPRESSION_THRESHOLD_BYTES = 1_024;

/**
 * One WebSocket frame per event, for clients that have negotiated permessage-deflate without context takeover. No message depends
 * on earlier ones, so each is compressed once for all clients. Short messages stay uncompressed, as the extension allows.
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

/** Returns the compressed bytes, or undefined if compression does not make the event smaller. */
function payloadOf(envelope: Envelope): Uint8Array | undefined {
  const { bytes } = envelope;
  if (bytes.length < COMPRESSION_THRESHOLD_BYTES) return undefined;
  // A sync flush ends in 00 00 ff ff, which the extension omits.
  envelope.deflated ??= deflateRawSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4);
  return envelope.deflated.length < bytes.length ? envelope.deflated : undefined;
}
