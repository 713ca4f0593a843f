/**
 * What is stored, compared with what a server knows: a storage outlives the definitions of the programs that use it.
 *
 *     <group or core>/<plural>/<namespace>/<name>
 *
 * - At the start: objects of another kind, scope or version than defined would be served as what they are not.
 * - When a namespace is deleted: it may have objects of kinds that only another server on the same storage knows.
 */
import type { KubernetesObject } from '../cache/object.ts';
import type { Storage } from '../storage/storage.ts';
import { invalid, type WatchError } from '../watch/errors.ts';
import { nextTurn } from '../watch/turn.ts';
import type { Catalog, ResourceInfo } from './resource-info.ts';
import { toRows } from './subresources.ts';

/** How many objects or keys are read at a time. */
const PAGE = 500;

/** Returns what is wrong with the stored objects of a resource; undefined if they can be served. Reads all of them. */
export async function faultOfStored(
  storage: Storage,
  all: readonly ResourceInfo[],
  signal: AbortSignal,
): Promise<WatchError | undefined> {
  const { prefix } = all[0] as ResourceInfo;
  const scope = storage.scope(prefix);
  let next: string | undefined;
  do {
    const page = await scope.list({ limit: PAGE, continue: next, signal });
    for (const object of page.items) {
      const fault = faultOf(object, all);
      if (fault !== undefined)
        return invalid('resources', `${fault} in the storage`, `definitions for everything under ${prefix}`);
    }
    next = page.continue;
    if (next) await new Promise<void>(nextTurn);
  } while (next);
  return undefined;
}

/** An object that was not written through the API may lack anything, and is served as it is. */
function faultOf({ apiVersion, kind, metadata }: KubernetesObject, all: readonly ResourceInfo[]): string | undefined {
  const { kind: expected, namespaced } = all[0] as ResourceInfo;
  const { name, namespace, uid } = metadata ?? {};
  const which = `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name} of ${apiVersion}`;
  if (typeof kind === 'string' && kind !== expected) return which;
  if (typeof apiVersion === 'string' && !all.some((info) => [info.apiVersion, info.storedAs].includes(apiVersion))) return which;
  if (uid !== undefined && (namespace !== undefined) !== namespaced)
    return `${which}, ${namespaced ? 'in no' : 'in a'} namespace`;
  return undefined;
}

/**
 * Finds kinds that have objects in a namespace but are not in the catalog, judging by the objects themselves. Keys of other
 * programs are left alone. Finds none in a storage without `keys`.
 */
export async function unknownKinds(
  storage: Storage,
  { catalog, namespace, signal }: { catalog: Catalog; namespace: string; signal: AbortSignal | undefined },
): Promise<readonly ResourceInfo[]> {
  const known = new Set(catalog.all.map(({ prefix }) => prefix));
  const found: ResourceInfo[] = [];
  let from = '';
  for (let page = await keysOf(storage, from, signal); page.length > 0; page = await keysOf(storage, from, signal)) {
    for (const key of page) {
      if (key < from) continue;
      const [prefix] = /^[^/]+\/[^/]+\//.exec(key) ?? [];
      // A kind may have any number of keys, and only its first is needed.
      from = prefix === undefined ? `${key}\0` : `${prefix.slice(0, -1)}0`;
      if (prefix === undefined || known.has(prefix)) continue;
      const { items } = await storage.scope(`${prefix}${namespace}/`).list({ limit: 1, signal });
      const info = items[0] && kindOf(items[0], prefix, namespace);
      if (info !== undefined) found.push(info);
    }
  }
  return found;
}

async function keysOf(storage: Storage, from: string, signal: AbortSignal | undefined): Promise<readonly string[]> {
  return (await storage.keys?.({ from, limit: PAGE, signal })) ?? [];
}

/** The kind of an object that an API server has written under a prefix; undefined: none has. */
export function kindOf(
  { apiVersion, kind, metadata }: KubernetesObject,
  prefix: string,
  namespace: string,
): ResourceInfo | undefined {
  const [folder = '', plural = ''] = prefix.split('/');
  const group = folder === 'core' ? '' : folder;
  const [version = '', rest] = String(apiVersion).split('/').reverse();
  if ((rest ?? '') !== group || typeof kind !== 'string' || metadata?.namespace !== namespace || !metadata.uid) return undefined;
  const suffix = group && `.${group}`;
  return {
    ...{ group, version, apiVersion: String(apiVersion), plural, kind, prefix, namespaced: true, shared: true },
    ...toRows({ group, plural }),
    ...{ singular: kind.toLowerCase(), listKind: `${kind}List`, shortNames: [], categories: [], fields: {} },
    ...{ validate: undefined, schema: undefined, preserveUnknownFields: true, columns: undefined },
    ...{ resourceName: `${plural}${suffix}`, kindName: `${kind}${suffix}` },
  };
}
