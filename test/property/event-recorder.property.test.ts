// Counted: what the events on the server say in all is what was emitted, but for the drops that are counted, whatever the network does.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../runs.ts';
import { countOf, type EventRig, eventRig, type Fate, turn, website } from '../unit/event-recorder-rig.ts';

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('emit' as const),
      name: fc.constantFrom('a', 'a', 'a', 'b', 'c'), // often the same: what is counted is what matters
      type: fc.constantFrom('Normal' as const, 'Normal' as const, 'Warning' as const),
      reason: fc.constantFrom('One', 'One', 'Two'),
      message: fc.constantFrom('x', 'x', 'x', 'y', 'z', 'w'),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('answer' as const),
      fate: fc.constantFrom<Fate>('ok', 'ok', 'ok', 'lost', 'cut', 403, 500),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(1, 5_000, 60_000, 400_000, 2_000_000) }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('calm' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('flush' as const) }) },
);

/** Answers requests one by one, as told. What asks for an event without changing it is answered: else nobody could know what is told. */
function gated(rig: EventRig): (fate: Fate) => Promise<void> {
  const waiting: ((fate: Fate) => void)[] = [];
  const faults = new Map<string, number>();
  rig.fate = async ({ name, body }) => {
    if (Object.keys(body).length === 0) return 'ok';
    const wanted = await new Promise<Fate>((resolve) => waiting.push(resolve));
    const row = faults.get(name) ?? 0;
    const fate = row >= 5 ? 'ok' : wanted;
    faults.set(name, fate === 'ok' ? 0 : row + 1);
    return fate;
  };
  return async (fate) => {
    waiting.shift()?.(fate);
    await turn();
  };
}

const settings = fc.record({
  api: fc.constantFrom('v1' as const, 'events.k8s.io/v1' as const),
  burst: fc.constantFrom(1, 1, 2, 8),
  maxSimilar: fc.constantFrom(1, 2, 10),
  maxQueuedEvents: fc.constantFrom(1, 3, 20),
  maxSeries: fc.constantFrom(1, 2, 6),
});

test('the counts on the server are what was emitted, without what was dropped', async () => {
  const run = async (
    limits: typeof settings extends fc.Arbitrary<infer S> ? S : never,
    steps: readonly Step[],
  ): Promise<void> => {
    const rig = eventRig({ ...limits, refillMs: 300_000 });
    const { recorder, clock } = rig;
    const answer = gated(rig);
    for (const each of steps) {
      if (each.kind === 'emit') recorder.event(website(each.name), toEvent(each));
      else if (each.kind === 'answer') await answer(each.fate);
      else if (each.kind === 'wait') await clock.advanceAsync(each.ms);
      else if (each.kind === 'flush') void recorder.flush();
      else for (let at = 0; at < 5; at++) await answer('ok');
    }
    const isEven = recorder.stats.emitted % 2 === 0;
    const ended = isEven ? recorder.flush() : recorder.shutdown({ timeoutMs: 10_000_000 });
    let isOver = false;
    void ended.then(() => (isOver = true));
    while (!isOver) {
      await answer('ok');
      if (!isOver) await clock.advanceAsync(20_000);
    }
    const { emitted, written, pending, dropped } = recorder.stats;
    const gone = Object.values(dropped).reduce((sum, each) => sum + each, 0);
    const counted = (await rig.events()).reduce((sum, event) => sum + countOf(event), 0);
    expect({ counted, written, pending }).toEqual({ counted: emitted - gone, written: emitted - gone, pending: 0 });
    if (!isEven) expect(clock.pending).toBe(0);
  };
  await fc.assert(fc.asyncProperty(settings, fc.array(step, { maxLength: 60, size: 'max' }), run), { numRuns: runs(250) });
});

type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

function toEvent({ type, reason, message }: Extract<Step, { kind: 'emit' }>): {
  type: 'Normal' | 'Warning';
  reason: string;
  message: string;
} {
  return { type, reason, message };
}
