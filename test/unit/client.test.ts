import { afterEach, describe, expect, test, vi } from 'vitest';
import type { ClientState, ConnectOptions, StateDetail } from '../../src/bridge/client.ts';
import { connect } from '../../src/bridge/client.ts';
import type { WireEvent } from '../../src/bridge/protocol.ts';
import { CLOSE_CODES, CLOSE_REASONS, DEFAULTS, toBookmark, toRetryReason } from '../../src/bridge/protocol.ts';
import { WATCH_CONTRACT } from '../../src/testing/contract.ts';
import { FakeClock } from '../../src/testing/fake-clock.ts';
import { ListenerCount } from '../../src/testing/listener-count.ts';
import type { Status } from '../../src/watch/event.ts';
import { isErrorEvent, toStatus } from '../../src/watch/event.ts';
import type { Kind } from './client-network.ts';
import { FakeNetwork, KINDS, settle } from './client-network.ts';
import { fate, thrown } from './support.ts';

type Event = WireEvent<string, unknown>;
const at = (sequence: number, epoch = 'e'): string => `${epoch}.${sequence}`;
const event = (sequence: number, epoch = 'e'): Event => ({
  type: 'ADDED',
  object: sequence,
  resourceVersion: at(sequence, epoch),
});
const range = (from: number, to: number): Event[] => Array.from({ length: to - from }, (_, i) => event(from + i));
const status = (code: number, more: Partial<Status> = {}): Status => ({
  ...toStatus({ code, reason: 'Because', message: `said ${code}` }),
  ...more,
});
const error = (code: number, more: Partial<Status> = {}): Event => ({ type: 'ERROR', object: status(code, more) });

function open(kind: Kind, options: ConnectOptions<Event> = {}) {
  const clock = new FakeClock();
  const network = new FakeNetwork();
  const states: ClientState[] = [];
  const details: StateDetail[] = [];
  const watch = connect<Event>('http://h.example/watch', {
    ...network.options(kind),
    clock,
    random: () => 1,
    onStateChange: (state, detail) => {
      states.push(state);
      details.push(detail);
    },
    ...options,
  });
  /** All that can be read now; of an ERROR, its code. */
  const read = async (): Promise<unknown[]> => {
    await settle();
    const got: unknown[] = [];
    for (let each = watch.tryNext(); each !== undefined; each = watch.tryNext()) {
      got.push(isErrorEvent(each) ? each.object.code : each.object);
      await settle();
    }
    return got;
  };
  const accept = async (...events: (Event | string)[]): Promise<void> => {
    await settle();
    network.link.accept();
    await settle();
    network.link.send(...events);
    await settle();
  };
  /** Until the next attempt. */
  const backOff = (): void => clock.advance(details.at(-1)?.delayMs ?? 0);
  const expectOver = async (): Promise<void> => {
    await settle();
    expect(await watch.next()).toEqual({ done: true, value: undefined });
    expect(watch.state).toBe('closed');
    expect(clock.pending).toBe(0);
    expect(network.links.every(({ closed }) => closed)).toBe(true);
  };
  return { clock, network, states, details, watch, read, accept, backOff, expectOver };
}

describe.each(KINDS)('connect over %s', (kind) => {
  test('hands out what comes, in order, and tells its state', async () => {
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

  test('goes on after the last event that came, not the last that was read', async () => {
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

  test('a connection that is cut before anything came is made again from where a BOOKMARK vouched', async () => {
    const { network, clock, read, accept, watch } = open(kind);
    await accept(toBookmark(at(7)) as Event);
    expect(await read()).toEqual([]);
    expect(watch.resourceVersion).toBe(at(7));
    network.link.cut();
    await settle();
    clock.advance(500);
    await settle();
    expect(network.link.url.searchParams.get('resourceVersion')).toBe(at(7));
    await watch.return();
  });

  test('without any version a cut is one 410 and the end: nobody can tell what was missed', async () => {
    const { network, read, accept, expectOver } = open(kind);
    await accept({ type: 'ADDED', object: 'snapshot' });
    network.link.cut();
    expect(await read()).toEqual(['snapshot', 410]);
    await expectOver();
  });

  test('before it was ever open, it tries again without end, each time after a longer wait', async () => {
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

  test('full jitter: the wait is a random part of that', async () => {
    const { network, details, watch } = open(kind, { random: () => 0.25, backoff: { minMs: 1_000 } });
    await settle();
    network.link.cut();
    await settle();
    expect(details[0]?.delayMs).toBe(250);
    await watch.return();
  });

  test('what brings something new begins a new row of failures; what brings nothing does not', async () => {
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

  test('a snapshot that always breaks off is no success, however much of it has come', async () => {
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

  test('a connection that held long is no failure in a row', async () => {
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

  test('nor is it when the server ends it with an ERROR that asks us to come back', async () => {
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

  test('maxAttempts 0 never comes back', async () => {
    const { network, read, accept, expectOver } = open(kind, { maxAttempts: 0 });
    await accept(...range(1, 3));
    network.link.cut();
    expect(await read()).toEqual([1, 2, 503]);
    await expectOver();
  });

  test('a version too old: what was queued, one ERROR 410 as it came, the end', async () => {
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

  test('onExpired restart: the ERROR in its place, then a fresh start without a version', async () => {
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

  test('cut because it was too slow, it comes back for what it missed', async () => {
    const { network, clock, read, accept, watch } = open(kind);
    await accept(...range(1, 3), error(410, { details: { missed: 7 } }));
    expect(watch.state).toBe('waiting');
    clock.advance(500);
    await accept(...range(3, 5));
    expect(network.link.url.searchParams.get('resourceVersion')).toBe(at(2));
    expect(await read()).toEqual([1, 2, 3, 4]);
    await watch.return();
  });

  test('an ERROR of the server for this client is the last event, and no failure of the connection', async () => {
    const { read, accept, expectOver, network } = open(kind);
    await accept(event(1), error(403), event(2));
    expect(await read()).toEqual([1, 403]);
    await expectOver();
    expect(network.links).toHaveLength(1);
  });

  test('an ERROR with a hint is a reason to come back', async () => {
    const { accept, watch, details } = open(kind, { resourceVersion: at(1) });
    await accept(error(500, { details: { retryAfterSeconds: 3 } }));
    expect(details.at(-1)?.delayMs).toBe(3_500);
    await watch.return();
  });

  test('an ERROR with a place in the stream is data, and an end in order behind it is the end', async () => {
    const { accept, read, network, expectOver } = open(kind);
    await accept(event(1), { ...error(500), resourceVersion: at(2) }, event(3));
    expect(await read()).toEqual([1, 500, 3]);
    network.link.send({ ...error(500), resourceVersion: at(4) });
    await settle();
    network.link.end();
    expect(await read()).toEqual([500]);
    await expectOver();
  });

  test('what comes twice is handed out once', async () => {
    const { accept, read, watch } = open(kind, { resourceVersion: at(3) });
    await accept(...range(1, 6), ...range(4, 7));
    expect(await read()).toEqual([4, 5, 6]);
    await watch.return();
  });

  test('a server that goes on in another epoch is none to go on with: 410', async () => {
    const { accept, read, expectOver } = open(kind, { resourceVersion: at(3) });
    await accept(event(4), event(1, 'f'), event(5));
    expect(await read()).toEqual([4, 410]);
    await expectOver();
  });

  test('versions of another form are opaque: only the same one is a repetition', async () => {
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

  test('a __proto__ in what comes is data', async () => {
    const { accept, watch } = open(kind);
    const text = '{"type":"A","object":{"__proto__":{"polluted":true}},"__proto__":{"resourceVersion":"x.1"}}';
    await accept(kind === 'http' ? `${text}\n` : kind === 'sse' ? `data: ${text}\n\n` : text);
    const got = watch.tryNext();
    expect(Object.keys(got?.object as object)).toEqual(['__proto__']);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    expect(watch.resourceVersion).toBeUndefined();
    await watch.return();
  });

  test('no answer within connectTimeoutMs is a failure like any other', async () => {
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

  test('an idle connection is dead once the server has shown that it gives signs of life', async () => {
    const { clock, watch, accept, network } = open(kind, { resourceVersion: at(1) });
    await accept(event(2));
    clock.advance(1_000_000);
    expect(watch.state).toBe('open');
    network.link.send(toBookmark(at(2)) as Event);
    await settle();
    clock.advance(149_999);
    expect(watch.state).toBe('open');
    network.link.send(event(3));
    await settle();
    clock.advance(149_999);
    expect(watch.state).toBe('open');
    clock.advance(1);
    expect(watch.state).toBe('waiting');
    expect(network.link.closed).toBe(true);
    await watch.return();
  });

  test("idleTimeoutMs of one's own counts at once; 0 never", async () => {
    const own = open(kind, { resourceVersion: at(1), idleTimeoutMs: 1_000 });
    await own.accept();
    own.clock.advance(1_000);
    expect(own.watch.state).toBe('waiting');
    await own.watch.return();
    const never = open(kind, { resourceVersion: at(1), idleTimeoutMs: 0 });
    await never.accept(toBookmark(at(1)) as Event);
    never.clock.advance(10_000_000);
    expect(never.watch.state).toBe('open');
    await never.watch.return();
  });

  test('the default idle timeout leaves room for two BOOKMARKs', () => {
    expect(150_000).toBeGreaterThanOrEqual(2 * DEFAULTS.bookmarkIntervalMs);
  });

  test('wait: a full queue stops the connection, and nothing is lost', async () => {
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

  test('wait is bounded in bytes, too', async () => {
    const { watch, accept } = open(kind, { maxBufferedBytes: 150 });
    await accept(...range(1, 100));
    expect(watch.queued).toBeLessThan(6);
    await watch.return();
  });

  test('an idle timeout does not run while the reader is what we wait for', async () => {
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

  test('nor does it when something comes that was on its way as the connection was told to stand still', async () => {
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

  test('an empty version is none: what follows cannot be gone on from', async () => {
    const { network, accept, read, watch } = open(kind, { resourceVersion: at(1) });
    await accept({ ...event(2), resourceVersion: '' });
    network.link.cut();
    expect(await read()).toEqual([2, 410]);
    expect(watch.state).toBe('closed');
  });

  test('drop-newest keeps the first, drop-oldest the last; both count, and tell where', async () => {
    for (const [overflow, kept, gaps] of [
      ['drop-newest', [1, 2, 3, 8], [[4, 8]]],
      ['drop-oldest', [5, 6, 7, 8], [[4, 5]]],
    ] as const) {
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

  test('disconnect: what was queued, one ERROR 410, the end; and the version to go on from', async () => {
    const { watch, accept, read, expectOver } = open(kind, { capacity: 2, overflow: 'disconnect' });
    await accept(...range(1, 6));
    expect(watch.stopped).toBe(true);
    expect(await read()).toEqual([1, 2, 410]);
    expect(watch.resourceVersion).toBe(at(2));
    expect(watch.dropped).toBe(1);
    await expectOver();
  });

  test('return lets go of what is queued, counts it, and keeps the version of what was read', async () => {
    const { watch, accept } = open(kind);
    await accept(...range(1, 5));
    watch.tryNext();
    await watch.return();
    expect([watch.queued, watch.dropped, watch.resourceVersion]).toEqual([0, 3, at(1)]);
    expect(watch.tryNext()).toBeUndefined();
  });

  test.each([
    ['stop', (watch: { stop(): void }) => watch.stop()],
    ['return', (watch: { return(): unknown }) => void watch.return()],
  ])('%s before the first byte settles every read and leaves nothing', async (_, end) => {
    const abort = new AbortController();
    const listeners = new ListenerCount(abort.signal);
    const { watch, clock, network } = open(kind, { signal: abort.signal });
    const reads = [fate(watch.next()), fate(watch.batches().next()), fate(watch.next())];
    await settle();
    expect(listeners.count).toBe(1);
    end(watch);
    await settle();
    expect(reads.map(({ state, value }) => [state, value?.done])).toEqual(Array(3).fill(['resolved', true]));
    expect([clock.pending, listeners.count, network.link.closed]).toEqual([0, 0, true]);
  });

  test('an abort stops it in every state', async () => {
    for (const state of ['connecting', 'open', 'waiting'] as const) {
      const abort = new AbortController();
      const { watch, clock, accept, network, expectOver } = open(kind, { signal: abort.signal, resourceVersion: at(1) });
      await settle();
      if (state === 'open') await accept();
      if (state === 'waiting') network.link.cut();
      await settle();
      expect(watch.state).toBe(state);
      const read = fate(watch.next());
      abort.abort();
      await settle();
      expect(read.value).toEqual({ done: true, value: undefined });
      expect(clock.pending).toBe(0);
      await expectOver();
    }
  });

  test('a signal that has aborted is refused with its reason, and nothing is opened', () => {
    const network = new FakeNetwork();
    const reason = new Error('no');
    expect(thrown(() => connect('http://h/', { ...network.options(kind), signal: AbortSignal.abort(reason) }))).toBe(reason);
    expect(network.links).toEqual([]);
  });

  test('what comes after the end goes nowhere', async () => {
    const { watch, accept, network } = open(kind);
    await accept(event(1));
    watch.stop();
    network.link.send(event(2));
    network.link.cut();
    await settle();
    expect(watch.queued).toBe(1);
    expect(watch.tryNext()).toEqual(event(1));
    expect(network.links).toHaveLength(1);
  });

  test('an onStateChange that throws ends the watch, and its reader hears of it', async () => {
    const fault = new Error('callback');
    const { watch, network, clock } = open(kind, {
      onStateChange: (state) => {
        if (state === 'open') throw fault;
      },
    });
    await settle();
    const read = fate(watch.next());
    network.link.accept();
    await settle();
    expect(read).toMatchObject({ state: 'rejected', error: fault });
    expect(await watch.next()).toEqual({ done: true, value: undefined });
    expect([watch.state, clock.pending, network.link.closed]).toEqual(['closed', 0, true]);
  });

  test('an onGap that throws ends the watch, and its reader hears of it', async () => {
    const fault = new Error('gap');
    const { watch, accept } = open(kind, {
      capacity: 1,
      overflow: 'drop-oldest',
      onGap: () => {
        throw fault;
      },
    });
    await accept(...range(1, 4));
    expect(thrown(() => watch.tryNext())).toBe(fault);
    expect(await watch.next()).toEqual({ done: true, value: undefined });
    expect(watch.dropped).toBe(3);
  });

  test('BOOKMARKs are kept from the reader, but for the end of a snapshot, and unless the URL asks for them', async () => {
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

describe('the query', () => {
  const asked = async (url: string, options: ConnectOptions<Event> = {}): Promise<string> => {
    const network = new FakeNetwork();
    const watch = connect<Event>(url, { ...network.options('http'), ...options });
    await settle();
    await watch.return();
    return network.link.url.href;
  };

  test('keeps what the URL says, takes its version, and asks for BOOKMARKs unless told not to', async () => {
    expect(await asked('http://h/w?a=1#x')).toBe('http://h/w?a=1&allowWatchBookmarks=true');
    expect(await asked('http://h/w?resourceVersion=e.1&a=1', { bookmarks: false })).toBe('http://h/w?a=1&resourceVersion=e.1');
    expect(await asked('http://h/w?resourceVersion=e.1', { resourceVersion: 'e.2', bookmarks: false })).toBe(
      'http://h/w?resourceVersion=e.2',
    );
    expect(await asked('http://h/w?allowWatchBookmarks=false')).toBe('http://h/w?allowWatchBookmarks=false');
    expect(await asked('ws://h/w', { bookmarks: false })).toBe('http://h/w');
  });

  test('0 is no version, and stays as it stands', async () => {
    expect(await asked('http://h/w?resourceVersion=0', { bookmarks: false })).toBe('http://h/w?resourceVersion=0');
    expect(await asked('http://h/w?resourceVersion=', { bookmarks: false })).toBe('http://h/w?resourceVersion=');
  });

  test('a snapshot that was asked for is asked for once', async () => {
    const clock = new FakeClock();
    const network = new FakeNetwork();
    const options = { ...network.options('http'), clock, random: () => 1 };
    const watch = connect<Event>('http://h/w?sendInitialEvents=true&resourceVersion=e.1', options);
    await settle();
    expect(network.link.url.searchParams.get('sendInitialEvents')).toBe('true');
    network.link.accept();
    await settle();
    network.link.send({ type: 'ADDED', object: 1 }, toBookmark(at(4), { initialEventsEnd: true }) as Event);
    await settle();
    network.link.cut();
    await settle();
    clock.advance(500);
    await settle();
    expect(network.link.url.search).toBe('?allowWatchBookmarks=true&resourceVersion=e.4');
    await watch.return();
  });

  test('a snapshot that was asked for, and of which nothing came, is asked for again', async () => {
    const clock = new FakeClock();
    const network = new FakeNetwork();
    const options = { ...network.options('http'), clock, random: () => 1 };
    const watch = connect<Event>('http://h/w?sendInitialEvents=true&resourceVersion=e.1', options);
    await settle();
    network.link.accept();
    await settle();
    network.link.cut();
    await settle();
    clock.advance(500);
    await settle();
    expect(network.links).toHaveLength(2);
    expect(network.link.url.search).toBe('?sendInitialEvents=true&allowWatchBookmarks=true&resourceVersion=e.1');
    await watch.return();
  });
});

describe('refusals', () => {
  test.each(['http', 'sse', 'ws'] as const)('%s: 4xx is final, with the Status of the server', async (kind) => {
    for (const code of [400, 401, 403, 404, 405, 421]) {
      const { network, read, expectOver, details } = open(kind);
      await settle();
      network.link.refuse(code, JSON.stringify(status(code, { reason: 'Told' })));
      expect(await read()).toEqual([code]);
      expect(details.at(-1)?.error?.reason).toBe('Told');
      await expectOver();
    }
  });

  test.each(['http', 'sse', 'ws'] as const)('%s: 408, 429 and 5xx are not, and Retry-After is heard', async (kind) => {
    for (const code of [408, 429, 500, 502, 503]) {
      const { network, watch, details } = open(kind);
      await settle();
      network.link.refuse(code, 'text', code === 503 ? { 'retry-after': '7' } : {});
      await settle();
      expect(watch.state).toBe('waiting');
      expect(details[0]).toMatchObject({ error: { code, message: 'text' }, delayMs: code === 503 ? 7_500 : 500 });
      await watch.return();
    }
  });

  test('a WebSocket that does not tell why, and never closes, has failed with its error', async () => {
    const { network, watch, details } = open('browser');
    await settle();
    network.link.refuse(404);
    expect(watch.state).toBe('waiting');
    expect(details).toMatchObject([{ error: { code: 503, message: 'no handshake' }, delayMs: 500 }]);
    expect(network.link.closed).toBe(true);
    await watch.return();
  });

  test('the hint may stand in the Status; none is longer than five minutes', async () => {
    const { network, details, watch } = open('http');
    await settle();
    network.link.refuse(503, JSON.stringify(status(503, { details: { retryAfterSeconds: 1e9 } })));
    await settle();
    expect(details[0]?.delayMs).toBe(300_500);
    await watch.return();
  });

  test('a body without end is not waited for, nor kept', async () => {
    const { network, watch, clock, details } = open('http', { connectTimeoutMs: 1_000 });
    await settle();
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
      async pull(controller) {
        await new Promise((resolve) => setImmediate(resolve));
        controller.enqueue(new TextEncoder().encode(`${'x'.repeat(1_000)}\n`));
      },
    });
    vi.spyOn(globalThis.Response.prototype, 'body', 'get').mockReturnValueOnce(body);
    network.link.refuse(404, 'x');
    await settle();
    clock.advance(1_000);
    await settle();
    expect(watch.state).toBe('waiting');
    expect(details[0]?.error?.message.length).toBeLessThan(300);
    await watch.return();
  });

  test('a hint that is no time asks for nothing', async () => {
    for (const hint of ['-100', 'soon', 'NaN']) {
      const { network, details, watch } = open('http');
      await settle();
      network.link.refuse(503, '', { 'retry-after': hint });
      await settle();
      expect(details[0]?.delayMs).toBe(500);
      await watch.return();
    }
    const { accept, details, watch } = open('http', { resourceVersion: at(1) });
    await accept(error(503, { details: { retryAfterSeconds: 'soon' } } as object));
    expect(details.at(-1)?.delayMs).toBe(500);
    await watch.return();
  });

  test('a fetch that does not heed its signal leaves nothing open, however late it answers', async () => {
    const cancelled: number[] = [];
    const answers: (() => void)[] = [];
    const fetch = (): Promise<Response> =>
      new Promise((resolve) => {
        const at = answers.length;
        const body = new ReadableStream({ cancel: () => void cancelled.push(at) });
        answers.push(() =>
          resolve(new Response(body, { headers: { 'content-type': at === 2 ? 'text/html' : 'application/json' } })),
        );
      });
    const [early, late, page] = [0, 1, 2].map(() => open('http', { fetch }));
    answers[0]?.();
    answers[2]?.();
    await settle();
    expect(early?.watch.state).toBe('open');
    expect(page?.watch.state).toBe('closed');
    early?.watch.stop();
    late?.watch.stop();
    answers[1]?.();
    await settle();
    expect(cancelled.sort()).toEqual([0, 1, 2]);
    expect([early, late, page].map((each) => each?.clock.pending)).toEqual([0, 0, 0]);
  });

  test('a page is no watch', async () => {
    for (const kind of ['http', 'sse'] as const) {
      const network = new FakeNetwork();
      const fetch = async (): Promise<Response> => new Response('<p>', { headers: { 'content-type': 'text/html' } });
      const watch = connect<Event>('http://h/', { ...network.options(kind), fetch });
      expect((await watch.next()).value?.object).toMatchObject({ code: 422, message: 'the server answered text/html' });
      expect((await watch.next()).done).toBe(true);
    }
  });

  test('204 is the end: there is nothing more', async () => {
    const { network, expectOver } = open('sse');
    await settle();
    network.link.refuse(204);
    await expectOver();
  });
});

describe('ends', () => {
  test('HTTP and SSE: an end in order is continued, by option not', async () => {
    for (const kind of ['http', 'sse'] as const) {
      for (const reconnectOnEnd of [true, false]) {
        const { network, watch, accept } = open(kind, { reconnectOnEnd });
        await accept(event(1));
        network.link.end();
        await settle();
        expect(watch.state).toBe(reconnectOnEnd ? 'waiting' : 'closed');
        await watch.return();
      }
    }
  });

  test('without a version there is nothing to continue: the end is the end', async () => {
    const { network, accept, read, expectOver } = open('http');
    await accept({ type: 'A', object: 1 });
    network.link.end();
    expect(await read()).toEqual([1]);
    await expectOver();
  });

  test('HTTP: a last line without its end counts if it can be read, and is nothing if it cannot', async () => {
    for (const [text, expected] of [
      ['{"type":"A","object":2}', [1, 2]],
      ['{"type":"A","obj', [1]],
    ] as const) {
      const { network, accept, read, watch } = open('http', { reconnectOnEnd: false });
      await accept(event(1), text);
      network.link.end();
      expect(await read()).toEqual(expected);
      expect(watch.state).toBe('closed');
    }
  });

  test('SSE: what is unfinished is none', async () => {
    const { network, accept, read, expectOver } = open('sse', { reconnectOnEnd: false });
    await accept(event(1), 'data: {"type":"A","object":2}\n');
    network.link.end();
    expect(await read()).toEqual([1]);
    await expectOver();
  });

  test.each([
    [CLOSE_CODES.complete, CLOSE_REASONS.complete, 'closed', undefined],
    [CLOSE_CODES.timeout, CLOSE_REASONS.timeout, 'waiting', 500],
    [CLOSE_CODES.goingAway, toRetryReason(4_000), 'waiting', 4_500],
    [CLOSE_CODES.failed, CLOSE_REASONS.failed, 'waiting', 500],
    [CLOSE_CODES.tooLarge, '', 'waiting', 500],
    [CLOSE_CODES.expired, CLOSE_REASONS.expired, 'closed', undefined],
    [CLOSE_CODES.badRequest, CLOSE_REASONS.badRequest, 'closed', undefined],
    [4403, '', 'closed', undefined],
    [4503, '', 'waiting', 500],
    [1006, '', 'waiting', 500],
  ])('WebSocket close %i %s: %s', async (code, reason, state, delayMs) => {
    const { network, accept, watch, details } = open('browser');
    await accept(event(1));
    network.link.end(code, reason);
    expect(watch.state).toBe(state);
    expect(details.at(-1)?.delayMs).toBe(delayMs);
    await watch.return();
  });

  test('SSE: retry is what the server asks for, and a comment is a sign of life', async () => {
    const { network, accept, clock, watch, details } = open('sse', { resourceVersion: at(1) });
    await accept('retry: 2000\n\n', ': hello\n\n', ...['x', '1e3', '-5', '0x9', ''].map((rubbish) => `retry: ${rubbish}\n\n`));
    network.link.cut();
    await settle();
    expect(details.at(-1)?.delayMs).toBe(2_500);
    clock.advance(2_500);
    await accept(': hello\n\n');
    clock.advance(149_999);
    expect(watch.state).toBe('open');
    clock.advance(1);
    expect(watch.state).toBe('waiting');
    await watch.return();
  });
});

describe('arguments', () => {
  const network = new FakeNetwork();
  const refused = (url: string, options: object): unknown =>
    thrown(() => connect(url, { ...network.options('browser'), ...options }));

  test.each([
    ["coalesce is the server's", { overflow: 'coalesce' }, 'overflow'],
    ['a policy', { overflow: 'latest' }, 'overflow'],
    ['a transport', { transport: 'carrier' }, 'transport'],
    ['onExpired', { onExpired: 'ignore' }, 'onExpired'],
    ['a capacity', { capacity: 0 }, 'capacity'],
    ['bytes', { maxBufferedBytes: -1 }, 'maxBufferedBytes'],
    ['a backoff', { backoff: { minMs: Number.NaN } }, 'minMs'],
    ['attempts', { maxAttempts: -1 }, 'maxAttempts'],
    ['headers where they cannot be sent', { headers: { a: 'b' } }, 'WebSocket'],
  ])('%s', (_, options, named) => {
    expect(refused('http://h/', options)).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(named) });
    expect(network.links).toEqual([]);
  });

  test.each([
    ['capacity', [1.5, '5', 0, -1, Number.NaN, Infinity, null], 'a whole number >= 1'],
    ['maxBufferedBytes', ['5', 0.5, Number.NaN, null], 'a number >= 1'],
    ['idleTimeoutMs', [-1, '5', Number.NaN, null, true], 'a number >= 0'],
    ['connectTimeoutMs', [-1, '5', null, true], 'a number >= 0'],
  ])('%s that is no such number', (name, values, expected) => {
    for (const value of values) {
      const shown = typeof value === 'string' ? `"${value}"` : value;
      const message = `${name}: expected ${expected}, got ${shown}`;
      expect(refused('http://h/', { [name]: value })).toMatchObject({ code: 'INVALID_ARGUMENT', message });
    }
    expect(network.links).toEqual([]);
  });

  test('the least that a number may be', async () => {
    for (const least of [{ capacity: 1 }, { idleTimeoutMs: 0 }, { idleTimeoutMs: undefined }, { maxAttempts: Infinity }]) {
      const { watch } = open('http', least);
      expect(watch.state).toBe('connecting');
      await watch.return();
    }
  });

  test.each(['ftp://h/', 'h', '', '/watch', 'javascript:alert(1)'])('the URL %j', (url) => {
    expect(refused(url, {})).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('url') });
  });

  test('a header that is none throws as the host does', () => {
    expect(thrown(() => connect('http://h/', { ...network.options('http'), headers: { 'a b': 'c' } }))).toBeInstanceOf(TypeError);
  });

  test("a relative URL is the page's", async () => {
    vi.stubGlobal('location', { href: 'https://page.example/a/b' });
    try {
      const own = new FakeNetwork();
      const watch = connect('../watch', { ...own.options('browser'), bookmarks: false });
      expect(own.link.url.href).toBe('wss://page.example/watch');
      await watch.return();
    } finally {
      vi.unstubAllGlobals();
    }
  });

  describe('the transport', () => {
    const own = new FakeNetwork();
    const { fetch } = own.options('http');
    const { WebSocket } = own.options('ws');
    const { WebSocket: plain } = own.options('browser');
    const asked = async (url: string, options: ConnectOptions<Event>): Promise<string> => {
      const watch = connect<Event>(url, { bookmarks: false, ...options });
      await settle();
      await watch.return();
      return `${own.link.headers.accept ?? 'websocket'} ${own.link.url.href}`;
    };
    afterEach(() => void vi.unstubAllGlobals());

    test.each([
      ['http://h/', 'application/json http://h/'],
      ['https://h/', 'application/json https://h/'],
      ['/w', 'application/json https://page.example/w'],
      ['ws://h/', 'websocket ws://h/'],
      ['wss://h/', 'websocket wss://h/'],
    ])('is what the URL says, whatever the host has: %s', async (url, expected) => {
      vi.stubGlobal('location', { href: 'https://page.example/a/b' });
      vi.stubGlobal('WebSocket', plain);
      vi.stubGlobal('fetch', fetch);
      expect(await asked(url, {})).toBe(expected);
      expect(await asked(url, { WebSocket })).toBe(expected);
    });

    test.each([
      ['ws://h/', 'http', 'application/json http://h/'],
      ['wss://h/', 'sse', 'text/event-stream https://h/'],
      ['http://h/', 'websocket', 'websocket ws://h/'],
      ['https://h/', 'websocket', 'websocket wss://h/'],
    ] as const)('is the one that is named: %s as %s', async (url, transport, expected) => {
      expect(await asked(url, { transport, fetch, WebSocket: plain })).toBe(expected);
    });

    test('a WebSocket is not asked for where none is used', async () => {
      vi.stubGlobal('WebSocket', undefined);
      const headers = { authorization: 'x' };
      expect(await asked('https://h/', { fetch, headers })).toBe('application/json https://h/');
      expect(await asked('https://h/', { fetch, headers, WebSocket: plain })).toBe('application/json https://h/');
      expect(own.link.headers).toMatchObject(headers);
    });

    test('what is missing for a WebSocket is said', async () => {
      vi.stubGlobal('WebSocket', undefined);
      const headers = { authorization: 'x' };
      const none = 'WebSocket: expected that of the package ws: no other is here, got undefined';
      const poor = 'WebSocket: expected that of the package ws: no other takes headers, got class';
      const refusal = (url: string, options: ConnectOptions<Event>): string =>
        (thrown(() => connect(url, options)) as Error).message;
      expect(refusal('ws://h/', { fetch })).toBe(none);
      expect(refusal('ws://h/', { fetch, headers })).toBe(none);
      expect(refusal('http://h/', { transport: 'websocket' })).toBe(none);
      expect(refusal('ws://h/', { fetch, headers, WebSocket: plain })).toContain(poor);
      expect(refusal('http://h/', { transport: 'websocket', headers, WebSocket: plain })).toContain(poor);
      expect(await asked('ws://h/', { headers, WebSocket })).toBe('websocket ws://h/');
      expect(own.link.headers).toEqual(headers);
    });
  });

  test('a WebSocket that cannot be made at all is final', async () => {
    class Refusing {
      constructor() {
        throw new Error('insecure');
      }
    }
    const watch = connect<Event>('http://h/', { transport: 'websocket', WebSocket: Refusing as never });
    expect((await watch.next()).value?.object).toMatchObject({ code: 400, message: 'insecure' });
    expect((await watch.next()).done).toBe(true);
  });

  test('whatever is thrown is a failure like any other', async () => {
    for (const reason of [undefined, null, 'so', {}]) {
      const fetch = (): Promise<Response> => Promise.reject(reason);
      const { watch, details } = open('http', { fetch });
      await settle();
      expect(watch.state).toBe('waiting');
      expect(details[0]?.error).toMatchObject({ code: 503, message: String(reason) });
      await watch.return();
    }
  });

  test('a codec makes the events', async () => {
    const own = new FakeNetwork();
    const decode = (frame: Uint8Array): (Event & { line: string }) | undefined => {
      const line = new TextDecoder().decode(frame);
      return line.includes('skip') ? undefined : { ...(JSON.parse(line) as Event), line };
    };
    const watch = connect('http://h/', { ...own.options('http'), codec: { decode } });
    await settle();
    own.link.accept();
    await settle();
    own.link.send('{"type":"A","object":1.0,"resourceVersion":"e.1"}\nskip\n');
    await settle();
    expect(watch.tryNext()).toHaveProperty('line', '{"type":"A","object":1.0,"resourceVersion":"e.1"}');
    expect(watch.resourceVersion).toBe(at(1));
    await watch.return();
  });
});

describe('the contract of a watch, over a WebSocket', () => {
  test.each(WATCH_CONTRACT.map((each) => [each.name, each] as const))('%s', async (_, { run }) => {
    await run(() => {
      const network = new FakeNetwork();
      const watch = connect<Event>('http://h/', network.options('browser'));
      network.link.accept();
      const send = (number: number): Event => {
        network.link.send(event(number + 1));
        return event(number + 1);
      };
      return { watch, send: send as never, end: () => network.link.end() } as never;
    });
  });
});
