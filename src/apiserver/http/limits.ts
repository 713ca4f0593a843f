/** The longest message that a WebSocket client may send, in bytes. Messages from clients have no meaning. */
export const MAX_INBOUND_BYTES = 1_024;

/** Requests of one connection that may wait for answers to earlier ones, as in `watchmux pipe`. Hardly any client pipelines. */
export const MAX_PIPELINED = 8;
