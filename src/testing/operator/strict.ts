/**
 * Clients whose writes are refused if the schema lacks a field: a cluster would drop it, with a warning that nobody reads. So a
 * misspelt status fails the test.
 */
import type { ResourceClient, ResourceSource } from '../../cache/resource-client.ts';
import { WatchError } from '../../watch/errors.ts';

/** Where the options of a write are among its arguments. */
const WRITES: Readonly<Record<string, number>> = { create: 1, update: 1, patch: 2 };
/** Methods that return other clients of the kind. */
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

/** The same for all kinds. */
export function strictSource(source: ResourceSource): ResourceSource {
  return {
    resource: (kind) => strictly(source.resource(kind)),
    kind: async <O extends object>(...named: Parameters<ResourceSource['kind']>) =>
      strictly((await source.kind(...named)) as unknown as ResourceClient<O>),
  };
}

/**
 * What the caches of an operator under test keep: read-only copies, none shared with its server. So a reconcile that changes a
 * cached object fails at that line, which it would not in a cluster. Upstream: `KUBE_CACHE_MUTATION_DETECTOR`.
 */

/** A copy that cannot be changed. */
export const readOnlyCopy = <T extends object>(object: T): T => frozen(structuredClone(object));

/** Makes an object, and everything in it, read-only. */
export function frozen<T extends object>(object: T): T {
  const open: object[] = [object];
  for (let each = open.pop(); each; each = open.pop()) {
    if (Object.isFrozen(each)) continue;
    for (const below of Object.values(Object.freeze(each))) if (typeof below === 'object' && below) open.push(below);
  }
  return object;
}

/** What V8, JavaScriptCore and SpiderMonkey say about a write to a frozen object. */
const REFUSED = /read.?only|not extensible|non-extensible|[Cc]annot delete property|is non-configurable/;

/** Explains an error from a write to a frozen object; returns other errors as they are. */
export function explained(error: unknown, key: string): unknown {
  if (!(error instanceof TypeError) || !REFUSED.test(error.message)) return error;
  const [where = ''] = error.stack?.split('\n').filter((line) => /^ *at .*:\d+\)?$/.test(line)) ?? [];
  const advice = 'objects of caches are read-only: change a copy, made with structuredClone, or the draft of updateStatus';
  return new WatchError('INVALID_ARGUMENT', `${key}: ${advice}: ${error.message} ${where.trim()}`, { cause: error });
}
