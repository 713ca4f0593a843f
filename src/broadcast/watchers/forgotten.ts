/**
 * Garbage-collected watches. The log references the cursor; only the consumer references the handle. When the handle is
 * collected, no one can read any more, so the cursor leaves and a publisher that waited for it continues.
 *
 *     consumer --> BroadcastWatch --> Cursor <--> log, gate, laggards
 *                  (collected?)  - - -> return()
 *
 * A pending read holds the handle, because its consumer may hold only the promise. Each mux has its own registry, so a
 * broadcaster that is collected together with all its watches takes the registry along.
 *
 * The registry holds the cursor until the handle is collected. A filter or `onGap` may reference the handle, and the cursor
 * references them. So a cursor with callbacks is unregistered when it leaves; otherwise neither could ever be collected.
 */
export type Forgotten = FinalizationRegistry<{ return(): unknown }>;

export function newForgotten(): Forgotten {
  return new FinalizationRegistry((cursor) => void cursor.return());
}
