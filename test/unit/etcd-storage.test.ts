// A storage before an etcd that answers what it should not, late, or not at all.
import { describe, expect, it, vi } from 'vitest';
import { HealthChecks } from '../../src/apiserver/health.ts';
import type { KubernetesObject } from '../../src/cache/index.ts';
import { BackedEvents } from '../../src/storage/backed-watch.ts';
import { EtcdChanges } from '../../src/storage/etcd/etcd-changes.ts';
import { EtcdStorage, type EtcdStorageOptions } from '../../src/storage/etcd/index.ts';
import type { CallStream } from '../../src/storage/etcd/wire/call-stream.ts';
import { Connection, LEASE_GRANT, RANGE, TXN, WATCH } from '../../src/storage/etcd/wire/channel.ts';
import { ProtoWriter } from '../../src/storage/etcd/wire/messages.ts';
import type { StorageEvent } from '../../src/storage/index.ts';
import { continueAfter } from '../../src/storage/requests.ts';
import { ListenerCount } from '../../src/testing/fakes/fake-clock.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { closers } from '../closing.ts';
import { eventually, until } from '../eventually.ts';
import { startTcpProxy } from '../tcp-proxy.ts';
import {
  type Answers,
  type FakeCall,
  FakeEtcd,
  header,
  keyValue,
  put,
  range,
  STATUS,
  status,
  watchResponse,
} from './fake-etcd.ts';

const closing = closers();

async function fake(answers: Answers = {}): Promise<FakeEtcd> {
  const etcd = await FakeEtcd.start(answers);
  closing.push(() => etcd.stop());
  return etcd;
}

function storageOf(endpoints: readonly string[], options: Partial<EtcdStorageOptions> = {}): EtcdStorage {
  const storage = new EtcdStorage({ endpoints, random: () => 0, ...options });
  closing.push(() => storage.close());
  return storage;
}

/** On a clock that stands still: what is written before must be there before it moves. */
async function open(answers: Answers = {}, options: Partial<EtcdStorageOptions> = {}) {
  const etcd = await fake(answers);
  const clock = new FakeClock();
  return { etcd, clock, storage: storageOf([etcd.url], { clock, ...options }) };
}

const nameOf = (event: StorageEvent<KubernetesObject> | undefined): unknown =>
  (event?.object as KubernetesObject | undefined)?.metadata?.name;
const object: KubernetesObject = { metadata: { name: 'a' } };
const codeOf = (work: Promise<unknown>): Promise<unknown> => work.catch((error: { code: string }) => error.code);

describe('options of a storage on etcd', () => {
  it.each([
    [{ endpoints: [] }],
    [{ endpoints: ['localhost:2379'] }],
    [{ endpoints: ['http://a/b'] }],
    [{ endpoints: 'http://a' }],
    [{ endpoints: ['http://a'], prefix: 'a//b' }],
    [{ endpoints: ['http://a'], prefix: '../' }],
    [{ endpoints: ['http://a'], user: 'a' }],
    [{ endpoints: ['http://a'], keepAliveMs: 1_000 }],
    [{ endpoints: ['http://a'], requestTimeoutMs: 0 }],
    [{ endpoints: ['http://a'], tls: { pem: 'x' } }],
    [{ endpoints: ['http://a'], onError: 1 }],
    [{ endpoint: ['http://a'] }],
    [undefined],
  ])('%j is refused', (options) => {
    expect(() => new EtcdStorage(options as never)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });

  it('TestPrefix: a prefix gets the slashes that it lacks', async () => {
    for (const [prefix, expected] of [
      [undefined, '/watchmux/'],
      ['a', '/a/'],
      ['/a/b/', '/a/b/'],
      ['', '/'],
      ['/', '/'],
    ] as const) {
      const { etcd, storage } = await open({}, { prefix });
      await storage.get('x');
      expect(Buffer.from(etcd.of(RANGE)[0]?.messages[0] ?? []).toString()).toContain(`${expected}x`);
    }
  });
});

describe('a storage and its members', () => {
  it('#15220, #17529: an etcd that is too old is refused at the first use, and again', async () => {
    const { storage, etcd } = await open({ [STATUS]: (call) => call.answer(status('3.4.23')) });
    for (const work of [() => storage.list(), () => storage.create('a', object), () => storage.watch()]) {
      await expect(work()).rejects.toMatchObject({ code: 'REFUSED', message: expect.stringContaining('3.4.23') });
    }
    expect(etcd.of(RANGE)).toEqual([]);
  });

  it('its version is asked for once in a session', async () => {
    const { storage, etcd } = await open();
    await Promise.all([storage.list(), storage.list()]);
    await storage.list();
    expect(etcd.of(STATUS).length).toBeLessThanOrEqual(2);
    expect(etcd.of(RANGE)).toHaveLength(3);
    expect(etcd.sessions).toBe(1);
  });

  it.each(['9223372036854775808', '18446744073709551616', '18446744073709551625'])(
    'a list of the version %s is 410: in 64 bits that would be another one',
    async (resourceVersion) => {
      const { storage } = await open({ [RANGE]: (call) => call.answer(range(9)) });
      const list = storage.list({ resourceVersion, resourceVersionMatch: 'Exact' });
      await expect(list).rejects.toMatchObject({ status: { code: 410 } });
    },
  );

  const FUTURE = 'etcdserver: mvcc: required revision is a future revision';

  it('a revision that a member has not, and etcd as a whole has, is 504; one that it cannot have given is 410', async () => {
    const { storage } = await open({
      // The list first, then what etcd as a whole says.
      [RANGE]: (call, count) => (count % 2 === 1 ? call.refuse(11, FUTURE) : call.answer(range(9))),
    });
    const codes = [];
    for (const resourceVersion of ['9', '10']) {
      const token = continueAfter('a', { revision: resourceVersion });
      for (const options of [{ resourceVersion, resourceVersionMatch: 'Exact' as const }, { continue: token }]) {
        codes.push(
          await storage.list(options).catch((error: { status?: { code: number; metadata: object } }) => error.status?.code),
        );
      }
    }
    expect(codes).toEqual([504, 504, 410, 410]);
  });

  describe('a list whose revision is compacted between two of its parts', () => {
    const part = (revision: number, names: readonly string[], more: boolean): Uint8Array => {
      const writer = new ProtoWriter().message(1, header(revision));
      for (const name of names) writer.message(2, keyValue(`/watchmux/${name}`, JSON.stringify({ metadata: { name } })));
      return writer.bool(3, more).int64(4, 2).finish();
    };
    const compacted = (call: FakeCall): void => call.refuse(11, 'etcdserver: mvcc: required revision has been compacted');

    it('is read again, at the newest revision, if it was asked for that', async () => {
      for (const list of [{}, { limit: 5_000 }, { resourceVersion: '3' }, { labelSelector: 'a!=b' }]) {
        const { storage } = await open({
          [RANGE]: (call, count) => {
            if (count === 1) call.answer(part(7, ['a'], true));
            else if (count === 2) compacted(call);
            else call.answer(part(9, ['a', 'b'], false));
          },
        });
        const { items, resourceVersion } = await storage.list(list);
        expect([items.map(({ metadata }) => metadata?.name), resourceVersion]).toEqual([['a', 'b'], '9']);
      }
    });

    it('is 410 if it was asked for that revision, or if that happens again and again', async () => {
      const { storage, etcd } = await open({
        [RANGE]: (call, count) => (count % 2 === 1 ? call.answer(part(7 + count, ['a'], true)) : compacted(call)),
      });
      const exact = { resourceVersion: '7', resourceVersionMatch: 'Exact' } as const;
      await expect(storage.list(exact)).rejects.toMatchObject({ status: { code: 410, reason: 'Expired' } });
      expect(etcd.of(RANGE)).toHaveLength(2);
      await expect(storage.list()).rejects.toMatchObject({ status: { code: 410, reason: 'Expired' } });
      expect(etcd.of(RANGE)).toHaveLength(2 + 2 * 3);
    });
  });

  it('a read is asked again, at the next member; the answer of one is enough', async () => {
    const broken = await fake({ [RANGE]: (call) => call.refuse(14, 'etcdserver: no leader') });
    const good = await fake();
    const storage = storageOf([broken.url, good.url]);
    expect(await storage.currentVersion()).toBe('7');
    await storage.list();
    expect([broken.of(RANGE).length, good.of(RANGE).length]).toEqual([1, 2]);
  });

  it('a write whose answer does not come is not made twice, and the error says that it may have happened', async () => {
    const cutting = await fake({ [TXN]: (call) => call.stream.session?.destroy() });
    const other = await fake();
    const storage = storageOf([cutting.url, other.url]);
    const refusal = { code: 'TIMEOUT', message: expect.stringContaining('may have happened') };
    await expect(storage.create('a', object)).rejects.toMatchObject(refusal);
    expect([cutting.of(TXN).length, other.of(TXN).length]).toEqual([1, 0]);
  });

  it('a write that a busy etcd refuses has not happened: it is made again', async () => {
    const busy = (call: FakeCall): void => call.refuse(8, 'etcdserver: too many requests');
    const done = Buffer.from('0a0218071001', 'hex');
    const { storage } = await open({ [TXN]: (call, count) => (count < 3 ? busy(call) : call.answer(done)) });
    await expect(storage.create('a', object)).resolves.toMatchObject({ metadata: { resourceVersion: '7' } });
    const other = await open({ [TXN]: busy }, { requestTimeoutMs: 40, random: () => 1 });
    const message = 'create a: etcdserver: too many requests';
    await expect(other.storage.create('a', object)).rejects.toMatchObject({ code: 'TIMEOUT', message });
  });

  it.each<[string, NonNullable<Answers[string]>]>([
    ['an unknown error', (call) => call.refuse(2, 'etcdserver: request cancelled')],
    ['that it was cancelled', (call) => call.refuse(1, 'context canceled')],
    ['no message', (call) => call.open().end()],
  ])('a write that is answered with %s may have happened: that is no refusal', async (_, answer) => {
    const { storage, etcd } = await open({ [TXN]: answer });
    const unsure = { code: 'TIMEOUT', message: expect.stringContaining('may have happened') };
    await expect(storage.create('a', object)).rejects.toMatchObject(unsure);
    await expect(storage.update('a', () => object, { createIfMissing: true })).rejects.toMatchObject(unsure);
    expect(etcd.of(TXN)).toHaveLength(2);
  });

  it.each([
    [3, 'etcdserver: too many operations in txn request', 500],
    [7, 'etcdserver: permission denied', 503],
    [16, 'etcdserver: invalid auth token', 503],
    [3, 'etcdserver: request is too large', 413],
    [8, 'grpc: received message larger than max (2200115 vs. 2097152)', 413],
    [8, 'etcdserver: mvcc: database space exceeded', 503],
    [15, 'etcdserver: corrupt cluster', 503],
    [9, 'etcdserver: not capable', 500],
  ])('a write that is refused with the code %d, %s, has not happened', async (code, message, expected) => {
    const { storage } = await open({ [TXN]: (call) => call.refuse(code, message) });
    const refusal = { code: 'REFUSED', status: { code: expected }, message: expect.stringContaining(message) };
    const error = await storage.create('a', object).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject(refusal);
    // What a client gets says nothing about this etcd.
    if (expected >= 500) expect(JSON.stringify((error as { status: unknown }).status)).not.toContain('etcd');
  });

  it('a write whose answer cannot be read may have happened', async () => {
    const { storage } = await open({ [TXN]: (call) => call.open().stream.write(Buffer.from('0100000000', 'hex')) });
    const unsure = { code: 'INVALID_FRAME', message: expect.stringContaining('may have happened') };
    await expect(storage.create('a', object)).rejects.toMatchObject(unsure);
  });

  it('a write that cannot leave goes to the next member', async () => {
    const good = await fake({ [TXN]: (call) => call.answer(Buffer.from([...Buffer.from('0a021807', 'hex'), 0x10, 1])) });
    const storage = storageOf(['http://127.0.0.1:1', good.url]);
    await expect(storage.create('a', object)).resolves.toMatchObject({ metadata: { name: 'a', resourceVersion: '7' } });
  });

  it('a member that is silent: the request rejects in time, and nothing is left', async () => {
    const { storage, etcd, clock } = await open({ [RANGE]: () => {} }, { requestTimeoutMs: 1_000 });
    const listing = storage.list();
    await until(() => etcd.of(RANGE).length === 1);
    clock.advance(999);
    const seen = codeOf(listing);
    clock.advance(1);
    expect(await seen).toBe('TIMEOUT');
    await until(() => etcd.of(RANGE)[0]?.stream.closed === true);
    expect(clock.pending).toBe(0);
  });

  describe('a connection that has left requests unanswered for 10 s', () => {
    const silent = async (answers: (count: number) => boolean) => {
      const sessions: unknown[] = [];
      const opened = await open({
        [RANGE]: (call, count) => {
          sessions.push(call.stream.session);
          if (answers(count)) call.answer(range(7));
        },
      });
      const ask = async (signal?: AbortSignal): Promise<{ answer: Promise<unknown> }> => {
        const before = sessions.length;
        const answer = codeOf(opened.storage.currentVersion({ signal }));
        await until(() => sessions.length > before);
        return { answer };
      };
      return { ...opened, ask, isFirst: () => sessions.map((session) => session === sessions[0]) };
    };

    it('is not used again, but what else was asked there may still be answered', async () => {
      const { etcd, clock, ask, isFirst } = await silent((count) => count === 1 || count === 4);
      await (await ask()).answer;
      const { answer: late } = await ask();
      clock.advance(5_000);
      const { answer: slow } = await ask();
      clock.advance(5_000);
      expect(await late).toBe('TIMEOUT');
      const { answer: other } = await ask();
      expect([await other, isFirst()]).toEqual(['7', [true, true, true, false]]);
      etcd.of(RANGE)[2]?.answer(range(8));
      expect(await slow).toBe('8');
      await until(() => etcd.sessions === 1);
      expect(clock.pending).toBe(0);
    });

    it('is not used again if whoever asks never waits for as long', async () => {
      const { etcd, clock, ask, isFirst } = await silent((count) => count === 1);
      await (await ask()).answer;
      for (let waits = 0; waits < 4; waits++) {
        const abort = new AbortController();
        const { answer } = await ask(abort.signal);
        clock.advance(4_000);
        abort.abort(Object.assign(new Error(), { code: 'enough' }));
        expect(await answer).toBe('enough');
      }
      expect(isFirst()).toEqual([true, true, true, true, false]);
      await until(() => etcd.sessions === 1);
      expect(clock.pending).toBe(0);
    });

    it('is still used if it has answered something meanwhile', async () => {
      const { clock, ask, isFirst } = await silent((count) => count !== 2);
      await (await ask()).answer;
      const { answer: late } = await ask();
      clock.advance(5_000);
      await (await ask()).answer;
      clock.advance(5_000);
      expect(await late).toBe('TIMEOUT');
      await (await ask()).answer;
      expect(isFirst()).toEqual([true, true, true, true]);
    });
  });

  it('a request whose token another one has found stale meanwhile gets a new one', async () => {
    const authenticate = '/etcdserverpb.Auth/Authenticate';
    const token = (count: number): Uint8Array =>
      new ProtoWriter()
        .message(1, header(1))
        .bytes(2, Buffer.from(`t${count}`))
        .finish();
    const answer = (call: FakeCall): void => {
      if (call.headers.token === 't2') call.answer(range(7));
      else if (call.headers.token === undefined) call.refuse(3, 'etcdserver: user name is empty');
      else call.refuse(16, 'etcdserver: invalid auth token');
    };
    const held: FakeCall[] = [];
    const one = await fake({
      [authenticate]: (call, count) => (count === 1 ? call.answer(token(1)) : held.push(call)),
      [RANGE]: (call, count) => {
        if (count === 1) held.push(call);
        else if (count === 2) call.refuse(14, 'etcdserver: no leader');
        else answer(call);
      },
    });
    const two = await fake({
      [authenticate]: (call) => call.answer(token(2)),
      [STATUS]: (call) => held.push(call),
      [RANGE]: answer,
    });
    const storage = storageOf([one.url, two.url], { user: 'root', password: 'x' });
    const stale = storage.currentVersion();
    await until(() => held.length === 1);
    const other = storage.currentVersion(); // goes on to the second member, which must tell its version first
    await until(() => held.length === 2);
    answer(held[0] as FakeCall);
    await until(() => held.length === 3); // the first one waits for a new token
    held[1]?.answer(status('3.7.0'));
    expect(await other).toBe('7');
    held[2]?.answer(token(2));
    expect(await stale).toBe('7');
  });

  it('a connection on which there were as many calls as there can be takes no more; its watches go on', async () => {
    const etcd = await fake({ [WATCH]: (call) => void call.open() });
    const limits = { connectTimeoutMs: 1_000, keepAliveMs: 10_000, maxResponseBytes: 1_000 };
    const connection = new Connection(etcd.url, { tls: {}, clock: new FakeClock(), ...limits });
    closing.push(async () => connection.close());
    const ask = async (): Promise<string> => {
      const outcome = await connection.ask(RANGE, new Uint8Array(0), { headers: {}, timeoutMs: 1_000 });
      return 'answer' in outcome ? 'answered' : outcome.failure.sent ? 'sent' : 'not sent';
    };
    const watch = connection.stream(WATCH, {}) as CallStream;
    watch.write(new Uint8Array(0));
    const outcomes = [await ask()];
    (connection.session as unknown as { setNextStreamID(id: number): void }).setNextStreamID(2 ** 31 - 1);
    for (let calls = 0; calls < 4; calls++) outcomes.push(await ask());
    expect(outcomes).toEqual(['answered', 'answered', 'not sent', 'answered', 'answered']);
    etcd.of(WATCH)[0]?.send(new Uint8Array(3));
    expect(await watch.read()).toMatchObject({ message: { length: 3 } });
    expect(etcd.sessions).toBe(2);
    watch.cancel();
    await until(() => etcd.sessions === 1);
  });

  it('an abort ends a request at both ends, and leaves no listener', async () => {
    const { storage, etcd, clock } = await open({ [RANGE]: () => {} });
    const abort = new AbortController();
    const listeners = new ListenerCount(abort.signal);
    const reason = new Error('enough');
    const works = [storage.list({ signal: abort.signal }), storage.get('a', { signal: abort.signal })].map((work) =>
      work.catch((error: unknown) => error),
    );
    await until(() => etcd.of(RANGE).length === 2);
    abort.abort(reason);
    expect(await Promise.all(works)).toEqual([reason, reason]);
    await until(() => etcd.of(RANGE).every(({ stream }) => stream.closed));
    expect([listeners.count, clock.pending]).toEqual([0, 0]);
  });

  it('close ends what was asked in the same turn', async () => {
    const { storage, etcd, clock } = await open();
    await storage.list();
    const works = [storage.list(), storage.get('a'), storage.create('a', object)].map(codeOf);
    await storage.close();
    expect(await Promise.all(works)).toEqual(['CLOSED', 'CLOSED', 'CLOSED']);
    expect(clock.pending).toBe(0);
    await until(() => etcd.sessions === 0);
  });

  it('close ends what is not answered', async () => {
    const { storage, etcd, clock } = await open({ [RANGE]: () => {} }, { random: () => 1 });
    const works = [storage.list(), storage.get('a')].map(codeOf);
    await until(() => etcd.of(RANGE).length === 2);
    await storage.close();
    expect(await Promise.all(works)).toEqual(['CLOSED', 'CLOSED']);
    expect(clock.pending).toBe(0);
  });

  it('close ends what waits between two attempts', async () => {
    const { storage, etcd, clock } = await open({ [RANGE]: (call) => call.refuse(14, 'no leader') }, { random: () => 1 });
    const works = [storage.list(), storage.watch({ resourceVersion: '5' })].map(codeOf);
    await until(() => etcd.of(RANGE).length === 2 && etcd.of(RANGE).every(({ stream }) => stream.closed));
    await storage.close();
    expect(await Promise.all(works)).toEqual(['CLOSED', 'CLOSED']);
    expect(clock.pending).toBe(0);
    await until(() => etcd.sessions === 0);
  });

  it('close ends a write whose user code does not end', async () => {
    const { storage, clock } = await open({ [RANGE]: (call) => call.answer(range(7, [keyValue('/watchmux/a', '{}')])) });
    const asked: unknown[] = [];
    const never = <T>(current: T): Promise<T> => {
      asked.push(current);
      return new Promise(() => {});
    };
    const works = [storage.update('a', never), storage.delete('a', { validate: never as never })].map(codeOf);
    await until(() => asked.length === 2);
    await storage.close();
    expect(await Promise.all(works)).toEqual(['CLOSED', 'CLOSED']);
    expect(clock.pending).toBe(0);
  });

  it('close ends a write that waits because others were faster', async () => {
    const lost = new ProtoWriter().message(1, header(9)).finish();
    const { storage, etcd, clock } = await open({ [TXN]: (call) => call.answer(lost) }, { random: () => 1 });
    const change = vi.fn(() => object);
    const work = codeOf(storage.update('a', change, { createIfMissing: true }));
    await until(() => etcd.of(TXN).length === 4);
    await storage.currentVersion(); // on the same connection, so what was answered before has come
    expect(clock.pending).toBe(1);
    await storage.close();
    expect(await work).toBe('CLOSED');
    expect([change.mock.calls.length, clock.pending]).toEqual([4, 0]);
  });

  it('an abort ends a write that waits for a lease, which others may still get', async () => {
    const { storage, etcd, clock } = await open({
      [LEASE_GRANT]: () => {},
      [TXN]: (call) => call.answer(Buffer.from('0a0218071001', 'hex')),
    });
    const abort = new AbortController();
    const listeners = new ListenerCount(abort.signal);
    const reason = new Error('enough');
    const work = storage.create('a', object, { ttlSeconds: 100, signal: abort.signal }).catch((error: unknown) => error);
    const other = storage.create('b', object, { ttlSeconds: 100 });
    await until(() => etcd.of(LEASE_GRANT).length === 1);
    abort.abort(reason);
    expect(await work).toBe(reason);
    expect(listeners.count).toBe(0);
    etcd.of(LEASE_GRANT)[0]?.answer(new ProtoWriter().message(1, header(7)).int64(2, 5).int64(3, 105).finish());
    expect(await other).toMatchObject({ metadata: { name: 'a', resourceVersion: '7' } });
    expect([etcd.of(TXN).length, clock.pending]).toEqual([1, 0]);
  });
});

describe('hostile answers', () => {
  const text = (body: string): Uint8Array => Buffer.from(body);

  it.each<[string, NonNullable<Answers[string]>, unknown]>([
    ['no protobuf', (call) => call.answer(text('hello')), { code: 'INVALID_FRAME' }],
    ['too long', (call) => call.open().send(new Uint8Array(2_000)), { code: 'FRAME_TOO_LARGE', limit: 1_000 }],
    ['too long, by its head', (call) => call.open().stream.write(Buffer.from('00ffffffff', 'hex')), { code: 'FRAME_TOO_LARGE' }],
    ['compressed', (call) => call.open().stream.write(Buffer.from('0100000000', 'hex')), { code: 'INVALID_FRAME' }],
    ['no message', (call) => call.open().end(), { code: 'REFUSED', status: { code: 500 } }],
    ['an unknown code', (call) => call.refuse(99, 'x'), { code: 'REFUSED', status: { code: 500 } }],
    ['a code that is none', (call) => call.open({ 'grpc-status': 'x' }).stream.end(), { code: 'REFUSED', status: { code: 500 } }],
    [
      'a message that is no URL text',
      (call) => call.open({ 'grpc-status': '7', 'grpc-message': '%' }).stream.end(),
      { status: { code: 503 } },
    ],
  ])('%s: the request rejects', async (_, answer, expected) => {
    const { storage, clock } = await open({ [RANGE]: answer }, { maxResponseBytes: 1_000 });
    await expect(storage.get('a')).rejects.toMatchObject(expected as object);
    expect(clock.pending).toBe(0);
  });

  it('an answer that is no gRPC is tried again until the time is over', async () => {
    const page = await fake({
      [RANGE]: ({ stream }) => {
        stream.respond({ ':status': 404 });
        stream.end('<html>');
      },
    });
    const storage = storageOf([page.url], { requestTimeoutMs: 40, random: () => 1, clock: new FakeClock() });
    await expect(storage.get('a')).rejects.toMatchObject({ code: 'TIMEOUT', message: expect.stringContaining('is it etcd?') });
  });

  it('in a watch: one ERROR, then the end', async () => {
    for (const message of [
      text('hello'),
      new Uint8Array(2_000),
      watchResponse(9, [put(keyValue('/watchmux/a', 'no JSON', { created: 8, modified: 8 }))]),
    ]) {
      const { storage, clock, etcd } = await open(
        {
          [WATCH]: (call) =>
            void call
              .open()
              .send(watchResponse(7, [], { created: true }))
              .send(message),
        },
        { maxResponseBytes: 1_000 },
      );
      const watch = await storage.watch({ resourceVersion: '7' });
      expect((await watch.next()).value).toMatchObject({ type: 'ERROR', object: { code: 500 } });
      expect(await watch.next()).toEqual({ done: true, value: undefined });
      await until(() => etcd.of(WATCH)[0]?.stream.closed === true);
      expect(clock.pending).toBe(0);
    }
  });
});

describe('a watch of etcd', () => {
  const created = watchResponse(7, [], { created: true });
  const event = (name: string, revision: number): Uint8Array =>
    put(keyValue(`/watchmux/${name}`, JSON.stringify({ metadata: { name } }), { created: revision, modified: revision }));

  it('that is stopped, or is out of time, within a revision still has the rest of it, and nothing of the next', async () => {
    for (const end of ['stop', 'time', 'signal'] as const) {
      const { storage, clock } = await open({
        [WATCH]: (call) =>
          void call
            .open()
            .send(created)
            .send(watchResponse(12, [event('a', 8), event('b', 9), event('c', 9), event('x', 9), event('d', 9), event('e', 10)])),
      });
      const abort = new AbortController();
      const fieldSelector = 'metadata.name!=x';
      const more = end === 'time' ? { timeoutSeconds: 5 } : { signal: abort.signal };
      const watch = await storage.watch({ resourceVersion: '7', fieldSelector, ...more });
      const names = [await watch.next(), await watch.next()].map(({ value }) => nameOf(value));
      if (end === 'stop') watch.stop();
      else if (end === 'time') clock.advance(5_000);
      else abort.abort();
      expect([watch.stopped, watch.queued]).toEqual([true, 2]);
      for await (const each of watch) names.push(nameOf(each));
      expect(names).toEqual(['a', 'b', 'c', 'd']);
      expect(clock.pending).toBe(0);
    }
  });

  it('tells a revision that comes in several responses when all of it has come', async () => {
    let send: (() => void) | undefined;
    const { storage } = await open({
      [WATCH]: (call) => {
        call.open().send(created);
        call.send(watchResponse(9, [event('a', 8), event('b', 9)], { fragment: true }));
        send = () => void call.send(watchResponse(9, [event('c', 9)]));
      },
    });
    const watch = await storage.watch({ resourceVersion: '7' });
    expect(nameOf((await watch.next()).value)).toBe('a');
    const next = watch.next();
    expect(await Promise.race([next, new Promise((resolve) => setTimeout(() => resolve('nothing'), 50))])).toBe('nothing');
    send?.();
    expect(nameOf((await next).value)).toBe('b');
    watch.stop();
    expect(nameOf((await watch.next()).value)).toBe('c');
    expect((await watch.next()).done).toBe(true);
  });

  it('that is returned from within a revision counts what it drops', async () => {
    const { storage } = await open({
      [WATCH]: (call) =>
        void call
          .open()
          .send(created)
          .send(watchResponse(9, [event('a', 8), event('b', 8), event('c', 8)])),
    });
    const watch = await storage.watch({ resourceVersion: '7' });
    await watch.next();
    watch.stop();
    await watch.return();
    expect([watch.queued, watch.dropped, (await watch.next()).done]).toEqual([0, 2, true]);
  });

  it('that ends right before it would open a call opens none', async () => {
    let [calls, left] = [0, 0];
    const backend = {
      channel: { backoff: () => ({}), stream: () => ++calls },
      head: async () => {
        queueMicrotask(() => changes.close());
        return { revision: 7n, term: 1n, clusterId: 1n };
      },
      left: () => ++left,
    };
    const changes = new EtcdChanges(backend as never, '7', { previous: true, prefix: 'a/' });
    await changes.open();
    expect([calls, left]).toEqual([0, 1]);
  });

  it('that ends while the answer with the last of the state is on its way leaves nothing', async () => {
    let calls = 0;
    const backend = {
      range: async () => {
        queueMicrotask(() => queueMicrotask(() => source.cancel()));
        return { entries: [], revision: '7', left: 0, bytes: 0 };
      },
      changesAfter: () => ++calls,
    };
    const plan = { after: undefined, atLeast: undefined, marksEnd: true, bookmarks: true };
    const options = { prefix: 'a/', plan, selects: undefined, previousOf: undefined, onEnd() {} };
    const source = new BackedEvents({ backend } as never, options);
    const opening = source.open();
    source.requestProgress(); // owed until there are changes that can be asked
    await opening;
    expect(calls).toBe(0);
  });

  it('goes on at the next member after a cut, behind the last event, and forgets its failures', async () => {
    const { storage, etcd, clock } = await open({
      [RANGE]: (call, count) => call.answer(range(9, count === 3 ? [keyValue('/watchmux/n1', '{}', { modified: 8 })] : [])),
      [WATCH]: (call, count) =>
        void call
          .open()
          .send(created)
          .send(watchResponse(20, [event(`n${count}`, 7 + count)])),
    });
    const watch = await storage.watch({ resourceVersion: '7' });
    for (let count = 1; count <= 2; count++) {
      expect((await watch.next()).value).toMatchObject({
        type: 'ADDED',
        object: { metadata: { name: `n${count}`, resourceVersion: `${7 + count}` } },
      });
      if (count === 1) etcd.cut();
    }
    // Behind the event, not behind what the header of its response says.
    const starts = etcd.of(WATCH).map(({ messages }) => Buffer.from(messages[0] ?? []).toString('hex'));
    expect(starts[0]).toContain('1808');
    expect(starts[1]).toContain('1809');
    await watch.return();
    expect(clock.pending).toBe(0);
  });

  it.each([
    ['revision', 6, 2],
    ['term', 9, 1],
  ])('is told 410 if the %s of etcd went back', async (_, revision, term) => {
    let now = range(8, [], 2);
    const { storage, etcd } = await open({
      [RANGE]: (call) => call.answer(now),
      [WATCH]: (call) => void call.open().send(created),
    });
    const watch = await storage.watch({ resourceVersion: '8' });
    const pending = watch.next();
    await until(() => etcd.of(WATCH).length === 1);
    now = range(revision, [], term);
    etcd.cut();
    expect((await pending).value).toMatchObject({ type: 'ERROR', object: { code: 410, reason: 'Expired' } });
    expect((await watch.next()).done).toBe(true);
    expect(etcd.of(WATCH)).toHaveLength(1);
  });

  it('is told 410 if the last change that it has seen is another one by now, although the revision is newer', async () => {
    const { storage, etcd } = await open({
      // The state is at 9; the key that changed at 8 has another revision.
      [RANGE]: (call, count) => call.answer(range(9, count === 3 ? [keyValue('/watchmux/a', '{}', { modified: 5 })] : [])),
      [WATCH]: (call) =>
        void call
          .open()
          .send(created)
          .send(watchResponse(8, [event('a', 8)])),
    });
    const watch = await storage.watch({ resourceVersion: '7' });
    expect((await watch.next()).value?.type).toBe('ADDED');
    etcd.cut();
    expect((await watch.next()).value).toMatchObject({ type: 'ERROR', object: { code: 410 } });
    expect(etcd.of(RANGE)).toHaveLength(3);
  });

  it('#15271, #20221: what an etcd tells that is not behind the start of the watch is not delivered', async () => {
    const { storage } = await open({
      [WATCH]: (call) =>
        void call
          .open()
          .send(created)
          .send(watchResponse(5, [event('old', 5)]))
          .send(watchResponse(7, [event('same', 7)]))
          .send(watchResponse(9, [event('new', 9)])),
    });
    const watch = await storage.watch({ resourceVersion: '7' });
    expect((await watch.next()).value).toMatchObject({ type: 'ADDED', object: { metadata: { resourceVersion: '9' } } });
    await watch.return();
  });

  it('#17247: an event that comes again is not delivered again', async () => {
    const { storage } = await open({
      [WATCH]: (call) =>
        void call
          .open()
          .send(created)
          .send(watchResponse(8, [event('a', 8)]))
          .send(watchResponse(8, [event('a', 8)]))
          .send(watchResponse(9, [event('b', 9)])),
    });
    const watch = await storage.watch({ resourceVersion: '7' });
    for (const resourceVersion of ['8', '9']) {
      expect((await watch.next()).value).toMatchObject({ type: 'ADDED', object: { metadata: { resourceVersion } } });
    }
    await watch.return();
  });

  it('asks for progress until it is answered', async () => {
    const { storage, etcd, clock } = await open({ [WATCH]: (call) => void call.open().send(created) });
    const watch = await storage.watch({ resourceVersion: '7', allowWatchBookmarks: true });
    const pending = watch.next();
    await until(() => etcd.of(WATCH)[0]?.messages.length === 1);
    await storage.requestProgress();
    await storage.requestProgress();
    await until(() => etcd.of(WATCH)[0]?.messages.length === 2);
    clock.advance(200);
    await until(() => etcd.of(WATCH)[0]?.messages.length === 3);
    etcd.of(WATCH)[0]?.send(watchResponse(12));
    expect((await pending).value).toMatchObject({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '12' } } });
    clock.advance(10_000);
    await storage.currentVersion(); // on the same connection, so what was sent before has come
    expect(etcd.of(WATCH)[0]?.messages).toHaveLength(3);
    await watch.return();
    expect(clock.pending).toBe(0);
  });

  it('asks for progress at once after an outage, however long that was', async () => {
    const { storage, etcd, clock } = await open({
      [WATCH]: (call) => void call.open().send(created),
    });
    const watch = await storage.watch({ resourceVersion: '7', allowWatchBookmarks: true });
    const first = watch.next();
    await until(() => etcd.of(WATCH)[0]?.messages.length === 1);
    await storage.requestProgress();
    for (const afterMs of [200, 400, 800, 1_600, 3_200, 6_400]) clock.advance(afterMs);
    etcd.of(WATCH)[0]?.send(watchResponse(12));
    expect((await first).value).toMatchObject({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '12' } } });
    await storage.currentVersion(); // on the same connection, so what was sent before has come
    const asked = etcd.of(WATCH)[0]?.messages.length ?? 0;
    const second = watch.next();
    await storage.requestProgress();
    clock.advance(200);
    await until(() => (etcd.of(WATCH)[0]?.messages.length ?? 0) > asked);
    etcd.of(WATCH)[0]?.send(watchResponse(13));
    expect((await second).value).toMatchObject({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '13' } } });
    await watch.return();
    expect(clock.pending).toBe(0);
  });

  it('whose session takes no new calls is pinged as any other', async () => {
    const frozen = await fake({ [WATCH]: (call) => void call.open().send(created) });
    const other = await fake({
      [WATCH]: (call) =>
        void call
          .open()
          .send(created)
          .send(watchResponse(8, [event('a', 8)])),
    });
    const proxy = await startTcpProxy(frozen.port);
    closing.push(() => proxy.close());
    const clock = new FakeClock();
    const storage = storageOf([proxy.url, other.url], { clock });
    const watch = await storage.watch({ resourceVersion: '7' });
    const pending = watch.next();
    await until(() => frozen.of(WATCH).length === 1);
    frozen.leave();
    while (other.calls.length === 0) await storage.currentVersion(); // until it has been told, and asks elsewhere
    proxy.freeze();
    for (let pings = 0; pings < 2; pings++) clock.advance(10_000);
    expect((await pending).value).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'a' } } });
    await watch.return();
    await until(() => clock.pending === 0);
  });

  it('leaves a member that does not answer pings', async () => {
    const [frozen, other] = [
      await fake({ [WATCH]: (call) => void call.open().send(created) }),
      await fake({
        [WATCH]: (call) =>
          void call
            .open()
            .send(created)
            .send(watchResponse(8, [event('a', 8)])),
      }),
    ];
    const proxy = await startTcpProxy(frozen.port);
    closing.push(() => proxy.close());
    const clock = new FakeClock();
    const storage = storageOf([proxy.url, other.url], { clock });
    const watch = await storage.watch({ resourceVersion: '7' });
    const pending = watch.next();
    await until(() => frozen.of(WATCH).length === 1);
    proxy.freeze();
    clock.advance(10_000);
    clock.advance(10_000);
    expect((await pending).value).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'a' } } });
    await watch.return();
    await until(() => clock.pending === 0);
  });

  it('a slow consumer holds etcd back: what waits here is bounded', async () => {
    const big = JSON.stringify({ metadata: { name: 'a' }, text: 'x'.repeat(100_000) });
    let sent = 0;
    const { storage } = await open({
      [WATCH]: (call) => {
        call.open().send(created);
        const more = (): void => {
          while (sent < 1_000 && !call.stream.destroyed) {
            sent++;
            const change = put(
              keyValue('/watchmux/a', big, { created: 1 + sent, modified: 8 + sent }),
              keyValue('/watchmux/a', big, { created: 1, modified: 7 }),
            );
            call.send(watchResponse(8 + sent, [change]));
            if (call.stream.writableNeedDrain) return void call.stream.once('drain', more);
          }
        };
        more();
      },
    });
    const watch = await storage.watch({ resourceVersion: '7' });
    await watch.next();
    let before = -1;
    await eventually(
      () => {
        const same = before === sent;
        before = sent;
        expect(same).toBe(true);
      },
      { intervalMs: 100 },
    );
    expect(sent).toBeLessThan(40);
    for (let n = 1; n < 100; n++) expect((await watch.next()).done).toBe(false);
    await watch.return();
  });
});

describe('the health of an etcd', () => {
  const withFaults = (...faults: string[]): Uint8Array => {
    const writer = new ProtoWriter().bytes(2, Buffer.from('3.7.0'));
    for (const fault of faults) writer.bytes(8, Buffer.from(fault));
    return writer.finish();
  };

  it.each([
    ['memberID:10276657743932975437 alarm:NOSPACE ', 'NOSPACE'],
    ['memberID:1  alarm:CORRUPT', 'CORRUPT'],
  ])('is bad while the alarm %j refuses writes, though reads are answered', async (fault, name) => {
    let faults: string[] = ['etcdserver: no leader', fault];
    const { storage } = await open({ [STATUS]: (call) => call.answer(withFaults(...faults)) });
    await storage.currentVersion();
    await expect(storage.checkHealth?.()).rejects.toMatchObject({
      message: expect.stringContaining(name),
      status: { code: 503 },
    });
    await expect(storage.scope('a/').checkHealth?.()).rejects.toMatchObject({ message: expect.stringContaining(name) });
    faults = ['etcdserver: no leader'];
    await expect(storage.checkHealth?.()).resolves.toBeUndefined();
  });

  it('shows at /readyz', async () => {
    let faults: string[] = [];
    const { storage } = await open({ [STATUS]: (call) => call.answer(withFaults(...faults)) });
    const clock = new FakeClock();
    const checks = new HealthChecks({ storage, clock, caches: () => [], closing: new AbortController().signal });
    checks.start = { name: 'start', ok: true };
    expect((await checks.now()).ready).toBe(true);
    faults = ['memberID:1 alarm:NOSPACE'];
    clock.advance(1_000);
    expect((await checks.now()).ready).toBe(false);
  });

  it('is unknown to one that is closed', async () => {
    const { storage } = await open();
    await storage.close();
    await expect(storage.checkHealth?.()).rejects.toMatchObject({ code: 'CLOSED' });
  });
});
