// The versions in a batch of folded events: after which of them a client can resume.
import { describe, expect, test } from 'vitest';
import { Envelope, toResumable } from '../../src/bridge/events/envelope.ts';
import { toStatus, type WatchEvent } from '../../src/watch/event.ts';

const at = (sequence: number): Envelope =>
  new Envelope({ type: 'ADDED', object: sequence }, { sequence, version: `e.${sequence}` });
const error = new Envelope(
  { type: 'ERROR', object: toStatus({ code: 410, reason: 'Expired', message: 'too slow' }) },
  { sequence: 0 },
);
/** What `coalesce` makes of an event if it has to change its type. */
const copied = (sequence: number): WatchEvent =>
  ({ type: 'MODIFIED', object: sequence, sequence, version: `e.${sequence}` }) as WatchEvent;

const versions = (batch: readonly WatchEvent[]): (string | undefined)[] => batch.map((event) => (event as Envelope).version);

describe('the versions of a batch', () => {
  test('are its own if nothing was folded and nothing was left out: it is the same batch', () => {
    const batch = [at(3), at(4), at(5)];
    expect(toResumable(batch, { after: 2 })).toBe(batch);
    expect(toResumable(batch, { after: 2, read: { head: 9, version: 'e.9' } })).toBe(batch);
  });

  test.each<[string, number[], number, (string | undefined)[]]>([
    ['was folded', [3, 2], 0, [undefined, 'e.3']],
    ['ends with its latest change', [2, 4], 0, [undefined, 'e.4']],
    ['lacks one', [1, 3], 0, [undefined, 'e.3']],
    ['lacks the first', [2, 3], 0, [undefined, 'e.3']],
    ['is one event that lacks the one before', [2], 0, ['e.2']],
    ['has its latest change in the middle', [1, 6, 2], 0, [undefined, undefined, 'e.6']],
  ])('are one, at its end, that of its latest change, if it %s', (_what, sequences, after, expected) => {
    const batch = sequences.map(at);
    const sent = toResumable(batch, { after });
    expect(versions(sent)).toEqual(expected);
    expect(sent.map((event) => event.object)).toEqual(sequences);
    expect(sent.map((event) => JSON.parse(new TextDecoder().decode((event as Envelope).bytes)).resourceVersion)).toEqual(
      expected,
    );
  });

  test('end with the head, if the batch was read up to it, and with no less than what is in it', () => {
    expect(versions(toResumable([at(2)], { after: 0, read: { head: 3, version: 'e.3' } }))).toEqual(['e.3']);
    expect(versions(toResumable([at(3), at(2)], { after: 0, read: { head: 3, version: 'e.3' } }))).toEqual([undefined, 'e.3']);
    expect(versions(toResumable([at(5), at(2)], { after: 0, read: { head: 4, version: 'e.4' } }))).toEqual([undefined, 'e.5']);
  });

  test("are their own for ERRORs with a place, across which nothing is folded: one without a version is always the server's", () => {
    const failure = (sequence: number): Envelope =>
      new Envelope({ type: 'ERROR', object: error.object }, { sequence, version: `e.${sequence}` });
    expect(versions(toResumable([at(3), failure(4), at(7), at(6)], { after: 0 }))).toEqual([undefined, 'e.4', undefined, 'e.7']);
    expect(versions(toResumable([at(2), failure(4)], { after: 0, read: { head: 9, version: 'e.9' } }))).toEqual([
      undefined,
      'e.9',
    ]);
    expect(versions(toResumable([failure(2), error], { after: 0 }))).toEqual(['e.2', undefined]);
  });

  test('leave an event that already has the right one as it is', () => {
    const only = at(2);
    expect(toResumable([only], { after: 0 })[0]).toBe(only);
  });

  test('do not include an event outside of the stream, which is sent as it is', () => {
    const sent = toResumable([at(3), at(2), error], { after: 0 });
    expect(versions(sent)).toEqual([undefined, 'e.3', undefined]);
    expect(sent[2]).toBe(error);
    expect(toResumable([error], { after: 0, read: { head: 4, version: 'e.4' } })).toEqual([error]);
  });

  test('are the same for an event whose type was changed, which gets bytes of its own', () => {
    const sent = toResumable([copied(1), copied(2)], { after: 0 });
    expect(versions(sent)).toEqual([undefined, 'e.2']);
    expect(sent.every((event) => event instanceof Envelope)).toBe(true);
  });
});
