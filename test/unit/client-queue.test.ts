import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ClientQueue } from '../../src/bridge/client/reads.ts';
import { runs } from '../runs.ts';

/** What the queue is, with plain arrays: a row of events and errors, and losses before them. */
interface Entry {
  readonly kind: 'event' | 'error' | 'gap';
  readonly value: number;
}

type Step = 'push' | 'error' | 'drop' | 'miss' | 'shift';

test('behaves like plain arrays: events in order, losses before the next event, errors never lost', () => {
  const step = fc.constantFrom<Step>('push', 'push', 'push', 'error', 'drop', 'miss', 'shift', 'shift');
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const queue = new ClientQueue<string>({ capacity: 3, maxBufferedBytes: 100 });
      let model: Entry[] = [];
      let next = 0;
      for (const each of steps) {
        next++;
        if (each === 'push') {
          queue.push(`event ${next}`, { chars: next, version: `v${next}` });
          model.push({ kind: 'event', value: next });
        } else if (each === 'error') {
          queue.pushError(`error ${next}`);
          model.push({ kind: 'error', value: next });
        } else if (each === 'miss') {
          queue.miss();
          model.push({ kind: 'gap', value: 1 });
        } else if (each === 'drop') {
          queue.drop();
          const oldest = model.findIndex(({ kind }) => kind === 'event');
          if (oldest >= 0) model[oldest] = { kind: 'gap', value: 1 };
        } else {
          const expected = readModel(model);
          const missed = queue.count > 0 ? queue.lost : 0;
          expect([queue.shift(), missed]).toEqual([expected.got, expected.missed]);
          model = expected.rest;
        }
        const events = model.filter(({ kind }) => kind === 'event');
        expect(queue.count).toBe(countOf(model));
        expect(queue.load).toBe(Math.max(events.length / 3, events.reduce((sum, { value }) => sum + value, 0) / 100));
        expect(queue.allRead).toBe(model.length === 0);
      }
    }),
    { numRuns: runs(2_000) },
  );
});

/** Of errors with no event between them the last one counts; what was missed is told before what was next at the time. */
function readModel(model: readonly Entry[]): { got: string | undefined; missed: number; rest: Entry[] } {
  const end = model.findIndex(({ kind }) => kind === 'event');
  const before = end < 0 ? model : model.slice(0, end);
  const last = before.findLastIndex(({ kind }) => kind === 'error');
  const missed = before.filter(({ kind }, i) => kind === 'gap' && (last < 0 || i < last)).length;
  if (last >= 0) return { got: `error ${before[last]?.value}`, missed, rest: model.slice(last + 1) };
  if (end < 0) return { got: undefined, missed: 0, rest: [...model] };
  return { got: `event ${model[end]?.value}`, missed, rest: model.slice(end + 1) };
}

function countOf(model: readonly Entry[]): number {
  let count = 0;
  let error = false;
  for (const { kind } of model) {
    if (kind === 'error' && !error) count++;
    if (kind === 'event') count++;
    error = kind === 'error' || (error && kind === 'gap');
  }
  return count;
}

test('its load is that of events or that of characters, whichever is higher', () => {
  const queue = new ClientQueue<number>({ capacity: 4, maxBufferedBytes: 10 });
  queue.push(1, { chars: 11, version: 'a' });
  expect([queue.load, queue.weight]).toEqual([1.1, 1.1]);
  expect([queue.shift(), queue.readVersion, queue.load]).toEqual([1, 'a', 0]);
  for (let i = 0; i < 3; i++) queue.push(i, { chars: 1, version: undefined });
  expect([queue.load, queue.weight]).toEqual([0.75, 0.3]);
  queue.shift();
  expect(queue.load).toBe(0.5);
});
