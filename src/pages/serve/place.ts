// Where the page is, in its URL, so that a page that is reloaded or sent to others shows the same. The hash names the kind; the
// query has the rest, by the names that the server's own API has for it.
import { queryWith } from '../words.ts';

/** What the query may have; all are empty by default. */
const NAMES = ['namespace', 'labelSelector', 'fieldSelector', 'resourceVersion', 'search', 'sort', 'columns'] as const;
type Name = (typeof NAMES)[number];

/** Where the page is. */
export type Place = Readonly<Record<Name, string>> & {
  /** The kind: `orders.example.com/v1`; empty: none was chosen. */
  readonly kind: string;
};

/** Longer values are not shown to a server. */
const MAX_CHARS = 5_000;

/** Reads a URL. Names that are not known are of others. */
export function readPlace({ search, hash }: Pick<URL, 'search' | 'hash'> = location): Place {
  const query = new URLSearchParams(search);
  const values = NAMES.map((name) => [name, (query.get(name) ?? '').slice(0, MAX_CHARS)]);
  return { ...(Object.fromEntries(values) as Record<Name, string>), kind: decoded(hash.slice(1)) };
}

/** The URL of another place, without the origin. Of what others keep in the query, nothing is lost. */
export function toUrl({ search, hash, pathname }: Pick<URL, 'search' | 'hash' | 'pathname'>, change: Partial<Place>): string {
  const { kind, ...values } = change;
  return `${pathname}${queryWith(search, values)}${kind === undefined ? hash : `#${encodeURIComponent(kind)}`}`;
}

/** Goes to another place. `step`: the browser's button goes back from there. */
export function goTo(change: Partial<Place>, { step = false }: { readonly step?: boolean } = {}): void {
  const url = toUrl(new URL(location.href), change);
  if (url === location.pathname + location.search + location.hash) return;
  if (step) history.pushState(null, '', url);
  else history.replaceState(null, '', url);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}
