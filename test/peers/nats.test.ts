// What a hub needs of a source: the fake has it, and a real nats-server. Then what only NATS can do.
import { setTimeout as sleep } from 'node:timers/promises';
import { DiscardPolicy, jetstreamManager, type StreamConfig } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { Hub } from '../../src/bridge/hub/hub.ts';
import type { HubSource, SourceEvent, SourcePosition } from '../../src/bridge/hub/source/source.ts';
import { NatsStream, type NatsStreamOptions } from '../../src/nats/index.ts';
import { FakeSource } from '../../src/testing/index.ts';
import { component, isMissing } from '../components.ts';
import { eventually } from '../eventually.ts';
import { type NatsServer, startNats } from './nats-server.ts';

/** Waits as long as the test may take. */
const poll = (value: () => unknown): ReturnType<typeof expect.poll> => expect.poll(value, { timeout: 25_000, interval: 5 });

const missing = isMissing(component('nats-server'));
let nats: NatsServer;
let admin: NatsConnection;
const streams: NatsStream[] = [];
let streamCount = 0;

beforeAll(async () => {
  if (missing) return;
  nats = await startNats();
  admin = await connect({ servers: nats.address, maxReconnectAttempts: -1, reconnectTimeWait: 50 });
});
afterEach(async () => {
  for (const stream of streams.splice(0)) await stream.close();
});
afterAll(async () => {
  await admin?.close();
  await nats?.stop();
});

const open = (options: Partial<NatsStreamOptions> = {}): NatsStream => {
  const stream = new NatsStream({ servers: nats.address, stream: `s${++streamCount}`, create: {}, ...options });
  streams.push(stream);
  return stream;
};
const message = (n: number, topics: readonly string[] = []) => ({
  json: JSON.stringify({ type: 'MODIFIED', object: n }),
  topics,
  id: `id-${streamCount}-${n}`,
});
const numberOf = ({ json }: SourceEvent): unknown => JSON.parse(json).object;
const limits = (items: number) => ({ items, bytes: 1_000_000, signal: new AbortController().signal });
const never = new AbortController().signal;

/** Follows until so many events have come. */
async function collect(source: HubSource, from: Parameters<HubSource['follow']>[0], count: number): Promise<SourceEvent[]> {
  const ended = new AbortController();
  const following = await source.follow(from, ended.signal);
  const events: SourceEvent[] = [];
  for await (const batch of following?.batches ?? []) {
    events.push(...batch);
    if (events.length >= count) break;
  }
  ended.abort();
  return events;
}
const positionOf = async (source: HubSource, { sequence, mark }: SourceEvent): Promise<SourcePosition> => {
  const ended = new AbortController();
  const { position } = (await source.follow({ last: 0 }, ended.signal)) as { position: SourcePosition };
  ended.abort();
  return { epoch: position.epoch, sequence, mark };
};

describe.each<[string, boolean, () => HubSource]>([
  ['the fake', false, () => new FakeSource()],
  ['NATS', missing, () => open()],
])('a source: %s', (_name, skips, create) => {
  describe.skipIf(skips)('', () => {
    test('events come in order, with consecutive sequences, to whoever follows, also what was there before', async () => {
      const source = create();
      for (let n = 1; n <= 5; n++) await source.publish(message(n));
      const events = await collect(source, { last: 3 }, 3);
      expect(events.map(({ sequence }) => sequence)).toEqual([3, 4, 5]);
      expect(events.map(numberOf)).toEqual([3, 4, 5]);
      const ended = new AbortController();
      const live = await source.follow({ last: 0 }, ended.signal);
      expect(live).toMatchObject({ position: { sequence: 5 }, last: 5 });
      for (let n = 6; n <= 30; n++) await source.publish(message(n));
      const got: unknown[] = [];
      for await (const batch of live?.batches ?? []) {
        got.push(...batch.map(numberOf));
        if (got.length === 25) break;
      }
      expect(got).toEqual(Array.from({ length: 25 }, (_, i) => i + 6));
      ended.abort();
    });

    test('a position is continued after, by whoever follows and whoever reads', async () => {
      const source = create();
      for (let n = 1; n <= 10; n++) await source.publish(message(n));
      const events = await collect(source, { last: 10 }, 10);
      const fourth = await positionOf(source, events[3] as SourceEvent);
      expect((await collect(source, fourth, 6)).map(numberOf)).toEqual([5, 6, 7, 8, 9, 10]);
      const { epoch } = fourth;
      expect(await source.read({ epoch, first: 5 }, limits(3))).toEqual(events.slice(4, 7));
      expect(await source.read({ epoch, first: 5 }, limits(100))).toEqual(events.slice(4));
      expect(await source.read({ epoch, first: 11 }, limits(3))).toEqual([]);
      expect(await source.read({ epoch, first: 1 }, limits(2))).toEqual(events.slice(0, 2));
      expect(await source.read({ epoch: 'other', first: 5 }, limits(3))).toBeUndefined();
    });

    test('a position that it does not have is not', async () => {
      const source = create();
      for (let n = 1; n <= 3; n++) await source.publish(message(n));
      const [first, second, third] = (await collect(source, { last: 3 }, 3)) as [SourceEvent, SourceEvent, SourceEvent];
      for (const wrong of [
        { ...(await positionOf(source, second)), mark: 'other' },
        { ...(await positionOf(source, third)), mark: 'other' },
        { ...(await positionOf(source, first)), epoch: 'other' },
        { ...(await positionOf(source, third)), sequence: 4 },
      ]) {
        expect(await source.follow(wrong, never)).toBeUndefined();
      }
    });

    test('an id is stored once; topics come back', async () => {
      const source = create();
      const topics = ['a', 'b.c', '* >', '', 'ä€𐍈', '=', '%41', 'x'.repeat(80)];
      await Promise.all([source.publish(message(1, topics)), source.publish(message(1, topics))]);
      await source.publish(message(2));
      const events = await collect(source, { last: 10 }, 2);
      expect(events.map(({ topics }) => topics)).toEqual([topics, []]);
    });
  });
});

describe.skipIf(missing)('hubs on NATS', () => {
  test('a crash of the server loses nothing, and hubs and publishers find back by themselves', async () => {
    const onError = (): void => {};
    const hubs = [new Hub({ source: open(), onError }), new Hub({ source: open({ stream: `s${streamCount}` }), onError })];
    await Promise.all(hubs.map((hub) => hub.ready()));
    const watches = hubs.map((hub) => hub.watch());
    let sent = 0;
    let more = true;
    const publishing = hubs.map(async (hub) => {
      while (more) await hub.publish({ type: 'MODIFIED', object: ++sent });
    });
    const got: unknown[][] = [[], []];
    const reading = watches.map(async (watch, at) => {
      for await (const { object } of watch) got[at]?.push(object);
    });
    await poll(() => got[1]?.length).toBeGreaterThan(20);
    await nats.kill();
    await nats.start();
    const before = got[1]?.length ?? 0;
    await poll(() => got[1]?.length).toBeGreaterThan(before + 20);
    more = false;
    await Promise.all(publishing);
    await poll(() => got.map(({ length }) => length)).toEqual([sent, sent]);
    expect(got[0]).toEqual(got[1]);
    expect(new Set(got[0]).size).toBe(sent);
    expect(hubs.map((hub) => hub.stats().source?.resets)).toEqual([0, 0]);
    await Promise.all(hubs.map((hub) => hub.shutdown()));
    await Promise.all(reading);
  });

  test('a publish is not tried again when the stream may have forgotten its id: it would be stored twice', async () => {
    const hub = new Hub({ source: open({ create: { duplicateWindowMs: 1_000 } }) });
    await hub.ready();
    nats.pause();
    const resumed = sleep(2_000).then(() => nats.resume());
    await expect(hub.publish({ type: 'MODIFIED', object: 1 })).rejects.toMatchObject({ code: 'TIMEOUT', limit: 1_000 });
    await resumed;
    // It was stored, and nobody has said so.
    await poll(() => hub.stats().accepted).toBe(1);
    await hub.shutdown();
  });

  test('a stream that is full is named: nothing was stored', async () => {
    const name = `s${++streamCount}`;
    const limits = { max_msgs: 1, discard: DiscardPolicy.New };
    await (await jetstreamManager(admin)).streams.add({ name, subjects: [name, `${name}.>`], ...limits });
    await open({ stream: name }).publish(message(1));
    const hub = new Hub({ source: open({ stream: name, publishTimeoutMs: 300 }) });
    const refused = (): Promise<void> =>
      expect(hub.publish({ type: 'MODIFIED', object: 2 })).rejects.toMatchObject({
        code: 'REFUSED',
        message: expect.stringContaining('maximum messages exceeded'),
        status: { code: 503 },
      });
    // A server that has answered nothing within that time has refused nothing.
    await eventually(refused);
    await hub.ready();
    expect(hub.stats().accepted).toBe(1);
    await hub.shutdown();
  });

  test.each([
    ['publishing', 'publish: { deny: ["chat"] }', 'Permissions Violation for Publish to "chat"'],
    ['the answers', 'subscribe: { deny: ["_INBOX.>"] }', 'Permissions Violation for Subscription to "_INBOX'],
  ])('a permission for %s that is missing is named at once, and not when the time is over', async (_what, rules, named) => {
    const own = await startNats(`authorization: { users: [{ user: me, password: x, permissions: { ${rules} } }] }`);
    try {
      const connection = { user: 'me', pass: 'x' };
      const stream = new NatsStream({ servers: own.address, stream: 'chat', publishTimeoutMs: 600_000, connection });
      streams.push(stream);
      await expect(stream.publish(message(1))).rejects.toMatchObject({
        code: 'REFUSED',
        message: expect.stringContaining(named),
        status: { code: 403 },
      });
    } finally {
      await own.stop();
    }
  });

  test('an event of a subject that is not below the own one is none, whatever topics it would have', async () => {
    const name = `s${++streamCount}`;
    const other = 'x'.repeat(name.length);
    await (await jetstreamManager(admin)).streams.add({ name, subjects: [name, `${name}.>`, `${other}.>`] });
    const hub = new Hub<{ type: string; object: unknown }>({ source: open({ stream: name }), topicsOf: () => 'room' });
    await hub.ready();
    const watch = hub.watch({ topics: ['room'] });
    for (const subject of [`${other}.room`, `${name}.room`]) {
      admin.publish(subject, JSON.stringify({ type: 'MODIFIED', object: subject }));
    }
    expect((await watch.next()).value).toMatchObject({ object: `${name}.room` });
    expect(hub.stats()).toMatchObject({ accepted: 1, source: { skipped: 1 } });
    await hub.shutdown();
  });

  test('what the server has lost is told, also to a hub that was not there', async () => {
    const name = `s${++streamCount}`;
    const publish = async (hub: Hub, from: number, to: number): Promise<void> => {
      for (let n = from; n <= to; n++) await hub.publish({ type: 'MODIFIED', object: n });
    };
    const witness = new Hub({ source: open({ stream: name }) });
    await witness.ready();
    const watch = witness.watch() as AsyncIterator<{ type: string; object: unknown; resourceVersion?: string }>;
    await publish(witness, 1, 3);
    await nats.save();
    await publish(witness, 4, 5);
    const versions: (string | undefined)[] = [];
    for (let n = 1; n <= 5; n++) versions.push((await watch.next()).value.resourceVersion);
    await nats.loseSinceSaved();
    const writer = new Hub({ source: open({ stream: name }) });
    await publish(writer, 44, 47);
    expect((await watch.next()).value).toMatchObject({ type: 'ERROR', object: { code: 410 } });
    const fresh = new Hub({ source: open({ stream: name }), replayItems: 1 });
    const lost = fresh.watch({ after: versions[4] });
    expect((await lost.next()).value).toMatchObject({ type: 'ERROR', object: { code: 410 } });
    const kept = fresh.watch({ after: versions[2] });
    expect((await kept.next()).value).toMatchObject({ object: 44 });
    await Promise.all([witness, writer, fresh].map((hub) => hub.shutdown()));
  });

  test('a stream that was deleted and created again is another one', async () => {
    // In memory: nats-server 2.9 removes the files of a stream later, and with them those of one that has its name by then.
    const stream = open({ create: { storage: 'memory' } });
    const hub = new Hub({ source: stream });
    await hub.publish({ type: 'MODIFIED', object: 1 });
    await poll(() => hub.stats().accepted).toBe(1);
    const { version } = hub;
    const watch = hub.watch({ after: version });
    const manager = await jetstreamManager(admin);
    await manager.streams.delete(`s${streamCount}`);
    await hub.publish({ type: 'MODIFIED', object: 2 });
    expect((await watch.next()).value).toMatchObject({ type: 'ERROR', object: { code: 410 } });
    await poll(() => hub.stats().source).toMatchObject({ phase: 'following', resets: 1 });
    expect(hub.version.split('~')[0]).not.toBe(version.split('~')[0]);
    await hub.shutdown();
  });

  test('a stream that would leave holes is refused, and one that others write to is read as far as it can be', async () => {
    const manager = await jetstreamManager(admin);
    const name = `s${++streamCount}`;
    const config: Partial<StreamConfig> & { name: string } = { name, subjects: [name, `${name}.>`], max_msgs_per_subject: 1 };
    await manager.streams.add(config);
    const hub = new Hub({ source: open({ stream: name }) });
    await poll(() => (hub.stats().source?.error as { code?: string })?.code).toBe('INVALID_ARGUMENT');
    await manager.streams.update(name, { max_msgs_per_subject: -1 });
    await poll(() => hub.stats().source?.phase).toBe('following');
    const watch = hub.watch();
    for (const text of ['not JSON', '[]', '{"type":1}', '{"type":"t","object":7}']) admin.publish(`${name}.room`, text);
    expect((await watch.next()).value).toMatchObject({ type: 't', object: 7 });
    expect(hub.stats()).toMatchObject({ accepted: 1, source: { skipped: 3 } });
    await hub.shutdown();
  });

  test('an event that was deleted from among others is a gap, and told', async () => {
    const hub = new Hub({ source: open(), replayItems: 1 });
    const name = `s${streamCount}`;
    await hub.ready();
    const watch = hub.watch();
    for (let n = 1; n <= 5; n++) await hub.publish({ type: 'MODIFIED', object: n });
    const { value } = (await watch.next()) as { value: { resourceVersion: string } };
    await poll(() => hub.stats().accepted).toBe(5);
    await (await jetstreamManager(admin)).streams.deleteMessage(name, 3);
    const again = hub.watch({ after: value.resourceVersion });
    expect((await again.next()).value).toMatchObject({ object: 2 });
    expect((await again.next()).value).toMatchObject({ type: 'ERROR', object: { code: 410 } });
    await hub.shutdown();
  });

  test('the last events that were deleted are not waited for', async () => {
    const first = new Hub({ source: open() });
    const name = `s${streamCount}`;
    for (let n = 1; n <= 5; n++) await first.publish({ type: 'MODIFIED', object: n });
    const { streams: admins } = await jetstreamManager(admin);
    for (const sequence of [4, 5]) await admins.deleteMessage(name, sequence);
    const hubs = [0, 1, 100].map((replayItems) => new Hub({ source: open({ stream: name }), replayItems }));
    for (const hub of hubs) await hub.ready();
    expect(hubs.map((hub) => hub.stats().accepted)).toEqual([0, 1, 3]);
    for (const sequence of [1, 2, 3]) await admins.deleteMessage(name, sequence);
    const last = new Hub({ source: open({ stream: name }), replayItems: 10 });
    await last.ready();
    const watch = last.watch();
    await first.publish({ type: 'MODIFIED', object: 6 });
    expect((await watch.next()).value).toMatchObject({ object: 6 });
    for (const hub of [first, ...hubs, last]) await hub.shutdown();
  });

  test('a server that is away is said: publishes time out, the hub is waiting', async () => {
    const away = new NatsStream({ servers: '127.0.0.1:1', stream: 'none', publishTimeoutMs: 200 });
    const hub = new Hub({ source: away, onError: () => {} });
    await expect(hub.publish({ type: 'MODIFIED', object: 1 })).rejects.toMatchObject({ code: 'TIMEOUT', limit: 200 });
    expect(hub.stats().source).toMatchObject({ phase: 'waiting' });
    await hub.shutdown();
    await away.close();
    await expect(away.publish(message(1))).rejects.toMatchObject({ code: 'CLOSED' });
  });

  test('a consumer that is read no more goes away', async () => {
    const hub = new Hub({ source: open() });
    await poll(() => hub.stats().source?.phase).toBe('following');
    const manager = await jetstreamManager(admin);
    const consumers = async (): Promise<number> => (await manager.streams.info(`s${streamCount}`)).state.consumer_count;
    expect(await consumers()).toBe(1);
    await hub.shutdown();
    await poll(consumers).toBe(0);
  });
});
