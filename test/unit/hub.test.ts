// Hubs without sockets: replay, limits, and bridged watches.
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createFetchHandler } from '../../src/bridge/fetch.ts';
import type { Reservation } from '../../src/bridge/hub/admission/connection-slots.ts';
import { coreOf, Hub, type HubOptions } from '../../src/bridge/hub/hub.ts';
import type { HubClient } from '../../src/bridge/hub/hub-core.ts';
import type { Start } from '../../src/bridge/hub/hub-log.ts';
import type { HubNotice } from '../../src/bridge/hub/tally.ts';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import { filter } from '../../src/broadcast/filter.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { OVERFLOWS } from '../../src/watch/overflow.ts';
import { added, connect, FakeSink, join, turn, until } from './fake-sink.ts';

describe('replay', () => {
  test('delivers the last N events, then the following ones: none lost in between, none repeated', async () => {
    const hub = new Hub({ replay: 5, epoch: 'e' });
    const sinks: FakeSink[] = [];
    for (let i = 1; i <= 200; i++) {
      void hub.publish(added(i));
      sinks.push(connect(hub));
      if (i % 7 === 0) await turn();
    }
    await hub.shutdown();
    sinks.forEach((sink, index) => {
      const first = Math.max(1, index + 1 - 4);
      expect(sink.objects).toEqual(Array.from({ length: 200 - first + 1 }, (_, i) => first + i));
      expect(sink.versions[0]).toBe(`e.${first}`);
    });
  });

  test('counts events that the filter rejects: they take the places of those of the client', async () => {
    const hub = new Hub({ replay: 4, epoch: 'e' });
    for (let i = 1; i <= 10; i++) await hub.publish(added(i));
    const sink = connect(hub, undefined, { options: { filter: ({ object }) => (object as number) % 3 === 0 } });
    await turn();
    expect(sink.objects).toEqual([9]);
  });

  test('is exact while a full wait client delays the stream', async () => {
    const hub = new Hub({ replay: 100, capacity: 2, overflow: 'wait' });
    const slow = connect(hub);
    slow.stall();
    const publishing = Array.from({ length: 30 }, (_, i) => hub.publish(added(i)));
    await turn();
    const late = connect(hub);
    slow.resume();
    await Promise.all(publishing);
    await hub.shutdown();
    const all = Array.from({ length: 30 }, (_, i) => i);
    expect(slow.objects).toEqual(all);
    expect(late.objects).toEqual(all);
  });
});

test('a publish that waits for room and is then refused uses no number, so whoever resumes misses nothing', async () => {
  const topicsOf = ({ object }: WatchEvent): string => {
    if (object === 'bad') throw new Error('no topic');
    return 'all';
  };
  const hub = new Hub({ topicsOf, capacity: 1, overflow: 'wait', epoch: 'e' });
  const slow = connect(hub);
  slow.stall();
  const outcomes = Promise.allSettled([1, 2, 3, 4, 'bad', 5].map((object) => hub.publish(added(object))));
  await turn();
  slow.resume();
  expect((await outcomes).map(({ status }) => status === 'rejected')).toEqual([false, false, false, false, true, false]);
  await hub.publish(added(6));
  await turn();
  expect(slow.versions).toEqual([1, 2, 3, 4, 5, 6].map((sequence) => `e.${sequence}`));
  for (const version of slow.versions) {
    const back = join(hub, { resourceVersion: version });
    expect([...slow.objects.slice(0, slow.versions.indexOf(version) + 1), ...back.objects]).toEqual([1, 2, 3, 4, 5, 6]);
  }
});

test('a random epoch is made when it is first needed, and once: Workers allow none in module scope', () => {
  const random = vi.spyOn(crypto, 'getRandomValues');
  onTestFinished(() => random.mockRestore());
  const hub = new Hub();
  createFetchHandler(hub);
  expect(random).not.toHaveBeenCalled();
  const { version } = hub.stats();
  expect(version).toMatch(/^[0-9a-f]{16}\.0$/);
  expect(hub.stats().version).toBe(version);
  expect(random).toHaveBeenCalledTimes(1);
});

describe('limits', () => {
  test('clients past the limit are refused and counted', () => {
    const hub = new Hub({ maxClients: 1 });
    const reservation = coreOf(hub).reserve('a');
    expect(coreOf(hub).reserve('b')).toMatchObject({ code: 503 });
    const sink = connect(hub, undefined, { reservation: reservation as Reservation, address: 'a' });
    expect(coreOf(hub).reserve('b')).toMatchObject({ code: 503 });
    sink.session.gone();
    expect(coreOf(hub).reserve('b')).not.toHaveProperty('code');
    expect(hub.stats().total).toMatchObject({ clients: 1, refused: 2, refusals: { full: 2 } });
  });

  test('clients of one address have a separate limit; the empty address has none', () => {
    const hub = new Hub({ maxClientsPerAddress: 2 });
    const reservations = [coreOf(hub).reserve('a'), coreOf(hub).reserve('a')] as Reservation[];
    expect(coreOf(hub).reserve('a')).toMatchObject({ code: 503, message: expect.stringContaining('this address') });
    expect(coreOf(hub).reserve('b')).not.toHaveProperty('code');
    for (let i = 0; i < 5; i++) expect(coreOf(hub).reserve('')).not.toHaveProperty('code');
    reservations[0]?.release();
    reservations[0]?.release();
    expect(coreOf(hub).reserve('a')).not.toHaveProperty('code');
    expect(coreOf(hub).reserve('a')).toHaveProperty('code');
    expect(hub.stats().total.refusals).toEqual({ address: 2 });
  });

  test('pending publishes are bounded; sequence numbers have no holes', async () => {
    const hub = new Hub({ capacity: 1, overflow: 'wait', maxPending: 3, epoch: 'e' });
    const sink = connect(hub);
    sink.stall();
    const outcomes = Array.from({ length: 20 }, (_, i) =>
      hub.publish(added(i)).then(
        () => 'ok',
        (error: { code: string }) => error.code,
      ),
    );
    await turn();
    sink.resume();
    expect(new Set(await Promise.all(outcomes))).toEqual(new Set(['ok', 'OVERLOADED']));
    await hub.shutdown();
    expect(sink.versions).toEqual(sink.versions.map((_, i) => `e.${i + 1}`));
  });

  test('nor have they if more may be pending than a broadcaster allows by default', async () => {
    const hub = new Hub({ capacity: 1, overflow: 'wait', maxPending: 10_005, epoch: 'e', replayItems: 20_000 });
    const sink = connect(hub);
    sink.stall();
    const codes = Array.from({ length: 10_010 }, (_, i) => hub.publish(added(i)).catch((error: { code: string }) => error.code));
    sink.resume();
    const refused = (await Promise.all(codes)).filter((code) => code !== undefined);
    await hub.publish(added('after'));
    const accepted = 10_011 - refused.length;
    expect([refused.length, hub.version]).toEqual([3, `e.${accepted}`]);
    expect(coreOf(hub).start({ resourceVersion: 'e.0' })).toMatchObject({ missed: { length: accepted } });
  });

  test('nor are they out of order if a filter publishes while another publish waits', async () => {
    const hub = new Hub({ overflow: 'wait', epoch: 'e' });
    const all = connect(hub, undefined, { options: { overflow: 'drop-oldest', capacity: 100 } });
    const sink = new FakeSink();
    const write = sink.write.bind(sink);
    sink.write = (bytes) => {
      // What waited has just been accepted, and nobody has been told yet.
      if (sink.writes.length === 1) for (const object of [6, 7]) void hub.publish(added(object));
      return write(bytes);
    };
    connect(hub, sink, { options: { capacity: 3 } });
    const filter = ({ object }: WatchEvent): boolean => {
      if (object === 6) void hub.publish(added('inner'));
      return false;
    };
    connect(hub, undefined, { options: { capacity: 2, filter } });
    sink.stall();
    const publishing = [1, 2, 3, 4, 5].map((object) => hub.publish(added(object)));
    sink.resume();
    await Promise.all(publishing);
    await until(() => all.events.length === 8);
    expect(all.versions).toEqual([1, 2, 3, 4, 5, 6, 7, 8].map((n) => `e.${n}`));
    expect(all.objects).toEqual([1, 2, 3, 4, 5, 6, 7, 'inner']);
  });

  test('if none may be pending, a publish that need not wait is accepted', async () => {
    const hub = new Hub({ capacity: 1, overflow: 'wait', maxPending: 0, epoch: 'e' });
    const sink = connect(hub);
    sink.stall();
    await hub.publish(added(1));
    await hub.publish(added(2));
    await expect(hub.publish(added(3))).rejects.toMatchObject({
      code: 'OVERLOADED',
      limit: 0,
      message: expect.stringContaining('0 publishes'),
    });
    sink.resume();
    await turn();
    await hub.publish(added(4));
    expect(sink.versions).toEqual(['e.1', 'e.2', 'e.3']);
  });

  test.each<[string, HubOptions]>([
    ['capacity', { capacity: 0 }],
    ['replayBytes', { replayBytes: -1 }],
    ['replay', { replay: 2, replayItems: 1 }],
    ['maxSnapshots', { maxSnapshots: 0 }],
    ['flushIntervalMs', { flushIntervalMs: 0.5 }],
    ['maxClientsPerAddress', { maxClientsPerAddress: 0 }],
    ['replay', { replay: 1.5 }],
    ['maxClients', { maxClients: 0 }],
    ['epoch', { epoch: 'a.b' }],
    ['epoch', { epoch: 5 as unknown as string }], // no version of it could be continued
    ['overflow', { overflow: 'explode' as 'wait' }],
  ])('an invalid %s throws', (_name, options) => {
    expect(() => new Hub(options)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });
});

describe('follow', () => {
  test('a failed watch is also reported to clients that come back after its end, whatever their filter accepts', async () => {
    const hub = new Hub({ epoch: 'e' });
    for (const type of ['ADDED', 'HIDDEN']) await hub.publish({ type, object: 1 });
    const numbers = new Broadcaster<WatchEvent>();
    const throwing = ({ object }: WatchEvent): boolean => Boolean((object as { no: { such: 1 } }).no.such);
    const outcome = expect(hub.follow(numbers.watch({ filter: throwing }))).rejects.toThrow(TypeError);
    await numbers.publish(added(2));
    await outcome;
    const filter = ({ type }: WatchEvent): boolean => type === 'ADDED';
    const sinks = ['e.0', 'e.1', 'e.2'].map((resourceVersion) => {
      const start = coreOf(hub).start({ resourceVersion }, { options: { filter } }) as Start;
      return connect(hub, undefined, { start, options: { filter } });
    });
    expect(sinks.map(({ events, ended }) => [events.map(({ type }) => type), ended])).toEqual([
      [['ADDED', 'ERROR'], 'complete'],
      [['ERROR'], 'complete'],
      [['ERROR'], 'complete'],
    ]);
    expect(sinks[0]?.objects.at(-1)).toMatchObject({ code: 500 });
  });

  test('before a watch has failed, no event passes a filter that rejects it, even one without an object', async () => {
    const hub = new Hub();
    const sink = connect(hub, undefined, { options: { filter: () => false } });
    await hub.publish(added(undefined));
    await hub.shutdown();
    expect([sink.events, sink.ended]).toEqual([[], 'complete']);
  });

  test('bridges any watch, such as a filtered broadcaster, and ends with it', async () => {
    const numbers = new Broadcaster<WatchEvent<'n', number>>();
    const hub = new Hub<WatchEvent<'n', number>>();
    const followed = hub.follow(filter(numbers.watch(), (event) => (event.object % 2 === 0 ? event : undefined)));
    const sink = connect(hub as Hub);
    for (let i = 0; i < 300; i++) await numbers.publish({ type: 'n', object: i });
    await numbers.shutdown();
    await followed;
    expect(sink.objects).toEqual(Array.from({ length: 150 }, (_, i) => 2 * i));
    expect(sink.ended).toBe('complete');
  });

  test('a watch that fails is an ERROR for the clients, and its own error for the caller', async () => {
    const numbers = new Broadcaster<WatchEvent<'n', number>>();
    const hub = new Hub<WatchEvent<'n', number>>();
    const sink = connect(hub as Hub);
    const followed = hub.follow(
      numbers.watch({
        filter: () => {
          throw new Error('secret');
        },
      }),
    );
    const outcome = expect(followed).rejects.toThrow('secret');
    await numbers.publish({ type: 'n', object: 1 });
    await outcome;
    expect(sink.events).toMatchObject([{ type: 'ERROR', object: { code: 500, reason: 'InternalError' } }]);
    expect(JSON.stringify(sink.events)).not.toContain('secret');
  });

  test('that ERROR passes every filter', async () => {
    const numbers = new Broadcaster<WatchEvent>();
    const hub = new Hub();
    const sinks = [() => false, (event: WatchEvent) => (event.object as { a: { b: boolean } }).a.b].map((filter) =>
      connect(hub, undefined, { options: { filter } }),
    );
    const watch = numbers.watch({
      filter: (event) => event.type !== 'n' || Boolean((event.object as { no: { such: 1 } }).no.such),
    });
    const outcome = expect(hub.follow(watch)).rejects.toThrow(TypeError);
    await numbers.publish({ type: 'm', object: { a: { b: false } } });
    await numbers.publish({ type: 'n', object: 1 });
    await outcome;
    for (const { events, ended } of sinks) {
      expect(events).toMatchObject([{ type: 'ERROR', object: { code: 500 } }]);
      expect(ended).toBe('complete');
    }
  });

  test('a hub that is shut down releases the watch that it follows', async () => {
    const numbers = new Broadcaster<WatchEvent<'n', number>>();
    const hub = new Hub<WatchEvent<'n', number>>();
    const followed = hub.follow(numbers.watch());
    await hub.shutdown();
    await followed;
    expect(numbers.watchers).toBe(0);
    await hub.follow(numbers.watch());
    expect(numbers.watchers).toBe(0);
  });
});

test.each([null, undefined])('%s is not an event, for a hub as for a broadcaster', async (nothing) => {
  const hub = new Hub({ epoch: 'e' });
  const sink = connect(hub);
  for (const publisher of [new Broadcaster(), hub]) {
    const refusal = { code: 'INVALID_ARGUMENT', message: `event: expected an event, whose type is a string, got ${nothing}` };
    await expect(publisher.publish(nothing as never)).rejects.toMatchObject(refusal);
    expect(() => publisher.tryPublish(nothing as never)).toThrow(expect.objectContaining(refusal));
  }
  await hub.publish(added(1));
  await hub.shutdown();
  expect([hub.version, sink.objects]).toEqual(['e.1', [1]]);
});

test('a namespace that is not a string ends no client of coalesce', async () => {
  const hub = new Hub({ overflow: 'coalesce', capacity: 2 });
  const sink = connect(hub);
  sink.stall();
  const metadatas = [{ name: 'a' }, { name: 'a', namespace: { toString: 1, valueOf: 1 } }, { name: 'b' }, { name: 'a' }];
  for (const metadata of metadatas) await hub.publish(added({ metadata }));
  sink.resume();
  await hub.shutdown();
  expect(sink.ended).toBe('complete');
  expect(sink.objects.at(-1)).toBeDefined();
});

describe('errors in user code', () => {
  const oops = new Error('oops');
  const throwing = (): never => {
    throw oops;
  };

  test.each<[string, HubOptions, Partial<HubClient>, (hub: Hub) => void]>([
    ['a filter, live', {}, { options: { filter: throwing } }, () => {}],
    ['a snapshot', { snapshot: throwing }, {}, () => {}],
  ])('%s: the notice of the end has what was thrown', async (_what, options, client) => {
    const notices: HubNotice[] = [];
    const hub = new Hub({ ...options, onNotice: (notice) => void notices.push(notice) });
    connect(hub, undefined, client);
    hub.tryPublish(added(1));
    await until(() => hub.stats().clients.length === 0);
    expect(notices.at(-1)).toMatchObject({ type: 'close', reason: 'failed', error: oops });
  });

  test('a filter, with missed events: the same', async () => {
    const notices: HubNotice[] = [];
    const hub = new Hub({ epoch: 'e', onNotice: (notice) => void notices.push(notice) });
    hub.tryPublish(added(1));
    const start = coreOf(hub).start({ resourceVersion: 'e.0' }) as Start;
    connect(hub, undefined, { start, options: { filter: throwing } });
    expect(notices.at(-1)).toMatchObject({ type: 'close', reason: 'failed', error: oops });
  });

  test('a filter that throws at a missed event shows no later one either: its client would resume after that', () => {
    const hub: Hub = new Hub({
      epoch: 'e',
      capacity: 2,
      onNotice: ({ type }) => type === 'open' && void hub.publish(added('somebody has come')),
    });
    hub.tryPublish(added(1));
    const start = coreOf(hub).start({ resourceVersion: 'e.0' }) as Start;
    const filter = ({ object }: WatchEvent): boolean => (object === 1 ? throwing() : true);
    const sink = connect(hub, undefined, { start, options: { filter } });
    expect(sink).toMatchObject({ ended: 'failed', objects: [{ code: 500 }] });
  });

  test.each<[string, HubOptions, string | undefined]>([
    ['live', {}, undefined],
    ['on what was missed', {}, 'e.0'],
    ['on a snapshot', { snapshot: () => [1] }, undefined],
  ])(
    'a filter that returns a promise, which is truthy, shows its client nothing: %s',
    async (_what, options, resourceVersion) => {
      const notices: HubNotice[] = [];
      const hub = new Hub({ ...options, epoch: 'e', onNotice: (notice) => void notices.push(notice) });
      hub.tryPublish(added(1));
      const start = coreOf(hub).start({ resourceVersion }) as Start;
      const filter = (async () => false) as unknown as () => boolean;
      const sink = connect(hub, undefined, { start, options: { filter } });
      hub.tryPublish(added(2));
      await until(() => hub.stats().clients.length === 0);
      expect(sink.text).not.toContain('"object":1');
      expect(sink.text).not.toContain('"object":2');
      expect(notices.at(-1)).toMatchObject({
        reason: 'failed',
        error: { message: expect.stringContaining('filter: expected a boolean') },
      });
    },
  );

  test('a client that leaves is not an error', () => {
    const notices: HubNotice[] = [];
    const hub = new Hub({ onNotice: (notice) => void notices.push(notice) });
    connect(hub).session.gone();
    expect(notices.at(-1)).toMatchObject({ type: 'close', reason: 'gone' });
    expect(notices.at(-1)).not.toHaveProperty('error');
  });

  test.each(['snapshot', 'keyOf', 'onNotice'])('a %s that is not a function throws at once', (name) => {
    expect(() => new Hub({ [name]: [] })).toThrow(`${name}: expected a function`);
  });
});

describe('disconnect', () => {
  test('ends the selected clients at once, and returns their number', async () => {
    const hub = new Hub();
    const [ann, bob] = ['ann', 'bob'].map((identity) => connect(hub, undefined, { identity }));
    expect(hub.stats().clients.map(({ identity }) => identity)).toEqual(['ann', 'bob']);
    expect(hub.disconnect(({ identity }) => identity === 'ann')).toBe(1);
    expect([ann?.destroyed, bob?.destroyed]).toEqual([true, false]);
    await hub.publish(added(1));
    await turn();
    expect([ann?.objects, bob?.objects]).toEqual([[], [1]]);
    expect(hub.stats().total).toMatchObject({ cut: 1, cuts: { disconnected: 1 } });
  });

  test('by a filter, which `stats` asks, counts a client once', async () => {
    const hub = new Hub({ epoch: 'e' });
    const filter = ({ object }: WatchEvent): boolean => {
      if (object === 2) hub.disconnect(() => true);
      return true;
    };
    const sink = connect(hub, undefined, { options: { filter } });
    sink.stall();
    await hub.publish(added(1));
    await turn();
    await hub.publish(added(2));
    expect(hub.stats()).toMatchObject({ clients: [], total: { clients: 1, delivered: 1, cuts: { disconnected: 1 } } });
  });

  test('is refused if the choice is a promise, which is truthy: nobody is cut', () => {
    const hub = new Hub();
    const sinks = [connect(hub), connect(hub)];
    expect(() => hub.disconnect((async () => false) as never)).toThrow('which: expected a boolean, not a promise');
    // Nor does what it rejects with end the process.
    expect(() => hub.disconnect((() => Promise.reject(new Error('late'))) as never)).toThrow('not a promise');
    expect(sinks.map(({ destroyed }) => destroyed)).toEqual([false, false]);
  });
});

test('a client whose connection has room again gets what waits before its queue is too long, and not only in its turn', async () => {
  const hub = new Hub({ overflow: 'wait', capacity: 200, maxQueuedBytes: 3_000 });
  const filter = ({ object }: WatchEvent): boolean => (object as { n: number }).n % 3 > 0;
  const sink = connect(hub, undefined, { options: { maxQueuedBytes: 1_500, filter } });
  let n = 0;
  const publish = (count: number, fill: number): void => {
    for (let i = 0; i < count; i++) {
      void hub.publish({ type: 'MODIFIED', object: { metadata: { name: `${n}` }, n: n++, filler: 'x'.repeat(fill) } });
      // A sixteenth and one event more: those have 114 bytes without the filler.
      expect(sink.session.queuedBytes).toBeLessThanOrEqual((1_500 * 17) / 16 + 114 + fill);
    }
  };
  publish(13, 0);
  sink.stall();
  await turn();
  publish(12, 31);
  sink.resume();
  publish(2, 29);
  publish(3, 40);
  await turn();
  const numbers = sink.objects.map((object) => (object as unknown as { n: number }).n);
  expect(numbers).toEqual(Array.from({ length: n }, (_, at) => at).filter((at) => at % 3 > 0));
});

describe.each(OVERFLOWS)('a client of %s that reads loses nothing', (overflow) => {
  test.each(['makes room', 'leaves'])('when another, for which many publishes wait, %s', async (how) => {
    const hub = new Hub({ overflow: 'wait', epoch: 'e' });
    const slow = connect(hub);
    slow.stall();
    const fast = connect(hub, undefined, { options: { overflow, capacity: 4 } });
    const all = Array.from({ length: 500 }, (_, object) => added(object));
    const published = all.slice(1).map((event) => hub.publish(event));
    await turn();
    expect(fast.events.length).toBeLessThan(200);
    if (how === 'leaves') slow.session.gone();
    else slow.resume();
    published.push(hub.publish(all[0] as WatchEvent));
    await Promise.all(published);
    await hub.shutdown();
    const objects = [...all.keys()].slice(1).concat(0);
    expect(fast.objects).toEqual(objects);
    if (how !== 'leaves') expect(slow.objects).toEqual(objects);
  });
});

test('the smallest queue determines the pace only while its client is connected', async () => {
  let turns = 0;
  const hub = new Hub({
    nextTurn: (callback) => {
      turns++;
      setImmediate(callback);
    },
  });
  const turnsFor = async (events: number): Promise<number> => {
    await turn();
    turns = 0;
    for (let i = 0; i < events; i++) await hub.publish(added(i));
    return turns;
  };
  const usual = await turnsFor(200);
  const small = [4, 4, 8].map((capacity) => connect(hub, undefined, { options: { capacity } }));
  const slow = await turnsFor(200);
  small[0]?.session.gone();
  expect(await turnsFor(200)).toBe(slow);
  for (const { session } of small) session.gone();
  expect(slow).toBeGreaterThan(4 * usual);
  expect(await turnsFor(200)).toBe(usual);
});

test('however long the queues are, a publisher pauses every thousand events or so, in which connections can send', async () => {
  let turns = 0;
  const hub = new Hub({
    capacity: 1_000_000,
    nextTurn: (callback) => {
      turns++;
      setImmediate(callback);
    },
  });
  connect(hub, undefined, { options: { capacity: Number.MAX_SAFE_INTEGER } });
  await turn();
  turns = 0;
  for (let i = 0; i < 5_000; i++) await hub.publish(added(i));
  expect(turns).toBeGreaterThanOrEqual(4);
});

test('an event that is refused for overload is not encoded first', async () => {
  const hub = new Hub({ capacity: 1, overflow: 'wait', maxPending: 1 });
  const sink = connect(hub);
  sink.stall();
  for (let i = 0; i < 2; i++) await hub.publish(added(i));
  const pending = hub.publish(added('pending'));
  const toJSON = (): never => expect.unreachable();
  await expect(hub.publish(added({ toJSON }))).rejects.toMatchObject({ code: 'OVERLOADED' });
  sink.resume();
  await pending;
});

test('logging a hub prints its statistics', () => {
  const hub = new Hub({ epoch: 'e' });
  hub.tryPublish(added('secret'));
  expect(JSON.parse(JSON.stringify(hub))).toEqual(hub.stats());
});
