// What is sent bit by bit: where it comes from, when it is over, and what is released then.
import { describe, expect, test } from 'vitest';
import { streamed } from '../../src/apiserver/http/api.ts';
import { PlainEvents } from '../../src/apiserver/http/event-encoder.ts';
import { choosePresentation, listHead, wantsEventStream } from '../../src/apiserver/http/presentation.ts';
import { Session, Turns } from '../../src/apiserver/http/sessions.ts';
import { CHUNK_BYTES, PiecesSource, type Source, WatchSource } from '../../src/apiserver/http/sources.ts';
import { LINE } from '../../src/bridge/events/forms.ts';
import type { Sink } from '../../src/bridge/hub/connection.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import type { StorageEvent } from '../../src/storage/storage.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { Timetable } from '../../src/watch/timetable.ts';
import type { Watch } from '../../src/watch/watch.ts';

type Event = StorageEvent<KubernetesObject>;

const added = (more: object = {}): Event => ({
  type: 'ADDED',
  object: { metadata: { name: 'a', resourceVersion: '7' }, ...more },
});
const failed = (code: number): Event => ({ type: 'ERROR', object: { kind: 'Status', code } as never });
const reader = { readable: () => {} };

/** The source of a watch that has these batches, and behind them a number of events. */
function watchSource(batches: Event[][], queued: number = 0): WatchSource {
  const each = batches.values();
  const watch = { batches: () => ({ next: async () => each.next() }), queued, return: () => {} };
  return new WatchSource(watch as unknown as Watch<Event>, new PlainEvents({ apiVersion: 'v1', kind: 'Thing' }), {
    onError: () => {},
  });
}

describe('the source of a watch', () => {
  test.each<[string, Event[][], boolean]>([
    ['with a 410 behind an event', [[added(), failed(410)]], true],
    ['with a 410 in a batch of its own behind an event', [[added()], [failed(410)]], true],
    ['with nothing but a 410', [[failed(410)]], false],
    ['with another ERROR', [[added(), failed(500)]], false],
    ['with an object that has such a code', [[added(), added({ code: 410 })]], false],
  ])('%s', async (_name, batches, expired) => {
    const source = watchSource(batches);
    expect(source.isExpired).toBe(false);
    for (const _ of batches) await source.next(LINE, reader);
    expect([source.isExpired, source.sent]).toEqual([expired, batches.flat().length]);
  });

  test('tells what waits: the rest of a batch, which is not to be joined with anything, and what is behind', async () => {
    const source = watchSource([['a', 'b', 'c', 'd'].map((letter) => added({ spec: letter.repeat(100_000) }))], 3);
    await source.next(LINE, reader);
    expect([source.sent, source.waiting, source.joins]).toEqual([2, 5, false]);
    source.next(LINE, reader);
    expect([source.sent, source.waiting, source.joins]).toEqual([4, 3, true]);
  });
});

/** A session that sends a source, and what becomes of it. */
function begin(source: Source, more: Partial<Sink> = {}): { session: Session; written: number[]; told: unknown[] } {
  const written: number[] = [];
  const told: unknown[] = [];
  const sink = {
    form: LINE,
    opened: () => {},
    write: (bytes: Uint8Array) => written.push(bytes.length) > 0,
    end: (how: string) => told.push(how),
    destroy: () => told.push('destroyed'),
    ...more,
  } as unknown as Sink;
  const ends = new Timetable<Session>(new FakeClock(), (session) => session.stop());
  const host = { turns: new Turns(), ends, onError: (error: unknown) => told.push(error), ended: () => told.push('ended') };
  const answer = { source, isWatch: false, resource: undefined, timeoutMs: 0, slot: undefined };
  const session = new Session(host, { sink, answer, outbound: { writableLength: 0 } });
  session.start();
  return { session, written, told };
}

/** Chunks; `over` is called when no more are wanted. */
function* pieces(count: number, over: () => void = () => {}): Generator<Uint8Array> {
  try {
    for (let n = 0; n < count; n++) yield new Uint8Array(CHUNK_BYTES);
  } finally {
    over();
  }
}

describe('a list', () => {
  test('is written in one turn while there is room, what was read before first', () => {
    const source = new PiecesSource(pieces(2), { ahead: [new Uint8Array(1), new Uint8Array(2)] });
    const { written, told } = begin(source);
    expect([written, told]).toEqual([[1, 2, CHUNK_BYTES, CHUNK_BYTES], ['complete']]);
  });

  test('whose pieces take long is written in several turns', () => {
    let nowMs = 0;
    function* slow(): Generator<Uint8Array> {
      for (let at = 0; at < 5; at++) {
        nowMs += 3;
        yield new Uint8Array(1);
      }
    }
    const pace = { turn: () => undefined, pause: () => undefined };
    const source = new PiecesSource(slow(), { pace, now: () => nowMs });
    const read = (): unknown => (source.next() as Uint8Array | undefined)?.length;
    expect([read(), read(), read(), read()]).toEqual([2, 2, 1, undefined]);
  });

  test('that nobody takes any more is not read any more', () => {
    let released = 0;
    const source = new PiecesSource(pieces(4, () => released++));
    const { session } = begin(source, { write: () => false });
    expect([session.isFull, session.sentBytes, released]).toEqual([true, CHUNK_BYTES, 0]);
    session.gone();
    expect([released, source.next()]).toEqual([1, undefined]);
  });

  test('has in its head what there is to say', () => {
    const head = (more: object): string => listHead('List', 'v1', { resourceVersion: '7', ...more });
    expect(head({})).toBe('{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[');
    expect(head({ continue: '' })).toBe(head({}));
    expect(head({ continue: 'c', remainingItemCount: 0 })).toContain('"7","continue":"c","remainingItemCount":0}');
  });
});

describe('a session', () => {
  const never: Source = { joins: false, next: () => new Promise(() => {}), close: () => {} };

  test('does once, when it is over, all that was to be done then; and at once what comes later', () => {
    const { session, told } = begin(never);
    for (const name of ['a', 'b', 'c']) session.whenOver(() => told.push(name));
    session.whenOver({ leave: () => told.push('d') });
    expect(told).toEqual([]);
    session.gone();
    session.gone();
    expect(told).toEqual(['ended', 'a', 'b', 'c', 'd']);
    session.whenOver(() => told.push('late'));
    expect(told.at(-1)).toBe('late');
  });

  test('that is cut is over, also if its sink throws', () => {
    const error = new Error('sink');
    const destroy = (): never => {
      throw error;
    };
    const { session, told } = begin(never, { destroy });
    session.cut('stalled');
    expect([told, session.over, session.reason]).toEqual([[error, 'ended'], true, 'stalled']);
  });
});

describe('an answer in pieces', () => {
  const answer = { code: 200, headers: {}, body: 'ü' } as const;

  test('is one of bytes, and no watch', () => {
    const { source, ...more } = streamed(answer, true) as ReturnType<typeof streamed> & { source: Source };
    expect(more).toEqual({ code: 200, headers: {}, isWatch: false, sse: false, timeoutMs: 0, slot: undefined });
    expect([source.next(LINE, reader), source.next(LINE, reader)]).toEqual([new TextEncoder().encode('ü'), undefined]);
  });

  test('is for what is long, or waits', () => {
    const long = { ...answer, body: new Uint8Array(CHUNK_BYTES + 1) };
    expect((streamed(long, false).source as Source).next(LINE, reader)).toEqual(long.body);
    for (const body of ['', null, new Uint8Array(CHUNK_BYTES)]) {
      const short = { ...answer, body };
      expect(streamed(short, false)).toBe(short);
    }
  });
});

test('who accepts events among other things gets them; who accepts nothing that there is, is told what there is', () => {
  expect(wantsEventStream('application/json, text/event-stream')).toBe(true);
  expect(wantsEventStream('application/json')).toBe(false);
  const wish = { query: new URLSearchParams(), subject: 'object', now: () => 0, onError: () => {} } as const;
  const message = 'only the following media types are accepted: application/json, application/yaml';
  const refusal = { status: expect.objectContaining({ code: 406, reason: 'NotAcceptable', message }) };
  expect(() => choosePresentation('text/html', wish)).toThrow(expect.objectContaining(refusal));
});
