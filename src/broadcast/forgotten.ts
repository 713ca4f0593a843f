/**
 * Watches that were forgotten: the log knows the cursor, the consumer alone knows the handle. When the handle is collected,
 * nobody can read any more, so the cursor leaves, and a publisher that waited for it goes on.
 *
 *     consumer --> BroadcastWatch --> Cursor <--> log, gate, laggards
 *                  (collected?)  - - -> return()
 *
 * While a read waits, it holds the handle: its consumer may have kept nothing but the promise. Each mux has a registry of its own:
 * a broadcaster that is forgotten with all its watches takes them along.
 *
 * The registry holds the cursor until the handle is collected. A filter or an `onGap` may know the handle, and then the cursor knows
 * it, too: so one that calls back is taken off the registry when it leaves, or nobody would ever let go of either.
 */
export type Forgotten = FinalizationRegistry<{ return(): unknown }>;

export function newForgotten(): Forgotten {
  return new FinalizationRegistry((cursor) => void cursor.return());
}
