import type { Clock } from '../../watch/clock.ts';
import type { LogFields } from './log.ts';

/** How often one kind of event may have a line. */
const EVERY_MS = 1_000;
/** How many different keys a line may have. */
const MAX_KEYS = 20;

/** Options of a {@link Digest}. */
export interface DigestOptions {
  /** The field that stands for single events: how many of each key, such as `429:17,401:2`. */
  readonly keys: string;
  readonly clock: Clock;
  /** Writes the line. */
  readonly tell: (fields: LogFields) => void;
}

/**
 * Logs something that may happen any number of times, in one line per second at most. The first is logged at once; those that
 * follow are counted, and logged with the last of them.
 */
export class Digest {
  private readonly options: DigestOptions;
  private readonly counts: Map<string, number> = new Map();
  private last: LogFields = {};
  private cancel: (() => void) | undefined = undefined;

  constructor(options: DigestOptions) {
    this.options = options;
  }

  add(key: string, fields: LogFields): void {
    const known = this.counts.has(key) || this.counts.size < MAX_KEYS ? key : 'other';
    this.counts.set(known, (this.counts.get(known) ?? 0) + 1);
    this.last = fields;
    if (this.cancel === undefined) this.flush();
  }

  /** Logs what is left, and leaves no timer behind. */
  end(): void {
    this.cancel?.();
    this.tell();
    this.cancel = undefined;
  }

  private flush(): void {
    this.tell();
    this.cancel = this.options.clock.schedule(EVERY_MS, () => {
      this.cancel = undefined;
      if (this.counts.size > 0) this.flush();
    });
  }

  private tell(): void {
    const { counts, last, options } = this;
    if (counts.size === 0) return;
    const count = [...counts.values()].reduce((sum, each) => sum + each, 0);
    const keys = Array.from(counts, ([key, times]) => `${key}:${times}`).join(',');
    counts.clear();
    options.tell({ count, [options.keys]: keys, ...last });
  }
}
