import { type ResourceContext, toInfo } from '../../src/apiserver/resource-info.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { type FieldFunctions, MemoryStorage, type Storage } from '../../src/storage/index.ts';
import { isWatchError } from '../../src/watch/errors.ts';
import { ORDERS } from './apiserver-rig.ts';

/** A storage of which some methods are others. */
export function over(storage: Storage, others: Partial<Storage>): Storage {
  return new Proxy(storage, {
    get(target, name) {
      const member: unknown = Reflect.get(others, name) ?? Reflect.get(target, name, target);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

/** What the verbs of orders stand on: a part of a storage in memory. */
export function newContext(more: Partial<ResourceContext> = {}): ResourceContext & { readonly gone: (string | undefined)[] } {
  const gone: (string | undefined)[] = [];
  let uids = 0;
  return {
    info: toInfo(ORDERS) as unknown as ResourceContext['info'],
    storage: new MemoryStorage({ fields: ORDERS.fields as FieldFunctions<KubernetesObject> }).scope('example.com/orders/'),
    now: () => Date.UTC(2026, 0, 2, 3, 4, 5),
    random: () => 0.5,
    uid: () => `uid-${++uids}`,
    maxSelectorLength: 1_000,
    onError: () => {},
    asker: () => {
      throw new Error('orders are no reviews');
    },
    during: (verb) => verb,
    related: () => undefined,
    collected: false,
    namespaceExists: async () => undefined,
    namespaceHolds: async () => {},
    removed: (namespace) => void gone.push(namespace),
    gone,
    ...more,
  };
}

/** Code and message of the Status with which something is refused. */
export async function refusalOf(done: Promise<unknown>): Promise<[number | undefined, string | undefined]> {
  try {
    await done;
  } catch (error) {
    if (!isWatchError(error, 'REFUSED')) throw error;
    return [error.status?.code, error.status?.message];
  }
  throw new Error('expected a refusal');
}

/** An order as it is stored. */
export function order(name: string, metadata: object = {}): KubernetesObject {
  return { apiVersion: 'example.com/v1', kind: 'Order', metadata: { name, namespace: 'default', ...metadata } };
}
