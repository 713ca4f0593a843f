// How a client handles what a server sends: versions, ERRORs, BOOKMARKs, and invalid frames.
import { describe, expect, test } from 'vitest';
import { connect } from '../../src/bridge/client.ts';
import { CLOSE_CODES, CLOSE_REASONS, toBookmark } from '../../src/bridge/protocol.ts';
import { FakeNetwork, KINDS, settle } from './client-network.ts';
import type { Event } from './client-rig.ts';
import { at, error, event, open, range } from './client-rig.ts';

describe.each(KINDS)('connect over %s', (kind) => {
  test('an expired version: the queued events, one ERROR 410 as it was sent, then the end', async () => {
    const { network, clock, watch, accept, expectOver } = open(kind);
    await accept(...range(1, 3));
    network.link.cut();
    await settle();
    clock.advance(500);
    const expired = error(410);
    if (kind === 'http') {
      await settle();
      network.link.refuse(410, JSON.stringify(expired.object));
    } else await accept(expired);
    await settle();
    expect([watch.tryNext(), watch.tryNext(), watch.tryNext()]).toEqual([event(1), event(2), expired]);
    expect(watch.resourceVersion).toBe(at(2));
    await expectOver();
  });

  test('onExpired restart: the ERROR in its place, then a new start without a version', async () => {
    const { network, clock, read, accept, watch } = open(kind, { onExpired: 'restart' });
    await accept(...range(1, 3));
    network.link.cut();
    await settle();
    clock.advance(500);
    await accept(error(410));
    expect(watch.state).toBe('waiting');
    clock.advance(1_000);
    await accept(event(1, 'f'), event(2, 'f'));
    expect(network.link.url.searchParams.has('resourceVersion')).toBe(false);
    expect(await read()).toEqual([1, 2, 410, 1, 2]);
    expect(watch.resourceVersion).toBe(at(2, 'f'));
    await watch.return();
  });

  test('after a cut for being too slow, it reconnects and gets what it missed', async () => {
    const { network, clock, read, accept, watch } = open(kind);
    await accept(...range(1, 3), error(410, { details: { missed: 7 } }));
    expect(watch.state).toBe('waiting');
    clock.advance(500);
    await accept(...range(3, 5));
    expect(network.link.url.searchParams.get('resourceVersion')).toBe(at(2));
    expect(await read()).toEqual([1, 2, 3, 4]);
    await watch.return();
  });

  test('an ERROR of the server for this client is the last event, and not a failure of the connection', async () => {
    const { read, accept, expectOver, network } = open(kind);
    await accept(event(1), error(403), event(2));
    expect(await read()).toEqual([1, 403]);
    await expectOver();
    expect(network.links).toHaveLength(1);
  });

  test('an ERROR with a retry hint leads to a reconnect', async () => {
    const { accept, watch, details } = open(kind, { resourceVersion: at(1) });
    await accept(error(500, { details: { retryAfterSeconds: 3 } }));
    expect(details.at(-1)?.delayMs).toBe(3_500);
    await watch.return();
  });

  test('an ERROR with a version is an event of the application, and says nothing about the connection', async () => {
    for (const code of [403, 410, 500]) {
      for (const end of ['cut', 'end'] as const) {
        const { accept, read, network, watch, clock } = open(kind);
        await accept(event(1), { ...error(code), resourceVersion: at(2) }, event(3));
        expect(await read()).toEqual([1, code, 3]);
        network.link.send({ ...error(code), resourceVersion: at(4) });
        await settle();
        if (end === 'cut') network.link.cut();
        else network.link.end(CLOSE_CODES.timeout, CLOSE_REASONS.timeout);
        expect(await read()).toEqual([code]);
        expect(watch.state).toBe('waiting');
        clock.advance(500);
        await settle();
        expect(network.link.url.searchParams.get('resourceVersion')).toBe(at(4));
        await watch.return();
      }
    }
  });

  test('within a folded batch, whose events have no versions, the version is that from before it', async () => {
    const folded = (object: unknown): Event => ({ type: 'MODIFIED', object });
    for (const begin of [event(1), toBookmark(at(1)) as Event]) {
      const { accept, watch, network, clock, read } = open(kind);
      await accept(begin, folded('a'), folded('b'), event(9));
      if (begin.type === 'ADDED') watch.tryNext();
      expect(watch.resourceVersion).toBe(at(1));
      expect(watch.tryNext()).toEqual(folded('a'));
      expect(watch.resourceVersion).toBe(at(1));
      expect(await read()).toEqual(['b', 9]);
      expect(watch.resourceVersion).toBe(at(9));
      network.link.send(folded('c'));
      expect(await read()).toEqual(['c']);
      expect(watch.resourceVersion).toBe(at(9));
      network.link.cut();
      await settle();
      clock.advance(500);
      await accept(event(10));
      expect(network.link.url.searchParams.get('resourceVersion')).toBe(at(9));
      expect(await read()).toEqual([10]);
      await watch.return();
    }
  });

  test('a loop that is left within a folded batch can be continued: the batch comes again', async () => {
    const { accept, watch } = open(kind);
    await accept(event(1), { type: 'MODIFIED', object: 'a' }, event(9));
    for await (const { object } of watch) if (object === 'a') break;
    expect([watch.state, watch.dropped, watch.resourceVersion]).toEqual(['closed', 1, at(1)]);
    const next = open(kind, { resourceVersion: watch.resourceVersion });
    await settle();
    expect(next.network.link.url.searchParams.get('resourceVersion')).toBe(at(1));
    await next.watch.return();
  });

  test('half a snapshot that was asked for in spite of a version is nothing to continue from', async () => {
    const { accept, watch, network, read, expectOver } = open(
      kind,
      { resourceVersion: at(1) },
      'http://h.example/watch?sendInitialEvents=true',
    );
    await accept({ type: 'ADDED', object: 'a' });
    expect(network.link.url.searchParams.get('sendInitialEvents')).toBe('true');
    expect(await read()).toEqual(['a']);
    expect(watch.resourceVersion).toBeUndefined();
    network.link.cut();
    expect(await read()).toEqual([410]);
    await expectOver();
  });

  test.each([at(2), at(0, 'other')])(
    'a snapshot of nothing is where it continues, though it is behind the version: at %s',
    async (begin) => {
      const url = 'http://h.example/watch?sendInitialEvents=true';
      const { accept, watch, read } = open(kind, { resourceVersion: at(9) }, url);
      const [epoch = '', sequence] = begin.split('.');
      await accept(toBookmark(begin, { initialEventsEnd: true }) as Event, event(Number(sequence) + 1, epoch));
      expect(await read()).toEqual([expect.anything(), Number(sequence) + 1]);
      expect(watch.resourceVersion).toBe(at(Number(sequence) + 1, epoch));
      await watch.return();
    },
  );

  test('once it has come, a folded batch behind it is continued from before the batch', async () => {
    const url = 'http://h.example/watch?sendInitialEvents=1';
    const { accept, watch, network, clock, read } = open(kind, { resourceVersion: at(1) }, url);
    await accept({ type: 'ADDED', object: 'a' }, toBookmark(at(4), { initialEventsEnd: true }) as Event, {
      type: 'MODIFIED',
      object: 'b',
    });
    expect(await read()).toHaveLength(3);
    network.link.cut();
    await settle();
    clock.advance(500);
    await settle();
    expect([watch.state, watch.resourceVersion]).toEqual(['connecting', at(4)]);
    expect(network.link.url.searchParams.get('resourceVersion')).toBe(at(4));
    expect(network.link.url.searchParams.has('sendInitialEvents')).toBe(false);
    await watch.return();
  });

  test('an ERROR other than 410 for this client is final, even with onExpired restart', async () => {
    const { accept, read, expectOver } = open(kind, { onExpired: 'restart' });
    await accept(event(1), error(403));
    expect(await read()).toEqual([1, 403]);
    await expectOver();
  });

  test('an event that resembles a BOOKMARK, or its version, is data', async () => {
    const { accept, read, watch } = open(kind);
    const object = { metadata: { resourceVersion: at(1) } };
    await accept(
      { type: 'ADDED', object, resourceVersion: at(1) },
      { type: 'BOOKMARK', object: 'no metadata', resourceVersion: at(2) },
      { type: 'BOOKMARK', object: {} },
    );
    expect(await read()).toEqual([object, 'no metadata', {}]);
    await watch.return();
  });

  test('a repeated event is delivered once', async () => {
    const { accept, read, watch } = open(kind, { resourceVersion: at(3) });
    await accept(...range(1, 6), ...range(4, 7));
    expect(await read()).toEqual([4, 5, 6]);
    await watch.return();
  });

  test('a server with another epoch cannot be resumed from: 410', async () => {
    const { accept, read, expectOver } = open(kind, { resourceVersion: at(3) });
    await accept(event(4), event(1, 'f'), event(5));
    expect(await read()).toEqual([4, 410]);
    await expectOver();
  });

  test('versions of another form are opaque: only an equal one is a repetition', async () => {
    const { accept, read, watch } = open(kind, { resourceVersion: 'abc' });
    const opaque = (resourceVersion: string): Event => ({ type: 'X', object: resourceVersion, resourceVersion });
    await accept(opaque('abc'), opaque('aaa'), opaque('7'), opaque('7'), opaque('__proto__'), opaque('3'));
    expect(await read()).toEqual(['aaa', '7', '__proto__', '3']);
    await watch.return();
  });

  test.each([
    ['not JSON', 'nonsense'],
    ['not an object', '7'],
    ['null', 'null'],
    ['no type', '{"object":1}'],
    ['an empty type', '{"type":"","object":1}'],
    ['no object', '{"type":"A"}'],
  ])('a frame that is %s: one ERROR and the end', async (_, text) => {
    const { accept, read, expectOver, network } = open(kind);
    const frame = kind === 'http' ? `${text}\n` : kind === 'sse' ? `data: ${text}\n\n` : text;
    await accept(event(1), frame, event(2));
    expect(await read()).toEqual([1, 422]);
    await expectOver();
    expect(network.links).toHaveLength(1);
  });

  test('a frame that is too long: one ERROR and the end', async () => {
    const { accept, read, expectOver } = open(kind, { maxFrameChars: 100 });
    await accept(event(1), { type: 'A', object: 'x'.repeat(100), resourceVersion: at(2) }, event(3));
    expect(await read()).toEqual([1, 422]);
    await expectOver();
  });

  test('a __proto__ in an event is data', async () => {
    const { accept, watch } = open(kind);
    const text = '{"type":"A","object":{"__proto__":{"polluted":true}},"__proto__":{"resourceVersion":"x.1"}}';
    await accept(kind === 'http' ? `${text}\n` : kind === 'sse' ? `data: ${text}\n\n` : text);
    const got = watch.tryNext();
    expect(Object.keys(got?.object as object)).toEqual(['__proto__']);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    expect(watch.resourceVersion).toBeUndefined();
    await watch.return();
  });

  test('an empty version is no version: the client resumes after the one before', async () => {
    const { network, accept, read, watch } = open(kind, { resourceVersion: at(1) });
    await accept({ ...event(2), resourceVersion: '' }, { ...error(410), resourceVersion: '' });
    network.link.cut();
    expect(await read()).toEqual([2, 410]);
    expect([watch.state, watch.resourceVersion]).toEqual(['waiting', at(1)]);
    await watch.return();
  });

  test('BOOKMARKs are hidden from the reader, except at the end of a snapshot, and unless the URL asks for them', async () => {
    const end = toBookmark(at(5), { initialEventsEnd: true }) as Event;
    const own: Event = { type: 'BOOKMARK', object: { metadata: { resourceVersion: '12' } }, resourceVersion: at(6) };
    const events = [{ type: 'ADDED', object: 1 }, end, own, toBookmark(at(9)) as Event];
    const quiet = open(kind);
    await quiet.accept(...events);
    expect(await quiet.read()).toEqual([1, end.object, own.object]);
    expect(quiet.watch.resourceVersion).toBe(at(9));
    await quiet.watch.return();
    const network = new FakeNetwork();
    const watch = connect<Event>('http://h/?allowWatchBookmarks=true', network.options(kind));
    await settle();
    network.link.accept();
    await settle();
    network.link.send(...events, toBookmark(at(9)) as Event);
    await settle();
    expect(watch.queued).toBe(5);
    await watch.return();
  });
});
