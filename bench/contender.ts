import type { Entry } from './workload.ts';

/** What is published: small, and checkable for order by its number. */
export interface Tick {
  readonly type: 'TICK';
  readonly object: number;
}

/** What a consumer does with an event. */
export type Take = (event: Tick) => void;

/** Which events a watcher wants. */
export type Wants = (event: Tick) => boolean;

/** A way to get events from one publisher to many consumers, running. `H` is what a subscriber holds. */
export interface Hub<H = unknown> {
  publish(event: Tick): void;
  /** A burst is complete. Only the control needs to know. */
  flush?(): void;
  /** A watcher with a consumer that takes all it can get, and waits for more. `wants` only where {@link Contender.filters} says so. */
  watch(take: Take, wants?: Wants): H;
  /** Ends one. */
  leave(watcher: H): unknown;
  /** A watcher that nobody reads yet. Absent where consumers are called, and so nothing is queued for them. */
  open?(): H;
  /** The consumer of one that was only open so far. */
  read?(watcher: H, take: Take): void;
  /** A watcher whose consumer takes one event and is stuck in it for ever. */
  stall?(): H;
  close(): Promise<void> | void;
}

/** How many events a bounded queue holds. */
export const CAPACITY: number = 1024;

export interface HubOptions {
  /** Of a bounded queue, {@link CAPACITY} by default. */
  readonly capacity?: number | undefined;
}

/** One of those that are compared. */
export interface Contender extends Entry {
  /** Whether it has filters of its own; for the others a consumer looks at each event. */
  readonly filters?: boolean;
  /** Loads its package only now: each contender has a process to itself. */
  start(options?: HubOptions): Promise<Hub> | Hub;
}

/** A promise that never settles. */
export const never: Promise<never> = new Promise(() => {});

/** The consumer of everything that is an async iterable of events. */
export async function consume(events: AsyncIterable<Tick>, take: Take): Promise<void> {
  for await (const event of events) take(event);
}

/** A consumer that is stuck in its first event. */
export async function getStuck(events: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of events) await never;
}

/** Where a watcher is an async iterable that queues from the start: reading it and getting stuck in it are the same for all. */
export function iterated<H extends AsyncIterable<unknown>>(hub: {
  publish(event: Tick): void;
  open(): H;
  read(watcher: H, take: Take): void;
  leave(watcher: H): unknown;
  close(): Promise<void> | void;
}): Hub<H> {
  return {
    ...hub,
    watch(take) {
      const watcher = hub.open();
      hub.read(watcher, take);
      return watcher;
    },
    stall() {
      const watcher = hub.open();
      void getStuck(watcher);
      return watcher;
    },
  };
}

/** Hubs differ in what their subscribers hold; who drives them only gives back what it got. */
export function anyHub<H>(hub: Hub<H>): Hub {
  return hub as Hub;
}
