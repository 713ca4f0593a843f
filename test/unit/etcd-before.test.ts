// A reader that keeps the state is asked what was there before a change, and etcd is not.
import { describe, expect, it, onTestFinished } from 'vitest';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { EtcdStorage } from '../../src/storage/etcd/index.ts';
import { WATCH } from '../../src/storage/etcd/wire/channel.ts';
import { ProtoReader, ProtoWriter } from '../../src/storage/etcd/wire/messages.ts';
import type { StorageEvent, StorageWatchOptions } from '../../src/storage/storage.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { closers } from '../closing.ts';
import { type FakeCall, FakeEtcd, keyValue, put, watchResponse } from './fake-etcd.ts';

type Seen = StorageEvent<KubernetesObject>;
const closing = closers();

interface Opened {
  readonly watch: Watch<Seen>;
  readonly call: FakeCall;
}

async function open(options: StorageWatchOptions<KubernetesObject>): Promise<Opened> {
  const etcd = await FakeEtcd.start({ [WATCH]: (call) => call.open().send(watchResponse(7, [], { created: true })) });
  closing.push(() => etcd.stop());
  const storage = new EtcdStorage({ endpoints: [etcd.url] });
  closing.push(() => storage.close());
  const watch = await storage.scope('x/').watch({ resourceVersion: '7', ...options });
  onTestFinished(() => void watch.return());
  const call = await new Promise<FakeCall>((resolve) => {
    const look = (): unknown => (etcd.of(WATCH)[0]?.messages[0] ? resolve(etcd.of(WATCH)[0] as FakeCall) : setImmediate(look));
    look();
  });
  return { watch, call };
}

/** Whether etcd was asked for previous values. */
function asksForPrevious({ messages: [request] }: FakeCall): boolean {
  const outer = new ProtoReader(request as Uint8Array);
  outer.next();
  for (const create = new ProtoReader(outer.bytes()); create.next(); ) {
    if (create.field === 6) return create.bool();
    create.skip();
  }
  return false;
}

const at = (modified: number, created = 1): { created: number; modified: number } => ({ created, modified });
const json = (spec: number): string => `{"metadata":{"name":"a"},"spec":${spec}}`;
const kv = (name: string, spec: number, revision: number, created?: number): Uint8Array =>
  keyValue(`/watchmux/x/${name}`, json(spec), at(revision, created));
const deleted = (name: string, revision: number): Uint8Array =>
  new ProtoWriter()
    .int64(1, 1)
    .message(2, keyValue(`/watchmux/x/${name}`, '', at(revision, 0)))
    .finish();
const old = { metadata: { name: 'a', resourceVersion: '3' }, spec: 0 };

describe('previousOf', () => {
  it('takes the place of previous values from etcd', async () => {
    const asked: string[] = [];
    const previousOf = (key: string): KubernetesObject => {
      asked.push(key);
      return old;
    };
    const { watch, call } = await open({ previousOf });
    expect(asksForPrevious(call)).toBe(false);
    call.send(watchResponse(9, [put(kv('a', 1, 8)), deleted('a', 9)]));
    const { value } = await watch.batches().next();
    const [changed, gone] = value as ChangeEvents;
    expect(changed).toMatchObject({ type: 'MODIFIED', object: { spec: 1 } });
    expect(changed?.previous).toBe(old);
    // Of one batch: nobody has put the change before it anywhere yet.
    expect(gone).toMatchObject({ type: 'DELETED', object: { metadata: { resourceVersion: '9' }, spec: 1 } });
    expect(gone?.previous).toBe(changed?.object);
    expect(asked).toEqual(['a']);
  });

  it('that throws ends the watch with an ERROR 500', async () => {
    const previousOf = (): never => {
      throw new Error('no idea');
    };
    const { watch, call } = await open({ previousOf });
    call.send(watchResponse(8, [put(kv('a', 1, 8))]));
    const object = { code: 500, reason: 'InternalError', message: 'no idea' };
    expect((await watch.next()).value).toMatchObject({ type: 'ERROR', object });
    expect((await watch.next()).done).toBe(true);
  });

  it('is asked again for what was taken', async () => {
    let current: KubernetesObject & { readonly spec: number } = old;
    const { watch, call } = await open({ previousOf: () => current });
    call.send(watchResponse(8, [put(kv('a', 1, 8))]));
    await watch.next();
    current = { metadata: { name: 'a', resourceVersion: '8' }, spec: 5 };
    const next = watch.next();
    call.send(watchResponse(9, [deleted('a', 9)]));
    const { previous } = (await next).value as ChangeEvents[number];
    expect(previous).toBe(current);
  });

  it('must know what was changed: otherwise the watch ends with an ERROR 500', async () => {
    const { watch, call } = await open({ previousOf: () => undefined });
    call.send(watchResponse(8, [put(kv('n', 1, 8, 8)), deleted('é', 9)]));
    expect((await watch.next()).value).toMatchObject({ type: 'ADDED' });
    const { value } = await watch.next();
    expect(value).toMatchObject({ type: 'ERROR', object: { code: 500 } });
    expect((value as { object: { message: string } }).object.message).toContain('"é", which changed at 9');
    expect((await watch.next()).done).toBe(true);
  });

  it('is not asked for what was created in the same batch', async () => {
    const { watch, call } = await open({ previousOf: () => undefined });
    call.send(watchResponse(9, [put(kv('b', 1, 8, 8)), put(kv('b', 2, 9, 8))]));
    const { value } = await watch.batches().next();
    expect((value as ChangeEvents).map(({ type, previous }) => [type, previous?.metadata?.resourceVersion])).toEqual([
      ['ADDED', undefined],
      ['MODIFIED', '8'],
    ]);
  });

  it('is not asked with a selector, which hides what was there', async () => {
    const { call } = await open({ previousOf: () => old, labelSelector: 'a' });
    expect(asksForPrevious(call)).toBe(true);
  });

  it('is a function', async () => {
    await expect(open({ previousOf: 1 as never })).rejects.toThrow(/previousOf: expected a function/);
  });
});

type ChangeEvents = (Exclude<Seen, { readonly type: 'ERROR' | 'BOOKMARK' }> & { previous?: KubernetesObject })[];
