/**
 * What happens to an event that does not fit in a watcher's queue.
 *
 * - `wait`: the event is held back until there is room, and so is its publisher. A watcher that nobody reads stalls the
 *   publisher.
 * - `drop-newest`, `drop-oldest`: this watcher loses the event, or the oldest one in its queue. `onGap` and `dropped` report how
 *   many.
 * - `disconnect`: the watch is cut: it delivers its queue, then one ERROR with code 410 and `details.missed`, then ends.
 * - `coalesce`: unseen changes are folded to the latest per key. ADDED then MODIFIED is ADDED, ADDED then DELETED is nothing,
 *   MODIFIED then DELETED is DELETED, DELETED then ADDED is MODIFIED; of custom types the last event stays. Keys are in the order
 *   of their first unseen change. With more than `capacity` keys, the watch is cut: unlike with `disconnect`, it delivers none of
 *   them, only that ERROR, which counts all events that they stand for.
 */
export type Overflow = (typeof OVERFLOWS)[number];

/**
 * All overflow policies: the only list of them. Code that treats policies differently keeps a `Record<Overflow, ...>`, so that
 * the compiler finds every place when a policy is added.
 */
export const OVERFLOWS = ['wait', 'drop-newest', 'drop-oldest', 'disconnect', 'coalesce'] as const;

/** What a policy does: it drops events, holds back the publisher, or cuts a watch, which then ends with an ERROR event. */
type Does = Complete<{ wait: 'waits'; 'drop-newest': 'drops'; 'drop-oldest': 'drops'; disconnect: 'cuts'; coalesce: 'cuts' }>;
type Complete<All extends Record<Overflow, 'waits' | 'drops' | 'cuts'>> = All;
type Those<What> = { [Name in Overflow]: Does[Name] extends What ? Name : never }[Overflow];

/** The policies that may cut a watch: it then ends with an ERROR event, so its event type has one. */
export type CuttingOverflow = Those<'cuts'>;

/** The policies that never cut a watch. */
export type KeepingOverflow = Exclude<Overflow, CuttingOverflow>;

/** The policies that hold back the publisher. */
export type WaitingOverflow = Those<'waits'>;
