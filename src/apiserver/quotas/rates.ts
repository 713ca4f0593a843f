/** Limits how often each of many keys may do something per second. */

const PARTS = 10;
const PART_MS = 1_000 / PARTS;

/**
 * Counts by key in tenths of a second. This tenth and the ten before it cover any second that ends now, so no second has more
 * than allowed; a caller that asks all the time gets at least nine tenths of that. It needs no timer, and forgets keys that have
 * been quiet for that long.
 *
 *     | 0 | 3 | 0 | 0 | 1 | 0 | 2 | 0 | 0 | 0 | 1 |
 *          `------ the last second -------------'
 */
export class Rates {
  private readonly perSecond: number;
  /** When the last part began. */
  private beganMs: number = Number.NEGATIVE_INFINITY;
  private parts: Map<string, number>[] = [new Map()];

  /** 0: no limit. */
  constructor(perSecond: number) {
    this.perSecond = perSecond;
  }

  /** Counts one more, unless that would be too many. Returns whether it was counted. */
  take(key: string, nowMs: number): boolean {
    if (this.perSecond === 0) return true;
    this.turn(nowMs);
    let counted = 0;
    for (const part of this.parts) counted += part.get(key) ?? 0;
    if (counted >= this.perSecond) return false;
    const last = this.parts[this.parts.length - 1] as Map<string, number>;
    last.set(key, (last.get(key) ?? 0) + 1);
    return true;
  }

  private turn(nowMs: number): void {
    const passed = Math.floor((nowMs - this.beganMs) / PART_MS);
    if (passed < 1) return;
    if (passed > PARTS) {
      this.parts = [];
      this.beganMs = nowMs;
    } else this.beganMs += passed * PART_MS;
    for (let part = 0; part < Math.min(passed, PARTS); part++) this.parts.push(new Map());
    this.parts.splice(0, this.parts.length - PARTS - 1);
  }
}
