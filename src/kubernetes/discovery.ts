/**
 * Finds a resource by any of its names, as kubectl does, or by the kind of its objects, in the server's discovery documents.
 *
 *     pods, pods/v1       ---> /api/v1
 *     deployments.apps/v1 ---> /apis, with the resources of all groups        then, if they are not there, /apis/apps/v1
 *     deployments.apps    ---> the same, the preferred version first          then /apis/apps, and its versions
 *     deployments.v1.apps ---> the same: as kubectl writes one version of one group
 *     deploy              ---> /api/v1, then /apis: the first that has it
 *
 * Since Kubernetes 1.26, `/apis` answers for all groups at once, so that all kinds of a program cost two requests; older servers are
 * asked for each version of a group. Answers are shared by concurrent questions, and for as long as a caller allows. A resource
 * missing from an old answer may be new, so it is asked for again. Upstream: the RESTMapper of controller-runtime.
 *
 * Only documents can show that a server lacks a resource. A 404 may come from a proxy that has lost its server, and looks like
 * that of a server without the group; so `/apis`, or `/api`, must confirm it. If that leaves it open, it is an error.
 */
import { toObject } from '../cache/http/answer.ts';
import { ask, type HttpSettings } from '../cache/http/exchange.ts';
import { type GroupVersionKind, type KindOptions, type ResourceType, segment } from '../cache/resource-client.ts';
import { SharedWork } from '../watch/abort.ts';
import { checkOptions, invalid, isRecord, refusalCode, tried, WatchError, wholeNumber } from '../watch/errors.ts';
import { urlAt } from './resource.ts';

/** The aggregated answer, if the server supports it; otherwise only the names of its groups. */
const ACCEPT = ['v2', 'v2beta1']
  .map((version) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList,`)
  .concat('application/json')
  .join('');
const MAX_AGE_MS = 10_000;
const ALL_GROUPS = 'apis';
const CORE_VERSIONS = 'api';

interface GroupVersion {
  readonly group: string;
  readonly version: string;
}

/** One version of a group, with its resources unless they must be requested. */
interface Served extends GroupVersion {
  readonly resources?: readonly Known[] | undefined;
}

interface Known {
  readonly type: ResourceType;
  /** In lower case. */
  readonly names: readonly string[];
}

/** An answer, and when it was asked for. */
interface Answer {
  readonly atMs: number;
  readonly served: SharedWork<readonly Served[]>;
}

/** How old the answers may be. */
interface Terms {
  readonly sinceMs: number;
  readonly nowMs: number;
  readonly signal: AbortSignal | undefined;
}

/** What is needed to ask. */
interface Asker {
  readonly server: URL;
  readonly means: HttpSettings;
}

/** What a server has, as far as it was asked. */
export class ClusterDiscovery {
  readonly #asker: Asker;
  /** By path. Answers that are too old for all callers are dropped when another arrives. */
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
    for (const each of readings(place)) {
      for (const sinceMs of new Set([nowMs - maxAgeMs, nowMs])) {
        for await (const { resources = [] } of this.#places(each, { sinceMs, nowMs, signal })) {
          const found = resources.find(matches);
          if (found) return found.type;
        }
      }
    }
    const shown = typeof name === 'string' ? name : `${name.apiVersion} ${name.kind}`;
    throw invalid('resource', shown, 'one that the server has');
  }

  /** Where it may be. If the answer must be new, only its group is asked for, if that is known. */
  async *#places(place: GroupVersion, terms: Terms): AsyncGenerator<Served> {
    const { group, version } = place;
    if (!group) {
      const core = this.#within({ group, version: version || 'v1' }, terms);
      if (version) return yield* await core;
      // A server may have other groups alone.
      yield* await core.catch(unless(NOT_FOUND));
    }
    const isOne = Boolean(group) && terms.sinceMs === terms.nowMs;
    if (isOne && version) return yield* await this.#within(place, terms);
    let failed: { readonly error: unknown } | undefined;
    for (const each of await (isOne ? this.#within(place, terms) : this.#read(ALL_GROUPS, terms))) {
      if (group && (each.group !== group || (version && each.version !== version))) continue;
      if (each.resources) yield each;
      else
        yield* await this.#within(each, terms).catch((error: unknown) => {
          // Another version may have it.
          if (group) failed ??= { error };
          return unless([...NOT_FOUND, 503])(error);
        });
    }
    if (failed) throw failed.error;
  }

  /** The content of a version of a group, or the versions of a group. */
  async #within(place: GroupVersion, terms: Terms): Promise<readonly Served[]> {
    const { group, version } = place;
    try {
      return await this.#read(toPath(place), terms);
    } catch (error) {
      unless(NOT_FOUND)(error);
      const all = await this.#read(group ? ALL_GROUPS : CORE_VERSIONS, { ...terms, sinceMs: terms.nowMs });
      const listed = all.filter((each) => each.group === group && (!version || each.version === version));
      // While a server adds a definition, its documents differ.
      if (listed.every(({ resources }) => resources)) return listed;
      throw error;
    }
  }

  async #read(path: string, { sinceMs, signal }: Terms): Promise<readonly Served[]> {
    const known = this.#answers.get(path);
    if (known && known.atMs >= sinceMs && !known.served.abandoned) return known.served.join(signal);
    const atMs = this.#asker.means.clock.now();
    for (const [old, answer] of this.#answers) if (atMs - answer.atMs > MAX_AGE_MS) this.#answers.delete(old);
    const answer = { atMs, served: new SharedWork((own) => this.#ask(path, own)) };
    this.#answers.set(path, answer);
    try {
      return await answer.served.join(signal);
    } catch (error) {
      if (this.#answers.get(path) === answer) this.#answers.delete(path);
      throw error;
    }
  }

  async #ask(path: string, signal: AbortSignal): Promise<readonly Served[]> {
    const { server, means } = this.#asker;
    const question = path === ALL_GROUPS ? { accept: ACCEPT } : undefined;
    const read = (text: string): readonly Served[] => toServed(toObject<object>(text), path);
    return ask(means, urlAt(server, path), { question, signal, limit: 'maxListBytes', read });
  }
}

/** Codes for a missing document, or, on old servers, a missing form of it. */
const NOT_FOUND = [404, 406];

/** Treats refusals with these codes as an empty answer. */
function unless(codes: readonly number[]): (error: unknown) => readonly Served[] {
  return (error) => {
    if (codes.includes(refusalCode(error) ?? 0)) return [];
    throw error;
  };
}

/** Where to look, and for what. Throws INVALID_ARGUMENT for anything but a name. */
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

function toPath({ group, version }: GroupVersion): string {
  if (!group) return `${CORE_VERSIONS}/${version}`;
  return version ? `${ALL_GROUPS}/${group}/${version}` : `${ALL_GROUPS}/${group}`;
}

// Answers come over the wire, so no member is certain. Upstream: `APIGroupDiscoveryList`, and the older `APIGroupList`,
// `APIGroup`, `APIVersions` and `APIResourceList`.

type Wire = Readonly<Record<string, unknown>>;

/** Throws INVALID_FRAME for anything but such a document, which says nothing about what the server has. */
function toServed(answer: unknown, path: string): readonly Served[] {
  const [root, name = '', version] = path.split('/');
  const { kind, items, groups, versions, resources, name: group } = isRecord(answer) ? answer : {};
  if (path === ALL_GROUPS) {
    if (kind === 'APIGroupDiscoveryList' && Array.isArray(items)) return recordsIn(items).flatMap(toVersions);
    if (Array.isArray(groups)) return recordsIn(groups).flatMap(toOldVersions);
  } else if (path === CORE_VERSIONS) {
    if (Array.isArray(versions)) return versions.map((each) => ({ group: '', version: String(each) }));
  } else if (root === ALL_GROUPS && version === undefined) {
    if (group === name) return toOldVersions(answer as Wire);
  } else if (Array.isArray(resources)) {
    const place = version === undefined ? { group: '', version: name } : { group: name, version };
    return [{ ...place, resources: recordsIn(resources).flatMap((each) => toKnown(place, each)) }];
  }
  throw new WatchError('INVALID_FRAME', `/${path}: expected a discovery document of Kubernetes`);
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
  return tried(() => checked({ group, version }));
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
