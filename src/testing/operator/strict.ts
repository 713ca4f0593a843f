/**
 * Clients whose writes are refused if the schema does not have a field: a cluster drops it, and warns whom nobody reads. So a status
 * that is misspelt fails the test.
 */
import type { ResourceClient, ResourceSource } from '../../cache/resource-client.ts';
import { WatchError } from '../../watch/errors.ts';

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

/** The same of all kinds. `nameOf` says under which name the source has one. */
export function strictSource(source: ResourceSource, nameOf: (name: string) => string): ResourceSource {
  return {
    resource: (kind) => strictly(source.resource(typeof kind === 'string' ? nameOf(kind) : kind)),
    kind: async <O extends object>(...[kind, options]: Parameters<ResourceSource['kind']>) =>
      strictly((await source.kind(typeof kind === 'string' ? nameOf(kind) : kind, options)) as unknown as ResourceClient<O>),
  };
}

/**
 * What caches of an operator under test keep: nothing that its server has, too, and nothing that can be changed. So a reconcile that
 * changes what a cache has fails at that line, as it could not in a cluster. Upstream: `KUBE_CACHE_MUTATION_DETECTOR`.
 */

/** A copy that cannot be changed. */
export const readOnlyCopy = <T extends object>(object: T): T => frozen(structuredClone(object));

/** Makes an object, and all that is in it, one that cannot be changed. */
export function frozen<T extends object>(object: T): T {
  const open: object[] = [object];
  for (let each = open.pop(); each; each = open.pop()) {
    if (Object.isFrozen(each)) continue;
    for (const below of Object.values(Object.freeze(each))) if (typeof below === 'object' && below) open.push(below);
  }
  return object;
}

/** What V8, JavaScriptCore and SpiderMonkey say of a write to what is frozen. */
const REFUSED = /read.?only|not extensible|non-extensible|[Cc]annot delete property|is non-configurable/;

/** Says of an error that a write to such an object has failed with what that means; returns others as they are. */
export function explained(error: unknown, key: string): unknown {
  if (!(error instanceof TypeError) || !REFUSED.test(error.message)) return error;
  const [where = ''] = error.stack?.split('\n').filter((line) => /^ *at .*:\d+\)?$/.test(line)) ?? [];
  const advice = 'objects of caches are read-only: change a copy, as structuredClone makes it, or the draft of updateStatus';
  return new WatchError('INVALID_ARGUMENT', `${key}: ${advice}: ${error.message} ${where.trim()}`, { cause: error });
}
