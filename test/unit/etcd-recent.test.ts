// What was written or told a moment ago is not read a second time; and never taken for something else.
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { EtcdEntry, RecentObjects } from '../../src/storage/etcd/etcd-changes.ts';
import { EtcdStorage } from '../../src/storage/etcd/index.ts';
import { TXN, WATCH } from '../../src/storage/etcd/wire/channel.ts';
import { type KeyValue, ProtoWriter } from '../../src/storage/etcd/wire/messages.ts';
import type { ChangeEvent } from '../../src/storage/storage.ts';
import { encoded } from '../../src/storage/values.ts';
import { FakeEtcd, header, keyValue, put, watchResponse } from './fake-etcd.ts';

function kvOf(value: string, revision: number): KeyValue {
  const [key, bytes] = [Buffer.from('/a'), Buffer.from(value)];
  return { key, value: bytes, createRevision: 1n, modRevision: BigInt(revision) };
}

const VALUE = '{"metadata":{"name":"a"},"spec":1}';

function known(value: string, revision: number): { readonly recent: RecentObjects; readonly object: KubernetesObject } {
  const recent = new RecentObjects();
  const object = new EtcdEntry<KubernetesObject>(kvOf(value, revision)).object;
  recent.add(BigInt(revision), object);
  return { recent, object };
}

describe('recent objects', () => {
  it('a value of the same revision and bytes is the object', () => {
    const { recent, object } = known(VALUE, 7);
    expect(recent.find(kvOf(VALUE, 7))).toBe(object);
  });

  it.each([
    ['another revision', VALUE, 8],
    ['another content', '{"metadata":{"name":"a"},"spec":2}', 7],
    ['a longer one', '{"metadata":{"name":"a"},"spec":11}', 7],
    ['another beginning of the same length', '{"metadatA":{"name":"a"},"spec":1}', 7],
    ['nothing', '', 7],
  ])('%s is none', (_, value, revision) => {
    expect(known(VALUE, 7).recent.find(kvOf(value, revision))).toBeUndefined();
  });

  it('what has no bytes of etcd is not kept', () => {
    const { recent } = known('{ "metadata": { "name": "a" } }', 7);
    expect(recent.find(kvOf('{ "metadata": { "name": "a" } }', 7))).toBeUndefined();
  });

  it('the oldest go when they are too many bytes', () => {
    const recent = new RecentObjects();
    const jsonOf = (i: number): string => `{"metadata":{"name":"${i}"},"spec":"${'x'.repeat(1_000_000)}"}`;
    for (let i = 1; i <= 6; i++) recent.add(BigInt(i), new EtcdEntry(kvOf(jsonOf(i), i)).object);
    expect([1, 2, 3, 4, 5, 6].map((i) => recent.find(kvOf(jsonOf(i), i)) !== undefined)).toEqual([
      ...[false, false, true, true, true, true],
    ]);
    recent.clear();
    expect(recent.find(kvOf(jsonOf(6), 6))).toBeUndefined();
  });
});

describe('a watch of etcd', () => {
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  const written = (revision: number): Uint8Array => new ProtoWriter().message(1, header(revision)).bool(2, true).finish();

  it('tells the object that was written, and the one that it told before; of another etcd what that has', async () => {
    let revision = 7;
    const etcd = await FakeEtcd.start({
      [TXN]: (call) => call.answer(written(++revision)),
      [WATCH]: (call) => call.open().send(watchResponse(7, [], { created: true })),
    });
    closing.push(() => etcd.stop());
    const storage = new EtcdStorage({ endpoints: [etcd.url] });
    closing.push(() => storage.close());
    const watch = await storage.watch({ resourceVersion: '7' });
    onTestFinished(() => void watch.return());
    const created = await storage.create('a', { metadata: { name: 'a' } });
    const updated = await storage.update('a', (it) => ({ ...it, spec: 1 }) as KubernetesObject, { cached: created });
    expect(updated.metadata).toEqual({ resourceVersion: '9', name: 'a' });
    const [one, two] = ['{"metadata":{"name":"a"}}', '{"metadata":{"name":"a"},"spec":1}'];
    const call = etcd.of(WATCH)[0];
    const at = (modified: number): { created: number; modified: number } => ({ created: 8, modified });
    call?.send(watchResponse(8, [put(keyValue('/watchmux/a', one, at(8)))]));
    call?.send(watchResponse(9, [put(keyValue('/watchmux/a', two, at(9)), keyValue('/watchmux/a', one, at(8)))]));
    call?.send(watchResponse(10, [put(keyValue('/watchmux/a', one, at(10)), keyValue('/watchmux/a', '{"metadata":{}}', at(9)))]));
    const events: ChangeEvent<KubernetesObject>[] = [];
    for (let i = 0; i < 3; i++) events.push((await watch.next()).value as ChangeEvent<KubernetesObject>);
    expect(events[0]?.object).toBe(created);
    expect([events[1]?.object, events[1]?.previous]).toEqual([updated, created]);
    expect(events[1]?.object).toBe(updated);
    expect(events[1]?.previous).toBe(created);
    expect(events[2]).toEqual({
      type: 'MODIFIED',
      object: { metadata: { resourceVersion: '10', name: 'a' } },
      previous: { metadata: { resourceVersion: '9' } },
    });
    const sent = new TextDecoder().decode(encoded(updated));
    expect(sent).toBe('{"metadata":{"resourceVersion":"9","name":"a"},"spec":1}');
  });
});
