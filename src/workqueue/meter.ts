import type { Clock } from '../watch/clock.ts';
import { Failures, quietly } from '../watch/failures.ts';

/**
 * What a queue measures, and upstream's names for it.
 *
 * | name | value | reported | upstream |
 * |---|---|---|---|
 * | `depth` | keys that wait for a worker, including those that must run again | when it changes | `workqueue_depth` |
 * | `adds` | 1 | for each add that was not folded into another | `workqueue_adds_total` |
 * | `retries` | 1 | for each `addAfter` and `addRateLimited` | `workqueue_retries_total` |
 * | `queueDurationMs` | from the first add of a key until it is handed out | at each `get` | `workqueue_queue_duration_seconds` |
 * | `workDurationMs` | from handing it out until `done` | at each `done` | `workqueue_work_duration_seconds` |
 * | `unfinishedWorkMs` | the sum of the times for which the current keys have been processed | every 500 ms while there are any | `workqueue_unfinished_work_seconds` |
 * | `longestRunningMs` | the longest time for which a current key has been processed | the same | `workqueue_longest_running_processor_seconds` |
 */
export type WorkQueueMetricName =
  | 'depth'
  | 'adds'
  | 'retries'
  | 'queueDurationMs'
  | 'workDurationMs'
  | 'unfinishedWorkMs'
  | 'longestRunningMs';

/** One measurement of a {@link WorkQueue}. */
export interface WorkQueueMetric {
  readonly name: WorkQueueMetricName;
  readonly value: number;
  /** The name of the queue, or an empty string. */
  readonly queue: string;
}

/** The times of a key that the meter needs. */
export interface KeyTiming {
  addedAtMs: number;
  startedAtMs: number;
}

const REFRESH_MS = 500;

/**
 * Measures a queue, for `onMetric`. That is user code, which may call the queue, or throw, so it is called in a separate
 * microtask, when the queue is consistent. Errors go to `console.error`, once per kind, and affect neither the queue nor its
 * caller.
 */
export class Meter {
  readonly #clock: Clock;
  readonly #queue: string;
  readonly #onMetric: (metric: WorkQueueMetric) => void;
  readonly #running: Set<KeyTiming> = new Set();
  readonly #failures: Failures;
  #depth: number = 0;
  #ended: boolean = false;
  #cancel: (() => void) | undefined;

  constructor(options: { clock: Clock; name: string; onMetric: (metric: WorkQueueMetric) => void }) {
    this.#clock = options.clock;
    this.#queue = options.name;
    this.#onMetric = options.onMetric;
    this.#failures = new Failures(`work queue ${options.name}`.trim(), { clock: options.clock });
  }

  /** A key became dirty. */
  added(one: KeyTiming): void {
    one.addedAtMs = this.#clock.now();
    this.#tell('adds', 1);
    this.#tell('depth', ++this.#depth);
  }

  retried(): void {
    this.#tell('retries', 1);
  }

  /** A key was handed out. */
  started(one: KeyTiming): void {
    one.startedAtMs = this.#clock.now();
    this.#running.add(one);
    if (!this.#cancel && !this.#ended) this.#arm();
    this.#tell('depth', --this.#depth);
    this.#tell('queueDurationMs', one.startedAtMs - one.addedAtMs);
  }

  /** A key was handed out but not processed, and is queued again. If it was dirty, it is already counted in the depth. */
  returned(one: KeyTiming, dirty: boolean): void {
    this.#forget(one);
    if (!dirty) this.#tell('depth', ++this.#depth);
  }

  finished(one: KeyTiming): void {
    this.#forget(one);
    this.#tell('workDurationMs', this.#clock.now() - one.startedAtMs);
  }

  /** Stops the timer. */
  end(): void {
    this.#ended = true;
    this.#disarm();
  }

  /** When no key is in work any more, stops the timer, and reports the gauges once more, as 0. */
  #forget(one: KeyTiming): void {
    this.#running.delete(one);
    if (this.#running.size > 0 || !this.#cancel) return;
    this.#disarm();
    this.#refresh();
  }

  #arm(): void {
    this.#cancel = this.#clock.schedule(REFRESH_MS, () => {
      this.#arm();
      this.#refresh();
    });
  }

  #disarm(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #refresh(): void {
    const now = this.#clock.now();
    let sum = 0;
    let longest = 0;
    for (const { startedAtMs } of this.#running) {
      sum += now - startedAtMs;
      longest = Math.max(longest, now - startedAtMs);
    }
    this.#tell('unfinishedWorkMs', sum);
    this.#tell('longestRunningMs', longest);
  }

  #tell(name: WorkQueueMetricName, value: number): void {
    queueMicrotask(() => {
      quietly(
        () => this.#onMetric({ name, value, queue: this.#queue }),
        (error) => this.#failures.failed('onMetric', error, ` for ${name}`),
      );
    });
  }
}
