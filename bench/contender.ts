import type { Entry } from './workload.ts';

/** The published event: small, with a number to check the order. */
export interface Tick {
  readonly type: 'TICK';
  readonly object: number;
}

/** A consumer's code for an event. */
export type Take = (event: Tick) => void;

/** Selects the events that a watcher wants. */
export type Wants = (event: Tick) => boolean;

/** A running way to send events from one publisher to many consumers. `H` is a subscriber's handle. */
export interface Hub<H = unknown> {
  publish(event: Tick): void;
  /** A burst is complete. Only the control needs this. */
  flush?(): void;
  /**
   * A watcher with a consumer that takes everything and waits for more. `wants` is only passed if {@link Contender.filters} is
   * set.
   */
  watch(take: Take, wants?: Wants): H;
  /** Ends a watcher. */
  leave(watcher: H): unknown;
  /** A watcher that nobody reads yet. Absent if consumers are called directly, without a queue. */
  open?(): H;
  /** Starts the consumer of an open watcher. */
  read?(watcher: H, take: Take): void;
  /** A watcher whose consumer takes one event and never finishes it. */
  stall?(): H;
  close(): Promise<void> | void;
}

/** Capacity of a bounded queue, in events. */
export const CAPACITY: number = 1024;

export interface HubOptions {
  /** Capacity of a bounded queue; default {@link CAPACITY}. */
  readonly capacity?: number | undefined;
}

/** A contender. */
export interface Contender extends Entry {
  /** Whether it has filters; otherwise each consumer filters. */
  readonly filters?: boolean;
  /** Loads its package only now, because each contender has its own process. */
  start(options?: HubOptions): Promise<Hub> | Hub;
}

/** A promise that never settles. */
export const never: Promise<never> = new Promise(() => {});

/** The consumer of any async iterable of events. */
export async function consume(events: AsyncIterable<Tick>, take: Take): Promise<void> {
  for await (const event of events) take(event);
}

/** A consumer that never finishes its first event. */
export async function getStuck(events: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of events) await never;
}

/** For hubs whose watchers are async iterables that queue from the start: reading and stalling are the same for all. */
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

/** Hides the type of the handle, which the driver only passes back. */
export function anyHub<H>(hub: Hub<H>): Hub {
  return hub as Hub;
}
