/**
 * Finds a resource by what people call it, as kubectl does, or by the kind of its objects: the server says what it has.
 *
 *     pods, pods/v1       ---> /api/v1
 *     deployments.apps/v1 ---> /apis, with the resources of all groups        then, if they are not there, /apis/apps/v1
 *     deployments.apps    ---> the same, the preferred version first          then /apis/apps, and its versions
 *     deployments.v1.apps ---> the same: as kubectl writes one version of one group
 *     deploy              ---> /api/v1, then /apis: the first that has it
 *
 * Since Kubernetes 1.26, `/apis` answers for all groups at once, so that all kinds of a program cost two requests; older servers are
 * asked for each version of a group. Answers are shared by all that ask at the same time, and for as long as a caller allows. What
 * an old answer does not have may be new: that is asked for again. Upstream: the RESTMapper of controller-runtime.
 *
 * That a server does not have a resource, it must have said itself: where it has refused to answer, a proxy may have done so. Then it
 * is asked for its groups, and what it says to that counts.
 */
import { toObject } from '../cache/http/answer.ts';
import { ask, type HttpSettings, type RequestSpec } from '../cache/http/exchange.ts';
import { type GroupVersionKind, type KindOptions, type ResourceType, segment } from '../cache/resource-client.ts';
import { checkOptions, invalid, isRecord, isWatchError, WatchError, wholeNumber } from '../watch/errors.ts';
import { Shared } from '../watch/shared.ts';

/** The whole answer of a server, if it knows that; otherwise only the names of its groups. */
const ACCEPT = ['v2', 'v2beta1']
  .map((version) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList,`)
  .concat('application/json')
  .join('');
const MAX_AGE_MS = 10_000;
const ALL_GROUPS = 'apis';

interface GroupVersion {
  readonly group: string;
  readonly version: string;
}

/** One version of a group, with its resources unless they must be asked for. */
interface Served extends GroupVersion {
  readonly resources?: readonly Known[] | undefined;
}

/** A resource, and what it is called. */
interface Known {
  readonly type: ResourceType;
  /** In lower case. */
  readonly names: readonly string[];
}

/** What a server has at a path: nothing, too, if it refuses to say. */
interface Reply {
  readonly served: readonly Served[];
  readonly refusal?: WatchError;
}

/** An answer, and when it was asked for. */
interface Answer {
  readonly atMs: number;
  readonly reply: Shared<Reply>;
}

/** How old what is read may be. */
interface Terms {
  readonly sinceMs: number;
  readonly signal: AbortSignal | undefined;
  /** Gets those of the server. */
  readonly refusals: WatchError[];
}

/** What is needed to ask. */
interface Asker {
  readonly server: URL;
  readonly means: HttpSettings;
}

/** What a server has, as far as it was asked. */
export class Discovery {
  readonly #asker: Asker;
  /** By path. Those that are too old for everybody go when another comes. */
  readonly #answers: Map<string, Answer> = new Map();

  constructor(asker: Asker) {
    this.#asker = asker;
  }

  /** Resolves with the resource. Rejects with INVALID_ARGUMENT if the server says that it has none with this name. */
  async find(name: string | GroupVersionKind, options: KindOptions = {}): Promise<ResourceType> {
    const { signal, maxAgeMs = MAX_AGE_MS } = checkOptions(options, ['signal', 'maxAgeMs']);
    wholeNumber('maxAgeMs', maxAgeMs);
    const { place, matches } = toQuestion(name);
    const nowMs = this.#asker.means.clock.now();
    const refusals: WatchError[] = [];
    for (const each of readings(place)) {
      for (const sinceMs of new Set([nowMs - maxAgeMs, nowMs])) {
        const narrow = sinceMs === nowMs;
        const terms = { sinceMs, signal, narrow, refusals: narrow ? refusals : [] };
        for await (const { resources = [] } of this.#places(each, terms)) {
          const found = resources.find(matches);
          if (found) return found.type;
        }
      }
    }
    if (refusals.length > 0) await this.#confirm(place, refusals, signal);
    const shown = typeof name === 'string' ? name : `${name.apiVersion} ${name.kind}`;
    throw invalid('resource', shown, 'one that the server has');
  }

  /** `narrow`: asks for no more than the group, if that is known. */
  async *#places(place: GroupVersion, terms: Terms & { readonly narrow: boolean }): AsyncGenerator<Served> {
    const { group, version } = place;
    if (!group) {
      yield* await this.#read(toPath({ group, version: version || 'v1' }), terms);
      if (version) return;
    }
    const isOne = Boolean(group) && terms.narrow;
    if (isOne && version) return yield* await this.#read(toPath(place), terms);
    for (const each of await this.#read(isOne ? `apis/${group}` : ALL_GROUPS, terms)) {
      if (group && (each.group !== group || (version && each.version !== version))) continue;
      if (each.resources) yield each;
      else yield* await this.#read(toPath(each), terms);
    }
  }

  /** Rejects unless the server itself answers, and does not say that it has what it has refused to show. */
  async #confirm(
    { group, version }: GroupVersion,
    refusals: readonly WatchError[],
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const answer = await this.#get(ALL_GROUPS, { signal });
    if (!isRecord(answer) || !Array.isArray(answer.groups)) throw new WatchError('INVALID_FRAME', 'expected an APIGroupList');
    const listed = toServed(answer, ALL_GROUPS).some((each) => each.group === group && (!version || each.version === version));
    // 404, though it is listed: it goes, or has just gone.
    const away = refusals.find(({ status }) => status?.code !== 404);
    if (listed && away) throw away;
  }

  async #read(path: string, terms: Terms): Promise<readonly Served[]> {
    const { served, refusal } = await this.#reply(path, terms);
    if (refusal) terms.refusals.push(refusal);
    return served;
  }

  async #reply(path: string, { sinceMs, signal }: Terms): Promise<Reply> {
    const known = this.#answers.get(path);
    if (known && known.atMs >= sinceMs && !known.reply.abandoned) return known.reply.join(signal);
    const atMs = this.#asker.means.clock.now();
    for (const [old, answer] of this.#answers) if (atMs - answer.atMs > MAX_AGE_MS) this.#answers.delete(old);
    const answer = { atMs, reply: new Shared((own) => this.#ask(path, own)) };
    this.#answers.set(path, answer);
    try {
      return await answer.reply.join(signal);
    } catch (error) {
      if (this.#answers.get(path) === answer) this.#answers.delete(path);
      throw error;
    }
  }

  /** What the server has at a path; nothing, too, if the server behind it is unavailable: others may have the resource. */
  async #ask(path: string, signal: AbortSignal): Promise<Reply> {
    const question = path === ALL_GROUPS ? { accept: ACCEPT } : undefined;
    try {
      return { served: toServed(await this.#get(path, { question, signal }), path) };
    } catch (error) {
      const quiet = path.startsWith('apis/') ? [404, 406, 503] : [404, 406];
      if (!isWatchError(error, 'REFUSED') || !quiet.includes(error.status?.code ?? 0)) throw error;
      return { served: [], refusal: error };
    }
  }

  #get(path: string, more: { question?: RequestSpec | undefined; signal: AbortSignal | undefined }): Promise<object> {
    const { server, means } = this.#asker;
    const url = new URL(server);
    url.pathname = `${server.pathname.replace(/\/$/, '')}/${path}`;
    return ask(means, url, { ...more, limit: 'maxListBytes', read: toObject<object> });
  }
}

/** Where to look, and for what. Throws INVALID_ARGUMENT for what is no name. */
function toQuestion(name: string | GroupVersionKind): { place: GroupVersion; matches: (known: Known) => boolean } {
  if (typeof name === 'string') {
    const [, word = '', group = '', version = ''] = /^([^./]+)(?:\.([^/]+))?(?:\/([^/]+))?$/.exec(name) ?? [];
    if (!word) throw invalid('resource', name, '"NAME", "NAME.GROUP" or "NAME.GROUP/VERSION"');
    const wanted = word.toLowerCase();
    return { place: checked({ group, version }), matches: ({ names }) => names.includes(wanted) };
  }
  const { apiVersion, kind } = checkOptions(name, ['apiVersion', 'kind']);
  const [, group = '', version = ''] = /^(?:([^/]+)\/)?([^/]+)$/.exec(apiVersion ?? '') ?? [];
  if (!version) throw invalid('apiVersion', apiVersion, '"VERSION" or "GROUP/VERSION"');
  if (typeof kind !== 'string' || !kind) throw invalid('kind', kind, 'a kind, such as "Deployment"');
  return { place: checked({ group, version }), matches: ({ type }) => type.kind === kind };
}

/** A group, or a version before its group, as kubectl writes it. */
function readings(place: GroupVersion): GroupVersion[] {
  const [, version, group] = (!place.version && /^([^.]+)\.(.*)$/.exec(place.group)) || [];
  return version === undefined || group === undefined ? [place] : [place, { group, version }];
}

function checked(place: GroupVersion): GroupVersion {
  if (place.group) segment('group', place.group);
  if (place.version) segment('version', place.version);
  return place;
}

/** The path of one version of a group. */
function toPath({ group, version }: GroupVersion): string {
  return group ? `apis/${group}/${version}` : `api/${version}`;
}

// What a server answers comes over the wire, so no member is certain. Upstream: `APIGroupDiscoveryList`, and the older `APIGroupList`,
// `APIGroup` and `APIResourceList`.

type Wire = Readonly<Record<string, unknown>>;

function toServed(answer: unknown, path: string): readonly Served[] {
  if (!isRecord(answer)) return [];
  if (answer.kind === 'APIGroupDiscoveryList') return recordsIn(answer.items).flatMap(toVersions);
  if (path === ALL_GROUPS) return recordsIn(answer.groups).flatMap(toOldVersions);
  const [, group, version] = path.split('/');
  if (version === undefined && path.startsWith('apis')) return toOldVersions(answer);
  const place = version === undefined ? { group: '', version: group as string } : { group: group as string, version };
  return [{ ...place, resources: recordsIn(answer.resources).flatMap((each) => toKnown(place, each)) }];
}

function toVersions({ metadata, versions }: Wire): Served[] {
  return recordsIn(versions).flatMap(({ version, resources }) => {
    const place = placeIn(isRecord(metadata) ? metadata.name : undefined, version);
    if (!place) return [];
    return [{ ...place, resources: recordsIn(resources).flatMap((each) => toAggregated(place, each)) }];
  });
}

/** The versions of a group, the preferred one first. */
function toOldVersions({ name, preferredVersion, versions }: Wire): Served[] {
  const all = recordsIn([preferredVersion, ...(Array.isArray(versions) ? versions : [])]).map(({ version }) => version);
  return Array.from(new Set(all), (version) => placeIn(name, version)).filter((place) => place !== undefined);
}

function placeIn(group: unknown, version: unknown): GroupVersion | undefined {
  if (typeof group !== 'string' || typeof version !== 'string' || !group || !version) return undefined;
  try {
    return checked({ group, version });
  } catch {
    return undefined;
  }
}

function toAggregated(place: GroupVersion, { resource, responseKind, scope, singularResource, shortNames }: Wire): Known[] {
  const kind = isRecord(responseKind) ? responseKind.kind : undefined;
  return toKnown(place, { name: resource, singularName: singularResource, kind, namespaced: scope === 'Namespaced', shortNames });
}

function toKnown({ group, version }: GroupVersion, { name, singularName, kind, namespaced, shortNames }: Wire): Known[] {
  if (typeof name !== 'string' || name.includes('/')) return []; // a subresource
  const names = [name, singularName, kind, ...(Array.isArray(shortNames) ? shortNames : [])];
  const type = { group, version, plural: name, ...(typeof kind === 'string' && { kind }), namespaced: namespaced === true };
  return [{ type, names: names.filter((each) => typeof each === 'string').map((each) => each.toLowerCase()) }];
}

function recordsIn(list: unknown): Wire[] {
  return Array.isArray(list) ? list.filter(isRecord) : [];
}
