// An object does not go while it has a finalizer, also if that was added while its deletion was on its way. A kube-apiserver looks for
// finalizers first, and deletes then (kubernetes#77988).
import { expect, test } from 'vitest';
import { ApiServer, type ResourceDefinition } from '../../src/apiserver/index.ts';
import { MemoryStorage, type Storage } from '../../src/storage/index.ts';
import { ORDERS, ORDERS_PATH, rig } from './apiserver-rig.ts';

const MERGE = { 'content-type': 'application/merge-patch+json' };
const path = `${ORDERS_PATH}/a`;
const finalizers = ['example.com/f'];

/** A storage that does something before it deletes. */
function meanwhile(storage: Storage, work: () => Promise<unknown>): Storage {
  return new Proxy(storage, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      if (name === 'scope' || name === 'served')
        return (...args: never[]) => meanwhile(value.apply(target, args) as Storage, work);
      if (name !== 'delete') return value.bind(target);
      return async (...args: never[]) => {
        await work();
        return value.apply(target, args);
      };
    },
  });
}

test('a finalizer that is added between the look and the deletion holds the object', async () => {
  const storage = new MemoryStorage();
  const writer = new ApiServer({ storage, resources: [ORDERS as ResourceDefinition] });
  let added = 0;
  const add = async (): Promise<void> => {
    if (added++ > 0) return;
    const body = JSON.stringify({ metadata: { finalizers } });
    const answer = await writer.fetch(new Request(`http://127.0.0.1${path}`, { method: 'PATCH', headers: MERGE, body }));
    expect(answer.status).toBe(200);
  };
  const { call, server } = rig({ storage: meanwhile(storage, add) });
  expect((await call('POST', ORDERS_PATH, { metadata: { name: 'a' } })).code).toBe(201);
  expect((await call('DELETE', path)).code).toBe(200);
  expect(added).toBeGreaterThan(0);
  const { code, body } = await call('GET', path);
  expect([code, body.metadata.finalizers, typeof body.metadata.deletionTimestamp]).toEqual([200, finalizers, 'string']);
  await Promise.all([server.shutdown(), writer.shutdown()]);
});
