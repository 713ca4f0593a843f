import type { Storage } from '../../src/storage/index.ts';

/** The same storage, as one that does not have something that a storage need not have. */
export function without<S extends Pick<Storage, 'close'>>(storage: S, what: 'served' | 'backing'): S {
  return new Proxy(storage, {
    get: (target, name) => {
      if (name === what) return undefined;
      const found = target[name as keyof S] as unknown;
      if (typeof found !== 'function') return found;
      if (name === 'scope') return (...of: unknown[]) => without(found.apply(target, of) as Storage, what);
      return found.bind(target);
    },
  });
}
