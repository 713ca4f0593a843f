/** The longest message that a WebSocket client may send, in bytes. None has a meaning. */
export const MAX_INBOUND_BYTES = 1_024;
