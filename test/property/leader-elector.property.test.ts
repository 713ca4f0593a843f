// Electors whose clocks show other times and run at other speeds compete for one lease behind a network that loses and delays. Never
// do two lead at once; and when the network is well again, one leads within the time that the documents promise.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Lead, LeaderElector } from '../../src/workqueue/index.ts';
import { runs } from '../runs.ts';
import { type Fate, LeaseServer, World } from './election-world.ts';

const RUNS = runs(60);
const timeout = Math.max(30_000, 100 * RUNS);
const TERMS = { leaseDurationMs: 3_000, renewDeadlineMs: 2_000, retryMs: 200, requestTimeoutMs: 1_200 } as const;
/** The quotient of the two spans is 1.5. */
const [SLOW, FAST] = [0.817, 1.224];
const FAULTS_MS = 40_000;
const MAX_DELAY_MS = 6_000;

const delay = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 60 }) },
  { weight: 6, arbitrary: fc.integer({ min: 300, max: 1_190 }) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: MAX_DELAY_MS }) },
);
const fateArb: fc.Arbitrary<Fate> = fc.record({
  thereMs: delay,
  backMs: delay,
  lost: fc.oneof(
    { weight: 6, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.constantFrom('request' as const, 'answer' as const) },
  ),
});

const electorArb = fc.record({
  rate: fc.constantFrom(SLOW, 1, FAST),
  offset: fc.integer({ min: -1e9, max: 1e9 }),
  beginsMs: fc.integer({ min: 0, max: 10_000 }),
  /** When it is told to stop; the same elector comes back under its name after a while. */
  livesMs: fc.oneof(fc.constant(Infinity), fc.integer({ min: 500, max: 15_000 })),
  /** How long its work takes to end. */
  endsMs: fc.integer({ min: 0, max: 1_000 }),
  /** When all of its requests are lost, or all answers. */
  outages: fc.array(
    fc.record({
      fromMs: fc.integer({ min: 0, max: FAULTS_MS }),
      lastsMs: fc.integer({ min: 500, max: 8_000 }),
      lost: fc.constantFrom('request' as const, 'request' as const, 'answer' as const),
    }),
    { minLength: 2, maxLength: 8 },
  ),
  /** After how long the work is done on its own. */
  worksMs: fc.oneof({ weight: 3, arbitrary: fc.constant(Infinity) }, fc.integer({ min: 100, max: 8_000 })),
});
type Plan = typeof electorArb extends fc.Arbitrary<infer P> ? P : never;

/** Everything that runs, and who leads. */
class Contest {
  readonly world: World = new World();
  readonly server: LeaseServer;
  readonly leading: Set<LeaderElector> = new Set();
  readonly faults: string[] = [];
  readonly terms: number[] = [];
  readonly #random: () => number;
  readonly #fate: () => Fate;
  isOver: boolean = false;

  constructor(fate: () => Fate, random: () => number) {
    this.server = new LeaseServer(this.world);
    this.#fate = fate;
    this.#random = random;
  }

  /** What becomes of the next request of one elector. */
  #fateOf({ outages }: Plan): Fate {
    const { time } = this.world;
    if (time >= FAULTS_MS) return { thereMs: 1, backMs: 1, lost: undefined };
    const outage = outages.find(({ fromMs, lastsMs }) => time >= fromMs && time < fromMs + lastsMs);
    const fate = this.#fate();
    return outage ? { ...fate, lost: outage.lost } : fate;
  }

  /** One program, which starts again whenever its elector has ended. */
  async compete(identity: string, plan: Plan): Promise<void> {
    const { rate, offset, beginsMs, livesMs } = plan;
    const clock = this.world.clock(rate, offset);
    await this.world.wait(beginsMs);
    while (!this.isOver) {
      const elector = new LeaderElector({
        ...TERMS,
        ...{ leases: this.server.leases(() => this.#fateOf(plan)), name: 'lease', identity, clock, random: this.#random },
        now: () => clock.now() + 1e12,
        onError: () => {},
      });
      const stop = new AbortController();
      const cancel = livesMs < Infinity ? this.world.at(this.world.time + livesMs, () => stop.abort()) : () => {};
      const over = this.world.at(FAULTS_MS + 60_000, () => stop.abort());
      await elector.run(this.#lead(elector, plan), { signal: stop.signal });
      cancel();
      over();
      await this.world.wait(100);
    }
  }

  #lead(elector: LeaderElector, { endsMs, worksMs }: Plan): Lead {
    return async ({ signal, term }) => {
      for (const other of this.leading) {
        if (other.isLeader) this.faults.push(`${elector.identity} begins at ${this.world.time} while ${other.identity} leads`);
      }
      const last = this.terms.at(-1) ?? -1;
      if (term <= last) this.faults.push(`term ${term} after ${last}`);
      this.terms.push(term);
      this.leading.add(elector);
      await new Promise<void>((resolve) => {
        const cancel = worksMs < Infinity ? this.world.at(this.world.time + worksMs, resolve) : () => {};
        const onAbort = (): void => {
          cancel();
          // From here on it does nothing that needs the lease, unless it was only told to stop.
          if (elector.isLeader) void this.world.wait(endsMs).then(resolve);
          else resolve();
        };
        signal.addEventListener('abort', onAbort, { once: true });
      });
      this.leading.delete(elector);
    };
  }
}

describe('LeaderElector', () => {
  it(
    'one leads at a time, whatever the network and the clocks do; and soon one does when the network is well',
    async () => {
      const contests = fc.record({
        electors: fc.array(electorArb, { minLength: 2, maxLength: 4 }),
        fates: fc.infiniteStream(fateArb),
        randoms: fc.infiniteStream(fc.double({ min: 0, max: 0.999, noNaN: true })),
      });
      let leaderships = 0;
      await fc.assert(
        fc.asyncProperty(contests, async ({ electors, fates, randoms }) => {
          const contest = new Contest(
            () => fates.next().value as Fate,
            () => randoms.next().value as number,
          );
          // One of them stays.
          const plans = electors.map((plan, at) => (at === 0 ? { ...plan, livesMs: Infinity, worksMs: Infinity } : plan));
          const all = Promise.all(plans.map((plan, at) => contest.compete(`e${at}`, plan)));
          await contest.world.run(FAULTS_MS + MAX_DELAY_MS);
          // What was under way has arrived. From now on a lease is left alone for its duration, plus what it takes to see it and take it.
          const { leaseDurationMs, retryMs, requestTimeoutMs } = TERMS;
          const boundMs = (leaseDurationMs + 2 * 2.2 * retryMs + 3 * requestTimeoutMs) / SLOW;
          let waited = 0;
          while (![...contest.leading].some((each) => each.isLeader) && waited < boundMs) {
            await contest.world.run(contest.world.time + 50);
            waited += 50;
          }
          expect(waited).toBeLessThan(boundMs);
          contest.isOver = true;
          await contest.world.run(FAULTS_MS + 120_000);
          await all;
          leaderships += contest.terms.length;
          expect(contest.faults).toEqual([]);
          expect(contest.world.pending).toBe(0);
          expect(contest.server.lease?.spec?.holderIdentity).toBe('');
        }),
        { numRuns: RUNS },
      );
      expect(leaderships).toBeGreaterThan(RUNS);
    },
    timeout,
  );
});
