// When a client reconnects, where it resumes, and how long it waits.
import { afterEach, describe, expect, test, vi } from 'vitest';
import { toBookmark } from '../../src/bridge/protocol.ts';
import { toStatus } from '../../src/watch/event.ts';
import { KINDS, settle } from './client-network.ts';
import type { Event as Sent } from './client-rig.ts';
import { at, error, event, open, range } from './client-rig.ts';

describe.each(KINDS)('connect over %s', (kind) => {
  test('delivers events in order, and reports its state', async () => {
    const { watch, network, states, read, accept, clock } = open(kind);
    expect(watch.state).toBe('connecting');
    expect(clock.pending).toBe(1);
    await accept(...range(1, 4));
    expect(network.link.url.searchParams.get('allowWatchBookmarks')).toBe('true');
    expect(network.link.url.searchParams.has('resourceVersion')).toBe(false);
    expect(watch.queued).toBe(3);
    expect(watch.resourceVersion).toBeUndefined();
    expect(watch.tryNext()).toEqual(event(1));
    expect(watch.resourceVersion).toBe(at(1));
    expect(await read()).toEqual([2, 3]);
    expect(watch.resourceVersion).toBe(at(3));
    expect(states).toEqual(['open']);
    await watch.return();
    expect(states).toEqual(['open', 'closed']);
  });

  test('until an event is read, the version is that where the watch began, also after return', async () => {
    const unread = open(kind, { resourceVersion: at(3) });
    await unread.accept(event(4));
    expect([unread.watch.queued, unread.watch.resourceVersion]).toEqual([1, at(3)]);
    await unread.watch.return();
    expect([unread.watch.dropped, unread.watch.resourceVersion]).toEqual([1, at(3)]);

    const idle = open(kind, { resourceVersion: at(3) });
    await idle.accept(toBookmark(at(9)) as Sent);
    await idle.watch.return();
    expect(idle.watch.resourceVersion).toBe(at(9));
    await idle.watch.return();
    expect(idle.watch.resourceVersion).toBe(at(9));
  });

  test('resumes after the last event received, not the last one read', async () => {
    const { network, clock, states, read, accept, watch } = open(kind);
    await accept(...range(1, 6));
    network.link.cut();
    await settle();
    expect(states).toEqual(['open', 'waiting']);
    clock.advance(500);
    await accept(...range(6, 8));
    expect(network.links).toHaveLength(2);
    expect(network.link.url.searchParams.get('resourceVersion')).toBe(at(5));
    expect(await read()).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(states).toEqual(['open', 'waiting', 'connecting', 'open']);
    await watch.return();
  });

  test('headers are read anew for each attempt, so that a getter can refresh a token', async () => {
    if (kind === 'browser') return; // its WebSocket takes none
    let token = 'old';
    const headers = {
      get authorization(): string {
        return token;
      },
    };
    const { network, clock, accept, watch } = open(kind, { headers });
    await accept(event(1));
    expect(network.link.headers.authorization).toBe('old');
    token = 'new';
    network.link.cut();
    await settle();
    clock.advance(500);
    await settle();
    expect(network.links).toHaveLength(2);
    expect(network.link.headers.authorization).toBe('new');
    await watch.return();
  });

  test('a connection that is cut before any event resumes from where a BOOKMARK vouched', async () => {
    const { network, clock, read, accept, watch } = open(kind);
    await accept(toBookmark(at(7)) as Sent);
    expect(await read()).toEqual([]);
    expect(watch.resourceVersion).toBe(at(7));
    network.link.cut();
    await settle();
    clock.advance(500);
    await settle();
    expect(network.link.url.searchParams.get('resourceVersion')).toBe(at(7));
    await watch.return();
  });

  test('without any version, a cut is one 410 and the end: nobody can tell what was missed', async () => {
    const { network, read, accept, expectOver } = open(kind);
    await accept({ type: 'ADDED', object: 'snapshot' });
    network.link.cut();
    expect(await read()).toEqual(['snapshot', 410]);
    await expectOver();
  });

  test('before the first connection it retries endlessly, each time after a longer delay', async () => {
    const { network, details, watch, backOff } = open(kind);
    for (let i = 0; i < 10; i++) {
      await settle();
      network.link.cut();
      await settle();
      backOff();
    }
    const waits = details.filter(({ delayMs }) => delayMs !== undefined).map(({ delayMs }) => delayMs);
    expect(waits).toEqual([500, 1_000, 2_000, 4_000, 5_000, 5_000, 5_000, 5_000, 5_000, 5_000]);
    await watch.return();
  });

  test('full jitter: the delay is a random part of that', async () => {
    const { network, details, watch } = open(kind, { random: () => 0.25, backoff: { minMs: 1_000 } });
    await settle();
    network.link.cut();
    await settle();
    expect(details[0]?.delayMs).toBe(250);
    await watch.return();
  });

  test('a new event resets the count of failures; a connection without one does not', async () => {
    const { network, details, accept, watch, backOff } = open(kind, { resourceVersion: at(1) });
    for (const events of [[], [], range(2, 3), [event(2)], []]) {
      await accept(...events);
      network.link.cut();
      await settle();
      backOff();
    }
    const waits = details.filter(({ delayMs }) => delayMs !== undefined).map(({ delayMs }) => delayMs);
    expect(waits).toEqual([500, 1_000, 500, 1_000, 2_000]);
    await watch.return();
  });

  test('a snapshot that breaks off every time is not a success, however much of it has arrived', async () => {
    const { network, details, accept, watch, backOff } = open(kind, { onExpired: 'restart' });
    const failed = { type: 'ERROR', object: toStatus({ code: 500, reason: 'InternalError', message: 'the snapshot failed' }) };
    for (let i = 0; i < 4; i++) {
      await accept({ type: 'ADDED', object: { a: 1 } }, failed);
      await settle();
      backOff();
    }
    const waits = details.filter(({ delayMs }) => delayMs !== undefined).map(({ delayMs }) => delayMs);
    expect(waits).toEqual([500, 1_000, 2_000, 4_000]);
    expect(network.links).toHaveLength(5);
    await watch.return();
  });

  test('a 410 is followed by a start over at once; 410 after 410 is not', async () => {
    const { network, clock, details, accept, read, watch } = open(kind, { resourceVersion: at(1), onExpired: 'restart' });
    await accept(error(410));
    expect(details.at(-1)?.delayMs).toBe(0);
    clock.advance(0);
    await settle();
    expect(network.links).toHaveLength(2);
    expect(network.link.url.searchParams.has('resourceVersion')).toBe(false);
    await accept(event(1, 'f'), error(410));
    expect(details.at(-1)?.delayMs).toBe(500);
    clock.advance(500);
    await accept(event(1, 'g'));
    clock.advance(5_000);
    network.link.send(error(410));
    expect(await read()).toEqual([410, 1, 410, 1, 410]);
    expect(details.at(-1)?.delayMs).toBe(0);
    await watch.return();
  });

  test('a connection that lasted long does not count as another failure', async () => {
    const { network, clock, details, accept, watch, backOff } = open(kind, { resourceVersion: at(1), idleTimeoutMs: 0 });
    for (const heldMs of [0, 4_999, 5_000]) {
      await accept();
      clock.advance(heldMs);
      network.link.cut();
      await settle();
      backOff();
    }
    const waits = details.filter(({ delayMs }) => delayMs !== undefined).map(({ delayMs }) => delayMs);
    expect(waits).toEqual([500, 1_000, 500]);
    await watch.return();
  });

  test('nor does one that the server ends with an ERROR that asks to reconnect', async () => {
    const { network, clock, details, accept, watch, backOff } = open(kind, { resourceVersion: at(1), idleTimeoutMs: 0 });
    for (const heldMs of [0, 4_999, 5_000]) {
      await accept();
      clock.advance(heldMs);
      network.link.send(error(503, { details: { retryAfterSeconds: 3 } }));
      await settle();
      backOff();
    }
    const waits = details.filter(({ delayMs }) => delayMs !== undefined).map(({ delayMs }) => delayMs);
    expect(waits).toEqual([3_500, 4_000, 3_500]);
    await watch.return();
  });

  test('a snapshot that fails before its first object is as good as a refusal: it tries again, and the reader sees nothing of it', async () => {
    const { network, details, accept, watch, read, backOff } = open(kind);
    const failed = error(500, { reason: 'ServerTimeout', details: { retryAfterSeconds: 1 } });
    for (const count of [1, 2]) {
      await accept();
      network.link.send(failed);
      await settle();
      expect([count, watch.state, details.at(-1)?.error?.code]).toEqual([count, 'waiting', 500]);
      backOff();
    }
    await accept(event(1));
    expect(await read()).toEqual([1]);
    await watch.return();
  });

  test.each([
    ['of a source', {}],
    ['of a stream that has stood', { details: { retryAfterSeconds: 1 } }],
  ])('but that %s is told: events may have been missed', async (_of, more) => {
    const { network, accept, read, expectOver } = open(kind);
    await accept();
    network.link.send(error(500, more));
    expect(await read()).toEqual([500]);
    await expectOver();
  });

  test('gives up after maxAttempts, with the last failure as its ERROR', async () => {
    const { network, read, expectOver, details, backOff } = open(kind, { maxAttempts: 2 });
    for (let i = 0; i < 3; i++) {
      await settle();
      network.link.cut();
      await settle();
      backOff();
    }
    expect(network.links).toHaveLength(3);
    expect(await read()).toEqual([503]);
    expect(details.at(-1)?.error?.code).toBe(503);
    await expectOver();
  });

  test('maxAttempts 0 never reconnects', async () => {
    const { network, read, accept, expectOver } = open(kind, { maxAttempts: 0 });
    await accept(...range(1, 3));
    network.link.cut();
    expect(await read()).toEqual([1, 2, 503]);
    await expectOver();
  });
});

describe.each(['http', 'sse'] as const)('in a page, over %s', (kind) => {
  afterEach(() => void vi.unstubAllGlobals());

  test('closes its connection when the page is left, in any state, and resumes when the page is restored', async () => {
    const page = new EventTarget();
    const leave = (): void => void page.dispatchEvent(new Event('pagehide'));
    vi.stubGlobal('addEventListener', page.addEventListener.bind(page));
    const { network, states, read, accept, backOff, watch, expectOver } = open(kind);
    await accept(...range(1, 3));
    leave();
    await settle();
    expect(network.link.closed).toBe(true);
    expect(states).toEqual(['open', 'waiting']);
    // Between two connections, and while one is being made.
    leave();
    backOff();
    await settle();
    expect(network.links).toHaveLength(2);
    leave();
    expect(network.link.closed).toBe(true);
    backOff();
    await accept(...range(3, 5));
    expect(network.links).toHaveLength(3);
    expect(network.link.url.searchParams.get('resourceVersion')).toBe(at(2));
    expect(await read()).toEqual([1, 2, 3, 4]);
    watch.stop();
    leave();
    await expectOver();
    expect(network.links).toHaveLength(3);
  });
});
