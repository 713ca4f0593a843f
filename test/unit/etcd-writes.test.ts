// Writes of a storage on etcd that depend on what is there: hints, conflicts, preconditions, and user code that takes its time.
import { describe, expect, it, vi } from 'vitest';
import type { KubernetesObject } from '../../src/cache/index.ts';
import { EtcdStorage } from '../../src/storage/etcd/index.ts';
import { RANGE, TXN } from '../../src/storage/etcd/wire/channel.ts';
import { ListenerCount } from '../../src/testing/fakes/fake-clock.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { closers } from '../closing.ts';
import { eventually, until } from '../eventually.ts';
import { type Answers, type FakeCall, FakeEtcd } from './fake-etcd.ts';
import { ModelEtcd } from './model-etcd.ts';

interface Thing extends KubernetesObject {
  readonly n?: number;
}

const closing = closers();

/** `before` may change the model before a write is looked at. */
async function open(before: (model: ModelEtcd, count: number) => void = () => {}, answers: Answers = {}) {
  const clock = new FakeClock();
  const schedule = vi.spyOn(clock, 'schedule');
  const model = new ModelEtcd(clock);
  const write = model.answers[TXN] as (call: FakeCall, count: number) => void;
  const etcd = await FakeEtcd.start({
    ...model.answers,
    [TXN]: (call, count) => {
      before(model, count);
      write(call, count);
    },
    ...answers,
  });
  closing.push(() => etcd.stop());
  const storage = new EtcdStorage<Thing>({ endpoints: [etcd.url], clock, random: () => 1 });
  closing.push(() => storage.close());
  const count = (): readonly number[] => [etcd.of(RANGE).length, etcd.of(TXN).length];
  /** The waits between two conflicts, as far as they have begun. Nothing else takes less than a second. */
  const waits = (): number[] => schedule.mock.calls.map(([ms]) => ms).filter((ms) => ms < 1_000);
  return { clock, model, etcd, storage, count, waits };
}

const thing = (n: number): Thing => ({ metadata: { name: 'a' }, n });
const add = ({ n = 0 }: Thing): Thing => thing(n + 1);
const reply = (work: Promise<unknown>): Promise<unknown> => work.catch((error: unknown) => error);

describe('a hint', () => {
  it('saves the read, for an update and a deletion', async () => {
    const { storage, count } = await open();
    const cached = await storage.create('a', thing(1));
    const updated = await storage.update('a', add, { cached });
    expect([updated.n, await storage.delete('a', { cached: updated })]).toEqual([
      2,
      { ...updated, metadata: { name: 'a', resourceVersion: '4' } },
    ]);
    expect(count()).toEqual([0, 3]);
  });

  it.each([['0'], ['02'], ['2x'], ['x2'], ['99999999999999999999'], [2], [undefined], ['']])(
    'with the version %j is none: what is there is read',
    async (resourceVersion) => {
      const { storage, count } = await open();
      await storage.create('a', thing(1));
      const cached = { metadata: { name: 'a', resourceVersion }, n: 7 } as Thing;
      expect(await storage.update('a', add, { cached })).toMatchObject({ n: 2 });
      expect(count()).toEqual([1, 2]);
    },
  );

  it('without metadata is none, either', async () => {
    const { storage, count } = await open();
    await storage.create('a', thing(1));
    expect(await storage.update('a', add, { cached: { n: 7 } })).toMatchObject({ n: 2 });
    expect(await storage.update('a', add, { cached: null as never })).toMatchObject({ n: 3 });
    expect(count()).toEqual([2, 3]);
  });

  it('of 19 digits is one', async () => {
    const { storage, count } = await open();
    await storage.create('a', thing(1));
    const cached = { metadata: { name: 'a', resourceVersion: '1234567890123456789' }, n: 7 };
    expect(await storage.update('a', add, { cached })).toMatchObject({ n: 2 });
    expect(count()).toEqual([0, 3]);
  });

  it('that is old decides nothing but to write', async () => {
    const { storage, model, count } = await open();
    const cached = await storage.create('a', thing(1));
    model.put('/watchmux/a', '{"metadata":{"name":"a"},"n":5}');
    const seen: unknown[] = [];
    const look = (current: Thing): Thing => {
      seen.push(current.n);
      return current;
    };
    const same = await storage.update('a', look, { cached });
    expect([same.n, same.metadata?.resourceVersion, seen]).toEqual([5, '3', [1, 5]]);
    expect(count()).toEqual([1, 1]);
  });

  it('by which user code refuses, and which is what is there, refuses; another one is decided again', async () => {
    const { storage, model, count } = await open();
    const cached = await storage.create('a', thing(1));
    let asked = 0;
    const refuse = (current: Thing): Thing => {
      asked++;
      if (current.n === 1) throw new Error('not 1');
      return add(current);
    };
    await expect(storage.update('a', refuse, { cached })).rejects.toThrow('not 1');
    expect([asked, ...count()]).toEqual([1, 1, 1]);
    model.put('/watchmux/a', '{"metadata":{"name":"a"},"n":5}');
    expect(await storage.update('a', refuse, { cached })).toMatchObject({ n: 6 });
    expect([asked, ...count()]).toEqual([3, 2, 2]);
  });

  it('by which user code refuses after the signal has aborted: nothing more is read', async () => {
    const { storage, count } = await open();
    const cached = await storage.create('a', thing(1));
    const abort = new AbortController();
    const change = (): Thing => {
      abort.abort(new Error('enough'));
      throw new Error('no');
    };
    await expect(storage.update('a', change, { cached, signal: abort.signal })).rejects.toThrow('enough');
    expect(count()).toEqual([0, 1]);
  });
});

describe('conflicts', () => {
  it('the first three in a row are tried again at once, by what the answer has; later ones wait, longer and longer', async () => {
    const { storage, etcd, clock, count, waits } = await open((model, count) => {
      if (count > 1 && count < 8) model.put('/watchmux/a', `{"metadata":{"name":"a"},"n":${count * 10}}`);
    });
    await storage.create('a', thing(1));
    const updating = storage.update('a', add);
    for (const [at, waitMs] of [2, 4, 8].entries()) {
      await until(() => waits().length === at + 1);
      expect(etcd.of(TXN)).toHaveLength(5 + at);
      clock.advance(waitMs - 1);
      expect(clock.pending).toBe(1);
      clock.advance(1);
    }
    expect(await updating).toMatchObject({ n: 71 });
    expect([waits(), ...count(), clock.pending]).toEqual([[2, 4, 8], 1, 8, 0]);
  });

  it('a wait between them ends with the signal', async () => {
    const { storage, etcd, clock, waits } = await open((model) => model.put('/watchmux/a', '{}'));
    const abort = new AbortController();
    const updating = reply(storage.update('a', () => thing(1), { createIfMissing: true, signal: abort.signal }));
    await until(() => waits().length === 1);
    expect(etcd.of(TXN)).toHaveLength(4);
    abort.abort(new Error('enough'));
    expect([await updating, clock.pending]).toEqual([new Error('enough'), 0]);
  });

  it('what was deleted meanwhile is not found, or is created', async () => {
    for (const createIfMissing of [false, true]) {
      const { storage } = await open((model, count) => count === 2 && model.revoke(1_000));
      await storage.create('a', thing(1), { ttlSeconds: 5 });
      const updated = reply(storage.update('a', (current) => thing((current?.n ?? 10) + 1), { createIfMissing }));
      expect(await updated).toMatchObject(createIfMissing ? { n: 11 } : { status: { code: 404 } });
    }
  });
});

describe('an update', () => {
  it('of what is not there is not found, unless it may create', async () => {
    const { storage, count } = await open();
    await expect(storage.update('a', add)).rejects.toMatchObject({ status: { code: 404 } });
    await expect(storage.update('a', () => thing(1), { createIfMissing: true })).resolves.toMatchObject({ n: 1 });
    expect(count()).toEqual([2, 1]);
  });

  it('that changes nothing writes nothing', async () => {
    const { storage, count } = await open();
    const stored = await storage.create('a', thing(1));
    expect(await storage.update('a', (current) => ({ ...current }))).toEqual(stored);
    expect(count()).toEqual([1, 1]);
  });

  it('whose precondition is not met calls no user code', async () => {
    const { storage, count } = await open();
    await storage.create('a', thing(1));
    const change = vi.fn(add);
    await expect(storage.update('a', change, { resourceVersion: '1' })).rejects.toMatchObject({ status: { code: 409 } });
    await expect(storage.delete('a', { resourceVersion: '1', validate: change as never })).rejects.toMatchObject({
      status: { code: 409 },
    });
    expect([change.mock.calls, ...count()]).toEqual([[], 2, 1]);
  });

  it('waits for user code, but not once its signal has aborted; nothing listens after that', async () => {
    const { storage, count } = await open();
    await storage.create('a', thing(1));
    const abort = new AbortController();
    const listeners = new ListenerCount(abort.signal);
    const slow = async (current: Thing): Promise<Thing> => {
      await new Promise((resolve) => setImmediate(resolve));
      return add(current);
    };
    expect(await storage.update('a', slow, { signal: abort.signal })).toMatchObject({ n: 2 });
    expect(await storage.update('a', add, { signal: abort.signal })).toMatchObject({ n: 3 });
    expect(listeners.count).toBe(0);
    const updating = storage.update('a', () => new Promise<Thing>(() => {}), { signal: abort.signal });
    await eventually(() => expect(count()[0]).toBe(3));
    abort.abort(new Error('enough'));
    await expect(updating).rejects.toThrow('enough');
    const aborts = new AbortController();
    const itself = async (): Promise<Thing> => {
      aborts.abort(new Error('by itself'));
      return new Promise(() => {});
    };
    await expect(storage.update('a', itself, { signal: aborts.signal })).rejects.toThrow('by itself');
  });

  it('needs a function', async () => {
    const { storage } = await open();
    await expect(storage.update('a', undefined as never)).rejects.toThrow(/^change: expected a function/);
    await expect(storage.update('a', 7 as never)).rejects.toThrow(/^change: expected a function/);
    await expect(storage.delete('a', { validate: 7 as never })).rejects.toThrow(/^validate: expected a function/);
    await expect(storage.update('a', add, { ttlSeconds: -1 })).rejects.toThrow(/^ttlSeconds: /);
    await expect(storage.create('a', thing(1), { ttlSeconds: -1 })).rejects.toThrow(/^ttlSeconds: /);
  });

  it('gets a copy, and what it does to that changes nothing else', async () => {
    const { storage } = await open();
    const cached = await storage.create('a', thing(1));
    await storage.update('a', (current) => Object.assign(current, { n: 2 }), { cached });
    expect(cached.n).toBe(1);
  });
});

describe('a create', () => {
  it('of what is there, or of what has a version, is refused, by name', async () => {
    const { storage } = await open();
    const stored = await storage.create('a', thing(1));
    await expect(storage.create('a', thing(1))).rejects.toMatchObject({ status: { code: 409, reason: 'AlreadyExists' } });
    await expect(storage.create('b', stored)).rejects.toMatchObject({
      status: { code: 400, message: expect.stringContaining('resourceVersion should not be set') },
    });
    await expect(
      storage.create('zero', { ...stored, metadata: { ...stored.metadata, resourceVersion: '0' } }),
    ).resolves.toMatchObject({
      metadata: { resourceVersion: expect.stringMatching(/^[1-9]/) },
    });
    await expect(storage.create('b', { n: 1 })).resolves.toMatchObject({ n: 1 });
    await expect(storage.create('c', undefined as never)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  it('names itself and its key in errors', async () => {
    const { storage } = await open(() => {}, { [TXN]: (call) => call.refuse(9, 'no'), [RANGE]: (call) => call.refuse(9, 'no') });
    for (const [work, message] of [
      [() => storage.create('x', thing(1)), 'create x: no'],
      [() => storage.update('x', add), 'update x: no'],
      [() => storage.delete('x'), 'delete x: no'],
      [() => storage.get('x'), 'get x: no'],
      [() => storage.currentVersion(), 'read the revision: no'],
    ] as const) {
      await expect(work()).rejects.toMatchObject({ status: { code: 500 }, message: `500 InternalError: ${message}` });
    }
  });

  it('of what is too large for etcd is 413', async () => {
    const { storage } = await open(() => {}, { [TXN]: (call) => call.refuse(3, 'etcdserver: request is too large') });
    await expect(storage.create('x', thing(1))).rejects.toMatchObject({ status: { code: 413, reason: 'RequestEntityTooLarge' } });
  });
});
