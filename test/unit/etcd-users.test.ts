// A storage on an etcd with users: where the token goes, and what happens when it does not count any more.
import { describe, expect, it } from 'vitest';
import { EtcdStorage, type EtcdStorageOptions } from '../../src/storage/etcd/index.ts';
import { RANGE, TXN, WATCH } from '../../src/storage/etcd/wire/channel.ts';
import { ProtoWriter } from '../../src/storage/etcd/wire/messages.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { closers } from '../closing.ts';
import { type Answers, type FakeCall, FakeEtcd, header, keyValue, put, range, STATUS, watchResponse } from './fake-etcd.ts';

const AUTHENTICATE = '/etcdserverpb.Auth/Authenticate';
const closing = closers();

const token = (text: string): Uint8Array => new ProtoWriter().message(1, header(1)).bytes(2, Buffer.from(text)).finish();
const written = (revision: number): Uint8Array => new ProtoWriter().message(1, header(revision)).bool(2, true).finish();
const created = watchResponse(7, [], { created: true });
const cancelled = (reason: string): Uint8Array =>
  new ProtoWriter().message(1, header(7)).bool(4, true).bytes(6, Buffer.from(reason)).finish();
const event = put(keyValue('/watchmux/a', '{}', { created: 8, modified: 8 }));
const tokens = (calls: readonly FakeCall[]): unknown[] => calls.map(({ headers }) => headers.token);
const object = { metadata: { name: 'a' } };

/** Each authentication is answered with another token: t1, t2 ... */
async function open(answers: Answers, options: Partial<EtcdStorageOptions> = {}) {
  const etcd = await FakeEtcd.start({ [AUTHENTICATE]: (call, count) => call.answer(token(`t${count}`)), ...answers });
  closing.push(() => etcd.stop());
  const own = { user: 'me', password: 'secret', random: () => 0, ...options };
  const storage = new EtcdStorage({ endpoints: [etcd.url], clock: new FakeClock(), ...own });
  closing.push(() => storage.close());
  return { etcd, storage };
}

describe('a storage with a user', () => {
  it('gets one token, and sends it with everything', async () => {
    const { etcd, storage } = await open({
      [TXN]: (call) => call.answer(written(8)),
      [WATCH]: (call) =>
        call
          .open()
          .send(created)
          .send(watchResponse(8, [event])),
    });
    await storage.list();
    await storage.create('a', object);
    const watch = await storage.watch({ resourceVersion: '7' });
    await watch.next();
    await watch.return();
    expect(etcd.of(AUTHENTICATE).map(({ messages }) => Buffer.from(messages[0] ?? []).toString('latin1'))).toEqual([
      '\n\u0002me\u0012\u0006secret',
    ]);
    expect(tokens(etcd.of(AUTHENTICATE))).toEqual([undefined]);
    expect(new Set(tokens(etcd.calls.filter(({ path }) => path !== AUTHENTICATE)))).toEqual(new Set(['t1']));
    expect(etcd.of(STATUS)).toHaveLength(1);
    expect(etcd.of(WATCH)[0]?.headers.hasleader).toBe('true');
  });

  it('without one, sends none', async () => {
    const { etcd, storage } = await open({}, { user: undefined, password: undefined });
    await storage.list();
    expect([etcd.of(AUTHENTICATE), tokens(etcd.of(RANGE))]).toEqual([[], [undefined]]);
  });

  it.each([
    [16, 'etcdserver: invalid auth token'],
    [3, 'etcdserver: revision of auth store is old'],
  ])(
    'a token that has become stale, code %d, is replaced, and the request is made once more, also a write',
    async (code, message) => {
      const stale = (good: Uint8Array) => (call: FakeCall) =>
        call.headers.token === 't1' ? call.refuse(code, message) : call.answer(good);
      const { etcd, storage } = await open({ [TXN]: stale(written(8)), [RANGE]: stale(range(7)) });
      await expect(storage.create('a', object)).resolves.toMatchObject(object);
      expect([tokens(etcd.of(TXN)), etcd.of(AUTHENTICATE).length]).toEqual([['t1', 't2'], 2]);
      await storage.list();
      expect([tokens(etcd.of(RANGE)), etcd.of(AUTHENTICATE).length]).toEqual([['t2'], 2]);
    },
  );

  it('a second one that does not count either is 503, since it is not the client that is refused', async () => {
    const { etcd, storage } = await open({ [RANGE]: (call) => call.refuse(16, 'etcdserver: invalid auth token') });
    await expect(storage.list()).rejects.toMatchObject({
      ...{ code: 'REFUSED', message: expect.stringContaining('invalid auth token') },
      status: { code: 503, reason: 'ServiceUnavailable', message: 'the storage is unavailable' },
    });
    expect(tokens(etcd.of(RANGE))).toEqual(['t1', 't2']);
  });

  it('without a user, a request for one is 503 at once', async () => {
    const answers: Answers = { [RANGE]: (call) => call.refuse(16, 'etcdserver: invalid auth token') };
    const { etcd, storage } = await open(answers, { user: undefined, password: undefined });
    await expect(storage.list()).rejects.toMatchObject({ status: { code: 503 } });
    expect([etcd.of(RANGE).length, etcd.of(AUTHENTICATE).length]).toEqual([1, 0]);
  });

  it.each([
    [3, 'etcdserver: authentication failed, invalid user ID or password'],
    [3, 'etcdserver: user name is empty'],
  ])('a wrong password is 503: nothing is asked for', async (code, message) => {
    const { etcd, storage } = await open({ [AUTHENTICATE]: (call) => call.refuse(code, message) });
    const refusal = {
      message: expect.stringContaining(`list /watchmux/: ${message}`),
      status: { code: 503, reason: 'ServiceUnavailable', message: 'the storage is unavailable' },
    };
    await expect(storage.list()).rejects.toMatchObject(refusal);
    expect(etcd.calls.map(({ path }) => path)).toEqual([AUTHENTICATE]);
  });

  it('a write that could not get a token, or a version, has not happened: it goes to the next member', async () => {
    for (const path of [AUTHENTICATE, STATUS]) {
      const bad = await open({ [path]: (call) => call.refuse(14, 'no leader') });
      const good = await open({ [TXN]: (call) => call.answer(written(8)) });
      const { storage } = await open({}, { endpoints: [bad.etcd.url, good.etcd.url] });
      await expect(storage.create('a', object)).resolves.toMatchObject(object);
      expect([bad.etcd.of(path).length, bad.etcd.of(TXN).length, good.etcd.of(TXN).length]).toEqual([1, 0, 1]);
    }
  });

  it('rights count', async () => {
    const { storage } = await open({ [RANGE]: (call) => call.refuse(7, 'etcdserver: permission denied') });
    await expect(storage.list()).rejects.toMatchObject({
      message: expect.stringContaining('permission denied'),
      status: { code: 503, reason: 'ServiceUnavailable', message: 'the storage is unavailable' },
    });
  });
});

describe('a watch with a user', () => {
  it.each<[string, (call: FakeCall) => void]>([
    ['is cancelled', (call) => void call.open().send(created).send(cancelled('rpc error: etcdserver: invalid auth token'))],
    ['ends', (call) => call.refuse(16, 'etcdserver: invalid auth token')],
  ])('that %s because of its token goes on with another one', async (_, refuse) => {
    const { etcd, storage } = await open({
      [WATCH]: (call, count) =>
        count === 1
          ? refuse(call)
          : call
              .open()
              .send(created)
              .send(watchResponse(8, [event])),
    });
    const watch = await storage.watch({ resourceVersion: '7' });
    expect((await watch.next()).value?.type).toBe('ADDED');
    expect(tokens(etcd.of(WATCH))).toEqual(['t1', 't2']);
    await watch.return();
  });

  it('that is cancelled for another reason goes on with the same one', async () => {
    const { etcd, storage } = await open({
      [WATCH]: (call, count) =>
        void call
          .open()
          .send(created)
          .send(count === 1 ? cancelled('mvcc: something') : watchResponse(8, [event])),
    });
    const watch = await storage.watch({ resourceVersion: '7' });
    expect((await watch.next()).value?.type).toBe('ADDED');
    expect(tokens(etcd.of(WATCH))).toEqual(['t1', 't1']);
    await watch.return();
  });

  it('that may not see its keys ends with an ERROR 503, and the owner learns why', async () => {
    const errors: unknown[] = [];
    const answers: Answers = {
      [WATCH]: (call) => void call.open().send(created).send(cancelled('rpc error: permission denied')),
    };
    const { storage } = await open(answers, { onError: (error) => errors.push(error) });
    const watch = await storage.watch({ resourceVersion: '7' });
    expect((await watch.next()).value).toMatchObject({
      type: 'ERROR',
      object: { code: 503, reason: 'ServiceUnavailable', message: 'the storage is unavailable' },
    });
    expect(errors).toMatchObject([{ message: expect.stringContaining('watch /watchmux/: rpc error: permission denied') }]);
    expect((await watch.next()).done).toBe(true);
  });
});
