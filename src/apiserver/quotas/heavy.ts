import { whenAborted } from '../../watch/abort.ts';
import type { OnBehalf } from '../../watch/fair-queue.ts';

/** How many large bodies are worked on at a time for one tenant at one address. */
const MAX_AT_ONCE = 2;

/** Those of one tenant at one address. */
class Line {
  busy: number = 0;
  readonly waiting: Set<() => void> = new Set();
}

/**
 * Lets only a few large bodies of one client become objects at a time. The others wait as bytes: twenty bodies of megabytes that are
 * parsed, copied and checked in turns would all be alive together, and nobody can be served while such garbage is collected.
 */
export class Heavy {
  private readonly lines: Map<string, Line> = new Map();

  /** Resolves when the next one may begin; undefined: now. Rejects with the signal's reason. Call `leave` once for each that began. */
  enter(whose: OnBehalf, signal: AbortSignal): Promise<void> | undefined {
    const key = keyOf(whose);
    const line = this.lines.get(key) ?? new Line();
    this.lines.set(key, line);
    if (line.busy < MAX_AT_ONCE) {
      line.busy++;
      return undefined;
    }
    return new Promise((resolve, reject) => {
      const begin = (): void => {
        stop();
        resolve();
      };
      const stop = whenAborted(signal, (reason) => {
        line.waiting.delete(begin);
        reject(reason);
      });
      if (!signal.aborted) line.waiting.add(begin);
    });
  }

  /** One is done: the next one takes its place. */
  leave(whose: OnBehalf): void {
    const key = keyOf(whose);
    const line = this.lines.get(key) as Line;
    const [next] = line.waiting;
    if (next) {
      line.waiting.delete(next);
      next();
    } else if (--line.busy === 0) this.lines.delete(key);
  }
}

const keyOf = ({ tenant, address }: OnBehalf): string => `${tenant}\0${address}`;
