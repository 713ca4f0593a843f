// A watch of etcd across cuts: when it goes on, when it waits, and when it is told that it cannot.
import { describe, expect, it, vi } from 'vitest';
import type { KubernetesObject } from '../../src/cache/index.ts';
import { EtcdStorage, type EtcdStorageOptions } from '../../src/storage/etcd/index.ts';
import { RANGE, WATCH } from '../../src/storage/etcd/wire/channel.ts';
import { ProtoWriter } from '../../src/storage/etcd/wire/messages.ts';
import type { StorageEvent } from '../../src/storage/index.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { closers } from '../closing.ts';
import { until } from '../eventually.ts';
import { type Answers, type FakeCall, FakeEtcd, header, keyValue, put, range, watchResponse } from './fake-etcd.ts';

const closing = closers();

async function open(answers: Answers, options: Partial<EtcdStorageOptions> = {}) {
  const etcd = await FakeEtcd.start(answers);
  closing.push(() => etcd.stop());
  const clock = new FakeClock();
  const scheduled = vi.spyOn(clock, 'schedule');
  const storage = new EtcdStorage({ endpoints: [etcd.url], clock, random: () => 0, ...options });
  closing.push(() => storage.close());
  /** The waits between two attempts, as far as they have begun. Nothing else takes less than a second. */
  const waits = (): number[] => scheduled.mock.calls.map(([ms]) => ms).filter((ms) => ms >= 50 && ms < 1_000);
  return { etcd, clock, storage, waits };
}

const created = watchResponse(7, [], { created: true });
const event = (name: string, revision: number): Uint8Array =>
  put(keyValue(`/watchmux/${name}`, '{}', { created: revision, modified: revision }));
const deletion = (name: string, revision: number): Uint8Array =>
  new ProtoWriter()
    .int64(1, 1)
    .message(2, keyValue(`/watchmux/${name}`, '', { created: 0, modified: revision }))
    .message(3, keyValue(`/watchmux/${name}`, '{}', { created: 1, modified: revision - 1 }))
    .finish();
const starts = (calls: readonly FakeCall[]): string[] =>
  calls.map(({ messages }) => Buffer.from(messages[0] ?? []).toString('hex'));
const shown = (event: StorageEvent<KubernetesObject> | undefined): unknown =>
  event?.type === 'ERROR' ? event.object.code : [event?.type, event?.object.metadata?.resourceVersion];

/** Tells one change, is cut, and answers the question for that change as is wanted; what comes then? */
async function afterCut(told: Uint8Array, answer: (call: FakeCall) => void): Promise<unknown> {
  // 1 to open, 2 to go on, 3 for the last change
  const { etcd, storage } = await open({
    [RANGE]: (call, count) => (count === 3 ? answer(call) : call.answer(range(9))),
    [WATCH]: (call, count) =>
      void call
        .open()
        .send(created)
        .send(watchResponse(9, [count === 1 ? told : event('b', 9)])),
  });
  const watch = await storage.watch({ resourceVersion: '7' });
  await watch.next();
  etcd.cut();
  const next = shown((await watch.next()).value);
  await watch.return();
  return next;
}

describe('a watch that was cut', () => {
  const there = range(9, [keyValue('/watchmux/a', '{}', { modified: 8 })]);

  it.each<[string, Uint8Array, (call: FakeCall) => void, unknown]>([
    ['has the last change', event('a', 8), (call) => call.answer(there), ['ADDED', '9']],
    ['has another one', event('a', 8), (call) => call.answer(range(9, [keyValue('/watchmux/a', '{}', { modified: 7 })])), 410],
    ['has nothing there', event('a', 8), (call) => call.answer(range(9)), 410],
    ['has deleted it as it told', deletion('a', 8), (call) => call.answer(range(9)), ['ADDED', '9']],
    ['has what was deleted', deletion('a', 8), (call) => call.answer(there), 410],
    ['has compacted it', event('a', 8), (call) => call.refuse(11, 'required revision has been compacted'), ['ADDED', '9']],
    ['has not come that far', event('a', 8), (call) => call.refuse(11, 'required revision is a future revision'), 410],
    ['refuses to say', event('a', 8), (call) => call.refuse(7, 'permission denied'), 503],
  ])('where etcd %s', async (_, told, answer, expected) => {
    expect(await afterCut(told, answer)).toEqual(expected);
  });

  it('asks for the last change at its revision', async () => {
    let asked = '';
    await afterCut(event('a', 8), (call) => {
      call.each((message) => {
        asked = Buffer.from(message).toString('latin1');
        call.answer(there);
      });
    });
    expect(asked).toBe('\n\u000b/watchmux/a\u0020\u0008');
  });

  const other = new ProtoWriter().message(1, new ProtoWriter().int64(1, 2).int64(3, 9).int64(4, 2).finish()).finish();

  it('is told 410 if the cluster is another one than that of the list before it', async () => {
    const { storage } = await open({ [RANGE]: (call, count) => call.answer(count === 1 ? range(9) : other) });
    const { backend, prefix } = storage.backing;
    const { revision, life } = await backend.range({ prefix, limit: 10 });
    const changes = backend.changesAfter(revision, { prefix, previous: false, life });
    await expect(changes.open()).rejects.toMatchObject({ status: { code: 410 } });
    changes.close();
  });

  it('is told 410 if the cluster is another one', async () => {
    const { etcd, storage } = await open({
      [RANGE]: (call, count) => call.answer(count === 1 ? range(9) : other),
      [WATCH]: (call) => void call.open().send(created),
    });
    const watch = await storage.watch({ resourceVersion: '7' });
    const next = watch.next();
    await until(() => etcd.of(WATCH).length === 1);
    etcd.cut();
    expect((await next).value).toMatchObject({
      type: 'ERROR',
      object: { code: 410, message: expect.stringContaining('etcd was started with other data, now at 9') },
    });
    expect(etcd.of(WATCH)).toHaveLength(1);
  });

  it('goes on at the same revision and term, and at larger ones', async () => {
    for (const [revision, term] of [
      [8, 2],
      [9, 3],
    ] as const) {
      const { etcd, storage } = await open({
        [RANGE]: (call, count) => call.answer(count === 1 ? range(8) : range(revision, [], term)),
        [WATCH]: (call, count) =>
          void (count === 1 ? call.open().send(created) : call.open().send(watchResponse(9, [event('a', 9)]))),
      });
      const watch = await storage.watch({ resourceVersion: '8' });
      const next = watch.next();
      await until(() => etcd.of(WATCH).length === 1);
      etcd.cut();
      expect(shown((await next).value)).toEqual(['ADDED', '9']);
      await watch.return();
    }
  });

  it('remembers the term that it has seen last', async () => {
    const terms = [2, 5, 4];
    const { etcd, storage } = await open({
      [RANGE]: (call, count) => call.answer(range(8, [], terms[count - 1])),
      [WATCH]: (call) => void call.open().send(created),
    });
    const watch = await storage.watch({ resourceVersion: '8' });
    const next = watch.next();
    for (let count = 1; count <= 2; count++) {
      await until(() => etcd.of(WATCH).length === count);
      etcd.cut();
    }
    expect(shown((await next).value)).toBe(410);
  });

  it('waits longer after each failure, and not once it has been told something', async () => {
    const { etcd, clock, storage, waits } = await open(
      {
        [WATCH]: (call, count) => {
          call.open().send(created);
          if (count < 3) call.end(14, 'no leader');
          else if (count === 3) call.send(watchResponse(8, [event('a', 8)]));
        },
        [RANGE]: (call) => call.answer(range(9, [keyValue('/watchmux/a', '{}', { modified: 8 })])),
      },
      { random: () => 1 },
    );
    const watch = await storage.watch({ resourceVersion: '7' });
    const next = watch.next();
    await until(() => waits().length === 1);
    clock.advance(49);
    await storage.currentVersion();
    expect(etcd.of(WATCH)).toHaveLength(1);
    clock.advance(1);
    await until(() => waits().length === 2);
    clock.advance(100);
    expect(shown((await next).value)).toEqual(['ADDED', '8']);
    const pending = watch.next();
    etcd.cut();
    await until(() => waits().length === 3);
    expect(waits()).toEqual([50, 100, 50]);
    await watch.return();
    await pending;
  });

  it.each([
    [14, ['ADDED', '9']],
    [7, 503],
  ])('tries again where etcd cannot be reached in time, and ends where it refuses: code %d', async (code, expected) => {
    const { etcd, clock, storage, waits } = await open(
      {
        [RANGE]: (call, count) => (count === 2 ? call.refuse(code, 'no') : call.answer(range(9))),
        [WATCH]: (call, count) => void call.open().send(count === 1 ? created : watchResponse(9, [event('a', 9)])),
      },
      { requestTimeoutMs: 1, random: () => 1 },
    );
    const watch = await storage.watch({ resourceVersion: '7' });
    const next = watch.next();
    await until(() => etcd.of(WATCH).length === 1);
    etcd.cut();
    await until(() => waits().length === 1);
    clock.advance(50);
    if (code === 14) {
      await until(() => waits().length === 2);
      clock.advance(100);
    }
    expect(shown((await next).value)).toEqual(expected);
    await watch.return();
  });
});

describe('a call of a watch that ends', () => {
  it.each([
    [0, '', ['ADDED', '8']],
    [2, 'unknown', ['ADDED', '8']],
    [14, 'no leader', ['ADDED', '8']],
    [8, 'too many requests', ['ADDED', '8']],
    [7, 'permission denied', 503],
    [3, 'invalid', 500],
    [3, 'too many requests', ['ADDED', '8']],
  ])('with the code %d, %s', async (code, message, expected) => {
    const { storage } = await open({
      [WATCH]: (call, count) => {
        call.open().send(created);
        if (count === 1) call.end(code, message);
        else call.send(watchResponse(8, [event('a', 8)]));
      },
    });
    const watch = await storage.watch({ resourceVersion: '7' });
    expect(shown((await watch.next()).value)).toEqual(expected);
    await watch.return();
  });

  it('is followed by one at the next member', async () => {
    const answers: Answers = { [WATCH]: (call) => call.refuse(14, 'no leader') };
    const bad = await open(answers);
    const good = await open({ [WATCH]: (call) => void call.open().send(watchResponse(8, [event('a', 8)])) });
    const { storage } = await open({}, { endpoints: [bad.etcd.url, good.etcd.url] });
    const watch = await storage.watch({ resourceVersion: '7' });
    expect(shown((await watch.next()).value)).toEqual(['ADDED', '8']);
    expect([bad.etcd.of(WATCH).length, good.etcd.of(WATCH).length]).toEqual([1, 1]);
    await watch.return();
  });

  it('because its start was compacted: 410', async () => {
    const { storage, etcd } = await open({
      [WATCH]: (call) =>
        void call
          .open()
          .send(created)
          .send(watchResponse(7, [], { compacted: 20 })),
    });
    const watch = await storage.watch({ resourceVersion: '7' });
    expect((await watch.next()).value).toMatchObject({
      type: 'ERROR',
      object: { code: 410, message: expect.stringContaining('(20)') },
    });
    expect((await watch.next()).done).toBe(true);
    await until(() => etcd.of(WATCH)[0]?.stream.closed === true);
  });
});

describe('what a watch asks for', () => {
  it('all keys of its scope, from behind its version on, in fragments, with what was there', async () => {
    const { storage, etcd } = await open({ [WATCH]: (call) => void call.open().send(created) });
    const watch = await storage.scope('x/').watch({ resourceVersion: '7' });
    await until(() => etcd.of(WATCH)[0]?.messages[0] !== undefined);
    const create = new ProtoWriter().bytes(1, Buffer.from('/watchmux/x/')).bytes(2, Buffer.from('/watchmux/x0')).int64(3, 8);
    const expected = new ProtoWriter().message(1, create.bool(4, true).bool(6, true).bool(8, true).finish()).finish();
    expect(starts(etcd.of(WATCH))).toEqual([Buffer.from(expected).toString('hex')]);
    await watch.return();
  });

  it('no version that etcd cannot have given: 410', async () => {
    const { storage, etcd } = await open({});
    await expect(storage.watch({ resourceVersion: '8' })).rejects.toMatchObject({ status: { code: 410 } });
    expect(etcd.of(WATCH)).toEqual([]);
    await (await storage.watch({ resourceVersion: '7' })).return();
  });

  it('the state, in parts, and progress that was asked for before its end', async () => {
    const kvs = [1, 2, 3].map((n) => keyValue(`/watchmux/n${n}`, '{}', { modified: n }));
    const [first, second] = [kvs.slice(0, 2), kvs.slice(2)].map((own, at) => {
      const writer = new ProtoWriter().message(1, header(7));
      for (const kv of own) writer.message(2, kv);
      return writer
        .bool(3, at === 0)
        .int64(4, 3 - 2 * at)
        .finish();
    }) as [Uint8Array, Uint8Array];
    const { storage, etcd } = await open({
      [RANGE]: (call, count) => call.answer(count === 2 ? first : count === 3 ? second : range(7)),
      [WATCH]: (call) => void call.open().send(created),
    });
    const quiet = await storage.watch({ resourceVersion: '7' });
    const watch = await storage.watch({ sendInitialEvents: true, allowWatchBookmarks: true });
    await storage.requestProgress();
    const seen: unknown[] = [];
    for (let n = 0; n < 4; n++) seen.push(shown((await watch.next()).value));
    expect(seen).toEqual([
      ['ADDED', '1'],
      ['ADDED', '2'],
      ['ADDED', '3'],
      ['BOOKMARK', '7'],
    ]);
    const next = watch.next();
    await until(() => etcd.of(WATCH)[1]?.messages.length === 2);
    expect(Buffer.from(etcd.of(WATCH)[1]?.messages[1] ?? []).toString('hex')).toBe('1a00');
    etcd.of(WATCH)[1]?.send(watchResponse(8));
    expect(shown((await next).value)).toEqual(['BOOKMARK', '8']);
    expect(etcd.of(WATCH)[0]?.messages).toHaveLength(1);
    await watch.return();
    await quiet.return();
  });

  it('progress of those in its scope only', async () => {
    const { storage, etcd } = await open({ [WATCH]: (call) => void call.open().send(created) });
    const options = { resourceVersion: '7', allowWatchBookmarks: true };
    const watches = [await storage.scope('x/').watch(options), await storage.scope('y/').watch(options)];
    await storage.scope('x/').requestProgress();
    await until(() => etcd.of(WATCH)[0]?.messages.length === 2);
    await storage.currentVersion(); // on the same connection, so what was sent before has come
    expect(etcd.of(WATCH)[1]?.messages).toHaveLength(1);
    for (const watch of watches) await watch.return();
  });

  it('progress is told to those that want it: those in the scope, and with BOOKMARKs', async () => {
    const { storage, etcd } = await open({ [WATCH]: (call) => void call.open().send(created) });
    const inner = await storage.scope('x/').scope('y/').watch({ resourceVersion: '7', allowWatchBookmarks: true });
    const quiet = await storage.scope('x/').watch({ resourceVersion: '7' });
    await storage.scope('x/').requestProgress();
    await until(() => etcd.of(WATCH)[0]?.messages.length === 2);
    for (const call of etcd.of(WATCH)) call.send(watchResponse(8));
    expect(shown((await inner.next()).value)).toEqual(['BOOKMARK', '8']);
    etcd.of(WATCH)[1]?.send(watchResponse(9, [put(keyValue('/watchmux/x/a', '{}', { created: 9, modified: 9 }))]));
    expect(shown((await quiet.next()).value)).toEqual(['ADDED', '9']);
    await inner.return();
    await quiet.return();
  });

  it('progress again after a cut, if it is owed; what etcd says of the past is no answer', async () => {
    const { storage, etcd, clock } = await open({ [WATCH]: (call) => void call.open().send(created) });
    const watch = await storage.watch({ resourceVersion: '7', allowWatchBookmarks: true });
    const next = watch.next();
    await storage.requestProgress();
    await until(() => etcd.of(WATCH)[0]?.messages.length === 2);
    etcd.of(WATCH)[0]?.send(watchResponse(6));
    await storage.currentVersion();
    etcd.cut();
    await until(() => etcd.of(WATCH)[1]?.messages.length === 2);
    etcd.of(WATCH)[1]?.send(watchResponse(7));
    expect(shown((await next).value)).toEqual(['BOOKMARK', '7']);
    expect(clock.pending).toBe(2); // a ping, and a question that will not be asked
    await watch.return();
    expect(clock.pending).toBe(0);
  });

  it('begins now if that is asked for, without the state', async () => {
    const { storage, etcd } = await open({ [WATCH]: (call) => void call.open().send(created) });
    const options = [{}, { resourceVersion: '0' }, { resourceVersion: '5' }];
    for (const [at, more] of options.entries()) {
      const watch = await storage.watch({ sendInitialEvents: false, ...more });
      await until(() => etcd.of(WATCH)[at]?.messages[0] !== undefined);
      expect(starts(etcd.of(WATCH))[at]).toContain(at === 2 ? '1806' : '1808');
      await watch.return();
    }
  });

  it('of the state, what cannot be read: one ERROR, or nothing if nobody waits any more', async () => {
    for (const end of ['refused', 'stopped'] as const) {
      const first = new ProtoWriter()
        .message(1, header(7))
        .message(2, keyValue('/watchmux/a', '{}'))
        .bool(3, true)
        .int64(4, 2)
        .finish();
      const { storage, etcd, clock } = await open({
        [RANGE]: (call, count) => {
          if (count === 1) call.answer(first);
          else if (end === 'refused') call.refuse(11, 'required revision has been compacted');
        },
      });
      const watch = await storage.watch({ sendInitialEvents: true });
      expect(shown((await watch.next()).value)).toEqual(['ADDED', '1']);
      const next = watch.next();
      await until(() => etcd.of(RANGE).length === 2);
      if (end === 'stopped') watch.stop();
      expect(shown((await next).value)).toEqual(end === 'refused' ? 410 : [undefined, undefined]);
      expect((await watch.next()).done).toBe(true);
      expect(clock.pending).toBe(0);
    }
  });

  it('an abort ends the question where it begins', async () => {
    const { storage, etcd, clock } = await open({ [RANGE]: () => {} });
    const abort = new AbortController();
    const watch = storage.watch({ sendInitialEvents: false, signal: abort.signal }).catch((error: unknown) => error);
    await until(() => etcd.of(RANGE).length === 1);
    abort.abort(new Error('enough'));
    expect([await watch, clock.pending]).toEqual([new Error('enough'), 0]);
  });

  it('lasts for as many seconds as it is given', async () => {
    const { storage, clock } = await open({ [WATCH]: (call) => void call.open().send(created) });
    const watch = await storage.watch({ resourceVersion: '7', timeoutSeconds: 5 });
    clock.advance(4_999);
    expect(watch.stopped).toBe(false);
    clock.advance(1);
    expect(watch.stopped).toBe(true);
    expect((await watch.next()).done).toBe(true);
    await expect(storage.watch({ timeoutSeconds: -1 })).rejects.toThrow(/^timeoutSeconds: /);
    await expect(storage.list({ limit: -1 })).rejects.toThrow(/^limit: /);
  });
});
