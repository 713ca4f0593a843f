import type { Storage } from '../../src/storage/index.ts';

/** The same storage, as one that does not have something that a storage need not have. */
export function without<S extends Storage<never>>(storage: S, what: 'served' | 'backing'): S {
  return new Proxy(storage, {
    get: (target, name) => {
      if (name === what) return undefined;
      if (name === 'scope')
        return (...of: Parameters<Storage['scope']>) => without(target.scope(...of) as unknown as Storage<never>, what);
      const found = target[name as keyof S];
      return typeof found === 'function' ? found.bind(target) : found;
    },
  });
}
