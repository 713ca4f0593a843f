// What happens to events that do not fit in the queue of a slow reader.
import { describe, expect, test } from 'vitest';
import type { ClientOverflow } from '../../src/bridge/client.ts';
import { toBookmark } from '../../src/bridge/protocol.ts';
import { isErrorEvent } from '../../src/watch/event.ts';
import { KINDS, settle } from './client-network.ts';
import type { Event } from './client-rig.ts';
import { at, event, open, range } from './client-rig.ts';

/** Every policy of a client that drops events, and what its reader gets. */
const DROPS: Readonly<
  Record<Exclude<ClientOverflow, 'wait' | 'disconnect'>, Record<'kept' | 'gaps' | 'aroundError', unknown[]>>
> = {
  'drop-newest': { kept: [1, 2, 3, 8], gaps: [[4, 8]], aroundError: [1, 410, 'gap 1', 3] },
  'drop-oldest': { kept: [5, 6, 7, 8], gaps: [[4, 5]], aroundError: ['gap 1', 410, 'gap 1', 2] },
};
const DROPPING = Object.entries(DROPS) as [keyof typeof DROPS, (typeof DROPS)[keyof typeof DROPS]][];

describe.each(KINDS)('connect over %s', (kind) => {
  test('wait: a full queue pauses or closes the connection, and nothing is lost', async () => {
    const { watch, accept, network, states } = open(kind, { capacity: 4 });
    await accept(...range(1, 11));
    expect(watch.queued).toBe(4);
    const got: unknown[] = [];
    while (got.length < 10) {
      const each = watch.tryNext();
      if (each !== undefined) got.push(each.object);
      await settle();
      if (watch.state === 'connecting') {
        const from = Number(network.link.url.searchParams.get('resourceVersion')?.slice(2));
        await accept(...range(from + 1, 11));
      }
      expect(watch.queued).toBeLessThanOrEqual(4);
    }
    expect(got).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(watch.dropped).toBe(0);
    expect(network.links.length > 1).toBe(kind === 'browser');
    expect(states.includes('waiting')).toBe(kind === 'browser');
    await watch.return();
  });

  test('wait: continues as soon as there is room, or, if the connection was closed, once half of the queue is free', async () => {
    const { watch, accept, network, clock } = open(kind, { capacity: 4, idleTimeoutMs: 1_000 });
    await accept(...range(1, 5));
    const states: string[] = [];
    for (let i = 0; i < 4; i++) {
      watch.tryNext();
      await settle();
      states.push(watch.state);
    }
    const closed = ['waiting', 'connecting', 'connecting', 'connecting'];
    expect(states).toEqual(kind === 'browser' ? closed : Array(4).fill('open'));
    // And from then on it is the server again that is waited for.
    if (kind === 'browser') await accept();
    clock.advance(999);
    expect(watch.state).toBe('open');
    clock.advance(1);
    expect(watch.state).toBe('waiting');
    expect(network.link.closed).toBe(true);
    await watch.return();
  });

  test('wait: stays paused while there is no room by characters, however many events have been read', async () => {
    if (kind !== 'ws') return; // the others hold it back without a word
    const { watch, accept, network } = open(kind, { maxBufferedBytes: 200 });
    await accept(event(1), { ...event(2), object: 'x'.repeat(300) });
    expect(network.link.paused).toBe(true);
    watch.tryNext();
    expect(network.link.paused).toBe(true);
    watch.tryNext();
    expect(network.link.paused).toBe(false);
    await watch.return();
  });

  test('wait is also bounded in characters', async () => {
    const { watch, accept } = open(kind, { maxBufferedBytes: 150 });
    await accept(...range(1, 100));
    expect(watch.queued).toBeLessThan(6);
    await watch.return();
  });

  test('wait, without a version: cannot resume, so the connection stays; ends in one 410 beyond maxBufferedBytes', async () => {
    const { watch, accept, network, read, expectOver } = open(kind, { capacity: 2, maxBufferedBytes: 500 });
    const nameless = (object: unknown): Event => ({ type: 'ADDED', object });
    await accept(nameless(1), nameless(2), nameless(3));
    expect([watch.state, watch.queued]).toEqual(['open', kind === 'browser' ? 3 : 2]);
    network.link.send(nameless('x'.repeat(500)), nameless(5));
    await settle();
    if (kind === 'browser') {
      expect(await read()).toEqual([1, 2, 3, 'x'.repeat(500), 410]);
      await expectOver();
    } else {
      expect(await read()).toEqual([1, 2, 3, 'x'.repeat(500), 5]);
      expect(network.links).toHaveLength(1);
      await watch.return();
    }
  });

  test('drop-newest keeps the first events, drop-oldest the last; both count losses, and report where they are', async () => {
    for (const [overflow, { kept, gaps }] of DROPPING) {
      const seen: unknown[] = [];
      const told: unknown[][] = [];
      const { watch, accept, network } = open(kind, { capacity: 3, overflow, onGap: (missed) => told.push([missed]) });
      await accept(...range(1, 8));
      expect(watch.dropped).toBe(4);
      const first = watch.tryNext();
      seen.push(first?.object);
      told[0]?.push(first?.object);
      network.link.send(event(8));
      await settle();
      for (let each = watch.tryNext(); each !== undefined; each = watch.tryNext()) {
        seen.push(each.object);
        if (told[0]?.length === 1) told[0].push(each.object);
      }
      expect(seen).toEqual(kept);
      expect(told).toEqual(gaps);
      expect(watch.dropped).toBe(4);
      await watch.return();
    }
  });

  test('a gap is counted without an onGap', async () => {
    const { watch, accept, read } = open(kind, { capacity: 2, overflow: 'drop-oldest' });
    await accept(...range(1, 6));
    expect(await read()).toEqual([4, 5]);
    expect([watch.state, watch.dropped]).toEqual(['open', 3]);
    await watch.return();
  });

  test('what is lost after an ERROR is reported after it, not before it', async () => {
    for (const [overflow, { aroundError }] of DROPPING) {
      const got: unknown[] = [];
      const { watch, accept, network, clock } = open(kind, {
        ...{ capacity: 1, overflow, onExpired: 'restart' },
        onGap: (missed) => got.push(`gap ${missed}`),
      });
      const readAll = (): void => {
        for (let each = watch.tryNext(); each; each = watch.tryNext())
          got.push(isErrorEvent(each) ? each.object.code : each.object);
      };
      await accept(event(1), event(1, 'f'));
      expect(watch.state).toBe('waiting');
      clock.advance(500);
      await accept(...(overflow === 'drop-oldest' ? [event(1, 'f'), event(2, 'f')] : [event(2, 'f')]));
      readAll();
      network.link.send(event(3, 'f'));
      await settle();
      if (overflow === 'drop-newest') readAll();
      expect(got).toEqual(aroundError);
      await watch.return();
    }
  });

  test('wait: while the queue is full, a connection that ended is made again only when there is room', async () => {
    if (kind === 'ws') return; // what a paused one has is read before its end
    const { watch, accept, network, clock, read } = open(kind, { capacity: 2, maxBufferedBytes: 200, onExpired: 'restart' });
    // A browser's WebSocket is closed anyway, unless it has no version. Then the client gives up beyond maxBufferedBytes.
    await accept(...(kind === 'browser' ? [{ type: 'ADDED', object: 'x'.repeat(200) }] : range(1, 3)));
    network.link.end();
    await settle();
    clock.advance(600_000);
    expect([network.links.length, watch.state, watch.queued, clock.pending]).toEqual([1, 'waiting', 2, 0]);
    expect(await read()).toHaveLength(2);
    expect([network.links.length, watch.state]).toEqual([2, 'connecting']);
    await watch.return();
    expect(clock.pending).toBe(0);
  });

  test('disconnect: the queued events, one ERROR 410, the end; and the version to resume after', async () => {
    const { watch, accept, read, expectOver } = open(kind, { capacity: 2, overflow: 'disconnect' });
    await accept(...range(1, 6));
    expect(watch.stopped).toBe(true);
    expect(await read()).toEqual([1, 2, 410]);
    expect(watch.resourceVersion).toBe(at(2));
    expect(watch.dropped).toBe(1);
    await expectOver();
  });

  test('disconnect: a BOOKMARK cuts only if the reader sees it, like the one that ends a snapshot', async () => {
    const hidden = open(kind, { capacity: 1, overflow: 'disconnect' });
    await hidden.accept(event(1), toBookmark(at(2)));
    expect([hidden.watch.state, hidden.watch.queued]).toEqual(['open', 1]);
    await hidden.watch.return();

    const shown = open(kind, { capacity: 1, overflow: 'disconnect' });
    await shown.accept(event(1), toBookmark(at(2), { initialEventsEnd: true }));
    expect(await shown.read()).toEqual([1, 410]);
    expect([shown.watch.resourceVersion, shown.watch.dropped]).toEqual([at(1), 1]);
    await shown.expectOver();
  });
});
