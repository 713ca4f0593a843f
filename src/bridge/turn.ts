/** Calls back in the next turn of the event loop, when sockets have had theirs. */
export type Turn = (callback: () => void) => void;

const { setImmediate: immediate } = globalThis as { setImmediate?: Turn };

/** The host's own. Where there is no `setImmediate`, a timer does. */
export const nextTurn: Turn =
  immediate === undefined ? (callback) => void setTimeout(callback, 0) : (callback) => immediate(callback);
