// Servers with a garbage collector, and what is created in them.
import { expect } from 'vitest';
import type { ApiServerOptions, ResourceDefinition } from '../../src/apiserver/index.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { EVERYTHING, ORDERS, quiet } from '../garbage-world.ts';
import { rig } from './apiserver-rig.ts';

type Rig = ReturnType<typeof rig>;

type Errors = { readonly errors: unknown[] };

/** A server that `closing` ends. */
export function collecting(closing: (() => unknown)[], options: Partial<ApiServerOptions> = {}): Rig & Errors {
  const errors: unknown[] = [];
  const storage = (options.storage as MemoryStorage | undefined) ?? new MemoryStorage();
  const made = rig({
    ...{ resources: EVERYTHING, garbageCollection: true, random: Math.random, onError: (error) => void errors.push(error) },
    ...{ uid: () => crypto.randomUUID(), ...options, storage },
  });
  closing.push(() => made.server.shutdown());
  return { ...made, storage, errors };
}

export interface Made {
  readonly path: string;
  readonly object: KubernetesObject & { readonly metadata: { readonly uid: string; readonly name: string } };
}

interface More {
  readonly finalizers?: readonly string[];
  readonly namespace?: string;
  readonly kind?: ResourceDefinition;
}

export const folderOf = ({ kind = ORDERS, namespace = 'default' }: More): string => {
  const at = kind.group === '' ? '/api/v1' : `/apis/${kind.group}/${kind.version}`;
  return `${at}${kind.namespaced === false ? '' : `/namespaces/${namespace}`}/${kind.plural}`;
};

export const refTo = ({ object }: Made, more: object = {}): object => ({
  ...{ apiVersion: object.apiVersion, kind: object.kind, name: object.metadata.name, uid: object.metadata.uid, ...more },
});

export const BLOCKS = { blockOwnerDeletion: true };

export class World {
  readonly rig: Rig;
  constructor(made: Rig) {
    this.rig = made;
  }
  async create(name: string, ownerReferences: readonly object[] = [], more: More = {}): Promise<Made> {
    const { finalizers } = more;
    const { code, body } = await this.rig.call('POST', folderOf(more), { metadata: { name, ownerReferences, finalizers } });
    expect([code, body.message]).toEqual([201, undefined]);
    return { path: `${folderOf(more)}/${name}`, object: body };
  }
  async delete({ path }: Made, propagationPolicy?: string): Promise<number> {
    return (await this.rig.call('DELETE', path, { propagationPolicy })).code;
  }
  async get({ path }: Made): Promise<KubernetesObject['metadata'] | undefined> {
    const { code, body } = await this.rig.call('GET', path);
    return code === 404 ? undefined : body.metadata;
  }
  quiet(): Promise<void> {
    return quiet(this.rig.server.resource('orders.example.com/v1'));
  }
}
