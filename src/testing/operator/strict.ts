/**
 * Clients whose writes are refused if the schema does not have a field: a cluster drops it, and warns whom nobody reads. So a status
 * that is misspelt fails the test.
 */
import type { ResourceClient, ResourceSource } from '../../cache/resource-client.ts';

/** Where the options of a write are among its arguments. */
const WRITES: Readonly<Record<string, number>> = { create: 1, update: 1, patch: 2 };
/** What leads to other clients of the kind. */
const CLIENTS: readonly string[] = ['in', 'subresource'];

export function strictly<C extends object>(client: C): C {
  return new Proxy(client, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function' || typeof name !== 'string') return value;
      if (CLIENTS.includes(name)) return (...given: unknown[]) => strictly(value.apply(target, given) as object);
      const at = WRITES[name];
      if (at === undefined) return value.bind(target);
      return (...given: unknown[]) =>
        value.apply(target, given.toSpliced(at, 1, { fieldValidation: 'Strict', ...(given[at] as object | undefined) }));
    },
  });
}

/** The same of all kinds. */
export function strictSource(source: ResourceSource): ResourceSource {
  return {
    resource: (kind) => strictly(source.resource(kind)),
    kind: async <O extends object>(...given: Parameters<ResourceSource['kind']>) =>
      strictly((await source.kind(...given)) as unknown as ResourceClient<O>),
  };
}
