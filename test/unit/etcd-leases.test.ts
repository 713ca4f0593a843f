// Which objects share a lease of etcd, and for how long.
import { afterEach, describe, expect, it } from 'vitest';
import { Leases } from '../../src/storage/etcd/etcd-backend.ts';
import { EtcdStorage } from '../../src/storage/etcd/index.ts';
import { LEASE_GRANT, TXN } from '../../src/storage/etcd/wire/channel.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { type Answers, FakeEtcd } from './fake-etcd.ts';
import { ModelEtcd } from './model-etcd.ts';

function rig({ maxLeaseObjects = 1_000, grant }: { maxLeaseObjects?: number; grant?: () => Promise<bigint> } = {}) {
  const clock = new FakeClock();
  const granted: number[] = [];
  const leases = new Leases({
    clock,
    maxLeaseObjects,
    grant: (ttlSeconds) => {
      granted.push(ttlSeconds);
      return grant ? grant() : Promise.resolve(BigInt(granted.length));
    },
  });
  return { clock, granted, leases };
}

describe('leases', () => {
  it('nothing is granted for an object that does not expire', async () => {
    const { leases, granted } = rig();
    expect([await leases.of(0), granted]).toEqual([0n, []]);
  });

  it('a lease is longer by the time in which others may join it, a twentieth of its own and a minute at most', async () => {
    const { leases, granted } = rig();
    for (const ttlSeconds of [19, 20, 600, 1_200, 10_000]) await leases.of(ttlSeconds);
    expect(granted).toEqual([19, 21, 630, 1_260, 10_060]);
  });

  it('below twenty seconds each object has its own', async () => {
    const { leases } = rig();
    expect([await leases.of(19), await leases.of(19), await leases.of(20), await leases.of(20)]).toEqual([1n, 2n, 3n, 3n]);
  });

  it('is joined for that time, and no longer; each time to live has another', async () => {
    const { clock, leases } = rig();
    expect([await leases.of(600), await leases.of(40), await leases.of(600)]).toEqual([1n, 2n, 1n]);
    clock.advance(29_999);
    expect(await leases.of(600)).toBe(1n);
    clock.advance(1);
    expect([await leases.of(600), await leases.of(600)]).toEqual([3n, 3n]);
  });

  it('is joined by so many objects, itself among them', async () => {
    const { leases } = rig({ maxLeaseObjects: 3 });
    const seen: bigint[] = [];
    for (let i = 0; i < 7; i++) seen.push(await leases.of(600));
    expect(seen).toEqual([1n, 1n, 1n, 2n, 2n, 2n, 3n]);
  });

  it('that has gone is not joined any more', async () => {
    const { leases } = rig();
    await leases.of(600);
    leases.forget(600);
    expect(await leases.of(600)).toBe(2n);
  });

  it('that could not be had is asked for again; one that has taken its place stays', async () => {
    const waiting: Resolvers<bigint>[] = [];
    const { leases, granted } = rig({
      grant: () => {
        const next = withResolvers<bigint>();
        waiting.push(next);
        return next.promise;
      },
    });
    const first = leases.of(600);
    leases.forget(600);
    const second = leases.of(600);
    waiting[0]?.reject(new Error('no'));
    await expect(first).rejects.toThrow('no');
    const third = leases.of(600);
    waiting[1]?.resolve(5n);
    expect([await second, await third, granted.length]).toEqual([5n, 5n, 2]);
    leases.forget(600);
    const fourth = leases.of(600);
    waiting[2]?.reject(new Error('no'));
    await expect(fourth).rejects.toThrow('no');
    void leases.of(600);
    expect(granted).toHaveLength(4);
  });

  it('a thousand are remembered, the newest', async () => {
    const { leases, granted } = rig();
    for (let ttlSeconds = 20; ttlSeconds < 1_020; ttlSeconds++) await leases.of(ttlSeconds);
    await leases.of(20);
    expect(granted).toHaveLength(1_000);
    await leases.of(1_020); // in the place of 20
    await leases.of(21);
    expect(granted).toHaveLength(1_001);
    await leases.of(20); // in the place of 21
    for (const ttlSeconds of [22, 1_019, 1_020, 20]) await leases.of(ttlSeconds);
    expect(granted).toHaveLength(1_002);
  });

  it('what nobody can join any more takes no place', async () => {
    const { clock, leases, granted } = rig();
    await leases.of(1_200);
    for (let ttlSeconds = 20; ttlSeconds < 1_019; ttlSeconds++) await leases.of(ttlSeconds);
    clock.advance(50_000); // all but the first
    await leases.of(1_100);
    await leases.of(1_200);
    expect(granted).toHaveLength(1_001);
  });
});

interface Resolvers<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

function withResolvers<T>(): Resolvers<T> {
  let [resolve, reject]: [(value: T) => void, (error: unknown) => void] = [() => {}, () => {}];
  const promise = new Promise<T>((yes, no) => {
    [resolve, reject] = [yes, no];
  });
  return { promise, resolve, reject };
}

describe('objects with a time to live', () => {
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  async function open(more: (model: ModelEtcd) => Answers = () => ({})) {
    const clock = new FakeClock();
    const model = new ModelEtcd(clock);
    const etcd = await FakeEtcd.start({ ...model.answers, ...more(model) });
    closing.push(() => etcd.stop());
    const storage = new EtcdStorage({ endpoints: [etcd.url], maxLeaseObjects: 2 });
    closing.push(() => storage.close());
    return { clock, model, etcd, storage };
  }
  const object = { metadata: { name: 'a' } };

  it('go with their lease, which has so many of them', async () => {
    const { clock, model, storage } = await open();
    for (const key of ['a', 'b', 'c']) await storage.create(key, object, { ttlSeconds: 600 });
    expect(model.leases).toBe(2);
    clock.advance(629_999);
    expect((await storage.list()).items).toHaveLength(3);
    clock.advance(1);
    expect((await storage.list()).items).toEqual([]);
  });

  it('get another lease if etcd does not know theirs', async () => {
    const { model, etcd, storage } = await open();
    await storage.create('a', object, { ttlSeconds: 600 });
    model.revoke(1_000);
    await expect(storage.create('b', object, { ttlSeconds: 600 })).resolves.toMatchObject(object);
    expect([etcd.of(LEASE_GRANT).length, etcd.of(TXN).length]).toEqual([2, 3]);
  });

  it('are refused if etcd does not know the second one either', async () => {
    const { etcd, storage } = await open(() => ({ [TXN]: (call) => call.refuse(5, 'etcdserver: requested lease not found') }));
    await expect(storage.create('a', object, { ttlSeconds: 600 })).rejects.toMatchObject({
      code: 'REFUSED',
      message: expect.stringMatching(/ create a: .*lease not found$/),
    });
    expect([etcd.of(LEASE_GRANT).length, etcd.of(TXN).length]).toEqual([2, 2]);
  });

  it('are not written if there is no lease to be had', async () => {
    const { etcd, storage } = await open(() => ({ [LEASE_GRANT]: (call) => call.refuse(9, 'no') }));
    const refusal = { code: 'REFUSED', message: expect.stringContaining('grant a lease: no') };
    await expect(storage.create('a', object, { ttlSeconds: 600 })).rejects.toMatchObject(refusal);
    expect(etcd.of(TXN)).toEqual([]);
    const other = await open(() => ({ [LEASE_GRANT]: (call) => call.answer(Buffer.from('hello')) }));
    await expect(other.storage.create('a', object, { ttlSeconds: 600 })).rejects.toMatchObject({
      code: 'INVALID_FRAME',
      message: expect.stringContaining('grant a lease: '),
    });
  });
});
