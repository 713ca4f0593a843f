// Where the page is, in its URL, so that a page that is reloaded or sent to others shows the same. The hash names the kind; the
// query has the rest, under the names that the server's own API uses.

import { tried } from '../../watch/errors.ts';
import { queryWith } from '../words.ts';
import type { PageResource } from './api.ts';

/** What the query may have; all are empty by default. */
const NAMES = ['namespace', 'labelSelector', 'fieldSelector', 'resourceVersion', 'search', 'sort', 'columns'] as const;
type Name = (typeof NAMES)[number];

/** Where the page is. */
export type PagePlace = Readonly<Record<Name, string>> & {
  /** The kind: `orders.example.com/v1`; empty: none was chosen. */
  readonly kind: string;
};

/** Longer values are not sent to a server. */
const MAX_CHARS = 5_000;

/** Reads a URL. Unknown names belong to others. */
export function readPlace({ search, hash }: Pick<URL, 'search' | 'hash'> = location): PagePlace {
  const query = new URLSearchParams(search);
  const values = NAMES.map((name) => [name, (query.get(name) ?? '').slice(0, MAX_CHARS)]);
  return { ...(Object.fromEntries(values) as Record<Name, string>), kind: decoded(hash.slice(1)) };
}

/** The URL of another place, without the origin. Keeps what others have in the query. */
export function toUrl({ search, hash, pathname }: Pick<URL, 'search' | 'hash' | 'pathname'>, change: Partial<PagePlace>): string {
  const { kind, ...values } = change;
  return `${pathname}${queryWith(search, values)}${kind === undefined ? hash : `#${encodeURIComponent(kind)}`}`;
}

/** Goes to another place. `step`: the browser's button goes back from there. */
export function goTo(change: Partial<PagePlace>, { step = false }: { readonly step?: boolean } = {}): void {
  const url = toUrl(new URL(location.href), change);
  if (url === location.pathname + location.search + location.hash) return;
  if (step) history.pushState(null, '', url);
  else history.replaceState(null, '', url);
}

const decoded = (text: string): string => tried(() => decodeURIComponent(text)) ?? '';

/** An object whose detail can be shown. */
export interface DetailRef {
  readonly resource: PageResource;
  /** Absent if the resource has none. */
  readonly namespace?: string | undefined;
  readonly name: string;
  /** Of the chosen object: another one may have its name later. */
  readonly uid?: string | undefined;
}

/** Names an object among all: `orders.example.com/v1 shop/tea`. */
export function keyOfRef({ resource, namespace = '', name }: DetailRef): string {
  return `${resource.id} ${namespace}/${name}`;
}

/** The parameter of the URL that names the object in the detail, so that a link shows it to others. */
const PARAMETER = 'object';

/** The same URL with another object, or none. */
export function withObject(url: string, ref: DetailRef | undefined): string {
  const changed = new URL(url);
  changed.search = queryWith(changed.search, { [PARAMETER]: ref ? keyOfRef(ref) : '' });
  return changed.href;
}

export function namesObject(url: string): boolean {
  return new URL(url).searchParams.has(PARAMETER);
}

/** The object that a URL names, if there is such a kind. */
export function objectIn(url: string, resources: readonly PageResource[]): DetailRef | undefined {
  const [, id, namespace, name] =
    /^(\S{1,500}) ([^/]{0,253})\/(.{1,500})$/.exec(new URL(url).searchParams.get(PARAMETER) ?? '') ?? [];
  const resource = resources.find((each) => each.id === id);
  if (resource === undefined || name === undefined || resource.namespaced !== (namespace !== '')) return undefined;
  return { resource, namespace: namespace || undefined, name };
}
