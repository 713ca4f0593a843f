import { setImmediate } from 'node:timers/promises';
import type { Hub, Take, Tick, Wants } from './contender.ts';
import { warmingUp } from './warm.ts';
import type { Settings } from './workload.ts';

interface FleetOptions {
  readonly watchers: number;
  /** Events published at once. */
  readonly burst: number;
  /** Each watcher wants one event in this many; default 1, all events. */
  readonly oneIn?: number;
  /** Whether the hub filters, or each consumer. */
  readonly filters?: boolean | undefined;
  readonly lateMs?: number;
}

/** A watcher got a wrong event. Getting none at all is a different error, because it may be the publisher's fault. */
export class WrongAnswer extends Error {}

const LATE_MS = 60_000;
/**
 * The event loop gets a turn after this many deliveries: real programs have such turns, and a WeakRef retains its target until
 * then.
 */
const PER_TURN = 20_000;

/**
 * Watchers that check what they get, and their publisher.
 *
 * Events are numbered from 0. Each watcher counts along. A number that is not the expected one (lost, repeated or out of order)
 * ends the run. The last watcher to finish a burst resolves the one promise that the publisher waits for. So the driver costs one
 * comparison and one count per delivery, and one promise per burst.
 */
export class Fleet {
  readonly hub: Hub;
  readonly options: FleetOptions;
  /** The number after the last one of the current burst. */
  private goal: number = 0;
  /** Watchers that have not finished it. */
  private behind: number = 0;
  private resolve: () => void = () => {};
  private reject: (error: Error) => void = () => {};
  private wrong: Error | undefined;

  constructor(hub: Hub, options: FleetOptions) {
    this.hub = hub;
    this.options = options;
    const { oneIn = 1, filters = false } = options;
    for (let i = 0; i < options.watchers; i++) {
      const take = this.consumer(i % oneIn, oneIn);
      if (oneIn === 1) {
        hub.watch(take);
        continue;
      }
      const wants: Wants = (event) => event.object % oneIn === i % oneIn;
      if (filters) hub.watch(take, wants);
      else
        hub.watch((event) => {
          if (wants(event)) take(event);
        });
    }
  }

  /** Publishes bursts, each after all have received the previous one. Returns the seconds. */
  async run(bursts: number, burst: number = this.options.burst): Promise<number> {
    const { watchers, lateMs = LATE_MS } = this.options;
    const perTurn = Math.ceil(PER_TURN / (burst * watchers));
    const late = setTimeout(
      () => this.fail(new Error(`wrong answer: ${this.behind} watchers do not have event ${this.goal - 1} yet`)),
      lateMs,
    );
    const began = performance.now();
    try {
      for (let i = 0; i < bursts; i++) {
        this.publish(burst);
        if (this.behind > 0) await this.all();
        if (i % perTurn === perTurn - 1) await setImmediate();
      }
    } finally {
      clearTimeout(late);
    }
    const seconds = (performance.now() - began) / 1000;
    if (this.wrong !== undefined) throw this.wrong;
    return seconds;
  }

  /** Runs for about `warmMs`. Returns the number of bursts in a round. */
  async warmUp({ warmMs, roundMs }: Settings): Promise<number> {
    const cold = warmingUp(warmMs);
    let bursts = 1;
    let seconds: number;
    do {
      seconds = await this.run(bursts);
      if (seconds < 0.01) bursts *= 2;
    } while (cold());
    return Math.max(1, Math.round((bursts / seconds) * (roundMs / 1000)));
  }

  private publish(burst: number): void {
    const { hub } = this;
    const from = this.goal;
    this.goal = from + burst;
    this.behind = this.options.watchers;
    for (let object = from; object < this.goal; object++) hub.publish({ type: 'TICK', object });
    hub.flush?.();
  }

  private all(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
      if (this.wrong !== undefined) reject(this.wrong);
    });
  }

  private consumer(first: number, step: number): Take {
    let next = first;
    return (event: Tick) => {
      if (event.object !== next)
        this.fail(new WrongAnswer(`wrong answer: a watcher got event ${event.object} where ${next} was due`));
      next += step;
      if (next >= this.goal && --this.behind === 0) this.resolve();
    };
  }

  private fail(error: Error): void {
    this.wrong ??= error;
    this.reject(this.wrong);
  }
}
