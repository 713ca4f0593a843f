// Whatever clients ask for, and however long their pieces take: tenants are worked for alike, and so are the addresses of one tenant.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkFair, type WorkStep } from '../../src/testing/checkers/check-fair.ts';
import { FairQueue } from '../../src/watch/fair-queue.ts';
import { runs } from '../runs.ts';

interface Request {
  readonly tenant: string;
  readonly address: string;
  /** After so many turns of the event loop. */
  readonly after: number;
  /** How long each of its pieces takes, in ms. */
  readonly pieces: readonly number[];
}

const request = fc.record<Request>({
  tenant: fc.constantFrom('', 'a', 'b', 'c'),
  address: fc.constantFrom('', '1', '2', '3'),
  after: fc.nat(12),
  pieces: fc.array(fc.constantFrom(0.5, 1, 7, 60), { minLength: 1, maxLength: 5 }),
});

/** What happened, by tenant and address. */
type Entry = { readonly tenant: string; readonly address: string } & (
  | { readonly step: 'ask' | 'begin' }
  | { readonly step: 'end'; readonly ms: number }
);

async function performed(requests: readonly Request[]): Promise<Entry[]> {
  let nowMs = 0;
  let turns: (() => void)[] = [];
  const queue = new FairQueue({ now: () => nowMs, turn: (callback) => void turns.push(callback) });
  const log: Entry[] = [];
  const run = async ({ pieces, tenant, address }: Request): Promise<void> => {
    const whose = { tenant, address };
    log.push({ ...whose, step: 'ask' });
    const turn = queue.turn(whose);
    if (turn) await turn;
    log.push({ ...whose, step: 'begin' });
    let begunMs = nowMs;
    for (const ms of pieces) {
      nowMs += ms;
      // If it need not wait, it is still the same piece.
      const pause = queue.pause(whose);
      if (!pause) continue;
      log.push({ ...whose, step: 'end', ms: nowMs - begunMs }, { ...whose, step: 'ask' });
      await pause;
      log.push({ ...whose, step: 'begin' });
      begunMs = nowMs;
    }
    log.push({ ...whose, step: 'end', ms: nowMs - begunMs });
  };
  const running: Promise<void>[] = [];
  for (let turn = 0; turn <= 12 || turns.length > 0; turn++) {
    for (const each of requests) if (each.after === turn) running.push(run(each));
    const due = turns;
    turns = [];
    for (const each of due) {
      each();
      for (let task = 0; task < 5; task++) await undefined;
    }
  }
  await Promise.all(running);
  expect(queue.size).toBe(0);
  return log;
}

const stepsOf = (log: readonly Entry[], name: 'tenant' | 'address'): WorkStep[] => [
  ...log.map(
    (each): WorkStep =>
      each.step === 'end' ? { step: each.step, client: each[name], ms: each.ms } : { step: each.step, client: each[name] },
  ),
  { step: 'idle' },
];

test('every history of the queue is Fair', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 30 }), async (requests) => {
      const log = await performed(requests);
      expect(checkFair({ steps: stepsOf(log, 'tenant') })).toBeUndefined();
      for (const own of ['', 'a', 'b', 'c']) {
        const ofTenant = log.filter(({ tenant }) => tenant === own);
        expect(checkFair({ steps: stepsOf(ofTenant, 'address') })).toBeUndefined();
      }
    }),
    { numRuns: runs(1_500) },
  );
});
