// What a client does when its network comes or goes, when its page is shown, and when it is told to reconnect.
import { afterEach, describe, expect, test, vi } from 'vitest';
import { CLOSE_CODES, toBookmark, toRetryReason } from '../../src/bridge/protocol.ts';
import { KINDS, settle } from './client-network.ts';
import type { Event as Sent } from './client-rig.ts';
import { at, event, open } from './client-rig.ts';

/** A page with a network, which may be hidden. */
function stubPage(): { tell(type: string): void; visibilityState: string; readonly listeners: number } {
  const page = new EventTarget();
  const signals: AbortSignal[] = [];
  const document = {
    visibilityState: 'visible',
    baseURI: 'http://h.example/',
    tell: (type: string): void => void page.dispatchEvent(new Event(type)),
    get listeners(): number {
      return signals.filter(({ aborted }) => !aborted).length;
    },
  };
  vi.stubGlobal('addEventListener', (...asked: [string, EventListener, { signal: AbortSignal }]) => {
    signals.push(asked[2].signal);
    page.addEventListener(...asked);
  });
  vi.stubGlobal('document', document);
  return document;
}

afterEach(() => void vi.unstubAllGlobals());

describe.each(KINDS)('connect over %s', (kind) => {
  test('tells when the server was heard last', async () => {
    const { watch, clock, accept, network, backOff } = open(kind, { resourceVersion: at(1) });
    clock.advance(1_000);
    expect(watch.lastContactMs).toBeUndefined();
    await accept();
    expect(watch.lastContactMs).toBe(1_000);
    clock.advance(500);
    network.link.send(toBookmark(at(1)) as Sent);
    await settle();
    clock.advance(700);
    expect(watch.lastContactMs).toBe(1_500);
    network.link.cut();
    await settle();
    backOff();
    expect(watch.lastContactMs).toBe(1_500);
    await watch.return();
    expect(watch.lastContactMs).toBe(1_500);
  });

  test('reconnect connects at once, in every state but closed, and resumes; that is no error, and no failure', async () => {
    const { watch, network, accept, states, details, read, clock } = open(kind, { maxAttempts: 0, resourceVersion: at(1) });
    await settle();
    watch.reconnect();
    await settle();
    expect(network.links.map(({ closed }) => closed)).toEqual([true, false]);
    await accept(event(2));
    expect(network.link.url.searchParams.get('resourceVersion')).toBe(at(1));
    watch.reconnect();
    await settle();
    expect(network.links.map(({ closed }) => closed)).toEqual([true, true, false]);
    expect(network.link.url.searchParams.get('resourceVersion')).toBe(at(2));
    await accept(event(3));
    expect(await read()).toEqual([2, 3]);
    expect(states.slice(-2)).toEqual(['connecting', 'open']);
    expect(details.every(({ error }) => error === undefined)).toBe(true);
    await watch.return();
    watch.reconnect();
    expect([watch.state, network.links.length, clock.pending]).toEqual(['closed', 3, 0]);
  });

  test('reconnect does not wait for the next attempt', async () => {
    const { watch, network, accept, read } = open(kind);
    await accept(event(1));
    network.link.cut();
    await settle();
    expect(watch.state).toBe('waiting');
    watch.reconnect();
    expect(watch.state).toBe('connecting');
    await accept(event(2));
    expect(await read()).toEqual([1, 2]);
    expect(network.links).toHaveLength(2);
    await watch.return();
  });

  test('reconnect without a version to continue from is a 410, as after any other loss', async () => {
    const { watch, accept, read, expectOver } = open(kind);
    await accept({ type: 'ADDED', object: 1 });
    watch.reconnect();
    expect(await read()).toEqual([1, 410]);
    await expectOver();
  });

  test('reconnect does not ask for more while the queue is full', async () => {
    const { watch, accept, network, read } = open(kind, { capacity: 1 });
    await accept(event(1));
    watch.reconnect();
    await settle();
    expect([watch.state, network.link.closed]).toEqual(['waiting', true]);
    watch.reconnect();
    expect([watch.state, network.links.length]).toEqual(['waiting', 1]);
    expect(await read()).toEqual([1]);
    expect([watch.state, network.links.length]).toEqual(['connecting', 2]);
    await watch.return();
  });

  test('a planned end is no error: the server has said when to come back', async () => {
    const { watch, accept, network, details, backOff } = open(kind);
    await accept(event(1), toBookmark(at(1), { retryAfterMs: 0 }) as Sent);
    network.link.end(CLOSE_CODES.goingAway, toRetryReason(0));
    await settle();
    expect([watch.state, details.at(-1)]).toEqual(['waiting', { error: undefined, delayMs: 500 }]);
    backOff();
    await accept(event(2));
    network.link.cut();
    await settle();
    expect(details.at(-1)?.error?.code).toBe(503);
    await watch.return();
  });

  describe('in a page', () => {
    test('makes a new connection when the network has come or gone: the old one would be silent for minutes', async () => {
      const page = stubPage();
      const { watch, accept, network, read, backOff } = open(kind);
      await accept(event(1));
      page.tell('offline');
      await settle();
      expect([watch.state, network.links.length]).toEqual(['connecting', 2]);
      network.link.cut();
      await settle();
      expect(watch.state).toBe('waiting');
      page.tell('online');
      expect(watch.state).toBe('connecting');
      await accept(event(2));
      expect(network.link.url.searchParams.get('resourceVersion')).toBe(at(1));
      expect(await read()).toEqual([1, 2]);
      expect(page.listeners).toBeGreaterThanOrEqual(3);
      watch.stop();
      page.tell('online');
      backOff();
      await settle();
      expect([network.links.length, page.listeners]).toEqual([3, 0]);
    });

    test('keeps a connection that could not be continued', async () => {
      const page = stubPage();
      const { watch, accept, network } = open(kind);
      await accept({ type: 'ADDED', object: 1 });
      page.tell('offline');
      page.tell('visibilitychange');
      await settle();
      expect([watch.state, network.links.length]).toEqual(['open', 1]);
      await watch.return();
    });

    test('is shown: does not wait any longer, and renews a connection that has been silent for too long', async () => {
      const page = stubPage();
      const { watch, accept, network, clock } = open(kind);
      await accept(event(1), toBookmark(at(1)) as Sent);
      clock.advance(30_000);
      page.visibilityState = 'hidden';
      network.link.send(event(2));
      await settle();
      clock.advance(59_999);
      page.visibilityState = 'visible';
      page.tell('visibilitychange');
      expect(network.links).toHaveLength(1);
      page.visibilityState = 'hidden';
      clock.advance(1);
      page.tell('visibilitychange');
      expect(network.links).toHaveLength(1);
      page.visibilityState = 'visible';
      page.tell('visibilitychange');
      await settle();
      expect([watch.state, network.links.length]).toEqual(['connecting', 2]);
      network.link.cut();
      await settle();
      expect(watch.state).toBe('waiting');
      page.tell('visibilitychange');
      expect(watch.state).toBe('connecting');
      await watch.return();
    });

    test('while it is shown, asks again after two intervals of silence', async () => {
      stubPage();
      const { watch, accept, network, clock, details, read } = open(kind);
      await accept(event(1), toBookmark(at(1), { intervalMs: 10_000 }) as Sent);
      clock.advance(19_999);
      expect(network.links).toHaveLength(1);
      clock.advance(1);
      await settle();
      expect([watch.state, network.links.length]).toEqual(['connecting', 2]);
      expect(details.every(({ error }) => error === undefined)).toBe(true);
      // There is no answer.
      clock.advance(10_000);
      expect([watch.state, details.at(-1)?.error?.code]).toEqual(['waiting', 503]);
      clock.advance(500);
      await accept(event(2));
      expect(await read()).toEqual([1, 2]);
      await watch.return();
      const own = open(kind, { idleTimeoutMs: 50_000 });
      await own.accept(event(1));
      own.clock.advance(49_999);
      expect(own.watch.state).toBe('open');
      await own.watch.return();
    });
  });
});
