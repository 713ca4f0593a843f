/**
 * A storm, simulated: clients that have lost their server come back, each after a delay of its own, and are served one after the
 * other.
 *
 *     lost --delay: random, up to the spread--> asks --waits for those before it--> served --> live
 */

interface StormPlan {
  /** Clients that come back to one replica. */
  readonly clients: number;
  /** Each waits for a random time, up to this. */
  readonly spreadMs: number;
  /** What one costs the replica. */
  readonly joinMs: number;
  /** The share of its core that the replica has for them: the rest is busy with those who are there. */
  readonly share: number;
}

export interface StormCourse {
  /** When the last one is live. */
  readonly allLiveMs: number;
  readonly halfLiveMs: number;
  /** How long somebody waits for an answer at most. */
  readonly longestWaitMs: number;
}

/** Clients come at equal distances: with thousands of them, chance makes no difference. */
export function simulateStorm({ clients, spreadMs, joinMs, share }: StormPlan): StormCourse {
  const servedMs = joinMs / share;
  let freeAtMs = 0;
  let longestWaitMs = 0;
  let halfLiveMs = 0;
  for (let client = 0; client < clients; client++) {
    const asksAtMs = ((client + 1) / clients) * spreadMs;
    freeAtMs = Math.max(freeAtMs, asksAtMs) + servedMs;
    longestWaitMs = Math.max(longestWaitMs, freeAtMs - asksAtMs);
    if (client === clients >> 1) halfLiveMs = freeAtMs;
  }
  return { allLiveMs: freeAtMs, halfLiveMs, longestWaitMs };
}
