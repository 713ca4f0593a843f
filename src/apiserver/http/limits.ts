/** The longest message that a WebSocket client may send, in bytes. None has a meaning. */
export const MAX_INBOUND_BYTES = 1_024;

/** Requests of one connection that may wait for the answers to earlier ones, as those to `watchmux pipe`. Hardly any client pipelines. */
export const MAX_PIPELINED = 8;
