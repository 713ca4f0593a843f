// The limit of bytes that are queued for one client: who is cut, who is not, and what it is told.
import { describe, expect, test } from 'vitest';
import { coreOf, Hub } from '../../src/bridge/hub/hub.ts';
import { FROM_NOW } from '../../src/bridge/hub/hub-log.ts';
import type { ClientOptions, HubOptions } from '../../src/bridge/hub/hub-options.ts';
import type { HubSession } from '../../src/bridge/hub/hub-session.ts';
import type { HubNotice } from '../../src/bridge/hub/tally.ts';
import { OVERFLOWS } from '../../src/watch/overflow.ts';
import { LOSSY } from '../policies.ts';
import { connect, FakeSink, join, turn, until } from './fake-sink.ts';

const LIMIT = 10_000;
const FILLER = 'x'.repeat(900);

/** About 1,000 bytes. */
const event = (
  i: number,
  name: string = `n${i}`,
): { type: string; object: { metadata: { name: string }; i: number; filler: string } } => ({
  type: 'MODIFIED',
  object: { metadata: { name }, i, filler: FILLER },
});

/** A connection whose buffer takes one write, and is empty again a turn later. */
class Narrow extends FakeSink {
  override write(bytes: Uint8Array): boolean {
    super.write(bytes);
    void turn().then(() => this.session?.relieved());
    return false;
  }
}

/** A hub, and one client whose connection has no room after the first event. */
async function stalledClient(
  options: HubOptions = {},
  own: ClientOptions = {},
): Promise<{ hub: Hub; client: ReturnType<typeof connect>; cuts: HubNotice[] }> {
  const cuts: HubNotice[] = [];
  const hub = new Hub({ epoch: 'e', capacity: 1_000, maxQueuedBytes: LIMIT, ...options });
  hub.observe({ tell: (notice) => void (notice.type === 'cut' && cuts.push(notice)) });
  const client = connect(hub, undefined, { options: own });
  client.stall();
  await hub.publish(event(0));
  await turn();
  return { hub, client, cuts };
}

async function publish(hub: Hub, count: number, toEvent: (i: number) => ReturnType<typeof event> = event): Promise<void> {
  for (let i = 1; i <= count; i++) await hub.publish(toEvent(i));
  await turn();
}

describe.each(OVERFLOWS)('under %s', (overflow) => {
  test('a client for which more is queued is cut, and told when it has room; others are not affected', async () => {
    const { hub, client, cuts } = await stalledClient({ overflow });
    const other = connect(hub);
    await publish(hub, 9);
    expect(client.session.stats()).toMatchObject({ delivered: 1, queued: 9, dropped: 0 });
    await publish(hub, 31, (i) => event(i + 9));
    // Nothing is kept for it any more. What came after the cut was not for this client.
    const { dropped } = client.session.stats();
    expect(client.session.stats()).toMatchObject({ delivered: 1, queued: 0, lag: 0 });
    expect(dropped).toBeGreaterThanOrEqual(10);
    expect(dropped).toBeLessThanOrEqual(11);
    expect(client.events).toHaveLength(1);
    client.resume();
    await turn();
    expect(client.events.slice(1)).toMatchObject([
      { type: 'ERROR', object: { code: 410, reason: 'Expired', details: { missed: dropped } } },
    ]);
    expect(client.ended).toBe('expired');
    expect(cuts).toMatchObject([{ type: 'cut', reason: 'expired', client: { delivered: 1, dropped } }]);
    expect(hub.stats()).toMatchObject({
      accepted: 41,
      total: { cuts: { expired: 1 } },
      clients: [{ delivered: 40, dropped: 0 }],
    });
    expect(other.ended).toBeUndefined();
    await hub.shutdown();
  });

  test('a client within its limit gets everything', async () => {
    const { hub, client } = await stalledClient({ overflow });
    await publish(hub, 9);
    client.resume();
    await hub.shutdown();
    expect(client.events.map(({ object }) => (object as { i: number }).i)).toEqual(Array.from({ length: 10 }, (_, i) => i));
    expect(client.ended).toBe('complete');
  });
});

test.each(OVERFLOWS)('within a burst, a queue of %s exceeds its limit by a sixteenth and one event at most', async (overflow) => {
  const { hub, client } = await stalledClient({ overflow });
  await publish(hub, 9);
  const before = client.session.queuedBytes;
  let most = before;
  for (let i = 10; i < 500; i++) {
    void hub.publish({ type: 'MODIFIED', object: { metadata: { name: `n${i}` } } });
    most = Math.max(most, client.session.queuedBytes);
  }
  expect(before).toBeLessThan(LIMIT);
  expect(most).toBeGreaterThan(LIMIT);
  expect(most).toBeLessThanOrEqual((LIMIT * 17) / 16 + 100);
  expect(hub.stats().total.cuts).toEqual({});
  client.resume();
  await turn();
  expect(hub.stats().total.cuts).toEqual({ expired: 1 });
});

test('the ERROR says how many events were lost, and what the limit is', async () => {
  const { hub, client } = await stalledClient();
  await publish(hub, 12);
  expect(client.session.stats().queued).toBe(0);
  client.resume();
  await turn();
  expect(client.objects[1]).toMatchObject({
    message: expect.stringMatching(/^too slow: \d+ events were lost, because more than 10000 bytes were queued; watch again/),
    details: { missed: expect.any(Number) },
  });
  const { missed } = (client.objects[1] as { details: { missed: number } }).details;
  expect(missed).toBeGreaterThanOrEqual(9);
  expect(missed).toBeLessThanOrEqual(12);
});

describe('what does not count', () => {
  test('events that the filter rejects', async () => {
    const { hub, client } = await stalledClient({}, { filter: ({ object }) => (object as { i: number }).i % 10 === 0 });
    await publish(hub, 90);
    expect(client.session.stats()).toMatchObject({ queued: 9, dropped: 0 });
    await publish(hub, 30, (i) => event(i * 10));
    expect(client.session.stats().queued).toBe(0);
  });

  test('events of other topics', async () => {
    const topicsOf = ({ object }: { object: unknown }): string => (object as { metadata: { name: string } }).metadata.name;
    const { hub, client } = await stalledClient({ topicsOf }, { topics: ['mine', 'n0'] });
    await publish(hub, 100, (i) => event(i, 'other'));
    await publish(hub, 9, (i) => event(i, 'mine'));
    expect(client.session.stats()).toMatchObject({ queued: 9, dropped: 0 });
    await publish(hub, 9, (i) => event(i, 'mine'));
    expect(client.session.stats().queued).toBe(0);
  });

  test('with coalesce, changes that were folded into a later one', async () => {
    const { hub, client } = await stalledClient({ overflow: 'coalesce' });
    await publish(hub, 200, (i) => event(i, `n${i % 8}`));
    expect(client.session.stats()).toMatchObject({ queued: 8, dropped: 192 });
    client.resume();
    await hub.shutdown();
    expect(client.ended).toBe('complete');
  });

  test('with policies that drop events, those that were dropped', async () => {
    for (const overflow of LOSSY) {
      const { hub, client } = await stalledClient({ overflow, capacity: 8 });
      await publish(hub, 200);
      expect(client.session.stats()).toMatchObject({ queued: 8, dropped: 192 });
    }
  });

  test('past events with which the client resumes: replayBytes limits them', async () => {
    const hub = new Hub({ epoch: 'e', capacity: 1_000, maxQueuedBytes: LIMIT });
    await publish(hub, 50);
    const sink = join(hub, { resourceVersion: 'e.0' });
    expect(sink.events).toHaveLength(50);
    const slow = new FakeSink();
    slow.stall();
    // In more than one slice, so that most of it waits.
    const big = new Hub({ epoch: 'e', capacity: 1_000, maxQueuedBytes: LIMIT });
    for (let i = 0; i < 40; i++) await big.publish({ type: 'n', object: 'x'.repeat(20_000) });
    const start = coreOf(big).start({ resourceVersion: 'e.0' });
    connect(big, slow, { start: start as Exclude<typeof start, { code: number }> });
    await publish(big, 5);
    expect(slow.session?.stats()).toMatchObject({ dropped: 0 });
    slow.resume();
    await until(() => slow.events.length === 45);
  });
});

test('a batch that was read and not written counts', async () => {
  const hub = new Hub({ capacity: 1_000, maxQueuedBytes: 1_000_000 });
  const client = connect(hub);
  const big = (i: number): { type: string; object: unknown } => ({ type: 'n', object: { i, filler: 'x'.repeat(100_000) } });
  client.stall();
  for (let i = 0; i < 4; i++) expect(hub.tryPublish(big(i))).toBe(true);
  await turn(); // the first slice of two is written, and two more wait in the batch
  expect(client.session.stats()).toMatchObject({ delivered: 2, queued: 2 });
  for (let i = 4; i < 11; i++) await hub.publish(big(i));
  await turn();
  expect(client.session.stats()).toMatchObject({ delivered: 2, queued: 9 });
  for (let i = 11; i < 14; i++) await hub.publish(big(i));
  await turn();
  expect(client.session.stats()).toMatchObject({ delivered: 2, queued: 0 });
  // All of it is lost, and the ERROR says so.
  const { dropped } = client.session.stats();
  expect(dropped).toBeGreaterThan(9);
  client.resume();
  await turn();
  expect(client.objects.at(-1)).toMatchObject({ code: 410, details: { missed: dropped } });
});

test('a burst of many times the limit does not cut a client that reads', async () => {
  for (const options of [{}, { maxQueuedBytes: 1_000_000 }]) {
    const hub = new Hub({ capacity: 1_000, maxQueuedBytes: LIMIT });
    const narrow = connect(hub, new Narrow());
    // A client with a larger limit changes nothing for it.
    connect(hub, undefined, { options });
    await publish(hub, 500);
    await until(() => narrow.events.length === 500);
    expect(hub.stats().total.cut).toBe(0);
  }
});

test('a client of its own smaller limit is cut by it, and its limit paces bursts only while it is there', async () => {
  const hub = new Hub({ capacity: 1_000 });
  const narrow = connect(hub, new Narrow(), { options: { maxQueuedBytes: LIMIT } });
  await publish(hub, 200);
  await until(() => narrow.events.length === 200);
  narrow.session.gone();
  const slow = connect(hub, undefined, { options: { maxQueuedBytes: 3_000 } });
  const free = connect(hub);
  for (const sink of [slow, free]) sink.stall();
  await publish(hub, 8);
  expect(slow.session.stats()).toMatchObject({ queued: 0, dropped: 3 });
  expect(free.session.stats()).toMatchObject({ delivered: 2, queued: 6, dropped: 0 });
});

test('events that wait for the end of a snapshot count', async () => {
  let deliver: (objects: unknown[]) => void = () => {};
  const objects = new Promise<unknown[]>((resolve) => {
    deliver = resolve;
  });
  const hub = new Hub({ epoch: 'e', capacity: 1_000, maxQueuedBytes: LIMIT, snapshot: () => objects });
  const client = join(hub);
  await publish(hub, 9);
  expect(client.events).toEqual([]);
  await publish(hub, 9);
  expect(client.events).toMatchObject([{ type: 'ERROR', object: { code: 410 } }]);
  expect(client.ended).toBe('expired');
  deliver([1, 2, 3]);
  await turn();
  expect(client.events).toHaveLength(1);
});

test('publishes that wait for a client of wait go on when it is cut', async () => {
  const { hub, client } = await stalledClient({ overflow: 'wait', capacity: 5 }, { maxQueuedBytes: 4_500 });
  await Promise.all(Array.from({ length: 20 }, (_, i) => hub.publish(event(i))));
  expect(client.session.stats()).toMatchObject({ queued: 0, dropped: 5 });
  await hub.shutdown({ signal: AbortSignal.timeout(1) });
});

test('a hub that has ended still serves what it keeps', async () => {
  const hub = new Hub({ epoch: 'e', maxQueuedBytes: 1 });
  await publish(hub, 5);
  await hub.shutdown();
  const sink = new FakeSink();
  sink.stall();
  connect(hub, sink, { start: coreOf(hub).start({ resourceVersion: 'e.0' }) as never });
  sink.resume();
  await until(() => sink.ended !== undefined);
  expect(sink.events).toHaveLength(5);
});

test.each([0, -1, 1.5, Number.NaN, '9'])('a limit of %s is refused', (maxQueuedBytes) => {
  expect(() => new Hub({ maxQueuedBytes: maxQueuedBytes as number })).toThrow(/maxQueuedBytes: expected a whole number >= 1/);
});

test('a connection that is closed while it is opened, or written to, leaves nothing behind', async () => {
  const told: string[] = [];
  const hub = new Hub({ snapshot: () => [1, 2], onNotice: ({ type }) => told.push(type) });
  class Closing extends FakeSink {
    readonly #inWrite: boolean;

    constructor(inWrite: boolean) {
      super();
      this.#inWrite = inWrite;
    }

    override opened(session: HubSession): void {
      super.opened(session);
      if (!this.#inWrite) session.gone();
    }

    override write(bytes: Uint8Array): boolean {
      super.write(bytes);
      this.session?.gone();
      return false;
    }
  }
  for (const inWrite of [false, true]) {
    const { session } = connect(hub, new Closing(inWrite), { start: { ...FROM_NOW, snapshot: true } });
    await until(() => session.over);
    await turn();
    const { backlog, all } = coreOf(hub).sessions;
    expect([all.size, (backlog as unknown as { due: Map<unknown, unknown> }).due.size]).toEqual([0, 0]);
    expect(told.splice(0)).toEqual(['open', 'close']);
  }
});
