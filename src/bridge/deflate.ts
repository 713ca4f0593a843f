import { constants, deflateRawSync } from 'node:zlib';
import type { Envelope } from './envelope.ts';
import type { Form } from './forms.ts';
import { FINAL_DEFLATED_TEXT, frameSize, MESSAGE, putFrame } from './forms.ts';

/** Below this, compressing costs more than it saves. */
const COMPRESSION_THRESHOLD_BYTES = 1_024;

/**
 * A WebSocket frame per event for clients that have negotiated permessage-deflate without context takeover: since no message
 * depends on those before it, one is compressed once for all of them. Short ones go out as they are, as the extension allows.
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

/** The compressed bytes, or undefined where they would be no fewer. */
function payloadOf(envelope: Envelope): Uint8Array | undefined {
  const { bytes } = envelope;
  if (bytes.length < COMPRESSION_THRESHOLD_BYTES) return undefined;
  // A sync flush ends in 00 00 ff ff, which the extension leaves out.
  envelope.deflated ??= deflateRawSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4);
  return envelope.deflated.length < bytes.length ? envelope.deflated : undefined;
}
