/** Content negotiation: what a client accepts, and the type that a body declares. */

/** One of the media types that a client accepts. */
export interface MediaRange {
  /** In lower case, such as `application/json`. */
  readonly type: string;
  /** Such as `as` and `g`; without `q`. Names are in lower case. */
  readonly parameters: ReadonlyMap<string, string>;
}

const MAX_CLAUSES = 32;

/** Reads an Accept header: the clauses in the order of preference. Those with `q=0` are left out. No clauses mean any type. */
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
    return type && q > 0 ? [{ clause: { type: type.toLowerCase(), parameters }, q }] : [];
  });
  // A sort keeps the order of what is equal.
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
