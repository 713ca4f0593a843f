// Resuming: what a version is, what is kept, and where a client resumes.
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Envelope } from '../../src/bridge/events/envelope.ts';
import { createFetchHandler } from '../../src/bridge/fetch.ts';
import { coreOf, Hub } from '../../src/bridge/hub/hub.ts';
import type { Admitted } from '../../src/bridge/hub/hub-core.ts';
import type { Start } from '../../src/bridge/hub/hub-log.ts';
import { readQuery, readVersion } from '../../src/bridge/hub/query.ts';
import { startOf } from '../../src/bridge/transport/http-head.ts';
import { isStatus } from '../../src/watch/event.ts';
import { added, connect, turn } from './fake-sink.ts';

const places = (envelopes: readonly Envelope[] | undefined): number[] | undefined => envelopes?.map(({ sequence }) => sequence);

/** Any character. fast-check's own `binary` first makes a table of all, which takes seconds. */
const anyCharacter: fc.Arbitrary<string> = fc
  .nat(0x10_f7ff)
  .map((place) => String.fromCodePoint(place < 0xd800 ? place : place + 0x800));

describe('a version', () => {
  test.each([
    ['e.0', { epoch: 'e', sequence: 0 }],
    ['a-b_C.17', { epoch: 'a-b_C', sequence: 17 }],
    [`e.${'9'.repeat(15)}`, { epoch: 'e', sequence: 999_999_999_999_999 }],
    [`e.${'9'.repeat(16)}`, { epoch: 'e', sequence: Number.POSITIVE_INFINITY }],
    [`e.${'9'.repeat(254)}`, { epoch: 'e', sequence: Number.POSITIVE_INFINITY }],
    ['__proto__.1', { epoch: '__proto__', sequence: 1 }],
  ])('%s is valid', (text, expected) => {
    expect(readVersion(text)).toEqual(expected);
  });

  test.each([
    '',
    '0',
    '17',
    '.',
    '.1',
    'e.',
    'e.01',
    'e.-1',
    'e.+1',
    'e.1e9',
    'e.0x1',
    'e.1 ',
    ' e.1',
    'e.1\n',
    'e.١',
    'e.1.5.',
    'e/1',
    'é.1',
    '__proto__',
    'constructor',
    'e.NaN',
    'e.Infinity',
    'a.b.c',
    `${'e'.repeat(65)}.1`,
    `e.${'9'.repeat(255)}`,
  ])('%j is invalid', (text) => {
    expect(readVersion(text)).toBeUndefined();
  });

  test('any other value is invalid, and nothing throws', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter, maxLength: 300 }), (text) => {
        const version = readVersion(text);
        if (version !== undefined) expect(text).toMatch(/^[A-Za-z0-9_-]+\.[0-9]+$/);
      }),
    );
  });
});

describe('a query', () => {
  const read = (search: string, lastEventId?: string): ReturnType<typeof readQuery> => readQuery({ search, lastEventId });

  test.each([
    ['', {}],
    ['resourceVersion=', {}],
    ['resourceVersion=0', {}],
    ['resourceVersion=e.1&x=1&x=2&__proto__=1', { resourceVersion: 'e.1' }],
    ['allowWatchBookmarks=true&timeoutSeconds=5', { allowWatchBookmarks: true, timeoutSeconds: 5 }],
    ['allowWatchBookmarks=0&sendInitialEvents=false&timeoutSeconds=0', { allowWatchBookmarks: false, sendInitialEvents: false }],
    ['sendInitialEvents=1', { sendInitialEvents: true }],
    [`resourceVersion=e.${'1'.repeat(254)}`, { resourceVersion: `e.${'1'.repeat(254)}` }],
    [`x=${'y'.repeat(2_046)}`, {}],
  ])('%j is accepted', (search, expected) => {
    const asked = Object.fromEntries(Object.entries(read(search)).filter(([, value]) => value !== undefined));
    expect(asked).toEqual({ isBack: false, ...expected });
  });

  test('Last-Event-ID takes precedence, unless it is empty', () => {
    expect(read('resourceVersion=e.1', 'e.2')).toMatchObject({ resourceVersion: 'e.2', isBack: true });
    expect(read('resourceVersion=e.1', '')).toMatchObject({ resourceVersion: 'e.1', isBack: false });
  });

  test.each([
    ['resourceVersion=1', 'resourceVersion', '"1"'],
    ['resourceVersion=__proto__', 'resourceVersion', '"__proto__"'],
    ['resourceVersion=e.1&resourceVersion=e.1', 'resourceVersion', 'one value'],
    [`resourceVersion=e.${'1'.repeat(300)}`, 'resourceVersion', '256 characters'],
    ['resourceVersion=e.1%0d%0aX', 'resourceVersion', '"e.1..X"'],
    ['timeoutSeconds=-1', 'timeoutSeconds', '"-1"'],
    ['timeoutSeconds=1e3', 'timeoutSeconds', '"1e3"'],
    ['timeoutSeconds=9999999999', 'timeoutSeconds', '"9999999999"'],
    ['allowWatchBookmarks=yes', 'allowWatchBookmarks', '"yes"'],
    ['sendInitialEvents=%7f', 'sendInitialEvents', 'true or false'],
    ['sendInitialEvents=%ff', 'the query', 'not encoded correctly'],
    [`x=${'y'.repeat(2_047)}`, 'the query', '2048 bytes'],
  ])('%j is a bad request that names what is wrong', (search, name, what) => {
    const status = read(search);
    expect(status).toMatchObject({ kind: 'Status', code: 400, reason: 'BadRequest' });
    expect((status as { message: string }).message).toContain(name);
    expect((status as { message: string }).message).toContain(what);
    expect((status as { message: string }).message.length).toBeLessThan(250);
  });

  test.each([
    ['resourceVersion=e.1&resourceVersion=e.2', 'resourceVersion: expected one value, got "e.1, e.2"'],
    ['timeoutSeconds=x', 'timeoutSeconds: expected a whole number of seconds, got "x"'],
    [`resourceVersion=${'x'.repeat(80)}`, `resourceVersion: expected a version from this stream, got "${'x'.repeat(80)}"`],
    [`resourceVersion=${'x'.repeat(81)}`, `resourceVersion: expected a version from this stream, got "${'x'.repeat(80)}..."`],
  ])('%j is refused with what was expected, and at most 80 characters of what came', (search, message) => {
    expect(read(search)).toMatchObject({ code: 400, message });
  });

  test('an invalid Last-Event-ID is named as such', () => {
    expect(read('', 'e.1, e.2')).toMatchObject({ code: 400, message: expect.stringContaining('last-event-id') });
  });

  test('any query yields either a request or a refusal', () => {
    const words = fc.oneof(fc.string({ unit: anyCharacter }), fc.constantFrom('true', 'e.1', '', '0', '__proto__', '%', '%zz'));
    const names = fc.oneof(
      fc.string(),
      fc.constantFrom('resourceVersion', 'timeoutSeconds', 'sendInitialEvents', 'allowWatchBookmarks'),
    );
    const queries = fc.array(fc.tuple(names, words), { maxLength: 6 });
    fc.assert(
      fc.property(queries, fc.option(words, { nil: undefined }), (pairs, lastEventId) => {
        const asked = read(pairs.map((pair) => pair.join('=')).join('&'), lastEventId);
        if (isStatus(asked)) expect(asked.code).toBe(400);
        else expect(asked.timeoutSeconds ?? 1).toBeGreaterThan(0);
      }),
    );
  });
});

describe('a hub', () => {
  const published = async (count: number, options: ConstructorParameters<typeof Hub>[0] = {}): Promise<Hub> => {
    const hub = new Hub({ epoch: 'e', ...options });
    for (let i = 1; i <= count; i++) await hub.publish(added(i));
    return hub;
  };

  test('resumes right after a version, exactly as far back as its window goes', async () => {
    const hub = await published(20, { replayItems: 5 });
    for (let from = 0; from <= 21; from++) {
      const start = coreOf(hub).start({ resourceVersion: `e.${from}` });
      if (from >= 15 && from <= 20) {
        expect(places((start as Start).missed)).toEqual(Array.from({ length: 20 - from }, (_, i) => from + 1 + i));
        expect(start).toMatchObject({ resumed: true });
      } else {
        expect(start).toMatchObject({ code: 410, reason: 'Expired' });
      }
    }
    expect(coreOf(hub).start({ resourceVersion: 'other.20' })).toMatchObject({ code: 410 });
    expect(coreOf(hub).start({ resourceVersion: `e.${'9'.repeat(99)}` })).toMatchObject({ code: 410 });
    expect(coreOf(hub).start({ resourceVersion: '__proto__.1' })).toMatchObject({ code: 410 });
    expect(coreOf(hub).start({ resourceVersion: 'no version' })).toMatchObject({
      code: 410,
      message: 'cannot resume after version no version: start over without a version',
    });
  });

  test('without a window, resumes a client that missed nothing: before the first event, and after all were dropped', async () => {
    const hub = await published(0, { replayItems: 0 });
    expect(hub.version).toBe('e.0');
    expect(coreOf(hub).start({ resourceVersion: 'e.0' })).toMatchObject({ missed: [], resumed: true });
    await hub.publish(added(1));
    expect(coreOf(hub).start({ resourceVersion: 'e.1' })).toMatchObject({ missed: [], resumed: true });
    expect(coreOf(hub).start({ resourceVersion: 'e.0' })).toMatchObject({ code: 410 });
  });

  test('also limits the window in bytes, even for a burst that is published at once', () => {
    const hub = new Hub({ epoch: 'e', replayItems: 1_000, replayBytes: 10_000 });
    for (let i = 0; i < 500; i++) hub.tryPublish(added('x'.repeat(900)));
    expect(coreOf(hub).start({ resourceVersion: 'e.489' })).toMatchObject({ code: 410 });
    expect(places((coreOf(hub).start({ resourceVersion: 'e.495' }) as Start).missed)).toEqual([496, 497, 498, 499, 500]);
  });

  test('hands over from missed to live events without a gap, while events arrive without a pause', async () => {
    const hub = new Hub({ epoch: 'e', replayItems: 400 });
    const clients: { from: number; sink: ReturnType<typeof connect> }[] = [];
    for (let i = 1; i <= 300; i++) {
      void hub.publish(added(i));
      const from = Math.floor(i / 2);
      clients.push({
        from,
        sink: connect(hub, undefined, { start: coreOf(hub).start({ resourceVersion: `e.${from}` }) as Start }),
      });
      if (i % 5 === 0) await turn();
    }
    await hub.shutdown();
    for (const { from, sink } of clients) {
      expect(sink.versions).toEqual(Array.from({ length: 300 - from }, (_, i) => `e.${from + 1 + i}`));
    }
    expect(hub.stats().total).toMatchObject({ resumes: 300 });
  });

  test('replays only what the filter accepts, and counts no rejected event', async () => {
    const hub = await published(10);
    const filter = (event: { object: unknown }): boolean => (event.object as number) % 2 === 0;
    const start = coreOf(hub).start({ resourceVersion: 'e.3' }) as Start;
    const sink = connect(hub, undefined, { start, options: { filter } });
    await hub.publish(added(11));
    await hub.publish(added(12));
    await turn();
    expect(sink.objects).toEqual([4, 6, 8, 10, 12]);
    expect(sink.session.stats()).toMatchObject({ delivered: 5, dropped: 0, queued: 0, lag: 0, resumed: true });
  });

  test('reports an expired version to an EventSource whatever its filter accepts', async () => {
    const hub = await published(3);
    const filters = [() => false, (event: { object: unknown }): boolean => (event.object as { a: { b: boolean } }).a.b];
    for (const filter of filters) {
      const admitted = {
        asked: { resourceVersion: 'old.3', isBack: true },
        address: '',
        options: { filter },
      } as unknown as Admitted;
      const start = startOf(coreOf(hub), admitted, true) as Start;
      const sink = connect(hub, undefined, { start, options: { filter } });
      expect(sink.events).toMatchObject([{ type: 'ERROR', object: { code: 410 } }]);
      expect(sink.ended).toBeUndefined();
    }
  });

  test('an EventSource that is cut off anywhere has not got past its version without the ERROR', async () => {
    const hub = await published(3);
    const request = new Request('http://here/watch', { headers: { accept: 'text/event-stream', 'last-event-id': 'old.3' } });
    const reader = ((await createFetchHandler(hub)(request)).body as ReadableStream<Uint8Array>).getReader();
    let heard = '';
    while (!heard.includes('ERROR')) heard += new TextDecoder().decode((await reader.read()).value);
    await reader.cancel();
    for (let cut = 0; cut <= heard.length; cut++) {
      const messages: EventSourceMessage[] = [];
      createParser({ onEvent: (message) => messages.push(message) }).feed(heard.slice(0, cut));
      const moved = messages.some(({ id }) => id !== undefined);
      expect([cut, moved]).toEqual([cut, messages.some(({ data }) => data.includes('"ERROR"'))]);
    }
    expect(heard).toContain('id: e.3\ndata: {"type":"ERROR"');
  });

  test('a filter that throws, live or replayed, ends only its own client as failed', async () => {
    const hub = await published(3);
    const filter = (): boolean => {
      throw new Error('filter');
    };
    const start = coreOf(hub).start({ resourceVersion: 'e.1' }) as Start;
    const replayed = connect(hub, undefined, { start, options: { filter } });
    const live = connect(hub, undefined, { options: { filter } });
    const other = connect(hub);
    await hub.publish(added(4));
    await turn();
    expect([replayed.ended, live.ended, other.ended]).toEqual(['failed', 'failed', undefined]);
    expect([replayed.objects, live.objects, other.objects]).toMatchObject([[{ code: 500 }], [{ code: 500 }], [4]]);
    expect(hub.stats().total.cuts).toEqual({ failed: 2 });
  });
});
