// When a client declares a connection dead, and how long it waits for a departing server: what BOOKMARKs tell of both.
import { describe, expect, test } from 'vitest';
import { CLOSE_CODES, DEFAULTS, toBookmark, toRetryReason } from '../../src/bridge/protocol.ts';
import { KINDS, settle } from './client-network.ts';
import type { Event as Sent } from './client-rig.ts';
import { at, error, event, open, range } from './client-rig.ts';

type Rig = Pick<ReturnType<typeof open>, 'clock' | 'watch'>;

/** The connection counts as lost after this long without a sign of life, and not before. */
function expectLostAfter(idleMs: number, { clock, watch }: Rig): void {
  clock.advance(idleMs - 1);
  expect(watch.state).toBe('open');
  clock.advance(1);
  expect(watch.state).toBe('waiting');
}

describe.each(KINDS)('connect over %s', (kind) => {
  test('no response within connectTimeoutMs is a failure like any other', async () => {
    const { clock, watch, network, details } = open(kind, { connectTimeoutMs: 1_000 });
    await settle();
    clock.advance(999);
    expect(watch.state).toBe('connecting');
    clock.advance(1);
    expect(watch.state).toBe('waiting');
    expect(network.link.closed).toBe(true);
    expect(details.at(-1)?.error?.message).toContain('1000 ms');
    await watch.return();
    expect(clock.pending).toBe(0);
  });

  test('an idle connection is lost, once the server has sent signs of life', async () => {
    const { clock, watch, accept, network } = open(kind, { resourceVersion: at(1) });
    await accept(event(2));
    clock.advance(1_000_000);
    expect(watch.state).toBe('open');
    network.link.send(toBookmark(at(2)) as Sent);
    await settle();
    clock.advance(149_999);
    expect(watch.state).toBe('open');
    network.link.send(event(3));
    await settle();
    expectLostAfter(150_000, { clock, watch });
    expect(network.link.closed).toBe(true);
    await watch.return();
  });

  test('a later connection does not have to show it again: the network may be lost in its first seconds', async () => {
    const { clock, watch, accept, network, backOff } = open(kind, { resourceVersion: at(1) });
    await accept(toBookmark(at(1)) as Sent);
    network.link.cut();
    await settle();
    backOff();
    await accept();
    expect(watch.state).toBe('open');
    expectLostAfter(150_000, { clock, watch });
    expect(network.link.closed).toBe(true);
    await watch.return();
  });

  test('an explicit idleTimeoutMs applies at once; 0 never', async () => {
    const own = open(kind, { resourceVersion: at(1), idleTimeoutMs: 1_000 });
    await own.accept();
    own.clock.advance(1_000);
    expect(own.watch.state).toBe('waiting');
    await own.watch.return();
    const never = open(kind, { resourceVersion: at(1), idleTimeoutMs: 0 });
    await never.accept(toBookmark(at(1)) as Sent);
    never.clock.advance(10_000_000);
    expect(never.watch.state).toBe('open');
    await never.watch.return();
  });

  describe('the idle timeout is five times the interval that the server tells', () => {
    /** Declared lost after this long without a sign of life. */
    const expectIdle = async (sent: readonly Sent[], idleMs: number): Promise<void> => {
      const { clock, watch, accept } = open(kind, { resourceVersion: at(1) });
      await accept(...sent);
      expectLostAfter(idleMs, { clock, watch });
      await watch.return();
      expect(clock.pending).toBe(0);
    };
    const withInterval = (interval: unknown): Sent => {
      const mark = toBookmark(at(1)) as Sent & { object: object };
      const annotations = { 'watchmux/bookmark-interval-ms': interval };
      return { ...mark, object: { metadata: { resourceVersion: at(1), annotations } } };
    };

    test.each([
      ['that of a hub with a long one', 300_000, 1_500_000],
      ['that of a hub with a short one', 10_000, 50_000],
      ['the default', DEFAULTS.bookmarkIntervalMs, 150_000],
      ['too short for any network', 1, 15_000],
      ['longer than a day', 999_999_999_999_999, 5 * 86_400_000],
    ])('%s', async (_, intervalMs, idleMs) => {
      await expectIdle([toBookmark(at(1), { intervalMs }) as Sent], idleMs);
    });

    test('rubbish is none', async () => {
      for (const rubbish of ['-1', '1e9', '', '0x99', ' 300000', '9'.repeat(16), 300_000, null, {}, ['300000']])
        await expectIdle([withInterval(rubbish)], 150_000);
    });

    test('the last BOOKMARK counts: after an upgrade, the server may have another one', async () => {
      const long = toBookmark(at(1), { intervalMs: 300_000 }) as Sent;
      await expectIdle([long, toBookmark(at(2), { intervalMs: 60_000 }) as Sent], 300_000);
      await expectIdle([long, event(2), toBookmark(at(2)) as Sent], 150_000);
    });

    test('a comment, which only SSE has, does not change it', async () => {
      if (kind !== 'sse') return;
      const { clock, watch, accept } = open(kind, { resourceVersion: at(1) });
      await accept(toBookmark(at(1), { intervalMs: 300_000 }) as Sent, ': hello\n\n');
      clock.advance(1_499_999);
      expect(watch.state).toBe('open');
      await watch.return();
    });

    test('it outlasts a connection, and an own idleTimeoutMs takes precedence', async () => {
      for (const [own, idleMs] of [
        [undefined, 1_500_000],
        [7_000, 7_000],
      ] as const) {
        const { clock, watch, accept, network, backOff } = open(kind, { resourceVersion: at(1), idleTimeoutMs: own });
        await accept(toBookmark(at(1), { intervalMs: 300_000 }) as Sent);
        network.link.cut();
        await settle();
        backOff();
        await accept();
        clock.advance(idleMs - 1);
        expect(watch.state).toBe('open');
        clock.advance(1);
        expect(watch.state).toBe('waiting');
        await watch.return();
      }
    });

    test('the BOOKMARK that ends a snapshot is no sign of life for a client that has asked for no others', async () => {
      const { clock, watch, accept, network } = open(kind, { bookmarks: false });
      await accept({ type: 'ADDED', object: 1 }, toBookmark(at(1), { initialEventsEnd: true }) as Sent);
      clock.advance(1_000_000);
      expect([watch.state, network.links.length, clock.pending]).toEqual(['open', 1, 0]);
      await watch.return();
    });
  });

  test.each([
    ['an age', undefined, 500],
    ['a departure', 10_000, 10_500],
  ])('after an ERROR of the application, the planned end for %s is no end of the watch', async (_, retryAfterMs, delayMs) => {
    const { watch, network, accept, read, details, backOff } = open(kind);
    const bookmark = toBookmark(at(2), { retryAfterMs }) as Sent;
    await accept(event(1), { ...error(410), resourceVersion: at(2) }, bookmark);
    network.link.end(CLOSE_CODES.goingAway, toRetryReason(retryAfterMs ?? 0));
    expect(await read()).toEqual([1, 410]);
    expect([watch.state, details.at(-1)?.delayMs]).toEqual(['waiting', delayMs]);
    backOff();
    await accept(event(3));
    expect(await read()).toEqual([3]);
    await watch.return();
  });

  describe('a BOOKMARK that says when to reconnect', () => {
    const lastBookmark = (version: string): Sent => toBookmark(version, { retryAfterMs: 10_000 }) as Sent;

    test('counts when the connection is lost, on top of it the own delay', async () => {
      const { watch, network, accept, read, details, backOff } = open(kind);
      await accept(event(1), lastBookmark(at(1)));
      network.link.cut();
      await settle();
      expect([watch.state, details.at(-1)?.delayMs]).toEqual(['waiting', 10_500]);
      expect(await read()).toEqual([1]);
      // It was for that connection only.
      backOff();
      await accept(event(2));
      network.link.cut();
      await settle();
      expect(details.at(-1)?.delayMs).toBe(500);
      await watch.return();
    });

    test('is limited, like every hint', async () => {
      const { watch, network, accept, details } = open(kind);
      await accept(toBookmark(at(1), { retryAfterMs: 1e12 }) as Sent);
      network.link.cut();
      await settle();
      expect(details.at(-1)?.delayMs).toBe(300_500);
      await watch.return();
    });

    test('is withdrawn by one that does not: the server has stayed', async () => {
      const { watch, network, accept, details } = open(kind);
      await accept(lastBookmark(at(1)), toBookmark(at(1)) as Sent);
      network.link.cut();
      await settle();
      expect(details.at(-1)?.delayMs).toBe(500);
      await watch.return();
    });

    test('makes a regular end of the response a lost connection: not every host can break one off visibly', async () => {
      if (kind === 'browser' || kind === 'ws') return; // their close codes tell
      const { watch, network, accept, details } = open(kind, { reconnectOnEnd: false });
      await accept(lastBookmark(at(1)));
      network.link.end();
      await settle();
      expect([watch.state, details.at(-1)?.delayMs]).toEqual(['waiting', 10_500]);
      await watch.return();
    });
  });

  test('an idle timeout does not run while the client waits for its reader', async () => {
    if (kind === 'browser') return; // it has no connection then
    const { watch, accept, clock } = open(kind, { capacity: 1, idleTimeoutMs: 1_000 });
    await accept(...range(1, 4));
    clock.advance(100_000);
    expect(watch.state).toBe('open');
    expect(clock.pending).toBe(0);
    watch.tryNext();
    await settle();
    expect(watch.queued).toBe(1);
    await watch.return();
  });

  test('nor does it when data that was already on its way arrives after a pause', async () => {
    if (kind !== 'ws') return; // the others hold it back
    const { watch, network, accept, clock } = open(kind, { capacity: 1, idleTimeoutMs: 1_000 });
    await accept(event(1));
    const { onmessage } = network.link as { onmessage?: ((event: object) => void) | null };
    onmessage?.({ data: JSON.stringify(toBookmark(at(1))) });
    expect(clock.pending).toBe(0);
    clock.advance(100_000);
    expect(watch.state).toBe('open');
    expect(network.links).toHaveLength(1);
    await watch.return();
  });
});
