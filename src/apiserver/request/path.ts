/**
 * What a URL asks for. Upstream: `RequestInfoFactory`.
 *
 *     /api/v1/namespaces/default/configmaps/a            one object
 *     /apis/example.com/v1/orders                        a collection, in all namespaces
 *     /apis/example.com/v1/watch/orders                  the same with `watch` forced
 *     /apis/example.com/v1/namespaces/x/orders/a/status  a subresource
 *     /healthz, /apis, /openapi/v3, ...                  not a resource: only `segments`
 *
 * URLs are untrusted. Each segment is decoded once; one that is then not a plain name, such as `..`, or contains a slash or a
 * control character, is refused. Nothing is normalised: a path is served only if it is written as clients write it.
 */

import { tried } from '../../watch/errors.ts';
import { badRequest, noSuchPath } from '../api-status.ts';

/** Content negotiation: what a client accepts, and the declared type of a body. */

/** One of the media types that a client accepts. */
export interface MediaRange {
  /** In lower case, such as `application/json`. */
  readonly type: string;
  /** Such as `as` and `g`; without `q`. Names are in lower case. */
  readonly parameters: ReadonlyMap<string, string>;
}

const MAX_CLAUSES = 32;

/** Reads an Accept header: its clauses in order of preference, without those with `q=0`. No clauses mean any type. */
export function readAccept(header: string | undefined): readonly MediaRange[] {
  const text = header?.trim() ?? '';
  if (text === '') return ANYTHING;
  // Clients send the same header with every request.
  if (text !== last.text) last = { text, clauses: clausesOf(text) };
  return last.clauses;
}

let last: { readonly text: string; readonly clauses: readonly MediaRange[] } = { text: '', clauses: [] };

function clausesOf(text: string): readonly MediaRange[] {
  const ranked = text.split(',', MAX_CLAUSES).flatMap((entry) => {
    const [type = '', ...words] = entry.split(';').map((word) => word.trim());
    const parameters = new Map(words.map(pair));
    const q = Number(parameters.get('q') ?? 1);
    parameters.delete('q');
    // A quality that is not a number is ignored, as upstream.
    return type && !(q <= 0) ? [{ clause: { type: type.toLowerCase(), parameters }, q: Number.isNaN(q) ? 1 : q }] : [];
  });
  // The sort is stable.
  return ranked.sort((one, other) => other.q - one.q).map(({ clause }) => clause);
}

const ANYTHING: readonly MediaRange[] = [{ type: '*/*', parameters: new Map() }];

function pair(word: string): [string, string] {
  const at = word.indexOf('=');
  const [name, value] = at < 0 ? [word, ''] : [word.slice(0, at), word.slice(at + 1)];
  return [name.trim().toLowerCase(), value.trim().replace(/^"(.*)"$/, '$1')];
}

/** The requested conversion of JSON. Upstream: the parameters `as`, `g` and `v`. */
interface Conversion {
  readonly kind: string;
  readonly group: string;
  readonly version: string;
}

/** The conversion of JSON that a clause requests; undefined: none. */
export function conversionOf({ parameters }: MediaRange): Conversion | undefined {
  const [kind, group, version] = [parameters.get('as'), parameters.get('g'), parameters.get('v')];
  if (kind === undefined && group === undefined && version === undefined) return undefined;
  return { kind: kind ?? '', group: group ?? '', version: version ?? '' };
}

/** Whether a clause includes JSON. */
export function isJson({ type }: MediaRange): boolean {
  return type === 'application/json' || type === 'application/*' || type === '*/*';
}

/** The media type of a body, in lower case and without parameters; empty if there is none. */
export function mediaType(header: string | undefined): string {
  return (header ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/** What a client wants to do, as `authorize` gets it. */
export type Verb = (typeof VERBS)[number];

/** All verbs: the only list of them. Discovery lists them in this order. */
export const VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'] as const;

export interface ResourcePath {
  readonly isResource: true;
  readonly group: string;
  readonly version: string;
  readonly apiVersion: string;
  readonly plural: string;
  /** Undefined for all namespaces, and for resources that are not namespaced. */
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
  /** The path had the prefix `watch`. */
  readonly forcedWatch: boolean;
}

export interface OtherPath {
  readonly isResource: false;
  readonly segments: readonly string[];
}

/** The limit of one segment: a name has at most 253 characters. */
const MAX_SEGMENT_CHARS = 512;
const MAX_SEGMENTS = 12;

/** Splits a request's target into path and query. The rest of an absolute URL, which proxies get, is ignored. */
export function splitTarget(target: string): { readonly path: string; readonly search: string } {
  const whole = target.startsWith('/') ? target : target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '');
  const relative = whole.includes('#') ? whole.replace(/#.*$/s, '') : whole;
  const at = relative.indexOf('?');
  return at < 0 ? { path: relative, search: '' } : { path: relative.slice(0, at), search: relative.slice(at + 1) };
}

/** Reads a path. Throws 400 for a malformed one, and 404 for one that cannot exist. */
export function readPath(path: string): ResourcePath | OtherPath {
  const segments = toSegments(path);
  const [root, ...rest] = segments;
  const hasGroup = root === 'apis';
  const head = hasGroup ? 2 : 1;
  if ((root !== 'api' && root !== 'apis') || rest.length <= head) return { isResource: false, segments };
  const [group, version] = hasGroup ? [rest[0] as string, rest[1] as string] : ['', rest[0] as string];
  const apiVersion = hasGroup ? `${group}/${version}` : version;
  return { isResource: true, group, version, apiVersion, ...readResource(rest.slice(head)) };
}

/** After a namespace's name, these are subresources of the namespace; anything else is a resource in it. */
const OF_NAMESPACES: ReadonlySet<string> = new Set(['status', 'finalize']);

type Within = Pick<ResourcePath, 'plural' | 'namespace' | 'name' | 'subresource' | 'forcedWatch'>;

function readResource(parts: readonly string[]): Within {
  const forcedWatch = parts[0] === 'watch' && parts.length > 1;
  const words = forcedWatch ? parts.slice(1) : parts;
  const within = words[0] === 'namespaces' && words.length > 2 && !OF_NAMESPACES.has(words[2] as string);
  const [plural, name, subresource, more] = within ? words.slice(2) : words;
  if (plural === undefined || more !== undefined) throw noSuchPath();
  return { plural, namespace: within ? words[1] : undefined, name, subresource, forcedWatch };
}

function toSegments(path: string): readonly string[] {
  if (!path.startsWith('/')) throw badRequest('the URL has no path');
  const raw = path.replace(/\/$/, '').split('/').slice(1);
  if (raw.length > MAX_SEGMENTS) throw noSuchPath();
  // Nearly all paths are plain.
  return path.length <= MAX_SEGMENT_CHARS && PLAIN.test(path) ? raw : raw.map(toSegment);
}

/** Segments that need no decoding and are not `..`: each begins with a letter or digit. */
const PLAIN = /^(?:\/[a-zA-Z0-9][-a-zA-Z0-9._:]*)+\/?$/;

/** Whether a text can be a name in a path. */
export const canBeSegment = (text: string): boolean =>
  text.length <= MAX_SEGMENT_CHARS && text !== '.' && text !== '..' && !/[/\\\p{C}]/u.test(text);

function toSegment(raw: string): string {
  if (raw === '' || raw.length > MAX_SEGMENT_CHARS * 3) throw noSuchPath();
  let segment = raw;
  try {
    if (raw.includes('%')) segment = decodeURIComponent(raw);
  } catch {
    throw badRequest('the path of the URL is not encoded correctly');
  }
  if (!canBeSegment(segment)) {
    throw badRequest('the path of the URL has a segment that cannot be a name');
  }
  return segment;
}

/** What a method means at a path; undefined for a method that is not allowed there. */
export function toVerb(method: string, { name }: Pick<ResourcePath, 'name'>, isWatch: boolean): Verb | undefined {
  const one = name !== undefined;
  if (method === 'GET' || method === 'HEAD') return isWatch ? 'watch' : one ? 'get' : 'list';
  if (method === 'POST') return one ? undefined : 'create';
  if (method === 'PUT') return one ? 'update' : undefined;
  if (method === 'PATCH') return one ? 'patch' : undefined;
  if (method === 'DELETE') return one ? 'delete' : 'deletecollection';
  return undefined;
}

/**
 * The pattern of a path, for labels: there is a limited number of them. Undefined if clients could invent the path. Only paths of
 * existing resources have a verb.
 */
export function routeOf(
  path: string,
  { verb, code }: { readonly verb?: Verb | undefined; readonly code: number },
): string | undefined {
  if (!verb && code !== 200) return undefined;
  const read = tried(() => readPath(path));
  if (read === undefined) return undefined;
  if (!read.isResource) return `/${read.segments.join('/')}`;
  const { apiVersion, plural, namespace, name, subresource, forcedWatch } = read;
  const part = subresource === 'status' || subresource === 'scale' ? subresource : '{subresource}';
  return [
    ...['', apiVersion.includes('/') ? 'apis' : 'api', apiVersion],
    ...(forcedWatch ? ['watch'] : []),
    ...(namespace === undefined ? [] : ['namespaces', '{namespace}']),
    ...[plural, ...(name === undefined ? [] : ['{name}']), ...(subresource === undefined ? [] : [part])],
  ].join('/');
}
