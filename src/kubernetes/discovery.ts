/**
 * Finds a resource by what people call it, as kubectl does: the server says what it has.
 *
 *     deployments.apps/v1 ---> /apis/apps/v1                         one version of one group
 *     deployments.apps    ---> /apis/apps ---> its versions          the preferred one first
 *     deployments.v1.apps ---> /apis/v1.apps, then /apis/apps/v1     as kubectl writes one version of one group
 *     deploy              ---> /api/v1, then /apis ---> all groups   the first that has it
 */
import { toObject } from '../cache/http/answer.ts';
import { ask, type HttpSettings } from '../cache/http/exchange.ts';
import { type ResourceType, segment } from '../cache/resource-client.ts';
import { invalid, isWatchError } from '../watch/errors.ts';

/** What the server says about one kind. Upstream: `metav1.APIResource`. It comes over the wire, so no member is certain. */
interface Described {
  readonly name?: unknown;
  readonly singularName?: unknown;
  readonly shortNames?: unknown;
  readonly kind?: unknown;
  readonly namespaced?: unknown;
}

interface Versioned {
  readonly version?: unknown;
}
interface Group {
  readonly name?: unknown;
  readonly preferredVersion?: Versioned;
  readonly versions?: readonly Versioned[];
}

/** What is needed to ask. */
interface Asker {
  readonly server: URL;
  readonly means: HttpSettings;
  readonly signal?: AbortSignal | undefined;
}

/** Resolves with the resource. Rejects with INVALID_ARGUMENT if the server has none with this name. */
export async function findResource(asker: Asker, text: string): Promise<ResourceType> {
  const [, word = '', group = '', version = ''] = /^([^./]+)(?:\.([^/]+))?(?:\/([^/]+))?$/.exec(text) ?? [];
  if (!word) throw invalid('resource', text, '"NAME", "NAME.GROUP" or "NAME.GROUP/VERSION"');
  const wanted = word.toLowerCase();
  for await (const place of places(asker, { group, version })) {
    const found = await findIn(asker, place, wanted);
    if (found) return found;
  }
  throw invalid('resource', text, 'one that the server has');
}

interface GroupVersion {
  readonly group: string;
  readonly version: string;
}

async function* places(asker: Asker, { group, version }: GroupVersion): AsyncGenerator<GroupVersion> {
  if (version) return yield { group, version };
  if (group) {
    yield* versionsOf(await read<Group>(asker, `apis/${segment('group', group)}`));
    const [, first, rest] = /^([^.]+)\.(.*)$/.exec(group) ?? [];
    if (first !== undefined && rest !== undefined) yield { group: rest, version: first };
    return;
  }
  yield { group: '', version: 'v1' };
  const { groups } = (await read<{ groups?: unknown }>(asker, 'apis')) ?? {};
  for (const each of Array.isArray(groups) ? (groups as Group[]) : []) yield* versionsOf(each);
}

/** The versions of a group, the preferred one first. */
function* versionsOf(group: Group | undefined): Generator<GroupVersion> {
  const { name, preferredVersion, versions } = group ?? {};
  const all = [preferredVersion, ...(Array.isArray(versions) ? versions : [])].map((each) => (each as Versioned)?.version);
  for (const version of new Set(all)) {
    if (typeof name === 'string' && typeof version === 'string') yield { group: name, version };
  }
}

async function findIn(asker: Asker, { group, version }: GroupVersion, word: string): Promise<ResourceType | undefined> {
  const path = `${group ? `apis/${segment('group', group)}` : 'api'}/${segment('version', version)}`;
  const { resources } = (await read<{ resources?: unknown }>(asker, path)) ?? {};
  for (const each of Array.isArray(resources) ? (resources as (Described | null)[]) : []) {
    const { name, singularName, shortNames, kind, namespaced } = each ?? {};
    if (typeof name !== 'string' || name.includes('/')) continue; // a subresource
    const names = [name, singularName, kind, ...(Array.isArray(shortNames) ? shortNames : [])];
    if (!names.some((known) => typeof known === 'string' && known.toLowerCase() === word)) continue;
    return { group, version, plural: name, ...(typeof kind === 'string' && { kind }), namespaced: namespaced === true };
  }
  return undefined;
}

/**
 * What the server has at a path; undefined if nothing, or if the server behind it is unavailable: others may have the resource.
 */
async function read<T>({ server, means, signal }: Asker, path: string): Promise<T | undefined> {
  const url = new URL(server);
  url.pathname = `${server.pathname.replace(/\/$/, '')}/${path}`;
  try {
    return await ask(means, url, { signal, read: toObject<T> });
  } catch (error) {
    if (isWatchError(error, 'REFUSED') && [404, 406, 503].includes(error.status?.code ?? 0)) return undefined;
    throw error;
  }
}
