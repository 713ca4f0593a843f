// The members of one etcd as one: who is asked next, for how long, and what an answer has to look like.
import { once } from 'node:events';
import { type AddressInfo, createServer, connect as createSocket, type Socket } from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import { EtcdStorage, type EtcdStorageOptions } from '../../src/storage/etcd/index.ts';
import { Channel, RANGE, TXN, WATCH } from '../../src/storage/etcd/wire/channel.ts';
import { ProtoWriter } from '../../src/storage/etcd/wire/messages.ts';
import { ListenerCount } from '../../src/testing/fakes/fake-clock.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { closers } from '../closing.ts';
import { until } from '../eventually.ts';
import { type Answers, type FakeCall, FakeEtcd, header, range, STATUS, status, watchResponse } from './fake-etcd.ts';
import { macrotask } from './support.ts';

const closing = closers();

async function fake(answers: Answers = {}): Promise<FakeEtcd> {
  const etcd = await FakeEtcd.start(answers);
  closing.push(() => etcd.stop());
  return etcd;
}

function storageOf(members: readonly { readonly url: string }[], options: Partial<EtcdStorageOptions> = {}) {
  const clock = new FakeClock();
  const schedule = vi.spyOn(clock, 'schedule');
  const storage = new EtcdStorage({ endpoints: members.map(({ url }) => url), clock, random: () => 1, ...options });
  closing.push(() => storage.close());
  /** Everything that was scheduled, in milliseconds. */
  const scheduled = (): number[] => schedule.mock.calls.map(([ms]) => ms);
  return { clock, storage, scheduled };
}

const written = new ProtoWriter().message(1, header(8)).bool(2, true).finish();
const object = { metadata: { name: 'a' } };
const noLeader = (call: FakeCall): void => call.refuse(14, 'no leader');
const silent = (): void => {};

describe('requests and members', () => {
  it('a read leaves time for the other members, a write has all of it', async () => {
    const members = [await fake({ [RANGE]: silent, [TXN]: silent }), await fake({ [TXN]: silent }), await fake()];
    const { storage, clock, scheduled } = storageOf(members, { requestTimeoutMs: 1_000 });
    const reading = storage.currentVersion();
    await until(() => members[0]?.of(RANGE).length === 1);
    expect(scheduled()).toEqual([3_000, 334, 334]); // to connect, for the version, for the read
    clock.advance(334);
    expect(await reading).toBe('7');
    expect(members.map((each) => each.of(RANGE).length)).toEqual([1, 1, 0]);
    expect(scheduled().slice(3)).toEqual([3_000, 222, 222]);
    const writing = storage.create('a', object).catch((error: unknown) => error);
    await until(() => members[1]?.of(TXN).length === 1);
    expect(scheduled().at(-1)).toBe(1_000);
    clock.advance(1_000);
    expect(await writing).toMatchObject({
      code: 'TIMEOUT',
      message: 'create a: no answer within 1000 ms; it may have happened anyway',
    });
    expect(members.map((each) => each.of(TXN).length)).toEqual([0, 1, 0]);
  });

  it('after a round of failures it waits, longer each time, until the time is over; what failed is told', async () => {
    const members = [await fake({ [RANGE]: noLeader }), await fake({ [RANGE]: noLeader })];
    const { storage, clock, scheduled } = storageOf(members, { requestTimeoutMs: 300 });
    const reading = storage.currentVersion().catch((error: unknown) => error);
    const waits = (): number[] => scheduled().filter((ms) => ms === 50 || ms === 100);
    await until(() => waits().length === 1);
    expect(members.map((each) => each.of(RANGE).length)).toEqual([1, 1]);
    clock.advance(50);
    await until(() => waits().length === 2);
    expect(members.map((each) => each.of(RANGE).length)).toEqual([2, 2]);
    clock.advance(100);
    expect(await reading).toMatchObject({ code: 'TIMEOUT', message: 'read the revision: no leader' });
    expect(members.map((each) => each.of(RANGE).length)).toEqual([3, 3]); // and would wait for 200
    expect([waits(), clock.pending]).toEqual([[50, 100], 0]);
  });

  it('what failed before an attempt that had no time says more than that', async () => {
    const members = [await fake({ [RANGE]: noLeader }), await fake({ [RANGE]: silent })];
    const { storage, clock } = storageOf(members, { requestTimeoutMs: 100 });
    const reading = storage.currentVersion().catch((error: unknown) => error);
    await until(() => members[1]?.of(RANGE).length === 1);
    clock.advance(50);
    expect(await reading).toMatchObject({ code: 'TIMEOUT', message: 'read the revision: no leader' });
    const alone = storageOf([members[1] as FakeEtcd], { requestTimeoutMs: 100 });
    const asking = alone.storage.currentVersion().catch((error: unknown) => error);
    await until(() => members[1]?.of(RANGE).length === 2);
    alone.clock.advance(100);
    expect(await asking).toMatchObject({ message: 'read the revision: no answer within 100 ms' });
  });

  it('two that fail at the same member go on at the next one, both of them', async () => {
    const waiting: FakeCall[] = [];
    const bad = await fake({
      [RANGE]: (call) => {
        if (waiting.push(call) === 2) for (const each of waiting) noLeader(each);
      },
    });
    const good = await fake();
    const { storage } = storageOf([bad, good]);
    await Promise.all([storage.currentVersion(), storage.get('a')]);
    expect([bad.of(RANGE).length, good.of(RANGE).length]).toEqual([2, 2]);
  });

  it('a wait between two attempts ends with its signal, and nothing is left of it', async () => {
    const { storage, clock, scheduled } = storageOf([await fake({ [RANGE]: noLeader })]);
    const abort = new AbortController();
    const listeners = new ListenerCount(abort.signal);
    const reading = storage.get('a', { signal: abort.signal }).catch((error: unknown) => error);
    await until(() => scheduled().includes(50));
    abort.abort(new Error('enough'));
    expect([await reading, listeners.count, clock.pending]).toEqual([new Error('enough'), 0, 0]);
    await expect(storage.get('a', { signal: abort.signal })).rejects.toThrow('enough');
  });

  it('a new session is asked for its version again', async () => {
    const etcd = await fake();
    const { storage } = storageOf([etcd], { random: () => 0 });
    await storage.currentVersion();
    etcd.cut();
    await storage.currentVersion();
    await storage.currentVersion();
    expect([etcd.of(STATUS).length, etcd.of(RANGE).length]).toEqual([2, 3]);
  });

  it.each([
    ['3.4.30', 'is etcd 3.4.30: 3.4.31, 3.5.13 or newer is needed'],
    ['', 'is etcd of no version: '],
    ['9'.repeat(80), `is etcd ${'9'.repeat(40)}: `],
  ])('the version %j is refused, without asking the next member', async (version, message) => {
    const old = await fake({ [STATUS]: (call) => call.answer(status(version)) });
    const good = await fake();
    const { storage } = storageOf([old, good]);
    const refusal = { code: 'REFUSED', status: { code: 500 }, message: expect.stringContaining(`${old.url} ${message}`) };
    await expect(storage.currentVersion()).rejects.toMatchObject(refusal);
    expect(good.calls).toEqual([]);
  });

  it('a TLS handshake that does not come to an end is given up in time', async () => {
    const accepted = createServer(() => {});
    accepted.listen(0, '127.0.0.1');
    await once(accepted, 'listening');
    closing.push(async () => void accepted.close());
    const { port } = accepted.address() as AddressInfo;
    const good = await fake();
    const { storage, clock } = storageOf([{ url: `https://127.0.0.1:${port}` }, good], { connectTimeoutMs: 500 });
    const reading = storage.currentVersion();
    await once(accepted, 'connection');
    clock.advance(500);
    expect(await reading).toBe('7');
  });
});

it('a session that is closed in the tick in which it is connected throws nothing that nobody catches', async () => {
  const { url } = await fake();
  const uncaught: unknown[] = [];
  const onUncaught = (error: unknown): void => void uncaught.push(error);
  const others = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException').on('uncaughtException', onUncaught);
  closing.push(async () => {
    process.removeListener('uncaughtException', onUncaught);
    for (const each of others) process.on('uncaughtException', each);
  });
  let isConnected = false;
  const createConnection = (): Socket => {
    const socket = createSocket(Number(new URL(url).port), '127.0.0.1');
    // After the listener of the session, which is told that it is connected in the next tick.
    queueMicrotask(() =>
      socket.once('connect', () => {
        isConnected = true;
        channel.close();
      }),
    );
    return socket;
  };
  const channel = new Channel({
    ...{ endpoints: [url], user: undefined, password: undefined, clock: new FakeClock(), random: () => 1 },
    ...{
      tls: { createConnection },
      requestTimeoutMs: 1_000,
      connectTimeoutMs: 1_000,
      keepAliveMs: 1_000,
      maxResponseBytes: 1_000,
    },
  });
  expect(await channel.ask(RANGE, new Uint8Array())).toMatchObject({ failure: { message: 'closed' } });
  await until(() => isConnected);
  await macrotask();
  expect(uncaught).toEqual([]);
});

describe('what answers', () => {
  const page =
    (headers: Record<string, string | number>) =>
    ({ stream }: FakeCall): void => {
      stream.respond(headers);
      stream.end('x');
    };

  it.each<[string, (call: FakeCall) => void]>([
    ['a page of HTTP 200', page({ ':status': 200, 'content-type': 'text/html' })],
    ['one without a type', page({ ':status': 200 })],
    ['HTTP 503', page({ ':status': 503, 'content-type': 'application/grpc' })],
    ['no status at the end', page({ ':status': 200, 'content-type': 'application/grpc' })],
    ['a message in HTTP 503', (call) => call.open({ ':status': 503 }).send(range(9)).end()],
    ['a message of another type', (call) => call.open({ 'content-type': 'text/html' }).send(range(9)).end()],
    ['a reset', ({ stream }) => stream.close(2)],
  ])('with %s is no etcd: the next member is asked', async (_, answer) => {
    const [bad, good] = [await fake({ [RANGE]: answer }), await fake()];
    const { storage } = storageOf([bad, good]);
    expect(await storage.currentVersion()).toBe('7');
    expect(bad.of(RANGE)).toHaveLength(1);
  });

  it('a request that was not looked at is made elsewhere, also a write; one that was, is not', async () => {
    for (const [code, elsewhere] of [
      [7, 1],
      [2, 0],
    ] as const) {
      const bad = await fake({ [TXN]: ({ stream }) => stream.close(code) });
      const good = await fake({ [TXN]: (call) => call.answer(written) });
      const { storage } = storageOf([bad, good]);
      const created = storage.create('a', object).catch((error: unknown) => error);
      expect(await created).toMatchObject(elsewhere ? object : { code: 'TIMEOUT', message: expect.stringContaining('may have') });
      expect(good.of(TXN)).toHaveLength(elsewhere);
    }
  });

  it('the first message is the answer, if the status behind it is OK', async () => {
    const twice = storageOf([await fake({ [RANGE]: (call) => call.open().send(range(7)).send(range(9)).end() })]);
    expect(await twice.storage.currentVersion()).toBe('7');
    const refused = storageOf([await fake({ [RANGE]: (call) => call.open().send(range(7)).end(9, 'no') })]);
    await expect(refused.storage.currentVersion()).rejects.toThrow('read the revision: no');
  });

  it('what no refusal is known for is 500, with the words of etcd for the owner, and not for clients', async () => {
    for (const [answer, message] of [
      [(call: FakeCall) => call.open().end(), 'an answer without a message'],
      [(call: FakeCall) => call.refuse(11, 'out of something'), 'out of something'],
      [(call: FakeCall) => call.refuse(5, 'future revision'), 'future revision'],
    ] as const) {
      const { storage } = storageOf([await fake({ [RANGE]: answer })]);
      const status = { code: 500, reason: 'InternalError', message: 'the storage has failed' };
      const told = `500 InternalError: list /watchmux/: ${message}`;
      await expect(storage.list()).rejects.toMatchObject({ code: 'REFUSED', message: told, status });
    }
  });

  it('gRPC of any encoding is asked for as gRPC, and read', async () => {
    const etcd = await fake({ [RANGE]: (call) => call.open({ 'content-type': 'application/grpc+proto' }).send(range(9)).end() });
    expect(await storageOf([etcd]).storage.currentVersion()).toBe('9');
    expect(etcd.of(RANGE)[0]?.headers).toMatchObject({ ':method': 'POST', 'content-type': 'application/grpc', te: 'trailers' });
  });

  it('messages of a refusal are read as URLs are, of a thousand characters', async () => {
    const text = `100 % \u00e4 ${'x'.repeat(2_000)}`;
    const { storage } = storageOf([await fake({ [RANGE]: (call) => call.refuse(9, text) })]);
    const error = await storage.currentVersion().catch((thrown: Error) => thrown);
    const { length } = encodeURIComponent('100 % \u00e4 ');
    expect((error as Error).message).toContain(`read the revision: 100 % \u00e4 ${'x'.repeat(1_000 - length)}`);
    expect((error as Error).message).not.toContain('x'.repeat(1_000 - length + 1));
  });

  it('a storage that is closed answers nothing, and may be closed again', async () => {
    const etcd = await fake();
    const { storage } = storageOf([etcd]);
    await storage.currentVersion();
    await storage.close();
    await storage.close();
    for (const work of [
      () => storage.get('a'),
      () => storage.list(),
      () => storage.watch(),
      () => storage.create('a', object),
      () => storage.update('a', () => object),
      () => storage.delete('a'),
      () => storage.currentVersion(),
      () => storage.requestProgress(),
    ]) {
      await expect(work()).rejects.toMatchObject({ code: 'CLOSED', message: 'the storage is closed' });
    }
    expect(etcd.calls.filter(({ path }) => path !== STATUS)).toHaveLength(1);
  });

  it('a scope that is closed closes nothing else', async () => {
    const { storage } = storageOf([await fake()]);
    await storage.scope('x/').close();
    expect(await storage.currentVersion()).toBe('7');
  });
});

describe('pings', () => {
  const watching: Answers = { [WATCH]: (call) => void call.open().send(watchResponse(7, [], { created: true })) };

  it('are sent while there are watches, each after an answer and a while', async () => {
    const etcd = await fake(watching);
    const { storage, clock } = storageOf([etcd], { keepAliveMs: 5_000 });
    await storage.currentVersion();
    expect(clock.pending).toBe(0);
    const watches = [await storage.watch({ resourceVersion: '7' }), await storage.watch({ resourceVersion: '7' })];
    for (let pings = 1; pings <= 3; pings++) {
      await until(() => clock.pending === 1);
      clock.advance(4_999);
      await storage.currentVersion();
      expect(etcd.pings).toBe(pings - 1);
      clock.advance(1);
      await until(() => etcd.pings === pings);
      await storage.currentVersion(); // behind the answer of the ping
      if (pings === 2) await watches[0]?.return();
    }
    await watches[1]?.return();
    expect(clock.pending).toBe(0);
    expect(etcd.sessions).toBe(1);
  });

  it('are not sent for what is only asked', async () => {
    const etcd = await fake({ ...watching, [TXN]: silent });
    const { storage, clock } = storageOf([etcd]);
    const watch = await storage.watch({ resourceVersion: '7' });
    const writing = storage.create('a', object).catch((error: unknown) => error);
    await until(() => etcd.of(TXN).length === 1);
    expect(clock.pending).toBe(2); // a ping, and the time of the request
    await watch.return();
    expect(clock.pending).toBe(1);
    await storage.close();
    expect(await writing).toMatchObject({ code: 'CLOSED' });
  });
});
