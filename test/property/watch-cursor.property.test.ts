// A watch of etcd that is cut anywhere gives out every event once, however etcd cuts what it owes into responses.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { WatchCursor } from '../../src/storage/etcd/etcd-changes.ts';
import type { KeyEvent } from '../../src/storage/etcd/wire/messages.ts';
import { runs } from '../runs.ts';

const numRuns = runs(1_500);

/** An event, as text: its revision, and its place in that. */
interface Event extends KeyEvent {
  readonly id: string;
}

function event(revision: number, at: number): Event {
  const empty = new Uint8Array(0);
  const kv = { key: empty, createRevision: 1n, modRevision: BigInt(revision), value: empty, lease: 0n };
  return { id: `${revision}.${at}`, deleted: false, kv, previous: undefined };
}

/** The events of a history: so many at each revision, some of which have nothing to do with the watch. */
const history = fc
  .array(fc.nat({ max: 4 }), { maxLength: 20 })
  .map((counts) => counts.flatMap((count, at) => Array.from({ length: count }, (_, n) => event(at + 1, n))));

/** What etcd does in one call: how many events each response has at most, and how many responses come before the cut. */
const calls = fc.array(
  fc.record({ size: fc.integer({ min: 1, max: 5 }), responses: fc.nat({ max: 6 }), progress: fc.boolean() }),
  { maxLength: 12 },
);

describe('the place of a watch', () => {
  it('cut anywhere, also within a revision, every event comes once and in order', () => {
    fc.assert(
      fc.property(history, fc.nat({ max: 20 }), calls, (events, after, faulty) => {
        const cursor = new WatchCursor(BigInt(after));
        const seen: string[] = [];
        const newest = events.at(-1)?.kv.modRevision ?? 0n;
        // The last call is not cut.
        for (const { size, responses, progress } of [...faulty, { size: 3, responses: 1_000, progress: true }]) {
          const start = cursor.resume();
          const owed = events.filter(({ kv }) => kv.modRevision >= start);
          let sent = 0;
          for (let n = 0; n < responses && sent < owed.length; n++) {
            const part = owed.slice(sent, sent + size);
            sent += part.length;
            // A response is a fragment if it does not end with its revision.
            const fragment = owed[sent]?.kv.modRevision === part.at(-1)?.kv.modRevision;
            const before = cursor.revision;
            seen.push(...cursor.events({ events: part, fragment }).map((each) => (each as Event).id));
            expect(cursor.revision >= before).toBe(true);
          }
          if (progress && sent === owed.length) cursor.progress(newest);
        }
        expect(seen).toEqual(events.filter(({ kv }) => kv.modRevision > BigInt(after)).map(({ id }) => id));
      }),
      { numRuns },
    );
  });

  it('progress that is behind says nothing', () => {
    const cursor = new WatchCursor(7n);
    expect(cursor.progress(6n)).toBe(false);
    expect(cursor.revision).toBe(7n);
    expect(cursor.progress(9n)).toBe(true);
    expect(cursor.resume()).toBe(10n);
  });
});
