// A world for electors: one time that passes in steps, clocks that run faster or slower than it, and a place for leases behind a
// network that delays, loses, and answers late.
import type { Clock } from '../../src/watch/clock.ts';
import { WatchError } from '../../src/watch/errors.ts';
import { toStatus } from '../../src/watch/event.ts';
import type { Lease, LeaseRequest, LeaseResource } from '../../src/workqueue/index.ts';

interface Timer {
  readonly at: number;
  readonly callback: () => void;
}

/** A timer that is set for later is that much later: a microsecond. */
const LEAST_MS = 0.001;

/** Time, which goes from one timer to the next; what promises do in between takes none. */
export class World {
  time: number = 0;
  readonly #timers: Set<Timer> = new Set();

  get pending(): number {
    return this.#timers.size;
  }

  at(time: number, callback: () => void): () => void {
    const timer = { at: Math.max(time, this.time), callback };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  wait(ms: number): Promise<void> {
    return new Promise((resolve) => void this.at(this.time + ms, resolve));
  }

  /** A clock that shows some other time, and runs at a speed of its own. */
  clock(rate: number, offset: number): Clock {
    return {
      now: () => offset + this.time * rate,
      // Less than that may be lost when it is added, and whoever waits for it would wait for ever without time passing.
      schedule: (delayMs, callback) => this.at(this.time + (delayMs > 0 ? Math.max(delayMs / rate, LEAST_MS) : 0), callback),
    };
  }

  async run(untilTime: number): Promise<void> {
    await settle();
    for (;;) {
      let first: Timer | undefined;
      for (const timer of this.#timers) if (timer.at <= untilTime && (!first || timer.at < first.at)) first = timer;
      if (!first) break;
      this.#timers.delete(first);
      this.time = first.at;
      first.callback();
      await settle();
    }
    this.time = untilTime;
  }
}

const settle = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/** What happens to a request: how long each way takes, and whether it, or its answer, is lost. */
export interface Fate {
  readonly thereMs: number;
  readonly backMs: number;
  readonly lost: 'request' | 'answer' | undefined;
}

const refused = (code: number): WatchError =>
  new WatchError('REFUSED', `${code}`, { status: toStatus({ code, reason: 'Refused', message: `${code}` }) });

/** The one lease, with the versions that it had. */
export class LeaseServer {
  lease: Lease | undefined;
  version: number = 0;
  requests: number = 0;
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  /** What an elector is given, with the fates of its requests. It ignores the signal, as a careless one would. */
  leases(fate: () => Fate): LeaseResource {
    const lease = (): Lease | undefined => structuredClone(this.lease);
    return {
      get: (_name: string, _options?: LeaseRequest) => this.#ask(fate(), lease),
      create: (sent: Lease) =>
        this.#ask(fate(), () => {
          if (this.lease) throw refused(409);
          return this.#write(sent);
        }),
      update: (sent: Lease) =>
        this.#ask(fate(), () => {
          if (!this.lease) throw refused(404);
          if (sent.metadata?.resourceVersion !== this.lease.metadata?.resourceVersion) throw refused(409);
          return this.#write(sent);
        }),
    };
  }

  #write(sent: Lease): Lease {
    this.lease = { ...sent, metadata: { ...sent.metadata, resourceVersion: String(++this.version) } };
    return structuredClone(this.lease);
  }

  async #ask<R>({ thereMs, backMs, lost }: Fate, act: () => R): Promise<R> {
    this.requests++;
    await this.#world.wait(thereMs);
    if (lost === 'request') throw new Error('the request was lost');
    let told: () => R;
    try {
      const answer = act();
      told = () => answer;
    } catch (error) {
      told = () => {
        throw error;
      };
    }
    await this.#world.wait(backMs);
    if (lost === 'answer') throw new Error('the answer was lost');
    return told();
  }
}
