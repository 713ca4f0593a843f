// The page's requests to its server, with a token if it requires one, and the resources that discovery lists. Discovery comes
// over the wire: anything unexpected is left out.

import type { FetchLike } from '../../bridge/client.ts';
import { byCodeUnit } from '../../selectors/syntax.ts';
import { tried } from '../../watch/errors.ts';
import { byId, say } from '../elements.ts';

/** The server has refused a request. */
export class Refused extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** What a token may consist of: it becomes a header. */
const TOKEN = /^[\x21-\x7e]{1,1000}$/;

/**
 * Sends requests to the server, with a token if it requires one. The token is in this object and nowhere else: not in the URL,
 * and not in a storage that another program at this address could read later.
 */
export class Access {
  #token: string | undefined = undefined;

  /** Returns whether the text can be a token. */
  use(token: string): boolean {
    if (!TOKEN.test(token)) return false;
    this.#token = token;
    return true;
  }

  /** Whether there is a token. It may be a wrong one. */
  get hasToken(): boolean {
    return this.#token !== undefined;
  }

  /** The host's `fetch`, with the token. */
  readonly fetch: FetchLike = (url, init) => fetch(url, { ...init, headers: { ...init.headers, ...this.headers } });

  /** Gets a text. Rejects with {@link Refused} for anything but success. */
  async text(path: string, { signal, accept }: { signal?: AbortSignal; accept?: string } = {}): Promise<string> {
    const headers = { ...this.headers, accept: accept ?? 'application/json' };
    const response = await fetch(path, { headers, cache: 'no-store', ...(signal && { signal }) });
    if (response.status === 401) throw new Refused(401, 'the server requires a token');
    const text = await response.text();
    if (!response.ok) throw new Refused(response.status, messageIn(text) ?? `status ${response.status}`);
    return text;
  }

  private get headers(): Readonly<Record<string, string>> {
    return this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` };
  }
}

/** The message of a Status. */
function messageIn(text: string): string | undefined {
  const { message } = (tried(() => JSON.parse(text)) ?? {}) as { message?: unknown };
  return typeof message === 'string' ? message.slice(0, 500) : undefined;
}

/**
 * Asks for the token of a server that requires one. It goes from the field to the code that uses it, and is kept nowhere in the
 * page.
 */
export class TokenForm {
  private readonly field: HTMLInputElement = byId<HTMLInputElement>('token');

  /** `onToken` returns whether the text can be a token. */
  constructor(onToken: (text: string) => boolean) {
    byId('ask').addEventListener('submit', (event) => {
      event.preventDefault();
      const text = this.field.value.trim();
      this.field.value = '';
      this.fail(onToken(text) ? '' : 'A token has 1 to 1,000 visible ASCII characters, and no spaces.');
    });
  }

  get isShown(): boolean {
    return document.body.classList.contains('locked');
  }

  /** `wrong`: there was a token, and the server does not accept it. */
  show(wrong: boolean): void {
    this.fail(wrong ? 'The server does not accept this token.' : '');
    if (this.isShown) return;
    document.body.classList.add('locked');
    this.field.focus();
  }

  hide(): void {
    if (!this.isShown) return;
    document.body.classList.remove('locked');
    // The field that had the focus is gone.
    const detail = byId('detail');
    (detail.hidden ? byId('objects') : detail).focus({ preventScroll: true });
  }

  private fail(text: string): void {
    say(byId('ask-fault'), text);
    byId('ask-fault').toggleAttribute('hidden', text === '');
    this.field.setAttribute('aria-invalid', String(text !== ''));
  }
}

/** A kind of objects. */
export interface PageResource {
  /** `orders.example.com/v1`, or `configmaps/v1`. */
  readonly id: string;
  /** `orders.example.com`, or `configmaps`: all versions of it are one collection. */
  readonly name: string;
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

/** Asks for all groups, versions and resources at once. */
export const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
/** Where these documents are: the group without a name, and all others. */
export const DISCOVERY_PATHS: readonly string[] = ['/api', '/apis'];

type Wire = Readonly<Record<string, unknown>>;

/** Reads the documents. Custom kinds come first, because they are what the server is for. */
export function toResources(documents: readonly unknown[]): readonly PageResource[] {
  const all = documents.flatMap((document) =>
    list(document, 'items').flatMap((group) =>
      list(group, 'versions').flatMap((version) => list(version, 'resources').flatMap(toResource)),
    ),
  );
  return all.sort((a, b) => rankOf(a) - rankOf(b) || byCodeUnit(a.id, b.id));
}

/** Kubernetes' own groups come after those of others, and the one without a name is the last. */
const rankOf = ({ group }: PageResource): number => (group === '' ? 2 : Number(group.endsWith('.k8s.io')));

function toResource(wire: Wire): readonly PageResource[] {
  const { resource, scope, verbs, responseKind } = wire;
  const { group = '', version, kind } = (responseKind ?? {}) as Wire;
  if (![resource, group, version, kind].every((each) => typeof each === 'string')) return [];
  // Resources that cannot be followed are not shown.
  if (!Array.isArray(verbs) || !['list', 'watch'].every((verb) => verbs.includes(verb))) return [];
  const name = group === '' ? resource : `${resource}.${group}`;
  const named = { id: `${name}/${version}`, name, group, version, plural: resource, kind } as Omit<PageResource, 'namespaced'>;
  return [{ ...named, namespaced: scope === 'Namespaced' }];
}

/** The path of a collection; of one namespace, or of all if that is empty. */
export function collectionPath({ group, version, plural, namespaced }: PageResource, namespace: string = ''): string {
  const root = group === '' ? ['api', version] : ['apis', group, version];
  const within = namespaced && namespace !== '' ? ['namespaces', namespace] : [];
  return `/${[...root, ...within, plural].map(encodeURIComponent).join('/')}`;
}

function list(value: unknown, name: string): readonly Wire[] {
  const found = (value as Wire | null | undefined)?.[name];
  return Array.isArray(found) ? found.filter((each) => typeof each === 'object' && each !== null) : [];
}
